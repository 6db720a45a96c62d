"""Models with a hidden truth, fitted by the EM loop: everything but the choice of structure."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..blocks import cut_blocks
from ..engines.base import resolve_engine
from ..errors import ConvergenceWarning, InputError, NotFittedError, listing, parameter_error
from ..estimation import ESTIMATIONS
from ..fitting.em import (
    Parameters,
    Problem,
    Progress,
    Structure,
    expect,
    expect_from_votes,
    maximise,
    run_em,
)
from ..gold import match_gold
from ..kernels.types import Floats
from ..responses import Responses
from ..vocabulary import lookup, to_column
from ..workers.confusion import ConfusionWorkers, smoothing_array
from .base import Model, check_choice, check_number
from .inputs import as_responses
from .majority_vote import overall_shares
from .predicting import PredictingModel

STARTS = ("majority",)


class LatentModel(PredictingModel):
    """A hidden label per item, a structure over the labels, and workers who answer by their confusion matrices."""

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

    @abstractmethod
    def _make_structure(self, n_classes: int, fixed_prior: Floats | None, smoothing: float) -> Structure:
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
        r = as_responses(responses)
        smoothing = self._smoothing(r)
        workers = ConfusionWorkers(r.n_workers, r.class_of_label, r.n_classes, smoothing, self.estimation)
        structure = self._make_structure(r.n_classes, self._fixed_prior(r), float(smoothing.min()))
        known = match_gold(gold, r, r.classes)
        chosen = resolve_engine(engine)
        placed = chosen.place(cut_blocks(r, workers.encode(r), workers.n_rows, known))
        problem = Problem(chosen, placed, workers, structure, r.n_responses, r.weight is not None)

        fits = {
            name: run_em(problem, start, self.max_iter, self.tol, self.callback)
            for name, start in self._starts(problem, workers, r)
        }
        best = max(fits.values(), key=lambda fit: fit.objective)
        if self.tol > 0 and not best.converged:
            gain = (best.trace[-1] - best.trace[-2]) / max(r.n_responses, 1)
            warnings.warn(
                f"{type(self).__name__} stopped after {self.max_iter} iterations while its objective still gained "
                f"{gain:.1e} per answer. Raise max_iter, or accept it with a higher tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._keep(r, best.parameters.workers, best.parameters.structure, best.statistics, smoothing)
        self._keep_posterior(chosen, placed, problem.weighted)
        self.trace_, self.n_iter_, self.converged_ = best.trace, best.n_iter, best.converged
        self.starts_ = {name: fit.trace for name, fit in fits.items()}
        return self

    def _state(self) -> dict[str, NDArray[Any]]:
        return super()._state() | {f"start {name}": trace for name, trace in self.starts_.items()}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.starts_ = {name.removeprefix("start "): arrays[name] for name in arrays if name.startswith("start ")}

    def _check_settings(self) -> None:
        check_choice(self, "workers", ("confusion",))
        check_choice(self, "estimation", ESTIMATIONS)
        check_number(self, "n_init", 1, whole=True)
        check_number(self, "max_iter", 1, whole=True)
        check_number(self, "tol", 0)
        check_number(self, "seed", 0, whole=True)

    def _smoothing(self, r: Responses) -> Floats:
        owner = type(self).__name__
        expected = "a number >= 0, a pair (off diagonal, diagonal) or an array (classes, labels)"
        try:
            smoothing = smoothing_array(self.smoothing, r.class_of_label, r.n_classes, r.n_workers)
        except (TypeError, ValueError) as error:
            hint = str(error) if str(error).startswith("an array of shape") else expected
            raise parameter_error("smoothing", owner, hint, self.smoothing) from error
        if not np.isfinite(smoothing).all() or (smoothing < 0).any():
            raise parameter_error("smoothing", owner, expected, self.smoothing)
        if self.estimation == "variational" and (smoothing <= 0).any():
            expected = "greater than 0 with estimation='variational' (for no smoothing at all use estimation='em')"
            raise parameter_error("smoothing", owner, expected, self.smoothing)
        return smoothing

    def _fixed_prior(self, r: Responses) -> Floats | None:
        if isinstance(self.prior, str) and self.prior == "learn":
            return None
        if isinstance(self.prior, str) and self.prior == "uniform":
            return np.full(r.n_classes, 1 / r.n_classes)
        names = listing(r.classes.tolist())
        expected = f"'learn', 'uniform' or {r.n_classes} probabilities that sum to 1 (classes: {names})"
        try:
            prior = np.asarray(self.prior, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise parameter_error("prior", type(self).__name__, expected, self.prior) from error
        if prior.shape != (r.n_classes,) or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-6:
            raise parameter_error("prior", type(self).__name__, expected, self.prior)
        return np.asarray(prior / prior.sum())

    def _starts(self, problem: Problem, workers: ConfusionWorkers, r: Responses) -> list[tuple[str, Parameters]]:
        """Return the named parameters to start from: the one asked for, then random ones."""
        by_vote = maximise(problem, expect_from_votes(problem, overall_shares(r)))

        def from_matrices(confusion: Floats) -> Parameters:
            # What is given has no place on the scale of the objective, for it has no bound; the posteriors it leads to
            # do, as vote shares do.
            return maximise(problem, expect(problem, Parameters(workers.given(confusion), by_vote.structure)))

        first: tuple[str, Parameters]
        if isinstance(self.start, str):
            check_choice(self, "start", STARTS)
            first = ("majority", by_vote)
        elif isinstance(self.start, Model):
            first = ("model", from_matrices(self._confusion_of_model(self.start, r, by_vote)))
        else:
            first = ("given", from_matrices(self._given_confusion(r)))
        rng = np.random.default_rng(self.seed)
        more = [
            (f"random {i}", from_matrices(_random_confusion(rng, by_vote.workers.mean))) for i in range(1, self.n_init)
        ]
        return [first, *more]

    def _confusion_of_model(self, model: Model, r: Responses, by_vote: Parameters) -> Floats:
        """Return a fitted model's matrices for the workers it knows, the vote's for the others."""
        if not model._is_fitted():
            raise NotFittedError(f"start= is a {type(model).__name__} that is not fitted yet. Fit it first.")
        label = lookup(model.answer_labels_, to_column(r.labels))
        k = lookup(model.classes_, to_column(r.classes))
        if (label < 0).any() or (k < 0).any():
            raise InputError(
                "The model given as start= does not know all labels and classes of these answers: it has "
                f"{listing(model.answer_labels_.tolist())}."
            )
        worker = lookup(model.workers_, to_column(r.workers))
        confusion = by_vote.workers.mean.transpose(0, 2, 1).copy()
        known = worker >= 0
        found = model.confusion_[worker[known]][:, k][:, :, label]
        mass = found.sum(axis=2, keepdims=True)
        # A worker who, by that model, never says any of these labels: the vote knows better.
        confusion[known] = np.divide(found, mass, out=confusion[known], where=mass > 0)
        return confusion

    def _given_confusion(self, r: Responses) -> Floats:
        shape = (r.n_workers, r.n_classes, r.n_labels)
        expected = (
            f"'majority', a fitted model, or an array of confusion matrices of shape {shape} "
            "(workers, classes, labels) whose rows sum to 1"
        )
        try:
            confusion = np.asarray(self.start, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise parameter_error("start", type(self).__name__, expected, self.start) from error
        if confusion.shape == shape[1:]:
            confusion = np.broadcast_to(confusion, shape)
        if (
            confusion.shape != shape
            or not (confusion >= 0).all()
            or not np.allclose(confusion.sum(axis=2), 1, atol=1e-6)
        ):
            raise parameter_error("start", type(self).__name__, expected, self.start)
        return confusion


def _random_confusion(rng: np.random.Generator, mean: Floats) -> Floats:
    """Return the vote's matrices, blurred: half of each is a random distribution."""
    confusion = mean.transpose(0, 2, 1)
    noise = rng.dirichlet(np.ones(confusion.shape[2]), size=confusion.shape[:2])
    return 0.5 * confusion + 0.5 * noise
