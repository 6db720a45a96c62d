"""What `check` says of a source, and that what it says to type works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import consilience as cs
from command_line import run

EXAMPLES = Path(__file__).parents[1] / "examples"
ANSWERS = {
    "judges.csv": "answers about whole items",
    "battles.csv": "comparisons of two candidates",
    "ratings.csv": "answers about whole items",
    "questions.csv": "answers to several questions",
    "probabilities.csv": "answers about whole items",
    "tags.csv": "sets of tags",
    "marks.csv": "numbers on a scale",
    "mturk.csv": "answers about whole items",
    "functions.npy": "answers about whole items",
    "prodigy.jsonl": "spans marked in texts",
    "masks": "masks",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_it_says_to_type_works(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = json.loads(run("check", EXAMPLES / name, "--json").stdout)
    assert found["kind"] == ANSWERS[name]
    assert found["possible"]
    if "rows" in found:
        assert found["rows"] == len((EXAMPLES / name).read_text().splitlines()) - 1
    for command in found["next"]:
        result = run(*shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.stderr)


def test_roles_counts_and_what_is_missing():
    found = cs.check(str(EXAMPLES / "judges.csv"))
    assert {row["name"]: row["role"] for row in found.columns} == {
        "prompt_id": "item",
        "model": "worker",
        "verdict": "label",
    }
    assert found.counts == {"items": 120, "workers": 7, "answers": 840, "labels": 2, "least": 7, "median": 7, "most": 7}
    assert "Known labels" in found.missing[0]
    assert "consilience fuse" in repr(found)
    assert "<table" in found._repr_html_()
    levels = {"item": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": [1, 2, 3, 3]}
    assert "ordered=True" in " ".join(cs.check(levels).missing)
    assert "--separator ';'" in " ".join(cs.check(str(EXAMPLES / "tags.csv")).missing)


def test_a_group_that_can_be_named_with_the_item_is_proposed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{n},{'ab'[n % 2]},w{w},{'yes' if (n + w) % 3 else 'no'},{w % 2}" for n in range(60) for w in range(3)]
    Path("answers.csv").write_text("\n".join(["prompt,system,judge,verdict,shift", *rows]))
    found = cs.check("answers.csv")
    (line,) = [each for each in found.possible if "--item" in each]
    option = line.partition("--item ")[2].rstrip(".")
    assert option == "prompt,system"
    assert run("fuse", "answers.csv", "--item", option, "-o", "labels.csv").exit_code == 0
    labels = cs.check("labels.csv")
    assert labels.kind == "labels of items, with probabilities"
    assert labels.commands[0] == "consilience estimate labels.csv known.csv"


def test_further_columns_of_items_are_found_and_no_file_is_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{n},{s},w{w},{'yes' if (n + w) % 3 else 'no'}" for n in range(40) for s in "abc" for w in range(3)]
    Path("answers.csv").write_text("\n".join(["prompt,system,judge,verdict", *rows]))
    Path("labels.csv").write_text("mine")
    found = cs.check("answers.csv")
    assert found.counts["answers"] == 360
    assert "--item prompt,system -o labels-2.csv" in found.commands[0]
    essays = Path(EXAMPLES / "marks.csv").read_text().replace("item,", "essay,", 1)
    Path("essays.csv").write_text(essays)
    found = cs.check("essays.csv")
    assert found.kind == "numbers on a scale"
    assert "--item essay" in found.commands[0]
    assert not any("--ordered" in each for each in found.missing)
    for command in found.commands:
        assert run(*shlex.split(command)[1:]).exit_code == 0
    assert Path("labels.csv").read_text() == "mine"


def test_tables_that_cannot_be_read_say_why():
    found = cs.check({"a": [1, 2], "b": [3, 4]})
    assert found.kind == "a table that is not recognised"
    assert "column" in found.missing[0]
    assert not found.commands
    alone = cs.check({"item": [1, 2, 3], "worker": ["a", "a", "b"], "label": ["x", "y", "x"]})
    assert "100% of the items have fewer than two answers" in alone.missing[0]
    assert alone.commands == ["fused = consilience.fuse(table)"]


def test_a_nested_column_that_is_not_needed(tmp_path):
    """`fuse` leaves it alone, so `check` does."""
    path = tmp_path / "said.jsonl"
    rows = [{"item": n, "worker": w, "label": "ab"[n % 2], "meta": {"k": n}} for n in range(4) for w in "xy"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = cs.check(str(path))
    assert {row["name"]: row["role"] for row in found.columns}["meta"] == "not read"
    assert found.counts["answers"] == 8
