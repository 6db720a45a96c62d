r"""Whether the accuracy of a worker changes: the first third of the answers against the last.

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

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Column, to_column
from ..inference import sum_by
from ..inference.sources import assign_groups
from ..kernels import Floats
from .result import Result, weigh_copies

# Workers are not judged by fewer answers in all, nor by fewer items or sequences in each third.
FEWEST_ANSWERS, FEWEST_UNITS = 20, 4
LEVEL = 0.05
# A smaller fall is not worth a remark.
LEAST_FALL = 0.05
# Share of the correction for difficulty that may be wrong.
DOUBT = 0.4
LEAST_VARIANCE = 0.05
# Less is rounding.
NOTHING, TINY = 1e-6, 1e-150


def tabulate_drift(found: Result, accuracy: Floats) -> dict[str, Column]:
    """The columns of `Model.drift_report` after the first; `accuracy` (M,) is that over all answers."""
    from scipy.special import stdtr, stdtrit

    n_workers, given = len(accuracy), found.answers
    r = weigh_copies(found, given, np.arange(n_workers))
    item, worker, weight = r.item_of_answer(), r.worker.astype(np.int64), r.weights()
    copies = assign_groups(found.copies, n_workers)
    group = np.where(copies > 0, copies - 1, len(found.copies) + np.arange(n_workers))
    pairs, pair = np.unique(item * (len(found.copies) + n_workers) + group[worker], return_inverse=True)
    n_others = np.bincount(pairs // (len(found.copies) + n_workers), minlength=r.n_items)[item] - 1

    def sum_others(values: Floats) -> Floats:
        return sum_by(item, values, r.n_items)[item] - sum_by(pair, values, len(pairs))[pair]

    # What others say of the item of each answer.
    matrix = found.learned.confusion[:, :, : r.n_labels]
    logs = weight[:, None] * np.log(np.maximum(matrix[worker, :, r.label], TINY))
    q = np.log(np.maximum(found.prior, TINY)) + np.stack([sum_others(each) for each in logs.T], axis=1)
    q = np.exp(q - q.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    known = np.full(r.n_items, -1) if found.given.gold is None else found.given.gold.codes
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
        slope += q[:, k] * (q[:, k] - (hit - own * q[:, k]) / np.maximum(1 - own, TINY))
    by_chance = np.einsum("al,al->a", (found.prior @ matrix)[:, named][worker], chances)
    residual -= expected
    variance, hard = np.maximum(squares - expected**2, 0.0) + LEAST_VARIANCE, expected - by_chance

    time = rank_times(worker, r.orders())
    judged = ~np.isnan(time) & (n_others + is_known >= 2) & (slope > NOTHING)
    owner = r.owners_of(item)
    period = np.where(time < 1 / 3, 0, np.where(time > 2 / 3, 1, -1))
    n_answers = np.bincount(worker[judged], minlength=n_workers)
    reference = np.ones(n_workers, bool)
    for _ in range(2):
        counts = reference[worker]
        above = sum_others(np.where(counts, hard * residual / variance, 0.0))
        below = sum_others(np.where(counts, hard**2 / variance, 0.0))
        seen = np.flatnonzero(judged & (below > NOTHING))
        difficulty = hard[seen] * above[seen] / below[seen]
        y, d = residual[seen] - difficulty, slope[seen]
        w = weight[seen] / (variance[seen] + hard[seen] ** 2 / below[seen])
        late = np.flatnonzero(period[seen] >= 0)
        cell = 2 * worker[seen[late]] + period[seen[late]]
        mass = np.maximum(sum_by(cell, (w * d**2)[late], 2 * n_workers), TINY)
        shift = sum_by(cell, (w * d * y)[late], 2 * n_workers) / mass
        hardness = sum_by(cell, (w * d * difficulty)[late], 2 * n_workers) / mass
        units, unit = np.unique(cell * (len(owner) + 1) + owner[seen[late]], return_inverse=True)
        score = sum_by(unit, (w * d)[late] * (y[late] - d[late] * shift[cell]), len(units))
        n_units = np.bincount(units // (len(owner) + 1), minlength=2 * n_workers)
        spread = sum_by(units // (len(owner) + 1), score**2, 2 * n_workers)
        spread *= n_units / np.maximum(n_units - 1, 1) / mass**2
        enough = (n_answers >= FEWEST_ANSWERS) & (n_units.reshape(-1, 2) >= FEWEST_UNITS).all(axis=1)
        change, error = shift[1::2] - shift[::2], np.sqrt(spread[1::2] + spread[::2])
        freedom = np.maximum(n_units[1::2] + n_units[::2] - 2, 1)
        beyond = change - (np.median(change[enough]) if enough.any() else 0.0)
        ratio = np.divide(np.abs(beyond), error, out=np.zeros(n_workers), where=enough & (error > 0))
        differs = reject(np.where(enough, 2 * stdtr(freedom, -ratio), 1.0), int(enough.sum()))
        if not differs.any() or not (reference & ~differs).any():
            break
        reference &= ~differs

    whole = sum_by(worker[seen], w * d * y, n_workers) / np.maximum(sum_by(worker[seen], w * d**2, n_workers), TINY)
    first, last = (
        np.where(enough, np.clip(accuracy + each - whole, 0.0, 1.0), np.nan) for each in (shift[::2], shift[1::2])
    )
    margin = DOUBT * np.abs(hardness[1::2] - hardness[::2])
    reach = stdtrit(freedom, 1 - LEVEL / 2) * error + margin
    told = last - first
    # What was cut off at 0 or 1 must not lie outside.
    low = np.minimum(np.clip(change - reach, -1.0, 1.0), told)
    high = np.maximum(np.clip(change + reach, -1.0, 1.0), told)
    fall = np.divide(np.maximum(-change - margin, 0.0), error, out=np.zeros(n_workers), where=enough & (error > 0))
    falls = reject(np.where(enough, stdtr(freedom, -fall), 1.0), int(enough.sum()))
    falls &= enough & (high < 0) & (told <= -LEAST_FALL)
    figures = {"accuracy_first": first, "accuracy_last": last, "change": told, "change_low": low, "change_high": high}
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
