"""Tables on a terminal: calm, aligned, plain in a pipe.

Lines are put together here and not by rich's tables, which fill every line with blanks to its end.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from .text import fit_texts

# The most that ids of items take of a line that has room.
MOST_KEY = 60


class Column(NamedTuple):
    """One column: its heading, the most it may take, and whether it holds numbers. Of longer text the middle is cut."""

    name: str
    width: int = 12
    number: bool = False


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
        padded = [_align(*parts) for parts in zip(row, widths, columns, strict=True)]
        console.print(Text(f"  {'  '.join(padded)}".rstrip(), style="" if n else "bold"))


def measure(columns: Sequence[Column], rows: Rows) -> int:
    """Return how wide a table is."""
    return sum(width + 2 for width in _find_widths(_fill_cells(columns, rows)))


def widen(console: Console, columns: Sequence[Column], rows: Rows, names: Sequence[str], most: int) -> list[Column]:
    """Return the columns, those of these names as much wider as the line has room, together, and at most so wide."""
    rows = list(rows)
    room = max(0, console.width - measure(columns, rows)) // max(1, len(names))
    return [each._replace(width=min(each.width + room, most)) if each.name in names else each for each in columns]


def _fill_cells(columns: Sequence[Column], rows: Rows) -> list[list[str]]:
    """Return the text of each cell of each row, headings first."""
    values = [["..."] if row is None else [*row] for row in rows]
    filled = [row + [""] * (len(columns) - len(row)) for row in values]
    cells = [fit_texts([row[n] for row in filled], column.width) for n, column in enumerate(columns)]
    return [[column.name for column in columns], *(list(row) for row in zip(*cells, strict=True))]


def _find_widths(cells: list[list[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*cells, strict=True)]


def _align(cell: str, width: int, column: Column) -> str:
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if column.number else cell + blanks
