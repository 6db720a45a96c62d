"""Results that are checked: compared with majority vote, and with what a shuffled graph tells."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..answers.graph import Graph
from ..answers.hidden_answers import count_units
from ..engines.base import Engine
from ..errors import DataWarning, Sentence, warn
from ..inference.recipes.base import Recipe
from ..inference.recipes.field import FieldRecipe
from ..inference.recipes.votes import VoteRecipe
from ..inference.sources import InMemory, OnDisk, Source
from ..results.comparison import CHECK_IDS, GraphCheck
from ..results.fitting import Asked, fit_source
from ..results.fusion import Fusion
from ..results.parts import StoredLabels
from ..results.predicting import weigh_copies
from .comparison import compare_with_vote
from .doubts import find_doubts, tell_copies
from .graph_check import check_graph

log = logging.getLogger("consilience")


class GraphVerdict(NamedTuple):
    """What was found about a graph, and what the user should know of it."""

    check: GraphCheck
    doubt: DataWarning | None


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
    """Compare a result with majority vote, and its graph with a shuffled one; warn of what is to be doubted.

    The result may be another one, which uses its graph in another way; see `settle_graph`. If the graph was judged
    before, `verdict` says how.
    """
    changed: dict[str, Any] = {}
    source = source if found.source is None else found.source  # where near-copies count once
    if verdict is None and isinstance(recipe, FieldRecipe):
        log.info("Comparing with a shuffled graph")
        found, changed, verdict = settle_graph(recipe, found, cast(InMemory, source), cast(Graph, graph), engine)
        recipe = replace(recipe, **changed)
    sample, differences, comparison = find_sample(found, source), None, None
    if not isinstance(recipe, VoteRecipe) and (isinstance(source, OnDisk) or count_units(sample.responses) > 1):
        log.info("Comparing with majority vote")
        comparison, differences = compare_with_vote(recipe, found, source, graph, engine)
    check = None if verdict is None else verdict.check
    found = replace(found, checked=True, comparison=comparison, graph_check=check)
    if found.copies:
        warn(tell_copies(found))
    for warning in find_doubts(found, sample, graph, differences):
        warn(warning)
    if verdict is not None and verdict.doubt is not None:
        warn(verdict.doubt)
    return Checked(found, changed)


def find_sample(found: Fusion, source: Source) -> InMemory:
    """Return the answers as they were given: all of those in memory, some of those on disk."""
    if isinstance(source, OnDisk):
        sample = cast(StoredLabels, found.labelled).sample
        assert sample is not None
        known = sample.gold(source.answers)
        return InMemory(sample.responses, known)
    return cast(InMemory, source)


def settle_graph(
    recipe: FieldRecipe, found: Fusion, source: InMemory, graph: Graph, engine: Engine
) -> tuple[Fusion, dict[str, Any], GraphVerdict]:
    """Return a result of a field, the parameters that were changed, and what was found about the graph.

    Where a worker's errors run along the edges, neighbours repeat them. Then the field is fitted again, so that only
    items that nobody answered hear their neighbours; unless the user gave a coupling.
    """
    # What the classifier said of the items need not be learned again.
    counted = weigh_copies(found, source.responses, np.arange(source.responses.n_workers))
    known = replace(source, responses=counted, features=None, log_prior=found.given.log_prior)
    check = check_graph(recipe, found, known, graph, engine)
    doubt, changed = None, dict[str, Any]()
    if check.sound and check.repeats_errors and recipe.learns_coupling:
        doubt = DataWarning(
            "Workers tend to make the same error on neighbouring items of the graph (correlation "
            f"{check.error_correlation:.2f}), so the graph may spread errors. "
            + (
                "It is not used: all labels come from the answers alone."
                if source.find_told().all()
                else "It is used only for items that nobody answered; all other labels come from the answers alone."
            ),
            Sentence(
                "To use it for all items, give {coupling}, and compare both results on known labels.",
                coupling=float(f"{found.coupling:.3g}"),
            ),
        )
        scores = found.coupling_scores  # which tell where the coupling comes from
        changed = {"coupling": found.coupling, "listeners": "unanswered"}
        asked = Asked(found.copies, count_copies_once=True)
        found = fit_source(replace(recipe, **changed), source, graph, engine, asked)
        found = replace(found, coupling_scores=scores)
    elif not check.silent and not check.sound and check.changed > 0:
        doubt = DataWarning(
            f"The graph may not be informative about these labels: {check.describe_doubt()}. With a learned coupling "
            f"it changes {check.changed:.1%} of them; a shuffled graph changes {check.shuffled_changed:.1%}.",
            *([] if check.agrees or not check.measured else [CHECK_IDS]),
            "Fuse without it, unless known labels show that it helps.",
        )
    return found, changed, GraphVerdict(check, doubt)
