"""`consilience report`: a page about a saved model."""

from __future__ import annotations

import click

from .command import Command, content_option, debug_option, json_option, print_json, quiet_option

_EXAMPLES = """\b
Examples:
  consilience fuse answers.csv --save crowd.model
  consilience report crowd.model -o report.html
"""  # \b keeps the lines apart


@click.command("report", cls=Command, short_help="Write a report on a saved model: one HTML page.", epilog=_EXAMPLES)
@click.argument("model")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True, help="Write the page here.")
@content_option
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
    import os

    from ..reporting.write import write_page
    from ..results.saved import load
    from .outputs import check_content, check_outputs, check_page
    from .tables import open_console, print_facts
    from .text import fit_text

    check_page(output)
    check_content(content)
    check_outputs([], [output], [model, content])
    write_page(load(model), output, content, os.path.basename(model), os.path.dirname(content or ""))
    if as_json:
        print_json({"model": model, "file": output})
    elif not quiet:
        print_facts(open_console(), [("Report", fit_text(output, 60))])
