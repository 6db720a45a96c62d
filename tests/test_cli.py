"""The command line: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import doctest
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import consilience as cs
from command_line import CLEAN, run
from consilience.cli.command import spell_options
from consilience.cli.main import program
from consilience.errors import InputError, Python, Sentence
from consilience.formats.reading import read_table
from consilience.formats.writing import write_table
from fuzz.kills import MAIN, children_hear_signals


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in {**os.environ, **CLEAN, **more}.items() if value is not None}


def run_process(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(**more))


def make_answers(n_items: int = 120, labels: tuple[str, ...] = ("ant", "bee"), seed: int = 0) -> dict[str, list]:
    """Answers of good workers, a random one and a contrary one: enough for the fit to beat the vote."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(labels), n_items)
    rows = []
    for worker, accuracy in (("ann", 0.95), ("bob", 0.9), ("cid", 0.9), ("dan", 0.5), ("eve", 0.05), ("fay", 0.1)):
        right = rng.random(n_items) < accuracy
        said = np.where(right, truth, (truth + 1) % len(labels))
        rows += [(f"i{n:03d}", worker, labels[k]) for n, k in enumerate(said)]
    return dict(zip(("item", "worker", "label"), map(list, zip(*sorted(rows), strict=True)), strict=True))


def write_lines(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty working folder, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def answers(folder) -> Path:
    write_table(pa.table(make_answers()), "answers.csv")
    return folder / "answers.csv"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What is printed and written


def test_fuse_writes_what_the_library_computes(answers):
    result = run("fuse", "answers.csv", "-o", "labels.parquet", "--workers-report", "w.csv", "--save", "fit.model")
    assert result.exit_code == 0, result.output
    fused = cs.fuse("answers.csv")
    assert pq.read_table("labels.parquet").equals(fused.to_frame())
    assert sorted(read_table("w.csv").table["worker"].to_pylist()) == list(fused.result_.names.workers)
    assert np.array_equal(cs.load("fit.model").posterior_, fused.posterior_)
    assert repr(cs.load("fit.model").comparison_) == repr(fused.comparison_)
    assert {path.name for path in answers.parent.iterdir()} == {"answers.csv", "labels.parquet", "w.csv", "fit.model"}


def test_closing_tables(answers):
    result = run("fuse", "answers.csv", "-o", "labels.csv")
    assert result.stderr == ""
    text = result.stdout
    for expected in (
        "DawidSkene (estimation variational",
        "720 by 6 workers about 120 items",
        "2: ant, bee",
        "labels differ",
        "Verdict    Better than majority vote in predicting hidden answers (mean",
        "Accuracy   About ",
        "real crowds.",
        " if workers err independently.",
        "Agreement  The workers agree",
        "informativeness",
        "contrary",
        "runner-up",
        "labels.csv",
    ):
        assert expected in text
    workers = [line.split()[0] for line in text.splitlines() if "    120  " in line]
    assert workers[0] == "eve"
    assert workers[-1] == "ann"
    assert "\x1b" not in text
    assert all(len(line) <= 80 and line == line.rstrip() for line in text.splitlines())


def test_without_output_nothing_is_written(answers):
    before = contents(answers.parent)
    result = run("fuse", "answers.csv")
    assert result.exit_code == 0
    assert "nothing; give -o" in result.stdout
    assert contents(answers.parent) == before


def test_json_has_the_figures_and_nothing_else(answers):
    result = run("fuse", "answers.csv", "--json", "-o", "labels.jsonl", "--seed", 3)
    figures = json.loads(result.stdout)
    fused = cs.fuse("answers.csv", seed=3)
    assert figures["model"] == "DawidSkene"
    assert figures["parameters"]["seed"] == 3
    assert figures["columns"] == {"item": "item", "worker": "worker", "label": "label"}
    assert figures["chain"] is None
    assert [figures[name] for name in ("items", "workers", "answers", "classes")] == [120, 6, 720, ["ant", "bee"]]
    assert figures["iterations"] == fused.n_iter_
    assert figures["converged"] is True
    assert figures["comparison"]["agreement"] == fused.comparison_.agreement
    assert figures["comparison"]["verdict"] == "better"
    assert figures["comparison"]["better"] is True
    assert figures["power"] == fused.power_
    assert figures["smoothing"] == list(fused.smoothing_)
    assert figures["calibration"] == fused.result_.explain_calibration()
    vote = json.loads(run("fuse", "answers.csv", "--json", "--model", "majority").stdout)
    assert (vote["power"], vote["smoothing"], vote["calibration"]) == (None, None, None)


def test_quiet_prints_nothing_and_json_wins_over_it(answers):
    result = run("fuse", "answers.csv", "-o", "labels.csv", "--quiet", "--max-iter", 1)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (answers.parent / "labels.csv").exists()
    result = run("fuse", "answers.csv", "--quiet", "--json", "--max-iter", 1)
    assert json.loads(result.stdout)["converged"] is False
    assert result.stderr == ""


def test_warnings_are_one_line_each_in_terms_of_options(answers):
    for form in ([], ["--json"]):
        result = run("fuse", "answers.csv", "--max-iter", 1, *form)
        assert result.exit_code == 0
        (line,) = result.stderr.splitlines()
        assert line.startswith("Warning: DawidSkene stopped after 1 iterations")
        assert line.endswith("Allow more with --max-iter 2.")


def write_tags(n_sequences: int = 40) -> None:
    """Write answers of four workers about tagged sequences, and the truth."""
    rng = np.random.default_rng(1)
    answers, gold = ["doc,place,judge,answer"], ["doc,place,truth"]
    for sequence in range(n_sequences):
        truth = ["O", "B-X", "I-X", "O", "B-Y", "O"][rng.integers(0, 2) :]
        gold += [f"d{sequence},{place},{tag}" for place, tag in enumerate(truth)]
        for worker, accuracy in (("a", 0.95), ("b", 0.9), ("c", 0.8), ("d", 0.3)):
            said = [tag if rng.random() < accuracy else rng.choice(["O", "B-X", "I-X", "B-Y"]) for tag in truth]
            answers += [f"d{sequence},{place},{worker},{tag}" for place, tag in enumerate(said)]
    write_lines(Path("tags.csv"), *answers)
    write_lines(Path("truth.csv"), *gold)


def test_tagged_sequences(folder):
    write_tags()
    columns = ["--sequence", "doc", "--position", "place"]
    figures = json.loads(run("fuse", "tags.csv", *columns, "--json", "-o", "labels.csv", "--save", "m").stdout)
    assert figures["model"] == "HiddenMarkov"
    assert figures["parameters"]["transitions"] == "bio"
    assert figures["columns"] == {"sequence": "doc", "position": "place", "worker": "judge", "label": "answer"}
    assert figures["chain"]["coupling"] == cs.load("m").coupling_
    assert "Coupling" in figures["chain"]["explanation"]
    text = run("fuse", "tags.csv", *columns).stdout
    assert "Chain      coupling" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    scored = json.loads(run("evaluate", "labels.csv", "truth.csv", *columns, "--json").stdout)
    truth, labels = read_table("truth.csv").table["truth"].to_pylist(), read_table("labels.csv").table
    lengths = Counter(labels["sequence"].to_pylist()).values()
    expected = cs.metrics.span_score(truth, labels["label"].to_pylist(), list(lengths))
    assert scored["strict"] == expected._asdict()
    assert scored["n_invalid_transitions"] == 0
    text = run("evaluate", "labels.csv", "truth.csv", *columns).stdout
    for words in ("whole spans", "parts of spans", "Invalid transitions", "precision"):
        assert words in text
    # Without tags there are no spans, and the chain is free.


def test_gold_is_kept_and_strangers_are_counted(answers):
    write_lines(answers.parent / "gold.csv", "item,label", "i000,ant", "i001,bee", "nobody,ant")
    result = run("fuse", "answers.csv", "--gold", "gold.csv", "-o", "labels.csv")
    assert result.exit_code == 0
    assert result.stderr == "Warning: 1 of 3 gold items do not occur in the answers and were left out.\n"
    assert "2 known labels" in result.stdout
    labels = read_table("labels.csv").table.slice(0, 2)
    assert labels["label"].to_pylist() == ["ant", "bee"]
    assert [float(confidence) for confidence in labels["confidence"].to_pylist()] == [1, 1]


# Bad input: exit code 2, one line that says what, where and what to do, and nothing written

HEADER = "item,worker,label"
BAD_FILES = {
    "several missing columns": (
        "item,who,said\n1,a,x\n",
        [],
        ["the worker", "worker, annotator", "Name it with --worker"],
    ),
    "an option that names none": (f"{HEADER}\n1,a,x\n", ["--worker", "wrker"], ["'wrker'", "--worker worker"]),
    "an empty file": ("", [], ["bad.csv", "empty", "Write it again"]),
    "a header only": (f"{HEADER}\n", [], ["bad.csv", "'item'", "no rows", "Give a file with data"]),
    "a column of nulls": (f"{HEADER}\n1,a,\n2,b,\n", [], ["bad.csv", "'label'", "throughout", "line 2", "drop"]),
    "a null label": (f"{HEADER}\n1,a,x\n1,b,\n", [], ["bad.csv", "'label'", "line 3", "drop it"]),
    "a duplicate": (
        f"{HEADER}\n1,a,x\n2,a,x\n1,a,y\n",
        [],
        ["bad.csv", "'a'", "see bad.csv, line 2 and line 4. 1 such pair in all", "--duplicates last"],
    ),
    "classes nobody said": (f"{HEADER}\n1,a,x\n", ["--classes", "y,z"], ["'y', 'z'", "'x'", "as the labels are"]),
}


def assert_refused(result: Result, *fragments: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for fragment in fragments:
        assert fragment in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_answers(case, folder):
    content, options, fragments = BAD_FILES[case]
    (folder / "bad.csv").write_text(content)
    before = contents(folder)
    result = run("fuse", "bad.csv", "-o", "out.csv", "--save", "m", "--workers-report", "w.csv", *options)
    assert_refused(result, *fragments)
    assert len(result.stderr.splitlines()) == 1
    assert contents(folder) == before


def test_damaged_files(answers):
    write_table(read_table("answers.csv").table, "answers.parquet")
    whole = Path("answers.parquet").read_bytes()
    Path("cut.parquet").write_bytes(whole[: len(whole) // 2])
    Path("middle.parquet").write_bytes(whole[:40] + b"\0" * 200 + whole[240:])
    Path("text.parquet").write_text("item,worker,label\n")
    Path("broken.jsonl").write_text('{"item": 1, "worker": "a", "label": "x"}\n{"item": 2, \n')
    Path("latin.csv").write_bytes("item,worker,label\n1,a,x\n2,a,é\n".encode("latin-1"))
    before = contents(answers.parent)
    for name in ("cut.parquet", "middle.parquet", "text.parquet"):
        assert_refused(run("fuse", name, "-o", "out.csv"), name, "cannot be read", "write it again")
    assert_refused(run("fuse", "broken.jsonl", "-o", "out.csv"), "broken.jsonl, line 2", "JSON", "remove the line")
    assert_refused(run("fuse", "latin.csv", "-o", "out.csv"), "latin.csv, line 3", "UTF-8")
    assert contents(answers.parent) == before


def test_missing_sources(answers):
    Path("notes").mkdir()
    Path("notes/readme.txt").write_text("nothing")
    assert_refused(run("fuse", "notes"), "'notes/readme.txt'", ".parquet")
    assert_refused(run("fuse", "none/*.csv"), "none/*.csv", "found nothing")
    assert_refused(run("fuse", "answer.csv"), "does not exist")
    assert_refused(run("fuse", "answers.csv", "more.csv"), "2 were given", "Quote a pattern")


def test_no_streams(answers):
    assert_refused(run("fuse", "-"), "There is nothing to read in standard input")
    assert_refused(run("fuse", "-", "--gold", "-"), "Standard input can be only one of the inputs")
    for option in ("-o", "--workers-report", "--save"):
        assert_refused(run("fuse", "answers.csv", option, "-"), "Standard output is not supported")


def test_bad_gold(answers):
    write_lines(Path("unknown.csv"), "item,label", "i000,wasp")
    write_lines(Path("strangers.csv"), "item,label", "x1,ant", "x2,bee")
    write_lines(Path("clash.csv"), "item,label", "i000,ant", "i000,bee")
    write_lines(Path("unlabelled.csv"), "item,lable", "i000,ant")
    before = contents(answers.parent)
    for name, fragments in {
        "unknown.csv": ("unknown.csv", "'wasp'", "'ant', 'bee'", "--classes"),
        "strangers.csv": ("strangers.csv", "None of the 2", "'x1', 'x2'", "same ids"),
        "clash.csv": ("clash.csv", "'i000'", "Keep one"),
        "unlabelled.csv": ("unlabelled.csv", "'lable'", "Rename"),
        "nowhere.csv": ("nowhere.csv", "does not exist"),
    }.items():
        assert_refused(run("fuse", "answers.csv", "--gold", name, "-o", "out.csv"), *fragments)
    assert contents(answers.parent) == before


@pytest.mark.parametrize("option", ["-o", "--workers-report", "--save"])
def test_bad_outputs_are_found_before_anything_is_read(option, answers, monkeypatch):
    monkeypatch.setattr("consilience.formats.sources.open_source", lambda *_, **__: pytest.fail("was read"))
    Path("folder").mkdir()
    before = contents(answers.parent)
    assert_refused(run("fuse", "answers.csv", option, "no/such.csv"), "no/such.csv", "no folder", "Create it")
    assert_refused(run("fuse", "answers.csv", option, "folder"), "'folder' is a folder")
    assert_refused(run("fuse", "answers.csv", option, "answers.csv"), "change the input 'answers.csv'")
    if option != "--save":
        assert_refused(run("fuse", "answers.csv", option, "out.xlsx"), "out.xlsx", ".parquet")
        assert_refused(run("fuse", ".", option, "out.csv"), "change the input '.'")
    assert_refused(run("fuse", "*.csv", option, "answers.csv"), "change the input '*.csv'")
    assert contents(answers.parent) == before


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (["--model", "best"], ["--model", "'best'", "'auto', 'majority', 'dawid-skene', 'moments', 'hidden-markov'"]),
        (["--estimation", "mcmc"], ["--estimation", "'variational', 'em'"]),
        (["--duplicates", "all"], ["--duplicates", "'error', 'first', 'last', 'mean'"]),
        (["--seed", "x"], ["--seed", "'x'"]),
        (["--nonsense"], ["--nonsense"]),
        (["--engine", "dask", "--threads", "2"], ["--threads does not go with --engine dask"]),
    ],
)
def test_bad_options(options, fragments, answers):
    assert_refused(run("fuse", "answers.csv", "-o", "out.csv", *options), *fragments)
    assert not Path("out.csv").exists()


# What deserves a look


# Failures and interruptions


def test_a_failure_is_one_line_and_debug_shows_the_rest(answers, monkeypatch):
    def fail(*_, **__):
        raise KeyError("oh\x1b[31m")

    monkeypatch.setattr("consilience.api.fuse_prepared", fail)
    result = run("fuse", "answers.csv", "-o", "out.csv")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "KeyError" in result.stderr
    assert "--debug" in result.stderr
    assert "\x1b" not in result.stderr
    result = run("fuse", "answers.csv", "-o", "out.csv", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("Unable to allocate 9.31 GiB for an array")])
def test_too_little_memory_is_told_in_one_sentence(answers, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("consilience.api.fuse_prepared", fail)
    result = run("fuse", "answers.csv", "-o", "labels.csv")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: The memory is too small for this: there are ")
    assert str(error) in result.stderr
    assert result.stderr.endswith("Take a part of the data. Or keep answers on disk: --memory.\n")
    assert not Path("labels.csv").exists()


def test_interrupted_while_writing(answers, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("consilience.models.base.Model.save", interrupt)
    result = run("fuse", "answers.csv", "-o", "labels.csv", "--save", "fit.model")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "Interrupted.\n")
    assert not Path("fit.model").exists()


def test_interrupted_by_a_signal_during_the_fit(answers):
    before = contents(answers.parent)
    # A fit that says when it has begun, and then goes on and on. One long sleep would not hear a signal that comes just
    # before it (Python 3.14).
    slow = """if True:
        import sys, time
        from consilience.cli.files import Display
        def show(display, progress):
            print("fitting", file=sys.stderr, flush=True)
            for _ in range(600):
                time.sleep(0.1)
        Display.show_iteration = show
        from consilience.cli.main import main
        main()
    """
    command = [sys.executable, "-c", slow, "fuse", "answers.csv", "-o", "labels.csv", "--save", "fit.model"]
    with children_hear_signals():
        begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with begun as process:
        assert process.stderr.readline() == "fitting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "Interrupted.\n")
    assert contents(answers.parent) == before


# Text that would act

ODD = (
    "<script>alert(1)</script>",
    "=1+1",
    "[bold]x[/bold]",
    "\x1b[31mred\x1b[0m\x07",
    "\u202egnihton",
    ":smile:",
    "😀👨‍👩‍👧",
    "two\nlines\tand a tab",
    "x" * 10_240,
)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_odd_text_passes_unharmed_and_is_shown_inert(suffix, folder):
    rows = [(f"{label}{n}", f"{label}{m}", label) for n in range(3) for label in ODD for m in range(3)]
    names = ("item", "worker", "label")
    write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), f"odd.{suffix}")
    result = run("fuse", f"odd.{suffix}", "-o", f"out.{suffix}", "--workers-report", f"w.{suffix}")
    assert result.exit_code == 0, result.output
    out = read_table(f"out.{suffix}").table
    assert out["item"].to_pylist() == [f"{label}{n}" for n in range(3) for label in ODD]
    assert out["label"].to_pylist() == [label for _ in range(3) for label in ODD]
    assert set(out.column_names[3:]) == {f"p({label})" for label in ODD}
    assert set(read_table(f"w.{suffix}").table["worker"].to_pylist()) == {
        f"{label}{m}" for label in ODD for m in range(3)
    }
    for text in (result.stdout, result.stderr):
        assert not set(text) & {"\x1b", "\x07", "\t", "\u202e"}
        assert max(map(len, text.splitlines()), default=0) < 300
    figures = run("fuse", f"odd.{suffix}", "--json").stdout
    assert figures.isascii()
    assert json.loads(figures)["classes"] == sorted(ODD)


