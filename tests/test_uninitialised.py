"""No result depends on memory that nobody wrote: with `np.empty` full of nonsense, all results have the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.kernels import columns
from effort import all_pairs

plain_empty, plain_empty_like = np.empty, np.empty_like


def poison(array):
    """Fill an array with values that no result can have."""
    if array.dtype.kind == "f":
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).max // 3)
    elif array.dtype.kind == "b":
        array.fill(True)
    return array


def poisoned_empty(*args, **kwargs):
    return poison(plain_empty(*args, **kwargs))


def poisoned_empty_like(*args, **kwargs):
    return poison(plain_empty_like(*args, **kwargs))


def crowd():
    """Return answers in sequences, with two items that nobody answered, and a class that nobody said."""
    made = cs.simulate.sequences(12, length=(1, 9), n_workers=6, n_classes=3, answers_per_item=3, seed=1).responses
    item = [*made.item_of_answer().tolist(), 0]
    frame = {
        "sequence": [str(made.items[i][0]) for i in item],
        "position": [made.items[i][1] for i in item],
        "worker": [*made.worker.tolist(), 99],
        "label": [*(f"{'OBI'[k]}{'-X' if k else ''}" for k in made.label), "O"],
    }
    unanswered = [("new", 0), ("new", 1)]
    return cs.Answers.from_frame(frame, classes=["O", "B-X", "I-X", "B-Y"], items=unanswered)


def forest(r):
    return cs.Graph.from_edges(r.items[:-1], r.items[1:], items=r.items)


def loops(r):
    return cs.Graph.grid((r.n_items // 3, 3), items=r.items[: r.n_items // 3 * 3])


def everything(model, r, **links):
    """Return all arrays that a model gives."""
    model.fit(r, **links)
    found = [model.posterior_, model.fusion_.labels.codes, model.confusion_, model.prior_, model.trace_]
    found += [model.predict_proba(r, **links), np.array(model.score(r, **links))]
    return found + [np.array(model.worker_report()[name].to_pylist()) for name in ("accuracy", "informativeness")]


def field(coupling, inference, make_graph):
    return lambda r: everything(cs.MarkovField(coupling=coupling, inference=inference), r, graph=make_graph(r))


def knn(r):
    dense = np.random.default_rng(0).normal(size=(40, 20))
    return [cs.Graph.knn(dense[:, :n_features], k=3).neighbours for n_features in (2, 20)]


def simulated(r):
    few = cs.simulate.independent(200, n_workers=50, n_classes=3, answers_per_item=2, seed=1)
    many = cs.simulate.network(100, n_workers=5, n_classes=3, answers_per_item=3, seed=1)
    return [few.responses.label, few.responses.worker, many.responses.label, many.graph.neighbours, many.truth]


def saved(r, path):
    cs.DawidSkene().fit(r).save(path)
    again = cs.load(path)
    return [again.posterior_, again.confusion_, again.predict_proba(r)]


CASES = {
    "majority vote": lambda r: everything(cs.MajorityVote(), r),
    "moments": lambda r: everything(cs.MomentMatching(), r),
    "Dawid-Skene": lambda r: everything(cs.DawidSkene(n_init=2), r),
    "Dawid-Skene by EM": lambda r: everything(cs.DawidSkene(estimation="em", start="moments"), r),
    "one coin": lambda r: everything(cs.DawidSkene(workers="one-coin"), r),
    "sequential workers": lambda r: everything(cs.HiddenMarkov(workers="sequential", coupling=1.0), r),
    "learned chain": lambda r: everything(cs.HiddenMarkov(decode="marginal"), r),
    "tags": lambda r: everything(cs.HiddenMarkov(transitions="bio", coupling=0.5), r),
    "hidden answers": lambda r: list(cs.held_out_score(cs.DawidSkene(), r)[:2]),
    "nearest neighbours": knn,
    "simulations": simulated,
} | {
    f"field, {coupling}, {inference}, {make_graph.__name__}": field(coupling, inference, make_graph)
    for coupling, inference, make_graph in all_pairs(
        ("learn", "paper", 0.5), ("mean_field", "icm", "belief_propagation"), (forest, loops)
    )
}


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.parametrize("name", [*CASES, "saved"])
def test_nothing_depends_on_what_was_in_memory(name, monkeypatch, tmp_path):
    monkeypatch.setattr(columns, "LARGE", 10)  # the kernels that sort many answers do it here too

    def run():
        r = crowd()
        return saved(r, tmp_path / "model") if name == "saved" else CASES[name](r)

    clean = run()  # which also compiles all kernels: those must not meet the poison
    monkeypatch.setattr(np, "empty", poisoned_empty)
    monkeypatch.setattr(np, "empty_like", poisoned_empty_like)
    poisoned = run()
    for a, b in zip(clean, poisoned, strict=True):
        np.testing.assert_array_equal(a, b)
