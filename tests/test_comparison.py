"""What is said of a fit beside majority vote: the figures, the rule, and the words."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from consilience.answers.gold import match_gold
from consilience.answers.random_choices import hide_answers
from consilience.comparisons.vote import (
    compare_with_vote,
    measure_gains,
    vote_without,
)
from consilience.inference.hidden_answers import HiddenAnswers, Predicted
from consilience.inference.observations import Observations
from consilience.inference.workers.rows import shrink_rows
from consilience.models.base import complete
from consilience.results.comparison import Comparison
from consilience.results.result import FusionChecks

PLAIN = Comparison(
    n_items=100,
    n_differ=1,
    accuracy=0.8,
    accuracy_low=0.6,
    accuracy_high=0.91,
    expected_accuracy=0.9,
    expected_accuracy_low=0.85,
    expected_accuracy_high=0.95,
    expected_gain=0.01,
    alpha=0.4,
    alpha_low=0.3,
    alpha_high=0.5,
    held_out_gain=0.3,
    held_out_error=0.1,
    informed_gain=0.5,
    informed_error=0.1,
    top_share=0.5,
    vote_top_share=0.5,
    kept_share=0.95,
    blind_accuracy=0.9,
    like_record=True,
)


def compare(model, r):
    observations = Observations(model._prepare(r))
    return compare_with_vote(model, model.result_, observations, None, cs.engines.Threads(1))[0]


def vote_on(r):
    return cs.MajorityVote().fit(r).result_


# ------------------------------------------------------------------------------------------------------------ the rule


@pytest.mark.parametrize(
    ("gain", "error", "verdict"),
    [
        (0.3, 0.1, "better"),
        (0.2, 0.1, "no different"),
        (0.15, 0.1, "no different"),
        (-0.15, 0.1, "no different"),
        (-0.3, 0.1, "worse"),
        (0.0, 0.0, "no different"),
        (5.0, math.inf, "no different"),
    ],
)
def test_one_rule_for_better(gain, error, verdict):
    comparison = dataclasses.replace(PLAIN, held_out_gain=gain, held_out_error=error)
    assert comparison.verdict == verdict
    assert comparison.better is (verdict == "better")
    assert "1 of 100 labels differs from majority vote" in str(comparison)
    assert "inf" not in str(comparison)
    r = cs.Answers.from_matrix(np.array([[0, 0, 1], [1, 1, 1]]))
    model = cs.DawidSkene().fit(r)
    found = model.result_
    for gold in (None, match_gold({0: 0}, r, r.classes)):
        given = dataclasses.replace(found, given=found.given._replace(gold=gold))
        findings = complete(model, given, FusionChecks(comparison)).findings
        findings = [each for each in findings if each.kind == "no gain"]
        assert len(findings) == (verdict != "better" and math.isfinite(error))
        for finding in findings:
            text = str(finding.warning())
            assert ("evaluate" in text) is (gold is None)
            assert ("no clear difference" in text) is (verdict == "no different")


@pytest.mark.parametrize(
    ("changes", "collapsed"),
    [
        ({"top_share": 0.99, "vote_top_share": 0.6}, True),
        ({"top_share": 0.99, "vote_top_share": 0.95}, False),
        ({"top_share": 0.9, "vote_top_share": 0.2}, False),
        ({"top_share": 1.0, "vote_top_share": 0.6, "n_items": 40}, False),
        ({"kept_share": 0.4}, True),
        ({"kept_share": 0.6}, False),
    ],
)
def test_collapse(changes, collapsed):
    comparison = dataclasses.replace(PLAIN, **changes)
    assert comparison.collapsed is collapsed


# --------------------------------------------------------------------------------------------------------- the figures


@pytest.fixture(scope="module", params=["plain", "weights", "unsure"])
def answers(request):
    rng = np.random.default_rng(3)
    item, worker = np.repeat(np.arange(60), 4), np.tile(np.arange(4), 60)
    label = np.where(rng.random(240) < 0.7, item % 3, rng.integers(3, size=240))
    frame = {"item": item, "worker": worker, "label": label}
    if request.param == "weights":
        frame["weight"] = rng.uniform(0.1, 1, 240)
    return cs.Answers.from_frame(frame, classes=[0, 1] if request.param == "unsure" else None)


def test_the_vote_without_some_answers_is_a_vote_on_the_others(answers):
    r = answers
    vote = vote_on(r)
    for hidden, _ in hide_answers(r, 0.1, 0, 3):
        answer = np.flatnonzero(hidden)
        shown = r.keep(~hidden)
        again = cs.MajorityVote().fit(shown)
        expected = again.posterior_[r.item_of_answer()[answer]]
        shares, chances = vote_without(r, vote, answer)
        # An item whose votes are all for no class has the shares of all votes, of which a few are hidden.
        exact = len(r.classes) == len(r.labels)
        there = np.isin(r.item_of_answer()[answer], shown.item_of_answer())
        np.testing.assert_allclose(shares[there], expected[there], atol=1e-12 if exact else 0.01)
        slow = shrink_rows(again.result_.estimates.counts, r.worker[answer], r.label[answer])
        np.testing.assert_allclose(chances, slow, rtol=1e-9 if exact and there.all() else 0.02)


def split(hidden):
    """Return the folds in which answers were hidden."""
    return [Predicted(*(each[hidden.fold == fold] for each in hidden)) for fold in np.unique(hidden.fold)]


def test_gains_are_their_definition(answers):
    r = answers
    model = cs.DawidSkene().fit(r)
    vote = vote_on(r)
    gain, error, informed_gain, informed_error = measure_gains(r, vote, model.result_.calibrated.predicted)[:4]
    by_vote, by_mean, item = [], [], []
    for fold in split(model.result_.calibrated.predicted):
        shares, chances = vote_without(r, vote, fold.answer)
        for i, answer in enumerate(fold.answer):
            weight = 1.0 if r.weight is None else r.weight[answer]
            by_vote.append(weight * (fold.score[i] - np.log(shares[i] @ chances[i])))
            by_mean.append(weight * (fold.score[i] - fold.base[i]))
            item.append(r.item_of_answer()[answer])
    for values, found, found_error in ((by_vote, gain, error), (by_mean, informed_gain, informed_error)):
        assert found == pytest.approx(np.mean(values))
        # Answers about an item are right or wrong together.
        sums = [sum(v - found for v, i in zip(values, item, strict=True) if i == n) for n in set(item)]
        n = len(sums)
        assert found_error == pytest.approx(np.sqrt(n / (n - 1) * np.sum(np.square(sums))) / len(values))


def test_gains_of_labels_are_their_definition():
    crowd = cs.simulate.independent(300, n_workers=6, n_classes=3, accuracy=(0.4, 0.8), seed=4)
    rng = np.random.default_rng(0)
    votes = rng.dirichlet(np.ones(3), (300, 6))
    votes[np.arange(300), :, crowd.truth] += 0.4 * rng.random((300, 6))
    votes /= votes.sum(axis=2, keepdims=True)
    r = cs.Answers.from_probabilities(votes, classes=range(3))
    model = cs.DawidSkene(workers="temperatures").fit(r)
    gain, error = measure_gains(r, vote_on(r), model.result_.calibrated.predicted)[4:]
    gains = np.zeros(300)
    n_hidden = 0
    for fold in split(model.result_.calibrated.predicted):
        left = votes.copy()
        item, worker = r.item_of_answer()[fold.answer], r.worker[fold.answer]
        left[item, worker] = np.nan
        for n, m, fused in zip(item, worker, fold.top, strict=True):
            said = votes[n, m].argmax()
            gains[n] += float(said == fused) - float(said == np.nanmean(left[n], axis=0).argmax())
        n_hidden += len(item)
    assert gain == pytest.approx(gains.sum() / n_hidden)
    assert error > 0


def test_hidden_answers_of_calibration_are_those_of_the_verdict():
    crowd = cs.simulate.independent(300, n_workers=8, n_classes=3, answers_per_item=5, accuracy=(0.4, 0.9), seed=2)
    r = crowd.responses
    model = cs.DawidSkene().fit(r)
    assert (
        len(model.result_.calibrated.predicted.answer)
        == model.result_.calibrated.calibration.n_hidden
        == r.n_responses / 2
    )
    for other in (cs.DawidSkene(calibration="none"), cs.DawidSkene(calibration=0.8), cs.MomentMatching()):
        comparison = compare(other.fit(r), r)
        assert comparison.tested
        assert 0 < comparison.held_out_error < 0.1


def test_ties_are_expectations():
    item = [1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6, 6]
    frame = {
        "item": [n + 6 * time for time in range(5) for n in item],  # with fewer answers no accuracy is expected
        "worker": list("ababcababcabab") * 5,
        "label": list("xyxxyxyyxyyxyx") * 5,
    }
    r = cs.Answers.from_frame(frame)
    model = cs.DawidSkene().fit(r)
    comparison = compare(model, r)
    q, ours = model.posterior_, model.result_.labels.codes
    chances = np.array([[0.5, 0.5], [1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1], [0.5, 0.5]] * 5)
    assert comparison.n_differ == round(sum(1 - chances[n, ours[n]] for n in range(len(ours))))
    assert comparison.expected_accuracy == pytest.approx(np.mean([q[n, ours[n]] for n in range(len(ours))]))
    assert comparison.expected_gain == pytest.approx(
        comparison.expected_accuracy - np.mean(np.sum(chances * q, axis=1))
    )
    assert comparison.top_share == np.bincount(ours).max() / len(ours)
    assert comparison.vote_top_share == pytest.approx(chances[:, np.bincount(ours).argmax()].mean())


def test_nothing_is_known_where_nobody_checks_anybody():
    r = cs.Answers.from_frame({"item": range(50), "worker": [n % 5 for n in range(50)], "label": [0, 1] * 25})
    comparison = compare(cs.DawidSkene().fit(r), r)
    assert math.isnan(comparison.expected_accuracy)
    assert math.isnan(comparison.alpha)
    assert not comparison.tested
    assert "not tested on hidden answers: there are too few;" in str(comparison)


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_the_verdict_depends_neither_on_the_order_of_rows_nor_on_types():
    crowd = cs.simulate.independent(200, n_workers=8, n_classes=3, answers_per_item=4, accuracy=(0.4, 0.9), seed=4)
    r = crowd.responses
    names = {"item": r.item_of_answer(), "worker": r.worker, "label": r.label}
    text = pd.DataFrame({name: [f"{name} {value}" for value in values] for name, values in names.items()})
    shuffled = text.sample(frac=1, random_state=0)
    found = [cs.fuse(table).comparison_ for table in (text, shuffled, shuffled.astype("category"))]
    for other in found[1:]:
        every = [dataclasses.astuple(each) for each in (other, found[0])]
        figures = [[value for value in each if isinstance(value, (int, float))] for each in every]
        np.testing.assert_allclose(*figures, atol=1e-9)


def test_hidden_answers_are_predicted_by_their_definition():
    rng = np.random.default_rng(1)
    posterior, chances = rng.dirichlet(np.ones(3), 7), rng.random((7, 3))
    found = HiddenAnswers(*np.zeros((3, 7), int), posterior, chances, chances).predict(0.5)
    raised = np.sqrt(posterior) / np.sqrt(posterior).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.score, [np.log(raised[i] @ chances[i]) for i in range(7)])
    np.testing.assert_allclose(found.base, [np.log(raised.mean(axis=0) @ chances[i]) for i in range(7)])


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.parametrize(("n_classes", "n_items", "n_workers"), [(2, 100, 5), (3, 100, 5), (4, 100, 5), (5, 200, 4)])
def test_noise_is_never_better(n_classes, n_items, n_workers):
    informed = 0
    for seed in range(8):
        answers = np.random.default_rng(seed).integers(n_classes, size=(n_items, n_workers))
        comparison = cs.fuse(cs.Answers.from_matrix(answers)).comparison_
        assert comparison.verdict == "no different"
        informed += comparison.informed
    assert informed <= 1


# ---------------------------------------------------------------------------------------------------------- the record


def test_known_labels_do_not_turn_the_verdict_around():
    """One wrong label that is known lowers the power much, and tells nothing about how workers answer."""
    crowd = cs.simulate.independent(300, n_workers=7, n_classes=3, answers_per_item=4, accuracy=(0.5, 0.9), seed=3)
    alone = cs.fuse(crowd.responses)
    sure = int(alone.posterior_.max(axis=1).argmax())
    wrong = next(label for label in alone.classes_.tolist() if label != alone.labels_[sure])
    misled = cs.fuse(crowd.responses, gold={crowd.responses.items[sure]: wrong})
    assert misled.power_ < alone.power_ / 2
    assert misled.comparison_.verdict == alone.comparison_.verdict == "better"
    assert abs(misled.comparison_.held_out_gain - alone.comparison_.held_out_gain) < alone.comparison_.held_out_error
