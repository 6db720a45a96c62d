"""Files of annotation tools: what is read, that writing and reading again gives the same, and damaged files."""

from __future__ import annotations

import copy
import gzip
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from consilience.answers.layouts import to_long
from consilience.errors import LONGEST_MESSAGE, ConsilienceError, DataWarning, InputError
from consilience.formats import span_formats
from consilience.formats.files import find_format
from marked_texts import mark

# Most examples hold predictions of a model; a test of their own is about what is said of them.
pytestmark = pytest.mark.filterwarnings("ignore:In .* count as:consilience.errors.DataWarning")

NAMES = [each.name for each in span_formats()]
TEXT = "Ann met Bob in Rome."
JSON_TOOLS = ["label-studio", "prodigy", "doccano", "argilla"]
EMOJI = "\U0001f4a9 Ann met Bob."


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(function, *arguments, **more) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments, **more)
    assert len(str(caught.value)) <= LONGEST_MESSAGE
    return str(caught.value)


def annotations(spans) -> dict:
    """Return what was annotated, in a form that does not depend on codes."""
    found = {(str(spans.documents[d]), str(spans.workers[w])): set() for d, w in spans.readings.tolist()}
    marks = spans.marks
    for d, w, start, end, label in zip(*(column.tolist() for column in marks[:5]), strict=True):
        found[str(spans.documents[d]), str(spans.workers[w])].add((start, end, str(spans.labels[label])))
    return found


def write_json(path, value) -> str:
    Path(path).write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def write_lines(path, values) -> str:
    Path(path).write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return str(path)


# ------------------------------------------------------------------------------------------------------- the examples


def region(start, end, *labels, text=None, **more):
    value = {"start": start, "end": end, "labels": list(labels)} | ({} if text is None else {"text": text})
    return {"id": f"r{start}", "from_name": "ner", "to_name": "txt", "type": "labels", "value": value, **more}


def label_studio():
    chosen = {"from_name": "mood", "to_name": "txt", "type": "choices", "id": "c", "value": {"choices": ["good"]}}
    relation = {"type": "relation", "from_id": "r0", "to_id": "r8", "direction": "right", "labels": ["met"]}
    return [
        {
            "id": 11,
            "data": {"body": TEXT, "title": "A long title that is longer than the text itself"},
            "meta": {"source": "mail"},
            "annotations": [
                {
                    "id": 1,
                    "completed_by": {"id": 4, "email": "ann@x.org", "first_name": "A"},
                    "was_cancelled": False,
                    "ground_truth": False,
                    "lead_time": 3.5,
                    "result": [region(0, 3, "PER", text="Ann"), region(8, 11, "PER", text="Bob"), relation, chosen],
                },
                {"id": 2, "completed_by": 7, "result": [region(15, 19, "LOC", "CITY", text="Rome")]},
                {"id": 3, "completed_by": 8, "was_cancelled": True, "result": []},
                {"id": 4, "completed_by": 9, "ground_truth": True, "result": [region(0, 3, "PER", text="Ann")]},
            ],
            "predictions": [
                {"id": 5, "model_version": "m1", "score": 0.5, "result": [region(8, 11, "PER", text="Bob", score=0.7)]},
                17,
            ],
            "drafts": [{"result": [region(0, 1, "X")]}],
        },
        {
            "id": 12,
            "data": {"body": EMOJI, "title": "x" * 60},
            "annotations": [
                {"completed_by": 7, "result": [region(3, 6, "PER", text="Ann")]},  # UTF-16 units, as before 1.5
                {"completed_by": 8, "result": [region(2, 5, "PER", text="Ann")]},
            ],
        },
        {"id": 13, "data": {"body": "Nobody saw this.", "title": "y" * 60}, "annotations": [], "predictions": []},
        {"id": 14, "data": {"body": "Nothing here.", "title": ""}, "annotations": [{"completed_by": 7, "result": []}]},
    ]


