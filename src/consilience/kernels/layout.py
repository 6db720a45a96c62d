"""Putting answers in order: counting sorts, compact codes, duplicate checks. All linear in the answers."""

from __future__ import annotations

import numpy as np

from .compile import kernel
from .types import Integers


@kernel
def order_by(keys: Integers, n_keys: int) -> tuple[Integers, Integers]:
    """Return (order, offsets): the stable order that sorts `keys`, and where each key 0..n_keys-1 begins in it."""
    offsets = np.zeros(n_keys + 1, np.int64)
    for i in range(keys.size):
        offsets[keys[i] + 1] += 1
    for key in range(n_keys):
        offsets[key + 1] += offsets[key]
    cursor = offsets[:-1].copy()
    order = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        order[cursor[keys[i]]] = i
        cursor[keys[i]] += 1
    return order, offsets


@kernel
def number_runs(first: Integers, second: Integers, order: Integers) -> tuple[Integers, Integers]:
    """Number the distinct pairs (first, second) met along `order`; return (number of each entry, first entry of each).

    Equal pairs must stand together in `order`.
    """
    number = np.empty(order.size, np.int64)
    begin = np.empty(order.size, np.int64)
    n = 0
    for j in range(order.size):
        i = order[j]
        if j == 0 or first[i] != first[order[j - 1]] or second[i] != second[order[j - 1]]:
            begin[n] = i
            n += 1
        number[i] = n - 1
    return number, begin[:n].copy()


@kernel
def compact_codes(codes: Integers, n_codes: int) -> tuple[Integers, Integers]:
    """Return (rows, local): the distinct codes in increasing order, and each code's index among them (int32)."""
    index = np.full(n_codes, -1, np.int32)
    for j in range(codes.size):
        index[codes[j]] = 0
    n = 0
    for code in range(n_codes):
        if index[code] == 0:
            index[code] = n
            n += 1
    rows = np.empty(n, np.int64)
    for code in range(n_codes):
        if index[code] >= 0:
            rows[index[code]] = code
    local = np.empty(codes.size, np.int32)
    for j in range(codes.size):
        local[j] = index[codes[j]]
    return rows, local


@kernel
def find_repeat(offsets: Integers, worker: Integers, n_workers: int) -> int:
    """Return the first answer whose worker already answered the same item, or -1."""
    last_item = np.full(n_workers, -1, np.int64)
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            if last_item[worker[j]] == i:
                return j
            last_item[worker[j]] = i
    return -1
