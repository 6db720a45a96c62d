"""Tables of any frame library, through narwhals: columns in, results out in the caller's own library."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from ..errors import InputError, listing, plural, shorten
from .vocabulary import Column, find_missing, to_column

ALIASES = {
    "item": ("item", "task", "question", "id"),
    "worker": ("worker", "annotator", "judge", "labeler"),
    "label": ("label", "answer", "response"),
    "sequence": ("sequence",),
    "position": ("position",),
    "weight": ("weight",),
    "known label": ("label", "answer", "response", "gold", "truth"),  # in a table of gold
}
_SEPARATORS = {";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True)
class Table:
    """Named columns of one length, read when asked for, and words for where a row stands."""

    names: Sequence[str]
    read: Callable[[str], Column]
    n_rows: int
    backend: str
    name: str
    locate: Callable[[int], str]
    nameable: bool = True  # whether the caller can say which column plays which role
    preferred: Mapping[str, str | None] = field(default_factory=dict)  # by role: a column to take if there is one

    def find(self, role: str, given: str | None) -> str | None:
        """Return the name of the column that plays `role`: the given one, or the first alias that exists.

        Upper and lower case are the same to an alias.
        """
        if given is not None:
            if given not in self.names:
                raise self.no_column(role, given)
            return given
        wanted = self.preferred.get(role)
        if wanted is not None and wanted in self.names:
            return wanted
        by_lower = {str(name).lower(): name for name in reversed(self.names)} | {name: name for name in self.names}
        return next((by_lower[alias] for alias in ALIASES[role] if alias in by_lower), None)

    def need(self, role: str, given: str | None) -> str:
        """Return `find`'s column, or raise an error that says what was found instead."""
        name = self.find(role, given)
        if name is None:
            raise self.no_column(role, None)
        return name

    def no_column(self, role: str, given: str | None) -> InputError:
        """Return the error for a missing column, with the nearest name there is."""
        names = {str(name).lower(): str(name) for name in self.names}
        tried = ALIASES[role] if given is None else (str(given).lower(),)
        close = [names[name] for word in tried for name in difflib.get_close_matches(word, names, n=1, cutoff=0.6)]
        wanted = f"has no column for the {role}" if given is None else f"has no column {shorten(given)}"
        if self.nameable:
            hint = f" Did you mean {role}={close[0]!r}?" if close else f" Name it with {role}=."
        else:
            hint = f" Rename {close[0]!r}?" if close else " Rename the column that holds it."
        aliases = f" (looked for {', '.join(ALIASES[role])})" if given is None else ""
        found = f"It has {listing(names.values())}" if names else "It has no columns"
        return InputError(f"{self.name} {wanted}{aliases}. {found}.{self._explain_names(tried) or hint}")

    def no_columns(self, roles: Sequence[str]) -> InputError:
        """Return the error for several missing columns."""
        looked = "; ".join(f"{role}: looked for {', '.join(ALIASES[role])}" for role in roles)
        found = f"It has {listing(map(str, self.names))}" if self.names else "It has no columns"
        tried = [alias for role in roles for alias in ALIASES[role]]
        hint = self._explain_names(tried) or f" Name them with {', '.join(f'{role}=' for role in roles)}."
        return InputError(f"{self.name} has no columns for {', '.join(roles)} ({looked}). {found}.{hint}")

    def _explain_names(self, tried: Sequence[str]) -> str:
        """Return why names may not be what they seem: another separator, or blanks around them."""
        names = [str(name) for name in self.names]
        if len(names) == 1:
            for sign, plural in _SEPARATORS.items():
                if sign in names[0]:
                    remedy = "Save it with commas" + (", or call it .tsv." if sign == "\t" else ".")
                    return f" That is one column: its parts seem to be separated by {plural}. {remedy}"
        padded = [name for name in names if name != name.strip() and name.strip().lower() in tried]
        return f" Remove the blanks around the name {padded[0]!r}." if padded else ""

    def values(self, name: str, remedy: str) -> Column:
        """Return one column; a missing entry is an error that says where it is and ends with the remedy."""
        column = self.read(name)
        rows = find_missing(column)
        if len(rows):
            share = "is empty throughout" if len(rows) == len(column) else f"has {plural(len(rows), 'missing value')}"
            raise InputError(
                f"Column {name!r} of {self.name} {share}; the first is at {self.locate(int(rows[0]))}. {remedy}"
            )
        return column