def test_messages_in_terms_of_options():
    spell = spell_options(program.commands["fuse"])
    error = InputError(
        "Found 'item=3,{label}'.",
        Sentence("Give {gold}, or {duplicates}.", duplicates="mean"),
        Sentence("Or another {tol}."),
        Sentence("Did you mean {label}?", label="two words; {x}"),
        Sentence("See {workers_report}.", workers_report=Python("worker_report()")),
    )
    assert str(error) == (
        "Found 'item=3,{label}'. Give gold=, or duplicates='mean'. Or another tol=. "
        "Did you mean label='two words; {x}'? See worker_report()."
    )
    assert error.say(spell) == (
        "Found 'item=3,{label}'. Give --gold, or --duplicates mean. Did you mean --label 'two words; {x}'? "
        "See --workers-report."
    )


# evaluate


@pytest.fixture
def scored(folder) -> Path:
    labels = {
        "item": ["a", "b", "c", "d"],
        "label": ["x", "y", "y", "x"],
        "confidence": [0.9, 0.8, 0.6, 0.5],
        "p(x)": [0.9, 0.2, 0.4, 0.5],
        "p(y)": [0.1, 0.8, 0.6, 0.5],
    }
    write_table(pa.table(labels), "labels.csv")
    write_lines(Path("gold.csv"), "item,label", "a,x", "b,y", "c,x", "e,y")
    return folder


