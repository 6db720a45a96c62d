"""What the two experiments on simulated networks share.

A stochastic block model with K = 4 communities, which are the classes; nine of ten edges join nodes of one community.
All M = 10 workers are better than random (section VI-B of the paper, which does not say how strong its communities
are).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from consilience import MarkovField
from consilience.metrics.labels import macro_f1
from consilience.metrics.probabilities import confusion_error
from consilience.simulate import network

from .drawing import Panel, draw_curves
from .experiment import Experiment, Job, Record, mean_of, sure_mean_of, values_of
from .markdown import make_paragraph, make_table, number
from .methods import ALG_4, DS, LABELS, METHODS, MM, MV, MV_3, MV_3_SHORT, ORACLE, OURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITEMS = (200, 400, 1_000, 4_000, 10_000, 40_000, 100_000)
WORKERS, CLASSES, RUNS, HOMOPHILY = 10, 4, 10, 0.9
SHOWN = (MV, MM, DS, ALG_4, MV_3, MV_3_SHORT, OURS, ORACLE)
PANELS = (Panel("f", "F-score"), Panel("confusion_error", "Error of confusion matrices", log=True))


def run_methods(items: int, degree: float, run: int) -> list[Record]:
    """Return the scores of all methods on one simulated network."""
    crowd = network(items, WORKERS, CLASSES, degree=degree, homophily=HOMOPHILY, seed=run)
    case = {"items": items, "degree": degree, "run": run}
    records: list[Record] = [{**case, "method": ORACLE, "f": macro_f1(crowd.truth, crowd.oracle().labels)}]
    for method in (MV, MM, DS, ALG_4, MV_3, MV_3_SHORT, OURS):
        model = MarkovField(**LABELS) if method == OURS else METHODS[method]()
        model.fit(crowd.responses, graph=crowd.graph if isinstance(model, MarkovField) else None)
        record = {**case, "method": method, "f": macro_f1(crowd.truth, model.labels_)}
        if method != MV:
            record["confusion_error"] = confusion_error(crowd.parameters.confusion, model.confusion_)
        if isinstance(model, MarkovField):
            record["coupling"] = model.coupling_
        records.append(record)
    return records


def make_experiment(name: str, degree: float, tell_findings: Callable[[list[Record]], str]) -> Experiment:
    """Return the experiment at one average degree."""
    return Experiment(
        name=name,
        title=f"Simulated networks of average degree {degree:g}: F-score and error of confusion matrices as items grow",
        keys={"items": int, "degree": float, "run": int, "method": str},
        scores=("f", "confusion_error", "coupling"),
        jobs=[
            Job(run_methods, {"items": items, "degree": degree, "run": run}, quick=run < 2 and items <= 4_000)
            for items in ITEMS
            for run in range(RUNS)
        ],
        draw=draw_figure,
        tell=tell_scores,
        tell_findings=tell_findings,
        tolerance=0.005,
    )


def draw_figure(records: list[Record]) -> Figure:
    """Draw the scores over the number of items."""
    return draw_curves(records, "items", "items N", PANELS, SHOWN)


def tell_scores(records: list[Record]) -> str:
    """Show the scores and errors at each size."""
    sizes, degree = values_of(records, "items"), records[0]["degree"]
    told = [method for method in SHOWN if method != MV_3_SHORT]
    rows = [
        [
            f"{size:,}",
            *(number(mean_of(records, "f", items=size, method=method)) for method in told),
            *(number(mean_of(records, "confusion_error", items=size, method=method)) for method in (MM, ALG_4, OURS)),
        ]
        for size in sizes
    ]
    setting = f"""
        K = {CLASSES} classes, M = {WORKERS} workers, all better than random, average degree {degree:g},
        {HOMOPHILY:.0%} of the edges within a class, mean over {len(values_of(records, "run"))} runs."""
    return f"""
{make_paragraph(setting)}

{make_table(["N", *told, f"Γ error: {MM}", ALG_4, OURS], rows)}
"""


def read_curves(records: list[Record]) -> Callable[..., list[float]]:
    """Return a function that looks up the mean of a score at each size."""
    sizes = values_of(records, "items")

    def means_of(method: str, score: str = "f") -> list[float]:
        return [sure_mean_of(records, score, items=size, method=method) for size in sizes]

    return means_of
