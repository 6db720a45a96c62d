"""The tables of docs/labelling-functions.md are those of a run, and bear out what the page says."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import consilience as cs
from benchmarks import labelling_functions as script
from benchmarks import real_crowds
from consilience.cli.main import program
from real_data import needs_data

ROOT = Path(__file__).parents[1]
OURS, GIVEN = '`DawidSkene()`, `abstain="answer"`', '`DawidSkene(prior=...)`, `abstain="answer"`, class balance given'
IGNORED, VOTE = "`DawidSkene()`, silence ignored", "majority vote"
SNORKEL, SNORKEL_GIVEN = "snorkel, `LabelModel`", "snorkel, `LabelModel`, class balance given"


def read_table(name):
    """Return {row: numbers}."""
    lines = (ROOT / "docs" / "measured" / name).read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    return {name: list(map(float, numbers)) for name, *numbers in rows[2:]}


@pytest.mark.robust
@pytest.mark.parametrize("method", [VOTE, IGNORED, OURS, GIVEN])
def test_the_table_of_simulated_functions_agrees_with_a_run(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.DataWarning)
        scores = [script.score(script.METHODS[method], script.simulate(2000, 10, seed)) for seed in range(5)]
    assert read_table("functions-simulated.md")[method][:2] == pytest.approx(np.mean(scores, axis=0), abs=0.002)


def test_what_the_page_says_of_simulated_functions():
    table = read_table("functions-simulated.md")
    for f1, log_loss in ((0, 1), (2, 3)):
        assert table[IGNORED][f1] == 0
        others = [numbers for name, numbers in table.items() if name not in (OURS, GIVEN)]
        assert min(table[OURS][f1], table[GIVEN][f1]) > max(numbers[f1] for numbers in others)
        assert max(table[OURS][log_loss], table[GIVEN][log_loss]) < min(numbers[log_loss] for numbers in others)


def test_what_is_said_of_bc5cdr():
    table = {name: f1 for name, (f1,) in read_table("functions-bc5cdr.md").items()}
    fused = table['`fuse`, `abstain="answer"`']
    assert fused >= 0.845
    assert fused >= max(table.values())
    assert fused > table["majority vote, O where all are silent"] > table[SNORKEL]


@needs_data
@pytest.mark.experiment
def test_the_table_of_bc5cdr_agrees_with_a_run():
    stored = real_crowds.load("bc5cdr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
        found = script.span_f1(cs.fuse(stored.responses), stored.gold)
    assert read_table("functions-bc5cdr.md")['`fuse`, `abstain="answer"`'] == [pytest.approx(found, abs=0.002)]


def test_a_table_and_a_file_give_the_same_as_a_matrix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    votes, _ = script.simulate(300, 10, 0)
    says = np.array(["ham", "spam"])
    item, function = np.nonzero(votes >= 0)
    table = {"item": item, "worker": function, "label": says[votes[item, function]]}
    options = {"abstain": "answer", "background": "ham"}
    prior = [0.85, 0.15]
    matrix = cs.DawidSkene(prior=prior).fit(cs.Answers.from_matrix(votes, labels=["ham", "spam"], **options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)  # that the vote may be as good
        fused = cs.fuse(table, items=range(300), prior=prior, **options)
    assert fused.labels_.tolist() == matrix.labels_.tolist()

    rows = zip(*table.values(), strict=True)
    (tmp_path / "votes.csv").write_text("item,worker,label\n" + "".join(f"{i},{m},{k}\n" for i, m, k in rows))
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"{i}\n" for i in range(300)))
    command = (
        "fuse votes.csv --items items.csv --abstain answer --background ham --prior ham=0.85,spam=0.15 -o labels.csv"
    )
    result = CliRunner().invoke(program, command.split())
    assert result.exit_code == 0, result.output
    labels = [line.split(",")[1] for line in (tmp_path / "labels.csv").read_text().splitlines()[1:]]
    assert labels == matrix.labels_.tolist()
