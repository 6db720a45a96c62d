"""Tables as people have them: other names of columns, missing answers, known labels beside answers, streams."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import consilience as cs
from command_line import run
from consilience.answers.tables import ALIASES, OTHER_ALIASES, squeeze
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


def test_aliases_are_distinct():
    """No name stands for two roles, and none is looked for twice."""
    others = {role: [name for row in rows for name in row] for role, rows in OTHER_ALIASES.items()}
    for role, names in others.items():
        assert len(set(names)) == len(names)
        assert all(name == squeeze(name) for name in names)
        assert not set(names) & set(ALIASES[role])
    for first, second in (
        ("item", "worker"),
        ("item", "label"),
        ("worker", "label"),
        ("label", "gold"),
        ("item", "gold"),
    ):
        assert not set(others[first]) & set(others[second])
        assert not set(others[first]) & set(ALIASES[second])


@pytest.mark.parametrize(
    ("role", "name"),
    [
        *(("item", name) for name in ("task_id", "item_id", "Image ID", "promptId", "question-id", "unit_id", "HITId")),
        *(("worker", name) for name in ("worker_id", "rater", "user_id", "performer", "WorkerID", "coder", "model")),
        *(("label", name) for name in ("verdict", "category", "class", "choice", "annotation", "rating", "Value")),
    ],
)
def test_other_names(role, name):
    assert cs.Answers.from_frame(rename(role, name)).columns[role] == name


def test_old_names_come_first():
    table = make_table(worker_id=[1, 2, 3, 4], category=list("abcd"), task_id=[5, 6, 7, 8])
    assert cs.Answers.from_frame(table).columns == {"item": "item", "worker": "worker", "label": "label"}
    # A model is a worker only if there is no other.
    assert cs.Answers.from_frame(rename("worker", "model", "rater")).columns["worker"] == "rater"


@pytest.mark.parametrize(("role", "names"), [("label", ("category", "verdict")), ("worker", ("rater", "annotator_id"))])
def test_several_names(role, names):
    with pytest.raises(InputError, match=f"2 columns that may be the {role}: '{names[0]}', '{names[1]}'. Choose one"):
        cs.Answers.from_frame(rename(role, *names))
    assert cs.Answers.from_frame(rename(role, *names), **{role: names[1]}).columns[role] == names[1]


def test_row_numbers():
    """An id that is a number of rows gives way to a name of items; one that is not, does not."""
    table = rename("item", "image_id")
    assert cs.Answers.from_frame({"id": [1, 2, 3, 4], **table}).columns["item"] == "image_id"
    assert cs.Answers.from_frame({"id": [1, 1, 2, 2], **table}).columns["item"] == "id"


def test_sequences_keep_their_place():
    """A column of texts does not make items of the positions of sequences."""
    table = {"sequence": ["s"] * 2, "position": [0, 1], "text": ["a", "b"], "worker": ["w"] * 2, "label": ["O", "O"]}
    assert cs.Answers.from_frame(table).sequences is not None


def test_all_names_are_shown():
    names = [f"column {n}" for n in range(30)]
    with pytest.raises(InputError) as caught:
        cs.Answers.from_frame({**{name: [1] for name in names}, "my_label": ["x"], "item": [1], "worker": [1]})
    assert "Did you mean label='my_label'?" in str(caught.value)
    assert all(repr(name) in str(caught.value) for name in names)


def test_gold_with_the_names_of_the_answers(folder):
    table = rename("item", "image_id")
    gold = pd.DataFrame({"image_id": [1], "doc_id": [9], "true_label": ["x"]})
    assert cs.DawidSkene().fit(cs.Answers.from_frame(table), gold=gold).labels_[0] == "x"


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


def test_gold_column_of_sequences():
    table = {
        "sequence": ["s", "s"],
        "position": [5, 6],
        "worker": ["w", "w"],
        "label": ["a", "b"],
        "truth": [None, "a"],
    }
    assert dict(cs.Answers.from_frame(table).gold) == {("s", 6): "a"}


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
    result = run("fuse", "answers.csv", "--columns", "gold=checked")
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


def test_drop_missing_on_the_command_line(folder):
    write("a.csv", *LINES, "3,ann,")
    assert "Or leave such rows out with --drop-missing." in run("fuse", "a.csv").stderr
    result = run("fuse", "a.csv", "--drop-missing", "--json")
    assert json.loads(result.stdout)["answers"] == 4
    assert "without an answer in column 'label' were left out: 1 of 5." in result.stderr


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


def test_standard_input_of_other_formats(folder):
    records = [dict(zip(LINES[0].split(","), line.split(","), strict=True)) for line in LINES[1:]]
    text = "".join(json.dumps(record) + "\n" for record in records)
    assert json.loads(run("fuse", "-", "--json", standard_input=text).stdout)["answers"] == 4
    packed = gzip.compress("\n".join(LINES).encode())
    assert json.loads(run("fuse", "-", "--json", standard_input=packed).stdout)["answers"] == 4
    labels = run("fuse", write("a.csv", *LINES), "-o", "labels.csv", "-q")
    assert labels.exit_code == 0
    scored = run("evaluate", "labels.csv", "-", "--json", standard_input="item,label\n1,cat\n2,cat\n")
    assert json.loads(scored.stdout)["n_matched"] == 2


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


def test_standard_input_in_python(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(LINES).encode())))
    assert cs.read_answers("-").n_responses == 4
    assert cs.read_answers("-").n_responses == 4  # what was read is kept


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


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select * from (values (1, 'a', 'x'), (1, 'b', 'y'), (2, 'a', 'x')) t(item, worker, label)")
    assert cs.Answers.from_frame(relation).n_responses == 3
    assert cs.DawidSkene().fit(relation).labels_.tolist()[1] == "x"


# The command line


def test_columns_option(folder):
    write("a.csv", "q,who,said", *LINES[1:])
    result = run("fuse", "a.csv", "--columns", "item=q, worker=who,label=said", "--json")
    assert json.loads(result.stdout)["columns"] == {"item": "q", "worker": "who", "label": "said"}
    write("b.csv", '"q,1",who,said', *LINES[1:])
    assert run("fuse", "b.csv", "--columns", '"item=q,1",worker=who,label=said', "-q").exit_code == 0
    for text in ("item", "items=q", "item=q,item=q", ""):
        refused = run("fuse", "a.csv", "--columns", text)
        assert refused.exit_code == 2
        assert "each of item, worker, label" in " ".join(refused.stderr.split())
    assert "name different columns for the item" in run("fuse", "a.csv", "--columns", "item=q", "--item", "x").stderr


def test_format_is_told(folder):
    write("wide.csv", "item,ann,bob", *(f"{n},{'cd'[n % 2]},{'cd'[n % 3 == 0]}" for n in range(20)))
    result = run("fuse", "wide.csv")
    assert "  Format     wide: one column per worker" in result.stdout
    assert json.loads(run("fuse", "wide.csv", "--json").stdout)["format"] == "wide"
    write("a.csv", *LINES)
    assert "Format" not in run("fuse", "a.csv").stdout


def test_all_workers(folder):
    names = [f"annotator-{n:02d}@a-rather-long-domain-name.example.org" for n in range(12)]
    rows = [f"{i},{name},{'xy'[(i * 7 + w) % 5 < 2]}" for i in range(30) for w, name in enumerate(names)]
    write("a.csv", "item,worker,label", *rows)
    shown = "".join(run("fuse", "a.csv", "--all-workers", COLUMNS="200").stdout.split())
    assert all(name in shown for name in names)
    narrow = run("fuse", "a.csv", "--all-workers").stdout
    assert all(f"  annotator-{n:02d}@a..." in narrow for n in range(12))  # they differ there
    assert "left out" not in narrow
    report = json.loads(run("fuse", "a.csv", "--all-workers", "--json").stdout)
    assert [len(report["most_reliable"]), len(report["least_reliable"])] == [12, 0]


def test_folder_of_answers_and_gold(folder):
    Path("d").mkdir()
    write("d/answers.csv", *LINES)
    write("d/gold.csv", "item,truth", "1,cat")
    result = run("fuse", "d")
    assert result.exit_code == 2
    assert "'d/answers.csv' seems to hold answers, and 'd/gold.csv' known labels" in result.stderr
    assert "Give known labels with --gold d/gold.csv, and read only the files of answers." in result.stderr


# Evaluation


def test_classes_keep_their_type(folder):
    labels = {"item": ["a", "b"], "label": ["0", "1"], "p(0)": [0.9, 0.2], "p(1)": [0.1, 0.8]}
    assert list(cs.evaluate(labels, {"a": "0", "b": "1"}).table) == ["0", "1"]
    assert list(cs.evaluate(labels, {"a": 0, "b": 2}).table) == ["0", "1", "2"]
    assert cs.evaluate(labels, {"a": 0, "b": 1}).accuracy == 1.0
    assert list(cs.evaluate(labels | {"label": [0, 1]}, {"a": "0", "b": "1"}).table) == [0, 1]


def test_all_gold_spans_count():
    """Spans in a sequence without labels are missed, and so are those at positions without one."""
    labels = {"sequence": ["s", "s", "s"], "position": [0, 1, 2], "label": ["B-X", "I-X", "O"]}
    gold = {("s", 0): "B-X", ("s", 1): "I-X", ("s", 2): "O", ("t", 0): "B-X", ("t", 1): "O", ("s", 3): "B-X"}
    spans = cs.evaluate(labels, gold)
    assert (spans.strict.n_gold, spans.strict.n_predicted, spans.strict.n_correct) == (3, 1, 1)
    assert spans.strict.precision == 1.0
    assert spans.strict.recall == pytest.approx(1 / 3)
    assert cs.evaluate(labels, gold).n_gold_only == 3


@pytest.mark.filterwarnings("ignore:There are too few answers")
def test_tags_without_outside():
    """Where nobody says O, as in answers that leave it out, the tags are seen to be IOB2 all the same."""
    tags = ["B-X", "I-X", "B-X", "I-X"]
    table = {"sequence": ["s"] * 8, "position": [0, 1, 2, 3] * 2, "worker": ["a"] * 4 + ["b"] * 4, "label": tags * 2}
    fused = cs.fuse(table)
    assert fused.transitions == "bio"
    assert "O" in fused.classes_.tolist()


def test_id_beside_a_key_is_a_number_of_rows(folder):
    """Rows of several files may have the same numbers."""
    for name, task in (("a", "s"), ("b", "t")):
        write(f"{name}.csv", "id,task_id,worker_id,label", f"1,{task}1,u,x", f"2,{task}1,v,y", f"3,{task}2,u,x")
    assert cs.read_answers("*.csv").items.tolist() == ["s1", "s2", "t1", "t2"]


def test_exports_of_tools_on_standard_input_are_refused(monkeypatch):
    task = {"text": "a", "label": "SPORT", "answer": "accept", "_input_hash": 1, "_task_hash": 2, "_session_id": "s"}
    lines = "".join(json.dumps(task) + "\n" for _ in range(2))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    with pytest.raises(InputError, match="no file of an annotation tool"):
        cs.read_answers("-")


def test_arrays_of_probabilities_are_no_masks(folder):
    np.save("soft.npy", np.full((4, 3, 2), 0.5))
    assert cs.read_answers("soft.npy").format == "soft-files"
    for header in ("((((", "-----1", "{1:2,'a':[]}"):
        Path("odd.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        with pytest.raises(InputError):
            cs.fuse("odd.npy")


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


@pytest.mark.filterwarnings("ignore")
def test_columns_that_are_probably_others():
    table = {"item": np.repeat(np.arange(20), 2), "worker": ["u", "v"] * 20, "label": ["x"] * 40}
    with pytest.warns(DataWarning, match="All answers in column 'label' are 'x': there is nothing to fuse"):
        cs.fuse(table)
    table |= {"worker": np.arange(40), "label": ["x", "y", "x", "x"] * 10}
    with pytest.warns(DataWarning, match="Each worker in column 'worker' gave one answer"):
        cs.fuse(table)


def test_known_labels_that_are_no_labels():
    with pytest.warns(DataWarning, match=r"No known label \('news'\) is among the labels \('pos'\)"):
        assert cs.evaluate({"item": [1], "label": ["pos"]}, {1: "news"}).accuracy == 0
