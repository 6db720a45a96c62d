"""The data in memory (answers, blocks of them, gold, graphs, vocabularies), and the register of forms of tables.

A dialect is a form of table, in a file or in memory. It turns a table of that form into one with a row per answer, in
which each role has its column. Most dialects are recognised by the names of the columns. A new one is a function in
this folder and one line in `DIALECTS`.

Importing this module costs nothing, so that the command line can list the dialects. The file of a dialect is imported
when a table is first read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from ..errors import InputError, Sentence, listing, parameter_error

if TYPE_CHECKING:
    from .tables import Table

# For each role (item, worker, label, ...) the column that the user named for it, None where there is none.
Names: TypeAlias = Mapping[str, str | None]

# One row per answer: every table that is nothing else.
LONG = "long"
# Names of the column of probabilities, where each label has a row.
PROBABILITY = ("probability", "probabilities", "prob", "proba")
# Votes of labelling functions.
MATRIX = "matrix"


@dataclass(frozen=True)
class Dialect:
    """A form of table.

    Its module has a function ``read_<name>(table, names, named)``, which returns a table with one row per answer, whose
    `preferred` columns play the roles. `names` are the columns that the user named. Where the form was not `named`, it
    returns None if there is any doubt that the table has this form.

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
    prefix : str
        What the name of some column must begin with.
    one_of : tuple of str
        Names, in lower case, of which a column must have one.
    suffix : str
        What files end in that always have this form; empty if there are none.
    is_folder : bool
        Whether workers have files of their own. Those are recognised where they are opened.
    by_item : bool
        Whether it has one row per item, and so neither a column of workers nor one of labels.
    """

    name: str
    title: str
    home: str
    needed: tuple[str, ...] = ()
    prefix: str = ""
    one_of: tuple[str, ...] = ()
    suffix: str = ""
    is_folder: bool = False
    by_item: bool = False


DIALECTS = (
    Dialect("mturk", "MTurk batch results", "layouts", needed=("HITId", "WorkerId"), prefix="Answer."),
    Dialect("toloka", "Toloka assignments", "layouts", needed=("ASSIGNMENT:worker_id",), prefix="OUTPUT:"),
    Dialect("appen", "Appen full reports", "layouts", needed=("_unit_id", "_worker_id")),
    Dialect(MATRIX, "one column per worker, -1 is no answer", "layouts", suffix=".npy", by_item=True),
    Dialect("soft-files", "probabilities, one array or table per worker", "soft_votes", is_folder=True),
    Dialect("soft", "probabilities, one column per class", "soft_votes"),
    Dialect("soft-long", "probabilities, one row per label", "soft_votes", one_of=PROBABILITY),
    Dialect("wide", "one column per worker", "layouts", by_item=True),
)


def list_names() -> list[str]:
    """The names of all forms of tables.

    >>> list_names()
    ['long', 'mturk', 'toloka', 'appen', 'matrix', 'soft-files', 'soft', 'soft-long', 'wide']
    """
    return [LONG, *(dialect.name for dialect in DIALECTS)]


def translate(table: Table, format: str | None, names: Names, ignore: Sequence[str] | str = ()) -> Table:
    """A table with one row per answer.

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
    if format is None and table.format:
        return table
    if format is not None and not (isinstance(format, str) and format in list_names()):
        known = ", ".join(map(repr, list_names()))
        raise parameter_error("format", "Answers.from_frame", f"one of {known}", format)
    if table.questions:
        table = import_module(".layouts", __package__).take_question(table, names)
    others = ("worker", "label", "sequence", "position", "weight")
    by_answer = names.get("order") is not None or any(
        names.get(role) is not None or table.find(role) is not None for role in others
    )
    lower = {str(name).lower() for name in table.names}
    # Beside a column of labels, those of probabilities are called p(<class>).
    may_be_soft = table.soft is not None or any(name.startswith("p(") for name in lower)
    may_be_soft = may_be_soft or (names.get("label") is None and table.find_usual("label") is None)
    for dialect in DIALECTS:
        missing = [name for name in dialect.needed if name not in table.names]
        if dialect.name == format and missing:
            raise InputError(
                f"{table.name} has no column {listing(missing)}, as {dialect.title} have. {table.list_columns()}.",
                Sentence("Leave {format} out, or choose another.", format=format),
                keyword="format",
            )
        is_like = not missing and any(str(name).startswith(dialect.prefix) for name in table.names)
        is_like = is_like and not dialect.is_folder and not (dialect.by_item and by_answer)
        is_like = is_like and not (dialect.one_of and lower.isdisjoint(dialect.one_of))
        is_like = is_like and (may_be_soft or dialect.name != "soft")
        if dialect.name == format or (format is None and is_like):
            read = getattr(import_module(f".{dialect.home}", __package__), f"read_{dialect.name.replace('-', '_')}")
            translated: Table | None = read(table, names, format is not None)
            if translated is not None:
                return replace(translated, format=dialect.name)
    return table
