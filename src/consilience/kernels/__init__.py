"""Compiled loops: functions on arrays, no validation, no classes, no knowledge of models.

Arrays arrive with frozen dtypes, in C order, and read-only where they are inputs, so that each kernel is compiled once
(for large data, once per number of classes; see `width_of`). Compiling takes longer than most fits: kernels are few and
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
Width = tuple[int, ...] | NDArray[np.int8]  # as long as there are classes; see `width_of`

# From this many answers and items, or edges, the time that unrolled loops save is worth compiling them.
LARGE = 100_000
MOST_UNROLLED = 16

# Sums, shares and logarithms that differ by less are the same but for rounding.
ROUNDING = 1e-12
# What is divided by, and what a logarithm is taken of, is at least this: smaller probabilities are as good as 0.
NEARLY_ZERO = 1e-300
# Log likelihood of answers that no class allows: they are set aside, at a price that stays finite.
LOG_IMPOSSIBLE = -690.0
# What is left of a count, however much is taken away: rounding must not make it negative.
LEAST_LEFT_OVER = 1e-12

Array = TypeVar("Array", bound=NDArray[np.generic])


def freeze(array: Array) -> Array:
    """Return the array marked read-only. Kernels are compiled once for read-only inputs, wherever these come from."""
    array.flags.writeable = False
    return array


def read_only(array: Array) -> Array:
    """Return a read-only view of the array, which itself stays as it is."""
    return freeze(array.view())


def width_of(n_classes: int, size: int) -> Width:
    """The `width` argument of kernels for so many classes and data of this size.

    A loop over classes whose length is known to the compiler is unrolled and kept in registers (measured: 1.4 to 2
    times faster for few classes). But each number of classes is then compiled on its own, which takes longer than all
    the work that small data need. Kernels therefore take a `width` of which they use only the length: a tuple of K
    zeros for large data, which makes K part of the argument's *type*, or an array of K zeros, for which one compiled
    kernel serves every K. Results are the same to the bit.

    The size must be that of the whole data set, so that all its parts are done by the same kernel.
    """
    if size >= LARGE and n_classes <= MOST_UNROLLED:
        return (0,) * n_classes
    return freeze(np.zeros(n_classes, np.int8))
