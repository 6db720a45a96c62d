"""What a person should label next, and which labels are left open."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import consilience as cs
from command_line import run
from consilience.answers.random_choices import draw_numbers, hash_items

CROWD = cs.simulate.independent(120, n_workers=8, n_classes=3, answers_per_item=4, seed=3)
PLAIN = CROWD.responses
FITTED = cs.DawidSkene().fit(PLAIN)


def slow_choice(model: cs.DawidSkene, n: int, known: set) -> list[tuple]:
    """List items one by one, as the docstring says: every fifth at random, from the third on; others by entropy."""
    draws = draw_numbers(model.seed, hash_items(model.result_.answers.keys)).tolist()
    items = model.result_.answers.items.tolist()
    free = [row for row, item in enumerate(items) if item not in known]
    n = min(n, len(free))
    places = [place for place in range(n) if place % 5 == 2]
    drawn = sorted(free, key=lambda row: draws[row])[: len(places)]

    def entropy(row: int) -> float:
        return round(-sum(p * math.log(p) for p in model.posterior_[row].tolist() if p > 0), 9)

    others = sorted((row for row in free if row not in drawn), key=lambda row: (-entropy(row), draws[row]))
    return [(items[drawn.pop(0)], True) if place in places else (items[others.pop(0)], False) for place in range(n)]


@pytest.mark.parametrize("n", [0, 1, 3, 10, 50, 120, 1000])
def test_items_are_those_of_a_slow_twin(n):
    gold = dict.fromkeys(PLAIN.items[:7].tolist(), PLAIN.classes[0])
    for known in ({}, gold):
        model = cs.DawidSkene(seed=5).fit(PLAIN, gold=known or None)
        listed = model.next_items(n).to_pydict()
        assert list(listed) == ["item", "random", "fused_label", "confidence", "entropy"]
        found = list(zip(listed["item"], listed["random"], strict=True))
        assert found == slow_choice(model, n, set(known))
        assert len(set(listed["item"])) == len(listed["item"]) == min(n, 120 - len(known))
        assert not set(listed["item"]) & set(known)


def test_two_of_ten_are_random_and_drawn_evenly():
    assert sum(FITTED.next_items(50)["random"].to_pylist()) == 10
    assert np.flatnonzero(FITTED.next_items(10)["random"]).tolist() == [2, 7]
    counts = np.zeros(120)
    for seed in range(400):
        model = FITTED.set_params(seed=seed)
        listed = model.next_items(10)
        rows = np.flatnonzero(listed["random"])
        counts[[PLAIN.items.tolist().index(item) for item in listed["item"].take(rows).to_pylist()]] += 1
    FITTED.set_params(seed=0)
    # 800 draws from 120 items; a chi-squared statistic with 119 degrees of freedom.
    assert 70 < ((counts - 800 / 120) ** 2 / (800 / 120)).sum() < 180


def test_neither_the_order_of_rows_nor_the_type_of_ids_matters():
    table = pd.DataFrame(
        {"item": PLAIN.item_of_answer(), "worker": PLAIN.worker, "label": PLAIN.label},
    )
    expected = cs.MajorityVote().fit(table).next_items(30)
    shuffled = cs.MajorityVote().fit(table.sample(frac=1, random_state=1)).next_items(30)
    assert expected["item"].tolist() == shuffled["item"].tolist()
    as_text = cs.MajorityVote().fit(pl.DataFrame(table.astype({"item": str}))).next_items(30)
    assert as_text["item"].to_list() == expected["item"].astype(str).tolist()
    assert as_text["random"].to_list() == expected["random"].tolist()


def test_labels_of_a_list_can_be_given_back():
    listed = FITTED.next_items(20).to_pydict()
    truth = dict(zip(PLAIN.items.tolist(), CROWD.truth.tolist(), strict=True))
    labels = [truth[item] for item in listed["item"]]
    known = cs.DawidSkene().fit(PLAIN, gold={**listed, "label": labels})
    assert known.result_.calibrated.calibration.n_gold == 4  # those that were drawn at random
    assert not set(known.next_items(120)["item"].to_pylist()) & set(listed["item"])
    with pytest.raises(cs.errors.InputError, match="column"):  # the labels of the fit are not taken for known ones
        cs.DawidSkene().fit(PLAIN, gold=FITTED.next_items(20))


def test_independent_items_that_nobody_answered_come_last():
    table = {"item": [1, 1, 2, 2, 3, 3], "worker": ["a", "b"] * 3, "label": list("xyxxyx")}
    answers = cs.Answers.from_frame(table, items=[9, 8, 7, 1, 2, 3])
    listed = cs.DawidSkene().fit(answers).next_items(6).to_pydict()
    assert set(listed["item"][:3]) == {1, 2, 3}
    assert set(listed["item"][3:]) == {7, 8, 9}
    assert listed["random"] == [False, False, True, False, False, False]  # none of them teaches calibration


def test_in_a_sequence_neighbours_of_a_less_certain_position_come_later():
    crowd = cs.simulate.sequences(6, length=15, n_workers=3, n_classes=3, seed=2)
    model = cs.HiddenMarkov(coupling=0.5).fit(crowd.responses)
    listed = model.next_items(20).to_pydict()
    assert list(listed)[:2] == ["sequence", "position"]
    places = {
        pair
        for *pair, drawn in zip(listed["sequence"], listed["position"], listed["random"], strict=True)
        for pair in [tuple(pair)]
        if not drawn
    }
    assert not [(s, p) for s, p in places if (s, p + 1) in places]
    everything = model.next_items(1000).to_pydict()
    pairs = list(zip(everything["sequence"], everything["position"], strict=True))
    assert sorted(pairs) == sorted(crowd.responses.items.tolist())
    gold = dict.fromkeys(pairs[:4], crowd.responses.classes[0])
    again = cs.HiddenMarkov(coupling=0.5).fit(crowd.responses, gold=gold).next_items(1000).to_pydict()
    assert not set(zip(again["sequence"], again["position"], strict=True)) & set(gold)


def test_odd_crowds():
    one = cs.DawidSkene().fit({"item": [1, 2], "worker": ["a", "a"], "label": ["x", "x"]})
    assert one.next_items().to_pydict()["entropy"] == [0.0, 0.0]
    single = cs.MajorityVote().fit({"item": [1], "worker": ["a"], "label": ["x"]})
    assert single.next_items(3).num_rows == 1
    known = cs.MajorityVote().fit({"item": [1, 2], "worker": ["a", "a"], "label": ["x", "y"]}, gold={1: "x", 2: "y"})
    assert known.next_items().num_rows == 0
    for n in (-1, 2.0, True, "3", None):
        with pytest.raises(cs.errors.ParameterError, match="'n' parameter of next_items must be a whole number >= 0"):
            FITTED.next_items(n)
    with pytest.raises(cs.errors.NotFittedError):
        cs.DawidSkene().next_items()


# ----------------------------------------------------------------------------------------------------------- undecided


def test_labels_below_a_confidence_are_left_open():
    before = FITTED.labels_.copy()
    plain, table = FITTED.to_frame(), FITTED.to_frame(undecided=0.7)
    assert table.column_names == plain.column_names
    pairs = zip(plain["label"].to_pylist(), plain["confidence"].to_pylist(), strict=True)
    assert table["label"].to_pylist() == [label if confidence >= 0.7 else None for label, confidence in pairs]
    assert table.drop_columns(["label"]).equals(plain.drop_columns(["label"]))
    np.testing.assert_array_equal(FITTED.labels_, before)
    found = FITTED.result_.undecided(0.7)
    kept = [confidence for confidence in plain["confidence"].to_pylist() if confidence >= 0.7]
    assert (found.n_items, found.n_kept, found.n_open) == (120, len(kept), 120 - len(kept))
    assert found.share_kept == len(kept) / 120
    assert found.expected_errors == pytest.approx(sum(1 - confidence for confidence in kept))
    assert found.expected_error_rate == pytest.approx(found.expected_errors / len(kept))
    assert f"{len(kept)} of 120 labels" in found.describe()


def test_the_ends_of_the_scale():
    assert FITTED.to_frame(undecided=0).equals(FITTED.to_frame())
    assert FITTED.result_.undecided(0).expected_error_rate == pytest.approx(1 - FITTED.result_.expected_accuracy[0])
    table = {"item": [1, 1, 1, 2, 2], "worker": [0, 1, 2, 0, 1], "label": list("xxyyy")}
    vote = cs.MajorityVote().fit(table)
    assert vote.to_frame(undecided=1)["label"].to_pylist() == [None, "y"]
    nothing = cs.MajorityVote().fit({"item": [1, 1], "worker": [0, 1], "label": ["x", "y"]})
    assert nothing.to_frame(undecided=0.9)["label"].to_pylist() == [None]
    assert nothing.to_frame(undecided=0.9)["label"].type == pa.string()
    assert math.isnan(nothing.result_.undecided(0.9).expected_error_rate)
    for wrong in (math.nan, -0.1, 1.1, "0.7", True, math.inf):
        with pytest.raises(cs.errors.ParameterError, match="'undecided' parameter of to_frame must be a number from 0"):
            FITTED.to_frame(undecided=wrong)
        with pytest.raises(cs.errors.ParameterError, match="'confidence' parameter of undecided"):
            FITTED.result_.undecided(wrong)


# -------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = {"item": PLAIN.item_of_answer(), "worker": PLAIN.worker, "label": PLAIN.labels[PLAIN.label].astype(str)}
    pa_csv.write_csv(pa.table(answers), "answers.csv")
    return tmp_path


def test_the_loop_on_the_command_line(folder):
    assert run("fuse", "answers.csv", "--save", "crowd.model", "-q").exit_code == 0
    done = run("next", "crowd.model", "-n", "10", "-o", "items.csv", "--json")
    listed = json.loads(done.stdout)["items"]
    table = pa_csv.read_csv("items.csv").to_pandas()
    assert list(table.columns) == ["item", "label", "random", "fused_label", "confidence", "entropy"]
    assert table["label"].isna().all()
    assert table["item"].tolist() == [int(row["item"]) for row in listed]
    assert cs.load("crowd.model").next_items(10)["item"].to_pylist() == [row["item"] for row in listed]
    refused = run("fuse", "answers.csv", "--gold", "items.csv")
    assert (refused.exit_code, "holds no label" in refused.stderr) == (2, True)
    table["label"] = CROWD.truth[table["item"]]
    table.to_csv("items.csv", index=False)
    done = run("fuse", "answers.csv", "--gold", "items.csv", "--save", "crowd.model", "--json")
    assert json.loads(done.stdout)["gold"] == 10
    assert "2 known labels" in json.loads(done.stdout)["calibration"]
    again = json.loads(run("next", "crowd.model", "-n", "200", "--json").stdout)["items"]
    assert len(again) == 110
    assert not {row["item"] for row in again} & set(table["item"].astype(str))


def test_undecided_on_the_command_line(folder):
    done = run("fuse", "answers.csv", "-o", "labels.csv", "--undecided", "0.7", "--save", "m", "--json")
    summary = json.loads(done.stdout)["undecided"]
    model = cs.load("m")
    found = model.result_.undecided(0.7)
    assert summary["n_kept"] == found.n_kept == 120 - Path("labels.csv").read_text().count(",,")
