r"""Tokens of texts, and spans as tags of tokens.

**Tokens** are such that every span is a run of whole tokens. The contract, for each document:

1. Tokens are those of the tool that wrote the file, where it has any (`Spans.tokens`). Characters that belong to none
   of them, and texts without such tokens, are cut by a rule: a token is a run of word characters (letters, digits, the
   underscore, and the marks that Unicode combines with letters), or any other single character that is no white space.
   Up to combining marks this is the regular expression ``\w+|[^\w\s]``.
2. White space at both ends of a span is trimmed. A span of white space only is no span, and is left out.
3. A token is cut wherever a span of any worker, or a known one, begins or ends inside it. Pieces are trimmed as spans
   are, and pieces of white space are dropped.

So each span begins where a token begins and ends where a token ends, and its offsets can be told exactly from the
numbers of its tokens. Tokens do not overlap, and are in order. Offsets count characters within the document.

**Tags** of the tokens say what each worker marked in the documents that they read. They are IOB2: the first token of a
span of type X is B-X, the others are I-X, and tokens outside of spans are O. A worker who read a document gives a tag
to each of its tokens.

A token has one tag, so that only one layer of spans can be fused: spans of one reading that do not overlap. Where they
do, the longest span (in characters) goes first, of equally long ones the one that begins earlier, and of those the
first in the order of the types. A span that overlaps one that was taken before is left out. So of nested spans the
outermost is fused, as is usual where named entities are to be flat. The choice depends on the spans of this reading
alone: a worker who marks only the outer span and one who marks the inner one too agree about the outer one.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Codes, Column, Indices, objects, to_column
from ..answers.items import Sequences
from ..errors import InputError, plural, shorten, warn_of
from ..kernels import Integers

if TYPE_CHECKING:
    from .spans import Marks, Spans

_SPACE, _WORD, _OTHER = 0, 1, 2
# Code points of Unicode.
_N_CODES = 0x110000
# Why a span is not fused.
KEPT, OVERLAPS, BLANK, REPEATED = range(4)
REASONS = {OVERLAPS: "overlaps another", BLANK: "white space only"}


class Tokens(NamedTuple):
    """The tokens of all documents, in order: those of document d are ``offsets[d]:offsets[d + 1]``."""

    offsets: Indices  # (D + 1,)
    start: Indices
    end: Indices


class Placed(NamedTuple):
    """Where spans are among the tokens of their documents."""

    first: Indices  # (S,): number of the first token
    stop: Indices  # (S,): number of the token after the last one; that of the first for white space only
    start: Indices  # (S,): offsets after trimming
    end: Indices


class Tokenised(NamedTuple):
    """The tokens of all documents, and where the spans of workers and the known spans are among them."""

    tokens: Tokens
    marks: Placed
    gold: Placed | None


def tokenise(spans: Spans) -> Tokenised:
    """The tokens of all documents, as the module's contract says.

    Examples
    --------
    >>> from consilience.kinds.spans import SpanCollector
    >>> collector = SpanCollector()
    >>> first = collector.add_document("a", "pre-2020 Ann's")
    >>> collector.add_reading(first, "w", [(4, 6, "X"), (8, 14, "PER")])
    >>> found = tokenise(collector.finish())
    >>> list(zip(found.tokens.start.tolist(), found.tokens.end.tolist()))
    [(0, 3), (3, 4), (4, 6), (6, 8), (9, 12), (12, 13), (13, 14)]
    >>> found.marks.first.tolist(), found.marks.stop.tolist(), found.marks.start.tolist()
    ([2, 4], [3, 7], [4, 9])
    """
    # All texts are looked at as one, in which document d begins at base[d].
    sizes = np.array([len(text) for text in spans.texts], np.int64)
    base = np.cumsum(sizes) - sizes
    kind = classify("".join(spans.texts))
    size = len(kind)
    inked = np.append(np.flatnonzero(kind != _SPACE), size)  # characters that are no white space, and a sentinel
    layers = [spans.marks] if spans.gold is None else [spans.marks, spans.gold]
    trimmed = []
    for marks in layers:
        start, end = marks.start + base[marks.document], marks.end + base[marks.document]
        low, high = np.searchsorted(inked, start), np.searchsorted(inked, end)
        blank = low == high  # white space only is an empty span where it begins
        trimmed.append((np.where(blank, start, inked[low]), np.where(blank, start, inked[high - 1] + 1)))
    cut = np.ones(size + 1, bool)  # whether there is a boundary before a character
    cut[1:-1] = (kind[1:] != _WORD) | (kind[:-1] != _WORD)
    if spans.tokens is not None:
        shift = np.repeat(base, np.diff(spans.tokens.offsets))
        start, end = spans.tokens.start + shift, spans.tokens.end + shift
        inside = np.cumsum(np.bincount(start, minlength=size + 1) - np.bincount(end, minlength=size + 1))[:size] > 0
        cut[1:-1] &= ~(inside[1:] & inside[:-1])
        cut[start] = cut[end] = True
    cut[base] = True
    for start, end in trimmed:
        cut[start] = cut[end] = True
    bounds = np.searchsorted(inked, np.flatnonzero(cut))
    low, high = bounds[:-1], bounds[1:]
    low, high = low[low < high], high[low < high]
    start, end = inked[low], inked[high - 1] + 1
    # Of empty documents, which begin where the next one does, none owns a token.
    owner = np.searchsorted(base, start, side="right") - 1
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(sizes)))]).astype(np.int64)
    placed = []
    for marks, (begin, until) in zip(layers, trimmed, strict=True):
        earlier, shift = offsets[marks.document], base[marks.document]
        first, stop = np.searchsorted(start, begin) - earlier, np.searchsorted(start, until) - earlier
        placed.append(Placed(first, stop, begin - shift, until - shift))
    return Tokenised(Tokens(offsets, start - base[owner], end - base[owner]), *placed, *[None] * (2 - len(placed)))


def classify(text: str) -> NDArray[np.uint8]:
    """What each character is: white space, part of a word, or something else.

    >>> classify("a_1 -").tolist()
    [1, 1, 1, 0, 2]
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    seen = np.zeros(_N_CODES, bool)
    seen[codes] = True
    kinds = np.full(_N_CODES, _OTHER, np.uint8)
    for code in np.flatnonzero(seen).tolist():
        sign = chr(code)
        if sign.isspace():
            kinds[code] = _SPACE
        elif sign.isalnum() or sign == "_" or unicodedata.category(sign).startswith("M"):
            kinds[code] = _WORD
    return kinds[codes]


