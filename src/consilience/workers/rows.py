"""What all worker models share: a table with one row per kind of answer and one column per class.

Evidence for class k of an item is the product over its answers of `table[row, k]`; expected counts add the item's
posterior to the rows of its answers. A worker model only says which row an answer is, and how rows are estimated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Block
from ..distributions import Estimate
from ..kernels.types import Floats, freeze


class RowTable(NamedTuple):
    """Factors of evidence: exp(E[log probability]) of each kind of answer given each class.

    `factors` holds logarithms where answers are weighted or entries are too small to be multiplied.
    """

    factors: Floats  # (n_rows, K)
    base: Floats  # (K,): the factor every item has, whatever the answers
    in_logs: bool


class RowCounts(NamedTuple):
    """Expected counts of the rows that one block met."""

    rows: NDArray[np.int64]
    counts: Floats


def make_table(estimate: Estimate, weighted: bool) -> RowTable:
    """Return the table of an estimate of shape (R, L, K), rows in the order of (r, l)."""
    from ..kernels.answers import SMALLEST

    n_classes = estimate.weights.shape[2]
    logs = estimate.log_weights.reshape(-1, n_classes)
    # Exact zeros may be multiplied; what is positive and tiny would leave the range of doubles.
    finite = np.isfinite(logs)
    tiny = bool(np.any(finite & (logs < np.log(SMALLEST))))
    if weighted or tiny:
        return RowTable(logs, freeze(np.zeros(n_classes)), in_logs=True)
    return RowTable(estimate.weights.reshape(-1, n_classes), freeze(np.ones(n_classes)), in_logs=False)


def weigh(block: Block, table: RowTable) -> tuple[Floats, float]:
    """Return the block's evidence, rows scaled at will, and the sum of the logarithms of what they were scaled by."""
    from ..kernels.answers import add_log_rows, multiply_rows
    from ..kernels.compile import width_of

    n_classes = table.factors.shape[1]
    evidence = np.empty((block.n_items, n_classes))
    factors = select_rows(table.factors, block.rows)
    width = width_of(n_classes)
    if table.in_logs:
        log_scale = add_log_rows(
            block.codes, block.offsets, block.gold, block.weight, factors, table.base, evidence, width
        )
    else:
        log_scale = multiply_rows(block.codes, block.offsets, block.gold, factors, table.base, evidence, width)
    return evidence, log_scale


def select_rows(table: Floats, rows: NDArray[np.int64]) -> Floats:
    """Return the given rows, which are distinct and rising: all of them, then, if there are as many."""
    return freeze(table if len(rows) == len(table) else table[rows])


def count(block: Block, posterior: Floats) -> RowCounts:
    """Return how often each row was met, by posterior probability of each class."""
    from ..kernels.answers import count_rows
    from ..kernels.compile import width_of

    n_classes = posterior.shape[1]
    counts = np.zeros((len(block.rows), n_classes))
    count_rows(block.codes, block.offsets, block.weight, posterior, counts, width_of(n_classes))
    return RowCounts(block.rows, counts)


def vote(block: Block, votes: Floats, prior: Floats) -> Floats:
    """Return each item's vote shares; `votes` says which class a row votes for.

    An item without a vote for any class gets the prior, an item with gold its gold.
    """
    from ..kernels.answers import add_rows
    from ..kernels.compile import width_of

    n_classes = votes.shape[1]
    shares = np.empty((block.n_items, n_classes))
    add_rows(block.codes, block.offsets, block.weight, select_rows(votes, block.rows), shares, width_of(n_classes))
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), prior)
    if len(block.gold):
        known = np.flatnonzero(block.gold >= 0)
        shares[known] = 0.0
        shares[known, block.gold[known]] = 1.0
    return shares
