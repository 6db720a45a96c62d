"""One door for all sources, and the way back: fuse, convert and formats, for every format in the registers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs
from command_line import run
from consilience.answers import LONG
from consilience.answers.layouts import to_long
from consilience.errors import DataWarning, InputError, ParameterError
from consilience.formats import FORMATS, find_by_name, span_formats
from consilience.formats.sources import name_form, open_source
from consilience.formats.writing import write_table
from consilience.kinds.spans import FUSED
from marked_texts import mark
from test_annotation_tools import TEXT, annotations, label_studio, write_json, write_lines

quiet = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(*arguments):
    """Run a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def refused(*arguments) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.stdout
    return result.stderr


def triples(r: cs.Answers) -> list[tuple]:
    names = ("worker", "label") if r.sequences is None else ("position", "worker", "label")
    table = to_long(r).to_pydict()
    if r.soft is not None:
        table["label"] = [tuple(np.round(row, 6).tolist()) for row in r.soft]
    key = "item" if r.sequences is None else "sequence"
    return sorted(zip(map(str, table[key]), *(map(str, table[name]) for name in names), strict=True))


# -------------------------------------------------------------------------------------------------------- round trips

ANSWERS = {
    "item": ["a", "a", "a", "b", "b", "c", "c"],
    "worker": ["ann", "bob", "cem", "ann", "bob", "bob", "cem"],
    "label": ["yes", "no", "yes", "no", "no", "yes", "yes"],
}


def write_spans(name: str) -> str:
    path = {"brat": "in", "doccano": "in", "conll": "in.conll", "prodigy": "in.jsonl"}.get(name, "in.json")
    cs.write_spans(cs.simulate.spans(6, n_workers=3, seed=1).spans, path, format=name)
    return path


def write_plain(name: str) -> str:
    path = f"in{find_by_name(name).suffixes[0]}"
    write_table(pa.table(ANSWERS), path)
    return path


def write_masks(_: str) -> str:
    rng = np.random.default_rng(0)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for n in range(2):  # the lesions of the two images are apart
        drawn = np.zeros((12, 12), bool)
        drawn[6 * n : 6 * n + 6] = True
        arrays[f"i{n}"] = {f"r{m}": (drawn ^ (rng.random((12, 12)) < 0.05)).astype(np.uint8) for m in range(3)}
    cs.write_masks(cs.Masks.from_arrays(arrays), "in")
    return "in"


EXAMPLES = (
    dict.fromkeys(("label-studio", "prodigy", "argilla", "doccano", "brat", "conll"), write_spans)
    | dict.fromkeys(("csv", "tsv", "jsonl", "parquet", "arrow"), write_plain)
    | {"masks": write_masks}
)
NAMES = [each.name for each in FORMATS if each.kind != "answers"]  # logs are only read: see test_logs.py


@pytest.mark.parametrize("name", NAMES)
@quiet
def test_read_write_read(name):
    """What `convert` writes holds the same annotations, in the same format where that can be written."""
    path = EXAMPLES[name](name)
    first = open_source(path)
    assert name_form(first, path) in (name, LONG)
    target = Path(path).with_stem("out").name
    done("convert", path, target, *([] if isinstance(first, cs.Answers) else ["--to", name]), "-q")
    again = open_source(target)
    if isinstance(first, cs.Spans):
        assert annotations(again) == annotations(first)
        assert (again.documents.tolist(), again.texts) == (first.documents.tolist(), first.texts)
    elif isinstance(first, cs.Masks):
        for image, drawn in again.arrays().items():
            assert all(np.array_equal(array, first.arrays()[image][reader]) for reader, array in drawn.items())
    else:
        assert triples(again) == triples(first)
        assert first.n_responses == len(triples(again)) > 0


# --------------------------------------------------------------------------------------------------------------- fuse


