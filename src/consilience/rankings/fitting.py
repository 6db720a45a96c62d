r"""Fitting a ranking: scores, judges and spreads from verdicts, and how certain the scores are.

The estimate is the maximum of the posterior, by L-BFGS, among those whose learned discriminations have the mean 1.

**Spreads** maximise the marginal likelihood in Laplace's approximation. There the variance of n parameters is the mean
of their squares and of their posterior variances; an entry of the usual size is added twice, so that few judges do not
decide. A joint maximum would not do: it is at a variance of 0.

**Verdicts on one item** hang together. Where there are items, the covariance of the scores is
:math:`S^{-1} K S^{-1}`, with K the sum over items of the squared gradients (and of the priors' part), each without what
the parameters of the judges explain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from ..inference.em import Progress
from ..kernels import Floats, Integers
from .likelihood import (
    DISCRIMINATION,
    LOG_TIE,
    MOST_ENTRIES,
    SCORE,
    USUAL,
    Cells,
    Curvature,
    find_curvature,
    find_diagonal,
    find_loss,
    predict,
)

# An entry of the usual size is added to those that a spread is learned from, so many times.
ADDED = 2.0
# Spreads are learned in rounds, until none changes by more than this share.
ROUNDS, SETTLED = 60, 0.003
LEAST_SPREAD = 0.01
# With more cells than this, the search begins with a part of them.
MANY_CELLS = 200_000
# 95 % intervals: their ends, and half their width in standard deviations.
INTERVAL, WIDTH = (0.025, 0.975), 1.959963984540054


class Fit(NamedTuple):
    """The parameters, the spread of each kind of them, and how the search ended."""

    vector: Floats
    spreads: Floats
    n_iter: int
    converged: bool


def fit(cells: Cells, max_iter: int, tol: float, callback: Callable[[Progress], object] | None = None) -> Fit:
    """Learn parameters and spreads. The callback gets the progress of each round.

    With contrary judges, the order and its reverse are both maxima. If some verdicts are known, the search is repeated
    from the reverse, and the better maximum is taken.
    """
    vector, spreads, n_iter = find_start(cells), USUAL, 0
    step = len(cells.n) // MANY_CELLS
    if step > 1:
        vector, spreads, n_iter, _ = fit(cells.sample(step), max_iter, tol)
    found = alternate(cells, Fit(vector, spreads, n_iter, False), max_iter, tol, callback)
    is_judge = cells.kind == DISCRIMINATION
    learned = is_judge & cells.learned
    if learned.sum() == is_judge.sum() or not (found.vector[learned] < 0).any():
        return found
    reverse = np.where(learned, 2 - found.vector, np.where(cells.kind == SCORE, -found.vector, found.vector))
    other = alternate(cells, found._replace(vector=reverse), max_iter, tol)
    losses = [find_loss(cells, each.vector, found.spreads)[0] for each in (found, other)]
    return other if losses[1] < losses[0] else found


def find_start(cells: Cells) -> Floats:
    """Where the search begins: all judges alike, and as many ties as there are.

    Scores begin with the share of verdicts that each candidate won, which is on the right side for most of them: at 0
    everywhere, discriminations have no gradient.
    """
    c, (left, right) = cells.sizes[SCORE], cells.columns[:2]
    won = np.bincount(left, cells.lead, c) - np.bincount(right, cells.lead, c)
    asked = np.bincount(left, cells.n, c) + np.bincount(right, cells.n, c)
    vector, n_ties = cells.mean.copy(), float(cells.ties.sum())
    vector[:c] = won / (asked + 2)
    if n_ties:
        vector[c] = np.log(2 * n_ties / (cells.n.sum() - n_ties + 1))
    return vector


def alternate(
    cells: Cells, start: Fit, max_iter: int, tol: float, callback: Callable[[Progress], object] | None = None
) -> Fit:
    """Learn parameters and spreads in turns, until the spreads settle."""
    vector, spreads, n_iter, _ = start
    n_learned = np.bincount(cells.kind, cells.learned, 5)
    n_free = n_learned - (n_learned > 0) * (np.arange(5) == DISCRIMINATION)  # their mean is given
    for number in range(ROUNDS):
        vector, n_more, converged = maximise(cells, vector, spreads, max_iter, tol)
        n_iter += n_more
        variance = find_curvature(cells, vector, spreads).variance
        off = np.subtract(vector, cells.mean, out=np.zeros_like(vector), where=cells.learned)
        squares = np.bincount(cells.kind, (off**2 + variance) * cells.learned, 5)
        learned = np.maximum(np.sqrt((ADDED * USUAL**2 + squares) / (ADDED + n_free)), LEAST_SPREAD)
        learned[LOG_TIE] = USUAL[LOG_TIE]
        change = float(np.abs(np.log(learned / spreads)).max())
        if callback is not None:
            callback(Progress(number + 1, ROUNDS, -find_loss(cells, vector, spreads)[0], change))
        if change < SETTLED:
            return Fit(vector, spreads, n_iter, converged)
        spreads = learned
    vector, n_more, _ = maximise(cells, vector, spreads, max_iter, tol)
    return Fit(vector, spreads, n_iter + n_more, False)


def maximise(cells: Cells, vector: Floats, spreads: Floats, max_iter: int, tol: float) -> tuple[Floats, int, bool]:
    """The maximum of the posterior near a vector, the number of iterations, and whether the search settled.

    The search is for parameters times the root of their curvature, which all have about the same scale. It stops when
    no parameter, taken alone, is further than `tol` standard errors from where it should be.
    """
    from scipy.optimize import minimize  # here, for it takes long to import and few need it

    free = np.flatnonzero(cells.learned)
    scale = np.sqrt(find_diagonal(cells, vector, spreads)[free])
    centred = np.flatnonzero(cells.kind[free] == DISCRIMINATION)

    def place(scaled: Floats) -> Floats:
        values, full = scaled / scale, vector.copy()
        if len(centred):
            values[centred] += 1 - values[centred].mean()
        full[free] = values
        return full

    def evaluate(scaled: Floats) -> tuple[float, Floats]:
        loss, gradient = find_loss(cells, place(scaled), spreads)
        gradient = gradient[free]
        if len(centred):
            gradient[centred] -= gradient[centred].mean()
        return loss, gradient / scale

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    result = minimize(evaluate, vector[free] * scale, jac=True, method="L-BFGS-B", options=options)
    # The search also ends, with a failure of its line search, where rounding allows no step down any more.
    settled = bool(result.success) or float(np.abs(result.jac).max()) <= 100 * tol
    return place(result.x), int(result.nit), settled


def find_covariance(cells: Cells, found: Curvature, part: Integers, middle: Floats | None = None) -> tuple[Floats, ...]:
    """The covariance of scores with mean 0 in each part, and a matrix whose square it is.

    Parameters
    ----------
    cells, found
        The verdicts and their curvature.
    part : ndarray of shape (C,)
        The part of the comparisons that each candidate belongs to.
    middle : ndarray of shape (S, S), optional
        K, from `square_items`. Without it, the covariance is that of the curvature.
    """
    c = cells.sizes[SCORE]
    covariance = found.inverse if middle is None else found.inverse @ middle @ found.inverse.T
    covariance = (covariance[:c, :c] + covariance[:c, :c].T) / 2
    try:
        root = np.asarray(np.linalg.cholesky(covariance), np.float64)
    except np.linalg.LinAlgError:  # rounding may have left eigenvalues just below 0
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    root = centring(part) @ root
    return root @ root.T, root


def centring(part: Integers) -> Floats:
    """The matrix that takes the mean of its part from each score."""
    same = part[:, None] == part[None, :]
    return np.asarray(np.eye(len(part)) - same / same.sum(axis=1, keepdims=True))


def square_items(cells: Cells, item: Integers, vector: Floats, found: Curvature, n_items: int) -> Floats:
    r"""K as a sum over items, (S, S), of cells that are kept apart by item.

    The cells may be those of some of the N items, and stand for all of them.

    Gradients at an estimate are smaller than at the truth, so the sum over N items grows by N / (N - p), with p the
    number of parameters that the verdicts and not the priors have determined. On the whole it is no less than the
    curvature's own K. With few items the sum says little about single candidates, so it is mixed with that K, times how
    much larger the sum is on the whole.
    """
    c, n_rows = cells.sizes[SCORE], len(found.schur)
    sums = sum_squares(cells, item, vector, found)
    is_free = (cells.learned | (cells.kind == LOG_TIE)) & (np.arange(len(vector)) < c + 1 + 2 * cells.sizes[2])
    n_free = float(is_free.sum() - (n_rows > c + 1) - np.sum((found.precision * found.variance)[is_free]))
    n_looked = int(item.max()) + 1
    total = sums * (n_items / n_looked) * n_items / (n_items - min(n_free, n_items / 2))

    own, border = found.schur.copy(), slice(c + 1, n_rows)
    own[border], own[:, border], own[border, border] = 0.0, 0.0, -found.schur[border, border]
    of_judges = found.precision[c + 1 : c + 1 + found.explained.shape[1]]
    prior = (csr_array(found.explained * of_judges) @ found.explained.T).toarray()
    prior[np.arange(c + 1), np.arange(c + 1)] += found.precision[: c + 1]
    own -= prior
    excess = float(np.trace(total[:c, :c])) / max(float(np.trace(own[:c, :c])), 1e-300)
    share = n_items / (n_items + c)
    mixed = share * total + (1 - share) * excess * own
    return np.asarray(mixed * max(1.0, 1 / max(excess, 1e-300)) + prior)


def sum_squares(cells: Cells, item: Integers, vector: Floats, found: Curvature) -> Floats:
    """The sum over items of the squared gradients by scores and ties, without what judges explain, (S, S)."""
    c, (n_rows, n_columns) = cells.sizes[SCORE], found.explained.shape
    odds, _, slopes = predict(cells, vector)
    slopes *= cells.learned[cells.columns] * (cells.n * odds.lead - cells.lead) / 2
    places = np.tile(item, 6), np.append(cells.columns.ravel(), np.full(len(item), c))
    entries = np.append(slopes.ravel(), cells.n * odds.tie - cells.ties)
    n_items = int(item.max()) + 1
    gradients = csr_array(coo_array((entries, places), shape=(n_items, len(vector))))
    inner, outer = gradients[:, : c + 1], gradients[:, c + 1 : c + 1 + n_columns]
    total = np.zeros((n_rows, n_rows))
    at_once = max(1, MOST_ENTRIES // n_rows)
    for start in range(0, n_items, at_once):
        some = slice(start, start + at_once)
        left = -(outer[some] @ found.explained.T).toarray()
        left[:, : c + 1] += inner[some].toarray()
        total += left.T @ left
    return total


def rank_draws(score: Floats, root: Floats, part: Integers, n_draws: int, seed: int) -> tuple[Integers, ...]:
    """Ranks within each part, 1 for the best, and between which ranks 95 % of the draws of scores are."""
    noise = np.random.default_rng(seed).standard_normal((n_draws, root.shape[1]))
    drawn = rank_rows(score + noise @ root.T, part)
    low, high = (np.quantile(drawn, end, axis=0, method="inverted_cdf") for end in INTERVAL)
    better = (score[None, :] > score[:, None]) & (part[None, :] == part[:, None])
    rank = 1 + better.sum(axis=1)  # equal scores have the same rank
    return rank, np.minimum(low, rank), np.maximum(high, rank)


def rank_rows(scores: Floats, part: Integers) -> Integers:
    """The rank of each score in its row among those of its part, 1 for the highest.

    >>> rank_rows(np.array([[0.1, 0.5, 0.3]]), np.array([0, 0, 1]))
    array([[2, 1, 1]])
    """
    of_rows = np.broadcast_to(part, scores.shape)
    order = np.lexsort((-scores, of_rows))
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, scores.shape[1] + 1), order.shape), axis=1)
    before = np.cumsum(np.bincount(part)) - np.bincount(part)
    return np.asarray(ranks - before[part])
