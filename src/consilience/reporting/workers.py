"""The workers: a table of all, or of those that matter most, and how each of them and the crowd confuse the classes.

Confusion matrices are made small enough to be shown: rare classes are one row together.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..answers.classes import to_numbers
from ..answers.columns import distinct_names, to_values
from ..documents.charts import Chart, draw_biases, draw_heat, draw_shares, draw_shares_right
from ..errors import plural
from ..inference import Cells, sum_by
from ..inference.levels import place_levels
from ..kernels import Floats
from ..results.worker_report import ATTENTION, FEW_ANSWERS, find_accused, rank_attention
from .subject import Subject, spell, to_name

# The most workers in the table, and numbers in all heat maps.
MOST_WORKERS, MOST_NUMBERS = 1000, 120_000
# So many entries of a table of workers are worked on at a time.
MOST_ENTRIES = 1 << 20
# Workers whose intervals are drawn: all of a small crowd.
MOST_DRAWN = 20
# A bias must be so large, and so many standard errors, to be told.
LEAST_BIAS, STANDARD_ERRORS = 0.03, 2
# The most classes of the crowd's matrix and of a worker's, and columns beside those of the classes.
MOST_CLASSES, MOST_CLASSES_EACH, MORE_COLUMNS = 14, 12, 3
# Classes whose items have fewer answers, as the fit expects, have none to speak of.
FEWEST = 0.5

MINUS = "\N{MINUS SIGN}"
# The file of those to leave out.
BLOCKED = "blocked.csv"


class Rating(NamedTuple):
    """How a rater uses a scale, in levels."""

    bias: float
    low: float  # end of the interval of the bias
    high: float
    spread: float

    def __str__(self) -> str:
        return f"{self.bias:+.1f} levels ({self.low:+.1f} to {self.high:+.1f})"


class Worker(NamedTuple):
    """A worker as the table and the charts show it; None is what is not known."""

    number: int
    name: str
    answers: int
    accuracy: float | None
    low: float | None  # end of the interval of accuracy
    high: float | None
    informativeness: float | None
    worst: str  # the most frequent mistake
    bias: str
    rating: Rating | None  # on a scale
    remarks: str
    group: int | None  # of near-copies
    change: float | None  # of accuracy over time
    change_interval: str
    chance: float | None  # the probability that the worker answers by chance
    rank: tuple[int, float]  # in the order of need for attention

    @property
    def interval(self) -> str:
        """The interval of accuracy in words."""
        return "" if self.low is None or self.high is None else f"{self.low:.0%} to {self.high:.0%}"

    @property
    def flag(self) -> str:
        """The first of the remarks, without names; nothing if it only says that little is known."""
        return ATTENTION[self.rank[0]] if self.rank[0] < ATTENTION.index("") else ""


class Workers(NamedTuple):
    """What is shown of the workers."""

    rows: list[Worker]
    n_workers: int  # of whom the table may not have all
    remarks: list[tuple[str, str]]  # those that occur, and what they mean
    charts: list[Chart]
    script: dict[str, object]  # what heat maps of workers are drawn from, in the browser
    blocking: Blocking | None  # how to leave out those who answer as if by chance


class Blocking(NamedTuple):
    """A file of workers to leave out, as the address of its content, and the command that does so, if it is known."""

    address: str
    command: str

    @classmethod
    def of(cls, subject: Subject) -> Blocking | None:
        """Return how to leave out those who answer as if by chance; None if nobody does."""
        accused = find_accused(subject.fusion)
        if not accused.any():
            return None
        lines = io.StringIO()
        before = subject.fusion.blocked  # who stay left out
        names = [] if before is None else before.tolist()
        names += subject.fusion.names.workers[accused].tolist()
        csv.writer(lines).writerows([["worker"], *([name] for name in names)])
        address = "data:text/csv;charset=utf-8," + quote(lines.getvalue(), errors="replace")
        given = subject.command
        if given is None or given.source in ("", "-"):  # a saved model keeps its workers, a pipe is empty by now
            return cls(address, "")
        return cls(address, given.write(given.gold, "--block", BLOCKED))


def describe_workers(subject: Subject) -> Workers | None:
    """Return what is shown of the workers; None if nothing is known of any of them."""
    table = tabulate(subject)
    if all(row.accuracy is None for row in table):
        return None
    shown = choose_workers(table)
    drawn = draw_raters(table) or draw_workers(table)
    charts = [] if drawn is None else [chart for chart in (drawn, draw_confusion(subject)) if chart is not None]
    charts += draw_counted(subject, table)
    script: dict[str, object] = {"confusions": gather_confusions(subject, shown)}
    return Workers(shown, len(table), list_meanings(shown), charts, script, Blocking.of(subject))


def tabulate(subject: Subject) -> list[Worker]:
    """Return the rows of `worker_report` with the bias of each worker, in the order of the workers."""
    report = subject.fusion.workers
    columns = {name: to_values(column).tolist() for name, column in report.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kind, accuracy = (each.tolist() for each in rank_attention(report))
    changes = list_changes(subject)
    return [
        Worker(
            number,
            subject.workers[number],
            row["answers"],
            to_figure(row["accuracy"]),
            to_figure(row["accuracy_low"]),
            to_figure(row["accuracy_high"]),
            to_figure(row["informativeness"]),
            to_name(row["worst_confusion"].replace(" -> ", " → "), 60) if row["worst_confusion"] else "",
            bias if rating is None else str(rating),
            rating,
            spell(row["remarks"]),
            None if to_figure(row["group"]) is None else int(row["group"]),
            *changes[number],
            to_figure(row["chance"]),
            (kind[number], accuracy[number]),
        )
        for number, (row, bias) in enumerate(zip(rows, find_biases(subject), strict=True))
        for rating in [find_rating(row)]
    ]


def find_rating(row: Mapping[str, Any]) -> Rating | None:
    """Return how a rater uses a scale; None for other workers, and where nothing is known."""
    figures = [to_figure(row.get(name)) for name in ("bias", "bias_low", "bias_high", "spread")]
    known = [figure for figure in figures if figure is not None]
    return Rating(*known) if len(known) == len(figures) else None


def list_changes(subject: Subject) -> list[tuple[float | None, str]]:
    """Return the change of accuracy of each worker over time, and its interval in words."""
    drift = subject.fusion.drift
    if drift is None:
        return [(None, "")] * len(subject.workers)
    ends = zip(*(to_values(drift[name]).tolist() for name in ("change", "change_low", "change_high")), strict=True)
    return [
        (None, "") if math.isnan(change) else (change, f"{change:+.0%} ({low:+.0%} to {high:+.0%})")
        for change, low, high in ends
    ]


def to_figure(value: float | None) -> float | None:
    """Return a figure, None if it is not known."""
    return None if value is None or math.isnan(value) else value


def choose_workers(rows: list[Worker]) -> list[Worker]:
    """Return the workers to show, those who need attention first: all, or those with remarks and the busiest."""
    ranked = sorted(rows, key=lambda row: (row.rank, row.number))
    chosen = {row.number for row in [row for row in ranked if row.flag][: MOST_WORKERS // 2]}
    busiest = sorted(rows, key=lambda row: (-row.answers, row.number))
    chosen |= {row.number for row in busiest[: MOST_WORKERS - len(chosen)]}
    return [row for row in ranked if row.number in chosen]


def draw_workers(rows: list[Worker]) -> Chart | None:
    """Return the accuracy of workers with its interval: those with remarks first, then the most reliable."""
    known = [row for row in rows if row.accuracy is not None]
    if not known:
        return None
    shown = choose_drawn(known)
    accuracy = [row.accuracy for row in known if row.accuracy is not None]
    which = "" if len(shown) == len(known) else f" {len(shown)} of them are shown."
    alt = f"{plural(len(known), 'worker')}, from {min(accuracy):.0%} to {max(accuracy):.0%} right.{which}"
    names = distinct_names([to_name(row.name, 24) for row in shown])
    drawn = [
        (
            name,
            value,
            value if row.low is None else row.low,
            value if row.high is None else row.high,
            row.flag.removeprefix("answers as if "),
        )
        for name, row in zip(names, shown, strict=True)
        if (value := row.accuracy) is not None
    ]
    return draw_shares_right("Accuracy of the workers, with 95% intervals", alt, drawn)


def draw_raters(rows: list[Worker]) -> Chart | None:
    """Return the bias of raters on a scale with its interval, the harshest first."""
    known = {row.number: row.rating for row in rows if row.rating is not None}
    if not known:
        return None
    # Whoever is harsh or lenient is seen by where the point is: other remarks come first, then raters from end to end.
    ranked = sorted((row for row in rows if row.number in known), key=lambda row: known[row.number])
    pressing = [row for row in ranked if row.flag not in ("", "harsh", "lenient")][: MOST_DRAWN // 2]
    others = [row for row in ranked if row not in pressing]
    places = np.linspace(0, len(others) - 1, min(len(others), MOST_DRAWN - len(pressing))).round().astype(int)
    shown = sorted([*pressing, *(others[k] for k in places)], key=lambda row: known[row.number])
    which = "" if len(shown) == len(known) else f" {len(shown)} of them are shown."
    biases, spreads = ([getattr(each, name) for each in known.values()] for name in ("bias", "spread"))
    ends = f"biases from {min(biases):+.1f} to {max(biases):+.1f}, with 95% intervals".replace("-", MINUS)
    alt = f"{plural(len(known), 'rater')}: {ends}, and spreads from {min(spreads):.1f} to {max(spreads):.1f}.{which}"
    names = distinct_names([to_name(row.name, 24) for row in shown])
    drawn = [
        (name, *known[row.number][:3], row.flag.removeprefix("answers as if "))
        for name, row in zip(names, shown, strict=True)
    ]
    spreads = [known[row.number].spread for row in shown]
    return draw_biases("Bias and spread of the raters, in levels", alt, drawn, spreads)


def draw_counted(subject: Subject, rows: list[Worker]) -> list[Chart]:
    r"""Return how often the harshest and the most lenient rater gave each level, and what these answers count for.

    An answer l of rater m counts as level k by what it tells alone, :math:`\propto \pi_k \Gamma_m[k, l]`. Only raters
    whose bias is beyond doubt are drawn.
    """
    judged = [row for row in rows if row.rating is not None and row.answers >= FEW_ANSWERS]
    harsh = [row for row in judged if "harsh by" in row.remarks]
    lenient = [row for row in judged if "lenient by" in row.remarks]
    shown = [min(harsh, key=order_by_bias)] if harsh else []
    shown += [max(lenient, key=order_by_bias)] if lenient else []
    return [chart for row in shown if (chart := draw_counting(subject, row)) is not None]


def order_by_bias(row: Worker) -> float:
    """Return what raters are compared by."""
    return 0.0 if row.rating is None else row.rating.bias


def draw_counting(subject: Subject, row: Worker) -> Chart | None:
    """Return how often a rater gave each level, and how often each is what the answers count for."""
    found, klass = subject.fusion, subject.responses.class_of_label
    said = sum_parts(subject.counts, row.number, row.number + 1)[0][0]
    named = np.flatnonzero((klass >= 0) & (said > 0))
    if not len(named) or found.names.positions is None:
        return None
    counts = found.prior[:, None] * found.learned.confusion[row.number][:, named]
    shares = said[named] / said[named].sum()
    given = sum_by(klass[named], shares, len(subject.classes))
    meant = (counts / counts.sum(axis=0)) @ shares
    worth = place_levels(found.names.classes, found.names.positions)
    name = to_name(row.name, 24)
    scale = f" on a scale from {worth.min():g} to {worth.max():g}" if to_numbers(found.names.classes) is None else ""
    alt = f"{name} gives {given @ worth:.1f} on average{scale}, which counts as {meant @ worth:.1f}."
    shown = {"As given": given, "Without the bias": meant}
    return draw_shares(f"Ratings of {name}, before and after", alt, subject.classes, shown, "Level")


def choose_drawn(rows: list[Worker]) -> list[Worker]:
    """Return the workers of the chart: those with remarks first, and of the others some from best to worst.

    These are in the order of the lower end of their interval: a worker with a single answer, which is right, is not
    the best of all.
    """
    flagged = sorted((row for row in rows if row.flag), key=lambda row: (row.rank, row.number))
    others = sorted((row for row in rows if not row.flag), key=lambda row: (-row.rank[1], row.number))
    flagged = flagged[: MOST_DRAWN - min(len(others), MOST_DRAWN // 4)]
    n = min(len(others), MOST_DRAWN - len(flagged))
    return [*flagged, *(others[k] for k in np.linspace(0, len(others) - 1, n).round().astype(int))]


def find_biases(subject: Subject) -> list[str]:
    """Return for each worker the label that is given too often: "cat +12%", by its share of the answers.

    It is compared with how often it is true of the items that the worker answered, as the fit expects. Nothing is said
    of a difference below two standard errors, nor of a worker with few answers.
    """
    counts, r = subject.counts, subject.responses
    named = np.flatnonzero(r.class_of_label >= 0)
    if not len(named):
        return [""] * r.n_workers
    n_together = max(1, MOST_ENTRIES // max(r.n_labels, r.n_classes))
    words = list[str]()
    for first in range(0, r.n_workers, n_together):
        by_label, by_class = sum_parts(counts, first, min(first + n_together, r.n_workers))
        label, excess = find_excess(by_label[:, named], by_class[:, r.class_of_label[named]], by_label.sum(axis=1))
        words += [
            f"{subject.labels[named[code]]} +{size:.0%}" if size >= LEAST_BIAS and total >= FEW_ANSWERS else ""
            for code, size, total in zip(label.tolist(), excess.tolist(), by_label.sum(axis=1).tolist(), strict=True)
        ]
    return words


def sum_parts(counts: Floats | Cells, first: int, last: int) -> tuple[Floats, Floats]:
    """Return how often each of some workers gave each label, and met each class."""
    if isinstance(counts, Cells):
        part = counts.of_workers(first, last)
        return part.sum_out(2), part.sum_out(1)
    return np.asarray(counts[first:last].sum(axis=2)), np.asarray(counts[first:last].sum(axis=1))


def find_excess(said: Floats, true: Floats, total: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return which label each worker gives too often, and by what share of all answers; 0 if that may be chance."""
    scale = np.maximum(total, 1e-300)[:, None]
    said, true = said / scale, true / scale
    error = np.sqrt(np.maximum(true * (1 - true), 0.0) / np.maximum(total, 1.0)[:, None])
    excess = np.where(said - true > STANDARD_ERRORS * error, said - true, 0.0)
    label = excess.argmax(axis=1)
    return label, np.asarray(excess[np.arange(len(excess)), label])


