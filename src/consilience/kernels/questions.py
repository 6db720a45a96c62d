"""Whom to ask what: the kernels of `consilience.planning.questions`, which has the equations.

Workers are in the order in which ties are broken. `group` numbers them so that near-copies have the same number: of
each group one worker answers an item. The workers who must not be asked about item i are those of the groups of
``asked[offsets[i]:offsets[i + 1]]``.
"""

from __future__ import annotations

import math

import numpy as np

from . import Codes, Floats, Integers, Truths
from .compile import kernel

# Classes that are less probable are left out.
LEAST_CLASS = 1e-12
# Gains are rounded to so many parts of a nat: those that differ by rounding only are the same.
PARTS = 1e9

# Of all workers: their matrices and the entropies of their rows, what an answer costs, their groups, and how many more
# questions each may be asked.
Crew = tuple[Floats, Floats, Floats, Integers, Integers]
# Who must not be asked about each item; and scratch: mark (M,), -1 at first, and bounds (M,).
Asked = tuple[Integers, Codes, Integers, Floats]
# Neighbours of each item, the share of the item in the weight of the neighbour's edges, and their places.
Neighbours = tuple[Integers, Codes, Floats, Codes]
# Shortlists of workers with their values, the place of the first who can be asked, and whether values are up to date.
Lists = tuple[Codes, Floats, Integers, Truths]


@kernel
def first_gain(q: Floats, confusion: Floats, row_entropy: Floats) -> float:
    """Return I(y; a) in nats for the class probabilities q and a worker's matrix (K, A)."""
    total = 0.0
    for a in range(confusion.shape[1]):
        p = 0.0
        for k in range(q.size):
            if q[k] > LEAST_CLASS:
                p += q[k] * confusion[k, a]
        if p > 0.0:
            total -= p * math.log(p)
    for k in range(q.size):
        if q[k] > LEAST_CLASS:
            total -= q[k] * row_entropy[k]
    return math.floor(max(total, 0.0) * PARTS + 0.5) / PARTS


@kernel
def later_gain(outcomes: Floats, confusion: Floats, row_entropy: Floats) -> float:
    """Return I(y; a | answers to come): row r of outcomes (R, K) is P(these answers, y = k)."""
    total = 0.0
    for r in range(outcomes.shape[0]):
        whole = 0.0
        for k in range(outcomes.shape[1]):
            whole += outcomes[r, k]
            total -= outcomes[r, k] * row_entropy[k]
        if whole <= 0.0:
            continue
        for a in range(confusion.shape[1]):
            p = 0.0
            for k in range(outcomes.shape[1]):
                p += outcomes[r, k] * confusion[k, a]
            if p > 0.0:
                total -= p * math.log(p / whole)
    return math.floor(max(total, 0.0) * PARTS + 0.5) / PARTS


@kernel
def bound_gains(q: Floats, slopes: Floats, bounds: Floats) -> None:
    """Write an upper bound of the gain per cost of each worker into `bounds`; slopes are (K, M)."""
    for m in range(bounds.size):
        bounds[m] = 1.0 / PARTS
    for k in range(q.size):
        if q[k] > LEAST_CLASS:
            for m in range(bounds.size):
                bounds[m] += q[k] * slopes[k, m]


@kernel
def find_best(
    items: Integers,
    cells: Integers,
    posterior: Floats,
    slopes: Floats,
    confusion: Floats,
    row_entropy: Floats,
    cost: Floats,
    group: Integers,
    offsets: Integers,
    asked: Codes,
    best: Floats,
) -> None:
    """Write the largest gain per cost of a first question about each of the items into `best`; 0 if there is none.

    The gain per cost of worker m is at most q . slopes[c, :, m] for any cell c, and close to it for the item's own.
    """
    n_workers = cost.size
    mark, bounds = np.full(n_workers, -1), np.zeros(n_workers)
    for j in range(items.size):
        i = items[j]
        for t in range(offsets[i], offsets[i + 1]):
            mark[group[asked[t]]] = i
        bound_gains(posterior[i], slopes[cells[j]], bounds)
        top = 0.0
        for m in range(n_workers):
            if bounds[m] > top and mark[group[m]] != i:
                top = max(top, first_gain(posterior[i], confusion[m], row_entropy[m]) / cost[m])
        best[j] = top


@kernel
def insert(workers: Codes, values: Floats, size: int, worker: int, value: float) -> None:
    """Put a worker into its place in a list by value, of which so many entries are in order, and the last may go."""
    at = min(size, values.size - 1)
    while at > 0 and (values[at - 1] < value or (values[at - 1] == value and workers[at - 1] > worker)):
        values[at], workers[at] = values[at - 1], workers[at - 1]
        at -= 1
    values[at], workers[at] = value, worker


