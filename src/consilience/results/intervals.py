r"""95% intervals of what a fit says: about workers, about class shares, and about its own labels.

They are computed once, after the fit, from its posteriors :math:`q`. Nothing is fitted again.

**Accuracy.** A worker's n answers, a share x of which is right by the posteriors, are worth :math:`n f / d` answers
with a known truth. Here :math:`p_a` is the probability that answer a is right, and

.. math:: f = \frac{\frac{1}{n} \sum_a p_a^2 - x^2}{x (1 - x)}

the share of information that is left (Louis): 1 if every truth is certain. (:math:`1 - f` is the derivative of the EM
map of x. Above and below the line, :math:`1 / 4 n` is added, for workers who hardly err.) Answers to items that nobody
else answered (in sequences: in sequences that nobody else answered) are worth nothing, unless there is a graph or the
label is known. d is the design effect: 1 for independent items; for sequences the variance of sums over (worker,
sequence) pairs, relative to that of independent votes, pooled over workers. The fit pulls each worker towards the
crowd: with :math:`\theta` the accuracy of the worker's reported matrix, x is too close to the crowd's accuracy a by
:math:`(1 - f) (\theta - a)`. The interval is therefore centred at

.. math:: y = x + \frac{1 - f}{f} (x - \theta)

and its ends are quantiles of a Beta distribution with :math:`y n f / d` right and :math:`(1 - y) n f / d` wrong
answers, and half an answer more of each kind. The variance of what all workers share (:math:`S`, below) is added to
that of the worker's own answers, and makes these worth less.

**Weights.** All sums are weighted by how much answers count, as those of near-copies or with weights.

**What all share.** Class shares :math:`\pi`, and the accuracy of all workers for each class, may move together. The
scores for item i of the log odds of right answers to class k, shared by all workers, and of the class shares are

.. math:: u_{ik} = q_{ik} \sum_{a \in i} ([l_a = k] - \Gamma_{m_a, kk}), \quad v_{ik} = q_{ik} - \pi_k

Their covariance :math:`S = (\sum_i s_i s_i^T + P)^{-1}`, :math:`s_i = (u_i, v_i)`, is that of the estimates. P is the
information of the workers' prior: it holds classes together and leaves the common direction free. (Where answers vary
less than the matrices expect, because nobody errs, the difference is added to P.) For sequences
:math:`S (\sum_s s_s s_s^T + P) S` is taken, with scores summed over each sequence. Nothing is known about the log odds
of a class that nobody said, so S leaves its :math:`v_k` out, and the other :math:`v_k` are about shares among the
classes that were said.

**Informativeness.** The worker's matrix is tilted (the odds of all right answers are multiplied by one number) until
its accuracy is y. With :math:`I` the informativeness of this matrix :math:`\Gamma`, H the entropy of the class shares
:math:`\pi` and :math:`a_l = \sum_k \pi_k \Gamma_{kl}`, the delta method gives

.. math:: \operatorname{var} I = \frac{1}{H^2} \sum_k \frac{\pi_k^2}{n_k f / d} \operatorname{var}_{l \sim \Gamma_k}
          \log \frac{\Gamma_{kl}}{a_l}

The interval is symmetric in :math:`\sqrt I`, where the variance is stable as I goes to 0. Its lower end is 0 where
independence of answer and truth cannot be rejected.

**Class shares.** Shares :math:`\pi` move by :math:`\operatorname{diag}(\pi) - \pi \pi^T` times the change of their log
odds, whose covariance is the part of S that is about them. The ends are Beta quantiles. S does not know of a class that
nobody said. Its share is judged by how many items the posteriors give it: with mean :math:`m_k` they are worth N items
times

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
predicted hidden answers or known labels; see `consilience.inference.hidden_answers`. For a share of N whole items with
mean x and variance v the ends are quantiles of :math:`\operatorname{Beta}(x n, (1 - x) n)` with
:math:`n = x (1 - x) / v`, rounded outwards to whole items.

**Ordered classes.** How many labels are at most one level off, and by how many levels they are off, is judged in the
same way: c is the mean of that figure by the probabilities of the item, and its variance stands for
:math:`c_i (1 - c_i)`.

**Streams.** If answers come in batches, the sums over answers and items are those over all batches, each taken at its
own posteriors and matrices. Only the expected accuracy is about the last batch alone, whose labels it is about.

**Votes.** Where vote shares are all that is known, they are taken for the truth. Class shares vary as the vote shares
of items do, or as their sums over sequences.

All intervals take the model at its word that workers err independently. They do not cover errors that workers share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, entr, stdtrit

from ..answers.answers import Answers
from ..answers.columns import Indices
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..inference import NORMAL_95, TAILS_95
from ..inference.cells import sum_by
from ..inference.em import Estimates, Problem
from ..inference.hidden_answers import raise_where
from ..inference.observations import Observations
from ..inference.structures import Summary
from ..inference.workers.base import Prior
from ..inference.workers.one_coin import find_errable
from ..kernels import NEARLY_ZERO, Floats, Integers, Rows, Truths, freeze, read_only
from ..limits import ITEMS_AT_ONCE, release_mapped, side_by_side
from .calibration import Calibrated, find_raised

# The least share of information that is believed to be left.
LEAST_LEFT = 0.01
# A design effect of 1 counts as if so many units had spoken for it.
FEW_UNITS = 10
# Answers count as checked if others check this share of the items, or so many labels are known.
LEAST_CHECKED, ENOUGH_KNOWN = 0.1, 10
# Why probabilities are not reported, if nothing checks the answers.
UNCHECKED = "hardly any item has answers of two workers, so nothing checks them"
# So many entries of matrices are worked on at a time, of so many items at least.
ENTRIES_AT_ONCE, FEWEST_ITEMS_AT_ONCE = 1 << 16, 1 << 10
# The least share of the classes that somebody said: a prior may rule all of them out.
SMALLEST_SHARE = 1e-100
# With more classes than this, shares are judged one by one: the matrix of scores would be large.
MOST_CLASSES_TOGETHER = 50
# How much answers count, if all count fully: kernels take it as no numbers.
ALL_FULLY = freeze(np.empty(0))


class Intervals(NamedTuple):
    """The lower and upper ends of all intervals."""

    # Accuracy, low and high; informativeness, low and high; None for votes.
    workers: Floats | None
    prior: Floats
    expected: Floats  # accuracy of the labels
    # Value and ends of the share of labels at most one level off, and of the levels off; None without raters.
    levels: Floats | None = None


class IntervalInputs(NamedTuple):
    """The estimates that intervals depend on, with what follows from them."""

    estimates: Estimates
    prior: Floats  # (K,): the class shares
    pseudo_counts: Floats  # (K,) or (1,): of a worker's answers about each class; see `WorkerModel`
    prior_is_known: bool
    judged: Truths  # (N,): whether answers to an item are judged by others
    right: Floats  # (M, K): the probability that an answer of each worker is right


class Sums(NamedTuple):
    """The sums over answers and items that intervals are made of. Those of the batches of a stream add up."""

    chances: Floats  # (3, M): number of answers, and sums of the chance to be right and of its square
    judged: Floats  # (2, M): number of the answers that something else judges, and of all
    votes: Floats  # (3,): what the design effect is made of; see `compare_votes`
    scores: Floats  # (2, 2 K, 2 K): products of scores of items, and of sequences; empty with too many classes
    lack: Floats  # (K,): by how much answers vary less than the matrices expect
    moments: Floats  # (2, K): posteriors, and their squares
    meant: Floats  # (K,): 1 if some answer means the class
    sizes: Floats  # (2,): items, and sequences
    summary: Summary | None = None  # of the structure, which the next batch continues from

    def plus(self, earlier: Sums) -> Sums:
        """The sums with those of earlier batches."""
        own = self
        if own.scores.shape != earlier.scores.shape:  # there are too many classes by now
            earlier, own = (each._replace(scores=np.empty((2, 0, 0))) for each in (earlier, own))
        added: Any = [before + now for before, now in zip(earlier[:-1], own[:-1], strict=True)]
        return Sums(*added)._replace(meant=own.meant)


# ------------------------------------------------------------------------------------------- what judges the answers


def find_checked(r: Answers, gold: Gold | None, graph: Graph | None) -> Truths:
    """To which items an answer is judged by something else: another worker's, neighbours, or a known label.

    A worker who is alone with an item, or with a sequence, is always right by the model, and this tells nothing.
    """
    if graph is not None:
        return np.ones(r.n_items, bool)
    several = r.have_several_workers()
    judged = several if r.sequences is None else several[r.sequences.of_items()]
    return judged if gold is None else judged | (gold.codes >= 0)


def are_checked(r: Answers, gold: Gold | None, is_linked: bool) -> bool:
    """Whether anything checks the answers: others about the same item, or sequence; known labels, or silence.

    Where items are linked, or more is known of them than their answers, this checks them too. A few items that others
    answered as well, or whose label is known, say nothing about a crowd of single answers.
    """
    n_answered = int(np.count_nonzero(np.diff(r.offsets)))
    n_known = 0 if gold is None else gold.n_known
    if r.silence_counts or is_linked or n_known >= max(min(ENOUGH_KNOWN, LEAST_CHECKED * n_answered), 1):
        return True
    n_checked = np.count_nonzero(find_checked(r, None, None))
    return bool(n_checked >= max(LEAST_CHECKED * n_answered, 1))


def is_share_checked(n_checked: float, n_all: float) -> bool:
    """Whether enough of all items, or answers, are checked to say something of the others.

    >>> is_share_checked(1, 300), is_share_checked(30, 300), is_share_checked(0, 0)
    (False, True, False)
    """
    return n_checked > 0 and n_checked >= LEAST_CHECKED * n_all


# ------------------------------------------------------------------------------------------------------ the intervals


def gather_inputs(
    observations: Observations, problem: Problem, estimates: Estimates, prior: Prior, prior_is_known: bool = False
) -> IntervalInputs:
    """The inputs of intervals; `prior` is that of the workers."""
    r = observations.responses
    named = np.flatnonzero(r.label_of_class >= 0)
    if estimates.worker_model.accuracy_alone:
        right = np.zeros((r.n_workers, r.n_classes))
        right[:, named] = estimates.confusion[:, 0, :1]
        spoken = np.ones(right.shape)
    else:
        spoken = estimates.confusion[:, :, : r.n_labels].sum(axis=2)
        right = np.zeros(spoken.shape)
        right[:, named] = estimates.confusion[:, named, r.label_of_class[named]]
    return IntervalInputs(
        estimates,
        estimates.structure.mean,
        np.asarray(prior.smoothing.sum(axis=1).mean(axis=0)),
        prior_is_known,
        find_checked(r, observations.gold, problem.graph),
        np.divide(right, spoken, out=np.zeros_like(right), where=spoken > 0),
    )


def find_intervals(
    r: Answers,
    sums: Sums,
    items: Indices,
    posterior: Floats,
    codes: NDArray[np.int64],
    inputs: IntervalInputs,
    left_out: Floats,
    shown: Floats,
    calibrated: Calibrated,
) -> Intervals:
    """The intervals of a fit.

    Parameters
    ----------
    r : Answers
        The answers.
    sums : Sums
        Those of these answers, and of earlier batches of a stream.
    items : array (n,)
        Some of the items, or all, by which variances of what is said of labels are judged.
    posterior : array (N, K)
        Posteriors of the fit, not calibrated.
    codes : array (N,)
        Labels.
    inputs : IntervalInputs
        The estimates that intervals depend on.
    left_out : array (n, K)
        Posteriors that leave each of these items out of what was learned of its workers, not raised to a power.
    shown : array (N, K)
        The probabilities that are reported.
    calibrated : Calibrated
        The power that is reported, and others that are as likely.
    """
    # Weights may be so large or so small that sums of their products are infinite, or 0: then nothing is known.
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        shared = invert_scores(r, sums, inputs)
        workers, worth = find_worker_intervals(r, sums, inputs, shared)
        shares = find_share_intervals(sums, inputs, shared)

        # Figures of the labels, each with both ends of its interval, (F, 3). The first is the share that is right. Of
        # levels, further ones are the share at most one level off, and the levels off. The figures are means over all
        # items, and their variances are those of some of the items.
        n_items, n = len(codes), len(items)
        away = np.abs(np.arange(r.n_classes)[:, None] - np.arange(r.n_classes)).astype(np.float64)
        figures = [(away == 0).astype(np.float64)]
        if inputs.estimates.worker_model.are_raters:
            figures += [(away <= 1).astype(np.float64), away]
        most = np.array([1.0, 1.0, max(r.n_classes - 1.0, 1.0)])[: len(figures)]

        def sum_up(start: int, stop: int) -> list[Floats]:
            """The added of the figures over runs of items, one by one: they do not depend on the parts."""
            runs = (slice(each * ITEMS_AT_ONCE, (each + 1) * ITEMS_AT_ONCE) for each in range(start, stop))
            return [np.array([np.sum(figure[codes[run]] * shown[run]) for figure in figures]) for run in runs]

        parts = side_by_side(sum_up, -(-n_items // ITEMS_AT_ONCE), 4)
        reported = sum(chain.from_iterable(parts), np.zeros(len(figures))) / n_items

        # The variance of the log odds of an item's label that an answer of each worker adds to it. Prior and answers
        # together say as much about a worker's log odds as `worth` and the pseudo-counts do.
        accuracy = inputs.right @ inputs.prior
        doubt = 1 / np.maximum((worth + inputs.pseudo_counts.sum()) * np.maximum(accuracy * (1 - accuracy), 1e-3), 1e-3)

        # By power and figure: added of its mean, its variance and its bend, and its slope by what all items share.
        powers, times = np.unique(calibrated.powers, return_counts=True)
        added, slopes = np.zeros((len(powers), 3, len(figures))), np.zeros((len(powers), len(figures), 2 * r.n_classes))
        gap, at_power = np.zeros(len(figures)), np.zeros(len(figures))
        part = r if n == n_items else r.about(items)
        changed, amount = (
            find_raised(inputs.estimates.structure, part),
            ALL_FULLY if part.amount is None else part.amount,
        )
        answers = part.worker, part.label, part.offsets, amount, part.class_of_label
        for run in cut_runs(n, r.n_classes):
            rows, label = np.arange(run.stop - run.start), codes[items[run]]
            surprise, doubts = sum_by_item(*answers, None if shared is None else inputs.right, doubt, run)
            raised = raise_where(changed[run], left_out[run], calibrated.calibration.power)
            for f, figure in enumerate(figures):
                # To leave out one item at a time takes away a part of what the fit confirms itself in; half as much may
                # be left.
                gap[f] += np.sum(figure[label] * (posterior[items[run]] - left_out[run])) / 2 / n
                at_power[f] += np.sum(figure[label] * raised) / n
            for t, power in enumerate(powers.tolist()):
                q = raise_where(changed[run], left_out[run], power)
                chosen = q[rows, label]
                bend = doubts * chosen * (1 - chosen) * (2 * chosen - 1)
                for f, figure in enumerate(figures):
                    value = figure[label]
                    mean = np.einsum("nk,nk->n", q, value)
                    # How far the label is from what the other classes would be worth.
                    lead = (value[rows, label] - mean) / np.maximum(1 - chosen, NEARLY_ZERO)
                    variance = np.einsum("nk,nk->n", q, value**2) - mean**2
                    added[t, :, f] += mean.sum(), np.maximum(variance, 0.0).sum(), np.sum(bend * lead)
                    if shared is not None:
                        slopes[t, f] += sum_slopes(q, value, mean, surprise)
        means, variances = added[:, 0] / n, added[:, 1] / n / n_items
        # A probability is not linear in log odds: what is not known of these moves its mean.
        variances += (0.5 * powers[:, None] ** 2 * added[:, 2] / n) ** 2
        if shared is not None:
            slopes *= powers[:, None, None] / n
            variances += np.einsum("tfi,ij,tfj->tf", slopes, shared, slopes)
        mean = np.average(means, axis=0, weights=times)
        variance = np.average(variances + (means - mean) ** 2, axis=0, weights=times) + gap**2
        # Of a part of the items, and of what known labels teach, the mean is that of what is reported.
        mean = np.clip(mean + reported - at_power, 0.0, most)
        ends = zip((mean / most).tolist(), (variance / most**2).tolist(), strict=True)
        low, high = (np.array([accuracy_ends(*each, n_items) for each in ends]) * most[:, None]).T
        labels = np.column_stack([reported, np.minimum(low, reported), np.maximum(high, reported)])
    release_mapped()
    # From 0 to 1 where nothing is known. A worker without answers has no interval.
    pairs = workers.reshape(-1, 2, 2)
    pairs[np.isnan(pairs).any(axis=2) & (sums.chances[0] > 0)[:, None]] = 0.0, 1.0
    shares[:, np.isnan(shares).any(axis=0)] = [[0.0], [1.0]]
    if np.isnan(labels[0]).any():
        labels[0, 1:] = 0.0, 1.0
    return Intervals(workers, shares, labels[0, 1:], labels[1:] if len(labels) > 1 else None)


# ------------------------------------------------------------------------------------------ sums over answers and items


def cut_runs(n_items: int, n_classes: int, sequences: Integers | None = None) -> Iterator[slice]:
    """Runs of items, with about `ENTRIES_AT_ONCE` entries of matrices each; sequences, by offsets, are not cut."""
    ends = np.append(np.arange(0, n_items, max(FEWEST_ITEMS_AT_ONCE, ENTRIES_AT_ONCE // n_classes)), n_items)
    if sequences is not None and len(sequences):
        ends = np.unique(sequences[np.searchsorted(sequences, ends)])
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield slice(first, last)


def sum_sequences(values: Floats, offsets: NDArray[np.int64], run: slice = slice(None)) -> Floats:
    """The sums of the rows of each sequence that has items in a run; `values` are those of the run."""
    first = offsets[:-1][np.diff(offsets) > 0]
    begin, end, _ = run.indices(int(offsets[-1]))
    return np.asarray(np.add.reduceat(values, first[(first >= begin) & (first < end)] - begin, axis=0))


def sum_by_item(
    worker: Rows,
    label: Rows,
    offsets: Integers,
    amount: Floats,
    class_of_label: Integers,
    right: Floats | None,
    variance: Floats,
    run: slice = slice(None),
) -> tuple[Floats, Floats]:
    """For each item of a run two sums over its answers, which have the weights w.

    The first is that of w ([l = k] - Gamma_kk), (n, K), with `right` (M, K); the second that of w^2 times a variance
    (M, ...) of their workers, (n, ...). Without `right` the first is not computed.
    """
    from ..kernels.answers import add_votes, sum_rows

    first, last, _ = run.indices(len(offsets) - 1)
    answers = slice(offsets[first], offsets[last])
    starts = freeze(offsets[first : last + 1] - offsets[first])
    who, amount = worker[answers], amount[answers] if len(amount) else amount
    table = np.ascontiguousarray(variance).reshape(len(variance), math.prod(variance.shape[1:]))
    variances = np.zeros((last - first, table.shape[1]))
    sum_rows(who, starts, amount, 2, read_only(table), variances)
    votes = np.zeros((last - first, 0 if right is None else right.shape[1]))
    if right is not None:
        sum_rows(who, starts, amount, 1, read_only(np.ascontiguousarray(-right)), votes)
        add_votes(label[answers], starts, amount, read_only(class_of_label), votes)
    return votes, variances.reshape(-1, *variance.shape[1:])


def compare_votes(r: Answers, posterior: Floats, chances: Floats) -> Floats:
    """How much sums of votes over units vary, how much they would if votes were independent, and the number of units.

    A vote is all that a worker says about an item. Units are sequences, or items where answers have weights. Sums are
    of deviations from the worker's accuracy, which is that of `chances`: of these answers, and of others if there are
    any. Zeros where votes do not vary.
    """
    total, accuracy, spread, _ = measure_answers(chances)
    order = np.argsort(r.worker, kind="stable")  # items and units of a worker are in order already
    owner, item, weight = r.worker[order], r.item_of_answer()[order], r.weights()[order]
    klass = r.class_of_label[r.label[order]]
    away = weight * (np.where(klass >= 0, posterior[item, klass], 0.0) - accuracy[owner])
    other_worker = np.append(True, np.diff(owner) != 0)
    votes, units = (
        np.flatnonzero(other_worker | np.append(True, np.diff(place) != 0)) for place in (item, r.owners_of(item))
    )
    alone, together = (
        sum_by(owner[first], np.add.reduceat(weight, first) ** 2, r.n_workers) for first in (votes, units)
    )
    # The variance of the sums about each worker's mean, were all votes independent.
    scale = np.maximum(total**2, NEARLY_ZERO)
    free = spread * alone * np.maximum(1 - together / scale, 0.0) / np.maximum(1 - alone / scale, 1e-9)
    if free.sum() <= 1e-9 * alone.sum():
        return np.zeros(3)
    varied = np.sum(np.add.reduceat(away, units) ** 2)
    if r.sequences is None:  # of the labels that an answer is spread over one is right, so that votes vary less
        varied = max(varied, free.sum())
    return np.array([varied, free.sum(), len(units)], np.float64)


# ----------------------------------------------------------------------------------------- what the sums say of workers


def measure_answers(chances: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Each worker's number of answers, accuracy, variance of an answer and share of information left, (M,) each."""
    total, right, squares = chances
    scale = np.maximum(total, NEARLY_ZERO)
    accuracy = right / scale
    spread = np.maximum(squares / scale - accuracy**2, 0.0)
    # Of one who hardly errs it cannot be told how much is left: what is expected to be wrong is less than an answer.
    sure = 0.25 / scale
    left = np.clip((spread + sure) / (accuracy * (1 - accuracy) + sure), LEAST_LEFT, 1.0)
    return total, accuracy, spread, left


