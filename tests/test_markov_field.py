"""Result over graphs: against DawidSkene and plain loops, its guarantees, its settings, and how good it is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import consilience as cs
import oracles
from consilience.answers import blocks
from consilience.errors import InputError, NotFittedError, ParameterError
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


@pytest.mark.parametrize("options", [{}, {"tol": 0, "max_iter": 12}, {"workers": "one-coin"}, {"n_init": 3}])
@pytest.mark.parametrize("coupling", [0, "learn"])
def test_without_coupling_the_defaults_are_those_of_dawid_skene(coupling, options):
    """Also the workers' prior is learned in the same way, whether the coupling was given or found to be 0."""
    crowd = network(100)
    field = cs.MarkovField(coupling=coupling, **options).fit(crowd.responses, graph=crowd.graph.shuffled(2))
    plain = cs.DawidSkene(**options).fit(crowd.responses)
    assert field.coupling_ == 0
    assert field.n_iter_ == plain.n_iter_
    for name in ("uncalibrated_posterior_", "posterior_", "confusion_", "prior_", "smoothing_", "power_"):
        np.testing.assert_allclose(getattr(field, name), getattr(plain, name), atol=1e-10, err_msg=name)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("coupling", ["learn", 1.0])
def test_items_without_neighbours_have_the_independent_posterior(inference, coupling):
    crowd = network(300, degree=1.5)
    lonely = crowd.graph.degrees == 0
    assert 20 < lonely.sum() < 200
    model = cs.MarkovField(inference=inference, coupling=coupling, calibration="none")
    model.fit(crowd.responses, graph=crowd.graph)
    found = model.predict_proba(crowd.responses, graph=cs.Graph.from_scipy(np.zeros((300, 300))))
    np.testing.assert_allclose(model.posterior_[lonely], found[lonely], atol=1e-10)
    assert np.abs(model.posterior_[~lonely] - found[~lonely]).max() > 0.1
    log_weights = model.result_.learned.log_weights.transpose(0, 2, 1)
    prior = np.log(model.result_.learned.structure.weights)
    expected, _ = oracles.dense_posterior(oracles.densify(crowd.responses), log_weights, prior)
    np.testing.assert_allclose(found, expected, atol=1e-10)


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


@pytest.mark.parametrize("inference", INFERENCES)
def test_heavier_edges_pull_more(inference):
    r, _ = star(2)
    names = ["leaf 0", "leaf 1", "other 0"]
    for weight, label in ((1.0, "a"), (3.0, "b")):
        graph = cs.Graph.from_edges(["hub"] * 3, names, [1.0, 1.0, weight])
        model = cs.MarkovField(inference=inference, coupling=0.5).fit(r, graph=graph)
        assert dict(zip(r.items.tolist(), model.labels_.tolist(), strict=True))["hub"] == label


def test_weights_and_coupling_are_one_product():
    crowd = network()
    heavy = cs.Graph.from_scipy(2.0 * crowd.graph.to_scipy())
    options = {"tol": 0, "max_iter": 8}
    one = cs.MarkovField(coupling=1.0, **options).fit(crowd.responses, graph=crowd.graph)
    half = cs.MarkovField(coupling=0.5, **options).fit(crowd.responses, graph=heavy)
    np.testing.assert_allclose(half.posterior_, one.posterior_, atol=1e-12)


def test_degree_normalisation():
    crowd = network()
    graph = crowd.graph
    degree = graph.to_scipy().toarray().astype(bool).sum(axis=0)
    scale = degree.mean() / np.sqrt(np.maximum(np.outer(degree, degree), 1))
    by_hand = cs.Graph.from_scipy(graph.to_scipy().toarray() * scale)
    options = {"tol": 0, "max_iter": 8}
    inside = cs.MarkovField(degree_normalised=True, **options).fit(crowd.responses, graph=graph)
    outside = cs.MarkovField(**options).fit(crowd.responses, graph=by_hand)
    assert_same_fit(inside, outside, atol=1e-9)


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


