"""JSON: records of annotation tools, and tables with one object per line, read by the json module.

Arrow's reader would be twice as fast. But it takes text that looks like a time for one, names no line where a value has
another type than those before, and some lines end the process.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, first_line, shorten
from . import Codec, files

Record: TypeAlias = dict[str, Any]

ROWS_PER_READ = 1 << 16


def read_records(path: str) -> Iterator[tuple[str, int, Record]]:
    """Yield the objects of JSON lines, of a JSON array, or a single one.

    With each come what it is called in messages ("line", or "record" of an array) and its number, from 1.
    """
    first = 1
    with io.BufferedReader(files.open_input(path)) as file:
        while lines := file.readlines(files.BLOCK):
            unit = "line"
            if first == 1:
                lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
                head = next((line.strip() for line in lines if line.strip()), b"}")
                unit = "record" if head.startswith(b"[") else "line"
                if unit == "record" or not head.endswith(b"}"):  # a document over many lines
                    lines = [b"".join(lines) + file.read()]
            numbered = [(number, line) for number, line in enumerate(lines, first) if line.strip()]
            first += len(lines)
            records: list[Any] = []
            with suppress(ValueError, RecursionError):  # all lines as one array, which takes a third of the time
                records = json.loads(f"[{b','.join(line for _, line in numbered).decode()}]")
            expected = list if unit == "record" else dict
            if len(records) != len(numbered) or not all(type(record) is expected for record in records):
                records = [_parse_line(path, number, line) for number, line in numbered]
            if unit == "record":
                numbered = [(number, lines[0]) for number in range(1, len(records[0]) + 1)]
                records = records[0]
            has_halves = any(b"\\ud" in line or b"\\uD" in line for line in lines)  # perhaps of a surrogate pair
            for (number, _), record in zip(numbered, records, strict=True):
                place = f"{files.name_of(path)}, {unit} {number}"
                if not isinstance(record, dict):
                    raise InputError(f"{place}: expected one JSON object per {unit}, found {shorten(record)}.")
                try:
                    if has_halves:
                        json.dumps(record, ensure_ascii=False).encode()
                except UnicodeEncodeError as error:
                    problem = f"{place}: some text has half of a surrogate pair, which is no character."
                    raise InputError(problem, "Export the file again.") from error
                yield unit, number, record


def _parse_line(path: str, number: int, line: bytes) -> Any:
    """The value on one line."""
    place = f"{files.name_of(path)}, line {number}"
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise files.encoding_error(place) from error
    except RecursionError as error:
        raise InputError(f"{place}: brackets are nested too deeply.", "Export the file again.") from error
    except ValueError as error:
        problem = f"{place}: not valid JSON ({shorten(str(error), 100)}): {shorten(line.strip().decode())}."
        raise InputError(problem, "Correct or remove the line; the file may be cut off.") from error


def dump(value: object, **options: Any) -> bytes:
    """A value as JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, **options).encode()
    except (RecursionError, UnicodeEncodeError, TypeError) as error:
        raise InputError(f"A record cannot be written as JSON: {first_line(error)}.", "Check its text.") from error


# -------------------------------------------------------------------------------------------------------------- tables


def _read_table(path: str, wanted: Collection[str] | None) -> pa.Table:
    names: dict[str, None] = {}
    rows, tables = read_records(path), []
    while part := list(islice(rows, ROWS_PER_READ)):
        names.update(dict.fromkeys(chain.from_iterable(record for _, _, record in part)))
        chosen = [name for name in names if wanted is None or name in wanted]
        tables.append(pa.table({name: _to_array(path, name, part) for name in chosen}))
    try:
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InputError(f"{path!r}: {first_line(error)}.", "Give all values of a column one type.") from error


def _to_array(path: str, name: str, rows: list[tuple[str, int, Record]]) -> pa.Array:
    """The values of one key. Values of different types are an error."""
    try:
        return pa.array([record.get(name) for _, _, record in rows])
    except (pa.ArrowException, ValueError, OverflowError) as error:
        known = None
        for unit, number, record in rows:
            value = record.get(name)
            kind = float if type(value) is int else type(value)
            known = kind if known is None and value is not None else known
            if value is not None and kind is not known:
                raise InputError(
                    f"{files.name_of(path)}, {unit} {number}: column {name!r} holds {shorten(value)}, and a value of "
                    f"type {getattr(known, '__name__', known)} before.",
                    "Give all values of a column one type.",
                ) from error
        raise InputError(
            f"Column {name!r} of {files.quote_path(path)} cannot be read: {first_line(error)}.",
            "Give it plain text or numbers of at most 64 bits.",
        ) from error


def _write_table(tables: Iterable[pa.Table], path: str) -> None:
    """Write one object per row; a number that is not finite becomes null."""
    encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
    with files.open_output(path) as sink:
        for table in tables:
            for i, field in enumerate(table.schema):
                values = table.column(i)
                if pa.types.is_floating(field.type):
                    table = table.set_column(i, field.name, pc.if_else(pc.is_finite(values), values, None))
                elif pa.types.is_temporal(field.type) and getattr(field.type, "unit", None) == "ns":
                    table = table.set_column(i, field.name, values.cast(pa.string()))  # Python has no nanoseconds
            for batch in table.to_batches(files.ROWS_PER_WRITE):
                sink.write("".join(f"{encode(record)}\n" for record in batch.to_pylist()).encode())


def _recognise(head: bytes, _path: str) -> bool:
    """Whether the first two lines are one JSON object each. One alone may begin a document of another kind."""
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()][:2]
    try:
        return len(lines) == 2 and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _find_lines(path: str) -> Iterator[int]:
    return (number for number, _ in files.numbered_lines(path))


JSON_LINES = Codec(read=_read_table, write=_write_table, recognise=_recognise, find_lines=_find_lines)
