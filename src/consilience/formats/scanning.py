"""Tables larger than memory, read some rows at a time from files, globs and folders."""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ..arguments import to_path
from ..errors import InputError, first_line, listing
from .files import ROWS_AT_ONCE, PathLike, is_gzip, open_raw, quote_path
from .lines import place_of_row
from .reading import UNREADABLE, find_files, permission_error, unreadable_error
from .register import Format
from .remote import describe_remote, is_remote

# Of Parquet files, so many bytes of rows are held at a time, or ROWS_AT_ONCE.
BYTES_AT_ONCE = 1 << 27
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
    groups : range or None
        The row groups of a Parquet file; None: all rows of the file.
    """

    file: int
    first_row: int = 0
    groups: range | None = None


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

    def stretches(self, n_rows: int) -> list[Stretch]:
        """Return what can be read side by side: parts of Parquet files with about so many rows, or whole files."""
        found = []
        for number, path in enumerate(self.files):
            if self.format.name == "parquet":
                found += cut_parquet(path, number, n_rows)
            else:
                found.append(Stretch(number))
        return found

    def read(self, stretch: Stretch, columns: Collection[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of a row of a file, and a table of the rows from there on."""
        path, row = self.files[stretch.file], stretch.first_row
        if stretch.groups is None:
            tables = open_scan(path, self.format, columns)[0]
        else:
            tables = _explain_errors(read_groups(path, stretch.groups, columns), path)
        for table in tables:
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


def cut_parquet(path: str, number: int, n_rows: int) -> list[Stretch]:
    """Return runs of row groups with about so many rows."""
    from pyarrow import parquet

    with open_raw(path, "rb") as stream:
        metadata = parquet.read_metadata(stream)
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    stretches, first, row, size = [], 0, 0, 0
    for group, more in enumerate(sizes):
        if size and size + more > n_rows:
            stretches.append(Stretch(number, row, range(first, group)))
            first, row, size = group, row + size, 0
        size += more
    return [*stretches, Stretch(number, row, range(first, len(sizes)))]


def read_groups(path: str, groups: range, columns: Collection[str]) -> Iterator[pa.Table]:
    """Yield tables of the rows of some row groups."""
    from pyarrow import parquet

    with open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
        chosen = [name for name in file.schema_arrow.names if name in columns]
        for batch in file.iter_batches(_rows_at_once(file.metadata, groups, chosen), list(groups), columns=chosen):
            yield pa.table(batch).select(chosen)


def _rows_at_once(metadata: Any, groups: range, columns: Collection[str]) -> int:
    """Return how many rows of a Parquet file to hold at a time: fewer where they are long."""
    found = [metadata.row_group(group) for group in groups]
    n_rows = sum(group.num_rows for group in found)
    each = [group.column(place) for group in found for place in range(group.num_columns)]
    n_bytes = sum(column.total_uncompressed_size for column in each if column.path_in_schema in columns)
    return int(min(ROWS_AT_ONCE, max(1, n_rows * BYTES_AT_ONCE // max(n_bytes, 1))))


def count_rows(path: str, format: Format) -> int:
    """Return the number of rows of a file; an estimate, unless it is Parquet."""
    if format.name == "parquet":
        from pyarrow import parquet

        with open_raw(path, "rb") as stream:
            return int(parquet.read_metadata(stream).num_rows)
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
