r"""The mean of the probabilities: every worker is taken at their word, and counts as much as any other.

With p_mk what worker m gives to class k, the evidence for class k of an item to which W workers gave a vote is

    (1 / W) sum_m p_mk / rho_k

where rho are the mean shares of the classes, so that the posterior of independent items is the mean itself (see
`consilience.inference.workers.temperatures`, of which all else is true). Nothing is learned of the workers, and the
mean is never surer than they are: so it is honest where they share their errors, and too cautious where they do not.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.blocks import Block
from ...answers.soft_votes import Probabilities
from ...kernels import Floats
from .. import Distributions
from .confusion import ConfusionWorkers
from .rows import AnyFactors, RowCounts, count_answers, sum_answers
from .temperatures import POOLED, PULLS, Pool, TemperatureWorkers, add_pulls

# A class that nobody gives anything to is not impossible.
LEAST_MEAN = 1e-9


class MeanPool(Pool):
    """Votes that all count alike."""

    def log_evidence(
        self,
        block: Block,
        posterior: Floats | None = None,  # noqa: ARG002
        factors: AnyFactors | None = None,  # noqa: ARG002
    ) -> Floats:
        """Return the log evidence (n_items, K)."""
        total = sum_answers(block, read_shares(block))
        answered = np.diff(block.offsets) > 0
        logs = np.zeros_like(total)
        mean = total[answered] / total[answered].sum(axis=1, keepdims=True)
        logs[answered] = np.log(np.maximum(mean, LEAST_MEAN)) - self.pooled
        return logs

    def log_answers(self, block: Block, logs: Floats | None = None) -> Floats:
        """Return the logarithm of the mean of each item, shared out to its votes by what they give to each class."""
        logs, given = self._replace(pooled=np.zeros_like(self.pooled)).log_evidence(block), read_shares(block)
        logs += 1 - logs.min(axis=1, keepdims=True)  # the same for all classes, so that a larger share speaks for one
        item = np.repeat(np.arange(block.n_items), np.diff(block.offsets))
        return np.asarray(given / np.maximum(sum_answers(block, given), LEAST_MEAN)[item] * logs[item])

    def count_rows(self, block: Block, posterior: Floats) -> RowCounts:
        """Return expected counts of labels, and the shares of the classes in the mean."""
        logs = self._replace(pooled=np.zeros_like(self.pooled)).log_evidence(block)
        n_votes = np.diff(block.offsets)
        each = np.repeat(np.exp(logs) / np.maximum(n_votes, 1)[:, None], n_votes, axis=0)
        workers, place = np.unique(self.find_workers(block)[block.codes], return_inverse=True)
        pulls = np.zeros((len(workers), PULLS, len(self.common)))
        for k in range(len(self.common)):
            pulls[:, POOLED, k] = np.bincount(place, each[:, k], len(workers))
        return add_pulls(count_answers(block, posterior), workers, pulls, self.n_labels)


def read_shares(block: Block) -> Floats:
    """Return what each vote gives to each class, as much as it counts."""
    soft = block.soft.astype(np.float64)
    return np.asarray(soft * block.share[:, None] if len(block.share) else soft)


class MeanWorkers(TemperatureWorkers):
    """Workers who are taken at their word. Rows are those of workers with temperatures, which are all 1."""

    name: ClassVar[str] = "mean"
    caution: ClassVar[int] = 0  # it is never surer than the workers

    def read_votes(self, responses: Answers) -> Probabilities:
        """Return what each vote gives to each class."""
        return responses.class_votes()

    def votes(self) -> NDArray[np.int64]:
        """Return nothing: the probabilities are the votes."""
        return np.empty(0, np.int64)

    def _pool(self, found: Distributions) -> MeanPool:
        return MeanPool(*super()._pool(found))


def voters(r: Answers) -> ConfusionWorkers:
    """Return the workers of models that only need the votes: silence is no vote."""
    kind = MeanWorkers if r.is_soft else ConfusionWorkers
    return kind(r.n_workers, r.class_of_label, r.n_classes, said=r.label_shares())
