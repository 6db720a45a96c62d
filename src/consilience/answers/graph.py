"""Graphs over items: who is whose neighbour, held as a symmetric sparse matrix in plain arrays."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, hstack, issparse, sparray, spmatrix

from ..arguments import check_seed, check_truth, is_among, is_whole, to_floats
from ..errors import InputError, Python, Sentence, first_line, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Floats, freeze, read_only
from ..limits import NUMBER, require_memory
from .columns import (
    Codes,
    Indices,
    Values,
    encode_in_order_of_appearance,
    find_missing,
    is_present,
    join_columns,
    lookup,
    to_column,
    to_values,
)
from .random_choices import hash_ids
from .tables import open_frame, read_column, read_distinct, read_names

# Neighbours are kept in 32 bits.
MOST_ITEMS = 2**31 - 1
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
# The square of the distance between features up to this size is a number.
LARGEST = 1e150
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
        return cls._link(ends, weight, items, "the edges", "Edge weights", "given edges")

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
            Name of the column that holds the weights. "auto": the column called weight, if there is one; a warning
            tells if the only other column looks like weights. None: all weights are 1.
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
        chosen, where = table.find("weight") if is_among(weight, ("auto",)) else weight, table.name
        others = [name for name in table.names if not is_among(name, (chosen,))]
        has_answers = any(table.find_usual(role) is not None for role in ("worker", "known label", "position"))
        usual = is_among(source, ("source",)) and is_among(target, ("target",))
        if usual and len(others) == 2 and {*others} != {"source", "target"} and not has_answers:
            source, target = others
            where = f"{table.name}, whose columns {source!r} and {target!r} are taken for the ends of edges,"
        for role, name in {"source": source, "target": target, "weight": chosen}.items():
            if name is None and role != "weight":
                raise parameter_error(role, "Graph.from_frame", "the name of a column", name)
            if name is not None and not is_among(name, table.names):
                error = table.no_column(role, name)
                named = Sentence(f"Or name it with {{{role}}}.", **{role: Python(f"{role}= of Graph.from_frame")})
                raise InputError(error.problem, *error.remedies, named)
        ends = tuple(
            table.values(name, "Every edge needs two ends: fill it in or drop the row.") for name in (source, target)
        )
        if chosen is not None:
            given = to_values(table.values(chosen, "Every edge needs a weight: fill it in, or rename the column."))
            what = f"Weights in column {chosen!r} of {table.name}"
            return cls._link(ends, given, items, where, what, f"given edges, weighted by {chosen!r}")
        others = [name for name in table.names if name not in (source, target)]
        if weight is not None and len(others) == 1:  # it may hold weights; different whole numbers are ids of edges
            column = table.read(others[0])
            try:
                numbers = to_floats(to_values(column)[is_present(column)].tolist())
            except ValueError:
                numbers = np.empty(0)
            if (numbers != np.round(numbers)).any() or len(np.unique(numbers)) < len(numbers):
                warn_of(
                    f"Column {others[0]!r} of {table.name} holds numbers, and is not used: all edges count alike.",
                    "If these are weights, call the column weight.",
                )
        return cls._link(ends, None, items, where, "", "given edges")

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
            square = coo_array(matrix, copy=True) if len(shape) == 2 else None
            if square is not None and square.dtype.kind not in "biuf":
                raise TypeError
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"An adjacency matrix must hold numbers. Got {shorten(matrix)} instead.") from error
        if square is None or shape[0] != shape[1]:
            raise InputError(f"An adjacency matrix is square; got one of shape {shape}.")
        require_memory(2 * NUMBER * shape[0], f"An adjacency matrix of {shape[0]:,} rows is too large")
        square.sum_duplicates()
        square.eliminate_zeros()
        weights = _read_weights(square.data, len(square.data), "Edge weights")
        names = read_names(items, square.shape[0], "items")
        return cls.of(square.row, square.col, weights, names, "given adjacency matrix")

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
        triples = list(graph.edges(data=weight, default=1.0)) if weight else [(a, b, 1.0) for a, b in graph.edges()]
        names = list(graph.nodes) if items is None else items
        return cls.from_edges([t[0] for t in triples], [t[1] for t in triples], [t[2] for t in triples], items=names)

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
        expected = "a tuple of two or three whole numbers >= 1, or a list of such tuples"
        given: Any = shape
        try:
            shapes = [tuple(given)] if all(np.ndim(n) == 0 for n in given) else [tuple(size) for size in given]
        except (TypeError, NotImplementedError) as error:
            raise parameter_error("shape", "Graph.grid", expected, shape) from error
        if any(len(size) not in NEIGHBOURHOODS or not all(is_whole(n) and n >= 1 for n in size) for size in shapes):
            raise parameter_error("shape", "Graph.grid", expected, shape)
        if sum(math.prod(map(int, size)) for size in shapes) > MOST_ITEMS:
            raise parameter_error("shape", "Graph.grid", "that of fewer than 2**31 pixels", shape)
        sources, targets, kinds, first = [], [], [], 0
        for extent in [tuple(map(int, size)) for size in shapes]:
            known = NEIGHBOURHOODS[len(extent)]
            n_neighbours = max(known) if connectivity is None else connectivity
            if not is_among(n_neighbours, known):
                allowed = "4 or 8 for images" if len(extent) == 2 else "6, 18 or 26 for volumes"
                raise parameter_error("connectivity", "Graph.grid", allowed, connectivity)
            n_pixels = math.prod(extent)
            require_memory(
                NUMBER * (first + n_pixels) * (1 + n_neighbours),
                f"A grid of {plural(first + n_pixels, 'pixel')} x {n_neighbours} neighbours is too large",
                Sentence("Give a smaller {shape}."),
                keyword="shape",
            )
            index = np.arange(n_pixels).reshape(extent) + first
            for step in product((-1, 0, 1), repeat=len(extent)):
                # Of each two opposite steps one.
                if sum(map(abs, step)) <= known[n_neighbours] and step > (0,) * len(extent):
                    here = tuple(slice(max(0, -d), n - max(0, d)) for d, n in zip(step, extent, strict=True))
                    there = tuple(slice(max(0, d), n - max(0, -d)) for d, n in zip(step, extent, strict=True))
                    sources.append(index[here].ravel())
                    targets.append(index[there].ravel())
            first += n_pixels
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
        rows = _read_features(features, metric)
        n_items = rows.shape[0]
        if not is_whole(k) or not 1 <= k < n_items:
            raise parameter_error("k", "Graph.knn", f"a whole number between 1 and {n_items - 1}", k)
        require_memory(
            2 * NUMBER * n_items * int(k),
            f"The {int(k):,} nearest of each of {plural(n_items, 'item')} are too many",
            Sentence("Lower {k}."),
            keyword="k",
        )
        if issparse(rows) or rows.shape[1] > TREE_FEATURES:
            chosen, how = _compare_all(rows, int(k)), "all pairs compared"
        else:
            from scipy.spatial import cKDTree

            found, how = cKDTree(rows).query(rows, k=int(k) + 1, workers=-1)[1], "k-d tree"
            # An item is its own nearest neighbour, but not always first among duplicates: drop it wherever it stands.
            own = found == np.arange(n_items)[:, None]
            own[~own.any(axis=1), -1] = True
            chosen = found[~own]
        source, target = np.repeat(np.arange(n_items), k), np.asarray(chosen, np.int64).ravel()
        if mutual:
            both = np.isin(source * n_items + target, target * n_items + source)
            source, target = source[both], target[both]
        described = f"{k} nearest neighbours ({metric}, {'mutual' if mutual else 'union'}, exact: {how})"
        return cls.of(source, target, None, read_names(items, n_items, "items"), described)

    @classmethod
    def _link(cls, ends: Any, weight: object, items: object, where: str, what: str, description: str) -> Graph:
        """The graph of edges whose ends are ids; `where` and `what` stand for edges and weights in messages."""
        n_missing = next(filter(None, (len(find_missing(column)) for column in ends)), 0)
        if n_missing:
            raise InputError(f"An end of {n_missing:,} of {where} is missing.", "Fill it in or drop the edge.")
        weights = None if weight is None else _read_weights(weight, len(ends[0]), what)
        if items is None:
            codes, names = encode_in_order_of_appearance(join_columns(*ends))
            source, target = np.split(codes.astype(np.int64), [len(ends[0])])
            return cls.of(source, target, weights, names, description)
        names = read_distinct(items, "items")
        source, target = (lookup(names, column) for column in ends)
        for index, column in ((source, ends[0]), (target, ends[1])):
            unknown = dict.fromkeys(to_values(column)[index < 0].tolist())
            if unknown:
                raise InputError(_say_unknown(unknown, f"in {where}", len(names)), NAME_UNANSWERED)
        return cls.of(source, target, weights, names, description)

    @classmethod
    def of(cls, source: Any, target: Any, weights: Floats | None, items: Values, description: str) -> Graph:
        """The graph of edges between items by index: merged, in both directions, and without self loops.

        Without weights all are 1.
        """
        n_items = len(items)
        if n_items > MOST_ITEMS:
            raise InputError(f"A graph has at most {MOST_ITEMS:,} items; got {n_items:,}.")
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
    def reverse_edges(self) -> Indices:
        """For each directed edge, the index of the same edge in the other direction."""
        source = np.repeat(np.arange(self.n_items), self.degrees)
        # Edges are sorted by (source, neighbour): sorted by (neighbour, source), each comes where its reverse stands.
        return np.lexsort((source, self.neighbours))

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
        return self._order_outward(np.arange(self.n_items))

    @cached_property
    def by_visit(self) -> tuple[Indices, Graph]:
        """The order in which inference visits the nodes, and the same graph with the nodes in this order.

        It depends on ids and edges alone, not on the order of the items. Within runs of nodes that are near each other,
        and therefore near each other in memory, nodes are in the order of their ids' hashes. Within longer runs of a
        large graph, nodes of one colour come before those of the next, and no two of one colour are neighbours.
        """
        from ..kernels.columns import order_by

        by_hash = np.argsort(hash_ids(self.items), kind="stable")
        run = np.zeros(self.n_items, np.int64)
        run[self._order_outward(by_hash)] = np.arange(self.n_items) // VISITED_TOGETHER
        order = by_hash[order_by(run[by_hash], self.n_items // VISITED_TOGETHER + 1)[0]]
        if len(self.neighbours) >= MANY_EDGES:
            order = order[_sort_by_colour(self, order)]
        rank, degrees = rank_of(order), self.degrees[order]
        source = np.repeat(np.arange(self.n_items), degrees)
        edge = np.arange(len(source)) + np.repeat(self.offsets[order] - (np.cumsum(degrees) - degrees), degrees)
        # A graph is its own transpose: with edges in order of their sources, the neighbours of each target are sorted.
        ends = (rank[self.neighbours[edge]], source)
        weights = self.weights[self.reverse_edges] if self.directed else self.weights
        matrix = coo_array((weights[edge], ends), shape=(self.n_items, self.n_items)).tocsr()
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

    def _order_outward(self, starts: Indices) -> Indices:
        """Return all nodes, outward from the one of each component that comes first in `starts`."""
        from ..kernels.columns import order_by
        from ..kernels.graph import find_levels

        levels = find_levels(self.offsets, self.neighbours, starts)[0][starts]
        return starts[order_by(levels, int(levels.max(initial=-1)) + 1)[0]]

    def to_scipy(self) -> Any:
        """Return the symmetric adjacency matrix as a `scipy.sparse.csr_array`."""
        parts = (self.weights, self.neighbours, self.offsets)
        return csr_array(parts, shape=(self.n_items, self.n_items), copy=True)

    def aligned_with(self, items: Values) -> Graph:
        """Return the same graph with one node for each of `items`, in their order; items without edges are alone."""
        if len(self.items) == len(items) and (self.items is items or np.array_equal(self.items, items)):
            return self
        place = lookup(items, to_column(self.items))
        unknown = self.items[(self.degrees > 0) & (place < 0)].tolist()
        if unknown:
            problem = _say_unknown(unknown, "of the graph", len(items))
            raise InputError(problem, "Leave their edges out.", NAME_UNANSWERED)
        source = np.repeat(np.arange(self.n_items), self.degrees)
        moved = Graph.of(place[source], place[self.neighbours], self.weights, items, self.description)
        return replace(moved, n_self_loops=self.n_self_loops)

    def joined_with(self, other: Graph, items: Values) -> Graph:
        """Return the edges of both over these items. An edge that is in both has the weight that it has in the other.

        >>> first, more = Graph.from_edges(["a"], ["b"], [1.0]), Graph.from_edges(["a", "b"], ["b", "c"], [3.0, 2.0])
        >>> first.joined_with(more, np.array(["a", "b", "c"], object)).weights
        array([3., 3., 2., 2.])
        """
        first, second = (each.aligned_with(items) for each in (self, other))
        ends = [(np.repeat(np.arange(len(items)), each.degrees), each.neighbours) for each in (first, second)]
        pairs = [source * len(items) + target for source, target in ends]
        stays = ~np.isin(pairs[0], pairs[1])
        source, target = (np.concatenate([ends[0][i][stays], ends[1][i]]) for i in range(2))
        weights = np.concatenate([first.weights[stays], second.weights])
        joined = Graph.of(source, target, weights, items, self.description)
        return replace(joined, n_self_loops=self.n_self_loops + other.n_self_loops)

    def shuffled(self, seed: int = 0) -> Graph:
        """Return a graph with the same degrees and random edges: a control in which neighbours mean nothing.

        Edge ends are paired at random (configuration model), then pairs of edges are swapped to undo self loops and
        repeated edges; the few that remain are dropped. The edges depend on the seed and the ids, not on the order of
        the items.
        """
        check_seed(seed, "Graph.shuffled")
        order, graph = self.by_visit
        rng = np.random.default_rng(seed)
        source = np.repeat(np.arange(graph.n_items), graph.degrees)
        once = source < graph.neighbours
        a, b = rewire(rng, source[once], graph.neighbours[once].astype(np.int64), graph.n_items)
        weights = rng.permutation(graph.weights[once])
        return Graph.of(order[a], order[b], weights, self.items, f"{self.description}, shuffled")


def _sort_by_colour(graph: Graph, order: Indices) -> Indices:
    """Return how to sort nodes in this order by run and colour; within a run, neighbours differ in colour."""
    from ..kernels.columns import order_by
    from ..kernels.graph import pick_colours

    colours = np.zeros(graph.n_items, np.int64)
    taken = np.full(int(graph.degrees.max()) + 2, -1)
    edges = (read_only(graph.offsets), read_only(graph.neighbours))
    pick_colours(*edges, read_only(order), freeze(rank_of(order)), COLOURED_TOGETHER, colours, taken)
    colours += np.arange(graph.n_items) // COLOURED_TOGETHER * (int(colours.max()) + 1)
    return np.asarray(order_by(colours, int(colours.max()) + 1)[0])


def rank_of(order: Indices) -> Indices:
    """Return at which place of an order each node comes.

    >>> rank_of(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def rewire(rng: np.random.Generator, source: Indices, target: Indices, n_items: int) -> tuple[Indices, Indices]:
    """Pair the ends of edges at random (configuration model).

    Pairs of edges are then swapped to undo self loops and repeated edges; a few may remain.
    """
    ends = rng.permutation(np.concatenate([source, target]))
    a, b = ends[: len(source)].copy(), ends[len(source) :].copy()
    for _ in range(20):
        low, high = np.minimum(a, b), np.maximum(a, b)
        _, first = np.unique(low * n_items + high, return_index=True)
        bad = np.ones(len(a), bool)
        bad[first] = False
        bad |= a == b
        if not bad.any():
            break
        other = rng.integers(0, len(a), int(bad.sum()))
        at = np.flatnonzero(bad)
        for i, j in zip(at.tolist(), other.tolist(), strict=True):
            b[i], b[j] = b[j], b[i]
    return a, b


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


def check_sparse(matrix: Any) -> None:
    """Raise an error unless a sparse matrix holds numbers; indices beyond it would be followed."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    if np.iscomplexobj(matrix):
        raise ValueError("these are complex")


def _read_features(features: Any, metric: str) -> Any:
    """Features as rows of floats, scaled to length 1 for cosine distance."""
    rows: Any
    try:
        if issparse(features):
            check_sparse(features)
        rows = csr_array(features, dtype=np.float64) if issparse(features) else to_floats(features)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers; {first_line(error)}.") from error
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise InputError(
            "features must have one row per item, at least two, and one column per feature, at least one; got an array "
            f"of shape {rows.shape}."
        )
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise InputError("features have missing or infinite entries. Fill them in first.")
    if abs(rows).max() > LARGEST:
        raise InputError(f"features must not be larger than {LARGEST:g}: their squares are beyond all numbers.")
    if metric == "cosine":
        length = np.sqrt(_sum_squares(rows))
        scale = 1 / np.where(length > 0, length, 1.0)[:, None]
        rows = rows.multiply(scale).tocsr() if issparse(rows) else rows * scale
        if (length == 0).any():
            # A row of zeros is like no other: it gets a direction of its own, or it would be near to all.
            alone = (length == 0).astype(np.float64)[:, None]
            rows = hstack([rows, csr_array(alone)]).tocsr() if issparse(rows) else np.hstack([rows, alone])
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
