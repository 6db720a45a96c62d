"""`consilience demo`: the whole job on made-up data, with the truth beside it."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import first_line
from .command import Command
from .options import DEBUG, read_options

if TYPE_CHECKING:
    from rich.console import Console

    from ..simulate.demo_crowd import Crowd

REPORT, ANSWERS = "demo-report.html", "demo-answers.csv"
# Columns of the file of answers.
COLUMNS = ("item", "worker", "label", "caption")
# What is in the first bytes of every report.
OURS = b'<meta name="generator" content="consilience">'
_NEXT = (
    ("consilience fuse answers.csv -o labels.csv", "columns item, worker, label"),
    ("consilience fuse answers.csv --report page.html", "a report on your answers"),
    ("consilience evaluate labels.csv gold.csv", "where some truth is known"),
    ("consilience fuse --help", "all options"),
)


@click.command(
    cls=Command,
    short_help="Fuse a made-up crowd, compare with the truth, write a report.",
    groups=read_options(f"Options:\n{DEBUG}"),
)
def demo() -> None:
    """Fuse the answers of a made-up crowd, compare with the truth, and write a report.

    demo-answers.csv and demo-report.html are written to the current folder. The report needs the extra: pip install
    'consilience[report]'.
    """
    from ..answers.responses import Responses
    from ..api import fuse
    from ..models.majority_vote import MajorityVote
    from ..simulate.demo_crowd import make_crowd
    from .terminal import Display, open_console

    with Display(quiet=False) as display:
        display.say("Drawing a crowd")
        crowd = make_crowd()
        responses = Responses.from_frame(crowd.answers)
        display.say("Fitting")
        fused = fuse(responses, callback=display.show_iteration)
        vote = MajorityVote().fit(responses)
        display.say("Writing the report")
        told = [write_answers(crowd), write_report(crowd, fused)]
    console = open_console()
    print_scores(console, crowd, vote, fused)
    print_crowd(console, crowd, fused)
    print_files(console, told)
    print_next(console)


def print_scores(console: Console, crowd: Crowd, vote: Any, fused: Any) -> None:
    """Print what the vote and the fit get right."""
    from .terminal import Column, format_difference, format_number, print_table, print_title

    n_classes, n_workers, n_answers = len(fused.classes_), len(crowd.kinds), len(crowd.answers["label"])
    print_title(
        console, f"{len(crowd.truth):,} images, {n_classes} classes, {n_workers} workers, {n_answers:,} answers"
    )
    console.print("  Some workers are careful, some take wolves for dogs, and some do not look.")
    console.print("  The truth is known here, to judge the labels by. The fit has not seen it.")
    console.print()
    scores = zip(score(crowd, vote).items(), score(crowd, fused).values(), strict=True)
    columns = [Column("", 28), Column("majority vote", 13, number=True), Column("consilience", number=True)]
    rows = [(name, format_number(by_vote), format_number(by_fit)) for (name, by_vote), by_fit in scores]
    print_table(console, columns, rows)
    console.print()
    gain = f"{100 * fused.comparison_.expected_gain:.1f} percentage points"
    console.print(f"  {format_difference(fused.comparison_.n_differ)} from the vote's. Without knowing the truth, the")
    console.print(f"  fit expects to be right {gain} more often than the vote.")
    console.print()


def score(crowd: Crowd, model: Any) -> dict[str, float]:
    """Return scores of a fitted model against the truth."""
    from .. import metrics

    truth = list(crowd.truth.values())
    posterior, classes = model.posterior_, model.classes_.tolist()
    return {
        "accuracy": metrics.accuracy(truth, model.labels_),
        "macro F1": metrics.macro_f1(truth, model.labels_),
        "log loss (low is good)": metrics.log_loss(truth, posterior, classes),
        "calibration error (low)": metrics.calibration_error(truth, posterior, classes),
    }


def print_crowd(console: Console, crowd: Crowd, fused: Any) -> None:
    """Print workers of each kind, most reliable first, with their true accuracy beside the one found."""
    from ..metrics.parameters import rank_correlation
    from .summary import rank_workers
    from .terminal import Column, print_table, print_title

    report = fused.worker_report()
    records = report.take(rank_workers(report)[0]).to_pylist()
    true = true_accuracies(crowd)
    correlation = rank_correlation([true[each["worker"]] for each in records], [each["accuracy"] for each in records])
    columns = [
        Column("worker", 8),
        Column("who", 20),
        Column("true", number=True),
        Column("found", number=True),
        Column("worst confusion", 20),
        Column("remarks", 14),
    ]
    print_title(console, "Accuracy of workers: the true one, and the one found without the truth")
    print_table(console, columns, pick_workers(records, crowd.kinds, true))
    console.print()
    console.print(f"  Rank correlation over all {len(records)} workers: {correlation:.2f}")
    console.print()


def pick_workers(records: list[Any], kinds: dict[str, str], true: dict[str, float]) -> list[tuple[str, ...]]:
    """Return the rows of the first two workers of each kind."""
    from .terminal import format_number

    rows: list[tuple[str, ...]] = []
    for record in records:
        worker, kind = record["worker"], kinds[record["worker"]]
        if sum(row[1] == kind for row in rows) < 2:
            figures = format_number(true[worker]), format_number(record["accuracy"])
            rows.append((worker, kind, *figures, record["worst_confusion"], record["remarks"]))
    return rows


def true_accuracies(crowd: Crowd) -> dict[str, float]:
    """Return the share of right answers of each worker."""
    right: dict[str, list[bool]] = {}
    for item, worker, label in zip(*crowd.answers.values(), strict=True):
        right.setdefault(worker, []).append(label == crowd.truth[item])
    return {worker: sum(marks) / len(marks) for worker, marks in right.items()}


def write_answers(crowd: Crowd) -> str:
    """Write the answers, unless that would replace a file that is not the same. Return what to say of it."""
    rows = zip(*crowd.answers.values(), (crowd.captions[item] for item in crowd.answers["item"]), strict=True)
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([COLUMNS, *rows])
    content, path = buffer.getvalue().encode(), Path(ANSWERS)
    try:
        if path.exists() and path.read_bytes() != content:
            return f"{ANSWERS} was not written: there is another file of that name."
        path.write_bytes(content)
    except OSError as error:
        return f"{ANSWERS} was not written: {first_line(error)}."
    return f"{ANSWERS} holds the answers."


def write_report(crowd: Crowd, fused: Any) -> str:
    """Write the report, unless it cannot be made or would replace a file that is not one. Return what to say of it."""
    from ..errors import ConsilienceError, MissingDependencyError
    from ..reporting.again import Given
    from ..reporting.write import check_installed, write_page

    try:
        check_installed()
    except MissingDependencyError:
        return "A page about these labels needs two more packages:\npip install 'consilience[report]'"
    if not may_replace(Path(REPORT)):
        return f"{REPORT} was not written: there is a file of that name, and it is not a report."
    try:
        given = Given(("fuse", ANSWERS, "--content", COLUMNS[-1]), ("--report", REPORT), ())
        write_page(fused, REPORT, crowd.captions, f"Demo: {ANSWERS}", given=given)
    except ConsilienceError as error:
        return f"{REPORT} was not written. {error}"
    return f"{REPORT} says whether to trust the labels. Open it in a browser."


def may_replace(path: Path) -> bool:
    """Tell whether there is nothing at a path, or a report."""
    try:
        with path.open("rb") as file:
            return OURS in file.read(4096)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def print_files(console: Console, told: list[str]) -> None:
    """Print which files were written, or why not."""
    from .terminal import print_title

    print_title(console, "Files")
    for part in (line for each in told for line in each.splitlines()):
        console.print(textwrap.fill(part, 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    console.print()


def print_next(console: Console) -> None:
    """Print what to run next."""
    from .terminal import print_facts, print_title

    print_title(console, "Next")
    print_facts(console, _NEXT)
