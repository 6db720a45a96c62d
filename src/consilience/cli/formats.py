"""`consilience formats` lists what can be read and written, and `consilience convert` writes it in another format."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ..formats.register import span_formats
from .command import Command, Record, is_asked, make_inert, tell
from .options import AS_JSON, DEBUG, DROP_MISSING, IGNORE, NAMES, PRINTING, ROLES, read_options

if TYPE_CHECKING:
    from ..formats.register import Format

# As in the library, whose module takes long to import.
LAYOUTS = ("long", "wide")

_COLUMNS = "\n".join(f"--{role} COL  In a table: the column of the {role}." for role in ROLES)
_EXAMPLES = """\b
Examples:
  consilience convert label-studio-export.json brat-folder --to brat
  consilience convert batch_results.csv answers.parquet
  consilience convert answers.csv wide.csv --to wide
"""


@click.command(
    cls=Command,
    short_help="Convert the annotations of all workers to another format.",
    epilog=_EXAMPLES,
    groups=read_options(
        f"""
        Options:
          --to NAME  Format of OUT, if its name does not tell: that of a tool, masks, long (one row per answer or span)
              or wide (one column per worker).
          --from NAME  Format of IN, if it is not recognised; see `consilience formats`.
          {PRINTING}
        Columns:
          {_COLUMNS}
          {IGNORE}
        Answers:
          {DROP_MISSING}
        """,
        {
            "--from": {"name": "format", "type": NAMES},
            "--to": {"type": click.Choice([*(each.name for each in span_formats()), "masks", *LAYOUTS])},
        },
    ),
)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
def convert(source: str, target: str, format: str | None, to: str | None, **options: Any) -> None:
    """Convert all annotations of all workers from one format to another.

    IN is anything that `consilience fuse` takes. Spans are written for another annotation tool, or as a table with one
    row per span. Answers are written as a table with one row per answer, or with one column per worker. Masks are
    written to a folder. What cannot be written in the new format is told.
    """
    from ..formats.targets import choose_form, list_losses, read_content, write_content
    from .terminal import Display, fit_text

    started = time.perf_counter()
    with Display(is_asked("quiet")) as display:
        display.say(f"Reading {fit_text(source, 50)}")
        content = read_content(source, format, **options)
        form = choose_form(content, target, to)
        check_target(source, target, is_table=form in LAYOUTS)
        display.say("Writing")
        write_content(content, target, form)
    lost = list_losses(content, form)
    facts = {"source": source, "from": content.format, "read": str(content), "target": target, "to": form, "lost": lost}
    seconds = round(time.perf_counter() - started, 3)
    tell(lambda: {**facts, "seconds": seconds}, lambda: print_conversion(facts, seconds))


def check_target(source: str, target: str, is_table: bool) -> None:
    """Raise an error if the target cannot be written, or if that would change the input."""
    from ..formats.files import is_folder
    from .outputs import check_folder, check_outputs

    if not is_table and is_folder(target):
        check_folder(target, source)
    else:
        check_outputs([target] if is_table else [], [] if is_table else [target], [source])


def print_conversion(facts: Record, seconds: float) -> None:
    """Print what was read and written, and what was not."""
    from .terminal import fit_text, open_console, print_facts, print_title

    console = open_console()
    print_title(console, f"{fit_text(facts['source'], 36)} to {fit_text(facts['target'], 34)}")
    lines = [
        ("Read", f"{facts['read']} ({facts['from']})"),
        ("Written", f"{fit_text(facts['target'], 50)} ({facts['to']})"),
    ]
    if facts["lost"]:
        lines.append(("Not kept", make_inert("; ".join(facts["lost"])) + "."))
    print_facts(console, [*lines, ("Time", f"{seconds:.1f} s")])


@click.command(
    cls=Command,
    short_help="List the formats that can be read and written.",
    groups=read_options(f"Options:\n{AS_JSON}\n{DEBUG}"),
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
