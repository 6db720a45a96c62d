"""The options of all commands: their groups in the help, and what has no effect."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path

import click
import pytest

import consilience as cs
from command_line import run
from consilience.api import BESIDE
from consilience.cli.main import program
from consilience.errors import ParameterError, Sentence, spell_in_python
from consilience.inference.estimator import list_defaults
from consilience.models import MODELS, model_class
from consilience.options import ANY, OPTIONS, Option, find_option, spell_in_shell


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
        assert sorted(re.findall(r"^  (?:--?\w+, )?(--?[\w-]+)", shown, re.MULTILINE)) == sorted([*options, "--help"])
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--k", "3"], "--k needs --knn."),
        (["--k", "10"], "--k needs --knn"),  # which is the default
        (["--store", "stores"], "--store needs --memory or --resume."),
        (["--ignore-gold", "--gold", "known.csv"], "--ignore-gold does not go with --gold"),
        (["--ignore-gold", "--gold-column", "known"], "--ignore-gold does not go with --gold-column"),
        (["--background", "a"], "--background is for items about which all workers are silent"),
        (["--no-answers"], "--no-answers needs --save"),
        (["--content", "text"], "--content needs --report"),
        (["--disagreements", "table.csv"], "--disagreements needs --features"),
        (["--scheduler", "tcp://10.0.0.1:8786"], "--scheduler needs --engine dask."),
        (["--engine", "dask", "--threads", "2"], "--threads does not go with --engine dask. Leave out one of them."),
        (
            ["--graph", "edges.csv", "--knn", "features.npy"],
            "--knn does not go with --graph. Leave out one of them.",
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
    assert "--duplicates needs SOURCE." in result.stderr


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


def keywords(function):
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


def test_readers_and_fuse_have_the_keywords_of_from_frame():
    frame, tags = keywords(cs.Answers.from_frame), keywords(cs.Tags.from_frame)
    del frame["frame"], tags["frame"]
    assert frame.items() == {k: v for k, v in keywords(cs.read_answers).items() if k != "path"}.items()
    assert tags.items() == {k: v for k, v in keywords(cs.read_tags).items() if k != "path"}.items()
    read = {"gold_column" if name == "gold" else name: default for name, default in (frame | tags).items()}
    assert read.items() <= keywords(cs.fuse).items()


def test_fuse_has_the_parameters_of_all_models_and_no_others():
    models = [model_class(name) for name in MODELS]
    parameters = {name for each in models for name in list_defaults(each)}
    frame = keywords(cs.Answers.from_frame) | keywords(cs.Tags.from_frame)
    own = set(keywords(cs.fuse)) - set(frame) - {*BESIDE, "gold_column"}
    assert own == parameters - {"callback"}


def test_every_keyword_of_fuse_is_in_the_table_with_its_default():
    for name, default in keywords(cs.fuse).items():
        if name not in ("source", "gold", "engine"):
            assert OPTIONS.get(name, Option(ANY, "")).default == default or name == "coupling", name
    for name in MODELS:
        for parameter in list_defaults(model_class(name)):
            assert find_option(parameter, model_class(name).__name__) is not None, parameter


def test_every_option_of_fuse_is_a_keyword_or_for_the_shell_alone():
    shell = {
        *("output", "report", "save", "quiet", "as_json", "debug", "labels", "wide", "settings", "columns", "help_all"),
        *("content", "knn", "k", "workers_report", "disagreements", "undecided", "no_answers", "all_workers"),
        *("ignore_gold", "memory", "store", "resume", "threads", "scheduler", "source"),
    }
    assert {each.name for each in program.commands["fuse"].params} - shell <= set(keywords(cs.fuse))


@pytest.mark.parametrize("label", ["a", ["a", "b"]])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ignore": "zzz"}, "ignore= is for tables in which each worker has a column"),
        ({"rescale": True}, "rescale= is for probabilities"),
        ({"coupling": 0.5}, "DawidSkene has no parameter 'coupling'"),
        ({"gold_column": "a", "gold": {0: "x"}}, "gold_column= has no effect beside gold="),
    ],
)
def test_what_has_no_effect_is_an_error_for_one_question_and_for_several(label, given, said):
    table = {"item": [0, 0, 1, 1], "worker": ["u", "v"] * 2, "a": list("xyxx"), "b": list("xyyy")}
    with pytest.raises(ParameterError, match=re.escape(said)):
        cs.fuse(table, label=label, **given)


def check_remedy(name, value, owner=None):
    """Whether both spellings of a parameter in a remedy can be typed."""
    shell, code = spell_in_shell(name, value), spell_in_python(name, value)
    if shell is not None:
        command = program.commands["rank" if isinstance(owner, cs.BradleyTerry) else "fuse"]
        option = next(each for each in command.params if shell.split()[0] in (*each.opts, *each.secondary_opts))
        more = [] if option.is_flag or " " in shell else ["1"]
        typed = [__file__, *shlex.split(shell), *more]
        context = click.Context(command)
        values = command.make_parser(context).parse_args(typed)[0]
        option.type_cast_value(context, values[option.name])
    call = re.fullmatch(r"(\w+)\(.*\)", code)
    if call is not None and owner is not None:
        assert hasattr(owner, call[1]) or hasattr(cs, call[1])
    elif "=" in code:
        ast.parse(f"f({code}{'...' if code.endswith('=') else ''})")
        taken = {*inspect.signature(cs.fuse).parameters, *BESIDE, *inspect.signature(cs.Answers.from_frame).parameters}
        assert name in taken | {each for key in MODELS for each in list_defaults(model_class(key))}


def test_remedies_of_findings_can_be_typed(model):
    for each in getattr(model, "models_", None) or [model]:
        for finding in getattr(each, "findings_", ()):
            for part in (finding.problem, *finding.remedies):
                for name in part.names if isinstance(part, Sentence) else ():
                    check_remedy(name, part.values.get(name), each)


@pytest.mark.parametrize(
    ("name", "value", "shell"),
    [
        ("ordered", False, "--unordered"),
        ("ordered", True, "--ordered"),
        ("workers", "confusion", None),
        ("coupling", 2.62, None),
        ("model", "majority", "--model majority"),
        ("calibration", "hidden answers", "--calibration 'hidden answers'"),
        ("abstain", "answer", "--abstain answer"),
        ("gold", None, "--gold"),
        ("separator", ";", "--separator ';'"),
    ],
)
def test_remedies_are_spelled_by_the_table_of_options(name, value, shell):
    assert spell_in_shell(name, value) == shell
    check_remedy(name, value)
