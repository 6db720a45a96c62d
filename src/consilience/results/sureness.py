r"""How sure workers are who give probabilities, compared with how often they are right.

With q the calibrated posterior of an item and x the logarithms of a worker's probabilities, as for learned temperatures
(`consilience.inference.workers.temperatures`), the factor b of a worker is where softmax(b x) predicts q best,

.. math:: \sum_n \sum_k q_{nk} \log \operatorname{softmax}_k (b x_n)

Here the own vote is a part of q: what is expected of a calibrated posterior, given one vote, is how probable classes
are by this vote. Leaving it out would make all workers look too sure, since the others err too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import Column, to_column
from ..inference.workers.temperatures import LEAST, MOST, describe_temperature
from ..kernels import Floats

# Newton's steps, and what is added to the curvature.
STEPS, RIDGE = 25, 1e-3
# Probabilities below this count as this.
FLOOR = 1e-4
# Of many votes of all workers, about so many are looked at.
ENOUGH = 200_000


class Reliability(NamedTuple):
    """How sure a worker is of groups of votes, and how often these are right, as the posterior says."""

    confidence: Floats
    accuracy: Floats
    counts: Floats


def measure_sureness(r: Answers, posterior: Floats) -> Floats:
    """The factor of each worker, (M,): below 1 for one who is too sure; NaN without votes."""
    stride = max(1, r.n_responses // ENOUGH)
    some = np.arange(0, r.n_responses, stride)
    votes = np.log(np.maximum(r.class_votes(some).astype(np.float64), FLOOR))
    votes -= votes.mean(axis=1, keepdims=True)
    worker, target = r.worker[some], posterior[r.items_of(some)]
    n_votes = np.bincount(worker, minlength=r.n_workers)
    factor = np.ones(r.n_workers)
    for _ in range(STEPS):
        odds = np.exp(factor[worker, None] * (votes - votes.max(axis=1, keepdims=True)))
        said = odds / odds.sum(axis=1, keepdims=True)
        mean = np.einsum("nk,nk->n", said, votes)
        slope = np.bincount(worker, np.einsum("nk,nk->n", target - said, votes), r.n_workers)
        spread = np.bincount(worker, np.einsum("nk,nk->n", said, (votes - mean[:, None]) ** 2), r.n_workers)
        factor = np.clip(factor + 0.7 * slope / (spread + RIDGE), LEAST, MOST)
    return np.where(n_votes > 0, factor, np.nan)


def list_sureness(r: Answers, posterior: Floats) -> dict[str, Column]:
    """Columns of the worker report: the factor, and what it means."""
    factor = measure_sureness(r, posterior)
    words = ["" if np.isnan(each) else describe_temperature(each) for each in factor.tolist()]
    return {"temperature": to_column(factor), "sureness": to_column(words)}


def find_reliability(r: Answers, posterior: Floats, worker: int, n_groups: int = 5) -> Reliability:
    """How often a worker is right by the posterior, by groups of votes of about the same size."""
    assert r.soft is not None
    votes = np.flatnonzero((r.worker == worker) & (r.class_of_label[r.label] >= 0))
    confidence = r.soft[votes].max(axis=1).astype(np.float64)
    right = posterior[r.items_of(votes), r.class_of_label[r.label[votes]]]
    ends = np.unique(np.quantile(confidence, np.linspace(0, 1, n_groups + 1)[1:-1])) if len(votes) else np.empty(0)
    if len(ends) and confidence.min() < ends[-1] == confidence.max():  # many are as sure as can be: others are apart
        ends = np.unique(np.append(ends[:-1], confidence[confidence < ends[-1]].max()))
    group = np.searchsorted(ends, confidence, side="left")
    counts = np.bincount(group, minlength=len(ends) + 1).astype(np.float64)
    met = counts > 0
    claimed, found = (np.bincount(group, each, len(ends) + 1)[met] / counts[met] for each in (confidence, right))
    return Reliability(claimed, found, counts[met])
