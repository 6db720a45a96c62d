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

**Ordered classes.** How many labels are right, how many are at most one level off, and by how many levels they are off,
are judged by draws (see `consilience.inference.draws`): their mean, and for the interval their variance, in place of
the sum in brackets. Powers below 1 and draws say the same in two ways, how much less sure labels are than the fit has
it: for each power, what is worse of the two counts.

**Streams.** If answers come in batches (see `consilience.results.new_answers`), intervals are about all batches. Only
the expected accuracy is about the last batch alone, whose labels it is about.

**Votes.** Where vote shares are all that is known, they are taken for the truth. Class shares vary as the vote shares
of items do, or as their sums over sequences.

All intervals take the model at its word that workers err independently. They do not cover errors that workers share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..inference import ITEMS_AT_ONCE
from ..inference.draws import Levels, describe_labels
from ..kernels import Floats
from ..specs import COUNTS, ENDS, ArraySpec, Fault, Sizes
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
    sum_chances,
)
from .interval_sums import (
    LEAST_SHARE,
    MOST_ENTRIES,
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


class Intervals(NamedTuple):
    """The lower and upper ends of all intervals."""

    # Accuracy, low and high; informativeness, low and high; None for votes.
    workers: Annotated[Floats, ArraySpec("M 4", ENDS)] | None
    prior: Annotated[Floats, ArraySpec("2 K", ENDS)]
    expected: Annotated[Floats, ArraySpec("2", ENDS)]  # accuracy of the labels
    # Value and ends of the share of labels at most one level off, and of the levels off; None without draws.
    levels: Annotated[Floats, ArraySpec("* *", COUNTS)] | None = None

    def check_saved(self, sizes: Sizes) -> None:  # noqa: ARG002
        """Raise a `Fault` unless there are a value and two ends of both."""
        if self.levels is not None and self.levels.shape != (2, 3):
            raise Fault("there are not two figures of levels")


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
    levels: Levels | None = None  # what to expect of labels if nothing is taken for known

    def find_labels(self, n_items: int, choose: Callable[[Floats], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the label of each item, which is chosen by the posteriors that are reported."""
        runs = (slice(first, first + ITEMS_AT_ONCE) for first in range(0, n_items, ITEMS_AT_ONCE))
        return np.concatenate([choose(self.raised(self.reported, run)) for run in runs])


def find_intervals(
    r: Answers,
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
    r : Answers
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
        chances = sum_chances(r, posterior, found.careful, found.counts) if whole is None else whole.chances
        sums = sum_up(r, posterior, right, found, chances, n_items / max(r.n_items, 1), earlier)
        shared = invert_scores(r, sums, right, found)
        answers = weigh_answers(sums, right, found, shared)
        workers = judge_workers(r, sums.moments[0], found, answers)
        n_summed = float(sums.sizes[0])
        shares = judge_shares(sums.moments, n_summed, found, shared, n_items if earlier is None else n_summed)
        doubt = find_doubt(right, found, answers)
        labels, levels = judge_labels(r, posterior, label_codes, confidence, right, shared, doubt, whole), None
        if confidence.levels is not None:
            labels, levels = judge_levels(confidence, confidence.levels, label_codes, whole)
    answered = answers.total > 0
    workers[answered] = open_ends(workers[answered].reshape(-1, 2, 2), 2).reshape(-1, 4)
    return Intervals(workers, open_ends(shares, 0), open_ends(labels, 0), levels), sums


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
        variance += (prior / max(prior[shared.meant].sum(), LEAST_SHARE)) ** 2 * np.sum((free / worth)[~shared.meant])
        worth = np.where(shared.meant, np.minimum(free / np.maximum(variance, 1e-300), n_items), worth)
    low, high = beta_ends(prior, worth)
    return np.stack([np.minimum(low, prior), np.maximum(high, prior)])


def find_doubt(right: Floats, found: Estimates, answers: AnswerWorth) -> Floats:
    """Return the variance of the log odds of an item's label that an answer of each worker adds to it, (M,).

    Prior and answers together say as much about a worker's log odds as `worth` and the pseudo-counts do.
    """
    accuracy = right @ found.prior
    known = (answers.worth + found.pseudo_counts.sum()) * np.maximum(accuracy * (1 - accuracy), 1e-3)
    return np.asarray(1 / np.maximum(known, 1e-3))


def judge_labels(
    r: Answers,
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


def judge_levels(
    confidence: Confidence, levels: Levels, label_codes: NDArray[np.int64], whole: Whole | None = None
) -> tuple[Floats, Floats]:
    """Return the interval of the accuracy of labels on a scale, (2,), and figures of levels, (2, 3).

    These are the share of labels at most one level off and the levels off, each with both ends of its interval.
    """
    n_labels, n_classes = len(label_codes), confidence.raised(1.0, slice(0, 1)).shape[1]
    n_items = n_labels if whole is None else whole.n_items

    def expect(power: float) -> Floats:
        sums = np.zeros(3)
        for first in range(0, n_labels, ITEMS_AT_ONCE):
            run = slice(first, first + ITEMS_AT_ONCE)
            codes = label_codes[run]
            sums += len(codes) * describe_labels(confidence.raised(power, run), codes)[0]
        return sums / n_labels

    powers, times = np.unique(confidence.powers, return_counts=True)
    reported, sign = expect(confidence.reported), np.array([1.0, 1.0, -1.0])
    # Powers below 1 and draws say the same in two ways: how much less sure labels are. What is worse counts.
    means = sign * np.minimum(sign * np.array([expect(power) for power in powers.tolist()]), sign * levels.mean)
    mean = np.average(means, axis=0, weights=times)
    variance = levels.chance / n_items + levels.variance + np.average((means - mean) ** 2, axis=0, weights=times)
    if whole is not None:
        # The sample has another mean than all items by chance.
        mean[0] = min(max(mean[0] + whole.confidence - reported[0], 0.0), 1.0)
    most = np.array([1.0, 1.0, max(n_classes - 1.0, 1.0)])
    ends = np.array([accuracy_ends(*each, n_items) for each in zip(mean / most, variance / most**2, strict=True)])
    ends *= most[:, None]
    figures = np.column_stack([reported, np.minimum(ends[:, 0], reported), np.maximum(ends[:, 1], reported)])
    return ends[0], figures[1:]


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


class AnswerWorth(NamedTuple):
    """What each worker's answers are worth, (M,) each."""

    total: Floats  # number of answers, with care
    accuracy: Floats  # as reported
    centre: Floats  # accuracy without the pull towards the crowd
    worth: Floats  # number of answers with a known truth that would tell as much


def weigh_answers(sums: Sums, right: Floats, found: Estimates, shared: Shared | None) -> AnswerWorth:
    """Return what each worker's answers are worth."""
    total, accuracy, _, left = measure_answers(sums.chances)
    believed = (found.counts.sum(axis=1) * right).sum(axis=1) / np.maximum(total, 1e-300)
    centre = np.clip(accuracy + (1 - left) / left * (accuracy - believed), 0.0, 1.0)
    worth = find_worth(sums.chances, sums.judged) / design_effect(sums.votes)
    if shared is not None:
        mean = right @ found.prior
        moves = np.concatenate([found.prior * right * (1 - right), found.prior * (right - mean[:, None])], axis=1)
        common = np.einsum("mi,ij,mj->m", moves, shared.covariance, moves)
        spread = np.maximum(centre * (1 - centre), 0.25 / (total + 1))
        worth = worth / (1 + worth * common / spread)
    return AnswerWorth(total, accuracy, centre, worth)


def judge_workers(r: Answers, mass: Floats, found: Estimates, answers: AnswerWorth) -> Floats:
    """Return the intervals of accuracy and informativeness, (M, 4); NaN for workers without answers.

    `mass` (K,) are the sums of posteriors.
    """
    total, accuracy, centre, worth = answers
    ends = np.full((r.n_workers, 4), np.nan)
    answered = total > 0
    if r.n_labels == 1 and r.n_classes == 1:  # nobody can err
        ends[answered, :2] = 1.0
    else:
        low, high = beta_ends(centre, worth)
        ends[answered, 0] = np.minimum(low, accuracy)[answered]
        ends[answered, 1] = np.maximum(high, accuracy)[answered]
    met, centre = found.counts.sum(axis=1), (centre * worth + 0.5) / (worth + 1)
    if r.silence_counts:
        # A matrix has learned from silence too, and says more than the accuracy of what was said.
        met, centre = np.broadcast_to(mass, met.shape), np.full(r.n_workers, np.nan)
    size = max(1, MOST_ENTRIES // max(1, found.confusion[0].size))
    for first in range(0, r.n_workers, size):
        part = slice(first, first + size)
        worth_met = met[part] * (worth / np.maximum(total, 1e-300))[part, None]
        ends[part, 2:] = judge_information(found.confusion[part], found.prior, centre[part], worth_met, r)
    return ends


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
