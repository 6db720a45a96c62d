"""What all commands share: options from the table, exit codes, and errors and warnings in one line each.

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
import os
import shlex
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click
from click.core import ParameterSource

from ..errors import (
    LONGEST_MESSAGE,
    ConsilienceError,
    ConsilienceWarning,
    Message,
    Python,
    Sentence,
    Spelling,
    cut,
    first_line,
    make_inert,
)
from ..limits import available_memory, format_bytes
from ..options import FLAG, Option, find_option

if TYPE_CHECKING:
    from ..documents.document import Document, Fact
    from ..results.findings import Finding

FAILURE, BAD_INPUT, STOPPED = 1, 2, 128  # the last plus the number of the signal

Record = dict[str, Any]


# Under which names the context of a command keeps its arguments as they were typed, the warnings that were given, and
# what is printed and how.
TYPED_ARGUMENTS, WARNINGS, PRINTING = "consilience.typed", "consilience.warnings", ("quiet", "as_json", "debug")
ENDINGS = {"SIGHUP": "Hung up.", "SIGINT": "Interrupted.", "SIGTERM": "Terminated."}
# What a context holds if the process has nothing to do but to run a command.
IS_PROCESS = "alone"
# The widest that names of options are beside their help, and with how many options only the main ones are shown.
WIDEST_NAME, MANY_CHOICES = 25, 24


# ------------------------------------------------------------------------------------------------------------ options


class Value(click.ParamType):  # type: ignore[type-arg]
    """A value as the table of options has it, or one of those that a register has when it is given."""

    name = "text"

    def __init__(self, option: Option, choices: Callable[[], Sequence[str]] | None) -> None:
        self.domain = option.domain
        self.choices = choices or (lambda: option.domain.choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value that a text stands for."""
        if not isinstance(value, str):
            return value
        choices = self.choices()
        if choices and value not in choices:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, choices))}.", param, ctx)
        try:
            read = self.domain.read(value)
        except (ValueError, OverflowError):
            read = None
        if read is None or not (choices or self.domain.accepts(read)):
            self.fail(f"must be {self.domain.expected}. Got {value!r}.", param, ctx)
        return read


# A longer list of choices does not fit beside a flag, and is in the text.
LONGEST_CHOICE = 70


class Parameter(click.Option):
    """An option of the table, as click has it."""

    def __init__(
        self, name: str, owners: Sequence[str], note: str, choices: Callable[[], Sequence[str]] | None = None
    ) -> None:
        option = find_option(name, *owners)
        assert option is not None, name
        self.option = option
        again = " May be given several times." if option.many else ""
        says = f"{option.says}{again}".replace("{note}", note)
        flags = option.flags or (f"--{name.replace('_', '-')}",)
        more: Record = {"is_flag": True} if option.domain is FLAG else {"type": Value(option, choices)}
        if option.domain is not FLAG:
            listed = (choices or (lambda: option.domain.choices))()
            spelled = f"[{'|'.join(listed)}]" if option.domain.metavar == "WORD" else ""
            fits = listed and len(spelled) <= LONGEST_CHOICE
            more["metavar"] = spelled if fits else option.domain.metavar
            says += f" One of {', '.join(listed)}." if spelled and listed and not fits else ""
            if " " in option.domain.metavar:  # a name and a value
                more["type"] = (str, more["type"])
            more["show_default"] = option.default not in (None, ())
        if name in PRINTING:  # is for what runs and prints, and not for the function of a command
            more |= {"expose_value": False, "callback": lambda ctx, _, value: ctx.meta.update({name: value})}
        if option.default is not None or not option.required:
            more["default"] = option.default
        super().__init__([*flags, name], multiple=option.many, required=option.required, help=says, **more)


def is_given(ctx: click.Context, text: str) -> bool:
    """Whether a parameter was given: by its name, or with a value ("engine=dask")."""
    name, _, value = text.partition("=")
    given = ctx.params.get(name)
    if value:
        return bool(given == value)
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE and given is not None