LABEL_STUDIO = {
    ("11", "ann@x.org"): {(0, 3, "PER"), (8, 11, "PER")},
    ("11", "7"): {(15, 19, "LOC"), (15, 19, "CITY")},
    ("11", "m1"): {(8, 11, "PER")},
    ("12", "7"): {(2, 5, "PER")},
    ("12", "8"): {(2, 5, "PER")},
    ("14", "7"): set(),
}


def prodigy():
    places = [(0, 3), (4, 7), (8, 11), (12, 14), (15, 19), (19, 20)]
    tokens = [
        {"text": TEXT[start:end], "start": start, "end": end, "id": i, "ws": i < 4}
        for i, (start, end) in enumerate(places)
    ]
    base = {"text": TEXT, "_input_hash": -5, "tokens": tokens, "_view_id": "ner_manual", "meta": {"page": 3}}
    person = {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}
    place = {"start": 15, "end": 19, "token_start": 4, "token_end": 4, "label": "LOC"}
    return [
        {**base, "_task_hash": 1, "spans": [person], "answer": "accept", "_annotator_id": "d-ann", "_session_id": "d"},
        {**base, "_task_hash": 2, "spans": [person, place], "answer": "accept", "_annotator_id": "d-bob"},
        {**base, "_task_hash": 3, "spans": [place], "answer": "ignore", "_annotator_id": "d-eve"},
        {"text": "No.", "_input_hash": 6, "tokens": [{"text": "No.", "start": 0, "end": 3, "id": 0}],
         "answer": "accept", "_annotator_id": "d-ann"},
    ]  # fmt: skip


PRODIGY = {
    ("-5", "d-ann"): {(0, 3, "PER")},
    ("-5", "d-bob"): {(0, 3, "PER"), (15, 19, "LOC")},
    ("6", "d-ann"): set(),
}


def doccano():
    first = [
        {"id": 1, "text": TEXT, "label": [[0, 3, "PER"], [15, 19, "LOC"]], "Comments": ["so"], "meta": 5},
        {"id": 2, "text": EMOJI, "label": []},
    ]
    entities = [{"id": 10, "label": "PER", "start_offset": 0, "end_offset": 3},
                {"id": 11, "label": "PER", "start_offset": 8, "end_offset": 11}]  # fmt: skip
    relations = [{"id": 1, "from_id": 10, "to_id": 11, "type": "met"}]
    return {"ann": first, "bob": [{"id": 1, "text": TEXT, "entities": entities, "relations": relations}]}


DOCCANO = {
    ("1", "ann"): {(0, 3, "PER"), (15, 19, "LOC")},
    ("2", "ann"): set(),
    ("1", "bob"): {(0, 3, "PER"), (8, 11, "PER")},
}

ANN = "T1\tPER 0 3\tAnn\nT2\tPER 8 11\tBob\nR1\tmet Arg1:T1 Arg2:T2\nA1\tHappy T2\n#1\tAnnotatorNotes T1\ta T2 note\n"
SPLIT = "T3\tNAME 0 3;8 11\tAnn Bob\n*\tAlias T3 T3\n"
BRAT = {
    ("a", "ann"): {(0, 3, "PER"), (8, 11, "PER")},
    ("sub/b", "ann"): set(),
    ("a", "bob"): {(0, 11, "NAME")},
}

CONLL = """# global.columns = FORM POS ann bob
-DOCSTART- -X- O O

# sent_id = s1
Ann NNP B-PER I-PER
Lee NNP I-PER B-PER
met VBD O O
# NN O S-SIGN

# sent_id = s2
Rome NNP _ B-LOC
City NNP _ E-LOC
"""
CONLL_SPANS = {
    ("s1", "ann"): {(0, 7, "PER")},
    ("s1", "bob"): {(0, 3, "PER"), (4, 7, "PER"), (12, 13, "SIGN")},
    ("s2", "bob"): {(0, 9, "LOC")},
}


