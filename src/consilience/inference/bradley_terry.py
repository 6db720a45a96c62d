r"""Bradley-Terry with ties and judges: scores of candidates from verdicts on pairs.

Judge m sees the candidates l (left) and r (right), and prefers one of them or calls it a tie. With the scores s of the
candidates, the discrimination d and the position bias g of the judge, and :math:`\nu` for ties (Davidson),

.. math:: z = d_m (s_l - s_r) + g_m, \qquad \text{left} : \text{right} : \text{tie} = e^{z/2} : e^{-z/2} : \nu

A judge who tosses coins has d near 0 and stops counting, a contrarian has a negative d. All verdicts of one family of
judges on one pair (and item) share an effect h, which is added to z: twenty prompts of one model are not twenty judges.

**Priors.** :math:`s \sim N(0, \sigma_s^2)`, :math:`d \sim N(1, \sigma_d^2)`, :math:`g \sim N(0, \sigma_g^2)`,
:math:`h \sim N(0, \tau^2)`, :math:`\log \nu \sim N(0, 2^2)`. The estimate is the maximum of the posterior, by L-BFGS,
among those with a mean discrimination of 1: scores times a factor and discriminations divided by it would fit as well,
and with many candidates the scores would go to 0.

**Variances** are those that maximise the marginal likelihood in Laplace's approximation. There the variance of n
parameters is the mean of their squares and of their posterior variances; an entry of the usual size is added, so that
few judges do not decide. A joint maximum would not do: it is at a variance of 0.

**Curvature.** The expected curvature of the log likelihood has a shape that is easy to invert: the parameters of a
judge meet no other judge's. With the blocks A (scores and :math:`\log \nu`), D (2 x 2 for each judge) and B between
them, :math:`S = A - B D^{-1} B^T` is the inverse covariance of the scores. A shared effect takes its share of the
information of n verdicts: they count :math:`1 / (1 + \tau^2 \sum \kappa)` each, which is exact if they are alike.
Covariances are those given the mean of the discriminations.

**Verdicts on one item** hang together. Where there are items, the covariance is :math:`S^{-1} K S^{-1}`, with K the
sum over items of the squared gradients (and of the priors' part), each without what the judges' parameters explain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import coo_array, csr_array

from ..kernels import Floats, Integers, Truths
from . import sum_by
from .em import Progress

# The spread of the log of the weight of ties.
TIE_SPREAD = 2.0
# Spreads that are usual: of scores, discriminations, biases, and what a family shares. For each, an entry of this size
# is added to those that it is learned from, so many times.
USUAL = (1.0, 0.7, 0.5, 0.5)
ADDED = 2.0
# Variances are learned in rounds, until no spread changes by more than this share.
ROUNDS, SETTLED = 60, 0.003
# A spread is no less than this.
LEAST_SPREAD = 0.01
# The discrimination of whoever knows.
KNOWN = 10.0
# With more cells than this, the search begins with a part of them.
MANY_CELLS = 200_000
# So many entries of a matrix of candidates and judges are worked on at a time.
MOST_ENTRIES = 1 << 22
# A search may try any weight of ties; exponentials of more overflow.
MOST_LOG = 700.0


@dataclass(frozen=True, eq=False)
class Cells:
    """Verdicts that were summed: all of one judge on one pair, and of one effect and item if there are any.

    Attributes
    ----------
    judge, left, right : ndarray of shape (R,)
        Who was asked about which two.
    n_left, n_right, n_tie : ndarray of shape (R,)
        How many verdicts of each kind there are, or their weights.
    n_candidates, n_judges : int
        How many there are; some of the judges may be known verdicts.
    learns_discrimination, learns_bias : ndarray of shape (M,)
        Of which judges they are learned.
    discrimination : ndarray of shape (M,)
        Where it is not learned: what it is.
    effect : ndarray of shape (R,) or None
        The effect that is shared, -1 for none.
    sign : ndarray of shape (R,) or None
        Whether the effect is for the left (1) or the right (-1).
    n_effects : int
        How many effects there are.
    """

    judge: Integers
    left: Integers
    right: Integers
    n_left: Floats
    n_right: Floats
    n_tie: Floats
    n_candidates: int
    n_judges: int
    learns_discrimination: Truths
    learns_bias: Truths
    discrimination: Floats
    effect: Integers | None = None
    sign: Floats | None = None
    n_effects: int = 0

    @property
    def n_verdicts(self) -> Floats:
        """How many verdicts each cell has."""
        return self.n_left + self.n_right + self.n_tie

    def sample(self, step: int) -> Cells:
        """Return every so many-th cell, with the same candidates, judges and effects."""
        return replace(
            self,
            judge=self.judge[::step],
            left=self.left[::step],
            right=self.right[::step],
            n_left=self.n_left[::step],
            n_right=self.n_right[::step],
            n_tie=self.n_tie[::step],
            effect=None if self.effect is None else self.effect[::step],
            sign=None if self.sign is None else self.sign[::step],
        )

    @property
    def has_ties(self) -> bool:
        """Whether anybody called a tie."""
        return bool(self.n_tie.any())


class Spreads(NamedTuple):
    """Standard deviations: of scores, discriminations and biases, and of what a family shares."""

    score: float = USUAL[0]
    discrimination: float = USUAL[1]
    bias: float = USUAL[2]
    effect: float = USUAL[3]


class Estimates(NamedTuple):
    """Parameters: scores (C,), discriminations (M,), biases (M,), effects (H,), and the log of the weight of ties.

    Without ties that is minus infinity.
    """

    score: Floats
    discrimination: Floats
    bias: Floats
    effect: Floats
    log_tie: float

    def to_vector(self) -> Floats:
        """Return them as one vector."""
        tie = [self.log_tie] if np.isfinite(self.log_tie) else []
        return np.concatenate([self.score, self.discrimination, self.bias, self.effect, tie])

    def with_vector(self, vector: Floats) -> Estimates:
        """Return those of a vector of the same shape."""
        ends = np.cumsum([len(each) for each in self[:4]])
        score, discrimination, bias, effect, tie = np.split(vector, ends)
        return Estimates(score, discrimination, bias, effect, float(tie[0]) if len(tie) else -np.inf)


# ------------------------------------------------------------------------------------------------------------- kernels


class Odds(NamedTuple):
    """What each cell is expected to be: the probabilities of a tie, and of left less that of right; log normaliser."""

    tie: Floats
    lead: Floats
    log_total: Floats


def find_odds(z: Floats, log_tie: float) -> Odds:
    r"""Return probabilities of verdicts for z, and :math:`\log(e^{z/2} + e^{-z/2} + \nu)`.

    All are divided by the largest of the first two terms, so that nothing overflows.

    >>> tie, lead, log_total = find_odds(np.array([0.0, 2000.0]), 0.0)
    >>> tie.round(2).tolist(), lead.tolist(), log_total.round(2).tolist()
    ([0.33, 0.0], [0.0, 1.0], [1.1, 1000.0])
    >>> find_odds(np.zeros(1), 1e4).tie.tolist()
    [1.0]
    """
    half = np.abs(z) / 2
    smaller = np.exp(-half)  # the square root of the second term
    tie = np.exp(min(log_tie, MOST_LOG)) * smaller
    square = smaller * smaller
    total = 1 + square + tie
    return Odds(tie / total, np.copysign(1 - square, z) / total, half + np.log(total))


def spell_contrast(cells: Cells, at: Estimates) -> tuple[Floats, Floats]:
    """Return z of each cell, and how much the left is ahead of the right."""
    ahead = at.score[cells.left] - at.score[cells.right]
    z = at.discrimination[cells.judge] * ahead + at.bias[cells.judge]
    if cells.effect is not None and cells.sign is not None and len(at.effect):
        z += np.where(cells.effect >= 0, cells.sign * at.effect[cells.effect], 0.0)
    return z, ahead


def find_loss(cells: Cells, at: Estimates, spreads: Spreads) -> tuple[float, Floats]:
    r"""Return the negative log posterior up to a constant, and its gradient.

    A cell adds :math:`n \log(e^{z/2} + e^{-z/2} + \nu) - (n_l - n_r) z / 2 - n_t \log \nu`, with the derivative
    :math:`(n (p_l - p_r) - n_l + n_r) / 2` by z.
    """
    z, ahead = spell_contrast(cells, at)
    odds = find_odds(z, at.log_tie)
    n, lead = cells.n_verdicts, cells.n_left - cells.n_right
    by_z = (n * odds.lead - lead) / 2
    # No dot products: those of BLAS have other last bits with other numbers of threads.
    loss = float(np.sum(n * odds.log_total - lead * z / 2))
    by_ahead = by_z * at.discrimination[cells.judge]
    by_score = sum_by(cells.left, by_ahead, cells.n_candidates)
    by_score -= sum_by(cells.right, by_ahead, cells.n_candidates)
    by_discrimination = sum_by(cells.judge, by_z * ahead, cells.n_judges)
    by_bias = sum_by(cells.judge, by_z, cells.n_judges)
    by_effect = np.zeros(len(at.effect))
    if cells.effect is not None and cells.sign is not None and len(at.effect):
        shared = cells.effect >= 0
        by_effect = sum_by(cells.effect[shared], (cells.sign * by_z)[shared], len(at.effect))
    parts = [
        by_score + at.score / spreads.score**2,
        (by_discrimination + (at.discrimination - 1) / spreads.discrimination**2) * cells.learns_discrimination,
        (by_bias + at.bias / spreads.bias**2) * cells.learns_bias,
        by_effect + at.effect / spreads.effect**2,
    ]
    loss += float(np.sum(at.score**2)) / (2 * spreads.score**2) + float(np.sum(at.bias**2)) / (2 * spreads.bias**2)
    loss += float(np.sum((at.discrimination[cells.learns_discrimination] - 1) ** 2)) / (2 * spreads.discrimination**2)
    loss += float(np.sum(at.effect**2)) / (2 * spreads.effect**2)
    if np.isfinite(at.log_tie):
        loss += at.log_tie**2 / (2 * TIE_SPREAD**2) - float(cells.n_tie.sum()) * at.log_tie
        parts.append(np.array([np.sum(n * odds.tie) - cells.n_tie.sum() + at.log_tie / TIE_SPREAD**2]))
    return loss, np.concatenate(parts)


# ---------------------------------------------------------------------------------------------------------- the maximum


class Found(NamedTuple):
    """A maximum of the posterior: where it is, and how the search ended."""

    at: Estimates
    n_iter: int
    converged: bool


def start(cells: Cells) -> Estimates:
    """Return where the search begins: all alike, and as many ties as there are.

    Scores begin with the share of verdicts that each candidate won, which is on the right side for most of them: at 0
    everywhere, discriminations have no gradient.
    """
    lead, n = cells.n_left - cells.n_right, cells.n_verdicts
    won = sum_by(cells.left, lead, cells.n_candidates) - sum_by(cells.right, lead, cells.n_candidates)
    asked = sum_by(cells.left, n, cells.n_candidates) + sum_by(cells.right, n, cells.n_candidates)
    total, ties = float(n.sum()), float(cells.n_tie.sum())
    log_tie = float(np.log(2 * ties / (total - ties + 1))) if ties else -np.inf
    discrimination = np.where(cells.learns_discrimination, 1.0, cells.discrimination)
    return Estimates(won / (asked + 2), discrimination, np.zeros(cells.n_judges), np.zeros(cells.n_effects), log_tie)


def maximise(cells: Cells, spreads: Spreads, at: Estimates, max_iter: int, tol: float) -> Found:
    """Return the maximum of the posterior near `at`.

    The search is for parameters times the root of their curvature, which all have about the same scale. It stops when
    no parameter, taken alone, is further than `tol` standard errors from where it should be.
    """
    from scipy.optimize import minimize  # here, for it takes long to import and few need it

    scale = np.sqrt(find_diagonal(cells, at, spreads))
    learned = cells.n_candidates + np.flatnonzero(cells.learns_discrimination)  # discriminations in the vector

    def centre(vector: Floats) -> Estimates:
        if len(learned):
            vector[learned] += 1 - vector[learned].mean()
        return at.with_vector(vector)

    def look(vector: Floats) -> tuple[float, Floats]:
        loss, gradient = find_loss(cells, centre(vector / scale), spreads)
        if len(learned):
            gradient[learned] -= gradient[learned].mean()
        return loss, gradient / scale

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    result = minimize(look, at.to_vector() * scale, jac=True, method="L-BFGS-B", options=options)
    # The search also ends, with a failure of its line search, where rounding allows no step down any more.
    settled = bool(result.success) or float(np.abs(result.jac).max()) <= 100 * tol
    return Found(centre(result.x / scale), int(result.nit), settled)


def find_diagonal(cells: Cells, at: Estimates, spreads: Spreads) -> Floats:
    """Return the expected curvature of each parameter taken alone; 1 for what is not learned."""
    z, ahead = spell_contrast(cells, at)
    odds, n = find_odds(z, at.log_tie), cells.n_verdicts
    by_z = n * ((1 - odds.tie) - odds.lead**2) / 4
    by_ahead = by_z * at.discrimination[cells.judge] ** 2
    of_score = sum_by(cells.left, by_ahead, cells.n_candidates) + sum_by(cells.right, by_ahead, cells.n_candidates)
    of_discrimination = sum_by(cells.judge, by_z * ahead**2, cells.n_judges) + spreads.discrimination**-2
    of_bias = sum_by(cells.judge, by_z, cells.n_judges) + spreads.bias**-2
    of_effect = np.zeros(len(at.effect))
    if cells.effect is not None and len(at.effect):
        shared = cells.effect >= 0
        of_effect = sum_by(cells.effect[shared], by_z[shared], len(at.effect))
    parts = [
        of_score + spreads.score**-2,
        np.where(cells.learns_discrimination, of_discrimination, 1.0),
        np.where(cells.learns_bias, of_bias, 1.0),
        of_effect + spreads.effect**-2,
    ]
    if np.isfinite(at.log_tie):
        parts.append(np.array([np.sum(n * odds.tie * (1 - odds.tie)) + TIE_SPREAD**-2]))
    return np.concatenate(parts)


# ------------------------------------------------------------------------------------------------------------ curvature


@dataclass(frozen=True, eq=False)
class Curvature:
    """The expected curvature at an estimate, by blocks; C candidates, M judges.

    Attributes
    ----------
    inner : ndarray of shape (C + 1, C + 1)
        A: of the scores and of the log weight of ties.
    cross : sparse array of shape (C + 1, 2 M)
        B: with the discriminations of all judges, and then their biases.
    judges : ndarray of shape (M, 2, 2)
        The inverse of D. What is not learned has 0.
    precision : ndarray of shape (M, 2)
        The prior's part of D, 0 for what is not learned.
    inner_prior : ndarray of shape (C + 1,)
        The prior's part of the diagonal of A.
    effect_gain : ndarray of shape (H,)
        The information about each effect, without its prior.
    """

    inner: Floats
    cross: csr_array
    judges: Floats
    precision: Floats
    inner_prior: Floats
    effect_gain: Floats

    def spread_judges(self) -> csr_array:
        """Return the inverse of D as a sparse matrix, (2 M, 2 M)."""
        m = len(self.judges)
        row, column = np.meshgrid((0, 1), (0, 1), indexing="ij")
        place = np.arange(m)[:, None, None]
        entries = (self.judges.ravel(), ((place + m * row).ravel(), (place + m * column).ravel()))
        return csr_array(coo_array(entries, shape=(2 * m, 2 * m)))


def find_curvature(cells: Cells, at: Estimates, spreads: Spreads) -> Curvature:
    """Return the expected curvature of the negative log posterior at an estimate."""
    z, ahead = spell_contrast(cells, at)
    odds = find_odds(z, at.log_tie)
    n, d = cells.n_verdicts, at.discrimination[cells.judge]
    # The variance of 1/2, -1/2 or 0 for left, right and tie; and its covariance with a tie.
    by_z = n * ((1 - odds.tie) - odds.lead**2) / 4
    by_both = -n * odds.tie * odds.lead / 2
    gain = np.zeros(cells.n_effects)
    if cells.effect is not None and cells.n_effects:
        shared = cells.effect >= 0
        gain = sum_by(cells.effect[shared], by_z[shared], cells.n_effects)
        share = np.where(shared, 1 / (1 + spreads.effect**2 * gain[cells.effect]), 1.0)
        by_z, by_both = by_z * share, by_both * share
    c, m = cells.n_candidates, cells.n_judges
    pairs = sum_by(cells.left.astype(np.int64) * c + cells.right, by_z * d * d, c * c).reshape(c, c)
    pairs += pairs.T
    inner, inner_prior = np.zeros((c + 1, c + 1)), np.append(np.full(c, spreads.score**-2), TIE_SPREAD**-2)
    inner[:c, :c] = np.diag(pairs.sum(axis=1)) - pairs
    inner[:c, c] = sum_by(cells.left, by_both * d, c) - sum_by(cells.right, by_both * d, c)
    inner[c, :c] = inner[:c, c]
    inner[c, c] = np.sum(n * odds.tie * (1 - odds.tie))
    inner[np.arange(c + 1), np.arange(c + 1)] += inner_prior
    by_judge = [sum_by(cells.judge, by_both * ahead, m), sum_by(cells.judge, by_both, m)]
    cross = find_cross(cells, np.concatenate([by_z * d * ahead, by_z * d]), np.concatenate(by_judge))
    own = [sum_by(cells.judge, by_z * ahead**power, m) for power in (2, 1, 0)]
    learns = np.column_stack([cells.learns_discrimination, cells.learns_bias])
    precision = learns * np.array([spreads.discrimination**-2, spreads.bias**-2])
    return Curvature(inner, cross, invert_judges(cells, own, precision), precision, inner_prior, gain)


def find_cross(cells: Cells, weights: Floats, ties: Floats) -> csr_array:
    """Return the curvature between scores and ties and the parameters of judges, (C + 1, 2 M).

    `weights` are those of each cell with its discrimination, then with its bias; `ties` those of all judges with ties.
    """
    c, m = cells.n_candidates, cells.n_judges
    learned = np.concatenate([cells.learns_discrimination, cells.learns_bias])
    column = np.concatenate([cells.judge, cells.judge.astype(np.int64) + m])
    left, right = np.tile(cells.left, 2).astype(np.int64), np.tile(cells.right, 2).astype(np.int64)
    weights = weights * learned[column]
    if c * m <= MOST_ENTRIES:
        dense = sum_by(left * 2 * m + column, weights, 2 * m * c) - sum_by(right * 2 * m + column, weights, 2 * m * c)
        return csr_array(np.vstack([dense.reshape(c, 2 * m), ties * learned]))
    entries = np.concatenate([weights, -weights, ties * learned])
    rows = np.concatenate([left, right, np.full(2 * m, c)])
    columns = np.concatenate([column, column, np.arange(2 * m)])
    return csr_array(coo_array((entries, (rows, columns)), shape=(c + 1, 2 * m)))


def invert_judges(cells: Cells, own: list[Floats], precision: Floats) -> Floats:
    """Return the inverse of the 2 x 2 curvature of each judge, with 0 for what is not learned."""
    first, both, second = own[0] + precision[:, 0], own[1], own[2] + precision[:, 1]
    learns_d, learns_g = cells.learns_discrimination, cells.learns_bias
    both = both * (learns_d & learns_g)
    first, second = np.where(learns_d, first, 1.0), np.where(learns_g, second, 1.0)
    inverse = np.array([[second, -both], [-both, first]]).transpose(2, 0, 1) / (first * second - both**2)[:, None, None]
    inverse[~learns_d, 0, 0] = 0.0
    inverse[~learns_g, 1, 1] = 0.0
    return np.asarray(inverse)


class Mean(NamedTuple):
    r"""The mean discrimination, as the curvature alone leaves it open; w averages over judges.

    Attributes
    ----------
    to_mean : ndarray of shape (2 M,)
        :math:`D^{-1} w`.
    with_scores : ndarray of shape (C + 1,)
        Its covariance with scores and ties, :math:`-S^{-1} q` with :math:`q = B D^{-1} w`.
    with_judges : ndarray of shape (2 M,)
        Its covariance with the parameters of judges, :math:`D^{-1} w + D^{-1} B^T S^{-1} q`.
    variance : float
        :math:`w^T D^{-1} w + q^T S^{-1} q`; 0 if no discrimination is learned.
    """

    to_mean: Floats
    with_scores: Floats
    with_judges: Floats
    variance: float


def find_mean(found: Curvature, explained: csr_array, inverse: Floats) -> Mean:
    """Return how the mean discrimination varies with the other parameters."""
    learned = found.precision[:, 0] > 0
    weights = np.concatenate([learned / max(int(learned.sum()), 1), np.zeros(len(learned))])
    to_mean = found.spread_judges() @ weights
    q = found.cross @ to_mean
    moved = inverse @ q
    return Mean(to_mean, -moved, to_mean + explained.T @ moved, float(weights @ to_mean + q @ moved))


class Inverse(NamedTuple):
    """What the curvature tells of uncertainty, given the mean discrimination.

    Attributes
    ----------
    scores : ndarray of shape (C + 1, C + 1)
        The covariance of scores and ties.
    judges : ndarray of shape (M, 2)
        The variances of discrimination and bias.
    free : ndarray of shape (C + 1, C + 1)
        The covariance of scores and ties if the mean discrimination is not given: the inverse of S.
    mean : Mean
        How the mean discrimination would vary then.
    """

    scores: Floats
    judges: Floats
    free: Floats
    mean: Mean


def invert_symmetric(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, by Cholesky's factors unless rounding has made it indefinite."""
    factor, failed = dpotrf(matrix, lower=1, clean=1)
    if not failed:
        inverse, failed = dpotri(factor, lower=1)
    if failed:
        inverse = np.linalg.inv(matrix)
        return np.asarray((inverse + inverse.T) / 2)
    diagonal = np.diag(inverse).copy()
    inverse = inverse + inverse.T  # the upper triangle is clean
    np.fill_diagonal(inverse, diagonal)
    return np.asarray(inverse)


