"""Moment matching against slow twins, finite differences, the paper's explicit form, and known truths."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

import consilience as cs
import explicit_moments
import oracles
from consilience.errors import ConvergenceWarning, DataWarning
from consilience.inference import moments
from consilience.inference.estimator import renew
from consilience.kernels.moments import add_worker_terms, simplex_threshold, solve_on_simplex
from effort import examples, rest_robust


def random_parameters(seed, n_workers, n_labels, n_classes):
    """Draw matrices (M, L, K), columns on the simplex, and a prior."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(n_labels), size=(n_workers, n_classes)).transpose(0, 2, 1)
    return np.ascontiguousarray(confusion), rng.dirichlet(np.full(n_classes, 3.0))


def worker_terms(m, memberships, confusion, gram, prior):
    """Return H_m (K, K) and B_m (L, K): sums of w1 + w2 e1 + w3 e2 over all others, times the prior."""
    n_workers, n_labels, n_classes = confusion.shape
    hessian, linear = np.empty((n_classes, n_classes)), np.empty(n_labels * n_classes)
    matrices = (confusion.reshape(n_workers, -1), gram, prior)
    add_worker_terms(m, *memberships, *matrices, hessian, linear, np.empty(gram.shape[1]))
    return hessian, linear.reshape(n_labels, n_classes)


def objective_and_gradient(responses, weights, confusion, prior):
    """Return the objective (without its constant) and its gradients in the matrices (M, L, K) and in the prior.

    `weights` (U, 3) are those of singles, pairs and triples for each distinct set of workers.
    """
    products = moments.Products(responses, moments.lay_out(responses), weights, confusion.shape[2])
    hessian, linear = products.renew(confusion)
    gradient = np.zeros_like(confusion)
    for m, matrix in enumerate(confusion):
        own_hessian, own_linear = worker_terms(m, products.by_worker, confusion, products.gram, prior)
        gradient[m] = matrix @ own_hessian - own_linear
    return float(0.5 * prior @ hessian @ prior - linear @ prior), gradient, hessian @ prior - linear


def internal(confusion):
    """Turn confusion[worker, truth, answer] into the (M, L, K) of the code."""
    return np.ascontiguousarray(np.asarray(confusion).transpose(0, 2, 1))


def small_crowd(seed, n_items=40, n_workers=5, n_classes=3, share=1.0, **options):
    answers = oracles.simulate(seed, n_items, n_workers, n_classes, share=share, **options)[0]
    return cs.Answers.from_matrix(answers)


def crowd_like(confusion, n_items, seed):
    """Let workers with these matrices [worker, truth, answer] all answer items of equally likely classes."""
    rng = np.random.default_rng(seed)
    confusion = np.asarray(confusion)
    truth = rng.integers(confusion.shape[1], size=n_items)
    draws = rng.random((n_items, len(confusion), 1))
    answers = (draws > confusion[:, truth].transpose(1, 0, 2).cumsum(axis=2)[:, :, :-1]).sum(axis=2)
    return cs.Answers.from_matrix(answers), truth


