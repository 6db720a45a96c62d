"""What is shown on a terminal: text that cannot act and is not too long, aligned tables, and a line of progress.

Lines of tables are put together here and not by rich's tables, which fill every line with blanks to its end.
"""

from __future__ import annotations

import glob
import logging
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from ..documents.document import Fact
from ..errors import make_inert, plural
from .command import Record

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..inference.em import Progress as Iteration

_CONFUSION = re.compile(r"(.*?) -> (.*)( \(\d+%\))", re.DOTALL)
_log = logging.getLogger("consilience")


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


def wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text. A command must not be broken at the hyphens of its options.

    >>> wrap("see consilience next --at-random", 27)
    ['see consilience next', '--at-random']
    """
    return textwrap.wrap(text, width, break_on_hyphens=False)


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


def format_difference(n_differ: int, judged: str = "label") -> str:
    """Return how many labels differ, in words.

    >>> format_difference(1), format_difference(220)
    ('1 label differs', '220 labels differ')
    """
    return f"{plural(n_differ, judged)} {'differs' if n_differ == 1 else 'differ'}"


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


# The most that ids of items take of a line that has room.
MOST_KEY = 60


class Column(NamedTuple):
    """One column: its heading, the most it may take, and whether it holds numbers. Of longer text the middle is cut."""

    name: str
    width: int = 12
    number: bool = False


Rows = Iterable[Sequence[object] | None]


class Screen:
    """Where results are shown: stdout, without any interpretation of the text."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self.width = self._console.width
        self.spare = max(0, self.width - 80)  # how many columns there are beyond eighty

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line."""
        self._console.print(Text(text.rstrip(), style=style))

    def title(self, text: str) -> None:
        """Print a heading."""
        self.line(text, "bold")

    def sentence(self, text: str) -> None:
        """Print sentences, and an empty line after them."""
        for line in wrap(make_inert(text), self.width):
            self.line(line)
        self.line()

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Print names and what is to be said of them, in two columns; a sentence that is too long goes on below."""
        width = max(len(name) for name, _ in facts)
        room = max(20, self.width - width - 4)
        for name, value in facts:
            first, *rest = [value] if len(value) <= room or not value.endswith(".") else wrap(value, room)
            self.line(f"  {name:{width}}  {first}")
            for line in rest:
                self.line(f"  {'':{width}}  {line}")

    def table(self, columns: Sequence[Column], rows: Rows) -> None:
        """Print rows under headings; a row that is None stands for rows left out."""
        cells = _fill_cells(columns, rows)
        widths = _find_widths(cells)
        for n, row in enumerate(cells):
            padded = [_align(*parts) for parts in zip(row, widths, columns, strict=True)]
            self.line(f"  {'  '.join(padded)}", "" if n else "bold")

    def findings(self, findings: Iterable[Record]) -> None:
        """Print what checks found, except for what was warned of."""
        problems = [make_inert(each["problem"]) for each in findings if not each["warned"]]
        if not problems:
            return
        self.title("What needs attention")
        for problem in problems:
            for n, line in enumerate(wrap(problem, self.width - 4)):
                self.line(f"{'    ' if n else '  - '}{line}")
        self.line()

    def widen(self, columns: Sequence[Column], rows: Rows, names: Sequence[str], most: int) -> list[Column]:
        """Return the columns, those of these names as much wider as the line has room, and at most so wide."""
        room = max(0, self.width - measure(columns, rows)) // max(1, len(names))
        return [each._replace(width=min(each.width + room, most)) if each.name in names else each for each in columns]


def measure(columns: Sequence[Column], rows: Rows) -> int:
    """Return how wide a table is."""
    return sum(width + 2 for width in _find_widths(_fill_cells(columns, rows)))


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


def list_files(files: Mapping[str, str], otherwise: tuple[str, str]) -> list[Fact]:
    """What was written where; of a folder of Parquet files also how many there are."""
    written = [Fact("files", "", dict(files))]
    for kind, path in files.items():
        parts = glob.glob(os.path.join(glob.escape(path), "part-*.parquet")) if os.path.isdir(path) else []
        number = f" ({plural(len(parts), 'Parquet file')})" if parts else ""
        written.append(Fact("", kind.capitalize(), None, f"{fit_text(path, 60)}{number}"))
    return written if files else [*written, Fact("", otherwise[0], None, otherwise[1])]


class Listener(logging.Handler):
    """Hands what the library logs to a function."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Hand over one message."""
        self._say(record.getMessage())


class Display:
    """One line that says what is being done, and for how long; nothing in a pipe or with `quiet`.

    What the library logs meanwhile is shown too.
    """

    def __init__(self, quiet: bool) -> None:
        self._live: Progress | None = None
        if not quiet and sys.stderr.isatty():
            from rich.progress import Progress, SpinnerColumn, TextColumn

            console = Console(stderr=True, highlight=False, markup=False, emoji=False)
            self._live = Progress(
                SpinnerColumn("line", style="none"),
                TextColumn("{task.description}", markup=False),
                TextColumn("{task.elapsed:.0f} s", style="dim"),
                console=console,
                transient=True,
            )
            self._task = self._live.add_task("", total=None)
            self._listener = Listener(self.say)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self._level = _log.level
            _log.setLevel(logging.INFO)
            _log.addHandler(self._listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            _log.removeHandler(self._listener)
            _log.setLevel(self._level)
            self._live.stop()

    def say(self, text: str, at_once: bool = True) -> None:
        """Change what the line says: at once, or when it is drawn again."""
        if self._live is not None:
            self._live.update(self._task, description=make_inert(text), refresh=at_once)

    def show_iteration(self, iteration: Iteration) -> None:
        """Tell of one iteration of a fit: a callback."""
        gain = "" if iteration.iteration == 1 else f", gain per answer {iteration.gain:.1e}"
        self.say(f"Fitting: iteration {iteration.iteration} of at most {iteration.max_iter}{gain}", at_once=False)
