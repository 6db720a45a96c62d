"""What must not matter: the order of rows and of workers, and the types of the columns that hold ids."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from consilience.answers.columns import objects
from consilience.answers.random_choices import (
    count_units,
    draw_numbers,
    hash_ids,
    hide_answers,
)
from consilience.inference.estimator import renew

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

INDEPENDENT = cs.simulate.independent(250, n_workers=14, n_classes=3, answers_per_item=4, seed=1)
CHAINS = cs.simulate.sequences(25, length=(1, 9), n_workers=12, n_classes=3, answers_per_item=3, seed=2)
NETWORK = cs.simulate.network(250, n_workers=12, n_classes=3, degree=4, answers_per_item=3, seed=3)

MODELS = {
    "vote": (cs.MajorityVote(seed=5), INDEPENDENT),
    "moments": (cs.MomentMatching(), INDEPENDENT),
    "Dawid-Skene": (cs.DawidSkene(), INDEPENDENT),
    "Dawid-Skene from random starts": (cs.DawidSkene(n_init=3, seed=2), INDEPENDENT),
    "Dawid-Skene from moments": (cs.DawidSkene(start="best", estimation="em"), INDEPENDENT),
    "one coin": (cs.DawidSkene(workers="one-coin"), INDEPENDENT),
    "learned chain": (cs.HiddenMarkov(), CHAINS),
    "sequential workers": (cs.HiddenMarkov(workers="sequential", coupling=1.0), CHAINS),
    "mean field": (cs.MarkovField(), NETWORK),
    "modes": (cs.MarkovField(inference="icm", coupling="paper"), NETWORK),
    "messages": (cs.MarkovField(inference="belief_propagation", coupling=0.7), NETWORK),
}

TYPES = {
    "text": lambda ids: pd.Series([str(i) for i in ids], dtype="str"),
    "objects": lambda ids: pd.Series(objects([str(i) for i in ids])),
    "categories": lambda ids: pd.Series(pd.Categorical([str(i) for i in ids], ordered=False)),
    "shuffled categories": lambda ids: pd.Series(
        pd.Categorical([str(i) for i in ids], categories=[str(i) for i in dict.fromkeys(ids[::-1])])
    ),
    "integers": lambda ids: pd.Series(ids, dtype="int64"),
    "floats": lambda ids: pd.Series(ids, dtype="float64"),
    "mixed": lambda ids: pd.Series(objects([i if i % 2 else str(i) for i in ids])),
}


def table(r, order=None, as_type=TYPES["integers"]):
    """Return answers as a table: rows in this order, and ids of items (sequences) and workers of this type."""
    order = np.arange(r.n_responses) if order is None else order
    item = r.item_of_answer()[order]
    owner = item if r.sequences is None else r.sequences.of_items()[item]
    frame = {
        "item" if r.sequences is None else "sequence": as_type(owner.tolist()),
        "worker": as_type((r.worker[order] * 7 % 100).tolist()),  # whose order as text is not that as numbers
        "label": np.array(["x", "y", "z"], dtype=object)[r.label[order]],
    }
    return pd.DataFrame(frame | ({} if r.sequences is None else {"position": r.sequences.position[item]}))


def named_graph(crowd, as_type=TYPES["integers"]):
    """Return the graph of a crowd with ids of this type."""
    if crowd.graph is None:
        return None
    source = np.repeat(np.arange(crowd.graph.n_items), crowd.graph.degrees)
    return cs.Graph.from_edges(as_type(source.tolist()), as_type(crowd.graph.neighbours.tolist()))


@cache
def plain_results(name):
    """Return the results for a model and its crowd as they are."""
    model, crowd = MODELS[name]
    return results(model, table(crowd.responses), named_graph(crowd))


def results(model, frame, graph):
    """Return label and posterior of each item and matrix of each worker, in the order of the ids' text."""
    fitted = renew(model).fit(frame, graph=graph)
    keys = [
        ":".join(str(part).removesuffix(".0") for part in row)
        for row in zip(*fitted.result_.labels.keys.values(), strict=True)
    ]
    items = np.argsort(keys)
    workers = np.argsort([str(worker).removesuffix(".0") for worker in fitted.result_.names.workers.tolist()])
    return fitted.labels_[items], fitted.posterior_[items], fitted.confusion_[workers]


def assert_same(found, expected):
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[2], expected[2], rtol=0, atol=1e-9)


