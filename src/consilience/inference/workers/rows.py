r"""What all worker models share: an answer is a row, with one column for each class.

Evidence for class k of an item is the product over its answers of `factors[row, k]`; expected counts add the item's
posterior to the rows of its answers. A worker model only says which row an answer is, and how rows are estimated.

**Weights.** The likelihood of an answer of weight w is raised to the power c w, and it counts c w times. The scale c is
such that all powers sum to the effective number of answers, (sum w)^2 / sum w^2: weights say how much answers count
compared with each other, and do not make all of them less certain. (Without the scale, EM is tempered where all
weights are small, and classes merge.) An answer that is spread over labels is several answers, each with its part of
the weight. Near-copies that share one answer count by their share, another power. Where silence is an answer the scale
is 1, and what an answer lacks in weight is silence.

**Items left out.** An item's posterior q has helped to make the matrices that judge it; where workers gave few answers
it confirms itself. What is reported therefore judges each answer by its worker's matrix without this item: with
expected counts C, pseudo-counts a and an answer l of the power s, in the place of Gamma_m[k, l] there is

    (C_m[l, k] + a[l, k] - s q_k) / (C_m[., k] + a[., k] - s q_k)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Block
from ...kernels import LEAST_LEFT_OVER, LOG_IMPOSSIBLE, Floats, Integers, freeze, read_only, width_of
from ..cells import Cells
from ..distributions import weigh_logs

# Silence of all workers is computed at so many values of q, and interpolated, where so much of it was counted.
SILENCE_STEPS, STEEP = 65, 3.0
# Answers per class that the crowd's matrix is worth when a worker's own is judged.
SHRINKAGE = 20.0
# Added to vote shares that serve as priors: a class without a vote is not impossible.
ADDED_TO_VOTES = 1e-4
# Up to so many classes, rows are added and compared column by column, which is faster.
CLASSES_BY_COLUMN = 32


# The rows that one block met, and their expected counts.
RowCounts: TypeAlias = tuple[NDArray[np.int64], Floats]


class Weighing(Protocol):
    """A record that turns the answers of a block into evidence."""

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """The block's evidence up to a factor per item, and the sum of the logarithms of these factors."""


class AnyFactors(Weighing, Protocol):
    """What a worker model makes of its estimates for the E-step: what gives evidence, and counts of answers."""

    def expect_log(self, counts: Floats, mass: Floats) -> float:
        """The expected log probability of answers, from expected counts of rows and of classes."""

    def count_rows(self, block: Block, posterior: Floats) -> RowCounts:
        """The expected counts of a block."""


def count_answers(block: Block, posterior: Floats) -> RowCounts:
    """How often each row was met, by posterior probability of each class."""
    from ...kernels.answers import count_rows

    n_classes = posterior.shape[1]
    counts = np.zeros((len(block.rows), n_classes))
    count_rows(block.codes, block.offsets, block.amount, posterior, counts, width_of(n_classes, block.total_size))
    return block.rows, counts


@dataclass(frozen=True, eq=False)
class Factors:
    """What each row contributes to the evidence: exp(E[log probability]) of that kind of answer given each class."""

    logs: Floats  # (n_rows, K)
    base: Floats  # (K,): the logarithm of the factor that every item has, whatever the answers
    rows: Floats | None  # (n_rows, K): the factors themselves, unless some are too small to be multiplied

    count_rows = staticmethod(count_answers)

    def expect_log(self, counts: Floats, mass: Floats) -> float:
        """The expected log probability of answers: of rows that were counted, and of the silence of all."""
        return weigh_logs(counts, self.logs) + weigh_logs(mass, self.base)

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """The block's evidence up to a factor per item, and the sum of the logarithms of these factors."""
        from ...kernels.answers import add_log_rows, multiply_rows

        n_classes = len(self.base)
        evidence = np.zeros((block.n_items, n_classes))
        answers, width = (block.codes, block.offsets, block.gold), width_of(n_classes, block.total_size)
        in_logs = self.rows is None or len(block.amount) > 0
        table = self.logs if self.rows is None or in_logs else self.rows
        table = freeze(table if len(table) == len(block.rows) else table[block.rows])  # rows are distinct and ascending
        if in_logs:
            log_scale = add_log_rows(*answers, block.amount, table, self.base, evidence, width)
        else:
            shift = np.zeros(n_classes, np.int64)
            log_scale = multiply_rows(*answers, table, freeze(np.exp(self.base)), evidence, shift, width)
        for logs in (block.log_prior, block.anchor):
            if len(logs):
                log_scale += multiply_logs(evidence, logs, block.gold)
        return evidence, log_scale


