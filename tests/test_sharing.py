"""Several questions to the same workers: what is shared, against sums over everything, and what it brings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import consilience as cs
from consilience.engines import open_engine
from consilience.errors import quietly
from consilience.inference.observations import Observations
from consilience.inference.sharing import N_LEVELS, fit_together, match_levels
from consilience.inference.skills import Skills, expect_types, learn_skills, weigh
from consilience.inference.workers.ordinal import NominalWorkers, OrdinalWorkers
from consilience.models.fusing import fit_questions
from consilience.results.result import Given


def types_of(workers):
    k = workers.n_classes
    return workers.prior(np.ones((1, k, k)), "variational", np.full(k, 1 / k)).types


def some_skills(seed=0):
    """Random shares, for a question with two classes, a hard one, and one on a scale of four."""
    rng = np.random.default_rng(seed)
    kinds = [NominalWorkers(5, np.arange(2), 2), NominalWorkers(5, np.arange(3), 3), OrdinalWorkers(5, np.arange(4), 4)]
    types = []
    for kind, easiness in zip(kinds, (1.0, 0.6, 1.4), strict=True):
        weights = match_levels(kind.find_skills(types_of(kind)), easiness)
        weights = weights * (rng.random(weights.shape) + 0.1)
        types.append(weights / weights.sum(axis=1, keepdims=True))
    return Skills(rng.dirichlet(np.ones(N_LEVELS)), 0.3, tuple(types))


def some_evidence(skills, seed=1, n_workers=3):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(h.shape[1], 0.1), n_workers) for h in skills.types]


def slow_weigh(evidence, skills):
    """J, and the probabilities of types of each question given the others, by sums over whether each has its own."""
    n_questions, n_workers = len(evidence), len(evidence[0])
    total, found = 0.0, [np.zeros_like(e) for e in evidence]
    for m in range(n_workers):
        joint, marginal = 0.0, [np.zeros(e.shape[1]) for e in evidence]
        for s, has_own in itertools.product(range(N_LEVELS), itertools.product([False, True], repeat=n_questions)):
            of_types = [
                skills.own * (skills.shares @ h) if own else (1 - skills.own) * h[s]
                for h, own in zip(skills.types, has_own, strict=True)
            ]
            weights = [each @ e[m] for each, e in zip(of_types, evidence, strict=True)]
            joint += skills.shares[s] * np.prod(weights)
            for q in range(n_questions):
                marginal[q] += skills.shares[s] * np.prod(weights[:q] + weights[q + 1 :]) * of_types[q]
        total += np.log(joint)
        for q in range(n_questions):
            found[q][m] = marginal[q] / marginal[q].sum()
    return total, found


def test_evidence_and_types_are_sums_over_everything():
    skills = some_skills()
    evidence = some_evidence(skills)
    total, expected = slow_weigh(evidence, skills)
    types, log_evidence = expect_types(evidence, skills)
    np.testing.assert_allclose(log_evidence, total, rtol=1e-10)
    for found, slow in zip(types, expected, strict=True):
        np.testing.assert_allclose(found, slow, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(found.sum(axis=1), 1)


def test_each_step_raises_the_evidence():
    skills = some_skills()
    evidence, last = some_evidence(skills, n_workers=40), -np.inf
    for _ in range(30):
        value = weigh(evidence, skills)[-1] + skills.log_density
        assert value >= last - 1e-9
        last, skills = value, learn_skills(evidence, skills)
        np.testing.assert_allclose(skills.shares.sum(), 1)


def draw_questions(seed, accuracy, n_items=150, n_workers=40, per_item=5):
    """Answers to yes-or-no questions; `accuracy` (workers, questions)."""
    rng = np.random.default_rng(seed)
    n_questions = accuracy.shape[1]
    truth = rng.integers(2, size=(n_items, n_questions))
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_workers, per_item, False) for _ in range(n_items)])
    right = rng.random((len(item), n_questions)) < accuracy[worker]
    said = np.where(right, truth[item], 1 - truth[item])
    return truth, [
        cs.Answers.from_frame({"item": item, "worker": worker, "label": said[:, q]}) for q in range(n_questions)
    ]


def fit_all(answers, models):
    with open_engine(None) as engine:
        posed = {
            q: (model, Observations(model._prepare(r)), None, Given())
            for q, (model, r) in enumerate(zip(models, answers, strict=True))
        }
        with quietly():
            found, shared = fit_questions(posed, engine, "people")
        return [each.result_ for each in found.values()], shared


def share_right(truth, found):
    return np.mean([(each.labels.values == truth[:, q]).mean() for q, each in enumerate(found)])


@pytest.mark.parametrize("kinds", [("nominal", "nominal"), ("ordinal", "nominal")])
def test_the_objective_of_all_questions_never_falls(kinds):
    """Also where each question has workers of its own."""
    rng = np.random.default_rng(2)
    answers = draw_questions(2, rng.uniform(0.5, 0.95, (40, 1)) * np.ones(2), n_items=60)[1]
    keep = answers[0].worker >= 5
    answers[0] = Observations(answers[0]).keep(keep).responses
    models = [cs.DawidSkene(workers=kind, max_iter=12, tol=0) for kind in kinds]
    with open_engine(None) as engine:
        types, _, _, trace = fit_together(models, [Observations(r) for r in answers], [None, None], engine)
    assert len(trace) == 13
    assert (np.diff(trace) > -1e-7).all()
    assert trace[-1] > trace[0]
    assert [len(each.workers) for each in types] == [r.n_workers for r in answers]


def test_clickers_in_all_questions_are_known_better():
    accuracy = np.where(np.arange(40) < 10, 0.5, 0.8)[:, None] * np.ones(3)
    gains, own = [], []
    for seed in range(3):
        truth, answers = draw_questions(seed, accuracy)
        models = [cs.DawidSkene(workers="nominal", calibration="none") for _ in range(3)]
        found, shared = fit_all(answers, models)
        alone = [cs.DawidSkene(workers="nominal", calibration="none").fit(r).result_ for r in answers]
        gains.append(share_right(truth, found) - share_right(truth, alone))
        own.append(shared.own)
    assert np.mean(gains) > 0.005
    assert np.mean(own) < 0.3


def test_questions_that_need_other_skills_stay_separate():
    rng = np.random.default_rng(0)
    accuracy = np.full((40, 3), 0.9)
    accuracy[np.arange(40), rng.integers(3, size=40)] = 0.5  # everybody is bad at one
    truth, answers = draw_questions(0, accuracy)
    found, shared = fit_all(answers, [cs.DawidSkene(workers="nominal", calibration="none") for _ in range(3)])
    alone = [cs.DawidSkene(workers="nominal", calibration="none").fit(r).result_ for r in answers]
    assert shared.own > 0.3
    assert share_right(truth, found) > share_right(truth, alone) - 0.01
