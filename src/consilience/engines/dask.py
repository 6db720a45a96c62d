"""A `dask.distributed` cluster: blocks are sent once, then only parameters and statistics travel.

Blocks and parameters are sent as tasks that return them, never as bare data. The scheduler keeps tasks, and so repeats
by itself what a lost worker had done or held. What the scheduler cannot mend is sent again from here.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from ..errors import EngineError, MissingDependencyError, ParameterError, Sentence, first_line
from ..memory import count_threads
from .base import Engine, Outcome, Placed

# Seconds that a cluster may be out of reach, or without workers, before it is given up.
GRACE = 30
# Seconds without a result after which one looks whether workers were lost. Dask itself goes on asking a lost worker for
# its data for half a minute.
PATIENCE = 3
# How often in a row the same work is sent anew.
MOST_LOSSES = 5


@dataclass
class PlacedBlock:
    """A block, and the future that stands for it in the cluster."""

    block: object
    future: Any = None


class LostWorkerError(Exception):
    """A worker was lost while a result was waited for."""


class WorkError(Exception):
    """The work itself failed, with the error that is the cause of this one: it would fail again."""


class Dask(Engine):
    """Work on blocks in the workers of a `dask.distributed` cluster.

    A lost worker costs time and nothing else: the result is the same. If the scheduler cannot be reached, or there are
    no workers, for half a minute, an `EngineError` is raised.

    Parameters
    ----------
    client : distributed.Client, optional
        Default: the current client of this process, or else a new one, which joins the scheduler named in Dask's
        configuration (``$DASK_SCHEDULER_ADDRESS``) or starts a cluster on this machine, which other machines cannot
        reach. A new one is closed by `close`, which is called at the end of a ``with`` block, and of a fit to which the
        engine was only named ("dask").
    """

    def __init__(self, client: Any = None) -> None:
        try:
            import distributed
        except ImportError as error:
            raise MissingDependencyError(
                "The Dask engine needs the package 'distributed': pip install 'consilience[dask]'."
            ) from error
        # What one sees of a lost worker, or of a connection that was lost for a while.
        self._reports = (distributed.KilledWorker, distributed.CancelledError)
        self._losses = (LostWorkerError, *self._reports, OSError)
        self._workers: list[str] = []
        self._started: list[Any] = []
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                self._started = _start_client(distributed)
                client = self._started[0]
        self.client = client
        self.n_threads = count_threads()

    @classmethod
    def adopt(cls, handle: object) -> Self | None:
        """Return the engine of a `distributed.Client`."""
        loaded = sys.modules.get("distributed")  # whoever has a client has imported it
        return cls(handle) if loaded is not None and isinstance(handle, loaded.Client) else None

    def close(self) -> None:
        """Close the client, and the cluster behind it, if this engine has started them."""
        while self._started:
            self._started.pop(0).close()

    def __repr__(self) -> str:
        return f"Dask({self.client!r})"

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Send the blocks to the cluster's workers, spread evenly; return the handles."""
        placed = [PlacedBlock(block) for block in blocks]
        self._spread(placed)
        return placed

    def map(self, function: Callable[..., Outcome], placed: Sequence[Placed], *shared: object) -> Iterator[Outcome]:
        """Yield function(block, *shared) for each block, in order, computed where the block is."""
        done = losses = 0
        while done < len(placed):
            try:
                for result in self._map_once(function, placed[done:], shared):
                    yield result
                    done, losses = done + 1, 0
            except Exception as error:
                losses += 1
                self._recover(error, losses, placed[done:])

    def _recover(self, error: Exception, losses: int, placed: Sequence[Placed]) -> None:
        """Send blocks again after something was lost; raise an error that cannot be mended, or that comes too often."""
        if isinstance(error, EngineError):
            raise error
        if isinstance(error, WorkError):
            raise error.args[0] from None
        if not isinstance(error, self._losses) and self.client.status == "running":
            raise error
        if losses > MOST_LOSSES:
            raise EngineError(
                f"The Dask cluster lost the same work {losses} times ({first_line(error)}).",
                "Look at the logs of its workers: they may lack memory.",
                Sentence("Or use {engine}.", engine="threads"),
            ) from error
        self._spread(placed)

    def _map_once(
        self, function: Callable[..., Outcome], placed: Sequence[Placed], shared: tuple[object, ...]
    ) -> Iterator[Outcome]:
        """Yield results as long as nothing is lost that the scheduler cannot repeat in time."""
        call = self._send((function, shared))
        futures = deque(self.client.map(_run, [each.future for each in placed], [call] * len(placed), pure=False))
        while futures:
            yield self._wait_for(futures.popleft())

    def _spread(self, placed: Sequence[PlacedBlock]) -> None:
        """Send blocks to all workers in turn."""
        self._workers = self._find_workers()
        for number, each in enumerate(placed):
            each.future = self._send(each.block, self._workers[number % len(self._workers)])

    def _send(self, content: object, worker: str | None = None) -> Any:
        """Return the future of a task whose result is the content, on that worker if possible."""
        import dask

        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        # Dask advises against large tasks, and for bare data, which would be lost with the worker that holds them.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.client.submit(_return, content, pure=False, **where)

    def _wait_for(self, future: Any) -> Any:
        """Return the result of a future, for as long as nobody is lost who may be needed for it."""
        patience = PATIENCE
        while True:
            try:
                return future.result(timeout=patience)
            except Exception as error:
                if future.status == "error" and not isinstance(error, self._reports):
                    raise WorkError(error) from error
                if not isinstance(error, TimeoutError):
                    raise
                lost = set(self._workers).difference(self._find_workers())
                if lost:
                    raise LostWorkerError(f"lost {', '.join(sorted(lost))}") from None
                patience *= 2  # what takes long to arrive needs one long wait, not many short ones

    def _find_workers(self) -> list[str]:
        """Return the addresses of all workers, as soon as there is one."""
        deadline = time.monotonic() + GRACE
        problem = "does not answer"
        while (left := deadline - time.monotonic()) > 0 and self.client.status not in ("closing", "closed"):
            try:
                workers = list(self.client.nthreads(callback_timeout=left))
            except (OSError, AttributeError):  # no answer, or closed meanwhile
                problem = "does not answer"
            else:
                if workers and self.client.status == "running":
                    return workers
                problem = "has no workers"
            time.sleep(0.1)
        if self.client.status in ("closing", "closed"):
            problem = "cannot be reached: the client is closed"
        raise EngineError(
            f"The Dask cluster {problem}.",
            "Start it again, with workers, and give a new client as the engine.",
            Sentence("Or use {engine}.", engine="threads"),
        )


