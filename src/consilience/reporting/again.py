"""How to fuse again with what a reviewer labelled: the user's own command, with gold.csv in it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from .subject import spell

# The file that the page downloads.
GOLD = "gold.csv"


class Given(NamedTuple):
    """A command of `consilience` and its arguments, as they were given.

    Attributes
    ----------
    before, after : sequence of str
        What stands before and after the known labels.
    gold : sequence of str
        The files that hold the known labels; none if a saved model holds them.
    keeps : bool
        Whether these files are needed even if gold.csv holds their labels: known spans also say where tokens are cut.
    """

    before: Sequence[str]
    after: Sequence[str]
    gold: Sequence[str]
    keeps: bool = False


class Again(NamedTuple):
    """How to fuse again.

    Attributes
    ----------
    command : str
        For the shell; empty where it would have to name files that nothing is known of.
    python : str
        For Python; empty where the command that was given is known.
    gives_known : bool
        Whether files of known labels are given beside gold.csv.
    """

    command: str
    python: str
    gives_known: bool


def suppose(has_content: bool) -> Given:
    """Return the arguments that may have been given, where nothing is known of them."""
    content = ("--content", "COLUMN") if has_content else ()
    return Given(("fuse", "answers.csv", *content), ("--report", "report.html"), ("known.csv",))


def plan_next_run(given: Given | None, has_content: bool, argument: str, holds_known: bool) -> Again:
    """Return how to fuse again.

    Parameters
    ----------
    given : Given or None
        The arguments of the command; None if there was none.
    has_content : bool
        Whether it was said what the items look like.
    argument : str
        What the answers are called in Python.
    holds_known : bool
        Whether gold.csv holds the labels that were known before. If not, their files are given beside it.

    Examples
    --------
    >>> plan_next_run(Given(("update", "crowd.model"), (), ()), False, "answers", holds_known=False)
    Again(command='consilience update crowd.model --gold gold.csv', python='', gives_known=False)
    """
    known = "" if holds_known else '"known.csv", '
    gold = f'"{GOLD}"' if holds_known else f'[{known}"{GOLD}"]'
    python = f"fused = consilience.fuse({argument}, gold={gold})"
    if argument != "answers" and given is None:
        return Again("", python, not holds_known)
    supposed = given or suppose(has_content)
    command = write_command(supposed, holds_known)
    return Again(command, "" if given is not None else python, not holds_known and bool(supposed.gold))


def write_command(given: Given, holds_known: bool) -> str:
    """Return the command line that fuses again with gold.csv, alone or beside the files of known labels.

    >>> given = Given(["fuse", "my answers.csv"], ["--report", "r.html"], ["a.csv"])
    >>> write_command(given, True)
    "consilience fuse 'my answers.csv' --gold gold.csv --report r.html"
    >>> write_command(given, False)
    "consilience fuse 'my answers.csv' --gold a.csv --gold gold.csv --report r.html"
    """
    files = [GOLD] if holds_known and not given.keeps else [*given.gold, GOLD]
    gold = [part for file in files for part in ("--gold", file)]
    return " ".join(shlex.quote(spell(part)) for part in ("consilience", *given.before, *gold, *given.after))
