"""Metrics of labels on a scale, compared with other packages and with slow counterparts."""

import json

import krippendorff
import numpy as np
import pytest
from scipy.stats import spearmanr, t
from sklearn.metrics import cohen_kappa_score

import consilience as cs
from command_line import run
from consilience.inference.observations import assign_groups, count_once


def draw_ratings(seed, n_items=60, n_workers=5, n_levels=5):
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_levels, n_items, p=np.arange(n_levels, 0, -1) / sum(range(n_levels + 1)))
    seen = truth[:, None] + rng.normal(0, 1, (n_items, n_workers))
    ratings = np.clip(np.round(seen), 0, n_levels - 1).astype(int)
    return np.where(rng.random(ratings.shape) < 0.3, -1, ratings)


def as_reliability(matrix, values=None):
    found = matrix.T.astype(float)
    if values is not None:
        found = np.where(matrix.T >= 0, np.array(values, float)[matrix.T], np.nan)
    found[matrix.T < 0] = np.nan
    return found


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(3))
def test_alpha_is_that_of_another_package(level, seed):
    matrix = draw_ratings(seed)
    ours = cs.metrics.krippendorff_alpha(cs.Answers.from_matrix(matrix, ordered=True), level)
    theirs = krippendorff.alpha(reliability_data=as_reliability(matrix), level_of_measurement=level)
    assert ours == pytest.approx(theirs, abs=1e-12)


def slow_alpha(matrix, weight, level):
    """Alpha by the coincidences of all pairs of answers, where items have weights."""
    n_levels = matrix.max() + 1
    observed, own = np.zeros((2, n_levels, n_levels))
    mass = np.zeros(n_levels)
    for row, w in zip(matrix, weight, strict=True):
        said = row[row >= 0]
        if len(said) < 2:
            continue
        counts = np.bincount(said, minlength=n_levels).astype(float)
        mass += w * counts
        observed += w * (np.outer(counts, counts) - np.diag(counts)) / (len(said) - 1)
        own += w * np.diag(counts)
    expected = np.outer(mass, mass) - own
    middle = np.cumsum(mass) - mass / 2 if level == "ordinal" else np.arange(n_levels)
    distance = (middle[:, None] - middle) ** 2
    return 1 - (observed * distance).sum() / observed.sum() / ((expected * distance).sum() / expected.sum())


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_the_interval_of_alpha_on_a_scale_is_an_infinitesimal_jackknife(level):
    matrix = draw_ratings(3, n_items=40)
    n, ones = len(matrix), np.ones(len(matrix))
    used = np.flatnonzero((matrix >= 0).sum(axis=1) >= 2)
    influence = []
    for i in used:
        step = np.zeros(n)
        step[i] = 1e-5
        influence.append((slow_alpha(matrix, ones + step, level) - slow_alpha(matrix, ones - step, level)) / 2e-5)
    alpha, error = slow_alpha(matrix, ones, level), np.std(influence, ddof=1) * np.sqrt(len(used))
    reach = t.ppf(0.975, len(used) - 1) * error / (1 - alpha**2)
    ends = np.tanh(np.arctanh(alpha) + np.array([0, -reach, reach]))
    found = cs.metrics.krippendorff_interval(cs.Answers.from_matrix(matrix, ordered=True), level)
    assert found == pytest.approx(ends, abs=1e-6)


def test_workers_who_count_once_are_no_pair_on_a_scale():
    matrix = draw_ratings(5)
    doubled = np.column_stack([matrix, matrix[:, 0]])
    r = cs.Answers.from_matrix(doubled, ordered=True)
    once = count_once(r, assign_groups([[0, 5]], 6))
    plain = cs.Answers.from_matrix(matrix, ordered=True)
    for level in ("ordinal", "interval"):
        # Two copies are one worker, whose answers count as often as those of anybody else.
        alpha = cs.metrics.krippendorff_interval(plain, level)
        assert cs.metrics.krippendorff_interval(once, level) == pytest.approx(alpha)
        assert cs.metrics.krippendorff_alpha(r, level) > alpha.alpha + 0.01


