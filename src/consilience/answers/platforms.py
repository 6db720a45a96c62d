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
from . import Names, Reader
from .columns import Column, find_missing, is_present, to_column
from .tables import Table

_MTURK = "MTurk results"
_ALL_ANSWERS = "Answer.taskAnswers"
_TRUTH = {"true": True, "false": False}
_TOLOKA = "Toloka assignments"
_TOLOKA_WORKER, _TOLOKA_TASK = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id"
_APPEN = "a full report of Appen"
_APPEN_ITEM, _APPEN_WORKER = "_unit_id", "_worker_id"
_APPEN_GOLD = "_gold"


def list_entries(column: Column) -> list[Any]:
    """Return the entries of a column, None where one is missing."""
    missing = set(find_missing(column).tolist())
    entries = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return [None if row in missing else entry for row, entry in enumerate(entries)] if missing else entries


def choose_question(table: Table, questions: Sequence[str], names: Names, kind: str) -> str:
    """Return the column of answers: the one that was named, or the only question that somebody answered.

    Parameters
    ----------
    table : Table
        Of the platform.
    questions : sequence of str
        The columns that hold answers.
    names : mapping
        The columns that the user named.
    kind : str
        What the table is, for messages.
    """
    given = names.get("label")
    if given is not None:
        return table.need("label", given, parameter="label")
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


def choose_item(table: Table, inputs: Sequence[str], key: str | None, names: Names) -> str | None:
    """Return the column of items: the one that was named, the only input, else the platform's own key.

    An input without which a row exists does not identify it.
    """
    if names.get("item") is not None:
        return table.need("item", names["item"], parameter="item")
    if len(inputs) == 1 and not len(find_missing(table.read(inputs[0]))):
        return inputs[0]
    return key


def leave_out(table: Table, column: str, values: Sequence[str], what: str) -> Table:
    """Return the table without the rows that have one of some values in a column, and warn of their number.

    Upper and lower case are the same. `what` says in a word or two what these rows are.
    """
    if column not in table.names:
        return table
    states = list_entries(table.read(column))
    kept = np.flatnonzero([str(state).lower() not in values for state in states])
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


def _recognise_mturk(table: Table, _: Names) -> bool:
    return any(str(name).startswith("Answer.") for name in table.names)


def _translate_mturk(table: Table, names: Names) -> Table:
    table = leave_out(table, "AssignmentStatus", ["rejected"], "rejected")
    if _ALL_ANSWERS in table.names:
        table = table.add(_unpack(table))
    questions, table = _join_options(table)
    inputs = [str(name) for name in table.names if str(name).startswith("Input.")]
    preferred = {
        "item": choose_item(table, inputs, "HITId", names),
        "worker": "WorkerId",
        "label": choose_question(table, questions, names, _MTURK),
    }
    return replace(table, preferred=preferred, format="mturk")


def _unpack(table: Table) -> dict[str, Column]:
    """Return the fields of the JSON text that holds all answers, each as a column of text."""
    fields: dict[str, list[str | None]] = defaultdict(lambda: [None] * table.n_rows)
    for row, text in enumerate(list_entries(table.read(_ALL_ANSWERS))):
        for name, value in _parse(table, row, text).items():
            for suffix, entry in value.items() if isinstance(value, dict) else [("", value)]:
                if isinstance(entry, (str, bool, int, float)):
                    column = f"Answer.{name}.{suffix}" if suffix else f"Answer.{name}"
                    fields[column][row] = str(entry).lower() if isinstance(entry, bool) else str(entry)
    return {
        name: to_column(pa.array(values, pa.string())) for name, values in fields.items() if name not in table.names
    }


def _parse(table: Table, row: int, text: object) -> dict[str, Any]:
    """Return the answers in one row: a JSON object, or a list with one."""
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
    """Return the questions, and the table with a column for each question whose options have a column each."""
    questions = [str(name) for name in table.names if str(name).startswith("Answer.") and name != _ALL_ANSWERS]
    groups: dict[str, list[str]] = defaultdict(list)
    for name in questions:
        stem, dot, _ = name.removeprefix("Answer.").rpartition(".")
        if dot:
            groups[f"Answer.{stem}"].append(name)
    joined: dict[str, Column] = {}
    options: set[str] = set()
    for stem, members in groups.items():
        said = [_read_options(table.read(name)) for name in members]
        if stem in table.names or None in said or len(members) < 2:
            continue
        ticked = list(zip(*(column for column in said if column is not None), strict=True))
        if any(sum(row) > 1 for row in ticked):
            continue  # boxes of which several may be ticked: each is a question of its own
        parts = [name.removeprefix(f"{stem}.") for name in members]
        chosen = [parts[row.index(True)] if True in row else None for row in ticked]
        joined[stem] = to_column(pa.array(chosen, pa.string()))
        options.update(members)
    return [*joined, *(name for name in questions if name not in options)], table.add(joined)


