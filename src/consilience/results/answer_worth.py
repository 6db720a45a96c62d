r"""What the answers of each worker are worth: how many answers with a known truth would tell as much.

Let :math:`p_i` be the posterior probability that answer i of the worker is right. The reported accuracy is
:math:`x = \frac{1}{n} \sum_i p_i`. Answers whose truth is in doubt tell less. The share of information that is left is

.. math:: f = \frac{\frac{1}{n} \sum_i p_i^2 - x^2}{x (1 - x)}

which is 1 if every truth is certain. (:math:`1 - f` is the derivative of the EM map of x. Above and below the line,
:math:`1 / 4 n` is added, for workers who hardly err.) So the n answers are worth :math:`n f / d` answers with a known
truth; answers to items that nobody else answered (in sequences: in sequences that nobody else answered) are worth
nothing, unless there is a graph or the label is known. d is the design effect: 1 for independent items; for sequences
the variance of sums over (worker, sequence) pairs, relative to that of independent votes, pooled over workers.

**Weights.** A weight is the probability that an answer was given with care, and the reported accuracy is that of
answers given with care. With :math:`c_i` the posterior probability of care, and :math:`r_i` that of care and of being
right (both summed over the labels that an answer is spread over), it is :math:`x = \sum_i r_i / \sum_i c_i`. What the
answers tell of it is :math:`\sum_i (r_i - x c_i)^2 / (x (1 - x))^2`; if care and truth were known, it would be
:math:`n / x (1 - x)` with :math:`n = \sum_i c_i`. So

.. math:: f = \frac{\sum_i (r_i - x c_i)^2}{n x (1 - x)}

which is the same as above where all :math:`c_i` are 1. Near-copies that share one answer count by their share.

**Ends of an interval.** With x a share that n answers or items with a known truth speak for, the ends are the 2.5 % and
97.5 % quantiles of

.. math:: \operatorname{Beta}(x n + \tfrac{1}{2}, (1 - x) n + \tfrac{1}{2})

For a share of N whole items with mean x and variance v they are those of
:math:`\operatorname{Beta}(x n, (1 - x) n)` with :math:`n = x (1 - x) / v`, rounded outwards to whole items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.blocks import Block
from ..answers.columns import MANY
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..inference import ITEMS_AT_ONCE, sum_by
from ..inference.learned import as_used
from ..inference.sources import Source
from ..inference.workers.base import WorkerModel
from ..inference.workers.rows import AnyFactors, find_first_rows
from ..kernels import Floats, freeze, read_only

# Two-sided 95 %.
TAILS = (0.025, 0.975)
NORMAL = 1.959963984540054
# The least share of information that is believed to be left.
LEAST_LEFT = 0.01
# Why nothing is told by probabilities, if nothing checks the answers.
UNCHECKED = "hardly any item has answers of two workers, so nothing checks them"
# A design effect of 1 counts as if so many units had spoken for it.
FEW_UNITS = 10
# Answers count as checked if others check this share of the items, or so many labels are known.
LEAST_CHECKED, ENOUGH_KNOWN = 0.1, 10


def find_judged(r: Answers, gold: Gold | None, graph: Graph | None) -> NDArray[np.bool_]:
    """Tell to which items an answer is judged by something else: another worker's, neighbours, or a known label.

    A worker who is alone with an item, or with a sequence, is always right by the model, and this tells nothing.
    """
    if graph is not None:
        return np.ones(r.n_items, bool)
    several = r.have_several_workers()
    judged = several if r.sequences is None else several[r.sequences.of_items()]
    return judged if gold is None else judged | (gold.codes >= 0)


def are_checked(r: Answers, n_known: int, is_linked: bool) -> bool:
    """Tell whether anything checks the answers: others about the same item, or sequence; known labels, or silence.

    Where items are linked, or more is known of them than their answers, this checks them too. A few items that others
    answered as well, or whose label is known, say nothing about a crowd of single answers.
    """
    n_answered = int(np.count_nonzero(np.diff(r.offsets)))
    if r.silence_counts or is_linked or n_known >= max(min(ENOUGH_KNOWN, LEAST_CHECKED * n_answered), 1):
        return True
    return is_share_checked(int(np.count_nonzero(find_judged(r, None, None))), n_answered)


def is_share_checked(n_checked: float, n_all: float) -> bool:
    """Tell whether enough of all items, or answers, are checked to say something of the others.

    >>> is_share_checked(1, 300), is_share_checked(30, 300), is_share_checked(0, 0)
    (False, True, False)
    """
    return n_checked > 0 and n_checked >= LEAST_CHECKED * n_all


class Careful(NamedTuple):
    """How probable it is that answers with weights were given with care, (n_answers,) each.

    What is true of an answer that is spread over labels is in the first of its rows, and its other rows have zeros.
    """

    care: Floats
    right: Floats  # with care, and right
    amount: Floats  # how much each answer counts otherwise: as one of near-copies

    @classmethod
    def of_block(cls, block: Block, factors: AnyFactors, posterior: Floats, klass: NDArray[np.int64]) -> Careful:
        """Return that of the answers of a block, from the posteriors of its items and what answers are judged by.

        `klass` is the class that each answer names, -1 for none.
        """
        own, first = factors.count_each(block, posterior), find_first_rows(block, factors.n_own)
        amount = block.share if len(block.share) else np.ones(len(own))
        found = np.zeros((2, len(own)))
        if len(first):
            right = np.where(klass >= 0, own[np.arange(len(own)), klass], 0.0)
            found[:, first] = np.add.reduceat(np.stack([own.sum(axis=1), right]) / amount, first, axis=1)
        return cls(found[0], found[1], amount)

    def sum_chances(self, worker: NDArray[np.int32] | NDArray[np.int64], accuracy: Floats) -> Floats:
        r"""Return the sums over answers of each worker that the function `sum_chances` does, (3, M).

        They are of c, of r and, since x is not yet known where sums over parts are taken, of

        .. math:: (r - a c)^2 + 2 a r - a^2 c = r^2 + a (1 - c) (2 r - a c)

        with a near x: `accuracy` (M,). Where c = 1 this is the square of r; else the error is of second order in a - x.
        """
        near = accuracy[worker]
        squares = self.right**2 + near * (1 - self.care) * (2 * self.right - near * self.care)
        return np.stack([sum_by(worker, self.amount * v, len(accuracy)) for v in (self.care, self.right, squares)])


def find_careful(source: Source, workers: WorkerModel, log_weights: Floats, posterior: Floats) -> Careful | None:
    """Return how probable it is that each answer was given with care; None if there are no weights.

    `log_weights` are those of the last E-step, and `posterior` (N, K) is what it returned.
    """
    r = source.responses
    if r.weight is None:
        return None
    factors, parts = workers.factors(as_used(log_weights), True), []
    for block in source.lay_out(workers, anchored=False):
        first, last = block.first_item, block.first_item + block.n_items
        klass = r.class_of_label[r.label[r.offsets[first] : r.offsets[last]]]
        parts.append(Careful.of_block(block, factors, posterior[first:last], klass))
    return Careful(*map(np.concatenate, zip(*parts, strict=True))) if parts else None


def find_accuracy(counts: Floats, class_of_label: NDArray[np.int64]) -> Floats:
    """Return the share of right ones among expected counts of answers (M, L, K); 0 of workers without answers."""
    named = np.flatnonzero(class_of_label >= 0)
    right = counts[:, named, class_of_label[named]].sum(axis=1)
    return np.asarray(right / np.maximum(counts.sum(axis=(1, 2)), 1e-300))


class Measured(NamedTuple):
    """Each worker's number of answers, accuracy, variance of an answer and share of information left, (M,) each."""

    total: Floats
    accuracy: Floats
    spread: Floats
    left: Floats


