"""Outputs: each whole or not at all, whatever is in its place and whenever a signal comes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from consilience.formats.reading import read_table
from consilience.formats.writing import replace_file, write_table
from fuzz.kills import MAIN, children_hear_signals
from test_cli import contents, environment, make_answers, run

TABLE = pa.table({"item": [1, 2]})
TEXT = "item\n1\n2\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def answers(folder) -> Path:
    write_table(pa.table(make_answers()), "answers.csv")
    return folder / "answers.csv"


def test_a_temporary_file_has_the_permissions_of_its_target_from_the_start(folder):
    Path("secret.csv").write_text("old")
    os.chmod("secret.csv", 0o600)
    umask = os.umask(0o027)
    try:
        for path, mode in (("secret.csv", 0o600), ("new.csv", 0o640)):
            with replace_file(path) as temporary:
                assert stat.S_IMODE(os.stat(temporary).st_mode) == mode
                temporary.write_text("new")
            assert stat.S_IMODE(os.stat(path).st_mode) == mode
    finally:
        os.umask(umask)


# What cannot be replaced


def test_a_device_is_written_to(answers):
    before = os.stat(os.devnull)
    os.symlink(os.devnull, "null.csv")
    options = ("-o", "null.csv", "--workers-report", "null.csv", "--save", os.devnull)
    result = run("fuse", "answers.csv", *options)
    assert result.exit_code == 0, result.output
    assert (os.stat(os.devnull).st_rdev, os.stat(os.devnull).st_ino) == (before.st_rdev, before.st_ino)
    assert sorted(os.listdir()) == ["answers.csv", "null.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".parquet", ".arrow"])
def test_a_pipe_is_written_to(folder, suffix):
    os.mkfifo(f"pipe{suffix}")
    received = []
    reader = threading.Thread(target=lambda: received.append(Path(f"pipe{suffix}").read_bytes()))
    reader.start()
    write_table(TABLE, f"pipe{suffix}")
    reader.join(timeout=10)
    assert stat.S_ISFIFO(os.stat(f"pipe{suffix}").st_mode)
    Path(f"copy{suffix}").write_bytes(received[0])
    assert read_table(f"copy{suffix}").table.equals(TABLE)
    assert sorted(os.listdir()) == [f"copy{suffix}", f"pipe{suffix}"]


# Inputs


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("o/*.csv", "o/new.csv"),
        ("./o/../o/*", "o/new.csv"),
        ("**/*.csv", "new.csv"),
        ("**/*.csv", "o/deep/new.csv"),
        ("o/[n-z]?w.csv*", "o/new.csv.gz"),
        ("link/*.csv", "o/new.csv"),
    ],
)
def test_an_output_that_a_pattern_would_read_is_refused(answers, pattern, output):
    Path("o/deep").mkdir(parents=True)
    os.symlink("o", "link")
    answers.rename("o/a.csv")
    before = contents(answers.parent)
    result = run("fuse", pattern, "-o", output)
    assert result.exit_code == 2
    assert f"Writing {output!r} would change the input {pattern!r}" in result.stderr
    assert contents(answers.parent) == before


@pytest.mark.parametrize(
    "options",
    [
        ("o/*.csv", "-o", "new.csv"),
        ("o/*.csv", "-o", "o/new.parquet"),
        ("o/*.csv", "-o", "o/deep/new.csv"),
        ("o/*", "--save", "o/fit.model"),
        ("o/a.csv", "-o", "o/new.csv"),
    ],
)
def test_an_output_beside_what_a_pattern_reads_is_not(answers, options):
    Path("o/deep").mkdir(parents=True)
    answers.rename("o/a.csv")
    result = run("fuse", *options)
    assert result.exit_code == 0, result.output


# Signals

# A run that says when its temporary file is there, and then waits. One long sleep would not hear a signal that comes
# just before it (Python 3.14).
SLOW = f"""if True:
    import sys, time
    from consilience.models.base import Model
    from consilience.formats.writing import replace_file
    def save(model, path, **_):
        with replace_file(path) as temporary:
            print("writing", file=sys.stderr, flush=True)
            for _ in range(600):
                time.sleep(0.1)
    Model.save = save
    {MAIN}
"""


@pytest.mark.robust
@pytest.mark.parametrize(
    ("name", "code", "line"),
    [("SIGTERM", 143, "Terminated.\n"), ("SIGHUP", 129, "Hung up.\n"), ("SIGINT", 130, "Interrupted.\n")],
)
def test_a_signal_leaves_no_temporary_file(answers, name, code, line):
    Path("labels.csv").write_text("old")
    before = contents(answers.parent)
    command = [sys.executable, "-c", SLOW, "fuse", "answers.csv", "-o", "labels.csv", "--save", "fit.model"]
    with children_hear_signals():
        begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    with begun as process:
        assert process.stderr.readline() == "writing\n"
        assert len(os.listdir()) == 3  # a temporary file
        process.send_signal(signal.Signals[name])
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, "", line)
    assert contents(answers.parent).keys() == before.keys()
