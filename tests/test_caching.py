"""Compiled code where it cannot be kept, or is damaged: kernels work all the same, and say so in one line."""

from __future__ import annotations

import builtins
import errno
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

from consilience.kernels.compile import LOADS_BY_ITSELF, kernel, say_where

PACKAGE = Path(__file__).parents[1] / "src" / "consilience"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with no place to keep code: not beside the source, not at home, not where numba is told."""
    (tmp_path / "tiny.py").write_text("def double(x):\n    return 2 * x\n")
    for name in ("__pycache__", "home", "cache"):
        (tmp_path / name).touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


@pytest.fixture
def temporary(place):
    """The folder that is taken instead."""
    return place / "tmp" / f"consilience-{os.getuid()}"


@pytest.fixture
def call(place, caplog, monkeypatch):
    """Compile and call a function as a new process would; return the number of cache hits and what was logged."""
    monkeypatch.syspath_prepend(place)
    module = importlib.import_module("tiny")

    def call():
        say_where.cache_clear()
        caplog.clear()
        double = kernel(module.double)
        assert double(21) == 42
        assert double(2.5) == 5
        return sum(double.stats.cache_hits.values()), "\n".join(caplog.messages)

    yield call
    del sys.modules["tiny"]


def make_room(place):
    """Let numba use the folder it is told."""
    (place / "cache").unlink()
    (place / "cache").mkdir()


def fill(monkeypatch, *folders):
    """Fail to write to these folders, as if their disk were full."""
    plain_open = builtins.open

    def full_open(path, mode="r", *rest, **settings):
        if "w" in mode and str(path).startswith(tuple(map(str, folders))):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return plain_open(path, mode, *rest, **settings)

    monkeypatch.setattr(builtins, "open", full_open)


def test_the_usual_place_needs_no_words(place, temporary, call):
    make_room(place)
    assert call() == (0, "")
    assert call() == (2, "")
    assert not temporary.exists()


def test_a_temporary_place(temporary, call):
    hits, said = call()
    assert hits == 0
    assert said.count("\n") == 0
    assert f"It is kept in {temporary} for now. Set NUMBA_CACHE_DIR" in said
    assert temporary.stat().st_mode & 0o777 == 0o700
    assert call() == (2, said)


def test_no_place_at_all(temporary, call):
    temporary.touch()
    for _ in range(2):
        hits, said = call()
        assert hits == 0
        assert said.count("\n") == 0
        assert "It is compiled again in every run" in said


@pytest.mark.parametrize("usual", [True, False])
def test_no_folder_for_temporary_files(usual, place, call, monkeypatch):
    """As in a container where only the folder for compiled code can be written to, or nothing at all."""

    def refuse():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    if usual:
        make_room(place)
        assert call() == (0, "")
        assert call() == (2, "")
    else:
        assert call()[0] == 0
        assert "It is compiled again in every run" in call()[1]


@pytest.mark.parametrize("kind", ["link", "open"])
def test_a_temporary_folder_of_somebody_else_is_not_trusted(kind, place, temporary, call):
    """Machine code is executed: nobody else may have put it there."""
    if kind == "link":
        (place / "elsewhere").mkdir()
        temporary.symlink_to(place / "elsewhere")
    else:
        temporary.mkdir()
        temporary.chmod(0o777)
    assert "It is compiled again in every run" in call()[1]
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("usual", [True, False])
def test_a_full_disk(usual, place, temporary, call, monkeypatch):
    if usual:
        make_room(place)
    with monkeypatch.context() as patch:
        fill(patch, place / "cache", temporary)
        for _ in range(2):
            hits, said = call()
            assert hits == 0
            assert said.count("\n") == 0
            assert "It is compiled again in every run" in said
    assert call()[0] == 0  # there is space again
    hits, said = call()
    assert hits == 2
    assert usual == (said == "")


def flip(content):
    """Return the content with one wrong bit, in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "garbage": lambda content: b"\x80\x05garbage" * 100,
    "flipped": flip,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_files_are_renewed(damage, suffix, place, call):
    make_room(place)
    call()
    for file in (place / "cache").rglob(f"*.{suffix}"):
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert call()[1] == ""
    assert call() == (2, "")


def test_a_mixed_up_index(place, call):
    """Machine code for whole numbers is not taken for that of fractions."""
    make_room(place)
    call()
    one, other = (place / "cache").rglob("*.nbc")
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    assert call() == (0, "")
    assert call() == (2, "")


def test_a_file_that_cannot_be_renewed(place, call):
    make_room(place)
    call()
    (file,) = (place / "cache").rglob("*.nbi")
    file.unlink()
    file.mkdir()
    hits, said = call()
    assert hits == 0
    assert "It is compiled again in every run" in said


@pytest.mark.robust
def test_the_command_line_says_it_once(place, temporary):
    """With code, home and $NUMBA_CACHE_DIR that cannot be written to, and files that may not grow in the end."""
    shutil.copytree(PACKAGE, place / "consilience", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "consilience" / "kernels" / "__pycache__").touch()
    (place / "answers.csv").write_text("item,worker,label\n1,a,x\n1,b,y\n2,a,x\n")
    environment = os.environ | {
        "PYTHONPATH": str(place),
        "NUMBA_CACHE_DIR": str(place / "cache"),
        "TMPDIR": str(place / "tmp"),
    }

    def fuse(*options, limit=""):
        program = f"{limit}from consilience.cli.main import main; main()"
        command = [sys.executable, "-c", program, "fuse", "answers.csv", "--model", "majority", *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=place)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert fuse().count(f"Warning: Compiled code cannot be kept where it should be. It is kept in {temporary}") == 1
    assert fuse("--quiet") == ""
    shutil.rmtree(temporary)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); "
    assert fuse(limit=limit).count("It is compiled again in every run") == 1


EVERY_KIND = """
import sys
import consilience as cs

crowd = cs.simulate.sequences(6, 20, 8, 3, seed=1)
network = cs.simulate.network(60, 5, 3, seed=1)
fits = [
    cs.DawidSkene().fit(crowd.responses),
    cs.DawidSkene(workers="one-coin").fit(crowd.responses),
    cs.DawidSkene(start="moments", estimation="em").fit(crowd.responses),
    cs.HiddenMarkov(workers="sequential").fit(crowd.responses),
    cs.HiddenMarkov(decode="marginal").fit(crowd.responses),
    cs.MarkovField().fit(network.responses, graph=network.graph),
]
print([fit.trace_[-1].hex() for fit in fits], len(cs.fuse(crowd.responses).worker_report()))
print("numba.np.arraymath" in sys.modules)
"""


@pytest.mark.robust
def test_kept_code_is_loaded_without_a_compiler(tmp_path):
    """Machine code that lacks what it needs would end the process without a word."""
    runs = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", EVERY_KIND], capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        runs.append(run.stdout.splitlines())
    (first, _), (second, compiles) = runs
    assert first == second
    if numba.__version__.startswith(LOADS_BY_ITSELF):
        assert compiles == "False"
