"""What a person should label next, and which labels are left open."""

from __future__ import annotations

import datetime
import enum
import json
import math
import re
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
from consilience.answers.tables import build_frame
from consilience.formats.writing import write_table
from consilience.planning.next_items import (
    add_label,
    find_entropy,
    find_peaks,
    hash_keys,
    list_next_items,
    pick_items,
)

CROWD = cs.simulate.independent(120, n_workers=8, n_classes=3, answers_per_item=4, seed=3)
PLAIN = CROWD.responses
FITTED = cs.DawidSkene().fit(PLAIN)


def slow_choice(model: cs.DawidSkene, n: int, known: set) -> list[tuple]:
    """List items one by one, as the docstring says: every fifth at random, from the third on; others by entropy."""
    draws = draw_numbers(model.seed, hash_items(model.responses_.keys)).tolist()
    items = model.responses_.items.tolist()
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
    assert known.result_.calibrated.found.n_gold == 4  # those that were drawn at random
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
    graph = cs.Graph.from_edges([1, 9], [9, 8], items=answers.items)
    field = cs.MarkovField(coupling=0.3).fit(answers, graph=graph)
    entropy = field.next_items(6)["entropy"].to_numpy()[[0, 1, 3, 4, 5]]
    assert (np.diff(entropy) <= 0).all()
    silent = cs.Answers.from_frame(table, items=[9, 8, 7, 1, 2, 3], abstain="answer", background="x")
    assert len(cs.DawidSkene().fit(silent).next_items(6)) == 6


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


def test_peaks_against_a_slow_twin():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 12))
        entropy, sequence = rng.integers(0, 3, n) / 3, np.sort(rng.integers(0, 3, n))
        draws = rng.permutation(n).astype(np.uint64)

        def beats(a: int, b: int, entropy=entropy, draws=draws) -> bool:
            return (entropy[a], -int(draws[a])) > (entropy[b], -int(draws[b]))

        expected = [
            all(beats(i, j) for j in (i - 1, i + 1) if 0 <= j < n and sequence[i] == sequence[j]) for i in range(n)
        ]
        assert find_peaks(entropy, draws, sequence).tolist() == expected


def test_odd_crowds():
    one = cs.DawidSkene().fit({"item": [1, 2], "worker": ["a", "a"], "label": ["x", "x"]})
    assert one.next_items().to_pydict()["entropy"] == [0.0, 0.0]
    single = cs.MajorityVote().fit({"item": [1], "worker": ["a"], "label": ["x"]})
    assert single.next_items(3).num_rows == 1
    known = cs.MajorityVote().fit({"item": [1, 2], "worker": ["a", "a"], "label": ["x", "y"]}, gold={1: "x", 2: "y"})
    assert known.next_items().num_rows == 0
    assert find_entropy(np.eye(3)).tolist() == [0.0] * 3
    _, drawn = pick_items(*np.zeros((2, 4)), np.ones(4, bool), np.zeros(4, bool), np.zeros(4, bool), 4)
    assert not drawn.any()
    for n in (-1, 2.0, True, "3", None):
        with pytest.raises(cs.errors.ParameterError, match="'n' parameter of next_items must be a whole number >= 0"):
            FITTED.next_items(n)
    with pytest.raises(cs.errors.NotFittedError):
        cs.DawidSkene().next_items()


def test_hashes_are_those_of_items():
    sequences = cs.simulate.sequences(3, length=4, n_workers=2, n_classes=2, seed=1).responses
    for answers in (PLAIN, sequences):
        np.testing.assert_array_equal(hash_keys(answers.key_columns()), hash_items(answers.keys))


# ----------------------------------------------------------------------------------------------------------- undecided


def test_labels_below_a_confidence_are_left_open():
    before = FITTED.labels_.copy()
    plain, table = FITTED.to_frame(), FITTED.to_frame(undecided=0.7)
    assert table.column_names == plain.column_names
    pairs = zip(plain["label"].to_pylist(), plain["confidence"].to_pylist(), strict=True)
    assert table["label"].to_pylist() == [label if confidence >= 0.7 else None for label, confidence in pairs]
    assert table.drop_columns(["label"]).equals(plain.drop_columns(["label"]))
    np.testing.assert_array_equal(FITTED.labels_, before)
    found = FITTED.undecided(0.7)
    kept = [confidence for confidence in plain["confidence"].to_pylist() if confidence >= 0.7]
    assert (found.n_items, found.n_kept, found.n_open) == (120, len(kept), 120 - len(kept))
    assert found.share_kept == len(kept) / 120
    assert found.expected_errors == pytest.approx(sum(1 - confidence for confidence in kept))
    assert found.expected_error_rate == pytest.approx(found.expected_errors / len(kept))
    assert f"{len(kept)} of 120 labels" in found.describe()


