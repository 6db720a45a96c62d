"""What should be known about a ranking before anybody relies on it: its findings, as `consilience.checks` has them."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from ..errors import ConsilienceWarning, ConvergenceWarning, DataWarning, Python, Sentence, join_names, plural
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
# The section of the report that shows more, by the kind of finding.
PLACES = dict.fromkeys(("camps", "contrary", "coins", "same place", "position"), "judges") | {"first two": "wins"}
# Kinds that say that the ranking should not be relied on; and those of which `rank` warns.
BAD = ("parts", "no order", "camps", "chance")
WARNINGS: dict[str, type[ConsilienceWarning]] = {
    **dict.fromkeys(("parts", "no order", "camps", "contrary", "repeats"), DataWarning),
    "unsettled": ConvergenceWarning,
}


def check_ranking(found: Ranking) -> list[Finding]:
    """All that is to be said of a ranking, the most serious first."""
    numbers, judges, kinds, findings = found.numbers, found.judges, found.kinds, list[Finding]()
    are_ties = numbers.ties >= numbers.weight

    def add(kind: str, problem: str, *remedies: str | Sentence) -> None:
        level = "bad" if kind in BAD else "care"
        given = {"category": WARNINGS.get(kind), "kind": kind, "place": PLACES.get(kind, "")}
        findings.append(Finding(problem, remedies, level, **given))  # type: ignore[arg-type]

    def name(which: Truths, one: str, several: str) -> str:
        names = join_names(map(str, found.workers[which].tolist()))
        return f"{plural(int(which.sum()), 'judge')} {one if which.sum() == 1 else several}: {names}."

    def share(which: Truths) -> str:
        return f"Their verdicts ({judges.comparisons[which].sum() / judges.comparisons.sum():.0%} of all)"

    if found.n_parts > 1:
        sizes = join_names(f"{size:,}" for size in np.bincount(found.part).tolist())
        add(
            "parts",
            f"The candidates are in {plural(found.n_parts, 'part')} that were never compared with each other ({sizes} "
            "candidates). Scores and ranks hold within a part: nothing is known across parts. Not in the largest part: "
            f"{join_names(map(str, found.candidates[found.part > 0].tolist()))}.",
            "Compare some candidates of each part with some of another one.",
        )
    if are_ties:
        remedies = "Check the column of winners.", "Or compare candidates that differ more."
        add("no order", "All verdicts are ties: they tell no order.", *remedies)
    if not found.converged:
        add("unsettled", "The fit did not settle: scores may still change.", Sentence("Raise {max_iter}."))
    if kinds.two_camps:
        first, second = int(kinds.agreeing.sum()), int(kinds.contrary.sum())
        camps = f"Judges are in two camps of {first:,} and {second:,} that prefer opposite candidates."
        if not first:
            verb = "prefers" if second == 1 else "prefer"
            camps = f"{plural(second, 'judge')} {verb} the opposite order, and nobody clearly prefers this one."
        add(
            "camps",
            f"{camps} The verdicts do not tell which is right: the order may be the wrong way round.",
            Sentence("Give some known verdicts with {gold}."),
            "Check whether some judges were asked for the worse one, or have the two sides confused.",
        )
    if not are_ties and not kinds.two_camps and find_chance(found) > LEAST_CHANCE:
        add(
            "chance",
            f"These {plural(numbers.comparisons, 'verdict')} agree no better than chance: coins would give an order "
            "that looks as good.",
            "Ask for more verdicts.",
            "Check the columns, and how judges understood the question.",
        )
    if kinds.contrary.any() and not kinds.two_camps:
        add(
            "contrary",
            f"{name(kinds.contrary, 'prefers the worse candidate', 'prefer the worse candidate')} Their verdicts "
            "count the other way round; scores, Elo and win probabilities are smaller for them, as those of an average "
            "judge.",
            "Check whether they were asked for the worse one, or have the two sides confused.",
        )
    least, same = max(1, LEAST_REPEATED * numbers.comparisons), "what they said of the same pair and item."
    if numbers.repeated >= least:
        rows = f"In {plural(numbers.repeated, 'row')} a judge says again {same}"
        add("repeats", f"{rows} Each counts as a verdict of its own.", "If they are copies, drop them.")
    if numbers.contradicted >= least:
        rows = f"In {plural(numbers.contradicted, 'row')} a judge contradicts {same}"
        add("repeats", f"{rows} All of them count.", "If the later ones are corrections, drop the earlier ones.")
    if kinds.coins.any():
        add(
            "coins",
            f"{name(kinds.coins, 'tosses coins', 'toss coins')} {share(kinds.coins)} hardly count for the order. "
            "Scores, Elo and win probabilities are those of an average judge, coin tossers included: a good judge sees "
            "larger differences.",
            "Ask others, or look at how these judges understood the question.",
        )
    sided = kinds.one_sided
    if sided.any():
        does = (f"nearly always {verb} the same place, whatever is there" for verb in ("prefers", "prefer"))
        problem = f"{name(sided, *does)} {share(sided)} hardly tell candidates apart."
        add("same place", problem, "Leave out their verdicts.")
    if numbers.has_positions and judges.bias_error[~sided].any():
        weight = np.where(sided, 0, judges.comparisons) / judges.comparisons[~sided].sum()
        bias, error = float(weight @ judges.bias), float(np.sqrt(weight**2 @ judges.bias_error**2))
        if abs(bias) >= max(LEAST_CROWD_BIAS, WIDTH * error):
            add(
                "position",
                f"Judges prefer the candidate in the {'first' if bias > 0 else 'second'} place: of two that are "
                f"equally good it wins {1 / (1 + np.exp(-abs(bias))):.0%} of the verdicts that are no tie. Scores are "
                "free of this.",
                "Show each pair in both orders, or in a random one.",
            )
    best, second = found.order[:2].tolist()
    win = found.win(best, second)
    if found.part[second] == 0 and not are_ties and not win.told_apart:
        ahead, error = (float(each[0]) for each in found.lead(np.array([best]), np.array([second])))
        times = int(np.ceil((WIDTH * error / max(ahead, 1e-9)) ** 2))
        more = f" About {times} times as many verdicts would tell, if their scores are right."
        names = [str(found.candidates[place]) for place in (best, second)]
        add(
            "first two",
            f"The first two, {names[0]} and {names[1]}, cannot be told apart: {names[0]} wins with probability "
            f"{float(win):.2f} ({win.low:.2f} to {win.high:.2f}).{more if times <= MOST_TIMES else ''}",
            _NEXT,
        )
    if numbers.has_workers and len(found.workers) == 1:
        problem = "All verdicts come from one judge: nothing tells how well this judge judges."
        add("one judge", problem, "Ask others about some of the pairs.")
    return findings


def find_chance(found: Ranking) -> float:
    r"""The probability that coins give scores that differ as much.

    Without any differences, :math:`s^T V^{-1} s` is at most a chi-squared variable of as many degrees of freedom as
    there are scores; discriminations, which adapt to chance, count as far as the verdicts have determined them.
    """
    error = found.judges.discrimination_error
    same = found.part[:, None] == found.part[None, :]
    covariance = found.covariance + float(np.diag(found.covariance).mean()) * same  # scores are centred in each part
    total = float(np.sum(found.score * np.linalg.lstsq(covariance, found.score)[0]))
    adapted = np.maximum(1 - (error / found.spreads[1]) ** 2, 0.0)[error > 0].sum()
    return float(chdtrc(len(found.score) - found.n_parts + float(adapted), total))