def _return(content: Outcome) -> Outcome:
    """Return what `Dask._send` has sent."""
    return content


def _run(block: object, call: tuple[Callable[..., Outcome], tuple[object, ...]]) -> Outcome:
    """Call the function of a `map` with one block."""
    function, shared = call
    return function(block, *shared)


def _start_client(distributed: Any) -> list[Any]:
    """Return a client of the scheduler that Dask's configuration names, or else of a new cluster, and that cluster."""
    import dask

    address, cluster = dask.config.get("scheduler-address", None), None
    try:
        if not address:
            with _holding_interrupts():
                cluster = _start_cluster(distributed)
        client = _connect(distributed, address or cluster)
    except BaseException as error:  # anything may answer at an address
        if cluster is not None:
            cluster.close()
        if not isinstance(error, Exception):
            raise
        raise ParameterError(
            f"No Dask cluster was found to work on ({first_line(error) or type(error).__name__}).",
            Sentence("Use {engine}.", engine="threads"),
            "Or start a cluster, and set $DASK_SCHEDULER_ADDRESS to its address.",
            keyword="engine",
        ) from error
    return [client] if cluster is None else [client, cluster]


def _connect(distributed: Any, address: Any) -> Any:
    """Return a new client, which is not the default one of this process; one that fails is closed at once.

    Left to the garbage collector, a half-made client can block whoever starts the next one.
    """
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(address, timeout=GRACE, set_as_default=False)
    except BaseException:
        client.close()
        raise
    return client


def _start_cluster(distributed: Any) -> Any:
    """Start a cluster on this machine, which no other machine can reach, and which keeps its logs to itself."""
    return distributed.LocalCluster(
        host="127.0.0.1",
        dashboard_address=None,
        # A scheduler always has a web server: let it be one for this machine, on any port that is free.
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        silence_logs=logging.CRITICAL,
    )


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C, for good in the threads and processes that are started meanwhile.

    A terminal sends it to all processes. Workers would print tracebacks, but they are stopped from here anyway; and an
    interrupt while they start leaves them behind.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # a thread that starts it no longer holds back interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
