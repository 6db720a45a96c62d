"""Models with a hidden truth, fitted by the EM loop: everything but the choice of structure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..data.gold import Gold
from ..data.graph import Graph
from ..data.responses import Responses
from ..distributions import ESTIMATIONS
from ..engines.base import Engine
from ..errors import ConvergenceWarning, ParameterError, Sentence, warn
from ..fitting.em import Fit, Parameters, Problem, Progress, run_em
from ..fitting.moment_effort import Effort, estimate_moments
from ..fitting.moments import MomentFit
from ..kernels.types import Floats, freeze
from ..specs import DISTRIBUTIONS, ENDS, OBJECTIVES, ArraySpec
from ..structures.base import AnyStructure, StructureParameters
from ..workers.base import WorkerModel
from ..workers.confusion import smoothing_array
from ..workers.learned import make_pair
from ..workers.register import WORKERS
from .calibration import Calibration, Judged, are_findings, calibrate, check_calibration, raise_to
from .checks import (
    PAIR,
    check_callback,
    check_choice,
    check_number,
    checked_smoothing,
    fixed_prior,
    given_pair,
    is_pair,
)
from .intervals import find_intervals
from .predicting import PredictingModel, part_of
from .sizes import FIT_TABLES, HIDING_TABLES, START_TABLES, check_matrices
from .starts import find_starts, is_start

Starts = list[tuple[str, Parameters]]


class LatentModel(PredictingModel):
    """A hidden label per item, a structure over the labels, and workers who answer as their worker model says."""

    _start_choices: tuple[str, ...] = ("majority", "moments", "best")

    workers: str
    estimation: str
    prior: Any
    smoothing: Any
    calibration: Any
    start: Any
    n_init: int
    max_iter: int
    tol: float
    seed: int
    callback: Callable[[Progress], object] | None

    starts_: dict[str, Floats]
    smoothing_: tuple[float, float] | None
    uncalibrated_posterior_: Floats
    calibration_: Calibration
    _hidden: list[Judged]  # the hidden answers of the fit; they are not saved

    _arrays: ClassVar[Mapping[str, ArraySpec]] = {
        **PredictingModel._arrays,
        "uncalibrated_posterior_": ArraySpec("N K", DISTRIBUTIONS),
        "_worker_intervals": ArraySpec("M 4", ENDS),
    }
    _scalars: ClassVar[Mapping[str, Callable[[Any], bool]]] = {
        **PredictingModel._scalars,
        "smoothing_": is_pair,
        "calibration_": are_findings,
    }

    @property
    def power_(self) -> float:
        """The power that posteriors were raised to."""
        self._check_fitted()
        return self.calibration_.power

    def _settled(self) -> Self:
        copy = super()._settled()
        if self._is_fitted() and copy.calibration != "none":
            copy.calibration = self.power_
        return copy

    def explain_calibration(self) -> str:
        """Say in words how the probabilities were calibrated."""
        self._check_fitted()
        return self.calibration_.describe()

    def predict_proba(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Floats:
        """Return class probabilities of other items answered by the same workers.

        A worker who was not there at the fit is taken to answer as the crowd does on the whole, with a warning.
        Posteriors are raised to the same power as those of the fit. With ``calibration="none"`` this is `posterior_`
        for the answers (and gold, and graph) of the fit; otherwise posteriors of fitted items leave the item itself out
        of what was learned, which other items need not.

        Parameters
        ----------
        responses, graph, gold, engine
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
        """
        is_calibrated = not isinstance(self.calibration, str) or self.calibration != "none"
        r, posterior = self._infer(responses, graph, gold, engine, is_calibrated)
        return self._calibrate(r, posterior, self.calibration_.power)

    def _calibrate(self, r: Responses, posterior: Floats, power: float) -> Floats:  # noqa: ARG002 (others look at it)
        """Return the posteriors of these answers raised to a power."""
        return raise_to(posterior, power)

    @abstractmethod
    def _make_structure(self, r: Responses) -> AnyStructure:
        """Return the structure, from the parameters."""

    def _check_size(self, r: Responses, graph: Graph | None) -> None:
        super()._check_size(r, graph)
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        n_tables = FIT_TABLES if self.max_iter > 1 else START_TABLES
        if self.max_iter > 0 and self.calibration == "hidden answers":
            n_tables = HIDING_TABLES
        check_matrices(type(self).__name__, workers, r.n_items, n_tables)

    def _learn(self, r: Responses, graph: Graph | None, gold: Gold | None, engine: Engine) -> None:
        problem = self._pose(r, self._make_structure(r), graph, gold, engine)
        self._fit_from(r, problem, find_starts(self, problem, r), gold)

    def _fit_from(self, r: Responses, problem: Problem, starts: Starts, gold: Gold | None) -> None:
        """Run the loop from every start, and keep the fit with the highest objective."""
        fits = {name: run_em(problem, start, self.max_iter, self.tol, self.callback) for name, start in starts}
        best = (
            max(fits.values(), key=lambda fit: self._judge_fit(problem, fit)) if len(fits) > 1 else fits[starts[0][0]]
        )
        self._warn_of_iterations(best, r.n_responses)
        posterior, label_codes = self._conclude(r, problem, best.parameters)
        found, reported, confidence, self._hidden = calibrate(self, r, problem, best, posterior, gold)
        estimates = self._gather_estimates(r, problem, best.parameters, best.statistics, gold)
        intervals = find_intervals(r, posterior, label_codes, estimates, confidence)
        self._keep(r, problem, best.parameters, best.statistics, reported, label_codes, intervals)
        self.uncalibrated_posterior_, self.calibration_ = posterior, found
        self.trace_, self.n_iter_, self.converged_ = best.trace, best.n_iter, best.converged
        self.starts_ = {name: fit.trace for name, fit in fits.items()}
        self.smoothing_ = best.parameters.prior.pair or given_pair(self.smoothing)

    def _judge_fit(self, problem: Problem, fit: Fit) -> float:  # noqa: ARG002
        """Return by what fits from different starts are compared."""
        return fit.objective

    def _pose(
        self, r: Responses, structure: AnyStructure, graph: Graph | None, gold: Gold | None, engine: Engine
    ) -> Problem:
        """Return what is to be fitted, its blocks placed."""
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)
        prior = workers.prior(checked_smoothing(self, r), self.estimation, r.vote_shares())
        if self._learns_smoothing():
            prior = make_pair(prior, split_prior(workers, r))
        return self._place(r, workers, prior, structure, graph, gold, engine)

    def _learns_smoothing(self) -> bool:
        return isinstance(self.smoothing, str) and self.smoothing == "learn" and self.estimation == "variational"

    def _structure_parts(self, r: Responses) -> tuple[int, Floats | None, float, str]:
        """Return what every structure is made of: number of classes, fixed prior if any, smoothing, estimation."""
        return r.n_classes, fixed_prior(self, r), float(checked_smoothing(self, r).min()), self.estimation

    def _warn_of_iterations(self, fit: Fit, n_responses: int) -> None:
        if self.tol > 0 and self.max_iter > 0 and not fit.converged:
            gain = (fit.trace[-1] - fit.trace[-2]) / max(n_responses, 1)
            warn(
                ConvergenceWarning(
                    f"{type(self).__name__} stopped after {self.max_iter} iterations while its objective still gained "
                    f"{gain:.1e} per answer.",
                    Sentence("Allow more with {max_iter}.", max_iter=2 * self.max_iter),
                    Sentence("Or accept the fit with a higher {tol}."),
                    keyword="max_iter",
                )
            )

    def _state(self) -> dict[str, NDArray[Any]]:
        return super()._state() | {f"start {name}": trace for name, trace in self.starts_.items()}

    def _specs(self, names: Iterable[str]) -> dict[str, ArraySpec]:
        starts = [name for name in names if name.startswith("start ") and is_start(name.removeprefix("start "))]
        return super()._specs(names) | dict.fromkeys(starts, ArraySpec("*", OBJECTIVES))

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.starts_ = part_of(arrays, "start ")
        self.smoothing_ = None if self.smoothing_ is None else (self.smoothing_[0], self.smoothing_[1])
        self.calibration_ = Calibration(*self.calibration_)

    def _check_parameters(self) -> None:
        check_choice(self, "workers", tuple(WORKERS))
        check_choice(self, "estimation", ESTIMATIONS)
        check_calibration(self)
        check_number(self, "n_init", 1, whole=True)
        check_number(self, "max_iter", 0, whole=True)
        check_number(self, "tol", 0)
        check_number(self, "seed", 0, whole=True)
        check_callback(self)
        if self.max_iter == 0 and (self.n_init > 1 or (isinstance(self.start, str) and self.start == "best")):
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and starts cannot be compared.",
                Sentence("Choose one start, with {n_init}.", n_init=1),
                keyword="max_iter",
            )

    def _estimate_moments(self, answers: Responses) -> Effort:
        """Return what a start from moments will take."""
        return estimate_moments(answers)

    def _structure_from_moments(
        self,
        r: Responses,  # noqa: ARG002 (chains look at neighbouring answers)
        structure: AnyStructure,
        found: MomentFit,
    ) -> StructureParameters:
        """Return what moments say of the structure: the class prior."""
        started: StructureParameters = structure.given(found.prior)
        return started


def split_prior(workers: WorkerModel, r: Responses) -> tuple[Floats, Floats, Floats]:
    """Return the parts of pseudo-counts that a learned pair multiplies, and the part that stays; see `Prior`.

    Classes that no answer can mean keep the pseudo-counts of EM. Those of a learned prior may be many, and such a class
    would then be as good an explanation of any answer as the other classes.
    """
    unvoted = r.vote_shares()
    meant = (r.label_of_class >= 0) | (unvoted > 0)

    def at(off: float, diagonal: float) -> Floats:
        smoothing = smoothing_array((off, diagonal), r.class_of_label, r.n_classes, r.n_workers)
        return workers.prior(np.where(meant, smoothing, PAIR[0]), "variational", unvoted).smoothing

    # Worker models are linear in the pair as long as the diagonal is the larger one.
    low, high, both = at(1.0, 2.0), at(1.0, 3.0), at(2.0, 3.0)
    off, diagonal = both - high, high - low
    return freeze(off), freeze(diagonal), freeze(low - off - 2.0 * diagonal)
