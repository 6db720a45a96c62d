"""What reading and writing have in common in all formats: which format a file has, compression, names of columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from ..answers.tables import check_names
from ..errors import InputError
from .register import Format, readable_formats
from .remote import is_remote, open_remote

PathLike: TypeAlias = str | os.PathLike[str]

# Text is parsed in parallel in blocks of this size; a row longer than one is left to a second reading in blocks of the
# other. A still longer row is an error: it is hardly an answer, and a small compressed file may hold one of any length.
# Text is written this many rows at a time.
BLOCK = 1 << 22
LONGEST_ROW = 1 << 26
ROWS_PER_WRITE = 1 << 14
# Of files larger than memory, so many rows, or bytes of text, are held at a time.
ROWS_AT_ONCE = 1 << 20
TEXT_AT_ONCE = 1 << 25
# So much of a file is shown to formats that may recognise it.
HEAD = 1 << 16
_GZIP = b"\x1f\x8b"


# The path that stands for standard input, and what messages call it.
STANDARD_INPUT = "-"
# How Parquet and Arrow begin.
_BINARY = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")
_NAME_OF_INPUT = "standard input"
# What was read from a standard input, which can be read only once.
_inputs: WeakKeyDictionary[Any, pa.Buffer] = WeakKeyDictionary()


def name_of(path: str) -> str:
    """Return what messages call a file.

    >>> name_of("answers.csv"), name_of("-")
    ('answers.csv', 'standard input')
    """
    return _NAME_OF_INPUT if path == STANDARD_INPUT else path


def quote_path(path: str) -> str:
    """Return a path in quotes, and standard input by its name."""
    return _NAME_OF_INPUT if path == STANDARD_INPUT else repr(path)


def find_format(path: str) -> Format | None:
    """Return the format in which to read a file: the one its content shows, else the one its suffix names, or None."""
    head = _read_head(path)
    if path == STANDARD_INPUT:
        _refuse_tools(head)
        return _find_text_format(head)
    for each in readable_formats():
        if each.codec.recognise is not None and each.codec.recognise(head, path):
            return each
    return next((each for each in readable_formats() if each.fits(path)), None)


def _refuse_tools(head: bytes) -> None:
    """Raise an error for the export of an annotation tool on standard input, which is read more than once."""
    for each in readable_formats():
        if each.outputs and each.codec.recognise is not None and each.codec.recognise(head, "-.csv"):
            raise InputError(
                f"Standard input must be a table, and this looks like a file of an annotation tool ({each.name}).",
                "Give the name of the file.",
            )


def _find_text_format(head: bytes) -> Format:
    """Return the format of text without a suffix: JSON lines, TSV if there are tabs in its first line, else CSV."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    name = "jsonl" if text.startswith(b"{") else "tsv" if b"\t" in text.partition(b"\n")[0] else "csv"
    if text.startswith(b"["):
        raise InputError(
            "Standard input must be CSV, TSV or JSON lines. Got a JSON array instead.", "Give the name of a file."
        )
    if head.startswith(_BINARY):
        raise InputError("Standard input must be CSV, TSV or JSON lines. Got Parquet or Arrow instead.", "Give a file.")
    return next(each for each in readable_formats() if each.name == name)


def _read_head(path: str) -> bytes:
    """Return the first bytes of a file, decompressed; none if that fails, since the reader will say why."""
    try:
        with open_input(path) as stream:
            return bytes(stream.read(HEAD))
    except OSError:
        return b""


def open_input(path: str) -> Any:
    """Return a stream of the bytes of a file, decompressed if its content or its suffix says that it is compressed."""
    if path == STANDARD_INPUT:
        return _open_standard_input()
    with open_raw(path, "rb") as file:
        compressed = is_gzip(file.read(len(_GZIP))) or _is_compressed(path)
    return pa.input_stream(open_raw(path, "rb"), compression="gzip" if compressed else None)


def _open_standard_input() -> Any:
    """Return a stream of all that is on standard input, however often it is read."""
    stream = sys.stdin
    if stream not in _inputs:
        binary = getattr(stream, "buffer", None)
        _inputs[stream] = pa.py_buffer(binary.read() if binary is not None else stream.read().encode())
    buffer = _inputs[stream]
    compressed = buffer.size >= len(_GZIP) and buffer[: len(_GZIP)].to_pybytes() == _GZIP
    return pa.input_stream(pa.BufferReader(buffer), compression="gzip" if compressed else None)


def is_gzip(head: bytes) -> bool:
    """Tell compressed content by its first bytes."""
    return head.startswith(_GZIP)


def open_output(path: str) -> Any:
    """Return a stream that writes to a file, compressed if its suffix says so."""
    return pa.output_stream(open_raw(path, "wb"), compression="gzip" if _is_compressed(path) else None)


def open_raw(path: str, mode: str) -> Any:
    """Return a file as Arrow reads and writes it. Its name may be any: Arrow itself takes only names in UTF-8."""
    if mode == "rb" and is_remote(path):
        return open_remote(path)
    return pa.OSFile(os.fsencode(path), mode)


def _is_compressed(path: str) -> bool:
    return path.lower().endswith(".gz")


def choose_columns(path: str, names: list[str], wanted: Collection[str] | None) -> list[str]:
    """Return the names to read, after a check that no name occurs twice."""
    check_names(names, quote_path(path))
    return [name for name in names if wanted is None or name in wanted]


def nested_error(path: str, name: str, kind: str) -> InputError:
    """Return the error for a column of lists or objects."""
    return InputError(
        f"Column {name!r} of {quote_path(path)} holds nested values ({kind}).", "Give it plain text or numbers."
    )
