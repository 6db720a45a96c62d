"""Parquet and Arrow: the formats that hold types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..answers.columns import is_text
from ..errors import plural
from ..memory import require_memory
from .files import ROWS_AT_ONCE, choose_columns, open_raw
from .register import Codec

if TYPE_CHECKING:
    from pyarrow import parquet

# Of Parquet files, so many bytes of rows are held at a time, or ROWS_AT_ONCE.
BYTES_AT_ONCE = 1 << 27
_PARQUET_MARK = b"PAR1"
_ARROW_MARK = b"ARROW1"
_STREAM_MARK = b"\xff\xff\xff\xff"  # no text begins with it


def _read_parquet(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    from pyarrow import parquet

    with open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
        names = file.schema_arrow.names
        chosen = choose_columns(path, names, wanted)
        # A small file may say in a few bytes that a value is repeated a million million times.
        n_rows, row = file.metadata.num_rows, sum(_least_width(file.schema_arrow.field(name).type) for name in chosen)
        require_memory(n_rows * row, f"{path!r} has {plural(n_rows, 'row')}", "Read it in several parts.")
        # The reader takes the name `a.b` for the column and for a field of a column `a`.
        return file.read(columns=chosen).select(chosen), names


def _scan_parquet(
    path: str, wanted: Collection[str] | None, groups: range | None = None
) -> tuple[Iterator[pa.Table], list[str]]:
    from pyarrow import parquet

    with open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
        names = file.schema_arrow.names
    chosen = choose_columns(path, names, wanted)

    def batches() -> Iterator[pa.Table]:
        with open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
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
    return int(min(ROWS_AT_ONCE, max(1, n_rows * BYTES_AT_ONCE // max(n_bytes, 1))))


def _read_sizes(path: str) -> list[int]:
    """Return the number of rows of each row group."""
    from pyarrow import parquet

    with open_raw(path, "rb") as stream:
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
        return reader.read_all().select(choose_columns(path, names, wanted)), names


@contextmanager
def _open_arrow(path: str) -> Iterator[Any]:
    """Open a file or a stream of Arrow's."""
    with open_raw(path, "rb") as file:
        is_file = file.read(len(_ARROW_MARK)) == _ARROW_MARK
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            yield reader


def _scan_arrow(path: str, wanted: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    with _open_arrow(path) as reader:
        names = reader.schema.names
    chosen = choose_columns(path, names, wanted)

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
    with open_raw(path, "wb") as sink, open_writer(sink, first.schema) as writer:
        for table in chain([first], others):
            writer.write_table(table)


def _recognise_parquet(head: bytes, path: str) -> bool:
    return head.startswith(_PARQUET_MARK) and _ends_with(path, _PARQUET_MARK)


def _recognise_arrow(head: bytes, path: str) -> bool:
    return head.startswith(_STREAM_MARK) or (head.startswith(_ARROW_MARK) and _ends_with(path, _ARROW_MARK))


def _ends_with(path: str, mark: bytes) -> bool:
    with open_raw(path, "rb") as file:
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
