"""How large things may be, and how much memory and how many threads this process may use.

Most systems grant more memory than they have, and kill the process that uses it. So whatever may become very large
because of a few numbers in the data (a crowd with thousands of labels, a grid with a million rows) is estimated first
and compared with the memory of the machine. An estimate is always too low rather than too high: what might fit is
tried. What would make a small file take minutes or gigabytes is refused on every machine: `LIMITS`.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from .errors import InputError, ParameterError, Sentence

if TYPE_CHECKING:  # the command line shows its help in an instant, without NumPy
    from numpy.typing import DTypeLike, NDArray

Outcome = TypeVar("Outcome")

# Items that are looked at together, where all at once would take much memory.
ITEMS_AT_ONCE = 1 << 16
NUMBER = 8  # bytes of a float64 or an int64
_CGROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# The most there can be: so many, or so many for each of the answers (rows, sets, scores, bytes) they are made of.
LIMITS: dict[str, tuple[int, int]] = {
    "columns": (10_000, 0),  # each takes some tenths of a millisecond, and workers are compared in pairs
    "cells": (5_000_000, 100),  # of a table with a column for each worker or label, where most may be empty
    "unpacked": (512 << 20, 100),
    "probabilities": (15_000_000, 1000),
    "entries": (4_000_000, 300),  # there are up to 24 tables of them at a time, and each takes part in every step
    "ordinal entries": (5_000_000, 15_000),  # few answers rule out no type, so that each takes part in every step
    "steps of moments": (100_000_000, 5_000),  # in each sweep
    "skills": (200_000, 5),
    "tags": (500, 0),
    "questions": (200, 0),  # each is a fit of its own: a tenth of a second however few its answers are
    "neighbours": (2_000_000, 200),  # each is an edge that takes part in every step
    "pairs of scores": (3_000_000, 100),
}


def available_memory() -> float:
    """How many bytes this process may use at most; infinity where the system does not tell.

    This is the memory of the machine, or less where a control group (as of a container) or the shell's ``ulimit`` sets
    a limit. What is in use already, by this process or others, does not count.
    """
    limits = [float("inf")]
    with suppress(AttributeError, ValueError, OSError):  # there is no sysconf on Windows
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(ImportError):  # only Unix has it
        import resource

        soft = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
        limits += [limit for limit in soft if limit != resource.RLIM_INFINITY]
    with suppress(OSError):
        # A line is such as "0::/user/app". A container sees its own group as the root, under whatever name the host
        # knows it, and the groups around a group limit it too.
        group = Path(_OWN_GROUP.read_text().rpartition("::")[2].strip().strip("/"))
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # no such group here, or no limit: "max"
                limits.append(int((_CGROUPS / folder / "memory.max").read_text()))
    return min(limit for limit in limits if limit > 0)


def require_memory(n_bytes: float, problem: str, *remedies: str | Sentence, keyword: str | None = None) -> None:
    """Raise an error if more memory is needed than there can be.

    Parameters
    ----------
    n_bytes : float
        How much is needed at least.
    problem : str
        What is large, in words that continue "...: that takes at least 2 GiB, and there is 1 GiB."
    *remedies, keyword
        As for every error.
    """
    limit = available_memory()
    if n_bytes > limit:
        raise InputError(
            f"{problem}: that takes at least {format_bytes(n_bytes)} of memory, and there are {format_bytes(limit)}.",
            *remedies,
            keyword=keyword,
        )


# How much memory the fit that is under way may use, where that was said; see `keep_to`.
_MEMORY: ContextVar[float | None] = ContextVar("memory", default=None)
_MAPPED: WeakSet[mmap.mmap] = WeakSet()
# An array that would take more than this part of the memory is mapped from a file.
MAPPED_PART = 1 / 10
# To ask how much memory there is takes longer than to fill an array of so many bytes.
ALWAYS_FITS = 1 << 16


@contextmanager
def keep_to(memory: float | None) -> Iterator[None]:
    """Let `allocate` keep to so many bytes meanwhile; None: to what there is."""
    token = _MEMORY.set(memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)


def allocate(shape: tuple[int, ...], dtype: DTypeLike = float) -> NDArray[Any]:
    """An array to be filled: in memory, or mapped from a temporary file if it takes much of the memory there is.

    >>> allocate((2, 3)).shape
    (2, 3)
    """
    import numpy as np

    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes <= ALWAYS_FITS or n_bytes <= MAPPED_PART * (_MEMORY.get() or available_memory()):
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        try:  # a page that the disk has no room for would end the process
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
        except OSError as error:
            raise InputError(
                f"There is no room for {format_bytes(n_bytes)} in {tempfile.gettempdir()!r}: {error.strerror}.",
                "Name a place with more room by the variable TMPDIR.",
            ) from error
        return _map(mmap.mmap(file.fileno(), n_bytes), dtype).reshape(shape)


def open_mapped(path: str | os.PathLike[str], dtype: DTypeLike) -> NDArray[Any]:
    """The numbers in a file as an array that cannot be changed, read from there when they are needed."""
    with open(path, "rb") as file:
        return _map(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)


def _map(mapped: mmap.mmap, dtype: DTypeLike) -> NDArray[Any]:
    import numpy as np

    _MAPPED.add(mapped)
    return np.frombuffer(mapped, dtype)


def release_mapped() -> None:
    """Give back the memory of what is mapped, which is in its files, after one went through it."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapped in list(_MAPPED):
            mapped.madvise(mmap.MADV_DONTNEED)