def measure_answers(chances: Floats) -> Measured:
    """Measure the answers of each worker by the sums that `sum_chances` returns."""
    total, right, squares = chances
    scale = np.maximum(total, 1e-300)
    accuracy = right / scale
    spread = np.maximum(squares / scale - accuracy**2, 0.0)
    # Of one who hardly errs it cannot be told how much is left: what is expected to be wrong is less than an answer.
    sure = 0.25 / scale
    left = np.clip((spread + sure) / (accuracy * (1 - accuracy) + sure), LEAST_LEFT, 1.0)
    return Measured(total, accuracy, spread, left)


def find_worth(chances: Floats, judged: Floats) -> Floats:
    """Return what the answers of each worker are worth, (M,)."""
    total, _, _, left = measure_answers(chances)
    by_others, every = judged
    known = total if np.array_equal(by_others, every) else total * by_others / np.maximum(every, 1e-300)
    return np.asarray(known * left)


def sum_judged(r: Answers, judged: NDArray[np.bool_], careful: Careful | None = None) -> Floats:
    """Return each worker's number of answers to items that are judged by something else, and of all, (2, M).

    Answers with weights count by the probability of care.
    """
    sums = np.zeros((2, r.n_workers))
    for first in range(0, r.n_items, ITEMS_AT_ONCE):
        last = min(first + ITEMS_AT_ONCE, r.n_items)
        part = slice(r.offsets[first], r.offsets[last])
        counts = np.repeat(judged[first:last], np.diff(r.offsets[first : last + 1]))
        weight = r.weights(part) if careful is None else careful.amount[part] * careful.care[part]
        worker = r.worker[part]
        sums += [sum_by(worker, each, r.n_workers) for each in (np.where(counts, weight, 0.0), weight)]
    return sums


