"""The answers that a model was fitted to, as its file holds them: with known labels, and the graph.

An answer is two numbers, the codes of its worker and of its label, each in the narrowest type that can hold it. Which
item it is about follows from the number of answers to each item. When it was given is stored as a number. An edge of
the graph is stored once, as the distance between its ends in the order of the items: neighbours in a grid have few
different distances, which compress well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..answers import DIALECTS
from ..answers.answers import Answers
from ..answers.columns import Column, Values, decode_categories, encode_in_order_of_appearance, to_values
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.items import Sequences
from ..answers.soft_votes import Probabilities
from ..kernels import Floats
from ..specs import (
    ANSWER_WEIGHTS,
    BOOLEANS,
    FIGURES,
    NARROW_CLASS_CODES,
    NARROW_COUNTS,
    NARROW_ITEM_CODES,
    NARROW_LABEL_CODES,
    NARROW_WORKER_CODES,
    POSITIVE,
    VOTES,
    ArraySpec,
    Fault,
    Sizes,
    among,
)
from .result import Given, Result

Narrow: TypeAlias = NDArray[np.unsignedinteger[Any]]
_FORMATS = ("", *(dialect.name for dialect in DIALECTS))


class KeptAnswers(NamedTuple):
    """Answers. Weights are there only if some are not 1, the order only if one was given, and votes only if soft."""

    counts: Annotated[Narrow, ArraySpec("N", NARROW_COUNTS)]  # of answers to each item
    workers: Annotated[Narrow, ArraySpec("*", NARROW_WORKER_CODES)]
    labels: Annotated[Narrow, ArraySpec("*", NARROW_LABEL_CODES)]
    weights: Annotated[Floats, ArraySpec("*", ANSWER_WEIGHTS)] | None
    order: Annotated[Floats, ArraySpec("*", FIGURES)] | None
    votes: Annotated[Probabilities, ArraySpec("* L", VOTES)] | None  # the probabilities of soft votes
    columns: dict[str, str]
    format: Annotated[str, among(_FORMATS)]
    background: int | None  # where silence is an answer: the class that it means

    def check_saved(self, sizes: Sizes) -> None:
        """Raise a `Fault` unless there are as many answers as the items have, and the background is a class."""
        parts = (self.workers, self.labels, self.weights, self.order, self.votes)
        if {len(part) for part in parts if part is not None} != {_total(self.counts)}:
            raise Fault("there are not as many answers as the items have")
        if self.background is not None and self.background >= sizes["K"]:
            raise Fault("the background must be a class")

    @classmethod
    def of(cls, r: Answers) -> KeptAnswers:
        """Pack answers."""
        background = np.flatnonzero(r.vote_shares())[0].item() if r.silence_counts else None
        codes = narrow(np.diff(r.offsets)), narrow(r.worker), narrow(r.label)
        read = dict(r.columns), r.format
        return cls(*codes, r.weight, r.order, r.soft, *read, background)

    def unpack(self, fusion: Result, keys: Values | Sequences) -> Answers:
        """Return the answers, with the names of what was learned from them."""
        names, background = fusion.names, self.background
        return Answers(
            np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)]).astype(np.int64),
            self.workers.astype(np.int32),
            self.labels.astype(np.int32),
            self.weights,
            names.workers,
            names.labels,
            names.classes,
            keys,
            backend=fusion.backend,
            background=None if background is None else names.classes[[background]].tolist()[0],
            normalised=names.normalised,
            order=self.order,
            positions=names.positions,
            soft=self.votes,
            columns=self.columns,
            format=self.format,
        )


class KeptGold(NamedTuple):
    """Known labels."""

    items: Annotated[Narrow, ArraySpec("*", NARROW_ITEM_CODES)]
    classes: Annotated[Narrow, ArraySpec("*", NARROW_CLASS_CODES)]
    random: Annotated[NDArray[np.bool_], ArraySpec("*", BOOLEANS)]  # whether probabilities may be judged by them

    def check_saved(self, sizes: Sizes) -> None:  # noqa: ARG002
        """Raise a `Fault` unless each label is that of an item."""
        alike = len(self.items) == len(self.classes) == len(self.random)
        if not alike or (np.diff(self.items.astype(np.int64)) <= 0).any():
            raise Fault("the known labels are not those of as many items")

    @classmethod
    def of(cls, gold: Gold) -> KeptGold:
        """Pack known labels."""
        known = np.flatnonzero(gold.codes >= 0)
        return cls(narrow(known), narrow(gold.codes[known]), gold.judging[known])

    def unpack(self, n_items: int) -> Gold:
        """Return the known labels of all items."""
        codes, judging = np.full(n_items, -1, np.int32), np.zeros(n_items, bool)
        codes[self.items], judging[self.items] = self.classes, self.random
        return Gold(codes, judging)


class KeptGraph(NamedTuple):
    """A graph. Weights are there only if some are not 1."""

    counts: Annotated[Narrow, ArraySpec("N", NARROW_COUNTS)]  # of edges from each item to later ones
    steps: Annotated[Narrow, ArraySpec("*", NARROW_COUNTS)]
    weights: Annotated[Floats, ArraySpec("*", POSITIVE)] | None
    description: str
    self_loops: int

    def check_saved(self, sizes: Sizes) -> None:
        """Raise a `Fault` unless the edges are those of the items."""
        n_edges = len(self.steps)
        if _total(self.counts) != n_edges or (self.weights is not None and len(self.weights) != n_edges):
            raise Fault("there are not as many edges as the items have")
        low, high = self.ends()
        if (low >= high).any() or (high >= sizes["N"]).any():
            raise Fault("an edge must lead from an item to a later one")
        if len(np.unique(low * sizes["N"] + high)) < n_edges:
            raise Fault("an edge occurs twice")

    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the items that each edge joins."""
        low = np.repeat(np.arange(len(self.counts)), self.counts)
        return low, low + self.steps.astype(np.int64)

    @classmethod
    def of(cls, graph: Graph) -> KeptGraph:
        """Pack a graph."""
        source = np.repeat(np.arange(graph.n_items), graph.degrees)
        once = graph.neighbours > source
        low, weights = source[once], graph.weights[once]
        steps = narrow(graph.neighbours[once] - low)
        kept = None if (weights == 1.0).all() else weights
        counts = narrow(np.bincount(low, minlength=graph.n_items))
        return cls(counts, steps, kept, graph.description, graph.n_self_loops)

    def unpack(self, items: Values) -> Graph:
        """Return the graph over the items."""
        graph = Graph.of(*self.ends(), self.weights, items, self.description)
        return Graph(items, graph.offsets, graph.neighbours, graph.weights, self.self_loops, self.description)


