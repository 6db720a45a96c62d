"""Weights: how much each answer counts, compared with the others.

`tests/oracles.py` holds the dense twin, which `test_dawid_skene.py` compares with; here are the parts beside it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
import oracles
from consilience.inference.observations import Observations
from consilience.inference.workers import WORKERS

ESTIMATIONS = ("em", "variational")
HARD = ("confusion", "one-coin", "ordinal", "nominal")


def crowd(seed=0, n_items=60, n_workers=6, n_classes=3, share=0.7, spread=True, sequences=False, **options):
    """Return answers with weights, of which some are spread over two labels."""
    rng = np.random.default_rng(seed)
    answers, *_ = oracles.simulate(seed, n_items=n_items, n_workers=n_workers, n_classes=n_classes, share=share)
    rows = []
    for i, m in np.argwhere(answers >= 0):
        weight = float(rng.choice([1.0, 0.7, 0.2]))
        several = spread and weight < 1 and rng.random() < 0.4
        rows.append((i, m, "abcde"[answers[i, m]], weight))
        if several:
            rows.append((i, m, "abcde"[(answers[i, m] + 1) % n_classes], 0.2))
    item, worker, label, weight = (list(each) for each in zip(*rows, strict=True))
    frame = {"item": item, "worker": worker, "label": label, "weight": weight}
    if sequences:
        del frame["item"]
        frame |= {"sequence": [i // 7 for i in item], "position": [i % 7 for i in item]}
    return cs.Answers.from_frame(frame, weight="weight", **options)


def assert_never_falls(trace):
    """The objective rises at every step, but for rounding."""
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-8 * np.maximum(np.abs(trace[1:]), 1)).all()


def with_weight(r, weight):
    return replace(r, weight=np.broadcast_to(np.float64(weight), r.n_responses).copy())


# ------------------------------------------------------------------------------------------------------------- powers


def test_powers_sum_to_the_effective_number_of_answers():
    r = crowd(0)
    whole = np.bincount(r.item_of_answer() * r.n_workers + r.worker, r.weight)
    whole = whole[whole > 0]
    assert r.scale == pytest.approx(whole.sum() / (whole**2).sum())
    np.testing.assert_allclose(r.amount.sum(), whole.sum() ** 2 / (whole**2).sum())
    some = r.about(np.arange(9))
    assert some.scale == r.scale  # a part counts as much as in the whole
    assert r.keep(r.weight < 1).scale == r.scale
    assert replace(r, share=np.full(r.n_responses, 0.5)).amount.sum() == pytest.approx(r.amount.sum() / 2)
    alike = with_weight(crowd(0, spread=False), 0.3)
    np.testing.assert_allclose(alike.amount, 1.0)


def test_posterior_and_likelihood_are_those_of_powers():
    r = crowd(1, n_items=8, n_workers=4)
    model = cs.DawidSkene(estimation="em", **oracles.PLAIN).fit(r)
    logs = np.log(model.confusion_), np.log(model.prior_)
    posterior, log_likelihood = oracles.dense_posterior(oracles.densify(r), *logs)
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert model.score(r) == pytest.approx(log_likelihood / r.n_items, rel=1e-12)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_what_an_answer_lacks_in_weight_is_silence_where_that_is_an_answer(estimation):
    """One step of the loop, case by case."""
    r = crowd(2, n_items=30, items=range(30), abstain="answer", background="a", spread=False, share=0.5)
    options = {"estimation": estimation, "tol": 0, **oracles.PLAIN}
    before, after = (cs.DawidSkene(max_iter=n, **options).fit(r) for n in (3, 4))
    log_gamma = before.result_.estimates.log_weights  # (M, A, K)
    spoken = oracles.densify(r)
    said = np.concatenate([spoken, 1 - spoken.sum(axis=2, keepdims=True)], axis=2)
    workers = WORKERS["confusion"].of(r, r.class_of_label, r.n_classes)
    logs = before.result_.estimates.structure.log_prior(False) + Observations(r).lay_out(workers)[0].anchor
    logs = logs + np.einsum("iml,mlk->ik", said, log_gamma)
    q = np.exp(logs - logs.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(before.posterior_, q, atol=1e-10)
    pseudo = workers.prior(
        oracles.smoothing_table((0.1, 1.1), r.class_of_label, 3, 1).transpose(0, 2, 1), estimation, r.vote_shares()
    )
    total = np.einsum("iml,ik->mlk", said, q) + pseudo.smoothing
    expected = (total / total.sum(axis=1, keepdims=True)).transpose(0, 2, 1)
    np.testing.assert_allclose(after.confusion_, expected, atol=1e-9)
    assert_never_falls(after.trace_)


# ------------------------------------------------------------------------------------------- all models, and all ways


@pytest.mark.parametrize(
    ("workers", "estimation"),
    [("confusion", "em"), ("one-coin", "em"), *((kind, "variational") for kind in WORKERS if kind in HARD)],
)
def test_the_objective_never_falls_for_any_workers(workers, estimation):
    smoothing = "learn" if estimation == "variational" else (0.1, 1.1)
    model = cs.DawidSkene(workers=workers, estimation=estimation, smoothing=smoothing, tol=0, max_iter=25)
    model.fit(crowd(4, **({"ordered": True, "classes": list("abc")} if workers == "ordinal" else {})))
    assert_never_falls(model.trace_)
    assert np.isfinite(model.posterior_).all()


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_the_objective_never_falls_in_chains_and_fields(estimation):
    options = {"estimation": estimation, "tol": 0, "max_iter": 15, "coupling": 1.0}
    chain = cs.HiddenMarkov(**options, **oracles.PLAIN).fit(crowd(5, sequences=True))
    assert_never_falls(chain.trace_)
    r = crowd(5)
    graph = cs.Graph.from_edges(r.items[:-1], r.items[1:], items=r.items)
    field = cs.MarkovField(**options, **oracles.PLAIN).fit(r, graph=graph)
    assert_never_falls(field.trace_)
    apart = cs.MarkovField(**options | {"coupling": 0.0}, **oracles.PLAIN).fit(r, graph=graph)
    plain = cs.DawidSkene(estimation=estimation, tol=0, max_iter=15, **oracles.PLAIN).fit(r)
    np.testing.assert_allclose(apart.posterior_, plain.posterior_, atol=1e-9)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_weights_of_one_are_no_weights(estimation):
    """By the path of weights: one answer of weight 0.5 is about an item of its own."""
    r = crowd(6, spread=False)
    plain, ones = replace(r, weight=None, share=None), with_weight(r, 1.0)
    models = [cs.DawidSkene(estimation=estimation, tol=0, max_iter=20).fit(each) for each in (plain, ones)]
    np.testing.assert_allclose(models[1].posterior_, models[0].posterior_, atol=1e-9)
    np.testing.assert_allclose(models[1].trace_, models[0].trace_, rtol=1e-12)
    table = {"item": [0, 0, 1], "worker": [0, 1, 0], "label": ["x", "y", "x"], "weight": [1.0, 1.0, 1.0]}
    assert cs.Answers.from_frame(table, weight="weight").weight is None


def test_predictions_and_files_take_the_scale_of_weights_with_them(tmp_path):
    r = crowd(8)
    model = cs.DawidSkene(calibration="none").fit(r)
    some = r.about(np.arange(7))
    model.save(tmp_path / "model")
    for fitted in (model, cs.load(tmp_path / "model")):
        assert np.array_equal(fitted.predict_proba(r), model.posterior_)
        np.testing.assert_allclose(fitted.predict_proba(some), model.posterior_[:7], atol=1e-12)


# --------------------------------------------------------------------------------------------- spread answers


def test_mean_of_duplicates_is_one_answer_that_is_spread_over_them():
    r = replace(crowd(12, spread=False), weight=None)
    rows = [
        {"item": int(i), "worker": int(m), "label": r.labels[label]}
        for i, m, label in zip(r.item_of_answer(), r.worker, r.label, strict=True)
    ]
    said_again = [row for row in rows if row["item"] % 3 == 0]
    otherwise = [{**row, "label": "a" if row["label"] == "b" else "b"} for row in rows if row["item"] % 3 == 1]

    def read(more):
        every = rows + more
        table = {name: [row[name] for row in every] for name in ("item", "worker", "label")}
        return cs.Answers.from_frame(table, duplicates="mean", items=range(60))

    options = {"tol": 0, "max_iter": 12, **oracles.PLAIN}
    once, twice = (cs.DawidSkene(**options).fit(each) for each in (read([]), read(said_again)))
    np.testing.assert_allclose(twice.posterior_, once.posterior_, atol=1e-9)
    spread = read(otherwise)
    model = cs.DawidSkene(estimation="em", **options).fit(spread)
    posterior, _ = oracles.dense_posterior(oracles.densify(spread), np.log(model.confusion_), np.log(model.prior_))
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------ accuracy


def draw_answers(seed, n_items=1000, n_workers=20, n_classes=2, weight=None):
    """Return answers, four per item, and the truth; of a share 1 - weight the label is drawn at random."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(n_classes, size=n_items), rng.uniform(0.55, 0.95, n_workers)
    item = np.repeat(np.arange(n_items), 4)
    worker = np.concatenate([rng.choice(n_workers, 4, replace=False) for _ in range(n_items)])
    wrong = (truth[item] + rng.integers(1, n_classes, len(item))) % n_classes
    label = np.where(rng.random(len(item)) < skill[worker], truth[item], wrong)
    given = np.full(len(item), 0.5) if weight is None else rng.choice(weight, len(item))
    if weight is not None:
        label = np.where(rng.random(len(item)) < given, label, rng.integers(n_classes, size=len(item)))
    table = {"item": item, "worker": worker, "label": label, "weight": given}
    return cs.Answers.from_frame(table, weight="weight"), truth


def accuracy(model, truth):
    return np.mean(np.asarray(model.labels_) == truth)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_classes_do_not_merge_where_all_weights_are_small(estimation):
    """The power w of a likelihood, inside of the loop, made of these .5 to .7 where the vote has .8."""
    gains = []
    for seed in range(3):
        r, truth = draw_answers(seed)
        model = cs.DawidSkene(estimation=estimation, calibration="none").fit(r)
        gains.append(accuracy(model, truth) - accuracy(cs.MajorityVote().fit(r), truth))
    assert np.mean(gains) > 0.02
