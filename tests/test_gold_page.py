"""The tables of docs/gold.md are those of a run, and bear out what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import gold
from real_data import needs_data

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "docs" / "measured"
SIZES = ["vote", "no labels", "10", "20", "50", "100"]


def read_tables(name):
    """Return the tables of a file, each as {row: {column: number}}; empty cells are left out."""
    tables = []
    for part in (MEASURED / name).read_text().split("\n\n"):
        if not part.startswith("|"):
            continue
        head, _, *rows = ([cell.strip(" `") for cell in line.split("|")[1:-1]] for line in part.splitlines())
        tables.append({row[0]: {c: float(v) for c, v in zip(head[1:], row[1:], strict=True) if v} for row in rows})
    return tables


@pytest.mark.robust
@needs_data
@pytest.mark.parametrize("size", [0, 20])
def test_the_tables_agree_with_a_run(size):
    crowd = gold.load("bluebird")
    found = gold.mean(gold.measure(crowd, size))
    vote = gold.measure_vote(crowd)
    for table, ours, theirs in zip(read_tables("gold.md"), found, vote, strict=True):
        row = table["bluebird"]
        assert row[str(size) if size else "no labels"] == pytest.approx(ours, abs=0.002)
        assert row["vote"] == pytest.approx(theirs, abs=0.002)


def test_what_the_page_says_of_accuracy():
    accuracy, _ = read_tables("gold.md")
    mean = accuracy.pop("mean of the 7 with all sizes")
    assert list(accuracy["web"]) == SIZES
    gains = {name: row["100"] - row["no labels"] for name, row in accuracy.items() if "100" in row}
    assert sorted(gains, key=gains.get)[-2:] == ["llm_judges", "web"]
    assert all(abs(gain) < 0.0065 for name, gain in gains.items() if name not in ("llm_judges", "web"))
    assert min(gains["web"], gains["llm_judges"]) > 0.015
    assert mean["vote"] < mean["no labels"] < mean["100"]


def test_what_the_page_says_of_log_loss():
    _, loss = read_tables("gold.md")
    mean = loss.pop("mean of the 7 with all sizes")
    steps = [mean[size] for size in SIZES[1:]]
    assert steps == sorted(steps, reverse=True)
    assert 0.01 < mean["no labels"] - mean["10"] < 0.03
    assert any(row["10"] > row["no labels"] for row in loss.values())
    assert mean["no labels"] - mean["20"] > 0.04
    assert all(row["100"] < row["no labels"] for row in loss.values() if "100" in row)
    assert all(row["20"] < row["no labels"] + 0.01 for row in loss.values())


def test_what_the_page_says_of_doubtful_items():
    (loss,) = read_tables("doubtful-gold.md")
    mean = loss.pop("mean")
    assert mean["no labels"] < mean["marked `random=False"] < mean["not marked"]
    far = {name for name, row in loss.items() if row["not marked"] - row["no labels"] > 0.2}
    assert far == {"dog", "llm_judges"}
    assert sum(row["not marked"] < row["no labels"] for row in loss.values()) == 4
    assert sum(row["marked `random=False"] > row["no labels"] for row in loss.values()) == 7
