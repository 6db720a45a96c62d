"""Tables in files: CSV, TSV, JSON lines, Parquet and Arrow, by suffix.

Text comes back exactly as it went in. In CSV and TSV only the empty field is missing, and a column becomes integers
only if that loses nothing (``007`` and ``1.50`` stay text). Every error is an `InputError` that names the file.
"""

from __future__ import annotations

import csv
import difflib
import glob
import io
import itertools
import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from consilience.errors import InputError, listing, shorten

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
_TEXT_FORMATS = ("csv", "tsv", "jsonl")
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_JSON_TYPES: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError, csv.Error)

# Blocks of this size are parsed in parallel; a row longer than one is left to a second reading in blocks of the other.
_BLOCK = 1 << 22
_HUGE_BLOCK = 1 << 30
_ROWS_PER_WRITE = 1 << 14


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
    """

    table: pa.Table
    files: tuple[tuple[str, int], ...]
    columns: tuple[str, ...] = ()

    def locate(self, row: int) -> str:
        """Return the place of a row of the table, for a message: file and line (Parquet, Arrow: file and row).

        Examples
        --------
        >>> Source(pa.table({"a": [1, 2, 3]}), (("a.parquet", 1), ("b.parquet", 2))).locate(2)
        'b.parquet, row 2'
        """
        left = row
        for path, n_rows in self.files:
            if 0 <= left < n_rows:
                return _place(path, left)
            left -= n_rows
        raise IndexError(f"There is no row {row} in a table of {self.table.num_rows} rows.")


def read_table(path: PathLike, columns: Collection[str] | None = None) -> Source:
    r"""Read a table from one file, the files that match a glob, or the files in a folder.

    Parameters
    ----------
    path : str or path-like
        A file, a glob such as ``"answers/*.csv"``, or a folder (its files in order of name, hidden ones and files of
        other kinds skipped). The format follows from the suffix; several files must agree in it and in their columns.
    columns : collection of str, optional
        The columns to read, all by default. Names that do not exist are ignored. Nested values (lists, objects) are
        an error in a column that is named here.

    Returns
    -------
    Source
        The table and where its rows come from.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "answers.csv")
    ...     _ = path.write_text("item,label\n1,007\n2,NA\n3,\n")
    ...     read_table(path).table.to_pydict()
    {'item': [1, 2, 3], 'label': ['007', 'NA', None]}
    """
    paths = _find_files(os.fspath(path))
    wanted = None if columns is None else frozenset(columns)
    read = [_read_file(file, wanted) for file in paths]
    tables = [table for table, _ in read]
    names = read[0][1]
    table = _concatenate(paths, tables)
    if not names or (table.num_columns and not table.num_rows):
        found = f"columns {listing(names)} and no rows" if names else "no columns"
        raise InputError(f"There is nothing to read in {listing(paths)}: found {found}. Give a file with data.")
    for field in table.schema if wanted is not None else ():
        if pa.types.is_nested(field.type):
            raise _nested_error(paths[0], field.name, str(field.type))
    return Source(table, tuple((file, part.num_rows) for file, part in zip(paths, tables, strict=True)), tuple(names))


def write_table(table: pa.Table, path: PathLike) -> None:
    """Write a table to a file, in the format of its suffix; the old file stays until the new one is complete.

    Parameters
    ----------
    table : pyarrow.Table
        Dictionary columns are written as their values in the text formats. There a null is an empty field (CSV, TSV)
        or ``null`` (JSON lines, where a number that is not finite is ``null`` too).
    path : str or path-like
        Where to write.
    """
    target = os.fspath(path)
    check_writable(target)
    with replace_file(target) as temporary:
        try:
            _WRITERS[_FORMATS[_suffix(target)]](table.unify_dictionaries(), os.fspath(temporary))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"The table cannot be written to {target!r}: {_reason(error)}. Write Parquet, or drop the column."
            ) from error


@contextmanager
def replace_file(path: PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place if the block succeeds and vanishes if it fails.

    Parameters
    ----------
    path : str or path-like
        The file to write or overwrite; any suffix, which the temporary path shares.

    Yields
    ------
    pathlib.Path
        Where to write meanwhile.
    """
    check_writable(path, suffixes=None)
    # A link stays a link: the file it points to is replaced.
    target = Path(os.path.realpath(path))
    suffix = _suffix(os.fspath(path)) or Path(path).suffix
    temporary = target.with_name(f".{secrets.token_hex(8)}{suffix}")
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(
            f"{os.fspath(path)!r} cannot be written: {_reason(error)}. Free some space or write elsewhere."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: PathLike, suffixes: Collection[str] | None = SUFFIXES) -> None:
    """Raise the error that writing to `path` would meet, as far as can be told without writing.

    Parameters
    ----------
    path : str or path-like
        Where a file is going to be written.
    suffixes : collection of str, optional
        The suffixes it may have: by default those of `write_table`; None allows any.
    """
    target = os.fspath(path)
    if os.path.isdir(target):
        raise InputError(f"{target!r} is a folder. Give the name of a file to write in it.")
    if suffixes is not None and not target.lower().endswith(tuple(suffixes)):
        raise InputError(f"{target!r} has no suffix that can be written. Use one of {' '.join(suffixes)}.")
    folder = os.path.dirname(os.path.realpath(target))
    if not os.path.isdir(folder):
        raise InputError(f"{target!r} cannot be written: there is no folder {folder!r}. Create it first.")
    for place in (folder, target):
        if os.path.exists(place) and not os.access(place, os.W_OK):
            raise InputError(
                f"{target!r} cannot be written: no permission to write to {place!r}. Change that or write elsewhere."
            )


