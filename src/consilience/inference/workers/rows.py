r"""What all worker models share: an answer is a row, with one column for each class.

Evidence for class k of an item is the product over its answers of `factors[row, k]`; expected counts add the item's
posterior to the rows of its answers. A worker model only says which row an answer is, and how rows are estimated.

**Weights.** A weight w is the probability that an answer l was given with care. If it was not, l is one of the answers
of the crowd, of which a share rho_l says so, whatever the truth. So its factor for class k is

    f_k = w Gamma_m[k, l] + (1 - w) rho_l

and the posterior of class k is counted times w Gamma_m[k, l] / f_k, the probability of care given k. Care is one more
hidden variable of the answer: in variational Bayes it has its posterior beside that of the label, exp(E[log Gamma])
is in the place of Gamma, and the bound never falls. A worker may spread one answer over labels j, with weights that sum
to W <= 1: w_j is the probability that j was the answer, and with care,

    f_k = sum_j w_j Gamma_m[k, j] + (1 - W) sum_j w_j rho_j / W

Where silence is an answer, who did not take care is as good as silent: Gamma_m[k, silence] rho_l is in the place of
rho_l. An answer of a vanishing weight is then as one that was never given.

Where classes are summed out, an answer whose label j
has the probability p_j has itself the probability

    sum_j w_j p_j + (1 - W) sum_j w_j rho_j / W

with one term for each of the labels over which it is spread; mostly that is one.

**Items left out.** An item's posterior q has helped to make the matrices that judge it; where workers gave few answers
it confirms itself. What is reported therefore judges each answer by its worker's matrix without this item: with
expected counts C, pseudo-counts a and an answer l that counts c, in the place of Gamma_m[k, l] there is

    (C_m[l, k] + a[l, k] - c q_k) / (C_m[., k] + a[., k] - c q_k)

c is 1; less for near-copies that share one answer; and with a weight, that times the probability of care given k.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.blocks import Block
from ...kernels import Array, Floats, Rows, freeze, read_only
from .. import Distributions, log_of, weigh_logs

# Probabilities below this are as good as 0.
IMPOSSIBLE = 1e-300
LEAST = 1e-12  # of what is left of a count; see `consilience.kernels.answers`
# Silence of all workers is computed at so many values of q, and interpolated, where so much of it was counted.
N_STEPS, STEEP = 65, 3.0
NOTHING = freeze(np.empty(0))
# Added to vote shares that serve as priors: a class without a vote is not impossible.
LEAST_SHARE = 1e-4


class AnyFactors(Protocol):
    """What a worker model makes of its estimates for the E-step: what gives evidence, and counts of answers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and classes."""

    @property
    def n_own(self) -> int:
        """How many rows in turn are of one worker."""

    def expect_log(self, counts: Floats, mass: Floats) -> float:
        """Return the expected log probability of answers, from expected counts of rows and of classes."""

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """Return the block's evidence up to a factor per item, and the sum of the logarithms of these factors."""

    def count_rows(self, block: Block, posterior: Floats) -> RowCounts:
        """Return what is counted of a block, by posterior probability of each class."""

    def count_each(self, block: Block, posterior: Floats) -> Floats:
        """Return what each answer has contributed to the counts, (n_answers, K)."""

    def log_answers(self, block: Block, logs: Floats | None = None) -> Floats:
        """Return the log evidence of each answer that has a weight or is a soft vote, (n_answers, K)."""


