"""Which items there are and in which order they stand: items have ids, or a sequence and a position."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, Sentence, listing
from ..kernels import Integers
from ..options import to_floats
from .columns import (
    Column,
    Indices,
    Values,
    add_values,
    encode_in_order_of_appearance,
    find_missing,
    join_columns,
    lookup,
    order_by,
    to_column,
    to_values,
)
from .tables import is_table, open_frame, read_column

NAMED = "the named items"


@dataclass(frozen=True, eq=False)
class Sequences:
    """Where each sequence begins among the items, what it is called, and the position of each item in it."""

    ids: Values
    offsets: Indices
    position: Values

    def __len__(self) -> int:
        return len(self.ids)

    def of_items(self) -> Indices:
        """The sequence that each item belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def count_items(keys: Values | Sequences) -> int:
    """The number of items that have these keys."""
    return len(keys.position) if isinstance(keys, Sequences) else len(keys)


def key_of(keys: Values | Sequences, item: int) -> object:
    """What identifies an item, as Python writes it: 7, not np.int64(7)."""
    if not isinstance(keys, Sequences):
        return keys[[item]].tolist()[0]
    owner = int(np.searchsorted(keys.offsets, item, side="right")) - 1
    return keys.ids[[owner]].tolist()[0], keys.position[[item]].tolist()[0]


def encode_items(columns: list[Column], named: list[Column] | None, source: str) -> tuple[Integers, Values | Sequences]:
    """The index of each row's item, and the keys of all items.

    Sequences stand as they appear, and positions in order within.

    Parameters
    ----------
    columns : list of Column
        What identifies the item of each row: its id, or its sequence and position.
    named : list of Column or None
        The same for items that exist whether or not they have a row. They come first, in this order.
    source : str
        What messages call the table of rows.
    """
    owner, ids = encode_in_order_of_appearance(columns[0])
    n_rows = len(owner)
    if named is not None and (len(columns) == 1 or len(named[0])):
        # The named ones first, then the others.
        codes, distinct = encode_in_order_of_appearance(named[0])
        index = lookup(ids, to_column(distinct))
        new = index < 0
        index[new] = len(ids) + np.arange(new.sum())
        ids = to_values(join_columns(to_column(ids), to_column(distinct[new])))
        first = np.unique(np.concatenate([index, np.arange(len(ids))]), return_index=True)[1]
        order = np.argsort(first)
        moved = np.empty(len(order), np.int32)
        moved[order] = np.arange(len(order), dtype=np.int32)
        ids, owner = ids[order], np.concatenate([moved[owner], moved[index[codes]]])
    if len(columns) == 1:
        return owner[:n_rows], ids
    place = read_positions(columns[1], source)
    if len(owner) > n_rows and named is not None:
        place = to_values(join_columns(to_column(place), to_column(read_positions(named[1], NAMED))))
    places, rank = _rank_positions(place, "Positions must have an order, and these cannot be compared")
    # Two counting sorts, the lesser key first: linear in the answers.
    by_place, _ = order_by(rank, len(places))
    by_owner, _ = order_by(owner[by_place], len(ids))
    order = by_place[by_owner]
    begins = np.append(True, (np.diff(owner[order]) != 0) | (np.diff(rank[order]) != 0))[: len(order)]
    item, first = np.empty(len(order), np.int64), order[begins]
    item[order] = np.cumsum(begins) - 1
    offsets = np.searchsorted(owner[first], np.arange(len(ids) + 1))
    return item[:n_rows], Sequences(ids, offsets.astype(np.int64), place[first])


def _rank_positions(positions: Values, problem: str) -> tuple[Values, Indices]:
    """The distinct positions, sorted, and the rank of each."""
    try:
        return np.unique(positions, return_inverse=True)
    except TypeError as error:
        raise InputError(f"{problem}: {error}.", "Write them in the same way.") from error


def read_positions(column: Column, source: str) -> Values:
    """Positions as values with an order: numbers and times as they are, text only if it reads as numbers."""
    values = to_values(column)
    entries = values.tolist()
    # Times with time zones are Python's own.
    if values.dtype.kind not in "OS" or all(isinstance(each, (datetime.date, datetime.time)) for each in entries):
        return values
    try:
        numbers = to_floats(entries)
        if numbers.ndim > 1 or np.isnan(numbers).any():
            raise ValueError(f"got {listing(entries)}")
        is_whole = all(isinstance(entry, str) and entry.strip().lstrip("+-").isdecimal() for entry in entries)
        return np.array(entries, dtype=np.int64) if is_whole else numbers
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"Positions of {source} must be numbers or times, so that they have an order: {error}."
        ) from error


def read_keys(items: Any, n_columns: int, preferred: Mapping[str, str] | None = None) -> list[Column]:
    """The keys of named items in columns: one of ids, or two of sequences and positions.

    Parameters
    ----------
    items : table, array of ids, or (sequence, position) pairs
        What the parameter of that name was given.
    n_columns : {1, 2}
        How many columns identify an item.
    preferred : mapping, optional
        What the columns of items are called in the answers; they may be called so in a table of items.
    """
    remedy = "Give the ids of items that exist."
    if isinstance(items, (str, bytes)):
        raise InputError(
            Sentence("{items} is text, and not a table or a sequence of ids.", items=items),
            "Read the file first, or let consilience.read_answers or consilience.fuse read it.",
            keyword="items",
        )
    if is_table(items):
        table = open_frame(items, "the table of items").prefer(preferred or {})
        return [table.values(name, remedy) for name in table.need_keys(n_columns == 2)]
    if n_columns == 1:
        columns = [read_column(items, "items")]
    else:
        pairs: list[Any] = list(items) if isinstance(items, Iterable) else [None]
        if any(not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2 for pair in pairs):
            raise InputError(
                Sentence("{items} of sequences must be a table or (sequence, position) pairs."), keyword="items"
            )
        columns = [to_column([pair[i] for pair in pairs], "items") for i in range(2)]
    if any(len(find_missing(column)) for column in columns):
        raise InputError(Sentence("{items} has missing entries."), remedy, keyword="items")
    return columns


def join_keys(old: Values | Sequences, new: Values | Sequences) -> tuple[Values | Sequences, Indices, Indices]:
    """What identifies all items, and where the old and the new ones are among them; sequences may grow at any place."""
    if not (isinstance(old, Sequences) and isinstance(new, Sequences)):
        known: Any = old
        keys, index = add_values(known, new)  # type: ignore[arg-type]
        return keys, np.arange(len(known)), index
    ids, owner = add_values(old.ids, new.ids)
    position = to_values(join_columns(to_column(old.position), to_column(new.position)))
    places, rank = _rank_positions(position, "Old and new positions cannot be compared")
    code = np.concatenate([old.of_items(), owner[new.of_items()]]) * len(places) + rank
    items, first, place = np.unique(code, return_index=True, return_inverse=True)
    offsets = np.searchsorted(items, np.arange(len(ids) + 1) * len(places)).astype(np.int64)
    n_old = len(old.position)
    return Sequences(ids, offsets, position[first]), place[:n_old], place[n_old:]
