"""Majority vote: shares, ties, and its one-pass worker statistics."""

from __future__ import annotations

from collections import Counter

import crowdkit.aggregation
import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
import oracles
from consilience.inference.estimator import renew
from consilience.inference.labels import label_votes
from effort import examples


def shares_of(r, gold=None):
    codes = np.full(r.n_items, -1)
    for item, label in (gold or {}).items():
        codes[r.items.tolist().index(item)] = r.classes.tolist().index(label)
    return oracles.vote_shares(oracles.densify(r), r.class_of_label, r.n_classes, codes)


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    n_items=st.integers(1, 15),
    n_workers=st.integers(1, 6),
    n_classes=st.integers(1, 4),
    ties=st.sampled_from(["random", "first"]),
    known=st.booleans(),
)
def test_shares_and_labels(seed, n_items, n_workers, n_classes, ties, known):
    answers, truth, *_ = oracles.simulate(
        seed, n_items=n_items, n_workers=n_workers, n_classes=n_classes, share=0.6, skill=(0.2, 0.8)
    )
    r = cs.Answers.from_matrix(answers, labels=range(n_classes))
    gold = {0: int(truth[0])} if known else None
    model = cs.MajorityVote(ties=ties, seed=seed).fit(r, gold=gold)
    np.testing.assert_allclose(model.posterior_, shares_of(r, gold), atol=1e-14)
    for i, row in enumerate(answers):
        votes = Counter(row[row >= 0].tolist())
        winners = sorted(k for k, n in votes.items() if n == max(votes.values()))
        if known and i == 0:
            winners = [int(truth[0])]
        assert model.labels_[i] in winners
        if ties == "first":
            assert model.labels_[i] == winners[0]
    assert np.array_equal(model.predict_proba(r, gold=gold), model.posterior_)
    assert np.array_equal(model.predict(r, gold=gold), model.labels_)
    counts = np.einsum("iml,ik->mkl", oracles.densify(r), model.posterior_)
    counts += oracles.smoothing_table((0.1, 1.1), r.class_of_label, n_classes, n_workers)
    np.testing.assert_allclose(model.confusion_, counts / counts.sum(axis=2, keepdims=True), atol=1e-12)


def test_crowd_kit():
    answers, *_ = oracles.simulate(1, n_items=200, n_workers=7, share=0.6)
    item, worker = np.nonzero(answers >= 0)
    frame = pd.DataFrame({"task": item, "worker": worker, "label": answers[item, worker]})
    expected = crowdkit.aggregation.MajorityVote().fit_predict_proba(frame).sort_index()[[0, 1, 2]].fillna(0)
    model = cs.MajorityVote().fit(frame)
    found = pd.DataFrame(model.posterior_, index=model.to_frame()["item"]).sort_index()
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), atol=1e-12)


def test_items_without_votes_get_the_overall_shares():
    answers = {"item": [1, 1, 1, 2, 3], "worker": [1, 2, 3, 1, 1], "label": ["x", "x", "y", "x", "unsure"]}
    r = cs.Answers.from_frame(answers, classes=["x", "y", "z"], items=[1, 2, 3, 4])
    model = cs.MajorityVote().fit(r)
    assert model.prior_.tolist() == [0.75, 0.25, 0]
    # Item 3 has an answer but no vote, item 4 has neither.
    assert model.posterior_[2:].tolist() == [[0.75, 0.25, 0]] * 2
    assert model.labels_[2:].tolist() == ["x", "x"]
    assert np.array_equal(model.predict_proba(r), model.posterior_)
    with_gold = renew(model).fit(r, gold={4: "z", 1: "y"})
    assert with_gold.posterior_[[0, 3]].tolist() == [[0, 1, 0], [0, 0, 1]]
    assert np.array_equal(with_gold.predict_proba(r, gold={4: "z", 1: "y"}), with_gold.posterior_)


def test_ties():
    shares = np.array([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.2, 0.6, 0.2], [0.1 + 0.2, 0.3, 0.4 - 1e-17]])
    classes = np.array(["x", "y", "z"], dtype=object)
    assert label_votes(shares, np.arange(4), classes, ties="first").tolist() == [0, 0, 1, 2]
    many, ids = np.tile(shares[:2], (3000, 1)), np.arange(6000)
    drawn = label_votes(many, ids, classes, seed=7)
    assert np.array_equal(drawn, label_votes(many, ids, classes, seed=7))
    assert not np.array_equal(drawn, label_votes(many, ids, classes, seed=8))
    np.testing.assert_allclose(np.bincount(drawn[::2], minlength=3) / 3000, [0.5, 0.5, 0], atol=0.04)
    np.testing.assert_allclose(np.bincount(drawn[1::2], minlength=3) / 3000, [1 / 3] * 3, atol=0.04)
