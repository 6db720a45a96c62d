"""Each metric against a slow twin written from its definition, other libraries, and published numbers."""

from __future__ import annotations

import enum
import itertools
import math
import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience import Answers, metrics
from consilience.errors import InputError
from effort import examples


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def make_answers(rows, n_items=None, n_workers=None, labels=None):
    """Build answers from (item, worker, label) or (item, worker, label, weight), items and workers being integers."""
    rows = sorted(rows, key=lambda row: row[0])  # stable: workers stay in the order given
    labels = sorted({row[2] for row in rows}) if labels is None else labels
    n_items = max((row[0] for row in rows), default=-1) + 1 if n_items is None else n_items
    n_workers = max((row[1] for row in rows), default=-1) + 1 if n_workers is None else n_workers
    per_item = np.bincount(np.array([row[0] for row in rows], dtype=np.int64), minlength=n_items)
    return Answers(
        offsets=np.append(0, np.cumsum(per_item)).astype(np.int64),
        worker=np.array([row[1] for row in rows], dtype=np.int32),
        label=np.array([labels.index(row[2]) for row in rows], dtype=np.int32),
        weight=np.array([row[3] for row in rows]) if rows and len(rows[0]) == 4 else None,
        workers=np.arange(n_workers),
        labels=np.array(labels),
        classes=np.array(labels),
        keys=np.arange(n_items),
    )


def rows_of(matrix):
    """Rows from a matrix of items x workers in which None or "*" is a missing answer."""
    return [
        (item, worker, label)
        for item, answers in enumerate(matrix)
        for worker, label in enumerate(answers)
        if label not in (None, "*")
    ]


def is_close(x, y):
    return math.isclose(x, y, rel_tol=1e-10, abs_tol=1e-12) or (math.isnan(x) and math.isnan(y))


# ---------------------------------------------------------------------------------------------------------- labels

LABEL_KINDS = {
    "strings": ["a", "b", "c"],
    "integers": [3, 10, -1],
    "booleans": [True, False],
    "floats": [0.5, 1.5],
    "enums": list(Color),
    "tuples": [("a", 1), ("b", 2)],
    "mixed": [1, "1", Color.RED, ("a",)],
}


def slow_scores(gold, predicted):
    pairs = list(zip(gold, predicted, strict=True))
    scores = {}
    for label in [*gold, *predicted]:
        hit = sum(g == label and p == label for g, p in pairs)
        false = sum(g != label and p == label for g, p in pairs)
        missed = sum(g == label and p != label for g, p in pairs)
        scores[label] = (
            hit / (hit + false) if hit + false else 0.0,
            hit / (hit + missed) if hit + missed else 0.0,
            2 * hit / (2 * hit + false + missed),
            hit + missed,
        )
    return scores


@pytest.mark.parametrize("kind", LABEL_KINDS)
@given(data=st.data())
@examples(25)
def test_label_metrics_equal_their_definitions(kind, data):
    label = st.sampled_from(LABEL_KINDS[kind])
    pairs = data.draw(st.lists(st.tuples(label, label), min_size=1, max_size=30))
    gold, predicted = map(list, zip(*pairs, strict=True))

    assert is_close(metrics.accuracy(gold, predicted), sum(g == p for g, p in pairs) / len(pairs))
    scores, expected = metrics.class_f1(gold, predicted), slow_scores(gold, predicted)
    assert scores.keys() == expected.keys()
    for name, score in scores.items():
        assert score == pytest.approx(expected[name], abs=1e-12)
    assert is_close(metrics.macro_f1(gold, predicted), sum(s[2] for s in expected.values()) / len(expected))


