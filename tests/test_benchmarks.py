"""Benchmarks run small here, so that they cannot rot."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Import a benchmark as it is imported by its neighbours."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.mark.experiment
def test_the_benchmark_runs():
    command = [sys.executable, BENCHMARKS / "run.py", "--quick"]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "consilience, em, 1 thread" in out.stdout
    assert "bytes" in out.stdout
    assert "| DuckDB, `mode(label)` |" in out.stdout
    assert "| answers | DuckDB | in memory | on disk | crowd-kit |\n|--:|--:|--:|--:|--:|\n| 20k |" in out.stdout
    assert "# League table" in out.stdout or "No league table" in out.stdout


def test_nobody_answers_an_item_twice(script):
    crowd = script("crowd").Crowd(2_000, 50, 3, seed=1)
    item, worker, label = (np.concatenate(parts) for parts in zip(*crowd.draw(), strict=True))
    assert len(np.unique(item * 50 + worker)) == len(item) == 10_000
    # The expected accuracy of a worker is 0.6 + 0.4 / 3.
    assert abs(np.mean(label == crowd.truth[item]) - 0.733) < 0.03
    again = np.concatenate([piece.label for piece in crowd.draw()])
    np.testing.assert_array_equal(label, again)


def test_a_benchmark_that_takes_too_much_is_stopped(script, tmp_path):
    alone = script("alone")
    program = tmp_path / "program.py"

    def measure(text: str, seconds: float = 30.0, memory: float = 1e9) -> tuple[object, object]:
        program.write_text(text)
        return tuple(alone.measure_alone(program, seconds=seconds, memory=memory))

    assert measure('print("words"); print(\'{"seconds": 1}\')') == ([{"seconds": 1}], None)
    assert measure('print("{}", flush=True)\nimport time; time.sleep(60)', seconds=2) == ([{}], alone.SLOW)
    assert measure("held = bytearray(10**9)\nimport time; time.sleep(60)", memory=3e8) == ([], alone.LARGE)
    assert measure('raise ValueError("no")') == ([], "failed: ValueError: no")