def argilla():
    return [
        {
            "id": "r1",
            "fields": {"text": TEXT, "prompt": "Mark names"},
            "metadata": {"n": 1},
            "suggestions": {
                "names": {"value": [{"start": 8, "end": 11, "label": "PER"}], "score": [0.8], "agent": "m"}
            },
            "responses": {
                "names": [
                    {"value": [{"start": 0, "end": 3, "label": "PER"}], "user_id": "u1", "status": "submitted"},
                    {"value": [], "user_id": "u2"},
                    {"value": [{"start": 0, "end": 1, "label": "PER"}], "user_id": "u3", "status": "discarded"},
                ],
                "mood": [{"value": "good", "user_id": "u1"}],
            },
            "vectors": {},
            "_server_id": "s",
        },
        {"id": "r2", "fields": {"text": EMOJI}, "suggestions": {}, "responses": {}},
    ]


ARGILLA = {("r1", "u1"): {(0, 3, "PER")}, ("r1", "u2"): set(), ("r1", "m"): {(8, 11, "PER")}}


def write_brat(root):
    for name, content in (("ann/a", ANN), ("ann/sub/b", ""), ("bob/a", SPLIT)):
        path = Path(root, f"{name}.ann")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    Path(root, "ann/a.txt").write_text(TEXT, encoding="utf-8")
    Path(root, "ann/sub/b.txt").write_bytes(EMOJI.encode() + b"\r\n")
    Path(root, "annotation.conf").write_text("[entities]\nPER\n", encoding="utf-8")
    return str(root)


def write_example(name, root) -> str:
    root = Path(root)
    if name == "doccano":
        (root / "team").mkdir()
        for worker, lines in doccano().items():
            write_lines(root / "team" / f"{worker}.jsonl", lines)
        return str(root / "team")
    if name == "brat":
        return write_brat(root / "corpus")
    if name == "conll":
        (root / "tags.conll").write_text(CONLL, encoding="utf-8")
        return str(root / "tags.conll")
    if name == "prodigy":
        return write_lines(root / "dataset.jsonl", prodigy())
    return write_json(root / f"{name}.json", label_studio() if name == "label-studio" else argilla())


EXPECTED = {
    "label-studio": LABEL_STUDIO,
    "prodigy": PRODIGY,
    "argilla": ARGILLA,
    "doccano": DOCCANO,
    "brat": BRAT,
    "conll": CONLL_SPANS,
}


@pytest.fixture
def read(folder):
    """Return a reader of the example of a format."""

    def reader(name, **more):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return cs.read_spans(write_example(name, folder), **more)

    return reader


# ----------------------------------------------------------------------------------------------------------- all tools