@pytest.mark.parametrize("function", [metrics.accuracy, metrics.class_f1])
@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([], [], "0 gold labels and 0 predicted"),
        (["a", "b", "c"], np.array(["a", "b"]), "3 gold labels and 2 predicted"),
        (["a", None, None], ["a", "b", "c"], "gold labels hold 2 nulls among 3"),
        ([["a"], ["b"]], ["a", "b"], r"hashable labels. Got \['a'\]"),
        ("ab", ["a", "b"], "one-dimensional"),
    ],
)
def test_unusable_labels_are_refused(function, gold, predicted, message):
    with pytest.raises(InputError, match=message):
        function(gold, predicted)


# --------------------------------------------------------------------------------------------------- probabilities

CLASSES = ["x", "y", "z"]


@st.composite
def judged_posteriors(draw):
    """Gold and a posterior; coarse weights make for many ties."""
    most = draw(st.sampled_from([2, 4, 1000]))
    row = st.lists(st.integers(0, most), min_size=3, max_size=3).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=40))
    gold = draw(st.lists(st.sampled_from(CLASSES), min_size=len(rows), max_size=len(rows)))
    weight = np.array(rows, dtype=float)
    return gold, weight / weight.sum(axis=1, keepdims=True)


def top_labels(gold, posterior):
    """(confidence, is right) of each item; the first of equals is the top."""
    tops = []
    for truth, row in zip(gold, posterior.tolist(), strict=True):
        tops.append((max(row), CLASSES[row.index(max(row))] == truth))
    return tops


