"""What needs votes only: shares of the votes, labels by vote, and groups of workers who copy each other."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.blocks import NO_VOTES, cut_blocks
from ..answers.columns import Values
from ..answers.graph import Graph
from ..answers.items import Sequences
from ..answers.random_choices import draw_numbers, hash_ids, hash_items
from ..engines import Engine
from ..kernels import Floats
from ..limits import allocate
from . import ITEMS_AT_ONCE
from .em import Problem, place
from .levels import choose_labels
from .sources import Source
from .structures import Independent
from .workers import voters
from .workers.priors import START, Prior, smoothing_array
from .workers.rows import vote


def pose_votes(source: Source, graph: Graph | None, engine: Engine) -> Problem:
    """Independent items and confusion matrices, as a problem of which only the votes are needed."""
    r = source.responses
    smoothing = smoothing_array(START, r.class_of_label, r.n_classes, r.n_workers)
    structure = Independent(r.n_classes, None, 0.0, "em")
    return place(source, voters(r), Prior(smoothing, "em"), structure, graph, engine)


def collect_votes(engine: Engine, source: Source, unvoted: Floats) -> tuple[Floats, Floats]:
    """The vote shares of all items, and their sums; items without votes get `unvoted`."""
    r: Answers = source.responses
    # It does not matter who votes: the row of an answer is its label.
    workers = voters(r)
    known = None if source.gold is None else source.gold.codes
    votes = workers.read_votes(r) if workers.needs_votes else NO_VOTES
    placed = engine.place(cut_blocks(r, r.label, r.n_labels, known, soft=votes))
    shares, mass, first = allocate((r.n_items, r.n_classes)), np.zeros(r.n_classes), 0
    for part in engine.map(vote, placed, r.class_of_label if not len(votes) else workers.votes(), unvoted):
        shares[first : first + len(part)] = part
        mass, first = mass + part.sum(axis=0), first + len(part)
    return shares, mass


def find_tied(shares: Floats) -> NDArray[np.bool_]:
    """Which classes of each item have the largest share.

    Shares that differ by rounding only are tied: 1/3 + 1/3 and 2/3 are the same vote.
    """
    return np.asarray(shares >= reduce(np.maximum, shares.T)[:, None] - 1e-12)


def label_votes(
    shares: Floats,
    keys: Values | Sequences,
    classes: Values,
    ties: str = "random",
    label_by: str = "mode",
    seed: int = 0,
) -> NDArray[np.int64]:
    """The class with the largest share of each item, ties broken by the rule; or the median."""
    if label_by == "median":
        return choose_labels(shares, label_by)
    chosen, is_tied = np.empty(len(shares), np.int64), np.empty(len(shares), bool)
    for first in range(0, len(shares), ITEMS_AT_ONCE):
        run = slice(first, first + ITEMS_AT_ONCE)
        tied = find_tied(shares[run])
        chosen[run] = tied.argmax(axis=1)
        is_tied[run] = reduce(add, tied.T, np.zeros(len(tied), np.int32)) > 1
    if ties == "random":
        several = np.flatnonzero(is_tied)
        of_items, of_classes = hash_items(keys, several), hash_ids(classes)
        for first in range(0, len(several), ITEMS_AT_ONCE):
            run = slice(first, first + ITEMS_AT_ONCE)
            draws = draw_numbers(seed, of_items[run, None], of_classes)
            tied = find_tied(shares[several[run]])
            chosen[several[run]] = np.where(tied, draws, np.iinfo(np.uint64).max).argmin(axis=1)
    return chosen
