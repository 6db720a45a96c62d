"""What a fusion starts from: answers, known labels and a graph, opened in one place for Python and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from .answers.columns import to_column
from .answers.graph import Graph
from .answers.responses import Responses
from .answers.tables import Table
from .answers.vocabulary import lookup
from .errors import DataWarning, ParameterError, listing, warn
from .formats.reading import open_paths
from .formats.sources import as_graph, open_known
from .inference.recipes.base import refuse_disk
from .models.inputs import open_answers
from .storage.answers import StoredResponses
from .tasks.base import AnyTask
from .tasks.register import find_task, need_task
from .tasks.table_task import TABLE
from .tasks.texts import FUSED


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
    """

    source: Any
    answers: Responses | StoredResponses
    graph: Graph | None
    gold: Any
    task: AnyTask = TABLE

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
    """
    if isinstance(source, StoredResponses):
        refuse_disk(graph=graph)
        if columns:
            raise ParameterError(
                f"Columns ({listing(columns)}) cannot be named for answers on disk: they are read already."
            )
        warn_of_fused(source)
        return Prepared(source, source, None, None if gold is False else open_gold(gold, gold_columns))
    if gold is None and find_task(source) is None:
        columns = {"gold": None, **(columns or {})}
    opened = open_answers(source, **(columns or {}))
    kind = need_task(opened)
    if gold is not None and gold is not False:
        if columns and columns.get("gold", False) is None:
            opened = kind.leave_known(opened)  # it was looked for, and is not used
        opened, gold = kind.take_known(opened, gold, open_known)
    task, answers = kind.pose(opened)
    warn_of_fused(answers)
    if gold is None:
        gold = kind.choose_known(opened, answers)
    else:
        gold = None if gold is False else open_gold(gold, gold_columns)
    return Prepared(opened, answers, None if graph is None else as_graph(graph, answers), gold, task)


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
