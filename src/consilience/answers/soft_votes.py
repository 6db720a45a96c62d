"""Soft votes: what each answer gives to every label, beside the label that it gives most.

A classifier that says ``[.7, .2, .1]`` has answered, with the first class, and has also told how sure it is. As an
answer it is like any other: models that look at labels take its most probable one. The probabilities stand beside it,
for models that learn what they are worth. How sure an answer is can be told only in comparison with the other answers
of its worker, for some workers are never sure and others always. The median confidence of each worker, found when
answers are read, therefore stays with them: some of the answers are told apart by it as all of them are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..kernels import Floats, Integers, Truths, freeze
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


@dataclass(frozen=True, eq=False)
class SoftVotes:
    """Probabilities that belong to answers.

    Attributes
    ----------
    probabilities : float32 array (n_answers, L)
        Of each label, by each answer; rows sum to 1. The label of the answer is the most probable one.
    medians : float32 array (M,)
        The median of the largest probabilities of each worker; NaN of one who has given no answer.
    """

    probabilities: Probabilities
    medians: Probabilities

    def __post_init__(self) -> None:
        freeze(self.probabilities)
        freeze(self.medians)

    @classmethod
    def of(cls, votes: Floats, worker: Integers, n_workers: int) -> SoftVotes:
        """Return the soft votes (n_answers, L) of workers, given by their indices."""
        probabilities = np.ascontiguousarray(votes, dtype=np.float32)
        return cls(probabilities, find_medians(find_largest(probabilities), worker, n_workers))

    def pick(self, answers: Truths | Indices | slice) -> SoftVotes:
        """Return those of some answers."""
        return replace(self, probabilities=self.probabilities[answers].copy())

    def are_sure(self, worker: Integers) -> Truths:
        """Tell which answers, of these workers, are in the upper half of their worker's own by confidence."""
        return np.asarray(self.probabilities.max(axis=1, initial=0.0) >= self.medians[worker])

    def with_labels(self, label: Integers, n_labels: int) -> SoftVotes:
        """Return the same votes on other labels; `label` says which of these each label is. Merged labels add up."""
        if n_labels == len(label) and np.array_equal(label, np.arange(n_labels)):
            return self
        moved = np.zeros((len(self.probabilities), n_labels), np.float32)
        for column, place in enumerate(label.tolist()):
            moved[:, place] += self.probabilities[:, column]
        return replace(self, probabilities=moved)

    def with_workers(self, worker: Integers, n_workers: int) -> SoftVotes:
        """Return the same votes among other workers; `worker` says which of these each worker is."""
        medians = np.full(n_workers, np.nan, np.float32)
        medians[worker] = self.medians
        return replace(self, medians=medians)

    def judged_by(self, medians: Floats | Probabilities) -> SoftVotes:
        """Return the same votes with medians (M,) that were found before; where they are NaN, the own ones stay.

        A worker's answers are told apart by the median that was found when the first of them were read.
        """
        return replace(self, medians=np.where(np.isnan(medians), self.medians, medians).astype(np.float32))

    def shares(self) -> Floats:
        """Return the sum of the probabilities of each label, (L,)."""
        return np.asarray(self.probabilities.sum(axis=0, dtype=np.float64))


def lacks_any(votes: Floats) -> bool:
    """Tell whether an entry is missing. Infinities of both signs look like it; they are an error later."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(votes.sum()))


def find_largest(probabilities: Probabilities) -> Probabilities:
    """Return the largest of each row, 0 if there are none."""
    if not probabilities.shape[1]:
        return np.zeros(len(probabilities), np.float32)
    return np.asarray(reduce(np.maximum, probabilities.T))  # faster than `max` where there are few classes


def find_medians(confidence: Probabilities, worker: Integers, n_workers: int) -> Probabilities:
    """Return the median confidence of each worker, NaN without any: the lower one of two.

    >>> find_medians(np.array([0.5, 0.9, 0.6, 0.7], np.float32), np.array([0, 0, 0, 2]), 3)
    array([0.6, nan, 0.7], dtype=float32)
    """
    from ..kernels.columns import order_by

    medians = np.full(n_workers, np.nan, np.float32)
    sorted_by_worker = confidence[order_by(worker, n_workers)[0]]
    ends = np.cumsum(np.bincount(worker, minlength=n_workers)).tolist()
    for m, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        if last > first:
            middle = (last - first - 1) // 2
            medians[m] = np.partition(sorted_by_worker[first:last], middle)[middle]
    return medians
