"""Formats of tables: CSV and TSV, which are text, and Parquet and Arrow, which hold types.

In text only the empty field is missing, and a column becomes integers only if that loses nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import decode_categories, is_text
from ..errors import InputError, plural, shorten
from ..kinds.tag_tables import SIGN, join_sets
from ..memory import format_bytes, require_memory
from . import Codec, files

if TYPE_CHECKING:
    from pyarrow import parquet
    from pyarrow.csv import InvalidRow

    _Handler: TypeAlias = Callable[[InvalidRow], Literal["error"]]

# Columns that hold sets of tags.
_SETS = ("labels", "gold")
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

        chosen = {*self.chosen, self.names[-1]}
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
                include_columns=[name for name in self.names if name in chosen],
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
        except pa.ArrowInvalid as error:
            if faulty:
                row, place = faulty[0], self.place(faulty[0].number - 2)
                raise InputError(
                    f"{place}: expected {plural(row.expected_columns, 'column')} as in the header, found "
                    f"{row.actual_columns}: {shorten(row.text)}.",
                    "Quote fields that hold a separator or quotes.",
                    "If lines above the names of columns are a title, remove them.",
                ) from None
            if "straddl" in str(error):
                raise InputError(
                    f"{files.quote_path(self.path)} has a row longer than {format_bytes(files.LONGEST_ROW)}.",
                    "Give one answer per row, and close every quote that is opened.",
                ) from None
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
        for number, table in enumerate(map(_join_lists, tables)):
            header = pa.table({str(i): [name] for i, name in enumerate(table.column_names)})
            for batch in (*(() if number else header.to_batches()), *table.to_batches(files.ROWS_PER_WRITE)):
                fields = [_quote(column, delimiter, alone=table.num_columns == 1) for column in batch.columns]
                lines = pc.binary_join_element_wise(*fields, pa.scalar(delimiter, pa.large_string()))
                sink.write(("\n".join(lines.to_pylist()) + "\n").encode())


def _join_lists(table: pa.Table) -> pa.Table:
    """Return a table in which lists are text: sets of tags with a separator."""
    for at, field in enumerate(table.schema):
        marked = (field.metadata or {}).get(SIGN.encode())
        if pa.types.is_list(field.type) and (marked is not None or field.name in _SETS):
            sign = ";" if marked is None else marked.decode()
            lists = table.column(at).to_pylist()
            texts = join_sets([each or () for each in lists], sign)
            missing = pa.array([each is None for each in lists])
            table = table.set_column(at, field.name, pc.if_else(missing, None, texts))
    return table


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


# Of Parquet files, so many bytes of rows are held at a time, or ROWS_AT_ONCE.
BYTES_AT_ONCE = 1 << 27
_PARQUET_MARK = b"PAR1"
_ARROW_MARK = b"ARROW1"
_STREAM_MARK = b"\xff\xff\xff\xff"  # no text begins with it


def _read_parquet(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    from pyarrow import parquet

    with files.open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
        schema = file.schema_arrow  # which is made anew each time
        names = schema.names
        chosen = files.choose_columns(path, names, wanted)
        # A small file may say in a few bytes that a value is repeated a million million times.
        n_rows, row = file.metadata.num_rows, sum(_least_width(schema.field(name).type) for name in chosen)
        require_memory(n_rows * row, f"{path!r} has {plural(n_rows, 'row')}", "Read it in several parts.")
        # The reader takes the name `a.b` for the column and for a field of a column `a`.
        return file.read(columns=chosen).select(chosen), names


def _scan_parquet(
    path: str, wanted: Collection[str] | None, groups: range | None = None
) -> tuple[Iterator[pa.Table], list[str]]:
    from pyarrow import parquet

    with files.open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
        names = file.schema_arrow.names
    chosen = files.choose_columns(path, names, wanted)

    def batches() -> Iterator[pa.Table]:
        with files.open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
            read = list(range(file.num_row_groups) if groups is None else groups)
            for batch in file.iter_batches(_rows_at_once(file.metadata, read, chosen), read, columns=chosen):
                yield pa.table(batch).select(chosen)

    return batches(), names


def _rows_at_once(metadata: parquet.FileMetaData, groups: Iterable[int], columns: Collection[str]) -> int:
    """Return how many rows of a Parquet file to hold at a time: fewer where they are long."""
    found = [metadata.row_group(group) for group in groups]
    n_rows = sum(group.num_rows for group in found)
    each = [group.column(place) for group in found for place in range(group.num_columns)]
    n_bytes = sum(column.total_uncompressed_size for column in each if column.path_in_schema in columns)
    return int(min(files.ROWS_AT_ONCE, max(1, n_rows * BYTES_AT_ONCE // max(n_bytes, 1))))


def _read_sizes(path: str) -> list[int]:
    """Return the number of rows of each row group."""
    from pyarrow import parquet

    with files.open_raw(path, "rb") as stream:
        metadata = parquet.read_metadata(stream)
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def _cut_parquet(path: str, n_rows: int) -> list[tuple[int, range]]:
    """Return runs of row groups with about so many rows."""
    runs, first, row, size = [], 0, 0, 0
    sizes = _read_sizes(path)
    for group, more in enumerate(sizes):
        if size and size + more > n_rows:
            runs.append((row, range(first, group)))
            first, row, size = group, row + size, 0
        size += more
    return [*runs, (row, range(first, len(sizes)))]


def _least_width(kind: pa.DataType) -> int:
    """Return how many bytes a value of some type takes in memory at least."""
    if is_text(kind):
        return 4  # where it begins
    return kind.bit_width // 8 if pa.types.is_primitive(kind) else 0


def _read_arrow(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    with _open_arrow(path) as reader:
        names = reader.schema.names
        return reader.read_all().select(files.choose_columns(path, names, wanted)), names


@contextmanager
def _open_arrow(path: str) -> Iterator[Any]:
    """Open a file or a stream of Arrow's."""
    with files.open_raw(path, "rb") as file:
        is_file = file.read(len(_ARROW_MARK)) == _ARROW_MARK
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            yield reader


