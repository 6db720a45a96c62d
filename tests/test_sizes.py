"""What is too large for the memory of the machine is refused before it is asked for, with what to do instead."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, save_npz

import consilience as cs
from consilience import limits
from consilience.errors import DataWarning, InputError, ParameterError
from consilience.formats import files
from consilience.formats.arrays import read_features
from consilience.formats.writing import write_table
from consilience.inference.cells import Cells
from consilience.inference.estimator import renew
from consilience.inference.workers.rows import shrink_rows
from consilience.results.intervals import informativeness
from consilience.results.worker_report import expect_counts, tabulate_workers
from effort import all_pairs, examples


@pytest.fixture
def small_machine(monkeypatch):
    """Give the machine so many bytes."""

    def limit(n_bytes):
        monkeypatch.setattr(limits.os, "sysconf", lambda name: n_bytes if name == "SC_PHYS_PAGES" else 1)

    return limit


def many_labels(n_workers=30, n_labels=200, n_items=400, seed=0):
    """Return answers in free text: many labels, each given a few times."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n_items), 3)
    worker = (item * 7 + np.tile([0, 1, 2], n_items) * 11) % n_workers
    label = np.where(rng.random(len(item)) < 0.6, item % n_labels, rng.integers(0, n_labels, len(item)))
    return {"item": item, "worker": worker, "label": [f"text {i}" for i in label]}


# ------------------------------------------------------------------------------------------------- memory of a machine


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/a/b\n", {"a/memory.max": "1000", "a/b/memory.max": "max"}, 1000),
        ("0::/a/b\n", {"a/memory.max": "1000", "a/b/memory.max": "300"}, 300),
        ("0::/\n", {"memory.max": "700"}, 700),
        ("1:cpu:/y\n0::/a\n", {"a/memory.max": "400"}, 400),
        ("1:cpu:/x\n", {}, None),
        ("0::/\n", {"memory.max": "max"}, None),
    ],
)
def test_limits_of_control_groups(groups, files, limit, tmp_path, monkeypatch, small_machine):
    own = tmp_path / "cgroup"
    own.write_text(groups, encoding="utf-8")
    for name, content in files.items():
        file = tmp_path / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n", encoding="utf-8")
    monkeypatch.setattr(limits, "_OWN_GROUP", own)
    monkeypatch.setattr(limits, "_CGROUPS", tmp_path / "fs")
    small_machine(10**9)
    assert limits.available_memory() == (10**9 if limit is None else limit)


# ------------------------------------------------------------------------------------------------------------- fits


LARGE_FITS = {
    "DawidSkene": (cs.DawidSkene(), {}),
    "MomentMatching": (cs.MomentMatching(), {}),
    "MarkovField": (cs.MarkovField(), {"graph": cs.Graph.from_edges([0], [1], items=range(400))}),
}


@pytest.mark.parametrize("name", LARGE_FITS)
def test_matrices_too_large_are_refused_with_advice(name, small_machine):
    model, links = LARGE_FITS[name]
    r = cs.Answers.from_frame(many_labels())
    small_machine(50 << 20)
    with pytest.raises(InputError) as caught:
        renew(model).fit(r, **links)
    text = str(caught.value)
    assert "30 workers x 200 labels x 200 classes" in text
    needed, fitting = ("109.9", 134) if name == "MomentMatching" else ("146.5", 116)
    assert f"at least {needed} MiB of memory, and there are 50.0 MiB" in text
    assert f"up to about {fitting} would fit" in text
    assert "classes=" in text
    assert "MajorityVote" in text


@pytest.mark.parametrize(
    ("max_iter", "estimation", "calibration"),
    all_pairs([0, 1, 2, 5], ["em", "variational"], ["hidden answers", "none"]),
)
def test_what_fits_is_not_refused(max_iter, estimation, calibration, small_machine):
    """The estimate is below the memory that a fit was measured to take, and not by much."""
    r = cs.Answers.from_frame(many_labels(10, 100))
    options = {"estimation": estimation, "calibration": calibration, "max_iter": max_iter, "tol": 0}
    model = cs.DawidSkene(**options).fit(r)  # what is imported and compiled meanwhile does not count
    tracemalloc.start()
    model.fit(r)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    small_machine(peak)
    model.fit(r)
    small_machine(peak * 0.5)
    with pytest.raises(InputError, match="memory"):
        model.fit(r)


# ---------------------------------------------------------------------------------------------------- majority vote


def test_majority_vote_needs_no_matrices(small_machine):
    """A report and a held-out score included; only what is a matrix itself is refused."""
    r = cs.Answers.from_frame(many_labels())
    small_machine(5 << 20)
    model = cs.MajorityVote().fit(r)
    assert model.worker_report().num_rows == 30
    assert model.predict_proba(r).shape == (400, 200)
    assert np.isfinite(cs.held_out_score(cs.MajorityVote(), r).score)
    assert cs.fuse(r, model="majority").comparison_ is None
    for use in (lambda: model.confusion_, lambda: model.score(r)):
        with pytest.raises(InputError, match="30 workers x 200 labels x 200 classes"):
            use()
    small_machine(80 << 20)
    assert model.confusion_.shape == (30, 200, 200)


def sparse_crowd(seed):
    """Return votes with labels that are no class, classes that nobody said, and items of known class."""
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(1, 6))
    answers = rng.integers(-1, n_labels, (rng.integers(1, 40), rng.integers(1, 8)))
    answers[0, 0] = 0
    labels = [f"l{i}" for i in range(n_labels)]
    classes = [label for label in labels if rng.random() < 0.8 or label == "l0"] + ["new"] * int(rng.integers(0, 2))
    r = cs.Answers.from_matrix(answers, labels=labels, classes=classes)
    return r, {0: "l0"} if rng.random() < 0.5 else None


