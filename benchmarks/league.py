"""Quality against other methods on all real crowds: accuracy, log loss and calibration error, in docs/league.md.

The data are not distributed with the package. They are read from the folder that $CONSILIENCE_DATA names.

    python benchmarks/league.py            # all sets; writes the page
    python benchmarks/league.py --quick    # two small sets; prints, writes nothing
"""

from __future__ import annotations

import argparse
import importlib.metadata
import signal
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
from consilience.datasets import CATALOGUE, is_present, load
from consilience.models.fuse import choose_model

PAGE = Path(__file__).parent.parent / "docs" / "league.md"
# Without answers there is nothing to fuse.
SETS = [entry.name for entry in CATALOGUE if entry.n_answers]
QUICK = ["bluebird", "rte"]
VOTE, EM, OURS = "vote", "Dawid-Skene, EM", "ours"
LIMIT = 120  # seconds of processor time
CLIP = 1e-12
BINS = 10

# Accuracy of EBCC, the best of 40 starts (Li, Rubinstein and Cohn, 2019). A test compares it with the reproduction.
PUBLISHED = {"bluebird": 0.861, "rte": 0.931, "dog": 0.840, "web": 0.769, "product": 0.935}

SLOW, FAILED, SILENT = "slow", "failed", "silence"
REASONS = {
    SLOW: f"*{SLOW}*: more than {LIMIT // 60} minutes of processor time.",
    FAILED: f"*{FAILED}*: the method stopped with an error, or returned probabilities that are not numbers.",
    SILENT: f"*{SILENT}*: in this set a worker who says nothing gives an answer, and most items have no other. "
    "crowd-kit has no such answers.",
}


class Fused(NamedTuple):
    """What a method says about each item; `probability` is None for a method that gives none."""

    labels: NDArray[np.object_]
    probability: NDArray[np.float64] | None
    classes: list[Any]


class Score(NamedTuple):
    """Scores of one method on one set; NaN where there are no probabilities."""

    accuracy: float
    log_loss: float
    ece: float


# The scores of each method on one set, or the reason why there are none.
Row = dict[str, Score | str]


class Measure(NamedTuple):
    """One table of the page."""

    title: str
    explanation: str
    best: Callable[[Sequence[float]], float]


MEASURES = {
    "accuracy": Measure("Accuracy", "The share of labels that are right. Higher is better.", max),
    "log_loss": Measure(
        "Log loss",
        "The mean negative log probability of the true label, with probabilities of at least 1e-12. Lower is better.",
        min,
    ),
    "ece": Measure(
        "Calibration error",
        f"The expected calibration error (ECE) of the most probable class, in {BINS} bins of equal width. Lower is "
        "better.",
        min,
    ),
}


def score(gold: Sequence[Any], fused: Fused) -> Score:
    """Return the scores of labels and probabilities. A gold label that is not among the classes has probability 0."""
    right = float(np.mean([label == true for label, true in zip(fused.labels, gold, strict=True)]))
    if fused.probability is None:
        return Score(right, np.nan, np.nan)
    classes = [*fused.classes, *sorted(set(gold) - set(fused.classes))]
    probability = np.zeros((len(gold), len(classes)))
    probability[:, : len(fused.classes)] = fused.probability
    column = {name: k for k, name in enumerate(classes)}
    of_gold = probability[np.arange(len(gold)), [column[true] for true in gold]]
    loss = float(-np.log(np.maximum(of_gold, CLIP)).mean())
    return Score(right, loss, cs.metrics.calibration_error(gold, probability, classes, bins=BINS))


def fit(model: Any, responses: cs.Responses) -> Fused:
    """Return what a model of this library says."""
    model.fit(responses)
    return Fused(np.asarray(model.labels_, dtype=object), model.posterior_, list(model.classes_))


def fit_rival(name: str, responses: cs.Responses) -> Fused:
    """Return what a method of crowd-kit says. Items are independent for all of them."""
    import crowdkit.aggregation
    import pandas as pd

    answers = pd.DataFrame(
        {
            "task": responses.item_of_answer(),
            "worker": responses.worker,
            "label": responses.labels[responses.label],
        }
    )
    model = getattr(crowdkit.aggregation, name)()
    items, classes = np.arange(responses.n_items), list(responses.classes)
    labels = model.fit_predict(answers).reindex(items).to_numpy(dtype=object)
    found = getattr(model, "probas_", None)
    if found is None:
        return Fused(labels, None, classes)
    probability = found.reindex(index=items, columns=classes, fill_value=0.0).to_numpy(dtype=float)
    if not np.isfinite(probability).all():
        raise ValueError(f"{name} returned probabilities that are not numbers.")
    return Fused(labels, probability, classes)


