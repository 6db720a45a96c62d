"""A store built from files: rows are split into partitions, and partitions become blocks.

A store is known by its key: a hash of the paths, sizes and times of the files, of how they are read, and of the release
that cuts them into blocks. It is built in a folder of another name, which takes the name of the store at the end. So a
store that is there is complete. If a file changes while it is read, there is an error and no store.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers import arrays
from ..answers.blocked import check_blocked, nobody_left
from ..answers.columns import Column, Values, find_missing, is_text, to_column, to_values
from ..answers.frames import open_arrow
from ..answers.long_tables import DROP_ROWS, TableOptions, arrange_answers, check_policy, find_columns, read_weights
from ..answers.responses import Answers
from ..answers.soft_votes import PROBABILITY, SoftRows, relabel, with_votes
from ..answers.tables import Table
from ..answers.vocabulary import lookup
from ..engines.base import Engine
from ..errors import InputError, Sentence, StoreError, first_line, quietly, shorten
from ..formats.files import is_remote, quote_path, read_integers
from ..formats.reading import Scan, Stretch, open_scan
from ..formats.writing import sync
from ..version import __version__
from . import partitioning
from .layout import claim_beside, measure_parts, name_arrays, name_items, write_columns, write_partition
from .partitioning import (
    GrowingVocabulary,
    Piece,
    count_partitions,
    find_common_type,
    plain,
    plain_type,
    read_piece,
    write_piece,
)
from .sets import BITS, TAGS, Asked, SetForm, find_sets
from .votes import SoftForm, find_form

log = logging.getLogger("consilience")

SCHEMA = 7
# What a store says of itself. It is written last.
HEADER = "store.json"
# While a store is built, rows and partitions are in these folders. An engine may do some work twice. So whoever does it
# chooses a new name, and only what has arrived counts.
ROWS, PARTS = "rows", "parts"
# So many rows, or bytes of them, are held in memory at a time, by each thread.
ROWS_PER_PIECE = 1 << 22
BYTES_PER_PIECE = 1 << 28
# So many rows tell whether files hold soft votes.
HEAD = 10_000
ROLES = ("item", "worker", "label", "sequence", "position", "weight")
# A row is known by the number of its file, times this, plus its number in the file.
ROWS_PER_FILE = 1 << 40
DROP = "A missing answer needs no row: drop it."
FILL = "Every answer must say who gave it about what: fill it in or drop the row."


# How rows of files become answers, where they are not answers themselves.
Form: TypeAlias = SoftForm | SetForm


class Dropping(NamedTuple):
    """Which rows are left out."""

    missing: bool  # whether those without a label are
    workers: Values  # whose rows are

    def find(self, table: Table, columns: Mapping[str, str]) -> tuple[NDArray[np.int64], set[int]]:
        """Return the rows of a table that are left out, and which of the workers have some."""
        said = self.missing and columns["label"] in table.names
        missing = find_missing(table.read(columns["label"])) if said else np.empty(0, np.int64)
        if not len(self.workers):
            return missing, set()
        who = lookup(self.workers, table.read(columns["worker"]))
        return np.union1d(missing, np.flatnonzero(who >= 0)), set(np.unique(who[who >= 0]).tolist())


def find_key(scan: Scan, fingerprint: object, options: Mapping[str, object]) -> str:
    """Return the key of the store of some files, read in some way."""
    release = [SCHEMA, __version__, partitioning.ROWS_PER_PARTITION, arrays.BLOCK_SIZE]
    content = json.dumps([release, scan.format.name, fingerprint, sorted(options.items())], default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:20]


def build_store(
    folder: Path,
    scan: Scan,
    fingerprint: object,
    names: Mapping[str, str | None],
    options: TableOptions,
    dropping: Dropping,
    engine: Engine,
    sets: Asked | None = None,
) -> None:
    """Build a store in a folder that does not exist yet.

    Parameters
    ----------
    folder : Path
        Where to build it. All workers of the engine must be able to read and write there.
    scan : Scan
        The files.
    fingerprint
        What they were recognised by.
    names : mapping
        For each role that a column can play its name, None where it is not given.
    options : TableOptions
        How tables are read: `duplicates`, `rescale` and `format`.
    dropping : Dropping
        Which rows are left out.
    engine : Engine
        Where to work.
    sets : Asked, optional
        How cells are read as sets of tags, if they are.
    """
    form: Form | None = None
    empty = pa.table({name: pa.nulls(0) for name in scan.names})
    head = empty if sets is not None else next(open_scan(scan.files[0], scan.format, None)[0], empty).slice(0, HEAD)
    if sets is not None:
        form = find_sets(scan, _as_table(empty, scan), names, sets, engine)
    else:
        check_policy(options.duplicates)
    if head.num_rows:
        form = find_form(_as_table(head, scan), names, options.format)
    columns = find_columns(_as_table(empty, scan), names) if form is None else form.columns
    try:
        with claim_beside(folder, "building") as work:
            write_store(work, scan, columns, form, options, dropping, engine)
            if scan.fingerprint() != fingerprint:
                raise InputError(f"While {scan.describe()} was read, it changed.", "Read it again once it is complete.")
            try:
                work.rename(folder)
            except OSError:
                if not (folder / HEADER).exists():  # else somebody else was faster
                    raise
    except (OSError, pa.ArrowException) as error:
        remedy = "Free some space" if is_full(error) else "Check this folder"
        raise StoreError(
            f"The store {str(folder)!r} cannot be written: {first_line(error)}.",
            Sentence(f"{remedy}, or choose another place with {{store}}."),
        ) from error


def is_full(error: BaseException) -> bool:
    """Tell whether an error says that there is no space left on a disk, or for a user."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def write_store(
    work: Path,
    scan: Scan,
    columns: dict[str, str],
    form: Form | None,
    options: TableOptions,
    dropping: Dropping,
    engine: Engine,
) -> None:
    """Write all files of a store to a folder."""
    (work / ROWS).mkdir()
    rows = split_rows(work / ROWS, scan, columns, form, dropping, engine)
    blocked = [str(name) for name in dropping.workers[sorted(rows.blocked)].tolist()]
    if not blocked:
        check_blocked(dropping.workers, blocked, rows.workers)
    parts = make_partitions(work, scan, rows, options, engine)
    n_votes = np.sum([part.votes for part in parts], axis=0)
    if (n_votes == 0).any() and form is None:
        # A label that only occurred in answers that were dropped as duplicates is a label nobody gave.
        rows = rows.without(n_votes == 0)
        parts = make_partitions(work, scan, rows, options, engine)
        n_votes = n_votes[n_votes > 0]
    for number, part in enumerate(parts):
        for name in (name_arrays, name_items) if part.sizes[3] else ():
            name(work / PARTS / part.folder, number).rename(name(work, number))
    for folder in (ROWS, PARTS):
        shutil.rmtree(work / folder, ignore_errors=True)
    is_soft = any(part.soft for part in parts)
    write_values(work / "workers.arrow", rows.workers)
    write_values(work / "labels.arrow", rows.labels)
    if isinstance(form, SetForm):
        write_values(work / TAGS, form.tags)
    header = {
        "schema": SCHEMA,
        "columns": rows.columns,
        "in_sequences": len(rows.whole) == 2 or isinstance(form, SetForm),
        "separator": form.separator if isinstance(form, SetForm) else None,
        "ordered": rows.ordered,
        "weighted": any(part.weighted for part in parts),
        "votes": n_votes.tolist(),
        "soft": is_soft,
        "shares": np.sum([part.shares for part in parts], axis=0).tolist(),
        "blocked": blocked,
        "partitions": [part.sizes for part in parts],
        "files": measure_parts(work),
        "inputs": [os.path.abspath(path) for path in scan.files if not is_remote(path)],
    }
    (work / HEADER).write_text(json.dumps(header))
    for path in (*sorted(work.glob("*.arrow")), work / HEADER, work):
        sync(path)


