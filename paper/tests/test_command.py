"""`make paper`, which is `python -m paper`."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import NamedTuple

import pytest

from consilience.errors import MissingDependencyError, ParameterError
from paper import EXPERIMENTS, __main__, find
from paper.__main__ import DOCS, main
from real_data import FOLDER, needs_data


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def call(capsys):
    def run(*arguments):
        return Result(main([str(argument) for argument in arguments]), *capsys.readouterr())

    return run


def test_unknown_experiment(call, tmp_path):
    result = call("table-3", "-o", tmp_path)
    assert result.code == 2
    assert result.err.startswith("Error: There is no experiment 'table-3'. Did you mean table-2? Choose from ")
    with pytest.raises(ParameterError, match="Choose from sequence-items"):
        find("table-3")


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(MissingDependencyError, match=r"the package 'nltk'.*`pip install --group paper`"):
        find("table-1")


def test_missing_data(call, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    result = call("other-sets", "--quick", "--no-cache", "-o", tmp_path / "out")
    assert result.code == 2
    assert "Set $CONSILIENCE_DATA" in result.err
    assert not (tmp_path / "out").exists()


def test_help_names_all(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    listed = re.findall(r"^  ([a-z]+-?[a-z0-9]*)  ", capsys.readouterr().out, re.MULTILINE)
    assert [name for name in listed if name in EXPERIMENTS] == list(EXPERIMENTS)


@pytest.mark.experiment
def test_quick_run_is_as_expected(call, tmp_path):
    """Every quick job gives what the committed tables say. Without data the simulated figures are still compared."""
    result = call("--quick", "--no-cache", "--json", "-o", tmp_path, "--expect", DOCS)
    assert result.code == 0, result.err
    told = {entry["name"]: entry for entry in json.loads(result.out)["experiments"]}
    assert list(told) == list(EXPERIMENTS)
    left_out = [name for name, entry in told.items() if entry["missing"]]
    if not FOLDER.is_dir():
        assert left_out == [name for name in EXPERIMENTS if any(job.data for job in find(name).jobs)]
        pytest.skip(f"compared simulated figures only, no real data: set $CONSILIENCE_DATA (looked in {FOLDER})")
    assert not left_out
    for name in EXPERIMENTS:
        assert {path.suffix for path in tmp_path.glob(f"{name}.*")} == {".csv", ".png", ".md"}


@needs_data
def test_some_data_missing(call, tmp_path, monkeypatch):
    (tmp_path / "rte").symlink_to(FOLDER / "rte")
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    monkeypatch.setattr(__main__, "EXPERIMENTS", {"other-sets": "other_sets"})
    monkeypatch.setattr(__main__, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(__main__, "BUILD", tmp_path / "build")
    # A part does not go where the whole would go.
    result = call("--no-cache", "--expect", DOCS)
    assert result.code == 0, result.err
    assert "1 job: " in result.out
    assert "; as expected; no data: bc5cdr, bluebird" in result.out
    assert not (tmp_path / "docs").exists()
    assert len((tmp_path / "build" / "other-sets.csv").read_text().splitlines()) == 4
    assert "*A part of the experiment" in (tmp_path / "build" / "other-sets.md").read_text()
    result = call("other-sets", "--quick", "--no-cache")
    assert result.code == 2
    assert "not there: 'bluebird', 'dog'" in result.err


def test_results_that_differ(call, tmp_path, monkeypatch):
    whole = find("network-sparse")
    small = replace(whole, jobs=whole.jobs[:1], tolerance=-1.0)  # nothing is close enough
    monkeypatch.setattr("paper.network_sparse.EXPERIMENT", small)
    result = call("network-sparse", "--quick", "--no-cache", "-o", tmp_path, "--expect", DOCS)
    assert result.code == 1
    assert "; NOT as expected" in result.out
    assert result.err.startswith("Not as expected: network-sparse: 200, 0.5, 0, oracle: f is 0.9495, expected 0.9495")


def test_folders_are_checked_first(call, tmp_path):
    (tmp_path / "file").write_text("")
    result = call("network-sparse", "-o", tmp_path / "file")
    assert result.code == 2
    assert "is a file. Name a folder." in result.err
    result = call("network-sparse", "-o", tmp_path, "--expect", tmp_path / "nowhere")
    assert result.code == 2
    assert "There is no folder" in result.err
