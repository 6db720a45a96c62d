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
from benchmarks import real_crowds
from consilience.answers.item_tables import ItemPriors, match_features
from consilience.errors import DataWarning, InputError, NotFittedError, ParameterError
from consilience.formats.sources import open_item_data
from consilience.inference.classifiers import LinearTrainer, spread_labels
from consilience.inference.estimator import renew
from consilience.inference.guidance import (
    N_FOLDS,
    choose_strength,
    find_folds,
    log_loss,
    loss_of_answers,
    make_trainers,
)
from consilience.inference.hidden_answers import POWERS, find_leads, raise_to
from consilience.inference.sources import Source
from consilience.results.calibration import score_by_classifier
from real_data import needs_data

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
def guided():
    return cs.DawidSkene().fit(R, features=X)


def test_features_that_tell_something_help(guided):
    alone = cs.DawidSkene().fit(R)
    right = [cs.metrics.accuracy(TRUTH, model.labels_) for model in (alone, guided)]
    losses = [cs.metrics.log_loss(TRUTH, model.posterior_, model.classes_) for model in (alone, guided)]
    assert right[1] > right[0] + 0.04
    assert losses[1] < losses[0]
    assert guided.feature_findings_.used
    assert "Features are used" in guided.explain_features()
    assert guided.feature_findings_.accuracy > 0.6


@pytest.mark.parametrize("n_features", [3, 60])
def test_features_that_tell_nothing_have_no_say(n_features):
    noise = np.random.default_rng(1).normal(size=(R.n_items, n_features))
    alone = cs.DawidSkene().fit(R)
    with pytest.warns(DataWarning, match="Features are not used.*in the order of the items, which begin with 0, 1, 2"):
        model = cs.DawidSkene().fit(R, features=noise)
    np.testing.assert_array_equal(model.posterior_, alone.posterior_)
    assert "nothing shows that they tell anything" in model.explain_features()
    assert model.classifier_ is None
    assert len(model.disagreements()) == len(model.classifier_report()) == 0
    np.testing.assert_array_equal(model.predict_proba(R, features=noise), alone.predict_proba(R))


def test_a_classifier_is_judged_by_the_probability_of_the_answers():
    """The loss is minus log p(answers | features) but for what does not depend on the classifier."""
    rng = np.random.default_rng(0)
    alone, judged = rng.dirichlet(np.ones(3), 40), rng.dirichlet(np.ones(3), (2, 40))
    chances = (
        alone / alone.mean(axis=0) * rng.uniform(0.1, 1, (40, 1))
    )  # p(answers | class), by which `alone` came about
    losses = [loss_of_answers(alone, each) for each in judged]
    logs = [np.log((chances * each).sum(axis=1)) for each in judged]
    np.testing.assert_allclose(losses[0] - losses[1], logs[1] - logs[0], atol=1e-12)


def test_better_labels_call_for_a_stronger_classifier():
    """Noisy labels call for a small C. One that has learned from the true labels may be surer than these are."""
    r, features, truth = make_crowd(n_classes=4, n_features=12, apart=3, answers=2, seed=3)
    alone = cs.DawidSkene(calibration="none").fit(r).posterior_
    rows, units = np.arange(r.n_items), np.arange(r.n_items)
    trainers = make_trainers(cs.DawidSkene(), r, match_features(features, r))
    by = alone, rows, units, units % 5
    weak, gain, error = choose_strength(trainers, alone, *by, log_loss)
    assert gain > error
    assert weak < choose_strength(trainers, np.eye(4)[truth], *by, loss_of_answers)[0]


def test_folds_hold_whole_sequences_and_go_by_ids():
    r = cs.Answers.from_matrix(np.zeros((60, 1), int), lengths=[4] * 15)
    fold = find_folds(r, np.arange(60), seed=0)[1].reshape(15, 4)
    assert (fold == fold[:, :1]).all()
    assert len(np.unique(fold)) == N_FOLDS
    table = {"item": list("abcdefghij"), "worker": [0] * 10, "label": [1] * 10}
    here = cs.Answers.from_frame(table)
    there = cs.Answers.from_frame({name: values[::-1] for name, values in table.items()})
    mine, theirs = (find_folds(each, np.arange(10), seed=3)[1] for each in (here, there))
    np.testing.assert_array_equal(mine, theirs[::-1])


