"""The options of all commands: their groups in the help, and what has no effect."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from command_line import run
from consilience.cli.main import program


@pytest.fixture
def answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{item},{worker},{'ab'[(item + worker % 2) % 2]}" for item in range(8) for worker in range(3)]
    Path("answers.csv").write_text("\n".join(["item,worker,label", *rows, ""]))


def list_commands(group=program, names=()):
    """Yield all commands with their names."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from list_commands(command, (*names, name))
        else:
            yield (*names, name), command


def test_help_lists_every_option_once_in_groups_whose_texts_are_aligned():
    for names, command in list_commands():
        options = [each.opts[-1] for each in command.params if isinstance(each, click.Option)]
        everything = "--help-all" if "--help-all" in options else "--help"
        shown = run(*names, everything).stdout.partition("\nOptions:\n")[2].partition("\n  Examples:\n")[0]
        assert sorted(re.findall(r"^  (?:-\w, )?(--?[\w-]+)", shown, re.MULTILINE)) == sorted([*options, "--help"])
        starts = {found.end() for line in shown.splitlines() if (found := re.match(r" {8,}|  -.*?  +", line))}
        assert len(starts) == 1
    titles = re.findall(r"^(\S.*):$", run("fuse", "--help-all").stdout, re.MULTILINE)
    first = ["Options", "Columns", "Answers", "Known labels", "Content and graph", "Model", "Outputs", "Size"]
    assert titles == first


def test_help_shows_a_dozen_options_and_says_where_the_others_are():
    shown = run("fuse", "--help").stdout
    assert 10 <= len(re.findall(r"^  (?:-\w, )?--", shown, re.MULTILINE)) <= 15
    assert "--help-all" in shown
    assert "--background" not in shown


@pytest.mark.parametrize(("columns", "width"), [(80, 80), (120, 120), (200, 120)])
def test_help_uses_the_width_of_the_terminal(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", str(columns))  # which the test runner of click does not heed
    parent = click.Context(program, **program.context_settings)
    with click.Context(program.commands["fuse"], parent, "fuse") as context:
        shown = context.get_help().partition("\n  Examples:\n")[0]
    assert width - 10 < max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--k", "3"], "--k needs --knn: it says to how many others each item is linked."),
        (["--k", "10"], "--k needs --knn"),  # which is the default
        (["--store", "stores"], "--store needs --memory or --resume: it says where answers on disk are kept."),
        (["--ignore-gold", "--gold", "known.csv"], "--ignore-gold does not go with --gold"),
        (["--ignore-gold", "--columns", "gold=known"], "--ignore-gold does not go with --columns gold=..."),
        (["--background", "a"], "--background is for items about which all workers are silent"),
        (["--no-answers"], "--no-answers needs --save"),
        (["--content", "text"], "--content needs --report"),
        (["--disagreements", "table.csv"], "--disagreements needs --features"),
        (["--scheduler", "tcp://10.0.0.1:8786"], "--scheduler needs --engine dask."),
        (["--engine", "dask", "--threads", "2"], "--threads does not go with --engine dask. Leave out one of them."),
        (
            ["--graph", "edges.csv", "--knn", "features.npy"],
            "--knn does not go with --graph: both make a graph. Give one of them.",
        ),
    ],
)
def test_options_without_an_effect_are_refused(answers, arguments, said):
    result = run("fuse", "answers.csv", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_rule_about_duplicates_needs_answers(answers):
    assert run("fuse", "answers.csv", "--save", "crowd.model", "-q").exit_code == 0
    result = run("update", "crowd.model", "--gold", "gold.csv", "--duplicates", "last")
    assert result.exit_code == 2
    assert "--duplicates needs SOURCE: it is about new answers." in result.stderr


def test_rules_name_parameters_that_exist():
    for _, command in list_commands():
        known = {each.opts[-1] for each in command.params} | {each.human_readable_name for each in command.params}
        for option in command.params:
            for other in (*getattr(option, "needs", ()), *getattr(option, "clashes", ())):
                assert other.split()[0] in known


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("fuse answers.csv --worker a --worker b", "--worker"),
        ("fuse answers.csv --worker=who --worker who", "--worker"),
        ("fuse answers.csv -o a.csv --output b.csv", "--output"),
        ("fuse answers.csv --seed 1 --seed 2", "--seed"),
        ("update crowd.model answers.csv --save a --save b", "--save"),
        ("predict crowd.model answers.csv -oa.csv -ob.csv", "--output"),
        ("evaluate labels.csv gold.csv --item a --item b", "--item"),
        ("report crowd.model -o a.html -o b.html", "--output"),
        ("next crowd.model -n 1 -n 2", "-n"),
        ("convert answers.csv out.csv --to long --to wide", "--to"),
        ("simulate independent -o crowd --items 3 --items 4", "--items"),
    ],
)
def test_an_option_with_one_value_can_be_given_once(tmp_path, monkeypatch, arguments, name):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments.split())
    assert result.exit_code == 2
    assert f"{name} takes one value, and was given 2 times. Give it once." in result.stderr
    assert not list(tmp_path.iterdir())


def test_options_with_many_values_and_flags_can_be_repeated(answers):
    for name, label in (("first", 0), ("second", 1)):
        Path(f"{name}.csv").write_text(f"item,label\n{label},a\n")
    given = run("fuse", "answers.csv", "--gold", "first.csv", "--gold", "second.csv", "-q", "-q", "--json")
    assert given.exit_code == 0, given.stderr
    assert json.loads(given.stdout)["gold"] == 2


def test_help_comes_before_what_is_wrong():
    assert run("fuse", "answers.csv", "--k", "3", "--label", "a", "--label", "b", "--help").exit_code == 0
