"""`consilience formats`: what can be read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .command import Command, Record, tell
from .options import as_json, debug

if TYPE_CHECKING:
    from ..formats.register import Format


@click.command(
    cls=Command, short_help="List the formats that can be read and written.", groups={"Options": [as_json, debug]}
)
def formats() -> None:
    """List all formats: what is read from each, what is written, and how it is recognised.

    Names are those of `--format` of `fuse`, and of `--from` and `--to` of `convert`.
    """
    rows = describe_formats()
    tell(lambda: {"formats": rows}, lambda: print_formats(rows))


def describe_formats() -> list[Record]:
    """Return what the registers say of all formats of files, and of all forms of tables."""
    from ..answers.dialects.register import DIALECTS, LONG
    from ..answers.responses import LAYOUTS
    from ..formats.register import FORMATS

    forms = [(LONG, "one row per answer", ""), *((each.name, each.title, each.suffix) for each in DIALECTS)]
    tables = [
        {
            "name": name,
            "title": title,
            "read": ["answers"],
            "written": name in LAYOUTS,
            "suffixes": [suffix] if suffix else [],
            "recognised_by": "name" if suffix else "columns",
            "form_of_table": True,
        }
        for name, title, suffix in forms
    ]
    return [_describe_format(each) for each in FORMATS] + tables


def _describe_format(each: Format) -> Record:
    from ..formats.register import FOLDER

    codec = each.codec
    holds = {
        "table": codec.write is not None,
        "spans": codec.read_spans is not None,
        "answers": codec.write_labels is not None,
        "masks": codec.read_masks is not None,
    }
    is_folder = FOLDER in each.outputs
    suffixes = [suffix for suffix in dict.fromkeys((*each.suffixes, *each.outputs)) if suffix != FOLDER]
    return {
        "name": each.name,
        "title": each.title,
        "read": [kind for kind, is_there in holds.items() if is_there],
        "written": any(write is not None for write in (codec.write, codec.write_spans, codec.write_masks)),
        "suffixes": [*suffixes, *(["folder"] if is_folder else [])],
        "recognised_by": "content" if codec.recognise is not None or is_folder else "name",
        "form_of_table": False,
    }


def print_formats(rows: list[Record]) -> None:
    """Print one line for each format, then what each is."""
    from .terminal import Column, open_console, print_facts, print_table, print_title

    console = open_console()
    columns = [Column(name, 24) for name in ("name", "read", "written", "ends in", "found by")]
    for title, are_forms in (("Files and folders", False), ("Forms of tables, in files of any kind", True)):
        shown = [row for row in rows if row["form_of_table"] == are_forms]
        print_title(console, title)
        print_table(console, columns, [_line(row) for row in shown])
        console.print()
        print_facts(console, [(row["name"], row["title"]) for row in shown])
        console.print()
    console.print("  fuse -o writes results in the format of their source, or as a table;")
    console.print("  convert writes all annotations in another.")


def _line(row: Record) -> list[object]:
    ends = [suffix for suffix in row["suffixes"] if suffix != "folder"][:1] + ["folder"] * ("folder" in row["suffixes"])
    found = row["recognised_by"]
    return [row["name"], ", ".join(row["read"]), "yes" if row["written"] else "no", ", ".join(ends), found]
