"""`scan_answers`: answers from files that may be larger than memory, sorted by item once.

DuckDB holds the rows meanwhile and finds distinct values, and `partition` puts the rows in order. The sorted
copy holds the columns of one table in the order in which `Answers` hold their answers: items as they first appear,
positions of a sequence in order, and the answers to each as they stand in the files. Ids, labels and text are codes of
their distinct values; other numbers are as they were. All are plain numbers in files of their own, which are mapped
into memory. So a sorted copy is read like any other table, and gives the same answers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from ..answers import DIALECTS
from ..answers.answers import Answers, Budget
from ..answers.columns import decode_categories, encode_sorted, split_names, to_column
from ..answers.joining import leave_out, read_blocked
from ..answers.layouts import warn_of_missing
from ..answers.tables import WHOLE, Table, find_columns, key_roles, open_frame, translate
from ..errors import InputError, MissingDependencyError, ParameterError, Sentence, about, first_line, parameter_error
from ..kinds.tags import ONE_HOT, Tags, check_separator, find_separators
from ..limits import available_memory, open_mapped
from ..options import check_questions, check_truth, split_by_question
from ..version import __version__
from . import Format
from .arrays import MATRIX_SUFFIX
from .files import describe_state, is_remote, name_of
from .partition import ROWS, count_items, divide_items, fits_table, tabulate_codes
from .reading import TableFile, concatenate, find_files, open_path, read_integers, stream_rows
from .sources import find_source, open_table, take_answers

# Forms of tables that can be sorted, beside one row per answer; the others are laid out in memory.
FORMS = ("soft", "soft-long")
IN_MEMORY = {each.name for each in DIALECTS} - set(FORMS) | {ONE_HOT}
# Answers in fewer rows are read into memory, and as many rows show what the columns are.
LEAST_ROWS, ENOUGH_ROWS = 200_000, 10_000
LEAST_MEMORY = 10**9
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
# DuckDB gets this part of the memory; buffers of what it reads and writes take more.
ENGINE_PART = 0.3


def scan_answers(
    path: str | os.PathLike[str],
    memory: str | int | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    item: str | None = None,
    worker: str | None = None,
    label: str | Sequence[str] | None = None,
    sequence: str | None = None,
    position: str | None = None,
    weight: str | None = None,
    classes: ArrayLike | None = None,
    ordered: bool | None = None,
    positions: ArrayLike | None = None,
    duplicates: str = "error",
    drop_missing: bool = False,
    format: str | None = None,
    rescale: bool = False,
    resume: bool = False,
    block: object = None,
    separator: Any = None,
) -> Answers | Tags | dict[str, Answers | Tags]:
    r"""Read answers that may be larger than memory.

    Parameters
    ----------
    path : str or path
        One file, a pattern such as ``"answers/*.parquet"``, or a folder: Parquet, Arrow, CSV, TSV or JSON lines, with
        one row per answer.
    memory : str or int, optional
        How much memory there is, such as "4GB", at least "1GB". Default: the memory of the machine.
    store : str or path, optional
        The folder in which sorted answers are kept. Default: ``$CONSILIENCE_STORES``, or else ``consilience`` in the
        user's cache folder.
    item, worker, label, sequence, position, weight, classes, ordered, positions, duplicates, drop_missing, format
        As for `read_answers`. Several labels are several questions.
    rescale : bool
        Whether to divide each soft vote by its sum, as for `read_answers`.
    resume : bool
        Let a fit that was interrupted go on where it stood. A fit with the same parameters comes to the same results,
        to the bit. By default, fits begin anew.
    block : list, table or path, optional
        Workers whose answers are left out: their ids, or a table with a column worker. So are items and labels that
        nobody else has answered or said.
    separator : str, optional
        What stands between the tags in a cell: answers are sets of tags, as for `read_tags`.

    Returns
    -------
    Answers, Tags or dict
        If `label` lists several columns, a dict from each of these questions to its answers, which `consilience.fuse`
        takes. `classes`, `ordered`, `positions` and `separator` may then be mappings too.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "answers.csv").write_text("item,worker,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n")
    >>> cs.scan_answers(folder / "answers.csv", store=folder / "stores")
    Answers(3 answers: 2 items x 2 workers, 2 classes: 'cat', 'dog')
    """
    for name, value in (("drop_missing", drop_missing), ("rescale", rescale), ("resume", resume)):
        check_truth(name, "scan_answers", value)
    budget = None if memory is None else parse_memory(memory)
    blocked = read_blocked(open_path(block))
    questions = check_questions(label, "scan_answers")
    source, names = os.fspath(path), {"item": item, "worker": worker, "sequence": sequence, "position": position}
    names["weight"] = weight

    def scan(label: Any, **scale: Any) -> Answers | Tags:
        check_separator(scale["separator"], "scan_answers")
        table, folder = open_sorted(source, {**names, "label": label}, format, drop_missing, budget, store)
        options = {"duplicates": duplicates, "drop_missing": drop_missing, "rescale": rescale, "gold": False, **scale}
        form = format if isinstance(table, str) else None
        answers = take_answers(table, **names, label=label, format=form, **options)
        if isinstance(answers, Tags):
            if len(blocked) or resume:
                what = "block" if len(blocked) else "resume"
                raise ParameterError(
                    Sentence(f"{{{what}}} does not go with sets of tags.", **{what: None}),
                    "Leave it out; consilience.fuse takes a list of workers to leave out.",
                    keyword=what,
                )
            return answers
        answers = leave_out(answers, blocked) if len(blocked) else answers
        return answers if folder is None else replace(answers, budget=Budget(budget, folder, resume))

    scale = {"classes": classes, "ordered": ordered, "positions": positions, "separator": separator}
    if questions is None or len(questions) == 1:
        return scan(questions[0] if questions else label, **scale)
    split = {role: split_by_question(role, value, questions) for role, value in scale.items() if role != "separator"}
    split["separator"] = find_separators(separator, questions, "scan_answers", lambda: open_table(source, format)[0])
    columns = {}
    for name in questions:
        with about(name):
            columns[name] = scan(name, **{role: each.get(name) for role, each in split.items()})
    return columns


def open_sorted(
    path: str,
    names: dict[str, Any],
    format: str | None,
    drop_missing: bool,
    memory: int | None,
    store: str | os.PathLike[str] | None,
) -> tuple[Table | str, str | None]:
    """The sorted copy of a table and the folder that holds it; the path and None where it is read as it is.

    That is so with few rows, and with other forms of tables than those of `FORMS`.
    """
    file_format = None if format in FORMS else format
    if find_source(path, file_format) is not None or path.lower().endswith(MATRIX_SUFFIX) or format in IN_MEMORY:
        return path, None
    paths, chosen = find_files(path, file_format)
    sizes = accumulate(len(batch) for each in paths for batch in stream_rows(each, chosen))
    if not any(n_rows >= LEAST_ROWS for n_rows in sizes):
        return path, None
    heads = [pa.Table.from_batches([next(stream_rows(each, chosen))]) for each in paths]
    schema = concatenate(paths, [each.slice(0, 0) for each in heads], chosen.codec.all_text).schema
    head = next(each for each in heads if each.num_rows).slice(0, ENOUGH_ROWS)
    table, columns = open_frame(head, path), {**names, "gold": None}
    if any(table.lists(name) is not None for name in table.names):
        return path, None
    for role in WHOLE:
        table, columns[role] = table.combine(role, names[role])
    form = translate(table, format if format in FORMS else None, columns).format
    if form in IN_MEMORY:
        return path, None
    if form:  # probabilities, of which each class, or each worker, has a column
        paired = columns["sequence"] is not None or columns["position"] is not None or table.has_sequences()
        roles = {role: table.need(role, columns[role]) for role in key_roles(paired)}
        copied = head.column_names
    else:
        roles = find_columns(table, columns)
        copied = [part for name in roles.values() for part in split_names(name) or [name]]
    keys = [part for role in WHOLE if role in roles for part in split_names(roles[role]) or [roles[role]]]
    settings = copied, keys, roles.get("position"), roles.get("label") if drop_missing else None

    def name_copy() -> str:
        """Another name if a file has changed; if nothing is known of a file, it is sorted anew each time."""
        states = [describe_state(each) or time.time_ns() for each in paths]
        files = [each if is_remote(each) else os.path.abspath(each) for each in paths]
        return hashlib.blake2b(repr((__version__, files, states, settings)).encode(), digest_size=12).hexdigest()

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "consilience"
    folder = Path(store or os.environ.get("CONSILIENCE_STORES") or cache) / name_copy()
    if not folder.exists():
        sort_copy(folder, paths, chosen, *settings, schema, memory or available_memory())
        if not is_remote(paths[0]) and name_copy() != folder.name:
            shutil.rmtree(folder)
            raise InputError(f"{path!r} has changed while it was read.", "Read it again when it is complete.")
    try:
        return open_copy(folder, path, chosen), str(folder)
    except (OSError, ValueError):  # a part of it is lost
        shutil.rmtree(folder)
        return open_sorted(path, names, format, drop_missing, memory, store)


def open_copy(folder: Path, path: str, file_format: Format) -> Table:
    """A sorted copy as a table, whose rows know where they came from."""
    facts = json.loads((folder / "columns.json").read_text())
    columns: dict[str, Any] = {}
    for name, file, kind, ordered in facts["columns"]:
        numbers = open_mapped(folder / f"{file}.numbers", kind)
        if not (folder / f"{file}.arrow").exists():
            columns[name] = pa.array(numbers)
            continue
        with pa.ipc.open_file(pa.memory_map(str(folder / f"{file}.arrow"))) as reader:
            vocabulary = reader.read_all().column(0).combine_chunks()
        codes = pa.array(numbers, mask=numbers < 0) if facts["missing"][file] else pa.array(numbers)
        columns[name] = pa.DictionaryArray.from_arrays(codes, vocabulary, ordered=ordered, safe=False)
    rows = open_mapped(folder / "rows.numbers", np.int64)
    files = tuple((each, n_rows) for each, n_rows in facts["files"])
    table = pa.table(columns)
    source = TableFile(table, files, file_format.codec.find_lines, file_format.name)
    # Columns are of plain types, with distinct values in their vocabularies: there is nothing to make of them.
    return replace(
        open_frame(table, name_of(path)),
        added=columns,
        locate=lambda row: source.locate(int(rows[row])),
        origin=(path, file_format.name),
    )


def sort_copy(
    folder: Path,
    paths: Sequence[str],
    file_format: Format,
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
    paths, file_format
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
                for batch in stream_rows(path, file_format, columns):
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
            if needed is not None:
                n_rows, n_kept = engine.execute(f"select count(*), count({place[needed]}) from answers").fetchone()
                if 0 < n_kept < n_rows:
                    engine.execute(f"delete from answers where {place[needed]} is null")
                    warn_of_missing(name_of(paths[0]), needed, n_rows - n_kept, n_rows)

            # Codes: of items in order of appearance, of others in order of their values, or of their categories.
            number_items(engine, [place[key] for key in keys], head.schema, memory)
            matched = " and ".join(f"answers.{place[key]} = items.{place[key]}" for key in keys)
            join_items = f"left join items on {matched}"
            about, missing, chosen, joins, tables = [], {}, [], [], {}
            for name, c in place.items():
                kind = head.schema.field(c).type
                missing[c] = engine.execute(f"select count(*) > count({c}) from answers").fetchone()[0]
                if pa.types.is_floating(kind) and name not in (*keys, position) and not missing[c]:
                    chosen.append(f"answers.{c} as {c}")
                    about.append((name, c, str(np.dtype(kind.to_pandas_dtype())), False))
                    continue
                is_key = [name] == keys
                selected = f"select {c} from items" if is_key else f"select distinct {c} from answers"
                query = f"{selected} where {c} is not null order by {'code' if is_key else c}"
                values: Any = engine.execute(query).to_arrow_table()[c].combine_chunks()
                vocabulary = read_integers(values) if file_format.codec.all_text and len(values) else values
                codes = np.arange(len(values), dtype=np.int32)
                if name in categories and not is_key:
                    kept = pa.chunked_array(categories[name]).unique()
                    values = vocabulary = kept.filter(pa.compute.is_in(kept, value_set=values))
                elif not is_key:
                    codes, distinct = encode_sorted(to_column(vocabulary))
                    vocabulary = to_column(distinct)
                table = tabulate_codes(values, codes, memory)
                if table is not None:
                    tables[c] = table
                    chosen.append(f"answers.{c} as {c}")
                elif is_key:
                    joins.append(join_items)
                    chosen.append(f"coalesce(items.code, -1)::int as {c}")
                else:
                    engine.register(f"v_{c}", pa.table({"value": values, "code": codes}))
                    joins.append(f"left join v_{c} on answers.{c} = v_{c}.value")
                    chosen.append(f"coalesce(v_{c}.code, -1)::int as {c}")
                with pa.ipc.new_file(str(work / f"{c}.arrow"), pa.schema([("values", vocabulary.type)])) as writer:
                    writer.write_table(pa.table({"values": vocabulary}))
                about.append((name, c, "int32", name in categories and bool(schema.field(name).type.ordered)))
            kinds = {c: kind for _, c, kind, _ in about}
            if len(keys) > 1:
                joins.append(join_items)
                chosen.append("coalesce(items.code, -1)::int as item")
                kinds["item"] = "int32"
            n_rows = engine.execute("select count(*) from answers").fetchone()[0]
            n_answers = engine.execute("select size from items order by code").fetchnumpy()["size"]
            by = "item" if len(keys) > 1 else place[keys[0]]
            partition = divide_items(work, kinds | {ROWS: "int64"}, by, n_answers, n_rows, memory)
            coded = engine.execute(f"select {', '.join(chosen)}, answers.row as {ROWS} from answers {' '.join(joins)}")
            partition.write(
                [
                    tables[name].look_up(column) if name in tables else column.to_numpy(zero_copy_only=False)
                    for name, column in zip(partition.kinds, batch.columns, strict=True)
                ]
                for batch in coded.to_arrow_reader(1 << 20)
            )
        partition.sort(None if position is None else place[position])
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


def number_items(engine: Any, keys: Sequence[str], schema: pa.Schema, memory: float) -> None:
    """Make a table `items` of the distinct keys: their codes in order of appearance, and how many rows each has."""
    key, kind = keys[0], schema.field(keys[0]).type
    if len(keys) == 1 and pa.types.is_signed_integer(kind):
        low, high = engine.execute(f"select min({key}), max({key}) from answers").fetchone()
        if low is not None and fits_table(low, high, memory):
            rows = engine.execute(f"select {key}, row from answers where {key} is not null").to_arrow_reader(1 << 20)
            items, sizes = count_items(rows, low, high)
            codes = np.arange(len(items), dtype=np.int32)
            engine.register("items", pa.table({key: pa.array(items).cast(kind), "code": codes, "size": sizes}))
            return
    by, present = ", ".join(keys), " and ".join(f"{each} is not null" for each in keys)
    engine.execute(
        "create table items as select *, (row_number() over (order by first) - 1)::int as code from "
        f"(select {by}, min(row) as first, count(*) as size from answers where {present} group by {by}) order by code"
    )


def parse_memory(memory: str | int) -> int:
    """A size in bytes.

    >>> parse_memory("4GB"), parse_memory("1536 MiB"), parse_memory(2_000_000_000)
    (4000000000, 1610612736, 2000000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(memory), re.IGNORECASE)
    unit = None if match is None else _UNITS.get(match[2].lower())
    if match is None or unit is None or isinstance(memory, bool) or float(match[1]) * unit < LEAST_MEMORY:
        raise parameter_error("memory", "scan_answers", "a size such as '4GB' or '2GiB', at least '1GB'", memory)
    return int(float(match[1]) * unit)
