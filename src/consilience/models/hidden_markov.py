"""Hidden Markov fusion: the labels of a sequence form a Markov chain, believed as far as the data bear it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from ..data.responses import Responses
from ..data.tagging import SCHEMES, Transitions, complete_tags, free_transitions, given_transitions, tag_transitions
from ..errors import InputError, ParameterError, parameter_error
from ..fitting.em import (
    Fit,
    Parameters,
    Problem,
    Progress,
    Statistics,
    StructureParameters,
    decode_labels,
    expect_from_votes,
    infer_posterior,
    maximise,
    run_em,
)
from ..fitting.moments import MomentFit, strongest_answers
from ..fitting.transition_moments import match_transitions
from ..kernels.types import Floats
from ..structures.chain import Chain, ChainParameters
from .base import check_choice
from .held_out import HeldOutScore, count_units, hide_answers, score_hidden
from .inputs import as_responses
from .latent import LatentModel

STRENGTHS = (0.0, 0.1, 0.25, 0.5, 1.0)
# Strengths are compared on this share of the (worker, sequence) pairs, in as many folds as it takes to hide enough.
HIDDEN, ENOUGH_HIDDEN, MOST_FOLDS = 0.1, 2000, 10


class StrengthScore(NamedTuple):
    """How well hidden answers were predicted with one chain strength."""

    strength: float
    score: float
    error: float


class HiddenMarkov(LatentModel):
    r"""Fuse answers about sequences: tokens of a sentence, epochs of a night, frames of a film.

    The truth of a sequence is a Markov chain with start distribution s and transition matrix T[from, to]; workers
    answer each position by their confusion matrices. Everything is learned from the answers (Baum-Welch over all
    sequences, variational by default), for any number of sequences of any length, with answers and positions missing.

    On real data a worker's mistakes along a sequence are one decision, not many, and a chain at full strength then
    believes them too much. So the chain has a strength :math:`\lambda`, with factors
    :math:`(T[j, k] / \pi_k)^\lambda \pi_k`: 1 is the hidden Markov model of the paper, 0 treats positions as
    independent (up to forbidden transitions). By default it is chosen by hidden answers, without any truth.

    Parameters
    ----------
    coupling : "learn" or float
        The chain's strength in [0, 1]. "learn" hides all answers of some (worker, sequence) pairs, fits each of 0, 0.1,
        0.25, 0.5 and 1 to the rest, and takes the smallest whose prediction of what was hidden is within one (paired)
        standard error of the best. The fit with it starts from the votes, and once more by climbing there from weaker
        chains, as in that trial; the higher objective is kept (below strength 1 it is a guide, not a likelihood).
    transitions : {"free", "bio", "iob1", "bilou"} or boolean array
        Which label may follow which: anything; what the tag scheme allows, read from the label names ("bio" is IOB2;
        "bioes" is "bilou" with other letters); or ``array[from, to]``. What is forbidden stays impossible through fit,
        posterior and decoding. Workers may break the rules: their answers are just answers. With a scheme, O and what
        a span needs (B-X where only I-X was said) are added to the classes if nobody said them.
    decode : {"viterbi", "marginal"}
        Labels are the most probable sequence, or the most probable class of each position on its own. `posterior_`
        is there either way.
    workers, estimation, prior, smoothing, start, n_init, max_iter, tol, seed, callback
        As for `DawidSkene`. Start and transitions are smoothed as the prior is. ``start="moments"`` estimates T by
        moments too (Algorithm 2 of the paper).

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, trace_, n_iter_, converged_, starts_
        As for `DawidSkene`. The trace never falls at strength 1, nor at 0 without forbidden transitions; in between the
        chain is tempered, and the trace is a guide only.
    transition_ : ndarray of shape (n_classes, n_classes)
        ``transition_[from, to]``; rows sum to 1. The paper's T is the transpose.
    initial_ : ndarray of shape (n_classes,)
        Distribution of the first position.
    coupling_ : float
        The strength used.
    coupling_scores_ : list of StrengthScore
        What "learn" saw; empty if the strength was given.
    sequential_confusion_ : ndarray of shape (n_workers, n_labels + 1, n_classes, n_labels)
        With ``workers="sequential"``: by the worker's previous answer, the last for none.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.sequences(200, length=20, n_workers=6, n_classes=3, seed=3)
    >>> model = cs.HiddenMarkov().fit(crowd.responses)
    >>> model.coupling_
    1.0
    >>> cs.metrics.accuracy(crowd.truth, model.labels_) > cs.metrics.accuracy(
    ...     crowd.truth, cs.DawidSkene().fit(crowd.responses).labels_
    ... )
    True
    """

    _structure_type = ChainParameters
    _scalars = (*LatentModel._scalars, "coupling_", "coupling_scores_")

    coupling_: float
    coupling_scores_: list[StrengthScore]
    _strength: float  # of the chain that is being fitted
    _scores: list[StrengthScore]

    def __init__(
        self,
        *,
        coupling: str | float = "learn",
        transitions: Any = "free",
        decode: str = "viterbi",
        workers: str = "confusion",
        estimation: str = "variational",
        prior: Any = "learn",
        smoothing: Any = (0.1, 1.1),
        start: Any = "majority",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        seed: int = 0,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self.coupling = coupling
        self.transitions = transitions
        self.decode = decode
        self.workers = workers
        self.estimation = estimation
        self.prior = prior
        self.smoothing = smoothing
        self.start = start
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.callback = callback

    def fit(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Self:
        """Learn labels, transitions and confusion matrices from answers about sequences.

        Parameters
        ----------
        responses : Responses or table
            The answers, with sequence and position.
        graph : None
            Not used by this model.
        gold : dict, Series or table, optional
            Known labels, by (sequence, position).
        engine : optional
            Where to work; see `consilience.engines`.

        Returns
        -------
        self
        """
        self._check_settings()
        self._refuse_graph(graph)
        r = self._prepare(as_responses(responses))
        if self.coupling == "learn":
            self._strength, self._scores = self._learn_coupling(r, gold, engine)
        else:
            self._strength, self._scores = float(self.coupling), []
        return self._fit(r, gold, engine)

    @property
    def transition_(self) -> Floats:
        """Transition matrix [from, to]."""
        self._check_fitted()
        return self._chain().transition

    @property
    def initial_(self) -> Floats:
        """Distribution of the first position."""
        self._check_fitted()
        return self._chain().initial

    def explain_coupling(self) -> str:
        """Say in words which strength the chain has, and why."""
        self._check_fitted()
        if not self.coupling_scores_:
            why = "all answers are one worker's about one sequence" if self.coupling == "learn" else "it was given"
            return f"Chain strength {self.coupling_:g}: {why}."
        best = max(self.coupling_scores_, key=lambda entry: entry.score)
        tried = ", ".join(f"{entry.strength:g}: {entry.score:.4f}" for entry in self.coupling_scores_)
        meaning = {0.0: "neighbouring labels tell nothing that the answers do not", 1.0: "the Markov chain fits"}
        words = meaning.get(self.coupling_, "neighbouring labels help, but a worker's errors come in runs")
        return (
            f"Chain strength {self.coupling_:g}: {words}. Hidden answers were predicted best at {best.strength:g} "
            f"(mean log probability by strength: {tried}); the smallest strength within one standard error was taken."
        )

    def predict(self, responses: Any, graph: Any = None, gold: Any = None) -> Any:
        """Return the labels of other sequences by the same workers, decoded as `decode` says."""
        self._check_fitted()
        if self.decode == "marginal":
            return super().predict(responses, graph, gold)
        from ..engines.base import resolve_engine

        self._refuse_graph(graph)
        blocks, table = self._apply(self._sequences(as_responses(responses)), gold, self._learned())
        return self.classes_[decode_labels(resolve_engine(None), blocks, table, self._structure_parameters)]

    def _apply(self, r: Responses, gold: Any, known: Any) -> Any:
        return super()._apply(self._sequences(r), gold, known)

    def _chain(self) -> ChainParameters:
        return cast(ChainParameters, self._structure_parameters)

    def _keep(self, r: Responses, problem: Problem, learned: Parameters, statistics: Statistics) -> None:
        super()._keep(r, problem, learned, statistics)
        self.coupling_, self.coupling_scores_ = self._strength, self._scores

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.coupling_scores_ = [StrengthScore(*entry) for entry in self.coupling_scores_]

    def _describe(self) -> str:
        return f"{super()._describe()}; chain strength {self.coupling_:g}"

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice(self, "decode", ("viterbi", "marginal"))
        number = isinstance(self.coupling, (int, float)) and not isinstance(self.coupling, bool)
        if self.coupling != "learn" and not (number and 0 <= float(self.coupling) <= 1):
            raise parameter_error("coupling", "HiddenMarkov", "'learn' or a number between 0 and 1", self.coupling)
        if self.coupling == "learn" and self.max_iter == 0:
            raise ParameterError("With max_iter=0 nothing is fitted, and no strength can be learned: give coupling.")

    def _sequences(self, r: Responses) -> Responses:
        if r.sequences is None:
            raise InputError(
                "HiddenMarkov needs sequences: give sequence= and position= when the answers are read (lengths= for a "
                "matrix). For independent items use DawidSkene."
            )
        return r

    def _prepare(self, r: Responses) -> Responses:
        """Return the answers with the classes that the tag scheme needs."""
        r = self._sequences(r)
        if isinstance(self.transitions, str) and self.transitions in SCHEMES:
            return r.with_classes(complete_tags(r.classes, self.transitions))
        return r

    def _allowed(self, r: Responses) -> Transitions:
        if isinstance(self.transitions, str):
            if self.transitions == "free":
                return free_transitions(r.n_classes)
            return tag_transitions(r.classes, self.transitions)
        return given_transitions(self.transitions, r.classes)

    def _make_structure(self, r: Responses, fixed_prior: Floats | None, smoothing: float) -> Chain:
        return Chain(r.n_classes, fixed_prior, smoothing, self.estimation, self._strength, self._allowed(r))

    def _structure_from_moments(self, r: Responses, structure: Any, found: MomentFit) -> StructureParameters:
        """Return the chain that lagged moments call for: Algorithm 2 of the paper."""
        transition = match_transitions(strongest_answers(r), found.confusion, structure.allowed.steps)
        chain: StructureParameters = structure.given(found.prior, found.prior, transition)
        return chain

    def _conclude(self, problem: Problem, learned: Parameters) -> tuple[Floats, NDArray[np.int64]]:
        posterior, label_codes = super()._conclude(problem, learned)
        if self.decode == "viterbi":
            table = problem.workers.table(learned.workers, problem.weighted)
            label_codes = decode_labels(problem.engine, problem.placed, table, learned.structure)
        return posterior, label_codes

    def _learn_coupling(self, r: Responses, gold: Any, engine: Any) -> tuple[float, list[StrengthScore]]:
        """Return the strength that hidden answers call for, and how each did.

        Few pairs of worker and sequence are hidden in several folds, so that each is hidden once; of many, one part.
        """
        n_units = count_units(r)
        if n_units < 2:
            return 1.0, []
        n_folds = min(MOST_FOLDS, -(-ENOUGH_HIDDEN // max(1, round(HIDDEN * n_units))))
        scores: list[HeldOutScore] = []
        for hidden, unit in hide_answers(r, HIDDEN, self.seed, n_folds):
            fold = self._score_strengths(r, hidden, unit, gold, engine)
            scores = [old.plus(new) for old, new in zip(scores, fold, strict=True)] if scores else fold
        best = max(scores, key=lambda score: score.score)
        within = [gap <= error for gap, error in (best.minus(score) for score in scores)]
        chosen = next(s for s, near, score in zip(STRENGTHS, within, scores, strict=True) if near or score is best)
        return chosen, [StrengthScore(s, score.score, score.error) for s, score in zip(STRENGTHS, scores, strict=True)]

    def _score_strengths(
        self, r: Responses, hidden: NDArray[np.bool_], unit: NDArray[np.int64], gold: Any, engine: Any
    ) -> list[HeldOutScore]:
        """Return how well each strength predicts the hidden answers."""
        self._strength = STRENGTHS[0]
        problem = self._pose(r.keep(~hidden), gold, engine)
        scores = []
        for climbed, fit in self._climb(problem, expect_from_votes(problem), STRENGTHS):
            table = climbed.workers.table(fit.parameters.workers, climbed.weighted)
            posterior, _ = infer_posterior(climbed.engine, climbed.placed, table, fit.parameters.structure)
            counts = climbed.workers.plain_counts(fit.statistics.counts)
            scores.append(score_hidden(r, hidden, unit, posterior, counts))
        return scores

    def _climb(
        self, problem: Problem, statistics: Statistics, strengths: Sequence[float]
    ) -> Iterator[tuple[Problem, Fit]]:
        """Yield the fit at each strength, from weak to strong; the first starts from `statistics`, the others go on."""
        for strength in strengths:
            chain: Any = problem.structure
            problem = replace(problem, structure=replace(chain, strength=strength))
            fit = run_em(problem, maximise(problem, statistics), self.max_iter, self.tol, self.callback)
            yield problem, fit
            statistics = fit.statistics

    def _more_starts(self, problem: Problem, votes: Statistics) -> list[tuple[str, Parameters]]:
        """Return, for a learned strength, the start by which it was judged: climbing to it from weaker ones."""
        below = [strength for strength in STRENGTHS if strength < self._strength]
        if not self._scores or not below:
            return []
        *_, (_, fit) = self._climb(problem, votes, below)
        return [("climbing", maximise(problem, fit.statistics))]
