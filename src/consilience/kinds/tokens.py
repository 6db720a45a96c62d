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
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Indices, Values

if TYPE_CHECKING:
    from .spans import Marks, Spans

_SPACE, _WORD, _OTHER = 0, 1, 2
# Code points of Unicode.
_N_CODES = 0x110000
# Why a span is not fused.
FUSED_SPAN, OVERLAPS, BLANK, REPEATED = range(4)
LEFT_OUT_REASONS = {OVERLAPS: "overlaps another", BLANK: "white space only"}


class Tokens(NamedTuple):
    """The tokens of all documents, in order: those of document d are ``offsets[d]:offsets[d + 1]``."""

    offsets: Indices  # (D + 1,)
    start: Indices
    end: Indices


# Of each span: whether it is fused, or why not; its first token; the token after the last one.
Layer: TypeAlias = tuple[Indices, Indices, Indices]


def tokenise(spans: Spans) -> Tokens:
    """The tokens of all documents, as the module's contract says.

    Examples
    --------
    >>> import consilience as cs
    >>> table = {"document": ["a", "a"], "worker": ["w", "w"], "start": [4, 8], "end": [6, 14], "label": ["X", "PER"]}
    >>> found = tokenise(cs.Spans.from_frame(table, {"a": "pre-2020 Ann's"}))
    >>> list(zip(found.start.tolist(), found.end.tolist()))
    [(0, 3), (3, 4), (4, 6), (6, 8), (9, 12), (12, 13), (13, 14)]
    """
    # All texts are looked at as one, in which document d begins at base[d].
    sizes = np.array([len(text) for text in spans.texts], np.int64)
    base = np.cumsum(sizes) - sizes
    kind = classify("".join(spans.texts))
    size = len(kind)
    cut = np.ones(size + 1, bool)  # whether there is a boundary before a character
    cut[1:-1] = (kind[1:] != _WORD) | (kind[:-1] != _WORD)
    if spans.tokens is not None:
        shift = np.repeat(base, np.diff(spans.tokens.offsets))
        start, end = spans.tokens.start + shift, spans.tokens.end + shift
        inside = np.cumsum(np.bincount(start, minlength=size + 1) - np.bincount(end, minlength=size + 1))[:size] > 0
        cut[1:-1] &= ~(inside[1:] & inside[:-1])
        cut[start] = cut[end] = True
    cut[base] = True
    for marks in (spans.marks, spans.gold):
        if marks is not None:
            cut[marks.start + base[marks.document]] = cut[marks.end + base[marks.document]] = True
    # Pieces between two boundaries, without white space at their ends; those of nothing else are dropped.
    inked = np.append(np.flatnonzero(kind != _SPACE), size)
    bounds = np.searchsorted(inked, np.flatnonzero(cut))
    low, high = bounds[:-1][bounds[:-1] < bounds[1:]], bounds[1:][bounds[:-1] < bounds[1:]]
    start, end = inked[low], inked[high - 1] + 1
    # Of empty documents, which begin where the next one does, none owns a token.
    owner = np.searchsorted(base, start, side="right") - 1
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(sizes)))]).astype(np.int64)
    return Tokens(offsets, start - base[owner], end - base[owner])


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


def place_marks(marks: Marks, tokens: Tokens) -> tuple[Indices, Indices]:
    """The first token of each span in its document, and the one after its last; the same for white space only."""
    room = max(int(tokens.end.max(initial=0)), int(marks.end.max(initial=0))) + 1
    line = np.repeat(np.arange(len(tokens.offsets) - 1), np.diff(tokens.offsets)) * room + tokens.start
    first, stop = (np.searchsorted(line, marks.document * room + place) for place in (marks.start, marks.end))
    return first - tokens.offsets[marks.document], stop - tokens.offsets[marks.document]


def choose_layer(marks: Marks, tokens: Tokens) -> Layer:
    """For each span of each reading whether it is in the layer that is fused, or why not; and where its tokens are."""
    first, stop = place_marks(marks, tokens)
    verdict = np.where(first == stop, BLANK, FUSED_SPAN)
    inked = np.flatnonzero(verdict == FUSED_SPAN)
    base = tokens.offsets[marks.document[inked]]
    length = tokens.end[base + stop[inked] - 1] - tokens.start[base + first[inked]]
    inked = inked[np.lexsort((marks.label[inked], first[inked], -length, marks.worker[inked], marks.document[inked]))]
    columns = (marks.document, marks.worker, first, stop, marks.label)
    reading, taken, seen = (-1, -1), set[int](), set[tuple[int, ...]]()
    for row, document, worker, *span in zip(
        inked.tolist(), *(column[inked].tolist() for column in columns), strict=True
    ):
        if (document, worker) != reading:
            reading, taken, seen = (document, worker), set(), set()
        if tuple(span) in seen:
            verdict[row] = REPEATED  # it differs from the other by white space only
        elif taken.isdisjoint(range(span[0], span[1])):
            taken.update(range(span[0], span[1]))
            seen.add(tuple(span))
        else:
            verdict[row] = OVERLAPS
    return verdict, first, stop


def tag_readings(marks: Marks, layer: Layer, tokens: Tokens, readings: Indices) -> tuple[Indices, Indices, Indices]:
    """The tags of tokens, reading by reading: its number, the token's position in the document, the code of the tag.

    Codes are those of `list_tags`. `readings` are rows of document and worker in order, as in `Spans`; spans of other
    readings are left out.
    """
    verdict, first, stop = layer
    n_workers = 1 + max(int(readings[:, 1].max(initial=0)), int(marks.worker.max(initial=0)))
    number, owner = readings @ [n_workers, 1], marks.document * n_workers + marks.worker
    kept = np.flatnonzero((verdict == FUSED_SPAN) & np.isin(owner, number))
    sizes = np.diff(tokens.offsets)[readings[:, 0]]
    begin = np.cumsum(sizes) - sizes
    lengths = (stop - first)[kept]
    inner = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    place = np.repeat(begin[np.searchsorted(number, owner[kept])] + first[kept], lengths) + inner
    code = np.zeros(int(sizes.sum()), np.int64)
    code[place] = np.repeat(1 + 2 * marks.label[kept], lengths) + (inner > 0)
    return np.repeat(np.arange(len(readings)), sizes), np.arange(len(code)) - np.repeat(begin, sizes), code


def list_tags(labels: Values) -> list[str]:
    """The tags by their codes: O, then B and I of each type."""
    return ["O", *(f"{letter}-{name}" for name in labels.tolist() for letter in "BI")]
