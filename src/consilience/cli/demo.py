"""`consilience demo`: the whole job on a simulated crowd, with the truth beside it."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import metrics, simulate
from ..answers.answers import Answers
from ..api import fuse
from ..documents.overview import rank_workers
from ..errors import ConsilienceError, InputError, MissingDependencyError, first_line, to_sentence
from ..formats.writing import replace_file
from ..metrics.probabilities import rank_correlation
from ..models.majority_vote import MajorityVote
from ..reporting.page import check_installed, write_page
from ..reporting.subject import Command
from .terminal import Column, Display, Screen, format_difference, format_number

CLASSES = ("cat", "dog", "fox", "wolf")
# What is on the images of each class: an animal, and a place.
SCENES = {
    "cat": (
        ("tabby coat and long whiskers", "black fur, green eyes", "ginger, curled up"),
        ("on a window sill", "on a sofa", "in a cardboard box", "beside a bowl of milk"),
    ),
    "dog": (
        ("floppy ears and a collar", "spotted coat, tongue out", "golden fur, wagging"),
        ("in a park, on a lead", "with a stick", "in front of a kennel", "on a beach with a ball"),
    ),
    "fox": (
        ("red coat, white tip of the tail", "reddish fur, pointed snout", "bushy tail, black feet"),
        ("at the edge of a field", "beside a hen house", "under a hedge", "between dustbins at night"),
    ),
    "wolf": (
        ("grey coat, long legs", "pale grey fur, yellow eyes", "dark back, heavy neck"),
        ("in deep snow", "howling on a ridge", "with its pack", "in a pine forest"),
    ),
}
KINDS = {"honest": "looks at the images", "spammer": "clicks at random", "adversary": "contrary"}
# So many labels are known to the fit.
N_KNOWN = 100

REPORT, ANSWERS = "demo-report.html", "demo-answers.csv"
# What is in the first bytes of every report.
OURS = b'<meta name="generator" content="consilience">'
NEXT = (
    ("consilience fuse answers.csv -o labels.csv", "columns item, worker, label"),
    ("consilience fuse answers.csv --report page.html", "a report on your answers"),
    ("consilience evaluate labels.csv gold.csv", "where some truth is known"),
    ("consilience fuse --help", "all options"),
)


class Crowd(NamedTuple):
    """Answers in columns, the true label of each item, and by worker the kind and the share of right answers."""

    answers: dict[str, list[str]]
    truth: dict[str, str]
    kinds: dict[str, str]
    accuracy: dict[str, float]

    @property
    def known(self) -> dict[str, str]:
        """The labels that the fit knows: of the first items, which are in no order."""
        return dict(list(self.truth.items())[:N_KNOWN])

    @property
    def captions(self) -> dict[str, str]:
        """What each image shows."""
        found = {}
        for n, (item, name) in enumerate(self.truth.items()):
            animals, places = SCENES[name]
            text = f"{animals[n % len(animals)]}, {places[n // len(animals) % len(places)]}."
            found[item] = text[0].upper() + text[1:]
        return found


def make_crowd(seed: int = 0) -> Crowd:
    """Forty workers of mixed quality who answer five times about each of 2,000 images.

    Examples
    --------
    >>> crowd = make_crowd()
    >>> len(crowd.truth), len(crowd.answers["label"]), len(crowd.kinds)
    (2000, 10000, 40)
    """
    drawn = simulate.independent(
        2000,
        n_workers=40,
        answers_per_item=5,
        accuracy=(0.45, 0.95),
        spammers=9,
        adversaries=2,
        prior=[0.35, 0.3, 0.2, 0.15],
        seed=seed,
    )
    r, names = drawn.responses, np.array(CLASSES)
    items = np.array([f"image-{n:04d}" for n in range(1, r.n_items + 1)])
    workers = np.array([f"w{m:02d}" for m in range(1, r.n_workers + 1)])
    item = r.item_of_answer()
    right = np.bincount(r.worker, drawn.truth[item] == r.label) / np.bincount(r.worker)
    answers = {"item": items[item].tolist(), "worker": workers[r.worker].tolist(), "label": names[r.label].tolist()}
    kinds = [KINDS[kind] for kind in drawn.parameters.kinds.tolist()]
    truth = dict(zip(items.tolist(), names[drawn.truth].tolist(), strict=True))
    by_worker = (dict(zip(workers.tolist(), each, strict=True)) for each in (kinds, right.tolist()))
    return Crowd(answers, truth, *by_worker)


def demo() -> None:
    """Fuse the answers of a simulated crowd, compare with the truth, and write a report."""
    with Display(quiet=False) as display:
        display.say("Drawing a crowd")
        crowd = make_crowd()
        responses = Answers.from_frame(crowd.answers)
        display.say("Fitting")
        fused = fuse(responses, gold=crowd.known, callback=display.show_iteration)
        vote = MajorityVote().fit(responses)
        display.say("Writing the report")
        files = [write_answers(crowd), write_report(crowd, fused)]
    screen = Screen()
    print_scores(screen, crowd, vote, fused)
    print_workers(screen, crowd, fused)
    screen.title("Files")
    for line in (line for each in files for line in each.splitlines()):
        screen.line(textwrap.fill(line, 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    screen.line()
    screen.title("Next")
    screen.facts(NEXT)


def print_scores(screen: Screen, crowd: Crowd, vote: Any, fused: Any) -> None:
    """Print how right the vote and the fit are about items whose label the fit did not know."""
    truth, classes = list(crowd.truth.values())[N_KNOWN:], fused.classes_.tolist()
    scores = []
    for model in (vote, fused):
        labels, posterior = model.labels_[N_KNOWN:], model.posterior_[N_KNOWN:]
        scores.append(
            (
                metrics.accuracy(truth, labels),
                metrics.macro_f1(truth, labels),
                metrics.log_loss(truth, posterior, classes),
                metrics.calibration_error(truth, posterior, classes),
            )
        )
    names = ("accuracy", "macro F1", "log loss (low is good)", "calibration error (low)")
    rows = [(name, *map(format_number, pair)) for name, *pair in zip(names, *scores, strict=True)]
    sizes = f"{len(crowd.truth):,} images, {len(classes)} classes, {len(crowd.kinds)} workers"
    screen.title(f"{sizes}, {len(crowd.answers['label']):,} answers")
    screen.line("  Some workers are careful, some hardly know better, and some do not look.")
    screen.line(f"  The truth is known here, to judge the labels by. The fit knows {N_KNOWN} labels.")
    screen.line()
    screen.table([Column("", 28), Column("majority vote", 13, number=True), Column("consilience", number=True)], rows)
    screen.line()
    compared = fused.comparison_
    words = f"{format_difference(compared.n_differ)} from the vote's. {to_sentence(compared.describe_headline())}"
    for line in textwrap.wrap(words, 78):
        screen.line(f"  {line}")
    screen.line()


def print_workers(screen: Screen, crowd: Crowd, fused: Any) -> None:
    """Print the first three workers of each kind, most reliable first, with their true accuracy beside the estimate."""
    report = fused.worker_report()
    records = report.take(rank_workers(report)[0]).to_pylist()
    true = [crowd.accuracy[each["worker"]] for each in records]
    rows: list[tuple[str, ...]] = []
    for record, accuracy in zip(records, true, strict=True):
        kind = crowd.kinds[record["worker"]]
        if sum(row[1] == kind for row in rows) < 3:
            figures = format_number(accuracy), format_number(record["accuracy"])
            rows.append((record["worker"], kind, *figures, record["remarks"]))
    columns = [Column("worker", 8), Column("who", 20), Column("true", number=True), Column("found", number=True)]
    screen.title("Accuracy of workers: the true one, and the one found without the truth")
    screen.table([*columns, Column("remarks", 36)], rows)
    screen.line()
    correlation = rank_correlation(true, [each["accuracy"] for each in records])
    screen.line(f"  Rank correlation over all {len(records)} workers: {correlation:.2f}")
    screen.line()


def write_answers(crowd: Crowd) -> str:
    """Write the answers, unless that would replace a file that is not the same; the sentence to say of it."""
    known, captions = crowd.known, crowd.captions
    rows = [[*row, known.get(row[0], ""), captions[row[0]]] for row in zip(*crowd.answers.values(), strict=True)]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([["item", "worker", "label", "gold", "caption"], *rows])
    content, path = buffer.getvalue().encode(), Path(ANSWERS)
    try:
        if path.exists() and path.read_bytes() != content:
            return f"{ANSWERS} was not written: there is another file of that name."
        with replace_file(path) as temporary:
            temporary.write_bytes(content)
    except (OSError, InputError) as error:
        return f"{ANSWERS} was not written: {first_line(error)}."
    return f"{ANSWERS} holds the answers."


def write_report(crowd: Crowd, fused: Any) -> str:
    """Write the report, unless it cannot be made or would replace another page; the sentence to say of it."""
    try:
        check_installed()
    except MissingDependencyError:
        return "A page about these labels needs two more packages:\npip install 'consilience[report]'"
    path = Path(REPORT)
    if path.exists() and not (path.is_file() and OURS in path.read_bytes()[:4096]):
        return f"{REPORT} was not written: there is a file of that name, and it is not a report."
    try:
        given = Command(("fuse", ANSWERS, "--content", "caption"), ("--report", REPORT), (), ANSWERS)
        write_page(fused, REPORT, crowd.captions, f"Demo: {ANSWERS}", command=given)
    except ConsilienceError as error:
        return f"{REPORT} was not written. {error}"
    return f"{REPORT} says whether to trust the labels. Open it in a browser."