def multiply_logs(evidence: Floats, logs: Floats, gold: NDArray[np.int32]) -> float:
    """Multiply evidence by exp(logs) in place, up to a factor per item; return the sum of their logarithms.

    Where the answers allow no class that `logs` allows, the answers are set aside, as where they allow no class at all.
    A known label stays.
    """
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


def vote(block: Block, votes: NDArray[np.int64], prior: Floats) -> Floats:
    """Each item's vote shares; `votes` says which class each answer of a matrix votes for, -1 for none.

    If `votes` are empty, the probabilities of soft votes are the votes. An item without a vote for any class gets the
    prior, an item with gold its gold.
    """
    from ...kernels.answers import add_votes

    if len(votes):
        shares = np.zeros((block.n_items, len(prior)))
        add_votes(block.codes, block.offsets, block.amount, freeze(votes[block.rows % len(votes)]), shares)
    else:
        soft = block.soft.astype(np.float64)
        shares = sum_answers(block, of_answers(block, soft))
    total = (
        shares.sum(axis=1) if shares.shape[1] > CLASSES_BY_COLUMN else reduce(add, shares.T)
    )  # faster for few classes
    shares /= np.where(total > 0, total, 1.0)[:, None]
    shares[total == 0] = prior
    if len(block.gold):
        known = np.flatnonzero(block.gold >= 0)
        shares[known] = 0.0
        shares[known, block.gold[known]] = 1.0
    return shares


class Counted(Protocol):
    """The counts of a worker model, from which items can be left out."""

    def log_evidence(self, block: Block, posterior: Floats) -> Floats:
        """The log evidence (n_items, K) of a block whose items have these posteriors."""


class LeftOut(NamedTuple):
    """A record that turns counts without each item into evidence.

    Items whose label is known are judged as if it were not, unless `use_gold`.
    """

    counted: Counted
    posterior: Floats  # of all items, which went into the counts
    use_gold: bool = True

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """The block's evidence up to a factor per item, and the sum of the logarithms of these factors.

        An anchor, which keeps classes to their meaning during a fit, is left out: it would count votes twice.
        """
        posterior = self.posterior[block.first_item : block.first_item + block.n_items]
        return exponentiate(block, self.counted.log_evidence(block, posterior), self.use_gold)


def exponentiate(block: Block, logs: Floats, use_gold: bool = True) -> tuple[Floats, float]:
    """Evidence from the logarithms of what answers say, as `Factors.weigh` does; `logs` are overwritten."""
    if len(block.log_prior):
        logs += block.log_prior
        lost = ~np.isfinite(logs).any(axis=1)  # answers that allow no class which the prior allows are set aside
        logs[lost] = block.log_prior[lost]
    if use_gold and len(block.gold):
        known = np.flatnonzero(block.gold >= 0)
        kept = np.maximum(logs[known, block.gold[known]], -1e300)
        logs[known] = -np.inf
        logs[known, block.gold[known]] = kept
    top = logs.max(axis=1) if logs.shape[1] > CLASSES_BY_COLUMN else reduce(np.maximum, logs.T)
    logs -= top[:, None]
    return np.exp(logs, out=logs), float(top.sum())


