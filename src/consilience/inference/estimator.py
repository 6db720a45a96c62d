"""Estimators: their parameters, and what a fit makes of them.

An estimator is its parameters: keyword arguments, stored as they are given, and checked when `fit` is called. Models
are estimators, and add what users call.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..engines import Engine
from ..errors import (
    ConvergenceWarning,
    InputError,
    NotFittedError,
    ParameterError,
    Sentence,
    listing,
    parameter_error,
    plural,
    shorten,
)
from ..kernels import Floats, freeze
from ..limits import NUMBER, are_allowed
from ..options import check as check_option
from .em import Fit, Parameters, Problem, Progress, place, run_em
from .hidden_answers import CouplingScore
from .labels import check_order
from .moments import MomentFit
from .observations import Observations
from .starts import (
    FIT_TABLES,
    HIDING_TABLES,
    MERGE,
    NAME_CLASSES,
    PAIR,
    POSTERIOR_TABLES,
    SMOOTHING_RANGE,
    check_matrices,
    find_starts,
    fixed_prior,
    require_numbers,
)
from .structures import IndependentParameters, Structure, StructureParameters, Summary
from .workers import WORKERS
from .workers.base import smoothing_array

# What every structure is made of: the number of classes, a fixed prior if there is one, smoothing, and estimation.
Parts: TypeAlias = tuple[int, Floats | None, float, str]
FittedResult = TypeVar("FittedResult")
AnyEstimator = TypeVar("AnyEstimator", bound="Estimator")


class Estimator:
    """Something with parameters: scikit-learn's conventions without scikit-learn."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (scikit-learn's signature)
        """Return the parameters."""
        return {name: getattr(self, name) for name in list_defaults(type(self))}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; return the model itself."""
        known = list_defaults(type(self))
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {listing(known, 20)}.")
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Make what `sklearn.base.clone` should: the same parameters. A model to start from stays fitted."""
        return renew(self)

    def _check(self) -> None:
        """Raise an error for a parameter with a value that it cannot have."""
        for name in list_defaults(type(self)):
            check_option(name, getattr(self, name), type(self).__name__)


class Fitted(Estimator, Generic[FittedResult]):
    """An estimator with the result of its fit."""

    _result: FittedResult | None = None

    @property
    def result_(self) -> FittedResult:
        """All that was found, as one frozen object."""
        if self._result is None:
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet. Call fit(responses) first.")
        return self._result

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a result, for scikit-learn."""
        return self._result is not None

    def __repr__(self) -> str:
        return describe_call(self) if self._result is None else f"{describe_call(self)}: {self._describe()}"

    @abstractmethod
    def _describe(self) -> str:
        """The result in a few words."""


def list_defaults(kind: type[Estimator]) -> dict[str, Any]:
    """The parameters of an estimator with their defaults."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def renew(model: AnyEstimator, **parameters: Any) -> AnyEstimator:
    """An unfitted copy with the same parameters, except for those given."""
    return type(model)(**{**model.get_params(), **parameters})


def describe_call(model: Estimator) -> str:
    """How an estimator is made: its name, and the parameters that are not the default."""
    changed, defaults = [], list_defaults(type(model))
    for name, value in model.get_params().items():
        default = defaults[name]
        # By their text, for a tuple may hold arrays, which have no one answer to ==.
        if value is default or (type(value) is type(default) and repr(value) == repr(default)):
            continue
        if isinstance(value, np.ndarray):
            text = f"<array {'x'.join(map(str, value.shape))}>"
        else:
            text = f"<{type(value).__name__}>" if isinstance(value, Estimator) else shorten(value, 200)
        changed.append(f"{name}={text}")
    return f"{type(model).__name__}({', '.join(changed)})"


