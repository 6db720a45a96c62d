"""Every printed interval, on crowds of all kinds whose truth is known: what is printed without a caveat holds.

The kinds are those that users bring: nominal tables, pilots, labelling functions, one answer per item, copies, errors
that all share, noise, and spans. How many items, workers and classes there are, how good the workers are and what they
do is drawn at random.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import consilience as cs

KINDS = ("nominal", "pilot", "functions", "one answer", "copies", "shared errors", "noise", "spans")


class Drawn(NamedTuple):
    """Answers, the true label of each item (None for spans), and the true accuracy of each worker, where it is one."""

    source: Any
    truth: np.ndarray | None
    accuracy: np.ndarray | None = None


class Printed(NamedTuple):
    """An interval that was printed, and the figure that it is about."""

    what: str
    low: float
    high: float
    truth: float

    @property
    def holds(self) -> bool:
        """Whether the figure is within; ends are printed with three digits at most."""
        return self.low - 5e-4 <= self.truth <= self.high + 5e-4


def draw(kind: str, seed: int) -> Drawn:
    """Draw a crowd of some kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n_classes, seed = int(rng.integers(2, 7)), int(rng.integers(1 << 30))
    if kind == "spans":
        project = cs.simulate.spans(int(rng.integers(30, 80)), n_workers=int(rng.integers(3, 7)), seed=seed)
        return Drawn(project.spans, None)
    if kind == "functions":
        return draw_functions(rng)
    options: dict[str, Any] = {"accuracy": tuple(np.sort(rng.uniform(0.4, 0.97, 2))), "seed": seed}
    n_items, n_workers, per_item = int(rng.integers(200, 1500)), int(rng.integers(8, 60)), int(rng.integers(2, 8))
    if kind == "pilot":
        n_items, n_workers, per_item = int(rng.integers(20, 120)), int(rng.integers(3, 15)), 3
    elif kind == "noise":
        options["accuracy"] = 1 / n_classes
    elif kind == "one answer":
        per_item = 1
    elif kind == "shared errors":
        options["hard"] = rng.uniform(0.02, 0.25)
    elif kind == "copies":
        options["copycats"] = int(rng.integers(1, n_workers // 2))
    crowd = cs.simulate.independent(
        n_items,
        n_workers,
        n_classes,
        answers_per_item=min(per_item, n_workers - options.get("copycats", 0)),
        prior=rng.dirichlet(np.full(n_classes, 5.0)),
        **options,
    )
    confusion, prior = crowd.parameters.confusion, crowd.parameters.prior
    return Drawn(crowd.responses, crowd.truth, np.einsum("k,mkk->m", prior, confusion))


def draw_functions(rng: np.random.Generator) -> Drawn:
    """Draw labelling functions that say one label each, and are silent elsewhere, with silence as an answer or not."""
    n_items, n_functions = int(rng.integers(500, 2000)), int(rng.integers(6, 15))
    truth = (rng.random(n_items) < rng.uniform(0.15, 0.5)).astype(int)
    votes = np.full((n_items, n_functions), -1)
    for function in range(n_functions):
        label = int(rng.random() < 0.5) if function > 1 else function
        speaks = np.where(truth == label, rng.uniform(0.2, 0.6), rng.uniform(0.02, 0.1))
        votes[rng.random(n_items) < speaks, function] = label
    options: dict[str, Any] = {"abstain": "answer", "background": 0} if rng.random() < 0.5 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Drawn(cs.Answers.from_matrix(votes, **options), truth)


def list_printed(drawn: Drawn) -> Iterator[Printed]:
    """Yield the intervals that are printed without a caveat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fused = cs.fuse(drawn.source)
    comparison = fused.comparison_
    if drawn.truth is None:
        assert math.isnan(comparison.accuracy)  # no record of spans
        return
    if comparison is not None and not math.isnan(comparison.accuracy):
        accuracy = float((fused.labels_ == drawn.truth).mean())
        yield Printed("accuracy", comparison.accuracy_low, comparison.accuracy_high, accuracy)
    noise = any(finding.kind in ("noise", "collapse", "unchecked", "silence") for finding in fused.findings_)
    if drawn.accuracy is None or noise:
        return
    report = fused.worker_report()
    places = {worker: place for place, worker in enumerate(drawn.source.workers.tolist())}
    for row in report.to_pylist():
        if row["accuracy_low"] is not None and not math.isnan(row["accuracy_low"]):
            truth = drawn.accuracy[places[row["worker"]]]
            yield Printed("worker", row["accuracy_low"], row["accuracy_high"], float(truth))


@pytest.mark.parametrize("n_crowds", [40, pytest.param(200, marks=pytest.mark.robust)])
def test_printed_intervals_hold(n_crowds):
    printed, holding = Counter[str](), Counter[str]()
    for number in range(n_crowds):
        for each in list_printed(draw(KINDS[number % len(KINDS)], number)):
            printed[each.what] += 1
            holding[each.what] += each.holds
    assert printed["accuracy"] >= n_crowds // 4  # else nothing was tested
    assert holding.total() >= 0.9 * printed.total(), (printed, holding)
    if n_crowds >= 200:  # enough of each
        assert all(holding[what] >= 0.9 * n for what, n in printed.items()), (printed, holding)
