"""Numbers made of ids: alike whatever the type and order of the ids, and otherwise as if by chance."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import consilience as cs
from consilience.data.hashing import hash_pairs, hash_values
from consilience.models.comparison import sample_items
from consilience.models.held_out import hide_answers


def slow_hash(text):
    """Return the polynomial and the mixing with Python's integers."""
    value = sum((byte + 1) * 0x100000001B3 ** (i + 1) for i, byte in enumerate(text.encode()))
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> shift)) * factor % 2**64
    return value ^ (value >> 31)


TEXTS = ["", "a", "b", "ab", "ba", "\0", "\0\0", "item 10", "héé", "x" * 300]


def test_hashes_are_those_of_the_text():
    assert hash_values(TEXTS).tolist() == [slow_hash(text) for text in TEXTS]
    assert hash_values(pa.array(["skipped", *TEXTS])[1:]).tolist() == [slow_hash(text) for text in TEXTS]
    assert hash_values([""]).tolist() == [slow_hash("")]


def test_type_and_order_do_not_matter():
    numbers = np.array([7, 0, 120])
    expected = hash_values(["7", "0", "120"])
    for values in (numbers, numbers.astype(np.uint8), numbers.astype(float), numbers.tolist(), pd.array(numbers)):
        np.testing.assert_array_equal(hash_values(values), expected)
    np.testing.assert_array_equal(hash_values(pa.array(["7", "0", "120"]).dictionary_encode()), expected)
    np.testing.assert_array_equal(hash_values(numbers[::-1]), expected[::-1])


def test_ids_of_any_kind():
    for values in ([b"\xff", b"a"], ["\ud800", "b"], [1, "1x"], [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]):
        assert len(set(hash_values(values).tolist())) == 2


@pytest.mark.parametrize("seed", [0, 1, 2**100])
def test_pairs_are_spread_evenly(seed):
    items, workers = hash_values(np.arange(300)), hash_values([f"worker {m}" for m in range(40)])
    chance = hash_pairs(np.repeat(items, 40), np.tile(workers, 300), seed)
    assert len(np.unique(chance)) == 12_000
    share = (chance / 2.0**64).reshape(300, 40)
    for axis in (0, 1):
        mean = share.mean(axis=axis)
        spread = np.sqrt(1 / 12 / share.shape[axis])
        assert np.abs(mean - 0.5).max() < 5 * spread
        assert mean.std() == pytest.approx(spread, rel=0.4)
    other = hash_pairs(np.repeat(items, 40), np.tile(workers, 300), seed + 1)
    assert abs(np.corrcoef(share.ravel(), other / 2.0**64)[0, 1]) < 0.05


def read(frame, **options):
    return cs.Responses.from_frame(frame, **options)


def hidden_pairs(r, **options):
    """Return the (item, worker) pairs hidden in each fold, as text."""
    item, worker = r.items[r.item_of_answer()], r.workers[r.worker]
    return [
        {(str(item[j]), str(worker[j])) for j in np.flatnonzero(hidden)} for hidden, _ in hide_answers(r, **options)
    ]


def test_the_same_answers_are_hidden_in_any_order_and_type(monkeypatch):
    r = cs.simulate.independent(200, n_workers=9, n_classes=3, answers_per_item=4, seed=2).responses
    frame = pd.DataFrame(
        {"item": r.items[r.item_of_answer()], "worker": r.workers[r.worker], "label": r.labels[r.label]}
    )
    shuffled = frame.sample(frac=1, random_state=1)
    options = {"fraction": 0.1, "seed": 3, "n_folds": 4}
    expected = hidden_pairs(read(frame), **options)
    assert len(expected) == 4
    for other in (shuffled, shuffled.astype({"item": str, "worker": str}), shuffled.astype({"item": "category"})):
        assert hidden_pairs(read(other), **options) == expected
    monkeypatch.setattr("consilience.models.comparison.MOST_ANSWERS", 300)
    parts = [sample_items(read(each), 0) for each in (frame, shuffled)]
    first, second = (set(r.items[r.item_of_answer()].tolist()) for r in parts)
    assert first == second
    assert 40 < len(first) < 120


def test_calibration_does_not_depend_on_the_order_of_the_rows():
    r = cs.simulate.independent(150, n_workers=9, n_classes=3, answers_per_item=4, seed=2).responses
    frame = pd.DataFrame(
        {"item": r.items[r.item_of_answer()], "worker": r.workers[r.worker], "label": r.labels[r.label]}
    )
    first, second = (cs.DawidSkene().fit(each) for each in (frame, frame.sample(frac=1, random_state=1)))
    assert first.power_ == second.power_
    probabilities = [model.to_frame().set_index("item").sort_index().drop(columns="label") for model in (first, second)]
    np.testing.assert_allclose(*probabilities, atol=1e-6)
