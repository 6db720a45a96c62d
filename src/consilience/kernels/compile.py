"""How kernels are compiled, and how the number of classes becomes a compile-time constant.

A loop over classes whose length is known to the compiler is unrolled and kept in registers (measured: 1.4 to 2 times
faster for few classes). Kernels therefore take a `width`: a tuple of K zeros for small K, which makes K part of the
argument's *type*, or the plain integer K for many classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.extending import overload

from .caching import KernelCache

MOST_UNROLLED = 16

Width = tuple[int, ...] | int
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile `function` without the interpreter's lock, caching the machine code on disk."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    compiled._cache = KernelCache(function)  # as cache=True does, with a cache that never fails
    return cast(Kernel, compiled)


def width_of(n_classes: int) -> Width:
    """Return the `width` argument of kernels for `n_classes` classes."""
    return (0,) * n_classes if n_classes <= MOST_UNROLLED else n_classes


def count_of(width: Width) -> int:
    """Return the number of classes that a `width` stands for; inside kernels a constant where it can be."""
    return len(width) if isinstance(width, tuple) else int(width)


@overload(count_of, inline="always", strict=False)
def _count_of(width: Any) -> Callable[[Any], Any]:
    if isinstance(width, types.BaseTuple):
        n_classes = len(width)
        return lambda width: n_classes  # noqa: ARG005
    return lambda width: width
