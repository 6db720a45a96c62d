"""What an engine is: everything that is asked of one, in one place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

Result = TypeVar("Result")

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
    def map(self, function: Callable[..., Result], placed: Sequence[Placed], *shared: object) -> Iterator[Result]:
        """Yield function(block, *shared) for each placed block, in block order.

        An engine that loses a result may call the function again with the same block: it must depend on its arguments
        alone and change nothing.
        """

    def close(self) -> None:  # noqa: B027 (most engines have started nothing)
        """Stop what the engine has started itself."""

    @classmethod
    def adopt(cls, handle: object) -> Self | None:  # noqa: ARG003
        """Return the engine that works through a handle of another library, None if that means nothing to it."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
