"""Soft votes: learned temperatures and the mean, against slow twins, and how `fuse` chooses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

import consilience as cs
from consilience.comparisons.ways import TELLING, choose_way
from consilience.errors import InputError, ParameterError
from consilience.inference.estimator import renew
from consilience.inference.observations import Observations
from consilience.inference.workers.temperatures import (
    LEAST_VOTE,
    PULLS,
    Pool,
    TemperatureWorkers,
)

CLASSES = ["ant", "bee", "cow"]
WAYS = ["temperatures", "mean"]


def draw(seed=0, n_items=300, sharpness=(0.2, 1.0, 1.0, 3.0, 5.0), skill=1.5, missing=0.1):
    """Draw the truth, and probabilities [item, worker, class] whose logits are too large or too small by a factor."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(CLASSES), size=n_items)
    seen = skill * np.eye(len(CLASSES))[truth][:, None] + rng.normal(size=(n_items, len(sharpness), len(CLASSES)))
    P = special.softmax(skill * seen * np.array(sharpness)[:, None], axis=2)
    P[rng.random(P.shape[:2]) < missing] = np.nan
    return truth, P


def read(P, first=0, last=None, **options):
    names = [f"i{n}" for n in range(len(P))][first:last]
    return cs.Answers.from_probabilities(P[first:last], classes=CLASSES, items=names, **options)


def accuracy(model, truth):
    return np.mean(model.posterior_.argmax(axis=1) == truth)


TRUTH, P = draw()
SOFT = read(P)
MODELS = {way: cs.DawidSkene(workers=way).fit(SOFT) for way in WAYS}


# ------------------------------------------------------------------------------------------------ what votes add up to


@pytest.mark.parametrize("weighted", [False, True])
def test_pools_and_pulls_equal_their_slow_twins(weighted):
    rng = np.random.default_rng(1)
    r = read(draw(seed=5, n_items=9, missing=0.4)[1])
    r = replace(r, share=rng.random(r.n_responses) + 0.1) if weighted else r
    workers = TemperatureWorkers.of(r, r.class_of_label, 3)
    (block,) = Observations(r).lay_out(workers)
    n = r.n_workers
    pool = Pool(rng.random(n) + 0.5, rng.normal(size=(n, 3)), rng.normal(size=3), rng.normal(size=3), 3)
    posterior, w = rng.dirichlet(np.ones(3), r.n_items), r.weights()
    found, logs = pool.count_rows(block, posterior), pool.log_evidence(block)
    counts = np.zeros((workers.n_rows, 3))
    counts[found[0]] = found[1]
    expected, labels = np.zeros((n, PULLS, 3)), np.zeros((n, 3, 3))
    for i in range(r.n_items):
        own = np.arange(r.offsets[i], r.offsets[i + 1])
        votes = block.soft[own].astype(float)
        each = pool.temperature[r.worker[own], None] * votes + pool.shift[r.worker[own]]
        total = (w[own, None] * each).sum(axis=0)
        np.testing.assert_allclose(logs[i], total + pool.common - pool.pooled if len(own) else 0.0, rtol=1e-6)
        for j, x, e in zip(own, votes, each, strict=True):
            t, said = pool.temperature[r.worker[j]], special.softmax(e + pool.common)
            others = posterior[i] / np.exp(w[j] * e)
            others /= others.sum()
            curvature = said * (x - said @ x) ** 2
            rows = w[j] * ((others - said) * x + t * curvature), w[j] * curvature, w[j] * said
            before, share = w[j] * (t + pool.shift[r.worker[j]] + pool.common), special.softmax(total + pool.common)
            whole = w[j] * ((posterior[i] - said) * x + t * curvature)
            expected[r.worker[j]] += *rows, share / len(own), before, whole
            labels[r.worker[j], r.label[j]] += w[j] * posterior[i]
    by_worker = counts.reshape(n, 3 + PULLS, 3)
    np.testing.assert_allclose(by_worker[:, 3:], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_worker[:, :3], labels, rtol=1e-9, atol=1e-12)


# ----------------------------------------------------------------------------------------------------------- the models


def test_labels_are_better_than_those_of_the_mean():
    hard = cs.DawidSkene().fit(replace(SOFT, soft=None))
    found = {way: accuracy(model, TRUTH) for way, model in MODELS.items()}
    assert found["temperatures"] > found["mean"] + 0.01
    assert found["temperatures"] > accuracy(hard, TRUTH)


def test_temperatures_undo_what_makes_workers_too_sure():
    _, even = draw(missing=0.0, sharpness=(1.0,) * 5)
    factors = np.array([0.25, 0.5, 1.0, 1.5, 2.0])
    bent = special.softmax(factors[:, None] * np.log(np.maximum(even, LEAST_VOTE)), axis=2)
    plain, other = (cs.DawidSkene(workers="temperatures").fit(read(each)) for each in (even, bent))
    ratio = plain.temperatures_ / other.temperatures_
    np.testing.assert_allclose(ratio / ratio[2], factors, rtol=0.3)
    sure = [model.worker_report().to_pandas()["temperature"].to_numpy() for model in (plain, other)]
    np.testing.assert_allclose(sure[0] / sure[1], factors, rtol=0.05)
    assert np.mean(plain.labels_ == other.labels_) > 0.97


