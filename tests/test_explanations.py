"""Why an item has its label: parts that add up to the printed probabilities."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from command_line import run

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
CROWD = cs.simulate.independent(150, n_workers=12, n_classes=4, answers_per_item=4, accuracy=(0.4, 0.9), seed=1)
PLAIN = CROWD.responses


def check_sum(model, item, row, known=()):
    """Check that parts add up, before calibration to the fit's own log odds and in all to the printed ones."""
    found, labels = model.explain(item), model.result_.labels
    a, b = (int(np.flatnonzero(model.classes_ == name)[0]) for name in (found.label, found.against))
    assert a == labels.codes[row]
    assert found.confidence == labels.posterior[row, a]
    assert found.log_odds == pytest.approx(math.log(labels.posterior[row, a] / labels.posterior[row, b]), abs=1e-9)
    assert found.uncalibrated == pytest.approx(math.log(labels.fitted[row, a] / labels.fitted[row, b]), abs=1e-6)
    other = [part.kind for part in found.parts if part.kind not in ("prior", "answer", "left out", "power", *known)]
    assert other == []
    assert [part.kind for part in found.parts].count("prior") == 1
    return found, a, b


def test_answers_weigh_what_confusion_matrices_say():
    """By EM, matrices and prior are those that are reported: a sum over dictionaries is the slow twin."""
    model = cs.DawidSkene(estimation="em", calibration="none").fit(PLAIN)
    said = {}
    for item, worker, label in zip(PLAIN.item_of_answer(), PLAIN.worker, PLAIN.label, strict=True):
        said.setdefault(int(item), []).append((int(worker), int(label)))
    for row in range(0, 150, 7):
        found, a, b = check_sum(model, PLAIN.items[row], row)
        expected = {m: math.log(model.confusion_[m, a, x] / model.confusion_[m, b, x]) for m, x in said[row]}
        got = {part.worker: part.weight for part in found.parts if part.kind == "answer"}
        assert got == pytest.approx(expected)
        assert list(map(abs, got.values())) == sorted(map(abs, got.values()), reverse=True)
        prior = next(part for part in found.parts if part.kind == "prior")
        assert prior.weight == pytest.approx(math.log(model.prior_[a] / model.prior_[b]))
        assert {part.worker: part.answer for part in found.parts if part.kind == "answer"} == dict(said[row])


@pytest.mark.parametrize(
    "model",
    [
        cs.DawidSkene(),
        cs.DawidSkene(calibration=0.6),
        cs.DawidSkene(workers="one-coin"),
        cs.MomentMatching(),
    ],
)
def test_parts_add_up_for_independent_items(model):
    model.fit(PLAIN)
    for row in range(0, 150, 11):
        check_sum(model, PLAIN.items[row], row)


def test_weights_and_answers_that_are_spread():
    rng = np.random.default_rng(0)
    votes = rng.dirichlet([1.0, 1.0, 1.0], (60, 5))
    model = cs.DawidSkene().fit(cs.Answers.from_probabilities(votes, classes=["x", "y", "z"]))
    found, _, _ = check_sum(model, 7, 7)
    assert [part.kind for part in found.parts].count("answer") == 5  # one for each worker
    best = {part.worker: part.answer for part in found.parts if part.kind == "answer"}
    assert best == {m: "xyz"[votes[7, m].argmax()] for m in range(5)}


def test_silence_is_a_part():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    votes = np.where(rng.random((300, 6)) < 0.3, np.where(rng.random((300, 6)) < 0.85, truth[:, None], 0), -1)
    r = cs.Answers.from_matrix(votes, abstain="answer", background=0)
    model = cs.DawidSkene().fit(r)
    for row in range(0, 300, 37):
        found, _, _ = check_sum(model, row, row, known=("silence", "votes"))
        assert sum(part.kind == "silence" for part in found.parts) == 1


