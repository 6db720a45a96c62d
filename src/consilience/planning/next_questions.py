r"""Whom to ask what next: pairs of an item and a worker, by what the answer is expected to tell about the label.

Let :math:`q_k` be the calibrated probability of class k of an item, and :math:`p_{mk}(a)` the confusion matrix of
worker m. The expected gain of a question is the information that the answer has about the label, in nats:

.. math:: I(y; a_m) = H\Big(\sum_k q_k\, p_{mk}\Big) - \sum_k q_k\, H(p_{mk}).

A list of questions is made one by one. If the list already has questions S about the same item, what counts is what
the answer tells beyond theirs,

.. math:: I(y; a_m \mid a_S) = \sum_{s} P(s)\, I(y; a_m \mid a_S = s),

a sum over all answers s that may come. Only the first `MOST_OUTCOMES` - 1 of them, by their probability, are told
apart (fewer from 33 classes on); the others are taken together. Each step takes the pair with the largest gain per
cost. As the gain of a pair never rises while the list grows, this greedy list has at least 1 - 1/e (63 %) of the
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
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ..answers.columns import Column, Values, join_values, lookup, to_column, to_values
from ..answers.random_choices import Hashes, draw_numbers, hash_ids
from ..answers.tables import Table, open_frame
from ..arguments import is_number, is_whole
from ..errors import DataWarning, InputError, ParameterError, Sentence, listing, parameter_error, plural, warn
from ..inference.sources import number_groups
from ..kernels import Codes, Floats, read_only
from ..memory import NUMBER, require_memory
from ..results.result import Result
from ..results.worker_report import find_accused
from .next_items import hash_keys

# The most outcomes of earlier answers to tell apart, fewer if there are many labels and classes: each takes a product
# with the matrix of every worker on a shortlist.
MOST_OUTCOMES, MOST_PRODUCTS = 256, 1 << 18
N_SHORT = 32
# How finely probabilities are rounded to cells; the finest whose table of tangents is not too large.
GRAINS = (8, 4, 2, 1)
MOST_SLOPES = 1 << 24
# So many items share a cell on average, at least.
LEAST_SHARING = 16
# How many questions are listed if nothing is said.
N_QUESTIONS = 10
# For a list of n questions, so many times n items are looked at, but n are enough if these are many.
N_TIMES, ENOUGH = 4, 20_000
# A worker has at most so many times the questions that an even share would be, if nothing is said.
SPREAD = 4
# Costs that differ by rounding only are the same.
ROUNDING = 1e-9


class Crew(NamedTuple):
    """The workers who may be asked.

    Attributes
    ----------
    ids : ndarray
        Their ids.
    confusion : array (M, K, A)
        Their matrices.
    cost : array (M,)
        What an answer costs.
    limits : int64 array (M,) or None
        How many questions each may be asked; None if that was not said.
    group : int64 array (M,)
        A number for each, the same for near-copies.
    known : int64 array (M,)
        Their indices in the model, -1 for those who are new.
    """

    ids: Values
    confusion: Floats
    cost: Floats
    limits: NDArray[np.int64] | None
    group: NDArray[np.int64]
    known: NDArray[np.int64]


class Neighbours(NamedTuple):
    """The neighbours of item i are node[offsets[i]:offsets[i + 1]]; share is what i counts among those of each."""

    offsets: NDArray[np.int64]
    node: Codes
    share: Floats

    def count_questions(self, items: NDArray[np.int64]) -> Floats:
        """Return how many questions about neighbours each item has, by their shares; `items` are those of questions."""
        n_items = len(self.offsets) - 1
        asked = np.repeat(np.bincount(items, minlength=n_items), np.diff(self.offsets))
        return np.bincount(self.node, asked * self.share, minlength=n_items).astype(np.float64)


class Pairs(NamedTuple):
    """Pairs of an item and a worker of the crew, by their indices."""

    item: NDArray[np.int64]
    worker: NDArray[np.int64]

    def without(self, others: Pairs, n_workers: int) -> Pairs:
        """Return the pairs that are not among others, each once."""
        if not len(self.item):
            return self
        own, other = (pairs.item * n_workers + pairs.worker for pairs in (self, others))
        return Pairs(*np.divmod(np.setdiff1d(own, other), n_workers))


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))


class Questions(NamedTuple):
    """Chosen questions, in order: indices of items and workers, and the gain of each."""

    items: NDArray[np.int64]
    workers: NDArray[np.int64]
    gain: Floats


class Wish(NamedTuple):
    """What questions are asked for.

    Attributes
    ----------
    crew : Crew
        Who may be asked, with those who were asked before.
    order, rank : int array (M,)
        The workers of the crew in the order in which ties are broken, and the place of each.
    matrices : tuple of arrays
        In this order: their matrices, the entropies of the rows of these, and what answers cost.
    n : int
        The most questions to list.
    budget : float
        The most that they may cost together.
    asked, barred : Table or None
        Questions that were asked before, and such as cannot be asked.
    """

    crew: Crew
    order: NDArray[np.int64]
    rank: Codes
    matrices: tuple[Floats, Floats, Floats]
    n: int
    budget: float
    asked: Table | None
    barred: Table | None


class Survey(NamedTuple):
    """What a first question about each item of a part is worth."""

    items: NDArray[np.int64]  # those whose label is not known, in the order in which ties are broken
    draws: Hashes  # a random number for each item of the part, which this order follows
    posterior: Floats  # of all items of the part
    pending: Pairs
    closed: tuple[NDArray[np.int64], NDArray[np.int64], Codes]  # who must not be asked, as the kernels take it
    cells: NDArray[np.int64]
    slopes: Floats
    best: Floats  # the largest gain per cost of a first question about each of `items`

    def find_top(self, n: int) -> NDArray[np.int64]:
        """Return which of the items are looked at for so many questions."""
        top = np.sort(np.argsort(-self.best, kind="stable")[: count_looked_at(n)])
        return top[self.best[top] > 0]


class Round(NamedTuple):
    """A round of questions: what is asked for, who may be asked, and the items to ask about, in memory."""

    wish: Wish
    crew: Crew
    part: Result


def open_round(
    found: Result,
    n: object = None,
    workers: object = None,
    budget: object = None,
    cost: object = None,
    per_worker: object = None,
    asked: object = None,
    barred: object = None,
) -> Round:
    """Check what is asked for; pairs that are barred cannot be asked, and no answer will come."""
    most, paid = check_limits(n, budget)
    crew = gather_crew(found, workers, cost, per_worker)
    before, never = (open_pairs(found, each, name) for each, name in ((asked, "asked"), (barred, "barred")))
    everybody = crew if before is None else add_absent(found, crew, before)
    order = np.argsort(draw_numbers(found.seed, hash_ids(everybody.ids)), kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    confusion = everybody.confusion[order]
    matrices = confusion, entr(confusion).sum(axis=2), everybody.cost[order]
    wish = Wish(everybody, order, rank, matrices, limit_list(found, everybody, most, paid), paid, before, never)
    return Round(wish, crew, found)


def list_questions(asking: Round) -> dict[str, Column]:
    """Return the columns of `Model.next_questions`."""
    wish, crew, part = asking
    chosen = choose_questions(part, wish)
    columns = part.labels.take(chosen.items)
    columns["worker"] = to_column(crew.ids[chosen.workers])
    columns["gain"] = to_column(chosen.gain)
    columns["cost"] = to_column(crew.cost[chosen.workers])
    return columns


def check_limits(n: object, budget: object) -> tuple[int | None, float]:
    """Return the most questions to list, None for as many as the budget pays for, and the budget."""
    if n is not None and not (is_whole(n) and n >= 0):
        raise parameter_error("n", "next_questions", "a whole number >= 0", n)
    if budget is not None and not (is_number(budget) and budget >= 0):
        raise parameter_error("budget", "next_questions", "a number >= 0", budget)
    most = int(n) if n is not None else None if budget is not None else N_QUESTIONS
    return most, np.inf if budget is None else float(budget)


def gather_crew(fused: Result, workers: object, cost: object, per_worker: object) -> Crew:
    """Return the workers who may be asked, with what is known of them; by default all who do not answer by chance."""
    ids = find_askable(fused) if workers is None else _read_ids(workers)
    known = lookup(fused.names.workers, to_column(ids))
    if (known < 0).any():
        warn(
            DataWarning(
                f"{int((known < 0).sum()):,} of {len(ids):,} workers were not there at the fit: "
                f"{listing(ids[known < 0].tolist())}. They are taken to answer as the crowd does on the whole."
            )
        )
    if fused.source_kind == "functions" or fused.answers.silence_counts:
        ids, known = ids[known < 0], known[known < 0]
        if not len(ids):
            raise nobody_to_ask(fused)
    confusion = fused.learned.confusion[known]
    if (known < 0).any():
        confusion[known < 0] = fused.learned.crowd[0].T
    costs = read_costs(cost, ids)
    limits = None
    if per_worker is not None:
        are_counts = _by_worker("per_worker", per_worker, ids, "next_questions", "a whole number >= 0", _is_count)
        limits = np.minimum(are_counts, np.iinfo(np.int32).max).astype(np.int64)
    return Crew(ids, np.ascontiguousarray(confusion), costs, limits, _number_alike(fused, known), known)


def find_askable(fused: Result) -> Values:
    """Return the workers who do not answer as if by chance."""
    return np.asarray(fused.names.workers[~find_accused(fused)])


def nobody_to_ask(fused: Result) -> ParameterError:
    """Return the error where all who could be asked have said what they can."""
    problem = "Silence counts as an answer here, so every worker has answered every item."
    remedy = "Or fit to answers that were read without abstain='answer'."
    if fused.source_kind == "functions":
        problem = "Labelling functions answer all that they can, so there is nothing to ask them."
        remedy = "Or if people gave the answers, fuse them with source_kind='people'."
    return ParameterError(problem, Sentence("Name new workers with {workers}."), remedy, keyword="workers")


def _number_alike(fused: Result, known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each worker, the same for near-copies."""
    groups = number_groups(fused.copies, len(fused.names.workers) + 1)[known]  # -1 is a worker who was not there
    alone = len(fused.copies) + 1 + np.arange(len(known))
    return np.unique(np.where(groups > 0, groups, alone), return_inverse=True)[1]


