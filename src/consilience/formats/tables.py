"""Formats of tables: CSV and TSV, which are text, and Parquet and Arrow, which hold types.

In text only the empty field is missing, and a column becomes integers only if that loses nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import decode_categories, is_text
from ..errors import InputError, plural, shorten
from ..kinds.tag_tables import SIGN, join_sets
from ..limits import format_bytes, require_memory
from . import Codec, files

if TYPE_CHECKING:
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


def _read(usual: str, path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    """Every column is text, which is read as codes of the distinct values, and only the empty field is missing."""
    from pyarrow import csv as arrow_csv

    delimiter = _find_delimiter(usual, path)
    with closing(files.read_text(path, errors="strict")) as lines:
        names = next(filter(None, csv.reader(lines, delimiter=delimiter)), [])
    chosen = files.choose_columns(path, names, wanted)
    if not chosen:
        return pa.table({}), names
    faulty: list[InvalidRow] = []

    def note(row: InvalidRow) -> Literal["error"]:
        faulty.append(row)
        return "error"

    def parse(block_size: int, on_faulty_row: _Handler | None = None) -> pa.Table:
        with files.open_input(path) as stream:
            return arrow_csv.read_csv(
                stream,
                # Only one thread knows the number of a faulty row.
                read_options=arrow_csv.ReadOptions(block_size=block_size, use_threads=on_faulty_row is None),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_faulty_row
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string())),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    # The last column shows whether a quote was left open.
                    include_columns=[name for name in names if name in chosen or name == names[-1]],
                ),
            )

    def place(row: int) -> str:
        return files.place_of_row(path, row, partial(_find_lines, delimiter))

    try:
        table = parse(files.BLOCK)
    except pa.ArrowInvalid:
        try:  # with long rows, or to find the faulty one
            table = parse(files.LONGEST_ROW, note)
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
                    f"{files.quote_path(path)} has a row longer than {format_bytes(files.LONGEST_ROW)}.",
                    "Give one answer per row, and close every quote that is opened.",
                ) from None
            if next(_find_lines(delimiter, path), None) is not None:
                raise
            return pa.table({name: pa.array([], pa.string()) for name in chosen}), names
    if table.num_rows and "\n" in (table.column(names[-1])[-1].as_py() or "") and not _ends_in_quote(path):
        raise InputError(
            f"{place(table.num_rows - 1)}: a quote is opened and never closed.",
            'Close it, or double a quote that is part of the text and quote the field ("5"" disk").',
        )
    return table.select(chosen), names


def _stream(usual: str, path: str, wanted: Collection[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield every column as text; what is wrong with a file is said by `_read`."""
    from pyarrow import csv as arrow_csv

    delimiter = _find_delimiter(usual, path)
    with closing(files.read_text(path, errors="strict")) as lines:
        names = next(filter(None, csv.reader(lines, delimiter=delimiter)), [])
    try:
        with files.open_input(path) as stream:
            yield from arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(block_size=files.BLOCK),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    include_columns=files.choose_columns(path, names, wanted),
                ),
            )
    except pa.ArrowInvalid:
        _read(usual, path, wanted)
        raise


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
        stream=partial(_stream, delimiter),
        write=partial(_write, delimiter),
        find_lines=partial(_find_lines, delimiter),
        all_text=True,
    )


CSV = _codec(",")
TSV = _codec("\t")


_PARQUET_MARK = b"PAR1"
_ARROW_MARK = b"ARROW1"
_STREAM_MARK = b"\xff\xff\xff\xff"  # no text begins with it


def _read_parquet(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    from pyarrow import parquet

    with files.open_raw(path, "rb") as stream:
        file = parquet.ParquetFile(stream)
        schema, n_rows = file.schema_arrow, file.metadata.num_rows  # a schema is made anew each time
        chosen = files.choose_columns(path, schema.names, wanted)
        # A small file may say in a few bytes that a value is repeated a million million times.
        row = sum(_least_width(schema.field(name).type) for name in chosen)
        require_memory(n_rows * row, f"{path!r} has {plural(n_rows, 'row')}", "Read it in several parts.")
        text = [name for name in chosen if is_text(schema.field(name).type)] if n_rows >= files.MANY_ROWS else []
        file = parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=text)
        # The reader takes the name `a.b` for the column and for a field of a column `a`.
        table = file.read(columns=chosen).select(chosen)
        fields = [each.with_metadata(files.CODES) if each.name in text else each for each in table.schema]
        return table.cast(pa.schema(fields)), schema.names


def _stream_parquet(path: str, wanted: Collection[str] | None) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    with files.open_raw(path, "rb") as stream:
        file = parquet.ParquetFile(stream)
        yield from file.iter_batches(columns=files.choose_columns(path, file.schema_arrow.names, wanted))


def _least_width(kind: pa.DataType) -> int:
    """Return how many bytes a value of some type takes in memory at least."""
    if is_text(kind):
        return 4  # where it begins
    return kind.bit_width // 8 if pa.types.is_primitive(kind) else 0


def _read_arrow(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    """Read a file or a stream of Arrow's."""
    with files.open_raw(path, "rb") as file:
        is_file = file.read(len(_ARROW_MARK)) == _ARROW_MARK
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            names = reader.schema.names
            return reader.read_all().select(files.choose_columns(path, names, wanted)), names


def _stream_arrow(path: str, wanted: Collection[str] | None) -> Iterator[pa.RecordBatch]:
    with files.open_raw(path, "rb") as file:
        is_file = file.read(len(_ARROW_MARK)) == _ARROW_MARK
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            names = files.choose_columns(path, reader.schema.names, wanted)
            yield from (batch.select(names) for batch in batches)


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


PARQUET = Codec(read=_read_parquet, stream=_stream_parquet, write=_write_parquet, recognise=_recognise_parquet)
ARROW = Codec(read=_read_arrow, stream=_stream_arrow, write=_write_arrow, recognise=_recognise_arrow)
