"""Whom to look at first: workers who answer as if by chance, and what would change without them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.blocked import drop_workers
from ..answers.graph import Graph
from ..engines import open_engine
from ..errors import Python, Sentence, listing, plural, quietly
from ..inference.recipes import Recipe
from ..inference.sources import InMemory
from ..results.findings import Finding
from ..results.fitting import Asked, fit_source
from ..results.result import Later, Result
from ..results.source_kinds import KINDS
from ..results.worker_report import Suspected
from .comparison import settle
from .subject import Subject

# With more answers, a second fit would take too long.
MOST_ANSWERS = 1_000_000


class Apart(NamedTuple):
    """What a fit without some workers finds."""

    n_changed: int  # labels that are others
    n_lost: int  # items that have no answers left, nor a known label
    expected_accuracy: float


def find_accused(subject: Subject) -> Iterator[Finding]:
    """Workers answer as if by chance."""
    found = subject.fusion
    suspected = Suspected.of(found)
    if suspected is None or not suspected.accused.any() or not subject.makes_sense:
        return
    rows = np.flatnonzero(suspected.accused)
    rows = rows[np.argsort(-found.n_answers[rows], kind="stable")]
    n_answers, kind = int(found.n_answers[rows].sum()), KINDS[found.source_kind]
    names = listing(found.names.workers[rows].tolist(), where="the worker report has all")
    verb = "answers" if len(rows) == 1 else "answer"
    problem = (
        f"{plural(len(rows), kind.noun)} {verb} as if by chance: {names}. They gave "
        f"{n_answers:,} of {plural(int(found.n_answers.sum()), 'answer')}."
    )
    again = found.apart or Later(fit_apart, subject.recipe, found, subject.sample, subject.graph)
    apart = again.value
    if apart is not None:
        problem += f" {describe_apart(found, apart)}"
    remedies = (kind.advice, Sentence("Leave them out with {block}.", block=Python("block=[...]", "FILE")))
    yield Finding(problem, remedies, category=None)


def describe_apart(found: Result, apart: Apart) -> str:
    """Return in words what changes without some workers."""
    count = "no label" if not apart.n_changed else plural(apart.n_changed, "label")
    happens = [f"{count} {'change' if apart.n_changed > 1 else 'changes'}"]
    if apart.n_lost:
        happens.append(f"{plural(apart.n_lost, 'item')} {'loses' if apart.n_lost == 1 else 'lose'} all answers")
    expected = math.nan if found.comparison is None else found.comparison.expected_accuracy
    before, after = f"{expected:.1%}", f"{apart.expected_accuracy:.1%}"
    if not math.isnan(expected) and not math.isnan(apart.expected_accuracy) and before != after:
        happens.append(f"the expected accuracy goes from {before} to {after}")
    *first, last = happens
    return f"Without them {', '.join(first)}{', and ' if first else ''}{last}."


def fit_apart(recipe: Recipe, found: Result, source: InMemory, graph: Graph | None) -> Apart | None:
    """Fit again without those who are accused; None if nobody is, or it cannot be done, or would take long."""
    suspected, r = Suspected.of(found), source.responses
    if suspected is None or not suspected.accused.any() or not found.in_memory or r.n_responses > MOST_ANSWERS:
        return None
    if found.guidance is not None or found.given.has_priors:
        return None  # they are not kept
    rows = np.flatnonzero(suspected.accused)
    left = InMemory(drop_workers(r, rows), source.gold, task=found.task)
    asked = Asked(renumber_groups(found.copies, rows, r.n_workers), found.copies_count_once)
    with quietly(), open_engine(None) as engine:
        again = fit_source(settle(recipe, found), left, graph, engine, asked)
    answered = np.diff(left.responses.offsets) > 0
    lost = (np.diff(r.offsets) > 0) & ~answered & (True if source.gold is None else source.gold.codes < 0)
    n_changed = int(np.sum((again.labels.codes != found.labels.codes)[answered]))
    return Apart(n_changed, int(lost.sum()), again.labels.mean_confidence)


def renumber_groups(groups: list[list[int]], left_out: NDArray[np.int64], n_workers: int) -> list[list[int]]:
    """Return groups of workers without some of them, by the indices of those who are left.

    >>> renumber_groups([[0, 3], [2, 4, 5]], np.array([1, 3]), 6)
    [[1, 2, 3]]
    """
    number = np.full(n_workers, -1)
    kept = np.setdiff1d(np.arange(n_workers), left_out)
    number[kept] = np.arange(len(kept))
    renumbered = [[int(number[member]) for member in group if number[member] >= 0] for group in groups]
    return [group for group in renumbered if len(group) > 1]
