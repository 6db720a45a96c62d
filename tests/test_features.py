"""Features of items: a classifier that learns from the fused labels is the prior of each item."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array, csr_matrix, save_npz

import consilience as cs
import model_files
from benchmarks import real_crowds
from consilience.answers.item_tables import ItemPriors, match_features
from consilience.errors import DataWarning, InputError, MissingDependencyError, NotFittedError, ParameterError
from consilience.formats.sources import open_item_data
from consilience.inference.classifiers import LinearTrainer, spread_labels
from consilience.inference.estimator import renew
from consilience.inference.guidance import (
    N_FOLDS,
    Opinion,
    choose_strength,
    find_folds,
    judge_out_of_fold,
    log_loss,
    loss_of_answers,
    make_trainers,
)
from consilience.inference.powers import NOTHING_KNOWN, POWERS, Calibration, find_leads, raise_to
from consilience.inference.sources import Source
from consilience.results import calibration
from consilience.results.calibration import score_by_classifier
from effort import rest_robust
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


@pytest.mark.robust
@pytest.mark.filterwarnings("ignore:Features are not used")
def test_false_alarms_are_rare():
    used = 0
    for seed in range(12):
        r, _, _ = make_crowd(n_items=80, n_classes=2, seed=seed)
        noise = np.random.default_rng(seed).normal(size=(80, 5))
        used += cs.DawidSkene(calibration="none").fit(r, features=noise).feature_findings_.used
    assert used <= 1


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


@pytest.mark.robust
def test_the_strength_grows_as_labels_get_better():
    """Digits, of which three answers each make .75: a C that is chosen once stops at .95 and .96."""
    from sklearn.datasets import load_digits

    pixels, truth = load_digits(return_X_y=True)
    for seed in (8, 2):
        rng = np.random.default_rng(seed)
        accuracy, votes = rng.uniform(0.3, 0.9, 30), np.full((len(truth), 30), -1)
        chosen = np.stack([rng.permutation(30)[:3] for _ in truth])
        for n, workers in enumerate(chosen):
            for m in workers:
                votes[n, m] = truth[n] if rng.random() < accuracy[m] else rng.integers(0, 10)
        model = cs.DawidSkene().fit(cs.Answers.from_matrix(votes), features=pixels)
        assert cs.metrics.accuracy(truth, model.labels_) > 0.975


def test_no_item_is_judged_by_a_classifier_that_saw_its_label():
    """With a memory for labels, the classifier would repeat the crowd; out of fold it cannot."""
    known = np.eye(3)[np.random.default_rng(0).integers(0, 3, 100)]
    rows = np.eye(100)  # a feature for each item: all that there is to learn is the item itself
    r = cs.Answers.from_matrix(np.zeros((100, 1), int), classes=[0, 1, 2])
    fold = find_folds(r, np.arange(100), seed=0)[1]
    judged = judge_out_of_fold(LinearTrainer(rows, 3, 100.0), known, np.arange(100), fold)
    assert (judged.argmax(axis=1) == known.argmax(axis=1)).mean() < 0.6
    # The slow way: for each item, without all of its fold.
    trainer = LinearTrainer(rows, 3, 100.0)
    for n in (0, 17, 99):
        others = np.flatnonzero(fold != fold[n])
        np.testing.assert_allclose(judged[n], trainer.train(others, known[others]).judge(trainer.rows[[n]])[0])


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
    # By hand: class prior, what the classifier says relative to its shares, and no answers.
    guide = model.result_.guidance.guide
    by_hand = model.prior_ * guide.find_priors(more) / guide.shares
    plain = cs.DawidSkene(calibration="none", estimation="em").fit(shown, features=rows)
    guide = plain.result_.guidance.guide
    by_hand = plain.prior_ * guide.find_priors(more) / guide.shares
    found = plain.predict_proba(nobody, features=more)
    np.testing.assert_allclose(found, by_hand / by_hand.sum(axis=1, keepdims=True), rtol=1e-6)


def test_sparse_features():
    words = (X > 1).astype(float)
    dense, sparse = (cs.DawidSkene(calibration="none").fit(R, features=each) for each in (words, csr_array(words)))
    right = [cs.metrics.accuracy(TRUTH, each.labels_) for each in (dense, sparse)]
    assert abs(right[0] - right[1]) < 0.03
    np.testing.assert_allclose(
        sparse.classifier_.predict_proba(csr_array(words)),
        sparse.result_.guidance.guide.judge.judge(csr_array(words)),
        rtol=1e-6,
    )


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
    names = ["b", "a"]
    r = cs.Answers.from_matrix(np.array(names)[R_BINARY[2]][:, None].repeat(3, axis=1))
    model = cs.DawidSkene().fit(r, features=R_BINARY[1])
    assert set(model.classifier_.predict(R_BINARY[1])) <= {"a", "b"}
    np.testing.assert_allclose(
        model.classifier_.predict_proba(R_BINARY[1]), model.result_.guidance.guide.judge.judge(R_BINARY[1])
    )


ENDS = [f"{name}_{end}" for name in ("accuracy", "informativeness") for end in ("low", "high")]
R_BINARY = make_crowd(n_items=120, n_classes=2, seed=8)


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
    wrong = run("fuse", tmp_path / "answers.csv", "--features", tmp_path / "x.parquet", "--model", "majority")
    assert wrong.exit_code == 2
    assert "takes neither features" in wrong.stderr
    np.save(tmp_path / "x.npy", X[:5])
    wrong = run("fuse", tmp_path / "answers.csv", "--features", tmp_path / "x.npy")
    assert wrong.exit_code == 2
    assert "the shape (5, 6)" in wrong.stderr


def test_labels_are_the_same_whatever_the_power(guided):
    model = cs.DawidSkene(calibration=0.5).fit(R, features=X)
    np.testing.assert_array_equal(model.labels_, guided.labels_)


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
    net = cs.simulate.network(300, n_workers=5, n_classes=3, degree=4, answers_per_item=2, seed=1)
    truth = np.asarray(net.truth)
    rows = np.eye(3)[truth] + np.random.default_rng(0).normal(size=(300, 3))
    alone = cs.MarkovField(coupling=0.3).fit(net.responses, graph=net.graph)
    model = cs.MarkovField(coupling=0.3).fit(net.responses, graph=net.graph, features=rows)
    assert cs.metrics.accuracy(truth, model.labels_) > cs.metrics.accuracy(truth, alone.labels_)


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


def test_the_limit_of_the_power_does_not_depend_on_the_order_of_items(monkeypatch):
    """A sample is drawn by the random order of the units, and holds whole sequences."""
    monkeypatch.setattr(calibration, "MOST_JUDGED", 1000)
    rng = np.random.default_rng(5)
    honest = rng.dirichlet([0.7, 0.7], 2000)
    truth = (rng.random(2000) < honest[:, 1]).astype(int)
    left_out = np.concatenate([raise_to(honest[:1800], 10.0), honest[1800:]])  # most of them are far too sure
    code, unit = np.where(rng.random(2000) < 0.9, truth, 1 - truth), rng.permutation(2000)
    powers = []
    for order in (np.arange(2000), np.arange(2000)[::-1]):
        r = cs.Answers.from_matrix(truth[order, None], items=order.tolist())
        opinion = Opinion(np.arange(2000), unit[order], np.eye(2)[code[order]])
        found, _ = calibration.limit_power(Source(r), left_out[order], opinion, Calibration(1.0), NOTHING_KNOWN)
        assert found.n_judged == 1000
        powers.append(found.power)
    assert powers[0] == powers[1] < 0.5


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


def test_one_sequence_and_no_iterations():
    r = cs.Answers.from_matrix(np.random.default_rng(0).integers(0, 3, (60, 3)), lengths=[60])
    with pytest.warns(DataWarning, match="in one sequence"):
        cs.HiddenMarkov(coupling=0.5).fit(r, features=X[:60])
    with pytest.raises(ParameterError, match="max_iter=0"):
        cs.DawidSkene(max_iter=0).fit(R, features=X)


def test_damaged_classifiers_are_refused(tmp_path, guided):
    path = guided.save(tmp_path / "m")
    parts = model_files.unpack(path.read_bytes())
    name = next(name for name in parts if "guide/judge/offsets" in name)
    for change in ({name: None}, {name: parts[next(n for n in parts if "blended" in n)][:40]}):
        changed = {key: content for key, content in (parts | change).items() if content is not None}
        path.write_bytes(model_files.pack(changed))
        with pytest.raises(cs.errors.StoreError):
            cs.load(path)


def test_the_page_says_what_was_measured():
    measured = Path(__file__).parents[1] / "docs" / "measured"
    head, _, *lines = (measured / "features.md").read_text().splitlines()
    names = [name.strip() for name in head.split("|")[2:-1]]
    for line in lines:
        cells = [cell.strip(" *") for cell in line.split("|")[2:-1]]
        found = {name: float(cell) for name, cell in zip(names, cells, strict=True) if cell}
        assert found["with features"] > max(found["without features"], found.get("CROWDLAB", 0.0))
        assert found.get("log loss with", 0.0) <= found.get("log loss without", 0.0)
    noise = [line.split(",") for line in (measured / "random-features.csv").read_text().splitlines()[1:]]
    assert sum(int(row[4]) for row in noise) == 1
    assert sum(int(row[5]) for row in noise) == 32
    assert all(float(row[3]) == 0 for row in noise)


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
        (X[:, 0], r"the shape \(400,\)"),
        (np.array([["a"]] * 400), "must be numbers"),
        (csr_array(X[:5]), r"the shape \(5, "),
        (pd.DataFrame(X, columns=list("abcdef")), "no column for the item"),
        (pd.DataFrame({"item": R.items, "x": ["a"] * 400}), "must hold numbers"),
        (pd.DataFrame({"item": R.items}), "no columns but 'item'"),
        (pd.DataFrame({"item": [0, 0], "x": [1, 2]}), "several rows"),
        (pd.DataFrame({"item": [900], "x": [1]}), "None of the 1 "),
        ({"item": [0, 1], "x": [[1, 2], [3]]}, "lists of numbers of one length"),
    ],
)
def test_bad_features_are_refused(features, words):
    with pytest.raises(InputError, match=words):
        cs.DawidSkene().fit(R, features=features)


def test_scikit_learn_is_optional(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(MissingDependencyError, match=r"consilience\[features\]"):
        cs.DawidSkene().fit(R, features=X)


@pytest.mark.robust
def test_noise_that_runs_along_a_graph_has_no_say():
    """Neighbours would tell an item's label to the classifier that judges it, if it learned from the field."""
    from sklearn.ensemble import RandomForestClassifier

    for seed in range(3):
        r, _, _ = make_crowd(300, n_classes=2, seed=seed)
        noise = np.random.default_rng(seed).normal(size=(300, 2))
        graph = cs.Graph.knn(noise, 5)
        classifier = RandomForestClassifier(20, min_samples_leaf=5)
        with pytest.warns(DataWarning, match="Features are not used"):
            cs.MarkovField(coupling=0.5, classifier=classifier).fit(r, graph=graph, features=noise)


