r"""Answers by halves: a soft vote is its most probable label, and whether its worker is sure of it.

A vote is in the upper half if its largest probability is at least the median of those of the same worker. Each label
then is one of two symbols, one for the upper half and one for the lower, and worker m gives symbol s when the truth is
k with probability Gamma_m[k, s]: a confusion matrix with 2 L answers, of which each label has two. Only the ranks of a
worker's own probabilities matter, so it does not matter how well calibrated they are. The confusion matrix that is
reported is that of labels, the sum of both halves; `halves_confusion_` has the halves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...answers.arrays import Crowd
from ...answers.responses import Answers
from ...kernels import Floats, Integers, freeze
from ...specs import COUNTS, DISTRIBUTIONS, FIGURES, LOG_WEIGHTS, ArraySpec
from .. import Distributions
from .base import HALF, Axes, Prior
from .confusion import ConfusionWorkers


@dataclass(frozen=True, eq=False)
class HalvesWorkers(ConfusionWorkers):
    """One confusion matrix per worker, with two answers for each label. Row 2 L m + l is a sure one, + L an unsure one.

    Parameters
    ----------
    medians : array (M,), optional
        The median confidence of each worker, which is kept for later answers.
    """

    medians: Floats | None = None

    name: ClassVar[str] = "halves"
    hears_silence: ClassVar[bool] = False
    needs_votes: ClassVar[bool] = True
    caution: ClassVar[int] = HALF
    log_weights_spec: ClassVar[ArraySpec] = ArraySpec("M 2L K", LOG_WEIGHTS)
    further_specs: ClassVar[Mapping[str, ArraySpec]] = {
        "halves_confusion_": ArraySpec("M K 2L", DISTRIBUTIONS),
        "_halves_counts": ArraySpec("M 2L K", COUNTS),
        "_medians": ArraySpec("M", FIGURES),
    }

    @classmethod
    def of(cls, responses: Crowd, class_of_label: NDArray[np.int64], n_classes: int) -> Self:
        """Return the model for the workers of these answers."""
        made = super().of(responses, class_of_label, n_classes)
        assert responses.medians is not None
        return replace(made, medians=responses.medians.astype(np.float64))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return 2 * self.n_workers * self.n_labels

    def describe_size(self) -> str:
        """Return in words what makes a table large."""
        return super().describe_size().replace(" x ", " x 2 halves x ", 1)

    def encode(self, responses: Answers) -> Integers:
        """Return the row of each answer."""
        assert responses.soft is not None
        soft = responses.soft if self.medians is None else responses.soft.judged_by(self.medians)
        unsure = ~soft.are_sure(responses.worker)
        return (2 * responses.worker.astype(np.int64) + unsure) * self.n_labels + responses.label

    def votes(self) -> NDArray[np.int64]:
        """Return which class each row votes for: the one its label names, in both halves."""
        return np.tile(self.class_of_label, 2 * self.n_workers)

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats) -> Prior:  # noqa: ARG002
        """Return the pseudo-counts, the same for both halves."""
        return Prior(freeze(np.concatenate([smoothing, smoothing], axis=1)), estimation)

    def given(self, confusion: Floats) -> Distributions:
        """Return known matrices (M, K, L) of labels, of which each half has the same share."""
        known = np.concatenate([confusion, confusion], axis=2) / 2
        return Distributions.known(np.ascontiguousarray(known.transpose(0, 2, 1), dtype=np.float64))

    def embed_counts(
        self,
        counts: Floats,  # noqa: ARG002
        further: Mapping[str, Floats],
        worker: NDArray[np.int64],
        axes: Axes,
    ) -> Floats:
        """Return expected counts of rows from those of a fit to fewer workers, labels and classes."""
        embedded = np.zeros((self.n_workers, 2 * self.n_labels, self.n_classes))
        both = np.concatenate([axes[0], self.n_labels + axes[0]])
        embedded[np.ix_(worker, both, axes[1])] = further["_halves_counts"]
        return embedded.reshape(-1, self.n_classes)

    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts (M, L, K) in both halves together."""
        return add_halves(self._all_counts(counts, np.empty(0)))

    def plain_mean(self, found: Distributions, counts: Floats, prior: Prior) -> Floats:  # noqa: ARG002
        """Return the confusion matrices of labels (M, L, K)."""
        return add_halves(found.mean)

    def crowd(self, counts: Floats, mass: Floats, prior: Prior) -> Floats:
        """Return how the workers answer on the whole, (1, L, K)."""
        return add_halves(super().crowd(counts, mass, prior))

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return the matrices of a fitted crowd for these workers and labels.

        For one who was not there, both halves of a label count as the crowd's, up to a factor that is the same for all
        classes.
        """
        n_before = known.shape[1] // 2
        everyone = np.concatenate([known, np.concatenate([crowd, crowd], axis=1)])[worker]
        return np.ascontiguousarray(everyone[:, np.concatenate([label, n_before + label])])

    def weigh_rows(self, log_weights: Floats) -> Floats:
        """Return the log evidence of each row for each class."""
        return log_weights.reshape(-1, self.n_classes)

    def further_arrays(self, found: Distributions, counts: Floats) -> dict[str, Floats]:
        """Return matrices and expected counts by halves, and the medians that tell these apart."""
        medians = np.full(self.n_workers, np.nan) if self.medians is None else self.medians
        return {
            "halves_confusion_": np.ascontiguousarray(found.mean.transpose(0, 2, 1)),
            "_halves_counts": self._all_counts(counts, np.empty(0)),
            "_medians": medians,
        }

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:  # noqa: ARG003
        """Return the matrices by halves as (M, 2 L, K)."""
        return np.ascontiguousarray(further["halves_confusion_"].transpose(0, 2, 1))

    @classmethod
    def read_as_before(cls, responses: Answers, further: Mapping[str, Floats], worker: NDArray[np.int64]) -> Answers:
        """Return other answers, told apart by the medians of the fit; those of new workers by their own."""
        r = super().read_as_before(responses, further, worker)
        assert r.soft is not None
        return replace(r, soft=r.soft.judged_by(np.append(further["_medians"], np.nan)[worker]))

    def _all_counts(self, counts: Floats, mass: Floats) -> Floats:  # noqa: ARG002
        """Return expected counts (M, 2 L, K) of symbols."""
        return counts.reshape(self.n_workers, 2 * self.n_labels, self.n_classes)


def add_halves(symbols: Floats) -> Floats:
    """Return what is counted of labels, (M, L, K), from what is counted of symbols, (M, 2 L, K)."""
    sure, unsure = np.split(symbols, 2, axis=1)
    return np.ascontiguousarray(sure + unsure)
