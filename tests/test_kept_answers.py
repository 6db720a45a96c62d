"""A fitted model keeps what it was fitted to, in memory and in its file."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import consilience as cs
import model_files
from consilience.answers.keys import Sequences
from consilience.inference.estimator import renew

PLAIN = cs.simulate.independent(40, n_workers=6, n_classes=3, answers_per_item=3, seed=1).responses
SEQUENCES = cs.simulate.sequences(4, length=6, n_workers=3, n_classes=2, seed=1).responses
NETWORK = cs.simulate.network(30, n_workers=4, n_classes=2, degree=3, seed=1)
SPARSE = {"item": ["a", "b", "a", "c"], "worker": [3, 3, 1, 1], "label": ["x", "y", "x", "unsure"]}
EMPTY = cs.Answers.from_frame(SPARSE, items=["z", "b", "a", "c", "y"], classes=["y", "x", "never"])
SILENT = cs.Answers.from_frame(SPARSE | {"label": list("xyxy")}, items=list("zbac"), abstain="answer", background="y")
NORMAL = cs.Answers.from_frame(SPARSE | {"label": ["X ", "y", "x", "Y"]}, normalise=True)
SOFT = cs.Answers.from_probabilities(np.random.default_rng(0).dirichlet([1, 1, 1], size=(8, 3)))
TIMES = cs.Answers.from_frame(
    pd.DataFrame({"sequence": ["s", "s", "t"], "position": pd.to_datetime(["2020-01-02", "2020-01-01", "2021-01-01"])})
    .merge(pd.DataFrame({"worker": ["u", "v"]}), how="cross")
    .assign(label=[True, True, False, True, False, False])
)
CROWDS = [
    (cs.MajorityVote(), PLAIN),
    (cs.DawidSkene(), PLAIN),
    (cs.DawidSkene(), EMPTY),
    (cs.DawidSkene(), SILENT),
    (cs.MajorityVote(), NORMAL),
    (cs.DawidSkene(), SOFT),
    (cs.HiddenMarkov(coupling=0.5), SEQUENCES),
    (cs.MajorityVote(), TIMES),
]


def same_answers(one: cs.Answers, other: cs.Answers) -> None:
    """Compare all that answers hold, except for what is left out on purpose."""
    for field in dataclasses.fields(cs.Answers):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, Sequences):
            assert isinstance(b, Sequences)
            for part in dataclasses.fields(Sequences):
                np.testing.assert_array_equal(getattr(a, part.name), getattr(b, part.name))
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            np.testing.assert_array_equal(a, b)
        elif field.name != "gold":
            assert a == b, field.name


@pytest.mark.parametrize(("model", "answers"), CROWDS)
def test_answers_come_back_from_the_file(model, answers, tmp_path):
    fitted = renew(model).fit(answers)
    same_answers(fitted.result_.answers, answers.with_classes(fitted.classes_))
    loaded = cs.load(fitted.save(tmp_path / "model"))
    same_answers(loaded.result_.answers, fitted.result_.answers)
    again = renew(model).fit(loaded.result_.answers)
    np.testing.assert_array_equal(again.posterior_, fitted.posterior_)
    assert loaded.save(tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_copies_that_count_once_are_kept_with_their_own_weight(tmp_path):
    crowd = cs.simulate.independent(300, n_workers=8, n_classes=3, seed=2).responses
    matrix = np.full((300, 8), -1)
    matrix[crowd.item_of_answer(), crowd.worker] = crowd.label
    answers = cs.Answers.from_matrix(np.column_stack([matrix, matrix[:, 0], matrix[:, 0]]))
    for name in ("dawid-skene", "majority"):
        with pytest.warns(cs.errors.DataWarning, match="copy each other"):
            fused = cs.fuse(answers, model=name)
        assert fused.result_.given.copies_count_once
        same_answers(fused.result_.answers, answers)
        assert cs.load(fused.save(tmp_path / name)).result_.answers.weight is None
    # The vote still counts copies once when its matrices are worked out.
    table = fused.worker_report().to_pydict()
    assert table["answers"] == [300] * 10
    assert fused.result_.estimates.counts.sum() == pytest.approx(300 * 8)


def test_known_labels_come_back_whether_or_not_answers_are_saved(tmp_path):
    gold = {"item": PLAIN.items[[5, 2, 9]], "label": PLAIN.classes[[0, 1, 2]], "random": [True, False, True]}
    for model in (cs.DawidSkene(), cs.MajorityVote()):
        fitted = model.fit(PLAIN, gold=gold)
        for keep in (True, False):
            loaded = cs.load(fitted.save(tmp_path / "model", answers=keep))
            assert np.flatnonzero(loaded.result_.given.gold.codes >= 0).tolist() == [2, 5, 9]
            assert loaded.result_.given.gold.codes[[2, 5, 9]].tolist() == [1, 0, 2]
            assert np.flatnonzero(loaded.result_.given.gold.judging).tolist() == [5, 9]
        assert model.fit(PLAIN).result_.given.gold is None


@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0]])
def test_the_graph_comes_back_as_it_was_given(weight, tmp_path):
    graph = cs.Graph.from_edges(["c", "b", "z"], ["a", "a", "y"], weight, items=EMPTY.items)
    fitted = cs.MarkovField(coupling="paper").fit(EMPTY, graph=graph)
    loaded = cs.load(fitted.save(tmp_path / "model"))
    for kept in (fitted.result_.given.graph, loaded.result_.given.graph):
        assert (kept.to_scipy() != graph.aligned_with(EMPTY.items).to_scipy()).nnz == 0
        assert kept.description == "given edges"
        np.testing.assert_array_equal(kept.items, EMPTY.items)
    assert cs.load(fitted.save(tmp_path / "model", answers=False)).result_.given.graph is None


def test_a_file_without_answers(tmp_path):
    fitted = cs.DawidSkene().fit(PLAIN)
    paths = [fitted.save(tmp_path / name, answers=keep) for name, keep in (("with", True), ("without", False))]
    loaded = cs.load(paths[1])
    with pytest.raises(cs.errors.NotFittedError, match="holds no answers: it was saved with answers=False"):
        _ = loaded.result_.answers
    assert not [name for name in model_files.unpack(paths[1].read_bytes()) if "given/answers" in name]
    np.testing.assert_array_equal(loaded.posterior_, fitted.posterior_)
    assert loaded.save(tmp_path / "again").read_bytes() == paths[1].read_bytes()
    with pytest.raises(cs.errors.ParameterError, match="'answers' parameter of save must be True or False"):
        fitted.save(tmp_path / "x", answers="no")
    with pytest.raises(cs.errors.NotFittedError, match="not fitted yet"):
        _ = cs.DawidSkene().result_.answers


def test_damaged_answers_are_explained(tmp_path):
    gold = {0: PLAIN.classes[0]}
    path = cs.DawidSkene().fit(PLAIN, gold=gold).save(tmp_path / "a")
    field = cs.MarkovField(coupling=0.5).fit(NETWORK.responses, graph=NETWORK.graph).save(tmp_path / "b")
    sequences = cs.MajorityVote().fit(SEQUENCES).save(tmp_path / "c")
    soft = cs.MajorityVote().fit(SOFT).save(tmp_path / "d")
    array, narrow = model_files.to_bytes, np.uint8
    order = pd.Series(np.arange(24)[::-1] % 6)
    cases = [
        (path, {"arrays/given/answers/worker.npy": None}, "the array 'given/answers/worker' is missing"),
        (
            path,
            {"arrays/given/answers/label.npy": array(np.zeros(3, narrow))},
            "not as many answers as the items have",
        ),
        (path, {"arrays/given/answers/label.npy": array(np.full(120, 3, narrow))}, "does not hold indices of labels"),
        (soft, {"arrays/given/answers/soft.npy": array(np.full((24, 3), 2, "f4"))}, "does not hold probabilities"),
        (
            soft,
            {"arrays/given/answers/soft.npy": array(np.ones((9, 3), "f4") / 3)},
            "not as many answers as the items",
        ),
        (path, {"arrays/given/gold/codes.npy": array(np.full(40, 3, narrow))}, "does not hold indices of classes"),
        (path, {"arrays/given/gold/codes.npy": array(np.array([2, 2], narrow))}, "has the shape"),
        (field, {"arrays/given/graph/neighbours.npy": array(np.full(45, 99, narrow))}, "edge|edges"),
        (
            field,
            {"arrays/given/graph/neighbours.npy": None, "arrays/given/graph/offsets.npy": None},
            "the array 'given/graph/offsets' is missing",
        ),
        (
            sequences,
            {"columns/labels/keys/position.arrow": model_files.write_column(model_files.pa.table({"values": order}))},
            "must stand together, in the order of their positions",
        ),
    ]
    for file, members, expected in cases:
        damaged = tmp_path / "damaged"
        parts = model_files.unpack(file.read_bytes()) | members
        damaged.write_bytes(model_files.pack({name: part for name, part in parts.items() if part is not None}))
        with pytest.raises(cs.errors.StoreError, match=f"is damaged: .*{expected}"):
            cs.load(damaged)


@pytest.mark.parametrize(
    ("entry", "value", "expected"),
    [
        ("answers", None, "there is no array 'given/answers/label'"),
        ("answers", {}, "the entry of given/answers 'background', 'columns'"),
        ("format", "excel", "given/answers/format cannot be 'excel'"),
        ("background", 3, "out of bounds"),
    ],
)
def test_a_header_must_describe_the_answers(entry, value, expected, tmp_path):
    from test_damaged_models import change_header

    path = cs.DawidSkene().fit(PLAIN).save(tmp_path / "a")
    fusion = json.loads(model_files.unpack(path.read_bytes())["model.json"])["fusion"]
    given = fusion["given"]
    (given if entry in given else given["answers"])[entry] = value
    change_header(path, fusion=fusion)
    with pytest.raises(cs.errors.StoreError, match=f"is damaged: .*{expected}"):
        cs.load(path)
