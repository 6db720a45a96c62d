"""`consilience rank`: from a file of verdicts on pairs to a file of a ranking."""

from __future__ import annotations

import inspect
import time
from functools import partial
from typing import Any

import click

from .. import api
from ..answers.previews import fit_text
from ..answers.tables import build_frame
from ..documents.document import Fact
from ..documents.html import check_page
from ..formats.files import name_of
from ..formats.writing import write_table
from ..options import N_LISTED, given
from ..rankings.comparisons import Comparisons, open_comparisons
from .files import Display, check_outputs, finish, name_page, write_together

RANKED = frozenset(inspect.signature(api.rank).parameters) - {"comparisons", "gold", "callback"}
COMPARED = frozenset(inspect.signature(Comparisons.from_frame).parameters)


def run_rank(
    source: str, output: str | None, gold: str | None, report: str | None, save: str | None, **typed: Any
) -> None:
    """Rank the candidates in a file of comparisons."""
    started = time.perf_counter()
    if source == gold == "-":
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    tables = [typed[name] for name in ("judges_report", "wins", "next_comparisons")]
    check_outputs([output, *tables], [save, report], [source, gold])
    check_page(report)
    with Display() as display:
        display.say(f"Ranking {fit_text(source, 50)}")
        asked = {name: value for name, value in given(typed).items() if name in RANKED}
        data = open_comparisons(source, **{name: asked.pop(name) for name in list(asked) if name in COMPARED})
        model = api.rank(data, gold=gold, callback=display.show_iteration, **asked)
        display.say("Writing")
        n = N_LISTED if typed["n"] is None else typed["n"]
        result = model.result_
        ranking, judges = (build_frame(each, "pyarrow") for each in (result.table, result.judge_table))
        files = write_together(
            {
                "ranking": (output, partial(write_table, ranking)),
                "judges": (typed["judges_report"], partial(write_table, judges)),
                "wins": (typed["wins"], lambda path: write_table(model.win_matrix(), path)),
                "next": (typed["next_comparisons"], lambda path: write_table(model.next_comparisons(n), path)),
                "model": (save, model.save),
            },
            (report, lambda path: api.write_report(model, path, None, name_page(source))),
        )
    document = model.overview(f"Ranking of {fit_text(name_of(source), 60)}", data.winners)
    finish(document, [Fact("source", "", source)], files, ("Ranking", "not written; give -o FILE to keep it"), started)
