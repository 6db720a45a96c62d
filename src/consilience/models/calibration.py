r"""Probabilities one can bet on: posteriors are raised to a power, which is chosen by what they predict.

All models assume that workers err independently of each other. Where they do not, posteriors are too sure of
themselves. So a posterior q is reported as

    q_nk^t / sum_j q_nj^t

with one power t for all items. t = 1 changes nothing; the nearer it is to 0, the closer probabilities are to 1 / K. It
is chosen by hidden answers: some answers are hidden, the model is fitted to the others, and t is where the answers that
were hidden are predicted best,

    sum over hidden answers of log sum_k q_nk^t / Z_n Gamma_m[k, l]

Where labels are known (`gold`), their own probability is what t is chosen by, each item being judged as if its label
were not known. Both together: the logarithm of t has a normal prior around the choice of hidden answers, with a standard
deviation of 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.responses import Responses
from ..kernels.types import Floats

POWERS = np.geomspace(0.01, 1.0, 33)
# Answers to hide in all, if there are so many: in folds of a tenth of all answers.
ENOUGH_HIDDEN, HIDDEN, MOST_FOLDS = 30_000, 0.1, 10


class Calibration(NamedTuple):
    """The power that posteriors were raised to, and how it was found."""

    power: float
    source: str  # "hidden answers", "gold", "hidden answers and gold", "given", or why there was none
    n_hidden: int = 0
    n_gold: int = 0


def raise_to(posterior: Floats, power: float) -> Floats:
    """Return the posteriors raised to a power, normalised. What is certain stays so.

    >>> raise_to(np.array([[0.8, 0.2], [1.0, 0.0]]), 0.5).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0]]
    """
    if power == 1.0:
        return posterior
    raised = (posterior / posterior.max(axis=1, keepdims=True)) ** power
    raised[posterior <= 0] = 0.0
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def choose_folds(n_units: int) -> tuple[float, int]:
    """Return the share of answers to hide at a time, and how often."""
    share = min(HIDDEN, ENOUGH_HIDDEN / max(n_units, 1))
    n_hidden = max(1, round(share * n_units))
    return share, int(np.clip(-(-ENOUGH_HIDDEN // n_hidden), 1, MOST_FOLDS))


def score_powers(r: Responses, hidden: NDArray[np.bool_], posterior: Floats, confusion: Floats) -> Floats:
    """Return the log probability of each hidden answer at each of `POWERS`, (n_hidden, n_powers).

    `posterior` (N, K) and `confusion` (M, L, K) are of a fit to the other answers.
    """
    item, worker, label = r.item_of_answer()[hidden], r.worker[hidden], r.label[hidden]
    chances = confusion[worker, label]
    weight = np.ones(len(item)) if r.weight is None else r.weight[hidden]
    scores = np.empty((len(item), len(POWERS)))
    for place, power in enumerate(POWERS):
        probability = np.einsum("ik,ik->i", raise_to(posterior[item], power), chances)
        scores[:, place] = weight * np.log(np.maximum(probability, 1e-300))
    return scores


def choose_power(scores: Floats) -> float:
    """Return the smallest power whose score is within one standard error, paired over answers, of the best one's.

    The smallest: errors that workers share are predicted as if they were the truth, so that hidden answers call for too
    large a power rather than for too small a one.
    """
    totals = scores.sum(axis=0)
    lead = scores[:, [int(totals.argmax())]] - scores
    error = lead.std(axis=0) * np.sqrt(len(scores))
    return float(POWERS[(lead.sum(axis=0) <= error).argmax()])


def score_gold(gold: NDArray[np.int64], posterior: Floats) -> Floats:
    """Return the log probability of known classes at each of `POWERS`, by posteriors (n, K) that did not know them."""
    rows = np.arange(len(gold))
    return np.array([np.log(np.maximum(raise_to(posterior, t)[rows, gold], 1e-12)).sum() for t in POWERS])


def near(power: float) -> Floats:
    """Return the log density of each of `POWERS`: normal in the logarithm, around a power."""
    return np.asarray(-0.5 * (np.log(POWERS) - np.log(power)) ** 2)
