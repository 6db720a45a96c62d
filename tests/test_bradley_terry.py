"""Bradley-Terry with judges: likelihood and curvature against slow twins, the fit against evalica, and its use."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array
from scipy.stats import kendalltau

import consilience as cs
from consilience.inference import bradley_terry as bt
from consilience.inference.score_covariance import find_gradients, find_ranks, rank_rows, scale_scores, sum_squares
from consilience.inference.verdict_counts import choose_judged, count_verdicts, find_effects, find_parts, join_codes


def count(data, *, by_item=False, discrimination=True, bias=True, n_known=0):
    judged = choose_judged(data.n_workers - n_known, n_known, discrimination, bias)
    return count_verdicts(data, judged, by_item=by_item)[0]


def small(seed=0, n=60, group=False):
    data = cs.simulate.comparisons(n, n_candidates=4, n_judges=3, per_item=3, seed=seed).comparisons
    if group:
        data = replace(data, group=(data.worker > 0).astype(np.int32), groups=np.array(["f", "g"], object))
    return data


def somewhere(cells, seed=1):
    rng = np.random.default_rng(seed)
    at = bt.start(cells)
    vector = at.to_vector() + rng.normal(0, 0.5, len(at.to_vector()))
    return at.with_vector(vector)


SPREADS = bt.Spreads(1.3, 0.6, 0.4, 0.9)


def slow_loss(data, at, spreads):
    """The negative log posterior, verdict by verdict."""
    effects = find_effects(data)
    total = 0.0
    for row in range(data.n_comparisons):
        m, left, right = data.worker[row], data.left[row], data.right[row]
        z = at.discrimination[m] * (at.score[left] - at.score[right]) + at.bias[m]
        if effects is not None and effects[0][row] >= 0:
            z += effects[1][row] * at.effect[effects[0][row]]
        odds = np.array([np.exp(z / 2), np.exp(-z / 2), np.exp(at.log_tie)])
        total -= data.weights[row] * np.log(odds[data.verdict[row]] / odds.sum())
    total += np.sum(at.score**2) / (2 * spreads.score**2) + np.sum(at.bias**2) / (2 * spreads.bias**2)
    total += np.sum((at.discrimination - 1) ** 2) / (2 * spreads.discrimination**2)
    return total + np.sum(at.effect**2) / (2 * spreads.effect**2) + at.log_tie**2 / (2 * bt.TIE_SPREAD**2)


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_the_sum_over_verdicts(group, weighted):
    data = small(group=group)
    if weighted:
        data = replace(data, weight=np.random.default_rng(0).uniform(0.2, 3, data.n_comparisons))
    cells = count(data)
    at = somewhere(cells)
    assert bt.find_loss(cells, at, SPREADS)[0] == pytest.approx(slow_loss(data, at, SPREADS), rel=1e-12)


@pytest.mark.parametrize("group", [False, True])
def test_the_gradient_is_that_of_the_loss(group):
    cells = count(small(group=group))
    at = somewhere(cells)

    def loss(vector):
        return bt.find_loss(cells, at.with_vector(vector), SPREADS)[0]

    found = bt.find_loss(cells, at, SPREADS)[1]
    assert found == pytest.approx(approx_fprime(at.to_vector(), loss, 1e-6), abs=1e-3)


def slow_curvature(data, at, spreads):
    """The expected curvature as one matrix over scores, ties, discriminations and biases: no blocks, no sharing."""
    c, m = data.n_candidates, data.n_workers
    total = np.zeros((c + 1 + 2 * m, c + 1 + 2 * m))
    for row in range(data.n_comparisons):
        judge, left, right = data.worker[row], data.left[row], data.right[row]
        ahead = at.score[left] - at.score[right]
        z = at.discrimination[judge] * ahead + at.bias[judge]
        odds = np.array([np.exp(z / 2), np.exp(-z / 2), np.exp(at.log_tie)])
        p = odds / odds.sum()
        by_z = np.zeros(len(total))
        by_z[left], by_z[right] = at.discrimination[judge], -at.discrimination[judge]
        by_z[c + 1 + judge], by_z[c + 1 + m + judge] = ahead, 1.0
        by_tie = np.eye(len(total))[c]
        gradients = np.stack([by_z / 2, -by_z / 2, by_tie])  # of the log odds of each verdict
        mean = p @ gradients
        total += (gradients - mean).T @ np.diag(p) @ (gradients - mean)
    prior = [spreads.score**-2] * c + [bt.TIE_SPREAD**-2] + [spreads.discrimination**-2] * m + [spreads.bias**-2] * m
    return total + np.diag(prior)


def test_the_curvature_is_that_of_all_parameters_together():
    data = small()
    cells = count(data)
    at = somewhere(cells)
    whole = np.linalg.inv(slow_curvature(data, at, SPREADS))
    # Given the mean of the discriminations.
    mean = np.zeros(len(whole))
    mean[data.n_candidates + 1 :][: data.n_workers] = 1 / data.n_workers
    slow = whole - np.outer(whole @ mean, whole @ mean) / (mean @ whole @ mean)
    fast = bt.invert(bt.find_curvature(cells, at, SPREADS))
    c, m = data.n_candidates, data.n_workers
    assert fast.scores == pytest.approx(slow[: c + 1, : c + 1], rel=1e-8, abs=1e-10)
    assert fast.judges.T.ravel() == pytest.approx(np.diag(slow)[c + 1 :], rel=1e-8)
    # Scores as they are reported, with mean 0; also with the K of the curvature, which must give the same.
    centre, middle = np.eye(c) - 1 / c, np.zeros((c + 2, c + 2))
    middle[:-1, :-1], middle[-1, -1] = np.linalg.inv(fast.free), fast.mean.to_mean[:m].mean()
    for given in (None, middle):
        scaled = scale_scores(at, fast, np.zeros(c, int), given)
        assert scaled.covariance == pytest.approx(centre @ slow[:c, :c] @ centre, rel=1e-6, abs=1e-9)


def slow_gradient(data, at):
    """The gradient of the negative log likelihood of all verdicts by scores, ties, discriminations and biases."""
    c, m = data.n_candidates, data.n_workers
    total = np.zeros(c + 1 + 2 * m)
    for row in range(data.n_comparisons):
        judge, left, right = data.worker[row], data.left[row], data.right[row]
        ahead = at.score[left] - at.score[right]
        z = at.discrimination[judge] * ahead + at.bias[judge]
        odds = np.array([np.exp(z / 2), np.exp(-z / 2), np.exp(at.log_tie)])
        p = odds / odds.sum()
        slope = (p[0] - p[1]) / 2 - {0: 0.5, 1: -0.5, 2: 0.0}[int(data.verdict[row])]
        total[left] += slope * at.discrimination[judge]
        total[right] -= slope * at.discrimination[judge]
        total[c] += p[2] - (data.verdict[row] == 2)
        total[c + 1 + judge] += slope * ahead
        total[c + 1 + m + judge] += slope
    return total


def test_the_sum_over_items_is_that_of_their_gradients():
    data = small()
    cells, item = count_verdicts(data, choose_judged(3, 0, True, True), by_item=True)
    at = somewhere(cells)
    found, whole = bt.find_curvature(count(data), at, SPREADS), slow_curvature(data, at, SPREADS)
    c, m = data.n_candidates, data.n_workers
    judges = np.linalg.inv(whole[c + 1 :, c + 1 :])
    explained, to_mean = whole[: c + 1, c + 1 :] @ judges, judges[:, :m].mean(axis=1)
    slow = np.zeros((c + 2, c + 2))
    for number in range(data.n_items):
        by = slow_gradient(data.keep(np.flatnonzero(data.item == number)), at)
        both = np.append(by[: c + 1] - explained @ by[c + 1 :], to_mean @ by[c + 1 :])
        slow += np.outer(both, both)
    by_judges = found.spread_judges()
    fast = sum_squares(*find_gradients(cells, item, at), csr_array(found.cross @ by_judges), to_mean)
    assert fast == pytest.approx(slow, rel=1e-8, abs=1e-10)


def test_the_search_ends_at_a_maximum():
    cells = count(cs.simulate.comparisons(400, seed=3).comparisons)
    found = bt.maximise(cells, SPREADS, bt.start(cells), 1000, 1e-5)
    best = bt.find_loss(cells, found.at, SPREADS)[0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = found.at.with_vector(found.at.to_vector() + rng.normal(0, 0.01, len(found.at.to_vector())))
        assert bt.find_loss(cells, moved, SPREADS)[0] > best
    assert found.converged


def test_spreads_maximise_the_marginal_likelihood_of_laplace():
    """The fixed point is where log p(verdicts, estimate) - log det(curvature) / 2 is largest, but for what is added."""
    cells = count(
        cs.simulate.comparisons(3000, n_candidates=40, n_judges=40, coin_tossers=0.0, bias=0.8, seed=2).comparisons
    )
    fitted = bt.fit(cells, 1000, 1e-5)

    def marginal(spreads):
        at = bt.maximise(cells, spreads, fitted.at, 1000, 1e-5).at
        found = bt.find_curvature(cells, at, spreads)
        schur = found.inner - (found.cross @ found.spread_judges() @ found.cross.T).toarray()
        logdet = np.linalg.slogdet(schur)[1] - np.sum(np.log(np.linalg.det(found.judges)))
        logdet += np.log(bt.invert(found).mean.variance)  # given the mean discrimination
        sizes = (cells.n_candidates, cells.n_judges - 1, cells.n_judges)
        logs = sum(n * np.log(spread) for n, spread in zip(sizes, spreads, strict=False))
        added = sum(
            bt.ADDED * (np.log(spread) + usual**2 / (2 * spread**2))
            for spread, usual in zip(spreads[:3], bt.USUAL, strict=False)
        )
        return -bt.find_loss(cells, at, spreads)[0] - logs - logdet / 2 - added

    best = marginal(fitted.spreads)
    for name in ("score", "discrimination", "bias"):
        for factor in (0.75, 1.33):
            assert marginal(fitted.spreads._replace(**{name: factor * getattr(fitted.spreads, name)})) < best


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


def test_two_candidates_and_one_judge():
    """With one score to find, s_a = -s_b, the maximum solves one equation."""
    verdicts = {"left": ["a"] * 30, "right": ["b"] * 30, "winner": ["a"] * 20 + ["b"] * 10}
    model = cs.BradleyTerry(position_bias="none", tol=1e-7).fit(verdicts)
    spread = model.found_.spreads[0]
    lead = float(model.scores_[0] - model.scores_[1])
    # The derivative: 20 (1 - p) - 10 p = lead / (2 spread^2), of which the prior's part is that of both scores.
    p = 1 / (1 + np.exp(-lead))
    assert 20 * (1 - p) - 10 * p == pytest.approx(lead / (2 * spread**2), abs=1e-4)
    assert float(model.win_probability("a", "b")) == pytest.approx(p, abs=1e-9)


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
    assert after.found_.judges.bias == pytest.approx(-before.found_.judges.bias, abs=1e-5)


def test_weights_count_like_rows():
    data = cs.simulate.comparisons(200, n_candidates=5, seed=1).comparisons
    times = np.random.default_rng(0).integers(1, 4, 200)
    many = replace(data.keep(np.repeat(np.arange(200), times)), item=None)
    weighed = replace(data, weight=times.astype(float), item=None)
    one, other = cs.BradleyTerry().fit(many), cs.BradleyTerry().fit(weighed)
    assert other.scores_ == pytest.approx(one.scores_, abs=1e-6)
    assert other.ranking_["comparisons"].to_pylist() == one.ranking_["comparisons"].to_pylist()


def test_the_same_input_gives_the_same_bits():
    data = cs.simulate.comparisons(500, seed=4).comparisons
    one, other = (cs.BradleyTerry().fit(data).ranking_ for _ in range(2))
    assert one == other


# ------------------------------------------------------------------------------------------------ what the model is for


def test_judges_are_weighed():
    arena = cs.simulate.comparisons(3000, coin_tossers=0.4, bias=0.8, seed=6)
    model = cs.rank(arena.comparisons)
    judges = model.found_.judges
    assert kendalltau(model.scores_, arena.scores)[0] > 0.9
    assert np.corrcoef(judges.discrimination, arena.discrimination)[0, 1] > 0.95
    assert np.corrcoef(judges.bias, arena.position_bias)[0, 1] > 0.9
    assert judges.discrimination.mean() == pytest.approx(1)
    plain = cs.BradleyTerry(discrimination="equal", position_bias="none").fit(arena.comparisons)
    assert kendalltau(model.scores_, arena.scores)[0] >= kendalltau(plain.scores_, arena.scores)[0]


def test_many_candidates_do_not_shrink_to_nothing():
    """Scores times a factor and discriminations divided by it would fit as well: the mean discrimination is 1."""
    arena = cs.simulate.comparisons(6000, n_candidates=300, n_judges=40, seed=3)
    found = cs.BradleyTerry(n_draws=10).fit(replace(arena.comparisons, item=None)).found_
    assert found.judges.discrimination.mean() == pytest.approx(1)
    truth = (arena.scores - arena.scores.mean()) * arena.discrimination.mean()
    assert np.polyfit(found.score, truth, 1)[0] == pytest.approx(1, abs=0.15)
    assert np.corrcoef(found.judges.discrimination, arena.discrimination)[0, 1] > 0.93
    assert np.mean(np.abs(found.score - truth) <= 1.96 * found.error) > 0.88


def test_a_contrarian_counts_the_other_way_round():
    table = cs.simulate.comparisons(2000, n_judges=8, coin_tossers=0, bias=0, seed=1).to_frame().to_pydict()
    opposite = {"left": "right", "right": "left", "tie": "tie"}
    table["winner"] = [
        opposite[word] if who == "j01" else word for who, word in zip(table["worker"], table["winner"], strict=True)
    ]
    with pytest.warns(cs.errors.DataWarning, match="1 judge prefers the worse candidate: j01"):
        model = cs.rank(table)
    report = model.judge_report().to_pylist()
    row = next(row for row in report if row["worker"] == "j01")
    assert row["discrimination_high"] < 0
    assert row["remarks"] == "contrarian"
    assert row["agreement"] < 0.4


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
    """Return the mean error of the scores by the curvature, without items, relative to the spread of the scores."""
    cells = count(data, discrimination=False, bias=False)
    found = bt.fit(cells, 500, 1e-4)
    curvature = bt.find_curvature(cells, found.at, found.spreads)
    scaled = scale_scores(found.at, bt.invert(curvature), find_parts(data), None)
    return np.sqrt(np.diag(scaled.covariance)).mean() / scaled.score.std()


@pytest.mark.robust
def test_families_make_scores_better_and_intervals_honest():
    """Ten prompts of each of four models share what they think of a pair and item."""
    near, far, covered = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        scores, judges, n = rng.normal(size=8), np.arange(40), 100
        pairs = np.array([rng.choice(8, 2, replace=False) for _ in range(n)])
        shared = rng.normal(0, 1.2, (n, 4))
        item, judge = np.repeat(np.arange(n), 40), np.tile(judges, n)
        z = scores[pairs[item, 0]] - scores[pairs[item, 1]] + shared[item, judge // 10]
        odds = bt.find_odds(z, np.log(0.3))
        drawn = rng.random(len(z))
        winner = np.where(
            drawn < (1 - odds.tie + odds.lead) / 2, "left", np.where(drawn < 1 - odds.tie, "right", "tie")
        )
        table = {"item": item, "worker": judge, "left": pairs[item, 0], "right": pairs[item, 1], "winner": winner}
        family, plain = cs.rank(table | {"family": judge // 10}, group="family").found_, cs.rank(table).found_
        truth = (scores - scores.mean())[family.candidates]
        near.append(np.abs(family.score - truth).mean())
        far.append(np.abs(plain.score - truth).mean())
        covered.append(np.abs(family.score - truth) <= 1.96 * family.error)
    assert np.mean(near) < np.mean(far)
    assert np.mean(covered) > 0.85


def test_verdicts_on_one_item_hang_together():
    """Each item was judged four times with the same verdict: intervals are twice as wide as without items."""
    data = cs.simulate.comparisons(1000, n_candidates=5, n_judges=6, coin_tossers=0, bias=0, seed=2).comparisons
    many = data.keep(np.repeat(np.arange(1000), 4))
    fours = cs.BradleyTerry(discrimination="equal").fit(many).found_.error
    blind = cs.BradleyTerry(discrimination="equal").fit(replace(many, item=None)).found_.error
    once = cs.BradleyTerry(discrimination="equal").fit(data).found_.error
    assert fours / blind == pytest.approx(2, rel=0.1)
    assert fours / once == pytest.approx(1, rel=0.1)


def test_known_verdicts_decide():
    verdicts = {"left": ["a"] * 12 + ["b"] * 12, "right": ["b"] * 12 + ["c"] * 12, "winner": ["a"] * 7 + ["b"] * 17}
    before = cs.rank(verdicts).win_probability("a", "b")
    after = cs.rank(verdicts, gold={("b", "a"): "b"}).win_probability("a", "b")
    assert before > 0.5 or not before.told_apart
    assert after < before
    table = {"left": ["b"], "right": ["a"], "winner": ["left"]}
    assert cs.rank(verdicts, gold=table).win_probability("a", "b") == after
    assert "" not in cs.rank(verdicts | {"worker": ["x", "y"] * 12}, gold=table).judge_report()["worker"].to_pylist()


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


def test_ranks_and_their_intervals():
    assert rank_rows(np.array([[1.0, 3.0, 2.0]])).tolist() == [[3, 1, 2]]
    model = cs.rank(cs.simulate.comparisons(1500, seed=8).comparisons)
    found = model.found_
    assert (found.rank_low <= found.rank).all()
    assert (found.rank <= found.rank_high).all()
    assert found.rank[found.order].tolist() == list(range(1, 13))


@pytest.mark.parametrize(("codes", "expected"), [([[3, 1, 3], [0, 0, 1]], [1, 0, 2]), ([[5, 5], [2, 2]], [0, 0])])
def test_codes_are_joined(codes, expected):
    assert join_codes([np.array(each) for each in codes]).tolist() == expected


def test_parts_are_numbered_by_size():
    data = cs.Comparisons.from_frame({"left": list("abxy"), "right": list("bayz"), "winner": list("abxy")})
    assert find_parts(data).tolist() == [1, 1, 0, 0, 0]


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
        found = cs.BradleyTerry().fit(replace(arena.comparisons, item=None)).found_
        truth = (arena.scores - arena.scores.mean()) * arena.discrimination.mean()
        covered.append(np.abs(found.score - truth) <= 1.96 * found.error)
        rank = rank_rows(arena.scores[None])[0]
        ranked.append((found.rank_low <= rank) & (rank <= found.rank_high))
    assert 0.9 <= np.mean(covered) <= 0.98
    assert np.mean(ranked) >= 0.9


def test_draws_are_those_of_the_covariance():
    data = cs.simulate.comparisons(300, seed=8).comparisons
    cells = count(data)
    fitted = bt.fit(cells, 500, 1e-4)
    part = find_parts(data)
    inverse = bt.invert(bt.find_curvature(cells, fitted.at, fitted.spreads))
    scaled = scale_scores(fitted.at, inverse, part, None)
    few, many = find_ranks(scaled, part, 1, 0), find_ranks(scaled, part, 4000, 0)
    assert np.mean(many.high - many.low) > np.mean(few.high - few.low)
    rng = np.random.default_rng(1)
    drawn = rng.multivariate_normal(scaled.score, scaled.covariance, 4000)
    assert np.quantile(rank_rows(drawn), 0.975, axis=0) == pytest.approx(many.high, abs=1)


def test_the_library_is_silent_about_what_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.rank(cs.simulate.comparisons(3000, coin_tossers=0, seed=3).comparisons)
