"""The accelerated loop: leaps by the formula, an objective that never falls, and fewer E-steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.engines import Threads
from consilience.errors import ConvergenceWarning, ParameterError
from consilience.inference import acceleration
from consilience.inference.acceleration import Path, extrapolate, measure_length
from consilience.inference.em import expect, expect_from_votes, maximise, run_em
from consilience.inference.statistics import Statistics
from consilience.inference.structures.base import Summary

NOISY = cs.simulate.independent(800, n_workers=20, n_classes=3, answers_per_item=4, accuracy=(0.4, 0.6), seed=5)
SEQUENCES = cs.simulate.sequences(30, length=15, n_workers=5, n_classes=3, seed=2)
NETWORK = cs.simulate.network(300, n_workers=5, n_classes=3, degree=4, answers_per_item=2, seed=3)


def statistics_of(counts, mass=(3.0, 2.0), log_normaliser=0.0):
    return Statistics(np.array(counts, float), Summary(log_normaliser, np.array(mass, float)))


def problem_of(model, r, graph=None):
    return model._pose(r, model._make_structure(r), graph, None, Threads(1))


def leap_slowly(three, longest):
    """Return (length, statistics of the leap or None), number by number."""
    flat = [np.concatenate([each.counts.ravel(), each.summary.mass]).tolist() for each in three]
    step = change = 0.0
    for s0, s1, s2 in zip(*flat, strict=True):
        step += (s1 - s0) ** 2 / (1 + s2)
        change += (s2 - 2 * s1 + s0) ** 2 / (1 + s2)
    length = min((step / change) ** 0.5, longest) if change > 0 else 0.0
    if length <= 1:
        return length, None
    leapt = [
        max(s0 + 2 * length * (s1 - s0) + length**2 * (s2 - 2 * s1 + s0), s2 / 16)
        for s0, s1, s2 in zip(*flat, strict=True)
    ]
    n_counts = three[0].counts.size
    return length, statistics_of(np.reshape(leapt[:n_counts], three[0].counts.shape), leapt[n_counts:])


def accelerate_slowly(problem, parameters, max_iter):
    """Return the trace of `max_iter` iterations and a last E-step, written as one would tell it."""
    trace, recent, longest = [], [], 4.0
    while len(trace) < max_iter + 1:
        statistics = expect(problem, parameters)
        trace.append(parameters.objective(statistics.summary.log_normaliser))
        recent.append(statistics)
        parameters = maximise(problem, statistics, parameters.prior)
        if len(recent) < 3 or len(trace) >= max_iter:
            continue
        length, leapt = leap_slowly(recent, longest)
        recent = []
        if leapt is None:
            continue
        tried = maximise(problem, leapt, parameters.prior)
        if tried.objective(expect(problem, tried).summary.log_normaliser) >= trace[-1]:
            parameters = tried
            longest = longest * 2 if length == longest else longest
        else:
            trace.append(trace[-1])
            longest = max(longest / 2, 1.0)
    return trace


# ------------------------------------------------------------------------------------------------------------- a leap


@settings(deadline=None)
@given(st.integers(0, 2**32), st.floats(1.0, 20.0))
def test_leaps_are_the_formula(seed, longest):
    rng = np.random.default_rng(seed)
    three = [statistics_of(rng.gamma(1.0, 3.0, (4, 2)), rng.gamma(1.0, 3.0, 2)) for _ in range(3)]
    path = Path(longest=longest)
    assert path.leap(three[0]) is None
    assert path.leap(three[1]) is None
    found, (length, expected) = path.leap(three[2]), leap_slowly(three, longest)
    assert path.length == pytest.approx(length)
    assert path.recent == []
    if expected is None:
        assert found is None
        return
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.summary.mass, expected.summary.mass, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_a_path_whose_steps_shrink_evenly_is_walked_to_its_end(rate):
    end, away = np.array([[50.0, 20.0], [7.0, 90.0]]), np.array([[3.0, -3.0], [-2.0, 2.0]])
    three = [statistics_of(end + away * rate**t) for t in range(3)]
    length = measure_length(*three)
    assert length == pytest.approx(1 / (1 - rate))
    np.testing.assert_allclose(extrapolate(*three, length).counts, end, rtol=1e-9)


def test_what_is_possible_stays_possible_and_sums_stay_the_same():
    three = [statistics_of([[4.0, 16.0, 0.0], [10 - t, 10 + t, 0.0]]) for t in (0.0, 1.0, 1.9)]
    near = extrapolate(*three, 2.0)
    np.testing.assert_allclose(near.counts.sum(axis=1), 20.0)
    far = extrapolate(*three, 30.0)
    assert (far.counts[:, :2] > 0).all()
    assert (far.counts[:, 2] == 0).all()
    assert far.summary.log_normaliser == three[2].summary.log_normaliser


def test_where_nothing_moves_there_is_no_leap():
    still = statistics_of([[1.0, 2.0]])
    assert measure_length(still, still, still) == 0
    path = Path()
    assert [path.leap(still) for _ in range(6)] == [None] * 6


# ------------------------------------------------------------------------------------------------------------ the loop


@pytest.mark.parametrize("estimation", ["em", "variational"])
@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 5, 25])
def test_the_loop_is_its_twin(estimation, max_iter):
    model = cs.DawidSkene(estimation=estimation, smoothing=(0.1, 1.1))
    problem = problem_of(model, NOISY.responses)
    start = maximise(problem, expect_from_votes(problem))
    found = run_em(problem, start, max_iter, 0.0, acceleration="squarem")
    np.testing.assert_allclose(found.trace, accelerate_slowly(problem, start, max_iter), rtol=1e-11)
    assert found.n_iter == max_iter == len(found.trace) - 1


def test_leaps_that_fail_are_taken_back(monkeypatch):
    """All leaps are as long as they may be, and that is far too long at first."""
    monkeypatch.setattr(acceleration, "measure_length", lambda *three: np.inf)
    monkeypatch.setattr("consilience.inference.em.Path", lambda: Path(longest=2.0**12))
    problem = problem_of(cs.DawidSkene(estimation="em"), NOISY.responses)
    start = maximise(problem, expect_from_votes(problem))
    wild = run_em(problem, start, 2000, 1e-9, acceleration="squarem")
    calm = run_em(problem, start, 2000, 1e-9)
    gains = np.diff(wild.trace)
    assert (gains[:40] == 0).sum() >= 4
    assert (gains >= -1e-9).all()
    assert wild.objective == pytest.approx(calm.objective, rel=1e-4)


CASES = {
    "EM": (cs.DawidSkene(estimation="em"), NOISY, 1e-6),
    "EM without smoothing": (cs.DawidSkene(estimation="em", smoothing=0.0), NOISY, 1e-6),
    "given smoothing": (cs.DawidSkene(smoothing=(0.1, 1.1)), NOISY, 1e-6),
    "learned smoothing": (cs.DawidSkene(), NOISY, 1e-7),
    "one-coin": (cs.DawidSkene(workers="one-coin", estimation="em"), NOISY, 1e-7),
    "chain": (cs.HiddenMarkov(coupling=1.0), SEQUENCES, 1e-7),
    "chain by EM": (cs.HiddenMarkov(coupling=1.0, estimation="em"), SEQUENCES, 1e-7),
    "field": (cs.MarkovField(coupling=0.4, estimation="em"), NETWORK, 1e-7),
}


@pytest.mark.parametrize("case", CASES)
def test_the_objective_never_falls_and_ends_no_lower(case):
    model, crowd, tol = CASES[case]
    options = {"calibration": "none", "max_iter": 2000, "tol": tol}
    graph = {"graph": crowd.graph} if isinstance(model, cs.MarkovField) else {}
    plain = model.fresh(**options).fit(crowd.responses, **graph)
    fast = model.fresh(**options, acceleration="squarem").fit(crowd.responses, **graph)
    assert (np.diff(fast.trace_) >= -1e-9 * abs(fast.trace_[-1])).all()
    assert len(fast.trace_) == fast.n_iter_ + 1
    assert fast.converged_
    assert fast.trace_[-1] >= plain.trace_[-1] - 2e-5 * crowd.responses.n_responses
    assert fast.n_iter_ <= plain.n_iter_ + 8
    again = fast.predict_proba(crowd.responses, **graph)
    np.testing.assert_allclose(again, fast.posterior_, atol=1e-6 if graph else 1e-12)


@pytest.mark.parametrize("options", [{"estimation": "em"}, {"smoothing": (0.1, 1.1)}])
def test_slow_fits_take_fewer_iterations(options):
    fits = [
        cs.DawidSkene(**options, acceleration=each, calibration="none", tol=1e-7, max_iter=3000).fit(NOISY.responses)
        for each in (None, "squarem")
    ]
    assert fits[0].n_iter_ > 100
    assert fits[1].n_iter_ < fits[0].n_iter_ / 1.8
    assert fits[1].trace_[-1] > fits[0].trace_[-1] - 1e-5 * NOISY.responses.n_responses


@pytest.mark.parametrize("workers", ["confusion", "sequential", "one-coin"])
def test_sequences_with_all_kinds_of_workers(workers):
    """At a coupling between 0 and 1 the objective is a guide: it may fall, and leads to about the same labels."""
    plain, fast = (
        cs.HiddenMarkov(coupling=0.5, workers=workers, acceleration=each, calibration="none").fit(SEQUENCES.responses)
        for each in (None, "squarem")
    )
    assert np.isfinite(fast.trace_).all()
    assert np.mean(fast.labels_ == plain.labels_) > 0.95


def test_silence_weights_and_known_labels():
    table = {"item": list("aabbccdd"), "worker": list("xyxyxyxy"), "label": list("OABOOOAA")}
    r = cs.Responses.from_frame(table, abstain="answer", background="O")
    silent = cs.DawidSkene(acceleration="squarem", estimation="em", tol=0, max_iter=20).fit(r)
    assert (np.diff(silent.trace_) >= -1e-9).all()
    weighted = cs.Responses.from_frame(table | {"weight": [0.5, 1, 0.2, 1, 1, 0.9, 1, 1.0]})
    known = cs.DawidSkene(acceleration="squarem", tol=0, max_iter=20).fit(weighted, gold={"b": "B"})
    assert known.labels_[1] == "B"
    assert (np.diff(known.trace_) >= -1e-9).all()


@pytest.mark.parametrize(
    "table",
    [
        {"item": [1], "worker": [1], "label": ["a"]},
        {"item": [1, 2, 3], "worker": [1, 1, 1], "label": ["a", "b", "a"]},
        {"item": [1, 1, 1], "worker": [1, 2, 3], "label": ["a", "b", "a"]},
        {"item": [1, 1, 2, 2], "worker": [1, 2, 1, 2], "label": ["a", "a", "a", "a"]},
    ],
)
def test_tiny_crowds(table):
    for max_iter in (0, 1, 2, 3, 4, 30):
        fit = cs.DawidSkene(acceleration="squarem", max_iter=max_iter, tol=0, calibration="none").fit(table)
        assert np.isfinite(fit.posterior_).all()
        assert fit.n_iter_ == max_iter == len(fit.trace_) - 1


def test_every_iteration_is_told():
    told = []
    model = cs.DawidSkene(acceleration="squarem", estimation="em", calibration="none", tol=0, max_iter=40)
    model.fresh(callback=told.append).fit(NOISY.responses)
    assert [each.iteration for each in told] == list(range(1, 41))
    assert min(each.gain for each in told) >= 0


def test_a_fit_that_was_cut_short_says_so():
    model = cs.DawidSkene(acceleration="squarem", estimation="em", calibration="none", tol=1e-9, max_iter=10)
    with pytest.warns(ConvergenceWarning, match="stopped after 10 iterations"):
        model.fit(NOISY.responses)
    assert not model.converged_


def test_bits_are_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("consilience.answers.blocks.BLOCK_SIZE", 500)
    options = {"acceleration": "squarem", "estimation": "em", "max_iter": 400}
    one, three = (cs.DawidSkene(**options).fit(NOISY.responses, engine=Threads(n)) for n in (1, 3))
    np.testing.assert_array_equal(one.trace_, three.trace_)
    np.testing.assert_array_equal(one.posterior_, three.posterior_)


@pytest.mark.parametrize("value", ["anderson", "", True, 1, [], np.ones(2)])
def test_the_parameter_is_checked(value):
    with pytest.raises(ParameterError, match="The 'acceleration' parameter of DawidSkene must be None or 'squarem'"):
        cs.DawidSkene(acceleration=value).fit(NOISY.responses)


def test_it_is_saved(tmp_path):
    model = cs.DawidSkene(acceleration="squarem").fit(NOISY.responses)
    assert cs.load(model.save(tmp_path / "model")).acceleration == "squarem"
