"""`consilience simulate`: a made-up crowd as files, with the truth beside it."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .. import simulate as simulators
from ..errors import InputError, first_line, listing, make_inert
from ..formats import writable_formats, writing
from ..formats.writing import check_writable, write_table
from ..simulate.crowds import Simulation
from .command import Record, tell, to_json
from .terminal import Screen


def run(kind: str, **asked: Any) -> None:
    """Draw, write, and only then print."""
    output, file_format, force = (asked.pop(name) for name in ("folder", "file_format", "force"))
    tables = ("answers", "truth", *(("edges",) if kind == "network" else ()))
    suffix = next(each.suffixes[0] for each in writable_formats() if each.name == file_format)
    files = {name: str(Path(output, f"{name}{suffix}")) for name in tables}
    files["parameters"] = str(Path(output, "parameters.json"))
    check_folder(output, files, force)
    crowd: Simulation = getattr(simulators, kind)(**asked)
    write(crowd, output, files, {"simulator": kind, **asked})
    found = summarise(crowd, kind, asked["seed"], files)
    tell(lambda: found, lambda: print_summary(crowd, found, files))


def check_folder(output: str, files: dict[str, str], force: bool) -> None:
    """Raise an error where files could not be written, or would replace others without leave."""
    folder = Path(output)
    if not os.path.exists(folder):
        above = next(place for place in folder.absolute().parents if os.path.exists(place))
        if not (above.is_dir() and os.access(above, os.W_OK)):
            why = "no permission to write there" if above.is_dir() else "that is a file"
            raise InputError(f"The folder {output!r} cannot be made in {str(above)!r}: {why}. Name another one.")
        return
    if not folder.is_dir():
        raise InputError(f"{output!r} is a file. Name a folder with -o.")
    there = [path for path in files.values() if Path(path).exists()]
    if there and not force:
        raise InputError(f"There are files already: {listing(there)}. Name another folder, or add --force to replace.")
    for path in files.values():
        check_writable(path)


def write(crowd: Simulation, output: str, files: dict[str, str], options: Record) -> None:
    """Write all files in a folder that is made if need be."""
    tables, content = make_tables(crowd), json.dumps(describe(crowd, options))
    made = [folder for folder in (Path(output), *Path(output).parents) if not os.path.exists(folder)]
    try:
        make_folders(made[::-1])
        for name, table in tables.items():
            write_table(table, files[name])
        with writing.replace_file(files["parameters"]) as temporary:
            temporary.write_text(f"{content}\n", encoding="utf-8")
    except BaseException:
        for folder in made:
            with suppress(OSError):  # not made yet
                folder.rmdir()
        raise


def make_folders(folders: Sequence[Path]) -> None:
    """Make folders, each in the one before it."""
    for folder in folders:
        try:
            folder.mkdir()
        except OSError as error:
            problem = f"The folder {str(folder)!r} cannot be made: {first_line(error)}."
            raise InputError(problem, "Name another one.") from error


def make_tables(crowd: Simulation) -> dict[str, pa.Table]:
    """Return the tables of answers, truth and edges, with ids in columns."""
    r = crowd.responses
    keys = {name: pa.array(column) for name, column in r.key_columns().items()}
    item = pa.array(r.item_of_answer())
    said = {"worker": r.workers[r.worker], "label": r.labels[r.label]}
    tables = {
        "answers": pa.table({**{name: key.take(item) for name, key in keys.items()}, **said}),
        "truth": pa.table({**keys, "label": r.classes[crowd.truth]}),
    }
    if crowd.graph is not None:
        graph = crowd.graph
        source = np.repeat(np.arange(graph.n_items), graph.degrees)
        once = source < graph.neighbours
        tables["edges"] = pa.table({"source": graph.items[source[once]], "target": graph.items[graph.neighbours[once]]})
    return tables


def describe(crowd: Simulation, options: Record) -> Record:
    """Return what the crowd was drawn from, in terms of JSON; workers and classes in the order of their ids."""
    true = crowd.parameters
    names = ("prior", "confusion", "transition", "initial", "kinds", "bias", "spread", "careless")
    found = {name: getattr(true, name) for name in names if getattr(true, name) is not None}
    copies = [None if leader < 0 else leader for leader in true.copies.tolist()]
    content: Record = to_json({"options": options, **found, "copies": copies})
    return content


def summarise(crowd: Simulation, kind: str, seed: int, files: dict[str, str]) -> Record:
    """Return how large the crowd is, and where the files are."""
    r = crowd.responses
    sizes = {"items": r.n_items, "workers": r.n_workers, "classes": r.n_classes, "answers": r.n_responses}
    if r.sequences is not None:
        sizes["sequences"] = len(r.sequences)
    if crowd.graph is not None:
        sizes["edges"] = crowd.graph.n_edges
    kinds = dict(Counter(crowd.parameters.kinds.tolist()))
    return {"simulator": kind, "seed": seed, **sizes, "kinds": kinds, "files": files}


def print_summary(crowd: Simulation, found: Record, files: dict[str, str]) -> None:
    """Print what was drawn, where it is, and what to do with it."""
    items = f"{found['items']:,} items"
    if "sequences" in found:
        items += f" in {found['sequences']:,} sequences"
    facts = [
        ("Answers", f"{found['answers']:,} by {found['workers']:,} workers about {items}"),
        ("Workers", ", ".join(f"{count:,} {_plural(name, count)}" for name, count in found["kinds"].items())),
        ("Classes", f"{found['classes']:,}"),
    ]
    if crowd.graph is not None:
        mean = 2 * crowd.graph.n_edges / crowd.graph.n_items
        facts.append(("Network", f"{crowd.graph.n_edges:,} edges, {mean:.2f} neighbours on average"))
    screen = Screen()
    screen.title(f"A made-up crowd ({found['simulator']}, seed {found['seed']})")
    screen.facts(facts)
    screen.line()
    screen.facts([(name.capitalize(), make_inert(path)) for name, path in files.items()])
    screen.line()
    screen.title("Next")
    answers, truth = (shlex.quote(files[name]) for name in ("answers", "truth"))
    labels = shlex.quote(str(Path(files["answers"]).with_stem("labels")))
    graph = f" --graph {shlex.quote(files['edges'])}" if "edges" in files else ""
    ordered = " --ordered" if crowd.responses.is_ordered else ""
    screen.line(make_inert(f"  consilience fuse {answers}{graph}{ordered} -o {labels}"))
    screen.line(make_inert(f"  consilience evaluate {labels} {truth}"))


def _plural(kind: str, count: int) -> str:
    if kind == "honest" or count == 1:
        return kind
    return "adversaries" if kind == "adversary" else f"{kind}s"


draw_independent, draw_sequences, draw_network, draw_ratings = (
    partial(run, kind) for kind in ("independent", "sequences", "network", "ratings")
)
