"""What users hand in as answers, and the tasks that these belong to."""

from __future__ import annotations

import os
from typing import Any

from ..answers.responses import Responses
from ..errors import InputError, ParameterError, Sentence, listing
from ..formats.sources import COLUMNS, open_source, read_source
from ..storage.answers import StoredResponses
from ..tasks.base import Posed
from ..tasks.register import find_task, need_task


def open_answers(source: object, **columns: Any) -> Any:
    """Return answers in any form as what a task takes, such as `Responses`: as they are, or read.

    A column of known labels beside the answers is not read, unless it is asked for with ``gold=None``.
    """
    if isinstance(source, StoredResponses):
        raise ParameterError(
            "Answers on disk are only for fit and fuse, and here they must be in memory.",
            "Read them with read_responses.",
        )
    if find_task(source) is None:
        columns = {"gold": False, **columns}
        return (
            open_source(source, **columns) if isinstance(source, (str, os.PathLike)) else read_source(source, **columns)
        )
    if columns:
        raise ParameterError(
            f"Columns ({listing(columns)}) cannot be named for {type(source).__name__}: they are read already."
        )
    return source


def as_responses(source: object, **columns: Any) -> Responses:
    """Return answers in any form as `Responses`; see `open_posed`."""
    return open_posed(source, **columns).answers


def open_posed(source: object, **columns: Any) -> Posed:
    """Return answers in any form, with the task that they belong to; see `open_answers`.

    Whoever calls it cannot name columns. So errors name the function that can.
    """
    try:
        opened = open_answers(source, **columns)
    except InputError as error:
        is_path = isinstance(source, (str, os.PathLike))
        call = "read_responses(path, " if is_path else "Responses.from_frame(df, "
        remedies = [_name_reader(remedy, call) for remedy in error.remedies]
        raise InputError(error.problem, *remedies, keyword=error.keyword).with_traceback(error.__traceback__) from None
    return need_task(opened).pose(opened)


def _name_reader(remedy: str | Sentence, call: str) -> str | Sentence:
    """Return a remedy with what reads answers, if it names parameters of that."""
    is_about_reading = isinstance(remedy, Sentence) and bool(remedy.names) and COLUMNS.issuperset(remedy.names)
    return remedy.within(call) if isinstance(remedy, Sentence) and is_about_reading else remedy
