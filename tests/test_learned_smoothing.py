"""Pseudo-counts that are learned: one pair for the whole crowd."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.special import gammaln

import consilience as cs
import oracles
from consilience.inference.workers.priors import CENTRE, Prior, improve_pair, judge_pair, make_pair

PARTS = (1.0 - np.eye(3)[None], np.eye(3)[None], np.zeros((1, 3, 3)))


def counts_of(seed, n_rows=12, scale=6.0):
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.5, scale, (n_rows, 3, 3)) + 4 * scale * np.eye(3)
    counts[rng.random(counts.shape) < 0.3] = 0.0
    return counts


def slow_value(logs, counts, fixed):
    """Return the log likelihood of Polya's urn and the density of the pair, with loops."""
    off, diagonal = np.exp(logs)
    value = -0.5 * np.sum((logs - np.log(CENTRE)) ** 2)
    for r, k in np.ndindex(len(counts), 3):
        alpha = off * PARTS[0][0, :, k] + diagonal * PARTS[1][0, :, k] + fixed[min(r, len(fixed) - 1), :, k]
        after = alpha + counts[r, :, k]
        value += np.sum(gammaln(after)) - gammaln(after.sum()) - np.sum(gammaln(alpha)) + gammaln(alpha.sum())
    return value


@pytest.mark.parametrize("n_fixed", [0, 1, 12])
def test_value_and_slope(n_fixed):
    counts = counts_of(1)
    fixed = np.random.default_rng(2).uniform(0, 2, (n_fixed, 3, 3)) if n_fixed else np.zeros((1, 3, 3))
    for logs in (np.log(CENTRE), np.array([-2.0, 3.0]), np.array([1.0, -1.0])):
        value, slope = judge_pair(logs, counts, PARTS[:2], fixed)
        assert value == pytest.approx(slow_value(logs, counts, fixed), rel=1e-11)
        expected = optimize.approx_fprime(logs, slow_value, 1e-6, counts, fixed)
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pair", [CENTRE, (0.02, 200.0), (50.0, 0.02)])
def test_improvement_leads_to_the_best_pair(seed, pair):
    counts, fixed = counts_of(seed), np.zeros((1, 3, 3))
    prior = make_pair(Prior(PARTS[1], "variational"), PARTS, pair)
    values = [slow_value(np.log(prior.pair), counts, fixed)]
    for _ in range(12):
        prior = improve_pair(prior, counts)
        values.append(slow_value(np.log(prior.pair), counts, fixed))
    assert (np.diff(values) >= -1e-9).all()
    best = optimize.minimize(lambda x: -slow_value(x, counts, fixed), np.log(CENTRE), method="Nelder-Mead")
    assert values[-1] == pytest.approx(-best.fun, abs=1e-3)


def test_a_pair_at_its_limit_does_not_depend_on_the_start():
    """Workers who are more alike than the limit of the pseudo-counts on the diagonal allows."""
    rng, n_classes = np.random.default_rng(0), 5
    alpha = np.where(np.eye(n_classes, dtype=bool), 400.0, 20.0)
    rows = [rng.multinomial(30, rng.dirichlet(alpha[k], 500)) for k in range(n_classes)]
    counts = np.stack(rows, axis=2).astype(np.float64)
    parts = (1.0 - np.eye(n_classes)[None], np.eye(n_classes)[None], np.zeros((1, n_classes, n_classes)))
    found = []
    for pair in ((0.1, 1.1), (5.0, 190.0), (45.0, 3.0), (30.0, 200.0)):
        prior = make_pair(Prior(parts[0], "variational"), parts, pair)
        for _ in range(30):
            prior = improve_pair(prior, counts)
        found.append(prior.pair)
    assert found[0][1] == pytest.approx(200.0)
    np.testing.assert_allclose(found, [found[0]] * 4, rtol=1e-4)


def test_pseudo_counts_are_those_of_the_pair():
    prior = make_pair(Prior(PARTS[1], "variational"), PARTS, (0.2, 3.0))
    np.testing.assert_allclose(prior.smoothing[0], np.where(np.eye(3), 3.0, 0.2))
    assert prior.log_density == pytest.approx(-0.5 * (np.log(0.2 / 0.3) ** 2 + np.log(3.0 / 2.0) ** 2))


