"""`consilience datasets`: which real crowds can be read, and which of them are here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from .command import Command, tell
from .options import as_json, debug

if TYPE_CHECKING:
    from rich.console import Console

    from ..datasets import Entry


@click.command(
    cls=Command,
    short_help="List the real datasets that can be read, or describe one.",
    groups={"Options": [as_json, debug]},
)
@click.argument("name", required=False)
def datasets(name: str | None) -> None:
    """List the real datasets that can be read, or describe one of them.

    They are not part of the package, and are looked for in the folder $CONSILIENCE_DATA.
    """
    from ..datasets.catalogue import CATALOGUE, find_entry
    from ..datasets.loading import data_folder

    if name is not None:
        entry = find_entry(name)
        tell(lambda: describe(entry), lambda: print_entry(entry))
        return
    everything = {"folder": data_folder(), "datasets": [describe(entry) for entry in CATALOGUE]}
    tell(lambda: everything, print_catalogue)


def describe(entry: Entry) -> dict[str, Any]:
    """Return all that is known of a dataset, and which of its files are here."""
    from ..datasets.loading import data_folder, is_present

    folder = data_folder()
    files = {file: folder is not None and os.path.isfile(folder / entry.name / file) for file in entry.files}
    return {
        "name": entry.name,
        "description": entry.description,
        "kind": entry.kind,
        "items": entry.n_items,
        "workers": entry.n_workers,
        "classes": entry.n_classes,
        "answers": entry.n_answers,
        "licence": entry.licence,
        "citation": entry.citation,
        "source": entry.source,
        "folder": None if folder is None else folder / entry.name,
        "files": files,
        "here": is_present(entry.name),
    }


def print_catalogue() -> None:
    """Print one line for each dataset, and where it was looked for."""
    from ..datasets.catalogue import CATALOGUE
    from ..datasets.loading import is_present
    from .terminal import Column, open_console, print_table, print_title

    console = open_console()
    here = [is_present(entry.name) for entry in CATALOGUE]
    print_title(console, f"Real datasets: {sum(here)} of {len(CATALOGUE)} here")
    columns = [Column("name", 17), Column("kind", 11)]
    columns += [Column(name, number=True) for name in ("items", "workers", "classes", "answers")]
    rows = [
        (
            entry.name,
            entry.kind,
            f"{entry.n_items:,}",
            f"{entry.n_workers:,}" if entry.n_workers else "-",
            entry.n_classes,
            f"{entry.n_answers:,}" if entry.n_answers else "-",
            "here" if found else "absent",
        )
        for entry, found in zip(CATALOGUE, here, strict=True)
    ]
    print_table(console, [*columns, Column("data")], rows)
    console.print()
    print_title(console, "Licence, as stated by the source. Whose work it is")
    print_wrapped(console, [(entry.name, f"{entry.licence}. {entry.citation}") for entry in CATALOGUE])
    console.print()
    console.print(f"  {tell_folder()}")
    if not all(here):
        console.print("  The data are not distributed with consilience: set $CONSILIENCE_DATA to a")
        console.print("  folder that holds them.")
    console.print("  consilience datasets NAME tells more about one, and where it comes from.")


def print_entry(entry: Entry) -> None:
    """Print all that is known of one dataset."""
    from .terminal import open_console, print_facts, print_title

    found = describe(entry)
    size = f"{entry.n_items:,} items, {entry.n_classes} classes"
    if entry.n_answers:
        size = f"{entry.n_answers:,} answers by {entry.n_workers:,} workers about {size}"
    facts = [
        ("What", entry.description),
        ("Kind", entry.kind),
        ("Size", size),
        ("Licence", entry.licence),
        ("Citation", entry.citation),
        ("Source", entry.source),
    ]
    console = open_console()
    print_title(console, entry.name)
    print_wrapped(console, facts)
    console.print()
    print_facts(console, [(file, "here" if there else "absent") for file, there in found["files"].items()])
    console.print()
    console.print(f"  {tell_folder(entry.name)}")
    if not found["here"]:
        console.print("  The data are not distributed with consilience. The page 'datasets' of the")
        console.print("  documentation describes the files; set $CONSILIENCE_DATA to where they are.")


def print_wrapped(console: Console, facts: list[tuple[str, str]]) -> None:
    """Print names and what is to be said of them, long texts on several lines."""
    from textwrap import wrap

    from .terminal import print_facts, spare_width

    width = max(len(name) for name, _ in facts)
    room = 76 - width + spare_width(console)  # past the names and the blanks around them
    for name, text in facts:
        first, *more = wrap(text, room, break_on_hyphens=False, break_long_words=False)
        print_facts(console, [(f"{name:{width}}", first), *(("", line) for line in more)])


def tell_folder(name: str = "") -> str:
    """Return where datasets, or one of them, are looked for."""
    from ..datasets.loading import data_folder
    from .command import make_inert

    folder = data_folder()
    if folder is None:
        return "Looked nowhere: $CONSILIENCE_DATA is not set."
    place = folder / name
    return f"Looked in {make_inert(str(place))}" + ("" if os.path.isdir(place) else ", which is not there")
