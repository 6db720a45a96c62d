"""Rows split into partitions by a hash of what they are about, with workers and labels as codes.

The partition of a row is given by the first bits of a hash of its item, or of its sequence: all rows about an item meet
in one partition. Rows keep their number in the input, so that a partition can be put in the order of the input again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..data.hashing import hash_ids
from ..data.vocabulary import Column, Values, decode_categories, is_categorical, is_text, sorted_order, to_values
from ..errors import InputError

# Rows that a partition has on average, at most: they and their blocks take a few hundred megabytes.
ROWS_PER_PARTITION = 1 << 21
MOST_PARTITIONS = 1 << 12


def count_partitions(n_rows: int) -> int:
    """Return a number of partitions, a power of two, for about so many rows.

    >>> count_partitions(1_000), count_partitions(100_000_000)
    (1, 64)
    """
    n_partitions = 1
    while n_partitions * ROWS_PER_PARTITION < n_rows and n_partitions < MOST_PARTITIONS:
        n_partitions *= 2
    return n_partitions


def find_partitions(ids: Column, n_partitions: int) -> NDArray[np.int64]:
    """Return the partition of each id.

    Equal ids of one type are in the same partition, whatever else is in the column.

    >>> find_partitions(pa.array([7, 8, 7]), 1)
    array([0, 0, 0])
    """
    from ..kernels.hashing import hash_texts, scramble

    if n_partitions == 1:
        return np.zeros(len(ids), np.int64)
    if not isinstance(ids, np.ndarray):
        ids = decode_categories(ids)
    if not isinstance(ids, np.ndarray) and pa.types.is_integer(ids.type):
        hashes = scramble(to_values(ids.cast(pa.int64())).view(np.uint64))
    elif not isinstance(ids, np.ndarray) and is_text(ids.type):
        texts = ids.cast(pa.large_string())
        offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        data = texts.buffers()[2]
        hashes = scramble(hash_texts(np.frombuffer(b"" if data is None else data, np.uint8), offsets))
    else:
        hashes = hash_ids(to_values(ids))
    bits = np.uint64(64 - (n_partitions.bit_length() - 1))
    return (hashes >> bits).astype(np.int64)


@dataclass
class GrowingVocabulary:
    """Distinct values in the order in which they were met, and whether they are categories.

    Categories that occur in no row are known, but not seen.
    """

    codes: dict[Any, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    kind: pa.DataType | None = None
    categorical: bool = False

    def encode(self, column: Column) -> NDArray[np.int32]:
        """Return the code of each entry; new values get the next ones."""
        if isinstance(column, np.ndarray):
            column = pa.array(column)
        self.categorical |= is_categorical(column)
        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column)
        kind = column.dictionary.type
        if self.kind is None:
            self.kind = kind
        elif kind != self.kind and not (is_text(kind) and is_text(self.kind)):
            raise InputError(
                f"A column holds values of the types {self.kind} and {kind}.", "Give all values of a column one type."
            )
        new = [self.codes.setdefault(value, len(self.codes)) for value in column.dictionary.to_pylist()]
        code_of = np.array(new, np.int32)
        local = column.indices.to_numpy(zero_copy_only=False)
        self.seen.update(code_of[np.bincount(local, minlength=len(code_of)) > 0].tolist())
        return code_of[local]

    def settle(self, to_integers: bool) -> tuple[Values, NDArray[np.int32]]:
        """Return the values that were seen, in order, and for each code its index among them, -1 if it was not seen.

        Values are sorted, and categories keep their order. Text that is whole numbers becomes integers, if asked for.
        """
        from ..formats.delimited import read_integers

        order = np.array(sorted(self.seen), np.int64)
        column = pa.array(list(self.codes), self.kind).take(pa.array(order))
        values = to_values(read_integers(column) if to_integers and is_text(column.type) else column)
        if not self.categorical:
            by_value = sorted_order(values)
            order, values = order[by_value], values[by_value]
        index = np.full(len(self.codes), -1, np.int32)
        index[order] = np.arange(len(order), dtype=np.int32)
        return values, index


class PartitionWriter:
    """Partitions that are being written: one file of rows for each.

    Parameters
    ----------
    folder : Path
        Where to write them.
    n_partitions : int
        How many there are.
    """

    def __init__(self, folder: Path, n_partitions: int) -> None:
        self.folder, self.n_partitions = folder, n_partitions
        self._sinks: dict[int, Any] = {}
        self._schema: pa.Schema | None = None

    def add(self, owners: Column, columns: Mapping[str, Any]) -> None:
        """Add rows, whose partition is that of their owner: an item, or a sequence."""
        from ..kernels.layout import order_by

        batch = pa.table({name: plain(column) for name, column in columns.items()})
        if self._schema is None:
            self._schema = batch.schema
        elif batch.schema != self._schema:
            batch = self._cast(batch)
        partition = find_partitions(owners, self.n_partitions)
        order, offsets = order_by(partition, self.n_partitions)
        if self.n_partitions > 1:
            batch = batch.take(pa.array(order))
        for number in np.flatnonzero(np.diff(offsets)).tolist():
            part = batch.slice(int(offsets[number]), int(offsets[number + 1] - offsets[number]))
            self._open(number).write_table(part)

    def _cast(self, batch: pa.Table) -> pa.Table:
        assert self._schema is not None
        try:
            return batch.cast(self._schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            found = [f"{a.type} and {b.type}" for a, b in zip(self._schema, batch.schema, strict=True) if a != b]
            raise InputError(
                f"A column holds values of the types {found[0]}.", "Give all values of a column one type."
            ) from error

    def _open(self, number: int) -> Any:
        if number not in self._sinks:
            self._sinks[number] = pa.ipc.new_stream(str(name_rows(self.folder, number)), self._schema)
        return self._sinks[number]

    def close(self) -> None:
        """Close all files."""
        while self._sinks:
            self._sinks.popitem()[1].close()


def read_rows(folder: Path, number: int) -> pa.Table | None:
    """Return the rows of a partition, in the order of the input; None if it has none."""
    path = name_rows(folder, number)
    if not path.exists():
        return None
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
    row = table.column("row").to_numpy()
    if (row[1:] < row[:-1]).any():
        table = table.take(pa.array(np.argsort(row, kind="stable")))
    return table


def name_rows(folder: Path, number: int) -> Path:
    """Return the file of the rows of a partition."""
    return folder / f"rows-{number:05d}.arrows"


def plain(column: Any) -> Any:
    """Return a column whose type does not depend on which values are in it."""
    if isinstance(column, np.ndarray):
        return pa.array(column)
    column = decode_categories(column)
    if pa.types.is_integer(column.type) and column.type != pa.int64() and column.type != pa.uint64():
        return column.cast(pa.int64()) if column.type != pa.int32() else column
    return column.cast(pa.large_string()) if is_text(column.type) else column


def slices(table: pa.Table, most: int) -> Iterator[pa.Table]:
    """Yield a table in runs of at most so many rows."""
    for first in range(0, table.num_rows, most):
        yield table.slice(first, most)
