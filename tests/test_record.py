"""How many labels are right: by the record of real crowds, by known labels, and not at all."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logit

import consilience as cs
from benchmarks import record as making
from benchmarks.real_crowds import is_present
from command_line import run
from consilience.answers.layouts import to_long
from consilience.results.record import (
    INDEPENDENT_SHARE,
    INDEPENDENT_SPREAD,
    PAIRS,
    estimate_error_by_record,
    find_range,
    see_known,
)
from consilience.simulate import independent
from effort import rest_robust

LIST = list(PAIRS.values())


def slow_range(expected, n_known=0, n_right=0):
    """The same as the record says, by a fine grid of accuracies and scipy."""
    accuracy = np.arange(0.5, 200_000) / 200_000
    x, y = (logit(1 - np.array(each)) for each in zip(*LIST, strict=True))
    fitted = stats.linregress(x, y)
    residuals = y - fitted.intercept - fitted.slope * x
    n, at = len(x), logit(1 - expected)
    scale = np.sqrt(residuals @ residuals / (n - 2) * (1 + 1 / n + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()))
    record = stats.t.pdf(logit(1 - accuracy), n - 2, fitted.intercept + fitted.slope * at, scale)
    alone = stats.norm.pdf(logit(1 - accuracy), at, INDEPENDENT_SPREAD)
    seen = stats.binom.pmf(n_right, n_known, accuracy) / (accuracy * (1 - accuracy))
    sums = [np.cumsum(each * seen) for each in (record, (1 - INDEPENDENT_SHARE) * record + INDEPENDENT_SHARE * alone)]
    ends = [np.interp((0.5, 0.05, 0.95), each / each[-1], accuracy) for each in sums]
    return ends[0][0], ends[0][1], max(ends[0][2], ends[1][2])


@pytest.mark.parametrize("known", [(0, 0), (30, 25), (100, 97), (7, 0)])
@pytest.mark.parametrize("expected", [0.55, 0.884, 0.97])
def test_the_range_is_that_of_the_equations(expected, known):
    found = find_range(see_known(estimate_error_by_record(expected), *known))
    np.testing.assert_allclose(found, slow_range(expected, *known), atol=2e-3)


@pytest.mark.parametrize("name", making.CROWDS)
def test_the_pairs_are_those_of_the_fit(name):
    if not is_present(name):
        pytest.skip("the data are not there")
    assert making.pair(name) == pytest.approx(PAIRS[name], abs=0.003)


@pytest.mark.parametrize(("n_draws", "widest"), rest_robust([(2, 0.18), (making.N_DRAWS, 0.17)]))
def test_with_thirty_known_labels_the_range_holds_and_is_narrow(n_draws, widest):
    if not all(map(is_present, making.CROWDS)):
        pytest.skip("the data are not there")
    draws = [each for name in making.CROWDS for each in making.draw(name, n_draws)]
    assert np.mean([each.holds for each in draws]) >= 0.88
    assert np.mean([each.width for each in draws]) <= widest


# -------------------------------------------------------------------------------------------------------- through fuse


@pytest.fixture(scope="module")
def crowd():
    return independent(400, n_workers=8, n_classes=3, answers_per_item=4, seed=3)


def known_of(crowd, n):
    return dict(zip(crowd.responses.items[:n].tolist(), crowd.truth[:n].tolist(), strict=True))


@pytest.fixture(scope="module")
def alone(crowd):
    return cs.fuse(crowd.responses)


def test_the_headline_is_judged_by_real_crowds(alone):
    c = alone.comparison_
    found = find_range(estimate_error_by_record(c.expected_accuracy, high=c.expected_accuracy_high), c.n_items)
    assert (c.accuracy, c.accuracy_low, c.accuracy_high) == pytest.approx(found)
    assert c.like_record
    assert c.withheld == ""
    ends = f"{c.accuracy_low:.0%} to {c.accuracy_high:.0%}"
    assert (
        c.describe_headline() == f"about {c.accuracy:.0%} of these labels are right ({ends}), judging by 23 real crowds"
    )
    assert c.describe_more().startswith("30 known labels of items drawn at random would narrow this to a range about ")
    assert repr(c) == f"<Comparison: {c}>"
    assert str(c).startswith(c.describe_headline())
    assert "vote 7" not in str(c)


def test_known_labels_narrow_the_range_and_are_right_themselves(crowd, alone):
    widths = [alone.comparison_.width]
    for n in (30, 100, 400):
        fused = cs.fuse(crowd.responses, gold=known_of(crowd, n))
        c = fused.comparison_
        assert c.n_known == n == fused.result_.calibrated.calibration.n_gold
        # Those that the model gives if it does not know them: about as many as are right without known labels.
        right = np.mean(alone.labels_ == crowd.truth)
        assert c.n_known_right / n == pytest.approx(right, abs=0.12)
        assert c.share_known == n / 400
        widths.append(c.width)
        if n < 400:
            assert c.describe_headline().endswith(f"judging by 23 real crowds and {n} known labels")
            assert abs(c.blind_accuracy - alone.result_.expected_accuracy[0]) < 0.03
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0


def test_the_number_is_carried_by_files_updates_and_streams(crowd, tmp_path):
    known = known_of(crowd, 60)
    fused = cs.fuse(crowd.responses, gold=known)
    loaded = cs.load(fused.save(tmp_path / "m.model"))
    np.testing.assert_equal(dataclasses.asdict(loaded.comparison_), dataclasses.asdict(fused.comparison_))
    assert loaded.result_.calibrated.calibration == fused.result_.calibrated.calibration
    item, worker = crowd.responses.items[0].item(), crowd.responses.workers[0].item()
    loaded.update({"item": [item], "worker": [worker], "label": [crowd.truth[0].item()]}, duplicates="last")
    assert loaded.comparison_.n_known == 60
    assert abs(loaded.comparison_.n_known_right - fused.comparison_.n_known_right) <= 2
    stream = cs.DawidSkene()
    in_first, counts = crowd.responses.item_of_answer() < 200, []
    for half, first in ((in_first, 0), (~in_first, 200)):
        known = dict(zip(range(first, first + 60), crowd.truth[first : first + 60].tolist(), strict=True))
        stream.partial_fit(to_long(crowd.responses).filter(half), gold=known)
        counts.append(stream.result_.calibrated.calibration)
    assert [each.n_gold for each in counts] == [60, 120]
    assert counts[0].n_right < counts[1].n_right <= 120


def matrix(n_items, n_workers, seed=0, n_classes=3, share=0.8):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    other = (truth[:, None] + rng.integers(1, n_classes, (n_items, n_workers))) % n_classes
    return np.where(rng.random((n_items, n_workers)) < share, truth[:, None], other), truth


def table(said, names=None):
    item, worker = np.nonzero(said >= 0)
    label = said[item, worker]
    return {"item": item, "worker": worker, "label": label if names is None else np.array(names)[label]}


def few():
    return table(matrix(6, 3)[0])


def one_answer_each():
    said = matrix(400, 1)[0][:, 0]
    return {"item": np.arange(400), "worker": np.arange(400) % 8, "label": said}


def sets():
    return table(matrix(200, 5)[0], ["a", "b", "a;b"])


def noise():
    return table(np.random.default_rng(0).integers(0, 3, (400, 6)))


def functions():
    """Each says one label or nothing."""
    rng, said = np.random.default_rng(1), np.full((600, 8), -1)
    truth = rng.integers(0, 2, 600)
    for worker in range(8):
        speaks = rng.random(600) < np.where(truth == worker % 2, 0.5, 0.1)
        said[speaks, worker] = worker % 2
    return table(said)


def many_classes():
    return table(matrix(600, 5, n_classes=40)[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (few, "there are too few answers"),
        (one_answer_each, "hardly any item has answers of two workers"),
        (sets, "some classes are sets of labels, such as 'a;b'"),
        (noise, "the answers show no signal"),
        (functions, "workers answer as labelling functions do, and their silence is ignored"),
    ],
)
def test_numbers_that_cannot_be_checked_are_withheld(make, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = make()
    c = cs.fuse(answers).comparison_
    assert why in c.withheld
    figures = [
        c.accuracy,
        c.accuracy_low,
        c.accuracy_high,
        c.expected_accuracy,
        c.expected_accuracy_low,
        c.expected_gain,
    ]
    assert all(map(math.isnan, figures))
    assert c.withheld in c.describe_headline()
    assert c.describe_expected() == c.describe_more() == ""
    rows = zip(*(each.tolist() for each in answers.values()), strict=True)
    text = "\n".join([",".join(answers), *(",".join(map(str, row)) for row in rows)])
    (tmp_path / "answers.csv").write_text(text)
    figures = json.loads(run("fuse", "answers.csv", "--json").stdout)
    assert figures["mean_confidence"] is None
    told = figures["comparison"]
    assert told["accuracy"] is told["expected_accuracy"] is told["expected_gain"] is None
    assert why in told["withheld"]
    shown = " ".join(run("fuse", "answers.csv", "--report", "page.html").stdout.split())
    assert why in shown
    assert "if workers err independently" not in shown
    assert "if workers err independently" not in (tmp_path / "page.html").read_text()


@pytest.mark.filterwarnings("ignore")
def test_there_is_no_record_of_other_data_and_models():
    said, truth = matrix(300, 5)
    crowds = {
        "classes": cs.fuse(many_classes()),
        "sequences": cs.fuse(cs.Answers.from_matrix(said, lengths=[10] * 30)),
        "power": cs.fuse(table(said), calibration=1.0),
        "one coin": cs.fuse(table(said), model=cs.DawidSkene(workers="one-coin")),
    }
    for name, fused in crowds.items():
        c = fused.comparison_
        assert not c.like_record, name
        assert math.isnan(c.accuracy), name
        assert c.describe_headline().endswith("there is no record of such data")
        assert "if workers err independently" in c.describe_expected()
    # Known labels of a sequence are right or wrong together.
    r = cs.Answers.from_matrix(said, lengths=[10] * 30)
    gold = {(0, n): int(truth[n]) for n in range(10)} | {(1, n): int(truth[10 + n]) for n in range(10)}
    assert math.isnan(cs.fuse(r, gold=gold).comparison_.accuracy)