def make_partitions(work: Path, scan: Scan, rows: Rows, options: TableOptions, engine: Engine) -> list[Part]:
    """Write the blocks of all partitions."""
    shutil.rmtree(work / PARTS, ignore_errors=True)
    (work / PARTS).mkdir(exist_ok=True)
    return list(engine.map(make_partition, engine.place(range(rows.n_partitions)), str(work), scan, rows, options))


class Rows(NamedTuple):
    """Rows that have been sorted by partition."""

    columns: dict[str, str]  # the column that plays each role
    form: Form | None  # that of soft votes
    n_partitions: int
    pieces: list[Piece]
    task: list[int]  # which task wrote each piece
    workers: Values
    labels: Values
    worker_index: list[NDArray[np.int32]]  # of each task: the index of its codes among the workers
    label_index: list[NDArray[np.int32]]  # and among the labels; -1 for one that nobody gave
    whole: list[bool]  # whether a key is text that is read as whole numbers
    ordered: bool  # whether labels are categories that say that they are in order
    blocked: set[int]  # which of the workers to leave out have rows

    def without(self, unsaid: NDArray[np.bool_]) -> Rows:
        """Return the same rows with some labels fewer, which no answer has."""
        rank = np.append(np.where(unsaid, -1, np.cumsum(~unsaid) - 1), -1).astype(np.int32)
        index = [rank[codes] for codes in self.label_index]
        return self._replace(labels=self.labels[~unsaid], label_index=index)


