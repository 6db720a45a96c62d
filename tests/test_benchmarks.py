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


def test_the_fastest_run_is_kept_as_a_whole(script):
    choose = script("scale").choose_run
    slow, fast = {"seconds": 3, "read": 1, "peak": 7}, {"seconds": 2, "read": 1.5, "peak": 9}
    assert choose(None, slow) == slow
    assert choose(slow, fast) == choose(fast, slow) == fast
    assert choose({**slow, "peak": 11}, fast) == {**fast, "peak": 11}
    failed = {"reason": "out of memory"}
    assert choose(fast, failed) == choose(failed, fast) == fast
    assert choose(None, failed) == failed


def test_a_section_is_renewed_alone(script):
    run = script("run")
    page = "# Speed\n\n## One\n\nOld.\n\n### Below\n\nMore.\n\n## Two\n\nKept.\n"
    sections = run.read_sections(page) | run.read_sections("## One\n\nNew.\n")
    assert sections == {"One": "## One\n\nNew.\n", "Two": "## Two\n\nKept.\n"}


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


def test_scores_of_peers(script):
    peers = script("peers")
    probability = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [0.9, 0.1]])
    found = peers.Found(0.0, 0, np.array([0, 1, 0, 0]), probability)
    # The truth of the third item is a class that no method knows, and that of the last one is not known.
    scores = peers.score(found, np.array([0, 1, 2, -1]))
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["log_loss"] == pytest.approx(-np.log([0.5, 0.75, 1e-12]).mean())


def test_a_missing_peer_is_named(script, monkeypatch, capsys):
    peers = script("peers")
    monkeypatch.setattr(peers, "find_version", lambda package: None if package == "snorkel" else "1.0")
    method = "snorkel, `LabelModel`"
    assert peers.measure(method, [peers.Case("a", Path("none"), 2)], 1.0) == {"a": {"reason": peers.MISSING}}
    peers.tell_missing()
    assert "left out: snorkel. To install" in capsys.readouterr().err


def test_the_share_of_answers_that_a_campaign_needs(script):
    campaigns = script("campaigns")
    share = np.array([0.25, 0.5, 0.75, 1.0])
    assert campaigns.share_needed(share, np.array([0.5, 0.7, 0.9, 0.9]), 0.8) == pytest.approx(0.625)
    assert campaigns.share_needed(share, np.array([0.5, 0.7, 0.7, 0.7]), 0.8) == 1.0
    assert campaigns.share_needed(share, np.array([0.9, 0.8, 0.9, 1.0]), 0.8) == 0.25
    assert campaigns.final(np.array([0.5, 0.8, 0.6])) == pytest.approx(0.7)
