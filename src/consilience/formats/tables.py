"""Formats of tables: CSV and TSV, which are text, and Parquet and Arrow, which hold types.

In text only the empty field is missing, and a column becomes integers only if that loses nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import decode_categories
from ..answers.tables import check_names
from ..errors import InputError, plural, shorten
from ..kinds.tags import SEPARATOR_KEY, join_sets
from ..limits import format_bytes
from . import Codec, files

if TYPE_CHECKING:
    from pyarrow.csv import InvalidRow

# Columns that hold sets of tags.
_SETS = ("labels", "gold")
# What separates the fields of some files that are called .csv, above all of spreadsheets where commas are decimal.
_OTHERS = ";\t"


def _read_header(usual: str, path: str, errors: str = "replace") -> tuple[str, list[str]]:
    """What separates the fields of a file (what is usual, unless only another sign is in the header), and its names."""
    with closing(files.read_text(path, errors)) as lines:
        filled = (line for line in lines if line.strip())
        header = next(filled, "")
        sign = usual if usual in header else next((sign for sign in _OTHERS if sign in header), usual)
        return sign, next(csv.reader(chain([header], filled), delimiter=sign), [])


def _read(usual: str, path: str, wanted: Collection[str] | None) -> pa.RecordBatchReader:
    """Every column is text, and only the empty field is missing."""
    delimiter, names = _read_header(usual, path, errors="strict")
    check_names(names, files.quote_path(path))
    schema = pa.schema([(name, pa.string()) for name in names if wanted is None or name in wanted])
    return pa.RecordBatchReader.from_batches(schema, _parse(delimiter, path, names, schema.names))


def _parse(delimiter: str, path: str, names: list[str], chosen: list[str]) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv as arrow_csv

    faulty: list[InvalidRow] = []

    def note(row: InvalidRow) -> Literal["error"]:
        faulty.append(row)
        return "error"

    def place(row: int) -> str:
        return files.place_of_row(path, row, partial(_find_lines, delimiter))

    n_rows, last = 0, ""
    try:
        with files.open_input(path) as stream:
            for batch in arrow_csv.open_csv(
                stream,
                # Only one thread knows the number of a faulty row.
                read_options=arrow_csv.ReadOptions(block_size=files.BLOCK, use_threads=False),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    # The last column shows whether a quote was left open.
                    include_columns=[name for name in names if name in chosen or name == names[-1]],
                ),
            ):
                if len(batch):
                    n_rows, last = n_rows + len(batch), batch.column(names[-1])[-1].as_py() or ""
                    yield batch.select(chosen)
    except pa.ArrowInvalid as error:
        if faulty:
            row = faulty[0]
            raise InputError(
                f"{place(row.number - 2)}: expected {plural(row.expected_columns, 'column')} as in the header, "
                f"found {row.actual_columns}: {shorten(row.text)}.",
                "Quote fields that hold a separator or quotes.",
                "If lines above the names of columns are a title, remove them.",
            ) from None
        if "straddl" in str(error):
            raise InputError(
                f"{files.quote_path(path)} has a row longer than {format_bytes(files.BLOCK)}.",
                "Give one answer per row, and close every quote that is opened.",
            ) from None
        if next(_find_lines(delimiter, path), None) is not None:
            raise
    if "\n" in last:  # a quote was left open unless the file ends in one
        tail = b""
        with files.open_input(path) as stream:
            while block := stream.read(files.BLOCK):
                tail = tail[-4:] + block
        if not tail.rstrip(b"\r\n").endswith(b'"'):
            raise InputError(
                f"{place(n_rows - 1)}: a quote is opened and never closed.",
                'Close it, or double a quote that is part of the text and quote the field ("5"" disk").',
            )


def _find_lines(usual: str, path: str) -> Iterator[int]:
    """Yield the number of the line on which each row starts. Blank lines hold no row, nor does the header."""
    with closing(files.read_text(path, errors="replace")) as lines:
        reader = csv.reader(lines, delimiter=_read_header(usual, path)[0])
        header, start = True, 1
        for record in reader:
            if record and not header:
                yield start
            header &= not record
            start = reader.line_num + 1


def _write(delimiter: str, tables: Iterable[pa.Table], path: str) -> None:
    """Write the names in the first line, then the rows, with quotes only where they are needed."""
    wide = pa.large_string()
    mark, nothing = pa.scalar('"', wide), pa.scalar("", wide)
    with files.open_output(path) as sink:
        for number, table in enumerate(tables):
            # Readers skip an empty line, so a missing value in an only column has to be quoted.
            special = f'["\r\n{delimiter}]{"|^$" if table.num_columns == 1 else ""}'
            if any(map(pa.types.is_list, table.schema.types)):
                table = _join_lists(table)
            header = pa.table({str(i): [name] for i, name in enumerate(table.column_names)})
            for batch in (*(() if number else header.to_batches()), *table.to_batches(files.ROWS_PER_WRITE)):
                fields = []
                for column in batch.columns:
                    # With 64-bit offsets, since the lines of one batch may exceed 2 GB. What needs quotes has them;
                    # pyarrow's own writer quotes all text.
                    text: Any = pc.fill_null(pc.cast(decode_categories(column), wide), "")
                    quoted: Any = pc.binary_join_element_wise(
                        mark, pc.replace_substring(text, '"', '""'), mark, nothing
                    )
                    fields.append(pc.if_else(pc.match_substring_regex(text, special), quoted, text))
                lines = pc.binary_join_element_wise(*fields, pa.scalar(delimiter, wide))
                sink.write(("\n".join(lines.to_pylist()) + "\n").encode())


def _join_lists(table: pa.Table) -> pa.Table:
    """Return a table in which lists are text: sets of tags with a separator."""
    for at, field in enumerate(table.schema):
        marked = (field.metadata or {}).get(SEPARATOR_KEY.encode())
        if pa.types.is_list(field.type) and (marked is not None or field.name in _SETS):
            sign = ";" if marked is None else marked.decode()
            lists = table.column(at).to_pylist()
            texts = join_sets([each or () for each in lists], sign)
            missing = pa.array([each is None for each in lists])
            table = table.set_column(at, field.name, pc.if_else(missing, None, texts))
    return table


def _codec(delimiter: str) -> Codec:
    return Codec(
        read=partial(_read, delimiter),
        write=partial(_write, delimiter),
        find_lines=partial(_find_lines, delimiter),
        all_text=True,
    )


CSV = _codec(",")
TSV = _codec("\t")


# ------------------------------------------------------------------------------------------------- Parquet and Arrow


def _read_parquet(path: str, wanted: Collection[str] | None) -> pa.RecordBatchReader:
    from pyarrow import parquet

    file = parquet.ParquetFile(files.open_raw(path, "rb"))
    schema = file.schema_arrow
    check_names(schema.names, files.quote_path(path))
    names = [name for name in schema.names if wanted is None or name in wanted]
    # The reader takes the name `a.b` for the column and for a field of a column `a`.
    batches = (batch.select(names) for batch in file.iter_batches(columns=names))
    return pa.RecordBatchReader.from_batches(pa.schema([schema.field(name) for name in names]), batches)


def _read_arrow(path: str, wanted: Collection[str] | None) -> pa.RecordBatchReader:
    """Read a file or a stream of Arrow's."""
    file = files.open_raw(path, "rb")
    is_file = file.read(len(b"ARROW1")) == b"ARROW1"
    file.seek(0)
    reader: Any = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
    check_names(reader.schema.names, files.quote_path(path))
    names = [name for name in reader.schema.names if wanted is None or name in wanted]
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    schema = pa.schema([reader.schema.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(names) for batch in batches))


