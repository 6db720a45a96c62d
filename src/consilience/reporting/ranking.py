"""The page about a ranking: who is best, how sure that is, who beats whom, and how judges judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..answers.columns import to_values
from ..documents.charts import Chart, Dot, Plain, Table, draw_dots, draw_heat, draw_scores
from ..errors import plural
from ..rankings.bradley_terry import BradleyTerry
from ..rankings.fitting import WIDTH
from ..rankings.next_comparisons import list_next_comparisons
from ..rankings.ranking import Ranking
from ..results.findings import Finding
from .overview import Figure, Header, Verdict, spell_notes
from .subject import name_all, to_name

# The most candidates, pairs of candidates and judges that charts and tables show.
MOST_CANDIDATES, MOST_IN_HEAT, MOST_JUDGES, MOST_NEXT = 40, 10, 60, 10
# The most parts whose leaders are named.
MOST_PARTS = 3
# Longer names are cut in charts; the part in which they differ must not be.
WIDEST = 14


def describe_ranking(model: BradleyTerry) -> Header:
    """Return the first screen: who is best, and from how many verdicts."""
    found = model.found_
    numbers = found.numbers
    facts = [
        ("Candidates", f"{len(found.candidates):,}"),
        *([("Judges", f"{len(found.workers):,}")] if numbers.has_workers else []),
        ("Verdicts", f"{numbers.comparisons:,}"),
        *([("Items", f"{numbers.items:,}")] if numbers.items else []),
        *([("Families of judges", f"{numbers.groups:,}")] if numbers.groups else []),
        *([("Known verdicts", f"{numbers.known:,}")] if numbers.known else []),
        ("Model", type(model).__name__),
    ]
    return Header(judge(found), "", "", list_figures(found), facts)


def judge(found: Ranking) -> Verdict:
    """Return who is best, in one sentence, and what this rests on."""
    order, names = found.order, name_all(found.candidates)
    if found.numbers.ties >= found.numbers.weight:
        return Verdict("All verdicts are ties, so there is no order.")
    if found.kinds.two_camps:
        return Verdict("Judges are in two camps, and the verdicts do not tell which is right.")
    if found.n_parts > 1:
        return Verdict(*describe_parts(found, names))
    in_first = order[found.part[order] == 0]
    best, second = int(in_first[0]), int(in_first[1])
    close = [place for place in in_first[1:].tolist() if not found.win(best, place).told_apart]
    win = found.win(best, second)
    odds = f"It beats {names[second]} with probability {float(win):.2f} ({win.low:.2f} to {win.high:.2f})."
    if not close:
        return Verdict(f"{names[best]} is the best.", [odds])
    others = names[close[0]] if len(close) == 1 else f"{len(close)} others"
    return Verdict(f"{names[best]} comes first, and cannot be told apart from {others}.", [odds])


def describe_parts(found: Ranking, names: Sequence[str]) -> tuple[str, list[str]]:
    """Return that there is no best of all, and who leads each part; ones that cannot be told apart lead together."""
    order, leaders = found.order, []
    for part in range(min(found.n_parts, MOST_PARTS)):
        first, *others = order[found.part[order] == part].tolist()
        close = sum(not found.win(first, other).told_apart for other in others)
        sure = f", and cannot be told apart from {plural(close, 'other')}" if close else ""
        leaders.append(f"{names[first]} leads part {part + 1}{sure}.")
    lead = ["Candidates of different parts were never compared, not even through others."]
    if found.n_parts > MOST_PARTS:
        lead.append(f"These are the {MOST_PARTS} largest parts.")
    return f"No overall best: {plural(found.n_parts, 'part')}. {' '.join(leaders)}", lead


def list_figures(found: Ranking) -> list[Figure]:
    """Return the few numbers of the first screen."""
    numbers, n_pairs = found.numbers, len(found.candidates) - found.n_parts
    figures = [
        Figure("Neighbours told apart", f"{n_pairs - len(found.close):,} of {n_pairs:,}", "next in the ranking"),
        Figure("Ties", f"{numbers.ties / numbers.weight:.0%}", "of the verdicts"),
    ]
    if numbers.has_workers and len(found.workers) > 1:
        n_coins = int(found.kinds.coins.sum())
        figures.append(Figure("Toss coins", f"{n_coins:,}", f"of {plural(len(found.workers), 'judge')}"))
    return figures


def list_notes(model: BradleyTerry) -> list[Finding]:
    """Return what needs attention."""
    return spell_notes(model.findings_)


def describe_scores(model: BradleyTerry) -> Plain:
    """Return the ranking as a chart and a table."""
    found = model.found_
    names, tallies = name_all(found.candidates), found.tallies
    words = [
        "A score of 1 more wins 73% of the verdicts that are no tie, of an average judge: coin tossers and contrarians "
        "make scores smaller."
    ]
    if weight := found.counted_as:
        words.append(f"All verdicts count as {weight}.")
    if len(names) > MOST_CANDIDATES:
        words.append(f"These are the first {MOST_CANDIDATES} of {len(names):,}.")
    rows = [
        (names[place], str(found.rank[place]), spell_ranks(found, place), *(f"{each[place]:,.4g}" for each in tallies))
        for place in found.order[:MOST_CANDIDATES].tolist()
    ]
    columns = ("Candidate", "Rank", "95% interval", "Comparisons", "Wins", "Ties")
    return Plain(words, [draw_ranking(model)], [Table("Ranks, and what they rest on", rows, columns)])


def spell_ranks(found: Ranking, place: int) -> str:
    """Return the interval of a rank in words."""
    low, high = int(found.rank_low[place]), int(found.rank_high[place])
    return str(low) if low == high else f"{low} to {high}"


def shorten_names(names: Sequence[str]) -> list[str]:
    """Return names for a chart: without what all of them begin with, if one of them is long.

    >>> shorten_names(["stable-diffusion-a", "stable-diffusion-b"]), shorten_names(["a", "ab"])
    (['…a', '…b'], ['a', 'ab'])
    """
    first, last = min(names), max(names)
    shared = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    shared = next((n for n in range(shared, 0, -1) if not first[n - 1].isalnum()), 0)  # whole words
    if shared < 3 or max(map(len, names)) <= WIDEST:
        return list(names)
    return [f"…{name[shared:]}" if name[shared:] else name for name in names]


def draw_ranking(model: BradleyTerry) -> Chart:
    """Return the scores of the candidates, the best first."""
    found = model.found_
    names, error = shorten_names(name_all(found.candidates)), WIDTH * found.error
    places = found.order[:MOST_CANDIDATES].tolist()
    several = found.n_parts > 1
    rows = [
        (
            f"{names[place]} (part {found.part[place] + 1})" if several else names[place],
            float(found.score[place]),
            float(found.score[place] - error[place]),
            float(found.score[place] + error[place]),
            "",
        )
        for place in places
    ]
    ranks = [f"{found.rank[place]} ({spell_ranks(found, place)})" for place in places]
    best, worst = rows[0], rows[-1]
    alt = f"From {best[0]} with {best[1]:+.2f} to {worst[0]} with {worst[1]:+.2f}."
    return draw_scores("Scores of the candidates, with 95% intervals", alt, rows, ranks)


def describe_wins(model: BradleyTerry) -> Plain:
    """Return who beats whom."""
    words = ["The candidate of the row beats that of the column with this probability. A tie counts half."]
    n_largest = int(np.sum(model.found_.part == 0))
    if model.found_.n_parts > 1:
        words.append("The chart shows the largest part: nothing is known across parts.")
    if n_largest > MOST_IN_HEAT:
        words.append(f"These are the first {MOST_IN_HEAT} candidates.")
    names = name_all(model.found_.candidates)
    rows = [
        (f"{names[first]} and {names[second]}", f"{float(win):.2f}", f"{win.low:.2f} to {win.high:.2f}")
        for first, second, win in model.found_.close[:MOST_CANDIDATES]
    ]
    table = Table("Neighbours that cannot be told apart", rows, ("Pair", "First wins", "95% interval"))
    return Plain(words, [draw_wins(model)], [table] if rows else [])


def draw_wins(model: BradleyTerry) -> Chart:
    """Return the win probabilities of the candidates of the largest part, the best first."""
    found = model.found_
    places = [place for place in found.order.tolist() if found.part[place] == 0][:MOST_IN_HEAT]
    every = shorten_names(name_all(found.candidates))
    names = [every[place] for place in places]
    shares = found.win_matrix()[np.ix_(places, places)]
    alt = f"{names[0]} beats {names[1]} with probability {shares[0, 1]:.0%}, and {names[-1]} with {shares[0, -1]:.0%}."
    return draw_heat("Win probabilities", alt, names, names, shares, "Winner", "Against")


def describe_judges(model: BradleyTerry) -> Plain | None:
    """Return how judges judge, None if there is nobody to tell of."""
    found = model.found_
    chart = draw_judges(model)
    if chart is None:
        return None
    words = [
        "A discrimination of 1 is the mean of all judges, and 0 is that of a coin.",
        "A judge with a positive position bias prefers the first place.",
    ]
    if len(found.workers) > MOST_JUDGES:
        words.append(f"These are the {MOST_JUDGES} with most verdicts, of {len(found.workers):,}.")
    judges, names, remarks = found.judges, name_all(found.workers), found.remarks
    rows = [
        (
            names[place],
            f"{judges.comparisons[place]:,.4g}",
            spell_interval(judges.discrimination[place], judges.discrimination_error[place]),
            spell_interval(judges.bias[place], judges.bias_error[place]),
            "" if np.isnan(judges.agreement[place]) else f"{judges.agreement[place]:.0%}",
            f"{judges.ties[place]:.0%}",
            remarks[place],
        )
        for place in list_judges(found)
    ]
    columns = ("Judge", "Verdicts", "Discrimination", "Position bias", "Agreement", "Ties", "Remarks")
    return Plain(words, [chart], [Table("Judges, with 95% intervals", rows, columns)])


def spell_interval(value: float, error: float) -> str:
    """Return a figure with its interval.

    >>> spell_interval(1.0, 0.1)
    '1.00 (0.80 to 1.20)'
    """
    return f"{value:.2f} ({value - WIDTH * error:.2f} to {value + WIDTH * error:.2f})"


def list_judges(found: Ranking) -> Sequence[int]:
    """Return the judges that are shown, those with most verdicts first."""
    order = np.lexsort((np.arange(len(found.workers)), -found.judges.comparisons))
    places: list[int] = order[:MOST_JUDGES].tolist()
    return places


def draw_judges(model: BradleyTerry) -> Chart | None:
    """Return judges as dots: discrimination by position bias."""
    found = model.found_
    if not found.numbers.has_workers or len(found.workers) < 2:
        return None
    names, remarks, judges = name_all(found.workers), found.remarks, found.judges
    dots = [
        Dot(
            names[place],
            float(judges.bias[place]),
            float(judges.discrimination[place]),
            float(judges.comparisons[place]),
            remarks[place],
        )
        for place in list_judges(found)
    ]
    n_remarked = sum(bool(dot.remark) for dot in dots)
    alt = f"{plural(len(dots), 'judge')}, {n_remarked} of them with a remark."
    x, y = "Position bias", "Discrimination"
    return draw_dots("Judges: larger dots have more verdicts", alt, dots, x, y, "Verdicts")


def describe_next(model: BradleyTerry) -> Plain:
    """Return which comparisons would tell most."""
    columns = list_next_comparisons(model.found_, MOST_NEXT)
    named = [name for name in ("left", "right", "worker") if name in columns]
    rows = [
        tuple(to_name(str(value)) for value in row)
        for row in zip(*(to_values(columns[name]).tolist() for name in named), strict=True)
    ]
    heads = {"left": "First", "right": "Second", "worker": "Judge"}
    first, second, *who = rows[0]
    asked = f", and ask {who[0]}" if who else ""
    words = [
        f"Begin with {first} and {second}{asked}.",
        f"These {len(rows)} verdicts are expected to tell most about the order, one after the other.",
    ]
    return Plain(words, [], [Table("Comparisons to ask for", rows, [heads[name] for name in named])])
