"""Hashes and orders of large columns.

Hashes of texts and of whole numbers are the same on every machine. NumPy does it where there are few, so that nothing
need be compiled for them. Other kernels work on a part of the keys, so that threads share the work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import LARGE, Codes, Integers, Truths, read_only
from .compile import kernel

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


def mix_bits(hashes: Hashes) -> None:
    """Make every bit of hashes depend on all of their bits, in place, by the last steps of splitmix64."""
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)


@kernel
def find_first_rows(values: Integers, low: int, begin: int, end: int, row: int, first: Codes) -> None:
    """Write into first[v], unless it is there, the first row with values[i] = low + v, for begin <= v < end.

    Missing rows are -1. values[0] is in the row `row`.
    """
    for i in range(values.size):
        v = values[i] - low
        if begin <= v < end and first[v] < 0:
            first[v] = row + i


@kernel
def number_marked(values: Integers, low: int, marked: Truths, number: int, numbers: Codes) -> None:
    """Write number, number + 1, ... into numbers[values[i] - low] of the marked rows i."""
    for i in range(values.size):
        if marked[i]:
            numbers[values[i] - low] = number
            number += 1


@kernel
def recode(values: Integers, low: int, numbers: Codes, codes: Codes) -> None:
    """Write codes[i] = numbers[values[i] - low]."""
    for i in range(values.size):
        codes[i] = numbers[values[i] - low]


@kernel
def count_keys(keys: Integers, begin: int, end: int, counts: Integers) -> None:
    """Add 1 to counts[key] for each key with begin <= key < end."""
    for row in range(keys.size):
        key = keys[row]
        if begin <= key < end:
            counts[key] += 1


@kernel
def place_rows(keys: Integers, begin: int, end: int, places: Integers, order: Integers) -> None:
    """Write the number of each row with begin <= key < end into `order`, at the place of its key, which moves on."""
    for row in range(keys.size):
        key = keys[row]
        if begin <= key < end:
            order[places[key]] = row
            places[key] += 1


@kernel
def have_repeated(offsets: Integers, worker: Codes, begin: int, end: int, seen: Codes) -> bool:
    """Tell whether a worker has two answers to one of the items begin..end-1; `seen` (n_workers,) is -1 at first."""
    for i in range(begin, end):
        for j in range(offsets[i], offsets[i + 1]):
            if seen[worker[j]] == i:
                return True
            seen[worker[j]] = i
    return False
