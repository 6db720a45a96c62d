"""One-coin workers: worker m is right with probability a_m, whatever the truth, and errs evenly.

Worker m answers l when the truth is k with probability

    a_m                   if l names k
    (1 - a_m) / (L - 1)   if it does not: all labels that do not name k, "unsure" among them, are equally likely
    1 / L                 if no label names k, so that nobody can be right

One number per worker is learned from all answers, by the expected numbers of right and of wrong ones among those about
classes that can be named. The prior is that of one row of a confusion matrix, on average over these classes. Workers
with few answers are known better than by a confusion matrix; that somebody confuses two classes is not seen.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...kernels import Floats, freeze
from .. import Distributions, fit_distributions
from .base import Prior, WorkerModel, improve_pair, names_class
from .rows import Counted, CountedCoins


class OneCoinWorkers(WorkerModel):
    """One accuracy per worker, with errors spread evenly. Rows are those of confusion workers."""

    name: ClassVar[str] = "one-coin"

    @cached_property
    def names(self) -> NDArray[np.bool_]:
        """Whether each label names each class, (L, K)."""
        return names_class(self.class_of_label, self.n_classes)

    @cached_property
    def can_err(self) -> NDArray[np.bool_]:
        """About which classes there are right and wrong answers, (K,)."""
        return np.asarray(self.names.any(axis=0) & (self.n_labels > 1))

    def shape_smoothing(self, smoothing: Floats, unvoted: Floats) -> Floats:
        """Pseudo-counts (1 or M, 2, 1) of right and wrong answers."""
        n_classes = int(self.can_err.sum())
        # Where nobody can err there is nothing to learn, and any prior will do.
        return self._count_coins(smoothing) / n_classes if n_classes else np.ones((1, 2, 1))

    def learn_prior(self, counts: Floats, prior: Prior) -> Prior:
        """A prior under which the numbers of right and wrong answers are likelier."""
        return improve_pair(prior, self._count_coins(self.plain_counts(counts)))

    def update(self, counts: Floats, prior: Prior) -> Distributions:
        """The matrices (M, L, K) of the accuracies that expected counts call for."""
        coins = fit_distributions(self._count_coins(self.plain_counts(counts)), prior.smoothing, prior.estimation)
        right, wrong = coins.log_weights[:, :1], coins.log_weights[:, 1:]
        even = -np.log(max(self.n_labels - 1, 1))
        alone = np.where(self.names.any(axis=0), 0.0, -np.log(self.n_labels))
        logs = np.where(self.can_err, np.where(self.names, right, wrong + even), alone)
        return Distributions(freeze(logs), self._spread(coins.mean[:, :1]), coins.bound)

    def counted(self, counts: Floats, prior: Prior) -> Counted:
        """The numbers of right and wrong answers."""
        coins = self._count_coins(self.plain_counts(counts)) + prior.smoothing
        return CountedCoins(coins[:, :, 0], self.names.astype(np.float64), self.can_err.astype(np.float64))

    def given(self, confusion: Floats) -> Distributions:
        """The matrices with the mean accuracy of known ones (M, K, L)."""
        accuracy = self._count_coins(confusion.transpose(0, 2, 1))[:, :1] / max(self.can_err.sum(), 1)
        return Distributions.known(self._spread(accuracy))

    def crowd(self, counts: Floats, prior: Prior) -> Floats:
        """How the workers answer on the whole, (1, L, K)."""
        total = self._count_coins(self.plain_counts(counts)).sum(axis=0, keepdims=True)
        return self._spread(fit_distributions(total, prior.smoothing.mean(axis=0, keepdims=True), "em").mean[:, :1])

    def _count_coins(self, counts: Floats) -> Floats:
        """How many of counts (M, L, K) are right and how many wrong, as (M, 2, 1)."""
        parts = [np.where(which & self.can_err, counts, 0.0).sum(axis=(1, 2)) for which in (self.names, ~self.names)]
        return np.stack(parts, axis=1)[:, :, None]

    def _spread(self, accuracy: Floats) -> Floats:
        """The matrices (M, L, K) of accuracies (M, 1, 1)."""
        matrices = np.where(self.names, accuracy, (1 - accuracy) / max(self.n_labels - 1, 1))
        alone = np.where(self.names.any(axis=0), 1.0, 1.0 / self.n_labels)
        return np.ascontiguousarray(np.where(self.can_err, matrices, alone))
