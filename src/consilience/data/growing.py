"""Answers that are read one batch after the other: workers, labels and classes of all of them, in one order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .responses import Responses
from .vocabulary import Values, join_columns, lookup, sorted_order, to_column, to_values


def merge_values(known: Values, new: Values) -> Values:
    """Return the distinct values of both: sorted if both are sorted, else the known ones first.

    >>> merge_values(np.array(["a", "c"], object), np.array(["b", "c"], object)).tolist()
    ['a', 'b', 'c']
    >>> merge_values(np.array(["low", "high"], object), np.array(["high", "odd"], object)).tolist()
    ['low', 'high', 'odd']
    """
    unknown = new[lookup(known, to_column(new)) < 0]
    if not len(unknown):
        return known
    together = to_values(join_columns(to_column(known), to_column(unknown)))
    return together[sorted_order(together)] if _are_sorted(known) and _are_sorted(new) else together


def _are_sorted(values: Values) -> bool:
    return bool((np.diff(sorted_order(values)) > 0).all())


def merge_classes(r: Responses, labels: Values, classes: Values) -> Values:
    """Return the classes of earlier answers and of these.

    If the classes of these are their labels, as they are if none are named, a label that was no class before
    ("unsure") is none now.
    """
    new = r.classes
    if np.array_equal(new, r.labels):
        column = to_column(new)
        new = new[(lookup(labels, column) < 0) | (lookup(classes, column) >= 0)]
    return merge_values(classes, new)


def grow(r: Responses, workers: Values, labels: Values, classes: Values) -> Responses:
    """Return the same answers, with the workers, labels and classes of earlier ones among theirs."""
    workers, classes, labels = (
        merge_values(workers, r.workers),
        merge_classes(r, labels, classes),
        merge_values(labels, r.labels),
    )
    worker, label = (
        lookup(known, to_column(own)).astype(np.int32)[codes]
        for known, own, codes in ((workers, r.workers, r.worker), (labels, r.labels, r.label))
    )
    return replace(r, worker=worker, label=label, workers=workers, labels=labels, classes=classes)