def test_what_else_is_known_of_an_item_is_a_part():
    prior = np.random.default_rng(0).dirichlet(np.ones(4), 150)
    model = cs.DawidSkene().fit(PLAIN, item_prior=prior)
    found, a, b = check_sum(model, 5, 5, known=("item prior",))
    part = next(part for part in found.parts if part.kind == "item prior")
    given = model.result_.given.log_prior[5]
    assert part.weight == pytest.approx(given[a] - given[b])
    features = np.eye(4)[CROWD.truth.astype(int)] + np.random.default_rng(1).normal(0, 0.3, (150, 4))
    feature_fit = cs.DawidSkene().fit(PLAIN, features=features)
    found, _, _ = check_sum(feature_fit, 5, 5, known=("classifier",))
    assert any(part.kind == "classifier" for part in found.parts)


def test_known_labels_decide():
    model = cs.DawidSkene().fit(PLAIN, gold={4: 2})
    found = model.explain(4)
    assert (found.label, found.confidence) == (2, 1.0)
    assert found.parts[-1].kind == "known label"
    assert found.log_odds == math.inf
    assert math.isfinite(sum(part.weight for part in found.parts[:-1]))
    assert "known label, which decides" in str(found)


def chain_without_one(model, evidence, prior, place):
    """Enumerate all labelings of a sequence; leave out evidence and prior of one position."""
    n_classes = len(prior)
    rest = np.zeros(n_classes)
    for labels in itertools.product(range(n_classes), repeat=len(evidence)):
        p = model.initial_[labels[0]]
        for before, after in itertools.pairwise(labels):
            p *= model.transition_[before, after]
        for position, label in enumerate(labels):
            p *= 1 / prior[label] if position == place else evidence[position, label]
        rest[labels[place]] += p
    return np.log(rest)


