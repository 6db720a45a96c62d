"""`consilience simulate` and `consilience demo`: made-up crowds as files, with the truth beside them."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .. import simulate as simulators
from ..answers.answers import Answers
from ..api import fuse, write_report
from ..documents.document import Column, Document, Fact, Facts, Part, Section, Table, Text
from ..documents.html import check_page
from ..errors import InputError, MissingDependencyError, first_line, listing, plural, to_sentence
from ..evaluation.labels import evaluate
from ..formats import writable_formats
from ..formats.writing import replace_file, write_table
from ..models.independent import MajorityVote
from ..simulate.crowds import Simulation
from .command import list_values, publish, to_json
from .files import Display, check_outputs

# ---------------------------------------------------------------------------------------------------------- simulate

# Those of the true parameters that are written.
PARAMETERS = ("prior", "confusion", "transition", "initial", "kinds", "bias", "spread", "careless")


def run_draw(kind: str, folder: str, file_format: str, force: bool, **asked: Any) -> None:
    """Draw a crowd, write it, and only then print."""
    suffix = next(each.suffixes[0] for each in writable_formats() if each.name == file_format)
    tables = ["answers", "truth", *(["edges"] if kind == "network" else [])]
    files = {name: os.path.join(folder, f"{name}{suffix}") for name in tables}
    files["parameters"] = os.path.join(folder, "parameters.json")
    there = [path for path in files.values() if os.path.exists(path)]
    if there and not force:
        raise InputError(f"There are files already: {listing(there)}. Name another folder, or add --force to replace.")
    crowd: Simulation = getattr(simulators, kind)(**asked)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder!r} cannot be made: {first_line(error)}.", "Name another one.") from error
    check_outputs([], files.values(), [])
    for name, table in make_tables(crowd).items():
        write_table(table, files[name])
    true = crowd.parameters
    copies = [None if leader < 0 else leader for leader in true.copies.tolist()]
    known = {name: getattr(true, name) for name in PARAMETERS if getattr(true, name) is not None}
    with replace_file(files["parameters"]) as temporary:
        content = {"options": {"simulator": kind, **asked}, **known, "copies": copies}
        temporary.write_text(f"{json.dumps(to_json(content))}\n", encoding="utf-8")

    r, graph, kinds = crowd.responses, crowd.graph, dict(Counter(true.kinds.tolist()))
    sequences = {} if r.sequences is None else {"sequences": len(r.sequences)}
    items = f"{r.n_items:,} items" + "".join(f" in {n:,} sequences" for n in sequences.values())
    facts = [
        Fact("answers", "Answers", r.n_responses, f"{r.n_responses:,} by {r.n_workers:,} workers about {items}"),
        Fact("kinds", "Workers", kinds, ", ".join(f"{name} {n:,}" for name, n in kinds.items())),
        Fact("classes", "Classes", r.n_classes, format="count"),
        *list_values({"simulator": kind, "seed": asked["seed"], "items": r.n_items}),
        *list_values({"workers": r.n_workers} | sequences),
    ]
    if graph is not None:
        degree = f"{graph.n_edges:,} edges, {2 * graph.n_edges / graph.n_items:.2f} neighbours on average"
        facts.append(Fact("edges", "Network", graph.n_edges, degree))
    labels = str(Path(files["answers"]).with_stem("labels"))
    fitting = ["fuse", files["answers"], *(["--graph", files["edges"]] if graph else [])]
    fitting += [*(["--ordered"] if r.is_ordered else []), "-o", labels]
    steps = [f"consilience {shlex.join(step)}" for step in (fitting, ["evaluate", labels, files["truth"]])]
    written = [Fact("", name.capitalize(), path) for name, path in files.items()]
    parts: list[Part] = [Facts(facts), Facts([*written, *list_values({"files": files})])]
    parts.append(Section("Next", [Facts([Fact("", step, "") for step in steps])]))
    publish(Document(f"A made-up crowd ({kind}, seed {asked['seed']})", "", parts))


draw_independent, draw_sequences, draw_network, draw_ratings = (
    partial(run_draw, kind) for kind in ("independent", "sequences", "network", "ratings")
)


def make_tables(crowd: Simulation) -> dict[str, pa.Table]:
    """The tables of answers, truth and edges, with ids in columns."""
    r, graph = crowd.responses, crowd.graph
    keys = {name: pa.array(column) for name, column in r.key_columns().items()}
    item = pa.array(r.item_of_answer())
    said = {"worker": r.workers[r.worker], "label": r.labels[r.label]}
    tables = {
        "answers": pa.table({**{name: key.take(item) for name, key in keys.items()}, **said}),
        "truth": pa.table({**keys, "label": r.classes[crowd.truth]}),
    }
    if graph is not None:
        source = np.repeat(np.arange(graph.n_items), graph.degrees)
        once = source < graph.neighbours
        tables["edges"] = pa.table({"source": graph.items[source[once]], "target": graph.items[graph.neighbours[once]]})
    return tables


# -------------------------------------------------------------------------------------------------------------- demo

# So many labels are known to the fit.
N_KNOWN = 100
REPORT, ANSWERS = "demo-report.html", "demo-answers.csv"
SCORES = {"accuracy": "accuracy", "macro_f1": "macro F1"}
SCORES |= {"log_loss": "log loss (low is good)", "calibration_error": "calibration error (low)"}
NEXT = (
    ("consilience fuse answers.csv -o labels.csv", "columns item, worker, label"),
    ("consilience fuse answers.csv --report page.html", "a report on your answers"),
    ("consilience evaluate labels.csv gold.csv", "where some truth is known"),
    ("consilience fuse --help", "all options"),
)


def draw_demo() -> tuple[pa.Table, pa.Table, dict[str, str]]:
    """Forty workers of mixed quality who answer five times about each of 2,000 items.

    Returns
    -------
    tuple
        The answers: item, worker, label. The truth: item, label. And what kind each worker is of.

    Examples
    --------
    >>> answers, truth, kinds = draw_demo()
    >>> answers.num_rows, truth.num_rows, len(kinds)
    (10000, 2000, 40)
    """
    quality: dict[str, Any] = {"accuracy": (0.45, 0.95), "spammers": 9, "adversaries": 2}
    crowd = simulators.independent(2000, 40, answers_per_item=5, prior=[0.35, 0.3, 0.2, 0.15], **quality)
    classes, workers = np.array(["cat", "dog", "fox", "wolf"]), np.array([f"w{n + 1:02d}" for n in range(40)])
    drawn = make_tables(crowd)["answers"]
    said = {"worker": workers[drawn["worker"]], "label": classes[drawn["label"]]}
    truth = pa.table({"item": np.arange(2000), "label": classes[crowd.truth]})
    kinds = dict(zip(workers.tolist(), crowd.parameters.kinds.tolist(), strict=True))
    return pa.table({"item": drawn["item"], **said}), truth, kinds


def run_demo() -> None:
    """Fuse the answers of a simulated crowd, compare with the truth, and write answers and a report."""
    files = [f"{ANSWERS} holds the answers.", f"{REPORT} says whether to trust the labels. Open it in a browser."]
    with Display() as display:
        display.say("Drawing a crowd")
        answers, truth, kinds = draw_demo()
        known = truth.slice(0, N_KNOWN)
        display.say("Fitting")
        fused = fuse(answers, gold=known, callback=display.show_iteration)
        vote = MajorityVote().fit(Answers.from_frame(answers))
        display.say("Writing the report")
        place = pa.compute.index_in(answers["item"], known["item"])
        write_table(answers.append_column("gold", known["label"].take(place)), ANSWERS)
        try:
            check_page(REPORT)
        except MissingDependencyError:
            files[1] = "A page about these labels needs two more packages: pip install 'consilience[report]'"
        else:
            command = ["consilience", "fuse", ANSWERS, "--report", REPORT]
            write_report(fused, REPORT, None, f"Demo: {ANSWERS}", "", command, ANSWERS)

    scores = [evaluate(model, truth.slice(N_KNOWN)) for model in (vote, fused)]
    rows = [(says, *(getattr(each, name) for each in scores)) for name, says in SCORES.items()]
    heads = [Column("", ""), Column("", "majority vote", "figure"), Column("", "consilience", "figure")]
    compared, judged = fused.comparison_, plural(fused.comparison_.n_differ, "label")
    verdict = f"{judged} of the fit and the vote differ. {to_sentence(compared.describe_headline())}"

    sizes = f"{len(truth):,} items, {len(fused.classes_)} classes, {len(kinds)} workers, {len(answers):,} answers"
    about = "Some workers are careful, some click at random, and some are wrong on purpose. The truth is known "
    parts: list[Part] = [
        Text([f"{about}here, to judge the labels by. The fit knows {N_KNOWN} labels."]),
        Table("", "Labels against the truth", heads, rows),
        Text([verdict]),
        Section("Files", [Text([line]) for line in files]),
        Section("Next", [Facts([Fact("", name, text) for name, text in NEXT])]),
    ]
    publish(Document(sizes, "", parts))
