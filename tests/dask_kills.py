"""Kill workers of a Dask cluster at random moments of a fit, and compare the results with those of threads.

    python tests/dask_kills.py --kills 20

prints one line for each kill: when it was, how long the fit took, and whether the result has the same bits. The exit
code is 1 if one has not, or took longer than three times the undisturbed fit and ten seconds.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import distributed
import numpy as np

import consilience as cs
from consilience.answers import answers as blocks

BLOCK_SIZE = 10_000
N_ITERATIONS = 40


class Outcome(NamedTuple):
    """What became of one fit."""

    iteration: int
    seconds: float
    allowed: float
    same_bits: bool

    @property
    def good(self) -> bool:
        return self.same_bits and self.seconds <= self.allowed


@contextmanager
def cluster_of(n_workers: int, restart: bool = True) -> Iterator[distributed.Client]:
    """Give the client of a cluster on this machine whose workers are started again when they die, or are not."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
            reconnect=restart,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kill_worker(client: distributed.Client, rng: random.Random) -> None:
    """Kill the process of one worker, as the kernel does where memory runs out."""
    processes = [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid is not None]
    os.kill(rng.choice(processes), signal.SIGKILL)


def fit(responses: cs.Answers, engine: Any = None, callback: Callable[[Any], object] | None = None) -> cs.DawidSkene:
    """Fit a model of which every iteration sends work to the cluster."""
    model = cs.DawidSkene(calibration="none", tol=0, max_iter=N_ITERATIONS, callback=callback)
    return model.fit(responses, engine=engine)


def bits_of(model: cs.DawidSkene) -> list[bytes]:
    return [np.asarray(part).tobytes() for part in (model.posterior_, model.confusion_, model.prior_, model.trace_)]


def make_crowd() -> cs.Answers:
    """Return a crowd of a dozen blocks, if blocks have the size named in this file."""
    return cs.simulate.independent(20_000, n_workers=100, n_classes=4, answers_per_item=5, seed=3).responses


def fit_undisturbed(crowd: cs.Answers) -> float:
    """Return how many seconds a fit takes if no worker dies."""
    with cluster_of(2) as client:
        fit(crowd, client)  # workers load what they need
        begun = time.monotonic()
        fit(crowd, client)
        return time.monotonic() - begun


def kill_during_fit(crowd: cs.Answers, expected: list[bytes], undisturbed: float, restart: bool, seed: int) -> Outcome:
    """Fit a crowd on a cluster of two, of which one is killed at a random moment."""
    rng = random.Random(seed)
    iteration, delay = rng.randrange(N_ITERATIONS), rng.uniform(0, undisturbed / N_ITERATIONS)
    with cluster_of(2, restart) as client:
        killer = threading.Timer(delay, kill_worker, (client, rng))
        begun = time.monotonic()
        if iteration == 0:
            killer.start()
        model = fit(crowd, client, lambda progress: killer.start() if progress.iteration == iteration else None)
        seconds = time.monotonic() - begun
        killer.join()
    return Outcome(iteration, seconds, 3 * undisturbed + 10, bits_of(model) == expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-restart", action="store_true", help="workers that die are not started again")
    options = parser.parse_args()
    blocks.BLOCK_SIZE = BLOCK_SIZE
    crowd = make_crowd()
    expected, undisturbed = bits_of(fit(crowd)), fit_undisturbed(crowd)
    print(f"undisturbed {undisturbed:.1f} s, allowed {3 * undisturbed + 10:.1f} s")
    n_bad = 0
    for seed in range(options.seed, options.seed + options.kills):
        outcome = kill_during_fit(crowd, expected, undisturbed, not options.no_restart, seed)
        n_bad += not outcome.good
        print(
            f"seed {seed:3}: killed after iteration {outcome.iteration:2}, done after {outcome.seconds:4.1f} s, "
            f"{'same bits' if outcome.same_bits else 'OTHER BITS'}",
            flush=True,
        )
    print(f"{options.kills} kills, {n_bad} of them with other bits or too slow")
    return min(n_bad, 1)


if __name__ == "__main__":
    sys.exit(main())
