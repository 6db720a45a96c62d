r"""Workers of types: each worker answers much as one of a few types does, and no worker exactly so.

A type t says how such a worker answers when the truth is k: with probabilities :math:`\pi_{tk}` over the labels. Row k
of the matrix of a worker of type t has the prior :math:`\operatorname{Dir}(c_t \pi_{tk})`. Its strength :math:`c_t` is
a part of the type: with a small one the matrix is free, with a large one it is that of the type. Types have shares
:math:`w_t` among all workers, which are learned, so that a worker with few answers borrows from the crowd.

With C the expected counts of a worker and :math:`n_k` their sums, the evidence for a type, and its responsibility, are

.. math:: e_t = \prod_k \frac{\Gamma(c_t)}{\Gamma(c_t + n_k)} \prod_l
          \frac{\Gamma(C_{kl} + c_t \pi_{tkl})}{\Gamma(c_t \pi_{tkl})}, \quad r_t = \frac{w_t e_t}{\sum_u w_u e_u}

By variational Bayes, the matrix is distributed as the mixture of :math:`\operatorname{Dir}(C_k + c_t \pi_{tk})` with
weights r. The E-step uses its mean logarithms, a mixture of digammas, and its mean is reported. The worker adds
:math:`\log \sum_t w_t e_t - \sum_{kl} C_{kl} \operatorname{E} \log \Gamma_{kl}` to the bound. There is no EM: the mode
of a mixture is no summary of it.

The shares of types have the density :math:`\prod_t w_t^{0.02}`, so that :math:`w_t \propto \sum_m r_{mt} + 0.02`. With
many workers, types that hardly anyone is of are left out, once the objective does not fall by that.

**Answers outside of the types** are labels that name no class, such as "can't tell", and silence where it is an answer.
A worker gives each of them with a share of its own for each truth, and answers as types do otherwise.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...answers.columns import Values, lookup, to_column
from ...errors import ParameterError, Sentence
from ...kernels import Floats, freeze
from ..distributions import Distributions, fit_distributions
from ..skills import RARE
from .base import Prior, Types, WorkerModel
from .rows import Counted

# How strongly a worker is of their type.
TYPE_STRENGTHS = (2.0, 8.0, 32.0, 128.0)
# Pseudo-counts of each answer outside of the types, and of all others together.
OUTSIDE_COUNT, OTHERS_COUNT = 0.3, 2.0
# Responsibilities below this are passed over. What all of them add is below the rounding of the objective.
NEGLIGIBLE = 1e-10
# Types with fewer workers than this, as expected, may be left out.
FEW_WORKERS = 0.02
# Responsibilities that are held at a time.
MOST_HELD = 1 << 22


class TypedWorkers(WorkerModel):
    """Workers of types. Rows, and what is reported, are those of confusion workers."""

    hears_silence: ClassVar[bool] = True

    @abstractmethod
    def draw_types(self) -> Floats:
        """How each type answers, as probabilities (T, L', K) over the labels that name a class."""

    @cached_property
    def within(self) -> NDArray[np.bool_]:
        """Tell which answers, (A,), types speak of."""
        return np.append(self.class_of_label >= 0, [False] * self.silent).astype(bool)

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats, learn: bool = False) -> Prior:
        """Types that are equally frequent. Pseudo-counts are those of the types."""
        if estimation == "em":
            raise ParameterError(
                f"Workers of the kind {self.name!r} are estimated by variational Bayes only.",
                Sentence("Leave out {estimation}."),
                Sentence("Or use {workers}.", workers="confusion"),
                keyword="estimation",
            )
        shapes = self.draw_types()
        pseudo_counts = np.concatenate([strength * shapes for strength in TYPE_STRENGTHS])
        mean = np.full((1, len(self.within), self.n_classes), OUTSIDE_COUNT)
        mean[0, self.within] = pseudo_counts.mean(axis=0)
        types = Types(freeze(pseudo_counts), freeze(np.zeros((1, len(pseudo_counts)))))
        return share_types(Prior(freeze(mean), estimation, learns=True), types, np.zeros(len(pseudo_counts)))

    def learn_prior(self, counts: Floats, prior: Prior) -> Prior:
        """A prior with shares of types under which the counts are likelier.

        Types are left out, of a worker or of all, where the objective does not fall by that.
        """
        inner, types = self._split(counts)[0], types_of(prior)._replace(likely=None)
        likely = np.empty((len(inner), types.n_types), bool)
        n_workers, evidence = np.zeros(types.n_types), 0.0
        for part, responsibility, value in respond_by_parts(inner, types):
            likely[part] = responsibility >= NEGLIGIBLE
            n_workers += responsibility.sum(axis=0)
            evidence += value
        types = types._replace(likely=likely)
        every, kept = share_types(prior, types, n_workers), n_workers >= FEW_WORKERS
        if kept.all() or not kept.any():
            return every
        fewer = types._replace(
            pseudo_counts=freeze(types.pseudo_counts[kept]),
            log_shares=types.log_shares[:, kept],
            n_gone=types.n_gone + int((~kept).sum()),
            likely=likely[:, kept],
        )
        learned = share_types(prior, fewer, n_workers[kept])
        left = sum(value for _, _, value in respond_by_parts(inner, types_of(learned)))
        return every if learned.log_density + left < evidence + prior.log_density else learned

    def update(self, counts: Floats, prior: Prior) -> Distributions:
        """The matrices that expected counts call for."""
        inner, outer = self._split(counts)
        means = find_means(inner, types_of(prior))
        if self.within.all():
            return means
        pseudo_counts = np.full((1, outer.shape[1], 1), OUTSIDE_COUNT)
        pseudo_counts[:, 0] = OTHERS_COUNT
        shares = fit_distributions(outer, np.broadcast_to(pseudo_counts, (1, *outer.shape[1:])), prior.estimation)
        logs, mean = (np.empty((len(inner), *prior.smoothing.shape[1:])) for _ in range(2))
        logs[:, ~self.within], mean[:, ~self.within] = shares.log_weights[:, 1:], shares.mean[:, 1:]
        logs[:, self.within] = shares.log_weights[:, :1] + means.log_weights
        mean[:, self.within] = shares.mean[:, :1] * means.mean
        return Distributions(freeze(logs), freeze(mean), means.bound + shares.bound)

    def compare_types(self, counts: Floats, types: Types) -> Floats:
        """How well each type explains the counts of each worker, (M, T): the evidence e over its sum."""
        inner = self._split(counts)[0]
        even = types._replace(log_shares=freeze(np.zeros((1, types.n_types))), likely=None)
        return np.concatenate([responsibility for _, responsibility, _ in respond_by_parts(inner, even)])

    def find_skills(self, types: Types) -> Floats:
        """How skilled each type is, (T,): the log odds of a right answer, relative to chance.

        With a the mean probability of the right answer over classes, of n labels, it is log (n - 1) a / (1 - a).
        """
        right = self.class_of_label[self.class_of_label >= 0][:, None] == np.arange(self.n_classes)
        shares = types.pseudo_counts / types.pseudo_counts.sum(axis=1, keepdims=True)
        accuracy = np.sum(shares * right, axis=(1, 2)) / max(int(right.sum()), 1)
        accuracy = np.clip(accuracy, 1e-3, 1 - 1e-3)
        return np.asarray(np.log(max(len(right) - 1, 1) * accuracy / (1 - accuracy)))

    def counted(self, counts: Floats, prior: Prior) -> Counted:
        """The counts behind the matrices, each worker with the pseudo-counts that stand for their types.

        Those of answers outside are so many that their shares are the ones that are reported.
        """
        types, (inner, outer) = types_of(prior), self._split(counts)
        totals = np.empty((len(inner), *prior.smoothing.shape[1:]))
        responsibility = np.concatenate([each for _, each, _ in respond_by_parts(inner, types)])
        totals[:, self.within] = np.tensordot(responsibility, types.pseudo_counts, axes=1)
        if not self.within.all():
            total = (inner + totals[:, self.within]).sum(axis=1, keepdims=True)
            totals[:, ~self.within] = (outer[:, 1:] + OUTSIDE_COUNT) * total / (outer[:, :1] + OTHERS_COUNT) - outer[
                :, 1:
            ]
        return super().counted(counts, prior._replace(smoothing=totals))

    def _split(self, counts: Floats) -> tuple[Floats, Floats]:
        """The counts of answers within, (M, L', K), and those of all of them together and of the others."""
        every = self.by_matrix(counts)
        if self.within.all():
            return every, every[:, :0]
        inner = np.ascontiguousarray(every[:, self.within])
        return inner, np.concatenate([inner.sum(axis=1, keepdims=True), every[:, ~self.within]], axis=1)


