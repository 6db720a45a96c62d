"""Vocabularies: the distinct values of a column, and each entry's index among them.

They are coded by hash tables in C, never row by row in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, Flag
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..kernels import Integers, Truths
from ..memory import count_threads
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    decode_categories,
    find_present,
    is_text,
    objects,
    to_column,
    to_values,
)

# From so many entries on, compiled code is faster than Arrow, which need not be loaded first.
MANY = 100_000
# From so many entries on, memory counts more than the time to compile kernels for codes of one byte.
VERY_MANY = 1_000_000
# Arrow is the faster one for texts if the first ones are of fewer kinds.
SAMPLE, MANY_DISTINCT = 1 << 14, 1 << 12
# So many codes are counted together.
AT_ONCE = 1 << 17


def encode_in_order_of_appearance(column: Column) -> tuple[Codes, Values]:
    """Return each entry's index among the distinct values, which are kept in order of first appearance.

    >>> encode_in_order_of_appearance(to_column(["b", "a", "b"]))
    (array([0, 1, 0], dtype=int32), array(['b', 'a'], dtype=object))
    """
    if isinstance(column, np.ndarray):
        return _encode_objects(column)
    if pa.types.is_dictionary(column.type):
        codes, seen = encode_in_order_of_appearance(column.indices)
        return codes, to_values(column.dictionary.take(pa.array(seen)))
    if MANY <= len(column) < 2**31 and column.null_count == 0:
        found = _encode_many(column)
        if found is not None:
            return found[0], to_values(column.take(pa.array(found[1])))
    encoded = pc.dictionary_encode(column)
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int32), to_values(encoded.dictionary)


def _encode_many(column: pa.Array) -> tuple[Codes, Integers] | None:
    """Return codes, and the row of each distinct value; None where Arrow is the faster one, or knows better."""
    from ..kernels.columns import SHORT, encode_integers, encode_texts

    if pa.types.is_integer(column.type):
        # Beyond the range of 64 bits with a sign numbers wrap around, and stay distinct.
        return encode_integers(column.to_numpy().astype(np.int64, copy=False), count_threads())
    if not is_text(column.type) or len(column.slice(0, SAMPLE).unique()) < MANY_DISTINCT:
        return None
    _, ends, data = column.buffers()
    width: Any = np.int64 if pa.types.is_large_string(column.type) else np.int32
    offsets = np.frombuffer(ends, width)[column.offset : column.offset + len(column) + 1]
    if np.diff(offsets).max() > SHORT:
        return None
    return encode_texts(np.frombuffer(data or b"", np.uint8), offsets, count_threads())


def split_repeated(column: Column) -> tuple[Values, list[Any]]:
    """Return the distinct values in order of first appearance, and those of them that occur several times.

    >>> split_repeated(to_column([2, 1, 2]))
    (array([2, 1]), [2])
    """
    codes, distinct = encode_in_order_of_appearance(column)
    return distinct, distinct[np.bincount(codes) > 1].tolist() if len(distinct) < len(codes) else []


def are_distinct(column: Column) -> bool:
    """Tell whether no value occurs twice in a column; missing ones do not count.

    >>> are_distinct(to_column([1, 2, None, None])), are_distinct(to_column(["a", "a"]))
    (True, False)
    """
    present = find_present(column)
    codes, distinct = encode_in_order_of_appearance(column.take(present) if len(present) < len(column) else column)
    return len(codes) == len(distinct)


def encode_sorted(column: Column) -> tuple[Codes, Values]:
    """Return each entry's index among the distinct values, sorted; of a categorical, the categories seen, in order.

    >>> encode_sorted(to_column([3, 1, 3]))
    (array([1, 0, 1], dtype=int32), array([1, 3]))
    """
    if not isinstance(column, np.ndarray) and pa.types.is_dictionary(column.type):
        indices = column.indices.to_numpy(zero_copy_only=False)
        seen = np.bincount(indices, minlength=len(column.dictionary)) > 0
        return keep_values(indices, to_values(column.dictionary), seen)
    codes, values = encode_in_order_of_appearance(column)
    order = sorted_order(values)
    rank = np.empty(len(values), np.int32)
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[codes], values[order]


def narrow_codes(codes: Codes, n_values: int) -> Integers:
    """Return the codes of very many entries in one byte each, if there are few values; other codes as they are."""
    return codes.astype(np.int8) if len(codes) >= VERY_MANY and n_values <= 127 else codes


def count_codes(codes: Integers, n_values: int) -> Indices:
    """Return how often each code 0..n_values-1 occurs. `np.bincount` alone would copy all codes of 32 bits at once.

    >>> count_codes(np.array([1, 0, 1], np.int32), 3)
    array([1, 2, 0])
    """
    parts = (codes[first : first + AT_ONCE] for first in range(0, len(codes), AT_ONCE))
    return sum((np.bincount(part, minlength=n_values) for part in parts), np.zeros(n_values, np.int64))


def sorted_order(values: Values) -> Indices:
    """Return the order that sorts distinct values.

    Members of an enum are in the order of their definition. Values that cannot be compared are sorted by type and text.
    """
    if values.dtype != object:
        return np.argsort(values, kind="stable")
    entries = values.tolist()
    kinds = set(map(type, entries))
    if len(kinds) == 1 and issubclass(kind := next(iter(kinds)), Enum):
        if issubclass(kind, Flag):
            return _argsort([entry.value for entry in entries])  # a union of flags is no member
        place = {member: i for i, member in enumerate(kind)}
        return _argsort([place[entry] for entry in entries])
    if frozenset not in kinds:  # whose < is not an order
        try:
            return _argsort(entries)
        except TypeError:
            pass
    return _argsort([(type(entry).__name__, _texts(entry)) for entry in entries])


def _argsort(keys: list[Any]) -> Indices:
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _texts(entry: object) -> list[str]:
    return sorted(map(str, entry)) if isinstance(entry, frozenset) else [str(entry)]


def lookup(values: Values, column: Column) -> Indices:
    """Return the index of each entry of `column` in the distinct `values`, or -1.

    Numbers and their text are the same, and so are truth values, dates and times and theirs: a CSV file of gold labels
    may read "7" where the answers have 7, and "true" where they have True.

    >>> lookup(np.array([10, 20]), to_column(["20", "x"])), lookup(np.array([0.5, 2.0]), to_column(["2", "2.0"]))
    (array([ 1, -1]), array([1, 1]))
    """
    known = to_column(values)
    if not isinstance(known, np.ndarray) and not isinstance(column, np.ndarray):
        known, column = _same_type(known, decode_categories(column))
        if known.type == column.type:
            try:
                found = pc.index_in(column, value_set=known, skip_nulls=True)
                return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)
            except pa.ArrowNotImplementedError:
                pass
    index = {value: i for i, value in enumerate(to_values(known).tolist())}
    entries = to_values(column).tolist()
    return np.fromiter((index.get(entry, -1) for entry in entries), np.int64, len(entries))


def join_columns(first: Column, second: Column) -> Column:
    """Return the entries of both columns in one; whole numbers become floats beside floats if that loses nothing.

    >>> join_columns(to_column([1, 2]), to_column([2.5]))
    <pyarrow.lib.DoubleArray object at ...>
    [
      1,
      2,
      2.5
    ]
    """
    if not len(second):
        return first
    if not isinstance(first, np.ndarray) and not isinstance(second, np.ndarray):
        parts = [decode_categories(first), decode_categories(second)]
        common = parts[0].type if parts[0].type == parts[1].type else _number_type(*(part.type for part in parts))
        if common is not None:
            try:
                return to_column(pa.chunked_array([pc.cast(part, common) for part in parts]))
            except pa.ArrowInvalid:  # a number that a float does not hold exactly
                pass
    return to_column(to_values(first).tolist() + to_values(second).tolist())


def plain_labels(labels: Column) -> Column:
    """Return labels without categories, and text that says nothing but true and false as truth values.

    >>> plain_labels(to_column(["True", "false"])).to_pylist(), plain_labels(to_column(["True", "yes"])).to_pylist()
    ([True, False], ['True', 'yes'])
    """
    if isinstance(labels, np.ndarray):
        return labels
    labels = decode_categories(labels)
    truth = _read_truth(labels) if is_text(labels.type) else labels
    return truth if truth.null_count == labels.null_count else labels


def whole_numbers(labels: Column) -> Column:
    """Return text such as "1.0" as numbers, if all of it is: whole numbers beside empty cells are often written so."""
    try:
        is_words = not isinstance(labels, np.ndarray) and is_text(decode_categories(labels).type)
        return pc.cast(decode_categories(labels), pa.float64()) if is_words else labels
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return labels


def _read_truth(texts: pa.Array) -> pa.Array:
    """Return text as truth values, whatever its case; null where it is neither "true" nor "false"."""
    lower = pc.utf8_lower(texts)
    is_true = pc.equal(lower, "true")
    return pc.if_else(pc.or_(is_true, pc.equal(lower, "false")), is_true, None)


def _same_type(known: pa.Array, column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bring two arrays to one type where their values can be equal at all."""
    kinds = (known.type, column.type)
    if kinds[0] == kinds[1]:
        return known, column
    if any(map(is_text, kinds)) and any(map(pa.types.is_boolean, kinds)):
        known, column = (_read_truth(each) if is_text(each.type) else each for each in (known, column))
        return known, column
    common = _number_type(*kinds)
    if any(map(is_text, kinds)) and all(is_text(kind) or pa.types.is_integer(kind) for kind in kinds):
        common = pa.large_string()
    elif any(map(is_text, kinds)):
        common = next((kind for kind in kinds if pa.types.is_floating(kind) or pa.types.is_temporal(kind)), None)
    try:
        return (known, column) if common is None else (pc.cast(known, common), pc.cast(column, common))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a number too large for the common type, or no number
        return known, column


