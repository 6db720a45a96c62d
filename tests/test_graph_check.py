"""What is said about a graph, in each situation in which it could be false; and items that do not hear neighbours."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
import oracles
from benchmarks.masks import draw_masks, draw_noise
from command_line import run
from consilience.comparisons.graph import correlate_errors, measure_agreement
from consilience.errors import DataWarning
from effort import examples


def network(**keywords):
    return cs.simulate.network(**{"n_items": 400, "n_workers": 6, "n_classes": 3, "degree": 6, "seed": 1} | keywords)


def fused_quietly(r, graph, **keywords):
    """Return the fused model and what was warned about the graph."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = cs.fuse(r, graph=graph, **keywords)
    told = [each for each in caught if "graph" in str(each.message)]
    assert all(each.category is DataWarning for each in told)
    return model, [str(each.message) for each in told]


# ---------------------------------------------------------------------------------------------- what is measured


def correlate_slowly(r, graph, labels):
    """Return what `correlate_errors` does, for answers without weights, edge by edge."""
    said = {}
    for item, worker, label in zip(r.item_of_answer().tolist(), r.worker.tolist(), r.label.tolist(), strict=True):
        if r.class_of_label[label] >= 0:
            said[item, worker] = float(r.class_of_label[label] != labels[item])
    error = {
        (i, m): value - np.mean([v for (j, o), v in said.items() if o == m and labels[j] == labels[i]])
        for (i, m), value in said.items()
    }
    products, squares = [], []
    for i in range(graph.n_items):
        for j in graph.neighbours[graph.offsets[i] : graph.offsets[i + 1]].tolist():
            for m in range(r.n_workers):
                if i < j and labels[i] == labels[j] and (i, m) in error and (j, m) in error:
                    products.append(error[i, m] * error[j, m])
                    squares.append((error[i, m] ** 2 + error[j, m] ** 2) / 2)
    if not sum(squares):
        return 0.0, np.inf
    return sum(products) / sum(squares), np.sqrt(np.sum(np.square(products))) / sum(squares)


@examples(60)
@given(st.integers(0, 10**6))
def test_correlation_equals_its_slow_twin(seed):
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(2, 9), rng.integers(1, 5), rng.integers(1, 4)
    F = rng.integers(-1, k + 1, (n, m))
    F[0, 0] = 0
    r = cs.Answers.from_matrix(F, labels=range(k + 1), classes=range(k), abstain="ignore")  # k is "unsure"
    graph = cs.Graph.from_edges(rng.integers(0, n, 12), rng.integers(0, n, 12), items=r.items)
    labels = rng.integers(0, k, n)
    assert correlate_errors(r, graph, labels) == pytest.approx(correlate_slowly(r, graph, labels))


def agree_slowly(votes, edges):
    """Return what `measure_agreement` does, edge by edge, from vote shares of items that all have answers."""
    ends = np.array([votes[i] for edge in edges for i in edge])
    mean = ends.mean(axis=0)
    C = np.mean([np.outer(x - mean, x - mean) for x in ends], axis=0)
    found = np.mean([(votes[i] - mean) @ (votes[j] - mean) for i, j in edges]) / np.trace(C)
    return found, np.sqrt((C**2).sum() / len(edges)) / np.trace(C)


def test_agreement_equals_its_slow_twin():
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.ones(3), 9)
    edges = [(i, j) for i in range(9) for j in range(i) if rng.random() < 0.5]
    r = oracles.spread_answers(votes[:, None])
    graph = cs.Graph.from_edges(*zip(*edges, strict=True), items=r.items)
    assert measure_agreement(r, graph) == pytest.approx(agree_slowly(votes, edges))


@pytest.mark.parametrize("wobble", [1.0, 1.5, 3.0])
def test_errors_along_outlines_are_seen(wobble):
    masks = draw_masks(2, wobbles=(wobble,) * 5)
    correlation, error = correlate_errors(masks.responses, masks.graph, masks.truth)
    assert correlation > 0.45
    assert error < 0.05


@pytest.mark.parametrize("accuracy", [0.9, 0.75, 0.6])
def test_independent_errors_are_not_seen(accuracy):
    noise = draw_noise(0, 32, accuracy=accuracy)
    for labels in (noise.truth, cs.MajorityVote().fit(noise.responses).result_.labels.codes):
        assert abs(correlate_errors(noise.responses, noise.graph, labels)[0]) < 0.05


# ---------------------------------------------------------------------------- situations, and what is said in each


def situation(name):
    """Return answers and a graph."""
    if name == "outlines":
        masks = draw_masks(1, 40)
        return masks.responses, masks.graph
    if name == "outlines, shuffled":
        masks = draw_masks(1, 32)
        return masks.responses, masks.graph.shuffled(3)
    if name == "one reader":
        masks = draw_masks(1, 32, (2.0,))
        return masks.responses, masks.graph
    if name == "noise on pixels":
        noise = draw_noise(0, 32)
        return noise.responses, noise.graph
    if name == "weak workers, shuffled":  # on which a coupling of .3 is learned, and 40% of labels change
        noise = draw_noise(0, accuracy=0.55)
        return noise.responses, noise.graph.shuffled(1)
    if name == "coin flips":
        noise = draw_noise(0, 24, accuracy=0.5)
        return noise.responses, noise.graph
    if name == "all agree":
        crowd = network(accuracy=1.0)
        return crowd.responses, crowd.graph
    keywords = {
        "network": {},
        "shuffled": {},
        "one answer each": {"answers_per_item": 1},
        "unlike": {"homophily": 0.05, "n_items": 1000},
        "tiny": {"n_items": 12, "degree": 3},
    }
    crowd = network(**keywords[name])
    return crowd.responses, crowd.graph.shuffled(3) if name == "shuffled" else crowd.graph


