"""How kernels are compiled, and how the number of classes becomes a compile-time constant.

A loop over classes whose length is known to the compiler is unrolled and kept in registers (measured: 1.4 to 2 times
faster for few classes). But each number of classes is then compiled on its own, which takes longer than all the work
that small data need. Kernels therefore take a `width` of which they use only the length: a tuple of K zeros for large
data, which makes K part of the argument's *type*, or an array of K zeros, for which one compiled kernel serves every K.
Results are the same to the bit.

numba keeps machine code beside the source, in the user's home, or in the folder named by $NUMBA_CACHE_DIR.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event as events

from . import Width, freeze

# From this many answers and items, or edges, the time that unrolled loops save is worth compiling them.
LARGE = 100_000
MOST_UNROLLED = 16

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile `function` without the interpreter's lock, caching the machine code on disk."""
    return cast(Kernel, numba.njit(function, nogil=True, error_model="numpy", cache=True))


def width_of(n_classes: int, size: int) -> Width:
    """Return the `width` argument of kernels for `n_classes` classes and data of this size.

    The size must be that of the whole data set, so that all its parts are done by the same kernel.
    """
    if size >= LARGE and n_classes <= MOST_UNROLLED:
        return (0,) * n_classes
    return freeze(np.zeros(n_classes, np.int8))


class Announcement(events.Listener):
    """Logs, once, that kernels are being compiled. What is loaded from the disk is not compiled."""

    def __init__(self) -> None:
        self._made = False

    def on_start(self, event: events.Event) -> None:
        """Take note of a function that numba begins to compile, which may be someone else's."""
        module = event.data["dispatcher"].py_func.__module__ or ""
        if not self._made and module.startswith(f"{__package__}."):
            self._made = True
            logging.getLogger("consilience").info("Compiling for the first use: a few seconds.")

    def on_end(self, event: events.Event) -> None:
        """Do nothing."""


events.register("numba:compile", Announcement())
