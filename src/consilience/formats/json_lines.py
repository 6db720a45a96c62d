"""JSON lines: one object per line.

What kills parsers of JSON is found before they see it. They recurse, so that deep brackets overflow their stack. That
of Arrow crashes on a block that begins with null. And a line takes several times its length in memory.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import IO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError, shorten
from ..memory import format_bytes
from . import Codec, files

_TYPES: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
# Tables are flat. So many brackets may be open all the same, for columns that nobody reads.
MOST_OPEN = 100
# A table has a cell for each name in each line. So many may be empty, and so many for each byte of a file.
MOST_CELLS, CELLS_PER_BYTE = 5_000_000, 10
# Names are told apart by their last bytes, and counted in a table of bits.
_LAST_BYTES, _BITS = 16, 20
_QUOTE, _NEWLINE, _RETURN, _COLON = map(ord, '"\n\r:')
# What "[" and "{", and "]" and "}", become when one bit is set.
_OPENING, _CLOSING, _FOLD = ord("{"), ord("}"), 0x20
# Blanks, and the bytes of a byte order mark.
_BLANKS = re.compile(rb"[ \t\xef\xbb\xbf]*")
_IS_BLANK = np.array([_BLANKS.fullmatch(bytes([byte])) is not None for byte in range(256)])


def _parse(
    stream: object, block_size: int, schema: pa.Schema | None = None, unexpected: Literal["infer", "ignore"] = "infer"
) -> pa.Table:
    from pyarrow import json as arrow_json

    return arrow_json.read_json(
        stream,
        read_options=arrow_json.ReadOptions(block_size=block_size),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )


def _keep_times(table: pa.Table, parse: Callable[[pa.Schema], pa.Table]) -> pa.Table:
    """Return a table in which times are text: the reader takes text that looks like a time for one."""
    times = [(field.name, pa.string()) for field in table.schema if pa.types.is_timestamp(field.type)]
    return parse(pa.schema(times)).select(table.column_names) if times else table


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    def parse(
        schema: pa.Schema | None = None, block_size: int = files.BLOCK, unexpected: Literal["infer", "ignore"] = "infer"
    ) -> pa.Table:
        with files.open_input(path) as stream:
            return _parse(stream, block_size, schema, unexpected)

    check_safety(path)
    try:
        table = _keep_times(parse(), parse)
        names = table.column_names
    except pa.ArrowInvalid:
        names, schema, longest = _scan(path, wanted)
        table = parse(schema, max(files.BLOCK, longest), "infer" if wanted is None else "ignore")
    return table.select(files.choose_columns(path, names, wanted)), names


def _scan_lines(path: str, wanted: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    """Parse some lines at a time. A column may begin anywhere, and its type may differ from one table to the next.

    To name all columns (`wanted` is None) the whole file is looked at. This is also the time to look for traps.
    """
    if wanted is not None:
        chosen = list(dict.fromkeys(wanted))
        return (_fill_up(table, chosen) for table in _parse_runs(path)), chosen
    check_safety(path)
    names = list(dict.fromkeys(name for table in _parse_runs(path) for name in table.column_names))
    chosen = files.choose_columns(path, names, None)
    return (_fill_up(table, chosen) for table in _parse_runs(path)), names


def _fill_up(table: pa.Table, names: list[str]) -> pa.Table:
    """Return some columns of a table, those that it does not have without values."""
    missing = pa.nulls(table.num_rows)
    return pa.table({name: table.column(name) if name in table.column_names else missing for name in names})


def _parse_runs(path: str) -> Iterator[pa.Table]:
    """Yield tables of runs of whole lines."""
    with io.BufferedReader(files.open_input(path)) as file:
        while text := b"".join(file.readlines(files.TEXT_AT_ONCE)):
            if text.strip():
                yield _parse_run(text)


def _parse_run(text: bytes) -> pa.Table:
    block_size = max(files.BLOCK, len(text) // 8)
    table = _parse(pa.BufferReader(text), block_size)
    return _keep_times(table, lambda schema: _parse(pa.BufferReader(text), block_size, schema))


def check_safety(path: str) -> None:
    """Raise an error that names the line which a parser might die of, if there is one."""
    with io.BufferedReader(files.open_input(path)) as file:
        trap = find_trap(file)
    if trap is not None:
        raise InputError(f"{files.name_of(path)}, line {trap[0]}: {trap[1]}.", "Give one flat JSON object per line.")
    with io.BufferedReader(files.open_input(path)) as file:
        n_names, n_lines, n_bytes = count_names(file)
    if n_names * n_lines > max(MOST_CELLS, CELLS_PER_BYTE * n_bytes):
        raise InputError(
            f"{files.quote_path(path)} has about {n_names:,} different names in {n_lines:,} lines, most in few: "
            "a table of them would be nearly empty.",
            "Give all objects the same names.",
        )


def _scan(path: str, wanted: Collection[str] | None) -> tuple[list[str], pa.Schema, int]:
    """Return all names, the schema of the wanted columns and the length of the longest line; a faulty one is an error.

    It is slow, and follows a fast reading that failed, perhaps on a very long line or on a column that nobody wants.
    """
    names: dict[str, None] = {}
    kinds: dict[str, type] = {}
    longest = 0
    for number, line in files.numbered_lines(path):
        longest = max(longest, len(line))
        place = f"{files.name_of(path)}, line {number}"
        try:
            record = json.loads(line)
        except UnicodeDecodeError as error:
            raise files.encoding_error(place) from error
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
    chosen = files.choose_columns(path, list(names), wanted)
    nested = [name for name in chosen if kinds[name] in (dict, list)]
    if nested and wanted is not None:
        raise files.nested_error(path, nested[0], kinds[nested[0]].__name__)
    schema = [(name, _TYPES.get(kinds[name], pa.string())) for name in chosen if name not in nested]
    return list(names), pa.schema(schema), longest


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


JSON_LINES = Codec(read=_read, scan=_scan_lines, write=_write, recognise=_recognise, find_lines=_find_lines)

# -------------------------------------------------------------------------------------------------------- traps


def find_trap(stream: IO[bytes]) -> tuple[int, str] | None:
    r"""Return the first line, from 1, that a parser may die of, and what is wrong with it; None if there is none.

    Brackets count from one line to the next, as for a parser. A string ends with its line at the latest, so that a
    quote too many in one line hides no bracket of another.

    >>> import io
    >>> find_trap(io.BytesIO(b'{"text": "' + b"[" * 200 + b'"}'))
    >>> find_trap(io.BytesIO(b'{"a": 1}\n{"a": ' + b"[" * 200))
    (2, 'more than 100 brackets are open')
    >>> find_trap(io.BytesIO(b'{"a": 1}\n  null\n'))
    (2, 'expected one JSON object per line, found null')
    """
    n_open, line, length, in_string, blank = 0, 1, 0, False, True
    while chunk := _read_chunk(stream):
        first_break, last_break = chunk.find(b"\n"), chunk.rfind(b"\n")
        if length + (len(chunk) if first_break < 0 else first_break) > files.LONGEST_ROW:
            return line, _TOO_LONG
        length = length + len(chunk) if first_break < 0 else len(chunk) - last_break - 1
        chunk = _drop_escapes(chunk)
        text = np.frombuffer(chunk, np.uint8)
        breaks = np.flatnonzero(text == _NEWLINE)
        null, blank = _find_null(chunk, text, blank)
        places, levels = _find_levels(text, breaks, n_open, in_string)
        deep = places[levels > MOST_OPEN]
        found = [(int(at[0]), words) for at, words in ((deep, _TOO_DEEP), (null, _NO_OBJECT)) if len(at)]
        if found:
            place, words = min(found)
            return line + int(np.searchsorted(breaks, place)), words
        n_open = int(levels[-1]) if len(levels) else n_open
        in_string = _ends_in_string(text, breaks, in_string)
        line += len(breaks)
    return None


def count_names(stream: IO[bytes]) -> tuple[int, int, int]:
    r"""Return about how many different names objects have, in how many lines and bytes.

    A name in an object within an object is another one for each name of that, as it is a column of its own for a
    parser. Names end in a quote before a colon. It is fast, and wrong by the few that are told apart by their
    beginnings only, that lie on the border of two blocks, or have the same place in the table of bits.

    >>> import io
    >>> count_names(io.BytesIO(b'{"item": 1, "worker" : {"name": "b:"}}\n{"item": 2, "label": {"name": "a"}}\n'))
    (5, 3, 75)
    """
    seen = np.zeros(1 << _BITS, bool)
    n_lines = n_bytes = n_open = 0
    in_string = False
    while chunk := _read_chunk(stream):
        n_lines, n_bytes = n_lines + chunk.count(b"\n"), n_bytes + len(chunk)
        text = np.frombuffer(_drop_escapes(chunk), np.uint8)
        breaks = np.flatnonzero(text == _NEWLINE)
        places, levels = _find_levels(text, breaks, n_open, in_string)
        ends, codes = _find_names(text)
        level = np.concatenate([[n_open], levels])[np.searchsorted(places, ends)]
        seen[_find_paths(codes, level) >> np.uint64(64 - _BITS)] = True
        n_open, in_string = int(levels[-1]) if len(levels) else n_open, _ends_in_string(text, breaks, in_string)
    return int(np.count_nonzero(seen)), n_lines + 1, n_bytes


def _find_names(text: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return where names end, and a code of each."""
    ends = np.flatnonzero(text == _COLON) - 1
    for _ in range(_LAST_BYTES):  # blanks between a name and its colon
        blank = _IS_BLANK[text[ends]]
        if not blank.any():
            break
        ends = np.where(blank, np.maximum(ends - 1, 0), ends)
    ends = ends[text[ends] == _QUOTE]
    codes, within = np.zeros(len(ends), np.uint64), np.ones(len(ends), bool)
    for back in range(1, _LAST_BYTES + 1):
        byte = text[np.maximum(ends - back, 0)]
        within &= byte != _QUOTE
        if not within.any():
            break
        codes = np.where(within, (codes + byte) * _PRIME, codes)
    return ends, codes


