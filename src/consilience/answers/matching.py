"""Tables about the items of answers: which of their rows are about which item.

A table has the ids of items (or sequences and positions) in columns, as the answers have. A dict of items or a Series
has them as keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, Sentence, listing, plural, shorten
from ..kernels import Truths
from .columns import Column, Indices, find_missing, is_present, lookup, name_composite, to_values, tuples_to_ids
from .tables import WHOLE, Table, is_table, key_roles, open_frame, open_series

if TYPE_CHECKING:
    from .answers import Answers

KEY_REMEDY = "Say which item each row belongs to."
# The format of a table that was a dict of items or a Series, whose keys are whatever they are.
KEYED = "keyed"


def match_items(table: Table, r: Answers, rows: Truths | None = None) -> Indices:
    """The item that each row of a table is about, -1 where it is none; that all rows are about none is an error."""
    read = table.read if table.format == KEYED else lambda name: table.values(name, KEY_REMEDY)
    keys = [read(name) for name in table.need_keys(r.sequences is not None)]
    item = r.find_items(keys)
    wanted = np.arange(len(item)) if rows is None else np.flatnonzero(rows)
    if (item[wanted] < 0).all():
        columns = [to_values(key)[wanted[:3]].tolist() for key in keys]
        example = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        raise InputError(
            f"None of the {plural(len(wanted), 'item')} of {table.name} occurs in the answers ({table.name} has "
            f"{listing(example)}; the answers have {listing(r.items[:3].tolist())}).",
            "Check that both use the same ids.",
        )
    return item


def match_column(given: object, r: Answers, keyword: str, usual: Sequence[str] = ()) -> tuple[Indices, Column]:
    """The row of each item in a column about the items, -1 for none, and the column.

    Parameters
    ----------
    given : dict, Series or table
        {item: value}, or a table with the items and one other column, or one with a `usual` name. Of several rows about
        one item the first counts. Where items are in sequences, whole sequences may be named.
    r : Answers
        Whose items they are.
    keyword : str
        The parameter that it is given as.
    usual : sequence of str
        Names by which the column is known where there are several.
    """
    paired, column = r.sequences is not None, "label"
    is_map = isinstance(given, Mapping) and all(
        isinstance(value, str) or not hasattr(value, "__len__") for value in given.values()
    )
    if is_map or open_series(given) is not None:
        whole = paired and isinstance(given, Mapping) and not any(isinstance(key, tuple) for key in given)
        table = open_gold(given, paired and not whole, [] if paired else name_composite(r.columns)).prefer(r.columns)
    else:
        table = open_item_table(given, keyword).prefer(r.columns)
        whole = paired and table.find_usual("position") is None
        keys = [table.need("sequence")] if whole else key_names(table, r)
        others = [name for name in table.names if name not in keys]
        if len(others) != 1:  # of several, one that is called so, as in files of MTurk and Toloka
            plain = {name: name.strip().lower().removeprefix("input.").removeprefix("input:") for name in others}
            others = [name for name in others if plain[name] in usual]
        if not others:
            raise InputError(
                f"{table.name} has the columns {listing(table.names)}: which of them is the {keyword} is not clear.",
                Sentence(f"Keep the items and one other column{f', or call it {usual[0]}' if usual else ''}."),
                keyword=keyword,
            )
        column = others[0]
    values = table.read(column)
    if whole and r.sequences is not None:
        name = next(each for each in ("item", "sequence") if table.find(each) is not None)
        owner = lookup(r.sequences.ids, table.read(table.need(name)))
        rows, row_of_owner = np.flatnonzero((owner >= 0) & is_present(values))[::-1], np.full(len(r.sequences), -1)
        row_of_owner[owner[rows]] = rows
        return row_of_owner[r.sequences.of_items()], values
    item = match_items(replace(table, name=f"the {keyword}"), r)
    item[find_missing(values)] = -1
    rows, row_of_item = np.flatnonzero(item >= 0)[::-1], np.full(r.n_items, -1)
    row_of_item[item[rows]] = rows  # from the last to the first
    return row_of_item, values


def open_item_table(given: Any, what: str) -> Table:
    """A table of any frame library as a `Table`; a pandas index that has a name is a column."""
    name = getattr(getattr(given, "index", None), "name", None)
    if name is not None and hasattr(given, "reset_index") and name not in given.columns:
        given = given.reset_index()
    return open_frame(given, what)


def match_rows(table: Table, r: Answers) -> tuple[Indices, Indices]:
    """The items that rows of a table are about, ascending, and which rows these are; other rows are left out."""
    table = table.prefer(r.columns)
    item = match_items(table, r)
    known = np.flatnonzero(item >= 0)
    rows = known[np.argsort(item[known], kind="stable")]
    repeated = np.unique(item[rows][1:][np.diff(item[rows]) == 0])
    if len(repeated):
        items = listing(r.items[repeated].tolist())
        problem = f"There are several rows of {table.name} for {plural(len(repeated), 'item')}: {items}."
        raise InputError(problem, "Keep one row for each of them.")
    return item[rows], rows


def key_names(table: Table, r: Answers) -> list[str]:
    """The columns of a table that say which item a row is about, and those that these are joined from."""
    names = table.prefer(r.columns).need_keys(r.sequences is not None)
    return [*names, *(part for role in WHOLE for part in name_composite(r.columns, role) if part in table.names)]


def open_gold(gold: object, paired: bool, parts: Sequence[str] = ()) -> Table:
    """Known labels, in any form that `match_gold` takes, as a table with columns item and label.

    With `paired` the items are positions of sequences, in two columns. Keys of items that several columns identify, its
    `parts`, may be tuples.
    """
    labels: Any
    series = None if isinstance(gold, Mapping) else open_series(gold)
    if isinstance(gold, Mapping):
        named = Table(list(gold), gold.__getitem__)
        roles = [named.find(role) for role in (*key_roles(paired), "known label")]
        if any(names and all(_is_column(gold.get(name)) for name in names) for names in (parts, roles)):
            return open_frame(gold, "gold")  # a dict of columns, and not one of items
        keys, labels = list[Any](gold), list[Any](gold.values())
    elif series is not None:
        keys, labels = to_values(series[0]).tolist(), series[1]
    elif is_table(gold):
        return open_frame(gold, "gold")
    else:
        raise InputError(
            "gold must be a dict such as {item: label}, a Series, or a table or file with columns item and label. Got "
            f"{shorten(gold)} instead.",
            keyword="gold",
        )
    if paired and not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        raise InputError(
            "gold of sequences must be keyed by (sequence, position), such as {('s1', 0): 'B'}.", keyword="gold"
        )
    ids = [[key[place] for key in keys] for place in (0, 1)] if paired else [tuples_to_ids(keys) if parts else keys]
    columns = dict(zip((*key_roles(paired), "label"), (*ids, labels), strict=True))
    return replace(open_frame(columns, "gold"), format=KEYED)


def _is_column(values: object) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, Enum))
