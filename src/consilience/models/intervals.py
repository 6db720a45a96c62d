r"""95 % intervals of what a fit says: about workers, about class shares, and about its own labels.

They are computed once, after the fit, from its posteriors :math:`q`. Nothing is fitted again.

**Accuracy of a worker.** Let :math:`p_i` be the posterior probability that answer i of the worker is right. The
reported accuracy is :math:`x = \frac{1}{n} \sum_i p_i`. Answers whose truth is in doubt tell less. The share of
information that is left is

.. math:: f = \frac{\frac{1}{n} \sum_i p_i^2 - x^2}{x (1 - x)}

which is 1 if every truth is certain. (:math:`1 - f` is the derivative of the EM map of x. Above and below the line,
:math:`1 / 4 n` is added, for workers who hardly err.) So the n answers are worth :math:`n f / d` answers with a known
truth; answers to items that nobody else answered (in sequences: in sequences that nobody else answered) are worth
nothing, unless there is a graph or the label is known. With weights n is their sum: an answer of weight w is worth w
answers. (The accuracy reported of a worker with small weights is too low, since x hardly depends on the answers of the
worker, and an interval by their number would not contain the truth.) d is the design effect: 1 for independent items;
for sequences, and where answers are spread over labels, the variance of sums over (worker, sequence) pairs, or (worker,
item) pairs, relative to that of independent votes of the same weights, pooled over workers.

The fit pulls each worker towards the crowd: with :math:`\theta` the accuracy of the worker's reported matrix, x is too
close to the crowd's accuracy by :math:`(1 - f) (\theta - a)`. The interval is therefore centred at

.. math:: y = x + \frac{1 - f}{f} (x - \theta)

and its ends are quantiles of a Beta distribution with :math:`y n f / d` right and :math:`(1 - y) n f / d` wrong
answers, and half an answer more of each kind. The variance of what all workers share (:math:`S`, below) is added to
that of the worker's own answers, and makes these worth less.

**Informativeness.** The worker's matrix is tilted (the odds of all right answers are multiplied by one number) until
its accuracy is y. With :math:`I` the informativeness of this matrix :math:`\Gamma`, H the entropy of the class shares
:math:`\pi` and :math:`a_l = \sum_k \pi_k \Gamma_{kl}`, the delta method gives

.. math:: \operatorname{var} I = \frac{1}{H^2} \sum_k \frac{\pi_k^2}{n_k f / d} \operatorname{var}_{l \sim \Gamma_k}
          \log \frac{\Gamma_{kl}}{a_l}

The interval is symmetric in :math:`\sqrt I`, where the variance is stable as I goes to 0. Its lower end is 0 where
independence of answer and truth cannot be rejected.

**Class shares.** Shares, and the accuracy of all workers for each class, may move together. For item i, the scores of
the log odds of right answers to class k, shared by all workers, and of the class shares are

.. math:: u_{ik} = q_{ik} \sum_{a \in i} ([l_a = k] - \Gamma_{m_a, kk}), \quad v_{ik} = q_{ik} - \pi_k

Their covariance :math:`S = (\sum_i s_i s_i^T + P)^{-1}`, :math:`s_i = (u_i, v_i)`, is that of the estimates. P is the
information of the workers' prior: it holds classes together and leaves the common direction free. (Where answers vary
less than the matrices expect, because nobody errs, the difference is added to P.) For sequences
:math:`S (\sum_s s_s s_s^T + P) S` is taken, with scores summed over each sequence. The ends are Beta quantiles.

Nothing is known about the log odds of a class that nobody said, so S leaves its :math:`v_k` out, and the other
:math:`v_k` are about shares among the classes that were said. Its share is judged by
how many items the posteriors give it: with mean :math:`m_k` they are worth N items times

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
predicted hidden answers or known labels; see `consilience.models.calibration`. The ends are Beta quantiles, rounded
outwards to whole items.

Sums over items are taken over runs of items, so that no more memory is needed than the posteriors take.

**Streams.** If answers come in batches (see `consilience.models.streaming`), the sums over answers and items behind x,
f, d, S and :math:`f_k` are those over all batches. Those of a batch are taken at its own posteriors and matrices. Only
the expected accuracy is about the last batch alone, whose labels it is about.

Answers of a stream are worth less: the labels of earlier batches are not judged again. If the answers before a batch
were worth v, and a share :math:`\rho` of all n answers are new, the fit moves a worker's accuracy by a share g of the
way to where the batch alone would put it, and all are then worth :math:`v'`:

.. math:: g = \frac{\rho f}{1 - \rho (1 - f)}, \quad \frac{1}{v'} = \frac{(1 - g)^2}{v} + \frac{g^2}{\rho n f}

One batch has g = 1 and :math:`v' = n f`. S is multiplied by the sum of :math:`n f` over workers divided by that of
:math:`v'`.

All intervals take the model at its word that workers err independently. They do not cover errors that workers share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.gold import Gold
from ..data.graph import Graph
from ..data.responses import Responses
from ..data.vocabulary import MANY, count_codes
from ..kernels.types import Floats, freeze, read_only
from .cells import sum_by
from .information import informativeness

# So many entries of matrices are worked on at a time.
MOST_ENTRIES = 1 << 16
# So many items are worked on at a time, however many classes there are.
FEWEST_ITEMS = 1 << 10
# Items whose answers are looked at together.
ITEMS_AT_ONCE = 1 << 16
# Two-sided 95 %.
TAILS = (0.025, 0.975)
NORMAL = 1.959963984540054
# The least share of information that is believed to be left.
LEAST_LEFT = 0.01
# A design effect of 1 counts as if so many units had spoken for it.
FEW_UNITS = 10
# With more classes than this, shares are judged one by one: the matrix of scores would be large.
MOST_CLASSES = 50


class Intervals(NamedTuple):
    """The lower and upper ends of all intervals."""

    workers: Floats  # (M, 4): accuracy, low and high; informativeness, low and high
    prior: Floats  # (2, K)
    expected: Floats  # (2,): accuracy of the labels


class Estimates(NamedTuple):
    """What was learned."""

    confusion: Floats  # (M, K, A)
    counts: Floats  # (M, L, K): expected counts of answers
    prior: Floats  # (K,)
    pseudo_counts: Floats  # (K,): of a worker's answers about each class
    prior_is_known: bool
    judged: NDArray[np.bool_]  # (N,): whether answers to an item are judged by others


class Whole(NamedTuple):
    """The crowd, if the answers are a sample of it."""

    n_items: int
    confidence: float  # mean probability of the labels, at the power that is reported
    chances: Floats  # (3, M): as `sum_chances` returns, of all answers


class Sums(NamedTuple):
    """The sums over answers and items that intervals are made of. Those of the batches of a stream add up."""

    chances: Floats  # (3, M): as `sum_chances` returns
    judged: Floats  # (2, M): weights of the answers that something else judges, and of all
    votes: Floats  # (3,): what the design effect is made of; see `sum_votes`
    scores: Floats  # (2, 2 K, 2 K): products of scores of items, and of sequences; empty with too many classes
    lack: Floats  # (K,): by how much answers vary less than the matrices expect
    moments: Floats  # (2, K): posteriors, and their squares
    meant: Floats  # (K,): 1 if some answer means the class
    sizes: Floats  # (2,): items, and sequences
    worth: Floats  # (M,): number of answers with a known truth that would tell as much, if d were 1

    def plus(self, other: Sums) -> Sums:
        """Return the sums over both; `other` are those of a later batch."""
        chances, judged = self.chances + other.chances, self.judged + other.judged
        return Sums(
            chances,
            judged,
            self.votes + other.votes,
            self.scores + other.scores if self.scores.shape == other.scores.shape else np.empty((2, 0, 0)),
            self.lack + other.lack,
            self.moments + other.moments,
            np.maximum(self.meant, other.meant),
            self.sizes + other.sizes,
            add_worth(self.worth, other.judged[0], judged[0], measure_answers(chances).left),
        )


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


def sum_up(
    r: Responses,
    posterior: Floats,
    right: Floats,
    found: Estimates,
    chances: Floats,
    scale: float = 1.0,
    earlier: Sums | None = None,
) -> Sums:
    """Return the sums over these answers, of which there are `scale` times as many, and over earlier ones.

    `chances` are those of `sum_chances`.
    """
    total = chances if earlier is None else chances + earlier.chances
    said = count_codes(r.label, r.n_labels) > 0
    meant = find_meant(r, said) if earlier is None else find_meant(r, said) | (earlier.meant > 0)
    judged = sum_judged(r, found.judged)
    scores, lack = sum_scores(r, posterior, right, found, meant)
    sequences = 0 if r.sequences is None else int(scale * np.count_nonzero(np.diff(r.sequences.offsets)))
    own = Sums(
        chances,
        judged,
        sum_votes(r, posterior, total),
        scale * scores,
        scale * lack,
        np.stack([posterior.sum(axis=0), np.einsum("nk,nk->k", posterior, posterior)]),
        meant.astype(np.float64),
        np.array([len(posterior), sequences], np.float64),
        find_worth(chances, judged),
    )
    return own if earlier is None else earlier.plus(own)


def open_ends(ends: Floats, axis: int) -> Floats:
    """Return ends in which low and high, along this axis, are 0 and 1 where they are not known."""
    low, high = np.take(ends, 0, axis), np.take(ends, 1, axis)
    unknown = np.isnan(low) | np.isnan(high)
    return np.stack([np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)], axis)


def find_judged(r: Responses, gold: Gold | None, graph: Graph | None) -> NDArray[np.bool_]:
    """Tell to which items an answer is judged by something else: another worker's, neighbours, or a known label.

    A worker who is alone with an item, or with a sequence, is always right by the model, and this tells nothing.
    """
    if graph is not None:
        return np.ones(r.n_items, bool)
    several = r.have_several_workers()
    judged = several if r.sequences is None else several[r.sequences.of_items()]
    return judged if gold is None else judged | (gold.codes >= 0)


def right_matrix(confusion: Floats, r: Responses) -> Floats:
    """Return the probability that an answer of each worker is right, by class, (M, K)."""
    spoken = confusion[:, :, : r.n_labels].sum(axis=2)
    named = np.flatnonzero(r.label_of_class >= 0)
    right = np.zeros(confusion.shape[:2])
    right[:, named] = confusion[:, named, r.label_of_class[named]]
    return np.asarray(np.divide(right, spoken, out=np.zeros_like(right), where=spoken > 0))


# Workers


class Answers(NamedTuple):
    """What each worker's answers are worth, (M,) each."""

    total: Floats  # sum of weights
    accuracy: Floats  # as reported
    centre: Floats  # accuracy without the pull towards the crowd
    worth: Floats  # number of answers with a known truth that would tell as much


