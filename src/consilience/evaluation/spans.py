"""Fused spans compared with known ones."""

from __future__ import annotations

import numpy as np

from ..answers.columns import Indices, objects
from ..answers.tables import is_table
from ..errors import InputError, listing, plural, shorten, warn_of
from ..formats.reading import open_path
from ..formats.sources import open_spans
from ..kernels import Floats
from ..kinds.base import FUSED
from ..kinds.spans import (
    Marks,
    Spans,
    cut_texts,
    find_span_columns,
    find_truth,
    match_documents,
    pick_marks,
    read_sole_spans,
)
from ..metrics.labels import score_spans
from ..models.base import Model
from .evaluation import Evaluation, mean_gap


def open_both(labels: object, gold: object) -> tuple[object, object]:
    """Labels and known labels, as `Spans` where they hold spans, and paths as tables.

    A table of spans has no texts. They are those of the other side; two tables of spans do without.
    """
    gold = open_path(open_spans(gold))
    if not isinstance(gold, Spans) and find_span_columns(gold) is None:
        return labels, gold
    if not isinstance(labels, Model):
        labels = open_path(open_spans(labels))
    elif isinstance(gold, Spans) or labels.result_.kind.brought is Spans:
        labels = labels.to_span_set()
    if not isinstance(gold, Spans):
        if not isinstance(labels, Spans) and find_span_columns(labels) is None:
            return labels, gold
        documents, texts = (labels.documents, labels.texts) if isinstance(labels, Spans) else (objects([]), [])
        gold = read_sole_spans(gold, "gold", documents, texts)
    if is_table(labels):
        labels = read_sole_spans(labels, "labels", gold.documents, gold.texts, fused=True)
    return labels, gold


def evaluate_spans(spans: object, gold: Spans) -> Evaluation:
    """Compare fused spans with known ones; see `consilience.evaluate`."""
    if not isinstance(spans, Spans):
        raise InputError(
            f"Known spans can judge a fitted model, a Spans, or a table of spans. Got {shorten(spans)} instead.",
            "Give the fused model.",
        )
    known, known_documents = find_truth(gold)
    place = match_documents(spans, gold)  # of the documents of one side among those of the other
    if spans.gold is not None and not len(spans.workers):  # from a table, which does not say what was read
        marks, read = spans.gold, known_documents
    else:
        names = spans.workers.tolist()
        if len(names) > 1 and FUSED not in names:
            raise InputError(
                f"These are the spans of {plural(len(names), 'worker')}: {listing(names)}.",
                "Give the fused model, or the spans of one worker.",
            )
        worker = names.index(FUSED) if FUSED in names else 0  # a file may have fused spans beside those of workers
        marks = pick_marks(spans.marks, np.flatnonzero(spans.marks.worker == worker))
        read = place[spans.readings[spans.readings[:, 1] == worker, 0]]
        n_absent = int((place < 0).sum())
        if n_absent:
            are = "is" if n_absent == 1 else "are"
            warn_of(f"{plural(n_absent, 'document')} {are} not among those whose spans are known.")
    marks = pick_marks(marks, np.flatnonzero(np.isin(place[marks.document], known_documents)))
    types = sorted({*map(str, gold.labels.tolist()), *map(str, spans.labels.tolist())})
    truth, _ = _list_rows(known, gold, np.arange(len(gold.documents)), types)
    said, confidence = _list_rows(marks, spans, place, types)
    figures: dict[str, float | None] = {
        "n_documents": len(known_documents),
        "n_unanswered": len(np.setdiff1d(known_documents, read)),
        "mean_confidence": None,
        "calibration_error": None,
    }
    if confidence is not None and len(said) and not np.isnan(confidence).any():
        is_known = set(map(tuple, truth.tolist()))
        right = np.array([tuple(row) in is_known for row in said.tolist()], bool)
        figures |= {"mean_confidence": float(np.mean(confidence)), "calibration_error": mean_gap(confidence, right)}
    by_type = {}
    for code, name in enumerate(types):
        parts = [rows[rows[:, 0] == code] for rows in (truth, said)]
        if len(parts[0]) or len(parts[1]):
            by_type[name] = score_spans(*parts)["strict"]
    return Evaluation("document", figures, score_spans(truth, said), "type", by_type)


def _list_rows(marks: Marks, spans: Spans, place: Indices, types: list[str]) -> tuple[Indices, Floats | None]:
    """Spans as rows of type, document, start and end, and their confidence.

    White space at their ends is left out, as in fused spans; `place` is the number of each document in the rows.
    """
    code = np.array([types.index(str(label)) for label in spans.labels.tolist()], np.int64)
    start, end = marks.start.copy(), marks.end.copy()
    for row, text in enumerate(cut_texts(spans.texts, marks)):
        start[row] += len(text) - len(text.lstrip())
        end[row] -= len(text) - len(text.rstrip())
    inked = start < end
    rows = np.stack([code[marks.label], place[marks.document], start, end], axis=1)[inked]
    return rows, None if marks.confidence is None else marks.confidence[inked]