def _read_options(column: Column) -> list[bool] | None:
    """Return a column of true and false as such, with false where nothing is said; None if it holds anything else."""
    texts = [None if value is None else str(value).lower() for value in list_entries(column)]
    if any(text is not None and text not in _TRUTH for text in texts):
        return None
    return [text is not None and _TRUTH[text] for text in texts]


def _recognise_toloka(table: Table, _: Names) -> bool:
    return bool(_starting(table, "OUTPUT:"))


def _translate_toloka(table: Table, names: Names) -> Table:
    table = _drop_separators(table)
    table = leave_out(table, "ASSIGNMENT:status", ["rejected"], "rejected")
    label = choose_question(table, _starting(table, "OUTPUT:"), names, _TOLOKA)
    key = _TOLOKA_TASK if _TOLOKA_TASK in table.names else None
    item = choose_item(table, _starting(table, "INPUT:"), key, names)
    if item is None:
        raise table.many_columns("item", _starting(table, "INPUT:"), "item")
    gold = f"GOLDEN:{label.removeprefix('OUTPUT:')}"
    preferred = {"item": item, "worker": _TOLOKA_WORKER, "label": label, "gold": gold}
    return replace(table, preferred=preferred, format="toloka")


def _starting(table: Table, prefix: str) -> list[str]:
    return [str(name) for name in table.names if str(name).startswith(prefix)]


def _drop_separators(table: Table) -> Table:
    """Return the table without rows that say neither who answered nor what."""
    told = np.any([is_present(table.read(name)) for name in (_TOLOKA_WORKER, *_starting(table, "OUTPUT:"))], axis=0)
    return table.keep(np.flatnonzero(told)) if told.any() and not told.all() else table


def _translate_appen(table: Table, names: Names) -> Table:
    table = leave_out(table, "_tainted", ["true", "1"], "not to be trusted")
    label = choose_question(table, _find_questions(table), names, _APPEN)
    table = _find_gold(table, label)
    gold = label + _APPEN_GOLD
    preferred = {"item": names.get("item") or _APPEN_ITEM, "worker": _APPEN_WORKER, "label": label, "gold": gold}
    return replace(table, preferred=preferred, format="appen")


def _find_questions(table: Table) -> list[str]:
    """Return the columns that have known answers beside them; without any, the one with a usual name, or all others."""
    names = [str(name) for name in table.names]
    with_gold = [name for name in names if f"{name}{_APPEN_GOLD}" in names]
    if with_gold:
        return with_gold
    usual = table.find_usual("label")
    skipped = ("_", "orig__")
    others = [
        name for name in names if not name.startswith(skipped) and not name.endswith((_APPEN_GOLD, "_gold_reason"))
    ]
    return others if usual is None else [usual]


def _find_gold(table: Table, label: str) -> Table:
    """Return the table with the known answers of test questions; several accepted answers are no known label."""
    name = label + _APPEN_GOLD
    if name not in table.names:
        return table
    texts = list_entries(table.read(name))
    golden = np.ones(table.n_rows, bool)
    if "_golden" in table.names:
        golden = np.array([str(value).lower() in ("true", "1") for value in list_entries(table.read("_golden"))])
    known = [
        value if test and not (isinstance(value, str) and "\n" in value.strip()) else None
        for value, test in zip(texts, golden.tolist(), strict=True)
    ]
    column = to_column(known)
    return replace(table, read=lambda wanted: column if wanted == name else table.read(wanted))


MTURK = Reader(_recognise_mturk, _translate_mturk, ("HITId", "WorkerId"))
TOLOKA = Reader(_recognise_toloka, _translate_toloka, (_TOLOKA_WORKER,))
APPEN = Reader(lambda _table, _names: True, _translate_appen, (_APPEN_ITEM, _APPEN_WORKER))
