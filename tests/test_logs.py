"""Logs of evaluations and exports of volunteers: what was said becomes answers, and what was not never does.

The files in tests/logs were written by the tools themselves, by the commands in that folder.
"""

from __future__ import annotations

import csv
import gzip
import json
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from command_line import run
from consilience.answers.layouts import to_long
from consilience.errors import DataWarning, InputError
from consilience.formats.files import find_format
from consilience.formats.logs import peek_keys, read_parts

LOGS = Path(__file__).parent / "logs"
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def triples(source, **columns):
    """All answers as text: item, worker, label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = to_long(cs.read_answers(source, **columns)).to_pydict()
    return sorted(zip(*(map(str, table[name]) for name in ("item", "worker", "label")), strict=True))


def listen(source, **columns) -> str:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        cs.read_answers(source, **columns)
    return " ".join(str(each.message) for each in heard if issubclass(each.category, DataWarning))


FILES = {
    "inspect-ash.eval": "inspect",
    "inspect-mixed.json": "inspect",
    "inspect-collect.json.gz": "inspect",
    "promptfoo.json": "promptfoo",
    "promptfoo.jsonl": "promptfoo",
    "zooniverse.csv": "zooniverse",
    "deepeval.json": "deepeval",
    "lm-eval/ash/samples_facts_2026-11-19T00-00-00.000000.jsonl": "lm-eval",
    "langfuse.json": "langfuse",
    "langfuse.csv": "langfuse",
    "mlflow.jsonl": "mlflow",
    "potato/ann/user_state.json": "potato",
    "potato.jsonl": "potato",
}


@pytest.mark.parametrize(("name", "format"), FILES.items())
def test_recognised_by_content_alone(name, format, tmp_path):
    copy = tmp_path / "a.dat"
    copy.write_bytes((LOGS / name).read_bytes())
    for path in (LOGS / name, copy):
        assert find_format(str(path)).name == format


@pytest.mark.parametrize("name", FILES)
def test_fused_by_one_command(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("fuse", str(LOGS / name), "-o", "labels.csv", "-q")
    assert result.exit_code == 0, result.stderr
    assert {"item", "label"} <= {*Path("labels.csv").read_text().splitlines()[0].split(",")} or name == "zooniverse.csv"


@pytest.mark.parametrize("share", [0.21, 0.52, 0.93])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_off_is_one_error(name, share, tmp_path):
    """It says where, and what to do; nothing of the file is taken for an answer."""
    content = (LOGS / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    path = tmp_path / Path(name).name.removesuffix(".gz")
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError) as error:
        triples(path, format=FILES[name])
    assert path.name in str(error.value)
    assert "again" in str(error.value)


@pytest.mark.parametrize("name", [name for name in FILES if "json" in name])
def test_odd_values_are_errors_or_no_answers(name, tmp_path):
    """Each value of a log in turn is something else: a reader may refuse it, in words, and never fails otherwise."""
    content = (LOGS / name).read_bytes()
    lines = (gzip.decompress(content) if name.endswith(".gz") else content).decode().splitlines()
    log = json.loads(lines[0] if name.endswith("l") else "".join(lines))
    rng = np.random.default_rng(0)
    path = tmp_path / "log.json"
    places = list(walk(log))
    for at in rng.choice(len(places), 60):
        holder, key = places[at]
        kept, holder[key] = holder[key], [None, 3, "x", [], {}, [1, {}], {"a": []}, float("nan")][rng.integers(8)]
        path.write_text(json.dumps(log))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cs.read_answers(path, format=FILES[name])
        except InputError:
            pass
        holder[key] = kept


def walk(value):
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(held, (dict, list)):
            yield from walk(held)


# ------------------------------------------------------------------------------------------------------- documents


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_document_read_in_parts_is_that_of_json(size, monkeypatch):
    """However the text is cut, and with white space, escapes, numbers and line breaks in all places."""
    monkeypatch.setattr("consilience.formats.logs._CHARACTERS", size)
    held = {"a": [1, -2.5e3, 'x\u20ac\n"\\', None, True], "b": {"c": [{"d": []}, [[]], 12345], "e": 7}, "f": 1, "": 0}
    for text in (json.dumps(held), json.dumps(held, indent=1), json.dumps(held, ensure_ascii=False) + "\n"):
        parts = [(name, value) for name, _, value in read_parts(to_stream(text), "x", "a", "b.c")]
        assert parts == [
            *(("a", each) for each in held["a"]),
            *(("b.c", each) for each in held["b"]["c"]),
            ("b.e", 7),
            ("f", 1),
            ("", 0),
        ]
    lines = [{"a": 1}, {"a": [2, 3]}]
    assert [each for *_, each in read_parts(to_stream("\n".join(map(json.dumps, lines))), "x")] == lines
    assert [each for *_, each in read_parts(to_stream(json.dumps(lines)), "x")] == lines
    for bad in ('{"a": [1, 2', '{"a": [1 2]}', '{"a" 1}', '{"a": [1,]}', '{"a": tru}', "{'a': 1}", "[1", '{"a": "x'):
        with pytest.raises(InputError, match="x, line 1: not valid JSON"):
            list(read_parts(to_stream(bad), "x", "a"))


def to_stream(text):
    import pyarrow as pa

    return pa.input_stream(pa.BufferReader(text.encode()))


def test_peeking_sees_what_is_whole():
    head = b'\xef\xbb\xbf [{"a": {"b": [1, 2]}, "c": "x", "d": [1, {"e'
    assert peek_keys(head) == {"a": {"b": [1, 2]}, "c": "x", "d": None}
    assert peek_keys(b"item,worker\n") == peek_keys(b"") == peek_keys(b"[[1]]") == {}


# --------------------------------------------------------------------------------------------------------- Inspect AI

SAID = {
    "mockllm/ash": ["Paris", "5", "Mars.", "honey", "7", "white"],
    "mockllm/elm": ["Paris", "6", "It is Mars", "wax", "eight", "I cannot say."],
}
TARGETS = ["Paris", "5", "Mars", "honey", "7", "white"]


def grade(right):
    return "C" if right else "I"


def test_inspect_scores_of_several_systems():
    """Scores follow from what the systems and graders of make_inspect.py say; a grader that failed gives none."""
    expected = []
    for system, texts in SAID.items():
        for i, (text, target) in enumerate(zip(texts, TARGETS, strict=True), 1):
            item = f"{i}|{system}"
            expected += [(item, "includes", grade(target in text))]
            expected += [(item, "match", grade(text.rstrip(".").endswith(target)))]
            expected += [(item, "model_graded_qa", "CCCII"[i - 1])] if i < 6 else []
            expected += [(item, "model_graded_qa1", "CICCII"[i - 1])]
    assert triples(LOGS / "inspect-*.eval") == sorted(expected)
    assert "2 scores" in listen(LOGS / "inspect-*.eval")
    assert "grader_failed" in listen(LOGS / "inspect-ash.eval")
    fused = cs.fuse(LOGS / "inspect-*.eval", model="majority")
    assert {*fused.to_frame()["system"].to_pylist()} == {*SAID}


def test_inspect_one_system_has_plain_items():
    assert {item for item, *_ in triples(LOGS / "inspect-ash.eval")} == set("123456")
    table = cs.read_answers(LOGS / "inspect-ash.eval", order="time")
    assert table.order is not None


def test_inspect_judges_of_collect_are_workers():
    """Where one of two judges failed, the log does not say which: none of the two is taken at its word."""
    path = LOGS / "inspect-collect.json.gz"
    log = json.loads(gzip.decompress(path.read_bytes()))
    expected = []
    for sample in log["samples"]:
        said, item = sample["scores"]["multi_scorer"]["value"], f"{sample['id']}|{sample['epoch']}"
        expected += [(item, "mockllm/oak", said[0]), (item, "mockllm/yew", said[1])] if len(said) == 2 else []
    assert triples(path) == sorted(expected)
    assert len(expected) == 4
    assert "2 scores" in listen(path)
    assert "which" in listen(path)


def test_inspect_grades_numbers_and_keys_are_questions():
    path = LOGS / "inspect-mixed.json"
    samples = json.loads(path.read_text())["samples"]
    said = {str(each["id"]): each["scores"] for each in samples}
    grades = [(i, "match", each["match"]["value"]) for i, each in said.items()]
    short = [(i, "rubric", each["rubric"]["value"]["short"]) for i, each in said.items() if "rubric" in each]
    assert triples(path, label="grade") == sorted(grades)
    assert triples(path, label="short") == sorted(short)
    assert len(short) < len(grades)  # of a sample that the rubric could not score
    fused = cs.fuse(path, model="majority")
    assert set(fused) == {"grade", "score", "polite", "short"}


def write_inspect(path, **scores):
    """A log with a sample for each value of each scorer."""
    samples = [
        {"id": i, "epoch": 1, "input": "?", "scores": {name: {"value": values[i]} for name, values in scores.items()}}
        for i in range(len(next(iter(scores.values()))))
    ]
    head = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    path.write_text(json.dumps({**head, "samples": samples}))
    return path


def test_inspect_keys_may_be_called_as_what_judges_say_together(tmp_path):
    path = write_inspect(tmp_path / "log.json", rubric=[{"grade": n} for n in (0, 1, 2)], words=["C", "I", "C"])
    assert [label for _, _, label in triples(path, label="grade")] == ["0", "1", "2"]
    assert [label for _, _, label in triples(path, label="grade (overall)")] == ["C", "I", "C"]


def test_inspect_zero_and_one_are_grades_beside_grades(tmp_path):
    """As Inspect's own value_to_float has it; alone they are true and false, and other numbers are scores."""
    path = write_inspect(tmp_path / "log.json", words=["C", "I", "P"], numbers=[1, 0.0, True])
    assert [label for _, worker, label in triples(path) if worker == "numbers"] == ["C", "I", "C"]
    labels = [label for *_, label in triples(write_inspect(path, a=[1, 0], b=[True, False]))]
    assert labels == ["True", "True", "False", "False"]
    assert [label for *_, label in triples(write_inspect(path, a=[1, 2], b=[0, 4.0]))] == ["1", "0", "2", "4"]
    with pytest.raises(InputError, match="holds no scores"):
        triples(write_inspect(path, a=[float("nan"), None, "", [1]]))