@kernel
def add_answer(outcomes: Floats, confusion: Floats, most: int) -> Floats:
    """Return the outcomes with one more answer; beyond `most` of them, the least probable are taken together."""
    n_before, n_classes = outcomes.shape
    n_labels = confusion.shape[1]
    size = n_before * n_labels
    result, total = np.zeros((size, n_classes)), np.zeros(size)
    high = 0.0
    for r in range(n_before):
        for a in range(n_labels):
            here = r * n_labels + a
            for k in range(n_classes):
                result[here, k] = outcomes[r, k] * confusion[k, a]
                total[here] += result[here, k]
            high = max(high, total[here])
    if size <= most:
        return result
    low = 0.0  # more than `high` are fewer than `most`
    for _ in range(50):
        middle, n_above = 0.5 * (low + high), 0
        for here in range(size):
            n_above += total[here] > middle
        if n_above < most:
            high = middle
        else:
            low = middle
    kept, n_kept = np.zeros((most, n_classes)), 0
    for here in range(size):
        row = most - 1
        if total[here] > high:
            row = n_kept
            n_kept += 1
        for k in range(n_classes):
            kept[row, k] += result[here, k]
    return kept


def choose(
    items: Integers,
    cells: Integers,
    best: Floats,
    posterior: Floats,
    slopes: Floats,
    confusion: Floats,
    row_entropy: Floats,
    cost: Floats,
    group: Integers,
    offsets: Integers,
    asked: Codes,
    near_offsets: Integers,
    near: Codes,
    near_share: Floats,
    place: Codes,
    crowding: Floats,
    n_short: int,
    most: int,
    left: Integers,
    budget: float,
    n_pending: int,
    chosen: Integers,
    gains: Floats,
) -> int:
    """Choose questions one after the other; return how many there are, with those that are pending.

    Each item has the gain per cost that it had when it was last looked at. Gains only fall, so that the item with the
    largest is chosen if it is up to date, and brought up to date otherwise.

    Parameters
    ----------
    items, cells : array of int (C,)
        The items to ask about, in the order in which ties are broken, and their cells.
    best : array (C,)
        The largest gain per cost of a first question.
    posterior, slopes, confusion, row_entropy, cost, group, offsets, asked
        As for `find_best`.
    near_offsets, near, near_share : arrays
        Neighbours of each item, and the share that the item has in the weight of the neighbour's edges.
    place : array of int (N,)
        The place of each item among `items`, -1 for the others.
    crowding : array (C,)
        1 + the questions about neighbours that are pending, by their share; it is changed.
    n_short, most : int
        The length of shortlists; the most outcomes of earlier answers to tell apart.
    left : array of int (M,)
        How many questions each worker may be asked; it is changed.
    budget : float
        How much the questions may cost.
    n_pending : int
        How many questions were asked before, whose answers are to come. They are the first of `chosen`.
    chosen : array of int (n_pending + n, 2)
        Takes the place in `items` and the worker of each question.
    gains : array (n_pending + n,)
        Takes their gains.
    """
    n_items, n_workers = items.size, cost.size
    # The best workers for each item, by what their answers add to those of the questions that are chosen.
    shortlists, values = np.zeros((n_items, n_short), np.int32), np.zeros((n_items, n_short))
    lists = (shortlists, values, np.full(n_items, n_short), np.zeros(n_items, np.bool_))
    links = (np.full(n_items, -1), np.full(len(chosen), -1))  # the questions about each item, as linked lists
    crew = (confusion, row_entropy, cost, group, left)
    neighbours = (near_offsets, near, near_share, place)
    open_to = (offsets, asked, np.full(n_workers, -1), np.zeros(n_workers))
    questions = (chosen, gains, n_pending, budget, most)
    keys = best.copy()
    return int(
        choose_in_turn(
            items, cells, keys, posterior, slopes, crew, open_to, neighbours, crowding, lists, links, questions
        )
    )