def test_the_default_is_logistic_regression_of_soft_labels():
    """The slow twin: gradient of the loss that the module promises is zero at what was found."""
    rng = np.random.default_rng(0)
    rows, known = rng.normal(size=(60, 4)), rng.dirichlet(np.ones(3), 60)
    judge = LinearTrainer(rows, 3, 0.1).train(np.arange(60), known)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    scores = np.exp(z @ judge.weights.T + judge.offsets)
    g = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(judge.judge(rows), g, rtol=1e-9)
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
        model = cs.DawidSkene().fit(R, features=table)
    assert model.feature_findings_.n_items == 300
    assert set(model.disagreements()["item"].to_pylist()) <= set(range(300))


def test_items_without_answers_are_judged_by_the_classifier():
    r, rows, truth = make_crowd(seed=3)
    silent = np.arange(r.n_items) >= 300
    shown = r.keep(~silent[r.item_of_answer()])
    model = cs.DawidSkene().fit(shown, features=rows)
    assert model.feature_findings_.n_items == 300
    assert cs.metrics.accuracy(truth[silent], model.labels_[silent]) > 0.65
    new, more, expected = make_crowd(seed=4, apart=1.5)
    nobody = new.keep(np.zeros(new.n_responses, bool))
    found = model.predict_proba(nobody, features=more)
    assert cs.metrics.accuracy(expected, model.classes_[found.argmax(axis=1)]) > 0.6
    with_answers = model.predict(new, features=more)
    assert cs.metrics.accuracy(expected, with_answers) > cs.metrics.accuracy(expected, model.predict(new))


def test_any_classifier_will_do():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import LinearSVC

    forest = RandomForestClassifier(8, random_state=0, min_samples_leaf=5)
    for classifier in (forest, make_pipeline(MinMaxScaler(), forest)):
        model = cs.DawidSkene(classifier=classifier, calibration="none").fit(R, features=X)
        assert model.feature_findings_.used
        assert not hasattr(classifier, "classes_")
        assert cs.metrics.accuracy(TRUTH, model.classifier_.predict(X)) > 0.7
        assert np.isfinite(model.posterior_).all()
    with pytest.raises(ParameterError, match="classifier"):
        cs.DawidSkene(classifier=LinearSVC()).fit(R, features=X)


def test_the_classifier_can_be_used_afterwards(guided):
    pipeline = guided.classifier_
    np.testing.assert_allclose(pipeline.predict_proba(X), guided.result_.guidance.guide.judge.judge(X), rtol=1e-6)
    assert cs.metrics.accuracy(TRUTH, pipeline.predict(X)) > 0.7


ENDS = [f"{name}_{end}" for name in ("accuracy", "informativeness") for end in ("low", "high")]


def test_reports(guided):
    report = guided.classifier_report().to_pylist()[0]
    assert report["worker"] == "classifier"
    assert report["answers"] == R.n_items
    assert 0.6 < report["accuracy"] < 0.95
    assert len(guided.worker_report()) == R.n_workers
    table = guided.disagreements().to_pandas()
    assert (table["crowd_label"] != table["classifier_label"]).all()
    product = table["crowd_confidence"] * table["classifier_confidence"]
    assert (np.diff(product) <= 0).all()
    assert list(table.columns)[:2] == ["item", "label"]
    assert len(guided.disagreements(5)) == 5
    # Either may be wrong: both are right far less often than elsewhere.
    crowd_right = (table["crowd_label"] == TRUTH[table["item"]]).mean()
    assert crowd_right < 0.7


def test_models_without_features_say_so(guided):
    model = cs.DawidSkene().fit(R)
    for ask in (model.explain_features, model.classifier_report, model.disagreements):
        with pytest.raises(NotFittedError, match="without features"):
            ask()
    with pytest.raises(NotFittedError, match="without features"):
        model.predict_proba(R, features=X)
    with pytest.raises(InputError, match="6 features, and these are 2"):
        guided.predict_proba(R, features=X[:, :2])


