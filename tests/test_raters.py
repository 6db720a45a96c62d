"""What is told of raters on a scale: bias with an interval, spread and carelessness, against loops over everything."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs
from consilience.inference.workers.ordinal import OrdinalWorkers, rate
from consilience.results import chance
from consilience.results.chance import BIAS_STEP, CARELESS_GRID, RATER_FIGURES, SPREAD_GRID, find_raters, list_biases


def draw_ratings(seed, n_items=400, n_raters=40, per_item=3):
    """Return the biases of raters, relative to their mean, and a table of their answers on five levels."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(5, n_items, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    bias, spread = rng.normal(0, 0.7, n_raters), rng.uniform(0.4, 1.2, n_raters)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_raters, per_item, False) for _ in range(n_items)])
    seen = truth[item] + bias[worker] + spread[worker] * rng.normal(size=len(item))
    label = np.clip(np.round(seen), 0, 4).astype(int)
    return bias - bias.mean(), {"item": item, "worker": worker, "label": label}


def fit(table, **reading):
    """Return a fit of raters."""
    return cs.DawidSkene(workers="ordinal").fit(cs.Answers.from_frame(table, **reading))


def report(model):
    """Return the worker report as arrays by name."""
    columns = model.worker_report().to_pydict()
    return {name: np.array(column, object if name == "remarks" else None) for name, column in columns.items()}


def find_slowly(counts, pairs, n_classes):
    """Return the figures of raters, type by type."""
    types = list(itertools.product(list_biases(n_classes), SPREAD_GRID, CARELESS_GRID))
    bias, spread, careless = np.array(types).T
    likelihood = np.empty((len(counts), len(types)))
    for t, kind in enumerate(types):
        matrix = rate(np.array([kind]), np.arange(float(n_classes)), np.arange(n_classes))[0]
        drawn = np.zeros_like(matrix)
        for label, k, true in np.ndindex(n_classes, n_classes, n_classes):
            drawn[label, k] += pairs[k, true] / pairs[k].sum() * matrix[label, true]
        likelihood[:, t] = np.sum(counts * np.log(drawn), axis=(1, 2))
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    mean, variance = 0.0, 1.0
    shares = {pair: 1 / len(SPREAD_GRID) / len(CARELESS_GRID) for pair in itertools.product(SPREAD_GRID, CARELESS_GRID)}
    for last in (False,) * chance.CROWD_ROUNDS + (True,):
        prior = np.exp(-((bias - mean) ** 2) / 2 / variance)
        prior /= prior.sum() / len(shares)
        posterior = likelihood * prior * [shares[s, e] for _, s, e in types]
        posterior /= posterior.sum(axis=1, keepdims=True)
        if last:
            break
        mean = np.mean(posterior @ bias)
        variance = (0.25 + np.sum(posterior @ (bias - mean) ** 2)) / (len(counts) + 1)
        shares = {(s, e): 0.2 + posterior[:, (spread == s) & (careless == e)].sum() for s, e in shares}
        shares = {pair: share / sum(shares.values()) for pair, share in shares.items()}
    found = []
    for each in posterior:
        below, ends = 0.0, []
        for b in list_biases(n_classes):
            mass = each[bias == b].sum()
            ends += [
                b - BIAS_STEP / 2 + BIAS_STEP * (q - below) / mass - mean
                for q in chance.TAILS_95
                if below < q <= below + mass
            ]
            below += mass
        found.append([each @ bias - mean, *ends, each @ spread, each @ careless])
    return np.array(found)


def test_the_figures_are_what_the_formulas_say():
    rng = np.random.default_rng(4)
    probabilities = rng.dirichlet(np.full(3, 0.4), 60)
    counts, pairs = np.zeros((4, 3, 3)), probabilities.T @ probabilities
    for answer, p in enumerate(probabilities):
        counts[answer % 4, min(2, rng.integers(3) * (answer % 4 > 0))] += p
    workers = OrdinalWorkers(4, np.arange(3), 3)
    assert find_raters(counts, pairs, workers) == pytest.approx(find_slowly(counts, pairs, 3), rel=1e-6, abs=1e-9)


def test_counts_and_pairs_leave_own_answers_out():
    _, table = draw_ratings(1, n_items=30, n_raters=6)
    model = fit(table)
    r, estimates, q = model.result_.answers, model.result_.estimates, model.result_.labels.fitted
    counts, pairs = np.zeros((6, 5, 5)), np.zeros((5, 5))
    for answer, item in enumerate(r.item_of_answer()):
        p = q[item] / np.exp(estimates.log_weights[r.worker[answer], r.label[answer]])
        p /= p.sum()
        counts[r.worker[answer], r.label[answer]] += p
        pairs += np.outer(p, p)
    found = model.result_.raters
    assert found == pytest.approx(find_raters(counts, pairs, OrdinalWorkers.of(r, r.class_of_label, 5)), abs=1e-6)
    assert [report(model)[name].tolist() for name in RATER_FIGURES] == found.T.round(3).tolist()


def test_biases_of_simulated_raters_are_found():
    inside, correlations = [], []
    for seed in range(12):
        truth, table = draw_ratings(seed)
        found = report(fit(table))
        inside += ((found["bias_low"] <= truth) & (truth <= found["bias_high"])).tolist()
        correlations.append(np.corrcoef(truth, found["bias"])[0, 1])
    assert 0.92 < np.mean(inside) < 0.995
    assert np.mean(correlations) > 0.93
    assert min(correlations) > 0.9


def add_raters(rng, n_items=300):
    """Return answers of four exact raters, one who is harsh by 1.3, one who is contrary, and one who clicks."""
    truth = rng.integers(5, size=n_items)
    said = [np.clip(np.round(truth + 0.4 * rng.normal(size=n_items)), 0, 4) for _ in range(4)]
    said.append(np.clip(np.round(truth - 1.3 + 0.2 * rng.normal(size=n_items)), 0, 4))
    said += [4 - truth, rng.integers(5, size=n_items)]
    return np.array(said, int).T


def test_a_harsh_rater_is_called_harsh():
    labels = add_raters(np.random.default_rng(2))
    model = cs.DawidSkene(workers="ordinal").fit(cs.Answers.from_matrix(labels))
    found = report(model)
    assert found["remarks"].tolist()[:4] == [""] * 4
    assert found["remarks"][4] == "harsh by 1.0 levels"
    assert found["accuracy"][4] < 0.3
    assert found["remarks"][5] == "contrary"
    assert found["remarks"][6] == "answers as if by chance"
    assert found["careless"][6] > 0.7
    assert max(found["spread"][:5]) < 0.6
    words = " ".join(finding.problem for finding in model.findings_)
    assert "more often wrong" not in words


def test_answers_on_disk_give_the_same(tmp_path):
    _, table = draw_ratings(2, n_items=150)
    pq.write_table(pa.table(table), tmp_path / "answers.parquet")
    stored = cs.scan_answers(tmp_path / "answers.parquet", store=tmp_path / "store")
    found, near = report(cs.DawidSkene(workers="ordinal").fit(stored)), report(fit(table))
    for name in RATER_FIGURES:
        assert found[name] == pytest.approx(near[name], abs=0.002)
