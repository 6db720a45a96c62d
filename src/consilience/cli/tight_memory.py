"""Little memory: what a command needs to begin with, and libraries that take no more than there is.

OpenBLAS asks for 32 MiB per thread when it is loaded, of which there are two copies, and asks for ever if it gets none.
Arrow reserves a gigabyte of addresses for its own allocator, the C library 64 MiB for each thread. None of this is
memory that is used, but a limit of address space (``ulimit -v``) counts it. So where there is such a limit, threads are
bounded and plain allocators are chosen before these libraries are loaded. What is too little to load them is told at
once.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress

from ..errors import InputError, Message, Sentence, first_line
from ..memory import address_space, available_memory, format_bytes

# What loading takes, measured on a small file: 570 MiB of addresses (620 while it compiles), and 230 MiB of memory, of
# which a part are files that the system can read again.
LEAST_ADDRESSES, LEAST_MEMORY = 650 << 20, 192 << 20
# Below this many addresses, allocators must not reserve any.
FEW_ADDRESSES = 8 << 30
# What one more thread may reserve: its stack, and buffers of both copies of OpenBLAS.
PER_THREAD = 512 << 20
# The variables that tell libraries how many threads to start.
OPENBLAS = "OPENBLAS_NUM_THREADS"
THREADS = (OPENBLAS, "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "CONSILIENCE_THREADS")
# What OpenBLAS takes on one thread, thrice, and the side of matrices for which it does.
BUFFERS, SIDE = 96 << 20, 64
_ARENA_MAX = -8  # of mallopt, in the C library of Linux


def prepare() -> None:
    """Get ready for a limit of memory, before libraries are loaded; raise an error if they would not fit."""
    check_room()
    addresses = address_space()
    if addresses < FEW_ADDRESSES:
        os.environ.setdefault(OPENBLAS, "1")
        choose_allocators()
    if addresses < float("inf"):
        bound_threads(addresses)
    if addresses < FEW_ADDRESSES:
        settle_buffers()


def check_room() -> None:
    """Raise an error if there is less memory than it takes to load what every command needs."""
    for limit, least, what in (
        (address_space(), LEAST_ADDRESSES, "of address space, and ulimit -v allows"),
        (available_memory(), LEAST_MEMORY, "of memory, and there are"),
    ):
        if limit < least:
            raise InputError(
                f"consilience needs {format_bytes(least)} {what} {format_bytes(limit)}.", "Raise the limit."
            )


def bound_threads(addresses: float) -> None:
    """Let libraries start no more threads than so many addresses are enough for; fewer, if the user said so."""
    most = max(1, int(addresses // PER_THREAD))
    n_processors = os.cpu_count() or 1
    for name in THREADS:
        if name not in os.environ and most < n_processors:
            os.environ[name] = str(most)


def choose_allocators() -> None:
    """Let Arrow and the C library take addresses as they need them."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(AttributeError, OSError, TypeError):  # other systems have no such function
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def settle_buffers() -> None:
    """Let OpenBLAS take the buffers that it will need while there is room for certain: else it would wait for ever."""
    import numpy as np

    try:
        mmap.mmap(-1, BUFFERS).close()
    except OSError as error:
        raise MemoryError(str(error)) from error
    np.ones((SIDE, SIDE)) @ np.ones((SIDE, SIDE))


# What loaders of libraries say if they get no addresses, and Python if there is none for a thread.
_STARVED = ("Cannot allocate memory", "cannot allocate", "failed to map", "Could not find/load shared object")
_NO_THREAD = "can't start new thread"


def explain_shortage(error: Exception) -> Message | None:
    """Return what to say if there was too little memory, None if that was not the reason.

    >>> print(explain_shortage(ValueError("no")))
    None
    """
    words, addresses, limit = first_line(error), address_space(), available_memory()
    starved = addresses < FEW_ADDRESSES and isinstance(error, OSError) and any(each in words for each in _STARVED)
    if not (isinstance(error, MemoryError) or starved or _NO_THREAD in words):
        return None
    kind = "ulimit -v allows" if limit == addresses else "there are"
    asked = f" ({words})" if words and isinstance(error, MemoryError) else ""
    return Message(
        f"The memory is too small for this: {kind} {format_bytes(limit)}{asked}.",
        "Raise the limit, or take a part of the data.",
        Sentence("Or keep answers on disk: {memory}."),
    )
