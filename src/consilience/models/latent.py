"""Models with a hidden truth, fitted by the EM loop: everything but the choice of structure."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..blocks import cut_blocks, freeze
from ..engines.base import resolve_engine
from ..errors import ConvergenceWarning, DataWarning, InputError, NotFittedError, listing, parameter_error
from ..estimation import ESTIMATIONS, Estimate
from ..fitting.em import (
    Fit,
    Parameters,
    Problem,
    Progress,
    Structure,
    StructureParameters,
    expect_from_votes,
    infer_posterior,
    maximise,
    run_em,
)
from ..gold import match_gold
from ..kernels.types import Floats
from ..responses import Responses
from ..vocabulary import lookup, to_column
from ..workers.confusion import ConfusionWorkers, smoothing_array
from ..workers.rows import make_table
from .base import Model, check_choice, check_number
from .inputs import as_responses
from .majority_vote import overall_shares

STARTS = ("majority",)


class LatentModel(Model):
    """A hidden label per item, a structure over the labels, and workers who answer by their confusion matrices."""

    _arrays = (*Model._arrays, "_log_weights")

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

    _log_weights: Floats  # (M, L, K): what the E-step uses
    _structure_parameters: StructureParameters
    starts_: dict[str, Floats]

    #: The NamedTuple that holds what the structure learned.
    _structure_type: type[Any]

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
            warnings.warn(
                f"{type(self).__name__} stopped after {self.max_iter} iterations while its objective still gained "
                f"{(best.trace[-1] - best.trace[-2]) / r.n_responses:.1e} per answer. Raise max_iter, or tol to accept it.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._keep(best, problem, r)
        self.starts_ = {name: fit.trace for name, fit in fits.items()}
        return self

    def predict_proba(self, responses: Any, graph: Any = None, gold: Any = None) -> Floats:
        """Return class probabilities of other items answered by the same workers.

        A worker who was not there at the fit is taken to answer as the crowd does on the whole, with a warning.
        Returns the same as `posterior_` for the answers (and gold) of the fit.
        """
        self._check_fitted()
        self._refuse_graph(graph)
        estimate = Estimate(np.exp(self._log_weights), self._log_weights, self._log_weights, 0.0)
        return self._infer(as_responses(responses), gold, estimate, self._structure_parameters)[0]

    def score(self, responses: Any, graph: Any = None, gold: Any = None) -> float:
        """Return the mean log likelihood of an item's answers (and gold label), at the reported parameters."""
        self._check_fitted()
        self._refuse_graph(graph)
        r = as_responses(responses)
        mean = np.ascontiguousarray(self.confusion_.transpose(0, 2, 1))
        with np.errstate(divide="ignore"):
            estimate = Estimate(mean, np.log(mean), mean, 0.0)
        return self._infer(r, gold, estimate, self._structure_parameters.point())[1] / r.n_items

    def _infer(
        self, r: Responses, gold: Any, estimate: Estimate, structure: StructureParameters
    ) -> tuple[Floats, float]:
        """Return posteriors and log likelihood of answers under given parameters of this model's workers."""
        label = lookup(self.answer_labels_, to_column(r.labels))
        if (label < 0).any():
            raise InputError(
                f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
                f"model knows {listing(self.answer_labels_.tolist())}. Fit again with both."
            )
        worker = lookup(self.workers_, to_column(r.workers))
        rows = self._rows_for(worker, estimate)
        if (worker < 0).any():
            warnings.warn(
                f"{int((worker < 0).sum()):,} of {r.n_workers:,} workers were not there at the fit: "
                f"{listing(r.workers[worker < 0].tolist())}. They are taken to answer as the crowd does on the whole.",
                DataWarning,
                stacklevel=4,
            )
        chosen = Estimate(*(np.ascontiguousarray(part[:, label]) for part in rows), bound=0.0)
        named = lookup(self.classes_, to_column(r.labels))
        workers = ConfusionWorkers(r.n_workers, named, len(self.classes_), np.empty((1, 0, 0)), self.estimation)
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows, match_gold(gold, r, self.classes_))
        engine = resolve_engine(None)
        return infer_posterior(engine, blocks, make_table(chosen, r.weight is not None), structure)

    def _rows_for(self, worker: NDArray[np.int64], estimate: Estimate) -> tuple[Floats, Floats, Floats]:
        """Return weights, log weights and means of the given workers; the pooled matrix for index -1."""
        total = self._counts.sum(axis=0) + self._smoothing_used()
        pooled = (total / total.sum(axis=0, keepdims=True))[None]
        with np.errstate(divide="ignore"):
            parts = (pooled, np.log(pooled), pooled)
        # Index -1 picks the last row, where the pool stands.
        return tuple(  # type: ignore[return-value]
            np.concatenate([known, pool])[worker] for known, pool in zip(estimate[:3], parts, strict=True)
        )

    def _keep(self, fit: Fit, problem: Problem, r: Responses) -> None:
        """Store what was learned in the attributes users read."""
        workers, structure = fit.parameters
        table = make_table(workers, problem.weighted)
        self._remember(r)
        self.classes_ = r.classes
        self.posterior_, _ = infer_posterior(problem.engine, problem.placed, table, structure)
        self._label_codes = self.posterior_.argmax(axis=1)
        self.prior_ = structure.mean
        self.confusion_ = np.ascontiguousarray(workers.mean.transpose(0, 2, 1))
        self.trace_ = fit.trace
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        self._counts = fit.statistics.counts.reshape(workers.mean.shape)
        self._log_weights = workers.log_weights
        self._structure_parameters = structure

    def _state(self) -> dict[str, NDArray[Any]]:
        structure: Any = self._structure_parameters
        parts = {f"structure {name}": np.asarray(value) for name, value in structure._asdict().items()}
        traces = {f"start {name}": trace for name, trace in self.starts_.items()}
        return super()._state() | parts | traces

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        fields = {name: arrays[f"structure {name}"] for name in self._structure_type._fields}
        self._structure_parameters = self._structure_type(
            **{name: value.item() if value.ndim == 0 else freeze(value) for name, value in fields.items()}
        )
        self.starts_ = {name.removeprefix("start "): arrays[name] for name in arrays if name.startswith("start ")}

    def _smoothing_used(self) -> Floats:
        named = lookup(self.classes_, to_column(self.answer_labels_))
        return smoothing_array(self.smoothing, named, len(self.classes_), len(self.workers_)).mean(axis=0)

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
            hint = str(error) if "shape" in str(error) else expected
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
        expected = f"'learn', 'uniform' or {r.n_classes} probabilities that sum to 1 (classes: {listing(r.classes)})"
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
        first: tuple[str, Parameters]
        if isinstance(self.start, str):
            check_choice(self, "start", STARTS)
            first = ("majority", by_vote)
        elif isinstance(self.start, Model):
            first = ("model", self._start_from_model(self.start, workers, r, by_vote))
        else:
            first = ("given", Parameters(workers.given(self._given_confusion(r)), by_vote.structure))
        rng = np.random.default_rng(self.seed)
        more = [
            (f"random {i}", Parameters(workers.given(_random_confusion(rng, by_vote.workers.mean)), by_vote.structure))
            for i in range(1, self.n_init)
        ]
        return [first, *more]

    def _start_from_model(
        self, model: Model, workers: ConfusionWorkers, r: Responses, by_vote: Parameters
    ) -> Parameters:
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
        confusion[known] = model.confusion_[worker[known]][:, k][:, :, label]
        confusion /= confusion.sum(axis=2, keepdims=True)
        return Parameters(workers.given(confusion), by_vote.structure)

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
