"""Tables read from files, globs and folders.

Text comes back exactly as it went in. In CSV and TSV only the empty field is missing, and a column becomes integers
only if that loses nothing (``007`` and ``1.50`` stay text). Every error is an `InputError` that names the file.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import is_text, share_categories, share_of
from ..answers.tables import Table, check_names, open_frame
from ..errors import InputError, first_line, listing
from ..limits import require_memory, side_by_side
from ..options import to_path
from . import Format, LineFinder, find_by_name, list_suffixes, readable_formats
from .files import PathLike, check_encoding, list_inputs, name_of, place_of_row, quote_path, share_format

# Under this key, the metadata of a table has the name of the question whose answers are called "label".
QUESTION = "question"
# Readers of these kinds take all files at a path together.
JOINT_KINDS = ("spans", "answers")
# Of the answers in a log: the columns that say together which item a row is about, and those of several questions.
ITEM, QUESTIONS = "item", "questions"

# Files that others read, by suffix, and how.
_OTHERS = (
    ((".xlsx", ".xls", ".xlsm", ".ods"), "Save the sheet as CSV; in Python, give fuse the table of pandas.read_excel."),
    (
        (".sqlite", ".sqlite3", ".db", ".duckdb"),
        "Export the table as CSV; in Python, give fuse a query, such as pandas.read_sql, a DuckDB relation or an ADBC "
        "reader.",
    ),
)


def say_spans(path: str, tool: str) -> NoReturn:
    """Raise the error for spans where answers were expected."""
    raise InputError(
        f"{path!r} holds spans marked in texts ({tool}), not one answer per item.",
        "Read it with consilience.read_spans, or give it to fuse without names of columns.",
    )


@dataclass(frozen=True)
class TableFile:
    """A table read from files, which remembers where each row came from.

    Attributes
    ----------
    table : pyarrow.Table
        The rows of all files, in reading order.
    files : tuple of (str, int)
        Path and number of rows of each file, in reading order.
    find_lines : callable or None
        Yields the number of the line on which each row of a file starts; None where the format has no lines.
    format : str
        The name of the format that the files share.
    """

    table: pa.Table
    files: tuple[tuple[str, int], ...]
    find_lines: LineFinder | None = None
    format: str = ""

    def locate(self, row: int) -> str:
        """The place of a row of the table, for a message: file and line, or file and row.

        Examples
        --------
        >>> TableFile(pa.table({"a": [1, 2, 3]}), (("a.parquet", 1), ("b.parquet", 2))).locate(2)
        'b.parquet, row 2'
        """
        left = row
        for path, n_rows in self.files:
            if 0 <= left < n_rows:
                return place_of_row(path, left, self.find_lines)
            left -= n_rows
        raise IndexError(f"There is no row {row} in a table of {self.table.num_rows} rows.")


def read_table(path: PathLike, format: str | None = None) -> TableFile:
    r"""Read a table from one file, the files that match a glob, or the files in a folder.

    Parameters
    ----------
    path : str or path-like
        A file, a glob such as ``"answers/*.csv"``, or a folder (its files in order of name, without hidden ones and
        those that have no suffix of a known format). The format follows from the content where that leaves no doubt,
        else from the suffix. Several files must agree in it and in their columns. "-" is standard input, which may be
        CSV, TSV or JSON lines.
    format : str, optional
        The name of the format, where neither content nor suffix tell.

    Returns
    -------
    TableFile
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
    paths, file_format = find_files(to_path("path", "read_answers", path), format)
    tables, n_bytes = [], 0
    for file in paths:
        batches = []
        for batch in stream_rows(file, file_format):
            batches.append(batch)
            # A small file may say in a few bytes that a value is repeated a million million times.
            n_bytes += batch.nbytes
            require_memory(n_bytes, f"{quote_path(file)} is large", "Read it with consilience.scan_answers.")
        tables.append(pa.Table.from_batches(batches))
    table = concatenate(paths, tables, file_format.codec.all_text)
    if not table.num_rows:
        content = f"columns {listing(table.column_names)} and no rows" if table.num_columns else "no columns"
        where = quote_path(paths[0]) if len(paths) == 1 else listing(paths)
        raise InputError(f"There is nothing to read in {where}: found {content}.", "Give a file with data.")
    sizes = tuple((file, part.num_rows) for file, part in zip(paths, tables, strict=True))
    return TableFile(table, sizes, file_format.codec.find_lines, file_format.name)


def open_file(path: PathLike, preferred: Mapping[str, str | None] | None = None, format: str | None = None) -> Table:
    """A file, glob or folder as a `Table` that knows in which file and line a row is.

    Parameters
    ----------
    path : str or path-like
        As in `read_table`.
    preferred : mapping, optional
        For a role, the column to take if there is one of that name.
    format : str, optional
        As in `read_table`.
    """
    opened, target = read_table(path, format), os.fspath(path)
    told = {key.decode(): value.decode() for key, value in (opened.table.schema.metadata or {}).items()}
    table, item = open_frame(opened.table, name_of(target)).combine("item", told.get(ITEM))
    return replace(
        table,
        locate=opened.locate,
        preferred=preferred or ({} if item is None else {"item": item}),
        origin=(target, opened.format),
        synonyms={told[QUESTION]: "label"} if QUESTION in told else {},
        questions=json.loads(told.get(QUESTIONS, "[]")),
    )


