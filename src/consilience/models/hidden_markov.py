"""Hidden Markov fusion: the labels of a sequence form a Markov chain, believed as far as the data bear it out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.random_choices import count_units
from ..answers.tagging import SCHEMES, complete_tags, find_transitions
from ..engines import Engine
from ..errors import InputError, ParameterError, Python, Sentence
from ..inference.chains import COUPLINGS, climb, learn_coupling, match_transitions
from ..inference.estimator import Parts, Plan
from ..inference.hidden_answers import CouplingScore, explain_choice
from ..inference.moments import MomentFit, answers_to_match
from ..inference.observations import Observations
from ..inference.starts import check_transitions, check_unnamed, find_starts
from ..inference.structures import Structure, StructureParameters, Summary
from ..inference.structures.chain import Chain, ChainParameters, ChainSummary
from ..results.result import Result
from .base import FromResult
from .latent import StreamingModel


def chain_of(result: Result) -> ChainParameters:
    """The chain that was learned."""
    return cast(ChainParameters, result.estimates.structure)


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
    workers, estimation, prior, smoothing, calibration, label_by
        As for `DawidSkene`. Medians are of each position on its own, whatever `decode` is.
    start, n_init, max_iter, tol, seed, callback
        As for `DawidSkene`. Start and transitions are smoothed as the prior is. ``start="moments"`` estimates T by
        moments too (Algorithm 2 of the paper).

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, trace_, n_iter_, converged_
        As for `DawidSkene`, and so are all that are not listed here. The trace never falls at coupling 1, nor at 0
        without forbidden transitions (unless a smoothing below 0.002 makes steps that hardly ever happen impossible to
        variational Bayes); in between the chain is tempered, and the trace is only approximate.
    transition_ : ndarray of shape (n_classes, n_classes)
        ``transition_[from, to]``; rows sum to 1. The paper's T is the transpose.
    initial_ : ndarray of shape (n_classes,)
        Distribution of the first position.
    coupling_ : float
        The coupling used. ``result_.course.coupling_scores`` has how well each one predicted hidden answers.

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

    coupling_ = FromResult(lambda result: cast(float, result.coupling), "How far the chain is believed.")
    transition_ = FromResult(lambda result: chain_of(result).transition, "Transition matrix [from, to].")
    initial_ = FromResult(lambda result: chain_of(result).initial, "Distribution of the first position.")

    _structure_type: ClassVar[type[StructureParameters]] = ChainParameters
    _summary_type: ClassVar[type[Summary]] = ChainSummary
    _is_chain: ClassVar[bool] = True

    coupling: str | float = "learn"
    transitions: Any = "free"
    decode: str = "viterbi"

    @property
    def _rule(self) -> str:
        return "sequence" if self.decode == "viterbi" and self.label_by == "mode" else super()._rule

    def _check(self) -> None:
        super()._check()
        if self._learns_coupling and self.max_iter == 0:
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and no coupling can be learned.",
                Sentence("Give {coupling}.", coupling=1.0),
                keyword="coupling",
            )

    def _prepare(self, r: Answers) -> Answers:
        if r.sequences is None:
            raise InputError(
                "HiddenMarkov needs sequences, and these items are not in any.",
                Sentence("Give {sequence} and {position} when the answers are read."),
                Sentence("For a matrix give {lengths}."),
                Sentence("For independent items use {model}.", model=Python("DawidSkene", "dawid-skene")),
                keyword="sequence",
            )
        r = super()._prepare(r)
        if isinstance(self.transitions, str) and self.transitions in SCHEMES:
            return r.with_classes(complete_tags(r.classes, self.transitions))
        return r

    def _check_size(self, r: Answers, graph: Graph | None) -> None:
        check_transitions(type(self).__name__, r)
        super()._check_size(r, graph)

    def _make_structure(self, observations: Observations, parts: Parts) -> Chain:
        """The chain; a coupling that is to be learned stands at 1."""
        r, coupling = observations.responses, 1.0 if self._learns_coupling else float(self.coupling)
        check_unnamed(self, "transitions")
        allowed = find_transitions(self.transitions, r.classes)
        return Chain(*parts, coupling, allowed)

    def _plan(self, observations: Observations, graph: Graph | None, engine: Engine) -> Plan:
        """The problem and its starts, with a coupling that was chosen by hidden answers."""
        problem, scores = self._make_problem(observations, graph, engine), list[CouplingScore]()
        if self._learns_coupling and count_units(observations.responses) > 1:
            coupling, scores = learn_coupling(observations, problem, self._run, self.seed)
            problem = replace(problem, structure=replace(cast(Chain, problem.structure), coupling=coupling))
        starts = find_starts(self, problem, observations)
        below = [each for each in COUPLINGS if each < cast(Chain, problem.structure).coupling]
        if scores and below and "majority" in starts:
            # As a learned coupling was judged: from weaker ones.
            *_, (_, fit) = climb(problem, below, self._run)
            starts["climbing"] = problem.maximise(fit.statistics, fit.parameters.prior)
        return Plan(problem, starts, scores)

    def _start_from_moments(self, r: Answers, structure: Structure, moments: MomentFit) -> StructureParameters:
        """The chain that lagged moments call for: Algorithm 2 of the paper."""
        chain = cast(Chain, structure)
        transition = match_transitions(answers_to_match(r), moments.confusion, chain.allowed.steps)
        return chain.given(moments.prior, moments.prior, transition)

    def explain_coupling(self) -> str:
        """Say in words how strongly neighbouring labels are coupled, and why."""
        result = self.result_
        if not result.course.coupling_scores:
            why = "it was given"
            if self.coupling == "learn":
                why = "all answers are one worker's about one sequence" if result.given.n_batches < 2 else "it was kept"
            return f"Coupling {self.coupling_:g}: {why}."
        meaning = {0.0: "neighbouring labels tell nothing that the answers do not", 1.0: "the Markov chain fits"}
        words = meaning.get(self.coupling_, "neighbouring labels help, but a worker's errors come in runs")
        first = " It was chosen by the first batch of answers, and kept since." if result.given.n_batches > 1 else ""
        return explain_choice(self.coupling_, result.course.coupling_scores, words) + first

    def _describe(self) -> str:
        return f"{super()._describe()}; coupling {self.coupling_:g}"
