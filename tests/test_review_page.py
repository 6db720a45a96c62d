"""The tables of docs/evidence.md on review are those of a run, and bear out what the page says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import review
from real_data import needs_data
from test_gold_page import read_tables


def test_what_the_page_says():
    (table,) = read_tables("review.md")
    mean = table.pop("mean")
    assert list(table) == list(review.CROWDS)
    assert mean["highest entropy"] > 2 * mean["random"]
    assert 0.85 < mean["next_items"] / mean["highest entropy"] < 0.95
    assert all(row["random"] < row["next_items"] for row in table.values())


@pytest.mark.robust
@needs_data
def test_the_table_agrees_with_a_run():
    (table,) = read_tables("review.md")
    crowd = review.load("bluebird")
    expected = table["bluebird"]
    assert expected["labels"] == crowd.n_labels
    found = [review.review(crowd, review.choose_next, seed) for seed in range(review.N_SEEDS)]
    assert np.mean(found) - expected["no labels"] == pytest.approx(expected["next_items"], abs=0.01)


def test_labels_that_are_kept_are_wrong_more_often_than_expected():
    """What `Undecided.describe` says of calibration without known labels."""
    for table in read_tables("undecided.md"):
        mean = table.pop("mean")
        ratios = {name: row["wrong, no labels"] / row["expected, no labels"] for name, row in table.items()}
        assert len(table) == 8
        assert sum(ratio > 1.9 for ratio in ratios.values()) == 7
        assert ratios["web"] < 1
        assert mean["wrong, with"] / mean["expected, with"] < mean["wrong, no labels"] / mean["expected, no labels"]
