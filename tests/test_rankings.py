"""What a ranking tells: tables, findings, what to ask next, evaluation, and files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, norm
from sklearn.base import clone

import consilience as cs
from consilience.errors import InputError, NotFittedError, ParameterError
from consilience.rankings import likelihood
from consilience.rankings.likelihood import invert

COLUMNS = [
    *("candidate", "score", "low", "high", "rank", "rank_low", "rank_high"),
    *("comparisons", "wins", "ties", "elo", "elo_low", "elo_high"),
]


@pytest.fixture(scope="module")
def arena():
    return cs.simulate.comparisons(2500, n_candidates=8, coin_tossers=0.3, bias=0.6, seed=11)


@pytest.fixture(scope="module")
def model(arena):
    return cs.rank(arena.comparisons)


def test_the_table_of_candidates(arena, model):
    table, data = model.ranking_, arena.comparisons
    assert table.column_names == COLUMNS
    rows = table.to_pylist()
    assert [row["rank"] for row in rows] == list(range(1, 9))
    for row in rows:
        code = data.candidates.tolist().index(row["candidate"])
        wins = ((data.left == code) & (data.verdict == 0)) | ((data.right == code) & (data.verdict == 1))
        seen = (data.left == code) | (data.right == code)
        assert (row["comparisons"], row["wins"], row["ties"]) == (
            seen.sum(),
            wins.sum(),
            (seen & (data.verdict == 2)).sum(),
        )
        assert row["low"] < row["score"] < row["high"]
        assert row["elo"] == pytest.approx(1000 + 400 / np.log(10) * row["score"])
    assert sum(row["score"] for row in rows) == pytest.approx(0, abs=1e-9)


def test_the_table_of_judges(arena, model):
    rows = {row["worker"]: row for row in model.judge_report().to_pylist()}
    data = arena.comparisons
    for code, name in enumerate(data.workers.tolist()):
        mine = data.worker == code
        assert rows[name]["comparisons"] == mine.sum()
        assert rows[name]["ties"] == pytest.approx(np.mean(data.verdict[mine] == 2), abs=6e-4)
        told = mine & (data.verdict != 2)
        assert rows[name]["first"] == pytest.approx(np.mean(data.verdict[told] == 0), abs=6e-4)
        better = model.scores_[data.left[told]] > model.scores_[data.right[told]]
        assert rows[name]["agreement"] == pytest.approx(np.mean(better == (data.verdict[told] == 0)), abs=6e-4)
    tossers = data.workers[arena.discrimination == 0]
    assert all("tosses coins" in rows[name]["remarks"] for name in tossers)
    assert all("tosses coins" not in rows[name]["remarks"] for name in set(rows) - set(tossers))


def test_win_probabilities(model):
    names = model.ranking_["candidate"].to_pylist()
    matrix = model.win_matrix()
    values = np.column_stack([matrix[name].to_numpy() for name in names])
    assert matrix["candidate"].to_pylist() == names
    assert values + values.T == pytest.approx(1)
    assert values[0, 1] == pytest.approx(float(model.win_probability(names[0], names[1])))
    win = model.win_probability(names[0], names[-1])
    assert win.low < win < win.high
    assert win.told_apart
    assert repr(win).startswith(f"{float(win):.3f} (")
    with pytest.raises(ParameterError, match="There is no candidate 'nobody'"):
        model.win_probability(names[0], "nobody")


def test_ties_count_half_in_a_win_probability():
    """By hand: Davidson's odds at a lead of the two scores."""
    verdicts = {"left": ["a"] * 60, "right": ["b"] * 60, "winner": ["a"] * 30 + ["b"] * 10 + ["tie"] * 20}
    model = cs.BradleyTerry(position_bias="none").fit(verdicts)
    lead, nu = model.scores_[0] - model.scores_[1], np.exp(model.result_.log_tie)
    odds = np.array([np.exp(lead / 2), np.exp(-lead / 2), nu])
    assert float(model.win_probability("a", "b")) == pytest.approx((odds[0] + odds[2] / 2) / odds.sum())
    assert odds[2] / odds.sum() == pytest.approx(1 / 3, abs=0.03)


# ------------------------------------------------------------------------------------------------------------- findings


def kinds(model):
    return [finding.kind for finding in model.findings_]


