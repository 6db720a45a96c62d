"""How much memory and how many threads this process may use, and the check of a size before it is asked for.

Most systems grant more memory than they have, and kill the process that uses it. So whatever may become very large
because of a few numbers in the data (a crowd with thousands of labels, a grid with a million rows) is estimated first
and compared with the memory of the machine. An estimate is always too low rather than too high: what might fit is
tried.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .errors import InputError, ParameterError, Sentence

NUMBER = 8  # bytes of a float64 or an int64
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def available_memory() -> float:
    """Return how many bytes this process may use at most; infinity where the system does not tell.

    This is the memory of the machine, or less where a control group (as of a container) or the shell's ``ulimit`` sets
    a limit. What is in use already, by this process or others, does not count.
    """
    return min(
        (*_physical_memory(), *_cgroup_limits(), *_process_limits("RLIMIT_AS", "RLIMIT_DATA")), default=float("inf")
    )


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


def count_threads() -> int:
    """Return the number of threads to use: $CONSILIENCE_THREADS, or else the number of processors."""
    text = os.environ.get("CONSILIENCE_THREADS", "").strip()
    if not text:
        # Only the processors this process may use: containers often have fewer than the machine.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdigit() or int(text) < 1:
        raise ParameterError(f"$CONSILIENCE_THREADS must be a whole number >= 1. Got {text!r} instead.")
    return int(text)


def format_bytes(n_bytes: float) -> str:
    """Return a size in words.

    >>> format_bytes(1536), format_bytes(35.7 * 2**30), format_bytes(2e20)
    ('1.5 KiB', '35.7 GiB', '177,636 PiB')
    """
    size, unit = float(n_bytes), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 1000 else f"{size:.1f} {unit}"


def _physical_memory() -> Iterator[int]:
    with suppress(AttributeError, ValueError, OSError):  # there is no sysconf on Windows
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if size > 0:
            yield size


def _process_limits(*names: str) -> Iterator[int]:
    with suppress(ImportError):  # only Unix has it
        import resource

        for name in names:
            limit, _ = resource.getrlimit(getattr(resource, name))
            if limit != resource.RLIM_INFINITY:
                yield limit


def _cgroup_limits() -> Iterator[int]:
    """Yield the limits of the control groups (version 1 or 2) that this process is in, and of those around them."""
    with suppress(OSError):
        for line in _OWN_CGROUPS.read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers == "":
                root, file = _CGROUPS, "memory.max"
            elif "memory" in controllers.split(","):
                root, file = _CGROUPS / "memory", "memory.limit_in_bytes"
            else:
                continue
            group = Path(name.strip("/"))
            for folder in (group, *group.parents):
                # A container sees its own group as the root, under whatever name the host knows it.
                with suppress(OSError, ValueError):  # no such group here, or no limit: "max"
                    yield int((root / folder / file).read_text())