def _find_paths(codes: NDArray[np.uint64], level: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a code of each name and of all names that it stands under: before each, the last of a lower level."""
    number = np.arange(len(codes))
    for each in np.unique(level)[1:].tolist():
        above = np.maximum.accumulate(np.where(level < each, number, -1))
        under = np.flatnonzero((level == each) & (above >= 0))
        codes[under] = (codes[under] + codes[above[under]] * _PRIME) * _PRIME
    return codes


_PRIME = np.uint64(0x9E3779B97F4A7C15)
_TOO_DEEP = f"more than {MOST_OPEN} brackets are open"
_TOO_LONG = f"the line is longer than {format_bytes(files.LONGEST_ROW)}"
_NO_OBJECT = "expected one JSON object per line, found null"


def _read_chunk(stream: IO[bytes]) -> bytes:
    """Return the next bytes; a backslash is not cut off from what it stands before."""
    chunk = stream.read(files.BLOCK)
    return chunk + stream.read(1) if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2 else chunk


def _drop_escapes(chunk: bytes) -> bytes:
    """Return the bytes without quotes that end no string."""
    return chunk.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in chunk else chunk


def _ends_in_string(text: NDArray[np.uint8], breaks: NDArray[np.int64], in_string: bool) -> bool:
    """Tell whether a string is open at the end, if one was at the beginning or not."""
    last = breaks[-1] if len(breaks) else -1
    return bool((np.count_nonzero(text[last + 1 :] == _QUOTE) + (in_string and last < 0)) % 2)


def _find_levels(
    text: NDArray[np.uint8], breaks: NDArray[np.int64], n_open: int, in_string: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where brackets outside of strings are, and how many are open after each."""
    quotes = np.flatnonzero(text == _QUOTE)
    folded = text | _FOLD
    places = np.flatnonzero((folded == _OPENING) | (folded == _CLOSING))
    # Quotes before the line of a bracket do not count; of the first line there may be one in an earlier chunk.
    before = np.concatenate([[-int(in_string)], np.searchsorted(quotes, breaks)])
    outside = (np.searchsorted(quotes, places) - before[np.searchsorted(breaks, places)]) % 2 == 0
    places = places[outside]
    levels = n_open + np.cumsum(np.where(folded[places] == _OPENING, 1, -1))
    # A bracket that closes nothing changes nothing.
    return places, levels - np.minimum(np.minimum.accumulate(levels), 0)


def _find_null(chunk: bytes, text: NDArray[np.uint8], blank: bool) -> tuple[NDArray[np.int64], bool]:
    """Return where lines begin with an n, after blanks; and whether the last line is blank so far.

    `blank` tells whether the line that goes on here was. A carriage return begins a line too.
    """
    starts = np.flatnonzero((text == _NEWLINE) | (text == _RETURN)) + 1
    starts = np.concatenate([[0], starts]) if blank else starts
    ends = len(starts) > 0 and starts[-1] == len(text)
    starts = starts[:-1] if ends else starts
    for i in np.flatnonzero(_IS_BLANK[text[starts]]):
        starts[i] = _BLANKS.match(chunk, starts[i]).end()  # type: ignore[union-attr] # it matches anything
    ends = ends or (len(starts) > 0 and starts[-1] == len(text))
    starts = starts[starts < len(text)]
    return starts[text[starts] == ord("n")], bool(ends)
