"""Silence as an answer: the implicit form against the explicit one, and its rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
import oracles
from consilience.answers.gold import match_gold
from consilience.errors import InputError, ParameterError
from consilience.inference.em import expect_from_votes, infer_posterior
from consilience.inference.observations import Observations
from consilience.kernels import freeze

LENGTHS = [10, 1, 7, 22]
LABELS = ["a", "b", "c"]


def crowd(seed=0, n_items=40, n_workers=5, silent=0.5):
    """Return answers (-1: silent), where workers are silent about the truth "a" more than about others."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n_items, p=[0.5, 0.3, 0.2])
    answers = np.where(rng.random((n_items, n_workers)) < 0.75, truth[:, None], rng.choice(3, (n_items, n_workers)))
    quiet = rng.random(answers.shape) < np.where(truth == 0, 0.8, silent)[:, None]
    answers[quiet] = -1
    answers[0] = range(-1, n_workers - 1) if n_workers <= 4 else [0, 1, 2, 0, 1][:n_workers]
    answers[1] = -1
    return answers, truth


def implicit(answers, lengths=None, background="a", weight=None, **options):
    item, worker = np.nonzero(answers >= 0)
    keys = np.arange(len(answers))
    frame = {"worker": worker, "label": np.array(LABELS)[answers[item, worker]]}
    if weight is not None:
        frame["weight"] = weight[item, worker]
        options["weight"] = "weight"
    if lengths is None:
        return cs.Answers.from_frame(
            frame | {"item": item}, items=keys, abstain="answer", background=background, **options
        )
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = np.concatenate([np.arange(n) for n in lengths])
    frame |= {"sequence": owner[item], "position": place[item]}
    items = list(zip(owner.tolist(), place.tolist(), strict=True))
    return cs.Answers.from_frame(frame, items=items, abstain="answer", background=background, **options)


def in_order(answers, r):
    """Return the rows in the order of items: those nobody spoke about stand last, where there are no sequences."""
    return answers if r.sequences is not None else answers[r.items.astype(int)]


def explicit(answers, lengths=None, items=None):
    said = np.array([*LABELS, "silent"])[answers]
    return cs.Answers.from_matrix(said, lengths=lengths, labels=[*LABELS, "silent"], classes=LABELS, items=items)


def smoothing_with_silence(off=0.1, on=1.1):
    table = np.full((3, 4), off)
    table[np.arange(3), np.arange(3)] = on
    table[0, 3] = on
    return table


CASES = [
    (cs.DawidSkene, {"estimation": "em"}),
    (cs.DawidSkene, {"estimation": "variational"}),
    (cs.HiddenMarkov, {"estimation": "em", "coupling": 1.0}),
    (cs.HiddenMarkov, {"estimation": "variational", "coupling": 1.0}),
    (cs.HiddenMarkov, {"coupling": 0.25, "transitions": np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool)}),
]


@pytest.mark.parametrize(("kind", "options"), CASES)
@pytest.mark.parametrize("known", [False, True])
def test_implicit_silence_is_explicit_silence(kind, options, known, tmp_path):
    answers, _ = crowd()
    lengths = LENGTHS if kind is cs.HiddenMarkov else None
    ours = implicit(answers, lengths)
    theirs = explicit(in_order(answers, ours), lengths, None if lengths else ours.items)
    gold = None
    if known:
        gold = {theirs.items[3]: "b", theirs.items[1]: "c"}
    model = kind(tol=0, max_iter=25, **oracles.PLAIN, **options).fit(ours, gold=gold)
    assert model.confusion_.shape == (5, 3, 4)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)
    assert_same_steps(ours, theirs, kind, options, gold)
    np.testing.assert_array_equal(model.predict_proba(ours, gold=gold), model.posterior_)
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(ours, gold=gold), model.posterior_)
    np.testing.assert_array_equal(again.predict(ours, gold=gold), model.labels_)
    if known:
        assert model.labels_[3] == "b"
        assert model.labels_[1] == "c"


def assert_same_steps(ours, theirs, kind, options, gold, n_steps=8):
    """Run the loop for both: every posterior, matrix and objective is the same."""
    problems = []
    for r, smoothing in ((ours, (0.1, 1.1)), (theirs, smoothing_with_silence())):
        model = kind(smoothing=smoothing, **options)
        observations = Observations(r, match_gold(gold, r, r.classes))
        problems.append(model._make_problem(observations, None, cs.engines.Threads()))
    # Votes of the explicit form: silence votes for nothing, and an item without votes is background. They are the prior
    # of each item.
    problems[1] = replace(problems[1], unvoted=problems[0].unvoted, placed=anchored(problems[1].placed, theirs, gold))
    parameters = [problem.maximise(expect_from_votes(problem)) for problem in problems]
    for _ in range(n_steps):
        results, objectives = [], []
        for problem, found in zip(problems, parameters, strict=True):
            factors = problem.workers.factors(found.workers.log_weights)
            results.append(infer_posterior(problem.engine, problem.placed, factors, found.structure)[0])
            objectives.append(problem.objective(found, problem.expect(found)))
        np.testing.assert_allclose(results[0], results[1], atol=1e-9)
        np.testing.assert_allclose(parameters[0].workers.mean, parameters[1].workers.mean, atol=1e-9)
        assert objectives[0] == pytest.approx(objectives[1], rel=1e-9)
        parameters = [
            problem.maximise(problem.expect(found)) for problem, found in zip(problems, parameters, strict=True)
        ]


