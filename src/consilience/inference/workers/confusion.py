"""Confusion workers: worker m answers l when the truth is k with probability Gamma_m[k, l], whatever else goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...arguments import to_floats
from ...errors import plural
from ...kernels import Floats, Integers, freeze
from ...specs import LOG_WEIGHTS, ArraySpec
from .. import Distributions, fit_distributions
from .base import START, Axes, Prior, WorkerModel, improve_pair, make_pair
from .rows import AnyFactors, Counted, CountedRows, CountedSilence, Factors, make_factors


class ConfusionWorkers(WorkerModel):
    """One confusion matrix per worker. Answer (m, l) is row m * L + l.

    Where silence is itself an answer (`silent`), matrices have one more answer, L. It needs no rows: every item starts
    from the silence of all workers, and an answer replaces its worker's silence,

        log b_nk = sum_m log Gamma_m[k, L] + sum over answers (log Gamma_m[k, l] - log Gamma_m[k, L])

    and a worker's expected count of silence is what is left of all items.
    """

    name: ClassVar[str] = "confusion"
    hears_silence: ClassVar[bool] = True
    log_weights_spec: ClassVar[ArraySpec] = ArraySpec("M A K", LOG_WEIGHTS)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_workers * self.n_labels

    def describe_size(self) -> str:
        """Return in words what makes a table large."""
        sizes = (self.n_workers, "worker"), (self.n_labels, "label")
        return " x ".join(plural(*size) for size in sizes) + f" x {self.n_classes:,} classes"

    def encode(self, responses: Answers) -> Integers:
        """Return the row of each answer."""
        rows = responses.worker * (np.int32 if self.n_rows < 2**31 else np.int64)(self.n_labels)
        rows += responses.label
        return rows

    def votes(self) -> NDArray[np.int64]:
        """Return which class each row votes for: the one its label names."""
        return np.tile(self.class_of_label, self.n_rows // self.n_labels)

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats) -> Prior:
        """Return the pseudo-counts; silence, if it is an answer, is the right one where nothing is to be said."""
        if not self.silent:
            return Prior(smoothing, estimation)
        right, wrong = smoothing.max(axis=1, keepdims=True), smoothing.min(axis=1, keepdims=True)
        silence = np.where(unvoted > 0, right, wrong)
        return Prior(freeze(np.concatenate([smoothing, silence], axis=1)), estimation)

    def begin_learning(self, prior: Prior, crowd: Answers) -> Prior:
        """Return a prior whose pair is learned."""
        return make_pair(prior, split_prior(self, crowd))

    def learn_prior(
        self,
        counts: Floats,
        mass: Floats,
        prior: Prior,
        before: Distributions | None = None,  # noqa: ARG002
    ) -> Prior:
        """Return a prior under which the counts, those of silence among them, are likelier."""
        return improve_pair(prior, self._all_counts(counts, mass))

    def update(
        self,
        counts: Floats,
        mass: Floats,
        prior: Prior,
        before: Distributions | None = None,  # noqa: ARG002
    ) -> Distributions:
        """Return the matrices that expected counts call for."""
        return fit_distributions(self._all_counts(counts, mass), prior.smoothing, prior.estimation)

    def factors(self, found: Distributions, weighted: bool) -> AnyFactors:
        """Return what each row contributes to the evidence."""
        if not self.silent:
            return make_factors(found, weighted, self.label_shares, self.n_rows // self.n_workers)
        from ...kernels.answers import LOG_IMPOSSIBLE

        # A silence that never was stays finite: where the worker spoke it is added and taken away again.
        spoken, silence = found.log_weights[:, :-1], np.maximum(found.log_weights[:, -1:], LOG_IMPOSSIBLE)
        logs = freeze(np.ascontiguousarray((spoken - silence).reshape(-1, self.n_classes)))
        weighted_silence = silence if self.silence_weight is None else silence * self.silence_weight[:, None, None]
        return Factors(logs, freeze(weighted_silence.sum(axis=(0, 1))), True, self.label_shares, self.n_labels)

    def given(self, confusion: Floats) -> Distributions:
        """Return known matrices (M, K, L) as (M, L, K)."""
        return Distributions.known(np.ascontiguousarray(confusion.transpose(0, 2, 1), dtype=np.float64))

    def embed_counts(
        self,
        counts: Floats,
        further: Mapping[str, Floats],  # noqa: ARG002
        worker: NDArray[np.int64],
        axes: Axes,
    ) -> Floats:
        """Return expected counts of rows from those (M', L', K') of a fit to fewer workers, labels and classes."""
        embedded = np.zeros((self.n_workers, self.n_labels, self.n_classes))
        embedded[np.ix_(worker, *axes)] = counts
        return embedded.reshape(-1, self.n_classes)

    def counted(self, counts: Floats, mass: Floats, prior: Prior) -> Counted:
        """Return the counts behind the matrices."""
        total = self._all_counts(counts, mass) + prior.smoothing
        if not self.silent:
            return count_groups(total)
        rows = np.ascontiguousarray(total[:, :-1]).reshape(-1, self.n_classes)
        return CountedSilence(rows, total[:, -1], total.sum(axis=1), self.silence_weight)

    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts of answers as (M, L, K)."""
        return counts.reshape(self.n_workers, self.n_labels, self.n_classes)

    def plain_mean(self, found: Distributions, counts: Floats, prior: Prior) -> Floats:  # noqa: ARG002
        """Return the confusion matrices to report, as (M, L, K)."""
        return found.mean

    def crowd(self, counts: Floats, mass: Floats, prior: Prior) -> Floats:
        """Return how the workers answer on the whole, (1, L, K)."""
        total = self._all_counts(counts, mass).sum(axis=0, keepdims=True)
        return fit_distributions(total, prior.smoothing.mean(axis=0, keepdims=True), "em").mean

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return the matrices of a fitted crowd for these workers and labels."""
        answers = np.append(label, known.shape[1] - 1) if self.silent else label
        # Index -1 picks the last matrix, where the crowd's stands.
        return np.ascontiguousarray(np.concatenate([known, crowd])[worker][:, answers])

    def _all_counts(self, counts: Floats, mass: Floats) -> Floats:
        """Return expected counts (M, L, K) of answers, with those of silence in the end where that is one."""
        spoken = self.plain_counts(counts)
        if not self.silent:
            return spoken
        items = mass if self.silence_weight is None else mass * self.silence_weight[:, None, None]
        silence = np.maximum(items - spoken.sum(axis=1, keepdims=True), 0.0)
        return np.concatenate([spoken, silence], axis=1)


def count_groups(total: Floats) -> CountedRows:
    """Return counts (R, L, K) as rows and the sums that they are a share of."""
    return CountedRows(total.reshape(-1, total.shape[2]), total.sum(axis=1), total.shape[1])


def names_class(class_of_label: NDArray[np.int64], n_classes: int) -> NDArray[np.bool_]:
    """Return whether each label names each class, (L, K)."""
    return np.asarray(class_of_label[:, None] == np.arange(n_classes))


def smoothing_array(smoothing: Any, class_of_label: NDArray[np.int64], n_classes: int, n_workers: int) -> Floats:
    """Return pseudo-counts as an array (1 or M, L, K) from a float, a pair (off diagonal, diagonal) or an array.

    >>> smoothing_array((0.1, 1.1), np.array([0, 1]), 2, 5)
    array([[[1.1, 0.1],
            [0.1, 1.1]]])
    """
    n_labels = len(class_of_label)
    array = to_floats(smoothing)
    if array.shape == (2,):
        pseudo_counts = np.where(names_class(class_of_label, n_classes), array[1], array[0])[None]
    elif array.ndim == 0:
        pseudo_counts = np.full((1, n_labels, n_classes), float(array))
    else:
        if array.ndim not in (2, 3):
            raise ValueError("neither a number nor a pair nor a matrix")
        pseudo_counts = array if array.ndim == 3 else array[None]
        if pseudo_counts.shape[1:] != (n_classes, n_labels) or pseudo_counts.shape[0] not in (1, n_workers):
            raise ValueError(
                f"an array of shape (classes, labels) = ({n_classes}, {n_labels}), or one such matrix per worker"
            )
        pseudo_counts = pseudo_counts.transpose(0, 2, 1)
    return freeze(np.ascontiguousarray(pseudo_counts))


def split_prior(workers: ConfusionWorkers, r: Answers) -> tuple[Floats, Floats, Floats]:
    """Return the parts of pseudo-counts that a learned pair multiplies, and the part that stays; see `Prior`.

    Classes that no answer can mean keep the pseudo-counts of EM. Those of a learned prior may be many, and such a class
    would then be as good an explanation of any answer as the other classes.
    """
    unvoted = r.vote_shares()
    meant = (r.label_of_class >= 0) | (unvoted > 0)

    def at(off: float, diagonal: float) -> Floats:
        smoothing = smoothing_array((off, diagonal), r.class_of_label, r.n_classes, r.n_workers)
        return workers.prior(np.where(meant, smoothing, START[0]), "variational", unvoted).smoothing

    # `WorkerModel.prior` is linear in the pair as long as the diagonal is the larger one.
    low, high, both = at(1.0, 2.0), at(1.0, 3.0), at(2.0, 3.0)
    off, diagonal = both - high, high - low
    return freeze(off), freeze(diagonal), freeze(low - off - 2.0 * diagonal)
