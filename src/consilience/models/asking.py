"""Several questions in one table, or in several answers: each is read, and all are fused together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard, cast

from ..answers import recognise
from ..answers.columns import find_present
from ..answers.tables import ROLES, Table, open_frame
from ..arguments import check_questions, split_by_question
from ..engines import open_engine
from ..engines.base import Engine
from ..errors import (
    DataWarning,
    InputError,
    ManyQuestionsError,
    ParameterError,
    Sentence,
    about,
    listing,
    shorten,
    warn,
)
from ..formats.sources import find_source, open_table
from ..inference.workers.ordinal import NominalWorkers, OrdinalWorkers
from ..kinds import find_kind
from ..kinds.tag_tables import find_separators, find_tagged
from ..results.fitting import open_source
from .base import Model
from .dawid_skene import DawidSkene
from .fusing import Fitting, settle_model
from .preparing import Prepared, prepare
from .questions import Posed, Questions, fit_posed, split_gold


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
    check_questions(list(names), "fuse")
    known = split_gold(gold, names)
    if are_answers(source):
        prepares = prepare_answers(source, graph, known, columns, block)
    else:
        prepares = prepare_questions(source, names, graph, gold, known, columns, block)
    posed = []
    with open_engine(fitting.engine) as working:
        for name in names:
            with about(name):
                posed.append(pose_question(name, next(prepares), fitting, working))
        return fit_posed(posed, working, fitting.source_kind)


def are_answers(source: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a source is a mapping from questions to their answers, as `scan_answers` returns."""
    return isinstance(source, Mapping) and bool(source) and all(find_kind(each) is not None for each in source.values())


def prepare_answers(
    source: Mapping[str, object],
    graph: object,
    known: Mapping[str, object],
    columns: Mapping[str, object],
    block: object,
) -> Iterator[Prepared]:
    """Yield what was opened for each question."""
    if columns:
        raise ParameterError(f"Columns ({listing(columns)}) cannot be named for answers: they are read already.")
    for name, answers in source.items():
        yield prepare(answers, graph, known.get(name), None, block)


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
    form = cast("str | None", columns.get("format"))
    if isinstance(source, (str, os.PathLike)):
        table, form = open_table(os.fspath(source), form)
    else:
        table = open_frame(source)
    split = {role: split_by_question(role, columns[role], names) for role in SCALE if role in columns}
    split["separator"] = find_separators(columns.get("separator"), names, "fuse", partial(find_tagged, table))
    for name in names:
        read = {role: value for role, value in columns.items() if role not in SPLIT}
        read |= {role: each[name] for role, each in split.items() if name in each}
        read |= {"label": name, "format": form}
        # Known labels beside the answers belong to one question, unless the form of the table tells whose.
        if gold is None and recognise(table, {**dict.fromkeys(ROLES), "label": name}) is None:
            read["gold"] = False
        yield prepare(keep_answered(table, name, bool(read.get("separator"))), graph, known.get(name), read, block)


# What may be given for each question.
SCALE = ("classes", "ordered", "positions")
SPLIT = (*SCALE, "separator")


def keep_answered(table: Table, name: str, are_sets: bool) -> Table:
    """Return the rows in which a question has an answer; an empty cell is one if it may be an empty set.

    A question without any answers is an error.
    """
    if name not in table.names or table.lists(name) is not None:
        return table  # whoever reads it knows
    rows = find_present(table.read(name))
    if not len(rows):
        raise InputError(
            f"Question {shorten(name)} has no answers: its column is empty throughout.",
            Sentence("Leave it out of {label}."),
            keyword="label",
        )
    return table if are_sets or len(rows) == table.n_rows else table.keep(rows)


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
    aligned = recipe.align(opened.responses, prepared.graph)
    blocked = prepared.blocked if len(prepared.blocked) else None
    return Posed(name, chosen, opened, aligned, scale, blocked, prepared.n_blocked)
