"""What is done in another way where there are many answers gives the same results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.answers.random_choices import hide_answers
from consilience.engines import open_engine
from consilience.inference.em import expect_from_votes, gather, maximise
from consilience.inference.sources import Source
from consilience.inference.structures import exchange
from consilience.metrics import agreement
from consilience.results import answer_worth, interval_sums


def make_crowds():
    plain = cs.simulate.independent(300, n_workers=12, n_classes=3, answers_per_item=4, accuracy=0.7, seed=4).responses
    rng = np.random.default_rng(5)
    share = rng.dirichlet([1, 1, 1], (40, 5))
    share[rng.random((40, 5)) < 0.4] = np.nan
    return {
        "plain": plain,
        "weighted": replace(plain, weight=rng.uniform(0.1, 1, plain.n_responses)),
        "spread": cs.Answers.from_probabilities(share),
        "unsure": plain.with_classes(plain.classes[:2]),
        "alone": plain.keep(rng.random(plain.n_responses) < 0.3),
        "sequences": cs.simulate.sequences(20, n_workers=6, n_classes=3, seed=2).responses,
    }


@pytest.mark.parametrize("name", make_crowds())
def test_pairs_of_many_answers(name):
    r = make_crowds()[name]
    for few, many in zip(agreement._count_few_pairs(r), agreement._count_many_pairs(r), strict=True):
        if few is None:  # what only scales have
            assert many is None
        else:
            np.testing.assert_allclose(many, few, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", make_crowds())
def test_sums_over_many_answers(name, monkeypatch):
    r = make_crowds()[name]
    rng = np.random.default_rng(6)
    posterior, right = rng.dirichlet(np.ones(r.n_classes), r.n_items), rng.random((r.n_workers, r.n_classes))
    run = slice(3, 17)

    def sums():
        yield answer_worth.sum_chances(r, posterior)
        yield interval_sums.sum_answers(r, right, run, power=2)
        yield interval_sums.sum_answers(r, right[:, 0])
        yield interval_sums.count_surprise(r, right, run)

    few = list(sums())
    for module in (answer_worth, interval_sums):
        monkeypatch.setattr(module, "MANY", 0)
    for small, large in zip(few, sums(), strict=True):
        np.testing.assert_allclose(large, small, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", make_crowds())
def test_items_that_several_workers_answered(name):
    r = make_crowds()[name]
    unit = r.item_of_answer() if r.sequences is None else r.sequences.of_items()[r.item_of_answer()]
    n_units = r.n_items if r.sequences is None else len(r.sequences)
    expected = [len(set(r.worker[unit == i].tolist())) > 1 for i in range(n_units)]
    assert r.have_several_workers().tolist() == expected
    assert r.items_of(np.arange(r.n_responses)).tolist() == r.item_of_answer().tolist()


@pytest.mark.parametrize("known", [False, True])
def test_counts_without_hidden_answers(known):
    """To exchange the counts of items with hidden answers is to count all answers that are left."""
    r = make_crowds()["plain"]
    gold = None if not known else dict(zip(r.items[:50].tolist(), r.classes[np.arange(50) % 3].tolist(), strict=True))
    model = cs.DawidSkene(calibration="none").fit(r, gold=gold)
    codes, recipe = model.result_.given.gold, model.recipe()
    hidden, _ = next(hide_answers(r, 0.05, 0))
    items = np.unique(r.items_of(np.flatnonzero(hidden)))
    part = r.about(items)
    some = None if codes is None else type(codes)(codes.codes[items], codes.judging[items])
    with open_engine(None) as engine:
        structure = recipe.make_structure(r)

        def count(answers, labels):
            problem = recipe.pose(Source(answers, labels), structure, None, engine)
            return problem.expect(start)

        problem = recipe.pose(Source(r, codes), structure, None, engine)
        start = maximise(problem, problem.expect(model_start(problem)))
        left = part.keep(~hidden[r.answers_about(items)[0]])
        found = exchange(count(r, codes), count(part, some), count(left, some))
        expected = count(r.keep(~hidden), codes)
    np.testing.assert_allclose(found.counts, expected.counts, atol=1e-10)
    np.testing.assert_allclose(found.summary.mass, expected.summary.mass, atol=1e-10)
    assert (found.counts[expected.counts == 0] == 0).all()


def model_start(problem):
    return maximise(problem, expect_from_votes(problem))


@pytest.mark.parametrize("sizes", [[], [3], [3, 3, 2], [1, 9, 40], [5, 0, 1]])
def test_gathered_blocks(sizes):
    parts = [(np.full((size, 2), float(size)), 0.5) for size in sizes]
    rows, total = gather(iter(parts), len(parts))
    assert total == 0.5 * len(sizes)
    if sizes:
        assert np.array_equal(rows, np.concatenate([part for part, _ in parts]))
