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

from ..answers.classes import to_numbers
from ..answers.columns import distinct_names, to_values
from ..errors import plural
from ..inference import Cells, sum_by
from ..inference.levels import place_levels
from ..kernels import Floats
from ..results.worker_report import (
    ATTENTION,
    FEW_ANSWERS,
    find_accused,
    rank_attention,
)
from .charts import Chart, draw_biases, draw_heat, draw_shares, draw_shares_right
from .document import Column, Columns, Fact, Facts, Fold, Part, Table, Text, Widget, to_name
from .view import View

# The most workers in the table, and numbers in all heat maps.
MOST_WORKERS, MOST_NUMBERS = 1000, 120_000
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

# A worker: the columns of `worker_report`; number, name and flag; change with its interval, and the place in the order
# of those who need attention.
Row = dict[str, Any]


def show_workers(view: View) -> list[Part]:
    """What is known of the workers; nothing if nothing is known of any of them."""
    rows = tabulate(view)
    if all(row["accuracy"] is None for row in rows):
        return []
    ranked = sorted(rows, key=lambda row: (row["rank"], row["number"]))
    chosen = {row["number"] for row in [row for row in ranked if row["flag"]][: MOST_WORKERS // 2]}
    busiest = sorted(rows, key=lambda row: (-row["answers"], row["number"]))
    chosen |= {row["number"] for row in busiest[: MOST_WORKERS - len(chosen)]}
    shown = [row for row in ranked if row["number"] in chosen]

    drawn, rates = draw_raters(rows) or draw_workers(rows), any(row["spread"] is not None for row in rows)
    remarks = [(name, text) for name, text in MEANINGS.items() if any(name in list_remarks(row) for row in shown)]
    flags = {row["flag"] for row in shown} if drawn is not None else set()
    beside: list[Part] = [chart for chart in [draw_confusion(view)] if drawn is not None and chart is not None]
    beside += explain_remarks([each for each in remarks if each[0] in flags])
    beside += [] if drawn is None else list_blocked(view)
    parts: list[Part] = [] if drawn is None else [Columns([[drawn], beside])]
    counted = draw_counted(view, rows)
    parts += [Columns([[chart] for chart in counted])] if counted else []

    bias = (
        "by how much ratings are too high, compared with the mean of all raters"
        if rates
        else "a label that is given more often than it is true"
    )
    words = [
        "Accuracy is the share of a worker's answers that agree with the truth, as the fit estimates it.",
        "Informativeness is what an answer tells about the truth: 0 tells nothing, 1 tells all.",
        f"A bias is {bias}.",
    ]
    fold: list[Part] = [Text(words)]
    if len(shown) < len(rows):
        which = f"The table has {len(shown):,} of them: workers with remarks, and those with most answers."
        fold.append(Text([f"There are {len(rows):,} workers.", which]))
    data = {"confusions": gather_confusions(view, [row["number"] for row in shown])}
    table = make_table(shown, rates, len(rows) - len(shown))
    fold.append(Widget("workers", {"table": table, "numbers": [row["number"] for row in shown]}, data))
    fold += explain_remarks([each for each in remarks if each[0] not in flags])
    title = f"All {len(rows):,} workers, and how each answers" if len(rows) > 1 else "The worker in figures"
    return [*parts, Fold(title, fold)]


def tabulate(view: View) -> list[Row]:
    """The rows of `worker_report`, with what only the page shows, in the order of the workers."""
    found, report = view.result, view.result.workers
    columns = {name: to_values(column).tolist() for name, column in report.items()}
    n, kind_and_accuracy = len(view.workers), [each.tolist() for each in rank_attention(report)]
    columns |= dict.fromkeys({"bias", "bias_low", "bias_high", "spread"} - set(columns), [None] * n)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    biases, fair = find_biases(view), ATTENTION.index("")
    moved = [] if found.drift is None else [found.drift[name] for name in ("change", "change_low", "change_high")]
    drift = list(zip(*(to_values(column).tolist() for column in moved), strict=True))
    for m, (row, *rank) in enumerate(zip(rows, *kind_and_accuracy, strict=True)):
        row |= {name: None for name, value in row.items() if value != value}  # NaN: what is not known
        worst = row["worst_confusion"]
        row |= {
            "number": m,
            "name": view.workers[m],
            "rank": tuple(rank),
            "flag": ATTENTION[rank[0]] if rank[0] < fair else "",
            "interval": (row["accuracy_low"], row["accuracy_high"]),
            "worst": to_name(worst.replace(" -> ", " → "), 60) if worst else "",
            "words": biases[m],
            "change": None,
        }
        if row["spread"] is not None:
            row["words"] = f"{row['bias']:+.1f} levels ({row['bias_low']:+.1f} to {row['bias_high']:+.1f})"
        if drift:
            row["change"] = drift[m]
    return rows


def make_table(rows: Sequence[Row], rates: bool, n_more: int) -> Table:
    """The table of workers; columns that would be empty are left out."""
    about = "By how many levels ratings are too high" if rates else "A label that is given more often than it is true"
    lower = "Of the accuracy; sorted by its lower end, so that nobody is first by a few lucky answers"
    change = "From the first fifth of the worker's answers to the last, with a 95% interval, compared with others"
    worst = "The wrong answer that this worker gave most often, and to which share of the items of that class"
    share = "The share of answers that agree with the truth, as the fit estimates it"
    columns = [
        Column("name", "Worker"),
        Column("answers", "Answers", "count"),
        Column("accuracy", "Accuracy", "percent", share),
        Column("interval", "95% interval", "interval", lower),
        Column("informativeness", "Informativeness", "number", "How much an answer tells: 0 nothing, 1 everything"),
        Column("chance", "By chance", "share", "The probability that the worker answers without looking at the item"),
        Column("change", "Change of accuracy", "change", change),
        Column("words", "Bias", help=about),
        Column("worst", "Most frequent mistake", help=worst),
        Column("remarks", "Remarks"),
        Column("group", "Group", "count"),
    ]
    columns = [
        each
        for each in columns
        if each.key not in ("chance", "change", "group") or any(row[each.key] is not None for row in rows)
    ]
    listed = [[row[each.key] for each in columns] for row in rows]
    return Table("workers", "Table of workers", columns, listed, n_more)


def list_remarks(row: Row) -> list[str]:
    """The remarks on a worker without what is special to that worker."""
    return [name for part in row["remarks"].split("; ") for name in MEANINGS if part.startswith(name)]


def explain_remarks(remarks: Sequence[tuple[str, str]]) -> list[Part]:
    """What remarks mean."""
    return [Facts([Fact("", name, text) for name, text in remarks], "terms")] if remarks else []


def list_blocked(view: View) -> list[Part]:
    """How to leave out those who answer as if by chance: a file, and the command that does so, if it is known."""
    accused = find_accused(view.result)
    if not accused.any():
        return []
    lines, before = io.StringIO(), view.result.blocked  # who stay left out
    names = [] if before is None else before.tolist()
    names += view.result.names.workers[accused].tolist()
    csv.writer(lines).writerows([["worker"], *([name] for name in names)])
    address = "data:text/csv;charset=utf-8," + quote(lines.getvalue(), errors="replace")
    given = view.command
    # A saved model keeps its workers, and a pipe is empty by now.
    unknown = given is None or given.source in ("", "-")
    command = "" if given is None or unknown else given.write(given.gold, "--block", BLOCKED)
    return [Widget("blocking", {"address": address, "command": command, "file": BLOCKED})]


def draw_workers(rows: Sequence[Row]) -> Chart | None:
    """The accuracy of workers with its interval: those with remarks first, then the most reliable.

    Of many others there are some from best to worst, in the order of the lower end of their interval: a worker with a
    single answer, which is right, is not the best of all.
    """
    known = [row for row in rows if row["accuracy"] is not None]
    if not known:
        return None
    flagged = sorted((row for row in known if row["flag"]), key=lambda row: (row["rank"], row["number"]))
    others = sorted((row for row in known if not row["flag"]), key=lambda row: (-row["rank"][1], row["number"]))
    flagged = flagged[: MOST_DRAWN - min(len(others), MOST_DRAWN // 4)]
    places = np.linspace(0, len(others) - 1, min(len(others), MOST_DRAWN - len(flagged))).round().astype(int)
    shown = [*flagged, *(others[k] for k in places)]
    accuracy = [row["accuracy"] for row in known]
    which = "" if len(shown) == len(known) else f" {len(shown)} of them are shown."
    alt = f"{plural(len(known), 'worker')}, from {min(accuracy):.0%} to {max(accuracy):.0%} right.{which}"
    drawn = []
    for name, row in zip(_name_drawn(shown), shown, strict=True):
        low, high = (row["accuracy"] if end is None else end for end in row["interval"])
        drawn.append((name, row["accuracy"], low, high, row["flag"].removeprefix("answers as if ")))
    return draw_shares_right("Accuracy of the workers, with 95% intervals", alt, drawn)


def draw_raters(rows: Sequence[Row]) -> Chart | None:
    """The bias of raters on a scale with its interval, the harshest first."""
    known = sorted((row for row in rows if row["spread"] is not None), key=lambda row: row["bias"])
    if not known:
        return None
    # Whoever is harsh or lenient is seen by where the point is: other remarks come first, then raters from end to end.
    pressing = [row for row in known if row["flag"] not in ("", "harsh", "lenient")][: MOST_DRAWN // 2]
    others = [row for row in known if row not in pressing]
    places = np.linspace(0, len(others) - 1, min(len(others), MOST_DRAWN - len(pressing))).round().astype(int)
    shown = sorted([*pressing, *(others[k] for k in places)], key=lambda row: row["bias"])
    which = "" if len(shown) == len(known) else f" {len(shown)} of them are shown."
    spreads = [row["spread"] for row in known]
    ends = f"biases from {known[0]['bias']:+.1f} to {known[-1]['bias']:+.1f}, with 95% intervals".replace("-", MINUS)
    alt = f"{plural(len(known), 'rater')}: {ends}, and spreads from {min(spreads):.1f} to {max(spreads):.1f}.{which}"
    drawn = [
        (name, row["bias"], row["bias_low"], row["bias_high"], row["flag"].removeprefix("answers as if "))
        for name, row in zip(_name_drawn(shown), shown, strict=True)
    ]
    return draw_biases("Bias and spread of the raters, in levels", alt, drawn, [row["spread"] for row in shown])


def _name_drawn(rows: Sequence[Row]) -> list[str]:
    return distinct_names([to_name(row["name"], 24) for row in rows])


def draw_counted(view: View, rows: Sequence[Row]) -> list[Chart]:
    r"""How often the harshest and the most lenient rater gave each level, and what these answers count for.

    An answer l of rater m counts as level k by what it tells alone, :math:`\propto \pi_k \Gamma_m[k, l]`. Only raters
    whose bias is beyond doubt are drawn.
    """
    found, klass = view.result, view.answers.class_of_label
    judged = [row for row in rows if row["spread"] is not None and row["answers"] >= FEW_ANSWERS]
    harsh = sorted((row for row in judged if "harsh by" in row["remarks"]), key=lambda row: row["bias"])
    lenient = sorted((row for row in judged if "lenient by" in row["remarks"]), key=lambda row: -row["bias"])
    charts = []
    for row in [*harsh[:1], *lenient[:1]]:
        said = view.said[row["number"]]
        named = np.flatnonzero((klass >= 0) & (said > 0))
        if not len(named) or found.names.positions is None:
            continue
        meaning = found.prior[:, None] * found.learned.confusion[row["number"]][:, named]
        shares = said[named] / said[named].sum()
        given, meant = sum_by(klass[named], shares, len(view.classes)), (meaning / meaning.sum(axis=0)) @ shares
        worth, name = place_levels(found.names.classes, found.names.positions), to_name(row["name"], 24)
        is_named = to_numbers(found.names.classes) is None
        scale = f" on a scale from {worth.min():g} to {worth.max():g}" if is_named else ""
        alt = f"{name} gives {given @ worth:.1f} on average{scale}, which counts as {meant @ worth:.1f}."
        bars = {"As given": given, "Without the bias": meant}
        charts.append(draw_shares(f"Ratings of {name}, before and after", alt, view.classes, bars, "Level"))
    return charts


def find_biases(view: View) -> list[str]:
    """For each worker the label that is given too often: "cat +12%", by its share of the answers.

    It is compared with how often it is true of the items that the worker answered, as the fit expects. Nothing is said
    of a difference below two standard errors, nor of a worker with few answers.
    """
    klass = view.answers.class_of_label
    named, n_answers = np.flatnonzero(klass >= 0), view.said.sum(axis=1)
    if not len(named):
        return [""] * len(n_answers)
    total = np.maximum(n_answers, 1e-300)[:, None]
    said, true = view.said[:, named] / total, view.met[:, klass[named]] / total
    error = np.sqrt(np.maximum(true * (1 - true), 0.0) / np.maximum(n_answers, 1.0)[:, None])
    excess = np.where(said - true > STANDARD_ERRORS * error, said - true, 0.0)
    most = excess.argmax(axis=1)
    largest = excess[np.arange(len(most)), most]
    is_told = (largest >= LEAST_BIAS) & (n_answers >= FEW_ANSWERS)
    listed = zip(named[most].tolist(), largest.tolist(), is_told.tolist(), strict=True)
    return [f"{view.labels[label]} +{size:.0%}" if told else "" for label, size, told in listed]


# Names of rows and of columns, and where each class and each label is counted.
Shown = tuple[list[str], list[str], NDArray[np.int64], NDArray[np.int64]]


def choose_shown(view: View, most: int) -> Shown:
    """Which classes a matrix with at most so many rows shows: the most frequent ones.

    It has a column for each of these, and a few more for other labels.
    """
    klass = view.answers.class_of_label
    row, classes = choose_classes(view.met.sum(axis=0), view.classes, most)
    n_alone = len(classes) if len(classes) == len(view.classes) else len(classes) - 1
    has_row = (klass >= 0) & (row[klass] < n_alone)
    size = np.where(has_row, np.inf, view.said.sum(axis=0))
    order = np.arange(len(klass))
    if view.result.names.positions is not None:  # labels are sorted by name, and levels are not
        order = np.argsort(np.where(klass < 0, len(view.classes), klass), kind="stable")
    place, labels = choose_classes(size[order], [view.labels[k] for k in order], len(classes) + MORE_COLUMNS)
    column = np.empty_like(place)
    column[order] = place
    return classes, labels, row, column


def choose_classes(size: Floats, names: list[str], most: int) -> tuple[NDArray[np.int64], list[str]]:
    """The place at which each class is shown, and the names of places: in order, the rare ones together.

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
    """How often a worker, or all together, gave each label shown to items of each class shown."""
    classes, labels, row, column = shown
    if isinstance(counts, Cells):
        part = counts if worker is None else counts.of_workers(worker, worker + 1)
        code = row[part.klass] * len(labels) + column[part.label]
        return sum_by(code, part.count, len(classes) * len(labels)).reshape(len(classes), len(labels))
    table = counts.sum(axis=0) if worker is None else counts[worker]
    return fold_table(table.T, row, column, len(classes), len(labels))


def fold_table(
    table: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64], n_rows: int, n_columns: int
) -> Floats:
    """The sums of a table by places of its rows and columns."""
    folded = np.zeros((n_rows, n_columns))
    np.add.at(folded, (rows[:, None], columns[None, :]), table)
    return folded


def draw_confusion(view: View) -> Chart | None:
    """How often the crowd gives each label to items of each class; None if there is nothing to confuse.

    In words it is the largest share of wrong answers, among the classes and labels that are shown one by one. Classes
    whose items have few answers are left out of that, unless all have few.
    """
    if len(view.classes) < 2:
        return None
    shown = classes, labels, row, column = choose_shown(view, MOST_CLASSES)
    table = count_shown(view.counts, shown)
    table[table.sum(axis=1) < FEWEST] = 0.0
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    many = table.sum(axis=1) >= FEW_ANSWERS
    wrong = shares * (many if many.any() else ~many)[:, None]
    klass = view.answers.class_of_label
    named = np.flatnonzero(klass >= 0)
    wrong[row[klass[named]], column[named]] = 0.0  # these answers are right
    wrong[row[np.bincount(row)[row] > 1]] = 0.0
    wrong[:, column[np.bincount(column)[column] > 1]] = 0.0
    i, j = divmod(int(wrong.argmax()), wrong.shape[1])
    alt = f"The largest confusion: items of {classes[i]} are called {labels[j]} in {wrong[i, j]:.0%} of the answers."
    if table[i, j] < FEWEST or wrong[i, j] < 0.005:
        alt = "The classes that are shown are hardly ever confused."
    kind = "class" if view.result.names.positions is None else "level"
    return draw_heat(
        f"What the crowd says about items of each {kind}", alt, classes, labels, shares, "Fused label", "Answer"
    )


def gather_confusions(view: View, workers: Sequence[int]) -> dict[str, object]:
    """The expected counts of answers of some workers, [class][label], by number: of as many as there is room for."""
    shown = choose_shown(view, MOST_CLASSES_EACH)
    most = MOST_NUMBERS // max(len(shown[0]) * len(shown[1]), 1)
    # Whole numbers have no point.
    tables = {m: count_shown(view.counts, shown, m).round(1).tolist() for m in workers[:most]}
    counts = {m: [[int(x) if x.is_integer() else x for x in row] for row in table] for m, table in tables.items()}
    return {"classes": shown[0], "labels": shown[1], "counts": counts}
