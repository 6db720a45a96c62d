"""Groups of workers who copy each other, and answers in which each group counts once.

If g workers of a group answer an item, the weight of each of their answers is divided by g: together they have the
weight of one. `consilience.inference.copies` finds the groups by how often workers agree, and takes items as
independent of each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values
from ..answers.hashing import hash_ids
from ..answers.responses import Responses
from ..kernels.types import Floats
from ..specs import is_whole

Integers: TypeAlias = NDArray[np.int64]


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
