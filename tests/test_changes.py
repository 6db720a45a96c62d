"""What a report says about what known labels changed, compared with fits that are made here."""

from __future__ import annotations

import re

import numpy as np
import pytest
from consilience.reporting import alone
from consilience.reporting.alone import fit_alone
from consilience.reporting.changes import find_changes, find_interval
from consilience.reporting.page import gather

import consilience as cs
from command_line import run

pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

CROWD = cs.simulate.independent(400, n_workers=12, n_classes=3, answers_per_item=4, seed=1)
TRUTH = np.asarray(CROWD.truth)


def reviewed(model, truth, n=100, **more):
    """Return what a reviewer who knows the truth makes of the list of items to label."""
    listed = model.next_items(n).to_pydict()
    keys = listed["item"] if "item" in listed else list(zip(listed["sequence"], listed["position"], strict=True))
    codes = dict(zip(model.responses_.items.tolist(), np.asarray(truth).tolist(), strict=True))
    return {**listed, "label": [model.classes_[codes[key]] for key in keys], **more}


def test_the_words_count_what_differs_from_a_fit_without_known_labels():
    alone = cs.fuse(CROWD.responses)
    gold = reviewed(alone, TRUTH)
    fused = cs.fuse(CROWD.responses, gold=gold)
    found = find_changes(gather(fused))
    rows = np.array(gold["item"])
    others = np.setdiff1d(np.arange(400), rows)
    n_differ = int((alone.labels_[rows] != TRUTH[rows]).sum())
    changed = others[alone.labels_[others] != fused.labels_[others]]
    text = " ".join(found.words + found.more)
    assert found.words[0] == "100 labels are known."
    assert f"{n_differ} of them differ from what the crowd alone says" in text
    assert f"{len(changed) or 'No other'} " in text
    assert f"power {fused.power_:.2g}; without known labels it would be {alone.power_:.2g}" in text
    workers, *items = found.tables
    assert len(items) == bool(len(changed))
    for name, now, after, _ in items[0].rows if items else []:
        row = int(name.removeprefix("Item "))
        assert (now, after) == (str(alone.labels_[row]), str(fused.labels_[row]))
    drawn = rows[np.array(gold["random"])]
    n_right = int((alone.labels_[drawn] == TRUTH[drawn]).sum())
    assert f"20 known items were drawn at random. The crowd alone is right about {n_right} of them" in text
    before, after = (np.array(model.worker_report()["accuracy"]) for model in (alone, fused))
    top = int(np.abs(after - before).argmax())
    assert workers.rows[0][0] == str(top)
    shares = [float(share.rstrip("%")) / 100 for share in workers.rows[0][1:]]
    assert shares == pytest.approx([before[top], after[top]], abs=1.1e-3)


def test_nothing_is_said_without_known_labels():
    assert find_changes(gather(cs.fuse(CROWD.responses))) is None


def test_labels_that_change_nothing():
    answers = np.repeat(np.arange(200) % 2, 5).reshape(200, 5)
    fused = cs.DawidSkene(calibration="none").fit(cs.Answers.from_matrix(answers), gold={0: 0, 1: 1})
    found = find_changes(gather(fused))
    assert found.words + found.more == [
        "2 labels are known.",
        "All of them agree with what the crowd alone says: the labels of the same fit without known labels.",
        "No other label changed because of them.",
        "The expected accuracy of all labels is 100.0%, as without known labels.",
    ]
    assert found.tables == []
    one = find_changes(gather(cs.MajorityVote().fit(cs.Answers.from_matrix(answers), gold={0: 1})))
    assert one.words[:2] == [
        "1 label is known.",
        "It differs from what the crowd alone says: the labels of the same fit without known labels.",
    ]


def test_known_labels_that_are_not_said_to_be_random():
    gold = dict(enumerate(TRUTH[:50].tolist()))
    text = " ".join(find_changes(gather(cs.DawidSkene().fit(CROWD.responses, gold=gold))).more)
    assert "If these were drawn at random" in text
    few = dict(enumerate(TRUTH[:19].tolist()))
    assert "interval" not in " ".join(find_changes(gather(cs.DawidSkene().fit(CROWD.responses, gold=few))).more)


