"""What is said of a ranking: findings, an overview for terminals and notebooks, the page, and its charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from ..answers.columns import to_values
from ..answers.previews import MOST_ROWS_SHOWN, fit_text, spell_estimate
from ..answers.tables import build_frame
from ..documents.charts import Chart, draw_biases, draw_heat, draw_intervals
from ..documents.document import Column, Document, Fact, Facts, Part, Section, Table, Text, name_all, to_name
from ..documents.overview import format_columns
from ..errors import ConsilienceWarning, ConvergenceWarning, DataWarning, Python, Sentence, join_names, plural
from ..inference import NORMAL_95
from ..kernels import Truths
from ..results.findings import Finding

if TYPE_CHECKING:
    from .bradley_terry import Ranking

# The most candidates, pairs of candidates and judges that charts and tables show.
MOST_CANDIDATES_DRAWN, MOST_IN_HEAT, MOST_JUDGES, MOST_JUDGES_DRAWN, MOST_NEXT = 40, 10, 60, 20, 10
# The most parts whose leaders are named.
MOST_PARTS = 3
# Longer names are cut in charts; the part in which they differ must not be.
WIDEST = 14
_CLOSE, _ASKED = "Neighbours that cannot be told apart", {"left": "First", "right": "Second", "worker": "Judge"}
# A crowd has a position bias worth a finding if it moves an even pair by this much: 0.2 in log odds is 55 to 45 %.
LEAST_CROWD_BIAS = 0.2
# With so many times as many verdicts, or fewer, the first two may be told apart; beyond this no number is given.
MOST_TIMES = 10
# Verdicts agree better than chance if so much agreement has a smaller chance than this among coins.
LEAST_COIN_CHANCE = 0.05
_AVERAGE = (
    "Scores, Elo and win probabilities are those of an average judge, coin tossers included: a good judge sees larger "
    "differences."
)
_CONFUSED = "Check whether they were asked for the worse one, or have the two sides confused."
# By the kind of finding: how serious it is, the warning that `rank` gives, and the section that shows more.
FINDING_KINDS: dict[str, tuple[str, type[ConsilienceWarning] | None, str]] = {
    "parts": ("bad", DataWarning, ""),
    "no order": ("bad", DataWarning, ""),
    "unsettled": ("care", ConvergenceWarning, ""),
    "camps": ("bad", DataWarning, "judges"),
    "chance": ("bad", None, ""),
    "contrary": ("care", DataWarning, "judges"),
    "coins": ("care", None, "judges"),
    "same place": ("care", None, "judges"),
    "position": ("care", None, "judges"),
    "first two": ("care", None, "wins"),
    "one judge": ("care", None, ""),
}


def check_ranking(ranking: Ranking) -> list[Finding]:
    """All that is to be said of a ranking, the most serious first."""
    counts, kinds, findings = ranking.counts, ranking.kinds, list[Finding]()
    are_ties = counts["ties"] >= counts["weight"]

    def add(kind: str, problem: str, *remedies: str | Sentence) -> None:
        level, category, place = FINDING_KINDS[kind]
        findings.append(Finding(problem, remedies, level, None, category, kind, place))  # type: ignore[arg-type]

    def name(which: Truths, one: str, several: str) -> str:
        names = join_names(map(str, ranking.workers[which].tolist()))
        return f"{plural(int(which.sum()), 'judge')} {one if which.sum() == 1 else several}: {names}."

    def share(which: Truths) -> str:
        return f"Their verdicts ({ranking.asked[which].sum() / ranking.asked.sum():.0%} of all)"

    if ranking.n_parts > 1:
        sizes = join_names(f"{size:,}" for size in np.bincount(ranking.part).tolist())
        others = join_names(map(str, ranking.candidates[ranking.part > 0].tolist()))
        problem = (
            f"The candidates are in {plural(ranking.n_parts, 'part')} that were never compared with each other "
            f"({sizes} candidates): scores and ranks hold within a part. Not in the largest part: {others}."
        )
        add("parts", problem, "Compare some candidates of each part with some of another one.")
    if are_ties:
        remedies = "Check the column of winners.", "Or compare candidates that differ more."
        add("no order", "All verdicts are ties: they tell no order.", *remedies)
    if not ranking.converged:
        add("unsettled", "The fit did not settle: scores may still change.", Sentence("Raise {max_iter}."))
    if ranking.has_camps:
        first, second = int(kinds["agreeing"].sum()), int(kinds["contrary"].sum())
        camps = f"Judges are in two camps of {first:,} and {second:,} that prefer opposite candidates."
        if not first:
            verb = "prefers" if second == 1 else "prefer"
            camps = f"{plural(second, 'judge')} {verb} the opposite order, and nobody clearly prefers this one."
        problem = f"{camps} The verdicts do not tell which is right: the order may be the wrong way round."
        add("camps", problem, Sentence("Give some known verdicts with {gold}."), _CONFUSED)
    if not are_ties and not ranking.has_camps and chance_of_coins(ranking) > LEAST_COIN_CHANCE:
        n = plural(int(counts["comparisons"]), "verdict")
        problem = f"These {n} agree no better than chance: coins would give an order that looks as good."
        add("chance", problem, "Ask for more verdicts.", "Check the columns, and how judges understood the question.")
    if kinds["contrary"].any() and not ranking.has_camps:
        who = name(kinds["contrary"], "prefers the worse candidate", "prefer the worse candidate")
        problem = f"{who} Their verdicts count the other way round, and make scores of an average judge smaller."
        add("contrary", problem, _CONFUSED)
    if kinds["coins"].any():
        who = f"{name(kinds['coins'], 'tosses coins', 'toss coins')} {share(kinds['coins'])}"
        problem = f"{who} hardly count for the order. {_AVERAGE}"
        add("coins", problem, "Ask others, or look at how these judges understood the question.")
    sided = kinds["one-sided"]
    if sided.any():
        who = name(
            sided, *(f"nearly always {verb} the same place, whatever is there" for verb in ("prefers", "prefer"))
        )
        problem = f"{who} {share(sided)} hardly tell candidates apart."
        add("same place", problem, "Leave out their verdicts.")
    if ranking.has_positions and ranking.bias_error[~sided].any():
        weight = np.where(sided, 0, ranking.asked) / ranking.asked[~sided].sum()
        bias, error = float(weight @ ranking.bias), float(np.sqrt(weight**2 @ ranking.bias_error**2))
        if abs(bias) >= max(LEAST_CROWD_BIAS, NORMAL_95 * error):
            side, even = "first" if bias > 0 else "second", 1 / (1 + np.exp(-abs(bias)))
            problem = (
                f"Judges prefer the candidate in the {side} place: of two that are equally good it wins {even:.0%} of "
                "the verdicts that are no tie. Scores are free of this."
            )
            add("position", problem, "Show each pair in both orders, or in a random one.")
    best, second = ranking.order[:2].tolist()
    win = ranking.win(best, second)
    if ranking.part[second] == 0 and not are_ties and not win.told_apart:
        ahead, error = (float(each[0]) for each in ranking.lead(np.array([best]), np.array([second])))
        times = int(np.ceil((NORMAL_95 * error / max(ahead, 1e-9)) ** 2))
        more = f" About {times} times as many verdicts would tell, if their scores are right."
        names = [str(ranking.candidates[place]) for place in (best, second)]
        problem = (
            f"The first two, {names[0]} and {names[1]}, cannot be told apart: {names[0]} wins with probability "
            f"{float(win):.2f} ({win.low:.2f} to {win.high:.2f}).{more if times <= MOST_TIMES else ''}"
        )
        pairs = Python("next_comparisons(n)", "FILE")
        add(
            "first two", problem, Sentence("Ask about the pairs that {next_comparisons} lists.", next_comparisons=pairs)
        )
    if ranking.has_workers and len(ranking.workers) == 1:
        problem = "All verdicts come from one judge: nothing tells how well this judge judges."
        add("one judge", problem, "Ask others about some of the pairs.")
    return findings


def chance_of_coins(ranking: Ranking) -> float:
    r"""The probability that coins give scores that differ as much.

    Without any differences, :math:`s^T V^{-1} s` is at most a chi-squared variable of as many degrees of freedom as
    there are scores; discriminations, which adapt to chance, count as far as the verdicts have determined them.
    """
    error = ranking.discrimination_error
    same = ranking.part[:, None] == ranking.part[None, :]
    covariance = (
        ranking.covariance + float(np.diag(ranking.covariance).mean()) * same
    )  # scores are centred in each part
    try:
        weighed = np.linalg.solve(covariance, ranking.score)
    except np.linalg.LinAlgError:
        weighed = np.linalg.lstsq(covariance, ranking.score)[0]
    total = float(np.sum(ranking.score * weighed))
    adapted = np.maximum(1 - (error / ranking.spreads[1]) ** 2, 0.0)[error > 0].sum()
    return float(chdtrc(len(ranking.score) - ranking.n_parts + float(adapted), total))


# ------------------------------------------------------------------------------------------------------------ overview


def tabulate_ranking(ranking: Ranking, most: int | None = None) -> Table:
    """The ranking, or its first rows."""
    every = build_frame(ranking.table, "pyarrow").to_pylist()
    shown = [
        {
            **row,
            "rank": spell_estimate((row["rank"], row["rank_low"], row["rank_high"])),
            "score": f"{row['score']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})",
            "elo": f"{row['elo']:.0f}",
        }
        for row in every[:most]
    ]
    columns = [
        Column("candidate", "candidate"),
        *([Column("part", "part", "count")] if ranking.n_parts > 1 else []),
        Column("rank", "rank", "spelled"),
        Column("score", "score", "spelled"),
        Column("elo", "elo", "spelled"),
        *(Column(name, name, "count") for name in ("comparisons", "wins", "ties")),
    ]
    return Table("ranking", "Candidates, with 95% intervals", columns, shown, len(every) - len(shown), every)


def tabulate_judges(ranking: Ranking, most: int | None = None) -> Table:
    """The judges with most verdicts; where no number is given, and there are many, all those with a remark."""
    every = build_frame(ranking.judge_table, "pyarrow").to_pylist()
    few = most is not None or len(every) <= MOST_ROWS_SHOWN
    chosen = every[:most] if few else [row for row in every if row["remarks"]]
    which = "" if few else f" with remarks, of {len(every):,}"
    columns = [
        Column("worker", "judge"),
        Column("comparisons", "verdicts", "count"),
        Column("discrimination", "discrimination", "estimate"),
        Column("position_bias", "position bias", "estimate"),
        Column("agreement", "agreement", "share"),
        Column("ties", "ties", "share"),
        Column("remarks", "remarks"),
    ]
    return Table("judge_report", f"Judges{which}, with 95% intervals", columns, chosen, data=every)


def describe_ranking(ranking: Ranking, findings: Sequence[Finding], title: str = "", winners: str = "") -> Document:
    """The overview of a ranking; `winners` says how the column of winners was read."""
    counts, n_judges = ranking.counts, len(ranking.workers)
    n, known, weight = int(counts["comparisons"]), int(counts["known"]), counts["weight"]
    by = f" by {plural(n_judges, 'judge')}" if ranking.has_workers else ""
    about = f" about {plural(int(counts['items']), 'item')}" if counts["items"] else ""
    why = "as weights say" if ranking.has_positions else "the pairs of a list of n candidates count as n - 1"
    counted = {name: counts[name] for name in ("items", "groups", "weight")}
    counted |= {"has_workers": ranking.has_workers, "has_positions": ranking.has_positions}
    facts = [
        Fact("columns", "Columns", ranking.columns, format_columns(ranking.columns)),
        Fact("winners", "Winners", winners or None, f"read as {fit_text(winners, 80)}" if winners else ""),
        Fact("comparisons", "Verdicts", n, f"{n:,}{by}{about} on {plural(len(ranking.candidates), 'candidate')}"),
        Fact("candidates", "", len(ranking.candidates)),
        Fact("judges", "", n_judges if ranking.has_workers else 0),
        Fact("", "" if math.isclose(weight, n) else "Counted as", None, f"{weight:,.0f} verdicts: {why}"),
        Fact("ties", "Ties", counts["ties"], f"{counts['ties'] / weight:.0%} of the verdicts"),
        Fact("known", "Known" if known else "", known, plural(known, "verdict")),
        *(Fact(name, "", value) for name, value in counted.items()),
        Fact("parts", "", ranking.n_parts),
        Fact("converged", "", ranking.converged),
    ]
    judges, several = tabulate_judges(ranking), ranking.has_workers and n_judges > 1
    if not several:  # only JSON shows a single one
        facts.append(Fact("judge_report", "", judges.records() if ranking.has_workers else []))
    parts: list[Part] = [Facts(facts), list(findings), tabulate_ranking(ranking)]
    return Document(title, "", [*parts, judges] if several else parts)


# ---------------------------------------------------------------------------------------------------------------- page


def report_ranking(ranking: Ranking, findings: Sequence[Finding], title: str, model: str) -> Document:
    """The page about a ranking by a `model`: who is best, how sure that is, who beats whom, and how judges judge."""
    overview = describe_ranking(ranking, findings).parts[0]
    n, n_judges, names = len(ranking.candidates), len(ranking.workers), name_all(ranking.candidates)
    n_pairs, n_coins = n - ranking.n_parts, int(ranking.kinds["coins"].sum())
    separated = f"{n_pairs - len(ranking.close):,} of {n_pairs:,}"
    figures = [
        Fact("resolved", "Neighbours told apart", n_pairs - len(ranking.close), separated, detail="next in the ranking")
    ]
    if ranking.has_workers and n_judges > 1:
        figures.append(Fact("coins", "Toss coins", n_coins, format="count", detail=f"of {plural(n_judges, 'judge')}"))
    headline, *lead = conclude(ranking)
    parts: list[Part] = [overview, Facts([Fact("model", "Model", model)]), *([Text(lead)] if lead else [])]
    parts.append(Facts(figures, "figures"))

    def add(
        id: str, title: str, menu: str, words: list[str], chart: Chart | None, table: Table, link: str = ""
    ) -> None:
        shown: list[Part] = [Text(words), *([([chart],)] if chart is not None else [])]
        shown += [Section("In detail", [table])] if table.rows else []
        parts.append(Section(title, shown, id, menu, link or f"See the {menu.lower()}"))

    notes: list[Part] = [list(findings)] if findings else [Text(["Nothing stands out."])]
    parts.append(Section("What needs attention", notes, "attention", "Attention"))
    words = [
        "A score of 1 more wins 73% of the verdicts that are no tie, of an average judge: coin tossers and contrarians "
        "make scores smaller."
    ]
    words += [f"These are the first {MOST_CANDIDATES_DRAWN} of {n:,}."] if n > MOST_CANDIDATES_DRAWN else []
    add("ranking", "Ranking", "Ranking", words, draw_ranking(ranking), tabulate_ranking(ranking, MOST_CANDIDATES_DRAWN))

    words = ["The candidate of the row beats that of the column with this probability. A tie counts half."]
    words += ["The chart shows the largest part: nothing is known across parts."] if ranking.n_parts > 1 else []
    words += [f"These are the first {MOST_IN_HEAT} candidates."] if np.sum(ranking.part == 0) > MOST_IN_HEAT else []
    rows: list[tuple[Any, ...]] = [
        (f"{names[first]} and {names[second]}", float(win), f"{win.low:.2f} to {win.high:.2f}")
        for first, second, win in ranking.close[:MOST_CANDIDATES_DRAWN]
    ]
    heads = [Column("pair", "Pair"), Column("first_wins", "First wins", "number")]
    close = Table("close", _CLOSE, [*heads, Column("interval", "95% interval", "spelled")], rows)
    add("wins", "Who beats whom", "Who beats whom", words, draw_wins(ranking), close, "See who beats whom")

    chart = draw_judges(ranking)
    if chart is not None:
        words = [
            "A discrimination of 1 is the mean of all judges, and 0 is that of a coin.",
            "A judge with a positive position bias prefers the first place.",
        ]
        words += [f"These are the {MOST_JUDGES} with most verdicts, of {n_judges:,}."] if n_judges > MOST_JUDGES else []
        add("judges", "Judges", "Judges", words, chart, tabulate_judges(ranking, MOST_JUDGES))

    asked = ranking.next_comparisons(MOST_NEXT)
    heads = [Column(key, head) for key, head in _ASKED.items() if key in asked]
    cells = [[to_name(str(value)) for value in to_values(asked[each.key]).tolist()] for each in heads]
    (first, second, *who), *_ = rows = list(zip(*cells, strict=True))
    words = [
        f"Begin with {first} and {second}{f', and ask {who[0]}' if who else ''}.",
        f"These {len(rows)} verdicts are expected to tell most about the order, one after the other.",
    ]
    next_ones = Table("next", "Comparisons to ask for", heads, rows)
    add("next", "What to compare next", "Next", words, None, next_ones, "See what to compare next")
    return Document(title, headline, parts)


def conclude(ranking: Ranking) -> list[str]:
    """Who is best, in one sentence, and what this rests on."""
    order, names = ranking.order, name_all(ranking.candidates)
    if ranking.counts["ties"] >= ranking.counts["weight"]:
        return ["All verdicts are ties, so there is no order."]
    if ranking.has_camps:
        return ["Judges are in two camps, and the verdicts do not tell which is right."]
    leaders = []
    for part in range(min(ranking.n_parts, MOST_PARTS)):
        best, *others = order[ranking.part[order] == part].tolist()
        close = [other for other in others if not ranking.win(best, other).told_apart]
        sure = f", and cannot be told apart from {plural(len(close), 'other')}" if close else ""
        leaders.append(f"{names[best]} leads part {part + 1}{sure}.")
    if ranking.n_parts > 1:
        # Ones that cannot be told apart lead together.
        headline = f"No overall best: {plural(ranking.n_parts, 'part')}. {' '.join(leaders)}"
        rest = [f"These are the {MOST_PARTS} largest parts."] if ranking.n_parts > MOST_PARTS else []
        return [headline, "Candidates of different parts were never compared, not even through others.", *rest]
    win = ranking.win(best, others[0])
    odds = f"It beats {names[others[0]]} with probability {float(win):.2f} ({win.low:.2f} to {win.high:.2f})."
    if not close:
        return [f"{names[best]} is the best.", odds]
    rivals = names[close[0]] if len(close) == 1 else f"{len(close)} others"
    return [f"{names[best]} comes first, and cannot be told apart from {rivals}.", odds]


def shorten_names(names: Sequence[str]) -> list[str]:
    """Names for a chart: without what all of them begin with, if one of them is long.

    >>> shorten_names(["stable-diffusion-a", "stable-diffusion-b"]), shorten_names(["a", "ab"])
    (['…a', '…b'], ['a', 'ab'])
    """
    first, last = min(names), max(names)
    shared = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    shared = next((n for n in range(shared, 0, -1) if not first[n - 1].isalnum()), 0)  # whole words
    if shared < 3 or max(map(len, names)) <= WIDEST:
        return list(names)
    return [f"…{name[shared:]}" if name[shared:] else name for name in names]


def draw_ranking(ranking: Ranking) -> Chart:
    """The scores of the candidates, the best first."""
    names, error, rows = shorten_names(name_all(ranking.candidates)), NORMAL_95 * ranking.error, []
    places = ranking.order[:MOST_CANDIDATES_DRAWN].tolist()
    for place in places:
        score, half = float(ranking.score[place]), float(error[place])
        name = f"{names[place]} (part {ranking.part[place] + 1})" if ranking.n_parts > 1 else names[place]
        rows.append((name, score, score - half, score + half, ""))
    ends = [(int(ranking.rank_low[place]), int(ranking.rank_high[place])) for place in places]
    between = [str(low) if low == high else f"{low} to {high}" for low, high in ends]
    ranks = [f"{ranking.rank[place]} ({interval})" for place, interval in zip(places, between, strict=True)]
    alt = f"From {rows[0][0]} with {rows[0][1]:+.2f} to {rows[-1][0]} with {rows[-1][1]:+.2f}."
    least, most = min(low for _, _, low, _, _ in rows), max(high for _, _, _, high, _ in rows)
    room = 0.04 * (most - least)
    heads, title = ("Candidate", "Score", "95% interval", "Rank"), "Scores of the candidates, with 95% intervals"
    return draw_intervals(title, alt, heads, rows, (least - room, most + room), {"tickCount": 5}, "+.2f", ranks)


def draw_wins(ranking: Ranking) -> Chart:
    """The win probabilities of the candidates of the largest part, the best first."""
    places = [place for place in ranking.order.tolist() if ranking.part[place] == 0][:MOST_IN_HEAT]
    every = shorten_names(name_all(ranking.candidates))
    names = [every[place] for place in places]
    shares = ranking.win_matrix()[np.ix_(places, places)]
    alt = f"{names[0]} beats {names[1]} with probability {shares[0, 1]:.0%}, and {names[-1]} with {shares[0, -1]:.0%}."
    return draw_heat("Win probabilities", alt, names, names, shares, "Winner", "Against")


def draw_judges(ranking: Ranking) -> Chart | None:
    """The position bias of judges with its interval, and their discrimination; those with a remark come first."""
    if not ranking.has_workers or len(ranking.workers) < 2:
        return None
    names = name_all(ranking.workers)
    flagged = np.array([bool(remark) for remark in ranking.remarks])
    most = np.lexsort((-ranking.asked, ~flagged))[:MOST_JUDGES_DRAWN]
    rows = []
    for m in most[np.argsort(-ranking.bias[most], kind="stable")].tolist():
        bias, half = float(ranking.bias[m]), NORMAL_95 * float(ranking.bias_error[m])
        rows.append((names[m], bias, bias - half, bias + half, ranking.remarks[m].partition(";")[0]))
    which = "" if len(rows) == len(names) else f" {len(rows)} of them are shown."
    alt = f"{plural(len(names), 'judge')}, {int(flagged.sum())} of them with a remark.{which}"
    heads = ("Judge", "Position bias", "95% interval", "Discrimination")
    others = ranking.discrimination[[names.index(row[0]) for row in rows]].tolist()
    return draw_biases("Position bias and discrimination of the judges", alt, heads, rows, others)


# The charts that can be drawn one by one, by their names.
RANKING_CHARTS: dict[str, Callable[[Ranking], Chart | None]] = {
    "ranking": draw_ranking,
    "wins": draw_wins,
    "judges": draw_judges,
}