@pytest.mark.parametrize("coupling", ["learn", 1.0])
def test_starts(coupling):
    crowd = network(1000, answers_per_item=None, degree=4)
    r, graph = crowd.responses, crowd.graph
    fitted = cs.DawidSkene().fit(r)
    starts = {
        "dawid-skene": "dawid-skene", "majority": "majority", "moments": "moments", "model": fitted,
        "given": fitted.confusion_,
    }  # fmt: skip
    for name, start in starts.items():
        model = cs.MarkovField(start=start, coupling=coupling, calibration="none").fit(r, graph=graph)
        assert list(model.result_.course.starts) == [name]
        assert model.converged_
        assert cs.metrics.accuracy(crowd.truth, model.labels_) > cs.metrics.accuracy(crowd.truth, fitted.labels_)
        np.testing.assert_array_equal(model.predict_proba(r, graph=graph), model.posterior_)
    best = cs.MarkovField(start="best", n_init=3, coupling=coupling).fit(r, graph=graph)
    assert list(best.result_.course.starts) == ["majority", "moments", "random 1", "random 2"]
    assert any(np.array_equal(best.trace_, trace) for trace in best.result_.course.starts.values())
    assert best.trace_[-1] == pytest.approx(max(trace[-1] for trace in best.result_.course.starts.values()), rel=1e-6)
    again = cs.MarkovField(start="best", n_init=3, coupling=coupling).fit(r, graph=graph)
    assert_same_fit(best, again)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("coupling", ["learn", "paper", 0.5])
def test_saving(inference, coupling, tmp_path):
    crowd = network()
    r, graph = crowd.responses, crowd.graph
    options = {"degree_normalised": True, "calibration": "none"}
    model = cs.MarkovField(inference=inference, coupling=coupling, **options).fit(r, graph=graph)
    model.save(tmp_path / "model")
    loaded = cs.load(tmp_path / "model")
    assert isinstance(loaded, cs.MarkovField)
    assert loaded.get_params() == model.get_params()
    assert repr(loaded) == repr(model)
    assert_same_fit(loaded, model)
    np.testing.assert_array_equal(loaded.predict_proba(r, graph=graph), model.posterior_)


def test_predicting_other_networks():
    crowd, new = network(2000), network(2000, seed=0)
    model = cs.MarkovField().fit(crowd.responses, graph=crowd.graph)
    assert cs.metrics.accuracy(new.truth, model.predict(new.responses, graph=new.graph)) > 0.8
    with pytest.raises(ParameterError, match="needs a graph"):
        model.predict_proba(crowd.responses)
    with pytest.raises(NotFittedError):
        cs.MarkovField().predict_proba(crowd.responses, graph=crowd.graph)
    with pytest.raises(NotFittedError):
        cs.MarkovField().check_graph(crowd.responses, crowd.graph)


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
    model = cs.MarkovField().fit(r, graph=graph)
    check = model.check_graph(r, graph)
    assert check.sound
    assert check == model.check_graph(r, graph)
    assert check.coupling == model.coupling_
    assert str(check).startswith("The graph is informative about these labels: neighbouring items agree more than by")
    assert f"coupling {model.coupling_:.2f}" in str(check)
    assert check.changed == np.mean(model.labels_ != cs.DawidSkene().fit(r).labels_)

    noise = graph.shuffled(7)
    check = cs.MarkovField().fit(r, graph=noise).check_graph(r, noise)
    assert not check.sound


@pytest.mark.parametrize("coupling", rest_robust([1.0, "paper"]))
def test_checking_a_coupling_that_is_given(coupling):
    """It is the same on any graph, and says nothing: for the check, one is learned."""
    crowd = network(1000, answers_per_item=None, degree=5, seed=1)
    learned = cs.MarkovField().fit(crowd.responses, graph=crowd.graph)
    given_one = cs.MarkovField(coupling=coupling).fit(crowd.responses, graph=crowd.graph)
    check, other = (model.check_graph(crowd.responses, crowd.graph) for model in (given_one, learned))
    assert check.coupling == pytest.approx(other.coupling, rel=0.1)
    assert dataclasses.replace(check, coupling=0.0, changed=0.0) == dataclasses.replace(
        other, coupling=0.0, changed=0.0
    )
    assert check.changed == pytest.approx(other.changed, abs=0.01)
    assert check.sound


