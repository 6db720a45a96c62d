"""What an experiment is: jobs, and how their records are drawn and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# One row of results: names of columns and their values. None is an empty field.
Record = dict[str, Any]

# Scores of simulated data that are closer than this are called the same.
SAME = 0.001


@dataclass(frozen=True)
class Job:
    """One piece of work: a function of plain settings. The same settings and data always give the same records.

    Attributes
    ----------
    run : function
        A function of a module of this package. It is called with the settings as keyword arguments.
    settings : dict
        Numbers and text.
    data : tuple of str
        Names of the datasets that it reads.
    quick : bool
        Whether it is part of a quick run.
    """

    run: Callable[..., list[Record]]
    settings: dict[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    quick: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class Experiment:
    """Jobs, and what is made of their records.

    Attributes
    ----------
    name, title : str
        The name on the command line, and the caption of the figure.
    keys : mapping of str to type
        Columns that say what was measured, and the type of their values.
    scores : tuple of str
        Columns that hold the numbers measured.
    jobs : sequence of Job
        What is run, in this order.
    draw : function
        Makes a figure from records.
    tell : function
        Makes tables in Markdown from records. It must work for a part of the records too.
    tell_findings : function
        Says in Markdown what all records together show. Every number and every comparison in it is computed from the
        records, so that it stays true when they change.
    tolerance : float
        How far a score may be from the expected one on another machine.
    """

    name: str
    title: str
    keys: Mapping[str, type]
    scores: tuple[str, ...]
    jobs: Sequence[Job]
    draw: Callable[[list[Record]], Figure]
    tell: Callable[[list[Record]], str]
    tell_findings: Callable[[list[Record]], str]
    tolerance: float

    def choose(self, quick: bool) -> list[Job]:
        """Return the jobs of a full or a quick run."""
        return [job for job in self.jobs if job.quick or not quick]


def pick(records: Iterable[Record], **wanted: Any) -> list[Record]:
    """Return the records that have these values.

    >>> pick([{"method": "MV", "f": 0.7}, {"method": "DS", "f": 0.8}], method="DS")
    [{'method': 'DS', 'f': 0.8}]
    """
    return [record for record in records if all(record.get(name) == value for name, value in wanted.items())]


def mean_of(records: Iterable[Record], score: str, **wanted: Any) -> float | None:
    """Return the mean of a score over the records that have it, None if there are none."""
    values = [record[score] for record in pick(records, **wanted) if record.get(score) is not None]
    return float(np.mean(values)) if values else None


def sure_mean_of(records: Iterable[Record], score: str, **wanted: Any) -> float:
    """Return the mean of a score that must be there, as it is in all records of an experiment."""
    mean = mean_of(records, score, **wanted)
    assert mean is not None, f"no record has {score} with {wanted}"
    return mean


def spread_of(records: Iterable[Record], score: str, **wanted: Any) -> float | None:
    """Return the standard deviation of a score over runs, None if there is only one."""
    values = [record[score] for record in pick(records, **wanted) if record.get(score) is not None]
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def values_of(records: Iterable[Record], name: str) -> list[Any]:
    """Return the distinct values of a column, in order of appearance."""
    return list(dict.fromkeys(record[name] for record in records))


def rises(values: Sequence[float]) -> bool:
    """Tell whether no value is below the one before it."""
    return all(after >= before for before, after in pairwise(values))


def falls(values: Sequence[float]) -> bool:
    """Tell whether no value is above the one before it."""
    return rises([-value for value in values])
