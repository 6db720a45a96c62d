"""What ties the labels of items together: Markov chains, and networks whose edges mostly link items of one class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError, Sentence, plural
from ..kernels.types import Floats


def stationary_distribution(transition: Floats) -> Floats:
    """Return the distribution that a Markov chain keeps: the left eigenvector of eigenvalue 1.

    >>> stationary_distribution(np.array([[0.9, 0.1], [0.3, 0.7]])).round(6)
    array([0.75, 0.25])
    """
    n = len(transition)
    system = np.vstack([transition.T - np.eye(n), np.ones(n)])
    solution = np.linalg.lstsq(system, np.concatenate([np.zeros(n), [1.0]]), rcond=None)[0]
    # What rounding leaves of states that are never visited.
    solution = np.where(solution < n * np.finfo(float).eps, 0.0, solution)
    return np.asarray(solution / solution.sum())


def draw_edges(
    rng: np.random.Generator, truth: NDArray[np.int64], n_classes: int, n_edges: int, homophily: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of `n_edges` different edges of a stochastic block model.

    Each joins items of one class with probability `homophily`; within that, all pairs are equally likely.
    """
    sizes = np.bincount(truth, minlength=n_classes)
    by_class = np.argsort(truth, kind="stable")
    first = np.cumsum(sizes) - sizes
    a, b = np.triu_indices(n_classes, 1)
    room_within, room_between = sizes * (sizes - 1) // 2, sizes[a] * sizes[b]
    if not room_between.sum():
        homophily = 1.0  # there is but one class
    n_within = int(rng.binomial(n_edges, homophily))
    _check_room(n_within, int(room_within.sum()), "within classes", len(truth))
    _check_room(n_edges - n_within, int(room_between.sum()), "between classes", len(truth))

    pair = draw_subset(rng, n_within, int(room_within.sum()))
    k, pair = _find_part(pair, room_within)
    low, high = _unfold(pair)
    source, target = first[k] + low, first[k] + high

    pair = draw_subset(rng, n_edges - n_within, int(room_between.sum()))
    k, pair = _find_part(pair, room_between)
    low, high = np.divmod(pair, sizes[b[k]])
    source = np.concatenate([source, first[a[k]] + low])
    target = np.concatenate([target, first[b[k]] + high])
    return by_class[source], by_class[target]


def draw_subset(rng: np.random.Generator, size: int, total: int) -> NDArray[np.int64]:
    """Return `size` different numbers out of 0, 1, ..., total - 1, in order; any such set is as likely as another."""
    if 2 * size > total:
        left_out = draw_subset(rng, total - size, total)
        return np.delete(np.arange(total), left_out)
    found = np.empty(0, np.int64)
    while len(found) < size:
        found = np.sort(np.concatenate([found, rng.integers(0, total, size - len(found))]))
        found = found[np.append(True, found[1:] != found[:-1])]  # quicker than np.unique
    return found


def _check_room(wanted: int, room: int, where: str, n_items: int) -> None:
    if wanted > room:
        raise ParameterError(
            f"{plural(wanted, 'edge')} {where} would be needed, and {plural(n_items, 'item')} have only "
            f"{plural(room, 'pair')} {where}.",
            Sentence(f"Lower {{degree}}, or {'lower' if where.startswith('within') else 'raise'} {{homophily}}."),
        )


def _find_part(index: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return in which of consecutive parts each index falls, and where in it."""
    ends = np.cumsum(sizes)
    part = np.searchsorted(ends, index, side="right")
    return part, index - (ends - sizes)[part]


def _unfold(index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pair (low, high) that stands at each index of the list (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    high = ((1 + np.sqrt(1.0 + 8.0 * index)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > index
    high += high * (high + 1) // 2 <= index
    return index - high * (high - 1) // 2, high