def test_the_expectation_is_doubted_without_known_labels():
    assert "Real workers share errors" in FITTED.undecided(0.7).describe()
    known = cs.DawidSkene().fit(
        PLAIN, gold=dict(zip(PLAIN.items[:20].tolist(), CROWD.truth[:20].tolist(), strict=True))
    )
    assert known.undecided(0.7).n_gold == 20
    assert "known labels" not in known.undecided(0.7).describe()
    for model in (cs.MajorityVote(), cs.MomentMatching(max_iter=3, tol=0), cs.DawidSkene(calibration="none")):
        assert "not calibrated" in model.fit(PLAIN).undecided(0.5).describe()


def test_the_ends_of_the_scale():
    assert FITTED.to_frame(undecided=0).equals(FITTED.to_frame())
    assert FITTED.undecided(0).expected_error_rate == pytest.approx(1 - FITTED.expected_accuracy_)
    table = {"item": [1, 1, 1, 2, 2], "worker": [0, 1, 2, 0, 1], "label": list("xxyyy")}
    vote = cs.MajorityVote().fit(table)
    assert vote.to_frame(undecided=1)["label"].to_pylist() == [None, "y"]
    assert vote.undecided(1).describe() == (
        "1 of 2 labels (50.0%) is kept, with a confidence of at least 1. By their probabilities, 0.0% of these are "
        "wrong (about 0.0). These probabilities are not calibrated, so this can be far off."
    )
    nothing = cs.MajorityVote().fit({"item": [1, 1], "worker": [0, 1], "label": ["x", "y"]})
    assert nothing.to_frame(undecided=0.9)["label"].to_pylist() == [None]
    assert nothing.to_frame(undecided=0.9)["label"].type == pa.string()
    assert math.isnan(nothing.undecided(0.9).expected_error_rate)
    assert nothing.undecided(0.9).describe() == ("No label has a confidence of at least 0.9. All 1 are left open.")
    for wrong in (math.nan, -0.1, 1.1, "0.7", True, math.inf):
        with pytest.raises(cs.errors.ParameterError, match="'undecided' parameter of to_frame must be a number from 0"):
            FITTED.to_frame(undecided=wrong)
        with pytest.raises(cs.errors.ParameterError, match="'confidence' parameter of undecided"):
            FITTED.undecided(wrong)


def test_open_labels_in_every_library():
    class Odd(enum.Enum):
        A = 1
        B = 2

    columns = {"item": [1, 1, 2, 2], "worker": ["a", "b"] * 2}
    for labels in ([3, 4, 4, 4], [True, False, False, False], [0.5, 1.5, 1.5, 1.5], list("xyyy")):
        for make in (pd.DataFrame, pl.DataFrame, pa.table):
            table = cs.MajorityVote().fit(make({**columns, "label": labels})).to_frame(undecided=0.9)
            assert type(table) is type(make(columns))
            found = [None if entry is pd.NA or entry != entry else entry for entry in list(_column(table, "label"))]
            assert found == [None, labels[2]]
            assert type(found[1]) is type(labels[2]) or isinstance(found[1], (np.integer, np.floating, np.bool_))
    odd = {**columns, "label": [Odd.A, Odd.B, Odd.B, Odd.B]}
    assert cs.MajorityVote().fit(pd.DataFrame(odd)).to_frame(undecided=0.9)["label"].tolist() == [None, Odd.B]
    assert cs.MajorityVote().fit(odd).to_frame(undecided=0.9)["label"].to_pylist() == [None, "Odd.B"]


def _column(table, name):
    return table[name].to_pylist() if hasattr(table, "to_pylist") else table[name].to_list()


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


def test_the_list_on_the_screen(folder):
    run("fuse", "answers.csv", "--save", "crowd.model", "-q")
    shown = run("next", "crowd.model").stdout
    assert "Items of crowd.model to label next (30 more with --json)" in shown
    assert "nothing; give -o FILE to keep it" in shown
    rows = [line.split() for line in shown.splitlines() if re.match(r"  \d+ ", line)]
    entropy = [float(row[3]) for row in rows if row[-1] != "yes"]
    assert entropy == sorted(entropy, reverse=True)
    words = " ".join(shown.split())
    assert "By entropy: first where probabilities are spread most evenly" in words
    assert "drawn at random. List" in words
    assert run("next", "crowd.model", "-q").stdout == ""
    refused = run("next", "answers.csv")
    assert (refused.exit_code, "is not a model saved by consilience" in refused.stderr) == (2, True)
    assert run("next", "crowd.model", "-n", "0").exit_code == 2
    gold = dict.fromkeys(range(120), "0")
    cs.MajorityVote().fit(pa_csv.read_csv("answers.csv"), gold=gold).save("known.model")
    assert "the label of every item is known" in run("next", "known.model").stdout


