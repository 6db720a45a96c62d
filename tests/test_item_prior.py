"""Priors of items: each structure multiplies them into the evidence."""

import itertools

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from consilience.errors import InputError

PLAIN = {"calibration": "none", "estimation": "em", "smoothing": 0.5}


def small_crowd(n_items=6, n_workers=3, n_classes=3, seed=0, lengths=None):
    rng = np.random.default_rng(seed)
    votes = rng.integers(0, n_classes, (n_items, n_workers))
    prior = rng.dirichlet(np.ones(n_classes), n_items)
    return cs.Answers.from_matrix(votes, lengths=lengths, classes=range(n_classes)), votes, prior


def brute_force(votes, confusion, joint, factor):
    """Posteriors by enumeration of all labellings, of which `joint` gives the prior probability."""
    n_items, n_classes = factor.shape
    posterior = np.zeros((n_items, n_classes))
    for labels in itertools.product(range(n_classes), repeat=n_items):
        p = joint(labels)
        for n, k in enumerate(labels):
            p *= factor[n, k] * np.prod([confusion[m, k, votes[n, m]] for m in range(votes.shape[1])])
        for n, k in enumerate(labels):
            posterior[n, k] += p
    return posterior / posterior.sum(axis=1, keepdims=True)


def test_independent_items_are_those_of_brute_force():
    r, votes, prior = small_crowd()
    model = cs.DawidSkene(**PLAIN).fit(r, item_prior=prior)
    factor = prior / prior.mean(axis=0)
    expected = brute_force(votes, model.confusion_, lambda y: np.prod(model.prior_[list(y)]), factor)
    np.testing.assert_allclose(model.posterior_, expected, rtol=1e-9)


def test_chains_are_those_of_brute_force():
    r, votes, prior = small_crowd(lengths=[4, 2])
    model = cs.HiddenMarkov(coupling=1.0, **PLAIN).fit(r, item_prior=prior)

    def joint(y):
        steps = [(0, 1), (1, 2), (2, 3), (4, 5)]
        return model.initial_[y[0]] * model.initial_[y[4]] * np.prod([model.transition_[y[a], y[b]] for a, b in steps])

    expected = brute_force(votes, model.confusion_, joint, prior / prior.mean(axis=0))
    np.testing.assert_allclose(model.posterior_, expected, rtol=1e-9)


def test_fields_are_those_of_brute_force():
    r, votes, prior = small_crowd()
    tree = cs.Graph.from_edges([0, 1, 1, 3, 4], [1, 2, 3, 4, 5], items=r.items)
    model = cs.MarkovField(coupling=0.7, inference="belief_propagation", prior="uniform", **PLAIN)
    model.fit(r, graph=tree, item_prior=prior)

    def joint(y):
        return np.exp(0.7 * sum(y[a] == y[b] for a, b in [(0, 1), (1, 2), (1, 3), (3, 4), (4, 5)]))

    expected = brute_force(votes, model.confusion_, joint, prior / prior.mean(axis=0))
    np.testing.assert_allclose(model.posterior_, expected, rtol=1e-6)


def test_unanswered_items_count_and_have_their_prior():
    table = {"item": ["a", "a", "b", "b"], "worker": [1, 2, 1, 2], "label": ["x", "x", "y", "y"]}
    r = cs.Answers.from_frame(table, items=["a", "b", "c"])
    prior = {"item": ["c"], "x": [0.9], "y": [0.1]}
    model = cs.DawidSkene(**PLAIN).fit(r, item_prior=prior)
    shares = np.array([(0.9 + 1) / 3, (0.1 + 1) / 3])  # of the votes, where there is no prior
    expected = model.prior_ * np.array([0.9, 0.1]) / shares
    np.testing.assert_allclose(model.posterior_[2], expected / expected.sum())
    assert np.diff(model.trace_).min() > -1e-9


def test_tables_match_by_id_and_arrays_by_place(tmp_path):
    crowd = cs.simulate.independent(40, n_workers=5, n_classes=2, seed=1)
    r = crowd.responses
    prior = np.random.default_rng(0).dirichlet(np.ones(2), 40)
    by_array = cs.DawidSkene().fit(r, item_prior=prior)
    order = np.random.default_rng(5).permutation(40)
    table = pd.DataFrame({"item": r.items[order], "p(1)": 7 * prior[order, 1], "p(0)": 7 * prior[order, 0]})
    by_table = cs.DawidSkene().fit(r, item_prior=table)
    np.testing.assert_allclose(by_array.posterior_, by_table.posterior_, rtol=1e-9)
    np.save(tmp_path / "prior.npy", prior)
    np.testing.assert_array_equal(cs.DawidSkene().fit_predict(r, item_prior=tmp_path / "prior.npy"), by_array.labels_)


def test_what_is_impossible_stays_so_and_gold_wins():
    votes = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]])
    prior = np.array([[0.0, 1.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])
    for estimation in ("em", "variational"):
        model = cs.DawidSkene(estimation=estimation, smoothing=0.0 if estimation == "em" else "learn")
        model.fit(cs.Answers.from_matrix(votes), item_prior=prior, gold={2: 0})
        assert (model.labels_[0], model.labels_[2]) == (1, 0)
        assert model.posterior_[0, 0] == 0
        assert model.posterior_[2, 0] == 1
        assert np.isfinite(model.posterior_).all()


def test_new_items_take_their_prior_in_place_of_the_class_prior():
    crowd = cs.simulate.independent(200, n_workers=5, n_classes=3, seed=1)
    model = cs.DawidSkene(**PLAIN).fit(crowd.responses)
    alone = cs.Answers.from_frame(
        {"item": ["new"], "worker": [0], "label": [1]}, items=["new", "other"], classes=[0, 1, 2]
    )
    prior = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    expected = prior * np.stack([model.confusion_[0][:, 1], np.ones(3)])
    found = model.predict_proba(alone, item_prior=prior)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True))
    assert model.predict(alone, item_prior=prior).tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (np.ones((3, 2)), "of the shape \\(2, 2\\)"),
        (np.array([[0, 0], [1, 1]]), "not only zeros"),
        (np.array([[-1, 2], [1, 1]]), "numbers >= 0"),
        ({"item": [0, 0], "0": [1, 1], "1": [1, 1]}, "several rows"),
        ({"item": [7], "0": [1], "1": [1]}, "None of the 1 "),
        ({"item": [0], "0": [1]}, "no column for 1"),
        ({"item": [0], "0": ["a"], "1": [1]}, "must hold numbers"),
        ("x", "No such file|cannot be|does not exist"),
    ],
)
def test_bad_priors_are_refused(prior, words):
    r = cs.Answers.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(InputError, match=words):
        cs.DawidSkene().fit(r, item_prior=prior)