def spell_flag(ctx: click.Context, text: str) -> str:
    """A parameter as it is typed, or the name of an argument."""
    name, _, value = text.partition("=")
    parameter = next(each for each in ctx.command.params if each.name == name)
    spelled = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
    return f"{spelled} {value}" if value else spelled


def refuse(what: str, *names: str) -> None:
    """Raise an error for parameters that are given, and have no effect on what there is."""
    ctx = click.get_current_context()
    flags = ", ".join(spell_flag(ctx, name) for name in names if is_given(ctx, name))
    if flags:
        raise click.UsageError(f"{flags} does not go with {what}. Leave out {flags}.", ctx)


def show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the help with all options: the callback of --help-all."""
    if value and not ctx.resilient_parsing:
        ctx.meta["all"] = True
        click.echo(ctx.get_help())
        ctx.exit()


class Command(click.Command):
    """A command whose options are in groups, and whose errors end in an exit code and one line on stderr.

    Parameters
    ----------
    groups : mapping
        The options, by the titles under which the help lists them.
    *args, **settings
        As for `click.Command`.
    """

    def __init__(self, *args: Any, groups: Mapping[str, list[click.Option]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.groups = groups
        options = [option for each in groups.values() for option in each]
        self.is_long = len(options) > MANY_CHOICES
        if self.is_long:
            more = click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show_all)
            more.help = f"Show all {len(options) + 1} options and exit."
            options.append(more)
            next(iter(groups.values())).append(more)
        self.params += options

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the titles of their groups, their texts all in one column."""
        records: dict[str, list[tuple[str, str]]] = {}
        for n, (title, options) in enumerate(self.groups.items()):
            shown = [
                each
                for each in (*options, *((self.get_help_option(ctx),) if n == 0 else ()))
                if each is not None
                and (not self.is_long or ctx.meta.get("all") or not isinstance(each, Parameter) or each.option.main)
            ]
            if shown:
                records[title] = [record for each in shown if (record := each.get_help_record(ctx)) is not None]
        width = max(len(name) for rows in records.values() for name, _ in rows if len(name) <= WIDEST_NAME)
        for title, rows in records.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows], col_max=width)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they were typed, parse them, and refuse those without an effect."""
        ctx.meta[TYPED_ARGUMENTS] = ["consilience", ctx.info_name or "", *args]
        typed = list(args)
        rest = super().parse_args(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(typed)
        for option, count in Counter(order).items():
            if count > 1 and isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                problem = f"{option.opts[-1]} takes one value, and was given {count} times. Give it once."
                raise click.UsageError(problem, ctx)
        for flag in self.params:
            if not isinstance(flag, Parameter) or not is_given(ctx, flag.name or ""):
                continue
            for need in flag.option.needs:
                if not any(is_given(ctx, other) for other in need.split("|")):
                    others = " or ".join(spell_flag(ctx, other) for other in need.split("|"))
                    raise click.UsageError(f"{flag.opts[-1]} needs {others}.", ctx)
            clashing = " and ".join(spell_flag(ctx, other) for other in flag.option.clashes if is_given(ctx, other))
            if clashing:
                raise click.UsageError(f"{flag.opts[-1]} does not go with {clashing}. Leave out one of them.", ctx)
        return rest

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        debug, quiet = bool(ctx.meta.get("debug")), bool(ctx.meta.get("quiet"))
        spell = spell_options(self)
        try:
            if ctx.obj == IS_PROCESS:
                leave_pandas_out()
            with tidy_warnings(spell, debug, quiet) as ctx.meta[WARNINGS]:
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click knows what to do
        except KeyboardInterrupt as stop:
            _leave(ctx, *describe_signal(stop), stop, debug)
        except ConsilienceError as error:
            _leave(ctx, BAD_INPUT, f"Error: {error.say(spell)}", error, debug)
        except MemoryError as error:
            asked = f" ({words})" if (words := first_line(error)) else ""
            shortage = Message(
                f"The memory is too small for this: there are {format_bytes(available_memory())}{asked}.",
                "Take a part of the data.",
                Sentence("Or keep answers on disk: {memory}."),
            )
            _leave(ctx, BAD_INPUT, f"Error: {shortage.say(spell)}", error, debug)
        except Exception as error:
            problem = f"Failure: {type(error).__name__}: {str(error).rstrip('.')}."
            error.add_note("" if debug else "Run again with --debug for the traceback.")
            _leave(ctx, FAILURE, problem, error, debug)


def leave_pandas_out() -> None:
    """Let pyarrow find a pandas that is too old when it makes its first array: loading it takes as long as all else."""
    if "pandas" not in sys.modules:
        import pyarrow as pa

        sys.modules["pandas"] = cast(Any, SimpleNamespace(__version__="0"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pa.array([0])
        del sys.modules["pandas"]


# --------------------------------------------------------------------------------------------- errors and warnings


def _leave(ctx: click.Context, code: int, problem: str, error: BaseException, debug: bool) -> NoReturn:
    message = " ".join((problem, *getattr(error, "__notes__", ()))).rstrip()
    lines = [*(traceback.format_exc().splitlines() if debug else ()), message]
    with suppress(OSError):  # there may be nobody left to read it, after a hangup
        print(*map(_to_line, lines), sep="\n", file=sys.stderr, flush=True)
    ctx.exit(code)


def _to_line(text: str) -> str:
    return cut(make_inert(cut(text)))


def describe_signal(stop: BaseException | None) -> tuple[int, str]:
    """The exit code and the message for an interruption."""
    number = stop.args[0] if stop is not None and stop.args else signal.SIGINT
    return STOPPED + number, ENDINGS[number.name]


def show_usage_error(error: click.ClickException) -> int:
    """Print what click says about arguments, which may be of any length; return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # which is our own help
        return error.exit_code
    # Room is left for how to get help, which click says too.
    error.message = cut(_to_line(error.message), LONGEST_MESSAGE - 200)  # type: ignore[misc]
    error.show()
    return error.exit_code


