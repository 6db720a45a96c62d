"""`consilience update` and `consilience predict`, and what a kill leaves behind."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import consilience as cs
from command_line import run


def write(path, r, answers):
    table = {
        "task": r.items[r.item_of_answer()][answers],
        "who": np.array([f"w{m:02d}" for m in r.worker])[answers],
        "says": np.array(["cat", "dog", "cow"])[r.label][answers],
    }
    pc.write_csv(pa.table(table), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Answers in two files, and a model of the first."""
    path = tmp_path_factory.mktemp("update")
    accuracy = np.linspace(0.55, 0.95, 12)
    r = cs.simulate.independent(300, n_workers=12, n_classes=3, accuracy=accuracy, answers_per_item=5, seed=1).responses
    late = (r.item_of_answer() >= 290) | (np.arange(r.n_responses) % 40 == 0)
    write(path / "old.csv", r, ~late)
    write(path / "new.csv", r, late)
    write(path / "all.csv", r, slice(None))
    columns = ("--item", "task", "--worker", "who", "--label", "says")
    done = run("fuse", path / "old.csv", *columns, "-o", path / "labels.csv", "--save", path / "crowd.model", "-q")
    assert done.exit_code == 0, done.stderr
    return path


@pytest.fixture
def crowd(folder, tmp_path):
    for name in os.listdir(folder):
        shutil.copy(folder / name, tmp_path / name)
    return tmp_path


def test_update_says_what_is_new_and_what_changed(crowd):
    before = cs.load(crowd / "crowd.model")
    done = run("update", crowd / "crowd.model", crowd / "new.csv", "-o", crowd / "labels.csv")
    assert done.exit_code == 0, done.stderr
    model, labels = cs.load(crowd / "crowd.model"), pc.read_csv(crowd / "labels.csv")
    assert model.result_.answers.n_responses == 1500
    assert labels.num_rows == model.result_.answers.n_items == 300
    n_new = 1500 - before.result_.answers.n_responses
    assert f"{n_new} new answers, 10 new items" in done.stdout
    assert "Verdict      Better than majority vote in predicting hidden answers (mean log" in done.stdout
    assert "Before       The verdict was 'better' before too (mean log score +" in done.stdout
    assert model.comparison_ != before.comparison_
    changed = (model.labels_[:290] != before.labels_).sum()
    assert f"Changed      {changed} of 290 labels" in done.stdout


def test_update_as_json(crowd):
    arguments = ("-o", crowd / "l.parquet", "--changes", crowd / "c.csv", "--save", crowd / "new.model", "--json")
    old = (crowd / "crowd.model").read_bytes()
    done = run("update", crowd / "crowd.model", crowd / "new.csv", *arguments)
    found = json.loads(done.stdout)
    assert found["n_new_items"] == 10
    assert found["verdict"] == found["verdict_before"] == "better"
    assert len(found["changes"]) == found["n_changed"] == pc.read_csv(crowd / "c.csv").num_rows
    assert set(found["files"]) == {"labels", "changes", "model"}
    assert (crowd / "crowd.model").read_bytes() == old
    assert cs.load(crowd / "new.model").result_.answers.n_responses == 1500


def test_update_reports_as_fuse_does(crowd, monkeypatch):
    """The page says how to go on with what a reviewer labelled: the same command, which changes nothing else."""
    monkeypatch.chdir(crowd)
    corrections = "task,who,says\n" + (crowd / "old.csv").read_text().splitlines()[1].rpartition(",")[0] + ",\n"
    (crowd / "fix.csv").write_text(corrections)
    arguments = ("fix.csv", "--duplicates", "last", "--workers-report", "w.csv", "--report", "r.html")
    done = run("update", "crowd.model", *arguments)
    assert done.exit_code == 0, done.stderr
    assert "Workers  w.csv\n  Model    crowd.model\n  Report   r.html\n" in done.stdout
    expected = cs.load("crowd.model").worker_report()
    assert sorted(pc.read_csv("w.csv")["worker"].to_pylist()) == expected["worker"].to_pylist()
    page = (crowd / "r.html").read_text()
    assert "<title>crowd.model" in page
    command = "update crowd.model fix.csv --duplicates last --workers-report w.csv --report r.html --gold gold.csv"
    assert f"consilience {command}" in re.sub("<.*?>", "", page)
    (crowd / "gold.csv").write_text("item,label\n0,cow\n")
    done = run(*command.split())
    assert done.exit_code == 0, done.stderr
    assert "0 new answers, 1 new known label" in done.stdout
    done = run("update", "crowd.model", "new.csv", "--report", "r.txt")
    assert done.exit_code == 2
    assert "does not end in .html" in done.stderr


