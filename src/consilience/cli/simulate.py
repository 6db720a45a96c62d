"""`consilience simulate`: a made-up crowd as files, with the truth beside it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..formats.register import writable_formats
from .command import Command, Option, make_inert, tell
from .options import COUNT_OR_NONE, PRINTING, read_options

if TYPE_CHECKING:
    from ..simulate.results import Simulation

# As in the library, which is not imported before a command runs.
ACTIVITIES = ("equal", "unequal")


@click.group("simulate", short_help="Write the answers of a made-up crowd, and the truth.")
def simulate() -> None:
    """Write the answers of a made-up crowd, and the truth behind them, to files.

    To see what a plan is worth before paying for it: how many answers per item, of workers how good?
    """


def _split_numbers(ctx: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers, such as 0.7,0.3.", ctx, parameter) from None


def _read_accuracy(ctx: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    numbers = _split_numbers(ctx, parameter, text)
    if numbers is None or len(numbers) > 2:
        return numbers
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _read_length(ctx: click.Context, parameter: click.Parameter, text: str) -> int | tuple[int, int]:
    try:
        ends = [int(part) for part in text.split(",")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2):
        raise click.BadParameter(f"{text!r} is no length such as 40, nor a range such as 5,30.", ctx, parameter)
    return ends[0] if len(ends) == 1 else (ends[0], ends[1])


def _read_good(ctx: click.Context, parameter: click.Parameter, text: str) -> str | int:
    if text in ("most", "all"):
        return text
    if not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither 'most' nor 'all' nor a number.", ctx, parameter)
    return int(text)


_CROWD = f"""
    Crowd:
      --good most|all|N  How many workers are better than random.
      --workers N  Number of workers. [default: 10]
      --classes N  Number of classes. [default: 4]
      --answers-per-item N  Workers who answer each item. Default: all.
      --accuracy P|LOW,HIGH  Probability of the right answer: one for all, a range to draw from, or one per honest
          worker. Default: random confusion matrices.
      --spammers N  Workers who answer at random. [default: 0]
      --adversaries N  Workers who are wrong on purpose. [default: 0]
      --copycats N  Workers who copy another one. [default: 0]
      --hard P  Share of items on which all workers err together, with the same wrong class in mind. [default: 0.0]
      --activity [{"|".join(ACTIVITIES)}]  Whether workers answer equally often, or few answer much. [default: equal]
      --seed N  Same seed, same crowd. [default: 0]
    Files:
      --format [{"|".join(each.name for each in writable_formats())}]  Format of the tables. [default: csv]
      --force  Overwrite files that are there already.
"""
_SETTINGS: dict[str, dict[str, Any]] = {
    "--output": {"required": True},
    "--items": {"name": "n_items"},
    "--sequences": {"name": "n_sequences"},
    "--workers": {"name": "n_workers"},
    "--classes": {"name": "n_classes"},
    "--format": {"name": "file_format"},
    "--length": {"callback": _read_length},
    "--prior": {"callback": _split_numbers},
    "--accuracy": {"callback": _read_accuracy},
    **{name: {"type": float} for name in ("--stickiness", "--degree", "--homophily", "--hard")},
    **{name: {"type": COUNT_OR_NONE} for name in ("--spammers", "--adversaries", "--copycats", "--seed")},
}


def _list_options(items: str, good: str) -> dict[str, list[Option]]:
    """Return the options of a simulator: those of its items, those of any crowd, and how many workers are good."""
    text = f"""
    Options:
      -o, --output FOLDER  Write the files in this folder, which is made if it is not there.
      {PRINTING}
    Items:
      {items}
    {_CROWD}
    """
    good_workers = {"default": good, "show_default": True, "callback": _read_good}
    return read_options(text, {**_SETTINGS, "--good": good_workers})


_PRIOR = "--prior P,P,...  Class probabilities. Default: equal."
_ITEMS = "--items N  Number of items. [default: 1000]"
_SEQUENCES = """
      --sequences N  Number of sequences. [default: 25]
      --length N|LEAST,MOST  Items in each sequence, or a range to draw from. [default: 40]
      --stickiness P  Probability that a label stays what it was, beyond what the random transition matrix says.
          [default: 0.0]
"""
_NETWORK = f"""
      {_ITEMS}
      --degree D  Average number of neighbours. [default: 5.0]
      --homophily P  Share of edges within a class. [default: 0.9]
      {_PRIOR}
