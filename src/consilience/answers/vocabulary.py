"""Vocabularies: the distinct values of a column, and each entry's index among them.

A *column* is a `pyarrow.Array` without nulls where Arrow knows the type, else a NumPy array of Python objects. A
*vocabulary* is a NumPy array of distinct values. Both are coded by hash tables in C, never row by row in Python.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from enum import Enum, Flag
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError, shorten
from ..memory import count_threads

Column: TypeAlias = "pa.Array | NDArray[np.object_]"
Codes = NDArray[np.int32]
Values = NDArray[Any]

# Types that Arrow takes and gives back as they were. A subclass (an enum that is also a str) would come back changed.
_PLAIN = {
    str,
    bytes,
    int,
    float,
    bool,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
}
_SCALARS = (np.bool_, np.integer, np.float16, np.float32, np.float64, np.datetime64)
_ZONED = {datetime.datetime, datetime.time}
_NOTHING = type(None)
# From so many entries on, compiled code is faster than Arrow, which need not be loaded first.
MANY = 100_000
# From so many entries on, memory counts more than the time to compile kernels for codes of one byte.
VERY_MANY = 1_000_000
# Arrow is the faster one for texts if the first ones are of fewer kinds.
SAMPLE, MANY_DISTINCT = 1 << 14, 1 << 12
# So many codes are counted together.
AT_ONCE = 1 << 17


def to_column(values: Any, what: str = "The data") -> Column:
    """Return any one-dimensional values as a column: Arrow where the types survive it, else Python objects.

    Values that cannot be told apart by a hash (lists, dicts) are an error, in which `what` stands for the values.

    >>> to_column(["b", "a"]).type
    DataType(string)
    >>> to_column([("x", 1), ("y", 2)]).dtype
    dtype('O')
    """
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _plain_array(values, what)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"{what} must have one dimension. Got an array of shape {values.shape} instead.")
        if values.dtype.kind in "biufMm":
            try:
                return _plain_array(pa.array(values, from_pandas=True), what)
            except pa.ArrowNotImplementedError:  # times in hours, months, ...
                pass
        values = values.tolist()
    try:
        entries = list(values)
    except TypeError as error:
        raise InputError(f"{what} must be a sequence of values. Got {shorten(values)} instead.") from error
    kinds = set(map(type, entries))
    if len(kinds) == 1 and issubclass(next(iter(kinds)), _SCALARS):
        return to_column(np.array(entries), what)
    if kinds == {np.str_}:
        entries, kinds = [str(entry) for entry in entries], {str}
    kinds.discard(_NOTHING)
    if len(kinds) == 2 and float in kinds and all(entry != entry for entry in entries if type(entry) is float):
        # NaN among values of another type is a missing value; any other number would be taken for one of them.
        plain, kinds = [None if type(entry) is float else entry for entry in entries], kinds - {float}
    else:
        plain = entries
    if kinds <= _PLAIN and len(kinds) <= 1 and not (kinds & _ZONED and any(map(_has_zone, plain))):
        try:
            return _plain_array(pa.array(plain, from_pandas=True), what)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError):
            pass
    _check_hashable(entries, what)
    return objects(entries)


def _plain_array(array: pa.Array | pa.ChunkedArray, what: str) -> Column:
    """Return an Arrow array in one piece and of a type in which equal values are equal, one that can be encoded."""
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_string(array.type) and array.nbytes > np.iinfo(np.int32).max:
            array = array.cast(pa.large_string())
        array = _join_chunks(array)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain_dictionary(array, what)
    if pa.types.is_run_end_encoded(kind):
        return _plain_array(pc.run_end_decode(array), what)
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or pa.types.is_interval(kind):
        entries = array.to_pylist()
        _check_hashable(entries, what)
        return objects(entries)
    if pa.types.is_float16(kind):
        array = array.cast(pa.float32())
    if pa.types.is_floating(kind):
        return pc.add(array, pa.scalar(0.0, array.type))  # -0.0 is 0.0
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return array.cast(pa.decimal128(kind.precision, kind.scale))
    return _plain_times(array, what) if pa.types.is_temporal(kind) else array


def _plain_times(array: pa.Array, what: str) -> pa.Array:
    """Return times in microseconds, as Python's own are. An error says why Python could not hold them."""
    kind = array.type
    if getattr(kind, "unit", None) == "ns":
        # NumPy gives nanoseconds back as bare integers.
        zone = getattr(kind, "tz", None)
        names = {"timestamp": pa.timestamp("us", zone), "duration": pa.duration("us"), "time64": pa.time64("us")}
        try:
            array = array.cast(names[str(kind).partition("[")[0]])
        except pa.ArrowInvalid as error:
            if zone is None and not pa.types.is_time(kind):
                return array  # NumPy knows them
            raise _time_error(what, "with nanoseconds: Python's own end at microseconds") from error
    numbers = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    for number in pc.min_max(numbers).as_py().values() if array.null_count < len(array) else ():
        try:
            pa.scalar(number, numbers.type).cast(array.type).as_py()
        except (pa.ArrowInvalid, KeyError) as error:
            raise _time_error(what, f"in the time zone {shorten(array.type.tz)}, which is not known") from error
        except (OverflowError, ValueError) as error:
            raise _time_error(what, "that Python cannot hold, such as years beyond 9999") from error
    return array.cast(pa.date32(), safe=False) if pa.types.is_date64(kind) else array


