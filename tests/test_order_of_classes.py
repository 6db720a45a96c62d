"""Classes that have an order: how it is known, where it travels, and known labels between two levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs
from command_line import run
from consilience import Answers
from consilience.errors import DataWarning, InputError, ParameterError

LEVELS = ["low", "mid", "high"]
RANKS = (0.0, 1.0, 2.0)


def table(labels: list[Any]) -> dict[str, Any]:
    """Return answers of three workers, each about every item."""
    n_items = len(labels) // 3
    return {
        "item": np.repeat(np.arange(n_items), 3).tolist(),
        "worker": ["ann", "bob", "cyd"] * n_items,
        "label": labels,
    }


WORDS = table(["low", "mid", "low", "mid", "mid", "high", "high", "high", "mid", "low", "low", "low"])
NUMBERS = table([1, 2, 1, 3, 3, 10, 10, 10, 3, 1, 1, 1])


def scale_of(r: Answers) -> tuple[list[Any], tuple[float, ...] | None]:
    """Return the classes and their positions."""
    return r.classes.tolist(), r.positions


# ------------------------------------------------------------------------------------------------- knowing the order


def test_numbers_are_in_order_of_their_value() -> None:
    text = NUMBERS | {"label": list(map(str, NUMBERS["label"]))}
    assert scale_of(cs.Answers.from_frame(NUMBERS, ordered=True)) == ([1, 2, 3, 10], (0.0, 1.0, 2.0, 3.0))
    assert scale_of(cs.Answers.from_frame(text, ordered=True)) == (["1", "2", "3", "10"], (0.0, 1.0, 2.0, 3.0))


def test_a_label_beside_the_scale_is_no_level() -> None:
    labels = list(map(str, NUMBERS["label"]))
    labels[0] = "can't tell"
    with pytest.raises(InputError, match=r"\"can't tell\" is no number\. Name the classes from low to high with cl"):
        cs.Answers.from_frame(table(labels), ordered=True)
    r = cs.Answers.from_frame(table(labels), classes=["1", "2", "3", "10"], ordered=True)
    assert r.n_labels == 5
    assert r.positions == (0.0, 1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ordered": True}, "'high', 'low', 'mid' are no numbers"),
        ({"positions": [0, 1, 5]}, "are no numbers"),
        ({"ordered": "yes"}, "The 'ordered' parameter of Answers must be True or False"),
        ({"ordered": False, "classes": LEVELS, "positions": RANKS}, "are those of classes in order"),
        ({"classes": LEVELS, "positions": [0, 1]}, "increase, one for each of the 3 classes"),
        ({"classes": LEVELS, "positions": [0, 1, 1]}, "finite numbers that increase"),
        ({"classes": LEVELS, "positions": [0, 1, float("nan")]}, "finite numbers that increase"),
        ({"classes": LEVELS, "positions": ["a", "b", "c"]}, "finite numbers that increase"),
    ],
)
def test_what_is_no_scale_is_an_error(given: dict[str, Any], words: str) -> None:
    with pytest.raises((InputError, ParameterError), match=words):
        cs.Answers.from_frame(WORDS, **given)


def test_classes_are_written_as_the_labels_are() -> None:
    r = cs.Answers.from_frame(table(["1.0", "2.0", "1.0"]), classes=["1", "2", "3"])
    assert r.classes.tolist() == ["1.0", "2.0", "3"]
    assert r.class_of_label.tolist() == [0, 1]
    assert cs.Answers.from_frame(table([1, 2, 1]), classes=["2", "1"]).classes.tolist() == [2, 1]


def ordered_frames() -> dict[str, Any]:
    """Return the same answers with a column that says its order, in each library."""
    codes = pa.array([LEVELS.index(label) for label in WORDS["label"]], pa.int8())
    arrow = pa.DictionaryArray.from_arrays(codes, pa.array(LEVELS), ordered=True)
    return {
        "pandas": pd.DataFrame(WORDS).assign(label=pd.Categorical(WORDS["label"], LEVELS, ordered=True)),
        "polars": pl.DataFrame(WORDS).with_columns(pl.col("label").cast(pl.Enum(LEVELS))),
        "pyarrow": pa.table(WORDS | {"label": arrow}),
    }


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_an_ordered_column_says_so(library: str) -> None:
    frame = ordered_frames()[library]
    assert scale_of(cs.Answers.from_frame(frame)) == (LEVELS, RANKS)
    assert cs.Answers.from_frame(frame, ordered=False).positions is None
    assert cs.Answers.from_frame(frame, normalise=True).positions == RANKS


def test_a_matrix_is_in_order_of_its_labels() -> None:
    F = [[0, 1], [2, 2]]
    assert scale_of(cs.Answers.from_matrix(F, labels=LEVELS, ordered=True)) == (LEVELS, RANKS)
    assert scale_of(cs.Answers.from_matrix(F, ordered=True)) == ([0, 1, 2], RANKS)
    P = np.full((2, 2, 3), 1 / 3)
    assert scale_of(cs.Answers.from_probabilities(P, classes=LEVELS, positions=[0, 1, 5])) == (
        LEVELS,
        (0.0, 1.0, 5.0),
    )


# ---------------------------------------------------------------------------------------------------- where it travels


def test_files_and_stores_know_the_order(tmp_path: Path) -> None:
    file = tmp_path / "answers.parquet"
    pq.write_table(ordered_frames()["pyarrow"], file)
    for r in (cs.read_answers(file), cs.scan_answers(file, store=tmp_path / "stores")):
        assert scale_of(r) == (LEVELS, RANKS)
    assert cs.scan_answers(file, store=tmp_path / "stores", ordered=False).positions is None
    placed = cs.scan_answers(file, store=tmp_path / "stores", positions=[0, 1, 5])
    assert placed.positions == (0.0, 1.0, 5.0)


def test_a_scale_stays_with_the_answers() -> None:
    r = cs.Answers.from_frame(WORDS, classes=LEVELS, positions=[0, 1, 5])
    assert r.keep(np.arange(r.n_responses) > 0).positions == r.positions
    assert r.about(np.array([0, 2])).positions == r.positions
    assert r.with_classes(r.classes[1:]).positions == (1.0, 5.0)
    assert cs.Answers.from_frame(NUMBERS, ordered=True).with_classes(np.array([1, 10])).positions == (0.0, 1.0)
    merged = cs.Answers.from_frame(table(["a", "A", "b"]), classes=["a", "A", "b"], positions=[0, 1, 5])
    assert scale_of(merged.spelled_as(np.array(["a", "b"], object))) == (["a", "b"], (0.0, 5.0))


def test_levels_that_are_numbers_find_their_place_later() -> None:
    model = cs.DawidSkene(workers="ordinal").fit(cs.Answers.from_frame(table(NUMBERS["label"] * 10), ordered=True))
    model.update({"item": [99, 99], "worker": ["ann", "bob"], "label": [5, 5]})
    assert scale_of(model.result_.answers) == ([1, 2, 3, 5, 10], (0.0, 1.0, 2.0, 3.0, 4.0))
    model.partial_fit({"item": [100, 100], "worker": ["ann", "bob"], "label": [4, 4]})
    assert model.classes_.tolist() == [1, 2, 3, 4, 5, 10]
    assert model.result_.names.positions == tuple(map(float, range(6)))


# -------------------------------------------------------------------------------------------------------- known labels


def test_known_labels_between_levels_count_as_the_nearest() -> None:
    r = cs.Answers.from_frame(NUMBERS, ordered=True)
    with pytest.warns(DataWarning, match="2 known labels lie between levels and count as the nearest"):
        model = cs.DawidSkene().fit(r, gold={0: 1.4, 1: 6.5, 2: 10})
    assert model.labels_[:3].tolist() == [1, 3, 10]
    with pytest.raises(InputError, match="not among the classes"):
        cs.DawidSkene().fit(r, gold={0: 11.5})
    with pytest.raises(InputError, match="not among the classes"):
        cs.DawidSkene().fit(cs.Answers.from_frame(NUMBERS), gold={0: 1.4})


# ----------------------------------------------------------------------------------------------------- command line


def test_the_command_line_says_the_order(tmp_path: Path) -> None:
    file, model = tmp_path / "answers.csv", tmp_path / "a.model"
    pd.DataFrame(WORDS).to_csv(file, index=False)
    given = ["fuse", file, "--classes", "low,mid,high", "--save", model]
    for options, positions in (
        (["--ordered"], RANKS),
        (["--positions", "0,1,5"], (0.0, 1.0, 5.0)),
        (["--unordered"], None),
        ([], None),
    ):
        found = run(*given, *options)
        assert found.exit_code == 0, found.stderr
        assert cs.load(model).result_.answers.positions == positions
    assert "with --classes" in run("fuse", file, "--ordered").stderr
    assert "Leave --unordered out" in run(*given, "--unordered", "--positions", "0,1,2").stderr
