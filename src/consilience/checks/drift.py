r"""How the accuracy of a worker changes over the order of the answers.

**Judged by others.** Let m be a worker with the matrix :math:`\Gamma_m`, and q the posterior of an item by the answers
of some others. The answer l of m is right with probability :math:`p = q_l`. If m is as accurate as always, p has the
mean and the variance

.. math:: e = \sum_{k, l} q_k \Gamma_{kl} q_l, \quad v = \sum_{k, l} q_k \Gamma_{kl} q_l^2 - e^2

and if the probability of the right label is larger by :math:`\delta`, the mean of :math:`p - e` is :math:`\delta d`:

.. math:: d = \sum_k q_k \Big( q_k - \sum_{l \ne k} \frac{\Gamma_{kl}}{1 - \Gamma_{kk}} q_l \Big)

If the truth is certain, d is 1, and :math:`p - e` is 1 or 0 minus the accuracy for the class.

**Difficulty.** Items may be harder at the end, which is no drift. On a hard item, a share h of the answers of all
workers is drawn from what each says on the whole, :math:`a_l = \sum_k \pi_k \Gamma_{kl}`. The mean of :math:`p - e` is
then :math:`- h x`, with :math:`x = e - \sum_l a_l q_l`. Each of the others, b, is judged in the same way. The worker
and b are judged by the same q, that of the answers of all but these two: if q is too certain on hard items, it is so
for both. (p, e, v, d and x of m are means over b. There are at most 16 others, those who follow the worker in the order
of the answers to the item.) So with :math:`r = p - e`

.. math:: y = r_m - x_m \frac{\sum_b x_b r_b / v_b}{\sum_b x_b^2 / v_b}, \quad
          \frac{1}{w} = v_m + \frac{x_m^2}{\sum_b x_b^2 / v_b}

is what an answer says of the worker alone, and its weight. (0.05 is added to each v.) Items with fewer than three
workers, and no known label, say nothing: two who disagree are equally suspect.

**Trend.** Let t be the rank of an answer among all of the worker's, from 0 to 1; equal times have the same rank. The
model is :math:`y_i = d_i (\mu_s + \beta t_i)`, by weighted least squares. There is a level :math:`\mu_s` for each class
s that is most likely by the others, since class shares may change over time. The variance of :math:`\beta` is

.. math:: \frac{\sum_u (\sum_{i \in u} w_i z_i \hat e_i / \sqrt{1 - h_i})^2}{(\sum_i w_i z_i^2)^2}, \quad
          z_i = d_i (t_i - \bar t_s)

with residuals :math:`\hat e`, leverages h, and units u: items, or sequences. The interval has quantiles of Student's t.
Difficulty may concern some workers more than others. So 0.4 times the trend of what was subtracted for difficulty is
added to both sides.

If one worker of a few learns, all others seem to get worse. So those whose :math:`\beta` differs from the median of all
workers beyond chance, by :math:`\beta'` (Holm's method), are found. Everything is then done again with :math:`r_b - d_b
\beta'_b (t_b - 1/2)` in place of :math:`r_b`, until nothing changes, at most four times.

The report tells the accuracy in the first and in the last fifth of the answers: the line at t = 0.1 and 0.9, through
the worker's accuracy at 0.5, and cut off at 0 and 1.

**Remark.** The accuracy of a worker is said to fall if the line falls by at least 0.05, zero is not in the interval,
and the score test rejects :math:`\beta \ge 0`, for all workers together at the level 0.05 (Holm's method). The score
test takes residuals without the trend. Its tails are lighter than normal, so that it holds for many workers with few
answers each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Column, to_column, to_values
from ..errors import ParameterError, Sentence, join_names, plural, shorten
from ..inference import Distributions, sum_by
from ..inference.sources import Source, number_groups
from ..inference.structures.independent import IndependentParameters
from ..inference.workers.confusion import ConfusionWorkers
from ..kernels import Floats, freeze, read_only
from ..results.findings import Finding
from ..results.new_answers import weigh_copies
from ..results.result import Result
from ..results.worker_report import describe_answers
from .subject import Subject

# Workers are not judged by fewer answers, nor by fewer items or sequences.
FEWEST_ANSWERS, FEWEST_UNITS = 20, 10
LEVEL = 0.05
# A smaller fall is not worth a remark.
LEAST_FALL = 0.05
# Share of the correction for difficulty that may be wrong.
DOUBT = 0.4
# Times that answers are judged again, without the trends that were found.
MOST_ROUNDS = 4
# Accuracies are told for these fifths of the answers, by their middle.
FIRST, LAST = 0.1, 0.9
# Leverages are believed up to this.
MOST_LEVERAGE = 0.99
# Matrices of a vote are worked out for the worker report if they have no more entries.
MOST_ENTRIES = 1 << 24
# Trends that move less than this have settled.
SETTLED = 0.01
# Less is rounding: what others tell about difficulty, and how far times are apart.
NOTHING = 1e-6
TINY = 1e-300


class Drift(NamedTuple):
    """The accuracy of each worker at the beginning and at the end, (M,) each; NaN for workers who are not judged."""

    answers: NDArray[np.int64]  # by which the worker is judged
    first: Floats
    last: Floats
    low: Floats  # ends of the interval of the change
    high: Floats
    falls: NDArray[np.bool_]  # whether it is said to fall

    @property
    def change(self) -> Floats:
        """The change from the first fifth to the last."""
        return np.asarray(self.last - self.first)


class Judged(NamedTuple):
    """Answers that were judged, with their times; see the equations above."""

    worker: NDArray[np.int64]
    stratum: NDArray[np.int64]  # worker and most likely class
    unit: NDArray[np.int64]  # worker and item, or worker and sequence
    time: Floats
    y: Floats
    difficulty: Floats  # what was subtracted for difficulty
    d: Floats
    w: Floats


class Trend(NamedTuple):
    """The trend of each worker, (M,) each."""

    slope: Floats
    error: Floats
    difficulty: Floats  # slope of what was subtracted
    score: Floats
    freedom: NDArray[np.int64]
    n_answers: NDArray[np.int64]
    n_units: NDArray[np.int64]
    apart: NDArray[np.bool_]  # whether times differ


# What was found of each result, as long as that is there.
_JUDGED: WeakKeyDictionary[Result, Drift] = WeakKeyDictionary()


def find_drift(found: Result) -> Drift:
    """Return how accuracy changes, worked out when it is first asked for."""
    if found not in _JUDGED:
        _JUDGED[found] = judge_drift(found)
    return _JUDGED[found]


def check_order(found: Result) -> None:
    """Raise an error if it is not known when answers were given."""
    if found.answers.order is None:
        raise ParameterError(
            "It is not known in which order the answers were given.",
            Sentence("Read them with {order}, the column of numbers or times that tells."),
            keyword="order",
        )


def has_order(found: Result) -> bool:
    """Tell whether drift can be judged at once."""
    r = found.given.answers
    if r is None or r.order is None:
        return False
    return found.estimates is not None or r.n_workers * r.n_labels * r.n_classes <= MOST_ENTRIES


def judge_drift(found: Result) -> Drift:
    """Return how the accuracy of each worker changes."""
    n_workers = len(found.names.workers)
    trend = fit_trends(judge(found), n_workers)
    changes = find_changes(trend)
    for _ in range(MOST_ROUNDS):
        if not changes.any():
            break
        trend, before = fit_trends(judge(found, changes), n_workers), changes
        changes = find_changes(trend)
        if np.abs(changes - before).max() < SETTLED:
            break
    enough = find_judged(trend)
    return conclude(trend, enough, np.asarray(to_values(describe_answers(found)["accuracy"]), np.float64))


def find_judged(trend: Trend) -> NDArray[np.bool_]:
    """Tell which workers have enough answers."""
    return (trend.n_answers >= FEWEST_ANSWERS) & (trend.n_units >= FEWEST_UNITS) & trend.apart


def find_changes(trend: Trend) -> Floats:
    """Return by how much the slope of each worker differs from the median; 0 where that may be chance."""
    from scipy.special import stdtr

    enough = find_judged(trend)
    if not enough.any():
        return np.zeros(len(enough))
    beyond = np.where(enough, trend.slope - np.median(trend.slope[enough]), 0.0)
    ratio = np.divide(np.abs(beyond), trend.error, out=np.zeros(len(beyond)), where=enough & (trend.error > 0))
    found = reject(np.where(enough, 2 * stdtr(trend.freedom, -ratio), 1.0), int(enough.sum()))
    return np.where(found, beyond, 0.0)


def judge(found: Result, changes: Floats | None = None) -> Judged:
    """Return what each answer says of its worker alone, if others have the slopes `changes`."""
    from ..kernels.agreement import judge_answers

    r = weigh_copies(found, found.answers, np.arange(len(found.names.workers)))
    gold = found.given.gold
    matrix = np.ascontiguousarray(found.learned.confusion.transpose(0, 2, 1)[:, : r.n_labels])
    log_matrix = np.log(np.maximum(matrix, TINY))
    logs, row = weigh_answers(found, r, log_matrix)
    copies = number_groups(found.copies, r.n_workers)
    group = np.where(copies > 0, copies - 1, len(found.copies) + np.arange(r.n_workers))
    out, likely = np.zeros((r.n_responses, 6)), np.zeros(r.n_responses, np.int32)
    judge_answers(
        r.offsets,
        r.worker,
        r.label,
        freeze(np.empty(0) if r.amount is None else r.amount),
        read_only(group),
        read_only(matrix),
        read_only(logs),
        read_only(row),
        read_only(np.sum(matrix * found.prior, axis=2)),
        read_only(sum_evidence(found, r, logs, row)),
        read_only(np.full(r.n_items, -1, np.int32) if gold is None else gold.codes.astype(np.int32)),
        read_only(r.class_of_label),
        read_only(r.label_of_class),
        freeze(np.empty(0) if changes is None else follow(r, changes)),
        r.amount is None and not found.copies,
        out,
        likely,
    )
    return compare(r, out, likely)


def weigh_answers(found: Result, r: Answers, log_matrix: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Return what answers add to the log evidence, by matrices (M, L, K): a table, and the row of each answer."""
    rows = log_matrix.reshape(-1, log_matrix.shape[2])
    if r.weight is None:
        code = r.worker * np.int32(log_matrix.shape[1]) + r.label
        return rows if r.share is None else r.share[:, None] * rows[code], code if r.share is None else number(r)
    workers = ConfusionWorkers(r.n_workers, r.class_of_label, log_matrix.shape[2], said=found.learned.said)
    factors = workers.factors(Distributions.known(np.exp(log_matrix)), True)
    return np.concatenate([factors.log_answers(block) for block in Source(r).lay_out(workers)]), number(r)


