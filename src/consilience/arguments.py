"""What users give for numbers, choices, paths and functions: anything at all, until it is checked here.

An object may have no order, no hash and no truth value, and may not be what its type suggests. So a check first asks
for the type, and compares only then.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard

from .errors import ParameterError, Python, Sentence, listing, parameter_error
from .limits import require_few

if TYPE_CHECKING:  # the command line shows its help in an instant, without NumPy
    from .kernels import Floats

# By their names: NumPy's are not the same as Python's, and its durations count as whole numbers.
_NO_NUMBERS = ("bool", "bool_", "timedelta64", "Decimal", "Fraction")


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number, of Python or NumPy, within the range of floats; truth values are not.

    >>> import numpy as np
    >>> is_number(np.float32(0.5)), is_number(True), is_number("learn"), is_number(10**400)
    (True, False, False, False)
    """
    if not isinstance(value, Real) or type(value).__name__ in _NO_NUMBERS:
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number by its type.

    >>> import numpy as np
    >>> is_whole(np.int8(3)), is_whole(10**400), is_whole(3.0)
    (True, True, False)
    """
    return isinstance(value, Integral) and type(value).__name__ not in _NO_NUMBERS


def is_among(value: object, choices: Collection[Any]) -> bool:
    """Whether a value is one of a few; arrays and tables, which have no one answer to ==, are not.

    >>> import numpy as np
    >>> is_among("em", ("em", "variational")), is_among(np.array(["em"]), ("em", "variational"))
    (True, False)
    """
    try:
        return value in dict.fromkeys(choices)
    except TypeError:  # it has no hash
        return False


def check_seed(seed: object, owner: str) -> None:
    """Raise an error unless random numbers can be drawn with a seed."""
    if not is_whole(seed) or not seed >= 0:
        raise parameter_error("seed", owner, "a whole number >= 0", seed)


def check_truth(name: str, owner: str, value: object) -> None:
    """Raise an error unless a value is true or false."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise parameter_error(name, owner, "True or False", value)


def to_path(name: str, owner: str, value: Any) -> str:
    """A path as text."""
    try:
        path = os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise parameter_error(name, owner, "a path", value)
    return path


def to_floats(values: Any) -> Floats:
    """Numbers as an array of floats, NaN where they are masked; whatever they are not is a `ValueError`.

    >>> import numpy as np
    >>> to_floats(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    >>> to_floats([1j])
    Traceback (most recent call last):
    ValueError: these are of type complex128
    """
    import numpy as np

    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.dtype.kind in "cmM":  # of which NumPy would take a part
            raise ValueError(f"these are of type {array.dtype}")
        return np.asarray(np.ma.filled(array.astype(np.float64, copy=False), np.nan))
    except (TypeError, OverflowError, NotImplementedError) as error:
        raise ValueError(str(error)) from error


def check_questions(label: object, owner: str) -> list[str] | None:
    """The questions that a list of columns names; None if it is no list. Each is named once."""
    if not isinstance(label, (list, tuple)):
        return None
    names = [str(each) for each in label if isinstance(each, (str, Real)) or hasattr(each, "dtype")]
    if len(set(names)) < len(label) or not names:
        raise parameter_error("label", owner, "the name of a column, or a list of different ones", label)
    remedy = Sentence("Name some of them with {label}.")
    require_few("questions", len(names), f"There are {len(names):,} questions", remedy, keyword="label")
    return names


def split_by_question(parameter: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    """The value of a parameter for each question: a mapping from questions, None for all others, or one value."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    if None in value:
        value = dict.fromkeys(names, value[None]) | {name: each for name, each in value.items() if name is not None}
    known = set(names)  # found by hash: an odd object may not be comparable
    unknown = [str(name) for name in value if name not in known]
    if unknown:
        raise ParameterError(
            Sentence(
                f"{{{parameter}}} is given for {{unknown}}, and the questions are {{names}}.",
                **{parameter: None, "unknown": Python(listing(unknown)), "names": Python(listing(names, len(names)))},
            ),
            keyword=parameter,
        )
    return dict(value)
