"""Tables about items, matched to the items of the answers by id."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import to_floats
from ..errors import InputError, first_line, listing, plural
from ..kernels.types import Floats
from .frames import open_frame
from .responses import Responses
from .tables import Table
from .vocabulary import find_missing, to_values

KEY_REMEDY = "Say which item each row belongs to."


def open_item_table(given: Any, what: str) -> Table:
    """Return a table of any frame library as a `Table`; a pandas index that has a name is a column."""
    return open_frame(reset_index(given), what)


def reset_index(given: Any) -> Any:
    """Return a pandas frame with its index as a column, if that has a name; anything else as it is."""
    name = getattr(getattr(given, "index", None), "name", None)
    if name is None or not hasattr(given, "reset_index") or name in getattr(given, "columns", ()):
        return given
    return given.reset_index()


def match_rows(table: Table, r: Responses, what: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the items that rows of a table are about, and which rows these are; other rows are left out."""
    keys = [table.values(name, KEY_REMEDY) for name in key_names(table, r)]
    item = r.find_items(keys)
    known = np.flatnonzero(item >= 0)
    if not len(known):
        found = [to_values(key)[:3].tolist() for key in keys]
        example = listing(found[0] if len(found) == 1 else zip(*found, strict=True))
        raise InputError(
            f"None of the {plural(len(item), 'row')} of {what} is about an item of the answers ({what}: {example}; "
            f"answers: {listing(r.items[:3].tolist())}).",
            "Check that both use the same ids.",
            keyword=what,
        )
    repeated = np.flatnonzero(np.bincount(item[known], minlength=r.n_items) > 1)
    if len(repeated):
        raise InputError(
            f"There are several rows of {what} for {plural(len(repeated), 'item')}: "
            f"{listing(r.items[repeated].tolist())}.",
            "Keep one row for each of them.",
            keyword=what,
        )
    return item[known], known


def key_names(table: Table, r: Responses) -> list[str]:
    """Return the columns of a table that say which item a row is about."""
    table = replace(table, preferred={**r.columns, **table.preferred})
    return [table.need(role) for role in (("item",) if r.sequences is None else ("sequence", "position"))]


def read_numbers(table: Table, name: str) -> Floats:
    """Return a column of numbers; a missing one is nan."""
    column = table.read(name)
    values = to_values(column)
    numbers = np.full(len(values), np.nan)
    there = np.ones(len(values), bool)
    there[find_missing(column)] = False
    try:
        numbers[there] = to_floats(values[there].tolist())
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Column {name!r} of {table.name} must hold numbers; {first_line(error)}.",
            "Leave it out, or turn it into numbers: one column of 0 and 1 for each category.",
        ) from error
    return numbers
