"""Models whose learned parameters can be applied to other items of the same workers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block, cut_blocks
from ..data.gold import match_gold
from ..data.responses import Responses
from ..data.vocabulary import lookup, to_column
from ..distributions import Estimate
from ..engines.base import resolve_engine
from ..errors import DataWarning, InputError, listing
from ..fitting.em import Parameters, Problem, Statistics, Structure, StructureParameters, Workers, infer_posterior
from ..kernels.types import Floats, freeze
from ..workers.confusion import ConfusionWorkers
from ..workers.rows import RowTable
from .base import Model
from .inputs import as_gold, as_responses


class PredictingModel(Model):
    """A model that knows each worker's confusion matrix and how labels hang together."""

    _arrays = (*Model._arrays, "_log_weights", "_pooled")

    _log_weights: Floats  # (M, L, K): what the E-step uses
    _pooled: Floats  # (1, L, K): how the crowd answers on the whole
    _structure_parameters: StructureParameters

    #: Whether silence can be an answer to this model.
    _hears_silence = True
    #: The NamedTuple that holds what the structure learned.
    _structure_type: type[Any]

    def predict_proba(self, responses: Any, graph: Any = None, gold: Any = None) -> Floats:
        """Return class probabilities of other items answered by the same workers.

        A worker who was not there at the fit is taken to answer as the crowd does on the whole, with a warning.
        Returns the same as `posterior_` for the answers (and gold) of the fit.
        """
        self._check_fitted()
        self._refuse_graph(graph)
        return self._infer(as_responses(responses), gold, self._learned(), self._structure_parameters)[0]

    def score(self, responses: Any, graph: Any = None, gold: Any = None) -> float:
        """Return the mean log likelihood of an item's answers (and gold label), at the reported parameters."""
        self._check_fitted()
        self._refuse_graph(graph)
        r = as_responses(responses)
        return self._infer(r, gold, self._reported(), self._structure_parameters.point())[1] / r.n_items

    def _infer(self, r: Responses, gold: Any, known: Estimate, structure: StructureParameters) -> tuple[Floats, float]:
        """Return posteriors and log likelihood of answers under given parameters of this model's workers."""
        blocks, table = self._apply(r, gold, known)
        return infer_posterior(resolve_engine(None), blocks, table, structure)

    def _apply(self, r: Responses, gold: Any, known: Estimate) -> tuple[list[Block], RowTable]:
        """Return other answers in blocks, and what this model knows of their workers as a table."""
        label = lookup(self.answer_labels_, to_column(r.labels))
        if (label < 0).any():
            raise InputError(
                f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
                f"model knows {listing(self.answer_labels_.tolist())}. Fit again with both."
            )
        takes_silence = self.confusion_.shape[2] > len(self.answer_labels_)
        if self._hears_silence and r.silence_counts != takes_silence:
            raise InputError("The answers must take silence as the fit did: read them with the same abstain= setting.")
        worker = lookup(self.workers_, to_column(r.workers))
        if (worker < 0).any():
            warnings.warn(
                f"{int((worker < 0).sum()):,} of {r.n_workers:,} workers were not there at the fit: "
                f"{listing(r.workers[worker < 0].tolist())}. They are taken to answer as the crowd does on the whole.",
                DataWarning,
                stacklevel=4,
            )
        named = lookup(self.classes_, to_column(r.labels))
        workers = self._make_workers(r, named, len(self.classes_), np.empty((1, 0, 0)))
        with np.errstate(divide="ignore"):
            crowd = (self._pooled, np.log(self._pooled), self._pooled)
        weights, log_weights, mean = (
            workers.adopt(own, pool, worker, label) for own, pool in zip(known[:3], crowd, strict=True)
        )
        found = Estimate(weights, log_weights, mean, 0.0)
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows, match_gold(as_gold(gold), r, self.classes_))
        return blocks, workers.table(found, r.weight is not None)

    def _make_workers(
        self, r: Responses, class_of_label: NDArray[np.int64], n_classes: int, smoothing: Floats
    ) -> Workers:
        """Return the worker model, from the settings."""
        return ConfusionWorkers(r.n_workers, class_of_label, n_classes, smoothing, "em")

    def _place(self, r: Responses, workers: Workers, structure: Structure, gold: Any, engine: Any) -> Problem:
        """Return what is to be fitted, its blocks cut and put where they will be worked on."""
        chosen = resolve_engine(engine)
        placed = chosen.place(cut_blocks(r, workers.encode(r), workers.n_rows, match_gold(as_gold(gold), r, r.classes)))
        return Problem(chosen, placed, workers, structure, r.n_responses, r.weight is not None, r.vote_shares())

    def _learned(self) -> Estimate:
        """Return what the E-step uses."""
        return _as_used(self._log_weights)

    def _reported(self) -> Estimate:
        """Return the matrices that users see, as the E-step takes them."""
        mean = np.ascontiguousarray(self.confusion_.transpose(0, 2, 1))
        with np.errstate(divide="ignore"):
            return Estimate(mean, np.log(mean), mean, 0.0)

    def _keep(self, r: Responses, problem: Problem, learned: Parameters, statistics: Statistics) -> None:
        """Infer posteriors, and store all that was learned in the attributes users read.

        What may be interrupted comes first: a model is fitted to one set of answers or to another, never to both.
        """
        workers = problem.workers
        posterior, label_codes = self._conclude(problem, learned)
        self._remember(r)
        self.posterior_, self._label_codes = posterior, label_codes
        self.classes_ = r.classes
        self.prior_ = learned.structure.mean
        self.confusion_ = np.ascontiguousarray(
            workers.plain_mean(learned.workers, statistics.counts).transpose(0, 2, 1)
        )
        self._counts = workers.plain_counts(statistics.counts)
        self._log_weights = learned.workers.log_weights
        self._pooled = workers.crowd(statistics.counts, statistics.summary.mass)
        self._structure_parameters = learned.structure

    def _conclude(self, problem: Problem, learned: Parameters) -> tuple[Floats, NDArray[np.int64]]:
        """Return the posteriors and the label of each item that belong to the parameters learned."""
        table = problem.workers.table(_as_used(learned.workers.log_weights), problem.weighted)
        posterior, _ = infer_posterior(problem.engine, problem.placed, table, learned.structure)
        return posterior, posterior.argmax(axis=1)

    def _state(self) -> dict[str, NDArray[Any]]:
        structure: Any = self._structure_parameters
        parts = {
            f"structure {name}": np.asarray(value)
            for name, value in structure._asdict().items()
            if isinstance(value, (np.ndarray, float, bool, str))
        }
        return super()._state() | parts

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        fields = {name.removeprefix("structure "): arrays[name] for name in arrays if name.startswith("structure ")}
        self._structure_parameters = self._structure_type.restored(
            **{name: value.item() if value.ndim == 0 else freeze(value) for name, value in fields.items()}
        )


def _as_used(log_weights: Floats) -> Estimate:
    """Return weights as the E-step takes them, in `fit` for the last time and in `predict_proba`: so both agree."""
    return Estimate(np.exp(log_weights), log_weights, log_weights, 0.0)
