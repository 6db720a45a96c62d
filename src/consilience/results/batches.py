r"""What is kept of the batches of a stream: statistics that add up, and nothing that grows with the number of answers.

With S the statistics of all batches so far (expected counts of answers, of classes and of transitions), the next batch
is fitted as if S were counted with it, and S becomes S plus the statistics of that batch. So a worker's matrix moves
by the share of new answers among all of theirs.

With a half-life of h answers, the counts of worker m are multiplied by

.. math:: 2^{-n_m / h}

before the batch, :math:`n_m` being the number of answers of the worker in it. What was seen h answers ago counts half.
Class shares and transitions are not forgotten. Where silence is an answer, all workers answer all items, and everything
is multiplied by the same number: a worker's silence is what is left of all items.

Sums for intervals (see `consilience.results.interval_sums`), and what speaks for each power of calibration (see
`consilience.inference.powers`), are kept and forgotten in the same way. What is about all workers together is
multiplied by the mean of their factors, weighted by their answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.powers import Evidence
from ..inference.structures.base import Summary
from ..kernels.types import Floats
from .interval_sums import Sums


class Past(NamedTuple):
    """What is kept of all batches so far, beside counts of answers by worker, label and class."""

    summary: Summary  # of the structure
    sums: Sums
    evidence: Evidence

    def embed(self, worker: NDArray[np.int64], n_workers: int, klass: NDArray[np.int64], n_classes: int) -> Past:
        """Return the same for more workers and classes, whose indices among these are given."""

        def by_class(array: Floats, n_before: int = 0) -> Floats:
            """Return an array whose axes, but for the first `n_before`, are classes."""
            shape = (*array.shape[:n_before], *(n_classes,) * (array.ndim - n_before))
            embedded = np.zeros(shape)
            embedded[np.ix_(*map(np.arange, shape[:n_before]), *(klass,) * (array.ndim - n_before))] = array
            return embedded

        def by_worker(array: Floats) -> Floats:
            embedded = np.zeros((len(array), n_workers))
            embedded[:, worker] = array
            return embedded

        named: dict[str, Any] = {name: by_class(getattr(self.summary, name)) for name in self.summary.specs()}
        sums, scores = self.sums, self.sums.scores
        if scores.size:
            both = np.append(klass, n_classes + klass)
            scores = np.zeros((2, 2 * n_classes, 2 * n_classes))
            scores[np.ix_(np.arange(2), both, both)] = sums.scores
        return self._replace(
            summary=replace(self.summary, log_normaliser=0.0, **named),
            sums=sums._replace(
                chances=by_worker(sums.chances),
                worth=by_worker(sums.worth[None])[0],
                judged=by_worker(sums.judged),
                scores=scores,
                lack=by_class(sums.lack),
                moments=by_class(sums.moments, 1),
                meant=by_class(sums.meant),
            ),
        )

    def forget(self, kept: Floats, silence: bool) -> Past:
        """Return what is left if a share `kept` (M,) of each worker's answers is; see the module's formula.

        Where silence is an answer (`silence`), shares are the same for all workers, and all items are forgotten.
        """
        if (kept == 1).all():
            return self
        sums, total = self.sums, self.sums.chances[0].sum()
        mean = float(sums.chances[0] @ kept / total) if total > 0 else 1.0
        of_items = float(kept.min(initial=1.0)) if silence else 1.0
        counted: dict[str, Any] = {name: of_items * getattr(self.summary, name) for name in self.summary.specs()}
        return Past(
            replace(self.summary, **counted),
            sums._replace(
                chances=sums.chances * kept,
                worth=sums.worth * kept,
                judged=sums.judged * kept,
                votes=mean * sums.votes,
                scores=mean * sums.scores,
                lack=mean * sums.lack,
                moments=of_items * sums.moments,
                sizes=of_items * sums.sizes,
            ),
            Evidence(*(mean * array for array in self.evidence)),
        )