def test_other_items_by_their_features_alone(guided, tmp_path):
    chances = guided.predict_proba(None, features=X[:5])
    assert chances.shape == (5, 3)
    by_hand = guided.classifier_.predict_proba(X[:5])
    assert (chances.argmax(axis=1) == by_hand.argmax(axis=1)).all()
    table = pd.DataFrame({"item": list("abc"), "x": list(X[:3])})
    back = cs.load(guided.save(tmp_path / "m"))
    np.testing.assert_array_equal(back.predict(None, features=table), guided.predict(None, features=X[:3]))
    r = cs.Answers.from_matrix(np.where(R.offsets[:-1, None] >= 0, TRUTH[:, None], -1), lengths=[4] * 100)
    chain = cs.HiddenMarkov(coupling=0.5).fit(r, features=X)
    known = pd.DataFrame({"sequence": [0, 0, 1], "position": [0, 1, 0], "x": list(X[:3])})
    assert chain.predict_proba(None, features=known).shape == (3, 3)
    with pytest.raises(InputError, match="which sequence and position"):
        chain.predict_proba(None, features=X[:3])


def test_columns_are_matched_by_name():
    names = list("abcdef")
    table = pd.DataFrame(X, columns=names).assign(item=R.items)
    model = cs.DawidSkene().fit(R, features=table)
    assert model.result_.guidance.names == names
    turned = table[["item", *names[::-1]]].assign(more=1.0)
    np.testing.assert_array_equal(model.predict(R, features=turned), model.predict(R, features=table))
    with pytest.raises(InputError, match="have no column 'b'"):
        model.predict(R, features=table.rename(columns={"b": "z"}))
    assert (model.classifier_.predict(table[names]) == model.classifier_.predict(turned[names])).all()
    assert model.feature_findings_.strength == model.classifier_[-1].C


