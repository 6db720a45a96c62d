"""What is said in situations whose truth is known: right, and as docs/evidence.md shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import advice
from effort import rest_robust

TABLE = Path(__file__).parents[1] / "docs" / "measured" / "advice.md"
NO_SIGNAL = "These answers show no signal: the workers agree no more than by chance"

# The verdict, the kinds of findings beside labels of low confidence, and what is warned of.
EXPECTED: dict[str, tuple[str, set[str], list[str]]] = {
    "noise, 2 classes": ("no different", {"noise"}, [NO_SIGNAL]),
    "noise, 3 classes": ("no different", {"noise"}, [NO_SIGNAL]),
    "a pilot: 120 items, 5 answers each": ("better", {"chance"}, []),
    "ten items, three workers": ("no different", {"untested"}, ["There are too few answers to test"]),
    "5 million answers by 3,000 workers": ("better", set(), []),
    "30 classes": ("no different", {"no gain"}, ["no clear difference"]),
    "one class in twenty items": ("better", set(), []),
    "everyone says the same": ("no different", set(), []),
    "a fifth of the workers click at random": ("better", {"chance"}, []),
    "three of nine workers say always the same": ("better", {"chance"}, []),
    "one of eight workers swaps yes and no": ("better", {"workers"}, []),
    "one of six workers tires": ("better", {"drift"}, []),
    "two workers": ("better", set(), []),
    "all err together on a tenth of the items": ("better", set(), []),
    "the same, with 30 known labels": ("better", set(), []),
    "the same, with 120 known labels": ("better", set(), []),
    "twenty judges, who all err together on some items": ("no different", set(), []),
    "labelling functions, silence ignored": (
        "no different",
        {"silence", "collapse", "unanswered"},
        ["with abstain='answer'", "typical of a fit that has collapsed"],
    ),
    "labelling functions, silence as an answer": ("no different", set(), []),
    "classifiers that give probabilities": ("no different", {"no gain"}, []),
    "sets of tags in one cell": ("no different", {"sets", "no gain"}, ["sets of labels", "no clear difference"]),
    "five of ten workers copy one": (
        "better",
        {"copies"},
        ["5 workers seem to copy each other, or a common source: (0, 6, 7, 8, 9)"],
    ),
    "sequences": ("better", {"workers"}, []),
    "a graph that tells": ("better", set(), []),
    "a graph with smooth errors": (
        "no different",
        {"no gain", "graph"},
        ["no clear difference between MarkovField and majority", "the same error on neighbouring items"],
    ),
    "a shuffled graph": ("better", set(), []),
    "features that tell": ("better", set(), []),
    "columns of items and workers swapped": ("no different", {"noise"}, [NO_SIGNAL]),
    "one answer per item": ("no different", {"unchecked"}, ["Each item has only one answer: nothing checks them"]),
    "one worker": ("no different", {"unchecked"}, ["All answers come from one worker: nothing checks them"]),
    "labels in three spellings": ("better", {"workers"}, ["differ only in case, spaces or Unicode form"]),
}
# Findings that mean that no number about the labels is printed.
FAILED = {"noise", "collapse", "silence", "sets", "unchecked", "untested"}


def test_all_kinds_of_findings_are_listed():
    assert advice.list_kinds() == advice.KINDS.read_text()


SLOW = ["5 million answers by 3,000 workers", "a graph with smooth errors"]


def test_all_situations_are_tried():
    assert list(EXPECTED) == list(advice.SITUATIONS)
    assert len(EXPECTED) >= 25


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("name", rest_robust(sorted(EXPECTED, key=SLOW.count), len(EXPECTED) - len(SLOW)))
def test_what_is_said_is_true(name):
    verdict, kinds, sentences = EXPECTED[name]
    said = advice.listen(advice.SITUATIONS[name])
    comparison = said.fused.comparison_
    assert comparison.verdict == verdict
    assert {finding.kind for finding in said.fused.findings_} - {"doubtful"} == kinds
    assert len(said.sentences) == len(sentences)
    for sentence, expected in zip(said.sentences, sentences, strict=True):
        assert expected in sentence
    if verdict == "better":
        # A known difference of less than one label in a hundred is none.
        assert said.accuracy > said.vote - 0.01
    if kinds & FAILED:
        assert comparison.withheld
        assert not comparison.known
        assert comparison.describe_expected() == ""
    elif comparison.known:
        low, high = (float(end.strip("%")) / 100 for end in advice.describe_accuracy(said).split(" to "))
        assert low <= round(said.accuracy, 3) <= high
    # The page shows what is said now.
    assert advice.make_row(name, said) in TABLE.read_text()


@pytest.mark.parametrize(
    "name", ["a pilot: 120 items, 5 answers each", "five of ten workers copy one", "sequences", "a graph that tells"]
)
def test_expected_accuracy_holds_where_workers_err_independently(name):
    said = advice.listen(advice.SITUATIONS[name])
    assert said.fused.comparison_.expected_accuracy == pytest.approx(said.accuracy, abs=0.04)
