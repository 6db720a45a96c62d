"""Soft votes in a store: rows of files become votes, some at a time, and the medians of workers are sums over parts.

The form of the files is recognised by their first rows. In two of the forms a row of a file holds whole votes, and its
labels are known from the names of columns. In the third a vote has a row for each label; these rows meet in the
partition of their item.

The median confidence of a worker is found by counting, without all confidences at once: the bits of positive floats are
in the order of their values, so the upper half of the bits is found first and then the lower half. Counts add.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers import DIALECTS, Names, recognise
from ..answers.columns import Values
from ..answers.long_tables import find_columns
from ..answers.soft_tables import Grid, find_grid, find_probability, list_classes, melt, need_numbers, objects_of
from ..answers.soft_votes import Probabilities, find_largest, lacks_any
from ..answers.tables import Table
from ..engines.base import Engine
from ..errors import StoreError
from ..kernels import Floats, freeze
from .layout import ANSWER, ROW, ArrayFile, name_arrays, write_columns

FORMS = ("soft", "soft-long", "soft-wide")
MEDIANS = "medians.arrow"
# Bits of a confidence that are found at a time.
BITS = 16


class SoftForm(NamedTuple):
    """How rows of files are read as soft votes.

    Attributes
    ----------
    name : str
        The form of table.
    columns : dict
        The column that plays each role, once votes have a row each.
    cells : list of str
        The columns of the files that hold probabilities.
    labels : ndarray or None
        What workers can say, if the names of the cells tell.
    grid : Grid or None
        Workers and classes of the cells, where each has its own.
    """

    name: str
    columns: dict[str, str]
    cells: list[str]
    labels: Values | None
    grid: Grid | None

    def list_columns(self) -> list[str]:
        """Return the columns of the files that are read."""
        made = {"label"} if self.labels is not None else set[str]()
        made |= {"worker"} if self.grid is not None else set[str]()
        return [name for role, name in self.columns.items() if role not in made] + self.cells

    def count_cells(self) -> int:
        """Return how many rows of answers each row of the files is about as large as."""
        n_workers = 1 if self.grid is None else len(self.grid.workers)
        return n_workers * (1 if self.labels is None else 1 + len(self.labels) // 4)

    def read(self, table: Table, row: NDArray[np.int64]) -> tuple[Table, NDArray[np.int64], dict[str, Floats]]:
        """Return rows of votes, from which row of the file each is, and columns of their probabilities."""
        if self.grid is not None:
            table, soft = melt(table, self.columns["item"], self.grid)
            row, votes = np.repeat(row, len(self.grid.workers)), soft.votes
        else:
            votes = need_numbers(table, self.cells)
        if self.labels is not None and lacks_any(votes):
            there = np.flatnonzero(~np.isnan(votes).all(axis=1))
            table, row, votes = table.keep(there), row[there], votes[there]
        return table, row, {name_column(k): each.copy() for k, each in enumerate(votes.T)}


def name_column(number: int) -> str:
    """Return what a column of probabilities is called while a store is built."""
    return f"vote {number}"


def find_form(head: Table, names: Names, format: str | None) -> SoftForm | None:
    """Return how files are read that begin with these rows; None if they hold no soft votes."""
    dialect = (
        recognise(head, names) if format is None else next((each for each in DIALECTS if each.name == format), None)
    )
    if dialect is None or dialect.name not in FORMS:
        return None
    columns = find_columns(dialect.reader.translate(head, {**names, "format": format}), names)
    if dialect.name == "soft-long":
        cell = find_probability(head)
        assert cell is not None  # or else it could not be translated
        columns["label"] = head.need("label", names.get("label"), parameter="label")
        return SoftForm(dialect.name, columns, [cell], None, None)
    if dialect.name == "soft":
        classes = list_classes(head, names)
        return SoftForm(dialect.name, columns, list(classes), objects_of(classes.values()), None)
    grid = find_grid(head, names)
    assert grid is not None  # as before
    return SoftForm(dialect.name, columns, list(grid.columns.values()), objects_of(grid.classes), grid)


def write_medians(folder: Path, numbers: list[int], n_workers: int, n_labels: int, engine: Engine) -> None:
    """Write the median confidence of each worker, as `consilience.answers.soft_votes.find_medians` finds it."""
    upper, placed = np.full(n_workers, -1, np.int64), engine.place(numbers)
    rank = lower = np.zeros(n_workers, np.int64)
    for known in (False, True):
        shared = str(folder), n_labels, upper if known else None
        parts = list(engine.map(count_confidences, placed, *shared))
        codes, place = np.unique(np.concatenate([codes for codes, _ in parts]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts for _, counts in parts])).astype(np.int64)
        worker = codes >> BITS
        ends = np.cumsum(counts)
        before = np.append(0, ends)[np.searchsorted(worker, np.arange(n_workers))]
        if not known:
            rank = np.maximum((np.bincount(worker, counts, n_workers).astype(np.int64) - 1) // 2, 0)
        found = np.minimum(np.searchsorted(ends, before + rank, side="right"), len(codes) - 1)
        rank = rank - (ends[found] - counts[found] - before)
        there = worker[found] == np.arange(n_workers)
        bits = np.where(there, codes[found] & ((1 << BITS) - 1), -1)
        upper, lower = (upper, bits) if known else (bits, lower)
    medians = (np.maximum(upper, 0) << BITS | np.maximum(lower, 0)).astype(np.uint32).view(np.float32).copy()
    medians[upper < 0] = np.nan
    write_columns(folder / MEDIANS, {"value": pa.array(medians)})


def count_confidences(
    number: int, folder: str, n_labels: int, upper: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return codes of worker and half of the bits of a confidence in a partition, and how often each occurs.

    These are the upper bits, or the lower ones of confidences with the upper bits of each worker, if they are given.
    """
    file = ArrayFile.open(name_arrays(Path(folder), number))
    bounds = file.read("blocks")
    block = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds[:, ANSWER]))
    worker = file.read("rows")[bounds[block, ROW] + file.read("codes")] // n_labels
    largest = find_largest(file.read("soft")) if "soft" in file else np.ones(len(worker), np.float32)
    bits = largest.view(np.uint32).astype(np.int64)
    if upper is None:
        return np.unique(worker << BITS | bits >> BITS, return_counts=True)
    near = bits >> BITS == upper[worker]
    return np.unique(worker[near] << BITS | bits[near] & ((1 << BITS) - 1), return_counts=True)


def read_medians(folder: Path, n_workers: int) -> Probabilities:
    """Return the median confidence of each worker of a store."""
    with pa.OSFile(str(folder / MEDIANS), "rb") as source, pa.ipc.open_file(source) as reader:
        medians = reader.read_all().column("value").to_numpy()
    if medians.dtype != np.float32 or len(medians) != n_workers or (medians < 0).any() or (medians > 1).any():
        raise StoreError(f"{str(folder / MEDIANS)!r} is damaged.", "Delete the store, and build it again.")
    return freeze(medians.copy())