def add_absent(fused: Result, crew: Crew, asked: Table) -> Crew:
    """Return the crew with workers of the fit who were asked before, but cannot be asked now: they cost too much."""
    known = np.unique(lookup(fused.names.workers, asked.read("worker")))
    known = np.setdiff1d(known[known >= 0], crew.known)
    if not len(known) or fused.answers.silence_counts:
        return crew
    everybody = np.append(crew.known, known)
    return Crew(
        join_values(crew.ids, fused.names.workers[known]),
        np.concatenate([crew.confusion, fused.learned.confusion[known]]),
        np.append(crew.cost, np.full(len(known), np.inf)),
        None if crew.limits is None else np.append(crew.limits, np.zeros(len(known), np.int64)),
        _number_alike(fused, everybody),
        everybody,
    )


def _is_count(value: object) -> TypeGuard[float]:
    return is_whole(value) and bool(value >= 0)


def _is_price(value: object) -> TypeGuard[float]:
    return is_number(value) and bool(0 < value < np.inf)


def read_costs(cost: object, ids: Values, owner: str = "next_questions") -> Floats:
    """Return what an answer of each worker costs; `cost` is the parameter of `owner`."""
    return _by_worker("cost", 1.0 if cost is None else cost, ids, owner, "a number > 0", _is_price)


