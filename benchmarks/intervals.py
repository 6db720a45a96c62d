"""How often 95 % intervals contain the truth in simulated crowds.

Writes the tables of docs/probabilities.md, which are the same in every run. All situations are in a CSV file, and the
page has their means by group:

    python benchmarks/intervals.py            # three minutes
    python benchmarks/intervals.py --quick    # two situations and few seeds; prints, writes nothing
"""

from __future__ import annotations

import argparse
import csv
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
from consilience.results.intervals import informativeness

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "measured" / "coverage.md"
SITUATIONS_TABLE = TABLE.with_suffix(".csv")
HARD_TABLE = ROOT / "docs" / "measured" / "coverage-hard.md"

QUANTITIES = ("accuracy", "informativeness", "class shares", "expected accuracy", "alpha")
GOOD, WEAK = "good", "weak"


class Situation(NamedTuple):
    """A kind of crowd to draw, and the model to fit."""

    name: str
    draw: Callable[[int], cs.simulate.Simulation]  # takes the seed
    model: Callable[[], Any]
    n_seeds: int
    n_gold: int = 0  # known labels of random items


def accuracies(kind: str, n_classes: int) -> tuple[float, float]:
    """Return the range from which the accuracy of workers is drawn."""
    return (0.6, 0.95) if kind == GOOD else (1 / n_classes + 0.1, 0.75)


def shares(n_classes: int, seed: int) -> NDArray[np.float64]:
    """Return class shares, none of them very small."""
    drawn = np.maximum(np.random.default_rng([seed, n_classes]).dirichlet(np.full(n_classes, 5.0)), 0.08)
    return np.asarray(drawn / drawn.sum())


def independent(
    n_classes: int, n_workers: int, per_item: int, n_items: int, kind: str, n_seeds: int, **further: Any
) -> Situation:
    def draw(seed: int) -> cs.simulate.Simulation:
        workers = {"good": "all"} if kind == "uneven" else {"accuracy": accuracies(kind, n_classes)}
        return cs.simulate.independent(
            n_items,
            n_workers,
            n_classes,
            answers_per_item=min(per_item, n_workers),
            prior=shares(n_classes, seed),
            seed=seed,
            **workers,
            **further,
        )

    hard = ", hard items 0.1" if further.get("hard") else ""
    name = f"{n_classes} classes, {n_workers} workers, {per_item} per item, {n_items:,} items, {kind}{hard}"
    return Situation(name, draw, cs.DawidSkene, n_seeds)


def sequences(n_classes: int, n_sequences: int, kind: str, n_seeds: int, **further: Any) -> Situation:
    def draw(seed: int) -> cs.simulate.Simulation:
        return cs.simulate.sequences(
            n_sequences,
            (10, 30),
            10,
            n_classes,
            answers_per_item=4,
            accuracy=accuracies(kind, n_classes),
            stickiness=0.5,
            transition=np.random.default_rng([seed, n_classes]).dirichlet(np.full(n_classes, 3.0), n_classes),
            seed=seed,
            **further,
        )

    hard = ", hard items 0.1" if further.get("hard") else ""
    name = f"{n_sequences} sequences, {n_classes} classes, {kind}{hard}"
    return Situation(name, draw, lambda: cs.HiddenMarkov(coupling=1.0), n_seeds)


def network(n_classes: int, n_items: int, kind: str, n_seeds: int, **further: Any) -> Situation:
    def draw(seed: int) -> cs.simulate.Simulation:
        return cs.simulate.network(
            n_items,
            10,
            n_classes,
            answers_per_item=3,
            accuracy=accuracies(kind, n_classes),
            prior=shares(n_classes, seed),
            seed=seed,
            **further,
        )

    hard = ", hard items 0.1" if further.get("hard") else ""
    return Situation(f"network of {n_items:,} items, {n_classes} classes, {kind}{hard}", draw, cs.MarkovField, n_seeds)


SITUATIONS = [
    *(
        independent(n_classes, *sizes, kind, 40)
        for n_classes in (2, 3, 5)
        for sizes in (
            (5, 3, 100),
            (5, 5, 500),
            (20, 3, 500),
            (20, 5, 100),
            (20, 10, 500),
            (100, 3, 5000),
            (100, 5, 500),
        )
        for kind in (GOOD, WEAK)
    ),
    *(independent(n_classes, 20, 5, 500, "uneven", 40) for n_classes in (2, 3, 5)),
    *(sequences(n_classes, n, kind, 20) for n_classes, n in ((2, 30), (3, 100)) for kind in (GOOD, WEAK)),
    *(network(n_classes, n, kind, 20) for n_classes, n in ((2, 500), (3, 1000)) for kind in (GOOD, WEAK)),
]
HARD = [
    plain := independent(3, 20, 5, 500, GOOD, 40, hard=0.1),
    *(plain._replace(name=f"the same, {n} labels known", n_gold=n) for n in (50, 100)),
    sequences(3, 100, GOOD, 10, hard=0.1),
    network(3, 1000, GOOD, 10, hard=0.1),
]
QUICK = [independent(3, 20, 5, 100, GOOD, 3), independent(2, 5, 5, 500, WEAK, 3)]


class Truth(NamedTuple):
    """What intervals should contain."""

    accuracy: NDArray[np.float64]
    informativeness: NDArray[np.float64]
    shares: NDArray[np.float64]
    right: float
    alpha: float


