r"""95 % intervals of what a fit says: about workers, about class shares, and about its own labels.

They are computed once, after the fit, from its posteriors :math:`q`. Nothing is fitted again. Those of workers are in
`consilience.results.worker_intervals`; those of class shares and of the expected accuracy are here.

**Class shares.** Shares :math:`\pi` move by :math:`\operatorname{diag}(\pi) - \pi \pi^T` times the change of their log
odds, whose covariance is the part of S that is about them (see `consilience.results.interval_sums`). The ends are Beta
quantiles. S does not know of a class that nobody said. Its share is judged by how many items the posteriors give it:
with mean :math:`m_k` they are worth N items times

.. math:: f_k = \frac{\frac{1}{N} \sum_i q_{ik}^2 - m_k^2}{m_k (1 - m_k)}

with :math:`1 / 4 N` added above and below the line. The other shares move against the sum of such shares, in
proportion.

**Expected accuracy.** This is the mean reported probability c of the labels. What the labels get right differs from it
by chance, by what is not known of parameters, and by what is not known of the power t that posteriors were raised to:

.. math:: \operatorname{var} = \operatorname{E}_t \Big[ \frac{1}{N^2} \sum_i c_i (1 - c_i) + g^T S g + b^2 \Big] +
          \operatorname{var}_t \bar c + \frac{1}{4} (\bar q - \bar c_1)^2

with g the derivative of the mean of c. Two biases are counted as variances. The first is b, the mean of
:math:`\frac{1}{2} t^2 v_i c_i (1 - c_i) (2 c_i - 1)`: what is not known of single workers gives an item's log odds the
variance :math:`v_i`, and a probability is not linear in them. The second is half of the change in the mean, from
:math:`\bar q` to :math:`\bar c_1`, when each item is judged by counts without it. The powers stand for how well each
predicted hidden answers or known labels; see `consilience.inference.powers`. The ends are Beta quantiles, rounded
outwards to whole items.

**Streams.** If answers come in batches (see `consilience.results.streaming`), intervals are about all batches. Only the
expected accuracy is about the last batch alone, whose labels it is about.

**Votes.** Where vote shares are all that is known, they are taken for the truth. Class shares vary as the vote shares
of items do, or as their sums over sequences.

All intervals take the model at its word that workers err independently. They do not cover errors that workers share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.responses import Responses
from ..inference.cells import ITEMS_AT_ONCE
from ..kernels.types import Floats
from ..specs import ENDS, ArraySpec
from .answer_worth import LEAST_LEFT, sum_chances
from .interval_ends import accuracy_ends, beta_ends, few_units, open_ends
from .interval_sums import (
    Estimates,
    Shared,
    Sums,
    count_surprise,
    cut_runs,
    invert_scores,
    right_matrix,
    sum_answers,
    sum_sequences,
    sum_up,
)
from .worker_intervals import Answers, judge_workers, weigh_answers


class Intervals(NamedTuple):
    """The lower and upper ends of all intervals."""

    # Accuracy, low and high; informativeness, low and high; None for votes.
    workers: Annotated[Floats, ArraySpec("M 4", ENDS)] | None
    prior: Annotated[Floats, ArraySpec("2 K", ENDS)]
    expected: Annotated[Floats, ArraySpec("2", ENDS)]  # accuracy of the labels


class Whole(NamedTuple):
    """The crowd, if the answers are a sample of it."""

    n_items: int
    confidence: float  # mean probability of the labels, at the power that is reported
    chances: Floats  # (3, M): as `sum_chances` returns, of all answers


class Confidence(NamedTuple):
    """Reported posteriors at each power that they may have to be raised to. All are equally likely."""

    powers: Floats
    raised: Callable[[float, slice], Floats]  # those of a run of items at a power
    reported: float = 1.0  # the power that is reported


def find_intervals(
    r: Responses,
    posterior: Floats,
    label_codes: NDArray[np.int64],
    found: Estimates,
    confidence: Confidence,
    whole: Whole | None = None,
    earlier: Sums | None = None,
) -> tuple[Intervals, Sums]:
    """Return the intervals of a fit, and the sums that they are made of.

    Parameters
    ----------
    r : Responses
        The answers.
    posterior : array (N, K)
        Posteriors of the fit, not calibrated.
    label_codes : array (N,)
        Labels.
    found : Estimates
        What was learned.
    confidence : Confidence
        The calibrated posteriors.
    whole : Whole, optional
        If the answers are a sample, the crowd they are from, to which sums over items are scaled.
    earlier : Sums, optional
        If the answers are a batch of a stream, the sums over all batches before.
    """
    n_items = r.n_items if whole is None else whole.n_items
    # Weights may be so large or so small that sums of their products are infinite, or 0: then nothing is known.
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        right = right_matrix(found.confusion, r)
        chances = sum_chances(r, posterior) if whole is None else whole.chances
        sums = sum_up(r, posterior, right, found, chances, n_items / max(r.n_items, 1), earlier)
        shared = invert_scores(r, sums, right, found)
        answers = weigh_answers(sums, right, found, shared)
        workers = judge_workers(r, sums.moments[0], found, answers)
        n_summed = float(sums.sizes[0])
        shares = judge_shares(sums.moments, n_summed, found, shared, n_items if earlier is None else n_summed)
        doubt = find_doubt(right, found, answers)
        labels = judge_labels(r, posterior, label_codes, confidence, right, shared, doubt, whole)
    answered = answers.total > 0
    workers[answered] = open_ends(workers[answered].reshape(-1, 2, 2), 2).reshape(-1, 4)
    return Intervals(workers, open_ends(shares, 0), open_ends(labels, 0)), sums


def judge_shares(moments: Floats, n_summed: float, found: Estimates, shared: Shared | None, n_items: float) -> Floats:
    """Return the interval of each class share, (2, K).

    `moments` (2, K) are sums of posteriors and of their squares over `n_summed` of `n_items` items.
    """
    prior, n_classes = found.prior, len(found.prior)
    if found.prior_is_known or n_classes == 1:
        return np.stack([prior, prior])
    free, mean = prior * (1 - prior), moments[0] / n_summed
    spread, sure = moments[1] / n_summed - mean**2, 0.25 / n_items
    left = (spread + sure) / (mean * (1 - mean) + sure)
    worth = n_items * np.clip(left, LEAST_LEFT, 1.0)
    if shared is not None:
        # Shares move by diag(pi) - pi pi^T times the change of their log odds.
        moves = np.diag(prior) - np.outer(prior, prior)
        variance = np.einsum("ki,ij,kj->k", moves, shared.covariance[n_classes:, n_classes:], moves)
        # They also move against the shares of classes that nobody said.
        variance += (prior / prior[shared.meant].sum()) ** 2 * np.sum((free / worth)[~shared.meant])
        worth = np.where(shared.meant, np.minimum(free / np.maximum(variance, 1e-300), n_items), worth)
    low, high = beta_ends(prior, worth)
    return np.stack([np.minimum(low, prior), np.maximum(high, prior)])


def find_doubt(right: Floats, found: Estimates, answers: Answers) -> Floats:
    """Return the variance of the log odds of an item's label that an answer of each worker adds to it, (M,).

    Prior and answers together say as much about a worker's log odds as `worth` and the pseudo-counts do.
    """
    accuracy = right @ found.prior
    known = (answers.worth + found.pseudo_counts.sum()) * np.maximum(accuracy * (1 - accuracy), 1e-3)
    return np.asarray(1 / np.maximum(known, 1e-3))


def judge_labels(
    r: Responses,
    posterior: Floats,
    label_codes: NDArray[np.int64],
    confidence: Confidence,
    right: Floats,
    shared: Shared | None,
    doubt: Floats,
    whole: Whole | None = None,
) -> Floats:
    """Return the interval of the accuracy of the labels, (2,)."""
    powers, times = np.unique(confidence.powers, return_counts=True)
    n_labels, means, variances = len(label_codes), [], []
    n_items = n_labels if whole is None else whole.n_items
    for power in powers.tolist():
        sums, slope = np.zeros(3), np.zeros(2 * r.n_classes)
        for run in cut_runs(r):
            q, codes = confidence.raised(power, run), label_codes[run]
            chosen = choose(q, codes)
            free = chosen * (1 - chosen)
            sums += chosen.sum(), free.sum(), np.sum(sum_answers(r, doubt, run, power=2) * free * (2 * chosen - 1))
            if shared is not None:
                slope += sum_slopes(q, codes, chosen, count_surprise(r, right, run))
        slope *= power / n_labels
        # A probability is not linear in log odds: what is not known of these moves its mean.
        bend = 0.5 * power**2 * sums[2] / n_labels
        common = 0.0 if shared is None else float(slope @ shared.covariance @ slope)
        means.append(sums[0] / n_labels)
        variances.append(sums[1] / n_labels / n_items + common + bend**2)
    mean = float(np.average(means, weights=times))
    spread = float(np.average((np.array(means) - mean) ** 2, weights=times))
    # To leave out one item at a time takes away a part of what the fit confirms itself in; half as much may be left.
    gap = 0.0
    for run in cut_runs(r):
        gap += float(np.sum(choose(posterior[run] - confidence.raised(1.0, run), label_codes[run]))) / 2 / n_labels
    if whole is not None:
        # The sample has another mean than all items by chance.
        sampled = float(choose(confidence.raised(confidence.reported, slice(None)), label_codes).mean())
        mean = min(max(mean + whole.confidence - sampled, 0.0), 1.0)
    low, high = accuracy_ends(mean, float(np.average(variances, weights=times)) + spread + gap**2, n_items)
    return np.array([low, high])


def sum_slopes(q: Floats, codes: NDArray[np.int64], chosen: Floats, surprise: Floats) -> Floats:
    """Return the sum over items of the derivatives of the label's probability by what all items share, (2 K,)."""
    away = -chosen[:, None] * q
    away[np.arange(len(q)), codes] += chosen
    return np.concatenate([np.einsum("nk,nk->k", away, surprise), away.sum(axis=0)])


