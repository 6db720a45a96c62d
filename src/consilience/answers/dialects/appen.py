"""Results of Appen (before: Figure Eight, CrowdFlower): the CSV file of the full report of a job.

There is one row per judgment. Columns of the platform begin with an underscore: ``_unit_id``, ``_worker_id``,
``_golden`` (whether the unit is a test question), ``_tainted`` (whether the judgment is not to be trusted), ``_trust``,
``_missed``. Others are the questions, and the source data. A question ``<name>`` has its known answer in
``<name>_gold``, several that are accepted on a line each, and the reason in ``<name>_gold_reason``.

Columns have the names that published reports of CrowdFlower and Figure Eight have and describe. The platform's own
guide to reports does not list them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..tables import Table
from ..vocabulary import to_column
from .platforms import choose_question, leave_out, list_entries
from .register import Names, Reader

KIND = "a full report of Appen"
_ITEM, _WORKER = "_unit_id", "_worker_id"
_GOLD = "_gold"


def _translate(table: Table, names: Names) -> Table:
    table = leave_out(table, "_tainted", ["true", "1"], "not to be trusted")
    label = choose_question(table, _find_questions(table), names, KIND)
    table = _find_gold(table, label)
    gold = label + _GOLD
    preferred = {"item": names.get("item") or _ITEM, "worker": _WORKER, "label": label, "gold": gold}
    return replace(table, preferred=preferred, format="appen")


def _find_questions(table: Table) -> list[str]:
    """Return the columns that have known answers beside them; without any, the one with a usual name, or all others."""
    names = [str(name) for name in table.names]
    with_gold = [name for name in names if f"{name}{_GOLD}" in names]
    if with_gold:
        return with_gold
    usual = table.find_usual("label")
    skipped = ("_", "orig__")
    others = [name for name in names if not name.startswith(skipped) and not name.endswith((_GOLD, "_gold_reason"))]
    return others if usual is None else [usual]


def _find_gold(table: Table, label: str) -> Table:
    """Return the table with the known answers of test questions; several accepted answers are no known label."""
    name = label + _GOLD
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


APPEN = Reader(lambda _table, _names: True, _translate, (_ITEM, _WORKER))