def types_of(prior: Prior) -> Types:
    """The types of a prior."""
    assert prior.types is not None
    return prior.types


def give_shares(prior: Prior, log_shares: Floats) -> Prior:
    """A prior with these probabilities of types, (M, T) in logarithms, which is not learned."""
    types = types_of(prior)._replace(log_shares=freeze(np.ascontiguousarray(log_shares)))
    return prior._replace(types=types, log_density=0.0, learns=False)


@dataclass(frozen=True, eq=False)
class WorkerTypes:
    """The probability of each type of the workers of a question, by the other questions.

    Attributes
    ----------
    workers : array (M,)
        Worker ids.
    log_shares : array (M, T)
        The logarithm of the probability that each worker is of each type.
    """

    workers: Values
    log_shares: Floats

    def give_to(self, prior: Prior, workers: Values) -> Prior:
        """The prior of these workers; somebody who was not there may be of any type, as the others are."""
        crowd = np.log(np.exp(self.log_shares).mean(axis=0, keepdims=True))
        place = lookup(self.workers, to_column(workers))  # -1 is the last row
        return give_shares(prior, np.concatenate([self.log_shares, crowd])[place])


def share_types(prior: Prior, types: Types, n_workers: Floats) -> Prior:
    """A prior with the shares of types that so many workers of each, (T,), call for."""
    total = float(n_workers.sum()) + RARE * (len(n_workers) + types.n_gone)
    log_shares = np.log((n_workers + RARE) / total)
    density = RARE * (float(log_shares.sum()) + types.n_gone * float(np.log(RARE / total)))
    return prior._replace(types=types._replace(log_shares=freeze(log_shares[None])), log_density=density)


