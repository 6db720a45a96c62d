"""Archives: one zip file with a JSON header, NumPy arrays and Arrow columns. No pickle, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column, find_missing, to_column
from ..errors import StoreError, first_line, listing, shorten
from ..formats.writing import replace_file
from ..specs import ArraySpec, Fault

FORMAT, VERSION = "consilience-model", 1
HEADER = "model.json"


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
    with replace_file(target) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        # Opened by its name, a member has the same date whenever it is written.
        with archive.open(HEADER, "w") as member:
            member.write(text)
        for name, array in arrays.items():
            with archive.open(f"arrays/{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
        for name, column in columns.items():
            table = pa.table({"values": column})
            with (
                archive.open(f"columns/{name}.arrow", "w", force_zip64=True) as member,
                pa.ipc.new_file(pa.PythonFile(member, "w"), table.schema) as writer,
            ):
                writer.write_table(table)
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
    """A file that is being read: its header, and the members that hold arrays and columns, by name."""

    file: zipfile.ZipFile
    header: dict[str, Any]
    arrays: dict[str, str]  # those that were not read yet
    columns: dict[str, str]

    def read_array(self, name: str, spec: ArraySpec, sizes: dict[str, int]) -> NDArray[Any]:
        """Return an array that is what the spec says. It defines the length of an axis whose size is not known."""
        member = _take("array", self.arrays, name)
        with self.file.open(member) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
        spec.check_layout(member, array.shape, array.dtype.str, sizes)
        for axis, length in zip(spec.shape.split(), array.shape, strict=True):
            if axis.isalpha() and len(axis) == 1:
                sizes.setdefault(axis, length)
        spec.check(member, array, sizes)
        return np.asarray(array, order="C")

    def read_column(self, name: str) -> pa.Array:
        """Return a column of ids, none of them missing."""
        member = _take("column", self.columns, name)
        with pa.ipc.open_file(pa.BufferReader(self.file.read(member))) as reader:
            table = reader.read_all()
        table.validate(full=True)
        column = table.unify_dictionaries().column(0).combine_chunks()
        if pa.types.is_nested(column.type) or len(find_missing(column)):
            raise Fault(f"{member} has missing entries, or is not a column of plain values")
        return column

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
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as file:
            members: dict[str, dict[str, str]] = {"arrays": {}, "columns": {}}
            for member in file.namelist():
                found = re.fullmatch(r"(arrays|columns)/(.+)\.(npy|arrow)", member)
                if found is not None:
                    members[found[1]][found[2]] = member
                elif member != HEADER:
                    raise Fault(f"it holds {shorten(member)}, which is no part of a model")
            yield Archive(file, _read_header(file), members["arrays"], members["columns"])
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {name}.", "Check the name.") from error
    except (zipfile.BadZipFile, IsADirectoryError) as error:
        raise StoreError(
            f"{name} is not a model saved by consilience, or is damaged: {first_line(error)}.",
            "Save the model again, or fit again.",
        ) from error
    except PermissionError as error:
        raise StoreError(f"{name} cannot be read: {first_line(error)}.", "Allow to read it.") from error
    except StoreError:
        raise
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError, OverflowError, RuntimeError) as error:
        raise StoreError(
            f"{name} is damaged: {first_line(error)[:500]}.", "Save the model again, or fit again."
        ) from error


def _read_header(file: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in file.namelist():
        raise zipfile.BadZipFile(f"it has no {HEADER}")
    try:
        header = json.loads(file.read(HEADER))
    except (ValueError, RecursionError) as error:
        raise Fault(f"{HEADER} is not JSON ({first_line(error)})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise zipfile.BadZipFile(f"its {HEADER} does not say so")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise Fault(f"{HEADER} names no version, but {shorten(version)}")
    if version > VERSION:
        raise StoreError(
            f"{file.filename} was saved by a newer release of consilience (version {version} of the format; "
            f"this release reads up to {VERSION}).",
            "Upgrade consilience, or fit again.",
        )
    return header
