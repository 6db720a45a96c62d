"""The checks of a ranking: each is a function of the ranking that yields what it found; see `consilience.checks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy.special import chdtrc

from ..errors import ConvergenceWarning, Python, Sentence, join_names, plural
from ..kernels import Truths
from ..results.findings import Finding
from .fitting import WIDTH
from .ranking import Ranking

# A crowd has a position bias worth a finding if it moves an even pair by this much: 0.2 in log odds is 55 to 45 %.
LEAST_CROWD_BIAS = 0.2
# With so many times as many verdicts, or fewer, the first two may be told apart; beyond this no number is given.
MOST_TIMES = 10
# Verdicts agree better than chance if so much agreement has a smaller chance than this among coins.
LEAST_CHANCE = 0.05
# Repeated rows are worth a finding from this share on.
LEAST_REPEATED = 0.01
_NEXT = Sentence(
    "Ask about the pairs that {next_comparisons} lists.", next_comparisons=Python("next_comparisons(n)", "FILE")
)


def find_parts(found: Ranking) -> Iterator[Finding]:
    """Some candidates were never compared with the rest, not even through others."""
    if found.n_parts == 1:
        return
    sizes = join_names(f"{size:,}" for size in np.bincount(found.part).tolist())
    yield Finding(
        f"The candidates are in {plural(found.n_parts, 'part')} that were never compared with each other ({sizes} "
        "candidates). Scores and ranks hold within a part: nothing is known across parts. Not in the largest part: "
        f"{join_names(map(str, found.candidates[found.part > 0].tolist()))}.",
        ("Compare some candidates of each part with some of another one.",),
        level="bad",
    )


def find_no_order(found: Ranking) -> Iterator[Finding]:
    """All verdicts are ties."""
    if found.numbers.ties >= found.numbers.weight:
        yield Finding(
            "All verdicts are ties: they tell no order.",
            ("Check the column of winners.", "Or compare candidates that differ more."),
            level="bad",
        )


def find_unsettled(found: Ranking) -> Iterator[Finding]:
    """The fit did not settle."""
    if not found.converged:
        yield Finding(
            "The fit did not settle: scores may still change.",
            (Sentence("Raise {max_iter}."),),
            category=ConvergenceWarning,
        )


def find_camps(found: Ranking) -> Iterator[Finding]:
    """Two groups of judges prefer opposite candidates, and nothing says which is right."""
    if not found.kinds.two_camps:
        return
    first, second = int(found.kinds.agreeing.sum()), int(found.kinds.contrary.sum())
    camps = f"Judges are in two camps of {first:,} and {second:,} that prefer opposite candidates."
    if not first:
        verb = "prefers" if second == 1 else "prefer"
        camps = f"{plural(second, 'judge')} {verb} the opposite order, and nobody clearly prefers this one."
    yield Finding(
        f"{camps} The verdicts do not tell which is right: the order may be the wrong way round.",
        (
            Sentence("Give some known verdicts with {gold}."),
            "Check whether some judges were asked for the worse one, or have the two sides confused.",
        ),
        level="bad",
    )


def find_chance(found: Ranking) -> Iterator[Finding]:
    r"""All verdicts together could be those of coins.

    Without any differences, :math:`s^T V^{-1} s` is at most a chi-squared variable of as many degrees of freedom as
    there are scores; discriminations, which adapt to chance, count as far as the verdicts have determined them.
    """
    numbers, error = found.numbers, found.judges.discrimination_error
    if numbers.ties >= numbers.weight or found.kinds.two_camps:
        return
    same = found.part[:, None] == found.part[None, :]
    covariance = found.covariance + float(np.diag(found.covariance).mean()) * same  # scores are centred in each part
    total = float(np.sum(found.score * np.linalg.lstsq(covariance, found.score)[0]))
    adapted = np.maximum(1 - (error / found.spreads[1]) ** 2, 0.0)
    if chdtrc(len(found.score) - found.n_parts + float(adapted[error > 0].sum()), total) > LEAST_CHANCE:
        yield Finding(
            f"These {plural(numbers.comparisons, 'verdict')} agree no better than chance: coins would give an order "
            "that looks as good.",
            ("Ask for more verdicts.", "Check the columns, and how judges understood the question."),
            level="bad",
            category=None,
        )


def find_contrary(found: Ranking) -> Iterator[Finding]:
    """Some judges prefer the worse candidate."""
    contrary = found.kinds.contrary
    if contrary.any() and not found.kinds.two_camps:
        verb = "prefers" if contrary.sum() == 1 else "prefer"
        yield Finding(
            f"{plural(int(contrary.sum()), 'judge')} {verb} the worse candidate: "
            f"{join_names(map(str, found.workers[contrary].tolist()))}. Their verdicts count the other way round; "
            "scores, Elo and win probabilities are smaller for them, as those of an average judge.",
            ("Check whether they were asked for the worse one, or have the two sides confused.",),
        )


def find_repeats(found: Ranking) -> Iterator[Finding]:
    """Some rows repeat or contradict what the same judge said of the same pair and item."""
    numbers = found.numbers
    least = max(1, LEAST_REPEATED * numbers.comparisons)
    if numbers.repeated >= least:
        yield Finding(
            f"In {plural(numbers.repeated, 'row')} a judge says again what they said of the same pair and item. Each "
            "counts as a verdict of its own.",
            ("If they are copies, drop them.",),
        )
    if numbers.contradicted >= least:
        yield Finding(
            f"In {plural(numbers.contradicted, 'row')} a judge contradicts what they said of the same pair and item. "
            "All of them count.",
            ("If the later ones are corrections, drop the earlier ones.",),
        )


def name_judges(found: Ranking, which: Truths, one: str, several: str) -> str:
    """What some judges do, who they are, and how many of the verdicts are theirs, as the start of a sentence."""
    names = join_names(map(str, found.workers[which].tolist()))
    share = found.judges.comparisons[which].sum() / found.judges.comparisons.sum()
    does = one if which.sum() == 1 else several
    return f"{plural(int(which.sum()), 'judge')} {does}: {names}. Their verdicts ({share:.0%} of all)"


def find_coins(found: Ranking) -> Iterator[Finding]:
    """Some judges toss coins: their verdicts do not depend on the candidates."""
    if found.kinds.coins.any():
        yield Finding(
            f"{name_judges(found, found.kinds.coins, 'tosses coins', 'toss coins')} hardly count for the order. "
            "Scores, Elo and win probabilities are those of an average judge, coin tossers included: a good judge sees "
            "larger differences.",
            ("Ask others, or look at how these judges understood the question.",),
            category=None,
        )


def find_same_place(found: Ranking) -> Iterator[Finding]:
    """Some judges nearly always prefer the same place."""
    if found.kinds.one_sided.any():
        does = [f"nearly always {verb} the same place, whatever is there" for verb in ("prefers", "prefer")]
        yield Finding(
            f"{name_judges(found, found.kinds.one_sided, *does)} hardly tell candidates apart.",
            ("Leave out their verdicts.",),
            category=None,
        )


def find_crowd_bias(found: Ranking) -> Iterator[Finding]:
    """Judges on the whole prefer the first or the second place, without those who nearly always do."""
    judges, others = found.judges, ~found.kinds.one_sided
    if not found.numbers.has_positions or not judges.bias_error[others].any():
        return
    weight = np.where(others, judges.comparisons, 0) / judges.comparisons[others].sum()
    bias, error = float(weight @ judges.bias), float(np.sqrt(weight**2 @ judges.bias_error**2))
    if abs(bias) < max(LEAST_CROWD_BIAS, WIDTH * error):
        return
    side, share = ("first" if bias > 0 else "second"), 1 / (1 + np.exp(-abs(bias)))
    yield Finding(
        f"Judges prefer the candidate in the {side} place: of two that are equally good it wins {share:.0%} of the "
        "verdicts that are no tie. Scores are free of this.",
        ("Show each pair in both orders, or in a random one.",),
        category=None,
    )


def find_no_better(found: Ranking) -> Iterator[Finding]:
    """Too few verdicts tell the first two candidates apart."""
    first, second = found.order[:2]
    if found.part[second] != 0 or found.numbers.ties >= found.numbers.weight:
        return
    win = found.win(int(first), int(second))
    if win.told_apart:
        return
    ahead, error = found.lead(np.array([first]), np.array([second]))
    times = int(np.ceil((WIDTH * error[0] / max(float(ahead[0]), 1e-9)) ** 2))
    more = (
        f" About {times} times as many verdicts would tell, if their scores are right." if times <= MOST_TIMES else ""
    )
    names = [str(found.candidates[place]) for place in (first, second)]
    yield Finding(
        f"The first two, {names[0]} and {names[1]}, cannot be told apart: {names[0]} wins with probability "
        f"{float(win):.2f} ({win.low:.2f} to {win.high:.2f}).{more if times <= MOST_TIMES else ''}",
        (_NEXT,),
        category=None,
    )


def find_one_judge(found: Ranking) -> Iterator[Finding]:
    """All verdicts count the same, since there is one judge."""
    if found.numbers.has_workers and len(found.workers) == 1:
        yield Finding(
            "All verdicts come from one judge: nothing tells how well this judge judges.",
            ("Ask others about some of the pairs.",),
            category=None,
        )


# By the kind of what they find, the most serious first; and the section of the report that shows more.
RANKING_CHECKS: dict[str, tuple[Callable[[Ranking], Iterator[Finding]], str]] = {
    "parts": (find_parts, ""),
    "no order": (find_no_order, ""),
    "unsettled": (find_unsettled, ""),
    "camps": (find_camps, "judges"),
    "chance": (find_chance, ""),
    "contrary": (find_contrary, "judges"),
    "repeats": (find_repeats, ""),
    "coins": (find_coins, "judges"),
    "same place": (find_same_place, "judges"),
    "position": (find_crowd_bias, "judges"),
    "first two": (find_no_better, "wins"),
    "one judge": (find_one_judge, ""),
}


def check_ranking(found: Ranking) -> list[Finding]:
    """All that checks find of a ranking, the most serious first."""
    return [
        replace(each, kind=kind, place=place)
        for kind, (check, place) in RANKING_CHECKS.items()
        for each in check(found)
    ]
