"""Estimates by a sample of known labels: the same as a slow twin, and intervals that hold."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.stats import t as student

import consilience as cs
from command_line import run
from consilience.errors import InputError
from consilience.estimation.difference import BORROWED, PSEUDO, estimate_means


@pytest.fixture(scope="module")
def fused():
    crowd = cs.simulate.independent(600, n_workers=5, n_classes=3, accuracy=(0.5, 0.7), hard=0.1, seed=3)
    return crowd, cs.DawidSkene().fit(crowd.responses)


@pytest.fixture(scope="module")
def known(fused):
    crowd, model = fused
    return {item: int(crowd.truth[item]) for item in model.draw_items(80)["item"].to_pylist()}


def draw_crowd(seed, n=400, n_groups=3):
    """Return truths, predictions with shared errors, groups, and what items of several groups share."""
    rng = np.random.default_rng(seed)
    group, pair = np.arange(n) % n_groups, np.arange(n) // n_groups
    truth = (rng.random(n) < 1 / (1 + np.exp(-rng.normal(0, 1, n_groups)[group] - rng.normal(0, 1, n)[pair]))) * 1.0
    score = (2 * truth - 1) * 1.5 + rng.normal(0, 1, n)[pair] + rng.normal(0, 0.7, n_groups)[group]
    return truth, 1 / (1 + np.exp(-score - rng.normal(0, 1, n))), group, pair


# ---------------------------------------------------------------------------------------------------------- the twin


def mean_known(values, weight, rows):
    return sum(weight[i] * values[i] for i in rows) / sum(weight[i] for i in rows)


def estimate_slowly(truth, rows, predicted, group, inclusion, cluster, is_share, power=None):
    """Return estimate, variance and degrees of freedom of each group, item by item, by the formulas of the module."""
    groups = sorted(set(group))
    sample = {g: [i for i in range(len(rows)) if group[rows[i]] == g] for g in groups}
    n_items = {g: sum(each == g for each in group) for g in groups}
    pi = [len(sample[group[r]]) / n_items[group[r]] if inclusion is None else inclusion[i] for i, r in enumerate(rows)]
    weight = [1 / each for each in pi]

    def centre(values):
        means = {g: sum(weight[i] * values[i] for i in s) / sum(weight[i] for i in s) for g, s in sample.items()}
        return [value - means[group[r]] for value, r in zip(values, rows, strict=True)]

    if power is None:
        f, p = centre(truth), centre([predicted[r] for r in rows])
        left = [(1 - pi[i]) * weight[i] ** 2 for i in range(len(rows))]
        cov = sum(left[i] * f[i] * p[i] for i in range(len(rows)))
        power = min(max(cov / sum(left[i] * p[i] ** 2 for i in range(len(rows))), 0), 1.5)
    found, squares, freedom, factor = {}, {}, {}, {}
    pseudo = PSEUDO / len(groups)
    apart = [(weight[i], truth[i] - mean_known(truth, weight, sample[group[r]])) for i, r in enumerate(rows)]
    spread = (sum(w * gap**2 for w, gap in apart) / sum(weight)) ** 0.5
    for g, s in sample.items():
        mean = sum(predicted[i] for i in range(len(predicted)) if group[i] == g) / n_items[g]
        total = sum(weight[i] for i in s)
        units = {}
        for i in s:
            units.setdefault(cluster[rows[i]], []).append(i)
        size = len(s) / len(units)
        even = total**2 / sum(weight[i] ** 2 for i in s) / size
        loose = sum((1 - pi[i]) * weight[i] ** 2 for i in s)
        shift = pseudo * loose / sum(weight[i] ** 2 for i in s) if is_share else 0
        centre_g = sum(weight[i] * (truth[i] - power * predicted[rows[i]]) for i in s) / total
        ends = [1 - power * mean, -power * mean] * 2 if is_share else [centre_g + spread, centre_g - spread] * 2
        value = (even * centre_g + shift * sum(ends)) / (even + 4 * shift)
        sums = [
            sum((1 - pi[i]) ** 0.5 * weight[i] * (truth[i] - power * predicted[rows[i]] - value) for i in unit)
            for unit in units.values()
        ]
        squares[g] = sum(each**2 for each in sums) * len(units) / loose
        squares[g] += pseudo * size * sum((end - value) ** 2 for end in ends)
        freedom[g] = len(units) - 1 + 4 * pseudo
        factor[g] = loose / total**2 * even / (even + 4 * shift)
        found[g] = power * mean + value, len(units) - 1
    pooled = sum(squares.values()) / sum(freedom.values())
    borrowed = BORROWED if len(groups) > 1 else 0
    return [
        (found[g][0], factor[g] * (squares[g] + borrowed * pooled) / (freedom[g] + borrowed), found[g][1] + borrowed)
        for g in groups
    ]


@pytest.mark.parametrize("is_share", [True, False])
@pytest.mark.parametrize("unequal", [True, False])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n_groups", [1, 3])
def test_the_estimate_is_that_of_a_slow_twin(is_share, unequal, paired, n_groups):
    truth, predicted, group, pair = draw_crowd(1, 120, n_groups)
    rng = np.random.default_rng(2)
    rows = rng.choice(120, 40, replace=False)
    inclusion = rng.uniform(0.2, 0.9, 40) if unequal else None
    cluster = pair // 2 if paired else np.arange(120)
    values = truth[rows] if is_share else truth[rows] * 3 + rng.normal(0, 1, 40)
    for power in (None, 0.0, 0.7):
        means = estimate_means(values, rows, predicted, group, inclusion, cluster, is_share, power)
        slow = estimate_slowly(values, rows, predicted, group, inclusion, cluster, is_share, power)
        assert np.allclose(np.stack([means.value, means.variance, means.freedom], axis=1), slow, rtol=1e-9, atol=1e-12)


def test_it_is_the_estimate_of_prediction_powered_inference():
    """As ppi-python has it for a mean at a given power, of so many items that predictions for all have no variance.

    Its point estimate is power * mean(predicted) + mean(known - power * guess), and its rectifier has the variance
    var(known - power * guess) / n; this divides by n - 1, and adds four residuals of weight 1/3.
    """
    truth, predicted, *_ = draw_crowd(3, 200_000, 1)
    rows = np.random.default_rng(4).choice(200_000, 150, replace=False)
    for power in (0.4, 1.0):
        means = estimate_means(truth[rows] * 2.5, rows, predicted, is_share=False, power=power)
        residual = truth[rows] * 2.5 - power * predicted[rows]
        assert abs(means.value[0] - (power * predicted.mean() + residual.mean())) < 1e-9
        squares = 150 * residual.var() + 4 * PSEUDO * (truth[rows] * 2.5).var()
        assert abs(means.variance[0] - squares / (149 + 4 * PSEUDO) / 150 * (1 - 150 / 200_000)) < 1e-9


def test_the_power_makes_the_variance_least():
    truth, predicted, *_ = draw_crowd(5)
    rows = np.arange(60)
    best = estimate_means(truth[rows], rows, predicted, is_share=False)
    assert 0 < best.power < 1.5
    for power in (0.9 * best.power, 1.1 * best.power):
        assert estimate_means(truth[rows], rows, predicted, is_share=False, power=power).variance > best.variance


def test_the_difference_of_pairs_is_that_of_their_differences():
    """But for what groups borrow from each other, as for a single mean of differences."""
    rng = np.random.default_rng(6)
    n = 4000
    pair, group = np.arange(n) // 2, np.arange(n) % 2
    predicted = rng.random(n)
    truth = predicted + rng.normal(0, 1, n // 2)[pair] + rng.normal(0, 0.3, n) + 0.5 * group
    drawn = rng.choice(n // 2, 600, replace=False)
    rows = np.concatenate([2 * drawn, 2 * drawn + 1])
    means = estimate_means(truth[rows], rows, predicted, group, cluster=pair, is_share=False, power=1.0)
    value, low, high = means.compare(1, 0)
    gap = (truth - predicted)[2 * drawn + 1] - (truth - predicted)[2 * drawn]
    error = np.sqrt(gap.var(ddof=1) / 600 * (1 - 600 / 2000))
    assert abs(value - (gap.mean() + predicted[1::2].mean() - predicted[::2].mean())) < 1e-9
    assert (high - low) / 2 == pytest.approx(student.ppf(0.975, 600) * error, rel=0.05)
    alone = estimate_means(truth[rows], rows, predicted, group, is_share=False, power=1.0).compare(1, 0)
    assert high - low < 0.5 * (alone[2] - alone[1])


@pytest.mark.parametrize(("n", "n_draws"), [(30, 300), (100, 300)])
def test_intervals_hold_where_errors_are_shared(n, n_draws):
    """Of a share, of groups, and of differences: in 91 to 99 % of samples, which is 95 % but for chance."""
    rng, held = np.random.default_rng(n), []
    for seed in range(n_draws):
        truth, predicted, group, pair = draw_crowd(seed, 600, 2)
        rows = rng.choice(600, n, replace=False)
        true = [truth.mean(), truth[group == 0].mean(), truth[group == 0].mean() - truth[group == 1].mean()]
        whole = estimate_means(truth[rows], rows, predicted)
        by_group = estimate_means(truth[rows], rows, predicted, group, cluster=pair)
        ends = [[each[0] for each in means.find_intervals()[1:]] for means in (whole, by_group)]
        ends.append(by_group.compare(0, 1)[1:])
        held.append([low <= value <= high for value, (low, high) in zip(true, ends, strict=True)])
        assert seed > 3 or whole.variance < estimate_means(truth[rows], rows, predicted, power=0.0).variance
    assert (np.mean(held, axis=0) > 0.91).all()
    assert (np.mean(held, axis=0) < 0.99).all()


def test_unequal_chances_are_taken_out():
    """Where all were as likely it changes nothing, and where they were not, the mean is right without predictions."""
    truth, predicted, *_ = draw_crowd(8, 2000, 1)
    rng = np.random.default_rng(1)
    rows = rng.choice(2000, 100, replace=False)
    equal = estimate_means(truth[rows], rows, predicted, inclusion=np.full(100, 0.05))
    plain = estimate_means(truth[rows], rows, predicted)
    assert np.allclose([equal.value, equal.variance], [plain.value, plain.variance])
    found = []
    for _ in range(200):
        chance = np.where(truth > 0, 0.02, 0.08)
        rows = np.flatnonzero(rng.random(2000) < chance)
        found.append(estimate_means(truth[rows], rows, predicted, inclusion=chance[rows], power=0.0).value[0])
    assert np.mean(found) == pytest.approx(truth.mean(), abs=0.02)


# ------------------------------------------------------------------------------------------------------ fits and tables


def test_a_fit_and_its_table_say_the_same(fused, known):
    _, model = fused
    groups = {item: "ab"[item % 2] for item in range(600)}
    by_fit = model.estimate(known, by=groups, pairs={item: item // 2 for item in range(600)})
    table = model.to_frame().append_column("half", pa.array([groups[item] for item in range(600)]))
    table = table.append_column("two", pa.array([item // 2 for item in range(600)]))
    shuffled = table.take(np.random.default_rng(0).permutation(600))
    by_table = cs.estimate(shuffled, known, by="half", pairs="two")
    assert by_fit.n_known == 80
    for left, right in ((by_fit.rows, by_table.rows), (by_fit.differences_rows, by_table.differences_rows)):
        keys = [(str(row["of"]), row["group"]) for row in left]
        other = {(str(row["of"]), row["group"]): row for row in right}
        for key, row in zip(keys, left, strict=True):
            for name in set(row) - {"of", "group", "other", "difference", "low", "high"}:
                assert row[name] == pytest.approx(other[key][name])
    assert by_fit.table.column_names[:5] == ["group", "of", "estimate", "low", "high"]
    assert json.loads(json.dumps(by_fit.to_dict()))["known"] == 80
    assert "Intervals hold" in repr(by_fit)
    assert "<table" in by_fit._repr_html_()


def test_known_labels_of_the_fit_are_not_seen_by_what_judges_them(fused, known):
    """The estimate of a fit that was given the labels is nearly that of one that was not, and not its own labels."""
    crowd, model = fused
    for again in (cs.DawidSkene().fit(crowd.responses, gold=known), cs.MajorityVote().fit(crowd.responses, gold=known)):
        plain = (model if again.get_params().get("max_iter") else cs.MajorityVote().fit(crowd.responses)).estimate(
            known
        )
        for row, other in zip(again.estimate().rows, plain.rows, strict=True):
            assert row["estimate"] == pytest.approx(other["estimate"], abs=0.02)
            assert row["worth"] == pytest.approx(other["worth"], rel=0.15)
    blind = cs.DawidSkene(calibration="none").fit(crowd.responses, gold=known)
    with pytest.raises(InputError, match="saw the known labels"):
        blind.estimate()


def test_a_table_that_was_given_the_known_labels_has_no_estimate(fused, known):
    crowd, model = fused
    table = cs.DawidSkene().fit(crowd.responses, gold=known).to_frame()
    for each in (table, table.drop_columns("decided_by")):
        with pytest.raises(InputError, match="was fused with the known labels of 80 of these 80 items"):
            cs.estimate(each, known)
    judged = cs.evaluate(table, dict(enumerate(crowd.truth.tolist())))
    assert judged.n_unknown == 520
    assert judged.accuracy_unknown < judged.accuracy
    with pytest.warns(cs.errors.DataWarning, match="were given to the fit"):
        cs.evaluate(table.drop_columns("decided_by"), known)
    numbers = {"item": range(200), "value": np.arange(200.0) / 7, "low": np.arange(200.0) / 7}
    with pytest.raises(InputError, match="Fuse without the known values"):
        cs.estimate(
            numbers | {"high": np.arange(200) / 7 + (np.arange(200) >= 20)},
            {"item": range(20), "value": np.arange(20) / 7},
        )
    assert all(row["worth"] <= 600 for row in model.estimate(known).rows)
    yes = np.random.default_rng(0).random(200) < 0.5
    good = {"item": range(200), "p(no)": np.where(yes, 0.02, 0.98), "p(yes)": np.where(yes, 0.98, 0.02)}
    (row, *_) = cs.estimate(good, dict(enumerate(np.where(yes, "yes", "no")[:60].tolist()))).rows
    assert row["worth"] == 200


def test_what_is_said_of_labels_that_cannot_be_used_can_be_done():
    known = {n: "yes" if n % 2 else "no" for n in range(20)}
    table = {"item": range(40), "p(yes)": [0.5] * 40, "p(maybe)": [0.5] * 40}
    with pytest.raises(InputError, match=r"has no probability: 'no'. Add columns such as p\(no\)"):
        cs.estimate(table, known)
    rows = {"item": np.repeat(range(40), 3), "worker": np.tile(list("abc"), 40), "label": ["yes"] * 119 + ["no"]}
    model = cs.DawidSkene().fit(cs.Answers.from_frame(rows))
    with pytest.raises(InputError, match="differ in case"):
        model.estimate({n: label.upper() for n, label in known.items()})
    with pytest.raises(InputError, match="--classes no,yes,odd"):
        model.estimate(known | {0: "odd"})
    rng = np.random.default_rng(0)
    marks = {"essay": np.repeat(range(60), 3), "grader": np.tile(list("abc"), 60), "mark": rng.normal(50, 9, 180)}
    graded = cs.fuse(marks, item="essay", kind="numbers")
    assert graded.estimate(pa.table({"essay": np.arange(20), "label": rng.normal(50, 9, 20)})).n_known == 20
    assert graded.estimate({"item": np.arange(20), "label": rng.normal(50, 9, 20)}).n_known == 20
    two = {"item": range(40), "label": [n % 2 for n in range(40)]}
    assert [row["of"] for row in cs.estimate(two, {n: (n + n // 9) % 2 for n in range(20)}).rows] == [0, 1]
    pairs = {"item": ["1|a", "1|b"], "prompt": [1, 1], "system": ["a", "b"], "label": ["x", "y"]}
    known_pairs = {"prompt": [1, 1], "system": ["a", "b"], "label": ["x", "y"]}
    with pytest.raises(InputError, match="item='prompt,system'"):
        cs.evaluate(pairs, known_pairs)
    assert cs.evaluate(pairs, known_pairs, item="prompt,system").accuracy == 1


def test_means_of_levels_and_numbers(fused):
    crowd = cs.simulate.ratings(300, seed=1)
    model = cs.fuse(crowd.responses)
    rows = model.draw_items(60)["item"].to_pylist()
    place = {item: n for n, item in enumerate(crowd.responses.items.tolist())}
    known = {item: crowd.responses.classes[crowd.truth[place[item]]] for item in rows}
    levels = np.array([float(each) for each in crowd.responses.classes])
    row = model.estimate(known, of="mean").rows[0]
    assert row["low"] < levels[crowd.truth].mean() < row["high"]
    rng = np.random.default_rng(1)
    value = rng.normal(3, 1, 500)
    table = {"item": np.arange(500), "score": value + rng.normal(0.7, 0.4, 500)}
    found = cs.estimate(table, {"item": np.arange(50), "score": value[:50]})
    (row,) = found.rows
    assert row["low"] < value.mean() < row["high"]
    assert row["of"] == "mean"
    assert row["worth"] > 150
    assert found.findings[0].kind == "bias"
    exact = cs.estimate({"item": np.arange(500), "score": value}, {"item": np.arange(50), "score": value[:50]}).rows[0]
    assert exact["low"] < exact["estimate"] < exact["high"]  # no error was seen, and there may be some
    with pytest.raises(InputError, match="All 50 known labels are"):
        cs.estimate(table, {"item": np.arange(50), "score": np.full(50, 2.5)})


@pytest.mark.robust
def test_intervals_hold_where_the_fit_learned_from_the_known_labels():
    held = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        truth = rng.choice(3, 600, p=rng.dirichlet(np.full(3, 3.0)))
        right = rng.random((600, 3)) < rng.uniform(0.5, 0.8, 3)
        answers = cs.Answers.from_matrix(
            np.where(right, truth[:, None], rng.integers(0, 3, (600, 3))), classes=[0, 1, 2]
        )
        for _ in range(8):
            known = {item: int(truth[item]) for item in rng.choice(600, 100, replace=False).tolist()}
            for row in cs.DawidSkene().fit(answers, gold=known).estimate().rows:
                held.append(row["low"] <= np.mean(truth == row["of"]) <= row["high"])
    assert 0.935 <= np.mean(held) <= 0.98


def test_a_judge_need_not_name_every_class():
    truth = np.where(np.arange(300) % 3 == 0, "no", "yes")
    said = {"item": np.arange(300), "judge": ["one"] * 300, "verdict": ["yes"] * 300}
    rows = {row["of"]: row for row in cs.estimate(said, dict(zip(range(0, 300, 5), truth[::5], strict=True))).rows}
    assert rows["no"]["low"] < 1 / 3 < rows["no"]["high"]
    said["verdict"] = ["yes"] * 299 + [None]
    with pytest.raises(InputError, match="does not say what is predicted"):
        cs.estimate(said, dict(zip(range(0, 300, 5), truth[::5], strict=True)))


def test_values_have_a_mean():
    rng = np.random.default_rng(3)
    value, bias = rng.normal(50, 10, 300), rng.normal(4, 3, 6)
    said = value[:, None] + bias + rng.normal(0, 6, (300, 6))
    table = {"item": np.repeat(np.arange(300), 6), "worker": np.tile(np.arange(6), 300), "label": said.ravel()}
    model = cs.fuse(table, kind="numbers")
    known = {item: float(value[item]) for item in rng.choice(300, 40, replace=False).tolist()}
    (row,) = cs.estimate(model, known).rows
    assert row["low"] < value.mean() < row["high"] < row["fit_alone"]
    assert row["worth"] > 80
    assert cs.estimate(model, known, by={item: item % 2 for item in range(300)}).rows[1]["items"] == 150
    again = cs.fuse(table, kind="numbers", gold=known)
    with pytest.raises(cs.errors.ParameterError, match="not fitted to"):
        again.estimate(known)


def test_tags_and_questions_have_estimates_of_their_own(tmp_path, monkeypatch):
    crowd = cs.simulate.tags(200, seed=2)
    model, tags = cs.fuse(crowd.tags), np.array(crowd.tags.tags.tolist())
    items = model.draw_items(50)["item"].to_pylist()
    place = {item: n for n, item in enumerate(crowd.tags.items.tolist())}
    known = {item: tags[crowd.truth[place[item]]].tolist() for item in items}
    rows = model.estimate(known).rows
    assert [row["of"] for row in rows] == tags.tolist()
    held = [row["low"] <= share <= row["high"] for row, share in zip(rows, crowd.truth.mean(axis=0), strict=True)]
    assert np.mean(held) > 0.7
    spam, tone = (
        cs.simulate.independent(100, n_workers=5, n_classes=2, spammers=1, accuracy=0.9, seed=seed) for seed in (1, 2)
    )
    answers = {"item": spam.responses.item_of_answer(), "worker": spam.responses.worker}
    answers |= {"spam": spam.responses.label, "tone": tone.responses.label}
    several = cs.fuse(answers, label=["spam", "tone"])
    gold = {"spam": dict(zip(range(20), spam.truth[:20].tolist(), strict=True))}
    assert list(several.estimate(gold)) == list(several.audit(gold)) == ["spam"]
    assert several.draw_items(5)["question"].to_pylist().count("tone") == 5
    monkeypatch.chdir(tmp_path)
    several.save("several.model")
    rows = [f"{item},{label}" for item, label in gold["spam"].items()]
    (tmp_path / "known.csv").write_text("\n".join(["item,spam", *rows]))
    shown = run("estimate", "several.model", "known.csv", "-o", "shares.csv").stdout
    assert "labels alone" in shown
    assert "spam" in shown
    assert pa.csv.read_csv("shares.csv")["question"].to_pylist() == ["spam", "spam"]
    assert list(json.loads(run("audit", "several.model", "known.csv", "--json").stdout)["questions"]) == ["spam"]


def test_each_of_two_tags_is_compared_with_the_fit():
    rng = np.random.default_rng(1)
    truth = rng.random((200, 2)) < [0.4, 0.2]
    said = truth[:, None] ^ (rng.random((200, 3, 2)) < 0.1)
    said[:, :, 1] |= rng.random((200, 3)) < 0.7  # all find too much of the second
    sets = [[name for name, has in zip("xy", each, strict=True) if has] for each in said.reshape(-1, 2).tolist()]
    table = {"item": np.repeat(np.arange(200), 3), "worker": np.tile(["a", "b", "c"], 200), "tags": sets}
    known = {n: [name for name, has in zip("xy", truth[n], strict=True) if has] for n in range(100)}
    found = cs.fuse(cs.Tags.from_frame(table)).estimate(known).findings
    assert any(each.kind == "bias" and "share of 'y'" in str(each.problem) for each in found)


def test_documents_are_clusters():
    """Tokens of few documents tell less than as many of all: the interval knows."""
    crowd = cs.simulate.sequences(40, length=20, n_classes=2, stickiness=0.9, seed=2)
    model, keys = cs.HiddenMarkov().fit(crowd.responses), [tuple(each) for each in crowd.responses.items.tolist()]
    known = {keys[i]: int(crowd.truth[i]) for i in range(200)}
    rng = np.random.default_rng(0)
    scattered = {keys[i]: int(crowd.truth[i]) for i in rng.choice(800, 200, replace=False)}
    widths = [
        (row := model.estimate(each).rows[0])["labels_alone_high"] - row["labels_alone_low"]
        for each in (known, scattered)
    ]
    assert widths[0] > 1.5 * widths[1]
    by = model.estimate(known, of=0, by={owner: "even" if owner % 2 == 0 else "odd" for owner in range(40)})
    assert [row["known"] for row in by.rows] == [100, 100]


# --------------------------------------------------------------------------------------------------- what it cannot say


def change(known, **columns):
    return {"item": list(known), "label": list(known.values()), **columns}


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda known: dict(list(known.items())[:9]), "Only 9 known labels"),
        (lambda known: dict.fromkeys(known, 1), r"All 80 known labels are '1'|All 80 known labels"),
        (lambda known: known | {next(iter(known)): 7}, "not among the classes"),
        (lambda known: known | {"nobody": 1}, "1 of 81 gold items do not occur"),
        (lambda known: change(known, random=[False] * 80), "None of the 80 known labels was drawn at random"),
        (lambda known: change(known, inclusion_probability=[1.5] * 80), "must hold the probability"),
        (lambda known: change(known, inclusion_probability=[0.5] * 79 + [None]), "Only some of the known labels"),
        (lambda known: {key: [*each, each[0]] for key, each in change(known).items()}, "has one already"),
    ],
)
def test_samples_that_tell_nothing_are_refused(fused, known, give, message):
    _, model = fused
    with pytest.raises(InputError, match=message):
        model.estimate(give(known))


def test_percentages_are_no_probabilities():
    table = {"item": range(40), "p(yes)": [30.0] * 40, "p(no)": [70.0] * 40}
    with pytest.raises(InputError, match=r"from 0 to 1.*has 30 at row 0"):
        cs.estimate(table, {n: "yes" if n % 3 else "no" for n in range(20)})


def test_without_known_labels_there_is_nothing_to_say(fused):
    _, model = fused
    with pytest.raises(InputError, match="There are no known labels"):
        model.estimate()


def test_what_is_not_supported_has_no_estimate(fused, known):
    """Groups with fewer than five known labels, groups without items, and classes that nobody is known to be."""
    _, model = fused
    few = list(known)[:3]
    groups = {item: "few" if item in few else "many" for item in range(590)} | {9999: "empty"}
    found = model.estimate(known, of=1, by={"item": list(groups), "group": list(groups.values())})
    rows = {row["group"]: row for row in found.rows}
    assert rows["few"]["estimate"] is rows["empty"]["estimate"] is None
    assert rows["few"]["fit_alone"] is not None
    assert rows["many"]["estimate"] is not None
    assert {each.kind for each in found.findings} >= {"few known", "no group", "empty group"}
    unseen = {item: label for item, label in known.items() if label != 2}
    row = next(row for row in model.estimate(unseen).rows if row["of"] == 2)
    assert (row["estimate"], row["low"]) == (None, 0.0)
    assert 0 < row["high"] < 0.2
    half = change(known, random=[n % 2 == 0 for n in range(80)])
    found = model.estimate(half)
    assert found.n_known == 40
    assert found.findings[0].kind == "not random"


def test_classes_and_columns_that_are_not_there_are_errors(fused, known):
    _, model = fused
    with pytest.raises(cs.errors.ParameterError, match="nothing called 'cat'"):
        model.estimate(known, of="cat")
    with pytest.raises(cs.errors.ParameterError, match="nothing called 'mean'"):
        model.estimate(known, of="mean")
    with pytest.raises(InputError, match="no column 'system'"):
        model.estimate(known, by="system")
    with pytest.raises(InputError, match="several rows about one item"):
        cs.estimate({"item": [1, 1], "worker": ["a", "b"], "label": [0, 1]}, known)


# ------------------------------------------------------------------------------------------------------------ the plan


def test_strata_have_the_probabilities_with_which_items_are_drawn(fused):
    crowd, model = fused
    drawn = dict.fromkeys(range(600), 0)
    for seed in range(60):
        model.set_params(seed=seed)
        table = model.draw_items(50, strata=True)
        chance = dict(zip(table["item"].to_pylist(), table["inclusion_probability"].to_pylist(), strict=True))
        assert len(chance) == 50
        for item in chance:
            drawn[item] += 1
    model.set_params(seed=0)
    assert sum(1 / each for each in chance.values()) == pytest.approx(600)
    by_chance = np.array([[each, drawn[item] / 60] for item, each in chance.items()])
    low, high = by_chance[by_chance[:, 0] < 0.07], by_chance[by_chance[:, 0] > 0.1]
    assert low[:, 1].mean() < high[:, 1].mean()
    table = {**table.to_pydict(), "label": crowd.truth[table["item"].to_numpy()]}
    rows = model.estimate(table).rows
    assert all(row["low"] < np.mean(crowd.truth == row["of"]) < row["high"] for row in rows)
    known = cs.DawidSkene().fit(crowd.responses, gold=table)
    assert known.estimate().rows[0]["labels_alone"] == pytest.approx(rows[0]["labels_alone"])


def test_the_sample_survives_saving_and_updates(fused, tmp_path):
    crowd, model = fused
    table = model.draw_items(50, strata=True)
    gold = {**table.to_pydict(), "label": crowd.truth[table["item"].to_numpy()]}
    known = cs.DawidSkene().fit(crowd.responses, gold=gold)
    loaded = cs.load(known.save(tmp_path / "known.model"))
    assert loaded.estimate().to_dict() == known.estimate().to_dict()
    loaded.update({"item": [9999], "worker": [0], "label": [1]})
    assert loaded.estimate().n_known == 50
    assert loaded.result_.given.gold.inclusion is not None
    others = [int(item) for item in np.setdiff1d(np.arange(len(crowd.truth)), gold["item"])[:5]]
    with pytest.raises(InputError, match="Of only one of two samples"):
        loaded.update(gold={item: int(crowd.truth[item]) for item in others})
    doubtful = {"item": others, "label": crowd.truth[others], "random": [False] * 5}
    assert loaded.update(gold=doubtful).estimate().n_known == 50
    assert loaded.result_.given.gold.inclusion is not None


# ---------------------------------------------------------------------------------------------------- the command line


def test_everything_on_the_command_line(fused, tmp_path, monkeypatch):
    crowd, _ = fused
    monkeypatch.chdir(tmp_path)
    r = crowd.responses
    item = r.item_of_answer()
    table = pa.table({"prompt": item // 2, "system": item % 2, "judge": r.worker, "verdict": r.label})
    pa.csv.write_csv(table, "answers.csv")
    run("fuse", "answers.csv", "--item", "prompt,system", "-o", "labels.csv", "--save", "crowd.model")
    assert "Within" in run("next", "crowd.model", "--known", "80", "-o", "known.csv").stdout
    known = pa.csv.read_csv("known.csv").to_pydict()
    truth = [int(crowd.truth[2 * p + s]) for p, s in zip(known["prompt"], known["system"], strict=True)]
    pa.csv.write_csv(pa.table(known | {"label": truth}), "known.csv")
    counted = "estimate", "crowd.model", "known.csv", "--of", "1"
    shown = run(*counted, "--by", "system", "--pairs", "prompt", "-o", "systems.csv")
    assert "Differences" in shown.stdout
    assert pa.csv.read_csv("systems.csv").column_names[:3] == ["group", "of", "estimate"]
    by_table = json.loads(run("estimate", "labels.csv", "known.csv", "--of", "1", "--by", "system", "--json").stdout)
    by_model = json.loads(run(*counted, "--by", "system", "--json").stdout)
    low = [row["low"] for row in by_model["estimates"]]
    assert low == pytest.approx([row["low"] for row in by_table["estimates"]], abs=1e-3)
    assert run(*counted, "--at-least", "0.0").exit_code == 0
    assert run(*counted, "--at-least", "0.9").exit_code == 3
    assert "kappa" in run("audit", "crowd.model", "known.csv", "-o", "judges.csv").stdout
    assert run("estimate", "crowd.model", "answers.csv").exit_code == 2
    page = run("fuse", "answers.csv", "--item", "prompt,system", "--gold", "known.csv", "--report", "report.html")
    assert page.exit_code == 0
    assert re.search("How many\\?", (tmp_path / "report.html").read_text())
