"""Results that are checked: compared with majority vote, and with what a shuffled graph tells."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, NamedTuple, cast

from ..answers.graph import Graph
from ..answers.hidden_answers import count_units
from ..engines.base import Engine
from ..errors import warn
from ..inference.recipes.base import Recipe
from ..inference.recipes.field import FieldRecipe
from ..inference.recipes.independent import VoteRecipe
from ..inference.sources import InMemory, OnDisk, Source
from ..results.findings import Finding
from ..results.fusion import Fusion
from .comparison import compare_with_vote
from .graph_check import GraphVerdict, settle_graph
from .register import CHECKS, run_checks
from .subject import Subject, find_sample

log = logging.getLogger("consilience")


class Checked(NamedTuple):
    """A result with its checks, and the parameters that were changed because of them."""

    found: Fusion
    changed: dict[str, Any]


def judge(
    recipe: Recipe,
    found: Fusion,
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
    source = source if found.source is None else found.source  # where near-copies count once
    if verdict is None and isinstance(recipe, FieldRecipe):
        log.info("Comparing with a shuffled graph")
        found, verdict = settle_graph(recipe, found, cast(InMemory, source), cast(Graph, graph), engine)
        changed = verdict.changed
        recipe = replace(recipe, **changed)
    sample, differences, comparison = find_sample(found, source), None, None
    if not isinstance(recipe, VoteRecipe) and (isinstance(source, OnDisk) or count_units(sample.responses) > 1):
        log.info("Comparing with majority vote")
        comparison, differences = compare_with_vote(recipe, found, source, graph, engine)
    check = None if verdict is None else verdict.check
    limits_graph = verdict is not None and bool(verdict.changed)
    found = replace(found, checked=True, comparison=comparison, graph_check=check, limits_graph=limits_graph)
    findings = run_checks(Subject(recipe, found, sample, graph, differences), later=False)
    for finding in findings:
        if finding.category is not None:
            warn(finding.warning())
    return Checked(replace(found, findings=findings), changed)


def list_findings(recipe: Recipe, found: Fusion) -> list[Finding]:
    """Return all that checks find of a result, the most serious first.

    Those that were done at the fit are not done again, unless the result was loaded, or is not one of `fuse`.
    """
    subject = Subject.of(recipe, found)
    at_once = run_checks(subject, later=False) if found.findings is None else found.findings
    kinds = list(CHECKS)
    return sorted((*at_once, *run_checks(subject, later=True)), key=lambda each: kinds.index(each.kind))
