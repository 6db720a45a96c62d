"""Little memory: a command works, or says at once what it needs and what there is. It never hangs, nor crashes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from consilience.cli import tight_memory
from consilience.errors import InputError
from consilience.formats.writing import write_table
from test_cli import environment, make_answers, run

pytest.importorskip("resource", reason="there are no limits of address space")
# What would be set before, by a careful user or by those who run tests.
SET_HERE = (*tight_memory.THREADS, "ARROW_DEFAULT_MEMORY_POOL")


@pytest.fixture
def answers(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_table(pa.table(make_answers()), "answers.csv")
    return tmp_path / "answers.csv"


def run_limited(megabytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {name: value for name, value in environment().items() if name not in SET_HERE}
    command = ["sh", "-c", f'ulimit -v {megabytes * 1000}; exec "$@"', "sh", sys.executable, "-m", "consilience"]
    return subprocess.run([*command, *arguments], env=settings, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("megabytes", [400, 600])
def test_too_little_is_told_at_once(answers, megabytes):
    began = time.monotonic()
    done = run_limited(megabytes, "fuse", "answers.csv", "-o", "labels.csv", "--report", "r.html")
    assert time.monotonic() - began < 10
    assert done.returncode == 2
    limit = f"{megabytes * 1000 / 1024:.1f} MiB"
    words = f"Error: consilience needs 650.0 MiB of address space, and ulimit -v allows {limit}. Raise the limit.\n"
    assert done.stderr == words
    assert os.listdir() == ["answers.csv"]


@pytest.mark.robust
@pytest.mark.parametrize("megabytes", [700, 1000, 1500, 2000, 4000])
def test_every_command_works_under_a_limit(answers, megabytes):
    assert run("fuse", "answers.csv", "-o", "before.csv", "--save", "m.model").exit_code == 0
    for arguments in (
        "fuse answers.csv -o labels.csv --save new.model --report r.html --workers-report w.csv",
        "update m.model answers.csv --duplicates last --save newer.model",
        "predict m.model answers.csv -o p.csv",
        "evaluate labels.csv before.csv",
        "convert answers.csv answers.jsonl",
        "report m.model -o again.html",
        "next m.model --stop .95",
        "simulate sequences -o made",
        "fuse made/answers.csv -o tagged.csv",
        "fuse answers.csv -o on-disk.csv --memory 1GB",
        "formats",
    ):
        done = run_limited(megabytes, *arguments.split())
        assert done.returncode == 0, (arguments, done.stderr)
    assert Path("labels.csv").read_text() == Path("before.csv").read_text()  # to the last bit
    assert not [name for name in os.listdir() if name.startswith((".", "core"))]


def test_both_floors(monkeypatch):
    monkeypatch.setattr(tight_memory, "available_memory", lambda: 100 << 20)
    with pytest.raises(InputError, match=r"needs 192.0 MiB of memory, and there are 100.0 MiB\. Raise the limit\."):
        tight_memory.check_room()
    monkeypatch.setattr(tight_memory, "available_memory", lambda: 10 << 30)
    monkeypatch.setattr(tight_memory, "address_space", lambda: float("inf"))
    tight_memory.check_room()


@pytest.mark.parametrize(("gigabytes", "n_threads"), [(0.7, 1), (2, 4), (1000, None)])
def test_threads_are_bounded_by_the_limit(monkeypatch, gigabytes, n_threads):
    for name in SET_HERE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")  # what the user says counts
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    tight_memory.bound_threads(gigabytes * 2**30)
    found = {name: os.environ.pop(name, None) for name in tight_memory.THREADS}
    expected = None if n_threads is None else str(n_threads)
    assert found == dict.fromkeys(tight_memory.THREADS, expected) | {"OMP_NUM_THREADS": "7"}


@pytest.mark.parametrize(
    ("error", "is_shortage"),
    [
        (MemoryError(), True),
        (MemoryError("Unable to allocate 9.31 GiB for an array"), True),
        (pa.ArrowMemoryError("malloc of size 64 failed"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError("Could not find/load shared object file 'libllvmlite.so'"), False),  # without a limit it is not there
        (ValueError("Cannot allocate memory"), False),
    ],
)
def test_shortages_are_told_in_one_sentence(answers, monkeypatch, error, is_shortage):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("consilience.cli.fuse.fit", fail)
    result = run("fuse", "answers.csv", "-o", "labels.csv")
    assert result.exit_code == (2 if is_shortage else 1)
    assert ("Error: The memory is too small for this: " in result.stderr) == is_shortage
    if is_shortage:
        assert result.stderr.endswith(
            "Raise the limit, or take a part of the data. Or keep answers on disk: --memory.\n"
        )
        assert str(error) in result.stderr or isinstance(error, RuntimeError)
    assert os.listdir() == ["answers.csv"]


def test_a_library_that_cannot_be_mapped(monkeypatch):
    error = OSError("Could not find/load shared object file 'libllvmlite.so' from 'llvmlite.binding'.")
    for name in ("address_space", "available_memory"):
        monkeypatch.setattr(tight_memory, name, lambda: 700 << 20)
    told = str(tight_memory.explain_shortage(error))
    assert told.startswith("The memory is too small for this: ulimit -v allows 700.0 MiB. Raise the limit")
