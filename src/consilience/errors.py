"""The one exception tree of the package, and its warnings.

Every message says what is wrong, what was found, and what to do; at most five offenders are listed, with the count.
"""

from __future__ import annotations

from collections.abc import Iterable


class ConsilienceError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(ConsilienceError, ValueError):
    """The data cannot be used: a missing column, an empty file, a null label, a duplicate answer."""


class ParameterError(ConsilienceError, ValueError):
    """An option has a value it cannot take."""


class NotFittedError(ConsilienceError, AttributeError):
    """A result was asked for before `fit`."""


class StoreError(ConsilienceError, ValueError):
    """A saved model cannot be written or read."""


class MissingDependencyError(ConsilienceError, ImportError):
    """An optional dependency is needed and not installed."""


class ConsilienceWarning(UserWarning):
    """Base of every warning this package gives."""


class ConvergenceWarning(ConsilienceWarning):
    """The fit stopped before it settled."""


class DataWarning(ConsilienceWarning):
    """Something in the data deserves a look, and the work went on."""


def shorten(value: object, width: int = 60) -> str:
    """Return `repr(value)`, cut to `width` characters, fit for a message.

    >>> shorten("a" * 100, width=12)
    "'aaaaaaaa..."
    """
    # A NumPy scalar is shown as the plain value it holds; this file imports no NumPy.
    plain = (
        value.item()
        if type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__len__")
        else value
    )
    text = repr(plain)
    return text if len(text) <= width else text[: width - 3] + "..."


def listing(values: Iterable[object], most: int = 5) -> str:
    """Return up to `most` values as text, and how many more there are.

    >>> listing(range(7))
    '0, 1, 2, 3, 4 and 2 more'
    """
    shown = list(values)
    text = ", ".join(shorten(value) for value in shown[:most])
    return text if len(shown) <= most else f"{text} and {len(shown) - most} more"


def count(number: int, noun: str) -> str:
    """Return a number of things in words.

    >>> count(1, "label"), count(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def first_line(error: Exception) -> str:
    r"""Return the first line of an error's message, fit to be continued.

    >>> first_line(OSError("No space left.\nErrno 28"))
    'No space left'
    """
    return str(error).strip().partition("\n")[0].rstrip(".")


def parameter_error(name: str, owner: str, expected: str, got: object) -> ParameterError:
    """Return the error for one bad option, in the same words everywhere.

    >>> parameter_error("tol", "DawidSkene", "a number >= 0", -1)
    ParameterError("The 'tol' parameter of DawidSkene must be a number >= 0. Got -1 instead.")
    """
    return ParameterError(f"The {name!r} parameter of {owner} must be {expected}. Got {shorten(got)} instead.")
