"""Quality against other methods on all real crowds: accuracy, log loss and calibration error, for docs/evidence.md.

The data are not distributed with the package. They are read from the folder that $CONSILIENCE_DATA names.

    python benchmarks/league.py            # all sets; writes the tables
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
from real_crowds import CATALOGUE, is_present, load

PAGE = Path(__file__).parent.parent / "docs" / "measured" / "league.md"
# What to know of the data before one interprets a score.
# Without answers there is nothing to fuse.
SETS = [entry.name for entry in CATALOGUE if entry.n_answers]
QUICK = ["bluebird", "rte"]
VOTE, EM, OURS, IN_PRINT = "vote", "Dawid-Skene by EM", "ours", "published"
# The names of crowd-kit's classes.
RIVALS = {"crowd-kit DS": "DawidSkene", "OneCoin": "OneCoinDawidSkene", "GLAD": "GLAD", "MMSR": "MMSR"}
METHODS = [VOTE, EM, OURS, *RIVALS]
WITHOUT_PROBABILITIES = ["MMSR", IN_PRINT]
# Rivals are stopped after so many seconds of processor time, and not run on larger sets, which need too much memory.
LIMIT = 120
MOST_ANSWERS = 2_000_000
CLIP = 1e-12
BINS = 10

# Accuracy of EBCC, the best of 40 starts (Li, Rubinstein and Cohn, 2019). A test compares it with the reproduction.
PUBLISHED = {"bluebird": 0.861, "rte": 0.931, "dog": 0.840, "web": 0.769, "product": 0.935}

SLOW, LARGE, FAILED, SILENT = "slow", "large", "failed", "silence"
REASONS = {
    SLOW: f"*{SLOW}*: stopped after {LIMIT // 60} minutes of processor time.",
    LARGE: f"*{LARGE}*: not run, because the set has more than {MOST_ANSWERS:,} answers.",
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


def read(model: Any) -> Fused:
    """Return what a fitted model of this library says."""
    return Fused(np.asarray(model.labels_, dtype=object), model.posterior_, list(model.classes_))


def fit_rival(name: str, responses: cs.Answers) -> Fused:
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
    truth = np.array([stored.gold.get(key) for key in responses.items.tolist()], dtype=object)
    em = cs.DawidSkene(estimation="em", calibration="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {VOTE: cs.MajorityVote().fit(responses), EM: em.fit(responses), OURS: cs.fuse(responses)}
        row: Row = {method: score_known(truth, read(model)) for method, model in models.items()}
        row |= {method: try_rival(rival, responses, truth) for method, rival in RIVALS.items()}
    if name in PUBLISHED:
        row[IN_PRINT] = Score(PUBLISHED[name], np.nan, np.nan)
    return row


def try_rival(name: str, responses: cs.Answers, truth: NDArray[np.object_]) -> Score | str:
    """Return the scores of a method of crowd-kit, or the reason why there are none."""
    if responses.silence_counts:
        return SILENT
    if responses.n_responses > MOST_ANSWERS:
        return LARGE
    try:
        with limit_time(LIMIT):
            fused = fit_rival(name, responses)
    except TimeoutError:
        return SLOW
    except Exception:  # an error in another package is a result, not a reason to stop
        return FAILED
    return score_known(truth, fused)


def score_known(truth: NDArray[np.object_], fused: Fused) -> Score:
    """Return the scores on the items whose truth is not None."""
    known = np.array([label is not None for label in truth])
    probability = None if fused.probability is None else fused.probability[known]
    return score(truth[known].tolist(), Fused(fused.labels[known], probability, fused.classes))


def get_figures(row: Row, kind: str) -> dict[str, float]:
    """Return one score of each method that has it."""
    found = {method: float(getattr(cell, kind)) for method, cell in row.items() if isinstance(cell, Score)}
    return {method: value for method, value in found.items() if not np.isnan(value)}


def number(value: float) -> str:
    """Return three decimals, without a leading zero."""
    return f"{value:.3f}"


def list_columns(kind: str) -> list[str]:
    """Return the columns of the table of a measure."""
    return [name for name in (*METHODS, IN_PRINT) if kind == "accuracy" or name not in WITHOUT_PROBABILITIES]


def average(rows: Mapping[str, Row], kind: str) -> tuple[int, dict[str, float]]:
    """Return the number of sets on which all methods have the score, and the mean of each method over these sets."""
    methods = [name for name in list_columns(kind) if name != IN_PRINT]
    found = [figures for row in rows.values() if (figures := get_figures(row, kind)).keys() >= set(methods)]
    means = {method: float(np.mean([figures[method] for figures in found])) for method in methods} if found else {}
    return len(found), means


def make_table(rows: Mapping[str, Row], kind: str) -> str:
    """Return one measure of all sets and methods. The best figures of a line are bold."""
    columns = list_columns(kind)
    lines = [f"| {' | '.join(['data', *columns])} |", f"|---|{':-:|' * len(columns)}"]
    lines += [make_line(name, get_figures(row, kind), row, kind) for name, row in rows.items()]
    n_shared, means = average(rows, kind)
    if means:
        lines.append(make_line(f"mean of {n_shared} sets", means, {}, kind))
    return "\n".join(lines)


def make_line(name: str, figures: Mapping[str, float], row: Row, kind: str) -> str:
    """Return one line of a table: figures, and reasons where there are none."""
    best = number(MEASURES[kind].best(list(figures.values())))
    cells = []
    for column in list_columns(kind):
        if column in figures:
            text = number(figures[column])
            cells.append(f"**{text}**" if text == best else text)
        else:
            cells.append(f"*{row[column]}*" if column in row else "")
    return f"| {' | '.join([name, *cells])} |"


def find_better(row: Row, kind: str) -> str:
    """Return which methods have the best figure of a line in words, "" if ours has it."""
    figures, what = get_figures(row, kind), MEASURES[kind]
    best = number(what.best(list(figures.values())))
    winners = [method for method, value in figures.items() if number(value) == best]
    return "" if OURS in winners else f"{what.title.lower()} {number(figures[OURS])} ({join(winners)} {best})"


def count_wins(rows: Mapping[str, Row]) -> str:
    """Return on how many sets ours has the best figure, in one sentence."""
    parts = [
        f"the best {what.title.lower()} on {sum(not find_better(row, kind) for row in rows.values())}"
        for kind, what in MEASURES.items()
    ]
    return f"Of {len(rows)} sets, *{OURS}* has {join(parts)}."


def join(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    *more, last = names
    return f"{', '.join(more)} and {last}" if more else last


def fill(text: str, first: str = "") -> str:
    """Return text in lines of equal length."""
    return textwrap.fill(text, 120, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False)


def introduce() -> str:
    """Return what is compared, and how."""
    without_answers = [entry.name for entry in CATALOGUE if not entry.n_answers]
    with_graph = [entry.name for entry in CATALOGUE if entry.kind == "network" and entry.n_answers]
    classes = join([f"`{name}`" for name in RIVALS.values()])
    points = [
        f"*{VOTE}* is `MajorityVote()`. Its probabilities are shares of votes.",
        f'*{EM}* is `DawidSkene(estimation="em", calibration="none")`.',
        f"*{OURS}* is the model that `fuse` chooses, with its default parameters: `HiddenMarkov` for sequences, "
        "`DawidSkene` for other items. All other methods take the words of a text or the epochs of a night as "
        "independent items.",
        f"{join([f'*{name}*' for name in RIVALS])} are {classes} of crowd-kit "
        f"{importlib.metadata.version('crowd-kit')}, with its default parameters. MMSR gives no probabilities.",
        f"*{IN_PRINT}* is the accuracy of EBCC, the best of 40 starts (Li, Rubinstein and Cohn, 2019). For the other "
        "sets, no published accuracy could be checked.",
    ]
    parts = [
        fill(
            "All sets of [the data](#the-data) that have answers. Each method gets the answers without any known "
            "label, and one function then scores its labels and probabilities on the items whose true label is known."
        ),
        "\n".join(fill(point, "- ") for point in points),
        fill(
            f"The graphs of {join(with_graph)} are not used here, and {join(without_answers)} have no answers. The "
            "[reproduction of the paper](reproduction.md) has results with graphs, and span scores for texts. "
            "Means are over the sets on which all methods have a figure; the best figures of each line are bold. "
            "`make bench` wrote these tables."
        ),
    ]
    return "\n\n".join(parts)


def write_page(rows: Mapping[str, Row]) -> str:
    """Return the page."""
    parts = [introduce()]
    for kind, what in MEASURES.items():
        parts += [f"### {what.title}", fill(what.explanation), make_table(rows, kind)]
    given = {cell for row in rows.values() for cell in row.values() if isinstance(cell, str)}
    notes = [fill(text, "- ") for reason, text in REASONS.items() if reason in given]
    if notes:
        parts += ["Words in place of a figure:", "\n".join(notes)]
    parts.append(count_wins(rows))
    return "\n\n".join([*parts, describe_data()]) + "\n"


def describe_data() -> str:
    """Return the section on the data: what they are, their sizes, and what to know of them."""
    lines = ["| name | what | items | workers | classes | answers |", "|---|---|--:|--:|--:|--:|"]
    for e in CATALOGUE:
        size = f"{e.n_items:,} | {e.n_workers or '-'} | {e.n_classes} | {f'{e.n_answers:,}' if e.n_answers else '-'}"
        lines.append(f"| `{e.name}` | {e.description} | {size} |")
    parts = [
        "### The data",
        fill(
            "All data are public, and not part of the package: benchmarks and tests read them from the folder that "
            "`$CONSILIENCE_DATA` names. `benchmarks/README.md` has their licences and citations, and describes the "
            "files. Known labels are for scoring, unless a page says otherwise."
        ),
        "\n".join(lines),
    ]
    return "\n\n".join(parts)


def report(quick: bool = False) -> str:
    """Return the page, with two small sets only if `quick`."""
    return write_page({name: measure(name) for name in (QUICK if quick else SETS)})


def renew(quick: bool = False) -> None:
    """Print the page, and write it unless `quick`. Without the data, say so and do nothing."""
    missing = [name for name in (QUICK if quick else SETS) if not is_present(name)]
    if missing:
        print(f"No league table: $CONSILIENCE_DATA has no {join(missing)}.")
        return
    text = report(quick)
    print(text)
    if not quick:
        PAGE.write_text(text)


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small sets; prints, writes nothing")
    renew(parser.parse_args().quick)


if __name__ == "__main__":
    main()
