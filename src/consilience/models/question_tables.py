"""Tables of several questions: labels with a row for each item and question, or for each item, and workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..answers.columns import Column, add_values, find_present, is_missing, lookup, to_column, to_values
from ..answers.tables import Table
from ..inference.estimator import renew
from ..kernels import Floats
from ..kinds.base import AnyKind
from ..kinds.tag_tables import SEPARATOR
from ..kinds.tags import TagsKind
from ..results.chance import BY_CHANCE, pool_chance
from ..results.result import Result
from ..results.worker_report import AS_IF_BY_CHANCE
from .fitted import FittedModel

# The column of tags in tables about one tag each.
TAG = "tag"
# What every table of labels says.
SURE = ("label", "confidence")


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


def count_question(found: Result) -> dict[str, Any]:
    """Return how many items and answers a question has, what can be true, and how sure its results are."""
    figures = {"items": found.labels.n_items, "answers": int(found.n_answers.sum())}
    if not isinstance(found.task, TagsKind):
        return figures | {"classes": found.names.classes.tolist(), "mean_confidence": found.told_confidence}
    # A set is one answer about an item, and the tags are what can be true.
    tags = found.task.tags.tolist()
    n_sets, size, confidence = found.task.add_up(found)
    sets = {"items": n_sets, "answers": figures["answers"] // max(len(tags), 1), "classes": tags, "mean_size": size}
    return sets | {"mean_confidence": None if found.told_confidence is None else confidence}


def table_of(model: FittedModel, undecided: float | None) -> pa.Table:
    """Return the labels of a question as an Arrow table."""
    shown = plain_model(model)
    table = shown.to_frame() if undecided is None else shown.to_frame(undecided=undecided)
    return join_tags(table, model.result_.task)


def plain_model(model: FittedModel) -> FittedModel:
    """Return a model whose tables are those of Arrow."""
    return renew(model)._adopt(replace(model.result_, backend="pyarrow"))


def to_columns(table: pa.Table) -> dict[str, Column]:
    """Return the columns of a table."""
    return {name: to_column(table.column(name)) for name in table.column_names}


def merge_rows(tables: Mapping[str, pa.Table], first: str, by: str) -> pa.Table:
    """Return the rows of all questions, with a column question before the `first` one, the largest of a column first.

    Columns that are not in all tables are left out, but for that of tags, which is missing where there are none.
    """
    if any(TAG in table.column_names for table in tables.values()):
        tables = {name: add_tag(table, first) for name, table in tables.items()}
    names = [name for table in tables.values() for name in table.column_names]
    shared = [name for name in dict.fromkeys(names) if names.count(name) == len(tables)]
    columns = {name: join([table[name] for table in tables.values()]) for name in shared}
    asked = to_column([name for name, table in tables.items() for _ in range(table.num_rows)])
    place = shared.index(TAG if TAG in shared else first)
    placed = columns | {"question": asked}
    rows = pa.table({name: placed[name] for name in [*shared[:place], "question", *shared[place:]]})
    order = np.argsort(-np.nan_to_num(rows.column(by).to_numpy().astype(np.float64)), kind="stable")
    return rows.take(pa.array(order))


def add_tag(table: pa.Table, first: str) -> pa.Table:
    """Return a table with the column of tags before the `first` one, empty if it has none."""
    tags = table.column(TAG).cast(pa.string()) if TAG in table.column_names else pa.nulls(table.num_rows, pa.string())
    others = table.drop_columns([TAG]) if TAG in table.column_names else table
    return others.add_column(others.column_names.index(first), TAG, tags)


def interleave(chosen: list[int], drawn: list[int], pattern: Sequence[bool]) -> list[int]:
    """Return rows, of which those drawn at random stand where the pattern has them, and the rest in the end."""
    found: list[int] = []
    for is_drawn in pattern:
        line = drawn if is_drawn and drawn else chosen or drawn
        if line:
            found.append(line.pop(0))
    return [*found, *chosen, *drawn]


def join_tags(table: pa.Table, task: AnyKind) -> pa.Table:
    """Return a table of labels with sets of tags as text, between which is what was between them in the answers."""
    if isinstance(task, TagsKind):
        sign = task.separator or SEPARATOR
        joined = pc.binary_join(table.column("labels").cast(pa.list_(pa.string())), sign)
        table = table.set_column(table.column_names.index("labels"), "label", joined)
    return table


def list_key_names(table: pa.Table) -> list[str]:
    """Return the columns that say what a row is about: those before the label."""
    return list(table.column_names[: table.column_names.index("label")])


def to_one_type(columns: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Return columns of one type: as they are, or as text."""
    return list(columns) if len({each.type for each in columns}) == 1 else list(map(to_text, columns))


