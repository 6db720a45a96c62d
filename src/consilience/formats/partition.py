"""Columns of numbers that are larger than memory, sorted by item on disk: parts of ranges of items, each then sorted.

Rows are first written to the part of the file that is their item's, in any order. Then each part is sorted in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import order_by, take_rows

# A part of so many bytes of memory is sorted at once, with so many bytes for each row: item, row, order and a column.
SORTED_PART, ROW = 0.1, 48
# A table of whole numbers takes at most this part of memory.
TABLE_PART = 0.05
# The numbers of rows, which every file has.
ROWS = "rows"


@dataclass(frozen=True)
class CodeTable:
    """The codes of whole numbers: of low + i it is numbers[i].

    Attributes
    ----------
    low : int
        The lowest number.
    numbers : array of int32
        A code for each number from the lowest to the highest.
    """

    low: int
    numbers: NDArray[np.int32]

    def look_up(self, column: Any) -> NDArray[np.int32]:
        """The codes of a column; -1 where it is missing."""
        values = column.fill_null(self.low) if column.null_count else column
        codes: NDArray[np.int32] = self.numbers[values.to_numpy(zero_copy_only=False).astype(np.int64) - self.low]
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes


def tabulate_codes(values: pa.Array, codes: NDArray[np.int32], memory: float) -> CodeTable | None:
    """The codes of distinct values as a table; None if they are no whole numbers, or too far apart.

    >>> table = tabulate_codes(pa.array([7, 5]), np.array([0, 1], np.int32), 1000)
    >>> table.look_up(pa.array([5, None, 7]))
    array([ 1, -1,  0], dtype=int32)
    """
    if not pa.types.is_signed_integer(values.type) or not len(values):
        return None
    numbers = values.to_numpy().astype(np.int64)
    low, high = int(numbers.min()), int(numbers.max())
    if not fits_table(low, high, memory):
        return None
    table = np.zeros(high - low + 1, np.int32)
    table[numbers - low] = codes
    return CodeTable(low, table)


def fits_table(low: int, high: int, memory: float) -> bool:
    """Whether there may be a table of all whole numbers between these."""
    return (high - low + 1) * 4 <= TABLE_PART * memory


def count_items(batches: Iterable[pa.RecordBatch], low: int, high: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The distinct numbers in order of their first rows, and how often each occurs; batches have numbers and rows.

    >>> count_items([pa.record_batch({"number": [7, 5, 7], "row": [2, 1, 0]})], 5, 7)
    (array([7, 5]), array([2, 1]))
    """
    first, counts = np.full(high - low + 1, np.iinfo(np.int64).max), np.zeros(high - low + 1, np.int64)
    for batch in batches:
        numbers = batch.column(0).to_numpy().astype(np.int64) - low
        np.minimum.at(first, numbers, batch.column(1).to_numpy())
        np.add.at(counts, numbers, 1)
    seen = np.flatnonzero(counts)
    seen = seen[np.argsort(first[seen])]
    return seen + low, counts[seen]


@dataclass(frozen=True)
class Partition:
    """Files of numbers, one per column, in which each range of items has a part.

    Attributes
    ----------
    folder : Path
        Where the files are: one `name`.numbers for each column.
    kinds : dict of str to str
        The type of each column, of which one has the numbers of rows.
    item : str
        The column with the codes of items; -1, which comes last, where there is none.
    part_of : array of int32
        The part of each item, and at the end that of rows without an item.
    starts : list of int
        In which row each part begins, and where the last one ends.
    """

    folder: Path
    kinds: dict[str, str]
    item: str
    part_of: NDArray[np.int32]
    starts: list[int]

    def write(self, batches: Iterable[Sequence[NDArray[Any]]]) -> None:
        """Write rows, of which each batch has an array per column, each to its part."""
        ends, n_parts = self.starts[:-1], len(self.starts) - 1
        place = list(self.kinds).index(self.item)
        with ExitStack() as opened:
            files = [opened.enter_context(open(self.folder / f"{name}.numbers", "wb")) for name in self.kinds]
            for arrays in batches:
                order, cuts = order_by(self.part_of[arrays[place]], n_parts)
                for file, kind, array in zip(files, self.kinds.values(), arrays, strict=True):
                    taken = take_rows(np.asarray(array, kind), order)
                    for end, start, stop in zip(ends, cuts[:-1], cuts[1:], strict=True):
                        write_at(file, end, taken[start:stop])
                ends = np.add(ends, np.diff(cuts)).tolist()

    def sort(self, within: str | None) -> None:
        """Sort each part by item, by the column `within` if there is one, and by row."""
        with ExitStack() as opened:
            files = {name: opened.enter_context(open(self.folder / f"{name}.numbers", "r+b")) for name in self.kinds}
            keys = [name for name in (ROWS, within, self.item) if name]
            for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
                order = find_order(*(read_at(files[name], start, stop, self.kinds[name]) for name in keys))
                if order is not None:
                    for name, file in files.items():
                        write_at(file, start, take_rows(read_at(file, start, stop, self.kinds[name]), order))


def find_order(row: NDArray[Any], *keys: NDArray[Any]) -> Any:
    """The order by the last of the keys, then the one before it, and at last by row; None where rows are in order.

    >>> find_order(np.array([0, 1, 2]), np.array([1, 0, 1], np.int32))
    array([1, 0, 2])
    """
    if len(keys) > 1:
        return np.lexsort((row, *keys))
    (item,) = keys
    by_row = None
    if not np.all(row[:-1] < row[1:]):  # DuckDB reads in threads
        by_row = np.argsort(row, kind="stable")
        item = item[by_row]
    elif np.all(item[:-1] <= item[1:]):
        return None
    first = item.min()
    order, _ = order_by(item - first, int(item.max() - first) + 1)
    return order if by_row is None else by_row[order]


def divide_items(
    folder: Path, kinds: dict[str, str], item: str, sizes: NDArray[np.int64], n_rows: int, memory: float
) -> Partition:
    """Parts of items that have so many rows, in files of `n_rows`; each can be sorted in this memory, in bytes."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n_items, n_placed = len(sizes), int(offsets[-1])  # rows without an item come last
    step = max(1, int(SORTED_PART * memory / ROW))
    firsts = np.unique(np.searchsorted(offsets[:-1], np.arange(0, n_placed, step)))
    firsts = firsts[firsts < n_items]
    part_of = np.repeat(np.arange(len(firsts) + 1, dtype=np.int32), np.diff([*firsts, n_items, n_items + 1]))
    starts = [*offsets[firsts].tolist(), n_placed, *([n_rows] if n_rows > n_placed else [])]
    return Partition(folder, kinds, item, part_of, starts)


def write_at(file: BinaryIO, row: int, numbers: NDArray[Any]) -> None:
    """Write numbers to a file from this row on."""
    file.seek(row * numbers.itemsize)
    file.write(np.ascontiguousarray(numbers).data)


def read_at(file: BinaryIO, start: int, stop: int, kind: str) -> NDArray[Any]:
    """The numbers in these rows of a file."""
    file.seek(start * np.dtype(kind).itemsize)
    numbers = np.empty(stop - start, kind)
    file.readinto(numbers.data)  # type: ignore[attr-defined]  # files that are buffered have it
    return numbers
