"""What the tables of crowd-sourcing platforms have in common: questions in columns, and rows that were refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DataWarning, InputError, Sentence, listing, plural, warn
from ..tables import Table
from ..vocabulary import Column, find_missing
from .register import Names


def list_entries(column: Column) -> list[Any]:
    """Return the entries of a column, None where one is missing."""
    missing = set(find_missing(column).tolist())
    entries = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return [None if row in missing else entry for row, entry in enumerate(entries)] if missing else entries


def choose_question(table: Table, questions: Sequence[str], names: Names, kind: str) -> str:
    """Return the column of answers: the one that was named, or the only question that somebody answered.

    Parameters
    ----------
    table : Table
        Of the platform.
    questions : sequence of str
        The columns that hold answers.
    names : mapping
        The columns that the user named.
    kind : str
        What the table is, for messages.
    """
    given = names.get("label")
    if given is not None:
        return table.need("label", given, parameter="label")
    answered = [name for name in questions if len(find_missing(table.read(name))) < table.n_rows]
    if len(answered) == 1:
        return answered[0]
    if not answered:
        verb = "is" if len(questions) == 1 else "are"
        found = f"{listing(questions, len(questions))} {verb} empty" if questions else "there is no column of answers"
        raise InputError(
            f"{table.name} looks like {kind}, but {found}.", Sentence("Name the column of answers with {label}.")
        )
    raise InputError(
        f"{table.name} ({kind}) has {plural(len(answered), 'question')}: {listing(answered, len(answered))}.",
        Sentence("Choose one with {label}."),
        keyword="label",
    )


def choose_item(table: Table, inputs: Sequence[str], key: str | None, names: Names) -> str | None:
    """Return the column of items: the one that was named, the only input, else the platform's own key.

    An input without which a row exists does not identify it.
    """
    if names.get("item") is not None:
        return table.need("item", names["item"], parameter="item")
    if len(inputs) == 1 and not len(find_missing(table.read(inputs[0]))):
        return inputs[0]
    return key


def leave_out(table: Table, column: str, values: Sequence[str], what: str) -> Table:
    """Return the table without the rows that have one of some values in a column, and warn of their number.

    Upper and lower case are the same. `what` says in a word or two what these rows are.
    """
    if column not in table.names:
        return table
    states = list_entries(table.read(column))
    kept = np.flatnonzero([str(state).lower() not in values for state in states])
    n_left = table.n_rows - len(kept)
    if not n_left:
        return table
    warn(
        DataWarning(
            f"{plural(n_left, 'row')} of {table.name} {'was' if n_left == 1 else 'were'} left out as {what} (column "
            f"{column!r}).",
            Sentence("To use all rows, use {format}, and name the columns.", format="long"),
        )
    )
    if not len(kept):
        raise InputError(f"No row of {table.name} is left.")
    return table.keep(kept)
