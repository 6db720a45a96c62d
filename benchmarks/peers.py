"""Every peer that is installed, on the same answers: time, peak of memory, accuracy and log loss.

Each method runs in a process of its own. It gets the answers in the form that it takes, and the clock runs from there
to the labels. Peers are not needed for anything else; `pip install --group peers` installs them.

    python benchmarks/peers.py            # 100k and 1M answers, and real crowds; prints
    python benchmarks/peers.py --quick    # a small crowd, and the peers that are quick to import
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alone import FAILED, LARGE, SLOW, half_of_memory, measure_alone, time_best
from crowd import Crowd

# Peers that sequences.py runs.
CHAIN_PEERS = ("dynamax", "pomegranate")
# Items, workers, classes. There are five answers per item.
CROWDS = {"100k answers": (20_000, 200, 4), "1M answers": (200_000, 1_000, 4)}
QUICK = {"2k answers": (400, 20, 3)}
REAL = ("music", "bluebird", "rte", "dog", "web", "product", "sentence_polarity", "llm_judges")  # by number of answers
SETS_PER_TABLE = 4
IN_LEAGUE = {f"crowd-kit, `{name}`" for name in ("DawidSkene", "OneCoinDawidSkene", "GLAD", "MMSR")}
LIMIT = 120  # seconds of a process on one simulated crowd, and on all real crowds
CLIP = 1e-12


class Answers(NamedTuple):
    """Codes of items, workers and labels, and how many there are of each."""

    item: NDArray[Any]
    worker: NDArray[Any]
    label: NDArray[Any]
    n_items: int
    n_workers: int
    n_classes: int

    def frame(self) -> Any:
        """Return a table as crowd-kit takes it."""
        import pandas as pd

        return pd.DataFrame({"task": self.item, "worker": self.worker, "label": self.label})

    def matrix(self, silence: float, dtype: Any) -> NDArray[Any]:
        """Return one row per item and one column per worker."""
        matrix = np.full((self.n_items, self.n_workers), silence, dtype)
        matrix[self.item, self.worker] = self.label
        return matrix


class Found(NamedTuple):
    """What a method found, and what that took. A method may give no probabilities."""

    seconds: float
    peak: int
    labels: NDArray[np.int64]
    probability: NDArray[np.float64] | None


Fit = Callable[[Answers], Found]


def fit_ours(answers: Answers) -> Found:
    import consilience as cs

    frame = answers.frame()
    seconds, peak, model = time_best(lambda: cs.DawidSkene().fit(cs.Answers.from_frame(frame)))
    labels = np.full(answers.n_items, -1)
    probability = np.full((answers.n_items, answers.n_classes), 1 / answers.n_classes)
    order = np.asarray(model.result_.answers.items)
    labels[order] = model.labels_
    probability[order] = 0
    probability[np.ix_(order, np.asarray(model.classes_))] = model.posterior_
    return Found(seconds, peak, labels, probability)


def fit_duckdb(answers: Answers) -> Found:
    import duckdb
    import pyarrow as pa

    table = pa.table(answers.frame())
    with duckdb.connect() as database:
        database.execute(f"set threads = {os.cpu_count()}")
        database.register("answers", table)
        seconds, peak, votes = time_best(
            lambda: database.execute("select task, mode(label) as label from answers group by task").fetchnumpy()
        )
    labels = np.full(answers.n_items, -1)
    labels[votes["task"]] = votes["label"]
    return Found(seconds, peak, labels, None)


def fit_crowd_kit(name: str) -> Fit:
    """Return the fit of a class of crowd-kit."""

    def fit(answers: Answers) -> Found:
        import crowdkit.aggregation

        frame = answers.frame()
        method = getattr(crowdkit.aggregation, name)

        def run() -> Any:
            model = method()
            return model, model.fit_predict(frame)

        seconds, peak, (model, labels) = time_best(run)
        items, classes = np.arange(answers.n_items), np.arange(answers.n_classes)
        found = getattr(model, "probas_", None)
        probability = None if found is None else found.reindex(index=items, columns=classes, fill_value=0.0).to_numpy()
        return Found(seconds, peak, labels.reindex(items, fill_value=-1).to_numpy().astype(int), probability)

    return fit


def fit_peerannot(name: str) -> Fit:
    """Return the fit of a class of peerannot."""

    def fit(answers: Answers) -> Found:
        import peerannot.models

        votes: dict[int, dict[int, int]] = {}
        for item, worker, label in zip(*(codes.tolist() for codes in answers[:3]), strict=True):
            votes.setdefault(item, {})[worker] = label
        votes = {item: votes[item] for item in sorted(votes)}
        settings: dict[str, Any] = {"n_classes": answers.n_classes, "n_workers": answers.n_workers}
        if name == "GLAD":  # it writes files
            settings["dataset"] = Path(tempfile.mkdtemp())
        method = getattr(peerannot.models, name)

        def run() -> Any:
            model = method(votes, **settings)
            if hasattr(model, "run"):
                model.run()
            return model.get_probas()

        seconds, peak, found = time_best(run)
        probability = np.full((answers.n_items, answers.n_classes), 1 / answers.n_classes)
        probability[list(votes)] = np.asarray(found)
        return Found(seconds, peak, probability.argmax(axis=1), probability)

    return fit


def fit_snorkel(answers: Answers) -> Found:
    from snorkel.labeling.model import LabelModel

    matrix = answers.matrix(-1, np.int64)

    def run() -> NDArray[np.float64]:
        model = LabelModel(cardinality=answers.n_classes, verbose=False)
        model.fit(matrix, seed=0, progress_bar=False)
        return np.asarray(model.predict_proba(matrix))

    seconds, peak, probability = time_best(run)
    return Found(seconds, peak, probability.argmax(axis=1), probability)


def fit_cleanlab(answers: Answers) -> Found:
    """CROWDLAB wants the probabilities of a classifier. Here it is one that knows the shares of classes only."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    matrix = answers.matrix(np.nan, float)
    known = np.unique(answers.item)
    matrix = matrix[known]
    shares = np.bincount(answers.label, minlength=answers.n_classes) / len(answers.label)
    chances = np.tile(shares, (len(known), 1))
    seconds, peak, found = time_best(lambda: get_label_quality_multiannotator(matrix, chances, verbose=False))
    labels = np.full(answers.n_items, -1)
    labels[known] = found["label_quality"]["consensus_label"]
    return Found(seconds, peak, labels, None)


