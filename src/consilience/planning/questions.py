r"""Questions to ask: pairs of an item and a worker, by what the answer is expected to tell.

Let :math:`q_k` be the calibrated probability of class k of an item, and :math:`p_{mk}(a)` the confusion matrix of
worker m. The expected gain of a question is the information that the answer has about the label, in nats:

.. math:: I(y; a_m) = H\Big(\sum_k q_k\, p_{mk}\Big) - \sum_k q_k\, H(p_{mk}).

A list of questions is made one by one. If the list already has questions S about the same item, what counts is what
the answer tells beyond theirs,

.. math:: I(y; a_m \mid a_S) = \sum_{s} P(s)\, I(y; a_m \mid a_S = s),

a sum over all answers s that may come. Only the first `MOST_OUTCOMES` - 1 of them, by their probability, are told
apart (fewer from 33 classes on); the others are taken together. Each step takes the pair with the largest gain per
cost. As the gain of a pair never rises while the list grows, this greedy list has at least 1 - 1/e (63%) of the
information of the best list of the same length, if all questions cost the same and no worker has a limit.

Questions that were asked before, and whose answers are not there yet, belong to S from the beginning. They count among
the questions of their workers.

In sequences and networks the answer about an item tells something about its neighbours too. There the gain counts
divided by 1 + s, where s is the number of questions that the list has about each neighbour, averaged over neighbours
by the weights of their edges. (Not if the model found no coupling.)

With many items and workers most pairs need not be looked at. For a list of n questions, the 4 n items with the largest
gain per cost of a first question are considered, and n of them if n is large. (Without limits and costs, the greedy
list is about the first n.) To find these, a gain is bounded by its tangent: it is concave in q, so that for any
distribution r of answers

.. math:: I(y; a_m) \leq \sum_k q_k\, D(p_{mk} \| r).

Items are put into cells by their rounded probabilities, r is the distribution of the answers at the middle of the cell,
and only workers whose bound exceeds the best gain so far are looked at. For each of these items the `N_SHORT` workers
with the largest gains of a first question are considered; when all of them were asked or have no questions left, the
next `N_SHORT`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ..answers.columns import Column, Values, join_values, lookup, split_repeated, to_column
from ..answers.random_choices import draw_numbers, hash_ids
from ..answers.tables import open_frame
from ..errors import InputError, ParameterError, Sentence, listing, parameter_error, plural, warn_of
from ..inference.observations import assign_groups
from ..kernels import NEARLY_ZERO, Codes, Floats, Integers, read_only
from ..limits import NUMBER, require_memory
from ..options import is_number, is_whole
from ..results.result import Result
from ..results.worker_report import find_accused
from .items import hash_keys

# The most outcomes of earlier answers to tell apart, fewer if there are many labels and classes: each takes a product
# with the matrix of every worker on a shortlist.
MOST_OUTCOMES, MOST_OUTCOME_PRODUCTS = 256, 1 << 18
N_SHORT = 32
# How finely probabilities are rounded to cells; the finest whose table of tangents is not too large.
GRAINS = (8, 4, 2, 1)
MOST_SLOPES = 1 << 24
# So many items share a cell on average, at least.
LEAST_SHARING = 16
# How many questions are listed if nothing is said.
N_QUESTIONS = 10
# For a list of n questions, so many times n items are looked at, but n are enough if these are many.
N_TIMES, ENOUGH_ITEMS_LISTED = 4, 20_000
# A worker has at most so many times the questions that an even share would be, if nothing is said.
MOST_UNEVEN = 4
# Costs that differ by rounding only are the same.
COST_ROUNDING = 1e-9


def list_questions(
    result: Result,
    n: object = None,
    workers: object = None,
    budget: object = None,
    cost: object = None,
    per_worker: object = None,
    asked: object = None,
    barred: object = None,
    seed: int | None = None,
) -> dict[str, Column]:
    """The columns of `Model.next_questions`; pairs that are barred cannot be asked, and no answer will come."""
    from ..kernels.questions import choose, find_best

    if n is not None and not (is_whole(n) and n >= 0):
        raise parameter_error("n", "next_questions", "a whole number >= 0", n)
    if budget is not None and not (is_number(budget) and budget >= 0):
        raise parameter_error("budget", "next_questions", "a number >= 0", budget)
    seed = result.seed if seed is None else seed
    paid = np.inf if budget is None else float(budget)

    # Who may be asked: by default all who do not answer by chance. Functions, and all whose silence is an answer, have
    # said what they can.
    names = result.names.workers
    ids = names[~find_accused(result, result.comparison)]
    if workers is not None:
        if isinstance(workers, (str, bytes, Mapping)) or not hasattr(workers, "__iter__"):
            raise parameter_error("workers", "next_questions", "a list of workers", workers)
        ids, repeated = split_repeated(to_column(workers if hasattr(workers, "__len__") else list(workers)))
        if repeated:
            raise parameter_error("workers", "next_questions", "a list of different workers", workers)
    known = lookup(names, to_column(ids))
    if (known < 0).any():
        warn_of(
            f"{int((known < 0).sum()):,} of {len(ids):,} workers were not there at the fit: "
            f"{listing(ids[known < 0].tolist())}. They are taken to answer as the crowd does on the whole."
        )
    if result.given.source_kind == "functions" or result.answers.silence_counts:
        ids, known = ids[known < 0], known[known < 0]
        if not len(ids):
            problem = "Silence counts as an answer here, so every worker has answered every item."
            remedy = Sentence("Or fit to answers that were read without {abstain}.", abstain="answer")
            if result.given.source_kind == "functions":
                problem = "Labelling functions answer all that they can, so there is nothing to ask them."
                remedy = Sentence("Or if people gave the answers, fuse them with {source_kind}.", source_kind="people")
            raise ParameterError(problem, Sentence("Name new workers with {workers}."), remedy, keyword="workers")
    price, limits = 1.0 if cost is None else cost, None
    costs = _by_worker("cost", price, ids, "a number > 0", lambda each: is_number(each) and 0 < each < np.inf)
    if per_worker is not None:
        expected = "a whole number >= 0"
        limits = _by_worker("per_worker", per_worker, ids, expected, lambda most: is_whole(most) and most >= 0)
        limits = np.minimum(limits, np.iinfo(np.int32).max).astype(np.int64)
    asked_before, not_to_ask = read_pairs(result, asked, "asked"), read_pairs(result, barred, "barred")
    n_asked = len(ids)
    if asked is not None and not result.answers.silence_counts:
        # Workers who were asked before, and cannot be asked now: they cost too much.
        absent = np.unique(lookup(names, asked_before[1]))
        absent = np.setdiff1d(absent[absent >= 0], known)
        ids, known = join_values(ids, names[absent]), np.append(known, absent)
        costs = np.append(costs, np.full(len(absent), np.inf))
        limits = None if limits is None else np.append(limits, np.zeros(len(absent), np.int64))
    confusion = result.estimates.matrices[known]
    if (known < 0).any():
        confusion[known < 0] = result.estimates.crowd_matrix
    # A number for each worker, the same for near-copies, of whom one stands for all; -1 is a worker who was not there.
    copies = assign_groups(result.given.copies, len(names) + 1)
    group = np.where(copies[known] > 0, copies[known], len(result.given.copies) + 1 + np.arange(len(known)))
    group = np.unique(group, return_inverse=True)[1]

    # How long the list can be at most.
    gold = result.given.gold
    items = np.arange(result.labels.n_items) if gold is None else np.flatnonzero(gold.codes < 0)
    n_pairs = len(items) * n_asked
    if paid < np.inf and n_pairs:
        n_pairs = min(n_pairs, int(paid / costs.min() + COST_ROUNDING))
    n_most = int(n) if n is not None else n_pairs if budget is not None else N_QUESTIONS
    n_most = min(n_most, n_pairs)
    problem = f"A list of {plural(n_most, 'question')} is too long"
    require_memory(5 * NUMBER * n_most, problem, Sentence("Lower {n} or {budget}."), keyword="n")
    if not n_most:
        nothing = np.empty(0, np.int64)
        return _make_columns(result, nothing, ids[nothing], np.empty(0), costs[nothing])

    # Who answered, or was asked, about what. A near-copy who may not be asked stands for one who may.
    place_of_worker = np.full(len(names), -1)
    for who, m in enumerate(known.tolist()):
        if m >= 0 and copies[m] > 0:
            place_of_worker[copies[:-1] == copies[m]] = who
    place_of_worker[known[known >= 0]] = np.flatnonzero(known >= 0)
    item, worker = result.answers.votes()
    there = place_of_worker[worker] >= 0
    answered = item[there], place_of_worker[worker[there]]
    pending, closed = ((item, lookup(ids, column)) for item, column in (asked_before, not_to_ask))
    pending, closed = ((item[worker >= 0], worker[worker >= 0]) for item, worker in (pending, closed))
    is_new = ~np.isin(pending[0] * len(ids) + pending[1], answered[0] * len(ids) + answered[1])
    waits = np.unique(pending[0][is_new] * len(ids) + pending[1][is_new])
    pending = waits // len(ids), waits % len(ids)

    # Ties are broken at random. What a first question about each item is worth, by cells of like probabilities.
    posterior = read_only(np.ascontiguousarray(result.labels.posterior))
    items = items[np.argsort(draw_numbers(seed, hash_keys(result.labels.keys))[items], kind="stable")]
    order = np.argsort(draw_numbers(seed, hash_ids(ids)), kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    confusion = np.ascontiguousarray(confusion[order])
    matrices = confusion, entr(confusion).sum(axis=2), costs[order]
    every = [np.concatenate(each) for each in zip(answered, pending, closed, strict=True)]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(every[0], minlength=len(posterior)))])
    taken = (group[order], offsets, rank[every[1][np.argsort(every[0], kind="stable")]])
    cells, middles = make_cells(posterior[items], len(ids))
    slopes = find_slopes(middles, *matrices)
    best, by_cell = np.zeros(len(items)), np.argsort(cells, kind="stable")  # so that a cell's table stays in the cache
    in_cells = np.zeros(len(items))
    find_best(items[by_cell], cells[by_cell], posterior, slopes, *matrices, *taken, in_cells)
    best[by_cell] = in_cells

    # The items that are looked at; those that need no more questions make room for others.
    n_looked = n_most + len(np.unique(pending[0]))
    n_looked = max(n_looked, min(N_TIMES * n_looked, ENOUGH_ITEMS_LISTED))
    top = np.sort(np.argsort(-best, kind="stable")[:n_looked])
    top = top[best[top] > 0]
    items = items[top]
    place = np.full(len(posterior), -1, np.int32)
    place[items] = np.arange(len(top))
    node_offsets, nodes, shares = find_neighbours(result)
    about = np.repeat(np.bincount(pending[0], minlength=len(posterior)), np.diff(node_offsets))
    crowding = 1 + np.bincount(nodes, about * shares, minlength=len(posterior)).astype(np.float64)[items]
    links = read_only(node_offsets), read_only(nodes), read_only(shares)  # those of a graph are
    here = (items, cells[top], best[top], posterior, slopes, *matrices, *taken, *links, place)
    bounds = min(N_SHORT, len(ids)), int(np.clip(MOST_OUTCOME_PRODUCTS // matrices[0][0].size, 2, MOST_OUTCOMES))
    waiting = np.stack([place[pending[0]], rank[pending[1]]], axis=1).astype(np.int64)
    has = np.bincount(waiting[:, 1], minlength=len(ids))
    waiting = waiting[waiting[:, 0] >= 0]
    n_pending, can_answer = len(waiting), np.isfinite(matrices[2])
    chosen, gains = np.concatenate([waiting, np.zeros((n_most, 2), np.int64)]), np.zeros(n_pending + n_most)
    limit = -(-MOST_UNEVEN * (n_most + len(pending[0])) // int(can_answer.sum()))
    while True:
        left = np.maximum((limit if limits is None else limits[order]) - has, 0)
        rest: tuple[Any, ...] = (crowding.copy(), *bounds, left, paid + COST_ROUNDING, n_pending, chosen, gains)
        n_chosen = choose(*here, *rest)
        if n_chosen == n_pending + n_most or limits is not None or left[can_answer].all():
            break
        limit *= 2
    rows, askable = chosen[n_pending:n_chosen].T
    askable = order[askable]
    return _make_columns(result, items[rows], ids[askable], gains[n_pending:n_chosen], costs[askable])


def _make_columns(result: Result, items: Integers, workers: Values, gain: Floats, cost: Floats) -> dict[str, Column]:
    figures = {"worker": workers, "gain": gain, "cost": cost}
    return result.labels.take(items) | {name: to_column(each) for name, each in figures.items()}


def _by_worker(name: str, given: object, ids: Values, expected: str, is_good: Callable[[Any], bool]) -> Floats:
    """A number for each worker, from one for all or a dict."""
    numbers: Mapping[Any, Any] = given if isinstance(given, Mapping) else dict.fromkeys(ids.tolist(), given)
    missing = [worker for worker in ids.tolist() if worker not in numbers]
    if missing:
        raise ParameterError(
            f"The {name!r} parameter of next_questions has no entry for {listing(missing)}.",
            "Add one for each worker who may be asked.",
            keyword=name,
        )
    for worker in ids.tolist():
        if not is_good(numbers[worker]):
            raise parameter_error(
                name, "next_questions", f"{expected}, or a dict with one for each worker", numbers[worker]
            )
    return np.array([float(numbers[worker]) for worker in ids.tolist()])


def read_pairs(result: Result, source: object, name: str) -> tuple[Integers, Column]:
    """The items, by index, and the workers in a table of questions, but for those about other items."""
    if source is None:
        return np.empty(0, np.int64), to_column(result.names.workers[:0])
    table = open_frame(source, name)
    keys = ["item"] if result.answers.sequences is None else ["sequence", "position"]
    missing = [each for each in (*keys, "worker") if each not in table.names]
    if missing:
        needed = listing([*keys, "worker"])
        raise InputError(f"The table {name} must have the columns {needed}; {listing(missing)} is missing.")
    item = result.answers.find_items([table.read(each) for each in keys])
    rows = np.flatnonzero(item >= 0)
    return item[rows], table.read("worker").take(rows)


def make_cells(posterior: Floats, n_workers: int) -> tuple[NDArray[np.int64], Floats]:
    """The cell of each item, and the mean probabilities in each cell."""
    n_items, n_classes = posterior.shape
    most = max(1, min(n_items // LEAST_SHARING, MOST_SLOPES // (n_workers * n_classes)))
    steps = draw_numbers(0, hash_ids(np.arange(n_classes)))
    cells = np.zeros(n_items, np.int64)
    for grain in GRAINS:
        codes = np.rint(posterior * grain).astype(np.uint64) @ steps
        distinct, cell = np.unique(codes, return_inverse=True)
        if len(distinct) <= most:
            cells = cell
            break
    n_cells = int(cells.max()) + 1
    middles = np.stack([np.bincount(cells, column, minlength=n_cells) for column in posterior.T], axis=1)
    return cells, middles / middles.sum(axis=1, keepdims=True)


def find_slopes(middles: Floats, confusion: Floats, row_entropy: Floats, cost: Floats) -> Floats:
    """D(p_mk || r) per cost for each cell, class and worker, where r are the answers at the cell's middle."""
    slopes = np.zeros((len(middles), row_entropy.shape[1], len(confusion)))
    for c, middle in enumerate(middles):
        answers = np.maximum(np.einsum("k,mka->ma", middle, confusion), NEARLY_ZERO)
        slopes[c] = (-row_entropy - np.einsum("mka,ma->mk", confusion, np.log(answers))).T / cost
    return slopes


def find_neighbours(result: Result) -> tuple[Integers, Codes, Floats]:
    """The neighbours of each item i, node[offsets[i]:offsets[i + 1]], and what i counts among those of each.

    There are none for models without neighbours, or if these have no say.
    """
    n_items, graph, sequences = result.labels.n_items, result.given.graph, result.answers.sequences
    if result.coupling and graph is not None:
        # A graph has positive weights only, so that the total of a node with neighbours is not 0.
        total = np.bincount(graph.neighbours, graph.weights, minlength=n_items)
        return graph.offsets, graph.neighbours, graph.weights / total[graph.neighbours]
    if not result.coupling or sequences is None:
        return np.zeros(n_items + 1, np.int64), np.empty(0, np.int32), np.empty(0)
    owner = sequences.of_items()
    left = np.flatnonzero(owner[1:] == owner[:-1])
    ends = np.sort(np.concatenate([left * 2 + 1, (left + 1) * 2]))  # of item i: 2 i to its left, 2 i + 1 to its right
    item, node = ends // 2, ends // 2 + np.where(ends % 2, 1, -1)
    degree = np.bincount(item, minlength=n_items)
    return np.concatenate([[0], np.cumsum(degree)]), node.astype(np.int32), 1 / degree[node]