class CountedRows(NamedTuple):
    """Counts and pseudo-counts of rows, (R, A, K), and their sums over answers, (R, K).

    Where silence is an answer (`silent`), each worker who said nothing about an item has answered, too: with silence.
    """

    rows: Floats
    totals: Floats
    silent: bool = False
    weight: Floats | None = None  # (M,): how much the silence of each worker counts

    def log_evidence(self, block: Block, posterior: Floats) -> Floats:
        """The log evidence of a block: sums over the answers of each item of logarithms of quotients of counts."""
        from ...kernels.answers import add_left_out

        n_classes = posterior.shape[1]
        matrix, answer = np.divmod(block.rows, self.rows.shape[1])
        silence = np.ascontiguousarray(self.rows[:, -1])
        # An answer and the silence in whose place it is have the same total, which the silence of all has taken.
        below = silence[matrix] if self.silent else self.totals[matrix]
        counts = freeze(self.rows[matrix, answer]), freeze(below), read_only(np.ascontiguousarray(posterior))
        evidence = np.empty((block.n_items, n_classes))
        add_left_out(block.codes, block.offsets, block.amount, *counts, evidence, width_of(n_classes, block.total_size))
        if not self.silent:
            return evidence
        weight = np.ones(len(silence)) if self.weight is None else self.weight

        def log_silence(taken: Floats, workers: NDArray[np.int64], k: int) -> Floats:
            own = taken[:, None] * weight[workers]
            left, total = (np.maximum(counts[workers, k] - own, LEAST_LEFT_OVER) for counts in (silence, self.totals))
            return np.asarray((weight[workers] * (np.log(left) - np.log(total))).sum(axis=1))

        at = np.linspace(0.0, 1.0, SILENCE_STEPS)
        for k in range(n_classes):
            # Where little silence was counted, its logarithm is too steep to be interpolated.
            steep = silence[:, k] < STEEP
            evidence[:, k] += np.interp(posterior[:, k], at, log_silence(at, np.flatnonzero(~steep), k))
            for worker in np.flatnonzero(steep):
                evidence[:, k] += log_silence(posterior[:, k], np.array([worker]), k)
        return evidence


def of_answers(block: Block, values: Floats) -> Floats:
    """What is true of each answer of a block, (n_answers, K), times how much the answer counts."""
    return values * block.amount[:, None] if len(block.amount) else values


def shrink_rows(counts: Floats | Cells, worker: Integers, label: Integers) -> Floats:
    """The probabilities (n, K) of answers from expected counts (M, L, K) of all.

    Each worker's matrix is shrunk towards the crowd's, which is worth `SHRINKAGE` answers per class.
    """
    n_labels = counts.shape[1]
    if isinstance(counts, Cells):
        own = counts.sum_rows(counts.worker * n_labels + counts.label, worker.astype(np.int64) * n_labels + label)
        total = counts.sum_rows(counts.worker, worker)
        everything = np.bincount(counts.klass, counts.count, minlength=counts.shape[2])[: counts.shape[2]]
        crowd = (counts.sum_rows(counts.label, label) + 1.0 / n_labels) / (everything + 1.0)
    else:
        own, total = counts[worker, label], counts.sum(axis=1)[worker]
        pooled = counts.sum(axis=0) + 1.0 / n_labels
        crowd = (pooled / pooled.sum(axis=0))[label]
    return np.asarray((own + SHRINKAGE * crowd) / (total + SHRINKAGE))


def sum_answers(block: Block, logs: Floats) -> Floats:
    """Sums over the answers of each item of logs (n_answers, K)."""
    sums = np.zeros((block.n_items, logs.shape[1]))
    answered = np.flatnonzero(np.diff(block.offsets))
    if len(answered):
        sums[answered] = np.add.reduceat(logs, block.offsets[answered], axis=0)
    return sums
