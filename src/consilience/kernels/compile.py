"""How kernels are compiled, where machine code is kept, and how the number of classes becomes a compile-time constant.

A loop over classes whose length is known to the compiler is unrolled and kept in registers (measured: 1.4 to 2 times
faster for few classes). But each number of classes is then compiled on its own, which takes longer than all the work
that small data need. Kernels therefore take a `width` of which they use only the length: a tuple of K zeros for large
data, which makes K part of the argument's *type*, or an array of K zeros, for which one compiled kernel serves every K.
Results are the same to the bit.

numba keeps machine code beside the source, in the user's home, or in the folder named by $NUMBA_CACHE_DIR. Where it can
write to none of them it refuses to compile, a full disk is an error, and so is a damaged file, again in every run.
Kernels do not fail for such reasons: code is kept in a temporary folder instead, or compiled in every run, and what is
damaged is replaced.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event as events
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from . import Width, freeze

# From this many answers and items, or edges, the time that unrolled loops save is worth compiling them.
LARGE = 100_000
MOST_UNROLLED = 16

# Versions of numba for which `LoadingContext` was tried. Others take numba's own way.
LOADS_BY_ITSELF = ("0.68.",)
CONFIG: Any = numba.config  # which has its settings from the environment

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile `function` without the interpreter's lock, caching the machine code on disk."""
    if CONFIG.DISABLE_JIT:
        return function
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "boundscheck": None}
    compiled = CompiledKernel(function, targetoptions=options)
    compiled.enable_caching()
    return cast(Kernel, compiled)


def width_of(n_classes: int, size: int) -> Width:
    """Return the `width` argument of kernels for `n_classes` classes and data of this size.

    The size must be that of the whole data set, so that all its parts are done by the same kernel.
    """
    if size >= LARGE and n_classes <= MOST_UNROLLED:
        return (0,) * n_classes
    return freeze(np.zeros(n_classes, np.int8))


class CompiledKernel(CPUDispatcher):
    """A function that numba compiles, whose cache never fails."""

    def enable_caching(self) -> None:
        """Keep machine code in the usual place, else in a temporary one, else nowhere."""
        self._cache = open_cache(self.py_func)


class CheckedCode(CompileResultCacheImpl):
    """Machine code with its digest: code with a wrong bit would crash, or compute something else."""

    def reduce(self, compiled: Any) -> tuple[bytes, bytes]:
        """Return what is written."""
        code = dumps(super().reduce(compiled))
        return sha256(code).digest(), code

    def rebuild(self, context: Any, kept: tuple[bytes, bytes]) -> Any:
        """Return what was compiled."""
        digest, code = kept
        if sha256(code).digest() != digest:
            raise ValueError("The digest is not that of the code.")
        return super().rebuild(context, pickle.loads(code))


class LoadingContext:
    """numba's context, but refreshed with only what kept code needs: the runtime that counts references.

    numba gets its context ready to compile before it loads code: it imports its implementations of NumPy, a fifth of
    the time of a small run, and has no setting against that. What is compiled later gets the context ready by itself.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def refresh(self) -> None:
        """Get ready to load."""
        rtsys.initialize(self._context)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class KernelCache(FunctionCache):
    """Keeps the machine code of one kernel. What cannot be read is replaced, what cannot be written is not kept."""

    _impl_class = CheckedCode
    elsewhere: str | None = None  # the folder that is taken instead of the usual ones

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return what was kept for a signature, or None."""
        try:
            loads_by_itself = numba.__version__.startswith(LOADS_BY_ITSELF)
            found = super().load_overload(signature, LoadingContext(context) if loads_by_itself else context)
            # The index that leads to the code may be damaged too.
            if found is None or tuple(found.signature.args) == tuple(signature):
                if found is not None and self.elsewhere:
                    say_where(self.elsewhere)
                return found
        except Exception:  # damaged bytes may lead to any
            pass
        with suppress(OSError):
            self.flush()
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled."""
        try:
            super().save_overload(signature, compiled)
        except Exception:  # no space is left, or a file is damaged and cannot be replaced
            say_where(None)
        else:
            if self.elsewhere:
                say_where(self.elsewhere)


def open_cache(function: Callable[..., Any]) -> KernelCache | NullCache:
    """Return the cache of a kernel."""
    with suppress(RuntimeError, OSError):  # numba has found no folder that can be written to
        return KernelCache(function)
    usual = CONFIG.CACHE_DIR
    try:
        CONFIG.CACHE_DIR = folder = make_temporary_folder()
        opened = KernelCache(function)
        opened.elsewhere = folder
        return opened
    except (RuntimeError, OSError):
        say_where(None)
        return NullCache()
    finally:
        CONFIG.CACHE_DIR = usual


def make_temporary_folder() -> str:
    """Return the path of a folder that belongs to this user alone: what is in it will be executed."""
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""  # elsewhere each user has a folder of their own
    path = os.path.join(tempfile.gettempdir(), f"consilience{user}")
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or (
        user and (found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    ):
        raise PermissionError(f"{path} is not a folder of this user alone.")
    return path


@cache
def say_where(folder: str | None) -> None:
    """Log, once, where compiled code is kept instead of the usual place."""
    # Worker processes would only repeat what the main process has said.
    level = logging.WARNING if multiprocessing.parent_process() is None else logging.DEBUG
    what = f"It is kept in {folder} for now" if folder else "It is compiled again in every run, which takes a while"
    logging.getLogger("consilience").log(
        level,
        f"Compiled code cannot be kept where it should be. {what}. Set NUMBA_CACHE_DIR to a folder with space that can "
        "be written to.",
    )


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
