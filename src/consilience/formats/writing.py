"""Files written whole or not at all, and tables written to files in the format of their suffix.

Everything is first written to temporary files, which are then renamed: all of them or none, whatever happens meanwhile.
What cannot be replaced (a device, a pipe, the standard output) is written to instead, before anything is renamed.
What a process that is killed outright leaves behind is removed by the next one that writes to the folder.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa

from ..errors import InputError, first_line
from . import list_suffixes, writable_formats
from .files import PathLike

# What asks a program to stop; Windows has no SIGHUP. Interruptions come last, so that they are heeded again last.
STOPPING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))
# File systems that cannot say when data have reached the disk.
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}

# All temporary files there are. A signal may hit where nothing cleans up: what is left goes when the program ends.
_temporary_files: set[Path] = set()
# Names of temporary files say which process makes them: of which machine and namespace, and its number there.
_TEMPORARY = re.compile(r"\.consilience-([0-9a-f]{8})-([0-9]+)-[0-9a-f]{16}")
# The files that wait for the end of `replace_together`; None outside of such a block.
_waiting: ContextVar[list[Replacement] | None] = ContextVar("waiting", default=None)


def write_table(table: pa.Table, path: PathLike) -> None:
    """Write a table to a file, in the format of its suffix; the old file stays until the new one is complete.

    Parameters
    ----------
    table : pyarrow.Table
        Dictionary columns are written as their values in the text formats. There a null is an empty field (CSV, TSV)
        or ``null`` (JSON lines, where a number that is not finite is ``null`` too).
    path : str or path-like
        Where to write.
    """
    write_tables([table.unify_dictionaries()], path)


def write_tables(tables: Iterable[pa.Table], path: PathLike) -> None:
    """Write tables of one schema to a file, one after the other, as `write_table` does; there must be one at least."""
    target = os.fspath(path)
    check_table_path(target)
    write = next(each for each in writable_formats() if each.fits(target)).codec.write
    assert write is not None
    with replace_file(target) as temporary:
        try:
            write(tables, os.fspath(temporary))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"The table cannot be written to {target!r}: {first_line(error)}.", "Write Parquet, or drop the column."
            ) from error


@contextmanager
def replace_file(path: PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place if the block succeeds and vanishes if it fails.

    A device or a pipe is written to in the end, not replaced.

    Parameters
    ----------
    path : str or path-like
        The file to write or overwrite. It may have any suffix, and the temporary path has the same.

    Yields
    ------
    pathlib.Path
        Where to write meanwhile: a file that is empty, with the permissions of the one to replace.
    """
    check_writable(path)
    with replace_together() as waiting:
        replacement = Replacement(os.fspath(path))
        waiting.append(replacement)  # before there is a file: it is removed whenever a signal comes
        try:
            replacement.create()
            yield replacement.temporary
            sync(replacement.temporary)
        except BaseException as error:
            waiting.remove(replacement)
            remove_all([replacement])
            if isinstance(error, OSError):
                raise _disk_error(path, error) from error
            raise


@contextmanager
def replace_at_once() -> Iterator[None]:
    """Let files that are written in the block, which are read again soon, not wait for those of a block around it."""
    before = _waiting.set(None)
    try:
        yield
    finally:
        _waiting.reset(before)


@contextmanager
def replace_together() -> Iterator[list[Replacement]]:
    """Let all files that `replace_file` replaces in the block take their places at its end, or none if it fails.

    Yields
    ------
    list of Replacement
        The files that are being written. Those of a block within a block wait for the outer one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "labels.csv")
    >>> with replace_together():
    ...     write_table(pa.table({"item": [1]}), path)
    ...     path.exists()
    False
    >>> path.exists()
    True
    """
    outer = _waiting.get()
    if outer is not None:
        yield outer
        return
    waiting: list[Replacement] = []
    token = _waiting.set(waiting)
    try:
        yield waiting
        put_in_place(waiting)
    finally:
        _waiting.reset(token)
        remove_all(waiting)


def _disk_error(path: PathLike, error: OSError) -> InputError:
    return InputError(
        f"{os.fspath(path)!r} cannot be written: {first_line(error)}.", "Free some space or write elsewhere."
    )


def check_table_path(path: PathLike) -> None:
    """Raise the error that `write_table` would meet, as far as it can be told without writing."""
    check_writable(path, list_suffixes(writable_formats()))


def check_writable(path: PathLike, suffixes: Collection[str] | None = None) -> None:
    """Raise the error that writing to `path` would meet, as far as it can be told without writing.

    Parameters
    ----------
    path : str or path-like
        Where a file is going to be written.
    suffixes : collection of str, optional
        The suffixes it may have; any by default.
    """
    target = os.fspath(path)
    if target == "-":
        raise InputError("Standard output is not supported.", "Give the name of a file to write.")
    try:
        folder = os.path.dirname(os.path.realpath(target))
    except ValueError as error:
        raise InputError(f"{target!r} is no name of a file: {first_line(error)}.", "Give another name.") from error
    if os.path.isdir(target):
        raise InputError(f"{target!r} is a folder.", "Give the name of a file to write in it.")
    if suffixes is not None and not target.lower().endswith(tuple(suffixes)):
        raise InputError(f"{target!r} has no suffix that can be written.", f"Use one of {' '.join(suffixes)}.")
    in_place = cannot_be_replaced(target)
    if not in_place and not os.path.isdir(folder):
        raise InputError(f"{target!r} cannot be written: there is no folder {folder!r}.", "Create it first.")
    for place in (target,) if in_place else (folder, target):
        if os.path.exists(place) and not os.access(place, os.W_OK):
            raise InputError(
                f"{target!r} cannot be written: no permission to write to {place!r}.",
                "Change that or write elsewhere.",
            )


# --------------------------------------------------------------------------------------------------- replacement


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
        name = f".consilience-{_name_machine()}-{os.getpid()}-{secrets.token_hex(8)}"
        return folder / f"{name}{_whole_suffix(self.path)}"

    @cached_property
    def old(self) -> Path:
        """The name that the old file has while several are replaced."""
        return self.temporary.with_name(f"{self.temporary.name}.old")

    def create(self) -> None:
        """Make the temporary file, empty, with the permissions that the target has or would get."""
        _temporary_files.update((self.temporary, self.old))
        remove_abandoned(self.temporary.parent)
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
    except InputError:
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
        raise _disk_error(replacement.path, error) from error


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


@cache
def remove_abandoned(folder: Path) -> None:
    """Remove temporary files in a folder whose process has ended; once for each folder.

    Files of other machines stay, and all where it cannot be told which machine this is.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            found = _TEMPORARY.match(name)
            if found is not None and found[1] == _name_machine() and not _is_running(int(found[2])):
                with suppress(OSError):
                    (folder / name).unlink()


@cache
def _name_machine() -> str:
    """Return eight letters for where the numbers of processes are those of this one: machine, start, namespace."""
    try:  # on Linux
        start, namespace = Path("/proc/sys/kernel/random/boot_id").read_text("ascii"), os.readlink("/proc/self/ns/pid")
    except OSError:
        return "unknown"  # which no file is taken to be of
    return hashlib.sha256(f"{socket.gethostname()}\n{start}\n{namespace}".encode(errors="replace")).hexdigest()[:8]


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is somebody else's
        pass
    return True


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
