"""Features of items: a classifier that learns from the fused labels is the prior of each item."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, save_npz

import consilience as cs
from consilience.answers.features import match_features
from consilience.answers.item_priors import ItemPriors
from consilience.errors import DataWarning, InputError, NotFittedError, ParameterError
from consilience.formats.sources import open_item_data
from consilience.inference.estimator import renew
from consilience.inference.features import N_CLASSIFIER_FOLDS, LinearTrainer, find_folds, spread_labels
from consilience.inference.hidden_answers import POWERS, raise_to, weigh_powers
from consilience.inference.observations import Observations
from consilience.results.calibration import score_by_classifier

sklearn = pytest.importorskip("sklearn")


def make_crowd(n_items=400, n_classes=3, n_features=6, apart=1.5, answers=3, seed=0, **keywords):
    """Features around a centre for each class, and workers of accuracy .4 to .8."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    features = apart * np.eye(n_classes, n_features)[truth] + rng.normal(size=(n_items, n_features))
    n_workers = 12
    accuracy = rng.uniform(0.4, 0.8, n_workers)
    votes = np.full((n_items, n_workers), -1)
    for n in range(n_items):
        for m in rng.permutation(n_workers)[:answers]:
            votes[n, m] = truth[n] if rng.random() < accuracy[m] else rng.integers(0, n_classes)
    return cs.Answers.from_matrix(votes, classes=range(n_classes), **keywords), features, truth


R, X, TRUTH = make_crowd()


@pytest.fixture(scope="module")
def feature_fit():
    return cs.DawidSkene().fit(R, features=X)


def test_features_that_tell_something_help(feature_fit):
    alone = cs.DawidSkene().fit(R)
    right = [cs.metrics.accuracy(TRUTH, model.labels_) for model in (alone, feature_fit)]
    losses = [cs.metrics.log_loss(TRUTH, model.posterior_, model.classes_) for model in (alone, feature_fit)]
    assert right[1] > right[0] + 0.04
    assert losses[1] < losses[0]
    assert feature_fit.result_.feature_result.findings.used
    assert "Features are used" in feature_fit.explain_features()
    assert feature_fit.result_.feature_result.findings.accuracy > 0.6


@pytest.mark.parametrize("n_features", [3, 60])
def test_features_that_tell_nothing_have_no_say(n_features):
    noise = np.random.default_rng(1).normal(size=(R.n_items, n_features))
    alone = cs.DawidSkene().fit(R)
    with pytest.warns(DataWarning, match="Features are not used.*in the order of the items, which begin with 0, 1, 2"):
        model = cs.DawidSkene().fit(R, features=noise)
    np.testing.assert_array_equal(model.posterior_, alone.posterior_)
    assert "nothing shows that they tell anything" in model.explain_features()
    assert model.classifier_ is None
    assert len(model.disagreements()) == 0
    np.testing.assert_array_equal(model.predict_proba(R, features=noise), alone.predict_proba(R))


def test_folds_hold_whole_sequences_and_go_by_ids():
    r = cs.Answers.from_matrix(np.zeros((60, 1), int), lengths=[4] * 15)
    fold = find_folds(r, np.arange(60), seed=0)[1].reshape(15, 4)
    assert (fold == fold[:, :1]).all()
    assert len(np.unique(fold)) == N_CLASSIFIER_FOLDS
    table = {"item": list("abcdefghij"), "worker": [0] * 10, "label": [1] * 10}
    here = cs.Answers.from_frame(table)
    there = cs.Answers.from_frame({name: values[::-1] for name, values in table.items()})
    mine, theirs = (find_folds(each, np.arange(10), seed=3)[1] for each in (here, there))
    np.testing.assert_array_equal(mine, theirs[::-1])


