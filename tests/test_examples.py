"""The files in examples/: small, as examples/make.py writes them, and read without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import consilience as cs
from examples.make import HERE, main, make

FILES = make()


def test_the_script_writes_what_is_stored(tmp_path):
    main(tmp_path)
    written = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*.*")}
    stored = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in HERE.rglob("*.*")}
    stored = {name: content for name, content in stored.items() if Path(name).suffix not in (".py", ".pyc")}
    assert written.keys() == stored.keys()
    assert [name for name in stored if stored[name] != written[name]] == []


def test_files_are_small():
    assert {name: len(content) for name, content in FILES.items() if len(content) > 50_000} == {}


def annotations(name):
    """Return (number of the document, worker, start, end, label) of all spans."""
    spans = cs.read_spans(HERE / name)
    number = {document: n for n, document in enumerate(spans.documents)}
    return {(number[row.pop("document")], *row.values()) for row in spans.to_frame().to_pylist()}


@pytest.mark.parametrize("name", ["prodigy.jsonl", "doccano", "brat", "conll"])
def test_the_other_tools_hold_the_same_annotations(name):
    assert len(annotations(name)) == 22
    assert annotations(name) == annotations("doccano")


def test_an_ensemble_goes_to_a_report(tmp_path):
    pytest.importorskip("sklearn")
    command = [sys.executable, str(HERE / "soft_votes.py"), str(tmp_path / "report.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("soft votes are fused")
    assert float(done.stdout.split("right: ")[1]) > 0.9
    assert (tmp_path / "report.html").stat().st_size > 10_000