def anchored(blocks, r, gold):
    """Return the blocks of explicit silence with vote shares as priors."""
    votes = oracles.densify(r)[:, :, :3].sum(axis=1)
    votes[votes.sum(axis=1) == 0] = [1, 0, 0]
    for item, label in (gold or {}).items():
        votes[r.items.tolist().index(item)] = np.array(LABELS) == label
    logs = np.log(votes / votes.sum(axis=1, keepdims=True) + 1e-4)
    return [replace(b, log_prior=freeze(logs[b.first_item : b.first_item + b.n_items])) for b in blocks]


def test_a_worker_who_is_never_silent():
    """Without smoothing its silence has probability 0: that must stay out of the arithmetic."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 60)
    answers = np.where(rng.random((60, 4)) < 0.8, truth[:, None], rng.choice(3, (60, 4)))
    for r in (implicit(answers), implicit(np.where(np.arange(4) == 3, -1, answers))):
        for smoothing in (0, (0.1, 1.1)):
            model = cs.DawidSkene(estimation="em", smoothing=smoothing).fit(r)
            assert np.isfinite(model.posterior_).all()
            assert np.isfinite(model.trace_).all()
            assert np.mean(model.labels_ == np.array(LABELS)[truth]) > 0.8, smoothing
            np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)


def test_silence_tells():
    """Workers speak only about b and c: an item about which all are silent is an a, and confidently."""
    rng = np.random.default_rng(1)
    truth = rng.choice(3, 600, p=[0.8, 0.1, 0.1])
    answers = np.where(rng.random((600, 5)) < 0.9, truth[:, None], rng.choice([1, 2], (600, 5)))
    answers[(truth == 0)[:, None] & (rng.random(answers.shape) < 0.95)] = -1
    answers[answers == 0] = -1
    r = implicit(answers)
    answers, truth = in_order(answers, r), in_order(truth, r)
    model = cs.DawidSkene().fit(r)
    silent = (answers < 0).all(axis=1)
    assert (model.labels_[silent] == "a").all()
    assert model.posterior_[silent].max(axis=1).min() > 0.99
    assert np.mean(model.labels_ == np.array(LABELS)[truth]) > 0.97
    assert "a" in model.classes_.tolist()
    assert model.confusion_.shape == (5, 3, 3)  # b, c, silent
    assert model.confusion_[:, 0, 2].min() > 0.8


def test_background_rules():
    tags = {"sequence": [0, 0], "position": [0, 1], "worker": [0, 0], "label": ["B-X", "I-X"]}
    r = cs.Answers.from_frame(tags, abstain="answer")
    assert r.background == "O"
    assert r.silence_counts
    assert r.classes.tolist() == ["O", "B-X", "I-X"]
    assert r.labels.tolist() == ["B-X", "I-X"]
    plain = {"item": [0, 1], "worker": [0, 0], "label": ["x", "y"]}
    with pytest.raises(ParameterError, match="background="):
        cs.Answers.from_frame(plain, abstain="answer")
    with pytest.raises(ParameterError, match="abstain='answer'"):
        cs.Answers.from_frame(plain, background="x")
    with pytest.raises(ParameterError, match="one of 'ignore', 'answer'"):
        cs.Answers.from_frame(plain, abstain="silence")
    r = cs.Answers.from_frame(plain, abstain="answer", background="none")
    assert r.classes.tolist() == ["none", "x", "y"]
    r = cs.Answers.from_frame(plain, abstain="answer", background="y")
    assert r.classes.tolist() == ["x", "y"]
    assert r.vote_shares().tolist() == [0, 1]


def test_refusals():
    answers, _ = crowd(4)
    loud, quiet = cs.Answers.from_matrix(answers, labels=LABELS), implicit(answers)
    for fitted, other in ((quiet, loud), (loud, quiet)):
        model = cs.DawidSkene().fit(fitted)
        with pytest.raises(InputError, match="abstain="):
            model.predict_proba(other)
    with pytest.raises(ParameterError, match="sequential"):
        cs.DawidSkene(workers="sequential").fit(quiet)


def test_tags_with_silence():
    """Labelling functions that see names: O is never said, and yet most tokens are O."""
    rng = np.random.default_rng(0)
    rows = []
    for s in range(60):
        for t in (3, 4, 9):
            for w in range(4):
                if rng.random() < 0.7:
                    rows.append((s, t, w, "I-X" if t == 4 else "B-X"))
        for w in range(4):
            if rng.random() < 0.2:
                rows.append((s, int(rng.choice([0, 6, 7, 11])), w, "B-X"))
    frame = dict(zip(("sequence", "position", "worker", "label"), zip(*rows, strict=True), strict=True))
    r = cs.Answers.from_frame(frame, items=[(s, t) for s in range(60) for t in range(12)], abstain="answer")
    for coupling in (1.0, "learn"):
        model = cs.HiddenMarkov(transitions="bio", coupling=coupling).fit(r)
        labels = model.labels_.reshape(60, 12)
        right = np.array(["O"] * 3 + ["B-X", "I-X"] + ["O"] * 4 + ["B-X"] + ["O"] * 2)
        assert np.mean(labels == right) > 0.94
        silent = np.diff(r.offsets).reshape(60, 12) == 0
        assert (labels[silent & (right == "O")] == "O").all()
        np.testing.assert_array_equal(model.predict(r), model.labels_)


def test_a_misspelt_background_is_an_error():
    """It would be one more class, which some items get."""
    votes = {"item": [0, 1], "worker": ["a", "b"], "label": ["ham", "spam"]}
    with pytest.raises(cs.errors.ParameterError, match="Did you mean background='ham'"):
        cs.Answers.from_frame(votes, abstain="answer", background="hma")
    found = cs.Answers.from_frame(votes | {"label": ["normal", "spam"]}, abstain="answer", background="abnormal")
    assert found.classes.tolist() == ["abnormal", "normal", "spam"]