@pytest.mark.parametrize("name", NAMES)
def test_a_round_trip_changes_nothing(read, name):
    spans = read(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        cs.write_spans(spans, "again")
        again = cs.read_spans("again")
        assert annotations(spans) == annotations(again) == EXPECTED[name]
        assert again.documents.tolist() == spans.documents.tolist()
        assert again.texts == spans.texts
        assert again.origin[1] == name
        assert (again.gold is None) == (spans.gold is None)
        assert (again.tokens is None) == (spans.tokens is None)


def contents(path):
    """What files hold: objects where they hold JSON, else text."""
    path = Path(path)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    texts = [file.read_bytes().decode() for file in files]
    if files[0].suffix == ".json":
        return [json.loads(text) for text in texts]
    return [[json.loads(line) for line in text.splitlines()] if text.startswith("{") else text for text in texts]


@pytest.mark.parametrize("name", ["label-studio", "prodigy", "argilla", "doccano", "brat"])
@pytest.mark.filterwarnings("ignore::consilience.errors.DataWarning")
def test_what_annotators_did_stays_as_it_is(read, name):
    spans = read(name)
    suffix = ".jsonl" if name == "prodigy" else ".json" if name in ("label-studio", "argilla") else ""
    cs.write_spans(spans, f"again{suffix}")
    before, after = contents(spans.origin[0]), contents(f"again{suffix}")
    if name != "brat":
        assert after == before
        return
    assert set(map(str, before)) == set(map(str, after))  # the text of one annotator is that of both
    assert Path("again/annotation.conf").exists()
    assert Path("again/ann/sub/b.txt").read_bytes() == EMOJI.encode() + b"\r\n"


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_any_format_is_written_in_any_other(read, source, target):
    spans = read(source)
    if target == "conll" and source == "label-studio":
        assert "overlap" in refusal(cs.write_spans, spans, "out", format=target)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        cs.write_spans(spans, "out", format=target)
        again = cs.read_spans("out")
    assert again.origin[1] == target
    given, back = annotations(spans), annotations(again)
    if target == "conll" and source != "conll":  # the text is that of the tokens, joined by blanks
        assert {key: len(value) for key, value in back.items()} == {key: len(value) for key, value in given.items()}
    else:
        assert back == given


@pytest.mark.parametrize("name", NAMES)
def test_spans_are_not_written_into_other_texts(read, folder, name):
    spans = read(name)
    Path("elsewhere").mkdir()
    with pytest.MonkeyPatch.context() as patch:  # the origin is the same file wherever one is
        patch.chdir("elsewhere")
        cs.write_spans(spans, "again")
    for file in [file for file in sorted(folder.rglob("*")) if file.is_file() and "elsewhere" not in file.parts]:
        file.write_text(file.read_text(encoding="utf-8").replace("Ann", "Eva"), encoding="utf-8")
    assert "has changed since it was read" in refusal(cs.write_spans, spans, "fused")
    assert not Path("fused").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_spans_are_not_taken_for_answers(folder, name):
    path = write_example(name, folder)
    if name == "label-studio":
        write_json(path, label_studio()[1:])
    elif name == "argilla":
        records = argilla()
        del records[0]["responses"]["mood"]
        write_json(path, records)
    assert "read_spans" in refusal(cs.read_answers, path)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "brat"])