def test_the_default_is_logistic_regression_of_soft_labels():
    """The slow twin: gradient of the loss that the module promises is zero at what was found."""
    rng = np.random.default_rng(0)
    rows, known = rng.normal(size=(60, 4)), rng.dirichlet(np.ones(3), 60)
    judge = LinearTrainer(rows, 3, np.arange(60), np.arange(60) % 5).train(np.arange(60), known, 0.1)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    scores = np.exp(z @ judge.weights.T + judge.offsets)
    g = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(judge.find_probabilities(rows), g, rtol=1e-9)
    soft = np.zeros((60, 3))
    np.add.at(soft, spread_labels(known)[:2], spread_labels(known)[2])
    np.testing.assert_allclose(soft, known, atol=0.02)  # up to what is left out
    slope = (g - soft).T @ z + judge.weights / 0.1
    assert np.abs(slope).max() / 60 < 1e-3


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict", "lists", "parquet", "npy", "npz", "csv"])
def test_features_in_any_form(kind, tmp_path):
    order = np.random.default_rng(0).permutation(R.n_items)
    columns = {"item": R.items[order]} | {f"x{i}": X[order, i] for i in range(X.shape[1])}
    lists = {"item": R.items[order].tolist(), "x": X[order].tolist()}
    if kind == "pandas":
        given = pd.DataFrame(columns)
    elif kind == "polars":
        given = pl.DataFrame(lists)
    elif kind == "arrow":
        given = pa.table(lists)
    elif kind == "dict":
        given = columns
    elif kind == "lists":
        given = pd.DataFrame(lists)
    elif kind == "parquet":
        given = tmp_path / "x.parquet"
        pq.write_table(pa.table(lists), given)
    elif kind == "npy":
        given = tmp_path / "x.npy"
        np.save(given, X)
    elif kind == "npz":
        given = tmp_path / "x.npz"
        save_npz(given, csr_matrix(X))
    else:
        given = tmp_path / "x.csv"
        pd.DataFrame(columns).to_csv(given, index=False)
    found = match_features(open_item_data(given, "features"), R)
    np.testing.assert_array_equal(found.item, np.arange(R.n_items))
    np.testing.assert_allclose(found.rows.toarray() if kind == "npz" else found.rows, X)


def test_items_without_features_have_their_answers():
    table = pd.DataFrame({"item": R.items[:300], "x": list(X[:300])})
    with pytest.warns(DataWarning, match="100 of 400 items have no features"):
        model = cs.DawidSkene(calibration="none").fit(R, features=table)
    assert model.result_.feature_result.findings.n_items == 300
    assert set(model.disagreements()["item"].to_pylist()) <= set(range(300))


def test_items_without_answers_are_judged_by_the_classifier():
    r, rows, truth = make_crowd(seed=3)
    silent = np.arange(r.n_items) >= 300
    shown = r.keep(~silent[r.item_of_answer()])
    model = cs.DawidSkene(calibration="none").fit(shown, features=rows)
    assert model.result_.feature_result.findings.n_items == 300
    assert cs.metrics.accuracy(truth[silent], model.labels_[silent]) > 0.65
    new, more, expected = make_crowd(seed=4, apart=1.5)
    nobody = new.keep(np.zeros(new.n_responses, bool))
    found = model.predict_proba(nobody, features=more)
    assert cs.metrics.accuracy(expected, model.classes_[found.argmax(axis=1)]) > 0.6
    with_answers = model.predict(new, features=more)
    assert cs.metrics.accuracy(expected, with_answers) > cs.metrics.accuracy(expected, model.predict(new))


def test_models_without_features_say_so(feature_fit):
    model = cs.DawidSkene().fit(R)
    for ask in (model.explain_features, model.disagreements):
        with pytest.raises(NotFittedError, match="without features"):
            ask()
    with pytest.raises(NotFittedError, match="without features"):
        model.predict_proba(R, features=X)
    with pytest.raises(InputError, match="6 features, and these are 2"):
        feature_fit.predict_proba(R, features=X[:, :2])


def test_the_default_classifier_is_saved(tmp_path, feature_fit):
    back = cs.load(feature_fit.save(tmp_path / "m"))
    np.testing.assert_array_equal(back.predict_proba(R, features=X), feature_fit.predict_proba(R, features=X))
    assert back.explain_features() == feature_fit.explain_features()
    assert back.disagreements().equals(feature_fit.disagreements())
    np.testing.assert_allclose(back.classifier_.predict_proba(X), feature_fit.classifier_.predict_proba(X))


def test_fuse_takes_features_and_says_so():
    model = cs.fuse(R, features=X)
    assert model.result_.feature_result.findings.used
    assert model.comparison_.verdict == "better"
    with pytest.raises(ParameterError, match="takes neither features"):
        cs.fuse(R, features=X, model="majority")


