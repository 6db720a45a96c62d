"""Columns of ids in Arrow's format, in files that may come from anywhere."""

from __future__ import annotations

import struct
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import find_missing, to_values
from ..specs import Fault

# The format begins so; what follows is the same as a stream, up to an index at the end that is not needed.
_MAGIC = b"ARROW1\x00\x00"
_FIELD = "values"
# Where things are in a message, by Arrow's Message.fbs: the number of each field in its table.
_HEADER_OF_MESSAGE, _DATA_OF_DICTIONARY, _COMPRESSION_OF_BATCH = 2, 1, 3


def write_column(column: pa.Array, sink: IO[bytes]) -> None:
    """Write one column."""
    table = pa.table({_FIELD: column})
    with pa.ipc.new_file(pa.PythonFile(sink, "w"), table.schema) as writer:
        writer.write_table(table)


def read_column(name: str, data: bytes) -> pa.Array:
    """Return the column that `write_column` wrote; anything else is a `Fault`."""
    if not data.startswith(_MAGIC):
        raise Fault(f"{name} is not a column in Arrow's format")
    stream = pa.py_buffer(data).slice(len(_MAGIC))
    try:
        _refuse_compression(name, stream)
        with pa.ipc.open_stream(stream) as reader:
            if reader.schema.names != [_FIELD] or not _is_plain(reader.schema.field(0).type):
                raise Fault(f"{name} is not a column of plain values")
            table = reader.read_all()
        table.validate(full=True)
        column = table[_FIELD].unify_dictionaries().combine_chunks()
        if pa.types.is_dictionary(column.type):
            column.dictionary.validate(full=True)
        if len(find_missing(column)):
            raise Fault(f"{name} has missing entries")
        if pa.types.is_temporal(column.type):
            to_values(pc.unique(column))  # there are times, and time zones, that Python does not know
    except Fault:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError, struct.error) as error:
        raise Fault(f"{name} is not a column that can be read ({error})") from error
    return column


def _is_plain(kind: pa.DataType) -> bool:
    """Tell whether a type is one that `to_column` gives, with at least one bit for each value."""
    known = pa.types
    if known.is_dictionary(kind):
        return _is_plain(kind.value_type) and not known.is_dictionary(kind.value_type)
    if known.is_fixed_size_binary(kind):
        return bool(kind.byte_width > 0)
    tests = (known.is_boolean, known.is_integer, known.is_floating, known.is_decimal, known.is_temporal)
    texts = (known.is_string, known.is_large_string, known.is_binary, known.is_large_binary)
    return any(test(kind) for test in (*tests, *texts))


def _refuse_compression(name: str, stream: pa.Buffer) -> None:
    """Raise a `Fault` if buffers are compressed: they would unpack to any size, and `write_column` compresses none."""
    messages = pa.ipc.MessageReader.open_stream(stream)
    for message in iter(lambda: next(messages, None), None):
        if message.type in ("record batch", "dictionary"):
            # Arrow has verified the offsets, so that they lead to where Arrow itself will look.
            metadata = message.metadata.to_pybytes()
            batch = _follow(metadata, _field(metadata, _follow(metadata, 0), _HEADER_OF_MESSAGE))
            if message.type == "dictionary":
                batch = _follow(metadata, _field(metadata, batch, _DATA_OF_DICTIONARY))
            if _field(metadata, batch, _COMPRESSION_OF_BATCH):
                raise Fault(f"{name} is compressed twice")


def _follow(data: bytes, place: int) -> int:
    """Return where the table begins that a flatbuffer refers to."""
    return place + _unpack("<I", data, place)


def _field(data: bytes, table: int, number: int) -> int:
    """Return where a field of a flatbuffer's table is, 0 if it is not there."""
    entries = table - _unpack("<i", data, table)
    at = 4 + 2 * number
    offset = _unpack("<H", data, entries + at) if at < _unpack("<H", data, entries) else 0
    return table + offset if offset else 0


def _unpack(code: str, data: bytes, place: int) -> int:
    return int(struct.unpack_from(code, data, place)[0])
