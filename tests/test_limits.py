"""The page of limits says what the code holds, and names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consilience.formats import masks
from consilience.inference import copies, preconditions
from consilience.inference.workers import ordinal, types
from consilience.kinds import masks as masks_task
from consilience.limits import LIMITS, format_bytes
from consilience.rankings import bradley_terry, comparisons
from consilience.results import raters

HERE = Path(__file__).parent
PAGE = (HERE.parent / "docs" / "limits.md").read_text("utf-8")
# The figures of each row of the page that has a limit and a test, in their order.
FIGURES: dict[str, tuple[float, ...]] = {
    "columns of a table or of a matrix": LIMITS["columns"],
    "cells of a table or CoNLL file that has a column for each worker": LIMITS["cells"],
    "readers of a mask": LIMITS["columns"],
    "votes and labels, multiplied, of soft votes with a row for each label": LIMITS["cells"],
    "what a compressed file of arrays unpacks to": LIMITS["unpacked"],
    "items and classes, multiplied": LIMITS["probabilities"],
    "entries of all confusion matrices": LIMITS["entries"],
    "entries of the matrices of ordinal workers, for 540 types each": LIMITS["ordinal entries"],
    "classes of a chain": (preconditions.FEW_CHAINED, preconditions.MOST_CHAINED),
    "seconds that moments may take if there are fewer answers than entries": (preconditions.FUTILE,),
    "workers and tags, multiplied": LIMITS["skills"],
    "tags": LIMITS["tags"],
    "questions fused at once": LIMITS["questions"],
    "candidates of a ranking": (
        bradley_terry.MANY_CANDIDATES,
        bradley_terry.MOST_CANDIDATES,
        bradley_terry.VERDICTS_EACH,
    ),
    "pairs that scores or ranks make": LIMITS["pairs of scores"],
    "verdicts, by their weights": (comparisons.MOST_VERDICTS,),
    "near-copies, if nearly all items are answered by all workers": (copies.MOST_DENSE,),
    "bias, spread and carelessness of raters": (raters.MOST_LEVELS,),
    "readers with the same masks": (masks_task.MOST_READERS,),
    "what folders of masks stand for: give `folders=`": (masks.MOST_READ,),
}
ROWS = [[cell.strip() for cell in row] for row in re.findall(r"^\|(.+)\|(.+)\| (`test_.+) \|$", PAGE, re.MULTILINE)]


def spell(number: float, limit: str) -> str:
    """Return a figure as the page has it."""
    is_size = "MiB" in limit and number > 1 << 20
    return format_bytes(number).replace(".0 ", " ") if is_size else f"{number:,.0f}"


def test_the_page_has_every_limit_once():
    assert [what for what, _, _ in ROWS] == list(FIGURES)


@pytest.mark.parametrize(("what", "limit", "test"), ROWS)
def test_a_row_is_true(what, limit, test):
    figures = re.findall(r"[\d,]*\d(?: [KM]iB)?", limit)
    assert figures == [spell(number, limit) for number in FIGURES[what] if number]
    assert (HERE / test.strip("`")).is_file()


def test_ordinal_workers_have_so_many_types():
    assert f"for {ordinal.N_TYPES * len(types.STRENGTHS)} types each" in PAGE
