"""Drawings by vl-convert in a process of their own: whatever happens to it, the results of a run are safe.

The process starts when it is needed, draws whatever this process asks for, and ends with it. Starting takes four
tenths of a second, half of it while the sections of a report are worked out, and each drawing some hundredths. The two
speak in lines of JSON, see `converter_process`. If the process dies or takes too long there is no picture, and the
reason is told.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..errors import ConsilienceWarning, EngineError, MissingDependencyError
from ..memory import address_space, format_bytes
from ..results.findings import Finding

PROGRAM = Path(__file__).with_name("converter_process.py")
# The most that the drawings of one page may take. A page with ten charts takes one second.
SECONDS = 60.0


class Drawn(NamedTuple):
    """What was drawn, None where that failed, and the reason for the last failure."""

    texts: list[str | None]
    reason: str = ""

    def check(self) -> list[str]:
        """Return what was drawn, or raise the error that something was not."""
        texts = [text for text in self.texts if text is not None]
        if len(texts) < len(self.texts):
            raise EngineError(f"The chart cannot be drawn: {self.reason}.", *list_remedies())
        return texts

    def find_missing(self) -> Finding | None:
        """Return what a report says of charts that were not drawn."""
        n_missing = sum(text is None for text in self.texts)
        if not n_missing:
            return None
        number = f"{n_missing} of {len(self.texts)} charts"
        return Finding(
            f"{number} could not be drawn: {self.reason}. Tables show the same figures.",
            tuple(list_remedies()),
            category=ConsilienceWarning,
            kind="charts",
        )


class Converter:
    """A process that draws, which is started when it is needed, and again when it has died."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0  # the process that started it: after a fork the pipes belong to the other one
        self._n_answers = 0

    def start(self) -> None:
        """Start the process, unless it is there; it gets ready while this one does something else.

        A process that cannot be started is told by `draw`.
        """
        with self._lock:
            if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
                return
            self.stop()  # it has ended, but its pipes are there
            self._owner, self._n_answers = os.getpid(), 0
            if not sys.executable or hasattr(sys, "frozen"):
                return  # this is another program, which has Python within
            with suppress(OSError):
                # Isolated: neither the environment nor the current folder says what is imported.
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", os.fspath(PROGRAM), find_converter()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )

    def draw(self, requests: Sequence[Mapping[str, object]], seconds: float = SECONDS) -> Drawn:
        """Return what the process answers to each request; all of them together may take so many seconds."""
        texts: list[str | None] = []
        reason, late = "", threading.Event()
        with self._lock:
            guard = threading.Timer(seconds, self._give_up, [late])
            guard.daemon = True
            guard.start()
            try:
                for request in requests:
                    self.start()
                    text, problem = self._ask(request)
                    texts.append(text)
                    reason = problem or reason
                    if late.is_set():
                        reason = f"it took longer than {seconds:g} seconds"
                    if late.is_set() or (text is None and not self._n_answers):
                        break  # whatever is asked next would end in the same way
            except BaseException:  # an interruption: the next answer would be taken for another one's
                self.stop()
                raise
            finally:
                guard.cancel()
        return Drawn(texts + [None] * (len(requests) - len(texts)), reason)

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._owner == os.getpid():
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what was not read is lost
                assert pipe is not None
                pipe.close()

    def _give_up(self, late: threading.Event) -> None:
        """End a process that takes too long; whoever waits for its answer does the rest."""
        late.set()
        if self._process is not None:
            self._process.kill()

    def _ask(self, request: Mapping[str, object]) -> tuple[str | None, str]:
        """Return the answer to one request, or None and the reason."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None, "the process that draws could not be started"
        line = b""
        with suppress(OSError):  # it has died
            process.stdin.write(json.dumps(request, allow_nan=False).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if not line.endswith(b"\n"):
            self.stop()
            return None, f"the process that draws ended {describe_end(process.returncode)}"
        self._n_answers += 1
        answer = json.loads(line)
        return answer.get("text"), answer.get("error", "")


def describe_end(code: int) -> str:
    """Return how a process ended.

    >>> describe_end(-5), describe_end(1)
    ('by the signal SIGTRAP', 'with code 1')
    """
    if code >= 0:
        return f"with code {code}"
    with suppress(ValueError):
        return f"by the signal {signal.Signals(-code).name}"
    return f"by the signal {-code}"


def list_remedies() -> list[str]:
    """Return what to do about charts that cannot be drawn."""
    limit = address_space()
    if limit == float("inf"):
        return []
    return [
        f"Drawing takes more address space than the {format_bytes(limit)} that ulimit -v allows. Raise that limit, or "
        "limit memory in another way."
    ]


def find_converter() -> str:
    """Return the folder that vl-convert is installed in, or raise the error that it is not. It is not loaded."""
    found = find_spec("vl_convert")
    if found is None or found.origin is None:
        raise not_installed("vl-convert-python")
    return os.path.dirname(os.path.dirname(found.origin))


def not_installed(package: str) -> MissingDependencyError:
    """Return the error that a package is not there which reports need."""
    return MissingDependencyError(
        f"Reports need {package}, which is not installed.", "Install it: pip install 'consilience[report]'"
    )


CONVERTER = Converter()


@atexit.register
def _stop_at_the_end() -> None:
    """End the process; all is written by now, so that a signal which comes meanwhile has nothing more to stop."""
    with suppress(BaseException):
        CONVERTER.stop()
