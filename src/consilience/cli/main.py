"""The program `consilience` and its commands.

Only click is imported until a command runs, so that `--help` is instant.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from .. import __version__
from .command import ALONE, FAILURE, describe_signal, heed_signals, show_usage_error
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
            sys.stdout.flush()
        except click.ClickException as error:
            code = show_usage_error(error)
        except click.Abort as abort:  # click's word for an interruption
            code, message = describe_signal(abort.__cause__)
            print(message, file=sys.stderr)
        except OSError as error:  # the output cannot be printed: nobody reads it, or the disk is full
            code = FAILURE
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again at its end
            with suppress(OSError):
                print("" if isinstance(error, BrokenPipeError) else f"Failure: {error}.\n", end="", file=sys.stderr)
        sys.exit(code)


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


def main() -> None:
    """Run the program with the arguments of this process."""
    # While modules are loaded nearly all objects stay: looking for cycles among them takes a tenth of a short run.
    gc.set_threshold(100_000)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it is closed, and the next file to be opened would take its place
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # Text that a terminal's encoding does not know is shown by its code, and stops nothing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    heed_signals()
    program(prog_name="consilience", obj=ALONE)
