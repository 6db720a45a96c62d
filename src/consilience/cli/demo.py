"""`consilience demo`: the whole job on made-up data, with the truth beside it."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import metrics
from ..answers.responses import Answers
from ..api import fuse
from ..errors import ConsilienceError, InputError, MissingDependencyError, first_line, to_sentence
from ..formats.writing import replace_file
from ..metrics.probabilities import rank_correlation
from ..models.fitted import FittedModel
from ..models.majority_vote import MajorityVote
from ..reporting.page import check_installed, write_page
from ..reporting.subject import Command
from .command import Record
from .summary import rank_workers
from .terminal import Column, Display, Screen, format_difference, format_number

CLASSES = ("cat", "dog", "fox", "wolf")
PRIOR = (0.35, 0.3, 0.2, 0.15)
# What is on the images of each class: an animal, and a place.
ANIMALS = {
    "cat": ("tabby coat and long whiskers", "black fur, green eyes", "ginger, curled up", "white paws, short nose"),
    "dog": ("floppy ears and a collar", "spotted coat, tongue out", "golden fur, wagging", "short legs, long ears"),
    "fox": ("red coat, white tip of the tail", "reddish fur, pointed snout", "bushy tail, black feet"),
    "wolf": ("grey coat, long legs", "pale grey fur, yellow eyes", "dark back, heavy neck"),
}
PLACES = {
    "cat": ("on a window sill", "on a sofa", "in a cardboard box", "on a garden wall", "beside a bowl of milk"),
    "dog": ("in a park, on a lead", "with a stick", "in front of a kennel", "on a beach with a ball", "in a car"),
    "fox": ("at the edge of a field", "beside a hen house", "under a hedge", "between dustbins at night"),
    "wolf": ("in deep snow", "howling on a ridge", "with its pack", "in a pine forest", "beside a dead elk"),
}
N_ITEMS = 2000
ANSWERS_PER_ITEM = 5
# So many labels are known to the fit.
N_KNOWN = 100

REPORT, ANSWERS = "demo-report.html", "demo-answers.csv"
# Columns of the file of answers.
COLUMNS = ("item", "worker", "label", "gold", "caption")
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
        responses = Answers.from_frame(crowd.answers)
        display.say("Fitting")
        fused = fuse(responses, gold=crowd.known, callback=display.show_iteration)
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
    screen.line(f"  The truth is known here, to judge the labels by. The fit knows {N_KNOWN} labels.")
    screen.line()
    scores = zip(score(crowd, vote).items(), score(crowd, fused).values(), strict=True)
    columns = [Column("", 28), Column("majority vote", 13, number=True), Column("consilience", number=True)]
    rows = [(name, format_number(by_vote), format_number(by_fit)) for (name, by_vote), by_fit in scores]
    screen.table(columns, rows)
    screen.line()
    compared = fused.comparison_
    assert compared is not None
    told = f"{format_difference(compared.n_differ)} from the vote's. {to_sentence(compared.describe_headline())}"
    for line in textwrap.wrap(told, 78):
        screen.line(f"  {line}")
    screen.line()


def score(crowd: Crowd, model: FittedModel) -> dict[str, float]:
    """Return scores of a fitted model against the truth, at items whose label it did not know."""
    truth = list(crowd.truth.values())[N_KNOWN:]
    labels, posterior, classes = model.labels_[N_KNOWN:], model.posterior_[N_KNOWN:], model.classes_.tolist()
    return {
        "accuracy": metrics.accuracy(truth, labels),
        "macro F1": metrics.macro_f1(truth, labels),
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
        Column("remarks", 36),
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
            rows.append((worker, kind, *figures, record["remarks"]))
    return rows


def true_accuracies(crowd: Crowd) -> dict[str, float]:
    """Return the share of right answers of each worker."""
    right: dict[str, list[bool]] = {}
    for item, worker, label in zip(*crowd.answers.values(), strict=True):
        right.setdefault(worker, []).append(label == crowd.truth[item])
    return {worker: sum(marks) / len(marks) for worker, marks in right.items()}


def write_answers(crowd: Crowd) -> str:
    """Write the answers, unless that would replace a file that is not the same. Return what to say of it."""
    known = crowd.known
    facts = ((known.get(item, ""), crowd.captions[item]) for item in crowd.answers["item"])
    rows = ((*answer, *fact) for answer, fact in zip(zip(*crowd.answers.values(), strict=True), facts, strict=True))
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([COLUMNS, *rows])
    content, path = buffer.getvalue().encode(), Path(ANSWERS)
    try:
        if path.exists() and path.read_bytes() != content:
            return f"{ANSWERS} was not written: there is another file of that name."
        with replace_file(path) as temporary:
            temporary.write_bytes(content)
    except (OSError, InputError) as error:
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
        given = Command(("fuse", ANSWERS, "--content", COLUMNS[-1]), ("--report", REPORT), (), ANSWERS)
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


class Crowd(NamedTuple):
    """Answers in columns, the true label of each item, what kind of worker each is, and what each item shows."""

    answers: dict[str, list[str]]
    truth: dict[str, str]
    kinds: dict[str, str]
    captions: dict[str, str]

    @property
    def known(self) -> dict[str, str]:
        """The labels that the fit knows: of the first items, which are in no order."""
        return dict(list(self.truth.items())[:N_KNOWN])


def make_crowd(seed: int = 0) -> Crowd:
    """Draw a crowd of forty workers of mixed quality, and their answers.

    Parameters
    ----------
    seed : int
        The same seed gives the same crowd.

    Examples
    --------
    >>> crowd = make_crowd()
    >>> len(crowd.truth), len(crowd.answers["label"]), len(crowd.kinds)
    (2000, 10000, 40)
    """
    rng = np.random.default_rng(seed)
    kinds, confusion = draw_workers(rng)
    truth = rng.choice(len(CLASSES), size=N_ITEMS, p=PRIOR)
    # The workers of an item are the first few of a random order of all.
    worker = rng.random((N_ITEMS, len(kinds))).argsort(axis=1)[:, :ANSWERS_PER_ITEM]
    cumulated = confusion[worker, truth[:, None]].cumsum(axis=2)
    label = (rng.random((*worker.shape, 1)) > cumulated[:, :, :-1]).sum(axis=2)
    items = [f"image-{n:04d}" for n in range(1, N_ITEMS + 1)]
    workers = [f"w{m:02d}" for m in range(1, len(kinds) + 1)]
    answers = {
        "item": [item for item in items for _ in range(ANSWERS_PER_ITEM)],
        "worker": [workers[m] for m in worker.ravel()],
        "label": [CLASSES[k] for k in label.ravel()],
    }
    names = dict(zip(items, (CLASSES[k] for k in truth), strict=True))
    captions = {item: describe_image(name, n) for n, (item, name) in enumerate(names.items())}
    return Crowd(answers, names, dict(zip(workers, kinds, strict=True)), captions)


def describe_image(name: str, number: int) -> str:
    """Return what is on the image with a number, of an animal.

    >>> describe_image("cat", 0)
    'Tabby coat and long whiskers, on a window sill.'
    """
    animals, places = ANIMALS[name], PLACES[name]
    text = f"{animals[number % len(animals)]}, {places[number // len(animals) % len(places)]}."
    return text[0].upper() + text[1:]


def draw_workers(rng: np.random.Generator) -> tuple[list[str], NDArray[np.float64]]:
    """Return the kind of each worker and the confusion matrices (worker, truth, answer), in random order."""
    n_classes = len(CLASSES)
    even = np.full((n_classes, n_classes), 1 / n_classes)
    matrices = [("careful", _near_diagonal(accuracy)) for accuracy in rng.uniform(0.8, 0.95, 8)]
    matrices += [("ordinary", _near_diagonal(accuracy)) for accuracy in rng.uniform(0.45, 0.75, 15)]
    matrices += [("calls wolves dogs", _wolf_is_dog(accuracy)) for accuracy in rng.uniform(0.75, 0.9, 6)]
    matrices += [("clicks at random", even)] * 8
    matrices += [("always says cat", np.eye(n_classes)[np.zeros(n_classes, int)] * 0.97 + even * 0.03)] * 2
    matrices += [("contrary", np.roll(_near_diagonal(0.85), 1, axis=1))]
    order = rng.permutation(len(matrices))
    return [matrices[m][0] for m in order], np.stack([matrices[m][1] for m in order])


def _near_diagonal(accuracy: float) -> NDArray[np.float64]:
    n_classes = len(CLASSES)
    wrong = (1 - accuracy) / (n_classes - 1)
    return np.full((n_classes, n_classes), wrong) + np.eye(n_classes) * (accuracy - wrong)


def _wolf_is_dog(accuracy: float) -> NDArray[np.float64]:
    matrix = _near_diagonal(accuracy)
    wolf, dog = CLASSES.index("wolf"), CLASSES.index("dog")
    matrix[wolf, [dog, wolf]] = matrix[wolf, [wolf, dog]]
    return matrix
