"""Campaigns: answers are bought in rounds, and a policy says whom to ask what.

The crowd's answers are all there from the beginning, and are revealed when they are asked for. So a campaign can be
simulated, and it can be replayed with a real crowd in which most workers answered most items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import lookup, to_column
from ..answers.gold import match_gold
from ..answers.graph import Graph
from ..answers.previews import build_report
from ..answers.random_choices import draw_numbers, hash_ids, hash_items
from ..answers.tables import open_frame
from ..arguments import is_number
from ..errors import InputError, ParameterError, Sentence, parameter_error, quietly
from ..kernels import Floats
from ..memory import require_memory
from ..planning.next_questions import list_questions, open_round, read_costs
from .crowds import Simulation
from .drawing import check_whole

if TYPE_CHECKING:
    from ..models.fitted import FittedModel
    from ..results.result import Result

Policy = str | Callable[[Any, int], Any]
POLICIES = ("information", "random")
# Answers per item that a campaign ends with, if nothing is said; rounds for each of them.
PER_ITEM, ROUNDS_PER_ANSWER = 8, 4


def campaign(
    crowd: Simulation | Answers,
    policy: Policy = "information",
    *,
    truth: object = None,
    model: object = None,
    budget: float | None = None,
    cost: object = None,
    first: int = 2,
    batch: int | None = None,
    arrivals: int | None = None,
    seed: int = 0,
) -> Any:
    """Buy answers in rounds, and return the accuracy of the labels against the money that was spent.

    Each item is answered by a few random workers first. Then, in each round, the model is fitted to all answers so far,
    and the policy chooses the next questions. An answer is revealed, and paid for, when it is asked for.

    Parameters
    ----------
    crowd : Simulation or Answers
        What every worker would answer: a simulated crowd, in which by default everybody answers everything, or real
        answers. A question to which there is no answer is not asked.
    policy : {"information", "random"} or callable
        "information" asks the questions of `next_questions`. "random" asks random workers, about the items with the
        fewest answers. A function is called with the fitted model and the number of questions, and returns a table with
        the columns item (or sequence and position) and worker, such as ``lambda model, n: model.next_questions(n,
        per_worker=5)``.
    truth : dict, Series or table, optional
        The true labels, as for `gold` of `fit`; a simulated crowd has its own. Items without are not scored.
    model : model, optional
        What to fit; default: ``DawidSkene()``. It is not changed.
    budget : float, optional
        What may be spent in all. Default: what eight answers per item cost on average.
    cost : float or dict, optional
        What an answer costs, for all workers or by worker. Default: 1.
    first : int, default 2
        How many random workers answer each item when it arrives.
    batch : int, optional
        How many questions are asked before the model is fitted again. Default: a quarter of the number of items.
    arrivals : int, optional
        How many items arrive in each round, in random order; independent items only. Default: all are there from the
        beginning.
    seed : int, default 0
        Of what is random. The first answers are the same for all policies.

    Returns
    -------
    table
        A row for each fit: items that have arrived; answers; cost, what was spent; accuracy, the share of right labels
        among items that have arrived; expected_accuracy, what the model says it is.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.independent(200, n_workers=20, n_classes=5, accuracy=(0.3, 0.9), seed=1)
    >>> for policy in ("random", "information"):
    ...     curve = cs.simulate.campaign(crowd, policy, budget=1000)
    ...     print(policy, curve["answers"].to_pylist()[-1], f"{curve['accuracy'].to_pylist()[-1]:.2f}")
    random 1000 0.79
    information 1000 0.98
    """
    pool, known, graph = _open_crowd(crowd, truth)
    fresh = _open_model(model, graph)
    if not (callable(policy) or (isinstance(policy, str) and policy in POLICIES)):
        raise parameter_error("policy", "campaign", "'information', 'random' or a function", policy)
    check_whole(1, first=first)
    check_whole(0, seed=seed)
    n_items = pool.n_items
    batch = max(1, n_items // ROUNDS_PER_ANSWER) if batch is None else batch
    arrivals = n_items if arrivals is None else arrivals
    check_whole(1, batch=batch, arrivals=arrivals)
    if arrivals < n_items and (pool.sequences is not None or fresh.recipe().takes_graph):
        raise ParameterError(
            "Only independent items can arrive one after the other.", Sentence("Leave out {arrivals}.")
        )
    stock = Stock.of(pool, cost, seed)
    if budget is None:
        budget = PER_ITEM * n_items * float(stock.price.mean())
    elif not (is_number(budget) and budget > 0):
        raise parameter_error("budget", "campaign", "a number > 0", budget)
    rows = []
    order = np.argsort(draw_numbers(seed, hash_items(pool.keys)), kind="stable")
    n_arrived = 0
    while True:
        come = order[n_arrived : n_arrived + arrivals]
        n_arrived += len(come)
        arrived = np.sort(order[:n_arrived])
        stock.reveal(stock.first_answers(come, first), budget)
        with quietly():
            answers = pool.keep(stock.revealed[stock.pair])
            answers = answers if n_arrived == n_items else answers.about(arrived)
            fitted = fresh.fresh().fit(answers, **({"graph": graph} if fresh.recipe().takes_graph else {}))
        right = (fitted.result_.labels.codes == known[arrived])[known[arrived] >= 0]
        accuracy = float(right.mean()) if len(right) else float("nan")
        bought = int(stock.revealed.sum()), stock.spent
        if policy == "random":
            wanted = stock.random_questions(arrived, batch)
        elif policy == "information":
            wanted = stock.best_questions(fitted.result_, arrived, batch, budget)
        else:
            wanted = stock.find(policy(fitted, batch))  # type: ignore[operator]
        rows.append((n_arrived, *bought, accuracy, float(fitted.expected_accuracy_)))
        if not stock.reveal(wanted, budget) and n_arrived == n_items:
            break
    names = ("items", "answers", "cost", "accuracy", "expected_accuracy")
    columns = {name: to_column(np.array(column)) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return build_report(columns, pool.backend)


@dataclass
class Stock:
    """The answers that can be bought, as pairs of an item and a worker, and those that were.

    Attributes
    ----------
    pool : Answers
        All answers.
    pair : int64 array
        The pair that each answer belongs to; one that is spread over several labels has several answers.
    item, worker : int64 array
        Of each pair; pairs are in the order of items.
    price : float64 array
        What each pair costs.
    turn : int64 array
        When each pair is asked at random: the place among the pairs of its item.
    draw : uint64 array
        A random number for each pair.
    revealed : boolean array
        Which pairs were asked for.
    spent : float
        What was paid.
    cost : number or dict or None
        As it was given.
    """

    pool: Answers
    pair: NDArray[np.int64]
    item: NDArray[np.int64]
    worker: NDArray[np.int64]
    price: Floats
    turn: NDArray[np.int64]
    draw: NDArray[np.uint64]
    revealed: NDArray[np.bool_]
    spent: float
    cost: object

    @classmethod
    def of(cls, pool: Answers, cost: object, seed: int) -> Stock:
        """Return a stock of which nothing was bought yet."""
        codes, pair = np.unique(pool.item_of_answer() * pool.n_workers + pool.worker, return_inverse=True)
        item, worker = np.divmod(codes, pool.n_workers)
        prices = read_costs(cost, np.array(pool.workers.tolist(), object), "campaign")
        draw = draw_numbers(seed, hash_items(pool.keys)[item], hash_ids(pool.workers)[worker])
        order = np.lexsort((draw, item))
        counts = np.bincount(item, minlength=pool.n_items)
        turn = np.empty(len(item), np.int64)
        turn[order] = np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)
        return cls(pool, pair, item, worker, prices[worker], turn, draw, np.zeros(len(item), bool), 0.0, cost)

    def first_answers(self, items: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        """Return n random pairs of each of the items, in random order."""
        return self._in_turn(np.flatnonzero((self.turn < n) & np.isin(self.item, items)))

    def random_questions(self, items: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        """Return n random pairs that were not asked for, of the items with the fewest answers."""
        return self._in_turn(np.flatnonzero(~self.revealed & np.isin(self.item, items)))[:n]

    def _in_turn(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        return pairs[np.lexsort((self.draw[pairs], self.turn[pairs]))]

    def best_questions(self, found: Result, items: NDArray[np.int64], n: int, budget: float) -> NDArray[np.int64]:
        """Return the pairs that `next_questions` lists, of those to which there is an answer."""
        missing = None
        if len(self.item) < self.pool.n_items * self.pool.n_workers:
            require_memory(self.pool.n_items * self.pool.n_workers, "There are too many pairs without an answer")
            there = np.zeros((self.pool.n_items, self.pool.n_workers), bool)
            there[self.item, self.worker] = True
            item, worker = np.nonzero(~there[items])
            keys = {name: column.take(items[item]) for name, column in self.pool.key_columns().items()}
            missing = keys | {"worker": self.pool.workers[worker]}
        asking = open_round(found, n, None, max(budget - self.spent, 0.0), self.cost, barred=missing)
        return self.find(list_questions(asking))

    def find(self, questions: object) -> NDArray[np.int64]:
        """Return the pairs that a table of questions asks for; those without an answer are left out."""
        table, keys = open_frame(questions, "the table of the policy"), list(self.pool.key_columns())
        if any(name not in table.names for name in [*keys, "worker"]):
            raise InputError(f"The policy must return a table with the columns {', '.join(keys)} and worker.")
        item = self.pool.find_items([table.read(name) for name in keys])
        worker = lookup(self.pool.workers, table.read("worker"))
        wanted = np.where((item < 0) | (worker < 0), -1, item * self.pool.n_workers + worker)
        codes = self.item * self.pool.n_workers + self.worker
        at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
        return np.asarray(at[codes[at] == wanted])

    def reveal(self, pairs: NDArray[np.int64], budget: float) -> int:
        """Buy pairs in this order, each once, as long as the budget lasts; return how many."""
        pairs = pairs[np.sort(np.unique(pairs, return_index=True)[1])]
        pairs = pairs[~self.revealed[pairs]]
        costs = np.cumsum(self.price[pairs])
        bought = pairs[self.spent + costs <= budget * (1 + 1e-9)]
        self.revealed[bought] = True
        self.spent = float(self.price[self.revealed].sum())
        return len(bought)


def _open_crowd(crowd: object, truth: object) -> tuple[Answers, NDArray[np.int64], Graph | None]:
    """Return all answers, the true class of each item (-1 if it is not known), and the graph."""
    if isinstance(crowd, Simulation):
        if truth is not None:
            raise ParameterError(
                "A simulated crowd has its own truth.", Sentence("Leave out {truth}."), keyword="truth"
            )
        return crowd.responses, lookup(crowd.responses.classes, to_column(crowd.truth)), crowd.graph
    if not isinstance(crowd, Answers):
        raise parameter_error("crowd", "campaign", "a simulated crowd or Answers", crowd)
    known = None if truth is None else match_gold(truth, crowd, crowd.classes)
    if known is None:
        raise ParameterError(
            "Without true labels there is no accuracy.", Sentence("Give some with {truth}."), keyword="truth"
        )
    return crowd, known.codes.astype(np.int64), None


def _open_model(model: object, graph: Graph | None) -> FittedModel:
    """Return the model to fit."""
    from ..models.dawid_skene import DawidSkene
    from ..models.fitted import FittedModel

    if model is None:
        return DawidSkene()
    if not isinstance(model, FittedModel):
        raise parameter_error("model", "campaign", "a model, such as DawidSkene()", model)
    if model.recipe().takes_graph and graph is None:
        raise ParameterError(f"{type(model).__name__} needs a crowd with a graph.", keyword="model")
    return model
