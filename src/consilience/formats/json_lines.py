"""JSON lines: one object per line, read by the json module, some lines at a time.

Arrow's reader would be twice as fast. But it takes text that looks like a time for one, names no line where a value has
another type than those before, and some lines end the process.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, first_line, shorten
from . import Codec, files

Record = dict[str, Any]


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    names: dict[str, None] = {}
    tables = []
    for first, lines in _runs(path):
        records = _parse(path, first, lines)
        names.update(dict.fromkeys(chain.from_iterable(records)))
        tables.append(_tabulate(path, first, lines, records, names if wanted is None else wanted))
    chosen = files.choose_columns(path, list(names), wanted)
    try:
        table = pa.concat_tables((_fill_up(table, chosen) for table in tables), promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InputError(f"{path!r}: {first_line(error)}.", "Give all values of a column one type.") from error
    return table, list(names)


def _runs(path: str) -> Iterator[tuple[int, list[bytes]]]:
    """Runs of lines, each with the number of its first line, from 1."""
    number = 1
    with io.BufferedReader(files.open_input(path)) as file:
        while lines := file.readlines(files.BLOCK):
            if number == 1:
                lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
            yield number, lines
            number += len(lines)


def _parse(path: str, first: int, lines: list[bytes]) -> list[Record]:
    """The objects of a run of lines."""
    full = [line for line in lines if line.strip()]
    try:  # as one array, which takes a third of the time
        records = json.loads(f"[{','.join(map(bytes.decode, full))}]")
        if len(records) == len(full) and all(type(record) is dict for record in records):
            return list(records)
    except (ValueError, RecursionError):
        pass
    records = []
    for number, line in enumerate(lines, first):
        place = f"{files.name_of(path)}, line {number}"
        try:
            text = line.decode().strip()
            if not text:
                continue
            record = json.loads(text)
        except UnicodeDecodeError as error:
            raise files.encoding_error(place) from error
        except (ValueError, RecursionError) as error:
            problem = f"{place}: not valid JSON ({first_line(error)}): {shorten(text)}."
            raise InputError(problem, "Correct or remove the line.") from error
        if not isinstance(record, dict):
            raise InputError(f"{place}: expected one JSON object per line, found {shorten(record)}.")
        records.append(record)
    return records


def _tabulate(path: str, first: int, lines: list[bytes], records: list[Record], names: Collection[str]) -> pa.Table:
    """A table of some values of objects. Values of different types in one column are an error."""
    columns = {}
    for name in names:
        values = [record.get(name) for record in records]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, ValueError, OverflowError) as error:
            numbers = [number for number, line in enumerate(lines, first) if line.strip()]
            kinds = [float if type(value) is int else type(value) for value in values if value is not None]
            for number, value in zip(numbers, values, strict=True):
                if value is not None and (float if type(value) is int else type(value)) is not kinds[0]:
                    raise InputError(
                        f"{files.name_of(path)}, line {number}: column {name!r} holds {shorten(value)}, and a value of "
                        f"type {kinds[0].__name__} before.",
                        "Give all values of a column one type.",
                    ) from error
            raise InputError(
                f"Column {name!r} of {files.quote_path(path)} cannot be read: {first_line(error)}.",
                "Give it plain text or numbers of at most 64 bits.",
            ) from error
    return pa.table(columns)


def _fill_up(table: pa.Table, names: list[str]) -> pa.Table:
    """The same columns for all tables of a file: those that a table does not have are without values."""
    missing = pa.nulls(table.num_rows)
    return pa.table({name: table.column(name) if name in table.column_names else missing for name in names})


def _write(tables: Iterable[pa.Table], path: str) -> None:
    """Write one object per row; a number that is not finite becomes null."""
    encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
    with files.open_output(path) as sink:
        for table in map(_to_plain, tables):
            for batch in table.to_batches(files.ROWS_PER_WRITE):
                sink.write("".join(f"{encode(record)}\n" for record in batch.to_pylist()).encode())


def _to_plain(table: pa.Table) -> pa.Table:
    """Return a table of what JSON has: finite numbers, and times as Python knows them."""
    for i, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            values = table.column(i)
            table = table.set_column(i, field.name, pc.if_else(pc.is_finite(values), values, None))
        elif pa.types.is_temporal(field.type) and getattr(field.type, "unit", None) == "ns":
            # Python's own times have no nanoseconds.
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table


def _recognise(head: bytes, _path: str) -> bool:
    """Tell whether the first two lines are one JSON object each. One alone may begin a document of another kind."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line for line in text.splitlines() if line.strip()][:2] if text.startswith(b"{") else []
    return len(lines) == 2 and all(map(_is_object, lines))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _find_lines(path: str) -> Iterator[int]:
    return (number for number, _ in files.numbered_lines(path))


JSON_LINES = Codec(read=_read, write=_write, recognise=_recognise, find_lines=_find_lines)
