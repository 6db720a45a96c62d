"""Sets of tags from tables: cells with a separator, cells that hold lists, one row per tag, or one column per tag.

In every form an answer is the whole set that a worker gave to an item. An empty cell, or an empty list, is the empty
set, which is an answer too: the worker saw the item, and gave it no tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..answers import translate
from ..answers.columns import (
    Column,
    Indices,
    Values,
    encode_sorted,
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
from ..answers.tables import ALIASES, Table, find_columns, read_distinct
from ..errors import InputError, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Truths
from ..limits import require_few, require_memory
from ..options import is_among, split_by_question

if TYPE_CHECKING:
    pass

DUPLICATES = ("error", "first", "last")
# The form of a table in which each tag has a column.
ONE_HOT = "one-hot"
# What stands between tags where a file has no lists, and nothing else was read.
SEPARATOR = ";"
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


def find_sets_column(table: Table) -> str | None:
    """The column that is called as sets of tags are, if it is the only one with a name of answers."""
    by_lower = {str(name).lower(): name for name in reversed(table.names)}
    if any(alias in by_lower for alias in ALIASES["label"][0]):
        return None
    return next((by_lower[name] for name in _NAMES if name in by_lower), None)


def check_separator(separator: object, owner: str = "Tags.from_frame") -> None:
    """Raise an error unless a separator is text that can stand between tags, or None."""
    if separator is not None and not (isinstance(separator, str) and separator.strip(" ")):
        raise parameter_error("separator", owner, "text such as ';'", separator)


def find_separators(
    given: object, names: Sequence[str], owner: str, open_it: Callable[[], Table]
) -> dict[str, str | None]:
    """The separator of each question that has one: a mapping has it, or else its cells are lists, or hold the default.

    The table is opened only where it must be looked at. If no cell holds the default, that is an error.
    """
    by_question = given if isinstance(given, Mapping) else {None: given}
    default = cast("str | None", by_question.get(None))
    own = split_by_question("separator", {name: sign for name, sign in by_question.items() if name is not None}, names)
    check_separator(default, owner)
    others = [name for name in names if name not in own]
    if default is None or not others:
        return own
    table = open_it()
    there = [name for name in others if name in table.names]
    found = [name for name in there if table.lists(name) is not None or holds_sign(table.read(name), default)]
    if not found:
        raise InputError(
            f"The separator {default!r} is in no cell of the questions {listing(others, len(others))}.",
            Sentence("Check {separator}, or leave it out."),
            keyword="separator",
        )
    return dict.fromkeys(found, default) | own


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
        others = [name for name in table.names if name not in taken and table.lists(name) is None]
        said = {name: set(read_words(table, name)) for name in others}
        hot = [name for name, words in said.items() if words & _YES and words <= _YES | _NO]
        if len(hot) < 2:
            raise table.no_column("label", None, "label")
    return table, columns, hot


def read_words(table: Table, name: str) -> list[str]:
    """The cells of a column as text in lower case; missing ones are empty."""
    values = to_values(table.read(name)).tolist()
    return ["" if is_missing(value) else str(value).strip().lower() for value in values]


def read_hot(table: Table, columns: Sequence[str]) -> list[list[str]]:
    """The set of each row, from columns that say yes or no."""
    cells: list[list[str]] = [[] for _ in range(table.n_rows)]
    for name in columns:
        for row, word in enumerate(read_words(table, name)):
            if word in _YES:
                cells[row].append(name)
            elif word not in _NO:
                raise InputError(
                    f"Column {name!r} of {table.name} must say whether the tag was given, with 1 or 0, yes or no, true "
                    f"or false. Got {shorten(to_values(table.read(name))[row])} at {table.locate(row)}.",
                    Sentence("If it holds sets of tags, name it alone, with {label}.", label=name),
                )
    return cells


def read_cells(table: Table, name: str, separator: str | None) -> list[list[Any] | None]:
    """The tags in each cell of a column, each once: of a list, of text with a separator, or the cell itself.

    A missing cell is None.
    """
    lists = table.lists(name)
    if lists is None:
        values = to_values(table.read(name)).tolist()
        if separator is None:
            return [None if is_missing(value) else [value] * (value != "") for value in values]
        return [None if is_missing(value) else split_cell(value, separator) for value in values]
    cells: list[list[Any] | None] = []
    for cell in lists:
        try:
            cells.append(None if cell is None else [tag for tag in dict.fromkeys(cell) if not is_missing(tag)])
        except TypeError:  # a tag has no hash
            raise InputError(
                f"{table.name} holds the list {shorten(cell)} in column {name!r}, and a tag is text, a number or the "
                "like.",
                "Give flat lists of tags.",
            ) from None
    return cells


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


def choose_tags(cells: Sequence[Sequence[Any] | None], classes: object = None) -> Values:
    """All tags, sorted, or those that are named, in their order; a tag that is not named is an error."""
    found, n_tags = objects([]), sum(map(len, filter(None, cells)))
    if n_tags:
        found = encode_sorted(to_column(flatten(cells), "Tags"))[1]
    if classes is None:
        return found
    named = read_distinct(classes, "classes")
    strange = found[lookup(named, to_column(found)) < 0].tolist() if n_tags else []
    if strange:
        raise InputError(
            f"There are tags that are not among the classes: {listing(strange)}.",
            Sentence("Name all tags with {classes}, or leave it out."),
            keyword="classes",
        )
    return named


def flatten(cells: Sequence[Sequence[Any] | None]) -> list[Any]:
    """The tags of all sets, one after the other; as text if they are of several types."""
    tags = [tag for cell in cells for tag in cell or ()]
    return tags if len(set(map(type, tags))) <= 1 else [str(tag) for tag in tags]


def encode_sets(cells: Sequence[Sequence[Any] | None], tags: Values) -> Truths:
    """Which tags each set has, (S, T)."""
    # Each tag of each item is a question of its own, whether somebody gave the tag or not.
    remedy = "Leave out rare tags, or merge them into one."
    require_few("tags", len(tags), f"There are {len(tags):,} different tags", remedy)
    require_memory(len(cells) * len(tags), f"There are {plural(len(cells), 'set')} of {plural(len(tags), 'tag')}")
    said = np.zeros((len(cells), len(tags)), bool)
    owner, flat = np.repeat(np.arange(len(cells)), [len(cell or ()) for cell in cells]), flatten(cells)
    if flat:
        code = lookup(tags, to_column(flat))
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
        kept = first.copy()
        if policy == "last":
            np.maximum.at(kept, rows, np.arange(n_rows))
        rows = np.full(n_rows, -1, np.int64)
        rows[kept] = np.arange(len(pairs))
    return rows.astype(np.int64), item[first], worker[first]


def open_known_sets(gold: object, separator: str | None, names: Mapping[str, str]) -> tuple[Column, list[list[Any]]]:
    """Known sets from a dict, a Series or a table with one row per item: items, and their sets.

    An empty cell is the empty set. `names` are columns that the table may have, by role.
    """
    if isinstance(gold, Mapping) and any(isinstance(each, (list, tuple, set, frozenset)) for each in gold.values()):

        def to_list(given: object) -> object:  # a column of sets stays as it is
            if not isinstance(given, str):
                return given
            return [given] * bool(given) if separator is None else split_cell(given, separator)

        gold = {key: to_list(each) for key, each in gold.items()}
    if name_composite(names) and isinstance(gold, Mapping):
        gold = dict(zip(tuples_to_ids(gold), gold.values(), strict=True))
    table = open_gold(gold, paired=False).prefer({"item": names.get("item"), "known label": names.get("label")})
    return read_set_table(table, separator, "known label")


def read_set_table(table: Table, separator: str | None, role: str = "label") -> tuple[Column, list[list[Any]]]:
    """The items of a table with one row per item, and their sets; an empty cell is the empty set."""
    name = find_sets_column(table) or table.need(role, None)
    items = table.values(table.need("item"), SAY_WHICH)
    return items, [cell or [] for cell in read_cells(table, name, separator)]


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
