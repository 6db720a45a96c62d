"""The accelerated loop: E-steps and seconds until the objective is within 1e-6 per answer of its end, with and without.

The end is where the objective gains less than 1e-9 per answer. Some crowds are real, others are simulated, with poor
workers, for whom EM is slow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import consilience as cs

# How near the end must be, the gain at which it is reached, both per answer, and the most E-steps.
NEAR, TOL, MOST = 1e-6, 1e-9, 5000
CROWDS = ("dog", "music", "product", "web")
# Lowest and highest accuracy of simulated workers, and answers per item.
SIMULATED = ((0.5, 0.8, 4), (0.4, 0.7, 3), (0.3, 0.5, 5))
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "given smoothing": {"smoothing": (0.1, 1.1)},
    "EM": {"estimation": "em"},
}


class Case(NamedTuple):
    """Answers to which a model is fitted, and the truth as far as it is known."""

    name: str
    model: Any
    responses: cs.Responses
    known: list[int]
    truth: list[Any]


class Run(NamedTuple):
    """What one fit took until its end was near."""

    n_steps: int
    seconds: float
    objective: float  # at the end, per answer
    accuracy: float  # of the labels at the end


def list_cases(quick: bool) -> Iterator[Case]:
    """Yield the fits to be compared: those of real crowds are there if their data are."""
    n_items = 300 if quick else 5_000
    for low, high, answers in SIMULATED:
        crowd = cs.simulate.independent(
            n_items, n_workers=50, n_classes=4, answers_per_item=answers, accuracy=(low, high), seed=1
        )
        for setting, options in SETTINGS.items():
            name = f"simulated, accuracies {low} to {high}, {answers} answers per item; {setting}"
            yield Case(name, cs.DawidSkene(**options), crowd.responses, list(range(n_items)), list(crowd.truth))
    if quick or not os.environ.get("CONSILIENCE_DATA"):
        return
    for data in CROWDS:
        for setting, options in SETTINGS.items():
            yield make_real_case(data, f"{data}; {setting}", cs.DawidSkene(**options))
    for workers in ("confusion", "sequential"):
        model = cs.HiddenMarkov(coupling=1.0, transitions="bio", estimation="em", workers=workers)
        yield make_real_case("ner", f"ner; chain of full coupling, {workers} workers, EM", model)


def make_real_case(data: str, name: str, model: Any) -> Case:
    """Return the fit of a model to a real crowd."""
    stored = cs.datasets.load(data)
    items = stored.responses.items.tolist()
    known = [i for i, item in enumerate(items) if item in stored.gold]
    return Case(name, model, stored.responses, known, [stored.gold[items[i]] for i in known])


def run(case: Case, acceleration: str | None) -> Run:
    """Fit until the end, and look back. A first short fit compiles what must be compiled."""
    told = list[tuple[float, float]]()
    model = case.model.fresh(acceleration=acceleration, calibration="none", tol=TOL, max_iter=MOST)
    model.fresh(tol=0, max_iter=4).fit(case.responses)
    model = model.fresh(callback=lambda progress: told.append((progress.objective, time.perf_counter())))
    started = time.perf_counter()
    model.fit(case.responses)
    end, n_responses = float(model.trace_[-1]), case.responses.n_responses
    n_steps, seconds = next(
        (n, moment - started) for n, (value, moment) in enumerate(told, 1) if value >= end - NEAR * n_responses
    )
    return Run(n_steps, seconds, end / n_responses, cs.metrics.accuracy(case.truth, model.labels_[case.known]))


def compare(cases: Iterator[Case]) -> str:
    """Return the table of all fits, without acceleration and with it."""
    lines = [
        "| fit | E-steps | accelerated | ratio | seconds | accelerated | ratio | objective at the end | accelerated "
        "| accuracy | accelerated |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        plain, fast = run(case, None), run(case, "squarem")
        lines.append(
            f"| {case.name} | {plain.n_steps} | {fast.n_steps} | {plain.n_steps / fast.n_steps:.1f}x "
            f"| {plain.seconds:.2f} | {fast.seconds:.2f} | {plain.seconds / fast.seconds:.1f}x "
            f"| {plain.objective:.5f} | {fast.objective:.5f} | {plain.accuracy:.3f} | {fast.accuracy:.3f} |"
        )
    return "\n".join(lines)


def report(quick: bool = False) -> str:
    """Return the table as Markdown."""
    parts = [
        "## Convergence: the accelerated loop",
        f"E-steps and seconds until the objective is within {NEAR:.0e} per answer of its end, without acceleration and "
        'with `acceleration="squarem"`. E-steps of leaps that were taken back count. The end is where the objective '
        f"gains less than {TOL:.0e} per answer; `tol=1e-5`, the default, stops long before. Where the ends differ, the "
        "fits have found different maxima.",
        compare(list_cases(quick)),
    ]
    return "\n\n".join(parts) + "\n"