class Kept(NamedTuple):
    """What a file holds of what a model was fitted to."""

    answers: KeptAnswers | None
    gold: KeptGold | None
    graph: KeptGraph | None
    has_priors: bool

    @classmethod
    def of(cls, given: Given, answers: bool) -> Kept:
        """Pack known labels, and if `answers` is true the answers and the graph."""
        held = answers and given.answers is not None
        return cls(
            KeptAnswers.of(given.answers) if held and given.answers is not None else None,
            None if given.gold is None else KeptGold.of(given.gold),
            KeptGraph.of(given.graph) if held and given.graph is not None else None,
            given.has_priors,
        )

    def unpack(self, fusion: Result, takes_graph: bool) -> Given:
        """Return what a model was fitted to, which may be one that is fitted to a graph."""
        labels, answers, gold, graph = fusion.labels, None, None, None
        if (self.graph is not None) != (takes_graph and self.answers is not None):
            raise Fault("there must be a graph beside the answers if the model is one of a graph, and only then")
        if self.gold is not None:
            gold = self.gold.unpack(labels.n_items)
        if self.answers is not None:
            answers = self.answers.unpack(fusion, restore_keys(labels.keys))
        if self.graph is not None and answers is not None:
            graph = self.graph.unpack(answers.items)
        return Given(answers, gold, graph, has_priors=self.has_priors)


def restore_keys(keys: Mapping[str, Column]) -> Values | Sequences:
    """Return what identifies the items, as answers have it: positions of a sequence stand together, in their order."""
    if "item" in keys:
        return to_values(decode_categories(keys["item"]))
    owner, ids = encode_in_order_of_appearance(keys["sequence"])
    position = to_values(decode_categories(keys["position"]))
    rank = np.unique(position, return_inverse=True)[1]
    if (np.diff(owner) < 0).any() or (np.diff(rank)[np.diff(owner) == 0] <= 0).any():
        raise Fault("the items of a sequence must stand together, in the order of their positions")
    return Sequences(ids, np.searchsorted(owner, np.arange(len(ids) + 1)).astype(np.int64), position)


def narrow(values: NDArray[np.integer[Any]]) -> Narrow:
    """Return whole numbers that are not negative in the narrowest type that holds them.

    >>> narrow(np.array([0, 300])).dtype
    dtype('uint16')
    """
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _total(counts: Narrow) -> int:
    return int(counts.sum(dtype=np.uint64))