# What the remarks of `worker_report` mean, by their first words.
MEANINGS = {
    "answers as if by chance": "guessing explains the answers better than judging",
    "contrary": "right less often than by chance",
    "one label": "nearly all answers are the same label",
    "near-copy": "nearly all answers are those of others in the group",
    "accuracy falls": "right less often at the end than at the beginning, beyond chance and compared with others",
    "harsh": "rates lower than the others do",
    "lenient": "rates higher than the others do",
    "calls": "mostly calls the first of two classes the second",
    "uninformative": "the answers hardly depend on what is true",
    "few answers": f"fewer than {FEW_ANSWERS} answers, so little is known",
}


def list_meanings(rows: Sequence[Worker]) -> list[tuple[str, str]]:
    """Return the remarks that occur in the table, and what they mean."""
    found = {name for row in rows for name in name_remarks(row.remarks)}
    return [(name, meaning) for name, meaning in MEANINGS.items() if name in found]


def name_remarks(remarks: str) -> list[str]:
    """Return the remarks on a worker without what is special to that worker.

    >>> name_remarks("few answers; near-copy of w1, w2")
    ['few answers', 'near-copy']
    """
    return [name for part in remarks.split("; ") for name in MEANINGS if part.startswith(name)]


class Shown(NamedTuple):
    """What a matrix shows: the names of its rows and columns, and where each class and each label is counted."""

    classes: list[str]
    labels: list[str]
    row: NDArray[np.int64]  # of each class
    column: NDArray[np.int64]  # of each label