def slow_curve(tops, bins, adaptive):
    if adaptive:
        in_order = sorted(confidence for confidence, _ in tops)
        starts = [in_order[len(tops) * b // bins] for b in range(1, bins)]
        bin_of = [sum(start <= confidence for start in starts) for confidence, _ in tops]
    else:
        bin_of = [sum(confidence > b / bins for b in range(1, bins)) for confidence, _ in tops]
    groups = defaultdict(list)
    for b, top in zip(bin_of, tops, strict=True):
        groups[b].append(top)
    return [(*np.mean(groups[b], axis=0), len(groups[b])) for b in sorted(groups)]


@given(judged_posteriors())
@examples(60)
def test_log_loss_and_brier_equal_their_definitions(judged):
    gold, posterior = judged
    loss = [-math.log(max(row[CLASSES.index(g)], 1e-10)) for g, row in zip(gold, posterior, strict=True)]
    assert is_close(metrics.log_loss(gold, posterior, CLASSES), sum(loss) / len(loss))
    squares = [
        sum((p - (k == g)) ** 2 for k, p in zip(CLASSES, row, strict=True))
        for g, row in zip(gold, posterior, strict=True)
    ]
    assert is_close(metrics.brier(gold, posterior, CLASSES), sum(squares) / len(squares))


@given(judged_posteriors(), st.integers(1, 20), st.booleans())
@examples(100)
def test_calibration_equals_its_definition(judged, bins, adaptive):
    gold, posterior = judged
    curve = metrics.reliability_curve(gold, posterior, CLASSES, bins=bins, adaptive=adaptive)
    expected = slow_curve(top_labels(gold, posterior), bins, adaptive)
    np.testing.assert_allclose(np.column_stack(curve), expected, atol=1e-12)
    error = sum(n * abs(right - confidence) for confidence, right, n in expected) / len(gold)
    assert is_close(metrics.calibration_error(gold, posterior, CLASSES, bins=bins, adaptive=adaptive), error)


PROBABILITY_METRICS = [
    metrics.log_loss,
    metrics.brier,
    metrics.calibration_error,
    metrics.reliability_curve,
]


@pytest.mark.parametrize("function", PROBABILITY_METRICS)
@pytest.mark.parametrize(
    ("gold", "posterior", "classes", "message"),
    [
        (["x", "q"], [[0.5, 0.5], [0.5, 0.5]], ["x", "y"], "1 gold labels are not among the 2 classes: 'q'"),
        (["x"], [[0.5, 0.5]], ["x", "y", "z"], r"shape \(1, 3\). Got shape \(1, 2\)"),
        (["x"], [["p", "q"]], ["x", "y"], "matrix of numbers"),
        ([], np.empty((0, 2)), ["x", "y"], "0 gold labels"),
        (["x", "y"], [[0.5, 0.5], [2.0, -1.0]], ["x", "y"], r"1 of 2 rows are not: rows 1. The first is \[2.0, -1.0\]"),
        (["x"], [[0.5, 0.5]], ["x", "x"], "classes must differ. Found more than once: 'x'"),
    ],
)
def test_unusable_posteriors_are_refused(function, gold, posterior, classes, message):
    with pytest.raises(InputError, match=message):
        function(gold, posterior, classes)


# ------------------------------------------------------------------------------------------------------- agreement


def slow_alpha(rows):
    """Nominal alpha by the coincidence matrix, one pair of answers at a time."""
    units = defaultdict(list)
    for item, _, label in rows:
        units[item].append(label)
    coincidence = Counter()
    for values in units.values():
        for a, b in itertools.permutations(range(len(values)), 2):
            coincidence[values[a], values[b]] += 1 / (len(values) - 1)
    marginal = Counter()
    for (c, _), mass in coincidence.items():
        marginal[c] += mass
    if len(marginal) < 2:
        return math.nan
    n = sum(marginal.values())
    observed = sum(mass for (c, d), mass in coincidence.items() if c != d) / n
    expected = sum(marginal[c] * marginal[d] for c in marginal for d in marginal if c != d) / (n * (n - 1))
    return 1 - observed / expected


def slow_pairs(rows):
    """(item if shared, same label, weight) of each ordered pair of entries of different answers."""
    for (i, v, c, x), (j, w, d, y) in itertools.permutations(rows, 2):
        if (i, v) != (j, w):
            yield i if i == j else None, c == d, x * y


@st.composite
def answer_rows(draw):
    n_workers = draw(st.integers(1, 5))
    n_labels = draw(st.integers(1, 4))
    cell = st.one_of(st.none(), st.integers(0, n_labels - 1))
    matrix = draw(st.lists(st.lists(cell, min_size=n_workers, max_size=n_workers), min_size=1, max_size=12))
    rows = rows_of(matrix)
    draw(st.randoms(use_true_random=False)).shuffle(rows)
    return rows


@st.composite
def weighted_rows(draw):
    """Answers spread over labels, the weights of each answer summing to at most 1."""
    rows = []
    for item, worker in itertools.product(range(draw(st.integers(1, 5))), range(draw(st.integers(1, 4)))):
        share = draw(st.lists(st.integers(0, 4), min_size=3, max_size=3))
        rows += [(item, worker, label, x / 12) for label, x in enumerate(share) if x]
    draw(st.randoms(use_true_random=False)).shuffle(rows)
    return rows


@pytest.mark.parametrize(
    ("workers", "alpha"),
    [
        # Krippendorff (2011), "Computing Krippendorff's alpha-reliability", nominal data: B and C.
        (["aabbdcccedda", "babbbccceddd"], 0.692),
        (["123321412***", "1233224125*3", "*3332342251*", "12332441251*"], 0.743),
    ],
)
def test_alpha_gives_the_published_numbers(workers, alpha):
    rows = rows_of(zip(*workers, strict=True))
    assert metrics.krippendorff_alpha(make_answers(rows)) == pytest.approx(alpha, abs=5e-4)
    assert slow_alpha(rows) == pytest.approx(alpha, abs=5e-4)


@given(answer_rows())
@examples(60)
def test_pairwise_agreement_equals_its_definition(rows):
    pairs = [a[2] == b[2] for a, b in itertools.combinations(rows, 2) if a[0] == b[0]]
    expected = sum(pairs) / len(pairs) if pairs else math.nan
    assert is_close(metrics.pairwise_agreement(make_answers(rows)), expected)


@given(weighted_rows())
@examples(60)
def test_weighted_agreement_equals_its_definition(rows):
    r = make_answers(rows)
    total, agreeing = Counter(), Counter()
    for item, same, weight in slow_pairs(rows):
        total[item] += weight
        agreeing[item] += weight * same
    total.pop(None, None)
    if not total:
        assert math.isnan(metrics.pairwise_agreement(r))
        assert math.isnan(metrics.krippendorff_alpha(r))
        return
    found = metrics.pairwise_agreement(r)
    assert found == pytest.approx(sum(agreeing[i] for i in total) / sum(total.values()), abs=1e-10)

    paired = [row for row in rows if row[0] in total]
    mass = Counter()
    for item, _, _, weight in paired:
        mass[item] += weight
    observed = sum(mass[i] * (1 - agreeing[i] / total[i]) for i in total) / sum(mass.values())
    pool = list(slow_pairs(paired))
    expected = sum(weight for _, same, weight in pool if not same) / sum(weight for *_, weight in pool)
    alpha = metrics.krippendorff_alpha(r)
    if len({label for _, _, label, _ in paired}) < 2:
        assert math.isnan(alpha)
    else:
        assert alpha == pytest.approx(1 - observed / expected, abs=1e-9)


def test_agreement_knows_its_limits():
    unanimous = make_answers([(0, 0, "a"), (0, 1, "a"), (1, 0, "b")])  # "b" is on an item with one answer
    assert math.isnan(metrics.krippendorff_alpha(unanimous))
    assert metrics.pairwise_agreement(unanimous) == 1
    for lonely in (make_answers([(0, 0, "a"), (1, 1, "b")]), make_answers([], n_items=3, n_workers=2)):
        assert math.isnan(metrics.krippendorff_alpha(lonely))
        assert math.isnan(metrics.pairwise_agreement(lonely))
    perfect = make_answers([(i, w, "ab"[i % 2]) for i in range(9) for w in range(3)])
    assert metrics.krippendorff_alpha(perfect) == 1
    random.seed(0)
    chance = make_answers([(i, w, random.choice("abc")) for i in range(4000) for w in range(3)])
    assert abs(metrics.krippendorff_alpha(chance)) < 0.03


# ------------------------------------------------------------------------------------------------------ parameters


def test_parameter_errors_equal_their_definitions():
    rng = np.random.default_rng(0)
    true, estimated = rng.dirichlet([1] * 4, size=(2, 5, 3))
    worst = [max(sum(abs(true[w, k, a] - estimated[w, k, a]) for a in range(4)) for k in range(3)) for w in range(5)]
    assert metrics.confusion_error(true, estimated) == pytest.approx(sum(worst) / 5, abs=1e-12)
    # Transposed, with answers in rows, it is numpy's induced 1-norm, the largest column sum.
    induced = [np.linalg.norm(difference.T, ord=1) for difference in true - estimated]
    assert metrics.confusion_error(true, estimated) == pytest.approx(np.mean(induced), abs=1e-12)

    t, that = rng.dirichlet([1] * 3, size=(2, 3))
    assert metrics.transition_error(t, that) == pytest.approx(np.linalg.norm((t - that).T, ord=1), abs=1e-12)


def test_rank_correlation():
    x, y = [0.9, 0.8, 0.7, 0.6, 0.5], [0.8, 0.9, 0.7, 0.6, 0.5]
    assert metrics.rank_correlation(x, y) == pytest.approx(1 - 6 * 2 / (5 * 24))  # 1 - 6 sum d^2 / (n (n^2 - 1))
    assert metrics.rank_correlation(x, np.negative(x)) == pytest.approx(-1)
    assert metrics.rank_correlation(x, np.exp(x)) == pytest.approx(1)
    assert math.isnan(metrics.rank_correlation(x, [1] * 5))
    assert math.isnan(metrics.rank_correlation([1], [1]))
    assert math.isnan(metrics.rank_correlation([1, 2, math.nan], [1, 2, 3]))


# ------------------------------------------------------------------------------------------------- import and docs
