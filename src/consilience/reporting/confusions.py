"""Confusion matrices small enough to be shown: of the crowd, and of each worker. Rare classes are one row together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.cells import Cells, sum_by
from ..kernels.types import Floats
from .charts import Chart, draw_heat
from .subject import Subject

# The most classes that the crowd's matrix shows, and columns beside those of the classes.
MOST_CLASSES, MORE_COLUMNS = 14, 3
# Classes whose items have fewer answers, as the fit expects, have none to speak of.
FEWEST = 0.5


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
    column, labels = choose_classes(size, subject.labels, len(classes) + MORE_COLUMNS)
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
    title, alt = "What the crowd says about items of each class", describe_confusion(subject, table, shares, shown)
    return draw_heat(title, alt, shown.classes, shown.labels, shares, "Fused label", "Answer")


def describe_confusion(subject: Subject, table: Floats, shares: Floats, shown: Shown) -> str:
    """Return in words which confusion occurs most often, among the classes and labels that are shown one by one."""
    wrong = table.copy()
    klass = subject.responses.class_of_label
    named = np.flatnonzero(klass >= 0)
    wrong[shown.row[klass[named]], shown.column[named]] = 0.0  # these answers are right
    wrong[shown.row[np.bincount(shown.row)[shown.row] > 1]] = 0.0
    wrong[:, shown.column[np.bincount(shown.column)[shown.column] > 1]] = 0.0
    i, j = divmod(int(wrong.argmax()), wrong.shape[1])
    if wrong[i, j] < FEWEST:
        return "The classes that are shown are hardly ever confused."
    share = "less than 1%" if shares[i, j] < 0.005 else f"{shares[i, j]:.0%}"
    confused = f"items of {shown.classes[i]} are called {shown.labels[j]}"
    return f"The most frequent confusion: {confused} in {share} of the answers."
