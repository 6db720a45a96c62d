"""Sorting and checking of integer keys, linear in their number.

NumPy does it where there are few, so that nothing need be compiled for them.
"""

from __future__ import annotations

import numpy as np

from .compile import LARGE, kernel
from .types import Integers, read_only


def order_by(keys: Integers, n_keys: int) -> tuple[Integers, Integers]:
    """Return (order, offsets): the stable order that sorts `keys`, and where each key 0..n_keys-1 begins in it."""
    offsets = np.zeros(n_keys + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n_keys), out=offsets[1:])
    if keys.size < LARGE:
        return np.argsort(keys, kind="stable"), offsets
    order = np.empty(keys.size, np.int64)
    sort_by_counting(read_only(keys), offsets[:-1].copy(), order)
    return order, offsets


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