def draw(n, scores, d, bias=0.0, tie=0.3, seed=0):
    """Verdicts of judges with these discriminations, as a table."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, len(scores), n)
    right = (left + rng.integers(1, len(scores), n)) % len(scores)
    judge = rng.integers(0, len(d), n)
    z = np.array(d)[judge] * (np.array(scores)[left] - np.array(scores)[right]) + bias
    odds = np.exp(z / 2), np.exp(-z / 2)
    drawn = rng.random(n) * (odds[0] + odds[1] + tie)
    said = np.where(drawn < odds[0], "left", np.where(drawn < odds[0] + odds[1], "right", "tie"))
    names = {"left": left, "right": right}
    table = {side: [f"m{code}" for code in codes] for side, codes in names.items()}
    return table | {"worker": [f"j{code}" for code in judge], "winner": said.tolist()}


SCORES = (1.5, 0.5, -0.5, -1.5)


@pytest.mark.parametrize("seed", range(2))
def test_two_camps_are_not_told_who_is_right(seed, tmp_path):
    table = draw(1000, SCORES, [1, 1, 1, -1, -1, -1], seed=seed)
    with pytest.warns(cs.errors.DataWarning, match="two camps of 3 and 3"):
        model = cs.rank(table)
    assert kinds(model)[0] == "camps"
    assert model.findings_[0].level == "bad"
    assert "contrary" not in kinds(model)
    first = model.ranking_.to_pylist()[0]
    assert (first["rank"], first["rank_low"], first["rank_high"]) == (1, 1, 4)
    assert set(model.judge_report()["remarks"].to_pylist()) == {"camp 1", "camp 2"}
    assert len(set(model.next_comparisons(12)["worker"].to_pylist())) == 6
    page = cs.report(model, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>Judges are in two camps" in page


def test_a_contrarian_is_not_asked():
    with pytest.warns(cs.errors.DataWarning, match="1 judge prefers the worse candidate: j5"):
        model = cs.rank(draw(1500, SCORES, [1, 1, 1, 1, 1, -1]))
    assert "j5" not in model.next_comparisons(30)["worker"].to_pylist()
    assert set(model.next_comparisons(3, workers=["j5"])["worker"].to_pylist()) == {"j5"}


def test_parts_have_no_overall_best(tmp_path):
    table = {"left": list("aaabbbcccxx"), "right": list("bbbcccaaayy"), "winner": list("aaabbbaaaxx")}
    with pytest.warns(cs.errors.DataWarning, match="Not in the largest part: x, y"):
        model = cs.rank(table)
    page = cs.report(model, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>No overall best: 2 parts. a leads part 1, and" in page
    assert "The chart shows the largest part" in page
    assert cs.evaluate(model, list("axbyc")).n_parts == 2
    assert cs.evaluate(model, {("a", "b"): "a", ("x", "y"): "x"}).n_parts == 2


# ----------------------------------------------------------------------------------------------------- what to ask next


def test_next_comparisons_are_those_that_tell_most(model):
    table = model.next_comparisons(30)
    assert table.column_names == ["left", "right", "worker", "gain"]
    tossers = [row["worker"] for row in model.judge_report().to_pylist() if "tosses coins" in row["remarks"]]
    asked = table["worker"].to_pylist()
    assert not set(asked) & set(tossers)
    n_useful = len(model.result_.workers) - len(tossers)
    assert max(asked.count(name) for name in asked) <= -(-2 * 30 // n_useful)
    assert all(gain > 0 for gain in table["gain"].to_pylist())
    only = model.next_comparisons(4, workers=["j01"])
    assert only["worker"].to_pylist() == ["j01"] * 4
    with pytest.raises(ParameterError, match="workers"):
        model.next_comparisons(4, workers=["nobody"])
    with pytest.raises(ParameterError, match="n"):
        model.next_comparisons(0)


def test_the_first_comparison_is_the_best_of_all(model):
    """By brute force over all pairs and judges: what each pair's doubt falls by, summed over the pairs."""
    result, best = model.result_, (-1.0, None)
    for judge in np.flatnonzero(~result.kinds["coins"]):
        d, g = result.discrimination[judge], result.bias[judge]
        for a in range(8):
            for b in range(a):
                information = 0.0
                for side in (g, -g):  # the mean of both orders
                    z = d * (result.score[a] - result.score[b]) + side
                    odds = np.array([np.exp(z / 2), np.exp(-z / 2), np.exp(result.log_tie)])
                    p = odds / odds.sum()
                    information += d**2 * ((p[0] + p[1]) - (p[0] - p[1]) ** 2) / 8
                x = np.eye(8)[a] - np.eye(8)[b]
                variance = x @ result.covariance @ x
                gain = 0.0
                for first in range(8):
                    for second in range(first):
                        y = np.eye(8)[first] - np.eye(8)[second]
                        own = y @ result.covariance @ y
                        falls = information * (y @ result.covariance @ x) ** 2 / (1 + information * variance)
                        gain += 2 * norm.pdf(y @ result.score / np.sqrt(own)) ** 2 * falls / own
                best = max(
                    best, (gain, frozenset((result.candidates[a], result.candidates[b]))), key=lambda each: each[0]
                )
    first = model.next_comparisons(1).to_pylist()[0]
    assert {first["left"], first["right"]} == set(best[1])
    assert first["gain"] == pytest.approx(best[0])


# ----------------------------------------------------------------------------------------------------------- evaluation


