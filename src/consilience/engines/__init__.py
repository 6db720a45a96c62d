"""Engines: where blocks live and who works on them. An engine knows nothing of models.

The usual engine is threads of this process: kernels release the interpreter's lock, so threads really run side by side.
A new engine is a file beside this one and a line in the register `ENGINES`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from ..errors import parameter_error
from ..limits import count_threads, release_mapped
from ..options import is_whole

if TYPE_CHECKING:
    from .dask import Dask as Dask

__all__ = ["Dask", "Engine", "Threads", "ENGINES", "open_engine"]

Outcome = TypeVar("Outcome")

# A block where an engine has put it: the block itself, or a handle.
Placed: TypeAlias = Any


class Engine(ABC):
    """Keeps blocks somewhere and runs one function on each of them. A context: `close` is called at its end."""

    #: How many threads of this process may do work that cannot be split into blocks.
    n_threads: int = 1

    @abstractmethod
    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Put the blocks where they will be worked on, once; return what `map` takes."""

    @abstractmethod
    def map(self, function: Callable[..., Outcome], placed: Sequence[Placed], *shared: object) -> Iterator[Outcome]:
        """Yield function(block, *shared) for each placed block, in block order.

        An engine that loses a result may call the function again with the same block: it must depend on its arguments
        alone and change nothing.
        """

    def close(self) -> None:  # noqa: B027 (most engines have started nothing)
        """Stop what the engine has started itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


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
        if n_threads is not None and not (is_whole(n_threads) and n_threads >= 1):
            raise parameter_error("n_threads", "Threads", "a whole number >= 1", n_threads)
        self.n_threads = count_threads() if n_threads is None else n_threads

    def __repr__(self) -> str:
        return f"Threads(n_threads={self.n_threads})"

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """The blocks: they are here already."""
        return blocks

    def map(self, function: Callable[..., Outcome], placed: Sequence[Placed], *shared: object) -> Iterator[Outcome]:
        """Yield function(block, *shared) for each block, in order; at most two results per thread are held back."""
        if self.n_threads == 1 or len(placed) == 1:
            for block in placed:
                yield function(block, *shared)
            return
        waiting: deque[Future[Outcome]] = deque()
        with ThreadPoolExecutor(min(self.n_threads, len(placed))) as pool:
            for block in placed:
                if len(waiting) == 2 * self.n_threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(function, block, *shared))
            while waiting:
                yield waiting.popleft().result()
        release_mapped()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep matrix products, and what else uses a pool of threads, to one: the last bits of sums depend on how many."""
    from threadpoolctl import threadpool_limits  # here, since few need it

    with threadpool_limits(limits=1):
        yield


def start_dask() -> Engine:
    """The engine of Dask, which is imported when it is asked for."""
    from .dask import Dask

    return Dask()


ENGINES: dict[str, Callable[[], Engine]] = {"threads": Threads, "dask": start_dask}

# What users may give: an engine, its name, a handle of the library behind it, or nothing for threads.
EngineLike: TypeAlias = "Engine | str | object | None"


@contextmanager
def open_engine(engine: EngineLike) -> Iterator[Engine]:
    """Give the engine that is meant by None, a name, a `distributed.Client` or an engine, for as long as it is used.

    An engine that was named is closed at the end; one that was given is left as it is.

    >>> with open_engine("threads") as engine:
    ...     print(list(engine.map(pow, [1, 2, 3], 2)))
    [1, 4, 9]
    """
    loaded = sys.modules.get("distributed")  # whoever has a client has imported it
    kind = ENGINES.get("threads" if engine is None else engine) if engine is None or isinstance(engine, str) else None
    if isinstance(engine, Engine):
        yield engine
    elif kind is not None:
        with closing(kind()) as named:
            yield named
    elif loaded is not None and isinstance(engine, loaded.Client):
        from .dask import Dask

        yield Dask(engine)
    else:
        names = ", ".join(map(repr, ENGINES))
        raise parameter_error("engine", "fit", f"None, {names}, a distributed.Client or an Engine", engine)


def __getattr__(name: str) -> Any:
    if name != "Dask":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .dask import Dask

    return Dask
