r"""Columns: values of one kind that stand one below the other, in Arrow where it knows the type.

A *column* is a `pyarrow.Array` without nulls where Arrow knows the type, else a NumPy array of Python objects. A
*vocabulary* is a NumPy array of distinct values. Entries are coded by hash tables in C, never row by row in Python.

Items that several columns identify together, such as prompt and pair, have one id: their parts as text, joined by `|`,
in which a `|` or `\` of a part has a `\` in front. Their column is called by the names of the columns, joined in the
same way. Tables of results have the parts beside the id, as whole numbers where all of a column are.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, Flag
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError, shorten
from ..kernels import Integers, Truths, freeze
from ..limits import ROWS_PER_THREAD, side_by_side

Column: TypeAlias = pa.Array | NDArray[np.object_]
Codes = NDArray[np.int32]
Values = NDArray[Any]
Indices = NDArray[np.int64]
# Types that Arrow takes and gives back as they were. A subclass (an enum that is also a str) would come back changed.
_TIMES = {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
_PLAIN = {str, bytes, int, float, bool, decimal.Decimal, *_TIMES}
_SCALARS = (np.bool_, np.integer, np.float16, np.float32, np.float64, np.datetime64)
# Types of Arrow that are held as others, which it can encode, and give back as Python has them: its own times have
# microseconds.
_HELD = {
    pa.string_view(): pa.large_string(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.duration("ns"): pa.duration("us"),
    pa.time64("ns"): pa.time64("us"),
}
_UNREADABLE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError)


def to_column(values: Any, what: str = "The data") -> Column:
    """Any one-dimensional values as a column: Arrow where the types survive it, else Python objects.

    An Arrow array is in one piece and of a type in which equal values are equal, one that can be encoded. Values
    without a hash (lists, dicts) are an error, in which `what` stands for the values.

    >>> to_column(["b", "a"]).type
    DataType(string)
    >>> to_column([("x", 1), ("y", 2)]).dtype
    dtype('O')
    """
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"{what} must have one dimension. Got an array of shape {values.shape} instead.")
        if values.dtype.kind in "biufMm":
            with suppress(pa.ArrowNotImplementedError):  # times in hours, months, ...
                values = pa.array(values, from_pandas=True)
        if isinstance(values, np.ndarray):
            values = values.tolist()
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        try:
            entries = list(values)
        except TypeError as error:
            raise InputError(f"{what} must be a sequence of values. Got {shorten(values)} instead.") from error
        kinds = set(map(type, entries))
        if len(kinds) == 1 and issubclass(next(iter(kinds)), _SCALARS):
            return to_column(np.array(entries), what)
        if kinds == {np.str_}:
            entries, kinds = list(map(str, entries)), {str}
        if float in kinds:  # NaN is a missing value, whatever the type of the others
            entries = [None if type(entry) is float and entry != entry else entry for entry in entries]
            kinds = set(map(type, entries))
        kinds.discard(type(None))
        zoned = kinds <= {datetime.datetime, datetime.time} and any(getattr(each, "tzinfo", None) for each in entries)
        array = None
        if len(kinds) <= 1 and kinds <= _PLAIN and not zoned:
            with suppress(*_UNREADABLE):
                array = pa.array(entries)
        if array is None:
            return _check_hashable(entries, what)
    elif isinstance(values, pa.ChunkedArray):
        kind = values.type
        if pa.types.is_string(kind) and values.nbytes > np.iinfo(np.int32).max:
            values = values.cast(pa.large_string())
        if pa.types.is_dictionary(kind) and kind.ordered and not share_categories(values.chunks):
            values = values.cast(pa.dictionary(kind.index_type, kind.value_type))
        try:
            array = values.chunk(0) if values.num_chunks == 1 else _combine(values)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # categories that are lists, missing, or too many
            array = pa.array(values.to_pylist(), kind.value_type)
    else:
        array = values

    kind = array.type
    if pa.types.is_dictionary(kind):
        categories = to_column(array.dictionary, what)
        if isinstance(categories, np.ndarray):
            return objects([None if i is None else categories[i] for i in array.indices.to_pylist()])
        if pa.types.is_floating(categories.type):
            categories = pc.if_else(pc.is_nan(categories), None, categories)
        # Distinct values, none of them missing.
        distinct, indices = pc.dictionary_encode(categories), array.indices
        if len(distinct.dictionary) < len(categories):
            indices = distinct.indices.take(indices)
        return pa.DictionaryArray.from_arrays(indices, distinct.dictionary, ordered=kind.ordered)
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or pa.types.is_interval(kind):
        return _check_hashable(array.to_pylist(), what)
    try:
        is_precise = pa.types.is_timestamp(kind) and kind.unit == "ns"
        held = pa.timestamp("us", kind.tz) if is_precise else _HELD.get(kind, kind)
        array = array.cast(held, safe=not pa.types.is_date64(kind))
        if pa.types.is_temporal(kind):
            array.drop_null()[:1].to_pylist()  # zones that nobody knows
    except (pa.ArrowInvalid, OverflowError, ValueError) as error:
        if kind == pa.timestamp("ns"):
            return array  # NumPy knows them
        raise InputError(
            f"{what} must not hold times that Python cannot hold, such as nanoseconds.", "Write them as text."
        ) from error
    return pc.add(array, pa.scalar(0.0, array.type)) if pa.types.is_floating(kind) else array  # -0.0 is 0.0


def _combine(column: pa.ChunkedArray) -> pa.Array:
    """The chunks in one array; many whole numbers are copied in threads."""
    n = len(column)
    if n < MANY_VALUES or not pa.types.is_integer(column.type) or column.null_count:
        return column.unify_dictionaries().combine_chunks()
    numbers = np.empty(n, column.type.to_pandas_dtype())
    ends = np.cumsum([len(chunk) for chunk in column.chunks]).tolist()

    def copy(start: int, stop: int) -> None:
        for chunk, end in zip(column.chunks[start:stop], ends[start:stop], strict=True):
            numbers[end - len(chunk) : end] = chunk.to_numpy()

    side_by_side(copy, len(ends), share_of(len(ends), n))
    return pa.array(numbers)


def share_categories(arrays: Sequence[pa.DictionaryArray]) -> bool:
    """Whether categoricals have the same categories in the same order: only then they have one order."""
    return all(array.dictionary.equals(arrays[0].dictionary) for array in arrays[1:])


def _check_hashable(entries: list[Any], what: str) -> NDArray[np.object_]:
    """An array of objects, which are an error if one has no hash."""
    for entry in entries:
        try:
            hash(entry)
        except (TypeError, ValueError):  # the latter of a view of memory
            is_set = isinstance(entry, (list, set, np.ndarray))
            raise InputError(
                f"{what} must hold single values, such as text, numbers or tuples. Got {shorten(entry)} instead, "
                f"a {type(entry).__name__}.",
                *(["Sets of tags are read by consilience.read_tags, into memory."] if is_set else []),
            ) from None
    return objects(entries)


def objects(entries: Sequence[Any]) -> NDArray[np.object_]:
    """A one-dimensional array of Python objects, tuples and lists included."""
    array = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        array[i] = entry
    return array


def to_values(column: Column) -> Values:
    """A column as a NumPy array that holds the values as they went in."""
    if isinstance(column, np.ndarray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return objects(column.to_pylist())  # NumPy knows no time zones
    return np.asarray(column.to_numpy(zero_copy_only=False))


def decode_categories(column: pa.Array) -> pa.Array:
    """A categorical as its values; any other array as it is."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def spell_surrogates(text: str) -> str:
    r"""Text that every format can hold: half characters, which no encoding knows, are shown by their codes.

    >>> print(spell_surrogates("a\ud800"))
    a\ud800
    """
    return text.encode(errors="backslashreplace").decode()


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def holds_sign(column: Column, sign: str) -> bool:
    """Whether a sign is in some text of a column."""
    if isinstance(column, np.ndarray):
        return any(isinstance(each, str) and sign in each for each in column.tolist())
    texts = decode_categories(column)
    return is_text(texts.type) and bool(pc.any(pc.match_substring(texts, sign)).as_py())


