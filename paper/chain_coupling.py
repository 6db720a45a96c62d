"""How strongly to believe the chain: every coupling on every real set of sequences, against no chain at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from consilience import DawidSkene, HiddenMarkov, MajorityVote
from consilience.metrics import log_loss
from consilience.metrics.labels import macro_f1, span_f1

from .crowds import load_crowd, measure_sequences
from .drawing import Curve, draw_gains
from .experiment import Experiment, Job, Record, mean_of, pick, sure_mean_of, values_of
from .markdown import join, make_list, make_table, number, signed
from .scoring import score_inside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VOTE, ALONE, LEARNED, FULL_AFTER = "majority vote", "DawidSkene()", "learned", "1, from DawidSkene()"
# Those that ``coupling="learn"`` chooses from.
COUPLINGS = (0.0, 0.1, 0.25, 0.5, 1.0)


class Set(NamedTuple):
    """What a dataset is called, how it is scored, and which transitions are allowed."""

    name: str
    score: str
    transitions: str


SETS = {
    "pos": Set("parts of speech", "macro-F", "free"),
    "ner": Set("named entities", "span F", "bio"),
    "ner_aligned": Set("named entities, aligned", "span F", "bio"),
    "pico": Set("populations in abstracts", "word F", "bio"),
    "sleep": Set("sleep stages", "macro-F", "free"),
}


def run_couplings(data: str) -> list[Record]:
    """Score majority vote, no chain, each coupling and the learned one."""
    _, r, truth = load_crowd(data)
    known, transitions = truth != "", SETS[data].transitions
    lengths = measure_sequences(r, known)
    models: dict[str, Any] = {VOTE: MajorityVote(), ALONE: DawidSkene()}
    models |= {f"{coupling:g}": HiddenMarkov(coupling=coupling, transitions=transitions) for coupling in COUPLINGS}
    # With a full chain the votes can be a poor start; what DawidSkene found is a better one.
    models[FULL_AFTER] = HiddenMarkov(coupling=1.0, transitions=transitions, start=models[ALONE])
    models[LEARNED] = HiddenMarkov(transitions=transitions)
    records: list[Record] = []
    for name, model in models.items():
        model.fit(r)
        found, posterior = np.asarray(model.labels_)[known], model.posterior_[known]
        record = {
            "data": data,
            "model": name,
            "f": score_labels(SETS[data].score, truth[known], found, lengths),
            "log_loss": log_loss(truth[known], posterior, model.classes_),
        }
        records.append(record)
        if name == LEARNED:
            record["coupling"] = model.coupling_
            for coupling, score, *_ in model.result_.course.coupling_scores:
                pick(records, model=f"{coupling:g}")[0]["held_out"] = score
    return records


def score_labels(kind: str, truth: Any, found: Any, lengths: Any) -> float:
    """Return the F of one kind; `lengths` are those of the sequences."""
    if kind == "span F":
        return span_f1(truth, found, lengths)
    return score_inside(truth, found).f if kind == "word F" else macro_f1(truth, found)


def draw_figure(records: list[Record]) -> Figure:
    """Draw F over the coupling, relative to no chain, with a mark at the learned coupling."""
    curves = {}
    for data in values_of(records, "data"):
        f = {record["model"]: record["f"] for record in pick(records, data=data)}
        gains = [f[f"{coupling:g}"] - f[ALONE] for coupling in COUPLINGS]
        learned = mean_of(records, "coupling", data=data, model=LEARNED) or 0.0
        curves[SETS[data].name] = Curve(COUPLINGS, gains, (learned, f[LEARNED] - f[ALONE]))
    labels = "coupling of the chain (1: the hidden Markov model)", "F against DawidSkene(), in points"
    return draw_gains(curves, *labels, marked="learned")


def tell_scores(records: list[Record]) -> str:
    """Show the scores at each coupling."""
    couplings = [f"{coupling:g}" for coupling in COUPLINGS]
    chains = [*couplings, FULL_AFTER, LEARNED]
    sets = values_of(records, "data")

    def call(name: str) -> str:
        return f"coupling {name}" if name in chains else name

    rows, losses = [], []
    for name in (VOTE, ALONE, *chains):
        found = [pick(records, data=data, model=name)[0] for data in sets]
        at = [f" (at {record['coupling']:g})" if record.get("coupling") is not None else "" for record in found]
        cells = [number(record["f"], 4) + where for record, where in zip(found, at, strict=True)]
        rows.append([f"**{call(name)}**" if name == LEARNED else call(name), *cells])
        losses.append([call(name), *(number(record["log_loss"]) for record in found)])
    scores = [
        [call(name), *(number(pick(records, data=data, model=name)[0].get("held_out"), 4) for data in sets)]
        for name in couplings
    ]
    short = ["", *(SETS[data].name for data in sets)]
    return f"""
{make_table(["", *(f"{SETS[data].name}, {SETS[data].score}" for data in sets)], rows)}

