"""The other sets of the catalogue: majority vote, Dawid-Skene, our default, and what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics import accuracy, macro_f1, span_f1
from ..models.dawid_skene import DawidSkene
from ..models.hidden_markov import HiddenMarkov
from .crowds import load_crowd
from .drawing import draw_scores
from .experiment import Experiment, Job, Record, mean_of
from .markdown import make_table, number
from .methods import METHODS, MV, MV_DS, OURS, OURS_ALONE, OURS_SEQUENTIAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Data: how it is scored, and on which split (None: all).
SETS: dict[str, tuple[str, str | None]] = {
    "bluebird": ("accuracy", None),
    "rte": ("accuracy", None),
    "dog": ("accuracy", None),
    "web": ("accuracy", None),
    "product": ("accuracy", None),
    "llm_judges": ("accuracy", None),
    "ner_aligned": ("span F", "test"),
    "sleep": ("macro-F", None),
    "bc5cdr": ("span F", None),
}
# EBCC: best of 40 starts, from the authors' code and its recorded output; Simpson and Gurevych: their Table 2, priors
# tuned on gold of a development set, with and without the words.
_EBCC = "EBCC {} (Li, Rubinstein and Cohn, 2019)"
PUBLISHED = {
    "bluebird": _EBCC.format(".861"),
    "rte": _EBCC.format(".931"),
    "dog": _EBCC.format(".840"),
    "web": _EBCC.format(".769"),
    "product": _EBCC.format(".935"),
    "llm_judges": "none found",
    "ner_aligned": (
        "MV .654, DS .744, IBCC .744, BSC-seq .774, without words .763 (Simpson and Gurevych, 2019; priors tuned on "
        "gold)"
    ),
    "sleep": "none of this ensemble",
    "bc5cdr": "none that could be checked",
}


def run_set(data: str) -> list[Record]:
    """Score majority vote, Dawid-Skene and our models on one set."""
    (stored, r, truth), (kind, split) = load_crowd(data), SETS[data]
    models: dict[str, Any] = {MV: METHODS[MV](), MV_DS: METHODS[MV_DS]()}
    if r.sequences is None:
        models[OURS] = DawidSkene()
    else:
        tags: dict[str, Any] = {"transitions": "bio"} if kind == "span F" else {}
        models |= {OURS_ALONE: DawidSkene(), OURS: HiddenMarkov(**tags)}
        if kind == "span F" and not r.silence_counts:
            models[OURS_SEQUENTIAL] = HiddenMarkov(workers="sequential", coupling=1.0, **tags)
    chosen = truth != ""
    if split is not None and stored.splits is not None:
        chosen &= np.array([stored.splits.get(key) == split for key in r.items.tolist()])
    records = []
    for method, model in models.items():
        found = np.asarray(model.fit(r).labels_)[chosen]
        record: Record = {"data": data, "method": method, "score": _score(kind, r, chosen, truth[chosen], found)}
        if isinstance(model, HiddenMarkov):
            record["strength"] = model.coupling_
        records.append(record)
    return records


def _score(kind: str, r: Any, chosen: Any, truth: Any, found: Any) -> float:
    if kind == "span F":
        lengths = np.bincount(r.sequences.of_items()[chosen])
        return span_f1(truth, found, lengths[lengths > 0])
    return accuracy(truth, found) if kind == "accuracy" else macro_f1(truth, found)


SHOWN = (MV, MV_DS, OURS_ALONE, OURS, OURS_SEQUENTIAL)


def draw_figure(records: list[Record]) -> Figure:
    """Draw the scores of all methods."""
    rows = {f"{data}, {kind}": data for data, (kind, _) in SETS.items()}
    scores = {
        method: {name: (mean_of(records, "score", data=data, method=method), None) for name, data in rows.items()}
        for method in SHOWN
    }
    return draw_scores(list(rows), scores, "score")


def tell_findings(records: list[Record]) -> str:
    """Tell the scores beside what was published."""
    rows = []
    for data, (kind, split) in SETS.items():
        cells = []
        for method in SHOWN:
            text = number(mean_of(records, "score", data=data, method=method), 4)
            strength = mean_of(records, "strength", data=data, method=method)
            cells.append(text if strength is None or method != OURS else f"{text} (chain {strength:g})")
        rows.append([f"{data}, {kind}" + (f", {split} part" if split else ""), *cells, PUBLISHED[data]])
    return make_table(["data, score", *SHOWN, "published"], rows)


EXPERIMENT = Experiment(
    name="other-sets",
    title="The other sets: majority vote, Dawid-Skene by EM, and our defaults",
    keys=("data", "method"),
    scores=("score", "strength"),
    jobs=[Job(run_set, {"data": data}, data=(data,), quick=data not in ("ner_aligned", "bc5cdr")) for data in SETS],
    draw=draw_figure,
    tell=tell_findings,
    tolerance=0.005,
)
