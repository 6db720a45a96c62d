"""Models whose learned parameters can be applied to other items of the same workers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import cut_blocks, freeze
from ..engines.base import Engine, resolve_engine
from ..errors import DataWarning, InputError, listing
from ..estimation import Estimate, estimate
from ..fitting.em import Statistics, StructureParameters, infer_posterior
from ..gold import match_gold
from ..kernels.types import Floats
from ..responses import Responses
from ..vocabulary import lookup, to_column
from ..workers.confusion import ConfusionWorkers
from ..workers.rows import make_table
from .base import Model
from .inputs import as_responses


class PredictingModel(Model):
    """A model that knows each worker's confusion matrix and how labels hang together."""

    _arrays = (*Model._arrays, "_log_weights", "_pooled")

    _log_weights: Floats  # (M, L, K): what the E-step uses
    _pooled: Floats  # (1, L, K): how the crowd answers on the whole
    _structure_parameters: StructureParameters

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
        mean = np.ascontiguousarray(self.confusion_.transpose(0, 2, 1))
        with np.errstate(divide="ignore"):
            reported = Estimate(mean, np.log(mean), mean, 0.0)
        return self._infer(r, gold, reported, self._structure_parameters.point())[1] / r.n_items

    def _infer(self, r: Responses, gold: Any, known: Estimate, structure: StructureParameters) -> tuple[Floats, float]:
        """Return posteriors and log likelihood of answers under given parameters of this model's workers."""
        label = lookup(self.answer_labels_, to_column(r.labels))
        if (label < 0).any():
            raise InputError(
                f"The answers hold labels that did not occur at the fit: {listing(r.labels[label < 0].tolist())}. The "
                f"model knows {listing(self.answer_labels_.tolist())}. Fit again with both."
            )
        worker = lookup(self.workers_, to_column(r.workers))
        if (worker < 0).any():
            warnings.warn(
                f"{int((worker < 0).sum()):,} of {r.n_workers:,} workers were not there at the fit: "
                f"{listing(r.workers[worker < 0].tolist())}. They are taken to answer as the crowd does on the whole.",
                DataWarning,
                stacklevel=3,
            )
        with np.errstate(divide="ignore"):
            crowd = (self._pooled, np.log(self._pooled), self._pooled)
        # Index -1 picks the last matrix, where the crowd's stands.
        parts = (np.concatenate([own, pool])[worker][:, label] for own, pool in zip(known[:3], crowd, strict=True))
        weights, log_weights, mean = (np.ascontiguousarray(part) for part in parts)
        named = lookup(self.classes_, to_column(r.labels))
        workers = ConfusionWorkers(r.n_workers, named, len(self.classes_), np.empty((1, 0, 0)), "em")
        blocks = cut_blocks(r, workers.encode(r), workers.n_rows, match_gold(gold, r, self.classes_))
        table = make_table(Estimate(weights, log_weights, mean, 0.0), r.weight is not None)
        return infer_posterior(resolve_engine(None), blocks, table, structure)

    def _learned(self) -> Estimate:
        """Return what the E-step uses: by `fit` for the last time, and by `predict_proba`, so that both agree."""
        return Estimate(np.exp(self._log_weights), self._log_weights, self._log_weights, 0.0)

    def _keep(
        self,
        r: Responses,
        workers: Estimate,
        structure: StructureParameters,
        statistics: Statistics,
        smoothing: Floats,
    ) -> None:
        """Store parameters, and the expected counts they came with, in the attributes users read."""
        self._remember(r)
        self.classes_ = r.classes
        self.prior_ = structure.mean
        self.confusion_ = np.ascontiguousarray(workers.mean.transpose(0, 2, 1))
        self._counts = statistics.counts.reshape(workers.mean.shape)
        self._log_weights = workers.log_weights
        self._pooled = estimate(self._counts.sum(axis=0, keepdims=True), smoothing.mean(axis=0)[None], "em").mean
        self._structure_parameters = structure

    def _keep_posterior(self, engine: Engine, placed: Sequence[Any], weighted: bool) -> None:
        """Infer the posteriors that belong to the parameters kept."""
        table = make_table(self._learned(), weighted)
        self.posterior_, _ = infer_posterior(engine, placed, table, self._structure_parameters)
        self._label_codes = self.posterior_.argmax(axis=1)

    def _state(self) -> dict[str, NDArray[Any]]:
        structure: Any = self._structure_parameters
        parts = {f"structure {name}": np.asarray(value) for name, value in structure._asdict().items()}
        return super()._state() | parts

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        fields = {name: arrays[f"structure {name}"] for name in self._structure_type._fields}
        self._structure_parameters = self._structure_type(
            **{name: value.item() if value.ndim == 0 else freeze(value) for name, value in fields.items()}
        )
