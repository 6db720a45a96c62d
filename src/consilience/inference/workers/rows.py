"""What all worker models share: an answer is a row, with one column for each class.

Evidence for class k of an item is the product over its answers of `factors[row, k]`; expected counts add the item's
posterior to the rows of its answers. A worker model only says which row an answer is, and how rows are estimated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...answers.blocks import Block
from ...kernels.types import Array, Floats, freeze
from ..distributions import Distributions, log_of, weigh_logs

# Added to vote shares that serve as priors: a class without a vote is not impossible.
LEAST_SHARE = 1e-4


class Factors(NamedTuple):
    """What each row contributes to the evidence: exp(E[log probability]) of that kind of answer given each class.

    `rows` holds logarithms where answers are weighted or entries are too small to be multiplied.
    """

    rows: Floats  # (n_rows, K)
    base: Floats  # (K,): the factor every item has, whatever the answers
    in_logs: bool

    def expect_log(self, counts: Floats, mass: Floats) -> float:
        """Return the expected log probability of answers.

        `counts` (n_rows, K) are expected counts of rows, `mass` (K,) those of the classes of items.
        """
        rows, base = (self.rows, self.base) if self.in_logs else (log_of(self.rows), log_of(self.base))
        return weigh_logs(counts, rows) + weigh_logs(mass, base)


class RowCounts(NamedTuple):
    """Expected counts of the rows that one block met."""

    rows: NDArray[np.int64]
    counts: Floats


def make_factors(found: Distributions, weighted: bool) -> Factors:
    """Return the factors of distributions of shape (R, L, K), rows in the order of (r, l)."""
    from ...kernels.answers import SMALLEST

    n_classes = found.weights.shape[2]
    logs = found.log_weights.reshape(-1, n_classes)
    # Exact zeros may be multiplied; what is positive and tiny would leave the range of doubles.
    finite = np.isfinite(logs)
    tiny = bool(np.any(finite & (logs < np.log(SMALLEST))))
    if weighted or tiny:
        return Factors(logs, freeze(np.zeros(n_classes)), in_logs=True)
    return Factors(found.weights.reshape(-1, n_classes), freeze(np.ones(n_classes)), in_logs=False)


def weigh(block: Block, factors: Factors) -> tuple[Floats, float]:
    """Return the block's evidence up to a factor per item, and the sum of the logarithms of these factors."""
    from ...kernels.answers import add_log_rows, multiply_rows

    n_classes = factors.rows.shape[1]
    evidence = np.zeros((block.n_items, n_classes))
    rows = select_rows(factors.rows, block.rows)
    answers = (block.codes, block.offsets, block.gold)
    if factors.in_logs:
        log_scale = add_log_rows(*answers, block.weight, rows, factors.base, evidence, block.width(n_classes))
    else:
        log_scale = multiply_rows(*answers, rows, factors.base, evidence, block.width(n_classes))
    for logs in (block.log_prior, block.anchor):
        if len(logs):
            log_scale += multiply_logs(evidence, logs, block.gold)
    return evidence, log_scale


def multiply_logs(evidence: Floats, logs: Floats, gold: NDArray[np.int32]) -> float:
    """Multiply evidence by exp(logs) in place, up to a factor per item; return the sum of their logarithms.

    Where the answers allow no class that `logs` allows, the answers are set aside, as where they allow no class at all.
    A known label stays.
    """
    from ...kernels.answers import LOG_IMPOSSIBLE

    top = logs.max(axis=1, keepdims=True)
    factor = np.exp(logs - top)
    product = evidence * factor
    lost = np.flatnonzero(~(product > 0).any(axis=1))
    product[lost] = factor[lost]
    if len(gold):
        known = lost[gold[lost] >= 0]
        product[known] = evidence[known]
    evidence[:] = product
    return float(top.sum()) + LOG_IMPOSSIBLE * len(lost)


def anchor(block: Block, votes: NDArray[np.int64], prior: Floats) -> Block:
    """Return the block with each item's vote shares as its anchor.

    Where silence is an answer, EM may otherwise find another meaning of the classes, under which silence is the most
    telling answer. `votes` and `prior` are as for `vote`.
    """
    return replace(block, anchor=freeze(np.log(vote(block, votes, prior) + LEAST_SHARE)))


def select_rows(values: Array, rows: NDArray[np.int64]) -> Array:
    """Return the given rows, which are distinct and ascending; without a copy if that is all of them."""
    return freeze(values if len(rows) == len(values) else cast(Array, values[rows]))


def count_answers(block: Block, posterior: Floats) -> RowCounts:
    """Return how often each row was met, by posterior probability of each class."""
    from ...kernels.answers import count_rows

    n_classes = posterior.shape[1]
    counts = np.zeros((len(block.rows), n_classes))
    count_rows(block.codes, block.offsets, block.weight, posterior, counts, block.width(n_classes))
    return RowCounts(block.rows, counts)


def vote(block: Block, votes: NDArray[np.int64], prior: Floats) -> Floats:
    """Return each item's vote shares; `votes` says which class a row votes for, -1 for none.

    An item without a vote for any class gets the prior, an item with gold its gold.
    """
    from ...kernels.answers import add_votes

    shares = np.zeros((block.n_items, len(prior)))
    add_votes(block.codes, block.offsets, block.weight, select_rows(votes, block.rows), shares)
    total = reduce(add, shares.T)  # faster than `sum` where there are few classes
    shares /= np.where(total > 0, total, 1.0)[:, None]
    shares[total == 0] = prior
    if len(block.gold):
        known = np.flatnonzero(block.gold >= 0)
        shares[known] = 0.0
        shares[known, block.gold[known]] = 1.0
    return shares
