"""Texts with spans as tokens and tags, beside slow twins."""

from __future__ import annotations

import itertools
import re
import unicodedata
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import DataWarning, InputError
from consilience.kinds.span_kind import SpansKind
from consilience.kinds.tokens import place_marks, tokenise
from effort import examples
from marked_texts import mark

TEXTS = st.text(st.sampled_from("aB1_ \n\t.-'\u0301\u3000é中\U0001f600\u200b"), max_size=14)


@st.composite
def projects(draw: st.DrawFn) -> cs.Spans:
    texts, readings, gold, tokens = {}, {}, {}, {}
    with_tokens = draw(st.booleans())
    for number in range(draw(st.integers(1, 4))):
        text = draw(TEXTS)
        places = st.integers(0, len(text))
        if with_tokens:
            ends = sorted(draw(st.lists(places, unique=True, max_size=6)))
            tokens[number] = list(zip(ends[::2], ends[1::2], strict=False))
        texts[number] = text
        span = st.tuples(places, places, st.sampled_from("XY")).filter(lambda s: s[0] < s[1])
        spans = st.lists(span, max_size=4) if text else st.just([])
        for worker in draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3)):
            readings[number, worker] = draw(spans)
        if draw(st.booleans()):
            gold[number] = draw(spans)
    return mark(texts, readings, gold, tokens or None)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def is_word(sign: str) -> bool:
    return bool(re.match(r"\w", sign)) or unicodedata.category(sign)[0] == "M"


def slow_tokens(spans: cs.Spans, document: int) -> list[tuple[int, int]]:
    """Cut a text at each place that calls for it, one place at a time."""
    text = spans.texts[document]
    layers = [spans.marks] if spans.gold is None else [spans.marks, spans.gold]
    cuts = {0, len(text)}
    for marks in layers:
        for start, end in zip(
            marks.start[marks.document == document], marks.end[marks.document == document], strict=True
        ):
            cuts |= set(trim(text, start, end))
    owner = [-1] * len(text)
    if spans.tokens is not None:
        part = slice(*spans.tokens.offsets[document : document + 2])
        for number, (start, end) in enumerate(zip(spans.tokens.start[part], spans.tokens.end[part], strict=True)):
            owner[start:end] = [number] * (end - start)
    for place in range(1, len(text)):
        free = owner[place - 1] == owner[place] == -1
        if owner[place - 1] != owner[place] or (free and not (is_word(text[place - 1]) and is_word(text[place]))):
            cuts.add(place)
    places = sorted(cuts)
    pieces = [trim(text, *ends) for ends in itertools.pairwise(places)]
    return [piece for piece in pieces if piece[0] < piece[1]]


def slow_layer(spans: cs.Spans, document: int, worker: int) -> list[tuple[int, int, int]]:
    """Take the longest span that meets none of those taken, again and again."""
    own = (spans.marks.document == document) & (spans.marks.worker == worker)
    found = {
        (*trim(spans.texts[document], start, end), label)
        for start, end, label in zip(*(column[own].tolist() for column in spans.marks[2:5]), strict=True)
    }
    taken: list[tuple[int, int, int]] = []
    for start, end, label in sorted(found, key=lambda span: (span[0] - span[1], span[0], span[2])):
        if start < end and all(end <= other[0] or other[1] <= start for other in taken):
            taken.append((start, end, label))
    return taken


@examples(120)
@given(projects())
def test_tokens_are_those_of_the_slow_twin(spans):
    found = tokenise(spans)
    for document in range(len(spans.documents)):
        part = slice(*found.offsets[document : document + 2])
        pairs = list(zip(found.start[part].tolist(), found.end[part].tolist(), strict=True))
        assert pairs == slow_tokens(spans, document)
    for marks in (spans.marks, spans.gold):
        if marks is None:
            continue
        for document, start, end, first, stop in zip(
            marks.document, marks.start, marks.end, *place_marks(marks, found), strict=True
        ):
            left, right = trim(spans.texts[document], start, end)
            assert (left == right) == (first == stop)
            if left < right:
                assert found.start[found.offsets[document] + first] == left
                assert found.end[found.offsets[document] + stop - 1] == right


