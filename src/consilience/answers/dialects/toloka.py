"""Results of Toloka: the TSV file of the assignments of a pool.

There is one row per answer to a task, with columns ``INPUT:<field>``, ``OUTPUT:<field>``, ``GOLDEN:<field>`` (the known
answer of a control task), ``HINT:<field>``, and ``ASSIGNMENT:<property>`` such as worker_id, task_id and status
(ACTIVE, SUBMITTED, APPROVED, REJECTED, SKIPPED or EXPIRED). Blank lines stand between task suites.

Columns and states have the names of ``GetAssignmentsTsvParameters`` in toloka-kit 1.x.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..tables import Table
from ..vocabulary import find_missing
from .platforms import choose_item, choose_question, leave_out
from .register import Names, Reader

KIND = "Toloka assignments"
_WORKER, _TASK = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id"


def _recognise(table: Table, _: Names) -> bool:
    return bool(_starting(table, "OUTPUT:"))


def _translate(table: Table, names: Names) -> Table:
    table = _drop_separators(table)
    table = leave_out(table, "ASSIGNMENT:status", ["rejected"], "rejected")
    label = choose_question(table, _starting(table, "OUTPUT:"), names, KIND)
    key = _TASK if _TASK in table.names else None
    item = choose_item(table, _starting(table, "INPUT:"), key, names)
    if item is None:
        raise table.many_columns("item", _starting(table, "INPUT:"), "item")
    gold = f"GOLDEN:{label.removeprefix('OUTPUT:')}"
    preferred = {"item": item, "worker": _WORKER, "label": label, "gold": gold}
    return replace(table, preferred=preferred, format="toloka")


def _starting(table: Table, prefix: str) -> list[str]:
    return [str(name) for name in table.names if str(name).startswith(prefix)]


def _drop_separators(table: Table) -> Table:
    """Return the table without rows that say neither who answered nor what."""
    empty = np.ones(table.n_rows, bool)
    for name in [_WORKER, *_starting(table, "OUTPUT:")]:
        missing = np.zeros(table.n_rows, bool)
        missing[find_missing(table.read(name))] = True
        empty &= missing
    return table.keep(np.flatnonzero(~empty)) if empty.any() and not empty.all() else table


TOLOKA = Reader(_recognise, _translate, (_WORKER,))
