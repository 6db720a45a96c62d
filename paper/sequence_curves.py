"""What the two experiments on simulated sequences share.

Sequences of 40 labels are drawn from one Markov chain with a random transition matrix and K = 4 classes. Of the M
workers floor(M / 2) + 1 are better than random; the others have random confusion matrices (section VI-A of the paper).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience import HiddenMarkov
from consilience.metrics.labels import macro_f1
from consilience.metrics.probabilities import confusion_error, transition_error
from consilience.simulate import sequences
from consilience.simulate.crowds import Simulation

from .drawing import Panel, draw_curves
from .experiment import Experiment, Job, Record, sure_mean_of
from .methods import ALG_2, ALG_2_1, LABELS, METHODS, MM, MV, MV_1, MV_1_SHORT, ORACLE, OURS, SINGLE_BEST
from .scoring import find_best_worker, score_per_sequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    best = find_best_worker(crowd.responses, crowd.truth)
    found = {SINGLE_BEST: best.said, ORACLE: crowd.oracle().labels}
    records = [{**case, "method": method, **score_labels(crowd, labels)} for method, labels in found.items()]
    for method in (MV, MM, ALG_2, ALG_2_1, MV_1, MV_1_SHORT, OURS):
        model = HiddenMarkov(**LABELS) if method == OURS else METHODS[method]()
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


def make_experiment(
    name: str,
    over: str,
    cases: Sequence[dict[str, int]],
    most_quick: int,
    tell: Callable[[list[Record]], str],
    tell_findings: Callable[[list[Record]], str],
) -> Experiment:
    """Return the experiment over the number of items or of workers. A quick run has two runs of up to `most_quick`."""

    def draw_figure(records: list[Record]) -> Figure:
        label = {"items": f"items N (sequences of {LENGTH})", "workers": "workers M"}[over]
        return draw_curves(records, over, label, PANELS, SHOWN)

    return Experiment(
        name=name,
        title=f"Simulated sequences: F-score and errors of confusion and transition matrices as {over} grow",
        keys={"items": int, "workers": int, "run": int, "method": str},
        scores=SCORES,
        jobs=[
            Job(run_methods, {**case, "run": run}, quick=run < 2 and case[over] <= most_quick)
            for case in cases
            for run in range(RUNS)
        ],
        draw=draw_figure,
        tell=tell,
        tell_findings=tell_findings,
        tolerance=0.005,
    )


def count_good(workers: int) -> int:
    """Return how many workers are better than random."""
    return workers // 2 + 1


def read_means(records: list[Record], over: str) -> Callable[..., float]:
    """Return a function that looks up the mean of a score at a size."""

    def mean_at(size: int, method: str, score: str = "f") -> float:
        return sure_mean_of(records, score, method=method, **{over: size})

    return mean_at
