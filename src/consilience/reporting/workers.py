"""The workers: a table of all, or of those that matter most, and how each confuses the classes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..errors import plural
from ..kernels.types import Floats
from ..models.cells import Cells
from .answers import choose_classes, fold_table
from .charts import Chart, bin_shares, draw_bars, draw_intervals
from .subject import Subject, spell, to_name

# The most workers in the table, and numbers in all heat maps.
MOST_WORKERS, MOST_NUMBERS = 1000, 120_000
# Classes of a heat map.
MOST_CLASSES = 12
# Workers whose intervals are drawn one by one.
MOST_DRAWN = 30
# A bias must be so large, and so many standard errors, to be told.
LEAST_BIAS, STANDARD_ERRORS = 0.03, 2


def tabulate(subject: Subject) -> list[dict[str, Any]]:
    """Return the rows of `worker_report` with the bias of each worker, in the order of the workers."""
    model = subject.model
    columns = model.worker_report()
    rows = to_records(columns)
    for number, (row, bias) in enumerate(zip(rows, find_biases(subject), strict=True)):
        row["bias"], row["number"] = bias, number
        row["name"] = subject.workers[number]
    return rows


def to_records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a table of any library as dicts."""
    if hasattr(frame, "to_pylist"):
        return list(frame.to_pylist())
    if hasattr(frame, "to_dicts"):
        return list(frame.to_dicts())
    return [dict(row) for row in frame.to_dict("records")]


def find_biases(subject: Subject) -> list[str]:
    """Return for each worker the label that is given too often: "cat +12%", by its share of the answers.

    It is compared with how often it is true of the items that the worker answered, as the fit expects. Nothing is said
    of a difference below two standard errors.
    """
    counts, r = subject.counts, subject.responses
    by_label, by_class = sum_out(counts, 2), sum_out(counts, 1)
    total = np.maximum(by_label.sum(axis=1), 1e-300)
    named = np.flatnonzero(r.class_of_label >= 0)
    if not len(named):
        return [""] * r.n_workers
    said = by_label[:, named] / total[:, None]
    true = by_class[:, r.class_of_label[named]] / total[:, None]
    error = np.sqrt(np.maximum(true * (1 - true), 0.0) / np.maximum(total, 1.0)[:, None])
    excess = np.where(said - true > STANDARD_ERRORS * error, said - true, 0.0)
    most = excess.argmax(axis=1)
    rows = np.arange(r.n_workers)
    return [
        f"{subject.labels[named[label]]} +{size:.0%}" if size >= LEAST_BIAS else ""
        for label, size in zip(most.tolist(), excess[rows, most].tolist(), strict=True)
    ]


def sum_out(counts: Floats | Cells, axis: int) -> Floats:
    """Return the sums of a table (M, L, K) over labels (axis 1) or classes (axis 2)."""
    return counts.sum_out(axis) if isinstance(counts, Cells) else np.asarray(counts.sum(axis=axis))


def choose_workers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the workers to show, those with most answers first: all, or those with remarks and the busiest."""
    ranked = sorted(rows, key=lambda row: (-row["answers"], row["number"]))
    if len(rows) <= MOST_WORKERS:
        return ranked
    remarked = [row for row in ranked if row["remarks"] not in ("", "few answers")][: MOST_WORKERS // 2]
    chosen = {row["number"] for row in remarked}
    chosen |= {row["number"] for row in ranked[: MOST_WORKERS - len(chosen)]}
    return [row for row in ranked if row["number"] in chosen]


class Confusions(NamedTuple):
    """What heat maps of workers are drawn from, in the browser."""

    classes: list[str]
    labels: list[str]
    counts: dict[int, list[list[float]]]  # for the number of each worker, [class][label]


def gather_confusions(subject: Subject, shown: list[dict[str, Any]]) -> Confusions:
    """Return the expected counts of answers of the workers shown, of as many as there is room for."""
    counts = subject.counts
    rows, classes = choose_classes(sum_out(counts, 1).sum(axis=0), subject.classes, MOST_CLASSES)
    columns, labels = choose_classes(sum_out(counts, 2).sum(axis=0), subject.labels, MOST_CLASSES)
    most = MOST_NUMBERS // max(len(classes) * len(labels), 1)
    found = {
        row["number"]: fold_table(table_of(counts, row["number"]).T, rows, columns, len(classes), len(labels))
        for row in shown[:most]
    }
    return Confusions(classes, labels, {number: shorten_table(table) for number, table in found.items()})


def table_of(counts: Floats | Cells, worker: int) -> Floats:
    """Return the table (L, K) of one worker."""
    if not isinstance(counts, Cells):
        return np.asarray(counts[worker])
    part = counts.of_workers(worker, worker + 1)
    table = np.zeros(counts.shape[1:])
    table[part.label, part.klass] = part.count
    return table


def shorten_table(table: Floats) -> list[list[float]]:
    """Return counts with few digits, whole numbers without a point."""
    return [[int(x) if float(x).is_integer() else x for x in row] for row in table.round(1).tolist()]


def draw_workers(rows: list[dict[str, Any]]) -> Chart | None:
    """Return the accuracy of workers with its interval, or how it is distributed if there are many."""
    known = [row for row in rows if is_number(row["accuracy"])]
    if not known:
        return None
    known.sort(key=lambda row: (-row["accuracy"], row["number"]))
    accuracy = np.array([row["accuracy"] for row in known])
    alt = f"{plural(len(known), 'worker')}, from {accuracy.max():.0%} to {accuracy.min():.0%} right."
    if len(known) > MOST_DRAWN:
        names, counts = bin_shares(accuracy, 20)
        first = next(n for n, count in enumerate(counts) if count)
        return draw_bars("Accuracy of the workers", alt, names[first:], counts[first:], "Accuracy", "Workers")
    low, high = (
        np.array([row[end] if is_number(row[end]) else row["accuracy"] for row in known])
        for end in ("accuracy_low", "accuracy_high")
    )
    names = distinct([to_name(row["name"], 24) for row in known])
    return draw_intervals("Accuracy of the workers, with 95% intervals", alt, names, accuracy, low, high)


def distinct(names: list[str]) -> list[str]:
    """Return names of which no two are the same.

    >>> distinct(["a", "a"])
    ['a', 'a (2)']
    """
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


def is_number(value: Any) -> bool:
    """Tell whether a figure is known."""
    return value is not None and not math.isnan(value)


def to_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a worker as the table shows it: texts, and the values to sort by."""
    accuracy, low, high = row["accuracy"], row["accuracy_low"], row["accuracy_high"]
    group = row["group"]
    return {
        "number": row["number"],
        "name": row["name"],
        "answers": row["answers"],
        "accuracy": accuracy if is_number(accuracy) else None,
        "interval": f"{low:.0%} to {high:.0%}" if is_number(low) and is_number(high) else "",
        "informativeness": row["informativeness"] if is_number(row["informativeness"]) else None,
        "worst": to_name(row["worst_confusion"].replace(" -> ", " → "), 60) if row["worst_confusion"] else "",
        "bias": row["bias"],
        "remarks": spell(row["remarks"])[:200],
        "group": int(group) if is_number(group) else None,
    }
