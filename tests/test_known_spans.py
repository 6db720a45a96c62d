"""Known spans and masks, in files of their own."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from command_line import run
from consilience.errors import DataWarning, InputError, ParameterError
from effort import rest_robust
from marked_texts import mark

EXAMPLES = Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Spans of workers in one file, and those that are known in others."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES / "label_studio.json", "both.json")
    both = cs.read_spans("both.json")
    tasks = json.loads(Path("both.json").read_text())
    for task in tasks:
        task["annotations"] = [each for each in task["annotations"] if not each.get("ground_truth")]
    Path("workers.json").write_text(json.dumps(tasks))
    assert cs.read_spans("workers.json").gold is None
    texts, known = {}, {}
    for document in both.gold_documents.tolist():
        rows = np.flatnonzero(both.gold.document == document).tolist()
        spans = [(int(both.gold.start[n]), int(both.gold.end[n]), both.labels[both.gold.label[n]]) for n in rows]
        texts[both.documents[document]] = both.texts[document]
        known[both.documents[document], "expert"] = spans
    cs.write_spans(mark(texts, known), "expert.jsonl", format="prodigy")
    cs.write_spans(both, "known.json", format="label-studio")
    return both


@pytest.mark.parametrize("file", rest_robust(["expert.jsonl", "both.json", "known.json"]))
def test_known_spans_of_another_file_are_those_of_the_same(project, file):
    """Known ones beside those of workers count, or else those of the only worker."""
    expected = cs.fuse(project, calibration="none")
    known = cs.read_spans(file)
    for gold in (file, [known]):
        found = cs.fuse("workers.json", gold=gold, calibration="none")
        assert found.to_spans().to_pylist() == expected.to_spans().to_pylist()
    plain = ("--calibration", "none", "--json")
    figures = json.loads(run("fuse", "workers.json", "--gold", file, *plain, "-o", "fused.json").stdout)
    assert figures["gold"] == int((expected.result_.given.gold.codes >= 0).sum()) > 0
    assert figures["spans"]["fused"] == len(expected.to_spans())
    assert run("evaluate", "fused.json", file).exit_code == 0


def test_known_spans_that_do_not_fit(project):
    spans = project.without_gold()
    with pytest.raises(InputError, match="No spans are known: there are those of 4 workers"):
        spans.with_gold(spans)
    assert "No spans are known" in run("fuse", "workers.json", "--gold", "workers.json").stderr
    with pytest.raises(InputError, match="In 10 documents, such as 1, the text is not the one whose spans are known"):
        spans.with_gold(replace(project, texts=[f"{text}." for text in project.texts]))
    with pytest.raises(InputError, match="No document is in both"):
        spans.with_gold(replace(project, documents=project.documents + 1000))
    with pytest.raises(InputError, match="The spans of 10 documents are given twice as known, such as 1"):
        project.with_gold(project)
    with pytest.raises(ParameterError, match="must be a Spans, such as read_spans returns"):
        spans.with_gold("both.json")
    elsewhere = project.documents.copy()
    elsewhere[0] = 1000
    with pytest.warns(DataWarning, match="1 of 10 documents whose spans are known do not occur here"):
        assert len(spans.with_gold(replace(project, documents=elsewhere)).gold_documents) == 9


# ---------------------------------------------------------------------------------------------------------------- masks


@pytest.fixture
def masks(tmp_path, monkeypatch):
    """Masks of three readers in .npy files, and a known one of one image."""
    monkeypatch.chdir(tmp_path)
    truth = np.zeros((12, 10), np.uint8)
    truth[3:8, 2:7] = 7
    rng = np.random.default_rng(0)
    for reader in ("ann", "bob", "cy"):
        Path("readers", reader).mkdir(parents=True)
        for image in ("x", "y"):
            wrong = rng.random(truth.shape) < 0.05
            right = truth if image == "y" else np.roll(truth, 5, axis=1)
            np.save(f"readers/{reader}/{image}.npy", np.where(wrong, 7 - right, right).astype(np.uint8))
    Path("known/expert").mkdir(parents=True)
    np.save("known/expert/y.npy", truth)
    return truth


@pytest.mark.parametrize("by_image", rest_robust([True, False]))
def test_known_masks(masks, by_image):
    if by_image:
        Path("known/y").mkdir()
        shutil.move("known/expert/y.npy", "known/y/expert.npy")
        Path("known/expert").rmdir()
    read = cs.read_masks("readers")
    first = int(read.offsets[read.images.tolist().index("y")])
    expected = cs.fuse(read, gold=dict(enumerate(masks.ravel().tolist(), first)))
    figures = json.loads(run("fuse", "readers", "--gold", "known", "-o", "fused", "--json").stdout)
    assert figures["gold"] == masks.size
    np.testing.assert_array_equal(np.load("fused/y.npy"), masks)
    for gold in ("known", cs.read_masks("known", folders="images" if by_image else "readers")):
        found = cs.fuse("readers", gold=gold)
        assert found.labels_.tolist() == expected.labels_.tolist()


def test_known_answers_of_a_tool_give_way_to_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def answer(who, label, **more):
        pick = {"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": who, "result": [pick], **more}

    tasks = [
        {"id": n, "data": {"text": "T"}, "annotations": [answer(w, "cat" if (n + w) % 3 else "dog") for w in (1, 2, 3)]}
        for n in range(20)
    ]
    tasks[0]["annotations"].append(answer(9, "dog", ground_truth=True))
    Path("tasks.json").write_text(json.dumps(tasks))
    Path("gold.csv").write_text("item,label\n7,dog\n8,cat\n")
    figures = json.loads(run("fuse", "tasks.json", "--calibration", "none", "--json").stdout)
    assert (figures["gold"], figures["columns"]["gold"]) == (1, "gold")
    figures = json.loads(run("fuse", "tasks.json", "--gold", "gold.csv", "--calibration", "none", "--json").stdout)
    assert figures["gold"] == 2
    assert "gold" not in figures["columns"]


@pytest.fixture
def tables(project):
    """The known spans as a table, with a row for each document without any, and the spans of all workers."""
    gold, documents, labels = project.gold, project.documents, project.labels
    rows = ["document,start,end,label"]
    for document in project.gold_documents.tolist():
        mine = np.flatnonzero(gold.document == document).tolist()
        spans = [f"{documents[document]},{gold.start[n]},{gold.end[n]},{labels[gold.label[n]]}" for n in mine]
        rows += spans or [f"{documents[document]},,,"]
    Path("expert.csv").write_text("\n".join(rows) + "\n")
    assert run("convert", "workers.json", "spans.csv").exit_code == 0
    return project


def test_known_spans_may_be_a_table(tables):
    """The texts are those of the answers, or not needed."""
    expected = cs.fuse(tables, calibration="none")
    found = cs.fuse("workers.json", gold="expert.csv", calibration="none")
    assert found.to_spans().to_pylist() == expected.to_spans().to_pylist()
    piped = run("fuse", "workers.json", "--gold", "-", "--json", standard_input=Path("expert.csv").read_text())
    assert json.loads(piped.stdout)["gold"] == int((expected.result_.given.gold.codes >= 0).sum())
    blind = cs.fuse("workers.json", calibration="none")
    cs.write_spans(blind.to_span_set(), "fused.json", format="label-studio")
    assert run("fuse", "workers.json", "--calibration", "none", "-o", "fused.csv").exit_code == 0
    wanted = cs.evaluate(blind, tables)
    for labels in (blind, "fused.json", "fused.csv"):
        assert cs.evaluate(labels, "expert.csv") == wanted


def test_a_table_of_spans_must_fit_the_texts(tables):
    document, text = tables.documents[0], tables.texts[0]
    wrong = {"document": [document], "start": [0], "end": [3], "label": ["PER"], "text": [text]}
    assert cs.fuse(tables, gold=wrong, calibration="none")
    with pytest.raises(InputError, match="not within their text"):
        cs.fuse(tables, gold={**wrong, "end": [10**15]})
    with pytest.raises(InputError, match=r"spans\.csv holds the spans of \d+ workers"):
        cs.fuse(tables, gold="spans.csv")
