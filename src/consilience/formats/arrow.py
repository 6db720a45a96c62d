"""Parquet and Arrow: the formats that hold types."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from .files import choose_columns


def read_parquet(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    """Return the wanted columns, and the names of all."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        chosen = choose_columns(path, names, wanted)
        # The reader takes the name `a.b` for the column and for a field of a column `a`.
        return file.read(columns=chosen).select(chosen), names


def read_arrow(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    """Return the wanted columns, and the names of all."""
    with pa.OSFile(path, "rb") as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            names = reader.schema.names
            chosen = choose_columns(path, names, wanted)
            return reader.read_all().select(chosen), names


def write_parquet(table: pa.Table, path: str) -> None:
    """Write the table."""
    from pyarrow import parquet

    parquet.write_table(table, path, compression="zstd")


def write_arrow(table: pa.Table, path: str) -> None:
    """Write the table."""
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
