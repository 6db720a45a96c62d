"""How many answers `next_questions` saves, compared with random assignment.

Each item is answered by two random workers first. Then answers are bought in rounds of a quarter of the number of
items, until there are eight per item, and the model is fitted again after each round. The questions of each round are
those that `next_questions` lists, or random ones: random workers, about the items with the fewest answers. The crowds
are simulated (500 items, five classes, forty workers who are right between 30 % and 90 % of the time, ten seeds), or
real ones in which nearly every worker answered nearly every item, and whose answers are revealed when they are asked
for (twenty seeds).

The measure is the share of the answers of random assignment with which `next_questions` reaches the accuracy that
random assignment has in the end. Accuracy is averaged over seeds, and made to rise with the number of answers by
isotonic regression, which takes out chance. Between fits it is interpolated. For the last column, each seed is treated
in the same way on its own, and the shares are averaged; a seed in which the accuracy is never reached counts as 1.

    python benchmarks/campaigns.py            # some minutes; needs the real data ($CONSILIENCE_DATA)
    python benchmarks/campaigns.py --quick    # two seeds of simulated crowds; prints, writes nothing
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

import consilience as cs
import real_crowds
from rounds import campaign

MEASURED = Path(__file__).parent.parent / "docs" / "measured"
TABLE, CURVES = MEASURED / "campaigns.md", MEASURED / "campaigns.json"
N_SIMULATED, N_REAL = 10, 20
POLICIES = ("random", "information")


class Curves(NamedTuple):
    """Accuracy by the share of all answers, a row for each seed."""

    share: NDArray[np.float64]
    accuracy: NDArray[np.float64]


def simulated(seed: int) -> tuple[Any, Any]:
    return cs.simulate.independent(500, n_workers=40, n_classes=5, accuracy=(0.3, 0.9), seed=seed), None


def real(name: str) -> Callable[[int], tuple[Any, Any]]:
    stored = real_crowds.load(name)
    return lambda _: (stored.responses, stored.gold)


def run(make: Callable[[int], tuple[Any, Any]], policy: str, seeds: range) -> Curves:
    shares, rows = np.empty(0), []
    for seed in seeds:
        crowd, truth = make(seed)
        curve = campaign(crowd, policy, truth=truth, seed=seed)
        answers = np.array(curve["answers"].to_pylist())
        n_items = curve["items"].to_pylist()[-1]
        shares = answers / (8 * n_items)
        rows.append(curve["accuracy"].to_pylist())
    return Curves(shares, np.array(rows))


def share_needed(share: NDArray[np.float64], accuracy: NDArray[np.float64], target: float) -> float:
    """Return the share of the answers at which the accuracy reaches the target; 1 if it never does."""
    smooth = isotonic_regression(accuracy).x
    at = int(np.searchsorted(smooth, target - 1e-12))
    if at == 0:
        return float(share[0])
    if at == len(smooth):
        return 1.0
    return float(np.interp(target, smooth[at - 1 : at + 1], share[at - 1 : at + 1]))


def final(accuracy: NDArray[np.float64]) -> float:
    return float(isotonic_regression(accuracy).x[-1])


def summarise(name: str, curves: dict[str, Curves]) -> str:
    """Return a row of the table."""
    random, informed = curves["random"], curves["information"]
    means = [random.accuracy.mean(axis=0), informed.accuracy.mean(axis=0)]
    needed = share_needed(informed.share, means[1], final(means[0]))
    alone = [
        share_needed(informed.share, mine, final(other))
        for mine, other in zip(informed.accuracy, random.accuracy, strict=True)
    ]
    figures = [means[0][0], final(means[0]), final(means[1]), needed, float(np.mean(alone))]
    return f"| {name} | {' | '.join(f'{figure:.3f}' for figure in figures)} |"


def measure(quick: bool) -> Iterator[tuple[str, dict[str, Curves]]]:
    sources = {"simulated": (simulated, range(2 if quick else N_SIMULATED))}
    if not quick:
        sources |= {f"`{name}`": (real(name), range(N_REAL)) for name in ("bluebird", "llm_judges")}
    for name, (make, seeds) in sources.items():
        yield name, {policy: run(make, policy, seeds) for policy in POLICIES}


HEAD = """| | two answers per item | eight at random | eight by `next_questions` | share needed | mean of single seeds |
|---|:-:|:-:|:-:|:-:|:-:|"""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds of simulated crowds; prints, writes nothing")
    quick = parser.parse_args().quick
    absent = [] if quick else [name for name in ("bluebird", "llm_judges") if not real_crowds.is_present(name)]
    if absent:
        sys.exit(f"No data: {', '.join(absent)}. Set $CONSILIENCE_DATA to the folder that has them.")
    print(HEAD)
    lines, kept = [HEAD], {}
    for name, curves in measure(quick):
        lines.append(summarise(name, curves))
        print(lines[-1], flush=True)
        kept[name.strip("`")] = {
            policy: {"share": curve.share.round(4).tolist(), "accuracy": curve.accuracy.mean(axis=0).round(4).tolist()}
            for policy, curve in curves.items()
        }
    if not quick:
        TABLE.write_text("\n".join(lines) + "\n")
        CURVES.write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    main()
