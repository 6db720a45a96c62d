"""How strongly to believe the chain: every strength on every real set of sequences, against no chain at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import datasets
from ..metrics import calibration_error, log_loss, macro_f1, span_f1
from ..models.dawid_skene import DawidSkene
from ..models.hidden_markov import STRENGTHS, HiddenMarkov
from ..models.majority_vote import MajorityVote
from .drawing import FAINT, INK, RC
from .experiment import Experiment, Job, Record, mean_of, pick, values_of
from .markdown import make_table, number
from .scoring import score_inside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VOTE, ALONE, LEARNED = "majority vote", "DawidSkene()", "learned"
# Data: what it is called, and how it is scored.
SETS = {
    "pos": ("parts of speech", "macro-F"),
    "ner": ("named entities", "span F"),
    "ner_aligned": ("named entities, aligned", "span F"),
    "pico": ("populations in abstracts", "word F"),
    "sleep": ("sleep stages", "macro-F"),
}


def run_strengths(data: str) -> list[Record]:
    """Score majority vote, no chain, each strength and the learned one."""
    stored = datasets.load(data)
    assert stored.responses is not None
    r = stored.responses
    truth = np.array([stored.gold.get(key, "") for key in r.items.tolist()])
    known = truth != ""
    assert r.sequences is not None
    lengths = np.bincount(r.sequences.of_items()[known])
    transitions = "free" if SETS[data][1] == "macro-F" else "bio"
    models: dict[str, Any] = {VOTE: MajorityVote(), ALONE: DawidSkene()}
    models |= {f"{strength:g}": HiddenMarkov(coupling=strength, transitions=transitions) for strength in STRENGTHS}
    models[LEARNED] = HiddenMarkov(transitions=transitions)
    records: list[Record] = []
    for name, model in models.items():
        model.fit(r)
        found, posterior = np.asarray(model.labels_)[known], model.posterior_[known]
        record = {
            "data": data,
            "model": name,
            "f": _score(SETS[data][1], truth[known], found, lengths[lengths > 0]),
            "log_loss": log_loss(truth[known], posterior, model.classes_),
            "calibration_error": calibration_error(truth[known], posterior, model.classes_),
        }
        records.append(record)
        if name == LEARNED:
            record["strength"] = model.coupling_
            for entry in model.coupling_scores_:
                pick(records, model=f"{entry.strength:g}")[0]["held_out"] = entry.score
    return records


def _score(kind: str, truth: Any, found: Any, lengths: Any) -> float:
    if kind == "span F":
        return span_f1(truth, found, lengths)
    return score_inside(truth, found).f if kind == "word F" else macro_f1(truth, found)


def draw_figure(records: list[Record]) -> Figure:
    """Draw F over the strength, relative to no chain; the learned strength is marked."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC):
        figure = Figure(figsize=(7.2, 3.6))
        axis = figure.subplots()
        axis.axhline(0, color=FAINT, lw=1)
        colours = ("#c98a1b", "#dd5b1f", "#c05299", "#2f855a", "#1f5fa8")
        for data, colour in zip(values_of(records, "data"), colours, strict=False):
            here = pick(records, data=data)
            alone = mean_of(here, "f", model=ALONE) or 0.0
            gains = [100 * ((mean_of(here, "f", model=f"{strength:g}") or 0.0) - alone) for strength in STRENGTHS]
            axis.plot(STRENGTHS, gains, color=colour, marker="o", ms=3.5, lw=1.4, label=SETS[data][0])
            learned = mean_of(here, "strength", model=LEARNED) or 0.0
            gain = 100 * ((mean_of(here, "f", model=LEARNED) or 0.0) - alone)
            axis.scatter([learned], [gain], s=110, facecolors="none", edgecolors=colour, linewidths=1.5, zorder=3)
        axis.scatter([], [], s=110, facecolors="none", edgecolors=INK, linewidths=1.5, label="learned")
        axis.set(xlabel="chain strength (1: the hidden Markov model)", ylabel="F against DawidSkene(), in points")
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.tight_layout()
    return figure


def tell_findings(records: list[Record]) -> str:
    """Tell the scores by strength."""
    names = [VOTE, ALONE, *(f"{strength:g}" for strength in STRENGTHS), LEARNED]
    sets = values_of(records, "data")
    rows = []
    for name in names:
        label = f"strength {name}" if name[0].isdigit() else name
        cells = []
        for data in sets:
            here = pick(records, data=data, model=name)
            text = number(mean_of(here, "f"), 4)
            strength = mean_of(here, "strength")
            cells.append(text if strength is None else f"{text} (at {strength:g})")
        rows.append([{LEARNED: "**strength learned**"}.get(name, label), *cells])
    losses = [
        [
            f"strength {name}" if name[0].isdigit() else name,
            *(number(mean_of(pick(records, data=data, model=name), "log_loss")) for data in sets),
            *(number(mean_of(pick(records, data=data, model=name), "held_out"), 4) for data in sets),
        ]
        for name in names
    ]
    head = ["", *(f"{SETS[data][0]}, {SETS[data][1]}" for data in sets)]
    more = ["", *(f"{data}: log loss" for data in sets), *(f"{data}: hidden answers" for data in sets)]
    below = [
        SETS[data][0]
        for data in sets
        if (mean_of(records, "f", data=data, model="1") or 0) < (mean_of(records, "f", data=data, model=ALONE) or 0)
    ]
    worst = min(
        (mean_of(records, "f", data=data, model=LEARNED) or 0) - (mean_of(records, "f", data=data, model=ALONE) or 0)
        for data in sets
    )
    return f"""
{make_table(head, rows)}

**The hidden Markov model of the paper, at full strength, is below independent Dawid-Skene on {len(below)} of
{len(sets)} real sets** ({"; ".join(below)}): a worker's mistakes along a sequence are one decision, and the model takes
them for many. A chain whose strength is learned from hidden answers, without gold, is never more than
{number(max(-worst, 0), 4)} below no chain.

Log loss against gold (low is good), and mean log probability of hidden answers, from which the strength is chosen:

{make_table(more, losses)}
"""


EXPERIMENT = Experiment(
    name="chain-strength",
    title="Real sequences: F-score by the strength of the chain, against no chain",
    keys=("data", "model"),
    scores=("f", "log_loss", "calibration_error", "strength", "held_out"),
    jobs=[Job(run_strengths, {"data": data}, data=(data,), quick=data in ("ner", "sleep")) for data in SETS],
    draw=draw_figure,
    tell=tell_findings,
    tolerance=0.005,
)
