"""What is fitted and fused, opened in one place: answers, known labels and a graph, of one question or several."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import are_measured
from ..answers.columns import Values, find_present, is_missing, to_values
from ..answers.graph import Graph
from ..answers.tables import Table, is_table, open_frame
from ..errors import InputError, LabelWarning, ParameterError, Python, Sentence, listing, quietly, shorten, warn_of
from ..kinds import KINDS, find_kind, load_kind, read_rows
from ..kinds.base import FUSED, TABLE, AnyKind, TableKind


class Prepared(NamedTuple):
    """Answers, known labels and graph of a fusion, opened.

    Attributes
    ----------
    source : Answers, Spans, Masks, or what another kind takes
        What is fused, as it was read.
    answers : Answers
        The same as answers.
    graph : Graph or None
        How items hang together.
    gold : object
        Known labels to use, None if there are none.
    kind : Kind
        What the items are.
    blocked : ndarray
        Workers whose answers were left out.
    n_blocked : tuple or None
        How many workers and answers were left out.
    """

    source: Any
    answers: Answers
    graph: Graph | None
    gold: Any
    kind: AnyKind = TABLE
    blocked: Values | None = None
    n_blocked: tuple[int, int] | None = None


def prepare(
    source: Any,
    graph: Any = None,
    gold: Any = None,
    columns: Mapping[str, Any] | None = None,
    block: Any = None,
    wanted: str = "labels",
) -> Prepared:
    """Open answers, known labels and the graph of their items.

    Parameters
    ----------
    source, graph, gold
        As for `fuse`.
    columns : mapping, optional
        Keywords of `Answers.from_frame`. Known labels beside the answers are looked for if none are given; names of
        columns hold for files of known labels too, where these have them.
    block : list, table or path, optional
        As for `fuse`.
    wanted : str
        What answers of a table are: "numbers", "labels", or "auto", if their labels tell.
    """
    from ..formats.reading import open_paths
    from ..formats.sources import as_graph, open_known

    if gold is None and find_kind(source) is None:
        columns = {"gold": None, **(columns or {})}
    with quietly(LabelWarning) if wanted == "numbers" else nullcontext():
        opened = open_answers(source, **(columns or {}))
    kind_of_source = find_kind(opened)
    assert kind_of_source is not None
    if gold is not None and gold is not False:
        opened, gold = kind_of_source.take_known(opened, gold, open_known)
    if wanted != "labels":
        kind_of_source = choose_kind(kind_of_source, opened, wanted)
    kind, answers = kind_of_source.to_answers(opened)
    blocked, n_blocked = None, None
    if block is not None:
        from ..answers.joining import leave_out, read_blocked

        left_out = read_blocked(open_paths(block) if isinstance(block, (str, os.PathLike)) else block)
        if len(left_out):
            blocked, left = left_out, leave_out(answers, left_out)
            n_blocked = answers.n_workers - left.n_workers, kind.size(answers)[1] - kind.size(left)[1]
            answers = left
    if answers.n_workers > 1 and FUSED in answers.workers.tolist():
        warn_of(
            f"There are answers of a worker called {FUSED!r}: results of an earlier fusion, which count as if they "
            "were independent of the others.",
            "Fuse the file that holds only the answers of workers.",
        )
    if gold is None:
        gold = kind.choose_known(opened, answers)
    else:
        known = None if gold is False else open_gold_tables(gold, columns)
        gold = kind.spread_known(known, answers.columns)
    links = None if graph is None else as_graph(graph, answers)
    return Prepared(opened, answers, links, gold, kind, blocked, n_blocked)


def choose_kind(kind: type[AnyKind], opened: Any, wanted: str) -> type[AnyKind]:
    """The kind of answers that may be numbers. If nobody said that they are, a warning tells."""
    if kind is not TableKind and wanted == "numbers":
        raise InputError(f"These are {kind.title}, and no numbers.", Sentence("Leave out {kind}."), keyword="kind")
    if kind is not TableKind or (wanted == "auto" and not are_measured(opened)):
        return kind
    if wanted == "auto":
        name = shorten(opened.columns.get("label", "label"))
        warn_of(
            f"The answers in {name} are {opened.n_labels:,} different numbers. They are fused as numbers: each item "
            "gets a value.",
            Sentence("If they are classes, use {kind}.", kind="labels"),
            Sentence("To silence this warning, use {kind}.", kind="numbers"),
            keyword="kind",
        )
    return load_kind(cast(str, KINDS["Numbers"]))


def open_gold_tables(gold: Any, columns: Mapping[str, Any] | None = None) -> Any:
    """Known labels with files opened as tables, in which the columns of answers are looked for first."""
    if gold is None:
        return None
    from ..formats.reading import open_paths

    opened = open_paths(gold)
    tables = opened if isinstance(opened, list) else [opened]
    roles = {"item": "item", "sequence": "sequence", "position": "position", "label": "known label"}
    given = columns or {}
    names = {named: name for role, named in roles.items() if isinstance(name := given.get(role), str)}
    known = [
        replace(each, preferred=names) if isinstance(each, Table) and not each.preferred else each for each in tables
    ]
    return known if isinstance(opened, list) else known[0]


def open_answers(source: object, **columns: Any) -> Any:
    """Answers in any form as what a kind takes, such as `Answers`: as they are, or read.

    A column of known labels beside the answers is not read, unless it is asked for with ``gold=None``.
    """
    if find_kind(source) is None:
        columns = {"gold": False, **columns}
        if isinstance(source, (str, os.PathLike)):
            from ..formats.sources import open_source

            return open_source(source, **columns)
        if isinstance(columns.get("items"), (str, os.PathLike)):
            from ..formats.sources import take_answers

            return take_answers(source, **columns)
        return read_rows(open_frame(source), columns)
    if columns:
        raise ParameterError(
            f"Columns ({listing(columns)}) cannot be named for {type(source).__name__}: they are read already."
        )
    return source


def open_with_kind(source: object, like: AnyKind = TABLE, **columns: Any) -> tuple[AnyKind, Answers]:
    """Answers in any form, with the kind that they belong to; see `open_answers`.

    They are read as those of a fit with the kind `like` were. Whoever calls it cannot name columns. So errors name the
    function that can.
    """
    try:
        kind = find_kind(source)
        if like is not TABLE and kind is None:
            columns |= like.reading()
        opened = open_answers(source, **columns) if kind is None or columns else source
        if like is not TABLE and isinstance(opened, like.brought):
            opened = like.adapt(opened)
    except InputError as error:
        if any(isinstance(remedy, Sentence) and remedy.names for remedy in error.remedies):
            reader = "read_answers" if isinstance(source, (str, os.PathLike)) else "Answers.from_frame"
            taker = "That is for {reader}, whose answers this function takes."
            error.remedies = (*error.remedies, Sentence(taker, reader=Python(f"consilience.{reader}")))
        raise
    kind = find_kind(opened)
    assert kind is not None
    return kind.to_answers(opened)


def split_gold(gold: object, names: Sequence[str]) -> dict[str, Any]:
    """The known labels of each question that has some.

    They are a mapping from questions, or a table, or a file, with a column for each question; or one with columns
    question and label, such as `Questions.to_frame` returns.
    """
    if gold is None or gold is False:
        return dict.fromkeys(names, gold) if gold is False else {}
    if isinstance(gold, Mapping) and set(gold) <= set(names) and not any(map(is_plain, gold.values())):
        return dict(gold)
    if isinstance(gold, (list, tuple)) and len(gold) == 1:
        gold = gold[0]
    from ..formats.reading import open_path

    opened = open_path(gold) if isinstance(gold, (str, os.PathLike)) else gold
    if is_table(opened):
        table = open_frame(opened, "gold")
        there, in_rows = [name for name in names if name in table.names], "question" in table.names
        asked = np.array(list(map(str, to_values(table.read("question")).tolist())) if in_rows else [], object)
        # A question may itself be called question, or label.
        if in_rows and (not there or ("label" in table.names and set(asked) & set(names))):
            places = {name: np.flatnonzero(asked == name) for name in names}
            said = {"known label": "label" if "label" in table.names else None}
            return {name: replace(table.keep(each), preferred=said) for name, each in places.items() if len(each)}
        if there:
            rows = {name: table.keep(find_present(table.read(name))) for name in there}
            return {name: replace(each, preferred={"known label": name}) for name, each in rows.items()}
    raise InputError(
        f"It is not clear to which questions the known labels belong. The questions are {listing(names, len(names))}.",
        "Give {question: known labels}, or a table with a column for each question.",
        keyword="gold",
    )


def is_plain(value: object) -> bool:
    """Whether a value is a label, and not known labels of a question."""
    return (
        value is None
        or isinstance(value, (bool, int, float, np.generic))
        or (isinstance(value, str) and not os.path.exists(value))
    )


def keep_answered(table: Table, label: str, are_sets: bool) -> Table:
    """The rows in which a question has an answer. Of sets an empty cell may be one: all rows, if any has an answer."""
    if label not in table.names or table.lists(label) is not None:
        return table  # whoever reads it knows
    if not are_sets:
        rows = find_present(table.read(label))
        return table if len(rows) == table.n_rows else table.keep(rows)
    cells = to_values(table.read(label)).tolist()
    is_answered = any(not is_missing(cell) and str(cell).strip() for cell in cells)
    return table if is_answered else table.keep(np.empty(0, np.int64))