def _number_type(*kinds: pa.DataType) -> pa.DataType | None:
    """Return the type for numbers of several types, None unless all are numbers."""
    if all(map(pa.types.is_integer, kinds)):
        return pa.int64()
    return pa.float64() if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds) else None


def _encode_objects(entries: NDArray[np.object_]) -> tuple[Codes, Values]:
    index = {entry: i for i, entry in enumerate(dict.fromkeys(entries.tolist()))}
    codes = np.fromiter(map(index.__getitem__, entries.tolist()), np.int32, len(entries))
    return codes, objects(list(index))


class Union(NamedTuple):
    """Two vocabularies as one, and where the entries of each are."""

    values: Values
    old: Codes
    new: Codes

    @classmethod
    def of(cls, old: Values, new: Values) -> Union:
        """Return the union: sorted if the old one is, else with what is new at its end.

        >>> Union.of(np.array(["a", "c"], object), np.array(["b", "c"], object)).values.tolist()
        ['a', 'b', 'c']
        >>> Union.of(np.array(["low", "high"], object), np.array(["high", "even"], object)).values.tolist()
        ['low', 'high', 'even']
        """
        values, index = add_values(old, new)
        rank = np.arange(len(values), dtype=np.int32)
        if len(values) > len(old) and (sorted_order(old) == np.arange(len(old))).all():
            order = sorted_order(values)
            rank[order] = np.arange(len(values), dtype=np.int32)
            values = values[order]
        return cls(values, rank[: len(old)], rank[index])


