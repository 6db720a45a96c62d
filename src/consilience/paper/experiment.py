"""What an experiment is: jobs, and how their records are drawn and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In a page: what follows is about all records, and left out of the page of a part.
FINDINGS = "<!-- findings -->"

# One row of results: names of columns and their values. None is an empty field.
Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One piece of work: a function of plain settings. Given the same inputs it returns the same records.

    Attributes
    ----------
    run : function
        Of a module of this package; called with the settings as keywords.
    settings : dict
        Numbers and text.
    data : tuple of str
        The datasets that it reads.
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
    """Jobs and what is made of their records.

    Attributes
    ----------
    name, title : str
        What it is called, and what it is about.
    keys, scores : tuple of str
        Columns that say what was measured, and those that say what was found.
    jobs : sequence of Job
        What is run, in this order.
    draw : function
        From records to a figure.
    tell : function
        From records to Markdown; what follows `FINDINGS` is about all records. The figure is shown by whoever writes
        the page.
    tolerance : float
        How far a score may be from the expected one on another machine.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    scores: tuple[str, ...]
    jobs: Sequence[Job]
    draw: Callable[[list[Record]], Figure]
    tell: Callable[[list[Record]], str]
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
    """Return the mean of a score over the runs that have it, None if there is none."""
    values = [record[score] for record in pick(records, **wanted) if record.get(score) is not None]
    return float(np.mean(values)) if values else None


def spread_of(records: Iterable[Record], score: str, **wanted: Any) -> float | None:
    """Return the standard deviation of a score over runs, None if there is but one."""
    values = [record[score] for record in pick(records, **wanted) if record.get(score) is not None]
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def values_of(records: Iterable[Record], name: str) -> list[Any]:
    """Return the different values of a column, in order of appearance."""
    return list(dict.fromkeys(record[name] for record in records))
