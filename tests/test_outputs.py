"""Outputs: each whole or not at all, whatever is in its place and whenever a signal comes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from consilience.formats.reading import read_table
from consilience.formats.writing import check_writable, replace_file, write_table
from fuzz.kills import MAIN, Target, children_hear_signals, run_kills
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


def test_data_reach_the_disk_before_the_rename(folder, monkeypatch):
    events, fsync, replace = [], os.fsync, os.replace

    def note_sync(number):
        events.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    def note_rename(*paths):
        events.append("rename")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    write_table(TABLE, "a.csv")
    assert events == ["file", "rename"]


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


def test_the_standard_output_is_written_to_where_it_is_a_file(answers):
    """Text that is written before and after stays around it."""
    os.symlink("/dev/stdout", "labels.csv")
    script = f"import os; os.write(1, b'before\\n'); {MAIN}"
    command = [sys.executable, "-c", script, "fuse", "answers.csv", "-o", "labels.csv"]
    with open("out.txt", "wb") as out:
        subprocess.run(command, stdout=out, check=True, timeout=60, env=environment())
    lines = Path("out.txt").read_text().splitlines()
    assert lines[0] == "before"
    assert lines[1].startswith("item,label,confidence")
    assert lines[122] == "Labels for answers.csv"


def test_a_device_needs_no_permission_for_its_folder(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != "/dev")
    check_writable(os.devnull)


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
        ("o/*.csv", "-o", "o/.hidden.csv"),
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


@pytest.mark.robust
def test_nohup_is_respected(answers):
    command = ["nohup", sys.executable, "-c", MAIN, "fuse", "answers.csv", "-o", "labels.csv", "-q"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        time.sleep(0.3)  # until nohup has begun
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        assert process.wait() == 0, process.stderr.read()
    assert Path("labels.csv").exists()


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Target:
    return Target(tmp_path_factory.mktemp("kills"), n_items=500)


@pytest.mark.robust
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_kills_at_random_moments(target, name):
    counts, complaints = run_kills(target, 3, name, seed=7)
    assert not complaints
    assert counts["all old"] + counts["all new"] + counts["mixed"] == 3