def _suffix(path: str) -> str:
    """Return the supported suffix of `path`, or the empty string."""
    return next((suffix for suffix in SUFFIXES if path.lower().endswith(suffix)), "")


def _find_files(path: str) -> list[str]:
    """Return the files that `path` stands for."""
    if os.path.isfile(path):
        if not _suffix(path):
            raise InputError(f"{path!r} has no suffix that can be read. Supported are {' '.join(SUFFIXES)}.")
        return [path]
    try:
        if os.path.isdir(path):
            found = [os.path.join(path, name) for name in os.listdir(path) if not name.startswith(".")]
        elif any(sign in path for sign in "*?["):
            found = glob.glob(path, recursive=True)
        else:
            raise _missing_error(path)
    except PermissionError as error:
        raise _permission_error(path) from error
    files = sorted(file for file in found if _suffix(file) and os.path.isfile(file))
    if not files:
        others = f"found only {listing(sorted(found))}" if found else "found nothing"
        raise InputError(f"No file to read in {path!r}: {others}. Supported are {' '.join(SUFFIXES)}.")
    formats = {_FORMATS[_suffix(file)]: file for file in reversed(files)}
    if len(formats) > 1:
        raise InputError(
            f"The files in {path!r} are of {len(formats)} formats, such as {listing(sorted(formats.values()))}. "
            "Choose those of one format with a glob."
        )
    return files