def test_corrections_and_retractions(crowd):
    (crowd / "more.csv").write_text("task,who,says\n0,w99,cat\n1,w99,dog\n")
    assert run("update", crowd / "crowd.model", crowd / "more.csv", "-q").exit_code == 0
    n_answers = cs.load(crowd / "crowd.model").result_.answers.n_responses
    (crowd / "more.csv").write_text("task,who,says\n0,w99,dog\n1,w99,\n")
    done = run("update", crowd / "crowd.model", crowd / "more.csv")
    assert done.exit_code == 2
    assert "--duplicates last" in done.stderr
    (crowd / "fix.csv").write_text("task,who,says\n0,w99,dog\n")
    done = run("update", crowd / "crowd.model", crowd / "fix.csv")
    assert done.exit_code == 2
    assert "answered item 0 before, with 'cat', and now with 'dog'" in done.stderr
    assert "--duplicates last" in done.stderr
    done = run("update", crowd / "crowd.model", crowd / "more.csv", "--duplicates", "last")
    assert "0 new answers, 1 corrected, 1 retracted" in done.stdout
    assert cs.load(crowd / "crowd.model").result_.answers.n_responses == n_answers - 1


def test_a_round_of_questions_of_which_half_are_answered(crowd):
    model, asked = crowd / "crowd.model", crowd / "questions.csv"
    n_answers = cs.load(model).result_.answers.n_responses
    assert run("next", model, "--questions", "-n", "8", "-o", asked, "-q").exit_code == 0
    rows = [line.split(",") for line in asked.read_text().splitlines()]
    for row in rows[1:5]:
        row[rows[0].index("label")] = "cat"
    asked.write_text("\n".join(map(",".join, rows)) + "\n")
    done = run("update", model, asked)
    assert done.exit_code == 0, done.stderr
    assert "4 rows" in done.stderr
    assert "Left out, since they are not answered yet" in done.stderr
    assert "4 new answers" in done.stdout
    assert cs.load(model).result_.answers.n_responses == n_answers + 4
    again = run("next", model, "--questions", "-n", "8", "--asked", asked, "--json")
    pairs = [[str(question["item"]), question["worker"]] for question in json.loads(again.stdout)["questions"]]
    assert not [pair for pair in pairs if pair in [row[:2] for row in rows]]


def test_known_labels(crowd):
    (crowd / "gold.csv").write_text("task,label\n0,cow\n1,cow\n")
    done = run("update", crowd / "crowd.model", "--gold", crowd / "gold.csv", "-o", crowd / "labels.csv")
    assert done.exit_code == 0, done.stderr
    assert "2 new known labels" in done.stdout
    assert pc.read_csv(crowd / "labels.csv")["label"].to_pylist()[:2] == ["cow", "cow"]


def test_wrong_use(crowd):
    done = run("update", crowd / "crowd.model")
    assert done.exit_code == 2
    assert "nothing to add" in done.stderr
    done = run("update", crowd / "crowd.model", crowd / "new.csv", "-o", crowd / "new.csv")
    assert done.exit_code == 2
    assert "would change the input" in done.stderr
    done = run("update", crowd / "crowd.model", crowd / "absent.csv")
    assert done.exit_code == 2
    loaded = cs.load(crowd / "crowd.model")
    loaded.save(crowd / "bare.model", answers=False)
    done = run("update", crowd / "bare.model", crowd / "new.csv")
    assert done.exit_code == 2
    assert "holds no answers" in done.stderr


