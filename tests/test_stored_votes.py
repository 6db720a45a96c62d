"""Soft votes on disk: what a store holds of each form, and that fits to it are those in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.errors import InputError
from test_store import _small_parts, check_same, write  # noqa: F401 (the fixture is for all tests)

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

NAMES = ["cat", "ape", "dog"]


def make_votes(form, n_items=500, n_workers=5, seed=0):
    """Return a table of soft votes, of which a fifth is missing, in random order."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    logits = rng.normal(size=(n_items, n_workers, 3))
    logits[np.arange(n_items), :, truth] += 1.2
    votes = np.exp(logits * np.array([0.3, 1, 2, 4, 1])[:n_workers, None])
    votes /= votes.sum(axis=2, keepdims=True)
    missing = rng.random((n_items, n_workers)) < 0.2
    missing[:, 0] = False
    if form == "soft-wide":
        votes[missing] = np.nan
        cells = {f"w{m}_{c}": pa.array(votes[:, m, k], from_pandas=True) for m in range(5) for k, c in enumerate(NAMES)}
        return pa.table({"item": np.arange(n_items), **cells})
    item, worker = np.nonzero(~missing)
    given, worker = votes[item, worker], np.array([f"w{m}" for m in worker])
    if form == "soft":
        columns = {f"p({c})": given[:, k] for k, c in enumerate(NAMES)}
        table = pa.table({"item": item, "worker": worker, **columns})
    else:
        labels = {"label": np.tile(NAMES, len(item)), "probability": given.ravel()}
        table = pa.table({"item": np.repeat(item, 3), "worker": np.repeat(worker, 3), **labels})
    return table.take(pa.array(rng.permutation(table.num_rows)))


def list_votes(r):
    """Return the probabilities of each item and worker, to the bit."""
    keys = zip(r.items[r.item_of_answer()].tolist(), r.workers[r.worker].tolist(), strict=True)
    return dict(zip(keys, map(bytes, r.soft), strict=True))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("form", ["soft", "soft-long", "soft-wide"])
def test_a_store_holds_the_votes_of_the_files(tmp_path, form, suffix):
    path = write(make_votes(form), tmp_path / f"votes.{suffix}")
    s, r = cs.scan_answers(path, store=tmp_path / "stores"), cs.read_answers(path)
    assert len(list(s.filled())) > 1
    assert s.is_soft
    assert (s.n_items, s.n_responses) == (r.n_items, r.n_responses)
    assert (s.workers.tolist(), s.labels.tolist()) == (r.workers.tolist(), r.labels.tolist())
    assert list_votes(s.load()) == list_votes(r)
    np.testing.assert_allclose(s.vote_shares(), r.vote_shares())
    np.testing.assert_allclose(s.label_shares(), r.label_shares())


@pytest.mark.parametrize("workers", ["temperatures", "mean", "confusion"])
def test_fits_to_votes_are_those_in_memory(tmp_path, workers):
    path = write(make_votes("soft"), tmp_path / "votes.parquet")
    s, r = cs.scan_answers(path, store=tmp_path / "stores"), cs.read_answers(path)
    model = cs.DawidSkene(workers=workers)
    check_same(tmp_path, model.fit(s), cs.DawidSkene(workers=workers).fit(r))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(cs.load(tmp_path / "model").predict(r), model.predict(r))


@pytest.mark.parametrize("form", ["soft", "soft-long", "soft-wide"])
def test_fuse_chooses_the_way_and_compares_with_the_mean_as_in_memory(tmp_path, form):
    path = write(make_votes(form), tmp_path / "votes.parquet")
    on_disk = cs.fuse(cs.scan_answers(path, store=tmp_path / "stores"))
    in_memory = cs.fuse(path)
    check_same(tmp_path, on_disk, in_memory)
    assert on_disk.soft_check_.way == in_memory.soft_check_.way
    for one, other in zip(on_disk.soft_check_.scores, in_memory.soft_check_.scores, strict=True):
        np.testing.assert_allclose(one.score, other.score)
    assert on_disk.comparison_.soft
    for name in ("held_out_gain", "expected_accuracy", "expected_gain", "n_differ"):
        np.testing.assert_allclose(getattr(on_disk.comparison_, name), getattr(in_memory.comparison_, name))


