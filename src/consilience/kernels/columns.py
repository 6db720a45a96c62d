"""Hashes and orders of large columns.

Hashes of texts and of whole numbers are the same on every machine. Sorting and searching are linear in the number of
integers. NumPy does it where there are few, so that nothing need be compiled for them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import LARGE, Integers, read_only
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
    if keys.size < LARGE:
        return np.argsort(keys, kind="stable"), find_offsets(keys, n_keys)
    from scipy.sparse import csr_array

    # To columns from rows, each of which holds its own number: a sort by counting.
    rows = (np.arange(keys.size), keys, np.arange(keys.size + 1))
    columns = csr_array(rows, shape=(keys.size, n_keys)).tocsc()
    return columns.data, columns.indptr.astype(np.int64)


def find_offsets(keys: Integers, n_keys: int) -> Integers:
    """Return where each key 0..n_keys-1 begins among the sorted keys, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=n_keys))])