def test_the_default_classifier_is_saved(tmp_path, guided):
    back = cs.load(guided.save(tmp_path / "m"))
    np.testing.assert_array_equal(back.predict_proba(R, features=X), guided.predict_proba(R, features=X))
    assert back.explain_features() == guided.explain_features()
    assert back.disagreements().equals(guided.disagreements())
    assert back.classifier_report().drop_columns(ENDS).equals(guided.classifier_report().drop_columns(ENDS))
    np.testing.assert_allclose(back.classifier_.predict_proba(X), guided.classifier_.predict_proba(X))


def test_other_classifiers_are_not_saved(tmp_path):
    from sklearn.naive_bayes import GaussianNB

    model = cs.DawidSkene(classifier=GaussianNB()).fit(R, features=X)
    back = cs.load(model.save(tmp_path / "m"))
    assert back.explain_features() == model.explain_features()
    for ask in (lambda: back.classifier_, lambda: back.predict_proba(R, features=X)):
        with pytest.raises(NotFittedError, match="was not saved"):
            ask()


def test_fuse_takes_features_and_says_so():
    model = cs.fuse(R, features=X)
    assert model.feature_findings_.used
    assert model.comparison_.verdict == "better"
    with pytest.raises(ParameterError, match="takes neither features"):
        cs.fuse(R, features=X, model="majority")


def test_the_command_line_takes_features(tmp_path):
    from command_line import run

    answers = pd.DataFrame({"task": R.item_of_answer(), "worker": R.worker, "label": R.label})
    answers.to_csv(tmp_path / "answers.csv", index=False)
    pq.write_table(pa.table({"task": R.items, "x": X.tolist()}), tmp_path / "x.parquet")
    result = run("fuse", tmp_path / "answers.csv", "--features", tmp_path / "x.parquet", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["features"]
    assert found["used"]
    assert found["explanation"].startswith("Features are used")
    shown = run("fuse", tmp_path / "answers.csv", "--features", tmp_path / "x.parquet")
    assert "Features are used" in shown.stdout


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
    assert model.feature_findings_.n_items == 150
    assert cs.metrics.accuracy(truth, model.labels_) > 0.9


def test_the_classifier_tells_posteriors_that_are_too_sure():
    """Labels of a classifier that is right in four of five cases show how sure one can be of each item."""
    rng = np.random.default_rng(5)
    honest = rng.dirichlet([0.7, 0.7], 3000)
    truth = (rng.random(3000) < honest[:, 1]).astype(int)
    code = np.where(rng.random(3000) < 0.8, truth, 1 - truth)
    source = Source(cs.Answers.from_matrix(truth[:, None]))
    items = np.arange(3000)
    for power in (0.3, 1.0):
        scores = score_by_classifier(source, raise_to(honest, 1 / power), items, code, items)
        best = POWERS[scores.sum(axis=0).argmax()]
        assert power / 1.6 < best < power * 1.6
        lead, error = find_leads(scores)
        assert POWERS[lead <= error].max() >= power
    # What the classifier itself has said does not count as evidence.
    known = source.with_priors(ItemPriors(items, 0.6 * np.eye(2)[code] + 0.2), np.array([0.5, 0.5]))
    with_opinion = honest * np.exp(known.log_prior)
    with_opinion /= with_opinion.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        score_by_classifier(known, with_opinion, items, code, items),
        score_by_classifier(source, honest, items, code, items),
        atol=1e-6,
    )


@pytest.mark.robust
@needs_data
@pytest.mark.parametrize(("name", "least"), [("music", 0.795), ("sentence_polarity", 0.916)])
def test_real_crowds(name, least):
    crowd = real_crowds.load(name)
    table = {"item": crowd.items, "x": list(crowd.features)}
    alone, model = cs.DawidSkene().fit(crowd.responses), cs.DawidSkene().fit(crowd.responses, features=table)
    scores = [cs.evaluate(each, crowd.gold) for each in (alone, model)]
    assert scores[1].macro_f1 > max(least, scores[0].macro_f1)
    assert scores[1].log_loss < scores[0].log_loss


@pytest.mark.parametrize(
    ("answers", "reason"),
    [([[0]], "only 1 item"), ([[0, 0]] * 30, "all items have the same label"), ([[0], [1]], "only 2 items with")],
)
def test_too_little_to_learn_from(answers, reason, tmp_path):
    r = cs.Answers.from_matrix(answers, classes=[0, 1])
    with pytest.warns(DataWarning, match=f"Features are not used.*{reason}"):
        model = cs.DawidSkene().fit(r, features=np.random.default_rng(0).normal(size=(len(answers), 2)))
    assert not model.feature_findings_.used
    assert cs.load(model.save(tmp_path / "m")).explain_features() == model.explain_features()


