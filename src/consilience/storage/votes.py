"""Soft votes in a store: rows of files become votes, some at a time.

The form of the files is recognised by their first rows. In two of the forms a row of a file holds whole votes, and its
labels are known from the names of columns. In the third a vote has a row for each label; these rows meet in the
partition of their item.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers import DIALECTS, Names, recognise
from ..answers.columns import Values
from ..answers.long_tables import find_columns
from ..answers.soft_votes import (
    Grid,
    find_grid,
    find_probability,
    lacks_any,
    list_classes,
    melt,
    need_numbers,
    objects_of,
)
from ..answers.tables import Table
from ..kernels import Floats

FORMS = ("soft", "soft-long", "soft-wide")


class SoftForm(NamedTuple):
    """How rows of files are read as soft votes.

    Attributes
    ----------
    name : str
        The form of table.
    columns : dict
        The column that plays each role, once votes have a row each.
    cells : list of str
        The columns of the files that hold probabilities.
    labels : ndarray or None
        What workers can say, if the names of the cells tell.
    grid : Grid or None
        Workers and classes of the cells, where each has its own.
    """

    name: str
    columns: dict[str, str]
    cells: list[str]
    labels: Values | None
    grid: Grid | None

    def list_columns(self) -> list[str]:
        """Return the columns of the files that are read."""
        made = {"label"} if self.labels is not None else set[str]()
        made |= {"worker"} if self.grid is not None else set[str]()
        return [name for role, name in self.columns.items() if role not in made] + self.cells

    def count_cells(self) -> int:
        """Return how many rows of answers each row of the files is about as large as."""
        n_workers = 1 if self.grid is None else len(self.grid.workers)
        return n_workers * (1 if self.labels is None else 1 + len(self.labels) // 4)

    def read(self, table: Table, row: NDArray[np.int64]) -> tuple[Table, NDArray[np.int64], dict[str, Floats]]:
        """Return rows of votes, from which row of the file each is, and columns of their probabilities."""
        if self.grid is not None:
            table, soft = melt(table, self.columns["item"], self.grid)
            row, votes = np.repeat(row, len(self.grid.workers)), soft.votes
        else:
            votes = need_numbers(table, self.cells)
        if self.labels is not None and lacks_any(votes):
            there = np.flatnonzero(~np.isnan(votes).all(axis=1))
            table, row, votes = table.keep(there), row[there], votes[there]
        return table, row, {name_column(k): each.copy() for k, each in enumerate(votes.T)}


def name_column(number: int) -> str:
    """Return what a column of probabilities is called while a store is built."""
    return f"vote {number}"


def find_form(head: Table, names: Names, format: str | None) -> SoftForm | None:
    """Return how files are read that begin with these rows; None if they hold no soft votes."""
    dialect = (
        recognise(head, names) if format is None else next((each for each in DIALECTS if each.name == format), None)
    )
    if dialect is None or dialect.name not in FORMS:
        return None
    columns = find_columns(dialect.translate(head, {**names, "format": format}), names)
    if dialect.name == "soft-long":
        cell = find_probability(head)
        assert cell is not None  # or else it could not be translated
        columns["label"] = head.need("label", names.get("label"), parameter="label")
        return SoftForm(dialect.name, columns, [cell], None, None)
    if dialect.name == "soft":
        classes = list_classes(head, names)
        return SoftForm(dialect.name, columns, list(classes), objects_of(classes.values()), None)
    grid = find_grid(head, names)
    assert grid is not None  # as before
    return SoftForm(dialect.name, columns, list(grid.columns.values()), objects_of(grid.classes), grid)
