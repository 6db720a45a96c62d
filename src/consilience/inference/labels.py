r"""Labels: from votes, from probabilities, and from levels of a scale.

Levels of a scale are ordered classes. With probabilities q of the levels 0, 1, ..., K - 1 in their order, the quantile
of the share s is the lowest level that is not exceeded with at least this probability,

.. math:: \min \Big\{ k : \sum_{j \le k} q_j \ge s \Big\}.

The median, s = 1/2, has the least expected distance from the truth: where two levels do, it is the lower one. The truth
lies between the quantiles of .05 and .95, both included, with a probability of at least .9.
"""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import NO_VOTES, Answers, cut_blocks
from ..answers.classes import are_ranks, to_numbers
from ..answers.columns import Values
from ..answers.graph import Graph
from ..answers.keys import Sequences
from ..answers.random_choices import draw_numbers, hash_ids, hash_items
from ..engines import Engine
from ..errors import ParameterError, Sentence, listing
from ..kernels import ROUNDING, Floats
from ..limits import ITEMS_AT_ONCE, allocate, side_by_side
from .em import Problem, place
from .observations import Observations
from .structures import Independent
from .workers import voters
from .workers.base import START, Prior, smoothing_array
from .workers.rows import vote

#: The quantiles at the ends of an interval of 90 %, and in the middle.
LOW, MEDIAN, HIGH = 0.05, 0.5, 0.95


def find_quantile(posterior: Floats, share: float) -> NDArray[np.int64]:
    """The lowest level of each item that is not exceeded with at least this probability.

    >>> find_quantile(np.array([[0.2, 0.3, 0.5], [0.6, 0.0, 0.4]]), 0.5)
    array([1, 0])
    """
    reached, level = np.zeros(len(posterior)), np.zeros(len(posterior), np.int64)
    for column in posterior.T[:-1]:
        reached += column
        level += reached < share - ROUNDING
    return level


def find_mean(posterior: Floats, worth: Floats) -> Floats:
    """The mean of each item, of levels that are worth so much: to the bit the same in whichever part it is."""
    mean = np.zeros(len(posterior))
    for column, each in zip(posterior.T, worth.tolist(), strict=True):
        mean += each * column
    return mean


def choose_labels(posterior: Floats, label_by: str) -> NDArray[np.int64]:
    """The label of each item: the most probable class, the first of several; or the median."""
    return find_quantile(posterior, MEDIAN) if label_by == "median" else np.asarray(posterior.argmax(axis=1))


def name_levels(classes: Values) -> Values:
    """The names of levels in results: numbers where all read as numbers, whole ones if they are whole.

    >>> name_levels(np.array(["1", "2"], dtype=object)), name_levels(np.array([0.5, 1.0]))
    (array([1, 2]), array([0.5, 1. ]))
    """
    numbers = to_numbers(classes)
    if numbers is None:
        return classes
    whole = numbers.astype(np.int64) if (np.abs(numbers) < 2**53).all() else numbers
    return whole if (whole == numbers).all() else numbers


def place_levels(classes: Values, positions: tuple[float, ...]) -> Floats:
    """The numbers of which a mean is taken: the classes themselves, or their positions.

    The classes count if they are numbers, and nobody gave them other positions.

    >>> place_levels(np.array([1, 2, 3]), (0.0, 1.0, 2.0)), place_levels(np.array([1, 2, 3]), (0.0, 1.0, 5.0))
    (array([1., 2., 3.]), array([0., 1., 5.]))
    """
    numbers = to_numbers(classes) if are_ranks(positions) else None
    return np.array(positions) if numbers is None else numbers


def check_order(classes: Values, positions: tuple[float, ...] | None) -> None:
    """Raise an error unless classes are ordered, so that there is a median."""
    if positions is None:
        raise ParameterError(
            Sentence("{label_by} needs classes in order, and nothing says that these are.", label_by="median"),
            f"They are {listing(classes.tolist())}.",
            Sentence("If they are levels, say so with {ordered}.", ordered=True),
            Sentence("Name levels that are no numbers from low to high with {classes}."),
            keyword="label_by",
        )


def make_vote_problem(observations: Observations, graph: Graph | None, engine: Engine) -> Problem:
    """Independent items and confusion matrices, as a problem of which only the votes are needed."""
    r = observations.responses
    smoothing = smoothing_array(START, r.class_of_label, r.n_classes, r.n_workers)
    structure = Independent(r.n_classes, None, 0.0, "em")
    return place(observations, voters(r), Prior(smoothing, "em"), structure, graph, engine)


def collect_votes(engine: Engine, observations: Observations, unvoted: Floats) -> tuple[Floats, Floats]:
    """The vote shares of all items, and their sums; items without votes get `unvoted`."""
    r: Answers = observations.responses
    # It does not matter who votes: the row of an answer is its label.
    workers = voters(r)
    known = None if observations.gold is None else observations.gold.codes
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
    return np.asarray(shares >= reduce(np.maximum, shares.T)[:, None] - ROUNDING)


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

    def choose(start: int, stop: int) -> None:
        for first in range(start, stop, ITEMS_AT_ONCE):
            run = slice(first, min(first + ITEMS_AT_ONCE, stop))
            tied = find_tied(shares[run])
            chosen[run] = tied.argmax(axis=1)
            is_tied[run] = reduce(add, tied.T, np.zeros(len(tied), np.int32)) > 1

    side_by_side(choose, len(shares))
    if ties == "random":
        several = np.flatnonzero(is_tied)
        of_items, of_classes = hash_items(keys, several), hash_ids(classes)
        for first in range(0, len(several), ITEMS_AT_ONCE):
            run = slice(first, first + ITEMS_AT_ONCE)
            draws = draw_numbers(seed, of_items[run, None], of_classes)
            tied = find_tied(shares[several[run]])
            chosen[several[run]] = np.where(tied, draws, np.iinfo(np.uint64).max).argmin(axis=1)
    return chosen
