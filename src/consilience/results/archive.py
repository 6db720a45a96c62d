"""Archives: one zip file with a JSON header, NumPy arrays and Arrow columns. No pickle, written whole or not at all.

A file may come from anywhere. So nothing in it is believed: what a member says of its size, shape and type is compared
with what must be there before memory is taken for it, and whatever is wrong is a `Fault`.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column, to_column
from ..errors import StoreError, first_line, listing, plural, shorten
from ..formats.json_lines import find_trap
from ..formats.writing import replace_file
from ..specs import ArraySpec, Fault, Sizes
from .arrow_columns import read_column, write_column

FORMAT = "consilience"
SCHEMA_VERSION = 9
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
    text = json.dumps({"format": FORMAT, "schema": SCHEMA_VERSION, **header}, indent=1).encode()
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
    return StoreError(f"Cannot save the {name}: {shorten(odd)} {problem}", remedy)


class Archive(NamedTuple):
    """A file that is being read: its header, and the names of its arrays and columns."""

    file: zipfile.ZipFile
    header: dict[str, Any]
    arrays: dict[str, str | None]  # the member that holds each array; None for one that is not known
    columns: dict[str, str]

    def read_array(self, name: str, spec: ArraySpec, sizes: Sizes) -> NDArray[Any]:
        """Return an array that is what the spec says; NaN if files of that time had none."""
        member = self.arrays[name]
        if member is None:
            return np.full([length or 0 for length in spec.lengths(sizes)], np.nan)
        with self.file.open(member) as stream:
            shape, code, begin = _read_array_header(member, stream)
            spec.check_layout(member, shape, code, sizes)
            stored = self.file.getinfo(member).file_size - begin
            if stored != math.prod(shape) * np.dtype(code).itemsize:
                raise Fault(f"{member} has {plural(stored, 'byte')} for an array of shape {shape}")
            array = np.zeros(shape, code)
            _fill(member, stream, array)
        spec.check(member, array, sizes)
        return array

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape that an array claims to have."""
        member = self.arrays[name]
        if member is None:
            raise Fault(f"there is no array {name}")
        with self.file.open(member) as stream:
            return _read_array_header(member, stream)[0]

    def read_column(self, name: str) -> pa.Array:
        """Return a column of ids, none of them missing."""
        return read_column(self.columns[name], self.file.read(self.columns[name]))


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Give the archive in a file; whatever is wrong with it, also in the block, is a `StoreError`."""
    try:
        with zipfile.ZipFile(path) as file:
            arrays, columns = _check_members(file, os.path.getsize(path))
            yield Archive(file, _read_header(file), {**arrays}, columns)
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
    trap = find_trap(BytesIO(text))
    if trap is not None:
        raise Fault(f"{HEADER}, line {trap[0]}: {trap[1]}")
    try:
        header = json.loads(text)
    except ValueError as error:
        raise Fault(f"{HEADER} is not JSON ({first_line(error)})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise zipfile.BadZipFile(f"its {HEADER} does not say so")
    schema = header.get("schema")
    if type(schema) is int and schema > SCHEMA_VERSION:
        raise StoreError(
            f"{file.filename} was saved by a newer release of consilience (schema {shorten(schema)}; this release "
            f"reads up to {SCHEMA_VERSION}).",
            "Upgrade consilience, or fit again.",
        )
    if type(schema) is not int or schema < 1:
        raise Fault(f"{HEADER} names no schema, but {shorten(schema)}")
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
