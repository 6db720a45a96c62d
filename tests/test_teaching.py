"""Known labels as a teacher: what they say of the workers beyond what agreement tells."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

import consilience as cs
from command_line import run
from consilience.errors import ParameterError
from consilience.inference import teaching
from consilience.inference.hidden_answers import raise_to

# Six of nine workers take one item in four for the other class, all the same items: the three others are right.
N_ITEMS, N_KNOWN = 400, 50


def mislead(seed=0, n_items=N_ITEMS):
    """Answers of workers of whom most share a misconception, the truth, and a draw of known labels."""
    rng = np.random.default_rng(seed)
    truth, hard = rng.integers(0, 2, n_items), rng.random(n_items) < 0.25
    believed = np.where(hard, 1 - truth, truth)
    wrong = rng.random((n_items, 9)) < 0.15
    meant = np.where(np.arange(9) < 6, believed[:, None], truth[:, None])
    known = rng.permutation(n_items)[:N_KNOWN]
    return cs.Answers.from_matrix(np.where(wrong, 1 - meant, meant)), truth, {int(i): int(truth[i]) for i in known}


@pytest.fixture(scope="module")
def misled():
    r, truth, gold = mislead()
    return r, truth, gold, cs.DawidSkene().fit(r, gold=gold), cs.DawidSkene().fit(r, gold=gold, teach=False)


def log_loss(posterior, truth):
    return -np.log(np.clip(posterior[np.arange(len(truth)), truth], 1e-12, 1)).mean()


# ------------------------------------------------------------------------------------------------------- what is fitted


def make_columns(seed, n, n_classes, n_workers):
    rng = np.random.default_rng(seed)
    logs = np.log(rng.dirichlet(np.ones(n_classes), n))
    votes = np.eye(n_classes)[rng.integers(0, n_classes, (n, n_workers))].transpose(0, 2, 1)
    classes = np.broadcast_to(np.eye(n_classes), (n, n_classes, n_classes))
    return np.concatenate([logs[..., None], classes, votes], axis=2), rng.integers(0, n_classes, n)


def find_slowly(columns, truth, strength):
    """The numbers that maximise the penalised log probability, by a search that knows no derivatives."""
    centre = np.eye(columns.shape[2])[0]

    def lose(t):
        logs = columns @ t
        chances = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
        return -np.log(chances[np.arange(len(truth)), truth]).sum() + 0.5 * (strength * (t - centre) ** 2).sum()

    return minimize(lose, centre, tol=1e-10).x


@pytest.mark.parametrize(("n_classes", "ridge"), [(2, 1.0), (3, 16.0)])
def test_numbers_are_those_of_a_slow_search(n_classes, ridge):
    columns, truth = make_columns(n_classes, 40, n_classes, 4)
    strength = np.array([10.0] * (1 + n_classes) + [ridge] * 4)
    fold = np.arange(40) % 10
    found, left_out = teaching.fit_ridge(columns, truth, fold, strength, np.eye(len(strength))[0])
    np.testing.assert_allclose(found, find_slowly(columns, truth, strength), atol=2e-3)
    for k in (0, 7):  # one step of Newton is nearly all the way
        rest = find_slowly(columns[fold != k], truth[fold != k], strength)
        np.testing.assert_allclose(left_out[fold == k], columns[fold == k] @ rest, atol=0.05)


def test_few_items_see_few_directions():
    """With more workers than items, weights are found in fewer dimensions. They are the same."""
    columns, truth = make_columns(5, 12, 2, 30)
    nothing = np.zeros((40, *columns.shape[1:]))  # items of which nothing is known, and nothing can be learned
    few = teaching.average_candidates(columns, truth, np.arange(12) % 6, False)
    many = teaching.average_candidates(
        np.append(columns, nothing, 0), np.append(truth, [0] * 40), np.arange(52) % 6, False
    )
    np.testing.assert_allclose(few[0], many[0], atol=1e-8)
    np.testing.assert_allclose(few[1], many[1], atol=1e-8)
    np.testing.assert_allclose(teaching.normalise(few[2]), teaching.normalise(many[2][:12]), atol=1e-8)


def test_taught_probabilities_are_those_of_the_equation(misled):
    r, _, gold, model, plain = misled
    taught, others = model.teaching_, np.setdiff1d(np.arange(N_ITEMS), list(gold))
    logs = taught.scale[0] * np.log(np.maximum(plain.posterior_, 1e-6)) + taught.bias[0]
    for item, worker, label in zip(r.item_of_answer(), r.worker, r.label, strict=True):
        logs[item, label] += taught.weights[0, worker]
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.posterior_[others], expected[others], atol=1e-9)
    np.testing.assert_array_equal(model.posterior_[list(gold)], np.eye(2)[list(gold.values())])


def test_soft_votes_teach_by_their_probabilities():
    rng = np.random.default_rng(1)
    votes = rng.dirichlet(np.ones(3), (80, 4))
    truth = np.where(rng.random(80) < 0.8, votes[:, 0].argmax(axis=1), rng.integers(0, 3, 80))
    r, gold = cs.Answers.from_probabilities(votes), dict(enumerate(truth[:50].tolist()))
    model, plain = (cs.DawidSkene(workers="mean").fit(r, gold=gold, teach=each) for each in (True, False))
    taught = model.teaching_
    assert taught.weights[0].argmax() == 0
    logs = taught.scale[0] * np.log(np.maximum(plain.posterior_, 1e-6)) + taught.bias[0]
    expected = np.exp(logs + np.einsum("m,nmk->nk", taught.weights[0], votes))
    np.testing.assert_allclose(model.posterior_[50:], (expected / expected.sum(1, keepdims=True))[50:], atol=1e-5)


# ------------------------------------------------------------------------------------------------------ what it brings


def test_known_labels_find_a_misconception_that_most_share(misled):
    _, truth, gold, model, plain = misled
    others = np.setdiff1d(np.arange(N_ITEMS), list(gold))
    right = [np.mean(each.labels_[others] == truth[others]) for each in (plain, model)]
    assert right[0] < 0.82 < 0.9 < right[1]
    assert log_loss(model.posterior_[others], truth[others]) < log_loss(plain.posterior_[others], truth[others]) - 0.15
    taught = model.teaching_
    assert taught.chosen == "weights of workers"
    assert taught.weights[0, 6:].min() > taught.weights[0, :6].max()
    assert taught.n_known == N_KNOWN
    # What cross validation says of it holds for the other items.
    assert taught.accuracy == pytest.approx(right[1], abs=0.08)
    assert taught.log_loss == pytest.approx(log_loss(model.posterior_[others], truth[others]), abs=0.15)


def test_where_workers_err_independently_little_changes():
    crowd = cs.simulate.independent(500, n_workers=8, n_classes=3, seed=4)
    losses = []
    for seed in range(4):
        known = np.random.default_rng(seed).permutation(500)[:20]
        gold, others = {int(i): int(crowd.truth[i]) for i in known}, np.setdiff1d(np.arange(500), known)
        for teach in ("auto", False):
            model = cs.DawidSkene().fit(crowd.responses, gold=gold, teach=teach)
            losses.append(log_loss(model.posterior_[others], crowd.truth[others]))
    assert np.mean(losses[::2]) < np.mean(losses[1::2]) + 0.01


def test_each_known_item_is_judged_as_if_its_label_were_not_known(misled):
    """With labels at random nothing can be learned: cross-fitted probabilities do not know them."""
    r, truth, gold, model, plain = misled
    lies = {item: int(np.random.default_rng(item).integers(2)) for item in range(300)}
    told = cs.DawidSkene().fit(r, gold=lies)
    guessed = told.result_.cross_fitted.argmax(axis=1) == np.array(list(lies.values()))
    assert 0.4 < guessed.mean() < 0.6
    assert told.teaching_.log_loss > 0.65
    # In the order of the items; without teaching they are what calibration judged.
    items = np.sort(list(gold))
    assert log_loss(model.result_.cross_fitted, truth[items]) == pytest.approx(model.teaching_.log_loss)
    calibrated = plain.result_.calibrated
    blind = raise_to(calibrated.blind, calibrated.calibration.power_before)
    np.testing.assert_array_equal(plain.result_.cross_fitted, blind)
    n_right = model.result_.calibrated.calibration.n_right
    assert n_right == round(model.teaching_.accuracy * N_KNOWN) > calibrated.calibration.n_right


def test_of_many_known_labels_a_part_teaches(monkeypatch, misled):
    r, truth, *_ = misled
    monkeypatch.setattr(teaching, "MOST_LESSONS", 60)
    model = cs.DawidSkene().fit(r, gold=dict(enumerate(truth[:200].tolist())))
    assert model.teaching_.n_known == 60
    assert np.mean(model.result_.cross_fitted.argmax(axis=1) == truth[:200]) > 0.85


# ---------------------------------------------------------------------------------------------------- kinds of answers


def test_positions_of_sequences():
    """The path goes by what was taught too, and sequences are left out as a whole."""
    crowd = cs.simulate.sequences(40, length=12, n_workers=4, n_classes=3, seed=2)
    r, owner, rng = crowd.responses, crowd.responses.sequences.of_items(), np.random.default_rng(0)
    # Three more repeat what one of them said.
    said = np.full((r.n_items, 7), -1)
    said[r.item_of_answer(), r.worker] = r.label
    said[:, 4:] = np.where(rng.random((r.n_items, 3)) < 0.9, said[:, [0]], -1)
    r = cs.Answers.from_matrix(said, lengths=np.bincount(owner))
    known = np.flatnonzero(owner < 15)
    gold = {(int(owner[i]), int(r.sequences.position[i])): int(crowd.truth[i]) for i in known}
    scores = []
    for teach in (False, "auto"):
        model = cs.HiddenMarkov().fit(r, gold=gold, teach=teach)
        scores.append(np.mean(model.labels_[owner >= 15] == crowd.truth[owner >= 15]))
        assert (model.predict(r) == model.labels_)[owner >= 15].mean() > 0.98
    assert model.teaching_.n_known == len(known)
    assert scores[1] > scores[0] + 0.02


def test_tags_are_taught_by_themselves():
    """A worker who always takes one tag for another is trusted in the others."""
    project = cs.simulate.tags(200, seed=1)
    first = cs.TagSets().fit(project.tags)
    items, tags = first.to_frame()["item"].to_pylist(), first.tags_.tolist()
    gold = {items[i]: [tags[t] for t in np.flatnonzero(project.truth[i])] for i in range(60)}
    model = cs.TagSets().fit(project.tags, gold=gold)
    taught = model.teaching_
    assert taught.weights.shape == (len(tags), len(first.result_.names.workers))
    assert taught.n_known == 60 * len(tags)
    others = np.arange(60, 200)
    probability = np.where(project.truth, model.tag_posterior_, 1 - model.tag_posterior_)[others]
    before = np.where(project.truth, first.tag_posterior_, 1 - first.tag_posterior_)[others]
    assert np.log(probability).mean() > np.log(before).mean() - 0.01
    np.testing.assert_allclose(model.worker_report()["weight"].to_pylist(), taught.weights.mean(axis=0), atol=1e-3)


def test_networks_and_questions(misled):
    crowd = cs.simulate.network(150, n_workers=5, seed=1)
    gold = {int(i): int(crowd.truth[i]) for i in range(20)}
    field = cs.MarkovField(coupling=0.5).fit(crowd.responses, graph=crowd.graph, gold=gold)
    assert field.teaching_.n_known == 20
    r, _, gold, *_ = misled
    table = {"item": r.item_of_answer(), "worker": r.worker, "a": r.label, "b": 1 - r.label}
    fused = cs.fuse(table, label=["a", "b"], gold={"a": gold})
    assert fused["a"].teaching_.chosen == "weights of workers"
    assert fused["b"].teaching_ is None


# ------------------------------------------------------------------------------------------- saved, predicted, updated


def test_other_items_are_judged_in_the_same_way(misled, tmp_path):
    *_, model, plain = misled
    more, labels, _ = mislead(7)
    predicted = model.predict_proba(more)
    assert np.mean(predicted.argmax(axis=1) == labels) > np.mean(plain.predict(more) == labels) + 0.1
    loaded = cs.load(model.save(tmp_path / "taught.model"))
    np.testing.assert_array_equal(loaded.predict_proba(more), predicted)
    np.testing.assert_array_equal(loaded.teaching_.weights, model.teaching_.weights)
    assert repr(loaded.teaching_) == repr(model.teaching_)
    # A new worker has no weight, and known labels stay.
    known = {"item": [900, 900, 901], "worker": [8, 99, 8], "label": [1, 1, 0]}
    with pytest.warns(cs.errors.DataWarning, match="not there at the fit"):
        np.testing.assert_array_equal(loaded.predict(known, gold={901: 1}), [1, 1])


def test_an_update_teaches_again_if_the_fit_did(misled, tmp_path):
    r, _, gold, *_ = misled
    path = cs.DawidSkene().fit(r).save(tmp_path / "a.model")
    assert cs.load(path).teaching_ is None
    updated = cs.load(path).update(gold=gold)
    assert updated.teaching_.chosen == "weights of workers"
    never = cs.load(cs.DawidSkene().fit(r, teach=False).save(path)).update(gold=gold)
    assert never.teaching_ is None


def test_what_is_said_of_it(misled):
    _, _, gold, model, _ = misled
    words = "50 known labels taught how much to trust each worker: on those that were left out, log loss went from"
    assert words in model.result_.explain_calibration()
    weights = dict(zip(*(model.worker_report()[name].to_pylist() for name in ("worker", "weight")), strict=True))
    assert weights == pytest.approx(dict(enumerate(model.teaching_.weights[0])), abs=1e-3)
    unknown = next(i for i in range(N_ITEMS) if i not in gold)
    explained = model.explain(unknown)
    label, against = (model.classes_.tolist().index(each) for each in (explained.label, explained.against))
    odds = np.log(model.posterior_[unknown, label] / model.posterior_[unknown, against])
    assert sum(part.weight for part in explained.parts) == pytest.approx(odds)


def test_at_the_shell(misled, tmp_path):
    r, _, gold, *_ = misled
    answers = {"item": r.item_of_answer(), "worker": r.worker, "label": r.label}
    for name, table in (("answers", answers), ("known", {"item": list(gold), "label": list(gold.values())})):
        rows = zip(*(np.asarray(column).tolist() for column in table.values()), strict=True)
        lines = [",".join(table), *(",".join(map(str, row)) for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    files = "fuse", tmp_path / "answers.csv", "--gold", tmp_path / "known.csv", "--json"
    assert '"chosen": "weights of workers"' in run(*files).stdout
    assert '"teaching": null' in run(*files, "--teach", "no").stdout
    wrong = run(*files, "--teach", "perhaps")
    assert wrong.exit_code == 2
    assert "'perhaps' is not one of 'auto', 'yes', 'no'" in wrong.stderr


# ---------------------------------------------------------------------------------------------------------- odd cases

SAME = dict.fromkeys(range(20), 1)
CANNOT = {
    "none are known": ({}, None, "0 known labels cannot teach"),
    "few are known": ({}, {0: 1, 1: 0}, "2 known labels cannot teach.*at least 10 items"),
    "one class": ({}, SAME, "All 20 known labels are the same.*of other classes too. Or leave"),
    "not calibrated": ({"calibration": "none"}, "drawn", "not to be calibrated.*calibration='hidden answers'"),
    "nothing fitted": ({"max_iter": 0}, "drawn", "not to be calibrated"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_teach(misled, case):
    r, _, drawn, *_ = misled
    options, gold, message = CANNOT[case]
    gold = drawn if isinstance(gold, str) else gold
    assert cs.DawidSkene(**options).fit(r, gold=gold).teaching_ is None
    with pytest.raises(ParameterError, match=message):
        cs.DawidSkene(**options).fit(r, gold=gold, teach=True)


def test_all_items_may_be_known_and_classes_may_be_many(misled, monkeypatch):
    r, truth, gold, *_ = misled
    model = cs.DawidSkene().fit(r, gold=dict(enumerate(truth.tolist())))
    assert model.teaching_.accuracy > 0.9
    np.testing.assert_array_equal(model.labels_, truth)
    monkeypatch.setattr(teaching, "MOST_LESSON_NUMBERS", 200)
    assert cs.DawidSkene().fit(r, gold=gold).teaching_ is None
    with pytest.raises(ParameterError, match=r"2 classes are too many\. Leave out"):
        cs.DawidSkene().fit(r, gold=gold, teach=True)


def test_choices_that_there_are_not(misled):
    r, _, gold, *_ = misled
    for value in ("yes", 1, None):
        with pytest.raises(ParameterError, match="'auto', True or False"):
            cs.DawidSkene().fit(r, gold=gold, teach=value)
    with pytest.raises(ParameterError, match="known labels tell nothing of workers"):
        cs.MajorityVote().fit(r, gold=gold, teach=True)
    assert cs.DawidSkene().partial_fit(r, gold=gold).teaching_ is None


def test_the_order_of_rows_and_threads_do_not_matter(misled):
    r, _, gold, model, _ = misled
    rows = np.random.default_rng(3).permutation(len(r.worker))
    table = {"item": r.item_of_answer()[rows], "worker": r.worker[rows], "label": r.label[rows]}
    shuffled = cs.Answers.from_frame(table, items=r.items)
    again = cs.DawidSkene().fit(shuffled, gold=gold, engine=cs.engines.Threads(2))
    np.testing.assert_allclose(again.posterior_, model.posterior_, atol=1e-8)


def test_batches_say_that_they_drop_what_was_taught(misled):
    r, _, _, taught, untaught = misled
    batch = {"item": [9001, 9002], "worker": r.workers[:2].tolist(), "label": r.classes[:2].tolist()}
    with pytest.warns(cs.errors.DataWarning, match="taught this model about its workers is dropped"):
        assert copy.deepcopy(taught).partial_fit(batch).teaching_ is None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        copy.deepcopy(untaught).partial_fit(batch)
    assert not [each for each in caught if "taught" in str(each.message)]