class Factors(NamedTuple):
    """What each row contributes to the evidence: exp(E[log probability]) of that kind of answer given each class.

    `rows` holds logarithms where answers have weights or shares, or entries are too small to be multiplied.
    """

    rows: Floats  # (n_rows, K)
    base: Floats  # (K,): the factor every item has, whatever the answers
    in_logs: bool
    chance: Floats = NOTHING  # (L,): how often each label is said without care; rows are in the order of labels
    n_own: int = 1  # so many rows in turn are of one worker

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and classes."""
        return self.rows.shape

    def expect_log(self, counts: Floats, mass: Floats) -> float:
        """Return the expected log probability of answers.

        `counts` (n_rows, K) are expected counts of rows, `mass` (K,) those of the classes of items.
        """
        rows, base = (self.rows, self.base) if self.in_logs else (log_of(self.rows), log_of(self.base))
        return weigh_logs(counts, rows) + weigh_logs(mass, base)

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """Return the block's evidence up to a factor per item, and the sum of the logarithms of these factors."""
        from ...kernels.answers import add_log_rows, add_logs, multiply_rows

        n_classes = self.rows.shape[1]
        evidence = np.zeros((block.n_items, n_classes))
        rows = select_rows(self.rows, block.rows)
        answers = (block.codes, block.offsets, block.gold)
        if len(block.weight):
            logs = freeze(self.log_answers(block))
            log_scale = add_logs(logs, *answers[1:], self.base, evidence, block.width(n_classes))
        elif self.in_logs:
            log_scale = add_log_rows(*answers, block.share, rows, self.base, evidence, block.width(n_classes))
        else:
            log_scale = multiply_rows(*answers, rows, self.base, evidence, block.width(n_classes))
        for logs in (block.log_prior, block.anchor):
            if len(logs):
                log_scale += multiply_logs(evidence, logs, block.gold)
        return evidence, log_scale

    def count_rows(self, block: Block, posterior: Floats) -> RowCounts:
        """Return how often each row was met with care, by posterior probability of each class."""
        if not len(block.weight):
            return count_answers(block, posterior)
        counts = np.zeros((len(block.rows), posterior.shape[1]))
        self._count_with_care(block, posterior, block.codes, counts)
        return RowCounts(block.rows, counts)

    def count_each(self, block: Block, posterior: Floats) -> Floats:
        """Return what each answer with a weight has contributed to the counts, (n_answers, K)."""
        own = np.zeros((len(block.codes), posterior.shape[1]))
        self._count_with_care(block, posterior, np.arange(len(own), dtype=np.int32), own)
        return own

    def log_answers(self, block: Block, logs: Floats | None = None) -> Floats:
        """Return the log evidence of answers with weights, (n_answers, K); of a spread one, in the first of its rows.

        `logs` (n_answers, K) are logarithms of the factor of each answer, if these are not those of its row.
        """
        from ...kernels.answers import log_mixed_answers

        row = block.rows if logs is None else block.rows[block.codes]
        codes = block.codes if logs is None else np.arange(len(row), dtype=np.int32)
        logs = self.rows[block.rows] if logs is None else logs
        out = np.empty((len(block.codes), logs.shape[1]))
        given = freeze(codes), block.offsets, block.weight, block.share
        log_mixed_answers(*given, *self._of_rows(row, logs), out, np.empty(logs.shape[1]))
        return out

    def _count_with_care(self, block: Block, posterior: Floats, place: Rows, out: Floats) -> None:
        from ...kernels.answers import count_mixed_rows

        given = block.codes, block.offsets, block.weight, block.share, *self._of_rows(block.rows, self.rows[block.rows])
        count_mixed_rows(*given, read_only(posterior), freeze(place), out, np.empty(posterior.shape[1]))

    def _of_rows(self, row: NDArray[np.int64], logs: Floats) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
        """Return worker, chance, factor and its logarithm of each of some rows."""
        owner, chance = row // self.n_own, self.chance[row % len(self.chance)]
        return freeze(owner), freeze(chance), freeze(np.exp(logs)), freeze(np.ascontiguousarray(logs))


class RowCounts(NamedTuple):
    """Expected counts of the rows that one block met."""

    rows: NDArray[np.int64]
    counts: Floats


