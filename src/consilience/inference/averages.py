r"""Averages of numbers that workers of different bias and precision gave, and what these workers are like.

Worker m says of item n the number

.. math:: y_{nm} = t_n + b_m + s_m e, \qquad b_m \sim N(0, \tau^2), \quad
          s_m^2 \sim \text{scaled inverse } \chi^2(4, s_0^2),

where e has a Student distribution with 4 degrees of freedom, or a normal one. Or the worker is careless: the answers
have nothing to do with the items. The values :math:`t_n` have a Student distribution with 2 degrees of freedom: its
tails are heavier than those of the errors, so that answers that agree are believed, wherever they are. There are four
averages:

- ``mean`` and ``median`` of the answers;
- ``weighted``: the mean, with weights :math:`1 / s_m^2`; errors are normal, and biases count as errors;
- ``robust``: the whole model. A Student error is normal with variance :math:`s_m^2 / u`, where u is expected, so that
  each step is a weighted mean; values, biases and variances take turns (variational Bayes).

Neither is best everywhere: errors of 0 beside a true 60 speak for the mean, slips of a digit against it. So
`compare` hides answers, and takes the average that predicts them with the smallest squared error.

**Intervals** of the robust average are quantiles of the posterior of :math:`t_n` on a grid, given what was learned of
workers, and wider by what is not known of biases: as all of them may be shifted together, by about
:math:`\tau / \sqrt{M}`, those of workers too. A Student answer has 5/7 of the information of a normal one.

**Careless.** Two explanations of the answers of worker m are compared, with the item's value from the *other* workers:
the model above; and answers that do not depend on the item (normal or uniform, with a location and spread of the
worker's own; or uniform, or normal, as the answers of the crowd). Unknown spreads are averaged over a grid.

Everything here is a function on arrays: a value may be a mark on a slider, or one side of a box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, ndtri, stdtrit

from ..kernels import Floats, Integers, Truths

AVERAGES = ("mean", "median", "weighted", "robust")
# Degrees of freedom of errors, of values, and of what is believed of variances before any answer.
ERRORS, VALUES, VARIANCES = 4.0, 2.0, 4.0
# The part of the information of a normal answer that a Student answer has, of the value and of the spread.
INFORMATION, OF_SPREAD = (ERRORS + 1) / (ERRORS + 3), ERRORS / (ERRORS + 3)
LOG_STUDENT = float(gammaln((ERRORS + 1) / 2) - gammaln(ERRORS / 2) - np.log(ERRORS * np.pi) / 2)
# Two thirds of Student errors are within so many scales.
MIDDLE_TWO_THIRDS = 1.142
# Items that the spread of all answers counts for when it is learned how values differ.
FEW = 2.0
# Ends of intervals, and how many standard errors these are away.
LEVEL = 0.9
WIDTH = float(ndtri((1 + LEVEL) / 2))
# The first step in which workers may count as careless, every how many steps they are judged, and by how many
# answers at least and at most.
FIRST, EVERY, LEAST_JUDGED, MOST_JUDGED = 5, 5, 5, 200
# Standard errors by which it is beyond doubt that a worker follows the others less than is usual.
SURELY = 1.645
# Variances that are averaged over, of workers of whom nothing is known, and points of the grid of a value.
N_VARIANCES, LEAST_VARIANCE, N_POINTS, REACH = 10, 1e-3, 31, 10.0
# To compare averages, answers are hidden in so many parts; how many are looked at, and are at least needed.
N_PARTS, MOST_HIDDEN, LEAST_HIDDEN = 10, 10_000, 20
# A logarithmic scale is taken if it is ahead by so many standard errors.
LEAD = 2.0
# Answers times points of the grid at a time.
RUN = 1 << 18
# Divisors are not smaller, and no number is further from the others, in units of their range: squares are finite.
TINY, FURTHEST = 1e-100, 1e12
# Nearly all numbers are between these quantiles.
ENDS = 0.005, 0.995


class Scale(NamedTuple):
    """How numbers become those that are worked with, most of which are within a range of 1."""

    middle: float
    unit: float
    is_log: bool = False

    @classmethod
    def of(cls, said: Floats, is_log: bool = False) -> Scale:
        """The scale on which these numbers have their median at 0."""
        values = np.log(said) if is_log else said
        low, high = find_range(values)
        middle = float(np.median(values))
        unit = max(high - low or float(np.ptp(values)), abs(middle) / FURTHEST) or 1.0
        return cls(middle, unit, is_log)

    def apply(self, said: Floats) -> Floats:
        """Numbers as they are worked with."""
        values = ((np.log(said) if self.is_log else said) - self.middle) / self.unit
        return np.clip(values, -FURTHEST, FURTHEST)

    def undo(self, values: Floats) -> Floats:
        """Numbers as workers say them."""
        values = values * self.unit + self.middle
        return np.exp(values) if self.is_log else values


def find_range(values: Floats) -> tuple[float, float]:
    """The range of nearly all numbers: of few, without the smallest and the largest."""
    low = float(np.quantile(values, ENDS[0], method="higher"))
    high = float(np.quantile(values, ENDS[1], method="lower"))
    return (low, high) if low < high else (float(values.min()), float(values.max()))


class Numbers(NamedTuple):
    """Numbers that workers gave, sorted by item, on a scale where most answers are within a range of 1."""

    item: Integers
    worker: Integers
    value: Floats
    weight: Floats  # of each answer
    known: Floats  # (N,) the values that are known, else NaN
    n_workers: int

    def keep(self, answers: Truths) -> Numbers:
        """Some of the answers, with all items and workers."""
        numbers = self.value[answers], self.weight[answers]
        return Numbers(self.item[answers], self.worker[answers], *numbers, self.known, self.n_workers)

    def about(self, items: Truths) -> Numbers:
        """The answers about some of the items."""
        some = self.keep(items[self.item])
        return some._replace(item=(np.cumsum(items) - 1)[some.item], known=self.known[items])

    def by_item(self, amounts: Floats) -> Floats:
        """Sums by item."""
        return np.asarray(np.bincount(self.item, amounts, len(self.known)), np.float64)

    def by_worker(self, amounts: Floats) -> Floats:
        """Sums by worker."""
        return np.asarray(np.bincount(self.worker, amounts, self.n_workers), np.float64)


@dataclass(frozen=True, eq=False)
class Averages:
    """What was learned: the values of items with intervals, and of workers bias, spread, and whether they are careless.

    Attributes
    ----------
    value, low, high, variance : ndarray of shape (N,)
        NaN of items without an answer.
    bias, bias_error, spread, careless : ndarray of shape (M,)
        The spread is the scale of a worker's errors, and `careless` a probability.
    freedom : ndarray of shape (M,)
        Degrees of freedom of the spreads.
    """

    value: Floats
    low: Floats
    high: Floats
    variance: Floats
    bias: Floats
    bias_error: Floats
    spread: Floats
    freedom: Floats
    careless: Floats
    n_iter: int
    converged: bool


def find_medians(data: Numbers) -> Floats:
    """The median of the answers to each item; NaN without any."""
    ordered = data.value[np.lexsort((data.value, data.item))]
    counts = np.bincount(data.item, minlength=len(data.known))
    first = np.cumsum(counts) - counts
    ends = [np.minimum(first + at, max(len(ordered) - 1, 0)) for at in ((counts - 1) // 2, counts // 2)]
    return np.where(counts > 0, (ordered[ends[0]] + ordered[ends[1]]) / 2, np.nan)


class Crowd(NamedTuple):
    """What is believed of M workers, and of all of them."""

    bias: Floats
    bias_variance: Floats  # given the values
    error: Floats  # the variance of the bias, but for a shift of all
    noise: Floats  # the variance of errors
    careless: Floats  # the probability
    usual: float  # variance of errors
    between: float  # variance of biases
    share: float  # of careless workers


def learn(data: Numbers, average: str, max_iter: int = 200, tol: float = 0.01) -> Averages:
    """The averages of all items, and what workers are like.

    Parameters
    ----------
    data : Numbers
        The answers, at least one.
    average : str
        One of `AVERAGES`.
    max_iter : int
        Most steps.
    tol : float
        It stops when values move by so many standard errors, on average.
    """
    n, is_known = data.by_item(data.weight), np.isfinite(data.known)
    mean = data.by_item(data.weight * data.value) / np.maximum(n, TINY)
    t = find_medians(data) if average in ("median", "robust") else mean
    t = np.where(is_known, data.known, np.where(n > 0, t, 0.0))
    squares, several = data.by_item(data.weight * np.minimum(np.abs(data.value - t[data.item]), 1.0) ** 2), n > 1
    pooled = float(squares[several].sum() / max((n - 1)[several].sum(), TINY))
    pooled = max(pooled if several.any() else float(np.var(data.value)), 1e-14)
    none = np.zeros(data.n_workers)
    crowd = Crowd(none, none, none, np.full(data.n_workers, pooled), none, pooled, pooled / 4, 0.1)
    if average == "robust":
        return learn_robust(data, t, crowd, max_iter, tol)
    judged, floor, n_iter, converged = choose_judged(data), 1e-6 * pooled, 0, True
    precision = data.weight / pooled
    information = data.by_item(precision)
    freedom = VARIANCES + np.maximum(n - 1, 0.0)
    variance = (VARIANCES * pooled + squares) / freedom / np.maximum(n, TINY)
    if average == "median":
        variance *= np.where(n > 2, np.pi / 2, 1.0)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance)
    if average == "weighted":
        converged = False
        while n_iter < max_iter and not converged:
            precision = data.weight / crowd.noise[data.worker]
            information = data.by_item(precision)
            before, t = t, data.by_item(precision * data.value) / np.maximum(information, TINY)
            t = np.where(is_known, data.known, t)
            variance = np.where(is_known, 0.0, 1 / np.maximum(information, TINY))
            usual, crowd = crowd.usual, update_noise(data, t, variance, crowd, 1.0, floor)
            n_iter += 1
            converged = n_iter > FIRST and have_settled(t, before, variance, crowd.usual / usual, tol)
        freedom = VARIANCES + data.by_worker(data.weight)
        inflated = crowd.noise * freedom / (freedom - 2)
        variance = 1 / np.maximum(data.by_item(data.weight / inflated[data.worker]), TINY)
        half = WIDTH * np.sqrt(variance)
    crowd = describe_workers(data, (t, information, precision), crowd, floor)
    crowd = judge_care(data, (t, information, precision), crowd, judged)
    freedom = count_freedom(data, (t, information, precision), crowd)
    return finish(data, t, t - half, t + half, variance, crowd, freedom, n_iter, converged)


def learn_robust(data: Numbers, t: Floats, crowd: Crowd, max_iter: int, tol: float) -> Averages:
    """The robust average, from the medians t; see the top of this file."""
    item, worker, y, weight, known, _ = data
    is_known, told = np.isfinite(known), np.bincount(item, minlength=len(known)) > 0
    judged, floor = choose_judged(data), 1e-6 * crowd.usual
    variance = np.where(is_known, 0.0, crowd.usual / np.maximum(data.by_item(weight), TINY))
    # Values have a Student distribution: each is normal with the variance width / heavy.
    middle = float(np.median(t[told]))
    away = np.abs(t[told] - middle)
    width = max(float(np.mean(np.minimum(away, 1.0) ** 2)), floor)
    most = max(float(np.var(y)), floor)  # the values of few items may be anywhere where answers are
    near = max((1.48 * float(np.median(away))) ** 2, 1e-3 * width)
    heavy = np.where(told, (VALUES + 1) / (VALUES + (t - middle) ** 2 / near), 0.0)
    n_iter, converged = 0, False
    while n_iter < max(max_iter, 1) and not converged:  # one step at least says what workers are like
        u = (ERRORS + 1) / (ERRORS + find_squares(data, t, variance, crowd) / crowd.noise[worker])
        precision = weight * u * ((1 - crowd.careless) / crowd.noise)[worker]
        information = np.maximum(data.by_item(precision) + heavy / width, TINY)
        sums = data.by_item(precision * (y - crowd.bias[worker])) + heavy / width * middle
        before, t = t, np.where(is_known, known, np.where(told, sums / information, middle))
        variance = np.where(is_known, 0.0, np.minimum(1 / information, 1.0))
        square = (t - middle) ** 2 + variance
        heavy = np.where(told, (VALUES + 1) / (VALUES + square / width), 0.0)
        middle = float(np.sum(heavy * t) / heavy.sum())
        spread = float(np.sum(heavy * ((t - middle) ** 2 + variance)))
        width = max((spread + FEW * most) / (told.sum() + FEW), floor)
        crowd = update_bias(data, t, crowd, u, precision / information[item])
        if not is_known.any():  # nobody knows whether all workers, or all values, are higher
            care = 1 - crowd.careless
            shift = float(np.sum(care * crowd.bias) / max(care.sum(), TINY))
            crowd, t, middle = crowd._replace(bias=crowd.bias - shift), t + shift, middle + shift
        usual, crowd = crowd.usual, update_noise(data, t, variance, crowd, u, floor)
        if n_iter >= FIRST and (n_iter - FIRST) % EVERY == 0:
            crowd = judge_care(data, (t, information, precision), crowd, judged)
        n_iter += 1
        converged = n_iter > FIRST + EVERY and have_settled(t, before, variance, crowd.usual / usual, tol)
    freedom = count_freedom(data, (t, information, precision / np.maximum(u, TINY)), crowd, OF_SPREAD)
    low, high = find_quantiles(data, t, variance, crowd, freedom, (middle, width))
    # What is not known of biases makes intervals wider.
    part = INFORMATION * weight * ((1 - crowd.careless) / crowd.noise)[worker]
    part /= (data.by_item(part) + (VALUES + 1) / (VALUES + 3) / width)[item]
    common = 0.0 if is_known.any() else find_common(crowd)
    extra = data.by_item(part**2 * crowd.error[worker]) + common * data.by_item(part) ** 2
    own = ((high - low) / (2 * WIDTH)) ** 2
    wider = np.sqrt(1 + extra / np.maximum(own, TINY))
    low, high = t + (np.minimum(low, t) - t) * wider, t + (np.maximum(high, t) - t) * wider
    return finish(data, t, low, high, own + extra, crowd, freedom, n_iter, converged)


def have_settled(t: Floats, before: Floats, variance: Floats, ratio: float, tol: float) -> bool:
    """Whether values have moved by less than `tol` standard errors, on average, and the usual noise hardly."""
    moved = float(np.mean((t - before) ** 2 / np.maximum(variance, TINY)))
    return moved < tol**2 and abs(np.log(ratio)) < tol


def find_common(crowd: Crowd) -> float:
    """The variance of a shift of all biases together, if no value is known."""
    n = float((1 - crowd.careless).sum())
    freedom = max(n - 1, 3.0)  # of few biases it is hardly known how much they differ
    return crowd.between / max(n, 1.0) * freedom / (freedom - 2)


def find_squares(data: Numbers, t: Floats, variance: Floats, crowd: Crowd) -> Floats:
    """The expected squared error of each answer."""
    item, worker = data.item, data.worker
    return (data.value - t[item] - crowd.bias[worker]) ** 2 + variance[item] + crowd.bias_variance[worker]


def update_bias(data: Numbers, t: Floats, crowd: Crowd, u: Floats | float, share: Floats) -> Crowd:
    """The biases of workers; `share` is the part that each answer has in the value of its item."""
    own, care = data.weight * u / crowd.noise[data.worker], 1 - crowd.careless
    told = data.by_worker(own)
    variance = 1 / (told + 1 / crowd.between)
    bias = data.by_worker(own * (data.value - t[data.item])) * variance
    error = 1 / (INFORMATION * data.by_worker(own * (1 - share)) + 1 / crowd.between)
    between = float(np.sum(care * (bias**2 + error)) / max(care.sum(), TINY))
    return crowd._replace(bias=bias, bias_variance=variance, error=error, between=max(between, 1e-4 * crowd.usual))


def update_noise(data: Numbers, t: Floats, variance: Floats, crowd: Crowd, u: Floats | float, floor: float) -> Crowd:
    """The variances of errors, shrunk to that of the crowd."""
    squares = data.by_worker(data.weight * u * find_squares(data, t, variance, crowd))
    noise = (VARIANCES * crowd.usual + squares) / (VARIANCES + data.by_worker(data.weight))
    care = 1 - crowd.careless
    return crowd._replace(noise=noise, usual=max(float(care.sum() / max(np.sum(care / noise), TINY)), floor))


def leave_out(data: Numbers, state: tuple[Floats, Floats, Floats], bias: Floats) -> tuple[Floats, Floats]:
    """The value of each answer's item by the other answers, and its precision: 0 where there are no others."""
    t, information, precision = state
    information = np.where(np.isfinite(data.known), 1 / TINY, information)[data.item]
    rest = np.where(information - precision > 1e-6 * information, information - precision, 0.0)
    part = np.where(rest > 0, precision / np.maximum(rest, TINY), 0.0)
    centre = t[data.item]
    return centre + part * (centre - data.value + bias[data.worker]), rest


