"""The program `consilience` and its commands.

Only click is imported until a command runs, so that `--help` is instant.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from .. import __version__
from .command import ALONE, ENDINGS, FAILURE, STOPPED, describe_signal, heed_signals, show_usage_error
from .commands import COMMANDS


class Program(click.Group):
    """The program. Its messages are never too long, and an interruption ends it in the same way wherever it comes."""

    def main(  # type: ignore[override]  # click's is overloaded
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **more: Any
    ) -> Any:
        """Run the command that the arguments name; exit if this is the whole of the program."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **more)
        try:
            code = super().main(args, standalone_mode=False, **more)
            try:
                sys.stdout.flush()
            except OSError:
                if not code:  # else an error has been printed already
                    raise
                discard_output()
        except click.ClickException as error:
            code = show_usage_error(error)
        except click.Abort as abort:  # click's word for an interruption
            code, message = describe_signal(abort.__cause__)
            print(message, file=sys.stderr)
        except BrokenPipeError:  # whoever was reading has read enough
            code = FAILURE
            discard_output()
        except OSError as error:  # the output cannot be printed, on a full disk for example
            code = FAILURE
            discard_output()
            with suppress(OSError):
                print(f"Failure: {error}.", file=sys.stderr)
        sys.exit(code)


def discard_output() -> None:
    """Let what could not be printed go nowhere: Python would try again at its end, and complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@click.group(
    "consilience", cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """Fuse the answers of many fallible workers into one label per item, with the model's probability for each class.

    Start with `consilience demo`, then `consilience fuse answers.csv`.
    """


for command in COMMANDS:
    program.add_command(command)


def open_closed_streams() -> None:
    """Give the process standard streams that lead nowhere where it has none.

    Otherwise the next file to be opened would take their place, and get what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def main() -> None:
    """Run the program with the arguments of this process."""
    # While modules are loaded nearly all objects stay: looking for cycles among them takes a tenth of a short run.
    gc.set_threshold(100_000)
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # Text that a terminal's encoding does not know is shown by its code, and stops nothing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    heed_signals()
    try:
        program(prog_name="consilience", obj=ALONE)
    except SystemExit as ending:
        for name in ENDINGS:  # all is done, so that there is nothing to stop any more
            signal.signal(getattr(signal, name, signal.SIGINT), signal.SIG_IGN)
        code = ending.code or 0
        written = True
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # Python says so at its end
            written = False
        if isinstance(code, int) and (code > STOPPED or (written and sys.getprofile() is None)):
            # Tearing down modules would take a quarter of a second, and one that was interrupted while it was imported
            # may crash in it. What is registered for the end of the process is still done.
            atexit._run_exitfuncs()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(code)
        raise