def invert_scores(r: Answers, sums: Sums, inputs: IntervalInputs) -> Floats | None:
    """The covariance of what all items share: log odds of right answers by class, and of class shares.

    None if there are no scores, or numbers too large.
    """
    n_classes = len(inputs.prior)
    if not sums.scores.size:
        return None
    size = n_classes if inputs.prior_is_known else 2 * n_classes
    information, clustered = sums.scores[:, :size, :size]
    answered = sums.judged[1] > 0
    held = inputs.pseudo_counts * (inputs.right * (1 - inputs.right))[answered].sum(axis=0)
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
    return np.pad(covariance, (0, 2 * n_classes - size))


def find_worker_intervals(
    r: Answers, sums: Sums, inputs: IntervalInputs, shared: Floats | None
) -> tuple[Floats, Floats]:
    """The intervals of accuracy and informativeness, (M, 4), NaN for workers without answers; and the worth.

    The worth (M,) is the number of answers with a known truth that would tell as much as a worker's answers. `shared`
    is the covariance of what all items share.
    """
    right, prior, estimates = inputs.right, inputs.prior, inputs.estimates
    total, accuracy, _, left = measure_answers(sums.chances)
    by_others, every = sums.judged
    varied, free, n_units = sums.votes.tolist()
    effect = (varied / free * n_units + FEW_UNITS) / (n_units + FEW_UNITS) if free > 0 else 1.0
    worth = np.asarray(total * left * by_others / np.maximum(every, NEARLY_ZERO) / effect)
    is_coin = estimates.worker_model.accuracy_alone
    # Of an accuracy alone it does not matter about which of the classes that have labels an answer is.
    met = estimates.counts[:, :2].sum(axis=1) if is_coin else estimates.counts.sum(axis=1)
    believed = (met * right.max(axis=1, keepdims=True) if is_coin else met * right).sum(axis=1)
    believed = believed / np.maximum(total, NEARLY_ZERO)
    centre = np.clip(accuracy + (1 - left) / left * (accuracy - believed), 0.0, 1.0)  # without the pull to the crowd
    if shared is not None:
        mean = right @ prior
        moves = np.concatenate([prior * right * (1 - right), prior * (right - mean[:, None])], axis=1)
        common = np.einsum("mi,ij,mj->m", moves, shared, moves)
        worth = worth / (1 + worth * common / np.maximum(centre * (1 - centre), 0.25 / (total + 1)))
    ends = np.full((r.n_workers, 4), np.nan)
    answered = total > 0
    nobody_errs = r.n_labels == 1 and r.n_classes == 1
    ends[answered, :2] = 1.0 if nobody_errs else beta_ends(centre, worth, accuracy).T[answered]

    if is_coin:
        # The further the accuracy is from that of a guess, the more answers tell.
        reported, guess = estimates.confusion[:, 0, 0], 1.0 / max(r.n_labels, 1)
        low, high = np.minimum(ends[:, 0], reported), np.maximum(ends[:, 1], reported)
        told = np.stack([inform_coins(each, prior, r.class_of_label) for each in (low, high)])
        told[:, np.isnan(ends[:, 0])] = np.nan
        ends[:, 2] = np.where((low <= guess) & (guess <= high), 0.0, told.min(axis=0))
        ends[:, 3] = told.max(axis=0)
        return ends, worth
    # Informativeness, of matrices in which the odds of right answers are multiplied until the accuracy is the centre.
    # Where silence is an answer, a matrix has learned from it too, and says more than the accuracy of what was said.
    confusion, named = estimates.confusion, np.flatnonzero(r.label_of_class >= 0)
    share = prior[named]
    target, entropy = (centre * worth + 0.5) / (worth + 1), float(entr(prior).sum())
    if r.silence_counts:
        met, target = np.broadcast_to(sums.moments[0], met.shape), np.full(r.n_workers, np.nan)
    size = max(1, ENTRIES_AT_ONCE // max(1, confusion[0].size))
    for first in range(0, r.n_workers, size):
        part = slice(first, first + size)
        reported = informativeness(confusion[part], prior)
        if entropy <= 1e-100:
            ends[part, 2:] = reported[:, None]
            continue
        right, wanted = confusion[part][:, named, r.label_of_class[named]], target[part]
        low, high = np.full(len(right), -12.0), np.full(len(right), 12.0)
        for _ in range(30):
            at = (low + high) / 2
            raised = right * np.exp(at)[:, None]
            below = (share * raised / (1 - right + raised)).sum(axis=1) < wanted
            low, high = np.where(below, at, low), np.where(below, high, at)
        tilted = confusion[part].copy()
        tilted[:, named, r.label_of_class[named]] *= np.exp(np.where(np.isnan(wanted), 0.0, low))[:, None]
        tilted = np.asarray(tilted / tilted.sum(axis=2, keepdims=True))
        middle = informativeness(tilted, prior)
        answer = np.einsum("k,mkl->ml", prior, tilted)
        odds = np.log(np.maximum(tilted, NEARLY_ZERO) / np.maximum(answer, NEARLY_ZERO)[:, None, :])
        telling = np.einsum("mkl,mkl->mk", tilted, odds)
        variance = np.maximum(np.einsum("mkl,mkl,mkl->mk", tilted, odds, odds) - telling**2, 0.0)
        # How many answers with a known truth the answers about each class are worth.
        worth_met = met[part] * (worth / np.maximum(total, NEARLY_ZERO))[part, None]
        error = (prior**2 * variance / np.maximum(worth_met, 0.5)).sum(axis=1) / entropy**2
        # Of one who tells nothing, 2 n I H has a chi-squared distribution, and its root a variance of about a half.
        nothing = 1 / (2 * np.maximum(worth_met.sum(axis=1), 0.5) * entropy)
        deviation = NORMAL_95 * np.sqrt(np.where(middle > 1e-8, error / (4 * np.maximum(middle, 1e-8)), nothing))
        ends[part, 2] = np.minimum(np.maximum(np.sqrt(middle) - deviation, 0.0) ** 2, reported)
        ends[part, 3] = np.maximum(np.minimum(np.sqrt(middle) + deviation, 1.0) ** 2, reported)
    return ends, worth


def informativeness(confusion: Floats, prior: Floats, spoken: bool = False) -> Floats:
    """I(answer; truth) / H(truth) for each worker, between 0 and 1; of those who speak, if the last answer is silence.

    Where silence is an answer, a function that seldom speaks tells little about most items, however right it is. What
    an answer tells on average when a worker speaks is

        sum_l P(l) KL(P(truth | l) || P(truth)) / sum_l P(l),   over all answers l but the last one
    """
    joint = prior[None, :, None] * (confusion[:, :, :-1] if spoken else confusion)
    independent = prior[None, :, None] * joint.sum(axis=1, keepdims=True)
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=(joint > 0) & (independent > 0))
    information = np.sum(joint * np.log(ratio), axis=1).sum(axis=1)
    if spoken:
        speech = joint.sum(axis=(1, 2))
        information = np.divide(information, speech, out=np.zeros(len(joint)), where=speech > 0)
    entropy = entr(prior).sum()
    return np.asarray(np.clip(information / entropy, 0.0, 1.0)) if entropy > 0 else np.zeros(len(joint))


