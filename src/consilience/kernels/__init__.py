"""Compiled loops: functions on arrays, no validation, no classes, no knowledge of models.

Arrays arrive with frozen dtypes, in C order, and read-only where they are inputs, so that each kernel is compiled once
(for large data, once per number of classes; see `compile`). Compiling takes longer than most fits: kernels are few and
small, hold nothing but loops over numbers, and are given the scratch memory they need. Every kernel has a slow,
obviously right twin in the tests.

Arrays have the types that are named here.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.signedinteger[Any]]
Rows = NDArray[np.signedinteger[Any]] | NDArray[np.uint16]  # codes that are only used as indices
Codes = NDArray[np.int32]
Truths = NDArray[np.bool_]
Width = tuple[int, ...] | NDArray[np.int8]  # as long as there are classes; see `compile`

Array = TypeVar("Array", bound=NDArray[np.generic])


def freeze(array: Array) -> Array:
    """Return the array marked read-only. Kernels are compiled once for read-only inputs, wherever these come from."""
    array.flags.writeable = False
    return array


def read_only(array: Array) -> Array:
    """Return a read-only view of the array, which itself stays as it is."""
    return freeze(array.view())
