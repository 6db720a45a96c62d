"""One-coin workers: one accuracy each, whatever the structure around them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import betaln, digamma

import consilience as cs
from consilience import limits
from consilience.errors import InputError, ParameterError
from consilience.inference.workers import one_coin
from consilience.inference.workers.base import Prior
from consilience.inference.workers.one_coin import OneCoinWorkers
from consilience.inference.workers.rows import shrink_rows
from consilience.results.intervals import inform_coins, informativeness

ESTIMATIONS = ("em", "variational")
SMOOTHING = (0.1, 1.1)


def dense_crowd(seed=0, n_items=60, n_workers=6, n_classes=3, missing=0.3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    accuracy = rng.uniform(0.4, 0.95, n_workers)
    right = rng.random((n_items, n_workers)) < accuracy
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_items, n_workers))) % n_classes
    answers = np.where(right, truth[:, None], wrong)
    answers[rng.random(answers.shape) < missing] = -1
    return answers, truth, accuracy


def slow_fit(answers, class_of_label, n_classes, estimation, n_iter):
    """EM for one-coin workers with a learned prior, written with loops. Returns posterior, accuracies, objectives."""
    n_items, n_workers = answers.shape
    n_labels = len(class_of_label)
    off, diagonal = SMOOTHING
    pseudo = (diagonal, off * (n_labels - 1))
    q = np.zeros((n_items, n_classes))
    for i, m in np.ndindex(answers.shape):
        if answers[i, m] >= 0 and class_of_label[answers[i, m]] >= 0:
            q[i, class_of_label[answers[i, m]]] += 1
    q /= q.sum(axis=1, keepdims=True)
    objectives = []
    for _ in range(n_iter + 1):
        right, wrong = np.zeros(n_workers), np.zeros(n_workers)
        for i, m in np.ndindex(answers.shape):
            for k in range(n_classes):
                if answers[i, m] < 0 or k not in class_of_label:
                    continue
                if class_of_label[answers[i, m]] == k:
                    right[m] += q[i, k]
                else:
                    wrong[m] += q[i, k]
        a, b = right + pseudo[0], wrong + pseudo[1]
        counts = q.sum(axis=0) + off
        if estimation == "em":
            log_right, log_wrong = np.log(a / (a + b)), np.log(b / (a + b))
            log_prior = np.log(counts / counts.sum())
            bound = np.sum(pseudo[0] * log_right + pseudo[1] * log_wrong) + off * log_prior.sum()
        else:
            log_right, log_wrong = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
            log_prior = digamma(counts) - digamma(counts.sum())
            bound = -np.sum(kl_beta(a, b, *pseudo)) - kl_dirichlet(counts, off)
        logs = np.tile(log_prior, (n_items, 1))
        for i, m in np.ndindex(answers.shape):
            for k in range(n_classes):
                if answers[i, m] < 0:
                    continue
                if k not in class_of_label:
                    logs[i, k] -= np.log(n_labels)
                elif class_of_label[answers[i, m]] == k:
                    logs[i, k] += log_right[m]
                else:
                    logs[i, k] += log_wrong[m] - np.log(n_labels - 1)
        top = logs.max(axis=1, keepdims=True)
        normaliser = np.log(np.exp(logs - top).sum(axis=1)) + top[:, 0]
        objectives.append(normaliser.sum() + bound)
        q = np.exp(logs - normaliser[:, None])
    return q, a / (a + b), np.array(objectives)


def kl_beta(a, b, a0, b0):
    moved = (a - a0) * digamma(a) + (b - b0) * digamma(b) + (a0 + b0 - a - b) * digamma(a + b)
    return betaln(a0, b0) - betaln(a, b) + moved


def kl_dirichlet(counts, smoothing):
    from scipy.special import gammaln

    total, prior = counts.sum(), smoothing * len(counts)
    moved = np.sum((counts - smoothing) * (digamma(counts) - digamma(total)))
    return gammaln(total) - gammaln(counts).sum() - gammaln(prior) + len(counts) * gammaln(smoothing) + moved


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("classes", [None, [0, 1], [0, 1, 2, 3]])
def test_fit_is_the_slow_one(estimation, classes):
    """Also where a label names no class, and where a class has no label."""
    answers, *_ = dense_crowd()
    answers = answers[((answers == 0) | (answers == 1)).any(axis=1)]  # every item has a vote for some class
    r = cs.Answers.from_matrix(answers, labels=[0, 1, 2], classes=classes)
    options = {"smoothing": SMOOTHING, "calibration": "none", "tol": 0, "max_iter": 7}
    model = cs.DawidSkene(workers="one-coin", estimation=estimation, **options).fit(r)
    named = np.array([k if k in r.classes.tolist() else -1 for k in range(3)])
    posterior, accuracy, objectives = slow_fit(answers, named, r.n_classes, estimation, 7)
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-10)
    np.testing.assert_allclose(model.trace_, objectives, rtol=1e-10)
    assert (np.diff(model.trace_) > -1e-9 * abs(model.trace_[-1])).all()
    confusion = model.confusion_
    np.testing.assert_allclose(confusion.sum(axis=2), 1)
    for k in range(r.n_classes):
        if k < 3:
            np.testing.assert_allclose(confusion[:, k, k], accuracy)
            others = np.delete(confusion[:, k], k, axis=1)
            np.testing.assert_allclose(others, np.repeat((1 - accuracy)[:, None] / 2, 2, axis=1))
        else:
            np.testing.assert_allclose(confusion[:, k], 1 / 3)


def posed(name):
    """A model with each structure, with answers and graph for it."""
    if name == "HiddenMarkov":
        return cs.HiddenMarkov, cs.simulate.sequences(40, length=12, n_workers=6, n_classes=3, seed=2).responses, None
    if name == "MarkovField":
        crowd = cs.simulate.network(150, n_workers=6, n_classes=3, answers_per_item=4, seed=2)
        return cs.MarkovField, crowd.responses, crowd.graph
    return cs.DawidSkene, cs.simulate.independent(200, 8, 3, answers_per_item=4, spammers=1, seed=2).responses, None


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("name", ["DawidSkene", "HiddenMarkov", "MarkovField"])
def test_with_every_structure(name, estimation, tmp_path):
    kind, r, graph = posed(name)
    model = kind(workers="one-coin", estimation=estimation, calibration="none").fit(r, graph=graph)
    np.testing.assert_array_equal(model.predict_proba(r, graph=graph), model.posterior_)
    diagonal = model.confusion_[:, range(3), range(3)]
    np.testing.assert_allclose(diagonal, diagonal[:, :1] + np.zeros(3))
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model")
    assert again.workers == "one-coin"
    np.testing.assert_array_equal(again.predict_proba(r, graph=graph), model.posterior_)
    assert again.score(r, graph=graph) == model.score(r, graph=graph)
    assert again.worker_report().equals(model.worker_report())


def test_silence_is_refused_with_a_way_out():
    answers = {"item": [1, 2, 3], "worker": ["a", "b", "a"], "label": ["x", "y", "x"]}
    r = cs.Answers.from_frame(answers, abstain="answer", background="x")
    with pytest.raises(ParameterError, match=r"'one-coin' cannot take silence.*Use workers='confusion'"):
        cs.DawidSkene(workers="one-coin").fit(r)


def test_one_label_tells_nothing():
    """With a single label nobody can err: rows are certain, and the prior decides."""
    r = cs.Answers.from_matrix([[0, 0], [0, -1]], labels=["x"], classes=["x", "y"])
    for estimation in ESTIMATIONS:
        model = cs.DawidSkene(workers="one-coin", estimation=estimation).fit(r)
        np.testing.assert_array_equal(model.confusion_, np.ones((2, 2, 1)))
        assert np.isfinite(model.trace_).all()
        assert (np.diff(model.trace_) >= -1e-12).all()
        np.testing.assert_allclose(model.posterior_, np.tile(model.posterior_[0], (2, 1)))


def many_classes(n_classes=300, n_items=400, n_workers=20, seed=0):
    """A crowd with more classes than a worker has answers, and the truth."""
    rng = np.random.default_rng(seed)
    truth, item = rng.integers(n_classes, size=n_items), np.repeat(np.arange(n_items), 3)
    worker = np.concatenate([rng.choice(n_workers, 3, replace=False) for _ in range(n_items)])
    accuracy = np.linspace(0.3, 0.95, n_workers)
    label = np.where(rng.random(len(item)) < accuracy[worker], truth[item], rng.integers(n_classes, size=len(item)))
    return {"item": item, "worker": worker, "label": [f"l{each}" for each in label]}, truth


@pytest.fixture(scope="module")
def fused_many():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fuse(many_classes()[0])


def test_fuse_takes_one_accuracy_where_there_are_many_classes(caplog):
    table, _ = many_classes()
    few = {name: column[:900] for name, column in table.items()}
    with caplog.at_level("INFO", "consilience"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cs.fuse(few).workers == "one-coin"
        assert "each worker has one accuracy instead of a confusion matrix" in caplog.text
        few["label"] = [f"l{int(label[1:]) % 20}" for label in few["label"]]
        assert cs.fuse(few).workers == "confusion"
        few["label"] = [f"l{int(label[1:]) % 40}" for label in table["label"][:900]]
        assert cs.fuse(few).workers == "confusion"  # 45 answers of each worker
        assert cs.fuse(few, workers="one-coin").workers == "one-coin"


def test_no_table_has_an_entry_for_each_label_and_class(fused_many, tmp_path):
    """Neither in the result nor in the file; matrices are made where they are asked for, unless they are too many."""
    model, truth = fused_many, many_classes()[1]
    estimates, n_classes = model.result_.estimates, len(model.classes_)
    arrays = [estimates.confusion, estimates.counts, estimates.log_weights, estimates.crowd, estimates.cells.count]
    assert max(array.size for array in arrays) < 20 * n_classes**2 / 4
    right = np.array([int(label[1:]) for label in model.labels_]) == truth[model.to_frame()["item"].to_numpy()]
    vote = cs.MajorityVote().fit(many_classes()[0])
    assert right.mean() >= np.mean(np.array([int(label[1:]) for label in vote.labels_]) == truth)
    report = model.worker_report().to_pandas()
    assert (report["accuracy_low"] <= report["accuracy"]).all()
    assert np.corrcoef(report["accuracy"], np.linspace(0.3, 0.95, 20))[0, 1] > 0.9
    assert estimates.cells.count.sum() == pytest.approx(1200)
    path = model.save(tmp_path / "model")
    again = cs.load(path)
    assert again.worker_report().equals(model.worker_report())
    np.testing.assert_array_equal(
        again.predict_proba(model.result_.answers), model.predict_proba(model.result_.answers)
    )
    assert again.confusion_.shape == (20, n_classes, n_classes)
    assert path.stat().st_size < 20 * n_classes**2 * 4  # there are three tables of matrices, of 8 bytes each
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(limits.LIMITS, "entries", (1000, 0))
        with pytest.raises(InputError, match=r"20 workers x 2.. labels x 2.. classes would be too large"):
            _ = cs.load(path).confusion_


def test_improbable_classes_are_counted_together(monkeypatch):
    table, _ = many_classes(60, 200)
    exact = cs.DawidSkene(workers="one-coin").fit(table)
    monkeypatch.setattr(one_coin, "MANY_MATRIX_ENTRIES", 0)
    short = cs.DawidSkene(workers="one-coin").fit(table)
    full, part = exact.result_.estimates.cells, short.result_.estimates.cells
    assert len(part.count) < len(full.count) / 2
    assert (part.klass == len(short.classes_)).any()
    np.testing.assert_allclose(part.sum_out(2), full.sum_out(2))
    r = exact.result_.answers
    both = [shrink_rows(each, r.worker, r.label) for each in (full, part)]
    np.testing.assert_allclose(both[0], both[1], rtol=0.2, atol=0.002)
    np.testing.assert_allclose(part.sum_out(1), full.sum_out(1), atol=0.1)
    one, other = (model.worker_report().to_pydict() for model in (exact, short))
    for name in ("answers", "accuracy", "accuracy_low", "accuracy_high", "informativeness", "chance"):
        np.testing.assert_allclose(np.array(one[name], float), np.array(other[name], float), rtol=1e-9)
    assert one["remarks"] == other["remarks"]


def test_of_many_classes_a_tie_is_open(fused_many):
    """With few items of each class, the frequencies of classes hardly decide between two that were said once."""
    r, posterior = fused_many.result_.answers, fused_many.posterior_
    tied = [i for i in range(r.n_items) if len(set(r.label[r.offsets[i] : r.offsets[i + 1]])) == 3]
    assert len(tied) > 20
    assert posterior[tied].max(axis=1).mean() < 0.75
    expected, right = fused_many.result_.labels.mean_confidence, many_classes()[1]
    told = np.array([int(label[1:]) for label in fused_many.labels_]) == right[r.items.astype(int)]
    assert abs(expected - told.mean()) < 0.06


def test_informativeness_is_that_of_the_matrix():
    rng = np.random.default_rng(0)
    for class_of_label, n_classes in ((np.arange(4), 4), (np.array([0, 1, -1]), 2), (np.array([0, 1]), 3)):
        prior, accuracy = rng.dirichlet(np.ones(n_classes)), rng.random(5)
        chances = np.stack([accuracy, (1 - accuracy) / (len(class_of_label) - 1), np.full(5, 1 / len(class_of_label))])
        further = {"_class_of_label": class_of_label.astype(float)}
        matrices = OneCoinWorkers.matrices(chances.T[:, None], further, n_classes)
        np.testing.assert_allclose(matrices.sum(axis=2), 1)
        found = inform_coins(accuracy, prior, class_of_label)
        np.testing.assert_allclose(found, informativeness(matrices, prior), atol=1e-12)


def test_array_smoothing_is_that_of_one_row():
    """A matrix of pseudo-counts stands for the mean over classes of right and of wrong ones."""
    r = cs.Answers.from_matrix([[0, 1, 2]])
    workers = OneCoinWorkers.of(r, r.class_of_label, 3)
    matrix = np.array([[5.0, 1, 1], [2, 7, 2], [1, 1, 9]])  # [label, class]
    prior = workers.prior(matrix[None], "em", r.vote_shares())
    assert isinstance(prior, Prior)
    np.testing.assert_allclose(prior.smoothing.ravel(), [21 / 3, 8 / 3])
