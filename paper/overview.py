"""Both tables at a glance: what was printed, what was measured, why they differ, and our default."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import table_1, table_2
from .drawing import draw_scores
from .experiment import Experiment, Record, mean_of, sure_mean_of
from .markdown import make_list, make_paragraph, make_table, number, signed
from .methods import ALG_2, ALG_2_1, ALG_4, DS, MV, MV_1, MV_3, MV_DS, MV_FIRST, OURS, OURS_SEQUENTIAL, SINGLE_BEST
from .printed import TABLE_1, TABLE_2
from .reasons import REASONS, read_row
from .table_1 import IE, NER, POS, PROTOCOLS
from .table_2 import BUBIL, CITESEER, CORA, MUSIC, NEIGHBOURS, POLARITY, PUBMED, TIE_SEEDS, choose_neighbours

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Row(NamedTuple):
    """One row of the paper's tables: what F is taken of, which records belong to it, the printed F, and our model."""

    data: str
    score: str
    where: dict[str, str]
    printed: dict[str, float]
    model: str


_CITATIONS = {"graph": table_2.ROWS[CORA]}
ROWS = (
    Row(
        POS,
        "mean of sentences and classes",
        {"answers": "stored", "protocol": PROTOCOLS[POS][0]},
        TABLE_1[POS]["f"],
        "`HiddenMarkov()`",
    ),
    Row(
        NER,
        "strict spans",
        {"answers": "stored", "protocol": PROTOCOLS[NER][0]},
        TABLE_1[NER]["f"],
        '`HiddenMarkov(transitions="bio")`',
    ),
    Row(
        IE,
        "relaxed spans, 120 workers",
        {"answers": "120 workers", "protocol": PROTOCOLS[IE][0]},
        TABLE_1[IE]["f"],
        '`HiddenMarkov(transitions="bio")`',
    ),
    Row(CORA, "macro-F", _CITATIONS, TABLE_2[CORA], "`MarkovField()`"),
    Row(CITESEER, "macro-F", _CITATIONS, TABLE_2[CITESEER], "`MarkovField()`"),
    Row(PUBMED, "macro-F, **simulated answers**", _CITATIONS, TABLE_2[PUBMED], "`MarkovField()`"),
    Row(MUSIC, "macro-F", {"graph": table_2.ROWS[MUSIC]}, TABLE_2[MUSIC], "`MarkovField()`, {chosen} neighbours"),
    Row(
        POLARITY,
        "macro-F",
        {"graph": table_2.ROWS[POLARITY]},
        TABLE_2[POLARITY],
        "`MarkovField()`, {chosen} neighbours",
    ),
    Row(BUBIL, "macro-F", {"graph": table_2.ROWS[BUBIL]}, TABLE_2[BUBIL], "`MarkovField()`"),
)


class Line(NamedTuple):
    """The best printed method of a row with its printed and its measured F, and our model with its F."""

    row: Row
    best: str
    printed: float
    measured: float
    model: str
    ours: float


def sum_up(records: list[Record]) -> list[Line]:
    """Return a line for each row that was measured."""
    lines = []
    for row in ROWS:
        # The single best worker is chosen with gold, so it does not compete.
        printed = {method: f for method, f in row.printed.items() if method != SINGLE_BEST}
        best = max(printed, key=lambda method: printed[method])
        measured = mean_of(records, "f", data=row.data, method=best, **row.where)
        chosen = choose_neighbours(records, row.data) if row.data in table_2.METRIC else None
        ours_on = {"graph": f"{chosen} nearest"} if chosen else row.where
        ours = mean_of(records, "f", data=row.data, method=OURS, **ours_on)
        if measured is not None and ours is not None:
            lines.append(Line(row, best, printed[best], measured, row.model.format(chosen=chosen), ours))
    return lines


def draw_figure(records: list[Record]) -> Figure:
    """Draw, for each row, the best printed F, the same method measured, and ours."""
    lines = sum_up(records)
    scores: dict[str, dict[str, tuple[float | None, float | None]]] = {line.best: {} for line in lines}
    for line in lines:
        scores[line.best][line.row.data] = (line.measured, line.printed)
    scores[OURS] = {line.row.data: (line.ours, None) for line in lines}
    return draw_scores([line.row.data for line in lines], scores, "F-score")


