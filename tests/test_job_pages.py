"""The pages by job: their commands run, what they say of other packages is so, and their tables are those of a run.

Examples in Python are run as doctests.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import consilience as cs
from benchmarks import soft_votes
from consilience.cli.main import program
from examples.make import judge

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    *("tables", "spans", "labelling-functions", "judges", "rankings"),
    *("questions", "ratings", "masks", "soft-votes", "other-packages"),
]


def commands(page):
    """Return the commands in the console blocks of a page."""
    blocks = re.findall(r"^```console\n(.*?)^```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize(("page", "command"), [(page, command) for page in PAGES for command in commands(page)])
def test_commands_run(page, command, page_folder):
    name, *arguments = shlex.split(command, comments=True)
    assert name == "consilience"
    result = CliRunner().invoke(program, arguments)
    assert result.exit_code == 0, result.output
    assert (page_folder / arguments[arguments.index("-o") + 1]).exists()


def test_there_are_commands():
    assert sum(len(commands(page)) for page in PAGES) >= 3


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_found_from_the_first_one(page):
    assert f"]({page}.md)" in (DOCS / "index.md").read_text(encoding="utf-8")
    assert f"(docs/{page}.md)" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_what_is_said_of_crowd_kit(page_folder):
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    from crowdkit.metrics.data import alpha_krippendorff

    frame = pd.read_csv(page_folder / "examples" / "mturk.csv")[["Input.image", "WorkerId", "Answer.animal"]]
    frame.columns = ["task", "worker", "label"]
    answers = cs.Answers.from_frame(frame)
    theirs, ours = crowdkit.MajorityVote().fit(frame), cs.MajorityVote().fit(frame)
    shares = theirs.probas_.fillna(0).loc[answers.items, answers.classes]
    np.testing.assert_allclose(shares, ours.posterior_)
    assert alpha_krippendorff(frame) == pytest.approx(cs.metrics.krippendorff_alpha(answers))

    theirs = crowdkit.DawidSkene(n_iter=100).fit(frame)
    ours = cs.DawidSkene(estimation="em", smoothing=0, calibration="none").fit(frame)
    errors = theirs.errors_.loc["A00"].reindex(index=answers.labels, columns=answers.classes).to_numpy()
    np.testing.assert_allclose(errors.sum(axis=0), 1)  # one column for each truth
    np.testing.assert_allclose(errors.T, ours.confusion_[0], atol=0.1)


def test_what_is_said_of_prompts_without_a_known_verdict(page_folder):
    truth, _ = judge()
    others = {prompt: better for number, (prompt, better) in enumerate(truth.items()) if number % 4}
    answers = pd.read_csv(page_folder / "examples" / "judges.csv")
    gold = page_folder / "examples" / "judges_gold.csv"
    single = answers[~answers["model"].isin(["atlas-medium", "atlas-small"])]
    models = [cs.fuse(answers, gold=gold), cs.MajorityVote().fit(answers), cs.fuse(single)]
    found = [round(cs.evaluate(model, others).accuracy, 2) for model in models]
    text = (DOCS / "judges.md").read_text(encoding="utf-8")
    said = re.search(r"In truth it is (\d+)%: (\d+)% of the other 90 prompts. Majority vote has (\d+)%", text)
    assert said, "the page says it in other words"
    alone = re.search(r"Of the other 90 prompts, (\d+)% are now right", text)
    assert [int(percent) / 100 for percent in (*said.groups(), alone[1])] == [
        round(cs.evaluate(models[0], truth).accuracy, 2),
        *found,
    ]


@pytest.mark.robust
@pytest.mark.parametrize(("n_classifiers", "kind"), [(4, "all too cautious"), (8, "calibrated")])
def test_the_table_of_soft_votes_agrees_with_a_run(n_classifiers, kind):
    draws = [soft_votes.score(*soft_votes.simulate(n_classifiers, kind, seed)) for seed in range(soft_votes.N_DRAWS)]
    assert soft_votes.write_row(n_classifiers, kind, draws) in (DOCS / "measured" / "soft-votes.md").read_text()


def test_what_is_said_of_soft_votes():
    text = (DOCS / "measured" / "soft-votes.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    for _, _, *figures, _ in rows:
        vote, mean, classes, fused = map(float, figures)
        assert fused >= max(vote, mean, classes) - 0.01