def choose_shown(subject: Subject, most: int) -> Shown:
    """Return which classes a matrix with at most so many rows shows: the most frequent ones.

    It has a column for each of these, and a few more for other labels.
    """
    counts, klass = subject.counts, subject.responses.class_of_label
    row, classes = choose_classes(sum_over_workers(counts, 2), subject.classes, most)
    n_alone = len(classes) if len(classes) == len(subject.classes) else len(classes) - 1
    has_row = (klass >= 0) & (row[klass] < n_alone)
    size = np.where(has_row, np.inf, sum_over_workers(counts, 1))
    order = np.arange(len(klass))
    if subject.fusion.names.positions is not None:  # labels are sorted by name, and levels are not
        order = np.argsort(np.where(klass < 0, len(subject.classes), klass), kind="stable")
    place, labels = choose_classes(size[order], [subject.labels[k] for k in order], len(classes) + MORE_COLUMNS)
    column = np.empty_like(place)
    column[order] = place
    return Shown(classes, labels, row, column)


def sum_over_workers(counts: Floats | Cells, axis: int) -> Floats:
    """Return how often each label was given (axis 1), or each class was met (axis 2), by all workers."""
    if isinstance(counts, Cells):
        return sum_by(counts.label if axis == 1 else counts.klass, counts.count, counts.shape[axis])
    return np.asarray(counts.sum(axis=(0, 3 - axis)))


