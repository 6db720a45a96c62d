"""Tables of any frame library: columns in, and results out in the caller's own library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from ..errors import InputError, first_line, listing, shorten
from ..memory import NUMBER, require_memory
from .columns import Column, Values, find_missing, is_missing, spell_surrogates, to_column
from .tables import Table, check_names
from .vocabulary import split_repeated

# The libraries in which results can go back.
BACKENDS = ("pandas", "polars", "pyarrow")


def open_frame(frame: object, name: str = "the table") -> Table:
    """Return a frame of any library narwhals knows, or a mapping of columns, as a `Table`; a `Table` as it is."""
    if isinstance(frame, Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        check_names(frame.column_names, "A table")
        return open_arrow(frame, name)
    if isinstance(frame, Mapping):
        return _open_mapping(frame, name)
    native = _to_native(frame)
    if _is_stream(frame, native):
        return open_frame(_read_stream(frame, name), name)
    if not isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"Cannot read {name} from a {type(frame).__name__}.",
            "Give a pandas, polars or pyarrow table, a dict of columns, a path, or consilience.Answers; for arrays "
            "see Answers.from_matrix.",
        )
    if isinstance(native, nw.LazyFrame):
        # polars collects to polars; engines such as DuckDB have no frame of their own and give Arrow.
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    eager = native

    def read(column: str) -> Column:
        return _series_to_column(eager.get_column(column), f"Column {column!r} of {name}")

    def lists(column: str) -> list[Any] | None:
        series = eager.get_column(column)
        return find_lists(series.to_list()) if isinstance(series.dtype, (nw.List, nw.Array, nw.Object)) else None

    backend = "pandas" if eager.implementation.is_pandas_like() else eager.implementation.name.lower()
    return Table(eager.columns, read, len(eager), backend, name, _count_rows, lists=lists)


def open_arrow(table: pa.Table, name: str) -> Table:
    """Return an Arrow table as a `Table`."""

    def read(column: str) -> Column:
        return to_column(table.column(column), f"Column {column!r} of {name}")

    def lists(column: str) -> list[Any] | None:
        values = table.column(column)
        return find_lists(values.to_pylist()) if pa.types.is_nested(values.type) else None

    return Table(table.column_names, read, table.num_rows, "pyarrow", name, _count_rows, lists=lists)


def find_lists(entries: list[Any]) -> list[Any] | None:
    """Return the lists in a column as Python lists, None where there is none; None if there is anything else.

    Tuples and frozen sets are values like any other: they may be labels.

    >>> find_lists([["a", "b"], None, np.array(["a"])]), find_lists(["a", ["b"]]), find_lists([None])
    ([['a', 'b'], None, ['a']], None, None)
    """
    there = [entry for entry in entries if not is_missing(entry)]
    if not there or not all(isinstance(entry, (list, set, np.ndarray)) for entry in there):
        return None
    lists = [entry.tolist() if isinstance(entry, np.ndarray) else entry for entry in entries]
    return [None if is_missing(entry) else list(entry) for entry in lists]


def _open_mapping(columns: Mapping[str, Any], name: str) -> Table:
    """Return a mapping of columns as a `Table`."""
    for column, values in columns.items():
        if not hasattr(values, "__len__"):
            raise InputError(f"Column {column!r} of {name} must be a sequence of values. Got {shorten(values)}.")
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"The columns of {name} have different lengths: {listing(sorted(lengths))}.")

    def read(column: str) -> Column:
        return read_column(columns[column], f"Column {column!r} of {name}")

    def lists(column: str) -> list[Any] | None:
        values = columns[column]
        is_plain = isinstance(values, np.ndarray) and values.dtype.kind != "O"
        return None if is_plain or isinstance(values, range) else find_lists(list(values))

    return Table(list(columns), read, lengths.pop() if lengths else 0, "pyarrow", name, _count_rows, lists=lists)


def _count_rows(row: int) -> str:
    return f"row {row} (counting from 0)"


def is_table(values: object) -> bool:
    """Tell a table, of any frame library or a mapping of columns, from other things."""
    if isinstance(values, (Mapping, Table, pa.RecordBatch)):
        return True
    native = _to_native(values)
    return isinstance(native, (nw.DataFrame, nw.LazyFrame)) or _is_stream(values, native)


def _is_stream(values: object, native: object) -> bool:
    """Tell whether something gives a table as an Arrow stream, and is no frame whose columns can be had one by one.

    `native` is what narwhals makes of it. An array or a series gives a stream, too, and no table.
    """
    if isinstance(native, nw.DataFrame):
        kind = native.implementation
        if kind.is_pandas_like() or kind.is_polars() or kind.is_pyarrow():
            return False
    elif isinstance(native, (nw.LazyFrame, nw.Series, pa.Array, pa.ChunkedArray, type)):
        return False
    return hasattr(values, "__arrow_c_stream__")


def _read_stream(source: object, name: str) -> pa.Table:
    """Return all of an Arrow stream, which can be read only once."""
    try:
        return pa.RecordBatchReader.from_stream(source).read_all()
    except Exception as error:  # whatever a database meets while it gives its rows
        raise InputError(
            f"Cannot read {name} from the Arrow stream of a {type(source).__name__}: {first_line(error)}.",
            "A stream can be read only once, and must be one of rows with named columns.",
        ) from error


def _to_native(values: Any) -> Any:
    """Return what narwhals makes of a table or series; other things as they are."""
    try:
        return nw.from_native(values, allow_series=True, pass_through=True)
    except DuplicateError:
        check_names([*getattr(values, "column_names", values.columns)], "A table")
        raise


def read_lists(frame: object) -> dict[str, Any]:
    """Return the columns of a table in which each row holds a list: an array if all have one length, else a list."""
    if isinstance(frame, Mapping):
        columns = {name: list(values) for name, values in frame.items() if hasattr(values, "__len__")}
        return {name: values for name, values in columns.items() if _are_lists(values)}
    if isinstance(frame, Table):
        return {}
    native = _to_native(pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else frame)
    if isinstance(native, nw.LazyFrame):
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    nested = [name for name, kind in native.schema.items() if isinstance(kind, (nw.List, nw.Array, nw.Object))]
    entries = {name: _list_entries(native.get_column(name)) for name in nested}
    return {name: values for name, values in entries.items() if isinstance(values, np.ndarray) or _are_lists(values)}


def _list_entries(series: Any) -> Any:
    """Return lists of one length as the rows of an array, else as a list."""
    if isinstance(series.dtype, (nw.List, nw.Array)) and not series.implementation.is_pandas_like():
        lists = series.to_arrow()
        lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
        numbers = lists.flatten()  # of lists that are there
        if lists.null_count == 0 and numbers.null_count == 0 and len(lists) and len(numbers) % len(lists) == 0:
            width = len(numbers) // len(lists)
            if pc.all(pc.equal(pc.list_value_length(lists), width)).as_py() and not pa.types.is_nested(numbers.type):
                return numbers.to_numpy(zero_copy_only=False).reshape(len(lists), width)
    return series.to_list()


def _are_lists(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(entry, (list, tuple, np.ndarray)) for entry in values[:3])


def read_column(values: object, what: str = "The data") -> Column:
    """Return values that stand alone as a column: a series of any frame library, an array, or any sequence.

    `what` stands for the values in messages.
    """
    check_length(values, what)
    if type(values).__module__.partition(".")[0] == "pandas" and not hasattr(values, "columns"):
        import pandas as pd

        # An index or a bare categorical: narwhals knows it in a series.
        values = values.to_series() if isinstance(values, pd.Index) else pd.Series(values)
    native = _to_native(values)
    if isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"{what} must be a sequence of values. Got a {type(values).__name__} instead.", "Give one column of it."
        )
    return _series_to_column(native, what) if isinstance(native, nw.Series) else to_column(values, what)


def check_length(values: object, what: str) -> None:
    """Raise an error for a range, or an array that repeats one number, which takes no memory yet and would take all."""
    if isinstance(values, range):
        n_values = (values[-1] - values[0]) // values.step + 1 if values else 0
        require_memory(NUMBER * n_values, f"{what} has {n_values:,} values")
    elif isinstance(values, np.ndarray):
        require_memory(values.nbytes, f"{what} has {values.size:,} values")


def read_distinct(values: object, what: str) -> Values:
    """Return values that must be distinct and in order; `what` stands for them in messages."""
    if isinstance(values, (set, frozenset)):
        raise InputError(f"{what} must be in order.", "Give a list, not a set.")
    column = read_column(values, what)
    n_missing = len(find_missing(column))
    if n_missing:
        raise InputError(f"{what} must be distinct values; {n_missing:,} of {len(column):,} are missing.")
    distinct, repeated = split_repeated(column)
    if repeated:
        raise InputError(f"{what} must be distinct values. Found more than once: {listing(repeated)}.")
    return distinct


def read_names(values: object, count: int, what: str) -> Values:
    """Return the names of `count` things: those given, which must be distinct and as many, or 0, 1, 2, ..."""
    if values is None:
        return np.arange(count)
    names = read_distinct(values, what)
    if len(names) != count:
        raise InputError(f"{what} must be {count:,} distinct values; got {len(names):,}.")
    return names


def build_frame(columns: Mapping[str, Column], backend: str) -> Any:
    """Return named columns as a table of the frame library `backend` ("pandas", "polars" or "pyarrow")."""
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame({name: _to_pandas(column) for name, column in columns.items()})
    if backend == "polars":
        import polars as pl

        return pl.DataFrame({name: _to_polars(column) for name, column in columns.items()})
    return pa.table({name: _to_arrow(column) for name, column in columns.items()})


def open_series(series: Any) -> tuple[Column, Column] | None:
    """Return (index, values) of a pandas-like Series, or None if it is no such thing."""
    native = _to_native(series)
    if not (isinstance(native, nw.Series) and native.implementation.is_pandas_like()):
        return None
    return read_column(series.index, "The index of the series"), read_column(series, "The series")


def _series_to_column(series: Any, what: str) -> Column:
    pandas_like = series.implementation.is_pandas_like()
    # pandas keeps strings, enums and anything else in object columns: the entries' own types decide.
    if series.dtype == nw.Object or (
        pandas_like and (series.to_native().dtype == object or series.dtype == nw.Unknown)
    ):
        return to_column(series.to_list(), what)
    if pandas_like and series.to_native().dtype == "category":
        categories = read_column(series.to_native().cat.categories, what)
        if isinstance(categories, np.ndarray):
            return to_column(series.to_list(), what)
        codes, ordered = series.to_native().cat.codes.to_numpy(), bool(series.to_native().cat.ordered)
        indices = pa.array(codes, mask=codes < 0)
        return to_column(pa.DictionaryArray.from_arrays(indices, categories, ordered=ordered), what)
    if series.dtype == nw.Categorical and series.implementation.is_polars():
        # polars sorts categoricals by their text; an Enum keeps the order it was given.
        series = series.cast(nw.String)
    try:
        column = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        column = series.to_list()
    return to_column(column, what)


def _to_arrow(column: Column) -> pa.Array:
    if isinstance(column, np.ndarray):
        column = to_column(column)
    if isinstance(column, np.ndarray):
        # Arrow has no type for these objects (enums, tuples, mixed types): their text has to do.
        texts = [None if entry is None else spell_surrogates(str(entry)) for entry in column]
        return pa.array(texts, pa.string())
    return column


def _to_pandas(column: Column) -> Any:
    import pandas as pd

    if isinstance(column, np.ndarray):
        # pandas would make text of its own of objects that are text, and that takes no half characters.
        return pd.Series(column, dtype=object)
    if pa.types.is_integer(column.type) and column.null_count:
        kind = "UInt64" if pa.types.is_unsigned_integer(column.type) else "Int64"
        return pd.Series(column.to_pandas(integer_object_nulls=True), dtype=kind)  # not floats
    return column.to_pandas()


def _to_polars(column: Column) -> Any:
    import polars as pl

    if isinstance(column, np.ndarray):
        column = to_column(column)
    if isinstance(column, np.ndarray):
        return pl.Series(values=column.tolist(), dtype=pl.Object)
    return pl.Series(values=pl.from_arrow(column))
