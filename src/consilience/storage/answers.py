"""`StoredAnswers`: answers in a store, of which only vocabularies and sizes are in memory.

A `Sample` is some of its items, with all of their answers in memory. The items with the smallest random numbers are
drawn. These depend on ids and on the seed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.arrays import NO_VOTES, Crowd, Provenance, keep_weights, to_shares
from ..answers.blocked import NOBODY
from ..answers.columns import Column, Values, to_column, to_values
from ..answers.gold import Gold, match_gold, open_gold
from ..answers.items import Sequences
from ..answers.random_choices import Hashes, combine_hashes, draw_numbers, hash_ids
from ..answers.responses import Answers
from ..errors import StoreError, first_line, listing, plural
from ..kernels import Floats
from ..kinds.base import TABLE, AnyKind
from ..kinds.tag_task import TagsKind
from .building import HEADER, SCHEMA, read_values
from .layout import (
    ANSWER,
    ITEM,
    ROW,
    SEQUENCE,
    ArrayFile,
    StoredBlock,
    be_sure,
    list_blocks,
    measure_parts,
    name_arrays,
    name_items,
)
from .sets import TAGS

# Sums over so many blocks, of about a million answers, are taken where they are opened.
BLOCKS_PER_GROUP = 8
_NOTHING = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_)
# Somewhat more units than are wanted lie below the limit that is expected to suffice.
MARGIN = 64
# Of the units that could be hidden, a partition returns so many: more are never hidden.
MOST_UNITS = 30_000


@dataclass(frozen=True, eq=False, repr=False)
class StoredAnswers(Crowd):
    """Answers of workers about items, in a store on disk. Make one with `consilience.scan_answers`.

    It has the vocabularies and sizes of `Answers`, and not its arrays. Items are in the order of the store:
    by partition, which their ids decide, and within a partition in the order in which they first occur in the files.

    Attributes
    ----------
    workers, labels, classes : ndarray
        As in `Answers`.
    n_items, n_workers, n_classes, n_responses : int
        How many there are.
    columns : dict
        The column of the files that played each role.
    folder : Path
        Where the store is.
    built : bool
        Whether it was built just now. Else there was one already, from the same files.
    """

    folder: Path
    workers: Values
    labels: Values
    classes: Values
    votes: Floats  # (L,): sum of the weights of each label
    partitions: Sequence[Sequence[int]]  # items, answers, sequences and blocks of each
    in_sequences: bool
    weighted: bool
    columns: Mapping[str, str] = field(default_factory=dict)
    built: bool = False  # whether it was built just now, and not found
    inputs: Sequence[str] = ()  # the files that it was built from, as far as they are on this machine
    blocked: Values = field(default_factory=lambda: NOBODY)  # workers whose answers were left out
    resume: bool = False  # whether a fit goes on where an earlier one was interrupted
    # Where near-copies count once: the group of each worker, 0 for none.
    groups: NDArray[np.int64] | None = None
    # Known labels, of each partition that has some: items, ascending, their classes, and whether these may judge.
    gold: Mapping[int, tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]] | None = None

    positions: tuple[float, ...] | None = None  # of ordered classes
    shares: Floats | None = None  # of soft votes: the sum of the probabilities of each label, (L,)
    task: AnyKind = TABLE  # what the items are

    #: What `Answers` may have and these answers have not.
    backend = "pyarrow"
    background = None
    silence_weight = None
    normalised = False

    def __repr__(self) -> str:
        if not isinstance(self.task, TagsKind):
            return super().__repr__()
        n_items, n_sets = self.task.size(self)
        sets = f"{plural(n_sets, 'set')} of {plural(n_items, 'item')} by {plural(self.n_workers, 'worker')}"
        return f"StoredAnswers({sets}, {plural(len(self.task.tags), 'tag')}: {listing(self.task.tags.tolist())})"

    @property
    def is_soft(self) -> bool:
        """Whether answers are soft votes."""
        return self.shares is not None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return sum(sizes[0] for sizes in self.partitions)

    @property
    def n_responses(self) -> int:
        """Number of answers."""
        return sum(sizes[1] for sizes in self.partitions)

    @property
    def n_sequences(self) -> int:
        """Number of sequences; 0 if items are independent of each other."""
        return sum(sizes[2] for sizes in self.partitions)

    @property
    def n_known(self) -> int:
        """Number of items whose label is known."""
        return 0 if self.gold is None else sum(len(items) for items, _, _ in self.gold.values())

    def measure(self) -> int:
        """Return how many bytes the store has on disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def vote_shares(self) -> Floats:
        """Return each class's share of all votes."""
        return self.share_votes(self.votes if self.shares is None else self.shares)

    def label_shares(self) -> Floats:
        """Return the share of each label in all answers, each counted by its weight, (L,)."""
        return to_shares(self.votes)

    @property
    def sequences(self) -> range | None:
        """The numbers of the sequences that the items are in; None where items are independent of each other."""
        return range(self.n_sequences) if self.in_sequences else None

    def with_classes(self, classes: Values) -> StoredAnswers:
        """Return the same answers with other classes."""
        return self if classes is self.classes else replace(self, classes=classes, positions=self.place(classes))

    def bare(self) -> StoredAnswers:
        """Return the same answers without known labels, for those who are given blocks that have them."""
        return replace(self, gold=None)

    def blocks(self, number: int | None = None) -> list[StoredBlock]:
        """Return all blocks, in order, or those of one partition."""
        n_soft = self.n_labels if self.is_soft else 0
        blocks = list_blocks(self.folder, self.partitions, self.weighted, n_soft, number)
        return blocks if self.gold is None else [self._add_gold(block) for block in blocks]

    def grouped_blocks(self) -> list[list[StoredBlock]]:
        """Return all blocks, in order, in groups over which sums are taken at once."""
        groups: list[list[StoredBlock]] = []
        for block in self.blocks():
            if not groups or len(groups[-1]) == BLOCKS_PER_GROUP or groups[-1][0].number != block.number:
                groups.append([])
            groups[-1].append(block)
        return groups

    def _add_gold(self, block: StoredBlock) -> StoredBlock:
        """Return a block with its known labels."""
        assert self.gold is not None
        items, codes, _ = self.gold.get(block.number, _NOTHING)
        first, last = block.file.read("blocks")[block.place : block.place + 2, ITEM].tolist()
        known = slice(*np.searchsorted(items, [first, last]).tolist())
        return replace(block, known=(items[known] - first, codes[known]))

    def filled(self) -> Iterator[int]:
        """Yield the numbers of the partitions that are not empty."""
        return (number for number, sizes in enumerate(self.partitions) if sizes[3])

    def hashes(self, number: int) -> Hashes:
        """Return the hash of the id of each item, or sequence, of a partition."""
        return np.asarray(ArrayFile.open(name_arrays(self.folder, number)).read("hashes"))

    def hash_items(self, number: int, items: NDArray[np.int64]) -> Hashes:
        """Return the hash of what identifies some items of a partition; see `random_choices.hash_items`."""
        hashes = self.hashes(number)
        if not self.in_sequences:
            return hashes[items]
        sequence = np.searchsorted(self._starts(number), items, side="right") - 1
        position = self.keys(number)["position"].take(pa.array(items))
        return combine_hashes(hashes[sequence], hash_ids(to_values(to_column(position))))

    def keys(self, number: int) -> dict[str, pa.ChunkedArray]:
        """Return what identifies the items of a partition: columns item, or sequence and position."""
        with pa.memory_map(str(name_items(self.folder, number))) as source, pa.ipc.open_file(source) as reader:
            table = reader.read_all()
        return dict(zip(table.column_names, table.columns, strict=True))

    def pick(self, units: Mapping[int, NDArray[np.int64]]) -> Answers:
        """Return all answers about some items, or in some sequences, in memory.

        Parameters
        ----------
        units : mapping
            For each partition which of its items, or sequences.
        """
        parts = [self._pick_from(number, units[number]) for number in sorted(units)]
        answers, items = zip(*parts, strict=True)
        worker, label, weight, sizes, lengths, soft = (np.concatenate(each) for each in zip(*answers, strict=True))
        ids = [to_column(pa.chunked_array(columns)) for columns in zip(*items, strict=True)]
        keys: Values | Sequences = to_values(ids[0])
        if self.in_sequences:
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            keys = Sequences(to_values(ids[0].take(pa.array(offsets[:-1]))), offsets, to_values(ids[1]))
        return Answers(
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            worker=worker.astype(np.int32),
            label=label.astype(np.int32),
            weight=keep_weights(weight) if self.weighted else None,
            workers=self.workers,
            labels=self.labels,
            classes=self.classes,
            keys=keys,
            positions=self.positions,
            soft=soft if self.is_soft else None,
            provenance=Provenance(self.columns),
        )

    def _pick_from(self, number: int, units: NDArray[np.int64]) -> tuple[tuple[NDArray[np.generic], ...], list[Column]]:
        """Return arrays of some units of a partition, and what identifies their items.

        The arrays are worker, label and weight of answers; how many answers each item has; how many items each
        sequence has; and what soft votes give to each label.
        """
        file, bounds, offsets = self._open(number)
        items, lengths = self.items_of(number, units), np.empty(0, np.int64)
        if self.in_sequences:
            lengths = np.diff(self._starts(number))[units]
        sizes = np.diff(offsets)[items]
        answers = spread(offsets[items], sizes)
        block = np.searchsorted(bounds[:, ANSWER], answers, side="right") - 1
        row = file.read("rows")[bounds[block, ROW] + file.read("codes")[answers]]
        weight = file.read("weight")[answers] if "weight" in file else np.ones(len(answers))
        soft: NDArray[np.float32] = NO_VOTES
        if self.is_soft:
            soft = file.read("soft")[answers] if "soft" in file else be_sure(row, self.n_labels)
        keys = [to_column(column.take(pa.array(items))) for column in self.keys(number).values()]
        return (*np.divmod(row, self.n_labels), weight, sizes, lengths, soft), keys

    def _open(self, number: int) -> tuple[ArrayFile, NDArray[np.int64], NDArray[np.int64]]:
        """Open the arrays of a partition; return also where its blocks begin, and the offsets of its items."""
        file = ArrayFile.open(name_arrays(self.folder, number))
        bounds = file.read("blocks")
        return file, bounds, join_offsets(file.read("offsets"), bounds[:, ITEM], bounds[:, ANSWER])

    def items_of(self, number: int, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the items that are in some sequences of a partition; without sequences, the units themselves."""
        if not self.in_sequences:
            return units
        starts = self._starts(number)
        return spread(starts[units], np.diff(starts)[units])

    def units_of(self, number: int, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sequences of a partition that some of its items are in, or these items."""
        return np.unique(np.searchsorted(self._starts(number), items, side="right") - 1) if self.in_sequences else items

    def who_answered(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the item, or sequence, and the worker of each answer of a partition."""
        file, bounds, offsets = self._open(number)
        ends = offsets[self._starts(number)] if self.in_sequences else offsets
        block = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds[:, ANSWER]))
        worker = file.read("rows")[bounds[block, ROW] + file.read("codes")] // self.n_labels
        return np.repeat(np.arange(len(ends) - 1), np.diff(ends)), worker

    def _starts(self, number: int) -> NDArray[np.int64]:
        """Return where the sequences of a partition begin among its items."""
        file = ArrayFile.open(name_arrays(self.folder, number))
        bounds = file.read("blocks")
        return join_offsets(file.read("sequences"), bounds[:, SEQUENCE], bounds[:, ITEM])

    def load(self) -> Answers:
        """Return all answers, in memory."""
        return self.pick({number: self.list_units(number) for number in self.filled()})

    def list_units(self, number: int) -> NDArray[np.int64]:
        """Return all items, or sequences, of a partition."""
        return np.arange(self.partitions[number][2 if self.in_sequences else 0])


def join_offsets(offsets: NDArray[np.int64], ends: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offsets of all blocks of a partition as one array.

    Parameters
    ----------
    offsets : array
        Those of the blocks one after the other, each from 0 on.
    ends : array (n_blocks + 1,)
        Where blocks begin among what has offsets.
    starts : array (n_blocks + 1,)
        Where they begin among what offsets point to.
    """
    joined = np.empty(int(ends[-1]) + 1, np.int64)
    for place in range(len(ends) - 1):
        first, last = int(ends[place]), int(ends[place + 1])
        joined[first : last + 1] = offsets[first + place : last + place + 1] + starts[place]
    return joined


def spread(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers first[i], first[i] + 1, ... of each run.

    >>> spread(np.array([5, 1]), np.array([2, 3]))
    array([5, 6, 1, 2, 3])
    """
    before = np.cumsum(sizes) - sizes
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(first - before, sizes))


def open_store(
    folder: Path, choose: Callable[[Values, bool], tuple[Values, tuple[float, ...] | None]]
) -> StoredAnswers:
    """Open a complete store; `choose` returns classes and positions, given the labels and whether these are ordered."""
    try:
        header = json.loads((folder / HEADER).read_text())
        workers, labels = read_values(folder / "workers.arrow"), read_values(folder / "labels.arrow")
        if header["schema"] != SCHEMA:
            raise StoreError(f"The store {os.fspath(folder)!r} was made by another release.", "Delete it.")
        check_parts(folder, header["files"])
        classes, positions = choose(labels, bool(header["ordered"]))
        separator, task = header.get("separator"), cast(AnyKind, TABLE)
        if separator is not None:
            task = TagsKind(read_values(folder / TAGS), separator, "cells", None, header["columns"]["label"])
        return StoredAnswers(
            folder=folder,
            workers=workers,
            labels=labels,
            classes=classes,
            positions=positions,
            votes=np.array(header["votes"], np.float64),
            partitions=header["partitions"],
            in_sequences=bool(header["in_sequences"]),
            weighted=bool(header["weighted"]),
            columns=header["columns"],
            inputs=header["inputs"],
            blocked=np.array(header["blocked"], object),
            shares=np.array(header["shares"], np.float64) if header["soft"] else None,
            task=task,
        )
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(
            f"The store {os.fspath(folder)!r} cannot be read: {first_line(error)}.", "Delete it, and build it again."
        ) from error


def check_parts(folder: Path, sizes: Mapping[str, int]) -> None:
    """Raise an error if a file of a store is missing, or has not the size that it had when the store was built."""
    found = measure_parts(folder)
    if damaged := sorted(name for name, size in sizes.items() if found.get(name) != size):
        raise StoreError(
            f"The store {os.fspath(folder)!r} is damaged: {damaged[0]!r} is not complete.",
            "Delete it, and build it again.",
        )


class Sample(NamedTuple):
    """Some items, or sequences, of a store, with all of their answers in memory."""

    units: Mapping[int, NDArray[np.int64]]  # of each partition, ascending
    responses: Answers

    def gold(self, s: StoredAnswers) -> Gold | None:
        """Return the known labels of the items."""
        if s.gold is None:
            return None
        every = [find_gold(s, number).about(s.items_of(number, units)) for number, units in self.units.items()]
        return Gold(*(np.concatenate(each) for each in zip(*every, strict=True)))


def find_gold(s: StoredAnswers, number: int) -> Gold:
    """Return the known labels of all items of a partition."""
    n_items, known = s.partitions[number][0], {} if s.gold is None else s.gold
    gold = Gold(np.full(n_items, -1, np.int32), np.zeros(n_items, bool))
    if number in known:
        items, gold.codes[items], gold.judging[items] = known[number]
    return gold


def draw_sample(s: StoredAnswers, seed: int, n_wanted: int) -> Sample:
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


def pick_sample(s: StoredAnswers, units: Mapping[int, NDArray[np.int64]]) -> Sample:
    """Return the sample of these items, or sequences."""
    chosen = {number: units[number] for number in sorted(units) if len(units[number])}
    return Sample(chosen, s.pick(chosen))


def add_gold(s: StoredAnswers, gold: object) -> StoredAnswers:
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


def hash_gold(gold: object, s: StoredAnswers) -> Hashes:
    """Return the hashes of the items, or sequences, whose label is known."""
    if isinstance(gold, (list, tuple)) and len(gold):
        return np.concatenate([hash_gold(each, s) for each in gold])
    table = open_gold(gold, s.in_sequences).prefer(s.columns)
    return hash_ids(to_values(table.read(table.need("sequence" if s.in_sequences else "item"))))
