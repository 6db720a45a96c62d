"""Several questions on the same items by the same workers."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from command_line import run
from consilience.models.questions import Questions

NAMES = ["Answer.spam", "Answer.tone"]
# Small crowds are hardly better than the vote.
pytestmark = pytest.mark.filterwarnings("ignore:.*There is no clear difference:consilience.errors.ConsilienceWarning")


def make_table(seed=0, n_items=60, n_workers=12, per_item=4):
    """Yes or no, and one of three tones; the first three workers click at random in both."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_workers, per_item, False) for _ in range(n_items)])
    columns = {"HITId": item, "WorkerId": [f"w{m}" for m in worker]}
    truths = {}
    for name, classes in zip(NAMES, (["no", "yes"], ["cold", "warm", "rude"]), strict=True):
        truth = rng.integers(len(classes), size=n_items)
        right = rng.random(len(item)) < np.where(worker < 3, 1 / len(classes), 0.85)
        said = np.where(right, truth[item], (truth[item] + rng.integers(1, len(classes), len(item))) % len(classes))
        columns[name], truths[name] = np.array(classes)[said], np.array(classes)[truth]
    return pd.DataFrame(columns), truths


def fuse(table, graph=None, **given):
    roles = {"item": "HITId", "worker": "WorkerId", "label": NAMES, "format": "long"}
    return cs.fuse(table, graph, **{**roles, "calibration": "none", **given})


@pytest.fixture(scope="module")
def fused():
    return fuse(make_table()[0])


def test_each_question_has_a_model_of_its_own(fused):
    _table, truths = make_table()
    assert isinstance(fused, Questions)
    assert list(fused) == NAMES
    assert fused["Answer.tone"].classes_.tolist() == ["cold", "rude", "warm"]
    for name in NAMES:
        assert np.mean(fused[name].labels_ == truths[name]) > 0.85
        assert fused[name].get_params()["workers"] == "nominal"
    assert 0 < fused.shared_.own < 1
    assert (np.diff(fused.shared_.trace) > -1e-7).all()
    assert "carry over" in fused.explain_sharing()
    with pytest.raises(KeyError, match="There is no question 'x'"):
        fused["x"]


def test_a_table_of_all_questions_is_long_or_wide(fused):
    _table, _ = make_table()
    long = fused.to_frame()
    assert list(long.columns) == ["item", "question", "label", "confidence"]
    assert len(long) == 120
    tone = long[long["question"] == "Answer.tone"]
    assert tone["label"].tolist() == fused["Answer.tone"].labels_.tolist()
    wide = fused.to_frame(wide=True)
    assert list(wide.columns) == [
        "item",
        "Answer.spam",
        "Answer.spam_confidence",
        "Answer.tone",
        "Answer.tone_confidence",
    ]
    assert wide["Answer.tone"].tolist() == tone["label"].tolist()
    assert fused.to_frame(undecided=0.99)["label"].isna().any()


def test_workers_are_judged_over_all_questions(fused):
    table, _ = make_table()
    report = fused.worker_report().set_index("worker")
    own = {name: fused[name].worker_report().set_index("worker") for name in NAMES}
    assert report["answers"].sum() == 2 * len(table)
    for name in NAMES:
        pd.testing.assert_series_equal(
            report[f"accuracy({name})"], own[name]["accuracy"].reindex(report.index), check_names=False
        )
    clickers = ["w0", "w1", "w2"]
    assert report.loc[clickers, "chance"].min() > report.drop(clickers)["chance"].max()
    # What both questions say together is clearer than what either does.
    best = np.maximum(*(own[name]["chance"].reindex(clickers) for name in NAMES))
    assert (report.loc[clickers, "chance"] >= best - 0.01).all()


