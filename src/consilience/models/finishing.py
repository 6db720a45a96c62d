"""The end of a fit: a `FitResult` is compared, if `fuse` made it, and made a `Result` with tables and findings."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from ..answers.columns import to_column
from ..answers.graph import Graph
from ..answers.random_choices import count_units
from ..checks.register import run_checks
from ..engines import Engine
from ..inference.estimator import LabelEstimator, LatentEstimator
from ..inference.observations import Observations
from ..results.result import FitResult, FusionChecks, Result
from ..results.worker_report import tabulate_workers

AnyModel = TypeVar("AnyModel", bound=LabelEstimator)
log = logging.getLogger("consilience")


def compare_fused(
    model: AnyModel, fit: FitResult, observations: Observations, graph: Graph | None, engine: Engine
) -> tuple[AnyModel, FitResult, FusionChecks]:
    """Compare a fit with majority vote, and its graph with a shuffled one.

    Returned are the model and its fit, and what it was compared with. Where neighbours repeat errors, these are another
    model and a further fit, see `limit_graph`.
    """
    limited, check, comparison, vote = model, None, None, None
    if fit.is_network and isinstance(model, LatentEstimator):
        from ..comparisons.graph import limit_graph

        log.info("Comparing with a shuffled graph")
        limited, fit, check = limit_graph(model, fit, observations, cast(Graph, graph), engine)
    if not fit.is_vote and count_units(observations.responses) > 1:
        from ..comparisons.vote import compare_with_vote

        log.info("Comparing with majority vote")
        comparison, vote = compare_with_vote(limited, fit, observations, graph, engine)
    return limited, fit, FusionChecks(comparison, vote, check, limited is not model)


def complete(
    model: LabelEstimator, fit: FitResult, fusion_checks: FusionChecks | None = None, update: object = None
) -> Result:
    """The result of a fit: with its worker table, what it was compared with, and what checks say of it.

    Where no answers could be hidden to test confidences, and not all labels are known, tables show no confidence.
    """
    comparison = None if fusion_checks is None else fusion_checks.comparison
    workers, drift = tabulate_workers(fit, comparison)
    fields_of_fit: dict[str, Any] = {each.name: getattr(fit, each.name) for each in fields(FitResult)}
    if comparison is not None and comparison.untested and comparison.share_known < 1:
        fields_of_fit["labels"] = replace(fit.labels, shown=False)
    table = {"worker": to_column(fit.names.workers), **workers}
    result = Result(**fields_of_fit, workers=table, drift=drift, fusion_checks=fusion_checks, update=update)
    return replace(result, findings=run_checks(model, result))
