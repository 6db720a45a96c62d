"""Tags: sets of tags that workers gave to items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import Indices, Values, encode_sorted, lookup, name_composite, narrow_codes, objects, to_column
from ..answers.gold import find_gold
from ..answers.items import Sequences, encode_items, read_keys
from ..answers.previews import frame_html, html_facts, paragraph, to_word
from ..answers.tables import build_frame, open_frame
from ..arguments import check_truth, is_among
from ..errors import InputError, Python, Sentence, join_names, listing, parameter_error, plural
from ..kernels import Truths
from .tag_tables import (
    DUPLICATES,
    FILL,
    check_separator,
    check_signs,
    choose_tags,
    drop_empty,
    encode_sets,
    find_roles,
    read_form,
    read_known_cells,
    read_known_column,
    read_known_sets,
    settle_sets,
    to_lists,
)

# What a worker says of each tag of an item, and what can be true of it.
NO, YES = "no", "yes"
# What stands between tags where a file has no lists, and nothing else was read.
SEPARATOR = ";"


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

    def _repr_html_(self) -> str:
        facts = [
            ("Sets", f"{self.n_sets:,}, {self.n_sets / max(self.n_items, 1):.1f} per item"),
            ("Items", f"{self.n_items:,}"),
            ("Workers", f"{self.n_workers:,}"),
            ("Tags", f"{self.n_tags:,}: {join_names(map(to_word, self.tags.tolist()), 'tags has all')}"),
        ]
        return frame_html(paragraph("Tags"), html_facts(facts))

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
        table, columns, hot = find_roles(opened, item, worker, label, format)
        if table.n_rows == 0:
            raise InputError(f"{table.name} has columns but no rows: there are no answers to fuse.")
        if "item" not in columns:
            raise InputError(
                f"{table.name} holds sets of tags of positions in sequences, which are not fused.",
                Sentence("Name the column of items with {item}.", item="item"),
                keyword="item",
            )
        cells, form = read_form(table, columns, hot, separator)
        if drop_missing:
            table, cells = drop_empty(table, cells)
        if form in ("cells", "rows"):
            check_signs(cells, columns["label"], table.name, separator)
        named = None if items is None else read_keys(items, 1, columns)
        codes, keys = encode_items([table.values(columns["item"], FILL)], named, table.name)
        owner = np.asarray(codes, np.int64)
        who, workers = encode_sorted(table.values(columns["worker"], FILL))
        known_name = find_gold(table, gold)
        known = [] if known_name is None else read_known_cells(table, known_name, separator)
        tags = choose_tags([*cells, *(cell for cell in known if cell is not None)], classes, hot)
        if not len(tags):
            raise InputError(
                f"All sets in {table.name} are empty: there are no tags.", Sentence("Name the tags with {classes}.")
            )
        rows, set_item, set_worker = settle_sets(table, owner, who.astype(np.int64), duplicates, form)
        kept = np.flatnonzero(rows >= 0)
        sets = encode_sets(cells, tags)[kept]
        said = np.zeros((len(set_item), len(tags)), bool)
        np.logical_or.at(said, rows[kept], sets)
        gold_items, gold_sets = np.empty(0, np.int64), np.zeros((0, len(tags)), bool)
        if known_name is not None and any(cell is not None for cell in known):
            gold_items, gold_sets = read_known_column(table, known_name, owner, tags, known)
            columns = columns | {"gold": known_name}
        return cls(
            np.asarray(keys),
            workers,
            tags,
            set_item,
            set_worker,
            said,
            gold_items,
            gold_sets,
            separator,
            form,
            opened.backend,
            columns,
            opened.origin,
        )

    def to_frame(self) -> Any:
        """Return a table with one row per set: item, worker, and labels as a list; gold too, if sets are known."""
        columns = {
            "item": to_column(self.items).take(self.item),
            "worker": to_column(self.workers).take(self.worker),
            "labels": list_column(self.said, self.tags),
        }
        if len(self.gold_items):
            place = np.full(self.n_items, -1, np.int64)
            place[self.gold_items] = np.arange(len(self.gold_items))
            known = to_lists(self.gold, self.tags)
            cells = [None if at < 0 else known[at] for at in place[self.item].tolist()]
            columns["gold"] = pa.array(cells, columns["labels"].type)
        return build_frame(columns, self.backend)

    def to_responses(self) -> Answers:
        """Return the answers yes and no about each tag of each item: sequence is the item, position the tag's number.

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
            label=narrow_codes(label, 2),
            weight=None,
            workers=self.workers,
            labels=objects([NO, YES]),
            classes=objects([NO, YES]),
            keys=Sequences(self.items, np.arange(self.n_items + 1) * n_tags, np.tile(np.arange(n_tags), self.n_items)),
            backend=self.backend,
            columns=self._name_columns(),
            origin=self.origin,
        )

    def _name_columns(self) -> Mapping[str, str]:
        """Return the columns by role. Where several identify an item they do so for the sequence of its tags, too."""
        together = bool(name_composite(self.columns))
        return {**self.columns, "sequence": self.columns["item"]} if together else self.columns

    def with_tags(self, tags: Values) -> Tags:
        """Return the same with other tags, in their order; a tag that somebody gave must be among them."""
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

    def with_gold(self, gold: object) -> Tags:
        """Return the same with known sets: a dict {item: tags}, a Series, or a table with columns item and label.

        Sets are lists, or text with the separator. An empty one says that the item has no tag. They are added to those
        that are known already, and replace them.
        """
        found, known = read_known_sets(gold, self.items, self.tags, self.separator, self.columns)
        kept = ~np.isin(self.gold_items, found)
        items = np.concatenate([self.gold_items[kept], found])
        order = np.argsort(items)
        sets = np.concatenate([self.gold[kept], known])
        return replace(self, gold_items=items[order], gold=sets[order])

    def without_gold(self) -> Tags:
        """Return the same without known sets."""
        return replace(self, gold_items=np.empty(0, np.int64), gold=np.zeros((0, self.n_tags), bool))

    def known_answers(self) -> dict[str, object] | None:
        """Return what is known of each tag of each item whose set is known, as gold for models; None if nothing is."""
        if not len(self.gold_items):
            return None
        return {
            "sequence": np.repeat(self.items[self.gold_items], self.n_tags),
            "position": np.tile(np.arange(self.n_tags), len(self.gold_items)),
            "label": objects([NO, YES])[self.gold.astype(np.int64).ravel()],
        }


def list_column(said: Truths, tags: Values) -> pa.Array:
    """Return sets as an Arrow column of lists."""
    values = to_column(tags)
    if isinstance(values, np.ndarray):  # Arrow has no type for such tags
        values = to_column([str(tag) for tag in tags.tolist()])
    rows, codes = np.nonzero(said)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(said)))]).astype(np.int32)
    taken = values.take(pa.array(codes)) if len(tags) else pa.array([], pa.string())
    return pa.ListArray.from_arrays(pa.array(offsets), taken)
