"""JSON lines: one object per line."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, shorten
from .files import BLOCK, ROWS_PER_WRITE, TEXT_AT_ONCE, choose_columns, name_of, nested_error, open_input, open_output
from .json_traps import find_trap
from .lines import encoding_error, numbered_lines
from .register import Codec

_TYPES: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    from pyarrow import json as arrow_json

    def parse(
        block_size: int, schema: pa.Schema | None = None, unexpected: Literal["infer", "ignore"] = "infer"
    ) -> pa.Table:
        with open_input(path) as stream:
            return arrow_json.read_json(
                stream,
                read_options=arrow_json.ReadOptions(block_size=block_size),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
            )

    check_safety(path)
    try:
        table = parse(BLOCK)
        names = table.column_names
        times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        if times:
            # The reader takes text that looks like a time for one, and would not give back the same text.
            table = parse(BLOCK, pa.schema([(name, pa.string()) for name in times])).select(names)
    except pa.ArrowInvalid:
        names, schema, longest = _scan(path, wanted)
        table = parse(max(BLOCK, longest), schema, "infer" if wanted is None else "ignore")
    return table.select(choose_columns(path, names, wanted)), names


def _scan_lines(path: str, wanted: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    """Parse some lines at a time. A column may begin anywhere, and its type may differ from one table to the next.

    To name all columns (`wanted` is None) the whole file is looked at. This is also the time to look for traps.
    """
    if wanted is not None:
        chosen = list(dict.fromkeys(wanted))
        return (_fill_up(table, chosen) for table in _parse_runs(path)), chosen
    check_safety(path)
    names = list(dict.fromkeys(name for table in _parse_runs(path) for name in table.column_names))
    chosen = choose_columns(path, names, None)
    return (_fill_up(table, chosen) for table in _parse_runs(path)), names


def _fill_up(table: pa.Table, names: list[str]) -> pa.Table:
    """Return some columns of a table, those that it does not have without values."""
    missing = pa.nulls(table.num_rows)
    return pa.table({name: table.column(name) if name in table.column_names else missing for name in names})


def _parse_runs(path: str) -> Iterator[pa.Table]:
    """Yield tables of runs of whole lines."""
    from pyarrow import json as arrow_json

    def parse(text: bytes, schema: pa.Schema | None = None) -> pa.Table:
        return arrow_json.read_json(
            pa.BufferReader(text),
            read_options=arrow_json.ReadOptions(block_size=max(BLOCK, len(text) // 8)),
            parse_options=arrow_json.ParseOptions(explicit_schema=schema),
        )

    with io.BufferedReader(open_input(path)) as file:
        while text := b"".join(file.readlines(TEXT_AT_ONCE)):
            if not text.strip():
                continue
            table = parse(text)
            times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
            if times:
                table = parse(text, pa.schema([(name, pa.string()) for name in times])).select(table.column_names)
            yield table


def check_safety(path: str) -> None:
    """Raise an error that names the line which a parser might die of, if there is one."""
    with io.BufferedReader(open_input(path)) as file:
        trap = find_trap(file)
    if trap is not None:
        raise InputError(f"{name_of(path)}, line {trap[0]}: {trap[1]}.", "Give one flat JSON object per line.")


def _scan(path: str, wanted: Collection[str] | None) -> tuple[list[str], pa.Schema, int]:
    """Return all names, the schema of the wanted columns and the length of the longest line; a faulty one is an error.

    It is slow, and follows a fast reading that failed, perhaps on a very long line or on a column that nobody wants.
    """
    names: dict[str, None] = {}
    kinds: dict[str, type] = {}
    longest = 0
    for number, line in numbered_lines(path):
        longest = max(longest, len(line))
        place = f"{name_of(path)}, line {number}"
        try:
            record = json.loads(line)
        except UnicodeDecodeError as error:
            raise encoding_error(place) from error
        except ValueError as error:
            raise InputError(
                f"{place}: not valid JSON ({error}): {shorten(line.decode().strip())}.", "Correct or remove the line."
            ) from error
        if not isinstance(record, dict):
            raise InputError(f"{place}: expected one JSON object per line, found {shorten(record)}.")
        names.update(dict.fromkeys(record))
        for name, value in record.items():
            kind = type(value)
            known = kinds.setdefault(name, kind)
            if value is None or kind is known or (wanted is not None and name not in wanted):
                continue
            if known is not type(None) and {kind, known} != {int, float}:
                raise InputError(
                    f"{place}: column {name!r} holds {shorten(value)}, and a value of type {known.__name__} before.",
                    "Give all values of a column one type.",
                )
            kinds[name] = kind if known is type(None) else float
    chosen = choose_columns(path, list(names), wanted)
    nested = [name for name in chosen if kinds[name] in (dict, list)]
    if nested and wanted is not None:
        raise nested_error(path, nested[0], kinds[nested[0]].__name__)
    schema = [(name, _TYPES.get(kinds[name], pa.string())) for name in chosen if name not in nested]
    return list(names), pa.schema(schema), longest


def _write(tables: Iterable[pa.Table], path: str) -> None:
    """Write one object per row; a number that is not finite becomes null."""
    encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
    with open_output(path) as sink:
        for table in map(_to_plain, tables):
            for batch in table.to_batches(ROWS_PER_WRITE):
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
    return (number for number, _ in numbered_lines(path))


JSON_LINES = Codec(_read, _write, _recognise, _find_lines, scan=_scan_lines)
