"""Arguments of a wrong kind are refused by the package, in its own words: never by NumPy, Arrow or Python."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import consilience as cs
from consilience.errors import ConsilienceError, InputError, ParameterError
from consilience.formats.arrays import read_features

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


@pytest.mark.parametrize(
    "odd", [FRAME, ARRAY, None, "x", 0.5, np.datetime64("2020"), {}], ids=lambda odd: type(odd).__name__
)
def test_seeds_and_counts(odd):
    graph = cs.Graph.from_frame(EDGES)
    assert "'seed' parameter" in refusal(graph.shuffled, odd)
    assert "'seed' parameter" in refusal(cs.held_out_score, cs.MajorityVote(), FLAT, seed=odd)
    assert "'k' parameter" in refusal(cs.Graph.knn, np.arange(8.0).reshape(4, 2), k=odd)


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


def test_a_background_that_is_a_table_or_an_array():
    for odd in (FRAME, ARRAY, [1]):
        assert "single values" in refusal(cs.Answers.from_frame, FLAT, abstain="answer", background=odd)


def test_edges_need_two_columns():
    assert "'target' parameter" in refusal(cs.Graph.from_frame, EDGES, target=None)


def test_matrices_with_odd_companions():
    read = cs.Answers.from_matrix
    assert "'missing' parameter" in refusal(read, [["x", "y"]], missing=np.array(["x", "y"]))
    assert "pairs" in refusal(read, [[0, 1], [1, 0]], lengths=[1, 1], items=np.array(1))
    assert "pairs" in refusal(read, [[0, 1], [1, 0]], lengths=[1, 1], items=memoryview(np.eye(2)))
    soft = cs.Answers.from_probabilities
    assert "classes" in refusal(soft, np.full((1, 2, 2), 0.5), classes=np.array(1))
    assert "classes" in refusal(soft, np.full((1, 2, 2), 0.5), classes=[[1], [1, 2]])


def test_small_integers_of_numpy_in_a_simulation():
    assert "too many" in refusal(cs.simulate.independent, 5, n_workers=3, copycats=np.uint8(5))


# ----------------------------------------------------------------------------------------------------- paths and models


@pytest.mark.parametrize("odd", [7, None, b"bytes", FRAME, ["a"], object()], ids=lambda odd: type(odd).__name__)
def test_paths_that_are_none(odd):
    assert "'path' parameter of save" in refusal(cs.MajorityVote().fit(FLAT).save, odd)
    assert "'path' parameter of load" in refusal(cs.load, odd)
    assert "'path' parameter" in refusal(cs.read_answers, odd)


@pytest.mark.parametrize("odd", [7, None, FRAME, "DawidSkene", cs.DawidSkene], ids=lambda odd: type(odd).__name__)
def test_models_to_score_that_are_none(odd):
    assert "'model' parameter" in refusal(cs.held_out_score, odd, FLAT)


def test_a_graph_is_checked_with_the_answers_of_the_fit():
    graph = cs.Graph.from_frame(EDGES)
    model = cs.MarkovField(max_iter=3, tol=0).fit(FLAT, graph=graph)
    more = cs.Answers.from_frame(FLAT, items=range(4))
    with pytest.raises(InputError, match="Give the answers of the fit"):
        model.check_graph(more, graph)


# -------------------------------------------------------------------------------------------------------------- metrics


@pytest.mark.parametrize("odd", [7, None, "text", FRAME, FLAT], ids=lambda odd: type(odd).__name__)
def test_agreement_of_anything_but_answers(odd):
    for function in (cs.metrics.krippendorff_alpha, cs.metrics.pairwise_agreement, cs.metrics.agreement_matrix):
        with pytest.raises(ParameterError, match="must be Answers"):
            function(odd)


@pytest.mark.parametrize("odd", [7, None, {1}, "0.5", 1j, 10**400, [[1], [1, 2]]], ids=str)
def test_distances_of_anything_but_numbers(odd):
    m = cs.metrics
    assert "arrays must" in refusal(m.prior_error, [0.5, 0.5], odd)
    assert "arrays must" in refusal(m.confusion_error, odd, np.full((1, 2, 2), 0.5))


def test_tags_that_are_none():
    for odd in (7, None, np.array(1), int):
        assert "lists of tags" in refusal(cs.metrics.span_f1, odd, ["O"])
    assert "is no tag" in refusal(cs.metrics.span_f1, [["O", ["B"]]], [["O", "O"]])
    assert "lists of tags" in refusal(cs.metrics.span_f1, [3], [["O"]])
    assert "no tags to score" in refusal(cs.metrics.span_f1, [[]], [[]])
    for odd in ("text", [None], [[1], [1, 2]], [1j], [0.5, 0.5], [[1]], [np.inf], object()):
        assert "lengths must be whole numbers" in refusal(cs.metrics.span_f1, ["O"], ["O"], lengths=odd)
    assert cs.metrics.span_f1(["B", "O"], ["B", "O"], lengths=[0.0, 2.0]) == 1


def test_bins_and_coverage():
    arguments = (["x"], [[0.5, 0.5]], ["x", "y"])
    for odd in (0, 10**7, "3", FRAME, True, DURATION):
        assert "'bins' parameter" in refusal(cs.metrics.reliability_curve, *arguments, bins=odd)
    assert "'adaptive' parameter" in refusal(cs.metrics.calibration_error, *arguments, adaptive=FRAME)
    for odd in ("1", FRAME, None):
        assert "'coverage' parameter" in refusal(cs.metrics.accuracy_at_coverage, *arguments, coverage=odd)


# ---------------------------------------------------------------------------------------------------------------- files


def test_categories_that_are_lists_in_several_batches(tmp_path):
    lists = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array([[1, 2]]))
    batch = pa.record_batch({"item": lists, "worker": ["u"], "label": ["x"]})
    for n_batches in (1, 2):
        with pa.ipc.new_file(tmp_path / "answers.arrow", batch.schema) as writer:
            for _ in range(n_batches):
                writer.write_batch(batch)
        assert "must hold single values" in refusal(cs.read_answers, tmp_path / "answers.arrow")


def test_sparse_features_that_claim_more_rows_than_there_can_be(tmp_path):
    entries = (np.ones(1), (np.zeros(1, int), np.zeros(1, int)))
    sparse.save_npz(tmp_path / "features.npz", sparse.coo_array(entries, shape=(2**40, 2)))
    assert "at most 2,147,483,647 items" in refusal(read_features, tmp_path / "features.npz")


@pytest.mark.parametrize("name", ["a\0b", "\ud800.csv"], ids=["NUL", "half a character"])
def test_inputs_with_names_that_no_file_has(name):
    assert "does not exist" in refusal(cs.fuse, name)


# --------------------------------------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("coupling", [0.5, 1.0])
def test_nothing_forbidden_is_decoded_however_little_is_smoothed(coupling):
    """With so little smoothing all factors of steps from a class that is hardly met are zero."""
    tags = ["I-X", "O", "I-Y", "B-Y", "B-X"]
    answers = {"sequence": [0] * 5, "position": range(5), "worker": ["u"] * 5, "label": tags}
    model = cs.HiddenMarkov(transitions="bio", coupling=coupling, smoothing=1e-6, max_iter=5, tol=0).fit(answers)
    assert cs.metrics.count_invalid_transitions(model.labels_.tolist()) == 0
    assert model.predict(answers).tolist() == model.labels_.tolist()
