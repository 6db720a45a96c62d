"""Fingerprints of results: whether a change of the code leaves all labels and numbers as they were, bit for bit.

Record before and after the change, and compare:

    python benchmarks/fingerprints.py record before.json                   # about three minutes
    python benchmarks/fingerprints.py record after.json
    python benchmarks/fingerprints.py compare before.json after.json       # exits with 1 if anything differs
    python benchmarks/fingerprints.py record some.json --only '^disk/'     # only runs whose name matches

Each run is a fit, or a few, by way of the public names and the command line only, so that all else may move. What it
results in is kept as SHA-256 hashes by name: {run: {what: hash}}. An error is the result {"error": ...} of its run.
Wording is kept apart, and compared without consequences: warnings as they are, and hashes of explanations.

To compare two versions of the package, name its folder in PYTHONPATH. Recordings of different machines, or with other
versions of numpy, need not be the same: sums may be rounded in other ways.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from numpy.typing import NDArray

import consilience as cs
from rounds import campaign

EXAMPLES = Path(__file__).parents[1] / "examples"
Results = dict[str, Any]
RUNS: dict[str, Callable[[], Results]] = {}

# What a fitted model may have. Models that have no such attribute, or not after such a fit, are recorded without it.
ATTRIBUTES = (
    *("labels_", "posterior_", "uncalibrated_posterior_", "classes_"),
    *("prior_", "confusion_", "sequential_confusion_", "transition_", "initial_"),
    *("coupling_", "smoothing_", "power_", "trace_", "n_iter_"),
    *("converged_", "copies_"),
    *("comparison_", "graph_check_"),
)
EXPLANATIONS = ("explain_calibration", "explain_coupling", "explain_features")
# What is said in words, by name.
WORDING = re.compile(r"\b(words|describe|explain_\w+|json\.calibration)\b")
# What the command prints that is no result: times, and settings.
NO_RESULTS = ("seconds", "parameters", "store", "warnings")
# Warnings about code, and not about results.
ABOUT_CODE = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning, ImportWarning)
# So many answers are not read into memory (more than 200,000), and so many are in two partitions (more than 2,097,152).
LARGE, HUGE = 204_000, 2_150_000


# Hashes


def digest(*parts: object) -> str:
    """Return the hash of some texts and bytes."""
    found = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


def hash_all(what: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the hash of each part of a result."""
    if isinstance(value, Path):
        yield from hash_files(what, value)
    elif hasattr(value, "worker_report"):
        yield from hash_model(what, value)
    elif is_record(value):
        yield from hash_parts(what, list_fields(value))
    elif isinstance(value, Mapping):
        yield from hash_parts(what, value)
    elif isinstance(value, np.ndarray):
        yield what, hash_array(value)
    elif hasattr(value, "__arrow_c_stream__"):
        yield from hash_frame(what, value)
    else:
        yield what, digest(repr(plain(value)))


