"""Values compared with known ones: how far they are off, and how often their intervals hold."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..answers.classes import to_number, to_numbers
from ..answers.columns import Column, Indices, to_values
from ..answers.tables import Table, read_figures
from ..errors import InputError, listing
from .evaluation import Evaluation

# Columns of a table of values.
VALUE, ENDS = "value", ("low", "high")
Rows: TypeAlias = tuple[Indices, Indices]


def are_values(table: Table) -> bool:
    """Whether a table has a value for each item, with an interval."""
    return {VALUE, *ENDS} <= set(table.names) and "label" not in table.names


def evaluate_values(table: Table, known: Column, rows: Rows) -> Evaluation:
    """Compare the values in a table with known ones; `rows`: of each known item its row, or -1, and that in gold."""
    row, gold_row = rows
    labels = to_values(known.take(gold_row))
    truth = to_numbers(labels)
    if truth is None:
        odd = [each for each in labels.tolist() if to_number(each) is None]
        raise InputError(f"Known values must be numbers. Got {listing(odd)}.", "Correct them.")
    value, low, high = (read_figures(table, name)[row] for name in (VALUE, *ENDS))
    both = (row >= 0) & np.isfinite(value)
    counts = {"n_matched": int(both.sum()), "n_gold_only": int((~both).sum())}
    figures: dict[str, float | None] = {**counts, "n_labels_only": table.n_rows - int(both.sum())}
    figures |= dict.fromkeys(("absolute_error", "rmse", "correlation", "coverage"))
    error = value[both] - truth[both]
    if len(error):
        figures |= {"absolute_error": float(np.abs(error).mean()), "rmse": float(np.sqrt(np.mean(error**2)))}
    if len(error) > 1 and np.ptp(value[both]) > 0 and np.ptp(truth[both]) > 0:
        figures["correlation"] = float(np.corrcoef(value[both], truth[both])[0, 1])
    told = both & np.isfinite(low) & np.isfinite(high)
    if told.any():
        figures["coverage"] = float(np.mean((low <= truth)[told] & (truth <= high)[told]))
    return Evaluation("item", figures)