def is_present(column: Column) -> Truths:
    """Tell which entries are no nulls, NaNs and Nones."""
    if isinstance(column, np.ndarray):
        return ~np.fromiter(map(is_missing, column), bool, len(column))
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.ones(len(column), bool)
    return np.asarray(pc.invert(pc.is_null(column, nan_is_null=True)).to_numpy(zero_copy_only=False))


def find_missing(column: Column) -> Indices:
    """The indices of nulls, NaNs and Nones."""
    if not isinstance(column, np.ndarray) and column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.empty(0, np.int64)
    return np.flatnonzero(~is_present(column))


def find_present(column: Column) -> Indices:
    """The indices of all other entries."""
    return np.flatnonzero(is_present(column))


def is_missing(entry: object) -> bool:
    """Whether a Python object stands for no value: None, NaN, NaT or pandas' NA."""
    if entry is None:
        return True
    try:
        return bool(entry != entry)
    except TypeError:  # NA has no truth value
        return True
    except ValueError:  # nor have arrays and tables, which are no missing values
        return False


def name_probabilities(classes: Values, taken: Mapping[str, object]) -> list[str]:
    """The names of the columns of probabilities, none of which is taken."""
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


# From so many entries on, compiled code is faster than Arrow, which need not be loaded first.
MANY_VALUES = 100_000
# From so many entries on, memory counts more than the time to compile kernels for codes of one byte, which tell so many
# values apart.
VERY_MANY, MOST_NARROW = 1_000_000, 127
# So many codes are counted together.
CODES_AT_ONCE = 1 << 17
# Whole numbers are coded by a table of at most so many entries per row.
MOST_VALUES = 2