def test_inspect_logs_of_the_same_system_are_runs(tmp_path):
    write_inspect(tmp_path / "a.json", a=["C", "I"], b=["C", "C"])
    write_inspect(tmp_path / "b.json", a=["I", "I"], b=["C", "I"])
    assert {item for item, *_ in triples(tmp_path)} == {"0|1", "1|1", "0|2", "1|2"}


# ---------------------------------------------------------------------------------------------------------- promptfoo


@pytest.mark.parametrize("name", ["promptfoo.json", "promptfoo.jsonl"])
def test_promptfoo_assertions_are_workers(name):
    """A metric that two graders judge is a question to them, and a grader that failed did not say no."""
    results = json.loads((LOGS / "promptfoo.json").read_text())["results"]["results"]
    expected: dict[str, list] = {"passed": [], "sure": []}
    n_failed = 0
    for each in results:
        item = f"{each['testIdx']}|{each['provider']['label']}"
        for part in each["gradingResult"]["componentResults"]:
            assertion = part["assertion"]
            if part.get("metadata", {}).get("graderError"):
                assert not part["pass"]  # as promptfoo counts it
                n_failed += 1
            elif assertion.get("metric") == "sure":
                expected["sure"].append((item, assertion["provider"], str(part["pass"])))
            else:
                expected["passed"].append((item, assertion.get("metric", assertion["type"]), str(part["pass"])))
    for question, rows in expected.items():
        assert triples(LOGS / name, label=question) == sorted(rows)
    assert n_failed == 8
    assert "8 scores" in listen(LOGS / name, label="sure")


