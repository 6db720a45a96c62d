"""`consilience convert`: all annotations, from one format to another."""

from __future__ import annotations

import time
from typing import Any

import click

from ..formats.register import span_formats
from .command import Command, Record, is_asked, make_inert, tell
from .options import NAMES, ROLES, choice, drop_missing, ignore, option, printing

# As in the library, whose module takes long to import.
LAYOUTS = ("long", "wide")

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
    groups={
        "Options": [
            choice(
                "--to",
                [*(each.name for each in span_formats()), "masks", *LAYOUTS],
                "Format of OUT, if its name does not tell: that of a tool, masks, long (one row per answer or span) or "
                "wide (one column per worker).",
                metavar="NAME",
            ),
            choice(
                "--from format",
                NAMES,
                "Format of IN, if it is not recognised; see `consilience formats`.",
                metavar="NAME",
            ),
            *printing,
        ],
        "Columns": [
            *(option(f"--{role}", "COL", f"In a table: the column of the {role}.") for role in ROLES),
            ignore,
        ],
        "Answers": [drop_missing],
    },
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
