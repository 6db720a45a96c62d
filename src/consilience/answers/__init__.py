"""The data in memory, and the register of forms of tables.

======================  ================================================================================
`answers.py`            `Answers`, who said what about which item; the blocks that fits work on
`keys.py`               which items there are: ids, or `Sequences` and positions
`columns.py`            columns of values: distinct ones, missing ones, indices into vocabularies
`classes.py`            labels and classes: how they are written, and their order
`gold.py`               known labels (`Gold`)
`item_priors.py`        probabilities of classes that are known of items before any answer
`features.py`           numbers that describe items
`matching.py`           which row of such a table is about which item
`graph.py`              `Graph`, which items are neighbours
`tables.py`             a `Table` of any frame library, whose columns play roles; `translate` uses the register
`layouts.py`            forms of tables: a row per answer, a column per worker, and those of three platforms
`soft_votes.py`         tables of probabilities
`tagging.py`            tags of tokens, and which may follow which
`joining.py`            answers that come later
`random_choices.py`     random choices that depend on ids alone
`previews.py`           tables and facts as text and HTML
======================  ================================================================================

A dialect is a form of table, in a file or in memory. It turns a table of that form into one with a row per answer, in
which each role has its column. Most dialects are recognised by the names of the columns. A new one is a function in
this folder and one line in `DIALECTS`.

Importing this module costs nothing, so that the command line can list the dialects. The file of a dialect is imported
when a table is first read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

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
