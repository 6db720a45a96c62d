"""What a report says of known labels, compared with fits that are made here."""

from __future__ import annotations

import re

import numpy as np
import pytest

import consilience as cs
from command_line import run
from consilience.documents.document import Document, Text
from consilience.documents.items import describe_known
from consilience.documents.view import View

pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

CROWD = cs.simulate.independent(400, n_workers=12, n_classes=3, answers_per_item=4, seed=1)
TRUTH = np.asarray(CROWD.truth)


def reviewed(model, truth, n=100, **more):
    """Return what a reviewer who knows the truth makes of the list of items to label."""
    listed = model.next_items(n).to_pydict()
    keys = listed["item"] if "item" in listed else list(zip(listed["sequence"], listed["position"], strict=True))
    codes = dict(zip(model.result_.answers.items.tolist(), np.asarray(truth).tolist(), strict=True))
    return {**listed, "label": [model.classes_[codes[key]] for key in keys], **more}


def say(model) -> list[str]:
    """Return the sentences of the section."""
    return [
        sentence for text in Document("", "", describe_known(View(model))).find(Text) for sentence in text.sentences
    ]


def test_the_words_count_what_differs_from_the_answers_alone():
    alone = cs.fuse(CROWD.responses)
    gold = reviewed(alone, TRUTH)
    fused = cs.fuse(CROWD.responses, gold=gold)
    words, rows = say(fused), np.array(gold["item"])
    text = " ".join(words)
    assert words[0] == "100 labels are known."
    n_differ = int(re.search(r"(\d+) of them differ from what the answers say", text)[1])
    # Parameters know these labels, each item's own aside, so that little separates it from a fit that does not.
    assert abs(n_differ - int((alone.labels_[rows] != TRUTH[rows]).sum())) <= 5
    drawn = rows[np.array(gold["random"])]
    n_right = fused.result_.calibrated.calibration.n_right
    assert f"right about {n_right} of 20 known items that were drawn at random ({n_right / 20:.1%})" in text
    assert abs(n_right - int((alone.labels_[drawn] == TRUTH[drawn]).sum())) <= 1


def test_known_labels_that_contradict_a_sure_crowd_are_named():
    alone = cs.fuse(CROWD.responses)
    confidence = np.asarray(alone.to_frame()["confidence"])
    sure, unsure = int(confidence.argmax()), int(confidence.argmin())
    wrong = {row: int((alone.labels_[row] + 1) % 3) for row in (sure, unsure)}
    words = say(cs.fuse(CROWD.responses, gold=wrong))
    named = f"Item {sure} (known {wrong[sure]}, crowd {alone.labels_[sure]} "
    start = "1 known label contradicts a label of which the crowd was at least 95% sure: "
    assert any(each.startswith(f"{start}{named}") and each.endswith("%). Check this.") for each in words)
    assert any(each.startswith("Only 2 known labels count as drawn at random.") for each in words)
    many = dict(enumerate(alone.labels_[:100].tolist()))
    many |= {row: (many[row] + 1) % 3 for row in np.argsort(-confidence[:100])[:6].tolist()}
    words = say(cs.fuse(CROWD.responses, gold=many))
    assert any(re.match("[3456] known labels contradict labels.* Check this.", each) for each in words)
    assert not any("So few" in each for each in words)


def test_a_round_of_review_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = CROWD.responses
    rows = zip(r.item_of_answer().tolist(), r.worker.tolist(), r.label.tolist(), strict=True)
    lines = ["item,worker,label", *(f"i{item},w{worker},<b>{label}" for item, worker, label in rows)]
    (tmp_path / "answers.csv").write_text("\n".join(lines))
    assert run("fuse", "answers.csv", "--save", "m.model", "--report", "first.html", "-q").exit_code == 0
    assert "known labels say" not in (tmp_path / "first.html").read_text("utf-8")
    listed = cs.load("m.model").next_items(40).to_pylist()
    for number, part in enumerate((listed[:20], listed[20:]), 1):
        rows = [f"{row['item']},<b>{TRUTH[int(row['item'][1:])]},{str(row['random']).lower()}" for row in part]
        (tmp_path / f"round{number}.csv").write_text("\n".join(["item,label,random", *rows]))
    result = run(
        "fuse", "answers.csv", "--gold", "round1.csv", "--gold", "round2.csv", "--report", "r.html", "--save", "b.model"
    )
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "What the known labels say" in page
    assert "40 labels are known. " in page
    assert "<b>0" not in page
    assert cs.load("b.model").result_.calibrated.calibration.n_gold == 8
    (tmp_path / "round2.csv").write_text(
        f"item,label\n{listed[0]['item']},<b>{(TRUTH[int(listed[0]['item'][1:])] + 1) % 3}\n"
    )
    result = run("fuse", "answers.csv", "--gold", "round1.csv", "--gold", "round2.csv")
    assert result.exit_code == 2
    assert f"1 item more than one label, such as '{listed[0]['item']}'" in result.stderr
    assert run("fuse", "answers.csv", "--gold", "-", "--gold", "-", "--graph", "-").exit_code == 2
