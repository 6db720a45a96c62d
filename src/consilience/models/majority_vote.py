"""Majority vote: every worker counts the same."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import cut_blocks
from ..data.gold import Gold, match_gold
from ..data.graph import Graph
from ..data.hashing import draw_numbers, hash_ids, hash_items
from ..data.items import Sequences
from ..data.responses import Responses
from ..data.vocabulary import Column, Values, lookup, to_column
from ..engines import open_engine
from ..engines.base import Engine
from ..fitting.em import expect_from_votes, maximise
from ..formats.reading import open_paths
from ..kernels.types import Floats
from ..structures.base import Summary
from ..structures.independent import Independent, IndependentParameters
from ..workers.confusion import ConfusionWorkers
from ..workers.rows import vote
from .cells import Cells
from .checks import check_choice, check_number
from .intervals import judge_votes
from .predicting import VOTE_SMOOTHING, PredictingModel, voters
from .sizes import START_TABLES, check_matrices
from .worker_report import describe_voters

# What is learned of workers, by attribute.
_MATRICES = ("confusion_", "_counts", "_log_weights", "_crowd")


class MajorityVote(PredictingModel):
    """The label that most workers gave.

    The posterior of a class is its share of the item's votes (of their weights, where there are weights). Answers that
    are not among the classes do not count; an item without votes gets the overall shares, `prior_`.

    Parameters
    ----------
    ties : {"random", "first"}
        Which of several classes with equal votes is the label: one of them at random, or the first in the order of the
        classes. What is random depends on `seed` and on the names of item and classes, not on the order of rows.
    seed : int
        Seed of the tie rule.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_
        Results. `confusion_` compares each worker with the vote shares, and is worked out when it is first used;
        `score` is the likelihood under these matrices.
    copies_ : list
        Groups of workers who seem to copy each other. They are looked for when this or `worker_report` is first used.
        `save` does not look for them: a vote that is saved before has none when it is loaded.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {"item": [1, 1, 1, 2], "worker": ["a", "b", "c", "a"], "label": ["x", "x", "y", "y"]}
    >>> cs.MajorityVote().fit(answers).labels_
    array(['x', 'y'], dtype=object)
    """

    _structure_type = IndependentParameters
    _needs_same_silence = False
    _finds_copies_later = True

    _why_no_batches = ": each item has its own votes, and nothing is learned from others"

    def __init__(self, *, ties: str = "random", seed: int = 0) -> None:
        self.ties = ties
        self.seed = seed

    def _check_parameters(self) -> None:
        check_choice(self, "ties", ("random", "first"))
        check_number(self, "seed", 0, whole=True)

    def _learn(self, r: Responses, graph: Graph | None, gold: Gold | None, engine: Engine) -> None:  # noqa: ARG002
        # What may be interrupted comes first.
        unvoted = r.vote_shares()
        parts = collect_votes(engine, r, gold, unvoted)
        shares = np.concatenate(parts)
        label_codes = break_ties(shares, self.ties, self.seed, r.keys, r.classes)
        self._remember(r)
        self.posterior_, self._label_codes = shares, label_codes
        self.classes_ = r.classes
        # The prior of the model is that of the votes: an item without votes has the same probabilities in both.
        structure = Independent(r.n_classes, None, 0.0, "em")
        mass = reduce(add, (part.sum(axis=0) for part in parts))
        self.prior_ = structure.update(Summary(0.0, mass)).mean if r.silence_counts else unvoted
        self._structure = structure.given(self.prior_)
        self._workers_fitted = ConfusionWorkers.name
        self._set_further({})
        self.trace_ = np.empty(0)
        self.n_iter_ = 0
        self.converged_ = True
        self._prior_interval, self._expected_interval = judge_votes(shares, label_codes, self.prior_, r.sequences)
        for name in (*_MATRICES, "_copies"):
            self.__dict__.pop(name, None)  # of the answers of an earlier fit

    def __getattr__(self, name: str) -> Any:
        """Work out the matrices when one is first asked for: the vote itself needs none, and they may be large."""
        if name not in (*_MATRICES, "_copies"):
            return super().__getattr__(name)  # which says what is missing
        self._check_fitted()
        with open_engine(None) as engine:
            if name == "_copies":
                self._copies = self._find_copies(self.responses_, self._gold, engine)
            else:
                self._work_out_matrices(engine)
        return self.__dict__[name]

    def _work_out_matrices(self, engine: Engine) -> None:
        """Count the answers, and keep the matrices that they make."""
        r = self._weighed_answers()
        check_matrices(type(self).__name__, voters(r), r.n_items, START_TABLES)
        problem = self._pose_votes(r, None, self._gold, engine)
        statistics = expect_from_votes(problem)
        self._keep_matrices(problem, maximise(problem, statistics), statistics)

    def _weighed_answers(self) -> Responses:
        """Return the answers as the vote counted them."""
        return self._weigh_copies(self.responses_, np.arange(len(self.workers_)))

    def _answer_counts(self) -> Cells:
        has_matrices = "_counts" in self.__dict__
        return (
            Cells.of_table(self._counts) if has_matrices else Cells.of_answers(self._weighed_answers(), self.posterior_)
        )

    def _scalar_values(self) -> dict[str, Any]:
        known = {"_copies": []} | vars(self)
        return {name: known[name] for name in self._scalars}

    def _report_columns(self) -> dict[str, Column]:
        return describe_voters(
            self._answer_counts(), VOTE_SMOOTHING, self.prior_, self._n_answers, self.answer_labels_, self.classes_
        )

    def predict_proba(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Floats:
        """Return the vote shares of other items. Workers need not be known.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.
        """
        self._check_fitted()
        self._refuse_graph(graph)
        r = self._read(responses).with_classes(self.classes_)
        r = self._weigh_copies(r, lookup(self.workers_, to_column(r.workers)))
        known = match_gold(open_paths(gold), r, self.classes_)
        unvoted = r.vote_shares() if r.silence_counts else self.prior_
        with open_engine(engine) as opened:
            return np.concatenate(collect_votes(opened, r, known, unvoted))

    def _predict_codes(self, responses: Any, graph: Any, gold: Any, engine: Any) -> NDArray[np.int64]:
        r = self._read(responses)
        shares = self.predict_proba(r, graph, gold, engine)
        return break_ties(shares, self.ties, self.seed, r.keys, self.classes_)


def collect_votes(engine: Engine, r: Responses, gold: Gold | None, unvoted: Floats) -> list[Floats]:
    """Return the vote shares of the items in each block; those without votes get `unvoted`."""
    # It does not matter who votes: the row of an answer is its label.
    placed = engine.place(cut_blocks(r, r.label, r.n_labels, None if gold is None else gold.codes))
    return list(engine.map(vote, placed, r.class_of_label, unvoted))


def find_tied(shares: Floats) -> NDArray[np.bool_]:
    """Tell which classes of each item have the largest share.

    Shares that differ by rounding only are tied: 1/3 + 1/3 and 2/3 are the same vote.
    """
    return np.asarray(shares >= reduce(np.maximum, shares.T)[:, None] - 1e-12)


def break_ties(shares: Floats, rule: str, seed: int, keys: Values | Sequences, classes: Values) -> NDArray[np.int64]:
    """Return the class with the largest share of each item, ties broken by the rule."""
    tied = find_tied(shares)
    chosen = tied.argmax(axis=1)
    if rule == "random":
        several = np.flatnonzero(reduce(add, tied.T, np.zeros(len(tied), np.int32)) > 1)
        draws = draw_numbers(seed, hash_items(keys, several)[:, None], hash_ids(classes))
        chosen[several] = np.where(tied[several], draws, np.iinfo(np.uint64).max).argmin(axis=1)
    return np.asarray(chosen)