class LabelEstimator(Estimator, ABC):
    """An estimator of labels from answers. Names that begin with an underscore are for the package itself."""

    #: The parameters of the structure that the model finds, and what one pass over the data adds up to.
    _structure_type: ClassVar[type[StructureParameters]] = IndependentParameters
    _summary_type: ClassVar[type[Summary]] = Summary
    #: Whether the model is fitted to a graph.
    _takes_graph: ClassVar[bool] = False
    #: Whether features and priors of items are used.
    _takes_content: ClassVar[bool] = False
    #: Whether answers to predict from must take silence as those of the fit did.
    _needs_same_silence: ClassVar[bool] = True

    label_by: str = "mode"

    @property
    def _rule(self) -> str:
        """The rule that decides labels: "median" or "sequence"; "" for the most probable class."""
        return "" if self.label_by == "mode" else self.label_by

    def _prepare(self, r: Answers) -> Answers:
        """The answers with the classes that the model needs; an error for answers that it cannot take."""
        if self.label_by == "median":
            check_order(r.classes, r.positions)
        return r

    def _weigh_links(self, r: Answers, graph: Graph) -> Graph:  # noqa: ARG002
        """A graph over these items with the weights that the parameters call for."""
        return graph

    def _check_size(self, r: Answers, graph: Graph | None) -> None:  # noqa: ARG002
        """Raise an error for a fit that needs more memory or time than there is."""
        n_numbers = r.n_items * r.n_classes
        n_bytes = NUMBER * POSTERIOR_TABLES * n_numbers
        if not are_allowed(n_bytes, "probabilities", n_numbers, r.n_responses):
            what = f"{plural(r.n_items, 'item')} x {r.n_classes:,} classes"
            remedies = MERGE, NAME_CLASSES, "Or fuse the items in several parts."
            problem = f"{type(self).__name__} needs probabilities for {what}"
            require_numbers("probabilities", n_numbers, n_bytes, r, problem, remedies)

    @abstractmethod
    def _learn(
        self, observations: Observations, graph: Graph | None, engine: Engine, *args: Any, **further: Any
    ) -> Any:
        """The `FitResult`: what is learned from answers, of which a `Result` is made."""


class Plan(NamedTuple):
    """A problem, and the parameters that the loop starts from."""

    problem: Problem
    starts: dict[str, Parameters]
    coupling_scores: list[CouplingScore] = []  # noqa: RUF012 (it is never changed)
    apart: tuple[Problem, Fit] | None = None  # of fields: the same answers to independent items, and the fit to them


