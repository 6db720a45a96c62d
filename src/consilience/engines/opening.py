"""Blocks that are opened where they are worked on, such as those on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from .base import Engine, Placed, Result


class Opening(Engine):
    """Work as another engine does, on blocks that are opened first, each time.

    Parameters
    ----------
    inner : Engine
        Where to work.
    prepare : callable
        What becomes of a block after it was opened.
    """

    def __init__(self, inner: Engine, prepare: Callable[[Any], Any]) -> None:
        self.inner = inner
        self.prepare = prepare

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Put the handles of blocks where they will be opened."""
        return self.inner.place(blocks)

    def map(self, function: Callable[..., Result], placed: Sequence[Placed], *shared: object) -> Iterator[Result]:
        """Yield function(block, *shared) for each block, in order."""
        return self.inner.map(partial(open_and_run, function, self.prepare), placed, *shared)


def open_and_run(
    function: Callable[..., Result], prepare: Callable[[Any], Any], stored: Any, *shared: object
) -> Result:
    """Open a block, and call the function with it."""
    return function(prepare(stored.open()), *shared)
