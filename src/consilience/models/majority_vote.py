"""Majority vote: every worker counts the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..answers.blocks import cut_blocks
from ..answers.columns import Column, Values, to_column
from ..answers.gold import Gold, match_gold
from ..answers.graph import Graph
from ..answers.hashing import Hashes, draw_numbers, hash_ids, hash_items
from ..answers.items import Sequences
from ..answers.responses import Responses
from ..answers.vocabulary import lookup
from ..engines import open_engine
from ..engines.base import Engine
from ..formats.reading import open_paths
from ..inference.em import expect_from_votes, maximise
from ..inference.sizes import START_TABLES, check_matrices
from ..inference.structures.base import Summary
from ..inference.structures.independent import Independent, IndependentParameters
from ..inference.workers.confusion import ConfusionWorkers
from ..inference.workers.rows import vote
from ..kernels.types import Floats
from ..results.answer_worth import ITEMS_AT_ONCE
from ..results.cells import Cells
from ..results.intervals import VoteSums, judge_votes
from ..results.worker_report import describe_voters
from ..storage.answers import StoredResponses
from .parameters import check_choice, check_number
from .predicting import VOTE_SMOOTHING, PredictingModel, voters

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
    workers_, answer_labels_, copies_count_once_
        As for `DawidSkene`.
    trace_, n_iter_, converged_
        Empty, 0 and True: a vote takes no iterations.
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
        shares, mass = collect_votes(engine, r, gold, unvoted)
        label_codes = break_ties(shares, self.ties, self.seed, r.keys, r.classes)
        self._remember(r)
        self.posterior_, self._label_codes = shares, label_codes
        # The prior of the model is that of the votes: an item without votes has the same probabilities in both.
        structure = Independent(r.n_classes, None, 0.0, "em")
        prior = structure.update(Summary(0.0, mass)).mean if r.silence_counts else unvoted
        offsets = None if r.sequences is None else r.sequences.offsets
        self._keep_votes(r.classes, prior, VoteSums.of(shares, self._confidence(), prior, offsets))

    def _keep_votes(self, classes: Values, prior: Floats, sums: VoteSums) -> None:
        """Keep what all items say together."""
        self.classes_, self.prior_ = classes, prior
        self._structure = Independent(len(classes), None, 0.0, "em").given(prior)
        self._workers_fitted = ConfusionWorkers.name
        self._set_further({})
        self.trace_ = np.empty(0)
        self.n_iter_ = 0
        self.converged_ = True
        self._prior_interval, self._expected_interval = judge_votes(sums, prior)
        for name in (*_MATRICES, "_copies"):
            self.__dict__.pop(name, None)  # of the answers of an earlier fit

    def _fit_stored(
        self,
        s: StoredResponses,
        graph: Any,
        gold: Any,
        engine: Any,
        copies: list[list[int]] | None,
        count_copies_once: bool,
    ) -> Self:
        from ..results.stored_votes import vote_stored

        vote_stored(self, s, graph, gold, engine, copies, count_copies_once)
        return self

    def __getattr__(self, name: str) -> Any:
        """Work out the matrices when one is first asked for: the vote itself needs none, and they may be large."""
        if name not in (*_MATRICES, "_copies"):
            return super().__getattr__(name)  # which says what is missing
        self._check_fitted()
        with open_engine(None) as engine:
            if name == "_copies":
                self._copies = self._find_copies(*self._some_answers(), engine)
            else:
                self._work_out_matrices(engine)
        return self.__dict__[name]

    def _work_out_matrices(self, engine: Engine) -> None:
        """Count the answers, and keep the matrices that they make."""
        r = self._weighed_answers() if self._stored is None else self._stored.answers
        check_matrices(type(self).__name__, voters(r), r.n_items, START_TABLES)
        problem = self._pose_votes(r, None, self._gold, engine)
        if self._stored is not None:
            problem = replace(problem, unvoted=self.prior_, steps=None)
        statistics = expect_from_votes(problem)
        self._keep_matrices(problem, maximise(problem, statistics), statistics)

    def _some_answers(self) -> tuple[Responses, Gold | None]:
        """Return the answers in which copies are looked for, and known labels: all, or a sample of those on disk."""
        if self._stored is None:
            return self.responses_, self._gold
        sample = self._stored.sample
        assert sample is not None
        return sample.responses, sample.gold(self._stored.answers)

    def _weighed_answers(self) -> Responses:
        """Return the answers as the vote counted them."""
        return self._weigh_copies(self.responses_, np.arange(len(self.workers_)))

    def _answer_counts(self) -> Cells:
        has_matrices = "_counts" in self.__dict__ or self._stored is not None
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
            return collect_votes(opened, r, known, unvoted)[0]

    def _predict_codes(self, responses: Any, graph: Any, gold: Any, engine: Any) -> NDArray[np.int64]:
        r = self._read(responses)
        shares = self.predict_proba(r, graph, gold, engine)
        return break_ties(shares, self.ties, self.seed, r.keys, self.classes_)


def collect_votes(engine: Engine, r: Responses, gold: Gold | None, unvoted: Floats) -> tuple[Floats, Floats]:
    """Return the vote shares of all items, and their sums; items without votes get `unvoted`."""
    # It does not matter who votes: the row of an answer is its label.
    placed = engine.place(cut_blocks(r, r.label, r.n_labels, None if gold is None else gold.codes))
    shares, mass, first = np.empty((r.n_items, r.n_classes)), np.zeros(r.n_classes), 0
    for part in engine.map(vote, placed, r.class_of_label, unvoted):
        shares[first : first + len(part)] = part
        mass, first = mass + part.sum(axis=0), first + len(part)
    return shares, mass


def find_tied(shares: Floats) -> NDArray[np.bool_]:
    """Tell which classes of each item have the largest share.

    Shares that differ by rounding only are tied: 1/3 + 1/3 and 2/3 are the same vote.
    """
    return np.asarray(shares >= reduce(np.maximum, shares.T)[:, None] - 1e-12)


def break_ties(shares: Floats, rule: str, seed: int, keys: Values | Sequences, classes: Values) -> NDArray[np.int64]:
    """Return the class with the largest share of each item, ties broken by the rule."""
    return settle_ties(shares, rule, seed, partial(hash_items, keys), classes)


def settle_ties(
    shares: Floats, rule: str, seed: int, hash_rows: Callable[[NDArray[np.int64]], Hashes], classes: Values
) -> NDArray[np.int64]:
    """Return the same as `break_ties`, where a function gives the hashes of some items."""
    chosen, is_tied = np.empty(len(shares), np.int64), np.empty(len(shares), bool)
    for first in range(0, len(shares), ITEMS_AT_ONCE):
        run = slice(first, first + ITEMS_AT_ONCE)
        tied = find_tied(shares[run])
        chosen[run] = tied.argmax(axis=1)
        is_tied[run] = reduce(add, tied.T, np.zeros(len(tied), np.int32)) > 1
    if rule == "random":
        several = np.flatnonzero(is_tied)
        of_items, of_classes = hash_rows(several), hash_ids(classes)
        for first in range(0, len(several), ITEMS_AT_ONCE):
            run = slice(first, first + ITEMS_AT_ONCE)
            draws = draw_numbers(seed, of_items[run, None], of_classes)
            tied = find_tied(shares[several[run]])
            chosen[several[run]] = np.where(tied, draws, np.iinfo(np.uint64).max).argmin(axis=1)
    return chosen
