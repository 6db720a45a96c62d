"""The checks of a result. One that is listed here is warned of, printed, and shown by `--json` and by the report.

A check is a function of a `Subject` that yields a `Finding` for each thing it found. Its docstring says in one line
what that is. `judge` runs the checks of a fit, after it has compared it with majority vote and with a shuffled graph.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, cast

from ..answers.columns import to_column
from ..answers.graph import Graph
from ..answers.random_choices import count_units
from ..engines.base import Engine
from ..errors import warn
from ..inference.recipes import Recipe
from ..inference.recipes.field import FieldRecipe
from ..inference.recipes.independent import VoteRecipe
from ..inference.sources import Source
from ..results.findings import Finding
from ..results.result import Result
from ..results.worker_report import describe_answers, name_copies
from . import accused, drift, graph_check, scale_check, short_checks
from .comparison import Differences, compare_with_vote
from .drift import add_falls, find_drift, has_order
from .graph_check import GraphVerdict, settle_graph
from .subject import Subject

log = logging.getLogger("consilience")


class Check(NamedTuple):
    """What looks at a result.

    Attributes
    ----------
    find : callable
        Takes a `Subject`, and yields a `Finding` for each thing it found. `fuse` warns of it, unless its `category` is
        None.
    place : str
        The section of the report that shows more: the id of one with a `link` in `documents.sections.SECTIONS`. The
        link comes after the remedies, so a finding without remedies has none.
    later : bool
        Whether it is done only for those who ask what was found. `fuse` then never warns of it, whatever the category.
    """

    find: Callable[[Subject], Iterable[Finding]]
    place: str = ""
    later: bool = False


# By the kind of what they find, the most serious first.
CHECKS: dict[str, Check] = {
    "silence": Check(short_checks.find_silence, later=True),
    "classes": Check(short_checks.find_unsaid),
    "levels": Check(scale_check.find_off_scale),
    "sets": Check(short_checks.find_set_classes),
    "columns": Check(short_checks.find_wrong_columns),
    "unchecked": Check(short_checks.find_unchecked),
    "untested": Check(short_checks.find_untested),
    "noise": Check(short_checks.find_noise),
    "collapse": Check(short_checks.find_collapse),
    "no gain": Check(short_checks.find_no_gain),
    "graph": Check(graph_check.find_poor_graph, "network"),
    "scale": Check(scale_check.find_scale),
    "copies": Check(short_checks.find_copies, "workers"),
    "chance": Check(accused.find_accused, "workers", later=True),
    "workers": Check(short_checks.find_poor_workers, "workers", later=True),
    "one type": Check(short_checks.find_one_type, "workers", later=True),
    "drift": Check(drift.find_falls, "workers", later=True),
    "unsettled": Check(short_checks.find_unsettled, later=True),
    "unanswered": Check(short_checks.find_unanswered, "answers", later=True),
    "doubtful": Check(short_checks.find_doubtful, "review", later=True),
}


class Checked(NamedTuple):
    """A result with its checks, and the parameters that were changed because of them."""

    found: Result
    changed: dict[str, Any]


def judge(
    recipe: Recipe,
    found: Result,
    source: Source,
    graph: Graph | None,
    engine: Engine,
    verdict: GraphVerdict | None = None,
) -> Checked:
    """Compare a result with majority vote, and its graph with a shuffled one; warn of what was found.

    The result may be another one, which uses its graph in another way; see `settle_graph`. If the graph was judged
    before, `verdict` says how.
    """
    changed: dict[str, Any] = {}
    if verdict is None and isinstance(recipe, FieldRecipe):
        log.info("Comparing with a shuffled graph")
        found, verdict = settle_graph(recipe, found, source, cast(Graph, graph), engine)
        changed = verdict.changed
        recipe = replace(recipe, **changed)
    differences, comparison = None, None
    if not isinstance(recipe, VoteRecipe) and count_units(source.responses) > 1:
        log.info("Comparing with majority vote")
        comparison, differences = compare_with_vote(recipe, found, source, graph, engine)
    check = None if verdict is None else verdict.check
    limits_graph = verdict is not None and bool(verdict.changed)
    found = replace(found, by_fuse=True, comparison=comparison, graph_check=check, limits_graph=limits_graph)
    if comparison is not None and comparison.untested and comparison.share_known < 1:
        found = replace(found, labels=replace(found.labels, shown=False))
    found = complete(recipe, found, differences)
    for finding in found.findings or ():
        if finding.category is not None and not CHECKS[finding.kind].later:
            warn(finding.warning())
    return Checked(found, changed)


def complete(recipe: Recipe, found: Result, differences: Differences | None = None) -> Result:
    """A result with its worker table and with what all checks find, which are made once, at the end of a fit.

    Checks look at answers, and find nothing where these were not kept. `differences` are those from majority vote.
    """
    if not found.workers:
        columns = describe_answers(found)
        if has_order(found):
            columns = add_falls(columns, find_drift(found))
        table = {"worker": to_column(found.names.workers), **name_copies(columns, found.copies)}
        found = replace(found, workers=table)
    if found.findings is None and found.given.answers is not None:
        subject = Subject.of(recipe, found, differences)
        findings = [
            replace(finding, kind=kind, place=check.place)
            for kind, check in CHECKS.items()
            for finding in check.find(subject)
        ]
        found = replace(found, findings=tuple(findings))
    return found
