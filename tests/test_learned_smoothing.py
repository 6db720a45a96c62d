"""Pseudo-counts that are learned: one pair for the whole crowd."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.special import gammaln

import consilience as cs
import oracles
from consilience.inference.workers.base import CENTRE, improve_pair, make_pair
from consilience.kernels import freeze
from consilience.kernels.answers import add_polya

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
        away, pair, sums = logs - np.log(CENTRE), np.exp(logs), np.empty((len(counts), 6))
        arrays = (freeze(each) for each in (counts, PARTS[0][0].copy(), PARTS[1][0].copy(), fixed))
        add_polya(*arrays, *pair.tolist(), np.empty((3, 3, 3)), sums)
        value, *slope, by_off, by_both, by_diagonal = sums.sum(axis=0)
        assert value - 0.5 * away @ away == pytest.approx(slow_value(logs, counts, fixed), rel=1e-11)
        expected = optimize.approx_fprime(logs, slow_value, 1e-6, counts, fixed)
        slope = slope * pair - away
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4)
        bend = np.array([[by_off, by_both], [by_both, by_diagonal]]) * np.outer(pair, pair) + np.diag(slope + away - 1)
        slopes = (optimize.approx_fprime(logs + h, slow_value, 1e-6, counts, fixed) for h in 1e-3 * np.eye(2))
        np.testing.assert_allclose(bend, [(each - expected) / 1e-3 for each in slopes], rtol=0.02, atol=0.05)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pair", [CENTRE, (0.02, 200.0), (50.0, 0.02)])
def test_improvement_leads_to_the_best_pair(seed, pair):
    counts, fixed = counts_of(seed), np.zeros((1, 3, 3))
    prior = make_pair(PARTS, pair)
    values = [slow_value(np.log(prior.pair), counts, fixed)]
    for _ in range(12):
        prior = improve_pair(prior, counts)
        values.append(slow_value(np.log(prior.pair), counts, fixed))
    assert (np.diff(values) >= -1e-9).all()
    best = optimize.minimize(lambda x: -slow_value(x, counts, fixed), np.log(CENTRE), method="Nelder-Mead")
    assert values[-1] == pytest.approx(-best.fun, abs=1e-3)


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
