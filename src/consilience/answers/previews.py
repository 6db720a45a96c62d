"""Tables and facts as plain text and as HTML: what terminals, `print` and notebooks show is put together here.

Lines of text have no control characters, and what is too long for its column is cut in its middle. The HTML has its
styles in its elements, takes its colours from the text around it, and holds neither scripts nor anything that must be
loaded. So it looks the same in Jupyter, VS Code and Colab, light or dark. Everything that comes from data is escaped.

`ReportTable` holds an Arrow table. It cannot *be* one: pyarrow makes objects of its own class only, also when a
subclass is asked for one (``Subclass.from_arrays`` returns a plain ``Table``), does not let an object change its class,
and crashes on a subclass whose instance it has not filled. A class that holds a table is refused by those functions of
pyarrow that take only its own class, such as ``parquet.write_table`` and ``concat_tables``. Therefore tables that are
made to be passed on (`Model.to_frame`, `Model.to_spans`) remain those of pyarrow, and only the small ones that are made
to be read are `ReportTable`.
"""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import make_inert
from .columns import Column, spell_surrogates
from .tables import build_frame

# So many rows of a table are shown, and so many characters of a cell: two remarks about a worker have up to 60.
MOST_ROWS_SHOWN, WIDEST_CELL = 20, 60
# Columns of text are not made narrower than this: the names in a confusion could not be told from each other.
NARROWEST = 24
# Digits of figures in tables that are made to be read.
DIGITS = 3

_TABLE = (
    "border-collapse:collapse;background:transparent;color:inherit;font-size:13px;line-height:1.4;margin:.4em 0;"
    "font-variant-numeric:tabular-nums"
)
_CELL = "padding:.15em .7em;border:0;border-bottom:1px solid rgba(128,128,128,.3);background:transparent;color:inherit;"


class ReportTable:
    """An Arrow table that prints as a table: its first rows, with aligned columns and few digits.

    A column with its interval beside it (x, x_low, x_high) is shown as one. In HTML one from 0 to 1 is drawn, too.

    It has everything that a `pyarrow.Table` has, such as ``to_pylist()``, ``to_pandas()``, ``num_rows`` and
    ``table["column"]``. Whatever takes an Arrow stream takes it, such as ``pyarrow.table(report)`` and
    ``polars.DataFrame(report)``. Functions that take only a `pyarrow.Table` itself take `arrow`.

    Attributes
    ----------
    arrow : pyarrow.Table
        The table.

    Examples
    --------
    >>> ReportTable(pa.table({"worker": ["ann", "bo"], "p": [0.91234, None], "p_low": [0.8, 0], "p_high": [1, 1]}))
    worker  p
    ann     0.91 (0.80-1.00)
    bo
    """

    __slots__ = ("arrow",)

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    def __getattr__(self, name: str) -> Any:
        if name == "arrow":  # not there yet, as when a copy is made
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __getitem__(self, key: object) -> Any:
        return self.arrow[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (ReportTable, pa.Table)) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]

    def equals(self, other: object, check_metadata: bool = False) -> bool:
        """Whether two tables are the same."""
        other = other.arrow if isinstance(other, ReportTable) else other
        return bool(self.arrow.equals(other, check_metadata=check_metadata))

    def __repr__(self) -> str:
        names, rows, numbers = spell_table(self.arrow)
        texts = [[spell_estimate(each) if isinstance(each, tuple) else to_word(each) for each in row] for row in rows]
        lines = text_table(names, texts, numbers) if names else []
        return "\n".join([*lines, *count_rest(len(self), MOST_ROWS_SHOWN)])

    def _repr_html_(self) -> str:
        names, rows, numbers = spell_table(self.arrow)
        cells = [
            [html_estimate(each) if isinstance(each, tuple) else escape(to_word(each)) for each in row] for row in rows
        ]
        return html_table(names, cells, numbers) + "".join(map(paragraph, count_rest(len(self), MOST_ROWS_SHOWN)))


