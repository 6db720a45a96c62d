"""Hidden Markov fusion: the labels of a sequence form a Markov chain, believed as far as the data bear it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.arrays import Crowd
from ..answers.columns import Column, to_column
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.hidden_answers import count_units, hide_answers
from ..answers.items import Sequences
from ..answers.responses import Responses
from ..answers.tagging import SCHEMES, complete_tags, find_transitions
from ..arguments import is_number
from ..engines.base import Engine
from ..errors import InputError, ParameterError, Python, Sentence, parameter_error
from ..evaluation.held_out import HeldOutScore, score_hidden
from ..inference.em import (
    Fit,
    Parameters,
    Problem,
    Progress,
    decode_labels,
    expect_from_votes,
    infer_posterior,
    maximise,
    run_em,
)
from ..inference.moment_effort import Effort, estimate_moments
from ..inference.moments import MomentFit, answers_to_match
from ..inference.sizes import check_transitions
from ..inference.statistics import Statistics
from ..inference.structures.base import AnyStructure, StructureParameters
from ..inference.structures.chain import Chain, ChainParameters, ChainSummary
from ..inference.transition_moments import match_transitions
from ..kernels.types import Floats
from ..results.span_results import Runs, are_tags, check_confidence, judge_fit
from ..results.streaming import StreamingModel
from ..specs import PROBABILITIES, ArraySpec, is_finite
from .coupling import CouplingScore, are_scores, explain_choice
from .latent import Known, Plan, Starts
from .parameters import check_choice, in_order_of_classes
from .predicting import AnyCrowd
from .starts import find_starts

COUPLINGS = (0.0, 0.1, 0.25, 0.5, 1.0)
# Couplings are compared on this share of the (worker, sequence) pairs, in as many folds as it takes to hide enough.
HIDDEN, ENOUGH_HIDDEN, MOST_FOLDS = 0.1, 2000, 10


class HiddenMarkov(StreamingModel):
    r"""Fuse answers about sequences: tokens of a sentence, epochs of a night, frames of a film.

    The truth of a sequence is a Markov chain with start distribution s and transition matrix T[from, to]; workers
    answer each position by their confusion matrices. Everything is learned from the answers (Baum-Welch over all
    sequences, variational by default), for any number of sequences of any length, with answers and positions missing.

    On real data a worker's mistakes along a sequence are one decision, not many, and a full Markov chain then believes
    them too much. So the chain has a coupling :math:`\lambda`, with factors
    :math:`(T[j, k] / \pi_k)^\lambda \pi_k`: 1 is the hidden Markov model of the paper, 0 treats positions as
    independent (up to forbidden transitions). By default it is chosen by hidden answers, without any truth.

    Parameters
    ----------
    coupling : "learn" or float
        How strongly neighbours are coupled, in [0, 1]. "learn" hides all answers of some (worker, sequence) pairs, fits
        each of 0, 0.1, 0.25, 0.5 and 1 to the rest, and takes the smallest whose prediction of what was hidden is
        within one (paired) standard error of the best. The fit with it starts from the votes, and once more from the
        fits with weaker couplings, as in that trial; the higher objective is kept (below 1 it is a guide, not a
        likelihood).
    transitions : {"free", "bio", "iob1", "bilou"} or boolean array
        Which label may follow which: anything; what the tag scheme allows, read from the label names ("bio" is IOB2;
        "bioes" is "bilou" with other letters); or ``array[from, to]``. What is forbidden stays impossible through fit
        and decoding, and is only improbable in calibrated probabilities, which would be too sure otherwise. Workers may
        break the rules: their answers are just answers. With a scheme, O and what a span needs (B-X where only I-X was
        said) are added to the classes if nobody said them.
    decode : {"viterbi", "marginal"}
        Labels are the most probable sequence, or the most probable class of each position on its own. `posterior_`
        is there either way.
    workers, estimation, prior, smoothing, calibration, classifier
        As for `DawidSkene`.
    start, n_init, max_iter, tol, seed, callback
        As for `DawidSkene`. Start and transitions are smoothed as the prior is. ``start="moments"`` estimates T by
        moments too (Algorithm 2 of the paper).

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, trace_, n_iter_, converged_, starts_
        As for `DawidSkene`, and so are all that are not listed here. The trace never falls at coupling 1, nor at 0
        without forbidden transitions (unless a smoothing below 0.002 makes steps that hardly ever happen impossible to
        variational Bayes); in between the chain is tempered, and the trace is only a guide.
    transition_ : ndarray of shape (n_classes, n_classes)
        ``transition_[from, to]``; rows sum to 1. The paper's T is the transpose.
    initial_ : ndarray of shape (n_classes,)
        Distribution of the first position.
    coupling_ : float
        The coupling used.
    coupling_scores_ : list of CouplingScore
        How well each coupling predicted hidden answers; empty if the coupling was given.

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
    _summary_type = ChainSummary
    _scalars: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **StreamingModel._scalars,
        "coupling_": is_finite,
        "coupling_scores_": are_scores,
    }

    _span_confidence: Floats | None = None  # of the spans among the labels, if these are tags
    coupling_: float
    coupling_scores_: list[CouplingScore]

    def __init__(
        self,
        *,
        coupling: str | float = "learn",
        transitions: Any = "free",
        decode: str = "viterbi",
        workers: str = "confusion",
        estimation: str = "variational",
        prior: Any = "learn",
        smoothing: Any = "learn",
        calibration: str | float = "hidden answers",
        classifier: Any = None,
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
        self.calibration = calibration
        self.classifier = classifier
        self.start = start
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.callback = callback

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
        """Say in words how strongly neighbouring labels are coupled, and why."""
        self._check_fitted()
        if not self.coupling_scores_:
            why = "it was given"
            if self.coupling == "learn":
                alone = "all answers are one worker's about one sequence"
                why = "it is that of the first batch" if self._n_batches > 1 else alone
            return f"Coupling {self.coupling_:g}: {why}."
        meaning = {0.0: "neighbouring labels tell nothing that the answers do not", 1.0: "the Markov chain fits"}
        words = meaning.get(self.coupling_, "neighbouring labels help, but a worker's errors come in runs")
        first = " It was chosen by the first batch of answers, and kept since." if self._n_batches > 1 else ""
        return explain_choice(self.coupling_, self.coupling_scores_, words) + self._tell_age() + first

    def _predict_codes(self, responses: Any, graph: Any, gold: Any, engine: Any) -> NDArray[np.int64]:
        joint = self.decode == "viterbi"
        return (self._decode if joint else super()._predict_codes)(responses, graph, gold, engine)

    def _chain(self) -> ChainParameters:
        return cast(ChainParameters, self._structure)

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.coupling_scores_ = [CouplingScore(*entry) for entry in self.coupling_scores_]

        self._span_confidence = arrays.get("span_confidence")
        if self._span_confidence is not None:
            check_confidence(self._span_confidence, self._label_codes, self.classes_, self._keys["sequence"])

    def _state(self) -> dict[str, NDArray[Any]]:
        spans = {} if self._span_confidence is None else {"span_confidence": self._span_confidence}
        return super()._state() | spans

    def _specs(self, names: Iterable[str]) -> dict[str, ArraySpec]:
        spans = {name: ArraySpec("*", PROBABILITIES) for name in names if name == "span_confidence"}
        return super()._specs(names) | spans

    def _judge_spans(self, runs: Runs, sequence: NDArray[np.int64]) -> Column:  # noqa: ARG002 (it was done by the fit)
        # Files of earlier releases hold none.
        return (
            pa.nulls(len(runs.first), pa.float64())
            if self._span_confidence is None
            else to_column(self._span_confidence)
        )

    def _judge_labels(
        self,
        r: Responses,
        problem: Problem,
        fit: Fit,
        posterior: Floats,
        label_codes: NDArray[np.int64],
        power: float,
    ) -> dict[str, Any]:
        if not are_tags(r.classes):
            return {"_span_confidence": None}
        left_out = self.calibration != "none" and self.max_iter > 0
        sequence = cast(Sequences, r.sequences).of_items()
        judged = judge_fit(problem, fit, posterior, label_codes, r.classes, sequence, left_out, power)
        return {"_span_confidence": judged}

    def _describe(self) -> str:
        return f"{super()._describe()}; coupling {self.coupling_:g}"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self, "decode", ("viterbi", "marginal"))
        learns = isinstance(self.coupling, str) and self.coupling == "learn"
        if not learns and not (is_number(self.coupling) and 0 <= self.coupling <= 1):
            raise parameter_error("coupling", "HiddenMarkov", "'learn' or a number between 0 and 1", self.coupling)
        if learns and self.max_iter == 0:
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and no coupling can be learned.",
                Sentence("Give {coupling}.", coupling=1.0),
                keyword="coupling",
            )

    def _check_answers(self, r: AnyCrowd) -> AnyCrowd:
        if r.sequences is None:
            raise InputError(
                "HiddenMarkov needs sequences, and these items are not in any.",
                Sentence("Give {sequence} and {position} when the answers are read."),
                Sentence("For a matrix give {lengths}."),
                Sentence("For independent items use {model}.", model=Python("DawidSkene", "dawid-skene")),
                keyword="sequence",
            )
        return r

    def _prepare(self, r: AnyCrowd) -> AnyCrowd:
        """Return the answers with the classes that the tag scheme needs."""
        r = self._check_answers(r)
        if isinstance(self.transitions, str) and self.transitions in SCHEMES:
            return r.with_classes(complete_tags(r.classes, self.transitions))
        return r

    def _check_size(self, r: Responses, graph: Graph | None) -> None:
        check_transitions("HiddenMarkov", r)
        super()._check_size(r, graph)

    def _make_structure(self, r: Crowd) -> Chain:
        """Return the chain; a coupling that is to be learned stands at 1."""
        coupling = 1.0 if self.coupling == "learn" else float(self.coupling)
        allowed = find_transitions(in_order_of_classes(self, "transitions", r.classes, r.normalised), r.classes)
        return Chain(*self._structure_parts(r), coupling, allowed)

    def _plan(
        self, r: Crowd, graph: Graph | None, gold: Gold | None, engine: Engine, sample: Known | None = None
    ) -> Plan:
        chain = self._make_structure(r)
        scores: list[CouplingScore] = []
        answers, labels = (cast(Responses, r), gold) if sample is None else sample
        if self.coupling == "learn" and self._going_on is not None and self.coupling_scores_:
            chain, scores = replace(chain, coupling=self.coupling_), self.coupling_scores_
        elif self.coupling == "learn" and count_units(answers) > 1:
            coupling, scores = self._learn_coupling(answers, chain, labels, engine)
            chain = replace(chain, coupling=coupling)
        problem = self._pose(r, chain, graph, gold, engine)
        starts = find_starts(self, problem, answers)
        if scores and any(name == "majority" for name, _ in starts):
            starts += self._start_by_climbing(problem, expect_from_votes(problem))
        return Plan(problem, starts, {"coupling_": chain.coupling, "coupling_scores_": scores})

    def _structure_of_batch(self, r: Responses) -> Chain:
        chain = self._make_structure(r)
        return replace(chain, coupling=self.coupling_) if self.coupling == "learn" else chain

    def _notes_of_batch(self) -> dict[str, Any]:
        if self.coupling == "learn":
            return {"coupling_": self.coupling_, "coupling_scores_": self.coupling_scores_}
        return {"coupling_": float(self.coupling), "coupling_scores_": []}

    def _estimate_moments(self, answers: Responses) -> Effort:
        return estimate_moments(answers, in_sequences=True)

    def _structure_from_moments(self, r: Responses, structure: AnyStructure, found: MomentFit) -> StructureParameters:
        """Return the chain that lagged moments call for: Algorithm 2 of the paper."""
        chain = cast(Chain, structure)
        transition = match_transitions(answers_to_match(r), found.confusion, chain.allowed.steps)
        return chain.given(found.prior, found.prior, transition)

    def _conclude(self, r: Responses, problem: Problem, learned: Parameters) -> tuple[Floats, NDArray[np.int64]]:
        posterior, label_codes = super()._conclude(r, problem, learned)
        if self.decode == "viterbi":
            factors = problem.factors(learned.workers)
            label_codes = decode_labels(problem.engine, problem.placed, factors, learned.structure)
        return posterior, label_codes

    def _learn_coupling(
        self, r: Responses, chain: Chain, gold: Gold | None, engine: Engine
    ) -> tuple[float, list[CouplingScore]]:
        """Return the coupling that hidden answers call for, and how well each was judged.

        Few pairs of worker and sequence are hidden in several folds, so that each is hidden once; of many, one part.
        """
        n_folds = min(MOST_FOLDS, -(-ENOUGH_HIDDEN // max(1, round(HIDDEN * count_units(r)))))
        scores: list[HeldOutScore] = []
        for hidden, unit in hide_answers(r, HIDDEN, self.seed, n_folds):
            problem = self._pose(r.keep(~hidden), chain, None, gold, engine)
            fold = [score_hidden(r, hidden, unit, *found) for found in self._judge_couplings(problem)]
            scores = [old.plus(new) for old, new in zip(scores, fold, strict=True)] if scores else fold
        best = max(scores, key=lambda score: score.score)
        within = [gap <= error for gap, error in (best.minus(score) for score in scores)]
        judged = list(zip(COUPLINGS, scores, strict=True))
        chosen = next(c for (c, score), near in zip(judged, within, strict=True) if near or score is best)
        return chosen, [CouplingScore(coupling, score.score, score.error) for coupling, score in judged]

    def _judge_couplings(self, problem: Problem) -> Iterator[tuple[Floats, Floats]]:
        """Yield posteriors and expected counts (M, L, K) of the fit with each coupling."""
        for climbed, fit in self._climb(problem, expect_from_votes(problem), COUPLINGS):
            factors = climbed.factors(fit.parameters.workers)
            posterior, _ = infer_posterior(climbed.engine, climbed.placed, factors, fit.parameters.structure)
            yield posterior, climbed.workers.plain_counts(fit.statistics.counts)

    def _climb(
        self, problem: Problem, statistics: Statistics, couplings: Sequence[float]
    ) -> Iterator[tuple[Problem, Fit]]:
        """Yield the fit at each coupling, from weak to strong; the first starts from `statistics`, the others go on."""
        chain, prior = cast(Chain, problem.structure), problem.prior
        for coupling in couplings:
            problem = replace(problem, structure=replace(chain, coupling=coupling))
            start = maximise(problem, statistics, prior)
            fit = run_em(problem, start, self.max_iter, self.tol, self.callback)
            yield problem, fit
            statistics, prior = fit.statistics, fit.parameters.prior

    def _start_by_climbing(self, problem: Problem, votes: Statistics) -> Starts:
        """Return the start by which a learned coupling was judged: climbing to it from weaker ones."""
        below = [coupling for coupling in COUPLINGS if coupling < cast(Chain, problem.structure).coupling]
        if not below:
            return []
        *_, (_, fit) = self._climb(problem, votes, below)
        return [("climbing", maximise(problem, fit.statistics, fit.parameters.prior))]
