"""Vocabularies: the distinct values of a column, and each entry's index among them.

A *column* is a `pyarrow.Array` without nulls where Arrow knows the type, else a NumPy array of Python objects. A
*vocabulary* is a NumPy array of distinct values. Both are coded by hash tables in C, never row by row in Python.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Column = pa.Array | NDArray[np.object_]
Codes = NDArray[np.int32]
Values = NDArray[Any]

# Types that Arrow takes and gives back as they were. A subclass (an enum that is also a str) would come back changed.
_PLAIN = {str, bytes, int, float, bool, datetime.date, datetime.datetime, datetime.timedelta, decimal.Decimal}
_NOTHING = type(None)


def to_column(values: Any) -> Column:
    """Return any one-dimensional values as a column: Arrow where the types survive it, else Python objects.

    >>> to_column(["b", "a"]).type
    DataType(string)
    >>> to_column([("x", 1), ("y", 2)]).dtype
    dtype('O')
    """
    if isinstance(values, pa.ChunkedArray):
        return values.chunk(0) if values.num_chunks == 1 else values.unify_dictionaries().combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufMm":
        return pa.array(values, from_pandas=True)
    entries = values.tolist() if isinstance(values, np.ndarray) else list(values)
    kinds = set(map(type, entries)) - {_NOTHING}
    if kinds <= _PLAIN and len(kinds - {float}) <= 1:
        try:
            column: pa.Array = pa.array(entries, from_pandas=True)
            # An int among floats, or a float among strings, would come back as another type.
            if len(kinds) <= 1 or column.type != pa.float64():
                return column
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            pass
    return objects(entries)


def objects(entries: Sequence[Any]) -> NDArray[np.object_]:
    """Return a one-dimensional array of Python objects, tuples and lists included."""
    array = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        array[i] = entry
    return array


def find_missing(column: Column) -> NDArray[np.int64]:
    """Return the indices of nulls, NaNs and Nones."""
    if isinstance(column, np.ndarray):
        missing = np.fromiter((entry is None or entry != entry for entry in column), bool, len(column))
        return np.flatnonzero(missing)
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.empty(0, np.int64)
    return np.flatnonzero(pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False))


def to_values(column: Column) -> Values:
    """Return a column as a NumPy array that holds the values as they went in."""
    if isinstance(column, np.ndarray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def encode_in_order_of_appearance(column: Column) -> tuple[Codes, Values]:
    """Return each entry's index among the distinct values, which are kept in order of first appearance.

    >>> encode_in_order_of_appearance(to_column(["b", "a", "b"]))
    (array([0, 1, 0], dtype=int32), array(['b', 'a'], dtype=object))
    """
    if isinstance(column, np.ndarray):
        return _encode_objects(column)
    if pa.types.is_dictionary(column.type):
        indices = pc.dictionary_encode(column.indices)
        seen = column.dictionary.take(indices.dictionary)
    else:
        try:
            indices = pc.dictionary_encode(column)
        except pa.ArrowNotImplementedError:
            return _encode_objects(objects(column.to_pylist()))
        seen = indices.dictionary
    return np.asarray(indices.indices.to_numpy(zero_copy_only=False), np.int32), to_values(seen)


def encode_sorted(column: Column) -> tuple[Codes, Values]:
    """Return each entry's index among the distinct values, sorted; of a categorical, the categories seen, in order.

    >>> encode_sorted(to_column([3, 1, 3]))
    (array([1, 0, 1], dtype=int32), array([1, 3]))
    """
    codes, values = encode_in_order_of_appearance(column)
    if not isinstance(column, np.ndarray) and pa.types.is_dictionary(column.type):
        seen = np.unique(np.asarray(column.indices.to_numpy(zero_copy_only=False)))
        order = lookup(values, column.dictionary.take(pa.array(seen)))
    else:
        order = sorted_order(values)
    rank = np.empty(len(values), np.int32)
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[codes], values[order]


def sorted_order(values: Values) -> NDArray[np.int64]:
    """Return the order that sorts distinct values: enums as defined, what cannot be compared by type and text."""
    if values.dtype != object:
        return np.argsort(values, kind="stable")
    entries = values.tolist()
    kinds = set(map(type, entries))
    indices: Iterable[int]
    if len(kinds) == 1 and issubclass(kind := kinds.pop(), Enum):
        place = {member: i for i, member in enumerate(kind)}
        indices = sorted(range(len(entries)), key=lambda i: place[entries[i]])
    else:
        try:
            indices = sorted(range(len(entries)), key=lambda i: entries[i])
        except TypeError:
            indices = sorted(range(len(entries)), key=lambda i: (type(entries[i]).__name__, str(entries[i])))
    return np.array(list(indices), dtype=np.int64)


def lookup(values: Values, column: Column) -> NDArray[np.int64]:
    """Return the index of each entry of `column` in the distinct `values`, or -1.

    Whole numbers and their text are the same id: a CSV file of gold labels may read "7" where the answers have 7.

    >>> lookup(np.array([10, 20]), to_column(["20", "x"]))
    array([ 1, -1])
    """
    known = to_column(values)
    if not isinstance(known, np.ndarray) and not isinstance(column, np.ndarray):
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        known, column = _same_type(known, column)
        if known.type == column.type:
            try:
                found = pc.index_in(column, value_set=known)
                return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)
            except pa.ArrowNotImplementedError:
                pass
    index = {value: i for i, value in enumerate(to_values(known).tolist())}
    entries = to_values(column).tolist()
    return np.fromiter((index.get(entry, -1) for entry in entries), np.int64, len(entries))


def _same_type(known: pa.Array, column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bring two arrays to one type where their values can be equal at all."""
    if known.type == column.type:
        return known, column

    def is_text(kind: pa.DataType) -> bool:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))

    def is_number(kind: pa.DataType) -> bool:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    if is_number(known.type) and is_number(column.type):
        whole = pa.types.is_integer(known.type) and pa.types.is_integer(column.type)
        common = pa.int64() if whole else pa.float64()
    elif {is_text(known.type), is_text(column.type)} == {True} or (
        {
            is_text(known.type) or pa.types.is_integer(known.type),
            is_text(column.type) or pa.types.is_integer(column.type),
        }
        == {True}
    ):
        common = pa.large_string()
    else:
        return known, column
    return pc.cast(known, common, safe=False), pc.cast(column, common, safe=False)


def _encode_objects(entries: NDArray[np.object_]) -> tuple[Codes, Values]:
    index = {entry: i for i, entry in enumerate(dict.fromkeys(entries.tolist()))}
    codes = np.fromiter(map(index.__getitem__, entries.tolist()), np.int32, len(entries))
    return codes, objects(list(index))
