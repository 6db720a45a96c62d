"""Fusion of one question or of several: the model that what is given calls for, the fit, and what checks say of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.tables import ROLES, open_frame, translate
from ..answers.tagging import looks_iob2
from ..checks.register import warn_of_findings
from ..comparisons.ways import COMPARED_TOL, check_scale, check_ways, give_ranks, order_levels
from ..engines import Engine, open_engine
from ..errors import (
    DataWarning,
    InputError,
    ManyQuestionsError,
    ParameterError,
    Python,
    Sentence,
    about,
    listing,
    parameter_error,
    plural,
    quietly,
    shorten,
    warn,
)
from ..formats.sources import find_source, open_table
from ..inference.copies import find_groups
from ..inference.em import Progress
from ..inference.estimator import LatentEstimator, list_defaults, renew
from ..inference.observations import Observations
from ..inference.starts import HIDING_TABLES
from ..inference.workers.one_coin import MANY_CLASSES, OneCoinWorkers
from ..inference.workers.ordinal import NominalWorkers, OrdinalWorkers
from ..kernels import Floats
from ..kinds import find_kind
from ..kinds.tags import find_separators
from ..limits import NUMBER, are_allowed, keep_to
from ..options import check_questions, is_among, split_by_question
from ..results.findings import check_kind
from ..results.fitting import align, fit_model, make_observations
from ..results.result import Given
from . import MODELS, model_class
from .base import Model, Standalone, compare_fused, complete
from .independent import DawidSkene
from .opening import Prepared, keep_answered, prepare, split_gold

log = logging.getLogger("consilience")

# Of so many linked items the graph is tried; of more only where it is asked for, since it takes many fits.
FEW_ITEMS = 30_000
# Confusion matrices of many classes are too many in any case if they have more numbers for each answer.
MOST_EACH = 30
# What may be given for each question.
SCALE = ("classes", "ordered", "positions")
SPLIT = (*SCALE, "separator")
# From the first probability on questions count as separate, and up to the second as one.
MOSTLY_OWN, MOSTLY_SAME = 0.8, 0.2

# A question before it is fitted: the model, what it is fitted to, and fields of its result that are known.
Question: TypeAlias = tuple[Model, Observations, Graph | None, Given]


class Shared(NamedTuple):
    """What all questions of a fusion have in common.

    Attributes
    ----------
    own : float
        The probability that a question calls for a skill of its own. At 1 questions are as separate fits.
    easiness : dict
        How easy each question is, compared with the others; 1 is their geometric mean.
    trace : array
        The objective of all questions together; it never falls.
    """

    own: float
    easiness: dict[str, float]
    trace: Floats

    def describe(self) -> str:
        """Whether skills carry over, in words."""
        same = f"with probability {1 - self.own:.2f} a worker has the same in a question as in all"
        if self.own > MOSTLY_OWN:
            return f"Skills hardly carry over from one question to another: {same}. Each is fused nearly as if alone."
        if self.own > MOSTLY_SAME:
            return f"Skills carry over in part: {same}. Each question says a little about the others."
        return f"Skills carry over from one question to another: {same}."


def are_answers(source: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a source is a mapping from questions to their answers, as `scan_answers` returns."""
    return isinstance(source, Mapping) and bool(source) and all(find_kind(each) is not None for each in source.values())


def list_labels(columns: dict[str, Any]) -> list[str] | None:
    """The questions that `label` names; None if it is one column, whose name is then there as text."""
    names = check_questions(columns.get("label"), "fuse")
    if names is not None and len(names) == 1:
        columns["label"] = names[0]
    return None if names is None or len(names) == 1 else names


def open_each(
    source: Any, graph: object, gold: object, columns: dict[str, Any], block: object, wanted: str
) -> tuple[list[Any] | None, Callable[[Any], Prepared]]:
    """The names of several questions, None if there is one, and a function that opens a question by its name.

    Only reading tells that a table of a platform has answers to several questions: then it is no table of one.
    """
    names: list[Any] | None = list(source) if are_answers(source) else list_labels(columns)
    if names is None:
        by_question = [name for name in SPLIT if isinstance(columns.get(name), Mapping)]
        plain = {name: value for name, value in columns.items() if name not in by_question}
        try:
            prepared = prepare(source, graph, gold, plain, block, wanted)
        except InputError as error:
            names = find_questions(error, source, columns)
            if names is None:
                raise
        else:
            if by_question:
                problem = Sentence(f"{{{by_question[0]}}} is given by question, and there is one.")
                raise ParameterError(problem, Sentence("Name the questions with {label}."), keyword=by_question[0])
            return None, lambda _: prepared
    return names, open_questions(source, names, graph, gold, columns, block)