def crowds():
    answers, *_ = oracles.simulate(3, n_items=80, n_workers=7, n_classes=3, share=0.6)
    yield "independent", cs.DawidSkene, cs.Answers.from_matrix(answers), {}
    yield "one-coin", cs.DawidSkene, cs.Answers.from_matrix(answers), {"workers": "one-coin"}
    sequences = cs.Answers.from_matrix(answers, lengths=[20] * 4)
    yield "chain", cs.HiddenMarkov, sequences, {"coupling": 1.0}
    spoken = {"item": [], "worker": [], "label": []}
    for (item, worker), label in np.ndenumerate(answers):
        if label > 0:  # label 0 is never said
            spoken["item"].append(item)
            spoken["worker"].append(worker)
            spoken["label"].append(str(label))
    silent = cs.Answers.from_frame(spoken, classes=["0", "1", "2"], items=range(80), abstain="answer", background="0")
    yield "silence", cs.DawidSkene, silent, {}


@pytest.mark.parametrize(("kind", "model", "r", "parameters"), list(crowds()), ids=lambda value: str(value)[:12])
def test_the_objective_never_falls(kind, model, r, parameters):
    fitted = model(tol=0, max_iter=60, calibration="none", **parameters).fit(r)
    assert (np.diff(fitted.trace_) >= -1e-9 * np.abs(fitted.trace_).max()).all(), kind
    assert fitted.smoothing_ != CENTRE
    # The trace ends higher than with the pair it began with.
    given = model(tol=0, max_iter=60, calibration="none", smoothing=CENTRE, **parameters).fit(r)
    assert fitted.trace_[-1] >= given.trace_[-1]


def test_a_fit_ends_only_when_the_pair_has_settled():
    answers, *_ = oracles.simulate(5, n_items=400, n_workers=10, n_classes=2, share=0.5, skill=(0.9, 0.99))
    r = cs.Answers.from_matrix(answers)
    found = cs.DawidSkene(calibration="none").fit(r)
    further = cs.DawidSkene(calibration="none", tol=0, max_iter=300).fit(r)
    assert found.converged_
    assert found.n_iter_ < 60
    np.testing.assert_allclose(found.smoothing_, further.smoothing_, rtol=0.1)


def test_a_careful_crowd_and_a_careless_one():
    """Where workers are alike the prior is strong, and says how good they are."""
    pairs = {}
    for name, skill in (("careful", (0.95, 0.97)), ("careless", (0.55, 0.57))):
        answers, *_ = oracles.simulate(1, n_items=600, n_workers=30, n_classes=2, share=0.4, skill=skill)
        pairs[name] = cs.DawidSkene(calibration="none").fit(cs.Answers.from_matrix(answers)).smoothing_
    share = {name: diagonal / (off + diagonal) for name, (off, diagonal) in pairs.items()}
    assert share["careful"] == pytest.approx(0.96, abs=0.02)
    assert share["careless"] == pytest.approx(0.56, abs=0.06)
    assert min(sum(pair) for pair in pairs.values()) > 5


def test_what_smoothing_was_used():
    answers, *_ = oracles.simulate(2)
    r = cs.Answers.from_matrix(answers)
    assert cs.DawidSkene(estimation="em").fit(r).smoothing_ == (0.1, 1.1)
    assert cs.DawidSkene(smoothing=0.5).fit(r).smoothing_ == (0.5, 0.5)
    assert cs.DawidSkene(smoothing=(0.2, 2)).fit(r).smoothing_ == (0.2, 2.0)
    assert cs.DawidSkene(smoothing=np.full((3, 3), 0.5)).fit(r).smoothing_ is None


def test_it_is_the_same_for_all_orders_of_labels():
    answers, *_ = oracles.simulate(4)
    pairs = [
        cs.DawidSkene(calibration="none").fit(cs.Answers.from_matrix(each)).smoothing_
        for each in (answers, np.where(answers >= 0, 2 - answers, -1))
    ]
    np.testing.assert_allclose(pairs[0], pairs[1], rtol=1e-6)
