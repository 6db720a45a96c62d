"""Probabilities one can bet on: the power that posteriors are raised to, and what it is chosen by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import consilience as cs
import oracles
from consilience.answers.random_choices import hide_answers
from consilience.errors import ParameterError
from consilience.inference.hidden_answers import POWERS, Calibration, raise_to, score_powers, weigh_powers


def crowd_of(seed=0, n_items=300, n_workers=15, n_classes=3, share=0.4, skill=(0.5, 0.9), **parameters):
    answers, truth, *_ = oracles.simulate(seed, n_items, n_workers, n_classes, share, skill, **parameters)
    return cs.Answers.from_matrix(answers), truth


def copies_of(seed=0, n_items=400, n_copies=8):
    """Return answers of workers of whom most repeat each other's errors, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_items)
    first = np.where(rng.random(n_items) < 0.75, truth, 1 - truth)
    copies = np.where(rng.random((n_items, n_copies)) < 0.9, first[:, None], 1 - first[:, None])
    others = np.where(rng.random((n_items, 2)) < 0.75, truth[:, None], 1 - truth[:, None])
    return cs.Answers.from_matrix(np.concatenate([copies, others], axis=1)), truth


def log_loss(posterior, truth):
    return -np.log(np.clip(posterior[np.arange(len(truth)), truth], 1e-12, 1)).mean()


# -------------------------------------------------------------------------------------------------------------- powers


def test_raising_keeps_order_zeros_and_sums():
    posterior = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 200)
    posterior[:20] = np.eye(4)[np.arange(20) % 4]
    posterior[20:40, 0] = 0
    posterior[20:40] /= posterior[20:40].sum(axis=1, keepdims=True)
    for power in (0.01, 0.3, 1.0, 2.5):
        raised = raise_to(posterior, power)
        np.testing.assert_allclose(raised.sum(axis=1), 1)
        assert ((raised == 0) == (posterior == 0)).all()
        np.testing.assert_allclose(raised[:20], posterior[:20])
        assert (raised.argmax(axis=1) == posterior.argmax(axis=1)).all()


def test_the_smallest_power_within_a_standard_error():
    rng = np.random.default_rng(1)
    scores = np.zeros((500, len(POWERS)))
    scores[:, 20] = 1.0
    assert POWERS[weigh_powers(scores)[0].argmax()] == POWERS[20]
    noise = rng.normal(0, 1, 500)
    scores[:, 10] = 1.0 + noise - noise.mean() - 0.01  # worse, but by less than chance
    assert POWERS[weigh_powers(scores)[0].argmax()] == POWERS[10]
    scores[:, 5] = 0.9  # worse by more
    assert POWERS[weigh_powers(scores)[0].argmax()] == POWERS[10]


def test_answers_of_a_worker_in_a_sequence_are_one_unit():
    """They are right or wrong together: a hundred copies of one answer tell no more than it does."""
    crowd = cs.simulate.sequences(12, length=20, n_workers=5, n_classes=3, seed=1)
    r = crowd.responses
    hidden, unit = next(hide_answers(r, 0.2, 0))
    rng = np.random.default_rng(0)
    posterior, confusion = rng.dirichlet(np.ones(3), r.n_items), rng.dirichlet(np.ones(3), (5, 3)).transpose(0, 2, 1)
    item = r.item_of_answer()
    by_class = confusion[r.worker[hidden], r.label[hidden]]
    found = score_powers(posterior[item[hidden]], by_class, unit)
    assert found.shape == (unit.max() + 1, len(POWERS))
    for place, power in enumerate(POWERS):
        expected = np.zeros(unit.max() + 1)
        for u, j in zip(unit, np.flatnonzero(hidden), strict=True):
            raised = posterior[item[j]] ** power
            expected[u] += np.log(raised / raised.sum() @ confusion[r.worker[j], r.label[j]])
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-9)


# ----------------------------------------------------------------------------------------------------- hidden answers


def test_labels_come_from_what_is_not_calibrated():
    r, _ = crowd_of(1)
    model, plain = cs.DawidSkene().fit(r), cs.DawidSkene(calibration="none").fit(r)
    assert model.power_ < 1
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.uncalibrated_posterior_, plain.posterior_)
    np.testing.assert_array_equal(plain.uncalibrated_posterior_, plain.posterior_)
    codes = plain.posterior_.argmax(axis=1)
    confidence = np.asarray(model.to_frame()["confidence"])
    np.testing.assert_array_equal(confidence, model.posterior_[np.arange(len(codes)), codes])


