"""Real crowds, default settings. Gold is for scoring only: no fit sees it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from real_data import FOLDER, gold_of, needs_data

pytestmark = needs_data

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")

LEAST_ACCURACY = {"rte": 0.925, "bluebird": 0.88, "dog": 0.835, "product": 0.935, "web": 0.76, "llm_judges": 0.81}


@pytest.mark.parametrize("name", LEAST_ACCURACY)
def test_dawid_skene_is_as_accurate_as_it_should_be(name):
    r = cs.read_answers(FOLDER / name / "responses.parquet")
    gold = gold_of(name)
    fused = dict(zip(r.items.tolist(), cs.DawidSkene().fit(r).labels_.tolist(), strict=True))
    vote = dict(zip(r.items.tolist(), cs.MajorityVote().fit(r).labels_.tolist(), strict=True))
    known = [item for item in fused if item in gold]
    truth = [gold[item] for item in known]
    accuracy = cs.metrics.accuracy(truth, [fused[item] for item in known])
    assert accuracy >= LEAST_ACCURACY[name]
    assert accuracy > cs.metrics.accuracy(truth, [vote[item] for item in known])


def log_loss(posterior, truths):
    return -np.log(np.clip(posterior[np.arange(len(truths)), truths], 1e-12, 1)).mean()


EIGHT = ["rte", "bluebird", "dog", "product", "web", "llm_judges", "sentence_polarity", "music"]


def score_labels(model, known, truths):
    """The share of known labels that are right, of ties by share, and the log loss."""
    posterior = model.posterior_[known]
    tied = posterior > posterior.max(axis=1, keepdims=True) - 1e-9
    return (tied[np.arange(len(truths)), truths] / tied.sum(axis=1)).mean(), log_loss(posterior, truths)


@pytest.mark.robust
def test_the_summary_of_the_readme():
    scores = []
    for name in EIGHT:
        r, gold = cs.read_answers(FOLDER / name / "responses.parquet"), gold_of(name)
        known = np.array([item in gold for item in r.items.tolist()])
        truths = np.searchsorted(r.classes, [gold[item] for item in r.items[known].tolist()])
        scores.append([score_labels(model.fit(r), known, truths) for model in (cs.DawidSkene(), cs.MajorityVote())])
    (accuracy, loss), (vote, vote_loss) = np.mean(scores, axis=0)
    text = " ".join(README.split())
    assert f"{accuracy:.0%} of the labels are right, and {vote:.0%} by majority vote" in text
    assert f"log loss of the probabilities is {loss:.2f}, and {vote_loss:.2f} of vote shares" in text


def test_the_same_bits_for_any_number_of_threads():
    r = cs.read_answers(FOLDER / "product" / "responses.parquet")
    one, three = (cs.DawidSkene().fit(r, engine=cs.engines.Threads(n)).posterior_ for n in (1, 3))
    assert (one == three).all()
