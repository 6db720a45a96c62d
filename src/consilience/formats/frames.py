"""Tables of any frame library, through narwhals: columns in, results out in the caller's own library."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pyarrow as pa

from ..errors import InputError, listing, shorten
from ..vocabulary import Column, find_missing, to_column

ALIASES = {
    "item": ("item", "task", "question", "id"),
    "worker": ("worker", "annotator", "judge", "labeler"),
    "label": ("label", "answer", "response"),
    "sequence": ("sequence",),
    "position": ("position",),
    "weight": ("weight",),
}


@dataclass(frozen=True)
class Table:
    """Named columns of one length, read when asked for, and words for where a row stands."""

    names: Sequence[str]
    read: Callable[[str], Column]
    n_rows: int
    backend: str
    name: str
    locate: Callable[[int], str]

    def find(self, role: str, given: str | None) -> str | None:
        """Return the name of the column that plays `role`: the given one, or the first alias that exists.

        Upper and lower case are the same to an alias.
        """
        if given is not None:
            if given not in self.names:
                raise self.no_column(role, given)
            return given
        by_lower = {str(name).lower(): name for name in self.names}
        return next((by_lower[alias] for alias in ALIASES[role] if alias in by_lower), None)

    def need(self, role: str, given: str | None) -> str:
        """Return `find`'s column, or raise an error that says what was found instead."""
        name = self.find(role, given)
        if name is None:
            raise self.no_column(role, None)
        return name

    def no_column(self, role: str, given: str | None) -> InputError:
        """Return the error for a missing column, with the nearest name there is."""
        names = [str(name) for name in self.names]
        close = difflib.get_close_matches(given or role, names, n=1, cutoff=0.5)
        wanted = f"has no column {shorten(given)}" if given else f"has no column for the {role}"
        hint = f" Did you mean {role}={close[0]!r}?" if close else f" Name it with {role}=."
        aliases = "" if given else f" (looked for {', '.join(ALIASES[role])})"
        return InputError(f"{self.name} {wanted}{aliases}. It has {listing(names)}.{hint}")

    def values(self, name: str, remedy: str) -> Column:
        """Return one column; a missing entry is an error that says where it is and ends with the remedy."""
        column = self.read(name)
        rows = find_missing(column)
        if len(rows):
            share = "is empty throughout" if len(rows) == len(column) else f"has {len(rows):,} missing value(s)"
            raise InputError(
                f"Column {name!r} of {self.name} {share}; the first is at {self.locate(int(rows[0]))}. {remedy}"
            )
        return column


def open_frame(frame: Any, name: str = "the table") -> Table:
    """Return a frame of any library narwhals knows, or a mapping of columns, as a `Table`."""

    def locate(row: int) -> str:
        return f"row {row} (counting from 0)"

    if isinstance(frame, Mapping):
        lengths = {len(values) for values in frame.values()}
        if len(lengths) > 1:
            raise InputError(f"The columns of {name} have different lengths: {listing(sorted(lengths))}.")
        n_rows = lengths.pop() if lengths else 0
        return Table(list(frame), lambda column: to_column(frame[column]), n_rows, "pyarrow", name, locate)
    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"Cannot read answers from a {type(frame).__name__}. Give a pandas, polars or pyarrow table, a dict of "
            "columns, a path, or consilience.Responses; for arrays see Responses.from_matrix."
        ) from error
    if isinstance(native, nw.Series):
        raise InputError(f"Expected a table with named columns; got a {type(frame).__name__}.")
    if isinstance(native, nw.LazyFrame):
        # polars collects to polars; engines such as DuckDB have no frame of their own and give Arrow.
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    backend = "pandas" if native.implementation.is_pandas_like() else native.implementation.name.lower()
    eager = native
    return Table(eager.columns, lambda column: _series_to_column(eager[column]), len(eager), backend, name, locate)


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
    if not (hasattr(series, "index") and hasattr(series, "to_numpy") and hasattr(series, "name")):
        return None
    return to_column(series.index.tolist()), to_column(series.tolist())


def _series_to_column(series: Any) -> Column:
    pandas_like = series.implementation.is_pandas_like()
    # pandas keeps strings, enums and anything else in object columns: the entries' own types decide.
    if series.dtype == nw.Object or (pandas_like and series.to_native().dtype == object):
        return to_column(series.to_list())
    if series.dtype == nw.Categorical and pandas_like:
        if isinstance(to_column(list(series.to_native().cat.categories)), np.ndarray):
            return to_column(series.to_list())
    elif series.dtype == nw.Categorical and series.implementation.is_polars():
        # polars sorts categoricals by their text; an Enum keeps the order it was given.
        series = series.cast(nw.String)
    try:
        return to_column(series.to_arrow())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return to_column(series.to_list())


def _to_arrow(column: Column) -> pa.Array:
    if isinstance(column, np.ndarray):
        column = to_column(column)
    if isinstance(column, np.ndarray):
        # Arrow has no type for these objects (enums, tuples, mixed types): their text has to do.
        return pa.array([str(entry) for entry in column], pa.string())
    return column


def _to_pandas(column: Column) -> Any:
    return column if isinstance(column, np.ndarray) else column.to_pandas()


def _to_polars(column: Column) -> Any:
    import polars as pl

    if isinstance(column, np.ndarray):
        column = to_column(column)
    if isinstance(column, np.ndarray):
        return pl.Series(values=column.tolist(), dtype=pl.Object)
    return pl.Series(values=pl.from_arrow(column))