def inform_coins(accuracy: Floats, prior: Floats, class_of_label: NDArray[np.int64]) -> Floats:
    """The informativeness of workers with these accuracies, whatever the truth, who err evenly.

    With L labels, and p_k the share of class k, an answer l that names k has the probability
    q_l = a p_k + (1 - a) (1 - p_k) / (L - 1), and I = - sum_l q_l log q_l + a log a + (1 - a) log (1 - a) / (L - 1).
    About classes without a label answers tell nothing.
    """
    can_err, n_labels, entropy = find_errable(class_of_label, len(prior)), len(class_of_label), float(entr(prior).sum())
    if entropy <= 0 or not can_err.any():
        return np.zeros(len(accuracy))
    named = class_of_label >= 0
    share, told = np.where(named, prior[class_of_label], 0.0), prior[can_err].sum()
    information = np.empty(len(accuracy))
    for m, a in enumerate(accuracy.tolist()):
        wrong = (1 - a) / (n_labels - 1)
        spoken = entr(a * share + wrong * (told - share) + (1 - told) / n_labels).sum()
        silent = told * (entr(a) + (n_labels - 1) * entr(wrong)) + (1 - told) * np.log(n_labels)
        information[m] = spoken - silent
    return np.clip(information / entropy, 0.0, 1.0)


