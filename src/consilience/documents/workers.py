"""The workers: charts, a table of all or of those that matter most, and how each of them and the crowd confuse classes.

Confusion matrices are made small enough to be shown: rare classes are one row together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import to_values
from ..errors import plural
from ..inference import STANDARD_ERRORS
from ..inference.cells import Cells
from ..kernels import NEARLY_ZERO, Floats
from ..results.worker_report import ATTENTION, FEW_ANSWERS, find_accused, rank_attention
from .charts import Chart, Interval, draw_biases, draw_heat, draw_intervals
from .document import Column, Part, Section, Table, Text, Widget, name_all, to_name
from .items import repeat_command
from .view import View

# The most workers in the table, and numbers in all heat maps.
MOST_WORKERS_LISTED, MOST_NUMBERS_DRAWN = 1000, 120_000
# Workers whose intervals are drawn: all of a small crowd.
MOST_WORKERS_DRAWN = 20
# A smaller bias towards a class is not drawn.
LEAST_CLASS_BIAS = 0.03
# The most classes of the crowd's matrix and of a worker's, and columns beside those of the classes.
MOST_CLASSES_DRAWN, MOST_CLASSES_EACH, MORE_COLUMNS = 14, 12, 3
# Classes whose items have fewer answers, as the fit expects, have none to speak of.
FEWEST_EXPECTED = 0.5
MINUS = "\N{MINUS SIGN}"
# The file of those to leave out.
BLOCKED = "blocked.csv"

# A worker: the columns of `worker_report`; number, name and flag; change with its interval, and the place in the order
# of those who need attention.
Row = dict[str, Any]


def list_workers(view: View) -> list[Part]:
    """What is known of the workers; nothing if nothing is known of any of them."""
    rows = tabulate(view)
    if all(row["accuracy"] is None for row in rows):
        return []
    ranked = sorted(rows, key=lambda row: row["rank"])
    chosen = {row["number"] for row in [row for row in ranked if row["flag"]][: MOST_WORKERS_LISTED // 2]}
    busiest = sorted(rows, key=lambda row: -row["answers"])
    chosen |= {row["number"] for row in busiest[: MOST_WORKERS_LISTED - len(chosen)]}
    shown = [row for row in ranked if row["number"] in chosen]

    # The chart, beside what the crowd confuses, what the remarks in the chart mean, and how to leave workers out.
    rates = any(row["spread"] is not None for row in rows)
    drawn = draw_raters(rows) if rates else draw_workers(rows)
    flags = {row["flag"] for row in shown if drawn is not None} - {""}
    remarks = {part for row in shown for part in row["remarks"].split("; ")}
    parts = list[Part]()
    if drawn is not None:
        confusion, accused = draw_confusion(view), find_accused(view.result, view.result.comparison)
        beside: list[Part] = [*([] if confusion is None else [confusion])]
        beside += [Widget("meanings", {"remarks": sorted(flags), "known": []})] if flags else []
        if accused.any():
            before, lines = view.result.given.blocked, io.StringIO()  # who is left out stays so
            names = [*([] if before is None else before.tolist()), *view.result.names.workers[accused].tolist()]
            csv.writer(lines).writerows([["worker"], *([name] for name in names)])
            address = "data:text/csv;charset=utf-8," + quote(lines.getvalue(), errors="replace")
            # A saved model keeps its workers, and a pipe is empty by now.
            command = "" if view.source in ("", "-") else repeat_command(view.command, "--block", BLOCKED)
            beside.append(Widget("blocking", {"address": address, "command": command, "file": BLOCKED}))
        parts.append(([drawn], beside))

    words = [
        "Accuracy is the share of a worker's answers that agree with the truth, as the fit estimates it.",
        "Informativeness is what an answer tells about the truth: 0 tells nothing, 1 tells all.",
        "A bias is by how much ratings are too high, compared with the mean of all raters."
        if rates
        else "A bias is a label that is given more often than it is true.",
    ]
    fold: list[Part] = [Text(words)]
    if len(shown) < len(rows):
        which = f"The table has {len(shown):,} of them: workers with remarks, and those with most answers."
        fold.append(Text([f"There are {len(rows):,} workers.", which]))
    columns = [
        Column("name", "Worker"),
        Column("answers", "Answers", "count"),
        Column("accuracy", "Accuracy", "percent", words[0]),
        Column("interval", "95% interval", "interval", "Sorted by its lower end: nobody is first by a lucky answer"),
        Column("informativeness", "Informativeness", "number", "How much an answer tells: 0 nothing, 1 everything"),
        Column("chance", "By chance", "share", "The probability that the worker answers without looking at the item"),
        Column("change", "Change of accuracy", "change", "From the first third of the answers to the last"),
        Column("sureness", "Sureness"),
        Column("words", "Bias", help=words[-1]),
        Column("worst", "Most frequent mistake", help="The most frequent wrong answer, and its share for that class"),
        Column("remarks", "Remarks"),
        Column("group", "Group", "count"),
    ]
    seldom = {key for key in ("chance", "change", "sureness", "group") if all(row[key] is None for row in rows)}
    columns = [each for each in columns if each.key not in seldom]
    table = Table("workers", "Table of workers", columns, shown, len(rows) - len(shown))
    numbers = [row["number"] for row in shown]

    # How often each of them gave each label to items of each class: of as many as there is room for.
    classes, labels, *_ = places = choose_shown(view, MOST_CLASSES_EACH)
    matrices: dict[int, list[list[float]]] = {}
    for number in numbers[: MOST_NUMBERS_DRAWN // max(len(classes) * len(labels), 1)]:
        matrices[number] = count_places(view.counts, places, number).round(1).tolist()
    data = {"confusions": {"classes": classes, "labels": labels, "counts": matrices}}
    fold.append(Widget("workers", {"table": table, "cells": table.cells(), "numbers": numbers}, data))
    title = f"All {len(rows):,} workers, and how each answers" if len(rows) > 1 else "The worker in figures"
    fold.append(Widget("meanings", {"remarks": sorted(remarks), "known": sorted(flags)}))
    return [*parts, Section(title, fold)]


def tabulate(view: View) -> list[Row]:
    """The rows of `worker_report`, with what only the page shows, in the order of the workers.

    A bias of a worker is the label that is given too often: "cat +12%", by its share of the answers, compared with how
    often it is true of the items that the worker answered, as the fit expects. Nothing is said of a difference below
    two standard errors, nor of a worker with few answers.
    """
    result, report, n = view.result, view.result.workers, len(view.workers)
    klass, biases = view.answers.class_of_label, [""] * n
    named, n_answers = np.flatnonzero(klass >= 0), view.said.sum(axis=1)
    if len(named):
        total = np.maximum(n_answers, NEARLY_ZERO)[:, None]
        said, true = view.said[:, named] / total, view.met[:, klass[named]] / total
        error = np.sqrt(np.maximum(true * (1 - true), 0.0) / np.maximum(n_answers, 1.0)[:, None])
        excess = np.where(said - true > STANDARD_ERRORS * error, said - true, 0.0)
        most = excess.argmax(axis=1)
        largest = excess[np.arange(n), most]
        for m in np.flatnonzero((largest >= LEAST_CLASS_BIAS) & (n_answers >= FEW_ANSWERS)).tolist():
            biases[m] = f"{view.labels[named[most[m]]]} +{largest[m]:.0%}"

    nothing: list[Any] = [None] * n
    columns = dict.fromkeys(("bias", "bias_low", "bias_high", "spread", "sureness"), nothing)
    columns |= {name: to_values(column).tolist() for name, column in report.items()}
    moved = [] if result.drift is None else [result.drift[name] for name in ("change", "change_low", "change_high")]
    drift = list(zip(*(to_values(column).tolist() for column in moved), strict=True)) or nothing
    kinds, accuracies = (each.tolist() for each in rank_attention(report))
    rows = []
    for m, values in enumerate(zip(*columns.values(), strict=True)):
        known = (None if value != value else value for value in values)  # NaN: what is not known
        row: Row = dict(zip(columns, known, strict=True))
        worst = row["worst_confusion"]
        row |= {
            "number": m,
            "name": view.workers[m],
            "rank": (kinds[m], accuracies[m]),
            "flag": ATTENTION[kinds[m]] if kinds[m] < ATTENTION.index("") else "",
            "interval": (row["accuracy_low"], row["accuracy_high"]),
            "worst": to_name(worst.replace(" -> ", " → "), 60) if worst else "",
            "words": biases[m],
            "change": drift[m],
        }
        if row["spread"] is not None:
            row["words"] = f"{row['bias']:+.1f} levels ({row['bias_low']:+.1f} to {row['bias_high']:+.1f})"
        rows.append(row)
    return rows


def choose_drawn(rows: Sequence[Row], figure: str) -> tuple[list[Row], str]:
    """Those rows that a chart shows, first with remarks that a figure does not show by itself; and how many there are.

    Of many others there are some from end to end, evenly spaced.
    """
    own = ("", "harsh", "lenient") if figure == "bias" else ("",)
    flagged, others = ([row for row in rows if (row["flag"] in own) == calm] for calm in (False, True))
    flagged = flagged[: MOST_WORKERS_DRAWN - min(len(others), MOST_WORKERS_DRAWN // 4)]
    n_others = min(len(others), MOST_WORKERS_DRAWN - len(flagged))
    shown = [*flagged, *(others[k] for k in np.linspace(0, len(others) - 1, n_others).round().astype(int))]
    return shown, "" if len(shown) == len(rows) else f" {len(shown)} of them are shown."


def list_intervals(rows: Sequence[Row], figure: str) -> list[Interval]:
    """The intervals of a figure, and remarks in few words."""
    names, drawn = name_all([row["name"] for row in rows], 24), list[Interval]()
    for name, row in zip(names, rows, strict=True):
        value, *ends = (row[f"{figure}{end}"] for end in ("", "_low", "_high"))
        low, high = (value if end is None else end for end in ends)
        drawn.append((name, value, low, high, row["flag"].removeprefix("answers as if ")))
    return drawn


def draw_workers(rows: Sequence[Row]) -> Chart | None:
    """The accuracy of workers with its interval: those with remarks first, then the most reliable.

    The others are in the order of the lower end of their interval: a worker with a single answer, which is right, is
    not the best of all.
    """
    known = [row for row in rows if row["accuracy"] is not None]
    if not known:
        return None
    known.sort(key=lambda row: row["rank"] if row["flag"] else (0, -row["rank"][1]))
    shown, which = choose_drawn(known, "accuracy")
    accuracy = [row["accuracy"] for row in known]
    alt = f"{plural(len(known), 'worker')}, from {min(accuracy):.0%} to {max(accuracy):.0%} right.{which}"
    drawn = list_intervals(shown, "accuracy")
    start = min(0.75, np.floor(4 * min(low for _, _, low, _, _ in drawn)) / 4)
    heads, axis = ("Worker", "Accuracy", "95% interval"), {"format": "%", "tickCount": 5}
    title = "Accuracy of the workers, with 95% intervals"
    return draw_intervals(title, alt, heads, drawn, (float(start), 1.0), axis, ".1%")


def draw_raters(rows: Sequence[Row]) -> Chart | None:
    """The bias of raters on a scale with its interval, the harshest first."""
    known = sorted((row for row in rows if row["spread"] is not None), key=lambda row: row["bias"])
    if not known:
        return None
    shown, which = choose_drawn(known, "bias")
    shown.sort(key=lambda row: row["bias"])
    spreads = [row["spread"] for row in known]
    ends = f"biases from {known[0]['bias']:+.1f} to {known[-1]['bias']:+.1f}, with 95% intervals".replace("-", MINUS)
    alt = f"{plural(len(known), 'rater')}: {ends}, and spreads from {min(spreads):.1f} to {max(spreads):.1f}.{which}"
    heads = ("Rater", "Bias in levels", "95% interval", "Spread in levels")
    title, spreads = "Bias and spread of the raters, in levels", [row["spread"] for row in shown]
    return draw_biases(title, alt, heads, list_intervals(shown, "bias"), spreads)


# -------------------------------------------------------------------------------------------------------- confusions

# Names of rows and of columns, and where each class and each label is counted.
Places = tuple[list[str], list[str], NDArray[np.int64], NDArray[np.int64]]


def draw_confusion(view: View) -> Chart | None:
    """How often the crowd gives each label to items of each class; None if there is nothing to confuse.

    In words it is the largest share of wrong answers, among the classes and labels that are shown one by one. Classes
    whose items have few answers are left out of that, unless all have few.
    """
    if len(view.classes) < 2:
        return None
    classes, labels, row, column = places = choose_shown(view, MOST_CLASSES_DRAWN)
    table = count_places(view.counts, places)
    table[table.sum(axis=1) < FEWEST_EXPECTED] = 0.0
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), NEARLY_ZERO)
    many = table.sum(axis=1) >= FEW_ANSWERS
    wrong = shares * (many if many.any() else ~many)[:, None]
    klass = view.answers.class_of_label
    named = np.flatnonzero(klass >= 0)
    wrong[row[klass[named]], column[named]] = 0.0  # these answers are right
    wrong[np.bincount(row, minlength=len(classes)) > 1] = 0.0
    wrong[:, np.bincount(column, minlength=len(labels)) > 1] = 0.0
    i, j = divmod(int(wrong.argmax()), wrong.shape[1])
    alt = f"The largest confusion: items of {classes[i]} are called {labels[j]} in {wrong[i, j]:.0%} of the answers."
    if table[i, j] < FEWEST_EXPECTED or wrong[i, j] < 0.005:
        alt = "The classes that are shown are hardly ever confused."
    title = f"What the crowd says about items of each {'class' if view.result.names.positions is None else 'level'}"
    return draw_heat(title, alt, classes, labels, shares, "Fused label", "Answer")


def choose_shown(view: View, most: int) -> Places:
    """Which classes a matrix with at most so many rows shows: the most frequent ones.

    It has a column for each of these, and a few more for other labels.
    """
    klass = view.answers.class_of_label
    row, classes = merge_rare(view.met.sum(axis=0), view.classes, most)
    n_single = len(classes) if len(classes) == len(view.classes) else len(classes) - 1
    has_row = (klass >= 0) & (row[klass] < n_single)
    size = np.where(has_row, np.inf, view.said.sum(axis=0))
    order = np.arange(len(klass))
    if view.result.names.positions is not None:  # labels are sorted by name, and levels are not
        order = np.argsort(np.where(klass < 0, len(view.classes), klass), kind="stable")
    place, labels = merge_rare(size[order], [view.labels[k] for k in order], len(classes) + MORE_COLUMNS)
    column = np.empty_like(place)
    column[order] = place
    return classes, labels, row, column


def merge_rare(size: Floats, names: list[str], most: int) -> tuple[NDArray[np.int64], list[str]]:
    """The place at which each class is shown, and the names of places: in order, the rare ones together.

    >>> merge_rare(np.array([5.0, 1.0, 9.0, 2.0]), ["a", "b", "c", "d"], 3)
    (array([0, 2, 1, 2]), ['a', 'c', '2 other classes'])
    """
    if len(names) <= most:
        return np.arange(len(names)), names
    shown = np.sort(np.argsort(-size, kind="stable")[: most - 1])
    place = np.full(len(names), most - 1)
    place[shown] = np.arange(most - 1)
    return place, [*(names[k] for k in shown), f"{len(names) - most + 1:,} other classes"]


def count_places(counts: Cells, places: Places, worker: int | None = None) -> Floats:
    """How often a worker, or all together, gave each label shown to items of each class shown."""
    classes, labels, row, column = places
    folded, part = np.zeros((len(classes), len(labels))), counts.where(counts.klass < counts.shape[2])
    if worker is not None:
        part = part.of_workers(worker, worker + 1)
    np.add.at(folded, (row[part.klass], column[part.label]), part.count)
    return folded
