"""The files a command writes: checked before the work, written together after it, all or none."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ..errors import ConsilienceError, InputError
from ..formats.files import SUFFIXES
from ..formats.writing import check_writable, replace_file

Writer = Callable[[Path], object]


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
    for path, suffixes in [(path, SUFFIXES) for path in tables] + [(path, None) for path in others]:
        if path is None:
            continue
        check_writable(path, suffixes)
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{path!r} is named for two outputs. Give each its own file.")
        taken[real] = path
        for source in inputs:
            if source is not None and _is_read_from(real, source):
                raise InputError(f"Writing {path!r} would change the input {source!r}. Write to another place.")


def write_outputs(writers: Mapping[str, Writer]) -> None:
    """Call each writer with a path to write to; the files take their places when all are complete."""
    with ExitStack() as stack:
        for path, write in writers.items():
            temporary = stack.enter_context(replace_file(path))
            try:
                write(temporary)
            except ConsilienceError as error:
                raise type(error)(str(error).replace(str(temporary), path)) from error


def _is_read_from(real: str, source: str) -> bool:
    """Tell whether a file is, or would be, among those that `source` stands for."""
    if os.path.isdir(source):
        return os.path.dirname(real) == os.path.realpath(source) and real.lower().endswith(SUFFIXES)
    return real in {os.path.realpath(file) for file in (source, *glob.glob(source, recursive=True))}
