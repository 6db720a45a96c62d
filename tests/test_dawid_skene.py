"""Dawid and Skene's model against enumeration, a dense twin, another library, published numbers, and its guarantees."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
import oracles
from consilience.answers import answers as blocks
from consilience.errors import ConvergenceWarning, DataWarning, InputError
from consilience.inference.hidden_answers import raise_to
from effort import examples

ESTIMATIONS = ["em", "variational"]


def responses_of(answers, **options):
    return cs.Answers.from_matrix(answers, **options)


def dawid_skene(**parameters):
    """Return the model that the twins are of."""
    return cs.DawidSkene(**oracles.PLAIN | parameters)


def weighted_responses(answers, seed=0):
    """Give each answer a weight, and spread some over two labels."""
    rng = np.random.default_rng(seed)
    rows = []
    for i, m in np.argwhere(answers >= 0):
        label, w = int(answers[i, m]), float(rng.uniform(0.05, 1))
        rows.append((i, m, label, w))
        if rng.random() < 0.3:
            other = (label + 1) % (answers.max() + 1)
            if other != label:
                rows.append((i, m, other, (1 - w) * 0.9 + 1e-3 * w * (1 - w)))
    item, worker, label, weight = zip(*[row for row in rows if row[3] > 0], strict=True)
    frame = {"item": item, "worker": worker, "label": label, "weight": weight}
    return cs.Answers.from_frame(frame, weight="weight")


def gold_codes(r, gold):
    """Return gold {item: class} as class codes of all items, for the twins."""
    codes = np.full(r.n_items, -1)
    for item, label in (gold or {}).items():
        codes[r.items.tolist().index(item)] = r.classes.tolist().index(label)
    return codes


def twin_of(model, r, n_iter, gold=None):
    return oracles.fit_dense(
        oracles.densify(r),
        r.class_of_label,
        r.n_classes,
        n_iter=n_iter,
        estimation=model.estimation,
        smoothing=model.smoothing,
        prior=model.prior,
        gold=gold_codes(r, gold),
    )


def assert_like_twin(model, twin, tolerance=1e-10):
    np.testing.assert_allclose(model.posterior_, twin.posterior, rtol=0, atol=tolerance)
    np.testing.assert_allclose(model.confusion_, twin.confusion, rtol=0, atol=tolerance)
    np.testing.assert_allclose(model.prior_, twin.prior, rtol=0, atol=tolerance)
    np.testing.assert_allclose(model.trace_, twin.trace, rtol=1e-10, atol=1e-8)


def assert_never_falls(trace):
    # Rounding is in proportion to the objective's size.
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-10 * (1 + np.abs(trace[1:]))).all(), np.diff(trace).min()


# ---------------------------------------------------------------------------------------------------- the dense twin


@pytest.mark.parametrize("n_iter", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_each_iteration_is_the_twins(estimation, n_iter):
    r = responses_of(oracles.simulate(1, n_items=80, n_workers=7, n_classes=3)[0])
    model = dawid_skene(estimation=estimation, tol=0, max_iter=n_iter).fit(r)
    assert model.n_iter_ == n_iter
    assert_like_twin(model, twin_of(model, r, n_iter))


PER_WORKER = np.random.default_rng(3).uniform(0.2, 2, (7, 3, 3))


@pytest.mark.parametrize(
    ("estimation", "smoothing"),
    [
        ("em", 0),
        ("em", (0, 1)),
        *itertools.product(
            ESTIMATIONS,
            [0.01, 2, (0.1, 1.1), [[3, 1, 1], [0.5, 2, 0.5], [0.1, 0.2, 0.3]], PER_WORKER[0], PER_WORKER],
        ),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_smoothing(estimation, smoothing, known):
    r = responses_of(oracles.simulate(2, n_items=60, n_workers=7, n_classes=3)[0])
    gold = {0: 2, 7: 0, 8: 1} if known else None
    model = dawid_skene(estimation=estimation, smoothing=smoothing, tol=0, max_iter=12).fit(r, gold=gold)
    assert_like_twin(model, twin_of(model, r, 12, gold))
    assert_never_falls(model.trace_)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("prior", ["learn", "uniform", [0.2, 0.5, 0.3], np.array([0.9, 0.05, 0.05]), (0.5, 0.5, 0.0)])
def test_prior(estimation, prior):
    r = responses_of(oracles.simulate(3, n_items=60, n_classes=3)[0])
    model = dawid_skene(estimation=estimation, prior=prior, tol=0, max_iter=9).fit(r)
    assert_like_twin(model, twin_of(model, r, 9))
    assert_never_falls(model.trace_)
    if not isinstance(prior, str):
        np.testing.assert_allclose(model.prior_, prior)
        assert model.posterior_[:, np.array(prior) == 0].max(initial=0) == 0
    elif prior == "uniform":
        assert (model.prior_ == 1 / 3).all()


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_labels_that_are_no_classes_and_classes_nobody_said(estimation):
    answers, *_ = oracles.simulate(6, n_items=70, n_classes=3, n_labels=4, skill=(0.4, 0.8))
    names = np.array(["a", "b", "c", "unsure"])
    r = responses_of(answers, labels=names, classes=["never", "c", "a", "b"])
    assert r.n_labels == r.n_classes == 4
    model = dawid_skene(estimation=estimation, tol=0, max_iter=11).fit(r)
    assert_like_twin(model, twin_of(model, r, 11))
    assert model.confusion_.shape == (r.n_workers, 4, 4)
    assert "unsure" not in model.labels_
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)


def test_soft_votes_with_tiny_probabilities():
    """A vote of 1e-40, as a softmax gives it, says next to nothing: it must not rule a class out."""
    answers, *_ = oracles.simulate(7, n_items=40, n_classes=2, skill=(0.7, 0.9), share=1.0)
    votes = np.where(answers[:, :, None] == np.arange(2), 1 - 1e-40, 1e-40)
    r = cs.Answers.from_probabilities(votes)
    for options in ({"estimation": "em", "smoothing": 0}, {"estimation": "em"}, {}):
        soft = dawid_skene(tol=0, max_iter=20, **options).fit(r)
        hard = dawid_skene(tol=0, max_iter=20, **options).fit(responses_of(answers))
        np.testing.assert_allclose(soft.posterior_, hard.posterior_, atol=1e-8)


# -------------------------------------------------------------------------------------------------------- enumeration


SMALL = [
    {"n_items": 5, "n_workers": 3, "n_classes": 2},
    {"n_items": 4, "n_workers": 4, "n_classes": 3, "share": 0.5},
    {"n_items": 6, "n_workers": 1, "n_classes": 2},
]


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_posterior_is_enumerations(size, known, weighted):
    answers = oracles.simulate(8, **size)[0]
    r = weighted_responses(answers) if weighted else responses_of(answers)
    gold = {int(r.items[0]): r.classes[-1]} if known else None
    model = dawid_skene(estimation="em", tol=0, max_iter=3).fit(r, gold=gold)
    votes = oracles.densify(r)
    marginals, log_likelihood = oracles.enumerate_posterior(
        votes, model.confusion_, model.prior_, gold_codes(r, gold) if known else None
    )
    np.testing.assert_allclose(model.posterior_, marginals, atol=1e-12)
    assert model.score(r, gold=gold) == pytest.approx(log_likelihood / r.n_items, rel=1e-12)
    pseudo = oracles.smoothing_table(model.smoothing, r.class_of_label, r.n_classes, r.n_workers)
    penalty = np.sum(pseudo * np.log(model.confusion_)) + 0.1 * np.log(model.prior_).sum()
    assert model.trace_[-1] == pytest.approx(log_likelihood + penalty, rel=1e-12)


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("n_iter", [1, 4, 60])
def test_bound_is_its_definition(size, n_iter):
    """trace_[-1] == E_q[log p(answers, y, theta)] + H(q), and no more than log p(answers)."""
    r = responses_of(oracles.simulate(9, **size)[0])
    before = dawid_skene(tol=0, max_iter=n_iter).fit(r)
    votes = oracles.densify(r)
    pseudo = oracles.smoothing_table(before.smoothing, r.class_of_label, r.n_classes, r.n_workers)
    prior_pseudo = np.full(r.n_classes, 0.1)
    # One more M-step from the posterior gives the q(theta) that the next entry of the trace belongs to.
    after = dawid_skene(tol=0, max_iter=n_iter + 1).fit(r)
    dirichlet = pseudo + np.einsum("iml,ik->mkl", votes, before.posterior_)
    prior_dirichlet = prior_pseudo + before.posterior_.sum(axis=0)
    np.testing.assert_allclose(after.confusion_, dirichlet / dirichlet.sum(axis=2, keepdims=True), rtol=1e-12)
    bound = oracles.evidence_lower_bound(votes, after.posterior_, pseudo, prior_pseudo, dirichlet, prior_dirichlet)
    assert after.trace_[-1] == pytest.approx(bound, rel=1e-11)
    assert after.trace_[-1] <= oracles.log_evidence_of_answers(votes, pseudo, prior_pseudo)


# ----------------------------------------------------------------------------------------------------- other libraries


# Dawid and Skene (1979), Table 1: 45 patients, seen three times by the first observer and once by the other four.
ANAESTHETISTS = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 1211111
1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 1111111 1121121
1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""


def test_anaesthetists():
    """The estimates that Dawid and Skene published, to the two decimals they print."""
    label = np.array([int(answer) - 1 for patient in ANAESTHETISTS.split() for answer in patient], np.int32)
    worker = np.tile([0, 0, 0, 1, 2, 3, 4], 45).astype(np.int32)
    names = np.arange(1, 5)
    # One observer has three answers about each patient, which no table of answers may have.
    r = cs.Answers(np.arange(0, 316, 7), worker, label, None, np.arange(1, 6), names, names, np.arange(1, 46))
    model = dawid_skene(estimation="em", smoothing=0, tol=0, max_iter=300).fit(r)
    assert model.prior_.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]
    assert model.confusion_[0].round(2).tolist() == [
        [0.89, 0.11, 0, 0],
        [0.07, 0.88, 0.05, 0],
        [0, 0.34, 0.66, 0],
        [0, 0, 0.56, 0.44],
    ]
    assert_never_falls(model.trace_)


# --------------------------------------------------------------------------------------------------------- guarantees


@st.composite
def problems(draw):
    """Return (responses, gold, settings) of a small crowd of any kind: missing answers, weights, odd classes."""
    n_classes = draw(st.integers(1, 4))
    n_labels = draw(st.integers(n_classes, 4))
    answers, *_ = oracles.simulate(
        draw(st.integers(0, 10_000)),
        n_items=draw(st.integers(1, 12)),
        n_workers=draw(st.integers(1, 5)),
        n_classes=n_classes,
        n_labels=n_labels,
        share=draw(st.sampled_from([0.0, 0.5, 1.0])),
        skill=draw(st.sampled_from([(0.0, 0.2), (0.3, 0.6), (0.8, 1.0)])),
        spread=draw(st.sampled_from([0.2, 5.0])),
    )
    if draw(st.booleans()):
        r = weighted_responses(answers, seed=draw(st.integers(0, 100)))
    else:
        classes = np.unique(answers[answers >= 0]).tolist()
        if draw(st.booleans()):
            classes.append(99)  # a class that nobody said
        if len(classes) > 1 and draw(st.booleans()):
            classes = classes[1:]  # a label that is no class
        if 99 in classes and len(classes) == 1:
            classes = None
        r = responses_of(answers, classes=classes)
    gold = draw(st.dictionaries(st.sampled_from(r.items.tolist()), st.sampled_from(r.classes.tolist()), max_size=3))
    estimation = draw(st.sampled_from(ESTIMATIONS))
    smoothing = [0.001, 0.1, 1.5, (0.1, 1.1), (0.01, 5.0)]
    options = {
        "estimation": estimation,
        "smoothing": draw(st.sampled_from([0, (0, 1), *smoothing] if estimation == "em" else smoothing)),
        "prior": draw(st.sampled_from(["learn", "uniform"])),
    }
    return r, gold or None, options


@examples(150)
@given(problem=problems())
def test_objective_never_falls_and_fit_is_predict(problem):
    r, gold, options = problem
    model = dawid_skene(**options, tol=0, max_iter=25).fit(r, gold=gold)
    assert_never_falls(model.trace_)
    assert len(model.trace_) == 26
    for array in (model.posterior_, model.prior_, model.confusion_):
        assert np.isfinite(array).all()
        assert (array >= 0).all()
        np.testing.assert_allclose(array.sum(axis=-1), 1, rtol=1e-9)
    assert np.array_equal(model.posterior_, model.predict_proba(r, gold=gold))
    assert np.array_equal(model.labels_, model.predict(r, gold=gold))
    known = gold_codes(r, gold)
    assert (model.posterior_[known >= 0, known[known >= 0]] == 1).all()
    assert np.isfinite(model.score(r, gold=gold))


def test_tolerance_and_iterations():
    r = responses_of(oracles.simulate(14, n_items=100)[0])
    model = dawid_skene(tol=1e-7).fit(r)
    assert model.converged_
    assert len(model.trace_) == model.n_iter_ + 1
    gains = np.diff(model.trace_) / r.n_responses
    assert gains[-1] < 1e-7
    assert (gains[:-1] >= 1e-7).all()

    exact = dawid_skene(tol=0, max_iter=model.n_iter_ + 50).fit(r)
    assert exact.n_iter_ == model.n_iter_ + 50
    assert not exact.converged_

    with pytest.warns(ConvergenceWarning, match="3 iterations before it settled. Allow more with max_iter=6"):
        stopped = dawid_skene(tol=1e-7, max_iter=3).fit(r)
    assert stopped.n_iter_ == 3
    assert not stopped.converged_


def test_callback_sees_every_iteration():
    r = responses_of(oracles.simulate(15)[0])
    seen = []
    model = dawid_skene(tol=0, max_iter=6, callback=seen.append).fit(r)
    assert [step.iteration for step in seen] == [1, 2, 3, 4, 5, 6]
    assert {step.max_iter for step in seen} == {6}
    assert [step.objective for step in seen] == model.trace_[:-1].tolist()
    assert seen[0].gain == np.inf
    np.testing.assert_allclose([step.gain for step in seen[1:]], np.diff(model.trace_)[:-1] / r.n_responses)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_same_seed_same_bits(estimation):
    r = responses_of(oracles.simulate(16, skill=(0.3, 0.6))[0])
    settings_ = {"estimation": estimation, "n_init": 4, "max_iter": 500}
    first, second = (dawid_skene(seed=5, **settings_).fit(r) for _ in range(2))
    other = dawid_skene(seed=6, **settings_).fit(r)
    assert np.array_equal(first.posterior_, second.posterior_)
    assert all(
        np.array_equal(first.result_.course.starts[name], second.result_.course.starts[name])
        for name in first.result_.course.starts
    )
    assert not np.array_equal(first.result_.course.starts["random 1"], other.result_.course.starts["random 1"])


# ------------------------------------------------------------------------------------------------------- equivariance


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_renaming_and_reordering(estimation, weighted, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 64)
    answers, truth, *_ = oracles.simulate(17, n_items=90, n_workers=6, n_classes=4, share=0.6)
    rng = np.random.default_rng(0)
    item, worker = np.nonzero(answers >= 0)
    label = answers[item, worker]
    weight = rng.uniform(0.2, 1, len(item)) if weighted else np.ones(len(item))

    def fit(items, workers, labels, order):
        frame = {
            "item": [items[i] for i in item[order]],
            "worker": [workers[m] for m in worker[order]],
            "label": [labels[k] for k in label[order]],
            "weight": weight[order],
        }
        gold = {items[i]: labels[int(truth[i])] for i in (3, 30, 60)}
        r = cs.Answers.from_frame(frame, weight="weight")
        return dawid_skene(estimation=estimation, tol=0, max_iter=30).fit(r, gold=gold), r

    plain, r = fit(list(range(90)), list(range(6)), list(range(4)), np.arange(len(item)))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        items = [f"item {i}" for i in rng.permutation(90)]
        workers = [f"worker {m}" for m in rng.permutation(6)]
        labels = ["wxyz"[k] for k in rng.permutation(4)]
        renamed, q = fit(items, workers, labels, rng.permutation(len(item)))
        i = [q.items.tolist().index(items[x]) for x in r.items]
        m = [q.workers.tolist().index(workers[x]) for x in r.workers]
        k = [q.classes.tolist().index(labels[x]) for x in r.classes]
        np.testing.assert_allclose(renamed.posterior_[i][:, k], plain.posterior_, atol=1e-9)
        np.testing.assert_allclose(renamed.confusion_[m][:, k][:, :, k], plain.confusion_, atol=1e-9)
        np.testing.assert_allclose(renamed.prior_[k], plain.prior_, atol=1e-9)
        np.testing.assert_allclose(renamed.trace_, plain.trace_, rtol=1e-10)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("size", [1, 7, 40, 333])
def test_splitting_into_blocks(estimation, size, monkeypatch):
    r = responses_of(oracles.simulate(19, n_items=120, share=0.5)[0])
    whole = dawid_skene(estimation=estimation, tol=0, max_iter=40).fit(r)
    monkeypatch.setattr(blocks, "BLOCK_SIZE", size)
    split = dawid_skene(estimation=estimation, tol=0, max_iter=40).fit(r)
    np.testing.assert_allclose(split.posterior_, whole.posterior_, atol=1e-9)
    np.testing.assert_allclose(split.confusion_, whole.confusion_, atol=1e-9)
    np.testing.assert_allclose(split.trace_, whole.trace_, rtol=1e-11)


# ----------------------------------------------------------------------------------------------------------- recovery


# ------------------------------------------------------------------------------------------------------------- starts


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_start_from_matrices(estimation):
    """The posteriors that the matrices lead to are where the loop begins."""
    answers, _, _, confusion = oracles.simulate(22, n_items=60)
    r = responses_of(answers)
    votes = oracles.densify(r)
    shares = oracles.vote_shares(votes, r.class_of_label, 3)
    model = dawid_skene(estimation=estimation, start=confusion, tol=0, max_iter=5).fit(r)
    by_vote = oracles.fit_dense(votes, r.class_of_label, 3, n_iter=0, estimation=estimation, start=shares)
    start, _ = oracles.dense_posterior(votes, np.log(confusion), by_vote.log_prior)
    twin = oracles.fit_dense(votes, r.class_of_label, 3, n_iter=5, estimation=estimation, start=start)
    assert_like_twin(model, twin)
    # One matrix for all workers will do, and lists as well.
    for start in (confusion[0], confusion[0].tolist()):
        shared = dawid_skene(estimation=estimation, start=start, tol=0, max_iter=5).fit(r)
        every = dawid_skene(estimation=estimation, start=np.stack([confusion[0]] * 6), tol=0, max_iter=5).fit(r)
        assert np.array_equal(shared.posterior_, every.posterior_)


def test_start_from_a_fitted_model():
    answers, *_ = oracles.simulate(25, n_items=150)
    r = responses_of(answers)
    first = dawid_skene(tol=1e-12, max_iter=2000).fit(r)
    again = dawid_skene(tol=1e-9, start=first).fit(r)
    assert again.n_iter_ < first.n_iter_ / 2
    np.testing.assert_allclose(again.posterior_, first.posterior_, atol=1e-2)
    assert list(again.result_.course.starts) == ["model"]
    # Workers that the model does not know start from the vote.
    part = dawid_skene().fit(responses_of(answers[:, :3]))
    more = dawid_skene(start=part).fit(r)
    assert np.isfinite(more.posterior_).all()
    # Majority vote is a model too, and other labels are no obstacle if it knows these.
    assert dawid_skene(start=cs.MajorityVote().fit(r)).fit(r).converged_
    wide = responses_of(answers, labels=[0, 1, 2, 3], classes=[3, 1, 2, 0])
    assert dawid_skene(start=dawid_skene().fit(wide)).fit(r).converged_
    with pytest.raises(InputError, match="to start from does not know all labels"):
        dawid_skene(start=first).fit(wide)


# -------------------------------------------------------------------------------------------------------- prediction


def test_predicting_other_items():
    answers, *_ = oracles.simulate(27, n_items=600, n_workers=5, skill=(0.6, 0.9))
    train, test = responses_of(answers[:500]), answers[500:]
    for estimation in ESTIMATIONS:
        model = dawid_skene(estimation=estimation).fit(train)
        twin = twin_of(model, train, model.n_iter_)
        expected = oracles.dense_posterior(oracles.densify(responses_of(test)), twin.log_confusion, twin.log_prior)[0]
        np.testing.assert_allclose(model.predict_proba(responses_of(test)), expected, atol=1e-8)
        # Some of the workers, in another order, with other items, and not all labels.
        few = test[:, [3, 0]]
        few = few[(few[:, 0] == 1) | (few[:, 1] == 1)]
        few = np.where(few == 1, few, -1)
        some = responses_of(few, workers=[3, 0], items=[f"new {i}" for i in range(len(few))])
        assert some.labels.tolist() == [1]
        votes = np.zeros((len(few), 5, 3))
        votes[:, [3, 0], 1] = few == 1
        expected = oracles.dense_posterior(votes, twin.log_confusion, twin.log_prior)[0]
        np.testing.assert_allclose(model.predict_proba(some), expected, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"estimation": "em"}, {"estimation": "em", "smoothing": 0}])
def test_unknown_workers_are_the_crowd(options):
    answers, *_ = oracles.simulate(28, n_items=300, n_workers=5, skill=(0.6, 0.9))
    r = responses_of(answers)
    model = dawid_skene(**options).fit(r)
    stranger = cs.Answers.from_frame({"item": ["i", "i", "j"], "worker": [0, 99, 98], "label": [0, 1, 2]})
    with pytest.warns(DataWarning, match=r"2 of 3 workers were not there at the fit: 98, 99\."):
        found = model.predict_proba(stranger)
    counts = np.einsum("iml,ik->mkl", oracles.densify(r), model.posterior_).sum(axis=0)
    counts += oracles.smoothing_table(model.smoothing, r.class_of_label, 3, 1)[0]
    crowd = counts / counts.sum(axis=1, keepdims=True)
    prior = np.exp(twin_of(model, r, model.n_iter_).log_prior)
    own = np.exp(twin_of(model, r, model.n_iter_).log_confusion[0])
    expected = np.array([prior * own[:, 0] * crowd[:, 1], prior * crowd[:, 2]])
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)
    with pytest.warns(DataWarning, match="were not there at the fit"):
        assert np.isfinite(model.score(stranger))


def test_unknown_labels_are_an_error():
    model = dawid_skene().fit({"item": [1, 1, 2], "worker": [1, 2, 1], "label": ["cat", "cat", "dog"]})
    cow = {"item": [1], "worker": [1], "label": ["cow"]}
    for act in (model.predict, model.predict_proba, model.score):
        with pytest.raises(InputError, match=r"did not occur at the fit: 'cow'\. The model knows 'cat', 'dog'"):
            act(cow)


# --------------------------------------------------------------------------------------------------------- edge cases


EDGES = [
    {},
    oracles.PLAIN,
    {"estimation": "em"},
    {"estimation": "em", "smoothing": 0},
    {"smoothing": 0.001},
    {"prior": "uniform"},
]


def fit_edge(r, options, **more):
    """Fit with the given parameters, and all others as they are by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # flat objectives settle slowly
        model = cs.DawidSkene(**options).fit(r, **more)
    for array in (model.posterior_, model.uncalibrated_posterior_, model.prior_, model.confusion_):
        assert np.isfinite(array).all()
        np.testing.assert_allclose(array.sum(axis=-1), 1, rtol=1e-9)
    assert_never_falls(model.trace_)
    raised = raise_to(model.uncalibrated_posterior_, model.power_)
    answered = np.diff(r.offsets) > 0
    predicted = model.predict_proba(r, **more)
    assert np.array_equal(raised[answered], predicted[answered])
    assert np.array_equal(model.labels_, model.classes_[model.posterior_.argmax(axis=1)])
    assert np.array_equal(model.predict(r, **more), model.classes_[predicted.argmax(axis=1)])
    model.to_frame()
    model.worker_report()
    assert repr(model)
    return model