# ------------------------------------------------------------------------------------------ of class shares, and labels


def find_share_intervals(sums: Sums, inputs: IntervalInputs, shared: Floats | None) -> Floats:
    """The interval of each class share, (2, K); `shared` is the covariance of what all items share."""
    prior, n_classes, n_items = inputs.prior, len(inputs.prior), float(sums.sizes[0])
    if inputs.prior_is_known or n_classes == 1:
        return np.stack([prior, prior])
    free, mean = prior * (1 - prior), sums.moments[0] / n_items
    spread, sure = sums.moments[1] / n_items - mean**2, 0.25 / n_items
    left = (spread + sure) / (mean * (1 - mean) + sure)
    worth = n_items * np.clip(left, LEAST_LEFT, 1.0)
    if shared is not None:
        # Shares move by diag(pi) - pi pi^T times the change of their log odds.
        meant, moves = sums.meant > 0, np.diag(prior) - np.outer(prior, prior)
        variance = np.einsum("ki,ij,kj->k", moves, shared[n_classes:, n_classes:], moves)
        # They also move against the shares of classes that nobody said.
        variance += (prior / max(prior[meant].sum(), SMALLEST_SHARE)) ** 2 * np.sum((free / worth)[~meant])
        worth = np.where(meant, np.minimum(free / np.maximum(variance, NEARLY_ZERO), n_items), worth)
    return beta_ends(prior, worth, prior)


