"""Answers that are read one batch after the other: workers, labels and classes of all of them, in one order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .joining import Union
from .responses import Responses
from .vocabulary import Values, lookup, to_column


def merge_classes(r: Responses, labels: Values, classes: Values) -> Values:
    """Return the classes of earlier answers and of these.

    If the classes of these are their labels, as they are if none are named, a label that was no class before
    ("unsure") is none now.
    """
    new = r.classes
    if np.array_equal(new, r.labels):
        column = to_column(new)
        new = new[(lookup(labels, column) < 0) | (lookup(classes, column) >= 0)]
    return Union.of(classes, new).values


def grow(r: Responses, workers: Values, labels: Values, classes: Values) -> Responses:
    """Return the same answers, with the workers, labels and classes of earlier ones among theirs."""
    who, said = Union.of(workers, r.workers), Union.of(labels, r.labels)
    return replace(
        r,
        worker=who.new[r.worker],
        label=said.new[r.label],
        workers=who.values,
        labels=said.values,
        classes=merge_classes(r, labels, classes),
    )
