"""Edges between items, from what users have: ends, tables, matrices, pixels of images, or features of the items."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, hstack, issparse, sparray, spmatrix

from ..arguments import check_truth, is_among, is_whole, to_floats
from ..errors import InputError, Python, Sentence, first_line, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Floats
from ..memory import NUMBER, require_memory
from .columns import Column, Indices, Values, find_missing, find_present, to_values
from .frames import open_frame, read_column, read_distinct, read_names
from .tables import Table
from .vocabulary import encode_in_order_of_appearance, join_columns, lookup

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


class Edges(NamedTuple):
    """Edges by the indices of their ends, and the ids that these are indices of."""

    source: Indices
    target: Indices
    weights: Floats | None  # None: all are 1
    items: Values
    description: str  # how they were made


def list_edges(source: object, target: object, weight: ArrayLike | None, items: object) -> Edges:
    """Return edges given by their ends; see `Graph.from_edges`."""
    ends = [read_column(source, "source"), read_column(target, "target")]
    if len(ends[0]) != len(ends[1]):
        raise InputError(
            f"source has {plural(len(ends[0]), 'id')} and target {len(ends[1]):,}: an edge has one of each."
        )
    weights = None if weight is None else _read_weights(weight, len(ends[0]), "Edge weights")
    return _encode_ends(ends, weights, items, "the edges", "given edges")


def read_edge_table(frame: object, source: str, target: str, weight: str | None, items: object) -> Edges:
    """Return the edges of a table; see `Graph.from_frame`."""
    table = open_frame(frame, "the table of edges")
    chosen = table.find("weight") if is_among(weight, ("auto",)) else weight
    where = table.name
    if is_among(source, ("source",)) and is_among(target, ("target",)):
        source, target = _find_ends(table, chosen)
        if source != "source" or target != "target":
            where = f"{table.name}, whose columns {source!r} and {target!r} are taken for the ends of edges,"
    if chosen is None and weight is not None:
        _doubt_weights(table, source, target)
    for role, name in {"source": source, "target": target, "weight": chosen}.items():
        if name is None and role != "weight":
            raise parameter_error(role, "Graph.from_frame", "the name of a column", name)
        if name is not None and not is_among(name, table.names):
            error = table.no_column(role, name)
            named = Sentence(f"Or name it with {{{role}}}.", **{role: Python(f"{role}= of Graph.from_frame")})
            raise InputError(error.problem, *error.remedies, named)
    remedy = "Every edge needs two ends: fill it in or drop the row."
    ends = [table.values(source, remedy), table.values(target, remedy)]
    if chosen is None:
        return _encode_ends(ends, None, items, where, "given edges")
    column = to_values(table.values(chosen, "Every edge needs a weight: fill it in, or rename the column."))
    weights = _read_weights(column, table.n_rows, f"Weights in column {chosen!r} of {table.name}")
    return _encode_ends(ends, weights, items, where, f"given edges, weighted by {chosen!r}")


def read_adjacency(matrix: sparray | spmatrix | ArrayLike, items: object) -> Edges:
    """Return the edges of an adjacency matrix; see `Graph.from_scipy`."""
    try:
        shape = np.shape(matrix)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InputError(f"An adjacency matrix is square; got one of shape {shape}.")
        square = coo_array(matrix, copy=True)
        if square.dtype.kind not in "biuf":  # not every version of scipy refuses them
            raise TypeError
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"An adjacency matrix must hold numbers. Got {shorten(matrix)} instead.") from error
    require_memory(2 * NUMBER * shape[0], f"An adjacency matrix of {shape[0]:,} rows is too large")
    square.sum_duplicates()
    square.eliminate_zeros()
    names = read_names(items, square.shape[0], "items")
    weights = _read_weights(square.data, len(square.data), "Edge weights")
    return Edges(square.row, square.col, weights, names, "given adjacency matrix")


def _encode_ends(ends: list[Column], weights: Floats | None, items: object, name: str, description: str) -> Edges:
    """Return edges whose ends are ids; `name` stands for them in messages."""
    for column in ends:
        n_missing = len(find_missing(column))
        if n_missing:
            raise InputError(f"An end of {n_missing:,} of {name} is missing.", "Fill it in or drop the edge.")
    if items is None:
        codes, names = encode_in_order_of_appearance(join_columns(*ends))
        source, target = np.split(codes.astype(np.int64), [len(ends[0])])
    else:
        names = read_distinct(items, "items")
        source, target = lookup(names, ends[0]), lookup(names, ends[1])
        for index, column in ((source, ends[0]), (target, ends[1])):
            unknown = dict.fromkeys(to_values(column)[index < 0].tolist())
            if unknown:
                raise InputError(say_unknown(unknown, f"in {name}", len(names)), NAME_UNANSWERED)
    return Edges(source, target, weights, names, description)


def _read_weights(weight: object, n_edges: int, what: str) -> Floats:
    """Return the weights of edges, after a check; `what` stands for them in messages."""
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


def _find_ends(table: Table, weight: str | None) -> tuple[str, str]:
    """Return the columns source and target; or the only two beside the weights, unless they are those of answers."""
    others = [name for name in table.names if not is_among(name, (weight,))]
    has_answers = any(table.find_usual(role) is not None for role in ("worker", "known label", "position"))
    if {"source", "target"} <= set(table.names) or len(others) != 2 or has_answers:
        return "source", "target"
    return others[0], others[1]


def _doubt_weights(table: Table, source: str, target: str) -> None:
    """Warn if the only column beside the ends of edges looks like weights; different whole numbers are ids of edges."""
    others = [name for name in table.names if not is_among(name, (source, target))]
    if len(others) != 1 or len(table.names) != 3:
        return
    column = table.read(others[0])
    values = to_values(column)[find_present(column)]
    try:
        numbers = to_floats(values.tolist())
    except ValueError:
        return
    are_ids = (numbers == np.round(numbers)).all() and len(np.unique(numbers)) == len(numbers)
    if len(numbers) and not are_ids:
        warn_of(
            f"Column {others[0]!r} of {table.name} holds numbers, and is not used: all edges count alike.",
            "If these are weights, call the column weight.",
        )


def say_unknown(unknown: Collection[Any], where: str, n_items: int) -> str:
    """Return in words that there are ids of no item."""
    verb = "is" if len(unknown) == 1 else "are"
    return f"{plural(len(unknown), 'id')} {where} {verb} not among the {plural(n_items, 'item')}: {listing(unknown)}."


def link_pixels(shape: object, connectivity: int | None, items: object) -> Edges:
    """Return the edges between neighbouring pixels of images, and voxels of volumes; see `Graph.grid`."""
    sources, targets, kinds, first = [], [], [], 0
    for extent in _image_shapes(shape):
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
        for step in _half_neighbourhood(len(extent), known[n_neighbours]):
            here = tuple(slice(max(0, -d), n - max(0, d)) for d, n in zip(step, extent, strict=True))
            there = tuple(slice(max(0, d), n - max(0, -d)) for d, n in zip(step, extent, strict=True))
            sources.append(index[here].ravel())
            targets.append(index[there].ravel())
        first += index.size
        kinds.append(f"{n_neighbours}-neighbour grid")
    ends, names = (np.concatenate(sources), np.concatenate(targets)), read_names(items, first, "items")
    return Edges(*ends, None, names, " and ".join(dict.fromkeys(kinds)))


def _image_shapes(shape: Any) -> list[tuple[int, ...]]:
    """Return the shapes of one or several images or volumes."""
    expected = "a tuple of two or three whole numbers >= 1, or a list of such tuples"
    try:
        shapes = [tuple(shape)] if all(np.ndim(n) == 0 for n in shape) else [tuple(size) for size in shape]
    except (TypeError, NotImplementedError) as error:
        raise parameter_error("shape", "Graph.grid", expected, shape) from error
    for extent in shapes:
        whole = all(is_whole(n) and n >= 1 for n in extent)
        if len(extent) not in NEIGHBOURHOODS or not whole:
            raise parameter_error("shape", "Graph.grid", expected, shape)
    if sum(math.prod(map(int, extent)) for extent in shapes) >= 2**31:  # indices of neighbours have 32 bits
        raise parameter_error("shape", "Graph.grid", "that of fewer than 2**31 pixels", shape)
    return [tuple(map(int, extent)) for extent in shapes]


def _half_neighbourhood(dimensions: int, reach: int) -> Sequence[tuple[int, ...]]:
    """Return the steps to neighbours at most `reach` axes away, one of each opposite pair."""
    steps = product((-1, 0, 1), repeat=dimensions)
    return [step for step in steps if 0 < sum(map(abs, step)) <= reach and step > (0,) * dimensions]


def link_nearest(features: object, k: int, metric: str, mutual: bool, items: object) -> Edges:
    """Return the edges between nearest neighbours, which are found exactly; see `Graph.knn`.

    Of few features a k-d tree finds them, else everything is compared with everything.
    """
    if not is_among(metric, METRICS):
        raise parameter_error("metric", "Graph.knn", "'euclidean' or 'cosine'", metric)
    check_truth("mutual", "Graph.knn", mutual)
    rows = feature_rows(features, metric)
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
        chosen, how = nearest_by_comparison(rows, int(k)), "all pairs compared"
    else:
        chosen, how = nearest_by_tree(rows, int(k)), "k-d tree"
    source, target = np.repeat(np.arange(n_items), k), chosen.ravel()
    if mutual:
        forth = source.astype(np.int64) * n_items + target
        back = target.astype(np.int64) * n_items + source
        both = np.isin(forth, back)
        source, target = source[both], target[both]
    described = f"{k} nearest neighbours ({metric}, {'mutual' if mutual else 'union'}, exact: {how})"
    return Edges(source, target, None, read_names(items, n_items, "items"), described)


def check_sparse(matrix: Any) -> None:
    """Raise an error unless a sparse matrix holds numbers; indices beyond it would be followed."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    if np.iscomplexobj(matrix):
        raise ValueError("these are complex")


