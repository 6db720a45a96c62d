"""Tables of platforms, wide tables and matrices, written from their published descriptions."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import consilience as cs
from consilience import answers as register
from consilience.answers import DIALECTS
from consilience.errors import DataWarning, InputError, ParameterError
from consilience.formats.writing import write_table


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty working folder, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return name


def refusal(*arguments, **keywords) -> str:
    with pytest.raises(InputError) as caught:
        cs.read_answers(*arguments, **keywords)
    return str(caught.value)


def triples(r: cs.Answers) -> list[tuple]:
    """All answers as (item, worker, label)."""
    names = zip(
        r.items[r.item_of_answer()].tolist(), r.workers[r.worker].tolist(), r.labels[r.label].tolist(), strict=True
    )
    return sorted(names, key=str)


# MTurk

MTURK = (
    "HITId,HITTypeId,Title,AssignmentId,WorkerId,AssignmentStatus,Input.image_url,Answer.category.label,Approve,Reject"
)


def test_mturk(folder):
    write(
        "batch.csv",
        MTURK,
        '3XYZ,T,"Cats, or dogs?",A1,W1,Approved,http://x/1.png,Cat,,',
        '3XYZ,T,"Cats, or dogs?",A2,W2,Rejected,http://x/1.png,Dog,,spam',
        '3ABC,T,"Cats, or dogs?",A3,W2,Submitted,http://x/2.png,Dog,,',
    )
    with pytest.warns(DataWarning, match=r"1 row of batch.csv was left out as rejected \(column 'AssignmentStatus'\)"):
        r = cs.read_answers("batch.csv")
    assert triples(r) == [("http://x/1.png", "W1", "Cat"), ("http://x/2.png", "W2", "Dog")]
    assert r.format == "mturk"
    assert r.columns == {"item": "Input.image_url", "worker": "WorkerId", "label": "Answer.category.label"}
    with pytest.warns(DataWarning, match="left out as rejected"):
        assert cs.read_answers("batch.csv", item="HITId").items.tolist() == ["3XYZ", "3ABC"]
    # All rows, by the names of columns alone.
    everything = cs.read_answers("batch.csv", format="long", label="Answer.category.label")
    assert (everything.n_responses, everything.format, everything.columns["item"]) == (3, "", "HITId")


def test_mturk_radio_buttons(folder):
    """Crowd HTML elements give each option a column; upper and lower case, and empty cells, occur."""
    write(
        "batch.csv",
        "HITId,WorkerId,AssignmentStatus,Input.a,Input.b,Answer.animal.cat,Answer.animal.big.dog,Answer.animal.dog",
        "h1,w1,Approved,1,2,true,,false",
        "h1,w2,Approved,1,2,false,,TRUE",
        "h2,w1,Approved,1,3,,,true",
    )
    # A dot in an option makes another question, which nobody answered.
    r = cs.read_answers("batch.csv", label="Answer.animal")
    assert triples(r) == [("h1", "w1", "cat"), ("h1", "w2", "dog"), ("h2", "w1", "dog")]
    assert cs.read_answers("batch.csv").columns["label"] == "Answer.animal"


def test_mturk_boxes(folder):
    """Boxes of which several can be ticked are a question each."""
    write("batch.csv", "HITId,WorkerId,Answer.has.cat,Answer.has.dog", "h1,w1,true,true", "h1,w2,false,true")
    assert "2 questions: 'Answer.has.cat', 'Answer.has.dog'. Choose one with label=" in refusal("batch.csv")
    r = cs.read_answers("batch.csv", label="Answer.has.cat")
    assert triples(r) == [("h1", "w1", "true"), ("h1", "w2", "false")]


def test_mturk_json(folder):
    rows = [
        ("h1", "w1", '[{"animal":{"cat":true,"dog":false},"note":"clear"}]'),
        ("h1", "w2", '{"animal":{"cat":false,"dog":true},"note":""}'),
        ("h2", "w1", '[{"animal":{"label":"bird"}}]'),
        ("h2", "w2", "[]"),
    ]
    frame = pd.DataFrame(rows, columns=["HITId", "WorkerId", "Answer.taskAnswers"])
    frame.to_csv("batch.csv", index=False)
    assert "4 questions: 'Answer.animal.cat'" in refusal("batch.csv")
    frame[:2].to_csv("batch.csv", index=False)
    r = cs.read_answers("batch.csv", label="Answer.animal")
    assert triples(r) == [("h1", "w1", "cat"), ("h1", "w2", "dog")]
    for text in ("{", "7", "[1, 2]", "[" * 10_000, '[{"a": 1}, {"a": 2}]'):
        frame.loc[1, "Answer.taskAnswers"] = text
        frame.to_csv("batch.csv", index=False)
        assert "must hold one JSON object per row. Got " in refusal("batch.csv")
        assert "at batch.csv, line 3" in refusal("batch.csv")


# Toloka


def test_toloka(folder):
    write(
        "assignments.tsv",
        "INPUT:image\tOUTPUT:result\tGOLDEN:result\tHINT:text\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\tASSIGNMENT:status",
        "1.png\tcat\tcat\t\tt1\tw1\tAPPROVED",
        "1.png\tdog\tcat\t\tt1\tw2\tAPPROVED",
        "",
        "\t\t\t\t\t\t",
        '"2 ""big"".png"\tdog\t\t\tt2\tw1\tSUBMITTED',
        "1.png\tcat\tcat\t\tt1\tw3\tREJECTED",
    )
    with pytest.warns(DataWarning, match="1 row of assignments.tsv was left out as rejected"):
        r = cs.read_answers("assignments.tsv")
    assert triples(r) == [("1.png", "w1", "cat"), ("1.png", "w2", "dog"), ('2 "big".png', "w1", "dog")]
    assert (r.format, dict(r.gold)) == ("toloka", {"1.png": "cat"})


# Appen

APPEN = "_unit_id,_golden,_tainted,_trust,_worker_id,is_cat,is_cat_gold,is_cat_gold_reason,url"


def test_appen(folder):
    write(
        "full.csv",
        APPEN,
        "1,true,false,0.9,11,yes,yes,whiskers,http://x",
        "1,true,false,0.8,12,no,yes,whiskers,http://x",
        "2,false,true,0.2,12,no,,,http://y",
        "2,false,false,0.9,11,no,,,http://y",
        '3,TRUE,false,0.9,11,no,"yes\nno",,http://z',
    )
    with pytest.warns(DataWarning, match="1 row of full.csv was left out as not to be trusted"):
        r = cs.read_answers("full.csv")
    assert triples(r) == [(1, 11, "yes"), (1, 12, "no"), (2, 11, "no"), (3, 11, "no")]
    # Where several answers are accepted, no label is known.
    assert (r.format, dict(r.gold)) == ("appen", {1: "yes"})


# Wide tables and matrices

WIDE = {"image_id": [1, 2, 3], "ann": ["cat", "dog", None], "bob": ["dog", "dog", None], "eve": [None, "cat", None]}
LONG = [(1, "ann", "cat"), (1, "bob", "dog"), (2, "ann", "dog"), (2, "bob", "dog"), (2, "eve", "cat")]


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_wide(make):
    with pytest.warns(DataWarning, match="has no column of workers. Each of these columns is taken for one: 'ann'"):
        r = cs.Answers.from_frame(make(WIDE))
    assert triples(r) == LONG
    assert r.format == "wide"
    assert r.items.tolist() == [1, 2, 3]  # also the one that nobody answered
    assert triples(cs.Answers.from_frame(make(WIDE), format="wide")) == LONG
    with pytest.raises(InputError, match="no column for the worker"):
        cs.Answers.from_frame(make(WIDE), format="long")


def test_columns_of_a_wide_table_that_share_nothing_with_others():
    table = pd.DataFrame({"id": range(30), **{name: ["cat", "dog"] * 15 for name in ("ann", "bob", "eve")}})
    with pytest.warns(DataWarning, match="many values that no other column holds are left out: 'text'.* ignore="):
        r = cs.Answers.from_frame(table.assign(text=[f"t{n}" for n in range(30)]), format="wide")
    assert [r.workers.tolist(), r.labels.tolist()] == [["ann", "bob", "eve"], ["cat", "dog"]]
    with pytest.warns(DataWarning, match="No other column of .* any of the values of 'batch'. Each .* for a worker"):
        r = cs.Answers.from_frame(table.assign(batch="first"), format="wide")
    assert r.n_workers == 4


def test_wide_gold():
    r = cs.Answers.from_frame({**WIDE, "truth": ["cat", None, "dog"]}, format="wide")
    assert triples(r) == LONG
    assert dict(r.gold) == {1: "cat"}  # nobody answered the other


@pytest.mark.parametrize(
    "table",
    [
        {"item": [1, 2], "x": [0.5, 0.7], "y": [0.5, 0.1]},
        {"item": [1, 2], "text": ["a", "b"], "note": ["c", "d"]},
        {"item": [1, 2], "ann": ["cat", "dog"]},
        {"item": range(30), "x": range(30), "y": range(30)},
        {"name": [1, 2], "ann": ["cat", "dog"], "bob": ["cat", "dog"]},
        {"item": [1, 1], "first": ["cat", "dog"], "second": ["cat", "dog"]},
        {"item": [1, 2], "ann": ["cat", "dog"], "bob": ["cat", "dog"], "Consensus": ["cat", "dog"]},
        {"item": [1, 2], "ann": [0, 1], "bob": [0, 1], "is_duplicate": [0, 1]},
    ],
)
def test_not_wide(table):
    with pytest.raises(InputError, match="has no column"):
        cs.Answers.from_frame(table)


NOTED = {**WIDE, "note": ["x", "y", "z"], "by": ["cat", "ann", "ann"]}


@pytest.mark.parametrize("form", [None, "wide"])
@pytest.mark.filterwarnings("ignore:the table has no column of workers")
def test_ignored_columns_are_no_workers(form):
    assert triples(cs.Answers.from_frame(NOTED, format=form, ignore=["note", "by"])) == LONG
    assert triples(cs.Answers.from_frame({**WIDE, "note": [*"xyz"]}, format=form, ignore="note")) == LONG
    with pytest.raises(InputError, match=r"has no column 'nota'. It has"):
        cs.Answers.from_frame(NOTED, format=form, ignore=["nota"])
    with pytest.raises(ParameterError, match="'ignore' parameter"):
        cs.Answers.from_frame(NOTED, format=form, ignore=3)


def test_wide_equals_long():
    """A slow twin: each cell that is not empty, one by one."""
    rng = np.random.default_rng(0)
    cells = rng.integers(-1, 3, (40, 6))
    frame = pd.DataFrame(np.where(cells < 0, None, cells.astype(str)), columns=list("abcdef"), dtype=object)
    frame.insert(0, "task_id", [f"t{n}" for n in range(40)])
    expected = [(f"t{n}", "abcdef"[w], str(cells[n, w])) for n in range(40) for w in range(6) if cells[n, w] >= 0]
    with pytest.warns(DataWarning, match="taken for one: 'a', 'b', 'c', 'd', 'e', 'f'\\."):
        assert triples(cs.Answers.from_frame(frame)) == sorted(expected, key=str)


def functions(n_items=60):
    """Votes of six labelling functions, three for each side, which are silent about most items."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, n_items)
    side = np.arange(6) % 2
    return np.where((truth[:, None] == side) & (rng.random((n_items, 6)) < 0.6), side, -1)


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.parametrize("item", [None, "item", "doc"])
def test_silence_of_labelling_functions_is_recognised(folder, item):
    """As in a .npy file, without an option: -1 is most of the cells."""
    votes = functions()
    np.save("L.npy", votes)
    frame = pd.DataFrame(votes, columns=[f"lf_{w}" for w in range(6)])
    if item is not None:
        frame.insert(0, item, np.arange(60))
    write_table(pa.Table.from_pandas(frame, preserve_index=False), "L.csv")
    with pytest.warns(DataWarning, match="Most cells of .* are -1.* no answer.* format='matrix'.* format='wide'"):
        r = cs.read_answers("L.csv")
    expected = cs.read_answers("L.npy")
    assert r.format == "matrix"
    assert r.labels.tolist() == [0, 1]
    assert (r.n_items, r.n_workers, r.n_responses) == (60, 6, expected.n_responses)
    np.testing.assert_array_equal(r.label, expected.label)
    if item == "item":
        assert -1 in cs.read_answers("L.csv", format="wide").labels


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.parametrize(
    "cells",
    [
        np.where(functions() < 0, 0, functions() - 1),  # a rating, of which a few are -1
        np.where(functions() < 0, -1, 1),  # yes and no
        np.where(functions() < 0, -1, -2),
        np.random.default_rng(0).choice([-1, 0, 1], p=[0.6, 0.25, 0.15], size=(60, 6)),  # sentiment
    ],
)
def test_minus_one_may_be_an_answer(cells):
    frame = pd.DataFrame(cells, columns=list("abcdef"))
    frame.insert(0, "item", np.arange(60))
    with pytest.warns(DataWarning, match="Each of these columns is taken for one"):
        r = cs.Answers.from_frame(frame)
    assert r.format == "wide"
    assert -1 in r.labels


