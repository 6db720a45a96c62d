"""A ranking: scores of candidates, how judges judge, and how certain all of it is. Computed once, and frozen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ..answers.columns import Column, Values, lookup, to_column
from ..engines import one_thread
from ..errors import listing, parameter_error
from ..inference import sum_by
from ..inference.em import Progress
from ..kernels import Floats, Integers, Truths
from .comparisons import LEFT, RIGHT, TIE, Comparisons
from .likelihood import (
    BIAS,
    DISCRIMINATION,
    EFFECT,
    INTERVAL,
    SCORE,
    WIDTH,
    count_verdicts,
    find_covariance,
    find_curvature,
    find_odds,
    fit,
    group_rows,
    rank_draws,
    square_items,
)

# The Elo scale: a lead of 400 is a chance of 10 to 1; the mean is 1000.
ELO_MEAN, ELO_UNIT = 1000.0, 400 / math.log(10)
# So many items show how verdicts on one item hang together; with many candidates, so many for each.
MOST_ITEMS, ITEMS_PER_CANDIDATE = 100_000, 20
# A judge tosses coins if the interval of the discrimination holds 0 and is nearer to it than this; in a crowd with
# better judges than the mean, than so many times what the best one has at least.
MOST_COIN = 0.75
# Judges are in two camps if the information of contrarians is more than this share of that of the others.
LEAST_CAMP = 1 / 3
# A side is preferred if the bias is at least so large, beyond doubt. It is always taken from this share on.
LEAST_BIAS, ALWAYS, LEAST_VERDICTS = 0.4, 0.95, 10

# The most pairs that are considered: those that are nearest in the ranking.
MOST_PAIRS = 50_000
LEAST_VARIANCE = 1e-12
# A pair of different parts is as uncertain as the usual spread of scores makes it.
APART = 2.0
# No judge gets more than so many times an equal share.
MOST_SHARE = 2
# The judge whose verdict tells most of any pair is among those who discriminate most; so many are tried.
N_TRIED = 8


class Judges(NamedTuple):
    """How judges judge, (M,) each. What is not learned has errors of 0; what is not known is NaN."""

    comparisons: Floats
    discrimination: Floats
    discrimination_error: Floats
    bias: Floats
    bias_error: Floats
    agreement: Floats  # the share of verdicts other than ties in the order of the ranking
    ties: Floats
    first: Floats  # how often the left one was preferred, without ties


class Numbers(NamedTuple):
    """What was counted of all verdicts."""

    comparisons: int
    items: int
    groups: int
    known: int  # verdicts
    repeated: int  # rows that say once more what the same judge said of the same pair and item
    contradicted: int  # rows that say something else
    weight: float  # of all verdicts
    ties: float
    has_workers: bool
    has_positions: bool


class Kinds(NamedTuple):
    """Which judges are out of the ordinary, (M,) each."""

    coins: Truths  # verdicts have nothing to do with the scores
    contrary: Truths  # prefer the worse candidate, beyond doubt
    doubtful: Truths  # contrary or a coin, with too few verdicts to tell
    one_sided: Truths  # nearly always prefer the same place, whatever is there
    agreeing: Truths  # discriminate, beyond doubt
    two_camps: bool  # whether contrary and agreeing judges are about as many, and nothing says which are right


class WinProbability(float):
    """The probability that one candidate beats another, as a number with an interval.

    Attributes
    ----------
    low, high : float
        Ends of its 95 % interval.
    told_apart : bool
        Whether the interval says which of the two is better.
    """

    low: float
    high: float

    def __new__(cls, probability: float, low: float, high: float) -> WinProbability:
        """Make a probability with its interval."""
        made = super().__new__(cls, probability)
        made.low, made.high = low, high
        return made

    @property
    def told_apart(self) -> bool:
        """Whether 1/2 is outside the interval."""
        return not self.low <= 0.5 <= self.high

    def __repr__(self) -> str:
        return f"{float(self):.3f} ({self.low:.3f}-{self.high:.3f})"


@dataclass(frozen=True, eq=False)
class Ranking:
    """What was found by a ranking. Nothing in it changes.

    Attributes
    ----------
    candidates, workers : ndarray
        Ids.
    part : ndarray of shape (C,)
        Which candidates were compared with each other, directly or through others: 0 for the largest part.
    score : ndarray of shape (C,)
        Scores with mean 0 in each part, on the scale of the mean judge.
    covariance : ndarray of shape (C, C)
        That of the scores.
    rank, rank_low, rank_high : ndarray of shape (C,)
        Ranks within each part, 1 for the best.
    tallies : ndarray of shape (3, C)
        How often each candidate was compared, won, and tied.
    judges, numbers
        How judges judge, and what was counted.
    log_tie : float
        The log of the weight of ties, minus infinity if there are none.
    spreads : tuple of float
        Standard deviations that were learned: of scores, discriminations, biases, and of what families share.
    """

    candidates: Values
    workers: Values
    part: Integers
    score: Floats
    covariance: Floats
    rank: Integers
    rank_low: Integers
    rank_high: Integers
    tallies: Floats
    judges: Judges
    numbers: Numbers
    log_tie: float
    spreads: tuple[float, float, float, float]
    n_iter: int
    converged: bool
    backend: str
    columns: dict[str, str]

    def check_saved(self) -> None:
        """Raise a `ValueError` unless the fields of a file go together."""
        if len(self.candidates) < 2 or self.part.max() >= len(self.candidates) or (np.diag(self.covariance) < 0).any():
            raise ValueError("parts or variances of the candidates cannot be so")
        if (self.rank_low > self.rank).any() or (self.rank > self.rank_high).any():
            raise ValueError("a rank is not in its interval")

    @cached_property
    def error(self) -> Floats:
        """The standard error of each score."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def n_parts(self) -> int:
        """How many parts the candidates are in."""
        return int(self.part.max()) + 1

    @cached_property
    def order(self) -> Integers:
        """The candidates from the best to the worst, part by part."""
        return np.lexsort((np.arange(len(self.score)), -self.score, self.part))

    def lead(self, first: Integers, second: Integers) -> tuple[Floats, Floats]:
        """How far ahead candidates are of others, and the standard errors of this."""
        own, cross = np.diag(self.covariance), self.covariance[first, second]
        return self.score[first] - self.score[second], np.sqrt(np.maximum(own[first] + own[second] - 2 * cross, 0.0))

    def win(self, first: int, second: int) -> WinProbability:
        """The probability that one candidate beats another of the same part, by index."""
        ahead, error = self.lead(np.array([first]), np.array([second]))
        ends = ahead[0] + WIDTH * error[0] * np.array([0.0, -1.0, 1.0])
        return WinProbability(*find_wins(ends, self.log_tie).tolist())

    def win_matrix(self) -> Floats:
        """The probability that the candidate of the row beats that of the column; NaN across parts."""
        wins = find_wins(self.score[:, None] - self.score[None, :], self.log_tie)
        return np.where(self.part[:, None] == self.part[None, :], wins, np.nan)

    @cached_property
    def close(self) -> list[tuple[int, int, WinProbability]]:
        """Neighbours in the ranking that cannot be told apart, by index, and how probably the first one wins."""
        pairs = [(a, b) for a, b in pairwise(self.order.tolist()) if self.part[a] == self.part[b]]
        return [(a, b, win) for a, b in pairs if not (win := self.win(a, b)).told_apart]

    @cached_property
    def kinds(self) -> Kinds:
        """Judges who are out of the ordinary.

        The information of a judge is the number of verdicts times the squared discrimination. Scores and
        discriminations with the opposite sign fit almost as well, unless some verdicts are known: if contrarians have
        much of the information, there are two camps.
        """
        judges = self.judges
        low, high = (judges.discrimination + z * judges.discrimination_error for z in (-WIDTH, WIDTH))
        # With a thousand coin tossers `high` is below 0 for 25 of them. The chance that any of these is, is 2.5 %.
        widest = -float(ndtri((1 - INTERVAL[1]) / max(len(judges.bias), 1)))
        highest = judges.discrimination + widest * judges.discrimination_error
        # Where most judges toss coins, these pull down the mean, which is 1: coins are compared with the best judge.
        coin = MOST_COIN * max(1.0, float(low.max(initial=0.0)))
        sided = (judges.first >= ALWAYS) | (judges.first <= 1 - ALWAYS)
        contrary = highest < 0
        information = judges.comparisons * judges.discrimination**2
        is_close = information[contrary].sum() > LEAST_CAMP * information[~contrary].sum()
        return Kinds(
            coins=(low <= 0) & (highest >= 0) & (high < coin) & (low > -coin) & (judges.discrimination_error > 0),
            contrary=contrary,
            doubtful=(judges.discrimination < 0) & (highest >= 0) & (high < coin) & (low <= -coin),
            one_sided=sided & (judges.comparisons >= LEAST_VERDICTS) & self.numbers.has_positions,
            agreeing=low > 0,
            two_camps=bool(contrary.any() and is_close and not self.numbers.known),
        )

    @cached_property
    def remarks(self) -> list[str]:
        """What is remarkable of each judge, "" if nothing is."""
        judges, kinds = self.judges, self.kinds
        sure = (np.abs(judges.bias) > WIDTH * judges.bias_error) & (np.abs(judges.bias) >= LEAST_BIAS)
        always, few = kinds.one_sided, judges.comparisons < LEAST_VERDICTS
        remarks = {
            "tosses coins": kinds.coins,
            "contrarian": kinds.contrary & (not kinds.two_camps),
            "camp 1": kinds.agreeing & kinds.two_camps,
            "camp 2": kinds.contrary & kinds.two_camps,
            "perhaps contrary; too few verdicts": kinds.doubtful,
            "always the first": always & (judges.first == 1),
            "always the second": always & (judges.first == 0),
            "nearly always the first ({first:.0%})": always & (judges.first >= ALWAYS) & (judges.first < 1),
            "nearly always the second ({second:.0%})": always & (judges.first < ALWAYS) & (judges.first > 0),
            "prefers the first": sure & (judges.bias > 0) & ~always,
            "prefers the second": sure & (judges.bias < 0) & ~always,
            "nothing but ties": ~few & (judges.ties == 1),
        }
        return [
            "; ".join(text.format(first=first, second=1 - first) for text, those in remarks.items() if those[place])
            for place, first in enumerate(judges.first.tolist())
        ]

    @cached_property
    def table(self) -> dict[str, Column]:
        """The columns of the ranking, the best candidate first; with the part, if there are several."""
        half, order = WIDTH * self.error, self.order
        scores = {"": self.score, "_low": self.score - half, "_high": self.score + half}
        columns = {"candidate": self.candidates}
        if self.n_parts > 1:
            columns["part"] = self.part + 1
        columns |= {end.strip("_") or "score": values for end, values in scores.items()}
        columns |= {"rank": self.rank, "rank_low": self.rank_low, "rank_high": self.rank_high}
        tallies = self.tallies if (self.tallies % 1).any() else self.tallies.astype(np.int64)
        columns |= dict(zip(("comparisons", "wins", "ties"), tallies, strict=True))
        columns |= {f"elo{end}": ELO_MEAN + ELO_UNIT * values for end, values in scores.items()}
        return {name: to_column(values[order]) for name, values in columns.items()}

    @cached_property
    def judge_table(self) -> dict[str, Column]:
        """The columns of the report on judges, those with most verdicts first."""
        judges = self.judges
        order = np.lexsort((np.arange(len(self.workers)), -judges.comparisons))
        whole = not (judges.comparisons % 1).any()
        columns = {"worker": self.workers, "comparisons": judges.comparisons.astype(np.int64 if whole else np.float64)}
        figures = {"discrimination": judges[1:3], "position_bias": judges[3:5]}
        for name, (value, error) in figures.items():
            columns |= {name: value, f"{name}_low": value - WIDTH * error, f"{name}_high": value + WIDTH * error}
        columns |= {name: getattr(judges, name) for name in ("agreement", "ties", "first")}
        columns["remarks"] = np.array(self.remarks, object)
        return {name: to_column(values[order]) for name, values in columns.items()}