@pytest.mark.parametrize("options", EDGES)
def test_a_worker_with_one_answer_and_one_with_none(options):
    answers, truth, *_ = oracles.simulate(31, n_items=100, n_workers=6, skill=(0.7, 0.9), share=1.0)
    answers[1:, 4] = -1
    answers[:, 5] = -1
    model = fit_edge(responses_of(answers), options)
    assert np.mean(model.labels_ == truth) > 0.8
    report = model.worker_report().to_pydict()
    assert report["answers"] == [100, 100, 100, 100, 1, 0]
    assert report["remarks"][4:] == ["few answers", "few answers"]
    assert report["accuracy"][5] is None
    if options.get("smoothing") == 0:  # nothing is known: as the crowd does
        crowd = np.einsum("iml,ik->kl", oracles.densify(responses_of(answers)), model.uncalibrated_posterior_)
        np.testing.assert_allclose(model.confusion_[5], crowd / crowd.sum(axis=1, keepdims=True), atol=1e-3)


@pytest.mark.parametrize("options", EDGES)
def test_one_answer(options):
    model = fit_edge(cs.Answers.from_frame({"item": ["i"], "worker": ["w"], "label": ["x"]}), options)
    assert model.labels_.tolist() == ["x"]


@pytest.mark.parametrize("options", EDGES)
def test_an_item_nobody_answered_gets_the_prior(options):
    answers, *_ = oracles.simulate(33, n_items=400, n_classes=3)
    item, worker = np.nonzero(answers >= 0)
    frame = {"item": item, "worker": worker, "label": answers[item, worker]}
    r = cs.Answers.from_frame(frame, items=[*range(400), 1000, 1001])
    model = fit_edge(r, options)
    assert np.array_equal(model.posterior_[400], model.posterior_[401])
    np.testing.assert_allclose(model.posterior_[400], model.prior_, atol=0.01)
    # All that is said about it is its gold label.
    assert fit_edge(r, options, gold={1000: 2}).posterior_[400].tolist() == [0, 0, 1]


