"""Tables larger than memory, read some rows at a time from files, globs and folders."""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from ..arguments import to_path
from ..errors import InputError, first_line, listing
from .files import PathLike, describe_remote, is_gzip, is_remote, open_raw, place_of_row, quote_path
from .reading import UNREADABLE, find_files, permission_error, unreadable_error
from .register import Format

# Bytes of an answer in an Arrow file, more or less.
BYTES_PER_ROW = 24
# In text a row is a line. So many bytes at the beginning of a file, and so many of its text, show how long lines are.
HEAD_OF_TEXT = 1 << 20
MOST_TEXT = 1 << 25


class Stretch(NamedTuple):
    """Some consecutive rows of a file, which can be read without the others.

    Attributes
    ----------
    file : int
        The number of the file.
    first_row : int
        The number of the first row in the file.
    parts : range or None
        The parts of the file that hold them, such as row groups of Parquet; None: all rows of the file.
    """

    file: int
    first_row: int = 0
    parts: range | None = None


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

    def stretches(self, n_rows: int) -> list[Stretch]:
        """Return what can be read side by side: parts of files with about so many rows, or whole files."""
        cut = self.format.codec.cut
        if cut is None:
            return [Stretch(number) for number in range(len(self.files))]
        return [Stretch(number, *run) for number, path in enumerate(self.files) for run in cut(path, n_rows)]

    def read(self, stretch: Stretch, columns: Collection[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of a row of a file, and a table of the rows from there on."""
        row = stretch.first_row
        for table in open_scan(self.files[stretch.file], self.format, columns, stretch.parts)[0]:
            yield row, table
            row += table.num_rows

    def fingerprint(self) -> list[tuple[str, int, str | None]]:
        """Return the path, size and time of change of each file: what a store is recognised by.

        The time is None for a remote file of which nothing is known that changes when its content does.
        """
        return [_describe_file(path) for path in self.files]

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


def _describe_file(path: str) -> tuple[str, int, str | None]:
    try:
        if is_remote(path):
            return path, *describe_remote(path)
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the path.") from error
    return os.path.abspath(path), status.st_size, str(status.st_mtime_ns)


def open_scan(
    path: str, format: Format, columns: Collection[str] | None, parts: range | None = None
) -> tuple[Iterator[pa.Table], list[str]]:
    """Return tables of the rows of a file, or of some parts of it, in order, and the names of all of its columns."""
    assert format.codec.scan is not None
    try:
        tables, names = format.codec.scan(path, columns, *([] if parts is None else [parts]))
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
    """Return the number of rows of a file; an estimate, unless the format tells."""
    if format.codec.count_rows is not None:
        return format.codec.count_rows(path)
    _, size, _ = _describe_file(path)
    return int(size * _count_lines(path) if format.text else size / BYTES_PER_ROW) + 1


def _count_lines(path: str) -> float:
    """Return the number of lines for each byte of a file, as it is at its beginning, before or after compression."""
    with open_raw(path, "rb") as stream:
        head = bytes(stream.read(HEAD_OF_TEXT))
    text, n_read = head, len(head)
    if is_gzip(head):
        unpack = zlib.decompressobj(zlib.MAX_WBITS + 16)
        with suppress(zlib.error):  # whoever reads it says what is wrong
            text = unpack.decompress(head, MOST_TEXT)
            # What follows the first of several parts, or would be more text than enough, was not used.
            n_read -= len(unpack.unused_data) + len(unpack.unconsumed_tail)
    return max(text.count(b"\n"), 1) / max(n_read, 1)
