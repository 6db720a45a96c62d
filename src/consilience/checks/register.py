"""The checks of a result. One that is listed here is warned of, printed, and shown by `--json` and by the report.

A check is a function of a `Subject` that yields a `Finding` for each thing it found. Its docstring says in one line
what that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from ..results.findings import Finding
from . import answers, drift, graph_check, labels, workers
from .subject import Subject


class Check(NamedTuple):
    """What looks at a result.

    Attributes
    ----------
    find : callable
        Takes a `Subject`, and yields a `Finding` for each thing it found. `fuse` warns of it, unless its `category` is
        None.
    place : str
        The section of the report that shows more: the id of one with a `link` in `consilience.reporting.SECTIONS`. The
        link comes after the remedies, so a finding without remedies has none.
    later : bool
        Whether it is done only for those who ask what was found. `fuse` then never warns of it, whatever the category.
    """

    find: Callable[[Subject], Iterable[Finding]]
    place: str = ""
    later: bool = False


# By the kind of what they find, the most serious first.
CHECKS: dict[str, Check] = {
    "silence": Check(answers.find_silence, later=True),
    "classes": Check(answers.find_unsaid),
    "columns": Check(answers.find_wrong_columns),
    "unchecked": Check(labels.find_unchecked),
    "noise": Check(labels.find_noise),
    "collapse": Check(labels.find_collapse),
    "no gain": Check(labels.find_no_gain),
    "graph": Check(graph_check.find_poor_graph, "network"),
    "copies": Check(workers.find_copies, "workers"),
    "workers": Check(workers.find_poor_workers, "workers", later=True),
    "drift": Check(drift.find_falls, "workers", later=True),
    "unsettled": Check(labels.find_unsettled, later=True),
    "unanswered": Check(answers.find_unanswered, "answers", later=True),
    "doubtful": Check(labels.find_doubtful, "review", later=True),
}


def run_checks(subject: Subject, later: bool) -> tuple[Finding, ...]:
    """Return what is found at once, or `later`."""
    return tuple(
        replace(finding, kind=kind, place=check.place)
        for kind, check in CHECKS.items()
        if check.later == later
        for finding in check.find(subject)
    )
