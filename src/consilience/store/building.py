"""A store built from files: rows are split into partitions, and partitions become blocks.

A store is known by its key, a hash of the paths, sizes and times of the files and of how they are read. It is built in
a folder of another name, which takes the name of the store at the end. A store that is there is therefore complete.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..data.duplicates import check_policy
from ..data.frames import open_arrow
from ..data.long_tables import DROP_ROWS, find_columns, read_answers, read_weights
from ..data.tables import Table
from ..data.vocabulary import Column, Values, is_text, lookup, to_column, to_values
from ..errors import InputError, StoreError, first_line, quietly
from ..formats.delimited import read_integers
from ..formats.files import quote_path
from ..formats.scanning import Scan
from .layout import write_partition
from .partitioning import GrowingVocabulary, PartitionWriter, count_partitions, name_rows, read_rows

log = logging.getLogger("consilience")

SCHEMA = 1
# What a store says of itself. It is written last.
HEADER = "store.json"
ROLES = ("item", "worker", "label", "sequence", "position", "weight")
# A row is known by the number of its file, times this, plus its number in the file.
ROWS_PER_FILE = 1 << 40
DROP = "A missing answer needs no row: drop it."
FILL = "Every answer must say who gave it about what: fill it in or drop the row."


def find_key(scan: Scan, options: Mapping[str, Any]) -> str:
    """Return the key of the store of some files, read in some way."""
    content = json.dumps([SCHEMA, scan.fingerprint(), sorted(options.items())], default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:20]


def build_store(
    folder: Path,
    scan: Scan,
    names: Mapping[str, str | None],
    duplicates: str,
    drop_missing: bool,
    run: Callable[[Callable[[int], Part], range], list[Part]],
) -> None:
    """Build a store in a folder that does not exist yet.

    Parameters
    ----------
    folder : Path
        Where to build it.
    scan : Scan
        The files.
    names : mapping
        For each role that a column can play its name, None where it is not given.
    duplicates, drop_missing
        As in `Responses.from_frame`.
    run : callable
        Calls a function with each number of a range, perhaps several at a time, and returns the results in order.
    """
    check_policy(duplicates)
    remove_abandoned(folder)
    work = folder.with_name(f"{folder.name}.{socket.gethostname()}.{os.getpid()}.building")
    try:
        work.mkdir(parents=True)
        rows = _split(work, scan, names, drop_missing)
        parts = run(partial(_make_partition, work, scan, rows, duplicates), range(rows.n_partitions))
        n_votes = np.sum([part.votes for part in parts], axis=0)
        if (n_votes == 0).any():
            # A label that only occurred in answers that were dropped as duplicates is a label nobody gave.
            rows = rows.without(n_votes == 0)
            parts = run(partial(_make_partition, work, scan, rows, duplicates), range(rows.n_partitions))
            n_votes = np.sum([part.votes for part in parts], axis=0)
        for number in range(rows.n_partitions):
            name_rows(work, number).unlink(missing_ok=True)
        write_values(work / "workers.arrow", rows.workers)
        write_values(work / "labels.arrow", rows.labels)
        header = {
            "schema": SCHEMA,
            "columns": rows.columns,
            "in_sequences": len(rows.keys) == 2,
            "weighted": any(part.weighted for part in parts),
            "votes": n_votes.tolist(),
            "partitions": [part.sizes for part in parts],
        }
        (work / HEADER).write_text(json.dumps(header))
        try:
            work.rename(folder)
        except OSError:
            if not (folder / HEADER).exists():  # else another process was faster
                raise
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"The store {str(folder)!r} cannot be written: {first_line(error)}.",
            "Free some space, or choose another place.",
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


class Rows(NamedTuple):
    """Rows that have been split into partitions."""

    columns: dict[str, str]  # the column that plays each role
    keys: list[str]  # those that identify items
    n_partitions: int
    workers: Values
    labels: Values
    worker_index: NDArray[np.int32]  # for each code of the rows its index among the workers, -1 if it was not seen
    label_index: NDArray[np.int32]
    whole: list[bool]  # whether a key is text that is read as whole numbers

    def without(self, unsaid: NDArray[np.bool_]) -> Rows:
        """Return the same rows with some labels fewer, which no answer has."""
        rank = np.where(unsaid, -1, np.cumsum(~unsaid) - 1).astype(np.int32)
        index = np.where(self.label_index < 0, -1, rank[self.label_index]).astype(np.int32)
        return self._replace(labels=self.labels[~unsaid], label_index=index)


class Part(NamedTuple):
    """What is known of a partition after it was written."""

    sizes: list[int]  # items, answers, sequences, blocks
    votes: NDArray[np.float64]  # sum of weights of each label
    weighted: bool


def remove_abandoned(folder: Path) -> None:
    """Remove what processes of this machine that are no more have left of the same store."""
    for path in folder.parent.glob(f"{folder.name}.*.building") if folder.parent.is_dir() else ():
        host, _, process = path.name.removeprefix(f"{folder.name}.").removesuffix(".building").rpartition(".")
        if host == socket.gethostname() and not _is_running(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return process != os.getpid()


def _split(work: Path, scan: Scan, names: Mapping[str, str | None], drop_missing: bool) -> Rows:
    """Split all rows into partitions."""
    columns = find_columns(_as_table(pa.table({name: pa.nulls(0) for name in scan.names}), scan), **names)
    keys = [columns[role] for role in ("item", "sequence", "position") if role in columns]
    workers, labels = GrowingVocabulary(), GrowingVocabulary()
    n_rows, n_partitions = 0, count_partitions(sum(scan.sizes))
    writer, whole = PartitionWriter(work, n_partitions), [scan.all_text] * len(keys)
    try:
        for file, first, part in scan.read(list(columns.values())):
            table = _as_table(part, scan, file, first)
            row = np.arange(first, first + part.num_rows) + file * ROWS_PER_FILE
            if drop_missing:
                kept = np.flatnonzero(part.column(columns["label"]).is_valid().to_numpy())
                table, row = (table, row) if len(kept) == len(row) else (table.keep(kept), row[kept])
            if not len(row):
                continue
            found = {
                "row": row,
                "worker": workers.encode(table.values(columns["worker"], FILL)),
                "label": labels.encode(table.values(columns["label"], DROP, DROP_ROWS)),
            }
            if "weight" in columns:
                found["weight"] = read_weights(table, columns["weight"])
            ids = [table.values(name, FILL) for name in keys]
            whole = [
                known and not is_text(read_integers(column).type) for known, column in zip(whole, ids, strict=True)
            ]
            writer.add(ids[0], {**found, **{f"key {i}": column for i, column in enumerate(ids)}})
            n_rows += len(row)
            log.info("Sorting answers: %s rows", f"{n_rows:,}")
    finally:
        writer.close()
    if not n_rows:
        raise InputError(f"{scan.files[0]!r} has columns but no rows: there are no answers to fuse.")
    known = workers.settle(scan.all_text), labels.settle(scan.all_text)
    return Rows(columns, keys, n_partitions, known[0][0], known[1][0], known[0][1], known[1][1], whole)


def _as_table(part: pa.Table, scan: Scan, file: int = 0, first: int = 0) -> Table:
    """Return some rows of a file as a table that knows where each is."""
    table = open_arrow(part, quote_path(scan.files[file]))
    return replace(table, locate=lambda row: scan.locate(file, first + row))


def _make_partition(work: Path, scan: Scan, rows: Rows, duplicates: str, number: int) -> Part:
    """Write the blocks of a partition."""
    table = read_rows(work, number)
    if table is None:
        return Part([0, 0, 0, 0], np.zeros(len(rows.labels)), False)
    said = rows.label_index[table.column("label").to_numpy()]
    if (said < 0).any():  # only in rows that are duplicates
        table = table.filter(pa.array(said >= 0))
        said = said[said >= 0]
    origin, worker = (table.column(name).to_numpy() for name in ("row", "worker"))
    columns: dict[str, Column] = {
        "worker": as_categories(rows.worker_index[worker], rows.workers),
        "label": as_categories(said, rows.labels),
    }
    for place, whole in enumerate(rows.whole):
        column = table.column(f"key {place}")
        columns[f"key {place}"] = to_column(pc.cast(column, pa.int64()) if whole else column)
    if "weight" in rows.columns:
        columns["weight"] = to_column(table.column("weight"))
    del table

    def locate(row: int) -> str:
        return scan.locate(*map(int, divmod(origin[row], ROWS_PER_FILE)))

    given = Table(list(columns), columns.__getitem__, len(origin), "pyarrow", scan.describe(), locate)
    roles = ("item",) if len(rows.keys) == 1 else ("sequence", "position")
    names = {role: f"key {i}" for i, role in enumerate(roles)} | {"worker": "worker", "label": "label"}
    names["weight"] = "weight" if "weight" in rows.columns else None
    with quietly():
        answers = read_answers(given, dict.fromkeys(ROLES) | names, None, None, duplicates, "ignore", None, False)
    all_labels = lookup(rows.labels, to_column(answers.labels))[answers.label]
    all_workers = lookup(rows.workers, to_column(answers.workers))[answers.worker]
    codes = all_workers * len(rows.labels) + all_labels
    sizes = write_partition(work, number, answers, codes, len(rows.workers) * len(rows.labels))
    votes = np.bincount(all_labels, answers.weight, len(rows.labels)).astype(np.float64)
    return Part(sizes, votes, answers.weight is not None)


def as_categories(codes: NDArray[np.int32], values: Values) -> pa.DictionaryArray:
    """Return codes as a column of the values that they stand for, whose order is kept."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values))


def write_values(path: Path, values: Values) -> None:
    """Write a vocabulary to a file."""
    table = pa.table({"value": pa.array(values)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def read_values(path: Path) -> Values:
    """Return the vocabulary in a file."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        return to_values(to_column(reader.read_all().column("value")))
