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


def _read_json(path: str, wanted: Collection[str] | None) -> pa.Table:
    names: dict[str, None] = {}
    tables, number = [], 1
    with io.BufferedReader(files.open_input(path)) as file:
        while lines := file.readlines(files.BLOCK):
            if number == 1:
                lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
            numbers, records = _parse_lines(path, number, lines)
            names.update(dict.fromkeys(chain.from_iterable(records)))
            chosen = [name for name in names if wanted is None or name in wanted]
            tables.append(pa.table({name: _to_array(path, name, numbers, records) for name in chosen}))
            number += len(lines)
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InputError(f"{path!r}: {first_line(error)}.", "Give all values of a column one type.") from error


def _parse_lines(path: str, first: int, lines: list[bytes]) -> tuple[list[int], list[Record]]:
    """The objects of a run of lines, and the numbers of their lines."""
    numbers = [number for number, line in enumerate(lines, first) if line.strip()]
    try:  # as one array, which takes a third of the time
        records = json.loads(f"[{','.join(line.decode() for line in lines if line.strip())}]")
        if len(records) == len(numbers) and all(type(record) is dict for record in records):
            return numbers, records
    except (ValueError, RecursionError):
        pass
    records = []
    for number in numbers:
        place = f"{files.name_of(path)}, line {number}"
        line = lines[number - first].strip()
        try:
            record = json.loads(line.decode())
        except UnicodeDecodeError as error:
            raise files.encoding_error(place) from error
        except (ValueError, RecursionError) as error:
            problem = f"{place}: not valid JSON ({first_line(error)}): {shorten(line.decode())}."
            raise InputError(problem, "Correct or remove the line.") from error
        if not isinstance(record, dict):
            raise InputError(f"{place}: expected one JSON object per line, found {shorten(record)}.")
        records.append(record)
    return numbers, records


def _to_array(path: str, name: str, numbers: list[int], records: list[Record]) -> pa.Array:
    """The values of one key. Values of different types are an error."""
    values = [record.get(name) for record in records]
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        kinds = [None if value is None else float if type(value) is int else type(value) for value in values]
        first = next(kind for kind in kinds if kind is not None)
        for number, value, kind in zip(numbers, values, kinds, strict=True):
            if kind not in (None, first):
                raise InputError(
                    f"{files.name_of(path)}, line {number}: column {name!r} holds {shorten(value)}, and a value of "
                    f"type {first.__name__} before.",
                    "Give all values of a column one type.",
                ) from error
        raise InputError(
            f"Column {name!r} of {files.quote_path(path)} cannot be read: {first_line(error)}.",
            "Give it plain text or numbers of at most 64 bits.",
        ) from error


def _write_json(tables: Iterable[pa.Table], path: str) -> None:
    """Write one object per row; a number that is not finite becomes null."""
    encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
    with files.open_output(path) as sink:
        for table in map(_to_plain, tables):
            for batch in table.to_batches(files.ROWS_PER_WRITE):
                sink.write("".join(f"{encode(record)}\n" for record in batch.to_pylist()).encode())


def _to_plain(table: pa.Table) -> pa.Table:
    """A table of what JSON has: finite numbers, and times as Python knows them."""
    for i, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            values = table.column(i)
            table = table.set_column(i, field.name, pc.if_else(pc.is_finite(values), values, None))
        elif pa.types.is_temporal(field.type) and getattr(field.type, "unit", None) == "ns":
            # Python's own times have no nanoseconds.
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table


def _recognise(head: bytes, _path: str) -> bool:
    """Whether the first two lines are one JSON object each. One alone may begin a document of another kind."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line for line in text.splitlines() if line.strip()][:2] if text.startswith(b"{") else []
    try:
        return len(lines) == 2 and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _find_json_lines(path: str) -> Iterator[int]:
    return (number for number, _ in files.numbered_lines(path))


JSON_LINES = Codec(read=_read_json, write=_write_json, recognise=_recognise, find_lines=_find_json_lines)
