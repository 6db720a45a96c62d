"""Tables read from files, globs and folders.

Text comes back exactly as it went in. In CSV and TSV only the empty field is missing, and a column becomes integers
only if that loses nothing (``007`` and ``1.50`` stay text). Every error is an `InputError` that names the file.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ..answers.columns import is_text, share_categories
from ..answers.tables import Table, open_arrow
from ..arguments import to_path
from ..errors import InputError, Sentence, first_line, listing
from . import Format, LineFinder, find_by_name, list_suffixes, readable_formats
from .annotation_tools import QUESTION, say_spans
from .brat import is_brat
from .files import (
    CODES,
    STANDARD_INPUT,
    PathLike,
    check_encoding,
    list_inputs,
    name_of,
    nested_error,
    permission_error,
    place_of_row,
    quote_path,
    settle_text,
    share_format,
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
    tables, names = [table for table, _ in read], read[0][1]
    table = concatenate(paths, tables, found.codec.all_text)
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
    named = find_by_name(format)
    if named is not None and named.kind == "spans":
        return [path], named  # readers of tools know by themselves how files belong together
    if is_brat(path):
        say_spans(path, "brat")
    inputs = list_inputs(path)
    if named is not None:
        return [file for file in inputs if named.fits(file)] or inputs, named
    shared = share_format(path, inputs)
    if shared is not None:
        return [path] if shared.kind == "spans" else inputs, shared
    if os.path.isdir(path) and any(file.lower().endswith(_PICTURES) for file in inputs):
        raise InputError(
            f"{path!r} holds pictures, but no folders of masks.",
            "Put the masks (.png or .npy) of each reader into a folder of their own.",
        )
    raise InputError(
        f"{listing(inputs)} has no suffix that can be read, nor is its content that of a known format.",
        f"Supported are {' '.join(list_suffixes(readable_formats()))}.",
    )


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


def concatenate(paths: list[str], tables: list[pa.Table], all_text: bool) -> pa.Table:
    """Return one table of all rows, with columns as in the first, each of one type."""
    names = tables[0].column_names
    coded = [{each.name for each in part.schema if all_text or each.metadata == CODES} for part in tables]
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
    for i, name in enumerate(names):
        column = table.column(i)
        if pa.types.is_dictionary(column.type):
            if all(name in each for each in coded):
                column = settle_text(column, all_text)
            else:  # categories may be missing values or lists; a column is made plain when it is used
                with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    column = column.unify_dictionaries()
        if pa.types.is_null(column.type):
            column = column.cast(pa.string())
        table = table.set_column(i, name, column)
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