def test_predict(crowd):
    text = (crowd / "new.csv").read_text().splitlines()
    (crowd / "more.csv").write_text("\n".join([text[0], *(line for line in text if line.startswith("29"))]))
    done = run("predict", crowd / "crowd.model", crowd / "more.csv", "-o", crowd / "more.parquet")
    assert done.exit_code == 0, done.stderr
    assert "about 10 items" in done.stdout
    model = cs.load(crowd / "crowd.model")
    answers = cs.read_answers(crowd / "more.csv", item="task", worker="who", label="says")
    expected = model.predict(answers, as_frame=True)
    assert expected.column_names == model.to_frame().column_names
    assert expected["label"].to_pylist() == model.predict(answers).tolist()
    np.testing.assert_array_equal(expected["p(dog)"], model.predict_proba(answers)[:, 2])
    found = json.loads(run("predict", crowd / "crowd.model", crowd / "more.csv", "--json").stdout)
    assert found["items"] == 10
    done = run("predict", crowd / "crowd.model", crowd / "new.csv")
    assert "The model was fitted to" in done.stderr


# ------------------------------------------------------------------------------------------------------ kills


def start(folder):
    arguments = ["update", "crowd.model", "new.csv", "-o", "labels.csv", "-q"]
    return subprocess.Popen([sys.executable, "-m", "consilience", *arguments], cwd=folder)


def kill_at_random(folder, tmp_path, n_kills):
    """Kill an update at random moments, half of them while it writes; return how often all was done already."""
    target, names, n_done = tmp_path / "run", ("crowd.model", "labels.csv"), 0

    def restore():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)

    old = {name: (folder / name).read_bytes() for name in names}
    restore()
    began = time.perf_counter()
    assert start(target).wait() == 0
    took = time.perf_counter() - began
    new = {name: (target / name).read_bytes() for name in names}
    assert all(old[name] != new[name] for name in names)
    moments = random.Random(0)
    for n in range(n_kills):
        restore()
        process = start(target)
        if n % 2:  # while files are written
            while process.poll() is None and not any(name.startswith(".") for name in os.listdir(target)):
                time.sleep(0.0005)
            time.sleep(moments.uniform(0, 0.03))
        else:
            time.sleep(moments.uniform(0, 1.1 * took))
        process.kill()
        process.wait()
        found = {name: (target / name).read_bytes() for name in names}
        assert all(found[name] in (old[name], new[name]) for name in names)
        assert zipfile.ZipFile(target / "crowd.model").testzip() is None
        n_done += found == new
    return n_done


@pytest.mark.robust
def test_a_killed_update_leaves_model_and_labels_whole(folder, tmp_path):
    assert kill_at_random(folder, tmp_path, 2) <= 2


def test_two_updates_at_once_lose_no_answers(crowd, monkeypatch):
    """The second one ends while the first one is at work."""
    model, labels = crowd / "crowd.model", (crowd / "labels.csv").read_bytes()
    (crowd / "more.csv").write_text("task,who,says\n0,w99,cat\n")
    changes = cs.DawidSkene.changes

    def overtake(self, *args, **options):
        monkeypatch.setattr(cs.DawidSkene, "changes", changes)
        assert run("update", model, crowd / "more.csv", "-q").exit_code == 0
        return changes(self, *args, **options)

    monkeypatch.setattr(cs.DawidSkene, "changes", overtake)
    done = run("update", model, crowd / "new.csv", "-o", crowd / "labels.csv")
    assert done.exit_code == 2
    assert "has changed since it was read" in " ".join(done.stderr.split())
    assert "w99" in cs.load(model).result_.names.workers
    assert (crowd / "labels.csv").read_bytes() == labels
    assert not [name for name in os.listdir(crowd) if name.startswith(".")]
    assert run("update", model, crowd / "new.csv", "-q").exit_code == 0
    assert cs.load(model).result_.answers.n_responses == 1501
