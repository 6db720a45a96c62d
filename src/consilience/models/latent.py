"""Models with a hidden truth, fitted by the EM loop: everything but the choice of structure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.graph import Graph
from ..data.responses import Responses
from ..distributions import ESTIMATIONS
from ..engines.base import Engine
from ..errors import ConvergenceWarning, ParameterError, Sentence, warn
from ..fitting.em import Fit, Parameters, Problem, Progress, Statistics, infer_left_out, infer_posterior, run_em
from ..fitting.moments import MomentFit
from ..kernels.types import Floats, freeze
from ..specs import OBJECTIVES, ArraySpec
from ..structures.base import AnyStructure, StructureParameters
from ..workers.base import Prior
from ..workers.confusion import smoothing_array
from ..workers.learned import make_pair
from ..workers.register import WORKERS
from .calibration import POWERS, Calibration, choose_folds, choose_power, near, raise_to, score_gold, score_powers
from .checks import PAIR, check_choice, check_number, checked_smoothing, fixed_prior
from .held_out import count_units, hide_answers
from .predicting import GoldCodes, PredictingModel, part_of
from .starts import find_starts, is_start

Starts = list[tuple[str, Parameters]]


class LatentModel(PredictingModel):
    """A hidden label per item, a structure over the labels, and workers who answer as their worker model says."""

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
    smoothing_: tuple[float, float] | None

    @abstractmethod
    def _make_structure(self, r: Responses) -> AnyStructure:
        """Return the structure, from the parameters."""

    def _learn(self, r: Responses, graph: Graph | None, gold: GoldCodes, engine: Engine) -> None:
        self._fit_structure(r, self._make_structure(r), graph, gold, engine)

    def _fit_structure(
        self,
        r: Responses,
        structure: AnyStructure,
        graph: Graph | None,
        gold: GoldCodes,
        engine: Engine,
        more_starts: Callable[[Problem, Statistics], Starts] | None = None,
    ) -> None:
        """Run the loop from every start, and keep the fit with the highest objective.

        `more_starts` returns further starts that go with the votes, from the problem and the votes' statistics.
        """
        problem = self._pose(r, structure, graph, gold, engine)
        fits = {
            name: run_em(problem, start, self.max_iter, self.tol, self.callback)
            for name, start in find_starts(self, problem, r, more_starts)
        }
        best = max(fits.values(), key=lambda fit: fit.objective)
        self._warn_of_iterations(best, r.n_responses)
        found = Calibration(1.0, "none")

        def calibrate(posterior: Floats) -> Floats:
            nonlocal found
            found, reported = self._calibrate(r, problem, best, posterior, gold)
            return reported

        self._keep(r, problem, best.parameters, best.statistics, calibrate)
        self.power_, self.calibration_ = found.power, found
        self.trace_, self.n_iter_, self.converged_ = best.trace, best.n_iter, best.converged
        self.starts_ = {name: fit.trace for name, fit in fits.items()}
        self.smoothing_ = best.parameters.prior.pair or given_pair(self.smoothing)

    def _pose(
        self, r: Responses, structure: AnyStructure, graph: Graph | None, gold: GoldCodes, engine: Engine
    ) -> Problem:
        """Return what is to be fitted, its blocks placed."""
        workers = WORKERS[self.workers].of(r, r.class_of_label, r.n_classes)

        def prior_of(smoothing: Floats) -> Prior:
            return workers.prior(smoothing, self.estimation, r.vote_shares())

        prior = prior_of(checked_smoothing(self, r))
        if self._learns_smoothing():
            # Worker models are linear in the pair as long as the diagonal is the larger one.
            low, high = (
                prior_of(smoothing_array((1.0, diagonal), r.class_of_label, r.n_classes, r.n_workers)).smoothing
                for diagonal in (2.0, 3.0)
            )
            prior = make_pair(prior, (freeze(3.0 * low - 2.0 * high), freeze(high - low)))
        return self._place(r, workers, prior, structure, graph, gold, engine)

    def _calibrate(
        self, r: Responses, problem: Problem, fit: Fit, posterior: Floats, gold: GoldCodes
    ) -> tuple[Calibration, Floats]:
        """Return how posteriors are calibrated, and the calibrated ones."""
        if self.calibration == "none":
            return Calibration(1.0, "none"), posterior
        left_out = infer_left_out(problem, fit.parameters, fit.statistics, posterior)
        if not isinstance(self.calibration, str):
            found = Calibration(float(self.calibration), "given")
        else:
            found = self._choose_power(r, problem, fit, posterior, gold)
        return found, raise_to(left_out, found.power)

    def _choose_power(
        self, r: Responses, problem: Problem, fit: Fit, posterior: Floats, gold: GoldCodes
    ) -> Calibration:
        power, n_hidden, source = 1.0, 0, "nothing to judge by"
        if self.calibration == "hidden answers" and not r.silence_counts and count_units(r) > 1:
            power, n_hidden = self._choose_by_hidden(r, problem, fit, gold)
            source = "hidden answers"
        if gold is not None:
            known = np.flatnonzero(gold >= 0)
            unknown = infer_left_out(problem, fit.parameters, fit.statistics, posterior, use_gold=False)
            scores = score_gold(gold[known], unknown[known])
            if self.calibration == "hidden answers":
                scores = scores + near(power)
            return Calibration(float(POWERS[scores.argmax()]), "gold", n_hidden, len(known))
        return Calibration(power, source, n_hidden)

    def _choose_by_hidden(
        self, r: Responses, problem: Problem, fit: Fit, gold: GoldCodes
    ) -> tuple[float, int]:
        """Return the power at which hidden answers are predicted best, and their number."""
        scores, n_hidden = [], 0
        settled = fit.parameters.prior._replace(parts=None)
        share, n_folds = choose_folds(count_units(r))
        for hidden, _ in hide_answers(r, share, self.seed, n_folds):
            posed = self._pose(r.keep(~hidden), problem.structure, problem.graph, gold, problem.engine)
            posed = replace(posed, prior=settled)
            found = run_em(posed, fit.parameters._replace(prior=settled), self.max_iter, self.tol)
            factors = posed.factors(found.parameters.workers)
            posterior, _ = infer_posterior(posed.engine, posed.placed, factors, found.parameters.structure, posed.graph)
            left_out = infer_left_out(posed, found.parameters, found.statistics, posterior)
            confusion = posed.workers.plain_mean(found.parameters.workers, found.statistics.counts, settled)
            scores.append(score_powers(r, hidden, left_out, confusion))
            n_hidden += int(hidden.sum())
        return choose_power(np.concatenate(scores)), n_hidden

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

    def _check_parameters(self) -> None:
        check_choice(self, "workers", tuple(WORKERS))
        check_choice(self, "estimation", ESTIMATIONS)
        check_number(self, "n_init", 1, whole=True)
        check_number(self, "max_iter", 0, whole=True)
        check_number(self, "tol", 0)
        check_number(self, "seed", 0, whole=True)
        if self.max_iter == 0 and (self.n_init > 1 or (isinstance(self.start, str) and self.start == "best")):
            raise ParameterError(
                "With max_iter=0 nothing is fitted, and starts cannot be compared.",
                Sentence("Choose one start, with {n_init}.", n_init=1),
                keyword="max_iter",
            )

    def _structure_from_moments(
        self,
        r: Responses,  # noqa: ARG002 (chains look at neighbouring answers)
        structure: AnyStructure,
        found: MomentFit,
    ) -> StructureParameters:
        """Return what moments say of the structure: the class prior."""
        started: StructureParameters = structure.given(found.prior)
        return started


def given_pair(smoothing: Any) -> tuple[float, float] | None:
    """Return the pair (off diagonal, diagonal) that a parameter stands for; None for an array."""
    if isinstance(smoothing, str):
        return PAIR
    array = np.asarray(smoothing, dtype=np.float64)
    if array.ndim > 1:
        return None
    off, diagonal = np.broadcast_to(array, 2).tolist()
    return off, diagonal