def test_evaluate(scored):
    figures = json.loads(run("evaluate", "labels.csv", "gold.csv", "--json").stdout)
    assert [figures[name] for name in ("n_matched", "n_gold_only", "n_labels_only")] == [3, 1, 1]
    truth, posterior = ["x", "y", "x"], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]
    assert figures["accuracy"] == pytest.approx(2 / 3)
    assert figures["macro_f1"] == cs.metrics.macro_f1(truth, ["x", "y", "y"])
    assert figures["log_loss"] == cs.metrics.log_loss(truth, posterior, ["x", "y"])
    assert figures["brier"] == cs.metrics.brier(truth, posterior, ["x", "y"])
    assert figures["calibration_error"] == cs.metrics.calibration_error(truth, posterior, ["x", "y"])
    assert figures["classes"][0] == {"class": "x", "precision": 1.0, "recall": 0.5, "f1": 2 / 3, "support": 2}
    text = run("evaluate", "labels.csv", "gold.csv").stdout
    for expected in ("Items compared", "Gold without label", "Labels without gold", "0.667", "Calibration", "recall"):
        assert expected in text
    assert run("evaluate", "labels.csv", "gold.csv", "--quiet").stdout == ""


def test_evaluate_refuses(scored):
    write_lines(Path("twice.csv"), "item,label", "a,x", "b,x", "a,y")
    write_lines(Path("strangers.csv"), "item,label", "q,x")
    write_lines(Path("nothing.csv"), "item,label", "a,", "b,")
    write_lines(Path("unnamed.csv"), "item,lable", "a,x")
    write_lines(Path("sums.csv"), "item,label,p(x),p(y)", "a,x,0.9,0.9")
    assert_refused(run("evaluate", "twice.csv", "gold.csv"), "twice.csv, line 4", "Keep one")
    assert_refused(run("evaluate", "labels.csv", "twice.csv"), "twice.csv, line 4", "Keep one")
    assert_refused(run("evaluate", "labels.csv", "strangers.csv"), "strangers.csv", "labels.csv", "'q'", "same ids")
    assert_refused(run("evaluate", "labels.csv", "nothing.csv"), "nothing.csv", "'label'", "at least one")
    assert_refused(run("evaluate", "labels.csv", "unnamed.csv"), "unnamed.csv", "'lable'", "--label lable")
    assert_refused(run("evaluate", "sums.csv", "gold.csv"), "sum to 1")
    assert_refused(run("evaluate", "labels.csv"), "GOLD")


