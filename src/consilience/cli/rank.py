"""`consilience rank`: from a file of verdicts on pairs to a file with the ranking."""

from __future__ import annotations

import os
import time
from functools import partial
from types import SimpleNamespace

import click
import pyarrow as pa

from ..answers.tables import build_frame
from ..api import rank as rank_candidates
from ..errors import InputError, count_shown, plural
from ..formats.files import name_of
from ..formats.writing import write_table
from ..options import N_LISTED
from ..rankings.bradley_terry import BradleyTerry
from ..rankings.comparisons import open_comparisons
from ..rankings.next_comparisons import list_next_comparisons
from ..rankings.ranking import Ranking
from .command import Record, describe_findings, is_asked, tell
from .files import check_outputs, check_page, write_together
from .terminal import Column, Display, Screen, fit_text, format_columns, format_number

# Rows shown in tables; files and --json have all.
MOST_SHOWN = 20
ROLES = ("left", "right", "winner", "worker", "item", "group", "weight", "candidate", "score", "rank")
PARAMETERS = ("discrimination", "position_bias", "max_iter", "seed")


class Options(SimpleNamespace):
    """The arguments of the command, by the names of its parameters."""


def rank(**arguments: object) -> None:
    """Rank the candidates in a file of comparisons: read, fit, write, and only then print."""
    started = time.perf_counter()
    options = Options(**arguments)
    inputs = [options.source, options.gold]
    if inputs.count("-") > 1:
        raise click.UsageError("Standard input can be only one of the inputs. Give files for the others.")
    tables = [options.output, options.judges_report, options.wins, options.next_comparisons]
    check_outputs(tables, [options.save, options.report], inputs)
    if options.report is not None:
        check_page(options.report)
    with Display(is_asked("quiet")) as display:
        display.say(f"Ranking {fit_text(options.source, 50)}")
        columns = {role: getattr(options, role) for role in ROLES if getattr(options, role) is not None}
        given = {name: getattr(options, name) for name in PARAMETERS if getattr(options, name) is not None}
        data = open_comparisons(options.source, **columns)
        options.winners = data.winners
        model = rank_candidates(data, gold=options.gold, callback=display.show_iteration, **given)
        del data
        display.say("Writing")
        files = write_files(options, model)
    seconds = round(time.perf_counter() - started, 3)
    tell(lambda: describe(model, options, files, seconds), lambda: print_ranking(model, options, files))


def write_files(options: Options, model: BradleyTerry) -> dict[str, str]:
    """Write the files asked for; return what is where."""
    found = model.found_
    n = N_LISTED if options.n is None else options.n
    return write_together(
        {
            "ranking": (options.output, partial(write_table, build_frame(found.table, "pyarrow"))),
            "judges": (options.judges_report, partial(write_table, tabulate_judges(found))),
            "wins": (options.wins, lambda path: write_table(model.win_matrix(), path)),
            "next": (options.next_comparisons, lambda path: write_table(tabulate_next(found, n), path)),
            "model": (options.save, model.save),
        },
        (options.report, partial(write_report, model, options.source)),
    )


def write_report(model: BradleyTerry, source: str, path: str) -> None:
    """Write the report."""
    from ..reporting.page import write_page  # which loads templates

    title = "Standard input" if source == "-" else os.path.basename(source.rstrip("/"))
    write_page(model, path, title=title)


def tabulate_judges(found: Ranking) -> pa.Table:
    """Return the table of judges."""
    table: pa.Table = build_frame(found.judge_table, "pyarrow")
    return table


def tabulate_next(found: Ranking, n: int) -> pa.Table:
    """Return the table of comparisons to ask for."""
    table: pa.Table = build_frame(list_next_comparisons(found, n), "pyarrow")
    return table


def describe(model: BradleyTerry, options: Options, files: dict[str, str], seconds: float) -> Record:
    """Return what was found, for `--json`."""
    found = model.found_
    return {
        "source": options.source,
        "columns": found.columns,
        "winners": options.winners,
        "candidates": len(found.candidates),
        **found.numbers._asdict(),
        "judges": len(found.workers) if found.numbers.has_workers else 0,
        "parts": found.n_parts,
        "ranking": build_frame(found.table, "pyarrow").to_pylist(),
        "judge_report": tabulate_judges(found).to_pylist() if found.numbers.has_workers else [],
        "findings": describe_findings(model.findings_),
        "converged": found.converged,
        "files": files,
        "seconds": seconds,
    }