def invert(found: Curvature) -> Inverse:
    """Return covariances.

    Those without a given mean are the inverse of S, and the diagonal of :math:`D^{-1} + D^{-1} B^T S^{-1} B D^{-1}`.
    """
    m = len(found.judges)
    explained = csr_array(found.cross @ found.spread_judges())  # B D^-1
    schur = found.inner - (explained @ found.cross.T).toarray()
    free = invert_symmetric((schur + schur.T) / 2)
    variances = np.concatenate([found.judges[:, 0, 0], found.judges[:, 1, 1]])
    by_judge = csr_array(explained.T)
    size = max(1, MOST_ENTRIES // len(free))
    for first in range(0, 2 * m, size):
        rows = by_judge[first : first + size].toarray()
        variances[first : first + size] += np.einsum("ij,ij->i", rows @ free, rows)
    mean, scores = find_mean(found, explained, free), free
    if mean.variance > 0:
        scores = free - np.outer(mean.with_scores, mean.with_scores) / mean.variance
        variances = np.maximum(variances - mean.with_judges**2 / mean.variance, 0.0)
    return Inverse(scores, variances.reshape(2, m).T, free, mean)


# ------------------------------------------------------------------------------------------------------------ variances


def learn_spreads(cells: Cells, at: Estimates, spreads: Spreads) -> Spreads:
    """Return the spreads of the next round: the mean square of what is expected of the parameters at these ones."""
    found = find_curvature(cells, at, spreads)
    inverse = invert(found)
    c = cells.n_candidates
    squares = [
        at.score**2 + np.diag(inverse.scores)[:c],
        ((at.discrimination - 1) ** 2 + inverse.judges[:, 0])[cells.learns_discrimination],
        (at.bias**2 + inverse.judges[:, 1])[cells.learns_bias],
        at.effect**2 + 1 / (found.effect_gain + spreads.effect**-2),
    ]
    given = (0, int(len(squares[1]) > 0), 0, 0)  # the mean discrimination is not free
    parts = zip(squares, USUAL, given, strict=True)
    return Spreads(*(learn_spread(each, usual, n_given) for each, usual, n_given in parts))


def learn_spread(squares: Floats, usual: float, n_given: int) -> float:
    """Return a spread from the expected squares of what it is of, of which so many follow from the others."""
    # A variance that is lost in rounding, beside numbers that are far larger, may come out below 0.
    mean = (ADDED * usual**2 + float(np.maximum(squares, 0.0).sum())) / (ADDED + len(squares) - n_given)
    return max(float(np.sqrt(mean)), LEAST_SPREAD)


class Fit(NamedTuple):
    """What was learned, the spreads that it was learned with, and how the search ended."""

    at: Estimates
    spreads: Spreads
    n_iter: int
    converged: bool


def fit(cells: Cells, max_iter: int, tol: float, callback: Callable[[Progress], object] | None = None) -> Fit:
    """Learn scores, judges and spreads, in turns. The callback is told of each round.

    With contrary judges, the order and its reverse are both maxima. If some verdicts are known, the search is repeated
    from the reverse, and the better maximum is taken.
    """
    found = fit_from(cells, start(cells), max_iter, tol, callback)
    learned = cells.learns_discrimination
    if learned.all() or not (found.at.discrimination[learned] < 0).any():
        return found
    other = fit_from(cells, reverse(cells, found.at), max_iter, tol, spreads=found.spreads)
    losses = [find_loss(cells, each.at, found.spreads)[0] for each in (found, other)]
    return other if losses[1] < losses[0] else found


def reverse(cells: Cells, at: Estimates) -> Estimates:
    """Return the reverse order, with judges for whom it is the better one; discriminations still have mean 1."""
    discrimination = np.where(cells.learns_discrimination, 2 - at.discrimination, at.discrimination)
    return at._replace(score=-at.score, discrimination=discrimination)


def fit_from(
    cells: Cells,
    at: Estimates,
    max_iter: int,
    tol: float,
    callback: Callable[[Progress], object] | None = None,
    spreads: Spreads | None = None,
) -> Fit:
    """Learn scores, judges and spreads in turns, from somewhere on."""
    n_iter, begun = 0, spreads is not None
    spreads = Spreads() if spreads is None else spreads
    step = len(cells.judge) // MANY_CELLS
    if step > 1 and not begun:
        part = fit(cells.sample(step), max_iter, tol)
        at = part.at._replace(log_tie=part.at.log_tie if np.isfinite(part.at.log_tie) else at.log_tie)
        spreads, n_iter = part.spreads, part.n_iter
    for number in range(ROUNDS):
        found = maximise(cells, spreads, at, max_iter, tol)
        at, n_iter = found.at, n_iter + found.n_iter
        following = learn_spreads(cells, at, spreads)
        change = max(abs(np.log(after / before)) for after, before in zip(following, spreads, strict=True))
        if callback is not None:
            callback(Progress(number + 1, ROUNDS, -find_loss(cells, at, spreads)[0], change))
        if change < SETTLED:
            return Fit(at, spreads, n_iter, found.converged)
        spreads = following
    found = maximise(cells, spreads, at, max_iter, tol)
    return Fit(found.at, spreads, n_iter + found.n_iter, False)
