"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def make_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are centred.

    >>> print(make_table(["data", "F"], [["NER", ".72"]]))
    | data | F |
    |---|:-:|
    | NER | .72 |
    """
    rule = ["---", *[":-:"] * (len(head) - 1)]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def number(value: float | None, digits: int = 3) -> str:
    """Return a score as it is printed: without the zero before the point; nothing for None.

    >>> number(0.7046), number(1.0), number(-0.02), number(None)
    ('.705', '1.000', '-.020', '')
    """
    if value is None:
        return ""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value: float | None, digits: int = 3) -> str:
    """Return a difference with its sign.

    >>> signed(0.02), signed(-0.013), signed(None)
    ('+.020', '-.013', '')
    """
    if value is None:
        return ""
    return number(value, digits) if value < 0 else f"+{number(value, digits)}"


def with_spread(mean: float | None, spread: float | None, digits: int = 3) -> str:
    """Return a mean and its standard deviation.

    >>> with_spread(0.7046, 0.0102), with_spread(0.7, None)
    ('.705 ± .010', '.700')
    """
    return " ± ".join(number(value, digits) for value in (mean, spread) if value is not None)


def with_printed(measured: str, printed: float | None) -> str:
    """Return what was measured, and in parentheses what the paper printed.

    >>> with_printed(".735", 0.77), with_printed(".735", None), with_printed("", 0.77)
    ('.735 (.770)', '.735', '(.770)')
    """
    return " ".join(part for part in (measured, "" if printed is None else f"({number(printed)})") if part)
