r"""Which pair to ask about next, and whom: the comparison that is expected to leave fewest pairs in doubt.

With lead :math:`\Delta_q` and posterior variance :math:`V_q` of the scores of pair q, and
:math:`p_q = \Phi(\Delta_q / \sqrt{V_q})`, a ranking drawn from the posterior has :math:`\sum_q 2 p_q (1 - p_q)` pairs
in another order than the truth: what Kendall's tau counts. A verdict on the pair with the contrast x tells
:math:`w = d_m^2 \kappa` about its lead, where :math:`\kappa` is the information about z (the mean of both orders of the
two). To first order, :math:`p_q (1 - p_q)` is expected to fall by :math:`\varphi_q^2 / V_q` times what
:math:`V_q` falls by, with :math:`\varphi_q` the normal density at :math:`\Delta_q / \sqrt{V_q}`. Over all pairs this is

.. math:: \frac{2 w \, x^T \Sigma L \Sigma x}{1 + w \, x^T \Sigma x}, \qquad
          L = \sum_q \frac{\varphi_q^2}{V_q} x_q x_q^T

So a verdict counts for all pairs whose order depends on it, and not only for the one that is asked about.

After each choice the covariance is what it will be after the answer,
:math:`\Sigma - \frac{w}{1 + w V} \Sigma x x^T \Sigma` with the same L, so that a list does not ask the same thing again
and again. No judge gets more than twice an equal share of the questions: if the best one got all, a judge who seems
sharp by chance would decide the ranking. Judges who toss coins or prefer the worse candidate get none. Of parts that
were never compared with each other the order is open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Column, to_column
from ..answers.vocabulary import lookup
from ..errors import listing, parameter_error
from ..inference.bradley_terry import find_odds
from ..inference.one_thread import one_thread
from ..kernels import Floats, Integers
from ..results.ranking import Ranking, find_camps, find_coin_tossers, find_contrarians

# The most pairs that are considered: those that are nearest in the ranking.
MOST_PAIRS = 50_000
LEAST_VARIANCE = 1e-12
# A pair of different parts is as uncertain as the usual spread of scores makes it.
APART = 2.0
# No judge gets more than so many times an equal share.
MOST_SHARE = 2


class Pairs(NamedTuple):
    """Pairs of candidates that may be asked about."""

    first: Integers
    second: Integers


def list_next_comparisons(found: Ranking, n: int, workers: object = None) -> dict[str, Column]:
    """Return the columns of a table of comparisons to ask for: left, right, worker, gain."""
    judges, pairs, covariance = choose_judges(found, workers), list_pairs(found), spread_parts(found)
    # Where it is not known which camp is right, both are asked alike.
    limit = -(-(MOST_SHARE if find_camps(found) is None else 1) * n // max(len(judges), 1))
    asked = np.zeros(len(found.workers), np.int64)
    shown = np.zeros(len(found.candidates), np.int64)  # how often each stands on the left, less how often on the right
    rows: list[tuple[int, int, int, float]] = []
    with one_thread():  # the same last bits for any number of threads
        doubt = weigh_doubt(found, pairs, covariance)
        fall = covariance @ doubt @ covariance
        for _ in range(n):
            free = judges[asked[judges] < limit]
            pair, judge, gain, weight = choose(found, pairs, contrast(covariance, pairs), contrast(fall, pairs), free)
            a, b = int(pairs.first[pair]), int(pairs.second[pair])
            if shown[a] > shown[b]:  # sides are to be even
                a, b = b, a
            shown[a] += 1
            shown[b] -= 1
            asked[judge] += 1
            rows.append((a, b, judge, gain))
            moved = covariance[:, a] - covariance[:, b]
            share = weight / (1 + weight * (moved[a] - moved[b]))
            doubted = doubt @ moved
            both = np.outer(moved, covariance @ doubted)
            square = np.outer(moved, moved)
            fall = fall - share * (both + both.T) + share**2 * float(moved @ doubted) * square
            covariance = covariance - share * square
    left, right, who, gains = (np.array(each) for each in zip(*rows, strict=True))
    columns: dict[str, Column] = {
        "left": to_column(found.candidates[left]),
        "right": to_column(found.candidates[right]),
    }
    if found.numbers.has_workers:
        columns["worker"] = to_column(found.workers[who])
    return columns | {"gain": to_column(gains.astype(np.float64))}


def choose_judges(found: Ranking, workers: object) -> NDArray[np.int64]:
    """Return whom to ask, by index: those named, else all who neither toss coins nor prefer the worse candidate.

    If there are two camps it is not known who does, and both are asked.
    """
    if workers is None:
        contrary = find_contrarians(found.judges) & (find_camps(found) is None)
        useful = np.flatnonzero(~find_coin_tossers(found.judges) & ~contrary)
        return useful if len(useful) else np.arange(len(found.workers))
    workers = workers.ravel() if isinstance(workers, np.ndarray) else workers
    named = to_column(list(workers) if isinstance(workers, (list, tuple, set, np.ndarray)) else [workers])
    place = lookup(found.workers, named)
    if not len(place) or (place < 0).any():
        known = f"judges of the fit, such as {listing(found.workers.tolist(), 5)}"
        raise parameter_error("workers", "next_comparisons", known, workers)
    return np.unique(place)


def list_pairs(found: Ranking) -> Pairs:
    """Return the pairs to choose from: all, or those that are nearest in the ranking if there are very many."""
    order, c = found.order, len(found.candidates)
    reach = c - 1
    while reach > 1 and reach * c - reach * (reach + 1) // 2 > MOST_PAIRS:
        reach -= 1 + reach // 50
    place = [(np.arange(c - gap), np.arange(gap, c)) for gap in range(1, reach + 1)]
    first, second = (np.concatenate(each) for each in zip(*place, strict=True))
    return Pairs(order[first], order[second])


def spread_parts(found: Ranking) -> Floats:
    """Return the covariance of the scores, in which each part of the candidates is uncertain against the others."""
    spread = (APART * found.spreads[0]) ** 2 if found.n_parts > 1 else 0.0
    return np.asarray(found.covariance + spread * (found.part[:, None] == found.part[None, :]))


class Choice(NamedTuple):
    """A pair and a judge by index, how many pairs fewer are in doubt after their verdict, and its information."""

    pair: int
    judge: int
    gain: float
    weight: float


def contrast(matrix: Floats, pairs: Pairs) -> Floats:
    """Return x' A x of a symmetric matrix for the contrast x of each pair."""
    own = np.diag(matrix)
    return np.asarray(own[pairs.first] + own[pairs.second] - 2 * matrix[pairs.first, pairs.second])