def caught(function):
    """Return what `function` returns, and the text of the data warnings it gives."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = function()
    assert all(issubclass(w.category, (DataWarning, ConvergenceWarning)) for w in given)
    return result, [str(w.message) for w in given if issubclass(w.category, DataWarning)]


def assert_never_rises(trace):
    assert np.isfinite(trace).all()
    assert (np.diff(trace) <= 1e-9 * (1 + np.abs(trace[1:]))).all(), np.diff(trace).max()


def assert_sound(model):
    for array in (model.posterior_, model.confusion_, model.prior_, model.trace_):
        assert np.isfinite(array).all()
    for array in (model.posterior_, model.confusion_, model.prior_):
        assert (array >= 0).all()
        np.testing.assert_allclose(array.sum(axis=-1), 1, atol=1e-9)


# -------------------------------------------------------------------------------------------------------- the simplex


def project(vector):
    vector = np.asarray(vector, float)
    return np.maximum(vector - simplex_threshold(vector, 0, 1), 0)


def project_by_bisection(vector):
    """Return max(v - t, 0) with the t at which it sums to 1."""
    t = optimize.brentq(lambda t: np.maximum(vector - t, 0).sum() - 1, vector.min() - 2, vector.max(), xtol=1e-15)
    return np.maximum(vector - t, 0)


@examples(200)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_projection_is_the_nearest_point(values):
    vector = np.array(values)
    found = project(vector)
    np.testing.assert_allclose(found, project_by_bisection(vector), atol=1e-12)
    assert found.min() >= 0
    assert abs(found.sum() - 1) < 1e-12
    # No corner of the simplex, and so no point of it, lies on the other side of the tangent plane.
    assert ((vector - found) @ (np.eye(len(vector)) - found).T <= 1e-10).all()


@pytest.mark.parametrize("tie", [0.1, 0.3, 0.7, -0.2])
def test_threshold_with_an_entry_as_large_as_it(tie):
    """Rounding puts such an entry now above the threshold and now below; the search then never ended."""
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        nearest = np.append(rng.dirichlet(np.ones(rng.integers(2, 9))), 0.0)
        np.testing.assert_allclose(project(nearest + tie), nearest, atol=1e-15)


def minimise_by_slsqp(hessian, linear):
    size = len(linear)
    result = optimize.minimize(
        lambda x: 0.5 * x @ hessian @ x - linear @ x,
        np.full(size, 1 / size),
        jac=lambda x: hessian @ x - linear,
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(size)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return result.x


def assert_optimal_on_simplex(gradient, point, tolerance=1e-7):
    """Check the conditions of Karush, Kuhn and Tucker, for each column."""
    for slope, x in zip(np.atleast_2d(gradient.T), np.atleast_2d(point.T), strict=True):
        level = slope @ x
        assert (slope >= level - tolerance).all()
        assert np.abs((slope - level) * x).max() < tolerance


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_vector_on_simplex_is_optimal(seed, scale):
    rng = np.random.default_rng(seed)
    size = 2 + seed % 4
    root = rng.normal(size=(size + 1, size))
    hessian, linear = root.T @ root, rng.normal(size=size)
    point, dual = np.full(size, 1 / size), np.zeros(size)
    solve_on_simplex(scale * hessian, scale * linear, point, dual, 1, 20_000, 1e-12)
    assert_optimal_on_simplex(hessian @ point - linear, point)
    np.testing.assert_allclose(point, minimise_by_slsqp(hessian, linear), atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_matrix_on_simplex_is_optimal(seed):
    rng = np.random.default_rng(seed)
    n_labels, n_classes = 2 + seed % 3, 2 + seed % 4
    root = rng.normal(size=(n_classes + 2, n_classes))
    hessian, linear = root.T @ root, rng.normal(size=(n_labels, n_classes))
    point, dual = np.full((n_labels, n_classes), 1 / n_labels), np.zeros((n_labels, n_classes))
    solve_on_simplex(hessian, linear, point, dual, n_classes, 50_000, 1e-12)
    np.testing.assert_allclose(point.sum(axis=0), 1, atol=1e-12)
    assert_optimal_on_simplex(point @ hessian - linear, point)
    result = optimize.minimize(
        lambda x: 0.5 * np.trace(x.reshape(point.shape) @ hessian @ x.reshape(point.shape).T) - linear.ravel() @ x,
        np.full(point.size, 1 / n_labels),
        bounds=[(0, 1)] * point.size,
        constraints={"type": "eq", "fun": lambda x: x.reshape(point.shape).sum(axis=0) - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(point, result.x.reshape(point.shape), atol=1e-4)


# ------------------------------------------------------------------------------------------------------ the objective


def unit_weights(responses):
    """Return weights of the implicit form under which every pair and triple of a dense crowd counts once."""
    return np.full((len(moments.lay_out(responses).set_size), 3), 1 / responses.n_items)


def count_weights(responses):
    return np.ones((len(moments.lay_out(responses).set_size), 3))


def constant_of(computed):
    return sum(0.5 * computed.weights[group] * float((x**2).sum()) for group, x in computed.observed.items())


SHAPES = [(5, 3, None), (6, 4, None), (4, 2, 3), (4, 3, 2), (3, 1, 2)]  # workers, labels, classes if they differ


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_workers", "n_labels", "n_classes"), SHAPES)
@pytest.mark.parametrize(("share", "counted"), [(1.0, False), (1.0, True), (0.6, True), (0.3, True)])
def test_implicit_and_explicit_are_the_same_function(seed, n_workers, n_labels, n_classes, share, counted):
    r = small_crowd(seed, n_items=30, n_workers=n_workers, n_classes=n_labels, share=share)
    confusion, prior = random_parameters(seed, n_workers, r.n_labels, n_classes or n_labels)
    computed = explicit_moments.compute_moments(r, count_weights=counted)
    weights = count_weights(r) if counted else unit_weights(r)
    value, gradient, prior_gradient = objective_and_gradient(r, weights, confusion, prior)
    expected = explicit_moments.objective_and_gradient(computed, confusion, prior)
    assert value + constant_of(computed) == pytest.approx(expected[0], abs=1e-8)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-8)
    np.testing.assert_allclose(prior_gradient, expected[2], atol=1e-8)


@pytest.mark.parametrize("implicit", [True, False])
def test_gradients_are_finite_differences(implicit):
    r = small_crowd(2, n_items=25, n_workers=4, share=0.8)
    confusion, prior = random_parameters(3, 4, 3, 3)
    weights = np.random.default_rng(1).random((len(moments.lay_out(r).set_size), 3)) / r.n_items
    computed = explicit_moments.compute_moments(r)

    def evaluate(c, p):
        if implicit:
            return objective_and_gradient(r, weights, c, p)
        return explicit_moments.objective_and_gradient(computed, c, p)

    _, gradient, prior_gradient = evaluate(confusion, prior)
    step = 1e-5
    for at in np.ndindex(confusion.shape):
        shift = np.zeros_like(confusion)
        shift[at] = step
        slope = (evaluate(confusion + shift, prior)[0] - evaluate(confusion - shift, prior)[0]) / (2 * step)
        assert slope == pytest.approx(gradient[at], abs=1e-7)
    for k in range(3):
        shift = step * np.eye(3)[k]
        slope = (evaluate(confusion, prior + shift)[0] - evaluate(confusion, prior - shift)[0]) / (2 * step)
        assert slope == pytest.approx(prior_gradient[k], abs=1e-7)


def test_both_methods_have_the_same_optimum(monkeypatch):
    crowd = cs.simulate.independent(2000, n_workers=5, n_classes=3, good="all", seed=5)
    r = crowd.responses
    monkeypatch.setattr(moments, "item_weights", lambda responses, layout: unit_weights(responses))
    start, prior = random_parameters(0, 5, 3, 3)
    start = 0.6 * internal(np.tile(np.eye(3), (5, 1, 1))) + 0.4 * start
    implicit = moments.match_moments(r, start, prior, max_iter=5000, tol=1e-9)
    explicit = explicit_moments.match_explicit_moments(r, start, prior, max_iter=5000, tol=1e-9)
    assert implicit.converged
    assert explicit.converged
    np.testing.assert_allclose(implicit.confusion, explicit.confusion, atol=1e-5)
    np.testing.assert_allclose(implicit.prior, explicit.prior, atol=1e-5)
    constant = constant_of(explicit_moments.compute_moments(r))
    assert implicit.trace[-1] + constant == pytest.approx(explicit.trace[-1], abs=1e-9)


@pytest.mark.parametrize("method", ["implicit", "explicit"])
@pytest.mark.parametrize("seed", range(6))
def test_sweeps_never_raise_the_objective(method, seed):
    rng = np.random.default_rng(seed)
    n_labels, n_classes = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    r = small_crowd(seed, 30, 6, n_labels, share=float(rng.uniform(0.2, 1)))
    start, prior = random_parameters(seed + 100, 6, r.n_labels, n_classes)
    match = moments.match_moments if method == "implicit" else explicit_moments.match_explicit_moments
    found = match(r, start, prior, max_iter=60, tol=0)
    assert_never_rises(found.trace)
    np.testing.assert_allclose(found.confusion.sum(axis=1), 1, atol=1e-9)
    assert found.confusion.min() >= 0


# -------------------------------------------------------------------------------------------------------- the layout


@examples(60)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 5), st.floats(0.0, 1.0))
def test_layout_is_its_slow_twins(seed, n_items, n_workers, share):
    rng = np.random.default_rng(seed)
    answers = np.where(rng.random((n_items, n_workers)) < share, rng.integers(0, 3, (n_items, n_workers)), -1)
    answers[0, 0] = 2
    r = cs.Answers.from_matrix(answers, classes=[0, 1, 2])
    layout = moments.lay_out(r)
    answers = oracles.densify(r)
    for m in range(r.n_workers):
        own = slice(layout.worker_offsets[m], layout.worker_offsets[m + 1])
        listed = sorted(zip(layout.item[own].tolist(), layout.label[own].tolist(), strict=True))
        assert listed == [(n, label) for n, label in np.argwhere(answers[:, m] > 0).tolist()]
    sets = [frozenset(np.flatnonzero(answers[n].any(axis=1)).tolist()) for n in range(r.n_items)]
    for a, b in itertools.combinations(range(r.n_items), 2):
        assert (sets[a] == sets[b]) == (layout.set_of_item[a] == layout.set_of_item[b])
    assert len(layout.set_size) == len(set(sets))
    for n, workers in enumerate(sets):
        u = layout.set_of_item[n]
        assert layout.set_size[u] == sets.count(workers)
        assert set(layout.members[layout.member_offsets[u] : layout.member_offsets[u + 1]].tolist()) == workers
        for m in range(r.n_workers):
            of_worker = layout.sets[layout.set_offsets[m] : layout.set_offsets[m + 1]].tolist()
            assert of_worker.count(u) == (m in workers)


# ------------------------------------------------------------------------------------------ alignment and shrinkage


def test_one_permutation_for_all_workers():
    crowd = cs.simulate.independent(1000, n_workers=8, n_classes=3, seed=2)
    start, prior = internal(crowd.parameters.confusion), crowd.parameters.prior
    straight = moments.learn_moments(crowd.responses, start, prior, tol=1e-8, max_iter=2000)
    for order in itertools.permutations(range(3)):
        permuted = moments.learn_moments(
            crowd.responses, start[:, :, list(order)], prior[list(order)], tol=1e-8, max_iter=2000
        )
        np.testing.assert_allclose(permuted.confusion, straight.confusion, atol=1e-6)
        np.testing.assert_allclose(permuted.prior, straight.prior, atol=1e-6)


def test_alignment_weighs_workers_by_their_answers():
    right, swapped = np.eye(2) * 0.8 + 0.1, np.eye(2)[::-1] * 0.8 + 0.1
    confusion, prior = np.array([right, swapped, swapped]), np.array([0.3, 0.7])
    label_of_class = np.array([0, 1])
    few, _ = moments.align_classes(confusion, prior, np.array([10, 1, 1]), label_of_class)
    np.testing.assert_array_equal(few, confusion)
    many, ordered = moments.align_classes(confusion, prior, np.array([1, 10, 10]), label_of_class)
    np.testing.assert_array_equal(many, confusion[:, :, ::-1])
    np.testing.assert_array_equal(ordered, prior[::-1])


def test_shrinkage():
    confusion, _ = random_parameters(0, 3, 4, 2)
    n_answers = np.array([1_000_000, 10, 0])
    own = np.array([(n / 2 * c + 0.25) / (n / 2 + 1) for n, c in zip(n_answers, confusion, strict=True)])
    pooled = np.tensordot(n_answers / n_answers.sum(), own, axes=1)
    np.testing.assert_allclose(moments.shrink(confusion, n_answers, 0), own)
    np.testing.assert_allclose(moments.shrink(confusion, n_answers, 1e15), np.tile(pooled, (3, 1, 1)), atol=1e-8)
    usual = moments.shrink(confusion, n_answers, 20)
    np.testing.assert_allclose(usual[1], (5 * own[1] + 20 * pooled) / 25)
    np.testing.assert_allclose(usual[0], confusion[0], atol=1e-4)
    np.testing.assert_allclose(usual[2], pooled)
    np.testing.assert_allclose(usual.sum(axis=1), 1)
    assert usual.min() > 0


# ---------------------------------------------------------------------------------------------------- stopping rules


def test_stopping_rules():
    r = cs.simulate.independent(500, n_workers=5, n_classes=3, good="all", seed=1).responses
    told = []
    exact = cs.MomentMatching(tol=0, max_iter=7, callback=told.append).fit(r)
    assert exact.n_iter_ == len(exact.trace_) == len(told) == 7
    assert not exact.converged_
    assert [p.iteration for p in told] == list(range(1, 8))
    assert {p.max_iter for p in told} == {7}
    np.testing.assert_array_equal([p.objective for p in told], exact.trace_)
    told.clear()
    loose = cs.MomentMatching(tol=0.01, callback=told.append).fit(r)
    assert loose.converged_
    assert told[-1].gain < 0.01 <= told[-2].gain
    tight = cs.MomentMatching(tol=1e-7, max_iter=5000).fit(r)
    assert tight.converged_
    assert tight.n_iter_ > loose.n_iter_
    assert tight.trace_[-1] <= loose.trace_[-1]
    with pytest.warns(
        ConvergenceWarning,
        match=r"stopped after 2 iterations before it settled\. Allow more with max_iter=4",
    ):
        stopped = cs.MomentMatching(max_iter=2).fit(r)
    assert not stopped.converged_


# ---------------------------------------------------------------------------------------------------- identifiability


def named(responses_matrix, names):
    rows, columns = np.nonzero(responses_matrix >= 0)
    return {
        "item": rows,
        "worker": [names[m] for m in columns],
        "label": responses_matrix[rows, columns],
    }


def good_answers(n_items, n_workers, seed=0, n_classes=3):
    return oracles.simulate(seed, n_items, n_workers, n_classes, share=1.0, skill=(0.7, 0.9))[0]


@pytest.mark.parametrize("model", [cs.MomentMatching(), cs.DawidSkene(start="moments")])
def test_two_workers_are_not_enough(model):
    table = named(good_answers(300, 2), ["ann", "bob"])
    _, told = caught(lambda: renew(model).fit(table))
    assert any("no item has three answers" in t for t in told)


# ----------------------------------------------------------------------------------------------------------- the model


@pytest.fixture(scope="module")
def crowd():
    return cs.simulate.independent(1500, n_workers=7, n_classes=3, good="all", seed=4)


@pytest.fixture(scope="module")
def fitted(crowd):
    return cs.MomentMatching().fit(crowd.responses)


def test_posterior_is_bayes_rule(crowd, fitted):
    assert_sound(fitted)
    posterior, log_likelihood = oracles.dense_posterior(
        oracles.densify(crowd.responses), np.log(fitted.confusion_), np.log(fitted.prior_)
    )
    np.testing.assert_allclose(fitted.posterior_, posterior, atol=1e-10)
    np.testing.assert_array_equal(fitted.labels_, fitted.classes_[posterior.argmax(axis=1)])
    assert fitted.score(crowd.responses) == pytest.approx(log_likelihood / 1500, rel=1e-10)


def test_predict_equals_fit(crowd, fitted):
    np.testing.assert_array_equal(fitted.predict_proba(crowd.responses), fitted.posterior_)
    np.testing.assert_array_equal(fitted.predict(crowd.responses), fitted.labels_)
    np.testing.assert_array_equal(cs.MomentMatching().fit_predict(crowd.responses), fitted.labels_)


def test_gold_keeps_its_labels(crowd, fitted):
    wrong = {item: int(3 - 1 - k) for item, k in zip(range(20), crowd.truth[:20], strict=True)}
    model = cs.MomentMatching().fit(crowd.responses, gold=wrong)
    np.testing.assert_array_equal(model.labels_[:20], list(wrong.values()))
    np.testing.assert_array_equal(model.posterior_[np.arange(20), list(wrong.values())], 1)
    np.testing.assert_allclose(model.confusion_, fitted.confusion_, atol=1e-3)
    np.testing.assert_array_equal(model.predict_proba(crowd.responses, gold=wrong), model.posterior_)


def test_label_outside_the_classes():
    rng = np.random.default_rng(0)
    confusion = np.array([[[0.7, 0.1, 0.2], [0.15, 0.6, 0.25]]] * 6)
    truth = rng.integers(2, size=3000)
    draws = rng.random((3000, 6, 1))
    answers = (draws > confusion[:, truth].transpose(1, 0, 2).cumsum(axis=2)[:, :, :-1]).sum(axis=2)
    names = np.array(["no", "yes", "unsure"], dtype=object)
    r = cs.Answers.from_matrix(names[answers], classes=["no", "yes"])
    order = [r.labels.tolist().index(name) for name in names]
    model = cs.MomentMatching().fit(r)
    assert model.classes_.tolist() == ["no", "yes"]
    assert cs.metrics.confusion_error(confusion, model.confusion_[:, :, order]) < 0.15
    assert cs.metrics.accuracy(names[truth], model.labels_) > 0.9


DEGENERATE = {
    "one class": (np.zeros((20, 4), int), None),
    "two workers": (np.random.default_rng(1).integers(0, 3, (30, 2)), None),
    "a worker without answers": (np.where(np.arange(5) != 2, good_answers(40, 5), -1), None),
    "everybody agrees": (np.repeat(np.arange(40)[:, None] % 3, 5, axis=1), None),
}
HEALTHY = {"one class", "items nobody answered", "a worker without answers", "everybody agrees"}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("model", [cs.MomentMatching(), cs.DawidSkene(start="moments")], ids=["moments", "start"])
def test_degenerate_data(name, model):
    answers, classes = DEGENERATE[name]
    r = cs.Answers.from_matrix(answers, classes=classes)
    fit, told = caught(lambda: renew(model).fit(r))
    assert_sound(fit)
    assert name in HEALTHY or told


# ----------------------------------------------------------------------------------------------------- as a start


@pytest.mark.parametrize(("seed", "estimation"), rest_robust([(0, "em"), *((n, "variational") for n in range(3))], 2))
def test_best_never_ends_below_majority(seed, estimation):
    r = cs.simulate.independent(1500, n_workers=30, n_classes=4, answers_per_item=5, seed=seed).responses
    majority = cs.DawidSkene(estimation=estimation).fit(r)
    moment = cs.DawidSkene(estimation=estimation, start="moments").fit(r)
    best = cs.DawidSkene(estimation=estimation, start="best").fit(r)
    assert list(best.result_.course.starts) == ["majority", "moments"]
    np.testing.assert_array_equal(best.result_.course.starts["majority"], majority.trace_)
    np.testing.assert_array_equal(best.result_.course.starts["moments"], moment.trace_)
    assert best.trace_[-1] == max(majority.trace_[-1], moment.trace_[-1])
    for trace in best.result_.course.starts.values():
        assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()


def test_moments_lead_where_the_vote_misleads():
    """Most workers take b for c and c for b half of the time; two good ones are outvoted."""
    confusion = np.tile([[0.8, 0.1, 0.1], [0.1, 0.4, 0.5], [0.1, 0.5, 0.4]], (3, 1, 1))
    good = np.tile(np.eye(3) * 0.85 + 0.05, (5, 1, 1))
    everyone = np.concatenate([good, confusion])
    r, truth = crowd_like(everyone, 5000, 0)
    model = cs.MomentMatching().fit(r)
    assert cs.metrics.confusion_error(everyone, model.confusion_) < 0.08
    assert cs.metrics.accuracy(truth, model.labels_) > cs.metrics.accuracy(truth, cs.MajorityVote().fit(r).labels_)


# -------------------------------------------------------------------------------------------------------------- bars


def oracle_labels(crowd):
    """Return the most probable labels under the true parameters."""
    r = crowd.responses
    logs = np.tile(np.log(crowd.parameters.prior), (r.n_items, 1))
    np.add.at(logs, r.item_of_answer(), np.log(crowd.parameters.confusion)[r.worker, :, r.label])
    return logs.argmax(axis=1)


@pytest.mark.robust
@pytest.mark.parametrize("seed", range(3))
def test_accuracy_of_a_dense_ensemble(seed):
    crowd = cs.simulate.independent(10_000, n_workers=10, n_classes=4, good=6, seed=seed)
    true = crowd.parameters.confusion
    assert cs.metrics.confusion_error(true, cs.MomentMatching().fit(crowd.responses).confusion_) <= 0.09
    model = cs.DawidSkene(start="moments").fit(crowd.responses)
    assert cs.metrics.confusion_error(true, model.confusion_) <= 0.06
    ceiling = cs.metrics.macro_f1(crowd.truth, oracle_labels(crowd))
    assert cs.metrics.macro_f1(crowd.truth, model.labels_) >= ceiling - 0.005
