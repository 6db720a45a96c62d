"""Wide tables, one row per item and one column per worker, and the tables of three platforms.

An empty cell is no answer. A matrix is a wide table of labelling functions, as snorkel has them: -1 is no answer
either, and without a column of items row n is item n. It is recognised where most cells are -1, unless that may be the
low end of a scale.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import is_among
from ..errors import InputError, ManyQuestionsError, Sentence, listing, plural, shorten, warn_of
from ..limits import NUMBER, require_memory
from . import Names
from .columns import (
    are_distinct,
    decode_categories,
    encode_in_order_of_appearance,
    find_missing,
    find_present,
    is_present,
    is_text,
    lookup,
    share_categories,
    to_column,
    to_values,
)
from .tables import Table, refuse_roles

# A table is recognised as wide only if its cells hold few different labels.
MOST_LABELS = 20
# In a matrix with fewer rows, ids of the items are known by the name of their column alone.
FEWEST_ROWS = 5
# Columns with such names hold no worker's answers.
_SUMMARIES = re.compile(
    r"(consensus|majority|final|adjudicated|aggregated?|average|mean|median|total|sum|count|agreement|duplicate|status)"
    r"|(is|has|n|num)_"
)
_IGNORE = Sentence("Leave columns that hold no answers out with {ignore}.")
# Roles of columns that a table with one column per worker does not have.
_ROLES = ("worker", "label", "sequence", "position", "weight", "order")


def read_wide(table: Table, names: Names, named: bool) -> Table | None:
    """One row per answer from one row per item.

    It is recognised if its columns hold the same few labels.
    """
    item, gold = _find_keys(table, names)
    workers = _list_workers(table, item, gold)
    if named:
        refuse_roles(table, names, _ROLES, "with one column per worker")
        return _melt(table, table.need("item", names.get("item"), parameter="item"), workers, gold)
    labels = None if item not in table.names or len(workers) < 2 else _find_labels(table, workers)
    if item is None or labels is None:
        return None
    counts = Counter(label for each in labels for label in each)
    shared = {label for label, count in counts.items() if count > 1}
    alike = 2 <= len(counts) <= MOST_LABELS and 2 * len(shared) >= len(counts) and all(each & shared for each in labels)
    if not alike or any(_SUMMARIES.match(str(name).lower()) for name in workers) or not are_distinct(table.read(item)):
        return None
    remedies = [Sentence("To be sure, give {format}.", format="wide"), _IGNORE]
    if counts.keys() == {-1, 0, 1}:
        remedies.append(Sentence("Most cells may be -1: if that is no answer, give {format}.", format="matrix"))
    problem = f"{table.name} has no column of workers. Each of these columns is taken for one: {listing(workers)}."
    warn_of(problem, *remedies)
    return _melt(table, item, workers, gold)


def read_matrix(table: Table, names: Names, named: bool) -> Table | None:
    """The same of a table in which -1 is no answer, and which may have no column of items.

    It is recognised if most cells are -1 beside whole numbers from 0 on. Beside 1 alone -1 is an ordinary answer. With
    0 and 1 it may be a scale, such as that of sentiment: then it is silence only if most columns hold one label beside
    it, as those of functions do.
    """
    if named:
        refuse_roles(table, names, _ROLES, "with one column per worker")
        item = None if names.get("item") is None else table.find("item", names["item"])
        gold = None if names.get("gold") is None else table.find("gold", names["gold"])
    else:
        item, gold = _find_keys(table, names)
        if item is not None and item not in table.names:
            return None
    workers = _list_workers(table, item, gold)
    has_ids = item is None and _are_ids(table, workers)
    if not named:
        labels = _find_labels(table, workers[has_ids:])
        columns: list[Any] = [table.read(name) for name in workers[has_ids:]]
        if labels is None or len(columns) < 2 or not all(pa.types.is_integer(each.type) for each in columns):
            return None
        own = [each - {-1} for each in labels]
        said: set[int] = set().union(*own)
        if not said or min(said) < 0 or said == {1}:
            return None
        n_silent = sum(pc.sum(pc.equal(each, -1)).as_py() or 0 for each in columns)
        one_sided = 2 * sum(len(each) <= 1 for each in own) > len(own)
        if 2 * n_silent <= sum(map(len, columns)) or (said == {0, 1} and not one_sided):
            return None
        warn_of(
            f"Most cells of {table.name} are -1, as where labelling functions vote. So -1 is taken for no answer, and "
            "each column for a worker.",
            Sentence("To be sure, give {format}.", format="matrix"),
            Sentence("If -1 is an answer, give {format}.", format="wide"),
        )
    if has_ids:
        item, *workers = workers
        warn_of(
            f"The first column of {table.name}, {shorten(item)}, is taken for ids of the items: no two rows have "
            "the same.",
            Sentence("To be sure, name it: {item}.", item=item),
            "If it holds answers of a worker, move it to another place.",
        )
    return _melt(table, item, workers, gold, missing=-1)


def _find_keys(table: Table, names: Names) -> tuple[str | None, str | None]:
    """The column of items, unless several may be it, and that of known labels, if there are any."""
    candidates = table.candidates("item")
    item = names.get("item")
    if item is None:
        item = table.find_usual("item") or (candidates[0] if len(candidates) == 1 else None)
    return item, table.find("gold", names.get("gold"))


def _list_workers(table: Table, item: str | None, gold: str | None) -> list[str]:
    """The columns of workers: all others."""
    absent = [name for name in table.ignored if not is_among(name, table.names)]
    if absent:
        raise InputError(f"{table.name} has no column {listing(absent)}. {table.list_columns()}.")
    return [name for name in table.names if name not in (item, gold, *table.ignored)]


def _find_labels(table: Table, columns: Sequence[str]) -> list[set[Any]] | None:
    """The labels in each column; None if one holds none, fractions, or too many."""
    found = []
    for column in map(table.read, columns):
        if isinstance(column, np.ndarray) or pa.types.is_floating(column.type):
            return None
        found.append(set(pc.unique(decode_categories(column)).to_pylist()) - {None})
        if not 1 <= len(found[-1]) <= MOST_LABELS:
            return None
    return found


def _are_ids(table: Table, columns: Sequence[str]) -> bool:
    """Whether the first column of a matrix holds ids instead of answers.

    All its values are different then, and it has a name of items, or holds other values than the other columns.
    """
    first = table.read(columns[0]) if len(columns) > 1 and table.n_rows else to_column([None])
    if len(find_missing(first)) or not are_distinct(first):
        return False
    if columns[0] in (table.find_usual("item"), *table.candidates("item")):
        return True
    labels: set[Any] = set()
    for column in map(table.read, columns[1:]):
        labels.update(encode_in_order_of_appearance(column.take(find_present(column)))[1].tolist())
        if len(labels) >= table.n_rows:
            return False
    return table.n_rows >= FEWEST_ROWS and 2 * len(labels.intersection(to_values(first).tolist())) < table.n_rows


def _melt(table: Table, item: str | None, workers: Sequence[str], gold: str | None, missing: object = None) -> Table:
    """One row per answer; `missing` stands for no answer, beside empty cells."""
    if not workers or not table.n_rows:
        raise InputError(f"{table.name} has no columns of workers, or no rows.", "Give one column for each worker.")
    require_memory(NUMBER * table.n_rows * len(workers), f"{table.name} has {table.n_rows:,} x {len(workers):,} cells")
    columns: list[Any] = [table.read(name) for name in workers]
    scales = [each for each in columns if getattr(getattr(each, "type", None), "ordered", False)]
    categories = scales[0].dictionary if len(scales) == len(columns) and share_categories(scales) else None
    columns = [each if isinstance(each, np.ndarray) else decode_categories(each) for each in columns]
    for w, column in enumerate(columns):
        if not isinstance(column, np.ndarray) and pa.types.is_floating(column.type):
            with suppress(pa.ArrowInvalid):  # pandas makes floats of whole numbers beside an empty cell
                columns[w] = pc.cast(pc.if_else(pc.is_nan(column), None, column), pa.int64())
    arrays = [each for each in columns if not isinstance(each, np.ndarray)]
    if any(is_text(each.type) for each in arrays):
        wordy = [is_text(each.type) or pa.types.is_integer(each.type) for each in arrays]
        arrays = [pc.cast(each, pa.large_string()) if w else each for each, w in zip(arrays, wordy, strict=True)]
    filled = [each for each in arrays if not pa.types.is_null(each.type)]
    if len(arrays) == len(columns) and len({each.type for each in filled}) == 1:
        entries = to_column(pa.chunked_array([pc.cast(each, filled[0].type) for each in arrays]))
    else:
        entries = to_column([entry for each in columns for entry in to_values(each).tolist()])
    there = is_present(entries)
    if missing is not None:
        there &= lookup(np.array([missing]), entries) < 0
    cells = np.flatnonzero(there)
    if not len(cells):
        raise InputError(f"{table.name} has no answers: all cells of {listing(workers)} are empty.")
    codes, values = encode_in_order_of_appearance(entries.take(cells))
    who, row = np.divmod(cells, table.n_rows)

    # Columns of many values that no other column holds are no answers, and are left out.
    pairs = np.unique(who * len(values) + codes)
    owner, code = np.divmod(pairs, len(values))
    n_labels = np.bincount(owner, minlength=len(workers))
    is_shared = np.bincount(code)[code] > 1
    alone = (np.bincount(owner, is_shared, len(workers)) == 0) & (n_labels > 0) & (len(workers) > 2)
    many = alone & (n_labels > MOST_LABELS) & (alone.sum() < len(workers))
    few = [workers[w] for w in np.flatnonzero(alone & ~many).tolist()]
    if few:
        problem = f"No other column of {table.name} holds any of the values of {listing(few)}."
        warn_of(f"{problem} Each column is taken for a worker.", _IGNORE)
    if many.any():
        left_out = listing([workers[w] for w in np.flatnonzero(many).tolist()])
        problem = f"Columns of {table.name} with many values that no other column holds are left out: {left_out}."
        warn_of(problem, Sentence("Name them with {ignore} to silence this warning."))
    kept = np.flatnonzero(~many[who])
    kept = kept[np.argsort(row[kept], kind="stable")]
    who, row, label = who[kept], row[kept], to_column(values).take(codes[kept])
    if categories is not None:
        places = pc.index_in(label, value_set=categories)
        label = pa.DictionaryArray.from_arrays(places, categories, ordered=True)
    numbered = [str(name) for name in workers] == [str(n) for n in range(len(workers))]
    name_of_worker = to_column(list(range(len(workers))) if numbered else list(workers))
    return table.melt(
        item, gold, row, lambda at: f"column {workers[int(who[at])]!r}", worker=name_of_worker.take(who), label=label
    )


# ------------------------------------------------------------------------------------------------------------ platforms


def read_mturk(table: Table, names: Names, named: bool) -> Table:  # noqa: ARG001
    """Rows that were not rejected; answers as JSON text and options in columns of their own become columns."""
    table = _leave_out(table, "AssignmentStatus", ["rejected"], "rejected")
    tasks = "Answer.taskAnswers"
    if tasks in table.names:
        fields: dict[str, list[str | None]] = defaultdict(lambda: [None] * table.n_rows)
        for row, text in enumerate(_list_entries(table, tasks)):
            try:
                record = json.loads(text) if isinstance(text, str) else {}
                record = record[0] if isinstance(record, list) and len(record) == 1 else record or {}
                answers = list(record.items())
            except (ValueError, RecursionError, AttributeError):
                raise InputError(
                    f"Column {tasks!r} of {table.name} must hold one JSON object per row. Got {shorten(text)} at "
                    f"{table.locate(row)}.",
                    "Correct or remove the row.",
                ) from None
            for name, value in answers:
                for suffix, entry in value.items() if isinstance(value, dict) else [("", value)]:
                    if isinstance(entry, (str, bool, int, float)):
                        column = f"Answer.{name}.{suffix}" if suffix else f"Answer.{name}"
                        fields[column][row] = str(entry).lower() if isinstance(entry, bool) else str(entry)
        table = table.add(
            {name: to_column(pa.array(each, pa.string())) for name, each in fields.items() if name not in table.names}
        )
    # Options of one question of which at most one is ticked; where several may be, each is a question of its own.
    questions = [name for name in _starting(table, "Answer.") if name != tasks]
    groups: dict[str, list[str]] = defaultdict(list)
    for name in questions:
        question, dot, _ = name.rpartition(".")
        if dot and question != "Answer":
            groups[question].append(name)
    for question, options in groups.items():
        cells = [[str(entry or False).lower() for entry in _list_entries(table, name)] for name in options]
        rows = list(zip(*cells, strict=True))
        is_ticked = {entry for each in cells for entry in each} <= {"true", "false"}
        if question in table.names or len(options) < 2 or not is_ticked or any(row.count("true") > 1 for row in rows):
            continue
        parts = [name.removeprefix(f"{question}.") for name in options]
        chosen = [parts[row.index("true")] if "true" in row else None for row in rows]
        table = table.add({question: to_column(pa.array(chosen, pa.string()))})
        questions = [question, *(name for name in questions if name not in options)]
    item = _choose_item(table, _starting(table, "Input."), "HITId", names)
    label = _choose_question(table, questions, names, "MTurk results")
    return replace(table, preferred={"item": item, "worker": "WorkerId", "label": label})


def read_toloka(table: Table, names: Names, named: bool) -> Table:  # noqa: ARG001
    """Rows that say who answered or what, and were not rejected."""
    worker, questions = "ASSIGNMENT:worker_id", _starting(table, "OUTPUT:")
    filled = np.any([is_present(table.read(name)) for name in (worker, *questions)], axis=0)
    if filled.any() and not filled.all():  # blank lines stand between task suites
        table = table.keep(np.flatnonzero(filled))
    table = _leave_out(table, "ASSIGNMENT:status", ["rejected"], "rejected")
    label = _choose_question(table, questions, names, "Toloka assignments")
    item = _choose_item(table, _starting(table, "INPUT:"), "ASSIGNMENT:task_id", names)
    preferred = {"item": item, "worker": worker, "label": label, "gold": f"GOLDEN:{label.removeprefix('OUTPUT:')}"}
    return replace(table, preferred=preferred)


def read_appen(table: Table, names: Names, named: bool) -> Table:  # noqa: ARG001
    """Rows that can be trusted, with known answers of test questions; several accepted answers are no known label."""
    table = _leave_out(table, "_tainted", ["true", "1"], "not to be trusted")
    columns = [str(name) for name in table.names]
    # Questions have known answers beside them; without any it is the one with a usual name, or all other columns.
    questions = [name for name in columns if f"{name}_gold" in columns]
    if not questions:
        usual = table.find_usual("label")
        others = [name for name in columns if not re.match(r"_|orig__|.*_gold(_reason)?$", name, re.DOTALL)]
        questions = others if usual is None else [usual]
    label = _choose_question(table, questions, names, "a full report of Appen")
    gold = f"{label}_gold"
    if gold in columns:
        known = _list_entries(table, gold)
        if "_golden" in columns:
            tests = [str(value).lower() in ("true", "1") for value in _list_entries(table, "_golden")]
            known = [value if is_test else None for value, is_test in zip(known, tests, strict=True)]
        known = [None if isinstance(value, str) and "\n" in value.strip() else value for value in known]
        table = table.add({gold: to_column(known)})
    preferred = {"item": names.get("item") or "_unit_id", "worker": "_worker_id", "label": label, "gold": gold}
    return replace(table, preferred=preferred)


def _list_entries(table: Table, name: str) -> list[Any]:
    """The entries of a column, None where one is missing."""
    column = table.read(name)
    return [entry if is_there else None for entry, is_there in zip(column.tolist(), is_present(column), strict=True)]


def _starting(table: Table, prefix: str) -> list[str]:
    return [str(name) for name in table.names if str(name).startswith(prefix)]


def _choose_question(table: Table, questions: Sequence[str], names: Names, kind: str) -> str:
    """The column of answers: the one that was named, or the only question that somebody answered."""
    if names.get("label") is not None:
        return table.need("label", names["label"], parameter="label")
    answered = [name for name in questions if len(find_missing(table.read(name))) < table.n_rows]
    if len(answered) == 1:
        return answered[0]
    if not answered:
        found = f"nothing in {listing(questions, len(questions))}" if questions else "no column of answers"
        raise InputError(
            f"{table.name} looks like {kind}, but there is {found}.",
            Sentence("Name the column of answers with {label}."),
        )
    error = ManyQuestionsError(
        f"{table.name} ({kind}) has {plural(len(answered), 'question')}: {listing(answered, len(answered))}.",
        Sentence("Choose one with {label}."),
        keyword="label",
    )
    error.questions = tuple(answered)
    raise error


def _choose_item(table: Table, inputs: Sequence[str], key: str, names: Names) -> str:
    """The column of items: the one that was named, the only input, if no row lacks it, else the platform's own key."""
    if names.get("item") is not None:
        return table.need("item", names["item"], parameter="item")
    if len(inputs) == 1 and not len(find_missing(table.read(inputs[0]))):
        return inputs[0]
    if key not in table.names:
        raise table.many_columns("item", inputs, "item")
    return key


def _leave_out(table: Table, column: str, values: Sequence[str], what: str) -> Table:
    """The table without the rows that have one of some values in a column, in any case; a warning counts them."""
    if column not in table.names:
        return table
    kept = np.flatnonzero([str(state).lower() not in values for state in _list_entries(table, column)])
    n_left = table.n_rows - len(kept)
    if n_left:
        verb = "was" if n_left == 1 else "were"
        warn_of(
            f"{plural(n_left, 'row')} of {table.name} {verb} left out as {what} (column {column!r}).",
            Sentence("To use all rows, use {format}, and name the columns.", format="long"),
        )
    if not len(kept):
        raise InputError(f"No row of {table.name} is left.")
    return table.keep(kept)
