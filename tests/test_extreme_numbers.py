"""Numbers at the ends of their range: weights, couplings, pseudo-counts and whole numbers beyond all use."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import ParameterError
from consilience.options import INFERENCES
from effort import all_pairs, examples

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
@pytest.mark.parametrize("power", [TINY, 1e-200, 1e160, HUGE])
def test_powers_of_any_size(power):
    model = cs.DawidSkene(calibration=power).fit(NETWORK.responses)
    assert_sound(model)
    assert np.isfinite(np.array(model.worker_report()["accuracy_high"])).all()


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