def choose_layer(marks: Marks, placed: Placed) -> Indices:
    """For each span of each reading whether it is in the layer that is fused, or why not."""
    verdict = np.full(len(marks.start), KEPT, np.int64)
    verdict[placed.first == placed.stop] = BLANK
    inked = np.flatnonzero(verdict == KEPT)
    first, stop, label = placed.first[inked], placed.stop[inked], marks.label[inked]
    # Readings are numbered, so that spans of different ones never meet.
    changes = (np.diff(marks.document[inked]) != 0) | (np.diff(marks.worker[inked]) != 0)
    reading = np.concatenate([[0], np.cumsum(changes)])[: len(inked)]
    length = placed.end[inked] - placed.start[inked]
    order = np.lexsort((label, -length, first, reading))
    # In order of their beginning, a span that begins before the furthest end so far overlaps another.
    shift = reading * (int(stop.max(initial=0)) + 1)
    begin, until = (first + shift)[order], (stop + shift)[order]
    furthest = np.maximum.accumulate(until) if len(until) else until
    joined = np.concatenate([[False], begin[1:] < furthest[:-1]])[: len(inked)]
    cluster = np.cumsum(~joined)
    crowded = np.flatnonzero(np.bincount(cluster, minlength=1)[cluster] > 1) if len(cluster) else cluster
    for members in np.split(crowded, np.flatnonzero(np.diff(cluster[crowded])) + 1) if len(crowded) else ():
        verdict[inked[order[members]]] = _take_longest(
            begin[members].tolist(),
            until[members].tolist(),
            length[order[members]].tolist(),
            label[order[members]].tolist(),
        )
    return verdict


