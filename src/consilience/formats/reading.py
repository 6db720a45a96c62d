"""Tables read from files, globs and folders: as a whole, or some rows at a time where they are larger than memory.

Text comes back exactly as it went in. In CSV and TSV only the empty field is missing, and a column becomes integers
only if that loses nothing (``007`` and ``1.50`` stay text). Every error is an `InputError` that names the file.
"""

from __future__ import annotations

import csv
import difflib
import glob
import os
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from ..answers.columns import is_text, share_categories
from ..answers.tables import Table, open_arrow
from ..arguments import to_path
from ..errors import InputError, Sentence, first_line, listing
from . import Format, LineFinder, list_suffixes, readable_formats
from .annotation_tools import QUESTION, say_spans
from .brat import is_brat
from .files import (
    STANDARD_INPUT,
    PathLike,
    check_encoding,
    describe_remote,
    find_format,
    is_gzip,
    is_remote,
    list_remote,
    name_of,
    nested_error,
    open_raw,
    place_of_row,
    quote_path,
)

# Folders that hold such files may be meant as masks.
_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error)


@dataclass(frozen=True)
class Source:
    """A table read from files, which remembers where each row came from.

    Attributes
    ----------
    table : pyarrow.Table
        The rows of all files, in reading order.
    files : tuple of (str, int)
        Path and number of rows of each file, in reading order.
    columns : tuple of str
        All column names of the files, also of columns that were not read.
    find_lines : callable or None
        Yields the number of the line on which each row of a file starts; None where the format has no lines.
    format : str
        The name of the format that the files share.
    """

    table: pa.Table
    files: tuple[tuple[str, int], ...]
    columns: tuple[str, ...] = ()
    find_lines: LineFinder | None = None
    format: str = ""

    def locate(self, row: int) -> str:
        """Return the place of a row of the table, for a message: file and line, or file and row.

        Examples
        --------
        >>> Source(pa.table({"a": [1, 2, 3]}), (("a.parquet", 1), ("b.parquet", 2))).locate(2)
        'b.parquet, row 2'
        """
        left = row
        for path, n_rows in self.files:
            if 0 <= left < n_rows:
                return place_of_row(path, left, self.find_lines)
            left -= n_rows
        raise IndexError(f"There is no row {row} in a table of {self.table.num_rows} rows.")


def read_table(path: PathLike, columns: Collection[str] | None = None, format: str | None = None) -> Source:
    r"""Read a table from one file, the files that match a glob, or the files in a folder.

    Parameters
    ----------
    path : str or path-like
        A file, a glob such as ``"answers/*.csv"``, or a folder (its files in order of name, without hidden ones and
        those that have no suffix of a known format). The format follows from the content where that leaves no doubt,
        else from the suffix. Several files must agree in it and in their columns. "-" is standard input, which may be
        CSV, TSV or JSON lines.
    columns : collection of str, optional
        The columns to read, all by default. Names that do not exist are ignored. Nested values (lists, objects) are
        an error in a column that is named here.
    format : str, optional
        The name of the format, where neither content nor suffix tell.

    Returns
    -------
    Source
        The table and where its rows come from.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "answers.csv")
    ...     _ = path.write_text("item,label\n1,007\n2,NA\n3,\n")
    ...     read_table(path).table.to_pydict()
    {'item': [1, 2, 3], 'label': ['007', 'NA', None]}
    """
    paths, found = find_files(to_path("path", "read_answers", path), format)
    wanted = None if columns is None else frozenset(columns)
    read = [_read_file(file, found, wanted) for file in paths]
    tables = [table for table, _ in read]
    names = read[0][1]
    table = concatenate(paths, tables)
    if not names or (table.num_columns and not table.num_rows):
        content = f"columns {listing(names)} and no rows" if names else "no columns"
        where = quote_path(paths[0]) if len(paths) == 1 else listing(paths)
        raise InputError(f"There is nothing to read in {where}: found {content}.", "Give a file with data.")
    for field in table.schema if wanted is not None else ():
        if pa.types.is_nested(field.type):
            raise nested_error(paths[0], field.name, str(field.type))
    sizes = tuple((file, part.num_rows) for file, part in zip(paths, tables, strict=True))
    return Source(table, sizes, tuple(names), found.codec.find_lines, found.name)


