"""Folders of labels: what they replace, what they never touch, and what is left when writing stops halfway."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import consilience as cs
from command_line import run
from consilience.errors import InputError


def write_crowd(path, n_items=300):
    """Write answers of five workers about each item."""
    rng = np.random.default_rng(0)
    truth, item = rng.integers(0, 3, n_items), np.repeat(np.arange(n_items), 5)
    label = np.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(0, 3, len(item)))
    pa.parquet.write_table(pa.table({"item": item, "worker": np.tile(np.arange(5), n_items), "label": label}), path)


@pytest.fixture
def model(tmp_path):
    write_crowd(tmp_path / "answers.parquet")
    return cs.DawidSkene(calibration="none").fit(tmp_path / "answers.parquet")


def fail(*_, **__):
    raise OSError(28, "No space left on device")


def read(folder):
    return pyarrow.dataset.dataset(folder).to_table()


def test_labels_replace_labels(model, tmp_path):
    for _ in range(2):
        model.write(tmp_path / "labels")
    assert sorted(os.listdir(tmp_path)) == ["answers.parquet", "labels"]
    assert os.listdir(tmp_path / "labels") == ["part-00000.parquet"]
    assert read(tmp_path / "labels").select(["item", "label"]).to_pydict() == {
        "item": model.result_.answers.items.tolist(),
        "label": model.labels_.tolist(),
    }


def test_other_files_are_never_replaced(model, tmp_path):
    (tmp_path / "others").mkdir()
    write_crowd(tmp_path / "others" / "part-00000.parquet")  # such as Spark's
    before = (tmp_path / "others" / "part-00000.parquet").read_bytes()
    with pytest.raises(InputError, match=r"other files than labels, such as 'part-00000\.parquet'"):
        model.write(tmp_path / "others")
    assert (tmp_path / "others" / "part-00000.parquet").read_bytes() == before


@pytest.mark.parametrize("memory", [[], ["--memory", "2GB"]])
def test_the_command_never_replaces_its_input(tmp_path, memory):
    (tmp_path / "in").mkdir()
    source = tmp_path / "in" / "part-00000.parquet"
    write_crowd(source)
    before = source.read_bytes()
    assert run("fuse", tmp_path / "in", "-o", tmp_path / "in", *memory).exit_code == 2
    assert source.read_bytes() == before


def test_a_link_stays_a_link(model, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        model.write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "real").num_rows == 300


def test_old_labels_stay_if_new_ones_cannot_be_written(model, tmp_path, monkeypatch):
    model.write(tmp_path / "labels")
    before = (tmp_path / "labels" / "part-00000.parquet").read_bytes()
    monkeypatch.setattr(pyarrow.parquet, "write_table", fail)
    with pytest.raises(InputError, match="No space left"):
        model.write(tmp_path / "labels")
    assert (tmp_path / "labels" / "part-00000.parquet").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["answers.parquet", "labels"]


def test_files_of_earlier_labels_that_are_not_replaced_go(model, tmp_path):
    for _ in range(2):
        model.write(tmp_path / "labels")
        (tmp_path / "labels" / "part-00000.parquet").rename(tmp_path / "labels" / "part-00007.parquet")
    model.write(tmp_path / "labels")
    assert os.listdir(tmp_path / "labels") == ["part-00000.parquet"]