def weigh_doubt(found: Ranking, pairs: Pairs, covariance: Floats) -> Floats:
    """Return L: the contrasts of all pairs squared, by the normal density squared over the variance."""
    ahead = found.score[pairs.first] - found.score[pairs.second]
    variance = np.maximum(contrast(covariance, pairs), LEAST_VARIANCE)
    weights = np.zeros_like(covariance)
    weights[pairs.first, pairs.second] = np.exp(-(ahead**2) / variance) / (2 * np.pi * variance)
    weights += weights.T
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


def choose(found: Ranking, pairs: Pairs, variance: Floats, fall: Floats, judges: NDArray[np.int64]) -> Choice:
    """Return the comparison that tells most, given the variance of each pair and how it moves all others."""
    ahead = found.score[pairs.first] - found.score[pairs.second]
    best = Choice(0, int(judges[0]), -1.0, 0.0)
    # The judge who tells most of any pair is among those who discriminate most; few of them have to be tried.
    sharp = judges[np.argsort(-np.abs(found.judges.discrimination[judges]), kind="stable")][:8]
    for judge in sharp.tolist():
        d, bias = float(found.judges.discrimination[judge]), float(found.judges.bias[judge])
        # Which of the two is shown first is settled later, so that sides are even: this is the mean of both orders.
        both = [find_odds(d * ahead + side * bias, found.log_tie) for side in (1, -1)]
        weight = d * d * np.mean([(1 - odds.tie) - odds.lead**2 for odds in both], axis=0) / 4
        gain = 2 * weight * fall / (1 + weight * variance)
        place = int(np.argmax(gain))
        if gain[place] > best.gain:
            best = Choice(place, judge, float(gain[place]), float(weight[place]))
    return best