def test_matrix(folder):
    matrix = np.array([[0, 1, -1], [1, 1, -1], [-1, -1, -1], [1, -1, 0]])
    np.save("L.npy", matrix)
    expected = cs.Answers.from_matrix(matrix)
    for r in (cs.read_answers("L.npy"), cs.Answers.from_frame(pd.DataFrame(matrix), format="matrix")):
        assert triples(r) == triples(expected)
        assert r.items.tolist() == [0, 1, 2, 3]
        assert r.workers.tolist() == [0, 1, 2]
        assert r.format == "matrix"
    pd.DataFrame(matrix, columns=["lf_a", "lf_b", "lf_c"]).to_csv("L.csv", index=False)
    r = cs.read_answers("L.csv", format="matrix", abstain="answer", background=0)
    assert r.workers.tolist() == ["lf_a", "lf_b", "lf_c"]
    assert r.silence_counts


@pytest.mark.parametrize("first", [range(6), range(10, 16), [*"uvwxyz"]])
def test_ids_in_a_matrix_are_no_worker(folder, first):
    """As numbers, ids may be labels too."""
    matrix = np.array([[0, 1, -1], [1, 1, -1], [-1, -1, -1], [1, -1, 0], [0, 0, 0], [0, -1, 0]])
    frame = pd.DataFrame(matrix, columns=["lf_a", "lf_b", "lf_c"])
    expected = triples(cs.Answers.from_matrix(matrix, items=list(first), workers=["lf_a", "lf_b", "lf_c"]))
    for name in ("id", "key"):
        frame.assign(**{name: first})[[name, "lf_a", "lf_b", "lf_c"]].to_csv("L.csv", index=False)
        doubt = pytest.warns(DataWarning, match="'key', is taken for ids of the items.* name it: item='key'")
        with doubt if name == "key" else nullcontext():
            r = cs.read_answers("L.csv", format="matrix")
        assert triples(r) == expected
        assert r.items.tolist() == list(first)
        assert triples(cs.read_answers("L.csv", format="matrix", item=name)) == expected
    np.save("L.npy", np.column_stack([np.arange(100, 106), matrix]))
    with pytest.warns(DataWarning, match="The first column of L.npy, '0', is taken for ids"):
        assert cs.read_answers("L.npy").n_workers == 3