def test_a_known_order_judges_a_ranking(arena, model):
    truth = dict(zip(arena.comparisons.candidates.tolist(), arena.scores.tolist(), strict=True))
    result = cs.evaluate(model, truth)
    assert result.kendall == pytest.approx(kendalltau(model.scores_, arena.scores)[0])
    assert result.n_candidates == 8
    best_first = sorted(truth, key=truth.get, reverse=True)
    assert cs.evaluate(model, best_first) == result
    assert cs.evaluate(model, {"candidate": best_first, "rank": list(range(1, 9))}) == result
    assert cs.evaluate(model, best_first[::-1]).kendall == pytest.approx(-result.kendall)
    assert "kendall" in repr(result)
    with pytest.raises(InputError, match="at least two"):
        cs.evaluate(model, ["x", "y"])


def test_known_verdicts_judge_a_ranking(model):
    best, *_, worst = model.ranking_["candidate"].to_pylist()
    right = cs.evaluate(model, {(best, worst): best})
    wrong = cs.evaluate(model, {"left": [best], "right": [worst], "winner": ["right"]})
    assert (right.accuracy, wrong.accuracy) == (1.0, 0.0)
    assert right.log_loss < wrong.log_loss
    win, nu = float(model.win_probability(best, worst)), np.exp(model.result_.log_tie)
    lead = float(model.scores_.max() - model.scores_.min())
    total = np.exp(lead / 2) + np.exp(-lead / 2) + nu
    assert right.log_loss == pytest.approx(-np.log(np.exp(lead / 2) / total))
    assert win == pytest.approx((np.exp(lead / 2) + nu / 2) / total)


# ---------------------------------------------------------------------------------------------------- files and manners


def test_manners_of_an_estimator(model):
    fresh = clone(cs.BradleyTerry(seed=3, discrimination="equal"))
    assert fresh.get_params()["seed"] == 3
    assert repr(fresh) == "BradleyTerry(discrimination='equal', seed=3)"
    assert not fresh.__sklearn_is_fitted__()
    with pytest.raises(NotFittedError, match="Call fit"):
        fresh.ranking_  # noqa: B018
    assert fresh.set_params(seed=4).seed == 4
    assert repr(model) == "BradleyTerry(): 2,500 verdicts of 15 judges on 8 candidates"
    html = model._repr_html_()
    assert "2,500 by 15 judges" in html
    assert "<table" in html
    assert "BradleyTerry" in fresh._repr_html_()


@pytest.mark.parametrize("is_bordered", [False, True])
def test_inverse_of_a_bordered_matrix(is_bordered):
    """The last row and column are those of a Lagrange multiplier, so the whole is not positive definite."""
    rng = np.random.default_rng(0)
    root, border = rng.normal(size=(7, 9)), rng.normal(size=7)
    matrix = root @ root.T
    if is_bordered:
        matrix = np.block([[matrix, border[:, None]], [border[None], np.zeros((1, 1))]])
    np.testing.assert_allclose(invert(matrix, 7), np.linalg.inv(matrix), rtol=1e-9, atol=1e-10)
    singular = np.ones((2, 2)) + np.diag([0.0, -1e-3])  # rounding may do that
    np.testing.assert_allclose(invert(singular, 2), np.linalg.inv(singular), rtol=1e-9)


def test_spreads_settle_where_plain_rounds_lead_in_fewer(monkeypatch):
    rng = np.random.default_rng(3)
    skill, left = rng.normal(size=60), rng.integers(60, size=600)
    right = (left + rng.integers(1, 60, 600)) % 60
    won = np.where(rng.random(600) < 1 / (1 + np.exp(skill[right] - skill[left])), left, right)
    table = {"left": left, "right": right, "winner": won, "worker": np.arange(600) % 12}
    find_curvature, rounds, scores = likelihood.find_curvature, [0, 0, 0], []
    for n, (most, settled) in enumerate([(0.9, 0.003), (0.0, 0.003), (0.0, 1e-6)]):

        def count(*arguments, n=n):
            rounds[n] += 1
            return find_curvature(*arguments)

        monkeypatch.setattr(likelihood, "find_curvature", count)
        monkeypatch.setattr(likelihood, "MOST_RATIO", most)
        monkeypatch.setattr(likelihood, "SPREADS_SETTLED", settled)
        monkeypatch.setattr(likelihood, "MOST_SPREAD_ROUNDS", 300)
        scores.append(cs.rank(table).result_.score)
    quick, plain, exact = scores
    assert rounds[0] < 0.8 * rounds[1]
    assert np.abs(quick - exact).max() <= max(1.5 * np.abs(plain - exact).max(), 1e-3)


def test_how_many_candidates_go_by_verdicts():
    n = 3000
    table = {"left": np.arange(n), "right": (np.arange(n) + 1) % n, "winner": np.arange(n)}
    with pytest.raises(InputError, match=r"3,000 candidates, and at most 1,000 .* by 3,000 verdicts"):
        cs.rank(table)