def sum_chances(r: Answers, posterior: Floats, careful: Careful | None = None, counts: Floats | None = None) -> Floats:
    """Return each worker's number of answers, and sums of the chance to be right and of its square, (3, M).

    Answers with weights are `careful`, and these sums those of `Careful.sum_chances`; `counts` (M, L, K) are the
    expected counts of the fit.
    """
    if careful is not None:
        assert counts is not None
        return careful.sum_chances(r.worker, find_accuracy(counts, r.class_of_label))
    sums = np.zeros((3, r.n_workers))
    if r.n_responses >= MANY:
        from ..kernels import answers

        known = read_only(r.class_of_label), read_only(posterior)
        answers.sum_chances(r.worker, r.label, r.offsets, given_weights(r), *known, sums)
        return sums
    for first in range(0, r.n_items, ITEMS_AT_ONCE):
        last = min(first + ITEMS_AT_ONCE, r.n_items)
        part = slice(r.offsets[first], r.offsets[last])
        item = np.repeat(np.arange(first, last), np.diff(r.offsets[first : last + 1]))
        weight, chance = r.weights(part), chances(r, posterior, item, part)
        sums += [sum_by(r.worker[part], each, r.n_workers) for each in (weight, weight * chance, weight * chance**2)]
    return sums


def chances(r: Answers, posterior: Floats, item: NDArray[np.int64], part: slice) -> Floats:
    """Return the probability that each answer is right; `item` has the items of a part of the answers."""
    klass = r.class_of_label[r.label[part]]
    return np.where(klass >= 0, posterior[item, klass], 0.0)


def given_weights(r: Answers, answers: slice = slice(None)) -> Floats:
    """Return the weights of some answers as kernels take them: empty if there are none."""
    return freeze(np.empty(0)) if r.amount is None else r.amount[answers]