class Part(NamedTuple):
    """What is known of a partition after it was written."""

    folder: str  # where it is among the partitions
    sizes: list[int]  # items, answers, sequences, blocks
    votes: NDArray[np.float64]  # sum of weights of each label
    weighted: bool
    soft: bool
    shares: NDArray[np.float64]  # sum of probabilities of each label


def split_rows(
    work: Path,
    scan: Scan,
    columns: dict[str, str],
    form: Form | None,
    dropping: Dropping,
    engine: Engine,
    kinds: Mapping[str, pa.DataType] | None = None,
) -> Rows:
    """Sort all rows by partition, and find the vocabularies.

    Partitions and codes depend on the type of a column. If it has several, in different files or parts of a file, all
    rows are read again, and `kinds` says which type holds them all.
    """
    n_partitions = count_partitions(sum(scan.sizes) * (1 if form is None else form.count_cells()))
    stretches, vocabularies = scan.stretches(ROWS_PER_PIECE), begin_vocabularies(form)
    codes: dict[str, list[NDArray[np.int32]]] = {role: [] for role in vocabularies}
    found: dict[str, set[pa.DataType]] = {role: set() for role in ROLES if is_kept(role, columns, form)}
    whole, n_rows = dict.fromkeys(found, scan.format.codec.all_text), 0
    pieces, task, blocked = list[Piece](), list[int](), set[int]()
    placed = engine.place(list(enumerate(stretches)))
    shared = (str(work), scan, columns, form, dropping, n_partitions, kinds or {})
    for number, split in enumerate(engine.map(split_stretch, placed, *shared)):
        for role, vocabulary in vocabularies.items():
            codes[role].append(vocabulary.merge(split.vocabularies[role]))
        for role, types in found.items():
            types |= split.kinds[role]
        whole = {role: whole[role] and split.whole[role] for role in whole}
        pieces += split.pieces
        task += [number] * len(split.pieces)
        n_rows += split.n_rows
        blocked |= split.blocked
        log.info("Sorting answers: %s rows", f"{n_rows:,}")
    if not n_rows:
        raise no_rows(scan, columns, dropping, bool(blocked))
    common = {role: find_common_type(types, columns[role]) for role, types in found.items()}
    if any(len(types) > 1 for types in found.values()):
        for piece in pieces:
            (work / piece.name).unlink()
        return split_rows(work, scan, columns, form, dropping, engine, common)
    workers, worker_index = vocabularies["worker"].settle(common["worker"], whole["worker"])
    if form is None or form.labels is None:
        labels, label_index = vocabularies["label"].settle(common["label"], whole["label"])
    else:
        labels, label_index = form.labels, np.empty(0, np.int32)
    return Rows(
        columns=columns,
        form=form,
        n_partitions=n_partitions,
        pieces=pieces,
        task=task,
        workers=workers,
        labels=labels,
        worker_index=[worker_index[own] for own in codes["worker"]],
        label_index=[label_index[own] for own in codes.get("label", [])],
        whole=[is_whole for role, is_whole in whole.items() if role not in vocabularies],
        ordered="label" in vocabularies and vocabularies["label"].is_ordered,
        blocked=blocked,
    )


def no_rows(scan: Scan, columns: Mapping[str, str], dropping: Dropping, blocked: bool) -> InputError:
    """Return the error that no row is left; some may have been those of workers who are `blocked`."""
    if blocked:
        return nobody_left()
    if dropping.missing:
        return InputError(
            f"Column {shorten(columns['label'])} has no answers: it is empty throughout.",
            Sentence("Leave it out of {label}."),
            keyword="label",
        )
    return InputError(f"{scan.describe()} has columns but no rows: there are no answers to fuse.")


def begin_vocabularies(form: Form | None) -> dict[str, GrowingVocabulary]:
    """Return vocabularies of workers, and of labels if columns do not tell them."""
    roles = ("worker", "label") if form is None or form.labels is None else ("worker",)
    return {role: GrowingVocabulary() for role in roles}


def is_kept(role: str, columns: Mapping[str, str], form: Form | None) -> bool:
    """Tell whether files have a column for a role, other than weights."""
    return role in columns and role != "weight" and (role != "label" or role in begin_vocabularies(form))


