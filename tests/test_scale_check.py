"""Whether whole numbers are a scale: `fuse` finds out by hidden answers, and says so."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import consilience as cs
from benchmarks.real_crowds import is_present, load
from command_line import run
from consilience.answers.answers import to_long
from consilience.checks.ways import check_scale, order_levels
from consilience.engines import open_engine
from consilience.results.comparison import LEAST_LEAD, ScaleCheck
from effort import rest_robust

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


def name_digits(naming, n_items=400, n_workers=30, per_item=4):
    """Handwritten digits under random names, of which 1 and 7, 4 and 9, and 3 and 8 look alike."""
    alike = np.array([0, 7, 2, 8, 9, 5, 6, 1, 3, 4])
    truth, names = naming.integers(10, size=n_items), naming.permutation(10)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([naming.choice(n_workers, per_item, False) for _ in range(n_items)])
    kind, right = naming.random(len(item)), naming.uniform(0.6, 0.9, n_workers)[worker]
    said = np.where(
        kind < right, truth[item], np.where(kind < 0.95, alike[truth[item]], naming.integers(10, size=len(item)))
    )
    table = pd.DataFrame({"item": item, "worker": worker, "label": names[said]})
    return table, dict(enumerate(names[truth].tolist()))


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
    assert fused.scale_check_.ordered
    assert fused.findings_[0].kind == "scale"
    assert "ordered=False" in str(fused.findings_[0].remedies[0])
    # From 10 down to 6, as text: "10" comes first in the alphabet, and last on the scale.
    text = cs.fuse(table.assign(label=(10 - table.label).astype(str)))
    assert text.classes_.tolist() == ["6", "7", "8", "9", "10"]
    np.testing.assert_allclose(text.posterior_[:, ::-1], fused.posterior_, atol=1e-6)
    assert np.mean(fused.labels_ == truth) > 0.66
    loaded = cs.load(fused.save(tmp_path / "ratings.model"))
    assert loaded.scale_check_ == fused.scale_check_
    assert loaded.findings_[0].kind == "scale"
    more = draw_ratings(1, n_items=50)[1].assign(item=lambda t: t.item + 1000)
    assert fused.update(more).findings_[0].kind == "scale"


@pytest.mark.parametrize("given", [{"workers": "confusion"}, {"model": "dawid-skene"}, {"model": cs.DawidSkene()}])
def test_who_names_workers_or_a_model_gets_them(given):
    table = draw_ratings(0, n_items=60)[1]
    fused = cs.fuse(table, **given)
    assert fused.workers == "confusion"
    assert fused.scale_check_ is None


def test_a_scale_that_is_declared_is_not_asked_for():
    table = draw_ratings(0, n_items=100)[1]
    scale = cs.Answers.from_frame(table, ordered=True)
    assert cs.fuse(table, ordered=False).scale_check_ is None
    for given in ({}, {"model": "dawid-skene"}):
        fused = cs.fuse(scale, **given)
        assert fused.workers == "ordinal"
        assert fused.scale_check_ is None
        assert "scale" not in [each.kind for each in fused.findings_]
    assert cs.fuse(scale, workers="confusion").workers == "confusion"
    assert cs.fuse(scale, model="majority").comparison_ is None


def test_names_that_are_numbers_are_no_scale(tmp_path):
    """Also on the command line, which tells what to do otherwise."""
    for seed in range(3):
        _, table = draw_names(seed, n_items=200)
        fused = cs.fuse(table)
        assert fused.workers == "confusion"
        assert not fused.scale_check_.ordered
        assert "scale" not in [each.kind for each in fused.findings_]
    table.to_csv(tmp_path / "digits.csv", index=False)
    told = run("fuse", str(tmp_path / "digits.csv"), "-o", str(tmp_path / "labels.csv"))
    assert "names without an order" in " ".join(told.stdout.split())
    told = run("fuse", str(tmp_path / "digits.csv"), "-o", str(tmp_path / "labels.csv"), "--json")
    scale = json.loads(told.stdout)["scale"]
    assert not scale["ordered"]
    # Different answers are no nearer to each other than at random, and nothing was fitted to find out.
    assert scale["lead"] is None
    assert np.isnan(fused.scale_check_.lead)


@pytest.mark.robust
def test_simulated_ratings():
    right, off = [], []
    for seed in range(10):
        truth, table = draw_ratings(seed)
        fused = cs.fuse(table)
        median = (np.cumsum(fused.posterior_, axis=1) < 0.5).sum(axis=1)
        right.append(np.mean(fused.labels_ == truth))
        off.append(np.abs(median - truth).mean())
    assert np.mean(right) >= 0.68
    assert np.mean(off) <= 0.33


def test_the_rule():
    assert ScaleCheck(0.04, 0.01).ordered
    assert not ScaleCheck(0.04, 0.014).ordered
    assert not ScaleCheck(LEAST_LEAD, 0.001).ordered


def test_of_many_answers_some_are_looked_at(monkeypatch):
    """The decision does not depend on how many there are; items in sequences are looked at one by one."""
    _, table = draw_ratings(0)
    whole = cs.fuse(table).scale_check_
    in_order = table.assign(sequence=table.item // 10, position=table.item % 10).drop(columns="item")
    assert cs.fuse(in_order, max_iter=2).scale_check_.ordered
    monkeypatch.setattr("consilience.checks.ways.MOST_ANSWERS", 900)
    part = cs.fuse(table).scale_check_
    assert part.ordered
    assert part != whole


def test_few_answers_of_few_workers():
    """Nobody is clearly of any type, and none is left out."""
    table = {"item": [1, 2, 3] * 8, "worker": [0, 1] * 12, "label": [1, 2, 3] * 8, "weight": [1.0] * 24}
    assert cs.DawidSkene(workers="ordinal").fit({name: table[name][:1] for name in table}).labels_.tolist() == [1]


def test_soft_votes_and_silence_are_no_ratings():
    rng = np.random.default_rng(0)
    soft = cs.Answers.from_probabilities(rng.dirichlet(np.ones(3), (40, 3)))
    assert cs.fuse(soft).scale_check_ is None
    votes = rng.integers(0, 3, (60, 4))
    silent = cs.Answers.from_matrix(votes, abstain="answer", background=0)
    assert cs.fuse(silent).scale_check_ is None


def name_classes(name, naming):
    """A crowd with whole numbers for the names of its classes, and its known labels."""
    crowd = load(name)
    classes = crowd.responses.classes.tolist()
    numbers = dict(zip(classes, naming.permutation(len(classes)).tolist(), strict=True))
    table = to_long(crowd.responses).to_pandas()
    gold = {item: numbers[label] for item, label in crowd.gold.items() if label in numbers}
    return table.assign(label=table.label.map(numbers).astype(int)), gold


def share_right(fused, gold):
    """The share of right labels."""
    items = fused.responses_.items.tolist()
    return np.mean(
        [label == gold[item] for item, label in zip(items, fused.labels_.tolist(), strict=True) if item in gold]
    )


@pytest.mark.parametrize(
    ("name", "n_namings"), rest_robust([("dog", 2), ("dog", 10), ("music", 10), ("web", 10), ("digits", 10)])
)
def test_names_of_classes_are_no_scale_where_that_costs_anything(name, n_namings):
    if name != "digits" and not is_present(name):
        pytest.skip("needs real data")
    naming = np.random.default_rng(0)
    for _ in range(n_namings):
        table, gold = name_digits(naming) if name == "digits" else name_classes(name, naming)
        r = cs.Answers.from_frame(table)
        with open_engine(None) as engine:
            found = check_scale(cs.DawidSkene(), r, order_levels(r), engine)
        if found is not None and found.ordered:
            scale, plain = cs.fuse(table), cs.fuse(table, workers="confusion")
            assert share_right(scale, gold) >= share_right(plain, gold) - max(0.002, 1 / len(gold))


@pytest.mark.robust
def test_grades_of_relevance_are_a_scale_though_nobody_says_so():
    if not is_present("web"):
        pytest.skip("needs real data")
    crowd = load("web")
    fused = cs.fuse(crowd.responses)
    assert fused.workers == "ordinal"
    items = crowd.responses.items.tolist()
    rows = [row for row, item in enumerate(items) if item in crowd.gold]
    truth = np.array([int(crowd.gold[items[row]]) for row in rows])
    posterior = fused.posterior_[rows]
    label, median = posterior.argmax(axis=1), (np.cumsum(posterior, axis=1) < 0.5).sum(axis=1)
    assert np.mean(label == truth) >= 0.850
    assert np.abs(median - truth).mean() <= 0.185
    assert cohen_kappa_score(label, truth, weights="quadratic") >= 0.92
    assert -np.log(posterior[np.arange(len(truth)), truth]).mean() <= 0.42


def test_half_stars_are_taken_for_a_scale():
    _, table = draw_ratings(0)
    fused = cs.fuse(table.assign(label=table.label / 2 + 0.5))
    assert fused.workers == "ordinal"
    assert "The classes are numbers at equal steps" in str(fused.findings_[0])
    assert "real crowds" not in fused.undecided(0.9).describe()  # of ratings there is no record


def test_of_two_levels_nothing_is_said_but_how_many_are_right():
    _, table = draw_ratings(0)
    fused = cs.fuse(table.assign(label=(table.label > 1).astype(int)), ordered=True)
    assert "level off" not in fused.comparison_.describe_expected()