def test_what_is_given_may_depend_on_the_question():
    table, _ = make_table()
    known = {"Answer.spam": {0: "yes"}, "Answer.tone": {1: "rude", 2: "rude"}}
    classes = {"Answer.tone": ["cold", "warm", "rude"]}
    found = fuse(table, gold=known, classes=classes, ordered={"Answer.tone": True})
    assert found["Answer.tone"].get_params()["workers"] == "ordinal"
    assert found["Answer.spam"].get_params()["workers"] == "nominal"
    assert found["Answer.tone"].labels_[[1, 2]].tolist() == ["rude", "rude"]
    assert found["Answer.spam"].labels_[0] == "yes"
    columns = pd.DataFrame({"HITId": [0, 1], "Answer.spam": ["yes", None], "Answer.tone": [None, "rude"]})
    again = fuse(table, gold=columns)
    assert again["Answer.spam"].to_frame()["decided_by"].tolist().count("known label") == 1
    long = pd.DataFrame({"HITId": [1], "question": ["Answer.tone"], "label": ["rude"]})
    assert fuse(table, gold=long)["Answer.tone"].labels_[1] == "rude"
    with pytest.raises(cs.errors.InputError, match="to which questions"):
        fuse(table, gold={0: "yes"})
    with pytest.raises(cs.errors.ParameterError, match=r"'Answer.x', and the questions are"):
        fuse(table, classes={"Answer.x": ["a", "b"]})


def make_mixed(tmp_path, sign=";"):
    """Write a question of tags beside another, with empty sets and items of two columns."""
    table, _ = make_table()
    rng = np.random.default_rng(1)
    table["tags"] = [sign.join(rng.choice(["a", "b", "c"], rng.integers(0, 3), False)) for _ in range(len(table))]
    table["page"], table["line"] = table["HITId"] // 10, table["HITId"] % 10
    table.to_csv(tmp_path / "mixed.csv", index=False)
    return table


def test_a_separator_goes_with_the_questions_that_hold_it(tmp_path):
    table = make_mixed(tmp_path)
    found = fuse(table, label=["Answer.spam", "tags"], separator=";")
    assert {name: type(each).__name__ for name, each in found.items()} == {
        "Answer.spam": "DawidSkene",
        "tags": "TagSets",
    }
    assert int(found["tags"].result_.n_answers.sum()) == 3 * len(table)  # empty sets too
    with pytest.raises(cs.errors.InputError, match="';' is in no cell of the questions"):
        fuse(table, separator=";")
    lists = table.assign(tags=table["tags"].str.split(";").map(lambda each: [tag for tag in each if tag]))
    of_lists = fuse(lists, label=["Answer.spam", "tags"], separator=";")
    assert of_lists.to_frame().equals(found.to_frame())


def test_tags_beside_other_questions_are_saved_updated_and_listed(tmp_path):
    table = make_mixed(tmp_path)
    found = fuse(table, item=["page", "line"], label=["Answer.spam", "tags"], separator={"tags": ";"})
    assert found.to_frame().columns[:4].tolist() == ["item", "page", "line", "question"]
    loaded = cs.load(found.save(tmp_path / "mixed.model"))
    assert loaded.to_frame().equals(found.to_frame())
    asked = found.next_items(40)
    assert asked.loc[asked["question"] == "tags", "tag"].isin(["a", "b", "c"]).all()
    assert asked.loc[asked["question"] == "Answer.spam", "tag"].isna().all()
    assert {"Answer.spam", "tags: a"} <= set(found.explain((3, 4)))
    assert str(found["tags"].explain(((3, 4), "a"))) == str(found["tags"].explain((3, 4))["a"])
    with pytest.raises(cs.errors.InputError, match="There is no item"):
        found["tags"].explain(((3, 99), "a"))
    known = pd.DataFrame({"page": [0, 0], "line": [0, 1], "tags": ["a;c", "b"]})
    judged = cs.evaluate(found, known.assign(**{"Answer.spam": ["yes", "no"]}))
    assert [judged["tags"].n_items, judged["Answer.spam"].n_matched] == [2, 2]
    keyed = {"tags": {(0, 0): "a;c", (0, 1): ["b"]}, "Answer.spam": {(0, 0): "yes", (0, 1): "no"}}
    assert cs.evaluate(found, keyed).to_dict() == judged.to_dict()
    loaded.update(gold=known)
    sets = loaded["tags"].to_frame().set_index("item")["labels"]
    assert [list(sets["0|0"]), list(sets["0|1"])] == [["a", "c"], ["b"]]


