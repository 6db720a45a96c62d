"""Readers whose masks are the same.

`copies` judges workers by how often they agree, and takes items as independent of each other. Pixels are not: two
careful readers agree about whole stretches of a boundary, and would look like copies. So of masks only those that are
the same count as copies. Two readers are copies if they agree about every pixel that both answered and about which any
readers disagree, and if there are at least `FEWEST` such pixels to which both give one class, and as many to which they
give another. Two readers who both saw nothing have drawn the same mask, and are no copies.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from ..answers.responses import Responses

FEWEST = 50
# So many of the pixels about which readers disagree are looked at, evenly spaced.
MOST_PIXELS = 20_000


def find_same_masks(r: Responses) -> list[list[int]]:
    """Return groups of readers whose masks are the same, each by the indices of its members."""
    from scipy.sparse.csgraph import connected_components  # which takes long to load

    votes = _list_disputed(r)
    pairs = [pair for pair in combinations(range(r.n_workers), 2) if _are_same(votes[pair[0]], votes[pair[1]])]
    if not pairs:
        return []
    first, second = np.array(pairs).T
    linked = coo_array((np.ones(len(pairs)), (first, second)), shape=(r.n_workers, r.n_workers))
    _, group = connected_components(linked, directed=False)
    return [np.flatnonzero(group == number).tolist() for number in np.flatnonzero(np.bincount(group) > 1)]


def _list_disputed(r: Responses) -> NDArray[np.int32]:
    """Return what each reader says of pixels about which some disagree (reader, pixel); -1 where that is nothing."""
    answered = np.flatnonzero(np.diff(r.offsets))
    if not len(answered):
        return np.full((r.n_workers, 0), -1, np.int32)
    starts = r.offsets[answered]
    differ = np.minimum.reduceat(r.label, starts) != np.maximum.reduceat(r.label, starts)
    disputed = answered[differ]
    chosen = disputed[:: max(1, -(-len(disputed) // MOST_PIXELS))]
    answers, place = r.answers_about(chosen)
    votes = np.full((r.n_workers, len(chosen)), -1, np.int32)
    votes[r.worker[answers], place] = r.label[answers]
    return votes


def _are_same(a: NDArray[np.int32], b: NDArray[np.int32]) -> bool:
    both = (a >= 0) & (b >= 0)
    if (a != b)[both].any():
        return False
    return int((np.bincount(a[both]) >= FEWEST).sum()) > 1