def _read_ids(workers: object) -> Values:
    """Return the ids of workers, each once."""
    if isinstance(workers, (str, bytes, Mapping)) or not hasattr(workers, "__iter__"):
        raise parameter_error("workers", "next_questions", "a list of workers", workers)
    ids = to_values(to_column(workers if hasattr(workers, "__len__") else list(workers)))
    if len(set(ids.tolist())) < len(ids):
        raise parameter_error("workers", "next_questions", "a list of different workers", workers)
    return ids


def _by_worker(
    name: str, given: object, ids: Values, owner: str, expected: str, is_good: Callable[[object], TypeGuard[float]]
) -> Floats:
    """Return a number for each worker, from one for all or a dict."""
    expected = f"{expected}, or a dict with one for each worker"
    if not isinstance(given, Mapping):
        if not is_good(given):
            raise parameter_error(name, owner, expected, given)
        return np.full(len(ids), float(given))
    missing = [worker for worker in ids.tolist() if worker not in given]
    if missing:
        raise ParameterError(
            f"The {name!r} parameter of {owner} has no entry for {listing(missing)}.",
            "Add one for each worker who may be asked.",
            keyword=name,
        )
    for worker in ids.tolist():
        if not is_good(given[worker]):
            raise parameter_error(name, owner, expected, given[worker])
    return np.array([float(given[worker]) for worker in ids.tolist()])


def limit_list(found: Result, crew: Crew, most: int | None, budget: float) -> int:
    """Return how many questions there can be at most."""
    n_known = 0 if found.given.gold is None else int((found.given.gold.codes >= 0).sum())
    n_pairs = (found.labels.n_items - n_known) * int(np.isfinite(crew.cost).sum())
    if budget < np.inf and n_pairs:
        n_pairs = min(n_pairs, int(budget / crew.cost.min() + ROUNDING))
    n = n_pairs if most is None else min(most, n_pairs)
    problem = f"A list of {plural(n, 'question')} is too long"
    require_memory(5 * NUMBER * n, problem, Sentence("Lower {n} or {budget}."), keyword="n")
    return n