Log loss against gold (lower is better):

{make_table(short, losses)}

Mean log probability of hidden answers, from which the coupling is learned (higher is better):

{make_table(short, scores)}
"""


def tell_findings(records: list[Record]) -> str:
    """Say what a stronger chain does to labels and probabilities."""
    sets = values_of(records, "data")
    f = {(data, record["model"]): record["f"] for data in sets for record in pick(records, data=data)}
    below = {name: [data for data in sets if f[data, name] < f[data, ALONE]] for name in ("1", FULL_AFTER)}
    most_below = max(0.0, max(f[data, ALONE] - f[data, LEARNED] for data in sets))
    lost = f["pos", ALONE] - f["pos", "1"]
    share = (f["pos", FULL_AFTER] - f["pos", "1"]) / lost if lost > 0 else 0.0
    why_below = f"""
        Workers make one mistake about several neighbouring words, and the model takes it for several independent
        mistakes. On parts of speech {share:.0%} of the loss comes from the start."""
    rules = {SETS[data].name: f[data, "0"] - f[data, ALONE] for data in sets if SETS[data].transitions == "bio"}
    gains = join([f"{name} {signed(gain)}" for name, gain in rules.items()])
    loss = {(data, name): sure_mean_of(records, "log_loss", data=data, model=name) for data, name in f}
    chains = [*(f"{coupling:g}" for coupling in COUPLINGS), FULL_AFTER, LEARNED]
    no_better = [data for data in sets if min(loss[data, name] for name in chains) >= loss[data, ALONE]]
    votes = [SETS[data].name for data in sets if loss[data, VOTE] < loss[data, ALONE]]
    return make_list(
        [
            f"""**The hidden Markov model of the paper (coupling 1) is below independent Dawid-Skene on
            {len(below["1"])} of {len(sets)} real sets** if the fit starts from the vote, and on
            {len(below[FULL_AFTER])} if it starts from what Dawid-Skene found. {why_below if 0 < share < 1 else ""}""",
            f"""A chain whose coupling is learned from hidden answers, without gold, is never more than
            {number(most_below, 4)} below no chain.""",
            f"Forbidden transitions alone, at coupling 0, change the F of tags: {gains}.",
            f"""On {len(no_better)} of {len(sets)} sets no chain has a lower log loss than `DawidSkene()`. Vote
            shares have a lower one on {join(votes)}.""",
        ]
    )


EXPERIMENT = Experiment(
    name="chain-coupling",
    title="Real sequences: F-score by the coupling of the chain, against no chain",
    keys={"data": str, "model": str},
    scores=("f", "log_loss", "coupling", "held_out"),
    jobs=[Job(run_couplings, {"data": data}, data=(data,), quick=data in ("ner", "sleep")) for data in SETS],
    draw=draw_figure,
    tell=tell_scores,
    tell_findings=tell_findings,
    tolerance=0.005,
)
