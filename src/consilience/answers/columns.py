"""Columns: values of one kind that stand one below the other, in Arrow where it knows the type.

A *column* is a `pyarrow.Array` without nulls where Arrow knows the type, else a NumPy array of Python objects. A
*vocabulary* is a NumPy array of distinct values; see `vocabulary`.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError, shorten
from ..kernels import Truths

Column: TypeAlias = pa.Array | NDArray[np.object_]
Codes = NDArray[np.int32]
Values = NDArray[Any]
Indices = NDArray[np.int64]
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
    if pa.types.is_dictionary(array.type) and array.type.ordered and not share_categories(array.chunks):
        array = array.cast(pa.dictionary(array.type.index_type, array.type.value_type))
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
    kept = array.dictionary.filter(known)
    return pa.DictionaryArray.from_arrays(place.take(array.indices), kept, ordered=array.type.ordered)


def share_categories(arrays: Sequence[pa.DictionaryArray]) -> bool:
    """Tell whether categoricals have the same categories in the same order: only then they have one order."""
    return all(array.dictionary.equals(arrays[0].dictionary) for array in arrays[1:])


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
    return pa.DictionaryArray.from_arrays(indices, distinct.dictionary, ordered=array.type.ordered)


def _has_zone(entry: object) -> bool:
    return getattr(entry, "tzinfo", None) is not None


def _check_hashable(entries: list[Any], what: str) -> None:
    for entry in entries:
        try:
            hash(entry)
        except (TypeError, ValueError):  # the latter of a view of memory
            lists = ["Sets of tags are read by consilience.read_tags, into memory."] if isinstance(entry, list) else []
            raise InputError(
                f"{what} must hold single values, such as text, numbers or tuples. Got {shorten(entry)} instead, "
                f"a {type(entry).__name__}.",
                *lists,
            ) from None


def objects(entries: Sequence[Any]) -> NDArray[np.object_]:
    """Return a one-dimensional array of Python objects, tuples and lists included."""
    array = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        array[i] = entry
    return array


def to_values(column: Column) -> Values:
    """Return a column as a NumPy array that holds the values as they went in."""
    if isinstance(column, np.ndarray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return objects(column.to_pylist())  # NumPy knows no time zones
    return np.asarray(column.to_numpy(zero_copy_only=False))


def decode_categories(column: pa.Array) -> pa.Array:
    """Return a categorical as its values; any other array as it is."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def spell_surrogates(text: str) -> str:
    r"""Return text that every format can hold: half characters, which no encoding knows, are shown by their codes.

    >>> print(spell_surrogates("a\ud800"))
    a\ud800
    """
    return text.encode(errors="backslashreplace").decode()


def is_text(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def holds_sign(column: Column, sign: str) -> bool:
    """Tell whether a sign is in some text of a column."""
    if isinstance(column, np.ndarray):
        return any(isinstance(each, str) and sign in each for each in column.tolist())
    texts = decode_categories(column)
    return is_text(texts.type) and bool(pc.any(pc.match_substring(texts, sign)).as_py())


def is_categorical(column: Column) -> bool:
    """Tell whether a column has categories, whose order means something."""
    return not isinstance(column, np.ndarray) and bool(pa.types.is_dictionary(column.type))


def is_ordered(column: Column) -> bool:
    """Tell whether a column has categories, and says that they are in order from low to high."""
    return not isinstance(column, np.ndarray) and is_categorical(column) and bool(column.type.ordered)


def is_present(column: Column) -> Truths:
    """Tell which entries are no nulls, NaNs and Nones."""
    if isinstance(column, np.ndarray):
        return ~np.fromiter(map(is_missing, column), bool, len(column))
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.ones(len(column), bool)
    return np.asarray(pc.invert(pc.is_null(column, nan_is_null=True)).to_numpy(zero_copy_only=False))


def find_missing(column: Column) -> Indices:
    """Return the indices of nulls, NaNs and Nones."""
    if not isinstance(column, np.ndarray) and column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.empty(0, np.int64)
    return np.flatnonzero(~is_present(column))


def find_present(column: Column) -> Indices:
    """Return the indices of all other entries."""
    return np.flatnonzero(is_present(column))


def is_missing(entry: object) -> bool:
    """Tell whether a Python object stands for no value: None, NaN, NaT or pandas' NA."""
    if entry is None:
        return True
    try:
        return bool(entry != entry)
    except TypeError:  # NA has no truth value
        return True
    except ValueError:  # nor have arrays and tables, which are no missing values
        return False


def name_probabilities(classes: Values, taken: Mapping[str, object]) -> list[str]:
    """Return the names of the columns of probabilities, none of which is taken."""
    return distinct_names([f"p({spell_surrogates(str(name))})" for name in classes.tolist()], list(taken))


def distinct_names(names: list[str], taken: Sequence[str] = ()) -> list[str]:
    """Make column names distinct: the classes 1 and "1" have the same text."""
    seen = set(taken)
    result = []
    for name in names:
        unique, n = name, 2
        while unique in seen:
            unique, n = f"{name} ({n})", n + 1
        seen.add(unique)
        result.append(unique)
    return result
