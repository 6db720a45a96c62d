"""Tables and files of soft votes: all of them hold what `Answers.from_probabilities` is given."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from command_line import run
from consilience.answers.layouts import to_long
from consilience.errors import InputError, ParameterError
from consilience.formats.arrays import open_votes

WORKERS, CLASSES = ["forest", "linear", "net"], ["cat", "dog", "fox"]
ITEMS = [f"{n}.jpg" for n in range(12)]


def draw(seed=0):
    """Return P[item, worker, class], with some votes missing."""
    rng = np.random.default_rng(seed)
    votes = rng.dirichlet(np.ones(3), (12, 3))
    votes[rng.random((12, 3)) < 0.2] = np.nan
    votes[:, 0] = rng.dirichlet(np.ones(3), 12)  # every item has one
    return votes


P = draw()
VOTES = cs.Answers.from_probabilities(P, classes=CLASSES, items=ITEMS, workers=WORKERS)


def make_rows(named=True):
    table = to_long(VOTES).to_pandas()
    return table if named else table.rename(columns=lambda name: re.sub(r"p\((.*)\)", r"\1", name))


def make_long():
    return make_rows(False).melt(["item", "worker"], var_name="label", value_name="probability")


def assert_same(found, given=VOTES, atol=1e-7):
    """Both hold the same votes, whatever the order of items and workers."""
    assert found.labels.tolist() == given.labels.tolist()
    columns = [f"p({each})" for each in given.labels]
    tables = []
    for r in (found, given):
        table = to_long(r)
        table = table if isinstance(table, pd.DataFrame) else table.to_pandas()
        tables.append(table.astype({"item": str, "worker": str}).sort_values(["item", "worker"]))
    for name in ("item", "worker"):
        assert tables[0][name].tolist() == tables[1][name].tolist()
    np.testing.assert_allclose(tables[0][columns], tables[1][columns], atol=atol)
    assert found.weight is None


# ----------------------------------------------------------------------------------------------------------- recognised

FORMS = {
    "soft": [make_rows, lambda: make_rows(named=False), lambda: make_rows().sample(frac=1, random_state=1)],
    "soft-long": [make_long, lambda: make_long().sample(frac=1, random_state=1)],
}


@pytest.mark.parametrize(("form", "make"), [(form, make) for form, several in FORMS.items() for make in several])
@pytest.mark.parametrize("way", ["pandas", "csv", "parquet"])
def test_tables_are_recognised_by_their_content(form, make, way, tmp_path):
    table = make()
    if way != "pandas":
        path = tmp_path / f"votes.{way}"
        getattr(table, f"to_{way}")(path, index=False)
        found = cs.read_answers(path)
    else:
        found = cs.Answers.from_frame(table)
    assert found.format == form
    assert_same(found)


def test_other_tables_stay_what_they_are():
    hard = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "y", "x"]}
    assert cs.Answers.from_frame(hard | {"probability": [0.9, 0.8, 0.7]}).soft is None  # of the answer, one row each
    assert cs.Answers.from_frame(hard | {"x": [0.3, 0.4, 0.5], "y": [0.7, 0.6, 0.5]}).soft is None
    rated = pd.DataFrame({"item": [1, 2, 3], "q_one": [3, 4, 5], "q_two": [3, 4, 4]})
    assert cs.Answers.from_frame(rated, format="wide").soft is None
    questions = {"item": [1, 1], "worker": ["a", "b"], "q1": [1, 3], "q2": [2, 4]}
    with pytest.raises(InputError, match="no column for the label"):
        cs.Answers.from_frame(questions)


# ---------------------------------------------------------------------------------------------------------------- files


def test_a_folder_with_a_file_for_each_worker(tmp_path):
    for kind in ("arrays", "tables"):
        (tmp_path / kind).mkdir()
    for m, who in enumerate(WORKERS):
        np.save(tmp_path / "arrays" / f"{who}.npy", P[:, m])
        columns = {"item": ITEMS} | {f"p({what})": P[:, m, k] for k, what in enumerate(CLASSES)}
        pd.DataFrame(columns).to_parquet(tmp_path / "tables" / f"{who}.parquet")
    found = cs.read_answers(tmp_path / "tables")
    assert found.format == "soft-files"
    assert_same(found)
    numbered = cs.Answers.from_probabilities(P, classes=CLASSES, workers=WORKERS)
    assert_same(cs.read_answers(tmp_path / "arrays", classes=CLASSES), numbered)
    assert_same(cs.read_answers(str(tmp_path / "arrays" / "*.npy"), classes=CLASSES), numbered)
    assert cs.read_answers(tmp_path / "arrays").classes.tolist() == [0, 1, 2]
    np.save(tmp_path / "all.npy", P)
    found = cs.read_answers(tmp_path / "all.npy", classes=CLASSES)
    assert_same(found, cs.Answers.from_probabilities(P, classes=CLASSES))
    with pytest.raises(InputError, match=r"classes must be 3 distinct values; got 2"):
        cs.read_answers(tmp_path / "all.npy", classes=["cat", "dog"])


def test_arrays_that_do_not_go_together(tmp_path):
    np.save(tmp_path / "a.npy", P[:, 0])
    np.save(tmp_path / "b.npy", P[:, 0, :2])
    with pytest.raises(InputError, match=r"Their shapes are .*\(12, 2\) in b\.npy"):
        cs.read_answers(tmp_path)
    np.save(tmp_path / "b.npy", np.zeros((12, 3), int))
    assert open_votes(str(tmp_path), None) is None
    with pytest.raises(InputError, match="one array of fractions"):
        cs.read_answers(tmp_path, format="soft-files")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(InputError, match="by item, worker and class"):
        cs.read_answers(tmp_path / "flat.npy", format="soft-files")


def test_the_command_line_takes_them_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_rows().to_csv("votes.csv", index=False)
    make_long().to_csv("long.csv", index=False)
    labels = []
    for path in ("votes.csv", "long.csv"):
        result = run("fuse", path, "-o", "labels.csv", "--model", "majority", "-q")
        assert result.exit_code == 0, result.stderr
        labels.append(pd.read_csv("labels.csv").set_index("item")["label"].reindex(ITEMS).tolist())
    assert labels[0] == labels[1]
    listed = run("formats").stdout
    assert all(form in listed for form in (*FORMS, "soft-files"))
    make_rows().round(2).to_csv("rounded.csv", index=False)
    assert "--rescale" in run("fuse", "rounded.csv", "-o", "labels.csv").stderr
    assert run("fuse", "rounded.csv", "-o", "labels.csv", "--rescale", "-q").exit_code == 0
    result = run("convert", "votes.csv", "out.csv")
    assert result.exit_code == 0, result.stderr
    assert_same(cs.read_answers("out.csv"))


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda t: t.assign(**{"p(cat)": 8 * t["p(cat)"] - 4}),
            "sums to.*logits or scores, take their",
        ),
        (lambda t: t.assign(**{"p(cat)": t["p(cat)"] / 2}), "at least 0 and sum to 1.*divide each vote by its sum"),
        (lambda t: t.assign(**{"p(cat)": 1.7e308, "p(dog)": 1.7e308}), "sums to inf"),
        (lambda t: t.assign(**{"p(cat)": np.inf, "p(dog)": -np.inf}), "sums to nan"),
        (lambda t: t.round(2), r"seem to be rounded: use rescale=True"),
        (lambda t: t.assign(**{"p(cat)": t["p(cat)"].where(t["worker"] != "net")}), "no probability of 'cat' at row"),
        (lambda t: t.assign(**{"p(cat)": "high"}), "holds something else: 'p.cat.'"),
        (lambda t: t.drop(columns=["p(cat)", "p(dog)"]), "There must be one for each class"),
        (lambda t: pd.concat([t, t[:1]]), "answered item .* more than once"),
    ],
)
def test_votes_that_are_none(change, words):
    with pytest.raises(InputError, match=words):
        cs.Answers.from_frame(change(make_rows()))


def test_what_does_not_go_with_probabilities():
    for options in ({"normalise": True}, {"duplicates": "mean"}):
        with pytest.raises(ParameterError, match="does not go with probabilities"):
            cs.Answers.from_frame(make_rows(), **options)
    with pytest.raises(InputError, match="without a column of its own for the weight"):
        cs.Answers.from_frame(make_rows().assign(w=0.5), weight="w", format="soft")
    twice = pd.concat([make_rows(), make_rows()[:1].assign(**{"p(cat)": 1.0, "p(dog)": 0.0, "p(fox)": 0.0})])
    last = cs.Answers.from_frame(twice, duplicates="last")
    assert last.n_responses == VOTES.n_responses
    assert last.labels.tolist() == CLASSES
    assert last.soft[last.soft.max(axis=1) == 1].tolist() == [[1, 0, 0]]


def test_percentages_are_rescaled():
    table = make_rows()
    cells = [name for name in table.columns if name.startswith("p(")]
    percent = table.assign(**{name: 100 * table[name] for name in cells})
    with pytest.raises(InputError, match="seem to be percentages: use rescale=True"):
        cs.Answers.from_frame(percent)
    read = cs.Answers.from_frame(percent, rescale=True)
    np.testing.assert_allclose(read.soft, cs.Answers.from_frame(table).soft, atol=1e-6)


def test_probabilities_of_one_class_alone():
    shares = np.linspace(0, 1, 60)
    long = {"item": np.repeat(np.arange(30), 2), "worker": ["ann", "bob"] * 30, "label": ["yes"] * 60}
    with pytest.raises(InputError, match="probabilities of 'yes' alone"):
        cs.Answers.from_frame(long | {"probability": shares})
