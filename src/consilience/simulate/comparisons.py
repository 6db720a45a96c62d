"""Simulated judges who compare candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..answers.columns import to_column
from ..answers.tables import build_frame
from ..kernels import Floats
from ..rankings.comparisons import LEFT, RIGHT, TIE, VERDICTS, Comparisons
from ..rankings.likelihood import find_odds
from .drawing import check_between, check_whole


@dataclass(frozen=True, eq=False)
class ComparisonSimulation:
    """Verdicts and what is behind them.

    Attributes
    ----------
    comparisons : Comparisons
        The verdicts.
    scores : ndarray
        The true score of each candidate, in the order of `comparisons.candidates`.
    discrimination, position_bias : ndarray
        Those of each judge, in the order of `comparisons.workers`.
    """

    comparisons: Comparisons
    scores: Floats
    discrimination: Floats
    position_bias: Floats

    def to_frame(self) -> object:
        """Return the verdicts as a pyarrow table: item, worker, left, right, winner."""
        data = self.comparisons
        assert data.item is not None
        return build_frame(
            {
                "item": to_column(data.item + 1),
                "worker": to_column(data.workers[data.worker]),
                "left": to_column(data.candidates[data.left]),
                "right": to_column(data.candidates[data.right]),
                "winner": to_column([VERDICTS[verdict] for verdict in data.verdict.tolist()]),
            },
            "pyarrow",
        )


def comparisons(
    n_comparisons: int = 1500,
    *,
    n_candidates: int = 12,
    n_judges: int = 15,
    coin_tossers: float = 0.3,
    bias: float = 0.4,
    tie: float = 0.5,
    per_item: int = 1,
    item_spread: float = 0.0,
    seed: int = 0,
) -> ComparisonSimulation:
    """Draw verdicts on pairs of candidates by judges of different discrimination.

    Scores are normal, discriminations uniform between 0.5 and 2.5, and 0 for judges who toss coins. See `BradleyTerry`
    for what they mean.

    Parameters
    ----------
    n_comparisons, n_candidates, n_judges : int
        How many there are.
    coin_tossers : float
        The probability that a judge tosses coins.
    bias : float
        Spread of the judges' position biases.
    tie : float
        The weight of ties.
    per_item : int
        How many verdicts in a row are about the same item.
    item_spread : float
        Spread of what an item adds to the score of each candidate: some do better on some prompts.
    seed : int
        Seed of everything.

    Returns
    -------
    ComparisonSimulation

    Examples
    --------
    >>> import consilience as cs
    >>> arena = cs.simulate.comparisons(2000, n_candidates=6, seed=1)
    >>> arena.comparisons
    Comparisons(2,000 verdicts on 6 candidates by 15 judges on 2,000 items)
    >>> model = cs.rank(arena.comparisons)
    >>> bool(model.candidates_[model.scores_.argmax()] == arena.comparisons.candidates[arena.scores.argmax()])
    True
    """
    check_whole(1, n_comparisons=n_comparisons, n_judges=n_judges, per_item=per_item)
    check_whole(2, n_candidates=n_candidates)
    check_whole(0, seed=seed)
    check_between("coin_tossers", coin_tossers, 0, 1)
    for name, number in (("bias", bias), ("tie", tie), ("item_spread", item_spread)):
        check_between(name, number, 0, 1e6)
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, n_candidates)
    discrimination = rng.uniform(0.5, 2.5, n_judges)
    discrimination[rng.random(n_judges) < coin_tossers] = 0.0
    position = rng.normal(0, bias, n_judges)
    left = rng.integers(n_candidates, size=n_comparisons)
    right = (left + rng.integers(1, n_candidates, n_comparisons)) % n_candidates
    judge = rng.integers(n_judges, size=n_comparisons)
    item = np.arange(n_comparisons) // per_item
    ahead = scores[left] - scores[right]
    if item_spread:
        shift = rng.normal(0, item_spread, (int(item[-1]) + 1, n_candidates))
        ahead += shift[item, left] - shift[item, right]
    with np.errstate(divide="ignore"):
        odds = find_odds(discrimination[judge] * ahead + position[judge], float(np.log(tie)))
    drawn = rng.random(n_comparisons)
    is_left = drawn < (1 - odds.tie + odds.lead) / 2
    verdict = np.where(is_left, LEFT, np.where(drawn < 1 - odds.tie, RIGHT, TIE)).astype(np.int8)
    width = len(str(max(n_candidates, n_judges)))
    data = Comparisons(
        left.astype(np.int32),
        right.astype(np.int32),
        verdict,
        judge.astype(np.int32),
        np.array([f"c{place + 1:0{width}}" for place in range(n_candidates)], object),
        np.array([f"j{place + 1:0{width}}" for place in range(n_judges)], object),
        item=item.astype(np.int32),
        columns={role: role for role in ("left", "right", "winner", "worker", "item")},
    )
    return ComparisonSimulation(data, scores, discrimination, position)
