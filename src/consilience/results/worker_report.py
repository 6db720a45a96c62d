r"""What a fit says about each worker.

**How sure workers are who give probabilities**, compared with how often they are right. With q the calibrated posterior
of an item and x the logarithms of a worker's probabilities, as for learned temperatures
(`consilience.inference.workers.temperatures`), the factor b of a worker is where softmax(b x) predicts q best,

    sum_n sum_k q_nk log softmax_k (b x_n)

Here the own vote is a part of q: what is expected of a calibrated posterior, given one vote, is how probable classes
are by this vote. Leaving it out would make all workers look too sure, since the others err too.

**Drift**: whether the accuracy of a worker changes, from the first third of the answers to the last.

**Judged by others.** Let m be a worker with the matrix :math:`\Gamma_m`, and q the posterior of an item by the answers
of all others (known labels are certain). The answer l of m is right with probability :math:`p = q_l`. If m is as
accurate as always, p has the mean and the variance

.. math:: e = \sum_{k, l} q_k \Gamma_{kl} q_l, \quad v = \sum_{k, l} q_k \Gamma_{kl} q_l^2 - e^2

and if the probability of the right label is larger by :math:`\delta`, the mean of :math:`p - e` is :math:`\delta d`:

.. math:: d = \sum_k q_k \Big( q_k - \sum_{l \ne k} \frac{\Gamma_{kl}}{1 - \Gamma_{kk}} q_l \Big)

**Difficulty.** Items may be harder at the end, which is no drift. On a hard item, a share h of the answers of all
workers is drawn from what each says on the whole, :math:`a_l = \sum_k \pi_k \Gamma_{kl}`. The mean of :math:`p - e` is
then :math:`- h x`, with :math:`x = e - \sum_l a_l q_l`. So with :math:`r = p - e`, and b the others who answered the
item,

.. math:: y = r_m - x_m \frac{\sum_b x_b r_b / v_b}{\sum_b x_b^2 / v_b}, \quad
          \frac{1}{w} = v_m + \frac{x_m^2}{\sum_b x_b^2 / v_b}

is what an answer says of the worker alone, and its weight. (0.05 is added to each v.) Items with fewer than three
workers, and no known label, say nothing: two who disagree are equally suspect. Who changes beyond chance, compared with
the median of all workers, is none of the others in a second round: where one of a few learns, all others seem to get
worse.

**Early and late.** In each third, :math:`\delta = \sum w d y / \sum w d^2`, with a variance from sums over units: items
or sequences. The difference has an interval with quantiles of Student's t. Difficulty may concern some workers more
than others: 0.4 times the difference of what was subtracted for it is added on both sides. The accuracy of a worker is
said to fall if it falls by at least 0.05, if zero is not in the interval, and if chance is ruled out for all workers
together at the level 0.05 (Holm's method).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from ..answers.answers import Answers
from ..answers.columns import Column, lookup, to_column, to_values
from ..inference.cells import Cells, sum_by
from ..inference.observations import assign_groups
from ..inference.workers.base import START
from ..inference.workers.temperatures import LEAST_TEMPERATURE, MOST_TEMPERATURE, describe_temperature
from ..kernels import NEARLY_ZERO, Floats, Integers, Truths
from .chance import BY_CHANCE, RATER_FIGURES, are_contrary, remark_on_bias
from .comparison import Comparison
from .intervals import find_voter_intervals, inform_coins, informativeness
from .result import FeatureResult, FitResult, Labels, weigh_copies

FEW_ANSWERS = 10
UNINFORMATIVE = 0.05
CONTRARY = 0.05
ONE_LABEL = 0.95
AS_IF_BY_CHANCE, ONE_LABEL_ONLY, FEW_ANSWERS_REMARK = "answers as if by chance", "one label", "few answers"
# Beginnings of remarks, those first that call for most attention; of few answers nobody can tell.
ATTENTION = (
    AS_IF_BY_CHANCE,
    "contrary",
    ONE_LABEL_ONLY,
    "near-copy",
    "accuracy falls",
    "harsh",
    "lenient",
    "uninformative",
    "",
    FEW_ANSWERS_REMARK,
)
# Expected answers that a mistake must have to be reported, and a truth for the rate of a mistake to mean something.
LEAST_MISTAKES, ENOUGH_MET = 0.5, 3.0
# So many entries of a table of workers are worked on at a time, and matrices of a vote with more are not made for it.
MOST_ENTRIES, MOST_MADE = 1 << 20, 1 << 24
# How sure workers are: Newton's steps, what is added to the curvature and to class shares, the least probability, and
# about how many votes are looked at.
NEWTON_STEPS, ADDED_TO_CURVATURE, ADDED_TO_CLASS_SHARES, LEAST_VOTE_PROBABILITY, VOTES_SAMPLED = (
    25,
    1e-3,
    1e-6,
    1e-4,
    200_000,
)
# Drift: workers are not judged by fewer answers in all, nor by fewer items or sequences in each third.
FEWEST_DRIFT_ANSWERS, FEWEST_UNITS = 20, 4
LEVEL = 0.05
# A smaller fall is not worth a remark.
LEAST_FALL = 0.05
# Share of the correction for difficulty that may be wrong.
DOUBT_OF_DIFFICULTY = 0.4
LEAST_DRIFT_VARIANCE = 0.05
# Less is rounding.
LEAST_TOTAL, LEAST_ENTRY = 1e-6, 1e-150


def tabulate_workers(
    fit: FitResult, comparison: Comparison | None
) -> tuple[dict[str, Column], dict[str, Column] | None]:
    """The columns of `Model.worker_report` and of `Model.drift_report` after the first; no drift without an order.

    A worker whose answers nothing else judges is right by definition: only what can be counted is in the table.
    """
    names, prior, n_answers, given = fit.names, fit.prior, fit.n_answers, fit.given.answers
    n_workers, said = len(n_answers), lookup(names.classes, to_column(names.labels))
    estimates = None if fit.model == "MajorityVote" else fit.fitted_estimates
    counts = expect_counts(fit)

    # Right answers of each worker, all answers, the share of the most frequent label, the accuracy that the same mix of
    # answers would have by chance, and the mistake with the highest rate.
    named, worst = np.flatnonzero(said >= 0), [""] * n_workers
    right, total, top, expected = np.zeros((4, n_workers))
    for first, cells in cut_workers(counts):
        run = slice(first, first + cells.shape[0])
        is_right = said[cells.label] == cells.klass
        spoken, met = cells.sum_out(2), cells.sum_out(1)
        total[run] = spoken.sum(axis=1)
        right[run] = sum_by(cells.worker, np.where(is_right, cells.count, 0.0), cells.shape[0])
        # Shares first: the product of two large counts may leave the range of doubles.
        scale = np.maximum(total[run], NEARLY_ZERO)[:, None]
        # What the same mix of answers would get right if it had nothing to do with the truth.
        expected[run] = np.sum((spoken / scale)[:, named] * (met / scale)[:, said[named]], axis=1)
        top[run] = (spoken / scale).max(axis=1)
        # Not of one who says only one label, which all other truths are called by.
        enough = np.minimum(met.max(axis=1, keepdims=True), ENOUGH_MET)
        telling = (met >= enough) & (met > 0) & (np.count_nonzero(spoken, axis=1) > 1)[:, None]
        wrong = np.flatnonzero(~is_right & (cells.count >= LEAST_MISTAKES) & (cells.klass < cells.shape[2]))
        wrong = wrong[telling[cells.worker[wrong], cells.klass[wrong]]]
        rate = cells.count[wrong] / met[cells.worker[wrong], cells.klass[wrong]]
        order = np.lexsort((-rate, cells.worker[wrong]))  # of equal rates the first
        worker, place = np.unique(cells.worker[wrong][order], return_index=True)
        for m, mistake in zip(worker.tolist(), order[place].tolist(), strict=True):
            cell = wrong[mistake]
            truth, answer = names.classes[cells.klass[cell]], names.labels[cells.label[cell]]
            worst[first + m] = f"{truth} -> {answer} ({rate[mistake]:.0%})"
    accuracy = np.divide(right, total, out=np.full(n_workers, np.nan), where=total > 0)
    vote_is_made, takes_silence = counts.shape[0] * counts.shape[1] * counts.shape[2] <= MOST_MADE, False
    if estimates is None:
        information = inform_by_votes(counts, said, prior) if vote_is_made else np.full(n_workers, np.nan)
        speech, intervals = information, find_voter_intervals(right, total, information, prior)
    else:
        takes_silence = fit.takes_silence
        if estimates.worker_model.accuracy_alone:
            information = speech = inform_coins(estimates.confusion[:, 0, 0], prior, said)
        else:
            information = speech = informativeness(estimates.confusion, prior)
        if takes_silence:
            speech = informativeness(estimates.confusion, prior, spoken=True)
        assert fit.intervals.workers is not None
        intervals = fit.intervals.workers.copy()

    # Who is judged by nothing else. Where that is not known, everybody is judged.
    unjudged = np.full(n_workers, not fit.checked)
    knows_more = fit.feature_result is not None or fit.given.has_priors
    if fit.checked and fit.chance is not None and not (knows_more or takes_silence):
        unjudged = (n_answers > 0) & np.isnan(fit.chance) & (min(len(names.labels), len(prior)) > 1)
    # Where all answers are one label, the labels are what the workers said: without known ones nothing judges anybody.
    if not (given is None or given.soft is not None or fit.given.gold is not None or knows_more or takes_silence):
        unjudged |= (n_answers > 0) & bool(given.n_responses and given.label.min() == given.label.max())

    # What the figures call for. A worker of one label has said two things where silence is the other, and with one
    # class there is no information to give.
    error = np.sqrt(np.maximum(expected * (1 - expected), 0.0) / np.maximum(total, 1.0))
    contrary = accuracy + CONTRARY + 2 * error < expected
    dull = (np.maximum(information, speech) < UNINFORMATIVE) & (prior.max() < 1) & ~contrary
    biased, further = [""] * n_workers, dict[str, Column]()
    if estimates is not None and estimates.worker_model.are_raters:
        # On a scale one is contrary whose answers are lower where the truth is higher: a harsh rater may never be
        # right, and still say which items are better.
        figures = np.full((n_workers, len(RATER_FIGURES)), np.nan) if fit.raters is None else fit.raters.copy()
        figures[unjudged] = np.nan
        contrary, biased = are_contrary(estimates.counts, said), remark_on_bias(figures)
        further = {name: to_column(figures[:, place].copy()) for place, name in enumerate(RATER_FIGURES)}
    by_figures = np.where(dull, "uninformative", np.where(contrary, "contrary", biased)).tolist()
    accused = find_accused(fit, comparison)
    says_one = (top > ONE_LABEL) & (prior.max() < ONE_LABEL) & (not takes_silence)
    drift = None
    if given is not None and given.order is not None and (vote_is_made or not isinstance(counts, Cells)):
        drift = tabulate_drift(fit, np.where(unjudged, np.nan, accuracy))
    falls = [""] * n_workers if drift is None else to_values(drift["remarks"]).tolist()
    group = np.zeros(n_workers, np.int64)
    for number, members in enumerate(fit.given.copies, 1):
        group[members] = number
    remarks = []
    for m in range(n_workers):
        own = [AS_IF_BY_CHANCE if accused[m] else "", ONE_LABEL_ONLY if says_one[m] else ""]
        own = [FEW_ANSWERS_REMARK] if n_answers[m] < FEW_ANSWERS else own if any(own) else [by_figures[m]]
        if unjudged[m]:
            own, worst[m] = [each for each in own if each in (FEW_ANSWERS_REMARK, ONE_LABEL_ONLY)], ""
        own += [falls[m], f"near-copy (group {group[m]})" if group[m] else ""]
        remarks.append("; ".join(filter(None, own)))
    for judged in (accuracy, information, intervals):
        judged[unjudged] = np.nan

    if estimates is not None:
        is_told = estimates.worker_model.reports_sureness
        if fit.checked and given is not None and given.soft is not None and is_told:
            factor = measure_sureness(given, fit.labels.posterior)
            words = ["" if np.isnan(each) else describe_temperature(each) for each in factor.tolist()]
            further |= {"temperature": to_column(factor), "sureness": to_column(words)}
        further |= estimates.worker_model.further_columns(estimates.further, names.labels, names.classes)
    if fit.teaching is not None:
        further["weight"] = to_column(fit.teaching.weights.mean(axis=0))
    columns = {
        "answers": to_column(n_answers.astype(np.int64)),
        "accuracy": to_column(accuracy),
        "accuracy_low": to_column(intervals[:, 0].copy()),
        "accuracy_high": to_column(intervals[:, 1].copy()),
        "informativeness": to_column(information),
        "informativeness_low": to_column(intervals[:, 2].copy()),
        "informativeness_high": to_column(intervals[:, 3].copy()),
        "chance": to_column(np.full(n_workers, np.nan) if fit.chance is None else fit.chance),
        "worst_confusion": to_column(worst),
        "remarks": to_column(remarks),
    }
    return columns | further | {"group": pa.array(group, mask=group == 0)}, drift


def expect_counts(fit: FitResult) -> Floats | Cells:
    """The expected counts of answers, (M, L, K); of a vote only those that are not zero."""
    if fit.model != "MajorityVote" and fit.fitted_estimates is not None:
        cells = fit.fitted_estimates.cells
        return fit.fitted_estimates.counts if cells is None else cells
    if fit.voting is not None:
        return Cells.of_answers(fit.voting.responses, fit.labels.posterior)
    return Cells.of_table(fit.estimates.counts)


def find_accused(fit: FitResult, comparison: Comparison | None) -> Truths:
    """Which workers are said to answer by chance, (M,).

    Nobody is accused by few answers, nor where all agree no more than by chance, or most workers seem to: then there is
    no truth to judge them by.
    """
    chance, nobody = fit.chance, np.zeros(len(fit.n_answers), bool)
    if chance is None or (comparison is not None and comparison.by_chance):
        return nobody
    many = fit.n_answers >= FEW_ANSWERS
    accused = (chance >= BY_CHANCE) & many
    return nobody if 2 * accused.sum() > np.count_nonzero(~np.isnan(chance) & many) else accused


def inform_by_votes(counts: Floats | Cells, said: NDArray[np.int64], prior: Floats) -> Floats:
    """The informativeness of the matrices that a vote makes; `said` is the class of each label."""
    (off, diagonal), named, information = START, np.flatnonzero(said >= 0), [np.empty(0)]
    for _, cells in cut_workers(counts):
        matrices = np.full((cells.shape[0], cells.shape[2], cells.shape[1]), off)
        matrices[:, said[named], named] = diagonal
        matrices[cells.worker, cells.klass, cells.label] += cells.count
        information.append(informativeness(matrices / matrices.sum(axis=2, keepdims=True), prior))
    return np.concatenate(information)


def cut_workers(counts: Floats | Cells) -> Iterator[tuple[int, Cells]]:
    """The cells of some workers at a time, and the number of the first of them."""
    n_workers, size = counts.shape[0], max(1, MOST_ENTRIES // (counts.shape[1] * counts.shape[2]))
    for first in range(0, n_workers, size):
        last = min(first + size, n_workers)
        yield first, counts.of_workers(first, last) if isinstance(counts, Cells) else Cells.of_table(counts[first:last])


def measure_sureness(r: Answers, posterior: Floats) -> Floats:
    """The factor of each worker, (M,): below 1 for one who is too sure; NaN without votes."""
    some = np.arange(0, r.n_responses, max(1, r.n_responses // VOTES_SAMPLED))
    votes = np.log(np.maximum(r.class_votes(some).astype(np.float64), LEAST_VOTE_PROBABILITY))
    votes -= votes.mean(axis=1, keepdims=True)
    factor, _ = fit_factors(votes, r.worker[some], posterior[r.items_of(some)], r.n_workers)
    return np.where(np.bincount(r.worker[some], minlength=r.n_workers) > 0, factor, np.nan)


def fit_factors(
    votes: Floats, worker: Integers, posterior: Floats, n_workers: int, shares: Floats | None = None
) -> tuple[Floats, Floats]:
    """The factor of each worker at which votes (n, K) predict posteriors best, and what the votes say then, (n, K).

    With class shares, a bias is added to all votes, at which their mean is that of the posteriors.
    """
    factor, bias = np.ones(n_workers), np.zeros(votes.shape[1]) if shares is None else np.log(shares)

    def soften() -> Floats:
        logs = factor[worker, None] * votes + bias
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    for _ in range(NEWTON_STEPS):
        said = soften()
        if shares is not None:
            bias += 0.7 * (np.log(shares) - np.log(said.mean(axis=0) + ADDED_TO_CLASS_SHARES))
        mean = np.einsum("nk,nk->n", said, votes)
        slope = np.bincount(worker, np.einsum("nk,nk->n", posterior - said, votes), n_workers)
        spread = np.bincount(worker, np.einsum("nk,nk->n", said, (votes - mean[:, None]) ** 2), n_workers)
        factor = np.clip(factor + 0.7 * slope / (spread + ADDED_TO_CURVATURE), LEAST_TEMPERATURE, MOST_TEMPERATURE)
    return factor, soften()


def tabulate_drift(fit: FitResult, accuracy: Floats) -> dict[str, Column]:
    """The columns of `Model.drift_report` after the first; `accuracy` (M,) is that over all answers."""
    n_workers, given = len(accuracy), fit.given.answers
    assert given is not None
    r = weigh_copies(fit, given, np.arange(n_workers))
    item, worker, weight = r.item_of_answer(), r.worker.astype(np.int64), r.weights()
    copies = assign_groups(fit.given.copies, n_workers)
    group = np.where(copies > 0, copies - 1, len(fit.given.copies) + np.arange(n_workers))
    pairs, pair = np.unique(item * (len(fit.given.copies) + n_workers) + group[worker], return_inverse=True)
    n_others = np.bincount(pairs // (len(fit.given.copies) + n_workers), minlength=r.n_items)[item] - 1

    def sum_others(values: Floats) -> Floats:
        return sum_by(item, values, r.n_items)[item] - sum_by(pair, values, len(pairs))[pair]

    # What others say of the item of each answer.
    matrix = fit.estimates.matrices[:, :, : r.n_labels]
    logs = weight[:, None] * np.log(np.maximum(matrix[worker, :, r.label], LEAST_ENTRY))
    q = np.log(np.maximum(fit.prior, LEAST_ENTRY)) + np.stack([sum_others(each) for each in logs.T], axis=1)
    q = np.exp(q - q.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    known = np.full(r.n_items, -1) if fit.given.gold is None else fit.given.gold.codes
    is_known = known[item] >= 0
    q[is_known] = np.eye(r.n_classes)[known[item[is_known]]]

    # How right each answer is, and how right it is expected to be.
    named, klass = np.flatnonzero(r.class_of_label >= 0), r.class_of_label[r.label]
    chances, residual = q[:, r.class_of_label[named]], np.where(klass >= 0, q[np.arange(len(q)), klass], 0.0)
    expected, squares, slope = np.zeros((3, len(q)))
    for k, label in enumerate(r.label_of_class.tolist()):
        rows = matrix[:, k, named][worker]
        hit = np.einsum("al,al->a", rows, chances)
        own = matrix[worker, k, label] if label >= 0 else np.zeros(len(q))
        expected += q[:, k] * hit
        squares += q[:, k] * np.einsum("al,al,al->a", rows, chances, chances)
        slope += q[:, k] * (q[:, k] - (hit - own * q[:, k]) / np.maximum(1 - own, LEAST_ENTRY))
    by_chance = np.einsum("al,al->a", (fit.prior @ matrix)[:, named][worker], chances)
    residual -= expected
    variance, hard = np.maximum(squares - expected**2, 0.0) + LEAST_DRIFT_VARIANCE, expected - by_chance

    time = rank_times(worker, r.orders())
    judged = ~np.isnan(time) & (n_others + is_known >= 2) & (slope > LEAST_TOTAL)
    owner = r.owners_of(item)
    period = np.where(time < 1 / 3, 0, np.where(time > 2 / 3, 1, -1))
    n_answers = np.bincount(worker[judged], minlength=n_workers)
    reference = np.ones(n_workers, bool)
    for _ in range(2):
        counts = reference[worker]
        above = sum_others(np.where(counts, hard * residual / variance, 0.0))
        below = sum_others(np.where(counts, hard**2 / variance, 0.0))
        seen = np.flatnonzero(judged & (below > LEAST_TOTAL))
        difficulty = hard[seen] * above[seen] / below[seen]
        y, d = residual[seen] - difficulty, slope[seen]
        w = weight[seen] / (variance[seen] + hard[seen] ** 2 / below[seen])
        late = np.flatnonzero(period[seen] >= 0)
        cell = 2 * worker[seen[late]] + period[seen[late]]
        mass = np.maximum(sum_by(cell, (w * d**2)[late], 2 * n_workers), LEAST_ENTRY)
        shift = sum_by(cell, (w * d * y)[late], 2 * n_workers) / mass
        hardness = sum_by(cell, (w * d * difficulty)[late], 2 * n_workers) / mass
        units, unit = np.unique(cell * (len(owner) + 1) + owner[seen[late]], return_inverse=True)
        score = sum_by(unit, (w * d)[late] * (y[late] - d[late] * shift[cell]), len(units))
        n_units = np.bincount(units // (len(owner) + 1), minlength=2 * n_workers)
        spread = sum_by(units // (len(owner) + 1), score**2, 2 * n_workers)
        spread *= n_units / np.maximum(n_units - 1, 1) / mass**2
        enough = (n_answers >= FEWEST_DRIFT_ANSWERS) & (n_units.reshape(-1, 2) >= FEWEST_UNITS).all(axis=1)
        change, error = shift[1::2] - shift[::2], np.sqrt(spread[1::2] + spread[::2])
        freedom = np.maximum(n_units[1::2] + n_units[::2] - 2, 1)
        beyond = change - (np.median(change[enough]) if enough.any() else 0.0)
        ratio = np.divide(np.abs(beyond), error, out=np.zeros(n_workers), where=enough & (error > 0))
        differs = reject(np.where(enough, 2 * stdtr(freedom, -ratio), 1.0), int(enough.sum()))
        if not differs.any() or not (reference & ~differs).any():
            break
        reference &= ~differs

    whole = sum_by(worker[seen], w * d * y, n_workers) / np.maximum(
        sum_by(worker[seen], w * d**2, n_workers), LEAST_ENTRY
    )
    first, last = (
        np.where(enough, np.clip(accuracy + each - whole, 0.0, 1.0), np.nan) for each in (shift[::2], shift[1::2])
    )
    margin = DOUBT_OF_DIFFICULTY * np.abs(hardness[1::2] - hardness[::2])
    reach = stdtrit(freedom, 1 - LEVEL / 2) * error + margin
    difference = last - first
    # What was cut off at 0 or 1 must not lie outside.
    low = np.minimum(np.clip(change - reach, -1.0, 1.0), difference)
    high = np.maximum(np.clip(change + reach, -1.0, 1.0), difference)
    fall = np.divide(np.maximum(-change - margin, 0.0), error, out=np.zeros(n_workers), where=enough & (error > 0))
    falls = reject(np.where(enough, stdtr(freedom, -fall), 1.0), int(enough.sum()))
    falls &= enough & (high < 0) & (difference <= -LEAST_FALL)
    figures = {
        "accuracy_first": first,
        "accuracy_last": last,
        "change": difference,
        "change_low": low,
        "change_high": high,
    }
    remarks = [
        f"accuracy falls from {early:.0%} to {late:.0%}" if falls[m] else ""
        for m, (early, late) in enumerate(zip(first.tolist(), last.tolist(), strict=True))
    ]
    columns = {name: to_column(np.asarray(values)) for name, values in figures.items()}
    return {"answers": to_column(n_answers.astype(np.int64)), **columns, "remarks": to_column(remarks)}


def rank_times(worker: NDArray[np.int64], order: Floats) -> Floats:
    """The rank of each answer among those of its worker, in (0, 1), NaN without a time; equal times share a rank.

    >>> rank_times(np.array([0, 1, 0, 0, 0, 1]), np.array([7.0, 1.0, 9.0, 8.0, 8.0, np.nan]))
    array([0.125, 0.5  , 0.875, 0.5  , 0.5  ,   nan])
    """
    ranks = np.full(len(order), np.nan)
    rows = np.flatnonzero(~np.isnan(order))
    rows = rows[np.lexsort((order[rows], worker[rows]))]
    owner, order = worker[rows], order[rows]
    n_answers = np.bincount(owner)
    new = np.append(True, (owner[1:] != owner[:-1]) | (order[1:] != order[:-1]))[: len(rows)]
    first = np.flatnonzero(new)
    size = np.diff(np.append(first, len(rows)))
    ranks[rows] = (np.repeat(first + size / 2, size) - (np.cumsum(n_answers) - n_answers)[owner]) / n_answers[owner]
    return ranks


def reject(chances: Floats, n_tests: int) -> NDArray[np.bool_]:
    """Which of some hypotheses Holm's method rejects; those that were not tested have the chance 1.

    >>> reject(np.array([0.02, 0.2, 0.01, 0.9]), 4).tolist()
    [False, False, True, False]
    """
    order = np.argsort(chances, kind="stable")
    holds = chances[order] * np.maximum(n_tests - np.arange(len(order)), 1) < LEVEL
    rejected = np.zeros(len(order), bool)
    rejected[order] = np.logical_and.accumulate(holds)
    return rejected


def rank_attention(report: Mapping[str, Column]) -> tuple[NDArray[np.int64], Floats]:
    """By what the workers of a report are sorted, those first who call for attention: by remarks, then accuracy.

    Accuracy counts by the lower end of its interval, so that a worker with a single answer, which happens to be right,
    is not the best of all. Those with few answers are sorted by the middle of the interval: of one answer, the lower
    end says that all may be wrong, and that is no need for attention.

    >>> remarks = pa.array(["few answers", "answers as if by chance; one label"])
    >>> accuracy = {"accuracy": [0.0, 0.4], "accuracy_low": [0.0, 0.3], "accuracy_high": [0.98, 0.5]}
    >>> rank_attention({"remarks": remarks, **{name: pa.array(values) for name, values in accuracy.items()}})
    (array([9, 0]), array([0.49, 0.3 ]))
    """
    # What is missing is not a number.
    low, accuracy, high = (np.asarray(report[f"accuracy{end}"], float) for end in ("_low", "", "_high"))
    low = np.where(np.isnan(low), np.nan_to_num(accuracy), low)
    different, place = np.unique(np.asarray(report["remarks"]), return_inverse=True)
    # The place of the first remark of each among those of `ATTENTION`.
    first = [
        next(
            n for n, name in enumerate(ATTENTION) if any(own == name or (name and own.startswith(name)) for own in each)
        )
        for each in (remarks.split("; ") for remarks in different.tolist())
    ]
    kind = np.array(first, np.int64)[place]
    halfway = (kind == ATTENTION.index(FEW_ANSWERS_REMARK)) & ~np.isnan(high)
    return kind, np.where(halfway, (low + high) / 2, low)


def list_disagreements(feature_result: FeatureResult, labels: Labels, n: int | None) -> dict[str, Column]:
    """The columns of a table of items for which classifier and crowd call for different labels; empty without one."""
    opinions, classes = feature_result.opinions, labels.classes
    differ = item = np.empty(0, np.int64)
    columns = dict.fromkeys(("crowd", "classifier"), (item, np.empty(0)))
    if opinions is not None:
        differ = np.flatnonzero(opinions.crowd_code != opinions.classifier_code)
        certainty = (opinions.crowd_share * opinions.classifier_share)[differ]
        differ = differ[np.argsort(-certainty, kind="stable")][:n]
        item = opinions.item[differ]
        columns = {
            "crowd": (opinions.crowd_code[differ], opinions.crowd_share[differ]),
            "classifier": (opinions.classifier_code[differ], opinions.classifier_share[differ]),
        }
    table = {name: to_column(to_values(key)[item]) for name, key in labels.keys.items()}
    table["label"] = to_column(labels.values[item])
    for who, (codes, shares) in columns.items():
        table |= {f"{who}_label": to_column(classes[codes]), f"{who}_confidence": to_column(shares)}
    return table
