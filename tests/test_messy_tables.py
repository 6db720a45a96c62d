"""Tables as people have them: other names of columns, missing answers, known labels beside answers, streams."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import consilience as cs
from command_line import run
from consilience.errors import DataWarning, InputError, ParameterError

LINES = ["item,worker,label", "1,ann,cat", "1,bob,dog", "2,ann,cat", "2,bob,cat"]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty working folder, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return name


def make_table(**columns) -> dict:
    """A table of four answers, in which columns may have other names."""
    return {"item": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": ["x", "y", "x", "x"], **columns}


def rename(old: str, *new: str) -> dict:
    table = make_table()
    values = table.pop(old)
    return {**table, **dict.fromkeys(new, values)}


# Names of columns


@pytest.mark.parametrize(
    ("role", "name"),
    [
        *(("item", name) for name in ("task_id", "item_id", "Image ID", "promptId", "question-id", "unit_id", "HITId")),
        *(("item", name) for name in ("audio", "Student ID", "row", "Image Name")),
        *(("worker", name) for name in ("grader", " Annotator Name", "Grader name")),
        *(("worker", name) for name in ("worker_id", "rater", "user_id", "performer", "WorkerID", "coder", "model")),
        *(("label", name) for name in ("verdict", "category", "class", "choice", "annotation", "rating", "Value")),
    ],
)
def test_other_names(role, name):
    assert cs.Answers.from_frame(rename(role, name)).columns[role] == name


@pytest.mark.parametrize(("role", "names"), [("label", ("category", "verdict")), ("worker", ("rater", "annotator_id"))])
def test_several_names(role, names):
    with pytest.raises(InputError, match=f"2 columns that may be the {role}: '{names[0]}', '{names[1]}'. Choose one"):
        cs.Answers.from_frame(rename(role, *names))
    assert cs.Answers.from_frame(rename(role, *names), **{role: names[1]}).columns[role] == names[1]


def test_row_numbers_of_answers_are_no_items():
    with pytest.raises(InputError, match="no column for the item"):
        cs.Answers.from_frame(rename("item", "picture of the thing") | {"row": [0, 1, 2, 3]})


def make_pivot(**named) -> pd.DataFrame:
    frame = pd.DataFrame(make_table(**named))
    return frame.pivot(index="item", columns="worker", values="label")


@pytest.mark.parametrize(
    "make",
    [
        lambda: [dict(zip(make_table(), row, strict=True)) for row in zip(*make_table().values(), strict=True)],
        lambda: pd.DataFrame(make_table()).set_index(["item", "worker"]),
        lambda: pd.DataFrame(make_table()).set_index("worker"),
        make_pivot,
    ],
    ids=["records", "two in the index", "worker in the index", "pivot"],
)
@pytest.mark.filterwarnings("ignore::consilience.errors.DataWarning")
def test_records_and_tables_with_an_index(make):
    read, plain = cs.Answers.from_frame(make()), cs.Answers.from_frame(make_table())
    assert read.items.tolist() == plain.items.tolist()
    assert read.workers.tolist() == plain.workers.tolist()
    assert [read.labels[k] for k in read.label] == [plain.labels[k] for k in plain.label]


def test_an_index_is_left_alone_where_a_column_plays_its_role():
    frame = pd.DataFrame(make_table(), index=pd.Index([7, 8, 9, 10], name="id"))
    assert cs.Answers.from_frame(frame).columns["item"] == "item"


def test_row_numbers():
    """An id that is a number of rows gives way to a name of items; one that is not, does not."""
    table = rename("item", "image_id")
    assert cs.Answers.from_frame({"id": [1, 2, 3, 4], **table}).columns["item"] == "image_id"
    assert cs.Answers.from_frame({"id": [1, 1, 2, 2], **table}).columns["item"] == "id"


# Known labels beside the answers


def test_gold_column():
    r = cs.Answers.from_frame(make_table(gold=["y", "y", None, None]))
    assert (dict(r.gold), r.columns["gold"]) == ({1: "y"}, "gold")
    assert cs.Answers.from_frame(make_table(gold=["y", "y", None, None]), gold=False).gold is None
    assert dict(cs.Answers.from_frame(make_table(known=[None, "y", None, None]), gold="known").gold) == {1: "y"}
    assert cs.Answers.from_frame(make_table(truth=[None] * 4)).gold is None
    with pytest.raises(InputError, match="has no column 'known'"):
        cs.Answers.from_frame(make_table(), gold="known")
    with pytest.raises(ParameterError, match="'gold' parameter"):
        cs.Answers.from_frame(make_table(), gold=3)


def test_conflicting_gold(folder):
    write("a.csv", "item,worker,label,truth", "1,a,x,x", "1,b,y,y")
    with pytest.raises(InputError, match=r"Column 'truth' of a.csv gives 1 item more than one .* at a.csv, line 3"):
        cs.read_answers("a.csv")
    result = run("fuse", "a.csv")
    assert result.exit_code == 2
    assert "To leave it out, use --ignore-gold." in result.stderr
    # Where it is not used, it does not matter.
    assert cs.DawidSkene().fit("a.csv").n_iter_ > 0
    assert cs.fuse("a.csv", gold={1: "x"}).labels_.tolist() == ["x"]


def test_gold_that_is_none():
    """A flag, or a class that nobody said, is told and left out; not if the user named the column."""
    frame, _ = make_crowd(20)
    plain = cs.fuse(frame, gold=False)
    for values in (frame["truth"].notna(), frame["truth"].map({0: "no", 1: "yes"})):
        with pytest.warns(DataWarning, match="Column 'truth' is not used as known labels: it holds"):
            assert np.array_equal(cs.fuse(frame.assign(truth=values)).posterior_, plain.posterior_)
    # What differs from answer to answer, and holds no classes, is none. A class that nobody said is one.
    assert cs.Answers.from_frame(make_table(gold=[True, False, True, True])).gold is None
    assert cs.Answers.from_frame(make_table(gold=["z", "z", None, None]), classes=["x", "y", "z"]).gold == {1: "z"}


def make_crowd(known: int) -> tuple[pd.DataFrame, dict]:
    crowd = cs.simulate.independent(n_items=60, n_workers=8, n_classes=2, seed=1)
    r = crowd.responses
    item = r.item_of_answer()
    truth = np.asarray(crowd.truth)[item]
    frame = pd.DataFrame({"item": r.items[item], "worker": r.workers[r.worker], "label": r.labels[r.label]})
    frame["truth"] = pd.Series(truth).where(item < known)
    return frame, dict(zip(r.items.tolist(), np.asarray(crowd.truth).tolist(), strict=True))


def test_fuse_with_a_gold_column():
    frame, truth = make_crowd(20)
    with pytest.warns(DataWarning, match=r"Column 'truth' holds known labels of 20 of 60 items. They are used as gold"):
        fused = cs.fuse(frame)
    known = dict(list(truth.items())[:20])
    same = cs.fuse(frame.drop(columns="truth"), gold=known)
    assert np.array_equal(fused.posterior_, same.posterior_)
    without = cs.fuse(frame, gold=False)
    assert np.array_equal(without.posterior_, cs.fuse(frame.drop(columns="truth")).posterior_)
    # Models leave it alone, and gold that is given comes first.
    assert np.array_equal(cs.DawidSkene().fit(frame).labels_, cs.DawidSkene().fit(frame.drop(columns="truth")).labels_)
    assert np.array_equal(cs.fuse(frame, gold=known).posterior_, same.posterior_)


def test_fuse_with_all_truth_beside():
    """The truth of every item is for a comparison: with it there would be nothing to fuse."""
    frame, truth = make_crowd(60)
    with pytest.warns(DataWarning, match="known labels of all items. They are not used"):
        fused = cs.fuse(frame)
    assert np.array_equal(fused.posterior_, cs.fuse(frame, gold=False).posterior_)
    # The table of answers is one of gold, too.
    assert cs.evaluate(fused, frame) == cs.evaluate(fused, truth)


def test_gold_column_on_the_command_line(folder):
    frame, _ = make_crowd(20)
    frame.rename(columns={"truth": "checked"}).to_csv("answers.csv", index=False)
    result = run("fuse", "answers.csv", "--gold-column", "checked")
    assert result.exit_code == 0
    assert "20 known labels" in result.stdout
    assert "gold=checked" in result.stdout
    assert "Column 'checked' holds known labels of 20 of 60 items" in result.stderr
    frame.to_csv("answers.csv", index=False)
    ignored = run("fuse", "answers.csv", "--ignore-gold", "--json")
    assert (ignored.exit_code, ignored.stderr) == (0, "")
    assert json.loads(ignored.stdout)["gold"] == 0


# Missing answers


def test_drop_missing(folder):
    table = make_table(label=["x", None, "y", "x"])
    with pytest.raises(InputError, match=r"1 missing value.* Or leave such rows out with drop_missing=True"):
        cs.Answers.from_frame(table)
    with pytest.warns(
        DataWarning, match=r"Rows of the table without an answer in column 'label' were left out: 1 of 4"
    ):
        r = cs.Answers.from_frame(table, drop_missing=True)
    assert r.n_responses == 3
    assert cs.Answers.from_frame(make_table(), drop_missing=True).n_responses == 4  # without a word
    with pytest.raises(InputError, match="empty throughout"):
        cs.Answers.from_frame(make_table(label=[None] * 4), drop_missing=True)
    with pytest.raises(ParameterError, match="drop_missing"):
        cs.Answers.from_frame(table, drop_missing="yes")
    # Places are those of the file.
    write("a.csv", "item,worker,label", "1,a,", "1,b,x", ",b,y")
    with pytest.warns(DataWarning, match="left out"), pytest.raises(InputError, match=r"at a.csv, line 4"):
        cs.read_answers("a.csv", drop_missing=True)


def test_rescale():
    votes = [[[0.33, 0.33, 0.33], [0.5, 0.5, 0.01]], [[1.0, 0.0, 0.0], [np.nan] * 3]]
    with pytest.raises(InputError, match="They seem to be rounded: use rescale=True"):
        cs.Answers.from_probabilities(votes)
    r = cs.Answers.from_probabilities(votes, rescale=True)
    np.testing.assert_allclose(r.soft.sum(axis=1), 1.0, rtol=1e-6)
    with pytest.raises(InputError, match=r"sums to 0.9.*divide each vote by its sum"):
        cs.Answers.from_probabilities([[[0.5, 0.4]]], rescale=True)
    with pytest.raises(InputError, match=r"holds 1 vote .* at P\[0, 1\], is 0.9, 0.9"):
        cs.Answers.from_probabilities([[[0.33, 0.66], [0.9, 0.9]]], rescale=True)
    with pytest.raises(ParameterError, match="rescale"):
        cs.Answers.from_probabilities(votes, rescale=2)


# Streams


@pytest.mark.parametrize("sign", [",", "\t"])
def test_standard_input(sign):
    text = "\n".join(LINES).replace(",", sign) + "\n"
    result = run("fuse", "-", "--json", standard_input=text)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["answers"] == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "There is nothing to read in standard input"),
        ("item,worker,label\n1,ann\n", "standard input, line 2: expected 3 columns"),
        (
            "item,worker,label\n1,,x\n",
            "Column 'worker' of standard input is empty throughout; the first is at standard",
        ),
        ('{"item": 1}\n{"item": \n', "standard input, line 2: not valid JSON"),
        ('{"item": ' + "[" * 5000 + "\n", "standard input, line 1"),
        (b"item,worker,label\n1,a,\xff\n", "standard input, line 2: the text is not UTF-8"),
        (b"PAR1\0\0\0\0PAR1", "must be CSV, TSV or JSON lines"),
        ("item,worker,label,item\n1,a,x,1\n", "standard input has more than one column called 'item'"),
    ],
)
def test_damaged_standard_input(content, words):
    result = run("fuse", "-", standard_input=content)
    assert result.exit_code == 2
    assert words in result.stderr


def test_named_file_format(folder):
    write("answers.txt", *LINES)
    with pytest.raises(InputError, match="no suffix that can be read"):
        cs.read_answers("answers.txt")
    assert cs.read_answers("answers.txt", format="csv").n_responses == 4
    assert run("fuse", "answers.txt", "--format", "csv", "-q").exit_code == 0
    with pytest.raises(ParameterError, match=r"'format' parameter of read_answers must be one of .*'csv'"):
        cs.read_answers("answers.txt", format="xlsx")


@pytest.mark.filterwarnings("ignore:There are too few answers")
def test_arrow_stream():
    class Relation:
        """What a database driver gives: a stream, and nothing that frame libraries know."""

        def __init__(self, table: pa.Table) -> None:
            self.table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self.table.__arrow_c_stream__(requested_schema)

    table = pa.table(make_table())
    expected = cs.Answers.from_frame(table)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(2))
    for source in (reader, Relation(table)):
        r = cs.Answers.from_frame(source)
        assert np.array_equal(r.label, expected.label)
        assert r.items.tolist() == expected.items.tolist()
    assert cs.fuse(Relation(table), gold=Relation(pa.table({"item": [1], "label": ["y"]}))).labels_[0] == "y"
    with pytest.raises(InputError, match="no rows"):
        cs.Answers.from_frame(reader)  # which is at its end
    broken = Relation(pa.array([1]))  # which is no table
    with pytest.raises(InputError, match="Cannot read the table from the Arrow stream of a Relation"):
        cs.Answers.from_frame(broken)


# Evaluation


@pytest.mark.parametrize("sign", [";", "\t"])
def test_csv_files_with_other_separators(folder, sign):
    """Spreadsheets write semicolons where a comma is decimal."""
    rows = [["item", "worker", "label", "share"], ["1", "u", "x, y", "0,5"], ["1", "v", "z", "1,0"]]
    write("a.csv", *(sign.join(row) for row in rows))
    assert triples_of(cs.read_answers("a.csv")) == [(1, "u", "x, y"), (1, "v", "z")]
    write("b.csv", *(sign.join(row) for row in rows), sign.join(["2", "u"]))
    with pytest.raises(InputError, match=r"b.csv, line 4: expected 4 columns as in the header, found 2"):
        cs.read_answers("b.csv")
    write("c.csv", "note; see below,worker,label,item", "n,u,x,1")  # a comma comes first
    assert cs.read_answers("c.csv").n_responses == 1


def triples_of(r):
    return list(zip(r.items[r.item_of_answer()].tolist(), r.workers[r.worker], r.labels[r.label], strict=True))


def test_votes_that_are_not_recognised_as_probabilities_lead_to_their_format():
    table = {"item": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "x": [0.1, 0.2, 0.3, 0.4], "y": [0.5, 0.5, 0.5, 0.5]}
    with pytest.raises(InputError, match="If these are probabilities of classes, use format='soft'"):
        cs.Answers.from_frame(table)


def test_rejected_rows_are_told_once_and_not_for_each_question(folder):
    states = ["Rejected", *["Approved"] * 11]
    rows = [f"h{n // 3},{'abc'[n % 3]},{state},{n % 2},{n % 2}" for n, state in enumerate(states)]
    file = write("mturk.csv", "HITId,WorkerId,AssignmentStatus,Answer.tone,Answer.mood", *rows)
    said = run("fuse", file, "-o", "labels.csv").stderr
    assert said.count("left out as rejected") == 1
    assert "1 row of" in said
