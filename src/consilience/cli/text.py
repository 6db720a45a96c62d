"""Text from the data, made fit for a terminal: nothing in it acts, and nothing is too long."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set

from rich.cells import cell_len, set_cell_size

from ..errors import plural

# Joiners hold emoji and many scripts together, and do nothing else.
_JOINERS = "\u200c\u200d"

_CONFUSION = re.compile(r"(.*?) -> (.*)( \(\d+%\))", re.DOTALL)


def make_inert(text: str) -> str:
    r"""Return text in which control and direction characters are shown by their codes.

    >>> print(make_inert("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _JOINERS else char.encode("unicode_escape").decode() for char in text
    )


def fit_text(value: object, width: int) -> str:
    """Return a value as inert text of at most `width` columns; the middle of a longer one is left out.

    >>> fit_text("https://example.org/items/0001", 16)
    'https://e...0001'
    """
    text = str(value)
    if len(text) > 4 * width:
        text = text[: 2 * width] + text[-2 * width :]
    text = make_inert(text)
    if cell_len(text) <= width:
        return text
    n_tail = (width - 3) // 3
    head = set_cell_size(text, width - 3 - n_tail)
    return f"{head}...{set_cell_size(text[::-1], n_tail)[::-1]}"


def fit_texts(values: Sequence[object], width: int) -> list[str]:
    """Return values as `fit_text` does; but if different ones would look the same, with the part in which they differ.

    >>> fit_texts(["https://example.org/0001/text.html", "https://example.org/0002/text.html"], 16)
    ['.../0001/tex...', '.../0002/tex...']
    """
    fitted, texts = [fit_text(value, width) for value in values], [str(value) for value in values]
    if len(set(fitted)) == len(set(texts)):
        return fitted
    long = {text for text, shown in zip(texts, fitted, strict=True) if text != shown}
    n_head = _count_common(long)
    n_tail = _count_common({text[n_head:][::-1] for text in long})
    differing = max(len(text) - n_head - n_tail for text in long)
    if n_head + differing <= width - 3:  # the beginning tells them apart
        cut = {text: fit_text(f"{text[: width - 3]}...", width) for text in long}
        return [cut.get(text, shown) for text, shown in zip(texts, fitted, strict=True)]
    room = max(0, width - 6 - differing)
    n_head -= min(n_head, room // 2)
    n_tail -= min(n_tail, room // 2)
    ends = "..." if n_head else "", "..." if n_tail else ""
    cut = {text: f"{ends[0]}{text[n_head : len(text) - n_tail]}{ends[1]}" for text in long}
    return [fit_text(cut.get(text, text), width) for text in texts]


def _count_common(texts: Set[str]) -> int:
    """Return with how many characters all texts begin: those that the first and the last in their order share."""
    first, last = min(texts), max(texts)
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def fit_confusion(text: str, width: int) -> str:
    """Return a confusion "truth -> answer (31%)" in at most `width` columns; each name is shortened by itself.

    >>> fit_confusion("first long name -> second long name (31%)", 32)
    'first...me -> second...me (31%)'
    """
    parts = _CONFUSION.fullmatch(text)
    if parts is None or cell_len(text) <= width or " -> " in parts[2]:
        return fit_text(text, width)
    room = (width - len(" -> ") - len(parts[3])) // 2
    return f"{fit_text(parts[1], room)} -> {fit_text(parts[2], room)}{parts[3]}"


def quote_blanks(value: object) -> object:
    """Return a name with blanks around it in quotes, so that they are seen.

    >>> quote_blanks("cat"), quote_blanks(" cat")
    ('cat', "' cat'")
    """
    return repr(value) if isinstance(value, str) and value != value.strip() else value


def format_columns(columns: Mapping[str, str]) -> str:
    """Return which column has which role.

    >>> format_columns({"item": "task", "label": " says"})
    "item=task, label=' says'"
    """
    return ", ".join(f"{role}={quote_blanks(fit_text(name, 40))}" for role, name in columns.items())


def format_difference(n_differ: int) -> str:
    """Return how many labels differ, in words.

    >>> format_difference(1), format_difference(220)
    ('1 label differs', '220 labels differ')
    """
    return f"{plural(n_differ, 'label')} {'differs' if n_differ == 1 else 'differ'}"


def format_share(share: float | None, sign: bool = False) -> str:
    """Return a share in percent, a dash where it is not known.

    >>> format_share(0.9314), format_share(None), format_share(0.042, sign=True)
    ('93.1%', '-', '+4.2%')
    """
    if share is None or math.isnan(share):
        return "-"
    return f"{share:+.1%}" if sign else f"{share:.1%}"


def format_number(number: float | None) -> str:
    """Return a number with three decimals, a dash where it is not known."""
    return "-" if number is None or math.isnan(number) else f"{number:.3f}"


def format_ends(low: float | None, high: float | None) -> str:
    """Return the ends of an interval in brackets, after a blank; nothing where they are not known.

    >>> format_ends(0.812, 0.918), format_ends(None, None)
    (' (.81-.92)', '')
    """
    if low is None or high is None or math.isnan(low):
        return ""
    return f" ({f'{low:.2f}'.removeprefix('0')}-{f'{high:.2f}'.removeprefix('0')})"
