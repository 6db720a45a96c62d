"""Raters on a scale: types of workers, against loops over everything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import norm

import consilience as cs
from consilience.inference.workers.ordinal import CARELESS, N_BIASES, SPREADS, OrdinalWorkers
from consilience.inference.workers.types import OTHERS_COUNT, OUTSIDE_COUNT, RARE, TYPE_STRENGTHS, find_means


def draw_ratings(seed=0, n_items=80, n_raters=12, levels=4, per_item=4):
    """Truth, biases and a table of ratings."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(levels, size=n_items)
    bias, spread = rng.normal(0, 0.7, n_raters), rng.uniform(0.3, 1.0, n_raters)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_raters, per_item, False) for _ in range(n_items)])
    seen = truth[item] + bias[worker] + spread[worker] * rng.normal(size=len(item))
    label = np.clip(np.round(seen), 0, levels - 1).astype(int)
    return truth, bias, {"item": item, "worker": worker, "label": label}


def list_types(levels):
    """Yield (bias, spread, carelessness, strength) as the grid has them, and the matrix (labels, classes) of each."""
    reach = max(2.0, (levels - 1) / 2)
    for strength in TYPE_STRENGTHS:
        for b, s, e in itertools.product(np.linspace(-reach, reach, N_BIASES), SPREADS, CARELESS):
            matrix = np.empty((levels, levels))
            for j, k in np.ndindex(levels, levels):
                high = np.inf if j == levels - 1 else j + 0.5
                low = -np.inf if j == 0 else j - 0.5
                inside = norm.cdf((high - k - b) / s) - norm.cdf((low - k - b) / s)
                matrix[j, k] = (1 - e) * inside + e / levels
            yield (b, s, e, strength), matrix


def slow_respond(counts, types):
    """Responsibilities (M, T) and the evidence of all workers."""
    logs = np.empty((len(counts), types.n_types))
    for m, t in np.ndindex(logs.shape):
        a = types.pseudo_counts[t]
        logs[m, t] = np.broadcast_to(types.log_shares, logs.shape)[m, t]
        for k in range(counts.shape[2]):
            logs[m, t] += gammaln(a[:, k].sum()) - gammaln(a[:, k].sum() + counts[m, :, k].sum())
            logs[m, t] += np.sum(gammaln(a[:, k] + counts[m, :, k]) - gammaln(a[:, k]))
    evidence = logsumexp(logs, axis=1)
    return np.exp(logs - evidence[:, None]), evidence.sum()


def some_counts(seed=0, n_workers=5, levels=4):
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.5, 4.0, (n_workers, levels, levels))
    counts[0] = 0.0  # nothing is known of the first one
    counts[1, :, 2] = 0.0
    return counts


@pytest.fixture
def raters():
    return OrdinalWorkers(5, np.arange(4), 4)


def test_types_are_those_of_the_grid(raters):
    prior = raters.prior(np.ones((1, 4, 4)), "variational", np.full(4, 0.25))
    expected = [strength * matrix for (_, _, _, strength), matrix in list_types(4)]
    np.testing.assert_allclose(prior.types.pseudo_counts, expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(prior.types.log_shares), 1 / len(expected))


@pytest.mark.parametrize("n_rows", [1, 5])
def test_means_are_mixtures_over_types(raters, n_rows):
    """Shares of types are those of all workers, or of each."""
    counts = some_counts()
    types = raters.prior(np.ones((1, 4, 4)), "variational", np.full(4, 0.25)).types
    rng = np.random.default_rng(1)
    types = types._replace(log_shares=np.log(rng.dirichlet(np.ones(types.n_types), n_rows)))
    responsibility, evidence = slow_respond(counts, types)
    logs, mean = np.zeros_like(counts), np.zeros_like(counts)
    for (m, t), share in np.ndenumerate(responsibility):
        a = counts[m] + types.pseudo_counts[t]
        logs[m] += share * (digamma(a) - digamma(a.sum(axis=0)))
        mean[m] += share * a / a.sum(axis=0)
    found = find_means(counts, types)
    np.testing.assert_allclose(found.log_weights, logs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.bound, evidence - np.sum(counts * logs), rtol=1e-8)


def test_shares_of_types_are_learned(raters):
    counts = some_counts()
    prior = raters.prior(np.ones((1, 4, 4)), "variational", np.full(4, 0.25))
    responsibility, evidence = slow_respond(counts, prior.types)
    n_workers = responsibility.sum(axis=0)
    learned = raters.learn_prior(counts.reshape(-1, 4), prior)
    kept = n_workers >= 0.02 if learned.types.n_gone else np.ones(len(n_workers), bool)
    shares = (n_workers + RARE) / (n_workers[kept].sum() + RARE * len(n_workers))
    np.testing.assert_allclose(np.exp(learned.types.log_shares[0]), shares[kept], rtol=1e-9)
    # The objective of the M-step does not fall.
    assert slow_respond(counts, learned.types)[1] + learned.log_density >= evidence + prior.log_density


@pytest.mark.parametrize("seed", range(6))
def test_the_objective_never_falls(seed):
    _, _, table = draw_ratings(seed, levels=3 + seed % 3)
    model = cs.DawidSkene(workers="ordinal", tol=1e-6, max_iter=500)
    trace = model.fit(cs.Answers.from_frame(table)).trace_
    assert np.diff(trace).min() >= -1e-9 * np.abs(trace).max()


def test_answers_outside_of_the_scale_have_a_share_of_their_own():
    """Some raters say "can't tell", some of them mostly where the truth is 0."""
    rng = np.random.default_rng(0)
    truth, _, table = draw_ratings(3, n_items=300)
    label = table["label"].astype(str).astype(object)
    shy = np.where(table["worker"] % 3 == 0, np.where(truth[table["item"]] == 0, 0.6, 0.05), 0.0)
    label[rng.random(len(label)) < shy] = "can't tell"
    answers = cs.Answers.from_frame(table | {"label": label}, classes=["0", "1", "2", "3"])
    model = cs.DawidSkene(workers="ordinal").fit(answers)
    assert np.diff(model.trace_).min() >= -1e-9 * np.abs(model.trace_).max()
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0)
    silent = model.confusion_[:, :, answers.labels.tolist().index("can't tell")]
    assert silent[0, 0] > 0.4
    assert silent[0, 3] < 0.3
    assert silent[1].max() < OUTSIDE_COUNT / OTHERS_COUNT
    # One who says it mostly of one level tells something by that.
    alone = cs.DawidSkene(workers="ordinal").fit(cs.Answers.from_frame(table))
    assert np.mean(model.labels_ == truth.astype(str)) > np.mean(alone.labels_ == truth) - 0.05


def test_types_are_for_variational_bayes():
    _, _, table = draw_ratings(0)
    for kind in ("ordinal", "nominal"):
        with pytest.raises(cs.errors.ParameterError, match="estimated by variational Bayes only"):
            cs.DawidSkene(workers=kind, estimation="em").fit(cs.Answers.from_frame(table))
    ordered = cs.Answers.from_frame(table, ordered=True)
    assert cs.fuse(ordered, estimation="em").get_params()["workers"] == "confusion"
