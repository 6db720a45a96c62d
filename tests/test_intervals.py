"""Intervals: of agreement, of what is learned about workers and classes, and of the accuracy of labels."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import consilience as cs
from benchmarks import intervals as benchmark
from consilience.engines import Threads
from consilience.inference.distributions import Distributions
from consilience.inference.em import Parameters
from consilience.inference.estimator import renew
from consilience.inference.observations import Observations
from consilience.models import latent
from consilience.results import intervals
from consilience.results.conclusion import conclude
from consilience.results.intervals import informativeness


def weighted_alpha(matrix, weight):
    """Alpha of a matrix of answers (-1: none) whose items count by `weight`, by its definition."""
    labels = np.unique(matrix[matrix >= 0])
    counts = np.stack([(matrix == label).sum(axis=1) for label in labels], axis=1)
    kept = counts.sum(axis=1) >= 2
    counts, weight = counts[kept], weight[kept]
    n = counts.sum(axis=1)
    disagreement = 1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    observed = np.average(disagreement, weights=n * weight)
    total = weight @ counts
    agreeing, pairs = np.sum(total**2) - weight @ n, np.sum(total) ** 2 - weight @ n
    return 1 - observed / (1 - agreeing / pairs)


def slow_alpha_interval(matrix, units):
    """The infinitesimal jackknife with derivatives by differences; `units` numbers the unit of each item."""
    ones = np.ones(len(matrix))
    influence = []
    for unit in np.unique(units[(matrix >= 0).sum(axis=1) >= 2]):
        step = 1e-5 * (units == unit)
        influence.append((weighted_alpha(matrix, ones + step) - weighted_alpha(matrix, ones - step)) / 2e-5)
    n = len(influence)
    alpha, error = weighted_alpha(matrix, ones), np.std(influence, ddof=1) * np.sqrt(n)
    from scipy.stats import t

    reach = t.ppf(0.975, n - 1) * error / (1 - alpha**2)
    return alpha, np.tanh(np.arctanh(alpha) - reach), np.tanh(np.arctanh(alpha) + reach)


def draw_matrix(seed, n_items=40, n_workers=6, n_classes=3, accuracy=0.7, answered=0.6):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=(n_items, 1))
    answers = np.where(rng.random((n_items, n_workers)) < accuracy, truth, rng.integers(n_classes, size=(n_items, 1)))
    answers = np.where(rng.random(answers.shape) < 0.3, rng.integers(n_classes, size=answers.shape), answers)
    return np.where(rng.random(answers.shape) < answered, answers, -1)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_alpha_is_an_infinitesimal_jackknife(seed):
    matrix = draw_matrix(seed)
    found = cs.metrics.krippendorff_interval(cs.Answers.from_matrix(matrix))
    assert found == pytest.approx(slow_alpha_interval(matrix, np.arange(len(matrix))), abs=1e-6)
    assert found.alpha == cs.metrics.krippendorff_alpha(cs.Answers.from_matrix(matrix))
    in_sequences = cs.metrics.krippendorff_interval(cs.Answers.from_matrix(matrix, lengths=[5] * 8))
    assert in_sequences == pytest.approx(slow_alpha_interval(matrix, np.arange(len(matrix)) // 5), abs=1e-6)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[0, 0], [0, 0]], (math.nan, math.nan, math.nan)),  # one label only
        ([[0, -1], [1, -1]], (math.nan, math.nan, math.nan)),  # one worker
        ([[0, 1]], (0.0, -1.0, 1.0)),  # one item
        ([[0, 0], [1, 1]], (1.0, -0.2628, 1.0)),  # nobody differs: 1 - (1 - .025 ** (1 / 2)) / (2 / 3)
        ([[0, 1], [0, 1], [1, 0]], (-2 / 3, -1.0, 1.0)),  # all differ
    ],
)
def test_little_agreement_to_judge_by(matrix, expected):
    found = cs.metrics.krippendorff_interval(cs.Answers.from_matrix(matrix))
    assert found[0] == pytest.approx(expected[0], nan_ok=True)
    assert np.isnan(found[1]) == np.isnan(expected[1])
    assert math.isnan(found[0]) or -1 <= found[1] <= found[0] <= found[2] <= 1
    if expected[0] == 1:
        assert found == pytest.approx(expected, abs=1e-3)


# ------------------------------------------------------------------------------------------------------- twins of sums


def slow_answers(r, posterior, confusion, counts):
    """Right answers, information left and centre of each worker, one answer after the other."""
    found = []
    for m in range(r.n_workers):
        own = [(posterior[i, r.label[a]], w) for a, i, w in answers_of(r) if r.worker[a] == m]
        n = sum(w for _, w in own)
        x = sum(p * w for p, w in own) / n
        left = (sum(p * p * w for p, w in own) / n - x * x + 0.25 / n) / (x * (1 - x) + 0.25 / n)
        theta = sum(counts[m, :, k].sum() * confusion[m, k, k] for k in range(posterior.shape[1])) / n
        found.append((n, x, x + (1 - left) / left * (x - theta), n * left))
    return np.array(found).T


def answers_of(r):
    """Index, item and weight of each answer."""
    weight = np.ones(r.n_responses) if r.weight is None else r.weight
    return [(a, i, weight[a]) for i in range(r.n_items) for a in range(r.offsets[i], r.offsets[i + 1])]


def small_crowd(seed=0, n_items=60, **further):
    return cs.simulate.independent(
        n_items, n_workers=6, n_classes=3, answers_per_item=4, accuracy=(0.5, 0.9), seed=seed, **further
    )


def estimates_of(model, prior_is_known=False):
    pseudo_counts = np.full(3, model.smoothing_[0] * 2 + model.smoothing_[1])
    judged = np.ones(len(model.posterior_), bool)
    right = np.diagonal(model.confusion_, axis1=1, axis2=2)
    return intervals.IntervalInputs(model.result_.estimates, model.prior_, pseudo_counts, prior_is_known, judged, right)


def sum_up(model, r, inputs):
    """The sums of the pass after a fit, with the parameters of a model."""
    problem = model._plan(Observations(r), None, Threads(1)).problem
    found = model.result_.estimates
    distributions = Distributions(found.log_weights, found.log_weights, 0.0)
    parameters = Parameters(distributions, found.structure, problem.prior)
    statistics = problem.expect(parameters)
    return conclude(Observations(r), problem, parameters, statistics, inputs, False).sums


def sum_by_item(r, right):
    amount = intervals.ALL_FULLY if r.amount is None else r.amount
    return intervals.sum_by_item(r.worker, r.label, r.offsets, amount, r.class_of_label, right, right)


def test_worth_and_centre_of_answers():
    r = small_crowd().responses
    model = cs.DawidSkene(calibration="none").fit(r)
    found = estimates_of(model)
    sums = sum_up(model, r, found)
    ends, worth = intervals.find_worker_intervals(r, sums, found, None)
    _, _, centre, slow = slow_answers(r, model.posterior_, model.confusion_, model.result_.estimates.counts)
    np.testing.assert_allclose(worth, slow, rtol=1e-6)
    np.testing.assert_allclose(ends[:, 0], intervals.beta_ends(centre, slow, centre)[0], rtol=1e-6)
    shared = intervals.invert_scores(r, sums, found)
    together = intervals.find_worker_intervals(r, sums, found, shared)[1]
    assert (together < worth).all()  # what all share is not known either


@pytest.mark.parametrize("known", [False, True])
def test_covariance_of_what_items_share(known):
    r = small_crowd().responses
    model = cs.DawidSkene(calibration="none").fit(r)
    found, q, pi = estimates_of(model, known), model.posterior_, model.prior_
    right = np.diagonal(model.confusion_, axis1=1, axis2=2)
    scores = np.zeros((r.n_items, 6))
    for a, i, _ in answers_of(r):
        for k in range(3):
            scores[i, k] += q[i, k] * ((r.label[a] == k) - right[r.worker[a], k])
    scores[:, 3:] = q - pi
    held = found.pseudo_counts * (right * (1 - right)).sum(axis=0)
    information = scores.T @ scores
    information[:3, :3] += np.diag(held) - np.outer(held, held) / held.sum()
    for k in range(3):
        lack = 0.0
        for i in range(r.n_items):
            workers = [r.worker[a] for a, item, _ in answers_of(r) if item == i]
            lack += q[i, k] ** 2 * sum(right[m, k] * (1 - right[m, k]) for m in workers) - scores[i, k] ** 2
        information[k, k] += max(lack, 0.0)
    expected = np.zeros((6, 6))
    size = 3 if known else 6
    expected[:size, :size] = np.linalg.pinv(information[:size, :size], rcond=1e-9, hermitian=True)
    sums = sum_up(model, r, found)
    shared = intervals.invert_scores(r, sums, found)
    np.testing.assert_allclose(shared, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(sum_by_item(r, right)[0] * q, scores[:, :3], atol=1e-12)


def test_slope_of_the_mean_probability_of_labels():
    """Move the log odds of right answers to a class, and the class shares, by a little."""
    r = small_crowd().responses
    model = cs.DawidSkene(calibration="none").fit(r)
    right = np.diagonal(model.confusion_, axis1=1, axis2=2)
    labels = model.posterior_.argmax(axis=1)

    def mean(odds, shares):
        log_odds = np.log(model.prior_) + shares + np.zeros((r.n_items, 1))
        matrices = model.confusion_ * np.exp(odds[:, None] * np.eye(3))
        matrices /= matrices.sum(axis=2, keepdims=True)
        for a, i, _ in answers_of(r):
            log_odds[i] += np.log(matrices[r.worker[a], :, r.label[a]])
        posterior = np.exp(log_odds) / np.exp(log_odds).sum(axis=1, keepdims=True)
        return posterior[np.arange(r.n_items), labels].mean(), posterior

    posterior = mean(np.zeros(3), np.zeros(3))[1]
    chosen = posterior[np.arange(r.n_items), labels]
    surprise, _ = sum_by_item(r, right)
    slope = intervals.sum_slopes(posterior, np.eye(3)[labels], chosen, surprise) / r.n_items
    steps = 1e-5 * np.eye(6)
    expected = [(mean(h[:3], h[3:])[0] - mean(-h[:3], -h[3:])[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(slope, expected, atol=1e-8)


@pytest.mark.parametrize("in_sequences", [False, True])
def test_runs_of_items_change_nothing(in_sequences, monkeypatch):
    r = cs.Answers.from_matrix(draw_matrix(0, 60), lengths=[7, 13, 1, 9, 30] if in_sequences else None)
    model = (cs.HiddenMarkov(coupling=0.5) if in_sequences else cs.DawidSkene()).fit(r)
    whole = all_ends(model)
    for entries in (1, 30):
        monkeypatch.setattr(intervals, "ENTRIES_AT_ONCE", entries)
        monkeypatch.setattr(intervals, "FEWEST_ITEMS_AT_ONCE", 1)
        offsets = None if r.sequences is None else r.sequences.offsets
        runs = list(intervals.cut_runs(60, r.n_classes, offsets))
        assert [run.start for run in runs][1:] == [run.stop for run in runs][:-1]
        assert (runs[0].start, runs[-1].stop) == (0, 60)
        assert not in_sequences or {run.stop for run in runs} <= {7, 20, 21, 30, 60}
        np.testing.assert_allclose(all_ends(renew(model).fit(r)), whole, rtol=1e-9)


def test_variances_of_some_items_stand_for_those_of_all(monkeypatch):
    r = small_crowd(n_items=4000).responses
    whole = cs.DawidSkene().fit(r).result_
    monkeypatch.setattr(latent, "MOST_ANSWERS", 4000)
    part = cs.DawidSkene().fit(r).result_
    np.testing.assert_array_equal(part.intervals.workers, whole.intervals.workers)
    assert part.expected_accuracy[0] == pytest.approx(whole.expected_accuracy[0], abs=1e-12)
    assert (part.intervals.expected != whole.intervals.expected).any()  # a quarter of the items was looked at
    width = float(np.ptp(whole.intervals.expected))
    np.testing.assert_allclose(part.intervals.expected, whole.intervals.expected, atol=0.15 * width)


# ------------------------------------------------------------------------------------------------------------ coverage


def true_accuracy(crowd):
    true = crowd.parameters
    return np.diagonal(true.confusion, axis1=1, axis2=2) @ true.prior


def inside(low, high, true):
    return np.mean((low <= true) & (true <= high))


@pytest.mark.parametrize(("n_classes", "accuracy"), [(2, (0.55, 0.75)), (4, (0.5, 0.95))])
def test_intervals_contain_the_truth(n_classes, accuracy):
    found = []
    prior = np.arange(2, n_classes + 2) / np.arange(2, n_classes + 2).sum()
    for seed in range(25):
        crowd = cs.simulate.independent(
            300, n_workers=15, n_classes=n_classes, answers_per_item=5, accuracy=accuracy, prior=prior, seed=seed
        )
        model = cs.DawidSkene().fit(crowd.responses)
        report = model.worker_report()
        told = informativeness(crowd.parameters.confusion, prior)
        right = np.mean(model.labels_ == crowd.truth)
        found.append(
            [
                inside(report["accuracy_low"].to_numpy(), report["accuracy_high"].to_numpy(), true_accuracy(crowd)),
                inside(report["informativeness_low"].to_numpy(), report["informativeness_high"].to_numpy(), told),
                inside(model.result_.intervals.prior[0], model.result_.intervals.prior[1], prior),
                inside(model.result_.expected_accuracy[1], model.result_.expected_accuracy[2], right),
            ]
        )
    accuracies, informations, shares, labels = np.mean(found, axis=0)
    # 375 workers, which are not independent, 50 or 100 class shares, and 25 fits.
    assert 0.91 <= accuracies <= 0.985
    assert 0.9 <= informations <= 0.995
    assert shares >= 0.85
    assert labels >= 0.84


def test_intervals_of_sequences_contain_the_truth():
    found = []
    for seed in range(8):
        crowd = cs.simulate.sequences(
            40, (5, 25), 8, 3, answers_per_item=4, accuracy=(0.5, 0.9), stickiness=0.5, seed=seed
        )
        model = cs.HiddenMarkov(coupling=1.0).fit(crowd.responses)
        report = model.worker_report()
        found.append(
            inside(report["accuracy_low"].to_numpy(), report["accuracy_high"].to_numpy(), true_accuracy(crowd))
        )
        assert inside(model.result_.intervals.prior[0], model.result_.intervals.prior[1], crowd.parameters.prior) > 0.6
    assert np.mean(found) >= 0.88


def test_more_answers_make_narrower_intervals():
    def widths(n_items):
        model = cs.DawidSkene(calibration="none").fit(small_crowd(n_items=n_items).responses)
        report = model.worker_report().to_pandas()
        return np.array(
            [
                (report["accuracy_high"] - report["accuracy_low"]).mean(),
                (report["informativeness_high"] - report["informativeness_low"]).mean(),
                (model.result_.intervals.prior[1] - model.result_.intervals.prior[0]).mean(),
                model.result_.expected_accuracy[2] - model.result_.expected_accuracy[1],
            ]
        )

    assert np.allclose(widths(3200) / widths(200), 0.25, rtol=0.4)


# ---------------------------------------------------------------------------------------------------------- invariance


def all_ends(model):
    report = model.worker_report().to_pandas().set_index("worker").sort_index()
    names = [f"{name}_{end}" for name in ("accuracy", "informativeness") for end in ("low", "high")]
    ends = [model.result_.expected_accuracy[1], model.result_.expected_accuracy[2]]
    return np.concatenate(
        [report[names].to_numpy().ravel(), model.result_.intervals.prior[0], model.result_.intervals.prior[1], ends]
    )


def table_of(r, order):
    item = r.item_of_answer()
    return pd.DataFrame({"item": item, "worker": r.worker, "label": r.label}).iloc[order]


def test_neither_the_order_of_rows_nor_blocks_nor_threads_matter(monkeypatch):
    r = small_crowd(n_items=300).responses
    table = pa.Table.from_pandas(table_of(r, np.arange(r.n_responses)), preserve_index=False)
    shuffled = table.take(np.random.default_rng(0).permutation(r.n_responses))
    classes = [0, 1, 2]
    first = cs.DawidSkene().fit(cs.Answers.from_frame(table, classes=classes))
    ends = all_ends(first)
    np.testing.assert_allclose(
        all_ends(cs.DawidSkene().fit(cs.Answers.from_frame(shuffled, classes=classes))), ends, atol=1e-6
    )
    one, two = (cs.DawidSkene().fit(r, engine=cs.engines.Threads(n)) for n in (1, 2))
    assert np.array_equal(all_ends(one), all_ends(two))
    monkeypatch.setattr("consilience.answers.answers.BLOCK_SIZE", 200)
    np.testing.assert_allclose(all_ends(cs.DawidSkene().fit(r)), all_ends(one), atol=1e-6)
    monkeypatch.setattr(intervals, "ENTRIES_AT_ONCE", 10)
    np.testing.assert_allclose(all_ends(cs.DawidSkene().fit(r)), all_ends(one), atol=1e-6)


# ---------------------------------------------------------------------------------------------------------- edge cases


def check_ends(model, is_checked=True):
    """Every interval is there, holds what it is about, and lies between 0 and 1.

    If nothing checks the answers, nothing is told of their workers.
    """
    report = model.worker_report().to_pandas()
    answered = report["answers"] > 0
    for name in ("accuracy", "informativeness"):
        low, x, high = (report[f"{name}{end}"][answered] for end in ("_low", "", "_high"))
        if is_checked:
            assert ((low >= 0) & (low <= x + 1e-12) & (x <= high + 1e-12) & (high <= 1)).all(), name
        else:
            assert np.isnan([low, x, high]).all(), name
    assert report.loc[~answered, ["accuracy", "accuracy_low", "accuracy_high"]].isna().all(axis=None)
    assert (
        (model.result_.intervals.prior[0] >= 0)
        & (model.result_.intervals.prior[0] <= model.prior_)
        & (model.prior_ <= model.result_.intervals.prior[1])
    ).all()
    value, low, high = model.result_.expected_accuracy
    assert 0 <= low <= value <= high <= 1
    return report


MATRICES = {
    "one worker": [[0], [1], [0]],
    "one item": [[0, 1, 1]],
    "one class": [[0, 0], [0, 0]],
    "one answer": [[0]],
    "unanimous": [[0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1]],
    "a worker without answers": [[0, 1, -1], [1, 1, -1], [0, 0, -1]],
    "an item without answers": [[0, 1, 1], [-1, -1, -1], [0, 0, 1]],
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(
    "model",
    [cs.DawidSkene(), cs.DawidSkene(workers="one-coin"), cs.MajorityVote()],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_small_crowds(name, model):
    labels = [0] if name in ("one class", "one answer") else [0, 1]
    r = cs.Answers.from_matrix(MATRICES[name], labels=labels)
    check_ends(model.fit(r), is_checked=name not in ("one worker", "one answer", "one class"))
    if name == "one class" and not isinstance(model, cs.MajorityVote):
        assert (model.result_.expected_accuracy[1], model.result_.expected_accuracy[2]) == (1, 1)


def test_nobody_can_judge_themselves():
    crowd = cs.simulate.independent(300, n_workers=5, n_classes=3, answers_per_item=1, accuracy=0.6, seed=0)
    check_ends(cs.DawidSkene().fit(crowd.responses), is_checked=False)
    r, matrix = crowd.responses, np.full((340, 5), -1)
    matrix[r.item_of_answer(), r.worker] = r.label
    matrix[300:, :2] = 0  # two workers meet, so that something is told; the others are still alone with their items
    report = cs.DawidSkene().fit(cs.Answers.from_matrix(matrix, labels=[0, 1, 2])).worker_report().to_pandas()
    assert report["accuracy_low"].notna().tolist() == [True, True, False, False, False]
    known = dict(zip(range(100), crowd.truth[:100].tolist(), strict=True))
    report = check_ends(cs.DawidSkene().fit(crowd.responses, gold=known))
    assert report["accuracy_low"].mean() > 0.2


def test_weights_sequences_silence_and_gold():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=(40, 1))
    soft = 0.2 + 0.4 * (truth[..., None] == np.arange(3)) * rng.random((40, 4, 1))
    soft /= soft.sum(axis=2, keepdims=True)
    check_ends(cs.DawidSkene().fit(cs.Answers.from_probabilities(soft)))
    check_ends(cs.HiddenMarkov().fit(cs.Answers.from_probabilities(soft, lengths=[10, 10, 20])))
    check_ends(cs.HiddenMarkov().fit(cs.Answers.from_probabilities(soft, lengths=[40])))
    check_ends(cs.HiddenMarkov(workers="sequential", coupling=1.0).fit(small_sequences()))
    matrix = draw_matrix(5, answered=0.4)
    silent = cs.Answers.from_matrix(matrix, labels=[0, 1, 2], abstain="answer", background=0)
    check_ends(cs.DawidSkene().fit(silent))
    check_ends(cs.MajorityVote().fit(silent))
    crowd = small_crowd()
    known = dict(zip(crowd.responses.items.tolist(), crowd.truth.tolist(), strict=True))
    model = cs.DawidSkene().fit(crowd.responses, gold=known)
    check_ends(model)
    assert (model.result_.expected_accuracy[1], model.result_.expected_accuracy[2]) == (1, 1)
    half = dict(list(known.items())[:30])
    check_ends(cs.DawidSkene().fit(crowd.responses, gold=half))


def small_sequences():
    return cs.simulate.sequences(12, (3, 9), 5, 3, accuracy=0.7, seed=1).responses


# --------------------------------------------------------------------------------------------------------------- files


def test_hard_items_are_answered_as_if_another_class_were_true():
    crowd = cs.simulate.independent(4000, 5, 3, accuracy=1.0, hard=0.25, seed=1)
    easy = cs.simulate.independent(4000, 5, 3, accuracy=1.0, seed=1)
    assert np.array_equal(crowd.truth, easy.truth)
    answers = crowd.responses.label.reshape(4000, 5)
    assert (answers == answers[:, :1]).all()  # all err alike
    assert np.mean(answers[:, 0] != crowd.truth) == pytest.approx(0.25, abs=0.03)
    assert crowd.parameters.hard == 0.25
    for simulate in (cs.simulate.sequences, cs.simulate.network):
        wrong = simulate(100, accuracy=1.0, hard=1.0, seed=1)
        assert (wrong.responses.labels[wrong.responses.label] != wrong.truth[wrong.responses.item_of_answer()]).all()
    assert cs.simulate.independent(10, n_classes=1, hard=1.0).truth.tolist() == [0] * 10
    with pytest.raises(cs.errors.ParameterError, match="hard"):
        cs.simulate.independent(10, hard=1.5)


# ---------------------------------------------------------------------------------------------------------- the page


def read_table(name):
    """Return a table of docs/measured as {row: cells}."""
    lines = (Path(__file__).parents[1] / "docs" / "measured" / name).read_text().splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


def read_situations():
    return benchmark.read_situations(benchmark.SITUATIONS_TABLE.read_text())


@pytest.mark.robust
def test_the_table_of_coverage_agrees_with_a_run():
    situation = benchmark.independent(3, 20, 5, 100, benchmark.GOOD, 40)
    np.testing.assert_allclose(100 * benchmark.measure(situation), read_situations()[situation.name], atol=2.6)


def test_what_the_page_says_of_coverage():
    table = read_situations()
    assert len(table) == len(benchmark.SITUATIONS) == 53
    assert all(92 <= float(cell.partition(" ")[0]) <= 98 for cell in read_table("coverage.md")["all"])
    workers = {name: float(row[0]) for name, row in table.items()}
    assert {name for name, share in workers.items() if share < 92} == {
        f"{n} classes, 5 workers, 3 per item, 100 items, weak" for n in (2, 3)
    }
    assert (
        min(float(row[1]) for name, row in table.items() if "5 classes, 20" not in name or "uneven" not in name) >= 93
    )
