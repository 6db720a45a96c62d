"""`consilience next`: which items a person should label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..formats.register import usual_suffixes, writable_formats
from .command import Command, debug_option, json_option, print_json, quiet_option

if TYPE_CHECKING:
    import pyarrow as pa

# Rows shown in the table; the file and --json have all.
MOST_ROWS = 20

_EXAMPLES = """\b
Examples:
  consilience fuse answers.csv --save crowd.model
  consilience next crowd.model -n 50 -o items.csv
  consilience fuse answers.csv --gold items.csv -o labels.csv
"""  # \b keeps the lines apart


@click.command("next", cls=Command, epilog=_EXAMPLES)
@click.argument("model")
@click.option("-n", "n", type=click.IntRange(min=1), default=50, show_default=True, help="Most items to list.")
@click.option("-o", "--output", metavar="FILE", help=f"Write the list here: {usual_suffixes(writable_formats())}.")
@quiet_option
@json_option
@debug_option
def next_items(model: str, n: int, output: str | None, quiet: bool, as_json: bool, debug: bool) -> None:  # noqa: ARG001
    """List the items that a person should label next.

    MODEL is a file written by `fuse --save`. The least certain items come first, and two of ten are drawn at random.
    The file that -o writes has an empty column label. Fill it in, and give the file to `fuse --gold`.
    """
    from ..data.frames import build_frame
    from ..formats.writing import write_table
    from ..models.next_items import add_label, list_next_items
    from ..models.saved import load
    from .outputs import check_outputs

    check_outputs([output], [], [model])
    columns = list_next_items(load(model), n)
    table = build_frame(columns, "pyarrow")
    if output is not None:
        write_table(build_frame(add_label(columns), "pyarrow"), output)
    if as_json:
        print_json({"model": model, "items": table.to_pylist(), "file": output})
    elif not quiet:
        print_items(table, model, output)


def print_items(table: pa.Table, model: str, output: str | None) -> None:
    """Print the beginning of the list, and what to do with it."""
    from .tables import Column, open_console, print_facts, print_table, print_title, spare_width
    from .text import fit_text, format_number

    console = open_console()
    spare = spare_width(console) // 3
    if not table.num_rows:
        print_facts(console, [("Nothing to label", "the label of every item is known")])
        return
    keys = table.column_names[: table.column_names.index("random")]
    hidden = table.num_rows - MOST_ROWS
    more = f" ({hidden:,} more with -o or --json)" if hidden > 0 else ""
    print_title(console, f"Items of {fit_text(model, 40)} to label next{more}")
    columns = [Column(name, 20 + spare, wrap=True) for name in keys]
    columns += [Column("fused label", 20 + spare, wrap=True), Column("confidence", number=True), Column("at random")]
    rows: list[list[Any] | None] = [
        [
            *(row[name] for name in keys),
            row["fused_label"],
            format_number(row["confidence"]),
            "yes" if row["random"] else "",
        ]
        for row in table.slice(0, MOST_ROWS).to_pylist()
    ]
    print_table(console, columns, [*rows, *([None] if hidden > 0 else [])])
    written = f"{fit_text(output, 60)}; fill in its column label" if output else "nothing; give -o FILE to keep it"
    console.print()
    print_facts(console, [("List", written)])