def _time_error(what: str, problem: str) -> InputError:
    return InputError(f"{what} must not hold times {problem}.", "Write them as text.")


def _join_chunks(array: pa.ChunkedArray) -> pa.Array:
    """Return the chunks of an array in one piece, categoricals with the categories of all."""
    if array.num_chunks == 1:
        return array.chunk(0)
    try:
        return array.unify_dictionaries().combine_chunks()
    except pa.ArrowNotImplementedError:  # categories that are lists
        return pa.array(array.to_pylist(), array.type.value_type)
    except pa.ArrowInvalid:  # categories that are missing values, or more of them than the indices can count
        chunks = [_without_missing_categories(chunk) for chunk in array.chunks]
        return pa.chunked_array(chunks).unify_dictionaries().combine_chunks()


def _without_missing_categories(array: pa.DictionaryArray) -> pa.DictionaryArray:
    known = pc.is_valid(array.dictionary)
    place = pc.if_else(known, pc.subtract(pc.cumulative_sum(known.cast(pa.int32())), 1), None)
    return pa.DictionaryArray.from_arrays(place.take(array.indices), array.dictionary.filter(known))


def _plain_dictionary(array: pa.DictionaryArray, what: str) -> Column:
    """Return a categorical whose categories are distinct values, none of them missing."""
    categories = _plain_array(array.dictionary, what)
    if isinstance(categories, np.ndarray):
        return objects([None if i is None else categories[i] for i in array.indices.to_pylist()])
    indices = array.indices
    missing = find_missing(categories)
    if len(missing):
        known = pc.invert(pc.is_in(indices, value_set=pa.array(missing, indices.type)))
        indices = pc.if_else(known, indices, pa.scalar(None, indices.type))
    distinct = pc.dictionary_encode(categories, null_encoding="encode")
    if len(distinct.dictionary) < len(categories):
        indices = distinct.indices.take(indices)
    return pa.DictionaryArray.from_arrays(indices, distinct.dictionary)


def _has_zone(entry: Any) -> bool:
    return getattr(entry, "tzinfo", None) is not None


def _check_hashable(entries: list[Any], what: str) -> None:
    for entry in entries:
        try:
            hash(entry)
        except TypeError:
            raise InputError(
                f"{what} must hold single values, such as text, numbers or tuples. Got {shorten(entry)} instead, "
                f"a {type(entry).__name__}."
            ) from None


def objects(entries: Sequence[Any]) -> NDArray[np.object_]:
    """Return a one-dimensional array of Python objects, tuples and lists included."""
    array = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        array[i] = entry
    return array


def spell_surrogates(text: str) -> str:
    r"""Return text that every format can hold: half characters, which no encoding knows, are shown by their codes.

    >>> print(spell_surrogates("a\ud800"))
    a\ud800
    """
    return text.encode(errors="backslashreplace").decode()


def is_text(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_categorical(column: Column) -> bool:
    """Tell whether a column has categories, whose order means something."""
    return not isinstance(column, np.ndarray) and bool(pa.types.is_dictionary(column.type))


def find_missing(column: Column) -> NDArray[np.int64]:
    """Return the indices of nulls, NaNs and Nones."""
    if isinstance(column, np.ndarray):
        return np.flatnonzero(np.fromiter(map(is_missing, column), bool, len(column)))
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.empty(0, np.int64)
    return np.flatnonzero(pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False))