def test_tables_as_pandas_users_have_them(guided):
    expected = guided.posterior_
    numbered = pd.DataFrame(X).assign(item=R.items)  # columns are called 0, 1, 2, ...
    indexed = pd.DataFrame(X, index=pd.Index(R.items, name="item"))
    batch = pa.record_batch({"item": pa.array(R.items), "x": pa.array(X.tolist())})
    np.testing.assert_allclose(cs.DawidSkene().fit(R, features=numbered).posterior_, expected)
    for table in (indexed, batch):
        np.testing.assert_array_equal(match_features(table, R).rows, X)
    single = pa.array(X.astype(np.float32).tolist(), pa.list_(pa.float32()))
    assert match_features(pa.table({"item": R.items, "x": single}), R).rows.dtype == np.float32


def test_gaps_are_named_and_left_to_classifiers_that_take_them():
    from sklearn.tree import DecisionTreeClassifier

    gaps = pd.DataFrame(X, columns=list("abcdef")).assign(item=R.items)
    gaps.loc[3, "b"] = np.nan
    with pytest.raises(InputError, match=r"numbers \(1\). The first one is in column 'b', of item 3"):
        cs.DawidSkene().fit(R, features=gaps)
    with pytest.raises(InputError, match="in column 2, of item 0"):
        cs.DawidSkene().fit(R, features=csr_array(np.where(np.arange(6) == 2, np.inf, X)))
    masked = np.ma.array(X.astype(np.float32), mask=X > 2)
    with pytest.raises(InputError, match="missing or infinite"):
        cs.DawidSkene().fit(R, features=masked)
    classifier = DecisionTreeClassifier(max_depth=3)
    assert cs.DawidSkene(classifier=classifier, calibration="none").fit(R, features=gaps).feature_findings_.used


