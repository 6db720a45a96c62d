"""Confusion workers: worker m answers l when the truth is k with probability Gamma_m[k, l], whatever else goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.responses import Responses
from ..distributions import Estimate, estimate
from ..kernels.types import Floats, freeze
from .rows import RowTable, make_table


@dataclass(frozen=True)
class ConfusionWorkers:
    """One confusion matrix per worker, with pseudo-counts.

    Answer (m, l) is row m * L + l of the table. Inside, arrays are (M, L, K), so that a row is contiguous; outside
    they are (M, K, L).

    Where silence is itself an answer (`silent`), matrices have one more answer, L. It needs no rows: every item starts
    from the silence of all workers, and an answer replaces its worker's silence,

        log b_nk = sum_m log Gamma_m[k, L] + sum over answers (log Gamma_m[k, l] - log Gamma_m[k, L])

    and a worker's expected count of silence is what is left of all items.
    """

    n_workers: int
    class_of_label: NDArray[np.int64]
    n_classes: int
    smoothing: Floats  # (1 or M, L or L + 1, K)
    estimation: str
    silent: bool = False

    @property
    def n_labels(self) -> int:
        """Number of labels that workers use."""
        return len(self.class_of_label)

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self.n_workers * self.n_labels

    def encode(self, responses: Responses) -> NDArray[np.signedinteger[Any]]:
        """Return the row of each answer."""
        if self.n_rows < 2**31:
            return responses.worker * np.int32(self.n_labels) + responses.label
        return responses.worker * np.int64(self.n_labels) + responses.label

    def votes(self) -> Floats:
        """Return which class each row votes for, as a table of zeros and ones."""
        table = np.zeros((self.n_labels, self.n_classes))
        named = self.class_of_label >= 0
        table[named, self.class_of_label[named]] = 1.0
        return np.tile(table, (self.n_workers, 1))

    def update(self, counts: Floats, mass: Floats) -> Estimate:
        """Return the matrices that expected counts of rows, (n_rows, K), and of classes, (K,), call for."""
        return estimate(self._all_counts(counts, mass), self.smoothing, self.estimation)

    def table(self, found: Estimate, weighted: bool) -> RowTable:
        """Return the factors of evidence for each row."""
        if not self.silent:
            return make_table(found, weighted)
        from ..kernels.answers import LOG_IMPOSSIBLE

        # A silence that never was stays finite: where the worker spoke it is added and taken away again.
        spoken, silence = found.log_weights[:, :-1], np.maximum(found.log_weights[:, -1:], LOG_IMPOSSIBLE)
        logs = freeze(np.ascontiguousarray((spoken - silence).reshape(-1, self.n_classes)))
        return RowTable(logs, freeze(silence.sum(axis=(0, 1))), in_logs=True)

    def given(self, confusion: Floats) -> Estimate:
        """Return known matrices, of shape (M, K, L), as an estimate."""
        mean = np.ascontiguousarray(confusion.transpose(0, 2, 1), dtype=np.float64)
        with np.errstate(divide="ignore"):
            return Estimate(freeze(mean), freeze(np.log(mean)), mean, 0.0)

    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts of answers as (M, L, K)."""
        return counts.reshape(self.n_workers, self.n_labels, self.n_classes)

    def plain_mean(self, found: Estimate, counts: Floats) -> Floats:  # noqa: ARG002 (sequential workers need it)
        """Return the matrices to report, as (M, L, K)."""
        return found.mean

    def crowd(self, counts: Floats, mass: Floats) -> Floats:
        """Return how the workers answer on the whole, (1, L, K): for one who is not known."""
        total = self._all_counts(counts, mass).sum(axis=0, keepdims=True)
        return estimate(total, self.smoothing.mean(axis=0, keepdims=True), "em").mean

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return the matrices of a fitted crowd for these workers and labels.

        Parameters
        ----------
        known, crowd : array (M', L', K) and (1, L', K)
            What the fit learned of its workers, and of all together.
        worker, label : array
            Index of each worker (-1: not known) and of each label of this crowd in that one.
        """
        answers = np.append(label, known.shape[1] - 1) if self.silent else label
        # Index -1 picks the last matrix, where the crowd's stands.
        return np.ascontiguousarray(np.concatenate([known, crowd])[worker][:, answers])

    def _all_counts(self, counts: Floats, mass: Floats) -> Floats:
        """Return expected counts (M, L, K) of answers, with those of silence in the end where that is one."""
        spoken = self.plain_counts(counts)
        if not self.silent:
            return spoken
        silence = np.maximum(mass - spoken.sum(axis=1, keepdims=True), 0.0)
        return np.concatenate([spoken, silence], axis=1)


def smoothing_array(smoothing: Any, class_of_label: NDArray[np.int64], n_classes: int, n_workers: int) -> Floats:
    """Return pseudo-counts as an array (1 or M, L, K) from a float, a pair (off diagonal, diagonal) or an array.

    >>> smoothing_array((0.1, 1.1), np.array([0, 1]), 2, 5)
    array([[[1.1, 0.1],
            [0.1, 1.1]]])
    """
    n_labels = len(class_of_label)
    array = np.asarray(smoothing, dtype=np.float64)
    if array.shape == (2,):
        diagonal = class_of_label[:, None] == np.arange(n_classes)[None, :]
        table = np.where(diagonal, array[1], array[0])[None]
    elif array.ndim == 0:
        table = np.full((1, n_labels, n_classes), float(array))
    else:
        if array.ndim not in (2, 3):
            raise ValueError("neither a number nor a pair nor a matrix")
        table = array if array.ndim == 3 else array[None]
        if table.shape[1:] != (n_classes, n_labels) or table.shape[0] not in (1, n_workers):
            raise ValueError(
                f"an array of shape (classes, labels) = ({n_classes}, {n_labels}), or one such matrix per worker"
            )
        table = table.transpose(0, 2, 1)
    return freeze(np.ascontiguousarray(table))
