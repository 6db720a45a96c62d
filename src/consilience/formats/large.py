"""Large files as tables of codes: rows are read some at a time, and text becomes codes as it comes.

What is read is what `open_file` reads, to the bit, in less memory.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import is_text, to_column
from ..answers.tables import Table, open_arrow
from ..errors import InputError, plural
from ..memory import require_memory
from .files import STANDARD_INPUT, PathLike, name_of, read_integers
from .reading import Scan, Source, Stretch, concatenate, open_file, scan_table

log = logging.getLogger("consilience")

# Files of fewer rows are read as a whole.
LARGE = 200_000
# Bytes of a code.
CODE = 4


def open_codes(path: PathLike, choose: Callable[[Table], Collection[str]]) -> Table:
    """Return a file, glob or folder as a `Table`, as `open_file` does; of a large one, only some columns, as codes.

    What cannot be read some rows at a time is read as a whole, which also tells best what is wrong with it.

    Parameters
    ----------
    path : str or path-like
        As for `read_table`.
    choose : callable
        Takes a `Table` of no rows, and returns the columns to read.
    """
    target, source = os.fspath(path), None
    with suppress(InputError):
        scan = None if target == STANDARD_INPUT else scan_table(path)
        if scan is not None and sum(scan.sizes) >= LARGE:
            empty = open_arrow(pa.table({name: pa.nulls(0) for name in scan.names}), name_of(target))
            source = read_codes(scan, choose(empty))
    if source is None:
        return open_file(path)
    table = open_arrow(source.table, name_of(target))
    return replace(table, names=source.columns, locate=source.locate, origin=(target, source.format))


def read_codes(scan: Scan, columns: Collection[str]) -> Source:
    """Return some columns of files; of each that is text, the distinct values, sorted, and their codes."""
    if scan.format.codec.count_rows is not None:
        n_rows = sum(scan.sizes)
        need = n_rows * CODE * len(columns)
        require_memory(need, f"{scan.describe()} has {plural(n_rows, 'row')}", "Read it in several parts.")
    tables, encoded, n_read = [], set[str](), 0
    for number in range(len(scan.files)):
        parts: dict[str, list[pa.Array]] = {name: [] for name in scan.names if name in columns}
        for _, part in scan.read(Stretch(number), columns):
            part.validate(full=True)
            n_read += part.num_rows
            log.info("Reading: %s rows", f"{n_read:,}")
            for name, chunks in parts.items() if part.num_rows else ():
                chunks += encode_text(part.column(name), name, encoded)
        if not all(len({chunk.type for chunk in chunks}) == 1 for chunks in parts.values()):
            raise InputError(f"{scan.describe()} has no rows, or columns whose type changes.")
        tables.append(pa.table({name: pa.chunked_array(chunks) for name, chunks in parts.items()}))
    files = tuple((path, table.num_rows) for path, table in zip(scan.files, tables, strict=True))
    table = concatenate(list(scan.files), tables)
    del tables
    for place, name in enumerate(table.column_names):
        if name in encoded:
            table = table.set_column(place, name, sort_codes(table.column(name), scan.format.codec.all_text))
    return Source(table, files, scan.names, scan.format.codec.find_lines, scan.format.name)


def encode_text(column: pa.ChunkedArray, name: str, encoded: set[str]) -> list[pa.Array]:
    """Return a column in pieces: text as codes, and its name among the encoded ones; anything else as it is."""
    if not is_text(column.type):
        return list(column.chunks)
    encoded.add(name)
    return list(pc.dictionary_encode(column).chunks)


def sort_codes(column: pa.ChunkedArray, all_text: bool) -> pa.ChunkedArray:
    """Return codes of the sorted values, which are whole numbers if they are nothing else in a file without types.

    If most values differ, codes would save nothing, and the values are returned themselves.

    >>> column = pa.chunked_array([pa.array(["10", "9", None, "10", "9"]).dictionary_encode()])
    >>> sort_codes(column, all_text=True).to_pylist()
    [10, 9, None, 10, 9]
    >>> sort_codes(column, all_text=True).chunk(0).dictionary.to_pylist()
    [9, 10]
    """
    array = to_column(column)
    if isinstance(array, np.ndarray) or not pa.types.is_dictionary(array.type):
        return column
    values = read_integers(array.dictionary) if all_text and len(array.dictionary) else array.dictionary
    if 2 * len(values) > len(array):
        return pa.chunked_array([values.take(array.indices)])
    order = pc.array_sort_indices(values)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    codes = pa.array(rank).take(array.indices)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, values.take(order))])