def test_rows_in_another_order_are_the_same_fit():
    order = np.random.default_rng(7).permutation(R.n_items)
    table = pd.DataFrame({"item": R.item_of_answer(), "worker": R.worker, "label": R.label})
    one = cs.DawidSkene().fit(table, features=pd.DataFrame({"item": np.arange(400), "x": list(X)}))
    shuffled = pd.concat([table[table["item"] == n] for n in order])
    other = cs.DawidSkene().fit(shuffled, features=pd.DataFrame({"item": order, "x": list(X[order])}))
    np.testing.assert_allclose(other.posterior_, one.posterior_[order], atol=1e-6)


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


def test_other_items_by_their_features_alone(guided, tmp_path):
    chances = guided.predict_proba(None, features=X[:5])
    assert chances.shape == (5, 3)
    by_hand = guided.classifier_.predict_proba(X[:5])
    assert (chances.argmax(axis=1) == by_hand.argmax(axis=1)).all()
    table = pd.DataFrame({"item": list("abc"), "x": list(X[:3])})
    back = cs.load(guided.save(tmp_path / "m"))
    np.testing.assert_array_equal(back.predict(None, features=table), guided.predict(None, features=X[:3]))


def test_gaps_are_named_and_left_to_classifiers_that_take_them():

    gaps = pd.DataFrame(X, columns=list("abcdef")).assign(item=R.items)
    gaps.loc[3, "b"] = np.nan
    with pytest.raises(InputError, match=r"numbers \(1\). The first one is in column 'b', of item 3"):
        cs.DawidSkene().fit(R, features=gaps)


def test_disagreements_are_about_items_with_answers():
    r = cs.Answers.from_frame(
        {"item": R.item_of_answer()[:900], "worker": R.worker[:900], "label": R.label[:900]}, items=range(400)
    )
    gold = {n: int(TRUTH[n]) for n in range(50)}
    model = cs.DawidSkene().fit(r, features=X, gold=gold)
    items = model.disagreements()["item"].to_pylist()
    assert len(items) > 10
    assert 50 <= min(items) <= max(items) < 300
    assert model.classifier_report()["answers"].to_pylist() == [250]
    for n in (-1, 1.5):
        with pytest.raises(ParameterError, match="whole number >= 0"):
            model.disagreements(n)


def test_classifiers_that_fail_are_named():
    class Odd:
        def fit(self, rows, labels, sample_weight):
            if rows is None:
                raise RuntimeError
            return self

        def predict_proba(self, rows):
            return np.ones((rows.shape[0], 3)) / 3

    with pytest.raises(InputError, match="Odd must have classes_"):
        cs.DawidSkene(classifier=Odd()).fit(R, features=X)

    class Broken(Odd):
        def fit(self, rows, labels, sample_weight):
            raise RuntimeError("out of luck")

    with pytest.raises(InputError, match="Broken cannot be trained: out of luck"):
        cs.DawidSkene(classifier=Broken()).fit(R, features=X)


def test_scores_and_checks_take_features():
    with_features = cs.held_out_score(cs.DawidSkene(), R, features=X)
    lead, error = with_features.minus(cs.held_out_score(cs.DawidSkene(), R))
    assert lead > 2 * error
    with pytest.raises(ParameterError, match="takes neither features"):
        cs.held_out_score(cs.MajorityVote(), R, features=X)


def test_one_answer_per_item_points_to_the_disagreements():
    votes = np.full((400, 4), -1)
    votes[np.arange(400), np.arange(400) % 4] = np.where(np.random.default_rng(0).random(400) < 0.8, TRUTH, 0)
    with pytest.warns(DataWarning, match=r"confidence is left empty.*Look at items that the classifier doubts: dis"):
        model = cs.fuse(cs.Answers.from_matrix(votes), features=X)
    table = model.disagreements().to_pandas()
    wrong = (table["crowd_label"] != TRUTH[table["item"]]).to_numpy()
    assert wrong[:15].mean() > 2 * (model.labels_ != TRUTH).mean()