@dataclass(kw_only=True, eq=False, repr=False)
class LatentEstimator(LabelEstimator):
    """A hidden label per item, a structure over the labels, and workers who answer as their worker model says."""

    _takes_content: ClassVar[bool] = True
    _start_choices: ClassVar[tuple[str, ...]] = ("majority", "moments", "best")
    #: Whether labels follow a chain, so that spans among them can be judged.
    _is_chain: ClassVar[bool] = False

    workers: str = "confusion"
    estimation: str = "variational"
    prior: Any = "learn"
    smoothing: Any = "learn"
    calibration: str | float = "hidden answers"
    label_by: str = "mode"
    start: Any = "majority"
    n_init: int = 1
    max_iter: int = 200
    tol: float = 1e-5
    seed: int = 0
    callback: Callable[[Progress], object] | None = None

    @property
    def _learns_coupling(self) -> bool:
        """Whether a coupling of neighbours is to be learned."""
        coupling = getattr(self, "coupling", None)
        return isinstance(coupling, str) and coupling == "learn"

    @abstractmethod
    def _make_structure(self, observations: Observations, parts: Parts) -> Structure:
        """The structure that the parameters call for."""

    def _plan(self, observations: Observations, graph: Graph | None, engine: Engine) -> Plan:
        """A problem, and the parameters that the loop starts from."""
        problem = self._make_problem(observations, graph, engine)
        return Plan(problem, find_starts(self, problem, observations))

    def _start_from_moments(self, r: Answers, structure: Structure, moments: MomentFit) -> StructureParameters:  # noqa: ARG002
        """The parameters of the structure by moments: the class prior."""
        started: StructureParameters = structure.given(moments.prior)
        return started

    def _choose(self, problem: Problem, fits: Mapping[str, Fit]) -> Fit:  # noqa: ARG002
        """The fit with the highest objective."""
        return max(fits.values(), key=lambda fit: float(fit.trace[-1]))

    def _fit_without_features(
        self, observations: Observations, graph: Graph | None, engine: Engine
    ) -> tuple[Problem, Fit]:
        """The problem without features, and its fit, from which a classifier learns."""
        plan = self._plan(observations, graph, engine)
        fits = {name: self._run(plan.problem, start) for name, start in plan.starts.items()}
        return plan.problem, self._choose(plan.problem, fits)

    def _run(self, problem: Problem, start: Parameters) -> Fit:
        """The loop from a start."""
        return run_em(problem, start, self.max_iter, self.tol, self.callback, problem.budget)

    def _make_problem(self, observations: Observations, graph: Graph | None, engine: Engine) -> Problem:
        """The problem that the parameters call for, with its blocks cut and placed."""
        r = observations.responses
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        expected = "a number >= 0, a pair (off diagonal, diagonal), an array (classes, labels) or 'learn'"
        may_learn, name = isinstance(self.smoothing, str) and self.smoothing == "learn", type(self).__name__
        given = PAIR if may_learn else self.smoothing
        try:
            pseudo_counts = smoothing_array(given, r.class_of_label, r.n_classes, r.n_workers)
        except (TypeError, ValueError, OverflowError) as error:
            hint = str(error) if str(error).startswith("an array of shape") else expected
            raise parameter_error("smoothing", name, hint, self.smoothing) from error
        if not np.isfinite(pseudo_counts).all() or (pseudo_counts < 0).any():
            raise parameter_error("smoothing", name, expected, self.smoothing)
        if self.estimation == "variational" and (pseudo_counts <= 0).any():
            expected = "greater than 0 with estimation='variational' (for no smoothing at all use estimation='em')"
            raise parameter_error("smoothing", name, expected, self.smoothing)
        pseudo_counts = freeze(np.where(pseudo_counts > 0, np.clip(pseudo_counts, *SMOOTHING_RANGE), 0.0))
        learns = may_learn and self.estimation == "variational"
        prior = workers.prior(pseudo_counts, self.estimation, r.vote_shares(), learns)
        if observations.worker_types is not None:
            prior = observations.worker_types.give_to(prior, r.workers)
        smoothing = float(pseudo_counts.min())
        least, many = workers.added_items
        if isinstance(self.smoothing, str) and r.n_classes > many:
            smoothing = max(smoothing, least)
        structure = self._make_structure(observations, (r.n_classes, fixed_prior(self, r), smoothing, self.estimation))
        return place(observations, workers, prior, structure, graph, engine)

    def _check(self) -> None:
        super()._check()
        name = type(self).__name__
        if not isinstance(self.workers, str) or self.workers not in WORKERS:
            raise parameter_error("workers", name, f"one of {', '.join(map(repr, WORKERS))}", self.workers)

    def _check_size(self, r: Answers, graph: Graph | None) -> None:
        super()._check_size(r, graph)
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        hides = self.max_iter > 0 and self.calibration == "hidden answers"
        check_matrices(type(self).__name__, workers, r, HIDING_TABLES if hides else FIT_TABLES)
        if workers.n_types and workers.are_too_many(r):
            types = f"{workers.n_types} types of workers"
            raise InputError(
                f"{type(self).__name__} would compare {workers.describe_size()} with {types}, which takes too long.",
                Sentence("Use {workers}.", workers="confusion"),
                "Or merge levels.",
                keyword="workers",
            )


def explain_stop(model: Estimator) -> ConvergenceWarning | None:
    """The warning that a fit stopped before it settled; None if it need not settle."""
    asked = model.get_params()
    if asked.get("tol", 0) <= 0 or asked["max_iter"] <= 0:
        return None
    return ConvergenceWarning(
        f"{type(model).__name__} stopped after {asked['max_iter']} iterations before it settled.",
        Sentence("Allow more with {max_iter}.", max_iter=2 * asked["max_iter"]),
        Sentence("Or accept the fit with a higher {tol}."),
        keyword="max_iter",
    )
