"""Majority vote: every worker counts the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import cut_blocks
from ..data.gold import match_gold
from ..data.graph import Graph
from ..data.responses import Responses
from ..data.vocabulary import lookup, to_column
from ..engines import open_engine
from ..engines.base import Engine, Placed
from ..fitting.em import Parameters, Problem, expect_from_votes, maximise
from ..formats.reading import open_path
from ..kernels.types import Floats
from ..structures.independent import IndependentParameters
from ..workers.base import WorkerModel
from ..workers.confusion import ConfusionWorkers
from ..workers.rows import vote
from .checks import check_choice, check_number
from .inputs import as_responses
from .predicting import GoldCodes, PredictingModel


class MajorityVote(PredictingModel):
    """The label that most workers gave.

    The posterior of a class is its share of the item's votes (of their weights, where there are weights). Answers that
    are not among the classes do not count; an item without votes gets the overall shares, `prior_`.

    Parameters
    ----------
    ties : {"random", "first"}
        Which of several classes with equal votes is the label: one of them at random (by `seed` and the item's place,
        so that the same input gives the same label), or the first in the order of the classes.
    seed : int
        Seed of the tie rule.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_
        Results. `confusion_` compares each worker with the vote shares; `score` is the likelihood under these matrices.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {"item": [1, 1, 1, 2], "worker": ["a", "b", "c", "a"], "label": ["x", "x", "y", "y"]}
    >>> cs.MajorityVote().fit(answers).labels_
    array(['x', 'y'], dtype=object)
    """

    _structure_type = IndependentParameters
    _needs_same_silence = False

    def __init__(self, *, ties: str = "random", seed: int = 0) -> None:
        self.ties = ties
        self.seed = seed

    def _check_parameters(self) -> None:
        check_choice(self, "ties", ("random", "first"))
        check_number(self, "seed", 0, whole=True)

    def _learn(self, r: Responses, graph: Graph | None, gold: GoldCodes, engine: Engine) -> None:
        problem = self._pose_votes(r, graph, gold, engine)
        statistics = expect_from_votes(problem)
        parameters = maximise(problem, statistics)
        # The prior of the model is that of the votes: an item without votes has the same probabilities in both.
        prior = parameters.structure.mean if r.silence_counts else problem.unvoted
        learned = Parameters(parameters.workers, problem.structure.given(prior), problem.prior)
        self._keep(r, problem, learned, statistics, *self._conclude(problem, learned))
        self.trace_ = np.empty(0)
        self.n_iter_ = 0
        self.converged_ = True

    def _conclude(self, problem: Problem, learned: Parameters) -> tuple[Floats, NDArray[np.int64]]:  # noqa: ARG002
        shares = collect_votes(problem.engine, problem.placed, problem.workers, problem.unvoted)
        return shares, break_ties(shares, self.ties, self.seed)

    def predict_proba(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Floats:
        """Return the vote shares of other items. Workers need not be known.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.
        """
        self._check_fitted()
        self._refuse_graph(graph)
        r = as_responses(responses)
        workers = ConfusionWorkers(r.n_workers, lookup(self.classes_, to_column(r.labels)), len(self.classes_))
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows, match_gold(open_path(gold), r, self.classes_))
        unvoted = r.with_classes(self.classes_).vote_shares() if r.silence_counts else self.prior_
        with open_engine(engine) as opened:
            return collect_votes(opened, opened.place(blocks), workers, unvoted)

    def _predict_codes(self, responses: Any, graph: Any, gold: Any, engine: Any) -> NDArray[np.int64]:
        return break_ties(self.predict_proba(responses, graph, gold, engine), self.ties, self.seed)


def collect_votes(engine: Engine, placed: Sequence[Placed], workers: WorkerModel, unvoted: Floats) -> Floats:
    """Return the vote shares of all items, in order; those without votes get `unvoted`."""
    return np.concatenate(list(engine.map(vote, placed, workers.votes(), unvoted)))


def break_ties(shares: Floats, rule: str, seed: int) -> NDArray[np.int64]:
    """Return the class with the largest share of each item, ties broken by the rule.

    Shares that differ by rounding only are tied: 1/3 + 1/3 and 2/3 are the same vote.
    """
    tied = shares >= shares.max(axis=1, keepdims=True) - 1e-12
    if rule == "first":
        return np.asarray(tied.argmax(axis=1))
    draws = np.random.default_rng(seed).random(len(shares))
    wanted = np.floor(draws * tied.sum(axis=1)).astype(np.int64)
    return np.asarray((np.cumsum(tied, axis=1) == (wanted + 1)[:, None]).argmax(axis=1))
