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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Indices, objects, to_column
from ..answers.items import Sequences
from ..errors import InputError, plural, shorten, warn_of

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
    >>> import consilience as cs
    >>> table = {"document": ["a", "a"], "worker": ["w", "w"], "start": [4, 8], "end": [6, 14], "label": ["X", "PER"]}
    >>> found = tokenise(cs.Spans.from_frame(table, {"a": "pre-2020 Ann's"}))
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
    verdict = np.where(placed.first == placed.stop, BLANK, KEPT)
    order = np.lexsort((marks.label, placed.first, placed.start - placed.end, marks.worker, marks.document))
    inked = order[verdict[order] == KEPT]
    columns = (marks.document, marks.worker, placed.first, placed.stop, marks.label)
    reading, taken, seen = (-1, -1), set[int](), set[tuple[int, ...]]()
    for row, document, worker, *span in zip(
        inked.tolist(), *(column[inked].tolist() for column in columns), strict=True
    ):
        if (document, worker) != reading:
            reading, taken, seen = (document, worker), set(), set()
        tokens = range(span[0], span[1])
        if tuple(span) in seen:
            verdict[row] = REPEATED  # it differs from the other by white space only
        elif taken.isdisjoint(tokens):
            taken.update(tokens)
            seen.add(tuple(span))
        else:
            verdict[row] = OVERLAPS
    return verdict


class TokenTags(NamedTuple):
    """The tags of tokens, reading by reading: the reading, the position in the document, and the tag by its code."""

    reading: Indices
    position: Indices
    code: Indices


def write_tags(
    offsets: Indices, documents: Indices, reading: Indices, first: Indices, stop: Indices, label: Indices
) -> TokenTags:
    """The tags of all tokens of some readings; codes are O, then B and I of each type.

    Parameters
    ----------
    offsets : int64 array
        As in `Tokens`.
    documents : int64 array
        The document of each reading.
    reading, first, stop, label : int64 arrays
        Of each span its reading, its first token, the token after the last one, and its type.
    """
    sizes = np.diff(offsets)[documents]
    begin = np.cumsum(sizes) - sizes
    code = np.zeros(int(sizes.sum()), np.int64)
    lengths = stop - first
    inner = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    code[np.repeat(begin[reading] + first, lengths) + inner] = np.repeat(1 + 2 * label, lengths) + (inner > 0)
    position = np.arange(len(code)) - np.repeat(begin, sizes)
    return TokenTags(np.repeat(np.arange(len(documents)), sizes), position, code)


def tag_readings(spans: Spans, readings: Indices) -> TokenTags:
    """The tags of tokens by some readings, which include those with a span that is fused."""
    marks, placed = spans.marks, spans.tokenised.marks
    kept = np.flatnonzero(spans.verdicts == KEPT)
    number = readings[:, 0] * len(spans.workers) + readings[:, 1]
    reading = np.searchsorted(number, marks.document[kept] * len(spans.workers) + marks.worker[kept])
    first, stop = placed.first[kept], placed.stop[kept]
    return write_tags(spans.tokenised.tokens.offsets, readings[:, 0], reading, first, stop, marks.label[kept])


def list_tags(spans: Spans) -> list[str]:
    """The tags by their codes."""
    return ["O", *(f"{letter}-{name}" for name in spans.labels.tolist() for letter in "BI")]


def make_responses(spans: Spans) -> Answers:
    """The tags that workers gave to the tokens; see `Spans.to_responses`."""
    marks = spans.marks
    for code, problem in ((OVERLAPS, "overlap longer ones of the same worker"), (BLANK, "are white space only")):
        rows = np.flatnonzero(spans.verdicts == code)
        if len(rows):
            first = rows[0]
            warn_of(
                f"{plural(len(rows), 'span')} of {len(marks.start):,} {problem}, and are not fused, such as "
                f"{shorten(spans.labels[marks.label[first]])} at {marks.start[first]} to {marks.end[first]} of "
                f"document {shorten(spans.documents[marks.document[first]])} by worker "
                f"{shorten(spans.workers[marks.worker[first]])}.",
                "spans.left_out() lists them.",
                *(["To fuse other layers, give the spans of one layer or type at a time."] * (code == OVERLAPS)),
            )
    documents, n_documents = find_fused(spans), len(spans.documents)
    if not len(documents):
        raise InputError(
            "No document has both text and a reader.", "Say who read which document, also where nothing was marked."
        )
    if len(documents) < n_documents:
        warn_of(
            f"{plural(n_documents - len(documents), 'document')} of {n_documents:,} without a reader, or without text, "
            "are not fused.",
            "If somebody read them and marked nothing, say so when the spans are read.",
        )
    readings = spans.readings[np.isin(spans.readings[:, 0], documents)]
    said = tag_readings(spans, readings)
    sizes = np.diff(spans.tokenised.tokens.offsets)[documents]
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    item = bounds[np.searchsorted(documents, readings[:, 0])][said.reading] + said.position
    order = np.argsort(item, kind="stable")
    used, tag = np.unique(said.code[order], return_inverse=True)
    labels, rank = np.unique(objects(list_tags(spans))[used], return_inverse=True)
    known = tabulate_known(spans)
    known_tags = [] if known is None else known["label"].unique().to_pylist()
    return Answers(
        offsets=np.concatenate([[0], np.cumsum(np.bincount(item, minlength=bounds[-1]))]).astype(np.int64),
        worker=readings[:, 1].astype(np.int32)[said.reading][order],
        label=rank[tag].astype(np.int32),
        weight=None,
        workers=spans.workers,
        labels=labels,
        classes=objects(sorted({*labels.tolist(), *known_tags, "O"})),
        keys=Sequences(spans.documents[documents], bounds, np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)),
        backend=spans.backend,
    )


def find_fused(spans: Spans) -> Indices:
    """The documents that are fused: those that have a token and a reader."""
    n_readers = np.bincount(spans.readings[:, 0], minlength=len(spans.documents))
    return np.flatnonzero((np.diff(spans.tokenised.tokens.offsets) > 0) & (n_readers > 0))


def tabulate_known(spans: Spans) -> dict[str, Any] | None:
    """The tags of documents whose spans are known, as a table of sequence, position and label, or None.

    Documents that nobody read are left out, as they are by `Spans.to_responses`.
    """
    if spans.gold is None or spans.tokenised.gold is None:
        return None
    gold, placed, tokens = spans.gold, spans.tokenised.gold, spans.tokenised.tokens
    documents = np.intersect1d(spans.gold_documents, find_fused(spans))
    if not len(documents):
        return None
    kept = np.flatnonzero((choose_layer(gold, placed) == KEPT) & np.isin(gold.document, documents))
    reading = np.searchsorted(documents, gold.document[kept])
    known = write_tags(tokens.offsets, documents, reading, placed.first[kept], placed.stop[kept], gold.label[kept])
    return {
        "sequence": to_column(spans.documents[documents[known.reading]]),
        "position": to_column(known.position),
        "label": pa.array(list_tags(spans), pa.string()).take(pa.array(known.code)),
    }