def encode_in_order_of_appearance(column: Column) -> tuple[Codes, Values]:
    """Return each entry's index among the distinct values, which are kept in order of first appearance.

    >>> encode_in_order_of_appearance(to_column(["b", "a", "b"]))
    (array([0, 1, 0], dtype=int32), array(['b', 'a'], dtype=object))
    """
    if isinstance(column, np.ndarray):
        index: dict[Any, int] = {}
        numbers = [index.setdefault(entry, len(index)) for entry in column.tolist()]
        return np.array(numbers, np.int32), objects(list(index))
    if pa.types.is_dictionary(column.type):
        values, indices = to_values(column.dictionary), column.indices.to_numpy(zero_copy_only=False)
        if len(indices) and indices[0] == 0 and indices[-1] == len(values) - 1 and are_in_order(indices):
            return indices, values
        codes, seen = encode_in_order_of_appearance(column.indices)
        return codes, values[seen]
    found = _encode_numbers(column, False)
    if found is not None:
        return found
    encoded = pc.dictionary_encode(column)
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int32), to_values(encoded.dictionary)


def _encode_numbers(column: pa.Array, by_value: bool) -> tuple[Codes, Values] | None:
    """Many whole numbers, coded by a table of all values between the lowest and the highest; None for other columns.

    Distinct values are sorted (`by_value`), or in order of first appearance.
    """
    n = len(column)
    if n < MANY_VALUES or not pa.types.is_signed_integer(column.type) or column.null_count:
        return None
    from ..kernels.columns import find_first_rows, number_marked, recode

    values = column.to_numpy()
    low, high = int(values.min()), int(values.max())
    size = high - low + 1
    if size > MOST_VALUES * n:
        return None
    first, numbers, codes = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(n, np.int32)
    marked = np.zeros(0 if by_value else n, bool)

    def cut(start: int, stop: int) -> Iterator[tuple[slice, Any]]:
        """A few rows at a time, in the one type that kernels are compiled for."""
        for begin in range(start, stop, CODES_AT_ONCE):
            rows = slice(begin, min(begin + CODES_AT_ONCE, stop))
            yield rows, freeze(values[rows].astype(np.int64))

    def find_first(start: int, stop: int) -> None:
        first[start:stop] = -1
        for rows, part in cut(0, n):
            find_first_rows(part, low, start, stop, rows.start, first)
        if not by_value:
            marked[first[start:stop][first[start:stop] >= 0]] = True

    def number_in_order(start: int, stop: int) -> None:
        number = int(np.count_nonzero(marked[:start]))
        for rows, part in cut(start, stop):
            number_marked(part, low, freeze(marked[rows].copy()), number, numbers)
            number += int(np.count_nonzero(marked[rows]))

    def write_codes(start: int, stop: int) -> None:
        for rows, part in cut(start, stop):
            recode(part, low, numbers, codes[rows])

    side_by_side(find_first, size, share_of(size, n))
    if by_value:
        seen = np.flatnonzero(first >= 0)
        numbers[seen] = np.arange(len(seen))
    else:
        side_by_side(number_in_order, n)
    side_by_side(write_codes, n)
    return codes, (seen + low).astype(values.dtype) if by_value else values[marked]