def build_report(columns: Mapping[str, Column], backend: str) -> Any:
    """The table that `build_frame` makes, for tables that are made to be read: one of pyarrow prints as a table."""
    frame = build_frame(columns, backend)
    return ReportTable(frame) if isinstance(frame, pa.Table) else frame


def round_figures(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Columns with fractions rounded to the digits that mean something: no library shows them so by itself.

    >>> round_figures({"accuracy": pa.array([0.91234, None])})["accuracy"].to_pylist()
    [0.912, None]
    """
    rounded = dict(columns)
    for name, column in columns.items():
        if isinstance(column, pa.Array) and pa.types.is_floating(column.type):
            large = pc.greater(pc.abs(column), 2.0**52)  # such numbers have no fraction, and Arrow overflows
            figures = pc.round(pc.if_else(large, pa.scalar(0.0, column.type), column), DIGITS)
            rounded[name] = pc.if_else(large, column, figures)
    return rounded


def spell_table(table: pa.Table) -> tuple[list[str], list[tuple[Any, ...]], list[bool]]:
    """Heads and first rows of a table, and which columns are numbers; an estimate and its interval are one value."""
    cells, names = table.slice(0, MOST_ROWS_SHOWN).to_pydict(), table.column_names
    estimates = [name for name in names if f"{name}_low" in names and f"{name}_high" in names]
    for name in estimates:
        cells[name] = list(zip(cells[name], cells.pop(f"{name}_low"), cells.pop(f"{name}_high"), strict=True))
    kinds = [table.schema.field(name).type for name in cells]
    figures = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds]
    numbers = [figure and name not in estimates for name, figure in zip(cells, figures, strict=True)]
    return list(map(to_word, cells)), list(zip(*cells.values(), strict=True)), numbers


def count_rest(n_rows: int, most: int) -> list[str]:
    """What is said of rows that are not shown.

    >>> count_rest(164, 20), count_rest(3, 20), count_rest(0, 20)
    (['... 144 more rows'], [], ['no rows'])
    """
    n_left = n_rows - most
    return [f"... {n_left:,} more row{'' if n_left == 1 else 's'}"] if n_left > 0 else [] if n_rows else ["no rows"]


# ---------------------------------------------------------------------------------------------------------------- text


def to_word(value: object) -> str:
    r"""A value as a short text in one line; nothing for one that is missing.

    >>> to_word(0.123456), to_word(None), to_word(1234), to_word("a\n  b"), to_word(False)
    ('0.123', '', '1234', 'a b', 'False')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.3g}"
    text = " ".join(spell_surrogates(str(value)).split())
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"


def spell_estimate(estimate: Sequence[Any]) -> str:
    """An estimate with its interval: of whole numbers without digits, and alone where the interval is not known.

    >>> spell_estimate((0.5, 0.25, 0.75)), spell_estimate((-1.0, -2.0, 0.0)), spell_estimate((2, 1, 3))
    ('0.50 (0.25-0.75)', '-1.00 (-2.00 to 0.00)', '2 (1-3)')
    >>> spell_estimate((1, 1, 1)), spell_estimate((0.5, None, None))
    ('1', '0.500')
    """
    value, low, high = estimate
    if not all(each is not None and math.isfinite(each) for each in estimate):
        return to_word(value)
    whole = all(isinstance(each, int) for each in estimate)
    if whole and low == high:
        return str(value)
    digits = 0 if whole else 2
    return f"{value:.{digits}f} ({low:.{digits}f}{'-' if low >= 0 else ' to '}{high:.{digits}f})"


