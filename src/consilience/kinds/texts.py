r"""Texts in which several workers marked spans, and their tokens.

A span is the stretch ``text[start:end]`` of a document, with a type. Offsets count characters (Unicode code points), as
Python does. A *reading* is one worker's annotation of one document: all spans that the worker marked there, perhaps
none. A document that a worker never saw has no reading by that worker, which is not the same as an empty one.

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

All of it is done for many documents at a time: a boundary is a place before a character, and what makes a boundary is
marked in one array for all characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Indices, Values
from ..errors import InputError, listing, plural, shorten
from ..kernels import Floats, Truths

# What fused spans and labels are called, as a worker.
FUSED = "consilience"
# Documents are taken together up to this many characters.
CHUNK = 1 << 22
_SPACE, _WORD, _OTHER = 0, 1, 2
# Code points of Unicode.
_N_CODES = 0x110000

Kinds = NDArray[np.uint8]


class Marks(NamedTuple):
    """Spans as columns, in order of document, then worker, start and end."""

    document: Indices  # (S,): index of the document
    worker: Indices  # (S,): index of the worker; 0 for known spans
    start: Indices
    end: Indices
    label: Indices  # (S,): index of the type
    confidence: Floats | None = None  # (S,), NaN for a span that has none; None if no span has one


class Tokens(NamedTuple):
    """The tokens of all documents, in order: those of document d are ``offsets[d]:offsets[d + 1]``."""

    offsets: Indices  # (D + 1,)
    start: Indices
    end: Indices


class Origin(NamedTuple):
    """Where spans were read, so that they can be written back with all that the file has beside them."""

    path: str
    format: str


@dataclass(frozen=True, eq=False)
class MarkedTexts:
    """What `Spans` hold, whose attributes are told there."""

    documents: Values
    texts: list[str]
    workers: Values
    labels: Values
    marks: Marks
    readings: Indices
    tokens: Tokens | None = None
    gold: Marks | None = None
    gold_documents: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    origin: Origin | None = None
    questions: tuple[str, ...] = ()
    backend: str = "pyarrow"  # the frame library in which results go back

    def __repr__(self) -> str:
        return (
            f"Spans({plural(len(self.marks.start), 'span')} in {plural(len(self.documents), 'document')} by "
            f"{plural(len(self.workers), 'worker')}, {plural(len(self.labels), 'type')}: "
            f"{listing(self.labels.tolist())})"
        )


def pick_marks(marks: Marks, rows: Indices) -> Marks:
    """Return some of the spans."""
    return Marks(*(None if column is None else column[rows] for column in marks))  # type: ignore[arg-type]


def cut_texts(texts: list[str], marks: Marks) -> list[str]:
    """Return the stretch of text of each span."""
    places = zip(marks.document.tolist(), marks.start.tolist(), marks.end.tolist(), strict=True)
    return [texts[document][start:end] for document, start, end in places]


def sort_marks(marks: Marks) -> Marks:
    """Return the spans in order."""
    return pick_marks(marks, np.lexsort((marks.label, marks.end, marks.start, marks.worker, marks.document)))


def check_offsets(marks: Marks, lengths: Indices, documents: Values) -> None:
    """Raise an error unless all spans are within their texts, which have these lengths."""
    bad = np.flatnonzero((marks.start < 0) | (marks.end <= marks.start) | (marks.end > lengths[marks.document]))
    if len(bad):
        first = bad[0]
        document = int(marks.document[first])
        raise InputError(
            f"{plural(len(bad), 'span')} are not within their text, such as {marks.start[first]} to "
            f"{marks.end[first]} in document {shorten(documents[document])}, which has "
            f"{plural(int(lengths[document]), 'character')}.",
            "Check that the offsets belong to this text.",
        )


class Placed(NamedTuple):
    """Where spans are among the tokens of their documents."""

    first: Indices  # (S,): number of the first token
    stop: Indices  # (S,): number of the token after the last one; that of the first for white space only
    start: Indices  # (S,): offsets after trimming
    end: Indices

    def blank(self) -> Truths:
        """Tell which spans are white space only."""
        return np.asarray(self.first == self.stop)


class Tokenised(NamedTuple):
    """The tokens of all documents, and where the spans of workers and the known spans are among them."""

    tokens: Tokens
    marks: Placed
    gold: Placed


def tokenise(spans: MarkedTexts) -> Tokenised:
    """Return the tokens of all documents, as the module's contract says.

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
    layers = [spans.marks] if spans.gold is None else [spans.marks, spans.gold]
    sizes = np.array([len(text) for text in spans.texts], np.int64)
    n_tokens = np.zeros(len(sizes), np.int64)
    starts, ends, placed = [], [], list[list[Placed]]()
    for first, last in _cut_chunks(sizes):
        base = np.cumsum(sizes[first:last]) - sizes[first:last]
        kind = classify("".join(spans.texts[first:last]))
        tool = None if spans.tokens is None else _shift_tokens(spans.tokens, first, last, base)
        ranges = [_shift_marks(marks, first, last, base) for marks in layers]
        start, end, found = _cut_text(kind, base, tool, ranges)
        owner = np.searchsorted(base, start, side="right") - 1
        # Of empty documents, which begin where the next one does, none owns a token.
        n_tokens[first:last] = np.bincount(owner, minlength=last - first)
        numbers = np.cumsum(n_tokens[first:last]) - n_tokens[first:last]
        starts.append(start - base[owner])
        ends.append(end - base[owner])
        documents = [_slice_of(marks, first, last)[1] for marks in layers]
        placed.append([_relative(each, numbers, base, which) for each, which in zip(found, documents, strict=True)])
    tokens = Tokens(
        np.concatenate([[0], np.cumsum(n_tokens)]).astype(np.int64), np.concatenate(starts), np.concatenate(ends)
    )
    joined = [Placed(*map(np.concatenate, zip(*parts, strict=True))) for parts in zip(*placed, strict=True)]
    nothing = Placed(*(np.empty(0, np.int64) for _ in Placed._fields))
    return Tokenised(tokens, joined[0], joined[1] if len(joined) > 1 else nothing)