def make_factors(found: Distributions, weighted: bool, chance: Floats, n_own: int) -> Factors:
    """Return the factors of distributions of shape (R, L, K), rows in the order of (r, l); see `Factors`."""
    from ...kernels.answers import SMALLEST

    n_classes = found.weights.shape[2]
    logs = found.log_weights.reshape(-1, n_classes)
    # Exact zeros may be multiplied; what is positive and tiny would leave the range of doubles.
    finite = np.isfinite(logs)
    tiny = bool(np.any(finite & (logs < np.log(SMALLEST))))
    if weighted or tiny:
        return Factors(logs, freeze(np.zeros(n_classes)), True, chance, n_own)
    return Factors(found.weights.reshape(-1, n_classes), freeze(np.ones(n_classes)), False, chance, n_own)


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
    """Return how often each row was met, by posterior probability of each class, whatever the care."""
    from ...kernels.answers import count_rows

    n_classes = posterior.shape[1]
    counts = np.zeros((len(block.rows), n_classes))
    count_rows(block.codes, block.offsets, block.amount, posterior, counts, block.width(n_classes))
    return RowCounts(block.rows, counts)


def vote(block: Block, votes: NDArray[np.int64], prior: Floats) -> Floats:
    """Return each item's vote shares; `votes` says which class a row votes for, -1 for none.

    If `votes` are empty, the probabilities of soft votes are the votes. An item without a vote for any class gets the
    prior, an item with gold its gold.
    """
    from ...kernels.answers import add_votes

    if len(votes):
        shares = np.zeros((block.n_items, len(prior)))
        add_votes(block.codes, block.offsets, block.amount, select_rows(votes, block.rows), shares)
    else:
        soft = block.soft.astype(np.float64)
        shares = sum_answers(block, soft * block.amount[:, None] if len(block.amount) else soft)
    total = reduce(add, shares.T)  # faster than `sum` where there are few classes
    shares /= np.where(total > 0, total, 1.0)[:, None]
    shares[total == 0] = prior
    if len(block.gold):
        known = np.flatnonzero(block.gold >= 0)
        shares[known] = 0.0
        shares[known, block.gold[known]] = 1.0
    return shares


class Counted(Protocol):
    """What a worker model has counted, ready to leave items out."""

    def log_evidence(self, block: Block, posterior: Floats, factors: AnyFactors) -> Floats:
        """Return the log evidence (n_items, K) of a block whose items have these posteriors.

        `factors` are those by which the answers were counted.
        """


class LeftOut(NamedTuple):
    """What gives evidence from counts without each item.

    Items whose label is known are judged as if it were not, unless `use_gold`.
    """

    counted: Counted
    posterior: Floats  # of all items, which went into the counts
    factors: AnyFactors  # by which answers were counted
    use_gold: bool = True

    def weigh(self, block: Block) -> tuple[Floats, float]:
        """Return the block's evidence up to a factor per item, and the sum of the logarithms of these factors.

        An anchor, which keeps classes to their meaning during a fit, is left out: it would count votes twice.
        """
        posterior = self.posterior[block.first_item : block.first_item + block.n_items]
        return exponentiate(block, self.counted.log_evidence(block, posterior, self.factors), self.use_gold)


def exponentiate(block: Block, logs: Floats, use_gold: bool = True) -> tuple[Floats, float]:
    """Return evidence from the logarithms of what answers say, as `Factors.weigh` does; `logs` are overwritten."""
    if len(block.log_prior):
        logs += block.log_prior
        lost = ~np.isfinite(logs).any(axis=1)  # answers that allow no class which the prior allows are set aside
        logs[lost] = block.log_prior[lost]
    if use_gold and len(block.gold):
        known = np.flatnonzero(block.gold >= 0)
        kept = np.maximum(logs[known, block.gold[known]], -1e300)
        logs[known] = -np.inf
        logs[known, block.gold[known]] = kept
    top = reduce(np.maximum, logs.T)  # faster than `max` where there are few classes
    logs -= top[:, None]
    return np.exp(logs, out=logs), float(top.sum())


