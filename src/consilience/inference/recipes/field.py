r"""Markov field fusion: a network over the items, whose coupling hidden items call for.

Pseudo-likelihood finds how much neighbours agree, and takes the answers at their word. Where workers err together, they
are too sure, and neighbours are not heard. So multiples c of that coupling are tried. All answers to some items are
hidden; what is left to speak for these items are their neighbours, and they must predict the hidden answers:

    mean over hidden items n of  sum over answers (m, l) to n of  log sum_k q_nk^t / Z_n Gamma_m[k, l]

with the power t that suits each c best, or strong couplings would lose only because they make posteriors too sure. The
smallest c within one standard error of the best, paired over items, is taken.

How far answers are too sure is known from a fit without the graph, by the power that calibrates it: a stronger coupling
does the same as answers raised to a power. So c is at most 1 / power ** 2, with the square because calibration without
gold sees only about half of what there is (in the logarithm; see `consilience.results.calibration`). Without this
limit, strong couplings would be chosen even where workers err independently of each other. There they predict hidden
items a little better, and harm the labels of items that have answers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ...answers.answers import Answers
from ...answers.graph import Graph
from ...answers.random_choices import hide_items
from ...engines.base import Engine
from ...errors import ParameterError, Python, Sentence, parameter_error
from ...kernels import Floats
from ..em import Fit, Parameters, Problem, expect_from_votes, maximise, run_em
from ..hidden_fits import hide_from_fit
from ..learned import CouplingScore
from ..powers import score_powers
from ..preconditions import check_messages
from ..sources import Source
from ..starts import find_starts
from ..structures import Statistics, StructureParameters, Summary
from ..structures.field import (
    LEAST_UNIT,
    MOST_COUPLING,
    Field,
    FieldParameters,
    FieldSummary,
    find_linked,
    most_weight,
)
from ..structures.independent import Independent, IndependentParameters
from ..workers.priors import LEARNING
from ..workers.rows import Care
from . import Fitting, LatentRecipe, Plan

log = logging.getLogger("consilience")
MULTIPLES = (0.0, 1.0, 1.5, 2.0, 3.0, 5.0)
# A fifth of the items is hidden at a time, until there are enough of them, or all have been hidden once.
N_PARTS, ENOUGH_ITEMS = 5, 5000
# A fit goes on where inference from the evidence counts more than this share of the answers in other classes.
MOVED, MOST_ROUNDS = 1e-3, 10


@dataclass(frozen=True, eq=False, kw_only=True)
class FieldRecipe(LatentRecipe):
    """How `MarkovField` is fitted."""

    model = "MarkovField"
    structure_type = FieldParameters
    summary_type = FieldSummary
    start_choices = ("dawid-skene", *LatentRecipe.start_choices)
    takes_graph = True

    inference: str
    degree_normalised: bool
    listeners: str

    @property
    def given_coupling(self) -> float | None:
        """The coupling of edges of weight 1; None if it is to be learned."""
        # The paper's couplings differ from edge to edge: they are weights of the graph.
        return {"learn": None, "paper": 1.0}[self.coupling] if isinstance(self.coupling, str) else float(self.coupling)

    def check(self) -> None:
        """Raise an error for a setting with a value that it cannot have."""
        super().check()
        if self.listeners == "unanswered" and self.learns_coupling:
            raise ParameterError(
                "A coupling is learned from items that were answered, and with listeners='unanswered' they do not hear "
                "their neighbours.",
                Sentence("Give {coupling}, such as the one of a fit in which all listen.", coupling=1.0),
                keyword="listeners",
            )
        started = isinstance(self.start, str) and self.start == "dawid-skene"
        if self.max_iter == 0 and (started or self.learns_coupling):
            raise ParameterError(
                "With max_iter=0 nothing is fitted: neither a coupling nor a start from DawidSkene can be found.",
                Sentence("Give {coupling}, and another {start}.", coupling=1.0, start="majority"),
                keyword="max_iter",
            )

    def check_learned(self, found: StructureParameters) -> None:
        """Raise a `ValueError` if what a file says of the field cannot be what the settings call for."""
        field, given = cast(FieldParameters, found), self.given_coupling
        most = MULTIPLES[-1] * MOST_COUPLING / LEAST_UNIT
        agrees = field.coupling <= most if given is None else field.coupling == given and not field.learns
        if not agrees or field.inference != self.inference:
            raise ValueError("the field is not the one that the parameters call for")

    def align(self, r: Answers, graph: object) -> Graph:
        """Return the graph with the items of the answers as its nodes."""
        if graph is None:
            how = Sentence("Give one with {graph}.", graph=Python("graph=cs.Graph.from_edges(source, target)"))
            raise ParameterError("MarkovField needs a graph.", how, keyword="graph")
        if not isinstance(graph, Graph):
            raise parameter_error("graph", "MarkovField", "a consilience.Graph (see Graph.from_edges)", graph)
        return graph.aligned_with(r.items)

    def weigh_links(self, r: Answers, graph: Graph | None) -> Graph:
        """Return a graph over these items with the weights that the settings call for."""
        aligned = cast(Graph, graph)
        # What is the usual weight, and so the largest, depends on the weights that are left.
        while aligned.weights.max(initial=0.0) > (most := most_weight(aligned.weights, self.given_coupling)):
            aligned = replace(aligned, weights=np.minimum(aligned.weights, most))
        if self.degree_normalised:
            root = np.sqrt(np.maximum(aligned.degrees, 1))
            source = np.repeat(np.arange(aligned.n_items), aligned.degrees)
            scale = aligned.degrees.mean() / (root[source] * root[aligned.neighbours])
            aligned = replace(aligned, weights=aligned.weights * scale)
        if self.coupling == "paper":
            aligned = replace(aligned, weights=aligned.weights * paper_couplings(r, aligned))
        if self.listeners == "unanswered":
            # Neighbours tell nothing to items that were answered, which still tell theirs.
            answered = np.repeat(Source(r).find_told(), aligned.degrees)
            aligned = replace(aligned, weights=np.where(answered, 0.0, aligned.weights), directed=True)
        return aligned

    def check_size(self, r: Answers, graph: Graph | None) -> None:
        """Raise an error for a fit that needs more memory than there is."""
        super().check_size(r, graph)
        if self.inference == "belief_propagation":
            check_messages(self.model, r, cast(Graph, graph))

    def make_structure(self, r: Answers) -> Field:
        """Return the field."""
        return Field(*self.structure_parts(r), self.given_coupling, self.inference)

    def plan(self, source: Source, graph: Graph | None, engine: Engine) -> Plan:
        """Return what is to be fitted, and from where, with a coupling that was chosen by hidden items."""
        posed, scores = self.pose(source, self.make_structure(source.responses), graph, engine), list[CouplingScore]()
        apart, fit = self.fit_apart(posed)
        settled = settle(posed, fit) if find_linked(cast(Graph, graph)).any() else posed
        coupling = self.given_coupling
        if self.learns_coupling and self.before is not None and self.before.coupling_scores:
            coupling, scores = self.before.coupling, self.before.coupling_scores
        elif self.learns_coupling:
            _, first = next(self.set_off(source, posed, settled))
            agreeing = self.run_from(settled, first)
            hidden = None if settled is posed else hide_from_fit(Fitting(self, source, apart, fit))
            power = 1.0 if hidden is None else hidden.choose_power()[0].power
            coupling, scores = self.choose_coupling(source, settled, agreeing, power)
        # Without coupling items are independent, and all is learned as `DawidSkene` learns it.
        problem = posed if coupling == 0 else settled
        # All starts go on with the same coupling, so that their objectives can be compared: the field's normaliser,
        # which depends on it, is not known.
        problem = replace(problem, structure=replace(cast(Field, problem.structure), coupling=coupling))
        return Plan(problem, list(self.set_off(source, posed, problem)), scores, (apart, fit))

    def find_coupling(self, problem: Problem, parameters: Parameters) -> float:
        """Return the coupling of an edge of weight 1; by the paper's rule, that of the mean edge."""
        weights = cast(Graph, problem.graph).weights
        mean_weight = float(weights.mean()) if len(weights) else 1.0
        found = cast(FieldParameters, parameters.structure).coupling
        return found * (mean_weight if self.coupling == "paper" else 1.0)

    def fit_unguided(self, source: Source, graph: Graph | None, engine: Engine) -> tuple[Problem, Fit]:
        """Return the problem without features and without the graph, and its fit."""
        # Neighbours would tell an item's label to the classifier that judges it.
        return self.fit_apart(self.pose(source, self.make_structure(source.responses), graph, engine))

    def fit_apart(self, problem: Problem) -> tuple[Problem, Fit]:
        """Return the problem of the same answers to independent items, and its fit from the votes."""
        apart, start = pose_apart(problem, expect_from_votes(problem))
        return apart, self.run_from(apart, start)

    def set_off(self, source: Source, posed: Problem, problem: Problem) -> Iterator[tuple[str, Parameters]]:
        """Yield the starts, each after some first iterations if the prior of the workers was learned.

        These have the prior of the problem as it was `posed`. Under the pseudo-counts of a learned prior, which may be
        many, the workers of a start are all alike, and the first posteriors hardly better than votes.
        """
        r = source.responses
        goes_on = self.before is not None and self.before.starts_there
        if problem.prior.learns == posed.prior.learns or self.max_iter == 0 or goes_on:
            yield from find_starts(self, problem, r)
            return
        early = replace(problem, prior=posed.prior.settle())
        for name, start in find_starts(self, early, r):
            fit = run_em(early, start, min(LEARNING.start, self.max_iter), 0.0, self.callback)
            yield name, maximise(problem, fit.statistics)

    def choose(self, problem: Problem, fits: Mapping[str, Fit]) -> Fit:
        """Return the best fit, to which posteriors that are inferred anew belong.

        Inference goes on from one iteration to the next. With a strong coupling it may end in an optimum that is not
        found again from the evidence, as for results and predictions. Then the fit goes on from what is found there.
        """
        fit = super().choose(problem, fits)
        for _ in range(MOST_ROUNDS):
            anew, counts = problem.expect(fit.parameters).counts, fit.statistics.counts
            if not fit.converged or float(np.abs(anew - counts).sum()) <= 2 * MOVED * float(anew.sum()):
                break
            fit = self.run_from(problem, fit.parameters)
        return fit

    def judge_fit(self, problem: Problem, fit: Fit) -> float:
        """Return how well workers and class prior explain the answers to items that are taken as independent.

        The field's own objective would prefer all labels to be alike.
        """
        apart, learned = pose_apart(problem, fit.statistics)
        alone = fit.parameters._replace(structure=learned.structure)
        return apart.objective(alone, apart.expect(alone))

    def start_apart(self, problem: Problem) -> Parameters:
        """Return what `DawidSkene` finds, as a start for the field."""
        _, found = self.fit_apart(problem)
        summary = FieldSummary(0.0, found.statistics.summary.mass, 0.0)
        return maximise(problem, Statistics(found.statistics.counts, summary), found.parameters.prior)

    def choose_coupling(
        self, source: Source, problem: Problem, fit: Fit, power: float
    ) -> tuple[float, list[CouplingScore]]:
        """Return the coupling that hidden items call for, and how well each was judged.

        Parameters
        ----------
        source, problem
            What is fitted.
        fit : Fit
            A fit in which the coupling was learned by pseudo-likelihood.
        power : float
            The power that calibrates a fit without the graph.
        """
        r, prior = source.responses, fit.parameters.prior
        agreement = cast(FieldParameters, fit.parameters.structure).coupling
        known = None if source.gold is None else source.gold.codes >= 0
        folds = list(hide_items(r, N_PARTS, ENOUGH_ITEMS, self.seed, known))
        if agreement == 0 or not folds:
            return agreement, []
        couplings, by_fold = list_couplings(agreement, power), []
        for number, hidden in enumerate(folds, 1):
            log.info("Choosing the coupling by hidden items: fold %d of %d", number, len(folds))
            rest = self.pose(source.keep(~hidden), problem.structure, problem.graph, problem.engine)
            answer = np.flatnonzero(hidden)
            item, share = r.items_of(answer), None if r.share is None else r.share[answer]
            unit = np.unique(item, return_inverse=True)[1]
            statistics, scores = fit.statistics, []
            for coupling in couplings:  # from weak to strong, each from where the last one ended
                field = replace(cast(Field, problem.structure), coupling=coupling)
                tried = replace(rest, structure=field, prior=prior)
                learned, statistics = self.run_from(tried, maximise(tried, statistics, prior))[:2]
                confusion = tried.workers.plain_mean(learned.workers, statistics.counts, prior)
                by_class, posterior = confusion[r.worker[answer], r.label[answer]], tried.infer(learned)[0]
                scores.append(score_powers(posterior[item], by_class, unit, Care.of(r, answer), share))
            by_fold.append(scores)
        return pick_coupling(couplings, by_fold)


