"""What reading and writing have in common in all formats: which format a file has, compression, names of columns."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, TypeAlias

import pyarrow as pa

from ..data.tables import check_names
from ..errors import InputError
from .register import Format, readable_formats

PathLike: TypeAlias = str | os.PathLike[str]

# Text is parsed in parallel in blocks of this size; a row longer than one is left to a second reading in blocks of the
# other. A still longer row is an error: it is hardly an answer, and a small compressed file may hold one of any length.
# Text is written this many rows at a time.
BLOCK = 1 << 22
LONGEST_ROW = 1 << 26
ROWS_PER_WRITE = 1 << 14
# So much of a file is shown to formats that may recognise it.
HEAD = 1 << 16
_GZIP = b"\x1f\x8b"


def find_format(path: str) -> Format | None:
    """Return the format in which to read a file: the one its content shows, else the one its suffix names, or None."""
    head = _read_head(path)
    for each in readable_formats():
        if each.codec.recognise is not None and each.codec.recognise(head, path):
            return each
    return next((each for each in readable_formats() if each.fits(path)), None)


def _read_head(path: str) -> bytes:
    """Return the first bytes of a file, decompressed; none if that fails, since the reader will say why."""
    try:
        with open_input(path) as stream:
            return bytes(stream.read(HEAD))
    except OSError:
        return b""


def open_input(path: str) -> Any:
    """Return a stream of the bytes of a file, decompressed if its content or its suffix says that it is compressed."""
    with open(path, "rb") as file:
        compressed = file.read(len(_GZIP)) == _GZIP or _is_compressed(path)
    return pa.input_stream(open_raw(path, "rb"), compression="gzip" if compressed else None)


def open_output(path: str) -> Any:
    """Return a stream that writes to a file, compressed if its suffix says so."""
    return pa.output_stream(open_raw(path, "wb"), compression="gzip" if _is_compressed(path) else None)


def open_raw(path: str, mode: str) -> Any:
    """Return a file as Arrow reads and writes it. Its name may be any: Arrow itself takes only names in UTF-8."""
    return pa.OSFile(os.fsencode(path), mode)


def _is_compressed(path: str) -> bool:
    return path.lower().endswith(".gz")


def choose_columns(path: str, names: list[str], wanted: Collection[str] | None) -> list[str]:
    """Return the names to read, after a check that no name occurs twice."""
    check_names(names, repr(path))
    return [name for name in names if wanted is None or name in wanted]


def nested_error(path: str, name: str, kind: str) -> InputError:
    """Return the error for a column of lists or objects."""
    return InputError(f"Column {name!r} of {path!r} holds nested values ({kind}).", "Give it plain text or numbers.")