@pytest.mark.filterwarnings(
    "ignore::consilience.errors.DataWarning"
)  # a single label looks like a labelling function's
@examples(60)
@given(seed=st.integers(0, 10_000))
def test_sparse_counts_say_what_full_ones_do(seed):
    r, known = sparse_crowd(seed)
    model = cs.MajorityVote().fit(r, gold=known)
    cells, reported = expect_counts(model.result_), tabulate_workers(model.result_, None)[0]
    full = np.zeros(cells.shape)
    full[cells.worker, cells.label, cells.klass] = cells.count
    assert np.array_equal(full, model.result_.estimates.counts)
    assert np.array_equal(cells.count, Cells.of_table(full).count)
    np.testing.assert_allclose(shrink_rows(cells, r.worker, r.label), shrink_rows(full, r.worker, r.label), rtol=1e-12)
    shown = np.array(reported["informativeness"].to_pylist(), float)
    judged = ~np.isnan(shown)  # by the answers of others, or known labels
    expected = informativeness(model.confusion_, model.prior_)
    np.testing.assert_allclose(shown[judged], expected[judged], atol=1e-12)
    again = tabulate_workers(model.result_, None)[0]  # now from the full table, as for a model that was loaded
    assert all(again[name].equals(column) for name, column in reported.items())


# ------------------------------------------------------------------------------------------------------------ files


@pytest.fixture
def short_rows(monkeypatch):
    """Let rows of more than 2,000 bytes be too long."""
    monkeypatch.setattr(files, "BLOCK", 2000)


HEAD, TAIL = "item,worker,label\n1,a,x\n", "\n3,a,x\n"
LONG_ROWS = {
    "a field": ("a.csv", f"{HEAD}2,b,{'y' * 5000}{TAIL}"),
    "many fields": ("a.tsv", f"{HEAD}2,b,{',' * 5000}{TAIL}".replace(",", "\t")),
    "a quote left open": ("a.csv", f'{HEAD}2,b,"y\n' + "3,a,x\n" * 900),
    "lines in quotes": ("a.csv", f'{HEAD}2,b,"' + "y\n" * 3000 + f'"{TAIL}'),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", LONG_ROWS)
def test_a_row_too_long_is_refused(kind, compressed, short_rows, tmp_path):
    name, text = LONG_ROWS[kind]
    file = tmp_path / (name + ".gz" * compressed)
    file.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    with pytest.raises(InputError, match=r"has a row longer than .* close every quote"):
        cs.read_answers(file)


def test_a_short_ragged_file_takes_little_memory(tmp_path):
    """The second reading, which finds the faulty row, asked for 1 GiB."""
    file = tmp_path / "a.csv"
    file.write_text("item,worker,label\n1,a,x\n2,b\n", encoding="utf-8")
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(watched)
    try:
        with pytest.raises(InputError, match="line 3: expected 3 columns"):
            cs.read_answers(file)
    finally:
        pa.set_memory_pool(usual)
    assert 0 < watched.max_memory() < 150 << 20


# ---------------------------------------------------------------------------------------------------------- moments


def test_moments_that_take_long_for_few_answers_are_refused():
    """300 classes in three kilobytes took a minute."""
    label = [f"text {i}" for i in range(300)]
    with pytest.warns(DataWarning, match="300 different labels"):
        r = cs.Answers.from_frame({"item": np.arange(300) // 10, "worker": np.arange(300) % 10, "label": label})
    with pytest.raises(
        InputError, match=r"needs the moments of 30 items for all pairs of 300 classes.*Or use DawidSkene"
    ):
        cs.MomentMatching().fit(r)


# ------------------------------------------------------------------------------------------------- everything else

MANY = 10**12
ANSWERS = {"item": [1], "worker": [1], "label": [1]}
VAST = {
    "range of classes": lambda: cs.Answers.from_frame(ANSWERS, classes=range(MANY)),
    "adjacency matrix": lambda: cs.Graph.from_scipy(coo_array(([1.0], ([0], [1])), shape=(MANY, MANY))),
    "grid": lambda: cs.Graph.grid((MANY, MANY)),
    "independent items": lambda: cs.simulate.independent(MANY),
    "sequences": lambda: cs.simulate.sequences(MANY),
    "network": lambda: cs.simulate.network(MANY),
}


@pytest.mark.parametrize("case", VAST)
def test_a_small_input_that_asks_for_everything_is_refused(case):
    """By its memory, or because indices of 32 bits do not reach so far."""
    words = r"that takes at least .*iB of memory, and there are .*iB|fewer than 2\*\*31 pixels|and 2,147,483,647"
    with pytest.raises((InputError, ParameterError), match=words):
        VAST[case]()


def test_parquet_of_one_repeated_value(small_machine, tmp_path):
    file = tmp_path / "a.parquet"
    n = 200_000
    write_table(pa.table({"item": np.zeros(n, int), "worker": ["a"] * n, "label": ["x"] * n}), str(file))
    assert file.stat().st_size < 10_000
    small_machine(1 << 20)
    with pytest.raises(InputError, match="is large: that takes at least"):
        cs.read_answers(file)


def test_features_of_compressed_zeros(small_machine, tmp_path):
    file = tmp_path / "a.npz"
    save_npz(file, csr_array(np.ones((500, 500))))
    assert read_features(file).shape == (500, 500)
    small_machine(1 << 20)
    with pytest.raises(InputError, match="holds compressed arrays: that takes at least 2"):
        read_features(file)
