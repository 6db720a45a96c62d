"""The accelerated loop: E-steps and seconds until the objective gains less than 1e-6 per answer, with and without.

Real crowds by EM with a given smoothing and by the default settings, and simulated crowds of poor workers, for which EM
is slow. The accuracy of the labels tells whether running on has changed them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import consilience as cs

TOL, MOST = 1e-6, 5000
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
    """What one fit took."""

    n_iter: int
    seconds: float
    accuracy: float
    objective: float  # per answer


def list_cases(quick: bool) -> Iterator[Case]:
    """Yield the fits to be compared: those of real crowds are there if their data are."""
    n_items = 500 if quick else 20_000
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
    """Fit until the objective gains less than `TOL` per answer. A first short fit compiles what must be compiled."""
    model = case.model.fresh(acceleration=acceleration, calibration="none", tol=TOL, max_iter=MOST)
    model.fresh(tol=0, max_iter=4).fit(case.responses)
    started = time.perf_counter()
    model.fit(case.responses)
    seconds = time.perf_counter() - started
    accuracy = cs.metrics.accuracy(case.truth, model.labels_[case.known])
    return Run(model.n_iter_, seconds, accuracy, float(model.trace_[-1]) / case.responses.n_responses)


def compare(cases: Iterator[Case]) -> str:
    """Return the table of all fits, without acceleration and with it."""
    lines = [
        "| fit | E-steps | accelerated | ratio | seconds | accelerated | objective per answer | accelerated | accuracy "
        "| accelerated |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        plain, fast = run(case, None), run(case, "squarem")
        lines.append(
            f"| {case.name} | {plain.n_iter} | {fast.n_iter} | {plain.n_iter / max(fast.n_iter, 1):.1f}x "
            f"| {plain.seconds:.2f} | {fast.seconds:.2f} | {plain.objective:.5f} | {fast.objective:.5f} "
            f"| {plain.accuracy:.3f} | {fast.accuracy:.3f} |"
        )
    return "\n".join(lines)


def report(quick: bool = False) -> str:
    """Return the table as Markdown."""
    parts = [
        "## Convergence: the accelerated loop",
        f"Fits that go on until the objective gains less than {TOL:.0e} per answer, without acceleration and with "
        '`acceleration="squarem"`. An iteration is one E-step; those that were in vain are counted.',
        compare(list_cases(quick)),
    ]
    return "\n\n".join(parts) + "\n"