def sum_votes(r: Answers, posterior: Floats, chances_of_all: Floats, careful: Careful | None = None) -> Floats:
    """Return how much sums of votes over units vary, how much they would if votes were independent, and the units.

    A vote is all that a worker says about an item. Units are sequences, or items. Sums are of deviations from the
    worker's accuracy, which is that of `chances_of_all`: of these answers, and of others if there are any. Where each
    answer is a vote and a unit, nothing is to be summed.
    """
    if r.sequences is None and (r.amount is None or careful is not None):
        return np.zeros(3)
    total, accuracy, spread, _ = measure_answers(chances_of_all)
    item, weight = r.item_of_answer(), r.weights()
    unit = item if r.sequences is None else r.sequences.of_items()[item]
    if careful is not None:
        weight = careful.amount * careful.care
        away = careful.amount * (careful.right - accuracy[r.worker] * careful.care)
        squares = (sum_by(r.worker, each**2, r.n_workers) for each in (away, weight))
        spread = next(squares) / np.maximum(next(squares), 1e-300)
        return compare_votes(r.worker, item, unit, weight, away, spread, total)
    away = weight * (chances(r, posterior, item, slice(None)) - accuracy[r.worker])
    return compare_votes(r.worker, item, unit, weight, away, spread, total)


def compare_votes(
    worker: NDArray[np.int32],
    item: NDArray[np.int64],
    unit: NDArray[np.int64],
    weight: Floats,
    away: Floats,
    spread: Floats,
    total: Floats,
) -> Floats:
    """Return the sums that `sum_votes` does.

    `away` are weighted deviations from the worker's mean, `spread` (M,) is the variance of an answer, `total` (M,) the
    weight of all answers that the mean is of.
    """
    order = np.argsort(worker, kind="stable")  # items and units of a worker are in order already
    owner, weight = worker[order], weight[order]

    def starts(place: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.flatnonzero(np.append(True, (np.diff(owner) != 0) | (np.diff(place) != 0))[: len(owner)])

    votes, units = starts(item[order]), starts(unit[order])
    if not len(units):
        return np.zeros(3)
    alone, together = (
        sum_by(owner[first], np.add.reduceat(weight, first) ** 2, len(spread)) for first in (votes, units)
    )
    # The variance of the sums about each worker's mean, were all votes independent.
    scale = np.maximum(total**2, 1e-300)
    free = spread * alone * np.maximum(1 - together / scale, 0.0) / np.maximum(1 - alone / scale, 1e-9)
    if free.sum() <= 1e-9 * alone.sum():
        return np.zeros(3)
    sums = np.add.reduceat(away[order], units)
    return np.array([np.sum(sums**2), free.sum(), len(units)], np.float64)


def design_effect(votes: Floats) -> float:
    """Return by what factor sums of votes vary more than if a worker's votes in one unit were independent."""
    varied, free, n_units = votes.tolist()
    return (varied / free * n_units + FEW_UNITS) / (n_units + FEW_UNITS) if free > 0 else 1.0


def beta_ends(share: Floats, worth: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval of shares that so many answers speak for: quantiles of Beta(s n + 1/2, (1 - s) n + 1/2).

    >>> low, high = beta_ends(np.array([1.0]), np.array([3.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.46], [1.0])
    """
    from scipy.special import betaincinv

    for_it, against = share * worth + 0.5, (1 - share) * worth + 0.5
    low, high = (np.asarray(betaincinv(for_it, against, tail)) for tail in TAILS)
    return low, high


def accuracy_ends(mean: float, variance: float, n_items: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of whole items with this mean and variance."""
    from scipy.special import betaincinv

    if np.isnan(variance):
        return 0.0, 1.0
    if variance == 0 or not 0 < mean < 1:
        return mean, mean
    worth = max(mean * (1 - mean) / variance, 1e-3)
    low, high = (float(betaincinv(mean * worth, (1 - mean) * worth, tail)) for tail in TAILS)
    low, high = np.floor(low * n_items + 1e-9) / n_items, np.ceil(high * n_items - 1e-9) / n_items
    return min(float(low), mean), max(float(high), mean)


def open_ends(ends: Floats, axis: int) -> Floats:
    """Return ends in which low and high, along this axis, are 0 and 1 where they are not known."""
    low, high = np.take(ends, 0, axis), np.take(ends, 1, axis)
    unknown = np.isnan(low) | np.isnan(high)
    return np.stack([np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)], axis)


def few_units(n_units: int) -> float:
    """Return by what a variance from few units must be multiplied where quantiles are those of a normal."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n_units - 1, 1), TAILS[1]) / NORMAL) ** 2