def find_questions(error: InputError, source: Any, columns: Mapping[str, Any]) -> list[str] | None:
    """The questions that a table of a platform, or the file of a tool, has answers to, if these are several.

    `error` is what reading it as one question met. A warning tells of the questions.
    """
    names = list(error.questions) if isinstance(error, ManyQuestionsError) else []
    unclear = error.keyword == "label" and columns.get("label") is None and isinstance(source, (str, os.PathLike))
    if not names and unclear and find_source(os.fspath(source), columns.get("format")) is not None:
        table = open_table(os.fspath(source), columns.get("format"))[0]
        names = [str(name) for name in table.names if name not in ("item", "worker", "gold")]
    if len(names) < 2:
        return None
    warn(
        DataWarning(
            f"There are answers to {len(names)} questions: {listing(names, len(names))}. Each of them is fused.",
            Sentence("To fuse one of them, give {label}.", label=names[0]),
            keyword="label",
        )
    )
    return names


def open_questions(
    source: Any, names: Sequence[str], graph: object, gold: object, columns: Mapping[str, Any], block: object
) -> Callable[[str], Prepared]:
    """A function that opens a question by its name: a column of a table, or an entry of a mapping."""
    check_questions(list(names), "fuse")
    known = split_gold(gold, names)
    if are_answers(source):
        return lambda name: prepare(source[name], graph, known.get(name), columns, block)
    if find_kind(source) is not None:
        raise ParameterError(
            "Several questions are read from a table, or each has answers of its own.",
            Sentence("Give the table, or a file, with {label}."),
            "Or give a mapping from each question to its answers.",
            keyword="label",
        )
    if columns.get("gold"):
        raise ParameterError(
            Sentence("{gold_column} is for one question.", gold_column=None),
            Sentence("Give known labels of several with {gold}."),
            keyword="gold_column",
        )
    form = columns.get("format")
    if isinstance(source, (str, os.PathLike)):
        table, form = open_table(os.fspath(source), form)
    else:
        table = open_frame(source)
    split = {role: split_by_question(role, columns[role], names) for role in SCALE if role in columns}
    split["separator"] = find_separators(columns.get("separator"), names, "fuse", lambda: table)

    def open_question(name: str) -> Prepared:
        read = {role: value for role, value in columns.items() if role not in SPLIT}
        read |= {role: each[name] for role, each in split.items() if name in each}
        read |= {"label": name, "format": form}
        # Known labels beside the answers belong to one question, unless the form of the table tells whose.
        with quietly():
            known_form = translate(table, None, {**dict.fromkeys(ROLES), "label": name}).format if gold is None else ""
        if gold is None and not known_form:
            read["gold"] = False
        rows = keep_answered(table, name, bool(read.get("separator")))
        if name in table.names and table.n_rows and not rows.n_rows:
            raise InputError(
                f"Question {shorten(name)} has no answers: its column is empty throughout.",
                Sentence("Leave it out of {label}."),
                keyword="label",
            )
        return prepare(rows, graph, known.get(name), read, block)

    return open_question


def fuse_prepared(
    names: Sequence[str | None],
    opening: Callable[[Any], Prepared],
    model: str | Model | Standalone[Any],
    engine: Any,
    callback: Callable[[Progress], object] | None,
    features: Any,
    item_prior: Any,
    teach: str | bool,
    parameters: Mapping[str, Any],
    source_kind: str | None,
) -> tuple[dict[Any, Any], Shared | None]:
    """Fuse one question, whose name is None, or several, each of which `opening` opens; see `fuse`, `fit_questions`."""
    source_kind = None if source_kind is None else check_kind(source_kind)
    questions: dict[Any, Question] = {}
    with open_engine(engine) as working:
        for name in names:
            with about(name):
                prepared = opening(name)
                chosen, answers, graph, decided = choose_estimator(
                    prepared, model, parameters, working, name is not None
                )
                if callback is not None and "callback" in chosen.get_params():
                    chosen = chosen.set_params(callback=callback)
                if isinstance(chosen, Standalone):
                    owner = type(chosen).__name__
                    for option, value in (("features", features), ("item_prior", item_prior), ("teach", teach)):
                        if value is not None and not is_among(value, ("auto",)):
                            refusal = Sentence(f"{owner} takes no {{{option}}}.", **{option: None})
                            raise ParameterError(refusal, "Leave it out.", keyword=option)
                    if name is not None:
                        raise ParameterError(f"{owner} fuses one question.", "Fuse this one by itself.")
                    chosen.fit(answers, gold=prepared.gold)
                    for finding in chosen.findings_:
                        if finding.category is not None:
                            warn(finding.warning())
                    return {None: chosen}, None
                observations = make_observations(
                    chosen, answers, prepared.gold, features, item_prior, prepared.kind, teach=teach
                )
                questions[name] = chosen, observations, align(chosen, observations.responses, graph), decided
        return fit_questions(questions, working, source_kind)