def test_the_command_line_takes_features(tmp_path):
    from command_line import run

    answers = pd.DataFrame({"task": R.item_of_answer(), "worker": R.worker, "label": R.label})
    answers.to_csv(tmp_path / "answers.csv", index=False)
    pq.write_table(pa.table({"task": R.items, "x": X.tolist()}), tmp_path / "x.parquet")
    result = run("fuse", tmp_path / "answers.csv", "--features", tmp_path / "x.parquet", "--calibration=none", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["features"]
    assert found["used"]
    assert found["explanation"].startswith("Features are used")


def test_chains_and_fields_take_features():
    crowd = cs.simulate.sequences(60, length=8, n_workers=5, n_classes=3, answers_per_item=2, seed=2)
    truth = np.asarray(crowd.truth)
    rows = np.eye(3)[truth] + np.random.default_rng(0).normal(size=(len(truth), 3))
    chain = cs.HiddenMarkov(calibration="none", coupling=0.5)
    alone, model = renew(chain).fit(crowd.responses), renew(chain).fit(crowd.responses, features=rows)
    assert cs.metrics.accuracy(truth, model.labels_) > cs.metrics.accuracy(truth, alone.labels_)
    keys = {"sequence": [i[0] for i in crowd.responses.items], "position": [i[1] for i in crowd.responses.items]}
    matched = chain.fit(crowd.responses, features={**keys, "x": list(rows)})
    np.testing.assert_array_equal(matched.posterior_, model.posterior_)


def test_gold_weights_and_silence():
    gold = {n: int(TRUTH[n]) for n in range(20)}
    model = cs.DawidSkene().fit(R, features=X, gold=gold)
    assert model.labels_[:20].tolist() == list(gold.values())
    truth = np.random.default_rng(0).integers(0, 2, 150)
    right = np.random.default_rng(3).beta(8, 1.5, (150, 4))
    soft = np.where(truth[:, None, None] == np.arange(2), right[:, :, None], 1 - right[:, :, None])
    rows = np.eye(2)[truth] + 0.5 * np.random.default_rng(1).normal(size=(150, 2))
    model = cs.DawidSkene().fit(cs.Answers.from_probabilities(soft), features=rows)
    assert cs.metrics.accuracy(truth, model.labels_) > 0.9
    votes = np.where(np.random.default_rng(2).random((150, 4)) < 0.6, truth[:, None], -1)
    votes[votes == 0] = -1
    r = cs.Answers.from_matrix(votes, abstain="answer", background=0, classes=[0, 1])
    model = cs.DawidSkene().fit(r, features=rows)
    assert model.result_.feature_result.findings.n_items == 150
    assert cs.metrics.accuracy(truth, model.labels_) > 0.9


def test_the_classifier_tells_posteriors_that_are_too_sure():
    """Labels of a classifier that is right in four of five cases show how sure one can be of each item."""
    rng = np.random.default_rng(5)
    honest = rng.dirichlet([0.7, 0.7], 3000)
    truth = (rng.random(3000) < honest[:, 1]).astype(int)
    code = np.where(rng.random(3000) < 0.8, truth, 1 - truth)
    observations = Observations(cs.Answers.from_matrix(truth[:, None]))
    items = np.arange(3000)
    for power in (0.3, 1.0):
        scores = score_by_classifier(observations, raise_to(honest, 1 / power), items, code, items)
        best = POWERS[scores.sum(axis=0).argmax()]
        assert power / 1.6 < best < power * 1.6
        assert POWERS[weigh_powers(scores)[0]].max() >= power
    # What the classifier itself has said does not count as evidence.
    known = observations.with_priors(ItemPriors(items, 0.6 * np.eye(2)[code] + 0.2), np.array([0.5, 0.5]))
    with_opinion = honest * np.exp(known.log_prior)
    with_opinion /= with_opinion.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        score_by_classifier(known, with_opinion, items, code, items),
        score_by_classifier(observations, honest, items, code, items),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("answers", "reason"),
    [([[0]], "only 1 item"), ([[0, 0]] * 30, "all items have the same label"), ([[0], [1]], "only 2 items with")],
)
def test_too_little_to_learn_from(answers, reason, tmp_path):
    r = cs.Answers.from_matrix(answers, classes=[0, 1])
    with pytest.warns(DataWarning, match=f"Features are not used.*{reason}"):
        model = cs.DawidSkene().fit(r, features=np.random.default_rng(0).normal(size=(len(answers), 2)))
    assert not model.result_.feature_result.findings.used
    assert cs.load(model.save(tmp_path / "m")).explain_features() == model.explain_features()


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (X[:7], r"each of the 400 items.*the shape \(7, "),
        (np.where(X > 2, np.nan, X), "missing or infinite"),
        (1e20 * X, "must not be larger"),
        (pd.DataFrame({"item": R.items, "x": ["a"] * 400}), "must hold numbers"),
        (pd.DataFrame({"item": [0, 0], "x": [1, 2]}), "several rows"),
        (pd.DataFrame({"item": [900], "x": [1]}), "None of the 1 "),
        ({"item": [0, 1], "x": [[1, 2], [3]]}, "lists of numbers of one length"),
    ],
)
def test_bad_features_are_refused(features, words):
    with pytest.raises(InputError, match=words):
        cs.DawidSkene().fit(R, features=features)


def test_gaps_are_named():

    gaps = pd.DataFrame(X, columns=list("abcdef")).assign(item=R.items)
    gaps.loc[3, "b"] = np.nan
    with pytest.raises(InputError, match=r"numbers \(1\). The first one is in column 'b', of item 3"):
        cs.DawidSkene().fit(R, features=gaps)