@pytest.mark.parametrize("sign", [";", ","])
def test_labels_of_several_questions_are_evaluated(tmp_path, sign):
    table = make_mixed(tmp_path, sign)
    found = fuse(table, label=["Answer.spam", "tags"], separator=sign)
    sets = [sign.join(reversed(each)) for each in found["tags"].to_frame()["labels"]]
    place = [0, 1, next(row for row, each in enumerate(sets) if sign in each)]
    known = pd.DataFrame({"HITId": place, "Answer.spam": ["yes", "no", None], "tags": [sets[row] for row in place]})
    judged = cs.evaluate(found, known.rename(columns={"HITId": "item"}))
    assert judged["Answer.spam"].n_matched == 2
    assert judged["tags"].n_items == 3
    assert set(judged.to_dict()["questions"]) == {"Answer.spam", "tags"}
    known.rename(columns={"HITId": "item"}).to_csv(tmp_path / "known.csv", index=False)
    for wide in (False, True):
        path = tmp_path / f"labels-{wide}.csv"
        found.to_frame(wide=wide).to_csv(path, index=False)
        again = cs.evaluate(str(path), str(tmp_path / "known.csv"), separator=sign)
        assert again["tags"].exact == judged["tags"].exact == 1
        assert again["Answer.spam"].accuracy == judged["Answer.spam"].accuracy
        shown = run("evaluate", str(path), str(tmp_path / "known.csv"), "--separator", sign)
        assert shown.stdout.count("Items compared") == 2
        with pytest.raises(cs.errors.InputError, match=r"tags.*Say what stands between tags with separator"):
            cs.evaluate(str(path), str(tmp_path / "known.csv"))


def test_clear_errors():
    table, _ = make_table()
    table["empty"] = None
    with pytest.raises(cs.errors.InputError, match=r"Question 'empty' has no answers: its column is empty throughout"):
        fuse(table, label=[*NAMES, "empty"])
    with pytest.raises(cs.errors.InputError, match=r"has no column 'Answer.tones'"):
        fuse(table, label=["Answer.spam", "Answer.tones"])
    with pytest.raises(cs.errors.ParameterError, match="a list of different ones"):
        fuse(table, label=["Answer.spam", "Answer.spam"])
    with pytest.raises(cs.errors.ParameterError, match="from a table, or each has answers"):
        cs.fuse(
            cs.Answers.from_frame(table, item="HITId", worker="WorkerId", label=NAMES[0], format="long"), label=NAMES
        )


def test_saved_loaded_and_updated_as_one(fused, tmp_path):
    table, _ = make_table()
    loaded = cs.load(fused.save(tmp_path / "all"))
    assert isinstance(loaded, Questions)
    pd.testing.assert_frame_equal(loaded.to_frame(), fused.to_frame())
    pd.testing.assert_frame_equal(loaded.worker_report(), fused.worker_report())
    assert loaded.shared_.own == fused.shared_.own
    more = pd.DataFrame(
        {"HITId": [0, 99], "WorkerId": ["zoe", "zoe"], "Answer.spam": ["yes", "no"], "Answer.tone": [None, "warm"]}
    )
    loaded.update(more, gold={"Answer.spam": {99: "yes"}})
    assert loaded["Answer.spam"].result_.answers.n_responses == len(table) + 2
    assert loaded["Answer.tone"].result_.answers.n_responses == len(table) + 1
    wide = loaded.to_frame(wide=True)
    assert wide.iloc[-1][["item", "Answer.spam"]].tolist() == [99, "yes"]
    whole = fuse(pd.concat([table, more]), gold={"Answer.spam": {99: "yes"}})
    np.testing.assert_allclose(whole["Answer.tone"].posterior_, loaded["Answer.tone"].posterior_, atol=1e-9)
    with pytest.raises(cs.errors.ParameterError, match="nothing to add"):
        loaded.update()


def test_questions_with_a_graph_are_updated_with_it(tmp_path):
    table, _ = make_table()
    graph = [(n, n + 1) for n in range(59)]
    found = fuse(table[:200], graph, items=list(range(60)))
    loaded = cs.load(found.save(tmp_path / "all"))
    loaded.update(table[200:])
    whole = fuse(table, graph, items=list(range(60)))
    for name in NAMES:
        assert loaded[name].result_.given.graph.n_edges == 59
        np.testing.assert_allclose(loaded[name].posterior_, whole[name].posterior_, atol=1e-9)