def tell_scores(records: list[Record]) -> str:
    """Show both tables in one."""
    rows = [
        [
            f"**{line.row.data}**" + (", simulated answers" if line.row.data == PUBMED else ""),
            f"{line.best}: {number(line.printed)}",
            number(line.measured),
            signed(line.measured - line.printed),
            f"**{number(line.ours)}**",
            signed(line.ours - line.printed),
            signed(line.ours - line.measured),
        ]
        for line in sum_up(records)
    ]
    head = ["data", "best printed F", "measured", "difference", "ours", "against printed", "against measured"]
    return f"""
*MV* is majority vote, *DS* Dawid and Skene's EM, *Alg. 1* and *Alg. 2* are the paper's EM and moments for sequences,
*Alg. 3* is its EM for networks, *Alg. 4* the same started from moments. *Best printed* is the paper's best method and
its F (not counting the single best worker, who is chosen with gold). *Measured* is the same method here, *ours* the
model that `cs.fuse` chooses.

{make_table(head, rows)}
"""


def tell_findings(records: list[Record]) -> str:
    """Say why the numbers differ, and compare every method where the data are the same."""
    reasons = []
    for line in sum_up(records):
        why = REASONS[line.row.data](read_row(records, line.row.data, line.row.where))
        reasons.append(f"**{line.row.data}** ({line.row.score}; ours is {line.model}). {why}")
    sequential = mean_of(records, "f", data=NER, method=OURS_SEQUENTIAL, protocol=PROTOCOLS[NER][0])
    same = [
        [f"{data}, {name}", number(printed, 4), number(measured, 4), signed(measured - printed, 4), note]
        for data, name, printed, measured, note in compare_same_data(records)
    ]
    more = f"""
        With sequential workers and a full chain, `HiddenMarkov(transitions="bio", workers="sequential", coupling=1.0)`,
        NER comes to {number(sequential)}. For songs and sentences, the number of neighbours is the one with which
        hidden answers are predicted best, of {len(NEIGHBOURS)} between {NEIGHBOURS[0]} and {NEIGHBOURS[-1]}. Gold is
        not used."""
    return f"""
What F is taken of, and why the numbers differ:

{make_list(reasons)}

{make_paragraph(more)}

Every method where the data are the same:

{make_table(["", "printed", "measured", "difference", ""], same)}
"""


class Comparison(NamedTuple):
    """A printed F, and the F of the same method measured on the same data."""

    data: str
    name: str
    printed: float
    measured: float
    note: str


def compare_same_data(records: list[Record]) -> list[Comparison]:
    """Return the comparisons on data that are the paper's own."""
    spans = {"protocol": PROTOCOLS[NER][0]}
    songs, sentences = ({"graph": table_2.ROWS[data]} for data in (MUSIC, POLARITY))
    cases: list[tuple[str, str, str, str, dict[str, str]]] = [
        (NER, MV, MV, "ties at random", spans),
        (NER, DS, DS, "from moments", spans),
        (NER, DS, MV_DS, "from the vote", spans),
        *((NER, method, method, "", spans) for method in (ALG_2, ALG_2_1, MV_1)),
        (MUSIC, MV, MV_FIRST, "ties to the first", songs),
        (MUSIC, MV, MV, f"ties at random, {TIE_SEEDS} seeds", {"graph": "none"}),
        *((MUSIC, method, method, "", songs) for method in (DS, ALG_4, MV_3)),
        (POLARITY, MV, MV_FIRST, "ties to the first", sentences),
        (POLARITY, MV, MV, f"ties at random, {TIE_SEEDS} seeds", {"graph": "none"}),
        (POLARITY, DS, DS, "", sentences),
        *((POLARITY, method, method, "the graph is ours", sentences) for method in (ALG_4, MV_3)),
    ]
    found = []
    for data, name, method, note, where in cases:
        printed = TABLE_1[data]["f"][name] if data in TABLE_1 else TABLE_2[data][name]
        measured = sure_mean_of(records, "f", data=data, method=method, **where)
        found.append(Comparison(data, name, printed, measured, note))
    return found


EXPERIMENT = Experiment(
    name="overview",
    title="Both tables: the best printed F (hollow), the same method measured, and our default without gold",
    keys={"data": str, "answers": str, "graph": str, "run": int, "method": str, "protocol": str},
    scores=("recall", "f", "degree", "held_out"),
    # The jobs of both tables, whose records are in the cache by now.
    jobs=[*table_1.EXPERIMENT.jobs, *table_2.EXPERIMENT.jobs],
    draw=draw_figure,
    tell=tell_scores,
    tell_findings=tell_findings,
    tolerance=0.02,
)