def number(r: Answers) -> NDArray[np.int32]:
    """Return the number of each answer."""
    return np.arange(r.n_responses, dtype=np.int32)


def sum_evidence(found: Result, r: Answers, logs: Floats, row: NDArray[np.int32]) -> Floats:
    """Return the logarithm of each item's posterior, up to a constant.

    That of independent items is worked out from the matrices as they are reported, so that what an answer added to it
    can be subtracted exactly.
    """
    posterior = found.labels.uncalibrated
    alone = isinstance(found.learned.structure, IndependentParameters)
    plain = alone and not r.silence_counts and not found.given.has_priors
    if posterior is not None and (not plain or found.guidance is not None):
        return np.asarray(np.log(np.maximum(posterior, TINY)))
    evidence = np.log(np.maximum(found.prior, TINY)) + np.zeros((r.n_items, 1))
    item = r.item_of_answer()
    for k in range(r.n_classes):
        evidence[:, k] += np.bincount(item, logs[row, k], minlength=r.n_items)
    return evidence


def find_times(r: Answers) -> Floats:
    """Return the rank of each answer among those of its worker; NaN where it is not known when it was given."""
    order = r.orders()
    timed = np.flatnonzero(~np.isnan(order))
    time = np.full(r.n_responses, np.nan)
    time[timed] = rank_times(r.worker[timed].astype(np.int64), order[timed])
    return time


