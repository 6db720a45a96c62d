"""How blocks lie on disk: for each partition a file of arrays, and a file of the ids of its items.

The file of arrays holds them one after the other, each at a multiple of 64 bytes, and at its end their names, types and
places. An array is mapped into memory when it is used, and let go afterwards: what a fit holds are the blocks that it
works on.

The arrays of a partition, of all of its blocks together:

=========== ======= ==============================================================
blocks      int64   (n_blocks + 1, 4): first item, answer, row and sequence of each
codes       uint16  row of each answer among those that its block needs (int32 if a block has many)
offsets     int32   of each block n_items + 1: item i owns offsets[i]:offsets[i + 1]
rows        int64   which of all rows these are: worker * n_labels + label
weight      float64 of each answer, if there are weights
sequences   int64   of each block n_sequences + 1, if there are sequences
soft        float32 (n_answers, n_labels): probabilities, if answers are soft votes
hashes      uint64  of the id of each item (sequence)
=========== ======= ==============================================================

While a run writes to a folder, it belongs to that run, and is removed later if the run dies. Such a folder has a random
name and holds a file that its owner keeps locked. The system releases the lock when the owner ends, however that
happens. So a folder whose lock can be taken has no owner any more. Some file systems know locks on one machine only.
Therefore the name of a folder says on which machine it was made, and only that machine removes it. Systems without such
locks, such as Windows, keep what a run that died has left.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.arrays import NO_VOTES, Block, cut_blocks
from ..answers.columns import Column
from ..answers.random_choices import hash_ids, hash_items
from ..answers.responses import Answers
from ..engines.base import Engine, Outcome, Placed, Total
from ..errors import StoreError, first_line
from ..formats.writing import sync
from ..kernels import freeze

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AnyArray: TypeAlias = NDArray[Any]

LOCK = "lock"
ALIGNMENT = 64
# Columns of `blocks`.
ITEM, ANSWER, ROW, SEQUENCE = range(4)


def write_arrays(path: Path, arrays: Mapping[str, AnyArray]) -> None:
    """Write arrays to a file."""
    places = {}
    with open(path, "wb") as file:
        for name, array in arrays.items():
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            places[name] = (array.dtype.str, list(array.shape), file.tell())
            file.write(np.ascontiguousarray(array).data)
        directory = json.dumps(places).encode()
        file.write(directory)
        file.write(len(directory).to_bytes(8, "little"))


@dataclass(frozen=True)
class ArrayFile:
    """A file of arrays, open for reading."""

    path: str
    places: Mapping[str, tuple[str, list[int], int]]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ArrayFile:
        """Read which arrays there are."""
        try:
            with open(path, "rb") as file:
                file.seek(-8, os.SEEK_END)
                size = int.from_bytes(file.read(8), "little")
                file.seek(-8 - size, os.SEEK_END)
                return cls(os.fspath(path), json.loads(file.read(size)))
        except (OSError, ValueError) as error:
            raise damaged_error(path, error) from error

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def map(self) -> Callable[..., AnyArray]:
        """Map the file into memory; return a function that gives the rows first:last of an array, read-only.

        The map is let go with the last array that was read from it.
        """
        try:
            with open(self.path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise damaged_error(self.path, error) from error

        def read(name: str, first: int = 0, last: int | None = None) -> AnyArray:
            kind, shape, place = self.places[name]
            dtype, size = np.dtype(kind), math.prod(shape[1:])
            count = max((shape[0] if last is None else last) - first, 0)
            start = place + first * dtype.itemsize * size
            try:
                return np.frombuffer(mapped, dtype, count * size, start).reshape(count, *shape[1:])
            except ValueError as error:
                raise damaged_error(self.path, error) from error

        return read

    def read(self, name: str) -> AnyArray:
        """Return a whole array, mapped into memory and read-only."""
        return self.map()(name)


def damaged_error(path: str | os.PathLike[str], error: Exception) -> StoreError:
    """Return the error for a file of a store that cannot be read."""
    return StoreError(
        f"{os.fspath(path)!r} cannot be read: {first_line(error)}.",
        f"Delete the store {os.path.dirname(os.fspath(path))!r}, and build it again.",
    )


def measure_parts(folder: Path) -> dict[str, int]:
    """Return the sizes of the files of all partitions, in bytes."""
    return {path.name: path.stat().st_size for path in sorted(folder.glob("part-*"))}


def write_partition(folder: Path, number: int, answers: Answers, codes: NDArray[np.int64], n_codes: int) -> list[int]:
    """Write the answers of a partition, cut into blocks; return how many items, answers, sequences and blocks it has.

    `codes` are those of worker and label of each answer, of which there are `n_codes`.
    """
    blocks = cut_blocks(answers, codes, n_codes)
    bounds = np.zeros((len(blocks) + 1, 4), np.int64)
    for place, block in enumerate(blocks):
        sizes = (block.n_items, len(block.codes), len(block.rows), max(len(block.sequences) - 1, 0))
        bounds[place + 1] = bounds[place] + sizes
    sequences = answers.sequences
    arrays: dict[str, AnyArray] = {
        "blocks": bounds,
        "codes": np.concatenate([block.codes for block in blocks]),
        "offsets": np.concatenate([block.offsets for block in blocks]),
        "rows": np.concatenate([block.rows for block in blocks]),
        "hashes": hash_items(answers.keys) if sequences is None else hash_ids(sequences.ids),
    }
    if answers.weight is not None:
        arrays["weight"] = answers.weight
    if answers.soft is not None:
        arrays["soft"] = answers.soft
    if sequences is not None:
        arrays["sequences"] = np.concatenate([block.sequences for block in blocks])
    write_arrays(name_arrays(folder, number), arrays)
    write_columns(name_items(folder, number), answers.key_columns())
    for path in (name_arrays(folder, number), name_items(folder, number)):
        sync(path)
    return [answers.n_items, answers.n_responses, 0 if sequences is None else len(sequences), len(blocks)]


def write_columns(path: Path, columns: Mapping[str, Column]) -> None:
    """Write columns to a file of Arrow's."""
    table = pa.table(dict(columns))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def name_arrays(folder: Path, number: int) -> Path:
    """Return the file of the arrays of a partition."""
    return folder / f"part-{number:05d}.blocks"


