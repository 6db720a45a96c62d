"""Draws from all that a fit of ordered classes leaves open."""

from itertools import product

import numpy as np
import pytest

import consilience as cs
from consilience.answers.random_choices import RandomByName, pick_places
from consilience.engines import Threads
from consilience.inference import draws
from consilience.inference.sources import Source
from consilience.inference.workers.priors import Types
from consilience.kernels import freeze


def test_places_are_picked_in_proportion():
    units = (np.arange(1000) + 0.5) / 1000
    picked = pick_places(np.tile([1.0, 0.0, 3.0], (1000, 1)), units)
    assert np.bincount(picked, minlength=3).tolist() == [250, 0, 750]


def test_random_numbers_follow_names():
    table = {"item": ["a", "b", "c"], "worker": ["x", "y", "x"], "label": [0, 1, 2]}
    back = {name: values[::-1] for name, values in table.items()}
    first, second = (cs.Answers.from_frame(each) for each in (table, back))
    numbers = [dict(zip(r.items.tolist(), RandomByName.of(r, 3).draw_by_item(), strict=True)) for r in (first, second)]
    assert numbers[0] == numbers[1]


def test_labels_are_described_by_their_definition():
    rng = np.random.default_rng(0)
    posterior, labels = rng.dirichlet(np.ones(4), 6), np.array([0, 1, 2, 3, 3, 1])
    mean, chance = draws.describe_labels(posterior, labels)
    for place, value in enumerate((lambda d: d == 0, lambda d: d <= 1, lambda d: d)):
        off = np.array([[float(value(abs(k - label))) for k in range(4)] for label in labels])
        expected = (posterior * off).sum(axis=1)
        assert mean[place] == pytest.approx(expected.mean())
        assert chance[place] == pytest.approx(((posterior * off**2).sum(axis=1) - expected**2).mean())


def enumerate_truth(r, pseudo_counts, shares, smoothing):
    """The exact probability of each level of each item, over all truths and types, with matrices integrated out."""
    from scipy.special import gammaln, logsumexp

    def log_beta(a, axis):
        return gammaln(a).sum(axis=axis) - gammaln(a.sum(axis=axis))

    total = np.full((r.n_items, r.n_classes), -np.inf)
    item = r.item_of_answer()
    for truth in product(range(r.n_classes), repeat=r.n_items):
        value = log_beta(np.bincount(truth, minlength=r.n_classes) + smoothing, 0)
        for m in range(r.n_workers):
            counts = np.zeros((r.n_classes, r.n_classes))
            mine = r.worker == m
            np.add.at(counts, (r.label[mine], np.array(truth)[item[mine]]), 1)
            scores = [np.sum(log_beta(a + counts, 0) - log_beta(a, 0)) for a in pseudo_counts]
            value += logsumexp(np.array(scores) + np.log(shares))
        for i, k in enumerate(truth):
            total[i, k] = np.logaddexp(total[i, k], value)
    return np.exp(total - logsumexp(total, axis=1, keepdims=True))


def test_draws_have_the_exact_distribution(monkeypatch):
    matrix = np.array([[0, 0, 1], [1, 2, 2], [2, 2, 1], [0, 1, -1], [1, 1, 2]])
    r = cs.Answers.from_matrix(matrix, ordered=True)
    recipe = cs.DawidSkene(workers="ordinal", smoothing=3.0).recipe()  # so that draws forget soon
    with draws.open_engine(None) as engine:
        problem = recipe.pose(Source(r), recipe.make_structure(r), None, engine)
        fit = draws.find_fit(problem, draws.count_truth(problem, draws.rate_items(Source(r), 0.0)))
        # A few types with shares that stay as they are, so that all can be enumerated.
        some = [100, 230, 300]
        few = Types(freeze(problem.prior.types.pseudo_counts[some]), freeze(np.log([[0.5, 0.3, 0.2]])))
        fit = fit._replace(parameters=fit.parameters._replace(prior=fit.parameters.prior._replace(types=few)))
        monkeypatch.setattr(RandomByName, "draw_shares", lambda self, a: keep_shares(self, a, few.log_shares[0]))
        monkeypatch.setattr(draws, "N_DRAWS", 6000)
        found = np.mean(list(draws.draw_fit(problem, fit, RandomByName.of(r, 0))), axis=0)
    exact = enumerate_truth(r, few.pseudo_counts, np.exp(few.log_shares[0]), problem.structure.smoothing)
    np.testing.assert_allclose(found, exact, atol=0.03)


def keep_shares(random, parameters, log_shares):
    """Class shares are drawn, and those of types, whose counts have 0.02 added, are kept."""
    if np.isclose(parameters % 1, 0.02).all():
        return log_shares
    logs = np.log(random.generator.standard_gamma(parameters))
    return logs - np.log(np.exp(logs).sum())


@pytest.mark.robust
def test_expected_accuracy_of_ratings_holds():
    held = np.zeros(3)
    for seed in range(12):
        crowd = cs.simulate.ratings(200, n_raters=20, seed=seed)
        fused = cs.DawidSkene(workers="ordinal").fit(crowd.responses)
        off = np.abs(fused.posterior_.argmax(axis=1) - crowd.truth)
        ends = [(fused.expected_accuracy_low_, fused.expected_accuracy_high_), *fused.result_.intervals.levels[:, 1:]]
        truth = np.mean(off == 0), np.mean(off <= 1), off.mean()
        held += [low <= value <= high for (low, high), value in zip(ends, truth, strict=True)]
    assert (held >= 10).all()


def test_draws_of_a_part_are_scaled(monkeypatch):
    crowd = cs.simulate.ratings(800, n_raters=20, seed=3)
    whole = cs.DawidSkene(workers="ordinal").fit(crowd.responses).result_.intervals
    monkeypatch.setattr(draws, "MOST_ANSWERS", 2000)
    part = cs.DawidSkene(workers="ordinal").fit(crowd.responses).result_.intervals
    np.testing.assert_allclose(part.expected, whole.expected, atol=0.05)


def test_intervals_of_ratings_depend_neither_on_rows_nor_on_threads():
    crowd = cs.simulate.ratings(80, n_raters=8, seed=3)
    r = crowd.responses
    table = {"item": r.item_of_answer(), "worker": r.worker, "label": r.label}
    order = np.random.default_rng(0).permutation(len(r.label))
    shuffled = {name: values[order] for name, values in table.items()}
    found = []
    for each, engine in ((table, Threads(1)), (shuffled, Threads(2))):
        answers = cs.Answers.from_frame(each, ordered=True)
        found.append(cs.DawidSkene(workers="ordinal").fit(answers, engine=engine).result_.intervals)
    np.testing.assert_allclose(found[0].levels, found[1].levels, atol=1e-6)