@examples(120)
@given(projects())
def test_tags_give_back_the_layer_that_is_fused(spans):
    readings = {tuple(pair) for pair in spans.readings.tolist()}
    usable = {d for d, _ in readings if slow_tokens(spans, d)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        if not usable:
            with pytest.raises(InputError, match="both text and a reader"):
                spans.to_responses()
            return
        task, r = SpansKind.to_answers(spans)
    assert r.sequences.ids.tolist() == sorted(usable)
    item = r.item_of_answer()
    token = np.arange(r.n_items) + np.repeat(
        task.offsets[task.fused] - r.sequences.offsets[:-1], np.diff(r.sequences.offsets)
    )
    for document, worker in readings:
        if document not in usable:
            continue
        own = np.flatnonzero(
            (r.sequences.of_items()[item] == r.sequences.ids.tolist().index(document)) & (r.worker == worker)
        )
        assert len(own) == len(slow_tokens(spans, document))
        tags = r.labels[r.label[own]].tolist()
        found, places = [], item[own]
        for tag, place in zip(tags, places, strict=True):
            start, end = int(task.start[token[place]]), int(task.end[token[place]])
            if tag[0] == "B":
                found.append([start, end, tag[2:]])
            elif tag[0] == "I":
                assert found[-1][2] == tag[2:]
                found[-1][1] = end
        expected = [[s, e, spans.labels[label]] for s, e, label in sorted(slow_layer(spans, document, worker))]
        assert found == expected


def test_left_out_spans_are_told_and_listed():
    texts = {"d": "University of Oslo   and more", "unread": "nobody", "empty": "  "}
    marked = [(0, 18, "ORG"), (14, 18, "LOC"), (19, 20, "LOC"), (0, 19, "ORG")]
    spans = mark(texts, {("d", "w"): marked, ("empty", "w"): []})
    with pytest.warns(DataWarning) as caught:
        r = spans.to_responses()
    told = [str(each.message) for each in caught]
    assert any("1 span of 4 overlap" in text and "'LOC' at 14 to 18" in text for text in told)
    assert any("1 span of 4 are white space only" in text for text in told)
    assert any("2 documents of 3 without a reader, or without text, are not fused" in text for text in told)
    table = spans.left_out().to_pydict()
    assert table["reason"] == ["overlaps another", "white space only"]
    assert table["text"] == ["Oslo", " "]
    assert r.n_items == 5
    assert r.labels[r.label].tolist() == ["B-ORG", "I-ORG", "I-ORG", "O", "O"]


TABLE = {"doc": [1, 1, 1], "annotator": ["a", "a", "b"], "start": [0, 0, 4], "end": [3, 3, 7], "label": ["X", "X", "Y"]}


def test_tables_of_spans():
    pd = pytest.importorskip("pandas")
    texts = {1: "Ann Lee", 2: "none"}
    spans = cs.Spans.from_frame(pd.DataFrame(TABLE), texts)
    assert len(spans.marks.start) == 2
    assert spans.readings.tolist() == [[0, 0], [0, 1]]
    assert list(spans.to_frame().columns) == ["document", "worker", "start", "end", "label", "text"]
    every = cs.Spans.from_frame(TABLE, texts, readings="all")
    assert every.readings.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    some = cs.Spans.from_frame(
        TABLE, pd.DataFrame({"id": [1, 2], "text": list(texts.values())}), readings={"document": [2], "worker": ["c"]}
    )
    assert some.readings.tolist() == [[0, 0], [0, 1], [1, 2]]
    gold = {"document": [1, 2], "start": [0, None], "end": [7, None], "label": ["Z", None]}
    known = cs.Spans.from_frame(TABLE, texts, gold=gold)
    assert known.gold_documents.tolist() == [0, 1]
    assert known.gold.end.tolist() == [7]
    assert known.labels.tolist() == ["X", "Y", "Z"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": [3, 3, 99]}, "not within their text"),
        ({"end": [3, 3, 4]}, "not within their text"),
        ({"start": [0, 0, 0.5]}, "must hold whole numbers"),
        ({"doc": [1, 1, 7]}, "have no text: 7"),
        ({"label": ["X", None, "Y"]}, "missing value"),
    ],
)
def test_bad_tables_of_spans(change, message):
    with pytest.raises(InputError, match=message):
        cs.Spans.from_frame(TABLE | change, {1: "Ann Lee"})
