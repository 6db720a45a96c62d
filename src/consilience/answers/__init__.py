"""The data in memory (answers, blocks of them, gold, graphs, vocabularies), and the register of forms of tables.

A dialect is a form of table, in a file or in memory. It turns a table of that form into one with a row per answer, in
which each role has its column. Most dialects are recognised by the names of the columns. A new one is a new file in
this folder and one line in `DIALECTS`.

Importing this module costs nothing, so that the command line can list the dialects. The file of a dialect is imported
when a table is first read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

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
class Reader:
    """What the file of a dialect offers.

    Attributes
    ----------
    recognise : callable
        Takes a table and the names of columns that the user gave. Returns True only where there is no doubt that the
        table has this form.
    translate : callable
        Takes the same. Returns a table with one row per answer, whose `preferred` columns play the roles.
    needed : tuple of str
        Columns without which a table cannot have this form.
    """

    recognise: Callable[[Table, Names], bool]
    translate: Callable[[Table, Names], Table]  # `names` has the form too, under "format", if it was given
    needed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialect:
    """A form of table.

    Attributes
    ----------
    name : str
        What users call it, as in ``format="mturk"``.
    title : str
        What it is, in a few words.
    home : str
        Where its `Reader` is: "module:name", the module in this folder.
    suffix : str
        What files end in that always have this form; empty if there are none.
    is_folder : bool
        Whether workers have files of their own.
    """

    name: str
    title: str
    home: str
    suffix: str = ""
    is_folder: bool = False

    @cached_property
    def reader(self) -> Reader:
        """The functions of the dialect."""
        module, name = self.home.split(":")
        reader: Reader = getattr(import_module(f".{module}", __package__), name)
        return reader


DIALECTS = (
    Dialect("mturk", "MTurk batch results", "platforms:MTURK"),
    Dialect("toloka", "Toloka assignments", "platforms:TOLOKA"),
    Dialect("appen", "Appen full reports", "platforms:APPEN"),
    Dialect(MATRIX, "one column per worker, -1 is no answer", "wide_tables:MATRIX", ".npy"),
    Dialect("soft-files", "probabilities, one array or table per worker", "soft_tables:SOFT_FILES", is_folder=True),
    Dialect("soft", "probabilities, one column per class", "soft_tables:SOFT"),
    Dialect("soft-long", "probabilities, one row per label", "soft_tables:SOFT_LONG"),
    Dialect("soft-wide", "probabilities, one column per worker and class", "soft_tables:SOFT_WIDE"),
    Dialect("wide", "one column per worker", "wide_tables:WIDE"),
)


def list_names() -> list[str]:
    """Return the names of all forms of tables.

    >>> list_names()
    ['long', 'mturk', 'toloka', 'appen', 'matrix', 'soft-files', 'soft', 'soft-long', 'soft-wide', 'wide']
    """
    return [LONG, *(dialect.name for dialect in DIALECTS)]


def translate(table: Table, format: str | None, names: Names, ignore: Sequence[str] | str = ()) -> Table:
    """Return a table with one row per answer.

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
        if table.format:
            return table
        dialect = recognise(table, names)
    else:
        if not (isinstance(format, str) and format in list_names()):
            known = ", ".join(map(repr, list_names()))
            raise parameter_error("format", "Answers.from_frame", f"one of {known}", format)
        dialect = next((each for each in DIALECTS if each.name == format), None)
        missing = [] if dialect is None else [name for name in dialect.reader.needed if name not in table.names]
        if dialect is not None and missing:
            raise InputError(
                f"{table.name} has no column {listing(missing)}, as {dialect.title} have. It has "
                f"{listing(map(str, table.names), len(table.names))}.",
                Sentence("Leave {format} out, or choose another.", format=format),
                keyword="format",
            )
    return table if dialect is None else dialect.reader.translate(table, {**names, "format": format})


def recognise(table: Table, names: Names) -> Dialect | None:
    """Return the form that a table has, by its columns; None for one row per answer."""
    return next((each for each in DIALECTS if _fits(each.reader, table, names)), None)


def _fits(reader: Reader, table: Table, names: Names) -> bool:
    return set(reader.needed).issubset(table.names) and reader.recognise(table, names)
