"""Several questions in one table, or in several answers: each is opened as one question is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from ..answers import translate
from ..answers.tables import ROLES, open_frame
from ..arguments import check_questions, split_by_question
from ..errors import DataWarning, InputError, ManyQuestionsError, ParameterError, Sentence, listing, shorten, warn
from ..formats.sources import find_source, open_table
from ..kinds import find_kind
from ..kinds.tag_tables import find_separators
from .opening import Prepared, prepare
from .questions import keep_answered, split_gold

# What may be given for each question.
SCALE = ("classes", "ordered", "positions")
SPLIT = (*SCALE, "separator")


def are_answers(source: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a source is a mapping from questions to their answers, as `scan_answers` returns."""
    return isinstance(source, Mapping) and bool(source) and all(find_kind(each) is not None for each in source.values())


def list_labels(columns: dict[str, Any]) -> list[str] | None:
    """The questions that `label` names; None if it is one column, whose name is then there as text."""
    names = check_questions(columns.get("label"), "fuse")
    if names is not None and len(names) == 1:
        columns["label"] = names[0]
    return None if names is None or len(names) == 1 else names


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
    """What opens a question by its name, which has a column of its own in a table, or answers of its own."""
    check_questions(list(names), "fuse")
    known = split_gold(gold, names)
    if are_answers(source):
        if columns:
            raise ParameterError(f"Columns ({listing(columns)}) cannot be named for answers: they are read already.")
        return lambda name: prepare(source[name], graph, known.get(name), None, block)
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
        if gold is None and not translate(table, None, {**dict.fromkeys(ROLES), "label": name}).format:
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
