"""One fusion: the model that what is given calls for, the fit, and what checks say of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.tagging import looks_iob2
from ..arguments import is_among
from ..checks.graph_check import GraphVerdict, settle_graph
from ..checks.register import judge
from ..checks.scale_check import TOL, check_scale, give_ranks, order_levels
from ..checks.soft_check import check_ways
from ..engines import open_engine
from ..engines.base import Engine
from ..errors import DataWarning, ParameterError, Python, Sentence, parameter_error, plural, quietly, warn
from ..inference.em import Progress
from ..inference.workers.ordinal import OrdinalWorkers
from ..kinds.base import Links
from ..results.comparison import ScaleCheck, SoftCheck
from ..results.fitting import fit_source, open_source
from ..results.source_kinds import check_kind
from .base import Model
from .dawid_skene import DawidSkene
from .fitted import FittedModel
from .markov_field import MarkovField
from .preparing import Prepared
from .register import MODELS, model_class

log = logging.getLogger("consilience")


class Fitting(NamedTuple):
    """How answers are fused; see `fuse`."""

    model: str | Model
    engine: Any
    callback: Callable[[Progress], object] | None
    features: Any
    item_prior: Any
    parameters: dict[str, Any]
    source_kind: str | None = None


def fuse_prepared(prepared: Prepared, fitting: Fitting) -> Any:
    """Fuse what was opened; see `fuse`."""
    source, _, graph, gold, task, blocked, _, n_blocked = prepared
    model, engine, callback, features, item_prior, parameters, source_kind = fitting
    source_kind, verdict = None if source_kind is None else check_kind(source_kind), None
    links = task.find_links(source) if graph is None and is_among(model, ("auto", "markov-field")) else None
    if links is not None:
        model, parameters, graph, verdict = settle_links(links, parameters, engine)
    with open_engine(engine) as working:
        chosen, answers, scale = settle_model(prepared, model, graph, parameters, working)
        if callback is not None and "callback" in chosen.get_params():
            chosen = chosen.set_params(callback=callback)
        soft = None
        if answers.is_soft and not answers.silence_counts and "workers" not in parameters and isinstance(model, str):
            soft = settle_way(answers, chosen, working)
            chosen = chosen if soft is None else chosen.set_params(workers=soft.way)
        recipe = chosen.recipe()
        opened = open_source(recipe, answers, gold, features, item_prior, task)
        aligned = recipe.align(opened.responses, graph)
        found = fit_source(recipe, opened, aligned, working, count_copies_once=True, source_kind=source_kind)
        found = replace(found, scale_check=scale, soft_check=soft)
        checked = judge(recipe, found, opened, aligned, working, verdict)
    left_out = replace(checked.found, blocked=blocked if len(blocked) else None, n_blocked=n_blocked)
    return chosen.set_params(**checked.changed).adopt(left_out)


def settle_model(
    prepared: Prepared, model: str | Model, graph: Graph | None, parameters: dict[str, Any], working: Engine
) -> tuple[FittedModel, Answers, ScaleCheck | None]:
    """Return the model to fuse by, the answers, which may turn out to be on a scale, and what tells of that."""
    answers, task, scale = prepared.answers, prepared.task, None
    preferred = task.model if task.model and is_among(model, ("auto",)) and graph is None else model
    chosen = choose_model(preferred, answers, graph, parameters)
    if prepared.may_be_scale and is_among(model, ("auto",)) and "workers" not in parameters:
        answers, scale = settle_scale(answers, chosen.get_params()["seed"], working)
        if scale is not None and scale.ordered:
            chosen = chosen.set_params(workers=OrdinalWorkers.name)
    return chosen, answers, scale


def settle_scale(answers: Answers, seed: int, engine: Engine) -> tuple[Answers, ScaleCheck | None]:
    """Return answers on a scale if their classes look like one and hidden answers confirm it, and what these told."""
    order = None if answers.is_ordered or OrdinalWorkers.are_too_many(answers) else order_levels(answers)
    if order is None:
        return answers, None
    log.info("Comparing classes in order with classes without an order")
    check = check_scale(DawidSkene(calibration="none", tol=TOL, seed=seed).recipe(), answers, order, engine)
    if check is not None:
        log.info("Note: %s", check)
    return (answers if check is None or not check.ordered else give_ranks(answers, order)), check


def settle_way(answers: Answers, chosen: FittedModel, engine: Engine) -> SoftCheck | None:
    """Return the way in which soft votes are fused by the model, if it has workers; see `soft_check`."""
    if "workers" not in chosen.get_params():
        return None
    chosen.recipe().check_size(answers, None)  # before all ways are tried
    log.info("Comparing ways of fusing soft votes")
    check = check_ways(
        DawidSkene(calibration="none", tol=TOL, seed=chosen.get_params()["seed"]).recipe(), answers, engine
    )
    log.info("Note: %s", check)
    return check


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
    source = open_source(recipe, answers, task=task)
    graph = recipe.align(source.responses, part)
    with open_engine(engine) as opened, quietly():
        found = fit_source(recipe, source, graph, opened, count_copies_once=True)
        found, verdict = settle_graph(recipe, found, source, graph, opened)
    if "coupling" in given:
        return Settled("markov-field", given, links.make_graph(), verdict)
    listeners = {"listeners": recipe.listeners, **verdict.changed}["listeners"]
    if verdict.check.silent or (listeners == "unanswered" and links.are_answered()):
        return Settled("dawid-skene", alone, None, verdict)
    settled = {"coupling": found.coupling, "listeners": listeners}
    return Settled("markov-field", {**given, **settled}, links.make_graph(), verdict)


def warn_of_levels(responses: Answers) -> None:
    """Warn that there are too many levels and workers for types of workers."""
    warn(
        DataWarning(
            f"{plural(responses.n_responses, 'rating')} by {plural(responses.n_workers, 'worker')} on "
            f"{responses.n_classes:,} levels are too few to learn who is harsh or lenient: levels are fused without "
            "their order.",
            "Merge levels.",
        )
    )


def choose_model(
    model: str | Model, responses: Answers, graph: Graph | None = None, parameters: Mapping[str, Any] | None = None
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
    if responses.is_ordered and "workers" in kind.defaults() and "workers" not in given:
        if OrdinalWorkers.are_too_many(responses):
            warn_of_levels(responses)
        else:
            given |= {"workers": OrdinalWorkers.name}
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