"""


@simulate.command("independent", cls=Command, groups=_list_options(f"{_ITEMS}\n{_PRIOR}", good="most"))
def independent(**arguments: Any) -> None:
    """Items that have nothing to do with each other."""
    run("independent", arguments)


@simulate.command("sequences", cls=Command, groups=_list_options(_SEQUENCES, good="most"))
def sequences(**arguments: Any) -> None:
    """Sequences of items whose labels form a Markov chain."""
    run("sequences", arguments)


@simulate.command("network", cls=Command, groups=_list_options(_NETWORK, good="all"))
def network(**arguments: Any) -> None:
    """Items in a network that links like with like."""
    run("network", arguments)


def run(kind: str, arguments: dict[str, Any]) -> None:
    """Draw, write, and only then print."""
    asked = dict(arguments)
    output, file_format, force = (asked.pop(name) for name in ("output", "file_format", "force"))
    tables = ("answers", "truth", *(("edges",) if kind == "network" else ()))
    suffix = next(each.suffixes[0] for each in writable_formats() if each.name == file_format)
    files = {name: str(Path(output, f"{name}{suffix}")) for name in tables}
    files["parameters"] = str(Path(output, "parameters.json"))
    check_folder(output, files, force)
    crowd = draw(kind, asked)
    write(crowd, output, files, {"simulator": kind, **asked})
    found = summarise(crowd, kind, asked["seed"], files)
    tell(lambda: found, lambda: print_summary(crowd, found, files))


def check_folder(output: str, files: dict[str, str], force: bool) -> None:
    """Raise an error where files could not be written, or would replace others without leave."""
    from ..errors import InputError, listing
    from ..formats.writing import check_writable

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


def draw(kind: str, asked: dict[str, Any]) -> Simulation:
    """Draw the crowd."""
    from .. import simulate as simulators

    crowd: Simulation = getattr(simulators, kind)(**asked)
    return crowd


def write(crowd: Simulation, output: str, files: dict[str, str], options: dict[str, Any]) -> None:
    """Write all files, or none, in a folder that is made if need be."""
    from ..formats.writing import replace_file, replace_together, write_table

    tables, content = make_tables(crowd), json.dumps(describe(crowd, options))
    made = [folder for folder in (Path(output), *Path(output).parents) if not os.path.exists(folder)]
    try:
        make_folders(made[::-1])
        with replace_together():
            for name, table in tables.items():
                write_table(table, files[name])
            with replace_file(files["parameters"]) as temporary:
                temporary.write_text(f"{content}\n", encoding="utf-8")
    except BaseException:
        for folder in made:
            with suppress(OSError):  # not made yet
                folder.rmdir()
        raise


def make_folders(folders: Sequence[Path]) -> None:
    """Make folders, each in the one before it."""
    from ..errors import InputError, first_line

    for folder in folders:
        try:
            folder.mkdir()
        except OSError as error:
            problem = f"The folder {str(folder)!r} cannot be made: {first_line(error)}."
            raise InputError(problem, "Name another one.") from error


def make_tables(crowd: Simulation) -> dict[str, Any]:
    """Return the tables of answers, truth and edges, with ids in columns."""
    import numpy as np
    import pyarrow as pa

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


def describe(crowd: Simulation, options: dict[str, Any]) -> dict[str, Any]:
    """Return what the crowd was drawn from, in terms of JSON; workers and classes in the order of their ids."""
    from .command import to_json

    true = crowd.parameters
    names = ("prior", "confusion", "transition", "initial", "kinds")
    found = {name: getattr(true, name) for name in names if getattr(true, name) is not None}
    copies = [None if leader < 0 else leader for leader in true.copies.tolist()]
    content: dict[str, Any] = to_json({"options": options, **found, "copies": copies})
    return content


def summarise(crowd: Simulation, kind: str, seed: int, files: dict[str, str]) -> dict[str, Any]:
    """Return how large the crowd is, and where the files are."""
    from collections import Counter

    r = crowd.responses
    sizes = {"items": r.n_items, "workers": r.n_workers, "classes": r.n_classes, "answers": r.n_responses}
    if r.sequences is not None:
        sizes["sequences"] = len(r.sequences)
    if crowd.graph is not None:
        sizes["edges"] = crowd.graph.n_edges
    kinds = dict(Counter(crowd.parameters.kinds.tolist()))
    return {"simulator": kind, "seed": seed, **sizes, "kinds": kinds, "files": files}


def print_summary(crowd: Simulation, found: dict[str, Any], files: dict[str, str]) -> None:
    """Print what was drawn, where it is, and what to do with it."""
    from .terminal import open_console, print_facts, print_title

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
    console = open_console()
    print_title(console, f"A made-up crowd ({found['simulator']}, seed {found['seed']})")
    print_facts(console, facts)
    console.print()
    print_facts(console, [(name.capitalize(), make_inert(path)) for name, path in files.items()])
    console.print()
    print_title(console, "Next")
    answers, truth = (shlex.quote(files[name]) for name in ("answers", "truth"))
    labels = shlex.quote(str(Path(files["answers"]).with_stem("labels")))
    graph = f" --graph {shlex.quote(files['edges'])}" if "edges" in files else ""
    console.print(make_inert(f"  consilience fuse {answers}{graph} -o {labels}"))
    console.print(make_inert(f"  consilience evaluate {labels} {truth}"))


def _plural(kind: str, count: int) -> str:
    if kind == "honest" or count == 1:
        return kind
    return "adversaries" if kind == "adversary" else f"{kind}s"
