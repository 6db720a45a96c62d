"""Benchmarks run small here, so that they cannot rot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_benchmark_runs():
    script = Path(__file__).parents[1] / "benchmarks" / "run.py"
    out = subprocess.run([sys.executable, script, "--quick"], capture_output=True, text=True, check=True)
    assert "consilience, em, 1 thread" in out.stdout
    assert "bytes" in out.stdout
    assert "# League table" in out.stdout or "No league table" in out.stdout