def one_sided_masks(side=32, recall=0.6, workers=5, seed=0):
    """Return answers of workers who only say 1, on part of the pixels of a disc, and the truth."""
    y, x = np.indices((side, side)) - side / 2
    truth = (x**2 + y**2 < (side / 3) ** 2).ravel().astype(int)
    heard = np.random.default_rng(seed).random((side * side, workers)) < recall
    F = np.where(heard & (truth[:, None] == 1), 1, -1)
    r = cs.Answers.from_matrix(F, labels=[0, 1], classes=[0, 1], abstain="answer", background=0)
    return r, cs.Graph.grid((side, side)), truth


def test_silence_tells_that_neighbours_agree():
    r, graph, truth = one_sided_masks()
    value, error = measure_agreement(r, graph)
    assert value > 10 * error
    spoken = np.bincount(r.item_of_answer(), minlength=r.n_items) / r.n_workers
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    once = source < graph.neighbours
    edges = list(zip(source[once].tolist(), graph.neighbours[once].tolist(), strict=True))
    assert (value, error) == pytest.approx(agree_slowly(np.stack([spoken, 1 - spoken], axis=1), edges))
    model, warned = fused_quietly(r, graph)
    assert not warned
    assert model.graph_check_.sound
    assert np.mean(model.result_.labels.codes == truth) > 0.97


# --------------------------------------------------------------------------------- labels where errors run along edges


# ------------------------------------------------------------------------------------------------ who hears neighbours

INFERENCES = ["mean_field", "icm", "belief_propagation"]


@pytest.mark.parametrize("inference", INFERENCES)
def test_answered_items_are_as_without_a_graph(inference):
    crowd = network(answers_per_item=3)
    alone = cs.DawidSkene(calibration="none").fit(crowd.responses)
    given_one = cs.MarkovField(coupling=2.0, listeners="unanswered", inference=inference, calibration="none")
    model = given_one.fit(crowd.responses, graph=crowd.graph)
    assert np.allclose(model.posterior_, alone.posterior_, atol=1e-9)
    assert np.array_equal(model.predict_proba(crowd.responses, graph=crowd.graph), model.posterior_)


@pytest.mark.parametrize("inference", INFERENCES)
def test_unanswered_items_are_as_their_neighbours_say(inference, tmp_path):
    """A path a - x - b of which x was not answered, many times over: the posterior of x is known exactly."""
    rng = np.random.default_rng(0)
    n, beta = 60, 1.3
    F = rng.integers(0, 2, (3 * n, 4))
    F[1::3] = -1
    r = cs.Answers.from_matrix(F)
    middle = np.arange(1, 3 * n, 3)
    graph = cs.Graph.from_edges([*middle, *middle], [*(middle - 1), *(middle + 1)], items=r.items)
    model = cs.MarkovField(coupling=beta, listeners="unanswered", inference=inference, calibration="none")
    model.fit(r, graph=graph)
    ends = np.stack([model.posterior_[middle - 1], model.posterior_[middle + 1]])
    if inference == "belief_propagation":
        expected = (1 + (np.exp(beta) - 1) * ends).prod(axis=0)
    else:
        heard = ends if inference == "mean_field" else ends > 0.5
        expected = np.exp(beta * heard.sum(axis=0))
    expected /= expected.sum(axis=1, keepdims=True)
    clear = np.all(abs(ends - 0.5) > 0.01, axis=(0, 2))
    assert np.allclose(model.posterior_[middle][clear], expected[clear], atol=1e-4)
    again = cs.load(model.save(tmp_path / "field.model"))
    assert again.listeners == "unanswered"
    assert np.array_equal(again.predict_proba(r, graph=graph), model.posterior_)


# ------------------------------------------------------------------------------------------------------- the command


def test_the_command_says_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    masks = draw_masks(0, 32)
    r = masks.responses
    lines = [f"{i},{m},{x}" for i, m, x in zip(r.item_of_answer(), r.worker, r.label, strict=True)]
    (tmp_path / "answers.csv").write_text("\n".join(["item,worker,label", *lines]) + "\n")
    source = np.repeat(np.arange(r.n_items), masks.graph.degrees)
    edges = [f"{a},{b}" for a, b in zip(source, masks.graph.neighbours, strict=True) if a < b]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    result = run("fuse", "answers.csv", "--graph", "edges.csv", "--save", "masks.model", "--calibration", "none")
    assert result.exit_code == 0, result.output
    assert "The graph is not used: all labels come from the answers alone." in " ".join(result.stdout.split())
    assert "per agreeing neighbour, for items that nobody answered" in " ".join(result.stdout.split())
    assert "Warning: Workers tend to make the same error on neighbouring items of the graph" in result.stderr
    assert "coupling=" not in result.stderr  # there is no such option
    again = cs.load("masks.model")
    assert again.listeners == "unanswered"
    assert again.graph_check_.repeats_errors
    told = json.loads(run("fuse", "answers.csv", "--graph", "edges.csv", "--json", "--calibration", "none").stdout)
    assert told["field"]["listeners"] == "unanswered"
