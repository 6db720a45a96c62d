"""What an engine is, and how one is named."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..errors import parameter_error

Result = TypeVar("Result")


class Engine(ABC):
    """Keeps blocks somewhere and runs one function on each of them."""

    @abstractmethod
    def place(self, blocks: Sequence[Any]) -> Sequence[Any]:
        """Put the blocks where they will be worked on, once; return what `map` takes."""

    @abstractmethod
    def map(self, function: Callable[..., Result], placed: Sequence[Any], *shared: Any) -> Iterator[Result]:
        """Yield function(block, *shared) for each placed block, in block order."""


def resolve_engine(engine: Any) -> Engine:
    """Return the engine meant by None, a name, a `distributed.Client` or an engine.

    >>> resolve_engine("threads")  # doctest: +ELLIPSIS
    Threads(n_threads=...)
    """
    from .dask import Dask
    from .local import Threads

    if isinstance(engine, Engine):
        return engine
    if engine is None or engine == "threads":
        return Threads()
    if engine == "dask":
        return Dask()
    if type(engine).__module__.split(".")[0] == "distributed" and hasattr(engine, "scatter"):
        return Dask(engine)
    raise parameter_error("engine", "fit", "None, 'threads', 'dask', a distributed.Client or an Engine", engine)
