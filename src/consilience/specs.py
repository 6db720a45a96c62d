"""What the parts of a saved model must look like. Each part declares it, and it is checked before anything is computed.

Kernels trust their arrays: they check no index, and from a probability of 2 they make nonsense. So a file must hold
what a fit could have written: shapes that follow from the vocabularies, and values of the right kind.

A part is a frozen dataclass or a NamedTuple, and declares what is saved by the types of its fields, such as
``prior: Annotated[Floats, ArraySpec("K", DISTRIBUTIONS)]``. Numbers, truth values, text, and lists and dicts of these
need no more than their type, nor do fields that are parts themselves. Beside a protocol stands the part that is saved.
What only several fields together can get wrong is told by a method ``check_saved(sizes)`` of the part.
`consilience.results.saving` reads the declarations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

# Rows of probabilities sum to 1 up to this.
TOLERANCE = 1e-6
# The same for numbers of four bytes.
VOTE_TOLERANCE = 1e-4

# The length of each axis by its letter: N items, M workers, K classes, L labels, A answers (the labels, and silence
# where that is one), P previous answers (the labels, and none).
Sizes: TypeAlias = Mapping[str, int]


class Fault(ValueError):
    """What is wrong with a part of a saved model, in words that continue "is damaged:"."""


class Kind(NamedTuple):
    """A kind of values: the type they are saved in, what they are, and how that is told."""

    codes: tuple[str, ...]  # NumPy's codes of the type; of text there is one for each length
    words: str
    holds: Callable[[NDArray[Any], Sizes], bool]


@dataclass(frozen=True)
class ArraySpec:
    """The shape and the kind of a saved array.

    Parameters
    ----------
    shape : str
        The axes, separated by blanks. An axis is a product of letters of `Sizes`, a number, or a "*" for any length.
    kind : Kind
        What the values are.

    Examples
    --------
    >>> prior = ArraySpec("K", DISTRIBUTIONS)
    >>> prior.check("prior", np.array([0.5, 0.5]), {"K": 2})
    >>> prior.check("prior", np.array([0.5, 0.6]), {"K": 2})
    Traceback (most recent call last):
    consilience.specs.Fault: prior does not hold probabilities that sum to 1
    """

    shape: str
    kind: Kind

    def check_layout(self, name: str, shape: tuple[int, ...], code: str, sizes: Sizes) -> None:
        """Raise a `Fault` unless an array of this shape and type, given by NumPy's code for it, may be read at all."""
        expected = self.lengths(sizes)
        alike = len(shape) == len(expected) and all(b in (None, a) for a, b in zip(shape, expected, strict=True))
        if not alike:
            wanted = ", ".join("any" if length is None else str(length) for length in expected)
            raise Fault(f"{name} has the shape {shape}, and not ({wanted})")
        if code not in self.kind.codes:
            raise Fault(f"{name} holds values of type {code}, and not {' or '.join(self.kind.codes)}")

    def lengths(self, sizes: Sizes) -> list[int | None]:
        """Return the length of each axis; None for one of any length, and of a size that is not known."""
        return [None if axis == "*" else _length(axis, sizes) for axis in self.shape.split()]

    def check(self, name: str, array: NDArray[Any], sizes: Sizes) -> None:
        """Raise a `Fault` unless the values are what they must be."""
        if not self.kind.holds(array, sizes):
            raise Fault(f"{name} does not hold {self.kind.words}")


class ColumnSpec(NamedTuple):
    """A saved column of ids or of text."""

    length: str  # a letter of `Sizes`, which the first column with it defines; or a "*" for any length
    kind: str = "column"  # or "values", as an array; "names", which are distinct values; "texts", as a list


class Check(NamedTuple):
    """What a value from the header must be; of a list or a dict, beside what its entries must be."""

    holds: Callable[[Any], bool]


def among(choices: Container[str]) -> Check:
    """Return the check of a text that is one of some."""
    return Check(lambda value: isinstance(value, str) and value in choices)


class Same(NamedTuple):
    """The value is not saved once more: it is one that was read before."""

    path: str


class ByName(NamedTuple):
    """The value is one of several parts, each of which has a name that is saved with it."""

    list_parts: Callable[[], Mapping[str, type]]


# The value is not saved: what is loaded has the default of the field.
NOT_SAVED: Final = object()


def _length(axis: str, sizes: Sizes) -> int | None:
    if axis.isdigit():
        return int(axis)
    factors = [int(letter) if letter.isdigit() else sizes.get(letter) for letter in axis]
    return None if None in factors else math.prod(cast(list[int], factors))


def _within(array: NDArray[Any], least: float, most: float) -> bool:
    """Tell whether all values are in a range, which NaN never is."""
    return bool(((array >= least) & (array <= most)).all())


def _sum_to_one(array: NDArray[Any], axis: int) -> bool:
    return _within(array, 0, 1 + TOLERANCE) and _within(array.sum(axis=axis), 1 - TOLERANCE, 1 + TOLERANCE)


def _are_log_weights(array: NDArray[Any]) -> bool:
    """Tell whether these can be expected log probabilities: their exponentials sum to at most 1 over the answers."""
    if not _within(array, -np.inf, TOLERANCE):
        return False
    return _within(np.exp(array).sum(axis=1), 0, 1 + TOLERANCE) and bool((array > -np.inf).any(axis=1).all())


def _are_votes(array: NDArray[Any]) -> bool:
    return _within(array.sum(axis=-1, dtype=np.float64), 1 - VOTE_TOLERANCE, 1 + VOTE_TOLERANCE)


