"""What a file's name says: its format and compression. And what reading any format has in common."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import InputError, listing

PathLike: TypeAlias = str | os.PathLike[str]

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv.gz": "csv",
    ".tsv.gz": "tsv",
    ".jsonl.gz": "jsonl",
}
SUFFIXES = tuple(_FORMATS)
TEXT_FORMATS = ("csv", "tsv", "jsonl")

# Text is parsed in parallel in blocks of this size; a row longer than one is left to a second reading in blocks of the
# other. It is written this many rows at a time.
BLOCK = 1 << 22
HUGE_BLOCK = 1 << 30
ROWS_PER_WRITE = 1 << 14


def find_suffix(path: str) -> str:
    """Return the supported suffix of `path`, or the empty string."""
    return next((suffix for suffix in SUFFIXES if path.lower().endswith(suffix)), "")


def find_format(path: str) -> str:
    """Return the format of a file with a supported suffix."""
    return _FORMATS[find_suffix(path)]


def open_input(path: str) -> Any:
    """Return a stream of the bytes of a file, decompressed."""
    return pa.input_stream(path, compression=_find_compression(path))


def open_output(path: str) -> Any:
    """Return a stream that writes to a file, compressed if its suffix says so."""
    return pa.output_stream(path, compression=_find_compression(path))


def _find_compression(path: str) -> Any:
    return "gzip" if path.lower().endswith(".gz") else None


def choose_columns(path: str, names: list[str], wanted: Collection[str] | None) -> list[str]:
    """Return the names to read, after a check that no name occurs twice."""
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(f"{path!r} has several columns named {listing(twice)}. Give each column its own name.")
    return [name for name in names if wanted is None or name in wanted]


def nested_error(path: str, name: str, kind: str) -> InputError:
    """Return the error for a column of lists or objects."""
    return InputError(f"Column {name!r} of {path!r} holds nested values ({kind}). Give it plain text or numbers.")