# The names of crowd-kit's classes.
RIVALS = {"crowd-kit DS": "DawidSkene", "OneCoin": "OneCoinDawidSkene", "GLAD": "GLAD", "MMSR": "MMSR"}
METHODS = [VOTE, EM, OURS, *RIVALS]


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after this much processor time."""

    def stop(*_: object) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def measure(name: str) -> Row:
    """Return the scores of all methods on one set."""
    stored = load(name)
    responses = stored.responses
    assert responses is not None
    truth = [stored.gold.get(key) for key in responses.items.tolist()]
    known = np.flatnonzero([label is not None for label in truth])
    gold = [truth[i] for i in known]

    def score_known(fused: Fused) -> Score:
        probability = None if fused.probability is None else fused.probability[known]
        return score(gold, Fused(fused.labels[known], probability, fused.classes))

    models = {
        VOTE: cs.MajorityVote(),
        EM: cs.DawidSkene(estimation="em", calibration="none"),
        OURS: choose_model("auto", responses),
    }
    row: Row = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, model in models.items():
            row[method] = score_known(fit(model, responses))
        for method, rival in RIVALS.items():
            if responses.silence_counts:
                row[method] = SILENT
                continue
            try:
                with limit_time(LIMIT):
                    fused = fit_rival(rival, responses)
                row[method] = score_known(fused)
            except TimeoutError:
                row[method] = SLOW
            except Exception:  # whatever goes wrong in another package is a result here
                row[method] = FAILED
    return row


def figures(row: Row, kind: str) -> dict[str, float]:
    """Return one score of each method that has it, and what was published under "published"."""
    found = {method: getattr(cell, kind) for method, cell in row.items() if isinstance(cell, Score)}
    return {method: value for method, value in found.items() if not np.isnan(value)}


def number(value: float) -> str:
    """Return three decimals, without a leading zero."""
    return f"{value:.3f}".removeprefix("0")


def columns_of(kind: str) -> list[str]:
    """Return the methods that a measure can be computed for."""
    return [method for method in METHODS if kind == "accuracy" or method != "MMSR"]


def mean_row(rows: Mapping[str, Row], kind: str) -> tuple[list[str], dict[str, float]]:
    """Return the sets that all methods have scores on, and the mean of each method over them."""
    columns = columns_of(kind)
    shared = [name for name, row in rows.items() if figures(row, kind).keys() >= set(columns)]
    return shared, {
        method: float(np.mean([figures(rows[name], kind)[method] for name in shared])) for method in columns if shared
    }


def make_table(rows: Mapping[str, Row], kind: str) -> str:
    """Return one measure of all sets and methods; the best figures of a row are bold."""
    columns, best = columns_of(kind), MEASURES[kind].best
    published = kind == "accuracy"

    def line(name: str, found: Mapping[str, float], row: Row) -> str:
        top = number(best(list(found.values())))
        texts = {method: number(value) for method, value in found.items()}
        cells = [f"**{texts[m]}**" if texts.get(m) == top else texts.get(m, f"*{row.get(m, '')}*") for m in columns]
        if published:
            cells.append(number(PUBLISHED[name]) if name in PUBLISHED else "")
        return f"| {' | '.join([name, *cells])} |"

    head = ["data", *columns, *["published"] * published]
    lines = [f"| {' | '.join(head)} |", f"|---|{':-:|' * (len(head) - 1)}"]
    lines += [line(name, figures(row, kind), row) for name, row in rows.items()]
    shared, means = mean_row(rows, kind)
    if means:
        lines.append(line(f"mean of {len(shared)}", means, {}))
    return "\n".join(lines)


def is_behind(kind: str, ours: float, other: float) -> bool:
    """Tell whether another figure is better than ours by at least one unit of the last decimal that is shown."""
    best = MEASURES[kind].best
    return number(ours) != number(other) and best([ours, other]) == other


def list_losses(rows: Mapping[str, Row]) -> str:
    """Return where another method is better than ours, one point for each set."""
    points = []
    for name, row in rows.items():
        behind = []
        for kind, what in MEASURES.items():
            found = figures(row, kind)
            ours = found.pop(OURS)
            if kind == "accuracy" and name in PUBLISHED:
                found["published"] = PUBLISHED[name]
            best = what.best(list(found.values()))
            if is_behind(kind, ours, best):
                winners = [method for method, value in found.items() if number(value) == number(best)]
                behind.append(f"{what.title.lower()} {number(ours)}, {join(winners)} {number(best)}")
        if behind:
            points.append(fill(f"*{name}*: {'; '.join(behind)}.", "- "))
    return "\n".join(points)


def join(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    *more, last = names
    return f"{', '.join(more)} and {last}" if more else last


def fill(text: str, first: str = "") -> str:
    """Return text in lines of equal length."""
    return textwrap.fill(
        text,
        120,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        break_long_words=False,
    )
