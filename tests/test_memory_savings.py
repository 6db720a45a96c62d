"""Work in runs, and short numbers, change nothing but the memory that is needed."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.answers import arrays, random_choices, vocabulary
from consilience.checks import comparison
from consilience.inference import powers
from consilience.inference.recipes import independent
from consilience.metrics import agreement
from consilience.metrics.agreement import krippendorff_interval
from consilience.results import answer_worth, intervals


@pytest.fixture
def crowd():
    return cs.simulate.independent(300, n_workers=12, n_classes=3, answers_per_item=4, accuracy=0.6, seed=3)


@pytest.mark.parametrize("ids", [np.arange(50), np.arange(50) / 4, np.array(["a", 1, b"c", "é", 2.5] * 10, object)])
def test_hashes_do_not_depend_on_runs(ids, monkeypatch):
    whole = random_choices.hash_ids(ids)
    monkeypatch.setattr(random_choices, "AT_ONCE", 7)
    np.testing.assert_array_equal(random_choices.hash_ids(ids), whole)
    assert len(random_choices.hash_ids(ids[:0])) == 0


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_results_do_not_depend_on_runs(crowd, monkeypatch):
    def fit():
        model = cs.fuse(crowd.responses, calibration=0.7)
        ends = (model.expected_accuracy_low_, model.expected_accuracy_high_)
        vote = cs.MajorityVote().fit(crowd.responses)
        alpha = krippendorff_interval(crowd.responses)
        figures = (model.comparison_.n_differ, model.comparison_.expected_gain, model.comparison_.vote_top_share)
        return (
            model.posterior_,
            vote.posterior_,
            vote.fusion_.labels.codes,
            vote.fusion_.intervals.prior,
            ends,
            alpha,
            figures,
        )

    whole = fit()
    for module in (agreement, answer_worth, comparison, intervals, powers, independent):
        monkeypatch.setattr(module, "ITEMS_AT_ONCE", 17)
    for before, after in zip(whole, fit(), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-14)


def test_short_numbers_change_no_bit(crowd, monkeypatch):
    given = crowd.responses
    table = {"item": given.item_of_answer(), "worker": given.worker, "label": given.label}

    def fit():
        r = cs.Answers.from_frame(table)
        (block, *_) = arrays.cut_blocks(r, r.label, r.n_labels)
        return (r.label.dtype, block.codes.dtype, block.offsets.dtype), cs.DawidSkene().fit(r).posterior_

    long, before = fit()
    monkeypatch.setattr(vocabulary, "VERY_MANY", 100)
    monkeypatch.setattr(arrays, "MANY", 100)
    short, after = fit()
    assert long == (np.int32, np.int32, np.int64)
    assert short == (np.int8, np.uint16, np.int32)
    np.testing.assert_array_equal(after, before)
