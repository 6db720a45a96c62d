"""Soft votes: what each answer gives to every label, beside the label that it gives most.

A classifier that says ``[.7, .2, .1]`` has answered, with the first class, and has also told how sure it is. As an
answer it is like any other: models that look at labels take its most probable one. The probabilities stand beside it,
for models that learn what they are worth.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..kernels import Floats, Integers
from .columns import Codes, Indices, Values

Probabilities: TypeAlias = NDArray[np.float32]


class SoftRows(NamedTuple):
    """Soft votes in the rows of a table.

    Attributes
    ----------
    labels : ndarray (L,)
        What each column of the votes is about.
    votes : float64 array (n_rows, L)
        Probabilities as they were read; NaN where one is missing.
    named : bool
        Whether the labels have their names; else they are numbered, and may be named later.
    lacks_rows : bool
        Whether a label without a probability may have had no row.
    codes : int32 array (n_rows,) or None
        The label that each row gives most, if it is known already.
    """

    labels: Values
    votes: Floats
    named: bool = True
    lacks_rows: bool = False
    codes: Codes | None = None

    def pick(self, rows: Indices) -> SoftRows:
        """Return those of some rows."""
        return self._replace(votes=self.votes[rows], codes=None if self.codes is None else self.codes[rows])

    def find_codes(self) -> Codes:
        """Return the label that each row gives most, by index: the first of several."""
        if self.codes is not None:
            return self.codes
        votes = np.nan_to_num(self.votes, nan=-np.inf) if lacks_any(self.votes) else self.votes
        return np.asarray(votes.argmax(axis=1), np.int32)

    def are_plain(self) -> bool:
        """Tell whether all rows are certain, as plain answers are."""
        return bool(self.votes.max(initial=0.0) >= 1 and (reduce(np.maximum, self.votes.T) >= 1).all())


def relabel(votes: Probabilities, label: Integers, n_labels: int) -> Probabilities:
    """Probabilities of other labels; `label` says which of these each label is. Those of merged labels add up."""
    if n_labels == len(label) and np.array_equal(label, np.arange(n_labels)):
        return votes
    moved = np.zeros((len(votes), n_labels), np.float32)
    for column, place in enumerate(label.tolist()):
        moved[:, place] += votes[:, column]
    return moved


def lacks_any(votes: Floats) -> bool:
    """Tell whether an entry is missing. Infinities of both signs look like it; they are an error later."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(votes.sum()))
