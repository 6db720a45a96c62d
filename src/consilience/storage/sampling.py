"""Samples of a store: some of its items, with all of their answers in memory, and items with known labels.

The items with the smallest random numbers are drawn. These depend on ids and on the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import to_values
from ..answers.gold import Gold, match_gold, open_gold
from ..answers.hashing import Hashes, draw_numbers, hash_ids
from ..answers.responses import Responses
from .answers import StoredResponses

# Somewhat more units than are wanted lie below the limit that is expected to suffice.
MARGIN = 64
# Of the units that could be hidden, a partition returns so many: more are never hidden.
MOST_UNITS = 30_000


class Sample(NamedTuple):
    """Some items, or sequences, of a store, with all of their answers in memory."""

    units: Mapping[int, NDArray[np.int64]]  # of each partition, ascending
    responses: Responses

    def gold(self, s: StoredResponses) -> Gold | None:
        """Return the known labels of the items."""
        if s.gold is None:
            return None
        every = [find_gold(s, number).about(s.items_of(number, units)) for number, units in self.units.items()]
        return Gold(*(np.concatenate(each) for each in zip(*every, strict=True)))


def find_gold(s: StoredResponses, number: int) -> Gold:
    """Return the known labels of all items of a partition."""
    n_items, known = s.partitions[number][0], {} if s.gold is None else s.gold
    gold = Gold(np.full(n_items, -1, np.int32), np.zeros(n_items, bool))
    if number in known:
        items, gold.codes[items], gold.judging[items] = known[number]
    return gold


def draw_sample(s: StoredResponses, seed: int, n_wanted: int) -> Sample:
    """Return the items, or sequences, with the smallest random numbers."""
    n_owners = s.n_sequences if s.in_sequences else s.n_items
    n_wanted = min(max(n_wanted, 1), n_owners)
    share = (n_wanted + 6 * n_wanted**0.5 + MARGIN) / n_owners
    while True:
        limit = np.uint64(min(int(share * 2**64), 2**64 - 1))
        found = {}
        for number in s.filled():
            numbers = draw_numbers(seed, s.hashes(number))
            units = np.flatnonzero(numbers <= limit)
            found[number] = units, numbers[units]
        if share >= 1 or sum(len(units) for units, _ in found.values()) >= n_wanted:
            break
        share *= 2
    every = np.concatenate([numbers for _, numbers in found.values()])
    last = np.partition(every, n_wanted - 1)[n_wanted - 1]
    return pick_sample(s, {number: units[numbers <= last] for number, (units, numbers) in found.items()})


def pick_sample(s: StoredResponses, units: Mapping[int, NDArray[np.int64]]) -> Sample:
    """Return the sample of these items, or sequences."""
    chosen = {number: units[number] for number in sorted(units) if len(units[number])}
    return Sample(chosen, s.pick(chosen))


class Units(NamedTuple):
    """What could be hidden in a partition: pairs of worker and item (sequence), with the smallest random numbers."""

    number: int
    n_units: int
    numbers: Hashes
    owner: NDArray[np.int64]  # the item, or sequence, of each


def list_units(number: int, s: StoredResponses, leader: NDArray[np.int64], hashes: Hashes, seed: int) -> Units:
    """Return the units of a partition."""
    owner, worker = s.who_answered(number)
    pairs = np.unique(owner * s.n_workers + leader[worker])
    owner, worker = np.divmod(pairs, s.n_workers)
    numbers = draw_numbers(seed, s.hashes(number)[owner], hashes[worker])
    if len(numbers) > MOST_UNITS:
        near = np.argpartition(numbers, MOST_UNITS)[:MOST_UNITS]
        owner, numbers = owner[near], numbers[near]
    return Units(number, len(pairs), numbers, owner)


def add_gold(s: StoredResponses, gold: object) -> StoredResponses:
    """Return the answers with known labels, which are matched by hash and then by id."""
    if gold is None:
        return s
    wanted = hash_gold(gold, s)
    units = {number: np.flatnonzero(np.isin(s.hashes(number), wanted)) for number in s.filled()}
    units = {number: found for number, found in units.items() if len(found)}
    if not units:
        units = {next(s.filled()): np.arange(1)}  # so that the error shows an id
    found = match_gold(gold, s.pick(units), s.classes)
    assert found is not None
    known, first = {}, 0
    for number in sorted(units):
        items = s.items_of(number, units[number])
        part = slice(first, first + len(items))
        has = found.codes[part] >= 0
        known[number] = items[has], found.codes[part][has], found.judging[part][has]
        first += len(items)
    return replace(s, gold=known)


def hash_gold(gold: object, s: StoredResponses) -> Hashes:
    """Return the hashes of the items, or sequences, whose label is known."""
    if isinstance(gold, (list, tuple)) and len(gold):
        return np.concatenate([hash_gold(each, s) for each in gold])
    table = open_gold(gold, s.in_sequences).prefer(s.columns)
    return hash_ids(to_values(table.read(table.need("sequence" if s.in_sequences else "item"))))
