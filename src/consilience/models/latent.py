"""Models with a hidden truth, fitted by the EM loop: everything but the choice of structure."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.responses import Responses
from ..data.vocabulary import Column
from ..distributions import ESTIMATIONS, Estimate
from ..errors import ConvergenceWarning, ParameterError
from ..fitting.em import (
    Parameters,
    Problem,
    Progress,
    Statistics,
    Structure,
    StructureParameters,
    Workers,
    run_em,
)
from ..fitting.moments import MomentFit
from ..kernels.types import Floats
from ..workers.confusion import ConfusionWorkers
from ..workers.sequential import SequentialWorkers
from .base import check_choice, check_number
from .inputs import as_responses
from .predicting import PredictingModel
from .settings import checked_smoothing, fixed_prior
from .starts import find_starts
from .worker_report import describe_dependence


class LatentModel(PredictingModel):
    """A hidden label per item, a structure over the labels, and workers who answer by their confusion matrices."""

    _start_choices: tuple[str, ...] = ("majority", "moments", "best")

    workers: str
    estimation: str
    prior: Any
    smoothing: Any
    start: Any
    n_init: int
    max_iter: int
    tol: float
    seed: int
    callback: Callable[[Progress], object] | None

    starts_: dict[str, Floats]
    sequential_confusion_: Floats
    _sequential_counts: Floats  # (M, L + 1, L, K): expected counts by the worker's previous answer

    @abstractmethod
    def _make_structure(self, r: Responses, fixed_prior: Floats | None, smoothing: float) -> Structure:
        """Return the structure, from the settings."""

    def fit(self, responses: Any, graph: Any = None, gold: Any = None, engine: Any = None) -> Self:
        """Learn labels, class prior and confusion matrices from the answers alone.

        Parameters
        ----------
        responses : Responses or table
            The answers; a table is read with `Responses.from_frame`.
        graph : None
            Not used by this model.
        gold : dict, Series or table, optional
            Known labels: {item: label}, or a table with columns item and label. Their items keep them.
        engine : optional
            Where to work; see `consilience.engines`.

        Returns
        -------
        self
        """
        self._check_settings()
        self._refuse_graph(graph)
        return self._fit(as_responses(responses), gold, engine)

    def _fit(self, r: Responses, gold: Any, engine: Any) -> Self:
        problem = self._pose(r, gold, engine)
        fits = {
            name: run_em(problem, start, self.max_iter, self.tol, self.callback)
            for name, start in find_starts(self, problem, r)
        }
        best = max(fits.values(), key=lambda fit: fit.objective)
        if self.tol > 0 and self.max_iter > 0 and not best.converged:
            gain = (best.trace[-1] - best.trace[-2]) / max(r.n_responses, 1)
            warnings.warn(
                f"{type(self).__name__} stopped after {self.max_iter} iterations while its objective still gained "
                f"{gain:.1e} per answer. Raise max_iter, or accept it with a higher tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._keep(r, problem, best.parameters, best.statistics)
        self.trace_, self.n_iter_, self.converged_ = best.trace, best.n_iter, best.converged
        self.starts_ = {name: fit.trace for name, fit in fits.items()}
        return self

    def _pose(self, r: Responses, gold: Any, engine: Any) -> Problem:
        """Return what is to be fitted, its blocks placed."""
        smoothing = checked_smoothing(self, r)
        workers = self._make_workers(r, r.class_of_label, r.n_classes, smoothing)
        structure = self._make_structure(r, fixed_prior(self, r), float(smoothing.min()))
        return self._place(r, workers, structure, gold, engine)

    def _make_workers(
        self, r: Responses, class_of_label: NDArray[np.int64], n_classes: int, smoothing: Floats
    ) -> Workers:
        if self.workers == "sequential":
            if r.silence_counts:
                raise ParameterError("workers='sequential' cannot take silence for an answer: use 'confusion'.")
            return SequentialWorkers(r.n_workers, class_of_label, n_classes, smoothing, self.estimation)
        return ConfusionWorkers(
            r.n_workers, class_of_label, n_classes, smoothing, self.estimation, silent=r.silence_counts
        )

    def _keep(self, r: Responses, problem: Problem, learned: Parameters, statistics: Statistics) -> None:
        super()._keep(r, problem, learned, statistics)
        if self.workers == "sequential":
            shape = (r.n_workers, r.n_labels + 1, r.n_labels, r.n_classes)
            by_previous = learned.workers.mean.reshape(shape)
            self.sequential_confusion_ = np.ascontiguousarray(by_previous.transpose(0, 1, 3, 2))
            self._sequential_counts = statistics.counts.reshape(shape)

    def _reported(self) -> Estimate:
        if self.workers != "sequential":
            return super()._reported()
        by_previous = self.sequential_confusion_.transpose(0, 1, 3, 2)
        mean = np.ascontiguousarray(by_previous.reshape(-1, *by_previous.shape[2:]))
        with np.errstate(divide="ignore"):
            return Estimate(mean, np.log(mean), mean, 0.0)

    def _report_columns(self) -> dict[str, Column]:
        columns = super()._report_columns()
        if self.workers == "sequential":
            names = (self.answer_labels_, self.classes_)
            columns |= describe_dependence(self._sequential_counts, self.sequential_confusion_, *names)
        return columns

    def _state(self) -> dict[str, NDArray[Any]]:
        state = super()._state() | {f"start {name}": trace for name, trace in self.starts_.items()}
        if self.workers == "sequential":
            state |= {"sequential_confusion": self.sequential_confusion_, "sequential_counts": self._sequential_counts}
        return state

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.starts_ = {name.removeprefix("start "): arrays[name] for name in arrays if name.startswith("start ")}
        if self.workers == "sequential":
            self.sequential_confusion_ = arrays["sequential_confusion"]
            self._sequential_counts = arrays["sequential_counts"]

    def _check_settings(self) -> None:
        check_choice(self, "workers", ("confusion", "sequential"))
        check_choice(self, "estimation", ESTIMATIONS)
        check_number(self, "n_init", 1, whole=True)
        check_number(self, "max_iter", 0, whole=True)
        check_number(self, "tol", 0)
        check_number(self, "seed", 0, whole=True)
        if self.max_iter == 0 and (self.n_init > 1 or (isinstance(self.start, str) and self.start == "best")):
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and starts cannot be compared: choose one start, with n_init=1."
            )

    def _more_starts(
        self,
        problem: Problem,  # noqa: ARG002 (chains need it)
        votes: Statistics,  # noqa: ARG002
    ) -> list[tuple[str, Parameters]]:
        """Return other starts that begin with the votes, named."""
        return []

    def _structure_from_moments(
        self,
        r: Responses,  # noqa: ARG002 (chains look at neighbouring answers)
        structure: Any,
        found: MomentFit,
    ) -> StructureParameters:
        """Return what moments say of the structure: for independent items, the class prior."""
        started: StructureParameters = structure.given(found.prior)
        return started