def test_evaluate_from_python_takes_models_paths_and_dicts(folder):
    answers = {"item": [1, 1, 2, 2], "worker": ["v", "w"] * 2, "label": ["x", "x", "y", "y"]}
    model = cs.MajorityVote().fit(answers)
    write_table(model.to_frame(), "labels.csv")
    write_table(pa.table({"item": [1, 2], "label": ["x", "x"]}), "gold.csv")
    expected = cs.evaluate("labels.csv", "gold.csv")
    assert (expected.n_matched, expected.accuracy) == (2, 0.5)
    assert cs.evaluate(model, {1: "x", 2: "x"}) == expected
    assert cs.evaluate(model, {"item": [1, 2], "label": ["x", "x"]}) == expected


# demo, help, version


def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    vote, fused = (float(word) for word in next(line for line in lines if "accuracy  " in line).split()[1:3])
    assert fused > vote + 0.05
    assert "consilience fuse answers.csv" in result.stdout
    assert "\x1b" not in result.stdout
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)
    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
    command, shown = re.search(r"^\$ consilience (fuse demo-answers.*)\n((?:.*\n)*?)```", page, re.MULTILINE).groups()
    assert doctest.OutputChecker().check_output(shown, run(*command.split()).stdout, doctest.ELLIPSIS)


