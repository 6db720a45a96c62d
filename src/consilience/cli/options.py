"""Options that several commands share, and short ways to declare one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from ..answers.dialects.register import list_names
from ..formats.register import FORMATS, usual_suffixes, writable_formats
from .command import Option, keep_asked

# As in the library, whose modules with these names take long to import.
ROLES = ("item", "worker", "label", "sequence", "position", "weight")
# Forms of tables, see `answers.dialects`.
FORMS = tuple(list_names())
# What `--format` may name.
NAMES = (*(each.name for each in FORMATS), *FORMS)
TABLES = usual_suffixes(writable_formats())


def option(names: str, metavar: str | None, text: str, **settings: Any) -> Option:
    """Return an option with a value. A default is shown in the help."""
    return Option(names.split(), metavar=metavar, help=text, show_default="default" in settings, **settings)


def flag(names: str, text: str, **settings: Any) -> Option:
    """Return an option without a value."""
    return Option(names.split(), is_flag=True, help=text, **settings)


def choice(names: str, among: Iterable[str], text: str, metavar: str | None = None, **settings: Any) -> Option:
    """Return an option whose value is one of several."""
    return option(names, metavar, text, type=click.Choice(list(among)), **settings)


def number(names: str, metavar: str, text: str, least: int = 1, **settings: Any) -> Option:
    """Return an option whose value is a whole number."""
    return option(names, metavar, text, type=click.IntRange(min=least), **settings)


quiet = flag("-q --quiet", "Print nothing but errors.", expose_value=False, callback=keep_asked)
as_json = flag("--json as_json", "Print one JSON object instead of tables.", expose_value=False, callback=keep_asked)
debug = flag("--debug", "Show the traceback of an error.", expose_value=False, callback=keep_asked)
printing = (quiet, as_json, debug)

source_format = choice(
    "--format",
    NAMES,
    "Format of SOURCE, if it is not recognised; see `consilience formats`.",
    metavar="NAME",
)
ignore = option(
    "--ignore",
    "COL",
    "Where each worker has a column: one that holds no answers. May be given several times.",
    multiple=True,
)
drop_missing = flag("--drop-missing", "Leave out rows without an answer.")
normalise = flag("--normalise", "Take labels that differ only in case, spaces or Unicode form as the same.")
workers_report = option("--workers-report", "FILE", "Write a table of all workers here; suffixes as for -o.")
report = option("--report", "FILE", "Write a report here: one HTML page to look at and to send.")
OF_REPORT = {"needs": ["--report"], "reason": "it says what the report shows of the items"}


def content_file(**settings: Any) -> Option:
    """Return the option for what items look like."""
    text = (
        "What the items look like: a table with a column item (or sequence and position), and one with the text of "
        "each item or the path of its picture."
    )
    return option("--content", "FILE", text, **settings)
