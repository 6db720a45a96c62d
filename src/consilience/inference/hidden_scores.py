"""How well hidden answers are predicted by a fit to the others, also with one coupling of neighbours or another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.responses import Responses
from ..errors import ParameterError
from ..kernels.types import Floats
from ..specs import Figure
from .cells import Cells

# Answers per class that the crowd's matrix is worth when a worker's own is judged.
SHRINKAGE = 20.0


class HeldOutScore(NamedTuple):
    """How well hidden answers were predicted. Scores of two models on the same hidden answers can be compared."""

    score: float  # mean log probability of a hidden answer
    error: float  # its standard error
    n_answers: int
    totals: Floats  # log probability of each hidden unit: an answer, or a worker's answers in one sequence
    sizes: NDArray[np.int64]  # answers in each unit
    hidden: NDArray[np.int64]  # which answers were hidden

    def minus(self, other: HeldOutScore) -> tuple[float, float]:
        """Return the difference of two scores, and the standard error of the paired difference."""
        if not np.array_equal(self.hidden, other.hidden):
            raise ParameterError("The two scores are not of the same hidden answers: use the same fraction and seed.")
        return mean_and_error(self.totals - other.totals, self.sizes)

    def plus(self, other: HeldOutScore) -> HeldOutScore:
        """Return the score of the hidden answers of both, as of two folds."""
        totals, sizes = np.concatenate([self.totals, other.totals]), np.concatenate([self.sizes, other.sizes])
        score, error = mean_and_error(totals, sizes)
        hidden = np.concatenate([self.hidden, other.hidden])
        return HeldOutScore(score, error, self.n_answers + other.n_answers, totals, sizes, hidden)


def score_hidden(
    r: Responses, hidden: NDArray[np.bool_], unit: NDArray[np.int64], posterior: Floats, counts: Floats | Cells
) -> HeldOutScore:
    """Score hidden answers by the posterior and the expected counts (M, L, K) of a fit to the others."""
    item, worker, label = r.item_of_answer()[hidden], r.worker[hidden], r.label[hidden]
    probability = np.einsum("ik,ik->i", posterior[item], shrink_rows(counts, worker, label))
    logs = np.log(np.maximum(probability, 1e-300))
    if r.weight is not None:
        logs = logs * r.weight[hidden]
    totals = np.bincount(unit, weights=logs).astype(np.float64)
    sizes = np.bincount(unit)
    score, error = mean_and_error(totals, sizes)
    return HeldOutScore(score, error, int(hidden.sum()), totals, sizes, np.flatnonzero(hidden))


def shrink_rows(counts: Floats | Cells, worker: NDArray[Any], label: NDArray[Any]) -> Floats:
    """Return the probabilities (n, K) of answers from expected counts (M, L, K) of all.

    Each worker's matrix is shrunk towards the crowd's, which is worth `SHRINKAGE` answers per class.
    """
    n_labels = counts.shape[1]
    if isinstance(counts, Cells):
        own = counts.sum_rows(counts.worker * n_labels + counts.label, worker.astype(np.int64) * n_labels + label)
        total = counts.sum_rows(counts.worker, worker)
        everything = np.bincount(counts.klass, counts.count, minlength=counts.shape[2])
        crowd = (counts.sum_rows(counts.label, label) + 1.0 / n_labels) / (everything + 1.0)
    else:
        own, total = counts[worker, label], counts.sum(axis=1)[worker]
        pooled = counts.sum(axis=0) + 1.0 / n_labels
        crowd = (pooled / pooled.sum(axis=0))[label]
    return np.asarray((own + SHRINKAGE * crowd) / (total + SHRINKAGE))


def mean_and_error(totals: Floats, sizes: NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean per answer, and its standard error over units."""
    n = sizes.sum()
    mean = float(totals.sum() / n)
    if len(totals) < 2:
        return mean, float("inf")
    spread = np.sum((totals - mean * sizes) ** 2) * len(totals) / (len(totals) - 1)
    return mean, float(np.sqrt(spread) / n)


class CouplingScore(NamedTuple):
    """How well hidden answers were predicted with one coupling."""

    coupling: float
    score: Figure  # mean log probability
    error: Figure  # its standard error


def explain_choice(chosen: float, scores: list[CouplingScore], words: str, note: str = "", unit: float = 1.0) -> str:
    """Say in words which coupling was chosen, and why; all couplings times a unit, which a note may explain."""
    best = max(scores, key=lambda entry: entry.score)
    tried = ", ".join(f"{entry.coupling * unit:.3g}: {entry.score:.4f}" for entry in scores)
    return (
        f"Coupling {chosen * unit:.3g}{note}: {words}. Hidden answers were predicted best at "
        f"{best.coupling * unit:.3g} (mean log probability by coupling: {tried}); "
        "the smallest coupling within one standard error was taken."
    )
