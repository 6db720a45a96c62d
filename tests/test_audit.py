"""Audits of workers by known labels: figures of scikit-learn, and intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import consilience as cs
from consilience.estimation.judges import find_wilson


def draw_panel(seed, n=300, n_workers=6, n_classes=2, n_twins=0):
    """Return a fit, the truth, and the answers; twins err on the same items."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, n_classes, n), rng.uniform(0.6, 0.9, n_workers)
    votes = np.empty((n, n_workers), int)
    for m in range(n_workers):
        wrong = (truth + rng.integers(1, n_classes, n)) % n_classes if n_classes > 2 else 1 - truth
        votes[:, m] = np.where(rng.random(n) < skill[m], truth, wrong)
    votes[:, :n_twins] = np.where(rng.random((n, n_twins)) < 0.1, votes[:, :n_twins], votes[:, :1])
    model = cs.DawidSkene().fit(cs.Answers.from_matrix(votes, classes=list(range(n_classes))))
    return model, truth, votes, skill


@pytest.mark.parametrize("n_classes", [2, 4])
def test_figures_are_those_of_scikit_learn(n_classes):
    model, truth, votes, _ = draw_panel(1, n_classes=n_classes)
    rows = np.arange(0, 300, 5)
    found = model.audit(dict(zip(rows.tolist(), truth[rows].tolist(), strict=True)))
    for m, row in enumerate(found.rows):
        said = votes[rows, m]
        assert row["known"] == 60
        assert row["accuracy"] == pytest.approx(np.mean(said == truth[rows]))
        assert row["agreement"] == pytest.approx(cohen_kappa_score(truth[rows], said))
        low, high = find_wilson(np.array([row["accuracy"]]), np.array([60.0]))
        assert (row["accuracy_low"], row["accuracy_high"]) == (pytest.approx(low[0]), pytest.approx(high[0]))
        wrong = votes[rows] != truth[rows, None]
        others = np.corrcoef(wrong.T)[m, np.arange(votes.shape[1]) != m]
        assert row["error_correlation"] == pytest.approx(others.mean())
        if n_classes == 2:
            for name, k in (("sensitivity", 1), ("specificity", 0)):
                assert row[name] == pytest.approx(np.mean(said[truth[rows] == k] == k))
    assert (found.positive == 1) == (n_classes == 2)
    rho = np.mean([row["error_correlation"] for row in found.rows])
    assert found.effective_number == pytest.approx(6 / (1 + 5 * max(rho, 0)))
    assert len(found.to_dict()["workers"]) == found.table.num_rows == 6


def test_who_errs_alike_is_named():
    model, truth, _, _ = draw_panel(2, n_twins=3)
    known = dict(zip(range(100), truth[:100].tolist(), strict=True))
    found = model.audit(known, by={item: "first" if item % 2 else "second" for item in range(300)})
    assert all(row["errs_like"] in (0, 1, 2) for row in found.rows[:3])
    assert all(row["errs_like"] is None for row in found.rows[3:])
    assert "errs like" in found.rows[0]["remarks"]
    assert found.effective_number < 5
    assert sum(row["known"] for row in found.groups_rows) == 600
    assert "worth" in repr(found)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("n_known", [30, 100])
def test_intervals_of_judges_hold(n_known):
    """Of 500 simulated judges, 93 to 97 % have an accuracy within their interval, and likewise a sensitivity."""
    held, seen = [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        skill, truth = rng.uniform(0.6, 0.95, 10), rng.integers(0, 2, 400)
        votes = np.where(rng.random((400, 10)) < skill, truth[:, None], 1 - truth[:, None])
        model = cs.MajorityVote().fit(cs.Answers.from_matrix(votes, classes=[0, 1]))
        drawn = rng.choice(400, n_known, replace=False)
        rows = model.audit(dict(zip(drawn.tolist(), truth[drawn].tolist(), strict=True))).rows
        held += [row["accuracy_low"] <= p <= row["accuracy_high"] for row, p in zip(rows, skill, strict=True)]
        seen += [row["sensitivity_low"] <= p <= row["sensitivity_high"] for row, p in zip(rows, skill, strict=True)]
    assert 0.93 <= np.mean(held) <= 0.97
    assert 0.92 <= np.mean(seen) <= 0.98


def test_items_drawn_with_unequal_chances_count_for_those_that_were_not():
    model, truth, votes, _ = draw_panel(4, n=4000)
    chance = np.where(votes[:, 0] == truth, 0.03, 0.12)
    drawn = np.flatnonzero(np.random.default_rng(0).random(4000) < chance)
    table = {"item": drawn, "label": truth[drawn], "inclusion_probability": chance[drawn]}
    row = model.audit(table).rows[0]
    assert row["accuracy_low"] < np.mean(votes[:, 0] == truth) < row["accuracy_high"]
    assert abs(np.mean(votes[drawn, 0] == truth[drawn]) - np.mean(votes[:, 0] == truth)) > 0.1


def test_a_single_tag_is_judged_like_others():
    """Who is always right about the one tag is said to be, and who says the opposite has no worth."""
    truth = np.arange(40) % 3 == 0
    table = {"item": np.repeat(np.arange(40), 3), "worker": np.tile(["a", "b", "c"], 40)}
    said = np.repeat(truth, 3)
    said[2::3] = ~truth
    tags = cs.Tags.from_frame(table | {"tags": [["urgent"] if each else [] for each in said]})
    known = {item: ["urgent"] if truth[item] else [] for item in range(40)}
    found = cs.fuse(tags).audit(known)
    assert [row["sensitivity"] for row in found.rows] == [row["specificity"] for row in found.rows] == [1.0, 1.0, 0.0]
    assert found.rows[0]["remarks"] == "right in nearly all"
    assert found.rows[2]["remarks"].startswith("right in hardly any; perhaps no better than chance")
    turned = {item: [] if truth[item] else ["urgent"] for item in range(40)}
    assert cs.fuse(tags).audit(turned).worth == 1.0
    everybody = np.stack([np.stack([truth, ~truth], axis=1) * 0.6 + 0.2] * 3, axis=1)
    assert (
        cs.fuse(cs.Answers.from_probabilities(everybody)).audit({n: int(not truth[n]) for n in range(40)}).worth is None
    )


def test_labels_that_are_no_classes_are_not_judged():
    table = {"item": np.repeat(np.arange(40), 3), "worker": np.tile(["a", "b", "c"], 40)}
    truth = np.where(np.arange(40) % 2, "yes", "no")
    said = np.repeat(truth, 3).astype(object)
    said[::6] = "unsure"
    model = cs.DawidSkene().fit(cs.Answers.from_frame(table | {"label": said}, classes=["no", "yes"]))
    rows = model.audit(dict(zip(range(40), truth.tolist(), strict=True))).rows
    assert [row["known"] for row in rows] == [20, 40, 40]
    assert rows[0]["accuracy"] == 1.0
    assert rows[0]["accuracy_low"] < 1.0
