"""Engines: where blocks live and who works on them. An engine knows nothing of models.

A new engine is a file beside this one and a line in the register `ENGINES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import parameter_error
from .base import Engine, Threads

if TYPE_CHECKING:
    from .dask import Dask as Dask

__all__ = ["Dask", "Engine", "Threads", "ENGINES", "open_engine"]


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
        with kind() as named:
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
