"""Confusion workers: worker m answers l when the truth is k with probability Gamma_m[k, l], whatever else goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import freeze
from ..estimation import Estimate, estimate
from ..kernels.types import Floats
from ..responses import Responses


@dataclass(frozen=True)
class ConfusionWorkers:
    """One confusion matrix per worker, with pseudo-counts.

    Answer (m, l) is row m * L + l of the table. Inside, arrays are (M, L, K), so that a row is contiguous; outside
    they are (M, K, L).
    """

    n_workers: int
    class_of_label: NDArray[np.int64]
    n_classes: int
    smoothing: Floats  # (1 or M, L, K)
    estimation: str

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

    def update(self, counts: Floats) -> Estimate:
        """Return the matrices that expected counts of rows, of shape (n_rows, K), call for."""
        return estimate(counts.reshape(self.n_workers, self.n_labels, self.n_classes), self.smoothing, self.estimation)

    def given(self, confusion: Floats) -> Estimate:
        """Return known matrices, of shape (M, K, L), as an estimate."""
        mean = np.ascontiguousarray(confusion.transpose(0, 2, 1), dtype=np.float64)
        with np.errstate(divide="ignore"):
            return Estimate(freeze(mean), freeze(np.log(mean)), mean, 0.0)


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
        table = np.atleast_3d(array) if array.ndim == 3 else array[None]
        table = np.ascontiguousarray(table.transpose(0, 2, 1))
        if table.shape not in ((1, n_labels, n_classes), (n_workers, n_labels, n_classes)):
            raise ValueError(
                f"an array of shape (classes, labels) = ({n_classes}, {n_labels}), or one such matrix per worker"
            )
    return freeze(np.ascontiguousarray(table))
