"""A simulated crowd of any size, whose answers come piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROUNDS = 5
ROWS_PER_PIECE = 1 << 20


class Piece(NamedTuple):
    """Some answers, as columns of codes."""

    item: NDArray[np.int64]
    worker: NDArray[np.int32]
    label: NDArray[np.int8]


class Crowd:
    """Workers with random confusion matrices, most of them fair, and items with a true class.

    Worker :math:`m` answers :math:`l` about an item of class :math:`k` with probability
    :math:`0.6 [k = l] + 0.4 D_{mkl}`, where the rows of :math:`D_m` are drawn evenly from all distributions. In each of
    five rounds every item gets one answer, by a worker of that round, in an order of its own. So nobody answers an item
    twice, and the answers to an item lie far apart.
    """

    def __init__(self, n_items: int, n_workers: int, n_classes: int, seed: int = 0) -> None:
        self.n_items, self.n_workers, self.n_classes, self.seed = n_items, n_workers, n_classes, seed
        rng = np.random.default_rng(seed)
        self.truth = rng.integers(0, n_classes, n_items, dtype=np.int8)
        drawn = rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))
        self.cumulative = (0.6 * np.eye(n_classes) + 0.4 * drawn).cumsum(axis=2)

    def draw(self) -> Iterator[Piece]:
        """Yield the answers, the same ones each time."""
        rng = np.random.default_rng([self.seed, 1])
        team = self.n_workers // ROUNDS
        for number in range(ROUNDS):
            order = rng.permutation(self.n_items)
            for first in range(0, self.n_items, ROWS_PER_PIECE):
                item = order[first : first + ROWS_PER_PIECE]
                worker = rng.integers(number * team, (number + 1) * team, len(item), dtype=np.int32)
                bounds = self.cumulative[worker, self.truth[item], :-1]
                label = (rng.random(len(item))[:, None] > bounds).sum(axis=1).astype(np.int8)
                yield Piece(item, worker, label)
