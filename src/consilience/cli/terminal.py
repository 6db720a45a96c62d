"""What commands show on the terminal while they work, and which files they tell of."""

from __future__ import annotations

import glob
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from ..answers.previews import fit_text
from ..documents.document import Fact
from ..errors import make_inert, plural

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..inference.em import Progress as Iteration


def list_files(files: Mapping[str, str], otherwise: tuple[str, str]) -> list[Fact]:
    """What was written where; of a folder of Parquet files also how many there are."""
    written = [Fact("files", "", dict(files))]
    for kind, path in files.items():
        parts = glob.glob(os.path.join(glob.escape(path), "part-*.parquet")) if os.path.isdir(path) else []
        number = f" ({plural(len(parts), 'Parquet file')})" if parts else ""
        written.append(Fact("", kind.capitalize(), None, f"{fit_text(path, 60)}{number}"))
    return written if files else [*written, Fact("", otherwise[0], None, otherwise[1])]


class Display:
    """One line that says what is being done, and for how long; nothing in a pipe or with `quiet`.

    What the library logs meanwhile is shown too.
    """

    def __init__(self, quiet: bool) -> None:
        self._live: Progress | None = None
        self._ending = ExitStack()
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn

            console = Console(stderr=True, highlight=False, markup=False, emoji=False)
            spinner, text = SpinnerColumn("line", style="none"), TextColumn("{task.description}", markup=False)
            elapsed = TextColumn("{task.elapsed:.0f} s", style="dim")
            self._live = Progress(spinner, text, elapsed, console=console, transient=True)
            self._task = self._live.add_task("", total=None)

    def __enter__(self) -> Self:
        if self._live is not None:
            log, handler = logging.getLogger("consilience"), logging.Handler(logging.INFO)
            handler.emit = lambda record: self.say(record.getMessage())  # type: ignore[method-assign]
            self._ending.callback(log.setLevel, log.level)
            self._ending.callback(log.removeHandler, handler)
            log.setLevel(logging.INFO)
            log.addHandler(handler)
            self._ending.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def say(self, text: str, at_once: bool = True) -> None:
        """Change what the line says: at once, or when it is drawn again."""
        if self._live is not None:
            self._live.update(self._task, description=make_inert(text), refresh=at_once)

    def show_iteration(self, iteration: Iteration) -> None:
        """Tell of one iteration of a fit: a callback."""
        gain = "" if iteration.iteration == 1 else f", gain per answer {iteration.gain:.1e}"
        self.say(f"Fitting: iteration {iteration.iteration} of at most {iteration.max_iter}{gain}", at_once=False)