def count_freedom(
    data: Numbers, state: tuple[Floats, Floats, Floats], crowd: Crowd, information: float = 1.0
) -> Floats:
    """Degrees of freedom of the spreads: an answer tells less of an error where the value itself is uncertain."""
    rest = leave_out(data, state, crowd.bias)[1]
    noise = crowd.noise[data.worker]
    part = np.where(rest > 0, noise / (noise + 1 / np.maximum(rest, TINY)), 0.0)
    return VARIANCES + information * data.by_worker(data.weight * part**2)


def describe_workers(data: Numbers, state: tuple[Floats, Floats, Floats], crowd: Crowd, floor: float) -> Crowd:
    """Bias and noise of workers beside values that do not depend on these, by the values without their own answers."""
    others, rest = leave_out(data, state, np.zeros(data.n_workers))
    gap, unknown, weight = data.value - others, 1 / np.maximum(rest, TINY), data.weight * (rest > 0)
    n, worker = data.by_worker(weight), data.worker
    for _ in range(20):
        noise, bias = crowd.noise[worker], crowd.bias[worker]
        own = weight / (noise + unknown)
        error = 1 / (data.by_worker(own) + 1 / crowd.between)
        mean = data.by_worker(own * gap) * error
        square = ((gap - bias) ** 2 + crowd.error[worker]) * (noise / (noise + unknown)) ** 2
        squares = data.by_worker(weight * (square + noise * unknown / (noise + unknown)))
        noise = np.maximum((VARIANCES * crowd.usual + squares) / (VARIANCES + n), floor)
        between = max(float(np.mean(mean**2 + error)), 1e-4 * crowd.usual)
        crowd = crowd._replace(
            bias=mean, error=error, noise=noise, between=between, usual=1 / float(np.mean(1 / noise))
        )
    return crowd


