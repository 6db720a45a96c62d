"""Archives: one zip file with a JSON header, NumPy arrays and Arrow columns. No pickle, written whole or not at all.

A file may come from anywhere. So nothing in it is believed: what a member says of its size, shape and type is compared
with what must be there before memory is taken for it, and whatever is wrong is a `Fault`.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Column, find_missing, to_column, to_values
from ..errors import StoreError, first_line, listing, plural, shorten
from ..formats.writing import replace_file
from ..specs import ArraySpec, Fault

FORMAT, VERSION = "consilience-model", 1
UNRELEASED = "consilience"  # the format of versions before the first release
HEADER = "model.json"

# What a file may unpack to: ROOM whatever its size, and so many times its size. Of the header, which becomes Python
# objects, it is less. A file that packs better than that is saved unpacked.
ROOM, MOST_UNPACKED = 1 << 26, 100
HEADER_ROOM, MOST_UNPACKED_HEADER = 1 << 24, 10
# Flags of a member that change nothing: sizes after the data, names in UTF-8, how hard it was compressed.
_HARMLESS = 0x080E
# The beginning of an array, as `numpy.lib.format` writes it: magic and version, length of the header, header.
_ARRAY_MAGIC = b"\x93NUMPY\x01\x00"
_ARRAY_HEADER = re.compile(
    rb"\{'descr': '(?P<code>[<|][a-zA-Z][0-9]{1,3})', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[0-9, ]{0,200})\), \} *\n"
)
_LONGEST_ARRAY_HEADER = 512
# Arrow's format begins so; what follows is the same as a stream, up to an index at the end that is not needed.
_COLUMN_MAGIC = b"ARROW1\x00\x00"
_FIELD = "values"
# Where things are in a message, by Arrow's Message.fbs: the number of each field in its table.
_HEADER_OF_MESSAGE, _DATA_OF_DICTIONARY, _COMPRESSION_OF_BATCH = 2, 1, 3
_CHUNK = 1 << 20


def write_archive(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    columns: Mapping[str, Column],
) -> Path:
    """Write header, numeric arrays and columns of ids to one file. The same content gives the same bytes."""
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            raise _unsavable(name, column)
    text = json.dumps({"format": FORMAT, "version": VERSION, **header}, indent=1).encode()
    target = Path(path)
    with replace_file(target) as beside:
        for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            # Opened by its name, a member has the same date whenever it is written.
            with zipfile.ZipFile(beside, "w", method, compresslevel=1) as archive:
                with archive.open(HEADER, "w") as member:
                    member.write(text)
                for name, array in arrays.items():
                    with archive.open(f"arrays/{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asarray(array, order="C"), (1, 0), allow_pickle=False)
                for name, column in columns.items():
                    with archive.open(f"columns/{name}.arrow", "w", force_zip64=True) as member:
                        write_column(column, member)
            if find_bomb(archive.infolist(), beside.stat().st_size) is None:
                break
    return target


def _unsavable(name: str, column: NDArray[np.object_]) -> StoreError:
    odd = next((entry for entry in column if isinstance(to_column([entry]), np.ndarray)), column[0])
    if isinstance(odd, str):
        problem, remedy = "has half a character (a lone surrogate), which no encoding knows.", "Use other ids."
    else:
        problem = f"is a {type(odd).__name__}, and only text, numbers, booleans and times can be written."
        remedy = "Use their text as ids."
    return StoreError(f"Cannot save the {name.rpartition('/')[2]}: {shorten(odd)} {problem}", remedy)


class Archive(NamedTuple):
    """A file that is being read: its header, and the names of its arrays and columns."""

    file: zipfile.ZipFile
    header: dict[str, Any]
    arrays: dict[str, str]  # the member that holds each array which was not read yet
    columns: dict[str, str]  # the same of columns

    def read_array(self, name: str, spec: ArraySpec, sizes: dict[str, int]) -> NDArray[Any]:
        """Return an array that is what the spec says. It defines the length of an axis whose size is not known."""
        member = _take("array", self.arrays, name)
        with self.file.open(member) as stream:
            shape, code, begin = _read_array_header(member, stream)
            spec.check_layout(member, shape, code, sizes)
            for axis, length in zip(spec.shape.split(), shape, strict=True):
                if axis.isalpha() and len(axis) == 1:
                    sizes.setdefault(axis, length)
            stored = self.file.getinfo(member).file_size - begin
            if stored != math.prod(shape) * np.dtype(code).itemsize:
                raise Fault(f"{member} has {plural(stored, 'byte')} for an array of shape {shape}")
            array = np.zeros(shape, code)
            _fill(member, stream, array)
        spec.check(member, array, sizes)
        return array

    def read_column(self, name: str) -> pa.Array:
        """Return a column of ids, none of them missing."""
        member = _take("column", self.columns, name)
        return parse_column(member, self.file.read(member))

    def check_all_was_read(self) -> None:
        """Raise a `Fault` for arrays and columns that nobody asked for."""
        for what, left in (("array", self.arrays), ("column", self.columns)):
            if left:
                raise Fault(f"there is no {what} {listing(sorted(left))} in such a model")


def _take(what: str, members: dict[str, str], name: str) -> str:
    """Return the member that holds an array or a column, and cross it off."""
    if name not in members:
        raise Fault(f"the {what} {name!r} is missing")
    return members.pop(name)


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Give the archive in a file; whatever is wrong with it, also in the block, is a `StoreError`."""
    try:
        with zipfile.ZipFile(path) as file:
            arrays, columns = _check_members(file, os.path.getsize(path))
            yield Archive(file, _read_header(file), arrays, columns)
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {os.fspath(path)}.", "Check the name.") from error
    except (zipfile.BadZipFile, IsADirectoryError) as error:
        raise StoreError(
            f"{os.fspath(path)} is not a model saved by consilience, or is damaged: {first_line(error)}.",
            "Save the model again, or fit again.",
        ) from error
    except PermissionError as error:
        raise StoreError(f"{os.fspath(path)} cannot be read: {first_line(error)}.", "Allow to read it.") from error
    except (Fault, OSError, EOFError, zlib.error, ValueError, OverflowError, NotImplementedError) as error:
        if isinstance(error, StoreError):
            raise
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise StoreError(f"{os.fspath(path)} cannot be read: {first_line(error)}.", "Close some files.") from error
        raise StoreError(
            f"{os.fspath(path)} is damaged: {first_line(error)[:500]}.", "Save the model again, or fit again."
        ) from error


