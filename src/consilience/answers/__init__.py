"""The data in memory (answers, blocks of them, gold, graphs, vocabularies), and the register of forms of tables.

A dialect is a form of table, in a file or in memory. It turns a table of that form into one with a row per answer, in
which each role has its column. Most dialects are recognised by the names of the columns. A new one is a new file in
this folder and one line in `DIALECTS`.

Importing this module costs nothing, so that the command line can list the dialects. The file of a dialect is imported
when a table is first read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InputError, Sentence, listing, parameter_error

if TYPE_CHECKING:
    from .tables import Table

# For each role (item, worker, label, ...) the column that the user named for it, None where there is none.
Names: TypeAlias = Mapping[str, str | None]

# One row per answer: every table that is nothing else.
LONG = "long"
# Votes of labelling functions.
MATRIX = "matrix"


@dataclass(frozen=True)
class Dialect:
    """A form of table.

    Its module has two functions, which take a table and the names of columns that the user gave. ``recognise_<name>``
    is True only where there is no doubt that the table has this form. ``translate_<name>`` returns a table with one row
    per answer, whose `preferred` columns play the roles; the names have the form too, under "format", if it was given.

    Attributes
    ----------
    name : str
        What users call it, as in ``format="mturk"``.
    title : str
        What it is, in a few words.
    home : str
        The module in this folder.
    needed : tuple of str
        Columns without which a table cannot have this form.
    suffix : str
        What files end in that always have this form; empty if there are none.
    is_folder : bool
        Whether workers have files of their own.
    """

    name: str
    title: str
    home: str
    needed: tuple[str, ...] = ()
    suffix: str = ""
    is_folder: bool = False

    def _find(self, verb: str) -> Any:
        return getattr(import_module(f".{self.home}", __package__), f"{verb}_{self.name.replace('-', '_')}")

    def recognise(self, table: Table, names: Names) -> bool:
        """Tell whether a table has this form."""
        return set(self.needed).issubset(table.names) and bool(self._find("recognise")(table, names))

    def translate(self, table: Table, names: Names) -> Table:
        """Lay a table of this form out with one row per answer."""
        translated: Table = self._find("translate")(table, names)
        return translated


DIALECTS = (
    Dialect("mturk", "MTurk batch results", "wide_tables", needed=("HITId", "WorkerId")),
    Dialect("toloka", "Toloka assignments", "wide_tables", needed=("ASSIGNMENT:worker_id",)),
    Dialect("appen", "Appen full reports", "wide_tables", needed=("_unit_id", "_worker_id")),
    Dialect(MATRIX, "one column per worker, -1 is no answer", "wide_tables", suffix=".npy"),
    Dialect("soft-files", "probabilities, one array or table per worker", "soft_votes", is_folder=True),
    Dialect("soft", "probabilities, one column per class", "soft_votes"),
    Dialect("soft-long", "probabilities, one row per label", "soft_votes"),
    Dialect("soft-wide", "probabilities, one column per worker and class", "soft_votes"),
    Dialect("wide", "one column per worker", "wide_tables"),
)


def list_names() -> list[str]:
    """List the names of all forms of tables.

    >>> list_names()
    ['long', 'mturk', 'toloka', 'appen', 'matrix', 'soft-files', 'soft', 'soft-long', 'soft-wide', 'wide']
    """
    return [LONG, *(dialect.name for dialect in DIALECTS)]


def translate(table: Table, format: str | None, names: Names, ignore: Sequence[str] | str = ()) -> Table:
    """Lay a table out with one row per answer.

    Parameters
    ----------
    table : Table
        In any form. One whose `format` is set already has one row per answer.
    format : str or None
        The name of its form; None: the one that is recognised, else one row per answer.
    names : mapping
        The columns that the user named.
    ignore : str or sequence of str
        Columns that are no workers.
    """
    ignored = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(ignored, (list, tuple)):
        raise parameter_error("ignore", "Answers.from_frame", "the name of a column, or a list of names", ignore)
    table = replace(table, ignored=[*table.ignored, *ignored])
    if format is None:
        dialect = None if table.format else recognise(table, names)
        return table if dialect is None else dialect.translate(table, {**names, "format": None})
    if not (isinstance(format, str) and format in list_names()):
        known = ", ".join(map(repr, list_names()))
        raise parameter_error("format", "Answers.from_frame", f"one of {known}", format)
    dialect = next((each for each in DIALECTS if each.name == format), None)
    if dialect is None:
        return table
    missing = [name for name in dialect.needed if name not in table.names]
    if missing:
        raise InputError(
            f"{table.name} has no column {listing(missing)}, as {dialect.title} have. It has "
            f"{listing(map(str, table.names), len(table.names))}.",
            Sentence("Leave {format} out, or choose another.", format=format),
            keyword="format",
        )
    return dialect.translate(table, {**names, "format": format})


def recognise(table: Table, names: Names) -> Dialect | None:
    """The form that a table has, by its columns; None for one row per answer."""
    return next((each for each in DIALECTS if each.recognise(table, names)), None)
