"""The answers that a model was fitted to, as its file holds them: with known labels, and the graph.

An answer is two numbers, the codes of its worker and of its label, each in the narrowest type that can hold it. Which
item it is about follows from the number of answers to each item. When it was given is stored as a number. An edge of
the graph is stored once, as the distance between its ends in the order of the items: neighbours in a grid have few
different distances, which compress well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Column, Values, decode_categories, to_values
from ..answers.dialects.register import DIALECTS
from ..answers.edges import Edges
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.items import Sequences
from ..answers.responses import Responses
from ..answers.vocabulary import encode_in_order_of_appearance
from ..specs import (
    ANSWER_WEIGHTS,
    BOOLEANS,
    NARROW_CLASS_CODES,
    NARROW_COUNTS,
    NARROW_ITEM_CODES,
    NARROW_LABEL_CODES,
    NARROW_WORKER_CODES,
    POSITIVE,
    TIMES,
    ArraySpec,
    Fault,
    is_whole,
)

if TYPE_CHECKING:
    from ..models.base import Model

Arrays = Mapping[str, NDArray[Any]]

# The arrays of each part, by the beginning of their names. Weights are there only if some are not 1, and the order only
# if one was given.
PARTS: dict[str, dict[str, ArraySpec]] = {
    "answers ": {
        "counts": ArraySpec("N", NARROW_COUNTS),
        "workers": ArraySpec("*", NARROW_WORKER_CODES),
        "labels": ArraySpec("*", NARROW_LABEL_CODES),
        "weights": ArraySpec("*", ANSWER_WEIGHTS),
        "order": ArraySpec("*", TIMES),
    },
    "gold ": {
        "items": ArraySpec("*", NARROW_ITEM_CODES),
        "classes": ArraySpec("*", NARROW_CLASS_CODES),
        "random": ArraySpec("*", BOOLEANS),
    },
    "graph ": {
        "counts": ArraySpec("N", NARROW_COUNTS),
        "steps": ArraySpec("*", NARROW_COUNTS),
        "weights": ArraySpec("*", POSITIVE),
    },
}
_OPTIONAL = ("weights", "order")
_FORMATS = ("", *(dialect.name for dialect in DIALECTS))


def are_kept(name: str) -> bool:
    """Tell whether an array of a file is one of these, by its name."""
    return name.startswith(tuple(PARTS))


def state_of_answers(model: Model, answers: bool) -> dict[str, NDArray[Any]]:
    """Return the arrays to write: of known labels, and if `answers` is true of the answers and the graph."""
    parts = {"gold ": {} if model._gold is None else _pack_gold(model._gold)}
    if answers and model._answers is not None:
        parts["answers "] = _pack_answers(model._answers)
        parts["graph "] = {} if model._graph is None else _pack_graph(model._graph)
    return {prefix + name: array for prefix, arrays in parts.items() for name, array in arrays.items()}


def describe_answers(model: Model, answers: bool) -> dict[str, Any] | None:
    """Return what the header says about the answers; None if they are not in the file."""
    r, graph = model._answers, model._graph
    if not answers or r is None:
        return None
    background = np.flatnonzero(r.vote_shares())[0].item() if r.silence_counts else None
    made = None if graph is None else {"description": graph.description, "self_loops": graph.n_self_loops}
    return {"columns": dict(r.columns), "format": r.format, "background": background, "graph": made}


def specs_of_answers(names: Iterable[str]) -> dict[str, ArraySpec]:
    """Return what each of these arrays must look like; `names` are those that the file has."""
    there = set(names)
    return {
        prefix + name: spec
        for prefix, specs in PARTS.items()
        if any(other.startswith(prefix) for other in there)
        for name, spec in specs.items()
        if name not in _OPTIONAL or prefix + name in there
    }


def restore_answers(model: Model, words: Mapping[str, Any] | None, arrays: Arrays) -> None:
    """Give a model the answers, the known labels and the graph that its file holds."""
    parts = {prefix: _part(arrays, prefix) for prefix in PARTS}
    graph = None if words is None else _check_words(words, len(model.classes_))["graph"]
    if bool(parts["answers "]) != (words is not None) or bool(parts["graph "]) != (graph is not None):
        raise Fault("it holds only a part of the answers")
    if model._totals is not None and (parts["answers "] or parts["gold "]):
        raise Fault("it holds answers, or known labels, but no items")
    if words is not None and (graph is not None) != model._takes_graph:
        raise Fault("there must be a graph if the model is one of a graph")
    model._answers = model._graph = model._gold = None
    if parts["gold "]:
        model._gold = _unpack_gold(parts["gold "], len(model._label_codes))
    if words is not None:
        model._answers = _unpack_answers(model, words, parts["answers "])
    if graph is not None and model._answers is not None:
        model._graph = _unpack_graph(graph, parts["graph "], model._answers.items)


def _part(arrays: Arrays, prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def narrow(values: NDArray[np.integer[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """Return whole numbers that are not negative in the narrowest type that holds them.

    >>> narrow(np.array([0, 300])).dtype
    dtype('uint16')
    """
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _pack_answers(r: Responses) -> dict[str, NDArray[Any]]:
    kept = {"counts": narrow(np.diff(r.offsets)), "workers": narrow(r.worker), "labels": narrow(r.label)}
    further = {"weights": r.weight, "order": r.order}
    return kept | {name: array for name, array in further.items() if array is not None}


def _unpack_answers(model: Model, words: Mapping[str, Any], arrays: Arrays) -> Responses:
    counts, worker, label = (arrays[name] for name in ("counts", "workers", "labels"))
    weight, order = arrays.get("weights"), arrays.get("order")
    lengths = {len(each) for each in (worker, label, weight, order) if each is not None} | {_total(counts)}
    if len(lengths) > 1:
        raise Fault("there are not as many answers as the items have")
    return Responses(
        _offsets(counts),
        worker.astype(np.int32),
        label.astype(np.int32),
        weight,
        model.workers_,
        model.answer_labels_,
        model.classes_,
        _restore_keys(model._keys),
        backend=model._backend,
        background=None if words["background"] is None else model.classes_[[words["background"]]].tolist()[0],
        columns=words["columns"],
        normalised=model._normalised,
        passages=model._passages,
        format=words["format"],
        order=order,
    )


def _check_words(words: Mapping[str, Any], n_classes: int) -> Mapping[str, Any]:
    """Return what the header says about the answers, if it can be so."""
    if words.keys() != {"columns", "format", "background", "graph"}:
        raise Fault("the header does not describe the answers")
    columns, background, graph = words["columns"], words["background"], words["graph"]
    named = isinstance(columns, dict) and all(isinstance(name, str) for name in columns.values())
    if not named or words["format"] not in _FORMATS:
        raise Fault("columns must be names, and the format one that is known")
    if background is not None and not (is_whole(background) and background < n_classes):
        raise Fault("the background must be a class")
    made = graph is None or (
        isinstance(graph, dict)
        and graph.keys() == {"description", "self_loops"}
        and isinstance(graph["description"], str)
        and is_whole(graph["self_loops"])
    )
    if not made:
        raise Fault("the header does not describe the graph")
    return words


def _restore_keys(keys: Mapping[str, Column]) -> Values | Sequences:
    """Return what identifies the items, as answers have it: positions of a sequence stand together, in their order."""
    if "item" in keys:
        return to_values(decode_categories(keys["item"]))
    owner, ids = encode_in_order_of_appearance(keys["sequence"])
    position = to_values(decode_categories(keys["position"]))
    rank = np.unique(position, return_inverse=True)[1]
    if (np.diff(owner) < 0).any() or (np.diff(rank)[np.diff(owner) == 0] <= 0).any():
        raise Fault("the items of a sequence must stand together, in the order of their positions")
    return Sequences(ids, np.searchsorted(owner, np.arange(len(ids) + 1)).astype(np.int64), position)


def _pack_gold(gold: Gold) -> dict[str, NDArray[Any]]:
    known = np.flatnonzero(gold.codes >= 0)
    return {"items": narrow(known), "classes": narrow(gold.codes[known]), "random": gold.judging[known]}


def _unpack_gold(arrays: Arrays, n_items: int) -> Gold:
    items, classes, drawn = (arrays[name] for name in ("items", "classes", "random"))
    if not len(items) == len(classes) == len(drawn) or (np.diff(items.astype(np.int64)) <= 0).any():
        raise Fault("the known labels are not those of as many items")
    codes, judging = np.full(n_items, -1, np.int32), np.zeros(n_items, bool)
    codes[items], judging[items] = classes, drawn
    return Gold(codes, judging)


def _pack_graph(graph: Graph) -> dict[str, NDArray[Any]]:
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    once = graph.neighbours > source
    low, weights = source[once], graph.weights[once]
    steps = narrow(graph.neighbours[once] - low)
    kept = {"counts": narrow(np.bincount(low, minlength=graph.n_items)), "steps": steps}
    return kept if (weights == 1.0).all() else kept | {"weights": weights}


def _unpack_graph(words: Mapping[str, Any], arrays: Arrays, items: Values) -> Graph:
    counts, steps, weights = arrays["counts"], arrays["steps"].astype(np.int64), arrays.get("weights")
    if _total(counts) != len(steps) or (weights is not None and len(weights) != len(steps)):
        raise Fault("there are not as many edges as the items have")
    low = np.repeat(np.arange(len(items)), counts)
    if (steps < 1).any() or (low + steps >= len(items)).any():
        raise Fault("an edge must lead from an item to a later one")
    graph = Graph.of(Edges(low, low + steps, weights, items, words["description"]))
    if graph.n_edges < len(steps):
        raise Fault("an edge occurs twice")
    return Graph(items, graph.offsets, graph.neighbours, graph.weights, words["self_loops"], words["description"])


def _total(counts: NDArray[Any]) -> int:
    return int(counts.sum(dtype=np.uint64))


def _offsets(counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