def open_path(source: Any) -> Any:
    """A path as the `Table` in the file; anything else as it is."""
    return open_file(source) if isinstance(source, (str, os.PathLike)) else source


def open_paths(source: Any) -> Any:
    """Each path of a list as the `Table` in the file, and a single path likewise; anything else as it is."""
    return [open_path(each) for each in source] if type(source) in (list, tuple) else open_path(source)


def find_files(path: str, format: str | None = None) -> tuple[list[str], Format]:
    """The files that `path` stands for, and the format they share."""
    named = find_by_name(format)
    if named is not None and named.kind in JOINT_KINDS:
        return [path], named  # readers of tools know by themselves how files belong together
    if os.path.isdir(path):
        from .brat import is_brat

        if is_brat(path):
            say_spans(path, "brat")
    if named is not None:
        inputs = list_inputs(path)
        return [file for file in inputs if named.fits(file)] or inputs, named
    inputs, shared = share_format(path)
    if shared is not None:
        return [path] if shared.kind in JOINT_KINDS else inputs, shared
    raise InputError(
        f"{listing(inputs)} has no suffix that can be read, nor is its content that of a known format.",
        next(
            (how for suffixes, how in _OTHERS if inputs[0].lower().endswith(suffixes)),
            f"Supported are {' '.join(list_suffixes(readable_formats()))}.",
        ),
    )


def stream_rows(path: str, file_format: Format, wanted: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one file, a part at a time where its format allows it, with the wanted columns (None: all).

    There is at least one part, which may be empty.
    """
    read = file_format.codec.read
    if read is None:
        say_spans(path, file_format.name)
    try:
        if os.path.isfile(path) and os.path.getsize(path) == 0:
            raise InputError(f"{path!r} is empty (0 bytes).", "Write it again.")
        rows = read(path, wanted)
        if isinstance(rows, pa.Table) and wanted is not None:
            rows = rows.select([name for name in rows.schema.names if name in wanted])
        check_names(rows.schema.names, quote_path(path))
        schema, first = rows.schema, True
        for batch in rows.to_reader() if isinstance(rows, pa.Table) else rows:
            # Parquet, Arrow and JSON are read without a look at the text; what is not UTF-8 would fail much later.
            batch.validate(full=True)
            yield batch
            first = False
        if first:
            yield pa.RecordBatch.from_pylist([], schema)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        if file_format.text:
            check_encoding(path)
        raise InputError(
            f"{quote_path(path)} cannot be read: {first_line(error)}.",
            "It may be damaged, cut off, or of another format than its suffix says: write it again.",
        ) from error


def concatenate(paths: Sequence[str], tables: Sequence[pa.Table], all_text: bool) -> pa.Table:
    """One table of all rows, with columns as in the first, each of one type.

    Whole numbers beside text become text. With `all_text` a column of text becomes whole numbers if all of it is that.
    """
    names = tables[0].column_names
    for path, table in zip(paths, tables, strict=True):
        odd = set(names) ^ set(table.column_names)
        if odd:
            raise InputError(
                f"{path!r} does not go with {paths[0]!r}: only one of them has the column {listing(sorted(odd))}.",
                "Give all files the same columns, or read them one by one, and known labels with gold.",
            )
    columns = {}
    for name in names:
        parts = [table.column(name) for table in tables]
        filled = [part for part in parts if not pa.types.is_null(part.type)]
        categorical = all(pa.types.is_dictionary(part.type) for part in filled)
        is_scale = categorical and share_categories([chunk for part in filled for chunk in part.chunks])
        for i, part in enumerate(parts):
            if pa.types.is_dictionary(part.type):
                # All categories together may be too many for the index type of each file.
                wide = pa.dictionary(pa.int32(), part.type.value_type, part.type.ordered and is_scale)
                parts[i] = part.cast(wide if categorical else part.type.value_type)
        if any(is_text(part.type) for part in parts):
            parts = [part.cast(pa.string()) if pa.types.is_integer(part.type) else part for part in parts]
        try:
            same = pa.concat_tables([pa.table({name: part}) for part in parts], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise InputError(
                f"The files {listing(paths)} do not go together: {first_line(error)}.",
                "Give a column the same type in all files.",
            ) from error
        column = same.column(name)
        if pa.types.is_dictionary(column.type) and not pa.types.is_nested(column.type.value_type):
            column = column.unify_dictionaries()
        column = read_integers(column) if all_text else column
        columns[name] = column.cast(pa.string()) if pa.types.is_null(column.type) else column
    return pa.table(columns, metadata=tables[0].schema.metadata)


def read_integers(texts: Any) -> Any:
    """`texts` as int64 if each is exactly how its integer is written; as null if all are null."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts))
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]

    def read(start: int, stop: int) -> list[pa.Array] | None:
        numbers = []
        for chunk in chunks[start:stop]:
            try:
                numbers.append(pc.cast(chunk, pa.int64()))
            except pa.ArrowInvalid:
                return None
            # Arrow knows several types of text, and columns of different types are never equal.
            if not pc.cast(numbers[-1], chunk.type).equals(chunk):
                return None
        return numbers

    parts = side_by_side(read, len(chunks), share_of(len(chunks), len(texts)))
    if any(part is None for part in parts):
        return texts
    numbers = [chunk for part in parts for chunk in part or ()]
    return pa.chunked_array(numbers, pa.int64()) if isinstance(texts, pa.ChunkedArray) else numbers[0]
