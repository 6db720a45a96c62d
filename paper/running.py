"""Running jobs in order. What the cache knows is not run again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from consilience.errors import ConsilienceWarning

from .cache import Cache
from .experiment import Job, Record


class Step(NamedTuple):
    """What a callback is told before each job, and once more after the last, when `job` is None."""

    done: int
    total: int
    job: Job | None


class Run(NamedTuple):
    """The records of an experiment, how long it took, and how many jobs the cache knew."""

    records: list[Record]
    seconds: float
    n_jobs: int
    n_known: int


def run(jobs: Sequence[Job], cache: Cache, callback: Callable[[Step], object] | None = None) -> Run:
    """Run jobs in their order.

    Parameters
    ----------
    jobs : sequence of Job
        All jobs of an experiment, or some of them.
    cache : Cache
        Where records are kept.
    callback : callable, optional
        Called with each `Step`.
    """
    records: list[Record] = []
    n_known, begin = 0, time.perf_counter()
    for done, job in enumerate(jobs):
        if callback is not None:
            callback(Step(done, len(jobs), job))
        found = cache.get(job)
        if found is None:
            with warnings.catch_warnings():
                # The paper's settings are run as they are, even where the library would advise against them.
                warnings.simplefilter("ignore", ConsilienceWarning)
                found = job.run(**job.settings)
            cache.put(job, found)
        else:
            n_known += 1
        records += found
    if callback is not None:
        callback(Step(len(jobs), len(jobs), None))
    return Run(records, time.perf_counter() - begin, len(jobs), n_known)