def choose_classes(size: Floats, names: list[str], most: int) -> tuple[NDArray[np.int64], list[str]]:
    """Return the place at which each class is shown, and the names of places: in order, the rare ones together.

    >>> choose_classes(np.array([5.0, 1.0, 9.0, 2.0]), ["a", "b", "c", "d"], 3)
    (array([0, 2, 1, 2]), ['a', 'c', '2 other classes'])
    """
    if len(names) <= most:
        return np.arange(len(names)), names
    shown = np.sort(np.argsort(-size, kind="stable")[: most - 1])
    place = np.full(len(names), most - 1)
    place[shown] = np.arange(most - 1)
    return place, [*(names[k] for k in shown), f"{len(names) - most + 1:,} other classes"]


def count_shown(counts: Floats | Cells, shown: Shown, worker: int | None = None) -> Floats:
    """Return how often a worker, or all together, gave each label shown to items of each class shown."""
    size = len(shown.classes), len(shown.labels)
    if isinstance(counts, Cells):
        part = counts if worker is None else counts.of_workers(worker, worker + 1)
        code = shown.row[part.klass] * size[1] + shown.column[part.label]
        return sum_by(code, part.count, size[0] * size[1]).reshape(size)
    table = counts.sum(axis=0) if worker is None else counts[worker]
    return fold_table(table.T, shown.row, shown.column, *size)