def to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as text, bytes that are none as Python writes them."""
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([[None if value is None else str(value) for value in column.to_pylist()]], pa.string())


def lengthen(tables: Mapping[str, pa.Table]) -> dict[str, Column]:
    """Return the columns of a table with a row for each item and question."""
    first = next(iter(tables.values()))
    keys = list_key_names(first)
    same = all(table.column_names == first.column_names for table in tables.values())
    rest = [name for name in first.column_names if name not in keys] if same else ["label", "confidence"]
    columns: dict[str, Column] = {}
    for name in keys:
        columns[name] = join([table.column(name) for table in tables.values()])
    columns["question"] = to_column([name for name, table in tables.items() for _ in range(table.num_rows)])
    for name in rest:
        columns[name] = join([table.column(name) for table in tables.values()])
    return columns


def join(columns: Sequence[pa.ChunkedArray]) -> Column:
    """Return the columns of several tables as one."""
    return to_column(pa.concat_arrays([chunk for each in to_one_type(columns) for chunk in each.chunks]))


def widen(tables: Mapping[str, pa.Table]) -> dict[str, Column]:
    """Return the columns of a table with a row for each item."""
    keys = list_key_names(next(iter(tables.values())))
    every = pa.table({name: join([table.column(name) for table in tables.values()]) for name in keys})
    row, number = dict[tuple[object, ...], int](), dict[str, list[int]]()
    listed = zip(*(every.column(name).to_pylist() for name in keys), strict=True)
    places = [row.setdefault(key, len(row)) for key in listed]
    first = [places.index(place) for place in range(len(row))] if len(row) < 1000 else find_first(places)
    columns: dict[str, Column] = {name: to_column(every.column(name).take(pa.array(first))) for name in keys}
    begin = 0
    for name, table in tables.items():
        number[name] = places[begin : begin + table.num_rows]
        begin += table.num_rows
        at = np.full(len(row), -1, np.int64)
        at[number[name]] = np.arange(table.num_rows)
        pick = pa.array(at, mask=at < 0)
        for title, source in ((name, "label"), (f"{name}_confidence", "confidence")):
            columns[title if title not in columns else f"answer_{title}"] = to_column(table.column(source).take(pick))
    return columns


def find_first(places: Sequence[int]) -> list[int]:
    """Return where each of the numbers 0, 1, ... first is."""
    found: list[int] = np.unique(np.array(places), return_index=True)[1].tolist()
    return found


def report_workers(questions: Mapping[str, FittedModel]) -> dict[str, Column]:
    """Return the columns of the report on workers over all questions."""
    reports = {name: worker_columns(model) for name, model in questions.items()}
    every = next(iter(questions.values())).result_.names.workers
    for model in questions.values():
        every, _ = add_values(every, model.result_.names.workers)
    n_answers, right, judged = np.zeros(len(every), np.int64), np.zeros(len(every)), np.zeros(len(every))
    chances, accuracies = [], {}
    for name, model in questions.items():
        place, report = lookup(every, to_column(model.result_.names.workers)), reports[name]
        accuracy, chance = (np.full(len(every), np.nan) for _ in range(2))
        accuracy[place], chance[place] = report["accuracy"], report["chance"]
        n_answers[place] += report["answers"].astype(np.int64)
        known = ~np.isnan(report["accuracy"])
        right[place[known]] += report["answers"][known] * report["accuracy"][known]
        judged[place[known]] += report["answers"][known]
        accuracies[f"accuracy({name})"] = to_column(accuracy)
        chances.append(chance)
    pooled = pool_chance(chances)
    mean = np.divide(right, judged, out=np.full(len(every), np.nan), where=judged > 0)
    return {
        "worker": to_column(every),
        "answers": to_column(n_answers),
        "accuracy": to_column(mean),
        "chance": to_column(pooled),
        "remarks": to_column([AS_IF_BY_CHANCE if each > BY_CHANCE else "" for each in pooled]),
        **accuracies,
    }


def worker_columns(model: FittedModel) -> dict[str, Floats]:
    """Return figures of the workers of one question."""
    report = plain_model(model).worker_report()
    missing = pa.nulls(report.num_rows, pa.float64())
    names = "answers", "accuracy", "chance"
    found = {name: report[name] if name in report.column_names else missing for name in names}
    return {name: np.array(column.to_pylist(), np.float64) for name, column in found.items()}
