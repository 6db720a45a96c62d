"""Spans against seqeval, and by hand."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score

from consilience import metrics
from consilience.answers.tagging import looks_iob2, tag_transitions
from consilience.errors import InputError
from effort import examples

KINDS = ("PER", "LOC", "A-B")
SCHEMES = {"IOB1": "BI", "IOB2": "BI", "BIOES": "BIES"}


def tags_of(letters: str) -> st.SearchStrategy[str]:
    """Any tags: nothing keeps them valid, and some have no type."""
    typed = st.builds("{}-{}".format, st.sampled_from(letters), st.sampled_from(KINDS))
    return st.one_of(st.just("O"), typed, st.sampled_from(letters))


@st.composite
def tagged(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    letters = SCHEMES[draw(st.sampled_from(sorted(SCHEMES)))]
    lengths = draw(st.lists(st.integers(0, 8), min_size=1, max_size=5).filter(any))
    tags = tags_of(letters)
    gold = [draw(st.lists(tags, min_size=n, max_size=n)) for n in lengths]
    predicted = [[draw(st.one_of(st.just(tag), tags)) for tag in sequence] for sequence in gold]
    return gold, predicted


@examples(400)
@given(tagged())
def test_strict_scores_are_those_of_seqeval(pair):
    gold, predicted = pair
    score = metrics.span_score(gold, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores that are not defined
        expected = [
            float(function(gold, predicted, zero_division=0)) for function in (precision_score, recall_score, f1_score)
        ]
    np.testing.assert_allclose(score[:3], expected, rtol=0, atol=1e-12)
    assert metrics.span_f1(gold, predicted) == score.f1


def test_relaxed_scores_by_hand():
    gold = [["B-X", "I-X", "I-X", "I-X", "O"], ["B-X", "O", "B-Y"]]
    predicted = [["O", "B-X", "I-X", "O", "B-X"], ["B-Y", "O", "B-Y"]]
    # Found: half of the first span, none of the second, all of the third. Right: all, none, none, all.
    score = metrics.relaxed_span_score(gold, predicted)
    assert score == (pytest.approx(1 / 2), pytest.approx(1 / 2), pytest.approx(1 / 2), 3, 4, 1)
    # Two predicted spans may share one gold span.
    assert metrics.relaxed_span_score(["B", "I", "I", "I"], ["B", "I", "B", "I"])[:3] == (1, 1, 1)
    assert metrics.relaxed_span_score(["B", "I"], ["O", "O"])[:3] == (0, 0, 0)


@given(st.lists(tags_of("BI"), min_size=1, max_size=12))
def test_invalid_transitions_are_those_the_model_forbids(tags):
    names = np.array(sorted({"O", *tags}), dtype=object)
    allowed = tag_transitions(names, "bio")
    codes = [names.tolist().index(tag) for tag in tags]
    wrong = int(not allowed.start[codes[0]]) + sum(
        not allowed.steps[before, after] for before, after in pairwise(codes)
    )
    assert metrics.count_invalid_transitions(tags) == wrong


@pytest.mark.parametrize(
    ("gold", "predicted", "lengths", "words"),
    [
        ([], [], None, "no tags"),
        (["O", "X-PER"], ["O", "O"], None, "'X-PER' is no tag"),
        (["O", "BPER"], ["O", "O"], None, "'BPER' is no tag"),
        (["O", 3], ["O", "O"], None, "3 is no tag"),
        ([["O"], ["O"]], [["O", "O"]], None, "same tokens"),
        (["O", "O"], ["O", "O"], [1, 2], "lengths sum to 3"),
        (["O", "O"], ["O", "O"], [3, -1], "lengths"),
    ],
)
def test_errors(gold, predicted, lengths, words):
    with pytest.raises(InputError, match=words):
        metrics.span_score(gold, predicted, lengths)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["O", "B-X", "I-X"], True),
        (["O", "B", "I"], True),
        (["O", "B-X"], True),
        (["O", "I-X"], False),  # IOB1, or only inside and outside
        (["O", "B-X", "I-Y"], False),
        (["B-1", "B-2"], False),  # no O
        (["O"], False),
        (["O", "B-X", "maybe"], False),
        ([0, 1], False),
    ],
)
def test_what_looks_like_iob2(labels, expected):
    assert looks_iob2(np.array(labels, dtype=object)) is expected