def follow(r: Answers, slopes: Floats) -> Floats:
    """Return how much more accurate the worker of each answer is at its time than on average."""
    return slopes[r.worker] * np.nan_to_num(find_times(r) - 0.5)


def compare(r: Answers, out: Floats, likely: NDArray[np.int32]) -> Judged:
    """Return the answers that others judge, and whose time is known, with what they say."""
    from ..kernels.agreement import LEAST_VARIANCE

    time = find_times(r)
    chosen = np.flatnonzero(~np.isnan(time) & (out[:, 5] > NOTHING))
    residual, d, v, x, above, below = out[chosen].T
    difficulty = x * above / below
    w = r.weights(chosen) / (v + LEAST_VARIANCE + x**2 / below)
    worker, item = r.worker[chosen].astype(np.int64), r.items_of(chosen)
    owner = item if r.sequences is None else r.sequences.of_items()[item]
    unit = np.unique(worker * (r.n_items + 1) + owner, return_inverse=True)[1]
    stratum = worker * r.n_classes + likely[chosen]
    return Judged(worker, stratum, unit, time[chosen], residual - difficulty, difficulty, d, w)


def rank_times(worker: NDArray[np.int64], order: Floats) -> Floats:
    """Return the rank of each answer among those of its worker, in (0, 1); equal times share their mean rank.

    >>> rank_times(np.array([0, 1, 0, 0, 0]), np.array([7.0, 1.0, 9.0, 8.0, 8.0]))
    array([0.125, 0.5  , 0.875, 0.5  , 0.5  ])
    """
    rows = np.lexsort((order, worker))
    worker, order = worker[rows], order[rows]
    n_answers = np.bincount(worker)
    begin = (np.cumsum(n_answers) - n_answers)[worker]
    new = np.append(True, (worker[1:] != worker[:-1]) | (order[1:] != order[:-1]))[: len(rows)]
    first = np.flatnonzero(new)
    size = np.diff(np.append(first, len(rows)))
    middle = np.repeat(first + size / 2, size) - begin
    ranks = np.empty(len(rows))
    ranks[rows] = middle / n_answers[worker]
    return ranks


