"""Tables larger than memory, read some rows at a time from files, globs and folders."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ..arguments import to_path
from ..errors import InputError, listing
from .files import PathLike, quote_path
from .lines import place_of_row
from .reading import UNREADABLE, find_files, permission_error, unreadable_error
from .register import Format

# Bytes of an answer in a text file, more or less.
BYTES_PER_ROW = 24


@dataclass(frozen=True)
class Scan:
    """Files of one format, whose rows are read in order, some at a time.

    Attributes
    ----------
    files : tuple of str
        Their paths, in reading order.
    format : Format
        The format that they share.
    names : tuple of str
        The names of all columns.
    sizes : tuple of int
        The number of rows of each file where the format tells, else estimated from its size.
    """

    files: tuple[str, ...]
    format: Format
    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def all_text(self) -> bool:
        """Whether every column is text, in which whole numbers are written as such."""
        return self.format.name in ("csv", "tsv")

    def read(self, columns: Collection[str]) -> Iterator[tuple[int, int, pa.Table]]:
        """Yield the number of a file, that of a row in it, and a table of the rows from there on."""
        for number, path in enumerate(self.files):
            row = 0
            for table in open_scan(path, self.format, columns)[0]:
                yield number, row, table
                row += table.num_rows

    def fingerprint(self) -> list[tuple[str, int, int]]:
        """Return the path, size and time of change of each file: what a store is recognised by."""
        found = []
        for path in self.files:
            status = os.stat(path)
            found.append((os.path.abspath(path), status.st_size, status.st_mtime_ns))
        return found

    def describe(self) -> str:
        """Return what messages call the files."""
        return quote_path(self.files[0]) if len(self.files) == 1 else f"the files {listing(self.files)}"

    def locate(self, file: int, row: int) -> str:
        """Return the place of a row of a file, for a message."""
        return place_of_row(self.files[file], row, self.format.codec.find_lines)


def scan_table(path: PathLike, format: str | None = None) -> Scan:
    """Look at one file, the files that match a glob, or those in a folder, as `read_table` does, without reading them.

    Parameters
    ----------
    path, format
        As for `consilience.formats.reading.read_table`.
    """
    files, found = find_files(to_path("path", "scan_responses", path), format)
    if found.codec.scan is None:
        raise InputError(
            f"{quote_path(files[0])} is of the format {found.name}, which is read as a whole.",
            "Data larger than memory must be Parquet, Arrow, CSV, TSV or JSON lines.",
        )
    names: list[str] = []
    for file in files:
        here = open_scan(file, found, None)[1]
        names = names or here
        if set(here) != set(names):
            raise InputError(
                f"{file!r} has the columns {listing(here)}, and {files[0]!r} {listing(names)}.",
                "Give all files the same columns.",
            )
    return Scan(tuple(files), found, tuple(names), tuple(count_rows(file, found) for file in files))


def open_scan(path: str, format: Format, columns: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    """Return tables of the rows of a file, in order, and the names of all of its columns."""
    assert format.codec.scan is not None
    try:
        tables, names = format.codec.scan(path, columns)
        return _explain_errors(tables, path), names
    except PermissionError as error:
        raise permission_error(path) from error
    except UNREADABLE as error:
        raise unreadable_error(path, error) from error


def _explain_errors(tables: Iterator[pa.Table], path: str) -> Iterator[pa.Table]:
    try:
        yield from tables
    except UNREADABLE as error:
        raise unreadable_error(path, error) from error


def count_rows(path: str, format: Format) -> int:
    """Return the number of rows of a file; an estimate, unless it is Parquet."""
    if format.name == "parquet":
        from pyarrow import parquet

        return int(parquet.read_metadata(path).num_rows)
    return os.path.getsize(path) // BYTES_PER_ROW + 1
