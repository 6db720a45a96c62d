"""Weights: the probability that an answer was given with care, against enumeration of labels and of care.

`tests/oracles.py` holds the dense twin, which `test_dawid_skene.py` compares with; here are the parts beside it.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
import oracles
from consilience.inference.sources import Source
from consilience.inference.workers import WORKERS
from consilience.inference.workers.rows import Care
from consilience.results import intervals

ESTIMATIONS = ("em", "variational")


def crowd(seed=0, n_items=60, n_workers=6, n_classes=3, share=0.7, spread=True, sequences=False, **options):
    """Return answers with weights, of which some are spread over two labels."""
    rng = np.random.default_rng(seed)
    answers, *_ = oracles.simulate(seed, n_items=n_items, n_workers=n_workers, n_classes=n_classes, share=share)
    rows = []
    for i, m in np.argwhere(answers >= 0):
        weight = float(rng.choice([1.0, 0.7, 0.2]))
        several = spread and weight < 1 and rng.random() < 0.4
        rows.append((i, m, "abcde"[answers[i, m]], weight))
        if several:
            rows.append((i, m, "abcde"[(answers[i, m] + 1) % n_classes], 0.2))
    item, worker, label, weight = (list(each) for each in zip(*rows, strict=True))
    frame = {"item": item, "worker": worker, "label": label, "weight": weight}
    if sequences:
        del frame["item"]
        frame |= {"sequence": [i // 7 for i in item], "position": [i % 7 for i in item]}
    return cs.Answers.from_frame(frame, weight="weight", **options)


def assert_never_falls(trace):
    """The objective rises at every step, but for rounding."""
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-8 * np.maximum(np.abs(trace[1:]), 1)).all()


def with_weight(r, weight):
    return replace(r, weight=np.broadcast_to(np.float64(weight), r.n_responses).copy())


# -------------------------------------------------------------------------------------------------------- enumeration


def enumerate_care(r, confusion, prior):
    """Return (posteriors, log p(answers)) by the sum over labels and, for each answer, over the ways it came about."""
    votes, said = oracles.densify(r), r.label_shares()
    posterior, log_total = np.zeros((r.n_items, r.n_classes)), 0.0
    for i in range(r.n_items):
        # An answer is one of its labels, given with care (its index), or given without (None).
        who = np.flatnonzero(votes[i].sum(axis=1))
        ways = [[*np.flatnonzero(votes[i, m]), None] for m in who]
        for k, came in itertools.product(range(r.n_classes), itertools.product(*ways)):
            chance = prior[k]
            for m, label in zip(who, came, strict=True):
                total = votes[i, m].sum()
                if label is None:
                    chance *= max(1 - total, 0) * (votes[i, m] @ said) / total
                else:
                    chance *= votes[i, m, label] * confusion[m, k, label]
            posterior[i, k] += chance
        log_total += np.log(posterior[i].sum())
    return posterior / posterior.sum(axis=1, keepdims=True), log_total


def test_posterior_and_likelihood_are_enumerations():
    r = crowd(1, n_items=8, n_workers=4)
    model = cs.DawidSkene(estimation="em", **oracles.PLAIN).fit(r)
    posterior, log_likelihood = enumerate_care(r, model.confusion_, model.prior_)
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert model.score(r) == pytest.approx(log_likelihood / r.n_items, rel=1e-12)


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_what_answers_with_weights_are_worth(estimation, sequences):
    """Accuracy with care and the information left about it, one answer after the other."""
    r = crowd(4, sequences=sequences)
    model = cs.DawidSkene(estimation=estimation, **oracles.PLAIN).fit(r)
    gamma, said, votes = np.exp(model.result_.learned.log_weights), r.label_shares(), oracles.densify(r)
    sums = model.result_.past.sums
    (total, accuracy, _, left_of), report = intervals.measure_answers(sums.chances), model.worker_report()
    for m in range(r.n_workers):
        care, right = [], []
        for i in np.flatnonzero(votes[:, m].sum(axis=1)):
            w, q = votes[i, m], model.posterior_[i]
            careful = w[:, None] * gamma[m]  # (L, K)
            f = careful.sum(axis=0) + max(1 - w.sum(), 0) * (w @ said) / w.sum()
            care.append(np.sum(q * careful / f))
            right.append(np.sum(np.diagonal(q * careful / f)))
        care, right = np.array(care), np.array(right)
        x, n = right.sum() / care.sum(), care.sum()
        left = (np.sum((right - x * care) ** 2) / n + 0.25 / n) / (x * (1 - x) + 0.25 / n)
        assert (total[m], accuracy[m]) == pytest.approx((n, x), rel=1e-9)
        assert left_of[m] == pytest.approx(left, rel=1e-4)
        assert report["accuracy"].to_numpy()[m] == pytest.approx(x, abs=1e-3)
    assert sums.votes[1] == 0 if not sequences else sums.votes[1] > 0
    assert 0.5 < intervals.design_effect(sums.votes) < 1.5  # items of a sequence are independent here


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_careless_answers_are_as_silence_where_that_is_an_answer(estimation):
    """One step of the loop, case by case: label, and whether each answer was given with care."""
    r = crowd(2, n_items=30, items=range(30), abstain="answer", background="a", spread=False, share=0.5)
    options = {"estimation": estimation, "tol": 0, **oracles.PLAIN}
    before, after = (cs.DawidSkene(max_iter=n, **options).fit(r) for n in (3, 4))
    log_gamma, said = before.result_.learned.log_weights, r.label_shares()  # (M, A, K)
    n_silent = log_gamma.shape[1] - 1
    spoken = np.zeros((r.n_items, r.n_workers), bool)
    spoken[r.item_of_answer(), r.worker] = True
    counts, logs = np.zeros_like(log_gamma), np.tile(before.result_.learned.structure.log_prior(False), (30, 1))
    workers = WORKERS["confusion"].of(r, r.class_of_label, r.n_classes)
    logs += Source(r).lay_out(workers)[0].anchor
    with_care = np.zeros((r.n_responses, r.n_classes))
    for j, i in enumerate(r.item_of_answer()):
        careful = r.weight[j] * np.exp(log_gamma[r.worker[j], r.label[j]])
        careless = (1 - r.weight[j]) * said[r.label[j]] * np.exp(log_gamma[r.worker[j], n_silent])
        logs[i] += np.log(careful + careless)
        with_care[j] = careful / (careful + careless)
    for i, m in np.argwhere(~spoken):
        logs[i] += log_gamma[m, n_silent]
    q = np.exp(logs - logs.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(before.posterior_, q, atol=1e-10)
    for j, i in enumerate(r.item_of_answer()):
        counts[r.worker[j], r.label[j]] += with_care[j] * q[i]
        counts[r.worker[j], n_silent] += (1 - with_care[j]) * q[i]
    for i, m in np.argwhere(~spoken):
        counts[m, n_silent] += q[i]
    pseudo = workers.prior(
        oracles.smoothing_table((0.1, 1.1), r.class_of_label, 3, 1).transpose(0, 2, 1), estimation, r.vote_shares()
    )
    total = counts + pseudo.smoothing
    expected = (total / total.sum(axis=1, keepdims=True)).transpose(0, 2, 1)
    np.testing.assert_allclose(after.confusion_, expected, atol=1e-9)
    assert_never_falls(after.trace_)


def test_silence_is_left_out_with_what_was_not_said_with_care():
    r = crowd(3, n_items=25, items=range(25), abstain="answer", background="a", share=0.5)
    workers = WORKERS["confusion"].of(r, r.class_of_label, r.n_classes)
    prior = workers.prior(np.full((1, 3, 3), 0.4), "em", r.vote_shares())
    posterior = np.random.default_rng(0).dirichlet(np.ones(3), 25)
    (block,) = Source(r).lay_out(workers, anchored=False)
    factors = workers.factors(workers.given(np.random.default_rng(1).dirichlet(np.ones(4), (6, 3))), True)
    counts = np.zeros((workers.n_rows, 3))
    found = factors.count_rows(block, posterior)
    counts[found.rows] = found.counts
    own, mass = factors.count_each(block, posterior), posterior.sum(axis=0)
    np.testing.assert_allclose(own.sum(axis=0), counts.sum(axis=0), rtol=1e-12)
    logs = workers.counted(counts, mass, prior).log_evidence(block, posterior, factors)
    spoken = counts.reshape(6, 3, 3) + prior.smoothing[:, :3]
    silence = np.maximum(mass - counts.reshape(6, 3, 3).sum(axis=1), 0) + prior.smoothing[0, 3]
    total, said = spoken.sum(axis=1) + silence, r.label_shares()
    for i in range(25):
        expected, mine = np.zeros(3), slice(*r.offsets[i : i + 2])
        for m in range(6):
            rows = np.arange(r.n_responses)[mine][r.worker[mine] == m]
            left = total[m] - posterior[i]
            careless = posterior[i] - own[rows].sum(axis=0)  # all of it, if the worker was silent
            quiet, w = (silence[m] - careless) / left, r.weight[rows]
            factor = quiet if not len(rows) else (1 - w.sum()) * (w @ said[r.label[rows]]) / w.sum() * quiet
            for j in rows:
                factor = factor + r.weight[j] * (spoken[m, r.label[j]] - own[j]) / left
            expected += np.log(factor)
        np.testing.assert_allclose(logs[i], expected, rtol=1e-5)  # the silence of all is interpolated


# ------------------------------------------------------------------------------------------- all models, and all ways


@pytest.mark.parametrize("workers", ["confusion", "one-coin", "ordinal", "nominal"])
@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_the_objective_never_falls_for_any_workers(workers, estimation):
    smoothing = "learn" if estimation == "variational" else (0.1, 1.1)
    model = cs.DawidSkene(workers=workers, estimation=estimation, smoothing=smoothing, tol=0, max_iter=25)
    model.fit(crowd(4, **({"ordered": True, "classes": list("abc")} if workers == "ordinal" else {})))
    assert_never_falls(model.trace_)
    assert np.isfinite(model.posterior_).all()


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_the_objective_never_falls_in_chains_and_fields(estimation):
    options = {"estimation": estimation, "tol": 0, "max_iter": 15, "coupling": 1.0}
    chain = cs.HiddenMarkov(**options, **oracles.PLAIN).fit(crowd(5, sequences=True))
    assert_never_falls(chain.trace_)
    r = crowd(5)
    graph = cs.Graph.from_edges(r.items[:-1], r.items[1:], items=r.items)
    field = cs.MarkovField(**options, **oracles.PLAIN).fit(r, graph=graph)
    assert_never_falls(field.trace_)
    apart = cs.MarkovField(**options | {"coupling": 0.0}, **oracles.PLAIN).fit(r, graph=graph)
    plain = cs.DawidSkene(estimation=estimation, tol=0, max_iter=15, **oracles.PLAIN).fit(r)
    np.testing.assert_allclose(apart.posterior_, plain.posterior_, atol=1e-9)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_weights_of_one_are_no_weights(estimation):
    """By the path of weights: one answer of weight 0.5 is about an item of its own."""
    r = crowd(6, spread=False)
    plain, ones = replace(r, weight=None, share=None), with_weight(r, 1.0)
    models = [cs.DawidSkene(estimation=estimation, tol=0, max_iter=20).fit(each) for each in (plain, ones)]
    np.testing.assert_allclose(models[1].posterior_, models[0].posterior_, atol=1e-9)
    np.testing.assert_allclose(models[1].trace_, models[0].trace_, rtol=1e-12)
    table = {"item": [0, 0, 1], "worker": [0, 1, 0], "label": ["x", "y", "x"], "weight": [1.0, 1.0, 1.0]}
    assert cs.Answers.from_frame(table, weight="weight").weight is None


def test_an_answer_of_next_to_no_weight_is_none():
    r = replace(crowd(7, spread=False), weight=None)
    faint = np.arange(r.n_responses) % 5 == 0
    options = {"tol": 0, "max_iter": 20, **oracles.PLAIN}
    with_all = cs.DawidSkene(**options).fit(replace(r, weight=np.where(faint, 1e-9, 1.0)))
    without = cs.DawidSkene(**options).fit(r.keep(~faint))
    np.testing.assert_allclose(with_all.confusion_, without.confusion_, atol=1e-6)


def test_predictions_and_files_take_the_shares_of_labels_with_them(tmp_path):
    r = crowd(8)
    model = cs.DawidSkene(calibration="none").fit(r)
    some = r.about(np.arange(7))
    model.save(tmp_path / "model")
    for fitted in (model, cs.load(tmp_path / "model")):
        assert np.array_equal(fitted.predict_proba(r), model.posterior_)
        np.testing.assert_allclose(fitted.predict_proba(some), model.posterior_[:7], atol=1e-12)


def test_a_stream_counts_what_was_said_with_care():
    r = crowd(9)
    batches = [r.about(np.arange(0, 30)), r.about(np.arange(30, 60))]
    model = cs.DawidSkene(calibration="none").partial_fit(batches[0])
    first = model.result_.learned
    assert np.array_equal(first.said, batches[0].label_shares())
    model.partial_fit(batches[1])
    earlier, new = first.counts.sum(), batches[1].weight.sum()
    expected = (earlier * first.said + new * batches[1].label_shares()) / (earlier + new)
    np.testing.assert_allclose(model.result_.learned.said, expected, rtol=1e-12)
    assert_never_falls(model.trace_)
    assert np.array_equal(model.predict_proba(batches[1]), model.posterior_)


def test_hidden_answers_are_predicted_with_their_care():
    r = crowd(10)
    answer = np.flatnonzero(np.isin(r.item_of_answer(), [3, 4, 11]))
    chance = np.random.default_rng(0).uniform(0.1, 0.9, len(answer))
    logs = Care.of(r, answer).log_chances(chance)
    votes, said = oracles.densify(r), r.label_shares()
    expected = 0.0
    for i, m in {(int(r.items_of(answer[[n]])[0]), int(r.worker[j])) for n, j in enumerate(answer)}:
        rows = [n for n, j in enumerate(answer) if r.items_of(answer[[n]])[0] == i and r.worker[j] == m]
        total = votes[i, m].sum()
        careful = sum(r.weight[answer[n]] * chance[n] for n in rows)
        expected += np.log(careful + (1 - total) * (votes[i, m] @ said) / total)
    assert logs.sum() == pytest.approx(expected, rel=1e-12)


# --------------------------------------------------------------------------------------------- spread answers


def test_rows_of_an_answer_are_found_wherever_they_stand():
    rng = np.random.default_rng(0)
    r = crowd(11)
    table = {"item": r.items[r.item_of_answer()], "worker": r.worker, "label": r.labels[r.label], "weight": r.weight}
    order = rng.permutation(r.n_responses)
    mixed = cs.Answers.from_frame({name: each[order] for name, each in table.items()}, weight="weight", items=r.items)
    models = [cs.DawidSkene(tol=0, max_iter=15, **oracles.PLAIN).fit(each) for each in (r, mixed)]
    np.testing.assert_allclose(models[1].posterior_, models[0].posterior_, atol=1e-9)


def test_mean_of_duplicates_is_one_answer_that_may_be_any_of_them():
    r = replace(crowd(12, spread=False), weight=None)
    rows = [
        {"item": int(i), "worker": int(m), "label": r.labels[label]}
        for i, m, label in zip(r.item_of_answer(), r.worker, r.label, strict=True)
    ]
    said_again = [row for row in rows if row["item"] % 3 == 0]
    otherwise = [{**row, "label": "a" if row["label"] == "b" else "b"} for row in rows if row["item"] % 3 == 1]

    def read(more):
        every = rows + more
        table = {name: [row[name] for row in every] for name in ("item", "worker", "label")}
        return cs.Answers.from_frame(table, duplicates="mean", items=range(60))

    options = {"tol": 0, "max_iter": 12, **oracles.PLAIN}
    once, twice = (cs.DawidSkene(**options).fit(each) for each in (read([]), read(said_again)))
    np.testing.assert_allclose(twice.posterior_, once.posterior_, atol=1e-9)
    spread = read(otherwise)
    model = cs.DawidSkene(estimation="em", **options).fit(spread)
    posterior, _ = oracles.dense_posterior(oracles.densify(spread), np.log(model.confusion_), np.log(model.prior_))
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------ accuracy


def draw_answers(seed, n_items=1000, n_workers=20, n_classes=2, weight=None):
    """Return answers, four per item, and the truth; of a share 1 - weight the label is drawn at random."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(n_classes, size=n_items), rng.uniform(0.55, 0.95, n_workers)
    item = np.repeat(np.arange(n_items), 4)
    worker = np.concatenate([rng.choice(n_workers, 4, replace=False) for _ in range(n_items)])
    wrong = (truth[item] + rng.integers(1, n_classes, len(item))) % n_classes
    label = np.where(rng.random(len(item)) < skill[worker], truth[item], wrong)
    given = np.full(len(item), 0.5) if weight is None else rng.choice(weight, len(item))
    if weight is not None:
        label = np.where(rng.random(len(item)) < given, label, rng.integers(n_classes, size=len(item)))
    table = {"item": item, "worker": worker, "label": label, "weight": given}
    return cs.Answers.from_frame(table, weight="weight"), truth


def accuracy(model, truth):
    return np.mean(np.asarray(model.labels_) == truth)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_classes_do_not_merge_where_all_weights_are_small(estimation):
    """The power w of a likelihood, inside of the loop, made of these .5 to .7 where the vote has .8."""
    gains = []
    for seed in range(3):
        r, truth = draw_answers(seed)
        model = cs.DawidSkene(estimation=estimation, calibration="none").fit(r)
        gains.append(accuracy(model, truth) - accuracy(cs.MajorityVote().fit(r), truth))
    assert np.mean(gains) > 0.02


def test_true_weights_help():
    gains = []
    for seed in range(3):
        r, truth = draw_answers(seed, n_classes=3, weight=[0.2, 0.5, 1.0])
        known, ignored = (
            cs.DawidSkene(calibration="none").fit(each) for each in (r, replace(r, weight=None, share=None))
        )
        gains.append(accuracy(known, truth) - accuracy(ignored, truth))
    assert np.mean(gains) > 0.02