@pytest.mark.parametrize("way", WAYS)
def test_predictions_are_those_of_the_fit(way, tmp_path):
    model = cs.DawidSkene(workers=way, calibration="none").fit(SOFT)
    np.testing.assert_allclose(model.predict_proba(SOFT), model.posterior_, atol=1e-12)
    loaded = cs.load(model.save(tmp_path / "model"))
    assert np.array_equal(loaded.predict_proba(SOFT), model.predict_proba(SOFT))
    sure = np.argsort(-np.nan_to_num(P).max(axis=2).mean(axis=1))[:50]
    part = SOFT.about(np.sort(sure))
    again = cs.Answers.from_probabilities(P[np.sort(sure)], classes=CLASSES, items=part.items)
    np.testing.assert_allclose(model.predict_proba(again), model.posterior_[np.sort(sure)], atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_ways_compose_with_all_else(way):
    gold = {f"i{n}": CLASSES[TRUTH[n]] for n in range(60)}
    features = np.eye(3)[TRUTH] + np.random.default_rng(0).normal(size=(300, 3))
    chain = np.sort(TRUTH)  # neighbours are alike
    order = np.argsort(TRUTH, kind="stable")
    model = cs.DawidSkene(workers=way)
    assert accuracy(renew(model).fit(SOFT, gold=gold), TRUTH) >= accuracy(MODELS[way], TRUTH)
    if way != "mean":  # which is so unsure that whatever else is known of the items counts for more
        assert accuracy(renew(model).fit(SOFT, features=features), TRUTH) > accuracy(MODELS[way], TRUTH) - 0.02
    inordered = cs.Answers.from_probabilities(P[order], classes=CLASSES, lengths=[300])
    assert accuracy(cs.HiddenMarkov(workers=way).fit(inordered), chain) > accuracy(MODELS[way], TRUTH)
    items = SOFT.items[order]
    graph = cs.Graph.from_edges(items[1:], items[:-1], items=SOFT.items)
    assert accuracy(cs.MarkovField(workers=way, coupling=1.0).fit(SOFT, graph=graph), TRUTH) > accuracy(
        MODELS[way], TRUTH
    )
    explained = MODELS[way].explain("i3").to_frame().to_pandas()
    assert len(explained) > 3


@pytest.mark.parametrize("way", WAYS)
def test_an_update_is_a_fit_to_all(way):
    model = cs.DawidSkene(workers=way).fit(read(P, 0, 200))
    model.update(read(P, 200))
    assert model.result_.answers.n_items == 300
    np.testing.assert_allclose(model.result_.answers.soft, SOFT.soft)
    assert np.mean(model.labels_ == MODELS[way].labels_) > 0.97
    other = P[:5].copy()
    other[0, np.flatnonzero(~np.isnan(P[0, :, 0]))[0]] = [0.2, 0.3, 0.5]
    with pytest.raises(InputError, match="answered item 'i0' before"):
        model.update(cs.Answers.from_probabilities(other, classes=CLASSES, items=[f"i{n}" for n in range(5)]))
    with pytest.raises(InputError, match="which have probabilities; these have labels"):
        model.update({"item": ["i0"], "worker": [9], "label": ["ant"]})


def test_ways_need_soft_votes():
    with pytest.raises(ParameterError, match=r"these answers are labels. Use workers='confusion'"):
        cs.DawidSkene(workers="temperatures").fit(replace(SOFT, soft=None))


# ----------------------------------------------------------------------------------------------------------- the choice


def test_the_rule():
    def choose(*scores, spread):
        noise = np.random.default_rng(0).normal(size=(2, 400)) * spread
        logs = noise - noise.mean(axis=1, keepdims=True) + np.array([[score] for _, score, _ in scores])
        return choose_way(logs, [told for _, _, told in scores], 4)

    enough = TELLING * np.log(4) + 0.01
    best, chance = "hidden votes are predicted best this way", "no other way predicts hidden votes clearly better"
    nothing = "beyond how frequent classes are, votes tell next to nothing that others confirm"
    mean = ("mean", -1.2, 0.1)
    for temperatures, spread, way, reason in (
        (("temperatures", -1.1, enough), 0.05, "temperatures", best),
        (("temperatures", -1.1, 0.01), 0.05, "mean", nothing),
        # The mean is ahead of temperatures, clearly or by chance.
        (("temperatures", -1.25, enough), 0.05, "mean", best),
        (("temperatures", -1.25, enough), 2.0, "temperatures", chance),
        (("temperatures", -1.25, 0.01), 2.0, "mean", best),
    ):
        found = choose(temperatures, mean, spread=spread)
        assert found.way == way
        assert found.describe().startswith(reason)


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_fuse_chooses_and_says_so():
    fused = cs.fuse(SOFT)
    assert (fused.workers, fused.result_.given.soft_check.way) == ("temperatures", "temperatures")
    assert str(fused.result_.given.soft_check).startswith(
        "soft votes are fused with learned temperatures: hidden votes are predicted"
    )
    assert "hidden answers are predicted better" in str(fused.comparison_)  # but the labels of four items differ
    assert "majority vote" not in str(fused.comparison_)
    assert cs.fuse(SOFT, workers="mean").result_.given.soft_check is None
    assert cs.fuse(read(P, 0, 8)).workers == "mean"  # too few to compare ways
    rng = np.random.default_rng(0)
    noise = rng.dirichlet([7, 2, 1], size=(400, 5))  # of workers who know how frequent classes are, and nothing else
    lost = cs.fuse(cs.Answers.from_probabilities(noise, classes=CLASSES))
    assert lost.workers == "mean"
    assert lost.comparison_.verdict != "better"
