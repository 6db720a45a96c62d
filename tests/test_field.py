"""Potts fields on graphs: kernels and inference against plain loops and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import consilience as cs
from consilience.inference.structures import field
from consilience.inference.structures.field import (
    add_neighbours,
    find_modes,
    given_neighbours,
    run_belief_propagation,
    run_mean_field,
)
from consilience.kernels import LARGE, width_of
from consilience.kernels.graph import (
    field_objective,
    neighbour_sums,
    pseudo_likelihood_slope,
    sweep_mean_field,
    sweep_modes,
)
from effort import examples

# ----------------------------------------------------------------------------------------------------------- the twins


def graph_of(n_items, edges, weights=None):
    source, target = ([edge[end] for edge in edges] for end in (0, 1))
    if not edges:
        return cs.Graph.from_scipy(np.zeros((n_items, n_items)))
    return cs.Graph.from_edges(source, target, weights, items=np.arange(n_items))


def score_of(labeling, matrix, unary, coupling):
    """Return log p(y) + const of one labeling."""
    total = sum(unary[i, k] for i, k in enumerate(labeling))
    for i, j in itertools.combinations(range(len(labeling)), 2):
        if labeling[i] == labeling[j]:
            total += coupling * matrix[i, j]
    return total


def enumerate_field(graph, unary, coupling):
    """Return (marginals, log normaliser) by summing over all K^N labelings."""
    matrix, (n_items, n_classes) = graph.to_scipy().toarray(), unary.shape
    every = list(itertools.product(range(n_classes), repeat=n_items))
    logs = np.array([score_of(y, matrix, unary, coupling) for y in every])
    log_total = special.logsumexp(logs)
    marginals = np.zeros(unary.shape)
    for y, p in zip(every, np.exp(logs - log_total), strict=True):
        marginals[np.arange(n_items), list(y)] += p
    return marginals, log_total


def sweep_slowly(graph, unary, coupling, posterior):
    """One sweep of mean field, by the formula; return (posterior, largest change)."""
    matrix, new = graph.to_scipy().toarray(), posterior.copy()
    for i in range(graph.n_items):
        new[i] = special.softmax(unary[i] + coupling * matrix[i] @ new)
    return new, np.abs(new - posterior).max(initial=0)


def objective_slowly(graph, unary, coupling, posterior):
    """Return E_q[log p~(y)] + H(q), term by term."""
    matrix, total = graph.to_scipy().toarray(), 0.0
    for i, k in np.ndindex(posterior.shape):
        if posterior[i, k] > 0:
            total += posterior[i, k] * (unary[i, k] - np.log(posterior[i, k]))
    for i, j in itertools.combinations(range(len(posterior)), 2):
        total += coupling * matrix[i, j] * posterior[i] @ posterior[j]
    return total


def objective(graph, unary, coupling, posterior):
    sums = np.empty_like(posterior)
    neighbour_sums(0, graph.n_items, graph.offsets, graph.neighbours, graph.weights, posterior, sums)
    return field_objective(np.maximum(unary, -1e300), sums, coupling, posterior)


def sweep(graph, unary, coupling, posterior):
    edges = (graph.offsets, graph.neighbours, graph.weights)
    return sweep_mean_field(graph.independent_runs, *edges, unary, coupling, posterior, width_of(unary.shape[1], LARGE))


def sweep_labels(graph, unary, coupling, labels):
    edges = (graph.offsets, graph.neighbours, graph.weights)
    return sweep_modes(*edges, unary, coupling, labels, width_of(unary.shape[1], LARGE))


def propagate(graph, unary, coupling, max_sweeps=5000, tol=0.0):
    return run_belief_propagation(graph, unary, coupling, None, max_sweeps, tol)[0]


@st.composite
def fields(draw, max_items=7, max_classes=4, tree=False, most=3.0):
    """Draw (graph, unary, coupling): weighted edges, isolated nodes, nodes without evidence, known labels."""
    n_items, n_classes = draw(st.integers(1, max_items)), draw(st.integers(2, max_classes))
    if tree:
        parents = [draw(st.integers(-1, i - 1)) for i in range(n_items)]
        names = draw(st.permutations(range(n_items)))
        edges = [(names[i], names[p]) for i, p in enumerate(parents) if p >= 0]
    else:
        pairs = list(itertools.combinations(range(n_items), 2))
        edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weights = draw(st.lists(st.floats(0.1, 2.0), min_size=len(edges), max_size=len(edges)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    unary = rng.normal(size=(n_items, n_classes)) * draw(st.sampled_from([0.0, 0.1, 1.0, 5.0, 100.0]))
    unary[rng.random(n_items) < 0.2] = 0.0
    for i in np.flatnonzero(rng.random(n_items) < 0.2):
        unary[i, np.arange(n_classes) != rng.integers(n_classes)] = -np.inf
    return graph_of(n_items, edges, weights), unary, draw(st.sampled_from([0.0, 0.3, 1.0, most]))


# ---------------------------------------------------------------------------------------------------------- mean field


@settings(deadline=None)
@given(fields())
def test_mean_field_sweeps_are_the_formula(problem):
    graph, unary, coupling = problem
    fast = special.softmax(unary, axis=1)
    slow = fast.copy()
    for _ in range(4):
        slow, moved = sweep_slowly(graph, unary, coupling, slow)
        assert sweep(graph, unary, coupling, fast) == pytest.approx(moved, abs=1e-12)
        np.testing.assert_allclose(fast, slow, atol=1e-12)
        assert objective(graph, unary, coupling, fast) == pytest.approx(
            objective_slowly(graph, unary, coupling, slow), rel=1e-10, abs=1e-10
        )


@settings(deadline=None)
@given(fields(max_items=12, most=10.0), st.integers(0, 2**32))
def test_mean_field_never_lowers_the_objective(problem, seed):
    graph, unary, coupling = problem
    posterior = np.random.default_rng(seed).dirichlet(np.ones(unary.shape[1]), len(unary))
    posterior[~np.isfinite(unary)] = 0
    posterior /= posterior.sum(axis=1, keepdims=True)
    before = objective(graph, unary, coupling, posterior)
    for _ in range(6):
        sweep(graph, unary, coupling, posterior)
        after = objective(graph, unary, coupling, posterior)
        assert after >= before - 1e-10 * (1 + abs(before))
        before = after


@examples(40)
@given(fields(max_items=5, max_classes=3))
def test_mean_field_is_a_bound(problem):
    graph, unary, coupling = problem
    posterior = run_mean_field(graph, unary, coupling, special.softmax(unary, axis=1), 200, 1e-9)
    finite = np.where(np.isfinite(unary), unary, -1e6)
    assert objective(graph, finite, coupling, posterior) <= enumerate_field(graph, finite, coupling)[1] + 1e-9


# ------------------------------------------------------------------------------------------------------ nodes at once


@pytest.fixture
def large(monkeypatch):
    """Let all graphs be large, with short runs of which threads share every node."""
    monkeypatch.setattr("consilience.answers.graph.MANY_EDGES", 0)
    monkeypatch.setattr("consilience.answers.graph.COLOURED_TOGETHER", 50)
    monkeypatch.setattr(field, "WORTH_A_THREAD", 1)


def random_graph(n_items, n_edges, seed=0):
    source, target = np.random.default_rng(seed).integers(0, n_items, (2, n_edges))
    return cs.Graph.from_edges(source, target, items=np.arange(n_items))


SHAPES = {
    "random": lambda: random_graph(400, 900),
    "grid": lambda: cs.Graph.grid((12, 15), 8),
    "star": lambda: graph_of(120, [(0, i) for i in range(1, 120)]),
    "clique": lambda: graph_of(12, list(itertools.combinations(range(12), 2))),
    "pairs and single nodes": lambda: graph_of(130, [(i, i + 1) for i in range(0, 60, 2)]),
    "no edges": lambda: graph_of(130, []),
}


def runs_slowly(graph):
    """Return where runs begin that hold no neighbours, and the number of nodes."""
    matrix, bounds = graph.to_scipy().toarray() > 0, [0]
    for i in range(graph.n_items):
        if matrix[i, bounds[-1] : i].any():
            bounds.append(i)
    return [*bounds, graph.n_items]


def colours_slowly(graph, together):
    """Return the nodes by run and colour: of each node the first colour that no earlier neighbour in its run has."""
    matrix, colours = graph.to_scipy().toarray() > 0, []
    for i in range(graph.n_items):
        begin = i // together * together
        taken = {colours[j] for j in range(begin, i) if matrix[i, j]}
        colours.append(next(colour for colour in itertools.count() if colour not in taken))
    return sorted(range(graph.n_items), key=lambda i: (i // together, colours[i], i))


@pytest.mark.parametrize("shape", SHAPES)
def test_large_graphs_are_visited_colour_by_colour(shape, large, monkeypatch):
    graph = SHAPES[shape]()
    visited = graph.by_visit[1]
    bounds = visited.independent_runs
    assert bounds.tolist() == runs_slowly(visited)
    monkeypatch.setattr("consilience.answers.graph.MANY_EDGES", len(graph.neighbours) + 1)
    plain = SHAPES[shape]().by_visit[1]
    np.testing.assert_array_equal(visited.items, plain.items[colours_slowly(plain, 50)])
    np.testing.assert_array_equal(plain.independent_runs, np.arange(graph.n_items + 1))
    # A run of 50 nodes has few colours, unless all of its nodes are neighbours.
    assert len(bounds) - 1 <= (12 if shape == "clique" else 7 * (graph.n_items // 50 + 1))


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_do_not_depend_on_the_number_of_threads(shape, large):
    graph = SHAPES[shape]().by_visit[1]
    unary = np.random.default_rng(1).normal(size=(graph.n_items, 3))
    one, *others = (run_mean_field(graph, unary, 0.8, special.softmax(unary, axis=1), 7, 0.0, n) for n in (1, 2, 3, 8))
    for other in others:
        np.testing.assert_array_equal(one, other)
    slow = special.softmax(unary, axis=1)
    for _ in range(7):
        slow = sweep_slowly(graph, unary, 0.8, slow)[0]
    np.testing.assert_allclose(one, slow, atol=1e-12)
    np.testing.assert_array_equal(add_neighbours(graph, one, 1), add_neighbours(graph, one, 3))
    np.testing.assert_allclose(add_neighbours(graph, one, 3), graph.to_scipy() @ one, atol=1e-12)


# ----------------------------------------------------------------------------------------------------------------- ICM


@settings(deadline=None)
@given(fields(max_items=12, most=10.0), st.integers(0, 2**32))
def test_modes_never_raise_the_energy_and_come_to_an_end(problem, seed):
    graph, unary, coupling = problem
    unary = np.where(np.isfinite(unary), unary, -1e3)
    labels = np.random.default_rng(seed).integers(unary.shape[1], size=len(unary))
    matrix = graph.to_scipy().toarray()
    before = score_of(labels, matrix, unary, coupling)
    for _ in range(200):
        old = labels.copy()
        changed = sweep_labels(graph, unary, coupling, labels)
        assert changed == np.sum(labels != old)
        after = score_of(labels, matrix, unary, coupling)
        assert after >= before - 1e-9 * (1 + abs(before))
        assert after > before or not changed
        before = after
        if not changed:
            break
    assert not changed
    hard = np.eye(unary.shape[1])[labels]
    scores = unary + coupling * matrix @ hard
    assert (scores.max(axis=1) <= scores[np.arange(len(labels)), labels] + 1e-9).all()
    conditional = given_neighbours(graph, unary, coupling, labels)
    np.testing.assert_allclose(conditional, special.softmax(scores, axis=1), atol=1e-12)


# -------------------------------------------------------------------------------------------------- belief propagation


@examples(60)
@given(fields(max_items=6, max_classes=3, tree=True))
def test_belief_propagation_is_exact_on_trees(problem):
    graph, unary, coupling = problem
    finite = np.where(np.isfinite(unary), unary, -1e4)
    assert graph.is_forest
    exact = enumerate_field(graph, finite, coupling)[0]
    np.testing.assert_allclose(propagate(graph, unary, coupling, 1, 1e-3), exact, atol=1e-10)


# ------------------------------------------------------------------------------------------------------------ extremes


@pytest.mark.parametrize("order", ["mixed", "one side first"])
def test_a_hub_of_thousands(order):
    """A thousand neighbours say one class, a thousand the other, and one more decides; no product may vanish."""
    n, coupling = 2001, 3.0
    graph = graph_of(n + 1, [(0, i) for i in range(1, n + 1)])
    said = np.arange(n) % 2 if order == "mixed" else (np.arange(n) > 1000).astype(int)
    unary = np.vstack([[[0.0, 0.0]], np.log(np.where(np.arange(2) == said[:, None], 0.9, 0.1))])
    beliefs = propagate(graph, unary, coupling)
    pulls = np.array([0.9 * np.exp(coupling) + 0.1, 0.1 * np.exp(coupling) + 0.9])  # for the hub's class, against it
    odds = np.log(pulls[0] / pulls[1]) * (np.sum(said == 0) - np.sum(said == 1))
    np.testing.assert_allclose(beliefs[0], special.softmax([odds, 0.0]), atol=1e-9)
    mean_field = run_mean_field(graph, unary, coupling, special.softmax(unary, axis=1), 50, 1e-9)
    assert np.isfinite(mean_field).all()
    assert find_modes(graph, unary, coupling, unary.argmax(axis=1), 50)[0] == beliefs[0].argmax()


@pytest.mark.parametrize("coupling", [50.0, 1e3, 1e6])
def test_couplings_beyond_reason(coupling):
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(6, 3))
    unary[0, 1:] = -np.inf
    for edges in ([(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1), (1, 2), (2, 0), (3, 4)]):
        graph = graph_of(6, edges)
        for found in (
            propagate(graph, unary, coupling, 50),
            run_mean_field(graph, unary, coupling, special.softmax(unary, axis=1), 50, 0.0),
        ):
            assert np.isfinite(found).all()
            np.testing.assert_allclose(found.sum(axis=1), 1)
            np.testing.assert_allclose(found[:3, 0], 1, atol=1e-6)
            np.testing.assert_allclose(found[5], special.softmax(unary[5]))


# -------------------------------------------------------------------------------------------------- pseudo-likelihood


def pseudo_likelihood(graph, sums, posterior, external, coupling):
    linked = graph.degrees > 0
    return np.sum(posterior * special.log_softmax(external + coupling * sums, axis=1), where=linked[:, None])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("coupling", [0.0, 0.7, 2.0])
def test_slope_and_curvature_of_the_pseudo_likelihood(n_classes, coupling):
    rng = np.random.default_rng(1)
    edges = [(i, j) for i, j in itertools.combinations(range(12), 2) if rng.random() < 0.25]
    graph = graph_of(15, edges, rng.uniform(0.2, 2, len(edges)))
    assert (graph.degrees == 0).any()
    posterior, external = rng.dirichlet(np.ones(n_classes), 15), rng.normal(size=n_classes)
    sums = np.empty_like(posterior)
    neighbour_sums(0, graph.n_items, graph.offsets, graph.neighbours, graph.weights, posterior, sums)
    np.testing.assert_allclose(sums, graph.to_scipy() @ posterior, atol=1e-12)
    step = 1e-4
    below, here, above = (
        pseudo_likelihood(graph, sums, posterior, external, coupling + shift) for shift in (-step, 0.0, step)
    )
    slope, curvature = pseudo_likelihood_slope(graph.offsets, sums, external, coupling, posterior)
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-6)
    assert -curvature == pytest.approx((above - 2 * here + below) / step**2, rel=1e-3, abs=1e-4)
