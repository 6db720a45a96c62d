"""Scores of spans: entities, populations, anything that is tagged token by token with B, I and O.

Spans are read as conlleval reads them, whatever the scheme: a span begins at B (S, U), where the type changes, and at I
(E, L) after O or after the end of a span; it goes on while neither happens. So an I-X after O begins a span.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.tagging import split_tag
from ..arguments import to_floats
from ..errors import InputError, first_line, shorten

_OUTSIDE, _BEGIN, _INSIDE, _END, _SINGLE = range(5)
# BILOU's L and U are what BIOES calls E and S.
_LETTERS = {"O": _OUTSIDE, "B": _BEGIN, "I": _INSIDE, "E": _END, "L": _END, "S": _SINGLE, "U": _SINGLE}


class SpanScore(NamedTuple):
    """Precision, recall and their harmonic mean, with the numbers of spans."""

    precision: float
    recall: float
    f1: float
    n_gold: int
    n_predicted: int
    n_correct: int


class Spans(NamedTuple):
    """Spans of a run of tags: first token, token after the last, type."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    kind: NDArray[np.int64]


def span_f1(gold: Any, predicted: Any, lengths: ArrayLike | None = None) -> float:
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


def span_score(gold: Any, predicted: Any, lengths: ArrayLike | None = None) -> SpanScore:
    """Return strict precision, recall and F1 of spans; arguments as for `span_f1`.

    Examples
    --------
    >>> span_score(["B", "I", "O", "B"], ["B", "I", "B", "I"])
    SpanScore(precision=0.5, recall=0.5, f1=0.5, n_gold=2, n_predicted=2, n_correct=1)
    """
    true, found, _ = _both(gold, predicted, lengths)
    n_correct = _count_common(true, found)
    return make_score(n_correct, n_correct, len(true.start), len(found.start), n_correct)


def relaxed_span_score(gold: Any, predicted: Any, lengths: ArrayLike | None = None) -> SpanScore:
    """Return scores that count the part of each span that is right.

    Precision is the mean share of a predicted span that lies in gold spans of its type, recall the mean share of a gold
    span that lies in predicted ones.

    Examples
    --------
    >>> relaxed_span_score(["B", "I", "I", "I"], ["O", "B", "I", "O"]).recall
    0.5
    """
    true, found, size = _both(gold, predicted, lengths)
    kinds = [np.full(size, -1), np.full(size, -1)]
    for spans, kind in zip((true, found), kinds, strict=True):
        for start, stop, name in zip(*spans, strict=True):
            kind[start:stop] = name
    covered = np.concatenate([[0], np.cumsum((kinds[0] == kinds[1]) & (kinds[0] >= 0))])

    def shares(spans: Spans) -> float:
        return float(np.sum((covered[spans.stop] - covered[spans.start]) / (spans.stop - spans.start)))

    n_correct = _count_common(true, found)
    return make_score(shares(found), shares(true), len(true.start), len(found.start), n_correct)


def count_invalid_transitions(tags: Any, lengths: ArrayLike | None = None) -> int:
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
    before[_firsts(sizes)] = _OUTSIDE
    follows = np.isin(before, (_BEGIN, _INSIDE)) & (kind == kind_before)
    return int(((prefix == _INSIDE) & ~follows).sum())


def _firsts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the first token of each sequence."""
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)


def make_score(found_right: float, true_found: float, n_gold: int, n_predicted: int, n_correct: int) -> SpanScore:
    """Return scores from how much of the predicted spans is right, and how much of the true ones is found."""
    precision = found_right / n_predicted if n_predicted else 0.0
    recall = true_found / n_gold if n_gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return SpanScore(precision, recall, f1, n_gold, n_predicted, n_correct)


def _both(gold: Any, predicted: Any, lengths: ArrayLike | None) -> tuple[Spans, Spans, int]:
    """Return the spans of both, with types numbered alike, and the number of tokens."""
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
    spans = [find_spans(prefix[part], kind[part], first) for part in (slice(0, len(true)), slice(len(true), None))]
    return spans[0], spans[1], len(true)


def find_spans(prefix: NDArray[np.int64], kind: NDArray[np.int64], first: NDArray[np.bool_]) -> Spans:
    """Return the spans of tags given as prefix and type codes; `first` marks the first token of each sequence."""
    before, kind_before = np.roll(prefix, 1), np.roll(kind, 1)
    before[first] = _OUTSIDE
    inside = prefix != _OUTSIDE
    closed = np.isin(before, (_OUTSIDE, _END, _SINGLE))
    begins = inside & (np.isin(prefix, (_BEGIN, _SINGLE)) | closed | (kind != kind_before))
    start = np.flatnonzero(begins)
    # A span ends before the next token that is outside, begins another, or belongs to another sequence.
    ends = np.flatnonzero(np.concatenate([~inside | begins | first, [True]]))
    stop = ends[np.searchsorted(ends, start, side="right")]
    return Spans(start, stop, kind[start])


def find_continuations(prefix: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which tag goes on with a span, [before, after], as `find_spans` reads them."""
    open_before, goes_on = np.isin(prefix, (_BEGIN, _INSIDE)), np.isin(prefix, (_INSIDE, _END))
    return np.asarray(open_before[:, None] & goes_on & (kind[:, None] == kind))


def split_tags(tags: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return prefix codes and type numbers of tags; each distinct tag is parsed once."""
    parsed: dict[Any, tuple[int, int]] = {}
    kinds: dict[str, int] = {}
    odd = [tag for tag in tags if not isinstance(tag, str)]  # which may have no hash
    for tag in odd[:1] or dict.fromkeys(tags):
        parts = split_tag(tag, _LETTERS)
        if parts is None:
            raise InputError(f"{shorten(tag)} is no tag: expected O, or B, I, E, S, L or U with a type, such as B-PER.")
        prefix = _LETTERS[parts[0]]
        parsed[tag] = (prefix, -1 if prefix == _OUTSIDE else kinds.setdefault(parts[1], len(kinds)))
    codes = np.array([parsed[tag] for tag in tags], dtype=np.int64).reshape(-1, 2)
    return codes[:, 0], codes[:, 1]


def _flatten(tags: Any, lengths: ArrayLike | None) -> tuple[list[Any], NDArray[np.int64]]:
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


def _to_list(values: Any) -> list[Any]:
    try:
        entries = values.tolist() if hasattr(values, "tolist") else list(values)
    except TypeError:
        entries = None
    if not isinstance(entries, list):
        raise InputError(f"Tags must be lists of lists of tags, or one list of them. Got {shorten(values)} instead.")
    return entries


def _read_lengths(lengths: Any, n_tags: int) -> NDArray[np.int64]:
    try:
        sizes = to_floats(lengths)
    except ValueError as error:
        raise InputError(f"lengths must be whole numbers; {first_line(error)}.") from error
    if sizes.ndim != 1 or not ((sizes >= 0) & (sizes == np.floor(sizes)) & (sizes < np.inf)).all():
        raise InputError(f"lengths must be whole numbers >= 0. Got {shorten(lengths)} instead.")
    if sizes.sum() != n_tags:
        raise InputError(f"lengths sum to {sizes.sum():,.0f}, but there are {n_tags:,} tags.")
    return sizes.astype(np.int64)


def _count_common(one: Spans, other: Spans) -> int:
    """Return how many spans are in both; on either side no two begin at the same token."""
    _, here, there = np.intersect1d(one.start, other.start, assume_unique=True, return_indices=True)
    same = (one.stop[here] == other.stop[there]) & (one.kind[here] == other.kind[there])
    return int(same.sum())