# -------------------------------------------------------------------------------------------------------------- models


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_rows_does_not_matter(name):
    model, crowd = MODELS[name]
    graph = named_graph(crowd)
    order = np.random.default_rng(1).permutation(crowd.responses.n_responses)
    assert_same(results(model, table(crowd.responses, order), graph), plain_results(name))


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, "text") for name in MODELS]
    + [(name, kind) for name in ("vote", "learned chain", "mean field") for kind in ("objects", "shuffled categories")]
    + [(name, kind) for name in ("vote", "mean field") for kind in ("categories", "floats", "mixed")],
)
def test_the_types_of_ids_do_not_matter(name, kind):
    """Workers come in another order with some of them: as text, 14 is before 7."""
    model, crowd = MODELS[name]
    found = results(model, table(crowd.responses, None, TYPES[kind]), named_graph(crowd, TYPES[kind]))
    assert_same(found, plain_results(name))


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_workers_does_not_matter(name):
    model, crowd = MODELS[name]
    r = crowd.responses
    votes = np.full((r.n_items, r.n_workers), -1)
    votes[r.item_of_answer(), r.worker] = r.label
    lengths = None if r.sequences is None else np.diff(r.sequences.offsets)
    moved = np.random.default_rng(4).permutation(r.n_workers)
    workers = [f"w{m}" for m in range(r.n_workers)]
    # Labels are given, for their order must not change.
    plain, other = (
        renew(model).fit(
            cs.Answers.from_matrix(votes[:, order], lengths=lengths, labels=["x", "y", "z"], workers=names),
            graph=crowd.graph,
        )
        for order, names in ((slice(None), workers), (moved, [workers[m] for m in moved]))
    )
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_allclose(other.posterior_, plain.posterior_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(other.confusion_, plain.confusion_[moved], rtol=0, atol=1e-9)


def test_the_order_of_classes_does_not_matter_to_ties():
    frame = {
        "item": np.repeat(np.arange(200), 3),
        "worker": np.tile([0, 1, 2], 200),
        "label": np.tile(list("xyz"), 200),
    }
    first = cs.MajorityVote(seed=1).fit(frame)
    orders = [["z", "x", "y"], ["y", "x", "z", "nobody said it"]]
    for classes in orders:
        again = cs.MajorityVote(seed=1).fit(cs.Answers.from_frame(frame, classes=classes))
        np.testing.assert_array_equal(again.labels_, first.labels_)
        np.testing.assert_array_equal(again.predict(cs.Answers.from_frame(frame)), first.labels_)
    assert len(set(first.labels_)) == 3


def test_whatever_else_is_drawn_goes_by_ids_too():
    """Comparison with the vote, and the check of the graph."""
    for crowd in (INDEPENDENT, CHAINS, NETWORK):
        r, graph = crowd.responses, named_graph(crowd)
        order = np.random.default_rng(3).permutation(r.n_responses)
        one, other = (cs.fuse(table(r, rows), graph=graph) for rows in (None, order))
        found, other_found = (dict(vars(model.comparison_)) for model in (one, other))
        words = {name for name, value in found.items() if isinstance(value, str)}
        assert found.pop("lost") == other_found.pop("lost")
        assert [found.pop(name) for name in sorted(words)] == [other_found.pop(name) for name in sorted(words)]
        np.testing.assert_allclose(list(other_found.values()), list(found.values()), rtol=0, atol=1e-9)
        if graph is not None:
            check, other_check = (list(vars(model.graph_check_).values()) for model in (one, other))
            np.testing.assert_allclose(other_check, check, rtol=0, atol=1e-9)


# ------------------------------------------------------------------------------------------------------ hidden answers


@pytest.mark.parametrize("crowd", [INDEPENDENT, CHAINS])
@pytest.mark.parametrize("kind", ["text", "categories", "floats"])
def test_the_same_answers_are_hidden_whatever_the_table(crowd, kind):
    def hidden(r):
        item = r.item_of_answer()
        owner = r.items[item] if r.sequences is None else r.sequences.ids[r.sequences.of_items()[item]]
        return [
            {(str(float(owner[j])), str(float(r.workers[r.worker[j]]))) for j in np.flatnonzero(chosen)}
            for chosen, _ in hide_answers(r, 0.2, 6, 3)
        ]

    plain = cs.Answers.from_frame(table(crowd.responses))
    order = np.random.default_rng(0).permutation(plain.n_responses)
    other = cs.Answers.from_frame(table(crowd.responses, order, TYPES[kind]))
    assert hidden(other) == hidden(plain)
    assert len(hidden(plain)) == 3
    if crowd is INDEPENDENT:
        assert len(hidden(plain)[0]) == round(0.2 * count_units(plain))


# -------------------------------------------------------------------------------------------------------------- hashes


def test_hashes_are_these_numbers():
    """They must not change: with them would change which answers are hidden, and the labels of tied items."""
    texts = hash_ids(objects(["", "a", "naïve", "日本"]))
    assert texts.tolist() == [17665956581633026203, 198367012849983736, 16027049320462047264, 13255442384202379014]
    assert draw_numbers(0, hash_ids(np.array([1]))).tolist() == [8928207796210396648]
    assert draw_numbers(2**128 - 1, hash_ids(np.array([1]))).tolist() == [12707723011930195878]
    assert draw_numbers(None, np.array([1, 2], np.uint64)).tolist() == [10451216379200822465, 10905525725756348110]


def test_equal_texts_have_equal_hashes():
    text = hash_ids(objects(["7", "12", "-3"]))
    for values in (
        np.array([7, 12, -3]),
        np.array([7, 12, -3], np.int8),
        np.array([7.0, 12.0, -3.0]),
        objects([7, "12", -3.0]),
        objects([np.int64(7), np.float32(12), b"-3"]),
        np.array(["7", "12", "-3"]),
    ):
        np.testing.assert_array_equal(hash_ids(values), text)
    np.testing.assert_array_equal(hash_ids(np.array([True, False])), hash_ids(objects(["true", "false"])))
    assert len(set(hash_ids(objects(["7", "7 ", "07", "\uff17", "7.5"])).tolist())) == 5
