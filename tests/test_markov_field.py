"""Result over graphs: against DawidSkene and plain loops, its guarantees, its settings, and how good it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import consilience as cs
import oracles
from consilience.answers import answers as blocks
from consilience.errors import InputError, ParameterError
from consilience.inference.fields import paper_couplings
from consilience.inference.structures.field import MOST_COUPLING
from consilience.options import INFERENCES
from effort import all_pairs, examples, rest_robust
from strategies import matrices
from test_field import sweep_slowly

ESTIMATIONS = ["em", "variational"]


def network(n_items=200, seed=0, **options):
    return cs.simulate.network(
        **{"n_items": n_items, "n_workers": 6, "n_classes": 3, "answers_per_item": 3, "seed": seed} | options
    )


def assert_never_falls(trace):
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-9 * (1 + np.abs(trace[1:]))).all(), np.diff(trace).min()


def assert_same_fit(a, b, atol=0.0):
    np.testing.assert_allclose(a.posterior_, b.posterior_, rtol=0, atol=atol)
    np.testing.assert_allclose(a.confusion_, b.confusion_, rtol=0, atol=atol)
    np.testing.assert_allclose(a.prior_, b.prior_, rtol=0, atol=atol)
    np.testing.assert_allclose(a.trace_, b.trace_, rtol=atol, atol=atol)
    assert a.coupling_ == pytest.approx(b.coupling_, abs=atol)
    np.testing.assert_array_equal(a.labels_, b.labels_)


def star(n_leaves, **options):
    """Return a star whose hub, "hub", nobody answered; all leaves are said to be "a", and "b" lies elsewhere."""
    leaves = [f"leaf {i}" for i in range(n_leaves)]
    others = [f"other {i}" for i in range(n_leaves)]
    frame = {
        "item": (leaves + others) * 3,
        "worker": np.repeat(["u", "v", "w"], 2 * n_leaves),
        "label": (["a"] * n_leaves + ["b"] * n_leaves) * 3,
    }
    r = cs.Answers.from_frame(frame, items=["hub", *leaves, *others, "lonely"])
    return r, cs.Graph.from_edges(["hub"] * n_leaves, leaves, **options)


# ---------------------------------------------------------------------------------------------------------- DawidSkene


@pytest.mark.parametrize(
    ("inference", "estimation", "kind", "start"),
    all_pairs(INFERENCES, ESTIMATIONS, ["plain", "gold", "uniform", "given prior"], ["majority", "dawid-skene"]),
)
def test_without_coupling_it_is_dawid_skene(inference, estimation, kind, start):
    crowd = network()
    gold = {0: 2, 5: 1} if kind == "gold" else None
    options = oracles.PLAIN | {"estimation": estimation, "tol": 0}
    options |= {"uniform": {"prior": "uniform"}, "given prior": {"prior": [0.5, 0.3, 0.2]}}.get(kind, {})
    # From the vote, the same iterations; from where DawidSkene ended, as many more, and the step between.
    longer = cs.DawidSkene(max_iter=15 if start == "majority" else 31, **options).fit(crowd.responses, gold=gold)
    field = cs.MarkovField(coupling=0, inference=inference, start=start, max_iter=15, **options)
    field.fit(crowd.responses, graph=crowd.graph, gold=gold)
    np.testing.assert_allclose(field.posterior_, longer.posterior_, atol=1e-10)
    np.testing.assert_allclose(field.confusion_, longer.confusion_, atol=1e-10)
    np.testing.assert_allclose(field.trace_[-1], longer.trace_[-1], rtol=1e-10)
    assert field.score(crowd.responses, graph=crowd.graph, gold=gold) == pytest.approx(
        longer.score(crowd.responses, gold=gold), rel=1e-10
    )


# ----------------------------------------------------------------------------------------------------- against a twin


@pytest.mark.parametrize("known", [False, True])
def test_em_against_a_slow_twin(known):
    """Mean field inside EM, in dense arrays and plain loops."""
    crowd = network(40, degree=3.0)
    r, coupling, n_iter = crowd.responses, 0.8, 6
    votes = oracles.densify(r)
    codes = np.full(40, -1)
    gold = None
    if known:
        codes[[3, 8]] = 2, 0
        gold = {3: 2, 8: 0}
    options = {"estimation": "em", "start": "majority", "tol": 0, "max_iter": n_iter, "coupling": coupling}
    model = cs.MarkovField(**oracles.PLAIN, **options).fit(r, graph=crowd.graph, gold=gold)
    del options["coupling"]
    alone = cs.DawidSkene(**oracles.PLAIN, **options).fit(r, gold=gold)
    assert (crowd.graph.degrees == 0).any()
    posterior, last = oracles.vote_shares(votes, range(3), 3, codes), None
    order, graph = crowd.graph.by_visit

    def sweep_often(posterior, strength, most, tol):
        for _ in range(most):
            swept, moved = sweep_slowly(graph, unary[order], strength, posterior[order])
            posterior = swept[np.argsort(order)]
            if moved < tol:
                break
        return posterior

    for iteration in range(n_iter + 1):
        counts = np.einsum("iml,ik->mkl", votes, posterior) + oracles.smoothing_table((0.1, 1.1), range(3), 3, 6)
        unary = np.einsum("iml,mkl->ik", votes, np.log(counts / counts.sum(axis=2, keepdims=True)))
        unary[crowd.graph.degrees == 0] += np.log(alone.prior_)
        for i in np.flatnonzero(codes >= 0):
            unary[i, np.arange(3) != codes[i]] = -np.inf
        final = iteration == n_iter
        if last is None or final:
            posterior = special.softmax(unary, axis=1)
            for part in (0.25, 0.5, 0.75):
                posterior = sweep_often(posterior, part * coupling, 3, 1e-3)
        posterior = last = sweep_often(posterior, coupling, *((200, 1e-6) if final else (20, 1e-3)))
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-9)
    np.testing.assert_allclose(model.confusion_, counts / counts.sum(axis=2, keepdims=True), atol=1e-9)


# ----------------------------------------------------------------------------------------------------------- guarantees


@st.composite
def networks(draw):
    """Draw (responses, graph, gold): missing answers, items nobody answered, weights, known labels."""
    matrix = draw(matrices(max_items=8, max_workers=4, max_classes=3, min_classes=2))
    n_items, n_classes = len(matrix), int(matrix.max()) + 1
    r = cs.Answers.from_matrix(matrix, labels=list(range(n_classes)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    adjacency = np.triu(rng.uniform(0.1, 2, (n_items, n_items)) * (rng.random((n_items, n_items)) < 0.4), 1)
    gold = {int(i): int(rng.integers(n_classes)) for i in np.flatnonzero(rng.random(n_items) < 0.2)}
    return r, cs.Graph.from_scipy(adjacency), gold or None


@examples(60)
@given(
    networks(),
    st.sampled_from(ESTIMATIONS),
    st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    st.sampled_from(["learn", "uniform"]),
)
def test_the_objective_never_falls_by_mean_field(problem, estimation, coupling, prior):
    r, graph, gold = problem
    model = cs.MarkovField(coupling=coupling, estimation=estimation, prior=prior, tol=0, max_iter=15)
    model.fit(r, graph=graph, gold=gold)
    assert_never_falls(model.trace_)
    for item, label in (gold or {}).items():
        assert model.labels_[item] == label
        assert model.posterior_[item, list(model.classes_).index(label)] == 1


@pytest.mark.parametrize("inference", INFERENCES)
def test_items_nobody_answered_are_told_by_their_neighbours(inference):
    r, graph = star(5)
    model = cs.MarkovField(inference=inference).fit(r, graph=graph)
    found = dict(zip(r.items.tolist(), model.posterior_, strict=True))
    assert found["hub"][0] > 0.9
    np.testing.assert_allclose(found["lonely"], cs.DawidSkene().fit(r).prior_, atol=1e-10)


def test_weights_and_coupling_are_one_product():
    crowd = network()
    heavy = cs.Graph.from_scipy(2.0 * crowd.graph.to_scipy())
    options = {"tol": 0, "max_iter": 8}
    one = cs.MarkovField(coupling=1.0, **options).fit(crowd.responses, graph=crowd.graph)
    half = cs.MarkovField(coupling=0.5, **options).fit(crowd.responses, graph=heavy)
    np.testing.assert_allclose(half.posterior_, one.posterior_, atol=1e-12)


def test_the_papers_coupling_by_hand():
    dense = network(60, answers_per_item=None)
    np.testing.assert_array_equal(paper_couplings(dense.responses, dense.graph), 6 / 2)
    model = cs.MarkovField(coupling="paper").fit(dense.responses, graph=dense.graph)
    assert model.coupling_ == 3
    same = cs.MarkovField(coupling=3.0).fit(dense.responses, graph=dense.graph)
    np.testing.assert_allclose(model.posterior_, same.posterior_, atol=1e-10)

    answers, *_ = oracles.simulate(0, 40, 6, 3, share=0.5)
    r = cs.Answers.from_matrix(answers, labels=[0, 1, 2])
    graph = cs.Graph.from_scipy(network(40).graph.to_scipy())
    by_hand = np.zeros((40, 40))
    for i, j in zip(*graph.to_scipy().nonzero(), strict=True):
        by_hand[i, j] = (np.sum(answers[i] >= 0) / 4 + np.sum(answers[j] >= 0) / 4) / 2
    model = cs.MarkovField(coupling="paper").fit(r, graph=graph)
    same = cs.MarkovField(coupling=1.0).fit(r, graph=cs.Graph.from_scipy(by_hand))
    np.testing.assert_allclose(model.posterior_, same.posterior_, atol=1e-10)
    assert model.coupling_ == pytest.approx(by_hand[by_hand > 0].mean())


@pytest.mark.parametrize("inference", rest_robust(INFERENCES))
def test_equivariance(inference):
    crowd = network(150)
    r, rng = crowd.responses, np.random.default_rng(0)
    item = r.item_of_answer()
    new_item, new_class = rng.permutation(r.n_items), np.array([2, 0, 1])
    shuffle = rng.permutation(r.n_responses)
    frame = {
        "item": new_item[item][shuffle],
        "worker": 10 - r.worker[shuffle],
        "label": new_class[r.label][shuffle],
    }
    other = cs.Answers.from_frame(frame)
    source = np.repeat(np.arange(r.n_items), crowd.graph.degrees)
    graph = cs.Graph.from_edges(new_item[source], new_item[crowd.graph.neighbours])
    options = {"inference": inference, "tol": 0, "max_iter": 20}
    here = cs.MarkovField(**options).fit(r, graph=crowd.graph)
    there = cs.MarkovField(**options).fit(other, graph=graph)
    place = {name: i for i, name in enumerate(other.items.tolist())}
    back = there.posterior_[[place[i] for i in new_item.tolist()]][:, new_class]
    # Sweeps go through the items in another order: near the same end, but not to the last bit.
    assert there.coupling_ == pytest.approx(here.coupling_, abs=0.02)
    assert np.mean(back.argmax(axis=1) == here.posterior_.argmax(axis=1)) > 0.97
    np.testing.assert_allclose(there.confusion_[::-1][:, new_class][:, :, new_class], here.confusion_, atol=0.03)


@pytest.mark.parametrize("build", ["order", "text", "edges only"])
def test_graphs_are_matched_by_id(build):
    crowd = network(150)
    r = cs.Answers.from_frame(
        {"item": [f"n{i}" for i in crowd.responses.item_of_answer()], "worker": crowd.responses.worker,
         "label": crowd.responses.label}, items=[f"n{i}" for i in range(150)]
    )  # fmt: skip
    matrix, order = crowd.graph.to_scipy().toarray(), np.random.default_rng(1).permutation(150)
    straight = cs.Graph.from_scipy(matrix, items=r.items)
    ends = np.argwhere(np.triu(matrix))
    other = {
        "order": lambda: cs.Graph.from_scipy(matrix[np.ix_(order, order)], items=r.items[order]),
        "text": lambda: cs.Graph.from_edges(
            [f"n{i}" for i in ends[:, 1]], [f"n{i}" for i in ends[:, 0]], items=r.items
        ),
        "edges only": lambda: cs.Graph.from_edges([f"n{i}" for i in ends[:, 0]], [f"n{i}" for i in ends[:, 1]]),
    }[build]()
    assert_same_fit(cs.MarkovField().fit(r, graph=other), cs.MarkovField().fit(r, graph=straight))


# -------------------------------------------------------------------------------------------------------------- engines


@pytest.mark.parametrize("inference", INFERENCES)
def test_blocks_and_threads_change_nothing(inference, monkeypatch):
    crowd = network(200)
    coupling = "learn" if inference == "mean_field" else 0.5
    options = {"inference": inference, "tol": 0, "max_iter": 10, "coupling": coupling}
    whole = cs.MarkovField(**options).fit(crowd.responses, graph=crowd.graph)
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 100)
    one, three = (
        cs.MarkovField(**options).fit(crowd.responses, graph=crowd.graph, engine=cs.engines.Threads(n)) for n in (1, 3)
    )
    assert_same_fit(one, three)
    assert_same_fit(one, whole, atol=1e-9)


# -------------------------------------------------------------------------------------------------- starts and settings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"coupling": -1},
            "'coupling' parameter of MarkovField must be one of 'learn', 'paper', or a number >= 0. Got -1",
        ),
        ({"coupling": [1.0, 2.0]}, "a number >= 0. Got"),
        ({"inference": "gibbs"}, "'inference' parameter of MarkovField must be .*'mean_field'.*Got 'gibbs'"),
        ({"start": "anywhere"}, "'start' parameter of MarkovField must be .*'dawid-skene'.*Got 'anywhere'"),
        ({"max_iter": 0}, r"With max_iter=0 nothing is fitted.*Give coupling=1\.0"),
    ],
)
def test_settings_that_make_no_sense(options, words):
    crowd = network(20)
    with pytest.raises(ParameterError, match=words):
        cs.MarkovField(**options).fit(crowd.responses, graph=crowd.graph)


def test_graphs_that_do_not_fit():
    crowd = network(20)
    r = crowd.responses
    with pytest.raises(ParameterError, match="needs a graph"):
        cs.MarkovField().fit(r)
    for wrong in (crowd.graph.to_scipy(), [(0, 1)], "edges.csv"):
        with pytest.raises(ParameterError, match=r"'graph' parameter of MarkovField must be a consilience.Graph"):
            cs.MarkovField().fit(r, graph=wrong)
    with pytest.raises(InputError, match=r"2 ids of the graph are not among the 20 items: 77, 78"):
        cs.MarkovField().fit(r, graph=cs.Graph.from_edges([0, 1], [77, 78]))


# ------------------------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("inference", rest_robust(INFERENCES))
@pytest.mark.parametrize("homophily", rest_robust([0.6, 0.4, 0.9]))
def test_the_coupling_that_is_learned(inference, homophily):
    crowd = cs.simulate.network(4000, 10, 4, degree=5, homophily=homophily, seed=1)
    model = cs.MarkovField(inference=inference).fit(crowd.responses, graph=crowd.graph)
    # An edge within a class is more likely than one between two given classes by these odds.
    odds = np.log(homophily * 3 / (1 - homophily))
    assert model.coupling_ == pytest.approx(min(odds, MOST_COUPLING), abs=0.15)
    noise = cs.MarkovField(inference=inference).fit(crowd.responses, graph=crowd.graph.shuffled(1))
    assert noise.coupling_ < 0.1
    plain = cs.metrics.accuracy(crowd.truth, cs.DawidSkene().fit(crowd.responses).labels_)
    assert cs.metrics.accuracy(crowd.truth, model.labels_) > plain
    assert cs.metrics.accuracy(crowd.truth, noise.labels_) == pytest.approx(plain, abs=0.005)


def test_checking_the_graph():
    crowd = network(1000, answers_per_item=None, degree=5, seed=1)
    r, graph = crowd.responses, crowd.graph
    model = cs.fuse(r, graph=graph)
    check = model.graph_check_
    assert check.sound
    assert check.coupling == model.coupling_
    assert str(check).startswith("The graph is informative about these labels: neighbouring items agree more than by")
    assert f"coupling {model.coupling_:.2f}" in str(check)
    assert check.changed == np.mean(model.labels_ != cs.DawidSkene().fit(r).labels_)

    noise = graph.shuffled(7)
    assert not cs.fuse(r, graph=noise).graph_check_.sound


# ------------------------------------------------------------------------------------------------------- optima


def test_hidden_items_choose_the_coupling():
    crowd = network(500, degree=6, homophily=0.9)
    r, graph = crowd.responses, crowd.graph
    model = cs.MarkovField(calibration="none").fit(r, graph=graph)
    couplings = [entry.coupling for entry in model.result_.course.coupling_scores]
    assert couplings[0] == 0
    assert couplings == sorted(couplings)
    best = max(model.result_.course.coupling_scores, key=lambda entry: entry.score)
    assert best.score > model.result_.course.coupling_scores[0].score + 2 * best.error
    assert model.coupling_ in couplings[1:]
    text = model.explain_coupling()
    assert text.startswith(f"Coupling {model.coupling_:.3g}: neighbours tend to agree.")
    noise = cs.MarkovField(calibration="none").fit(r, graph=graph.shuffled(0))
    assert noise.coupling_ < 0.1
    alone = cs.MarkovField(calibration="none").fit(r, graph=graph.shuffled(1))
    assert alone.coupling_ == 0
    assert "neighbours add nothing to the answers" in alone.explain_coupling()
    given = cs.MarkovField(coupling=0.3, calibration="none").fit(r, graph=graph)
    assert given.result_.course.coupling_scores == []
    assert given.explain_coupling() == "Coupling 0.3: it was given."