# --------------------------------------------------------------------------------------------------------- Zooniverse


def zooniverse():
    with open(LOGS / "zooniverse.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_zooniverse_tasks_are_questions():
    """Tasks are where the export has them; an expert's are known labels, and nobody's answers."""
    path, expected = LOGS / "zooniverse.csv", {"T0": [], "T4": [], "T5": []}
    for row in zooniverse():
        tasks = {each["task"]: each["value"] for each in json.loads(row["annotations"])}
        (menu,) = tasks["T2"][1]["value"]
        if row["gold_standard"] != "true":
            for name, value in {"T0": tasks["T0"], "T4": menu["label"], "T5": float(tasks["T5"])}.items():
                expected[name].append((row["subject_ids"], str(value)))
    for name, rows in expected.items():
        assert sorted((item, label) for item, _, label in triples(path, label=name)) == sorted(rows)
    answers = cs.read_answers(path, label="T0")
    known = {row["subject_ids"] for row in zooniverse() if row["gold_standard"] == "true"}
    assert {str(item) for item in answers.gold} == known
    assert "T6" in listen(path, label="T0")
    assert "1 task" in listen(path, label="T0")


def test_zooniverse_choices_are_sets():
    path = LOGS / "zooniverse.csv"
    tags = cs.read_tags(path, label="T1")
    assert [str(tag) for tag in tags.tags] == ["AGOUTI", "DEER", "NOTHINGHERE"]
    rows = [row for row in zooniverse() if row["gold_standard"] != "true"]
    chosen = [{one["choice"] for one in json.loads(row["annotations"])[1]["value"]} for row in rows]
    fused = cs.fuse(path, label="T1")
    assert fused.to_frame().num_rows == len({row["subject_ids"] for row in rows})
    assert max(map(len, chosen)) == 2
    light = cs.read_tags(path, label="T3")  # an empty list is an answer, and null is none
    assert "47 sets" in repr(light)


def test_zooniverse_volunteers_without_a_name(tmp_path, monkeypatch):
    """They are told apart by session, else address, and no hash of the export is in what is written."""
    monkeypatch.chdir(tmp_path)
    workers = {worker for _, worker, _ in triples(LOGS / "zooniverse.csv", label="T0")}
    assert {worker for worker in workers if not worker.startswith("anonymous-")} == {"vera-0", "vera-1", "vera-2"}
    assert len(workers) == 6
    files = "-o", "l.csv", "--report", "r.html", "--workers-report", "w.csv"
    result = run("fuse", str(LOGS / "zooniverse.csv"), "--label", "T0", *files)
    assert result.exit_code == 0, result.stderr
    written = result.stdout + result.stderr + "".join(Path(name).read_text() for name in ("l.csv", "r.html", "w.csv"))
    assert "anonymous-" in written
    for row in zooniverse():
        session = json.loads(row["metadata"]).get("session", "none there")
        assert session not in written
        assert row["user_id"] or row["user_ip"] not in written


def test_zooniverse_labels_with_their_probabilities(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("fuse", str(LOGS / "zooniverse.csv"), "-o", "l.csv", "--label", "T0", "-q").exit_code == 0
    rows = list(csv.DictReader(Path("l.csv").read_text().splitlines()))
    assert [row["item"] for row in rows] == list(dict.fromkeys(row["subject_ids"] for row in zooniverse()))
    assert all(float(row["p(No)"]) + float(row["p(Yes)"]) == pytest.approx(1) for row in rows)


# --------------------------------------------------------------------------- DeepEval, lm-evaluation-harness, traces


def test_deepeval_metrics_are_workers():
    """A metric with two evaluation models is a question to them; one that met an error did not say no."""
    cases = json.loads((LOGS / "deepeval.json").read_text())["testCases"]
    rows = [(case["name"], each) for case in cases for each in case["metricsData"]]
    assert [(each["error"], each["success"]) for _, each in rows if "error" in each] == [
        ("ValueError: the judge sent no JSON", False)  # as DeepEval counts it
    ]
    told = [(item, each) for item, each in rows if "error" not in each]
    sure = [(item, each["evaluationModel"], str(each["success"])) for item, each in told if each["name"] == "Sure"]
    other = [(item, each["name"], str(each["success"])) for item, each in told if each["name"] != "Sure"]
    assert triples(LOGS / "deepeval.json", label="Sure") == sorted(sure)
    assert triples(LOGS / "deepeval.json", label="passed") == sorted(other)
    assert "1 score" in listen(LOGS / "deepeval.json", label="Sure")


def test_deepeval_runs_are_systems(tmp_path):
    for name in ("ash", "elm"):
        (tmp_path / f"{name}.json").write_bytes((LOGS / "deepeval.json").read_bytes())
    assert {item for item, *_ in triples(tmp_path, label="Sure")} >= {"fact 0|ash", "fact 0|elm"}


def test_lm_eval_arguments_may_be_lists(tmp_path):
    sample = {"doc": {}, "target": "a", "resps": [["x"]], "filtered_resps": ["x"], "arguments": [["Q?", " x"]]}
    rows = [json.dumps({"doc_id": n, **sample, "acc": n % 2}) for n in range(4)]
    path = tmp_path / "samples_t.jsonl"
    path.write_text("\n".join(rows))
    assert [label for *_, label in triples(path)] == ["False", "True"] * 2


def test_lm_eval_metrics_and_filters_are_workers():
    expected = []
    for file in sorted(LOGS.glob("lm-eval/*/*.jsonl")):
        for each in map(json.loads, file.read_text().splitlines()):
            worker = f"exact_match ({each['filter']})"
            expected.append((f"{each['doc_id']}|{file.parent.name}", worker, str(each["exact_match"] == 1)))
    assert triples(LOGS / "lm-eval" / "*" / "*.jsonl") == sorted(expected)
    assert "chrf" in listen(LOGS / "lm-eval" / "ash")


@pytest.mark.parametrize("name", ["langfuse.json", "langfuse.csv"])
def test_langfuse_scores_by_name_and_source(name):
    scores = json.loads((LOGS / "langfuse.json").read_text())["data"]
    tone = [(each["traceId"], each["source"], each["stringValue"]) for each in scores if each["name"] == "tone"]
    names = {"EVAL": "eval", "ANNOTATION": "human vera"}
    assert triples(LOGS / name, label="tone") == sorted((item, names[who], label) for item, who, label in tone)
    grounded = [(each["traceId"], each["name"], each["stringValue"]) for each in scores if "grounded" in each["name"]]
    assert triples(LOGS / name, label="passed") == sorted(grounded)
    assert triples(LOGS / name, label="score") == [("t3", "length", "4.5")]
    known = cs.read_answers(LOGS / name, label="tone", gold="tone_human").gold
    assert known == {item: label for item, who, label in tone if who == "ANNOTATION"}
    assert cs.read_answers(LOGS / name, label="tone").gold is None  # only if asked for


def test_mlflow_feedback_by_source():
    traces = list(map(json.loads, (LOGS / "mlflow.jsonl").read_text().splitlines()))
    expected = []
    for info in (trace["info"] for trace in traces):
        for each in info["assessments"]:
            if each["assessment_name"] == "correct" and "error" not in each["feedback"]:
                human = "human " if each["source"]["source_type"] == "HUMAN" else ""
                item = f"{info['trace_id']}|{info['trace_metadata']['mlflow.modelId']}"
                expected.append((item, human + each["source"]["source_id"], each["feedback"]["value"]))
    assert triples(LOGS / "mlflow.jsonl", label="correct") == sorted(expected)
    assert len(expected) == 10
    assert "the judge sent no JSON" in listen(LOGS / "mlflow.jsonl", label="correct")
    known = cs.read_answers(LOGS / "mlflow.jsonl", label="correct", gold="correct_human").gold
    assert sorted(known.values()) == ["no", "yes", "yes"]
    assert cs.read_answers(LOGS / "mlflow.jsonl", label="passed").n_workers == 1  # and the expectation is no verdict


def test_grades_and_truth_values_answer_one_question_alike(tmp_path):
    """Also a question that the log names: of MLflow by several sources, of Inspect by a key."""
    told = [("HUMAN", "ann", True), ("LLM_JUDGE", "j", "yes"), ("CODE", "c", False), ("CODE", "d", 0)]
    each = [
        {"assessment_name": "correct", "source": {"source_type": kind, "source_id": who}, "feedback": {"value": said}}
        for kind, who, said in told
    ]
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps({"info": {"trace_id": "t", "assessments": each}, "data": {}}) + "\n")
    said = [("t", "c", "no"), ("t", "d", "no"), ("t", "human ann", "yes"), ("t", "j", "yes")]
    assert triples(path, format="mlflow") == said
    log = write_inspect(tmp_path / "log.json", a=[{"q": "C"}, {"q": "I"}], b=[{"q": True}, {"q": 0.0}])
    assert [label for *_, label in triples(log)] == ["C", "C", "I", "I"]


def test_a_field_beyond_the_limit_is_named(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(f"name,value,source,traceId,comment\nx,1,API,t,{'a' * 200_000}\n")
    with pytest.raises(InputError, match="line 2: a field has more than 131,072 characters"):
        cs.read_answers(path, format="langfuse")


def test_a_battle_with_itself_is_counted(tmp_path):
    path, records = tmp_path / "battles.jsonl", list(arena())
    records.append({**records[0], "model_b": records[0]["model_a"]})
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    with pytest.warns(DataWarning) as caught:
        cs.rank(path)
    assert any("1 verdict " in str(each.message) and "meets itself" in str(each.message) for each in caught)


def test_people_who_differ_know_nothing(tmp_path):
    base = {"name": "tone", "dataType": "CATEGORICAL", "traceId": "t", "value": 0}
    people = [{**base, "source": "ANNOTATION", "authorUserId": who, "stringValue": said} for who, said in ("ay", "bz")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in people))
    assert triples(tmp_path / "a.jsonl") == [("t", "human a", "y"), ("t", "human b", "z")]
    with pytest.raises(InputError, match="human"):
        cs.read_answers(tmp_path / "a.jsonl", gold="human")


# ------------------------------------------------------------------------------------------------------------ battles

GAMES = [("ash", "elm", "ash"), ("elm", "yew", "elm"), ("ash", "yew", "ash"), ("yew", "elm", "elm")]


def mt_bench():
    """Each pair in both orders, as FastChat's gen_judgment writes them; one game failed."""
    for n, (first, second, best) in enumerate(GAMES * 3):
        winner = "model_1" if best == first else "model_2"
        yield {
            "question_id": 81 + n,
            "model_1": first,
            "model_2": second,
            "g1_winner": winner,
            "g2_winner": "error" if n == 5 else "tie" if n == 6 else winner,
            "judge": ["gpt-4", "pair-v2"],
            "g1_user_prompt": "?",
            "g1_judgment": "[[A]]",
            "turn": 1,
            "tstamp": 1.5,
        }


def alpaca_eval():
    for n, (first, second, best) in enumerate(GAMES * 3):
        said = None if n == 5 else 1.5 if n == 6 else 1.1 if best == first else 2
        names = {"generator_1": first, "generator_2": second, "annotator": "gpt4", "preference": said}
        yield {"instruction": f"Do {n}.", "output_1": "a", "output_2": "b", **names}


def arena():
    for n, (first, second, best) in enumerate(GAMES * 3):
        winner = "tie (bothbad)" if n == 6 else "error" if n == 5 else "model_a" if best == first else "model_b"
        sides = {"model_a": first, "model_b": second, "winner": winner, "judge": f"arena_user_{n % 3}"}
        yield {"question_id": f"q{n}", **sides, "conversation_a": [{"role": "user", "content": "?"}], "turn": 1}


@pytest.mark.parametrize("make", [mt_bench, alpaca_eval, arena])
@pytest.mark.parametrize("as_array", [True, False])
def test_battles_make_a_ranking(make, as_array, tmp_path):
    """The same order and counts as from a plain table of the same verdicts; a judge that failed gives none."""
    path, records = tmp_path / "battles.json", list(make())
    path.write_text(json.dumps(records, indent=1) if as_array else "".join(json.dumps(each) + "\n" for each in records))
    assert find_format(str(path)).name == make.__name__.replace("_", "-")
    with pytest.warns(DataWarning, match="1 verdict .* a judge that failed"):
        ranking = cs.rank(path)
    plain = {"left": [], "right": [], "winner": [], "item": []}
    for n, (first, second, best) in enumerate(GAMES * 3):
        for game in range(2 if make is mt_bench else 1):
            if n != 5 or (make is mt_bench and not game):
                sides = (second, first) if game else (first, second)
                tie = n == 6 and (make is not mt_bench or game)
                for name, value in zip(plain, (*sides, "tie" if tie else best, n), strict=True):
                    plain[name].append(value)
    table = cs.rank(plain).ranking_
    columns = ["candidate", "wins", "ties", "comparisons"]
    assert ranking.ranking_.select(columns).to_pylist() == table.select(columns).to_pylist()
    if make is not arena:  # whose judges are several
        assert ranking.ranking_["score"].to_pylist() == pytest.approx(table["score"].to_pylist())
    assert ranking.ranking_["candidate"].to_pylist()[0] == "ash"


def test_mt_bench_grades_of_single_answers(tmp_path):
    """Answers about a question, a system and a turn; -1 is what FastChat writes where it found no grade."""
    path = tmp_path / "gpt-4_single.jsonl"
    who = [(q, model, judge) for q in (81, 82) for model in "ab" for judge in ("j1", "j2")]
    rows = [(q, model, judge, -1 if (q, judge) == (82, "j2") else 7 + q % 2) for q, model, judge in who]
    keys = ("question_id", "model", "judge", "score")
    records = [{**dict(zip(keys, row, strict=True)), "turn": 1, "judge": [row[2], "single-v1"]} for row in rows]
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    expected = [(f"{q}|{model}", judge, str(score)) for q, model, judge, score in rows if score != -1]
    assert triples(path) == sorted(expected)
    assert "2 scores" in listen(path)


def test_judgebench_games_are_workers(tmp_path):
    """The second game is told in the order of the first, and the label that is known is at hand."""
    path = tmp_path / "pairs,judge_name=arena_hard,judge_model=oak.jsonl"
    games = [("A>B", "B>A"), ("B>A", "B>A"), ("A>B", None), ("A=B", "A>B")]
    records = [
        {
            "pair_id": f"p{n}",
            "question": "?",
            "response_A": "a",
            "response_B": "b",
            "label": "A>B" if n else "B>A",
            "judge_name": "arena_hard",
            "judgments": [each and {"judgment": {}, "decision": each} for each in pair],
        }
        for n, pair in enumerate(games)
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    other = {"A>B": "B>A", "B>A": "A>B", "A=B": "A=B"}
    expected = [(f"p{n}", "oak", first) for n, (first, _) in enumerate(games)]
    expected += [(f"p{n}", "oak, swapped", other[second]) for n, (_, second) in enumerate(games) if second]
    assert triples(path) == sorted(expected)
    assert cs.read_answers(path).gold == {"p0": "B>A", "p1": "A>B", "p2": "A>B", "p3": "A>B"}
    assert "1 score" in listen(path)


# ------------------------------------------------------------------------------------------------------------- Potato


@pytest.mark.parametrize("name", ["potato/*/user_state.json", "potato.jsonl"])
def test_potato_schemes_are_questions(name):
    """What make_potato.py says: radio, likert, slider; checkboxes are sets, of which one is empty."""
    rows = [json.loads(line) for line in (LOGS / "potato.jsonl").read_text().splitlines()]
    for question in ("tone", "stars"):
        chosen = [(row, next(key for key, value in row["labels"][question].items() if value)) for row in rows]
        expected = [(row["instance_id"], row["user_id"], answer) for row, answer in chosen]
        assert triples(LOGS / name, label=question) == sorted(expected)
    share = [(row, row["labels"]["share"]["slider"]) for row in rows if "share" in row["labels"]]
    numbers = sorted((row["instance_id"], row["user_id"], float(value)) for row, value in share)
    assert [(item, who, float(value)) for item, who, value in triples(LOGS / name, label="share")] == numbers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "8 sets of 3 items by 3 workers" in repr(cs.read_tags(LOGS / name, label="topics"))
    told = listen(LOGS / name, label="tone")
    assert "8 questions" in told  # the text boxes, which all left empty
    assert ("3 spans" in told) == ("state" in name)  # the export was made without


# ----------------------------------------------------------------------------------------------------------- archives


def test_an_archive_is_not_unpacked_beyond_memory(tmp_path):
    """A small file that says a hundred million times the same is read a part at a time."""
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
        archive.writestr("summaries.json", b"[" + b" " * 100_000_000)
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    with pytest.raises(InputError, match=r"summaries\.json, line 1: not valid JSON"):
        cs.read_answers(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000


def test_names_in_an_archive_are_not_paths(tmp_path):
    """Nothing is written, and members that are no summaries are not looked at."""
    path = tmp_path / "log.eval"
    samples = [{"id": 1, "epoch": 1, "scores": {"a": {"value": "C"}, "b": {"value": "I"}}}]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
        archive.writestr("../outside.json", "{}")
        archive.writestr("_journal/summaries/1.json", json.dumps(samples))
    assert triples(path) == [("1", "a", "C"), ("1", "b", "I")]  # of an interrupted log
    assert [each.name for each in tmp_path.iterdir()] == ["log.eval"]
    assert not (tmp_path.parent / "outside.json").exists()


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 header.json and nothing more", b"PK\x03\x04_journal/start.json" + bytes(500)]
)
def test_a_damaged_archive_is_one_error(content, tmp_path):
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as an archive"):
        cs.read_answers(path)
