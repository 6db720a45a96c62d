"""Soft votes of classifiers: the probabilities themselves, or the most probable class of each vote.

Writes the table of docs/soft-votes.md.

    python benchmarks/soft_votes.py            # a minute
    python benchmarks/soft_votes.py --quick    # one draw of each kind; prints, writes nothing

A classifier sees z = s onehot(truth) + noise, where the noise is standard normal and s is its skill. The probabilities
of the classes are then softmax(s z), if all classes are equally frequent. A sharpness above 1, which multiplies s z,
makes a classifier too sure, and one below 1 too cautious. It never changes the most probable class.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs

OUTPUT = Path(__file__).parent.parent / "docs" / "measured" / "soft-votes.md"
N_ITEMS, N_CLASSES, N_DRAWS = 1000, 3, 10
SKILLS = (0.7, 2.0)
SURE, CAUTIOUS = 4.0, 0.3

Floats = NDArray[np.float64]
Draw = tuple[NDArray[np.int64], Floats]

KINDS: dict[str, Callable[[int], Floats]] = {
    "calibrated": lambda n: np.ones(n),
    "all too sure": lambda n: np.full(n, SURE),
    "all too cautious": lambda n: np.full(n, CAUTIOUS),
    "the worst too sure, the others calibrated": lambda n: np.append(SURE, np.ones(n - 1)),
}


class Scores(NamedTuple):
    """Accuracies of labels, and whether `fuse` of soft votes warned."""

    vote: float
    mean: float
    hard: float
    soft: float
    warned: bool


def simulate(n_classifiers: int, kind: str, seed: int, n_items: int = N_ITEMS) -> Draw:
    """Return the truth, and the probabilities [item, classifier, class] of classifiers from worst to best."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, N_CLASSES, n_items)
    skill = np.sort(rng.uniform(*SKILLS, n_classifiers))[:, None]
    seen = skill * np.eye(N_CLASSES)[truth][:, None, :] + rng.normal(size=(n_items, n_classifiers, N_CLASSES))
    logits = KINDS[kind](n_classifiers)[:, None] * skill * seen
    odds = np.exp(logits - logits.max(axis=2, keepdims=True))
    return truth, odds / odds.sum(axis=2, keepdims=True)


def score(truth: NDArray[np.int64], P: Floats) -> Scores:
    """Return how good each way is, on one draw."""
    hard, soft = cs.Responses.from_matrix(P.argmax(axis=2)), cs.Responses.from_probabilities(P)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fused = cs.fuse(soft)
    models = [cs.MajorityVote().fit(hard), cs.MajorityVote().fit(soft), cs.DawidSkene().fit(hard), fused]
    return Scores(*(cs.metrics.accuracy(truth, model.labels_) for model in models), bool(caught))


def write_row(n_classifiers: int, kind: str, scores: list[Scores]) -> str:
    """Return a line of the table: means over draws."""
    *means, _ = np.mean(scores, axis=0)
    figures = " | ".join(f"{value:.2f}".lstrip("0") for value in means)
    return f"| {n_classifiers} | {kind} | {figures} | {sum(each.warned for each in scores)} of {len(scores)} |"


def compare(n_draws: int, n_items: int = N_ITEMS) -> str:
    """Return the table."""
    lines = [
        "| classifiers | probabilities | vote | mean | `DawidSkene`, classes | `fuse`, probabilities | warnings |",
        "|---|---|:-:|:-:|:-:|:-:|:-:|",
    ]
    for n_classifiers in (4, 8):
        for kind in KINDS:
            scores = [score(*simulate(n_classifiers, kind, seed, n_items)) for seed in range(n_draws)]
            lines.append(write_row(n_classifiers, kind, scores))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small draw of each kind; writes nothing")
    quick = parser.parse_args().quick
    table = compare(1, 200) if quick else compare(N_DRAWS)
    print(table)
    if not quick:
        OUTPUT.write_text(table + "\n")


if __name__ == "__main__":
    main()
