"""`consilience rank`: from a file of verdicts on pairs to a file with the ranking, by `consilience.rank`."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from typing import Any

import click

from ..answers.previews import fit_text
from ..answers.tables import build_frame
from ..api import rank as rank_candidates
from ..documents.document import Fact, Facts
from ..formats.files import name_of
from ..formats.writing import write_table
from ..options import N_LISTED
from ..rankings.comparisons import open_comparisons
from .command import is_asked, publish
from .files import check_outputs, check_page, write_report, write_together
from .terminal import Display, list_files

ROLES = ("left", "right", "winner", "worker", "item", "group", "weight", "candidate", "score", "rank")
PARAMETERS = ("discrimination", "position_bias", "max_iter", "seed")


def rank(source: str, output: str | None, gold: str | None, report: str | None, save: str | None, **typed: Any) -> None:
    """Rank the candidates in a file of comparisons: read, fit, write, and only then print."""
    started = time.perf_counter()
    if source == gold == "-":
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    tables = [typed[name] for name in ("judges_report", "wins", "next_comparisons")]
    check_outputs([output, *tables], [save, report], [source, gold])
    if report is not None:
        check_page(report)
    with Display(is_asked("quiet")) as display:
        display.say(f"Ranking {fit_text(source, 50)}")
        given = {name: value for name, value in typed.items() if value is not None}
        data = open_comparisons(source, **{name: given[name] for name in ROLES if name in given})
        parameters = {name: given[name] for name in PARAMETERS if name in given}
        model = rank_candidates(data, gold=gold, callback=display.show_iteration, **parameters)
        display.say("Writing")
        found, n = model.result_, N_LISTED if typed["n"] is None else typed["n"]
        ranking, judges = (build_frame(columns, "pyarrow") for columns in (found.table, found.judge_table))
        title = "Standard input" if source == "-" else os.path.basename(source.rstrip("/"))
        files = write_together(
            {
                "ranking": (output, partial(write_table, ranking)),
                "judges": (typed["judges_report"], partial(write_table, judges)),
                "wins": (typed["wins"], lambda path: write_table(model.win_matrix(), path)),
                "next": (typed["next_comparisons"], lambda path: write_table(model.next_comparisons(n), path)),
                "model": (save, model.save),
            },
            (report, partial(write_report, model, title, None, "", None)),
        )
    seconds = round(time.perf_counter() - started, 3)

    document = model.overview(f"Ranking of {fit_text(name_of(source), 60)}", data.winners)
    ending = [
        Fact("source", "", source),
        *list_files(files, ("Ranking", "not written; give -o FILE to keep it")),
        Fact("seconds", "", seconds),
    ]
    publish(replace(document, parts=[*document.parts, Facts(ending)]))
