"""Other choices on real sequences: free transitions, decoding by position, and sequential workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consilience import HiddenMarkov, held_out_score

from .chain_coupling import SETS, score_labels
from .crowds import load_crowd, measure_sequences
from .drawing import draw_scores
from .experiment import Experiment, Job, Record, mean_of, sure_mean_of, values_of
from .markdown import join, make_list, make_paragraph, make_table, number, signed
from .methods import OURS, OURS_FREE, OURS_FREE_FULL, OURS_MARGINAL, OURS_SEQUENTIAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = ("ner", "ner_aligned", "pico", "sleep")
SEQUENTIAL_HALF, SEQUENTIAL_ZERO = (f"{OURS_SEQUENTIAL}, coupling {coupling:g}" for coupling in (0.5, 0))
# Settings of `HiddenMarkov`. The transitions of tags follow from their names unless `transitions` is among these.
CHOICES: dict[str, dict[str, Any]] = {
    OURS: {},
    OURS_MARGINAL: {"decode": "marginal"},
    OURS_FREE: {"transitions": "free"},
    OURS_FREE_FULL: {"transitions": "free", "coupling": 1.0},
    OURS_SEQUENTIAL: {"workers": "sequential", "coupling": 1.0},
    SEQUENTIAL_HALF: {"workers": "sequential", "coupling": 0.5},
    SEQUENTIAL_ZERO: {"workers": "sequential", "coupling": 0.0},
}
# Those that hidden answers are predicted with.
JUDGED = (OURS, OURS_FREE, OURS_SEQUENTIAL)
DRAWN = (OURS, OURS_MARGINAL, OURS_FREE, OURS_FREE_FULL, OURS_SEQUENTIAL)


def run_choices(data: str) -> list[Record]:
    """Score all choices on one set, and compare how well some of them predict hidden answers."""
    _, r, truth = load_crowd(data)
    known = truth != ""
    lengths = measure_sequences(r, known)
    records, hidden = [], {}
    for choice, settings in CHOICES.items():
        model = HiddenMarkov(**{"transitions": SETS[data].transitions, **settings})
        found = np.asarray(model.fit(r).labels_)[known]
        record: Record = {
            "data": data,
            "choice": choice,
            "f": score_labels(SETS[data].score, truth[known], found, lengths),
            "coupling": model.coupling_,
        }
        if choice in JUDGED:
            hidden[choice] = held_out_score(model, r)
            record["held_out"] = hidden[choice].score
            record["gain"], record["gain_error"] = hidden[choice].minus(hidden[OURS])
        records.append(record)
    return records


def draw_figure(records: list[Record]) -> Figure:
    """Draw the F of all choices but those of sequential workers with a weak chain, which are far below."""
    rows = {f"{SETS[data].name}, {SETS[data].score}": data for data in DATA}
    scores = {
        choice: {name: (mean_of(records, "f", data=data, choice=choice), None) for name, data in rows.items()}
        for choice in DRAWN
    }
    return draw_scores(list(rows), scores, "F-score")


def tell_scores(records: list[Record]) -> str:
    """Show the scores of all choices."""
    sets = values_of(records, "data")
    head = ["", *(f"{SETS[data].name}, {SETS[data].score}" for data in sets)]
    rows = [
        [choice, *(number(mean_of(records, "f", data=data, choice=choice), 4) for data in sets)] for choice in CHOICES
    ]
    gains = [
        [
            choice,
            *(
                f"{signed(mean_of(records, 'gain', data=data, choice=choice), 4)} ± "
                f"{number(mean_of(records, 'gain_error', data=data, choice=choice), 4)}"
                for data in sets
            ),
        ]
        for choice in JUDGED
        if choice != OURS
    ]
    names = """
        *consilience* is `HiddenMarkov()` with a learned coupling, and with `transitions="bio"` for tags. *Marginal* has
        `decode="marginal"`: the best class of each position instead of the best sequence. *Free* has
        `transitions="free"`. *Sequential workers* have `workers="sequential"`, and coupling 1 if no other is named."""
    return f"""
{make_paragraph(names)}

{make_table(head, rows)}

Gain in the mean log probability of a hidden answer, against *consilience*, with its standard error:

{make_table(["", *(SETS[data].name for data in sets)], gains)}
"""


def tell_findings(records: list[Record]) -> str:
    """Say where sequential workers help, what they need, and what hidden answers say about the choices."""
    f = {(data, choice): sure_mean_of(records, "f", data=data, choice=choice) for data in DATA for choice in CHOICES}
    better = [SETS[data].name for data in DATA if f[data, OURS_SEQUENTIAL] > f[data, OURS]]
    worse = [SETS[data].name for data in DATA if f[data, OURS_SEQUENTIAL] < f[data, OURS]]
    warned = [SETS[data].name for data in DATA if _significance(records, data) < -2]
    welcomed = [SETS[data].name for data in DATA if _significance(records, data) > 2]
    held_out = {choice: sure_mean_of(records, "held_out", data="ner", choice=choice) for choice in (OURS, OURS_FREE)}
    return make_list(
        [
            f"""Sequential workers with a full chain are better than plain ones on {join(better)}, and worse on
            {join(worse)}. By two standard errors, hidden answers advise against them on {join(warned)} and for them on
            {join(welcomed)}.""",
            f"""They need the chain: on named entities they have {number(f["ner", OURS_SEQUENTIAL])} with coupling 1,
            {number(f["ner", SEQUENTIAL_HALF])} with 0.5 and {number(f["ner", SEQUENTIAL_ZERO])} with 0."""
            if f["ner", OURS_SEQUENTIAL] > f["ner", SEQUENTIAL_HALF] > f["ner", SEQUENTIAL_ZERO]
            else "",
            f"""On named entities the rules of the tags lower the mean log probability of a hidden answer from
            {number(held_out[OURS_FREE], 4)} to {number(held_out[OURS], 4)}, since workers break the rules, and raise F
            from {number(f["ner", OURS_FREE])} to {number(f["ner", OURS])}."""
            if held_out[OURS] < held_out[OURS_FREE] and f["ner", OURS] > f["ner", OURS_FREE]
            else "",
        ]
    )


def _significance(records: list[Record], data: str) -> float:
    """Return what hidden answers gain by sequential workers, in standard errors."""
    gain, error = (sure_mean_of(records, name, data=data, choice=OURS_SEQUENTIAL) for name in ("gain", "gain_error"))
    return gain / error


EXPERIMENT = Experiment(
    name="sequence-choices",
    title="Real sequences: F-score with other transitions, workers and decoding",
    keys={"data": str, "choice": str},
    scores=("f", "coupling", "held_out", "gain", "gain_error"),
    jobs=[Job(run_choices, {"data": data}, data=(data,), quick=data in ("ner", "sleep")) for data in DATA],
    draw=draw_figure,
    tell=tell_scores,
    tell_findings=tell_findings,
    tolerance=0.005,
)
