"""Slips in the labels: what gives a warning, what gives none, and `normalise`."""

import json
import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from command_line import run
from consilience.answers.classes import choose_spelling, normalise_label
from consilience.errors import DataWarning, ParameterError
from consilience.kinds.base import TableKind
from consilience.models import model_class
from effort import examples
from real_data import FOLDER, needs_data

ITEM = np.repeat(np.arange(100), 3)
WORKER = np.tile(["ann", "bob", "cy"], 100)
CAFE = ("café", unicodedata.normalize("NFD", "café"))


def table(labels, item=ITEM, worker=WORKER):
    return {"item": item, "worker": worker, "label": labels}


def draw(*labels, seed=0, n=300):
    return np.random.default_rng(seed).choice(np.array(labels, dtype=object), n)


def slips(source, **keywords):
    """Return the texts of the warnings that reading gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cs.Answers.from_frame(source, **keywords)
    assert all(issubclass(warning.category, DataWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


# Several spellings of a label


@pytest.mark.parametrize(
    "spellings",
    [
        ["Cat", "cat"],
        ["cat", " cat"],
        ["cat", "cat\t"],
        ["cat", "cat\u00a0"],
        ["not spam", "not  spam"],
        ["New York", "NEW\u2003york "],
        CAFE,
        ["STRASSE", "straße"],
        ["ΣΊΣΥΦΟΣ", "σίσυφος"],
        [unicodedata.normalize("NFD", "ÉTÉ"), "été"],
        ["B-PER", "b-per"],
    ],
)
def test_spellings_are_named_and_can_be_one(spellings):
    source = table(draw(*spellings, "other"))
    (text,) = slips(source)
    assert "differ only in case, spaces or Unicode form" in text
    assert "normalise=True" in text
    assert not slips(source, normalise=True)
    assert cs.Answers.from_frame(source, normalise=True).n_labels == 2
    assert cs.Answers.from_frame(source, normalise=True).normalised
    assert not slips(source, classes=[*spellings, "other"])  # which says that they are different
    assert len(slips(source, classes=[spellings[0], "other"])) == 1  # the others are then no class


@pytest.mark.parametrize(
    "pair", [("cat", "cats"), ("1", "\uff11"), ("x2", "x²"), ("resume", "résumé"), (1, 2), (True, False)]
)
def test_other_labels_stay_apart(pair):
    source = table(draw(*pair))
    assert not slips(source)
    assert cs.Answers.from_frame(source, normalise=True).n_labels == 2


@examples(60)
@given(st.text(max_size=6))
def test_the_normal_form_is_one(text):
    once = normalise_label(text)
    assert normalise_label(once) == once == unicodedata.normalize("NFC", once)
    assert once == once.strip()
    for other in (f" {text}\n", unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text)):
        assert normalise_label(other) == once


def test_tags_stay_tags():
    answers = {
        "sequence": ["s"] * 4,
        "position": [0, 1, 2, 3],
        "worker": ["w"] * 4,
        "label": ["b-PER", "I-per", "o", "O "],
    }
    r = cs.Answers.from_frame(answers, normalise=True)
    assert r.labels.tolist() == ["B-per", "I-per", "O"]
    assert choose_spelling(np.array(["o", "a"], dtype=object))("O") == "o"


# Whatever goes with the labels


@pytest.mark.parametrize("model", [cs.MajorityVote(), cs.DawidSkene()])
def test_gold_may_be_written_in_any_way(model):
    r = cs.Answers.from_frame(table(draw("Cat", "cat", "dog")), normalise=True)
    model.fit(r, gold={0: " CAT ", 1: "Dog", 2: "dog"})
    assert model.labels_[:3].tolist() == ["cat", "dog", "dog"]
    with pytest.raises(ValueError, match="not among the classes"):
        model.fit(r, gold={0: "bird"})


def test_every_reader_normalises(tmp_path):
    labels = draw("Cat", "cat ", "dog")
    matrix = labels.reshape(100, 3)
    r = cs.Answers.from_matrix(matrix, normalise=True)
    assert r.labels.tolist() == ["cat", "dog"]
    coded = cs.Answers.from_matrix((matrix == "dog").astype(int), labels=["Cat", "DOG"], normalise=True)
    assert coded.labels.tolist() == ["cat", "dog"]
    assert cs.Answers.from_matrix(matrix, labels=["DOG", "Cat"], normalise=True).labels.tolist() == ["dog", "cat"]
    with pytest.warns(DataWarning, match="normalise=True"):
        cs.Answers.from_matrix(matrix)
    path = tmp_path / "answers.csv"
    pd.DataFrame(table(labels)).to_csv(path, index=False)
    assert cs.read_answers(path, normalise=True).labels.tolist() == ["cat", "dog"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
        assert cs.fuse(table(labels), normalise=True).classes_.tolist() == ["cat", "dog"]
    for odd in (1, "yes", None):
        with pytest.raises(ParameterError, match="normalise"):
            cs.Answers.from_frame(table(labels), normalise=odd)


def test_the_command_line_normalises_and_warns_once(tmp_path):
    answers, gold, output = tmp_path / "answers.csv", tmp_path / "gold.csv", tmp_path / "labels.csv"
    truth = draw("cat", "dog", n=100)
    said = np.where(np.arange(300) % 7 == 0, "Dog", np.repeat(truth, 3))
    pd.DataFrame(table(np.where(np.arange(300) % 2, said, np.char.title(said.astype(str))))).to_csv(
        answers, index=False
    )
    pd.DataFrame({"item": range(100), "label": np.char.upper(truth.astype(str))}).to_csv(gold, index=False)
    plain = run("fuse", answers, "--json")
    assert plain.stderr.count("differ only in case") == 1
    assert "To merge them, use --normalise. If they are different classes, list them all with --classes" in plain.stderr
    result = run("fuse", answers, "--normalise", "--gold", gold, "-o", output, "--classes", "Cat,DOG")
    assert result.exit_code == 0, result.stderr
    assert "differ only" not in result.stderr
    assert set(pd.read_csv(output)["label"]) == {"Cat", "DOG"}
    judged = run("evaluate", output, gold, "--json")
    assert json.loads(judged.stdout)["accuracy"] < 1
    assert "Known labels ('CAT') are written in another way" in judged.stderr
    assert "use --normalise." in judged.stderr
    assert json.loads(run("evaluate", output, gold, "--normalise", "--json").stdout)["accuracy"] == 1


# Labels that are no classes


def scores(n_items=500, n_workers=6, seed=0):
    rng = np.random.default_rng(seed)
    true = np.repeat(rng.uniform(0, 100, n_items), n_workers)
    return {
        "item": np.repeat(np.arange(n_items), n_workers),
        "worker": np.tile(np.arange(n_workers), n_items),
        "label": rng.normal(true, 5),
    }


@pytest.mark.parametrize("digits", [0, 1])
@pytest.mark.parametrize("kind", [float, str])
def test_scores(digits, kind):
    source = scores()
    source["label"] = [kind(x) for x in source["label"].round(digits)]
    assert not slips(source)  # they may be measurements; a fit of classes doubts them
    with pytest.warns(DataWarning, match="different numbers") as caught:
        TableKind.to_answers(cs.Answers.from_frame(source))
    text = str(caught[0].message)
    assert "kind='numbers'" in text
    assert "label=" in text
    assert not slips(source, classes=sorted(set(source["label"])))


def test_an_id_of_each_answer_and_free_text():
    (text,) = slips(table([f"r{n}" for n in range(300)]))
    assert text.startswith("There are 300 different labels in 300 answers, such as 'r0', ")
    (text,) = slips(table([f"it says {n // 2}" for n in range(300)]))
    assert "150 different labels in 300 answers" in text
    assert "few labels" in text


@pytest.mark.parametrize(
    "source",
    [
        table(np.random.default_rng(0).integers(0, 3, 300), worker=np.tile([0, 1, 2], 100)),
        table(draw("a", "b", "c"), worker=np.tile(["a", "b", "c"], 100)),
        table(draw("1", "2", "3"), worker=np.tile(["1", "2", "3"], 100)),
        table(np.random.default_rng(0).integers(0, 30, 300)),
        table(draw(*[f"class {k}" for k in range(90)])),
        table(draw(0.0, 0.5, 1.0)),
        table(draw(*np.arange(0, 5.5, 0.5))),
        table(draw("none", "some", "na ja", "nano")),
        {"item": [1, 2, 3], "worker": ["a", "b", "c"], "label": ["x", "y", "z"]},
    ],
)
def test_plain_labels_pass(source):
    assert not slips(source)


# Words for nothing, and workers


@pytest.mark.parametrize("word", ["NA", "N/A", "nan", "NaN", "null", "NULL", "None", "", "  ", " NA"])
def test_words_for_nothing(word):
    source = table(draw("yes", "no", word))
    (text,) = slips(source)
    assert text.startswith(f"The label {word!r} is treated as an answer like any other (")
    assert "remove those rows" in text
    assert not slips(source, classes=["yes", "no", word])
    assert len(slips(source, classes=["yes", "no"])) == 1
    with pytest.warns(DataWarning, match="missing="):
        cs.Answers.from_matrix(source["label"].reshape(100, 3))


@pytest.mark.parametrize(
    "labels", [["ham", "spam", "ABSTAIN"], ["ham", "Abstain"], ["ham", "spam", "-1"], [-1, 0, 1, 2]]
)
@pytest.mark.parametrize("shape", ["long", "wide", "array"])
def test_abstentions_as_a_class(labels, shape):
    said = draw(*labels)
    wide = {"item": range(100), **dict(zip(("a", "b", "c"), said.reshape(100, 3).T, strict=True))}
    if shape == "array":
        with pytest.warns(DataWarning, match=r"stands for no answer, name it with missing="):
            cs.Answers.from_matrix(said.reshape(100, 3), missing="none")
        return
    source, form = (wide, {"format": "wide"}) if shape == "wide" else (table(said), {})
    (text,) = slips(source, **form)
    odd = next(label for label in labels if label == -1 or str(label).lower() in ("abstain", "-1"))
    others = sorted(label for label in labels if label != odd)
    assert f"The label {odd!r} is treated as an answer like any other ({(said == odd).sum()} a" in text
    assert "can never be true, name all other classes with classes=." in text
    assert ("leave those cells empty" if shape == "wide" else "remove those rows") in text
    assert not slips(source, classes=others, **form)
    assert not slips(source, classes=labels, **form)


def test_minus_one_of_crowds_passes():
    assert not slips(table(draw(-1, 1)))
    assert not slips(table(draw(-1, 0, 1)))
    assert not slips(table(draw(-2, -1, 0, 1, 2)))
    assert not slips(table(draw("-1", "0", "1")))
    assert not slips(table(draw(-1.0, 0.5, 2.0)))
    assert not slips(table(np.full(300, -1)))
    (text,) = slips(table(draw(-1, -1, -1, -1, 0, 1)))
    assert text.startswith("The label -1 is treated as an answer")


@needs_data
@pytest.mark.parametrize(
    "name",
    [
        "bluebird",
        "dog",
        "llm_judges",
        "music",
        "ner",
        "product",
        "rte",
        "sentence_polarity",
        "web",
        "bubil_mri",
        "sleep",
    ],
)
def test_real_labels_pass(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cs.read_answers(FOLDER / name / "responses.parquet").n_responses > 0


@pytest.mark.parametrize("name", ["majority", "dawid-skene", "moments"])
def test_a_model_of_normalised_labels_takes_any_spelling(name, tmp_path):
    fitted = table(draw("Cat", "cat", "DOG", "dog "))
    r = cs.Answers.from_frame(fitted, normalise=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # answers at random do not converge soon
        model = model_class(name)().fit(r)
    expected = model.predict_proba(r)
    other = table([{"c": " CAT", "d": "dOG"}[label.strip().lower()[0]] for label in fitted["label"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = cs.Answers.from_frame(other, classes=["Cat", "DOG"], normalise=True)
        for each in (model, cs.load(model.save(tmp_path / "model"))):
            for answers in (other, read, fitted):
                np.testing.assert_array_equal(each.predict_proba(answers), expected)
                np.testing.assert_array_equal(each.predict(answers), model.predict(r))
                assert each.score(answers) == model.score(r)
            assert each.predict(other, gold={3: "DOG"})[3] == "dog"
    with pytest.warns(DataWarning, match="normalise=True"):
        apart = cs.Answers.from_frame(fitted)
    np.testing.assert_array_equal(model.predict_proba(apart), expected)