def settle(problem: Problem, apart: Fit) -> Problem:
    """Return the problem with what is found without the graph: the learned prior of the workers, and class shares.

    With the graph, all labels alike and workers who answer at random can be the best fit of all: neighbours then
    agree everywhere. A prior that is learned meanwhile would lead there.
    """
    found = apart.parameters
    shares = cast(IndependentParameters, found.structure)
    structure = replace(cast(Field, problem.structure), unlinked=shares)
    return replace(problem, prior=found.prior.settle(), structure=structure)


def pose_apart(problem: Problem, found: Statistics) -> tuple[Problem, Parameters]:
    """Return the problem of the same answers to independent items, and the parameters that statistics call for."""
    field = cast(Field, problem.structure)
    alone = Independent(field.n_classes, field.fixed_prior, field.smoothing, field.estimation)
    apart = replace(problem, structure=alone, graph=None)
    return apart, maximise(apart, Statistics(found.counts, Summary(0.0, found.summary.mass)))


def paper_couplings(r: Answers, graph: Graph) -> Floats:
    """Return the paper's coupling of each edge: delta / 2, with delta = M, or M_n / 2 where not all workers answer.

    M_n, the number of answers to item n, is not symmetric: the mean of both ends is taken.
    """
    answers = np.bincount(r.votes()[0], minlength=r.n_items)
    if (answers == r.n_workers).all():
        return np.full(len(graph.neighbours), r.n_workers / 2)
    source = np.repeat(answers, graph.degrees)
    return np.asarray((source + answers[graph.neighbours]) / 8)


def list_couplings(agreement: float, power: float) -> list[float]:
    """The multiples of the coupling by pseudo-likelihood that the power of a fit without the graph allows."""
    return [multiple * agreement for multiple in MULTIPLES if multiple <= max(power**-2, 1.0)]


def pick_coupling(couplings: list[float], by_fold: list[list[Floats]]) -> tuple[float, list[CouplingScore]]:
    """The smallest coupling within a standard error of the best, by scores of hidden items in folds; and all scores.

    The scores of a coupling in a fold are the log probabilities of items (N, T) at each power. The power is the one
    that suits all of them.
    """

    def mean_and_error(values: Floats) -> tuple[float, float]:
        return float(values.mean()), float(values.std() / np.sqrt(len(values)))

    at_powers = [np.concatenate(each) for each in zip(*by_fold, strict=True)]
    scores = [each[:, int(each.sum(axis=0).argmax())] for each in at_powers]
    judged = [CouplingScore(c, *mean_and_error(each)) for c, each in zip(couplings, scores, strict=True)]
    best = max(scores, key=lambda each: float(each.mean()))
    near = [mean_and_error(best - each) for each in scores]
    return next(c for c, (gap, error) in zip(couplings, near, strict=True) if gap <= error), judged
