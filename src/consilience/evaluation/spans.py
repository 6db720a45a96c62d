"""Fused spans compared with known ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import lookup, objects, to_column
from ..answers.previews import frame_html, html_facts, html_table, paragraph, to_word
from ..answers.tables import is_table
from ..errors import DataWarning, InputError, count_shown, listing, plural, shorten, warn
from ..formats.reading import open_path
from ..formats.sources import open_spans
from ..kinds.span_task import SpansKind
from ..kinds.spans import (
    FUSED,
    Marks,
    Spans,
    check_texts,
    find_span_columns,
    find_truth,
    pick_marks,
    read_sole_spans,
    renumber,
)
from ..metrics.labels import ClassScore, SpanScore, compare_spans
from ..models.fitted import FittedModel

N_BINS = 10
# Scores that a notebook shows.
MOST_SCORES = 20


@dataclass(frozen=True)
class SpansEvaluation:
    """How good spans are.

    Attributes
    ----------
    n_documents : int
        Documents whose spans are known. All their known spans count, also where nobody has read the document.
    n_unanswered : int
        Those of them that were not fused, so that all their spans are missed.
    strict : SpanScore
        A span counts if start, end and type are all right.
    relaxed : SpanScore
        The share of each span's characters that lies in spans of its type on the other side counts.
    type_only : SpanScore
        A span counts if it overlaps a span of its type at all.
    types : tuple of (type, SpanScore)
        Strict scores of each type.
    calibration_error : float or None
        Where spans have a confidence: the expected calibration error of ten equal bins, over the judged spans.
    mean_confidence : float or None
        Their mean confidence, to be compared with the precision of `strict`.
    """

    n_documents: int
    n_unanswered: int
    strict: SpanScore
    relaxed: SpanScore
    type_only: SpanScore
    types: tuple[tuple[str, SpanScore], ...]
    calibration_error: float | None
    mean_confidence: float | None

    def __repr__(self) -> str:
        text = f"F1 {self.strict.f1:.3f} strict, {self.relaxed.f1:.3f} relaxed, {self.type_only.f1:.3f} by type only"
        figures = {"mean confidence": self.mean_confidence, "calibration error": self.calibration_error}
        texts = [text, *(f"{name} {value:.3f}" for name, value in figures.items() if value is not None)]
        return f"SpansEvaluation({plural(self.n_documents, 'document')}: {'; '.join(texts)})"

    def _repr_html_(self) -> str:
        figures = {"Mean confidence": self.mean_confidence, "Calibration error": self.calibration_error}
        facts = [
            ("Documents", f"{self.n_documents:,}, of which {self.n_unanswered:,} were not fused"),
            *((name, f"{value:.3f}") for name, value in figures.items() if value is not None),
        ]
        counted = (("strict", self.strict), ("relaxed", self.relaxed), ("type only", self.type_only))
        return show_scores(type(self).__name__, facts, "counted", [*counted, *self.types])

    def to_dict(self) -> dict[str, object]:
        """Return the same as plain numbers, lists and dicts; each type as one dict."""
        scores = {name: getattr(self, name)._asdict() for name in ("strict", "relaxed", "type_only")}
        types = [{"type": name, **score._asdict()} for name, score in self.types]
        return {**vars(self), **scores, "types": types}


def show_scores(
    title: str, facts: Sequence[tuple[str, str]], what: str, scores: Sequence[tuple[object, ClassScore | SpanScore]]
) -> str:
    """Return what a notebook shows of an evaluation: some facts, and the scores of classes or types."""
    n_shown = count_shown(len(scores), MOST_SCORES)
    rows = [
        [escape(to_word(name)), *(f"{value:.3f}" for value in score[:3]), f"{score[3]:,}"]
        for name, score in scores[:n_shown]
    ]
    table = html_table([what, "precision", "recall", "F1", "known"], rows, [False, True, True, True, True])
    rest = [paragraph(f"... {len(scores) - n_shown:,} more; to_dict() has all.")] if n_shown < len(scores) else []
    named = [(f"{name[:1].upper()}{name[1:]}", value) for name, value in facts]
    return frame_html(paragraph(title), html_facts(named), table, *rest)


def open_both(labels: object, gold: object) -> tuple[object, object]:
    """Return labels and known labels, as `Spans` where they hold spans, and paths as tables.

    A table of known spans has no texts. They are those of the labels; two tables of spans do without.
    """
    gold = open_path(open_spans(gold))
    if isinstance(gold, Spans):
        return open_spans(labels), gold
    if find_span_columns(gold) is None:
        return labels, gold
    if isinstance(labels, FittedModel):
        found = labels.to_span_set() if isinstance(labels.result_.task, SpansKind) else labels
    else:
        found = open_path(open_spans(labels))
    if isinstance(found, Spans):
        return found, read_sole_spans(gold, "gold", found.documents, found.texts)
    if find_span_columns(found) is not None:
        return found, read_sole_spans(gold, "gold", objects([]), [])
    return found, gold


def evaluate_spans(labels: object, gold: Spans) -> SpansEvaluation:
    """Compare fused spans with known ones; see `consilience.evaluate`."""
    found = labels.to_span_set() if isinstance(labels, FittedModel) else labels
    if isinstance(found, (str, os.PathLike)) or is_table(found):
        found = _read_table(found, gold)
    if not isinstance(found, Spans):
        raise InputError(
            f"Known spans can judge a fitted model, a Spans, or a table of spans. Got {shorten(labels)} instead.",
            "Give the fused model.",
        )
    found = _pick_fused(found)
    if len(found.workers) > 1:
        raise InputError(
            f"These are the spans of {plural(len(found.workers), 'worker')}: {listing(found.workers.tolist())}.",
            "Give the fused model, or the spans of one worker.",
        )
    known, known_documents = find_truth(gold)
    place = lookup(gold.documents, to_column(found.documents))  # of the documents of one side among those of the other
    check_texts(found, gold, place)
    if (place < 0).any():
        n_absent = int((place < 0).sum())
        are = "is" if n_absent == 1 else "are"
        warn(DataWarning(f"{plural(n_absent, 'document')} {are} not among those whose spans are known."))
    labels_of_both = sorted({*map(str, gold.labels.tolist()), *map(str, found.labels.tolist())})
    truth = renumber(_trim(known, gold.texts), np.arange(len(gold.documents)), gold.labels, labels_of_both)
    said = renumber(_trim(found.marks, found.texts), place, found.labels, labels_of_both)
    said = pick_marks(said, np.flatnonzero(np.isin(said.document, known_documents)))
    read = place[found.readings[:, 0]]
    scores = compare_spans(truth, said)
    types = []
    for code, name in enumerate(labels_of_both):
        parts = [pick_marks(each, np.flatnonzero(each.label == code)) for each in (truth, said)]
        if len(parts[0].start) or len(parts[1].start):
            types.append((name, compare_spans(*parts).strict))
    right = _find_right(truth, said)
    judged = said.confidence is not None and len(right) > 0 and not np.isnan(said.confidence).any()
    return SpansEvaluation(
        n_documents=len(known_documents),
        n_unanswered=len(np.setdiff1d(known_documents, read)),
        strict=scores.strict,
        relaxed=scores.relaxed,
        type_only=scores.type_only,
        types=tuple(types),
        calibration_error=_find_error(np.asarray(said.confidence), right) if judged else None,
        mean_confidence=float(np.mean(np.asarray(said.confidence))) if judged else None,
    )


def _read_table(given: object, gold: Spans) -> Spans:
    """Return the spans of a table, as `to_spans` gives it, in the texts that gold has. All of these count as read."""
    found = read_sole_spans(open_path(given), "labels", gold.documents, gold.texts, fused=True)
    assert found.gold is not None
    n_documents = len(gold.documents)
    document = lookup(gold.documents, to_column(found.documents))[found.gold.document]
    marks = found.gold._replace(document=document)
    return replace(
        found,
        documents=gold.documents,
        texts=gold.texts,
        workers=objects([FUSED]),
        marks=pick_marks(marks, np.flatnonzero(document >= 0)),
        readings=np.stack([np.arange(n_documents), np.zeros(n_documents, np.int64)], axis=1),
        gold=None,
    )


def _pick_fused(spans: Spans) -> Spans:
    """Return the fused spans alone, where a file has these beside the spans of workers."""
    names = spans.workers.tolist()
    if len(names) == 1 or FUSED not in names:
        return spans
    code = names.index(FUSED)
    marks = pick_marks(spans.marks, np.flatnonzero(spans.marks.worker == code))
    readings = spans.readings[spans.readings[:, 1] == code]
    return replace(
        spans,
        workers=spans.workers[[code]],
        marks=marks._replace(worker=np.zeros(len(marks.start), np.int64)),
        readings=np.stack([readings[:, 0], np.zeros(len(readings), np.int64)], axis=1),
    )


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


def _find_right(truth: Marks, said: Marks) -> NDArray[np.bool_]:
    """Tell which spans are known ones."""
    known = set(zip(*(column.tolist() for column in _key(truth)), strict=True))
    return np.array([row in known for row in zip(*(column.tolist() for column in _key(said)), strict=True)], bool)


def _key(marks: Marks) -> tuple[NDArray[np.int64], ...]:
    return marks.document, marks.start, marks.end, marks.label


def _find_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the mean gap between confidence and share of right spans, over bins of confidence."""
    bin_of = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    gaps = np.bincount(bin_of, confidence - right, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(right))
