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

import numpy as np

from ..answers.columns import Column, lookup, to_column
from ..engines.base import one_thread
from ..errors import listing, parameter_error
from ..kernels import Floats, Integers
from .likelihood import find_odds
from .ranking import Ranking

# The most pairs that are considered: those that are nearest in the ranking.
MOST_PAIRS = 50_000
LEAST_VARIANCE = 1e-12
# A pair of different parts is as uncertain as the usual spread of scores makes it.
APART = 2.0
# No judge gets more than so many times an equal share.
MOST_SHARE = 2
# The judge whose verdict tells most of any pair is among those who discriminate most; so many are tried.
N_TRIED = 8


def list_next_comparisons(found: Ranking, n: int, workers: object = None) -> dict[str, Column]:
    """The columns of a table of comparisons to ask for: left, right, worker, gain."""
    kinds, judges = found.kinds, choose_judges(found, workers)
    # Where it is not known which camp is right, both are asked alike.
    limit = -(-(1 if kinds.two_camps else MOST_SHARE) * n // len(judges))
    # All pairs, or those that are nearest in the ranking if there are very many.
    c, order = len(found.candidates), found.order
    reach = max(1, min(c - 1, MOST_PAIRS // c))
    place, gap = np.divmod(np.arange(c * reach), reach)
    inside = place + gap + 1 < c
    first, second = order[place[inside]], order[(place + gap + 1)[inside]]
    ahead = found.score[first] - found.score[second]
    spread = (APART * found.spreads[0]) ** 2 if found.n_parts > 1 else 0.0
    covariance = found.covariance + spread * (found.part[:, None] == found.part[None, :])

    def contrast(matrix: Floats) -> Floats:  # x' A x of each pair
        own = np.diag(matrix)
        return np.asarray(own[first] + own[second] - 2 * matrix[first, second])

    asked = np.zeros(len(found.workers), np.int64)
    shown = np.zeros(len(found.candidates), np.int64)  # how often each stands on the left, less how often on the right
    rows: list[tuple[int, int, int, float]] = []
    with one_thread():  # the same last bits for any number of threads
        variance = np.maximum(contrast(covariance), LEAST_VARIANCE)
        weights = np.zeros_like(covariance)
        weights[first, second] = np.exp(-(ahead**2) / variance) / (2 * np.pi * variance)
        weights += weights.T
        doubt = np.diag(weights.sum(axis=1)) - weights
        fall = covariance @ doubt @ covariance
        for _ in range(n):
            free = judges[asked[judges] < limit]
            tried = free[np.argsort(-np.abs(found.judges.discrimination[free]), kind="stable")][:N_TRIED]
            d, bias = (each[tried][:, None] for each in (found.judges.discrimination, found.judges.bias))
            # Which of the two is shown first is settled later, so that sides are even: the mean of both orders.
            both = [find_odds(d * ahead + side * bias, found.log_tie) for side in (1, -1)]
            information = d * d * np.mean([(1 - odds.tie) - odds.lead**2 for odds in both], axis=0) / 4
            gain = 2 * information * contrast(fall) / (1 + information * contrast(covariance))
            best = np.unravel_index(np.argmax(gain), gain.shape)
            judge, pair, gained, told = tried[best[0]], best[1], float(gain[best]), float(information[best])
            a, b = int(first[pair]), int(second[pair])
            if shown[a] > shown[b]:  # sides are to be even
                a, b = b, a
            shown[a], shown[b] = shown[a] + 1, shown[b] - 1
            asked[judge] += 1
            rows.append((a, b, judge, gained))
            moved = covariance[:, a] - covariance[:, b]
            share = told / (1 + told * (moved[a] - moved[b]))
            doubted = doubt @ moved
            both_ways, square = np.outer(moved, covariance @ doubted), np.outer(moved, moved)
            fall = fall - share * (both_ways + both_ways.T) + share**2 * float(moved @ doubted) * square
            covariance = covariance - share * square
    left, right, who, gains = (np.array(each) for each in zip(*rows, strict=True))
    columns = {"left": found.candidates[left], "right": found.candidates[right]}
    if found.numbers.has_workers:
        columns["worker"] = found.workers[who]
    return {name: to_column(values) for name, values in (columns | {"gain": gains.astype(np.float64)}).items()}


def choose_judges(found: Ranking, workers: object) -> Integers:
    """Whom to ask, by index: those named, else all who neither toss coins nor prefer the worse candidate.

    If there are two camps it is not known who does, and both are asked.
    """
    kinds = found.kinds
    if workers is None:
        useful = np.flatnonzero(~kinds.coins & (~kinds.contrary | kinds.two_camps))
        return useful if len(useful) else np.arange(len(found.workers))
    workers = workers.ravel() if isinstance(workers, np.ndarray) else workers
    named = to_column(list(workers) if isinstance(workers, (list, tuple, set, np.ndarray)) else [workers])
    place = lookup(found.workers, named)
    if not len(place) or (place < 0).any():
        known = f"judges of the fit, such as {listing(found.workers.tolist(), 5)}"
        raise parameter_error("workers", "next_comparisons", known, workers)
    return np.unique(place)
