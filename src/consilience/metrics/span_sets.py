"""Scores of spans that are given by their offsets: they may overlap and nest, and need no tokens.

*Strict*: a span counts if start, end and type are all right. *Relaxed*: the share of a span's characters counts that
lies in spans of its type on the other side. *Type-only*: a span counts if it overlaps a span of its type at all.
Precision is the mean over found spans, recall over known ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.types import Floats
from ..tasks.spans import Spans
from ..tasks.texts import Marks
from .spans import SpanScore, make_score


class SpanScores(NamedTuple):
    """Scores of found spans against known ones."""

    strict: SpanScore
    relaxed: SpanScore
    type_only: SpanScore


def compare_spans(gold: Marks, found: Marks) -> SpanScores:
    """Return how good found spans are; documents and types are numbered alike on both sides. Workers do not matter.

    A span that one side holds twice counts once.

    Examples
    --------
    >>> gold = Marks(*map(np.array, ([0, 0], [0, 0], [0, 8], [3, 11], [1, 1])))
    >>> found = Marks(*map(np.array, ([0, 0], [0, 0], [0, 8], [3, 12], [1, 1])))
    >>> [round(score.f1, 3) for score in compare_spans(gold, found)]
    [0.5, 0.933, 1.0]
    """
    known, said = _rows(gold), _rows(found)
    right = count_common(known, said)
    shares = overlap_shares(said, known), overlap_shares(known, said)
    touched = [float((share > 0).sum()) for share in shares]
    sizes = (len(known), len(said), right)
    return SpanScores(
        make_score(right, right, *sizes),
        make_score(float(shares[0].sum()), float(shares[1].sum()), *sizes),
        make_score(touched[0], touched[1], *sizes),
    )


def _rows(marks: Marks) -> NDArray[np.int64]:
    """Return the distinct spans as rows: type, document, start, end."""
    rows = np.stack([marks.label, marks.document, marks.start, marks.end], axis=1)
    return np.unique(rows, axis=0) if len(rows) else rows


def count_common(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """Return how many rows are in both, each of which holds distinct rows."""
    return len(one) + len(other) - len(np.unique(np.concatenate([one, other]), axis=0))


def overlap_shares(rows: NDArray[np.int64], others: NDArray[np.int64]) -> Floats:
    """Return which share of each span lies in other spans of its type in its document."""
    if not len(rows) or not len(others):
        return np.zeros(len(rows))
    # All documents and types follow each other on one line, with room for the longest text.
    room = int(max(rows[:, 3].max(), others[:, 3].max())) + 1
    n_documents = int(max(rows[:, 1].max(), others[:, 1].max())) + 1
    starts, ends = (
        [(each[:, 0] * n_documents + each[:, 1]) * room + each[:, column] for each in (rows, others)]
        for column in (2, 3)
    )
    order = np.argsort(starts[1], kind="stable")
    start, end = starts[1][order], np.maximum.accumulate(ends[1][order])
    # Where one span begins after all before it have ended, a new stretch begins.
    first = np.append(True, start[1:] > end[:-1])
    begin, until = start[first], end[np.append(np.flatnonzero(first)[1:] - 1, len(end) - 1)]
    before = np.cumsum(until - begin) - (until - begin)

    def covered(place: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.searchsorted(begin, place, side="right") - 1
        inside = np.minimum(place, until[np.maximum(at, 0)]) - begin[np.maximum(at, 0)]
        return np.where(at < 0, 0, before[np.maximum(at, 0)] + inside)

    return np.asarray((covered(ends[0]) - covered(starts[0])) / (ends[0] - starts[0]))


def span_agreement(spans: Spans) -> float:
    """Return how far workers agree about spans: the mean strict F1 of all pairs of workers.

    Of a pair the documents count that both have read. Pairs without such a document are left out, and so are pairs of
    whom neither marked a span there. It is NaN if no pair is left.

    Parameters
    ----------
    spans : Spans
        The spans of several workers.

    Examples
    --------
    >>> import consilience as cs
    >>> table = {"document": [1, 1, 1], "worker": ["a", "b", "b"], "start": [0, 0, 8], "end": [3, 3, 11]}
    >>> spans = cs.Spans.from_frame(table | {"label": ["PER"] * 3}, {1: "Ann met Bob."})
    >>> round(span_agreement(spans), 3)
    0.667
    """
    from scipy.sparse import csr_array  # which takes long to load

    marks, n_workers, n_documents = spans.marks, len(spans.workers), len(spans.documents)
    rows = np.stack([marks.document, marks.start, marks.end, marks.label], axis=1)
    _, span = np.unique(rows, axis=0, return_inverse=True) if len(rows) else (rows, np.empty(0, np.int64))
    ones = np.ones(len(rows))
    said = csr_array((ones, (span, marks.worker)), shape=(len(rows), n_workers))
    marked = csr_array((ones, (marks.document, marks.worker)), shape=(n_documents, n_workers))
    read = csr_array((np.ones(len(spans.readings)), tuple(spans.readings.T)), shape=(n_documents, n_workers))
    common = (said.T @ said).toarray()
    in_shared = (marked.T @ read).toarray()  # spans of the first in documents that the second has read
    total = in_shared + in_shared.T
    pairs = np.triu(total > 0, 1)
    return float((2 * common[pairs] / total[pairs]).mean()) if pairs.any() else float("nan")