def _take_longest(first: list[int], stop: list[int], length: list[int], label: list[int]) -> list[int]:
    """The verdict on each of several spans that hang together by overlaps."""
    verdict = [OVERLAPS] * len(first)
    taken: set[int] = set()
    seen: set[tuple[int, int, int]] = set()
    for i in sorted(range(len(first)), key=lambda i: (-length[i], first[i], label[i])):
        span = (first[i], stop[i], label[i])
        if span in seen:
            verdict[i] = REPEATED  # it differs from the other by white space only
        elif taken.isdisjoint(range(first[i], stop[i])):
            verdict[i] = KEPT
            taken.update(range(first[i], stop[i]))
            seen.add(span)
    return verdict


def make_responses(spans: Spans) -> Answers:
    """The tags that workers gave to the tokens; see `Spans.to_responses`."""
    _tell_left_out(spans)
    tokens = spans.tokenised.tokens
    n_tokens, n_readers = np.diff(tokens.offsets), count_readers(spans)
    _tell_unused(spans, n_tokens, n_readers)
    documents = find_fused(spans, tokens)
    sizes, readers = n_tokens[documents], n_readers[documents]
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    readers_of_item = np.repeat(readers, sizes)
    offsets = np.concatenate([[0], np.cumsum(readers_of_item)]).astype(np.int64)
    label, names = _write_tags(spans, documents, offsets[bounds[:-1]], readers)
    known = find_known(spans)
    classes = np.array(sorted({*names.tolist(), *_distinct(known), "O"}), object) if len(names) else names
    position = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
    return Answers(
        offsets=offsets,
        worker=_list_readers(spans, documents, sizes, readers),
        label=label,
        weight=None,
        workers=spans.workers,
        labels=names,
        classes=classes,
        keys=Sequences(spans.documents[documents], bounds, position),
        backend=spans.backend,
    )


def count_readers(spans: Spans) -> Indices:
    """How many workers read each document."""
    return np.bincount(spans.readings[:, 0], minlength=len(spans.documents))


def find_fused(spans: Spans, tokens: Tokens) -> Indices:
    """The documents that are fused: those that have a token and a reader."""
    return np.flatnonzero((np.diff(tokens.offsets) > 0) & (count_readers(spans) > 0))


def _write_tags(spans: Spans, documents: Indices, base: Indices, readers: Indices) -> tuple[Codes, NDArray[np.object_]]:
    """The tag of each answer, as an index into the tags, and these.

    Answers to the tokens of a document begin at `base`, token by token, and for each token reader by reader.
    """
    marks, placed = spans.marks, spans.tokenised.marks
    used = np.full(len(spans.documents), -1, np.int64)
    used[documents] = np.arange(len(documents))
    n_tokens = np.diff(spans.tokenised.tokens.offsets)[documents]
    label = np.zeros(int((n_tokens * readers).sum()), np.int32)  # O
    kept = np.flatnonzero(spans.verdicts == KEPT)
    document = used[marks.document[kept]]
    # The number of the reader among those of the document.
    reading = spans.readings[:, 0] * len(spans.workers) + spans.readings[:, 1]
    own = marks.document[kept] * len(spans.workers) + marks.worker[kept]
    reader = np.searchsorted(reading, own) - np.searchsorted(spans.readings[:, 0], marks.document[kept])
    sizes = placed.stop[kept] - placed.first[kept]
    begin = base[document] + placed.first[kept] * readers[document] + reader
    _lay_tags(label, begin, readers[document], sizes, marks.label[kept])
    tags = _list_tags(spans)
    counts = np.bincount(label, minlength=len(tags))
    said = sorted(np.flatnonzero(counts).tolist(), key=tags.__getitem__)
    renamed = np.zeros(len(tags), np.int32)
    renamed[said] = np.arange(len(said))
    return renamed[label], objects([tags[code] for code in said])


def _lay_tags(codes: Integers, begin: Indices, step: Indices, sizes: Indices, types: Indices) -> None:
    """Write the codes of the tags of spans: of each span `sizes` tags, from `begin` on, `step` entries apart."""
    inner = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    codes[np.repeat(begin, sizes) + inner * np.repeat(step, sizes)] = np.repeat(1 + 2 * types, sizes) + (inner > 0)