def feature_rows(features: Any, metric: str) -> Any:
    """Return features as rows of floats, scaled to length 1 for cosine distance."""
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
        length = np.sqrt(
            np.asarray(rows.multiply(rows).sum(axis=1)).ravel() if issparse(rows) else (rows**2).sum(axis=1)
        )
        scale = 1 / np.where(length > 0, length, 1.0)
        rows = rows.multiply(scale[:, None]).tocsr() if issparse(rows) else rows * scale[:, None]
        if (length == 0).any():
            # A row of zeros is like no other: it gets a direction of its own, or it would be near to all.
            apart = (length == 0).astype(np.float64)[:, None]
            rows = hstack([rows, csr_array(apart)]).tocsr() if issparse(rows) else np.hstack([rows, apart])
    return rows


def nearest_by_tree(rows: Floats, k: int) -> Indices:
    """Return the k nearest rows of each row, by a k-d tree."""
    from scipy.spatial import cKDTree

    _, found = cKDTree(rows).query(rows, k=k + 1, workers=-1)
    # An item is its own nearest neighbour, but not always first among duplicates: drop it wherever it stands.
    own = found == np.arange(len(rows))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own], np.int64).reshape(len(rows), k)


def nearest_by_comparison(rows: Any, k: int) -> Indices:
    """Return the k nearest rows of each row, by |x|^2 - 2 x y + |y|^2, nearest first."""
    n_items = rows.shape[0]
    if not issparse(rows):
        rows = rows - rows.mean(axis=0)  # small numbers, small errors
    squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel() if issparse(rows) else (rows**2).sum(axis=1)
    chunk = max(1, CHUNK_CELLS // n_items)
    nearest = np.zeros((n_items, k), np.int64)
    for start in range(0, n_items, chunk):
        part = rows[start : start + chunk]
        dots = (part @ rows.T).toarray() if issparse(rows) else part @ rows.T
        distance = squares[None, :] - 2 * dots
        here = np.arange(len(distance))
        distance[here, start + here] = np.inf
        candidates = np.argpartition(distance, k - 1, axis=1)[:, :k]
        order = np.lexsort((candidates, np.take_along_axis(distance, candidates, axis=1)), axis=1)
        nearest[start : start + chunk] = np.take_along_axis(candidates, order, axis=1)
    return nearest