def test_damaged_matrix(folder):
    np.save("cube.npy", np.zeros((2, 2, 2, 2)))
    assert "must hold a matrix with items as rows" in refusal("cube.npy")
    np.save("objects.npy", np.array([[{}, []]], dtype=object), allow_pickle=True)
    assert "'objects.npy' cannot be read" in refusal("objects.npy")
    np.save("good.npy", np.zeros((100, 3), int))
    Path("cut.npy").write_bytes(Path("good.npy").read_bytes()[:500])
    assert "'cut.npy' cannot be read" in refusal("cut.npy")
    Path("text.npy").write_text("item,label")
    assert "'text.npy' cannot be read" in refusal("text.npy")


TOY = """
from dataclasses import replace


def read_toy(table, names, named):
    return replace(table, preferred={"item": "thing", "worker": "voice", "label": "word"})
"""


def test_a_new_dialect_is_a_file_and_a_line(folder, monkeypatch):
    write("toy.py", TOY)
    toys = register.Dialect("toy", "toys that speak", "toy", needed=("thing", "voice", "word"))
    monkeypatch.setattr(register, "__path__", [*register.__path__, str(folder)])
    monkeypatch.setattr(register, "DIALECTS", (*DIALECTS, toys))
    monkeypatch.setattr("consilience.answers.tables.DIALECTS", (*DIALECTS, toys))
    table = {"thing": [1, 1, 2], "voice": ["bear", "doll", "bear"], "word": ["yes", "no", "no"]}
    for answers in (cs.Answers.from_frame(table), cs.Answers.from_frame(table, format="toy")):
        assert (answers.format, answers.columns["worker"], answers.workers.tolist()) == (
            "toy",
            "voice",
            ["bear", "doll"],
        )
    with pytest.raises(InputError, match="no column 'voice', 'word', as toys that speak have"):
        cs.Answers.from_frame({"thing": [1], "who": ["bear"], "said": ["yes"]}, format="toy")