def find_wins(ahead: Floats, log_tie: float) -> Floats:
    """Win probabilities for leads in score. A tie counts half, and no side is preferred.

    >>> find_wins(np.array([0.0, 100.0]), 0.0)
    array([0.5, 1. ])
    """
    return (1 + find_odds(ahead, log_tie).lead) / 2


def rank_comparisons(
    data: Comparisons,
    known: Comparisons | None,
    learned: tuple[bool, bool],
    max_iter: int,
    tol: float,
    n_draws: int,
    seed: int,
    callback: Callable[[Progress], object] | None,
) -> Ranking:
    """The ranking of the candidates of verdicts and known verdicts; see `BradleyTerry` for the parameters.

    `learned` says whether discriminations and biases of judges are. The same bits whatever the number of threads.
    """
    learned = learned[0], learned[1] and data.has_positions
    both = data if known is None else data.add_known(known)
    cells, part, middle = count_verdicts(both, *learned), find_parts(both), None
    with one_thread():
        found = fit(cells, max_iter, tol, callback)
        curvature = find_curvature(cells, found.vector, found.spreads)
        if both.item is not None:
            step = max(1, both.n_items // max(MOST_ITEMS, ITEMS_PER_CANDIDATE * data.n_candidates))
            some = both.keep(np.flatnonzero(both.item % step == 0))
            by_item = count_verdicts(some, *learned, by_item=True)
            item = some.item[by_item.first] // step  # type: ignore[index]
            middle = square_items(by_item, item, found.vector, curvature, both.n_items)
        covariance, root = find_covariance(cells, curvature, part, middle)
        score = found.vector[cells.kind == SCORE]
        size = np.bincount(part)
        score = score - (np.bincount(part, score) / size)[part]
        rank, rank_low, rank_high = rank_draws(score, root, part, n_draws, seed)

    weight, m = data.weights, data.n_workers
    decided, tied = data.verdict != TIE, data.verdict == TIE
    wins = np.bincount(data.left, weight * (data.verdict == LEFT), data.n_candidates)
    wins += np.bincount(data.right, weight * (data.verdict == RIGHT), data.n_candidates)
    seen, ties = (
        sum(np.bincount(side, counted, data.n_candidates) for side in (data.left, data.right))
        for counted in (weight, weight * tied)
    )
    ahead = score[data.left] - score[data.right]
    agrees = np.where(data.verdict == LEFT, ahead > 0, (data.verdict == RIGHT) & (ahead < 0))
    given, n_decided, n_agreeing, n_left = (
        sum_by(data.worker, weight * rows, m) for rows in (1.0, decided, agrees, data.verdict == LEFT)
    )
    variance = curvature.variance
    with np.errstate(invalid="ignore"):
        judges = Judges(
            comparisons=given,
            discrimination=found.vector[cells.kind == DISCRIMINATION][:m],
            discrimination_error=np.sqrt(variance * cells.learned)[cells.kind == DISCRIMINATION][:m],
            bias=found.vector[cells.kind == BIAS][:m],
            bias_error=np.sqrt(variance * cells.learned)[cells.kind == BIAS][:m],
            agreement=n_agreeing / n_decided,
            ties=np.bincount(data.worker, weight * tied, m) / given,
            first=n_left / n_decided,
        )
    repeated = contradicted = 0
    if data.item is not None and data.has_workers and data.has_positions:
        # A pair that is shown the other way round is another question.
        asked = group_rows(data.worker, data.item, data.left, data.right)[0]
        n_asked, n_said = int(asked.max()) + 1, len(group_rows(asked, data.verdict)[1])
        repeated, contradicted = data.n_comparisons - n_said, n_said - n_asked
    numbers = Numbers(
        comparisons=data.n_comparisons,
        items=data.n_items,
        groups=len(data.groups),
        known=0 if known is None else known.n_comparisons,
        repeated=repeated,
        contradicted=contradicted,
        weight=float(weight.sum()),
        ties=float(weight[tied].sum()),
        has_workers=data.has_workers,
        has_positions=data.has_positions,
    )
    ranking = Ranking(
        candidates=data.candidates,
        workers=data.workers,
        part=part,
        score=score,
        covariance=covariance,
        rank=rank,
        rank_low=rank_low,
        rank_high=rank_high,
        tallies=np.array([seen, wins, ties]),
        judges=judges,
        numbers=numbers,
        log_tie=float(found.vector[data.n_candidates]),
        spreads=tuple(found.spreads[[SCORE, DISCRIMINATION, BIAS, EFFECT]].tolist()),
        n_iter=found.n_iter,
        converged=found.converged,
        backend=data.backend,
        columns=dict(data.columns),
    )
    if not ranking.kinds.two_camps:
        return ranking
    # The reverse order may be the right one: intervals of ranks hold it too.
    last = size[part] + 1
    low, high = np.minimum(rank_low, last - rank_high), np.maximum(rank_high, last - rank_low)
    return replace(ranking, rank_low=low, rank_high=high)


def find_parts(data: Comparisons) -> Integers:
    """The part that each candidate belongs to: those that were compared, directly or through others.

    Parts are numbered by size, the largest first, and equal ones by their first candidate.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # which takes long to load

    n = data.n_candidates
    edges = coo_array((np.ones(data.n_comparisons), (data.left, data.right)), shape=(n, n))
    _, part = connected_components(edges, directed=False)
    sizes, first = np.bincount(part), np.unique(part, return_index=True)[1]
    number = np.empty(len(sizes), np.int64)
    number[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return np.asarray(number[part])


# ------------------------------------------------------------------------------------------------ what to compare next


def list_next_comparisons(found: Ranking, n: int, workers: object = None) -> dict[str, Column]:
    r"""The columns of a table of comparisons to ask for: left, right, worker, gain.

    With lead :math:`\Delta_q` and posterior variance :math:`V_q` of the scores of pair q, and :math:`p_q =
    \Phi(\Delta_q / \sqrt{V_q})`, a ranking drawn from the posterior has :math:`\sum_q 2 p_q (1 - p_q)` pairs in another
    order than the truth: what Kendall's tau counts. A verdict on the pair with the contrast x tells :math:`w = d_m^2
    \kappa` about its lead, where :math:`\kappa` is the information about z (the mean of both orders of the two). To
    first order, :math:`p_q (1 - p_q)` is expected to fall by :math:`\varphi_q^2 / V_q` times what :math:`V_q` falls by,
    with :math:`\varphi_q` the normal density at :math:`\Delta_q / \sqrt{V_q}`. Over all pairs this is

    .. math:: \frac{2 w \, x^T \Sigma L \Sigma x}{1 + w \, x^T \Sigma x}, \qquad
              L = \sum_q \frac{\varphi_q^2}{V_q} x_q x_q^T

    So a verdict counts for all pairs whose order depends on it, and not only for the one that is asked about.

    After each choice the covariance is what it will be after the answer, :math:`\Sigma - \frac{w}{1 + w V} \Sigma x x^T
    \Sigma` with the same L, so that a list does not ask the same thing again and again. No judge gets more than twice
    an equal share of the questions: if the best one got all, a judge who seems sharp by chance would decide the
    ranking. Judges who toss coins or prefer the worse candidate get none. Of parts that were never compared with each
    other the order is open.
    """
    # Those named are asked; else all who neither toss coins nor prefer the worse candidate, of two camps both.
    kinds = found.kinds
    judges = np.flatnonzero(~kinds.coins & (~kinds.contrary | kinds.two_camps))
    if workers is not None:
        named = workers.ravel() if isinstance(workers, np.ndarray) else workers
        listed = list(named) if isinstance(named, (list, tuple, set, np.ndarray)) else [named]
        judges = np.unique(lookup(found.workers, to_column(listed)))
        if not len(judges) or judges[0] < 0:
            known = f"judges of the fit, such as {listing(found.workers.tolist(), 5)}"
            raise parameter_error("workers", "next_comparisons", known, workers)
    elif not len(judges):
        judges = np.arange(len(found.workers))
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
