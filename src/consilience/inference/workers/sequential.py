"""Sequential workers: the answer depends on the truth, and on what the same worker said just before.

Worker m answers l when the truth is k and its own answer at the previous position was l' with probability
Gamma_m[l', k, l]. That is the plain confusion matrix of a pseudo-worker (m, l'), so that rows, evidence and counts are
those of confusion workers with M (L + 1) pseudo-workers; l' = L stands for "none" (at the first position, or no
answer there). Where a pseudo-worker has few answers it falls back on its worker's plain matrix: the pseudo-counts of
(m, l') are those of plain matrices and `BACK_OFF` answers per class in the proportions of that matrix. As that prior
moves with the fit, the objective is a guide here, no bound: it may fall by a little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.columns import Column, Values, to_column
from ...kernels import Floats, Integers
from .. import Distributions, fit_distributions
from .base import Axes, WorkerModel, count_groups
from .priors import Prior, improve_pair
from .rows import Counted

# How many answers per class the worker's plain matrix counts for.
BACK_OFF = 2.0


class SequentialWorkers(WorkerModel):
    """One confusion matrix per worker and previous answer, with back-off to the worker's plain matrix."""

    name: ClassVar[str] = "sequential"
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {
        "log_weights": "MP L K: log weights",
        "further": {"sequential_confusion_": "M P K L: distributions", "_sequential_counts": "M P L K: counts"},
    }

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_workers * (self.n_labels + 1) * self.n_labels

    def describe_size(self) -> str:
        """Return in words what makes a table large."""
        return super().describe_size().replace(" x ", f" x {self.n_labels + 1:,} previous answers x ", 1)

    def encode(self, responses: Answers) -> Integers:
        """Return the row of each answer."""
        pseudo = responses.worker.astype(np.int64) * (self.n_labels + 1) + previous_answers(responses)
        return pseudo * self.n_labels + responses.label

    def learn_prior(self, counts: Floats, mass: Floats, prior: Prior, before: Distributions | None = None) -> Prior:
        """Return a prior under which the counts by previous answer are likelier, the plain matrices held."""
        fixed = BACK_OFF * self._plain_repeated(counts, prior)
        return improve_pair(prior, counts.reshape(-1, self.n_labels, self.n_classes), fixed)

    def update(self, counts: Floats, mass: Floats, prior: Prior, before: Distributions | None = None) -> Distributions:
        """Return the matrices (M (L + 1), L, K) that expected counts call for."""
        by_previous = counts.reshape(-1, self.n_labels, self.n_classes)
        return fit_distributions(by_previous, self._backed(counts, prior), prior.estimation)

    def _backed(self, counts: Floats, prior: Prior) -> Floats:
        """Return pseudo-counts by previous answer, which the plain matrices are a part of."""
        smoothing = prior.smoothing
        if len(smoothing) > 1:
            smoothing = np.repeat(smoothing, self.n_labels + 1, axis=0)
        return smoothing + BACK_OFF * self._plain_repeated(counts, prior)

    def _plain_repeated(self, counts: Floats, prior: Prior) -> Floats:
        """Return each worker's plain matrix once for every previous answer, (M (L + 1), L, K)."""
        own = fit_distributions(self.plain_counts(counts), prior.smoothing, prior.estimation).mean
        return np.repeat(own, self.n_labels + 1, axis=0)

    def embed_counts(
        self, counts: Floats, further: Mapping[str, Floats], worker: NDArray[np.int64], axes: Axes
    ) -> Floats:
        """Return expected counts of rows from those by previous answer, of a fit to fewer workers and labels."""
        embedded = np.zeros((self.n_workers, self.n_labels + 1, self.n_labels, self.n_classes))
        embedded[np.ix_(worker, np.append(axes[0], self.n_labels), *axes)] = further["_sequential_counts"]
        return embedded.reshape(-1, self.n_classes)

    def counted(self, counts: Floats, mass: Floats, prior: Prior) -> Counted:
        """Return the counts by previous answer. What a plain matrix lends to them is taken as it is."""
        return count_groups(counts.reshape(-1, self.n_labels, self.n_classes) + self._backed(counts, prior))

    def given(self, confusion: Floats) -> Distributions:
        """Return known plain matrices (M, K, L), the same whatever was said before."""
        known = super().given(confusion)
        weights, log_weights, mean = (np.repeat(part, self.n_labels + 1, axis=0) for part in known[:3])
        return Distributions(weights, log_weights, mean, 0.0)

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

    def plain_mean(self, found: Distributions, counts: Floats, prior: Prior) -> Floats:
        """Return the marginal confusion matrices (M, L, K)."""
        return fit_distributions(self.plain_counts(counts), prior.smoothing, "em").mean

    def further_arrays(self, found: Distributions, counts: Floats) -> dict[str, Floats]:
        """Return the matrices and the expected counts by previous answer, which comes last for none."""
        shape = (self.n_workers, self.n_labels + 1, self.n_labels, self.n_classes)
        by_previous = np.ascontiguousarray(found.mean.reshape(shape).transpose(0, 1, 3, 2))
        return {"sequential_confusion_": by_previous, "_sequential_counts": counts.reshape(shape)}

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:
        """Return the matrices by previous answer as (M (L + 1), L, K)."""
        by_previous = further["sequential_confusion_"].transpose(0, 1, 3, 2)
        return np.ascontiguousarray(by_previous.reshape(-1, *by_previous.shape[2:]))

    @classmethod
    def further_columns(cls, further: Mapping[str, Floats], labels: Values, classes: Values) -> dict[str, Column]:
        """Return how far a worker's answers depend on their own previous one."""
        return describe_dependence(further["_sequential_counts"], further["sequential_confusion_"], labels, classes)


