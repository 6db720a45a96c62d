"""Known labels in a column of the table of answers: each row says what is known about its item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, Python, Sentence, parameter_error, plural
from .gold import find_classes
from .responses import Responses
from .tables import Table
from .vocabulary import Column, decode_categories, encode_in_order_of_appearance, find_missing, to_column

# How to do without the column, in Python and on the command line.
LEAVE_OUT = Sentence("To leave it out, use {ignore_gold}.", ignore_gold=Python("gold=False"))


class Known(NamedTuple):
    """What a column says about items: their numbers, the label of each, and the column.

    `clash` counts items about which it says two things, and `place` is where it first does.
    """

    item: NDArray[np.int64]
    label: Column
    name: str
    clash: int = 0
    place: str = ""


def find_gold(table: Table, gold: str | bool | None) -> str | None:
    """Return the column of known labels: the one named, or the one with a usual name; None with ``gold=False``."""
    if gold is False or gold is None:
        return None if gold is False else table.find("gold")
    if not isinstance(gold, str):
        raise parameter_error("gold", "Responses.from_frame", "the name of a column, or False", gold)
    return table.find("gold", gold)


def match_rows(table: Table, name: str, item: NDArray[Any]) -> Known | None:
    """Return what a column says about the items, None if it is empty.

    Parameters
    ----------
    table : Table
        Of answers.
    name : str
        The column of known labels; an empty cell says nothing.
    item : array of int
        The item of each row.
    """
    column = table.read(name)
    said = np.ones(table.n_rows, bool)
    said[find_missing(column)] = False
    rows = np.flatnonzero(said)
    if not len(rows):
        return None
    column = column.take(rows) if isinstance(column, np.ndarray) else decode_categories(column.take(rows))
    codes, _ = encode_in_order_of_appearance(column)
    owner = item[rows]
    items, first = np.unique(owner, return_index=True)
    clash = np.flatnonzero(codes != codes[first][np.searchsorted(items, owner)])
    known = Known(items.astype(np.int64), column.take(first), name)
    if len(clash):
        known = known._replace(clash=len(np.unique(owner[clash])), place=table.locate(int(rows[clash[0]])))
    return known


def add_gold(answers: Responses, known: Known, source: str, named: bool) -> Responses:
    """Return answers with the known labels.

    Two labels of one item are an error; unless the column was found by its name, and holds something else than classes.
    """
    if known.clash and not named and len(find_strange(answers, known.label)):
        return answers
    if known.clash:
        raise InputError(
            f"Column {known.name!r} of {source} gives {plural(known.clash, 'item')} more than one known label; the "
            f"first is at {known.place}.",
            "Correct it.",
            LEAVE_OUT,
        )
    labels = known.label.tolist() if isinstance(known.label, np.ndarray) else known.label.to_pylist()
    gold = dict(zip(answers.items[known.item].tolist(), labels, strict=True))
    return replace(answers, gold=gold, columns={**answers.columns, "gold": known.name})


def find_strange(answers: Responses, labels: Column) -> list[Any]:
    """Return the different ones of some labels that are no classes. Truth values are none among numbers."""
    _, distinct = encode_in_order_of_appearance(labels)
    if distinct.dtype == bool and answers.classes.dtype.kind in "iuf":
        return list(distinct.tolist())
    code = find_classes(to_column(distinct), np.ones(len(distinct), bool), answers.classes, answers.normalised)
    return list(distinct[code < 0].tolist())