def test_items_without_features_are_counted():
    table = pd.DataFrame({"item": np.arange(100), "x": list(X[:100])})
    with pytest.warns(DataWarning, match="300 of 400 items have no features: 100, 101, .* 109, and 290 more"):
        cs.DawidSkene(calibration="none").fit(R, features=table)


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


def test_features_of_known_labels_alone():
    """Items with features have known labels and no answers: nothing judges probabilities by the classifier."""
    votes = np.where(np.arange(400)[:, None] < 60, -1, np.random.default_rng(0).integers(0, 3, (400, 4)))
    r = cs.Answers.from_matrix(votes, classes=range(3))
    table = pd.DataFrame({"item": np.arange(60), "x": list(X[:60])})
    with pytest.warns(DataWarning, match="have no features"):
        model = cs.DawidSkene().fit(r, features=table, gold=dict(enumerate(TRUTH[:60].tolist())))
    assert model.feature_findings_.used
    assert model.feature_findings_.accuracy is None


@pytest.mark.parametrize("classes", rest_robust([[1, "a", "b"], [0.5, 1.5, 2.5], ["x", "y", "z"]]))
def test_classes_of_any_type(classes):
    from sklearn.linear_model import LogisticRegression

    r = cs.Answers.from_frame(
        {"item": R.item_of_answer(), "worker": R.worker, "label": pd.Series([classes[code] for code in R.label])}
    )
    for classifier in (None, LogisticRegression()):
        model = cs.DawidSkene(classifier=classifier, calibration="none").fit(r, features=X)
        right = [classes.index(label) for label in model.labels_]
        assert cs.metrics.accuracy(TRUTH, right) > 0.8
        names = model.classifier_.classes_.tolist()
        assert names == (classes if isinstance(classes[0], str) else [0, 1, 2])


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


@pytest.mark.robust
def test_random_classifiers_go_by_the_seed():
    from sklearn.ensemble import RandomForestClassifier

    classifier = RandomForestClassifier(10, min_samples_leaf=5)
    one, two = (cs.DawidSkene(classifier=classifier, calibration="none").fit(R, features=X) for _ in range(2))
    np.testing.assert_array_equal(one.posterior_, two.posterior_)
    assert classifier.random_state is None


def test_scores_and_checks_take_features():
    with_features = cs.held_out_score(cs.DawidSkene(), R, features=X)
    lead, error = with_features.minus(cs.held_out_score(cs.DawidSkene(), R))
    assert lead > 2 * error
    with pytest.raises(ParameterError, match="takes neither features"):
        cs.held_out_score(cs.MajorityVote(), R, features=X)


def test_too_many_columns_for_the_memory():
    wide = csr_array(([1.0], ([0], [0])), shape=(400, 2**40))
    with pytest.raises(InputError, match="columns: that takes at least"):
        cs.DawidSkene().fit(R, features=wide)


def test_one_answer_per_item_points_to_the_disagreements():
    votes = np.full((400, 4), -1)
    votes[np.arange(400), np.arange(400) % 4] = np.where(np.random.default_rng(0).random(400) < 0.8, TRUTH, 0)
    with pytest.warns(DataWarning, match=r"confidence is left empty.*Look at items that the classifier doubts: dis"):
        model = cs.fuse(cs.Answers.from_matrix(votes), features=X)
    table = model.disagreements().to_pandas()
    wrong = (table["crowd_label"] != TRUTH[table["item"]]).to_numpy()
    assert wrong[:15].mean() > 2 * (model.labels_ != TRUTH).mean()