def previous_answers(responses: Answers) -> NDArray[np.int64]:
    """Return, for each answer, what its worker said at the previous position of the sequence, or L if nothing.

    Of a previous answer that was spread over several labels the last counts.
    """
    from ...kernels.columns import order_by

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


def describe_dependence(counts: Floats, confusion: Floats, labels: Values, classes: Values) -> dict[str, Column]:
    """Return columns that say how far a worker's answers depend on its own previous one.

    Parameters
    ----------
    counts : array (M, L + 1, L, K)
        Expected number of times worker m said l when the truth was k, by its previous answer (the last: none).
    confusion : array (M, L + 1, K, L)
        Confusion matrices by previous answer.
    labels, classes : ndarray
        Their names.

    Returns
    -------
    dict
        dependence: half the mean absolute difference between the row that was at work and the worker's plain one
        (0: the previous answer does not matter; 1: it decides); strongest_pull: where it matters most, in words.
    """
    met = counts.sum(axis=2)  # (M, L + 1, K)
    plain = np.einsum("mpk,mpkl->mkl", met, confusion)
    plain /= np.maximum(plain.sum(axis=2, keepdims=True), 1e-300)
    apart = 0.5 * np.abs(confusion - plain[:, None]).sum(axis=3)
    total = np.maximum(met.sum(axis=(1, 2)), 1e-300)
    pull = (met * apart)[:, :-1]  # without "none": that is no answer
    words = []
    for m, cell in enumerate(pull.reshape(len(pull), -1).argmax(axis=1)):
        before, k = divmod(int(cell), counts.shape[3])
        label = int((confusion[m, before, k] - plain[m, k]).argmax())
        share = confusion[m, before, k, label]
        said = f"says {labels[label]} for {classes[k]} after {labels[before]} ({share:.0%})"
        words.append(said if pull[m, before, k] >= 0.5 else "")
    dependence = np.sum(met * apart, axis=(1, 2)) / total
    return {"dependence": to_column(np.asarray(dependence)), "strongest_pull": to_column(words)}
