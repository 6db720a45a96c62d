"""Sequential workers: rows against a slow twin, what they learn of workers who repeat themselves, and their report."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.inference.structures import Independent
from consilience.inference.workers.sequential import BACK_OFF, SequentialWorkers, previous_answers
from effort import examples
from test_chain import crowd_of_sequences, plain_workers, pose


def sequential_workers(r):
    return SequentialWorkers(r.n_workers, r.class_of_label, r.n_classes)


def slow_previous(r):
    owner, item = r.sequences.of_items(), r.item_of_answer()
    found = []
    for j in range(r.n_responses):
        label = r.n_labels
        for i in range(r.n_responses):
            if r.worker[i] == r.worker[j] and item[i] == item[j] - 1 and owner[item[i]] == owner[item[j]]:
                label = r.label[i]  # the last, if there are several
        found.append(label)
    return np.array(found)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 6), min_size=1, max_size=5), st.booleans())
@examples(40)
def test_previous_answers(seed, lengths, spread):
    rng = np.random.default_rng(seed)
    rows = []
    for s, length in enumerate(lengths):
        for t, w in np.ndindex(length, 3):
            if rng.random() < 0.6 or not rows:
                first = int(rng.integers(3))
                rows.append((s, t, w, first, 0.5 if spread else 1.0))
                if spread and rng.random() < 0.5:
                    rows.append((s, t, w, (first + 1) % 3, 0.4))
    columns = dict(zip(("sequence", "position", "worker", "label", "weight"), zip(*rows, strict=True), strict=True))
    items = [(s, t) for s, length in enumerate(lengths) for t in range(length)]
    r = cs.Answers.from_frame(columns, weight="weight", items=items)
    expected = slow_previous(r)
    np.testing.assert_array_equal(previous_answers(r), expected)
    workers = sequential_workers(r)
    rows = (r.worker.astype(int) * (r.n_labels + 1) + expected) * r.n_labels + r.label
    np.testing.assert_array_equal(workers.encode(r), rows)
    assert rows.max() < workers.n_rows


def test_counts_and_estimates_are_the_slow_ones():
    lengths = [8, 1, 13]
    answers, *_ = crowd_of_sequences(1, lengths)
    r = cs.Answers.from_matrix(answers, lengths=lengths, labels=[0, 1, 2])
    workers, plain = sequential_workers(r), plain_workers(r)
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), (r.n_workers, 3))
    structure = Independent(3, None, 0.1, "em")
    statistics = []
    prior = pose(r, workers, structure).prior
    for kind in (workers, plain):
        problem = pose(r, kind, structure)
        start = problem.maximise(expect_votes(problem))._replace(workers=kind.given(confusion))
        statistics.append(problem.expect(start))
    ours, theirs = statistics
    # Plain matrices, whatever was said before, are plain workers.
    assert ours.summary.log_normaliser == pytest.approx(theirs.summary.log_normaliser, rel=1e-13)
    np.testing.assert_allclose(ours.summary.mass, theirs.summary.mass, rtol=1e-13)
    np.testing.assert_allclose(workers.plain_counts(ours.counts), plain.plain_counts(theirs.counts), atol=1e-12)
    np.testing.assert_allclose(workers.crowd(ours.counts, prior), plain.crowd(theirs.counts, prior))
    # Each row's pseudo-counts: the settings' and BACK_OFF answers in the worker's own proportions.
    counts = ours.counts.reshape(r.n_workers, 4, 3, 3)
    own = counts.sum(axis=1) + 0.5
    own /= own.sum(axis=1, keepdims=True)
    expected = counts + 0.5 + BACK_OFF * own[:, None]
    expected /= expected.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(workers.update(ours.counts, prior).mean.reshape(expected.shape), expected)


def expect_votes(problem):
    from consilience.inference.em import expect_from_votes

    return expect_from_votes(problem)


# ----------------------------------------------------------------------------------------------------------- recovery


def sticky_crowd(seed=0, n_sequences=150, length=20, n_workers=6, repeat=0.5, sticky=(0, 1, 2)):
    """Chains, answered by workers of whom some repeat their previous answer with probability `repeat`."""
    rng = np.random.default_rng(seed)
    n_classes, n = 3, n_sequences * length
    confusion = np.full((n_workers, n_classes, n_classes), 0.15)
    confusion[:, np.arange(3), np.arange(3)] = 0.7
    transition = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    truth, answers = np.empty(n, int), np.empty((n, n_workers), int)
    for i in range(n):
        first = i % length == 0
        truth[i] = rng.integers(3) if first else rng.choice(3, p=transition[truth[i - 1]])
        for m in range(n_workers):
            if not first and m in sticky and rng.random() < repeat:
                answers[i, m] = answers[i - 1, m]
            else:
                answers[i, m] = rng.choice(3, p=confusion[m, truth[i]])
    expected = np.repeat(confusion[:, None], 4, axis=1)
    for m in sticky:
        expected[m, :3] = (1 - repeat) * confusion[m] + repeat * np.eye(3)[:, None, :]
    return cs.Answers.from_matrix(answers, lengths=[length] * n_sequences), truth, expected


def test_workers_who_repeat_themselves():
    r, truth, expected = sticky_crowd()
    for model in (cs.HiddenMarkov(coupling=1.0, workers="sequential"), cs.DawidSkene(workers="sequential")):
        model.fit(r)
        assert model.sequential_confusion_.shape == (6, 4, 3, 3)
        assert model.confusion_.shape == (6, 3, 3)
        np.testing.assert_allclose(model.sequential_confusion_.sum(axis=3), 1)
        np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)
        rival = type(model)(**{**model.get_params(), "workers": "confusion"}).fit(r)
        accuracy, plain = (np.mean(m.labels_ == truth) for m in (model, rival))
        # Where the truth is a chain, a plain worker's previous answer is news to who knows no chain.
        assert accuracy > plain + 0.03 or isinstance(model, cs.DawidSkene), (accuracy, plain)
        error = np.abs(model.sequential_confusion_[:, :3] - expected[:, :3]).mean()
        assert error < 0.05, error
        report = model.worker_report()
        dependence = np.array(report["dependence"])
        assert dependence[:3].min() > 0.25
        assert dependence[3:].max() < 0.08
    r, truth, _ = sticky_crowd(sticky=range(6), repeat=0.7)
    accuracy, plain = (np.mean(cs.DawidSkene(workers=w).fit(r).labels_ == truth) for w in ("sequential", "confusion"))
    assert accuracy > plain + 0.03
    assert "dependence" not in rival.worker_report().column_names


def test_predicting_with_other_workers_and_fewer_labels(tmp_path):
    r, *_ = sticky_crowd(1, n_sequences=40)
    model = cs.DawidSkene(workers="sequential", calibration="none").fit(r)
    model.save(tmp_path / "model")
    matrix = np.full((r.n_items, r.n_workers), -1)
    matrix[r.item_of_answer(), r.worker] = r.label
    part = cs.Answers.from_matrix(matrix[:20, [4, 1]], lengths=[20], workers=[4, 1])
    expected = model.predict_proba(part)
    np.testing.assert_array_equal(cs.load(tmp_path / "model").predict_proba(part), expected)
    # By hand: evidence from the tables by previous answer.
    logs = np.tile(np.log(model.result_.estimates.structure.weights), (20, 1))
    table = model.result_.estimates.log_weights.reshape(6, 4, 3, 3)
    for i, w in itertools.product(range(20), (4, 1)):
        before = 3 if i == 0 else matrix[i - 1, w]
        logs[i] += table[w, before, matrix[i, w]]
    by_hand = np.exp(logs - logs.max(axis=1, keepdims=True))
    np.testing.assert_allclose(expected, by_hand / by_hand.sum(axis=1, keepdims=True), atol=1e-10)
    few = np.flatnonzero((matrix[:, :2] < 2).all(axis=1))[:3]
    fewer = cs.Answers.from_matrix(matrix[few, :2], lengths=[1] * len(few))
    assert fewer.n_labels <= 2
    assert model.predict_proba(fewer).shape == (len(few), 3)
    with pytest.warns(cs.errors.DataWarning, match="were not there at the fit"):
        stranger = model.predict_proba(cs.Answers.from_matrix(matrix[:20, :1], lengths=[20], workers=["new"]))
    assert np.isfinite(stranger).all()