def open_file(path: PathLike, preferred: Mapping[str, str | None] | None = None, format: str | None = None) -> Table:
    """Return a file, glob or folder as a `Table` that knows in which file and line a row is.

    Parameters
    ----------
    path : str or path-like
        As in `read_table`.
    preferred : mapping, optional
        For a role, the column to take if there is one of that name.
    format : str, optional
        As in `read_table`.
    """
    source = read_table(path, format=format)
    target = os.fspath(path)
    table = open_arrow(source.table, name_of(target))
    question = (source.table.schema.metadata or {}).get(QUESTION.encode())
    synonyms = {} if question is None else {question.decode(): "label"}
    origin = target, source.format
    return replace(table, locate=source.locate, preferred=preferred or {}, origin=origin, synonyms=synonyms)


def open_path(source: Any) -> Any:
    """Return a path as the `Table` in the file; anything else as it is."""
    return open_file(source) if isinstance(source, (str, os.PathLike)) else source


def open_paths(source: Any) -> Any:
    """Return each path of a list as the `Table` in the file, and a single path likewise; anything else as it is."""
    return [open_path(each) for each in source] if type(source) in (list, tuple) else open_path(source)


def find_files(path: str, format: str | None = None) -> tuple[list[str], Format]:
    """Return the files that `path` stands for, and the format they share."""
    named = next((each for each in readable_formats() if each.name == format), None)
    supported = list_suffixes(readable_formats())
    if path == STANDARD_INPUT or os.path.isfile(path):
        files = [path]
    else:
        remote = is_remote(path)
        found = list_remote(path) if remote else _list_files(path)
        wanted = tuple(supported if named is None else list_suffixes([named]))
        files = sorted(file for file in found if file.lower().endswith(wanted) and (remote or os.path.isfile(file)))
        if not files:
            if os.path.isdir(path) and is_brat(path):
                say_spans(path, "brat")
            if any(file.lower().endswith(_PICTURES) for file in found):
                raise InputError(
                    f"{path!r} holds pictures, but no folders of masks.",
                    "Put the masks (.png or .npy) of each reader into a folder of their own.",
                )
            others = f"found only {listing(sorted(found))}" if found else "found nothing"
            raise InputError(f"No file to read in {path!r}: {others}.", f"Supported are {' '.join(supported)}.")
    if named is not None:
        return [path] if named.kind == "spans" else files, named
    formats = {find_format(file): file for file in reversed(files)}
    if len(formats) > 1:
        raise InputError(
            f"The files in {path!r} are of {len(formats)} formats, such as {listing(sorted(formats.values()))}.",
            "Choose those of one format with a glob.",
        )
    shared = next(iter(formats))
    if shared is None:
        raise InputError(
            f"{path!r} has no suffix that can be read, nor is its content that of a known format.",
            f"Supported are {' '.join(supported)}.",
        )
    # Readers of tools know by themselves how files belong together.
    return [path] if shared.kind == "spans" else files, shared


def _list_files(path: str) -> list[str]:
    """Return what is in a folder, or matches a glob."""
    try:
        if os.path.isdir(path):
            return [os.path.join(path, name) for name in os.listdir(path) if not name.startswith(".")]
        if any(sign in path for sign in "*?["):
            return glob.glob(path, recursive=True)
        raise _missing_error(path)
    except PermissionError as error:
        raise permission_error(path) from error


