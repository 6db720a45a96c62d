"""Comparisons: who preferred which of two candidates, checked once and held as plain arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Codes, Indices, Values, lookup, to_column
from ..answers.tables import open_frame
from ..errors import InputError, ParameterError, listing, parameter_error, plural
from ..formats.reading import open_file
from ..kernels import Floats
from .tables import read_comparisons


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    """Verdicts of judges on pairs of candidates.

    Build one with `from_frame`; `consilience.rank` takes tables and files as they are.

    Attributes
    ----------
    candidates : ndarray
        Ids of the candidates, sorted.
    workers : ndarray
        Ids of the judges, sorted. Where no column names them, all verdicts are those of one judge, called "".
    left, right, worker : int32 array
        Which two were compared, and by whom, as indices.
    verdict : int8 array
        0 if the left one was preferred, 1 for the right one, 2 for a tie.
    item : int32 array or None
        What each comparison is about, such as a prompt.
    group : int32 array or None
        The family of judges that the judge belongs to, as an index into `groups`.
    groups : ndarray
        Ids of the families.
    weight : float64 array or None
        How many verdicts a row stands for.
    has_positions : bool
        Whether left and right mean anything; not if verdicts follow from scores or ranks.
    columns : dict
        The column of the table that played each role.
    backend : str
        The frame library that the table came in.
    winners : str
        How winners were read: as ids of candidates, or as sides, with the words for these; "" if they were not read.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.Comparisons.from_frame({"left": ["a", "b"], "right": ["b", "c"], "winner": ["left", "tie"]})
    Comparisons(2 verdicts on 3 candidates by 1 judge; winners: sides (left: left; tie: tie))
    """

    left: Codes
    right: Codes
    verdict: NDArray[np.int8]
    worker: Codes
    candidates: Values
    workers: Values
    item: Codes | None = None
    group: Codes | None = None
    groups: Values = field(default_factory=lambda: np.empty(0, object))
    weight: Floats | None = None
    has_positions: bool = True
    columns: Mapping[str, str] = field(default_factory=dict)
    backend: str = "pyarrow"
    winners: str = ""

    @classmethod
    def from_frame(
        cls,
        frame: object,
        left: str | None = None,
        right: str | None = None,
        winner: str | None = None,
        worker: str | None = None,
        item: str | None = None,
        group: str | None = None,
        weight: str | None = None,
        candidate: str | None = None,
        score: str | None = None,
        rank: str | None = None,
    ) -> Comparisons:
        """Read comparisons from a table, which has one row per verdict; or per score.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or dict of columns
            Any table narwhals knows will do.
        left, right, winner : str, optional
            Column names. By default left and right, or model_a and model_b, and similar pairs; winner, label, verdict
            and similar names. A winner is the id of one of the two candidates, or a word for its place: left, right
            and tie; A, B and tie; model_a, model_b, tie and "tie (bothbad)"; 1, 2 and 0; 1, -1 and 0;
            >, < and =.
        worker, item : str, optional
            Columns of judges, and of what the candidates are compared on, such as prompts. By default they are found
            by the names that `Answers.from_frame` looks for. Both may be missing.
        group : str, optional
            Column of families of judges, such as the language model behind several prompts.
        weight : str, optional
            Column of how many verdicts a row stands for: any number above 0.
        candidate, score, rank : str, optional
            Columns of a table with one row for each judge, item and candidate. Higher scores are better, and so are
            lower ranks. All candidates that one judge saw for one item are compared with each other; the k (k - 1) / 2
            verdicts on k candidates count for k - 1. Such a table is recognised by a column candidate, model or system
            where there are no left and right.

        Returns
        -------
        Comparisons
        """
        names = {"left": left, "right": right, "winner": winner, "worker": worker, "item": item, "group": group}
        others = {"weight": weight, "candidate": candidate, "score": score, "rank": rank}
        return cls(**read_comparisons(open_frame(frame), {**names, **others}))

    @property
    def n_comparisons(self) -> int:
        """Number of verdicts."""
        return len(self.verdict)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.candidates)

    @property
    def n_workers(self) -> int:
        """Number of judges."""
        return len(self.workers)

    @property
    def has_workers(self) -> bool:
        """Whether it is known who gave which verdict."""
        return "worker" in self.columns

    @property
    def n_items(self) -> int:
        """Number of items, 0 if they are not known."""
        return 0 if self.item is None or not len(self.item) else int(self.item.max()) + 1

    @property
    def weights(self) -> Floats:
        """How many verdicts each row stands for."""
        return np.ones(self.n_comparisons) if self.weight is None else self.weight

    def keep(self, rows: Indices) -> Comparisons:
        """Some of the verdicts, with all candidates and judges."""
        names = ("left", "right", "verdict", "worker", "item", "group", "weight")
        arrays = {name: array for name in names if (array := getattr(self, name)) is not None}
        return replace(self, **{name: array[rows] for name, array in arrays.items()})

    def add_known(self, known: Comparisons) -> Comparisons:
        """The verdicts with known ones on the same candidates, as those of one judge more.

        A known verdict is an item of its own, and belongs to no family.
        """
        n, own = known.n_comparisons, np.arange(known.n_comparisons)
        weighed = self.weight is not None or known.weight is not None
        return replace(
            self,
            left=np.append(self.left, known.left),
            right=np.append(self.right, known.right),
            verdict=np.append(self.verdict, known.verdict),
            worker=np.append(self.worker, np.full(n, self.n_workers, np.int32)),
            item=None if self.item is None else np.append(self.item, self.n_items + own).astype(np.int32),
            group=None if self.group is None else np.append(self.group, len(self.groups) + own).astype(np.int32),
            weight=np.append(self.weights, known.weights) if weighed else None,
        )

    def __repr__(self) -> str:
        items = f" on {plural(self.n_items, 'item')}" if self.n_items else ""
        winners = f"; winners: {self.winners}" if self.winners else ""
        return (
            f"Comparisons({plural(self.n_comparisons, 'verdict')} on {self.n_candidates:,} candidates by "
            f"{plural(self.n_workers, 'judge')}{items}{winners})"
        )


def open_comparisons(source: object, **columns: Any) -> Comparisons:
    """Comparisons in any form: as they are, or read from a table or the files at a path."""
    if isinstance(source, (str, os.PathLike)):
        return Comparisons.from_frame(open_file(source), **columns)
    if not isinstance(source, Comparisons):
        return Comparisons.from_frame(source, **columns)
    if columns:
        raise ParameterError(f"Columns ({listing(columns)}) cannot be named for Comparisons: they are read already.")
    return source


def open_known(gold: object, candidates: Values) -> Comparisons:
    """Known verdicts, on some of these candidates."""
    if isinstance(gold, Mapping) and gold and all(isinstance(pair, tuple) for pair in gold):
        wrong = next((pair for pair in gold if len(pair) != 2), None)
        if wrong is not None:
            raise parameter_error("gold", "rank", "{(left, right): winner}", wrong)
        left, right = zip(*gold, strict=True)
        gold = {"left": list(left), "right": list(right), "winner": list(gold.values())}
    if not isinstance(gold, (str, os.PathLike, Comparisons)):
        gold = open_frame(gold, "the table of known verdicts")
    known = open_comparisons(gold)
    place = lookup(candidates, to_column(known.candidates)).astype(np.int32)
    if (place < 0).any():
        raise InputError(
            "Known verdicts are about candidates that were not compared: "
            f"{listing(known.candidates[place < 0].tolist())}.",
            "Check their spelling.",
        )
    nobody, judge = np.zeros(known.n_comparisons, np.int32), np.array([""], object)
    sides = place[known.left], place[known.right]
    return Comparisons(*sides, known.verdict, nobody, candidates, judge, weight=known.weight)