def _scan_arrow(path: str, wanted: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    with _open_arrow(path) as reader:
        names = reader.schema.names
    chosen = files.choose_columns(path, names, wanted)

    def batches() -> Iterator[pa.Table]:
        with _open_arrow(path) as reader:
            in_file = hasattr(reader, "get_batch")
            for batch in map(reader.get_batch, range(reader.num_record_batches)) if in_file else reader:
                yield pa.table(batch).select(chosen)

    return batches(), names


def _write_parquet(tables: Iterable[pa.Table], path: str) -> None:
    from pyarrow import parquet

    def open_writer(sink: Any, schema: pa.Schema) -> Any:
        # Probabilities are hardly ever the same, and a dictionary of them only takes time.
        repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
        return parquet.ParquetWriter(sink, schema, compression="zstd", use_dictionary=repeated)

    _write_all(tables, path, open_writer)


def _write_arrow(tables: Iterable[pa.Table], path: str) -> None:
    _write_all(tables, path, pa.ipc.new_file)


def _write_all(tables: Iterable[pa.Table], path: str, open_writer: Callable[[Any, pa.Schema], Any]) -> None:
    """Write tables of one schema, of which there is at least one."""
    others = iter(tables)
    first = next(others)
    with files.open_raw(path, "wb") as sink, open_writer(sink, first.schema) as writer:
        for table in chain([first], others):
            writer.write_table(table)


def _recognise_parquet(head: bytes, path: str) -> bool:
    return head.startswith(_PARQUET_MARK) and _ends_with(path, _PARQUET_MARK)


def _recognise_arrow(head: bytes, path: str) -> bool:
    return head.startswith(_STREAM_MARK) or (head.startswith(_ARROW_MARK) and _ends_with(path, _ARROW_MARK))


def _ends_with(path: str, mark: bytes) -> bool:
    with files.open_raw(path, "rb") as file:
        file.seek(max(file.size() - len(mark), 0))
        return bool(file.read(len(mark)) == mark)


PARQUET = Codec(
    read=_read_parquet,
    scan=_scan_parquet,
    cut=_cut_parquet,
    count_rows=lambda path: sum(_read_sizes(path)),
    write=_write_parquet,
    recognise=_recognise_parquet,
)
ARROW = Codec(read=_read_arrow, scan=_scan_arrow, write=_write_arrow, recognise=_recognise_arrow)
