"""Arguments of a wrong kind are refused by the package, in its own words: never by NumPy, Arrow or Python."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import consilience as cs
from consilience.errors import ConsilienceError

FLAT = {"item": [0, 0, 1, 1, 2, 2], "worker": ["u", "v"] * 3, "label": list("xyxxyy")}
PLACES = {"sequence": [0] * 6, "position": [0, 0, 1, 1, 2, 2], "worker": ["u", "v"] * 3, "label": list("xyxxyy")}
EDGES = {"source": [0, 1], "target": [1, 2]}
FRAME, ARRAY, DURATION = pd.DataFrame({"a": [1, 2]}), np.array(["a", "b"]), np.timedelta64(3, "D")


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def refusal(function, *arguments, **keywords) -> str:
    with pytest.raises(ConsilienceError) as caught:
        function(*arguments, **keywords)
    return str(caught.value)


# ----------------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    "odd", [FRAME, ARRAY, DURATION, Rude(), pd.NA, [[1], [1, 2]], 1j], ids=lambda odd: type(odd).__name__
)
@pytest.mark.parametrize("kind", ["MajorityVote", "DawidSkene", "MomentMatching", "HiddenMarkov", "MarkovField"])
def test_no_parameter_of_a_model_takes_odd_objects(kind, odd):
    model = getattr(cs, kind)
    answers = PLACES if kind == "HiddenMarkov" else FLAT
    graph = cs.Graph.from_frame(EDGES) if kind == "MarkovField" else None
    for name in model().get_params():
        asked = model(**{name: odd})
        assert repr(asked).startswith(kind)
        assert name in refusal(asked.fit, answers, graph=graph), name


def test_numbers_that_are_complex_or_masked_are_no_numbers():
    masked = np.ma.array([0.5, 0.5], mask=[False, True])
    for odd in (np.array([0.5 + 1j, 0.5]), masked):
        assert "'prior' parameter" in refusal(cs.DawidSkene(prior=odd).fit, FLAT)
        assert "'prior' parameter" in refusal(cs.simulate.independent, 5, n_classes=2, prior=odd)
    start = np.ma.array(np.full((2, 2, 2), 0.5), mask=True)
    assert "'start' parameter" in refusal(cs.DawidSkene(start=start).fit, FLAT)
    assert "probabilities" in refusal(cs.Answers.from_probabilities, np.full((2, 2, 2), 0.5 + 0j))
    assert "must be numbers" in refusal(cs.Graph.knn, np.ones((4, 2)) * 1j, 1)
    assert "must be numbers" in refusal(cs.Graph.knn, sparse.csr_array(np.eye(4) * 1j), 1)
    assert "positive numbers" in refusal(cs.Graph.from_edges, [0], [1], weight=[1j])


@pytest.mark.parametrize("odd", [FRAME, ARRAY, [1], Rude(), DURATION], ids=lambda odd: type(odd).__name__)
def test_choices_and_names(odd):
    read, graph = cs.Answers.from_frame, cs.Graph
    features = np.arange(8.0).reshape(4, 2)
    for name in ("item", "worker", "label", "weight", "position"):
        assert "has no column" in refusal(read, FLAT, **{name: odd})
    assert "'duplicates' parameter" in refusal(read, FLAT, duplicates=odd)
    assert "'abstain' parameter" in refusal(read, FLAT, abstain=odd)
    assert "'metric' parameter" in refusal(graph.knn, features, k=1, metric=odd)
    assert "'mutual' parameter" in refusal(graph.knn, features, k=1, mutual=odd)
    assert "'connectivity' parameter" in refusal(graph.grid, (2, 3), connectivity=odd)
    assert "has no column" in refusal(graph.from_frame, EDGES, weight=odd)
    assert "'weight' parameter" in refusal(graph.from_networkx, nx.path_graph(3), weight=odd)
    assert "'model' parameter" in refusal(cs.fuse, FLAT, model=odd)
    assert "There is no column" in refusal(cs.evaluate, {"item": [0], "label": ["x"]}, {0: "x"}, item=odd)
    assert "'good' parameter" in refusal(cs.simulate.independent, 5, good=odd)
    assert "'activity' parameter" in refusal(cs.simulate.independent, 5, activity=odd)


# ----------------------------------------------------------------------------------------------------- paths and models


@pytest.mark.parametrize("odd", [7, None, b"bytes", FRAME, ["a"], object()], ids=lambda odd: type(odd).__name__)
def test_paths_that_are_none(odd):
    assert "'path' parameter of save" in refusal(cs.MajorityVote().fit(FLAT).save, odd)
    assert "'path' parameter of load" in refusal(cs.load, odd)
    assert "'path' parameter" in refusal(cs.read_answers, odd)


# -------------------------------------------------------------------------------------------------------------- metrics


# ---------------------------------------------------------------------------------------------------------------- files


# --------------------------------------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("coupling", [0.5, 1.0])
def test_nothing_forbidden_is_decoded_however_little_is_smoothed(coupling):
    """With so little smoothing all factors of steps from a class that is hardly met are zero."""
    tags = ["I-X", "O", "I-Y", "B-Y", "B-X"]
    answers = {"sequence": [0] * 5, "position": range(5), "worker": ["u"] * 5, "label": tags}
    model = cs.HiddenMarkov(transitions="bio", coupling=coupling, smoothing=1e-6, max_iter=5, tol=0).fit(answers)
    assert cs.metrics.count_invalid_transitions(model.labels_.tolist()) == 0
    assert model.predict(answers).tolist() == model.labels_.tolist()
