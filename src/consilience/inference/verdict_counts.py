"""Verdicts as counts, the effects that families of judges share, and which candidates were compared at all."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..answers.comparisons import Comparisons
from ..answers.verdict_tables import LEFT, RIGHT, TIE
from ..kernels import Floats, Integers, Truths
from . import sum_by
from .bradley_terry import KNOWN, Cells

# So many items tell how verdicts on one item hang together; with many candidates, so many for each.
MOST_ITEMS, ITEMS_PER_CANDIDATE = 100_000, 20


class Judged(NamedTuple):
    """What is learned of judges: (M,), and the discrimination where it is not."""

    learns_discrimination: Truths
    learns_bias: Truths
    discrimination: Floats


def choose_judged(n_judges: int, n_known: int, discrimination: bool, bias: bool) -> Judged:
    """Return what is learned of judges, the last `n_known` of whom know.

    The discrimination of a single judge is the scale of the scores, and not learned.
    """
    known = np.arange(n_judges + n_known) >= n_judges
    learns = ~known & (discrimination and n_judges > 1)
    return Judged(learns, ~known & bias, np.where(known, KNOWN, 1.0))


def find_effects(data: Comparisons) -> tuple[Integers, Floats] | None:
    """Return the effect that each row shares with others (-1: none), and its sign; None if there are no families.

    Verdicts of one family on one pair (and item) share one, if there are several of them.
    """
    if data.group is None:
        return None
    low, high = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    parts = [data.group, low, high] if data.item is None else [data.group, low, high, data.item]
    key = join_codes(parts)
    _, code, count = np.unique(key, return_inverse=True, return_counts=True)
    shared = count > 1
    number = np.where(shared, np.cumsum(shared) - 1, -1)
    return number[code], np.where(data.left == low, 1.0, -1.0)


def join_codes(parts: list[Integers]) -> Integers:
    """Return one code for each combination of codes, in their order.

    >>> join_codes([np.array([0, 1, 1]), np.array([5, 0, 5])]).tolist()
    [0, 1, 2]
    """
    key, size = parts[0].astype(np.int64), int(parts[0].max(initial=0)) + 1
    for codes in parts[1:]:
        more = int(codes.max(initial=0)) + 1
        if size * more >= 1 << 62:  # too many for 64 bits: only those that occur are counted
            _, key = np.unique(key, return_inverse=True)
            size = int(key.max(initial=0)) + 1
        key, size = key * more + codes, size * more
    return np.asarray(np.unique(key, return_inverse=True)[1])


def count_verdicts(data: Comparisons, judged: Judged, *, by_item: bool = False) -> tuple[Cells, Integers]:
    """Return verdicts as counts, sorted by judge, and the item of each cell if they are kept apart by it."""
    effects = find_effects(data)
    parts: list[Integers] = [data.worker, data.left, data.right]
    if effects is not None:
        parts.append(effects[0] + 1)
    if by_item and data.item is not None:
        parts.append(data.item)
    code = join_codes(parts)
    n_cells = int(code.max(initial=-1)) + 1
    first = np.empty(n_cells, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    weight = data.weights
    n_left, n_right, n_tie = (
        sum_by(code, weight * (data.verdict == verdict), n_cells) for verdict in (LEFT, RIGHT, TIE)
    )
    cells = Cells(
        data.worker[first],
        data.left[first],
        data.right[first],
        n_left,
        n_right,
        n_tie,
        data.n_candidates,
        len(judged.discrimination),
        judged.learns_discrimination,
        judged.learns_bias,
        judged.discrimination,
    )
    if effects is not None:
        n_effects = int(effects[0].max(initial=-1)) + 1
        cells = replace(cells, effect=effects[0][first], sign=effects[1][first], n_effects=n_effects)
    return cells, np.zeros(0, np.int32) if data.item is None else data.item[first]


def join_known(data: Comparisons, known: Comparisons) -> Comparisons:
    """Return verdicts with known ones, on the same candidates, as those of one judge more, who knows.

    A known verdict is an item of its own, and belongs to no family.
    """
    n = known.n_comparisons
    item = None if data.item is None else np.append(data.item, data.n_items + np.arange(n)).astype(np.int32)
    group = None if data.group is None else np.append(data.group, len(data.groups) + np.arange(n)).astype(np.int32)
    return replace(
        data,
        left=np.append(data.left, known.left),
        right=np.append(data.right, known.right),
        verdict=np.append(data.verdict, known.verdict),
        worker=np.append(data.worker, np.full(n, data.n_workers, np.int32)),
        item=item,
        group=group,
        weight=None if data.weight is None and known.weight is None else np.append(data.weights, known.weights),
        order=None,
    )


def sample_items(data: Comparisons) -> Comparisons:
    """Return the verdicts on some items, evenly chosen, if there are more than enough to tell how they vary."""
    step = data.n_items // max(MOST_ITEMS, ITEMS_PER_CANDIDATE * data.n_candidates)
    if data.item is None or step < 2:
        return data
    rows = np.flatnonzero(data.item % step == 0)
    return replace(data.keep(rows), item=data.item[rows] // step)


def find_parts(data: Comparisons) -> Integers:
    """Return the part that each candidate belongs to: those that were compared, directly or through others.

    Parts are numbered by size, the largest first, and equal ones by their first candidate.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # which takes long to load

    n = data.n_candidates
    pairs = np.unique(data.left.astype(np.int64) * n + data.right)
    edges = coo_array((np.ones(len(pairs)), (pairs // n, pairs % n)), shape=(n, n))
    _, part = connected_components(edges, directed=False)
    sizes, first = np.bincount(part), np.unique(part, return_index=True)[1]
    number = np.empty(len(sizes), np.int64)
    number[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return np.asarray(number[part])