def _read_file(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    """Return the wanted columns of one file, and the names of all its columns."""
    try:
        if os.path.getsize(path) == 0:
            raise InputError(f"{path!r} is empty (0 bytes). Write it again.")
        table, names = _READERS[_FORMATS[_suffix(path)]](path, wanted)
        # Parquet, Arrow and JSON are read without a look at the text; what is not UTF-8 would fail much later.
        table.validate(full=True)
    except PermissionError as error:
        raise _permission_error(path) from error
    except _UNREADABLE as error:
        if _FORMATS[_suffix(path)] in _TEXT_FORMATS:
            _check_encoding(path)
        raise InputError(
            f"{path!r} cannot be read: {_reason(error)}. It may be damaged, cut off, or of another format than its "
            "suffix says; write it again."
        ) from error
    return table, names


def _choose(path: str, names: list[str], wanted: Collection[str] | None) -> list[str]:
    """Return the names to read, after a check that no name occurs twice."""
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(f"{path!r} has several columns named {listing(twice)}. Give each column its own name.")
    return [name for name in names if wanted is None or name in wanted]


def _read_csv(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    from pyarrow import csv as arrow_csv

    delimiter = _DELIMITERS[_FORMATS[_suffix(path)]]
    with _open_text(path, errors="strict") as text:
        names = next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    chosen = _choose(path, names, wanted)
    if not chosen:
        return pa.table({}), names

    def parse(block_size: int, use_threads: bool, handler: Any = None) -> pa.Table:
        with _open_stream(path) as stream:
            return arrow_csv.read_csv(
                stream,
                read_options=arrow_csv.ReadOptions(block_size=block_size, use_threads=use_threads),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=handler
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types={name: pa.string() for name in names},
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    # The last column shows whether a quote was left open.
                    include_columns=[name for name in names if name in chosen or name == names[-1]],
                ),
            )

    faulty: list[Any] = []

    def note(row: Any) -> Literal["error"]:
        faulty.append(row)
        return "error"

    try:
        table = parse(_BLOCK, use_threads=True)
    except pa.ArrowInvalid:
        # Only a reading by one thread knows the number of a faulty row.
        try:
            table = parse(_HUGE_BLOCK, use_threads=False, handler=note)
        except pa.ArrowInvalid:
            if faulty:
                row = faulty[0]
                raise InputError(
                    f"{_place(path, row.number - 2)}: expected {row.expected_columns} columns as in the header, "
                    f"found {row.actual_columns}: {shorten(row.text)}. Quote fields that hold a separator or quotes."
                ) from None
            if len(list(itertools.islice(_record_lines(path), 2))) > 1:
                raise
            table = pa.table({name: pa.array([], pa.string()) for name in names})
    if table.num_rows and "\n" in (table.column(names[-1])[-1].as_py() or "") and not _ends_in_quote(path):
        raise InputError(
            f"{_place(path, table.num_rows - 1)}: a quote is opened and never closed. Close it, or double a quote "
            'that is part of the text and quote the field ("5"" disk").'
        )
    return pa.table({name: _to_integers(table.column(name)) for name in chosen}), names


def _to_integers(texts: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return `texts` as int64 if each is exactly how its integer is written; as null if all are null."""
    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    try:
        numbers = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return texts
    unique = pc.unique(texts)
    return numbers if pc.cast(pc.cast(unique, pa.int64()), pa.string()).equals(unique) else texts


def _read_json(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    from pyarrow import json as arrow_json

    def parse(
        block_size: int, schema: pa.Schema | None = None, unexpected: Literal["infer", "ignore"] = "infer"
    ) -> pa.Table:
        with _open_stream(path) as stream:
            return arrow_json.read_json(
                stream,
                read_options=arrow_json.ReadOptions(block_size=block_size),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
            )

    try:
        table = parse(_BLOCK)
        names = table.column_names
        times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        if times:
            # The reader takes text that looks like a time for one, and would not give back the same text.
            table = parse(_BLOCK, pa.schema([(name, pa.string()) for name in times])).select(names)
    except pa.ArrowInvalid:
        names, schema = _scan_json(path, wanted)
        table = parse(_HUGE_BLOCK, schema, "infer" if wanted is None else "ignore")
    return table.select(_choose(path, names, wanted)), names


def _scan_json(path: str, wanted: Collection[str] | None) -> tuple[list[str], pa.Schema]:
    """Return all names and the schema of the wanted columns, or raise the error that names the faulty line.

    This slow reading follows a failed fast one, which may have failed on a very long line or on a column that
    nobody wants.
    """
    names: dict[str, None] = {}
    kinds: dict[str, type] = {}
    for number, line in _lines(path):
        place = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except UnicodeDecodeError as error:
            raise _encoding_error(place) from error
        except ValueError as error:
            raise InputError(
                f"{place}: not valid JSON ({error}): {shorten(line.decode().strip())}. Correct or remove the line."
            ) from error
        if not isinstance(record, dict):
            raise InputError(f"{place}: expected one JSON object per line, found {shorten(record)}.")
        names.update(dict.fromkeys(record))
        for name, value in record.items():
            kind = type(value)
            known = kinds.setdefault(name, kind)
            if value is None or kind is known or (wanted is not None and name not in wanted):
                continue
            if known is not type(None) and {kind, known} != {int, float}:
                raise InputError(
                    f"{place}: column {name!r} holds {shorten(value)}, and a value of type {known.__name__} before. "
                    "Give all values of a column one type."
                )
            kinds[name] = kind if known is type(None) else float
    chosen = _choose(path, list(names), wanted)
    nested = [name for name in chosen if kinds[name] in (dict, list)]
    if nested and wanted is not None:
        raise _nested_error(path, nested[0], kinds[nested[0]].__name__)
    schema = [(name, _JSON_TYPES.get(kinds[name], pa.string())) for name in chosen if name not in nested]
    return list(names), pa.schema(schema)


def _read_parquet(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        chosen = _choose(path, names, wanted)
        # The reader takes the name `a.b` for the column and for a field of a column `a`.
        return file.read(columns=chosen).select(chosen), names


def _read_arrow(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    with pa.OSFile(path, "rb") as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            names = reader.schema.names
            chosen = _choose(path, names, wanted)
            return reader.read_all().select(chosen), names


def _concatenate(paths: list[str], tables: list[pa.Table]) -> pa.Table:
    """Return one table of all rows, with columns as in the first, each of one type."""
    names = tables[0].column_names
    for path, table in zip(paths, tables, strict=True):
        here, first = set(table.column_names), set(names)
        for odd, other, missing in ((path, paths[0], first - here), (paths[0], path, here - first)):
            if missing:
                raise InputError(
                    f"{odd!r} has no column {listing(sorted(missing))}, which {other!r} has. "
                    "Give all files the same columns, or read them one by one."
                )
    if len(tables) > 1:
        columns = {name: _unify([table.column(name) for table in tables]) for name in names}
        tables = [pa.table({name: columns[name][i] for name in names}) for i in range(len(tables))]
    schema = tables[0].schema
    for path, table in zip(paths, tables, strict=True):
        try:
            schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise InputError(
                f"{path!r} does not go with {paths[0]!r}: {_reason(error)}. Give a column the same type in all files."
            ) from error
    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    for i, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table


def _unify(parts: list[pa.ChunkedArray[Any]]) -> list[pa.ChunkedArray[Any]]:
    """Return the parts of one column, made alike where no promotion of Arrow does so."""
    categorical = [pa.types.is_dictionary(part.type) for part in parts if not pa.types.is_null(part.type)]
    for i, part in enumerate(parts):
        if pa.types.is_dictionary(part.type):
            # All categories together may be too many for the index type of each file.
            wide = pa.dictionary(pa.int32(), part.type.value_type, part.type.ordered)
            parts[i] = part.cast(wide if all(categorical) else part.type.value_type)
    if any(_is_text(part.type) for part in parts):
        parts = [part.cast(pa.string()) if pa.types.is_integer(part.type) else part for part in parts]
    return parts


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _write_csv(table: pa.Table, path: str) -> None:
    delimiter = _DELIMITERS[_FORMATS[_suffix(path)]]
    header = pa.table({str(i): [name] for i, name in enumerate(table.column_names)})
    with pa.output_stream(path, compression=_compression(path)) as sink:
        for batch in (*header.to_batches(), *table.to_batches(_ROWS_PER_WRITE)):
            fields = [_quote(column, delimiter, alone=table.num_columns == 1) for column in batch.columns]
            lines = pc.binary_join_element_wise(*fields, pa.scalar(delimiter, pa.large_string()))
            sink.write(("\n".join(lines.to_pylist()) + "\n").encode())


def _quote(column: Any, delimiter: str, alone: bool) -> Any:
    """Return the fields of one column as text, quoted where needed; pyarrow's own writer quotes all text."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    # Of 64-bit offsets, since the lines of one batch may exceed 2 GB.
    text = pc.fill_null(pc.cast(column, pa.large_string()), "")
    # Readers skip an empty line, so a missing value in an only column has to be seen.
    needed = pc.match_substring_regex(text, f'["\r\n{delimiter}]{"|^$" if alone else ""}')
    mark, nothing = pa.scalar('"', text.type), pa.scalar("", text.type)
    quoted: Any = pc.binary_join_element_wise(mark, pc.replace_substring(text, '"', '""'), mark, nothing)
    return pc.if_else(needed, quoted, text)


def _write_json(table: pa.Table, path: str) -> None:
    for i, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            # JSON has no word for NaN and infinity.
            values = table.column(i)
            table = table.set_column(i, field.name, pc.if_else(pc.is_finite(values), values, None))
    encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
    with pa.output_stream(path, compression=_compression(path)) as sink:
        for batch in table.to_batches(_ROWS_PER_WRITE):
            sink.write("".join(f"{encode(record)}\n" for record in batch.to_pylist()).encode())


def _write_parquet(table: pa.Table, path: str) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path, compression="zstd")


def _write_arrow(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


_READERS = {"csv": _read_csv, "tsv": _read_csv, "jsonl": _read_json, "parquet": _read_parquet, "arrow": _read_arrow}
_WRITERS = {
    "csv": _write_csv,
    "tsv": _write_csv,
    "jsonl": _write_json,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
}


def _compression(path: str) -> Any:
    return "gzip" if path.lower().endswith(".gz") else None


def _open_stream(path: str) -> Any:
    return pa.input_stream(path, compression=_compression(path))


def _open_text(path: str, errors: str) -> io.TextIOWrapper:
    binary = io.BufferedReader(_open_stream(path))
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline="")


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    with io.BufferedReader(_open_stream(path)) as file:
        yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())


