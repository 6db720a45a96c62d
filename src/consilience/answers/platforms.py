"""Tables of crowd-sourcing platforms: questions in columns, and rows that were refused.

**Amazon Mechanical Turk**: the CSV file that the Requester website offers for a batch. There is one row per assignment,
with columns HITId, WorkerId, AssignmentStatus (Submitted, Approved or Rejected), one column ``Input.<name>`` for each
variable of the task, and ``Answer.<name>`` for each field that workers fill in. Crowd HTML elements write

- a classifier as one column ``Answer.<name>.label``,
- radio buttons as one column per option, ``Answer.<name>.<option>``, that says true or false,
- or all answers as JSON text in one column ``Answer.taskAnswers``.

Written from the Requester UI Guide and the API reference of Assignment (API version 2017-01-17). These do not say what
Crowd HTML elements write: the three forms above are those that are known.

**Toloka**: the TSV file of the assignments of a pool. There is one row per answer to a task, with columns
``INPUT:<field>``, ``OUTPUT:<field>``, ``GOLDEN:<field>`` (the known answer of a control task), ``HINT:<field>``, and
``ASSIGNMENT:<property>`` such as worker_id, task_id and status (ACTIVE, SUBMITTED, APPROVED, REJECTED, SKIPPED or
EXPIRED). Blank lines stand between task suites. Columns and states have the names of ``GetAssignmentsTsvParameters`` in
toloka-kit 1.x.

**Appen** (before: Figure Eight, CrowdFlower): the CSV file of the full report of a job. There is one row per judgment.
Columns of the platform begin with an underscore: ``_unit_id``, ``_worker_id``, ``_golden`` (whether the unit is a test
question), ``_tainted`` (whether the judgment is not to be trusted), ``_trust``, ``_missed``. Others are the questions,
and the source data. A question ``<name>`` has its known answer in ``<name>_gold``, several that are accepted on a line
each, and the reason in ``<name>_gold_reason``. Columns have the names that published reports of CrowdFlower and Figure
Eight have and describe. The platform's own guide to reports does not list them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InputError, ManyQuestionsError, Sentence, listing, plural, shorten, warn_of
from . import Names
from .columns import Column, find_missing, is_present, to_column
from .tables import Table

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
