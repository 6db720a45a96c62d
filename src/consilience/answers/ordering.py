"""When answers were given: a column of numbers, dates or times, read as numbers that can be sorted.

Dates and times become seconds since 1970, those without a zone as if they were UTC. How text may write them is told in
`written_times`. A missing value becomes NaN: it is
not known when this answer was given.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, shorten
from ..kernels.types import Floats
from .tables import Table
from .vocabulary import Column, decode_categories, find_missing, is_text, to_column
from .written_times import DoubtfulDates, write_as_iso

_TIMES = pa.timestamp("us")
_ISO = "Write dates and times as ISO 8601 does, such as 2024-05-17 or 2024-05-17T09:30:00."


def read_order(table: Table, name: str) -> Floats:
    """Return the column that says when answers were given, as numbers."""
    column = table.read(name)
    if isinstance(column, np.ndarray):  # mixed types, or times with a zone
        column = to_column([None if row is None else str(row) for row in _without_missing(column)])
    if isinstance(column, np.ndarray):
        raise _order_error(table, name, column, 0)
    column = decode_categories(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    numbers = _parse_text(table, name, column) if is_text(column.type) else _to_numbers(column)
    if numbers is None:
        raise _order_error(table, name, column, 0)
    order = np.array(numbers.to_numpy(zero_copy_only=False), np.float64)
    order[np.isinf(order)] = np.nan
    return order


def _without_missing(column: Column) -> list[object]:
    entries: list[object] = list(column)
    for row in find_missing(column).tolist():
        entries[row] = None
    return entries


def _to_numbers(column: pa.Array) -> pa.Array | None:
    """Return numbers as they are, and times in seconds; None for a column of anything else."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pc.cast(column, pa.float64(), safe=False)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = pc.cast(pc.cast(column, _TIMES, safe=False), pa.int64())
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        unit = pa.time64("us") if pa.types.is_time(kind) else pa.duration("us")
        column = pc.cast(pc.cast(column, unit, safe=False), pa.int64())
    else:
        return None
    return pc.divide(pc.cast(column, pa.float64(), safe=False), 1e6)


def _parse_text(table: Table, name: str, column: pa.Array) -> pa.Array:
    """Return text that says numbers, or dates and times; "" is a missing value."""
    texts = pc.utf8_trim_whitespace(column)
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    for parse in (_parse_numbers, _parse_times):
        try:
            return parse(texts)
        except pa.ArrowInvalid:
            pass
    try:
        written = write_as_iso(texts.to_pylist())
        return _parse_times(pa.array(written, pa.string()))
    except DoubtfulDates:
        raise _doubt_error(table, name, column) from None
    except pa.ArrowInvalid:
        pass
    for row, text in enumerate(written):
        if text is not None and not _is_readable(text):
            raise _order_error(table, name, column, row)
    raise InputError(
        f"Column {name!r} of {table.name} holds both numbers and times, or times with and without a zone.",
        "Write all in the same way.",
        keyword="order",
    )


def _parse_numbers(texts: pa.Array) -> pa.Array:
    return pc.cast(texts, pa.float64())


def _parse_times(texts: pa.Array) -> pa.Array:
    try:
        return _to_numbers(pc.cast(texts, _TIMES))
    except pa.ArrowInvalid:  # with a zone, or an offset
        return _to_numbers(pc.cast(texts, pa.timestamp("us", "UTC")))


def _is_readable(text: str) -> bool:
    for parse in (_parse_numbers, _parse_times):
        try:
            parse(pa.array([text]))
        except pa.ArrowInvalid:
            continue
        return True
    return False


def _doubt_error(table: Table, name: str, column: pa.Array) -> InputError:
    example = next(text for text in column.to_pylist() if text is not None and text.strip())
    return InputError(
        f"Column {name!r} of {table.name} has dates such as {shorten(example)}, and no row tells whether the first "
        "number is the month or the day.",
        _ISO,
        keyword="order",
    )


def _order_error(table: Table, name: str, column: Column, row: int) -> InputError:
    value = column[row] if isinstance(column, np.ndarray) else column[row].as_py()
    return InputError(
        f"Column {name!r} of {table.name} must say when answers were given. Got {shorten(value)} at "
        f"{table.locate(row)}.",
        f"Numbers will do. {_ISO}",
        keyword="order",
    )
