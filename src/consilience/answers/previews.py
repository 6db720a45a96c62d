"""Tables and small pictures for terminals and notebooks.

The HTML has its styles in its elements, takes its colours from the text around it, and holds neither scripts nor
anything that must be loaded. So it looks the same in Jupyter, VS Code and Colab, light or dark. Everything that comes
from data is escaped.

`ReportTable` holds an Arrow table. It cannot *be* one: pyarrow makes objects of its own class only, also when a
subclass is asked for one (``Subclass.from_arrays`` returns a plain ``Table``), does not let an object change its class,
and crashes on a subclass whose instance it has not filled. A class that holds a table is refused by those functions of
pyarrow that take only its own class, such as ``parquet.write_table`` and ``concat_tables``. Therefore tables that are
made to be passed on (`Model.to_frame`, `Model.to_spans`) remain those of pyarrow, and only the small ones that are made
to be read are `ReportTable`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels import Floats
from .columns import Column, spell_surrogates
from .tables import build_frame

# So many rows of a table are shown, and so many characters of a cell: two remarks about a worker have up to 60.
MOST_ROWS, WIDEST = 20, 60
# Digits of figures in tables that are made to be read.
DIGITS = 3

_TABLE = (
    "border-collapse:collapse;background:transparent;color:inherit;font-size:13px;line-height:1.4;margin:.4em 0;"
    "font-variant-numeric:tabular-nums"
)
_CELL = "padding:.15em .7em;border:0;border-bottom:1px solid rgba(128,128,128,.3);background:transparent;color:inherit;"


class Cell(NamedTuple):
    """What a cell of a column shows, and its figures if they are an estimate with an interval from 0 to 1."""

    text: str
    interval: tuple[float, float, float] | None = None


class Shown(NamedTuple):
    """A column as it is shown."""

    name: str
    cells: list[Cell]
    is_number: bool


class ReportTable:
    """An Arrow table that prints as a table.

    It has everything that a `pyarrow.Table` has, such as ``to_pylist()``, ``to_pandas()``, ``num_rows`` and
    ``table["column"]``. Whatever takes an Arrow stream takes it, such as ``pyarrow.table(report)`` and
    ``polars.DataFrame(report)``. Functions that take only a `pyarrow.Table` itself take `arrow`.

    Attributes
    ----------
    arrow : pyarrow.Table
        The table.
    """

    __slots__ = ("arrow",)

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    def __getattr__(self, name: str) -> Any:
        if name == "arrow":  # not there yet, as when a copy is made
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.arrow)})

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __getitem__(self, key: object) -> Any:
        return self.arrow[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (ReportTable, pa.Table)) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def equals(self, other: object, check_metadata: bool = False) -> bool:
        """Tell whether two tables are the same."""
        other = other.arrow if isinstance(other, ReportTable) else other
        return bool(self.arrow.equals(other, check_metadata=check_metadata))

    def __repr__(self) -> str:
        return to_text(self.arrow)

    def _repr_html_(self) -> str:
        return to_html(self.arrow)


def build_report(columns: Mapping[str, Column], backend: str) -> Any:
    """Return what `build_frame` does, for tables that are made to be read: one of pyarrow prints as a table."""
    frame = build_frame(columns, backend)
    return ReportTable(frame) if isinstance(frame, pa.Table) else frame


def round_figures(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns with fractions rounded to the digits that mean something: no library shows them so by itself.

    >>> round_figures({"accuracy": pa.array([0.91234, None])})["accuracy"].to_pylist()
    [0.912, None]
    """
    return {
        name: round_column(column) if isinstance(column, pa.Array) and pa.types.is_floating(column.type) else column
        for name, column in columns.items()
    }


def round_column(column: pa.Array) -> pa.Array:
    """Return a column of fractions, rounded. Numbers so large that they have none are left alone: Arrow overflows."""
    large = pc.greater(pc.abs(column), 2.0**52)
    return pc.if_else(large, column, pc.round(pc.if_else(large, pa.scalar(0.0, column.type), column), DIGITS))


def to_text(table: pa.Table, most: int = MOST_ROWS) -> str:
    r"""Return the first rows of a table as lines of text, with aligned columns and few digits.

    A column with its interval beside it (x, x_low, x_high) is shown as one.

    >>> print(to_text(pa.table({"worker": ["ann", "bo"], "p": [0.91234, None], "p_low": [0.8, 0], "p_high": [1, 1]})))
    worker  p
    ann     0.91 (0.80-1.00)
    bo
    """
    columns = show_columns(table, most)
    lines = [
        [
            _align(text, column.is_number, width)
            for text, column, width in zip(row, columns, _widths(columns), strict=True)
        ]
        for row in zip(*([column.name, *(cell.text for cell in column.cells)] for column in columns), strict=True)
    ]
    return "\n".join([*("  ".join(line).rstrip() for line in lines), *_say_rest(table.num_rows, most)])


def to_html(table: pa.Table, most: int = MOST_ROWS) -> str:
    """Return the first rows of a table as HTML. An estimate from 0 to 1 with its interval is drawn, too."""
    columns = show_columns(table, most)
    names = [column.name for column in columns]
    rows = [
        [_show_cell(column.cells[row]) for column in columns]
        for row in range(min(table.num_rows, most) if columns else 0)
    ]
    numbers = [column.is_number for column in columns]
    rest = "".join(paragraph(line) for line in _say_rest(table.num_rows, most))
    return html_table(names, rows, numbers) + rest


