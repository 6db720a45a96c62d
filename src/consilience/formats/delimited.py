"""CSV and TSV. Only the empty field is missing, and a column becomes integers only if that loses nothing."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import decode_categories
from ..errors import InputError, plural, shorten
from .files import (
    BLOCK,
    LONGEST_ROW,
    ROWS_PER_WRITE,
    TEXT_AT_ONCE,
    choose_columns,
    find_long_row,
    long_row_error,
    open_input,
    open_output,
    place_of_row,
    read_text,
)
from .register import Codec

# What separates the fields of some files that are called .csv, above all of spreadsheets where commas are decimal.
_OTHERS = ";\t"


def _find_delimiter(usual: str, path: str) -> str:
    """Return what separates the fields of a file: what is usual, unless only another sign is in the header."""
    with closing(read_text(path, errors="replace")) as lines:
        header = next((line for line in lines if line.strip()), "")
    return usual if usual in header else next((sign for sign in _OTHERS if sign in header), usual)


def _read(usual: str, path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    delimiter = _find_delimiter(usual, path)
    with closing(read_text(path, errors="strict")) as lines:
        names = next(filter(None, csv.reader(lines, delimiter=delimiter)), [])
    chosen = choose_columns(path, names, wanted)
    if not chosen:
        return pa.table({}), names
    try:
        table = _parse(delimiter, path, names, chosen, BLOCK, use_threads=True)
    except pa.ArrowInvalid:
        table = _parse_slowly(delimiter, path, names, chosen)
    if table.num_rows and "\n" in (table.column(names[-1])[-1].as_py() or "") and not _ends_in_quote(path):
        raise InputError(
            f"{_place(delimiter, path, table.num_rows - 1)}: a quote is opened and never closed.",
            'Close it, or double a quote that is part of the text and quote the field ("5"" disk").',
        )
    return pa.table({name: read_integers(table.column(name)) for name in chosen}), names


def _parse(
    delimiter: str,
    path: str,
    names: list[str],
    chosen: list[str],
    block_size: int,
    use_threads: bool,
    on_faulty_row: Any = None,
) -> pa.Table:
    """Return the chosen columns and the last one, which shows whether a quote was left open, all as text."""
    from pyarrow import csv as arrow_csv

    with open_input(path) as stream:
        options = _options(delimiter, names, chosen, block_size, use_threads, on_faulty_row)
        return arrow_csv.read_csv(stream, **options)


def _options(
    delimiter: str,
    names: list[str],
    chosen: list[str],
    block_size: int,
    use_threads: bool = True,
    on_faulty_row: Any = None,
) -> dict[str, Any]:
    """Return what Arrow's reader is told: every column is text, and only the empty field is missing."""
    from pyarrow import csv as arrow_csv

    return {
        "read_options": arrow_csv.ReadOptions(block_size=block_size, use_threads=use_threads),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_faulty_row
        ),
        "convert_options": arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            include_columns=[name for name in names if name in chosen or name == names[-1]],
        ),
    }