def fit_trends(a: Judged, n_workers: int) -> Trend:
    """Return the trend of each worker, by weighted least squares."""
    n_strata = int(a.stratum.max(initial=-1)) + 1
    mass = sum_by(a.stratum, a.w * a.d**2, n_strata)

    def project(values: Floats) -> Floats:
        """Return the values without the level of each stratum."""
        return values - a.d * (sum_by(a.stratum, a.w * a.d * values, n_strata) / np.maximum(mass, TINY))[a.stratum]

    z, y = project(a.d * a.time), project(a.y)
    spread = np.maximum(sum_by(a.worker, a.w * z**2, n_workers), TINY)
    slope = sum_by(a.worker, a.w * z * y, n_workers) / spread
    difficulty = sum_by(a.worker, a.w * z * a.difficulty, n_workers) / spread
    level_leverage = a.w * a.d**2 / np.maximum(mass, TINY)[a.stratum]
    leverage = level_leverage + a.w * z**2 / spread[a.worker]
    owner = np.zeros(int(a.unit.max(initial=-1)) + 1, np.int64)
    owner[a.unit] = a.worker

    def sum_squares(residual: Floats, leverages: Floats) -> Floats:
        """Return the variance of sum w z y, from units."""
        scaled = a.w * z * residual / np.sqrt(1 - np.minimum(leverages, MOST_LEVERAGE))
        return sum_by(owner, sum_by(a.unit, scaled, len(owner)) ** 2, n_workers)

    error = np.sqrt(sum_squares(y - z * slope[a.worker], leverage)) / spread
    score = slope * spread / np.sqrt(np.maximum(sum_squares(y, level_leverage), TINY))
    n_levels = np.bincount(a.worker[np.unique(a.stratum, return_index=True)[1]], minlength=n_workers)
    n_answers, n_units = np.bincount(a.worker, minlength=n_workers), np.bincount(owner, minlength=n_workers)
    freedom = np.maximum(np.minimum(n_answers - n_levels, n_units) - 1, 1)
    apart = spread > NOTHING * sum_by(a.worker, a.w * a.d**2, n_workers)
    return Trend(slope, error, difficulty, score, freedom, n_answers, n_units, apart)


