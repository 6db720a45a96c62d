"""Threads of this process. Kernels release the interpreter's lock, so threads really run side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from ..errors import parameter_error
from ..memory import count_threads
from .base import Engine, Placed, Result


class Threads(Engine):
    """Work on blocks in threads of this process.

    Parameters
    ----------
    n_threads : int, optional
        Default: $CONSILIENCE_THREADS, or else the number of processors. Results do not depend on it.

    Examples
    --------
    >>> list(Threads(n_threads=2).map(pow, [1, 2, 3], 2))
    [1, 4, 9]
    """

    def __init__(self, n_threads: int | None = None) -> None:
        if n_threads is None:
            n_threads = count_threads()
        if isinstance(n_threads, bool) or not isinstance(n_threads, int) or n_threads < 1:
            raise parameter_error("n_threads", "Threads", "a whole number >= 1", n_threads)
        self.n_threads = n_threads

    def __repr__(self) -> str:
        return f"Threads(n_threads={self.n_threads})"

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Return the blocks: they are here already."""
        return blocks

    def map(self, function: Callable[..., Result], placed: Sequence[Placed], *shared: object) -> Iterator[Result]:
        """Yield function(block, *shared) for each block, in order; at most two results per thread are held back."""
        if self.n_threads == 1 or len(placed) == 1:
            for block in placed:
                yield function(block, *shared)
            return
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(min(self.n_threads, len(placed))) as pool:
            for block in placed:
                if len(waiting) == 2 * self.n_threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(function, block, *shared))
            while waiting:
                yield waiting.popleft().result()
