"""`consilience demo`: the whole job on made-up data, with the truth beside it."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path

from .. import metrics
from ..answers.responses import Responses
from ..api import fuse
from ..errors import ConsilienceError, MissingDependencyError, first_line
from ..metrics.probabilities import rank_correlation
from ..models.fitted import FittedModel
from ..models.majority_vote import MajorityVote
from ..reporting.page import check_installed, write_page
from ..reporting.subject import Command
from ..simulate.demo_crowd import Crowd, make_crowd
from .command import Record
from .summary import rank_workers
from .terminal import Column, Display, Screen, format_difference, format_number

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


def demo() -> None:
    """Fuse the answers of a made-up crowd, compare with the truth, and write a report."""
    with Display(quiet=False) as display:
        display.say("Drawing a crowd")
        crowd = make_crowd()
        responses = Responses.from_frame(crowd.answers)
        display.say("Fitting")
        fused = fuse(responses, callback=display.show_iteration)
        vote = MajorityVote().fit(responses)
        display.say("Writing the report")
        told = [write_answers(crowd), write_report(crowd, fused)]
    screen = Screen()
    print_scores(screen, crowd, vote, fused)
    print_crowd(screen, crowd, fused)
    print_files(screen, told)
    print_next(screen)


def print_scores(screen: Screen, crowd: Crowd, vote: MajorityVote, fused: FittedModel) -> None:
    """Print what the vote and the fit get right."""
    n_classes, n_workers, n_answers = len(fused.classes_), len(crowd.kinds), len(crowd.answers["label"])
    screen.title(f"{len(crowd.truth):,} images, {n_classes} classes, {n_workers} workers, {n_answers:,} answers")
    screen.line("  Some workers are careful, some take wolves for dogs, and some do not look.")
    screen.line("  The truth is known here, to judge the labels by. The fit has not seen it.")
    screen.line()
    scores = zip(score(crowd, vote).items(), score(crowd, fused).values(), strict=True)
    columns = [Column("", 28), Column("majority vote", 13, number=True), Column("consilience", number=True)]
    rows = [(name, format_number(by_vote), format_number(by_fit)) for (name, by_vote), by_fit in scores]
    screen.table(columns, rows)
    screen.line()
    compared = fused.comparison_
    assert compared is not None
    gain = f"{100 * compared.expected_gain:.1f} percentage points"
    screen.line(f"  {format_difference(compared.n_differ)} from the vote's. Without knowing the truth, the")
    screen.line(f"  fit expects to be right {gain} more often than the vote.")
    screen.line()


def score(crowd: Crowd, model: FittedModel) -> dict[str, float]:
    """Return scores of a fitted model against the truth."""
    truth = list(crowd.truth.values())
    posterior, classes = model.posterior_, model.classes_.tolist()
    return {
        "accuracy": metrics.accuracy(truth, model.labels_),
        "macro F1": metrics.macro_f1(truth, model.labels_),
        "log loss (low is good)": metrics.log_loss(truth, posterior, classes),
        "calibration error (low)": metrics.calibration_error(truth, posterior, classes),
    }


def print_crowd(screen: Screen, crowd: Crowd, fused: FittedModel) -> None:
    """Print workers of each kind, most reliable first, with their true accuracy beside the one found."""
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
    screen.title("Accuracy of workers: the true one, and the one found without the truth")
    screen.table(columns, pick_workers(records, crowd.kinds, true))
    screen.line()
    screen.line(f"  Rank correlation over all {len(records)} workers: {correlation:.2f}")
    screen.line()


def pick_workers(records: list[Record], kinds: dict[str, str], true: dict[str, float]) -> list[tuple[str, ...]]:
    """Return the rows of the first two workers of each kind."""
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


def write_report(crowd: Crowd, fused: FittedModel) -> str:
    """Write the report, unless it cannot be made or would replace a file that is not one. Return what to say of it."""
    try:
        check_installed()
    except MissingDependencyError:
        return "A page about these labels needs two more packages:\npip install 'consilience[report]'"
    if not may_replace(Path(REPORT)):
        return f"{REPORT} was not written: there is a file of that name, and it is not a report."
    try:
        given = Command(("fuse", ANSWERS, "--content", COLUMNS[-1]), ("--report", REPORT), ())
        write_page(fused, REPORT, crowd.captions, f"Demo: {ANSWERS}", command=given)
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


def print_files(screen: Screen, told: list[str]) -> None:
    """Print which files were written, or why not."""
    screen.title("Files")
    for part in (line for each in told for line in each.splitlines()):
        screen.line(textwrap.fill(part, 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    screen.line()


def print_next(screen: Screen) -> None:
    """Print what to run next."""
    screen.title("Next")
    screen.facts(_NEXT)
