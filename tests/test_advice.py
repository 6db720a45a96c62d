"""What is said in situations whose truth is known: right, and as docs/advice.md shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import advice
from effort import rest_robust

TABLE = Path(__file__).parents[1] / "docs" / "measured" / "advice.md"

# The verdict, and what must be said.
EXPECTED = {
    "noise, 2 classes": ("no different", ["These answers show no signal: the workers agree no more than by chance"]),
    "noise, 3 classes": ("no different", ["These answers show no signal: the workers agree no more than by chance"]),
    "a pilot: 120 items, 5 answers each": ("better", []),
    "5 million answers by 3,000 workers": ("better", []),
    "labelling functions, silence ignored": (
        "no different",
        ["with abstain='answer'", "typical of a fit that has collapsed"],
    ),
    "labelling functions, silence as an answer": ("no different", []),
    "five of ten workers copy one": (
        "better",
        ["5 workers seem to copy each other, or a common source: (0, 6, 7, 8, 9)"],
    ),
    "a graph with smooth errors": (
        "no different",
        ["no clear difference between MarkovField and majority", "the same error on neighbouring items"],
    ),
    "a shuffled graph": ("better", []),
    "one answer per item": ("no different", ["Each item has only one answer: nothing checks them"]),
    "one worker": ("no different", ["All answers come from one worker: nothing checks them"]),
    "labels in three spellings": ("better", ["differ only in case, spaces or Unicode form"]),
}


def test_all_kinds_of_findings_are_listed():
    assert advice.list_kinds() == advice.KINDS.read_text()


SLOW = ["5 million answers by 3,000 workers", "a graph with smooth errors"]


def test_all_situations_are_tried():
    assert list(EXPECTED) == list(advice.SITUATIONS)


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("name", rest_robust(sorted(EXPECTED, key=SLOW.count), len(EXPECTED) - len(SLOW)))
def test_what_is_said_is_true(name):
    verdict, sentences = EXPECTED[name]
    said = advice.listen(advice.SITUATIONS[name])
    comparison = said.fused.comparison_
    assert comparison.verdict == verdict
    assert len(said.sentences) == len(sentences)
    for sentence, expected in zip(said.sentences, sentences, strict=True):
        assert expected in sentence
    if verdict == "better":
        assert said.accuracy > said.vote
    if "noise" in name:
        assert said.fused.expected_accuracy_ < 1.15 / len(said.fused.classes_)
    elif comparison.tested and not comparison.collapsed:
        assert comparison.expected_accuracy == pytest.approx(said.accuracy, abs=0.03)
    # The page shows what is said now.
    assert f"| {name} | {said.accuracy:.3f} | {said.vote:.3f} | {advice.describe(said)} |" in TABLE.read_text()
