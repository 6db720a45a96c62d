"""Sets of tags in a store: cells of files become bits, some rows at a time, and answers about each tag in a partition.

A first pass over the column of sets finds all tags. While rows are sorted, a row has the set of one worker about one
item, with a bit for each tag. All rows about an item meet in a partition, where each tag becomes a question with the
answers yes and no: the item is a sequence, and its tags are the positions, 0 and on, so that no set is ever cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Column, Values, decode_categories, holds_sign, is_missing, objects, to_column
from ..answers.frames import open_arrow
from ..answers.items import encode_items
from ..answers.long_tables import find_columns
from ..answers.responses import Answers
from ..answers.tables import Table
from ..engines.base import Engine
from ..errors import ParameterError, Sentence
from ..formats.reading import Scan, Stretch
from ..kernels import Truths
from ..kinds.tag_tables import (
    Signs,
    check_signs,
    choose_tags,
    count_signs,
    encode_sets,
    find_sets_column,
    need_tags,
    settle_sets,
    split_cell,
)
from ..kinds.tags import NO, YES, Tags

# What the column of bits is called while a store is built.
BITS = "tags"
# In a store, the file of all tags.
TAGS = "tags.arrow"
# So many rows are looked through at a time.
ROWS = 1 << 22


class Asked(NamedTuple):
    """How cells of files are read as sets of tags: what stands between tags, and all tags if they are named."""

    separator: str
    classes: object = None


class SetForm(NamedTuple):
    """How rows of files are read as sets of tags; it does for a store what `SoftForm` does.

    Attributes
    ----------
    columns : dict
        The column that plays each role: item, worker and label.
    separator : str
        What stands between tags in a cell.
    tags : ndarray
        All tags.
    labels : ndarray
        What workers say of each.
    """

    columns: dict[str, str]
    separator: str
    tags: Values
    labels: Values

    def list_columns(self) -> list[str]:
        """Return the columns of the files that are read."""
        return list(self.columns.values())

    def count_cells(self) -> int:
        """Return how many rows of answers each row of the files is as large as."""
        return len(self.tags)

    def read(self, table: Table, row: NDArray[np.int64]) -> tuple[Table, NDArray[np.int64], dict[str, Column]]:
        """Return the rows, their numbers, and the set of each as bits. In the table, empty sets are missing values."""
        name = self.columns["label"]
        index, cells, _ = split_column(table.read(name), self.separator)
        said = encode_sets(cells, self.tags)
        bits = np.packbits(said, axis=1)[index] if len(cells) else np.zeros((0, self._width()), np.uint8)
        empty = np.array([not cell for cell in cells], bool)[index] if len(cells) else np.zeros(0, bool)
        marked = table.add({name: pa.array(np.zeros(len(row), np.int8), mask=empty)})
        buffer = pa.py_buffer(np.ascontiguousarray(bits).tobytes())
        packed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(self._width()), len(row), [None, buffer])
        return marked, row, {BITS: packed}

    def _width(self) -> int:
        return -(-len(self.tags) // 8)

    def unpack(self, column: pa.ChunkedArray) -> Truths:
        """Return which tags each set has, (S, T)."""
        text = b"".join(column.to_pylist())
        bits = np.frombuffer(text, np.uint8).reshape(-1, self._width())
        return np.unpackbits(bits, axis=1, count=len(self.tags)).astype(bool)

    def assemble(self, table: Table, worker: NDArray[np.int64], workers: Values, said: Truths, policy: str) -> Answers:
        """Return the answers about each tag of the items of a partition, of whose sets one is kept by a policy."""
        codes, items = encode_items([table.read("key 0")], None, table.name)
        rows, item, who = settle_sets(table, np.asarray(codes, np.int64), worker, policy, "cells")
        kept = np.flatnonzero(rows >= 0)
        settled = np.zeros((len(item), len(self.tags)), bool)
        settled[rows[kept]] = said[kept]
        nothing = np.empty(0, np.int64), np.zeros((0, len(self.tags)), bool)
        return Tags(np.asarray(items), workers, self.tags, item, who, settled, *nothing).to_responses()


def split_column(column: Column, separator: str) -> tuple[NDArray[np.int64], list[list[str]], NDArray[np.int64]]:
    """Return the distinct cell of each row, the tags in each distinct cell, and how many rows have it."""
    if isinstance(column, np.ndarray):
        column = to_column([None if is_missing(value) else str(value) for value in column.tolist()])
    encoded = pc.dictionary_encode(decode_categories(column), null_encoding="encode")
    index = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    cells = [split_cell(value, separator) for value in encoded.dictionary.to_pylist()]
    return index, cells, np.bincount(index, minlength=len(cells))


def find_sets(scan: Scan, empty: Table, names: Mapping[str, str | None], asked: Asked, engine: Engine) -> SetForm:
    """Return how files are read as sets of tags, of which those that somebody gave are found in a first pass.

    `empty` is the table of the files without its rows.
    """
    for role in ("sequence", "position", "weight"):
        if names[role] is not None:
            raise ParameterError(
                Sentence(f"Sets of tags are about whole items and have no {{{role}}}.", **{role: None}),
                "Leave it out.",
                keyword=role,
            )
    label = names["label"] or find_sets_column(empty)
    item = names["item"] or (empty.need("item") if empty.has_sequences() else None)
    columns = find_columns(empty, {**names, "item": item, "label": label})
    found, signs = set[str](), count_signs([])
    stretches = engine.place(scan.stretches(ROWS))
    for tags, met in engine.map(meet_tags, stretches, scan, columns["label"], asked.separator):
        found, signs = found | tags, signs.plus(met)
    if signs.n_tags:
        check_signs(signs, columns["label"], scan.describe(), asked.separator)
    chosen = choose_tags([sorted(found)], asked.classes, ())
    if sum(scan.sizes):  # else whoever sorts rows says that there are none
        need_tags(chosen, scan.describe())
    return SetForm(columns, asked.separator, chosen, objects([NO, YES]))


def find_tagged(scan: Scan, names: Sequence[str], separator: str) -> set[str]:
    """Return the questions with a separator in some cell of their column: the others have one label each."""
    found = set[str]()
    for stretch in scan.stretches(ROWS):
        left = [name for name in names if name in scan.names and name not in found]
        if not left:
            break
        for _, part in scan.read(stretch, left):
            table = open_arrow(part, scan.describe())
            found |= {name for name in left if holds_sign(table.read(name), separator)}
    return found


def meet_tags(stretch: Stretch, scan: Scan, name: str, separator: str) -> tuple[set[str], Signs]:
    """Return all tags in a stretch of rows, and what usual signs they hold."""
    found, signs = set[str](), count_signs([])
    for _, part in scan.read(stretch, [name]):
        _, cells, often = split_column(open_arrow(part, scan.describe()).read(name), separator)
        found.update(tag for cell in cells for tag in cell)
        signs = signs.plus(count_signs(cells, often.tolist()))
    return found, signs