def count_looked_at(n: int) -> int:
    """Return how many items are looked at for so many questions."""
    return max(n, min(N_TIMES * n, ENOUGH))


def look_at(part: Result, wish: Wish) -> Survey | None:
    """Find what a first question about each item of a part is worth; None if all of their labels are known."""
    from ..kernels.questions import find_best

    posterior = read_only(np.ascontiguousarray(part.labels.posterior))
    draws = draw_numbers(part.seed, hash_keys(part.labels.keys))
    items = np.flatnonzero(part.given.gold.codes < 0) if part.given.gold is not None else np.arange(len(posterior))
    if not len(items):
        return None
    items = items[np.argsort(draws[items], kind="stable")]
    n_workers = len(wish.order)
    answered = find_answered(part, wish.crew)
    pending = find_pairs(part, wish.crew, wish.asked).without(answered, n_workers)
    offsets, taken = lay_out(len(posterior), answered, pending, find_pairs(part, wish.crew, wish.barred))
    closed = (wish.crew.group[wish.order], offsets, wish.rank[taken])
    cells, middles = make_cells(posterior[items], n_workers)
    slopes = find_slopes(middles, *wish.matrices)
    best, found = np.zeros(len(items)), np.zeros(len(items))
    by_cell = np.argsort(cells, kind="stable")  # so that the table of a cell stays in the cache
    find_best(items[by_cell], cells[by_cell], posterior, slopes, *wish.matrices, *closed, found)
    best[by_cell] = found
    return Survey(items, draws, posterior, pending, closed, cells, slopes, best)