@quiet
def test_one_command_from_export_to_import():
    """All that was in the file stays, and predictions have all that Label Studio's import asks for."""
    project = cs.simulate.spans(60, n_workers=5, seed=3)
    cs.write_spans(project.spans, "project.json", format="label-studio")
    cs.write_spans(project.truth, "gold.json", format="label-studio")
    summary = json.loads(done("fuse", "project.json", "-o", "fused.json", "--json").stdout)
    assert (summary["format"], summary["files"]) == ("label-studio", {"spans": "fused.json"})
    scores = json.loads(done("evaluate", "fused.json", "gold.json", "--json").stdout)
    assert 0.7 < scores["strict"]["f1"] <= scores["relaxed"]["f1"] <= scores["type_only"]["f1"]
    n_regions = 0
    tasks = [json.loads(Path(name).read_text()) for name in ("fused.json", "project.json")]
    for task, old in zip(*tasks, strict=True):
        assert {key: task[key] for key in old} == old  # data, id and all annotations as they were
        (prediction,) = task["predictions"]
        assert prediction["model_version"] == FUSED
        scores = [each["score"] for each in prediction["result"]]
        assert prediction["score"] == pytest.approx(np.mean(scores) if scores else 1)
        assert len({each["id"] for each in prediction["result"]}) == len(scores)
        for each in prediction["result"]:
            assert (each["type"], each["from_name"], each["to_name"]) == ("labels", "label", "text")
            value = each["value"]
            assert value["text"] == task["data"]["text"][value["start"] : value["end"]] != ""
            assert len(value["labels"]) == 1
        n_regions += len(scores)
    assert n_regions == summary["spans"]["fused"]


@quiet
@pytest.mark.parametrize("name", [each.name for each in span_formats()])
def test_fused_spans_go_back_to_their_tool(name):
    path = write_spans(name)
    target = Path(path).with_stem("fused").name
    done("fuse", path, "-o", target, "--model", "majority", "-q")
    fused = cs.fuse(path, model="majority").to_span_set()
    written = cs.read_spans(target)
    assert written.origin[1] == name
    workers = written.workers.tolist()
    own = FUSED if FUSED in workers else workers[0]
    back = {key: value for key, value in annotations(written).items() if key[1] == own}
    assert list(back.values()) == list(annotations(fused).values())
    done("fuse", path, "-o", "spans.parquet", "--model", "majority", "-q")
    assert pq.read_table("spans.parquet").to_pylist() == cs.fuse(path, model="majority").to_spans().to_pylist()


@pytest.mark.filterwarnings("ignore:In .* (count as|offsets of):consilience.errors.DataWarning")
def test_spans_of_a_file_with_both():
    """Spans are fused with a warning, and naming the column of answers gets these."""
    write_json("both.json", label_studio())
    with pytest.warns(DataWarning, match=r"spans and answers about whole texts \('mood'\).*label='mood'"):
        assert isinstance(open_source("both.json"), cs.Spans)
    assert isinstance(open_source("both.json", label="label"), cs.Answers)
    assert "To use the answers instead, give --label mood." in done("fuse", "both.json").stderr
    shown = json.loads(done("fuse", "both.json", "--label", "label", "--json").stdout)
    assert (shown["spans"], shown["answers"], shown["format"]) == (None, 1, "label-studio")


def test_parameters_of_tables_do_not_go_with_spans():
    path = write_spans("label-studio")
    for given in ({"classes": ["O"]}, {"duplicates": "first"}, {"normalise": True}, {"items": [1]}):
        with pytest.raises(ParameterError, match="for tables of answers"):
            cs.fuse(path, **given)
    assert "--duplicates is for tables of answers" in refused("fuse", path, "--duplicates", "last")
    assert "No spans are known" in refused("fuse", path, "--gold", path)
    assert "not one answer per item" in refused("fuse", path, "--item", "id")


# ------------------------------------------------------------------------------------------------------------- answers


def choices(item, said: dict[str, str], question: str = "mood"):
    def result(label):
        return {"id": "c", "from_name": question, "to_name": "txt", "type": "choices", "value": {"choices": [label]}}

    return {
        "id": item,
        "data": {"body": f"text {item}"},
        "meta": {"page": item},
        "annotations": [{"id": n, "completed_by": {"email": who}, "result": [result(label)]}
                        for n, (who, label) in enumerate(said.items())],
    }  # fmt: skip


SAID = [{"a": "good", "b": "good", "c": "bad"}, {"a": "bad", "b": "bad", "c": "bad"}, {"b": "good", "c": "good"}]
VERDICTS = ["good", "bad", "good"]


