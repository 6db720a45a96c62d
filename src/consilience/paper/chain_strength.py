"""How strongly to believe the chain: every strength on every real set of sequences, against no chain at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics import log_loss, macro_f1, span_f1
from ..models.dawid_skene import DawidSkene
from ..models.hidden_markov import COUPLINGS, HiddenMarkov
from ..models.majority_vote import MajorityVote
from .crowds import load_crowd
from .drawing import Curve, draw_gains
from .experiment import FINDINGS, Experiment, Job, Record, mean_of, pick, values_of
from .markdown import make_table, number
from .scoring import score_inside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VOTE, ALONE, LEARNED, FULL_AFTER = "majority vote", "DawidSkene()", "learned", "1, from DawidSkene()"
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
    _, r, truth = load_crowd(data)
    known = truth != ""
    assert r.sequences is not None
    lengths = np.bincount(r.sequences.of_items()[known])
    transitions = "free" if SETS[data][1] == "macro-F" else "bio"
    models: dict[str, Any] = {VOTE: MajorityVote(), ALONE: DawidSkene()}
    models |= {f"{strength:g}": HiddenMarkov(coupling=strength, transitions=transitions) for strength in COUPLINGS}
    # At full strength the votes can be a poor start; what DawidSkene found is a fair one.
    models[FULL_AFTER] = HiddenMarkov(coupling=1.0, transitions=transitions, start=models[ALONE])
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
    curves = {}
    for data in values_of(records, "data"):
        f = {record["model"]: record["f"] for record in pick(records, data=data)}
        gains = [f[f"{strength:g}"] - f[ALONE] for strength in COUPLINGS]
        learned = mean_of(records, "strength", data=data, model=LEARNED) or 0.0
        curves[SETS[data][0]] = Curve(COUPLINGS, gains, (learned, f[LEARNED] - f[ALONE]))
    labels = "chain strength (1: the hidden Markov model)", "F against DawidSkene(), in points"
    return draw_gains(curves, *labels, marked="learned")


def tell_findings(records: list[Record]) -> str:
    """Tell the scores by strength."""
    strengths = [f"{strength:g}" for strength in COUPLINGS]
    names = [VOTE, ALONE, *strengths, FULL_AFTER, LEARNED]
    sets = values_of(records, "data")
    f = {(record["data"], record["model"]): record["f"] for record in records}

    def call(name: str) -> str:
        return f"strength {name}" if name in (*strengths, FULL_AFTER, LEARNED) else name

    rows, losses = [], []
    for name in names:
        found = [pick(records, data=data, model=name)[0] for data in sets]
        at = [f" (at {record['strength']:g})" if record.get("strength") is not None else "" for record in found]
        cells = [number(record["f"], 4) + where for record, where in zip(found, at, strict=True)]
        rows.append([f"**{call(name)}**" if name == LEARNED else call(name), *cells])
        losses.append([call(name), *(number(record["log_loss"]) for record in found)])
    scores = [
        [call(name), *(number(pick(records, data=data, model=name)[0].get("held_out"), 4) for data in sets)]
        for name in strengths
    ]
    below = {name: [SETS[data][0] for data in sets if f[data, name] < f[data, ALONE]] for name in ("1", FULL_AFTER)}
    worst = max(f[data, ALONE] - f[data, LEARNED] for data in sets)
    short = ["", *(SETS[data][0] for data in sets)]
    return f"""
{make_table(["", *(f"{SETS[data][0]}, {SETS[data][1]}" for data in sets)], rows)}

Log loss against gold; low is good:

{make_table(short, losses)}

Mean log probability of hidden answers, from which the strength is chosen; high is good:

{make_table(short, scores)}

{FINDINGS}

- **The hidden Markov model of the paper, at full strength, is below independent Dawid-Skene on {len(below["1"])} of
  {len(sets)} real sets** when EM starts from the vote, and on {len(below[FULL_AFTER])} when it starts from what
  Dawid-Skene found. A worker's mistakes along a sequence are one decision, and the model takes them for many; on parts
  of speech most of the loss comes from the start.
- A chain whose strength is learned from hidden answers, without gold, is never more than {number(max(worst, 0.0), 4)}
  below no chain. Tags gain from the rules that their names carry, even at strength 0.
- Probabilities mostly get worse as the chain gets stronger: on four of the five no fit has a lower log loss than
  `DawidSkene()`. On sleep, whose six networks err together, vote shares are better still.
"""


EXPERIMENT = Experiment(
    name="chain-strength",
    title="Real sequences: F-score by the strength of the chain, against no chain",
    keys=("data", "model"),
    scores=("f", "log_loss", "strength", "held_out"),
    jobs=[Job(run_strengths, {"data": data}, data=(data,), quick=data in ("ner", "sleep")) for data in SETS],
    draw=draw_figure,
    tell=tell_findings,
    tolerance=0.005,
)
