"""What users call: one call from answers to labels, loading a model, and judging one without any truth."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard, cast

from .answers import recognise
from .answers.arrays import Crowd
from .answers.blocked import NOBODY, leave_out, read_blocked
from .answers.columns import Values, find_present, to_column
from .answers.frames import open_frame
from .answers.graph import Graph
from .answers.random_choices import hide_answers
from .answers.responses import Responses
from .answers.tables import ROLES, Table
from .answers.tagging import looks_iob2
from .answers.vocabulary import lookup
from .arguments import check_questions, check_seed, is_among, is_number, split_by_question, to_path
from .checks.comparison import settle
from .checks.graph_check import GraphVerdict, settle_graph
from .checks.register import judge
from .checks.scale_check import TOL, check_scale, give_ranks, order_levels
from .checks.soft_check import check_ways
from .engines import EngineLike, open_engine
from .engines.base import Engine
from .errors import (
    DataWarning,
    InputError,
    ManyQuestionsError,
    ParameterError,
    Python,
    Sentence,
    StoreError,
    about,
    listing,
    parameter_error,
    quietly,
    shorten,
    warn,
)
from .formats.reading import open_paths
from .formats.sources import COLUMNS, TAG_COLUMNS, as_graph, check_keywords, find_source, open_known, open_table
from .inference.em import Progress
from .inference.hidden_fits import HeldOutScore, score_hidden
from .inference.recipes import refuse_disk
from .inference.sources import InMemory
from .inference.workers.nominal import NominalWorkers
from .inference.workers.ordinal import OrdinalWorkers
from .models.base import Model, as_responses, open_answers
from .models.bradley_terry import BradleyTerry, check_settings, open_comparisons
from .models.dawid_skene import DawidSkene
from .models.fitted import FittedModel
from .models.markov_field import MarkovField
from .models.questions import Posed, Questions, check_number, fit_posed, read_questions, split_gold
from .models.register import MODELS, model_class
from .results.comparison import ScaleCheck, SoftCheck
from .results.fitting import Asked, fit_source, open_source
from .results.saving import SavedFusion, compare_names, open_saved
from .results.source_kinds import check_kind
from .results.worker_report import count_answers
from .storage.answers import StoredResponses
from .tasks import find_task, need_task
from .tasks.base import TABLE, AnyTask, Links, TableTask
from .tasks.tag_task import TagsTask
from .tasks.texts import FUSED

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
    block: Any = None,
    source_kind: str | None = None,
    **keywords: Any,
) -> Any:
    """Fuse answers into labels with a model chosen by what is given, and compare the result with majority vote.

    Parameters
    ----------
    source : table, path, Responses, Tags, Spans or Masks
        The answers: a pandas, polars or pyarrow table, a dict of columns, or a file, glob or folder. A path may be that
        of anything that `read_responses`, `read_tags`, `read_spans` or `read_masks` can read. Answers are sets of tags
        if cells hold lists, or with ``separator=";"`` (see `Tags.from_frame`). If a file holds spans and answers about
        whole texts, the spans are fused, unless a column is named. Of `Spans` the known ones (`Spans.gold`) are
        used, unless `gold` is given; `Spans.without_gold` leaves them out. The pixels of `Masks` are linked to their
        neighbours by a graph. Of more than 30,000 pixels, a part shows whether to use it, and how strongly.
    graph : Graph, table, path, list of pairs, networkx graph or sparse matrix, optional
        How items hang together: a `Graph`, or edges from which one is made (a table or file with columns source and
        target, and perhaps weight, or a list of pairs of items).
    gold : dict, Series, table or path, or a list of these, optional
        Known labels. Of spans also `Spans` or a file of an annotation tool: its known spans, or those of its only
        worker; or a table of spans, with columns document, start, end and label. Of masks also `Masks` of one reader,
        or where they are. Of tags a dict {item: tags}, or a table with sets. Default: those that the answers come with
        (`Responses.gold`), if some items have one and others do not; a warning tells. False: none.
    model : {"auto", "majority", "dawid-skene", "moments", "hidden-markov", "markov-field", "tags"} or Model
        "auto" is `MarkovField` with a graph, `HiddenMarkov` for sequences, `TagSets` for sets of tags, and `DawidSkene`
        for other items. A
        `HiddenMarkov` chosen by name or "auto" has ``transitions="bio"`` where the classes are IOB2 tags (O, and B-X
        with each I-X). If classes are ordered, a model chosen so has ``workers="ordinal"``, unless `workers` are given.
        With "auto", 3 to 11 consecutive whole numbers count as ordered if hidden answers are predicted clearly better
        that way: `scale_check_` tells. Say ``ordered=False`` if they are only names, or ``ordered=True``.
    engine : optional
        Where to work; see `consilience.engines`.
    callback : callable, optional
        Called after each iteration with a `Progress`.
    features, item_prior : array, table or path, optional
        What is known of the items beside their answers: numbers that describe them, or class probabilities; see
        `DawidSkene.fit`.
    block : list, table or path, optional
        Workers whose answers are left out, here and in updates: their ids, or a table with a column worker. The column
        chance of `worker_report` tells whom. For answers on disk, give it to `scan_responses`.
    source_kind : {"people", "functions", "models"}, optional
        Who gives the answers: findings and reports are worded for them. By default it is recognised: functions are
        silent, as an answer or as one label each; soft votes come from models.
    **keywords
        Names of columns and the other keywords of `Responses.from_frame`; and parameters of the model, such as
        ``estimation="em"``, ``coupling=1.0``, or for ordered classes ``label_by="median"``. With
        several questions, ``label=["q1", "q2"]``; `classes`, `ordered`, `positions`, `separator` and `gold` may then
        be mappings from questions to what is given for each.

    Returns
    -------
    Model or Questions
        The fitted model; for several questions a mapping from each to its model. It has `comparison_` against majority
        vote: a `Comparison`, or None where there is nothing to compare (the model is the vote, or there are too few
        answers to hide any). Workers who copy each other are in
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
    check_keywords(fuse, keywords, {*parameters, *TAG_COLUMNS})
    columns = {name: value for name, value in keywords.items() if name in COLUMNS | TAG_COLUMNS}
    given = {name: value for name, value in keywords.items() if name in parameters}
    fitting = Fitting(model, engine, callback, features, item_prior, given, source_kind)
    names = list(source) if are_stored(source) else list_labels(columns)
    if names is None:
        try:
            prepared = prepare(source, graph, gold, columns, block=block)
        except InputError as error:
            names = find_questions(error, source, columns)
            if names is None:
                raise
        else:
            return fuse_prepared(prepared, *fitting)
    return fuse_questions(source, names, graph, gold, columns, block, fitting)