@pytest.mark.parametrize("options", EDGES)
def test_soft_votes_that_are_certain_are_answers(options):
    answers, *_ = oracles.simulate(35, n_items=80, n_classes=3, share=0.7)
    votes = np.where(answers[:, :, None] >= 0, np.eye(3)[answers], np.nan)
    soft, hard = cs.Answers.from_probabilities(votes), responses_of(answers)
    assert soft.n_responses == hard.n_responses
    assert np.array_equal(fit_edge(soft, options).posterior_, fit_edge(hard, options).posterior_)
    # All but certain: nearly the same, by the path of weights.
    nearly = votes * (1 - 1e-9)
    a, b = (
        dawid_skene(**options | {"tol": 0, "max_iter": 20}).fit(x)
        for x in (cs.Answers.from_probabilities(nearly), hard)
    )
    np.testing.assert_allclose(a.posterior_, b.posterior_, atol=1e-6)


def test_log_evidence_far_below_the_range_of_doubles():
    """1,000 workers answer every item: no posterior may be lost on the way."""
    answers, *_ = oracles.simulate(36, n_items=6, n_workers=1000, n_classes=3, skill=(0.3, 0.5), share=1.0)
    r = responses_of(answers)
    for options in EDGES:
        model = dawid_skene(**options | {"tol": 0, "max_iter": 2}).fit(r)
        assert_like_twin(model, twin_of(model, r, 2), tolerance=1e-9)