@pytest.mark.parametrize("seed", range(3))
def test_scores_on_a_scale_are_those_of_other_packages(seed):
    rng = np.random.default_rng(seed)
    gold = rng.integers(5, size=200)
    labels = np.clip(gold + rng.integers(-1, 2, 200), 0, 4)
    kappa = cohen_kappa_score(gold, labels, weights="quadratic", labels=range(5))
    assert cs.metrics.quadratic_kappa(gold, labels) == pytest.approx(kappa)
    names = np.array(["none", "poor", "fair", "good", "full"])
    assert cs.metrics.quadratic_kappa(names[gold], names[labels], classes=names) == pytest.approx(kappa)
    assert cs.metrics.mean_absolute_error(names[gold], names[labels], classes=names) == np.abs(gold - labels).mean()
    assert cs.metrics.rank_correlation(gold, labels) == pytest.approx(spearmanr(gold, labels).statistic)


def test_evaluate_scores_levels():
    gold = {1: "low", 2: "high", 3: "mid", 4: "low"}
    labels = {"item": [1, 2, 3, 4], "label": ["low", "mid", "mid", "high"]}
    levels = ["low", "mid", "high"]
    assert cs.evaluate(labels, gold).within_one is None
    scale = cs.evaluate(labels, gold, ordered=True, classes=levels)
    assert (scale.within_one, scale.absolute_error) == (0.75, 0.75)
    codes = [[levels.index(each) for each in side] for side in (gold.values(), labels["label"])]
    assert scale.quadratic_kappa == pytest.approx(cohen_kappa_score(*codes, weights="quadratic"))
    assert scale.rank_correlation == pytest.approx(spearmanr(*codes).statistic)
    # The columns of probabilities are in the order of the classes.
    columns = {f"p({name})": [share] * 4 for name, share in zip(levels, (0.5, 0.25, 0.25), strict=True)}
    ranked = cs.evaluate(labels | columns, gold, ordered=True)
    assert (ranked.quadratic_kappa, ranked.within_one) == (scale.quadratic_kappa, scale.within_one)
    with pytest.raises(cs.errors.InputError, match="not known which level is higher"):
        cs.evaluate(labels, gold, ordered=True)
    with pytest.raises(cs.errors.InputError, match="not among the classes"):
        cs.evaluate(labels, gold, ordered=True, classes=levels[:2])


def test_the_command_evaluates_levels(tmp_path):
    (tmp_path / "labels.csv").write_text("item,label\n1,low\n2,mid\n3,mid\n4,high\n")
    (tmp_path / "gold.csv").write_text("item,label\n1,low\n2,high\n3,mid\n4,low\n")
    files = [str(tmp_path / name) for name in ("labels.csv", "gold.csv")]
    levels = ["--ordered", "--classes", "low,mid,high"]
    shown = run("evaluate", *files, *levels)
    assert "Within one level" in shown.output
    assert "Quadratic kappa" in shown.output
    told = run("evaluate", *files, *levels, "--json")
    assert json.loads(told.output)["within_one"] == 0.75


def test_headline_of_ordered_classes():
    crowd = cs.simulate.ratings(150, n_raters=15, seed=2)
    fused = cs.fuse(crowd.responses)
    c = fused.comparison_
    away = np.abs(np.arange(5) - fused.posterior_.argmax(axis=1)[:, None])
    assert c.within_one == pytest.approx(np.mean(np.sum(fused.posterior_ * (away <= 1), axis=1)))
    assert c.absolute_error == pytest.approx(np.mean(np.sum(fused.posterior_ * away, axis=1)))
    assert c.within_one_low <= c.within_one <= c.within_one_high <= 1
    assert 0 <= c.absolute_error_low <= c.absolute_error <= c.absolute_error_high
    assert "at most one level off" in c.describe_expected()
    off = np.abs(fused.posterior_.argmax(axis=1) - crowd.truth)
    assert c.absolute_error_low <= off.mean() <= c.absolute_error_high
    assert c.within_one_low <= np.mean(off <= 1) <= c.within_one_high