def are_in_order(codes: Integers) -> bool:
    """Whether sorted codes skip none.

    >>> are_in_order(np.array([0, 0, 1, 2])), are_in_order(np.array([0, 2]))
    (True, False)
    """
    steps = (np.diff(codes[first : first + CODES_AT_ONCE + 1]) for first in range(0, len(codes), CODES_AT_ONCE))
    return all(((step == 0) | (step == 1)).all() for step in steps)


def split_repeated(column: Column) -> tuple[Values, list[Any]]:
    """The distinct values in order of first appearance, and those of them that occur several times.

    >>> split_repeated(to_column([2, 1, 2]))
    (array([2, 1]), [2])
    """
    codes, distinct = encode_in_order_of_appearance(column)
    return distinct, distinct[np.bincount(codes) > 1].tolist() if len(distinct) < len(codes) else []


def are_distinct(column: Column) -> bool:
    """Whether no value occurs twice in a column; missing ones do not count.

    >>> are_distinct(to_column([1, 2, None, None])), are_distinct(to_column(["a", "a"]))
    (True, False)
    """
    return not split_repeated(column.take(find_present(column)))[1]


def number_groups(columns: Iterable[Column]) -> Indices:
    """For each row the number of its values together, in order of first appearance.

    >>> number_groups([to_column(["a", "a", "b"]), to_column([1, 2, 1])])
    array([0, 1, 2])
    """
    group: Any = 0
    for column in columns:
        codes, values = encode_in_order_of_appearance(column)
        group = encode_in_order_of_appearance(to_column(group * np.int64(len(values)) + codes))[0].astype(np.int64)
    return np.asarray(group)


def encode_sorted(column: Column) -> tuple[Codes, Values]:
    """Return each entry's index among the distinct values, sorted; of a categorical, the categories seen, in order.

    >>> encode_sorted(to_column([3, 1, 3]))
    (array([1, 0, 1], dtype=int32), array([1, 3]))
    """
    if not isinstance(column, np.ndarray) and pa.types.is_dictionary(column.type):
        indices, values = column.indices.to_numpy(zero_copy_only=False), to_values(column.dictionary)
        seen = count_codes(indices, len(values)) > 0
        return (indices, values) if seen.all() and indices.dtype == np.int32 else keep_values(indices, values, seen)
    found = None if isinstance(column, np.ndarray) else _encode_numbers(column, True)
    if found is not None:
        return found
    codes, values = encode_in_order_of_appearance(column)
    order = sorted_order(values)
    rank = np.empty(len(values), np.int32)
    rank[order] = np.arange(len(values), dtype=np.int32)
    return rank[codes], values[order]


