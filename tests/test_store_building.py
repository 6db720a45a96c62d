"""How stores are built: what they are known by, files that change, several builds at once, mixed types."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import consilience as cs
from consilience.errors import InputError
from consilience.store import building, partitioning
from consilience.store.claiming import claim_beside, remove_abandoned

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def scan(path, tmp_path, **options):
    """Build a store."""
    return cs.scan_responses(path, store=tmp_path / "stores", **options)


def write_parquet(path, **columns):
    """Write a table of columns to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(pa.table(columns), path)
    return path


def write_crowd(path, n_items=400, seed=0):
    """Write answers of three workers about each item."""
    item = np.repeat(np.arange(n_items), 3)
    label = np.random.default_rng(seed).integers(0, 3, len(item))
    return write_parquet(path, item=item, worker=np.tile(["a", "b", "c"], n_items), label=label)


def list_answers(r):
    """Return item, worker, label of each answer, in order, with the types of the columns."""
    rows = zip(np.repeat(r.items, np.diff(r.offsets)), r.workers[r.worker], r.labels[r.label], strict=True)
    return sorted((str(item), str(worker), str(label)) for item, worker, label in rows)


def test_a_store_is_known_by_the_format_too(tmp_path):
    path = tmp_path / "x.txt"
    # Read by commas, item is 1; by tabs, it is A.
    path.write_text("item\tworker\tlabel\tq,item,worker,label\nA\tB\tC\tz,1,ann,cat\n")
    for format in ("csv", "tsv"):
        found = scan(path, tmp_path, format=format).load()
        assert list_answers(found) == list_answers(cs.read_responses(path, format=format))


@pytest.mark.parametrize(
    "name",
    [
        "consilience.store.building.__version__",
        "consilience.data.blocks.BLOCK_SIZE",
        "consilience.store.partitioning.ROWS_PER_PARTITION",
    ],
)
def test_a_store_is_known_by_what_decides_its_blocks(tmp_path, monkeypatch, name):
    path = write_crowd(tmp_path / "a.parquet")
    first = scan(path, tmp_path).folder
    monkeypatch.setattr(name, 100)
    assert scan(path, tmp_path).folder != first


def test_files_that_change_while_they_are_read_make_no_store(tmp_path, monkeypatch):
    path = write_crowd(tmp_path / "a.parquet")
    with monkeypatch.context() as patch:

        def change(*arguments):
            write_crowd(path, n_items=401)
            return make_partition(*arguments)

        make_partition = building.make_partition
        patch.setattr(building, "make_partition", change)
        with pytest.raises(InputError, match="it changed"):
            scan(path, tmp_path)
    assert not list((tmp_path / "stores").iterdir())
    assert scan(path, tmp_path).n_items == 401


def test_threads_may_build_the_same_store_at_once(tmp_path, monkeypatch):
    path = write_crowd(tmp_path / "a.parquet")
    monkeypatch.setattr(partitioning, "ROWS_PER_PARTITION", 200)
    meet, found = threading.Barrier(4, timeout=20), []

    def wait(*arguments):
        meet.wait()  # until everybody builds
        return split_rows(*arguments)

    split_rows = building.split_rows
    monkeypatch.setattr(building, "split_rows", wait)
    runs = [threading.Thread(target=lambda: found.append(scan(path, tmp_path).load())) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [each.n_items for each in found] == [400] * 4
    assert len(list((tmp_path / "stores").iterdir())) == 1


def test_only_what_has_no_owner_is_removed(tmp_path):
    pytest.importorskip("fcntl", reason="locks of files are those of POSIX")
    folder = tmp_path / "store"
    with claim_beside(folder, "building") as mine:
        (mine / "rows").write_bytes(b"half")
        remove_abandoned(tmp_path, "building")
        assert (mine / "rows").exists()
        kept = mine.rename(tmp_path / "kept")
    assert list(tmp_path.iterdir()) == [kept]
    # This is what a run that died leaves: a folder whose lock nobody holds.
    kept.rename(mine)
    with claim_beside(tmp_path / "another store", "building"):
        assert not mine.exists()