def print_ranking(model: BradleyTerry, options: Options, files: dict[str, str]) -> None:
    """Print the ranking, what needs attention, and where the files are."""
    screen, found = Screen(), model.found_
    numbers = found.numbers
    screen.title(f"Ranking of {fit_text(name_of(options.source), 60)}")
    by = f" by {plural(len(found.workers), 'judge')}" if numbers.has_workers else ""
    weight = found.counted_as
    about = f" about {plural(numbers.items, 'item')}" if numbers.items else ""
    facts = [
        ("Columns", format_columns(found.columns)),
        ("Winners", f"read as {fit_text(options.winners, 80)}"),
        ("Verdicts", f"{numbers.comparisons:,}{by}{about} on {plural(len(found.candidates), 'candidate')}"),
        *([("Counted as", weight)] if weight else []),
        ("Ties", f"{numbers.ties / numbers.weight:.0%} of the verdicts"),
        *([("Known", plural(numbers.known, "verdict"))] if numbers.known else []),
    ]
    screen.facts(facts)
    screen.line()
    screen.findings(describe_findings(model.findings_))
    print_candidates(screen, found)
    if numbers.has_workers and len(found.workers) > 1:
        print_judges(screen, found)
    screen.facts(
        [(kind.capitalize(), fit_text(path, 60)) for kind, path in files.items()]
        or [("Ranking", "not written; give -o FILE to keep it")]
    )


def print_candidates(screen: Screen, found: Ranking) -> None:
    """Print the best candidates."""
    rows = build_frame(found.table, "pyarrow").to_pylist()
    n_shown = count_shown(len(rows), MOST_SHOWN)
    more = f" (the first {n_shown} of {len(rows):,}; -o and --json have all)" if n_shown < len(rows) else ""
    screen.title(f"Candidates, with 95% intervals{more}")
    columns = [
        *([Column("part", number=True)] if found.n_parts > 1 else []),
        Column("rank", 10),
        Column("candidate", 24 + screen.spare // 2),
        Column("score", 26),
        Column("elo", number=True),
        Column("comparisons", number=True),
        Column("wins", number=True),
        Column("ties", number=True),
    ]
    lines: list[list[object] | None] = [
        [
            *([row["part"]] if found.n_parts > 1 else []),
            spell_rank(row),
            row["candidate"],
            f"{row['score']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})",
            f"{row['elo']:.0f}",
            *(spell_count(row[name]) for name in ("comparisons", "wins", "ties")),
        ]
        for row in rows[:n_shown]
    ]
    screen.table(columns, lines + ([None] if n_shown < len(rows) else []))
    screen.line()


def spell_rank(row: Record) -> str:
    """Return a rank with its interval.

    >>> spell_rank({"rank": 2, "rank_low": 1, "rank_high": 3}), spell_rank({"rank": 1, "rank_low": 1, "rank_high": 1})
    ('2 (1-3)', '1')
    """
    low, high = row["rank_low"], row["rank_high"]
    return str(row["rank"]) if low == high else f"{row['rank']} ({low}-{high})"


def spell_count(number: float) -> str:
    """Return a number of verdicts, or of their weights.

    >>> spell_count(5040), spell_count(411.429)
    ('5,040', '411.4')
    """
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def print_judges(screen: Screen, found: Ranking) -> None:
    """Print the judges: all if there are few, else those with a remark."""
    rows = tabulate_judges(found).to_pylist()
    chosen = rows if len(rows) <= MOST_SHOWN else [row for row in rows if row["remarks"]]
    n_shown = count_shown(len(chosen), MOST_SHOWN)
    more = "" if len(rows) <= MOST_SHOWN else f" with remarks ({n_shown} of {len(rows):,}; --judges-report has all)"
    screen.title(f"Judges{more}")
    columns = [
        Column("judge", 20 + screen.spare // 3),
        Column("comparisons", number=True),
        Column("discrimination", 14, number=True),
        Column("position bias", 13, number=True),
        Column("agreement", number=True),
        Column("remarks", 36 + screen.spare // 2),
    ]
    lines: list[list[object] | None] = [
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


def list_next(model: BradleyTerry, name: str, n: int | None, output: str | None) -> None:
    """List the comparisons to ask for, of a saved ranking: `consilience next`."""
    table = tabulate_next(model.found_, N_LISTED if n is None else n)
    if output is not None:
        write_table(table, output)

    def show() -> None:
        screen, n_shown = Screen(), count_shown(table.num_rows, MOST_SHOWN)
        screen.title(f"Comparisons to ask for, by {fit_text(name, 60)}")
        columns = [Column(each, 20 + screen.spare // 4, number=each == "gain") for each in table.column_names]
        rows: list[list[object] | None] = [
            [f"{value:.2g}" if each == "gain" else value for each, value in row.items()]
            for row in table.slice(0, n_shown).to_pylist()
        ]
        screen.table(columns, rows + ([None] if n_shown < table.num_rows else []))
        screen.line()
        screen.facts(
            [("List", f"{fit_text(output, 60)}; add a column winner" if output else "not written; give -o FILE")]
        )

    tell(lambda: {"model": name, "comparisons": table.to_pylist(), "file": output}, show)


def refuse_ranking(path: str) -> InputError:
    """Return the error for a saved ranking where labels are needed."""
    return InputError(
        f"{path!r} holds a ranking, which has no labels.", "Rank all verdicts again, with `consilience rank`."
    )