class Split(NamedTuple):
    """A stretch of rows that were sorted by partition."""

    n_rows: int
    pieces: list[Piece]
    vocabularies: dict[str, GrowingVocabulary]  # of workers and labels
    kinds: dict[str, set[pa.DataType]]  # the types that each column had
    whole: dict[str, bool]  # whether text may be read as whole numbers; of workers and labels, that in rows left out
    blocked: set[int]  # which of the workers to leave out have rows


def split_stretch(
    numbered: tuple[int, Stretch],
    work: str,
    scan: Scan,
    columns: dict[str, str],
    form: Form | None,
    dropping: Dropping,
    n_partitions: int,
    kinds: Mapping[str, pa.DataType],
) -> Split:
    """Sort a stretch of rows by partition, in pieces that fit in memory.

    `kinds` are types that columns are given. If a column without one changes its type, no more pieces are written.
    """
    number, stretch = numbered
    keys = [role for role in ("item", "sequence", "position") if role in columns]
    vocabularies = begin_vocabularies(form)
    found: dict[str, set[pa.DataType]] = {role: set() for role in (*keys, *vocabularies)}
    pieces, whole = list[Piece](), dict.fromkeys(found, scan.format.codec.all_text)
    waiting, n_waiting, n_bytes, n_rows, blocked = list[dict[str, Column]](), 0, 0, 0, set[int]()

    def write() -> None:
        joined = {name: join([part[name] for part in waiting]) for name in waiting[0]}
        path = Path(work, f"rows-{number:05d}-{len(pieces):05d}-{secrets.token_hex(8)}.arrow")
        pieces.append(write_piece(path, joined["key 0"], joined, n_partitions))

    read = list(columns.values()) if form is None else form.list_columns()
    for first, part in scan.read(stretch, read):
        table = _as_table(part, scan, stretch.file, first)
        row = np.arange(first, first + part.num_rows) + stretch.file * ROWS_PER_FILE
        table, row, votes = (table, row, dict[str, Column]()) if form is None else form.read(table, row)
        dropped, met = dropping.find(table, columns)
        blocked |= met
        if len(dropped):
            # As in memory, the values of a column have one type, which those of rows that are left out decide too.
            left_out, kept = table.keep(dropped), np.setdiff1d(np.arange(len(row)), dropped, assume_unique=True)
            whole = {role: whole[role] and is_whole(left_out.read(columns[role])) for role in whole}
            table, row, votes = table.keep(kept), row[kept], {name: each.take(kept) for name, each in votes.items()}
        if not len(row):
            continue
        n_rows += len(row)
        given: dict[str, pa.Array] = {}
        for role, types in found.items():
            remedies = (DROP, DROP_ROWS) if role == "label" else (FILL,)
            given[role] = give_type(table.values(columns[role], *remedies), kinds.get(role), columns[role])
            types.add(plain_type(given[role].type))
        if any(len(types) > 1 for types in found.values()):
            continue
        ready: dict[str, Column] = {"row": row, **votes}
        ready |= {role: vocabulary.encode(given[role]) for role, vocabulary in vocabularies.items()}
        if "weight" in columns:
            ready["weight"] = read_weights(table, columns["weight"])
        for place, role in enumerate(keys):
            whole[role] = whole[role] and is_whole(given[role])
            ready[f"key {place}"] = plain(given[role])
        waiting.append(ready)
        n_waiting += len(row)
        n_bytes += sum(column.nbytes for column in ready.values())
        if n_waiting >= ROWS_PER_PIECE or n_bytes >= BYTES_PER_PIECE:
            write()
            waiting, n_waiting, n_bytes = [], 0, 0
    if waiting:
        write()
    return Split(n_rows, pieces, vocabularies, found, whole, blocked)


def is_whole(texts: Column) -> bool:
    """Tell whether a column of text is read as whole numbers."""
    return not is_text(read_integers(texts).type)


def give_type(column: Column, kind: pa.DataType | None, name: str) -> pa.Array:
    """Return a column with the values of another type; as it is if none is given."""
    if isinstance(column, np.ndarray):
        column = pa.array(column)
    try:
        return column if kind is None else plain(column, kind)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"Column {name!r} holds values of several types: {first_line(error)}.",
            "Give all values of a column one type.",
        ) from error


