"""Fit the model named on the command line, twice, in a process that has fitted nothing before.

Prints the seconds of the first fit, of the processor and by the clock, and those of a fit with another number of
classes. Run it with $NUMBA_CACHE_DIR at an empty folder to see what compiling costs; see `first_use`.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import consilience as cs

warnings.simplefilter("ignore")
name = sys.argv[1]
rng = np.random.default_rng(0)
graph = cs.Graph.grid((20, 20)) if name == "MarkovField" else None
crowds = []
for n_classes in (4, 6):
    truth = np.repeat(rng.integers(0, n_classes, 40), 10)[:, None]
    answers = np.where(rng.random((400, 6)) < 0.7, truth, rng.integers(0, n_classes, (400, 6)))
    crowds.append(cs.Answers.from_matrix(answers, lengths=[20] * 20 if name == "HiddenMarkov" else None))
for responses in crowds:
    times = time.process_time(), time.perf_counter()
    getattr(cs, name)().fit(responses, graph=graph)
    print(time.process_time() - times[0], time.perf_counter() - times[1])