def show_columns(table: pa.Table, most: int) -> list[Shown]:
    """Return the columns of a table as they are shown; those of an interval together with what it is for."""
    first, names = table.slice(0, most), list(table.column_names)
    estimates = [name for name in names if f"{name}_low" in names and f"{name}_high" in names]
    ends_of_intervals = {f"{name}{end}" for name in estimates for end in ("_low", "_high")}
    shown = []
    for name in names:
        if name in ends_of_intervals:
            continue
        values = first[name].to_pylist()
        kind = first.schema.field(name).type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if name in estimates:
            ends = (first[f"{name}{end}"].to_pylist() for end in ("_low", "_high"))
            cells, is_number = [_estimate(*each) for each in zip(values, *ends, strict=True)], False
        else:
            cells = [Cell(to_word(value)) for value in values]
        shown.append(Shown(to_word(name), cells, is_number))
    return shown


def _estimate(value: float | None, low: float | None, high: float | None) -> Cell:
    if value is None or low is None or high is None or not all(map(math.isfinite, (value, low, high))):
        return Cell(to_word(value))
    within = 0 <= low <= high <= 1 and 0 <= value <= 1
    dash, digits = "-" if low >= 0 else " to ", 0 if isinstance(value, int) else 2
    words = f"{value:.{digits}f} ({low:.{digits}f}{dash}{high:.{digits}f})"
    return Cell(words, (value, low, high) if within else None)


def to_word(value: object) -> str:
    r"""Return a value as a short text in one line; nothing for one that is missing.

    >>> to_word(0.123456), to_word(None), to_word(1234), to_word("a\n  b")
    ('0.123', '', '1234', 'a b')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.3g}"
    text = " ".join(spell_surrogates(str(value)).split())
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _widths(columns: Sequence[Shown]) -> list[int]:
    return [max(len(text) for text in (column.name, *(cell.text for cell in column.cells))) for column in columns]


def _align(text: str, is_number: bool, width: int) -> str:
    return text.rjust(width) if is_number else text.ljust(width)


def _say_rest(n_rows: int, most: int) -> list[str]:
    """Return what is said of the rows that are not shown.

    >>> _say_rest(164, 20), _say_rest(3, 20), _say_rest(0, 20)
    (['... 144 more rows'], [], ['no rows'])
    """
    if not n_rows:
        return ["no rows"]
    n_left = n_rows - most
    return [f"... {n_left:,} more row{'' if n_left == 1 else 's'}"] if n_left > 0 else []


def _show_cell(cell: Cell) -> str:
    text = escape(cell.text)
    return text if cell.interval is None else f"{draw_interval(*cell.interval)} {text}"


def html_table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[bool]) -> str:
    """Return a table as HTML.

    Parameters
    ----------
    names : sequence of str
        Heads of the columns, as text; without any there is no row of heads.
    rows : iterable of sequences of str
        The cells, as HTML.
    numbers : sequence of bool
        Which columns hold numbers, and are aligned to the right.
    """
    sides = ["right" if number else "left" for number in numbers]
    head = "".join(
        f'<th scope="col" style="{_CELL}text-align:{side};font-weight:600">{escape(name)}</th>'
        for name, side in zip(names, sides, strict=False)
    )
    body = "".join(
        '<tr style="background:transparent">'
        + "".join(f'<td style="{_CELL}text-align:{side}">{cell}</td>' for cell, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<table style="{_TABLE}">{f"<thead><tr>{head}</tr></thead>" if head else ""}<tbody>{body}</tbody></table>'


def html_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Return names, and what is to be said of them as text, as a table of HTML."""
    return html_table((), [(escape(name), escape(value)) for name, value in facts], (False, False))


def paragraph(text: str) -> str:
    """Return a text as a paragraph of HTML."""
    return f'<p style="margin:.3em 0;color:inherit;font-size:13px">{escape(text)}</p>'


def draw_interval(value: float, low: float, high: float) -> str:
    """Return a point with its interval, on a line from 0 to 1."""
    x, left, right = (4 + 72 * share for share in (value, low, high))
    return (
        f'<svg width="80" height="10" viewBox="0 0 80 10" aria-hidden="true" style="vertical-align:middle">'
        f'<path d="M4 5H76" stroke="currentColor" stroke-opacity=".2"/>'
        f'<path d="M{left:.1f} 5H{right:.1f}" stroke="currentColor" stroke-opacity=".5" stroke-width="3"/>'
        f'<circle cx="{x:.1f}" cy="5" r="3" fill="currentColor"/></svg>'
    )


def draw_histogram(shares: Floats, alt: str, n_bins: int = 20) -> str:
    """Return how often numbers from 0 to 1 occur, as bars."""
    counts = np.bincount(np.minimum((shares * n_bins).astype(np.int64), n_bins - 1), minlength=n_bins)
    heights = 50 * counts / max(int(counts.max()), 1)
    bars = "".join(
        f'<path d="M{4 + 10 * place} 54v-{height:.1f}h8v{height:.1f}z"/>'
        for place, height in enumerate(heights.tolist())
        if height
    )
    return (
        f'<svg role="img" aria-label="{escape(alt)}" width="208" height="74" viewBox="0 0 208 74">'
        f'<g fill="currentColor" fill-opacity=".6">{bars}</g>'
        '<path d="M4 54.5H204" stroke="currentColor" stroke-opacity=".4"/>'
        '<g fill="currentColor" font-size="11" font-family="sans-serif"><text x="4" y="68">0</text>'
        f'<text x="104" y="68" text-anchor="middle">{escape(alt.partition(":")[0])}</text>'
        '<text x="204" y="68" text-anchor="end">1</text></g></svg>'
    )


def frame_html(*parts: str) -> str:
    """Return what a notebook shows as one piece, in the colours of the page."""
    return f'<div style="color:inherit;background:transparent">{"".join(parts)}</div>'