def count_codes(codes: Integers, n_values: int, weights: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """How often each code 0..n_values-1 occurs, or the sum of its weights.

    `np.bincount` alone would copy all codes of 32 bits at once.

    >>> count_codes(np.array([1, 0, 1], np.int32), 3)
    array([1, 2, 0])
    """
    if weights is not None:
        return np.bincount(codes, weights, n_values)
    parts = (codes[first : first + CODES_AT_ONCE] for first in range(0, len(codes), CODES_AT_ONCE))
    return sum((np.bincount(part, minlength=n_values) for part in parts), np.zeros(n_values, np.int64))


def sorted_order(values: Values) -> Indices:
    """The order that sorts distinct values.

    Members of an enum are in the order of their definition. Values that cannot be compared are sorted by type and text.
    """
    if values.dtype != object:
        return np.argsort(values, kind="stable")
    keys: list[Any] = values.tolist()
    kinds, places = set(map(type, keys)), range(len(keys))
    if len(kinds) == 1 and issubclass(kind := next(iter(kinds)), Enum):
        members = {member: i for i, member in enumerate(kind)}
        # A union of flags is no member.
        keys = [entry.value for entry in keys] if issubclass(kind, Flag) else [members[entry] for entry in keys]
    try:
        if frozenset in kinds:  # whose < is not an order
            raise TypeError
        return np.array(sorted(places, key=keys.__getitem__), np.int64)
    except TypeError:
        texts = [sorted(map(str, entry)) if isinstance(entry, frozenset) else [str(entry)] for entry in keys]
        return np.array(sorted(places, key=lambda i: (type(keys[i]).__name__, texts[i])), np.int64)


def sort_rows(
    item: Integers, n_items: int, worker: Codes, label: Codes, *others: Any
) -> tuple[Indices, Codes, Codes, list[Any]]:
    """Where the answers to each item begin, and worker, label and other arrays (or None) of the answers by item."""
    rises = side_by_side(lambda a, b: bool(np.all(item[a:b] <= item[a + 1 : b + 1])), max(len(item) - 1, 0))
    if all(rises):  # sorted by item already, as most tables are: nothing to move
        return find_offsets(item, n_items), worker, label, list(others)
    order, offsets = order_by(item, n_items)
    return offsets, take_rows(worker, order), take_rows(label, order), [take_rows(each, order) for each in others]


def find_offsets(keys: Integers, n_keys: int) -> Indices:
    """Where each key 0..n_keys-1 begins among the sorted keys, and where the last one ends."""
    if len(keys) < MANY_VALUES:
        counts = np.bincount(keys, minlength=n_keys)
    else:
        from ..kernels.columns import count_keys

        counts = np.zeros(n_keys, np.int64)
        side_by_side(lambda start, stop: count_keys(keys, start, stop, counts), n_keys, share_of(n_keys, len(keys)))
    return np.concatenate([[0], np.cumsum(counts)])


def order_by(keys: Integers, n_keys: int) -> tuple[Integers, Indices]:
    """Return (order, offsets): the stable order that sorts `keys`, and where each key 0..n_keys-1 begins in it.

    A sort by counting, in which each thread has a range of keys.

    >>> order_by(np.array([1, 0, 1]), 2)
    (array([1, 0, 2]), array([0, 1, 3]))
    """
    offsets = find_offsets(keys, n_keys)
    if len(keys) < MANY_VALUES:
        return np.argsort(keys, kind="stable"), offsets
    from ..kernels.columns import place_rows

    order: Any = np.empty(len(keys), np.int32 if len(keys) < 1 << 31 else np.int64)
    places = offsets[:-1].copy()

    def place(start: int, stop: int) -> None:
        """Fill the part of the order that begins with the first key in it."""
        begin, end = np.searchsorted(offsets[:-1], (start, stop)).tolist()
        place_rows(keys, begin, end, places, order)

    side_by_side(place, len(keys))
    return order, offsets


def take_rows(values: Any, order: Integers) -> Any:
    """The rows of an array in this order; None stays None."""
    if values is None:
        return None
    taken = np.empty((len(order), *values.shape[1:]), values.dtype)

    def take(start: int, stop: int) -> None:
        for first in range(start, stop, CODES_AT_ONCE):  # NumPy copies short indices
            rows = slice(first, min(first + CODES_AT_ONCE, stop))
            np.take(values, order[rows], axis=0, out=taken[rows], mode="clip")

    side_by_side(take, len(order))
    return taken


def share_of(n_values: int, n_rows: int) -> int:
    """So many values make a thread worth starting if rows are shared by their values."""
    return max(1, n_values * ROWS_PER_THREAD // n_rows)


def lookup(values: Values, column: Column) -> Indices:
    """The index of each entry of `column` in the distinct `values`, or -1.

    Numbers and their text are the same, and so are truth values, dates and times and theirs: a CSV file of gold labels
    may read "7" where the answers have 7, and "true" where they have True.

    >>> lookup(np.array([10, 20]), to_column(["20", "x"])), lookup(np.array([0.5, 2.0]), to_column(["2", "2.0"]))
    (array([ 1, -1]), array([1, 1]))
    """
    known = to_column(values)
    if not isinstance(known, np.ndarray) and not isinstance(column, np.ndarray):
        column = decode_categories(column)
        kinds = {known.type, column.type}
        common = column.type if len(kinds) == 1 else _common_type(kinds)
        if common is None and any(map(is_text, kinds)) and any(map(pa.types.is_boolean, kinds)):
            known, column = (_read_truth(each) if is_text(each.type) else each for each in (known, column))
            common = pa.bool_()
        if common is None and any(map(is_text, kinds)):  # text that reads as a number or a time
            common = next((kind for kind in kinds if pa.types.is_floating(kind) or pa.types.is_temporal(kind)), None)
        if common is not None:
            # Beyond the common type, or no number, or a type whose values have no hash in Arrow.
            with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                codes = pc.index_in(pc.cast(column, common), value_set=pc.cast(known, common), skip_nulls=True)
                return np.asarray(pc.fill_null(codes, -1).to_numpy(zero_copy_only=False), np.int64)
    index = {value: i for i, value in enumerate(to_values(known).tolist())}
    texts = {str(value): i for value, i in index.items() if type(value) in (str, int)}
    entries = to_values(column).tolist()
    codes = (index.get(each, texts.get(str(each), -1) if type(each) in (str, int) else -1) for each in entries)
    return np.fromiter(codes, np.int64, len(entries))


def _common_type(kinds: set[pa.DataType]) -> pa.DataType | None:
    """The type that holds values of some types: numbers, or text and whole numbers; None for others."""
    if len(kinds) < 2:
        return next(iter(kinds), pa.null())
    if all(map(pa.types.is_integer, kinds)):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        return pa.float64()
    return pa.large_string() if all(is_text(kind) or pa.types.is_integer(kind) for kind in kinds) else None


def join_columns(*columns: Column, as_text: bool = False) -> Column:
    """The entries of several columns in one; whole numbers become floats beside floats if that loses nothing.

    With `as_text` whole numbers become text beside text, as in a file that holds both.

    >>> join_columns(to_column([1, 2]), to_column([2.5])).to_pylist()
    [1.0, 2.0, 2.5]
    """
    columns = tuple(each for each in columns if len(each)) or columns[:1]
    if len(columns) == 1:
        return columns[0]
    if not any(isinstance(each, np.ndarray) for each in columns):
        parts = [decode_categories(each) for each in columns]
        kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
        common = _common_type(kinds)
        if common is not None and (as_text or all(map(is_text, kinds)) or not any(map(is_text, kinds))):
            with suppress(pa.ArrowInvalid):  # a number that a float does not hold exactly
                return to_column(pa.chunked_array([pc.cast(part, common) for part in parts]))
    return to_column([entry for each in columns for entry in to_values(each).tolist()])


def join_values(old: Values, added: Values) -> Values:
    """The entries of both; whole numbers become text beside text."""
    return to_values(join_columns(to_column(old), to_column(added), as_text=True)) if len(added) else old


def plain_labels(labels: Column) -> Column:
    """Labels without categories, and text that says nothing but true and false as truth values.

    >>> plain_labels(to_column(["True", "false"])).to_pylist(), plain_labels(to_column(["True", "yes"])).to_pylist()
    ([True, False], ['True', 'yes'])
    """
    if isinstance(labels, np.ndarray):
        return labels
    labels = decode_categories(labels)
    truth = _read_truth(labels) if is_text(labels.type) else labels
    return truth if truth.null_count == labels.null_count else labels


def _read_truth(texts: pa.Array) -> pa.Array:
    """Text as truth values, whatever its case; null where it is neither "true" nor "false"."""
    lower = pc.utf8_lower(texts)
    is_true = pc.equal(lower, "true")
    return pc.if_else(pc.or_(is_true, pc.equal(lower, "false")), is_true, None)


def unite(old: Values, new: Values) -> tuple[Values, Codes, Codes]:
    """Two vocabularies as one, sorted if the old one is, else with what is new at its end; where those of each are.

    >>> unite(np.array(["a", "c"], object), np.array(["b", "c"], object))[0].tolist()
    ['a', 'b', 'c']
    >>> unite(np.array(["low", "high"], object), np.array(["high", "even"], object))[0].tolist()
    ['low', 'high', 'even']
    """
    values, index = add_values(old, new)
    rank = np.arange(len(values), dtype=np.int32)
    if len(values) > len(old) and (sorted_order(old) == np.arange(len(old))).all():
        order = sorted_order(values)
        rank[order] = np.arange(len(values), dtype=np.int32)
        values = values[order]
    return values, rank[: len(old)], rank[index]


def add_values(known: Values, more: Values) -> tuple[Values, Indices]:
    """Return distinct values with those of some more that are new at the end, and where each of the latter is.

    >>> add_values(np.array([5, 3]), np.array([4, 5]))
    (array([5, 3, 4]), array([2, 0]))
    """
    index = lookup(known, to_column(more))
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


SIGN, ESCAPE = "|", "\\"
# Columns of tables of results, after which no part of an item is called.
RESULT_COLUMNS = (
    "item",
    "sequence",
    "position",
    "worker",
    "label",
    "confidence",
    "median",
    "mean",
    "low",
    "high",
    "decided_by",
)
_PART = re.compile(r"(?:^|\|)((?:[^|\\]|\\.)*)", re.DOTALL)
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"


def join_texts(parts: Iterable[object]) -> str:
    r"""Some parts as one text.

    >>> join_texts(["a|b", 7]), split_text(join_texts(["a|b", 7]))
    ('a\\|b|7', ['a|b', '7'])
    """
    return SIGN.join(str(part).replace(ESCAPE, ESCAPE * 2).replace(SIGN, ESCAPE + SIGN) for part in parts)


def split_text(text: str) -> list[str]:
    """The parts that `join_texts` joined."""
    return [re.sub(r"(?s)\\(.)", r"\1", part) for part in _PART.findall(text)]


def join_parts(columns: Sequence[Column]) -> Column:
    """The columns of parts as one of ids; it is missing where one of them is.

    >>> join_parts([pa.array(["p", "q"]), pa.array([7, None])]).to_pylist()
    ['p|7', None]
    """
    texts = []
    for column in columns:
        if isinstance(column, np.ndarray):
            column = pa.array([None if is_missing(entry) else str(entry) for entry in column], pa.large_string())
        text = pc.cast(decode_categories(column), pa.large_string())
        text = pc.replace_substring(text, ESCAPE, ESCAPE * 2)
        texts.append(pc.replace_substring(text, SIGN, ESCAPE + SIGN))
    return to_column(pc.binary_join_element_wise(*texts, pa.scalar(SIGN, pa.large_string())))


def split_ids(ids: Values, names: str | None, taken: Iterable[str] = RESULT_COLUMNS) -> dict[str, Column]:
    """The columns of the parts of ids, if the column of ids is called by several names; else none.

    A part that is called like a column of results has item_ in front of its name.

    >>> split_ids(np.array(["p|7", "q|8"], object), "prompt|pair")["pair"].to_pylist()
    [7, 8]
    """
    called = split_names(names)
    parts = [split_text(str(each)) for each in ids.tolist()] if called else []
    columns: dict[str, Column] = {}
    for place, name in enumerate(called):
        texts = pa.array([each[place] if place < len(each) else None for each in parts], pa.large_string())
        whole = len(texts) > 0 and pc.all(pc.match_substring_regex(texts, _WHOLE), min_count=0).as_py()
        columns[f"item_{name}" if name in taken else name] = to_column(
            pc.cast(texts, pa.int64()) if whole and not texts.null_count else texts
        )
    return columns


def split_names(names: str | None) -> list[str]:
    """The names of several columns that are joined; none if it is the name of one."""
    parts = split_text(names) if isinstance(names, str) and SIGN in names else []
    return parts if len(parts) > 1 else []


def name_composite(columns: Mapping[str, str], role: str = "item") -> list[str]:
    """The columns that identify an item together, if these are several; else none."""
    return split_names(columns.get(role))


def tuples_to_ids(keys: Iterable[object]) -> list[object]:
    """Ids of items from tuples of their parts; anything else as it is."""
    return [join_texts(key) if isinstance(key, tuple) else key for key in keys]
