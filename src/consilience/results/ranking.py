"""A ranking: scores of candidates, how judges judge, and how sure all of it is. Computed once, and frozen.

See `consilience.inference.bradley_terry` for the model, and `consilience.inference.score_covariance` for intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..answers.columns import Column, Values, to_column
from ..answers.comparisons import Comparisons
from ..answers.frames import BACKENDS
from ..answers.verdict_tables import LEFT, RIGHT, TIE
from ..inference import sum_by
from ..inference.bradley_terry import Cells, Estimates, Fit, find_curvature, find_odds, fit, invert
from ..inference.em import Progress
from ..inference.one_thread import one_thread
from ..inference.score_covariance import INTERVAL, Ranks, Scaled, find_ranks, scale_scores, square_items
from ..inference.verdict_counts import choose_judged, count_verdicts, find_parts, join_codes, join_known, sample_items
from ..kernels import Floats, Integers
from ..specs import (
    FIGURES,
    FINITE,
    NOT_NEGATIVE,
    WHOLE_COUNTS,
    ArraySpec,
    ColumnSpec,
    Fault,
    Figure,
    NotNegative,
    Positive,
    Sizes,
    among,
)

# Half the width of a 95 % interval, in standard deviations.
WIDTH = 1.959963984540054
# The Elo scale: a lead of 400 is a chance of 10 to 1; the mean is 1000.
ELO_MEAN, ELO_UNIT = 1000.0, 400 / math.log(10)


class Settings(NamedTuple):
    """How a ranking is found; see `BradleyTerry`."""

    discrimination: bool
    position_bias: bool
    max_iter: int
    tol: float
    n_draws: int
    seed: int


class Judges(NamedTuple):
    """How judges judge, (M,) each. What is not learned has intervals of no width."""

    comparisons: Annotated[Floats, ArraySpec("M", NOT_NEGATIVE)]
    discrimination: Annotated[Floats, ArraySpec("M", FINITE)]
    discrimination_error: Annotated[Floats, ArraySpec("M", NOT_NEGATIVE)]
    bias: Annotated[Floats, ArraySpec("M", FINITE)]
    bias_error: Annotated[Floats, ArraySpec("M", NOT_NEGATIVE)]
    agreement: Annotated[Floats, ArraySpec("M", FIGURES)]  # NaN if there is nothing but ties
    ties: Annotated[Floats, ArraySpec("M", FIGURES)]
    first: Annotated[Floats, ArraySpec("M", FIGURES)]  # how often the left one was preferred, without ties
    # How much more often the second half of the verdicts agrees than the first; None without an order of verdicts.
    change: Annotated[Floats, ArraySpec("M", FIGURES)] | None
    change_error: Annotated[Floats, ArraySpec("M", FIGURES)] | None


class Tallies(NamedTuple):
    """What was counted of candidates, (C,) each."""

    comparisons: Annotated[Floats, ArraySpec("C", NOT_NEGATIVE)]
    wins: Annotated[Floats, ArraySpec("C", NOT_NEGATIVE)]
    ties: Annotated[Floats, ArraySpec("C", NOT_NEGATIVE)]


class Numbers(NamedTuple):
    """What was counted of all verdicts."""

    comparisons: int
    items: int
    groups: int
    known: int  # verdicts
    repeated: int  # rows that say once more what the same judge said of the same pair and item
    contradicted: int  # rows that say something else
    weight: NotNegative  # of all verdicts
    ties: NotNegative
    has_workers: bool
    has_positions: bool


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
        """Return a probability with its interval."""
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
    log_tie : float
        The log of the weight of ties, minus infinity if there are none.
    spreads : tuple of float
        Standard deviations that were learned: of scores, discriminations, biases, and of what families share.
    """

    candidates: Annotated[Values, ColumnSpec("C", "names")]
    workers: Annotated[Values, ColumnSpec("M", "names")]
    part: Annotated[NDArray[np.int64], ArraySpec("C", WHOLE_COUNTS)]
    score: Annotated[Floats, ArraySpec("C", FINITE)]
    covariance: Annotated[Floats, ArraySpec("C C", FINITE)]
    rank: Annotated[NDArray[np.int64], ArraySpec("C", WHOLE_COUNTS)]
    rank_low: Annotated[NDArray[np.int64], ArraySpec("C", WHOLE_COUNTS)]
    rank_high: Annotated[NDArray[np.int64], ArraySpec("C", WHOLE_COUNTS)]
    tallies: Tallies
    judges: Judges
    numbers: Numbers
    log_tie: Figure
    spreads: tuple[Positive, Positive, Positive, Positive]
    n_iter: int
    converged: bool
    backend: Annotated[str, among(BACKENDS)]
    columns: dict[str, str]

    def check_saved(self, sizes: Sizes) -> None:
        """Raise a `Fault` unless parts are numbered, and variances are some."""
        if sizes["C"] < 2 or self.part.max() >= sizes["C"] or (np.diag(self.covariance) < 0).any():
            raise Fault("parts or variances of the candidates cannot be so")
        if (self.rank_low > self.rank).any() or (self.rank > self.rank_high).any():
            raise Fault("a rank is not in its interval")
        if math.isnan(self.log_tie) or self.log_tie == math.inf:
            raise Fault("the weight of ties cannot be so")

    @property
    def error(self) -> Floats:
        """The standard error of each score."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def n_parts(self) -> int:
        """How many parts the candidates are in."""
        return int(self.part.max()) + 1

    @property
    def order(self) -> NDArray[np.int64]:
        """The candidates from the best to the worst, part by part."""
        return np.lexsort((np.arange(len(self.score)), -self.score, self.part))

    def win(self, first: int, second: int) -> WinProbability:
        """Return the probability that one candidate beats another of the same part, by index."""
        ahead, error = self.lead(np.array([first]), np.array([second]))
        ends = ahead[0] + WIDTH * error[0] * np.array([0.0, -1.0, 1.0])
        return WinProbability(*find_wins(ends, self.log_tie).tolist())

    def lead(self, first: Integers, second: Integers) -> tuple[Floats, Floats]:
        """Return how far ahead candidates are of others, and the standard errors of this."""
        own, cross = np.diag(self.covariance), self.covariance[first, second]
        return self.score[first] - self.score[second], np.sqrt(np.maximum(own[first] + own[second] - 2 * cross, 0.0))

    def win_matrix(self) -> Floats:
        """Return the probability that the candidate of the row beats that of the column; NaN across parts."""
        wins = find_wins(self.score[:, None] - self.score[None, :], self.log_tie)
        return np.where(self.part[:, None] == self.part[None, :], wins, np.nan)


def find_wins(ahead: Floats, log_tie: float) -> Floats:
    """Return win probabilities for leads in score. A tie counts half, and no side is preferred.

    >>> find_wins(np.array([0.0, 100.0]), 0.0)
    array([0.5, 1. ])
    """
    return (1 + find_odds(ahead, log_tie).lead) / 2


def find_close(found: Ranking) -> list[tuple[int, int, WinProbability]]:
    """Return neighbours in the ranking that cannot be told apart, by index, and how probably the first one wins."""
    order = found.order.tolist()
    wins = [(a, b, found.win(a, b)) for a, b in pairwise(order) if found.part[a] == found.part[b]]
    return [(a, b, win) for a, b, win in wins if not win.told_apart]


# ----------------------------------------------------------------------------------------------------------- the fit


def rank_comparisons(
    data: Comparisons,
    known: Comparisons | None,
    settings: Settings,
    callback: Callable[[Progress], object] | None = None,
) -> Ranking:
    """Return the ranking that verdicts tell, and known ones; the same bits whatever the number of threads."""
    with one_thread():
        return allow_reverse(_rank_comparisons(data, known, settings, callback))


def allow_reverse(found: Ranking) -> Ranking:
    """Return a ranking whose intervals of ranks hold the reverse order too, if judges are in two camps."""
    if find_camps(found) is None:
        return found
    last = np.bincount(found.part)[found.part] + 1
    low = np.minimum(found.rank_low, last - found.rank_high)
    high = np.maximum(found.rank_high, last - found.rank_low)
    return replace(found, rank_low=low, rank_high=high)


def _rank_comparisons(
    data: Comparisons,
    known: Comparisons | None,
    settings: Settings,
    callback: Callable[[Progress], object] | None,
) -> Ranking:
    n_known = 0 if known is None else 1
    judged = choose_judged(
        data.n_workers, n_known, settings.discrimination, settings.position_bias and data.has_positions
    )
    everything = data if known is None else join_known(data, known)
    cells, _ = count_verdicts(everything, judged)
    found = fit(cells, settings.max_iter, settings.tol, callback)
    curvature, part = find_curvature(cells, found.at, found.spreads), find_parts(everything)
    inverse, middle = invert(curvature), None
    if everything.item is not None:
        by_item, item = count_verdicts(sample_items(everything), judged, by_item=True)
        middle = square_items(by_item, item, found.at, curvature, inverse, everything.n_items)
    scaled = scale_scores(found.at, inverse, part, middle)
    ranks = find_ranks(scaled, part, settings.n_draws, settings.seed)
    judges = describe_judges(data, found.at, scaled, inverse.judges)
    return assemble(data, known, cells, found, scaled, ranks, part, judges)


def assemble(
    data: Comparisons,
    known: Comparisons | None,
    cells: Cells,
    found: Fit,
    scaled: Scaled,
    ranks: Ranks,
    part: Integers,
    judges: Judges,
) -> Ranking:
    """Return what was found in one piece."""
    repeated, contradicted = count_repeats(data)
    weights = data.weights
    numbers = Numbers(
        comparisons=data.n_comparisons,
        items=data.n_items,
        groups=len(data.groups),
        known=0 if known is None else known.n_comparisons,
        repeated=repeated,
        contradicted=contradicted,
        weight=float(weights.sum()),
        ties=float(weights[data.verdict == TIE].sum()),
        has_workers=data.has_workers,
        has_positions=data.has_positions,
    )
    return Ranking(
        data.candidates,
        data.workers,
        np.asarray(part, np.int64),
        scaled.score,
        scaled.covariance,
        np.asarray(ranks.rank, np.int64),
        np.asarray(ranks.low, np.int64),
        np.asarray(ranks.high, np.int64),
        tallies=count_tallies(data),
        judges=judges,
        numbers=numbers,
        log_tie=found.at.log_tie if cells.has_ties else -math.inf,
        spreads=(found.spreads.score, found.spreads.discrimination, found.spreads.bias, found.spreads.effect),
        n_iter=found.n_iter,
        converged=found.converged,
        backend=data.backend,
        columns=dict(data.columns),
    )


def count_tallies(data: Comparisons) -> Tallies:
    """Return how often each candidate was compared, won, and tied."""
    n, weight = data.n_candidates, data.weights

    def count(codes: Integers, rows: NDArray[np.bool_]) -> Floats:
        return sum_by(codes[rows], weight[rows], n)

    every, tied = np.ones(data.n_comparisons, bool), data.verdict == TIE
    return Tallies(
        count(data.left, every) + count(data.right, every),
        count(data.left, data.verdict == LEFT) + count(data.right, data.verdict == RIGHT),
        count(data.left, tied) + count(data.right, tied),
    )


def count_repeats(data: Comparisons) -> tuple[int, int]:
    """Return how many rows repeat what the same judge said of the same pair and item, and how many contradict it.

    Without items or judges there is no telling what is a repetition. A pair that is shown the other way round is
    another question.
    """
    if data.item is None or not data.has_workers or not data.has_positions:
        return 0, 0
    asked = join_codes([data.worker, data.item, data.left, data.right])
    said = join_codes([asked, data.verdict.astype(np.int64)])
    n_rows, n_asked, n_said = len(asked), int(asked.max()) + 1, int(said.max()) + 1
    return n_rows - n_said, n_said - n_asked


def describe_judges(data: Comparisons, at: Estimates, scaled: Scaled, variances: Floats) -> Judges:
    """Return what is told of judges: their parameters on the scale of the scores, and shares of their verdicts."""
    m, weight = data.n_workers, data.weights

    def share(rows: NDArray[np.bool_], among_rows: NDArray[np.bool_]) -> Floats:
        total = np.bincount(data.worker[among_rows], weight[among_rows], m)
        part = np.bincount(data.worker[rows & among_rows], weight[rows & among_rows], m)
        return np.asarray(np.divide(part, total, out=np.full(m, np.nan), where=total > 0))

    ahead = scaled.score[data.left] - scaled.score[data.right]
    decided = data.verdict != TIE
    agrees = np.where(data.verdict == LEFT, ahead > 0, ahead < 0)
    errors = np.sqrt(variances[:m])
    return Judges(
        sum_by(data.worker, weight, m),
        at.discrimination[:m].copy(),
        errors[:, 0].copy(),
        at.bias[:m].copy(),
        errors[:, 1].copy(),
        share(agrees, decided),
        share(~decided, np.ones(len(decided), bool)),
        share(data.verdict == LEFT, decided),
        *find_changes(data, agrees, decided),
    )


def find_changes(
    data: Comparisons, agrees: NDArray[np.bool_], decided: NDArray[np.bool_]
) -> tuple[Floats, Floats] | tuple[None, None]:
    """Return how the agreement of each judge changes from the first half of the verdicts to the second, and its error.

    Ties, and verdicts of unknown time, are in neither half.
    """
    if data.order is None:
        return None, None
    rows = np.flatnonzero(decided & ~np.isnan(data.order))
    rows = rows[np.lexsort((data.order[rows], data.worker[rows]))]
    worker, size = data.worker[rows], np.bincount(data.worker[rows], minlength=data.n_workers)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(size) - size, size)
    late = place * 2 >= size[worker]
    n = np.array([np.bincount(worker[late == half], minlength=data.n_workers) for half in (False, True)])
    good = np.array([sum_by(worker[late == half], 1.0 * agrees[rows][late == half], data.n_workers) for half in (0, 1)])
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = good / n
        spread = (
            ((good + 1) / (n + 2)) * (1 - (good + 1) / (n + 2)) / n
        )  # one of each kind added: 0 and 1 are uncertain
    known = (n > 0).all(axis=0)
    change = np.where(known, shares[1] - shares[0], np.nan)
    return change, np.where(known, np.sqrt(spread.sum(axis=0)), np.nan)


# -------------------------------------------------------------------------------------------------------------- tables


def list_ranking(found: Ranking) -> dict[str, Column]:
    """Return the columns of the ranking, the best candidate first; with the part, if there are several."""
    order = found.order
    score, error = found.score, WIDTH * found.error
    whole = bool((found.tallies.comparisons % 1 == 0).all() and (found.tallies.wins % 1 == 0).all())

    def number(values: Floats) -> Column:
        return to_column(values[order].astype(np.int64) if whole else values[order])

    columns: dict[str, Column] = {"candidate": to_column(found.candidates[order])}
    if found.n_parts > 1:
        columns["part"] = to_column(found.part[order] + 1)
    ends = {"score": score, "low": score - error, "high": score + error}
    columns |= {name: to_column(values[order]) for name, values in ends.items()}
    ranks = {"rank": found.rank, "rank_low": found.rank_low, "rank_high": found.rank_high}
    columns |= {name: to_column(values[order]) for name, values in ranks.items()}
    columns |= {name: number(values) for name, values in found.tallies._asdict().items()}
    elo = {f"elo{name.removeprefix('score') and '_' + name}": ELO_MEAN + ELO_UNIT * ends[name] for name in ends}
    return columns | {name: to_column(values[order]) for name, values in elo.items()}


def describe_weight(found: Ranking) -> str:
    """Return what all verdicts weigh, in words; "" if each counts as one.

    Verdicts from scores or ranks are those without positions.
    """
    numbers = found.numbers
    if math.isclose(numbers.weight, numbers.comparisons, rel_tol=1e-9):
        return ""
    why = "as weights say" if numbers.has_positions else "the pairs of a list of n candidates count as n - 1"
    return f"{numbers.weight:,.0f} verdicts: {why}"


def list_judges(found: Ranking) -> dict[str, Column]:
    """Return the columns of the report on judges, those with most verdicts first."""
    judges = found.judges
    order = np.lexsort((np.arange(len(found.workers)), -judges.comparisons))
    whole = bool((judges.comparisons % 1 == 0).all())
    columns: dict[str, Column] = {
        "worker": to_column(found.workers[order]),
        "comparisons": to_column(judges.comparisons[order].astype(np.int64 if whole else np.float64)),
    }
    for name, values, error in (
        ("discrimination", judges.discrimination, judges.discrimination_error),
        ("position_bias", judges.bias, judges.bias_error),
    ):
        for end, width in (("", 0.0), ("_low", -WIDTH), ("_high", WIDTH)):
            columns[name + end] = to_column((values + width * error)[order])
    shares = {"agreement": judges.agreement, "ties": judges.ties, "first": judges.first}
    shares |= {} if judges.change is None else {"agreement_change": judges.change}
    columns |= {name: to_column(values[order]) for name, values in shares.items()}
    remarks = remark_on_judges(found)
    return columns | {"remarks": to_column([remarks[place] for place in order.tolist()])}


# A judge tosses coins if the interval of the discrimination holds 0 and is nearer to it than this; in a crowd with
# better judges than the mean, than so many times what the best one has at least.
MOST_COIN = 0.75
# Judges are in two camps if the information of contrarians is more than this share of that of the others.
LEAST_CAMP = 1 / 3
# A side is preferred if the bias is at least so large, beyond doubt. It is always taken from this share on.
LEAST_BIAS, ALWAYS, LEAST_VERDICTS = 0.4, 0.95, 10


class Bounds(NamedTuple):
    """Ends of the intervals of discriminations, and what they are compared with.

    Attributes
    ----------
    low, high : ndarray of shape (M,)
        Ends of the 95 % intervals.
    highest : ndarray of shape (M,)
        Upper ends of intervals so wide that the chance that any judge is above is 2.5 %. With a thousand coin tossers
        `high` is below 0 for 25 of them.
    coin : float
        From where on none is that of a coin. Where most judges toss coins, these pull down the mean, which is 1: so
        coins are compared with the best judge.
    """

    low: Floats
    high: Floats
    highest: Floats
    coin: float


def bound_discrimination(judges: Judges) -> Bounds:
    """Return what discriminations are beyond doubt."""
    widest = -float(ndtri((1 - INTERVAL[1]) / max(len(judges.bias), 1)))
    low, high, highest = (judges.discrimination + z * judges.discrimination_error for z in (-WIDTH, WIDTH, widest))
    return Bounds(low, high, highest, MOST_COIN * max(1.0, float(low.max(initial=0.0))))


def find_coin_tossers(judges: Judges) -> NDArray[np.bool_]:
    """Tell whose verdicts have nothing to do with the scores."""
    low, high, highest, coin = bound_discrimination(judges)
    near = (high < coin) & (low > -coin) & (judges.discrimination_error > 0)
    return np.asarray((low <= 0) & (highest >= 0) & near)


def find_contrarians(judges: Judges) -> NDArray[np.bool_]:
    """Tell who prefers the worse one, beyond doubt."""
    return np.asarray(bound_discrimination(judges).highest < 0)


def find_perhaps_contrary(judges: Judges) -> NDArray[np.bool_]:
    """Tell who may prefer the worse one, or toss coins, but has given too few verdicts to tell."""
    low, high, highest, coin = bound_discrimination(judges)
    return np.asarray((judges.discrimination < 0) & (highest >= 0) & (high < coin) & (low <= -coin))


class Camps(NamedTuple):
    """Judges who contradict each other about as much as they agree, (M,) each; some are in neither camp."""

    first: NDArray[np.bool_]
    second: NDArray[np.bool_]


def find_camps(found: Ranking) -> Camps | None:
    """Return the two camps of judges if verdicts hardly tell which of them is right, None if they do.

    The information of a judge is the number of verdicts times the squared discrimination. Scores and discriminations
    with the opposite sign would fit almost as well, unless some verdicts are known.
    """
    judges = found.judges
    second = find_contrarians(judges)
    first = bound_discrimination(judges).low > 0
    information = judges.comparisons * judges.discrimination**2
    if found.numbers.known or not second.any():
        return None
    told = information[second].sum() > LEAST_CAMP * information[~second].sum()
    return Camps(first, second) if told else None


def find_worse(judges: Judges) -> NDArray[np.bool_]:
    """Tell whose later verdicts agree less with the ranking than the earlier ones, by three standard errors."""
    if judges.change is None or judges.change_error is None:
        return np.zeros(len(judges.bias), bool)
    return np.asarray(judges.change < -3 * judges.change_error)


def find_one_sided(found: Ranking) -> NDArray[np.bool_]:
    """Tell who nearly always prefers the same place, whatever is there."""
    judges = found.judges
    always = (judges.comparisons >= LEAST_VERDICTS) & (judges.ties < 1) & found.numbers.has_positions
    return np.asarray(always & ((judges.first >= ALWAYS) | (judges.first <= 1 - ALWAYS)))


def remark_on_judges(found: Ranking) -> list[str]:
    """Return what is remarkable of each judge, "" if nothing is."""
    judges, always = found.judges, find_one_sided(found)
    sure = (np.abs(judges.bias) > WIDTH * judges.bias_error) & (np.abs(judges.bias) >= LEAST_BIAS)
    many = judges.comparisons >= LEAST_VERDICTS
    camps = find_camps(found)
    of_camps = {"contrarian": find_contrarians(judges)}
    if camps is not None:
        of_camps = {"camp 1": camps.first, "camp 2": camps.second}
    remarks = {
        "tosses coins": find_coin_tossers(judges),
        **of_camps,
        "perhaps contrary; too few verdicts": find_perhaps_contrary(judges),
        "always the first": always & (judges.first == 1),
        "always the second": always & (judges.first == 0),
        "nearly always the first ({first:.0%})": always & (judges.first >= ALWAYS) & (judges.first < 1),
        "nearly always the second ({second:.0%})": always & (judges.first <= 1 - ALWAYS) & (judges.first > 0),
        "prefers the first": sure & (judges.bias > 0) & ~always,
        "prefers the second": sure & (judges.bias < 0) & ~always,
        "nothing but ties": many & (judges.ties == 1),
        "worse towards the end": find_worse(judges),
    }
    return [
        "; ".join(text.format(first=first, second=1 - first) for text, told in remarks.items() if told[place])
        for place, first in enumerate(judges.first.tolist())
    ]
