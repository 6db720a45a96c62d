"""`consilience report`: a page about a saved model."""

from __future__ import annotations

import click

from .command import Command, tell
from .options import content_file, option, printing

_EXAMPLES = """\b
Examples:
  consilience fuse answers.csv --save crowd.model
  consilience report crowd.model -o report.html
"""  # \b keeps the lines apart


@click.command(
    cls=Command,
    short_help="Write a report on a saved model: one HTML page.",
    epilog=_EXAMPLES,
    groups={
        "Options": [option("-o --output", "FILE", "Write the page here.", default="report.html"), *printing],
        "Content": [content_file()],
    },
)
@click.argument("model")
def report(model: str, output: str, content: str | None) -> None:
    """Write a report on a saved model: one HTML page to look at and to send.

    MODEL is a file written by `fuse --save`. The page needs no network. It says whether to trust the labels, whom to
    talk to and what to look at, and lets you review items.
    """
    import os

    from ..models.loading import load
    from ..reporting.write import write_page
    from .outputs import check_content, check_outputs, check_page
    from .terminal import fit_text, open_console, print_facts

    check_page(output)
    check_content(content)
    check_outputs([], [output], [model, content])
    write_page(load(model), output, content, os.path.basename(model), os.path.dirname(content or ""))
    tell(
        lambda: {"model": model, "file": output},
        lambda: print_facts(open_console(), [("Report", fit_text(output, 60))]),
    )
