"""The page about a ranking: who is best, how sure that is, who beats whom, and how judges judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..answers.columns import to_values
from ..documents.charts import Chart, draw_dots, draw_heat, draw_scores
from ..documents.document import (
    Column,
    Columns,
    Document,
    Fact,
    Facts,
    Findings,
    Fold,
    Part,
    Section,
    Table,
    Text,
    to_name,
)
from ..documents.view import name_all
from ..errors import plural
from .fitting import WIDTH
from .next_comparisons import list_next_comparisons
from .ranking import Ranking

# The most candidates, pairs of candidates and judges that charts and tables show.
MOST_CANDIDATES, MOST_IN_HEAT, MOST_JUDGES, MOST_NEXT = 40, 10, 60, 10
# The most parts whose leaders are named.
MOST_PARTS = 3
# Longer names are cut in charts; the part in which they differ must not be.
WIDEST = 14


def describe_page(model: Any, title: str = "Ranking") -> Document:
    """The page about a fitted `BradleyTerry`."""
    found: Ranking = model.found_
    numbers, n_pairs = found.numbers, len(found.candidates) - found.n_parts
    facts = [
        Fact("candidates", "Candidates", len(found.candidates), format="count"),
        Fact("judges", "Judges" if numbers.has_workers else "", len(found.workers), format="count"),
        Fact("comparisons", "Verdicts", numbers.comparisons, format="count"),
        Fact("items", "Items" if numbers.items else "", numbers.items, format="count"),
        Fact("groups", "Families of judges" if numbers.groups else "", numbers.groups, format="count"),
        Fact("known", "Known verdicts" if numbers.known else "", numbers.known, format="count"),
        Fact("model", "Model", type(model).__name__),
    ]
    n_sure, ties = n_pairs - len(found.close), numbers.ties / numbers.weight
    figures = [
        Fact("resolved", "Neighbours told apart", n_sure, f"{n_sure:,} of {n_pairs:,}", detail="next in the ranking"),
        Fact("ties", "Ties", ties, format="share", detail="of the verdicts"),
    ]
    if numbers.has_workers and len(found.workers) > 1:
        n_coins, judges = int(found.kinds.coins.sum()), plural(len(found.workers), "judge")
        figures.append(Fact("coins", "Toss coins", n_coins, format="count", detail=f"of {judges}"))
    headline, *lead = judge(found)
    notes: list[Part] = [Findings(model.findings_)] if model.findings_ else [Text(["Nothing stands out."])]
    sections = [
        Section("attention", "What needs attention", "Attention", notes),
        Section("ranking", "Ranking", "Ranking", list_scores(found), "See the ranking"),
        Section("wins", "Who beats whom", "Who beats whom", list_wins(found), "See who beats whom"),
        Section("judges", "Judges", "Judges", list_judges(found), "See the judges"),
        Section("next", "What to compare next", "Next", list_next(found), "See what to compare next"),
    ]
    parts: list[Part] = [Facts(facts), *([Text(lead)] if lead else []), Facts(figures, "figures")]
    return Document(title, headline, [*parts, *(each for each in sections if each.parts)])


def judge(found: Ranking) -> list[str]:
    """Who is best, in one sentence, and what this rests on."""
    order, names = found.order, name_all(found.candidates)
    if found.numbers.ties >= found.numbers.weight:
        return ["All verdicts are ties, so there is no order."]
    if found.kinds.two_camps:
        return ["Judges are in two camps, and the verdicts do not tell which is right."]
    leaders = []
    for part in range(min(found.n_parts, MOST_PARTS)):
        best, *others = order[found.part[order] == part].tolist()
        close = [other for other in others if not found.win(best, other).told_apart]
        sure = f", and cannot be told apart from {plural(len(close), 'other')}" if close else ""
        leaders.append(f"{names[best]} leads part {part + 1}{sure}.")
    if found.n_parts > 1:
        # Ones that cannot be told apart lead together.
        headline = f"No overall best: {plural(found.n_parts, 'part')}. {' '.join(leaders)}"
        rest = [f"These are the {MOST_PARTS} largest parts."] if found.n_parts > MOST_PARTS else []
        return [headline, "Candidates of different parts were never compared, not even through others.", *rest]
    win = found.win(best, others[0])
    odds = f"It beats {names[others[0]]} with probability {float(win):.2f} ({win.low:.2f} to {win.high:.2f})."
    if not close:
        return [f"{names[best]} is the best.", odds]
    rivals = names[close[0]] if len(close) == 1 else f"{len(close)} others"
    return [f"{names[best]} comes first, and cannot be told apart from {rivals}.", odds]


def list_scores(found: Ranking) -> list[Part]:
    """The ranking as a chart and a table."""
    names, tallies = name_all(found.candidates), found.tallies
    words = [
        "A score of 1 more wins 73% of the verdicts that are no tie, of an average judge: coin tossers and contrarians "
        "make scores smaller."
    ]
    words += [f"All verdicts count as {found.counted_as}."] if found.counted_as else []
    words += [f"These are the first {MOST_CANDIDATES} of {len(names):,}."] if len(names) > MOST_CANDIDATES else []
    rows = [
        (names[place], int(found.rank[place]), spell_ranks(found, place), *(f"{each[place]:,.4g}" for each in tallies))
        for place in found.order[:MOST_CANDIDATES].tolist()
    ]
    columns = [Column("candidate", "Candidate"), Column("rank", "Rank", "count")]
    columns += [Column("rank_interval", "95% interval", "spelled")]
    columns += [Column(name.lower(), name, "spelled") for name in ("Comparisons", "Wins", "Ties")]
    table = Table("ranking", "Ranks, and what they rest on", columns, rows)
    return [Text(words), Columns([[draw_ranking(found)]]), Fold("In detail", [table])]


def spell_ranks(found: Ranking, place: int) -> str:
    """The interval of a rank in words."""
    low, high = int(found.rank_low[place]), int(found.rank_high[place])
    return str(low) if low == high else f"{low} to {high}"


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


def draw_ranking(found: Ranking) -> Chart:
    """The scores of the candidates, the best first."""
    names, error, rows = shorten_names(name_all(found.candidates)), WIDTH * found.error, []
    places = found.order[:MOST_CANDIDATES].tolist()
    for place in places:
        score, half = float(found.score[place]), float(error[place])
        name = f"{names[place]} (part {found.part[place] + 1})" if found.n_parts > 1 else names[place]
        rows.append((name, score, score - half, score + half, ""))
    ranks = [f"{found.rank[place]} ({spell_ranks(found, place)})" for place in places]
    alt = f"From {rows[0][0]} with {rows[0][1]:+.2f} to {rows[-1][0]} with {rows[-1][1]:+.2f}."
    return draw_scores("Scores of the candidates, with 95% intervals", alt, rows, ranks)


def list_wins(found: Ranking) -> list[Part]:
    """Who beats whom."""
    words = ["The candidate of the row beats that of the column with this probability. A tie counts half."]
    words += ["The chart shows the largest part: nothing is known across parts."] if found.n_parts > 1 else []
    n_largest = int(np.sum(found.part == 0))
    words += [f"These are the first {MOST_IN_HEAT} candidates."] if n_largest > MOST_IN_HEAT else []
    names = name_all(found.candidates)
    rows = [
        (f"{names[first]} and {names[second]}", float(win), f"{win.low:.2f} to {win.high:.2f}")
        for first, second, win in found.close[:MOST_CANDIDATES]
    ]
    columns = [Column("pair", "Pair"), Column("first_wins", "First wins", "number")]
    columns.append(Column("interval", "95% interval", "spelled"))
    table = Table("close", "Neighbours that cannot be told apart", columns, rows)
    return [Text(words), Columns([[draw_wins(found)]]), *([Fold("In detail", [table])] if rows else [])]


def draw_wins(found: Ranking) -> Chart:
    """The win probabilities of the candidates of the largest part, the best first."""
    places = [place for place in found.order.tolist() if found.part[place] == 0][:MOST_IN_HEAT]
    every = shorten_names(name_all(found.candidates))
    names = [every[place] for place in places]
    shares = found.win_matrix()[np.ix_(places, places)]
    alt = f"{names[0]} beats {names[1]} with probability {shares[0, 1]:.0%}, and {names[-1]} with {shares[0, -1]:.0%}."
    return draw_heat("Win probabilities", alt, names, names, shares, "Winner", "Against")


def list_judges(found: Ranking) -> list[Part]:
    """How judges judge; nothing if there is only one."""
    chart = draw_judges(found)
    if chart is None:
        return []
    words = [
        "A discrimination of 1 is the mean of all judges, and 0 is that of a coin.",
        "A judge with a positive position bias prefers the first place.",
    ]
    n_judges = len(found.workers)
    words += [f"These are the {MOST_JUDGES} with most verdicts, of {n_judges:,}."] if n_judges > MOST_JUDGES else []
    judges, names, rows = found.judges, name_all(found.workers), []
    for place in choose_judges(found):
        ends = [
            f"{value:.2f} ({value - WIDTH * error:.2f} to {value + WIDTH * error:.2f})"
            for value, error in (
                (judges.discrimination[place], judges.discrimination_error[place]),
                (judges.bias[place], judges.bias_error[place]),
            )
        ]
        shares = float(judges.agreement[place]), float(judges.ties[place])
        rows.append((names[place], f"{judges.comparisons[place]:,.4g}", *ends, *shares, found.remarks[place]))
    columns = [Column("worker", "Judge"), Column("comparisons", "Verdicts", "spelled")]
    columns += [Column("discrimination", "Discrimination", "spelled"), Column("bias", "Position bias", "spelled")]
    columns += [
        Column("agreement", "Agreement", "share"),
        Column("ties", "Ties", "share"),
        Column("remarks", "Remarks"),
    ]
    return [
        Text(words),
        Columns([[chart]]),
        Fold("In detail", [Table("judges", "Judges, with 95% intervals", columns, rows)]),
    ]


def choose_judges(found: Ranking) -> Sequence[int]:
    """The judges that are shown, those with most verdicts first."""
    order = np.lexsort((np.arange(len(found.workers)), -found.judges.comparisons))
    places: list[int] = order[:MOST_JUDGES].tolist()
    return places


def draw_judges(found: Ranking) -> Chart | None:
    """Judges as dots: discrimination by position bias."""
    if not found.numbers.has_workers or len(found.workers) < 2:
        return None
    names, remarks, judges = name_all(found.workers), found.remarks, found.judges
    dots = [
        (
            names[place],
            float(judges.bias[place]),
            float(judges.discrimination[place]),
            float(judges.comparisons[place]),
            remarks[place],
        )
        for place in choose_judges(found)
    ]
    alt = f"{plural(len(dots), 'judge')}, {sum(bool(remark) for *_, remark in dots)} of them with a remark."
    title, x, y = "Judges: larger dots have more verdicts", "Position bias", "Discrimination"
    return draw_dots(title, alt, dots, x, y, "Verdicts")


def list_next(found: Ranking) -> list[Part]:
    """Which comparisons would tell most."""
    columns = list_next_comparisons(found, MOST_NEXT)
    heads = {"left": "First", "right": "Second", "worker": "Judge"}
    shown = [Column(key, head) for key, head in heads.items() if key in columns]
    rows = [
        tuple(to_name(str(value)) for value in row)
        for row in zip(*(to_values(columns[each.key]).tolist() for each in shown), strict=True)
    ]
    first, second, *who = rows[0]
    asked = f", and ask {who[0]}" if who else ""
    words = [
        f"Begin with {first} and {second}{asked}.",
        f"These {len(rows)} verdicts are expected to tell most about the order, one after the other.",
    ]
    return [Text(words), Fold("In detail", [Table("next", "Comparisons to ask for", shown, rows)])]


# The charts that can be drawn one by one, by their names.
RANKING_CHARTS: dict[str, Callable[[Ranking], Chart | None]] = {
    "ranking": draw_ranking,
    "wins": draw_wins,
    "judges": draw_judges,
}