def choose_estimator(
    prepared: Prepared,
    model: str | Model | Standalone[Any],
    parameters: Mapping[str, Any],
    engine: Engine,
    is_one_of_several: bool,
) -> tuple[Any, Answers, Graph | None, Given]:
    """The model to fuse by, the answers and the graph that it is fitted to, and known fields of the result.

    Answers may turn out to be on a scale, and items to be linked. Of several questions, workers are of types if nothing
    else is said.
    """
    kind, answers, graph, given = prepared.kind, prepared.answers, prepared.graph, dict(parameters)
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
    if not isinstance(model, (Model, Standalone)) and not (is_named and model in MODELS):
        known = ", ".join(repr(name) for name in ("auto", *MODELS))
        raise parameter_error("model", "fuse", f"one of {known}, or a model", model)
    maker = model_class(model) if isinstance(model, str) else type(model)
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
    chosen: Any
    if not isinstance(model, str):
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
    plain = DawidSkene(calibration="none", tol=COMPARED_TOL, seed=chosen.get_params().get("seed", 0))
    may_choose = "workers" in defaults and "workers" not in parameters

    scale = None
    # Whole numbers may be a scale if nobody said whether they are.
    may_be_scale = is_auto and may_choose and kind.whole_items
    may_be_scale &= not answers.declares_order and not answers.is_ordered
    may_be_scale &= chosen.get_params().get("estimation") != "em"  # types of workers know no other way than Bayes
    order = order_levels(answers) if may_be_scale and not OrdinalWorkers.are_too_many(answers) else None
    if order is not None:
        log.info("Comparing classes in order with classes without an order")
        scale = check_scale(plain, answers, order, engine)
        if scale is not None:
            log.info("Note: %s", scale)
            if scale.ordered:
                answers, chosen = give_ranks(answers, order), chosen.set_params(workers=OrdinalWorkers.name)

    # Whether there are too many classes for confusion matrices: more than a worker has answers, or than fit. (Measured
    # in simulated crowds of 20 to 100 classes, some of which are confused more often than others: with fewer answers of
    # a worker than classes one accuracy is better, with twice as many both are alike.)
    are_many = answers.n_classes > MANY_CLASSES and answers.soft is None and not answers.silence_counts
    if are_many and chosen.get_params().get("workers") == "confusion":
        n_entries = answers.n_workers * answers.n_labels * answers.n_classes
        fits = are_allowed(HIDING_TABLES * NUMBER * n_entries, "entries", n_entries)
        are_many = not fits and n_entries > MOST_EACH * answers.n_responses
        are_many |= answers.n_responses < answers.n_workers * answers.n_classes
    else:
        are_many = False

    soft = None
    if may_choose and is_named and answers.soft is not None and not answers.silence_counts:
        chosen._check_size(answers, None)  # before both ways are tried
        log.info("Comparing ways of fusing soft votes")
        soft = check_ways(plain, answers, engine)
        log.info("Note: %s", soft)
        chosen = chosen.set_params(workers=soft.way)
    elif may_choose and isinstance(chosen, DawidSkene) and is_named and are_many:
        what = f"{answers.n_classes:,} classes and {plural(answers.n_responses, 'answer')}"
        each = f"{what} of {plural(answers.n_workers, 'worker')}"
        log.info("Note: %s: each worker has one accuracy instead of a confusion matrix", each)
        chosen = chosen.set_params(workers=OneCoinWorkers.name)
    elif is_one_of_several and may_choose and is_named and isinstance(chosen, DawidSkene):
        is_plain = chosen.workers == "confusion" and chosen.estimation != "em"
        chosen = chosen.set_params(workers=NominalWorkers.name) if is_plain else chosen

    decided = Given(scale_check=scale, soft_check=soft, blocked=prepared.blocked, n_blocked=prepared.n_blocked)
    return chosen, answers, graph, decided


def fit_questions(
    questions: Mapping[Any, Question], engine: Engine, source_kind: str | None
) -> tuple[dict[Any, Model], Shared | None]:
    """Fitted and judged models by question, and what was found of all questions together.

    Questions whose workers are of types are fitted together first: a question is then an ordinary fit, in which the
    probability that a worker is of a type comes from the other questions.
    """
    from ..inference.sharing import can_share, fit_together

    models, shared, types = dict[Any, Model](), None, dict[Any, Any]()
    with keep_to(next((observations.responses.memory for _, observations, *_ in questions.values()), None)):
        copies = {name: find_groups(observations, engine) for name, (_, observations, *_) in questions.items()}
        typed = [name for name, (model, *_) in questions.items() if can_share(model)]
        if len(typed) > 1:
            once = [questions[name][1].count_once(copies[name]) for name in typed]
            estimators = [
                model for model, *_ in map(questions.__getitem__, typed) if isinstance(model, LatentEstimator)
            ]
            graphs = [questions[name][2] for name in typed]
            worker_types, own, easiness, trace = fit_together(estimators, once, graphs, engine)
            types = dict(zip(typed, worker_types, strict=True))
            shared = Shared(own, dict(zip(typed, easiness.tolist(), strict=True)), trace)
        for name, (model, observations, graph, chosen) in questions.items():
            with about(name):
                observed = replace(observations, worker_types=types.get(name))
                asked: dict[str, Any] = {"copies": copies[name], "source_kind": source_kind, "chosen": chosen}
                fit = fit_model(model, observed, graph, engine, count_copies_once=True, **asked)
                model, fit, compared = compare_fused(model, fit, observed, graph, engine)
                models[name] = model._adopt(complete(model, fit, compared))
                warn_of_findings(models[name].result_)
    return models, shared
