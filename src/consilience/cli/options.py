"""Options, declared by text that looks like the help, and those that several commands share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import click
from click.types import convert_type

from ..answers.dialects.register import list_names
from ..formats.register import FORMATS, usual_suffixes, writable_formats
from .command import Option, keep_asked

# As in the library, whose modules with these names take long to import.
ROLES = ("item", "worker", "label", "sequence", "position", "weight")
# Forms of tables, see `answers.dialects`.
FORMS = tuple(list_names())
# Formats that may be named.
NAMES = click.Choice([*(each.name for each in FORMATS), *FORMS])
TABLES = usual_suffixes(writable_formats())

COUNT, COUNT_OR_NONE, SHARE = click.IntRange(min=1), click.IntRange(min=0), click.FloatRange(0, 1)

QUIET = "-q, --quiet  Print nothing but errors."
AS_JSON = "--json  Print one JSON object instead of tables."
DEBUG = "--debug  Show the traceback of an error."
PRINTING = "\n".join((QUIET, AS_JSON, DEBUG))
IGNORE = "--ignore COL  Where each worker has a column: one that holds no answers. May be given several times."
DROP_MISSING = "--drop-missing  Leave out rows without an answer."
NORMALISE = "--normalise  Take labels that differ only in case, spaces or Unicode form as the same."
REPORT = "--report FILE  Write a report here: one HTML page to look at and to send."
WORKERS_REPORT = "--workers-report FILE  Write a table of all workers here; suffixes as for -o."
CONTENT = """
  --content FILE  What the items look like: a table with a column item (or sequence and position), and one with the text
      of each item or the path of its picture.
"""
OF_REPORT: Mapping[str, Any] = {"needs": ["--report"], "reason": "it says what the report shows of the items"}
# What the class of commands reads, and their functions do not.
_ASKED: dict[str, Any] = {"expose_value": False, "callback": keep_asked}
_SHARED: dict[str, Mapping[str, Any]] = {"--quiet": _ASKED, "--json": _ASKED | {"name": "as_json"}, "--debug": _ASKED}


def read_options(text: str, settings: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, list[Option]]:
    """Return options in groups from text that looks like the help.

    A group has a title that ends in a colon. An option has names, and a value unless it is a flag: what it may be if it
    is one of several, or else a word for it. After two blanks comes what it does, which ends in its default, if it has
    one. An option that may be given several times says so.

    Parameters
    ----------
    text : str
        See the example.
    settings : mapping, optional
        What the text does not say, by the long name of the option: parameters of `Option`, and ``name`` for its name
        in Python.

    Examples
    --------
    >>> groups = read_options('''
    ...     Output:
    ...       -o, --output FILE  Write labels here.
    ...     Size:
    ...       --engine [threads|dask]  Where to work. [default: threads]
    ...       --gold FILE  Known labels. May be given several
    ...           times.
    ... ''')
    >>> [(title, [option.name for option in options]) for title, options in groups.items()]
    [('Output', ['output']), ('Size', ['engine', 'gold'])]
    >>> groups["Size"][0].default, groups["Size"][1].multiple
    ('threads', True)
    """
    groups: dict[str, list[Option]] = {}
    title = ""
    for entry in re.split(r"\n\s*(?=-|[A-Z][^\n]*:\n)", "\n" + dedent(text)):
        if entry.rstrip().endswith(":"):
            title = entry.strip().rstrip(":")
            groups[title] = []
        elif entry.strip():
            groups[title].append(_read_option(entry.strip(), {**_SHARED, **(settings or {})}))
    return groups


def _read_option(text: str, settings: Mapping[str, Mapping[str, Any]]) -> Option:
    """Return one option; see `read_options`."""
    head, _, help_text = text.partition("  ")
    help_text, _, default = " ".join(help_text.split()).removesuffix("]").partition(" [default: ")
    *names, last = head.split(", ")
    last, _, value = last.partition(" ")
    given: dict[str, Any] = {"help": help_text, "multiple": "May be given several times." in help_text}
    if not value:
        given |= {"is_flag": True}
    elif value.startswith("["):
        given |= {"type": click.Choice(value.strip("[]").split("|"))}
    else:
        given |= {"metavar": value, **({"type": COUNT} if value == "N" else {})}
    given |= settings.get(last, {})
    if default:
        given |= {"default": convert_type(given.get("type"))(default), "show_default": True}
    own = [given.pop("name")] if "name" in given else []
    return Option([*names, last, *own], **given)
