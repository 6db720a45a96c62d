"""Sorting, checking and searching, linear in the number of integers.

NumPy does it where there are few, so that nothing need be compiled for them.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .compile import LARGE, kernel
from .types import Codes, Integers, read_only


def order_by(keys: Integers, n_keys: int) -> tuple[Integers, Integers]:
    """Return (order, offsets): the stable order that sorts `keys`, and where each key 0..n_keys-1 begins in it."""
    offsets = find_offsets(keys, n_keys)
    if keys.size < LARGE:
        return np.argsort(keys, kind="stable"), offsets
    order = np.empty(keys.size, np.int64)
    sort_by_counting(read_only(keys), offsets[:-1].copy(), order)
    return order, offsets


def find_offsets(keys: Integers, n_keys: int) -> Integers:
    """Return where each key 0..n_keys-1 begins among the sorted keys, and where the last one ends."""
    offsets = np.zeros(n_keys + 1, np.int64)
    if keys.size < LARGE:
        offsets[1:] = np.bincount(keys, minlength=n_keys)
    else:
        count_keys(read_only(keys), offsets[1:])  # `np.bincount` would copy keys of 32 bits
    return np.cumsum(offsets, out=offsets)


@kernel
def count_keys(keys: Integers, counts: Integers) -> None:
    """Add to counts[k] how often key k occurs."""
    for i in range(keys.size):
        counts[keys[i]] += 1


def group_answers(item: Integers, n_items: int, worker: Codes, label: Codes) -> tuple[Codes, Codes, Integers]:
    """Return workers and labels in the order of `order_by(item, n_items)`, and where the answers to each item begin."""
    if item.size < LARGE:
        order, offsets = order_by(item, n_items)
        return worker[order], label[order], offsets
    offsets = find_offsets(item, n_items)
    moved = np.empty_like(worker), np.empty_like(label)
    move_answers(read_only(item), read_only(worker), read_only(label), offsets[:-1].copy(), *moved)
    return *moved, offsets


@kernel
def move_answers(
    item: Integers, worker: Codes, label: Codes, cursor: Integers, new_worker: Codes, new_label: Codes
) -> None:
    """Move each answer to the place that `cursor` has for the next answer to its item."""
    for i in range(item.size):
        place = cursor[item[i]]
        cursor[item[i]] = place + 1
        new_worker[place] = worker[i]
        new_label[place] = label[i]


@kernel
def sort_by_counting(keys: Integers, cursor: Integers, order: Integers) -> None:
    """Write the stable order that sorts `keys`; `cursor` says where each key begins in it, and is used up."""
    for i in range(keys.size):
        order[cursor[keys[i]]] = i
        cursor[keys[i]] += 1


def number_runs(first: Integers, second: Integers, order: Integers) -> tuple[Integers, Integers]:
    """Number the distinct pairs (first, second) met along `order`; return (number of each entry, first entry of each).

    Equal pairs must stand together in `order`.
    """
    a, b = first[order], second[order]
    begins = np.ones(order.size, bool)
    begins[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    number = np.empty(order.size, np.int64)
    number[order] = np.cumsum(begins) - 1
    return number, order[begins]


def find_repeat(offsets: Integers, worker: Integers, n_workers: int) -> int:
    """Return the first answer whose worker already answered the same item, or -1."""
    if worker.size >= LARGE:
        return int(scan_for_repeat(offsets, read_only(worker), np.full(n_workers, -1)))
    item = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    again = np.ones(worker.size, bool)
    again[np.unique(item * n_workers + worker, return_index=True)[1]] = False
    return int(again.argmax()) if again.any() else -1


@kernel
def scan_for_repeat(offsets: Integers, worker: Integers, last_item: Integers) -> int:
    """Do what `find_repeat` says; `last_item` is -1 for each worker at first."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            if last_item[worker[j]] == i:
                return j
            last_item[worker[j]] = i
    return -1


def find_levels(offsets: Integers, neighbours: Integers, starts: Integers) -> tuple[Integers, int]:
    """Search a graph breadth first; return the level of each node, and the number of components.

    Node i has the neighbours neighbours[offsets[i]:offsets[i + 1]]. Components begin at the node that comes first in
    `starts`, which is one level above all of the components before, and its neighbours are one level above it.
    """
    levels, queue = np.full(offsets.size - 1, -1), np.zeros(offsets.size - 1, np.int64)
    # Python does it where there are few edges.
    search = number_levels if neighbours.size >= LARGE else cast(Any, number_levels).py_func
    return levels, int(search(read_only(offsets), read_only(neighbours), read_only(starts), levels, queue))


@kernel
def number_levels(offsets: Integers, neighbours: Integers, starts: Integers, levels: Integers, queue: Integers) -> int:
    """Write what `find_levels` says, and return the number of components; levels are -1 at first. Scratch: queue."""
    n_components, n_levels, end = 0, 0, 0
    for start in starts:
        if levels[start] >= 0:
            continue
        n_components += 1
        levels[start] = n_levels
        head = end
        queue[end] = start
        end += 1
        while head < end:
            i = queue[head]
            head += 1
            for e in range(offsets[i], offsets[i + 1]):
                j = neighbours[e]
                if levels[j] < 0:
                    levels[j] = levels[i] + 1
                    queue[end] = j
                    end += 1
        n_levels = levels[queue[end - 1]] + 1
    return n_components


@kernel
def pick_colours(
    offsets: Integers,
    neighbours: Integers,
    order: Integers,
    rank: Integers,
    together: int,
    colours: Integers,
    taken: Integers,
) -> None:
    """Write the colour of each node along `order`: the first that no earlier neighbour of the same run has.

    Runs are `together` nodes long, and rank[order[p]] = p. Scratch: taken, longer than the largest degree, and -1.
    """
    for p in range(order.size):
        i = order[p]
        begin = p // together * together
        for e in range(offsets[i], offsets[i + 1]):
            r = rank[neighbours[e]]
            if begin <= r < p:
                taken[colours[r]] = p
        colour = 0
        while taken[colour] == p:
            colour += 1
        colours[p] = colour


@kernel
def split_at_neighbours(offsets: Integers, neighbours: Integers, bounds: Integers) -> int:
    """Write where runs of nodes begin that have no neighbours among them, each as long as can be; return their number.

    The neighbours of each node must be sorted. bounds must have room for each node and one more.
    """
    n_runs, begin = 0, 0
    bounds[0] = 0
    for i in range(offsets.size - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            if j >= i:
                break
            if j >= begin:
                n_runs += 1
                begin = i
                bounds[n_runs] = i
                break
    bounds[n_runs + 1] = offsets.size - 1
    return n_runs + 1