def hash_parts(what: str, parts: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name, part in parts.items():
        yield from hash_all(f"{what}.{name}".strip("."), part)


def hash_model(what: str, model: Any) -> Iterator[tuple[str, str]]:
    """Yield the hashes of all that a fitted model tells."""
    found: Results = {}
    for name in ATTRIBUTES:
        with contextlib.suppress(Exception):
            found[name] = getattr(model, name)
    for name in (*EXPLANATIONS, "to_frame", "worker_report"):
        with contextlib.suppress(Exception):
            found[name] = getattr(model if hasattr(model, name) else model.result_, name)()
    yield from hash_parts(what, found)


def hash_array(array: NDArray[Any]) -> str:
    """Return the hash of an array: of its bytes, unless it holds texts or objects."""
    values = repr(plain(array.tolist())) if array.dtype.kind in "OUST" else np.ascontiguousarray(array).tobytes()
    kind = "O" if array.dtype.kind in "OUST" else array.dtype.kind
    return digest(kind, array.shape, values)


def hash_frame(what: str, frame: Any) -> Iterator[tuple[str, str]]:
    """Yield the hashes of the columns of a table of any library, with their types, and one of their names."""
    table = pa.table(frame)
    yield f"{what}.columns", digest(type(frame).__module__.split(".")[0], *table.column_names)
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield f"{what}.{name}", digest(column.type, repr(plain(column.to_pylist())))


def hash_files(what: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the hashes of a file, or of all files in a folder: of the values of Arrow's formats, of other bytes."""
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.is_file():
                yield from hash_files(f"{what}/{each.relative_to(path).as_posix()}", each)
    elif path.suffix == ".parquet":
        yield from hash_frame(what, pa.parquet.read_table(path))
    elif path.suffix == ".arrow":
        yield from hash_frame(what, pa.feather.read_table(path))
    else:
        yield what, digest(path.read_bytes())


def is_record(value: Any) -> bool:
    return not isinstance(value, type) and (is_dataclass(value) or hasattr(value, "_asdict"))


def list_fields(record: Any) -> Results:
    """Return what a tuple or dataclass tells, properties included; what is worked out by methods is left out."""
    names = [name for name in dir(record) if not name.startswith("_")]
    found = {name: getattr(record, name) for name in names}
    return {name: value for name, value in found.items() if not callable(value)}


def plain(value: Any) -> Any:
    """Return a value as numbers, texts and lists of Python, whose text is always the same."""
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {plain(name): plain(each) for name, each in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no fingerprint")


# Data


def draw_truth(n_items: int, n_classes: int = 3, *, stay: float = 0.0, seed: int = 0) -> NDArray[np.int64]:
    """Return true classes; each is that of the item before it with a given probability."""
    rng = np.random.default_rng([seed, 1])
    truth = rng.integers(0, n_classes, n_items)
    last_drawn = np.where(rng.random(n_items) >= stay, np.arange(n_items), 0)
    return truth[np.maximum.accumulate(last_drawn)]


def draw_answers(
    truth: NDArray[np.int64], n_workers: int = 12, per_item: int = 5, *, length: int | None = None, seed: int = 0
) -> pa.Table:
    """Return answers about items, or about sequences of a given length, each of which has the same workers."""
    rng = np.random.default_rng([seed, 2])
    item = np.arange(len(truth))
    owner = item // (length or 1)
    teams = rng.random((owner[-1] + 1, n_workers)).argsort(axis=1)[:, :per_item]
    worker, item = teams[owner].ravel(), np.repeat(item, per_item)
    right = rng.random(len(item)) < rng.uniform(0.4, 0.95, n_workers)[worker]
    label = np.where(right, truth[item], rng.integers(0, truth.max() + 1, len(item)))
    keys = (
        {"item": name_codes("i", item)} if length is None else {"sequence": item // length, "position": item % length}
    )
    return pa.table({**keys, "worker": name_codes("w", worker), "label": name_codes("c", label)})


def name_codes(letter: str, codes: NDArray[np.int64]) -> pa.Array:
    names = pa.array([f"{letter}{code}" for code in range(codes.max() + 1)])
    return names.take(pa.array(codes))


def pick(table: pa.Table, rows: Any) -> pa.Table:
    """Return some rows, by a mask or by numbers."""
    rows = np.asarray(rows)
    return table.filter(pa.array(rows)) if rows.dtype == bool else table.take(pa.array(rows))


@cache
def table() -> pa.Table:
    return draw_answers(draw_truth(400))


@cache
def tagged_table() -> pa.Table:
    return draw_answers(draw_truth(600, stay=0.7), 8, 4, length=12)


@cache
def large_table(length: int | None = None) -> pa.Table:
    """Return answers of which there are too many to be read into memory, in another order."""
    answers = draw_answers(draw_truth(LARGE // 6, 4, stay=0.6 if length else 0.0), 25, 6, length=length, seed=5)
    return pick(answers, np.random.default_rng(5).permutation(len(answers)))


@cache
def copied_table() -> pa.Table:
    return with_copies(draw_answers(draw_truth(1500), 8, 5, seed=6))


def with_copies(answers: pa.Table) -> pa.Table:
    """Return answers beside which two workers repeat nearly all of another's, so that the three are near-copies."""
    rng = np.random.default_rng(7)
    own = pick(answers, np.array(answers["worker"].to_pylist()) == "w1")
    label = np.array(own["label"].to_pylist(), dtype=object)
    copies = []
    for name in ("x1", "x2"):
        said = np.where(rng.random(len(label)) < 0.03, "c0", label)
        columns = {"worker": pa.array([name] * len(own)), "label": pa.array(said.tolist())}
        copies.append(pa.table({**{key: own[key] for key in own.column_names}, **columns}))
    return pa.concat_tables([answers, *copies])


def name_truth(truth: NDArray[np.int64], items: Any) -> dict[Any, Any]:
    """Return the known labels of some items."""
    return {f"i{item}": f"c{truth[item]}" for item in items}


def known(n: int = 30) -> dict[Any, Any]:
    return name_truth(draw_truth(400), range(n))


def partly_random() -> pa.Table:
    """Return known labels of items, some of which were drawn at random."""
    labels = known(60)
    drawn = [n % 3 == 0 for n in range(60)]
    return pa.table({"item": list(labels), "label": list(labels.values()), "random": drawn})


def known_tags() -> dict[Any, Any]:
    truth = draw_truth(600, stay=0.7)
    return {(n // 12, n % 12): f"c{truth[n]}" for n in range(0, 120, 5)}


def describe_items() -> NDArray[np.float64]:
    """Return numbers that tell something about the classes of the items of `table`."""
    noise = np.random.default_rng(3).standard_normal((400, 3))
    return np.array([[2.0, 0, 1], [0, 2, 1], [1, 1, 0]])[draw_truth(400)] + noise


def guess_items() -> pa.Table:
    """Return class probabilities of some items of `table` before any answer."""
    guesses = np.random.default_rng(4).dirichlet(np.ones(3), 100)
    return pa.table({"item": [f"i{n}" for n in range(100)], **{f"p(c{k})": guesses[:, k] for k in range(3)}})


# What fits are given: responses, and graph, gold, features or priors.


def plain_items() -> Results:
    return {"responses": table()}


def simulated_items() -> Results:
    crowd = cs.simulate.independent(
        500, 15, 4, answers_per_item=5, spammers=2, adversaries=1, hard=0.05, activity="unequal", seed=1
    )
    return {"responses": crowd.responses}


def weighted_items() -> Results:
    weight = np.random.default_rng(1).choice([0.25, 0.5, 1.0], len(table()))
    answers = table().append_column("weight", pa.array(weight))
    return {"responses": cs.Answers.from_frame(answers, weight="weight")}


def spread_items() -> Results:
    """Workers who answered an item more than once, so that each answer counts in part."""
    again = pick(draw_answers(draw_truth(400), seed=9), np.arange(2000) % 3 == 0)
    return {"responses": cs.Answers.from_frame(pa.concat_tables([table(), again]), duplicates="mean")}


def soft_items() -> Results:
    rng = np.random.default_rng(2)
    truth = draw_truth(300)
    votes = np.stack([rng.dirichlet(4 * np.eye(3)[each] + 1, 6) for each in truth])
    votes[rng.random((300, 6)) < 0.3] = np.nan
    return {"responses": cs.Answers.from_probabilities(votes, classes=["c0", "c1", "c2"], rescale=True)}


def silent_items() -> Results:
    """Labelling functions, which speak of few items."""
    rng = np.random.default_rng(6)
    truth = draw_truth(800, 3)
    speaks = rng.random((800, 9)) < 0.35
    said = np.where(rng.random((800, 9)) < 0.75, truth[:, None], rng.integers(0, 3, (800, 9)))
    votes = np.where(speaks & (said > 0), said, -1)
    names = ["none", "ham", "spam"]
    responses = cs.Answers.from_matrix(votes, labels=names, abstain="answer", background="none")
    return {"responses": responses}


def odd_items() -> Results:
    """A label that is no class, a class that nobody said, and items that nobody answered."""
    names = ["i399", *(f"i{n}" for n in range(420))]
    items = list(dict.fromkeys(names))
    return {"responses": cs.Answers.from_frame(table(), classes=["c0", "c1", "c9"], items=items)}


def lone_worker() -> Results:
    one = pick(table(), np.array(table()["worker"].to_pylist()) == "w3")
    return {"responses": one}


def one_class() -> Results:
    return {"responses": table().set_column(2, "label", pa.array(["c0"] * len(table())))}


def many_items() -> Results:
    """Answers of several blocks."""
    return {"responses": large_table()}


def known_items() -> Results:
    return {"responses": table(), "gold": known()}


def partly_known_items() -> Results:
    return {"responses": table(), "gold": partly_random()}


def described_items() -> Results:
    return {"responses": table(), "features": describe_items()}


def guessed_items() -> Results:
    return {"responses": table(), "item_prior": guess_items()}


def plain_tags() -> Results:
    return {"responses": tagged_table()}


def simulated_tags() -> Results:
    crowd = cs.simulate.sequences(50, (3, 25), 8, 4, answers_per_item=4, stickiness=0.6, spammers=1, seed=2)
    return {"responses": crowd.responses}


def known_labels_of_tags() -> Results:
    return {"responses": tagged_table(), "gold": known_tags()}


def bio_tags() -> Results:
    return {"responses": cs.simulate.spans(80, 5, readers=3, seed=1).spans.to_responses()}


def silent_tags() -> Results:
    """Workers who mark what is no background, in sequences that are longer than what was marked."""
    said = pick(tagged_table(), np.array(tagged_table()["label"].to_pylist()) != "c0")
    items = {"sequence": np.repeat(np.arange(50), 13), "position": np.tile(np.arange(13), 50)}
    classes = ["c0", "c1", "c2"]
    responses = cs.Answers.from_frame(said, classes=classes, items=items, abstain="answer", background="c0")
    return {"responses": responses}


def weighted_tags() -> Results:
    weight = np.random.default_rng(1).choice([0.25, 0.5, 1.0], len(tagged_table()))
    answers = tagged_table().append_column("weight", pa.array(weight))
    return {"responses": cs.Answers.from_frame(answers, weight="weight")}


@cache
def draw_network() -> tuple[cs.Graph, pa.Table, NDArray[np.int64]]:
    """Return a network, answers about most of its items, and the truth."""
    crowd = cs.simulate.network(400, 6, 3, degree=6, homophily=0.85, seed=3)
    truth = np.asarray(crowd.truth)
    answers = draw_answers(truth, 8, 3, seed=3)
    item = np.repeat(np.arange(400), 3)
    numbered = answers.set_column(0, "item", pa.array(item))
    return crowd.graph, pick(numbered, item % 8 > 0), truth


def network() -> Results:
    graph, answers, _ = draw_network()
    return {"responses": cs.Answers.from_frame(answers, items=np.arange(400)), "graph": graph}


def known_network() -> Results:
    truth = draw_network()[2]
    return {**network(), "gold": {n: f"c{truth[n]}" for n in range(0, 400, 16)}}


def weighted_network() -> Results:
    """Edges with weights, between those of nearest neighbours and those of a network."""
    source, target = np.arange(399), np.arange(1, 400)
    weight = np.random.default_rng(8).uniform(0.2, 3, 399)
    graph = cs.Graph.from_edges(source, target, weight=weight, items=np.arange(400))
    return {**network(), "graph": graph}


def neighbours() -> Results:
    graph = cs.Graph.knn(describe_items(), k=5, items=[f"i{n}" for n in range(400)])
    return {"responses": table(), "graph": graph}


def described_network() -> Results:
    features = np.eye(3)[draw_network()[2]] + np.random.default_rng(3).standard_normal((400, 3))
    return {**network(), "features": features}


# Fits of single models


def confusions() -> NDArray[np.float64]:
    """Return confusion matrices to start from, for the twelve workers of `table`."""
    return np.tile(0.6 * np.eye(3) + 0.4 / 3, (12, 1, 1))


Choice = tuple[Callable[[], Results], Callable[[], Any]]
FITS: dict[str, Choice] = {
    "vote/random": (plain_items, lambda: cs.MajorityVote(ties="random", seed=3)),
    "vote/first": (plain_items, lambda: cs.MajorityVote(ties="first")),
    "vote/weights": (weighted_items, cs.MajorityVote),
    "vote/soft": (soft_items, cs.MajorityVote),
    "vote/silence": (silent_items, cs.MajorityVote),
    "vote/odd": (odd_items, cs.MajorityVote),
    "vote/gold": (known_items, cs.MajorityVote),
    "vote/sequences": (plain_tags, cs.MajorityVote),
    "dawid-skene/default": (plain_items, cs.DawidSkene),
    "dawid-skene/simulated": (simulated_items, cs.DawidSkene),
    "dawid-skene/em": (plain_items, lambda: cs.DawidSkene(estimation="em")),
    "dawid-skene/one-coin": (plain_items, lambda: cs.DawidSkene(workers="one-coin")),
    "dawid-skene/one-coin-em": (simulated_items, lambda: cs.DawidSkene(workers="one-coin", estimation="em")),
    "dawid-skene/sequential": (plain_tags, lambda: cs.DawidSkene(workers="sequential")),
    "dawid-skene/start-moments": (plain_items, lambda: cs.DawidSkene(start="moments")),
    "dawid-skene/start-best": (simulated_items, lambda: cs.DawidSkene(start="best", estimation="em")),
    "dawid-skene/start-array": (plain_items, lambda: cs.DawidSkene(start=confusions())),
    "dawid-skene/start-model": (plain_items, lambda: cs.DawidSkene(start=cs.MajorityVote().fit(table()))),
    "dawid-skene/n-init": (simulated_items, lambda: cs.DawidSkene(n_init=4, seed=5)),
    "dawid-skene/prior-uniform": (plain_items, lambda: cs.DawidSkene(prior="uniform")),
    "dawid-skene/prior-given": (plain_items, lambda: cs.DawidSkene(prior=[0.5, 0.3, 0.2])),
    "dawid-skene/smoothing-pair": (plain_items, lambda: cs.DawidSkene(smoothing=(0.3, 2.0))),
    "dawid-skene/smoothing-number": (plain_items, lambda: cs.DawidSkene(smoothing=0.5, estimation="em")),
    "dawid-skene/smoothing-array": (plain_items, lambda: cs.DawidSkene(smoothing=np.eye(3) + 0.2)),
    "dawid-skene/calibration-none": (plain_items, lambda: cs.DawidSkene(calibration="none")),
    "dawid-skene/calibration-number": (plain_items, lambda: cs.DawidSkene(calibration=0.6)),
    "dawid-skene/calibration-gold": (known_items, lambda: cs.DawidSkene(calibration="gold")),
    "dawid-skene/steps": (plain_items, lambda: cs.DawidSkene(tol=0, max_iter=7)),
    "dawid-skene/no-steps": (plain_items, lambda: cs.DawidSkene(max_iter=0)),
    "dawid-skene/gold": (known_items, cs.DawidSkene),
    "dawid-skene/gold-partly-random": (partly_known_items, cs.DawidSkene),
    "dawid-skene/weights": (weighted_items, cs.DawidSkene),
    "dawid-skene/duplicates": (spread_items, cs.DawidSkene),
    "dawid-skene/soft": (soft_items, cs.DawidSkene),
    "dawid-skene/silence": (silent_items, cs.DawidSkene),
    "dawid-skene/odd": (odd_items, cs.DawidSkene),
    "dawid-skene/odd-em": (odd_items, lambda: cs.DawidSkene(estimation="em")),
    "dawid-skene/lone-worker": (lone_worker, cs.DawidSkene),
    "dawid-skene/one-class": (one_class, cs.DawidSkene),
    "dawid-skene/features": (described_items, cs.DawidSkene),
    "dawid-skene/item-prior": (guessed_items, cs.DawidSkene),
    "dawid-skene/blocks": (many_items, cs.DawidSkene),
    "moments/default": (plain_items, cs.MomentMatching),
    "moments/simulated": (simulated_items, lambda: cs.MomentMatching(shrinkage=5.0, max_iter=50)),
    "moments/prior": (plain_items, lambda: cs.MomentMatching(prior=[0.4, 0.3, 0.3])),
    "moments/gold": (known_items, cs.MomentMatching),
    "hidden-markov/default": (plain_tags, cs.HiddenMarkov),
    "hidden-markov/simulated": (simulated_tags, cs.HiddenMarkov),
    "hidden-markov/em": (plain_tags, lambda: cs.HiddenMarkov(coupling=1.0, estimation="em")),
    "hidden-markov/marginal": (plain_tags, lambda: cs.HiddenMarkov(coupling=0.5, decode="marginal")),
    "hidden-markov/sequential": (plain_tags, lambda: cs.HiddenMarkov(coupling=0.5, workers="sequential")),
    "hidden-markov/one-coin": (plain_tags, lambda: cs.HiddenMarkov(coupling=0.25, workers="one-coin")),
    "hidden-markov/start-moments": (simulated_tags, lambda: cs.HiddenMarkov(coupling=1.0, start="moments")),
    "hidden-markov/start-best": (simulated_tags, lambda: cs.HiddenMarkov(coupling=1.0, start="best", n_init=2)),
    "hidden-markov/bio": (bio_tags, lambda: cs.HiddenMarkov(transitions="bio")),
    "hidden-markov/transitions": (plain_tags, lambda: cs.HiddenMarkov(transitions=~np.eye(3, k=1, dtype=bool))),
    "hidden-markov/gold": (known_labels_of_tags, cs.HiddenMarkov),
    "hidden-markov/silence": (silent_tags, lambda: cs.HiddenMarkov(coupling=0.5)),
    "hidden-markov/weights": (weighted_tags, lambda: cs.HiddenMarkov(coupling=0.5, calibration=0.7)),
    "markov-field/default": (network, cs.MarkovField),
    "markov-field/em": (network, lambda: cs.MarkovField(coupling=0.4, estimation="em")),
    "markov-field/icm": (network, lambda: cs.MarkovField(coupling=0.4, inference="icm")),
    "markov-field/propagation": (network, lambda: cs.MarkovField(coupling=0.4, inference="belief_propagation")),
    "markov-field/propagation-learn": (weighted_network, lambda: cs.MarkovField(inference="belief_propagation")),
    "markov-field/paper": (network, lambda: cs.MarkovField(coupling="paper", inference="icm", estimation="em")),
    "markov-field/unanswered": (network, lambda: cs.MarkovField(coupling=0.5, listeners="unanswered")),
    "markov-field/start-dawid-skene": (network, lambda: cs.MarkovField(coupling=0.3, start="dawid-skene")),
    "markov-field/one-coin": (network, lambda: cs.MarkovField(coupling=0.3, workers="one-coin", n_init=2)),
    "markov-field/gold": (known_network, cs.MarkovField),
    "markov-field/weights": (weighted_network, cs.MarkovField),
    "markov-field/knn": (neighbours, lambda: cs.MarkovField(calibration="none")),
    "markov-field/features": (described_network, lambda: cs.MarkovField(coupling=0.3)),
}


def fit(data: Callable[[], Results], model: Callable[[], Any]) -> Results:
    given = data()
    return {"": model().fit(given.pop("responses"), **given)}


RUNS.update({name: partial(fit, *choice) for name, choice in FITS.items()})


def run(name: str) -> Callable[[Callable[[], Results]], Callable[[], Results]]:
    """Register a run by its name."""

    def register(function: Callable[[], Results]) -> Callable[[], Results]:
        RUNS[name] = function
        return function

    return register


# One call from answers to labels


def fuse(source: Any, **given: Any) -> Results:
    return {"": cs.fuse(source, **given)}


def fuse_example(name: str, **given: Any) -> Results:
    return fuse(f"examples/{name}", **given)


def fuse_spans(name: str) -> Results:
    """Fuse spans of an annotation tool; return what is found as a table and as the tool has it."""
    spans = cs.read_spans(f"examples/{name}")
    fused = cs.fuse(spans)
    found = fused.to_span_set()
    written = "fused" + (Path(name).suffix or "")
    cs.write_spans(found, written)
    return {
        "": fused,
        "spans": fused.to_spans(),
        "set": found.to_frame(),
        "read": spans.to_frame(),
        "file": Path(written),
        "agreement": cs.metrics.span_agreement(spans),
    }


RUNS |= {
    "fuse/copies": lambda: fuse(copied_table()),
    "fuse/copies-vote": lambda: fuse(copied_table(), model="majority"),
    "fuse/copies-moments": lambda: fuse(copied_table(), model="moments"),
    "fuse/copies-sequences": lambda: fuse(with_copies(tagged_table()), coupling=0.5),
    "fuse/large": lambda: fuse(large_table()),
    "fuse/pandas": lambda: fuse(table().to_pandas(), estimation="em"),
    "fuse/model": lambda: fuse(table(), model=cs.DawidSkene(workers="one-coin"), gold=known()),
    "fuse/soft": lambda: fuse(soft_items()["responses"]),
    "fuse/silence": lambda: fuse(silent_items()["responses"]),
    "fuse/sequences": lambda: fuse(tagged_table(), gold=known_tags()),
    "fuse/features": lambda: fuse(table(), features=describe_items(), item_prior=None),
    "fuse/network": lambda: fuse(network()["responses"], graph=draw_network()[0]),
    "fuse/network-gold": lambda: fuse(network()["responses"], graph=draw_network()[0], gold=known_network()["gold"]),
    "fuse/shuffled-network": lambda: fuse(network()["responses"], graph=draw_network()[0].shuffled(1)),
    "examples/mturk": lambda: fuse_example("mturk.csv"),
    "examples/toloka": lambda: fuse_example("toloka.tsv"),
    "examples/judges": lambda: fuse_example("judges.csv"),
    "examples/judges-gold": lambda: fuse_example("judges.csv", gold="examples/judges_gold.csv"),
    "examples/functions": lambda: fuse_example("functions.npy", abstain="answer", background=0),
    "examples/functions-ignored": lambda: fuse_example("functions.npy"),
    "examples/label-studio": lambda: fuse_spans("label_studio.json"),
    "examples/prodigy": lambda: fuse_spans("prodigy.jsonl"),
    "examples/doccano": lambda: fuse_spans("doccano/"),
    "examples/brat": lambda: fuse_spans("brat/"),
    "examples/conll": lambda: fuse_spans("conll/"),
}


@run("fuse/polars")
def fuse_polars() -> Results:
    import polars as pl

    return fuse(pl.from_arrow(table()), gold=known(10))


@run("fuse/spans")
def fuse_simulated_spans() -> Results:
    project = cs.simulate.spans(120, n_workers=5, readers=4, seed=0)
    fused = cs.fuse(project.spans)
    blind = cs.fuse(project.spans, model="dawid-skene", estimation="em")
    return {
        "": fused,
        "spans": fused.to_spans(),
        "evaluation": cs.evaluate(fused, project.truth).to_dict(),
        "independent": blind,
        "independent.spans": blind.to_spans(),
    }


@run("fuse/spans-gold")
def fuse_known_spans() -> Results:
    project = cs.simulate.spans(60, n_workers=4, seed=3)
    fused = cs.fuse(project.spans, gold=project.truth)
    return {"": fused, "spans": fused.to_spans()}


@run("examples/probabilities")
def fuse_probabilities() -> Results:
    read = pa.csv.read_csv("examples/probabilities.csv")
    classes = ["cat", "dog", "fox"]
    items, workers = (list(dict.fromkeys(read[name].to_pylist())) for name in ("image", "classifier"))
    votes = np.stack([read[name].to_numpy() for name in classes], axis=1).reshape(len(items), len(workers), 3)
    soft = cs.Answers.from_probabilities(votes, classes=classes, items=items, workers=workers, rescale=True)
    fused = cs.fuse(soft)
    return {"": fused, "evaluation": cs.evaluate(fused, "examples/animals.csv").to_dict()}


def show_masks(fused: Any) -> Results:
    found = fused.to_masks()
    return {"": fused, "masks": dict(found), "confidence": dict(found.confidence)}


@run("examples/masks")
def fuse_masks() -> Results:
    fused = cs.fuse("examples/masks")
    cs.write_masks(fused.to_masks(), "fused")
    return {**show_masks(fused), "files": Path("fused")}


@run("fuse/masks")
def fuse_drawn_masks() -> Results:
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:30, :30]

    def outline(size: float) -> NDArray[np.uint8]:
        middle = rng.normal(15, 0.7, 2)
        return (np.hypot(row - middle[0], column - middle[1]) < size).astype(np.uint8)

    arrays = {f"scan-{i}": {f"reader-{k}": outline(7 + i + 0.5 * k) for k in range(4)} for i in range(2)}
    masks = cs.Masks.from_arrays(arrays, classes={0: "healthy", 1: "lesion"})
    return {**show_masks(cs.fuse(masks)), "vote": cs.fuse(masks, model="majority").posterior_}


@run("fuse/drift")
def fuse_with_order() -> Results:
    order = np.arange(len(table()))
    worker = np.array(table()["worker"].to_pylist())
    label = np.array(table()["label"].to_pylist())
    label[(worker == "w2") & (order > 900) & (order % 2 == 0)] = "c0"
    answers = {"item": table()["item"], "worker": worker, "label": label, "minute": order}
    fused = cs.fuse(cs.Answers.from_frame(pa.table(answers), order="minute"))
    return {"": fused, "drift": fused.drift_report()}


# Other items, hidden answers, known labels, and what to ask next


def predict(model: Any, responses: Any, **given: Any) -> Results:
    return {
        "labels": model.predict(responses, **given),
        "probabilities": model.predict_proba(responses, **given),
        "frame": model.predict(responses, as_frame=True, **given),
    }


@run("predict/items")
def predict_items() -> Results:
    other = draw_answers(draw_truth(90, seed=2), 14, 4, seed=2)  # two of the workers are new
    gold = name_truth(draw_truth(90, seed=2), range(5))
    found: Results = {}
    for name in ("MajorityVote", "DawidSkene", "MomentMatching"):
        model = getattr(cs, name)().fit(table())
        found |= {name: predict(model, other, gold=gold), f"{name}.score": model.score(other)}
    return found


@run("predict/kinds-of-answers")
def predict_kinds() -> Results:
    kinds = {"weights": weighted_items, "soft": soft_items, "silence": silent_items, "odd": odd_items}
    found: Results = {}
    for name, data in kinds.items():
        responses = data()["responses"]
        model = cs.DawidSkene().fit(responses)
        found |= {name: predict(model, responses), f"{name}.score": model.score(responses)}
    return found


@run("predict/sequences")
def predict_sequences() -> Results:
    other = draw_answers(draw_truth(120, stay=0.7, seed=2), 8, 3, length=12, seed=2)
    found: Results = {}
    for workers in ("confusion", "sequential"):
        model = cs.HiddenMarkov(coupling=0.5, workers=workers).fit(tagged_table())
        found |= {workers: predict(model, other), f"{workers}.score": model.score(other)}
    return found


@run("predict/network")
def predict_network() -> Results:
    model = cs.MarkovField(coupling=0.4).fit(**network())
    given = network()
    return {"": predict(model, given["responses"], graph=given["graph"]), "score": model.score(**given)}


@run("predict/features")
def predict_features() -> Results:
    model = cs.DawidSkene().fit(table(), features=describe_items())
    return {
        "": predict(model, table(), features=describe_items()),
        "unanswered": model.predict(None, features=describe_items()[:20]),
        "disagreements": model.disagreements(10),
    }


@run("held-out/models")
def score_held_out() -> Results:
    models = {"vote": cs.MajorityVote(), "dawid-skene": cs.DawidSkene(), "moments": cs.MomentMatching()}
    return {name: cs.held_out_score(model, table(), fraction=0.2, seed=1) for name, model in models.items()}


@run("held-out/structures")
def score_held_out_structures() -> Results:
    return {
        "sequences": cs.held_out_score(cs.HiddenMarkov(coupling=0.5), tagged_table(), gold=known_tags()),
        "network": cs.held_out_score(cs.MarkovField(coupling=0.4), **network()),
        "features": cs.held_out_score(cs.DawidSkene(), table(), features=describe_items()),
    }


@run("graph/check")
def check_graph() -> Results:
    given = network()
    return {"": cs.fuse(given["responses"], given["graph"], coupling=0.4).graph_check_}


def plan(model: Any) -> Results:
    """Return all that a fitted model says about what to do next."""
    asked = model.next_questions(12)
    workers = model.result_.names.workers.tolist()[:5]
    priced = {"cost": {worker: 1.0 + n % 2 for n, worker in enumerate(workers)}, "budget": 15, "per_worker": 4}
    return {
        "items": model.next_items(25),
        "questions": asked,
        "more questions": model.next_questions(workers=workers, asked=asked, **priced),
        "stop": model.stop_items(0.9),
        "undecided": model.result_.undecided(0.8),
        "describe": model.result_.undecided(0.8).describe(),
        "open": model.to_frame(undecided=0.8),
    }


RUNS |= {
    "plan/vote": lambda: plan(cs.MajorityVote().fit(table())),
    "plan/dawid-skene": lambda: plan(cs.DawidSkene().fit(table(), gold=partly_random())),
    "plan/copies": lambda: plan(cs.fuse(copied_table())),
    "plan/sequences": lambda: plan(cs.HiddenMarkov(coupling=0.5).fit(tagged_table())),
    "plan/network": lambda: plan(cs.MarkovField(coupling=0.4).fit(**network())),
}


@run("plan/campaign")
def simulate_campaign() -> Results:
    crowd = cs.simulate.independent(150, n_workers=15, n_classes=3, accuracy=(0.4, 0.9), seed=1)
    return {policy: campaign(crowd, policy, budget=500) for policy in ("random", "information")}


@run("evaluate/items")
def evaluate_items() -> Results:
    fused = cs.fuse(table())
    truth = name_truth(draw_truth(400), range(400))
    return {"": cs.evaluate(fused, truth).to_dict(), "frame": cs.evaluate(fused.to_frame(), known()).to_dict()}


@run("evaluate/metrics")
def measure() -> Results:
    responses = cs.Answers.from_frame(table())
    model = cs.DawidSkene().fit(responses)
    truth = np.array([f"c{k}" for k in draw_truth(400)])
    judged = {
        name: getattr(cs.metrics, name)(truth, model.posterior_, model.classes_)
        for name in ("log_loss", "brier", "calibration_error", "reliability_curve")
    }
    crowd = {
        name: getattr(cs.metrics, name)(responses)
        for name in ("krippendorff_alpha", "krippendorff_interval", "pairwise_agreement")
    }
    labels = {name: getattr(cs.metrics, name)(truth, model.labels_) for name in ("accuracy", "macro_f1", "class_f1")}
    return {**judged, **crowd, **labels}


@run("simulate/oracle")
def ask_oracle() -> Results:
    crowds = {
        "independent": cs.simulate.independent(200, copycats=2, hard=0.1, seed=1),
        "sequences": cs.simulate.sequences(20, stickiness=0.5, seed=1),
        "network": cs.simulate.network(200, seed=1),
    }
    return {name: {"truth": crowd.truth, "oracle": crowd.oracle()} for name, crowd in crowds.items()}


# Answers that come later


def update(model: Any, *updates: Results) -> Results:
    """Update a model several times; return what each brought, and the model in the end."""
    found: Results = {}
    for number, given in enumerate(updates):
        model = model.update(given.pop("responses", None), **given)
        brought = {name: value for name, value in model.update_._asdict().items() if name != "columns"}
        words = {"verdict": brought.pop("verdict"), "describe": model.update_.describe()}
        found |= {f"update {number}": {**brought, "words": words}, f"changes {number}": model.changes()}
    return {**found, "": model}


def list_updates() -> tuple[pa.Table, list[Results]]:
    """Return first answers, and updates: few, with new items and workers, corrected, and known labels."""
    answers, order = table(), np.arange(len(table()))
    first, few = pick(answers, order % 20 > 4), pick(answers, order % 20 == 0)
    more = pa.concat_tables([pick(answers, (order % 20 > 0) & (order % 20 <= 4)), late_answers()])
    changed = pick(answers, order[:60])
    labels = ["c2"] * 40 + [None] * 20  # the last answers are retracted
    corrected = changed.set_column(2, "label", pa.array(labels))
    return first, [
        {"responses": few},
        {"responses": more},
        {"responses": corrected, "duplicates": "last"},
        {"gold": known(20)},
    ]


def late_answers(name: str = "late") -> pa.Table:
    """Return answers about new items, some by new workers."""
    answers = draw_answers(draw_truth(40, seed=4), 15, 4, seed=4)
    return answers.set_column(0, "item", pa.array([f"{name} {item}" for item in answers["item"].to_pylist()]))


@run("update/items")
def update_items() -> Results:
    first, updates = list_updates()
    return update(cs.DawidSkene().fit(first), *updates)


@run("update/fused")
def update_fused() -> Results:
    first, updates = list_updates()
    return update(cs.fuse(first), *updates)


@run("update/vote")
def update_vote() -> Results:
    first, updates = list_updates()
    return update(cs.MajorityVote().fit(first), *updates)


@run("update/loaded")
def update_loaded() -> Results:
    first, updates = list_updates()
    cs.fuse(first).save("first.model")
    return update(cs.load("first.model"), *updates[:2])


@run("update/sequences")
def update_sequences() -> Results:
    position = np.array(tagged_table()["position"].to_pylist())
    sequence = np.array(tagged_table()["sequence"].to_pylist())
    first = (position < 10) & (sequence < 48)
    model = cs.HiddenMarkov().fit(pick(tagged_table(), first))
    grown = (position >= 10) & (sequence < 3)
    rest = pick(tagged_table(), ~first & ~grown)
    return update(model, {"responses": pick(tagged_table(), grown)}, {"responses": rest})


@run("update/network")
def update_network() -> Results:
    given = network()
    _, answers, truth = draw_network()
    item = answers["item"].to_numpy()
    first = cs.Answers.from_frame(pick(answers, item % 30 > 0), items=np.arange(400))
    model = cs.MarkovField().fit(first, graph=given["graph"])
    edges = [(0, 200), (1, 201), (400, 7)]
    new = {"item": [400, 400], "worker": ["w1", "w2"], "label": ["c0", "c1"]}
    gold = {8: f"c{truth[8]}"}
    return update(model, {"responses": pick(answers, item % 30 == 0)}, {"responses": new, "graph": edges, "gold": gold})


def learn_batches(model: Any, answers: pa.Table, batch: NDArray[np.int64]) -> Results:
    """Learn from batches; return the labels of each, and the model in the end."""
    found: Results = {}
    for number in range(batch.max() + 1):
        model = model.partial_fit(pick(answers, batch == number))
        found |= {f"labels {number}": model.labels_, f"posterior {number}": model.posterior_}
    return {**found, "": model}


def number_items() -> NDArray[np.int64]:
    """Return the batch of each answer of `table`."""
    return np.arange(len(table())) // 500


@run("batches/items")
def learn_item_batches() -> Results:
    return learn_batches(cs.DawidSkene(), table(), number_items())


@run("batches/one-coin")
def learn_one_coin_batches() -> Results:
    return learn_batches(cs.DawidSkene(workers="one-coin"), table(), number_items())


@run("batches/sequences")
def learn_sequence_batches() -> Results:
    batch = tagged_table()["sequence"].to_numpy() // 17
    found = learn_batches(cs.HiddenMarkov(coupling=0.5), tagged_table(), batch)
    sequential = learn_batches(cs.HiddenMarkov(coupling=0.25, workers="sequential"), tagged_table(), batch)
    return {**found, "sequential": sequential}


@run("batches/after-fit")
def learn_after_fit() -> Results:
    model = cs.DawidSkene().fit(table(), gold=known())
    model.save("fitted.model")
    late = late_answers()
    return {"": model.partial_fit(late), "loaded": cs.load("fitted.model").partial_fit(late)}


# Saved models


SAVED: dict[str, Callable[[], Any]] = {
    "vote": lambda: cs.MajorityVote().fit(table()),
    "dawid-skene": lambda: cs.fuse(copied_table(), gold=name_truth(draw_truth(1500), range(30))),
    "moments": lambda: cs.MomentMatching().fit(table()),
    "hidden-markov": lambda: cs.HiddenMarkov(coupling=0.5, workers="sequential").fit(tagged_table()),
    "markov-field": lambda: cs.fuse(network()["responses"], graph=draw_network()[0]),
    "features": lambda: cs.DawidSkene().fit(table(), features=describe_items()),
    "spans": lambda: cs.fuse(cs.simulate.spans(40, n_workers=4, seed=1).spans),
}


def save(name: str) -> Results:
    """Save a model with and without answers; return what the loaded ones tell."""
    model = SAVED[name]()
    model.save("whole.model")
    model.save("lean.model", answers=False)
    found = {"whole": cs.load("whole.model"), "lean": cs.load("lean.model")}
    if name == "spans":
        found["spans"] = found["whole"].to_spans()
    return {**found, "items": found["whole"].next_items(5)}


RUNS |= {f"saved/{name}": partial(save, name) for name in SAVED}


# Answers on disk


def scan(answers: pa.Table, name: str = "answers.parquet", **columns: Any) -> Any:
    """Return answers that were written to a file, and sorted into a store."""
    pa.parquet.write_table(answers, name, row_group_size=50_000)
    return cs.scan_answers(name, memory="1GB", store="stores", **columns)


def write(model: Any, *names: str, **given: Any) -> Results:
    """Write labels to a folder and to files; return these and the model."""
    for name in names:
        model.write(name, **given)
    return {"": model, **{name: Path(name) for name in names}}


def large_gold() -> dict[Any, Any]:
    return name_truth(draw_truth(LARGE // 6, 4), range(0, 400, 2))


@run("disk/dawid-skene")
def fit_stored() -> Results:
    return write(cs.DawidSkene().fit(scan(large_table())), "labels", "labels.csv", "labels.parquet", "labels.jsonl")


@run("disk/dawid-skene-em")
def fit_stored_em() -> Results:
    model = cs.DawidSkene(estimation="em", start="best", calibration=0.5, workers="one-coin", n_init=2)
    return write(model.fit(scan(large_table())), "labels.tsv", "labels.arrow")


@run("disk/gold")
def fuse_stored_gold() -> Results:
    return write(cs.fuse(scan(large_table()), gold=large_gold()), "labels")


@run("disk/copies")
def fuse_stored_copies() -> Results:
    fused = cs.fuse(scan(with_copies(large_table())))
    vote = cs.fuse(scan(with_copies(large_table())), model="majority")
    return {**write(fused, "labels"), "vote": write(vote, "vote.parquet")}


@run("disk/weights")
def fit_stored_weights() -> Results:
    weight = np.random.default_rng(1).choice([0.25, 0.5, 1.0], len(large_table()))
    answers = scan(large_table().append_column("weight", pa.array(weight)), weight="weight")
    return write(cs.DawidSkene().fit(answers), "labels.parquet")


@run("disk/odd")
def fit_stored_odd() -> Results:
    """Answers that are no classes, and that were given twice."""
    again = pick(large_table(), np.arange(len(large_table())) % 50 == 0)
    others = again.set_column(2, "label", pa.array(["c1"] * len(again)))
    answers = pa.concat_tables([large_table(), others])
    model = cs.DawidSkene(calibration="none").fit(scan(answers, classes=["c0", "c1", "c2"], duplicates="last"))
    return write(model, "labels.parquet")


@run("disk/vote")
def vote_stored() -> Results:
    answers = scan(large_table())
    first = cs.MajorityVote(ties="first").fit(answers, gold=large_gold())
    return {**write(cs.MajorityVote(seed=2).fit(answers), "labels", "labels.csv"), "first": write(first, "first.arrow")}


@run("disk/hidden-markov")
def fuse_stored_sequences() -> Results:
    return write(cs.fuse(scan(large_table(length=20))), "labels", "labels.jsonl")


@run("disk/hidden-markov-sequential")
def fit_stored_sequences() -> Results:
    model = cs.HiddenMarkov(coupling=0.5, workers="sequential", decode="marginal", max_iter=10)
    return write(model.fit(scan(large_table(length=20))), "labels.parquet")


@run("disk/saved")
def save_stored() -> Results:
    model = cs.fuse(scan(large_table()))
    model.save("stored.model")
    loaded = cs.load("stored.model")
    return {"": loaded, "prediction": predict(loaded, table())}


@run("disk/partitions")
def fit_partitions() -> Results:
    answers = draw_answers(draw_truth(HUGE // 5), 20, 5, seed=8)
    model = cs.DawidSkene(calibration=0.5, max_iter=5).fit(scan(answers))
    return write(model, "labels")


@run("disk/few")
def fit_stored_few() -> Results:
    """So few answers that they are read into memory."""
    return write(cs.fuse(scan(table())), "labels", "labels.csv")


# Dask


@contextlib.contextmanager
def cluster() -> Iterator[Any]:
    """Give the client of a cluster of two workers in this process."""
    import distributed

    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as local, distributed.Client(local) as client:
        yield client


@run("dask/memory")
def fit_by_dask() -> Results:
    with cluster() as client:
        return {
            "items": cs.DawidSkene().fit(large_table(), engine=client),
            "sequences": cs.HiddenMarkov(coupling=0.5).fit(tagged_table(), gold=known_tags(), engine=client),
            "network": cs.MarkovField(coupling=0.4).fit(**network(), engine=client),
        }


@run("dask/disk")
def fit_stored_by_dask() -> Results:
    with cluster() as client:
        fused = cs.fuse(scan(large_table()), gold=large_gold(), engine=client)
        return write(fused, "labels", "labels.csv", engine=client)


@run("threads/one")
def fit_by_one_thread() -> Results:
    return {"": cs.DawidSkene().fit(large_table(), engine=cs.engines.Threads(1))}


# The command line


def command(*arguments: object, files: tuple[str, ...] = ()) -> Results:
    """Run the program; return what it says in JSON, and the files that it was to write."""
    home = str(Path(cs.__file__).parents[1])
    path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    line = [sys.executable, "-m", "consilience", *map(str, arguments), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        raise RuntimeError(f"consilience {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    said = json.loads(done.stdout)
    for warning in said.get("warnings", ()):
        warnings.warn(str(warning), stacklevel=2)
    return {
        "json": {name: value for name, value in said.items() if name not in NO_RESULTS},
        **{name: Path(name) for name in files},
    }


def write_csv(answers: pa.Table, name: str) -> str:
    pa.csv.write_csv(answers, name)
    return name


def fuse_file(*arguments: object, output: str) -> Results:
    return command("fuse", *arguments, "-o", output, files=(output,))


@run("command/fuse")
def run_fuse() -> Results:
    files = ("labels.csv", "workers.csv")
    outputs = ("-o", files[0], "--workers-report", files[1], "--report", "report.html", "--save", "saved.model")
    found = command("fuse", "examples/judges.csv", "--gold", "examples/judges_gold.csv", *outputs, files=files)
    content = Path("report.html").read_text(encoding="utf-8").lstrip()[:15].lower()
    return {**found, "report": content == "<!doctype html>", "saved": cs.load("saved.model")}


RUNS |= {
    "command/mturk": partial(fuse_file, "examples/mturk.csv", output="labels.jsonl"),
    "command/toloka": partial(fuse_file, "examples/toloka.tsv", "--undecided", "0.8", output="labels.parquet"),
    "command/vote": partial(fuse_file, "examples/judges.csv", "--model", "majority", output="labels.tsv"),
    "command/moments": partial(fuse_file, "examples/judges.csv", "--model", "moments", output="labels.arrow"),
    "command/functions": partial(
        fuse_file, "examples/functions.npy", "--abstain", "answer", "--background", "0", output="labels.csv"
    ),
    "command/label-studio": partial(fuse_file, "examples/label_studio.json", output="fused.json"),
    "command/prodigy": partial(fuse_file, "examples/prodigy.jsonl", output="fused.jsonl"),
    "command/doccano": partial(fuse_file, "examples/doccano", output="spans.csv"),
    "command/brat": partial(fuse_file, "examples/brat", output="fused"),
    "command/conll": partial(fuse_file, "examples/conll", output="fused.conll"),
    "command/masks": partial(fuse_file, "examples/masks", output="fused"),
}


@run("command/settings")
def run_settings() -> Results:
    """Many options at once: weights, classes, items, a graph and priors."""
    weight = np.random.default_rng(1).choice([0.25, 0.5, 1.0], len(table()))
    write_csv(table().append_column("care", pa.array(weight)), "answers.csv")
    write_csv(pa.table({"item": [f"i{n}" for n in range(405)]}), "items.csv")
    write_csv(pa.table({"source": [f"i{n}" for n in range(404)], "target": [f"i{n + 1}" for n in range(404)]}), "e.csv")
    write_csv(guess_items(), "prior.csv")
    write_csv(partly_random(), "gold.csv")
    options = ("--weight", "care", "--items", "items.csv", "--gold", "gold.csv", "--seed", "2")
    fitting = ("--estimation", "em", "--prior", "c0=0.5,c1=0.3,c2=0.2", "--calibration", "0.7", "--max-iter", "20")
    return {
        "items": fuse_file("answers.csv", *options, *fitting, output="items.jsonl"),
        "priors": fuse_file("answers.csv", "--item-prior", "prior.csv", output="priors.csv"),
        "graph": fuse_file("answers.csv", *options, "--graph", "e.csv", output="graph.csv"),
    }


@run("command/sequences")
def run_sequences() -> Results:
    write_csv(tagged_table().rename_columns(["night", "epoch", "who", "stage"]), "answers.csv")
    columns = ("--sequence", "night", "--position", "epoch", "--worker", "who", "--label", "stage")
    return fuse_file("answers.csv", *columns, output="labels.parquet")


@run("command/disk")
def run_on_disk() -> Results:
    pa.parquet.write_table(large_table(), "answers.parquet")
    given = ("fuse", "answers.parquet", "--memory", "1GB", "--store", "stores", "--workers-report", "workers.csv")
    found = command(*given, "-o", "labels/", "--save", "saved.model", files=("labels", "workers.csv"))
    return {**found, "one file": command(*given, "-o", "labels.csv", files=("labels.csv",))}


@run("command/going-on")
def run_going_on() -> Results:
    """A model that is saved, updated, asked what comes next, and used for other items."""
    first, updates = list_updates()
    write_csv(first, "first.csv")
    new, corrected = (updates[number]["responses"] for number in (1, 2))
    write_csv(new, "new.csv")
    write_csv(corrected, "corrected.csv")
    write_csv(late_answers("other"), "other.csv")
    files = ("labels.csv", "changes.csv")
    outputs = ("-o", files[0], "--changes", files[1])
    return {
        "fuse": command("fuse", "first.csv", "--save", "saved.model"),
        "update": command("update", "saved.model", "new.csv", *outputs, files=files),
        "correct": command("update", "saved.model", "corrected.csv", "--duplicates", "last", "-o", "l.parquet"),
        "corrected": Path("l.parquet"),
        "next": command("next", "saved.model", "-n", "20", "-o", "items.csv", files=("items.csv",)),
        "ask": command("next", "saved.model", "--questions", "-n", "20", "-o", "ask.csv", files=("ask.csv",)),
        "stop": command("next", "saved.model", "--stop", "0.9", "-o", "stop.jsonl", files=("stop.jsonl",)),
        "predict": command("predict", "saved.model", "other.csv", "-o", "other.jsonl", files=("other.jsonl",)),
        "model": cs.load("saved.model"),
    }


@run("command/evaluate")
def run_evaluate() -> Results:
    found = fuse_file("examples/judges.csv", output="labels.parquet")
    spans = fuse_file("examples/label_studio.json", "--ignore-gold", output="fused.json")
    return {
        "fuse": found,
        "evaluate": command("evaluate", "labels.parquet", "examples/judges_gold.csv"),
        "fuse spans": spans,
        "evaluate spans": command("evaluate", "fused.json", "examples/label_studio.json"),
    }


@run("command/convert")
def run_convert() -> Results:
    ways: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("label_studio.json", "brat", ("--to", "brat")),
        ("label_studio.json", "spans.csv", ()),
        ("label_studio.json", "doccano", ("--to", "doccano")),
        ("brat", "spans.jsonl", ("--to", "prodigy")),
        ("conll", "spans.parquet", ()),
        ("mturk.csv", "answers.parquet", ()),
        ("judges.csv", "wide.csv", ("--to", "wide")),
        ("functions.npy", "long.csv", ()),
    )
    return {
        output: command("convert", f"examples/{source}", output, *options, files=(output,))
        for source, output, options in ways
    }


@run("command/simulate")
def run_simulate() -> Results:
    return command("simulate", "independent", "--items", "50", "-o", "crowd", "--seed", "3", files=("crowd",))


# Recording and comparing


def carry_out(name: str) -> Results:
    """Return the fingerprints of a run, which works in a folder of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        warnings.catch_warnings(record=True) as told,
    ):
        warnings.simplefilter("always")
        Path("examples").symlink_to(EXAMPLES)
        try:
            found: Results = dict(hash_all("", RUNS[name]()))
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}".replace(folder, ".")}
        texts = {
            f"{each.category.__name__}: {each.message}" for each in told if not issubclass(each.category, ABOUT_CODE)
        }
        return {**found, "warnings": sorted(text.replace(folder, ".") for text in texts)}


def record(path: Path, only: re.Pattern[str]) -> int:
    """Write the fingerprints of all runs whose name matches."""
    found, begin = {}, time.perf_counter()
    for name in filter(only.search, RUNS):
        start = time.perf_counter()
        found[name] = carry_out(name)
        failed = f"  {found[name]['error']}" if "error" in found[name] else ""
        print(f"{time.perf_counter() - start:6.1f} s  {name}{failed}", file=sys.stderr, flush=True)
    path.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    n_hashes = sum(len(each) - 1 for each in found.values())
    seconds = time.perf_counter() - begin
    print(f"{len(found)} runs, {n_hashes:,} hashes, {seconds:.0f} s: {path}", file=sys.stderr)
    return 0


def compare(old: Path, new: Path, only: re.Pattern[str]) -> int:
    """Print what differs between two recordings; return 1 if more than wording does."""
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    results, wording = [], []
    for name in filter(only.search, {**before, **after}):
        if name not in before or name not in after:
            results.append(f"{name}: only in {old if name in before else new}")
            continue
        results += [f"{name}: {line}" for line in list_differences(before[name], after[name], in_words=False)]
        wording += [f"{name}: {line}" for line in list_differences(before[name], after[name], in_words=True)]
    for title, lines in (("Results", results), ("Wording", wording)):
        print(f"{title}: {len(lines) or 'no'} difference{'s' * (len(lines) != 1)}")
        print("".join(f"  {line}\n" for line in lines), end="")
    return 1 if results else 0


def list_differences(before: Results, after: Results, in_words: bool) -> Iterator[str]:
    """Yield how two fingerprints of a run differ, in results or in words."""
    if in_words:
        old, new = (set(each.get("warnings", ())) for each in (before, after))
        yield from (f"no longer warns: {text}" for text in sorted(old - new))
        yield from (f"now warns: {text}" for text in sorted(new - old))
    for what in sorted({**before, **after}):
        if what == "warnings" or bool(WORDING.search(what)) != in_words or before.get(what) == after.get(what):
            continue
        if what == "error":
            yield f"error: {before.get(what, 'none')} -> {after.get(what, 'none')}"
        else:
            yield f"{what} " + ("is new" if what not in before else "is missing" if what not in after else "changed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    recorder, comparer = commands.add_parser("record"), commands.add_parser("compare")
    recorder.add_argument("out", type=Path)
    comparer.add_argument("old", type=Path)
    comparer.add_argument("new", type=Path)
    for each in (recorder, comparer):
        each.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX")
    given = parser.parse_args()
    if given.command == "record":
        return record(given.out.resolve(), given.only)
    return compare(given.old, given.new, given.only)


if __name__ == "__main__":
    sys.exit(main())
