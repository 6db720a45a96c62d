"""The checks of a result. One that is listed here is warned of, printed, and shown by `--json` and by the report.

A check is a function of a `Result`, with its worker table, and of the model, that yields findings. The first line of
its docstring says of what. `check_fused` compares a fit with majority vote and with a shuffled graph; `complete` makes
the worker table and runs all checks, once for each result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import SET_SIGNS
from ..answers.columns import to_column, to_values
from ..answers.graph import Graph
from ..answers.random_choices import count_units
from ..engines import Engine
from ..errors import warn
from ..inference.estimator import LabelEstimator, LatentEstimator, renew
from ..inference.observations import Observations
from ..results.chance import BY_CHANCE
from ..results.findings import Finding
from ..results.result import Result
from ..results.worker_report import tabulate_workers
from . import short_checks as checks

log = logging.getLogger("consilience")


class Check(NamedTuple):
    """What looks at a result.

    Attributes
    ----------
    find : callable
        Takes a `Result` and the model, and yields a `Finding` for each thing it found. `fuse` warns of it,
        unless its `category` is None: readers and fits have warned already, or it is advice.
    place : str
        The section of the report that shows more: the id of one with a `link` in `documents.page.SECTIONS`. The
        link comes after the remedies, so a finding without remedies has none.
    trusts : bool
        Whether it takes labels at their word: it finds nothing where they are noise, or have collapsed.
    needs : callable
        Whether there is in a `Result` and its answers what it looks at; it does not run otherwise.
    """

    find: Callable[[Result, LabelEstimator], Iterable[Finding]]
    place: str = ""
    trusts: bool = False
    needs: Callable[[Result, Answers], object] = lambda _found, _answers: True


# By the kind of what they find, the most serious first.
CHECKS: dict[str, Check] = {
    "silence": Check(checks.find_silence, needs=lambda _, r: r.silence_doubt),
    "sets": Check(
        checks.find_set_classes,
        needs=lambda _, r: any(sign in str(name) for name in r.classes.tolist() for sign in SET_SIGNS),
    ),
    "columns": Check(checks.find_wrong_columns, needs=lambda _, r: r.n_labels == 1 or r.n_workers == r.n_responses),
    "unchecked": Check(checks.find_unchecked, needs=lambda it, _: not it.checked),
    "untested": Check(checks.find_untested, needs=lambda it, _: it.comparison and it.checked and not it.labels.shown),
    "noise": Check(checks.find_noise, needs=lambda it, _: it.comparison and it.checked and it.comparison.by_chance),
    "collapse": Check(
        checks.find_collapse, needs=lambda it, _: it.comparison and it.checked and it.comparison.collapsed
    ),
    "no gain": Check(
        checks.find_no_gain,
        trusts=True,
        needs=lambda it, _: it.comparison and it.checked and not it.comparison.better,
    ),
    "graph": Check(checks.find_poor_graph, "network", needs=lambda it, _: it.graph_check),
    "scale": Check(checks.find_scale, trusts=True, needs=lambda it, _: it.scale_check and it.scale_check.ordered),
    "copies": Check(checks.find_copiers, "workers", needs=lambda it, _: it.copies),
    "chance": Check(
        checks.find_clickers,
        "workers",
        trusts=True,
        needs=lambda it, _: it.chance is not None and (it.chance >= BY_CHANCE).any(),
    ),
    "workers": Check(
        checks.find_poor_workers,
        "workers",
        trusts=True,
        needs=lambda it, _: (
            any(to_values(it.workers["remarks"]))
            or (np.asarray(to_values(it.workers["accuracy_high"]), float) < checks.HALF).any()
        ),
    ),
    "drift": Check(checks.find_falls, "workers", trusts=True, needs=lambda it, _: it.drift),
    "unsettled": Check(checks.find_unsettled, needs=lambda it, _: not it.course.converged),
    "unanswered": Check(
        checks.find_unanswered,
        "answers",
        needs=lambda _, r: not r.silence_counts and (np.diff(r.offsets) == 0).any(),
    ),
    "doubtful": Check(
        checks.find_doubtful,
        "review",
        trusts=True,
        needs=lambda it, _: (it.labels.shown_confidence < checks.DOUBTFUL).any(),
    ),
}


def complete(model: LabelEstimator, result: Result) -> Result:
    """The result with its worker table, and with its findings if its answers are there; it may have them already."""
    if not result.workers:
        workers, drift = tabulate_workers(result)
        result = replace(result, workers={"worker": to_column(result.names.workers), **workers}, drift=drift)
    r = result.given.answers
    if result.findings is not None or r is None:
        return result
    if r.classes is not result.names.classes:
        r = r.with_classes(result.names.classes)
    seen, compared = replace(result, given=result.given._replace(answers=r)), result.comparison
    makes_sense = compared is None or not (compared.by_chance or compared.collapsed)
    findings: list[Finding] = []
    for kind, check in CHECKS.items():
        if (makes_sense or not check.trusts) and check.needs(seen, r):
            findings += [replace(finding, kind=kind, place=check.place) for finding in check.find(seen, model)]
    return replace(result, findings=tuple(findings))


def check_fused(
    model: LabelEstimator,
    result: Result,
    observations: Observations,
    graph: Graph | None,
    engine: Engine,
) -> tuple[Result, dict[str, Any]]:
    """Compare a result with majority vote, and its graph with a shuffled one; warn of what was found.

    Returned are the result and the parameters that were changed because of the graph, see `limit_graph`.
    """
    check, changed, comparison, vote = None, dict[str, Any](), None, None
    if result.is_network and isinstance(model, LatentEstimator):
        from .graph_check import limit_graph

        log.info("Comparing with a shuffled graph")
        result, check, changed = limit_graph(model, result, observations, cast(Graph, graph), engine)
        model = renew(model, **changed)
    if not result.is_vote and count_units(observations.responses) > 1:
        from .comparison import compare_with_vote

        log.info("Comparing with majority vote")
        comparison, vote = compare_with_vote(model, result, observations, graph, engine)
    untested = comparison is not None and comparison.untested and comparison.share_known < 1
    result = replace(
        result,
        by_fuse=True,
        comparison=comparison,
        vote=vote,
        graph_check=check,
        limits_graph=bool(changed),
        labels=replace(result.labels, shown=False) if untested else result.labels,
        findings=None,
    )
    result = complete(model, result)
    for finding in result.findings or ():
        if finding.category is not None:
            warn(finding.warning())
    return result, changed
