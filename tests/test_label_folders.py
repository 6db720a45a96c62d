"""Folders of labels: what they replace, what they never touch, and what is left when writing stops halfway."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from consilience.storage import partitioning

import consilience as cs
from consilience.errors import InputError
from consilience.results import fitting, label_files
from consilience.results.label_files import name_old, save_part, write_folder


def write_crowd(path, n_items=300):
    """Write answers of five workers about each item."""
    rng = np.random.default_rng(0)
    truth, item = rng.integers(0, 3, n_items), np.repeat(np.arange(n_items), 5)
    label = np.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(0, 3, len(item)))
    pa.parquet.write_table(pa.table({"item": item, "worker": np.tile(np.arange(5), n_items), "label": label}), path)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a model that was fitted to answers on disk, in a folder whose files have the names of labels."""
    folder = tmp_path_factory.mktemp("crowd")
    (folder / "in").mkdir()
    write_crowd(folder / "in" / "part-00000.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "ROWS_PER_PARTITION", 500)
        patch.setattr(fitting, "FEW", 100)
        return cs.DawidSkene(calibration="none").fit(cs.scan_answers(folder / "in", store=folder / "stores"))


def put(number):
    """Return what writes a number into a folder."""
    return lambda folder: dict([save_part(pa.table({"label": [number]}), folder, 0)])


def read(folder):
    """Return the number in a folder."""
    return pa.dataset.dataset(folder).to_table()["label"].to_pylist()


def fail(*_):
    raise OSError(28, "No space left on device")


def test_labels_never_replace_answers(model, tmp_path):
    source = Path(model.result_.source.answers.inputs[0])
    for output in (source.parent, source, source.parent.parent):
        with pytest.raises(InputError, match="would change the input"):
            model.write(output)
    # Others that have the same names, such as Spark's.
    (tmp_path / "others").mkdir()
    write_crowd(tmp_path / "others" / "part-00000.parquet")
    with pytest.raises(InputError, match=r"other files than labels, such as 'part-00000\.parquet'"):
        model.write(tmp_path / "others")
    assert pa.parquet.read_schema(source).names == ["item", "worker", "label"]
    assert pa.parquet.read_schema(tmp_path / "others" / "part-00000.parquet").names == ["item", "worker", "label"]


@pytest.mark.parametrize("few", [100, 10_000])
def test_the_command_never_replaces_its_input(tmp_path, monkeypatch, few):
    from command_line import run

    monkeypatch.setattr(fitting, "FEW", few)
    (tmp_path / "in").mkdir()
    source = tmp_path / "in" / "part-00000.parquet"
    write_crowd(source)
    before = source.read_bytes()
    result = run("fuse", tmp_path / "in", "-o", tmp_path / "in", "--memory", "2GB", "--store", tmp_path / "stores")
    assert result.exit_code != 0
    assert source.read_bytes() == before


def test_labels_replace_labels(model, tmp_path):
    for _ in range(2):
        model.write(tmp_path / "labels")
    assert os.listdir(tmp_path) == ["labels"]
    assert all(name.startswith("part-") for name in os.listdir(tmp_path / "labels"))
    assert pa.dataset.dataset(tmp_path / "labels").count_rows() == 300


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for number in (1, 2):
        write_folder(str(tmp_path / "link"), put(number))
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "real") == [2]
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


def test_the_folder_one_is_in_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="the folder in which you are"):
        write_folder(".", put(1))


def test_old_labels_stay_if_new_ones_cannot_be_written(tmp_path, monkeypatch):
    folder = tmp_path / "labels"
    write_folder(str(folder), put(1))
    with pytest.raises(InputError, match="No space left"):
        write_folder(str(folder), fail)
    rename = Path.rename

    def refuse(path, target):
        return fail() if path.name.endswith(".writing") else rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(InputError, match="No space left"):
            write_folder(str(folder), put(2))
    assert read(folder) == [1]
    assert os.listdir(tmp_path) == ["labels"]


def test_labels_come_back_after_a_kill_between_two_renames(tmp_path):
    folder = tmp_path / "labels"
    write_folder(str(folder), put(1))
    folder.rename(name_old(folder))  # this is what is left
    with pytest.raises(InputError, match="No space left"):
        write_folder(str(folder), fail)
    assert read(folder) == [1]
    folder.rename(name_old(folder))
    write_folder(str(folder), put(2))
    assert read(folder) == [2]
    assert os.listdir(tmp_path) == ["labels"]


def test_work_that_was_done_twice_leaves_no_trace(tmp_path):
    folder = tmp_path / "labels"

    def twice(work):
        (work / ".part-00000.parquet.abc").write_bytes(b"half")
        put(1)(work)
        return put(1)(work)

    write_folder(str(folder), twice)
    assert os.listdir(folder) == ["part-00000.parquet"]
    (folder / ".part-00000.parquet.abc").write_bytes(b"late")
    write_folder(str(folder), put(2))
    assert read(folder) == [2]


def test_labels_that_are_not_complete_do_not_get_their_name(tmp_path):
    def lose(work):
        sizes = put(1)(work)
        os.truncate(work / "part-00000.parquet", 10)
        return sizes

    with pytest.raises(InputError, match="is not complete"):
        write_folder(str(tmp_path / "labels"), lose)
    assert not os.listdir(tmp_path)


def test_parts_are_written_under_another_name_first(tmp_path, monkeypatch):
    monkeypatch.setattr(label_files, "sync", fail)
    with pytest.raises(OSError, match="No space"):
        put(1)(tmp_path)
    assert not (tmp_path / "part-00000.parquet").exists()