class Fitting(NamedTuple):
    """How answers are fused; see `fuse`."""

    model: str | Model
    engine: Any
    callback: Callable[[Progress], object] | None
    features: Any
    item_prior: Any
    parameters: dict[str, Any]
    source_kind: str | None = None


def list_labels(columns: dict[str, Any]) -> list[str] | None:
    """Return the questions that `label` names; None if it is one column, whose name is then there as text."""
    names = check_questions(columns.get("label"), "fuse")
    if names is not None and len(names) == 1:
        columns["label"] = names[0]
    return None if names is None or len(names) == 1 else names


def find_questions(error: InputError, source: Any, columns: Mapping[str, Any]) -> list[str] | None:
    """Return the questions that a table of a platform, or the file of a tool, has answers to, if these are several.

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


def fuse_questions(
    source: Any, names: Sequence[str], graph: Any, gold: Any, columns: Mapping[str, Any], block: Any, fitting: Fitting
) -> Questions:
    """Fuse the answers to several questions, each in a column of its own; see `fuse`."""
    check_number(names)
    known = split_gold(gold, names)
    if are_stored(source):
        prepares = prepare_stored(source, graph, known, columns, block)
    else:
        prepares = prepare_questions(source, names, graph, gold, known, columns, block)
    posed = []
    with open_engine(fitting.engine) as working:
        for name in names:
            with about(name):
                posed.append(pose_question(name, next(prepares), fitting, working))
        return fit_posed(posed, working, fitting.source_kind)


def are_stored(source: object) -> TypeGuard[Mapping[str, StoredResponses]]:
    """Tell whether a source is a mapping from questions to their answers on disk."""
    return isinstance(source, Mapping) and bool(source) and all(map(is_stored, source.values()))


def is_stored(source: object) -> bool:
    """Tell whether answers are on disk."""
    return isinstance(source, StoredResponses)


def prepare_stored(
    stores: Mapping[str, StoredResponses],
    graph: object,
    known: Mapping[str, object],
    columns: Mapping[str, object],
    block: object,
) -> Iterator[Prepared]:
    """Yield what was opened for each question whose answers are on disk. `ordered` may say that some are no scale."""
    ordered = split_by_question("ordered", columns.get("ordered"), list(stores))
    rest = {role: value for role, value in columns.items() if role not in ("ordered", "label")}
    for name, answers in stores.items():
        prepared = prepare(answers, graph, known.get(name), rest, None, block)
        yield prepared._replace(may_be_scale=prepared.may_be_scale and ordered.get(name) is None)


def prepare_questions(
    source: object,
    names: Sequence[str],
    graph: object,
    gold: object,
    known: Mapping[str, object],
    columns: Mapping[str, object],
    block: object,
) -> Iterator[Prepared]:
    """Yield what was opened for each question, which has a column of its own in a table."""
    if is_stored(source) or find_task(source) is not None:
        raise ParameterError(
            "Several questions are read from a table, or are several stores.",
            Sentence("Give the table, or a file, with {label}."),
            "For answers on disk, give the list to scan_responses.",
            keyword="label",
        )
    form = cast("str | None", columns.get("format"))
    if isinstance(source, (str, os.PathLike)):
        table, form = open_table(os.fspath(source), form)
    else:
        table = open_frame(source)
    split = {role: split_by_question(role, columns[role], names) for role in SPLIT if role in columns}
    for name in names:
        read = {role: value for role, value in columns.items() if role not in SPLIT}
        read |= {role: each[name] for role, each in split.items() if name in each}
        read |= {"label": name, "format": form}
        # Known labels beside the answers belong to one question, unless the form of the table tells whose.
        if gold is None and recognise(table, {**dict.fromkeys(ROLES), "label": name}) is None:
            read["gold"] = False
        yield prepare(keep_answered(table, name), graph, known.get(name), read, None, block)


# What may be given for each question.
SPLIT = ("classes", "ordered", "positions", "separator")


def keep_answered(table: Table, name: str) -> Table:
    """Return the rows in which a question has an answer. One without any answers is an error."""
    if name not in table.names or table.lists(name) is not None:
        return table  # whoever reads it knows
    rows = find_present(table.read(name))
    if not len(rows):
        raise InputError(
            f"Question {shorten(name)} has no answers: its column is empty throughout.",
            Sentence("Leave it out of {label}."),
            keyword="label",
        )
    return table if len(rows) == table.n_rows else table.keep(rows)


def pose_question(name: str, prepared: Prepared, fitting: Fitting, working: Engine) -> Posed:
    """Return a question with the model that it is fused by, whose workers are of types if nothing else is said."""
    chosen, answers, scale = settle_model(prepared, fitting.model, prepared.graph, fitting.parameters, working)
    named = "workers" in fitting.parameters or isinstance(fitting.model, Model)
    if isinstance(chosen, DawidSkene) and not named and chosen.get_params()["workers"] != OrdinalWorkers.name:
        chosen = chosen.set_params(workers=NominalWorkers.name)
    if fitting.callback is not None and "callback" in chosen.get_params():
        chosen = chosen.set_params(callback=fitting.callback)
    recipe = chosen.recipe()
    opened = open_source(recipe, answers, prepared.gold, fitting.features, fitting.item_prior, prepared.task)
    aligned = recipe.align(opened.responses, prepared.graph) if isinstance(opened, InMemory) else None
    blocked = prepared.blocked if len(prepared.blocked) else None
    return Posed(name, chosen, opened, aligned, scale, blocked, prepared.n_blocked)


def settle_model(
    prepared: Prepared, model: str | Model, graph: Graph | None, parameters: dict[str, Any], working: Engine
) -> tuple[FittedModel, Responses | StoredResponses, ScaleCheck | None]:
    """Return the model to fuse by, the answers, which may turn out to be on a scale, and what tells of that."""
    answers, task, scale = prepared.answers, prepared.task, None
    preferred = task.model if task.model and is_among(model, ("auto",)) and graph is None else model
    chosen = choose_model(preferred, answers, graph, parameters)
    if prepared.may_be_scale and is_among(model, ("auto",)) and "workers" not in parameters:
        answers, scale = settle_scale(answers, chosen.get_params()["seed"], working)
        if scale is not None and scale.ordered:
            chosen = chosen.set_params(workers=OrdinalWorkers.name)
    return chosen, answers, scale


def fuse_prepared(
    prepared: Prepared,
    model: str | Model,
    engine: Any,
    callback: Callable[[Progress], object] | None,
    features: Any,
    item_prior: Any,
    parameters: dict[str, Any],
    source_kind: str | None = None,
) -> Any:
    """Fuse what was opened; see `fuse`."""
    source, _, graph, gold, task, blocked, _, n_blocked = prepared
    asked = Asked(count_copies_once=True, source_kind=None if source_kind is None else check_kind(source_kind))
    verdict = None
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
        aligned = recipe.align(opened.responses, graph) if isinstance(opened, InMemory) else None
        found = fit_source(recipe, opened, aligned, working, asked)
        found = replace(found, scale_check=scale, soft_check=soft)
        checked = judge(recipe, found, opened, aligned, working, verdict)
    left_out = replace(checked.found, blocked=blocked if len(blocked) else None, n_blocked=n_blocked)
    return chosen.set_params(**checked.changed).adopt(left_out)


def settle_scale(
    answers: Responses | StoredResponses, seed: int, engine: Engine
) -> tuple[Responses | StoredResponses, ScaleCheck | None]:
    """Return answers on a scale if their classes look like one and hidden answers confirm it, and what these told."""
    order = None if answers.is_ordered or OrdinalWorkers.are_too_many(answers) else order_levels(answers)
    if order is None:
        return answers, None
    log.info("Comparing classes in order with classes without an order")
    check = check_scale(DawidSkene(calibration="none", tol=TOL, seed=seed).recipe(), answers, order, engine)
    if check is not None:
        log.info("Note: %s", check)
    return (answers if check is None or not check.ordered else give_ranks(answers, order)), check


def settle_way(answers: Responses | StoredResponses, chosen: FittedModel, engine: Engine) -> SoftCheck | None:
    """Return the way in which soft votes are fused by the model, if it has workers; see `soft_check`."""
    if "workers" not in chosen.get_params():
        return None
    if isinstance(answers, Responses):
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
    if responses.is_ordered and "workers" in kind.defaults() and not OrdinalWorkers.are_too_many(responses):
        given = {"workers": OrdinalWorkers.name, **given}
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


class Prepared(NamedTuple):
    """What was opened for a fusion.

    Attributes
    ----------
    source : Responses, Spans, Masks, what another task takes, or StoredResponses
        What is fused, as it was read.
    answers : Responses or StoredResponses
        The same as answers.
    graph : Graph or None
        How items hang together.
    gold : object
        Known labels to use, None if there are none.
    task : Task
        What the items are.
    blocked : ndarray
        Workers whose answers were left out.
    may_be_scale : bool
        Whether nobody said that classes are a scale, or that they are not, so that whole numbers may be one.
    n_blocked : tuple or None
        How many workers and answers were left out.
    """

    source: Any
    answers: Responses | StoredResponses
    graph: Graph | None
    gold: Any
    task: AnyTask = TABLE
    blocked: Values = NOBODY
    may_be_scale: bool = True
    n_blocked: tuple[int, int] | None = None

    @property
    def layout(self) -> str:
        """The form of the table of answers, if it was none with one row per answer."""
        return self.answers.provenance.format if isinstance(self.answers, Responses) else ""


def prepare(
    source: Any,
    graph: Any = None,
    gold: Any = None,
    columns: Mapping[str, Any] | None = None,
    gold_columns: Mapping[str, str | None] | None = None,
    block: Any = None,
) -> Prepared:
    """Open answers, known labels and the graph of their items.

    Parameters
    ----------
    source, graph, gold
        As for `fuse`.
    columns : mapping, optional
        Keywords of `Responses.from_frame`. Known labels beside the answers are looked for if none are given.
    gold_columns : mapping, optional
        Names of columns that tables of known labels are searched for first, by role.
    block : list, table or path, optional
        As for `fuse`.
    """
    blocked = read_blocked(open_paths(block) if isinstance(block, (str, os.PathLike)) else block)
    if isinstance(source, StoredResponses):
        refuse_disk(graph=graph)
        if len(blocked):
            raise ParameterError(
                "Workers of answers on disk are left out when these are read.",
                Sentence("Give {block} to scan_responses.", block=Python("block")),
                keyword="block",
            )
        if columns:
            raise ParameterError(
                f"Columns ({listing(columns)}) cannot be named for answers on disk: they are read already."
            )
        warn_of_fused(source)
        known = None if gold is False else open_gold(gold, gold_columns)
        if isinstance(source.task, TagsTask) and known is not None:
            known = source.task.spread_known(known, source.columns)
        return Prepared(source, source, None, known, source.task, source.blocked, isinstance(source.task, TableTask))
    if gold is None and find_task(source) is None:
        columns = {"gold": None, **(columns or {})}
    opened = open_answers(source, **(columns or {}))
    kind = need_task(opened)
    if gold is not None and gold is not False:
        if columns and columns.get("gold", False) is None:
            opened = kind.leave_known(opened)  # it was looked for, and is not used
        opened, gold = kind.take_known(opened, gold, open_known)
    task, answers = kind.pose(opened)
    n_blocked = None
    if len(blocked):
        left = leave_out(answers, blocked)
        n_blocked = answers.n_workers - left.n_workers, answers.n_responses - left.n_responses
        answers = left
    warn_of_fused(answers)
    if gold is None:
        gold = kind.choose_known(opened, answers)
    else:
        gold = None if gold is False else open_gold(gold, gold_columns)
    may_be_scale = isinstance(task, TableTask) and (columns or {}).get("ordered") is None
    links = None if graph is None else as_graph(graph, answers)
    return Prepared(opened, answers, links, gold, task, blocked, may_be_scale, n_blocked)


def warn_of_fused(answers: Responses | StoredResponses) -> None:
    """Warn of a worker who stands for the labels of an earlier fusion."""
    if answers.n_workers > 1 and lookup(answers.workers, to_column([FUSED]))[0] >= 0:
        warn(
            DataWarning(
                f"There are answers of a worker called {FUSED!r}: results of an earlier fusion, which count as if they "
                "were independent of the others.",
                "Fuse the file that holds only the answers of workers.",
            )
        )


def open_gold(gold: Any, columns: Mapping[str, str | None] | None) -> Any:
    """Return known labels with files opened as tables, in which columns of these names are looked for first."""
    opened = open_paths(gold)
    if gold is None or columns is None:
        return opened
    tables = opened if isinstance(opened, list) else [opened]
    return [replace(each, preferred=columns) if isinstance(each, Table) else each for each in tables]


def rank(
    comparisons: Any,
    left: str | None = None,
    right: str | None = None,
    winner: str | None = None,
    worker: str | None = None,
    item: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    gold: Any = None,
    *,
    order: str | None = None,
    candidate: str | None = None,
    score: str | None = None,
    rank: str | None = None,
    **parameters: Any,
) -> BradleyTerry:
    """Rank candidates by verdicts on pairs, and weigh the judges who gave them.

    Parameters
    ----------
    comparisons : table, path or Comparisons
        One row per verdict: two candidates, and which of them won. Or one row per judge, item and candidate, with a
        score or a rank.
    left, right, winner, worker, item, group, weight, order, candidate, score, rank : str, optional
        Names of columns; see `Comparisons.from_frame`.
    gold : table, path or dict, optional
        Known verdicts: a table with columns left, right and winner, or {(left, right): winner}.
    **parameters
        Parameters of `BradleyTerry`.

    Returns
    -------
    BradleyTerry
        Fitted, with `ranking_` and `judge_report`.

    Warns
    -----
    DataWarning
        When some candidates were never compared with the rest, or all verdicts are ties; when judges prefer the worse
        candidate, or rows are repeated.

    Examples
    --------
    >>> import consilience as cs
    >>> verdicts = {"left": list("aabbcc"), "right": list("bccaab"), "winner": list("aacaab")}
    >>> cs.rank(verdicts).ranking_["candidate"].to_pylist()
    ['a', 'b', 'c']
    """
    model = BradleyTerry().set_params(**parameters)
    roles = {"left": left, "right": right, "winner": winner, "worker": worker, "item": item, "group": group}
    roles |= {"weight": weight, "order": order, "candidate": candidate, "score": score, "rank": rank}
    data = open_comparisons(comparisons, **{role: name for role, name in roles.items() if name is not None})
    model.fit(data, gold=gold)
    for finding in model.findings_:
        if finding.category is not None:
            warn(finding.warning())
    return model


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Model, Questions or BradleyTerry
        Fitted, with its results and parameters, except for a `callback`, a model given as `start`, and a `classifier`.
        The default classifier is there, and so are the answers (`responses_`), unless they were left out.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> answers = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "votes.model"
    >>> file = cs.MajorityVote().fit(answers).save(file)
    >>> cs.load(file).labels_
    array(['x', 'y'], dtype=object)
    """
    questions = read_questions(to_path("path", "load", path), load)
    if questions is not None:
        return questions
    with open_saved(to_path("path", "load", path)) as saved:
        if saved.model == BradleyTerry.__name__:
            compare_names("parameter", BradleyTerry.defaults(), saved.parameters)
            ranking = BradleyTerry().set_params(**saved.parameters)
            check_settings(saved.parameters)
            return ranking.adopt(saved.read_ranking())
        model = make_model(saved, os.fspath(path))
        recipe = model.recipe()
        recipe.check()
        return model.adopt(saved.read(recipe))


