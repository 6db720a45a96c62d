"""Files written whole or not at all, and tables to files: CSV, TSV, JSON lines, Parquet and Arrow, by suffix."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from ..errors import InputError, first_line
from .arrow import write_arrow, write_parquet
from .delimited import write_csv
from .files import SUFFIXES, PathLike, find_format, find_suffix
from .json_lines import write_json

_WRITERS = {
    "csv": write_csv,
    "tsv": write_csv,
    "jsonl": write_json,
    "parquet": write_parquet,
    "arrow": write_arrow,
}


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
    target = os.fspath(path)
    check_writable(target)
    with replace_file(target) as temporary:
        try:
            _WRITERS[find_format(target)](table.unify_dictionaries(), os.fspath(temporary))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"The table cannot be written to {target!r}: {first_line(error)}. Write Parquet, or drop the column."
            ) from error


@contextmanager
def replace_file(path: PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place if the block succeeds and vanishes if it fails.

    Parameters
    ----------
    path : str or path-like
        The file to write or overwrite; any suffix, which the temporary path shares.

    Yields
    ------
    pathlib.Path
        Where to write meanwhile.
    """
    check_writable(path, suffixes=None)
    # A link stays a link: the file it points to is replaced.
    target = Path(os.path.realpath(path))
    suffix = find_suffix(os.fspath(path)) or Path(path).suffix
    temporary = target.with_name(f".{secrets.token_hex(8)}{suffix}")
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(
            f"{os.fspath(path)!r} cannot be written: {first_line(error)}. Free some space or write elsewhere."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: PathLike, suffixes: Collection[str] | None = SUFFIXES) -> None:
    """Raise the error that writing to `path` would meet, as far as can be told without writing.

    Parameters
    ----------
    path : str or path-like
        Where a file is going to be written.
    suffixes : collection of str, optional
        The suffixes it may have: by default those of `write_table`; None allows any.
    """
    target = os.fspath(path)
    if target == "-":
        raise InputError("Standard output is not supported. Give the name of a file to write.")
    if os.path.isdir(target):
        raise InputError(f"{target!r} is a folder. Give the name of a file to write in it.")
    if suffixes is not None and not target.lower().endswith(tuple(suffixes)):
        raise InputError(f"{target!r} has no suffix that can be written. Use one of {' '.join(suffixes)}.")
    folder = os.path.dirname(os.path.realpath(target))
    if not os.path.isdir(folder):
        raise InputError(f"{target!r} cannot be written: there is no folder {folder!r}. Create it first.")
    for place in (folder, target):
        if os.path.exists(place) and not os.access(place, os.W_OK):
            raise InputError(
                f"{target!r} cannot be written: no permission to write to {place!r}. Change that or write elsewhere."
            )