def test_one_report_has_a_section_for_each_question(fused, tmp_path):
    hostile = Questions({"<script>alert(1)</script>": fused[NAMES[0]], NAMES[1]: fused[NAMES[1]]}, fused.shared_)
    page = cs.report(hostile, tmp_path / "report.html").read_text()
    assert page.count("<iframe") == 2
    assert "<script>alert(1)" not in page
    outer = re.sub(r'srcdoc="[^"]*"', "", page)
    assert outer.count("<style>") == outer.count("Content-Security-Policy") == 1
    assert outer.count("<script") == 2
    # The documents within have the same policy: one that they inherit lets them do what they may.
    (policy,) = set(re.findall(r'Content-Security-Policy" content="([^"]*)"', html.unescape(html.unescape(page))))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_the_command_line_fuses_several_questions(tmp_path):
    table, _ = make_table()
    table.to_csv(tmp_path / "batch.csv", index=False)
    files = {name: tmp_path / name for name in ("labels.csv", "workers.csv", "all.model", "report.html")}
    written = ["-o", files["labels.csv"], "--workers-report", files["workers.csv"], "--save", files["all.model"]]
    done = run(
        "fuse",
        tmp_path / "batch.csv",
        "--labels",
        "Answer.*",
        *written,
        "--report",
        files["report.html"],
        "--json",
        "--calibration=none",
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert list(told["questions"]) == NAMES
    assert told["questions"]["Answer.spam"]["items"] == 60
    assert pd.read_csv(files["labels.csv"]).columns.tolist() == ["item", "question", "label", "confidence"]
    assert "chance" in pd.read_csv(files["workers.csv"])
    assert files["report.html"].exists()
    two = ["--label", NAMES[0], "--label", NAMES[1], "--wide", "--calibration=none", "-o", files["labels.csv"]]
    shown = run("fuse", tmp_path / "batch.csv", *two)
    assert shown.exit_code == 0, shown.output
    assert "over all questions" in shown.output
    assert len(pd.read_csv(files["labels.csv"])) == 60
    again = run("report", files["all.model"], "-o", files["report.html"])
    assert again.exit_code == 0, again.output
    asked = run("next", files["all.model"], "--questions", "-n", "5", "-o", tmp_path / "asked.csv")
    assert asked.exit_code == 0, asked.output
    gains = pd.read_csv(tmp_path / "asked.csv")
    assert {"question", "worker"} <= set(gains)
    assert gains["gain"].is_monotonic_decreasing


def test_controls_of_label_studio_are_questions(tmp_path):
    table, truths = make_table()

    def choose(name, said):
        return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [said]}}

    tasks = [
        {
            "id": item,
            "data": {"text": f"Message {item}"},
            "annotations": [
                {"completed_by": int(row["WorkerId"][1:]), "result": [choose(name, row[name]) for name in NAMES]}
                for _, row in rows.iterrows()
            ],
        }
        for item, rows in table.groupby("HITId")
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with pytest.warns(cs.errors.DataWarning, match=r"answers to 2 questions: 'Answer.spam', 'Answer.tone'"):
        found = cs.fuse(path, calibration="none")
    assert list(found) == NAMES
    assert found["Answer.tone"].classes_.tolist() == ["cold", "rude", "warm"]
    for name in NAMES:
        assert found[name].result_.answers.n_responses == len(table)
        assert np.mean(found[name].labels_ == truths[name]) > 0.85


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")  # these answers are few
@pytest.mark.parametrize("name", ["label", "question", "confidence", "item_label"])
def test_questions_may_be_called_as_columns_are(name):
    """What is written of them can be evaluated, and taken for known labels, in a row or a column each."""
    table = {"item": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), name: list("xxyyxx"), "tone": list("uuvvuv")}
    fused = cs.fuse(table, label=[name, "tone"])
    long = fused.to_frame()
    found = cs.evaluate(long, long)
    assert {each: evaluation.accuracy for each, evaluation in found.items()} == {name: 1.0, "tone": 1.0}
    known = cs.fuse(table, label=[name, "tone"], gold=long)
    assert known[name].labels_.tolist() == fused[name].labels_.tolist()
    by_column = pd.DataFrame({"item": [1, 2], name: ["y", "x"]})
    assert cs.fuse(table, label=[name, "tone"], gold=by_column)[name].labels_.tolist()[:2] == ["y", "x"]
