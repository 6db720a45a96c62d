"""Checks of parameters, with one way to say what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import is_number, is_whole, to_floats
from ..errors import ParameterError, parameter_error
from ..kernels.types import Floats

# The most items, workers and classes: their indices have 32 bits.
MOST = 2**31 - 1


def bad_parameter(name: str, expected: str, got: object) -> ParameterError:
    """Return the error for a bad parameter of the simulators."""
    return parameter_error(name, "simulate", expected, got)


def check_whole(least: int, **parameters: Any) -> None:
    """Raise an error unless every parameter is a whole number, at least `least`, and a size that arrays can have."""
    for name, value in parameters.items():
        if not is_whole(value) or value < least:
            raise bad_parameter(name, f"a whole number >= {least}", value)
        if value > MOST:
            raise bad_parameter(name, f"a whole number between {least} and {MOST:,}", value)


def check_between(name: str, value: Any, low: float, high: float, *, half_open: bool = False) -> None:
    """Raise an error unless a parameter is a number between two others."""
    if not (is_number(value) and low <= value <= high and not (half_open and value == high)):
        if high == np.inf:
            raise bad_parameter(name, f"a number >= {low:g}", value)
        raise bad_parameter(name, f"a number in [{low:g}, {high:g}{')' if half_open else ']'}", value)


def as_floats(name: str, values: ArrayLike, expected: str) -> Floats:
    """Return a parameter as an array of numbers."""
    try:
        return to_floats(values)
    except (TypeError, ValueError) as error:
        raise bad_parameter(name, expected, values) from error


def as_probabilities(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a parameter as an array of the given shape that sums to 1 along its last axis."""
    size = " x ".join(map(str, shape))
    expected = f"{size} probabilities that sum to 1" + (" in each row" if len(shape) > 1 else "")
    array = as_floats(name, values, expected)
    if array.shape != shape or not (array >= 0).all() or not np.allclose(array.sum(axis=-1), 1.0, atol=1e-6):
        raise bad_parameter(name, expected, values)
    return np.asarray(array / array.sum(axis=-1, keepdims=True))


def cumulate(probabilities: Floats) -> Floats:
    """Return cumulated probabilities along the last axis, exactly 1 from the last possible outcome on.

    >>> cumulate(np.array([0.1, 0.2, 0.7, 0.0]))
    array([0.1, 0.3, 1. , 1. ])
    """
    total = probabilities.cumsum(axis=-1)
    return np.asarray(total / total[..., -1:])
