"""Result over a graph: neighbours tend to have the same label, as far as the data bear it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, cast

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..engines import Engine
from ..errors import ParameterError, Sentence
from ..inference.em import Fit, Parameters, Problem, run_em
from ..inference.estimator import LatentEstimator, Parts, Plan
from ..inference.fields import choose_coupling, choose_fit, fit_independent_items, fix_prior, weigh_graph
from ..inference.hidden_answers import CouplingScore, explain_choice, hide_from_fit
from ..inference.observations import Observations
from ..inference.starts import find_starts
from ..inference.structures import Statistics, StructureParameters, Summary
from ..inference.structures.field import Field, FieldParameters, FieldSummary, find_linked, weight_unit
from ..inference.workers.base import LEARNING
from ..results.comparison import describe_usual
from .base import FromResult
from .latent import LatentModel


class MarkovField(LatentModel):
    r"""Fuse answers about the nodes of a network: papers and citations, people and ties, pixels, nearest neighbours.

    The labels form a Markov random field: each edge multiplies the probability of a labelling by :math:`e^{\beta w}` if
    its ends agree. Workers answer by their confusion matrices, and everything is learned from the answers: labels,
    matrices, class prior and the coupling :math:`\beta`, which falls to zero where neighbours have nothing in common.
    Items nobody answered get their label from their neighbours; items without neighbours from their answers.

    Parameters
    ----------
    coupling : {"learn", "paper"} or float
        :math:`\beta`, in nats per agreeing neighbour (the paper's delta is twice that): learned; as in the paper, where
        delta is the number of workers, or half the number of answers to an item; or given. A learned coupling is a
        multiple of the one by pseudo-likelihood, which tells how much neighbours agree. It is the multiple at which the
        neighbours of items whose answers are all hidden predict these answers best; see `explain_coupling`.
    inference : {"mean_field", "icm", "belief_propagation"}
        How posteriors are found: mean field; iterated conditional modes, as in the paper; or damped sum-product belief
        propagation, which is exact on trees.
    listeners : {"all", "unanswered"}
        Which items hear their neighbours: all, or only those that nobody answered. The labels of the others are then
        those of `DawidSkene`. That is for workers whose errors run along the edges (see `graph_check_`), and for a
        coupling that is given.
    start : {"majority", "moments", "best", "dawid-skene"}, fitted model or array
        Where to start. "dawid-skene" fits `DawidSkene` first; with few answers that is too sure of itself for the
        neighbours to be heard.
    workers, estimation, prior, smoothing, calibration, label_by
        As for `DawidSkene`.
    n_init, max_iter, tol, seed, callback
        As for `DawidSkene`.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, trace_, n_iter_, converged_
        As for `DawidSkene`, and so are all that are not listed here. The trace is the mean-field objective without the
        field's normaliser: at a given coupling it never falls by mean field if all items listen; while the coupling is
        learned, and otherwise, it is approximate. With a strong coupling a fit may have to continue from posteriors
        that are inferred anew; the trace begins there.
    coupling_ : float
        The coupling used, for edges of weight 1. Where edges have weights, words and the report give it for edges of
        the usual weight, their geometric mean. ``result_.course.coupling_scores`` has each coupling that was tried,
        with the mean log probability of the answers to a hidden item and its standard error.

    Notes
    -----
    Inference runs on this machine, over the whole graph; evidence and counts go through the engine. To learn the
    coupling takes about thirty more fits of a small graph, and six of one with more than 25,000 answered items; each
    continues from the one before. `consilience.fuse` fits the same model to a shuffled graph, too, at the same price.

    A class prior that is learned has no say at items with neighbours. One that is given with `prior` has.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.network(500, n_workers=5, n_classes=3, degree=6, seed=1)
    >>> model = cs.MarkovField().fit(crowd.responses, graph=crowd.graph)
    >>> alone = cs.DawidSkene().fit(crowd.responses)
    >>> cs.metrics.accuracy(crowd.truth, model.labels_) > cs.metrics.accuracy(crowd.truth, alone.labels_)
    True
    """

    coupling_ = FromResult(lambda result: cast(float, result.coupling), "Nats per agreeing neighbour, for weight 1.")

    _structure_type: ClassVar[type[StructureParameters]] = FieldParameters
    _summary_type: ClassVar[type[Summary]] = FieldSummary
    _start_choices: ClassVar[tuple[str, ...]] = ("dawid-skene", *LatentEstimator._start_choices)
    _takes_graph: ClassVar[bool] = True

    coupling: str | float = "learn"
    inference: str = "mean_field"
    listeners: str = "all"

    @property
    def _given_coupling(self) -> float | None:
        """The coupling of edges of weight 1; None if it is to be learned."""
        # The paper's couplings differ from edge to edge: they are weights of the graph.
        return {"learn": None, "paper": 1.0}[self.coupling] if isinstance(self.coupling, str) else float(self.coupling)

    def _check(self) -> None:
        super()._check()
        if self.listeners == "unanswered" and self._learns_coupling:
            raise ParameterError(
                "A coupling is learned from items that were answered, and with listeners='unanswered' they do not hear "
                "their neighbours.",
                Sentence("Give {coupling}, such as the one of a fit in which all listen.", coupling=1.0),
                keyword="listeners",
            )
        started = isinstance(self.start, str) and self.start == "dawid-skene"
        if self.max_iter == 0 and (started or self._learns_coupling):
            raise ParameterError(
                "With max_iter=0 nothing is fitted: neither a coupling nor a start from DawidSkene can be found.",
                Sentence("Give {coupling}, and another {start}.", coupling=1.0, start="majority"),
                keyword="max_iter",
            )

    def _weigh_links(self, r: Answers, graph: Graph) -> Graph:
        return weigh_graph(r, graph, self.coupling, self.listeners)

    def _make_structure(self, observations: Observations, parts: Parts) -> Field:  # noqa: ARG002
        return Field(*parts, self._given_coupling, self.inference)

    def _plan(self, observations: Observations, graph: Graph | None, engine: Engine) -> Plan:
        """The problem and its starts, with a coupling that was chosen by hidden items."""
        learning, scores = self._make_problem(observations, graph, engine), list[CouplingScore]()
        independent, independent_fit = fit_independent_items(learning, self._run)
        fixed = fix_prior(learning, independent_fit) if find_linked(cast(Graph, graph)).any() else learning
        coupling = self._given_coupling
        if self._learns_coupling:
            first = next(iter(self._set_off(observations, learning, fixed).values()))
            agreeing = self._run(fixed, first)
            hidden = None if fixed is learning else hide_from_fit(observations, independent, independent_fit, self.seed)
            power = 1.0 if hidden is None else hidden.choose_power()[0].power
            coupling, scores = choose_coupling(observations, fixed, agreeing, power, self._run, self.seed)
        # Without coupling items are independent, and all is learned as `DawidSkene` learns it.
        problem = learning if coupling == 0 else fixed
        # All starts continue with the same coupling, so that their objectives can be compared: the field's normaliser,
        # which depends on it, is not known.
        problem = replace(problem, structure=replace(cast(Field, problem.structure), coupling=coupling))
        return Plan(problem, self._set_off(observations, learning, problem), scores, (independent, independent_fit))

    def _set_off(self, observations: Observations, early_problem: Problem, problem: Problem) -> dict[str, Parameters]:
        """The starts, each after some first iterations if the prior of the workers was learned.

        These have the prior of `early_problem`. Under the pseudo-counts of a learned prior, which may be many, the
        workers of a start are all alike, and the first posteriors hardly better than votes.
        """
        begins = problem.prior.learns != early_problem.prior.learns and self.max_iter > 0
        early = replace(problem, prior=early_problem.prior.fixed()) if begins else problem
        starts = find_starts(self, early, observations)
        if isinstance(self.start, str) and self.start == "dawid-skene":
            fit = fit_independent_items(early, self._run)[1]
            summary = FieldSummary(0.0, fit.statistics.summary.mass, 0.0)
            parameters = early.maximise(Statistics(fit.statistics.counts, summary), fit.parameters.prior)
            starts = {"dawid-skene": parameters, **starts}
        if not begins:
            return starts
        n_iter = min(LEARNING.start, self.max_iter)
        return {
            name: problem.maximise(run_em(early, start, n_iter, 0.0, self.callback).statistics)
            for name, start in starts.items()
        }

    def _choose(self, problem: Problem, fits: Mapping[str, Fit]) -> Fit:
        return choose_fit(problem, list(fits.values()), self._run)

    def _fit_without_features(
        self, observations: Observations, graph: Graph | None, engine: Engine
    ) -> tuple[Problem, Fit]:
        # Neighbours would tell an item's label to the classifier that judges it.
        return fit_independent_items(self._make_problem(observations, graph, engine), self._run)

    def _report_coupling(self, coupling: float, graph: Graph | None) -> float:
        weights = cast(Graph, graph).weights
        # By the paper's rule couplings are weights of the graph, and that of the mean edge is reported.
        return coupling * float(weights.mean()) if self.coupling == "paper" and len(weights) else coupling

    def explain_coupling(self) -> str:
        """Say in words how strongly neighbouring labels are coupled, and why."""
        result = self.result_
        listeners = "" if self.listeners == "all" else " It counts only for items that nobody answered."
        unit, note = self._usual_weight, describe_usual(self._usual_weight)
        if not result.course.coupling_scores:
            why = "there was nothing to judge it by" if self._learns_coupling else "it was given"
            return f"Coupling {self.coupling_ * unit:.3g}{note}: {why}.{listeners}"
        words = "neighbours add nothing to the answers" if self.coupling_ == 0 else "neighbours tend to agree"
        return explain_choice(self.coupling_, result.course.coupling_scores, words, note, unit) + listeners

    @property
    def _usual_weight(self) -> float:
        """The geometric mean of the weights of edges; 1 for ``coupling="paper"``, and where the graph was not saved."""
        graph = self.result_.given.graph
        return 1.0 if graph is None or self.coupling == "paper" else weight_unit(graph.weights)

    def _describe(self) -> str:
        note = describe_usual(self._usual_weight)
        return f"{super()._describe()}; coupling {self.coupling_ * self._usual_weight:.2f}{note}"
