"""Each kernel against its slow twin, at ordinary sizes and at the ends of the range of doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy.special import digamma, gammaln, polygamma

import oracles
from consilience.answers import columns
from consilience.answers.columns import order_by
from consilience.inference.distributions import fit_distributions
from consilience.inference.workers.base import improve_pair, make_pair
from consilience.kernels import LARGE, MOST_UNROLLED, freeze, width_of
from consilience.kernels.answers import (
    SMALLEST,
    add_expectations,
    add_log_rows,
    add_to_rows,
    add_votes,
    count_rows,
    digamma_and_log_gamma,
    list_gammas,
    multiply_rows,
    normalise_items,
)
from effort import examples

NO_WEIGHT = freeze(np.empty(0))
NO_GOLD = freeze(np.empty(0, np.int32))
WIDTHS = [2, 3, MOST_UNROLLED + 4]


def with_zero_logs(table):
    with np.errstate(divide="ignore"):
        return np.log(table)


def make_answers(rng, n_rows, sizes):
    codes = rng.integers(n_rows, size=sum(sizes)).astype(np.int32)
    return freeze(codes), freeze(np.append(0, np.cumsum(sizes)).astype(np.int64))


def expect_logs(counts, smoothing, log_weights):
    psi, log_gamma, log_beta = np.empty(counts.shape[1:]), np.empty(counts.shape[1:]), np.empty(counts.shape[2])
    bound = np.empty(len(counts))
    add_expectations(freeze(counts.copy()), freeze(smoothing), psi, log_gamma, log_beta, log_weights, bound)
    return bound.sum()


def run_product(codes, offsets, table, gold=NO_GOLD):
    """Return what `multiply_rows` gives, scaled as the twin is: the largest entry of each row is 1."""
    n_classes = table.shape[1]
    out = np.full((len(offsets) - 1, n_classes), np.nan)
    base, shift = freeze(np.ones(n_classes)), np.zeros(n_classes, np.int64)
    log_scale = multiply_rows(codes, offsets, gold, freeze(table.copy()), base, out, shift, width_of(n_classes, LARGE))
    assert np.isfinite(out).all()
    top = out.max(axis=1, keepdims=True)
    assert (top > 0).all()
    return out / top, log_scale + math.fsum(np.log(top.ravel()))


def run_logs(codes, offsets, log_table, gold=NO_GOLD, weight=NO_WEIGHT):
    n_classes = log_table.shape[1]
    out = np.full((len(offsets) - 1, n_classes), np.nan)
    base = freeze(np.zeros(n_classes))
    log_scale = add_log_rows(
        codes, offsets, gold, weight, freeze(log_table.copy()), base, out, width_of(n_classes, LARGE)
    )
    assert np.isfinite(out).all()
    return out, log_scale


def check_evidence(codes, offsets, table, gold=NO_GOLD, tolerance=1e-12):
    """Compare the product, the sum of logarithms and the twin with each other."""
    log_table = with_zero_logs(table)
    base = np.zeros(table.shape[1])
    expected, expected_scale = oracles.scaled_evidence(codes, offsets, gold, NO_WEIGHT, log_table, base)
    for evidence, log_scale in (
        run_product(codes, offsets, table, gold),
        run_logs(codes, offsets, log_table, gold),
    ):
        np.testing.assert_allclose(evidence, expected, rtol=0, atol=tolerance)
        assert log_scale == pytest.approx(expected_scale, rel=1e-12, abs=1e-11)
    return expected


# ----------------------------------------------------------------------------------------------------------- evidence


@pytest.mark.parametrize("n_classes", WIDTHS)
@pytest.mark.parametrize("known", [False, True])
def test_evidence_is_the_product_of_rows(n_classes, known):
    rng = np.random.default_rng(n_classes)
    table = rng.dirichlet(np.ones(n_classes), size=12)
    codes, offsets = make_answers(rng, 12, [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 40, 0])
    gold = freeze(rng.integers(-1, n_classes, size=13).astype(np.int32)) if known else NO_GOLD
    check_evidence(codes, offsets, table, gold)


@pytest.mark.parametrize("n_classes", WIDTHS)
@pytest.mark.parametrize("exponent", [-1, -5, -20, np.log10(SMALLEST)])
def test_evidence_of_small_entries(n_classes, exponent):
    """However many entries as small as allowed are multiplied, no class is lost that could still matter."""
    rng = np.random.default_rng(1)
    table = 10.0 ** np.clip(exponent + rng.uniform(0, 1.5, (6, n_classes)), np.log10(SMALLEST), 0)
    sizes = [1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 15, 16, 31, 40, 44, 45, 64, 200, 0]
    codes, offsets = make_answers(rng, 6, sizes)
    check_evidence(codes, offsets, table, tolerance=1e-9)


@pytest.mark.parametrize("known", [-1, 0, 1, 2])
@pytest.mark.parametrize("size", [1, 3, 8, 9, 100, 10_000])
def test_evidence_with_impossible_classes(size, known):
    """A zero rules a class out for good, early or late, also when others have underflowed meanwhile."""
    table = np.array([[0.0, 1e-7, 1e-8], [1e-9, 1e-7, 1e-8], [0.0, 0.0, 1e-3], [0.0, 0.0, 0.0]])
    for special_row in (0, 2, 3):
        for place in {0, size // 2, size - 1}:
            codes = np.ones(size, np.int32)
            codes[place] = special_row
            # A second item tells whether the first one left something behind.
            codes, offsets = freeze(np.append(codes, [1, 1])), freeze(np.array([0, size, size + 2], np.int64))
            gold = NO_GOLD if known < 0 else freeze(np.array([known, -1], np.int32))
            check_evidence(codes.astype(np.int32), offsets, table, gold, tolerance=1e-9)


def test_price_of_gold_is_exact_below_the_range_of_doubles():
    """10,000 answers against the gold label: a log likelihood of -230,000, not the price of the impossible."""
    table = np.array([[1.0, 1e-10]])
    codes, offsets = freeze(np.zeros(10_000, np.int32)), freeze(np.array([0, 10_000], np.int64))
    gold = freeze(np.array([1], np.int32))
    expected = 10_000 * math.log(1e-10)
    for evidence, log_scale in (
        run_product(codes, offsets, table, gold),
        run_logs(codes, offsets, np.log(table), gold),
    ):
        assert evidence.tolist() == [[0.0, 1.0]]
        assert log_scale == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_classes", WIDTHS)
@pytest.mark.parametrize("known", [False, True])
def test_weighted_evidence(n_classes, known):
    rng = np.random.default_rng(3)
    log_table = rng.uniform(-2000, 0, (9, n_classes))  # far smaller than any double
    log_table[4, 0] = -np.inf
    codes, offsets = make_answers(rng, 9, [0, 1, 5, 30, 2])
    weight = freeze(rng.uniform(1e-9, 1, len(codes)))
    gold = freeze(rng.integers(-1, n_classes, size=5).astype(np.int32)) if known else NO_GOLD
    expected, scale = oracles.scaled_evidence(codes, offsets, gold, weight, log_table, np.zeros(n_classes))
    evidence, log_scale = run_logs(codes, offsets, log_table, gold, weight)
    np.testing.assert_allclose(evidence, expected, rtol=1e-9, atol=1e-12)
    assert log_scale == pytest.approx(scale, rel=1e-12)


@examples(60)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(0, 25), min_size=1, max_size=6),
    sharpness=st.sampled_from([0.01, 0.1, 1.0, 10.0]),
    zeros=st.booleans(),
    known=st.booleans(),
)
def test_both_paths_agree(seed, sizes, sharpness, zeros, known):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(3, sharpness), size=8).clip(SMALLEST)
    if zeros:
        table[rng.random(table.shape) < 0.2] = 0.0
    codes, offsets = make_answers(rng, 8, sizes)
    gold = freeze(rng.integers(-1, 3, size=len(sizes)).astype(np.int32)) if known else NO_GOLD
    check_evidence(codes, offsets, table, gold)


# ------------------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize("n_classes", WIDTHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_and_votes(n_classes, weighted):
    rng = np.random.default_rng(5)
    codes, offsets = make_answers(rng, 7, [0, 3, 1, 12, 0, 5])
    weight = freeze(rng.uniform(0, 1, len(codes))) if weighted else NO_WEIGHT
    posterior = rng.dirichlet(np.ones(n_classes), size=6)
    counts = np.ones((7, n_classes))  # it adds to what is there
    count_rows(codes, offsets, weight, posterior, counts, width_of(n_classes, LARGE))
    expected = 1 + oracles.count_answers(codes, offsets, weight, posterior, 7)
    np.testing.assert_allclose(counts, expected, rtol=1e-13)
    assert counts.sum() - counts.size == pytest.approx(weight.sum() if weighted else len(codes))

    choice = freeze(rng.integers(-1, n_classes, 7))
    votes = np.zeros((6, n_classes))
    add_votes(codes, offsets, weight, choice, votes)
    w = weight if weighted else np.ones(len(codes))
    table = choice[:, None] == np.arange(n_classes)
    for i in range(6):
        answers = slice(offsets[i], offsets[i + 1])
        np.testing.assert_allclose(votes[i], (w[answers, None] * table[codes[answers]]).sum(axis=0), rtol=1e-13)


def test_add_to_rows():
    rng = np.random.default_rng(6)
    rows, counts, out = np.array([4, 0, 2]), rng.random((3, 2)), rng.random((5, 2))
    expected = out.copy()
    expected[rows] += counts
    add_to_rows(freeze(rows), counts, out)
    assert np.array_equal(out, expected)


# --------------------------------------------------------------------------------------------------------- posteriors


def run_normalise(evidence, prior, told=()):
    mass = np.zeros(len(prior))
    posterior = evidence.copy()
    told = freeze(np.array(told, np.bool_))
    log_total = normalise_items(posterior, freeze(np.array(prior)), told, mass, width_of(len(prior), LARGE))
    if len(told):
        return posterior, log_total, mass
    np.testing.assert_allclose(mass, posterior.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-9)
    return posterior, log_total


def test_items_of_which_nothing_is_told_do_not_count():
    rng = np.random.default_rng(8)
    told = rng.random(500) < 0.6
    evidence, prior = 10.0 ** -rng.uniform(0, 200, (500, 3)), np.array([0.2, 0.3, 0.5])
    evidence[7], told[7] = 0.0, False
    evidence[7, 0] = 1.0
    posterior, log_total, mass = run_normalise(evidence, prior, told)
    everything = run_normalise(evidence, prior)[0]
    np.testing.assert_array_equal(posterior, everything)
    without, log_without = run_normalise(evidence[told], prior)
    assert log_total == pytest.approx(log_without, rel=1e-13)
    np.testing.assert_allclose(mass, without.sum(axis=0), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------- Dirichlet


def test_gamma_functions_are_exact():
    """Below 8, where they are moved up, at the edge, and far above."""
    places = np.concatenate([np.geomspace(1e-100, 1e12, 500), np.linspace(0.001, 20, 500), [8.0, np.nextafter(8.0, 0)]])
    for x in places.tolist():
        psi, log_gamma, bend = digamma(x), gammaln(x), polygamma(1, x)
        found, further = digamma_and_log_gamma(x), list_gammas(x)
        assert abs(found[0] - psi) <= 1e-13 * max(1, abs(psi))
        assert abs(found[1] - log_gamma) <= 1e-13 * max(1, abs(log_gamma))
        assert further[0] == pytest.approx(found[0], rel=1e-14)
        assert further[1] - np.log(further[2]) == pytest.approx(found[1], rel=1e-13, abs=1e-13)
        assert further[3] == pytest.approx(bend, rel=1e-12)


def test_expectations_are_the_same_on_all_threads(monkeypatch):
    """To the bit: each row has its own sum."""
    rng = np.random.default_rng(0)
    counts, smoothing = rng.gamma(0.5, size=(700, 20, 20)), rng.uniform(0.1, 2, (1, 20, 20))
    found = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("CONSILIENCE_THREADS", n_threads)
        fit = fit_distributions(counts, smoothing, "variational")
        again = improve_pair(make_pair(tuple(np.full((1, 20, 20), each) for each in (1.0, 0.1, 0.0))), counts)
        found.append((fit.bound, fit.log_weights.tobytes(), again.pair))
    assert found[0] == found[1]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_expected_logs_against_scipy(shared, scale):
    rng = np.random.default_rng(8)
    counts = rng.gamma(0.3, scale, (5, 4, 3))
    counts[rng.random(counts.shape) < 0.4] = 0.0
    counts[2] = 0.0
    smoothing = rng.uniform(1e-4, 3, (1 if shared else 5, 4, 3))
    logs = np.full(counts.shape, np.nan)
    bound = expect_logs(counts, smoothing, logs)
    expected, expected_bound = oracles.dirichlet_logs(counts, smoothing)
    np.testing.assert_allclose(logs, expected, rtol=1e-12, atol=1e-12)
    assert bound == pytest.approx(expected_bound, rel=1e-10, abs=1e-10)
    assert bound <= 1e-9


# --------------------------------------------------------------------------------------------------------- estimation


@pytest.mark.parametrize("smoothing", [0.0, 0.5, "mixed"])
def test_mode_of_counts(smoothing):
    rng = np.random.default_rng(9)
    counts = rng.gamma(1, 5, (4, 3, 2))
    counts[1, :, 0] = 0.0  # a worker who never met class 0
    counts[2, 1, 1] = 0.0  # an answer never given
    s = np.full((1, 3, 2), 0.0 if smoothing == "mixed" else smoothing)
    if smoothing == "mixed":
        s[0, 0] = 0.3
    found = fit_distributions(counts, freeze(s), "em")
    total = counts + s
    with np.errstate(invalid="ignore"):
        expected = total / total.sum(axis=1, keepdims=True)
    if smoothing == 0.0:
        expected[1, :, 0] = counts[:, :, 0].sum(axis=0) / counts[:, :, 0].sum()  # the crowd stands in
    np.testing.assert_allclose(found.mean, expected, rtol=1e-14)
    np.testing.assert_allclose(found.mean.sum(axis=1), 1)
    pseudo = np.broadcast_to(s, expected.shape)
    penalty = np.sum(pseudo[pseudo > 0] * np.log(expected[pseudo > 0]))
    assert found.bound == pytest.approx(penalty, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- layout


@pytest.fixture(params=["few", "many"])
def by_size(request, monkeypatch):
    """Take the way of few keys, which is NumPy's, or of many, which is compiled."""
    monkeypatch.setattr(columns, "MANY_VALUES", 10**9 if request.param == "few" else 1)


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.lists(st.integers(0, 9), max_size=60))
def test_stable_order(by_size, keys):
    keys = np.array(keys, np.int32)
    order, offsets = order_by(keys, 10)
    assert order.tolist() == sorted(range(len(keys)), key=lambda i: keys[i])
    assert offsets.tolist() == [sum(keys < key) for key in range(11)]
