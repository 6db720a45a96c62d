"""Archives: one zip file with a JSON header, NumPy arrays and Arrow columns. No pickle, written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..data.vocabulary import Column, to_column
from ..errors import StoreError, shorten
from ..formats.writing import replace_file

FORMAT = "consilience"
SCHEMA_VERSION = 2
# A fixed date makes the same content the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


class Archive(NamedTuple):
    """What one file holds."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    columns: dict[str, pa.Array]


def write_archive(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    columns: Mapping[str, Column],
) -> Path:
    """Write header, numeric arrays and columns of ids to one file."""
    target = Path(path)
    with replace_file(target) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        text = json.dumps({"format": FORMAT, "schema": SCHEMA_VERSION, **header}, indent=1)
        archive.writestr(zipfile.ZipInfo("model.json", _DATE), text)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"arrays/{name}.npy", _DATE), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
        for name, column in columns.items():
            if isinstance(column, np.ndarray):
                raise _unsavable(name, column)
            with archive.open(zipfile.ZipInfo(f"columns/{name}.arrow", _DATE), "w", force_zip64=True) as member:
                table = pa.table({"values": column})
                with pa.ipc.new_file(pa.PythonFile(member, "w"), table.schema) as writer:
                    writer.write_table(table)
    return target


def _unsavable(name: str, column: NDArray[np.object_]) -> StoreError:
    odd = next((entry for entry in column if isinstance(to_column([entry]), np.ndarray)), column[0])
    if isinstance(odd, str):
        problem, remedy = "has half a character (a lone surrogate), which no encoding knows.", "Use other ids."
    else:
        problem = f"is a {type(odd).__name__}, and only text, numbers, booleans and times can be written."
        remedy = "Use their text as ids."
    return StoreError(f"Cannot save the {name}: {shorten(odd)} {problem}", remedy)


def read_archive(path: str | os.PathLike[str]) -> Archive:
    """Read what `write_archive` wrote; anything else is a `StoreError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("model.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise StoreError(f"{os.fspath(path)} is not a model saved by consilience.")
            if header.get("schema") != SCHEMA_VERSION:
                raise StoreError(
                    f"{os.fspath(path)} has schema version {shorten(header.get('schema'))}; this consilience reads "
                    f"version {SCHEMA_VERSION}. Load it with the release that wrote it, or fit again."
                )
            arrays, columns = {}, {}
            for member in archive.namelist():
                folder, _, file = member.partition("/")
                name = file.rpartition(".")[0]
                if folder == "arrays":
                    arrays[name] = np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
                elif folder == "columns":
                    table = pa.ipc.open_file(archive.read(member)).read_all()
                    columns[name] = table["values"].unify_dictionaries().combine_chunks()
            return Archive(header, arrays, columns)
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {os.fspath(path)}.") from error
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, pa.ArrowInvalid) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{os.fspath(path)} is not a model saved by consilience, or is damaged: {error}.") from error
