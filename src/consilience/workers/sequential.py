"""Sequential workers: the answer depends on the truth, and on what the same worker said just before.

Worker m answers l when the truth is k and its own answer at the previous position was l' with probability
Gamma_m[l', k, l]. That is the plain confusion matrix of a pseudo-worker (m, l'), so that rows, evidence and counts are
those of confusion workers with M (L + 1) pseudo-workers; l' = L stands for "none" (at the first position, or no
answer there). Where a pseudo-worker has few answers it falls back on its worker's plain matrix: the pseudo-counts of
(m, l') are those of the settings and `BACK_OFF` answers per class in the proportions of that matrix. As that prior
moves with the fit, the objective is a guide here, no bound: it may fall by a little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.responses import Responses
from ..distributions import Estimate, estimate
from ..kernels.types import Floats
from .confusion import ConfusionWorkers

# How many answers per class the worker's plain matrix counts for.
BACK_OFF = 2.0


@dataclass(frozen=True)
class SequentialWorkers(ConfusionWorkers):
    """One confusion matrix per worker and previous answer, with back-off to the worker's plain matrix."""

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self.n_workers * (self.n_labels + 1) * self.n_labels

    def encode(self, responses: Responses) -> NDArray[np.signedinteger[Any]]:
        """Return the row of each answer."""
        pseudo = responses.worker.astype(np.int64) * (self.n_labels + 1) + previous_answers(responses)
        return pseudo * self.n_labels + responses.label

    def votes(self) -> Floats:
        """Return which class each row votes for."""
        return np.repeat(super().votes().reshape(self.n_workers, -1), self.n_labels + 1, axis=0).reshape(
            self.n_rows, self.n_classes
        )

    def update(self, counts: Floats, mass: Floats) -> Estimate:  # noqa: ARG002
        """Return the matrices (M (L + 1), L, K) that expected counts call for."""
        own = estimate(self.plain_counts(counts), self.smoothing, self.estimation).mean
        smoothing = np.repeat(self.smoothing + BACK_OFF * own, self.n_labels + 1, axis=0)
        return estimate(counts.reshape(-1, self.n_labels, self.n_classes), smoothing, self.estimation)

    def given(self, confusion: Floats) -> Estimate:
        """Return known plain matrices (M, K, L), the same whatever was said before."""
        known = super().given(confusion)
        weights, log_weights, mean = (np.repeat(part, self.n_labels + 1, axis=0) for part in known[:3])
        return Estimate(weights, log_weights, mean, 0.0)

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return the matrices of a fitted crowd for these workers and labels, by previous answer."""
        n_before = known.shape[1] + 1
        own = known.reshape(-1, n_before, *known.shape[1:])
        everyone = np.concatenate([own, np.repeat(crowd, n_before, axis=0)[None]])[worker]
        before = np.append(label, n_before - 1)
        chosen = everyone[:, before][:, :, label]
        return np.ascontiguousarray(chosen.reshape(-1, len(label), known.shape[2]))

    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts (M, L, K) whatever was said before."""
        shape = (self.n_workers, self.n_labels + 1, self.n_labels, self.n_classes)
        return np.asarray(counts.reshape(shape).sum(axis=1))

    def plain_mean(self, found: Estimate, counts: Floats) -> Floats:  # noqa: ARG002
        """Return the marginal confusion matrices (M, L, K)."""
        return estimate(self.plain_counts(counts), self.smoothing, "em").mean


def previous_answers(responses: Responses) -> NDArray[np.int64]:
    """Return, for each answer, what its worker said at the previous position of the sequence, or L if nothing.

    Of a previous answer that was spread over several labels the last counts.
    """
    from ..kernels.layout import order_by

    previous = np.full(responses.n_responses, responses.n_labels, np.int64)
    if responses.sequences is None:
        return previous
    item = responses.item_of_answer()
    order, _ = order_by(responses.worker, responses.n_workers)
    worker, at, label = responses.worker[order], item[order], responses.label[order].astype(np.int64)
    # The last answer to an earlier item of the same worker: one back, or further where an answer is spread.
    first_of_item = np.ones(len(order), bool)
    first_of_item[1:] = (worker[1:] != worker[:-1]) | (at[1:] != at[:-1])
    begin = np.maximum.accumulate(np.where(first_of_item, np.arange(len(order)), 0))
    before = begin - 1
    owner = responses.sequences.of_items()
    linked = (before >= 0) & (worker[before] == worker) & (at[before] == at - 1) & (owner[at[before]] == owner[at])
    previous[order] = np.where(linked, label[before], responses.n_labels)
    return previous