def _check_members(file: zipfile.ZipFile, size: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return the members that hold arrays and columns, by name, if the file has no others but its header."""
    infos = file.infolist()
    bomb = find_bomb(infos, size)
    if bomb is not None:
        raise Fault(bomb)
    names = [info.filename for info in infos]
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if twice:
        raise Fault(f"it holds {listing(sorted(twice))} more than once")
    arrays: dict[str, str] = {}
    columns: dict[str, str] = {}
    for info in infos:
        if info.flag_bits & ~_HARMLESS or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Fault(f"{shorten(info.filename)} is encrypted, or compressed in a way that is not used")
        kind = re.fullmatch(r"(arrays|columns)/(.+)\.(npy|arrow)", info.filename, re.DOTALL)
        if kind is not None and (kind[1], kind[3]) in (("arrays", "npy"), ("columns", "arrow")):
            (arrays if kind[1] == "arrays" else columns)[kind[2]] = info.filename
        elif info.filename != HEADER:
            raise Fault(f"it holds {shorten(info.filename)}, which is no part of a model")
    if HEADER not in names:
        raise zipfile.BadZipFile(f"it has no {HEADER}")
    return arrays, columns


def find_bomb(members: list[zipfile.ZipInfo], size: int) -> str | None:
    """Return what is wrong if so few bytes unpack to far too many, else None."""
    sizes = {info.filename: info.file_size for info in members}
    total = sum(info.file_size for info in members)
    packed = plural(size, "byte")
    if total > max(ROOM, MOST_UNPACKED * size):
        return f"{packed} would unpack to {plural(total, 'byte')}"
    if sizes.get(HEADER, 0) > max(HEADER_ROOM, MOST_UNPACKED_HEADER * size):
        return f"{packed} would unpack to a header of {plural(sizes[HEADER], 'byte')}"
    return None


def _read_header(file: zipfile.ZipFile) -> dict[str, Any]:
    text = file.read(HEADER)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Fault(f"{HEADER} is not JSON ({first_line(error)})") from error
    if isinstance(header, dict) and header.get("format") == UNRELEASED:
        raise StoreError(
            f"{file.filename} was saved by an earlier, unreleased version of consilience, and cannot be read any more.",
            "Fit the model again.",
        )
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise zipfile.BadZipFile(f"its {HEADER} does not say so")
    version = header.get("version")
    if type(version) is int and version > VERSION:
        raise StoreError(
            f"{file.filename} was saved by a newer release of consilience (version {shorten(version)} of the format; "
            f"this release reads up to {VERSION}).",
            "Upgrade consilience, or fit again.",
        )
    if type(version) is not int or version < 1:
        raise Fault(f"{HEADER} names no version, but {shorten(version)}")
    return header


def _read_array_header(member: str, stream: Any) -> tuple[tuple[int, ...], str, int]:
    """Return shape, code of the type, and length of the header of an array; no memory is taken for the array yet."""
    start = stream.read(len(_ARRAY_MAGIC) + 2)
    length = int.from_bytes(start[len(_ARRAY_MAGIC) :], "little")
    match = _ARRAY_HEADER.fullmatch(stream.read(min(length, _LONGEST_ARRAY_HEADER)))
    if not start.startswith(_ARRAY_MAGIC) or match is None:
        raise Fault(f"{member} is not an array of plain values")
    axes = match["shape"].decode().replace(",", " ").split()
    return tuple(map(int, axes)), match["code"].decode(), len(start) + length


def _fill(member: str, stream: Any, array: NDArray[Any]) -> None:
    """Read the values of an array, and not one byte more."""
    target = array.reshape(-1).view(np.uint8)
    done = 0
    while done < len(target) and (part := stream.read(min(_CHUNK, len(target) - done))):
        target[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)
    if done < len(target) or stream.read(1):  # the last reading also compares the checksum
        raise Fault(f"{member} is not as long as it says")


def write_column(column: pa.Array, sink: IO[bytes]) -> None:
    """Write one column."""
    table = pa.table({_FIELD: column})
    with pa.ipc.new_file(pa.PythonFile(sink, "w"), table.schema) as writer:
        writer.write_table(table)


def parse_column(name: str, data: bytes) -> pa.Array:
    """Return the column that `write_column` wrote; anything else is a `Fault`."""
    if not data.startswith(_COLUMN_MAGIC):
        raise Fault(f"{name} is not a column in Arrow's format")
    stream = pa.py_buffer(data).slice(len(_COLUMN_MAGIC))
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
