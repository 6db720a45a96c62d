"""The league table: its scores, its sentences, and the figures on the committed page."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks import league
from benchmarks.league import EM, FAILED, OURS, VOTE, Fused, Score
from paper.other_sets import SETS
from real_data import needs_data


def fused(labels, probability, classes=("a", "b")):
    labels = np.array(list(labels), dtype=object)
    return Fused(labels, None if probability is None else np.array(probability), list(classes))


def test_scores_of_a_small_example():
    # The last label is Viterbi's, say: it is right, but not the most probable class of its row.
    found = league.score(["a", "b", "b", "a"], fused("aaba", [[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.35, 0.65]]))
    assert found.accuracy == 0.75
    assert found.log_loss == pytest.approx(-np.log([0.95, 0.05, 0.65, 0.35]).mean())
    # Two bins with two items each, and one of the two is right in both.
    assert found.ece == pytest.approx(0.5 * (0.95 - 0.5) + 0.5 * (0.65 - 0.5))


def test_columns_go_by_name():
    one = league.score(["a", "b"], fused("aa", [[0.9, 0.1], [0.6, 0.4]]))
    assert league.score(["a", "b"], fused("aa", [[0.1, 0.9], [0.4, 0.6]], "ba")) == one


def test_a_label_that_is_no_class_is_wrong_with_the_least_probability():
    found = league.score(["a", "z"], fused("aa", [[1.0, 0.0], [1.0, 0.0]]))
    assert found == pytest.approx((0.5, -np.log(1e-12) / 2, 0.5))


def test_certain_mistakes_are_clipped():
    assert league.score(["b"], fused("a", [[1.0, 0.0]])).log_loss == pytest.approx(-np.log(1e-12))


def test_labels_alone_have_an_accuracy():
    found = league.score(["a", "b"], fused("ab", None))
    assert found.accuracy == 1
    assert np.isnan(found[1:]).all()


def test_items_without_a_known_label_are_not_scored():
    truth = np.array(["a", None, "b"], dtype=object)
    found = league.score_known(truth, fused("aba", [[0.8, 0.2], [0.1, 0.9], [0.6, 0.4]]))
    assert found == league.score(["a", "b"], fused("aa", [[0.8, 0.2], [0.6, 0.4]]))


def test_what_takes_too_long_is_stopped():
    def run_for_ever():
        while True:
            pass

    with pytest.raises(TimeoutError), league.limit_time(0.05):
        run_for_ever()


def make_rows():
    """Return two sets: on the first ours wins all but accuracy, on the second all, and a method failed."""
    low, high = Score(0.7, 0.5, 0.1), Score(0.9, 0.2, 0.05)
    first = dict.fromkeys(league.METHODS, low) | {OURS: high, EM: Score(0.95, 1.5, 0.2)}
    second = dict.fromkeys(league.METHODS, low) | {OURS: high, "GLAD": FAILED}
    return {"first": first, "second": second}


def test_the_table_has_reasons_and_the_mean_of_complete_lines():
    table = league.make_table(make_rows(), "accuracy")
    assert "| first | .700 | **.950** | .900 | .700 | .700 | .700 | .700 |  |" in table
    assert "| second | .700 | .700 | **.900** | .700 | .700 | *failed* | .700 |  |" in table
    assert "| mean of 1 sets | .700 | **.950** | .900 |" in table


def test_losses_are_computed():
    rows = make_rows()
    page = league.write_page(rows)
    assert (
        "Of 2 sets, *ours* has the best accuracy on 1, the best log loss on 2 and the best calibration error on 2."
        in page
    )
    assert league.REASONS[FAILED] in page.replace("\n  ", " ")


def test_published_accuracies_are_those_of_the_reproduction():
    stated = {name: re.match(r"EBCC (\.\d+)", each.published) for name, each in SETS.items()}
    assert {name: float(match[1]) for name, match in stated.items() if match} == league.PUBLISHED


@needs_data
@pytest.mark.experiment
@pytest.mark.parametrize("name", league.QUICK)
def test_the_page_shows_what_a_run_gives(name):
    row, page = league.measure(name), league.PAGE.read_text()
    lines = re.findall(rf"^\| {name} \|(.*)\|$", page, flags=re.MULTILINE)
    assert len(lines) == len(league.MEASURES)
    for kind, line in zip(league.MEASURES, lines, strict=True):
        cells = [cell.strip(" *") for cell in line.split("|")]
        shown = dict(zip(league.list_columns(kind), map(float, cells), strict=True))
        assert shown == pytest.approx(league.get_figures(row, kind), abs=0.002)
        assert {VOTE, EM, OURS} <= shown.keys()


def test_the_page_describes_the_data():
    assert f"\n{league.describe_data()}\n" in league.PAGE.read_text(encoding="utf-8")


def test_licences_and_citations_are_listed():
    page = (league.PAGE.parents[2] / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for entry in league.CATALOGUE:
        assert f"| `{entry.name}` | {entry.licence} | {entry.citation} |" in page
