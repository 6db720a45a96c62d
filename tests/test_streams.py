"""What has Arrow behind it goes in as it is: datasets of Hugging Face, relations of DuckDB, readers of ADBC."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import consilience as cs
from consilience.errors import DataWarning, InputError

ROWS = {
    "item": ["a", "a", "b", "b", "c"],
    "worker": ["x", "y", "x", "y", "x"],
    "label": ["no", "yes", "no", "no", "yes"],
}


class Dataset:
    """What is used of datasets.Dataset (5.2): a table, of which indices choose rows, and features with names."""

    def __init__(self, table, features, order=None):
        self.table, self.features, self.order = table, features, order

    def __len__(self):
        return self.table.num_rows

    def with_format(self, name):
        assert name == "arrow"
        return self

    def __getitem__(self, rows):
        return self.table if self.order is None else self.table.take(self.order)


class ClassLabel:
    names = ("no", "yes", "never said")


def make_dataset(order=None):
    numbers = pa.table({**ROWS, "label": [ClassLabel.names.index(each) for each in ROWS["label"]]})
    return Dataset(numbers, {"item": None, "worker": None, "label": ClassLabel()}, order)


def make_real_dataset():
    datasets = pytest.importorskip("datasets")
    features = {name: datasets.Value("string") for name in ROWS} | {"label": datasets.ClassLabel(names=["no", "yes"])}
    return datasets.Dataset.from_dict(ROWS, features=datasets.Features(features))


def make_relation():
    duckdb = pytest.importorskip("duckdb")
    answers = pa.table(ROWS)  # noqa: F841  DuckDB finds it by its name
    return duckdb.sql("SELECT * FROM answers")


def make_reader():
    """What `cursor.fetch_record_batch()` of ADBC returns."""
    return pa.table(ROWS).to_reader(max_chunksize=2)


def make_query():
    with sqlite3.connect(":memory:") as database:
        pd.DataFrame(ROWS).to_sql("answers", database, index=False)
        return pd.read_sql("SELECT * FROM answers", database)


@pytest.mark.parametrize("make", [make_dataset, make_real_dataset, make_relation, make_reader, make_query])
def test_the_same_answers_as_from_a_dict(make):
    expected, read = (cs.Answers.from_frame(each) for each in (ROWS, make()))
    for name in ("items", "workers", "labels", "offsets", "worker", "label"):
        assert getattr(read, name).tolist() == getattr(expected, name).tolist()
    assert len(cs.fuse(make(), model="majority").labels_) == 3


def test_a_dataset_has_its_own_order_and_missing_labels():
    order = np.array([4, 2, 0])
    answers = cs.Answers.from_frame(make_dataset(order))
    assert answers.items.tolist() == ["c", "b", "a"]
    assert answers.labels.tolist() == ["no", "yes"]
    numbers = make_dataset()
    numbers.table = numbers.table.set_column(2, "label", pa.array([0, 1, -1, 0, 1]))
    with pytest.raises(InputError, match="missing"):
        cs.Answers.from_frame(numbers)
    with pytest.warns(DataWarning, match="1 of 5"):
        assert cs.Answers.from_frame(numbers, drop_missing=True).n_responses == 4


def test_splits_and_streams_are_told_apart():
    with pytest.raises(InputError, match=r"splits 'train', 'test'.*Give one of them"):
        cs.Answers.from_frame({"train": make_dataset(), "test": make_dataset()})

    streamed = type("Streamed", (), {"features": {}, "with_format": lambda self, _: self})()
    with pytest.raises(InputError, match="streaming"):
        cs.fuse(streamed)


@pytest.mark.parametrize(("name", "how"), [("a.xlsx", "read_excel"), ("a.sqlite", "DuckDB"), ("A.DB", "ADBC")])
def test_databases_and_sheets_are_read_by_others(name, how, tmp_path):
    (tmp_path / name).write_bytes(b"SQLite format 3\0" if how != "read_excel" else b"PK\x03\x04 xl/workbook.xml")
    with pytest.raises(InputError, match=how) as error:
        cs.read_answers(tmp_path / name)
    assert "CSV" in str(error.value)
