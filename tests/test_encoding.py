"""Codes of large columns, against Python's own dictionary."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from consilience import limits
from consilience.answers import answers as responses
from consilience.answers import columns as vocabulary
from consilience.answers.answers import Answers
from consilience.answers.columns import encode_in_order_of_appearance, encode_sorted, order_by
from consilience.errors import InputError


def encode_slowly(values):
    index = {}
    codes = [index.setdefault(value, len(index)) for value in values]
    return codes, list(index)


def columns():
    rng = np.random.default_rng(3)
    texts = [["", "a", "ä", "ab" * 40, "a\0"][i % 5] + str(i) for i in rng.integers(0, 900, 2000)]
    return {
        "narrow": pa.array(rng.integers(-40, 40, 2000)),
        "wide": pa.array(rng.integers(-(2**63), 2**63 - 1, 700)[rng.integers(0, 700, 2000)]),
        "unsigned": pa.array([*rng.integers(0, 9, 1998).tolist(), 2**64 - 1, 2**63], pa.uint64()),
        "small": pa.array(rng.integers(-128, 128, 2000).astype(np.int8)),
        "ends": pa.array(np.array([-(2**63), 2**63 - 1, 0, -(2**63)] * 9)),
        "one": pa.array(np.zeros(2000, np.int64)),
        "text": pa.array(texts),
        "large text": pa.array(texts, pa.large_string()),
        "short texts": pa.array([f"w{i}" for i in rng.integers(0, 900, 2000)]),
        "short large texts": pa.array([f"\0w{i}" for i in rng.integers(0, 900, 2000)], pa.large_string())[7:],
        "part of texts": pa.array(texts)[77:1500],
        "categories": pa.array(texts).dictionary_encode(),
        "empty texts": pa.array([""] * 50),
    }


@pytest.fixture(params=["few", "many", "many, by three threads"])
def by_size(request, monkeypatch):
    """Tables of this size, as if they were small and as if they were large."""
    many = 10**9 if request.param == "few" else 1
    for module in (vocabulary, responses):
        monkeypatch.setattr(module, "MANY_VALUES", many)
    monkeypatch.setattr(vocabulary, "ROWS_PER_THREAD", 100)
    monkeypatch.setattr(vocabulary, "CODES_AT_ONCE", 300)
    monkeypatch.setenv("CONSILIENCE_THREADS", "3" if "three" in request.param else "1")
    share = partial(limits.side_by_side, least=1)
    for module in (vocabulary, responses):
        monkeypatch.setattr(module, "side_by_side", lambda work, n, least=1: share(work, n))


@pytest.mark.parametrize("name", [*columns()])
def test_codes_are_in_order_of_appearance(name, by_size):
    column = columns()[name]
    codes, values = encode_in_order_of_appearance(column)
    expected_codes, expected_values = encode_slowly(column.to_pylist())
    assert codes.dtype == np.int32
    assert codes.tolist() == expected_codes
    assert values.tolist() == expected_values
    assert values.dtype == vocabulary.to_values(column).dtype
    if name != "categories":
        codes, values = encode_sorted(column)
        assert values.tolist() == sorted(expected_values)
        assert values[codes].tolist() == column.to_pylist()


def test_chunks_are_put_together(by_size):
    chunks = [np.arange(5), np.array([], np.int64), np.arange(7) - 2**62, np.arange(3)]
    column = vocabulary.to_column(pa.chunked_array(list(map(pa.array, chunks))))
    assert isinstance(column, pa.Int64Array)
    assert column.to_pylist() == np.concatenate(chunks).tolist()


def test_orders_are_stable(by_size):
    keys = np.random.default_rng(7).integers(0, 70, 3000).astype(np.int32)
    order, offsets = order_by(keys, 75)
    assert order.tolist() == sorted(range(3000), key=lambda place: keys[place])
    assert offsets.tolist() == [int((keys < key).sum()) for key in range(76)]


@pytest.mark.parametrize("shuffled", [False, True])
def test_tables_are_read_the_same_way_however_large(by_size, shuffled):
    rng = np.random.default_rng(9)
    rows = [(i * 7, f"w{w}", (i + w) % 3, rng.uniform(0.1, 1)) for i in range(60) for w in range(i % 4 + 1)]
    rows = [rows[i] for i in rng.permutation(len(rows))] if shuffled else rows
    table = dict(zip(("item", "worker", "label", "weight"), map(list, zip(*rows, strict=True)), strict=True))
    r = Answers.from_frame(table, weight="weight")
    item = r.items[r.item_of_answer()].tolist()
    found = list(zip(item, r.workers[r.worker].tolist(), r.labels[r.label].tolist(), r.weight.tolist(), strict=True))
    place = {key: n for n, key in enumerate(dict.fromkeys(table["item"]))}
    assert r.items.tolist() == list(place)
    assert found == sorted(rows, key=lambda row: place[row[0]])  # a stable order
    table["worker"][-1], table["item"][-1] = table["worker"][2], table["item"][2]
    with pytest.raises(InputError, match=rf"row 2 .* and row {len(rows) - 1} "):
        Answers.from_frame({name: column for name, column in table.items() if name != "weight"})
