"""The committed results of the experiments, which the documentation shows."""

from __future__ import annotations

from functools import cache

from paper import find
from paper.__main__ import DOCS
from paper.experiment import Record, sure_mean_of
from paper.output import read_table


@cache
def records_of(name: str) -> list[Record]:
    """Return all committed records of an experiment."""
    return read_table(find(name), DOCS / f"{name}.csv")


def mean(name: str, score: str, **where: object) -> float:
    """Return the mean of a score over the committed records that have these values."""
    return sure_mean_of(records_of(name), score, **where)
