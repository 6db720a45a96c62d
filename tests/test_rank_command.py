"""`consilience rank`: files in, files out, exit codes, and the report page."""

from __future__ import annotations

import json
import os
import re

import pyarrow as pa
import pyarrow.csv
import pytest

import consilience as cs
from command_line import run
from consilience.errors import InputError


@pytest.fixture(scope="module")
def arena():
    return cs.simulate.comparisons(600, n_candidates=6, n_judges=8, seed=7)


@pytest.fixture
def folder(arena, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(arena.to_frame(), "battles.csv")
    return tmp_path


def test_from_file_to_files(arena, folder):
    outputs = ["-o", "ranking.csv", "--judges-report", "judges.parquet", "--wins", "wins.csv", "--save", "arena.model"]
    outputs += ["--next-comparisons", "next.csv", "-n", "5", "--report", "page.html"]
    done = run("rank", "battles.csv", *outputs)
    assert (done.exit_code, done.stderr) == (0, "")
    model = cs.rank(arena.comparisons)
    assert pa.csv.read_csv("ranking.csv")["candidate"].to_pylist() == model.ranking_["candidate"].to_pylist()
    assert pa.csv.read_csv("next.csv").num_rows == 5
    assert pa.csv.read_csv("wins.csv").num_columns == 7
    assert cs.load("arena.model").ranking_ == model.ranking_
    assert "Candidates, with 95% intervals" in done.stdout
    assert all(name in done.stdout for name in ("ranking.csv", "judges.parquet", "arena.model", "page.html"))


def test_json_has_everything(arena, folder):
    told = json.loads(run("rank", "battles.csv", "--json").stdout)
    assert told["candidates"] == 6
    assert told["columns"]["worker"] == "worker"
    assert [row["candidate"] for row in told["ranking"]] == cs.rank(arena.comparisons).ranking_["candidate"].to_pylist()
    assert len(told["judge_report"]) == 8
    assert {finding["kind"] for finding in told["findings"]} <= {"coins", "position", "first two"}
    assert run("rank", "battles.csv", "--quiet").stdout == ""


def test_standard_input_and_other_columns(folder):
    text = "p,q,best\n" + "a,b,A\nb,c,A\nc,a,B\n" * 5
    done = run("rank", "-", "--left", "p", "--right", "q", "--winner", "best", "--json", standard_input=text)
    assert [row["candidate"] for row in json.loads(done.stdout)["ranking"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["battles.csv", "--winner", "nope"], "no column 'nope'"),
        (["nowhere.csv"], "does not exist"),
        (["self.csv"], "a candidate is compared with itself; the first is 'a' at self.csv, line 2"),
    ],
)
def test_bad_input_has_exit_code_2(folder, arguments, words):
    with open("self.csv", "w") as file:
        file.write("left,right,winner\na,a,a\n")
    done = run("rank", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir()) == ["battles.csv", "self.csv"]


def test_a_saved_ranking(folder):
    run("rank", "battles.csv", "--save", "arena.model")
    done = run("next", "arena.model", "-n", "3", "--json")
    assert len(json.loads(done.stdout)["comparisons"]) == 3
    shown = run("next", "arena.model", "-n", "3", "-o", "next.csv").stdout
    assert "Comparisons to ask for" in shown
    assert "0.000" not in shown  # gains are small numbers
    assert pa.csv.read_csv("next.csv").column_names == ["left", "right", "worker", "gain"]
    assert run("report", "arena.model", "-o", "page.html").exit_code == 0
    for command in (["predict", "arena.model", "battles.csv"], ["update", "arena.model", "battles.csv"]):
        refused = run(*command)
        assert refused.exit_code == 2
        assert "which has no labels" in refused.stderr
    assert run("explain", "arena.model", "x").exit_code == 2
    assert "Leave out --at-random" in run("next", "arena.model", "--at-random").stderr


def test_a_ranking_in_a_file_is_evaluated(arena, folder):
    run("rank", "battles.csv", "--save", "arena.model", "-o", "ranking.csv")
    truth = {"candidate": arena.comparisons.candidates.tolist(), "score": arena.scores.tolist()}
    pa.csv.write_csv(pa.table(truth), "truth.csv")
    model = cs.load("arena.model")
    for known in ("truth.csv", "battles.csv"):
        told = json.loads(run("evaluate", "ranking.csv", known, "--json").stdout)
        wanted = cs.evaluate(model, known)
        expected = {name: None if name == "log_loss" else value for name, value in wanted.to_dict().items()}
        assert {name: told[name] for name in expected} == expected
    assert "Kendall's tau" in run("evaluate", "ranking.csv", "truth.csv").stdout
    shown = run("evaluate", "ranking.csv", "battles.csv").stdout
    assert "Accuracy" in shown
    assert "Log loss" not in shown
    best_first = sorted(truth["candidate"], key=dict(zip(*truth.values(), strict=True)).get, reverse=True)
    assert cs.evaluate(model.ranking_, best_first) == cs.evaluate(model, best_first)
    twice = {"candidate": ["a", "a"], "rank": [1, 2]}
    with pytest.raises(InputError, match="several rows for 'a'"):
        cs.evaluate(twice, ["a", "b"])


# ------------------------------------------------------------------------------------------------------------- the page


def page(model, path):
    return cs.report(model, path / "page.html").read_text(encoding="utf-8")


def test_the_page_of_a_ranking(arena, tmp_path):
    model = cs.rank(arena.comparisons)
    text = page(model, tmp_path)
    assert re.findall(r'<section id="([a-z]+)"', text) == ["attention", "ranking", "wins", "judges", "next"]
    best = model.ranking_["candidate"].to_pylist()[0]
    assert re.search(rf"<h1>{best} (is the best|comes first)", text)
    assert text.count("<svg") == 3
    for finding in model.findings_:
        assert str(finding.problem)[:30] in text


def test_pages_of_odd_rankings(tmp_path):
    """One judge, no ties, two parts, all ties, and text that is hostile."""
    evil = "<img src=x onerror=alert(1)>"
    few = {"left": [evil, "b"], "right": ["b", evil], "winner": ["left", "right"]}
    text = page(cs.rank(few), tmp_path)
    assert evil not in text
    assert '<section id="judges"' not in text
    with pytest.warns(cs.errors.DataWarning):
        parts = cs.rank({"left": list("aabxx"), "right": list("bccyy"), "winner": list("aabxy")})
    assert "(part 2)" in page(parts, tmp_path)
    with pytest.warns(cs.errors.DataWarning):
        ties = cs.rank({"left": ["a"], "right": ["b"], "winner": ["tie"]})
    assert "All verdicts are ties, so there is no order." in page(ties, tmp_path)


def test_charts_one_by_one(arena):
    model = cs.rank(arena.comparisons)
    assert cs.chart(model).title == "Scores of the candidates, with 95% intervals"
    assert len(cs.chart(model, "wins").rows) == 6
    dots = cs.chart(model, "judges")
    assert len(dots.rows) == 8
    assert dots.columns[0] == "Judge"
