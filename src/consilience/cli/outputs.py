"""The files that a command writes, checked before the work."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from ..errors import InputError
from ..formats.register import list_suffixes, readable_formats
from ..formats.writing import check_table_path, check_writable


def check_outputs(tables: Sequence[str | None], others: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Raise the error that writing would meet, also where an output would overwrite an input or another output.

    Parameters
    ----------
    tables : sequence of str or None
        Paths of tables, whose suffix says the format; None where there is none.
    others : sequence of str or None
        Paths of other files.
    inputs : sequence of str or None
        What is read: files, globs and folders.
    """
    taken: dict[str, str] = {}
    for path, check in [(path, check_table_path) for path in tables] + [(path, check_writable) for path in others]:
        if path is None:
            continue
        check(path)
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{path!r} is named for two outputs.", "Give each its own file.")
        taken[real] = path
        for source in inputs:
            if source is not None and _is_read_from(real, source):
                raise InputError(f"Writing {path!r} would change the input {source!r}.", "Write to another place.")


def _is_read_from(real: str, source: str) -> bool:
    """Tell whether a file is, or would be, among those that `source` stands for."""
    if os.path.isdir(source):
        suffixes = tuple(list_suffixes(readable_formats()))
        return os.path.dirname(real) == os.path.realpath(source) and real.lower().endswith(suffixes)
    return real in {os.path.realpath(file) for file in (source, *glob.glob(source, recursive=True))}