def choose_questions(part: Result, wish: Wish) -> Questions:
    """Return the questions to ask about the items of a part; those asked before are taken into account."""
    from ..kernels.questions import choose

    survey = look_at(part, wish) if wish.n else None
    if survey is None:
        return Questions(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    n, n_workers, posterior, pending = wish.n, len(wish.order), survey.posterior, survey.pending
    # Items that need no more questions make room for others.
    top = survey.find_top(n + len(np.unique(pending.item)))
    items = survey.items[top]
    place = np.full(len(posterior), -1, np.int32)
    place[items] = np.arange(len(top))
    near = find_neighbours(part)
    links = (read_only(near.offsets), read_only(near.node), read_only(near.share))  # those of a graph are
    worth = (survey.cells[top], survey.best[top], posterior, survey.slopes)
    here = (items, *worth, *wish.matrices, *survey.closed, *links, place)
    n_entries = wish.matrices[0][0].size
    bounds = (min(N_SHORT, n_workers), int(np.clip(MOST_PRODUCTS // n_entries, 2, MOST_OUTCOMES)))
    waiting = np.stack([place[pending.item], wish.rank[pending.worker]], axis=1).astype(np.int64)
    has = np.bincount(waiting[:, 1], minlength=n_workers)
    crowding = 1 + near.count_questions(pending.item)[items]
    waiting = waiting[waiting[:, 0] >= 0]
    n_pending = len(waiting)
    chosen, gains = np.concatenate([waiting, np.zeros((n, 2), np.int64)]), np.zeros(n_pending + n)
    can_answer = np.isfinite(wish.matrices[2])
    limit, limits = -(-SPREAD * (n + len(pending.item)) // int(can_answer.sum())), wish.crew.limits
    while True:
        left = np.maximum((limit if limits is None else limits[wish.order]) - has, 0)
        n_chosen = choose(*here, crowding.copy(), *bounds, left, wish.budget + ROUNDING, n_pending, chosen, gains)
        if n_chosen == n_pending + n or limits is not None or left[can_answer].all():
            break
        limit *= 2
    place_of, who = chosen[n_pending:n_chosen].T
    return Questions(items[place_of], wish.order[who], gains[n_pending:n_chosen])


def find_answered(fused: Result, crew: Crew) -> Pairs:
    """Return the pairs to which there is an answer by a worker of the crew."""
    item, worker = fused.answers.votes()
    in_crew = np.full(len(fused.names.workers), -1)
    # A near-copy who is not in the crew stands for one who is.
    groups = number_groups(fused.copies, len(fused.names.workers))
    for c, m in enumerate(crew.known):
        if m >= 0 and groups[m] > 0:
            in_crew[groups == groups[m]] = c
    in_crew[crew.known[crew.known >= 0]] = np.flatnonzero(crew.known >= 0)
    worker = in_crew[worker]
    there = worker >= 0
    return Pairs(item[there], worker[there])


def lay_out(n_items: int, *parts: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the workers of all pairs in the order of items, and the offsets of items."""
    item, worker = (np.concatenate(each) for each in zip(*parts, strict=True))
    counts = np.bincount(item, minlength=n_items)
    return np.concatenate([[0], np.cumsum(counts)]), worker[np.argsort(item, kind="stable")]


def open_pairs(found: Result, source: object, name: str) -> Table | None:
    """Return a table of questions, if one was given, after a look at its columns."""
    if source is None:
        return None
    table = open_frame(source, name)
    names = [*name_keys(found), "worker"]
    missing = [each for each in names if each not in table.names]
    if missing:
        raise InputError(f"The table {name} must have the columns {listing(names)}; {listing(missing)} is missing.")
    return table


def name_keys(found: Result) -> list[str]:
    """Return the names of the columns that identify an item."""
    return ["item"] if found.answers.sequences is None else ["sequence", "position"]


def find_pairs(part: Result, crew: Crew, table: Table | None) -> Pairs:
    """Return the questions in a table whose item and worker are known."""
    if table is None:
        return NO_PAIRS
    item = part.answers.find_items([table.read(name) for name in name_keys(part)])
    worker = lookup(crew.ids, table.read("worker"))
    there = (item >= 0) & (worker >= 0)
    return Pairs(item[there], worker[there])


def make_cells(posterior: Floats, n_workers: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the cell of each item, and the mean probabilities in each cell."""
    n_items, n_classes = posterior.shape
    most = max(1, min(n_items // LEAST_SHARING, MOST_SLOPES // (n_workers * n_classes)))
    steps = draw_numbers(0, hash_ids(np.arange(n_classes)))
    cells = np.zeros(n_items, np.int64)
    for grain in GRAINS:
        codes = np.zeros(n_items, np.uint64)
        for k in range(n_classes):
            codes += np.rint(posterior[:, k] * grain).astype(np.uint64) * steps[k]
        distinct, found = np.unique(codes, return_inverse=True)
        if len(distinct) <= most:
            cells = found
            break
    n_cells = int(cells.max()) + 1
    sums = [np.bincount(cells, posterior[:, k], minlength=n_cells) for k in range(n_classes)]
    middles = np.stack(sums, axis=1)
    return cells, middles / middles.sum(axis=1, keepdims=True)


def find_slopes(middles: Floats, confusion: Floats, row_entropy: Floats, cost: Floats) -> Floats:
    """Return D(p_mk || r) per cost for each cell, class and worker, where r are the answers at the cell's middle."""
    slopes = np.zeros((len(middles), row_entropy.shape[1], len(confusion)))
    for c, middle in enumerate(middles):
        answers = np.maximum(np.einsum("k,mka->ma", middle, confusion), 1e-300)
        slopes[c] = (-row_entropy - np.einsum("mka,ma->mk", confusion, np.log(answers))).T / cost
    return slopes


def find_neighbours(fused: Result) -> Neighbours:
    """Return the neighbours of each item; none for models without, or if these have no say."""
    n_items = len(fused.labels.posterior)
    nobody = Neighbours(np.zeros(n_items + 1, np.int64), np.empty(0, np.int32), np.empty(0))
    if not fused.coupling:
        return nobody
    if fused.given.graph is not None:
        graph = fused.given.graph
        # A graph has positive weights only, so that the total of a node with neighbours is not 0.
        total = np.bincount(graph.neighbours, graph.weights, minlength=n_items)
        return Neighbours(graph.offsets, graph.neighbours, graph.weights / total[graph.neighbours])
    sequences = fused.answers.sequences
    if sequences is None:
        return nobody
    owner = sequences.of_items()
    left = np.flatnonzero(owner[1:] == owner[:-1])
    ends = np.sort(np.concatenate([left * 2 + 1, (left + 1) * 2]))  # of item i: 2 i to its left, 2 i + 1 to its right
    item, node = ends // 2, ends // 2 + np.where(ends % 2, 1, -1)
    degree = np.bincount(item, minlength=n_items)
    return Neighbours(np.concatenate([[0], np.cumsum(degree)]), node.astype(np.int32), 1 / degree[node])
