"""Intervals: of agreement, of what is learned about workers and classes, and of the accuracy of labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

import consilience as cs


def weighted_alpha(matrix, weight):
    """Alpha of a matrix of answers (-1: none) whose items count by `weight`, by its definition."""
    labels = np.unique(matrix[matrix >= 0])
    counts = np.stack([(matrix == label).sum(axis=1) for label in labels], axis=1)
    kept = counts.sum(axis=1) >= 2
    counts, weight = counts[kept], weight[kept]
    n = counts.sum(axis=1)
    disagreement = 1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    observed = np.average(disagreement, weights=n * weight)
    total = weight @ counts
    agreeing, pairs = np.sum(total**2) - weight @ n, np.sum(total) ** 2 - weight @ n
    return 1 - observed / (1 - agreeing / pairs)


def slow_alpha_interval(matrix, units):
    """The infinitesimal jackknife with derivatives by differences; `units` numbers the unit of each item."""
    ones = np.ones(len(matrix))
    influence = []
    for unit in np.unique(units[(matrix >= 0).sum(axis=1) >= 2]):
        step = 1e-5 * (units == unit)
        influence.append((weighted_alpha(matrix, ones + step) - weighted_alpha(matrix, ones - step)) / 2e-5)
    n = len(influence)
    alpha, error = weighted_alpha(matrix, ones), np.std(influence, ddof=1) * np.sqrt(n)
    from scipy.stats import t

    reach = t.ppf(0.975, n - 1) * error / (1 - alpha**2)
    return alpha, np.tanh(np.arctanh(alpha) - reach), np.tanh(np.arctanh(alpha) + reach)


def draw_matrix(seed, n_items=40, n_workers=6, n_classes=3, accuracy=0.7, answered=0.6):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=(n_items, 1))
    answers = np.where(rng.random((n_items, n_workers)) < accuracy, truth, rng.integers(n_classes, size=(n_items, 1)))
    answers = np.where(rng.random(answers.shape) < 0.3, rng.integers(n_classes, size=answers.shape), answers)
    return np.where(rng.random(answers.shape) < answered, answers, -1)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_alpha_is_an_infinitesimal_jackknife(seed):
    matrix = draw_matrix(seed)
    found = cs.metrics.krippendorff_interval(cs.Responses.from_matrix(matrix))
    assert found == pytest.approx(slow_alpha_interval(matrix, np.arange(len(matrix))), abs=1e-6)
    assert found.alpha == cs.metrics.krippendorff_alpha(cs.Responses.from_matrix(matrix))
    in_sequences = cs.metrics.krippendorff_interval(cs.Responses.from_matrix(matrix, lengths=[5] * 8))
    assert in_sequences == pytest.approx(slow_alpha_interval(matrix, np.arange(len(matrix)) // 5), abs=1e-6)


def test_alpha_is_covered():
    truth = cs.metrics.krippendorff_alpha(cs.Responses.from_matrix(draw_matrix(1000, n_items=200_000)))
    intervals = [
        cs.metrics.krippendorff_interval(cs.Responses.from_matrix(draw_matrix(seed, 60))) for seed in range(200)
    ]
    assert 0.91 <= np.mean([low <= truth <= high for _, low, high in intervals]) <= 0.99


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[0, 0], [0, 0]], (math.nan, math.nan, math.nan)),  # one label only
        ([[0, -1], [1, -1]], (math.nan, math.nan, math.nan)),  # one worker
        ([[0, 1]], (0.0, -1.0, 1.0)),  # one item
        ([[0, 0], [1, 1]], (1.0, -0.2628, 1.0)),  # nobody differs: 1 - (1 - .025 ** (1 / 2)) / (2 / 3)
        ([[0, 1], [0, 1], [1, 0]], (-2 / 3, -1.0, 1.0)),  # all differ
    ],
)
def test_little_agreement_to_judge_by(matrix, expected):
    found = cs.metrics.krippendorff_interval(cs.Responses.from_matrix(matrix))
    assert found[0] == pytest.approx(expected[0], nan_ok=True)
    assert np.isnan(found[1]) == np.isnan(expected[1])
    assert math.isnan(found[0]) or -1 <= found[1] <= found[0] <= found[2] <= 1
    if expected[0] == 1:
        assert found == pytest.approx(expected, abs=1e-3)
