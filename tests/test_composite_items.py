"""Items that several columns identify together."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from command_line import run as invoke
from consilience.answers.columns import join_texts, split_text
from consilience.answers.features import match_features

PROMPTS, PAIRS, WORKERS = 6, ("a-b", "a|c"), ("ann", "bob", "eve")


def make_table():
    """Every worker judges every pair of models on every prompt."""
    rows = [
        {
            "prompt": prompt,
            "pair": pair,
            "worker": who,
            "label": "xy"[(prompt + (pair == "a-b") + (who == "eve")) % 2],
        }
        for prompt in range(PROMPTS)
        for pair in PAIRS
        for who in WORKERS
    ]
    return pd.DataFrame(rows)


@given(st.lists(st.text(), min_size=2, max_size=4))
def test_parts_are_what_was_joined(parts):
    assert split_text(join_texts(parts)) == parts


@pytest.mark.parametrize("item", [["prompt", "pair"], "prompt,pair", ("prompt", "pair")])
def test_an_item_may_be_several_columns(item):
    r = cs.Answers.from_frame(make_table(), item=item)
    assert r.n_items == PROMPTS * len(PAIRS)
    assert r.items[:2].tolist() == ["0|a-b", r"0|a\|c"]
    out = cs.DawidSkene(calibration="none").fit(r).to_frame()
    assert list(out.columns[:4]) == ["item", "prompt", "pair", "label"]
    assert out["prompt"].tolist() == np.repeat(np.arange(PROMPTS), 2).tolist()  # numbers, as they were
    assert out["pair"].tolist() == list(PAIRS) * PROMPTS


@pytest.mark.parametrize("form", ["table", "tuples", "ids", "columns", "text"])
def test_known_labels_are_matched_by_the_same_columns(form):
    gold = {"prompt": [0, 3], "pair": ["a|c", "a-b"], "label": ["y", "y"]}
    given = {
        "table": pd.DataFrame(gold),
        "tuples": {(0, "a|c"): "y", (3, "a-b"): "y"},
        "ids": {r"0|a\|c": "y", "3|a-b": "y"},
        "columns": gold,
        "text": pd.DataFrame(gold).astype(str),
    }[form]
    r = cs.Answers.from_frame(make_table(), item=["prompt", "pair"])
    out = cs.DawidSkene(calibration="none").fit(r, gold=given).to_frame()
    known = out[out["decided_by"] == "known label"]
    assert list(zip(known["prompt"], known["pair"], known["label"], strict=True)) == [(0, "a|c", "y"), (3, "a-b", "y")]


def test_features_are_matched_by_the_same_columns():
    table = pd.concat([make_table(), make_table().assign(prompt=lambda t: t["prompt"] + PROMPTS)])
    r = cs.Answers.from_frame(table, item=["prompt", "pair"])
    keys = {"pair": list(PAIRS) * 12, "prompt": np.repeat(np.arange(12), 2)}
    features = pd.DataFrame({**keys, "x": np.arange(24.0)}).sample(frac=1, random_state=0)
    found = match_features(features, r)
    assert found.names == ["x"]
    assert found.rows.ravel().tolist() == list(range(24))


def test_update_save_and_load_keep_the_columns(tmp_path):
    table = make_table()
    model = cs.DawidSkene(calibration="none").fit(cs.Answers.from_frame(table, item=["prompt", "pair"]))
    loaded = cs.load(model.save(tmp_path / "m"))
    pd.testing.assert_frame_equal(loaded.to_frame(), model.to_frame())
    more = pd.DataFrame({"prompt": [0, 9], "pair": ["a-b", "b-c"], "worker": ["zoe", "zoe"], "label": ["x", "y"]})
    updated = loaded.update(more).to_frame()
    assert updated.iloc[-1][["prompt", "pair"]].tolist() == [9, "b-c"]
    assert len(updated) == 13
    assert {"prompt", "pair"} <= set(model.next_items(3).columns)


def test_the_error_about_repeated_answers_tells_of_further_columns():
    with pytest.raises(cs.errors.InputError, match="If further columns tell items apart"):
        cs.Answers.from_frame(make_table(), item="prompt")
    twice = pd.concat([make_table()] * 2)
    with pytest.raises(cs.errors.InputError) as caught:
        cs.Answers.from_frame(twice[["prompt", "worker", "label"]], item="prompt")
    assert "further columns" not in str(caught.value)


def test_the_command_line_takes_several_columns(tmp_path):
    make_table().to_csv(tmp_path / "answers.csv", index=False)
    gold = pd.DataFrame({"prompt": [0, 1], "pair": ["a-b", "a-b"], "label": ["y", "x"]})
    gold.to_csv(tmp_path / "gold.csv", index=False)
    failed = invoke("fuse", tmp_path / "answers.csv", "--item", "prompt", "-o", tmp_path / "out.csv")
    assert failed.exit_code == 2
    assert "If further columns tell items apart" in " ".join(failed.output.split())
    known = ("--gold", tmp_path / "gold.csv", "-o", tmp_path / "out.parquet", "--json")
    done = invoke("fuse", tmp_path / "answers.csv", "--item", "prompt,pair", *known)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["items"] == 12
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.column_names[:4] == ["item", "prompt", "pair", "label"]
    assert out.schema.field("prompt").type == pa.int64()
    judged = invoke("evaluate", tmp_path / "out.parquet", tmp_path / "gold.csv", "--item", "prompt,pair", "--json")
    assert judged.exit_code == 0, judged.output
    assert json.loads(judged.stdout)["accuracy"] == 1
