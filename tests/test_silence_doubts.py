"""Answers that look like those of labelling functions are recognised, and those of crowds are not taken for them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import consilience as cs
from consilience.cli.main import program
from consilience.errors import DataWarning

ONE_LABEL = r"10 of 10 workers with enough answers to tell only ever say one label, as labelling functions do"


def labelling_functions(seed=0, n_items=2000, n_functions=10, positive=0.15):
    """Return a matrix of functions that each say one label where they see a sign of it, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < positive).astype(int)
    side = np.arange(n_functions) % 2
    speaks = rng.random((n_items, n_functions)) < np.where(truth[:, None] == side, 0.35, 0.02)
    return np.where(speaks, side, -1), truth


def f1(truth, labels):
    return cs.metrics.class_f1(truth, labels)[1].f1


def long_table(answers):
    item, worker = np.nonzero(answers >= 0)
    return {"item": item, "worker": worker, "label": answers[item, worker]}


def test_functions_of_one_label_are_recognised():
    answers, truth = labelling_functions()
    with pytest.warns(DataWarning, match=ONE_LABEL) as caught:
        loud = cs.Answers.from_matrix(answers)
    assert len(caught) == 1
    assert str(caught[0].message).endswith(
        "Their silence about other items is ignored. If it means something, read the answers with abstain='answer'. "
        "Then background= is the class of items about which all are silent."
    )
    with pytest.warns(DataWarning, match=ONE_LABEL + r".* And items= names those nobody spoke about, too\."):
        cs.Answers.from_frame(long_table(answers))
    # It is said once, when answers are read; and it matters.
    ignored = cs.DawidSkene().fit(loud)
    heard = cs.DawidSkene().fit(cs.Answers.from_matrix(answers, abstain="answer", background=0))
    assert f1(truth, heard.labels_) > max(0.8, f1(truth, cs.MajorityVote().fit(loud).labels_))
    assert f1(truth, ignored.labels_) < 0.1


def test_the_command_line_names_its_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers, _ = labelling_functions(n_items=300)
    rows = zip(*long_table(answers).values(), strict=True)
    (tmp_path / "a.csv").write_text("item,worker,label\n" + "".join(f"{i},w{m},{k}\n" for i, m, k in rows))
    result = CliRunner().invoke(program, ["fuse", "a.csv"])
    assert "read the answers with --abstain answer. Then --background is the class" in result.stderr
    assert "And --items names those nobody spoke about, too." in result.stderr
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"{i}\n" for i in range(300)))
    result = CliRunner().invoke(
        program, ["fuse", "a.csv", "--abstain", "answer", "--background", "0", "--items", "items.csv", "-o", "b.csv"]
    )
    assert result.exit_code == 0
    assert "labelling functions" not in result.stderr
    labels = [line.split(",")[1] for line in (tmp_path / "b.csv").read_text().splitlines()[1:]]
    assert len(labels) == 300
    assert labels.count("0") > 200


def test_functions_that_seldom_speak_are_judged_when_they_do():
    rng = np.random.default_rng(0)
    answers, truth = labelling_functions()
    rare = np.where((truth[:, None] == 1) & (rng.random((2000, 2)) < 0.06), 1, -1)  # always right
    noise = np.where(rng.random((2000, 1)) < 0.2, 0, -1)
    r = cs.Answers.from_matrix(np.hstack([answers, rare, noise]), abstain="answer", background=0)
    report = cs.DawidSkene().fit(r).worker_report().to_pandas()
    assert report["informativeness"][10:12].max() <= 0.05
    assert report["remarks"].tolist() == [""] * 12 + ["uninformative"]


@pytest.mark.parametrize("seed", range(6))
def test_crowds_are_not_taken_for_functions(seed):
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # One or two answers of each worker, of many classes or few, alike or not.
        for n_classes in (2, 5, 500):
            n = 400
            worker = np.repeat(np.arange(n), rng.integers(1, 3, n))
            label = np.repeat(rng.integers(0, n_classes, n), np.bincount(worker))
            item = np.arange(len(worker)) % (len(worker) // 3)
            cs.Answers.from_frame({"item": item, "worker": worker, "label": label}, classes=np.unique(label))
        # Rare classes, of which most workers never meet any.
        for share in (0.9, 0.97, 0.995):
            crowd = cs.simulate.independent(
                600, n_workers=30, n_classes=2, answers_per_item=2, prior=[share, 1 - share], accuracy=0.97, seed=seed
            )
            assert crowd.responses.n_responses == 1200
        # A third of all workers always says the same.
        crowd = cs.simulate.independent(300, n_workers=30, n_classes=4, answers_per_item=5, seed=seed).responses
        label = np.where(crowd.worker < 10, crowd.worker % 4, crowd.label)
        cs.Answers.from_frame({"item": crowd.item_of_answer(), "worker": crowd.worker, "label": label})
        # Many who answered little, alike by chance, beside a few who answered much.
        casual = {"item": np.arange(400) % 100, "worker": 100 + np.arange(400) // 4, "label": np.zeros(400, int)}
        regular = {"item": np.tile(np.arange(100), 5), "worker": np.repeat(np.arange(5), 100)}
        regular["label"] = rng.integers(0, 3, 500)
        cs.Answers.from_frame({name: np.concatenate([casual[name], regular[name]]) for name in casual})