def choose_judged(data: Numbers) -> Integers:
    """The answers by which workers are judged: the first ones of each."""
    order = np.argsort(data.worker, kind="stable")
    n = np.bincount(data.worker, minlength=data.n_workers)
    return np.sort(order[np.arange(len(order)) - np.repeat(np.cumsum(n) - n, n) < MOST_JUDGED])


def judge_care(data: Numbers, state: tuple[Floats, Floats, Floats], crowd: Crowd, judged: Integers) -> Crowd:
    """The probability that each worker is careless, and the share of these; see the top of this file."""
    some = data._replace(item=data.item[judged], worker=data.worker[judged], value=data.value[judged])
    others, rest = leave_out(some, (state[0], state[1], state[2][judged]), crowd.bias)
    judged, others, rest = judged[rest > 0], others[rest > 0], rest[rest > 0]
    worker, y = data.worker[judged], data.value[judged]
    bias = crowd.bias[worker]

    def add(amounts: Floats) -> Floats:
        return np.asarray(np.bincount(worker, amounts, data.n_workers), np.float64)

    low, high = find_range(data.value)
    spread, middle = max(float(np.var(np.clip(data.value, low, high))), TINY), float(np.median(data.value))
    grid = spread * np.geomspace(LEAST_VARIANCE, 1.0, N_VARIANCES)
    n, centred = add(np.ones(len(y))), y - middle
    sums, squares = add(centred), add(centred**2)
    skilled, normal = [], []
    for variance in grid:
        total = variance + 1 / rest
        z = (y - bias - others) ** 2 / total
        log_density = LOG_STUDENT - (ERRORS + 1) / 2 * np.log1p(z / ERRORS) - np.log(total) / 2
        told = 1 / (add(1 / total) + 1 / crowd.between)
        skilled.append(add(log_density) - crowd.bias**2 / crowd.between / 2 + np.log(told / crowd.between) / 2)
        left = n / variance + 1 / spread
        own = (
            (sums / variance) ** 2 / left
            - squares / variance
            - n * np.log(2 * np.pi * variance)
            - np.log(left * spread)
        )
        normal.append(own / 2)
    least, most = np.full(data.n_workers, np.inf), np.full(data.n_workers, -np.inf)
    np.minimum.at(least, worker, y)
    np.maximum.at(most, worker, y)
    room = max(float(high - low), TINY)
    reach = np.log(np.maximum(np.where(n > 0, most - least, 0.0), 0.05 * room))
    beyond = np.log(np.maximum(np.abs(y - (low + high) / 2) / (room / 2), 1.0))
    inside = add(np.where(beyond > 0, np.log(0.01) - 2 * beyond, np.log(0.99)) - np.log(room))
    pairs = np.log(np.maximum((n - 1) * (n - 2), 2.0))
    uniform = np.where(n > 3, np.log(2) - 2 * np.log(1.2 * room) - (n - 2) * reach - pairs, inside)
    as_crowd = -squares / spread / 2 - n * np.log(2 * np.pi * spread) / 2
    kinds = [np.logaddexp.reduce(normal, axis=0) - np.log(N_VARIANCES), uniform, inside, as_crowd]
    chance = np.logaddexp.reduce(kinds, axis=0) - np.log(len(kinds))
    skill = np.logaddexp.reduce(skilled, axis=0) - np.log(N_VARIANCES)
    careless = expit(np.clip(np.log(crowd.share / (1 - crowd.share)) + chance - skill, -500, 500))
    # Nobody is called careless by a few answers, nor who follows the others half as closely as is usual, or may do so.
    x = others - middle
    products = n * add(x * centred) - add(x) * sums
    scales = (n * add(x**2) - add(x) ** 2) * (n * squares - sums**2)
    follows = np.where(scales > 0, products / np.sqrt(np.maximum(scales, TINY)), 0.0)
    many = n >= LEAST_JUDGED
    half = float(np.median(follows[many])) / 2 if many.any() else 0.0
    gap = np.arctanh(min(2 * half, 0.999)) - np.arctanh(np.clip(follows, -0.999, 0.999))
    lost = many & (follows < half) & (gap * np.sqrt(np.maximum(n - 3, 0)) > SURELY)
    careless = np.where(lost, careless, np.minimum(careless, 0.5))
    share = float(np.clip((careless.sum() + 0.5) / (data.n_workers + 5), 1e-3, 0.5))
    return crowd._replace(careless=careless, share=share)


