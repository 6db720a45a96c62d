"""Simulated sequences: what the two figures of them share.

Sequences of 40 labels are drawn from one Markov chain with a random transition matrix, K = 4 classes; floor(M / 2) + 1
of the M workers are better than random, the others have random confusion matrices (section VI-A of the paper).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics import confusion_error, macro_f1, transition_error
from ..models.hidden_markov import HiddenMarkov
from ..simulate import Simulation, sequences
from .drawing import Panel
from .experiment import Record
from .methods import ALG_2, ALG_2_1, METHODS, MM, MV, MV_1, MV_1_SHORT, ORACLE, OURS, SINGLE_BEST
from .scoring import find_best_worker, score_per_sequence

LENGTH, CLASSES, RUNS = 40, 4, 10
SHOWN = (SINGLE_BEST, MV, MM, ALG_2, ALG_2_1, MV_1, MV_1_SHORT, OURS, ORACLE)
SCORES = ("f", "f_per_sequence", "confusion_error", "transition_error", "coupling")
PANELS = (
    Panel("f", "F-score"),
    Panel("confusion_error", "Error of confusion matrices", log=True),
    Panel("transition_error", "Error of the transition matrix", log=True),
)


def run_methods(items: int, workers: int, run: int) -> list[Record]:
    """Return the scores of all methods on one simulated crowd."""
    crowd = sequences(items // LENGTH, length=LENGTH, n_workers=workers, n_classes=CLASSES, seed=run)
    transition = crowd.parameters.transition
    assert transition is not None
    case = {"items": items, "workers": workers, "run": run}
    _, own = find_best_worker(crowd.responses, crowd.truth)
    found = {SINGLE_BEST: crowd.responses.label[own], ORACLE: crowd.oracle().labels}
    records = [{**case, "method": method, **score_labels(crowd, labels)} for method, labels in found.items()]
    for method in (MV, MM, ALG_2, ALG_2_1, MV_1, MV_1_SHORT, OURS):
        model = HiddenMarkov() if method == OURS else METHODS[method]()
        model.fit(crowd.responses)
        scores = score_labels(crowd, model.labels_)
        if method != MV:
            scores["confusion_error"] = confusion_error(crowd.parameters.confusion, model.confusion_)
        if method not in (MV, MM):
            scores["transition_error"] = transition_error(transition, model.transition_)
            scores["coupling"] = model.coupling_
        records.append({**case, "method": method, **scores})
    return records


def score_labels(crowd: Simulation, labels: Any) -> Record:
    """Return F over all items, and averaged over sequences as in the paper."""
    lengths = np.full(len(crowd.truth) // LENGTH, LENGTH)
    per_sequence = score_per_sequence(crowd.truth, np.asarray(labels), lengths, CLASSES)
    return {"f": macro_f1(crowd.truth, labels), "f_per_sequence": per_sequence.f}