def test_the_page_names_every_command_and_no_option_that_is_not_there():
    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\$ consilience ([a-z]+)", page, re.MULTILINE))
    assert listed >= set(program.commands) - {"datasets"}
    commands = [*program.commands.values(), *program.commands["simulate"].commands.values()]
    options = {name for command in commands for option in command.params for name in option.opts}
    assert set(re.findall(r"`(--[a-z-]+)", page)) - {"--help"} <= options


def test_version_and_help():
    assert run("--version").stdout == f"consilience, {cs.__version__}\n".replace(",", "")
    for arguments in (
        ["--help"],
        ["fuse", "--help"],
        ["evaluate", "-h"],
        ["convert", "-h"],
        ["formats", "-h"],
        ["demo", "-h"],
    ):
        result = run(*arguments)
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: consilience")
    assert run("fusee").exit_code == 2


def test_help_is_instant_and_imports_nothing_heavy():
    code = """if True:
        import sys
        from consilience.cli.main import program
        program(["fuse", "--help"], standalone_mode=False)
        heavy = {"numpy", "pyarrow", "numba", "scipy", "narwhals", "rich"} & set(sys.modules)
        sys.exit(f"imported {heavy}" if heavy else 0)
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr

    def least_work(command: list[str]) -> float:
        """Return the seconds of the processor that a command takes: others may keep the machine busy."""
        times = []
        for _ in range(3):
            before = os.times()
            subprocess.run(command, check=True, capture_output=True)
            after = os.times()
            times.append(sum(after[2:4]) - sum(before[2:4]))  # of the children, by the user and by the system
        return min(times)

    bare = least_work([sys.executable, "-c", "pass"])
    assert least_work([sys.executable, "-c", MAIN, "--help"]) - bare < 0.5


def test_a_real_process_in_a_pipe(answers):
    result = run_process("fuse", "answers.csv", "-o", "labels.csv")
    assert result.returncode == 0
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    result = run_process("fuse", "none.csv")
    assert (result.returncode, result.stdout) == (2, "")


def test_progress_on_a_terminal_and_only_there(answers):
    main, child = pytest.importorskip("pty").openpty()
    command = [sys.executable, "-c", MAIN, "fuse", "answers.csv"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=child, env=environment(TERM="xterm"), timeout=60)
    os.close(child)
    shown = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(main)
    assert result.returncode == 0
    assert b"Reading answers.csv" in shown
    assert b"\x1b[2K" in shown
    assert b"\x1b" not in result.stdout


def test_a_command_does_not_load_pandas(answers):
    """It takes as long as all else, and an interruption while it is loaded leaves half of it behind."""
    code = f"import sys, atexit; atexit.register(lambda: print('pandas' in sys.modules)); {MAIN}"
    result = subprocess.run(
        [sys.executable, "-c", code, "fuse", "answers.csv"], capture_output=True, text=True, env=environment()
    )
    assert result.stdout.splitlines()[-1] == "False", result.stdout + result.stderr