def test_known_labels_that_contradict_a_sure_crowd_are_named():
    alone = cs.fuse(CROWD.responses)
    confidence = np.asarray(alone.to_frame()["confidence"])
    sure, unsure = int(confidence.argmax()), int(confidence.argmin())
    wrong = {row: int((alone.labels_[row] + 1) % 3) for row in (sure, unsure)}
    fused = cs.fuse(CROWD.responses, gold=wrong)
    found = find_changes(gather(fused))
    words = found.words + found.more
    assert (
        f"The known label of 1 item contradicts a label of which the crowd was at least 95% sure: Item {sure} (known "
        f"{wrong[sure]}, crowd {alone.labels_[sure]} {confidence[sure]:.1%}). Check it." in words
    )
    before, after = alone.expected_accuracy_, fused.expected_accuracy_
    assert f"The expected accuracy of all labels changed from {before:.1%} to {after:.1%}." in words
    assert any(each.startswith("Only 2 known labels count as drawn at random. So few") for each in words)
    many = {row: int((alone.labels_[row] + 1) % 3) for row in np.argsort(-confidence)[:30].tolist()}
    words = find_changes(gather(cs.fuse(CROWD.responses, gold=many))).words
    assert any(
        re.match("Known labels of 30 items contradict labels of which.* and 20 more. Check these.", w) for w in words
    )
    assert not any("So few" in each for each in words)


def test_agreeing_labels_contradict_nothing():
    alone = cs.fuse(CROWD.responses)
    gold = dict(enumerate(alone.labels_[:40].tolist()))
    assert "contradict" not in " ".join(find_changes(gather(cs.fuse(CROWD.responses, gold=gold))).words)


def slow_interval(n_right, n):
    """Return the shares at which so many right ones, or more (fewer), have a probability of 2.5 %."""
    from scipy.stats import binom

    shares = np.linspace(0, 1, 20_001)
    inside = (binom.sf(n_right - 1, n, shares) >= 0.025) & (binom.cdf(n_right, n, shares) >= 0.025)
    return shares[inside].min(), shares[inside].max()


@pytest.mark.parametrize(("n_right", "n"), [(0, 20), (20, 20), (13, 20), (199, 200)])
def test_intervals_are_exact(n_right, n):
    assert find_interval(n_right, n) == pytest.approx(slow_interval(n_right, n), abs=1e-4)


SEQUENCES = cs.simulate.sequences(30, n_workers=4, n_classes=3, seed=1)
NETWORK = cs.simulate.network(200, n_workers=5, n_classes=3, seed=1)
SILENT = cs.Answers.from_matrix(
    np.where(np.random.default_rng(0).random((300, 4)) < 0.6, (np.arange(300) % 2)[:, None], -1),
    abstain="answer",
    background=0,
)
SOFT = cs.Answers.from_probabilities(np.random.default_rng(0).dirichlet([0.5, 0.5], (100, 4)))
ODD = {
    "em": lambda: (cs.DawidSkene(estimation="em").fit, CROWD.responses, {}),
    "one coin": lambda: (cs.DawidSkene(workers="one-coin").fit, CROWD.responses, {}),
    "moments": lambda: (cs.MomentMatching().fit, CROWD.responses, {}),
    "vote": lambda: (cs.MajorityVote().fit, CROWD.responses, {}),
    "power": lambda: (cs.DawidSkene(calibration=0.5).fit, CROWD.responses, {}),
    "chain": lambda: (cs.fuse, SEQUENCES.responses, {}),
    "network": lambda: (cs.fuse, NETWORK.responses, {"graph": NETWORK.graph}),
    "silence": lambda: (cs.DawidSkene().fit, SILENT, {}),
    "soft votes": lambda: (cs.DawidSkene().fit, SOFT, {}),
    "one class": lambda: (cs.DawidSkene().fit, cs.Answers.from_matrix(np.zeros((5, 2), int)), {}),
    "one worker": lambda: (cs.DawidSkene().fit, cs.Answers.from_matrix(np.arange(6)[:, None] % 2), {}),
    "copies": lambda: (cs.fuse, cs.Answers.from_matrix(np.repeat(np.arange(90).reshape(30, 3) % 2, 4, axis=1)), {}),
}


