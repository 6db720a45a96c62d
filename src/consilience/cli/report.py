"""`consilience report`: a page about a saved model."""

from __future__ import annotations

import click

from .command import Command, debug_option, json_option, print_json, quiet_option

_EXAMPLES = """\b
Examples:
  consilience fuse answers.csv --save crowd.model
  consilience report crowd.model -o report.html
"""  # \b keeps the lines apart


@click.command("report", cls=Command, short_help="Write a report on a saved model: one HTML page.", epilog=_EXAMPLES)
@click.argument("model")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True, help="Write the page here.")
@click.option(
    "--content",
    metavar="FILE",
    help="What the items look like: a table with a column item (or sequence and position), and one with the text of "
    "each item or the path of its picture.",
)
@quiet_option
@json_option
@debug_option
def report(
    model: str,
    output: str,
    content: str | None,
    quiet: bool,
    as_json: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Write a report on a saved model: one HTML page to look at and to send.

    MODEL is a file written by `fuse --save`. The page needs no network. It says whether to trust the labels, whom to
    talk to and what to look at, and lets you review items.
    """
    import glob
    import os

    from ..errors import InputError
    from ..models.saved import load
    from ..reporting.write import write_page
    from .outputs import check_outputs, check_page
    from .tables import open_console, print_facts
    from .text import fit_text

    check_page(output)
    if content is not None and not os.path.exists(content) and not glob.has_magic(content):
        raise InputError(
            f"There is no file {content!r}.",
            "Give a file with the items and their content, such as --content answers.csv. A column can be named only "
            "with fuse.",
        )
    check_outputs([], [output], [model, content])
    folder = "" if content is None else os.path.dirname(content)
    write_page(load(model), output, content, os.path.basename(model), folder)
    if as_json:
        print_json({"model": model, "file": output})
    elif not quiet:
        print_facts(open_console(), [("Report", fit_text(output, 60))])
