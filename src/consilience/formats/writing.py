"""Files written whole or not at all, and tables written to files in the format of their suffix."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import pyarrow as pa

from ..errors import InputError, first_line
from .files import PathLike
from .register import list_suffixes, writable_formats
from .replacing import Replacement, ReplacementError, cannot_be_replaced, put_in_place, remove_all, sync

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
    except ReplacementError as failure:
        raise _disk_error(failure.path, failure.error) from failure.error
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
