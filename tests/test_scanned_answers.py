"""Where the bytes are makes no difference: answers that were scanned give the same bits as answers that were read."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import consilience as cs
from consilience import limits
from consilience.formats import partition, scanning

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


@pytest.fixture(autouse=True)
def sort_everything(monkeypatch, tmp_path):
    """Sort small files too, in parts of some 50 rows, and map small arrays."""
    monkeypatch.setattr(scanning, "LEAST_ROWS", 1)
    monkeypatch.setattr(partition, "SORTED_PART", 50 * partition.ROW / limits.available_memory())
    monkeypatch.setattr(limits, "MAPPED_PART", 1e-9)
    monkeypatch.setenv("CONSILIENCE_STORES", str(tmp_path / "stores"))


def draw_table(in_sequences=False, n_items=400):
    """Answers in random order by five to twelve workers of mixed skill about three ordered classes."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n_items)
    said = rng.random((n_items, 12)) < 0.45
    item, worker = np.nonzero(said)
    right = rng.random(len(item)) < np.linspace(0.45, 0.95, 12)[worker]
    order = rng.permutation(len(item))
    item, worker = item[order], worker[order]
    label = np.where(right[order], truth[item], rng.integers(0, 3, len(item)))
    keys = {"sequence": item // 20, "position": item % 20} if in_sequences else {"item": item}
    return pa.table({**keys, "worker": worker, "label": label})


MODELS = {
    "vote": cs.MajorityVote(),
    "confusion": cs.DawidSkene(),
    "one-coin": cs.DawidSkene(workers="one-coin"),
    "ordinal": cs.DawidSkene(workers="ordinal"),
    "moments": cs.MomentMatching(),
    "chain": cs.HiddenMarkov(),
    "sequential": cs.HiddenMarkov(workers="sequential"),
    "fuse": None,
}


@pytest.mark.parametrize("name", MODELS)
def test_same_bits(name, tmp_path):
    ordered, in_sequences = name == "ordinal", name in ("chain", "sequential")
    pq.write_table(draw_table(in_sequences), tmp_path / "answers.parquet")
    gold = None if in_sequences else {0: 1, 7: 2, 9: 0}
    found = []
    for read in (cs.read_answers, cs.scan_answers):
        r = read(tmp_path / "answers.parquet", ordered=ordered)
        fitted = cs.fuse(r, gold=gold) if name == "fuse" else MODELS[name].fit(r, gold=gold)
        fitted.write(tmp_path / "labels.parquet")
        table = fitted.worker_report()
        found.append((r.items.tolist(), fitted.posterior_, fitted.confusion_, table.column_names, table.to_pydict()))
        found[-1] += (pq.read_table(tmp_path / "labels.parquet"),)
    (items, posterior, confusion, *tables), other = found
    assert items == other[0]
    np.testing.assert_array_equal(posterior, other[1])
    np.testing.assert_array_equal(confusion, other[2])
    assert repr(tables) == repr(list(other[3:]))


class Interrupted(Exception):
    """What a fit is interrupted by."""


@pytest.mark.parametrize("workers", ["confusion", "one-coin", "ordinal"])
def test_a_fit_goes_on_where_it_stood(workers, tmp_path, caplog):
    pq.write_table(draw_table(), tmp_path / "answers.parquet")

    def fit(stops=None, resume=False):
        def stop(progress):
            if progress.iteration == stops:
                raise Interrupted

        answers = cs.scan_answers(tmp_path / "answers.parquet", ordered=workers == "ordinal", resume=resume)
        return cs.DawidSkene(workers=workers, tol=0, max_iter=12, callback=stop).fit(answers)

    whole = fit()
    for file in (tmp_path / "stores").rglob("fit-*.npz"):
        file.unlink()
    with pytest.raises(Interrupted):
        fit(stops=8)
    with caplog.at_level("INFO", logger="consilience"):
        model = fit(resume=True)
    assert "Going on after iteration 7" in caplog.text
    np.testing.assert_array_equal(model.trace_, whole.trace_)
    np.testing.assert_array_equal(model.posterior_, whole.posterior_)


FORMS_OF_IDS = {
    "far apart": lambda ids: ids * 10**12,
    "negative": lambda ids: ids.astype(np.int16) - 200,
    "without a sign": lambda ids: ids.astype(np.uint64) + 2**63,
    "text": lambda ids: pa.array([f"é{each}" for each in ids]),
    "categories": lambda ids: pa.array([f"{each}" for each in ids]).dictionary_encode(),
}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("form", FORMS_OF_IDS)
def test_same_answers_with_all_kinds_of_ids(form, suffix, tmp_path):
    """Whether they are coded by a table or by DuckDB; some labels are missing."""
    table, path = draw_table(), str(tmp_path / "answers") + suffix
    columns = {name: FORMS_OF_IDS[form](table[name].to_numpy()) for name in ("item", "worker")}
    label = table["label"].to_numpy()
    table = pa.table({**columns, "label": pa.array(label, mask=np.arange(len(label)) % 7 == 0)})
    pq.write_table(table, path) if suffix == ".parquet" else pyarrow.csv.write_csv(table, path)
    plain, scanned = (read(path, drop_missing=True) for read in (cs.read_answers, cs.scan_answers))
    for name in ("items", "workers", "labels", "offsets", "worker", "label"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(scanned, name))


@pytest.mark.parametrize("memory", [1, 3_000, 10**9])
@pytest.mark.parametrize("within", [None, "place"])
def test_parts_are_sorted_as_the_whole(within, memory, tmp_path, monkeypatch):
    """Also where rows come in any order, one item has most of them, and some have none."""
    monkeypatch.setattr(partition, "SORTED_PART", 1.0)
    rng = np.random.default_rng(0)
    item = np.where(rng.random(1000) < 0.5, 3, rng.integers(-1, 40, 1000)).astype(np.int32)
    item = np.unique(item, return_inverse=True)[1].astype(np.int32) - np.int32(1)  # no number is left out
    columns = {"item": item, "place": rng.integers(0, 5, 1000).astype(np.int32), "rows": rng.permutation(1000)}
    kinds = {name: str(column.dtype) for name, column in columns.items()}
    parts = partition.divide_items(tmp_path, kinds, "item", np.bincount(item[item >= 0]), 1000, memory)
    parts.write([[column[first : first + 300] for column in columns.values()] for first in range(0, 1000, 300)])
    parts.sort(within)
    keys = [columns[name] for name in ("rows", within, "item") if name]
    order = np.lexsort((*keys, item < 0))
    for name, column in columns.items():
        np.testing.assert_array_equal(np.fromfile(tmp_path / f"{name}.numbers", column.dtype), column[order])


def test_other_files_are_sorted_anew(tmp_path):
    for labels in ("cat", "dog"):
        (tmp_path / "answers.csv").write_text(f"item,worker,label\n1,ann,{labels}\n1,bob,{labels}\n")
        for _ in range(2):
            assert cs.scan_answers(tmp_path / "answers.csv").labels.tolist() == [labels]
    assert len(list((tmp_path / "stores").iterdir())) == 2


def test_soft_votes_and_tags(tmp_path):
    rng = np.random.default_rng(0)
    votes = rng.dirichlet([1, 1], 60)
    table = {"item": np.arange(60) % 20, "worker": np.arange(60) // 20, "p(a)": votes[:, 0], "p(b)": votes[:, 1]}
    pq.write_table(pa.table(table), tmp_path / "soft.parquet")
    plain, scanned = (read(tmp_path / "soft.parquet") for read in (cs.read_answers, cs.scan_answers))
    np.testing.assert_array_equal(plain.soft, scanned.soft)
    tags = {"item": [2, 1, 2], "worker": ["ann", "ann", "bob"], "tags": ["x;y", "y", ""]}
    pq.write_table(pa.table(tags), tmp_path / "tags.parquet")
    assert repr(cs.scan_answers(tmp_path / "tags.parquet", separator=";")) == repr(
        cs.read_tags(tmp_path / "tags.parquet", separator=";")
    )


def test_a_fit_goes_on_only_with_what_it_was_about(tmp_path):
    pq.write_table(draw_table(), tmp_path / "answers.parquet")
    prior = np.tile([0.1, 0.2, 0.7], (400, 1))
    cs.DawidSkene().fit(cs.scan_answers(tmp_path / "answers.parquet"))
    for asked in ({"item_prior": prior}, {"gold": {0: 1}}):
        again = cs.scan_answers(tmp_path / "answers.parquet", resume=True)
        found = [cs.DawidSkene().fit(r, **asked) for r in (again, cs.read_answers(tmp_path / "answers.parquet"))]
        np.testing.assert_array_equal(found[0].posterior_, found[1].posterior_)
    assert cs.DawidSkene(max_iter=3).fit(again).n_iter_ == 3
    for file in (tmp_path / "stores").rglob("fit-*.npz"):
        file.write_bytes(b"damaged")
    cs.DawidSkene().fit(again)


def test_the_copy_may_be_deleted(tmp_path):
    pq.write_table(draw_table(), tmp_path / "answers.parquet")
    r = cs.scan_answers(tmp_path / "answers.parquet")
    shutil.rmtree(tmp_path / "stores")
    assert cs.DawidSkene().fit(r).converged_
    cs.scan_answers(tmp_path / "answers.parquet")
    next((tmp_path / "stores").rglob("c0.numbers")).unlink()
    assert cs.scan_answers(tmp_path / "answers.parquet").n_items == r.n_items


def test_faults_are_told_as_those_of_a_file(tmp_path):
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"item": [7], "worker": [1], "label": [1]}), tmp_path / "files/1.parquet")
    pq.write_table(pa.table({"item": [7], "worker": [2]}), tmp_path / "files/2.parquet")
    (tmp_path / "ragged.csv").write_text("item,worker,label\n1,ann,cat\n1,bob\n")
    pq.write_table(pa.table({"item": [7], "worker": [1], "label": pa.nulls(1, pa.string())}), tmp_path / "none.parquet")
    for name in ("files", "ragged.csv", "none.parquet"):
        said = []
        for read in (cs.read_answers, cs.scan_answers):
            with pytest.raises(cs.errors.InputError) as error:
                read(tmp_path / name, drop_missing=True)
            said.append(str(error.value))
        assert said[0] == said[1]


def test_a_full_disk_is_an_error(monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", refuse)
    with pytest.raises(cs.errors.InputError, match="TMPDIR"), limits.keep_to(1000):
        limits.allocate((20_000,))
