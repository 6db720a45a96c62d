"""Whether whole numbers are a scale: `fuse` finds out by hidden answers, and says so."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from command_line import run
from consilience.comparisons.ways import order_levels

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def draw_ratings(seed, n_items=400, n_raters=40, per_item=3):
    """Truth, and ratings by raters who are harsh or lenient, and more or less exact."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(5, n_items, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    bias, spread = rng.normal(0, 0.7, n_raters), rng.uniform(0.4, 1.2, n_raters)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_raters, per_item, False) for _ in range(n_items)])
    seen = truth[item] + bias[worker] + spread[worker] * rng.normal(size=len(item))
    label = np.clip(np.round(seen), 0, 4).astype(int)
    return truth, pd.DataFrame({"item": item, "worker": worker, "label": label})


def draw_names(seed, n_items=400, n_workers=40, n_classes=5, per_item=3):
    """Answers of workers who err evenly, with digits for names."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_workers, per_item, False) for _ in range(n_items)])
    right = rng.random(len(item)) < rng.uniform(0.5, 0.95, n_workers)[worker]
    said = np.where(right, truth[item], (truth[item] + rng.integers(1, n_classes, len(item))) % n_classes)
    return truth, pd.DataFrame({"item": item, "worker": worker, "label": said})


@pytest.mark.parametrize(
    ("classes", "order"),
    [
        ([1, 2, 3], [0, 1, 2]),
        (["3", "1", "2"], [1, 2, 0]),
        (["1", "10", "2", "3", "4", "5", "6", "7", "8", "9"], [0, 2, 3, 4, 5, 6, 7, 8, 9, 1]),
        ([-1.0, 0.0, 1.0], [0, 1, 2]),
        ([0, 1], None),
        ([1, 2, 4], None),
        (list(range(12)), None),
        ([0.5, 1.5, 2.5], None),
        (["0.5", "1.0", "1.5", "2.0"], [0, 1, 2, 3]),
        ([0.1, 0.2, 0.3], [0, 1, 2]),
        ([0.5, 1.0, 2.0], None),
        (["1", "2", "x"], None),
        (["nan", "1", "2"], None),
        (["1", "1.0", "2"], None),
    ],
)
def test_what_looks_like_a_scale(classes, order):
    r = cs.Answers.from_matrix([[0], [1]], labels=["a", "b"])
    found = order_levels(dataclasses.replace(r, classes=np.array(classes, object)))
    assert (None if found is None else found.tolist()) == order


def test_ratings_are_taken_for_a_scale_with_text_for_numbers_too(tmp_path):
    truth, table = draw_ratings(0)
    fused = cs.fuse(table)
    assert fused.workers == "ordinal"
    assert fused.result_.given.scale_check.ordered
    assert fused.findings_[0].kind == "scale"
    assert "ordered=False" in str(fused.findings_[0].remedies[0])
    # From 10 down to 6, as text: "10" comes first in the alphabet, and last on the scale.
    text = cs.fuse(table.assign(label=(10 - table.label).astype(str)))
    assert text.classes_.tolist() == ["6", "7", "8", "9", "10"]
    np.testing.assert_allclose(text.posterior_[:, ::-1], fused.posterior_, atol=1e-6)
    assert np.mean(fused.labels_ == truth) > 0.66
    loaded = cs.load(fused.save(tmp_path / "ratings.model"))
    assert loaded.result_.given.scale_check == fused.result_.given.scale_check
    assert loaded.findings_[0].kind == "scale"
    more = draw_ratings(1, n_items=50)[1].assign(item=lambda t: t.item + 1000)
    assert fused.update(more).findings_[0].kind == "scale"


def test_a_scale_that_is_declared_is_not_asked_for():
    table = draw_ratings(0, n_items=100)[1]
    scale = cs.Answers.from_frame(table, ordered=True)
    assert cs.fuse(table, ordered=False).result_.given.scale_check is None
    for given in ({}, {"model": "dawid-skene"}):
        fused = cs.fuse(scale, **given)
        assert fused.workers == "ordinal"
        assert fused.result_.given.scale_check is None
        assert "scale" not in [each.kind for each in fused.findings_]
    assert cs.fuse(scale, workers="confusion").workers == "confusion"
    assert cs.fuse(scale, model="majority").comparison_ is None


def test_names_that_are_numbers_are_no_scale(tmp_path):
    """Also on the command line, which tells what to do otherwise."""
    for seed in range(3):
        _, table = draw_names(seed, n_items=200)
        fused = cs.fuse(table)
        assert fused.workers == "confusion"
        assert not fused.result_.given.scale_check.ordered
        assert "scale" not in [each.kind for each in fused.findings_]
    table.to_csv(tmp_path / "digits.csv", index=False)
    told = run("fuse", str(tmp_path / "digits.csv"), "-o", str(tmp_path / "labels.csv"))
    assert "names without an order" in " ".join(told.stdout.split())
    told = run("fuse", str(tmp_path / "digits.csv"), "-o", str(tmp_path / "labels.csv"), "--json")
    scale = json.loads(told.stdout)["scale"]
    assert not scale["ordered"]
    # Different answers are no nearer to each other than at random, and nothing was fitted to find out.
    assert scale["lead"] is None
    assert np.isnan(fused.result_.given.scale_check.lead)


def test_of_many_answers_some_are_looked_at(monkeypatch):
    """The decision does not depend on how many there are; items in sequences are looked at one by one."""
    _, table = draw_ratings(0)
    whole = cs.fuse(table).result_.given.scale_check
    in_order = table.assign(sequence=table.item // 10, position=table.item % 10).drop(columns="item")
    assert cs.fuse(in_order, max_iter=2).result_.given.scale_check.ordered
    monkeypatch.setattr("consilience.comparisons.ways.MOST_ANSWERS_COMPARED", 900)
    part = cs.fuse(table).result_.given.scale_check
    assert part.ordered
    assert part != whole
