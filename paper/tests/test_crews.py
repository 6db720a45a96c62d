"""The taggers and classifiers that the experiments train, and what our models make of the classifiers' answers."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import consilience as cs
from benchmarks import real_crowds
from consilience.inference.estimator import renew
from paper.classifiers import ask_classifiers
from paper.taggers import CREW, read_treebank, tag_treebank
from real_data import needs_data


def write_corpora(folder):
    """A corpus of a hundred sentences with an easy grammar, and one of three sentences to be tagged."""
    sentence = "The/at {}/nn {}/vbd ./.\n"
    text = "".join(sentence.format(noun, verb) for noun in ("dog", "cat") for verb in ("ran", "sat") for _ in range(25))
    tree = "( (S (NP (DT The) (NN {}))\n  (VP (VBD {})) (. .)) )\n"
    with zipfile.ZipFile(folder / "brown.zip", "w") as archive:
        archive.writestr("brown/ca01", text)
        archive.writestr("brown/README", "not a corpus")
    with zipfile.ZipFile(folder / "treebank.zip", "w") as archive:
        archive.writestr("treebank/combined/wsj_0002.mrg", tree.format("mouse", "ran"))
        archive.writestr("treebank/combined/wsj_0001.mrg", tree.format("dog", "sat") + tree.format("cat", "ran"))
    with zipfile.ZipFile(folder / "universal_tagset.zip", "w") as archive:
        archive.writestr("universal_tagset/en-brown.map", "AT\tDET\nNN\tNOUN\nVBD\tVERB\n.\t.\n")
        archive.writestr("universal_tagset/en-ptb.map", "DT\tDET\nNN\tNOUN\nVBD\tVERB\n.\t.\n")


def test_taggers_learn(tmp_path):
    write_corpora(tmp_path)
    words = [[word for word, _ in sentence] for sentence in read_treebank(tmp_path)]
    assert words == [["The", "dog", "sat", "."], ["The", "cat", "ran", "."], ["The", "mouse", "ran", "."]]
    answers, truth = tag_treebank(tmp_path, seed=1)
    assert truth == [["DET", "NOUN", "VERB", "."]] * 3
    assert len(answers) == 10
    flat = [tag for sentence in truth for tag in sentence]
    share = {name: np.mean(np.array(tags) == flat) for name, tags in zip(CREW, answers, strict=True)}
    assert all(len(tags) == 12 for tags in answers)
    # Words of three letters have no affix, so that this tagger can only guess.
    assert share.pop("affixes") == 0.25
    assert set(share.values()) == {1}
    assert tag_treebank(tmp_path, seed=1)[0] == answers


def test_classifiers_learn():
    rng = np.random.default_rng(3)
    truth = np.array(["a", "b"])[rng.integers(0, 2, 300)]
    features = np.abs(rng.normal(0, 0.3, (300, 4))) + (truth == "b")[:, None] * np.array([1, 1, 0, 0])
    items = np.arange(300) + 7
    r = ask_classifiers(features, truth, items, 40, seed=0)
    assert r.items.tolist() == items.tolist()
    assert (r.n_items, r.n_workers, r.n_responses) == (300, 10, 3000)
    assert cs.metrics.accuracy(truth, cs.MajorityVote().fit(r).labels_) > 0.95
    assert np.array_equal(r.label, ask_classifiers(features, truth, items, 40, seed=0).label)


PAPER = cs.MarkovField(coupling="paper", inference="icm", prior="uniform", estimation="em", start="dawid-skene")


@needs_data
@pytest.mark.experiment
@pytest.mark.parametrize(("name", "n_train", "least_gain"), [("cora", 150, 0.03), ("citeseer", 100, 0.02)])
def test_classifiers_of_papers(name, n_train, least_gain, capsys):
    stored, rows = real_crowds.load(name), []
    truth, graph = np.array([stored.gold[item] for item in stored.items.tolist()]), stored.graph
    for seed in range(5):
        r = ask_classifiers(stored.features, truth, stored.items, n_train, seed)
        alone = cs.metrics.macro_f1(truth, cs.DawidSkene().fit(r).labels_)
        model = cs.MarkovField().fit(r, graph=graph)
        noise = cs.MarkovField().fit(r, graph=graph.shuffled(seed))
        paper = renew(PAPER).fit(r, graph=graph)
        gains = [cs.metrics.macro_f1(truth, each.labels_) - alone for each in (model, paper, noise)]
        assert gains[2] == pytest.approx(0, abs=0.01)
        rows.append([alone, *gains, model.coupling_, noise.coupling_])
    mean = np.mean(rows, axis=0)
    with capsys.disabled():
        print(
            f"\n{name}: DawidSkene {mean[0]:.3f}; gain of MarkovField {mean[1]:+.3f} (coupling {mean[4]:.2f}), as in "
            f"the paper {mean[2]:+.3f}, on a shuffled graph {mean[3]:+.3f} (coupling {mean[5]:.2f})"
        )
    assert mean[1] >= least_gain