def join(parts: list[Column]) -> Column:
    """Return the parts of a column in one."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)


def _as_table(part: pa.Table, scan: Scan, file: int = 0, first: int = 0) -> Table:
    """Return some rows of a file as a table that knows where each is."""
    table = open_arrow(part, quote_path(scan.files[file]))
    return replace(table, locate=lambda row: scan.locate(file, first + row))


def make_partition(number: int, folder: str, scan: Scan, rows: Rows, options: TableOptions) -> Part:
    """Write the blocks of a partition."""
    work, tables = Path(folder), []
    for piece, task in zip(rows.pieces, rows.task, strict=True):
        table = read_piece(work / ROWS, piece, number)
        if table is None:
            continue
        worker = rows.worker_index[task][table.column("worker").to_numpy()]
        table = table.set_column(table.column_names.index("worker"), "worker", pa.array(worker))
        if rows.label_index:
            said = rows.label_index[task][table.column("label").to_numpy()]
            table = table.set_column(table.column_names.index("label"), "label", pa.array(said))
            # A label that nobody gave is only in rows that are duplicates.
            table = table if (said >= 0).all() else table.filter(pa.array(said >= 0))
        tables.append(table)
    if not sum(table.num_rows for table in tables):
        nothing = np.zeros(len(rows.labels))
        return Part("", [0, 0, 0, 0], nothing, False, False, nothing)
    # Pieces are in the order of the input.
    table = pa.concat_tables(tables)
    origin = table.column("row").to_numpy()
    columns: dict[str, Column] = {"worker": as_categories(table.column("worker"), rows.workers)}
    if rows.label_index:
        columns["label"] = as_categories(table.column("label"), rows.labels)
    for place, whole in enumerate(rows.whole):
        column = table.column(f"key {place}")
        columns[f"key {place}"] = to_column(pc.cast(column, pa.int64()) if whole else column)
    if "weight" in rows.columns:
        columns["weight"] = to_column(table.column("weight"))

    def locate(row: int) -> str:
        return scan.locate(*map(int, divmod(origin[row], ROWS_PER_FILE)))

    given = Table(list(columns), columns.__getitem__, len(origin), "pyarrow", scan.describe(), locate)
    if isinstance(rows.form, SetForm):
        worker, said = table.column("worker").to_numpy(), rows.form.unpack(table.column(BITS))
        answers = rows.form.assemble(given, worker.astype(np.int64), rows.workers, said, options.duplicates)
    else:
        votes = [table.column(name).to_numpy() for name in table.column_names if name.startswith("vote ")]
        answers = read_partition(given, votes, rows.form, rows, options)
    del table, tables
    all_labels = lookup(rows.labels, to_column(answers.labels))[answers.label]
    all_workers = lookup(rows.workers, to_column(answers.workers))[answers.worker]
    codes = all_workers * len(rows.labels) + all_labels
    made = work / PARTS / secrets.token_hex(8)
    made.mkdir()
    sizes = write_partition(made, number, answers, codes, len(rows.workers) * len(rows.labels))
    n_said = np.bincount(all_labels, answers.weight, len(rows.labels)).astype(np.float64)
    shares = n_said if answers.soft is None else answers.soft.sum(axis=0, dtype=np.float64)
    return Part(made.name, sizes, n_said, answers.weight is not None, answers.soft is not None, shares)


def read_partition(
    given: Table, votes: Sequence[NDArray[np.float64]], soft: SoftForm | None, rows: Rows, options: TableOptions
) -> Answers:
    """Return the answers in the rows of a partition, with the probabilities of soft votes in these columns."""
    roles = ("item",) if len(rows.whole) == 1 else ("sequence", "position")
    names: dict[str, str | None] = dict.fromkeys(ROLES)
    names |= {role: f"key {i}" for i, role in enumerate(roles)}
    names |= {role: role for role in ("worker", "label", "weight") if role in given.names}
    form = None
    if soft is not None and rows.label_index:
        form, given = soft.name, given.add({PROBABILITY[0]: to_column(votes[0])})
    elif soft is not None:
        given, names["label"] = with_votes(given, SoftRows(rows.labels, np.stack(votes, axis=1)), soft.name), None
    with quietly():
        answers = Answers.of(arrange_answers(given, names, options._replace(format=form)))
    if answers.soft is None:
        return answers
    index = lookup(rows.labels, to_column(answers.labels))
    return replace(answers, soft=relabel(answers.soft, index, len(rows.labels)))


def as_categories(codes: pa.ChunkedArray, values: Values) -> pa.DictionaryArray:
    """Return codes as a column of the values that they stand for, whose order is kept."""
    return pa.DictionaryArray.from_arrays(codes.combine_chunks(), pa.array(values))


def write_values(path: Path, values: Values) -> None:
    """Write a vocabulary to a file."""
    write_columns(path, {"value": pa.array(values)})


def read_values(path: Path) -> Values:
    """Return the vocabulary in a file."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        return to_values(to_column(reader.read_all().column("value")))