def write_answers(name: str) -> str:
    if name == "label-studio":
        return write_json("in.json", [choices(n, said) for n, said in enumerate(SAID)])
    if name == "argilla":
        return write_json("in.json", [
            {"id": str(n), "fields": {"text": f"text {n}"}, "metadata": {"page": n}, "suggestions": {},
             "responses": {"mood": [{"value": label, "user_id": who} for who, label in said.items()]}}
            for n, said in enumerate(SAID)
        ])  # fmt: skip
    if name == "prodigy":
        options = [{"id": "good", "text": "Good"}, {"id": "bad", "text": "Bad"}]
        return write_lines("in.jsonl", [
            {"text": f"text {n}", "_input_hash": n, "_task_hash": 7 * n, "options": options, "accept": [label],
             "answer": "accept", "_annotator_id": who, "_view_id": "choice", "meta": {"page": n}}
            for n, said in enumerate(SAID) for who, label in said.items()
        ])  # fmt: skip
    Path("in").mkdir()
    for who in "abc":
        read = [(n, said[who]) for n, said in enumerate(SAID) if who in said]
        write_lines(f"in/{who}.jsonl", [{"id": n, "text": f"text {n}", "label": [said], "page": n} for n, said in read])
    return "in"


TOOLS = [each.name for each in span_formats() if each.codec.write_labels is not None]


@quiet
@pytest.mark.parametrize("name", TOOLS)
def test_answers_go_back_to_their_tool(name):
    path = write_answers(name)
    target = Path(path).with_stem("fused").name
    done("fuse", path, "-o", target, "--model", "majority", "-q")
    again = open_source(target)
    own = to_long(again).to_pylist()
    own = [row for row in own if row["worker"] in (FUSED, "fused")]
    assert [row["label"] for row in sorted(own, key=lambda row: str(row["item"]))] == VERDICTS
    assert again.origin == (target, name)
    if name != "doccano":  # which has one file per annotator
        old = [row for row in triples(again) if row[1] != FUSED]
        assert old == triples(open_source(path))
    done("fuse", path, "-o", "labels.csv", "--model", "majority", "-q")
    assert cs.evaluate("labels.csv", dict(enumerate(VERDICTS))).accuracy == 1
    # Writing once more replaces what was written before.
    cs.write_labels({"item": [0], "label": ["bad"]}, Path(path).with_stem("second").name, target)
    renewed = to_long(open_source(Path(path).with_stem("second").name)).to_pylist()
    of_item = [row["label"] for row in renewed if str(row["item"]) == "0" and row["worker"] in (FUSED, "second")]
    assert of_item == ["bad"]


def test_fields_of_fused_answers():
    """The fields that each tool's import needs, and all that was there before."""
    path = write_answers("label-studio")
    old = json.loads(Path(path).read_text())
    labels = {"item": [0, 1, 2], "label": VERDICTS, "confidence": [0.75, 1.0, 0.5]}
    cs.write_labels(labels, "out.json", path)
    for task, before, label, score in zip(json.loads(Path("out.json").read_text()), old, VERDICTS, [0.75, 1, 0.5],
                                          strict=True):  # fmt: skip
        (prediction,) = task.pop("predictions")
        assert task == before
        assert (prediction["model_version"], prediction["score"]) == (FUSED, score)
        (result,) = prediction["result"]
        assert isinstance(result.pop("id"), str)
        assert result == {"from_name": "mood", "to_name": "txt", "type": "choices", "value": {"choices": [label]}}
    path = write_answers("argilla")
    cs.write_labels(labels, "out.jsonl", path)
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert lines[0]["suggestions"] == {"mood": {"value": "good", "score": 0.75, "agent": FUSED}}
    assert lines[0]["metadata"] == {"page": 0}
    assert len(lines[0]["responses"]["mood"]) == 3
    path = write_answers("prodigy")
    cs.write_labels(labels, "out.jsonl", path)
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert lines[:8] == [json.loads(line) for line in Path(path).read_text().splitlines()]
    new = lines[8]
    assert (new["accept"], new["answer"], new["score"], new["_annotator_id"]) == (["good"], "accept", 0.75, FUSED)
    assert (new["_input_hash"], new["meta"], "_task_hash" in new) == (0, {"page": 0}, False)
    path = write_answers("doccano")
    cs.write_labels(labels, "out", path)
    lines = [json.loads(line) for line in Path("out", f"{FUSED}.jsonl").read_text().splitlines()]
    assert {"id": 0, "text": "text 0", "label": ["good"], "page": 0, "confidence": 0.75} in lines


