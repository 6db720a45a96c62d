"""Workers who are blocked: who they are, and answers without theirs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, InputError, listing, plural, warn
from ..kernels import Truths
from .columns import Column, Values, to_column, to_values
from .frames import open_frame
from .responses import Answers
from .tables import Table
from .vocabulary import encode_in_order_of_appearance, keep_values, lookup

NOBODY: Values = np.empty(0, object)


def read_blocked(block: Any) -> Values:
    """Return the ids of workers to leave out: a list of them, or a table with a column worker."""
    if block is None:
        return NOBODY
    if isinstance(block, str):
        raise InputError(f"One worker to block is a list, too: [{block!r}].")
    is_table = isinstance(block, Table) or hasattr(block, "columns") or isinstance(block, dict)
    if not is_table:
        return _unique(to_column(block if hasattr(block, "__array__") else list(block), "The list of blocked workers"))
    table = open_frame(block, "the blocked workers")
    return _unique(table.values(table.need("worker")))


def _unique(column: Column) -> Values:
    values = to_values(column)
    if isinstance(column, np.ndarray) and {type(name) for name in column} == {int, str}:
        values = values.astype(str)  # in which numbers and their text are the same
    return encode_in_order_of_appearance(to_column(values))[1]


def leave_out(r: Answers, blocked: Values) -> Answers:
    """Return the answers without those of blocked workers; items, labels and classes stay.

    A warning tells which ids are no workers, and how many items have no answer left.
    """
    found = lookup(r.workers, to_column(blocked))
    check_blocked(blocked, blocked[found >= 0].tolist(), r.workers)
    if len(np.unique(found[found >= 0])) == r.n_workers:
        raise nobody_left()
    left = drop_workers(r, found[found >= 0])
    lost = int(np.sum((np.diff(left.offsets) == 0) & (np.diff(r.offsets) > 0)))
    if lost:
        verb = "has" if lost == 1 else "have"
        problem = f"{plural(lost, 'item')} {verb} no answer but those of blocked workers."
        warn(DataWarning(problem, "Have others answer these items.", keyword="block"))
    return left


def check_blocked(blocked: Values, found: Sequence[object], workers: Values) -> None:
    """Warn of blocked ids that are no workers, with those that are spelled alike; none at all is an error.

    `found` are the ids, or their texts, of those that are.
    """
    known = set(map(str, found))
    unknown = [str(name) for name in blocked.tolist() if str(name) not in known]
    if not unknown:
        return
    texts = {str(name).strip().lower(): name for name in workers.tolist()}
    close = {name: difflib.get_close_matches(name.strip().lower(), texts, n=1) for name in unknown[:3]}
    remedies = [f"Did you mean {texts[near[0]]!r} by {name!r}?" for name, near in close.items() if near]
    verb = "has" if len(unknown) == 1 else "have"
    problem = f"{plural(len(unknown), 'worker')} to block {verb} no answers here: {listing(unknown)}."
    if len(unknown) == len(blocked):
        raise InputError(problem, *remedies, f"The workers are {listing(workers.tolist())}.", keyword="block")
    warn(DataWarning(problem, *remedies, keyword="block"))


def nobody_left() -> InputError:
    """Return the error that all workers are blocked; a worker report, which has them all, is no list of some."""
    remedy = "Of a worker report, keep only those to leave out, such as those who answer as if by chance."
    return InputError("All workers are blocked: nobody is left.", remedy, keyword="block")


def drop_workers(r: Answers, workers: NDArray[np.int64]) -> Answers:
    """Return the answers without some of the workers, which are given by index."""
    kept = np.ones(r.n_workers, bool)
    kept[workers] = False
    return keep_workers(r.keep(kept[r.worker]), kept)


def keep_workers(r: Answers, kept: Truths) -> Answers:
    """Return the same answers with only the workers that are marked True, who gave all of them."""
    worker, workers = keep_values(r.worker, r.workers, kept)
    weight = None if r.silence_weight is None else r.silence_weight[kept]
    return replace(r, worker=worker, workers=workers, silence_weight=weight)
