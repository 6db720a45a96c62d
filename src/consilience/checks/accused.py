"""Whom to look at first: workers who answer as if by chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import Python, Sentence, listing, plural
from ..results.findings import Finding
from ..results.source_kinds import KINDS
from ..results.worker_report import Suspected
from .subject import Subject


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
    r, gold = subject.sample.responses, subject.sample.gold
    left = np.bincount(r.item_of_answer()[~np.isin(r.worker, rows)], minlength=r.n_items) > 0
    n_lost = int(np.sum((np.diff(r.offsets) > 0) & ~left & (True if gold is None else gold.codes < 0)))
    if n_lost:
        problem += f" Without them {plural(n_lost, 'item')} {'loses' if n_lost == 1 else 'lose'} all answers."
    remedies = (kind.advice, Sentence("Leave them out with {block}.", block=Python("block=[...]", "FILE")))
    yield Finding(problem, remedies, category=None)
