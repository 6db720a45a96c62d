"""Tables of comparisons: words for verdicts, columns by their usual names, scores as comparisons, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import consilience as cs
from consilience.errors import InputError, ParameterError
from consilience.rankings.comparisons import pair_rows

LEFT, RIGHT, TIE = 0, 1, 2


def read(winner, left=("a", "b", "c"), right=("b", "c", "a"), **more):
    return cs.Comparisons.from_frame({"left": list(left), "right": list(right), "winner": list(winner), **more})


@pytest.mark.parametrize(
    "winner",
    [
        ["a", "c", "tie"],
        ["left", "right", "tie"],
        ["Left", " RIGHT ", "Tie"],
        ["A", "B", "tie"],
        ["model_a", "model_b", "tie (bothbad)"],
        ["1", "2", "0"],
        [1, 2, 0],
        [1.0, 2.0, 0.0],
        [">", "<", "="],
        ["first", "second", "draw"],
        [1, 0, 0.5],
        ["1", "0", "0.5"],
    ],
)
def test_words_for_verdicts(winner):
    left, right = (("x", "y", "z"), ("y", "z", "x")) if winner[0] != "a" else (("a", "b", "c"), ("b", "c", "a"))
    assert read(winner, left, right).verdict.tolist() == [LEFT, RIGHT, TIE]


@pytest.mark.parametrize(
    ("table", "roles"),
    [
        (
            {"question_id": [1], "model_a": ["x"], "model_b": ["y"], "winner": ["model_a"], "judge": ["u"]},
            {"left": "model_a", "right": "model_b", "winner": "winner", "worker": "judge", "item": "question_id"},
        ),
        (
            {"worker": ["w"], "left": ["x"], "right": ["y"], "label": ["x"]},
            {"left": "left", "right": "right", "winner": "label", "worker": "worker"},
        ),
    ],
)
def test_usual_names_are_found(table, roles):
    data = cs.Comparisons.from_frame(table)
    assert dict(data.columns) == roles
    assert data.verdict.tolist() == [LEFT]


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_frames_of_all_libraries(make):
    table = {"left": ["a", "b"], "right": ["b", "c"], "winner": ["a", "tie"], "worker": ["u", "v"]}
    model = cs.rank(make(table))
    expected = {dict: pa.Table}.get(make, make)
    frame = model.judge_report()
    assert isinstance(getattr(frame, "arrow", frame), expected)
    assert str(next(iter(frame["worker"]))) == "u"
    assert model.ranking_["candidate"].to_pylist()[0] == "a"  # of Arrow, whatever the comparisons are


def test_files(tmp_path):
    arena = cs.simulate.comparisons(300, seed=1)
    table = arena.to_frame()
    pa.csv.write_csv(table, tmp_path / "verdicts.csv")
    (tmp_path / "verdicts.jsonl").write_text("\n".join(map(str, table.to_pylist())).replace("'", '"'))
    expected = cs.rank(arena.comparisons).ranking_
    for name in ("verdicts.csv", "verdicts.jsonl"):
        assert cs.rank(tmp_path / name).ranking_ == expected


# -------------------------------------------------------------------------------------------------------------- scores


def test_scores_are_compared_with_each_other():
    table = {
        "prompt": [1, 1, 1, 2, 2],
        "judge": ["u", "u", "u", "u", "v"],
        "model": ["x", "y", "z", "x", "y"],
        "score": [3, 5, 5, 1, 2],
    }
    data = cs.Comparisons.from_frame(table)
    pairs = [(data.candidates[a], data.candidates[b]) for a, b in zip(data.left, data.right, strict=True)]
    assert dict(zip(pairs, data.verdict.tolist(), strict=True)) == {
        ("x", "y"): RIGHT,
        ("x", "z"): RIGHT,
        ("y", "z"): TIE,
    }
    assert data.weights == pytest.approx([2 / 3] * 3)
    assert not data.has_positions
    ranks = cs.Comparisons.from_frame(table, candidate="model", rank="score")
    assert ranks.verdict.tolist() == [LEFT, LEFT, TIE]


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_rows_are_all_pairs(seed):
    rng = np.random.default_rng(seed)
    worker, item = rng.integers(3, size=25).astype(np.int32), rng.integers(4, size=25).astype(np.int32)
    first, second, weight = pair_rows(worker, item)
    slow = {(a, b) for a in range(25) for b in range(a + 1, 25) if worker[a] == worker[b] and item[a] == item[b]}
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == slow
    sizes = {(w, i): np.sum((worker == w) & (item == i)) for w in range(3) for i in range(4)}
    assert weight.sum() == pytest.approx(sum(size - 1 for size in sizes.values() if size))


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"left": ["a", "b"], "right": ["b", "b"], "winner": ["a", "b"]},
            "a candidate is compared with itself.*'b' at row 1",
        ),
        (
            {"left": ["a", "b"], "right": ["b", "c"], "winner": ["a", "d"]},
            "In 1 row.*names neither.*'b' and 'c'.*the first is 'd' at row 1",
        ),
        ({"left": ["a", "b"], "right": ["b", "c"], "winner": ["a", None]}, "1 missing value"),
        ({"left": ["a", "b"], "right": ["b", "c"], "winner": [1, 0]}, "won and lost or won and tied"),
        ({"left": [], "right": [], "winner": []}, "no rows"),
        ({"left": ["a"], "right": ["b"]}, "no column for the winner"),
        ({"item": [1], "worker": ["a"], "label": ["b"]}, "no column for the left"),
    ],
)
def test_bad_tables_are_refused(table, words):
    with pytest.raises(InputError, match=words):
        cs.rank(table)


def test_bad_parameters_are_refused():
    table = {"left": ["a"], "right": ["b"], "winner": ["a"]}
    with pytest.raises(ParameterError, match="not both"):
        cs.rank(table, left="left", score="winner")
    with pytest.raises(InputError, match="candidates that were not compared: 'z'"):
        cs.rank(table, gold={("a", "z"): "a"})
    with pytest.raises(InputError, match="the table of known verdicts has no column for the left"):
        cs.rank(table, gold={"a": ["b"]})
    with pytest.raises(InputError, match="`consilience rank`"):
        cs.fuse({"judge": ["u"], "prompt": ["p"], "model_a": ["a"], "model_b": ["b"], "winner": ["a"]})
    with pytest.raises(ParameterError, match="Columns"):
        cs.rank(cs.Comparisons.from_frame(table), left="left")


@pytest.mark.parametrize("tie", [0, -1, "tie"])
def test_candidates_that_are_numbers_may_tie(tie):
    """The winner of (2, 3) would be a side, and 1 as often as 2, if these were not ids."""
    data = read([1, 2, tie, 1, 2], left=[2, 2, 1, 1, 3], right=[1, 3, 2, 3, 2])
    assert data.verdict.tolist() == [RIGHT, LEFT, TIE, LEFT, RIGHT]
    assert data.winners == f"ids of candidates (tie: {tie})"
    with pytest.raises(InputError, match="may be candidates"):  # each pair holds both: nothing tells
        read([1, 2, tie], left=[2, 1, 2], right=[1, 2, 1])


def test_candidates_called_0_and_1_are_not_taken_for_points():
    with pytest.raises(InputError, match="holds 0, 1, which may be candidates"):
        read([0, 1, 1], left=[0, 1, 0], right=[1, 0, 1])
    assert read(["x", "0", "y"], left=["x", "y", "x"], right=["y", "x", "y"]).verdict.tolist() == [LEFT, TIE, RIGHT]
    assert read([1, 2, 0], left=[1, 3, 2], right=[3, 1, 3]).verdict.tolist() == [LEFT, RIGHT, TIE]  # 2 is no id here


# ---------------------------------------------------------------------------------------------------------- large files


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a,b", "line 52: expected 3 columns"),
        ("a,,left", "missing value; the first is at .*line 52"),
        ("a,b,zebra", "line 52"),
    ],
)
def test_errors_in_files_say_where(tmp_path, line, words):
    path = tmp_path / "verdicts.csv"
    path.write_text("\n".join(["left,right,winner", *["a,b,left"] * 50, line, *["b,a,tie"] * 60]))
    with pytest.raises(InputError, match=words):
        cs.rank(path)