def test_words_of_texts_are_listed_on_the_command_line(folder):
    project = cs.simulate.spans(40, seed=1)
    cs.write_spans(project.spans, "team.json", format="label-studio")
    figures = json.loads(run("fuse", "team.json", "--save", "team.model", "--json").stdout)
    texts = zip(map(str, project.spans.documents.tolist()), project.spans.texts, strict=True)
    tokens = {document: re.findall(r"\w+|[^\w\s]", text) for document, text in texts}
    listed = json.loads(run("next", "team.model", "-n", "40", "-o", "items.csv", "--json").stdout)["items"]
    for each in [*figures["least_certain"], *listed]:
        assert each["text"] == tokens[str(each["sequence"])][each["position"]]
    assert list(figures["least_certain"][0])[:4] == ["sequence", "position", "text", "label"]
    table = pd.read_csv("items.csv", keep_default_na=False)
    assert list(table.columns[:5]) == ["sequence", "position", "label", "text", "random"]
    assert f"  {listed[0]['text']}  " in run("next", "team.model", "-n", "3").stdout
    shown = run("fuse", "team.json").stdout.partition("Least certain")[2]
    assert f"  {figures['least_certain'][0]['text']}  " in shown
    table.loc[:9, "label"] = table.loc[:9, "fused_label"]
    table.to_csv("items.csv", index=False)
    assert json.loads(run("fuse", "team.json", "--gold", "items.csv", "--json").stdout)["gold"] == 10
    fused = cs.fuse(project.spans)
    assert "text" in fused.next_items(3).column_names
    fused.save("bare.model", texts=False)
    assert "text" not in json.loads(run("next", "bare.model", "--json").stdout)["items"][0]


def test_undecided_on_the_command_line(folder):
    done = run("fuse", "answers.csv", "-o", "labels.csv", "--undecided", "0.7", "--save", "m", "--json")
    summary = json.loads(done.stdout)["undecided"]
    model = cs.load("m")
    found = model.undecided(0.7)
    assert summary["n_kept"] == found.n_kept == 120 - Path("labels.csv").read_text().count(",,")
    assert summary["expected_errors"] == pytest.approx(found.expected_errors)
    shown = run("fuse", "answers.csv", "--undecided", "0.7").stdout
    assert " ".join(found.describe().split()) in " ".join(shown.split())
    assert json.loads(run("fuse", "answers.csv", "--json").stdout)["undecided"] is None
    for wrong in ("nan", "2", "-1", "x"):
        assert run("fuse", "answers.csv", "--undecided", wrong).exit_code == 2
    assert json.loads(run("fuse", "answers.csv", "--undecided", "1", "--json").stdout)["undecided"]["n_kept"] == 0


@pytest.mark.parametrize(
    "ids",
    [
        [float(n) for n in range(40)],
        [datetime.date(2024, 1, 1) + datetime.timedelta(n) for n in range(40)],
        [datetime.datetime(2024, 1, 1, 12) + datetime.timedelta(hours=n) for n in range(40)],
    ],
    ids=["floats", "dates", "times"],
)
def test_lists_of_ids_that_are_no_text_come_back_as_gold(ids, tmp_path):
    said = np.random.default_rng(0).integers(0, 2, (40, 4))
    data = {"item": np.repeat(np.array(ids, object), 4).tolist(), "worker": [0, 1, 2, 3] * 40, "label": said.ravel()}
    todo = tmp_path / "items.csv"
    columns = add_label(list_next_items(cs.DawidSkene().fit(data).result_, 10))
    columns["label"] = pa.array(["1"] * 10)
    write_table(build_frame(columns, "pyarrow"), todo)
    texts = {str(value): 1 for value in ids[:5]}  # as gold.csv of the report has them
    for gold, n_known in ((todo, 10), (texts, 5)):
        assert (cs.DawidSkene().fit(data, gold=gold).result_.given.gold.codes >= 0).sum() == n_known


def test_all_items_may_be_drawn_at_random():
    table = FITTED.next_items(30, at_random=True)
    assert table["random"].to_pylist() == [True] * 30
    some = [row["item"] for row in FITTED.next_items(30).to_pylist() if row["random"]]
    assert table["item"].to_pylist()[: len(some)] == some
    assert np.mean(table["entropy"].to_numpy()) < np.mean(FITTED.next_items(30)["entropy"].to_numpy())
