r"""How probable answers with weights are, from how probable they are if given with care.

See `consilience.inference.workers.rows` for what a weight means. Where classes are summed out, an answer whose label j
has the probability :math:`p_j` has itself the probability

.. math:: \sum_j w_j p_j + (1 - W) \sum_j w_j \rho_j / W, \quad W = \sum_j w_j

with one term for each of the labels over which it is spread; mostly that is one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..kernels import Floats

# Probabilities below this are as good as 0.
LEAST = 1e-300


class Care(NamedTuple):
    """With what care some answers were given."""

    weight: Floats | None  # of each row; None if all were given with care
    first: NDArray[np.int64]  # the first of the rows of each answer
    other: Floats  # how probable each answer is without care, times the probability that it was given so

    @classmethod
    def of(cls, r: Answers, answer: NDArray[np.int64]) -> Care:
        """Return that of some rows, ascending. All rows of an answer that is spread over labels must be among them."""
        if r.weight is None:
            return WITH_CARE
        item, worker, weight = r.items_of(answer), r.worker[answer], r.weight[answer]
        first = np.flatnonzero(np.append(True, (np.diff(item) != 0) | (np.diff(worker) != 0))[: len(answer)])
        total, said = (
            np.add.reduceat(each, first) if len(first) else np.empty(0)
            for each in (weight, weight * r.label_shares()[r.label[answer]])
        )
        return cls(weight, first, np.maximum(1.0 - total, 0.0) / total * said)

    def log_chances(self, probability: Floats) -> Floats:
        """Return the log probability of each row; of an answer that is spread over labels, in the first of its rows.

        `probability` is that of each row if it was given with care.
        """
        if self.weight is None:
            return np.asarray(np.log(np.maximum(probability, LEAST)))
        logs = np.zeros(len(probability))
        if len(self.first):
            mixed = np.add.reduceat(self.weight * probability, self.first) + self.other
            logs[self.first] = np.log(np.maximum(mixed, LEAST))
        return logs


WITH_CARE = Care(None, np.empty(0, np.int64), np.empty(0))
