"""Tables, lists and numbers in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 120


def make_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose other columns are centred.

    >>> print(make_table(["data", "F"], [["NER", ".72"]]))
    | data | F |
    |---|:-:|
    | NER | .72 |
    """
    rule = ["---", *[":-:"] * (len(head) - 1)]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def make_list(points: Iterable[str]) -> str:
    r"""Return a list of points, leaving out empty ones.

    >>> print(make_list(["One\n  point.", "", "Another."]))
    - One point.
    - Another.
    """
    return "\n".join(_fill(point, "- ", "  ") for point in points if point.strip())


def make_paragraph(text: str) -> str:
    """Return text in lines of equal length."""
    return _fill(text, "", "")


def _fill(text: str, first: str, later: str) -> str:
    # A line must not begin with "+" or "1.", which Markdown would take for the beginning of a list.
    kept = " ".join(text.split())
    for words in (" + ", " = ", "Alg. "):
        kept = kept.replace(words, words.replace(" ", "\N{NO-BREAK SPACE}"))
    lines = textwrap.wrap(
        kept,
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def verdict(holds: bool) -> str:
    """Return the words that come before a statement of the paper.

    >>> verdict(True), verdict(False)
    ('**Holds:**', '**Does not hold here:**')
    """
    return "**Holds:**" if holds else "**Does not hold here:**"


def join(names: Sequence[object]) -> str:
    """Return names as a sentence lists them.

    >>> join(["Cora", "CiteSeer", "Pubmed"]), join(["Cora"]), join([])
    ('Cora, CiteSeer and Pubmed', 'Cora', 'none')
    """
    *more, last = map(str, names or ["none"])
    return f"{', '.join(more)} and {last}" if more else last


def number(value: float | None, digits: int = 3) -> str:
    """Return a score with so many digits; an empty text for None.

    >>> number(0.7046), number(1.0), number(-0.02), number(None)
    ('0.705', '1.000', '-0.020', '')
    """
    return "" if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """Return a difference with its sign.

    >>> signed(0.02), signed(-0.013), signed(None)
    ('+0.020', '-0.013', '')
    """
    if value is None:
        return ""
    return number(value, digits) if value < 0 else f"+{number(value, digits)}"


def with_spread(mean: float | None, spread: float | None, digits: int = 3) -> str:
    """Return a mean and its standard deviation.

    >>> with_spread(0.7046, 0.0102), with_spread(0.7, None)
    ('0.705 ± 0.010', '0.700')
    """
    return " ± ".join(number(value, digits) for value in (mean, spread) if value is not None)


def with_printed(measured: str, printed: float | None) -> str:
    """Return what was measured, and in parentheses what the paper printed.

    >>> with_printed("0.735", 0.77), with_printed("0.735", None), with_printed("", 0.77)
    ('0.735 (0.770)', '0.735', '(0.770)')
    """
    return " ".join(part for part in (measured, "" if printed is None else f"({number(printed)})") if part)