def classify(text: str) -> Kinds:
    """Return what each character is: white space, part of a word, or something else.

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


def _cut_text(
    kind: Kinds, base: Indices, tool: tuple[Indices, Indices] | None, ranges: list[tuple[Indices, Indices]]
) -> tuple[Indices, Indices, list[Placed]]:
    """Return start and end of the tokens of several documents, which begin at `base`, and where spans are among them.

    `tool` are tokens that are given, and each of `ranges` spans, both as starts and ends.
    """
    size = len(kind)
    inked = np.flatnonzero(kind != _SPACE)
    n_before = np.concatenate([[0], np.cumsum(kind != _SPACE)])  # characters before a place that are no white space
    trimmed = [_trim(start, end, inked, n_before) for start, end in ranges]
    cut = np.ones(size + 1, bool)
    cut[1:-1] = (kind[1:] != _WORD) | (kind[:-1] != _WORD)
    if tool is not None:
        depth = np.bincount(tool[0], minlength=size + 1) - np.bincount(tool[1], minlength=size + 1)
        inside = np.cumsum(depth)[:size] > 0
        cut[1:-1] &= ~(inside[1:] & inside[:-1])
        cut[tool[0]] = cut[tool[1]] = True
    cut[base] = True
    for start, end in trimmed:
        cut[start] = cut[end] = True
    places = np.flatnonzero(cut)
    low, high = n_before[places[:-1]], n_before[places[1:]]
    low, high = low[low < high], high[low < high]
    token_start, token_end = inked[low], inked[high - 1] + 1
    begins = np.zeros(size + 1, np.int64)
    begins[token_start] = 1
    number = np.cumsum(begins) - begins  # tokens that begin before a place
    return token_start, token_end, [Placed(number[start], number[end], start, end) for start, end in trimmed]


def _trim(start: Indices, end: Indices, inked: Indices, n_before: Indices) -> tuple[Indices, Indices]:
    """Return spans without the white space at their ends; those of white space only are empty, where they begin."""
    low, high = n_before[start], n_before[end]
    if not len(inked):
        return start, start
    blank = low == high
    return (np.where(blank, start, inked[np.minimum(low, len(inked) - 1)]), np.where(blank, start, inked[high - 1] + 1))


def _cut_chunks(sizes: Indices) -> Iterator[tuple[int, int]]:
    """Yield first and last document (excluded) of runs of documents with about `CHUNK` characters."""
    total = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        limit = (total[first - 1] if first else 0) + CHUNK
        last = max(first + 1, int(np.searchsorted(total, limit, side="right")))
        yield first, last
        first = last


def _slice_of(marks: Marks, first: int, last: int) -> tuple[slice, Indices]:
    """Return where the spans of a run of documents are, and the document of each within the run."""
    low, high = np.searchsorted(marks.document, [first, last])
    part = slice(int(low), int(high))
    return part, marks.document[part] - first


def _shift_marks(marks: Marks, first: int, last: int, base: Indices) -> tuple[Indices, Indices]:
    part, document = _slice_of(marks, first, last)
    return marks.start[part] + base[document], marks.end[part] + base[document]


def _shift_tokens(tokens: Tokens, first: int, last: int, base: Indices) -> tuple[Indices, Indices]:
    part = slice(int(tokens.offsets[first]), int(tokens.offsets[last]))
    shift = np.repeat(base, np.diff(tokens.offsets[first : last + 1]))
    return tokens.start[part] + shift, tokens.end[part] + shift


def _relative(placed: Placed, numbers: Indices, base: Indices, document: Indices) -> Placed:
    """Return places counted from the beginning of their documents."""
    return Placed(
        placed.first - numbers[document],
        placed.stop - numbers[document],
        placed.start - base[document],
        placed.end - base[document],
    )