def test_files_are_recognised_by_content(folder, name):
    path = Path(write_example(name, folder))
    path = next(path.glob("*.jsonl")) if path.is_dir() else path
    for other in ("answers.dat", "answers.jsonl", "answers.json"):
        Path(other).write_bytes(path.read_bytes())
        assert find_format(other).name == name
    Path("x.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert find_format("x.gz").name == name


@pytest.mark.parametrize(
    "line",
    [
        {"item": 1, "worker": "a", "label": "x"},
        {"fields": "a", "responses": "yes"},
        {"text": "a", "label": "yes"},
    ],
)
def test_plain_tables_stay_tables(folder, line):
    assert find_format(write_lines("a.jsonl", [line] * 2)).name == "jsonl"


def test_a_table_is_not_taken_for_spans(folder):
    Path("a.csv").write_text("item,worker,label\n1,a,B-PER\n", encoding="utf-8")
    assert "read_answers" in refusal(cs.read_spans, "a.csv")
    assert "does not exist" in refusal(cs.read_spans, "nothing.json")
    with pytest.raises(cs.errors.ParameterError, match=r"one of .*'doccano'"):
        cs.read_spans("a.csv", format="docano")
    with pytest.raises(cs.errors.ParameterError, match="'format'"):
        cs.read_spans("a.csv", format=3)
    with pytest.raises(cs.errors.ParameterError, match="a Spans"):
        cs.write_spans([], "a.json", format="brat")


# -------------------------------------------------------------------------------------------------------- Label Studio


def test_choices_are_answers(folder):
    def choice(*values, name="mood"):
        return {"from_name": name, "to_name": "t", "type": "choices", "value": {"choices": list(values)}}

    tasks = [
        {"id": i, "data": {"t": "x"}, "annotations": [
            {"completed_by": 1, "result": [choice("good")]}, {"completed_by": 2, "result": [choice("bad")]},
            {"completed_by": 3, "ground_truth": True, "result": [choice("bad")]}],
         "predictions": [{"model_version": "m", "result": [choice("bad")]}]}
        for i in (5, 6)
    ]  # fmt: skip
    responses = cs.read_answers(write_json("a.json", tasks))
    assert (responses.n_items, responses.n_workers, responses.labels.tolist()) == (2, 3, ["bad", "good"])
    assert "read_answers" in refusal(cs.read_spans, "a.json")
    tasks[0]["annotations"][0]["result"] = [choice("good", "bad")]
    assert "ets of tags" in refusal(cs.read_answers, write_json("a.json", tasks))
    assert cs.read_tags("a.json").said.sum(axis=1).tolist() == [2, 1, 1, 1, 1, 1]
    tasks[0]["annotations"][0]["result"] = [choice("good"), choice("bad")]
    assert "made twice" in refusal(cs.read_answers, write_json("a.json", tasks))
    tasks[0]["annotations"][0]["result"] = [choice("good"), choice("yes", name="spam")]
    table = cs.read_answers(write_json("a.json", tasks[:1]), label="mood")
    assert table.labels.tolist() == ["bad", "good"]


def test_odd_label_studio_files(folder):
    tasks = label_studio()
    tasks[0]["annotations"][0]["result"][0]["value"]["text"] = "Eve"
    assert "record 1 (id 11): a region quotes 'Eve'" in refusal(cs.read_spans, write_json("a.json", tasks))
    tasks = label_studio()
    tasks[0]["annotations"][0]["result"][0]["value"]["end"] = 300
    del tasks[0]["annotations"][0]["result"][0]["value"]["text"]
    assert "(id 11): the span from 0 to 300 is not within" in refusal(cs.read_spans, write_json("a.json", tasks))
    assert "audio" in refusal(cs.read_spans, write_json("a.json", [{"id": 1, "data": {"a": "u"}, "annotations": [
        {"completed_by": 1, "result": [region(0.5, 1.5, "x")]}]}]))  # fmt: skip
    minimal = [{"id": 1, "text": "a", "label": [], "annotator": 1, "annotation_id": 2, "lead_time": 1}]
    assert "JSON-MIN" in refusal(cs.read_spans, write_json("a.json", minimal))
    assert "no task of Label Studio" in refusal(cs.read_answers, write_json("a.json", {"x": 1}))


# ------------------------------------------------------------------------------------------------------------- Prodigy


def test_answers_of_prodigy_are_taken_for_what_they_are(folder):
    lines = [
        {"text": "a", "label": "SPAM", "answer": answer, "_input_hash": i, "_session_id": who}
        for i in (1, 2)
        for who, answer in (("x", "accept"), ("y", "reject"), ("z", "ignore"))
    ]
    responses = cs.read_answers(write_lines("a.jsonl", lines))
    assert (responses.n_items, responses.n_workers, responses.labels.tolist()) == (2, 2, ["accept", "reject"])
    assert "read_answers" in refusal(cs.read_spans, "a.jsonl")
    two = lines + [{**line, "label": "HAM"} for line in lines]
    assert cs.read_answers(write_lines("a.jsonl", two)).n_items == 4


def test_rejected_spans_are_no_annotation(folder):
    lines = prodigy()
    lines[1]["answer"] = "reject"
    write_lines("a.jsonl", lines)
    with pytest.warns(DataWarning, match="Not used of .* 1 line .rejected"):
        spans = cs.read_spans("a.jsonl")
    assert ("-5", "d-bob") not in annotations(spans)
    assert spans.tokens is not None
    lines[0]["_view_id"] = "ner"
    assert "single suggestion" in refusal(cs.read_spans, write_lines("a.jsonl", lines))
    taught = {"text": TEXT, "spans": [{"start": 0, "end": 3, "label": "PER"}], "answer": "accept", "_input_hash": 1}
    assert "single suggestion" in refusal(cs.read_spans, write_lines("a.jsonl", [taught]))
    assert len(cs.read_spans(write_lines("a.jsonl", [taught | {"_view_id": "ner_manual"}])).marks.start) == 1


# ------------------------------------------------------------------------------------------------------------- doccano


def test_classes_of_doccano(folder):
    for name, label in (("ann", "pos"), ("bob", "neg")):
        write_lines(f"{name}.jsonl", [{"id": i, "text": f"t{i}", "label": [label], "Comments": []} for i in range(3)])
    responses = cs.read_answers(folder)
    assert (responses.n_items, responses.workers.tolist()) == (3, ["ann", "bob"])
    assert cs.read_answers("*.jsonl").n_items == 3
    assert "read_answers" in refusal(cs.read_spans, folder)
    write_lines("bob.jsonl", [{"id": 0, "text": "t0", "label": ["pos", "neg"]}])
    assert "ets of tags" in refusal(cs.read_answers, folder)
    assert cs.read_tags(folder).said.sum(axis=1).tolist() == [1, 2, 1, 1]


# ---------------------------------------------------------------------------------------------------------------- brat


def test_one_folder_is_one_worker(folder):
    write_brat(folder / "corpus")
    Path("corpus/bob/a.txt").write_text(TEXT, encoding="utf-8")
    with pytest.warns(DataWarning, match="fragments"):
        assert cs.read_spans("corpus/bob").workers.tolist() == ["bob"]
    Path("corpus/bob/a.ann").write_text("T1\tPER 0 99\tAnn\n", encoding="utf-8")
    assert "a.ann, line 1: the span from 0 to 99" in refusal(cs.read_spans, "corpus/bob")
    for line in ("T1\tPER 0 3\tEve", "T1 PER 0 3", "X", "T1\tPER a b\tx", "T1\tPER 0 3\tAnn\nT1\tPER 0 3\tAnn"):
        Path("corpus/bob/a.ann").write_text(line, encoding="utf-8")
        assert "a.ann, line" in refusal(cs.read_spans, "corpus/bob")


# --------------------------------------------------------------------------------------------------------------- CoNLL


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Ann B-PER\nLee I-PER\n\nmet O\n", {("1", "x"): {(0, 7, "PER")}, ("2", "x"): set()}),
        ("U.N. NNP I-NP I-ORG\nman NN I-NP O\n. . O O\n", {("1", "x"): {(0, 4, "ORG")}}),
        ("Ann -X- _ B-PER\nLee -X- _ I-PER\n", {("1", "x"): {(0, 7, "PER")}}),
        ("Ann I-PER\nBob B-PER\nEve I-PER\nX I-LOC\n", {("1", "x"): {(0, 3, "PER"), (4, 11, "PER"), (12, 13, "LOC")}}),
    ],
)
def test_columns_are_understood(folder, content, expected):
    Path("x.conll").write_text(content, encoding="utf-8")
    assert annotations(cs.read_spans("x.conll")) == expected


