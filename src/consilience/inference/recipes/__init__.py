"""Recipes: how each model is fitted. Here is what all have in common, and the recipe of models with a hidden truth.

A recipe holds the settings of a model and never changes. It says which answers the model takes, which problem the loop
solves, from where it starts, and which of several fits is the best. `consilience.results.fitting` follows it.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.graph import Graph
from ...arguments import is_among
from ...engines.base import Engine
from ...errors import ConvergenceWarning, InputError, ParameterError, Python, Sentence, parameter_error, plural, warn
from ...kernels import Floats
from ...options import check as check_option
from ..classifiers import check_classifier
from ..copies import find_copies
from ..em import Fit, Parameters, Problem, Progress, expect_from_votes, maximise, run_em
from ..learned import Before, CouplingScore, as_used
from ..levels import check_order, choose_labels
from ..moments import MomentFit, strongest_answers
from ..preconditions import (
    FIT_TABLES,
    HIDING_TABLES,
    check_matrices,
    check_posteriors,
    checked_smoothing,
    fixed_prior,
)
from ..sources import Source, list_groups
from ..structures import AnyStructure, StructureParameters, Summary
from ..structures.independent import Independent
from ..workers import WORKERS, voters
from ..workers.base import WorkerModel
from ..workers.confusion import ConfusionWorkers
from ..workers.ordinal import N_TYPES, OrdinalWorkers
from ..workers.priors import Prior, smoothing_array
from ..workers.types import STRENGTHS, WorkerTypes

# Pseudo-counts (off diagonal, diagonal) of matrices that are made of votes.
VOTE_SMOOTHING = (0.1, 1.1)
# Items added to each level of a scale. The answers hardly tell a level from its neighbours: with less than one, a level
# can lose all of its items to them, and the others seem surer than they are.
ONE_OF_EACH = 1.0
# How long the plain fit lasts by which copies are judged.
PLAIN_ITERATIONS, PLAIN_TOL = 30, 1e-4


class Plan(NamedTuple):
    """What is to be fitted, and from where."""

    problem: Problem
    starts: list[tuple[str, Parameters]]
    coupling_scores: list[CouplingScore] = []  # noqa: RUF012 (it is never changed)
    apart: tuple[Problem, Fit] | None = None  # of fields: the same answers to independent items, and the fit to them


@dataclass(frozen=True, eq=False, kw_only=True)
class Recipe(ABC):
    """The settings of a model, and what they mean for a fit. Settings have the names of the model's parameters."""

    model: ClassVar[str]  # the name of the model's class
    structure_type: ClassVar[type[StructureParameters]]
    summary_type: ClassVar[type[Summary]] = Summary
    start_choices: ClassVar[tuple[str, ...]] = ()
    #: Whether the model is fitted to a graph.
    takes_graph: ClassVar[bool] = False
    #: Whether features and priors of items have a say.
    takes_content: ClassVar[bool] = False
    #: Whether answers to predict from must take silence as those of the fit did.
    needs_same_silence: ClassVar[bool] = True

    label_by: str = "mode"

    def explain_stop(self, trace: Floats, n_responses: int) -> ConvergenceWarning | None:
        """Return the warning that a fit stopped before it settled; None if it need not settle."""
        return None

    @property
    def rule(self) -> str:
        """What may decide a label beside known ones: "median" or "sequence"; "" where only the probability does."""
        return "" if self.label_by == "mode" else self.label_by

    def label_items(self, posterior: Floats) -> NDArray[np.int64]:
        """Return the label of each item, by probabilities that are reported."""
        return choose_labels(posterior, self.label_by)

    def check(self) -> None:
        """Raise an error for a setting with a value that it cannot have."""
        for field in fields(self):
            check_option(field.name, getattr(self, field.name), self.model)

    def check_learned(self, found: StructureParameters) -> None:  # noqa: B027 (fields look at it)
        """Raise a `Fault` if what a file says of the structure cannot be what the settings call for."""

    def check_content(self, features: object, item_prior: object) -> None:
        """Raise an error for what is known of the items beside their answers, if the model cannot use that."""
        if not self.takes_content and not (features is None and item_prior is None):
            raise ParameterError(
                f"{self.model} takes neither features nor priors of items.",
                Sentence("Choose another, such as {model}.", model=Python("DawidSkene()", "dawid-skene")),
                keyword="model",
            )

    def check_answers(self, r: Answers) -> Answers:
        """Return the answers, if the model can take them."""
        if self.label_by == "median":
            check_order(r.classes, r.positions)
        return r

    def prepare(self, r: Answers) -> Answers:
        """Return the answers with the classes that the model needs, for a fit."""
        return self.check_answers(r)

    def align(self, r: Answers, graph: object) -> Graph | None:
        """Return the graph with the items of the answers as its nodes; None for models that take none."""
        if graph is not None:
            raise ParameterError(
                f"{self.model} takes no graph.",
                Sentence("Leave out {graph}."),
                Sentence("Or use {model}.", model=Python("MarkovField", "markov-field")),
                keyword="graph",
            )
        return None

    def weigh_links(self, r: Answers, graph: Graph | None) -> Graph | None:
        """Return a graph over these items with the weights that the settings call for."""
        return graph

    def check_size(self, r: Answers, graph: Graph | None) -> None:
        """Raise an error for a fit that needs more memory than there is."""
        check_posteriors(self.model, r)

    def find_copies(self, source: Source, engine: Engine) -> list[list[int]]:
        """Return the groups of near-copies, each by the indices of its workers."""
        found = source.task.find_copies(source.responses)
        if found is not None:
            return found

        def fit_plain(part: Answers, known: NDArray[np.int32] | None) -> tuple[Floats, Floats]:
            workers = ConfusionWorkers.of(part, part.class_of_label, part.n_classes)
            smoothing = smoothing_array(VOTE_SMOOTHING, part.class_of_label, part.n_classes, part.n_workers)
            prior = workers.prior(smoothing, "em", part.vote_shares())
            structure = Independent(part.n_classes, None, VOTE_SMOOTHING[0], "em")
            problem = place(Source.of_codes(part, known), workers, prior, structure, None, engine)
            start = maximise(problem, expect_from_votes(problem))
            found = run_em(problem, start, PLAIN_ITERATIONS, PLAIN_TOL).parameters
            return found.structure.mean, found.workers.mean

        gold = None if source.gold is None else source.gold.codes
        return list_groups(find_copies(strongest_answers(source.responses), gold, fit_plain))

    def pose_votes(self, source: Source, graph: Graph | None, engine: Engine) -> Problem:
        """Return the problem of independent items and confusion matrices, for models that only need the votes."""
        r = source.responses
        smoothing = smoothing_array(VOTE_SMOOTHING, r.class_of_label, r.n_classes, r.n_workers)
        structure = Independent(r.n_classes, None, 0.0, "em")
        return place(source, voters(r), Prior(smoothing, "em"), structure, graph, engine)

    def conclude(self, problem: Problem, learned: Parameters) -> Floats:
        """Return the posteriors that belong to the estimates."""
        return problem.infer(learned._replace(workers=as_used(learned.workers.log_weights)))[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class LatentRecipe(Recipe):
    """A hidden label per item, a structure over the labels, and workers who answer as their worker model says."""

    start_choices: ClassVar[tuple[str, ...]] = ("majority", "moments", "best")
    takes_content = True

    workers: str
    estimation: str
    prior: Any
    smoothing: Any
    calibration: Any
    classifier: Any
    start: Any
    n_init: int
    max_iter: int
    tol: float
    seed: int
    callback: Callable[[Progress], object] | None
    coupling: Any = None  # of neighbours, in models that have some
    before: Before | None = None  # of a fit that goes on
    worker_types: WorkerTypes | None = None  # what the workers' answers to other questions say of them

    @property
    def learns_coupling(self) -> bool:
        """Whether a coupling of neighbours is to be learned."""
        return isinstance(self.coupling, str) and self.coupling == "learn"

    #: Whether labels that are tags follow a chain, so that spans among them can be judged.
    follows_tags: ClassVar[bool] = False

    def find_coupling(self, problem: Problem, parameters: Parameters) -> float | None:
        """Return how strongly neighbours are coupled; None where items are independent of each other."""
        return None

    def check(self) -> None:
        """Raise an error for a setting with a value that it cannot have."""
        super().check()
        if not is_among(self.workers, tuple(WORKERS)):
            expected = f"one of {', '.join(map(repr, WORKERS))}"
            raise parameter_error("workers", self.model, expected, self.workers)
        check_classifier(self)
        if self.max_iter == 0 and (self.n_init > 1 or (isinstance(self.start, str) and self.start == "best")):
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and starts cannot be compared.",
                Sentence("Choose one start, with {n_init}.", n_init=1),
                keyword="max_iter",
            )

    def check_size(self, r: Answers, graph: Graph | None) -> None:
        """Raise an error for a fit that needs more memory than there is."""
        super().check_size(r, graph)
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        hides = self.max_iter > 0 and self.calibration == "hidden answers"
        check_matrices(self.model, workers, r, HIDING_TABLES if hides else FIT_TABLES)
        if isinstance(workers, OrdinalWorkers) and workers.are_too_many(r):
            raise InputError(
                f"{self.model} would compare {workers.describe_size()} with {N_TYPES * len(STRENGTHS)} types of "
                f"workers, which takes too long for {plural(r.n_responses, 'answer')}.",
                Sentence("Use {workers}.", workers="confusion"),
                "Or merge levels.",
                keyword="workers",
            )

    @abstractmethod
    def make_structure(self, r: Answers) -> AnyStructure:
        """Return the structure that the settings call for."""

    def structure_parts(self, r: Answers) -> tuple[int, Floats | None, float, str]:
        """Return what every structure is made of: number of classes, fixed prior if any, smoothing, estimation."""
        smoothing = float(checked_smoothing(self, r).min())
        if self.workers == OrdinalWorkers.name and isinstance(self.smoothing, str):
            smoothing = max(smoothing, ONE_OF_EACH)
        return r.n_classes, fixed_prior(self, r), smoothing, self.estimation

    def pose(self, source: Source, structure: AnyStructure, graph: Graph | None, engine: Engine) -> Problem:
        """Return what is to be fitted, its blocks placed."""
        r = source.responses
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        prior = workers.prior(checked_smoothing(self, r), self.estimation, r.vote_shares())
        learns = isinstance(self.smoothing, str) and self.smoothing == "learn" and self.estimation == "variational"
        if learns and not prior.learns:
            prior = workers.begin_learning(prior, r)
        if self.worker_types is not None:
            prior = self.worker_types.give_to(prior, r.workers)
        return place(source, workers, prior, structure, graph, engine)

    @abstractmethod
    def plan(self, source: Source, graph: Graph | None, engine: Engine) -> Plan:
        """Return what is to be fitted, and from where."""

    def fit_unguided(self, source: Source, graph: Graph | None, engine: Engine) -> tuple[Problem, Fit]:
        """Return the problem without features, and its fit, from which a classifier learns."""
        plan = self.plan(source, graph, engine)
        return plan.problem, self.choose(plan.problem, self.run(plan))

    def run_from(self, problem: Problem, start: Parameters) -> Fit:
        """Run the loop from a start."""
        return run_em(problem, start, self.max_iter, self.tol, self.callback, problem.budget)

    def run(self, plan: Plan) -> dict[str, Fit]:
        """Run the loop from every start."""
        return {name: self.run_from(plan.problem, start) for name, start in plan.starts}

    def choose(self, problem: Problem, fits: Mapping[str, Fit]) -> Fit:
        """Return the fit with the highest objective."""
        every = list(fits.values())
        return every[0] if len(every) == 1 else max(every, key=lambda fit: self.judge_fit(problem, fit))

    def judge_fit(self, problem: Problem, fit: Fit) -> float:
        """Return by what fits from different starts are compared."""
        return fit.objective

    def find_raised(self, r: Answers) -> NDArray[np.bool_]:
        """Tell of which items the posterior is raised to a power."""
        return np.ones(r.n_items, bool)

    def structure_from_moments(self, r: Answers, structure: AnyStructure, found: MomentFit) -> StructureParameters:
        """Return what moments say of the structure: the class prior."""
        started: StructureParameters = structure.given(found.prior)
        return started

    def start_apart(self, problem: Problem) -> Parameters:
        """Return what independent items call for, as a start; for models that have such a start."""
        raise NotImplementedError

    def explain_stop(self, trace: Floats, n_responses: int) -> ConvergenceWarning | None:
        """Return the warning that a fit stopped before it settled; None if it was not asked to settle."""
        if len(trace) < 2 or self.tol <= 0 or self.max_iter <= 0:
            return None
        gain = (trace[-1] - trace[-2]) / max(n_responses, 1)
        return ConvergenceWarning(
            f"{self.model} stopped after {self.max_iter} iterations while its objective still gained {gain:.1e} per "
            "answer.",
            Sentence("Allow more with {max_iter}.", max_iter=2 * self.max_iter),
            Sentence("Or accept the fit with a higher {tol}."),
            keyword="max_iter",
        )

    def warn_of_iterations(self, fit: Fit, n_responses: int) -> None:
        """Say that a fit stopped before it settled."""
        warning = None if fit.converged else self.explain_stop(fit.trace, n_responses)
        if warning is not None:
            warn(warning)


class Fitting(NamedTuple):
    """A recipe, the answers and the problem that it was followed on, and the fit that it led to."""

    recipe: LatentRecipe
    source: Source
    problem: Problem
    fit: Fit


def place(
    source: Source,
    workers: WorkerModel,
    prior: Prior,
    structure: AnyStructure,
    graph: Graph | None,
    engine: Engine,
) -> Problem:
    """Return what is to be fitted, its blocks cut and put where they will be worked on."""
    r, placed = source.responses, engine.place(source.lay_out(workers))
    weighted = r.weight is not None or r.share is not None
    # A field goes on from one iteration to the next with more than its parameters.
    budget, known = None if graph is not None else r.budget, cast(tuple[Any, ...], ())
    if budget is not None:
        names = workers.name, type(structure).__name__, prior.estimation, r.classes.tolist()
        codes = None if source.gold is None else source.gold.codes
        known = codes, source.log_prior, r.share, r.positions, structure, zlib.crc32(repr(names).encode())
    return Problem(
        engine, placed, workers, prior, structure, graph, r.n_responses, weighted, r.vote_shares(), budget, known
    )
