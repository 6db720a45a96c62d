"""Bradley-Terry with ties and judges: a ranking of candidates from verdicts on pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ..answers.columns import Values, lookup, to_column
from ..answers.previews import build_report, round_figures
from ..answers.tables import build_frame
from ..arguments import is_whole
from ..documents.document import Document
from ..errors import InputError, ParameterError, Sentence, listing, parameter_error, plural, shorten
from ..inference.em import Progress
from ..models.standalone import Standalone
from .comparisons import open_comparisons, open_verdicts
from .page import RANKING_CHARTS, check_ranking, describe_ranking, report_ranking
from .ranking import Ranking, WinProbability, list_next_comparisons, rank_comparisons

# More candidates than this have a covariance that is too large.
MOST_CANDIDATES = 5_000
# Time grows with the cube of their number: more than so many candidates have at least so many verdicts each.
MANY_CANDIDATES, VERDICTS_EACH = 1_000, 5


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
        Candidates from the best to the worst: candidate; score with its 95 % interval (low, high); rank, rank_low and
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

    result_type: ClassVar[Any] = Ranking
    charts: ClassVar[Any] = RANKING_CHARTS

    discrimination: str = "learn"
    position_bias: str = "learn"
    max_iter: int = 1000
    tol: float = 1e-4
    n_draws: int = 2000
    seed: int = 0
    callback: Callable[[Progress], object] | None = None

    def _adopt(self, found: Ranking) -> Self:
        """Take a result as that of this model; return the model itself."""
        self._ranking_table = build_report(found.table, "pyarrow")
        self.findings_ = check_ranking(found)
        return super()._adopt(found)

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
        if data.n_candidates > MOST_CANDIDATES:
            raise InputError(
                f"There are {data.n_candidates:,} candidates, and at most {MOST_CANDIDATES:,} can be ranked at once.",
                Sentence("Are {left} and {right} the columns of the candidates?"),
            )
        if data.n_candidates > max(MANY_CANDIDATES, data.n_comparisons // VERDICTS_EACH):
            n = plural(data.n_comparisons, "verdict")
            raise InputError(
                f"There are {data.n_candidates:,} candidates and only {n}: each needs at least {VERDICTS_EACH}.",
                "Leave out candidates that were hardly compared, or collect more verdicts.",
            )
        known = None if gold is None else open_verdicts(gold, data.candidates)
        learned = self.discrimination == "learn", self.position_bias == "learn"
        search = self.max_iter, self.tol, self.n_draws, self.seed, self.callback
        return self._adopt(rank_comparisons(data, known, learned, *search))

    @property
    def ranking_(self) -> Any:
        """The candidates from the best to the worst, with scores, ranks and intervals."""
        return self.result_ and self._ranking_table

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

        Columns: worker; comparisons; discrimination with its 95 % interval (discrimination_low, discrimination_high),
        where 1 is the mean of all judges; position_bias with its interval, in log odds: positive if the left place is
        preferred; agreement, the share of verdicts other than ties that are in the order of the ranking; ties, their
        share; first, how often the left one was preferred, without ties; remarks.
        """
        return build_report(round_figures(self.result_.judge_table), self.result_.backend)

    def win_probability(self, first: object, second: object) -> WinProbability:
        """Return the probability that one candidate beats another, with its 95 % interval.

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
        found = self.result_
        places = lookup(found.candidates, to_column([first, second]))
        for name, place in zip((first, second), places.tolist(), strict=True):
            if place < 0:
                raise ParameterError(
                    f"There is no candidate {shorten(name)}.", f"There are {listing(found.candidates.tolist())}."
                )
        if found.part[places[0]] != found.part[places[1]]:
            raise ParameterError(
                f"{shorten(first)} and {shorten(second)} were never compared, not even through others: nobody knows "
                "which is better.",
                "Compare some candidates of their parts with each other.",
            )
        return found.win(int(places[0]), int(places[1]))

    def win_matrix(self) -> Any:
        """Return a table of win probabilities: candidates in the order of the ranking, against each in a column.

        Entries of candidates that were never compared, not even through others, are missing.
        """
        found = self.result_
        names, matrix = found.candidates[found.order], found.win_matrix()[np.ix_(found.order, found.order)]
        columns = {str(name): to_column(matrix[:, place].copy()) for place, name in enumerate(names.tolist())}
        return build_frame({"candidate": to_column(names), **columns}, found.backend)

    def close_pairs(self) -> Any:
        """Return a table of the neighbours in the ranking that cannot be told apart: first, second, and their odds.

        Columns: first, second; win, the probability that the first beats the second, with win_low and win_high.
        """
        found = self.result_
        places = np.array([(a, b) for a, b, _ in found.close], np.int64).reshape(-1, 2)
        wins = np.array([(float(win), win.low, win.high) for _, _, win in found.close]).reshape(-1, 3)
        columns = {"first": found.candidates[places[:, 0]], "second": found.candidates[places[:, 1]]}
        columns |= dict(zip(("win", "win_low", "win_high"), wins.T.copy(), strict=True))
        return build_report({name: to_column(values) for name, values in columns.items()}, found.backend)

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
        return build_report(list_next_comparisons(self.result_, int(n), workers), self.result_.backend)

    def overview(self, title: str = "", winners: str = "") -> Document:
        """What terminals, notebooks and JSON show; `winners` says how the column of winners was read."""
        return describe_ranking(self.result_, self.findings_, title, winners)

    def page(self, title: str = "Ranking") -> Document:
        """The report."""
        return report_ranking(self.result_, self.findings_, title, type(self).__name__)

    def _describe(self) -> str:
        numbers = self.result_.numbers
        judges = f" of {plural(len(self.result_.workers), 'judge')}" if numbers.has_workers else ""
        return f"{plural(numbers.comparisons, 'verdict')}{judges} on {plural(len(self.candidates_), 'candidate')}"