# ------------------------------------------------------------------------------------------------------------- Argilla


def test_answers_of_argilla(folder):
    values = [{"id": str(i), "fields": {"text": "a"}, "responses": {"mood": [
        {"value": "good", "user_id": "u"}, {"value": "bad", "user_id": "v", "status": "submitted"},
        {"value": "bad", "user_id": "w", "status": "draft"}]},
        "suggestions": {"mood": {"value": "bad", "score": 0.5, "agent": "gpt"}}} for i in range(2)]  # fmt: skip
    for write, name in ((write_json, "a.json"), (write_lines, "a.jsonl")):
        responses = cs.read_answers(write(name, values))
        assert (responses.n_items, responses.workers.tolist()) == (2, ["gpt", "u", "v"])
    assert "read_answers" in refusal(cs.read_spans, "a.json")
    values[0]["responses"]["mood"][0]["value"] = ["good", "bad"]
    assert "ets of tags" in refusal(cs.read_answers, write_json("a.json", values))
    assert cs.read_tags("a.json").said.sum(axis=1).tolist() == [1, 2, 1, 1, 1, 1]
    values[0]["responses"]["mood"][0]["value"] = {"good": 1}
    assert "record 1 (id '0'): the answer to 'mood'" in refusal(cs.read_answers, write_json("a.json", values))
    values[0]["responses"]["mood"][0]["value"] = "good"
    values[0]["responses"]["rating"] = [{"value": 3, "user_id": "u"}]
    assert cs.read_answers(write_json("a.json", values), label="mood").n_items == 2