def conclude(trend: Trend, enough: NDArray[np.bool_], accuracy: Floats) -> Drift:
    """Return what is reported of each worker's trend."""
    from scipy.special import ndtr, stdtrit

    span = LAST - FIRST
    slope = np.where(enough, trend.slope, np.nan)
    first, last = (np.clip(accuracy + slope * (at - 0.5), 0.0, 1.0) for at in (FIRST, LAST))
    margin = DOUBT * np.abs(trend.difficulty)
    reach = stdtrit(trend.freedom, 1 - LEVEL / 2) * trend.error + margin
    change = last - first
    # What was cut off at 0 or 1 must not lie outside.
    low = np.minimum(np.maximum(span * (slope - reach), -1.0), change)
    high = np.maximum(np.minimum(span * (slope + reach), 1.0), change)
    beyond = np.maximum(-slope - margin, 0.0)  # the fall that difficulty cannot explain
    chance = ndtr(-np.abs(trend.score) * beyond / np.maximum(np.abs(trend.slope), TINY))
    falls = enough & reject(np.where(enough, chance, 1.0), int(enough.sum())) & (high < 0) & (change <= -LEAST_FALL)
    return Drift(trend.n_answers, first, last, low, high, falls)


def reject(chances: Floats, n_tests: int) -> NDArray[np.bool_]:
    """Return which of some hypotheses Holm's method rejects; those that were not tested have the chance 1.

    >>> reject(np.array([0.02, 0.2, 0.01, 0.9]), 4).tolist()
    [False, False, True, False]
    """
    order = np.argsort(chances, kind="stable")
    holds = chances[order] * np.maximum(n_tests - np.arange(len(order)), 1) < LEVEL
    rejected = np.zeros(len(order), bool)
    rejected[order] = np.logical_and.accumulate(holds)
    return rejected


def describe_fall(first: float, last: float) -> str:
    """Return a remark.

    >>> describe_fall(0.9, 0.614)
    'accuracy falls from 90% to 61%'
    """
    return f"accuracy falls from {first:.0%} to {last:.0%}"


def tabulate_drift(found: Drift) -> dict[str, Column]:
    """Return the columns of the report after the first."""
    figures = {
        "accuracy_first": found.first,
        "accuracy_last": found.last,
        "change": found.change,
        "change_low": found.low,
        "change_high": found.high,
    }
    remarks = [
        describe_fall(first, last) if falls else ""
        for first, last, falls in zip(found.first.tolist(), found.last.tolist(), found.falls.tolist(), strict=True)
    ]
    columns = {name: to_column(np.asarray(values)) for name, values in figures.items()}
    return {"answers": to_column(found.answers.astype(np.int64)), **columns, "remarks": to_column(remarks)}


def add_falls(columns: dict[str, Column], found: Drift) -> dict[str, Column]:
    """Return the columns of the worker report with a remark for each worker whose accuracy falls."""
    remarks = to_values(columns["remarks"]).tolist()
    for m in np.flatnonzero(found.falls).tolist():
        remark = describe_fall(found.first[m], found.last[m])
        remarks[m] = f"{remarks[m]}; {remark}" if remarks[m] else remark
    return columns | {"remarks": to_column(remarks)}


def find_falls(subject: Subject) -> Iterator[Finding]:
    """The accuracy of workers falls over time."""
    found = subject.fusion
    if not subject.makes_sense or not has_order(found):
        return
    drift = find_drift(found)
    rows = np.flatnonzero(drift.falls)
    if not len(rows):
        return
    rows = rows[np.argsort(drift.change[rows], kind="stable")]
    figures = [
        f"{shorten(worker)}: {drift.first[m]:.0%} to {drift.last[m]:.0%}"
        for m, worker in zip(rows, found.names.workers[rows].tolist(), strict=True)
    ]
    who = join_names(figures, "the drift report has all")
    problem = f"The accuracy of {plural(len(rows), 'worker')} falls over time ({who})."
    remedy = "Look at their last answers. They may be tired, or the task may have changed."
    yield Finding(problem, (remedy,), category=None)
