"""How kernels are compiled.

numba keeps machine code beside the source, in the user's home, or in the folder named by $NUMBA_CACHE_DIR.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event as events

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile `function` without the interpreter's lock, caching the machine code on disk."""
    return cast(Kernel, numba.njit(function, nogil=True, error_model="numpy", cache=True))


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
