"""Tables on a terminal: calm, aligned, plain in a pipe.

Lines are put together here and not by rich's tables, which fill every line with blanks to its end.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from .text import fit_text

# Only of a longer name the middle is left out.
LONGEST_NAME = 200


class Column(NamedTuple):
    """One column: its heading, the most it may take, whether it holds numbers, and whether longer text is wrapped."""

    name: str
    width: int = 12
    number: bool = False
    wrap: bool = False


def open_console() -> Console:
    """Return where tables are printed: stdout, without any interpretation of the text."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)


def spare_width(console: Console) -> int:
    """Return how many columns there are beyond eighty."""
    return max(0, console.width - 80)


def print_title(console: Console, title: str) -> None:
    """Print a heading."""
    console.print(Text(title, style="bold"))


def print_facts(console: Console, facts: Sequence[tuple[str, str]]) -> None:
    """Print names and what is to be said of them, in two columns; a sentence that is too long goes on below."""
    width = max(len(name) for name, _ in facts)
    room = max(20, console.width - width - 4)
    for name, value in facts:
        first, *rest = [value] if len(value) <= room or not value.endswith(".") else textwrap.wrap(value, room)
        console.print(Text(f"  {name:{width}}  {first}".rstrip()))
        for line in rest:
            console.print(Text(f"  {'':{width}}  {line}"))


Rows = Iterable[Sequence[object] | None]


def print_table(console: Console, columns: Sequence[Column], rows: Rows) -> None:
    """Print rows under headings; a row that is None stands for rows left out."""
    cells = _fill_cells(columns, rows)
    widths = _find_widths(cells)
    for n, row in enumerate(cells):
        for line in zip_longest(*row, fillvalue=""):
            padded = [_align(*parts) for parts in zip(line, widths, columns, strict=True)]
            console.print(Text(f"  {'  '.join(padded)}".rstrip(), style="" if n else "bold"))


def measure(columns: Sequence[Column], rows: Rows) -> int:
    """Return how wide a table is."""
    return sum(width + 2 for width in _find_widths(_fill_cells(columns, rows)))


def _fill_cells(columns: Sequence[Column], rows: Rows) -> list[list[list[str]]]:
    """Return the lines of each cell of each row, headings first."""
    cells = [[[column.name] for column in columns]]
    for row in rows:
        found = zip_longest(["..."] if row is None else row, columns, fillvalue="")
        cells.append([_fill(value, column) for value, column in found])  # type: ignore[arg-type]
    return cells


def _fill(value: object, column: Column) -> list[str]:
    if not column.wrap:
        return [fit_text(value, column.width)]
    return chop_cells(fit_text(value, max(LONGEST_NAME, column.width)), column.width) or [""]


def _find_widths(cells: list[list[list[str]]]) -> list[int]:
    return [max(cell_len(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]


def _align(cell: str, width: int, column: Column) -> str:
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if column.number else cell + blanks