# ------------------------------------------------------------------------------------------------------- damaged files


def example_lines(name):
    return {
        "label-studio": label_studio,
        "prodigy": prodigy,
        "argilla": argilla,
        "doccano": lambda: [*doccano()["ann"], {**doccano()["bob"][0], "id": 3}],
    }[name]()


def classes_of(name):
    """Return a small file of answers about items."""
    choice = {"from_name": "m", "to_name": "t", "type": "choices", "value": {"choices": ["good"]}}
    annotation = {"completed_by": 1, "ground_truth": False, "was_cancelled": False, "result": [choice]}
    return {
        "label-studio": [{"id": 1, "data": {"t": "x"}, "annotations": [annotation], "predictions": []}],
        "prodigy": [
            {"text": "a", "options": [{"id": "s"}], "accept": ["s"], "answer": "accept", "_input_hash": 1},
            {"text": "b", "options": [{"id": "s"}], "accept": ["s"], "answer": "accept", "_input_hash": 2},
        ],
        "doccano": [{"id": 1, "text": "a", "label": ["x"]}, {"id": 2, "text": "b", "label": ["y"]}],
        "argilla": [{"id": "1", "fields": {"t": "x"}, "responses": {"m": [{"value": "g", "user_id": "u"}]}}],
    }[name]


def places_in(value, path=()):
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from places_in(inner, (*path, key))


def replaced(value, path, new):
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return changed


@pytest.mark.parametrize("name", JSON_TOOLS)
@pytest.mark.parametrize("make", [example_lines, classes_of])
@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_wrong_types_anywhere(folder, name, make):
    """Every value in turn is replaced by a third of the others: our own error, or a result that can be written."""
    example = make(name)
    if "tokens" in example[0]:
        example = [{**line, "tokens": line["tokens"][:1]} for line in example[1:]]
    reader = cs.read_spans if make is example_lines else cs.read_answers
    Path("out").mkdir()
    count = 0
    kinds = [None, 7, -1, 10**30, float("nan"), True, "word", "", [], [1], {"a": 1}, [[]], [{}], ["\ud800"]]
    for place, path in enumerate(path for path in places_in(example) if path):
        for new in kinds[place % 3 :: 3]:
            write_lines("a.jsonl", replaced(example, path, new))
            count += 1
            said = try_to_read(name, reader, write=count % 5 == 0)  # writing waits for the disk
            assert said is None or "a.jsonl" in said or reader is cs.read_answers, (path, new, said)


def try_to_read(name, reader, write) -> str | None:
    """Read a file, and write and read again what was read. Return our own error, if there is one."""
    try:
        if reader is cs.read_answers:
            answers = reader("a.jsonl", format=name)
            if write:
                labels = {"item": answers.items.tolist(), "label": ["s"] * answers.n_items}
                cs.write_labels(labels, "out.jsonl", "a.jsonl", format=name)
                assert reader("out.jsonl", format=name).n_responses >= answers.n_items
            return None
        spans = reader("a.jsonl", format=name)
    except ConsilienceError as error:
        return str(error)
    if write:
        cs.write_spans(spans, "out/a.jsonl")
        assert annotations(cs.read_spans("out/a.jsonl", format=name)) == annotations(spans)
    return None


