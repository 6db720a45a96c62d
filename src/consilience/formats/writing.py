"""Files written whole or not at all, and tables written to files in the format of their suffix.

A file is written to a temporary one beside it, which then takes its place. What cannot be replaced (a device, a pipe)
is written to instead.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from ..errors import InputError, first_line
from . import list_suffixes, writable_formats
from .files import PathLike


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

    Parameters
    ----------
    path : str or path-like
        The file to write or overwrite. It may have any suffix, and the temporary path has the same.

    Yields
    ------
    pathlib.Path
        Where to write meanwhile: a file that is empty, with the permissions of the one to replace.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp(), "labels.txt")
    >>> with replace_file(path) as temporary:
    ...     _ = temporary.write_text("spam")
    >>> path.read_text()
    'spam'
    """
    check_writable(path)
    in_place = cannot_be_replaced(os.fspath(path))
    target = Path(os.path.realpath(path))  # a link stays a link
    suffix = "".join(target.suffixes[-2:] if target.suffix.lower() == ".gz" else target.suffixes[-1:])
    temporary = Path(tempfile.gettempdir()) if in_place else target.parent
    temporary /= f".consilience-{secrets.token_hex(8)}{suffix}"
    try:
        temporary.touch(mode=0o600 if in_place else 0o666, exist_ok=False)
        if target.exists() and not in_place:
            shutil.copymode(target, temporary)
        yield temporary
        if in_place:
            with open(path, "wb") as sink, open(temporary, "rb") as source:
                shutil.copyfileobj(source, sink)
        else:
            with open(temporary, "rb+") as written, suppress(OSError):  # where the file system can say so
                os.fsync(written.fileno())  # the content before the name: else a crash may leave an empty file
            os.replace(temporary, target)
    except OSError as error:
        raise InputError(
            f"{os.fspath(path)!r} cannot be written: {first_line(error)}.", "Free some space or write elsewhere."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_table_path(path: PathLike) -> None:
    """Raise the error that `write_table` would meet, as far as it can be known without writing."""
    check_writable(path, list_suffixes(writable_formats()))


def check_writable(path: PathLike, suffixes: Collection[str] | None = None) -> None:
    """Raise the error that writing to `path` would meet, as far as it can be known without writing.

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
                f"{target!r} cannot be written: no permission to write to {place!r}.", "Change that or write elsewhere."
            )


def cannot_be_replaced(path: str) -> bool:
    """Whether a path is there and no file of its own, but a device or a pipe.

    >>> cannot_be_replaced(os.devnull), cannot_be_replaced("labels.csv")
    (True, False)
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