def find_quantiles(
    data: Numbers, t: Floats, variance: Floats, crowd: Crowd, freedom: Floats, prior: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Ends of the intervals of values, given what is known of workers: quantiles of the posterior on a grid."""
    offsets = np.searchsorted(data.item, np.arange(len(t) + 1))
    steps = np.sinh(np.linspace(-3, 3, N_POINTS))
    steps *= REACH / steps[-1]
    gaps = np.gradient(steps)
    noise, care = crowd.noise * freedom / (freedom - 2), 1 - crowd.careless
    low, high = t.copy(), t.copy()
    some = np.flatnonzero(np.diff(offsets) > 0)
    ends = np.unique(np.searchsorted(offsets[some], np.arange(0, len(data.item) + 1, RUN // N_POINTS)))
    for first, last in zip(ends, [*ends[1:], len(some)], strict=True):
        items = some[first:last]
        if not len(items):
            continue
        answers = slice(offsets[items[0]], offsets[items[-1] + 1])
        worker, at = data.worker[answers], data.item[answers]
        points = t[items, None] + np.sqrt(variance[items])[:, None] * steps
        error = (data.value[answers] - crowd.bias[worker])[:, None] - points[np.searchsorted(items, at)]
        density = np.exp(LOG_STUDENT) / np.sqrt(noise[worker])[:, None]
        far = 1 + error**2 / (ERRORS * noise[worker])[:, None]
        density = density / (far * far * np.sqrt(far))  # the power (ERRORS + 1) / 2
        said = np.log(care[worker][:, None] * density + (crowd.careless[worker][:, None] + TINY))
        log_weight = np.add.reduceat(data.weight[answers][:, None] * said, offsets[items] - offsets[items[0]], axis=0)
        log_weight -= (VALUES + 1) / 2 * np.log1p((points - prior[0]) ** 2 / (VALUES * prior[1]))
        mass = np.exp(log_weight - log_weight.max(axis=1, keepdims=True)) * gaps
        below = np.cumsum(mass, axis=1) - mass / 2
        below /= mass.sum(axis=1, keepdims=True)
        for end, part in ((low, (1 - LEVEL) / 2), (high, (1 + LEVEL) / 2)):
            place = np.clip((below < part).sum(axis=1), 1, N_POINTS - 1)
            rows = np.arange(len(items))
            left, right = below[rows, place - 1], below[rows, place]
            share = np.clip((part - left) / np.maximum(right - left, TINY), 0.0, 1.0)
            end[items] = points[rows, place - 1] * (1 - share) + points[rows, place] * share
    return low, high


def finish(
    data: Numbers,
    t: Floats,
    low: Floats,
    high: Floats,
    variance: Floats,
    crowd: Crowd,
    freedom: Floats,
    n_iter: int,
    converged: bool,
) -> Averages:
    """The estimates, with known values and without those that nobody answered."""
    is_known, told = np.isfinite(data.known), np.bincount(data.item, minlength=len(t)) > 0
    low, high = (np.where(is_known, data.known, np.where(told, end, np.nan)) for end in (low, high))
    common = 0.0 if is_known.any() else find_common(crowd)
    return Averages(
        np.where(is_known | told, t, np.nan),
        low,
        high,
        np.where(is_known, 0.0, np.where(told, variance, np.nan)),
        crowd.bias,
        np.sqrt(crowd.error * freedom / (freedom - 2) + common),
        np.sqrt(crowd.noise),
        freedom,
        crowd.careless,
        n_iter,
        converged,
    )


class Compared(NamedTuple):
    """How averages predict hidden answers: by average the squared error of each, and their log densities."""

    answers: Integers  # which were hidden, and judged
    squares: dict[str, Floats]
    densities: Floats  # by the robust average

    def errors(self) -> dict[str, float]:
        """The root of the mean squared error of each average."""
        return {average: float(np.sqrt(np.mean(each))) for average, each in self.squares.items()}


def compare(data: Numbers, draws: Integers, max_iter: int, tol: float) -> Compared:
    """Hide answers in several parts, and predict them by the rest.

    `draws`, whole numbers >= 0, say in which part an answer is hidden. Answers to one item are in different parts,
    where there are enough of these.
    """
    order = np.lexsort((draws, data.item))
    starts = np.searchsorted(data.item, np.arange(len(data.known)))  # of items, in this order
    part = np.empty(len(order), np.int64)
    first = draws[order[np.minimum(starts, len(order) - 1)]]
    part[order] = (np.arange(len(order)) - (starts - first)[data.item]) % N_PARTS
    answers, densities = [], []
    squares: dict[str, list[Floats]] = {average: [] for average in AVERAGES}
    for number in range(N_PARTS):
        kept = part != number
        rest = data.keep(kept)
        judgeable = (np.bincount(rest.item, minlength=len(data.known)) > 0) & np.isnan(data.known)
        hidden = np.flatnonzero(~kept & judgeable[data.item])
        if not len(hidden):
            continue
        answers.append(hidden)
        item, worker = data.item[hidden], data.worker[hidden]
        for average in AVERAGES:
            learned = learn(rest, average, max_iter, tol)
            bias = learned.bias[worker] if average == "robust" else 0.0
            error = data.value[hidden] - learned.value[item] - bias
            squares[average].append(np.minimum(error**2, 1.0))  # one wild answer must not decide
        scale = np.sqrt(learned.variance[item] + learned.spread[worker] ** 2)  # of the last one, which is robust
        careful = np.exp(LOG_STUDENT - (ERRORS + 1) / 2 * np.log1p((error / scale) ** 2 / ERRORS)) / scale
        careless = learned.careless[worker]
        densities.append(np.log((1 - careless) * careful + careless + TINY))
    if not answers:
        return Compared(np.empty(0, np.int64), {}, np.empty(0))
    joined = {average: np.concatenate(each) for average, each in squares.items()}
    return Compared(np.concatenate(answers), joined, np.concatenate(densities))