def find_present(column: Column) -> NDArray[np.int64]:
    """Return the indices of all other entries."""
    return np.setdiff1d(np.arange(len(column)), find_missing(column), assume_unique=True)


def is_missing(entry: Any) -> bool:
    """Tell whether a Python object stands for no value: None, NaN, NaT or pandas' NA."""
    if entry is None:
        return True
    try:
        return bool(entry != entry)
    except TypeError:  # NA has no truth value
        return True
    except ValueError:  # nor have arrays and tables, which are no missing values
        return False


def to_values(column: Column) -> Values:
    """Return a column as a NumPy array that holds the values as they went in."""
    if isinstance(column, np.ndarray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return objects(column.to_pylist())  # NumPy knows no time zones
    return np.asarray(column.to_numpy(zero_copy_only=False))


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


def _encode_many(column: pa.Array) -> tuple[Codes, NDArray[np.signedinteger[Any]]] | None:
    """Return codes, and the row of each distinct value; None where Arrow is the faster one, or knows better."""
    from ..kernels.encoding import SHORT, encode_integers, encode_texts

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


def are_distinct(column: Column) -> bool:
    """Tell whether no value occurs twice in a column; missing ones do not count.

    >>> are_distinct(to_column([1, 2, None, None])), are_distinct(to_column(["a", "a"]))
    (True, False)
    """
    missing = find_missing(column)
    if len(missing):
        column = column.take(np.setdiff1d(np.arange(len(column)), missing, assume_unique=True))
    codes, distinct = encode_in_order_of_appearance(column)
    return len(codes) == len(distinct)


def encode_sorted(column: Column) -> tuple[Codes, Values]:
    """Return each entry's index among the distinct values, sorted; of a categorical, the categories seen, in order.

    >>> encode_sorted(to_column([3, 1, 3]))
    (array([1, 0, 1], dtype=int32), array([1, 3]))
    """
    if not isinstance(column, np.ndarray) and pa.types.is_dictionary(column.type):
        indices = column.indices.to_numpy(zero_copy_only=False)
        seen = np.bincount(indices, minlength=len(column.dictionary)) > 0
        rank = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        return rank[indices], to_values(column.dictionary.filter(pa.array(seen)))
    codes, values = encode_in_order_of_appearance(column)
    order = sorted_order(values)
    rank = np.empty(len(values), np.int32)
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[codes], values[order]


def narrow_codes(codes: Codes, n_values: int) -> NDArray[np.signedinteger[Any]]:
    """Return the codes of very many entries in one byte each, if there are few values; other codes as they are."""
    return codes.astype(np.int8) if len(codes) >= VERY_MANY and n_values <= 127 else codes


def count_codes(codes: NDArray[np.signedinteger[Any]], n_values: int) -> NDArray[np.int64]:
    """Return how often each code 0..n_values-1 occurs. `np.bincount` alone would copy all codes of 32 bits at once.

    >>> count_codes(np.array([1, 0, 1], np.int32), 3)
    array([1, 2, 0])
    """
    parts = (codes[first : first + AT_ONCE] for first in range(0, len(codes), AT_ONCE))
    return sum((np.bincount(part, minlength=n_values) for part in parts), np.zeros(n_values, np.int64))


def sorted_order(values: Values) -> NDArray[np.int64]:
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


def _argsort(keys: list[Any]) -> NDArray[np.int64]:
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _texts(entry: Any) -> list[str]:
    return sorted(map(str, entry)) if isinstance(entry, frozenset) else [str(entry)]


def lookup(values: Values, column: Column) -> NDArray[np.int64]:
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


def _read_truth(texts: pa.Array) -> pa.Array:
    """Return text as truth values, whatever its case; null where it is neither "true" nor "false"."""
    lower = pc.utf8_lower(texts)
    is_true = pc.equal(lower, "true")
    return pc.if_else(pc.or_(is_true, pc.equal(lower, "false")), is_true, None)


def decode_categories(column: pa.Array) -> pa.Array:
    """Return a categorical as its values; any other array as it is."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


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
