"""The workers: a table of all, or of those that matter most, and how each confuses the classes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..checks.drift import find_drift, has_order
from ..errors import plural
from ..inference.cells import Cells
from ..kernels.types import Floats
from ..results.worker_report import FEW_ANSWERS, rank_accuracy
from .charts import Chart, bin_shares, draw_bars, draw_intervals
from .confusions import choose_shown, count_shown
from .subject import Subject, distinguish, spell, to_name

# The most workers in the table, and numbers in all heat maps.
MOST_WORKERS, MOST_NUMBERS = 1000, 120_000
# So many entries of a table of workers are worked on at a time.
MOST_ENTRIES = 1 << 20
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
        row["change"], row["change_interval"] = None, ""
    if has_order(model.fusion_):
        add_changes(model, rows)
    return rows


def add_changes(model: Any, rows: list[dict[str, Any]]) -> None:
    """Give each worker the change of accuracy over time, and its interval in words."""
    found = find_drift(model.fusion_)
    for row in rows:
        change, low, high = (float(ends[row["number"]]) for ends in (found.change, found.low, found.high))
        if is_number(change):
            row["change"], row["change_interval"] = change, f"{change:+.0%} ({low:+.0%} to {high:+.0%})"


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


def gather_confusions(subject: Subject, listed: list[dict[str, Any]]) -> Confusions:
    """Return the expected counts of answers of the workers in the table, of as many as there is room for."""
    shown = choose_shown(subject, MOST_CLASSES)
    most = MOST_NUMBERS // max(len(shown.classes) * len(shown.labels), 1)
    found = {row["number"]: shorten_table(count_shown(subject.counts, shown, row["number"])) for row in listed[:most]}
    return Confusions(shown.classes, shown.labels, found)


def shorten_table(table: Floats) -> list[list[float]]:
    """Return counts with few digits, whole numbers without a point."""
    return [[int(x) if float(x).is_integer() else x for x in row] for row in table.round(1).tolist()]


def draw_workers(rows: list[dict[str, Any]]) -> Chart | None:
    """Return the accuracy of workers with its interval, or how it is distributed if there are many."""
    known = [row for row in rows if is_number(row["accuracy"])]
    if not known:
        return None
    known.sort(key=lambda row: (-rank_accuracy(row), row["number"]))
    accuracy = np.array([row["accuracy"] for row in known])
    alt = f"{plural(len(known), 'worker')}, from {accuracy.min():.0%} to {accuracy.max():.0%} right."
    if len(known) > MOST_DRAWN:
        names, counts = bin_shares(accuracy, 20)
        first = next(n for n, count in enumerate(counts) if count)
        return draw_bars("Accuracy of the workers", alt, names[first:], counts[first:], "Accuracy", "Workers")
    low, high = (
        np.array([row[end] if is_number(row[end]) else row["accuracy"] for row in known])
        for end in ("accuracy_low", "accuracy_high")
    )
    names = distinguish(to_name(row["name"], 24) for row in known)
    return draw_intervals("Accuracy of the workers, with 95% intervals", alt, names, accuracy, low, high)


def is_number(value: Any) -> bool:
    """Tell whether a figure is known."""
    return value is not None and not math.isnan(value)


# What the remarks of `worker_report` mean, by their first words.
MEANINGS = {
    "contrary": "right less often than by chance",
    "one label": "nearly all answers are the same label",
    "uninformative": "the answers hardly depend on what is true",
    "few answers": f"fewer than {FEW_ANSWERS} answers, so little is known",
    "accuracy falls": "right less often at the end than at the beginning, beyond chance and compared with others",
    "near-copy": "nearly all answers are those of other workers; the column Group shows whose",
}


def list_meanings(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the remarks that occur in the table, and what they mean."""
    return [(name, meaning) for name, meaning in MEANINGS.items() if any(name in row["remarks"] for row in rows)]


def explain_remarks(remarks: str) -> str:
    """Return what the remarks on a worker mean.

    >>> explain_remarks("few answers")
    'few answers: fewer than 10 answers, so little is known'
    """
    parts = [part for part in remarks.split("; ") if part]
    found = [(name, words) for part in parts for name, words in MEANINGS.items() if part.startswith(name)]
    return "; ".join(f"{name}: {words}" for name, words in found)


def to_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a worker as the table shows it: texts, and the values to sort by."""
    accuracy, low, high = row["accuracy"], row["accuracy_low"], row["accuracy_high"]
    group = row["group"]
    return {
        "number": row["number"],
        "name": row["name"],
        "answers": row["answers"],
        "accuracy": accuracy if is_number(accuracy) else None,
        "low": low if is_number(low) else None,
        "interval": f"{low:.0%} to {high:.0%}" if is_number(low) and is_number(high) else "",
        "informativeness": row["informativeness"] if is_number(row["informativeness"]) else None,
        "worst": to_name(row["worst_confusion"].replace(" -> ", " → "), 60) if row["worst_confusion"] else "",
        "bias": row["bias"],
        "remarks": spell(row["remarks"])[:200],
        "meaning": explain_remarks(row["remarks"]),
        "change": row["change"],
        "change_interval": row["change_interval"],
        "group": int(group) if is_number(group) else None,
    }
