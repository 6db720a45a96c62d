"""Tables larger than memory, sorted by item once with DuckDB.

The sorted copy holds the columns of one table in the order in which `Answers` hold their answers: items as they first
appear, positions of a sequence in order, and the answers to each as they stand in the files. Ids, labels and text are
codes of their distinct values; other numbers are as they were. All are plain numbers in files of their own, which are
mapped into memory. So a sorted copy is read like any other table, and gives the same answers.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..answers.columns import decode_categories, encode_sorted, to_column
from ..answers.layouts import warn_of_missing
from ..answers.tables import Table, open_frame
from ..errors import InputError, MissingDependencyError, first_line
from ..limits import open_mapped
from ..version import __version__
from . import Format
from .files import describe_state, is_remote, name_of
from .reading import TableFile, read_integers, stream_rows

# DuckDB gets this part of the memory; buffers of what it reads and writes take more.
ENGINE_PART = 0.3


def name_copy(paths: Sequence[str], *settings: object) -> str:
    """The name of the sorted copy of some files: another one if a file has changed."""
    states = [describe_state(path) or time.time_ns() for path in paths]  # nothing known: sorted anew each time
    files = [path if is_remote(path) else os.path.abspath(path) for path in paths]
    return hashlib.blake2b(repr((__version__, files, states, settings)).encode(), digest_size=12).hexdigest()


def open_copy(folder: Path, path: str, found: Format) -> Table:
    """A sorted copy as a table, whose rows know where they came from."""
    about = json.loads((folder / "columns.json").read_text())
    columns: dict[str, Any] = {}
    for name, file, kind, ordered in about["columns"]:
        numbers = open_mapped(folder / f"{file}.numbers", kind)
        array = pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(numbers), [None, pa.py_buffer(numbers)])
        values = folder / f"{file}.arrow"
        if values.exists():
            with pa.ipc.open_file(pa.memory_map(str(values))) as reader:
                vocabulary = reader.read_all().column(0).combine_chunks()
            if about["missing"][file]:
                array = pa.array(numbers, mask=numbers < 0)
            array = pa.DictionaryArray.from_arrays(array, vocabulary, ordered=ordered, safe=False)
        columns[name] = array
    rows = open_mapped(folder / "rows.numbers", np.int64)
    files = tuple((each, n_rows) for each, n_rows in about["files"])
    table = pa.table(columns)
    source = TableFile(table, files, found.codec.find_lines, found.name)
    opened = open_frame(table, name_of(path))
    # Columns are of plain types, with distinct values in their vocabularies: there is nothing to make of them.
    return replace(
        opened,
        added=columns,
        locate=lambda row: source.locate(int(rows[row])),
        origin=(path, found.name),
    )


def sort_copy(
    folder: Path,
    paths: Sequence[str],
    found: Format,
    columns: Sequence[str],
    keys: Sequence[str],
    position: str | None,
    needed: str | None,
    schema: pa.Schema,
    memory: float,
) -> None:
    """Write the sorted copy of some files.

    Parameters
    ----------
    folder : Path
        Where the copy will be, once it is complete.
    paths, found
        The files, and the format they share.
    columns : list of str
        What is copied, with all columns named below.
    keys : list of str
        The columns that say together which item, or which sequence, a row is about.
    position : str or None
        The place of an item in its sequence.
    needed : str or None
        A column; rows in which it is missing are left out.
    schema : pyarrow.Schema
        The types of the columns, which hold those of all files.
    memory : float
        In bytes.
    """
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError(
            "Sorting answers that are larger than memory needs the package 'duckdb'.",
            "Install it with: pip install 'consilience[big]'",
        ) from error
    folder.parent.mkdir(parents=True, exist_ok=True)
    work, faults = Path(tempfile.mkdtemp(prefix=".sorting-", dir=folder.parent)), list[Exception]()
    sizes, categories = dict.fromkeys(paths, 0), dict[str, list[pa.Array]]()
    place = {name: f"c{number}" for number, name in enumerate(columns)}

    def flatten() -> Iterator[pa.RecordBatch]:
        """Columns of plain types, of which equal values are equal, and the numbers of rows."""
        try:
            for path in paths:
                for batch in stream_rows(path, found, columns):
                    arrays = []
                    for name in columns:
                        array = batch.column(name).cast(schema.field(name).type)
                        plain: Any = to_column(array, f"Column {name!r} of {name_of(path)}")
                        if isinstance(plain, np.ndarray):
                            plain = pa.array(plain.tolist())
                        if pa.types.is_dictionary(plain.type):
                            categories.setdefault(name, []).append(plain.dictionary)
                        arrays.append(decode_categories(plain))
                    first = sum(sizes.values())
                    sizes[path] += len(batch)
                    row = np.arange(first, first + len(batch))
                    yield pa.record_batch([*arrays, row], names=[*place.values(), "row"])
        except Exception as error:  # what is wrong with a file would come back in the words of DuckDB
            faults.append(error)
            raise

    settings: dict[str, Any] = {
        "memory_limit": f"{int(ENGINE_PART * memory / 1e6)}MB",
        "temp_directory": str(work / "spilled"),
        "preserve_insertion_order": False,  # rows are numbered
    }
    try:
        with duckdb.connect(str(work / "table.duckdb"), config=settings) as connection:
            engine: Any = connection
            parts = flatten()
            head = next(parts)
            engine.register("source", pa.RecordBatchReader.from_batches(head.schema, chain([head], parts)))
            engine.execute("create table answers as select * from source")
            engine.unregister("source")
            if needed is not None:
                n_rows, n_kept = engine.execute(f"select count(*), count({place[needed]}) from answers").fetchone()
                if 0 < n_kept < n_rows:
                    engine.execute(f"delete from answers where {place[needed]} is null")
                    warn_of_missing(name_of(paths[0]), needed, n_rows - n_kept, n_rows)

            # Codes: of items in order of appearance, of others in order of their values, or of their categories.
            by_key = ", ".join(place[key] for key in keys)
            engine.execute(
                f"create table items as select *, (row_number() over (order by first) - 1)::int as code from "
                f"(select {by_key}, min(row) as first from answers group by {by_key}) order by code"
            )
            matched = " and ".join(f"answers.{place[key]} = items.{place[key]}" for key in keys)
            about, missing, chosen, joins = [], {}, [], [f"left join items on {matched}"]
            for name, c in place.items():
                kind = head.schema.field(c).type
                n_missing = engine.execute(f"select count(*) - count({c}) from answers").fetchone()[0]
                if pa.types.is_floating(kind) and name not in (*keys, position) and not n_missing:
                    chosen.append(f"answers.{c} as {c}")
                    about.append((name, c, str(np.dtype(kind.to_pandas_dtype())), False))
                    continue
                table, order = ("items", "code") if [name] == keys else ("answers", c)
                distinct = f"select distinct {c}" if table == "answers" else f"select {c}"
                query = f"{distinct} from {table} where {c} is not null order by {order}"
                values: Any = engine.execute(query).to_arrow_table()[c].combine_chunks()
                vocabulary = read_integers(values) if found.codec.all_text and len(values) else values
                if [name] == keys:
                    chosen.append(f"case when answers.{c} is null then -1 else items.code end as {c}")
                else:
                    if name in categories:
                        kept = pa.chunked_array(categories[name]).unique()
                        values = vocabulary = kept.filter(pa.compute.is_in(kept, value_set=values))
                        codes = np.arange(len(values), dtype=np.int32)
                    else:
                        codes, distinct_values = encode_sorted(to_column(vocabulary))
                        vocabulary = to_column(distinct_values)
                    engine.register("coded", pa.table({"value": values, "code": codes}))
                    engine.execute(f"create table v_{c} as select * from coded")
                    engine.unregister("coded")
                    joins.append(f"left join v_{c} on answers.{c} = v_{c}.value")
                    chosen.append(f"coalesce(v_{c}.code, -1)::int as {c}")
                with pa.ipc.new_file(str(work / f"{c}.arrow"), pa.schema([("values", vocabulary.type)])) as writer:
                    writer.write_table(pa.table({"values": vocabulary}))
                about.append((name, c, "int32", name in categories and bool(schema.field(name).type.ordered)))
                missing[c] = n_missing > 0
            within = "" if position is None else f"{place[position]}, "
            ordered = engine.execute(
                f"select {', '.join(chosen)}, answers.row as row from answers {' '.join(joins)} "
                f"order by items.code nulls last, {within}answers.row"
            ).to_arrow_reader(1 << 20)
            written = [*((c, kind) for _, c, kind, _ in about), ("rows", "int64")]
            with ExitStack() as opened:
                files = [opened.enter_context(open(work / f"{c}.numbers", "wb")) for c, _ in written]
                for batch in ordered:
                    for file, (_, kind), array in zip(files, written, batch.columns, strict=True):
                        np.asarray(array.to_numpy(zero_copy_only=False), kind).tofile(file)
        facts = {"columns": about, "missing": missing, "files": list(sizes.items())}
        (work / "columns.json").write_text(json.dumps(facts))
        (work / "table.duckdb").unlink()
        shutil.rmtree(work / "spilled", ignore_errors=True)
        with suppress(OSError):  # there is one already, of another process
            os.replace(work, folder)
        if not folder.exists():
            raise OSError(f"{str(work)!r} cannot be renamed")
    except (duckdb.Error, OSError) as error:
        if faults:
            raise faults[0] from None
        raise InputError(
            f"The answers cannot be sorted in {str(folder.parent)!r}: {first_line(error)}.",
            "Name a place with more room.",
            keyword="store",
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
