"""Probabilities of real crowds. Gold is for scoring only, but for the labels that a test gives to the fit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from benchmarks.real_crowds import load
from consilience.inference.structures.chain import ChainParameters
from real_data import FOLDER, gold_of, needs_data

pytestmark = needs_data

CROWDS = ("bluebird", "rte", "dog", "web", "product", "llm_judges", "sentence_polarity", "music")
DOCS = Path(__file__).parents[1] / "docs"


def crowd_of(name):
    """Return the answers, the known labels, which items these are about, and the index of the class of each."""
    r, gold = cs.read_answers(FOLDER / name / "responses.parquet"), gold_of(name)
    keys = r.items.tolist()
    known = np.array([i for i, item in enumerate(keys) if item in gold])
    index = {label: k for k, label in enumerate(r.classes.tolist())}
    return r, gold, known, np.array([index[gold[keys[i]]] for i in known])


def log_loss(posterior, truths):
    return -np.log(np.clip(posterior[np.arange(len(truths)), truths], 1e-12, 1)).mean()


def calibration_error(posterior, truths):
    """Return the ECE in 10 bins of the largest probability."""
    confidence, right = posterior.max(axis=1), posterior.argmax(axis=1) == truths
    place = np.minimum((10 * confidence).astype(int), 9)
    gaps = np.bincount(place, confidence, 10) - np.bincount(place, right, 10)
    return np.abs(gaps).sum() / len(truths)


def quoted(page, pattern):
    """Return the numbers that a page quotes; whitespace in the pattern stands for any."""
    text = (DOCS / page).read_text("utf-8")
    return [float(number) for number in re.search(pattern.replace(" ", r"\s+"), text).groups()]


@pytest.mark.robust
def test_log_loss_is_below_that_of_vote_shares():
    losses = []
    for name in CROWDS:
        r, _, known, truths = crowd_of(name)
        model = cs.DawidSkene().fit(r)
        shown = (model.posterior_, model.uncalibrated_posterior_, cs.MajorityVote().fit(r).posterior_)
        losses.append([log_loss(posterior[known], truths) for posterior in shown])
        assert losses[-1][0] < losses[-1][2], name
    calibrated, plain, votes = np.mean(losses, axis=0)
    assert calibrated < 0.48
    pattern = r"mean log loss of (\d?\.\d+), which is worse than that of vote shares \((\d?\.\d+)\)"
    assert [plain, votes] == pytest.approx(quoted("probabilities.md", pattern), abs=0.006)
    assert [calibrated] == pytest.approx(quoted("probabilities.md", r"mean log loss becomes (\d?\.\d+)"), abs=0.006)
    pattern = r"mean log loss is (\d?\.\d+), against (\d?\.\d+) for vote shares"
    assert [calibrated, votes] == pytest.approx(quoted("index.md", pattern), abs=0.006)


@pytest.mark.robust
def test_twenty_known_labels_are_enough():
    errors = []
    for name in CROWDS:
        r, gold, known, truths = crowd_of(name)
        keys = r.items.tolist()
        for seed in range(10):
            given = np.random.default_rng(seed).choice(len(known), 20, replace=False)
            model = cs.DawidSkene().fit(r, gold={keys[i]: gold[keys[i]] for i in known[given]})
            others = np.setdiff1d(np.arange(len(known)), given)
            errors.append(calibration_error(model.posterior_[known[others]], truths[others]))
    assert np.mean(errors) < 0.062


@pytest.mark.robust
def test_probabilities_of_sequences(monkeypatch):
    models = {
        "ner": cs.HiddenMarkov(),
        "rules": cs.HiddenMarkov(transitions="bio"),
        "strict": cs.HiddenMarkov(transitions="bio"),
        "sleep": cs.HiddenMarkov(),
    }
    losses = {}
    for name, model in models.items():
        data = "sleep" if name == "sleep" else "ner"
        with monkeypatch.context() as patch:
            if name == "strict":
                patch.setattr(ChainParameters, "relaxed", lambda self: self)
            model.fit(load(data).responses)  # of sleep, the answers of models; the gold labels are those of people
        losses[name] = cs.evaluate(model, gold_of(data)).log_loss
    assert losses["ner"] < 0.38
    assert losses["rules"] < 0.38
    assert losses["sleep"] < 0.47
    pattern = r"On NER this lowers the log loss from (\d?\.\d+) to (\d?\.\d+)"
    assert [losses["strict"], losses["rules"]] == pytest.approx(quoted("probabilities.md", pattern), abs=0.006)


def test_the_most_probable_class_is_right_as_often():
    accuracies = []
    for name in CROWDS:
        r, _, known, truths = crowd_of(name)
        labels = cs.DawidSkene().fit(r).result_.labels
        np.testing.assert_array_equal(labels.codes, labels.posterior.argmax(axis=1))
        accuracies.append((labels.codes[known] == truths).mean())
    assert np.mean(accuracies) >= 0.863
