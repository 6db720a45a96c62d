"""Graphs: every way to build one, against plain loops."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import consilience as cs
from consilience.answers import graph as edges_module
from consilience.answers.graph import METRICS, NEIGHBOURHOODS
from consilience.errors import InputError, ParameterError
from consilience.formats.sources import as_graph

Graph = cs.Graph


def edges_of(graph):
    """Return {(id, id): weight} of each edge in both directions."""
    names = graph.items.tolist()
    return {
        (names[i], names[j]): w
        for i in range(graph.n_items)
        for j, w in zip(
            graph.neighbours[graph.offsets[i] : graph.offsets[i + 1]].tolist(),
            graph.weights[graph.offsets[i] : graph.offsets[i + 1]].tolist(),
            strict=True,
        )
    }


def pairs_of(graph):
    """Return the edges as a set of unordered pairs."""
    return {frozenset(pair) for pair in edges_of(graph)}


def check_form(graph):
    """What holds for any graph: symmetric, no loops, sorted neighbours."""
    edges = edges_of(graph)
    assert len(edges) == len(graph.neighbours) == 2 * graph.n_edges
    assert all(a != b and edges[b, a] == weight for (a, b), weight in edges.items())
    assert graph.degrees.sum() == len(graph.neighbours)
    assert graph.offsets.dtype == np.int64
    assert graph.neighbours.dtype == np.int32
    for i in range(graph.n_items):
        assert (np.diff(graph.neighbours[graph.offsets[i] : graph.offsets[i + 1]]) > 0).all()
    return graph


# Edges


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["2024-01-01", "2024-01-02"], "datetime64[ns]"),
        pd.Series(["x", "y"], dtype="category"),
        pl.Series(["x", "y"]),
        pa.array(["x", "y"]),
        [("s", 1), ("s", 2)],
        [1, "y"],
        [2.5, 7.0],
    ],
    ids=str,
)
def test_ids_of_any_kind(ids):
    graph = check_form(Graph.from_edges(ids, ids[::-1]))
    assert graph.n_items == 2
    assert graph.n_edges == 1
    again = Graph.from_edges(ids, ids[::-1], items=graph.items)
    assert edges_of(again) == edges_of(graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [3]), "source has 2 ids and target 1"),
        (([1, 2], [3, None]), "An end of 1 of the edges is missing"),
        (([1], [2], [0.0]), "positive numbers; 1 of 1 are not: 0.0"),
        (([1], [2], [np.nan]), "positive numbers"),
        (([1], [2], ["much"]), "positive numbers; could not convert"),
        (([1], [2], [1.0, 2.0]), "There are 2 weights for 1 edge"),
        (([1], [2], None, [1, 1, 2]), "items must be distinct values. Found more than once: 1"),
        (([1], [2], None, [1, None, 2]), "items must be distinct values; 1 of 3 are missing"),
        ((range(29), range(1, 30), None, [0, 1]), "27 ids .* not among the 2 items: 2, .* 10, 11, and 17 more"),
        ((range(9), range(1, 10), None, [0, 1]), "7 ids in the edges are not among the 2 items: 2, 3, 4, 5, 6, 7, 8"),
        (
            (["a"], ["b"], None, ["a"]),
            "not among the 1 item: 'b'. Name items that nobody answered with items= when",
        ),
    ],
)
def test_bad_edges(arguments, message):
    with pytest.raises(InputError, match=message):
        Graph.from_edges(*arguments)


@pytest.mark.parametrize("build", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_from_frame(build):
    frame = build({"source": ["a", "b"], "target": ["b", "c"], "strength": [1.0, 0.5]})
    graph = check_form(Graph.from_frame(frame, weight="strength"))
    assert edges_of(graph) == {("a", "b"): 1.0, ("b", "a"): 1.0, ("b", "c"): 0.5, ("c", "b"): 0.5}
    plain = Graph.from_frame(frame, items=["c", "b", "a"])
    assert set(edges_of(plain).values()) == {1.0}


@pytest.mark.parametrize("name", ["weight", "Weight"])
def test_from_frame_takes_the_column_of_weights(name, tmp_path):
    frame = {"source": ["a", "b"], "target": ["b", "c"], name: [2.0, 0.5]}
    weighted = {("a", "b"): 2.0, ("b", "a"): 2.0, ("b", "c"): 0.5, ("c", "b"): 0.5}
    graph = Graph.from_frame(frame)
    assert edges_of(graph) == edges_of(Graph.from_frame(frame, weight=name)) == weighted
    assert graph.description == f"given edges, weighted by {name!r}"
    plain = Graph.from_frame(frame, weight=None)
    assert set(edges_of(plain).values()) == {1.0}
    assert plain.description == "given edges"
    answers = cs.Answers.from_frame({"item": ["a", "b", "c"], "worker": [1] * 3, "label": ["x", "y", "x"]})
    pq.write_table(pa.table(frame), tmp_path / "edges.parquet")
    for edges in (frame, tmp_path / "edges.parquet"):
        assert edges_of(as_graph(edges, answers)) == weighted
    frame[name] = [2.0, 0.0]
    with pytest.raises(
        InputError, match=f"Weights in column '{name}' of the table of edges must be .*1 of 2 are not: 0.0"
    ):
        Graph.from_frame(frame)


def test_two_columns_are_the_ends_of_edges(tmp_path):
    frame = {"citing": ["a", "b"], "cited": ["b", "c"]}
    plain = {("a", "b"): 1.0, ("b", "a"): 1.0, ("b", "c"): 1.0, ("c", "b"): 1.0}
    assert edges_of(Graph.from_frame(frame)) == plain
    assert Graph.from_frame({**frame, "weight": [2.0, 0.5]}).weights.max() == 2
    file = tmp_path / "cites.csv"
    pd.DataFrame(frame).to_csv(file, index=False)
    answers = cs.Answers.from_frame({"item": ["a", "b", "c"], "worker": [1] * 3, "label": ["x", "y", "x"]})
    assert edges_of(as_graph(file, answers)) == plain
    with pytest.raises(InputError, match="1 id in the edges is not among"):
        Graph.from_frame(frame, items=["a", "b"])
    for other in ({"item": ["a"], "label": ["b"]}, {"item": ["a"], "worker": ["b"]}):
        with pytest.raises(InputError, match="has no column 'source'"):
            Graph.from_frame(other)
    with pytest.raises(InputError, match="has no column 'source'"):
        Graph.from_frame({**frame, "strength": [2.0, 0.5]})


# Matrices and networkx


@pytest.mark.parametrize(
    "build", [np.asarray, sparse.csr_array, sparse.coo_array, sparse.csc_matrix, sparse.lil_matrix, np.ndarray.tolist]
)
def test_from_scipy(build):
    matrix = np.array([[5.0, 2.0, 0.0], [0.0, 0.0, 0.5], [0.0, 3.0, 0.0]])
    graph = check_form(Graph.from_scipy(build(matrix), items=["x", "y", "z"]))
    assert edges_of(graph) == {("x", "y"): 2.0, ("y", "x"): 2.0, ("y", "z"): 3.0, ("z", "y"): 3.0}
    assert graph.n_self_loops == 1


def test_to_scipy():
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0], items=range(4))
    matrix = graph.to_scipy()
    assert (matrix != matrix.T).nnz == 0
    assert matrix.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]]
    assert edges_of(Graph.from_scipy(matrix)) == edges_of(graph)
    matrix.data[:] = 7.0
    assert set(graph.weights) == {1.0, 2.0}


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_from_networkx(kind):
    source = kind()
    source.add_nodes_from(["lonely", "a"])
    source.add_edge("a", "b", weight=2.0)
    source.add_edge("b", "c")
    graph = check_form(Graph.from_networkx(source))
    assert graph.items.tolist() == ["lonely", "a", "b", "c"]
    assert edges_of(graph) == {("a", "b"): 2.0, ("b", "a"): 2.0, ("b", "c"): 1.0, ("c", "b"): 1.0}
    assert set(Graph.from_networkx(source, weight=None).weights) == {1.0}
    assert Graph.from_networkx(source, items=["c", "b", "a", "d"]).items.tolist() == ["c", "b", "a", "d"]


# Grids


def brute_force_grid(shape, reach):
    """Pairs of pixels at most one step apart on each axis, along at most `reach` axes."""
    points = list(itertools.product(*map(range, shape)))
    number = {point: i for i, point in enumerate(points)}
    return {
        frozenset((number[a], number[b]))
        for a, b in itertools.combinations(points, 2)
        if max(steps := [abs(x - y) for x, y in zip(a, b, strict=True)]) == 1 and sum(steps) <= reach
    }


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (2, 2), (3, 4), (1, 1, 1), (2, 1, 3), (3, 4, 2)])
def test_grid(shape):
    for connectivity, reach in NEIGHBOURHOODS[len(shape)].items():
        graph = check_form(Graph.grid(shape, connectivity=connectivity))
        assert pairs_of(graph) == brute_force_grid(shape, reach)
        assert graph.n_items == np.prod(shape)
        assert graph.description == f"{connectivity}-neighbour grid"


def test_grids_of_several_images():
    both = Graph.grid([(2, 3), np.array([3, 2])], connectivity=4)
    first, second = brute_force_grid((2, 3), 1), brute_force_grid((3, 2), 1)
    assert pairs_of(both) == first | {frozenset(i + 6 for i in pair) for pair in second}
    named = Graph.grid((1, 2), items=["left", "right"])
    assert pairs_of(named) == {frozenset(["left", "right"])}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((3, 4), 6), "'connectivity' .* 4 or 8 for images. Got 6"),
        (((3, 4, 5), 8), "'connectivity' .* 6, 18 or 26 for volumes. Got 8"),
        (((0, 4),), "'shape'"),
        (((3,),), "'shape'"),
        (((2.5, 2),), "'shape'"),
        ((5,), "'shape' .* or a list of such tuples, .* Got 5"),
        (([],), "'shape'"),
        (([(2, 2), (2, 2, 2)], 8), "'connectivity'"),
    ],
)
def test_bad_grids(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Graph.grid(*arguments)


# Nearest neighbours


def brute_force_neighbours(features, k, metric="euclidean"):
    """Return the set of (item, neighbour), where no distances are equal."""
    distance = cdist(features, features, metric)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1)[:, :k]
    return {(i, int(j)) for i, row in enumerate(nearest) for j in row}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n_features", [2, 15, 16, 40])
@pytest.mark.parametrize("k", [1, 5, 59])
def test_knn(metric, n_features, k, monkeypatch):
    monkeypatch.setattr(edges_module, "CHUNK_CELLS", 500)  # several chunks, the last of them short
    features = np.random.default_rng(0).normal(size=(60, n_features))
    chosen = brute_force_neighbours(features, k, metric)
    graph = check_form(Graph.knn(features, k, metric=metric))
    assert pairs_of(graph) == set(map(frozenset, chosen))
    assert ("k-d tree" if n_features <= edges_module.TREE_FEATURES else "all pairs") in graph.description
    assert graph.degrees.min() >= k
    mutual = check_form(Graph.knn(features, k, metric=metric, mutual=True))
    assert pairs_of(mutual) == {frozenset(pair) for pair in chosen if pair[::-1] in chosen}
    assert mutual.degrees.max() <= k


def test_knn_of_nearly_all_is_refused():
    with pytest.raises(InputError, match=r"1,999 nearest of each of 2,000 items are too many, and at most 2,000,000"):
        cs.Graph.knn(np.zeros((2000, 1)), 1999)


@pytest.mark.parametrize("n_features", [1, 20])
def test_knn_of_duplicates(n_features):
    # Six points at each of two places: three neighbours each, all of them at the same place, never oneself.
    features = np.repeat([[0.0], [1.0]], 6, axis=0) * np.ones(n_features)
    graph = check_form(Graph.knn(features, 3))
    assert graph.degrees.min() >= 3
    assert graph.n_self_loops == 0
    assert all((a < 6) == (b < 6) for a, b in edges_of(graph))
    assert Graph.knn(features, 3).neighbours.tolist() == graph.neighbours.tolist()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([[1.0], [np.nan]], "missing or infinite"),
        ([1.0, 2.0], "one row per item"),
        ([[1.0]], "at least two"),
        ([["a"], ["b"]], "must be numbers"),
        ([[1.0], [2.0, 3.0]], "must be numbers"),
    ],
)
def test_bad_features(features, message):
    with pytest.raises(InputError, match=message):
        Graph.knn(features, 1)


# Other items


def test_aligned_with():
    graph = Graph.from_edges(["a", "b", "d", "e"], ["b", "c", "a", "e"], [1.0, 2.0, 3.0, 4.0])
    items = np.array(["d", "x", "c", "b", "a"], object)
    moved = check_form(graph.aligned_with(items))
    assert moved.items.tolist() == items.tolist()
    assert edges_of(moved) == edges_of(graph)
    assert moved.degrees.tolist() == [1, 0, 1, 2, 2]
    assert moved.n_self_loops == 1  # "e" had no other edge, and is not missed
    assert graph.aligned_with(graph.items) is graph
    assert graph.aligned_with(graph.items.copy()) is graph


def test_shuffled():
    graph = cs.simulate.network(2000, degree=6, seed=1).graph
    other = check_form(graph.shuffled(seed=3))
    assert np.array_equal(other.items, graph.items)
    assert np.abs(other.degrees - graph.degrees).sum() <= 4
    assert len(pairs_of(other) & pairs_of(graph)) < 0.05 * graph.n_edges
    assert np.array_equal(other.neighbours, graph.shuffled(seed=3).neighbours)
    assert not np.array_equal(other.neighbours, graph.shuffled(seed=4).neighbours)
    assert other.description.endswith("shuffled")


def test_shuffling_breaks_homophily():
    crowd = cs.simulate.network(3000, n_classes=3, degree=8, homophily=0.9, seed=1)
    shares = []
    for graph in (crowd.graph, crowd.graph.shuffled()):
        matrix = graph.to_scipy().tocoo()
        shares.append((crowd.truth[matrix.row] == crowd.truth[matrix.col]).mean())
    assert shares[0] > 0.87
    assert abs(shares[1] - 1 / 3) < 0.03


# Little or nothing


@pytest.mark.parametrize(
    ("graph", "n_items"),
    [
        (Graph.from_edges([], []), 0),
        (Graph.from_edges([], [], items=["a"]), 1),
        (Graph.from_edges(["a"], ["a"]), 1),
        (Graph.from_scipy(np.zeros((2, 2))), 2),
        (Graph.from_networkx(nx.Graph()), 0),
        (Graph.grid((1, 1)), 1),
        (Graph.knn([[0.0], [1.0], [1.5]], 1, mutual=True).aligned_with(np.arange(3)), 3),
    ],
)
def test_hardly_a_graph(graph, n_items):
    check_form(graph)
    assert graph.n_items == n_items
    assert repr(graph).startswith(f"Graph({n_items} items, ")
    assert graph.to_scipy().shape == (n_items, n_items)
    assert graph.shuffled().n_edges == graph.n_edges
    assert graph.aligned_with(np.array([*graph.items.tolist(), "new"], object)).n_items == n_items + 1