def _scan(usual: str, path: str, wanted: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    from pyarrow import csv as arrow_csv

    delimiter = _find_delimiter(usual, path)
    with closing(read_text(path, errors="strict")) as lines:
        names = next(filter(None, csv.reader(lines, delimiter=delimiter)), [])
    chosen = choose_columns(path, names, wanted)

    def batches() -> Iterator[pa.Table]:
        last = None
        with open_input(path) as stream:
            for batch in arrow_csv.open_csv(stream, **_options(delimiter, names, chosen, TEXT_AT_ONCE)):
                last = batch.column(names[-1])[-1].as_py() if batch.num_rows else last
                yield pa.table(batch).select(chosen)
        if "\n" in (last or "") and not _ends_in_quote(path):
            raise InputError(f"{path!r}: a quote is opened and never closed.", "Close it.")

    return batches(), names


def _parse_slowly(delimiter: str, path: str, names: list[str], chosen: list[str]) -> pa.Table:
    """Do what `_parse` does after it failed: take long rows, or raise the error that names the faulty one."""
    faulty: list[Any] = []

    def note(row: Any) -> Literal["error"]:
        faulty.append(row)
        return "error"

    try:
        # Only a reading by one thread knows the number of a faulty row.
        return _parse(delimiter, path, names, chosen, LONGEST_ROW, use_threads=False, on_faulty_row=note)
    except pa.ArrowInvalid:
        if faulty:
            row, place = faulty[0], _place(delimiter, path, faulty[0].number - 2)
            raise InputError(
                f"{place}: expected {plural(row.expected_columns, 'column')} as in the header, found "
                f"{row.actual_columns}: {shorten(row.text)}.",
                "Quote fields that hold a separator or quotes.",
                "If lines above the names of columns are a title, remove them.",
            ) from None
        line = find_long_row(path)
        if line is not None:
            raise long_row_error(path, line) from None
        if next(_find_lines(delimiter, path), None) is not None:
            raise
        return pa.table({name: pa.array([], pa.string()) for name in names})


def _find_lines(usual: str, path: str) -> Iterator[int]:
    """Yield the number of the line on which each row starts. Blank lines hold no row, nor does the header."""
    delimiter = _find_delimiter(usual, path)
    with closing(read_text(path, errors="replace")) as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        header, start = True, 1
        for record in reader:
            if record and not header:
                yield start
            header &= not record
            start = reader.line_num + 1


def _place(delimiter: str, path: str, row: int) -> str:
    return place_of_row(path, row, partial(_find_lines, delimiter))


def read_integers(texts: Any) -> Any:
    """Return `texts` as int64 if each is exactly how its integer is written; as null if all are null."""
    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    try:
        numbers = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return texts
    unique = pc.unique(texts)
    # Arrow knows several types of text, and columns of different types are never equal.
    return numbers if pc.cast(pc.cast(unique, pa.int64()), unique.type).equals(unique) else texts


def _ends_in_quote(path: str) -> bool:
    tail = b""
    with open_input(path) as stream:
        while block := stream.read(BLOCK):
            tail = tail[-4:] + block
    return tail.rstrip(b"\r\n").endswith(b'"')


def _write(delimiter: str, tables: Iterable[pa.Table], path: str) -> None:
    """Write the names in the first line, then the rows, with quotes only where they are needed."""
    with open_output(path) as sink:
        for number, table in enumerate(tables):
            header = pa.table({str(i): [name] for i, name in enumerate(table.column_names)})
            for batch in (*(() if number else header.to_batches()), *table.to_batches(ROWS_PER_WRITE)):
                fields = [_quote(column, delimiter, alone=table.num_columns == 1) for column in batch.columns]
                lines = pc.binary_join_element_wise(*fields, pa.scalar(delimiter, pa.large_string()))
                sink.write(("\n".join(lines.to_pylist()) + "\n").encode())


def _quote(column: Any, delimiter: str, alone: bool) -> Any:
    """Return the fields of one column as text, quoted where needed; pyarrow's own writer quotes all text."""
    # With 64-bit offsets, since the lines of one batch may exceed 2 GB.
    text = pc.fill_null(pc.cast(decode_categories(column), pa.large_string()), "")
    # Readers skip an empty line, so a missing value in an only column has to be quoted.
    needed = pc.match_substring_regex(text, f'["\r\n{delimiter}]{"|^$" if alone else ""}')
    mark, nothing = pa.scalar('"', text.type), pa.scalar("", text.type)
    quoted: Any = pc.binary_join_element_wise(mark, pc.replace_substring(text, '"', '""'), mark, nothing)
    return pc.if_else(needed, quoted, text)


def _codec(delimiter: str) -> Codec:
    return Codec(
        read=partial(_read, delimiter),
        write=partial(_write, delimiter),
        find_lines=partial(_find_lines, delimiter),
        scan=partial(_scan, delimiter),
        all_text=True,
    )


CSV = _codec(",")
TSV = _codec("\t")