def open_frame(frame: Any, name: str = "the table", nameable: bool = True) -> Table:
    """Return a frame of any library narwhals knows, or a mapping of columns, as a `Table`; a `Table` as it is."""
    if isinstance(frame, Table):
        return frame

    def locate(row: int) -> str:
        return f"row {row} (counting from 0)"

    if isinstance(frame, Mapping):
        for column, values in frame.items():
            if not hasattr(values, "__len__"):
                raise InputError(f"Column {column!r} of {name} must be a sequence of values. Got {shorten(values)}.")
        lengths = {len(values) for values in frame.values()}
        if len(lengths) > 1:
            raise InputError(f"The columns of {name} have different lengths: {listing(sorted(lengths))}.")
        n_rows = lengths.pop() if lengths else 0
        return Table(
            list(frame),
            lambda column: read_column(frame[column], f"Column {column!r} of {name}"),
            n_rows,
            "pyarrow",
            name,
            locate,
            nameable,
        )
    native = _to_native(frame)
    if not isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"Cannot read {name} from a {type(frame).__name__}. Give a pandas, polars or pyarrow table, a dict of "
            "columns, a path, or consilience.Responses; for arrays see Responses.from_matrix."
        )
    if isinstance(native, nw.LazyFrame):
        # polars collects to polars; engines such as DuckDB have no frame of their own and give Arrow.
        native = native.collect("polars" if native.implementation.is_polars() else "pyarrow")
    backend = "pandas" if native.implementation.is_pandas_like() else native.implementation.name.lower()
    eager = native
    return Table(
        eager.columns,
        lambda column: _series_to_column(eager[column], f"Column {column!r} of {name}"),
        len(eager),
        backend,
        name,
        locate,
        nameable,
    )


def is_table(values: Any) -> bool:
    """Tell a table, of any frame library or a mapping of columns, from other things."""
    return isinstance(values, (Mapping, Table)) or isinstance(_to_native(values), (nw.DataFrame, nw.LazyFrame))


def _to_native(values: Any) -> Any:
    """Return what narwhals makes of a table or series; other things as they are."""
    if isinstance(values, pa.RecordBatch):
        values = pa.Table.from_batches([values])
    try:
        return nw.from_native(values, allow_series=True, pass_through=True)
    except DuplicateError as error:
        names = [*getattr(values, "column_names", values.columns)]
        repeated = dict.fromkeys(name for name in names if names.count(name) > 1)
        raise InputError(
            f"A table has more than one column called {listing(repeated)}. Rename or drop the others."
        ) from error


def read_column(values: Any, what: str = "The data") -> Column:
    """Return values that stand alone as a column: a series of any frame library, an array, or any sequence.

    `what` stands for the values in messages.
    """
    if type(values).__module__.partition(".")[0] == "pandas" and not hasattr(values, "columns"):
        import pandas as pd

        # An index or a bare categorical: narwhals knows it in a series.
        values = values.to_series() if isinstance(values, pd.Index) else pd.Series(values)
    native = _to_native(values)
    if isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(f"{what} must be a sequence of values. Got a {type(values).__name__} instead: name a column.")
    return _series_to_column(native, what) if isinstance(native, nw.Series) else to_column(values, what)


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
        codes = series.to_native().cat.codes.to_numpy()
        return to_column(pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), categories), what)
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
        return pa.array([str(entry).encode(errors="replace") for entry in column], pa.binary()).cast(pa.string())
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