# ------------------------------------------------------------------------------------------------------- optima


@pytest.mark.parametrize(("coupling", "seed"), [(2.0, 5), ("paper", 8), ("learn", 2)])
def test_they_belong_together_at_strong_couplings(coupling, seed):
    """Mean field that goes on from iteration to iteration may end where inference from the evidence does not."""
    crowd = cs.simulate.network(400, 5, 3, degree=4, homophily=0.75, good="most", seed=seed)
    options = oracles.PLAIN | {"estimation": "em", "coupling": coupling}
    model = cs.MarkovField(**options).fit(crowd.responses, graph=crowd.graph)
    votes = oracles.densify(crowd.responses)
    counts = np.einsum("iml,ik->mkl", votes, model.posterior_) + oracles.smoothing_table((0.1, 1.1), range(3), 3, 5)
    np.testing.assert_allclose(model.confusion_, counts / counts.sum(axis=2, keepdims=True), atol=2e-3)
    np.testing.assert_array_equal(model.predict_proba(crowd.responses, graph=crowd.graph), model.posterior_)
    assert (np.diff(model.trace_) >= -1e-9 * np.abs(model.trace_[1:])).all()


@pytest.mark.parametrize("inference", ["mean_field", "belief_propagation"])
def test_a_fit_goes_on_only_where_results_would_differ(inference):
    """Inference takes more sweeps on a grid than an iteration has: results have them, and so must the comparison."""
    rng, begun = np.random.default_rng(5), list[int]()
    truth = rng.integers(0, 3, (5, 5)).repeat(5, axis=0).repeat(5, axis=1).ravel()
    right = rng.random((625, 2)) < 0.6
    answers = np.full((625, 10), -1)
    who = np.array([rng.choice(10, 2, replace=False) for _ in range(625)])
    np.put_along_axis(answers, who, np.where(right, truth[:, None], rng.integers(0, 3, (625, 2))), axis=1)
    options = {"coupling": 3.0, "inference": inference, "calibration": "none"}
    model = cs.MarkovField(**options, callback=lambda progress: begun.append(progress.iteration))
    model.fit(cs.Answers.from_matrix(answers), graph=cs.Graph.grid((25, 25), connectivity=8))
    assert model.converged_
    assert begun.count(1) < 5


def test_hidden_items_choose_the_coupling():
    crowd = network(500, degree=6, homophily=0.9)
    r, graph = crowd.responses, crowd.graph
    model = cs.MarkovField(calibration="none").fit(r, graph=graph)
    couplings = [entry.coupling for entry in model.coupling_scores_]
    assert couplings[0] == 0
    assert couplings == sorted(couplings)
    best = max(model.coupling_scores_, key=lambda entry: entry.score)
    assert best.score > model.coupling_scores_[0].score + 2 * best.error
    assert model.coupling_ in couplings[1:]
    text = model.explain_coupling()
    assert text.startswith(f"Coupling {model.coupling_:.3g}: neighbours tend to agree.")
    noise = cs.MarkovField(calibration="none").fit(r, graph=graph.shuffled(0))
    assert noise.coupling_ < 0.1
    alone = cs.MarkovField(calibration="none").fit(r, graph=graph.shuffled(1))
    assert alone.coupling_ == 0
    assert "neighbours add nothing to the answers" in alone.explain_coupling()
    given = cs.MarkovField(coupling=0.3, calibration="none").fit(r, graph=graph)
    assert given.coupling_scores_ == []
    assert given.explain_coupling() == "Coupling 0.3: it was given."
