r"""95 % intervals of what a fit says: about workers, about class shares, and about its own labels.

They are computed once, after the fit, from its posteriors :math:`q`. Nothing is fitted again.

**Accuracy.** A worker's n answers, a share x of which is right by the posteriors, are worth :math:`n f / d` answers
with a known truth (see `consilience.results.answer_worth`). The fit pulls each worker towards the crowd: with
:math:`\theta` the accuracy of the worker's reported matrix, x is too close to the crowd's accuracy a by
:math:`(1 - f) (\theta - a)`. The interval is therefore centred at

.. math:: y = x + \frac{1 - f}{f} (x - \theta)

and its ends are quantiles of a Beta distribution with :math:`y n f / d` right and :math:`(1 - y) n f / d` wrong
answers, and half an answer more of each kind. The variance of what all workers share (:math:`S` of
`consilience.results.interval_sums`) is added to that of the worker's own answers, and makes these worth less.

**Informativeness.** The worker's matrix is tilted (the odds of all right answers are multiplied by one number) until
its accuracy is y. With :math:`I` the informativeness of this matrix :math:`\Gamma`, H the entropy of the class shares
:math:`\pi` and :math:`a_l = \sum_k \pi_k \Gamma_{kl}`, the delta method gives

.. math:: \operatorname{var} I = \frac{1}{H^2} \sum_k \frac{\pi_k^2}{n_k f / d} \operatorname{var}_{l \sim \Gamma_k}
          \log \frac{\Gamma_{kl}}{a_l}

The interval is symmetric in :math:`\sqrt I`, where the variance is stable as I goes to 0. Its lower end is 0 where
independence of answer and truth cannot be rejected.

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

**Ordered classes.** How many labels are at most one level off, and by how many levels they are off, is judged in the
same way: c is the mean of that figure by the probabilities of the item, and its variance stands for
:math:`c_i (1 - c_i)`.

**Streams.** If answers come in batches (see `consilience.results.new_answers`), intervals are about all batches. Only
the expected accuracy is about the last batch alone, whose labels it is about.

**Votes.** Where vote shares are all that is known, they are taken for the truth. Class shares vary as the vote shares
of items do, or as their sums over sequences.

All intervals take the model at its word that workers err independently. They do not cover errors that workers share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..inference import ITEMS_AT_ONCE
from ..kernels import Floats
from ..limits import release_mapped
from .answer_worth import (
    LEAST_LEFT,
    NORMAL,
    accuracy_ends,
    beta_ends,
    design_effect,
    few_units,
    find_worth,
    measure_answers,
    open_ends,
)
from .interval_sums import (
    LEAST_SHARE,
    MOST_ENTRIES,
    Estimates,
    Sums,
    count_surprise,
    cut_runs,
    invert_scores,
    right_matrix,
    sum_answers,
    sum_sequences,
    sum_up,
)


class Intervals(NamedTuple):
    """The lower and upper ends of all intervals."""

    # Accuracy, low and high; informativeness, low and high; None for votes.
    workers: Floats | None
    prior: Floats
    expected: Floats  # accuracy of the labels
    # Value and ends of the share of labels at most one level off, and of the levels off; None without raters.
    levels: Floats | None = None


class Confidence(NamedTuple):
    """Reported posteriors at each power that they may have to be raised to. All are equally likely."""

    powers: Floats
    raised: Callable[[float, slice], Floats]  # those of a run of items at a power
    reported: float = 1.0  # the power that is reported


def find_intervals(
    r: Answers,
    posterior: Floats,
    codes: NDArray[np.int64],
    found: Estimates,
    confidence: Confidence,
    earlier: Sums | None = None,
    ordered: bool = False,
) -> tuple[Intervals, Sums]:
    """Return the intervals of a fit, and the sums that they are made of.

    Parameters
    ----------
    r : Answers
        The answers.
    posterior : array (N, K)
        Posteriors of the fit, not calibrated.
    codes : array (N,)
        Labels.
    found : Estimates
        What was learned.
    confidence : Confidence
        The calibrated posteriors.
    earlier : Sums, optional
        If the answers are a batch of a stream, the sums over all batches before.
    ordered : bool
        Whether labels are levels of a scale, and may be more or less far off.
    """
    # Weights may be so large or so small that sums of their products are infinite, or 0: then nothing is known.
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        right = right_matrix(found.confusion, r)
        sums = sum_up(r, posterior, right, found, earlier)
        shared = invert_scores(r, sums, right, found)
        workers, worth = judge_workers(r, sums, right, found, shared)
        shares = judge_shares(sums, found, shared)
        labels = judge_labels(r, posterior, codes, confidence, right, shared, find_doubt(right, found, worth), ordered)
    release_mapped()
    answered = sums.chances[0] > 0
    workers[answered] = open_ends(workers[answered].reshape(-1, 2, 2), 2).reshape(-1, 4)
    levels = labels[1:] if ordered else None
    return Intervals(workers, open_ends(shares, 0), open_ends(labels[0, 1:], 0), levels), sums


def judge_shares(sums: Sums, found: Estimates, shared: Floats | None) -> Floats:
    """Return the interval of each class share, (2, K); `shared` is the covariance of what all items share."""
    prior, n_classes, n_items = found.prior, len(found.prior), float(sums.sizes[0])
    if found.prior_is_known or n_classes == 1:
        return np.stack([prior, prior])
    free, mean = prior * (1 - prior), sums.moments[0] / n_items
    spread, sure = sums.moments[1] / n_items - mean**2, 0.25 / n_items
    left = (spread + sure) / (mean * (1 - mean) + sure)
    worth = n_items * np.clip(left, LEAST_LEFT, 1.0)
    if shared is not None:
        # Shares move by diag(pi) - pi pi^T times the change of their log odds.
        meant, moves = sums.meant > 0, np.diag(prior) - np.outer(prior, prior)
        variance = np.einsum("ki,ij,kj->k", moves, shared[n_classes : 2 * n_classes, n_classes : 2 * n_classes], moves)
        # They also move against the shares of classes that nobody said.
        variance += (prior / max(prior[meant].sum(), LEAST_SHARE)) ** 2 * np.sum((free / worth)[~meant])
        worth = np.where(meant, np.minimum(free / np.maximum(variance, 1e-300), n_items), worth)
    low, high = beta_ends(prior, worth)
    return np.stack([np.minimum(low, prior), np.maximum(high, prior)])


def find_doubt(right: Floats, found: Estimates, worth: Floats) -> Floats:
    """Return the variance of the log odds of an item's label that an answer of each worker adds to it, (M,).

    Prior and answers together say as much about a worker's log odds as `worth` and the pseudo-counts do.
    """
    accuracy = right @ found.prior
    known = (worth + found.pseudo_counts.sum()) * np.maximum(accuracy * (1 - accuracy), 1e-3)
    return np.asarray(1 / np.maximum(known, 1e-3))


def judge_labels(
    r: Answers,
    posterior: Floats,
    codes: NDArray[np.int64],
    confidence: Confidence,
    right: Floats,
    shared: Floats | None,
    doubt: Floats,
    ordered: bool,
) -> Floats:
    """Return figures of the labels, each with both ends of its interval, (F, 3).

    The first is the share that is right. For levels, further ones are the share at most one level off, and the levels
    off.
    """
    powers, times = np.unique(confidence.powers, return_counts=True)
    n_items, n_figures = len(codes), 3 if ordered else 1
    means, variances = [], []

    def expect(q: Floats, run: slice) -> tuple[list[Floats], list[Floats]]:
        """The figures of each class, (n, K), and their means by probabilities, (n,)."""
        away = np.abs(np.arange(q.shape[1]) - codes[run, None])
        values = [np.asarray(value, np.float64) for value in (away == 0, away <= 1, away)[:n_figures]]
        return values, [np.einsum("nk,nk->n", q, value) for value in values]

    for power in powers.tolist():
        sums, slope = np.zeros((3, n_figures)), np.zeros((n_figures, 2 * r.n_classes))
        for run in cut_runs(r):
            q, surprise = confidence.raised(power, run), None if shared is None else count_surprise(r, right, run)
            chosen = choose(q, codes[run])
            bend = sum_answers(r, doubt, run, power=2) * chosen * (1 - chosen) * (2 * chosen - 1)
            for figure, (value, mean) in enumerate(zip(*expect(q, run), strict=True)):
                # How far the label is from what the other classes would be worth.
                lead = (choose(value, codes[run]) - mean) / np.maximum(1 - chosen, 1e-300)
                variance = np.einsum("nk,nk->n", q, value**2) - mean**2
                sums[:, figure] += mean.sum(), np.maximum(variance, 0.0).sum(), np.sum(bend * lead)
                if surprise is not None:
                    slope[figure] += sum_slopes(q, value, mean, surprise)
        slope *= power / n_items
        # A probability is not linear in log odds: what is not known of these moves its mean.
        bias = 0.5 * power**2 * sums[2] / n_items
        common = 0.0 if shared is None else np.einsum("fi,ij,fj->f", slope, shared, slope)
        means.append(sums[0] / n_items)
        variances.append(sums[1] / n_items**2 + common + bias**2)
    mean = np.average(means, axis=0, weights=times)
    spread = np.average((np.array(means) - mean) ** 2, axis=0, weights=times)
    # To leave out one item at a time takes away a part of what the fit confirms itself in; half as much may be left.
    gap, reported = np.zeros(n_figures), np.zeros(n_figures)
    for run in cut_runs(r):
        before, after = (expect(q, run)[1] for q in (posterior[run], confidence.raised(1.0, run)))
        gap += np.sum(before, axis=1) / 2 / n_items - np.sum(after, axis=1) / 2 / n_items
        if ordered:
            reported += np.sum(expect(confidence.raised(confidence.reported, run), run)[1], axis=1) / n_items
    variance = np.average(variances, axis=0, weights=times) + spread + gap**2
    most = np.array([1.0, 1.0, max(r.n_classes - 1.0, 1.0)])[:n_figures]
    figures = zip(mean / most, variance / most**2, strict=True)
    ends = np.array([accuracy_ends(float(m), float(v), n_items) for m, v in figures]) * most[:, None]
    if not ordered:
        return np.column_stack([mean, ends])
    return np.column_stack([reported, np.minimum(ends[:, 0], reported), np.maximum(ends[:, 1], reported)])


def sum_slopes(q: Floats, value: Floats, mean: Floats, surprise: Floats) -> Floats:
    """Return the sum over items of the derivatives of the mean of `value` by what all items share, (2 K,)."""
    away = q * (value - mean[:, None])
    return np.concatenate([np.einsum("nk,nk->k", away, surprise), away.sum(axis=0)])


def choose(values: Floats, codes: NDArray[np.int64]) -> Floats:
    """Return the entry of each row that belongs to its label."""
    return np.asarray(values[np.arange(len(values)), codes])


def judge_votes(
    shares: Floats, chosen: Floats, prior: Floats, sequences: NDArray[np.int64] | None
) -> tuple[Floats, Floats]:
    """Return the intervals of class shares and of the accuracy of labels, where vote shares are all that is known.

    `chosen` (N,) are the shares of the labels, `sequences` offsets, None if items are independent of each other.
    """
    n_items, variance = len(shares), np.zeros(len(prior))
    if sequences is not None:
        away = sum_sequences(shares - prior, sequences)
        variance = np.einsum("nk,nk->k", away, away) * few_units(len(sequences) - 1) / n_items**2
    else:
        for first in range(0, n_items, ITEMS_AT_ONCE):
            away = shares[first : first + ITEMS_AT_ONCE] - prior
            variance += np.einsum("nk,nk->k", away, away) / n_items**2
    low, high = beta_ends(prior, prior * (1 - prior) / np.maximum(variance, 1 / n_items**2))
    expected = accuracy_ends(float(chosen.mean()), float(np.sum(chosen * (1 - chosen))) / n_items**2, n_items)
    if len(prior) == 1:
        return np.stack([prior, prior]), np.array(expected)
    return np.stack([np.minimum(low, prior), np.maximum(high, prior)]), np.array(expected)


def judge_workers(
    r: Answers, sums: Sums, right: Floats, found: Estimates, shared: Floats | None
) -> tuple[Floats, Floats]:
    """Return the intervals of accuracy and informativeness, (M, 4), NaN for workers without answers; and the worth.

    The worth (M,) is the number of answers with a known truth that would tell as much as a worker's answers.
    """
    total, accuracy, _, left = measure_answers(sums.chances)
    believed = (found.counts.sum(axis=1) * right).sum(axis=1) / np.maximum(total, 1e-300)
    centre = np.clip(accuracy + (1 - left) / left * (accuracy - believed), 0.0, 1.0)  # without the pull to the crowd
    worth = find_worth(sums.chances, sums.judged) / design_effect(sums.votes)
    if shared is not None:
        mean = right @ found.prior
        moves = np.concatenate([found.prior * right * (1 - right), found.prior * (right - mean[:, None])], axis=1)
        common = np.einsum("mi,ij,mj->m", moves, shared, moves)
        spread = np.maximum(centre * (1 - centre), 0.25 / (total + 1))
        worth = worth / (1 + worth * common / spread)
    ends = np.full((r.n_workers, 4), np.nan)
    answered = total > 0
    if r.n_labels == 1 and r.n_classes == 1:  # nobody can err
        ends[answered, :2] = 1.0
    else:
        low, high = beta_ends(centre, worth)
        ends[answered, 0] = np.minimum(low, accuracy)[answered]
        ends[answered, 1] = np.maximum(high, accuracy)[answered]
    met, target = found.counts.sum(axis=1), (centre * worth + 0.5) / (worth + 1)
    if r.silence_counts:
        # A matrix has learned from silence too, and says more than the accuracy of what was said.
        met, target = np.broadcast_to(sums.moments[0], met.shape), np.full(r.n_workers, np.nan)
    size = max(1, MOST_ENTRIES // max(1, found.confusion[0].size))
    for first in range(0, r.n_workers, size):
        part = slice(first, first + size)
        worth_met = met[part] * (worth / np.maximum(total, 1e-300))[part, None]
        ends[part, 2:] = judge_information(found.confusion[part], found.prior, target[part], worth_met, r)
    return ends, worth


def judge_information(confusion: Floats, prior: Floats, centre: Floats, met: Floats, r: Answers) -> Floats:
    """Return the interval of informativeness of some workers, (M, 2).

    `centre` (M,) is the accuracy to tilt matrices to, NaN to leave them as they are. `met` (M, K) is how many answers
    with a known truth their answers about each class are worth.
    """
    reported = informativeness(confusion, prior)
    tilted = tilt(confusion, prior, centre, r)
    middle = informativeness(tilted, prior)
    entropy = find_entropy(prior)
    if entropy <= 1e-100:
        return np.stack([reported, reported], axis=1)
    answer = np.einsum("k,mkl->ml", prior, tilted)
    odds = np.log(np.maximum(tilted, 1e-300) / np.maximum(answer, 1e-300)[:, None, :])
    telling = np.einsum("mkl,mkl->mk", tilted, odds)
    variance = np.maximum(np.einsum("mkl,mkl,mkl->mk", tilted, odds, odds) - telling**2, 0.0)
    error = (prior**2 * variance / np.maximum(met, 0.5)).sum(axis=1) / entropy**2
    # Of one who tells nothing, 2 n I H has a chi-squared distribution, and its root a variance of about a half.
    nothing = 1 / (2 * np.maximum(met.sum(axis=1), 0.5) * entropy)
    deviation = np.sqrt(np.where(middle > 1e-8, error / (4 * np.maximum(middle, 1e-8)), nothing))
    low = np.maximum(np.sqrt(middle) - NORMAL * deviation, 0.0) ** 2
    high = np.minimum(np.sqrt(middle) + NORMAL * deviation, 1.0) ** 2
    return np.stack([np.minimum(low, reported), np.maximum(high, reported)], axis=1)


def tilt(confusion: Floats, prior: Floats, target: Floats, r: Answers) -> Floats:
    """Return matrices (M, K, A) with the odds of right answers multiplied until the accuracy is the `target`."""
    named = np.flatnonzero(r.label_of_class >= 0)
    right = confusion[:, named, r.label_of_class[named]]
    share = prior[named]
    low, high = np.full(len(right), -12.0), np.full(len(right), 12.0)
    for _ in range(30):
        middle = (low + high) / 2
        raised = right * np.exp(middle)[:, None]
        below = (share * raised / (1 - right + raised)).sum(axis=1) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    tilted = confusion.copy()
    tilted[:, named, r.label_of_class[named]] *= np.exp(np.where(np.isnan(target), 0.0, low))[:, None]
    return np.asarray(tilted / tilted.sum(axis=2, keepdims=True))


def judge_voters(right: Floats, total: Floats, information: Floats, prior: Floats) -> Floats:
    """Return the same as `judge_workers` where truth is taken to be the vote: nothing else is known."""
    ends = np.full((len(total), 4), np.nan)
    answered, scale = total > 0, np.maximum(total, 1e-300)
    accuracy = right / scale
    low, high = beta_ends(np.clip(accuracy, 0.0, 1.0), total)
    ends[answered, 0] = np.minimum(low, accuracy)[answered]
    ends[answered, 1] = np.maximum(high, accuracy)[answered]
    entropy = find_entropy(prior)
    reach = NORMAL / np.sqrt(2 * np.maximum(total, 0.5) * entropy) if entropy > 0 else np.zeros(len(total))
    ends[:, 2] = np.maximum(np.sqrt(information) - reach, 0.0) ** 2
    ends[:, 3] = np.minimum(np.sqrt(information) + reach, 1.0) ** 2
    return ends


def informativeness(confusion: Floats, prior: Floats) -> Floats:
    """Return I(answer; truth) / H(truth) for each worker, between 0 and 1."""
    return _share_of_entropy(_inform(prior[None, :, None] * confusion, prior).sum(axis=1), prior)


def informativeness_of_speech(confusion: Floats, prior: Floats) -> Floats:
    """Return what an answer tells about the truth on average when a worker speaks, as `informativeness` does.

    Where silence is an answer, a function that seldom speaks tells little about most items, however right it is:

        sum_l P(l) KL(P(truth | l) || P(truth)) / sum_l P(l),   over all answers l but the last one, silence
    """
    joint = prior[None, :, None] * confusion[:, :, :-1]
    speech = joint.sum(axis=(1, 2))
    total = _inform(joint, prior).sum(axis=1)
    return _share_of_entropy(np.divide(total, speech, out=np.zeros(len(joint)), where=speech > 0), prior)


def _inform(joint: Floats, prior: Floats) -> Floats:
    """Return sum_k P(k, l) log P(k, l) / (P(k) P(l)) of each worker and answer l, (M, L)."""
    answer = joint.sum(axis=1, keepdims=True)
    independent = prior[None, :, None] * answer
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=(joint > 0) & (independent > 0))
    return np.asarray(np.sum(joint * np.log(ratio), axis=1))


def find_entropy(shares: Floats) -> float:
    """Return the entropy of class shares, in nats."""
    return -float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))


def _share_of_entropy(information: Floats, prior: Floats) -> Floats:
    """Return information as a share of the entropy of the truth, between 0 and 1."""
    entropy = find_entropy(prior)
    return np.asarray(np.clip(information / entropy, 0.0, 1.0)) if entropy > 0 else np.zeros(len(information))
