"""When answers were given: a column of numbers, dates or times, read as numbers that can be sorted.

Dates and times become seconds since 1970, those without a zone as if they were UTC. A missing value becomes NaN: it is
not known when this answer was given.

Text may be written as by ISO 8601, or as platforms and spreadsheets do. A zone of three letters is a fixed offset: PST
is 8 hours behind UTC and PDT 7, and UTC and GMT are UTC. Other zones are left alone, because their letters have several
meanings. Dates such as 11/13/2025 are read where some row of the column tells which number is the month.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, shorten
from ..kernels.types import Floats
from .columns import Column, decode_categories, find_missing, is_text, to_column
from .tables import Table

_TIMES = pa.timestamp("us")
_ISO = "Write dates and times as ISO 8601 does, such as 2024-05-17 or 2024-05-17T09:30:00."
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONES = {"": "", "UTC": "+00:00", "GMT": "+00:00", "Z": "+00:00", "PST": "-08:00", "PDT": "-07:00"}
_CLOCK = r"(\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)"
# Mon Nov 10 10:12:21 PST 2025, as MTurk writes it.
_LONG = re.compile(rf"[A-Za-z]{{3}},? ([A-Za-z]{{3}}) +(\d{{1,2}}) {_CLOCK} (?:([A-Z]+) )?(\d{{4}})")
# 2025-11-10 10:12:21 UTC
_WITH_ZONE = re.compile(rf"(\d{{4}}-\d\d-\d\d)[ T]{_CLOCK} ([A-Z]+)")
_SLASHED = re.compile(rf"(\d{{1,2}})/(\d{{1,2}})/(\d{{4}})(?: {_CLOCK}(?: ([A-Z]+))?)?")


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


class DoubtfulDates(ValueError):
    """Dates of which no row tells which number is the month."""


def write_as_iso(texts: Sequence[str | None]) -> list[str | None]:
    """Return times as ISO 8601 writes them; what is not recognised stays as it is.

    >>> write_as_iso(["Mon Nov 10 10:12:21 PST 2025", "2025-11-10 10:12:21 UTC", "soon", None])
    ['2025-11-10T10:12:21-08:00', '2025-11-10T10:12:21+00:00', 'soon', None]
    >>> write_as_iso(["11/10/2025 9:12", "11/13/2025 10:12:21"])
    ['2025-11-10T09:12:00', '2025-11-13T10:12:21']
    """
    found = [None if text is None else _SLASHED.fullmatch(text) for text in texts]
    if any(found) and all(match or text is None for match, text in zip(found, texts, strict=True)):
        return _order_parts(found, texts)
    return [text if text is None else _write(text) for text in texts]


def _write(text: str) -> str:
    """Return one time, with the name of its month or its zone, as ISO 8601 writes it."""
    if (match := _LONG.fullmatch(text)) and match[1].lower() in _MONTHS:
        month = _MONTHS.index(match[1].lower()) + 1
        date, clock, zone = f"{match[5]}-{month:02}-{int(match[2]):02}", match[3], match[4]
    elif match := _WITH_ZONE.fullmatch(text):
        date, clock, zone = match.groups()
    else:
        return text
    return text if (zone or "") not in _ZONES else f"{date}T{_fill(clock)}{_ZONES[zone or '']}"


def _order_parts(found: Sequence[re.Match[str] | None], texts: Sequence[str | None]) -> list[str | None]:
    """Return dates with slashes as ISO 8601 writes them, if some of them tell which part is the month."""
    pairs = {(int(match[1]), int(match[2])) for match in found if match}
    month_first = any(second > 12 for _, second in pairs)
    day_first = any(first > 12 for first, _ in pairs)
    if month_first and day_first:  # one of them is no date
        return list(texts)
    if not month_first and not day_first and any(first != second for first, second in pairs):
        raise DoubtfulDates
    month, day = (2, 1) if day_first else (1, 2)
    written: list[str | None] = []
    for match, text in zip(found, texts, strict=True):
        if match is None or (match[5] or "") not in _ZONES:
            written.append(text)
            continue
        clock = f"T{_fill(match[4])}{_ZONES[match[5] or '']}" if match[4] else ""
        written.append(f"{match[3]}-{int(match[month]):02}-{int(match[day]):02}{clock}")
    return written


def _fill(clock: str) -> str:
    """Return the time of a day with two digits of the hour, and with seconds."""
    hour, _, rest = clock.partition(":")
    return f"{int(hour):02}:{rest}" if ":" in rest else f"{int(hour):02}:{rest}:00"
