"""One fusion: the model that what is given calls for, the fit, and what checks say of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.tagging import looks_iob2
from ..arguments import is_among
from ..checks.register import judge
from ..checks.ways import TOL, check_scale, check_ways, give_ranks, order_levels
from ..engines import open_engine
from ..engines.base import Engine
from ..errors import DataWarning, ParameterError, Python, Sentence, about, parameter_error, plural, warn
from ..inference.em import Progress
from ..inference.estimator import list_defaults, renew
from ..inference.sharing import Together
from ..inference.sources import Source
from ..inference.workers.ordinal import NominalWorkers, OrdinalWorkers
from ..limits import within
from ..results.comparison import ScaleCheck
from ..results.fitting import align, fit_questions, make_source
from ..results.source_kinds import check_kind
from .base import Model
from .dawid_skene import DawidSkene
from .fitted import FittedModel
from .preparing import Prepared
from .register import MODELS, model_class

log = logging.getLogger("consilience")

# Of so many linked items the graph is tried; of more only where it is asked for, since it takes many fits.
FEW_ITEMS = 30_000


class Posed(NamedTuple):
    """A question before it is fitted: the model, what it is fitted to, and fields of its result that are known."""

    model: FittedModel
    source: Source
    graph: Graph | None
    beside: dict[str, Any]


def fuse_prepared(
    names: Sequence[str | None],
    opening: Callable[[Any], Prepared],
    model: str | Model,
    engine: Any,
    callback: Callable[[Progress], object] | None,
    features: Any,
    item_prior: Any,
    parameters: Mapping[str, Any],
    source_kind: str | None,
) -> tuple[dict[Any, FittedModel], Together | None, list[Any]]:
    """Fuse one question, whose name is None, or several, each of which `opening` opens; see `fuse` and `fit_posed`."""
    source_kind = None if source_kind is None else check_kind(source_kind)
    posed = {}
    with open_engine(engine) as working:
        for name in names:
            with about(name):
                prepared = opening(name)
                posed[name] = pose(
                    prepared, name is not None, model, dict(parameters), working, callback, features, item_prior
                )
        return fit_posed(posed, working, source_kind)


def pose(
    prepared: Prepared,
    is_one_of_several: bool,
    model: str | Model,
    parameters: dict[str, Any],
    engine: Engine,
    callback: Callable[[Progress], object] | None,
    features: Any,
    item_prior: Any,
) -> Posed:
    """A question with the model that it is fused by. Of several, workers are of types if nothing else is said."""
    graph, task = prepared.graph, prepared.task
    if task.linked and graph is None and is_among(model, ("auto", "markov-field")):
        few = prepared.answers.n_items <= FEW_ITEMS
        if few or model == "markov-field" or not parameters.keys() <= list_defaults(DawidSkene).keys():
            model, graph = "markov-field", task.make_graph(prepared.source)
    chosen, answers, scale = settle_model(prepared, model, graph, parameters, engine)
    if callback is not None and "callback" in chosen.get_params():
        chosen = chosen.set_params(callback=callback)
    soft = None
    has_ways = "workers" in chosen.get_params() and "workers" not in parameters and isinstance(model, str)
    if has_ways and answers.soft is not None and not answers.silence_counts:
        chosen._check_size(answers, None)  # before both ways are tried
        log.info("Comparing ways of fusing soft votes")
        plain = DawidSkene(calibration="none", tol=TOL, seed=chosen.get_params()["seed"])
        soft = check_ways(plain, answers, engine)
        log.info("Note: %s", soft)
        chosen = chosen.set_params(workers=soft.way)
    elif has_ways and is_one_of_several and isinstance(chosen, DawidSkene):
        is_ordinal = chosen.get_params()["workers"] == OrdinalWorkers.name
        chosen = chosen if is_ordinal else chosen.set_params(workers=NominalWorkers.name)
    source = make_source(chosen, answers, prepared.gold, features, item_prior, task)
    aligned = align(chosen, source.responses, graph)
    beside: dict[str, Any] = {"scale_check": scale, "soft_check": soft, "n_blocked": prepared.n_blocked}
    beside["blocked"] = prepared.blocked if len(prepared.blocked) else None
    return Posed(chosen, source, aligned, beside)


def fit_posed(
    posed: Mapping[Any, Posed], engine: Engine, source_kind: str | None
) -> tuple[dict[Any, FittedModel], Together | None, list[Any]]:
    """Fitted models by question, what was learned of all questions together, and the questions that this is about."""
    sources, graphs = [each.source for each in posed.values()], [each.graph for each in posed.values()]
    own, models = [each.model for each in posed.values()], {}
    with within(next((each.responses.memory for each in sources), None)):
        settled, results, together, shared = fit_questions(
            own, sources, graphs, engine, count_copies_once=True, source_kind=source_kind
        )
        for (name, each), source, result in zip(posed.items(), settled, results, strict=True):
            with about(name):
                known = replace(result, **each.beside)
                found, changed = judge(each.model, known, source, each.graph, engine)
            known_to_model = {key: value for key, value in changed.items() if key in each.model.get_params()}
            models[name] = each.model.set_params(**known_to_model)._adopt(found)
    names = list(posed)
    return models, together, [names[place] for place in shared]


def settle_model(
    prepared: Prepared, model: str | Model, graph: Graph | None, parameters: dict[str, Any], working: Engine
) -> tuple[FittedModel, Answers, ScaleCheck | None]:
    """The model to fuse by, the answers, which may turn out to be on a scale, and by what that was judged."""
    answers, task, check = prepared.answers, prepared.task, None
    preferred = task.model if task.model and is_among(model, ("auto",)) and graph is None else model
    chosen = choose_model(preferred, answers, graph, parameters)
    may_be_scale = prepared.may_be_scale and is_among(model, ("auto",)) and "workers" not in parameters
    if may_be_scale and not answers.is_ordered and not OrdinalWorkers.are_too_many(answers):
        order = order_levels(answers)
        if order is not None:
            log.info("Comparing classes in order with classes without an order")
            plain = DawidSkene(calibration="none", tol=TOL, seed=chosen.get_params()["seed"])
            check = check_scale(plain, answers, order, working)
            if check is not None:
                log.info("Note: %s", check)
                if check.ordered:
                    answers, chosen = give_ranks(answers, order), chosen.set_params(workers=OrdinalWorkers.name)
    return chosen, answers, check


def choose_model(
    model: str | Model, responses: Answers, graph: Graph | None = None, parameters: Mapping[str, Any] | None = None
) -> FittedModel:
    """Return an unfitted model with these parameters: the one named, or a copy of the one given."""
    given = dict(parameters or {})
    if isinstance(model, FittedModel):
        check_parameters(type(model), given)
        return renew(model, **given)
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
    if responses.is_ordered and "workers" in list_defaults(kind) and "workers" not in given:
        if OrdinalWorkers.are_too_many(responses):
            warn(
                DataWarning(
                    f"{plural(responses.n_responses, 'rating')} by {plural(responses.n_workers, 'worker')} on "
                    f"{responses.n_classes:,} levels are too few to learn who is harsh or lenient: levels are fused "
                    "without their order.",
                    "Merge levels.",
                )
            )
        else:
            given |= {"workers": OrdinalWorkers.name}
    chosen: FittedModel = kind(**given)
    return chosen


def check_parameters(kind: type[Model], given: Mapping[str, Any]) -> None:
    """Raise an error for a parameter that this model does not have, with a model that has it."""
    for name in given:
        if name not in list_defaults(kind):
            other = next(model for model in MODELS if name in list_defaults(model_class(model)))
            raise ParameterError(
                Sentence(f"{kind.__name__} has no {{{name}}}.", **{name: Python(f"parameter {name!r}")}),
                "Leave it out.",
                Sentence("Or choose a model that has it, such as {model}.", model=other),
                keyword=name,
            )
