"""Numbers at the ends of their range: weights, couplings, pseudo-counts and whole numbers beyond all use."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import InputError, ParameterError
from consilience.inference.estimator import renew
from consilience.inference.structures.field import MOST_COUPLING, weight_unit
from consilience.options import INFERENCES
from effort import all_pairs, examples, rest_robust

TINY = 5e-324
HUGE = float(np.finfo(np.float64).max)

NETWORK = cs.simulate.network(150, n_workers=6, n_classes=3, degree=4, answers_per_item=3, seed=3)
quiet = pytest.mark.filterwarnings("ignore::consilience.errors.ConvergenceWarning")


def assert_sound(model):
    """Everything is a number, and every item has a distribution."""
    assert np.isfinite(model.trace_).all()
    assert np.isfinite(model.confusion_).all()
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1)


def scaled(factor):
    return dataclasses.replace(NETWORK.graph, weights=NETWORK.graph.weights * factor)


# --------------------------------------------------------------------------------------------------- weights of edges


@quiet
@pytest.mark.parametrize(
    ("factor", "coupling", "inference"),
    all_pairs([TINY, 1e-100, 1e155, HUGE], ["learn", "paper", 0.5, HUGE], INFERENCES),
)
def test_weights_of_any_size_give_numbers(factor, coupling, inference):
    model = cs.MarkovField(coupling=coupling, inference=inference, calibration="none", max_iter=15)
    model.fit(NETWORK.responses, graph=scaled(factor))
    assert_sound(model)
    assert np.isfinite(model.coupling_)
    assert np.isfinite(model.score(NETWORK.responses, graph=scaled(factor)))
    proba = model.predict_proba(NETWORK.responses, graph=scaled(factor))
    np.testing.assert_array_equal(proba, model.posterior_)


@quiet
@pytest.mark.parametrize("factor", [TINY, 1e155, HUGE])
def test_calibrated_posteriors_with_weights_of_any_size(factor):
    assert_sound(cs.MarkovField(max_iter=15).fit(NETWORK.responses, graph=scaled(factor)))


@quiet
@pytest.mark.parametrize("power", [TINY, 1e-200, 1e160, HUGE])
def test_powers_of_any_size(power):
    model = cs.DawidSkene(calibration=power).fit(NETWORK.responses)
    assert_sound(model)
    assert np.isfinite(np.array(model.worker_report()["accuracy_high"])).all()


def test_one_absurd_weight_among_others():
    weights = np.where(np.arange(len(NETWORK.graph.weights)) == 0, 1e155, NETWORK.graph.weights)
    assert_sound(cs.MarkovField().fit(NETWORK.responses, graph=dataclasses.replace(NETWORK.graph, weights=weights)))


@quiet
@pytest.mark.parametrize("inference", INFERENCES)
def test_absurd_weights_of_both_kinds(inference):
    """The usual weight lies far from both, and moves when the largest are cut."""
    answers = cs.Answers.from_matrix([[0, 0], [1, 1], [0, 0], [0, 1]])
    graph = cs.Graph.from_edges([0, 1, 2], [1, 2, 3], [1e-300, 1e155, 1e308], items=range(4))
    assert_sound(cs.MarkovField(inference=inference, max_iter=5).fit(answers, graph=graph))


@pytest.mark.parametrize("doublings", rest_robust([-90, 990, 20, 515], 2))
def test_a_learned_coupling_has_the_unit_of_the_weights(doublings):
    """Weights in other units are the same graph."""
    model = cs.MarkovField().fit(NETWORK.responses, graph=scaled(2.0**doublings))
    usual = cs.MarkovField().fit(NETWORK.responses, graph=NETWORK.graph)
    np.testing.assert_array_equal(model.posterior_, usual.posterior_)
    assert model.coupling_ * 2.0**doublings == usual.coupling_ > 0.5
    check, usual_check = (
        m.check_graph(NETWORK.responses, g) for m, g in ((model, scaled(2.0**doublings)), (usual, NETWORK.graph))
    )
    assert check.usual_weight == 2.0**doublings
    assert replace(check, usual_weight=1.0) == usual_check


def test_a_model_of_tiny_weights_is_saved_and_loaded(tmp_path):
    model = cs.MarkovField(calibration="none").fit(NETWORK.responses, graph=scaled(1e-30))
    assert model.coupling_ > MOST_COUPLING
    again = cs.load(model.save(tmp_path / "field.model"))
    np.testing.assert_array_equal(again.predict_proba(NETWORK.responses, graph=scaled(1e-30)), model.posterior_)


def test_the_usual_weight():
    assert weight_unit(np.array([])) == weight_unit(np.zeros(3)) == weight_unit(np.ones(7)) == 1
    assert weight_unit(np.array([0.001, 1.0, 1000.0])) == pytest.approx(1)
    assert weight_unit(np.array([1e155, 1e155, 0.0])) == pytest.approx(1e155)


# ------------------------------------------------------------------------------------------------ EM never loses ground

sizes = st.sampled_from([TINY, 1e-310, 1e-300, 1e-160, 1e-20, 0.5, 1.0])


@st.composite
def awkward_fits(draw):
    """Return a model without proper smoothing, and answers of all weights; priors may rule out what was said."""
    n_items, n_workers, n_classes = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    votes = draw(st.lists(st.integers(-1, n_classes - 1), min_size=n_items * n_workers, max_size=n_items * n_workers))
    item, worker = np.nonzero(np.reshape(votes, (n_items, n_workers)) >= 0)
    label = np.array([vote for vote in votes if vote >= 0], dtype=int)
    if not len(label):
        item, worker, label = np.array([0]), np.array([0]), np.array([0])
    weight = draw(st.lists(sizes, min_size=len(label), max_size=len(label)))
    frame = {"item": item, "worker": worker, "label": label, "weight": weight}
    r = cs.Answers.from_frame(frame, weight="weight", classes=list(range(n_classes)))
    one_hot = np.eye(n_classes)[draw(st.integers(0, n_classes - 1))]
    model = cs.DawidSkene(
        estimation="em",
        smoothing=draw(st.sampled_from([0.0, TINY, 1e-300, (0.0, 1e-200), (0.0, 1.0)])),
        prior=[one_hot, "learn", "uniform"][draw(st.integers(0, 2))],
        workers=draw(st.sampled_from(["confusion", "one-coin"])),
        start=draw(st.sampled_from(["majority", _sparse_matrices(r, draw(st.integers(0, 9)))])),
        max_iter=15,
        tol=0,
    )
    return model, r


def _sparse_matrices(r, seed):
    """Return random confusion matrices, many of whose entries are 0."""
    rng = np.random.default_rng(seed)
    matrices = rng.dirichlet(np.full(r.n_labels, 0.3), (r.n_workers, r.n_classes))
    matrices[rng.random(matrices.shape) < 0.3] = 0
    total = matrices.sum(axis=2, keepdims=True)
    return np.where(total > 0, matrices / np.where(total > 0, total, 1), 1 / r.n_labels)


@examples(150)
@given(awkward_fits())
def test_em_never_falls_whatever_the_weights(fit):
    model, r = fit
    model.fit(r)
    assert_sound(model)
    assert_never_falls(model.trace_)


def assert_never_falls(trace):
    assert (np.diff(trace) >= -1e-9 * (1 + np.abs(trace[1:]))).all(), np.diff(trace).min()


def test_an_answer_of_the_least_weight_is_not_lost():
    """Shared by two classes, a count of 5e-324 would be 0 for both."""
    frame = {"item": [1, 0, 1], "worker": [0, 0, 1], "label": [1, 0, 0], "weight": [TINY] * 3}
    r = cs.Answers.from_frame(frame, weight="weight")
    assert_never_falls(cs.DawidSkene(estimation="em", smoothing=0, tol=0, max_iter=20).fit(r).trace_)


def test_items_that_the_prior_rules_out_have_a_likelihood_too():
    frame = {"item": [0, 2, 2, 3], "worker": [0, 0, 1, 1], "label": [1, 1, 2, 0], "weight": [1.0, 1.0, 0.5, 1.0]}
    r = cs.Answers.from_frame(frame, weight="weight")
    start = [
        [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.25, 0.25]],
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]],
    ]
    model = cs.DawidSkene(estimation="em", smoothing=0, prior=[1, 0, 0], start=start, tol=0, max_iter=20)
    assert_never_falls(model.fit(r).trace_)


def test_pseudo_counts_that_hardly_allow_what_the_start_rules_out():
    frame = {
        "item": [0, 0, 1, 1, 1, 2, 3, 4, 4, 4],
        "worker": [0, 1, 0, 1, 2, 0, 2, 0, 1, 2],
        "label": [0, 0, 0, 1, 0, 0, 1, 1, 0, 1],
        "weight": [1e-100, 1e-100, 0.5, 1e-100, 1e-100, 1e-100, 1e-100, 1.0, 1e-100, 0.5],
    }
    r = cs.Answers.from_frame(frame, weight="weight", classes=[0, 1, 2])
    for smoothing in (0.0, TINY, 1e-300):
        model = cs.DawidSkene(estimation="em", smoothing=smoothing, prior=[1, 0, 0], tol=0, max_iter=15)
        assert_never_falls(renew(model, start=_sparse_matrices(r, 0)).fit(r).trace_)


@quiet
@pytest.mark.parametrize("estimation", ["em", "variational"])
@pytest.mark.parametrize("smoothing", [TINY, 1e300, HUGE, (TINY, HUGE)])
def test_pseudo_counts_of_any_size(smoothing, estimation):
    for workers in ("confusion", "one-coin", "sequential"):
        model = cs.DawidSkene(smoothing=smoothing, estimation=estimation, workers=workers, max_iter=10)
        assert_sound(model.fit(NETWORK.responses))


# --------------------------------------------------------------------------------------------- whole numbers and seeds


@pytest.mark.parametrize("name", ["seed", "max_iter", "n_init", "tol", "smoothing"])
@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_numbers_beyond_floats_are_refused(name, value):
    with pytest.raises(ParameterError, match=f"The '{name}' parameter of DawidSkene must be a.* number"):
        cs.DawidSkene(**{name: value}).fit(NETWORK.responses)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (cs.MajorityVote, {"seed": 2**128}),
        (cs.MomentMatching, {"max_iter": 10**400}),
        (cs.MomentMatching, {"shrinkage": 10**400}),
        (cs.DawidSkene, {"prior": [10**400, 0, 0]}),
        (cs.DawidSkene, {"start": [[[10**400]]]}),
        (cs.HiddenMarkov, {"coupling": 10**400}),
        (cs.MarkovField, {"coupling": 10**400}),
    ],
)
def test_large_parameters_of_every_model_are_refused(model, parameters):
    (name,) = parameters
    with pytest.raises(ParameterError, match=f"The '{name}' parameter of {model.__name__} must be"):
        model(**parameters).fit(NETWORK.responses, **({"graph": NETWORK.graph} if model is cs.MarkovField else {}))


def test_seeds_of_128_bits_do():
    vote = cs.MajorityVote(seed=2**128 - 1).fit(NETWORK.responses)
    fit = cs.DawidSkene(seed=2**127, n_init=2, max_iter=2**70).fit(NETWORK.responses)
    assert len(vote.labels_) == len(fit.labels_) == NETWORK.responses.n_items


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"n_items": 10**400}, "The 'n_items' parameter of simulate must be a whole number"),
        ({"n_items": 9, "n_workers": 2**64}, "matrices of 18,446,744,073,709,551,616 workers.*are too many numbers"),
    ],
)
def test_simulated_crowds_have_sizes_that_arrays_can_have(sizes, words):
    with pytest.raises((InputError, ParameterError), match=words):
        cs.simulate.independent(**sizes)


def test_other_large_numbers_are_refused():
    with pytest.raises(ParameterError, match="'accuracy' parameter of simulate must be a number in"):
        cs.simulate.independent(10, accuracy=10**400)
    with pytest.raises(InputError, match=r"18,446,744,073,709,551,617 items x .* are too many numbers"):
        cs.simulate.sequences(2, length=(1, 2**64))
    with pytest.raises(ParameterError, match=r"'shape' parameter of Graph.grid must be .* fewer than 2\*\*31"):
        cs.Graph.grid((2**64, 2))
    with pytest.raises(InputError, match="Edge weights must be positive numbers; int too large"):
        cs.Graph.from_edges([1], [2], [10**400])


def test_agreement_of_answers_whose_weights_are_lost_in_rounding():
    item, worker = np.repeat(range(6), 2), np.tile([0, 1], 6)
    weight = [1.0, 1e-200] * 3 + [1.0] * 6
    r = cs.Answers.from_frame(
        {"item": item, "worker": worker, "label": ["a", "b", "b", "b"] * 3, "weight": weight}, weight="weight"
    )
    assert -1 <= cs.metrics.krippendorff_alpha(r) <= 1
