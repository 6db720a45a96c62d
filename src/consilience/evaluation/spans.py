"""Fused spans compared with known ones."""

from __future__ import annotations

import os

import numpy as np

from ..answers.columns import lookup, objects, to_column
from ..answers.tables import is_table
from ..errors import DataWarning, InputError, listing, plural, shorten, warn
from ..formats.reading import open_path
from ..formats.sources import open_spans
from ..kinds.base import FUSED
from ..kinds.span_task import SpansKind
from ..kinds.spans import (
    Marks,
    Spans,
    align_marks,
    check_texts,
    find_span_columns,
    find_truth,
    pick_marks,
    read_sole_spans,
)
from ..metrics.labels import compare_spans
from ..models.base import Model
from .evaluation import Evaluation, mean_gap


def open_both(labels: object, gold: object) -> tuple[object, object]:
    """Return labels and known labels, as `Spans` where they hold spans, and paths as tables.

    A table of known spans has no texts. They are those of the labels; two tables of spans do without.
    """
    gold = open_path(open_spans(gold))
    if isinstance(gold, Spans):
        return open_spans(labels), gold
    if find_span_columns(gold) is None:
        return labels, gold
    if isinstance(labels, Model):
        found = labels.to_span_set() if isinstance(labels.result_.task, SpansKind) else labels
    else:
        found = open_path(open_spans(labels))
    if isinstance(found, Spans):
        return found, read_sole_spans(gold, "gold", found.documents, found.texts)
    if find_span_columns(found) is not None:
        return found, read_sole_spans(gold, "gold", objects([]), [])
    return found, gold


def evaluate_spans(labels: object, gold: Spans) -> Evaluation:
    """Compare fused spans with known ones; see `consilience.evaluate`."""
    found = labels.to_span_set() if isinstance(labels, Model) else labels
    is_tabulated = isinstance(found, (str, os.PathLike)) or is_table(found)
    if is_tabulated:  # as `to_spans` gives it, without texts
        found = read_sole_spans(open_path(found), "labels", gold.documents, gold.texts, fused=True)
    if not isinstance(found, Spans):
        raise InputError(
            f"Known spans can judge a fitted model, a Spans, or a table of spans. Got {shorten(labels)} instead.",
            "Give the fused model.",
        )
    known, known_documents = find_truth(gold)
    place = lookup(gold.documents, to_column(found.documents))  # of the documents of one side among those of the other
    check_texts(found, gold, place)
    if is_tabulated:
        marks, read = found.gold or found.marks, known_documents
    else:
        names = found.workers.tolist()
        if len(names) > 1 and FUSED not in names:
            raise InputError(
                f"These are the spans of {plural(len(names), 'worker')}: {listing(names)}.",
                "Give the fused model, or the spans of one worker.",
            )
        worker = names.index(FUSED) if FUSED in names else 0  # a file may have fused spans beside those of workers
        marks = pick_marks(found.marks, np.flatnonzero(found.marks.worker == worker))
        read = place[found.readings[found.readings[:, 1] == worker, 0]]
        if (place < 0).any():
            n_absent = int((place < 0).sum())
            are = "is" if n_absent == 1 else "are"
            warn(DataWarning(f"{plural(n_absent, 'document')} {are} not among those whose spans are known."))
    labels_of_both = sorted({*map(str, gold.labels.tolist()), *map(str, found.labels.tolist())})
    truth = align_marks(_trim(known, gold.texts), np.arange(len(gold.documents)), gold.labels, labels_of_both)
    said = align_marks(_trim(marks, found.texts), place, found.labels, labels_of_both)
    said = pick_marks(said, np.flatnonzero(np.isin(said.document, known_documents)))
    figures: dict[str, float | None] = {
        "n_documents": len(known_documents),
        "n_unanswered": len(np.setdiff1d(known_documents, read)),
        "mean_confidence": None,
        "calibration_error": None,
    }
    rows = [np.stack([each.document, *each[2:5]], axis=1).tolist() for each in (truth, said)]
    is_known = set(map(tuple, rows[0]))
    right = np.array([tuple(row) in is_known for row in rows[1]], bool)
    if said.confidence is not None and len(right) and not np.isnan(said.confidence).any():
        figures["mean_confidence"] = float(np.mean(said.confidence))
        figures["calibration_error"] = mean_gap(np.asarray(said.confidence), right)
    by_type = {}
    for code, name in enumerate(labels_of_both):
        parts = [pick_marks(each, np.flatnonzero(each.label == code)) for each in (truth, said)]
        if len(parts[0].start) or len(parts[1].start):
            by_type[name] = compare_spans(*parts).strict
    return Evaluation("document", figures, compare_spans(truth, said)._asdict(), "type", by_type)


def _trim(marks: Marks, texts: list[str]) -> Marks:
    """Return spans without white space at their ends, as fused spans are."""
    start, end = marks.start.copy(), marks.end.copy()
    for row, (document, a, b) in enumerate(zip(marks.document.tolist(), start.tolist(), end.tolist(), strict=True)):
        text = texts[document][a:b]
        if text[:1].isspace() or text[-1:].isspace():
            start[row] += len(text) - len(text.lstrip())
            end[row] -= len(text) - len(text.rstrip())
    inked = np.flatnonzero(start < end)
    return pick_marks(marks._replace(start=start, end=end), inked)