def _list_tags(spans: Spans) -> list[str]:
    """The tags by their codes: O, then B and I of each type."""
    return ["O", *(f"{letter}-{name}" for name in spans.labels.tolist() for letter in "BI")]


def _list_readers(spans: Spans, documents: Indices, sizes: Indices, readers: Indices) -> Codes:
    """The worker of each answer."""
    workers = spans.readings[:, 1].astype(np.int32)
    first = np.searchsorted(spans.readings[:, 0], documents)
    n_answers = sizes * readers
    # Within a document, answer number a is that of reader a modulo the number of readers.
    number = np.arange(int(n_answers.sum())) - np.repeat(np.cumsum(n_answers) - n_answers, n_answers)
    number %= np.repeat(readers, n_answers)
    number += np.repeat(first, n_answers)
    return np.asarray(workers[number])


def find_known(spans: Spans) -> dict[str, Column] | None:
    """The tags of documents whose spans are known, as a table of sequence, position and label, or None.

    Documents that nobody read are left out, as they are by `Spans.to_responses`.
    """
    if spans.gold is None or spans.tokenised.gold is None:
        return None
    tokens, placed = spans.tokenised.tokens, spans.tokenised.gold
    documents = np.intersect1d(spans.gold_documents, spans.readings[:, 0])
    documents = documents[np.diff(tokens.offsets)[documents] > 0]
    if not len(documents):
        return None
    sizes = np.diff(tokens.offsets)[documents]
    base = np.full(len(spans.documents), -1, np.int64)
    base[documents] = np.cumsum(sizes) - sizes
    code = np.zeros(int(sizes.sum()), np.int64)
    kept = np.flatnonzero((choose_layer(spans.gold, placed) == KEPT) & (base[spans.gold.document] >= 0))
    begin = base[spans.gold.document[kept]] + placed.first[kept]
    _lay_tags(code, begin, np.ones_like(begin), placed.stop[kept] - placed.first[kept], spans.gold.label[kept])
    position = np.arange(len(code)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return {
        "sequence": to_column(spans.documents[np.repeat(documents, sizes)]),
        "position": to_column(position),
        "label": pa.array(_list_tags(spans), pa.string()).take(pa.array(code)),
    }


def _distinct(known: dict[str, Column] | None) -> list[str]:
    return [] if known is None else np.unique(np.asarray(known["label"], object)).tolist()


def _tell_left_out(spans: Spans) -> None:
    """Warn of spans that are not fused."""
    for code, problem in ((OVERLAPS, "overlap longer ones of the same worker"), (BLANK, "are white space only")):
        found = np.flatnonzero(spans.verdicts == code)
        if len(found):
            marks, first = spans.marks, found[0]
            warn_of(
                f"{plural(len(found), 'span')} of {len(marks.start):,} {problem}, and are not fused, such as "
                f"{shorten(spans.labels[marks.label[first]])} at {marks.start[first]} to {marks.end[first]} of "
                f"document {shorten(spans.documents[marks.document[first]])} by worker "
                f"{shorten(spans.workers[marks.worker[first]])}.",
                "spans.left_out() lists them.",
                *(["To fuse other layers, give the spans of one layer or type at a time."] * (code == OVERLAPS)),
            )


def _tell_unused(spans: Spans, n_tokens: Indices, n_readers: Indices) -> None:
    """Warn of documents that are left out, or raise an error if all are."""
    unread, empty = (n_readers == 0).sum(), ((n_tokens == 0) & (n_readers > 0)).sum()
    if unread + empty == len(spans.documents):
        raise InputError(
            "No document has both text and a reader.", "Say who read which document, also where nothing was marked."
        )
    reasons = [f"{plural(int(unread), 'document')} without a reader"] if unread else []
    reasons += [f"{plural(int(empty), 'document')} without text"] if empty else []
    if reasons:
        warn_of(
            f"{' and '.join(reasons)} of {len(spans.documents):,} are not fused.",
            *(["If somebody read them and marked nothing, say so when the spans are read."] if unread else []),
        )
