"""Bradley-Terry with judges: likelihood and curvature against slow twins, the fit against evalica, and its use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import consilience as cs
from consilience.rankings import likelihood
from consilience.rankings.bradley_terry import find_parts
from consilience.rankings.likelihood import (
    count_verdicts,
    find_covariance,
    find_curvature,
    find_loss,
    find_odds,
    fit,
    search,
)

# Of scores, ties, discriminations, biases and effects.
SPREADS = np.array([1.3, 2.0, 0.6, 0.4, 0.9])


def small(seed=0, n=60, group=False):
    data = cs.simulate.comparisons(n, n_candidates=4, n_judges=3, per_item=3, seed=seed).comparisons
    if group:
        data = replace(data, group=(data.worker > 0).astype(np.int32), groups=np.array(["f", "g"], object))
    return data


def rank_rows(scores, part):
    """The rank of each score in its row among those of its part, 1 for the highest."""
    same = part[:, None] == part[None, :]
    return 1 + ((scores[:, None, :] > scores[:, :, None]) & same).sum(axis=2)


def somewhere(cells, seed=1):
    vector = cells.mean
    return vector + np.random.default_rng(seed).normal(0, 0.5, len(vector)) * cells.learned


def list_effects(data):
    """The effect of each row by its name, None for those that share none; and its sign."""
    names = [(g, *sorted((a, b)), i) for g, a, b, i in zip(data.group, data.left, data.right, data.item, strict=True)]
    shared = sorted({name for name in names if names.count(name) > 1})
    sign = np.where(data.left < data.right, 1, -1)
    return [shared.index(name) if name in shared else None for name in names], sign


def slow_z(data, vector, row):
    c, m = data.n_candidates, data.n_workers
    judge = c + 1 + data.worker[row]
    z = vector[judge] * (vector[data.left[row]] - vector[data.right[row]]) + vector[judge + m]
    if data.group is not None:
        effects, sign = list_effects(data)
        if effects[row] is not None:
            z += sign[row] * vector[c + 1 + 2 * m + effects[row]]
    return z


def slow_loss(data, cells, vector):
    """The negative log posterior, verdict by verdict."""
    total = 0.0
    for row in range(data.n_comparisons):
        z = slow_z(data, vector, row)
        odds = np.array([np.exp(z / 2), np.exp(-z / 2), np.exp(vector[data.n_candidates])])
        total -= data.weights[row] * np.log(odds[data.verdict[row]] / odds.sum())
    return total + np.sum(((vector - cells.mean) / SPREADS[cells.kind])[cells.learned] ** 2) / 2


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_the_sum_over_verdicts(group, weighted):
    data = small(group=group)
    if weighted:
        data = replace(data, weight=np.random.default_rng(0).uniform(0.2, 3, data.n_comparisons))
    cells = count_verdicts(data, True, True)
    vector = somewhere(cells)
    assert cells.learned[-1] == group
    assert find_loss(cells, vector, SPREADS)[0] == pytest.approx(slow_loss(data, cells, vector), rel=1e-12)


@pytest.mark.parametrize("group", [False, True])
def test_the_gradient_is_that_of_the_loss(group):
    cells = count_verdicts(small(group=group), True, True)
    vector = somewhere(cells)
    slow = approx_fprime(vector, lambda each: find_loss(cells, each, SPREADS)[0], 1e-6)
    assert find_loss(cells, vector, SPREADS)[1] == pytest.approx(slow * cells.learned, abs=1e-3)


def slow_gradients(data, vector, row):
    """The gradients of the log odds of left, right and tie by scores, ties, discriminations and biases."""
    c, m = data.n_candidates, data.n_workers
    by_z = np.zeros(c + 1 + 2 * m)
    judge, left, right = c + 1 + data.worker[row], data.left[row], data.right[row]
    by_z[left], by_z[right] = vector[judge], -vector[judge]
    by_z[judge], by_z[judge + m] = vector[left] - vector[right], 1.0
    z = slow_z(data, vector, row)
    odds = np.array([np.exp(z / 2), np.exp(-z / 2), np.exp(vector[c])])
    return np.stack([by_z / 2, -by_z / 2, np.eye(len(by_z))[c]]), odds / odds.sum()


def slow_curvature(data, cells, vector):
    """The expected curvature as one matrix over scores, ties, discriminations and biases: no blocks, no sharing."""
    n = data.n_candidates + 1 + 2 * data.n_workers
    total = np.diag(SPREADS[cells.kind[:n]] ** -2.0)
    for row in range(data.n_comparisons):
        gradients, p = slow_gradients(data, vector, row)
        off = gradients - p @ gradients
        total += off.T @ np.diag(p) @ off
    return total


def test_the_curvature_is_that_of_all_parameters_together():
    data = small()
    cells = count_verdicts(data, True, True)
    vector = somewhere(cells)
    whole = np.linalg.inv(slow_curvature(data, cells, vector))
    # Given the mean of the discriminations.
    mean = (cells.kind[: len(whole)] == likelihood.DISCRIMINATION) / data.n_workers
    slow = whole - np.outer(whole @ mean, whole @ mean) / (mean @ whole @ mean)
    fast, c = find_curvature(cells, vector, SPREADS), data.n_candidates
    assert fast.inverse[: c + 1, : c + 1] == pytest.approx(slow[: c + 1, : c + 1], rel=1e-8, abs=1e-10)
    assert fast.variance[: len(slow)] == pytest.approx(np.diag(slow), rel=1e-8)
    # Scores as they are reported, with mean 0; also with the K of the curvature, which must give the same.
    centre, middle = np.eye(c) - 1 / c, np.zeros_like(fast.schur)
    middle[:-1, :-1], middle[-1, -1] = fast.schur[:-1, :-1], -fast.schur[-1, -1]
    for given in (None, middle):
        covariance, root = find_covariance(cells, fast, np.zeros(c, int), given)
        assert covariance == pytest.approx(centre @ slow[:c, :c] @ centre, rel=1e-6, abs=1e-9)
        assert root @ root.T == pytest.approx(covariance)


def test_spreads_maximise_the_marginal_likelihood_of_laplace():
    """The fixed point is where log p(verdicts, estimate) - log det(curvature) / 2 is largest, but for what is added."""
    data = cs.simulate.comparisons(3000, n_candidates=40, n_judges=40, coin_tossers=0.0, bias=0.8, seed=2).comparisons
    cells = count_verdicts(data, True, True)
    fitted, fitted_spreads, *_ = fit(cells, 1000, 1e-5)

    def marginal(spreads):
        vector, _, _ = search(cells, fitted, spreads, 1000, 1e-5)
        schur = find_curvature(cells, vector, spreads).schur
        # Of the curvature that is bordered by the mean discrimination, but for the judges' own blocks.
        logdet = np.linalg.slogdet(schur)[1]
        for judge in range(40):
            mine = replace(data.keep(np.flatnonzero(data.worker == judge)), workers=data.workers)
            own = slow_curvature_of_judge(mine, vector, spreads, judge)
            logdet += np.linalg.slogdet(own)[1]
        sizes = np.array([40, 0, 39, 40, 0])
        added = likelihood.ADDED_ENTRIES * (np.log(spreads) + likelihood.USUAL_SPREADS**2 / (2 * spreads**2))
        return -find_loss(cells, vector, spreads)[0] - sizes @ np.log(spreads) - logdet / 2 - added[[0, 2, 3]].sum()

    best = marginal(fitted_spreads)
    for kind in (likelihood.SCORE, likelihood.DISCRIMINATION, likelihood.BIAS):
        for factor in (0.75, 1.33):
            moved = fitted_spreads.copy()
            moved[kind] *= factor
            assert marginal(moved) < best


def slow_curvature_of_judge(data, vector, spreads, judge):
    """The expected curvature by the discrimination and the bias of a judge."""
    c, m = data.n_candidates, 40
    ahead = vector[data.left] - vector[data.right]
    tie, lead, _ = find_odds(vector[c + 1 + judge] * ahead + vector[c + 1 + m + judge], vector[c])
    weight = (1 - tie - lead**2) / 4
    by = np.stack([ahead, np.ones_like(ahead)])
    return (weight * by) @ by.T + np.diag(spreads[[2, 3]] ** -2.0)


def test_equals_evalica_with_one_kind_of_judge():
    import evalica

    arena = cs.simulate.comparisons(4000, n_candidates=15, n_judges=1, coin_tossers=0, bias=0, tie=0, seed=5)
    table = arena.to_frame().to_pydict()
    model = cs.BradleyTerry(position_bias="none", discrimination="equal").fit(table)
    winners = [evalica.Winner.X if side == "left" else evalica.Winner.Y for side in table["winner"]]
    other = evalica.bradley_terry(table["left"], table["right"], winners).scores
    theirs = np.log([other[name] for name in model.candidates_])
    assert np.corrcoef(model.scores_, theirs)[0, 1] > 0.9999
    assert model.scores_ == pytest.approx(theirs - theirs.mean(), rel=0.03, abs=0.02)


# ----------------------------------------------------------------------------------------------------------- symmetries


def scores_of(model):
    return dict(zip(model.candidates_.tolist(), model.scores_.tolist(), strict=True))


def test_names_and_order_of_rows_do_not_matter():
    table = cs.simulate.comparisons(500, seed=4).to_frame().to_pydict()
    before = scores_of(cs.BradleyTerry().fit(table))
    order = np.random.default_rng(0).permutation(500)
    mixed = {name: [values[row] for row in order] for name, values in table.items()}
    assert scores_of(cs.BradleyTerry().fit(mixed)) == pytest.approx(before, abs=1e-5)
    renamed = table | {side: [name[::-1] for name in table[side]] for side in ("left", "right")}
    after = scores_of(cs.BradleyTerry().fit(renamed))
    assert {name[::-1]: score for name, score in after.items()} == pytest.approx(before, abs=1e-5)


def test_sides_that_are_swapped_swap_the_bias():
    table = cs.simulate.comparisons(800, bias=1.0, seed=4).to_frame().to_pydict()
    swapped = table | {
        "left": table["right"],
        "right": table["left"],
        "winner": [{"left": "right", "right": "left"}.get(word, word) for word in table["winner"]],
    }
    before, after = cs.BradleyTerry().fit(table), cs.BradleyTerry().fit(swapped)
    assert after.scores_ == pytest.approx(before.scores_, abs=1e-5)
    assert after.result_.bias == pytest.approx(-before.result_.bias, abs=1e-5)


# ------------------------------------------------------------------------------------------------ what the model is for


def test_a_family_does_not_count_as_many_judges():
    """Ten copies of one judge: in one family they tell hardly more than one, else they seem to tell far more."""
    single = cs.simulate.comparisons(200, n_candidates=4, n_judges=3, coin_tossers=0, bias=0, seed=2).comparisons
    copied = np.repeat(np.flatnonzero(single.worker == 0), 10)
    rows = np.append(np.flatnonzero(single.worker > 0), copied)
    worker = single.worker[rows] + 9
    worker[worker == 9] = np.tile(np.arange(10), len(copied) // 10)
    many = replace(single.keep(rows), worker=worker, workers=np.arange(12))
    family = replace(many, group=np.maximum(worker - 9, 0), groups=np.arange(3))
    once, naive, shared = (find_error(data) for data in (single, many, family))
    assert naive < 0.7 * once
    assert shared > 0.85 * once


def find_error(data):
    """The mean error of the scores by the curvature, without items, relative to the spread of the scores."""
    cells = count_verdicts(data, False, False)
    vector, spreads, *_ = fit(cells, 500, 1e-4)
    covariance, _ = find_covariance(cells, find_curvature(cells, vector, spreads), find_parts(data))
    return np.sqrt(np.diag(covariance)).mean() / vector[: data.n_candidates].std()


def test_parts_that_were_never_compared():
    verdicts = {"left": list("aabxx"), "right": list("bccyy"), "winner": list("aabxy")}
    with pytest.warns(cs.errors.DataWarning, match="2 parts that were never compared"):
        model = cs.rank(verdicts)
    table = model.ranking_.to_pydict()
    assert table["candidate"][:3] == ["a", "b", "c"]
    assert table["part"] == [1, 1, 1, 2, 2]
    assert table["rank"][:3] == [1, 2, 3]
    assert table["rank"][3:] == [1, 2]
    assert sum(table["score"][:3]) == pytest.approx(0)
    with pytest.raises(cs.errors.ParameterError, match="'a' and 'x' were never compared"):
        model.win_probability("a", "x")
    assert np.isnan(model.win_matrix()["x"].to_numpy()[:3]).all()
    first = model.next_comparisons(1).to_pylist()[0]
    assert (first["left"] in "abc") != (first["right"] in "abc")


def test_extreme_data_give_finite_results():
    one = cs.rank({"left": ["a"], "right": ["b"], "winner": ["a"]})
    assert one.ranking_["candidate"].to_pylist() == ["a", "b"]
    assert not one.win_probability("a", "b").told_apart
    with pytest.warns(cs.errors.DataWarning, match="All verdicts are ties"):
        ties = cs.rank({"left": ["a", "b"], "right": ["b", "c"], "winner": ["tie", "tie"]})
    assert ties.scores_ == pytest.approx(0)
    always = cs.rank({"left": ["a"] * 5000, "right": ["b"] * 5000, "winner": ["a"] * 5000, "worker": ["x", "y"] * 2500})
    assert np.isfinite(always.scores_).all()


# ------------------------------------------------------------------------------------------------------------- the bars


@pytest.mark.robust
def test_intervals_cover_the_truth():
    covered, ranked = [], []
    for seed in range(25):
        arena = cs.simulate.comparisons(1500, seed=seed)
        found = cs.BradleyTerry().fit(replace(arena.comparisons, item=None)).result_
        truth = (arena.scores - arena.scores.mean()) * arena.discrimination.mean()
        covered.append(np.abs(found.score - truth) <= 1.96 * found.error)
        rank = rank_rows(arena.scores[None], found.part)[0]
        ranked.append((found.rank_low <= rank) & (rank <= found.rank_high))
    assert 0.9 <= np.mean(covered) <= 0.98
    assert np.mean(ranked) >= 0.9