def _are_counts(array: NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        return _within(array, 0, np.inf) and bool(np.isfinite(array.sum()))


FLOAT, WHOLE, BOOLEAN = ("<f8",), ("<i8",), ("|b1",)
NARROW = ("|u1", "<u2", "<u4")  # whole numbers, in as few bytes as they need

DISTRIBUTIONS = Kind(FLOAT, "probabilities that sum to 1", lambda array, _: _sum_to_one(array, -1))
# Matrices (R, L, K) as models learn them: for each class a distribution over the labels.
LABEL_DISTRIBUTIONS = Kind(FLOAT, "probabilities that sum to 1", lambda array, _: _sum_to_one(array, 1))
LOG_WEIGHTS = Kind(FLOAT, "logarithms of probabilities", lambda array, _: _are_log_weights(array))
# What the E-step multiplies in place of probabilities; of variational Bayes it sums to less than 1.
WEIGHTS = Kind(
    FLOAT,
    "weights that sum to at most 1",
    lambda array, _: _within(array, 0, 1 + TOLERANCE) and _within(array.sum(axis=-1), 0, 1 + TOLERANCE),
)
PROBABILITIES = Kind(FLOAT, "probabilities", lambda array, _: _within(array, 0, 1))
# Ends of intervals; NaN where nothing is known.
ENDS = Kind(FLOAT, "probabilities, or nothing", lambda array, _: _within(array[~np.isnan(array)], 0, 1))
NOT_NEGATIVE = Kind(FLOAT, "finite numbers >= 0", lambda array, _: _within(array, 0, np.finfo(np.float64).max))
POSITIVE = Kind(
    FLOAT, "finite numbers > 0", lambda array, _: _within(array, np.nextafter(0, 1), np.finfo(np.float64).max)
)
COUNTS = Kind(FLOAT, "counts with a finite sum", lambda array, _: _are_counts(array))
# When something was, or a figure; NaN where it is not known.
FIGURES = Kind(FLOAT, "finite numbers, or nothing", lambda array, _: not np.isinf(array).any())
FINITE = Kind(FLOAT, "finite numbers", lambda array, _: bool(np.isfinite(array).all()))
# An objective may be minus infinity, where something impossible was known.
OBJECTIVES = Kind(FLOAT, "values of an objective", lambda array, _: _within(array, -np.inf, np.finfo(np.float64).max))
WHOLE_COUNTS = Kind(WHOLE, "counts", lambda array, _: _within(array, 0, 2**53))
CLASS_CODES = Kind(WHOLE, "indices of classes", lambda array, sizes: _within(array, 0, sizes["K"] - 1))
TRUTH = Kind(BOOLEAN, "a truth value", lambda _array, _sizes: True)
BOOLEANS = Kind(BOOLEAN, "truth values", lambda _array, _sizes: True)
VOTES = Kind(("<f4",), "probabilities that sum to 1", lambda array, _: _within(array, 0, 1) and _are_votes(array))
ANSWER_WEIGHTS = Kind(FLOAT, "weights in (0, 1]", lambda array, _: _within(array, np.nextafter(0, 1), 1))


def _codes_of(words: str, letter: str) -> Kind:
    """Return the kind of indices in the narrowest type that holds them, all below the size with this letter."""
    return Kind(NARROW, words, lambda array, sizes: bool((array < sizes[letter]).all()))


NARROW_COUNTS = Kind(NARROW, "counts", lambda _array, _sizes: True)
NARROW_ITEM_CODES = _codes_of("indices of items", "N")
NARROW_WORKER_CODES = _codes_of("indices of workers", "M")
NARROW_LABEL_CODES = _codes_of("indices of labels", "L")
NARROW_CLASS_CODES = _codes_of("indices of classes", "K")


def one_of(choices: tuple[str, ...]) -> Kind:
    """Return the kind of a text that is one of a few."""
    codes = tuple(dict.fromkeys(f"<U{len(choice)}" for choice in choices))
    return Kind(codes, f"one of {', '.join(choices)}", lambda array, _: array.item() in choices)


def is_whole(value: object) -> bool:
    """Tell whether a value from JSON is a whole number that is not negative, and of at most 63 bits.

    >>> is_whole(3), is_whole(-1), is_whole(True), is_whole(3.0)
    (True, False, False, False)
    """
    return type(value) is int and 0 <= value < 2**63


def is_truth(value: object) -> bool:
    """Tell whether a value from JSON is true or false."""
    return type(value) is bool


def is_finite(value: object) -> bool:
    """Tell whether a value from JSON is a finite number.

    >>> is_finite(0.5), is_finite(2), is_finite(float("nan")), is_finite("2"), is_finite(10**400)
    (True, True, False, False, False)
    """
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < 2**63)


def is_positive(value: Any) -> bool:
    """Tell whether a value from JSON is a finite number above 0."""
    return is_finite(value) and value > 0


def is_not_negative(value: Any) -> bool:
    """Tell whether a value from JSON is a finite number that is not negative."""
    return is_finite(value) and value >= 0


def is_share(value: Any) -> bool:
    """Tell whether a value from JSON is a number between 0 and 1."""
    return is_finite(value) and 0 <= value <= 1


# A figure that may be infinite, or nothing.
Figure: TypeAlias = Annotated[float, Check(lambda value: type(value) is float or is_finite(value))]
Positive: TypeAlias = Annotated[float, Check(is_positive)]
NotNegative: TypeAlias = Annotated[float, Check(is_not_negative)]
Share: TypeAlias = Annotated[float, Check(is_share)]