def weigh_answers(sums: Sums, right: Floats, found: Estimates, shared: Shared | None) -> Answers:
    """Return what each worker's answers are worth."""
    total, accuracy, _, left = measure_answers(sums.chances)
    believed = (found.counts.sum(axis=1) * right).sum(axis=1) / np.maximum(total, 1e-300)
    centre = np.clip(accuracy + (1 - left) / left * (accuracy - believed), 0.0, 1.0)
    worth = sums.worth / design_effect(sums.votes)
    if shared is not None:
        mean = right @ found.prior
        moves = np.concatenate([found.prior * right * (1 - right), found.prior * (right - mean[:, None])], axis=1)
        common = np.einsum("mi,ij,mj->m", moves, shared.covariance, moves)
        spread = np.maximum(centre * (1 - centre), 0.25 / (total + 1))
        worth = worth / (1 + worth * common / spread)
    return Answers(total, accuracy, centre, worth)


def judge_workers(r: Responses, mass: Floats, found: Estimates, answers: Answers) -> Floats:
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


class Measured(NamedTuple):
    """Each worker's sum of weights, accuracy, variance of an answer and share of information left, (M,) each."""

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
    """Return what the answers of each worker are worth, (M,), if all are fitted together."""
    total, _, _, left = measure_answers(chances)
    by_others, every = judged
    known = total if np.array_equal(by_others, every) else total * by_others / np.maximum(every, 1e-300)
    return np.asarray(known * left)


