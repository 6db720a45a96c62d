"""Long tables of answers: columns found, ids encoded, answers sorted by item, duplicates settled."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import DataWarning, InputError, ParameterError, listing, parameter_error, plural, shorten
from .frames import Table, is_table, open_frame, read_column
from .vocabulary import (
    Codes,
    Column,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    lookup,
    to_column,
    to_values,
)

DUPLICATES = ("error", "first", "last", "mean")
# Weights of one worker's spread answer may exceed 1 by rounding.
WEIGHT_SLACK = 1e-6
_HOW_TO_DROP = {
    "pandas": ", as dropna(subset=[{0!r}]) does. If a label is called NA or None, read it with keep_default_na=False",
    "polars": ", as drop_nulls({0!r}) does",
}


@dataclass(frozen=True, eq=False)
class Sequences:
    """Where each sequence begins among the items, what it is called, and the position of each item in it."""

    ids: Values
    offsets: NDArray[np.int64]
    position: Values

    def __len__(self) -> int:
        return len(self.ids)

    def of_items(self) -> NDArray[np.int64]:
        """Return the index of the sequence that each item belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers sorted by item, in integers, with the values that these stand for."""

    offsets: NDArray[np.int64]
    worker: Codes
    label: Codes
    weight: NDArray[np.float64] | None
    workers: Values
    labels: Values
    keys: Values | Sequences  # ids of the items
    backend: str = "pyarrow"


def answers_from_table(
    table: Table,
    item: str | None,
    worker: str | None,
    label: str | None,
    sequence: str | None,
    position: str | None,
    weight: str | None,
    items: Any,
    duplicates: str,
) -> Answers:
    """Read a table whose columns are found by name or alias; see `Responses.from_frame`."""
    from ..kernels.layout import order_by

    if duplicates not in DUPLICATES:
        raise parameter_error("duplicates", "Responses", f"one of {', '.join(map(repr, DUPLICATES))}", duplicates)
    found = find_columns(table, item, worker, label, sequence, position, weight)
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows: there are no answers to fuse.")
    drop = f"A missing answer needs no row: drop it{_HOW_TO_DROP.get(table.backend, '').format(found['label'])}."
    fill = "Every answer must say who gave it about what: fill it in or drop the row."
    label_codes, labels = encode_sorted(table.values(found["label"], drop))
    worker_codes, workers = encode_sorted(table.values(found["worker"], fill))
    weights = None if weight is None else _read_weights(table, found["weight"])
    key_names = tuple(found[role] for role in ("item", "sequence", "position") if role in found)
    item_codes, keys = _encode_items(table, key_names, fill, items)
    n_items = len(keys) if not isinstance(keys, Sequences) else int(keys.offsets[-1])

    # Arrow keeps the memory of its hash tables for later; with millions of items that is most of what was used.
    pa.default_memory_pool().release_unused()
    order: NDArray[np.int64] | None = None
    if np.all(item_codes[:-1] <= item_codes[1:]):
        # Sorted by item already, as most tables are: nothing to move.
        offsets = np.concatenate([[0], np.cumsum(np.bincount(item_codes, minlength=n_items))]).astype(np.int64)
    else:
        order, offsets = order_by(item_codes, n_items)
    del item_codes
    key = key_names[0]
    if item is None and key.lower() == "id" and table.n_rows > 1 and np.diff(offsets).max() == 1:
        warnings.warn(
            f"No two rows of {table.name} have the same {key!r}: is {key!r} a row number? Name the item column with "
            "item=.",
            DataWarning,
            stacklevel=3,
        )
    answers = Answers(
        offsets,
        worker_codes if order is None else worker_codes[order],
        label_codes if order is None else label_codes[order],
        weights if weights is None or order is None else weights[order],
        workers,
        labels,
        keys,
        table.backend,
    )
    return _settle_duplicates(answers, order, duplicates, table)


def find_columns(
    table: Table,
    item: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    sequence: str | None = None,
    position: str | None = None,
    weight: str | None = None,
) -> dict[str, str]:
    """Return the column that plays each role: item (or sequence and position), worker, label, and weight if named."""
    in_sequences = sequence is not None or position is not None
    if item is not None and in_sequences:
        raise ParameterError("Give either item= or sequence= and position=, not both: a position is an item.")
    if item is None and not in_sequences and table.find("item", None) is None:
        in_sequences = table.find("sequence", None) is not None
    roles = {"sequence": sequence, "position": position} if in_sequences else {"item": item}
    roles |= {"worker": worker, "label": label} | ({} if weight is None else {"weight": weight})
    missing = [role for role, given in roles.items() if table.find(role, given) is None]
    if len(missing) > 1:
        raise table.no_columns(missing)
    return {role: table.need(role, given) for role, given in roles.items()}


def _encode_items(
    table: Table, names: tuple[str, ...], remedy: str, extra: Any
) -> tuple[NDArray[np.signedinteger[Any]], Values | Sequences]:
    """Return the item of each row, and the keys of all items; `extra` names items that have no row."""
    columns = [table.values(name, remedy) for name in names]
    if len(names) == 1:
        codes, ids = encode_in_order_of_appearance(columns[0])
        if extra is not None:
            ids, _ = _append_new(ids, key_columns(extra, 1)[0])
        return codes, ids
    return _encode_positions(columns[0], columns[1], None if extra is None else key_columns(extra, 2), table)


def _encode_positions(
    sequence: Column, position: Column, extra: list[Column] | None, table: Table
) -> tuple[NDArray[np.int64], Sequences]:
    """Number the distinct (sequence, position) pairs: sequences as they appear, positions in order within."""
    from ..kernels.layout import number_runs, order_by

    owner, ids = encode_in_order_of_appearance(sequence)
    place = read_positions(position, table.name)
    n_rows = len(owner)
    if extra is not None and len(extra[0]):
        ids, more = _append_new(ids, extra[0])
        owner = np.concatenate([owner, more.astype(np.int32)])
        place = _join(place, read_positions(extra[1], "items="))
    try:
        places, rank = np.unique(place, return_inverse=True)
    except TypeError as error:
        raise InputError(f"Positions must have an order, and these cannot be compared: {error}.") from error
    # Two counting sorts, the lesser key first: linear in the answers.
    by_place, _ = order_by(rank, len(places))
    by_owner, _ = order_by(owner[by_place], len(ids))
    item, first = number_runs(owner, rank, by_place[by_owner])
    offsets = np.searchsorted(owner[first], np.arange(len(ids) + 1))
    return item[:n_rows], Sequences(ids, offsets.astype(np.int64), place[first])


def read_positions(column: Column, source: str) -> Values:
    """Return positions as values with an order: numbers and times as they are, text only if it reads as numbers."""
    if not isinstance(column, np.ndarray) and pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values = to_values(column)
    if not isinstance(column, np.ndarray) and (
        pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type) or values.dtype.kind in "biuf"
    ):
        return values
    entries = values.tolist()
    if all(isinstance(entry, (datetime.datetime, datetime.time)) for entry in entries):
        return values  # with time zones, which only Python's own times have
    try:
        numbers = np.array(entries, dtype=np.float64)
        if numbers.ndim > 1 or np.isnan(numbers).any():
            raise ValueError(f"got {listing(entries)}")
        return np.array(entries, dtype=np.int64) if all(map(_is_whole, entries)) else numbers
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"Positions of {source} must be numbers or times, so that they have an order: {error}."
        ) from error


def _is_whole(entry: Any) -> bool:
    return isinstance(entry, str) and entry.strip().lstrip("+-").isdecimal()


def _append_new(ids: Values, column: Column) -> tuple[Values, NDArray[np.int64]]:
    """Return `ids` followed by the entries of `column` it does not have yet, and the index of each entry in that."""
    codes, distinct = encode_in_order_of_appearance(column)
    index = lookup(ids, to_column(distinct))
    new = index < 0
    index[new] = len(ids) + np.arange(new.sum())
    return _join(ids, distinct[new]), index[codes]


def _join(first: Values, second: Values) -> Values:
    if not len(second):
        return first
    kinds = first.dtype.kind + second.dtype.kind
    whole = first if kinds == "if" else second
    if kinds[0] == kinds[1] or (kinds in ("if", "fi") and np.abs(whole).max() <= 2**53):
        return np.concatenate([first, second])
    return to_values(to_column(first.tolist() + second.tolist()))


def key_columns(extra: Any, n_columns: int) -> list[Column]:
    """Return the key columns of `items=`: a table, an array of ids, or pairs."""
    remedy = "Give the ids of items that exist."
    if is_table(extra):
        named = open_frame(extra, "the items table", nameable=False)
        roles = ("item",) if n_columns == 1 else ("sequence", "position")
        return [named.values(named.need(role, None), remedy) for role in roles]
    if n_columns == 1:
        columns = [read_column(extra, "items=")]
    else:
        pairs = list(extra) if isinstance(extra, Iterable) else [extra]
        if any(not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2 for pair in pairs):
            raise InputError("items= of sequences must be a table or (sequence, position) pairs.")
        columns = [to_column([pair[i] for pair in pairs], "items=") for i in range(2)]
    for column in columns:
        if len(find_missing(column)):
            raise InputError(f"items= has missing entries. {remedy}")
    return columns


def _read_weights(table: Table, name: str) -> NDArray[np.float64]:
    column = to_values(table.values(name, "Every answer needs a weight in (0, 1]: fill it in or drop the row."))
    try:
        if column.dtype.kind in "mM":
            raise TypeError("these are times")
        weights = np.array(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"Column {name!r} of {table.name} must hold numbers: {error}.") from error
    wrong = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"Column {name!r} of {table.name} has {plural(len(wrong), 'weight')} outside (0, 1]; the first is "
            f"{weights[row]} at {table.locate(row)}. Divide all weights by the largest, and drop answers that count "
            "for nothing."
        )
    return weights


def _settle_duplicates(answers: Answers, order: NDArray[np.int64] | None, policy: str, table: Table) -> Answers:
    """Apply `duplicates=` to (item, worker) pairs answered more than once, or with weights of more than 1 in all."""
    from ..kernels.layout import find_repeat

    repeat = find_repeat(answers.offsets, answers.worker, len(answers.workers))
    if repeat < 0:
        return answers
    item = np.repeat(np.arange(len(answers.offsets) - 1), np.diff(answers.offsets))
    pairs = item * len(answers.workers) + answers.worker
    _, pair = np.unique(pairs, return_inverse=True)
    size = np.bincount(pair)
    total = size if answers.weight is None else np.bincount(pair, weights=answers.weight)
    too_much = (total > 1 + WEIGHT_SLACK)[pair]
    if not too_much.any():
        return answers
    if policy == "error":
        first = int(np.flatnonzero(too_much)[0])
        same = np.flatnonzero(pair == pair[first])
        rows = same if order is None else np.sort(order[same])
        where = _say_where(table, int(rows[0]), int(rows[1]))
        n_pairs = int((total > 1 + WEIGHT_SLACK).sum())
        spread = "" if answers.weight is None else ", with weights of more than 1 in all"
        who, about = _entry(answers.workers, answers.worker[first]), _key(answers.keys, int(item[first]))
        raise InputError(
            f"Worker {shorten(who)} answered item {shorten(about)} more than once{spread}: see {where}. "
            f"{plural(n_pairs, 'such pair')} in all. Remove them, or say duplicates='first', 'last' or 'mean'."
        )
    if policy == "mean":
        weight = np.ones(len(pair)) if answers.weight is None else answers.weight
        return replace(answers, weight=np.where(too_much, weight / size[pair], weight))
    step = 1 if policy == "first" else -1
    chosen = np.zeros(len(pair), bool)
    _, chosen_at = np.unique(pair[::step], return_index=True)
    chosen[chosen_at if step == 1 else len(pair) - 1 - chosen_at] = True
    kept = chosen | ~too_much
    # A label that only occurred in answers that were dropped is a label nobody gave.
    said = np.bincount(answers.label[kept], minlength=len(answers.labels)) > 0
    rank = np.cumsum(said, dtype=np.int32) - np.int32(1)
    return replace(
        answers,
        offsets=np.concatenate([[0], np.cumsum(kept)])[answers.offsets].astype(np.int64),
        worker=answers.worker[kept],
        label=rank[answers.label[kept]],
        weight=None if answers.weight is None else answers.weight[kept],
        labels=answers.labels[said],
    )


def _say_where(table: Table, first: int, second: int) -> str:
    """Return the places of two rows, with the file they share only once."""
    here, there = table.locate(first), table.locate(second)
    file, comma, _ = here.rpartition(", ")
    if not comma:
        return f"{here} and {there} of {table.name}"
    return f"{here} and {there.removeprefix(file + comma)}"


def _key(keys: Values | Sequences, item: int) -> object:
    if isinstance(keys, Sequences):
        owner = int(np.searchsorted(keys.offsets, item, side="right")) - 1
        return _entry(keys.ids, owner), _entry(keys.position, item)
    return _entry(keys, item)


def _entry(values: Values, index: int) -> object:
    """Return one of the values as Python writes it: 7, not np.int64(7)."""
    return values[index : index + 1].tolist()[0]
