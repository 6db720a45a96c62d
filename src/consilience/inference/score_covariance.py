r"""How sure scores are: their covariance on the scale that is reported, and intervals of ranks.

Scores are reported with mean 0 in each part of the comparisons, and with a mean discrimination of 1. Without the
latter, gradients e of scores (without what judges explain) and :math:`a = w^T D^{-1} g` of the mean discrimination have
the covariance K, whose blocks are S and :math:`w^T D^{-1} w`, and errors of scores and of the mean are

.. math:: u = S^{-1} e, \qquad \delta = a - q^T u, \qquad q = B D^{-1} w

Given the mean, the errors of the scores are :math:`u - \operatorname{Cov}(s, \bar d) \delta / \operatorname{Var}(\bar
d)`. Where verdicts on one item hang together, K is the sum of squares over items instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from ..kernels import Floats, Integers
from .bradley_terry import MOST_ENTRIES, Cells, Curvature, Estimates, Inverse, find_odds, spell_contrast

INTERVAL = (0.025, 0.975)


class Scaled(NamedTuple):
    """Scores as they are reported, and their covariance."""

    score: Floats
    covariance: Floats
    root: Floats  # whose rows, times standard normal numbers, are errors of the scores


def scale_scores(at: Estimates, inverse: Inverse, part: Integers, middle: Floats | None) -> Scaled:
    """Return reported scores with their covariance.

    Parameters
    ----------
    at, inverse
        Estimates, and covariances at them.
    part : ndarray of shape (C,)
        The part that each candidate belongs to.
    middle : ndarray of shape (C + 2, C + 2) or None
        K, by items. None: that of the curvature.
    """
    c, mean = len(at.score), inverse.mean
    covariance = inverse.scores
    if middle is not None:
        turn = np.zeros((c + 1, c + 2))
        turn[:, :-1] = inverse.free
        if mean.variance > 0:
            given = mean.with_scores / mean.variance
            # u - given (a + with_scores e), for -q S^-1 is with_scores
            turn[:, :-1] -= np.outer(given, mean.with_scores)
            turn[:, -1] = -given
        covariance = turn @ middle @ turn.T
    centre = centring(part)
    covariance = covariance[:c, :c]
    root = centre @ find_root((covariance + covariance.T) / 2)
    return Scaled(centre @ at.score, root @ root.T, root)


def centring(part: Integers) -> Floats:
    """Return the matrix that takes the mean of its part from each score."""
    same = part[:, None] == part[None, :]
    return np.asarray(np.eye(len(part)) - same / same.sum(axis=1, keepdims=True))


def find_root(covariance: Floats) -> Floats:
    """Return a matrix whose square is a covariance, which rounding may have left with eigenvalues just below 0."""
    try:
        return np.asarray(np.linalg.cholesky(covariance), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def square_items(
    cells: Cells, item: Integers, at: Estimates, found: Curvature, inverse: Inverse, n_items: int
) -> Floats:
    """Return K as a sum over items, (C + 2, C + 2), of cells that are kept apart by item.

    The cells may be those of some of the N items, and stand for all of them.

    Gradients at an estimate are smaller than at the truth, so the sum over N items grows by N / (N - p), with p the
    number of parameters that the verdicts and not the priors have determined. On the whole it is no less than the
    curvature's own K. With few items the sum says little about single candidates, so it is mixed with that K, times how
    much larger the sum is on the whole.
    """
    c = cells.n_candidates
    explained, to_mean = csr_array(found.cross @ found.spread_judges()), inverse.mean.to_mean
    free = min(count_parameters(cells, found, inverse), n_items / 2)
    inner, outer = find_gradients(cells, item, at)
    grown = n_items / inner.shape[0] * n_items / (n_items - free)
    total = sum_squares(inner, outer, explained, to_mean) * grown
    prior = square_priors(found, explained, to_mean)
    own = np.zeros((c + 2, c + 2))
    learned = cells.learns_discrimination
    own[:-1, :-1] = found.inner - (explained @ found.cross.T).toarray()
    own[-1, -1] = to_mean[: len(learned)] @ learned / max(int(learned.sum()), 1)
    own -= prior
    excess = float(np.trace(total[:c, :c])) / max(float(np.trace(own[:c, :c])), 1e-300)
    share = n_items / (n_items + c)
    mixed = share * total + (1 - share) * excess * own
    return np.asarray(mixed * max(1.0, 1 / max(excess, 1e-300)) + prior)


def sum_squares(inner: csr_array, outer: csr_array, explained: csr_array, to_mean: Floats) -> Floats:
    r"""Return the sum over items of the squares of (e, a): :math:`e = g - B D^{-1} g'`, :math:`a = w^T D^{-1} g'`.

    `inner` has the gradients g by scores and ties, `outer` the gradients g' by judges.
    """
    n_items, size = inner.shape[0], inner.shape[1] + 1
    total = np.zeros((size, size))
    at_once = max(1, MOST_ENTRIES // size)
    for first in range(0, n_items, at_once):
        some = slice(first, first + at_once)
        both = np.column_stack([(inner[some] - outer[some] @ explained.T).toarray(), outer[some] @ to_mean])
        total += both.T @ both
    return total


def count_parameters(cells: Cells, found: Curvature, inverse: Inverse) -> float:
    """Return how many parameters the verdicts have determined: all, each less the share that its prior has in it."""
    n_judges = int(cells.learns_discrimination.sum() + cells.learns_bias.sum() - cells.learns_discrimination.any())
    by_priors = found.inner_prior @ np.diag(inverse.scores) + np.sum(found.precision * inverse.judges)
    return float(len(found.inner_prior) + n_judges - by_priors)


def square_priors(found: Curvature, explained: csr_array, to_mean: Floats) -> Floats:
    """Return the part of the priors in K: of scores and ties, and of judges by way of the scores that they explain."""
    precision = np.concatenate([found.precision[:, 0], found.precision[:, 1]])
    weighted = csr_array(explained * precision)
    size = len(found.inner_prior)
    prior = np.zeros((size + 1, size + 1))
    prior[:-1, :-1] = (weighted @ explained.T).toarray()
    prior[np.arange(size), np.arange(size)] += found.inner_prior
    prior[:-1, -1] = prior[-1, :-1] = -(weighted @ to_mean)
    prior[-1, -1] = precision @ to_mean**2
    return prior


def find_gradients(cells: Cells, item: Integers, at: Estimates) -> tuple[csr_array, csr_array]:
    """Return the gradient of each item, by scores and ties (N, C + 1), and by judges (N, 2 M)."""
    z, ahead = spell_contrast(cells, at)
    odds, n = find_odds(z, at.log_tie), cells.n_verdicts
    slope = (n * odds.lead - (cells.n_left - cells.n_right)) / 2
    by_ahead, by_tie = slope * at.discrimination[cells.judge], n * odds.tie - cells.n_tie
    c, m, n_items = cells.n_candidates, cells.n_judges, int(item.max()) + 1
    columns = np.concatenate([cells.left, cells.right, np.full(len(item), c)])
    entries = np.concatenate([by_ahead, -by_ahead, by_tie])
    inner = csr_array(coo_array((entries, (np.tile(item, 3), columns)), shape=(n_items, c + 1)))
    of_judges = np.concatenate(
        [slope * ahead * cells.learns_discrimination[cells.judge], slope * cells.learns_bias[cells.judge]]
    )
    columns = np.concatenate([cells.judge, cells.judge.astype(np.int64) + m])
    outer = csr_array(coo_array((of_judges, (np.tile(item, 2), columns)), shape=(n_items, 2 * m)))
    return inner, outer


class Ranks(NamedTuple):
    """Ranks within each part, 1 for the best, and the ends of their intervals."""

    rank: Integers
    low: Integers
    high: Integers


def find_ranks(scaled: Scaled, part: Integers, n_draws: int, seed: int) -> Ranks:
    """Return ranks, and between which ranks 95 % of the draws of scores are."""
    noise = np.random.default_rng(seed).standard_normal((n_draws, scaled.root.shape[1]))
    rank, low, high = (np.empty(len(part), np.int64) for _ in range(3))
    for number in range(int(part.max()) + 1):
        inside = np.flatnonzero(part == number)
        drawn = scaled.score[inside] + noise @ scaled.root[inside].T
        ranks = rank_rows(drawn)
        low[inside] = np.quantile(ranks, INTERVAL[0], axis=0, method="inverted_cdf")
        high[inside] = np.quantile(ranks, INTERVAL[1], axis=0, method="inverted_cdf")
        # Equal scores have the same rank.
        better = np.sort(-scaled.score[inside])
        rank[inside] = 1 + np.searchsorted(better, -scaled.score[inside], side="left")
    return Ranks(rank, np.minimum(low, rank), np.maximum(high, rank))


def rank_rows(scores: Floats) -> Integers:
    """Return the rank of each score in its row, 1 for the highest.

    >>> rank_rows(np.array([[0.1, 0.5, 0.3]]))
    array([[3, 1, 2]])
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, scores.shape[1] + 1), order.shape), axis=1)
    return ranks
