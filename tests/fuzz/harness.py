"""The harness: cases run one by one in a process of their own, which may die or hang, and outcomes are counted.

A surface is a module with one function, `run(rng, folder)`. It makes one input from the generator of random numbers,
hands it to the library, and returns a word for what it did to the input. If the library gives a result that cannot be
one, it raises `Nonsense`. The same seed and number give the same case.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

RESULT, OWN_ERROR = "result", "own error"
FOREIGN, NONSENSE, TOO_LONG, CRASH, HANG = "foreign exception", "nonsense", "message too long", "crash", "hang"
SURFACES = {
    "crowds": "fuzz.crowds",
    "kinds": "fuzz.kinds",
}
LONGEST_MESSAGE = 2000
# Memory that a case may take on top of what the process has: damaged files are small.
MOST_MEMORY = 1 << 30


class Nonsense(Exception):
    """The library gave a result that cannot be one."""


@dataclass
class Tally:
    """How many cases of a surface had each outcome, and those that must not be."""

    surface: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{name} {count:,}" for name, count in self.outcomes.items()]
        return f"{self.surface}: {self.outcomes.total():,} cases: {', '.join(parts)}"


def run_cases(surface: str, cases: range, seed: int, seconds: float = 60.0, until: float = np.inf) -> Tally:
    """Run numbered cases of a surface, each for at most so many seconds, until a time of `time.monotonic`."""
    tally = Tally(surface)
    with tempfile.TemporaryDirectory() as folder:
        for number, outcome, words in _outcomes(surface, iter(cases), seed, Path(folder), seconds, until):
            tally.outcomes[outcome] += 1
            if outcome not in (RESULT, OWN_ERROR):
                words = words.encode(errors="backslashreplace").decode()
                tally.failures.append(f"{surface} --seed {seed} --only {number}: {outcome}: {words}")
    return tally


def _outcomes(
    surface: str, cases: Iterator[int], seed: int, folder: Path, seconds: float, until: float
) -> Iterator[tuple[int, str, str]]:
    """Yield number, outcome and words of each case; a process that is lost is replaced."""
    context = multiprocessing.get_context("spawn")
    worker, pipe = None, None
    try:
        for number in cases:
            if time.monotonic() > until:
                return
            if worker is None or pipe is None:
                pipe, end = context.Pipe()
                worker = context.Process(target=_work, args=(surface, seed, folder, end), daemon=True)
                worker.start()
                end.close()
                pipe.recv()  # it is ready: imports and fits do not count
            pipe.send(number)
            try:
                if pipe.poll(seconds):
                    yield number, *pipe.recv()
                    continue
                yield number, HANG, f"no answer in {seconds} seconds"
            except EOFError:
                worker.join()
                yield number, CRASH, f"exit code {worker.exitcode}"
            worker.kill()
            worker = None
    finally:
        if worker is not None:
            worker.kill()


def _work(surface: str, seed: int, folder: Path, pipe: Connection) -> None:
    """Run the cases that are asked for, until the other end is gone."""
    module = import_module(SURFACES[surface])
    module.prepare()
    pipe.send("ready")
    try:
        while True:
            number = pipe.recv()
            # A folder of its own, and empty: what a case leaves behind must not change another.
            with tempfile.TemporaryDirectory(dir=folder) as own, contextlib.chdir(own):
                pipe.send(run_one(module, np.random.default_rng([seed, number]), Path(own)))
    except EOFError:
        return


def run_one(module: object, rng: np.random.Generator, folder: Path) -> tuple[str, str]:
    """Return the outcome of one case, and words about it."""
    from consilience.errors import ConsilienceError, ConsilienceWarning

    limit = _limit_memory()
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("error")
            warnings.simplefilter("always", ConsilienceWarning)
            # pyarrow before 21 warns of types that hold pickled code. It does not run it, and the type is refused.
            warnings.filterwarnings("ignore", ".*PyExtensionType")
            words = module.run(rng, folder)  # type: ignore[attr-defined]
        return _judge_length(RESULT, [words, *(str(warning.message) for warning in given)])
    except ConsilienceError as error:
        return _judge_length(OWN_ERROR, [str(error)])
    except Nonsense as error:
        return NONSENSE, f"{error}"
    except Exception:
        return FOREIGN, traceback.format_exc()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


def _judge_length(outcome: str, texts: list[str]) -> tuple[str, str]:
    """Return the outcome with the longest text, which must not be too long."""
    longest = max(texts, key=len)
    return (outcome if len(longest) <= LONGEST_MESSAGE else TOO_LONG), longest[:LONGEST_MESSAGE]


def _limit_memory() -> tuple[int, int]:
    """Limit the memory of this process, and return the limit that there was."""
    limit = resource.getrlimit(resource.RLIMIT_AS)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY, limit[1]))
    return limit
