"""A `dask.distributed` cluster: blocks are scattered once, then only parameters and statistics travel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from ..errors import MissingDependencyError, ParameterError, Sentence, first_line
from .base import Engine, Placed, Result


class Dask(Engine):
    """Work on blocks in the workers of a `dask.distributed` cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        Default: the current client of this process, or else a new one, which joins the scheduler named in Dask's
        configuration (``$DASK_SCHEDULER_ADDRESS``) or starts a cluster on this machine. A new one is closed by `close`,
        which is called at the end of a ``with`` block, and of a fit to which the engine was only named ("dask").
    """

    def __init__(self, client: Any = None) -> None:
        try:
            import distributed
        except ImportError as error:
            raise MissingDependencyError(
                "The Dask engine needs the package 'distributed': pip install 'consilience[dask]'."
            ) from error
        self._started = False
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                client, self._started = _start_client(distributed), True
        self.client = client

    @classmethod
    def adopt(cls, handle: object) -> Self | None:
        """Return the engine of a `distributed.Client`."""
        loaded = sys.modules.get("distributed")  # whoever has a client has imported it
        return cls(handle) if loaded is not None and isinstance(handle, loaded.Client) else None

    def close(self) -> None:
        """Close the client, and the cluster behind it, if this engine has started them."""
        if self._started:
            self.client.close()
            self._started = False

    def __repr__(self) -> str:
        return f"Dask({self.client!r})"

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Send the blocks to the cluster's workers, spread evenly; return the handles."""
        return list(self.client.scatter(list(blocks), hash=False))

    def map(self, function: Callable[..., Result], placed: Sequence[Placed], *shared: object) -> Iterator[Result]:
        """Yield function(block, *shared) for each block, in order, computed where the block is."""
        # Inside a list: scatter would take a tuple of parameters apart.
        everywhere = self.client.scatter(list(shared), broadcast=True, hash=False)
        futures = [self.client.submit(function, block, *everywhere, pure=False) for block in placed]
        for future in futures:
            yield future.result()


def _start_client(distributed: Any) -> Any:
    """Return a client of the scheduler that Dask's configuration names, or else of a new cluster on this machine."""
    try:
        return distributed.Client()
    except (ValueError, OSError) as error:
        raise ParameterError(
            f"No Dask cluster was found to work on ({first_line(error)}).",
            Sentence("Use {engine}.", engine="threads"),
            "Or start a cluster, and set $DASK_SCHEDULER_ADDRESS to its address.",
            keyword="engine",
        ) from error
