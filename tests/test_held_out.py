"""Held-out scores: what is hidden, what it is worth, and what may be compared."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.answers.random_choices import count_units, hide_answers
from consilience.comparisons.graph import check_graph
from consilience.comparisons.vote import compare_with_vote, renew_with_estimates
from consilience.errors import InputError, ParameterError
from consilience.inference.estimator import renew
from consilience.inference.observations import Observations
from consilience.inference.workers.rows import SHRINKAGE


@pytest.fixture(scope="module")
def chains():
    return cs.simulate.sequences(40, length=(1, 15), n_workers=6, n_classes=3, answers_per_item=3, seed=1).responses


@pytest.fixture(scope="module")
def items():
    return cs.simulate.independent(200, n_workers=6, n_classes=3, answers_per_item=4, seed=1).responses


def test_whole_pairs_of_worker_and_sequence_are_hidden(chains):
    owner = chains.sequences.of_items()[chains.item_of_answer()]
    pair = owner * chains.n_workers + chains.worker
    assert count_units(chains) == len(set(pair.tolist()))
    for hidden, unit in hide_answers(chains, 0.1, 0, 3):
        assert not set(pair[hidden].tolist()) & set(pair[~hidden].tolist())
        assert len(unit) == hidden.sum()
        assert len(set(zip(unit.tolist(), pair[hidden].tolist(), strict=True))) == unit.max() + 1
        assert unit.max() + 1 == round(0.1 * count_units(chains))


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.9, 1e-6])
def test_folds_are_disjoint_and_the_same_each_time(chains, items, fraction):
    for r in (chains, items):
        folds = list(hide_answers(r, fraction, 7, 10))
        again = list(hide_answers(r, fraction, 7, 10))
        total = sum(hidden.astype(int) for hidden, _ in folds)
        assert total.max() == 1
        assert 1 <= len(folds) <= 10
        for (a, b), (c, d) in zip(folds, again, strict=True):
            np.testing.assert_array_equal(a, c)
            np.testing.assert_array_equal(b, d)
        other, _ = next(hide_answers(r, fraction, 8))
        assert not np.array_equal(other, folds[0][0])


@pytest.mark.parametrize("kind", ["chains", "items"])
@pytest.mark.parametrize("options", [{}, {"calibration": "none"}, {"calibration": 0.5}])
def test_score_is_its_definition(kind, options, request):
    r = request.getfixturevalue(kind)
    model = cs.HiddenMarkov(coupling=0.5, **options) if kind == "chains" else cs.DawidSkene(**options)
    found = cs.held_out_score(model, r, fraction=0.2, seed=3)
    hidden, unit = next(hide_answers(r, 0.2, 3))
    fitted = renew(model).fit(r.keep(~hidden))
    item = r.item_of_answer()
    counts = np.zeros((r.n_workers, r.n_classes, r.n_labels))
    for j in np.flatnonzero(~hidden):
        counts[r.worker[j], :, r.label[j]] += fitted.uncalibrated_posterior_[item[j]]
    crowd = counts.sum(axis=0) + 1 / r.n_labels
    crowd /= crowd.sum(axis=1, keepdims=True)
    matrices = (counts + SHRINKAGE * crowd) / (counts.sum(axis=2, keepdims=True) + SHRINKAGE)
    logs = [np.log(fitted.posterior_[item[j]] @ matrices[r.worker[j], :, r.label[j]]) for j in np.flatnonzero(hidden)]
    assert found.score == pytest.approx(np.mean(logs), rel=1e-10)
    assert found.n_answers == len(logs) == found.sizes.sum() == len(found.hidden)
    totals = [sum(value for value, u in zip(logs, unit, strict=True) if u == k) for k in range(unit.max() + 1)]
    np.testing.assert_allclose(found.totals, totals)
    residual = np.array(totals) - found.score * found.sizes
    n = len(totals)
    assert found.error == pytest.approx(np.sqrt(n / (n - 1) * np.sum(residual**2)) / len(logs), rel=1e-10)
    assert not model.__sklearn_is_fitted__()


def test_comparing(chains, items):
    a, b = (cs.held_out_score(m, items) for m in (cs.DawidSkene(), cs.MajorityVote()))
    gap, error = a.minus(b)
    assert gap == pytest.approx(a.score - b.score)
    assert 0 < error < a.error
    assert b.minus(a)[0] == pytest.approx(-gap)
    assert a.minus(a) == (0, 0)
    # All units are single answers: that they are as many does not make them the same.
    for other in (
        cs.held_out_score(cs.DawidSkene(), items, seed=1),
        cs.held_out_score(cs.DawidSkene(), items, fraction=0.2),
        cs.held_out_score(cs.DawidSkene(), chains),
    ):
        with pytest.raises(ParameterError, match="same fraction and seed"):
            a.minus(other)
    both = a.plus(cs.held_out_score(cs.DawidSkene(), items, seed=1))
    assert both.n_answers == 2 * a.n_answers
    assert len(both.totals) == 2 * len(a.totals)
    assert both.minus(both) == (0, 0)


def test_what_was_found_is_not_looked_for_again(items, chains, monkeypatch):
    """Fits beside a fitted model take its power as found, or report no probabilities."""
    network = cs.simulate.network(100, n_workers=5, n_classes=2, seed=1)
    models = [
        (cs.DawidSkene().fit(items), items, None),
        (cs.HiddenMarkov(coupling=0.5).fit(chains), chains, None),
        (cs.MarkovField().fit(network.responses, graph=network.graph), network.responses, network.graph),
    ]

    def refuse(*_):
        raise AssertionError("calibrated again")

    monkeypatch.setattr("consilience.results.calibration.hide_from_fit", refuse)
    for model, r, graph in models:
        found = cs.held_out_score(model, r, graph=graph)
        given = cs.held_out_score(renew(model, calibration=model.power_), r, graph=graph)
        np.testing.assert_array_equal(found.totals, given.totals)
        compare_with_vote(model, model.result_, Observations(r), graph, cs.engines.Threads())
        plain = renew(model, calibration="none").fit(r, graph=graph)
        assert renew_with_estimates(plain, plain.result_).calibration == "none"
    check_graph(model, model.result_, Observations(network.responses), network.graph, cs.engines.Threads())
    with pytest.raises(AssertionError, match="calibrated again"):
        cs.held_out_score(cs.DawidSkene(), items)


def test_refusals(items):
    for fraction in (0, 1, -1, 2, float("nan")):
        with pytest.raises(ParameterError, match="fraction"):
            cs.held_out_score(cs.DawidSkene(), items, fraction=fraction)
    with pytest.raises(InputError, match="nothing to hide"):
        cs.held_out_score(cs.DawidSkene(), cs.Answers.from_matrix([[0]]))
    one_unit = cs.Answers.from_matrix([[0], [1]], lengths=[2])
    with pytest.raises(InputError, match="nothing to hide"):
        cs.held_out_score(cs.HiddenMarkov(coupling=1.0), one_unit)
    few = cs.Answers.from_matrix([[0, 1]])
    score = cs.held_out_score(cs.DawidSkene(), few)
    assert score.n_answers == 1
    assert score.error == float("inf")
