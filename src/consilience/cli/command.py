"""What all commands share: exit codes, errors and warnings in one line each, and common options.

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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import click

from ..errors import LONGEST, ConsilienceError, ConsilienceWarning, Python, Spelling, cut

FAILURE, BAD_INPUT, STOPPED = 1, 2, 128  # the last plus the number of the signal

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
workers_report_option = click.option(
    "--workers-report", metavar="FILE", help="Write a table of all workers here; suffixes as for -o."
)
report_option = click.option(
    "--report", metavar="FILE", help="Write a report here: one HTML page to look at and to send."
)
content_option = click.option(
    "--content",
    metavar="FILE",
    help="What the items look like: a table with a column item (or sequence and position), and one with the text of "
    "each item or the path of its picture.",
)
ignore_option = click.option(
    "--ignore",
    metavar="COL",
    multiple=True,
    help="Where each worker has a column: one that holds no answers. May be given several times.",
)
debug_option = click.option("--debug", is_flag=True, help="Show the traceback of an error.")


# Under which names the context of a command keeps its arguments as they were typed, and the warnings that were given.
TYPED = "consilience.typed"
WARNINGS = "consilience.warnings"
_ENDINGS = {"SIGHUP": "Hung up.", "SIGINT": "Interrupted.", "SIGTERM": "Terminated."}


class Stopped(KeyboardInterrupt):
    """A signal asked the program to stop: all that is begun is undone, as after an interruption."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number)
        self.number = number


def heed_signals() -> None:
    """Let signals that would end this process at once raise `Stopped` instead. Those that are ignored stay so."""
    heeded = [
        number
        for number in (getattr(signal, name, None) for name in _ENDINGS)
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


class Command(click.Command):
    """A command whose errors end in an exit code and one line on stderr."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they were typed, and parse them."""
        ctx.meta[TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        debug, quiet = ctx.params.get("debug", False), ctx.params.get("quiet", False)
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
            _leave(ctx, BAD_INPUT, f"Error: {error.say(spell)}", debug)
        except Exception as error:
            remedy = "" if debug else " Run again with --debug for the traceback."
            _leave(ctx, FAILURE, f"Failure: {type(error).__name__}: {str(error).rstrip('.')}.{remedy}", debug)


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


def _to_line(text: str) -> str:
    """Return text that is inert, and not too long."""
    from .text import make_inert

    return cut(make_inert(cut(text)))


def tell_signal(stop: BaseException | None) -> tuple[int, str]:
    """Return the exit code and the message for an interruption."""
    number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
    return STOPPED + number, _ENDINGS[number.name]


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
        text = options[name].opts[-1]
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


def print_json(content: dict[str, Any]) -> None:
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
