"""Files that take the places of others: all of them or none, whatever happens meanwhile.

Everything is first written to temporary files, which are then renamed. What cannot be replaced (a device, a pipe, the
standard output) is written to instead, before anything is renamed.
"""

from __future__ import annotations

import atexit
import errno
import os
import secrets
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# What asks a program to stop; Windows has no SIGHUP. Interruptions come last, so that they are heeded again last.
STOPPING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))
# File systems that cannot say when data have reached the disk.
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}

# All temporary files there are. A signal may hit where nothing cleans up: what is left goes when the program ends.
_temporary_files: set[Path] = set()


@dataclass(frozen=True, eq=False)
class Replacement:
    """A temporary file, and what it is for.

    Attributes
    ----------
    path : str
        What is to be written, as the caller named it.
    """

    path: str

    @cached_property
    def target(self) -> Path:
        """The file to replace. A link stays a link: it is the file it points to."""
        return Path(os.path.realpath(self.path))

    @cached_property
    def in_place(self) -> bool:
        """Whether the path is written to, because it cannot be replaced."""
        return cannot_be_replaced(self.path)

    @cached_property
    def temporary(self) -> Path:
        """Where to write meanwhile: beside the target, with the same suffix."""
        folder = Path(tempfile.gettempdir()) if self.in_place else self.target.parent
        return folder / f".{secrets.token_hex(8)}{_whole_suffix(self.path)}"

    @cached_property
    def old(self) -> Path:
        """The name that the old file has while several are replaced."""
        return self.temporary.with_name(f"{self.temporary.name}.old")

    def create(self) -> None:
        """Make the temporary file, empty, with the permissions that the target has or would get."""
        _temporary_files.update((self.temporary, self.old))
        try:
            mode = 0o600 if self.in_place else stat.S_IMODE(os.stat(self.target).st_mode)
        except FileNotFoundError:
            mode = None  # left to the umask
        os.close(os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode))
        if mode is not None:
            os.chmod(self.temporary, mode)

    def write_in_place(self) -> None:
        """Write the content of the temporary file to the path."""
        stream = _standard_stream(os.stat(self.path))
        number = os.open(self.path, os.O_WRONLY) if stream is None else os.dup(stream)
        with open(number, "wb") as sink, open(self.temporary, "rb") as source:
            shutil.copyfileobj(source, sink)

    def keep_old(self) -> None:
        """Give the old file a second name, if there is one."""
        if os.path.lexists(self.target):
            try:
                os.link(self.target, self.old)
            except OSError:  # not every file system has links
                shutil.copy2(self.target, self.old)

    def undo(self) -> None:
        """Put the old file back in its place; what is new goes."""
        if self.old.exists():
            os.replace(self.old, self.target)
        else:
            self.target.unlink()

    def remove(self) -> None:
        """Remove the temporary files."""
        for file in (self.temporary, self.old):
            with suppress(OSError):
                file.unlink(missing_ok=True)
                _temporary_files.discard(file)


class ReplacementError(Exception):
    """A file could not be replaced, and none was."""

    def __init__(self, replacement: Replacement, error: OSError) -> None:
        super().__init__(str(error))
        self.path = replacement.path
        self.error = error


def put_in_place(replacements: Sequence[Replacement]) -> None:
    """Let complete temporary files take their places. If one cannot, all others keep what they had.

    Signals that ask the program to stop wait until all is done.
    """
    files = [each for each in replacements if not each.in_place]
    for each in replacements:
        if each.in_place:
            with _blamed_on(each):
                each.write_in_place()
    with hold_signals():
        _rename(files)
    for folder in {each.target.parent for each in files}:
        with suppress(OSError):  # the files are there already
            sync(folder)


def _rename(files: Sequence[Replacement]) -> None:
    renamed: list[Replacement] = []
    try:
        for each in files:
            with _blamed_on(each):
                if len(files) > 1:
                    each.keep_old()
                os.replace(each.temporary, each.target)
            renamed.append(each)
    except ReplacementError:
        for each in reversed(renamed):
            each.undo()
        raise
    finally:
        remove_all(files)


@contextmanager
def _blamed_on(replacement: Replacement) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReplacementError(replacement, error) from error


def remove_all(replacements: Iterable[Replacement]) -> None:
    """Remove the temporary files of replacements, and let signals wait meanwhile."""
    with hold_signals():
        for each in replacements:
            each.remove()


@atexit.register
def _remove_leftovers() -> None:
    for file in _temporary_files:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file or folder has reached the disk, where the file system can tell."""
    number = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(number)


def cannot_be_replaced(path: str) -> bool:
    """Tell whether a path is there and no file of its own: a device, a pipe, or the program's own output.

    >>> cannot_be_replaced(os.devnull), cannot_be_replaced("labels.csv")
    (True, False)
    """
    try:
        found = os.stat(path)
    except OSError:
        return False
    special = not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    return special or _standard_stream(found) is not None


def _standard_stream(found: os.stat_result) -> int | None:
    """Return the number of the output stream that a file is; None if it is neither."""
    for number in (1, 2):
        with suppress(OSError):  # closed
            if os.path.samestat(found, os.fstat(number)):
                return number
    return None


def _whole_suffix(path: str) -> str:
    """Return the suffix of a path; of a compressed file both, as in .csv.gz."""
    *_, before, last = ("", "", *Path(path).suffixes)
    return before + last if last.lower() == ".gz" else last


@contextmanager
def hold_signals() -> Iterator[None]:
    """Let signals that ask the program to stop wait for the end of the block.

    Only the main thread hears signals; a block in another one is not disturbed by them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    handlers = {number: signal.getsignal(number) for number in STOPPING}
    # None is a handler that Python did not set, and cannot set again.
    heeded = {number: how for number, how in handlers.items() if how not in (None, signal.SIG_IGN)}
    try:
        for number in heeded:
            signal.signal(number, lambda number, _: arrived.append(number))
        yield
    finally:
        for number, how in heeded.items():
            signal.signal(number, how)
        for number in arrived:
            signal.raise_signal(number)
