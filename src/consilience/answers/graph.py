"""Graphs over items: who is whose neighbour, held as a symmetric sparse matrix in plain arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, hstack, issparse, sparray, spmatrix

from ..errors import InputError, Sentence, first_line, listing, parameter_error, plural, shorten
from ..kernels import Floats, freeze, read_only
from ..limits import NUMBER, require_few, require_memory
from ..options import check, check_truth, is_among, is_whole, to_floats
from .columns import (
    Codes,
    Indices,
    Values,
    encode_in_order_of_appearance,
    find_missing,
    join_columns,
    lookup,
    order_by,
    to_column,
    to_values,
)
from .random_choices import hash_ids
from .tables import open_frame, read_column, read_distinct, read_names

# Neighbours are kept in 32 bits.
MOST_NODES = 2**31 - 1
# So many nodes are visited in random order: posteriors of that many stay in the cache.
VISITED_TOGETHER = 4096
# From this many directed edges, nodes are coloured, so that threads can share them. Colours are picked within runs of
# nodes: posteriors of that many stay in a cache, too, while one colour after another is updated.
MANY_EDGES, COLOURED_TOGETHER = 100_000, 2**15
METRICS = ("euclidean", "cosine")
# For images of two and three dimensions: along how many axes at once a neighbour may be away, by how many neighbours an
# inner pixel then has.
NEIGHBOURHOODS = {2: {4: 1, 8: 2}, 3: {6: 1, 18: 2, 26: 3}}
# Up to this many features a tree finds neighbours faster than comparing everything with everything.
TREE_FEATURES = 15
# Squares of features up to this size are numbers, also of single precision.
LARGEST_FEATURE = 1e15
# Similarities computed at a time when everything is compared with everything.
CHUNK_CELLS = 20_000_000
NAME_UNANSWERED = Sentence("Name items that nobody answered with {items} when the answers are read.")


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph over items.

    Build one with `from_edges`, `from_frame`, `from_scipy`, `from_networkx`, `grid` or `knn`. Edges are merged (of
    repeated ones the largest weight counts) and self loops dropped.

    Attributes
    ----------
    items : ndarray
        Ids of the nodes.
    offsets, neighbours, weights : ndarray
        Node i is linked to ``neighbours[offsets[i]:offsets[i + 1]]``; every edge is there in both directions.
    n_items, n_edges : int
        Number of nodes, and of undirected edges.
    n_self_loops : int
        How many edges were dropped because they led from an item to itself.
    description : str
        How the graph was made.
    """

    items: Values
    offsets: Indices
    neighbours: Codes
    weights: Floats
    n_self_loops: int = 0
    description: str = "given edges"
    directed: bool = False  # whether an edge may have different weights on both sides; a node counts the one on its own

    def __repr__(self) -> str:
        loops = f", {self.n_self_loops:,} self loops dropped" if self.n_self_loops else ""
        degree = len(self.neighbours) / max(self.n_items, 1)
        return f"Graph({self.n_items:,} items, {self.n_edges:,} edges, mean degree {degree:.2f}{loops})"

    @property
    def n_items(self) -> int:
        """Number of nodes."""
        return len(self.offsets) - 1

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.neighbours) // 2

    @property
    def degrees(self) -> Indices:
        """Number of neighbours of each node."""
        return np.diff(self.offsets)

    @classmethod
    def from_edges(cls, source: object, target: object, weight: ArrayLike | None = None, items: object = None) -> Graph:
        """Build a graph from the end points of its edges.

        Parameters
        ----------
        source, target : array-like
            Ids of items; (sequence, position) pairs for sequences.
        weight : array-like, optional
            A positive weight for each edge; default 1.
        items : array-like, optional
            All items, such as `Answers.items`; an edge to any other id is an error. Default: the ids met.

        Examples
        --------
        >>> import consilience as cs
        >>> cs.Graph.from_edges(["a", "b", "b"], ["b", "c", "a"])
        Graph(3 items, 2 edges, mean degree 1.33)
        """
        ends = read_column(source, "source"), read_column(target, "target")
        if len(ends[0]) != len(ends[1]):
            raise InputError(
                f"source has {plural(len(ends[0]), 'id')} and target {len(ends[1]):,}: an edge has one of each."
            )
        n_missing = max(len(find_missing(column)) for column in ends)
        if n_missing:
            raise InputError(f"An end of {n_missing:,} of the edges is missing.", "Fill it in or drop the edge.")
        weights = None if weight is None else _read_weights(weight, len(ends[0]), "Edge weights")
        if items is None:
            codes, names = encode_in_order_of_appearance(join_columns(*ends))
            source, target = np.split(codes, [len(ends[0])])
            return cls.of(source, target, weights, names, "given edges")
        names = read_distinct(items, "items")
        places = [lookup(names, column) for column in ends]
        for index, column in zip(places, ends, strict=True):
            unknown = dict.fromkeys(to_values(column)[index < 0].tolist())
            if unknown:
                raise InputError(_say_unknown(unknown, "in the edges", len(names)), NAME_UNANSWERED)
        return cls.of(places[0], places[1], weights, names, "given edges")

    @classmethod
    def from_frame(
        cls,
        frame: object,
        source: str = "source",
        target: str = "target",
        weight: str | None = "auto",
        items: object = None,
    ) -> Graph:
        """Build a graph from a table with one row per edge.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or dict of columns
            The edges.
        source, target : str
            Names of the columns that hold the two ends. If these are not named, and a table has exactly two columns
            beside that of weights, they are the ends whatever they are called.
        weight : str or None
            Name of the column that holds the weights. "auto": the column called weight, if there is one. None: all
            weights are 1.
        items : array-like, optional
            As in `from_edges`.

        Examples
        --------
        >>> import consilience as cs
        >>> edges = {"source": ["a", "b"], "target": ["b", "c"], "weight": [0.5, 2.0]}
        >>> cs.Graph.from_frame(edges).weights, cs.Graph.from_frame(edges, weight=None).weights
        (array([0.5, 0.5, 2. , 2. ]), array([1., 1., 1., 1.]))
        """
        table = open_frame(frame, "the table of edges")
        chosen = table.find("weight") if is_among(weight, ("auto",)) else weight
        others = [name for name in table.names if not is_among(name, (chosen,))]
        if is_among(source, ("source",)) and is_among(target, ("target",)) and len(others) == 2:
            is_answers = any(table.find_usual(role) is not None for role in ("worker", "known label", "position"))
            if {*others} != {"source", "target"} and not is_answers:
                source, target = others
        names = {"source": source, "target": target} | ({} if chosen is None else {"weight": chosen})
        for role, name in names.items():
            if not is_among(name, table.names):
                raise table.no_column(role, name)
        ends = [
            table.values(name, "Every edge needs two ends: fill it in or drop the row.") for name in (source, target)
        ]
        if chosen is None:
            return cls.from_edges(ends[0], ends[1], items=items)
        given = to_values(table.values(chosen, "Every edge needs a weight: fill it in, or rename the column."))
        weights = _read_weights(given, len(given), f"Weights in column {chosen!r} of {table.name}")
        graph = cls.from_edges(ends[0], ends[1], weights, items)
        return replace(graph, description=f"given edges, weighted by {chosen!r}")

    @classmethod
    def from_scipy(cls, matrix: sparray | spmatrix | ArrayLike, items: object = None) -> Graph:
        """Build a graph from an adjacency matrix.

        Parameters
        ----------
        matrix : scipy sparse matrix or array of shape (n_items, n_items)
            Entry [i, j] is the weight of the edge between items i and j, whichever side of the diagonal it stands on;
            where both sides hold one, the larger counts. Zeros are no edges.
        items : array-like, optional
            Ids of the rows; default 0, 1, 2, ...
        """
        try:
            shape = np.shape(matrix)
            square = coo_array(matrix if len(shape) == 2 else [[0.0]], copy=True)
            if square.dtype.kind not in "biuf":
                raise TypeError
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"An adjacency matrix must hold numbers. Got {shorten(matrix)} instead.") from error
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InputError(f"An adjacency matrix is square; got one of shape {shape}.")
        require_memory(2 * NUMBER * shape[0], f"An adjacency matrix of {shape[0]:,} rows is too large")
        square.sum_duplicates()
        square.eliminate_zeros()
        weights = _read_weights(square.data, len(square.data), "Edge weights")
        return cls.of(square.row, square.col, weights, read_names(items, shape[0], "items"), "given adjacency matrix")

    @classmethod
    def from_networkx(cls, graph: Any, weight: str | None = "weight", items: object = None) -> Graph:
        """Build a graph from a networkx graph: anything with `nodes` and `edges(data=...)`.

        Parameters
        ----------
        graph : networkx.Graph
            Directions are ignored, parallel edges merged.
        weight : str or None
            Attribute of edges that holds their weight, 1 where an edge has none; None: all weights are 1.
        items : array-like, optional
            As in `from_edges`; default: the nodes of the graph.
        """
        if not (hasattr(graph, "nodes") and callable(getattr(graph, "edges", None))):
            raise InputError(f"Expected a networkx graph; got a {type(graph).__name__}.")
        if weight is not None and not isinstance(weight, str):
            raise parameter_error("weight", "Graph.from_networkx", "the name of an attribute, or None", weight)
        edges = [(a, b, data.get(weight, 1.0)) for a, b, data in graph.edges(data=True)]
        source, target, weights = ([edge[place] for edge in edges] for place in range(3))
        return cls.from_edges(source, target, weights, list(graph.nodes) if items is None else items)

    @classmethod
    def grid(cls, shape: object, connectivity: int | None = None, items: object = None) -> Graph:
        """Build the graph of neighbouring pixels or voxels.

        Parameters
        ----------
        shape : tuple, or list of tuples
            Shape of the image (2-D or 3-D), or of several images, one after the other.
        connectivity : int, optional
            Neighbours of an inner pixel: 4 or 8 in two dimensions, 6, 18 or 26 in three. Default: all that touch it, 8
            or 26.
        items : array-like, optional
            Ids of the pixels, row by row; default 0, 1, 2, ...

        Examples
        --------
        >>> import consilience as cs
        >>> cs.Graph.grid((3, 4), connectivity=4)
        Graph(12 items, 17 edges, mean degree 2.83)
        """
        expected = "a tuple of two or three whole numbers >= 1, or a list of such tuples, for fewer than 2**31 pixels"
        given: Any = shape
        try:
            shapes = [tuple(given)] if all(np.ndim(n) == 0 for n in given) else [tuple(size) for size in given]
        except (TypeError, NotImplementedError) as error:
            raise parameter_error("shape", "Graph.grid", expected, shape) from error
        are_sizes = all(len(size) in NEIGHBOURHOODS and all(is_whole(n) and n >= 1 for n in size) for size in shapes)
        if not are_sizes or sum(math.prod(map(int, size)) for size in shapes) > MOST_NODES:
            raise parameter_error("shape", "Graph.grid", expected, shape)
        sources, targets, kinds, first = [], [], [], 0
        for extent in [tuple(map(int, size)) for size in shapes]:
            known = NEIGHBOURHOODS[len(extent)]
            n_neighbours = max(known) if connectivity is None else connectivity
            if not is_among(n_neighbours, known):
                allowed = "4 or 8 for images" if len(extent) == 2 else "6, 18 or 26 for volumes"
                raise parameter_error("connectivity", "Graph.grid", allowed, connectivity)
            end = first + math.prod(extent)
            size = f"A grid of {plural(end, 'pixel')} x {n_neighbours} neighbours is too large"
            require_memory(NUMBER * end * (1 + n_neighbours), size, keyword="shape")
            index = np.arange(first, end).reshape(extent)
            for step in product((-1, 0, 1), repeat=len(extent)):
                # Of each two opposite steps one.
                if sum(map(abs, step)) <= known[n_neighbours] and step > (0,) * len(extent):
                    here = tuple(slice(max(0, -d), n - max(0, d)) for d, n in zip(step, extent, strict=True))
                    there = tuple(slice(max(0, d), n - max(0, -d)) for d, n in zip(step, extent, strict=True))
                    sources.append(index[here].ravel())
                    targets.append(index[there].ravel())
            first = end
            kinds.append(f"{n_neighbours}-neighbour grid")
        description, names = " and ".join(dict.fromkeys(kinds)), read_names(items, first, "items")
        return cls.of(np.concatenate(sources), np.concatenate(targets), None, names, description)

    @classmethod
    def knn(
        cls, features: object, k: int = 10, metric: str = "euclidean", mutual: bool = False, items: object = None
    ) -> Graph:
        """Build the graph of k nearest neighbours, exactly.

        Parameters
        ----------
        features : array or sparse matrix of shape (n_items, n_features)
            One row per item.
        k : int
            Neighbours of each item. An edge is there if either end chose it, so that every item has at least k
            neighbours, and fewer than 2 k on average. Of items at the same distance any may be chosen.
        metric : {"euclidean", "cosine"}
            Distance.
        mutual : bool
            Keep only edges that both ends chose.
        items : array-like, optional
            Ids of the rows; default 0, 1, 2, ...

        Notes
        -----
        Up to 15 dense features a k-d tree is used (scipy), else all pairs are compared, a chunk of rows at a time; both
        are exact, and `description` says which it was.

        Examples
        --------
        >>> import consilience as cs, numpy as np
        >>> cs.Graph.knn(np.array([[0.0], [0.1], [5.0], [5.2]]), k=1)
        Graph(4 items, 2 edges, mean degree 1.00)
        """
        if not is_among(metric, METRICS):
            raise parameter_error("metric", "Graph.knn", "'euclidean' or 'cosine'", metric)
        check_truth("mutual", "Graph.knn", mutual)
        rows = to_rows(features)
        n_items = rows.shape[0]
        if n_items < 2:
            raise InputError("features must have one row per item, at least two.")
        if not is_whole(k) or not 1 <= k < n_items:
            raise parameter_error("k", "Graph.knn", f"a whole number between 1 and {n_items - 1}", k)
        size = f"The {int(k):,} nearest of each of {plural(n_items, 'item')} are too many"
        require_memory(2 * NUMBER * n_items * int(k), size, Sentence("Lower {k}."), keyword="k")
        require_few("neighbours", n_items * int(k), size, Sentence("Lower {k}."), n=n_items, keyword="k")
        rows = rows.astype(np.float64)
        if metric == "cosine":
            length = np.sqrt(_sum_squares(rows))
            scale = 1 / np.where(length > 0, length, 1.0)[:, None]
            # A row of zeros is like no other: it gets a direction of its own, or it would be near to all.
            alone = (length == 0).astype(np.float64)[:, None]
            if issparse(rows):
                rows = hstack([rows.multiply(scale), csr_array(alone)]).tocsr()
            else:
                rows = np.hstack([rows * scale, alone]) if alone.any() else rows * scale
        source = np.repeat(np.arange(n_items), k)
        if issparse(rows) or rows.shape[1] > TREE_FEATURES:
            target, how = _compare_all(rows, int(k)).ravel(), "all pairs compared"
        else:
            from scipy.spatial import cKDTree

            nearest, how = cKDTree(rows).query(rows, k=int(k) + 1, workers=-1)[1], "k-d tree"
            # An item is its own nearest neighbour, but not always first among duplicates: drop it wherever it stands.
            own = nearest == np.arange(n_items)[:, None]
            own[~own.any(axis=1), -1] = True
            target = np.asarray(nearest[~own], np.int64)
        if mutual:
            both = np.isin(source * n_items + target, target * n_items + source)
            source, target = source[both], target[both]
        described = f"{k} nearest neighbours ({metric}, {'mutual' if mutual else 'union'}, exact: {how})"
        return cls.of(source, target, None, read_names(items, n_items, "items"), described)

    @classmethod
    def of(cls, source: Any, target: Any, weights: Floats | None, items: Values, description: str) -> Graph:
        """The graph of edges between items by index: merged, in both directions, and without self loops.

        Without weights all are 1.
        """
        n_items = len(items)
        if n_items > MOST_NODES:
            raise InputError(f"A graph has at most {MOST_NODES:,} items; got {n_items:,}.")
        source, target = np.asarray(source, np.int64), np.asarray(target, np.int64)
        proper = source != target
        pair = (np.minimum(source, target) * n_items + np.maximum(source, target))[proper]
        if weights is None:
            pair, weights = np.sort(pair), np.ones(len(pair))
        else:
            order = np.lexsort((-weights[proper], pair))  # of equal pairs the heaviest first
            pair, weights = pair[order], weights[proper][order]
        first = np.ones(len(pair), bool)
        first[1:] = pair[1:] != pair[:-1]
        low, high = np.divmod(pair[first], max(n_items, 1))
        ends = np.concatenate([low, high]), np.concatenate([high, low])
        matrix = coo_array((np.tile(weights[first], 2), ends), shape=(n_items, n_items)).tocsr()
        matrix.sort_indices()
        parts = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data
        return cls(items, *parts, int((~proper).sum()), description)

    @cached_property
    def sources(self) -> Indices:
        """For each directed edge, the node that it leads from."""
        return np.repeat(np.arange(self.n_items), self.degrees)

    @cached_property
    def reverse_edges(self) -> Indices:
        """For each directed edge, the index of the same edge in the other direction."""
        # Edges are sorted by (source, neighbour): sorted by (neighbour, source), each comes where its reverse stands.
        return np.lexsort((self.sources, self.neighbours))

    @cached_property
    def all_alike(self) -> bool:
        """Whether all edges have the weight 1."""
        return bool((self.weights == 1.0).all())

    @cached_property
    def is_forest(self) -> bool:
        """Whether the graph has no loops."""
        from ..kernels.graph import find_levels

        return self.n_edges == self.n_items - find_levels(self.offsets, self.neighbours, np.arange(self.n_items))[1]

    @cached_property
    def outward_order(self) -> Indices:
        """All nodes, those near the first node of their component before those further away."""
        return order_outward(self, np.arange(self.n_items))

    @cached_property
    def by_visit(self) -> tuple[Indices, Graph]:
        """The order in which inference visits the nodes, and the same graph with the nodes in this order.

        It depends on ids and edges alone, not on the order of the items. Within runs of nodes that are near each other,
        and therefore near each other in memory, nodes are in the order of their ids' hashes. Within longer runs of a
        large graph, nodes of one colour come before those of the next, and no two of one colour are neighbours.
        """
        from ..kernels.graph import pick_colours

        n, by_hash = self.n_items, np.argsort(hash_ids(self.items), kind="stable")
        run, rank = np.zeros(n, np.int64), np.empty(n, np.int64)
        run[order_outward(self, by_hash)] = np.arange(n) // VISITED_TOGETHER
        order = by_hash[order_by(run[by_hash], n // VISITED_TOGETHER + 1)[0]]
        rank[order] = np.arange(n)
        if len(self.neighbours) >= MANY_EDGES:
            colours, taken = np.zeros(n, np.int64), np.full(int(self.degrees.max()) + 2, -1)
            edges = read_only(self.offsets), read_only(self.neighbours)
            pick_colours(*edges, read_only(order), read_only(rank), COLOURED_TOGETHER, colours, taken)
            colours += np.arange(n) // COLOURED_TOGETHER * (int(colours.max()) + 1)
            order = order[order_by(colours, int(colours.max()) + 1)[0]]
            rank[order] = np.arange(n)
        degrees = self.degrees[order]
        source = np.repeat(np.arange(n), degrees)
        edge = np.arange(len(source)) + np.repeat(self.offsets[order] - (np.cumsum(degrees) - degrees), degrees)
        # A graph is its own transpose: with edges in order of their sources, the neighbours of each target are sorted.
        weights = self.weights[self.reverse_edges] if self.directed else self.weights
        matrix = coo_array((weights[edge], (rank[self.neighbours[edge]], source)), shape=(n, n)).tocsr()
        parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
        return order, Graph(self.items[order], *parts, self.n_self_loops, self.description, self.directed)

    @cached_property
    def independent_runs(self) -> Indices:
        """Where runs of nodes begin that have no neighbours among them, and the number of nodes.

        In a small graph each node is a run.
        """
        from ..kernels.graph import split_at_neighbours

        bounds = np.arange(self.n_items + 1)
        if len(self.neighbours) >= MANY_EDGES:
            bounds = bounds[: split_at_neighbours(read_only(self.offsets), read_only(self.neighbours), bounds) + 1]
        return freeze(bounds)

    def to_scipy(self) -> Any:
        """The symmetric adjacency matrix as a `scipy.sparse.csr_array`."""
        parts = (self.weights, self.neighbours, self.offsets)
        return csr_array(parts, shape=(self.n_items, self.n_items), copy=True)

    def aligned_with(self, items: Values) -> Graph:
        """The same graph with one node for each of `items`, in their order; items without edges are alone."""
        if len(self.items) == len(items) and (self.items is items or np.array_equal(self.items, items)):
            return self
        place = lookup(items, to_column(self.items))
        unknown = self.items[(self.degrees > 0) & (place < 0)].tolist()
        if unknown:
            problem = _say_unknown(unknown, "of the graph", len(items))
            raise InputError(problem, "Leave their edges out.", NAME_UNANSWERED)
        moved = Graph.of(place[self.sources], place[self.neighbours], self.weights, items, self.description)
        return replace(moved, n_self_loops=self.n_self_loops)

    def joined_with(self, other: Graph, items: Values) -> Graph:
        """The edges of both over these items. An edge that is in both has the weight that it has in the other.

        >>> first, more = Graph.from_edges(["a"], ["b"], [1.0]), Graph.from_edges(["a", "b"], ["b", "c"], [3.0, 2.0])
        >>> first.joined_with(more, np.array(["a", "b", "c"], object)).weights
        array([3., 3., 2., 2.])
        """
        first, second = (each.aligned_with(items) for each in (self, other))
        pairs = [each.sources * len(items) + each.neighbours for each in (first, second)]
        stays = ~np.isin(pairs[0], pairs[1])
        source, target = np.divmod(np.concatenate([pairs[0][stays], pairs[1]]), max(len(items), 1))
        weights = np.concatenate([first.weights[stays], second.weights])
        joined = Graph.of(source, target, weights, items, self.description)
        return replace(joined, n_self_loops=self.n_self_loops + other.n_self_loops)

    def shuffled(self, seed: int = 0) -> Graph:
        """A graph with the same degrees and random edges: a control in which neighbours mean nothing.

        Edge ends are paired at random (configuration model), then pairs of edges are swapped to undo self loops and
        repeated edges; the few that remain are dropped. The edges depend on the seed and the ids, not on the order of
        the items.
        """
        check("seed", seed, "Graph.shuffled")
        order, graph = self.by_visit
        rng = np.random.default_rng(seed)
        once = graph.sources < graph.neighbours
        ends = rng.permutation(np.concatenate([graph.sources[once], graph.neighbours[once].astype(np.int64)]))
        a, b = ends[: len(ends) // 2].copy(), ends[len(ends) // 2 :].copy()
        for _ in range(20):
            bad = np.ones(len(a), bool)
            bad[np.unique(np.minimum(a, b) * graph.n_items + np.maximum(a, b), return_index=True)[1]] = False
            bad |= a == b
            if not bad.any():
                break
            other = rng.integers(0, len(a), int(bad.sum()))
            for i, j in zip(np.flatnonzero(bad).tolist(), other.tolist(), strict=True):
                b[i], b[j] = b[j], b[i]
        weights = rng.permutation(graph.weights[once])
        return Graph.of(order[a], order[b], weights, self.items, f"{self.description}, shuffled")


def order_outward(graph: Graph, starts: Indices) -> Indices:
    """All nodes, outward from the one of each component that comes first in `starts`."""
    from ..kernels.graph import find_levels

    levels = find_levels(graph.offsets, graph.neighbours, starts)[0][starts]
    return starts[order_by(levels, int(levels.max(initial=-1)) + 1)[0]]


def _read_weights(weight: object, n_edges: int, what: str) -> Floats:
    """The weights of edges, after a check; `what` stands for them in messages."""
    try:
        weights = to_floats(weight)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be positive numbers; {first_line(error)}.") from error
    if weights.shape != (n_edges,):
        raise InputError(f"There are {plural(weights.size, 'weight')} for {plural(n_edges, 'edge')}.")
    bad = weights[~(np.isfinite(weights) & (weights > 0))]
    if len(bad):
        raise InputError(
            f"{what} must be positive numbers; {len(bad):,} of {n_edges:,} are not: {listing(bad.tolist())}.",
            "Drop edges that do not count.",
        )
    return weights


def _say_unknown(unknown: Collection[Any], where: str, n_items: int) -> str:
    verb = "is" if len(unknown) == 1 else "are"
    return f"{plural(len(unknown), 'id')} {where} {verb} not among the {plural(n_items, 'item')}: {listing(unknown)}."


def to_rows(given: Any, names: Sequence[str] | None = None, ids: Values | None = None) -> Any:
    """Features as rows of floats, dense or sparse, after a check; single precision stays.

    Parameters
    ----------
    given : array or sparse matrix (n, D)
        The numbers; masked ones are missing.
    names, ids : sequence, optional
        What messages call columns and rows.
    """
    rows: Any
    try:
        if issparse(given):
            if hasattr(given, "check_format"):
                given.check_format(full_check=True)  # indices beyond the matrix would be followed
            require_memory(4 * NUMBER * given.shape[1], f"features have {given.shape[1]:,} columns", keyword="features")
            rows = csr_array(given)
            if rows.dtype.kind == "c":
                raise ValueError("these are complex")
            rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
        else:
            array = given if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
            rows = np.ma.filled(array, np.nan) if array.dtype == np.float32 else to_floats(array)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"features must be numbers; {first_line(error)}.",
            "Give an array, a sparse matrix, a table with a column item, or a .npy, .npz or .parquet file.",
            keyword="features",
        ) from error
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise InputError(
            f"features must have one row per item, and at least one column. They have the shape {rows.shape}.",
            keyword="features",
        )
    values = rows.data if issparse(rows) else rows
    bad = ~np.isfinite(values)
    if bad.any():
        places = [each[bad] for each in rows.tocoo().coords] if issparse(rows) else np.nonzero(bad)
        row, column = (int(each[0]) for each in places)
        name, item = column if names is None else names[column], row if ids is None else ids[[row]].tolist()[0]
        raise InputError(
            f"features have missing or infinite numbers ({int(bad.sum()):,}). The first one is in column {name!r}, of "
            f"item {shorten(item)}.",
            "Fill them in, or give a table without these items: items may be without features.",
            keyword="features",
        )
    if values.size and np.max(abs(values)) > LARGEST_FEATURE:
        raise InputError(
            f"features must not be larger than {LARGEST_FEATURE:g}.", "Scale them first.", keyword="features"
        )
    return rows


def _sum_squares(rows: Any) -> Floats:
    return np.asarray((rows.multiply(rows) if issparse(rows) else rows**2).sum(axis=1)).ravel()


def _compare_all(rows: Any, k: int) -> Indices:
    """The k nearest rows of each row, by |x|^2 - 2 x y + |y|^2, nearest first."""
    n_items = rows.shape[0]
    if not issparse(rows):
        rows = rows - rows.mean(axis=0)  # small numbers, small errors
    squares, chunk = _sum_squares(rows), max(1, CHUNK_CELLS // n_items)
    nearest = np.zeros((n_items, k), np.int64)
    for start in range(0, n_items, chunk):
        dots = rows[start : start + chunk] @ rows.T
        distance = squares[None, :] - 2 * (dots.toarray() if issparse(dots) else dots)
        here = np.arange(len(distance))
        distance[here, start + here] = np.inf
        candidates = np.argpartition(distance, k - 1, axis=1)[:, :k]
        order = np.lexsort((candidates, np.take_along_axis(distance, candidates, axis=1)), axis=1)
        nearest[start : start + chunk] = np.take_along_axis(candidates, order, axis=1)
    return nearest
