"""One call from answers to labels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from .answers.arrays import Crowd
from .answers.graph import Graph
from .answers.tagging import looks_iob2
from .arguments import is_among
from .checks.graph_check import GraphVerdict, settle_graph
from .checks.judging import judge
from .engines import open_engine
from .errors import (
    ParameterError,
    Python,
    Sentence,
    parameter_error,
    quietly,
)
from .formats.sources import COLUMNS, check_keywords
from .inference.em import Progress
from .inference.sources import InMemory
from .models.base import Model
from .models.dawid_skene import DawidSkene
from .models.fitted import FittedModel
from .models.markov_field import MarkovField
from .models.register import MODELS, model_class
from .preparing import Prepared, prepare
from .results.fitting import Asked, fit_source, open_source
from .tasks.base import Links

log = logging.getLogger("consilience")


def fuse(
    source: Any,
    graph: Any = None,
    gold: Any = None,
    *,
    model: str | Model = "auto",
    engine: Any = None,
    callback: Callable[[Progress], object] | None = None,
    features: Any = None,
    item_prior: Any = None,
    **keywords: Any,
) -> Any:
    """Fuse answers into labels with a model chosen by what is given, and compare the result with majority vote.

    Parameters
    ----------
    source : table, path, Responses, Spans or Masks
        The answers: a pandas, polars or pyarrow table, a dict of columns, or a file, glob or folder. A path may be that
        of anything that `read_responses`, `read_spans` or `read_masks` can read. If a file holds spans and answers
        about whole texts, the spans are fused, unless a column is named. Of `Spans` the known ones (`Spans.gold`) are
        used, unless `gold` is given; `Spans.without_gold` leaves them out. The pixels of `Masks` are linked to their
        neighbours by a graph. Of more than 30,000 pixels, a part shows whether to use it, and how strongly.
    graph : Graph, table, path, list of pairs, networkx graph or sparse matrix, optional
        How items hang together: a `Graph`, or edges from which one is made (a table or file with columns source and
        target, and perhaps weight, or a list of pairs of items).
    gold : dict, Series, table or path, or a list of these, optional
        Known labels. Of spans also `Spans` or a file of an annotation tool: its known spans, or those of its only
        worker; or a table of spans, with columns document, start, end and label. Of masks also `Masks` of one reader,
        or where they are. Default: those that the answers come with (`Responses.gold`), if some items have one and
        others do not; a warning tells. False: none.
    model : {"auto", "majority", "dawid-skene", "moments", "hidden-markov", "markov-field"} or Model
        "auto" is `MarkovField` with a graph, `HiddenMarkov` for sequences, and `DawidSkene` for other items. A
        `HiddenMarkov` chosen by name or "auto" has ``transitions="bio"`` where the classes are IOB2 tags (O, and B-X
        with each I-X).
    engine : optional
        Where to work; see `consilience.engines`.
    callback : callable, optional
        Called after each iteration with a `Progress`.
    features, item_prior : array, table or path, optional
        What is known of the items beside their answers: numbers that describe them, or class probabilities; see
        `DawidSkene.fit`.
    **keywords
        Names of columns and the other keywords of `Responses.from_frame`; and parameters of the model, such as
        ``estimation="em"`` or ``coupling=1.0``.

    Returns
    -------
    Model
        The fitted model, with `comparison_` against majority vote: a `Comparison`, or None where there is nothing to
        compare (the model is the vote, or there are too few answers to hide any). Workers who copy each other are in
        `copies_`, and each group of them counts as one worker. With a graph also `graph_check_`, a `GraphCheck`: what
        the same fit on a shuffled graph tells, and whether workers' errors run along the edges. If they do, and no
        coupling is given, only items that nobody answered hear their neighbours (``listeners="unanswered"``).

    Warns
    -----
    ConsilienceWarning
        When the fit does not predict hidden answers better than the vote does: then the vote may be as good.
    DataWarning
        When workers seem to copy each other, each item has one answer, or a class that nobody said seems to be
        misspelt; when a graph tells nothing, or workers' errors run along its edges. Reading gives others, see
        `Responses.from_frame`.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.random.default_rng(0).integers(0, 2, 300)
    >>> good, better, flipped = truth.copy(), truth.copy(), 1 - truth
    >>> good[:60] = 1 - good[:60]
    >>> fused = cs.fuse(cs.Responses.from_matrix(np.stack([good, better, flipped], axis=1)))
    >>> fused.comparison_.n_differ, fused.comparison_.verdict
    (60, 'better')
    """
    parameters = {name for known in MODELS for name in model_class(known).defaults()} - {"callback"}
    check_keywords(fuse, keywords, parameters)
    columns = {name: value for name, value in keywords.items() if name in COLUMNS}
    given = {name: value for name, value in keywords.items() if name in parameters}
    prepared = prepare(source, graph, gold, columns)
    return fuse_prepared(prepared, model, engine, callback, features, item_prior, given)


def fuse_prepared(
    prepared: Prepared,
    model: str | Model,
    engine: Any,
    callback: Callable[[Progress], object] | None,
    features: Any,
    item_prior: Any,
    parameters: dict[str, Any],
) -> Any:
    """Fuse what was opened; see `fuse`."""
    source, answers, graph, gold, task = prepared
    verdict = None
    links = task.find_links(source) if graph is None and is_among(model, ("auto", "markov-field")) else None
    if links is not None:
        model, parameters, graph, verdict = settle_links(links, parameters, engine)
    chosen = choose_model(model, answers, graph, parameters)
    if callback is not None and "callback" in chosen.get_params():
        chosen = chosen.set_params(callback=callback)
    recipe = chosen.recipe()
    opened = open_source(recipe, answers, gold, features, item_prior, task)
    aligned = recipe.align(opened.responses, graph) if isinstance(opened, InMemory) else None
    with open_engine(engine) as working:
        found = fit_source(recipe, opened, aligned, working, Asked(count_copies_once=True))
        checked = judge(recipe, found, opened, aligned, working, verdict)
    return chosen.set_params(**checked.changed).adopt(checked.found)


class Settled(NamedTuple):
    """How items with links are to be fused: model, parameters and graph, and what is known of the graph already."""

    model: str
    parameters: dict[str, Any]
    graph: Graph | None
    verdict: GraphVerdict | None = None


def settle_links(links: Links, given: dict[str, Any], engine: Any) -> Settled:
    """Return how to fuse items that are linked by what they are; many of them as a part shows."""
    if links.are_few:
        return Settled("markov-field", given, links.make_graph())
    check_parameters(MarkovField, given)
    alone = {name: value for name, value in given.items() if name in DawidSkene.defaults()}
    sample = links.take_part()
    if sample is None:
        return Settled("dawid-skene", alone, None)
    recipe = MarkovField(**given).recipe()
    (task, answers), part = sample
    log.info("Trying the graph on a part of the %ss", task.item)
    source = cast(InMemory, open_source(recipe, answers, task=task))
    graph = recipe.align(source.responses, part)
    with open_engine(engine) as opened, quietly():
        found = fit_source(recipe, source, graph, opened, Asked(count_copies_once=True))
        found, verdict = settle_graph(recipe, found, source, graph, opened)
    if "coupling" in given:
        return Settled("markov-field", given, links.make_graph(), verdict)
    listeners = {"listeners": recipe.listeners, **verdict.changed}["listeners"]
    if verdict.check.silent or (listeners == "unanswered" and links.are_answered()):
        return Settled("dawid-skene", alone, None, verdict)
    settled = {"coupling": found.coupling, "listeners": listeners}
    return Settled("markov-field", {**given, **settled}, links.make_graph(), verdict)


def choose_model(
    model: str | Model, responses: Crowd, graph: Graph | None = None, parameters: Mapping[str, Any] | None = None
) -> FittedModel:
    """Return an unfitted model with these parameters: the one named, or a copy of the one given."""
    given = dict(parameters or {})
    if isinstance(model, FittedModel):
        check_parameters(type(model), given)
        return model.fresh(**given)
    if isinstance(model, str) and model == "auto":
        alone = "dawid-skene" if responses.sequences is None else "hidden-markov"
        model = alone if graph is None else "markov-field"
    if not isinstance(model, str) or model not in MODELS:
        known = ", ".join(repr(name) for name in ("auto", *MODELS))
        raise parameter_error("model", "fuse", f"one of {known}, or a model", model)
    kind = model_class(model)
    check_parameters(kind, given)
    if model == "hidden-markov" and looks_iob2(responses.classes):
        given = {"transitions": "bio", **given}
    return kind(**given)


def check_parameters(kind: type[Model], given: Mapping[str, Any]) -> None:
    """Raise an error for a parameter that this model does not have, with a model that has it."""
    for name in given:
        if name not in kind.defaults():
            other = next(model for model in MODELS if name in model_class(model).defaults())
            raise ParameterError(
                Sentence(f"{kind.__name__} has no {{{name}}}.", **{name: Python(f"parameter {name!r}")}),
                "Leave it out.",
                Sentence("Or choose a model that has it, such as {model}.", model=other),
                keyword=name,
            )
