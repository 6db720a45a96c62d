"""Bradley-Terry with ties and judges: a ranking of candidates from verdicts on pairs, and what it tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtri

from ..answers.columns import Column, Values, lookup, to_column
from ..answers.previews import build_report, round_figures
from ..answers.tables import build_frame
from ..documents.document import Document
from ..engines import one_thread
from ..errors import InputError, ParameterError, Sentence, listing, parameter_error, plural, shorten
from ..inference import NORMAL_95, TAILS_95
from ..inference.cells import sum_by
from ..inference.em import Progress
from ..kernels import Floats, Integers, Truths
from ..models.base import Standalone
from ..options import is_whole
from . import likelihood
from .comparisons import LEFT, RIGHT, TIE, Comparisons, open_comparisons, open_verdicts
from .likelihood import find_odds
from .page import RANKING_CHARTS, check_ranking, describe_ranking, report_ranking

# More candidates than this have a covariance that is too large.
MOST_CANDIDATES = 5_000
# Time grows with the cube of their number: more than a few candidates have at least so many verdicts each, and many
# of them more.
FEW_CANDIDATES, MANY_CANDIDATES, VERDICTS_EACH = 1_000, 2_500, (5, 20)
COUNTS = ("comparisons", "items", "groups", "known", "weight", "ties")
# The Elo scale: a lead of 400 is a chance of 10 to 1; the mean is 1000.
ELO_MEAN, ELO_UNIT = 1000.0, 400 / math.log(10)
# So many items show how verdicts on one item hang together; with many candidates, so many for each.
MOST_DRAWS, ITEMS_PER_CANDIDATE = 100_000, 20
# A judge tosses coins if the interval of the discrimination holds 0 and is nearer to it than this; in a crowd with
# better judges than the mean, than so many times what the best one has at least.
MOST_COIN = 0.75
# Judges are in two camps if the information of contrarians is more than this share of that of the others.
LEAST_CAMP = 1 / 3
# A side is preferred if the bias is at least so large, beyond doubt. It is always taken from this share on.
LEAST_SIDE_BIAS, ALWAYS, LEAST_VERDICTS = 0.4, 0.95, 10
# The most pairs that are considered: those that are nearest in the ranking.
MOST_PAIRS = 50_000
LEAST_SCORE_VARIANCE = 1e-12
# A pair of different parts is as uncertain as the usual spread of scores makes it.
APART = 2.0
# No judge gets more than so many times an equal share.
MOST_SHARE = 2
# The judge whose verdict tells most of any pair is among those who discriminate most; so many are tried.
N_TRIED = 8


class WinProbability(float):
    """The probability that one candidate beats another, as a number with an interval.

    Attributes
    ----------
    low, high : float
        Ends of its 95% interval.
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
    """What was found by a ranking of C candidates by M judges. Nothing in it changes.

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
    discrimination, bias, discrimination_error, bias_error : ndarray of shape (M,)
        How judges judge. What is not learned has errors of 0.
    asked : ndarray of shape (M,)
        The number of verdicts.
    agreement, tied, first : ndarray of shape (M,)
        The share of verdicts other than ties in the order of the ranking; that of ties; and how often the left one was
        preferred, without ties. What is not known is NaN.
    counts : dict
        What was counted of all verdicts: "comparisons", "items", "groups", "known" verdicts, the "weight" of all, and
        that of "ties".
    has_workers, has_positions : bool
        Whether it is known who gave which verdict, and whether left and right mean anything.
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
    discrimination: Floats
    bias: Floats
    discrimination_error: Floats
    bias_error: Floats
    asked: Floats
    agreement: Floats
    tied: Floats
    first: Floats
    counts: dict[str, float]
    has_workers: bool
    has_positions: bool
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
        if set(self.counts) != set(COUNTS):
            raise ValueError("counts are not those of a ranking")
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
        ends = ahead[0] + NORMAL_95 * error[0] * np.array([0.0, -1.0, 1.0])
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
    def kinds(self) -> dict[str, Truths]:
        """Which judges are out of the ordinary, (M,) each.

        "coins": their verdicts have nothing to do with the scores. "contrary": they prefer the worse candidate, beyond
        doubt. "one-sided": they nearly always prefer the
        same place. "agreeing": they discriminate, beyond doubt. "camps": all or none, whether contrary and agreeing
        judges are about as many, and nothing says which are right.

        The information of a judge is the number of verdicts times the squared discrimination. Scores and
        discriminations with the opposite sign fit almost as well, unless some verdicts are known: if contrarians have
        much of the information, there are two camps.
        """
        d, error = self.discrimination, self.discrimination_error
        low, high = d - NORMAL_95 * error, d + NORMAL_95 * error
        # With a thousand coin tossers `high` is below 0 for 25 of them. The chance that any of these is, is 2.5 %.
        widest = -float(ndtri((1 - TAILS_95[1]) / max(len(d), 1)))
        highest = d + widest * error
        # Where most judges toss coins, these pull down the mean, which is 1: coins are compared with the best judge.
        coin = MOST_COIN * max(1.0, float(low.max(initial=0.0)))
        sided = (self.first >= ALWAYS) | (self.first <= 1 - ALWAYS)
        contrary, information = highest < 0, self.asked * d**2
        is_close = information[contrary].sum() > LEAST_CAMP * information[~contrary].sum()
        are_camps = contrary.any() and is_close and not self.counts["known"]
        return {
            "coins": (low <= 0) & (highest >= 0) & (high < coin) & (low > -coin) & (error > 0),
            "contrary": contrary,
            "one-sided": sided & (self.asked >= LEAST_VERDICTS) & self.has_positions,
            "agreeing": low > 0,
            "camps": np.full(len(d), bool(are_camps)),
        }

    @property
    def has_camps(self) -> bool:
        """Whether judges are in two camps, and nothing says which is right."""
        return bool(self.kinds["camps"].any())

    @cached_property
    def remarks(self) -> list[str]:
        """What is remarkable of each judge, "" if nothing is."""
        kinds, first, camps = self.kinds, self.first, self.kinds["camps"]
        sure = (np.abs(self.bias) > NORMAL_95 * self.bias_error) & (np.abs(self.bias) >= LEAST_SIDE_BIAS)
        always = kinds["one-sided"]
        remarks = {
            "tosses coins": kinds["coins"],
            "contrarian": kinds["contrary"] & ~camps,
            "camp 1": kinds["agreeing"] & camps,
            "camp 2": kinds["contrary"] & camps,
            "always the first ({first:.0%})": always & (first >= ALWAYS),
            "always the second ({second:.0%})": always & (first < ALWAYS),
            "prefers the first": sure & (self.bias > 0) & ~always,
            "prefers the second": sure & (self.bias < 0) & ~always,
        }
        return [
            "; ".join(text.format(first=share, second=1 - share) for text, those in remarks.items() if those[place])
            for place, share in enumerate(first.tolist())
        ]

    @cached_property
    def table(self) -> dict[str, Column]:
        """The columns of the ranking, the best candidate first; with the part, if there are several."""
        half, order = NORMAL_95 * self.error, self.order
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
        order = np.lexsort((np.arange(len(self.workers)), -self.asked))
        asked = self.asked if (self.asked % 1).any() else self.asked.astype(np.int64)
        columns: dict[str, Any] = {"worker": self.workers, "comparisons": asked}
        figures = {
            "discrimination": (self.discrimination, self.discrimination_error),
            "position_bias": (self.bias, self.bias_error),
        }
        for name, (value, error) in figures.items():
            columns |= {
                name: value,
                f"{name}_low": value - NORMAL_95 * error,
                f"{name}_high": value + NORMAL_95 * error,
            }
        columns |= {"agreement": self.agreement, "ties": self.tied, "first": self.first}
        columns["remarks"] = np.array(self.remarks, object)
        return {name: to_column(values[order]) for name, values in columns.items()}

    def next_comparisons(self, n: int, workers: object = None) -> dict[str, Column]:
        r"""The columns of a table of comparisons to ask for: left, right, worker, gain.

        With lead :math:`\Delta_q` and posterior variance :math:`V_q` of the scores of pair q, and :math:`p_q =
        \Phi(\Delta_q / \sqrt{V_q})`, a ranking drawn from the posterior has :math:`\sum_q 2 p_q (1 - p_q)` pairs in
        another order than the truth: what Kendall's tau counts. A verdict on the pair with the contrast x tells
        :math:`w = d_m^2 \kappa` about its lead, where :math:`\kappa` is the information about z (the mean of both
        orders of the two). To first order, :math:`p_q (1 - p_q)` is expected to fall by :math:`\varphi_q^2 / V_q`
        times what :math:`V_q` falls by, with :math:`\varphi_q` the normal density at :math:`\Delta_q / \sqrt{V_q}`.
        Over all pairs this is

        .. math:: \frac{2 w \, x^T \Sigma L \Sigma x}{1 + w \, x^T \Sigma x}, \qquad
                  L = \sum_q \frac{\varphi_q^2}{V_q} x_q x_q^T

        So a verdict counts for all pairs whose order depends on it, and not only for the one that is asked about.

        After each choice the covariance is what it will be after the answer, :math:`\Sigma - \frac{w}{1 + w V} \Sigma
        x x^T \Sigma` with the same L, so that a list does not ask the same thing again and again. No judge gets more
        than twice an equal share of the questions: if the best one got all, a judge who seems sharp by chance would
        decide the ranking. Judges who toss coins or prefer the worse candidate get none. Of parts that were never
        compared with each other the order is open.
        """
        # Those named are asked; else all who neither toss coins nor prefer the worse candidate, of two camps both.
        kinds = self.kinds
        judges = np.flatnonzero(~kinds["coins"] & (~kinds["contrary"] | kinds["camps"]))
        if workers is not None:
            named = workers.ravel() if isinstance(workers, np.ndarray) else workers
            listed = list(named) if isinstance(named, (list, tuple, set, np.ndarray)) else [named]
            judges = np.unique(lookup(self.workers, to_column(listed)))
            if not len(judges) or judges[0] < 0:
                known = f"judges of the fit, such as {listing(self.workers.tolist(), 5)}"
                raise parameter_error("workers", "next_comparisons", known, workers)
        elif not len(judges):
            judges = np.arange(len(self.workers))
        # Where it is not known which camp is right, both are asked alike.
        limit = -(-(1 if self.has_camps else MOST_SHARE) * n // len(judges))
        # All pairs, or those that are nearest in the ranking if there are very many.
        c, order = len(self.candidates), self.order
        reach = max(1, min(c - 1, MOST_PAIRS // c))
        place, gap = np.divmod(np.arange(c * reach), reach)
        inside = place + gap + 1 < c
        first, second = order[place[inside]], order[(place + gap + 1)[inside]]
        ahead = self.score[first] - self.score[second]
        spread = (APART * self.spreads[0]) ** 2 if self.n_parts > 1 else 0.0
        covariance = self.covariance + spread * (self.part[:, None] == self.part[None, :])

        def contrast(matrix: Floats) -> Floats:  # x' A x of each pair
            own = np.diag(matrix)
            return np.asarray(own[first] + own[second] - 2 * matrix[first, second])

        asked = np.zeros(len(self.workers), np.int64)
        shown = np.zeros(len(self.candidates), np.int64)  # how often on the left, less how often on the right
        rows: list[tuple[int, int, int, float]] = []
        with one_thread():  # the same last bits for any number of threads
            variance = np.maximum(contrast(covariance), LEAST_SCORE_VARIANCE)
            weights = np.zeros_like(covariance)
            weights[first, second] = np.exp(-(ahead**2) / variance) / (2 * np.pi * variance)
            weights += weights.T
            doubt = np.diag(weights.sum(axis=1)) - weights
            fall = covariance @ doubt @ covariance
            for _ in range(n):
                free = judges[asked[judges] < limit]
                tried = free[np.argsort(-np.abs(self.discrimination[free]), kind="stable")][:N_TRIED]
                d, bias = (each[tried][:, None] for each in (self.discrimination, self.bias))
                # Which of the two is shown first is settled later, so that sides are even: the mean of both orders.
                both = [find_odds(d * ahead + side * bias, self.log_tie) for side in (1, -1)]
                information = d * d * np.mean([(1 - tie) - lead**2 for tie, lead, _ in both], axis=0) / 4
                gain = 2 * information * contrast(fall) / (1 + information * contrast(covariance))
                best = np.unravel_index(np.argmax(gain), gain.shape)
                judge, pair, gained, information_of_verdict = (
                    tried[best[0]],
                    best[1],
                    float(gain[best]),
                    float(information[best]),
                )
                a, b = int(first[pair]), int(second[pair])
                if shown[a] > shown[b]:  # sides are to be even
                    a, b = b, a
                shown[a], shown[b] = shown[a] + 1, shown[b] - 1
                asked[judge] += 1
                rows.append((a, b, judge, gained))
                moved = covariance[:, a] - covariance[:, b]
                share = information_of_verdict / (1 + information_of_verdict * (moved[a] - moved[b]))
                doubted = doubt @ moved
                both_ways, square = np.outer(moved, covariance @ doubted), np.outer(moved, moved)
                fall = fall - share * (both_ways + both_ways.T) + share**2 * float(moved @ doubted) * square
                covariance = covariance - share * square
        left, right, who, gains = (np.array(each) for each in zip(*rows, strict=True))
        columns = {"left": self.candidates[left], "right": self.candidates[right]}
        if self.has_workers:
            columns["worker"] = self.workers[who]
        return {name: to_column(values) for name, values in (columns | {"gain": gains.astype(np.float64)}).items()}


def find_wins(ahead: Floats, log_tie: float) -> Floats:
    """Win probabilities for leads in score. A tie counts half, and no side is preferred.

    >>> find_wins(np.array([0.0, 100.0]), 0.0)
    array([0.5, 1. ])
    """
    return (1 + find_odds(ahead, log_tie)[1]) / 2


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


@dataclass(kw_only=True, eq=False, repr=False)
class BradleyTerry(Standalone[Ranking]):
    r"""Rank candidates by verdicts on pairs, and weigh the judges who gave them.

    Judge m prefers the left or the right candidate, or calls it a tie, with odds

    .. math:: \text{left} : \text{right} : \text{tie} = e^{z/2} : e^{-z/2} : \nu, \qquad
              z = d_m (s_l - s_r) + g_m

    where s are the scores of the candidates, d is how well a judge discriminates, g is how much the left place is
    preferred, and :math:`\nu` is the weight of ties (Davidson). A judge who tosses coins has d near 0 and does not
    count, and one who prefers the worse candidate has a negative d. All of these are the maximum of a posterior with
    normal priors, whose variances are learned.

    Parameters
    ----------
    discrimination : {"learn", "equal"}
        Whether each judge has a discrimination of their own. With "equal" all verdicts count the same.
    position_bias : {"learn", "none"}
        Whether each judge may prefer the left or the right place.
    max_iter, tol : int, float
        Most iterations of a search for the maximum. It stops when no parameter, taken alone, is further than `tol`
        standard errors from where it should be.
    n_draws : int
        How many scores are drawn for the intervals of ranks.
    seed : int
        Seed of these draws.
    callback : callable, optional
        Called with a `Progress` after each round, in which variances are learned.

    Attributes
    ----------
    ranking_ : Arrow table
        Candidates from the best to the worst: candidate; score with its 95% interval (low, high); rank, rank_low and
        rank_high; comparisons, wins and ties; and the score on the Elo scale, elo, elo_low and elo_high. Scores have
        mean 0, and are those of an average judge: coin tossers and contrarians bring them nearer to 0. If some
        candidates were never compared with the rest, the column part says so: scores and ranks hold within a part.
    candidates_, scores_ : ndarray
        Ids of the candidates, sorted, and their scores.
    findings_ : list of Finding
        What to know about the ranking, the most serious first.
    n_iter_, converged_ : int, bool
        How the search ended.

    Notes
    -----
    A table of known verdicts (`gold`) is a judge with a discrimination of 10 and no bias. Where there are items, such
    as prompts, intervals allow for verdicts on one item that hang together. `docs/rankings.md` has examples.

    References
    ----------
    R. A. Bradley and M. E. Terry, "Rank analysis of incomplete block designs", Biometrika 39 (1952).
    R. R. Davidson, "On extending the Bradley-Terry model to accommodate ties", JASA 65 (1970).

    Examples
    --------
    >>> import consilience as cs
    >>> verdicts = {"left": list("aabbcc"), "right": list("bccaab"), "winner": list("aacaab")}
    >>> model = cs.BradleyTerry().fit(verdicts)
    >>> model.ranking_["candidate"].to_pylist()
    ['a', 'b', 'c']
    """

    page_title: ClassVar[str] = "Ranking"
    result_type: ClassVar[Any] = Ranking
    charts: ClassVar[Any] = RANKING_CHARTS

    discrimination: str = "learn"
    position_bias: str = "learn"
    max_iter: int = 1000
    tol: float = 1e-4
    n_draws: int = 2000
    seed: int = 0
    callback: Callable[[Progress], object] | None = None

    def _adopt(self, ranking: Ranking) -> Self:
        """Take a result as that of this model; return the model itself."""
        self.findings_ = check_ranking(ranking)
        return super()._adopt(ranking)

    def fit(self, comparisons: object, *, gold: object = None) -> Self:
        """Learn scores of candidates and how judges judge.

        Parameters
        ----------
        comparisons : Comparisons, table or path
            The verdicts; see `Comparisons.from_frame`.
        gold : table, path or dict, optional
            Known verdicts: a table with columns left, right and winner, or {(left, right): winner}.

        Returns
        -------
        self
        """
        self._check()
        data = open_comparisons(comparisons)
        n, c = data.n_comparisons, data.n_candidates
        few, many = (n // each for each in VERDICTS_EACH)
        most = max(FEW_CANDIDATES, min(few, MANY_CANDIDATES), min(many, MOST_CANDIDATES))
        if c > most:
            raise InputError(
                f"There are {c:,} candidates, and at most {most:,} can be ranked at once by {plural(n, 'verdict')}.",
                "Leave out candidates that were hardly compared, or collect more verdicts.",
                Sentence("Are {left} and {right} the columns of the candidates?"),
            )
        # All known verdicts are those of one judge more.
        known = None if gold is None else open_verdicts(gold, data.candidates)
        both = data if known is None else data.add_known(known)
        learned = self.discrimination == "learn", self.position_bias == "learn" and data.has_positions
        cells, part, middle, m = likelihood.count_verdicts(both, *learned), find_parts(both), None, data.n_workers
        with one_thread():  # the same bits whatever the number of threads
            vector, spreads, n_iter, converged = likelihood.fit(cells, self.max_iter, self.tol, self.callback)
            curvature = likelihood.find_curvature(cells, vector, spreads)
            if both.item is not None:
                step = max(1, both.n_items // max(MOST_DRAWS, ITEMS_PER_CANDIDATE * data.n_candidates))
                some = both.keep(np.flatnonzero(both.item % step == 0))
                by_item = likelihood.count_verdicts(some, *learned, by_item=True)
                item = some.item[by_item.first] // step  # type: ignore[index]
                middle = likelihood.square_items(by_item, item, vector, curvature, both.n_items)
            covariance, root = likelihood.find_covariance(cells, curvature, part, middle)
            score, size = vector[cells.kind == likelihood.SCORE], np.bincount(part)
            score = score - (np.bincount(part, score) / size)[part]
            rank, rank_low, rank_high = likelihood.rank_draws(score, root, part, self.n_draws, self.seed)

        weight, decided, tied = data.weights, data.verdict != TIE, data.verdict == TIE
        wins = np.bincount(data.left, weight * (data.verdict == LEFT), data.n_candidates)
        wins += np.bincount(data.right, weight * (data.verdict == RIGHT), data.n_candidates)
        seen, ties = (
            sum(np.bincount(side, counted, data.n_candidates) for side in (data.left, data.right))
            for counted in (weight, weight * tied)
        )
        ahead = score[data.left] - score[data.right]
        agrees = np.where(data.verdict == LEFT, ahead > 0, (data.verdict == RIGHT) & (ahead < 0))
        asked, n_decided, n_agreeing, n_left, n_tied = (
            sum_by(data.worker, weight * rows, m) for rows in (1.0, decided, agrees, data.verdict == LEFT, tied)
        )
        n_known = 0 if known is None else known.n_comparisons
        of_all = data.n_comparisons, data.n_items, len(data.groups), n_known
        counts = dict(zip(COUNTS, (*of_all, float(weight.sum()), float(weight[tied].sum())), strict=True))
        error = np.sqrt(curvature.variance * cells.learned)
        with np.errstate(invalid="ignore"):
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
                discrimination=vector[cells.kind == likelihood.DISCRIMINATION][:m],
                bias=vector[cells.kind == likelihood.BIAS][:m],
                discrimination_error=error[cells.kind == likelihood.DISCRIMINATION][:m],
                bias_error=error[cells.kind == likelihood.BIAS][:m],
                asked=asked,
                agreement=n_agreeing / n_decided,
                tied=n_tied / asked,
                first=n_left / n_decided,
                counts=counts,
                has_workers=data.has_workers,
                has_positions=data.has_positions,
                log_tie=float(vector[data.n_candidates]),
                spreads=tuple(
                    spreads[[likelihood.SCORE, likelihood.DISCRIMINATION, likelihood.BIAS, likelihood.EFFECT]].tolist()
                ),
                n_iter=n_iter,
                converged=converged,
                backend=data.backend,
                columns=dict(data.columns),
            )
        if ranking.has_camps:  # the reverse order may be the right one: intervals of ranks hold it too
            last = size[part] + 1
            low, high = np.minimum(rank_low, last - rank_high), np.maximum(rank_high, last - rank_low)
            ranking = replace(ranking, rank_low=low, rank_high=high)
        return self._adopt(ranking)

    @property
    def ranking_(self) -> Any:
        """The candidates from the best to the worst, with scores, ranks and intervals."""
        return build_report(self.result_.table, "pyarrow")

    @property
    def candidates_(self) -> Values:
        """Ids of the candidates, sorted."""
        return self.result_.candidates

    @property
    def scores_(self) -> Any:
        """The score of each candidate, in the order of `candidates_`."""
        return self.result_.score

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        return self.result_.n_iter

    @property
    def converged_(self) -> bool:
        """Whether the fit settled."""
        return self.result_.converged

    def judge_report(self) -> Any:
        """Return a table of judges, those with most verdicts first.

        Columns: worker; comparisons; discrimination with its 95% interval (discrimination_low, discrimination_high),
        where 1 is the mean of all judges; position_bias with its interval, in log odds: positive if the left place is
        preferred; agreement, the share of verdicts other than ties that are in the order of the ranking; ties, their
        share; first, how often the left one was preferred, without ties; remarks.
        """
        return build_report(round_figures(self.result_.judge_table), self.result_.backend)

    def win_probability(self, first: object, second: object) -> WinProbability:
        """Return the probability that one candidate beats another, with its 95% interval.

        It is that of an average judge without a position bias, and a tie counts half. The average is over all judges:
        if some toss coins or prefer the worse candidate, probabilities are nearer to 1/2 than those of a good judge.

        Parameters
        ----------
        first, second : object
            Ids of two candidates.

        Examples
        --------
        >>> import consilience as cs
        >>> verdicts = {"left": ["a"] * 9, "right": ["b"] * 9, "winner": ["a"] * 7 + ["b"] * 2}
        >>> win = cs.rank(verdicts).win_probability("a", "b")
        >>> win > 0.5, win.told_apart
        (True, False)
        """
        ranking = self.result_
        places = lookup(ranking.candidates, to_column([first, second]))
        for name, place in zip((first, second), places.tolist(), strict=True):
            if place < 0:
                raise ParameterError(
                    f"There is no candidate {shorten(name)}.", f"There are {listing(ranking.candidates.tolist())}."
                )
        if ranking.part[places[0]] != ranking.part[places[1]]:
            raise ParameterError(
                f"{shorten(first)} and {shorten(second)} were never compared, not even through others: nobody knows "
                "which is better.",
                "Compare some candidates of their parts with each other.",
            )
        return ranking.win(int(places[0]), int(places[1]))

    def win_matrix(self) -> Any:
        """Return a table of win probabilities: candidates in the order of the ranking, against each in a column.

        Entries of candidates that were never compared, not even through others, are missing.
        """
        ranking = self.result_
        names, matrix = ranking.candidates[ranking.order], ranking.win_matrix()[np.ix_(ranking.order, ranking.order)]
        columns = {str(name): to_column(matrix[:, place].copy()) for place, name in enumerate(names.tolist())}
        return build_frame({"candidate": to_column(names), **columns}, ranking.backend)

    def next_comparisons(self, n: int = 50, *, workers: object = None) -> Any:
        """Return a table of the comparisons to ask for next: those that are expected to tell most about the order.

        Columns: left, right; worker, if judges are known; gain, by how much the expected number of pairs in the wrong
        order falls, in a ranking drawn from the posterior. No judge gets more than twice an equal share. Fit again
        after each batch.

        Parameters
        ----------
        n : int, default 50
            How many comparisons to list.
        workers : list, optional
            Ids of the judges who can be asked. Default: all who neither toss coins nor prefer the worse one.
        """
        if not is_whole(n) or n < 1:
            raise parameter_error("n", "next_comparisons", "a whole number >= 1", n)
        return build_report(self.result_.next_comparisons(int(n), workers), self.result_.backend)

    def overview(self, title: str = "", winners: str = "") -> Document:
        """What terminals, notebooks and JSON show; `winners` says how the column of winners was read."""
        return describe_ranking(self.result_, self.findings_, title, winners)

    def page(self, title: str = "Ranking") -> Document:
        """The report."""
        return report_ranking(self.result_, self.findings_, title, type(self).__name__)

    def _describe(self) -> str:
        ranking = self.result_
        judges = f" of {plural(len(ranking.workers), 'judge')}" if ranking.has_workers else ""
        verdicts = plural(int(ranking.counts["comparisons"]), "verdict")
        return f"{verdicts}{judges} on {plural(len(self.candidates_), 'candidate')}"