def test_the_rest_of_a_sequence_is_what_its_other_positions_say():
    simulated = cs.simulate.sequences(30, length=5, n_workers=4, n_classes=3, seed=2)
    r = simulated.responses
    model = cs.HiddenMarkov(estimation="em", coupling=1.0, calibration="none").fit(r)
    for row in (0, 2, 4, 63):
        found, a, b = check_sum(model, r.items[row], row, known=("sequence",))
        first, last = r.sequences.offsets[row // 5 : row // 5 + 2]
        evidence = np.ones((last - first, 3))
        for item in range(first, last):
            for answer in range(r.offsets[item], r.offsets[item + 1]):
                evidence[item - first] *= model.confusion_[r.worker[answer], :, r.label[answer]]
        rest = chain_without_one(model, evidence, model.prior_, row - first)
        part = next(part for part in found.parts if part.kind == "sequence")
        assert part.weight == pytest.approx(rest[a] - rest[b], abs=1e-6)


def test_neighbours_are_what_a_field_adds():
    """By mean field, neighbours add coupling times the difference of their probabilities."""
    network = cs.simulate.network(200, n_workers=8, n_classes=3, answers_per_item=3, seed=1)
    model = cs.MarkovField(coupling=0.8, calibration="none").fit(network.responses, graph=network.graph)
    graph, q = model.result_.given.graph, model.result_.labels.fitted
    for row in range(0, 200, 23):
        found, a, b = check_sum(model, network.responses.items[row], row, known=("neighbours",))
        near = graph.neighbours[graph.offsets[row] : graph.offsets[row + 1]]
        part = next(part for part in found.parts if part.kind == "neighbours")
        assert part.weight == pytest.approx(0.8 * (q[near, a] - q[near, b]).sum(), abs=1e-3)
        assert f"{len(near)} neighbour" in part.name


def test_votes_are_shares():
    model = cs.MajorityVote().fit(PLAIN)
    found = model.explain(8)
    own = [part.weight for part in found.parts if part.answer == found.label]
    assert found.is_vote
    assert sum(own) == pytest.approx(found.confidence)
    assert math.isnan(found.log_odds)
    votes = cs.MajorityVote().fit(cs.Answers.from_matrix([[0, 1], [-1, -1], [1, 1]]), gold={2: 0})
    assert [part.kind for part in votes.explain(0).parts] == ["answer", "answer", "tie"]
    assert [part.kind for part in votes.explain(1).parts] == ["prior"]
    assert votes.explain(2).parts[-1].kind == "known label"


def test_what_is_shown():
    model = cs.DawidSkene().fit(PLAIN)
    found = model.explain("12")  # as the command line gives it
    assert found.item == 12
    lines = str(found).splitlines()
    assert lines[0].startswith(f"Item 12: {found.label} ({found.confidence:.3f}), against {found.against}")
    assert lines[-1].split()[0] == "sum"
    table = found.to_frame()
    assert table.column_names == ["part", "worker", "answer", "log_odds", "words"]
    assert math.fsum(table["log_odds"].to_pylist()) == pytest.approx(found.log_odds)
    assert found._repr_html_().count("<tr") == len(lines) - 2
    named = cs.DawidSkene().fit({"item": [1, 1, 2], "worker": ["<b>", "c", "c"], "label": ["x", "y", "x"]})
    assert "<b>" not in named.explain(1)._repr_html_()


def test_the_command(tmp_path):
    cs.DawidSkene().fit(PLAIN).save(tmp_path / "crowd.model")
    shown = run("explain", tmp_path / "crowd.model", "12")
    assert shown.exit_code == 0, shown.output
    assert "Item 12:" in shown.stdout
    assert "log odds" in shown.stdout
    told = json.loads(run("explain", tmp_path / "crowd.model", "12", "--json").stdout)
    assert told["item"] == 12
    assert math.fsum(part["log_odds"] for part in told["parts"]) == pytest.approx(told["log_odds"])
    wrong = run("explain", tmp_path / "crowd.model", "1222")
    assert wrong.exit_code != 0
    assert "There is no item '1222'" in wrong.stderr
    cs.HiddenMarkov().fit(cs.simulate.sequences(10, length=4, n_workers=3, n_classes=2, seed=1).responses).save(
        tmp_path / "chain.model"
    )
    assert "Sequence 0, position 2" in run("explain", tmp_path / "chain.model", "0", "2").stdout
    assert "sequence and position" in run("explain", tmp_path / "chain.model", "0").stderr


def test_a_plain_sentence_comes_first():
    table = {"item": [*"aaaabbbcccdddd"], "worker": [*"12341231231234"], "label": [*"xxxyyyyxxxxxyy"]}
    model = cs.DawidSkene().fit(table)
    found = model.explain("a")
    assert str(found).splitlines()[1] == found.summarise() == "3 of 4 workers say x."
    assert repr(found) == f"<Explanation: {found.describe()}>"
    tied = replace(found, confidence=0.52, confidence_against=0.48)
    assert tied.summarise() == "3 of 4 workers say x; y is nearly as probable."
    assert found.summarise() in found._repr_html_()
    named = cs.fuse(cs.Answers.from_matrix([[0, 1], [0, 0], [1, 1], [-1, -1]] * 20), source_kind="functions")
    assert named.explain(1).summarise().startswith("2 of 2 functions say 0")
    assert named.explain(3).summarise().startswith("Nobody answered")


@pytest.mark.filterwarnings("ignore")
def test_what_nothing_checks_has_no_odds(tmp_path):
    items = range(60)
    table = {"item": [*items], "worker": [i % 6 for i in items], "label": ["abc"[i // 6 % 3] for i in items]}
    model = cs.fuse(table)
    found = model.explain(7)
    assert str(found).splitlines() == [
        "Item 7: b",
        "The only answer is b. Nothing checks that, so no odds are given.",
        "     answer",
        "  1  b",
    ]
    assert math.isnan(found.log_odds)
    assert not found.is_vote
    assert "log odds" not in found._repr_html_()
    model.save(tmp_path / "one.model")
    told = json.loads(run("explain", tmp_path / "one.model", "7", "--json").stdout)
    assert (told["confidence"], told["log_odds"], told["parts"][0]["log_odds"]) == (None, None, None)
    assert "to 1" not in run("explain", tmp_path / "one.model", "7").stdout
    assert cs.fuse(table, gold=dict.fromkeys(range(6), "a")).explain(7).checked