def test_the_label_is_the_most_probable_class_of_what_is_reported():
    """Leaving an item out can turn its posterior over, and the label with it."""
    n_turned = 0
    for seed in range(5):
        r, _ = crowd_of(seed, n_items=40, n_workers=20, share=0.1)
        model = cs.DawidSkene().fit(r)
        n_turned += (model.posterior_.argmax(axis=1) != model.uncalibrated_posterior_.argmax(axis=1)).sum()
        np.testing.assert_array_equal(model.labels_, model.classes_[model.posterior_.argmax(axis=1)])
        np.testing.assert_array_equal(model.to_frame()["confidence"], model.posterior_.max(axis=1))
    assert n_turned


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_items", [200, 2000])
def test_noise_is_not_believed(n_classes, n_items):
    confidences = []
    for seed in range(4):
        answers = np.random.default_rng(seed).integers(0, n_classes, (n_items, 10))
        model = cs.DawidSkene().fit(cs.Answers.from_matrix(answers))
        confidences.append(model.posterior_.max(axis=1).mean())
    assert np.mean(confidences) <= 1 / n_classes + 0.1


def test_a_true_model_is_believed():
    r, truth = crowd_of(2, n_items=3000, share=0.6)
    model = cs.DawidSkene().fit(r)
    assert model.power_ > 0.7
    assert log_loss(model.posterior_, truth) == pytest.approx(log_loss(model.uncalibrated_posterior_, truth), abs=0.02)


