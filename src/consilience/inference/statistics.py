"""What an E-step adds up to, and the M-step makes parameters of."""

from __future__ import annotations

from typing import NamedTuple

from ..kernels.types import Floats
from .structures.base import Summary

# A smaller share of a count is rounding error.
ROUNDING = 1e-12


class Statistics(NamedTuple):
    """Everything one pass over the data adds up to."""

    counts: Floats  # (n_rows, K)
    summary: Summary


def add_statistics(first: Statistics, second: Statistics) -> Statistics:
    """Return the statistics of the items of both."""
    return Statistics(first.counts + second.counts, first.summary + second.summary)


def exchange(whole: Statistics, before: Statistics, after: Statistics) -> Statistics:
    """Return the statistics of all items, with those of some of them as they are `after` instead of `before`."""
    counts = whole.counts - before.counts + after.counts
    # What is left of a count that was taken away is rounding error.
    counts[counts < ROUNDING * whole.counts] = 0.0
    return Statistics(counts, whole.summary - before.summary + after.summary)