def text_table(
    heads: Sequence[str], rows: Iterable[Sequence[str] | None], numbers: Sequence[bool], width: int | None = None
) -> list[str]:
    """Lines of a table with aligned columns. Where there is a width, the widest columns of text are cut to fit.

    A row that is None stands for rows left out.

    >>> rows = ["https://example.org/0001/a.jpeg", "1"], None, ["bo", "12"]
    >>> for line in text_table(["worker", "n"], rows, [False, True], 30):
    ...     print(line)
    worker                       n
    https://example..../a.jpeg   1
    ...
    bo                          12
    """
    blank = ["..."] + [""] * (len(heads) - 1)
    columns: list[list[str]] = [list(column) for column in zip(heads, *(row or blank for row in rows), strict=True)]
    widths = [max(map(count_cells, column)) for column in columns]
    if width is not None:
        texts = [k for k in range(len(heads)) if not numbers[k]]
        for k in texts:
            widths[k] = min(widths[k], WIDEST_CELL)
        for _ in range(max(0, sum(widths) + 2 * (len(heads) - 1) - width)):
            wide = [k for k in texts if widths[k] > max(NARROWEST, count_cells(heads[k]))]
            if wide:
                widths[max(wide, key=widths.__getitem__)] -= 1
        for k in texts:
            columns[k] = [fit_text(text, widths[k]) for text in columns[k]]
    for column, room, number in zip(columns, widths, numbers, strict=True):
        for n, text in enumerate(column):
            space = " " * (room - count_cells(text))
            column[n] = space + text if number else text + space
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def count_cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    marks = ("Mn", "Me", "Cf")  # which take no place
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text if unicodedata.category(c) not in marks)


def fit_text(value: object, width: int) -> str:
    """A value as inert text of at most `width` columns; the middle of a longer one is left out.

    >>> fit_text("https://example.org/items/0001", 16)
    'https://e...0001'
    """
    text = str(value)
    text = make_inert(text if len(text) <= 4 * width else text[: 2 * width] + text[-2 * width :])
    if count_cells(text) <= width:
        return text
    n_tail = (width - 3) // 3
    start, end = text[: width - 3 - n_tail], text[len(text) - n_tail :]
    while count_cells(start) > width - 3 - n_tail:
        start = start[:-1]
    while count_cells(end) > n_tail:
        end = end[1:]
    return f"{start}...{end}"


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, inert. A command must not be broken at the hyphens of its options.

    >>> wrap("see consilience next --at-random", 27)
    ['see consilience next', '--at-random']
    """
    return textwrap.wrap(make_inert(text), width, break_on_hyphens=False)


# ---------------------------------------------------------------------------------------------------------------- HTML


def html_table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[bool]) -> str:
    """A table as HTML.

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
    """Names, and what is to be said of them as text, as a table of HTML."""
    return html_table((), [(escape(name), escape(value)) for name, value in facts], (False, False))


def html_estimate(estimate: Sequence[Any]) -> str:
    """An estimate as text; one from 0 to 1 after a drawing: a point with its interval, on a line."""
    shares = [each for each in estimate if each is not None and 0 <= each <= 1]
    if len(shares) < 3 or isinstance(shares[0], int) or not shares[1] <= shares[2]:
        return escape(spell_estimate(estimate))
    x, left, right = (4 + 72 * share for share in shares)
    return (
        f'<svg width="80" height="10" viewBox="0 0 80 10" aria-hidden="true" style="vertical-align:middle">'
        f'<path d="M4 5H76" stroke="currentColor" stroke-opacity=".2"/>'
        f'<path d="M{left:.1f} 5H{right:.1f}" stroke="currentColor" stroke-opacity=".5" stroke-width="3"/>'
        f'<circle cx="{x:.1f}" cy="5" r="3" fill="currentColor"/></svg> {escape(spell_estimate(estimate))}'
    )


def paragraph(text: str) -> str:
    """A text as a paragraph of HTML."""
    return f'<p style="margin:.3em 0;color:inherit;font-size:13px">{escape(text)}</p>'


def frame_html(*parts: str) -> str:
    """What a notebook shows as one piece, in the colours of the page."""
    return f'<div style="color:inherit;background:transparent">{"".join(parts)}</div>'
