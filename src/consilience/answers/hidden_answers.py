"""Answers that are hidden from a fit, so that it can be judged by them.

What is hidden is a *unit*: a worker's whole vote on an item, or all answers of a worker in a sequence, since
neighbouring answers are alike and would give each other away. Where near-copies count once, they are one worker here:
the answers of a whole group are hidden together. Which units are hidden depends on the seed and on the ids of worker
and item (or sequence), and on nothing else; see `consilience.answers.hashing` for what this promises.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Indices
from ..errors import InputError
from ..kernels.types import Truths
from .hashing import Hashes, draw_numbers, hash_ids, hash_items
from .responses import Responses

# How many times as many units as are hidden the sample has from which they are drawn.
SPARE = 10


def hide_answers(
    r: Responses, fraction: float, seed: int, n_folds: int = 1, n_all: int | None = None
) -> Iterator[tuple[Truths, Indices]]:
    """Yield, for each fold, which answers to hide, and the unit (0, 1, ...) that each hidden answer belongs to.

    Folds hide different units; there are fewer of them where the units do not suffice.

    Parameters
    ----------
    r : Responses
        The answers.
    fraction : float
        Share of the units to hide: the nearest whole number of them, at least one, and never all.
    seed : int
        Another seed hides other units.
    n_folds : int
        How many times to hide that many.
    n_all : int, optional
        If the answers are a sample of `sample_units` already: the number of units in all, of which the fraction is.
    """
    n_units = count_units(r)
    if n_units < 2:
        raise InputError("There is nothing to hide: the answers are all of one unit. Give more answers.")
    n_hidden, n_folds = count_hidden(n_units if n_all is None else n_all, fraction, n_folds)
    unit_of_answer, first = (None, None) if are_alone(r) else find_units(r)
    hashes = hash_owners(r)
    wanted = n_hidden * n_folds
    eligible = sample_units(r, first, hashes, seed, wanted) if n_all is None else np.arange(n_units)
    answer = eligible if first is None else first[eligible]
    # The units with the smallest numbers are the first fold, those with the next ones the second, and so on.
    ends = n_hidden * np.arange(1, n_folds + 1)
    numbers = draw_numbers(seed, hashes[find_owners(r, answer)], hash_ids(r.workers)[find_leaders(r, answer)])
    sorted_in_folds = eligible[np.argpartition(numbers, np.minimum(ends, len(eligible) - 1))]
    for end in ends:
        if unit_of_answer is None:
            hidden = np.zeros(n_units, bool)
            hidden[sorted_in_folds[end - n_hidden : end]] = True
            yield hidden, np.arange(n_hidden)
            continue
        chosen = np.full(n_units, -1, np.int64)
        chosen[np.sort(sorted_in_folds[end - n_hidden : end])] = np.arange(n_hidden)
        unit = chosen[unit_of_answer]
        yield unit >= 0, unit[unit >= 0]


def count_hidden(n_units: int, fraction: float, n_folds: int) -> tuple[int, int]:
    """Return how many units to hide at a time, and how often.

    >>> count_hidden(1000, 0.1, 3), count_hidden(2, 0.9, 3)
    ((100, 3), (1, 2))
    """
    n_hidden = min(max(1, round(fraction * n_units)), n_units - 1)
    return n_hidden, min(n_folds, n_units // n_hidden)


def hide_items(r: Responses, n_parts: int, enough: int, seed: int, known: Truths | None = None) -> Iterator[Truths]:
    """Yield, for each fold, the answers to hide: all answers to some items.

    Parameters
    ----------
    r : Responses
        The answers.
    n_parts : int
        Each fold hides this part of the items that have answers.
    enough : int
        How many items to hide in all: there are as many folds as it takes, and at most `n_parts`.
    seed : int
        Another seed hides other items.
    known : array of bool, optional
        Items that are not hidden, since their label is known.
    """
    answered = np.diff(r.offsets) > 0
    items = np.flatnonzero(answered if known is None else answered & ~known)
    items = items[np.argsort(draw_numbers(seed, hash_items(r.keys, items)), kind="stable")]
    n_hidden = len(items) // n_parts
    n_folds = min(n_parts, -(-enough // n_hidden)) if n_hidden else 0
    for fold in range(n_folds):
        hidden = np.zeros(r.n_items, bool)
        hidden[items[fold * n_hidden : (fold + 1) * n_hidden]] = True
        yield hidden[r.item_of_answer()]


def find_units(r: Responses) -> tuple[Indices, Indices]:
    """Return the unit (0, 1, ...) of each answer, and the first answer of each unit."""
    every = np.arange(r.n_responses)
    if are_alone(r):
        return every, every
    item = r.item_of_answer()
    owner = item if r.sequences is None else r.sequences.of_items()[item]
    codes = owner * r.n_workers + find_leaders(r, every)
    _, first, unit = np.unique(codes, return_index=True, return_inverse=True)
    return unit, first


def find_leaders(r: Responses, answers: Indices) -> NDArray[np.integer]:
    """Return the worker of each of these answers; for workers who count once together, always the same one."""
    worker = r.worker[answers]
    return worker if r.leader is None else r.leader[worker]


def are_alone(r: Responses) -> bool:
    """Tell whether each answer is a unit."""
    return r.sequences is None and r.weight is None and r.leader is None


def sample_units(r: Responses, first: Indices | None, hashes: Hashes, seed: int, n_wanted: int) -> Indices:
    """Return the units of a random sample of the items, from which `n_wanted` units can be drawn.

    It is `SPARE` times as large, so that most answers to an item stay. To draw from all units would take longer. The
    units of sequences are all in the sample.

    Parameters
    ----------
    r : Responses
        The answers.
    first : array (n_units,) or None
        The first answer of each unit; None if each answer is a unit.
    hashes : array
        Of the ids of all items, or sequences.
    seed, n_wanted : int
        Another seed samples other units.
    """
    n_units = r.n_responses if first is None else len(first)
    n_sampled = count_sampled(n_wanted, len(hashes), n_units)
    if r.sequences is None and n_sampled < len(hashes):
        numbers = draw_numbers(seed, hashes)
        sampled = numbers <= np.partition(numbers, n_sampled)[n_sampled]
        if first is None:
            eligible, _ = r.answers_about(np.flatnonzero(sampled))
        else:
            eligible = np.flatnonzero(sampled[find_owners(r, first)])
        if len(eligible) >= n_wanted:
            return eligible
    return np.arange(n_units)


def count_sampled(n_wanted: int, n_items: int, n_units: int) -> int:
    """Return how many items to sample, so that they have `SPARE` times as many units as are wanted."""
    return SPARE * n_wanted * n_items // n_units


def hash_owners(r: Responses) -> Hashes:
    """Return the hashes of all items, or sequences."""
    return hash_items(r.keys) if r.sequences is None else hash_ids(r.sequences.ids)


def count_units(r: Responses) -> int:
    """Return how many units could be hidden."""
    return r.n_responses if are_alone(r) else len(find_units(r)[1])


def find_owners(r: Responses, answers: Indices) -> Indices:
    """Return the item, or the sequence, that each of some answers is about."""
    item = r.items_of(answers)
    return item if r.sequences is None else r.sequences.of_items()[item]