def join_values(old: Values, added: Values) -> Values:
    """Return the entries of both. Whole numbers become text beside text, as in a file that holds both."""
    if not len(added):
        return old
    first, second = to_column(old), to_column(added)
    if not isinstance(first, np.ndarray) and not isinstance(second, np.ndarray):
        kinds = (first.type, second.type)
        if any(map(is_text, kinds)) and all(is_text(kind) or pa.types.is_integer(kind) for kind in kinds):
            first, second = pc.cast(first, pa.large_string()), pc.cast(second, pa.large_string())
    return to_values(join_columns(first, second))


def add_values(
    known: Values, more: Values, find: Callable[[Values, Values], Indices] | None = None
) -> tuple[Values, Indices]:
    """Return distinct values with those of some more that are new at the end, and where each of the latter is.

    >>> add_values(np.array([5, 3]), np.array([4, 5]))
    (array([5, 3, 4]), array([2, 0]))
    """
    index = lookup(known, to_column(more)) if find is None else find(known, more)
    added = index < 0
    index[added] = len(known) + np.arange(added.sum())
    return join_values(known, more[added]), index


def keep_values(codes: Integers, values: Values, kept: Truths) -> tuple[Codes, Values]:
    """Return codes and vocabulary with only the values that are marked True, which are all that occur.

    >>> keep_values(np.array([2, 0]), np.array(["a", "b", "c"]), np.array([True, False, True]))
    (array([1, 0], dtype=int32), array(['a', 'c'], dtype='<U1'))
    """
    rank = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    return rank[codes], values[kept]