def add_worth(worth: Floats, new: Floats, total: Floats, left: Floats) -> Floats:
    """Return what the answers of each worker are worth after a batch; see the formula for streams above.

    `worth` is of the answers before, `new` are those of the batch, `total` are all of them, `left` is f.
    """
    share = new / np.maximum(total, 1e-300)
    gain = share * left / np.maximum(1 - share * (1 - left), 1e-300)
    doubt = (1 - gain) ** 2 / np.maximum(worth, 1e-300) + gain**2 / np.maximum(new * left, 1e-300)
    return np.where(new > 0, 1 / np.maximum(doubt, 1e-300), worth)


def sum_judged(r: Responses, judged: NDArray[np.bool_]) -> Floats:
    """Return each worker's weights of answers to items that are judged by something else, and of all, (2, M)."""
    sums = np.zeros((2, r.n_workers))
    for first in range(0, r.n_items, ITEMS_AT_ONCE):
        last = min(first + ITEMS_AT_ONCE, r.n_items)
        part = slice(r.offsets[first], r.offsets[last])
        counts = np.repeat(judged[first:last], np.diff(r.offsets[first : last + 1]))
        worker, weight = r.worker[part], r.weights(part)
        sums += [sum_by(worker, each, r.n_workers) for each in (np.where(counts, weight, 0.0), weight)]
    return sums


