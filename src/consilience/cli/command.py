"""What all commands share: exit codes, errors and warnings in one line each, help in groups.

=====  ==========================================================
code   meaning
=====  ==========================================================
0      done
1      failure: something unexpected
2      bad input or usage; the message says what to do
129    hung up (SIGHUP)
130    interrupted (SIGINT)
143    terminated (SIGTERM)
=====  ==========================================================
"""

from __future__ import annotations

import json
import logging
import shlex
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import cleandoc
from textwrap import indent
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from ..errors import LONGEST, ConsilienceError, ConsilienceWarning, Message, Python, Sentence, Spelling, cut, first_line
from ..memory import available_memory, format_bytes

if TYPE_CHECKING:
    from ..results.findings import Finding

FAILURE, BAD_INPUT, STOPPED = 1, 2, 128  # the last plus the number of the signal

Record = dict[str, Any]


# Under which names the context of a command keeps its arguments as they were typed, and the warnings that were given.
TYPED = "consilience.typed"
WARNINGS = "consilience.warnings"
ASKED = "consilience.asked"
# Joiners hold emoji and many scripts together, and do nothing else.
_JOINERS = "\u200c\u200d"
ENDINGS = {"SIGHUP": "Hung up.", "SIGINT": "Interrupted.", "SIGTERM": "Terminated."}


