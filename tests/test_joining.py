"""Answers that come later, joined with those that are there: as reading both tables together."""

from __future__ import annotations

import warnings
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.answers.answers import Answers
from consilience.answers.joining import join_responses, read_further
from consilience.answers.tables import open_frame
from consilience.errors import DataWarning, InputError
from effort import examples

FIELDS = ("offsets", "worker", "label", "weight", "workers", "labels", "classes")


def read(rows, **keywords):
    """Read rows of (key, worker, label[, weight]); keys that are pairs are positions of sequences."""
    columns = defaultdict(list)
    for key, worker, label, *weight in rows:
        if isinstance(key, tuple):
            columns["sequence"].append(key[0])
            columns["position"].append(key[1])
        else:
            columns["item"].append(key)
        columns["worker"].append(worker)
        columns["label"].append(label)
        if weight:
            columns["weight"].append(weight[0])
    named = {"weight": "weight"} if "weight" in columns else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Answers.from_frame(dict(columns), **named, **keywords)


def join_slowly(old, new):
    """Return the rows of both: an answer given again stays, another one takes the place of the old one."""

    def collect(rows):
        answers = defaultdict(list)
        for key, worker, *said in rows:
            answers[key, worker].append(tuple(said))
        return answers

    before, after = collect(old), collect(new)
    same = {pair for pair in after if sorted(before.get(pair, [])) == sorted(after[pair])}
    kept = [row for row in old if (row[0], row[1]) not in after or (row[0], row[1]) in same]
    return kept + [row for row in new if (row[0], row[1]) not in same]


def assert_same(joined, expected):
    for name in FIELDS:
        mine, right = getattr(joined, name), getattr(expected, name)
        assert (mine is None) == (right is None), name
        if mine is not None:
            assert mine.dtype == right.dtype, (name, mine.dtype, right.dtype)
            assert mine.tolist() == right.tolist(), name
    assert joined.items.tolist() == expected.items.tolist()
    assert joined.background == expected.background


def rows_of(draw, weighted, in_sequences):
    n = draw(st.integers(1, 12))
    rows, seen = [], set()
    for _ in range(n):
        key = draw(st.integers(0, 5))
        key = (f"s{key // 3}", key % 3) if in_sequences else f"i{key}"
        worker = f"w{draw(st.integers(0, 4))}"
        if (key, worker) in seen:
            continue
        seen.add((key, worker))
        labels = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=2 if weighted else 1, unique=True))
        rows += [(key, worker, label, *([0.5] if weighted else [])) for label in labels]
    return rows


@st.composite
def two_tables(draw):
    weighted, in_sequences = draw(st.booleans()), draw(st.booleans())
    return rows_of(draw, weighted, in_sequences), rows_of(draw, weighted, in_sequences)


@given(two_tables())
@examples(80)
def test_joining_is_reading_both_tables_together(tables):
    old, new = tables
    together = join_slowly(old, new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        joined = join_responses(read(old), read(new), "last")
    # An item stays, also if none of its answers is left; here each has a new one.
    first_seen = list(dict.fromkeys(row[0] for row in old + new))
    assert_same(joined.responses, read(together, items=first_seen))
    before = read(old).items.tolist()
    assert joined.responses.items[joined.item].tolist() == before
    assert joined.responses.n_items - len(before) == len({row[0] for row in new} - set(before))
    n_repeated = len({row[:2] for row in new if row[:2] in {row[:2] for row in old}}) - joined.n_corrected
    assert joined.n_repeated == n_repeated
    assert joined.n_new.sum() == len({row[:2] for row in new}) - n_repeated


def further(table, old, duplicates="last"):
    return read_further(open_frame(table), old, duplicates)


def test_a_row_without_label_takes_an_answer_back():
    old = read([(1, "a", "x"), (1, "b", "y"), (2, "a", "x")])
    table = {"item": [1, 2, 3], "worker": ["b", "a", "a"], "label": [None, "y", "x"]}
    new, taken_back = further(table, old)
    joined = join_responses(old, new, "last", taken_back)
    assert_same(joined.responses, read([(1, "a", "x"), (2, "a", "y"), (3, "a", "x")]))
    assert (joined.n_retracted, joined.n_corrected, joined.n_new.sum(), joined.n_repeated) == (1, 1, 2, 0)
    with pytest.raises(InputError, match=r"1 row of .* would take back an answer .* row 0"):
        further(table, old, "error")


@pytest.mark.parametrize("label", [["x", None, None], [None, None, None]])
def test_questions_without_an_answer_are_left_out(label):
    old = read([(1, "a", "x"), (1, "b", "y"), (2, "a", "x")])
    with pytest.warns(DataWarning, match=f"Left out, since they are not answered yet: {label.count(None)} rows"):
        new, taken_back = further({"item": [2, 2, 3], "worker": ["b", "c", "a"], "label": label}, old, "error")
    assert not len(taken_back)
    assert new.n_responses == 3 - label.count(None)
    joined = join_responses(old, new)
    assert joined.responses.items.tolist() == [1, 2]
    assert joined.responses.workers.tolist() == ["a", "b"]


def test_labels_are_spelled_as_those_that_are_there():
    old = read([(1, "a", "Cat"), (1, "b", "dog")], normalise=True)
    new, _ = further({"item": [1, 2], "worker": ["c", "a"], "label": [" CAT", "Dog"]}, old)
    joined = join_responses(old, new).responses
    assert joined.labels.tolist() == ["cat", "dog"]
    assert joined.n_responses == 4


def test_named_classes_stay_and_a_new_label_is_told():
    old = read([(1, "a", "x"), (1, "b", "y")], classes=["y", "x", "z"])
    new = read([(2, "a", "unsure")])
    with pytest.warns(DataWarning, match="no class"):
        joined = join_responses(old, new).responses
    assert joined.classes.tolist() == ["y", "x", "z"]
    assert joined.labels.tolist() == ["unsure", "x", "y"]


def test_silence_stays_an_answer():
    rows = [(1, "a", "x"), (2, "b", "y")]
    old = read(rows, abstain="answer", background="none")
    more = [(3, "a", "w"), (1, "b", "x")]
    joined = join_responses(old, read(more)).responses
    assert_same(joined, read(rows + more, abstain="answer", background="none"))
    with pytest.raises(InputError, match="silence"):
        join_responses(read(rows), read(more, abstain="answer", background="none"))