def name_items(folder: Path, number: int) -> Path:
    """Return the file of the ids of the items of a partition."""
    return folder / f"part-{number:05d}.items.arrow"


@dataclass(frozen=True)
class StoredBlock:
    """A block on disk, which is opened where it is worked on.

    Attributes
    ----------
    number : int
        The partition that it is in.
    file : ArrayFile
        The arrays of this partition.
    place : int
        Which block of the partition it is.
    first_item : int
        Index of its first item among all items of the store.
    total_size : int
        Answers plus items of the store.
    weighted : bool
        Whether there are weights in the store, of this block or of another.
    n_soft : int
        How many labels soft votes give probabilities to; 0 if answers are labels.
    known : pair of arrays or None
        The items of the block whose label is known, ascending, and their classes; None if no label in the store is.
    """

    number: int
    file: ArrayFile
    place: int
    first_item: int
    total_size: int
    weighted: bool
    n_soft: int = 0
    known: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None

    def open(self) -> Block:
        """Return the block, its arrays mapped into memory."""
        read = self.file.map()
        bounds = read("blocks", self.place, self.place + 2)
        (item, answer, row, sequence), (item_end, answer_end, row_end, sequence_end) = bounds.tolist()
        # The offsets of each block have one entry more than items.
        offsets = read("offsets", item + self.place, item_end + self.place + 1)
        unknown, in_sequences = freeze(np.empty((0, 0))), "sequences" in self.file
        return Block(
            first_item=self.first_item,
            codes=read("codes", answer, answer_end),
            offsets=offsets,
            rows=read("rows", row, row_end),
            weight=self._weights(read, answer, answer_end) if self.weighted else freeze(np.empty(0)),
            gold=self._gold(item_end - item),
            sequences=read("sequences", sequence + self.place, sequence_end + self.place + 1)
            if in_sequences
            else freeze(np.empty(0, np.int64)),
            log_prior=unknown,
            told=freeze(np.empty(0, np.bool_)),
            total_size=self.total_size,
            soft=self._votes(read, answer, answer_end, row) if self.n_soft else NO_VOTES,
            anchor=unknown,
            share=freeze(np.empty(0)),
        )

    def _gold(self, n_items: int) -> NDArray[np.int32]:
        """Return the known class of each item, or -1; nothing if no label in the store is known."""
        gold = np.full(0 if self.known is None else n_items, -1, np.int32)
        if self.known is not None:
            items, codes = self.known
            gold[items] = codes
        return freeze(gold)

    def _weights(self, read: Callable[..., AnyArray], first: int, last: int) -> NDArray[np.float64]:
        return read("weight", first, last) if "weight" in self.file else freeze(np.ones(last - first))

    def _votes(self, read: Callable[..., AnyArray], first: int, last: int, row: int) -> NDArray[np.float32]:
        if "soft" in self.file:
            return read("soft", first, last)
        return be_sure(read("rows")[row + read("codes", first, last).astype(np.int64)], self.n_soft)


