"""Sequential workers: the answer depends on the truth, and on what the same worker said just before.

Worker m answers l when the truth is k and its own answer at the previous position was l' with probability
Gamma_m[l', k, l]: the previous answer is the context, and l' = L stands for "none" (at the first position, or no
answer there). Where few answers were given in a context, its matrix falls back on the worker's plain one: its
pseudo-counts are those of plain matrices, and `BACK_OFF` answers per class in the proportions of the plain matrix. As
that prior moves with the fit, the objective is approximate here, no bound: it may fall by a little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.columns import Column, Values, order_by, to_column
from ...kernels import NEARLY_ZERO, Floats
from ..distributions import Distributions, fit_distributions
from .base import Prior, WorkerModel, improve_pair
from .rows import Counted, CountedRows

# How many answers per class the worker's plain matrix counts for.
BACK_OFF = 2.0


class SequentialWorkers(WorkerModel):
    """One confusion matrix per worker and previous answer, with back-off to the worker's plain matrix."""

    name: ClassVar[str] = "sequential"
    context: ClassVar[str] = "sequential"
    follows_answers: ClassVar[bool] = True
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {
        "log_weights": "MP L K: log weights",
        "further": {"sequential_confusion_": "M P K L: probabilities", "_sequential_counts": "M P L K: counts"},
    }

    def find_contexts(self, responses: Answers) -> NDArray[np.int64]:
        """The previous answer of the worker of each answer."""
        return previous_answers(responses)

    def learn_prior(self, counts: Floats, prior: Prior) -> Prior:
        """A prior under which the counts by previous answer are likelier, the plain matrices held."""
        return improve_pair(prior, self.by_matrix(counts), BACK_OFF * self._plain_repeated(counts, prior))

    def update(self, counts: Floats, prior: Prior) -> Distributions:
        """The matrices (M (L + 1), L, K) that expected counts call for."""
        return fit_distributions(self.by_matrix(counts), self._backed(counts, prior), prior.estimation)

    def counted(self, counts: Floats, prior: Prior) -> Counted:
        """The counts by previous answer. What a plain matrix lends to them is taken as it is."""
        total = self.by_matrix(counts) + self._backed(counts, prior)
        return CountedRows(total, total.sum(axis=1))

    def _backed(self, counts: Floats, prior: Prior) -> Floats:
        """Pseudo-counts by previous answer, which the plain matrices are a part of."""
        smoothing = prior.smoothing
        if len(smoothing) > 1:
            smoothing = np.repeat(smoothing, self.n_contexts, axis=0)
        return smoothing + BACK_OFF * self._plain_repeated(counts, prior)

    def _plain_repeated(self, counts: Floats, prior: Prior) -> Floats:
        """Each worker's plain matrix once for every previous answer, (M (L + 1), L, K)."""
        own = fit_distributions(self.plain_counts(counts), prior.smoothing, prior.estimation).mean
        return np.repeat(own, self.n_contexts, axis=0)

    @classmethod
    def further_columns(cls, further: Mapping[str, Floats], labels: Values, classes: Values) -> dict[str, Column]:
        """How far a worker's answers depend on their own previous one.

        That is half the mean absolute difference between the row that was at work and the worker's plain one: 0 if the
        previous answer does not matter, 1 if it decides.
        """
        confusion, met = further["sequential_confusion_"], further["_sequential_counts"].sum(axis=2)  # (M, L + 1, K)
        plain = np.einsum("mpk,mpkl->mkl", met, confusion)
        plain /= np.maximum(plain.sum(axis=2, keepdims=True), NEARLY_ZERO)
        apart = 0.5 * np.abs(confusion - plain[:, None]).sum(axis=3)
        dependence = np.sum(met * apart, axis=(1, 2)) / np.maximum(met.sum(axis=(1, 2)), NEARLY_ZERO)
        return {"dependence": to_column(np.asarray(dependence))}


def previous_answers(responses: Answers) -> NDArray[np.int64]:
    """Return, for each answer, what its worker said at the previous position of the sequence, or L if nothing.

    Of a previous answer that was spread over several labels the last counts.
    """
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
