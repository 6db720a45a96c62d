"""Running experiments: jobs in their order, what is known already taken from the cache."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

from ..errors import ConsilienceWarning
from .cache import Cache
from .experiment import Experiment, Job, Record


class Step(NamedTuple):
    """What a callback is told before each job, and after the last."""

    experiment: str
    done: int
    total: int
    job: Job | None


class Run(NamedTuple):
    """The records of an experiment, how long the jobs took, and how many had not to be run."""

    records: list[Record]
    seconds: float
    n_jobs: int
    n_known: int


def run(
    experiment: Experiment, *, quick: bool = False, cache: Cache, callback: Callable[[Step], object] | None = None
) -> Run:
    """Run the jobs of an experiment.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    quick : bool
        Only its quick jobs. Their records are the same as in a full run.
    cache : Cache
        Where results are remembered.
    callback : callable, optional
        Told each `Step`.
    """
    jobs, records, n_known, begin = experiment.choose(quick), [], 0, time.perf_counter()
    for done, job in enumerate(jobs):
        if callback is not None:
            callback(Step(experiment.name, done, len(jobs), job))
        found = cache.get(job)
        if found is None:
            with warnings.catch_warnings():
                # The paper's settings are run as they are, where the library would advise others.
                warnings.simplefilter("ignore", ConsilienceWarning)
                found = job.run(**job.settings)
            cache.put(job, found)
        else:
            n_known += 1
        records += found
    if callback is not None:
        callback(Step(experiment.name, len(jobs), len(jobs), None))
    return Run(records, time.perf_counter() - begin, len(jobs), n_known)
