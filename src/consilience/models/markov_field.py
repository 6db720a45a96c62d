"""Fusion over a graph: neighbours tend to have the same label, as far as the data bear it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.arrays import Crowd
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..arguments import check_truth, is_number
from ..checks.graph_check import GraphCheck, describe_usual, judge_graph
from ..engines import open_engine
from ..engines.base import Engine
from ..errors import InputError, ParameterError, Python, Sentence, parameter_error, plural, quietly
from ..inference.em import (
    LEARNING,
    CountedEvidence,
    Fit,
    Parameters,
    Problem,
    Progress,
    expect,
    expect_from_votes,
    maximise,
    run_em,
)
from ..inference.sizes import check_messages
from ..inference.statistics import Statistics
from ..inference.structures.base import Summary
from ..inference.structures.field import (
    INFERENCES,
    LEAST_UNIT,
    MOST_COUPLING,
    Field,
    FieldParameters,
    FieldSummary,
    find_linked,
    most_weight,
    weight_unit,
)
from ..inference.structures.independent import Independent, IndependentParameters
from ..kernels.types import Floats
from ..results.answer_worth import sum_chances
from ..results.hidden_fits import find_by_hidden
from ..results.interval_sums import invert_scores, right_matrix, sum_up
from ..results.intervals import judge_shares
from ..specs import Fault, is_finite
from .coupling import CouplingScore, are_scores, explain_choice
from .dawid_skene import DawidSkene
from .field_coupling import MULTIPLES, choose_coupling
from .latent import Known, LatentModel, Plan
from .parameters import check_choice
from .starts import find_starts

LISTENERS = ("all", "unanswered")
# A fit goes on where inference from the evidence counts more than this share of the answers in other classes.
MOVED, MOST_ROUNDS = 1e-3, 10


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
    degree_normalised : bool
        Divide each edge's weight by the geometric mean of its ends' degrees, so that nodes with many neighbours do not
        dominate.
    listeners : {"all", "unanswered"}
        Which items hear their neighbours: all, or only those that nobody answered. The labels of the others are then
        those of `DawidSkene`. That is for workers whose errors run along the edges (see `check_graph`), and for a
        coupling that is given.
    start : {"majority", "moments", "best", "dawid-skene"}, fitted model or array
        Where to start. "dawid-skene" fits `DawidSkene` first; with few answers that is too sure of itself for the
        neighbours to be heard.
    workers, estimation, prior, smoothing, calibration, classifier
        As for `DawidSkene`.
    n_init, max_iter, tol, seed, callback
        As for `DawidSkene`.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, trace_, n_iter_, converged_, starts_
        As for `DawidSkene`, and so are all that are not listed here. The trace is the mean-field objective without the
        field's normaliser: at a given coupling it never falls by mean field if all items listen; while the coupling is
        learned, and otherwise, it is a guide. With a strong coupling a fit may have to go on from posteriors that are
        inferred anew; the trace begins there.
    coupling_ : float
        The coupling used, for edges of weight 1. Where edges have weights, it is told in words for edges of the
        `usual_weight`.
    coupling_scores_ : list of CouplingScore
        Each coupling that was tried, with the mean log probability of the answers to a hidden item and its standard
        error. Empty if the coupling was given, or if there was nothing to choose by.

    Notes
    -----
    Inference runs on this machine, over the whole graph; evidence and counts go through the engine. To learn the
    coupling takes about thirty more fits of a small graph, and six of one with more than 25,000 answered items; each
    goes on from the one before. `check_graph` fits the same model to a shuffled graph, at the same price.

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

    _structure_type = FieldParameters
    _takes_graph = True
    _scalars: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **LatentModel._scalars,
        "coupling_": is_finite,
        "coupling_scores_": are_scores,
    }
    _start_choices = ("dawid-skene", *LatentModel._start_choices)

    coupling_: float
    coupling_scores_: list[CouplingScore]
    _shares_apart: Floats  # (2, K): interval of class shares by the answers alone
    graph_check_: GraphCheck

    _why_no_batches = ": a graph cannot be cut into them"

    def __init__(
        self,
        *,
        coupling: str | float = "learn",
        inference: str = "mean_field",
        degree_normalised: bool = False,
        listeners: str = "all",
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
        self.inference = inference
        self.degree_normalised = degree_normalised
        self.listeners = listeners
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

    def check_graph(
        self,
        responses: Any,
        graph: Any,
        gold: Any = None,
        engine: Any = None,
        *,
        features: Any = None,
        item_prior: Any = None,
    ) -> GraphCheck:
        """Check whether the graph is informative, by a fit to a shuffled one, and whether errors run along its edges.

        If neighbours agree no more than on a shuffled graph with the same degrees, the graph is not informative. If a
        worker's errors at neighbouring items are alike, neighbours repeat them instead of correcting them. That the
        labels which the graph changes are right, only known labels can show.

        The coupling that is learned tells the two graphs apart: a model whose coupling is given is fitted again, with
        a learned one, to both.

        Parameters
        ----------
        responses, graph, gold, engine, features, item_prior
            As for `fit`.

        Returns
        -------
        GraphCheck
        """
        self._check_fitted()
        r = self._read(responses)
        if r.n_items != len(self._label_codes):
            raise InputError(
                f"The model was fitted to {plural(len(self._label_codes), 'item')}, and these answers are about "
                f"{r.n_items:,}.",
                "Give the answers of the fit.",
            )
        r = self._add_content(r, features, item_prior)
        aligned = require_graph(graph).aligned_with(r.items)
        # Only labels and couplings are compared, which calibration leaves alone.
        learner = self.fresh(callback=None, coupling="learn", listeners="all", calibration="none")
        shared = {name: value for name, value in learner.get_params().items() if name in DawidSkene._defaults()}
        independent = DawidSkene(**{**shared, "start": "majority"})
        with open_engine(engine) as opened, quietly():
            here = self if self.coupling == "learn" else learner.fresh()._fit(r, aligned, gold, opened, copies=[])
            shuffled = learner._fit(r, aligned.shuffled(self.seed), gold, opened, copies=[])
            alone = independent._fit(r, None, gold, opened, copies=[])
        unit = weight_unit(aligned.weights)
        return judge_graph(
            r.with_classes(alone.classes_),
            aligned,
            (here.coupling_ * unit, shuffled.coupling_ * unit),
            (here._label_codes, shuffled._label_codes, alone._label_codes),
            unit,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self, "inference", INFERENCES)
        check_truth("degree_normalised", type(self).__name__, self.degree_normalised)
        named = isinstance(self.coupling, str) and self.coupling in ("learn", "paper")
        if not named and not (is_number(self.coupling) and 0 <= self.coupling < np.inf):
            raise parameter_error("coupling", "MarkovField", "'learn', 'paper' or a number >= 0", self.coupling)
        check_choice(self, "listeners", LISTENERS)
        if self.listeners == "unanswered" and self._learns_coupling():
            raise ParameterError(
                "A coupling is learned from items that were answered, and with listeners='unanswered' they do not hear "
                "their neighbours.",
                Sentence("Give {coupling}, such as the one of a fit in which all listen.", coupling=1.0),
                keyword="listeners",
            )
        started = isinstance(self.start, str) and self.start == "dawid-skene"
        if self.max_iter == 0 and (started or (named and self.coupling == "learn")):
            raise ParameterError(
                "With max_iter=0 nothing is fitted: neither a coupling nor a start from DawidSkene can be found.",
                Sentence("Give {coupling}, and another {start}.", coupling=1.0, start="majority"),
                keyword="max_iter",
            )

    def _align(self, r: Responses, graph: Any) -> Graph:
        return require_graph(graph).aligned_with(r.items)

    def _links(self, r: Responses, graph: Any) -> Graph:
        """Return the graph over these items, with the weights that the parameters call for."""
        aligned = self._align(r, graph)
        # What is the usual weight, and so the largest, depends on the weights that are left.
        while aligned.weights.max(initial=0.0) > (most := most_weight(aligned.weights, self._given_coupling())):
            aligned = replace(aligned, weights=np.minimum(aligned.weights, most))
        if self.degree_normalised:
            root = np.sqrt(np.maximum(aligned.degrees, 1))
            source = np.repeat(np.arange(aligned.n_items), aligned.degrees)
            scale = aligned.degrees.mean() / (root[source] * root[aligned.neighbours])
            aligned = replace(aligned, weights=aligned.weights * scale)
        if self.coupling == "paper":
            aligned = replace(aligned, weights=aligned.weights * paper_couplings(r, aligned))
        return aligned if self.listeners == "all" else silence_answered(r, aligned)

    def _check_size(self, r: Responses, graph: Graph | None) -> None:
        super()._check_size(r, graph)
        if self.inference == "belief_propagation":
            check_messages("MarkovField", r, cast(Graph, graph))

    def _given_coupling(self) -> float | None:
        """Return the coupling of edges of weight 1; None if it is to be learned."""
        # The paper's couplings differ from edge to edge: they are weights of the graph.
        return {"learn": None, "paper": 1.0}[self.coupling] if isinstance(self.coupling, str) else float(self.coupling)

    def _make_structure(self, r: Crowd) -> Field:
        return Field(*self._structure_parts(r), self._given_coupling(), self.inference)

    def _learns_coupling(self) -> bool:
        return isinstance(self.coupling, str) and self.coupling == "learn"

    def _plan(
        self,
        r: Crowd,
        graph: Graph | None,
        gold: Gold | None,
        engine: Engine,
        sample: Known | None = None,  # noqa: ARG002
    ) -> Plan:
        assert isinstance(r, Responses)
        posed, scores = self._pose(r, self._make_structure(r), graph, gold, engine), list[CouplingScore]()
        apart, fit = self._fit_apart(posed, expect_from_votes(posed))
        settled = self._settle(posed, fit) if find_linked(cast(Graph, graph)).any() else posed
        coupling = self._given_coupling()
        if self._learns_coupling() and self._going_on is not None and self.coupling_scores_:
            coupling, scores = self.coupling_, self.coupling_scores_
        elif self._learns_coupling():
            _, first = next(self._set_off(r, posed, settled))
            # No leaps: the objective cannot tell whether a coupling that moves is better.
            agreeing = run_em(settled, first, self.max_iter, self.tol, self.callback)
            power = find_by_hidden(self, r, apart, fit, gold)[0].power if settled is not posed else 1.0
            coupling, scores = choose_coupling(self, r, settled, agreeing, gold, power)
        # Without coupling items are independent, and all is learned as `DawidSkene` learns it.
        problem = posed if coupling == 0 else settled
        # All starts go on with the same coupling, so that their objectives can be compared: the field's normaliser,
        # which depends on it, is not known.
        problem = replace(problem, structure=replace(cast(Field, problem.structure), coupling=coupling))
        alone = self._judge_shares_apart(r, apart, fit, gold)
        starts = list(self._set_off(r, posed, problem))
        return Plan(problem, starts, {"coupling_scores_": scores, "_shares_apart": alone})

    def _fit_unguided(
        self, r: Responses, graph: Graph | None, gold: Gold | None, engine: Engine
    ) -> tuple[Problem, Fit]:
        # Neighbours would tell an item's label to the classifier that judges it.
        posed = self._pose(r, self._make_structure(r), graph, gold, engine)
        return self._fit_apart(posed, expect_from_votes(posed))

    def _finish(self, r: Responses, plan: Plan, *found: Any) -> None:
        super()._finish(r, plan, *found)
        # A field may lead small classes to adopt their neighbours' label, and would not know of it.
        low, high = self._prior_interval
        apart = self._shares_apart
        self._prior_interval = np.stack([np.minimum(low, apart[0]), np.maximum(high, apart[1])])

    def _judge_shares_apart(self, r: Responses, apart: Problem, fit: Fit, gold: Gold | None) -> Floats:
        """Return the interval of class shares, (2, K), by the answers alone."""
        learned = fit.parameters
        posterior, _ = super()._conclude(r, apart, learned)
        found = self._gather_estimates(r, apart, learned, fit.statistics, gold)
        right = right_matrix(found.confusion, r)
        sums = sum_up(r, posterior, right, found, sum_chances(r, posterior))
        return judge_shares(sums.moments, r.n_items, found, invert_scores(r, sums, right, found), r.n_items)

    def _settle(self, problem: Problem, apart: Fit) -> Problem:
        """Return the problem with what is found without the graph: the learned prior of the workers, and class shares.

        With the graph, all labels alike and workers who answer at random can be the best fit of all: neighbours then
        agree everywhere. A prior that is learned meanwhile would lead there.
        """
        found = apart.parameters
        shares = cast(IndependentParameters, found.structure)
        structure = replace(cast(Field, problem.structure), unlinked=shares)
        return replace(problem, prior=found.prior._replace(parts=None), structure=structure)

    def _fit_apart(self, problem: Problem, votes: Statistics) -> tuple[Problem, Fit]:
        """Return the problem of the same answers to independent items, and its fit from the votes."""
        apart, start = self._pose_apart(problem, votes)
        return apart, run_em(apart, start, self.max_iter, self.tol, self.callback)

    def _set_off(self, r: Responses, posed: Problem, problem: Problem) -> Iterator[tuple[str, Parameters]]:
        """Yield the starts, each after some first iterations if the prior of the workers was learned.

        These have the prior of the problem as it was `posed`. Under the pseudo-counts of a learned prior, which may be
        many, the workers of a start are all alike, and the first posteriors hardly better than votes.
        """
        goes_on = self._going_on is not None and self._going_on.starts_there
        if problem.prior.learns == posed.prior.learns or self.max_iter == 0 or goes_on:
            yield from find_starts(self, problem, r)
            return
        early = replace(problem, prior=posed.prior._replace(parts=None))
        for name, start in find_starts(self, early, r):
            fit = run_em(early, start, min(LEARNING.start, self.max_iter), 0.0, self.callback)
            yield name, maximise(problem, fit.statistics)

    def _pose_apart(self, problem: Problem, found: Statistics) -> tuple[Problem, Parameters]:
        """Return the problem of the same answers to independent items, and the parameters that statistics call for."""
        field = cast(Field, problem.structure)
        alone = Independent(field.n_classes, field.fixed_prior, field.smoothing, field.estimation)
        apart = replace(problem, structure=alone, graph=None)
        return apart, maximise(apart, Statistics(found.counts, Summary(0.0, found.summary.mass)))

    def _choose(self, problem: Problem, fits: Mapping[str, Fit]) -> Fit:
        """Return the best fit, to which posteriors that are inferred anew belong.

        Inference goes on from one iteration to the next. With a strong coupling it may end in an optimum that is not
        found again from the evidence, as for results and predictions. Then the fit goes on from what is found there.
        """
        fit = super()._choose(problem, fits)
        for _ in range(MOST_ROUNDS):
            if not fit.converged or are_near(count_anew(problem, fit.parameters), fit.statistics.counts):
                break
            fit = run_em(problem, fit.parameters, self.max_iter, self.tol, self.callback)
        return fit

    def _judge_fit(self, problem: Problem, fit: Fit) -> float:
        """Return how well workers and class prior explain the answers to items that are taken as independent.

        The field's own objective would prefer all labels to be alike.
        """
        apart, learned = self._pose_apart(problem, fit.statistics)
        alone = fit.parameters._replace(structure=learned.structure)
        return alone.objective(expect(apart, alone).summary.log_normaliser)

    def explain_coupling(self) -> str:
        """Say in words how strongly neighbouring labels are coupled, and why."""
        self._check_fitted()
        heard = "" if self.listeners == "all" else " It counts only for items that nobody answered."
        unit, note = self.usual_weight, describe_usual(self.usual_weight)
        if not self.coupling_scores_:
            why = "there was nothing to judge it by" if self._learns_coupling() else "it was given"
            return f"Coupling {self.coupling_ * unit:.3g}{note}: {why}.{heard}"
        words = "neighbours add nothing to the answers" if self.coupling_ == 0 else "neighbours tend to agree"
        return explain_choice(self.coupling_, self.coupling_scores_, words, note, unit) + self._tell_age() + heard

    @property
    def usual_weight(self) -> float:
        """The usual weight of an edge, the geometric mean. Such an edge couples labels by so many times `coupling_`.

        1 for ``coupling="paper"``, and if the graph was not saved with the model.
        """
        if self._graph is None or self.coupling == "paper":
            return 1.0
        return weight_unit(self._graph.weights)

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        field = cast(FieldParameters, self._structure)
        given = self._given_coupling()
        most = MULTIPLES[-1] * MOST_COUPLING / LEAST_UNIT
        agrees = field.coupling <= most if given is None else field.coupling == given and not field.learns
        if not agrees or field.inference != self.inference:
            raise Fault("the field is not the one that the parameters call for")
        self.coupling_scores_ = [CouplingScore(*entry) for entry in self.coupling_scores_]

    def _start_from_independent(self, problem: Problem, votes: Statistics) -> Parameters:
        """Return what `DawidSkene` finds, as a start for the field."""
        _, found = self._fit_apart(problem, votes)
        summary = FieldSummary(0.0, found.statistics.summary.mass, 0.0)
        return maximise(problem, Statistics(found.statistics.counts, summary), found.parameters.prior)

    def _keep(self, r: Responses, problem: Problem, learned: Parameters, *found: Any) -> None:
        super()._keep(r, problem, learned, *found)
        coupling = cast(FieldParameters, learned.structure).coupling
        weights = cast(Graph, problem.graph).weights
        mean_weight = float(weights.mean()) if len(weights) else 1.0
        self.coupling_ = coupling * (mean_weight if self.coupling == "paper" else 1.0)

    def _describe(self) -> str:
        note = describe_usual(self.usual_weight)
        return f"{super()._describe()}; coupling {self.coupling_ * self.usual_weight:.2f}{note}"


def require_graph(graph: Any) -> Graph:
    """Return the graph, or say how to make one."""
    if isinstance(graph, Graph):
        return graph
    if graph is None:
        how = Python("graph=cs.Graph.from_edges(source, target)")
        raise ParameterError(
            "MarkovField needs a graph.", Sentence("Give one with {graph}.", graph=how), keyword="graph"
        )
    raise parameter_error("graph", "MarkovField", "a consilience.Graph (see Graph.from_edges)", graph)


def count_anew(problem: Problem, parameters: Parameters) -> Floats:
    """Return the expected counts of posteriors that are inferred from the evidence for as long as results are."""
    evidence = CountedEvidence(problem.engine, problem.placed, problem.factors(parameters.workers))
    return parameters.structure.infer(evidence, problem.graph).counts


def are_near(counts: Floats, others: Floats) -> bool:
    """Tell whether two tables of expected counts have nearly all answers in the same classes."""
    return float(np.abs(counts - others).sum()) <= 2 * MOVED * float(counts.sum())


def silence_answered(r: Responses, graph: Graph) -> Graph:
    """Return the graph with no weight on what neighbours say to items that were answered; they are still heard."""
    heard = np.where(np.repeat(find_answered(r), graph.degrees), 0.0, graph.weights)
    return replace(graph, weights=heard, directed=True)


def find_answered(r: Responses) -> NDArray[np.bool_]:
    """Tell which items were answered. Where silence is an answer, all were."""
    return np.diff(r.offsets) > 0 if not r.silence_counts else np.ones(r.n_items, bool)


def paper_couplings(r: Responses, graph: Graph) -> Floats:
    """Return the paper's coupling of each edge: delta / 2, with delta = M, or M_n / 2 where not all workers answer.

    M_n, the number of answers to item n, is not symmetric: the mean of both ends is taken.
    """
    answers = np.bincount(r.votes()[0], minlength=r.n_items)
    if (answers == r.n_workers).all():
        return np.full(len(graph.neighbours), r.n_workers / 2)
    source = np.repeat(answers, graph.degrees)
    return np.asarray((source + answers[graph.neighbours]) / 8)
