"""Spans among the tags of tokens, and how probable each of them is.

Tags are B, I and O of each token. Spans are read from them as conlleval reads them, whatever the scheme: a span begins
at B (S, U), where the type changes, and at I (E, L) after O or after the end of a span; it goes on while neither
happens. So an I-X after O begins a span.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values
from ..answers.tagging import split_tag
from ..errors import InputError, shorten
from ..kernels.types import Floats

OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)
# What the letter before the type says. BILOU's L and U are what BIOES calls E and S.
LETTERS = {"O": OUTSIDE, "B": BEGIN, "I": INSIDE, "E": END, "L": END, "S": SINGLE, "U": SINGLE}


class TagSpans(NamedTuple):
    """Spans of a run of tags: first token, token after the last, type."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    kind: NDArray[np.int64]


def find_spans(prefix: NDArray[np.int64], kind: NDArray[np.int64], first: NDArray[np.bool_]) -> TagSpans:
    """Return the spans of tags given as prefix and type codes; `first` marks the first token of each sequence."""
    before, kind_before = np.roll(prefix, 1), np.roll(kind, 1)
    before[first] = OUTSIDE
    inside = prefix != OUTSIDE
    closed = np.isin(before, (OUTSIDE, END, SINGLE))
    begins = inside & (np.isin(prefix, (BEGIN, SINGLE)) | closed | (kind != kind_before))
    start = np.flatnonzero(begins)
    # A span ends before the next token that is outside, begins another, or belongs to another sequence.
    ends = np.flatnonzero(np.concatenate([~inside | begins | first, [True]]))
    stop = ends[np.searchsorted(ends, start, side="right")]
    return TagSpans(start, stop, kind[start])


def find_continuations(prefix: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which tag goes on with a span, [before, after], as `find_spans` reads them."""
    open_before, goes_on = np.isin(prefix, (BEGIN, INSIDE)), np.isin(prefix, (INSIDE, END))
    return np.asarray(open_before[:, None] & goes_on & (kind[:, None] == kind))


def split_tags(tags: Sequence[object]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return prefix codes and type numbers of tags; each distinct tag is parsed once."""
    parsed: dict[object, tuple[int, int]] = {}
    kinds: dict[str, int] = {}
    odd = [tag for tag in tags if not isinstance(tag, str)]  # which may have no hash
    for tag in odd[:1] or dict.fromkeys(tags):
        parts = split_tag(tag, LETTERS)
        if parts is None:
            raise InputError(f"{shorten(tag)} is no tag: expected O, or B, I, E, S, L or U with a type, such as B-PER.")
        prefix = LETTERS[parts[0]]
        parsed[tag] = (prefix, -1 if prefix == OUTSIDE else kinds.setdefault(parts[1], len(kinds)))
    codes = np.array([parsed[tag] for tag in tags], dtype=np.int64).reshape(-1, 2)
    return codes[:, 0], codes[:, 1]


class Runs(NamedTuple):
    """Runs of tags that are spans, in order."""

    sequence: NDArray[np.int64]  # number of the sequence
    first: NDArray[np.int64]  # first token, as an index into all items
    stop: NDArray[np.int64]  # token after the last one
    offset: NDArray[np.int64]  # first token of the sequence


def are_tags(classes: Values) -> bool:
    """Tell whether all classes are tags of spans, of any scheme."""
    return all(split_tag(name, LETTERS) is not None for name in classes.tolist())


def find_runs(codes: NDArray[np.int64], classes: Values, sequence: NDArray[np.int64]) -> Runs:
    """Return the spans among labels, given as indices into the classes; `sequence` is the number of that of each."""
    prefix, kind = split_tags(classes.tolist())
    first = np.append(True, sequence[1:] != sequence[:-1])[: len(codes)]
    spans = find_spans(prefix[codes], kind[codes], first)
    offset = np.flatnonzero(first)
    return Runs(sequence[spans.start], spans.start, spans.stop, offset[sequence[spans.start]])


def judge_runs(parts: Floats, runs: Runs) -> Floats:
    """Return the probability of each span: enter_a step_{a+1} ... step_b stop_b."""
    if not len(runs.first):
        return np.empty(0)
    steps = parts[:, 1].copy()
    steps[runs.first] = parts[runs.first, 0]
    ends = np.stack([runs.first, runs.stop], axis=1).ravel()
    product = np.multiply.reduceat(np.append(steps, 1.0), ends)[::2]
    return np.asarray(np.clip(product * parts[runs.stop - 1, 2], 0.0, 1.0))


def follow_alone(posterior: Floats, codes: NDArray[np.int64], classes: Values, sequence: NDArray[np.int64]) -> Floats:
    """Return what `consilience.kernels.chain.follow_paths` does, for labels that are independent of each other."""
    goes_on = find_continuations(*split_tags(classes.tolist())).astype(np.float64)
    rows = np.arange(len(codes))
    linked = np.flatnonzero(sequence[1:] == sequence[:-1])
    parts = np.ones((len(codes), 3))
    parts[:, 1] = posterior[rows, codes]
    parts[linked + 1, 0] -= np.einsum("ij,ji->i", posterior[linked], goes_on[:, codes[linked + 1]])
    parts[:, 0] *= parts[:, 1]
    parts[linked, 2] -= np.einsum("ij,ij->i", posterior[linked + 1], goes_on[codes[linked]])
    return parts
