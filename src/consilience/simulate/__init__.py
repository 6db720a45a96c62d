"""Made-up crowds with a known truth: to try out plans, models and code.

`independent`, `sequences` and `network` share the workers' part and differ in how the truth is drawn. The defaults are
the generators of the paper: confusion matrices drawn uniformly from the simplex, of which floor(M / 2) + 1 (for
networks all) have the largest entry of each row on the diagonal. `ratings` draws raters on a scale, and `comparisons`
judges of pairs. `spans` makes texts in which workers mark entities, `tags` items to which they give sets of tags, and
`numbers` items to which they give marks.
"""

from __future__ import annotations

from .crowds import Oracle, Simulation, TrueParameters, independent, network, ratings, sequences
from .projects import (
    ComparisonSimulation,
    NumberSimulation,
    SpanSimulation,
    TagSimulation,
    comparisons,
    numbers,
    spans,
    tags,
)

__all__ = [
    "independent",
    "sequences",
    "network",
    "ratings",
    "spans",
    "tags",
    "comparisons",
    "numbers",
    "Simulation",
    "SpanSimulation",
    "TagSimulation",
    "ComparisonSimulation",
    "NumberSimulation",
    "TrueParameters",
    "Oracle",
]
