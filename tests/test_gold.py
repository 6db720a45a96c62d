"""Gold labels in every form a caller may have them, matched to the items."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from command_line import run
from consilience import Answers, DawidSkene
from consilience.answers.gold import match_gold
from consilience.answers.tables import open_frame
from consilience.errors import DataWarning, InputError
from effort import examples
from strategies import crowds

NAN = float("nan")
ANSWERS = {"item": ["a", "a", "b", "c"], "worker": ["x", "y", "x", "y"], "label": ["no", "yes", "no", "no"]}
SEQUENCES = {"sequence": ["s", "s", "t", "s"], "position": [9, 2, 0, 2], "worker": [1, 1, 1, 2], "label": [*"BOBI"]}


def match(gold, answers=ANSWERS, **options):
    r = Answers.from_frame(answers, **options)
    return match_gold(gold, r, r.classes).codes.tolist()


GOLD = {
    "dict": {"c": "yes", "a": "no"},
    "series": pd.Series({"c": "yes", "a": "no"}),
    "named series": pd.Series(["yes", "no"], index=pd.Index(["c", "a"], name="item"), name="label"),
    "categorical series": pd.Series(pd.Categorical(["yes", "no"]), index=pd.CategoricalIndex(["c", "a"])),
    "object series": pd.Series(["yes", "no"], index=["c", "a"], dtype=object),
    "columns": {"item": ["c", "a"], "label": ["yes", "no"]},
    "columns of series": {"item": pd.Series(["c", "a"]), "label": pl.Series(["yes", "no"])},
    "pandas": pd.DataFrame({"task": ["c", "a"], "label": ["yes", "no"], "name": ["n", "m"]}),
    "polars": pl.DataFrame({"item": ["c", "a"], "Response": ["yes", "no"]}),
    "pyarrow": pa.table({"id": ["c", "a"], "label": ["yes", "no"]}),
    "table": open_frame({"item": ["c", "a"], "label": ["yes", "no"]}, "gold.csv"),
    "repeated": pd.DataFrame({"item": ["c", "a", "c"], "label": ["yes", "no", "yes"]}),
    "with unknowns": {"c": "yes", "b": None, "a": "no"},
    "with nan": {"c": "yes", "b": NAN, "a": "no"},
    "series with nan": pd.Series({"c": "yes", "b": NAN, "a": "no"}),
    "frame with nulls": pl.DataFrame({"item": ["c", "b", "a"], "label": ["yes", None, "no"]}),
}


@pytest.mark.parametrize("gold", GOLD.values(), ids=GOLD)
def test_gold_in_every_form(gold):
    assert match(gold) == [0, -1, 1]


@pytest.mark.parametrize(
    "gold", [{"a": "1"}, {"a": 1}, {"a": 1.0}, {"a": True}, {"a": 1, "b": None}, {"a": 1, "b": NAN}]
)
def test_numbers_and_their_text_are_the_same_labels(gold):
    assert match(gold, {**ANSWERS, "label": [0, 1, 0, 0]}) == [1, -1, -1]


@pytest.mark.parametrize("labels", [["True", "FALSE"], [True, False], pd.Categorical(["true", "false"])])
def test_truth_values_and_their_text_are_the_same_labels(labels):
    said = {"item": [1, 2, 3], "worker": [1, 1, 1], "label": [True, False, True]}
    assert match({"item": [1, 2], "label": labels}, said) == [1, 0, -1]
    said["label"] = ["true", "false", "maybe"]
    assert match({"item": [1, 2], "label": labels}, said) == [2, 0, -1]
    said["label"] = [True, False, True]
    assert match({1: " Yes", 2: "no", 3: "TRUE"}, said) == [1, 0, 1]  # as a person writes them
    assert "1 label not among the classes False, True: 'maybe'" in error({1: "True", 2: "maybe"}, said)


def test_rounds_of_known_labels_are_taken_together(tmp_path):
    (tmp_path / "two.csv").write_text("item,label,random\na,no,false\nb,yes,true\n")
    rounds = [{"item": ["a", "c"], "label": ["no", "no"], "random": [True, False]}, tmp_path / "two.csv", {"b": "yes"}]
    r = Answers.from_frame(ANSWERS)
    for gold in (rounds, tuple(rounds)):
        model = DawidSkene().fit(r, gold=gold)
        assert model.labels_.tolist() == ["no", "yes", "no"]
        assert model.result_.given.gold.judging.tolist() == [True, True, False]
    together = {"item": [*"abc"], "label": ["no", "yes", "no"], "random": [True, True, False]}
    assert (DawidSkene().fit(r, gold=together).posterior_ == model.posterior_).all()
    assert cs.MajorityVote().fit(r, gold=rounds).labels_.tolist() == ["no", "yes", "no"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cs.fuse(ANSWERS, gold=rounds).labels_.tolist() == ["no", "yes", "no"]


def test_rounds_that_contradict_each_other():
    assert "gold gives 1 item more than one label, such as 'a': 'no' and 'yes'" in error([{"a": "no"}, {"a": "yes"}])
    assert "such as 'a': 'yes' and 'no'" in error(pd.DataFrame({"item": ["a", "a"], "label": ["yes", "no"]}))
    assert "gold must be a dict" in error([("a", "no")])
    assert "gold must be a dict" in error([])


def error(gold, answers=ANSWERS, **options):
    with pytest.raises(InputError) as caught:
        match(gold, answers, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ({"a": "maybe", "b": "no"}, "gold has 1 label not among the classes 'no', 'yes': 'maybe'"),
        ({"a": "YES"}, "'YES'"),
        (
            {"z": "yes", "y": "no"},
            "None of the 2 items of gold occurs in the answers (gold has 'z', 'y'; the answers have",
        ),
        ({"A": "yes"}, "the answers have 'a', 'b', 'c'"),
        ({}, "gold holds no label"),
        ({"a": ["yes"]}, "gold must hold single values, such as text, numbers or tuples. Got ['yes'] instead"),
        (
            pd.DataFrame({"item": ["a", "a"], "label": ["yes", "no"]}),
            "gold gives 1 item more than one label, such as 'a'",
        ),
        (pd.DataFrame({"item": ["a"], "lable": ["yes"]}), "gold has no column for the known label (looked for"),
        (pd.DataFrame({"item": ["a"], "lable": ["yes"]}), "Rename 'lable'?"),
        (pl.DataFrame({"label": ["yes"]}), "gold has no column for the item"),
        (pd.DataFrame({"item": ["a", None], "label": ["yes", "no"]}), "Column 'item' of gold has 1 missing value"),
        (pd.DataFrame({"item": [], "label": []}), "gold holds no label"),
        ({"item": ["a", "b"], "label": ["yes"]}, "different lengths"),
        ([("a", "yes")], "gold must be a dict such as {item: label}, a Series, or a table"),
        (7, "gold must be a dict"),
        (pl.Series(["yes"]), "gold must be a dict"),
    ],
)
def test_bad_gold(gold, expected):
    assert expected in error(gold)


def test_some_items_do_not_occur():
    with pytest.warns(DataWarning, match="2 of 3 gold items do not occur in the answers and were left out"):
        assert match({"a": "yes", "y": "no", "z": "no", "x": None}) == [1, -1, -1]
    with pytest.warns(DataWarning, match="1 of 2 gold items"):
        assert match({("s", 2): "B", ("s", 3): "B"}, SEQUENCES) == [0, -1, -1]
    with pytest.warns(DataWarning, match="1 of 2 gold items"):
        assert match({"a": "yes", None: "no"}) == [1, -1, -1]


@examples(100)
@given(crowds(), st.data())
def test_gold_equals_its_slow_twin(crowd, data):
    r = Answers.from_frame(crowd.frame, items=crowd.items)
    known = {
        item: data.draw(st.sampled_from([*crowd.labels, None]))
        for item in data.draw(st.permutations([*crowd.items, "absent"]))[: data.draw(st.integers(0, len(crowd.items)))]
    }
    labelled = {item: label for item, label in known.items() if label is not None}
    if not set(labelled) & set(crowd.items):
        with pytest.raises(InputError):
            match_gold(known, r, r.classes)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = match_gold(known, r, r.classes)
    assert len(caught) == ("absent" in labelled)
    expected = [crowd.labels.index(labelled[item]) if item in labelled else -1 for item in r.items.tolist()]
    assert found.codes.tolist() == expected
    assert found.codes.dtype == np.int32
    assert found.judging.tolist() == [code >= 0 for code in expected]


RANDOM = {"item": ["a", "b", "c"], "label": ["yes", "no", "yes"]}


@pytest.mark.parametrize(
    ("random", "judging"),
    [
        ([True, False, True], [True, False, True]),
        (["True", "false", "TRUE"], [True, False, True]),
        ([1, 0, 0], [True, False, False]),
        ([True, None, False], [True, False, False]),
        ([1.0, None, 0.0], [True, False, False]),
        (["1.0", None, "0.0"], [True, False, False]),
        (["True", "", None], [True, False, False]),
        (np.array([False, False, False]), [False, False, False]),
    ],
)
def test_only_items_drawn_at_random_judge(random, judging):
    r = Answers.from_frame(ANSWERS)
    for column in (random, pa.array(list(random))):
        found = match_gold(RANDOM | {"random": column}, r, r.classes)
        assert found.codes.tolist() == match(RANDOM)
        assert found.judging.tolist() == judging
    frame = pd.DataFrame(RANDOM | {"Random": random})
    assert match_gold(frame, r, r.classes).judging.tolist() == judging


def test_evaluate_says_how_good_labels_are_that_were_not_known():
    crowd = cs.simulate.independent(200, n_workers=5, n_classes=2, accuracy=(0.55, 0.7), seed=1)
    r, truth = crowd.responses, crowd.truth
    every = dict(zip(r.items.tolist(), np.asarray(truth).tolist(), strict=True))
    some = dict(list(every.items())[:80])
    fitted = cs.DawidSkene().fit(r, gold=some)
    said, right = cs.evaluate(fitted, every), fitted.labels_ == np.asarray(truth)
    assert (said.n_matched, said.n_unknown) == (200, 120)
    assert said.accuracy == pytest.approx(right.mean())
    assert said.accuracy > said.accuracy_unknown == pytest.approx(right[80:].mean())
    assert cs.evaluate(fitted, some).accuracy_unknown is None
    assert cs.evaluate(cs.DawidSkene().fit(r), every).n_unknown is None


def test_truth_values_as_labels_are_spelled_in_one_way(tmp_path, monkeypatch):
    """Never an empty cell; and a person's yes and no are known labels of them."""
    monkeypatch.chdir(tmp_path)
    said = [[n % 2 == 0, n % 2 == 0, n % 3 == 0] for n in range(30)]
    table = {"item": np.repeat(np.arange(30), 3), "worker": np.tile(["a", "b", "c"], 30), "label": np.ravel(said)}
    pq.write_table(pa.table(table), "said.parquet")
    Path("known.csv").write_text("item,label\n" + "".join(f"{n},{'yes' if n % 2 == 0 else 'no'}\n" for n in range(20)))
    for command in ("check said.parquet", "fuse said.parquet -o labels.csv --save m.model", "explain m.model 1"):
        shown = run(*command.split()).stdout
        assert "False" in shown
        assert "no, yes" not in shown
        assert " yes" not in shown
    assert run("fuse", "said.parquet", "--gold", "known.csv").exit_code == 0
    estimated = json.loads(run("estimate", "m.model", "known.csv", "--of", "true", "--json").stdout)
    assert "true" in json.dumps(estimated).lower()
    assert json.loads(run("evaluate", "labels.csv", "known.csv", "--json").stdout)["accuracy"] > 0.9