class Method(NamedTuple):
    """A method, and the package that it comes from."""

    package: str
    fit: Fit
    quick: bool = False  # to import and to run
    two_classes: bool = False  # is all that it can take


OURS, FLOOR = "consilience, `DawidSkene`", "DuckDB, `mode(label)`"
METHODS = {
    FLOOR: Method("duckdb", fit_duckdb, quick=True),
    OURS: Method("consilience", fit_ours, quick=True),
    "crowd-kit, `DawidSkene`": Method("crowd-kit", fit_crowd_kit("DawidSkene")),
    "crowd-kit, `OneCoinDawidSkene`": Method("crowd-kit", fit_crowd_kit("OneCoinDawidSkene")),
    "crowd-kit, `GLAD`": Method("crowd-kit", fit_crowd_kit("GLAD")),
    "crowd-kit, `MACE`": Method("crowd-kit", fit_crowd_kit("MACE")),
    "crowd-kit, `MMSR`": Method("crowd-kit", fit_crowd_kit("MMSR")),
    "crowd-kit, `KOS`": Method("crowd-kit", fit_crowd_kit("KOS"), two_classes=True),
    "peerannot, `DawidSkene`": Method("peerannot", fit_peerannot("DawidSkene")),
    "peerannot, `GLAD`": Method("peerannot", fit_peerannot("GLAD")),
    "cleanlab, CROWDLAB": Method("cleanlab", fit_cleanlab),
    "snorkel, `LabelModel`": Method("snorkel", fit_snorkel),
}
MISSING, TWO_CLASSES = "not installed", "two classes only"
REASONS = {
    MISSING: "*not installed*: `pip install --group peers` installs all peers (6 GB, with PyTorch and JAX).",
    SLOW: f"*slow*: stopped after {LIMIT} s. Real crowds had {LIMIT} s together, from small to large.",
    LARGE: "*large*: stopped when it held half of the machine's memory.",
    FAILED: "*failed*: it stopped with an error.",
    TWO_CLASSES: "*two classes only*: the method cannot take more.",
}