def choose(values: Floats, codes: NDArray[np.int64]) -> Floats:
    """Return the entry of each row that belongs to its label."""
    return np.asarray(values[np.arange(len(values)), codes])


class VoteSums(NamedTuple):
    """Sums over the items of a vote. Those of different items add."""

    n_items: int
    n_sequences: int  # 0 if items are independent of each other
    chosen: float  # the shares of the labels
    doubt: float  # s (1 - s) for each of these shares s
    away: Floats  # (K,): squares of shares less the prior, the latter summed over each sequence before

    @classmethod
    def of(cls, shares: Floats, chosen: Floats, prior: Floats, sequences: NDArray[np.int64] | None) -> VoteSums:
        """Take the sums over some items; `sequences` are offsets, None if items are independent of each other."""
        squares, n_sequences = np.zeros(len(prior)), 0
        if sequences is not None:
            away, n_sequences = sum_sequences(shares - prior, sequences), len(sequences) - 1
            squares = np.einsum("nk,nk->k", away, away)
        else:
            for first in range(0, len(shares), ITEMS_AT_ONCE):
                away = shares[first : first + ITEMS_AT_ONCE] - prior
                squares += np.einsum("nk,nk->k", away, away)
        doubt = float(np.sum(chosen * (1 - chosen)))
        return cls(len(shares), n_sequences, float(chosen.sum()), doubt, squares)

    def plus(self, other: VoteSums) -> VoteSums:
        """Return the sums over the items of both."""
        sums: list[Any] = [mine + theirs for mine, theirs in zip(self, other, strict=True)]  # type: ignore[operator]
        return VoteSums(*sums)


def judge_votes(sums: VoteSums, prior: Floats) -> tuple[Floats, Floats]:
    """Return the intervals of class shares and of the accuracy of labels, where vote shares are all that is known."""
    n_items = sums.n_items
    factor = few_units(sums.n_sequences) if sums.n_sequences else 1.0
    variance = sums.away * factor / n_items**2
    low, high = beta_ends(prior, prior * (1 - prior) / np.maximum(variance, 1 / n_items**2))
    expected = accuracy_ends(sums.chosen / n_items, sums.doubt / n_items**2, n_items)
    alone = np.stack([np.minimum(low, prior), np.maximum(high, prior)]) if len(prior) > 1 else np.stack([prior, prior])
    return alone, np.array(expected)
