"""Expected and true accuracy of real crowds: the pairs of `consilience.results.record` that can be made again.

    python benchmarks/record.py

The data are read from the folder `$CONSILIENCE_DATA`; see `benchmarks/README.md`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import consilience as cs

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.real_crowds import Dataset, load
from consilience.results.record import PAIRS, estimate_error_by_record, find_range, see_known

CROWDS = ("bluebird", "rte", "dog", "web", "product", "llm_judges", "sentence_polarity", "music")
# The same of crowds on a scale, by ordinal workers, which is how they are fused. One crowd is no record: of labels on a
# scale it is told what is expected, and not how many are right.
RATINGS: dict[str, tuple[float, float]] = {"web": (0.7877, 0.8568)}
# Draws of known labels for each crowd, and labels in each.
N_DRAWS, N_KNOWN = 10, 30


class Draw(NamedTuple):
    """What a fit with known labels says, by a record without its crowd, and what is true."""

    low: float
    high: float
    accuracy: float

    @property
    def holds(self) -> bool:
        """Whether the range contains the truth."""
        return self.low <= self.accuracy <= self.high

    @property
    def width(self) -> float:
        """How wide the range is."""
        return self.high - self.low


def fuse(crowd: Dataset, gold: dict[Any, Any] | None = None, workers: str = "confusion") -> Any:
    """Return the fit of a crowd by confusion matrices, the record being one of such fits; of ratings by others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fuse(crowd.responses, gold=gold, workers=workers)


def score(crowd: Dataset, fused: Any) -> float:
    """Return the share of right labels, of the items whose truth is known."""
    labels = dict(zip(fused.result_.answers.items.tolist(), fused.labels_.tolist(), strict=True))
    return float(np.mean([labels[item] == label for item, label in crowd.gold.items() if item in labels]))


def pair(name: str, workers: str = "confusion") -> tuple[float, float]:
    """Return expected and true accuracy of a crowd, without known labels."""
    crowd = load(name)
    fused = fuse(crowd, workers=workers)
    return fused.comparison_.expected_accuracy, score(crowd, fused)


def draw(name: str, n_draws: int = N_DRAWS) -> Iterator[Draw]:
    """Yield what fits with known labels say of a crowd, by the record of the others."""
    crowd, rng = load(name), np.random.default_rng(0)
    others = {other: each for other, each in PAIRS.items() if other != name}
    items = [item for item in crowd.responses.items.tolist() if item in crowd.gold]
    for _ in range(n_draws):
        known = rng.choice(len(items), N_KNOWN, replace=False)
        fused = fuse(crowd, {items[n]: crowd.gold[items[n]] for n in known})
        c = fused.comparison_
        densities = estimate_error_by_record(c.blind_accuracy, c.expected_accuracy_high, others)
        seen = see_known(densities, c.n_known, c.n_known_right)
        ends = find_range(seen, round((1 - c.share_known) * c.n_items))[1:]
        yield Draw(*(c.share_known + (1 - c.share_known) * each for each in ends), score(crowd, fused))


if __name__ == "__main__":
    for name in RATINGS:
        print("on a scale: {:18} {:.4f} {:.4f}".format(name, *pair(name, "ordinal")))
    for name in CROWDS:
        draws = list(draw(name))
        held, width = sum(each.holds for each in draws), np.mean([each.width for each in draws])
        expected, true = pair(name)
        print(
            f"{name:18} {expected:.4f} {true:.4f}  with {N_KNOWN} labels {held} of {len(draws)} hold, width {width:.2f}"
        )
