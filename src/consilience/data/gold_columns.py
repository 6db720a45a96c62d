"""Known labels in a column of the table of answers: each row says what is known about its item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, InputError, Python, Sentence, listing, parameter_error, plural, warn
from .gold import find_classes
from .responses import Responses
from .tables import Table
from .vocabulary import Column, decode_categories, encode_in_order_of_appearance, find_missing, to_column

# How to do without the column, in Python and on the command line.
LEAVE_OUT = Sentence("To leave it out, use {ignore_gold}.", ignore_gold=Python("gold=False"))


class Known(NamedTuple):
    """Items whose label is known: their numbers, the labels, and the column these came from."""

    item: NDArray[np.int64]
    label: Column
    name: str


def find_gold(table: Table, gold: str | bool | None) -> str | None:
    """Return the column of known labels: the one named, or the one with a usual name; None with ``gold=False``."""
    if gold is False or gold is None:
        return None if gold is False else table.find("gold")
    if not isinstance(gold, str):
        raise parameter_error("gold", "Responses.from_frame", "the name of a column, or False", gold)
    return table.find("gold", gold)


def match_rows(table: Table, name: str, item: NDArray[Any]) -> Known | None:
    """Return what a column says about the items; that it says two things about one is an error.

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
    known = np.ones(table.n_rows, bool)
    known[find_missing(column)] = False
    rows = np.flatnonzero(known)
    if not len(rows):
        return None
    column = column.take(rows) if isinstance(column, np.ndarray) else decode_categories(column.take(rows))
    codes, _ = encode_in_order_of_appearance(column)
    owner = item[rows]
    items, first = np.unique(owner, return_index=True)
    said = codes[first][np.searchsorted(items, owner)]
    clash = np.flatnonzero(codes != said)
    if len(clash):
        n_items = plural(len(np.unique(owner[clash])), "item")
        raise InputError(
            f"Column {name!r} of {table.name} gives {n_items} more than one known label; the first is at "
            f"{table.locate(int(rows[clash[0]]))}.",
            "Correct it.",
            LEAVE_OUT,
        )
    return Known(items.astype(np.int64), column.take(first), name)


def add_gold(answers: Responses, known: Known, source: str, named: bool) -> Responses:
    """Return answers with the known labels.

    A column that was found by its name, and holds something else than classes, is left out with a warning. One that the
    user named is taken as it is.
    """
    everything = np.ones(len(known.item), bool)
    strange = find_classes(known.label, everything, answers.classes, answers.normalised) < 0
    if strange.any() and not named:
        odd = known.label.filter(strange) if not isinstance(known.label, np.ndarray) else known.label[strange]
        _, distinct = encode_in_order_of_appearance(to_column(odd))
        warn(
            DataWarning(
                f"Column {known.name!r} of {source} is not used as known labels: it holds "
                f"{listing(distinct.tolist())}, and the classes are {listing(answers.classes.tolist())}.",
                Sentence("If it holds known labels, name all classes with {classes}."),
                LEAVE_OUT,
            )
        )
        return answers
    labels = known.label.tolist() if isinstance(known.label, np.ndarray) else known.label.to_pylist()
    gold = dict(zip(answers.items[known.item].tolist(), labels, strict=True))
    return replace(answers, gold=gold, columns={**answers.columns, "gold": known.name})
