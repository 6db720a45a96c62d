"""`consilience simulate` and `consilience demo`: made-up crowds as files, with the truth beside them."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from collections import Counter
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .. import metrics
from .. import simulate as simulators
from ..answers.answers import Answers
from ..api import fuse
from ..errors import ConsilienceError, InputError, MissingDependencyError, first_line, listing, make_inert, to_sentence
from ..formats import writable_formats
from ..formats.writing import check_writable, replace_file, write_table
from ..models.majority_vote import MajorityVote
from ..simulate.crowds import Simulation
from .command import Record, tell, to_json, typed_command
from .files import check_page, write_report
from .terminal import Column, Display, Screen, format_difference, format_number

# ---------------------------------------------------------------------------------------------------------- simulate

# Those of the true parameters that are written.
PARAMETERS = ("prior", "confusion", "transition", "initial", "kinds", "bias", "spread", "careless")


def draw(kind: str, folder: str, file_format: str, force: bool, **asked: Any) -> None:
    """Draw a crowd, write it, and only then print."""
    suffix = next(each.suffixes[0] for each in writable_formats() if each.name == file_format)
    tables = ("answers", "truth", *(("edges",) if kind == "network" else ()))
    files = {name: str(Path(folder, f"{name}{suffix}")) for name in tables}
    files["parameters"] = str(Path(folder, "parameters.json"))
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InputError(f"{folder!r} is a file. Name a folder with -o.")
    there = [path for path in files.values() if os.path.exists(path)]
    if there and not force:
        raise InputError(f"There are files already: {listing(there)}. Name another folder, or add --force to replace.")
    crowd: Simulation = getattr(simulators, kind)(**asked)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder!r} cannot be made: {first_line(error)}.", "Name another one.") from error
    for path in files.values():
        check_writable(path)
    for name, table in make_tables(crowd).items():
        write_table(table, files[name])
    true = crowd.parameters
    copies = [None if leader < 0 else leader for leader in true.copies.tolist()]
    known = {name: getattr(true, name) for name in PARAMETERS if getattr(true, name) is not None}
    with replace_file(files["parameters"]) as temporary:
        content = {"options": {"simulator": kind, **asked}, **known, "copies": copies}
        temporary.write_text(f"{json.dumps(to_json(content))}\n", encoding="utf-8")

    r, graph = crowd.responses, crowd.graph
    found: Record = {"simulator": kind, "seed": asked["seed"], "items": r.n_items, "workers": r.n_workers}
    found |= {"classes": r.n_classes, "answers": r.n_responses}
    found |= {} if r.sequences is None else {"sequences": len(r.sequences)}
    found |= {} if graph is None else {"edges": graph.n_edges}
    found |= {"kinds": dict(Counter(true.kinds.tolist())), "files": files}

    def show() -> None:
        plurals = {"spammer": "spammers", "adversary": "adversaries", "copycat": "copycats"}
        kinds = [f"{n:,} {name if n == 1 else plurals.get(name, name)}" for name, n in found["kinds"].items()]
        items = f"{r.n_items:,} items" + (f" in {found['sequences']:,} sequences" if "sequences" in found else "")
        facts = [
            ("Answers", f"{r.n_responses:,} by {r.n_workers:,} workers about {items}"),
            ("Workers", ", ".join(kinds)),
            ("Classes", f"{r.n_classes:,}"),
        ]
        if graph is not None:
            mean = 2 * graph.n_edges / graph.n_items
            facts.append(("Network", f"{graph.n_edges:,} edges, {mean:.2f} neighbours on average"))
        screen = Screen()
        screen.title(f"A made-up crowd ({kind}, seed {asked['seed']})")
        screen.facts(facts)
        screen.line()
        screen.facts([(name.capitalize(), make_inert(path)) for name, path in files.items()])
        screen.line()
        screen.title("Next")
        labels = str(Path(files["answers"]).with_stem("labels"))
        graph_too = ["--graph", files["edges"]] if "edges" in files else []
        ordered = ["--ordered"] if r.is_ordered else []
        for step in (
            ["fuse", files["answers"], *graph_too, *ordered, "-o", labels],
            ["evaluate", labels, files["truth"]],
        ):
            screen.line(make_inert(f"  consilience {shlex.join(step)}"))

    tell(lambda: found, show)


draw_independent, draw_sequences, draw_network, draw_ratings = (
    partial(draw, kind) for kind in ("independent", "sequences", "network", "ratings")
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

# What is on the images of each class: an animal, and a place.
SCENES = {
    "cat": (
        ("tabby coat and long whiskers", "black fur, green eyes", "ginger, curled up"),
        ("on a window sill", "on a sofa", "in a cardboard box", "beside a bowl of milk"),
    ),
    "dog": (
        ("floppy ears and a collar", "spotted coat, tongue out", "golden fur, wagging"),
        ("in a park, on a lead", "with a stick", "in front of a kennel", "on a beach with a ball"),
    ),
    "fox": (
        ("red coat, white tip of the tail", "reddish fur, pointed snout", "bushy tail, black feet"),
        ("at the edge of a field", "beside a hen house", "under a hedge", "between dustbins at night"),
    ),
    "wolf": (
        ("grey coat, long legs", "pale grey fur, yellow eyes", "dark back, heavy neck"),
        ("in deep snow", "howling on a ridge", "with its pack", "in a pine forest"),
    ),
}
KINDS = {"honest": "looks at the images", "spammer": "clicks at random", "adversary": "contrary"}
# So many labels are known to the fit.
N_KNOWN = 100
REPORT, ANSWERS = "demo-report.html", "demo-answers.csv"
NEXT = (
    ("consilience fuse answers.csv -o labels.csv", "columns item, worker, label"),
    ("consilience fuse answers.csv --report page.html", "a report on your answers"),
    ("consilience evaluate labels.csv gold.csv", "where some truth is known"),
    ("consilience fuse --help", "all options"),
)


def make_crowd() -> tuple[pa.Table, pa.Table, dict[str, str]]:
    """Forty workers of mixed quality who answer five times about each of 2,000 images.

    Returns
    -------
    tuple
        The answers: item, worker, label. The images: item, label (which is the truth), caption. And what kind each
        worker is of.

    Examples
    --------
    >>> answers, images, kinds = make_crowd()
    >>> answers.num_rows, images.num_rows, len(kinds)
    (10000, 2000, 40)
    """
    crowd = simulators.independent(
        2000,
        n_workers=40,
        answers_per_item=5,
        accuracy=(0.45, 0.95),
        spammers=9,
        adversaries=2,
        prior=[0.35, 0.3, 0.2, 0.15],
    )
    tables, names = make_tables(crowd), np.array(list(SCENES))
    items, workers = (np.array([f"image-{n + 1:04d}" for n in range(2000)]), [f"w{n + 1:02d}" for n in range(40)])
    drawn = tables["answers"]
    answers = {
        "item": items[drawn["item"]],
        "worker": np.array(workers)[drawn["worker"]],
        "label": names[drawn["label"]],
    }
    captions = []
    for n, name in enumerate(names[crowd.truth]):
        animals, places = SCENES[name]
        text = f"{animals[n % len(animals)]}, {places[n // len(animals) % len(places)]}."
        captions.append(text[0].upper() + text[1:])
    images = pa.table({"item": items, "label": names[crowd.truth], "caption": captions})
    kinds = [KINDS[kind] for kind in crowd.parameters.kinds.tolist()]
    return pa.table(answers), images, dict(zip(workers, kinds, strict=True))


def demo() -> None:
    """Fuse the answers of a simulated crowd, compare with the truth, and write a report."""
    with Display(quiet=False) as display:
        display.say("Drawing a crowd")
        answers, images, kinds = make_crowd()
        known = images.slice(0, N_KNOWN)
        display.say("Fitting")
        fused = fuse(answers, gold=known, callback=display.show_iteration)
        vote = MajorityVote().fit(Answers.from_frame(answers))
        display.say("Writing the report")
        files = [write_demo_answers(answers, images), write_demo_report(fused, images)]
    screen, truth = Screen(), images["label"].to_pylist()[N_KNOWN:]

    scores = []
    for model in (vote, fused):
        labels, posterior = model.labels_[N_KNOWN:], model.posterior_[N_KNOWN:]
        scores.append(
            (
                metrics.accuracy(truth, labels),
                metrics.macro_f1(truth, labels),
                metrics.log_loss(truth, posterior, fused.classes_),
                metrics.calibration_error(truth, posterior, fused.classes_),
            )
        )
    names = ("accuracy", "macro F1", "log loss (low is good)", "calibration error (low)")
    rows = [(name, *map(format_number, pair)) for name, *pair in zip(names, *scores, strict=True)]
    screen.title(f"{len(images):,} images, {len(SCENES)} classes, {len(kinds)} workers, {len(answers):,} answers")
    screen.line("  Some workers are careful, some hardly know better, and some do not look.")
    screen.line(f"  The truth is known here, to judge the labels by. The fit knows {N_KNOWN} labels.")
    screen.line()
    screen.table([Column("", 28), Column("majority vote", 13, number=True), Column("consilience", number=True)], rows)
    screen.line()
    compared = fused.comparison_
    words = f"{format_difference(compared.n_differ)} from the vote's. {to_sentence(compared.describe_headline())}"
    for line in textwrap.wrap(words, 78):
        screen.line(f"  {line}")
    screen.line()

    # The first three workers of each kind, most reliable first.
    true = dict(zip(images["item"].to_pylist(), images["label"].to_pylist(), strict=True))
    given = [(row["worker"], row["label"] == true[row["item"]]) for row in answers.to_pylist()]
    n_right, n_given = Counter(worker for worker, right in given if right), Counter(worker for worker, _ in given)
    report = sorted(fused.worker_report().to_pylist(), key=lambda row: (kinds[row["worker"]], -row["accuracy"]))
    shown = [row for _, rows in groupby(report, lambda row: kinds[row["worker"]]) for row in list(rows)[:3]]
    screen.title("Accuracy of workers: the true one, and the one found without the truth")
    columns = [Column("worker", 8), Column("who", 20), Column("true", number=True), Column("found", number=True)]
    lines = [
        (
            row["worker"],
            kinds[row["worker"]],
            format_number(n_right[row["worker"]] / n_given[row["worker"]]),
            format_number(row["accuracy"]),
            row["remarks"],
        )
        for row in sorted(shown, key=lambda row: -row["accuracy"])
    ]
    screen.table([*columns, Column("remarks", 36)], lines)
    screen.line()
    screen.title("Files")
    for line in (line for each in files for line in each.splitlines()):
        screen.line(textwrap.fill(line, 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    screen.line()
    screen.title("Next")
    screen.facts(NEXT)


def write_demo_answers(answers: pa.Table, images: pa.Table) -> str:
    """Write the answers, unless there is a file of that name with other columns; the sentence to say of it."""
    place = pa.compute.index_in(answers["item"], images["item"])
    known = pa.array(images["label"].to_pylist()[:N_KNOWN] + [None] * (len(images) - N_KNOWN))
    table = answers.append_column("gold", known.take(place)).append_column("caption", images["caption"].take(place))
    try:
        first = Path(ANSWERS).read_bytes()[:100].partition(b"\n")[0] if os.path.exists(ANSWERS) else None
        if first not in (None, ",".join(table.column_names).encode()):
            return f"{ANSWERS} was not written: there is another file of that name."
        write_table(table, ANSWERS)
    except (OSError, InputError) as error:
        return f"{ANSWERS} was not written: {first_line(error)}."
    return f"{ANSWERS} holds the answers."


def write_demo_report(fused: Any, images: pa.Table) -> str:
    """Write the report, unless it cannot be made or would replace another page; the sentence to say of it."""
    try:
        check_page(REPORT)
    except MissingDependencyError:
        return "A page about these labels needs two more packages:\npip install 'consilience[report]'"
    path = Path(REPORT)
    if path.exists() and not (path.is_file() and b'content="consilience"' in path.read_bytes()[:4096]):
        return f"{REPORT} was not written: there is a file of that name, and it is not a report."
    command = typed_command("fuse", (), (ANSWERS, "--content", "caption", "--report", REPORT), ANSWERS)
    content = images.select(["item", "caption"])
    try:
        write_report(fused, f"Demo: {ANSWERS}", content, "", command, REPORT)
    except ConsilienceError as error:
        return f"{REPORT} was not written. {error}"
    return f"{REPORT} says whether to trust the labels. Open it in a browser."
