"""What a long run shows meanwhile: one line on stderr, on a terminal only, gone at the end."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from .text import make_inert

if TYPE_CHECKING:
    from ..inference.em import Progress as Iteration


_log = logging.getLogger("consilience")


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

    def say(self, text: str) -> None:
        """Change what the line says."""
        if self._live is not None:
            self._live.update(self._task, description=make_inert(text))

    def show_iteration(self, iteration: Iteration) -> None:
        """Tell of one iteration of a fit: a callback."""
        gain = "" if iteration.iteration == 1 else f", gain per answer {iteration.gain:.1e}"
        self.say(f"Fitting: iteration {iteration.iteration} of at most {iteration.max_iter}{gain}")