def require_few(
    what: str, number: int, problem: str, *remedies: str | Sentence, n: int = 0, keyword: str | None = None
) -> None:
    """Raise an error if there are more of something, made of n answers, than there can be.

    The problem continues "..., and at most 500 are taken."
    """
    least, each = LIMITS[what]
    if number > max(least, each * n):
        raise InputError(f"{problem}, and at most {max(least, each * n):,} are taken.", *remedies, keyword=keyword)


def are_allowed(n_bytes: float, what: str, number: int, n: int = 0) -> bool:
    """Whether so many bytes, and so many of something, made of n answers, are no more than there can be."""
    least, each = LIMITS[what]
    return n_bytes <= available_memory() and number <= max(least, each * n)


def count_threads() -> int:
    """The number of threads to use: $CONSILIENCE_THREADS, or else the number of processors."""
    text = os.environ.get("CONSILIENCE_THREADS", "").strip()
    if not text:
        # Only the processors this process may use: containers often have fewer than the machine.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdigit() or int(text) < 1:
        raise ParameterError(f"$CONSILIENCE_THREADS must be a whole number >= 1. Got {text!r} instead.")
    return int(text)


# A thread is worth starting for so many rows.
ROWS_PER_THREAD = 1 << 18


def side_by_side(work: Callable[[int, int], Outcome], n: int, least: int = ROWS_PER_THREAD) -> list[Outcome]:
    """What `work(start, stop)` returns for parts of 0, ..., n - 1, in order; each part has a thread of its own.

    There are as many parts as threads, and each has at least `least` numbers. So results must not depend on the parts.

    >>> side_by_side(lambda start, stop: stop - start, 10)
    [10]
    """
    n_parts = max(1, min(count_threads(), n // max(least, 1)))
    cuts = [n * part // n_parts for part in range(n_parts + 1)]
    if n_parts == 1:
        return [work(0, n)]
    with ThreadPoolExecutor(n_parts) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))


def format_bytes(n_bytes: float) -> str:
    """A size in words.

    >>> format_bytes(1536), format_bytes(35.7 * 2**30), format_bytes(2e20)
    ('1.5 KiB', '35.7 GiB', '177,636 PiB')
    """
    size, unit = float(n_bytes), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 1000 else f"{size:.1f} {unit}"
