"""Hashes and orders of large columns.

Hashes of texts and of whole numbers are the same on every machine. Sorting and searching are linear in the number of
integers. NumPy does it where there are few, so that nothing need be compiled for them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import Codes, Integers, read_only
from .compile import LARGE, kernel

Hashes = NDArray[np.uint64]

# 64-bit FNV-1a.
BASIS, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
# NumPy takes one step for each byte of the longest text.
LONG_TEXT = 500


def hash_texts(texts: NDArray[np.uint8], offsets: Integers) -> Hashes:
    """Return the FNV-1a hash of each text: text i is the bytes texts[offsets[i]:offsets[i + 1]].

    NumPy does it where there is little text, so that nothing need be compiled for it.
    """
    lengths = np.diff(offsets)
    hashes = np.full(lengths.size, BASIS)
    longest = int(lengths.max(initial=0))
    if lengths.sum() >= LARGE or longest > LONG_TEXT:
        add_bytes(read_only(texts), read_only(offsets), hashes)
        return hashes
    for place in range(longest):
        reached = np.flatnonzero(lengths > place)
        hashes[reached] = (hashes[reached] ^ texts[offsets[reached] + place]) * PRIME
    return hashes


@kernel
def add_bytes(texts: NDArray[np.uint8], offsets: Integers, hashes: Hashes) -> None:
    """Do what `hash_texts` says; hashes are BASIS at first."""
    for i in range(hashes.size):
        value = hashes[i]
        for j in range(offsets[i], offsets[i + 1]):
            value = (value ^ np.uint64(texts[j])) * PRIME
        hashes[i] = value


def scramble(hashes: Hashes) -> Hashes:
    """Return hashes whose every bit depends on all bits of those given."""
    mixed = hashes.copy()
    mix_bits(mixed)
    return mixed


def mix_bits(hashes: Hashes) -> None:
    """Do what `scramble` says in place, by the last steps of splitmix64."""
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)


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
