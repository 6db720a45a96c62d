"""Groups of workers who copy each other, and answers in which each group counts once.

If g workers of a group answer an item, the weight of each of their answers is divided by g: together they have the
weight of one. `consilience.inference.copies` finds the groups by how often workers agree, and takes items as
independent of each other.

Pixels are not: two careful readers agree about whole stretches of a boundary, and would look like copies. So of masks
only those that are the same count as copies. Two readers are copies if they agree about every pixel that both answered
and about which any readers disagree, and if there are at least `FEWEST` such pixels to which both give one class, and
as many to which they give another. Two readers who both saw nothing have drawn the same mask, and are no copies.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from ..answers.columns import Values
from ..answers.hashing import hash_ids
from ..answers.responses import Responses
from ..kernels.types import Floats
from ..specs import is_whole

Integers: TypeAlias = NDArray[np.int64]
FEWEST = 50
# So many of the pixels about which readers disagree are looked at, evenly spaced.
MOST_PIXELS = 20_000


def list_groups(groups: Integers) -> list[list[int]]:
    """Return the members of each group, by index."""
    return [np.flatnonzero(groups == group).tolist() for group in range(1, groups.max(initial=0) + 1)]


def number_groups(members: list[list[int]], n_workers: int) -> Integers:
    """Return the group of each worker, as `find_copies` does, from the members of each."""
    groups = np.zeros(n_workers, np.int64)
    for number, group in enumerate(members, 1):
        groups[group] = number
    return groups


def are_groups(value: object) -> bool:
    """Tell whether a value from JSON are groups of workers, each by their indices."""
    if not isinstance(value, list) or not all(isinstance(group, list) and len(group) > 1 for group in value):
        return False
    members = [member for group in value for member in group]
    return all(map(is_whole, members)) and len(set(members)) == len(members)


def count_once(r: Responses, groups: Integers) -> Responses:
    """Return the answers with weights such that those of a group about an item have the weight of one answer.

    Where silence is an answer, all workers of a group answer all items, and the weight is the same for all. The
    `leader` of a group is the member with the smallest hash.
    """
    if not groups.any():
        return r
    r = replace(r, leader=choose_leaders(r.workers, groups))
    if r.silence_counts:
        size = np.bincount(groups).astype(float)
        size[0] = 1.0
        r, share = replace(r, silence_weight=1.0 / size[groups]), 1.0 / size[groups[r.worker]]
    else:
        share = share_votes(r, groups)
    return replace(r, weight=share if r.weight is None else share * r.weight)


def choose_leaders(workers: Values, groups: Integers) -> NDArray[np.int64]:
    """Return one worker of the group of each, the same for all of its members; workers without a group themselves."""
    by_hash = np.argsort(hash_ids(workers), kind="stable")[::-1]
    leaders = np.zeros(groups.max() + 1, np.int64)
    leaders[groups[by_hash]] = by_hash  # the last one stays
    return np.where(groups > 0, leaders[groups], np.arange(len(workers)))


def share_votes(r: Responses, groups: Integers) -> Floats:
    """Return 1 / g for answers of workers of whose group g answered the item, and 1 for others."""
    n_groups = groups.max() + 1
    item, worker = r.votes()
    grouped = np.flatnonzero(groups[worker])
    codes, size = np.unique(item[grouped] * n_groups + groups[worker[grouped]], return_counts=True)
    answers = np.flatnonzero(groups[r.worker])
    wanted = r.item_of_answer()[answers] * n_groups + groups[r.worker[answers]]
    share = np.ones(r.n_responses)
    share[answers] = 1.0 / size[np.searchsorted(codes, wanted)]
    return share


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
