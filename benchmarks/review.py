"""What a review of few items brings, and how many of the labels that are not left open are wrong, on real crowds.

A person labels 50 items (30 of a crowd with fewer than 250) in five rounds, and the model is fitted again after each.
Known labels play the person. Items without a known label are passed over. Accuracy is over all items with a known
label; those that were labelled are right. Compared are items of the highest entropy, `next_items`, which draws two of
ten at random, and random ones alone. The second table compares how many labels of enough confidence are expected to be
wrong, and how many are; with known labels of random items, the others are judged. Writes two tables of
docs/evidence.md, which are the same in every run:

    python benchmarks/review.py            # some minutes; needs the real data ($CONSILIENCE_DATA)
    python benchmarks/review.py --quick    # one crowd and one seed; prints, writes nothing
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
import real_crowds
from consilience.planning.items import find_entropy

MEASURED = Path(__file__).parent.parent / "docs" / "measured"
TABLE, UNDECIDED = MEASURED / "review.md", MEASURED / "undecided.md"
CONFIDENCES = (0.9,)
CROWDS = ("bluebird", "rte", "dog", "web", "product", "llm_judges", "sentence_polarity", "music")
N_ROUNDS, N_LABELS, N_FEW, SMALL = 5, 50, 30, 250
N_SEEDS = 5


class Crowd(NamedTuple):
    """The answers of a crowd, and the known label of each item, None where there is none."""

    responses: cs.Answers
    truth: NDArray[Any]

    @property
    def has_truth(self) -> NDArray[np.bool_]:
        """Whether the label of each item is known."""
        return np.array([label is not None for label in self.truth])

    @property
    def n_labels(self) -> int:
        """How many items are labelled in all."""
        return N_LABELS if self.responses.n_items >= SMALL else N_FEW


# Returns the items to label next, all of them in order, and whether each was drawn at random.
Choice = Callable[[cs.DawidSkene, Crowd, int], tuple[NDArray[np.int64], NDArray[np.bool_]]]


def load(name: str) -> Crowd:
    stored = real_crowds.load(name)
    truth = np.array([stored.gold.get(item) for item in stored.responses.items.tolist()], object)
    return Crowd(stored.responses, truth)


def choose_random(_model: cs.DawidSkene, crowd: Crowd, seed: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    order = np.random.default_rng(seed).permutation(crowd.responses.n_items)
    return order, np.ones(len(order), bool)


def choose_by_entropy(model: cs.DawidSkene, crowd: Crowd, seed: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    order = np.lexsort((choose_random(model, crowd, seed)[0], -find_entropy(model.posterior_)))
    return order, np.zeros(len(order), bool)


def choose_next(model: cs.DawidSkene, crowd: Crowd, _seed: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    place = {item: row for row, item in enumerate(crowd.responses.items.tolist())}
    n = wanted = crowd.n_labels // N_ROUNDS
    while True:  # more than are needed only where some have no known label
        listed = model.next_items(n)
        items = np.array([place[item] for item in listed["item"].to_pylist()])
        if crowd.has_truth[items].sum() >= wanted:
            return items, listed["random"].to_numpy()
        n += 1


CHOICES: dict[str, Choice] = {"random": choose_random, "entropy": choose_by_entropy, "next_items": choose_next}


def review(crowd: Crowd, choose: Choice, seed: int) -> float:
    """Return the accuracy after all rounds."""
    labelled, drawn = np.empty(0, np.int64), np.empty(0, bool)
    model = fit(crowd, labelled, drawn, seed)
    for _ in range(N_ROUNDS):
        items, at_random = choose(model, crowd, seed)
        usable = crowd.has_truth[items] & ~np.isin(items, labelled)
        chosen = np.flatnonzero(usable)[: crowd.n_labels // N_ROUNDS]
        labelled, drawn = np.append(labelled, items[chosen]), np.append(drawn, at_random[chosen])
        model = fit(crowd, labelled, drawn, seed)
    return score(crowd, model)


def fit(crowd: Crowd, items: NDArray[np.int64], drawn: NDArray[np.bool_], seed: int) -> cs.DawidSkene:
    gold = {"item": crowd.responses.items[items], "label": crowd.truth[items], "random": drawn}
    return cs.DawidSkene(seed=seed).fit(crowd.responses, gold=gold if len(items) else None)


def score(crowd: Crowd, model: cs.DawidSkene) -> float:
    known = crowd.has_truth
    return cs.metrics.accuracy(crowd.truth[known], model.labels_[known])


def measure(crowd: Crowd, n_seeds: int) -> dict[str, float]:
    """Return the accuracy without labels and the mean gain of each choice over the seeds."""
    start = score(crowd, fit(crowd, np.empty(0, np.int64), np.empty(0, bool), 0))
    gains = {
        name: float(np.mean([review(crowd, choose, seed) for seed in range(n_seeds)])) - start
        for name, choose in CHOICES.items()
    }
    return {"start": start, **gains}


class Kept(NamedTuple):
    """How many labels are judged and kept, and how many of those that are kept are expected to be wrong, and are."""

    judged: float
    kept: float
    expected: float
    wrong: float

    def shares(self) -> list[float]:
        """Return the share that is kept, and of these the shares that are expected to be wrong, and are."""
        return [self.kept / self.judged, self.expected / self.kept, self.wrong / self.kept]


def judge_kept(crowd: Crowd, confidence: float, n_labels: int, seed: int) -> Kept:
    """Return how many labels are kept after known labels of random items were given, and what is wrong with them."""
    order = choose_random(cs.DawidSkene(), crowd, seed)[0]
    given = order[crowd.has_truth[order]][:n_labels]
    model = fit(crowd, given, np.ones(n_labels, bool), seed)
    judged = crowd.has_truth.copy()
    judged[given] = False
    sure = model.to_frame()["confidence"].to_numpy()
    kept = judged & (sure >= confidence)
    wrong = crowd.truth[kept] != model.labels_[kept]
    return Kept(judged.sum(), kept.sum(), np.sum(1 - sure[kept]), wrong.sum())


def measure_kept(crowd: Crowd, confidence: float, n_seeds: int) -> list[float]:
    """Return the shares without known labels, and those with some, over all draws together."""
    known = [judge_kept(crowd, confidence, crowd.n_labels, seed) for seed in range(n_seeds)]
    together = Kept(*np.sum(known, axis=0).tolist())
    return judge_kept(crowd, confidence, 0, 0).shares() + together.shares()


def tabulate_kept(measured: dict[str, list[list[float]]]) -> str:
    """Return a table for each confidence, as Markdown."""
    tables = []
    for number, confidence in enumerate(CONFIDENCES):
        head = " | ".join(
            f"{name}, {labels}" for labels in ("no labels", "with") for name in ("kept", "expected", "wrong")
        )
        lines = [f"Confidence of at least {confidence}:", "", f"| | {head} |", "|---|" + ":-:|" * 6]
        rows = {name: each[number] for name, each in measured.items()}
        rows["mean"] = np.mean(list(rows.values()), axis=0).tolist()
        for name, row in rows.items():
            lines.append(f"| {name if name == 'mean' else f'`{name}`'} | {' | '.join(f'{x:.3f}' for x in row)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def tabulate(measured: dict[str, dict[str, float]]) -> str:
    """Return the accuracy without labels, and the gain of each choice, as Markdown."""
    lines = ["| | labels | no labels | random | highest entropy | `next_items` |", "|---|:-:|:-:|:-:|:-:|:-:|"]
    for name, row in measured.items():
        n_labels = "" if name == "mean" else f"{row['n_labels']:.0f}"
        gains = " | ".join(f"{row[choice]:+.3f}" for choice in CHOICES)
        lines.append(f"| {name if name == 'mean' else f'`{name}`'} | {n_labels} | {row['start']:.3f} | {gains} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one crowd and one seed; prints, writes nothing")
    quick = parser.parse_args().quick
    names, n_seeds = (CROWDS[:1], 1) if quick else (CROWDS, N_SEEDS)
    absent = [name for name in names if not real_crowds.is_present(name)]
    if absent:
        sys.exit(f"No data: {', '.join(absent)}. Set $CONSILIENCE_DATA to the folder that has them.")
    measured, kept = {}, {}
    for name in names:
        crowd = load(name)
        kept[name] = [measure_kept(crowd, confidence, n_seeds) for confidence in CONFIDENCES]
        measured[name] = {"n_labels": crowd.n_labels, **measure(crowd, n_seeds)}
        print(name, {key: round(value, 4) for key, value in measured[name].items()}, flush=True)
    measured["mean"] = {key: float(np.mean([row[key] for row in measured.values()])) for key in measured[names[0]]}
    print(tabulate(measured), tabulate_kept(kept), sep="\n\n")
    print(f"next_items brings {measured['mean']['next_items'] / measured['mean']['entropy']:.2f} of entropy alone")
    if not quick:
        TABLE.write_text(tabulate(measured) + "\n")
        UNDECIDED.write_text(tabulate_kept(kept) + "\n")


if __name__ == "__main__":
    main()
