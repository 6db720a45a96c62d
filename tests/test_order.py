"""When answers were given: read, kept, joined and saved beside the answers."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import consilience as cs
from consilience.answers.joining import join_responses, read_further
from consilience.answers.tables import open_frame

ROWS = {"item": ["b", "a", "a", "b"], "worker": ["x", "y", "x", "y"], "label": ["1", "0", "0", "0"]}
# The answers in the order of items: b by x, b by y, a by y, a by x.
SORTED = [0, 3, 1, 2]


def read(when, **keywords):
    return cs.Answers.from_frame({**ROWS, "when": when}, order="when", **keywords)


@pytest.mark.parametrize(
    "when",
    [
        [4, 1, 2, 3],
        [4.0, 1.0, 2.0, 3.0],
        ["4", "1.0", "2e0", " 3"],
        np.array([4, 1, 2, 3], "datetime64[s]"),
        [datetime.datetime(1970, 1, 1, 0, 0, s) for s in (4, 1, 2, 3)],
        [datetime.datetime(1970, 1, 1, 0, 0, s, tzinfo=datetime.UTC) for s in (4, 1, 2, 3)],
        [f"1970-01-01T00:00:0{s}" for s in (4, 1, 2, 3)],
        [f"1970-01-01 00:00:0{s}Z" for s in (4, 1, 2, 3)],
        [f"1970-01-01T01:00:0{s}+01:00" for s in (4, 1, 2, 3)],
        pd.Categorical(["4", "1", "2", "3"]),
    ],
    ids=str,
)
def test_numbers_and_times_are_read(when):
    assert read(when).order.tolist() == np.array([4.0, 1, 2, 3])[SORTED].tolist()


def test_dates_are_read_from_any_frame():
    days = [datetime.date(2024, 5, day) for day in (4, 1, 2, 3)]
    expected = np.array([4, 1, 2, 3])[SORTED] * 86400
    for frame in (pl.DataFrame({**ROWS, "when": days}), pd.DataFrame({**ROWS, "when": pd.to_datetime(days)})):
        order = cs.Answers.from_frame(frame, order="when").order
        assert np.array_equal(order - order.min(), expected - expected.min())
    text = read([str(day) for day in days]).order
    assert np.array_equal(text, order)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (["4", "1", "soon", "3"], "'soon' at row 2"),
        ([True, False, True, False], "must say when answers were given"),
        ([datetime.time(0, 0, s) for s in (4, 1, 2, 3)], "must say when answers were given"),
        (["4", "1", "2024-01-01", "3"], "all in one way"),
        (["11/13/2025", "11/14/2025", None, None], "as ISO 8601 writes it"),
        ([(1, 2), 1, 2, 3], "must say when"),
        (["2024-05-17T09:30:00Z", "2024-05-17T09:30:00", None, None], "all in one way"),
    ],
)
def test_anything_else_is_an_error(when, words):
    with pytest.raises(cs.errors.InputError, match=words):
        read(when)
    with pytest.raises(cs.errors.InputError, match="has no column 'then'"):
        cs.Answers.from_frame(ROWS, order="then")


def test_the_order_goes_with_its_answers():
    r = read([4, 1, 2, 3])
    assert r.keep(np.array([True, False, True, False])).order.tolist() == [4, 1]
    assert r.about(np.array([1])).order.tolist() == [1, 2]
    twice = {name: values * 2 for name, values in ROWS.items()} | {"when": list(range(8))}
    assert cs.Answers.from_frame(twice, order="when", duplicates="last").order.tolist() == [4, 7, 5, 6]


def test_the_order_is_joined():
    whole = read([4, 1, 2, 3])
    rows = [[0, 1], [2, 3]]
    parts = [
        {name: [values[i] for i in which] for name, values in {**ROWS, "when": [4, 1, 2, 3]}.items()} for which in rows
    ]
    old = cs.Answers.from_frame(parts[0], order="when")
    new, _ = read_further(open_frame(parts[1]), old, "error")
    joined = join_responses(old, new).responses
    assert joined.order.tolist() == whole.order.tolist()
    # Without times on one side, these are not known.
    del parts[1]["when"]
    new, _ = read_further(open_frame(parts[1]), old, "error")
    assert np.array_equal(join_responses(old, new).responses.order, [4, np.nan, 1, np.nan], equal_nan=True)
    plain = cs.Answers.from_frame(parts[1])
    assert np.array_equal(join_responses(plain, old).responses.orders(), [np.nan, 1, np.nan, 4], equal_nan=True)
    assert join_responses(plain, plain).responses.order is None


def test_the_order_is_saved(tmp_path):
    model = cs.DawidSkene(calibration="none").fit(read([4, None, 2, 3]))
    loaded = cs.load(model.save(tmp_path / "model"))
    assert np.array_equal(loaded.result_.answers.order, model.result_.answers.order, equal_nan=True)
    assert loaded.result_.answers.columns["order"] == "when"
    loaded.update({"item": ["c"], "worker": ["x"], "label": ["1"], "when": [7]})
    assert loaded.result_.answers.order[-1] == 7
