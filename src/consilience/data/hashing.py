"""Numbers that look random and depend on ids alone: chance that is the same whatever the order and type of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .vocabulary import Column, Values, spell_surrogates, to_column, to_values

Hashes = NDArray[np.uint64]

# Of the polynomial in the bytes of a text, odd so that powers do not vanish, and of the mixing of `splitmix64`.
_BASE = np.uint64(0x100000001B3)
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def hash_values(values: Values | Column) -> Hashes:
    """Return a number for each value, which depends on the text of the value alone.

    >>> first, second = hash_values(np.array([7, 8], np.int8)), hash_values(["8", "7"])
    >>> bool((first == second[::-1]).all())
    True
    """
    texts = _to_texts(to_column(values))
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    sums = np.zeros(len(texts), np.uint64)
    if len(data):
        place = np.arange(len(data)) - np.repeat(offsets[:-1] - offsets[0], lengths)
        powers = np.full(int(lengths.max()), _BASE).cumprod(dtype=np.uint64)
        said = np.flatnonzero(lengths)
        terms = (data.astype(np.uint64) + np.uint64(1)) * powers[place]
        sums[said] = np.add.reduceat(terms, offsets[said] - offsets[0])
    return mix(sums)


def hash_pairs(first: Hashes, second: Hashes, seed: int) -> Hashes:
    """Return a number for each pair of numbers; another seed gives others."""
    salt = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    return mix(mix(first ^ salt) + second)


def mix(numbers: Hashes) -> Hashes:
    """Return numbers of which each bit depends on all bits of those given."""
    mixed = numbers + _GOLDEN
    for shift, factor in _STEPS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _to_texts(column: Column) -> pa.LargeStringArray:
    if not isinstance(column, np.ndarray):
        try:
            return pc.cast(column, pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are no text
            column = to_values(column)
    return pa.array([spell_surrogates(str(value)) for value in column.tolist()], pa.large_string())
