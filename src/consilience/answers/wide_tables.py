"""Wide tables: one row per item, one column per worker. An empty cell is no answer.

A matrix is a wide table of labelling functions, as snorkel has them: -1 is no answer either, and without a column of
items row n is item n. It is recognised where most cells are -1, unless that may be the low end of a scale.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import is_among
from ..errors import InputError, ManyQuestionsError, Sentence, listing, plural, shorten, warn_of
from ..limits import NUMBER, require_memory
from . import Names
from .columns import (
    Codes,
    Column,
    Values,
    are_distinct,
    decode_categories,
    encode_in_order_of_appearance,
    find_missing,
    find_present,
    is_ordered,
    is_present,
    is_text,
    join_columns,
    lookup,
    share_categories,
    to_column,
    to_values,
)
from .soft_votes import are_shares, to_numbers
from .tables import Table, plays, refuse_roles

# A table is recognised as wide only if its cells hold few different labels.
MOST_LABELS = 20
# In a table of labelling functions, more cells than this share are -1.
MOST_SILENT = 0.5
# In a matrix with fewer rows, ids of the items are known by the name of their column alone.
FEWEST_ROWS = 5
# Columns with such names hold no worker's answers.
_SUMMARIES = re.compile(
    r"(consensus|majority|final|adjudicated|aggregated?|average|mean|median|total|sum|count|agreement|duplicate|status)"
    r"|(is|has|n|num)_"
)
IGNORE = Sentence("Leave columns that hold no answers out with {ignore}.")
MINUS_ONE = Sentence("Most cells are -1: if that is no answer, give {format}.", format="matrix")
# Roles of columns that a table with one column per worker does not have.
_OTHERS = ("worker", "label", "sequence", "position", "weight", "order")


def _find_item(table: Table, names: Names) -> str | None:
    """The column of items, None if there is none or several may be it."""
    found = table.candidates("item")
    return names.get("item") or table.find_usual("item") or (found[0] if len(found) == 1 else None)


def _list_workers(table: Table, item: str | None, gold: str | None) -> list[str]:
    """The columns of workers: all others."""
    absent = [name for name in table.ignored if not is_among(name, table.names)]
    if absent:
        raise InputError(
            f"{table.name} has no column {listing(absent)}. It has {listing(map(str, table.names), len(table.names))}."
        )
    return [name for name in table.names if name not in (item, gold, *table.ignored)]


def recognise_wide(table: Table, names: Names) -> bool:
    """Tell whether a table has one row per item, no worker and no label, and others that hold the same few labels."""
    if names.get("order") is not None or plays(table, names, *_OTHERS[:-1]):
        return False
    item = _find_item(table, names)
    workers = _list_workers(table, item, table.find("gold"))
    if item not in table.names or len(workers) < 2 or any(_SUMMARIES.match(str(name).lower()) for name in workers):
        return False
    sets = []
    for column in map(table.read, workers):
        if isinstance(column, np.ndarray) or pa.types.is_floating(column.type):
            return False
        sets.append(set(pc.unique(decode_categories(column)).to_pylist()) - {None})
        if not 1 <= len(sets[-1]) <= MOST_LABELS:
            return False
    # All but a few of the labels are in several columns.
    counts = {label: sum(label in each for each in sets) for label in set().union(*sets)}
    n_shared = sum(count > 1 for count in counts.values())
    each_shares = all(any(counts[label] > 1 for label in each) for each in sets)
    few = 2 <= len(counts) <= MOST_LABELS
    return few and each_shares and 2 * n_shared >= len(counts) and are_distinct(table.read(str(item)))


def recognise_matrix(table: Table, names: Names) -> bool:
    """Tell whether most cells of a table, which has no worker and no label, are -1 beside whole numbers from 0 on.

    Beside 1 alone -1 is an ordinary answer. With 0 and 1 it may be a scale, such as that of sentiment. Then it is
    silence only if most columns hold one label beside it, as those of functions do.
    """
    if names.get("order") is not None or plays(table, names, *_OTHERS[:-1]):
        return False
    item = _find_item(table, names)
    if item is not None and item not in table.names:
        return False
    workers = _list_workers(table, item, table.find("gold"))
    if item is None and _are_ids(table, workers):
        workers = workers[1:]
    if len(workers) < 2:
        return False
    labels, n_one_sided = _find_labels_beside_silence(table, workers)
    if not labels or min(labels) < 0 or labels == {1}:
        return False
    return labels != {0, 1} or 2 * n_one_sided > len(workers)


def _find_labels_beside_silence(table: Table, workers: Sequence[str]) -> tuple[set[int], int]:
    """The labels beside -1 where that is most of the cells, and how many columns hold only one; else none."""
    n_silent, n_cells, n_one_sided, said = 0, 0, 0, set[int]()
    for column in map(table.read, workers):
        if isinstance(column, np.ndarray) or not pa.types.is_integer(column.type):
            return set(), 0
        own = set(pc.unique(column.drop_null()).to_pylist()) - {-1}
        said |= own
        if len(said) > MOST_LABELS:
            return set(), 0
        n_one_sided += len(own) <= 1
        n_silent += pc.sum(pc.equal(column, -1)).as_py() or 0
        n_cells += len(column)
    return (said, n_one_sided) if n_silent > MOST_SILENT * n_cells else (set(), 0)


def _are_ids(table: Table, columns: Sequence[str]) -> bool:
    """Tell whether the first column of a matrix holds ids instead of answers.

    All its values are different then. It has a name of items, or there are more rows than labels in the other columns,
    which hold less than half of its values.
    """
    if len(columns) < 2 or not table.n_rows:
        return False
    first = table.read(columns[0])
    if len(find_missing(first)) or not are_distinct(first):
        return False
    if columns[0] in (table.find_usual("item"), *table.candidates("item")):
        return True
    if table.n_rows < FEWEST_ROWS:
        return False
    labels: set[Any] = set()
    for column in map(table.read, columns[1:]):
        labels.update(encode_in_order_of_appearance(column.take(find_present(column)))[1].tolist())
        if len(labels) >= table.n_rows:
            return False
    return 2 * len(labels.intersection(to_values(first).tolist())) < table.n_rows


def translate_wide(table: Table, names: Names) -> Table:
    """One row per answer from one row per item."""
    refuse_roles(table, names, _OTHERS, "with one column per worker")
    item = table.need("item", names.get("item"), parameter="item")
    gold = table.find("gold", names.get("gold"))
    workers = _list_workers(table, item, gold)
    if names.get("format") is None:
        warn_of(
            f"{table.name} has no column of workers. Each of these columns is taken for one: {listing(workers)}.",
            Sentence("To be sure, give {format}.", format="wide"),
            IGNORE,
            *([MINUS_ONE] if _find_labels_beside_silence(table, workers)[0] == {0, 1} else []),
        )
    return replace(melt(table, item, workers, gold), format="wide")


def translate_matrix(table: Table, names: Names) -> Table:
    """The same of a table in which -1 is no answer, and which may have no column of items."""
    refuse_roles(table, names, _OTHERS, "with one column per worker")
    recognised, gold = names.get("format") is None, names.get("gold")
    item = _find_item(table, names) if recognised or names.get("item") else None
    item = None if item is None else table.find("item", item)
    gold = table.find("gold", gold) if recognised or gold is not None else None
    workers = _list_workers(table, item, gold)
    if recognised:
        warn_of(
            f"Most cells of {table.name} are -1, as where labelling functions vote. So -1 is taken for no answer, and "
            "each column for a worker.",
            Sentence("To be sure, give {format}.", format="matrix"),
            Sentence("If -1 is an answer, give {format}.", format="wide"),
        )
    if item is None and _are_ids(table, workers):
        item, *workers = workers
        warn_of(
            f"The first column of {table.name}, {shorten(item)}, is taken for ids of the items: no two rows have "
            "the same.",
            Sentence("To be sure, name it: {item}.", item=item),
            "If it holds answers of a worker, move it to another place.",
        )
    return replace(melt(table, item, workers, gold, missing=-1), format="matrix")


def melt(table: Table, item: str | None, workers: Sequence[str], gold: str | None, missing: object = None) -> Table:
    """A wide table with one row per answer.

    Parameters
    ----------
    table : Table
        The wide table.
    item : str or None
        The column of items; None: row n is item n.
    workers : sequence of str
        The columns of answers.
    gold : str or None
        The column of known labels.
    missing : label, optional
        What stands for no answer, beside empty cells.
    """
    keys = pa.array(np.arange(table.n_rows))
    if item is not None:
        keys = table.values(item, "Say which item each row is about.")
    if not workers or not table.n_rows:
        raise InputError(f"{table.name} has no columns of workers, or no rows.", "Give one column for each worker.")
    require_memory(NUMBER * table.n_rows * len(workers), f"{table.name} has {table.n_rows:,} x {len(workers):,} cells")
    codes, labels = _encode(table, workers)
    if missing is not None:
        codes[np.isin(codes, np.flatnonzero(lookup(np.array([missing]), labels) >= 0))] = -1
    owner, who = np.nonzero(codes >= 0)
    if not len(owner):
        raise InputError(f"{table.name} has no answers: all cells are empty.")
    numbered = [str(name) for name in workers] == [str(n) for n in range(len(workers))]
    names = to_column(list(range(len(workers))) if numbered else list(workers))
    roles = {
        "item": ("row" if item is None else item, keys.take(owner)),
        "worker": ("column name", names.take(who)),
        "label": ("cell", labels.take(codes[owner, who])),
    }
    if gold is not None:
        roles["gold"] = gold, table.read(gold).take(owner)

    def locate(row: int) -> str:
        return f"{table.locate(int(owner[row]))}, column {workers[int(who[row])]!r}"

    return table.lay_out(roles, locate, to_column(encode_in_order_of_appearance(keys)[1]))


def _encode(table: Table, workers: Sequence[str]) -> tuple[Codes, Column]:
    """For each row and worker the index of the label, -1 for none, and the labels.

    Columns of many values that no other column holds are no answers, and are left out.
    """
    codes = np.full((table.n_rows, len(workers)), -1, np.int32)
    vocabularies, scales = [], list[pa.DictionaryArray]()
    for w, column in enumerate(map(table.read, workers)):
        scales += [column] if is_ordered(column) else []
        present = find_present(column)
        codes[present, w], values = encode_in_order_of_appearance(column.take(present))
        said = to_column(values)
        if not isinstance(said, np.ndarray) and pa.types.is_floating(said.type):
            with suppress(pa.ArrowInvalid):  # pandas makes floats of whole numbers beside an empty cell
                said = pc.cast(said, pa.int64())
        vocabularies.append(said)
    if any(not isinstance(each, np.ndarray) and is_text(each.type) for each in vocabularies):
        vocabularies = [
            pc.cast(each, pa.string()) if not isinstance(each, np.ndarray) and pa.types.is_integer(each.type) else each
            for each in vocabularies
        ]
    filled = [each for each in vocabularies if len(each)]
    if not filled:
        raise InputError(f"{table.name} has no answers: all cells of {listing(workers)} are empty.")
    _, distinct = encode_in_order_of_appearance(reduce(join_columns, filled))
    places = [lookup(distinct, each) for each in vocabularies]
    for w, place in enumerate(places):
        codes[:, w] = np.append(place, -1)[codes[:, w]]  # -1 is the last
    times = np.bincount(np.concatenate([np.unique(place) for place in places]).astype(np.int64))
    alone = [w for w, place in enumerate(places) if len(place) and times[place].max() == 1] if len(workers) > 2 else []
    many = [w for w in alone if len(places[w]) > MOST_LABELS] if len(alone) < len(workers) else []
    few = [workers[w] for w in alone if w not in many]
    if few:
        problem = f"No other column of {table.name} holds any of the values of {listing(few)}."
        warn_of(f"{problem} Each column is taken for a worker.", IGNORE)
    if many:
        left_out = listing([workers[w] for w in many])
        problem = f"Columns of {table.name} with many values that no other column holds are left out: {left_out}."
        warn_of(problem, Sentence("Name them with {ignore} to silence this warning."))
        codes[:, many] = -1
    if len(scales) == len(workers) and share_categories(scales):
        known = scales[0].dictionary
        return codes, pa.DictionaryArray.from_arrays(lookup(to_values(known), to_column(distinct)), known, ordered=True)
    return codes, to_column(distinct)


def refuse_shares(table: Table, labels: Values) -> None:
    """Raise an error for labels of a wide table that seem to be probabilities."""
    numbers = to_numbers(to_column(labels))
    if numbers is not None and are_shares(numbers):
        raise InputError(
            f"{table.name} has fractions between 0 and 1 where labels should be, such as {labels.tolist()[0]}.",
            "If they are the probabilities of one of two classes, give each worker a column for each class, such as "
            "forest_yes and forest_no; the other one is 1 minus the first.",
            Sentence("If they are levels, say so with {ordered}.", ordered=True),
        )


_ALL_ANSWERS = "Answer.taskAnswers"
_TRUTH = {"true": True, "false": False}
_GOLD = "_gold"


def _list_entries(column: Column) -> list[Any]:
    """The entries of a column, None where one is missing."""
    missing = set(find_missing(column).tolist())
    entries = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return [None if row in missing else entry for row, entry in enumerate(entries)] if missing else entries


def _starting(table: Table, prefix: str) -> list[str]:
    return [str(name) for name in table.names if str(name).startswith(prefix)]


def _choose_question(table: Table, questions: Sequence[str], names: Names, kind: str) -> str:
    """The column of answers: the one that was named, or the only question that somebody answered.

    `kind` is what messages call the table.
    """
    if names.get("label") is not None:
        return table.need("label", names["label"], parameter="label")
    answered = [name for name in questions if len(find_missing(table.read(name))) < table.n_rows]
    if len(answered) == 1:
        return answered[0]
    if not answered:
        verb = "is" if len(questions) == 1 else "are"
        found = f"{listing(questions, len(questions))} {verb} empty" if questions else "there is no column of answers"
        raise InputError(
            f"{table.name} looks like {kind}, but {found}.", Sentence("Name the column of answers with {label}.")
        )
    error = ManyQuestionsError(
        f"{table.name} ({kind}) has {plural(len(answered), 'question')}: {listing(answered, len(answered))}.",
        Sentence("Choose one with {label}."),
        keyword="label",
    )
    error.questions = tuple(answered)
    raise error


def _choose_item(table: Table, inputs: Sequence[str], key: str, names: Names) -> str:
    """The column of items: the one that was named, the only input, else the platform's own key.

    An input without which a row exists does not identify it.
    """
    if names.get("item") is not None:
        return table.need("item", names["item"], parameter="item")
    if len(inputs) == 1 and not len(find_missing(table.read(inputs[0]))):
        return inputs[0]
    if key not in table.names:
        raise table.many_columns("item", inputs, "item")
    return key


def _leave_out(table: Table, column: str, values: Sequence[str], what: str) -> Table:
    """The table without the rows that have one of some values in a column, in any case; a warning counts them.

    `what` says in a word or two what these rows are.
    """
    if column not in table.names:
        return table
    kept = np.flatnonzero([str(state).lower() not in values for state in _list_entries(table.read(column))])
    n_left = table.n_rows - len(kept)
    if not n_left:
        return table
    warn_of(
        f"{plural(n_left, 'row')} of {table.name} {'was' if n_left == 1 else 'were'} left out as {what} (column "
        f"{column!r}).",
        Sentence("To use all rows, use {format}, and name the columns.", format="long"),
    )
    if not len(kept):
        raise InputError(f"No row of {table.name} is left.")
    return table.keep(kept)


# ---------------------------------------------------------------------------------------------------------------- MTurk


def recognise_mturk(table: Table, names: Names) -> bool:  # noqa: ARG001
    """Tell results with answers."""
    return bool(_starting(table, "Answer."))


def translate_mturk(table: Table, names: Names) -> Table:
    """Rows that were not rejected; answers as JSON text and options in columns of their own become columns."""
    table = _leave_out(table, "AssignmentStatus", ["rejected"], "rejected")
    if _ALL_ANSWERS in table.names:
        fields: dict[str, list[str | None]] = defaultdict(lambda: [None] * table.n_rows)
        for row, text in enumerate(_list_entries(table.read(_ALL_ANSWERS))):
            for name, value in _parse(table, row, text).items():
                for suffix, entry in value.items() if isinstance(value, dict) else [("", value)]:
                    if isinstance(entry, (str, bool, int, float)):
                        column = f"Answer.{name}.{suffix}" if suffix else f"Answer.{name}"
                        fields[column][row] = str(entry).lower() if isinstance(entry, bool) else str(entry)
        new = {name: to_column(pa.array(each, pa.string())) for name, each in fields.items() if name not in table.names}
        table = table.add(new)
    questions, table = _join_options(table)
    preferred = {
        "item": _choose_item(table, _starting(table, "Input."), "HITId", names),
        "worker": "WorkerId",
        "label": _choose_question(table, questions, names, "MTurk results"),
    }
    return replace(table, preferred=preferred, format="mturk")


def _parse(table: Table, row: int, text: object) -> dict[str, Any]:
    """The answers in one row: a JSON object, or a list with one."""
    try:
        record = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        record = None
    if isinstance(record, list):
        record = record[0] if len(record) == 1 else {} if not record else None
    if not isinstance(record, dict):
        raise InputError(
            f"Column {_ALL_ANSWERS!r} of {table.name} must hold one JSON object per row. Got {shorten(text)} at "
            f"{table.locate(row)}.",
            "Correct or remove the row.",
        )
    return record


def _join_options(table: Table) -> tuple[list[str], Table]:
    """The questions, and the table with a column for each question whose options have a column each."""
    questions = [name for name in _starting(table, "Answer.") if name != _ALL_ANSWERS]
    groups: dict[str, list[str]] = defaultdict(list)
    for name in questions:
        stem, dot, _ = name.removeprefix("Answer.").rpartition(".")
        if dot:
            groups[f"Answer.{stem}"].append(name)
    joined: dict[str, Column] = {}
    options: set[str] = set()
    for stem, members in groups.items():
        cells = [_list_entries(table.read(name)) for name in members]
        said = [["false" if value is None else str(value).lower() for value in each] for each in cells]
        if stem in table.names or len(members) < 2 or not _TRUTH.keys() >= {text for each in said for text in each}:
            continue
        ticked = list(zip(*([_TRUTH[text] for text in each] for each in said), strict=True))
        if any(sum(row) > 1 for row in ticked):
            continue  # boxes of which several may be ticked: each is a question of its own
        parts = [name.removeprefix(f"{stem}.") for name in members]
        joined[stem] = to_column(
            pa.array([parts[row.index(True)] if True in row else None for row in ticked], pa.string())
        )
        options.update(members)
    return [*joined, *(name for name in questions if name not in options)], table.add(joined)


# --------------------------------------------------------------------------------------------------------------- Toloka


def recognise_toloka(table: Table, names: Names) -> bool:  # noqa: ARG001
    """Tell assignments with answers."""
    return bool(_starting(table, "OUTPUT:"))


def translate_toloka(table: Table, names: Names) -> Table:
    """Rows that say who answered or what, and were not rejected."""
    worker, questions = "ASSIGNMENT:worker_id", _starting(table, "OUTPUT:")
    filled = np.any([is_present(table.read(name)) for name in (worker, *questions)], axis=0)
    if filled.any() and not filled.all():  # blank lines stand between task suites
        table = table.keep(np.flatnonzero(filled))
    table = _leave_out(table, "ASSIGNMENT:status", ["rejected"], "rejected")
    label = _choose_question(table, questions, names, "Toloka assignments")
    item = _choose_item(table, _starting(table, "INPUT:"), "ASSIGNMENT:task_id", names)
    preferred = {"item": item, "worker": worker, "label": label, "gold": f"GOLDEN:{label.removeprefix('OUTPUT:')}"}
    return replace(table, preferred=preferred, format="toloka")


# ---------------------------------------------------------------------------------------------------------------- Appen


def recognise_appen(table: Table, names: Names) -> bool:  # noqa: ARG001
    """Columns that are needed are enough."""
    return True


def translate_appen(table: Table, names: Names) -> Table:
    """Rows that can be trusted, with known answers of test questions; several accepted answers are no known label."""
    table = _leave_out(table, "_tainted", ["true", "1"], "not to be trusted")
    columns = [str(name) for name in table.names]
    # Questions have known answers beside them; without any it is the one with a usual name, or all other columns.
    questions = [name for name in columns if name + _GOLD in columns]
    if not questions:
        usual, own = table.find_usual("label"), ("_", "orig__")
        others = [name for name in columns if not name.startswith(own) and not name.endswith((_GOLD, "_gold_reason"))]
        questions = others if usual is None else [usual]
    label = _choose_question(table, questions, names, "a full report of Appen")
    gold = label + _GOLD
    preferred = {"item": names.get("item") or "_unit_id", "worker": "_worker_id", "label": label, "gold": gold}
    if gold in columns:
        is_test = [True] * table.n_rows
        if "_golden" in columns:
            is_test = [str(value).lower() in ("true", "1") for value in _list_entries(table.read("_golden"))]
        known = to_column(
            [
                value if test and not (isinstance(value, str) and "\n" in value.strip()) else None
                for value, test in zip(_list_entries(table.read(gold)), is_test, strict=True)
            ]
        )
        read = table.read
        table = replace(table, read=lambda wanted: known if wanted == gold else read(wanted))
    return replace(table, preferred=preferred, format="appen")