def _write_parquet(tables: Iterable[pa.Table], path: str) -> None:
    from pyarrow import parquet

    def open_writer(sink: Any, schema: pa.Schema) -> Any:
        # Probabilities are hardly ever the same: to look for equal ones, or to compress them, saves little room.
        numbers = [field.name for field in schema if pa.types.is_floating(field.type)]
        repeated = [name for name in schema.names if name not in numbers]
        codecs = dict.fromkeys(repeated, "zstd") | dict.fromkeys(numbers, "none")
        return parquet.ParquetWriter(sink, schema, compression=codecs, use_dictionary=repeated)

    _write_arrow(tables, path, open_writer)


def _write_arrow(
    tables: Iterable[pa.Table], path: str, open_writer: Callable[[Any, pa.Schema], Any] = pa.ipc.new_file
) -> None:
    """Write tables of one schema, of which there is at least one."""
    others = iter(tables)
    first = next(others)
    with files.open_raw(path, "wb") as sink, open_writer(sink, first.schema) as writer:
        for table in chain([first], others):
            writer.write_table(table)


# What they begin with says what they are; see the register.
PARQUET = Codec(read=_read_parquet, write=_write_parquet, recognise=lambda _head, _path: True)
ARROW = Codec(read=_read_arrow, write=_write_arrow, recognise=lambda _head, _path: True)
