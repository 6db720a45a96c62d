"""Rows split into partitions by a hash of what they are about, with workers and labels as codes.

The partition of a row is given by the first bits of a hash of its item, or of its sequence: all rows about an item meet
in one partition. Rows keep their number in the input, so that a partition can be put in the order of the input again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Column, Values, decode_categories, is_categorical, is_ordered, is_text, to_values
from ..answers.random_choices import hash_ids
from ..answers.vocabulary import sorted_order
from ..errors import InputError, listing

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

    Equal ids of one type are in the same partition, whatever else is in the column. All whole numbers are of one type.

    >>> find_partitions(pa.array([7, 8, 7]), 1)
    array([0, 0, 0])
    """
    from ..kernels.columns import hash_texts, scramble

    if n_partitions == 1:
        return np.zeros(len(ids), np.int64)
    if not isinstance(ids, np.ndarray):
        ids = decode_categories(ids)
    if not isinstance(ids, np.ndarray) and pa.types.is_integer(ids.type):
        # Beyond the range of 64 bits with a sign numbers wrap around.
        hashes = scramble(to_values(ids).astype(np.int64, copy=False).view(np.uint64))
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
    """Distinct values in the order in which they were met, and whether all of them are categories.

    Categories that occur in no row are known, but not seen. They are ordered if all columns say so, with the same ones.
    """

    codes: dict[object, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    categorical: bool = True
    orders: set[tuple[object, ...] | None] = field(default_factory=set)  # categories of each column, None without order

    @property
    def is_ordered(self) -> bool:
        """Whether the values are categories in order, from low to high."""
        return len(self.orders) == 1 and None not in self.orders

    def encode(self, column: pa.Array) -> NDArray[np.int32]:
        """Return the code of each entry; new values get the next ones."""
        self.categorical &= is_categorical(column)
        self.orders.add(tuple(column.dictionary.to_pylist()) if is_ordered(column) else None)
        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column)
        new = [self.codes.setdefault(value, len(self.codes)) for value in column.dictionary.to_pylist()]
        code_of = np.array(new, np.int32)
        local = column.indices.to_numpy(zero_copy_only=False)
        self.seen.update(code_of[np.bincount(local, minlength=len(code_of)) > 0].tolist())
        return np.asarray(code_of[local])

    def merge(self, other: GrowingVocabulary) -> NDArray[np.int32]:
        """Add the values of another vocabulary; return the code of each of its own codes here."""
        self.categorical &= other.categorical
        self.orders |= other.orders
        codes = np.array([self.codes.setdefault(value, len(self.codes)) for value in other.codes], np.int32)
        self.seen.update(codes[sorted(other.seen)].tolist())
        return codes

    def settle(self, kind: pa.DataType, to_integers: bool) -> tuple[Values, NDArray[np.int32]]:
        """Return the values that were seen, in order, and for each code its index among them, -1 if it was not seen.

        Values are sorted, and categories keep their order. Text that is whole numbers becomes integers, if asked for.
        """
        from ..formats.files import read_integers

        order = np.array(sorted(self.seen), np.int64)
        column = pa.array(list(self.codes), kind).take(pa.array(order))
        values = to_values(read_integers(column) if to_integers and is_text(column.type) else column)
        if not self.categorical:
            by_value = sorted_order(values)
            order, values = order[by_value], values[by_value]
        index = np.full(len(self.codes), -1, np.int32)
        index[order] = np.arange(len(order), dtype=np.int32)
        return values, index


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values are sorted: one for all whole numbers up to 64 bits with a sign, one for text.

    >>> plain_type(pa.int8()), plain_type(pa.dictionary(pa.int32(), pa.string()))
    (DataType(int64), DataType(large_string))
    """
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    return pa.large_string() if is_text(kind) else kind


def find_common_type(kinds: Collection[pa.DataType], name: str) -> pa.DataType:
    """Return the type for the values of a column that has several, as for files that are read into memory.

    Whole numbers become floats beside floats, and text beside text.

    >>> find_common_type([pa.int64(), pa.float64()], "label"), find_common_type([pa.int64(), pa.large_string()], "item")
    (DataType(double), DataType(large_string))
    """
    if all(is_text(kind) or pa.types.is_integer(kind) for kind in kinds) and any(map(is_text, kinds)):
        return pa.large_string()
    schemas = [pa.schema([(name, kind)]) for kind in sorted(kinds, key=str)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InputError(
            f"Column {name!r} holds values of the types {listing(sorted(map(str, kinds)))}.",
            "Give all values of a column one type.",
        ) from error


class Piece(NamedTuple):
    """Some rows in a file, sorted by partition.

    Attributes
    ----------
    name : str
        The name of the file.
    offsets : int64 array (n_partitions + 1,)
        Partition p has the rows offsets[p]:offsets[p + 1] of the file.
    """

    name: str
    offsets: NDArray[np.int64]


def write_piece(path: Path, owners: Column, columns: Mapping[str, Column], n_partitions: int) -> Piece:
    """Write rows to a file, sorted by the partition of their owner: an item, or a sequence."""
    from ..kernels.columns import order_by

    table = pa.table(dict(columns))
    order, offsets = order_by(find_partitions(owners, n_partitions), n_partitions)
    if n_partitions > 1:
        table = table.take(pa.array(order))
    filled = np.flatnonzero(np.diff(offsets))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        for first, last in zip(offsets[filled].tolist(), offsets[filled + 1].tolist(), strict=True):
            writer.write_batch(table.slice(first, last - first).combine_chunks().to_batches()[0])
    return Piece(path.name, offsets)


def read_piece(folder: Path, piece: Piece, number: int) -> pa.Table | None:
    """Return the rows of a partition in a piece; None if there are none."""
    if piece.offsets[number] == piece.offsets[number + 1]:
        return None
    # There is a batch for each partition that has rows.
    batch = int(np.count_nonzero(np.diff(piece.offsets[: number + 1])))
    with pa.memory_map(str(folder / piece.name)) as source, pa.ipc.open_file(source) as reader:
        return pa.table(reader.get_batch(batch))


def plain(column: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """Return a column without categories, and of the type that is given, or else of a plain one."""
    return decode_categories(column).cast(plain_type(column.type) if kind is None else kind)
