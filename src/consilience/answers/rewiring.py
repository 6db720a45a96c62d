"""Random graphs with given degrees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ends = NDArray[np.int64]


def rewire(rng: np.random.Generator, source: Ends, target: Ends, n_items: int) -> tuple[Ends, Ends]:
    """Pair the ends of edges at random (configuration model).

    Pairs of edges are then swapped to undo self loops and repeated edges; a few may remain.
    """
    ends = rng.permutation(np.concatenate([source, target]))
    a, b = ends[: len(source)].copy(), ends[len(source) :].copy()
    for _ in range(20):
        low, high = np.minimum(a, b), np.maximum(a, b)
        _, first = np.unique(low * n_items + high, return_index=True)
        bad = np.ones(len(a), bool)
        bad[first] = False
        bad |= a == b
        if not bad.any():
            break
        other = rng.integers(0, len(a), int(bad.sum()))
        at = np.flatnonzero(bad)
        for i, j in zip(at.tolist(), other.tolist(), strict=True):
            b[i], b[j] = b[j], b[i]
    return a, b
