"""What items look like: a text, or a picture that is made small and put into the page.

Content is given for each item as text. A text that ends like the name of a picture, and is the path of a file, is taken
for that picture. Pictures are opened only for the items that are shown.
"""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..answers.columns import Column, find_missing, spell_surrogates, to_column, to_values
from ..answers.frames import open_series
from ..answers.item_tables import key_names, open_item_table
from ..answers.responses import Responses
from ..answers.tables import Table
from ..errors import InputError, Sentence, listing
from ..formats.arrays import shrink_picture
from ..formats.reading import open_path
from ..tasks.base import AnyTask

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
# The most characters of a text that are shown.
LONGEST_TEXT = 700
# The longer side of a picture in the page.
SIDE = 240


class Content(NamedTuple):
    """What an item looks like."""

    text: str = ""
    picture: str = ""  # a data: URL


def find_content(
    content: Any, r: Responses, folder: str | os.PathLike[str] | None = None
) -> Callable[[int], Content | None]:
    """Return a function that tells what an item looks like, by its index.

    Parameters
    ----------
    content : dict, Series, table or path
        {item: text}, or a table with the items and one other column (or one called content, text or image). Of several
        rows about one item the first counts.
    r : Responses
        Whose items they are.
    folder : path, optional
        Where relative paths of pictures start.
    """
    keys, values = open_columns(content, r)
    known = np.ones(len(values), bool)
    known[find_missing(values)] = False
    item = r.find_items(keys)
    rows = np.flatnonzero(known & (item >= 0))[::-1]
    if not len(rows):
        raise InputError(
            f"The content is about none of the items of the answers, such as {listing(first_items(r))}.",
            "Check that both use the same ids.",
            keyword="content",
        )
    row_of_item = np.full(r.n_items, -1)
    row_of_item[item[rows]] = rows  # from the last to the first

    @functools.cache
    def show(index: int) -> Content | None:
        row = int(row_of_item[index])
        if row < 0:
            return None
        return open_content(spell_surrogates(str(to_values(values.take([row])).tolist()[0])), folder)

    return show


def show_item(task: AnyTask, index: int) -> Content | None:
    """Return what an item looks like by what it is, such as a word."""
    shown = task.show(np.array([index]))
    return None if shown is None else Content(shown[0])


def open_columns(content: Any, r: Responses) -> tuple[list[Column], Column]:
    """Return the keys of items, and what is said of each."""
    series = open_series(content)
    if series is not None:
        return split_keys(series[0], r), to_column(series[1])
    if isinstance(content, Mapping) and all(value is None or isinstance(value, str) for value in content.values()):
        return split_keys(to_column(list(content)), r), to_column(list(content.values()))
    table = open_item_table(open_path(content), "content").prefer(r.columns)
    names = key_names(table, r)
    return [table.read(name) for name in names], table.read(find_column(table, names))


def split_keys(keys: Column, r: Responses) -> list[Column]:
    """Return keys of items as columns: (sequence, position) pairs as two."""
    if r.sequences is None:
        return [keys]
    pairs = to_values(keys).tolist()
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise InputError(
            "The content of sequences must be keyed by (sequence, position), such as {('s1', 0): 'The'}.",
            keyword="content",
        )
    return [to_column([pair[part] for pair in pairs]) for part in (0, 1)]


def first_items(r: Responses) -> list[Any]:
    """Return the ids of the first items."""
    if r.sequences is None:
        return list(r.items[:3].tolist())
    return list(r.sequences.ids[:3].tolist())


def find_column(table: Table, keys: list[str]) -> str:
    """Return the column of content: the only one beside the items, or the one with a usual name."""
    others = [name for name in table.names if name not in keys]
    if len(others) == 1:
        return others[0]
    for name in others:
        plain = name.strip().lower().removeprefix("input.").removeprefix("input:")  # as in files of MTurk and Toloka
        if plain in ("content", "text", "image", "word", "token"):
            return name
    raise InputError(
        f"{table.name} has the columns {listing(table.names)}: which of them is the content is not clear.",
        Sentence("Keep the items and one other column, or call it content."),
        keyword="content",
    )


def open_content(text: str, folder: str | os.PathLike[str] | None = None) -> Content:
    """Return content as it is shown: the beginning of a text, or a small picture."""
    if len(text) < 1000 and text.lower().endswith(PICTURES):
        path = Path(folder or ".", text)
        try:
            is_file = path.is_file()
        except (OSError, ValueError):
            is_file = False
        if is_file:
            try:
                kind, data = shrink_picture(os.fspath(path), SIDE)
            except InputError:
                return Content(f"{text} (cannot be read)")
            return Content(Path(text).name, f"data:image/{kind};base64,{base64.b64encode(data).decode()}")
    return Content(text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…")
