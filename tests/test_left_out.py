"""Posteriors from counts without the item itself: fast code beside loops that leave each item out."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
import oracles
from consilience.answers.answers import cut_blocks
from consilience.inference.workers import WORKERS

N_CLASSES = 3


def crowd(weighted=False, lengths=None):
    answers, *_ = oracles.simulate(7, n_items=24, n_workers=5, n_classes=N_CLASSES, n_labels=4, share=0.5)
    labels = ["a", "b", "c", "unsure"]
    if not weighted:
        return cs.Answers.from_matrix(answers, labels=labels, classes=labels[:3], lengths=lengths)
    rng = np.random.default_rng(1)
    columns = {"item": [], "worker": [], "label": [], "weight": []}
    for (item, worker), label in np.ndenumerate(answers):
        if label >= 0:
            weight = rng.uniform(0.2, 1.0)
            for each, share in ((label, 0.7), ((label + 1) % 4, 0.3)):
                for name, value in zip(columns, (item, worker, labels[each], share * weight), strict=True):
                    columns[name].append(value)
    return cs.Answers.from_frame(columns, weight="weight", classes=labels[:3])


def set_up(kind, r, seed=0):
    """Return worker model, prior, posteriors at random, and the counts that they make."""
    workers = WORKERS[kind].of(r, r.class_of_label, r.n_classes)
    posterior = np.random.default_rng(seed).dirichlet(np.ones(r.n_classes), r.n_items)
    smoothing = np.where(np.arange(r.n_labels)[:, None] == np.arange(r.n_classes), 1.3, 0.2)[None]
    prior = workers.prior(smoothing, "variational", r.vote_shares())
    return workers, prior, posterior, count(r, workers, posterior)


def count(r, workers, posterior):
    counts = np.zeros(workers.table_shape)
    for j, row in enumerate(workers.encode(r)):
        q = r.weights()[j] * posterior[r.item_of_answer()[j]]
        if workers.name == "one-coin":
            klass = r.class_of_label[r.label[j]]
            right = q[klass] if klass >= 0 else 0.0
            counts[3 * r.worker[j] : 3 * r.worker[j] + 2, 0] += right, q.sum() - right
        else:
            counts[row] += q
    if workers.silent:
        workers.count_silence(counts, posterior.sum(axis=0))
    return counts


def fast(r, workers, prior, posterior, counts):
    counted = workers.counted(counts, prior)
    blocks = cut_blocks(r, workers.encode(r), workers.n_rows)
    parts = (posterior[b.first_item : b.first_item + b.n_items] for b in blocks)
    return np.concatenate([counted.log_evidence(b, part) for b, part in zip(blocks, parts, strict=True)])


@pytest.mark.parametrize("kind", ["confusion", "one-coin"])
def test_each_item_is_judged_by_matrices_without_it(kind):
    """The counts are made again without the item; the mean matrices of what is left judge its answers."""
    r = crowd()
    workers, prior, posterior, counts = set_up(kind, r)
    found = fast(r, workers, prior, posterior, counts)
    for i in range(r.n_items):
        without = posterior.copy()
        without[i] = 0.0
        left = count(r, workers, without)
        matrices = workers.update(left, prior).mean
        expected = np.zeros(N_CLASSES)
        for j in range(r.offsets[i], r.offsets[i + 1]):
            expected += np.log(workers.predict(matrices, r.worker[[j]], r.label[[j]])[0])
        np.testing.assert_allclose(found[i], expected, rtol=1e-10)


def test_answers_with_weights_are_left_out_as_far_as_they_count():
    r = crowd(weighted=True)
    workers, prior, posterior, counts = set_up("confusion", r)
    found = fast(r, workers, prior, posterior, counts)
    total = counts.reshape(r.n_workers, r.n_labels, N_CLASSES) + prior.smoothing
    votes = oracles.densify(r)
    for i in range(r.n_items):
        expected = np.zeros(N_CLASSES)
        for m, label in np.argwhere(votes[i]):
            own = votes[i, m, label] * posterior[i]
            judged = (total[m, label] - own) / (total[m].sum(axis=0) - own)
            expected += votes[i, m, label] * np.log(judged)
        np.testing.assert_allclose(found[i], expected, rtol=1e-10)


def test_sequential_workers_leave_out_what_follows_the_same_answer():
    r = crowd(lengths=[12, 12])
    workers, prior, posterior, counts = set_up("sequential", r)
    found = fast(r, workers, prior, posterior, counts)
    backed = workers._backed(counts, prior).reshape(-1, N_CLASSES)
    total = counts + backed
    rows = workers.encode(r)
    for i in range(r.n_items):
        expected = np.zeros(N_CLASSES)
        for j in range(r.offsets[i], r.offsets[i + 1]):
            group = rows[j] // r.n_labels * r.n_labels + np.arange(r.n_labels)
            expected += np.log((total[rows[j]] - posterior[i]) / (total[group].sum(axis=0) - posterior[i]))
        np.testing.assert_allclose(found[i], expected, rtol=1e-10)


@pytest.mark.parametrize("least", [0, 1])
def test_silence_is_left_out_too(least):
    """With silence as an answer, every worker has answered every item; also where they are hardly ever silent."""
    answers, *_ = oracles.simulate(8, n_items=40, n_workers=6, n_classes=N_CLASSES, share=0.4 if least else 0.97)
    columns = {"item": [], "worker": [], "label": []}
    for (item, worker), label in np.ndenumerate(answers):
        if label >= least:
            for name, value in zip(columns, (item, worker, "xyz"[label]), strict=True):
                columns[name].append(value)
    r = cs.Answers.from_frame(columns, classes=list("xyz"), items=range(40), abstain="answer", background="x")
    workers, prior, posterior, counts = set_up("confusion", r)
    found = fast(r, workers, prior, posterior, counts)
    votes = oracles.densify(r)
    said = np.concatenate([votes, 1 - votes.sum(axis=2, keepdims=True)], axis=2)
    total = np.einsum("iml,ik->mlk", said, posterior) + prior.smoothing
    for i in range(r.n_items):
        left = total - said[i][:, :, None] * posterior[i]
        expected = np.einsum("ml,mlk->k", said[i], np.log(left / left.sum(axis=1, keepdims=True)))
        np.testing.assert_allclose(found[i], expected, atol=2e-3)  # silence is interpolated


def test_many_answers_to_one_item():
    """More than are multiplied before the logarithm is taken, by quotients of very unequal counts."""
    rng = np.random.default_rng(0)
    r = cs.Answers.from_matrix(rng.integers(0, 2, (3, 200)))
    workers = WORKERS["confusion"].of(r, r.class_of_label, 2)
    posterior = np.array([[1.0, 0.0], [0.3, 0.7], [1e-9, 1 - 1e-9]])
    counts = 10.0 ** rng.uniform(-11, 7, (workers.n_rows, 2))
    prior = workers.prior(np.full((1, 2, 2), 1e-12), "em", r.vote_shares())
    found = fast(r, workers, prior, posterior, counts)
    total = counts.reshape(200, 2, 2) + 1e-12
    for i in range(3):
        said = r.label[r.offsets[i] : r.offsets[i + 1]]
        above = np.maximum(total[np.arange(200), said] - posterior[i], 1e-12)
        below = np.maximum(total.sum(axis=1) - posterior[i], 1e-12)
        np.testing.assert_allclose(found[i], np.log(above / below).sum(axis=0), rtol=1e-10)