def respond_by_parts(counts: Floats, types: Types) -> Iterator[tuple[slice, Floats, float]]:
    """Yield responsibilities of types for a few workers at a time, and the logarithm of their evidence."""
    from ...kernels.types import respond

    n_types = types.n_types
    size = max(1, MOST_HELD // n_types)
    for first in range(0, len(counts), size):
        part = slice(first, first + size)
        responsibility = np.empty((len(counts[part]), n_types))
        likely = np.ones(responsibility.shape, bool) if types.likely is None else types.likely[part]
        log_shares = types.log_shares if len(types.log_shares) == 1 else types.log_shares[part]
        evidence = respond(counts[part], types.pseudo_counts, log_shares, likely, responsibility)
        yield part, responsibility, evidence


def find_means(counts: Floats, types: Types) -> Distributions:
    """The variational distributions of matrices, given expected counts (M, L', K)."""
    from ...kernels.types import mix

    logs, mean, evidence = np.empty_like(counts), np.empty_like(counts), 0.0
    for part, responsibility, value in respond_by_parts(counts, types):
        responsibility[responsibility < NEGLIGIBLE] = 0.0
        kept = responsibility.sum(axis=1, keepdims=True)
        mix(counts[part], types.pseudo_counts, responsibility / kept, logs[part], mean[part])
        evidence += value + float(np.log(kept).sum())
    bound = evidence - float(np.sum(counts * logs))
    return Distributions(freeze(logs), freeze(mean), bound)
