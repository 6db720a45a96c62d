"""`consilience rank`: from a file of verdicts on pairs to a file with the ranking, by `consilience.rank`."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import click
import pyarrow as pa

from ..answers.tables import build_frame
from ..api import rank as rank_candidates
from ..errors import count_shown, plural
from ..formats.files import name_of
from ..formats.writing import write_table
from ..options import N_LISTED
from ..rankings.bradley_terry import BradleyTerry
from ..rankings.comparisons import open_comparisons
from .command import Record, describe_findings, is_asked, tell
from .files import check_outputs, check_page, write_report, write_together
from .terminal import Column, Display, Screen, fit_text, format_columns, format_number

# Rows shown in tables; files and --json have all.
MOST_SHOWN = 20
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
        found, n = model.found_, N_LISTED if typed["n"] is None else typed["n"]
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

    def describe() -> Record:
        has_workers = found.numbers.has_workers
        return {
            "source": source,
            "columns": found.columns,
            "winners": data.winners,
            "candidates": len(found.candidates),
            **found.numbers._asdict(),
            "judges": len(found.workers) if has_workers else 0,
            "parts": found.n_parts,
            "ranking": ranking.to_pylist(),
            "judge_report": judges.to_pylist() if has_workers else [],
            "findings": describe_findings(model.findings_),
            "converged": found.converged,
            "files": files,
            "seconds": seconds,
        }

    tell(describe, lambda: print_ranking(model, ranking, judges, source, data.winners, files))


def print_ranking(
    model: BradleyTerry, ranking: pa.Table, judges: pa.Table, source: str, winners: str, files: dict[str, str]
) -> None:
    """Print the best candidates, the judges (all, or those with a remark), what needs attention, and the files."""
    screen, found, numbers = Screen(), model.found_, model.found_.numbers
    screen.title(f"Ranking of {fit_text(name_of(source), 60)}")
    by = f" by {plural(len(found.workers), 'judge')}" if numbers.has_workers else ""
    about = f" about {plural(numbers.items, 'item')}" if numbers.items else ""
    screen.facts(
        [
            ("Columns", format_columns(found.columns)),
            ("Winners", f"read as {fit_text(winners, 80)}"),
            ("Verdicts", f"{numbers.comparisons:,}{by}{about} on {plural(len(found.candidates), 'candidate')}"),
            *([("Counted as", found.counted_as)] if found.counted_as else []),
            ("Ties", f"{numbers.ties / numbers.weight:.0%} of the verdicts"),
            *([("Known", plural(numbers.known, "verdict"))] if numbers.known else []),
        ]
    )
    screen.line()
    screen.findings(describe_findings(model.findings_))

    rows = ranking.to_pylist()
    n_shown = count_shown(len(rows), MOST_SHOWN)
    more = f" (the first {n_shown} of {len(rows):,}; -o and --json have all)" if n_shown < len(rows) else ""
    screen.title(f"Candidates, with 95% intervals{more}")
    lines: list[list[object] | None] = [
        [
            *([row["part"]] if found.n_parts > 1 else []),
            f"{row['rank']} ({row['rank_low']}-{row['rank_high']})"
            if row["rank_low"] < row["rank_high"]
            else row["rank"],
            row["candidate"],
            f"{row['score']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})",
            f"{row['elo']:.0f}",
            *(spell_count(row[name]) for name in ("comparisons", "wins", "ties")),
        ]
        for row in rows[:n_shown]
    ]
    columns = [Column("rank", 10), Column("candidate", 24 + screen.spare // 2), Column("score", 26)]
    columns = [*([Column("part", number=True)] if found.n_parts > 1 else []), *columns]
    columns += [Column(name, number=True) for name in ("elo", "comparisons", "wins", "ties")]
    screen.table(columns, lines + ([None] if n_shown < len(rows) else []))
    screen.line()

    if numbers.has_workers and len(found.workers) > 1:
        rows = judges.to_pylist()
        chosen = rows if len(rows) <= MOST_SHOWN else [row for row in rows if row["remarks"]]
        n_shown = count_shown(len(chosen), MOST_SHOWN)
        more = "" if len(rows) <= MOST_SHOWN else f" with remarks ({n_shown} of {len(rows):,}; --judges-report has all)"
        screen.title(f"Judges{more}")
        columns = [Column("judge", 20 + screen.spare // 3), Column("comparisons", number=True)]
        columns += [Column("discrimination", 14, number=True), Column("position bias", 13, number=True)]
        columns += [Column("agreement", number=True), Column("remarks", 36 + screen.spare // 2)]
        lines = [
            [
                row["worker"],
                spell_count(row["comparisons"]),
                f"{row['discrimination']:.2f}",
                f"{row['position_bias']:+.2f}",
                format_number(row["agreement"]),
                row["remarks"],
            ]
            for row in chosen[:n_shown]
        ]
        screen.table(columns, lines + ([None] if n_shown < len(chosen) else []))
        screen.line()
    written = [(kind.capitalize(), fit_text(path, 60)) for kind, path in files.items()]
    screen.facts(written or [("Ranking", "not written; give -o FILE to keep it")])


def spell_count(number: float) -> str:
    """A number of verdicts, or of their weights.

    >>> spell_count(5040), spell_count(411.429)
    ('5,040', '411.4')
    """
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"
