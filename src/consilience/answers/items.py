"""Which items there are, and in which order: by id, or by sequence and position."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..answers.columns import Codes, Indices
from ..arguments import to_floats
from ..errors import InputError, Sentence, listing
from ..kernels.types import Integers
from .columns import Column, Values, decode_categories, find_missing, to_column, to_values
from .frames import is_table, open_frame, read_column
from .vocabulary import encode_in_order_of_appearance, join_columns, lookup

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
        """Return the index of the sequence that each item belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def count_items(keys: Values | Sequences) -> int:
    """Return the number of items that have these keys."""
    return len(keys.position) if isinstance(keys, Sequences) else len(keys)


def key_of(keys: Values | Sequences, item: int) -> object:
    """Return what identifies an item, as Python writes it: 7, not np.int64(7)."""
    if not isinstance(keys, Sequences):
        return keys[[item]].tolist()[0]
    owner = int(np.searchsorted(keys.offsets, item, side="right")) - 1
    return keys.ids[[owner]].tolist()[0], keys.position[[item]].tolist()[0]


def list_keys(keys: Sequence[Column], rows: Indices) -> str:
    """Return the keys in some rows of a table, for a message."""
    columns = [to_values(key)[rows].tolist() for key in keys]
    return listing(columns[0] if len(columns) == 1 else zip(*columns, strict=True))


def encode_items(columns: list[Column], named: list[Column] | None, source: str) -> tuple[Integers, Values | Sequences]:
    """Return the index of each row's item, and the keys of all items.

    Parameters
    ----------
    columns : list of Column
        What identifies the item of each row: its id, or its sequence and position.
    named : list of Column or None
        The same for items that exist whether or not they have a row. They come first, in this order.
    source : str
        What messages call the table of rows.
    """
    if len(columns) == 2:
        return _encode_positions(columns, named, source)
    codes, ids = encode_in_order_of_appearance(columns[0])
    if named is None:
        return codes, ids
    ids, moved, _ = _put_first(ids, named[0])
    return moved[codes], ids


def _encode_positions(columns: list[Column], named: list[Column] | None, source: str) -> tuple[Indices, Sequences]:
    """Number the distinct (sequence, position) pairs: sequences as they appear, positions in order within."""
    from ..kernels.layout import number_runs, order_by

    owner, ids = encode_in_order_of_appearance(columns[0])
    place = read_positions(columns[1], source)
    n_rows = len(owner)
    if named is not None and len(named[0]):
        ids, moved, more = _put_first(ids, named[0])
        owner = np.concatenate([moved[owner], more])
        place = to_values(join_columns(to_column(place), to_column(read_positions(named[1], NAMED))))
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


def _put_first(ids: Values, named: Column) -> tuple[Values, Codes, Codes]:
    """Return the named ids, then the others; where each of `ids` went, and where each named entry is."""
    codes, distinct = encode_in_order_of_appearance(named)
    index = lookup(ids, to_column(distinct))
    new = index < 0
    index[new] = len(ids) + np.arange(new.sum())
    together = to_values(join_columns(to_column(ids), to_column(distinct[new])))
    _, first = np.unique(index, return_index=True)
    others = np.ones(len(together), bool)
    others[index] = False
    order = np.concatenate([index[np.sort(first)], np.flatnonzero(others)])
    moved = np.empty(len(order), np.int32)
    moved[order] = np.arange(len(order), dtype=np.int32)
    return together[order], moved[: len(ids)], moved[index[codes]]


def read_positions(column: Column, source: str) -> Values:
    """Return positions as values with an order: numbers and times as they are, text only if it reads as numbers."""
    if not isinstance(column, np.ndarray):
        column = decode_categories(column)
    values = to_values(column)
    if not isinstance(column, np.ndarray) and (
        pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type) or values.dtype.kind in "biuf"
    ):
        return values
    entries = values.tolist()
    if all(isinstance(entry, (datetime.datetime, datetime.time)) for entry in entries):
        return values  # with time zones, which only Python's own times have
    try:
        numbers = to_floats(entries)
        if numbers.ndim > 1 or np.isnan(numbers).any():
            raise ValueError(f"got {listing(entries)}")
        return np.array(entries, dtype=np.int64) if all(map(_is_whole, entries)) else numbers
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"Positions of {source} must be numbers or times, so that they have an order: {error}."
        ) from error


def _is_whole(entry: object) -> bool:
    return isinstance(entry, str) and entry.strip().lstrip("+-").isdecimal()


def read_keys(items: Any, n_columns: int, preferred: Mapping[str, str] | None = None) -> list[Column]:
    """Return the keys of named items in columns: one of ids, or two of sequences and positions.

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
            "To name the items that are in a file, read it first, or let consilience.read_responses or "
            "consilience.fuse read it.",
            keyword="items",
        )
    if is_table(items):
        table = open_frame(items, "the table of items").prefer(preferred or {})
        return [table.values(name, remedy) for name in table.need_keys(n_columns == 2)]
    if n_columns == 1:
        columns = [read_column(items, "items")]
    else:
        try:
            pairs = list(items)
        except (TypeError, NotImplementedError):  # a memoryview does not give its rows
            pairs = [None]
        if any(not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2 for pair in pairs):
            raise InputError(
                Sentence("{items} of sequences must be a table or (sequence, position) pairs."), keyword="items"
            )
        columns = [to_column([pair[i] for pair in pairs], "items") for i in range(2)]
    if any(len(find_missing(column)) for column in columns):
        raise InputError(Sentence("{items} has missing entries."), remedy, keyword="items")
    return columns
