"""Results of Amazon Mechanical Turk: the CSV file that the Requester website offers for a batch.

There is one row per assignment, with columns HITId, WorkerId, AssignmentStatus (Submitted, Approved or Rejected), one
column ``Input.<name>`` for each variable of the task, and ``Answer.<name>`` for each field that workers fill in. Crowd
HTML elements write

- a classifier as one column ``Answer.<name>.label``,
- radio buttons as one column per option, ``Answer.<name>.<option>``, that says true or false,
- or all answers as JSON text in one column ``Answer.taskAnswers``.

Written from the Requester UI Guide and the API reference of Assignment (API version 2017-01-17). These do not say what
Crowd HTML elements write: the three forms above are those that are known.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ...errors import InputError, shorten
from ..tables import Table
from ..vocabulary import Column, to_column
from .platforms import choose_item, choose_question, leave_out, list_entries
from .register import Names, Reader

KIND = "MTurk results"
_ALL_ANSWERS = "Answer.taskAnswers"
_TRUTH = {"true": True, "false": False}


def _recognise(table: Table, _: Names) -> bool:
    return any(str(name).startswith("Answer.") for name in table.names)


def _translate(table: Table, names: Names) -> Table:
    table = leave_out(table, "AssignmentStatus", ["rejected"], "rejected")
    if _ALL_ANSWERS in table.names:
        table = table.add(_unpack(table))
    questions, table = _join_options(table)
    inputs = [str(name) for name in table.names if str(name).startswith("Input.")]
    preferred = {
        "item": choose_item(table, inputs, "HITId", names),
        "worker": "WorkerId",
        "label": choose_question(table, questions, names, KIND),
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


def _parse(table: Table, row: int, text: Any) -> dict[str, Any]:
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
        said = [_read_truth(table.read(name)) for name in members]
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


def _read_truth(column: Column) -> list[bool] | None:
    """Return a column of true and false as such, with false where nothing is said; None if it holds anything else."""
    texts = [None if value is None else str(value).lower() for value in list_entries(column)]
    if any(text is not None and text not in _TRUTH for text in texts):
        return None
    return [text is not None and _TRUTH[text] for text in texts]


MTURK = Reader(_recognise, _translate, ("HITId", "WorkerId"))
