"""The checks of a result. One that is listed here is warned of, printed, and shown by `--json` and by the report.

A check is a function of a `Result`, with its worker table, and of the model, that yields findings. The first line of
its docstring says of what. `models/base.py` runs all of them, once for each result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import SET_SIGNS
from ..answers.columns import to_values
from ..errors import warn
from ..inference.estimator import LabelEstimator
from ..results.chance import BY_CHANCE
from ..results.findings import Finding
from ..results.result import Result
from . import short_checks as checks

log = logging.getLogger("consilience")


class Check(NamedTuple):
    """A check, and when it runs.

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
        checks.find_no_gain, trusts=True, needs=lambda it, _: it.comparison and it.checked and not it.comparison.better
    ),
    "graph": Check(checks.find_poor_graph, "network", needs=lambda it, _: it.graph_check),
    "scale": Check(
        checks.find_scale, trusts=True, needs=lambda it, _: it.given.scale_check and it.given.scale_check.ordered
    ),
    "copies": Check(checks.find_copiers, "workers", needs=lambda it, _: it.given.copies),
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
            or (np.asarray(to_values(it.workers["accuracy_high"]), float) < checks.OFTEN_WRONG_SHARE).any()
        ),
    ),
    "drift": Check(checks.find_falls, "workers", trusts=True, needs=lambda it, _: it.drift),
    "unsettled": Check(checks.find_unsettled, needs=lambda it, _: not it.course.converged),
    "unanswered": Check(
        checks.find_unanswered, "answers", needs=lambda _, r: not r.silence_counts and (np.diff(r.offsets) == 0).any()
    ),
    "doubtful": Check(
        checks.find_doubtful,
        "review",
        trusts=True,
        needs=lambda it, _: (it.labels.shown_confidence < checks.DOUBTFUL_CONFIDENCE).any(),
    ),
}


def run_checks(model: LabelEstimator, result: Result) -> tuple[Finding, ...] | None:
    """The findings of all checks, the most serious first; None where the answers were not kept."""
    r, compared = result.given.answers, result.comparison
    if r is None:
        return None
    if r.classes is not result.names.classes:
        r = r.with_classes(result.names.classes)
        result = replace(result, given=result.given._replace(answers=r))
    makes_sense = compared is None or not (compared.by_chance or compared.collapsed)
    findings: list[Finding] = []
    for kind, check in CHECKS.items():
        if (makes_sense or not check.trusts) and check.needs(result, r):
            findings += [replace(finding, kind=kind, place=check.place) for finding in check.find(result, model)]
    return tuple(findings)


def warn_of_findings(result: Result) -> None:
    """Warn of what checks found, except for what a report alone shows."""
    for finding in result.findings or ():
        if finding.category is not None:
            warn(finding.warning())