def _read_file(path: str, found: Format, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    """Return the wanted columns of one file, and the names of all its columns."""
    read = found.codec.read
    if read is None:
        say_spans(path, found.name)
    try:
        if path == STANDARD_INPUT and not found.text:
            raise InputError("Standard input must be CSV, TSV or JSON lines.", "Give a file.")
        if os.path.isfile(path) and os.path.getsize(path) == 0:
            raise InputError(f"{path!r} is empty (0 bytes).", "Write it again.")
        table, names = read(path, wanted)
        # Parquet, Arrow and JSON are read without a look at the text; what is not UTF-8 would fail much later.
        table.validate(full=True)
    except PermissionError as error:
        raise permission_error(path) from error
    except UNREADABLE as error:
        if found.text:
            check_encoding(path)
        raise unreadable_error(path, error) from error
    return table, names


def concatenate(paths: list[str], tables: list[pa.Table]) -> pa.Table:
    """Return one table of all rows, with columns as in the first, each of one type."""
    names = tables[0].column_names
    for path, table in zip(paths, tables, strict=True):
        here, first = set(table.column_names), set(names)
        for odd, other, missing in ((path, paths[0], first - here), (paths[0], path, here - first)):
            if missing:
                _tell_apart({paths[0]: names, path: table.column_names})
                raise InputError(
                    f"{odd!r} has no column {listing(sorted(missing))}, which {other!r} has.",
                    "Give all files the same columns, or read them one by one.",
                )
    if len(tables) > 1:
        columns = {name: _align_types([table.column(name) for table in tables]) for name in names}
        tables = [pa.table({name: columns[name][i] for name in names}) for i in range(len(tables))]
    schema = tables[0].schema
    for path, table in zip(paths, tables, strict=True):
        try:
            schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise InputError(
                f"{path!r} does not go with {paths[0]!r}: {first_line(error)}.",
                "Give a column the same type in all files.",
            ) from error
    table = pa.concat_tables(tables, promote_options="permissive")
    # Categories may be missing values or lists; a column is made plain when it is used.
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        table = table.unify_dictionaries()
    for i, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table


def _tell_apart(columns: Mapping[str, list[str]]) -> None:
    """Raise an error that says which of two files holds answers and which known labels, if they do."""
    answers, gold = [], []
    for path, names in columns.items():
        table = Table(names, lambda name: pa.array([name]), 0, "", path, str)
        if table.find("worker") is not None and table.find("label") is not None:
            answers.append(path)
        elif table.find("worker") is None and table.find("known label") is not None:
            gold.append(path)
    if len(answers) == 1 and len(gold) == 1:
        raise InputError(
            f"{answers[0]!r} seems to hold answers, and {gold[0]!r} known labels.",
            Sentence("Give known labels with {gold}, and read only the files of answers.", gold=gold[0]),
        )


def _align_types(parts: list[pa.ChunkedArray[Any]]) -> list[pa.ChunkedArray[Any]]:
    """Return the parts of one column with types that Arrow can promote to one."""
    filled = [part for part in parts if not pa.types.is_null(part.type)]
    categorical = [pa.types.is_dictionary(part.type) for part in filled]
    ordered = all(categorical) and share_categories([chunk for part in filled for chunk in part.chunks])
    for i, part in enumerate(parts):
        if pa.types.is_dictionary(part.type):
            # All categories together may be too many for the index type of each file.
            wide = pa.dictionary(pa.int32(), part.type.value_type, part.type.ordered and ordered)
            parts[i] = part.cast(wide if all(categorical) else part.type.value_type)
    if any(is_text(part.type) for part in parts):
        parts = [part.cast(pa.string()) if pa.types.is_integer(part.type) else part for part in parts]
    return parts


def unreadable_error(path: str, error: Exception) -> InputError:
    """Return the error for a file that cannot be read."""
    return InputError(
        f"{quote_path(path)} cannot be read: {first_line(error)}.",
        "It may be damaged, cut off, or of another format than its suffix says: write it again.",
    )


def permission_error(path: str) -> InputError:
    """Return the error for a file that may not be read."""
    return InputError(f"{path!r} cannot be read: permission denied.", "Change its permissions or copy it.")


def _missing_error(path: str) -> InputError:
    folder, name = os.path.split(path)
    if not os.path.isdir(folder or "."):
        return InputError(f"{path!r} does not exist, nor does the folder {folder!r}.", "Check the path.")
    others = [other for other in os.listdir(folder or ".") if other != name]  # a broken link has this very name
    close = difflib.get_close_matches(name, others, cutoff=0.8)
    hint = f"Did you mean {listing(os.path.join(folder, other) for other in close)}?" if close else "Check the path."
    return InputError(f"{path!r} does not exist.", hint)


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
    files, found = find_files(to_path("path", "scan_answers", path), format)
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