def sum_chances(r: Responses, posterior: Floats) -> Floats:
    """Return each worker's sums of weights, and of weights times the chance to be right and its square, (3, M)."""
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


def chances(r: Responses, posterior: Floats, item: NDArray[np.int64], part: slice) -> Floats:
    """Return the probability that each answer is right; `item` has the items of a part of the answers."""
    klass = r.class_of_label[r.label[part]]
    return np.where(klass >= 0, posterior[item, klass], 0.0)


def sum_votes(r: Responses, posterior: Floats, chances_of_all: Floats) -> Floats:
    """Return how much sums of votes over units vary, how much they would if votes were independent, and the units.

    A vote is all that a worker says about an item. Units are sequences, or items. Sums are of deviations from the
    worker's accuracy, which is that of `chances_of_all`: of these answers, and of others if there are any. Where each
    answer is a vote and a unit, nothing is to be summed.
    """
    if r.weight is None and r.sequences is None:
        return np.zeros(3)
    total, accuracy, spread, _ = measure_answers(chances_of_all)
    item, weight = r.item_of_answer(), r.weights()
    unit = item if r.sequences is None else r.sequences.of_items()[item]
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


def judge_information(confusion: Floats, prior: Floats, centre: Floats, met: Floats, r: Responses) -> Floats:
    """Return the interval of informativeness of some workers, (M, 2).

    `centre` (M,) is the accuracy to tilt matrices to, NaN to leave them as they are. `met` (M, K) is how many answers
    with a known truth their answers about each class are worth.
    """
    reported = informativeness(confusion, prior)
    tilted = tilt(confusion, prior, centre, r)
    middle = informativeness(tilted, prior)
    entropy = -float(np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
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


def tilt(confusion: Floats, prior: Floats, target: Floats, r: Responses) -> Floats:
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
    entropy = -float(np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
    reach = NORMAL / np.sqrt(2 * np.maximum(total, 0.5) * entropy) if entropy > 0 else np.zeros(len(total))
    ends[:, 2] = np.maximum(np.sqrt(information) - reach, 0.0) ** 2
    ends[:, 3] = np.minimum(np.sqrt(information) + reach, 1.0) ** 2
    return ends


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


# What all items say together


class Shared(NamedTuple):
    """The covariance of estimates that all items share."""

    covariance: Floats  # of the log odds of right answers by class, (K,), and of class shares
    meant: NDArray[np.bool_]  # (K,): whether there is an answer that means the class


def sum_scores(
    r: Responses, posterior: Floats, right: Floats, found: Estimates, meant: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the products of the scores of items and of sequences, (2, 2 K, 2 K), and the lack of variance, (K,).

    Where class shares are known, scores of these are 0. With too many classes there are no products.
    """
    n_classes = len(found.prior)
    lack, expected = np.zeros(n_classes), right * (1 - right)
    if n_classes > MOST_CLASSES:
        return np.empty((2, 0, 0)), lack
    size = n_classes if found.prior_is_known else 2 * n_classes
    information, clustered = np.zeros((2, size, size))
    shares = found.prior / found.prior[meant].sum()
    for run in cut_runs(r):
        q, votes = posterior[run], count_surprise(r, right, run)
        away = np.where(meant, q - q[:, meant].sum(axis=1, keepdims=True) * shares, 0.0)
        scores = np.concatenate([q * votes, away], axis=1)[:, :size]
        information += scores.T @ scores
        lack += np.sum(q**2 * (sum_answers(r, expected, run, power=2) - votes**2), axis=0)
        if r.sequences is not None:
            sums = sum_sequences(scores, r.sequences.offsets, run)
            clustered += sums.T @ sums
    return np.pad(np.stack([information, clustered]), ((0, 0), *[(0, 2 * n_classes - size)] * 2)), lack


def invert_scores(r: Responses, sums: Sums, right: Floats, found: Estimates) -> Shared | None:
    """Return the covariance that sums of scores call for; None if there are none, or numbers too large."""
    n_classes = len(found.prior)
    if not sums.scores.size:
        return None
    size = n_classes if found.prior_is_known else 2 * n_classes
    information, clustered = sums.scores[:, :size, :size]
    answered = sums.judged[1] > 0
    held = found.pseudo_counts * (right * (1 - right))[answered].sum(axis=0)
    prior = np.zeros((size, size))
    if held.sum() > 0:
        prior[:n_classes, :n_classes] = np.diag(held) - np.outer(held, held) / held.sum()
    # Where nobody errs, scores vary less than they could: then what the matrices expect counts.
    prior[range(n_classes), range(n_classes)] += np.maximum(sums.lack, 0.0)
    information = information + prior
    if not np.isfinite(information).all():
        return None
    covariance = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    if r.sequences is not None:
        covariance = covariance @ (clustered + prior) @ covariance * few_units(int(sums.sizes[1]))
    # In a stream, less is known than the scores tell.
    covariance = covariance * max(find_worth(sums.chances, sums.judged).sum() / max(sums.worth.sum(), 1e-300), 1.0)
    return Shared(np.pad(covariance, (0, 2 * n_classes - size)), sums.meant > 0)


def find_meant(r: Responses, said: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which classes some answer means: a label that was given or, where it is an answer, silence."""
    meant = r.vote_shares() > 0 if r.silence_counts else np.zeros(r.n_classes, bool)
    named = np.flatnonzero(r.label_of_class >= 0)
    meant[named] |= said[r.label_of_class[named]]
    return meant


def cut_runs(r: Responses) -> Iterator[slice]:
    """Yield runs of items, with about `MOST_ENTRIES` probabilities each; sequences are not cut."""
    ends = np.append(np.arange(0, r.n_items, max(FEWEST_ITEMS, MOST_ENTRIES // r.n_classes)), r.n_items)
    if r.sequences is not None:
        ends = np.unique(r.sequences.offsets[np.searchsorted(r.sequences.offsets, ends)])
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield slice(first, last)


def sum_sequences(values: Floats, offsets: NDArray[np.int64], run: slice = slice(None)) -> Floats:
    """Return the sums of the rows of each sequence that has items in a run; `values` are those of the run."""
    first = offsets[:-1][np.diff(offsets) > 0]
    begin, end, _ = run.indices(int(offsets[-1]))
    return np.asarray(np.add.reduceat(values, first[(first >= begin) & (first < end)] - begin, axis=0))


def few_units(n_units: int) -> float:
    """Return by what a variance from few units must be multiplied where quantiles are those of a normal."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n_units - 1, 1), TAILS[1]) / NORMAL) ** 2


def sum_answers(r: Responses, values: Floats, run: slice = slice(None), power: int = 1) -> Floats:
    """Return for each item of a run the sum over its answers of `values` of their workers, times weight ** power."""
    offsets, answers = locate_answers(r, run)
    if r.n_responses >= MANY:
        from ..kernels.answers import sum_rows

        table = np.ascontiguousarray(values).reshape(len(values), -1)
        sums = np.zeros((len(offsets) - 1, table.shape[1]))
        sum_rows(r.worker[answers], offsets, given_weights(r, answers), power, read_only(table), sums)
        return sums.reshape(-1, *values.shape[1:])
    from scipy.sparse import csr_array

    shape = (len(offsets) - 1, r.n_workers)
    weight = r.weights(answers) ** power
    return np.asarray(csr_array((weight, r.worker[answers], offsets), shape=shape) @ values)


def locate_answers(r: Responses, run: slice) -> tuple[NDArray[np.int64], slice]:
    """Return where the answers to each item of a run begin and end, from 0, and which answers these are."""
    first, last, _ = run.indices(r.n_items)
    offsets = r.offsets[first : last + 1]
    return freeze(offsets - offsets[0]), slice(int(offsets[0]), int(offsets[-1]))


def given_weights(r: Responses, answers: slice = slice(None)) -> Floats:
    """Return the weights of some answers as kernels take them: empty if there are none."""
    return freeze(np.empty(0)) if r.weight is None else r.weight[answers]


def count_surprise(r: Responses, right: Floats, run: slice = slice(None)) -> Floats:
    """Return for each item of a run the sum over its answers of [l = k] - Gamma_kk, (n, K)."""
    offsets, answers = locate_answers(r, run)
    n_items = len(offsets) - 1
    if r.n_responses >= MANY:
        from ..kernels.answers import add_votes

        votes = -sum_answers(r, right, run)
        add_votes(r.label[answers], offsets, given_weights(r, answers), read_only(r.class_of_label), votes)
        return votes
    klass = r.class_of_label[r.label[answers]]
    named = np.flatnonzero(klass >= 0)
    place = np.repeat(np.arange(n_items), np.diff(offsets))[named] * r.n_classes + klass[named]
    votes = sum_by(place, r.weights(answers)[named], n_items * r.n_classes).reshape(n_items, r.n_classes)
    return np.asarray(votes - sum_answers(r, right, run))


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


def choose(values: Floats, codes: NDArray[np.int64]) -> Floats:
    """Return the entry of each row that belongs to its label."""
    return np.asarray(values[np.arange(len(values)), codes])


def sum_slopes(q: Floats, codes: NDArray[np.int64], chosen: Floats, surprise: Floats) -> Floats:
    """Return the sum over items of the derivatives of the label's probability by what all items share, (2 K,)."""
    away = -chosen[:, None] * q
    away[np.arange(len(q)), codes] += chosen
    return np.concatenate([np.einsum("nk,nk->k", away, surprise), away.sum(axis=0)])


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