@kernel
def choose_in_turn(
    items: Integers,
    cells: Integers,
    keys: Floats,
    posterior: Floats,
    slopes: Floats,
    crew: Crew,
    open_to: Asked,
    neighbours: Neighbours,
    crowding: Floats,
    lists: Lists,
    links: tuple[Integers, Integers],
    questions: tuple[Integers, Floats, int, float, int],
) -> int:
    """Do what `choose` says. `keys` are `best` at first, and 0 once nothing is to be asked about an item."""
    (shortlists, values, at, priced), (last, before), cost, left = lists, links, crew[2], crew[4]
    chosen, gains, n_pending, budget, most = questions
    n_chosen, n_short = n_pending, values.shape[1]
    for question in range(n_pending):
        before[question], last[chosen[question, 0]] = last[chosen[question, 0]], question
    while n_chosen < len(chosen) and keys.size > 0:
        c = keys.argmax()
        if keys[c] <= 0.0:
            break
        i = items[c]
        if priced[c]:
            at[c] = find_free(shortlists[c], values[c], at[c], cost, left, budget)
            if at[c] < n_short and values[c, at[c]] > 0.0:
                key = values[c, at[c]] / crowding[c]
                if key < keys[c]:
                    keys[c] = key
                    continue
                m = shortlists[c, at[c]]
                chosen[n_chosen, 0], chosen[n_chosen, 1], gains[n_chosen] = c, m, values[c, at[c]] * cost[m]
                before[n_chosen], last[c] = last[c], n_chosen
                n_chosen += 1
                left[m] -= 1
                budget -= cost[m]
                priced[c] = False
                crowd_neighbours(i, neighbours, crowding)
                continue
        item = (i, last[c], n_short if not priced[c] and at[c] < n_short else 0)
        there = (shortlists[c], values[c], budget)
        n_there = renew_shortlist(item, there, posterior, slopes[cells[c]], crew, open_to, chosen, before, most)
        at[c], priced[c] = 0, True
        keys[c] = values[c, 0] / crowding[c] if n_there > 0 else 0.0
    return n_chosen


@kernel
def find_free(workers: Codes, values: Floats, at: int, cost: Floats, left: Integers, budget: float) -> int:
    """Return the first place on a shortlist, from `at` on, of a worker who can be asked or who would add nothing."""
    while at < values.size and values[at] > 0.0 and not (left[workers[at]] > 0 and cost[workers[at]] <= budget):
        at += 1
    return at


@kernel
def crowd_neighbours(i: int, neighbours: Neighbours, crowding: Floats) -> None:
    """Take note at the neighbours of an item that a question about it is pending."""
    near_offsets, near, near_share, place = neighbours
    for t in range(near_offsets[i], near_offsets[i + 1]):
        if place[near[t]] >= 0:
            crowding[place[near[t]]] += near_share[t]


@kernel
def renew_shortlist(
    item: tuple[int, int, int],
    there: tuple[Codes, Floats, float],
    posterior: Floats,
    slopes: Floats,
    crew: Crew,
    open_to: Asked,
    chosen: Integers,
    before: Integers,
    most: int,
) -> int:
    """Work out what the workers on the shortlist of an item would add; if none of them can be asked, make a new one.

    `item` is its number, its last question or -1, and how many entries of the list may be kept; `there` the list, its
    values, and the budget. Returns how many entries there are.
    """
    (i, last, n_kept), (workers, values, budget), (offsets, asked, mark, bounds) = item, there, open_to
    confusion, row_entropy, cost, group, left = crew
    n_short = values.size
    for t in range(offsets[i], offsets[i + 1]):
        mark[group[asked[t]]] = i
    outcomes = np.zeros((1, posterior.shape[1]))
    for k in range(posterior.shape[1]):
        outcomes[0, k] = posterior[i, k]
    question = last
    while question >= 0:
        outcomes = add_answer(outcomes, confusion[chosen[question, 1]], most)
        mark[group[chosen[question, 1]]] = i
        question = before[question]
    n_there = 0
    for s in range(n_kept):
        m = workers[s]
        if values[s] > 0.0 and left[m] > 0 and cost[m] <= budget and mark[group[m]] != i:
            workers[n_there] = m
            n_there += 1
    if n_there == 0:
        bound_gains(posterior[i], slopes, bounds)
        for m in range(cost.size):
            if left[m] <= 0 or cost[m] > budget or mark[group[m]] == i:
                continue
            if n_there == n_short and bounds[m] <= values[n_short - 1]:
                continue
            value = first_gain(posterior[i], confusion[m], row_entropy[m]) / cost[m]
            if value > 0.0 and (n_there < n_short or value > values[n_short - 1]):
                insert(workers, values, n_there, m, value)
                n_there = min(n_there + 1, n_short)
    if last >= 0:
        for s in range(n_there):
            m = workers[s]
            insert(workers, values, s, m, later_gain(outcomes, confusion[m], row_entropy[m]) / cost[m])
    for s in range(n_there, n_short):
        values[s] = 0.0
    return n_there
