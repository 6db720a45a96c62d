"""CSV and TSV. Only the empty field is missing, and a column becomes integers only if that loses nothing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import decode_categories
from ..errors import InputError, plural, shorten
from . import files
from .register import Codec

if TYPE_CHECKING:
    from pyarrow.csv import InvalidRow

    _Handler: TypeAlias = Callable[[InvalidRow], Literal["error"]]

# What separates the fields of some files that are called .csv, above all of spreadsheets where commas are decimal.
_OTHERS = ";\t"


def _find_delimiter(usual: str, path: str) -> str:
    """Return what separates the fields of a file: what is usual, unless only another sign is in the header."""
    with closing(files.read_text(path, errors="replace")) as lines:
        header = next((line for line in lines if line.strip()), "")
    return usual if usual in header else next((sign for sign in _OTHERS if sign in header), usual)


@dataclass(frozen=True)
class _Layout:
    """The columns of a file: all of them, those that are read, and what separates them."""

    path: str
    delimiter: str
    names: list[str]
    chosen: list[str]

    @classmethod
    def find(cls, usual: str, path: str, wanted: Collection[str] | None) -> _Layout:
        delimiter = _find_delimiter(usual, path)
        with closing(files.read_text(path, errors="strict")) as lines:
            names = next(filter(None, csv.reader(lines, delimiter=delimiter)), [])
        return cls(path, delimiter, names, files.choose_columns(path, names, wanted))

    def options(self, block_size: int, on_faulty_row: _Handler | None = None) -> dict[str, Any]:
        """Return what Arrow's reader is told: every column is text, and only the empty field is missing.

        The last column is read too, which shows whether a quote was left open. A reading that is to know the number of
        a faulty row is that of one thread.
        """
        from pyarrow import csv as arrow_csv

        return {
            "read_options": arrow_csv.ReadOptions(block_size=block_size, use_threads=on_faulty_row is None),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=on_faulty_row
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in self.names},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                include_columns=[name for name in self.names if name in self.chosen or name == self.names[-1]],
            ),
        }

    def parse(self) -> pa.Table:
        """Return the chosen columns and the last one, all as text."""
        from pyarrow import csv as arrow_csv

        try:
            with files.open_input(self.path) as stream:
                return arrow_csv.read_csv(stream, **self.options(files.BLOCK))
        except pa.ArrowInvalid:
            return self._parse_slowly()

    def _parse_slowly(self) -> pa.Table:
        """Take long rows, or raise the error that names the faulty one."""
        from pyarrow import csv as arrow_csv

        faulty: list[InvalidRow] = []

        def note(row: InvalidRow) -> Literal["error"]:
            faulty.append(row)
            return "error"

        try:
            with files.open_input(self.path) as stream:
                return arrow_csv.read_csv(stream, **self.options(files.LONGEST_ROW, note))
        except pa.ArrowInvalid:
            if faulty:
                row, place = faulty[0], self.place(faulty[0].number - 2)
                raise InputError(
                    f"{place}: expected {plural(row.expected_columns, 'column')} as in the header, found "
                    f"{row.actual_columns}: {shorten(row.text)}.",
                    "Quote fields that hold a separator or quotes.",
                    "If lines above the names of columns are a title, remove them.",
                ) from None
            line = files.find_long_row(self.path)
            if line is not None:
                raise files.long_row_error(self.path, line) from None
            if next(_find_lines(self.delimiter, self.path), None) is not None:
                raise
            return pa.table({name: pa.array([], pa.string()) for name in self.names})

    def place(self, row: int) -> str:
        """Return the place of a row, for a message."""
        return files.place_of_row(self.path, row, partial(_find_lines, self.delimiter))


def _read(usual: str, path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    layout = _Layout.find(usual, path, wanted)
    names, chosen = layout.names, layout.chosen
    if not chosen:
        return pa.table({}), names
    table = layout.parse()
    if table.num_rows and "\n" in (table.column(names[-1])[-1].as_py() or "") and not _ends_in_quote(path):
        raise InputError(
            f"{layout.place(table.num_rows - 1)}: a quote is opened and never closed.",
            'Close it, or double a quote that is part of the text and quote the field ("5"" disk").',
        )
    return pa.table({name: files.read_integers(table.column(name)) for name in chosen}), names


def _scan(usual: str, path: str, wanted: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    from pyarrow import csv as arrow_csv

    layout = _Layout.find(usual, path, wanted)

    def batches() -> Iterator[pa.Table]:
        last = None
        with files.open_input(path) as stream:
            for batch in arrow_csv.open_csv(stream, **layout.options(files.TEXT_AT_ONCE)):
                last = batch.column(layout.names[-1])[-1].as_py() if batch.num_rows else last
                yield pa.table(batch).select(layout.chosen)
        if "\n" in (last or "") and not _ends_in_quote(path):
            raise InputError(f"{path!r}: a quote is opened and never closed.", "Close it.")

    return batches(), layout.names


def _find_lines(usual: str, path: str) -> Iterator[int]:
    """Yield the number of the line on which each row starts. Blank lines hold no row, nor does the header."""
    delimiter = _find_delimiter(usual, path)
    with closing(files.read_text(path, errors="replace")) as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        header, start = True, 1
        for record in reader:
            if record and not header:
                yield start
            header &= not record
            start = reader.line_num + 1


def _ends_in_quote(path: str) -> bool:
    tail = b""
    with files.open_input(path) as stream:
        while block := stream.read(files.BLOCK):
            tail = tail[-4:] + block
    return tail.rstrip(b"\r\n").endswith(b'"')


def _write(delimiter: str, tables: Iterable[pa.Table], path: str) -> None:
    """Write the names in the first line, then the rows, with quotes only where they are needed."""
    with files.open_output(path) as sink:
        for number, table in enumerate(tables):
            header = pa.table({str(i): [name] for i, name in enumerate(table.column_names)})
            for batch in (*(() if number else header.to_batches()), *table.to_batches(files.ROWS_PER_WRITE)):
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
