r"""Squared extrapolation (SQUAREM), which takes EM along its path in longer steps.

One iteration maps expected counts S to F(S), those of an E-step with the parameters that S calls for. From three in a
row, S0, S1 = F(S0) and S2 = F(S1), with r = S1 - S0 and v = (S2 - S1) - r, the loop leaps to

    S' = S0 + 2 a r + a^2 v,    a = |r| / |v|,    |x|^2 = sum_i x_i^2 / (1 + S2_i)

and goes on from there. With a = 1 this is S2. If EM moves along a line, and each step is the same fraction of the one
before, S' is the point where it would end. Squares are divided by about the variance of a count, or the largest counts
alone would decide.

Expected counts are extrapolated, not parameters. So this works for every structure and worker model, and sums that are
the same for all counts of the data (how often a worker said a label) are the same for S'. A count that would fall below
a small part of S2 is kept there, so that what is possible stays possible.

The loop compares the objective after a leap with the one before. If it fell, the leap is taken back: EM goes on as if
there had been none. That costs one E-step, and the next leap is shorter.

References
----------
Varadhan and Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM algorithm,
Scandinavian Journal of Statistics 35.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..kernels.types import Floats
from .statistics import Statistics

ACCELERATIONS = ("squarem",)  # or None
# Iterations from one leap to the next: from S0 to S1, from S1 to S2, and the leap.
CYCLE = 3
# How long a leap may be at first. The limit is doubled after a leap that reached it, and halved after one that was
# taken back.
FIRST_LENGTH, STRETCH = 4.0, 2.0
# The least part of a count that is left.
LEAST_LEFT = 1 / 16


@dataclass
class Path:
    """The expected counts since the last leap, and how long the next one may be."""

    recent: list[Statistics] = field(default_factory=list)
    longest: float = FIRST_LENGTH
    length: float = 0.0  # of the last leap

    def leap(self, statistics: Statistics) -> Statistics | None:
        """Go on to the statistics of one more iteration; return those of a leap when it is time for one."""
        self.recent.append(statistics)
        if len(self.recent) < CYCLE:
            return None
        first, second, third = self.recent
        self.recent = []
        self.length = min(measure_length(first, second, third), self.longest)
        return extrapolate(first, second, third, self.length) if self.length > 1 else None

    def confirm(self) -> None:
        """Take note that the objective has not fallen in the last leap."""
        if self.length == self.longest:
            self.longest *= STRETCH

    def retract(self) -> None:
        """Take note that the last leap was taken back."""
        self.longest = max(self.longest / STRETCH, 1.0)


def measure_length(first: Statistics, second: Statistics, third: Statistics) -> float:
    """Return a = |r| / |v|, without the limit that leaps have; 0 where nothing moves."""
    step = change = 0.0
    for s0, s1, s2 in zip_arrays(first, second, third):
        r = s1 - s0
        v = (s2 - s1) - r
        scale = 1.0 / (1.0 + s2)
        step += float(np.sum(r * r * scale))
        change += float(np.sum(v * v * scale))
    return float(np.sqrt(step / change)) if change > 0 else 0.0


def extrapolate(first: Statistics, second: Statistics, third: Statistics, length: float) -> Statistics:
    """Return S' = S0 + 2 a r + a^2 v with a = `length`, but of each count at least a small part of S2."""
    leapt = []
    for s0, s1, s2 in zip_arrays(first, second, third):
        r = s1 - s0
        leapt.append(np.maximum(s0 + 2 * length * r + length**2 * ((s2 - s1) - r), LEAST_LEFT * s2))
    named: dict[str, Any] = dict(zip(third.arrays(), leapt[1:], strict=True))
    return Statistics(leapt[0], replace(third.summary, **named))


def zip_arrays(*statistics: Statistics) -> Iterable[tuple[Floats, ...]]:
    """Return the arrays of several statistics that belong together: first the counts of answers."""
    return zip(*((each.counts, *each.arrays().values()) for each in statistics), strict=True)
