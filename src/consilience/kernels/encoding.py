"""Codes of large columns: which of the distinct values, in order of first appearance, each entry is.

Integers of a narrow range are looked up in a table of that range. All others have a *key* of 64 bits: integers are
their own keys, and texts have their hash. Rows are split into parts by key, so small that the hash table of a part
stays in the processor's cache. It finds the first row with the value of each row. These are then numbered in order, so
that codes depend neither on the parts nor on the number of threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from .compile import kernel
from .hashing import BASIS, Hashes, add_bytes
from .types import Codes, Integers, read_only

# A table of all integers in a range is made if the range is at most so many times as long as the column.
NARROW = 2
# About how many rows a part has, and how many parts there are at most: a power of two.
PART, MOST_PARTS = 1 << 14, 1 << 10


def encode_integers(values: NDArray[np.int64], n_threads: int) -> tuple[Codes, Integers]:
    """Return the code of each integer, and the row in which each distinct one comes first."""
    low, high = int(values.min()), int(values.max())
    if high - low >= NARROW * values.size:
        return _number(*_find_first(values.view(np.uint64), n_threads))
    codes, rows = np.empty(values.size, np.int32), np.empty(min(values.size, high - low + 1), np.int64)
    n_distinct = number_narrow(read_only(values), low, np.full(high - low + 1, -1, np.int32), codes, rows)
    return codes, rows[:n_distinct].copy()


def encode_texts(texts: NDArray[np.uint8], offsets: Integers, n_threads: int) -> tuple[Codes, Integers] | None:
    """Return what `encode_integers` does, of texts; None if two different ones have the same hash.

    Text i is the bytes texts[offsets[i]:offsets[i + 1]].
    """
    texts, offsets = read_only(texts), read_only(offsets)
    hashes = np.full(offsets.size - 1, BASIS)
    cuts = np.linspace(0, hashes.size, n_threads + 1).astype(int).tolist()

    def add_hashes(begin: int, end: int) -> None:
        add_bytes(texts, offsets[begin : end + 1], hashes[begin:end])

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(add_hashes, cuts[:-1], cuts[1:]))
        first, n_distinct = _find_first(hashes, n_threads)
        same = pool.map(lambda begin, end: are_same(texts, offsets, first, begin, end), cuts[:-1], cuts[1:])
        return _number(first, n_distinct) if all(list(same)) else None


def _find_first(keys: Hashes, n_threads: int) -> tuple[Codes, int]:
    """Return the first row that has the key of each row, and the number of distinct keys."""
    n_parts = min(1 << (keys.size // PART).bit_length(), MOST_PARTS)
    ends = np.zeros(n_parts + 1, np.int64)
    count_parts(read_only(keys), ends[1:])
    np.cumsum(ends, out=ends)
    rows, sorted_keys = np.empty(keys.size, np.int32), np.empty(keys.size, np.uint64)
    split_rows(read_only(keys), ends[:-1].copy(), rows, sorted_keys)
    first = np.empty(keys.size, np.int32)

    def work(part: int) -> int:
        here = slice(ends[part], ends[part + 1])
        return int(find_first(read_only(sorted_keys[here]), read_only(rows[here]), first))

    with ThreadPoolExecutor(n_threads) as pool:
        return first, sum(pool.map(work, range(n_parts)))


def _number(first: Codes, n_distinct: int) -> tuple[Codes, Integers]:
    """Return codes, in place of first rows, and the first row of each."""
    rows = np.empty(n_distinct, np.int64)
    number_in_order(first, rows)
    return first, rows


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
def spread(key: np.uint64) -> np.uint64:
    """Return a key whose every bit depends on all bits of the given one (the last steps of splitmix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def count_parts(keys: Hashes, counts: Integers) -> None:
    """Count the rows of each part: the upper half of a key that is spread says which part it is in."""
    mask = np.uint64(counts.size - 1)
    for i in range(keys.size):
        counts[np.int64((spread(keys[i]) >> np.uint64(32)) & mask)] += 1


@kernel
def split_rows(keys: Hashes, cursor: Integers, rows: Codes, sorted_keys: Hashes) -> None:
    """Write rows and keys of each part, in order; `cursor` says where the next row of each part goes."""
    mask = np.uint64(cursor.size - 1)
    for i in range(keys.size):
        part = np.int64((spread(keys[i]) >> np.uint64(32)) & mask)
        place = cursor[part]
        cursor[part] = place + 1
        rows[place] = i
        sorted_keys[place] = keys[i]


@kernel
def find_first(keys: Hashes, rows: Codes, first: Codes) -> int:
    """Write the first row with the key of each row of a part, and return how many distinct keys it has."""
    n_slots = 16
    while n_slots < 2 * keys.size:
        n_slots *= 2
    table, n_distinct = np.full(n_slots, -1, np.int32), 0
    for i in range(keys.size):
        slot = np.int64(spread(keys[i]) & np.uint64(n_slots - 1))
        while table[slot] >= 0 and keys[table[slot]] != keys[i]:
            slot = (slot + 1) & (n_slots - 1)
        if table[slot] < 0:
            table[slot] = i
            n_distinct += 1
        first[rows[i]] = rows[table[slot]]
    return n_distinct


@kernel
def are_same(texts: NDArray[np.uint8], offsets: Integers, first: Codes, begin: int, end: int) -> bool:
    """Tell whether the text of each of some rows is that of its first row."""
    for i in range(begin, end):
        here, there = offsets[i], offsets[first[i]]
        length = offsets[i + 1] - here
        if length != offsets[first[i] + 1] - there:
            return False
        for j in range(length):
            if texts[here + j] != texts[there + j]:
                return False
    return True


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
