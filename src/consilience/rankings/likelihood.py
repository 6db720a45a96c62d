r"""Bradley-Terry with ties and judges: the likelihood of verdicts, its maximum, and how certain the scores are.

Judge m sees the candidates l (left) and r (right), and prefers one of them or calls it a tie. With the scores s of the
candidates, the discrimination d and the position bias g of the judge, and :math:`\nu` for ties (Davidson),

.. math:: z = d_m (s_l - s_r) + g_m + h, \qquad \text{left} : \text{right} : \text{tie} = e^{z/2} : e^{-z/2} : \nu

A judge who tosses coins has d near 0 and stops counting, a contrarian has a negative d. All verdicts of one family of
judges on one pair (and item) share an effect h: twenty prompts of one model are not twenty judges.

**Priors.** :math:`s \sim N(0, \sigma_s^2)`, :math:`d \sim N(1, \sigma_d^2)`, :math:`g \sim N(0, \sigma_g^2)`,
:math:`h \sim N(0, \tau^2)`, :math:`\log \nu \sim N(0, 2^2)`. The mean of the learned d is 1: scores times a factor and
discriminations divided by it would fit as well, and with many candidates the scores would go to 0.

**Fit.** The estimate is the maximum of the posterior, by L-BFGS, among those whose learned discriminations have the
mean 1. *Spreads* maximise the marginal likelihood in Laplace's approximation. There the variance of n parameters is the
mean of their squares and of their posterior variances; an entry of the usual size is added twice, so that few judges do
not decide. A joint maximum would not do: it is at a variance of 0.

**Verdicts on one item** hang together. Where there are items, the covariance of the scores is :math:`S^{-1} K S^{-1}`,
with K the sum over items of the squared gradients (and of the priors' part), each without what the parameters of the
judges explain.

All parameters are one vector: scores, log weight of ties, discriminations, biases, effects. A cell meets five of them:
two scores, and the discrimination, bias and effect of its judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import coo_array, csr_array, diags_array

from ..inference import TAILS_95
from ..inference.cells import sum_by
from ..inference.em import Progress
from ..kernels import NEARLY_ZERO, Floats, Integers, Truths
from .comparisons import LEFT, RIGHT, TIE, Comparisons

# Kinds of parameters, in their order in the vector.
SCORE, LOG_TIE, DISCRIMINATION, BIAS, EFFECT = range(5)
# Their usual spreads. That of ties is not learned.
USUAL_SPREADS = np.array([1.0, 2.0, 0.7, 0.5, 0.5])
# The discrimination of the judge who gives known verdicts.
KNOWN = 10.0
# Entries of a matrix of judges and candidates that are held at a time.
MOST_CURVATURE_ENTRIES = 1 << 22
# A search may try any weight of ties; exponentials of more overflow.
MOST_LOG = 700.0
# An entry of the usual size is added to those that a spread is learned from, so many times.
ADDED_ENTRIES = 2.0
# Spreads are learned in rounds, until none changes by more than this share.
MOST_SPREAD_ROUNDS, SPREADS_SETTLED, MOST_RATIO = 60, 0.003, 0.9
LEAST_SPREAD_OF_SCORES = 0.01


@dataclass(frozen=True, eq=False)
class VerdictCells:
    """Verdicts that were summed: all of one judge on one pair, and of one effect and item if there are any.

    Attributes
    ----------
    columns : ndarray of shape (5, R)
        Where in the vector of parameters are the scores of left and right, discrimination, bias and effect.
    sign : ndarray of shape (R,)
        Whether the effect is for the left (1) or the right (-1); 0 if there is none.
    n, lead, ties : ndarray of shape (R,)
        The number of verdicts, those for the left less those for the right, and ties.
    first : ndarray of shape (R,)
        A row of the comparisons that belongs to the cell.
    sizes : tuple of int
        How many parameters there are of each kind.
    kind : ndarray of shape (P,)
        The kind of each parameter.
    learned : ndarray of shape (P,)
        Whether it is learned.
    mean : ndarray of shape (P,)
        The mean of its prior, or its value if it is not learned.
    """

    columns: Integers
    sign: Floats
    n: Floats
    lead: Floats
    ties: Floats
    first: Integers
    sizes: tuple[int, ...]
    kind: Integers
    learned: Truths
    mean: Floats


def count_verdicts(data: Comparisons, discrimination: bool, bias: bool, *, by_item: bool = False) -> VerdictCells:
    """Sum verdicts over rows of the same judge, pair and effect (and item).

    Judges beyond those of `data.workers` are sources of known verdicts. The discrimination of a single judge is the
    scale of the scores, and is not learned.
    """
    n_rows, n_workers, n_candidates = data.n_comparisons, data.n_workers, data.n_candidates
    effect, sign, n_effects = np.full(n_rows, -1), np.zeros(n_rows), 1
    if data.group is not None:
        low, high = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
        code, _, count = group_rows(data.group, low, high, *([] if data.item is None else [data.item]))
        shared = count > 1
        effect = np.where(shared, np.cumsum(shared) - 1, -1)[code]
        sign = np.where(effect < 0, 0.0, np.where(data.left == low, 1.0, -1.0))
        n_effects = max(1, int(shared.sum()))
    keys = [data.worker, data.left, data.right, effect + 1]
    code, first, _ = group_rows(*keys, *([data.item] if by_item and data.item is not None else []))
    n_left, n_right, ties = (
        sum_by(code, data.weights * (data.verdict == verdict), len(first)) for verdict in (LEFT, RIGHT, TIE)
    )
    n_judges = max(n_workers, int(data.worker.max()) + 1)
    sizes = (n_candidates, 1, n_judges, n_judges, n_effects)
    start = np.cumsum([0, *sizes])
    kind = np.repeat(np.arange(5), sizes)
    is_worker = np.arange(n_judges) < n_workers
    learned = np.concatenate(
        [
            np.ones(n_candidates, bool),
            [bool(ties.any())],
            is_worker & discrimination & (n_workers > 1),
            is_worker & bias,
            np.full(n_effects, bool(sign.any())),
        ]
    )
    mean = np.where(kind == DISCRIMINATION, 1.0, 0.0)
    mean[start[DISCRIMINATION] : start[BIAS]][~is_worker] = KNOWN
    if not ties.any():
        mean[n_candidates] = -np.inf
    places = [data.left, data.right, data.worker, data.worker, np.maximum(effect, 0)]
    offsets = start[[SCORE, SCORE, DISCRIMINATION, BIAS, EFFECT]]
    columns = np.array([place[first] + offset for place, offset in zip(places, offsets, strict=True)])
    n = n_left + n_right + ties
    return VerdictCells(columns, sign[first], n, n_left - n_right, ties, first, sizes, kind, learned, mean)


def group_rows(*keys: Integers) -> tuple[Integers, Integers, Integers]:
    """One code for each combination of keys, in their order; the first row of each code, and how many rows it has.

    >>> code, first, count = group_rows(np.array([1, 0, 1, 1]), np.array([0, 5, 5, 0]))
    >>> code.tolist(), first.tolist(), count.tolist()
    ([1, 0, 2, 1], [1, 0, 2], [1, 2, 1])
    """
    joint = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        width = int(key.max(initial=0)) + 1
        if int(joint.max(initial=0)) >= 2**62 // width:  # too many for 64 bits: only those that occur are counted
            joint = np.unique(joint, return_inverse=True)[1]
        joint = joint * width + key
    _, first, code, count = np.unique(joint, return_index=True, return_inverse=True, return_counts=True)
    return code, first, count


def find_odds(z: Floats, log_tie: float) -> tuple[Floats, Floats, Floats]:
    r"""Probability of a tie, that of left less that of right, and :math:`\log(e^{z/2} + e^{-z/2} + \nu)`.

    All are divided by the largest of the first two terms, so that nothing overflows.

    >>> tie, lead, log_total = find_odds(np.array([0.0, 2000.0]), 0.0)
    >>> tie.round(2).tolist(), lead.tolist(), log_total.round(2).tolist()
    ([0.33, 0.0], [0.0, 1.0], [1.1, 1000.0])
    >>> find_odds(np.zeros(1), 1e4)[0].tolist()
    [1.0]
    """
    half = np.abs(z) / 2
    smaller = np.exp(-half)  # the square root of the second term
    tie = np.exp(min(log_tie, MOST_LOG)) * smaller
    square = smaller * smaller
    total = 1 + square + tie
    return tie / total, np.copysign(1 - square, z) / total, half + np.log(total)


def find_slopes(cells: VerdictCells, vector: Floats) -> tuple[Floats, Floats, tuple[Floats, Floats, Floats]]:
    """The log odds z of each cell, their derivatives by the five parameters of the cell, (5, R), and `find_odds`."""
    left, right, discrimination, bias, effect = vector[cells.columns]
    ahead = left - right
    z = discrimination * ahead + bias + cells.sign * effect
    slopes = np.stack([discrimination, -discrimination, ahead, np.ones_like(z), cells.sign])
    return z, slopes, find_odds(z, float(vector[cells.sizes[SCORE]]))


def find_loss(cells: VerdictCells, vector: Floats, spreads: Floats) -> tuple[float, Floats]:
    r"""The negative log posterior up to a constant, and its gradient, 0 for what is not learned.

    A cell adds :math:`n \log(e^{z/2} + e^{-z/2} + \nu) - (n_l - n_r) z / 2 - n_t \log \nu`, with the derivative
    :math:`(n (p_l - p_r) - n_l + n_r) / 2` by z.
    """
    c, n_ties = cells.sizes[SCORE], float(cells.ties.sum())
    z, slopes, (tie, lead, log_total) = find_slopes(cells, vector)
    loss = float(np.sum(cells.n * log_total - cells.lead * z / 2))
    slopes *= (cells.n * lead - cells.lead) / 2
    gradient = np.bincount(cells.columns.ravel(), slopes.ravel(), len(vector))
    if cells.learned[c]:
        loss -= n_ties * float(vector[c])
        gradient[c] = np.sum(cells.n * tie) - n_ties
    off = np.subtract(vector, cells.mean, out=np.zeros_like(vector), where=cells.learned)
    pull = off / spreads[cells.kind] ** 2
    return loss + float(np.sum(off * pull)) / 2, (gradient + pull) * cells.learned


@dataclass(frozen=True, eq=False)
class Curvature:
    r"""The expected curvature at an estimate, and its inverse.

    The parameters of a judge meet no other judge's. With the blocks A (scores and :math:`\log \nu`), D (2 x 2 for each
    judge) and B between them, :math:`S = A - B D^{-1} B^T` is the inverse covariance of the scores. That the mean of
    the discriminations is given is a further row of A and B (Lagrange's multiplier), which is 0 in A and the weights
    of the mean in B: so S and its inverse have C + 2 rows, or C + 1 if no discrimination is learned.

    Attributes
    ----------
    schur, inverse : ndarray of shape (S, S)
        S and its inverse.
    explained : sparse array of shape (S, 2 M)
        :math:`B D^{-1}`, with the discriminations of all judges, and then their biases.
    precision : ndarray of shape (P,)
        The prior's part of the curvature, 0 for what is not learned.
    variance : ndarray of shape (P,)
        Posterior variances.
    """

    schur: Floats
    inverse: Floats
    explained: csr_array
    precision: Floats
    variance: Floats


def find_curvature(cells: VerdictCells, vector: Floats, spreads: Floats) -> Curvature:
    r"""The expected curvature of the negative log posterior at an estimate.

    A shared effect takes its share of the information of n verdicts: they count
    :math:`1 / (1 + \tau^2 \sum \kappa)` each, which is exact if they are alike.
    """
    c, _, m, _, n_effects = cells.sizes
    n_inner, size = c + 1, len(vector)
    precision = spreads[cells.kind] ** -2.0 * cells.learned
    precision[c] = spreads[LOG_TIE] ** -2.0
    _, slopes, (tie, lead, _) = find_slopes(cells, vector)
    slopes *= cells.learned[cells.columns]
    # The variance of 1/2, -1/2 or 0 for left, right and tie; and its covariance with a tie.
    weight = cells.n * ((1 - tie) - lead**2) / 4
    with_tie = -cells.n * tie * lead / 2
    gain = np.bincount(cells.columns[4], weight * slopes[4] ** 2, size)
    share = 1 / (1 + (spreads[EFFECT] * slopes[4]) ** 2 * gain[cells.columns[4]])
    weight, with_tie = weight * share, with_tie * share

    left, right, discrimination = cells.columns[:3]
    pairs = np.bincount(left * c + right, weight * slopes[0] ** 2, c * c).reshape(c, c)
    pairs += pairs.T
    learned = np.flatnonzero(cells.learned[n_inner : n_inner + m])
    n_rows = n_inner + (len(learned) > 0)
    inner = np.zeros((n_rows, n_rows))
    inner[:c, :c] = np.diag(pairs.sum(axis=1)) - pairs
    inner[:c, c] = np.bincount(cells.columns[:2].ravel(), (with_tie * slopes[:2]).ravel(), c)
    inner[c, :c] = inner[:c, c]
    inner[c, c] = np.sum(cells.n * tie * (1 - tie))
    inner[np.arange(n_inner), np.arange(n_inner)] += precision[:n_inner]

    both = [weight * slopes[a] * slopes[b] for b in (2, 3) for a in (0, 1)]
    entries = [*both, with_tie * slopes[2], with_tie * slopes[3], np.full(len(learned), 1 / max(len(learned), 1))]
    rows = [*cells.columns[[0, 1, 0, 1]], np.full(2 * len(left), c), np.full(len(learned), n_inner)]
    columns = [*(cells.columns[[2, 2, 3, 3, 2, 3]] - n_inner), learned]
    places = np.concatenate(rows), np.concatenate(columns)
    cross = csr_array(coo_array((np.concatenate(entries), places), shape=(n_rows, 2 * m)))

    own = np.bincount(cells.columns[2:4].ravel(), (weight * slopes[2:4] ** 2).ravel(), size) + precision
    own = np.where(cells.learned, own, 1.0)[n_inner : n_inner + 2 * m]
    mixed = np.bincount(discrimination - n_inner, weight * slopes[2] * slopes[3], m)
    determinant = own[:m] * own[m:] - mixed**2
    of_judges = np.concatenate([own[m:] / determinant, own[:m] / determinant])
    of_judges *= cells.learned[n_inner : n_inner + 2 * m]
    beside = -mixed / determinant
    explained = csr_array(cross @ diags_array([of_judges, beside, beside], offsets=[0, m, -m]))
    by_judge, crossed = csr_array(explained.T), csr_array(cross.T)
    at_once = max(1, MOST_CURVATURE_ENTRIES // n_rows)
    schur = inner
    for start in range(0, 2 * m, at_once):
        some = slice(start, start + at_once)
        schur -= explained[:, some] @ crossed[some].toarray()
    schur = (schur + schur.T) / 2
    inverse = invert(schur, n_inner)

    for start in range(0, 2 * m, at_once):
        some = by_judge[start : start + at_once].toarray()
        of_judges[start : start + at_once] += np.einsum("ij,ij->i", some @ inverse, some)
    of_effects = 1 / (gain[size - n_effects :] + spreads[EFFECT] ** -2.0)
    variance = np.concatenate([np.diag(inverse)[:n_inner], of_judges, of_effects])
    return Curvature(schur, inverse, explained, precision, np.maximum(variance, 0.0))  # rounding may leave less than 0


def invert(matrix: Floats, n: int) -> Floats:
    """The inverse of a symmetric matrix, whose first n rows and columns are positive definite; at most one follows."""
    factor, failed = dpotrf(matrix[:n, :n], lower=True)
    if failed:  # rounding may have left eigenvalues just below 0
        inverse = np.linalg.inv(matrix)
        return np.asarray((inverse + inverse.T) / 2)
    half = np.tril(dpotri(factor, lower=True)[0])
    inverse = half + np.tril(half, -1).T
    if len(matrix) == n:
        return np.asarray(inverse)
    column = inverse @ matrix[:n, n]
    scale = 1.0 / (matrix[n, n] - matrix[:n, n] @ column)
    inverse += scale * np.outer(column, column)
    return np.block([[inverse, -scale * column[:, None]], [-scale * column[None], np.array([[scale]])]])


# ----------------------------------------------------------------------------------------------------------------- fit


def fit(
    cells: VerdictCells,
    max_iter: int,
    tol: float,
    callback: Callable[[Progress], object] | None = None,
    start: tuple[Floats, Floats, int] | None = None,
) -> tuple[Floats, Floats, int, bool]:
    """Learn parameters and spreads in turns, until the spreads settle. The callback gets the progress of each round.

    With contrary judges, the order and its reverse are both maxima. If some verdicts are known, the search is repeated
    from the reverse, and the better maximum is taken.

    Returns
    -------
    tuple
        The parameters, the spread of each kind of them, the number of iterations, and whether the search settled.
    """
    c, (left, right), is_first = cells.sizes[SCORE], cells.columns[:2], start is None
    if start is None:
        # All judges begin alike, with as many ties as there are. Scores begin with the share of verdicts that each
        # candidate won, which is on the right side for most of them: at 0 everywhere, discriminations have no gradient.
        won = np.bincount(left, cells.lead, c) - np.bincount(right, cells.lead, c)
        asked = np.bincount(left, cells.n, c) + np.bincount(right, cells.n, c)
        vector, n_ties = cells.mean.copy(), float(cells.ties.sum())
        vector[:c] = won / (asked + 2)
        if n_ties:
            vector[c] = np.log(2 * n_ties / (cells.n.sum() - n_ties + 1))
        start = vector, USUAL_SPREADS, 0
    vector, spreads, n_iter = start
    n_learned = np.bincount(cells.kind, cells.learned, 5)
    n_free = n_learned - (n_learned > 0) * (np.arange(5) == DISCRIMINATION)  # their mean is given
    step = np.zeros(5)
    for number in range(MOST_SPREAD_ROUNDS):
        vector, n_more, converged = search(cells, vector, spreads, max_iter, tol)
        n_iter += n_more
        variance = find_curvature(cells, vector, spreads).variance
        off = np.subtract(vector, cells.mean, out=np.zeros_like(vector), where=cells.learned)
        squares = np.bincount(cells.kind, (off**2 + variance) * cells.learned, 5)
        learned = np.maximum(
            np.sqrt((ADDED_ENTRIES * USUAL_SPREADS**2 + squares) / (ADDED_ENTRIES + n_free)), LEAST_SPREAD_OF_SCORES
        )
        learned[LOG_TIE] = USUAL_SPREADS[LOG_TIE]
        change = float(np.abs(np.log(learned / spreads)).max())
        if callback is not None:
            callback(Progress(number + 1, MOST_SPREAD_ROUNDS, -find_loss(cells, vector, spreads)[0], change))
        if change < SPREADS_SETTLED:
            break
        # The rounds of a spread are a geometric series, whose end is taken at once where two steps tell its ratio.
        before, step = step, np.log(learned / spreads)
        ratio = np.divide(step, before, out=np.zeros(5), where=np.abs(before) > 0)
        further = np.where((ratio > 0) & (ratio < MOST_RATIO), ratio / (1 - np.minimum(ratio, MOST_RATIO)), 0.0)
        spreads, step = learned * np.exp(further * step), np.where(further > 0, 0.0, step)
    else:
        vector, n_more, _ = search(cells, vector, spreads, max_iter, tol)
        n_iter, converged = n_iter + n_more, False

    judges = cells.kind == DISCRIMINATION
    own = judges & cells.learned
    if not is_first or own.sum() == judges.sum() or not (vector[own] < 0).any():
        return vector, spreads, n_iter, converged
    reverse = np.where(own, 2 - vector, np.where(cells.kind == SCORE, -vector, vector))
    other = fit(cells, max_iter, tol, start=(reverse, spreads, n_iter))
    losses = [find_loss(cells, each, spreads)[0] for each in (vector, other[0])]
    return other if losses[1] < losses[0] else (vector, spreads, n_iter, converged)


def search(cells: VerdictCells, vector: Floats, spreads: Floats, max_iter: int, tol: float) -> tuple[Floats, int, bool]:
    """The maximum of the posterior near a vector, the number of iterations, and whether the search settled.

    The search is for parameters times the root of their curvature, which all have about the same scale. It stops when
    no parameter, taken alone, is further than `tol` standard errors from where it should be.
    """
    from scipy.optimize import minimize  # here, for it takes long to import and few need it

    # The expected curvature of each parameter taken alone.
    c, (_, slopes, (tie, lead, _)) = cells.sizes[SCORE], find_slopes(cells, vector)
    weight = cells.n * ((1 - tie) - lead**2) / 4
    diagonal = np.bincount(cells.columns.ravel(), (weight * slopes**2).ravel(), len(vector))
    diagonal[c] = np.sum(cells.n * tie * (1 - tie))
    free = np.flatnonzero(cells.learned)
    scale = np.sqrt((diagonal + spreads[cells.kind] ** -2.0)[free])
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


def find_covariance(
    cells: VerdictCells, curvature: Curvature, part: Integers, middle: Floats | None = None
) -> tuple[Floats, ...]:
    """The covariance of scores with mean 0 in each part, and a matrix whose square it is.

    Parameters
    ----------
    cells, curvature
        The verdicts and their curvature.
    part : ndarray of shape (C,)
        The part of the comparisons that each candidate belongs to.
    middle : ndarray of shape (S, S), optional
        K, from `square_items`. Without it, the covariance is that of the curvature.
    """
    c = cells.sizes[SCORE]
    covariance = curvature.inverse if middle is None else curvature.inverse @ middle @ curvature.inverse.T
    covariance = (covariance[:c, :c] + covariance[:c, :c].T) / 2
    try:
        root = np.asarray(np.linalg.cholesky(covariance), np.float64)
    except np.linalg.LinAlgError:  # rounding may have left eigenvalues just below 0
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    same = part[:, None] == part[None, :]
    root = root - (same / same.sum(axis=1, keepdims=True)) @ root
    return root @ root.T, root


def square_items(cells: VerdictCells, item: Integers, vector: Floats, curvature: Curvature, n_items: int) -> Floats:
    r"""K as a sum over items, (S, S), of cells that are kept apart by item.

    The cells may be those of some of the N items, and stand for all of them.

    Gradients at an estimate are smaller than at the truth, so the sum over N items grows by N / (N - p), with p the
    number of parameters that the verdicts and not the priors have determined. On the whole it is no less than the
    curvature's own K. With few items the sum says little about single candidates, so it is mixed with that K, times how
    much larger the sum is on the whole.
    """
    c, (n_rows, n_columns), n_looked = cells.sizes[SCORE], curvature.explained.shape, int(item.max()) + 1
    _, slopes, (tie, lead, _) = find_slopes(cells, vector)
    slopes *= cells.learned[cells.columns] * (cells.n * lead - cells.lead) / 2
    places = np.tile(item, 6), np.append(cells.columns.ravel(), np.full(len(item), c))
    entries = np.append(slopes.ravel(), cells.n * tie - cells.ties)
    gradients = csr_array(coo_array((entries, places), shape=(n_looked, len(vector))))
    inner, outer = gradients[:, : c + 1], gradients[:, c + 1 : c + 1 + n_columns]
    sums, at_once = np.zeros((n_rows, n_rows)), max(1, MOST_CURVATURE_ENTRIES // n_rows)
    for start in range(0, n_looked, at_once):
        some = slice(start, start + at_once)
        left = -(outer[some] @ curvature.explained.T).toarray()
        left[:, : c + 1] += inner[some].toarray()
        sums += left.T @ left

    is_free = (cells.learned | (cells.kind == LOG_TIE)) & (np.arange(len(vector)) < c + 1 + n_columns)
    n_free = float(is_free.sum() - (n_rows > c + 1) - np.sum((curvature.precision * curvature.variance)[is_free]))
    total = sums * (n_items / n_looked) * n_items / (n_items - min(n_free, n_items / 2))
    own, border = curvature.schur.copy(), slice(c + 1, n_rows)
    own[border], own[:, border], own[border, border] = 0.0, 0.0, -curvature.schur[border, border]
    prior = (
        csr_array(curvature.explained * curvature.precision[c + 1 : c + 1 + n_columns]) @ curvature.explained.T
    ).toarray()
    prior[np.arange(c + 1), np.arange(c + 1)] += curvature.precision[: c + 1]
    own -= prior
    excess = float(np.trace(total[:c, :c])) / max(float(np.trace(own[:c, :c])), NEARLY_ZERO)
    share = n_items / (n_items + c)
    mixed = share * total + (1 - share) * excess * own
    return np.asarray(mixed * max(1.0, 1 / max(excess, NEARLY_ZERO)) + prior)


def rank_draws(score: Floats, root: Floats, part: Integers, n_draws: int, seed: int) -> tuple[Integers, ...]:
    """Ranks within each part, 1 for the best, and between which ranks 95% of the draws of scores are."""
    noise = np.random.default_rng(seed).standard_normal((n_draws, root.shape[1]))
    drawn = score + noise @ root.T
    for each in range(int(part.max()) + 1):
        drawn[:, part == each] = 1 + np.argsort(np.argsort(-drawn[:, part == each], axis=1), axis=1)
    low, high = (np.quantile(drawn, end, axis=0, method="inverted_cdf") for end in TAILS_95)
    better = (score[None, :] > score[:, None]) & (part[None, :] == part[:, None])
    rank = 1 + better.sum(axis=1)  # equal scores have the same rank
    return rank, np.minimum(low, rank).astype(np.int64), np.maximum(high, rank).astype(np.int64)
