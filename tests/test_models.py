"""What every model has: settings, errors, representation, copies, tables, the report on workers."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
import oracles
from consilience.answers.previews import ReportTable
from consilience.errors import ConsilienceError, InputError, NotFittedError, ParameterError
from consilience.inference.estimator import renew
from consilience.inference.hidden_answers import raise_to
from consilience.results.intervals import informativeness
from effort import examples
from strategies import crowds

MODELS = [cs.MajorityVote, cs.DawidSkene]
ANSWERS = {
    "item": ["i", "i", "i", "j", "j", "k"],
    "worker": ["ann", "bob", "eve", "ann", "bob", "eve"],
    "label": ["cat", "cat", "dog", "dog", "dog", "cat"],
}


# ----------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("cls", MODELS)
def test_settings_are_keywords_stored_as_given(cls):
    parameters = inspect.signature(cls).parameters
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters.values())
    values = {name: object() for name in parameters}
    model = cls(**values)  # nothing is looked at before fit
    assert all(getattr(model, name) is value for name, value in values.items())
    assert model.get_params() == values
    assert model.get_params(deep=False) == values
    assert cls().get_params() == {name: p.default for name, p in parameters.items()}


@pytest.mark.parametrize("cls", MODELS)
def test_copies(cls):
    model = cls().fit(ANSWERS)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(twin.posterior_, model.posterior_)
        assert np.array_equal(twin.predict_proba(ANSWERS), model.predict_proba(ANSWERS))


BAD = [
    ("workers", "other", "one of 'confusion'"),
    ("estimation", "mcmc", "one of 'variational', 'em'"),
    ("n_init", 0, "a whole number >= 1"),
    ("max_iter", -1, "a whole number >= 0"),
    ("tol", -1, "a number >= 0"),
    ("seed", -1, "a whole number >= 0"),
    ("smoothing", -1, "a number >= 0, a pair"),
    ("smoothing", np.ones((3, 2)), "an array of shape (classes, labels) = (2, 2), or one such matrix per worker"),
    ("smoothing", 0, "greater than 0 with estimation='variational'"),
    ("prior", "flat", "'learn', 'uniform' or 2 probabilities that sum to 1 (classes: 'cat', 'dog')"),
    ("prior", [0.5, 0.6], "'learn', 'uniform' or 2 probabilities"),
    ("prior", [0.5, 0.25, 0.25], "'learn', 'uniform' or 2 probabilities"),
    ("prior", {"cat": 0.5, "dog": 0.6}, "'learn', 'uniform' or 2 probabilities"),
    ("prior", {"cat": 1.0}, "a probability for each of the classes 'cat', 'dog'"),
    ("prior", {"cat": 0.5, "dog": 0.25, "pig": 0.25}, "a probability for each of the classes 'cat', 'dog'"),
    ("start", None, "of shape (3, 2, 2) (workers, classes, labels) whose rows sum to 1"),
    ("start", np.full((2, 2, 2), 0.5), "of shape (3, 2, 2)"),
]


@pytest.mark.parametrize(("name", "value", "expected"), BAD, ids=lambda value: str(value)[:20].replace("\n", ""))
def test_bad_settings(name, value, expected):
    model = cs.DawidSkene(**{name: value})
    with pytest.raises(ParameterError) as caught:
        model.fit(ANSWERS)
    message = str(caught.value)
    assert message.startswith(f"The {name!r} parameter of DawidSkene must be ")
    assert expected in message
    assert message.endswith(" instead.")
    assert " Got " in message
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ConsilienceError)
    assert not model.__sklearn_is_fitted__()


def test_nothing_is_no_table_to_predict():
    fit = cs.DawidSkene().fit(ANSWERS)
    for method in (fit.predict, fit.predict_proba):
        with pytest.raises(cs.errors.InputError, match="Cannot read the table from a NoneType"):
            method(None)


def test_a_row_without_a_label_is_an_error_where_others_are_predicted():
    table = pd.DataFrame({"item": [1, 1, 2, 2], "worker": list("abab"), "label": ["x", "y", "x", "x"]})
    fit = cs.DawidSkene().fit(table)
    table.loc[0, "label"] = None
    with pytest.raises(cs.errors.InputError, match=r"Column 'label' of .* has 1 missing value"):
        fit.predict(table)


def test_a_prior_may_be_a_series_with_or_without_names():
    fits = [cs.DawidSkene(prior=pd.Series(prior)).fit(ANSWERS) for prior in ([0.2, 0.8], {"dog": 0.8, "cat": 0.2})]
    expected = cs.DawidSkene(prior=[0.2, 0.8]).fit(ANSWERS).posterior_
    for fit in fits:
        np.testing.assert_array_equal(fit.posterior_, expected)


@pytest.mark.parametrize("cls", MODELS)
def test_results_need_a_fit(cls, tmp_path):
    model = cls()
    acts = [
        lambda: model.labels_,
        lambda: model.predict(ANSWERS),
        lambda: model.predict_proba(ANSWERS),
        model.to_frame,
        model.worker_report,
        lambda: model.save(tmp_path / "model"),
    ]
    if hasattr(model, "score"):
        acts.append(lambda: model.score(ANSWERS))
    for act in acts:
        with pytest.raises(NotFittedError, match=rf"This {cls.__name__} is not fitted yet\. Call fit\(responses\)"):
            act()
    assert not hasattr(model, "labels_")  # an AttributeError too, so that hasattr works
    with pytest.raises(NotFittedError, match=f"The {cls.__name__} to start from is not fitted yet"):
        cs.DawidSkene(start=model).fit(ANSWERS)


def documented(cls):
    """Return the names in the list of attributes of a docstring, which may refer to that of `DawidSkene`."""
    part = inspect.getdoc(cls).partition("\nAttributes\n")[2].partition("\n\n")[0]
    names = set(
        re.findall(r"\w+", " ".join(re.sub(" : .*", "", line) for line in part.split("\n") if line[:1].isalpha()))
    )
    return names | documented(cs.DawidSkene) if "all that are not listed here" in part else names


@pytest.mark.parametrize(
    "model", [cs.MajorityVote(), cs.DawidSkene(), cs.MomentMatching(), cs.HiddenMarkov(), cs.MarkovField()]
)
def test_attributes_are_those_documented(model):
    chain = isinstance(model, cs.HiddenMarkov)
    crowd = cs.simulate.sequences(10, length=8, seed=1) if chain else cs.simulate.network(60, seed=1)
    model.fit(crowd.responses, graph=crowd.graph if isinstance(model, cs.MarkovField) else None)
    learned = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names = documented(type(model))
    assert learned <= names
    absent = {name for name in names if not hasattr(model, name)}
    assert absent <= {"classifier_", "sequential_confusion_"}  # with features, and with sequential workers


def test_a_model_is_the_last_step_of_a_pipeline():
    pipeline = pytest.importorskip("sklearn.pipeline")
    answers = cs.simulate.independent(40, n_workers=5, seed=1).responses
    labels = pipeline.make_pipeline("passthrough", cs.MajorityVote()).fit_predict(answers)
    assert labels.tolist() == cs.MajorityVote().fit(answers).labels_.tolist()
    with pytest.raises(ParameterError, match="known labels go to gold="):
        cs.MajorityVote().fit_predict(answers, answers.labels)


def test_a_failed_fit_leaves_the_last_one():
    model = cs.DawidSkene().fit(ANSWERS)
    before = model.posterior_
    with pytest.raises(InputError):
        model.fit({"item": [1], "worker": [1]})
    assert model.posterior_ is before


@pytest.mark.parametrize("cls", MODELS)
def test_repr(cls):
    model = cls(seed=3)
    assert repr(model) == f"{cls.__name__}(seed=3)"
    assert repr(cls()) == f"{cls.__name__}()"
    text = repr(model.fit(ANSWERS))
    assert text.startswith(f"{cls.__name__}(seed=3): 3 items, 3 workers, 2 classes")
    assert "mean confidence" in text


# -------------------------------------------------------------------------------------------------------------- tables


FRAMES = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "lazy": (pl.LazyFrame, pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
    "dict": (dict, pa.Table),
}


def columns_of(table):
    return table.column_names if hasattr(table, "column_names") else list(table.columns)


def rows_of(table):
    if isinstance(table, pd.DataFrame):
        return table.to_dict("records")
    return table.to_pylist() if hasattr(table, "to_pylist") else table.to_dicts()


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("library", FRAMES)
def test_tables_come_back_in_the_callers_library(cls, library):
    make, kind = FRAMES[library]
    model = cls().fit(make(ANSWERS))
    frame, report = model.to_frame(), model.worker_report()
    assert isinstance(frame, kind)
    assert isinstance(report, ReportTable if kind is pa.Table else kind)  # which prints as a table
    assert columns_of(frame) == ["item", "label", "confidence", "p(cat)", "p(dog)"]
    figures = [f"{name}{end}" for name in ("accuracy", "informativeness") for end in ("", "_low", "_high")]
    assert columns_of(report) == ["worker", "answers", *figures, "chance", "worst_confusion", "remarks", "group"]
    rows = rows_of(frame)
    assert [row["item"] for row in rows] == ["i", "j", "k"]
    assert [row["label"] for row in rows] == model.labels_.tolist()
    for i, row in enumerate(rows):
        assert row["confidence"] == model.posterior_[i].max() == row[f"p({row['label']})"]
        assert row["p(cat)"] + row["p(dog)"] == pytest.approx(1)
    assert [row["worker"] for row in rows_of(report)] == ["ann", "bob", "eve"]
    assert [row["answers"] for row in rows_of(report)] == [2, 2, 2]


def test_column_names_are_distinct():
    """Classes of the same text, and classes called like a column."""
    r = cs.Answers.from_frame({"item": [1, 2, 3], "worker": [1, 1, 1], "label": [1, "1", "label"]})
    names = cs.MajorityVote().fit(r).to_frame().column_names
    assert len(set(names)) == len(names) == 6
    assert "p(1)" in names
    assert "p(1) (2)" in names


@pytest.mark.parametrize("labels", [[True, False], [3, 7], [0.5, 1.5], ["x", "y"]])
def test_labels_keep_their_type(labels):
    r = cs.Answers.from_frame({"item": [1, 1, 2], "worker": [1, 2, 1], "label": [labels[0], labels[0], labels[1]]})
    for cls in MODELS:
        model = cls().fit(r)
        assert model.labels_.tolist() == labels
        assert type(model.labels_.tolist()[0]) is type(labels[0])
        assert model.to_frame()["label"].to_pylist() == labels


def predicted_by(model, r):
    """Return what a fitted model predicts for the answers of its fit."""
    if not hasattr(model, "power_"):
        return model.posterior_
    raised = raise_to(model.uncalibrated_posterior_, model.power_)
    if isinstance(model, cs.DawidSkene):
        raised = np.where(np.diff(r.offsets)[:, None] > 0, raised, model.uncalibrated_posterior_)
    return raised


@pytest.mark.filterwarnings("ignore::consilience.errors.ConvergenceWarning")
@examples(60)
@given(crowd=crowds(), cls=st.sampled_from(MODELS))
def test_any_crowd_by_table_and_by_matrix(crowd, cls):
    """Labels of any kind, workers without answers, items without answers: the same fit either way in."""
    matrix = cs.Answers.from_matrix(crowd.matrix, labels=crowd.labels, items=crowd.items, workers=crowd.workers)
    by_matrix = cls().fit(matrix)
    by_frame = cls().fit(cs.Answers.from_frame(crowd.frame, items=crowd.items))
    assert by_matrix.classes_.tolist() == crowd.labels
    assert set(by_matrix.labels_.tolist()) <= set(crowd.labels)
    assert np.isfinite(by_matrix.posterior_).all()
    np.testing.assert_allclose(by_matrix.posterior_.sum(axis=1), 1)
    assert np.array_equal(by_matrix.predict_proba(matrix), predicted_by(by_matrix, matrix))
    answered = (crowd.matrix >= 0).any(axis=1)
    if answered.all():  # else items appear in another order
        np.testing.assert_allclose(by_frame.posterior_, by_matrix.posterior_, atol=1e-6)
    for model in (by_matrix, by_frame):
        assert len(model.to_frame()) == len(crowd.items)
        assert len(model.worker_report()) == len(model.result_.names.workers)


# ------------------------------------------------------------------------------------------------- report on workers


def report_of(model):
    return pd.DataFrame(model.worker_report().to_pydict()).set_index("worker")


@pytest.fixture(scope="module", params=[{}, {"estimation": "em"}, "vote"], ids=str)
def village(request):
    """A crowd with one of each kind."""
    rng = np.random.default_rng(1)
    n = 1500
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])

    def worker(skill):
        return np.where(rng.random(n) < skill, truth, (truth + rng.integers(1, 3, n)) % 3)

    columns = {f"good {skill}": worker(skill) for skill in (0.95, 0.9, 0.8, 0.7, 0.6)}
    columns["spammer"] = rng.integers(0, 3, n)
    columns["mumbler"] = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    columns["one label"] = np.zeros(n, int)
    columns["contrary"] = (worker(0.9) + 1) % 3
    columns["newcomer"] = np.where(np.arange(n) < 5, truth, -1)
    answers = np.stack(list(columns.values()), axis=1)
    r = cs.Answers.from_matrix(answers, workers=list(columns), labels=["x", "y", "z"])
    model = (cs.MajorityVote() if request.param == "vote" else cs.DawidSkene(**request.param)).fit(r)
    return model, report_of(model), truth, r


def test_remarks(village):
    remarks = village[1]["remarks"]
    assert remarks[["good 0.95", "good 0.9", "good 0.8"]].tolist() == [""] * 3
    assert remarks["newcomer"] == "few answers"
    # Majority vote compares a worker with vote shares, to which the worker and the spammers contribute.
    if not isinstance(village[0], cs.MajorityVote):
        assert remarks["contrary"] == "contrary"
        assert remarks[["good 0.7", "good 0.6"]].tolist() == ["", ""]
        assert remarks[["spammer", "mumbler"]].tolist() == ["answers as if by chance"] * 2
        assert remarks["one label"] == "answers as if by chance; one label"
    else:
        assert remarks["one label"] == "one label"


def test_the_best_workers_come_first(village):
    model, report, *_ = village
    good = report.drop(index=["newcomer"])
    told = good["informativeness"]
    assert told.between(0, 1).all()
    assert told["good 0.95"] > told["good 0.9"] > told["good 0.8"] > told["good 0.7"] > told["good 0.6"]
    assert told["good 0.6"] > told[["spammer", "mumbler", "one label"]].max()
    assert report["accuracy"]["good 0.95"] > report["accuracy"]["good 0.9"] > report["accuracy"]["good 0.8"]
    if not isinstance(model, cs.MajorityVote):
        # One who is always wrong in the same way tells as much as one who is right.
        assert told["contrary"] == pytest.approx(told["good 0.9"], abs=0.08)
        assert report["accuracy"]["good 0.9"] == pytest.approx(0.9, abs=0.02)
        assert report["accuracy"]["spammer"] == pytest.approx(1 / 3, abs=0.05)
        assert report["accuracy"]["contrary"] < 0.1
        assert told["one label"] < 0.01


def test_columns_of_the_report(village):
    model, report, _, r = village
    assert report["answers"].tolist() == [1500] * 9 + [5]
    votes = oracles.densify(r)
    for m in (0, 8):
        posterior = model.posterior_ if isinstance(model, cs.MajorityVote) else model.uncalibrated_posterior_
        right = sum(votes[i, m, k] * posterior[i, k] for i, k in np.ndindex(r.n_items, 3))
        assert report["accuracy"].iloc[m] == pytest.approx(right / 1500, abs=6e-4)  # rounded
    assert report["worst_confusion"]["contrary"][:6] in ("x -> y", "y -> z", "z -> x")
    assert report["worst_confusion"]["one label"] == ""  # that all else is called by this label is no news


def test_informativeness():
    uniform = np.full(2, 0.5)
    told = informativeness(np.array([np.eye(2), np.eye(2)[::-1], [[0.5, 0.5], [0.5, 0.5]], [[1, 0], [1, 0]]]), uniform)
    np.testing.assert_allclose(told, [1, 1, 0, 0], atol=1e-12)
    channel = np.array([[[0.9, 0.1], [0.1, 0.9]]])  # a binary symmetric channel: 1 - H(0.1) bits
    entropy = -(0.9 * np.log2(0.9) + 0.1 * np.log2(0.1))
    assert informativeness(channel, uniform)[0] == pytest.approx(1 - entropy)
    assert informativeness(np.ones((3, 1, 2)) / 2, np.ones(1)).tolist() == [0, 0, 0]  # nothing to tell
    assert informativeness(channel, np.array([1.0, 0.0])).tolist() == [0]


# ------------------------------------------------------------------------------------------------------ defects mended


def sequence_answers():
    return cs.simulate.sequences(12, length=8, n_workers=4, n_classes=2, seed=1).responses


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prior", (0.3, 0.7)),
        ("smoothing", pd.DataFrame([[1.0, 0.2], [0.1, 1.0]])),
        ("transitions", np.array([[True, True], [False, True]])),
        ("coupling", np.float32(0.5)),
    ],
)
def test_what_fit_accepts_can_be_saved(name, value, tmp_path):
    r = sequence_answers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConvergenceWarning)
        model = cs.HiddenMarkov(**{"coupling": 0.5, name: value}).fit(r)
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model")
    np.testing.assert_array_equal(np.asarray(getattr(again, name)), np.asarray(value))
    np.testing.assert_array_equal(again.posterior_, model.posterior_)
    np.testing.assert_array_equal(again.predict_proba(r), model.predict_proba(r))
    if name != "transitions":  # rules may be broken by what is calibrated
        np.testing.assert_array_equal(again.predict_proba(r), predicted_by(model, r))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConvergenceWarning)
        np.testing.assert_array_equal(renew(again).fit(r).posterior_, model.posterior_)


def test_fuse_takes_parameters_of_the_model():
    answers = pd.DataFrame({"item": [1, 1, 2, 2], "worker": list("abab"), "label": ["x", "x", "y", "x"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
        fused = cs.fuse(answers, estimation="em", smoothing=0.5)
        assert isinstance(fused, cs.DawidSkene)
        assert (fused.estimation, fused.smoothing) == ("em", 0.5)
        assert cs.fuse(answers, model="majority", ties="first").ties == "first"
        given = cs.fuse(answers, model=cs.DawidSkene(tol=1e-3), seed=4)
        assert (given.tol, given.seed) == (1e-3, 4)
    with pytest.raises(ParameterError, match=r"DawidSkene has no parameter 'coupling'.*such as model='hidden-markov'"):
        cs.fuse(answers, coupling=1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'estmation'"):
        cs.fuse(answers, estmation="em")


@pytest.mark.parametrize("named", [{1: 0.1, 0: 0.9}, {"1": 0.1, "0": 0.9}, pd.Series({1: 0.1, 0: 0.9})], ids=str)
def test_a_prior_that_names_the_classes_is_put_in_their_order(named, tmp_path):
    r = sequence_answers()
    expected = cs.HiddenMarkov(coupling=0.5, prior=[0.9, 0.1]).fit(r).posterior_
    by_name = cs.HiddenMarkov(coupling=0.5, prior=named).fit(r)
    np.testing.assert_array_equal(by_name.posterior_, expected)
    by_name.save(tmp_path / "model")
    np.testing.assert_array_equal(renew(cs.load(tmp_path / "model")).fit(r).posterior_, expected)


@pytest.mark.parametrize(("fitted", "changed"), [("sequential", "confusion"), ("confusion", "sequential")])
def test_parameters_changed_after_the_fit_change_no_result(fitted, changed, tmp_path):
    r = sequence_answers()
    model = cs.HiddenMarkov(workers=fitted, coupling=1.0).fit(r)
    expected = (model.predict(r), model.predict_proba(r), model.score(r), model.worker_report())
    model.set_params(workers=changed)
    model.save(tmp_path / "model")
    for each in (model, cs.load(tmp_path / "model")):
        np.testing.assert_array_equal(each.predict(r), expected[0])
        np.testing.assert_array_equal(each.predict_proba(r), expected[1])
        assert each.score(r) == expected[2]
        assert each.worker_report().equals(expected[3])


def test_warnings_point_at_the_line_that_led_to_them():
    model = cs.DawidSkene().fit(ANSWERS)
    new = {"item": [1], "worker": ["stranger"], "label": ["cat"]}
    acts = [
        lambda: model.predict(new),
        lambda: model.predict_proba(new),
        lambda: model.score(new),
        lambda: cs.fuse({"item": [1, 2], "worker": ["a", "b"], "label": ["x", "y"]}),
        lambda: cs.DawidSkene(max_iter=1).fit(ANSWERS),
        lambda: cs.Answers.from_frame({"item": [1, 2], "worker": ["a", "b"], "label": ["x", "NA"]}),
    ]
    for act in acts:
        with pytest.warns(cs.errors.ConsilienceWarning) as caught:
            act()
        assert {warning.filename for warning in caught} == {__file__}


def test_a_fit_to_a_table_with_other_columns_names_what_can_name_them(tmp_path):
    answers = {"question": ["1", "1", "2"], "who": ["a", "b", "a"], "says": ["x", "x", "y"]}
    with pytest.raises(InputError, match=r"Name it with worker=\. .* That is for consilience\.Answers\.from_frame"):
        cs.DawidSkene().fit(answers)
    named = cs.Answers.from_frame(answers, worker="who", label="says")
    assert cs.MajorityVote().fit(named).labels_.tolist() == ["x", "y"]
    path = tmp_path / "answers.csv"
    path.write_text("question,worker,labell\n1,a,x\n2,a,y\n")
    with pytest.raises(InputError, match=r"Did you mean label='labell'\? That is for consilience\.read_answers,"):
        cs.MajorityVote().fit(path)
    with pytest.raises(InputError, match="Did you mean label='labell'"):
        cs.fuse(path)


def test_results_cannot_be_replaced():
    model = cs.MajorityVote().fit(cs.Answers.from_matrix([[0, 1, 0]]))
    with pytest.raises(AttributeError, match="cannot be changed"):
        model.labels_ = [1]
    assert model.labels_.tolist() == [0]
    assert model.__sklearn_is_fitted__()
    assert not cs.MajorityVote().__sklearn_is_fitted__()


@pytest.mark.parametrize("model", [cs.DawidSkene(), cs.MajorityVote()])
@pytest.mark.parametrize("classes", [None, ["bad", "good"]])
def test_nothing_judges_a_panel_that_says_one_label_only(model, classes):
    """They may all be wrong: only known labels tell."""
    said = {"item": np.repeat(np.arange(40), 3), "worker": np.tile(["a", "b", "c"], 40), "label": ["good"] * 120}
    answers = cs.Answers.from_frame(said, classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = report_of(model.fit(answers))
        assert report[["accuracy", "accuracy_low", "accuracy_high"]].isna().all(axis=None)
        if classes is not None and isinstance(model, cs.DawidSkene):
            known = {n: classes[n % 2] for n in range(20)}
            report = report_of(cs.DawidSkene().fit(answers, gold=known))
            assert (report["accuracy_high"] < 0.9).all()