@quiet
def test_one_of_several_questions():
    tasks = []
    for n, said in enumerate(SAID):
        task, other = choices(n, said), choices(n, dict.fromkeys(said, "short"), "length")
        for note, more in zip(task["annotations"], other["annotations"], strict=True):
            note["result"] += more["result"]
        tasks.append(task)
    path = write_json("in.json", tasks)
    printed = done("fuse", path).stdout
    assert all(name in printed for name in ("length", "mood"))
    done("fuse", path, "--label", "mood", "-o", "out.json", "--model", "majority", "-q")
    first = json.loads(Path("out.json").read_text())[0]["predictions"][0]["result"][0]
    assert (first["from_name"], first["value"]) == ("mood", {"choices": ["good"]})
    with pytest.raises(InputError, match="not clear which question"):
        cs.write_labels({"item": [0], "label": ["good"]}, "other.json", path)


# -------------------------------------------------------------------------------------------------------- the way back


def test_inputs_are_never_overwritten():
    studio, brat, doccano = write_spans("label-studio"), "brat", "doccano"
    done("convert", studio, brat, "--to", "brat", "-q")
    done("convert", studio, doccano, "--to", "doccano", "-q")
    for command in ("fuse", "convert"):
        option = ["-o"] if command == "fuse" else []
        for source, target in ((studio, studio), (brat, brat), (brat, "brat/more"), (doccano, doccano),
                               (doccano, "doccano/new.jsonl"), ("doccano/*.jsonl", doccano)):  # fmt: skip
            assert "would change the input" in refused(command, source, *option, target)


# ------------------------------------------------------------------------------------------------------------- convert


def test_what_is_lost_is_told():
    write_json("in.json", label_studio())
    run("convert", "in.json", "out.csv")
    lost = "; ".join(json.loads(done("convert", "in.json", "out.csv", "--json").stdout)["lost"])
    for words in ("the known spans of 1 document", "the texts", "1 annotation without spans", "('mood')", "relations"):
        assert words in lost
    tokens = {1: [(0, 3), (4, 7), (8, 11), (12, 14), (15, 20)]}
    cs.write_spans(mark({1: TEXT}, {(1, "a"): {(0, 3, "PER"): 0.5}}, tokens=tokens), "sure.jsonl", format="prodigy")
    assert "the tokens of the tool" in done("convert", "sure.jsonl", "out.json", "--to", "argilla").stdout
    shown = done("convert", "sure.jsonl", "out.conll").stdout
    assert "the confidence of spans; white space" in shown
    assert "tokens of the tool" not in shown
    same = json.loads(done("convert", "sure.jsonl", "again.jsonl", "--json").stdout)
    assert (same["to"], same["lost"]) == ("prodigy", [])
    assert cs.read_spans("again.jsonl").marks.confidence.tolist() == [0.5]


def test_what_cannot_be_converted():
    write_table(pa.table(ANSWERS), "in.csv")
    spans, masks = write_spans("label-studio"), write_masks("")
    for words, *command in (
        ("cannot be written as brat", "in.csv", "out", "--to", "brat"),
        ("not the name of a table", "in.csv", "out.json"),
        ("cannot be written as wide", spans, "out.csv", "--to", "wide"),
        ("Name it with --to", spans, "out"),
        ("name a folder", spans, "out.json", "--to", "brat"),
        ("name .json", spans, "out", "--to", "label-studio"),
        ("Give a folder: doccano", spans, "out.jsonl", "--to", "doccano"),
        ("does not exist", "no-such.csv", "out.csv"),
        ("cannot be written as long", masks, "out.csv", "--to", "long"),
        ("does not tell in which format", masks, "out.csv"),
    ):
        assert words in refused("convert", *command)


def test_all_formats_are_listed():
    listed = {each["name"]: each for each in json.loads(done("formats", "--json").stdout)["formats"]}
    assert set(listed) > set(NAMES)
    assert listed["label-studio"]["read"] == ["spans", "answers", "tags"]
    assert listed["brat"]["suffixes"] == [".ann", "folder"]
    assert (listed["csv"]["recognised_by"], listed["parquet"]["recognised_by"]) == ("name", "content")
    assert {"mturk", "toloka", "appen", "matrix", "one-hot"} <= {name for name in listed if not listed[name]["written"]}
    shown = done("formats").stdout
    assert all(f"  {name} " in shown for name in NAMES)
