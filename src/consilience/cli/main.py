"""The program `consilience` and its commands.

Only click is imported until a command runs, so that `--help` is instant.
"""

from __future__ import annotations

import sys

import click

from .. import __version__
from .command import heed_signals
from .datasets import datasets
from .demo import demo
from .evaluate import evaluate
from .fuse import fuse
from .simulate import simulate


@click.group("consilience", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """Fuse the answers of many fallible workers into one label per item, with the model's probability for each class.

    Start with `consilience demo`, then `consilience fuse answers.csv`.
    """


program.add_command(fuse)
program.add_command(evaluate)
program.add_command(simulate)
program.add_command(datasets)
program.add_command(demo)


def main() -> None:
    """Run the program with the arguments of this process."""
    for stream in (sys.stdout, sys.stderr):
        # Text that a terminal's encoding does not know is shown by its code, and stops nothing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    heed_signals()
    program(prog_name="consilience")
