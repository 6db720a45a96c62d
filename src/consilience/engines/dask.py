"""A `dask.distributed` cluster: blocks are sent once, then only parameters and statistics travel.

Blocks and parameters are sent as tasks that return them, never as bare data. The scheduler keeps tasks, and so repeats
by itself what a lost worker had done or held. What the scheduler cannot mend is sent again from here.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..errors import EngineError, MissingDependencyError, ParameterError, Sentence, first_line
from ..limits import count_threads
from . import Engine, Outcome, Placed

# Seconds that a cluster may be out of reach, or without workers, before it is given up.
GRACE = 30
# Seconds without a result after which one looks whether workers were lost. Dask itself goes on asking a lost worker for
# its data for half a minute.
PATIENCE = 3
# How often in a row the same work is sent anew.
MOST_LOSSES = 5


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
        self._losses = (distributed.KilledWorker, distributed.CancelledError, OSError)
        self._workers: list[str] = []
        self._started: list[Any] = []
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                client = self._start(distributed)
        self.client = client
        self.n_threads = count_threads()

    def _start(self, distributed: Any) -> Any:
        """A new client, which is not the default one of this process; `close` closes what was started for it."""
        import dask

        address = dask.config.get("scheduler-address", None)
        try:
            if not address:
                # No other machine can reach it, not even its web server, and it keeps its logs to itself.
                address = distributed.LocalCluster(
                    host="127.0.0.1",
                    dashboard_address=None,
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    silence_logs=logging.CRITICAL,
                )
                self._started.append(address)
            self._started.insert(0, distributed.Client(address, timeout=GRACE, set_as_default=False))
        except Exception as error:  # anything may answer at an address
            self.close()
            raise ParameterError(
                f"No Dask cluster was found to work on ({first_line(error) or type(error).__name__}).",
                Sentence("Use {engine}.", engine="threads"),
                "Or start a cluster, and set $DASK_SCHEDULER_ADDRESS to its address.",
                keyword="engine",
            ) from error
        return self._started[0]

    def close(self) -> None:
        """Close the client, and the cluster behind it, if this engine has started them."""
        while self._started:
            self._started.pop(0).close()

    def __repr__(self) -> str:
        return f"Dask({self.client!r})"

    def place(self, blocks: Sequence[object]) -> Sequence[Placed]:
        """Send the blocks to the cluster's workers, spread evenly; return them with the futures that stand for them."""
        placed = [[block, None] for block in blocks]
        self._spread(placed)
        return placed

    def map(self, function: Callable[..., Outcome], placed: Sequence[Placed], *shared: object) -> Iterator[Outcome]:
        """Yield function(block, *shared) for each block, in order, computed where the block is."""
        futures: deque[Any] = deque()
        done = losses = 0
        while done < len(placed):
            try:
                if not futures:
                    call = self._send((function, shared))
                    sent = [future for _, future in placed[done:]]
                    futures += self.client.map(_run, sent, [call] * len(sent), pure=False)
                result, failure = self._wait_for(futures.popleft())
            except Exception as error:
                known = isinstance(error, self._losses) or self.client.status != "running"
                losses += 1
                if isinstance(error, EngineError) or not known:
                    raise
                if losses > MOST_LOSSES:
                    raise EngineError(
                        f"The Dask cluster lost the same work {losses} times ({first_line(error)}).",
                        "Look at the logs of its workers: they may lack memory.",
                        Sentence("Or use {engine}.", engine="threads"),
                    ) from error
                futures.clear()
                self._spread(placed[done:])
                continue
            if failure is not None:
                raise failure
            done, losses = done + 1, 0
            yield result

    def _spread(self, placed: Sequence[Placed]) -> None:
        """Send blocks to all workers in turn."""
        self._workers = self._find_workers()
        for number, each in enumerate(placed):
            each[1] = self._send(each[0], self._workers[number % len(self._workers)])

    def _send(self, content: object, worker: str | None = None) -> Any:
        """The future of a task whose result is the content, on that worker if possible."""
        import dask

        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        # Dask advises against large tasks, and for bare data, which would be lost with the worker that holds them.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.client.submit(_return, content, pure=False, **where)

    def _wait_for(self, future: Any) -> Any:
        """The result of a future, for as long as nobody is lost who may be needed for it."""
        patience = PATIENCE
        while True:
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                if set(self._workers).difference(self._find_workers()):
                    raise
                patience *= 2  # what takes long to arrive needs one long wait, not many short ones

    def _find_workers(self) -> list[str]:
        """The addresses of all workers, as soon as there is one."""
        deadline, problem = time.monotonic() + GRACE, "does not answer"
        while (left := deadline - time.monotonic()) > 0 and self.client.status not in ("closing", "closed"):
            with suppress(OSError, AttributeError):  # no answer, or closed meanwhile
                workers = list(self.client.nthreads(callback_timeout=left))
                if workers and self.client.status == "running":
                    return workers
                problem = "has no workers"
            time.sleep(0.1)
        raise EngineError(
            f"The Dask cluster {problem}, or the client is closed.",
            "Start it again, with workers, and give a new client as the engine.",
            Sentence("Or use {engine}.", engine="threads"),
        )


def _return(content: Outcome) -> Outcome:
    """What `Dask._send` has sent."""
    return content


def _run(block: object, call: tuple[Callable[..., Outcome], tuple[object, ...]]) -> tuple[Outcome | None, Any]:
    """The result of the function of a `map` for one block, or the error of the work itself, which is none of Dask's."""
    function, shared = call
    try:
        return function(block, *shared), None
    except Exception as error:
        return None, error