def _record_lines(path: str) -> Iterator[int]:
    """Yield the number of the line on which each record starts, the header being a record; blank lines hold none."""
    delimiter = _DELIMITERS.get(_FORMATS[_suffix(path)])
    if delimiter is None:
        yield from (number for number, _ in _lines(path))
        return
    with _open_text(path, errors="replace") as text:
        reader = csv.reader(text, delimiter=delimiter)
        start = 1
        for record in reader:
            if record:
                yield start
            start = reader.line_num + 1


def _place(path: str, row: int) -> str:
    """Return where row `row` (from 0) of a file stands, for a message."""
    format_ = _FORMATS[_suffix(path)]
    if format_ in _TEXT_FORMATS:
        try:
            n_before = row + (format_ in _DELIMITERS)
            return f"{path}, line {next(itertools.islice(_record_lines(path), n_before, None))}"
        except (OSError, csv.Error, StopIteration):
            # The file is gone or changed, or has a field too long for the csv module.
            pass
    return f"{path}, row {row + 1}"


def _ends_in_quote(path: str) -> bool:
    tail = b""
    with _open_stream(path) as stream:
        while block := stream.read(_BLOCK):
            tail = tail[-4:] + block
    return tail.rstrip(b"\r\n").endswith(b'"')


def _check_encoding(path: str) -> None:
    """Raise an error that names the first line which is not UTF-8, if there is one."""
    try:
        for number, line in _lines(path):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise _encoding_error(f"{path}, line {number}") from error
    except OSError:
        # Not even readable: the caller says so.
        return


def _reason(error: Exception) -> str:
    """Return the first line of a message, fit to be continued."""
    return str(error).strip().partition("\n")[0].rstrip(".")


def _encoding_error(place: str) -> InputError:
    return InputError(f"{place}: the text is not UTF-8. Save the file as UTF-8.")


def _nested_error(path: str, name: str, kind: str) -> InputError:
    return InputError(f"Column {name!r} of {path!r} holds nested values ({kind}). Give it plain text or numbers.")


def _permission_error(path: str) -> InputError:
    return InputError(f"{path!r} cannot be read: permission denied. Change its permissions or copy it.")


def _missing_error(path: str) -> InputError:
    folder, name = os.path.split(path)
    if not os.path.isdir(folder or "."):
        return InputError(f"{path!r} does not exist, nor does the folder {folder!r}. Check the path.")
    close = difflib.get_close_matches(name, os.listdir(folder or "."))
    hint = f"Did you mean {listing(os.path.join(folder, other) for other in close)}?" if close else "Check the path."
    return InputError(f"{path!r} does not exist. {hint}")
