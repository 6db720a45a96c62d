"""Codes, hashes and orders of large columns.

A code tells which of the distinct values, as they first appear, an entry is. Integers of a narrow range are looked up
in a table of that range. All others, and short texts, are *words* of 64 bits: an integer is one word, and a text two,
the last byte of which is its length. Rows are split into parts by a hash of their words, so small that the hash table
of a part stays in the processor's cache. It finds the first row with the words of each row. These are then numbered in
order, so that codes depend neither on the parts nor on the number of threads.

Hashes of texts and of whole numbers are the same on every machine.

Sorting and searching are linear in the number of integers. NumPy does it where there are few, so that nothing need be
compiled for them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from . import Codes, Integers, Width, read_only
from .compile import LARGE, kernel

Words = NDArray[np.uint64]
Hashes = NDArray[np.uint64]

# A table of all integers in a range is made if the range is at most so many times as long as the column.
NARROW = 2
# The most bytes of a text that fit into two words beside its length.
SHORT = 15
# About how many rows a part has, and how many parts there are at most: a power of two.
PART, MOST_PARTS = 1 << 14, 1 << 10
# 64-bit FNV-1a.
BASIS, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
# NumPy takes one step for each byte of the longest text.
LONG_TEXT = 500


def encode_integers(values: NDArray[np.int64], n_threads: int) -> tuple[Codes, Integers]:
    """Return the code of each integer, and the row in which each distinct one comes first."""
    low, high = int(values.min()), int(values.max())
    if high - low >= NARROW * values.size:
        return _encode_words(values.view(np.uint64)[:, None], n_threads)
    codes, rows = np.empty(values.size, np.int32), np.empty(min(values.size, high - low + 1), np.int64)
    n_distinct = number_narrow(read_only(values), low, np.full(high - low + 1, -1, np.int32), codes, rows)
    return codes, rows[:n_distinct].copy()


def encode_texts(texts: NDArray[np.uint8], offsets: Integers, n_threads: int) -> tuple[Codes, Integers]:
    """Return what `encode_integers` does, of texts of at most `SHORT` bytes.

    Text i is the bytes texts[offsets[i]:offsets[i + 1]].

    Examples
    --------
    >>> encode_texts(np.frombuffer(b"abbab", np.uint8), np.array([0, 1, 3, 4, 5]), 1)
    (array([0, 1, 0, 2], dtype=int32), array([0, 1, 3]))
    """
    words = np.empty((offsets.size - 1, 2), np.uint64)
    pack_texts(read_only(texts), read_only(offsets), words)
    return _encode_words(words, n_threads)


def _encode_words(words: Words, n_threads: int) -> tuple[Codes, Integers]:
    n_rows, width, words = len(words), (0,) * words.shape[1], read_only(words)
    n_parts = min(1 << (n_rows // PART).bit_length(), MOST_PARTS)
    ends = np.zeros(n_parts + 1, np.int64)
    count_parts(words, ends[1:], width)
    np.cumsum(ends, out=ends)
    rows, moved, first = np.empty(n_rows, np.int32), np.empty(words.shape, np.uint64), np.empty(n_rows, np.int32)
    split_rows(words, ends[:-1].copy(), rows, moved, width)

    def work(part: int) -> int:
        here = slice(ends[part], ends[part + 1])
        return int(find_first(read_only(moved[here]), read_only(rows[here]), first, width))

    with ThreadPoolExecutor(n_threads) as pool:
        first_rows = np.empty(sum(pool.map(work, range(n_parts))), np.int64)
    number_in_order(first, first_rows)
    return first, first_rows


@kernel
def number_narrow(values: Integers, low: int, code_of: Codes, codes: Codes, rows: Integers) -> int:
    """Write codes and first rows, and return how many distinct values there are; `code_of` is -1 at first."""
    n_distinct = 0
    for i in range(values.size):
        place = values[i] - low
        code = code_of[place]
        if code < 0:
            code = n_distinct
            code_of[place] = code
            rows[code] = i
            n_distinct += 1
        codes[i] = code
    return n_distinct


@kernel
def pack_texts(texts: NDArray[np.uint8], offsets: Integers, words: Words) -> None:
    """Write two words for each text: its bytes, and its length."""
    for i in range(offsets.size - 1):
        begin, length = offsets[i], offsets[i + 1] - offsets[i]
        low, high = np.uint64(0), np.uint64(length) << np.uint64(56)
        for j in range(length):
            byte = np.uint64(texts[begin + j]) << np.uint64(8 * (j % 8))
            if j < 8:
                low |= byte
            else:
                high |= byte
        words[i, 0], words[i, 1] = low, high


@kernel
def mix(words: Words, i: int, width: Width) -> np.uint64:
    """Return a hash of the words of a row, every bit of which depends on all of theirs (the steps of splitmix64)."""
    mixed = np.uint64(0)
    for w in range(len(width)):
        mixed = (mixed + np.uint64(0x9E3779B97F4A7C15)) ^ words[i, w]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed


@kernel
def count_parts(words: Words, counts: Integers, width: Width) -> None:
    """Count the rows of each part: the upper half of the hash says which part a row is in."""
    mask = np.uint64(counts.size - 1)
    for i in range(words.shape[0]):
        counts[np.int64((mix(words, i, width) >> np.uint64(32)) & mask)] += 1


@kernel
def split_rows(words: Words, cursor: Integers, rows: Codes, moved: Words, width: Width) -> None:
    """Write rows and words of each part, in order; `cursor` says where the next row of each part goes."""
    mask = np.uint64(cursor.size - 1)
    for i in range(words.shape[0]):
        part = np.int64((mix(words, i, width) >> np.uint64(32)) & mask)
        place = cursor[part]
        cursor[part] = place + 1
        rows[place] = i
        for w in range(len(width)):
            moved[place, w] = words[i, w]


@kernel
def find_first(words: Words, rows: Codes, first: Codes, width: Width) -> int:
    """Write the first row with the words of each row of a part, and return how many distinct rows it has."""
    n_slots = 16
    while n_slots < 2 * rows.size:
        n_slots *= 2
    last = len(width) - 1
    table, n_distinct = np.full(n_slots, -1, np.int32), 0
    for i in range(rows.size):
        slot = np.int64(mix(words, i, width) & np.uint64(n_slots - 1))
        while table[slot] >= 0:
            j = table[slot]
            if words[j, 0] == words[i, 0] and words[j, last] == words[i, last]:
                break
            slot = (slot + 1) & (n_slots - 1)
        if table[slot] < 0:
            table[slot] = i
            n_distinct += 1
        first[rows[i]] = rows[table[slot]]
    return n_distinct


@kernel
def number_in_order(first: Codes, rows: Integers) -> None:
    """Replace first rows by codes, and write the row in which each code comes first."""
    n_distinct = 0
    for i in range(first.size):
        if first[i] == i:
            rows[n_distinct] = i
            first[i] = n_distinct
            n_distinct += 1
        else:
            first[i] = first[first[i]]


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