def test_items_that_are_hard_for_all():
    """Where all workers fail on the same items, answers vary more than the model allows."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    chance = np.where(rng.random(500) < 0.4, 0.5, 0.95)[:, None]
    answers = np.where(rng.random((500, 12)) < chance, truth[:, None], 1 - truth[:, None])
    model = cs.DawidSkene().fit(cs.Answers.from_matrix(answers))
    assert model.power_ < 0.7
    assert log_loss(model.posterior_, truth) < 0.8 * log_loss(model.uncalibrated_posterior_, truth)
    assert model.result_.explain_calibration() == (
        f"Probabilities were raised to the power {model.power_:.2g}, chosen by 3,000 hidden answers. "
        "Errors that workers share cannot be seen in this way; known labels would show them."
    )


@pytest.mark.parametrize("calibration", ["hidden answers", 0.3])
def test_items_that_nobody_answered_keep_the_class_prior(calibration):
    answers, *_ = oracles.simulate(3, 60, 10, 6, 0.3, (0.5, 0.9))
    r = cs.Answers.from_matrix(np.concatenate([answers, np.full((2, 10), -1)]))
    model = cs.DawidSkene(calibration=calibration).fit(r)
    assert model.power_ < 1
    np.testing.assert_allclose(model.posterior_[-2:], [model.prior_] * 2)


# ---------------------------------------------------------------------------------------------------------------- gold


def test_gold_mends_what_hidden_answers_cannot_see():
    r, truth = copies_of(3)
    blind = cs.DawidSkene().fit(r)
    losses = []
    for seed in range(5):
        known = np.random.default_rng(seed).choice(len(truth), 20, replace=False)
        gold = {int(i): int(truth[i]) for i in known}
        model = cs.DawidSkene().fit(r, gold=gold)
        rest = np.setdiff1d(np.arange(len(truth)), known)
        losses.append(log_loss(model.posterior_[rest], truth[rest]))
        assert model.result_.calibrated.calibration.n_gold == 20
        assert model.result_.calibrated.calibration.n_hidden > 0
        np.testing.assert_array_equal(model.posterior_[known], np.eye(2)[truth[known]])
        assert "and 20 known labels" in model.result_.explain_calibration()
    assert np.mean(losses) < log_loss(blind.posterior_, truth)


def test_gold_alone():
    r, truth = copies_of(4)
    gold = {i: int(truth[i]) for i in range(0, 400, 4)}
    model = cs.DawidSkene(calibration="gold").fit(r, gold=gold)
    assert model.result_.calibrated.calibration.n_hidden == 0
    assert model.result_.calibrated.calibration.n_gold == 100
    unknown = np.setdiff1d(np.arange(400), list(gold))
    losses = [log_loss(raise_to(model.posterior_[unknown], t / model.power_), truth[unknown]) for t in POWERS]
    # It is near the best power for the others too.
    assert log_loss(model.posterior_[unknown], truth[unknown]) < min(losses) + 0.03


def test_each_gold_item_is_judged_as_if_it_were_not_known():
    """Wrong gold is found out: were items judged by their own label, every power would be right."""
    r, truth = crowd_of(5, n_items=300, share=0.6, skill=(0.7, 0.9))
    right = {i: int(truth[i]) for i in range(0, 300, 3)}
    wrong = {i: int(np.random.default_rng(i).integers(3)) for i in range(0, 300, 3)}
    assert cs.DawidSkene(calibration="gold").fit(r, gold=wrong).power_ < 0.1
    assert cs.DawidSkene(calibration="gold").fit(r, gold=right).power_ > 0.5


# ------------------------------------------------------------------------------------------------------- other answers


def test_a_power_that_is_given():
    r, _ = crowd_of()
    model, other = (cs.DawidSkene(calibration=power).fit(r) for power in (0.5, 1.0))
    np.testing.assert_allclose(model.posterior_, raise_to(other.posterior_, 0.5))
    assert model.power_ == 0.5
    assert "the power 0.5, which was given" in model.result_.explain_calibration()


def test_predictions_have_the_power_of_the_fit():
    r, _ = crowd_of()
    model, plain = cs.DawidSkene(calibration=0.4).fit(r), cs.DawidSkene(calibration="none").fit(r)
    np.testing.assert_array_equal(plain.predict_proba(r), plain.posterior_)
    np.testing.assert_allclose(model.predict_proba(r), raise_to(plain.posterior_, 0.4))
    np.testing.assert_array_equal(model.predict(r), model.labels_)


@pytest.mark.parametrize("value", ["yes", 0, -1, np.nan, np.inf, None, True, [1]])
def test_calibrations_that_there_are_not(value):
    r, _ = crowd_of(n_items=20)
    with pytest.raises(ParameterError, match="calibration"):
        cs.DawidSkene(calibration=value).fit(r)


def test_only_gold_drawn_at_random_calibrates():
    """Items that were labelled because they are doubtful keep their labels, and do not choose the power."""
    r, truth = copies_of(4)
    doubtful = np.argsort(cs.DawidSkene().fit(r).posterior_.max(axis=1))[:40]
    drawn = np.random.default_rng(0).choice(np.setdiff1d(np.arange(400), doubtful), 60, replace=False)
    items = np.concatenate([doubtful, drawn])
    table = {"item": items, "label": truth[items], "random": np.arange(100) >= 40}
    model = cs.DawidSkene(calibration="gold").fit(r, gold=table)
    assert model.result_.calibrated.calibration.n_gold == 60
    np.testing.assert_array_equal(model.labels_[items], truth[items])
    np.testing.assert_array_equal(model.posterior_[items], np.eye(2)[truth[items]])
    everything = cs.DawidSkene(calibration="gold").fit(r, gold={"item": items, "label": truth[items]})
    assert everything.result_.calibrated.calibration.n_gold == 100
    assert everything.power_ != model.power_
    with pytest.warns(cs.errors.DataWarning, match="drawn at random"):
        none = cs.DawidSkene(calibration="gold").fit(r, gold=table | {"random": [False] * 100})
    assert (none.power_, none.result_.calibrated.calibration.n_gold) == (1, 0)
    np.testing.assert_array_equal(none.uncalibrated_posterior_, model.uncalibrated_posterior_)


def test_calibration_does_not_depend_on_the_order_of_the_rows():
    r = cs.simulate.independent(150, n_workers=9, n_classes=3, answers_per_item=4, seed=2).responses
    frame = pd.DataFrame(
        {"item": r.items[r.item_of_answer()], "worker": r.workers[r.worker], "label": r.labels[r.label]}
    )
    first, second = (cs.DawidSkene().fit(each) for each in (frame, frame.sample(frac=1, random_state=1)))
    assert first.power_ == second.power_
    probabilities = [model.to_frame().set_index("item").sort_index().drop(columns="label") for model in (first, second)]
    np.testing.assert_allclose(*probabilities, atol=1e-6)


# ------------------------------------------------------------------------------------------- what cannot judge a power


@pytest.mark.parametrize("n_workers", [1, 20])
def test_items_with_one_answer_cannot_judge(n_workers):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    said = np.where(rng.random(500) < 0.95, truth, 1 - truth)
    model = cs.DawidSkene().fit({"item": np.arange(500), "worker": np.arange(500) % n_workers, "label": said})
    assert model.result_.calibrated.calibration == Calibration(1.0)
    assert model.posterior_.max(axis=1).mean() > 0.8
