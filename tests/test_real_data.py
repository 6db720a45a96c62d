"""Real crowds, default settings. Gold is for scoring only: no fit sees it."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize(
    ("row", "name"),
    {
        "RTE": "rte",
        "Bluebirds": "bluebird",
        "Dog breeds": "dog",
        "Products": "product",
        "Web relevance": "web",
        "LLM judges": "llm_judges",
        "Sentence polarity": "sentence_polarity",
        "Music genre": "music",
    }.items(),
)
def test_the_table_of_the_readme(row, name):
    line = re.search(rf"^\| {row}\b.*$", README, re.MULTILINE).group()
    cells = (float(cell.replace(",", "")) for cell in line.split("|")[2:-1])
    items, workers, classes, vote, fused, vote_loss, loss = cells
    r, gold = cs.read_answers(FOLDER / name / "responses.parquet"), gold_of(name)
    known = np.array([item in gold for item in r.items.tolist()])
    truth = [gold[item] for item in r.items[known].tolist()]

    truths = np.searchsorted(r.classes, truth)
    model = cs.DawidSkene().fit(r)
    assert (r.n_items, r.n_workers, r.n_classes) == (items, workers, classes)
    assert cs.metrics.accuracy(truth, model.labels_[known]) == pytest.approx(fused, abs=0.0006)
    assert log_loss(model.posterior_[known], truths) == pytest.approx(loss, abs=0.006)
    # Ties are broken at random: the table has the mean over all ways to break them.
    shares = cs.MajorityVote().fit(r).posterior_[known]
    assert log_loss(shares, truths) == pytest.approx(vote_loss, abs=0.006)
    assert loss < vote_loss
    tied = shares > shares.max(axis=1, keepdims=True) - 1e-9
    right = tied[np.arange(len(truth)), truths] / tied.sum(axis=1)
    assert right.mean() == pytest.approx(vote, abs=0.0006)


def test_the_same_bits_for_any_number_of_threads():
    r = cs.read_answers(FOLDER / "product" / "responses.parquet")
    one, three = (cs.DawidSkene().fit(r, engine=cs.engines.Threads(n)).posterior_ for n in (1, 3))
    assert (one == three).all()
