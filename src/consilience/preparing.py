"""What a fusion starts from: answers, known labels and a graph, opened in one place for Python and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .answers.columns import to_column
from .answers.gold import LEAVE_OUT, find_strange
from .answers.graph import Graph
from .answers.responses import Responses
from .answers.tables import Table
from .answers.vocabulary import lookup
from .errors import DataWarning, ParameterError, Python, Sentence, listing, plural, shorten, warn
from .formats.reading import open_path, open_paths
from .formats.sources import Opened, as_graph, open_masks, open_spans
from .inference.recipes.base import refuse_disk
from .models.inputs import as_responses, open_answers
from .storage.answers import StoredResponses
from .tasks.masks import Masks, list_known_pixels
from .tasks.span_tables import find_span_columns, read_sole_spans
from .tasks.spans import Spans
from .tasks.texts import FUSED


class Prepared(NamedTuple):
    """What was opened for a fusion.

    Attributes
    ----------
    source : Responses, Spans, Masks or StoredResponses
        What is fused, as it was read.
    answers : Responses or StoredResponses
        The same as answers.
    graph : Graph or None
        How items hang together.
    gold : object
        Known labels to use, None if there are none.
    """

    source: Opened | StoredResponses
    answers: Responses | StoredResponses
    graph: Graph | None
    gold: Any


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
    if gold is None and not isinstance(source, (Responses, Spans, Masks)):
        columns = {"gold": None, **(columns or {})}
    opened = open_answers(source, **(columns or {}))
    if gold is not None and gold is not False:
        if columns and columns.get("gold", False) is None and isinstance(opened, Responses):
            # Known labels beside the answers were looked for, and are not used.
            opened = replace(
                opened, gold=None, columns={role: name for role, name in opened.columns.items() if role != "gold"}
            )
        opened, gold = take_known(opened, gold)
    responses = as_responses(opened)
    warn_of_fused(responses)
    if gold is None and isinstance(opened, Spans):
        gold = choose_spans(opened)
    elif gold is None:
        gold = choose_gold(responses)
    else:
        gold = None if gold is False else open_gold(gold, gold_columns)
    return Prepared(opened, responses, None if graph is None else as_graph(graph, responses), gold)


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
    return Spans.of(read_sole_spans(opened, "gold", source.documents, source.texts))


def open_gold(gold: Any, columns: Mapping[str, str | None] | None) -> Any:
    """Return known labels with files opened as tables, in which columns of these names are looked for first."""
    opened = open_paths(gold)
    if gold is None or columns is None:
        return opened
    tables = opened if isinstance(opened, list) else [opened]
    return [replace(each, preferred=columns) if isinstance(each, Table) else each for each in tables]


def choose_gold(responses: Responses) -> Mapping[Any, Any] | None:
    """Return the known labels that the answers come with, if they are of use. A warning tells of them.

    They are not used if some are no classes, or if the label of every item is known: there would be nothing to fuse.
    """
    if not responses.gold:
        return None
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