def be_sure(row: NDArray[np.int64], n_labels: int) -> NDArray[np.float32]:
    """Return the probabilities of answers that are certain, given by their rows: worker * n_labels + label."""
    return freeze(np.eye(n_labels, dtype=np.float32)[row % n_labels])


def list_blocks(
    folder: Path, partitions: Sequence[Sequence[int]], weighted: bool, n_soft: int = 0, only: int | None = None
) -> list[StoredBlock]:
    """Return all blocks of a store, in order, or only those of one partition."""
    total_size = sum(sizes[0] + sizes[1] for sizes in partitions)
    blocks, first = [], 0
    for number, (n_items, _, _, n_blocks) in enumerate(partitions):
        if not n_blocks or only not in (None, number):
            first += n_items
            continue
        file = ArrayFile.open(name_arrays(folder, number))
        starts = file.read("blocks")[:, ITEM].tolist()
        if starts[-1] != n_items:
            raise StoreError(f"{file.path!r} is damaged.", "Delete the store, and build it again.")
        blocks += [
            StoredBlock(number, file, place, first + starts[place], total_size, weighted, n_soft)
            for place in range(n_blocks)
        ]
        first += n_items
    return blocks


# Returns a block as it is worked on.
Opener: TypeAlias = Callable[[StoredBlock], Block]


class Opening(Engine):
    """Work as another engine does, on groups of blocks, each of which is opened first.

    The sum over a group is taken where its blocks are opened, and only such sums travel.

    Parameters
    ----------
    inner : Engine
        Where to work.
    open_block : callable
        Returns the block that a handle stands for.
    """

    def __init__(self, inner: Engine, open_block: Opener) -> None:
        self.inner = inner
        self.open_block = open_block

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Put groups of handles where they will be opened."""
        return self.inner.place(blocks)

    def map(self, function: Callable[..., Outcome], placed: Sequence[Placed], *shared: object) -> Iterator[Outcome]:
        """Yield function(block, *shared) for each block of each group, in order."""
        for results in self.inner.map(partial(run_group, function, self.open_block), placed, *shared):
            yield from results

    def sum(
        self,
        function: Callable[..., Outcome],
        placed: Sequence[Placed],
        add_up: Callable[[Iterable[Outcome]], Total],
        combine: Callable[[Total, Total], Total],
        *shared: object,
    ) -> Total:
        """Return the sum over all blocks of function(block, *shared)."""
        return self.inner.total(partial(sum_group, function, add_up, self.open_block), placed, combine, *shared)


def run_group(
    function: Callable[..., Outcome],
    open_block: Opener,
    group: Sequence[StoredBlock],
    *shared: object,
) -> list[Outcome]:
    """Call the function with each block of a group."""
    return [function(open_block(handle), *shared) for handle in group]


def sum_group(
    function: Callable[..., Outcome],
    add_up: Callable[[Iterable[Outcome]], Total],
    open_block: Opener,
    group: Sequence[StoredBlock],
    *shared: object,
) -> Total:
    """Return the sum over the blocks of a group."""
    return add_up(function(open_block(handle), *shared) for handle in group)


# ---------------------------------------------------------------------------- folders that belong to one run


@contextmanager
def claim_beside(folder: Path, purpose: str) -> Iterator[Path]:
    """Make a folder beside another that nobody else writes to. At the end it is removed, if it is still there.

    Folders for the same purpose whose owners are no more are removed first.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder.parent, purpose)
    token = secrets.token_hex(8)
    new = folder.with_name(f".{token}")
    work = folder.with_name(f".{folder.name}.{socket.gethostname()}.{token}.{purpose}")
    new.mkdir()
    held = None
    try:
        if fcntl is not None:
            held = open(new / LOCK, "wb")  # noqa: SIM115 (it is held to the end)
            take_lock(held)
        # Others look for owners of folders with this name, so the lock comes first.
        new.rename(work)
        yield work
    finally:
        for path in (new, work):
            shutil.rmtree(path, ignore_errors=True)
        if held is not None:
            held.close()


def remove_abandoned(parent: Path, purpose: str) -> None:
    """Remove folders for some purpose that were made on this machine and whose owners are no more."""
    for path in parent.glob(f".*.{socket.gethostname()}.*.{purpose}"):
        with suppress(OSError), open(path / LOCK, "rb") as lock:
            if take_lock(lock):
                shutil.rmtree(path, ignore_errors=True)


def take_lock(file: IO[bytes]) -> bool:
    """Lock a file unless somebody else holds it; return whether it was locked."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or the file system has no locks
        return False
    return True
