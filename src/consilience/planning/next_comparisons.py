r"""Which pair to ask about next, and whom: the comparison that is expected to tell most about an order that is open.

A verdict of judge m on candidates a and b tells about :math:`z = d_m (t_a - t_b) + g_m`. With the information
:math:`\kappa` of a verdict (the mean of both orders of the two), and lead :math:`\Delta` and posterior variance V of
:math:`t_a - t_b`, the gain is

.. math:: \tfrac12 \log(1 + d_m^2 \, \kappa \, V) \; H(\Phi(\Delta / \sqrt V))

The first factor is what the lead is expected to gain, in nats. The second is the entropy, in bits, of which of the two
is ahead: between pairs whose order is settled there is nothing to be gained for a ranking. Without it, verdicts go to
the candidates at both ends, whose scores are the least certain.

After each choice the covariance is what it will be after the answer,
:math:`\Sigma - \frac{w}{1 + w V} \Sigma x x^T \Sigma` with :math:`w = d_m^2 \kappa` and :math:`x` the contrast of the
pair, so that a list does not ask the same thing again and again. Each judge gets an equal share of the questions;
judges who toss coins or prefer the worse candidate get none. Of parts that were never compared with each other the
order is open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtr

from ..answers.columns import Column, to_column
from ..answers.vocabulary import lookup
from ..errors import listing, parameter_error
from ..inference.bradley_terry import find_odds
from ..kernels import Floats, Integers
from ..results.ranking import Ranking, find_camps, find_coin_tossers, find_contrarians

# The most pairs that are considered: those that are nearest in the ranking.
MOST_PAIRS = 50_000
LEAST_VARIANCE = 1e-12
# A pair of different parts is as uncertain as the usual spread of scores makes it.
APART = 2.0


class Pairs(NamedTuple):
    """Pairs of candidates that may be asked about."""

    first: Integers
    second: Integers


def list_next_comparisons(found: Ranking, n: int, workers: object = None) -> dict[str, Column]:
    """Return the columns of a table of comparisons to ask for: left, right, worker, gain."""
    judges = choose_judges(found, workers)
    pairs = list_pairs(found)
    covariance = spread_parts(found)
    limit = -(-n // max(len(judges), 1))
    asked = np.zeros(len(found.workers), np.int64)
    shown = np.zeros(len(found.candidates), np.int64)  # how often each stands on the left, less how often on the right
    rows: list[tuple[int, int, int, float]] = []
    for _ in range(n):
        free = judges[asked[judges] < limit]
        pair, judge, gain, weight = choose(found, pairs, covariance, free)
        a, b = int(pairs.first[pair]), int(pairs.second[pair])
        if shown[a] > shown[b]:  # sides are to be even
            a, b = b, a
        shown[a] += 1
        shown[b] -= 1
        asked[judge] += 1
        rows.append((a, b, judge, gain))
        moved = covariance[:, a] - covariance[:, b]
        covariance = covariance - np.outer(moved, moved) * (weight / (1 + weight * (moved[a] - moved[b])))
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
    """A pair and a judge by index, what their verdict is expected to tell in nats, and its information."""

    pair: int
    judge: int
    gain: float
    weight: float


def choose(found: Ranking, pairs: Pairs, covariance: Floats, judges: NDArray[np.int64]) -> Choice:
    """Return the comparison that tells most."""
    own = np.diag(covariance)
    variance = own[pairs.first] + own[pairs.second] - 2 * covariance[pairs.first, pairs.second]
    variance = np.maximum(variance, LEAST_VARIANCE)
    ahead = found.score[pairs.first] - found.score[pairs.second]
    better = ndtr(ahead / np.sqrt(variance))
    is_open = (entr(better) + entr(1 - better)) / np.log(2)
    best = Choice(0, int(judges[0]), -1.0, 0.0)
    # The judge who tells most of any pair is among those who discriminate most; few of them have to be tried.
    sharp = judges[np.argsort(-np.abs(found.judges.discrimination[judges]), kind="stable")][:8]
    for judge in sharp.tolist():
        d, bias = float(found.judges.discrimination[judge]), float(found.judges.bias[judge])
        # Which of the two is shown first is settled later, so that sides are even: this is the mean of both orders.
        both = [find_odds(d * ahead + side * bias, found.log_tie) for side in (1, -1)]
        weight = d * d * np.mean([(1 - odds.tie) - odds.lead**2 for odds in both], axis=0) / 4
        gain = np.log1p(weight * variance) / 2 * is_open
        place = int(np.argmax(gain))
        if gain[place] > best.gain:
            best = Choice(place, judge, float(gain[place]), float(weight[place]))
    return best
