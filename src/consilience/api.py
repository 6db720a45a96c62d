"""One call from answers to labels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np

from .answers.crowd import Crowd
from .answers.gold_columns import LEAVE_OUT, find_strange
from .answers.graph import Graph
from .answers.responses import Responses
from .answers.tagging import looks_iob2
from .answers.vocabulary import lookup, to_column
from .arguments import is_among
from .checks.judging import GraphVerdict, judge, settle_graph
from .engines import open_engine
from .errors import (
    DataWarning,
    ParameterError,
    Python,
    Sentence,
    listing,
    parameter_error,
    plural,
    quietly,
    shorten,
    warn,
)
from .formats.answers import COLUMNS, check_keywords
from .formats.reading import open_path, open_paths
from .formats.sources import Opened, open_masks, open_spans
from .inference.em import Progress
from .inference.recipes.base import refuse_disk
from .inference.sources import InMemory
from .models.base import Model
from .models.dawid_skene import DawidSkene
from .models.fitted import FittedModel
from .models.inputs import as_graph, as_responses, open_answers
from .models.markov_field import MarkovField
from .models.register import MODELS, model_class
from .results.fitting import Asked, fit_source, open_source
from .storage.answers import StoredResponses
from .tasks.known_masks import list_known_pixels
from .tasks.known_spans import read_sole_spans
from .tasks.mask_sample import cut_tiles, is_small
from .tasks.masks import Masks
from .tasks.span_tables import find_span_columns
from .tasks.spans import FUSED, Spans

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
    settled = None
    if prepared.masks is not None and prepared.graph is None and is_among(model, ("auto", "markov-field")):
        settled = settle_masks(prepared.masks, given, engine)
        model, given = settled.model, settled.parameters
        prepared = prepared._replace(graph=settled.graph)
    chosen = choose_model(model, prepared.crowd, prepared.graph, given)
    if callback is not None and "callback" in chosen.get_params():
        chosen = chosen.set_params(callback=callback)
    recipe, crowd = chosen.recipe(), prepared.crowd
    if isinstance(crowd, StoredResponses):
        refuse_disk(graph=prepared.graph, features=features, item_prior=item_prior)
    opened = open_source(recipe, crowd, prepared.gold, features, item_prior)
    aligned = recipe.align(opened.responses, prepared.graph) if isinstance(opened, InMemory) else None
    with open_engine(engine) as working:
        found = fit_source(recipe, opened, aligned, working, Asked(count_copies_once=True))
        verdict = None if settled is None else settled.verdict
        checked = judge(recipe, found, opened, aligned, working, verdict)
    return chosen.set_params(**checked.changed).adopt(checked.found)


class Prepared(NamedTuple):
    """What is to be fused, opened once: answers, known labels and graph."""

    crowd: Responses | StoredResponses
    gold: Any
    graph: Graph | None
    masks: Masks | None = None


def prepare(source: Any, graph: Any, gold: Any, columns: Mapping[str, Any]) -> Prepared:
    """Open answers, known labels and graph in any form."""
    if isinstance(source, StoredResponses):
        if columns:
            raise ParameterError(
                f"Columns ({listing(columns)}) cannot be named for answers on disk: they are read already."
            )
        warn_of_fused(source)
        return Prepared(source, None if gold is False else gold, graph)
    columns = dict(columns)
    if gold is None and not isinstance(source, (Responses, Spans, Masks)):
        columns.setdefault("gold", None)
    opened = open_answers(source, **columns)
    if gold is not None and gold is not False:
        opened, gold = take_known(opened, gold)
    responses = as_responses(opened)
    warn_of_fused(responses)
    gold = choose_gold(gold, responses) if gold is not None or not isinstance(opened, Spans) else choose_spans(opened)
    links = None if graph is None else as_graph(graph, responses)
    return Prepared(responses, gold, links, opened if isinstance(opened, Masks) else None)


def warn_of_fused(crowd: Crowd) -> None:
    """Warn of answers that are the result of an earlier fusion."""
    if crowd.n_workers > 1 and lookup(crowd.workers, to_column([FUSED]))[0] >= 0:
        warn(
            DataWarning(
                f"There are answers of a worker called {FUSED!r}: results of an earlier fusion, which count as if they "
                "were independent of the others.",
                "Fuse the file that holds only the answers of workers.",
            )
        )


def choose_spans(spans: Spans) -> Any:
    """Return the tags of documents whose spans are known, with a warning; None if there are none, or nothing else."""
    tags = spans.known_tags()
    if tags is None:
        return None
    read = np.unique(spans.readings[:, 0])
    n_known = int(np.isin(read, spans.gold_documents).sum())
    leave = Sentence("To leave them out, use {ignore_gold}.", ignore_gold=Python("gold=False"))
    if n_known == len(read):
        warn(
            DataWarning(
                "The spans of every document are known. They are not used: there would be nothing to fuse.",
                "Compare the fused spans with them by evaluate.",
            )
        )
        return None
    known = f"{n_known:,} of {plural(len(read), 'document')}"
    warn(DataWarning(f"The spans of {known} are known. They are used as gold.", leave))
    return tags


def take_known(source: Opened, gold: Any) -> tuple[Opened, Any]:
    """Return what is to be fused, and known labels: of tokens or pixels where known spans or masks are given.

    Known spans cut tokens, so that they become a part of the spans. Those that the spans come with are then not used.
    """
    given = list(gold) if type(gold) in (list, tuple) else [gold]
    if isinstance(source, Masks):
        given = [open_masks(each, source.images) for each in given]
        return source, [list_known_pixels(source, each) if isinstance(each, Masks) else each for each in given]
    if not isinstance(source, Spans):
        return source, gold
    given = [_open_known(each, source) for each in given]
    known = [each for each in given if isinstance(each, Spans)]
    if not known:
        return source, given
    spans = reduce(Spans.with_gold, known, source.without_gold())
    others, tags = [each for each in given if not isinstance(each, Spans)], spans.known_tags()
    return spans, others if tags is None else [tags, *others]


def _open_known(given: Any, source: Spans) -> Any:
    """Return known spans in a file or a table, whose texts are those of the source; known labels in a file as a table.

    Anything else stays as it is.
    """
    opened = open_path(open_spans(given))
    if isinstance(opened, Spans) or find_span_columns(opened) is None:
        return opened
    return read_sole_spans(opened, "gold", source.documents, source.texts)


def choose_gold(gold: Any, responses: Responses) -> Any:
    """Return the known labels to use: those given, or some that the answers come with. A warning tells of the latter.

    They are not used if some are no classes, or if the label of every item is known: there would be nothing to fuse.
    """
    if gold is False:
        return None
    if gold is not None or not responses.gold:
        return open_paths(gold)
    name = shorten(responses.columns.get("gold"))
    strange = find_strange(responses, to_column(list(responses.gold.values())))
    if strange:
        warn(
            DataWarning(
                f"Column {name} is not used as known labels: it holds {listing(strange)}, and the classes are "
                f"{listing(responses.classes.tolist())}.",
                Sentence("If it holds known labels, name all classes with {classes}."),
                LEAVE_OUT,
            )
        )
        return None
    if len(responses.gold) == responses.n_items:
        warn(
            DataWarning(
                f"Column {name} holds a known label of every item. It is not used: there would be nothing to fuse.",
                "Compare the labels with it by evaluate.",
                LEAVE_OUT,
            )
        )
        return None
    known = f"{len(responses.gold):,} of {plural(responses.n_items, 'item')}"
    warn(DataWarning(f"Column {name} holds known labels of {known}. They are used as gold.", LEAVE_OUT))
    return responses.gold


class Settled(NamedTuple):
    """How masks are to be fused: name and parameters of the model, its graph, and what is known of that already."""

    model: str
    parameters: dict[str, Any]
    graph: Graph | None
    verdict: GraphVerdict | None = None


def settle_masks(masks: Masks, given: dict[str, Any], engine: Any) -> Settled:
    """Return how to fuse masks, large ones as a part of them shows; see `mask_sample`."""
    if is_small(masks):
        return Settled("markov-field", given, masks.graph())
    check_parameters(MarkovField, given)
    alone = {name: value for name, value in given.items() if name in DawidSkene.defaults()}
    sample = cut_tiles(masks)
    if sample is None:
        return Settled("dawid-skene", alone, None)
    log.info("Trying the graph on a part of the pixels")
    recipe = MarkovField(**given).recipe()
    source = cast(InMemory, open_source(recipe, sample.to_responses()))
    graph = recipe.align(source.responses, sample.graph())
    with open_engine(engine) as opened, quietly():
        found = fit_source(recipe, source, graph, opened, Asked(count_copies_once=True))
        found, changed, verdict = settle_graph(recipe, found, source, graph, opened)
    if "coupling" in given:
        return Settled("markov-field", given, masks.graph(), verdict)
    listeners = {"listeners": recipe.listeners, **changed}["listeners"]
    if verdict.check.silent or (listeners == "unanswered" and masks.are_complete()):
        return Settled("dawid-skene", alone, None, verdict)
    settled = {"coupling": found.coupling, "listeners": listeners}
    return Settled("markov-field", {**given, **settled}, masks.graph(), verdict)


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