def spell_options(command: click.Command) -> Spelling:
    """How parameters of the library are spelled as options of a command, whose names in Python they have.

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
    shown: list[str] = []

    def print_once(text: str) -> None:
        if text in shown:
            return
        shown.append(text)
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
            yield shown
        finally:
            log.removeHandler(handler)


# ------------------------------------------------------------------------------------------------------------- output


def list_values(values: Mapping[str, Any]) -> list[Fact]:
    """Values that only JSON shows."""
    from ..documents.document import Fact

    return [Fact(key, "", value) for key, value in values.items()]


def describe_finding(finding: Finding, question: str = "") -> Record:
    """What a check found, of one of several questions, in the words of this command, and whether it was warned of."""
    context = click.get_current_context()
    spell, shown = spell_options(context.command), context.meta[WARNINGS]
    warning = finding.warning().said_of(question) if question else finding.warning()
    return finding.to_record(spell) | {"warned": _to_line(warning.say(spell)) in shown}


def publish(document: Document) -> None:
    """Print a document in the form asked for: one JSON object with the warnings that were given, text, or nothing.

    JSON is in ASCII, so that text from the data cannot act on a terminal.
    """
    asked = click.get_current_context().meta
    if asked.get("as_json"):
        from ..documents.terminal import to_record

        warned = {"warnings": asked[WARNINGS]}
        click.echo(json.dumps(to_json(to_record(document.parts, describe_finding) | warned), indent=2))
    elif not asked.get("quiet"):
        from ..documents.terminal import to_lines

        text = to_lines(document, get_terminal_size().columns, describe_finding)
        # Not by click, which would replace what a poor encoding does not have.
        is_plain = not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR"))  # see no-color.org
        print(click.unstyle(text) if is_plain else text)


def to_json(value: Any) -> Any:
    """A value in terms of JSON: numbers that are not finite are null, what JSON does not know is text.

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