@pytest.mark.parametrize("name", JSON_TOOLS)
def test_deep_nesting(folder, name):
    for depth in (90, 5000, 500_000):
        nested = "[" * depth + "]" * depth
        Path("a.jsonl").write_text('{"id": 1, "meta": ' + nested + ', "text": "a"}\n', encoding="utf-8")
        assert "a.jsonl, line 1" in refusal(cs.read_spans, "a.jsonl", format=name)
    deep = json.dumps(example_lines(name)[0])[:-1] + ', "more": ' + "[" * 5000 + "]" * 5000 + "}"
    Path("a.jsonl").write_text(deep, encoding="utf-8")
    assert "nested too deeply" in refusal(cs.read_spans, "a.jsonl", format=name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_bytes_at_random(folder, name):
    path = Path(write_example(name, folder))
    files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.is_file()]
    draw = np.random.default_rng(0)
    for _ in range(60):
        file = files[draw.integers(len(files))]
        content = file.read_bytes()
        damaged = bytearray(content)
        for _ in range(draw.integers(1, 4)):
            if damaged:
                damaged[draw.integers(len(damaged))] = draw.choice(list(b'"{}[]:,\\ \n\t0-9TOB\x00\xff'))
        file.write_bytes(damaged[: draw.integers(len(damaged) + 1)] if draw.random() < 0.3 else damaged)
        for more in ({"format": name}, {}):
            try:
                spans = cs.read_spans(path, **more)
            except InputError as error:
                said = str(error)
            else:
                said = repr(spans)
            assert len(said) <= LONGEST_MESSAGE
        file.write_bytes(content)


def test_other_files_in_a_folder_are_left_alone(folder):
    team = Path(write_example("doccano", folder))
    (team / "README.md").write_text("Who did what.", encoding="utf-8")
    spans = cs.read_spans(team)
    assert annotations(spans) == DOCCANO
    (team / "eve.jsonl").write_text('{"id": 1, "text": "Ann', encoding="utf-8")
    assert "several formats" in refusal(cs.read_spans, team)
    assert "eve.jsonl, line 1" in refusal(cs.read_spans, team, format="doccano")
    (team / "eve.jsonl").unlink()
    cs.write_spans(mark({1: TEXT}, {(1, "fused"): {(0, 3, "PER"): 0.5}}, origin=spans.origin), team / "fused.jsonl")
    assert len(cs.read_spans(team / "fused.jsonl").documents) == 1
    with pytest.warns(DataWarning, match="as fused results do"):
        assert annotations(cs.read_spans(team)) == {**DOCCANO, ("1", "fused"): {(0, 3, "PER")}}


def rate_in(tool):
    """Records of a tool in which two raters and a model rate three texts."""
    said = [{"ann": 1, "bob": 2, "gpt": 2}, {"ann": 5, "bob": 4, "gpt": 5}, {"ann": 3, "bob": 3, "gpt": 3}]
    if tool == "argilla":
        return [{"id": str(n), "fields": {"text": "a"},
                 "responses": {"stars": [{"value": values[who], "user_id": who} for who in ("ann", "bob")]},
                 "suggestions": {"stars": {"value": values["gpt"], "agent": "gpt"}}}
                for n, values in enumerate(said)]  # fmt: skip

    def rating(value):
        return [{"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": value}}]

    return [{"id": n, "data": {"text": "a"},
             "annotations": [{"completed_by": {"email": who}, "result": rating(values[who])} for who in ("ann", "bob")],
             "predictions": [{"model_version": "gpt", "result": rating(values["gpt"])}]}
            for n, values in enumerate(said)]  # fmt: skip


@pytest.mark.parametrize("tool", ["label-studio", "argilla"])
def test_ratings_go_round(folder, tool):
    """Ratings are read as a scale, written as ratings, and read again."""
    answers = cs.read_answers(write_json("a.json", rate_in(tool)))
    assert answers.is_ordered
    assert answers.classes.tolist() == [1, 2, 3, 4, 5]
    labels = {"item": answers.items.tolist(), "label": ["2", "5", "3"]}  # a table of labels may hold them as text
    cs.write_labels(labels, "b.json", "a.json")
    again = cs.read_answers("b.json")
    assert again.is_ordered
    own = [row["label"] for row in to_long(again).to_pylist() if row["worker"] == "consilience"]
    assert [int(label) for label in own] == [2, 5, 3]
    assert {"gpt", "ann", "bob"} < set(again.workers.tolist())
    labels["label"][0] = "many"
    assert "'many' is no rating" in refusal(cs.write_labels, labels, "c.json", "a.json")