def make_model(saved: SavedFusion, path: str) -> FittedModel:
    """Return the model that a file names, with its parameters and before it is fitted."""
    names = {entry.class_name: name for name, entry in MODELS.items()}
    if saved.model not in names:  # a file can name nothing else
        raise StoreError(
            f"{path} holds a model {shorten(saved.model)}, which this release does not know.",
            f"It knows {listing(names)}.",
        )
    kind = model_class(names[saved.model])
    compare_names("parameter", kind.defaults(), saved.parameters)
    return kind(**saved.parameters)


def held_out_score(
    model: Model,
    responses: object,
    graph: object = None,
    gold: object = None,
    fraction: float = 0.1,
    seed: int = 0,
    engine: EngineLike = None,
    features: object = None,
    item_prior: object = None,
) -> HeldOutScore:
    r"""Hide a fraction of the answers, fit a fresh copy of `model` on the rest, and score the hidden answers.

    The score is the mean of :math:`\log \sum_k q_{nk} \Gamma_m[k, f]` over hidden answers f of worker m about item n,
    with the calibrated posterior q, and with matrices counted from the answers that are left and their uncalibrated
    posterior, shrunk towards the whole crowd's: it is the posterior that is judged, and every model's in the same way.
    Needs no gold.

    Parameters
    ----------
    model : Model
        Whose parameters to use; the model itself is not touched. Of one that is fitted the power of its calibration is
        taken as found; one that is not is calibrated by answers hidden among those that are left, which takes longer.
    responses : Responses or table
        The answers.
    graph, gold
        As for `fit`.
    fraction : float
        Share of answers to hide: single answers of independent items, all answers of a worker in a sequence together
        for sequences (a worker's neighbouring answers are alike, and would give each other away).
    seed : int
        Which answers are hidden: they depend on the seed and on the ids of items and workers, not on the order of rows.
        The same seed hides the same answers for every model.
    engine, features, item_prior : optional
        As for `fit`.

    Returns
    -------
    HeldOutScore
        Higher is better. `a.minus(b)` compares two models.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.tile([0, 1], 50)
    >>> votes = np.stack([truth, truth, 1 - truth], axis=1)
    >>> r = cs.Responses.from_matrix(votes)
    >>> fit, vote = (cs.held_out_score(m, r) for m in (cs.DawidSkene(), cs.MajorityVote()))
    >>> fit.score > vote.score
    True
    """
    if not isinstance(model, Model):
        raise parameter_error("model", "held_out_score", "a model such as DawidSkene()", model)
    check_seed(seed, "held_out_score")
    if not (is_number(fraction) and 0 < fraction < 1):
        raise parameter_error("fraction", "held_out_score", "a number > 0 and < 1", fraction)
    recipe = model.recipe()
    if model.is_fitted:
        recipe = settle(recipe, model.fusion_, coupling=False)
    source = open_source(recipe, as_responses(responses), gold, features, item_prior).sample()
    r = source.responses
    aligned = recipe.align(r, graph)
    hidden, unit = next(hide_answers(r, fraction, seed))
    with open_engine(engine) as opened:
        found = fit_source(recipe, source.keep(~hidden), aligned, opened, Asked(copies=[]))
    return score_hidden(r, hidden, unit, found.labels.posterior, count_answers(found))
