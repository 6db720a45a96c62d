"""Parquet and Arrow: the formats that hold types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa

from ..answers.columns import is_text
from ..errors import plural
from ..memory import require_memory
from .files import ROWS_AT_ONCE, choose_columns, open_raw
from .register import Codec

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


def _scan_parquet(path: str, wanted: Collection[str] | None) -> tuple[Iterator[pa.Table], list[str]]:
    from pyarrow import parquet

    with open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
        names = file.schema_arrow.names
    chosen = choose_columns(path, names, wanted)

    def batches() -> Iterator[pa.Table]:
        with open_raw(path, "rb") as stream, parquet.ParquetFile(stream) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=chosen):
                yield pa.table(batch).select(chosen)

    return batches(), names


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


PARQUET = Codec(_read_parquet, _write_parquet, _recognise_parquet, scan=_scan_parquet)
ARROW = Codec(_read_arrow, _write_arrow, _recognise_arrow, scan=_scan_arrow)
