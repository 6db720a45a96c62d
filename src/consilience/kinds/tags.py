"""Sets of tags that workers gave to items: each tag of each item is a question, answered with yes or no.

In tables they are cells with a separator, cells that hold lists, one row per tag, or one column per tag. In every form
an answer is the whole set that a worker gave to an item. An empty cell, or an empty list, is the empty set, which is an
answer too: the worker saw the item, and gave it no tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import (
    VERY_MANY,
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
from ..answers.keys import Sequences, encode_items, read_keys
from ..answers.matching import open_gold
from ..answers.tables import ALIASES, Table, build_frame, find_columns, open_frame, read_distinct, translate
from ..errors import InputError, Python, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Truths
from ..limits import require_few, require_memory
from ..options import check_truth, is_among, split_by_question

# What a worker says of each tag of an item, and what can be true of it.
NO, YES = "no", "yes"
DUPLICATES = ("error", "first", "last")
# The form of a table in which each tag has a column.
ONE_HOT = "one-hot"
# What stands between tags where a file has no lists, and nothing else was read.
SEPARATOR = ";"
# Under this key, the metadata of a column of lists say what stands between tags where they are written as text.
SEPARATOR_KEY = "separator"
# How a cell says whether the tag of its column was given, in lower case.
_YES, _NO = frozenset(["1", "true", "yes", "x", "1.0"]), frozenset(["0", "false", "no", "", "0.0"])
# Signs that may stand between tags, and the share of cells with one from which it is taken for that.
USUAL_SEPARATORS, OFTEN = (";", "|", ","), 0.02
# What a column of sets is often called.
_NAMES = ("tags", "labels")
SAY_WHICH = "Say which item a known set is of."
FILL_SETS = "Every set must say who gave it to what: fill it in or drop the row."
# The tags in each cell of a column; None where it is missing.
Cells: TypeAlias = Sequence[Sequence[Any] | None]


class KnownTags(dict[tuple[object, int], str]):
    """Known answers by item and number of the tag: gold as models take it."""


@dataclass(frozen=True, eq=False, repr=False)
class Tags:
    """Sets of tags that workers gave to items.

    Each tag is a question with two answers about the same item, by the same worker: a tag that is in the set is a yes,
    one that is not is a no. An empty set is an answer too.

    Attributes
    ----------
    items, workers, tags : ndarray
        Ids of items, in order of appearance; ids of workers, and tags, sorted.
    item, worker : int64 array (n_sets,)
        Item and worker of each set, in this order.
    said : boolean array (n_sets, n_tags)
        Which tags each set has.
    gold_items : int64 array
        Items whose set is known.
    gold : boolean array (len(gold_items), n_tags)
        Which tags they have.
    separator : str or None
        What stood between tags in a cell; None if sets were no text.
    form : str
        How sets were held: "cells" with a separator, "lists", "rows" of one tag each, or "one-hot" columns.

    Examples
    --------
    >>> import consilience as cs
    >>> sets = ["spam;urgent", "urgent; spam", "", "spam"]
    >>> table = {"item": [1, 1, 2, 2], "worker": ["ann", "bob", "ann", "bob"], "tags": sets}
    >>> tags = cs.Tags.from_frame(table, separator=";")
    >>> tags
    Tags(4 sets of 2 items by 2 workers, 2 tags: 'spam', 'urgent')
    >>> tags.to_frame()["labels"].to_pylist()
    [['spam', 'urgent'], ['spam', 'urgent'], [], ['spam']]
    """

    items: Values
    workers: Values
    tags: Values
    item: Indices
    worker: Indices
    said: Truths
    gold_items: Indices
    gold: Truths
    separator: str | None = None
    form: str = "lists"
    backend: str = "pyarrow"
    columns: Mapping[str, str] = field(default_factory=dict)
    origin: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        for array in (self.item, self.worker, self.said, self.gold_items, self.gold):
            array.flags.writeable = False

    def __repr__(self) -> str:
        sizes = f"{plural(self.n_items, 'item')} by {plural(self.n_workers, 'worker')}, {plural(self.n_tags, 'tag')}"
        return f"Tags({plural(self.n_sets, 'set')} of {sizes}: {listing(self.tags.tolist())})"

    @property
    def n_items(self) -> int:
        """Number of items, those nobody answered included."""
        return len(self.items)

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.workers)

    @property
    def n_tags(self) -> int:
        """Number of tags."""
        return len(self.tags)

    @property
    def n_sets(self) -> int:
        """Number of sets: answers, each about all tags of an item."""
        return len(self.item)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        item: str | Sequence[str] | None = None,
        worker: str | None = None,
        label: str | Sequence[str] | None = None,
        separator: str | None = None,
        classes: object = None,
        items: object = None,
        duplicates: str = "error",
        gold: str | bool | None = None,
        drop_missing: bool = False,
        format: str | None = None,
    ) -> Tags:
        """Read sets of tags from a table.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or dict of columns
            One row per item and worker, in which one cell holds the set: text with a `separator`, or a list. Or one row
            per item, worker and tag, without a separator. Or one row per item and worker, and one column per tag, which
            says whether it was given: 1 or 0, true or false, yes or no.
        item, worker : str, optional
            Column names, found as by `Answers.from_frame`.
        label : str or list of str, optional
            The column of sets; by default tags, labels, or what `Answers.from_frame` looks for. Several columns are
            one for each tag; by default all that say nothing but yes and no, if there is no column of sets.
        separator : str, optional
            What stands between the tags in a cell. Blanks around tags do not count, nor does the order of tags.
        classes : sequence, optional
            All tags, in the order that results have. Default: all that somebody gave, sorted.
        items : table or array, optional
            Items that exist even if nobody answered them.
        duplicates : {"error", "first", "last"}
            What to do when a worker gave an item several sets.
        gold : str or False, optional
            The column of known sets; an empty cell means that the set is not known. Default: gold, truth or a similar
            name. False: none.
        drop_missing : bool, default False
            Whether rows without a tag are left out, instead of being empty sets.
        format : str, optional
            The form of the table, as for `Answers.from_frame`, or "one-hot": one column per tag.

        Returns
        -------
        Tags
        """
        check_separator(separator)
        check_truth("drop_missing", "Tags.from_frame", drop_missing)
        if not is_among(duplicates, DUPLICATES):
            expected = f"one of {', '.join(map(repr, DUPLICATES))}"
            raise parameter_error("duplicates", "Tags.from_frame", expected, duplicates)
        opened = open_frame(frame)
        table, columns, hot = _find_columns(opened, item, worker, label, format)
        if table.n_rows == 0:
            raise InputError(f"{table.name} has columns but no rows: there are no answers to fuse.")
        if "item" not in columns:
            raise InputError(
                f"{table.name} holds sets of tags of positions in sequences, which are not fused.",
                Sentence("Name the column of items with {item}.", item="item"),
                keyword="item",
            )
        cells: Cells = _read_hot(table, hot) if hot else read_cells(table, columns["label"], separator)
        form = ONE_HOT if hot else "rows" if separator is None else "cells"
        form = "lists" if not hot and table.lists(columns["label"]) is not None else form
        present = np.flatnonzero([bool(cell) for cell in cells])
        if drop_missing and len(present) < table.n_rows:
            n_empty = table.n_rows - len(present)
            warn_of(f"Rows of {table.name} without a tag were left out: {n_empty:,} of {table.n_rows:,}.")
            table, cells = table.keep(present), [cells[row] for row in present.tolist()]
        if form in ("cells", "rows"):
            _check_signs(cells, columns["label"], table.name, separator)
        named = None if items is None else read_keys(items, 1, columns)
        codes, keys = encode_items([table.values(columns["item"], FILL_SETS)], named, table.name)
        owner = np.asarray(codes, np.int64)
        who, workers = encode_sorted(table.values(columns["worker"], FILL_SETS))
        known_name = table.find("gold", gold) if gold is None or isinstance(gold, str) else None
        known = [None] * table.n_rows if known_name is None else read_cells(table, known_name, separator)
        given = objects(list(hot)) if hot else None
        if classes is not None:
            given = read_distinct(classes, "classes")
        tags, every = encode_sets([*cells, *known], given, classes is not None)
        if not len(tags):
            raise InputError(
                f"All sets in {table.name} are empty: there are no tags.", Sentence("Name the tags with {classes}.")
            )

        # The set that each row belongs to. All rows of a worker about an item are one set, or one of them counts.
        pairs, first, rows = np.unique(owner * len(workers) + who, return_index=True, return_inverse=True)
        again = np.setdiff1d(np.arange(table.n_rows), first)
        if form != "rows" and len(again):
            if duplicates == "error":
                raise InputError(
                    f"{table.name} has {plural(len(again), 'row')} in which a worker answers an item again; the first "
                    f"is at {table.locate(int(again[0]))}.",
                    Sentence("Keep one of them with {duplicates}.", duplicates="last"),
                    keyword="duplicates",
                )
            kept = first.copy()
            if duplicates == "last":
                np.maximum.at(kept, rows, np.arange(table.n_rows))
            said = every[kept]
        else:
            said = np.zeros((len(pairs), len(tags)), bool)
            np.logical_or.at(said, rows, every[: table.n_rows])

        known_rows = np.array([row for row, cell in enumerate(known) if cell is not None], np.int64)
        known_sets = every[table.n_rows + known_rows]
        gold_items, chosen, place = np.unique(owner[known_rows], return_index=True, return_inverse=True)
        clash = np.flatnonzero((known_sets != known_sets[chosen][place]).any(axis=1))
        if len(clash):
            raise InputError(
                f"Column {known_name!r} of {table.name} gives an item more than one known set, first at "
                f"{table.locate(int(known_rows[clash[0]]))}.",
                "Correct it.",
                Sentence("Or leave the column out with {gold}.", gold=False),
            )
        columns = columns | ({"gold": str(known_name)} if len(known_rows) else {})
        about = separator, form, opened.backend, columns, opened.origin
        return cls(
            np.asarray(keys),
            workers,
            tags,
            owner[first],
            who[first].astype(np.int64),
            said,
            gold_items,
            known_sets[chosen],
            *about,
        )

    def to_frame(self) -> Any:
        """A table with one row per set: item, worker, and labels as a list; gold too, if sets are known."""
        columns = {
            "item": to_column(self.items).take(self.item),
            "worker": to_column(self.workers).take(self.worker),
            "labels": list_column(self.said, self.tags),
        }
        if len(self.gold_items):
            place = np.full(self.n_items, -1, np.int64)
            place[self.gold_items] = np.arange(len(self.gold_items))
            at = place[self.item]
            columns["gold"] = list_column(self.gold, self.tags).take(pa.array(at, mask=at < 0))
        return build_frame(columns, self.backend)

    def to_responses(self) -> Answers:
        """The answers yes and no about each tag of each item: sequence is the item, position the tag's number.

        The answers about tag t of item i, by c workers, are those of the c sets of the item, in order of workers.
        """
        n_tags, n_sets = self.n_tags, np.bincount(self.item, minlength=self.n_items)
        first = np.concatenate([[0], np.cumsum(n_sets)])
        rank = np.arange(self.n_sets) - first[self.item]
        # The answer of set s about tag t comes after those about earlier items, and about earlier tags of this one.
        place = (first[self.item] * n_tags + rank)[:, None] + np.arange(n_tags) * n_sets[self.item][:, None]
        worker, label = np.empty(place.size, np.int32), np.empty(place.size, np.int32)
        worker[place.ravel()] = np.repeat(self.worker, n_tags)
        label[place.ravel()] = self.said.ravel()
        offsets = (first[:-1, None] * n_tags + np.arange(n_tags) * n_sets[:, None]).ravel()
        return Answers(
            offsets=np.append(offsets, self.n_sets * n_tags).astype(np.int64),
            worker=worker,
            label=label.astype(np.int8) if len(label) >= VERY_MANY else label,
            weight=None,
            workers=self.workers,
            labels=objects([NO, YES]),
            classes=objects([NO, YES]),
            keys=Sequences(self.items, np.arange(self.n_items + 1) * n_tags, np.tile(np.arange(n_tags), self.n_items)),
            backend=self.backend,
            # Where several columns identify an item they do so for the sequence of its tags, too.
            columns={**self.columns, **({"sequence": self.columns["item"]} if name_composite(self.columns) else {})},
            origin=self.origin,
            gold=spread_sets(self.items[self.gold_items], self.gold) if len(self.gold_items) else None,
        )

    def with_tags(self, tags: Values) -> Tags:
        """The same with other tags, in their order; a tag that somebody gave must be among them."""
        place = lookup(tags, to_column(self.tags)) if self.n_tags else np.empty(0, np.int64)
        used = self.said.any(axis=0) | self.gold.any(axis=0)
        new = self.tags[(place < 0) & used].tolist()
        if new:
            raise InputError(
                f"There are tags that were not there at the fit: {listing(new)}.",
                "Fit again, to the sets of all workers.",
                Sentence("Or name all tags when the first sets are read, with {classes}.", classes=Python("classes=")),
            )
        said, gold = (np.zeros((len(each), len(tags)), bool) for each in (self.said, self.gold))
        kept = np.flatnonzero(place >= 0)
        said[:, place[kept]], gold[:, place[kept]] = self.said[:, kept], self.gold[:, kept]
        return replace(self, tags=tags, said=said, gold=gold)

    def without_gold(self) -> Tags:
        """The same without known sets."""
        return replace(self, gold_items=np.empty(0, np.int64), gold=np.zeros((0, self.n_tags), bool))


def spread_sets(items: Values, sets: Truths) -> KnownTags:
    """What known sets say of each tag of their items."""
    keys = [(item, tag) for item in items.tolist() for tag in range(sets.shape[1])]
    return KnownTags(zip(keys, objects([NO, YES])[sets.astype(np.int64).ravel()].tolist(), strict=True))


def list_column(said: Truths, tags: Values) -> pa.Array:
    """Sets as an Arrow column of lists."""
    values = to_column(tags)
    if isinstance(values, np.ndarray):  # Arrow has no type for such tags
        values = to_column([str(tag) for tag in tags.tolist()])
    rows, codes = np.nonzero(said)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(said)))]).astype(np.int32)
    taken = values.take(pa.array(codes)) if len(tags) else pa.array([], pa.string())
    return pa.ListArray.from_arrays(pa.array(offsets), taken)


# ------------------------------------------------------------------------------------------------------------- tables


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
    columns = [name for name in there if table.lists(name) is not None or holds_sign(table.read(name), default)]
    if not columns:
        raise InputError(
            f"The separator {default!r} is in no cell of the questions {listing(others, len(others))}.",
            Sentence("Check {separator}, or leave it out."),
            keyword="separator",
        )
    return dict.fromkeys(columns, default) | own


def _find_columns(
    table: Table, item: Any, worker: str | None, label: Any, form: str | None
) -> tuple[Table, dict[str, str], list[str]]:
    """The table with a row per answer, its columns by role, and the columns of tags if each has one.

    `item`, `worker` and `label` are names of columns, None where they are not given, and `form` is that of the table.
    """
    table, item = table.combine("item", item)
    hot = list(label) if isinstance(label, (list, tuple)) else []
    for name in hot:
        if not is_among(name, table.names):
            raise table.no_column("label", name, "label")
    if not hot and form != ONE_HOT:
        roles = dict.fromkeys(("sequence", "position", "weight", "order"))
        roles |= {"item": item, "worker": worker, "label": label}
        table = translate(table, form, {**roles, "gold": None})
        if label is None and table.preferred.get("label") is None:
            roles["label"] = find_sets_column(table)
        if roles["label"] is not None or table.find("label") is not None:
            return table, find_columns(table, roles), []
    columns = {"item": table.need("item", item, "item"), "worker": table.need("worker", worker, "worker")}
    if not hot:
        taken = {*columns.values(), table.find("gold")}
        others = [name for name in table.names if name not in taken and table.lists(name) is None]
        said = {name: set(_read_words(table, name)) for name in others}
        hot = [name for name, words in said.items() if words & _YES and words <= _YES | _NO]
        if len(hot) < 2:
            raise table.no_column("label", None, "label")
    return table, columns, hot


def _read_words(table: Table, name: str) -> list[str]:
    """The cells of a column as text in lower case; missing ones are empty."""
    values = to_values(table.read(name)).tolist()
    return ["" if is_missing(value) else str(value).strip().lower() for value in values]


def _read_hot(table: Table, columns: Sequence[str]) -> list[list[str]]:
    """The set of each row, from columns that say yes or no."""
    cells: list[list[str]] = [[] for _ in range(table.n_rows)]
    for name in columns:
        for row, word in enumerate(_read_words(table, name)):
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
    """The tags in each cell of a column: of a list, of text with a separator, or the cell itself.

    A missing cell is None.
    """
    lists = table.lists(name)
    if lists is not None:
        return [None if cell is None else [tag for tag in cell if not is_missing(tag)] for cell in lists]
    values = to_values(table.read(name)).tolist()
    if separator is None:
        return [None if is_missing(value) else [value] * (value != "") for value in values]
    return [None if is_missing(value) else split_cell(str(value), separator) for value in values]


def split_cell(text: str, separator: str) -> list[str]:
    """The tags in a cell, each once, without blanks around them.

    >>> split_cell(" b; a;;b ", ";")
    ['b', 'a']
    """
    return list(dict.fromkeys(part for part in (part.strip() for part in text.split(separator)) if part))


def _check_signs(cells: Cells, name: str, source: str, separator: str | None) -> None:
    """Raise an error if the separator never occurs in a column, but another one does; warn if no cell has two tags."""
    if any(len(cell or ()) > 1 for cell in cells):
        return
    texts = [tag for cell in cells for tag in cell or () if isinstance(tag, str)]
    counts = {sign: sum(sign in text for text in texts) for sign in USUAL_SEPARATORS if sign != separator}
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


def encode_tags(entries: Column, tags: Values, named: bool = False) -> Indices:
    """The number of each tag; one that is not there is an error. `named` says whether the user named all tags."""
    code = lookup(tags, entries)
    unknown = sorted({str(to_values(entries)[at]) for at in np.flatnonzero(code < 0).tolist()})
    if unknown and named:
        raise InputError(
            f"There are tags that are not among the classes: {listing(unknown)}.",
            Sentence("Name all tags with {classes}, or leave it out."),
            keyword="classes",
        )
    if unknown:
        raise InputError(f"There are tags that nobody gave: {listing(unknown)}.", "Check how they are written.")
    return code


def encode_sets(cells: Cells, tags: Values | None = None, named: bool = False) -> tuple[Values, Truths]:
    """The tags, which are all that occur, sorted, if none are given; and which of them each set has, (S, T)."""
    flat = [tag for cell in cells for tag in cell or ()]
    if len(set(map(type, flat))) > 1:
        flat = list(map(str, flat))
    column = to_column(flat, "Tags") if flat else pa.array([], pa.string())
    if tags is None:
        tags = encode_sorted(column)[1]
    # Each tag of each item is a question of its own, whether somebody gave the tag or not.
    remedy = "Leave out rare tags, or merge them into one."
    require_few("tags", len(tags), f"There are {len(tags):,} different tags", remedy)
    require_memory(len(cells) * len(tags), f"There are {plural(len(cells), 'set')} of {plural(len(tags), 'tag')}")
    said = np.zeros((len(cells), len(tags)), bool)
    if flat:
        owner = np.repeat(np.arange(len(cells)), [len(cell or ()) for cell in cells])
        said[owner, encode_tags(column, tags, named)] = True
    return tags, said


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