@pytest.mark.parametrize("name", ODD)
def test_every_kind_of_fit_is_compared_also_after_saving(name, tmp_path):
    fit, responses, more = ODD[name]()
    gold = dict.fromkeys(responses.items[:4].tolist(), responses.classes[0])
    model = fit(responses, gold=gold, **more)
    found = find_changes(gather(model))
    assert "is not shown" not in found.words[0]
    assert find_changes(gather(cs.load(model.save(tmp_path / "m.model")))) == found
    again = fit_alone(model)
    assert again.given.gold is None
    assert len(again.labels.codes) == responses.n_items
    assert not re.search(r"\bnan\b|\binf\b", " ".join(found.words))


def test_what_cannot_be_compared_is_said(monkeypatch, tmp_path):
    prior = np.tile([0.6, 0.2, 0.2], (400, 1))
    prior[200:] = [0.1, 0.1, 0.8]
    gold = {0: 0, 1: 1}
    model = cs.DawidSkene().fit(CROWD.responses, gold=gold, item_prior=prior)
    for each in (model, cs.load(model.save(tmp_path / "m.model"))):
        (words,) = find_changes(gather(each)).words
        assert words.startswith("2 labels are known. What they changed is not shown: the fit knew more of the items")
    monkeypatch.setattr(alone, "MOST_ANSWERS", 10)
    (words,) = find_changes(gather(cs.DawidSkene().fit(CROWD.responses, gold={0: 0}))).words
    assert words.startswith("1 label is known. What it changed is not shown: there are so many answers")


def test_a_round_of_review_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = CROWD.responses
    rows = zip(r.item_of_answer().tolist(), r.worker.tolist(), r.label.tolist(), strict=True)
    lines = ["item,worker,label", *(f"i{item},w{worker},<b>{label}" for item, worker, label in rows)]
    (tmp_path / "answers.csv").write_text("\n".join(lines))
    assert run("fuse", "answers.csv", "--save", "m.model", "--report", "first.html", "-q").exit_code == 0
    assert "known labels changed" not in (tmp_path / "first.html").read_text("utf-8")
    listed = cs.load("m.model").next_items(40).to_pylist()
    for number, part in enumerate((listed[:20], listed[20:]), 1):
        rows = [f"{row['item']},<b>{TRUTH[int(row['item'][1:])]},{str(row['random']).lower()}" for row in part]
        (tmp_path / f"round{number}.csv").write_text("\n".join(["item,label,random", *rows]))
    result = run(
        "fuse", "answers.csv", "--gold", "round1.csv", "--gold", "round2.csv", "--report", "r.html", "--save", "b.model"
    )
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "What the known labels changed" in page
    assert "40 labels are known. " in page
    assert "<b>0" not in page
    assert cs.load("b.model").calibration_.n_gold == 8
    (tmp_path / "round2.csv").write_text(
        f"item,label\n{listed[0]['item']},<b>{(TRUTH[int(listed[0]['item'][1:])] + 1) % 3}\n"
    )
    result = run("fuse", "answers.csv", "--gold", "round1.csv", "--gold", "round2.csv")
    assert result.exit_code == 2
    assert f"1 item more than one label, such as '{listed[0]['item']}'" in result.stderr
    assert run("fuse", "answers.csv", "--gold", "-", "--gold", "-", "--graph", "-").exit_code == 2


def test_files_without_answers_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text("item,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n")
    assert run("fuse", "answers.csv", "--save", "m.model", "--no-answers", "-q").exit_code == 0
    with pytest.raises(cs.errors.NotFittedError, match="holds no answers"):
        cs.load("m.model").responses_  # noqa: B018
    result = run("fuse", "answers.csv", "--no-answers")
    assert result.exit_code == 2
    assert "--no-answers needs --save" in result.stderr


def test_workers_with_few_answers_are_not_listed():
    answers = np.full((60, 4), -1)
    answers[:, :3] = (np.arange(60) % 2)[:, None]
    answers[0, 3] = 0
    model = cs.DawidSkene(calibration="none").fit(cs.Answers.from_matrix(answers), gold={0: 1, 2: 1, 4: 1})
    assert [row[0] for row in find_changes(gather(model)).tables[0].rows] == ["0", "1", "2"]
