"""Campaigns: answers are bought in rounds, and a policy says whom to ask what.

The crowd's answers are all there from the beginning, and are revealed when they are asked for. So a campaign can be
simulated, and it can be replayed with a real crowd in which most workers answered most items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import consilience as cs
from consilience.answers.columns import Indices, lookup, to_column
from consilience.answers.gold import match_gold
from consilience.answers.previews import build_report
from consilience.answers.random_choices import draw_numbers, hash_ids, hash_items
from consilience.answers.tables import open_frame
from consilience.errors import quietly
from consilience.inference.estimator import renew
from consilience.planning.questions import list_questions
from consilience.simulate import Simulation

# Answers per item that a campaign ends with, if nothing is said; rounds for each of them.
PER_ITEM, ROUNDS_PER_ANSWER = 8, 4


def campaign(
    crowd: Simulation | cs.Answers,
    policy: str | Callable[[Any, int], Any] = "information",
    *,
    truth: object = None,
    model: Any = None,
    budget: int | None = None,
    first: int = 2,
    batch: int | None = None,
    seed: int = 0,
) -> Any:
    """Buy answers in rounds, and return the accuracy of the labels by the number of answers.

    Each item is answered by a few random workers first. Then, in each round, the model is fitted to all answers so far,
    and the policy chooses the next questions. An answer is revealed when it is asked for.

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
    budget : int, optional
        How many answers may be bought in all. Default: eight per item.
    first : int, default 2
        How many random workers answer each item in the beginning.
    batch : int, optional
        How many questions are asked before the model is fitted again. Default: a quarter of the number of items.
    seed : int, default 0
        Of what is random. The first answers are the same for all policies.

    Returns
    -------
    table
        A row for each fit: items; answers; accuracy, the share of right labels; expected_accuracy, what the model says
        it is.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.independent(200, n_workers=20, n_classes=5, accuracy=(0.3, 0.9), seed=1)
    >>> for policy in ("random", "information"):
    ...     curve = campaign(crowd, policy, budget=1000)
    ...     print(policy, curve["answers"].to_pylist()[-1], f"{curve['accuracy'].to_pylist()[-1]:.2f}")
    random 1000 0.79
    information 1000 0.98
    """
    if isinstance(crowd, Simulation) == (truth is not None):
        raise ValueError("Real answers need the truth, and a simulated crowd has its own.")
    fresh = cs.DawidSkene() if model is None else model
    links: dict[str, Any] = {}
    if isinstance(crowd, Simulation):
        pool, known = crowd.responses, lookup(crowd.responses.classes, to_column(crowd.truth))
        links = {"graph": crowd.graph} if fresh._takes_graph else {}
    else:
        pool, matched = crowd, match_gold(truth, crowd, crowd.classes)
        assert matched is not None
        known = matched.codes.astype(np.int64)
    n_items, n_workers, keys = pool.n_items, pool.n_workers, pool.key_columns()
    batch = max(1, n_items // ROUNDS_PER_ANSWER) if batch is None else batch
    budget = PER_ITEM * n_items if budget is None else budget

    # What can be bought: pairs of an item and a worker, in the order of items. One that is spread over several labels
    # has several answers. Asked at random, pairs come in `turn` among those of their item.
    codes, pair = np.unique(pool.item_of_answer() * n_workers + pool.worker, return_inverse=True)
    item, worker = np.divmod(codes, n_workers)
    draw = draw_numbers(seed, hash_items(pool.keys)[item], hash_ids(pool.workers)[worker])
    counts = np.bincount(item, minlength=n_items)
    turn = np.empty(len(item), np.int64)
    turn[np.lexsort((draw, item))] = np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)
    place, who = np.divmod(np.setdiff1d(np.arange(n_items * n_workers), codes), n_workers)
    # Questions to which there is no answer.
    absent = {name: column.take(place) for name, column in keys.items()} | {"worker": pool.workers[who]}

    rows: list[tuple[float, ...]] = []
    in_turn = np.lexsort((draw, turn))
    bought = np.zeros(len(item), bool)
    wanted: Indices = in_turn[turn[in_turn] < first]
    while True:
        # Each pair is bought once, in the order wanted, as long as the budget lasts.
        wanted = wanted[np.sort(np.unique(wanted, return_index=True)[1])]
        wanted = wanted[~bought[wanted]][: budget - int(bought.sum())]
        if rows and not len(wanted):
            break
        bought[wanted] = True
        with quietly():
            fitted = renew(fresh).fit(pool.keep(bought[pair]), **links)
        right = (fitted.result_.labels.codes == known)[known >= 0]
        accuracy = float(right.mean()) if len(right) else float("nan")
        rows.append((n_items, int(bought.sum()), accuracy, float(fitted.result_.expected_accuracy[0])))
        if policy == "random":
            wanted = in_turn[~bought[in_turn]][:batch]
            continue
        n = min(batch, budget - int(bought.sum()))
        questions = policy(fitted, batch) if callable(policy) else list_questions(fitted.result_, n, barred=absent)
        table = open_frame(questions, "the table of the policy")
        if any(name not in table.names for name in [*keys, "worker"]):
            raise ValueError(f"The policy must return a table with the columns {', '.join(keys)} and worker.")
        items = pool.find_items([table.read(name) for name in keys])
        workers = lookup(pool.workers, table.read("worker"))
        asked = np.where((items < 0) | (workers < 0), -1, items * n_workers + workers)
        at = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
        wanted = at[codes[at] == asked]
    names = ("items", "answers", "accuracy", "expected_accuracy")
    columns = {name: to_column(np.array(column)) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return build_report(columns, pool.backend)