def test_certain_votes_are_answers(tmp_path):
    table = make_votes("soft")
    best = np.stack([table.column(f"p({c})").to_numpy() for c in NAMES], axis=1).argmax(axis=1)
    for k, c in enumerate(NAMES):
        table = table.set_column(2 + k, f"p({c})", pa.array((best == k).astype(float)))
    assert not cs.scan_answers(write(table, tmp_path / "a.parquet"), store=tmp_path / "stores").is_soft
    # A partition whose votes are all certain is one of soft votes like others.
    unsure = {"item": [10_000], "worker": ["w0"], "p(cat)": [0.5], "p(ape)": [0.3], "p(dog)": [0.2]}
    path = write(pa.concat_tables([table, pa.table(unsure)]), tmp_path / "b.parquet")
    s, r = cs.scan_answers(path, store=tmp_path / "stores"), cs.read_answers(path)
    assert list_votes(s.load()) == list_votes(r)
    check_same(tmp_path, cs.DawidSkene(workers="mean").fit(s), cs.DawidSkene(workers="mean").fit(r))


def test_votes_that_are_no_probabilities_are_errors_on_disk(tmp_path):
    table = make_votes("soft")
    path = write(table.set_column(2, "p(cat)", pa.array(np.full(table.num_rows, 2.0))), tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"no probabilities.*line \d+"):
        cs.scan_answers(path, store=tmp_path / "stores")
    rounded = table
    for k, c in enumerate(NAMES):
        rounded = rounded.set_column(2 + k, f"p({c})", pa.array(table.column(f"p({c})").to_numpy().round(2)))
    path = write(rounded, tmp_path / "b.parquet")
    s, r = cs.scan_answers(path, store=tmp_path / "stores", rescale=True), cs.read_answers(path, rescale=True)
    assert list_votes(s.load()) == list_votes(r)


def test_the_command_fuses_votes_on_disk(tmp_path):
    from command_line import run

    path, store = write(make_votes("soft-long"), tmp_path / "votes.csv"), ("--store", tmp_path / "stores")
    for further in (["--memory", "2GB"], ["--resume"], ["--memory", "2GB", "--format", "soft-long"]):
        result = run("fuse", path, "-o", tmp_path / "labels.csv", *store, *further)
        assert result.exit_code == 0, result.output
        assert "Soft votes" in result.output


def test_how_sure_workers_are_is_told_on_disk_too(tmp_path):
    path = write(make_votes("soft"), tmp_path / "votes.parquet")
    on_disk = cs.fuse(cs.scan_answers(path, store=tmp_path / "stores"), workers="temperatures").worker_report()
    in_memory = cs.fuse(path, workers="temperatures").worker_report()
    # The sample has about half of the items, since partitions are small here.
    np.testing.assert_allclose(on_disk["temperature"].to_numpy(), in_memory["temperature"].to_numpy(), rtol=0.1)
    kinds = [[words.split(",")[0] for words in each["sureness"].to_pylist()] for each in (on_disk, in_memory)]
    # Logits were multiplied by .3, 1, 2, 4 and 1.
    assert kinds[0] == kinds[1] == ["too cautious", "about right", "too sure", "too sure", "about right"]


def test_known_labels_and_threads(tmp_path):
    path = write(make_votes("soft"), tmp_path / "votes.parquet")
    s, r = cs.scan_answers(path, store=tmp_path / "stores"), cs.read_answers(path)
    gold = dict(zip(r.items[:40].tolist(), cs.MajorityVote().fit(r).labels_[:40].tolist(), strict=True))
    one = cs.DawidSkene(workers="temperatures").fit(s, gold=gold, engine=cs.engines.Threads(1))
    near = cs.DawidSkene(workers="temperatures").fit(r, gold=gold)
    np.testing.assert_allclose(one.temperatures_, near.temperatures_, rtol=1e-9)
    # Hidden answers of the sample, about half of the items here, choose the power: 0.807, and 0.831 by all.
    assert one.power_ == pytest.approx(near.power_, rel=0.04)
    two = cs.DawidSkene(workers="temperatures").fit(s, gold=gold, engine=cs.engines.Threads(2))
    np.testing.assert_array_equal(one.temperatures_, two.temperatures_)
