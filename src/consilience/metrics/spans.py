"""Scores of spans: entities, populations, anything that is marked in texts, by tags or by offsets.

Tags are B, I and O of each token; `consilience.tasks.tag_runs` says how spans are read from them.

Spans that are given by their offsets may overlap and nest, and need no tokens. *Strict*: a span counts if start, end
and type are all right. *Relaxed*: the share of a span's characters counts that lies in spans of its type on the other
side. *Type-only*: a span counts if it overlaps a span of its type at all. Precision is the mean over found spans,
recall over known ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import to_floats
from ..errors import InputError, first_line, shorten
from ..kernels.types import Floats
from ..tasks.tag_runs import BEGIN, INSIDE, OUTSIDE, find_spans, split_tags
from ..tasks.texts import Marks

if TYPE_CHECKING:
    from ..tasks.spans import Spans


class SpanScore(NamedTuple):
    """Precision, recall and their harmonic mean, with the numbers of spans."""

    precision: float
    recall: float
    f1: float
    n_gold: int
    n_predicted: int
    n_correct: int


def span_f1(gold: object, predicted: object, lengths: ArrayLike | None = None) -> float:
    """Return the strict span F1: a span counts if start, end and type are all right.

    Parameters
    ----------
    gold, predicted : lists of lists of tags, or flat arrays of tags
        Tags such as B-PER, I-PER, O (any of IOB1, IOB2, BIOES, BILOU); bare B and I are spans of one unnamed type.
    lengths : array, optional
        Lengths of the sequences that flat arrays consist of; default: one sequence.

    Returns
    -------
    float
        2 P R / (P + R) over all spans; 0 where nothing is right.

    Examples
    --------
    >>> span_f1([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "O"]])
    0.6666666666666666
    """
    return span_score(gold, predicted, lengths).f1


def span_score(gold: object, predicted: object, lengths: ArrayLike | None = None) -> SpanScore:
    """Return strict precision, recall and F1 of spans; arguments as for `span_f1`.

    Examples
    --------
    >>> span_score(["B", "I", "O", "B"], ["B", "I", "B", "I"])
    SpanScore(precision=0.5, recall=0.5, f1=0.5, n_gold=2, n_predicted=2, n_correct=1)
    """
    return _compare(*_both(gold, predicted, lengths)).strict


def relaxed_span_score(gold: object, predicted: object, lengths: ArrayLike | None = None) -> SpanScore:
    """Return scores that count the part of each span that is right.

    Precision is the mean share of a predicted span that lies in gold spans of its type, recall the mean share of a gold
    span that lies in predicted ones.

    Examples
    --------
    >>> relaxed_span_score(["B", "I", "I", "I"], ["O", "B", "I", "O"]).recall
    0.5
    """
    return _compare(*_both(gold, predicted, lengths)).relaxed


def count_invalid_transitions(tags: object, lengths: ArrayLike | None = None) -> int:
    """Return how many tags IOB2 does not allow where they stand: I-X that follows neither B-X nor I-X.

    Parameters
    ----------
    tags, lengths
        As for `span_f1`, of one side.

    Examples
    --------
    >>> count_invalid_transitions([["O", "I-PER"], ["B-PER", "I-LOC", "I-LOC"]])
    2
    """
    flat, sizes = _flatten(tags, lengths)
    prefix, kind = split_tags(flat)
    before, kind_before = np.roll(prefix, 1), np.roll(kind, 1)
    before[_firsts(sizes)] = OUTSIDE
    follows = np.isin(before, (BEGIN, INSIDE)) & (kind == kind_before)
    return int(((prefix == INSIDE) & ~follows).sum())


def _firsts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the first token of each sequence."""
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)


def make_score(found_right: float, true_found: float, n_gold: int, n_predicted: int, n_correct: int) -> SpanScore:
    """Return scores from how much of the predicted spans is right, and how much of the true ones is found."""
    precision = found_right / n_predicted if n_predicted else 0.0
    recall = true_found / n_gold if n_gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return SpanScore(precision, recall, f1, n_gold, n_predicted, n_correct)


def _both(gold: object, predicted: object, lengths: ArrayLike | None) -> Iterator[NDArray[np.int64]]:
    """Yield the spans of both as rows, as `_rows` does, with types numbered alike; all tokens are one document."""
    true, true_lengths = _flatten(gold, lengths)
    found, found_lengths = _flatten(predicted, lengths)
    if not np.array_equal(true_lengths, found_lengths):
        raise InputError(
            f"gold has {len(true):,} tags in {len(true_lengths):,} sequences, predicted {len(found):,} in "
            f"{len(found_lengths):,}: they must be of the same tokens."
        )
    first = np.zeros(len(true), bool)
    first[_firsts(true_lengths)] = True
    prefix, kind = split_tags([*true, *found])
    for part in (slice(0, len(true)), slice(len(true), None)):
        spans = find_spans(prefix[part], kind[part], first)
        yield np.stack([spans.kind, np.zeros_like(spans.kind), spans.start, spans.stop], axis=1)


def _flatten(tags: object, lengths: ArrayLike | None) -> tuple[list[Any], NDArray[np.int64]]:
    entries = _to_list(tags)
    if entries and lengths is None and not isinstance(entries[0], str):
        nested = [sequence for sequence in map(_to_list, entries) if sequence]
        entries = [tag for sequence in nested for tag in sequence]
        sizes = np.array([len(sequence) for sequence in nested])
    else:
        sizes = np.array([len(entries)]) if lengths is None else _read_lengths(lengths, len(entries))
    if not entries:
        raise InputError("There are no tags to score.")
    return entries, sizes[sizes > 0]


def _to_list(values: object) -> list[Any]:
    try:
        entries = values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[call-overload]
    except TypeError:
        entries = None
    if not isinstance(entries, list):
        raise InputError(f"Tags must be lists of lists of tags, or one list of them. Got {shorten(values)} instead.")
    return entries


def _read_lengths(lengths: ArrayLike, n_tags: int) -> NDArray[np.int64]:
    try:
        sizes = to_floats(lengths)
    except ValueError as error:
        raise InputError(f"lengths must be whole numbers; {first_line(error)}.") from error
    if sizes.ndim != 1 or not ((sizes >= 0) & (sizes == np.floor(sizes)) & (sizes < np.inf)).all():
        raise InputError(f"lengths must be whole numbers >= 0. Got {shorten(lengths)} instead.")
    if sizes.sum() != n_tags:
        raise InputError(f"lengths sum to {sizes.sum():,.0f}, but there are {n_tags:,} tags.")
    return sizes.astype(np.int64)


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
    return _compare(_rows(gold), _rows(found))


def _compare(known: NDArray[np.int64], said: NDArray[np.int64]) -> SpanScores:
    """Return the scores of spans as rows, of which no side holds one twice."""
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
