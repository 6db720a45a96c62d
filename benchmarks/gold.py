"""What known labels are worth: accuracy and log loss of real crowds, with 0 to 100 labels given to the fit.

Writes the tables and the picture of docs/gold.md, which are the same in every run:

    python benchmarks/gold.py            # about two minutes; needs the real data ($CONSILIENCE_DATA)
    python benchmarks/gold.py --quick    # one crowd and two draws; prints, writes nothing
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
import real_crowds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parent.parent
TABLES = ROOT / "docs" / "measured" / "gold.md"
DOUBTFUL = ROOT / "docs" / "measured" / "doubtful-gold.md"
PICTURE = ROOT / "docs" / "_static" / "gold.png"

CROWDS = ("bluebird", "rte", "dog", "web", "product", "llm_judges", "sentence_polarity", "music")
SIZES = (0, 10, 20, 50, 100)
N_DRAWS = 10
N_DOUBTFUL = 20


class Score(NamedTuple):
    """How good labels and probabilities are, for items whose label was not given."""

    accuracy: float
    log_loss: float


class Crowd(NamedTuple):
    """The answers of a crowd, and the items whose label is known."""

    responses: cs.Answers
    known: NDArray[np.int64]  # indices of items
    truth: NDArray[Any]  # their labels

    def give(self, chosen: NDArray[np.int64], **columns: object) -> dict[str, Any]:
        """Return some known labels, by their indices in `known`, as a table for `gold=`."""
        return {"item": self.responses.items[self.known[chosen]], "label": self.truth[chosen], **columns}

    def score(self, model: cs.MajorityVote | cs.DawidSkene, given: NDArray[np.int64]) -> Score:
        """Return the score of a fitted model on the items whose label was not given."""
        others = np.setdiff1d(np.arange(len(self.known)), given)
        items, truth = self.known[others], self.truth[others]
        return Score(
            cs.metrics.accuracy(truth, model.labels_[items]),
            cs.metrics.log_loss(truth, model.posterior_[items], model.classes_),
        )


def load(name: str) -> Crowd:
    stored = real_crowds.load(name)
    labels = [stored.gold.get(item) for item in stored.responses.items.tolist()]
    known = np.array([index for index, label in enumerate(labels) if label is not None])
    return Crowd(stored.responses, known, np.array([labels[index] for index in known]))


def sizes_of(crowd: Crowd) -> list[int]:
    """Return the numbers of labels that leave at least half of them for scoring."""
    return [size for size in SIZES if 2 * size <= len(crowd.known)]


def draw(crowd: Crowd, size: int, seed: int) -> NDArray[np.int64]:
    """Return a random sample of the known labels. With the same seed, a larger one contains the smaller ones."""
    return np.random.default_rng(seed).permutation(len(crowd.known))[:size]


def fit_with(crowd: Crowd, given: NDArray[np.int64], **columns: object) -> cs.DawidSkene:
    return cs.DawidSkene().fit(crowd.responses, gold=crowd.give(given, **columns) if len(given) else None)


def measure(crowd: Crowd, size: int, n_draws: int = N_DRAWS) -> list[Score]:
    """Return the score with labels at random, for each draw; without labels there is nothing to draw."""
    draws = [draw(crowd, size, seed) for seed in range(n_draws if size else 1)]
    return [crowd.score(fit_with(crowd, given), given) for given in draws]


def measure_vote(crowd: Crowd) -> Score:
    return crowd.score(cs.MajorityVote().fit(crowd.responses), draw(crowd, 0, 0))


def mean(scores: Iterable[Score]) -> Score:
    return Score(*np.mean(list(scores), axis=0).tolist())


def largest_error(scores: Iterable[list[Score]]) -> Score:
    """Return the largest standard error of a mean over draws."""
    return Score(*np.max([np.std(each, axis=0, ddof=1) / np.sqrt(len(each)) for each in scores], axis=0).tolist())


def measure_doubtful(crowd: Crowd) -> tuple[Score, Score, Score]:
    """Return the scores with the most doubtful items: not used, used, and wrongly used to calibrate by."""
    plain = cs.DawidSkene().fit(crowd.responses)
    confidence = plain.posterior_[crowd.known].max(axis=1)
    given = np.argsort(confidence, kind="stable")[:N_DOUBTFUL]
    marked, unmarked = fit_with(crowd, given, random=[False] * len(given)), fit_with(crowd, given)
    return crowd.score(plain, given), crowd.score(marked, given), crowd.score(unmarked, given)


Measured = dict[str, dict[int, list[Score]]]  # scores of all draws, by crowd and number of labels


def tabulate(votes: dict[str, Score], measured: Measured, which: str) -> str:
    """Return one score of all crowds, by the number of labels given, and its mean over those that have all sizes."""
    rows = {
        name: [getattr(votes[name], which), *(getattr(mean(draws), which) for draws in by_size.values())]
        for name, by_size in measured.items()
    }
    whole = [row for row in rows.values() if len(row) == 1 + len(SIZES)]
    lines = [_row("", "vote", "no labels", *SIZES[1:]), "|---|" + ":-:|" * (1 + len(SIZES))]
    for name, row in rows.items():
        lines.append(_row(f"`{name}`", *map(_number, row), *[""] * (1 + len(SIZES) - len(row))))
    if whole:
        lines.append(_row(f"mean of the {len(whole)} with all sizes", *map(_number, np.mean(whole, axis=0))))
    return "\n".join(lines)


def tabulate_doubtful(scores: dict[str, tuple[Score, Score, Score]]) -> str:
    """Return the log loss with labels of doubtful items, by how they were used, and its mean."""
    losses = {name: [score.log_loss for score in by_use] for name, by_use in scores.items()}
    lines = [_row("", "no labels", "marked `random=False`", "not marked"), "|---|:-:|:-:|:-:|"]
    lines += [_row(f"`{name}`", *map(_number, row)) for name, row in losses.items()]
    return "\n".join([*lines, _row("mean", *map(_number, np.mean(list(losses.values()), axis=0)))])


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _number(value: float) -> str:
    return f"{value:.3f}"


def report(votes: dict[str, Score], measured: Measured) -> str:
    """Return accuracy and log loss by the number of labels, as Markdown."""
    error = largest_error(draws for by_size in measured.values() for draws in by_size.values() if len(draws) > 1)
    return "\n\n".join(
        [
            "Accuracy, by the number of labels given:",
            tabulate(votes, measured, "accuracy"),
            "Log loss (nats, lower is better):",
            tabulate(votes, measured, "log_loss"),
            f"*The largest standard error of a mean over draws is {error.accuracy:.3f} for accuracy and "
            f"{error.log_loss:.3f} for log loss.*",
        ]
    )


def draw_picture(measured: Measured) -> None:
    """Draw how far labels change accuracy and log loss: thin lines for crowds, a thick one for their mean.

    Crowds that do not have all sizes are not in the mean, and orange.
    """
    sys.path.insert(0, str(ROOT))
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from paper.drawing import RC

    with rc_context(RC):
        figure = Figure(figsize=(8.4, 3.7))
        left, right = figure.subplots(1, 2)
        draw_changes(left, measured, "accuracy", 100)
        draw_changes(right, measured, "log_loss", 1)
        left.set_title("change in accuracy, percentage points")
        right.set_title("change in log loss, nats (lower is better)")
        figure.tight_layout(w_pad=2)
        figure.savefig(PICTURE)


def draw_changes(axes: Axes, measured: Measured, which: str, unit: float) -> None:
    """Draw one score against the number of labels, as the difference from the fit without labels."""
    from paper.drawing import FAINT, INK

    blue, grey, orange = "#2b6cb0", "#8a97a5", "#dd7b1f"
    changes = {}
    for name, by_size in measured.items():
        values = unit * np.array([getattr(mean(draws), which) for draws in by_size.values()])
        changes[name] = values - values[0]
        colour = grey if len(values) == len(SIZES) else orange
        axes.plot(SIZES[: len(values)], changes[name], color=colour, lw=0.9, marker="o", ms=2)
    whole = {name: change for name, change in changes.items() if len(change) == len(SIZES)}
    average = np.mean(list(whole.values()), axis=0)
    axes.plot([0, SIZES[-1]], [0, 0], color=FAINT, lw=1, zorder=0)
    axes.plot(SIZES, average, color=blue, lw=2.4, marker="o", ms=4)
    ends = {name: change[-1] for name, change in whole.items()} | {"mean": average[-1]}
    low, high = axes.get_ylim()
    places = spread(np.array(list(ends.values())), 0.055 * (high - low))
    line = {"arrowstyle": "-", "lw": 0.5, "color": FAINT, "shrinkA": 1, "shrinkB": 3}
    text: dict[str, Any] = {"va": "center", "fontsize": 7.5}
    for (name, end), place in zip(ends.items(), places, strict=True):
        colour = blue if name == "mean" else INK
        axes.annotate(name, (SIZES[-1], end), (SIZES[-1] + 7, place), arrowprops=line, color=colour, **text)
    for name in changes.keys() - whole.keys():
        end = (SIZES[len(changes[name]) - 1], changes[name][-1])
        axes.annotate(name, end, (4, -6), textcoords="offset points", color=orange, **text)
    axes.set(xlabel="known labels", xlim=(-3, 140), xticks=SIZES)
    axes.spines["bottom"].set_bounds(0, SIZES[-1])


def spread(places: NDArray[np.float64], distance: float) -> NDArray[np.float64]:
    """Return places for text near the given ones, at least a distance apart."""
    order = np.argsort(places, kind="stable")
    moved = places[order].copy()
    for _ in range(200):
        overlap = np.maximum(distance - np.diff(moved), 0) / 2
        moved[:-1] -= overlap
        moved[1:] += overlap
    result = np.empty_like(moved)
    result[order] = moved
    return result


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one crowd and two draws; prints, writes nothing")
    quick = parser.parse_args().quick
    names, n_draws = (CROWDS[:1], 2) if quick else (CROWDS, N_DRAWS)
    absent = [name for name in names if not real_crowds.is_present(name)]
    if absent:
        sys.exit(f"No data: {', '.join(absent)}. Set $CONSILIENCE_DATA to the folder that has them.")
    votes, doubtful = {}, {}
    measured: Measured = {}
    for name in names:
        crowd = load(name)
        votes[name] = measure_vote(crowd)
        measured[name] = {size: measure(crowd, size, n_draws) for size in sizes_of(crowd)}
        doubtful[name] = measure_doubtful(crowd)
    tables = {TABLES: report(votes, measured), DOUBTFUL: tabulate_doubtful(doubtful)}
    print("\n\n".join(tables.values()))
    if not quick:
        for path, text in tables.items():
            path.write_text(text + "\n")
        draw_picture(measured)


if __name__ == "__main__":
    main()