def find_version(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


class Case(NamedTuple):
    """Answers in a file, and what is said of them."""

    name: str
    file: Path
    n_classes: int


def store_simulated(folder: Path, name: str, n_items: int, n_workers: int, n_classes: int) -> Case:
    """Write a simulated crowd."""
    crowd = Crowd(n_items, n_workers, n_classes)
    item, worker, label = (np.concatenate(parts) for parts in zip(*crowd.draw(), strict=True))
    return store(folder, name, Answers(item, worker, label, n_items, n_workers, n_classes), crowd.truth)


def store_real(folder: Path) -> Iterator[Case]:
    """Write the real crowds that are present, with their rows in random order: ties must not be broken by it."""
    import real_crowds

    for name in REAL:
        if real_crowds.is_present(name):
            stored = real_crowds.load(name)
            r = stored.responses
            assert r is not None
            code = {label: k for k, label in enumerate(r.classes)}
            # A truth that nobody said is a class that no method knows.
            gold = [stored.gold.get(item) for item in r.items.tolist()]
            truth = np.array([-1 if label is None else code.get(label, len(code)) for label in gold])
            order = np.random.default_rng(0).permutation(r.n_responses)
            codes = (column[order] for column in (r.item_of_answer(), r.worker, r.label))
            answers = Answers(*codes, r.n_items, r.n_workers, r.n_classes)
            yield store(folder, name, answers, truth)


def store(folder: Path, name: str, answers: Answers, truth: NDArray[Any]) -> Case:
    """Write answers and truth, -1 where it is not known."""
    file = folder / f"{name.replace(' ', '-')}.npz"
    item, worker, label, *sizes = answers
    codes = {"item": item, "worker": worker, "label": label, "truth": truth}
    np.savez(file, sizes=np.array(sizes), **{key: column.astype(np.int64) for key, column in codes.items()})
    return Case(name, file, answers.n_classes)


def measure_here(method: str, files: list[str]) -> None:
    """Run a method on the answers of some files, and print what it took and how good it is, one line for each."""
    warnings.simplefilter("ignore")
    for file in files:
        with np.load(file) as data:
            answers, truth = (
                Answers(data["item"], data["worker"], data["label"], *data["sizes"].tolist()),
                data["truth"],
            )
        try:
            found = METHODS[method].fit(answers)
            figures = {"seconds": found.seconds, "peak": found.peak, **score(found, truth)}
        except MemoryError:
            figures = {"reason": LARGE}
        except Exception as error:  # an error in another package is a result, not a reason to stop
            figures = {"reason": f"{FAILED}: {type(error).__name__}: {error}"}
        print(json.dumps({"file": file, **figures}), flush=True)


def score(found: Found, truth: NDArray[np.int64]) -> dict[str, float | None]:
    """Return accuracy and log loss on the items whose truth is known."""
    known = truth >= 0
    accuracy = float(np.mean(found.labels[known] == truth[known]))
    if found.probability is None or not np.isfinite(found.probability).all():
        return {"accuracy": accuracy, "log_loss": None}
    probability = np.column_stack([found.probability, np.zeros(len(truth))])
    of_truth = probability[known, np.minimum(truth[known], found.probability.shape[1])]
    return {"accuracy": accuracy, "log_loss": float(-np.log(np.maximum(of_truth, CLIP)).mean())}


def measure(method: str, cases: list[Case], seconds: float) -> dict[str, dict[str, Any]]:
    """Return the figures of a method on each case, or {"reason": why there are none}."""
    if find_version(METHODS[method].package) is None:
        return {case.name: {"reason": MISSING} for case in cases}
    fitting = [case for case in cases if case.n_classes == 2 or not METHODS[method].two_classes]
    figures = {case.name: {"reason": TWO_CLASSES} for case in cases if case not in fitting}
    if not fitting:
        return figures
    arguments = ("--one", method, *(case.file for case in fitting))
    found, reason = measure_alone(__file__, *arguments, seconds=seconds, memory=half_of_memory())
    for case, line in zip(fitting, found, strict=False):
        figures[case.name] = line
    return figures | {case.name: {"reason": reason} for case in fitting[len(found) :]}


def compare_speed(case: Case, methods: list[str], quick: bool = False) -> str:
    """Return the table of one simulated crowd."""
    if not quick:
        measure(OURS, [case], LIMIT)  # compiles, and keeps what it compiled on disk
    rows = {method: measure(method, [case], LIMIT)[case.name] for method in methods}
    base = rows[OURS]["seconds"]
    lines = ["| method | time | ratio | peak memory | accuracy | log loss |", "|---|--:|--:|--:|--:|--:|"]
    stopped: dict[str, list[str]] = {}
    for method, row in rows.items():
        if "reason" in row:
            stopped.setdefault(show_reason(row["reason"]), []).append(method.replace(", ", " "))
        else:
            seconds, loss = row["seconds"], row["log_loss"]
            time = f"{seconds * 1e3:,.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
            ratio = seconds / base
            lines.append(
                f"| {method} | {time} | {ratio:,.{0 if ratio > 9.5 else 1}f}x | {row['peak'] / 1e6:,.0f} MB "
                f"| {row['accuracy']:.4f} | {'none' if loss is None else f'{loss:.3f}'} |"
            )
    if stopped:
        lines += ["", "; ".join(f"{reason}: {', '.join(methods)}" for reason, methods in stopped.items()) + "."]
    return "\n".join(lines)


def show_reason(reason: str) -> str:
    """Return a reason as tables show it; errors are told on the terminal."""
    return f"*{reason.split(':')[0]}*"


def compare_quality(cases: list[Case], methods: list[str]) -> str:
    """Return tables of accuracy and log loss on real crowds, a few crowds in each."""
    rows = {method: measure(method, cases, LIMIT) for method in methods}
    parts = []
    for first in range(0, len(cases), SETS_PER_TABLE):
        names = [case.name for case in cases[first : first + SETS_PER_TABLE]]
        lines = [f"| accuracy / log loss | {' | '.join(names)} |", f"|---|{':-:|' * len(names)}"]
        for method, row in rows.items():
            lines.append(f"| {method} | {' | '.join(show_quality(row[name]) for name in names)} |")
        parts.append("\n".join(lines))
    for method, row in rows.items():
        for name, figures in row.items():
            if figures.get("reason", "").startswith(FAILED):
                print(f"{method} on {name} {figures['reason']}", file=sys.stderr)
    return "\n\n".join(parts)


def show_quality(figures: dict[str, Any]) -> str:
    """Return one cell."""
    if "reason" in figures:
        return show_reason(figures["reason"])
    loss = "none" if figures["log_loss"] is None else f"{figures['log_loss']:.2f}"
    return f"{figures['accuracy']:.3f} / {loss}"


def list_versions() -> str:
    """Return the packages with their versions, and those that are missing."""
    packages = sorted({method.package for method in METHODS.values()} - {"consilience"})
    found = {package: find_version(package) for package in packages}
    return ", ".join(f"{package} {number or 'not installed'}" for package, number in found.items())


def tell_missing() -> None:
    """Say on the terminal which peers are left out, and how to install them."""
    packages = {*CHAIN_PEERS, *(method.package for method in METHODS.values())}
    if missing := sorted(package for package in packages if find_version(package) is None):
        print(
            f"Not installed, and left out: {', '.join(missing)}. To install them (6 GB, with PyTorch and JAX): "
            f"{sys.executable} -m pip install --group peers",
            file=sys.stderr,
        )


def report(quick: bool = False) -> str:
    """Return all tables as Markdown."""
    methods = [name for name, method in METHODS.items() if method.quick or not quick]
    parts = [
        "## Peers",
        f"All methods that are installed ({list_versions()}), with default parameters, on the same answers. Each runs "
        "in a process of its own.",
        "- *Time* is from the answers, in the form that a method takes, to labels and probabilities. The form is a "
        "pandas table for crowd-kit and consilience, an Arrow table for DuckDB, nested dictionaries for peerannot, and "
        "a matrix for cleanlab and snorkel. Our time includes validation and calibration. It is the best of three "
        "runs, but there is only one if it takes more than 5 s.\n"
        "- *Ratio* is to our time.\n"
        "- *Peak memory* is that of the whole process (VmHWM), with all that it has imported.\n"
        "- CROWDLAB needs a classifier. Here it gets one that knows only the shares of the labels.",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, sizes in (QUICK if quick else CROWDS).items():
            case = store_simulated(folder, title, *sizes)
            n_items, n_workers, n_classes = sizes
            parts += [
                f"{title}, simulated: {n_items:,} items, M={n_workers:,}, K={n_classes}.",
                compare_speed(case, methods, quick),
            ]
        cases = [] if quick else list(store_real(folder))
        if cases:
            parts += [
                "Accuracy and log loss on real crowds. No probability counts as less than 1e-12, and *none* is said of "
                "methods that give no probabilities. DuckDB breaks ties arbitrarily. The [league table](league.md) has "
                "four more methods of crowd-kit.",
                compare_quality(cases, [method for method in methods if method not in IN_LEAGUE]),
            ]
    text = "\n\n".join(parts)
    notes = [f"- {note}" for reason, note in REASONS.items() if f"*{reason}*" in text]
    if notes:
        text += "\n\nWords in place of a figure:\n\n" + "\n".join(notes)
    return text + "\n"


def main() -> None:
    """Print the report, or measure one method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small crowd, and the peers that are quick to import")
    parser.add_argument("--one", nargs="+", metavar=("METHOD", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure_here(arguments.one[0], arguments.one[1:])
    else:
        tell_missing()
        print(report(arguments.quick))


if __name__ == "__main__":
    main()
