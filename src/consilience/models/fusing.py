"""One fusion: the model that what is given calls for, the fit, and what checks say of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..answers.graph import Graph
from ..answers.tagging import looks_iob2
from ..arguments import is_among
from ..checks.register import judge
from ..checks.ways import TOL, check_scale, check_ways, give_ranks, order_levels
from ..engines import Engine, open_engine
from ..errors import DataWarning, ParameterError, Python, Sentence, about, parameter_error, plural, warn
from ..inference.em import Progress
from ..inference.estimator import list_defaults, renew
from ..inference.sharing import Together
from ..inference.sources import Source
from ..inference.workers.ordinal import NominalWorkers, OrdinalWorkers
from ..limits import keep_to
from ..results.fitting import align, fit_questions, make_source
from ..results.source_kinds import check_kind
from .base import Model
from .dawid_skene import DawidSkene
from .opening import Prepared
from .register import MODELS, model_class
from .standalone import Standalone

log = logging.getLogger("consilience")

# Of so many linked items the graph is tried; of more only where it is asked for, since it takes many fits.
FEW_ITEMS = 30_000


class Posed(NamedTuple):
    """A question before it is fitted: the model, what it is fitted to, and fields of its result that are known."""

    model: Model
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
) -> tuple[dict[Any, Any], Together | None, list[Any]]:
    """Fuse one question, whose name is None, or several, each of which `opening` opens; see `fuse` and `fit_posed`."""
    source_kind = None if source_kind is None else check_kind(source_kind)
    posed = {}
    with open_engine(engine) as working:
        for name in names:
            with about(name):
                prepared = opening(name)
                chosen, prepared, beside = choose_estimator(prepared, model, parameters, working, name is not None)
                if callback is not None and "callback" in chosen.get_params():
                    chosen = chosen.set_params(callback=callback)
                if isinstance(chosen, Standalone):
                    owner = type(chosen).__name__
                    for option, value in (("features", features), ("item_prior", item_prior)):
                        if value is not None:
                            refusal = Sentence(f"{owner} takes no {{{option}}}.", **{option: None})
                            raise ParameterError(refusal, "Leave it out.", keyword=option)
                    if name is not None:
                        raise ParameterError(f"{owner} fuses one question.", "Fuse this one by itself.")
                    return {None: chosen.fit(prepared.answers, gold=prepared.gold)}, None, []
                source = make_source(chosen, prepared.answers, prepared.gold, features, item_prior, prepared.task)
                posed[name] = Posed(chosen, source, align(chosen, source.responses, prepared.graph), beside)
        return fit_posed(posed, working, source_kind)


def choose_estimator(
    prepared: Prepared, model: str | Model, parameters: Mapping[str, Any], engine: Engine, is_one_of_several: bool
) -> tuple[Any, Prepared, dict[str, Any]]:
    """The model to fuse by, what it is fitted to, and fields of the result that are known already.

    Answers may turn out to be on a scale, and items to be linked. Of several questions, workers are of types if nothing
    else is said.
    """
    kind, answers, graph, given = prepared.task, prepared.answers, prepared.graph, dict(parameters)
    is_auto = is_among(model, ("auto",))
    if kind.linked and graph is None and is_among(model, ("auto", "markov-field")):
        few = answers.n_items <= FEW_ITEMS
        if few or not is_auto or not given.keys() <= list_defaults(DawidSkene).keys():
            model, graph = "markov-field", kind.make_graph(prepared.source)
        else:
            log.info("Note: neighbours of more than %s %ss count only in a markov-field", f"{FEW_ITEMS:,}", kind.item)
    if is_auto and kind.model and prepared.graph is None:
        model = kind.model
    elif is_auto and graph is None:
        model = "dawid-skene" if answers.sequences is None else "hidden-markov"
    elif is_auto:
        model = "markov-field"
    is_named = isinstance(model, str)
    if not isinstance(model, Model) and not (is_named and model in MODELS):
        known = ", ".join(repr(name) for name in ("auto", *MODELS))
        raise parameter_error("model", "fuse", f"one of {known}, or a model", model)
    maker = type(model) if isinstance(model, Model) else model_class(model)
    defaults = list_defaults(maker)
    for name in given.keys() - defaults.keys():
        other = next(each for each in MODELS if name in list_defaults(model_class(each)))
        raise ParameterError(
            Sentence(f"{maker.__name__} has no {{{name}}}.", **{name: Python(f"parameter {name!r}")}),
            "Leave it out.",
            Sentence("Or choose a model that has it, such as {model}.", model=other),
            keyword=name,
        )
    may_have_types = "workers" in defaults and "workers" not in given and given.get("estimation") != "em"
    if isinstance(model, Model):
        chosen = renew(model, **given)
    else:
        if model == "hidden-markov" and looks_iob2(answers.classes):
            given = {"transitions": "bio", **given}
        if answers.is_ordered and may_have_types and not OrdinalWorkers.are_too_many(answers):
            given |= {"workers": OrdinalWorkers.name}
        elif answers.is_ordered and may_have_types:
            what = f"{plural(answers.n_responses, 'rating')} by {plural(answers.n_workers, 'worker')}"
            why = f"on {answers.n_classes:,} levels are too few to learn who is harsh or lenient"
            warn(DataWarning(f"{what} {why}: levels are fused without their order.", "Merge levels."))
        chosen = maker(**given)
    plain = DawidSkene(calibration="none", tol=TOL, seed=chosen.get_params().get("seed", 0))
    may_choose = "workers" in defaults and "workers" not in parameters

    scale = None
    may_be_scale = is_auto and may_choose and prepared.may_be_scale and not answers.is_ordered
    may_be_scale &= chosen.get_params().get("estimation") != "em"  # types of workers know no other way than Bayes
    order = order_levels(answers) if may_be_scale and not OrdinalWorkers.are_too_many(answers) else None
    if order is not None:
        log.info("Comparing classes in order with classes without an order")
        scale = check_scale(plain, answers, order, engine)
        if scale is not None:
            log.info("Note: %s", scale)
            if scale.ordered:
                answers, chosen = give_ranks(answers, order), chosen.set_params(workers=OrdinalWorkers.name)

    soft = None
    if may_choose and is_named and answers.soft is not None and not answers.silence_counts:
        chosen._check_size(answers, None)  # before both ways are tried
        log.info("Comparing ways of fusing soft votes")
        soft = check_ways(plain, answers, engine)
        log.info("Note: %s", soft)
        chosen = chosen.set_params(workers=soft.way)
    elif (
        may_choose
        and is_named
        and is_one_of_several
        and isinstance(chosen, DawidSkene)
        and chosen.workers == "confusion"
        and chosen.estimation != "em"
    ):
        chosen = chosen.set_params(workers=NominalWorkers.name)

    beside = {"scale_check": scale, "soft_check": soft, "blocked": prepared.blocked, "n_blocked": prepared.n_blocked}
    return chosen, prepared._replace(answers=answers, graph=graph), beside


def fit_posed(
    posed: Mapping[Any, Posed], engine: Engine, source_kind: str | None
) -> tuple[dict[Any, Model], Together | None, list[Any]]:
    """Fitted models by question, what was learned of all questions together, and the questions that this is about."""
    sources, graphs = [each.source for each in posed.values()], [each.graph for each in posed.values()]
    own, models = [each.model for each in posed.values()], {}
    with keep_to(next((each.responses.memory for each in sources), None)):
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
