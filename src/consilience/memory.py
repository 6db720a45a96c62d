"""How much memory and how many threads this process may use, and the check of a size before it is asked for.

Most systems grant more memory than they have, and kill the process that uses it. So whatever may become very large
because of a few numbers in the data (a crowd with thousands of labels, a grid with a million rows) is estimated first
and compared with the memory of the machine. An estimate is always too low rather than too high: what might fit is
tried.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from .errors import InputError, ParameterError, Sentence

NUMBER = 8  # bytes of a float64 or an int64
_CGROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


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


def count_threads() -> int:
    """The number of threads to use: $CONSILIENCE_THREADS, or else the number of processors."""
    text = os.environ.get("CONSILIENCE_THREADS", "").strip()
    if not text:
        # Only the processors this process may use: containers often have fewer than the machine.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdigit() or int(text) < 1:
        raise ParameterError(f"$CONSILIENCE_THREADS must be a whole number >= 1. Got {text!r} instead.")
    return int(text)


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
