"""Sets of tags from tables: cells with a separator, cells that hold lists, one row per tag, or one column per tag.

In every form an answer is the whole set that a worker gave to an item. An empty cell, or an empty list, is the empty
set, which is an answer too: the worker saw the item, and gave it no tag.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..answers import translate
from ..answers.columns import (
    Column,
    Indices,
    Values,
    encode_sorted,
    find_missing,
    holds_sign,
    is_missing,
    lookup,
    name_composite,
    objects,
    to_column,
    to_values,
    tuples_to_ids,
)
from ..answers.gold import open_gold
from ..answers.long_tables import find_columns
from ..answers.tables import ALIASES, Table, read_distinct
from ..arguments import is_among, split_by_question
from ..errors import InputError, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Truths
from ..limits import require_few, require_memory

DUPLICATES = ("error", "first", "last")
# The form of a table in which each tag has a column.
ONE_HOT = "one-hot"
# Under this key, the metadata of a column of lists say what stands between tags where they are written as text.
SIGN = "separator"
# How a cell says whether the tag of its column was given, in lower case.
_YES, _NO = frozenset(["1", "true", "yes", "x", "1.0"]), frozenset(["0", "false", "no", "", "0.0"])
# Signs that may stand between tags, and the share of cells with one from which it is taken for that.
USUAL, OFTEN = (";", "|", ","), 0.02
# What a column of sets is often called.
_NAMES = ("tags", "labels")
SAY_WHICH = "Say which item a known set is of."
FILL = "Every set must say who gave it to what: fill it in or drop the row."


def holds_sets(table: Table, label: object) -> bool:
    """Tell whether the answers in a table are lists, so that it is beyond doubt that they are sets."""
    name = table.synonyms.get(str(label))
    if isinstance(label, str) and label in table.names:
        name = label
    elif label is None:
        name = find_sets_column(table) or table.find_usual("label") or next(iter(table.candidates("label")), None)
    return name is not None and table.lists(name) is not None


def find_sets_column(table: Table) -> str | None:
    """The column that is called as sets of tags are, if it is the only one with a name of answers."""
    by_lower = {str(name).lower(): name for name in reversed(table.names)}
    if any(alias in by_lower for alias in ALIASES["label"]):
        return None
    return next((by_lower[name] for name in _NAMES if name in by_lower), None)


def check_separator(separator: object, owner: str = "Tags.from_frame") -> None:
    """Raise an error unless a separator is text that can stand between tags, or None."""
    if separator is not None and not (isinstance(separator, str) and separator.strip(" ")):
        raise parameter_error("separator", owner, "text such as ';'", separator)


def find_separators(
    given: object, names: Sequence[str], owner: str, find: Callable[[list[str], str], Collection[str]]
) -> dict[str, str | None]:
    """The separator of each question that has one: a mapping has it, or else its cells hold the default.

    `find` returns which of some questions hold a separator; if none of them does, that is an error.
    """
    by_question = given if isinstance(given, Mapping) else {None: given}
    default = cast("str | None", by_question.get(None))
    own = split_by_question("separator", {name: sign for name, sign in by_question.items() if name is not None}, names)
    check_separator(default, owner)
    others = [name for name in names if name not in own]
    if default is None or not others:
        return own
    found = find(others, default)
    if not found:
        raise InputError(
            f"The separator {default!r} is in no cell of the questions {listing(others, len(others))}.",
            Sentence("Check {separator}, or leave it out."),
            keyword="separator",
        )
    return dict.fromkeys(found, default) | own


def find_tagged(table: Table, names: Sequence[str], separator: str) -> list[str]:
    """The questions with lists, or with a separator in some cell: the others have one label each."""
    there = [name for name in names if name in table.names]
    return [name for name in there if table.lists(name) is not None or holds_sign(table.read(name), separator)]


def read_form(
    table: Table, columns: Mapping[str, str], hot: Sequence[str], separator: str | None
) -> tuple[list[list[Any]], str]:
    """The tags in each row, and how the table holds them."""
    if hot:
        return _read_hot(table, hot), ONE_HOT
    lists = table.lists(columns["label"])
    if lists is not None:
        return [_drop_missing(cell, table, columns["label"]) for cell in lists], "lists"
    return _read_cells(table, columns["label"], separator), "rows" if separator is None else "cells"


def _drop_missing(cell: list[Any] | None, table: Table, column: str) -> list[Any]:
    """The tags in a list, each once; what is missing is none."""
    try:
        return [tag for tag in dict.fromkeys(cell or []) if not is_missing(tag)]
    except TypeError:  # it has no hash
        raise InputError(
            f"{table.name} holds the list {shorten(cell)} in column {column!r}, and a tag is text, a number or the "
            "like.",
            "Give flat lists of tags.",
        ) from None


def drop_empty(table: Table, cells: list[list[Any]]) -> tuple[Table, list[list[Any]]]:
    """The rows with a tag, and warn of the number of others."""
    present = np.flatnonzero([bool(cell) for cell in cells])
    n_empty = table.n_rows - len(present)
    if not n_empty:
        return table, cells
    warn_of(f"Rows of {table.name} without a tag were left out: {n_empty:,} of {table.n_rows:,}.")
    return table.keep(present), [cells[row] for row in present.tolist()]


def find_roles(
    table: Table, item: Any, worker: str | None, label: Any, form: str | None
) -> tuple[Table, dict[str, str], list[str]]:
    """The table with a row per answer, its columns by role, and the columns of tags if each has one.

    `item`, `worker` and `label` are names of columns, None where they are not given, and `form` is that of the table.
    """
    roles = dict.fromkeys(("item", "worker", "label", "sequence", "position", "weight", "order"))
    table, item = table.combine("item", item)
    roles |= {"item": item, "worker": worker}
    hot = list(label) if isinstance(label, (list, tuple)) else []
    for name in hot:
        if not is_among(name, table.names):
            raise table.no_column("label", name, "label")
    if not hot and form != ONE_HOT:
        roles["label"] = label
        table = translate(table, form, {**roles, "gold": None})
        if label is None and table.preferred.get("label") is None:
            roles["label"] = find_sets_column(table)
        if roles["label"] is not None or table.find("label") is not None:
            return table, find_columns(table, roles), []
    columns = {role: table.need(role, roles[role], role) for role in ("item", "worker")}
    if not hot:
        taken = {*columns.values(), table.find("gold")}
        hot = [name for name in table.names if name not in taken and _is_hot(table, name)]
        if len(hot) < 2:
            raise table.no_column("label", None, "label")
    return table, columns, hot


def _is_hot(table: Table, name: str) -> bool:
    """Whether the cells of a column say nothing but yes or no."""
    if table.lists(name) is not None:
        return False
    values = to_values(table.read(name)).tolist()
    words = {"" if is_missing(value) else str(value).strip().lower() for value in values}
    return bool(words & _YES) and words <= _YES | _NO


def _read_hot(table: Table, columns: Sequence[str]) -> list[list[str]]:
    """The set of each row, from columns that say yes or no."""
    cells: list[list[str]] = [[] for _ in range(table.n_rows)]
    for name in columns:
        for row, value in enumerate(to_values(table.read(name)).tolist()):
            word = "" if is_missing(value) else str(value).strip().lower()
            if word in _YES:
                cells[row].append(name)
            elif word not in _NO:
                raise InputError(
                    f"Column {name!r} of {table.name} must say whether the tag was given, with 1 or 0, yes or no, true "
                    f"or false. Got {shorten(value)} at {table.locate(row)}.",
                    Sentence("If it holds sets of tags, name it alone, with {label}.", label=name),
                )
    return cells


def _read_cells(table: Table, name: str, separator: str | None) -> list[list[Any]]:
    """The set in each cell of a column: its parts, or without a separator the cell as one tag."""
    column = table.read(name)
    values = to_values(column).tolist()
    if separator is None:
        return [[] if is_missing(value) or value == "" else [value] for value in values]
    return [split_cell(value, separator) for value in values]


def split_cell(value: object, separator: str) -> list[str]:
    """The tags in a cell, each once, without blanks around them.

    >>> split_cell(" b; a;;b ", ";"), split_cell(None, ";")
    (['b', 'a'], [])
    """
    if is_missing(value):
        return []
    return list(dict.fromkeys(part for part in (part.strip() for part in str(value).split(separator)) if part))


def check_signs(cells: Sequence[Sequence[Any]], name: str, source: str, separator: str | None) -> None:
    """Raise an error if the separator never occurs in a column, but another one does; warn if no cell has two tags."""
    if any(len(cell) > 1 for cell in cells):
        return
    texts = [tag for cell in cells for tag in cell if isinstance(tag, str)]
    counts = {sign: sum(sign in text for text in texts) for sign in USUAL if sign != separator}
    often = max(counts, key=lambda sign: counts[sign])
    if counts[often] >= max(2 if separator is None else 1, OFTEN * len(texts)):
        said = "No cell" if separator is None else f"The separator {shorten(separator)} never occurs: no cell"
        raise InputError(
            f"{said} in column {name!r} of {source} holds two tags, and {counts[often]:,} of {len(texts):,} hold "
            f"{often!r}.",
            Sentence("If that stands between tags, use {separator}.", separator=often),
            keyword="separator",
        )
    if separator is not None:
        warn_of(
            f"The separator {shorten(separator)} never occurs in column {name!r} of {source}.",
            Sentence("Check {separator}; answers that are one label each need none."),
        )


def choose_tags(cells: Sequence[Sequence[Any]], classes: object, columns: Sequence[str]) -> Values:
    """All tags, sorted, or those that are named, in their order; a tag that is not named is an error."""
    flat = [tag for cell in cells for tag in cell]
    kinds = {type(tag) for tag in flat}
    if len(kinds) > 1:
        flat = [str(tag) for tag in flat]
    found = encode_sorted(to_column(flat, "Tags"))[1] if flat else objects([])
    if classes is None:
        return objects(list(columns)) if columns else found
    named = read_distinct(classes, "classes")
    if not len(found):
        return named
    strange = found[lookup(named, to_column(found)) < 0].tolist()
    if strange:
        raise InputError(
            f"There are tags that are not among the classes: {listing(strange)}.",
            Sentence("Name all tags with {classes}, or leave it out."),
            keyword="classes",
        )
    return named


def encode_sets(cells: Sequence[Sequence[Any] | None], tags: Values) -> Truths:
    """Which tags each set has, (S, T)."""
    # Each tag of each item is a question of its own, whether somebody gave the tag or not.
    remedy = "Leave out rare tags, or merge them into one."
    require_few("tags", len(tags), f"There are {len(tags):,} different tags", remedy)
    require_memory(len(cells) * len(tags), f"There are {plural(len(cells), 'set')} of {plural(len(tags), 'tag')}")
    said = np.zeros((len(cells), len(tags)), bool)
    owner = np.repeat(np.arange(len(cells)), [0 if cell is None else len(cell) for cell in cells])
    flat = [tag for cell in cells if cell is not None for tag in cell]
    if flat:
        kinds = {type(tag) for tag in flat}
        code = lookup(tags, to_column(flat if len(kinds) == 1 else [str(tag) for tag in flat]))
        if (code < 0).any():
            unknown = sorted({str(flat[at]) for at in np.flatnonzero(code < 0).tolist()})
            raise InputError(f"There are tags that nobody gave: {listing(unknown)}.", "Check how they are written.")
        said[owner, code] = True
    return said


def settle_sets(
    table: Table, item: Indices, worker: Indices, policy: str, form: str
) -> tuple[Indices, Indices, Indices]:
    """For each row the set that it belongs to, -1 if it is left out, and the item and worker of each set."""
    n_rows = len(item)
    pairs, first, rows = np.unique(item * (int(worker.max()) + 1) + worker, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[rows] != np.arange(n_rows))
    if form != "rows" and len(again):
        if policy == "error":
            raise InputError(
                f"{table.name} has {plural(len(again), 'row')} in which a worker answers an item again; the first is "
                f"at {table.locate(int(again[0]))}.",
                Sentence("Keep one of them with {duplicates}.", duplicates="last"),
                keyword="duplicates",
            )
        kept = first
        if policy == "last":
            kept = np.zeros(len(pairs), np.int64)
            np.maximum.at(kept, rows, np.arange(n_rows))
        rows = np.full(n_rows, -1, np.int64)
        rows[kept] = np.arange(len(pairs))
    return rows.astype(np.int64), item[first], worker[first]


# ------------------------------------------------------------------------------------------------------- known sets


def read_known_column(
    table: Table, name: str, item: Indices, tags: Values, known: Sequence[list[Any] | None]
) -> tuple[Indices, Truths]:
    """The items whose set a column tells, and the sets; two sets of one item are an error."""
    rows = np.array([row for row, cell in enumerate(known) if cell is not None], np.int64)
    sets = encode_sets([known[row] for row in rows.tolist()], tags)
    owner, first = np.unique(item[rows], return_index=True)
    clash = np.flatnonzero((sets != sets[first][np.searchsorted(owner, item[rows])]).any(axis=1))
    if len(clash):
        place = table.locate(int(rows[clash[0]]))
        raise InputError(
            f"Column {name!r} of {table.name} gives an item more than one known set, first at {place}.",
            "Correct it.",
            Sentence("Or leave the column out with {gold}.", gold=False),
        )
    return owner.astype(np.int64), sets[first]


def read_known_cells(table: Table, name: str, separator: str | None) -> list[list[Any] | None]:
    """The known set in each row of a table of answers; None where the cell is empty: nothing is known."""
    lists = table.lists(name)
    if lists is not None:
        return lists
    missing = set(find_missing(table.read(name)).tolist())
    return [None if row in missing else cell for row, cell in enumerate(_read_cells(table, name, separator))]


def read_known_sets(
    gold: object, items: Values, tags: Values, separator: str | None, names: Mapping[str, str]
) -> tuple[Indices, Truths]:
    """The items whose sets are known, and these sets, from a dict, a Series or a table with one row per item.

    An empty cell is the empty set.
    """
    table, cells = open_known_sets(gold, separator, names)
    place = lookup(items, table.values(table.need("item"), SAY_WHICH))
    if not len(place) or (place < 0).all():
        raise InputError(
            f"None of the items in {table.name} is one of those that were answered.",
            "Check that ids are written in the same way.",
            keyword="gold",
        )
    if (place < 0).any():
        n_absent = f"{int((place < 0).sum()):,} of {plural(len(place), 'item')}"
        warn_of(f"{n_absent} whose sets are known do not occur here and were left out.")
    there = np.flatnonzero(place >= 0)
    known = encode_sets([cells[row] for row in there.tolist()], tags)
    found, first = np.unique(place[there], return_index=True)
    if len(found) < len(there):
        raise InputError(
            f"{table.name} tells the set of an item more than once.", "Keep one row per item.", keyword="gold"
        )
    return found.astype(np.int64), known[first]


def open_known_sets(gold: object, separator: str | None, names: Mapping[str, str]) -> tuple[Table, list[list[Any]]]:
    """Known sets as a table with a column item, and the set in each row."""
    if isinstance(gold, Mapping) and any(isinstance(each, (list, tuple, set, frozenset)) for each in gold.values()):
        gold = {key: _as_list(each, separator) for key, each in gold.items()}
    if name_composite(names) and isinstance(gold, Mapping):
        gold = dict(zip(tuples_to_ids(gold), gold.values(), strict=True))
    table = open_gold(gold, paired=False).prefer({"item": names.get("item"), "known label": names.get("label")})
    return read_set_cells(table, separator, "known label")


def read_set_cells(table: Table, separator: str | None, role: str = "label") -> tuple[Table, list[list[Any]]]:
    """A table with one row per item, and the set in each row; an empty cell is the empty set."""
    name = find_sets_column(table) or table.need(role, None)
    lists = table.lists(name)
    cells = lists if lists is not None else _read_cells(table, name, separator)
    return table, [[] if cell is None else cell for cell in cells]


def _as_list(given: object, separator: str | None) -> object:
    """The set of an item that is given as text as a list; a column of sets stays as it is."""
    if isinstance(given, str):
        return [given] * bool(given) if separator is None else split_cell(given, separator)
    return given


def to_lists(said: Truths, tags: Values) -> list[list[Any]]:
    """Sets as lists of tags."""
    names = tags.tolist()
    rows, codes = np.nonzero(said)
    lists: list[list[Any]] = [[] for _ in range(len(said))]
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        lists[row].append(names[code])
    return lists


def join_sets(lists: Sequence[Sequence[Any]], separator: str) -> Column:
    """Sets as text, with a separator between tags; a tag that holds it is an error."""
    bad = sorted({str(tag) for each in lists for tag in each if separator in str(tag)})
    if bad:
        raise InputError(
            f"Tags with the separator {separator!r} inside cannot be written with it: {listing(bad)}.",
            "Write lists, to .parquet, .arrow or .jsonl.",
            Sentence("Or choose another with {separator}."),
            keyword="separator",
        )
    return to_column([separator.join(map(str, each)) for each in lists])