class CountedRows(NamedTuple):
    """Counts of rows, and of the groups of rows that are one distribution for each class: `size` rows in turn."""

    rows: Floats  # (n_rows, K): counts and pseudo-counts
    totals: Floats  # (n_rows / size, K): their sums
    size: int

    def log_evidence(self, block: Block, posterior: Floats, factors: AnyFactors) -> Floats:
        """Return the log evidence of a block."""
        rows, totals = self.rows[block.rows], self.totals[block.rows // self.size]
        if not len(block.weight):
            return divide_left_out(block, posterior, rows, totals)
        own = factors.count_each(block, posterior)
        logs = log_left(rows[block.codes] - own) - log_left(totals[block.codes] - own)
        return sum_answers(block, factors.log_answers(block, logs))


class CountedSilence(NamedTuple):
    """As `CountedRows`, where each worker who said nothing about an item has answered, too: with silence."""

    rows: Floats  # (M L, K)
    silence: Floats  # (M, K)
    totals: Floats  # (M, K), with those of silence
    weight: Floats | None = None  # (M,): how much the silence of each worker counts

    def log_evidence(self, block: Block, posterior: Floats, factors: AnyFactors) -> Floats:
        """Return the log evidence of a block: silence of all, and answers in its place."""
        rows, silence = self.rows[block.rows], self.silence[block.rows // (len(self.rows) // len(self.silence))]
        # An answer and the silence in whose place it is have the same total, which the silence of all has taken.
        if len(block.weight):
            evidence = self._replace_silence(block, posterior, factors, silence[block.codes])
        else:
            evidence = divide_left_out(block, posterior, rows, silence)
        at = np.linspace(0.0, 1.0, N_STEPS)
        for k in range(posterior.shape[1]):
            # Where little silence was counted, its logarithm is too steep to be interpolated.
            steep = self.silence[:, k] < STEEP
            shallow = self._log_silence(at, ~steep, k)
            evidence[:, k] += np.interp(posterior[:, k], at, shallow)
            for worker in np.flatnonzero(steep):
                evidence[:, k] += self._log_silence(posterior[:, k], np.array([worker]), k)
        return evidence

    def _replace_silence(self, block: Block, posterior: Floats, factors: AnyFactors, silence: Floats) -> Floats:
        """Return the log evidence of answers with weights, each in the place of silence that was counted so often.

        What was not said with care was counted as silence, and is taken away from that.
        """
        own, every = factors.count_each(block, posterior), own_shares(block, posterior)
        first = find_first_rows(block, factors.n_own)
        spoken = np.add.reduceat(own, first, axis=0) if len(first) else own
        left = silence - every + np.repeat(spoken, np.diff(np.append(first, len(own))), axis=0)
        logs = factors.log_answers(block, log_left(self.rows[block.rows[block.codes]] - own) - log_left(left))
        power = block.share[first, None] if len(block.share) else 1.0
        logs[first] += power * (log_left(left[first]) - log_left(silence[first] - every[first]))
        return sum_answers(block, logs)

    def _log_silence(self, taken: Floats, workers: NDArray[Any], k: int) -> Floats:
        """Return the log evidence for class k of the silence of some workers, for items with these posteriors of k."""
        weight = np.ones(len(self.silence)) if self.weight is None else self.weight
        own = taken[:, None] * weight[workers]
        silence, total = (counts[workers, k] - own for counts in (self.silence, self.totals))
        logs = np.log(np.maximum(silence, LEAST)) - np.log(np.maximum(total, LEAST))
        return np.asarray((weight[workers] * logs).sum(axis=1))


class CountedCoins(NamedTuple):
    """Right and wrong answers of workers who have one accuracy each."""

    coins: Floats  # (M, 2): counts and pseudo-counts
    names: Floats  # (L, K): 1 where a label names a class
    can_err: Floats  # (K,): 1 where there are right and wrong answers

    def log_evidence(self, block: Block, posterior: Floats, factors: AnyFactors) -> Floats:
        """Return the log evidence of a block."""
        n_labels, weighted = len(self.names), len(block.weight) > 0
        row = block.rows[block.codes]
        own = factors.count_each(block, posterior) if weighted else own_shares(block, posterior)
        coins, named = self.coins[row // n_labels], self.names[row % n_labels]
        right = (own * named * self.can_err).sum(axis=1)
        wrong = (own * (1 - named) * self.can_err).sum(axis=1)
        left = np.maximum(coins - np.stack([right, wrong], axis=1), LEAST)
        logs = np.log(left) - np.log(left.sum(axis=1, keepdims=True))
        even = np.log(max(n_labels - 1, 1))
        logs = np.where(named > 0, logs[:, :1], logs[:, 1:] - even) * self.can_err
        if weighted:
            return sum_answers(block, factors.log_answers(block, logs))
        return sum_answers(block, logs * block.share[:, None] if len(block.share) else logs)


def divide_left_out(block: Block, posterior: Floats, above: Floats, below: Floats) -> Floats:
    """Return sums over the answers of each item of the logarithms of quotients of counts without it.

    `above` and `below` are the counts of the block's rows, (n_rows, K).
    """
    from ...kernels.answers import add_left_out

    n_classes = posterior.shape[1]
    evidence = np.empty((block.n_items, n_classes))
    counts = freeze(above), freeze(below), read_only(np.ascontiguousarray(posterior))
    add_left_out(block.codes, block.offsets, block.share, *counts, evidence, block.width(n_classes))
    return evidence


def own_shares(block: Block, posterior: Floats) -> Floats:
    """Return what each answer of a block, given with care, has contributed to the counts, (n_answers, K)."""
    own = np.repeat(posterior, np.diff(block.offsets), axis=0)
    return own * block.share[:, None] if len(block.share) else own


def find_first_rows(block: Block, n_own: int) -> NDArray[np.int64]:
    """Return the first of the rows of each answer of a block: one that is spread over labels has several."""
    worker = block.rows[block.codes] // n_own
    item = np.repeat(np.arange(block.n_items), np.diff(block.offsets))
    return np.flatnonzero(np.append(True, (np.diff(worker) != 0) | (np.diff(item) != 0))[: len(worker)])


def log_left(counts: Floats) -> Floats:
    """Return the logarithms of what is left of counts."""
    return np.asarray(np.log(np.maximum(counts, LEAST)))


def sum_answers(block: Block, logs: Floats) -> Floats:
    """Return sums over the answers of each item of logs (n_answers, K)."""
    sums = np.zeros((block.n_items, logs.shape[1]))
    answered = np.flatnonzero(np.diff(block.offsets))
    if len(answered):
        sums[answered] = np.add.reduceat(logs, block.offsets[answered], axis=0)
    return sums


class Care(NamedTuple):
    """With what care some answers were given."""

    weight: Floats | None  # of each row; None if all were given with care
    first: NDArray[np.int64]  # the first of the rows of each answer
    other: Floats  # how probable each answer is without care, times the probability that it was given so

    @classmethod
    def of(cls, r: Answers, answer: NDArray[np.int64]) -> Care:
        """Return that of some rows, ascending. All rows of an answer that is spread over labels must be among them."""
        if r.weight is None:
            return WITH_CARE
        item, worker, weight = r.items_of(answer), r.worker[answer], r.weight[answer]
        first = np.flatnonzero(np.append(True, (np.diff(item) != 0) | (np.diff(worker) != 0))[: len(answer)])
        total, said = (
            np.add.reduceat(each, first) if len(first) else np.empty(0)
            for each in (weight, weight * r.label_shares()[r.label[answer]])
        )
        return cls(weight, first, np.maximum(1.0 - total, 0.0) / total * said)

    def log_chances(self, probability: Floats) -> Floats:
        """Return the log probability of each row; of an answer that is spread over labels, in the first of its rows.

        `probability` is that of each row if it was given with care.
        """
        if self.weight is None:
            return np.asarray(np.log(np.maximum(probability, IMPOSSIBLE)))
        logs = np.zeros(len(probability))
        if len(self.first):
            mixed = np.add.reduceat(self.weight * probability, self.first) + self.other
            logs[self.first] = np.log(np.maximum(mixed, IMPOSSIBLE))
        return logs


WITH_CARE = Care(None, np.empty(0, np.int64), np.empty(0))