def fold_table(
    table: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64], n_rows: int, n_columns: int
) -> Floats:
    """Return the sums of a table by places of its rows and columns."""
    folded = np.zeros((n_rows, n_columns))
    np.add.at(folded, (rows[:, None], columns[None, :]), table)
    return folded


def draw_confusion(subject: Subject) -> Chart | None:
    """Return how often the crowd gives each label to items of each class; None if there is nothing to confuse."""
    if len(subject.classes) < 2:
        return None
    shown = choose_shown(subject, MOST_CLASSES)
    table = count_shown(subject.counts, shown)
    table[table.sum(axis=1) < FEWEST] = 0.0
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    kind = "class" if subject.fusion.names.positions is None else "level"
    title, alt = f"What the crowd says about items of each {kind}", describe_confusion(subject, table, shares, shown)
    return draw_heat(title, alt, shown.classes, shown.labels, shares, "Fused label", "Answer")


def describe_confusion(subject: Subject, table: Floats, shares: Floats, shown: Shown) -> str:
    """Return in words the largest share of wrong answers, among the classes and labels that are shown one by one.

    Classes whose items have few answers are left out, unless all have few.
    """
    many = table.sum(axis=1) >= FEW_ANSWERS
    wrong = shares * (many if many.any() else ~many)[:, None]
    klass = subject.responses.class_of_label
    named = np.flatnonzero(klass >= 0)
    wrong[shown.row[klass[named]], shown.column[named]] = 0.0  # these answers are right
    wrong[shown.row[np.bincount(shown.row)[shown.row] > 1]] = 0.0
    wrong[:, shown.column[np.bincount(shown.column)[shown.column] > 1]] = 0.0
    i, j = divmod(int(wrong.argmax()), wrong.shape[1])
    if table[i, j] < FEWEST or wrong[i, j] < 0.005:
        return "The classes that are shown are hardly ever confused."
    confused = f"items of {shown.classes[i]} are called {shown.labels[j]}"
    return f"The largest confusion: {confused} in {wrong[i, j]:.0%} of the answers."


def gather_confusions(subject: Subject, listed: list[Worker]) -> dict[str, object]:
    """Return the expected counts of answers of the workers in the table, of as many as there is room for.

    They are by the number of each worker, [class][label].
    """
    shown = choose_shown(subject, MOST_CLASSES_EACH)
    most = MOST_NUMBERS // max(len(shown.classes) * len(shown.labels), 1)
    found = {row.number: shorten_table(count_shown(subject.counts, shown, row.number)) for row in listed[:most]}
    return {"classes": shown.classes, "labels": shown.labels, "counts": found}


def shorten_table(table: Floats) -> list[list[float]]:
    """Return counts with few digits, whole numbers without a point."""
    return [[int(x) if float(x).is_integer() else x for x in row] for row in table.round(1).tolist()]