def find_truth(crowd: cs.simulate.Simulation, labels: NDArray[Any]) -> Truth:
    """Return the truth behind a crowd. On hard items workers answer by the row of another class."""
    true = crowd.parameters
    n_classes = len(true.prior)
    seeming = (1 - true.hard) * np.eye(n_classes) + true.hard * (1 - np.eye(n_classes)) / max(n_classes - 1, 1)
    confusion = np.einsum("kj,mjl->mkl", seeming, true.confusion)
    return Truth(
        (np.diagonal(confusion, axis1=1, axis2=2) * true.prior).sum(axis=1),
        informativeness(confusion, true.prior),
        true.prior,
        float(np.mean(labels == crowd.truth)),
        find_alpha(true.prior @ seeming, true.confusion),
    )


def find_alpha(prior: NDArray[np.float64], confusion: NDArray[np.float64]) -> float:
    """Return alpha of all items that could be drawn, where any two workers meet equally often."""
    n_workers = len(confusion)
    pairs = confusion.sum(axis=0) ** 2 - (confusion**2).sum(axis=0)  # of different workers, twice: (K, L)
    observed = 1 - float(prior @ pairs.sum(axis=1)) / (n_workers * (n_workers - 1))
    answers = np.einsum("k,mkl->l", prior, confusion) / n_workers
    return 1 - observed / (1 - float(np.sum(answers**2)))


def measure(situation: Situation) -> NDArray[np.float64]:
    """Return the share of intervals that contain the truth, for each quantity, over all seeds."""
    return np.asarray(np.mean([measure_once(situation, seed) for seed in range(situation.n_seeds)], axis=0))


def measure_once(situation: Situation, seed: int) -> list[float]:
    crowd = situation.draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = situation.model()
        known = np.random.default_rng(seed).permutation(len(crowd.truth))[: situation.n_gold]
        gold = {int(item): int(crowd.truth[item]) for item in known} or None
        model.fit(crowd.responses, gold=gold, **({} if crowd.graph is None else {"graph": crowd.graph}))
    truth = find_truth(crowd, model.labels_)
    report = model.worker_report()
    alpha = cs.metrics.krippendorff_interval(crowd.responses)
    pairs = [
        *((report[f"{name}_low"], report[f"{name}_high"]) for name in ("accuracy", "informativeness")),
        (model.result_.intervals.prior[0], model.result_.intervals.prior[1]),
        (model.result_.expected_accuracy[1], model.result_.expected_accuracy[2]),
        (alpha.low, alpha.high),
    ]
    return [covered(np.asarray(low), np.asarray(high), true) for (low, high), true in zip(pairs, truth, strict=True)]


def covered(low: NDArray[np.float64], high: NDArray[np.float64], true: Any) -> float:
    """Return the share of intervals that contain the truth; of workers without answers nothing is known."""
    known = ~np.isnan(low)
    return float(np.mean(((low <= true + 1e-9) & (true - 1e-9 <= high))[known]))


def tabulate(rows: Iterable[tuple[str, NDArray[np.float64]]]) -> str:
    """Return coverage in percent as Markdown."""
    lines = [f"| | {' | '.join(QUANTITIES)} |", "|---|" + ":-:|" * len(QUANTITIES)]
    for name, found in rows:
        lines.append(f"| {name} | {' | '.join(f'{100 * share:.0f}' for share in found)} |")
    return "\n".join(lines)


def write_situations(rows: Iterable[tuple[str, NDArray[np.float64]]]) -> str:
    """Return coverage in percent as CSV, with one line for each situation."""
    lines = [f'"{name}",{",".join(f"{100 * share:.0f}" for share in found)}' for name, found in rows]
    return "\n".join([f"situation,{','.join(QUANTITIES)}", *lines])


def read_situations(text: str) -> dict[str, list[int]]:
    """Return what `write_situations` wrote, by the name of the situation."""
    return {name: [int(cell) for cell in cells] for name, *cells in list(csv.reader(text.splitlines()))[1:]}


def name_group(name: str) -> str:
    """Return the row of the page to which a situation belongs."""
    kind = name.rpartition(", ")[2]
    if kind == "uneven":
        return "20 workers, uneven"
    size = re.search(r"(\d+ workers|sequences|network)", name)
    assert size is not None
    return f"{size[1].replace('network', 'networks')}, {kind}"


def summarise(situations: Mapping[str, list[int]]) -> str:
    """Return the mean coverage of each group of situations as Markdown, with the lowest in brackets."""
    groups: dict[str, list[list[int]]] = {}
    for name, row in situations.items():
        groups.setdefault(name_group(name), []).append(row)
    groups["all"] = list(situations.values())
    lines = [f"| | {' | '.join(QUANTITIES)} |", "|---|" + ":-:|" * len(QUANTITIES)]
    for name, rows in groups.items():
        found = np.array(rows)
        cells = [f"{mean:.0f} ({least})" for mean, least in zip(found.mean(axis=0), found.min(axis=0), strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    measured = []
    for situation in QUICK if asked.quick else [*SITUATIONS, *HARD]:
        found = measure(situation)
        measured.append((situation.name, found))
        print(situation.name, *(f"{100 * share:.0f}" for share in found), flush=True)
    if asked.quick:
        return
    n_plain = len(SITUATIONS)
    situations = write_situations(measured[:n_plain])
    tables = {
        SITUATIONS_TABLE: situations,
        TABLE: summarise(read_situations(situations)),
        HARD_TABLE: tabulate(measured[n_plain:]),
    }
    for path, text in tables.items():
        path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