def sum_slopes(q: Floats, value: Floats, mean: Floats, surprise: Floats) -> Floats:
    """The sum over items of the derivatives of the mean of `value` by what all items share, (2 K,)."""
    away = q * (value - mean[:, None])
    return np.concatenate([np.einsum("nk,nk->k", away, surprise), away.sum(axis=0)])


# ---------------------------------------------------------------------------- where vote shares are taken for the truth


def find_vote_intervals(
    shares: Floats, chosen: Floats, prior: Floats, sequences: NDArray[np.int64] | None
) -> tuple[Floats, Floats]:
    """The intervals of class shares and of the accuracy of labels, where vote shares are all that is known.

    `chosen` (N,) are the shares of the labels, `sequences` offsets, None if items are independent of each other.
    """
    n_items, variance = len(shares), np.zeros(len(prior))
    size = ITEMS_AT_ONCE if sequences is None else n_items

    def sum_up(start: int, stop: int) -> list[Floats]:
        """The sums of squares over runs of items, one by one."""
        sums = []
        for number in range(start, stop):
            away = shares[number * size : (number + 1) * size] - prior
            away = away if sequences is None else sum_sequences(away, sequences)
            sums.append(np.einsum("nk,nk->k", away, away))
        return sums

    for part in chain.from_iterable(side_by_side(sum_up, -(-n_items // max(size, 1)), 4)):
        variance += part / n_items**2
    if sequences is not None:
        variance *= few_units(len(sequences) - 1)
    expected = accuracy_ends(float(chosen.mean()), float(np.sum(chosen * (1 - chosen))) / n_items**2, n_items)
    if len(prior) == 1:
        return np.stack([prior, prior]), np.array(expected)
    worth = prior * (1 - prior) / np.maximum(variance, 1 / n_items**2)
    return beta_ends(prior, worth, prior), np.array(expected)


def find_voter_intervals(right: Floats, total: Floats, information: Floats, prior: Floats) -> Floats:
    """The intervals of accuracy and informativeness, (M, 4), where truth is taken to be the vote."""
    ends = np.full((len(total), 4), np.nan)
    answered, accuracy = total > 0, right / np.maximum(total, NEARLY_ZERO)
    ends[answered, :2] = beta_ends(np.clip(accuracy, 0.0, 1.0), total, accuracy).T[answered]
    entropy = float(entr(prior).sum())
    reach = NORMAL_95 / np.sqrt(2 * np.maximum(total, 0.5) * entropy) if entropy > 0 else np.zeros(len(total))
    ends[:, 2] = np.maximum(np.sqrt(information) - reach, 0.0) ** 2
    ends[:, 3] = np.minimum(np.sqrt(information) + reach, 1.0) ** 2
    return ends


# ---------------------------------------------------------------------------------------------------- ends of intervals


def beta_ends(share: Floats, worth: Floats, reported: Floats) -> Floats:
    """The 95% interval of shares that so many answers speak for, (2, n), with what is reported of each in it.

    Its ends are quantiles of Beta(s n + 1/2, (1 - s) n + 1/2).

    >>> beta_ends(np.array([1.0]), np.array([3.0]), np.array([0.9])).round(2).tolist()
    [[0.46], [1.0]]
    """
    for_it, against = share * worth + 0.5, (1 - share) * worth + 0.5
    low, high = (betaincinv(for_it, against, tail) for tail in TAILS_95)
    return np.stack([np.minimum(low, reported), np.maximum(high, reported)])


def accuracy_ends(mean: float, variance: float, n_items: int) -> tuple[float, float]:
    """The 95% interval of a share of whole items with this mean and variance."""
    if np.isnan(variance):
        return 0.0, 1.0
    if variance == 0 or not 0 < mean < 1:
        return mean, mean
    worth = max(mean * (1 - mean) / variance, 1e-3)
    low, high = (float(betaincinv(mean * worth, (1 - mean) * worth, tail)) for tail in TAILS_95)
    low, high = np.floor(low * n_items + 1e-9) / n_items, np.ceil(high * n_items - 1e-9) / n_items
    return min(float(low), mean), max(float(high), mean)


def few_units(n_units: int) -> float:
    """By what a variance from few units must be multiplied where quantiles are those of a normal."""
    return float(stdtrit(max(n_units - 1, 1), TAILS_95[1]) / NORMAL_95) ** 2
