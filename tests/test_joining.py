"""Answers that come later, joined with those that are there: as reading both tables together."""

from __future__ import annotations

import warnings
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.answers.answers import Answers
from consilience.answers.joining import NOTHING, join_responses, read_further
from consilience.answers.tables import open_frame
from consilience.errors import DataWarning, InputError, ParameterError
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
    assert joined.n_new_items == len({row[0] for row in new} - set(before))
    n_repeated = len({row[:2] for row in new if row[:2] in {row[:2] for row in old}}) - joined.n_corrected
    assert joined.n_repeated == n_repeated
    assert joined.n_new.sum() == len({row[:2] for row in new}) - n_repeated


@given(two_tables())
@examples(40)
def test_other_answers_are_an_error_and_repeated_ones_are_not(tables):
    old, new = tables
    said = {}
    for row in old:
        said.setdefault(row[:2], set()).add(row[2:])
    repeats = {}
    for row in new:
        repeats.setdefault(row[:2], set()).add(row[2:])
    clash = [pair for pair in repeats if pair in said and said[pair] != repeats[pair]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        if clash:
            with pytest.raises(InputError, match="before, with"):
                join_responses(read(old), read(new))
        else:
            assert_same(join_responses(read(old), read(new)).responses, read(join_slowly(old, new)))


def test_nothing_new_changes_nothing():
    crowd = cs.simulate.independent(100, n_workers=5, n_classes=3, seed=1)
    joined = join_responses(crowd.responses, crowd.responses)
    assert_same(joined.responses, crowd.responses)
    assert (joined.n_changed, joined.n_repeated) == (0, 500)


def further(table, old, duplicates="last"):
    return read_further(open_frame(table), old, duplicates)


def test_a_row_without_label_takes_an_answer_back():
    old = read([(1, "a", "x"), (1, "b", "y"), (2, "a", "x")])
    table = {"item": [1, 2, 3], "worker": ["b", "a", "a"], "label": [None, "y", "x"]}
    new, taken_back = further(table, old)
    joined = join_responses(old, new, "last", taken_back)
    assert_same(joined.responses, read([(1, "a", "x"), (2, "a", "y"), (3, "a", "x")]))
    assert (joined.n_retracted, joined.n_corrected, joined.n_added, joined.n_repeated) == (1, 1, 1, 0)
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


def test_the_last_row_about_a_pair_counts():
    old = read([(1, "a", "x"), (1, "b", "y")])
    table = {"item": [1, 1, 1, 1], "worker": ["a", "a", "b", "b"], "label": [None, "y", "x", None]}
    joined = join_responses(old, *further(table, old)[:1], "last", further(table, old)[1])
    assert_same(joined.responses, read([(1, "a", "y")]))


def test_all_rows_may_take_back():
    old = read([(1, "a", "x"), (1, "b", "y"), (2, "b", "x")])
    new, taken_back = further({"item": [1], "worker": ["b"], "label": [None]}, old)
    joined = join_responses(old, new, "last", taken_back)
    assert_same(joined.responses, read([(1, "a", "x"), (2, "b", "x")]))


def test_taking_back_what_is_not_there_is_told():
    old = read([(1, "a", "x"), (2, "b", "x")])
    with pytest.warns(DataWarning, match="no answers that 2 rows .* would take back"):
        _, taken_back = further({"item": [1, 9], "worker": ["b", "a"], "label": [None, None]}, old)
    assert len(taken_back) == 0


def test_an_item_stays_when_all_answers_to_it_are_gone():
    old = read([(1, "a", "x"), (2, "b", "x")])
    new, taken_back = further({"item": [1], "worker": ["a"], "label": [None]}, old)
    joined = join_responses(old, new, "last", taken_back).responses
    assert joined.items.tolist() == [1, 2]
    assert joined.workers.tolist() == ["b"]


def test_columns_are_those_of_the_answers_that_are_there():
    old = Answers.from_frame(
        {"hit": [1, 1], "who": ["a", "b"], "says": ["x", "y"], "item": [0, 0]}, item="hit", worker="who", label="says"
    )
    new, _ = further({"item": [0, 0], "who": ["a", "c"], "says": ["x", "y"], "hit": [2, 1]}, old)
    assert new.items.tolist() == [2, 1]


def test_numbers_become_text_beside_text():
    old = read([(1, 1, "x"), (10, 2, "y")])
    new = read([("1", "3", "x"), ("new", "2", "x")])
    joined = join_responses(old, new).responses
    assert joined.items.tolist() == ["1", "10", "new"]
    assert joined.workers.tolist() == [1, 2, 3] or joined.workers.tolist() == ["1", "2", "3"]


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


def test_items_and_sequences_do_not_mix():
    with pytest.raises(InputError, match="sequences"):
        join_responses(read([(1, "a", "x")]), read([(("s", 1), "a", "x")]))


def test_matrices_keep_the_order_of_their_columns():
    old = Answers.from_matrix([["x", "y"], ["y", "x"]], workers=["z", "a"], items=["i", "j"])
    new = read([("j", "m", "x"), ("k", "b", "y")])
    joined = join_responses(old, new).responses
    assert joined.workers.tolist() == ["z", "a", "b", "m"]


def test_no_answer_may_be_left_out_silently():
    old = read([(1, "a", "x")])
    new, taken_back = further({"item": [1], "worker": ["a"], "label": [None]}, old)
    with pytest.raises(InputError, match="No answer would be left"):
        join_responses(old, new, "last", taken_back)


def test_policies():
    old = read([(1, "a", "x")])
    with pytest.raises(ParameterError, match="'error' or 'last'"):
        join_responses(old, old, "mean")
    assert np.array_equal(join_responses(old, old, "last", NOTHING).responses.worker, old.worker)
