"""Run a benchmark in a process of its own, so that its peak of memory is its own, and stop it if it takes too much."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

SLOW, LARGE, FAILED = "slow", "large", "failed"
Result = TypeVar("Result")


class Measured(NamedTuple):
    """What a process printed, one JSON object per line, and why it ended early: None if it did not."""

    found: list[Any]
    reason: str | None = None


def measure_alone(script: str | Path, *arguments: object, seconds: float, memory: float) -> Measured:
    """Return what `python script arguments` prints.

    The reason for an early end is SLOW if it took more than `seconds`, LARGE if it held more than `memory` bytes, and
    FAILED with its last words if it ended with an error.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        command = [sys.executable, str(script), *map(str, arguments)]
        with subprocess.Popen(command, stdout=out, stderr=errors) as process:
            reason = watch(process, time.monotonic() + seconds, memory)
        out.seek(0)
        found = [json.loads(line) for line in out.read().splitlines() if line.startswith(b"{")]
        if reason is None and process.returncode:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip().splitlines() or [f"code {process.returncode}"]
            reason = LARGE if re.search("MemoryError|OutOfMemory", words[-1]) else f"{FAILED}: {words[-1]}"
    return Measured(found, reason)


def watch(process: subprocess.Popen[bytes], end: float, memory: float) -> str | None:
    """Wait for a process, and kill it if it takes too long or too much."""
    while process.poll() is None:
        reason = SLOW if time.monotonic() > end else LARGE if read_memory("VmRSS", process.pid) > memory else None
        if reason is not None:
            process.kill()
            return reason
        time.sleep(0.05)
    return None


def read_memory(field: str, process: int | str = "self") -> int:
    """Return a figure of /proc/.../status in bytes, such as VmHWM, the peak of the process; 0 if there is none."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), 0)


def half_of_memory() -> float:
    """Return how many bytes a benchmark may take."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2


def time_best(action: Callable[[], Result], repeats: int = 3, enough: float = 5.0) -> tuple[float, int, Result]:
    """Return the shortest time of a few runs, the peak of memory after the first, and the last result.

    There is one run if it takes longer than `enough` seconds.
    """
    times, peak = list[float](), 0
    while not times or (len(times) < repeats and sum(times) < enough):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
        peak = peak or read_memory("VmHWM")
    return min(times), peak, result
