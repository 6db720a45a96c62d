"""Options are declared by text that looks like the help. Here it is read, as are values that are more than a word."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.types import convert_type

from .. import formats as register
from ..answers import list_names
from .command import Option, keep_asked

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Parameters of an option.
Settings: TypeAlias = Mapping[str, Any]

# As in the library, whose modules with these names take long to import.
ROLES = ("item", "worker", "label", "sequence", "position", "weight")
CALIBRATIONS = ("hidden answers", "gold", "none")
PRIORS = ("learn", "uniform")
# Forms of tables, see `answers.dialects`.
FORMS = (*list_names(), "one-hot")

COUNT, COUNT_OR_NONE, SHARE = click.IntRange(min=1), click.IntRange(min=0), click.FloatRange(0, 1)
# What the class of commands reads, and their functions do not.
_ASKED: Settings = {"expose_value": False, "callback": keep_asked}
_SHARED: dict[str, Settings] = {"--quiet": _ASKED, "--json": {**_ASKED, "name": "as_json"}, "--debug": _ASKED}


def read_options(text: str, settings: Mapping[str, Settings] | None = None) -> dict[str, list[Option]]:
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


def _read_option(text: str, settings: Mapping[str, Settings]) -> Option:
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


class Value(click.ParamType):  # type: ignore[type-arg]
    """A value that a function reads; its `ValueError` says what is wrong."""

    name = "text"

    def __init__(self, read: Callable[[str], object]) -> None:
        self.read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return the value that a text stands for."""
        try:
            return self.read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class FormatName(click.ParamType):  # type: ignore[type-arg]
    """The name of a format of files, or of a form of tables, that the registers have when it is given."""

    name = "format"

    @property
    def choice(self) -> click.Choice[str]:
        """One of these names."""
        return click.Choice([*(each.name for each in register.FORMATS), *FORMS])

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return the name."""
        return self.choice.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with a text."""
        return self.choice.shell_complete(ctx, param, incomplete)


def split(text: str) -> list[str]:
    """Return the parts of a text between commas; one in quotes may hold some.

    >>> split('a, "b,c"'), split("")
    (['a', 'b,c'], [''])
    """
    return next(csv.reader([text], skipinitialspace=True), []) or [""]


def read_columns(text: str) -> dict[str, str]:
    """Return columns by their roles."""
    columns: dict[str, str] = {}
    known = (*ROLES, "order", "gold")
    for part in split(text):
        role, sign, name = part.partition("=")
        if role not in known or not sign or role in columns:
            raise ValueError(
                f"{text!r} must name columns such as item=HITId,worker=WorkerId,label=Answer.category, each of "
                f"{', '.join(known)} at most once."
            )
        columns[role] = name
    return columns


def read_classes(text: str) -> list[str]:
    """Return names of classes."""
    if "" in split(text):
        problem = f"{text!r} has an empty class."
        raise ValueError(f"{problem} Separate classes by single commas, and quote one that holds a comma.")
    return split(text)


def read_setting(text: str) -> tuple[str, object]:
    """Return what holds for one question: the name of a parameter and its value.

    >>> read_setting("ordered=yes"), read_setting("classes=good,bad"), read_setting("separator=;")
    (('ordered', True), ('classes', ['good', 'bad']), ('separator', ';'))
    """
    key, sign, value = text.partition("=")
    if not sign or key not in _SETTINGS:
        raise ValueError(f"{text!r} is no setting such as ordered=yes; there are {', '.join(_SETTINGS)}.")
    return key, _SETTINGS[key](value)


def read_answer(text: str) -> bool:
    """Return whether a text is yes, and not no."""
    if text not in ("yes", "no"):
        raise ValueError(f"{text!r} is neither yes nor no.")
    return text == "yes"


def read_prior(text: str) -> str | dict[str, float]:
    """Return how frequent the classes are, or how that is found."""
    parts = [part.rpartition("=") for part in split(text)]
    try:
        return text if text in PRIORS else {name: float(number if sign else "") for name, sign, number in parts}
    except ValueError:
        known = f"{text!r} is neither learn nor uniform, nor class probabilities such as cat=0.9,dog=0.1."
        raise ValueError(known) from None


def read_calibration(text: str) -> str | float:
    """Return by what probabilities are calibrated."""
    name = text.replace("-", " ")
    try:
        return name if name in CALIBRATIONS else float(text)
    except ValueError:
        known = ", ".join(each.replace(" ", "-") for each in CALIBRATIONS)
        raise ValueError(f"{text!r} is neither one of {known}, nor a number.") from None


def read_numbers(text: str) -> list[float]:
    """Return a list of numbers."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{text!r} is no list of numbers, such as 0.3,0.7.") from None


def read_accuracy(text: str) -> float | tuple[float, ...] | list[float]:
    """Return one accuracy for all workers, the ends of a range, or one for each worker."""
    numbers = read_numbers(text)
    return numbers if len(numbers) > 2 else numbers[0] if len(numbers) == 1 else tuple(numbers)


def read_length(text: str) -> int | tuple[int, ...]:
    """Return the length of all sequences, or the ends of a range."""
    ends = [int(part) for part in text.split(",")] if re.fullmatch(r"\s*[+-]?\d+\s*(,\s*[+-]?\d+\s*)?", text) else []
    if not ends:
        raise ValueError(f"{text!r} is no length such as 40, nor a range such as 5,30.")
    return ends[0] if len(ends) == 1 else tuple(ends)


# What may hold for one of several questions, and how it is read.
_SETTINGS: dict[str, Callable[[str], object]] = {
    "separator": str,
    "classes": read_classes,
    "ordered": read_answer,
    "positions": read_numbers,
    "gold": str,
}


def read_good(text: str) -> str | int:
    """Return how many workers are better than random."""
    if text not in ("most", "all") and not text.isdecimal():
        raise ValueError(f"{text!r} is neither 'most' nor 'all' nor a number.")
    return text if text in ("most", "all") else int(text)
