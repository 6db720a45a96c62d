"""What further answers would bring, and when to stop asking."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import consilience as cs
from command_line import run
from consilience.errors import ParameterError
from consilience.planning.forecast import FORESEEN, MIN_GAIN, MOST_AHEAD, Ahead, spend
from effort import rest_robust
from test_store import _small_parts, crowd, fit_both  # noqa: F401 (the fixture is for tests on disk)

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
EARLY = cs.simulate.independent(150, n_workers=20, n_classes=3, answers_per_item=3, accuracy=(0.5, 0.9), seed=1)
LATE = cs.simulate.independent(150, n_workers=20, n_classes=3, answers_per_item=18, accuracy=(0.7, 0.95), seed=1)


def expect_turned(q, confusion, share, power, n):
    """Enumerate who answers and what is said: R(n) as the docstring has it."""
    total = 0.0
    for workers in itertools.product(range(len(confusion)), repeat=n):
        for answers in itertools.product(range(confusion.shape[2]), repeat=n):
            said = [confusion[m, :, x] for m, x in zip(workers, answers, strict=True)]
            chance = np.prod([share[m] for m in workers]) * (q * np.prod(said, axis=0)).sum()
            after = q * np.prod(said, axis=0) ** power
            after /= after.sum()
            total += chance * (after.max() - after[q.argmax()])
    return total


@pytest.mark.parametrize("power", [1.0, 0.6])
def test_errors_that_answers_correct(power):
    rng = np.random.default_rng(0)
    confusion = np.array([rng.dirichlet(row, 1)[0] for row in np.tile(4 * np.eye(3) + 1, (2, 1))]).reshape(2, 3, 3)
    q = np.array([0.55, 0.35, 0.1])
    ahead = Ahead(confusion, np.array([0.7, 0.3]), np.array([power]), seed=1)
    found = ahead.find_turned(np.tile(q, (200, 1)), 3).mean(axis=0)  # as many draws as 200 items have
    assert found[0] == 0
    for n in (1, 2, 3):
        assert found[n] == pytest.approx(expect_turned(q, confusion, [0.7, 0.3], power, n), abs=0.003)


def test_one_answer_is_worth_its_share_of_several():
    """Where one answer turns no label, and three do, the first is worth a third of these."""
    turned = np.zeros((100, MOST_AHEAD + 1))
    turned[:, 3:] = 0.3
    nobody, many = np.zeros(100, np.int64), np.full(100, 50)
    assert spend(turned, nobody, many) == (FORESEEN, pytest.approx(FORESEEN * 0.1))
    assert spend(turned, nobody, np.full(100, 2)) == (FORESEEN, 0.0)  # not enough workers are left
    assert spend(turned, np.full(100, 3), many) == (FORESEEN, 0.0)  # the answers that do it will come anyway
    assert spend(turned[:2], nobody[:2], many[:2]) == (100, pytest.approx(0.6))


def test_early_and_late():
    early, late = (cs.DawidSkene().fit(each.responses).forecast_answers() for each in (EARLY, LATE))
    assert not early.stop
    assert early.fewer_errors > 3
    assert early.describe().startswith("If workers err independently, expected errors among 150 labels are about ")
    assert ", and the next 100 answers would bring about " in early.describe()
    assert late.stop
    assert late.describe().startswith("Stop: if workers err independently, expected errors among 150 labels are about")
    assert late.min_gain == MIN_GAIN
    assert cs.DawidSkene().fit(EARLY.responses).forecast_answers(min_gain=50).stop
    assert early.fewer_errors < early.expected_errors


def test_expected_errors_are_those_of_the_probabilities():
    model = cs.DawidSkene().fit(EARLY.responses, gold={0: 1, 1: 0})
    expected = (1 - model.posterior_.max(axis=1)).sum()
    assert model.forecast_answers().expected_errors == pytest.approx(expected, abs=0.5)
    assert model.forecast_answers().n_labels == 150


def test_answers_that_will_come_are_not_counted_again():
    model = cs.DawidSkene().fit(EARLY.responses)
    asked = model.next_questions(300)
    assert model.forecast_answers(asked=asked).fewer_errors < model.forecast_answers().fewer_errors


def test_better_workers_bring_more():
    model = cs.DawidSkene().fit(EARLY.responses)
    by_accuracy = np.argsort(model.worker_report()["accuracy"].to_pylist())
    worst, best = (model.workers_[by_accuracy[part]].tolist() for part in (slice(0, 5), slice(-5, None)))
    worse, better = (model.forecast_answers(workers=who).fewer_errors for who in (worst, best))
    assert worse < better


def test_all_answered():
    full = cs.simulate.independent(40, n_workers=4, n_classes=2, seed=1)
    forecast = cs.DawidSkene().fit(full.responses).forecast_answers()
    assert forecast.n_answers == 0
    assert forecast.stop
    assert forecast.describe().endswith("and no further answer would tell more.")


def test_nothing_is_foreseen_from_noise():
    """Workers who guess tell nothing: the gain is not known, and this is no reason to stop."""
    noise = np.random.default_rng(0).integers(0, 3, (60, 12))
    noise[np.random.default_rng(1).random(noise.shape) < 0.7] = -1
    forecast = cs.DawidSkene().fit(cs.Answers.from_matrix(noise)).forecast_answers()
    assert math.isnan(forecast.fewer_errors)
    assert not forecast.stop
    assert "cannot be foreseen" in forecast.describe()


@pytest.mark.parametrize("wrong", [-1, "a", None, math.nan])
def test_thresholds_that_are_none(wrong):
    with pytest.raises(ParameterError, match="min_gain"):
        cs.DawidSkene().fit(EARLY.responses).forecast_answers(min_gain=wrong)


def test_other_models():
    chain = cs.simulate.sequences(20, length=8, n_workers=6, n_classes=3, answers_per_item=2, seed=2)
    assert cs.HiddenMarkov().fit(chain.responses).forecast_answers().n_answers == FORESEEN
    assert cs.MajorityVote().fit(EARLY.responses).forecast_answers().fewer_errors > 0


def test_answers_on_disk(tmp_path):
    on_disk, in_memory = fit_both(tmp_path, crowd(n_items=600, per_item=4)[0], cs.DawidSkene)
    one, other = on_disk.forecast_answers(), in_memory.forecast_answers()
    assert one.fewer_errors == pytest.approx(other.fewer_errors, rel=0.2, abs=0.1)
    assert one.expected_errors == pytest.approx(other.expected_errors, rel=1e-4)


def test_the_command(tmp_path):
    cs.DawidSkene().fit(EARLY.responses).save(tmp_path / "early.model")
    cs.DawidSkene().fit(LATE.responses).save(tmp_path / "late.model")
    shown = run("next", tmp_path / "early.model", "--questions", "-n", 5)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("If workers err independently, expected errors among")
    assert run("next", tmp_path / "late.model", "--questions").stdout.startswith("Stop: if workers err")
    told = json.loads(run("next", tmp_path / "early.model", "--questions", "--json", "--min-gain", 90).stdout)
    assert told["forecast"]["stop"]
    assert told["forecast"]["min_gain"] == 90
    assert len(told["questions"]) == 50
    assert run("next", tmp_path / "early.model", "--min-gain", 1).exit_code == 2  # only for questions


# A crowd, how many random answers each item has at first, and seeds: so many that .01 is more than chance.
CAMPAIGNS = {
    "small": ({"n_items": 60, "n_workers": 12, "n_classes": 2, "accuracy": (0.6, 0.95)}, 2, 3),
    "five classes": ({"n_items": 100, "n_workers": 20, "n_classes": 5, "accuracy": (0.3, 0.9)}, 2, 6),
    "two classes": ({"n_items": 100, "n_workers": 30, "n_classes": 2, "accuracy": (0.6, 0.95)}, 2, 6),
    "spammers": ({"n_items": 100, "n_workers": 25, "n_classes": 3, "accuracy": (0.5, 0.9), "spammers": 8}, 4, 6),
    "tiny": ({"n_items": 30, "n_workers": 8, "n_classes": 3, "accuracy": (0.5, 0.9)}, 2, 24),
}


@pytest.mark.parametrize("name", rest_robust(CAMPAIGNS))
def test_twice_the_answers_bring_little_after_the_stop(name):
    options, first, n_seeds = CAMPAIGNS[name]
    n_items, n_workers = options["n_items"], options["n_workers"]
    at_stop, later, shares = [], [], []
    for seed in range(n_seeds):
        simulated = cs.simulate.independent(**options, seed=seed)
        plan = {"budget": n_items * n_workers, "first": first, "batch": n_items // 2}
        curve = cs.simulate.campaign(simulated, **plan, seed=seed).to_pandas()
        stop = int((curve.gain < MIN_GAIN).to_numpy().argmax())
        assert curve.gain[stop] < MIN_GAIN
        twice = min(int(np.searchsorted(curve.answers, 2 * curve.answers[stop])), len(curve) - 1)
        at_stop.append(curve.accuracy[stop])
        later.append(curve.accuracy[twice])
        shares.append(curve.answers[stop] / (n_items * n_workers))
    assert np.mean(at_stop) >= np.mean(later) - 0.01, (at_stop, later)
    assert np.mean(shares) < 0.75, shares  # it does not stop only when nobody is left to ask


def alone_with_items(n_items=60):
    """One answer per item: nothing checks it."""
    items = range(n_items)
    return {"item": [*items], "worker": [f"w{i % 6}" for i in items], "label": ["abc"[i // 6 % 3] for i in items]}


@pytest.mark.parametrize("fit", [cs.fuse, cs.DawidSkene().fit])
def test_withheld_numbers_are_not_foreseen(fit):
    found = fit(alone_with_items()).forecast_answers()
    assert math.isnan(found.expected_errors)
    assert found.describe() == (
        "What further answers would bring cannot be foreseen: hardly any item has answers of two workers, so nothing "
        "checks them."
    )
    assert not found.stop


def test_sets_of_labels_are_not_foreseen(tmp_path):
    r = EARLY.responses
    said = np.array(["a", "b", "a;b"])[r.label]
    fused = cs.fuse({"item": r.item_of_answer(), "worker": r.worker, "label": said})
    fused.save(tmp_path / "tags.model")
    done = run("next", tmp_path / "tags.model", "--questions")
    assert "expected errors" not in done.stdout
    assert "some classes are sets of labels, such as 'a;b'" in " ".join(done.stdout.split())
