"""Blocks that are opened where they are worked on, such as those on disk.

Blocks are worked on in groups. The sum over a group is taken where its blocks are opened, and only such sums travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ..engines.base import Engine, Placed, Result, Total


class Opening(Engine):
    """Work as another engine does, on groups of blocks, each of which is opened first.

    Parameters
    ----------
    inner : Engine
        Where to work.
    open_block : callable
        Returns the block that a handle stands for.
    """

    def __init__(self, inner: Engine, open_block: Callable[[Any], Any]) -> None:
        self.inner = inner
        self.open_block = open_block

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Put groups of handles where they will be opened."""
        return self.inner.place(blocks)

    def map(self, function: Callable[..., Result], placed: Sequence[Placed], *shared: object) -> Iterator[Result]:
        """Yield function(block, *shared) for each block of each group, in order."""
        for results in self.inner.map(partial(run_group, function, self.open_block), placed, *shared):
            yield from results

    def sum(
        self,
        function: Callable[..., Result],
        placed: Sequence[Placed],
        add_up: Callable[[Iterable[Result]], Total],
        combine: Callable[[Total, Total], Total],
        *shared: object,
    ) -> Total:
        """Return the sum over all blocks of function(block, *shared)."""
        return self.inner.total(partial(sum_group, function, add_up, self.open_block), placed, combine, *shared)


def run_group(
    function: Callable[..., Result], open_block: Callable[[Any], Any], group: Sequence[Any], *shared: object
) -> list[Result]:
    """Call the function with each block of a group."""
    return [function(open_block(handle), *shared) for handle in group]


def sum_group(
    function: Callable[..., Result],
    add_up: Callable[[Iterable[Result]], Total],
    open_block: Callable[[Any], Any],
    group: Sequence[Any],
    *shared: object,
) -> Total:
    """Return the sum over the blocks of a group."""
    return add_up(function(open_block(handle), *shared) for handle in group)