class Stopped(KeyboardInterrupt):
    """A signal asked the program to stop: all that is begun is undone, as after an interruption."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number)
        self.number = number


def heed_signals() -> None:
    """Let signals that would end this process at once raise `Stopped` instead. Those that are ignored stay so."""
    heeded = [
        number
        for number in (getattr(signal, name, None) for name in ENDINGS)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL
    ]

    def stop(number: int, _: FrameType | None) -> None:
        for each in heeded:  # a second signal must not disturb what the first began
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(signal.Signals(number))

    for number in heeded:
        signal.signal(number, stop)


# What a context holds if the process has nothing to do but to run a command.
ALONE = "alone"
# The widest that names of options are beside their help.
WIDEST = 25


class Option(click.Option):
    """An option that says without which others, and with which, it has no effect.

    Parameters
    ----------
    needs : tuple of str
        Other options, each perhaps with a value ("--engine dask"), of which at least one has to be given.
    reason : str
        What this one does with them.
    clashes : dict
        Other options that must not be given, and what to say if they are.
    **settings
        As for `click.Option`.
    """

    def __init__(
        self,
        names: Sequence[str],
        needs: Sequence[str] = (),
        reason: str = "",
        clashes: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(names, **settings)
        self.needs, self.reason, self.clashes = needs, reason, clashes or {}

    def check(self, ctx: click.Context) -> None:
        """Raise an error if this option is given, and has no effect beside the others."""
        name = self.opts[-1]
        if not is_given(ctx, name):
            return
        if self.needs and not any(is_given(ctx, other) for other in self.needs):
            why = f": {self.reason}" if self.reason else ""
            raise click.UsageError(f"{name} needs {' or '.join(self.needs)}{why}.", ctx)
        for other, message in self.clashes.items():
            if is_given(ctx, other):
                raise click.UsageError(message, ctx)


def is_given(ctx: click.Context, text: str) -> bool:
    """Tell whether a parameter was given: an option, one with a value ("--engine dask"), or an argument ("SOURCE")."""
    name, _, value = text.partition(" ")
    found = next(each for each in ctx.command.params if name in each.opts or name.lower() == each.name)
    given = ctx.params.get(found.name or "")
    if value:
        return given == value or (isinstance(given, dict) and value in given)
    is_typed = ctx.get_parameter_source(found.name or "") == ParameterSource.COMMANDLINE
    return is_typed and given is not None


class Command(click.Command):
    """A command whose options are in groups, and whose errors end in an exit code and one line on stderr.

    Parameters
    ----------
    groups : mapping
        The options, by the titles under which the help lists them.
    *args, **settings
        As for `click.Command`.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[click.Option]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.groups = groups
        self.params += [option for options in groups.values() for option in options]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the titles of their groups, their texts all in one column."""
        groups = {title: list(options) for title, options in self.groups.items()}
        if (asks_help := self.get_help_option(ctx)) is not None:
            next(iter(groups.values())).append(asks_help)
        records = {
            title: [record for option in options if (record := option.get_help_record(ctx)) is not None]
            for title, options in groups.items()
        }
        width = max(len(name) for rows in records.values() for name, _ in rows if len(name) <= WIDEST)
        for title, rows in records.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows], col_max=width)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they were typed, parse them, and refuse those without an effect."""
        typed = ctx.meta[TYPED] = tuple(args)
        rest = super().parse_args(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(list(typed))
        for option, count in Counter(order).items():
            if count > 1 and isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                problem = f"{option.opts[-1]} takes one value, and was given {count} times. Give it once."
                raise click.UsageError(problem, ctx)
        for option in self.params:
            if isinstance(option, Option):
                option.check(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        debug, quiet = is_asked("debug"), is_asked("quiet")
        spell = spell_options(self)
        try:
            if ctx.obj == ALONE:
                leave_pandas_out()
            with tidy_warnings(spell, debug, quiet) as ctx.meta[WARNINGS]:
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click knows what to do
        except KeyboardInterrupt as stop:
            _leave(ctx, *tell_signal(stop), debug)
        except ConsilienceError as error:
            _leave(ctx, BAD_INPUT, f"Error: {_add_notes(error.say(spell), error)}", debug)
        except MemoryError as error:
            asked = f" ({words})" if (words := first_line(error)) else ""
            shortage = Message(
                f"The memory is too small for this: there are {format_bytes(available_memory())}{asked}.",
                "Take a part of the data.",
                Sentence("Or keep answers on disk: {memory}."),
            )
            _leave(ctx, BAD_INPUT, f"Error: {_add_notes(shortage.say(spell), error)}", debug)
        except Exception as error:
            problem = _add_notes(f"{type(error).__name__}: {str(error).rstrip('.')}.", error)
            remedy = "" if debug else " Run again with --debug for the traceback."
            _leave(ctx, FAILURE, f"Failure: {problem}{remedy}", debug)


def declare(
    run: str,
    groups: Mapping[str, Sequence[click.Option]],
    *arguments: click.Argument,
    name: str | None = None,
    short: str | None = None,
) -> Callable[[Callable[[], None]], Command]:
    """Return what makes a command of a function without a body, whose docstring is the help.

    Parameters
    ----------
    run : str
        The function that does what the help says, and its module in this package, which is not imported before:
        "fuse:fuse".
    groups : mapping
        The options, by the titles under which the help lists them.
    *arguments : click.Argument
        What is given without a name.
    name : str, optional
        What users type. Default: the name of the function.
    short : str, optional
        What it does, for the list of all commands. Default: the beginning of the help.
    """

    def run_later(**given: object) -> None:
        home, _, function = run.partition(":")
        getattr(import_module(f".{home}", __package__), function)(**given)

    def make(function: Callable[[], None]) -> Command:
        text, _, examples = cleandoc(function.__doc__ or "").partition("\n\nExamples\n--------\n")
        lines = indent(examples, "  ").replace("\n\n", "\n\n\b\n")  # \b keeps lines apart
        return Command(
            name or function.__name__,
            callback=run_later,
            params=list(arguments),
            help=text,
            epilog=f"\b\nExamples:\n{lines}" if examples else None,
            short_help=short,
            groups=groups,
        )

    return make


class WithoutPandas:
    """Finds no pandas, wherever it is."""

    def find_spec(self, name: str, *_: object) -> None:
        """Raise what Python does for a module that is not installed."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out")


def leave_pandas_out() -> None:
    """Let pyarrow find no pandas.

    It looks for it when it makes its first array, and loading pandas takes as long as all else. No command needs it.
    """
    if "pandas" in sys.modules:
        return
    finder: Any = WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def _leave(ctx: click.Context, code: int, message: str, debug: bool) -> NoReturn:
    lines = [*(traceback.format_exc().splitlines() if debug else ()), message]
    with suppress(OSError):  # there may be nobody left to tell, after a hangup
        print(*map(_to_line, lines), sep="\n", file=sys.stderr, flush=True)
    ctx.exit(code)


def _add_notes(problem: str, error: Exception) -> str:
    """Return what is wrong, and what was noted on the way."""
    return " ".join((problem, *getattr(error, "__notes__", ())))


def _to_line(text: str) -> str:
    """Return text that is inert, and not too long."""
    return cut(make_inert(cut(text)))


def make_inert(text: str) -> str:
    r"""Return text in which control and direction characters are shown by their codes.

    >>> print(make_inert("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _JOINERS else char.encode("unicode_escape").decode() for char in text
    )


def tell_signal(stop: BaseException | None) -> tuple[int, str]:
    """Return the exit code and the message for an interruption."""
    number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
    return STOPPED + number, ENDINGS[number.name]


def show_usage_error(error: click.ClickException) -> int:
    """Print what click says about arguments, which may be of any length; return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # which is our own help
        return error.exit_code
    # Room is left for how to get help, which click says too.
    error.message = cut(_to_line(error.message), LONGEST - 200)  # type: ignore[misc]
    error.show()
    return error.exit_code


def spell_options(command: click.Command) -> Spelling:
    """Return how parameters of the library are spelled as options of a command, whose names in Python they have.

    >>> option = click.Option(["--items", "n_items"])
    >>> spell = spell_options(click.Command("simulate", params=[option]))
    >>> spell("n_items", None), spell("n_items", 7), spell("tol", None)
    ('--items', '--items 7', None)
    """
    options = {option.name: option for option in command.params if isinstance(option, click.Option)}

    def spell(name: str, value: object) -> str | None:
        given = value.value if isinstance(value, Python) else value
        if name not in options:
            return None
        text = ((given is False and options[name].secondary_opts) or options[name].opts)[-1]
        return text if given is None or options[name].is_flag else f"{text} {shlex.quote(str(given))}"

    return spell


@contextmanager
def tidy_warnings(spell: Spelling, debug: bool, quiet: bool) -> Iterator[list[str]]:
    """Print each warning of the package once, as one line on stderr; those of others only with `debug`.

    What the package logs as a warning is shown in the same way. All of them are listed in what the context gives.
    """
    told: list[str] = []

    def print_once(text: str) -> None:
        if text in told:
            return
        told.append(text)
        if not quiet:
            # Not by click, which would write past the progress display.
            print(f"Warning: {text}", file=sys.stderr, flush=True)

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if isinstance(message, ConsilienceWarning):
            print_once(_to_line(message.say(spell)))
        elif debug:
            print_once(_to_line(f"{category.__name__}: {message}"))

    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: print_once(_to_line(record.getMessage()))  # type: ignore[method-assign]
    log = logging.getLogger("consilience")
    log.addHandler(handler)
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConsilienceWarning)
        warnings.showwarning = show
        try:
            yield told
        finally:
            log.removeHandler(handler)


def keep_asked(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    """Keep a flag that is not for the function of a command, but for what runs and prints: a callback."""
    ctx.meta[f"{ASKED}.{option.name}"] = value


def is_asked(name: str) -> bool:
    """Tell whether such a flag was given to the command that runs."""
    return bool(click.get_current_context().meta.get(f"{ASKED}.{name}"))


def tell(content: Callable[[], Record], show: Callable[[], None]) -> None:
    """Print how it went in the form asked for: one JSON object, tables, or nothing."""
    if is_asked("as_json"):
        print_json(content())
    elif not is_asked("quiet"):
        show()


def describe_findings(findings: Iterable[Finding], question: str | None = None) -> list[Record]:
    """Return what checks found, of one of several questions, in the words of this command, and whether it was told."""
    context = click.get_current_context()
    spell, told = spell_options(context.command), context.meta[WARNINGS]
    records = []
    for each in findings:
        warning = each.warning() if question is None else each.warning().said_of(question)
        records.append(each.to_record(spell) | {"warned": _to_line(warning.say(spell)) in told})
    return records


def print_json(content: Record) -> None:
    """Print one JSON object, with the warnings that were given.

    It is in ASCII: text from the data cannot act on a terminal.
    """
    told = click.get_current_context().meta[WARNINGS]
    click.echo(json.dumps(to_json({**content, "warnings": told}), indent=2))


def to_json(value: Any) -> Any:
    """Return a value in terms of JSON: numbers that are not finite are null, what JSON does not know is text.

    >>> to_json({"a": (1, float("nan")), 2: b"x"})
    {'a': [1, None], '2': "b'x'"}
    """
    if isinstance(value, dict):
        return {str(name): to_json(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return to_json(value.tolist())
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, str | int) else str(value)
