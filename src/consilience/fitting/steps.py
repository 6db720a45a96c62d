"""E-steps that are kept on disk, so that a fit that was interrupted goes on where it stood, to the same bits.

What an E-step returns depends on the data and on the parameters alone. So its statistics are kept under a hash of the
parameters, each in a file that is whole or not there. A fit that is begun again takes the same path, and finds what was
done before.

Each run has a folder of its own, named by a hash of its data and settings, so that fits to one store do not disturb
each other. Two runs with the same settings share a folder. One may remove it while the other is at work, which then
writes its next steps to a new one. A step that is damaged or has vanished is computed again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataWarning, StoreError, first_line, warn
from ..formats.replacing import sync
from ..store.layout import ArrayFile, write_arrays
from ..structures.base import AnyStructure
from .statistics import Statistics

# An empty file that says that the fit of a folder came to its end.
DONE = "done"


class Steps:
    """The E-steps of one run.

    Parameters
    ----------
    folder : Path
        Where the folders of all runs are.
    run : object
        What tells the run from others: known labels, groups of workers, settings of the model.
    needed : bool
        Whether a step that cannot be kept is an error. Else there is a warning, and the fit goes on.
    """

    def __init__(self, folder: Path, run: object, needed: bool = False) -> None:
        self.folder = folder / fingerprint(run)
        self.needed = needed
        self._has_warned = False

    def begin(self, resume: bool) -> None:
        """Forget earlier steps of this run, unless it is resumed, and those of other runs that came to their end."""
        for done in self.folder.parent.glob(f"*/{DONE}"):
            if done.parent != self.folder:
                shutil.rmtree(done.parent, ignore_errors=True)
        if not resume:
            self.clear()

    def recall(self, structure: AnyStructure, parameters: object, compute: Callable[[], Statistics]) -> Statistics:
        """Return the statistics at these parameters: those that were kept, or else computed ones, which are kept."""
        path = self.folder / f"{fingerprint(parameters)}.step"
        kept = read_step(path, type(structure).summary_type)
        if kept is not None:
            return kept
        statistics = compute()
        try:
            write_step(path, statistics)
        except OSError as error:
            self._report(path, error)
        return statistics

    def _report(self, path: Path, error: OSError) -> None:
        problem = f"The step {os.fspath(path)!r} cannot be written: {first_line(error)}."
        if self.needed:
            raise StoreError(problem, "Free some space, and resume.") from error
        if not self._has_warned:
            warn(DataWarning(problem, "The fit goes on. If it is interrupted, it cannot be resumed from here."))
        self._has_warned = True

    def finish(self) -> None:
        """Note that the fit came to its end."""
        with suppress(OSError):  # it has no folder if it made no steps
            (self.folder / DONE).touch()

    def clear(self) -> None:
        """Forget the steps of this run."""
        shutil.rmtree(self.folder, ignore_errors=True)


def read_step(path: Path, kind: type) -> Statistics | None:
    """Return the statistics in a file, whose summary is of some kind; None if the file is damaged or not there."""
    try:
        file = ArrayFile.open(path)
        log_normaliser, *counts = (np.array(file.read(field.name)) for field in fields(kind))
        return Statistics(np.array(file.read("counts")), kind(float(log_normaliser[0]), *counts))
    except (StoreError, OSError, ValueError, LookupError, TypeError):
        return None


def write_step(path: Path, statistics: Statistics) -> None:
    """Write statistics to a file, which is whole or not there whatever happens meanwhile."""
    arrays = {name: np.atleast_1d(value) for name, value in vars(statistics.summary).items()}
    temporary = path.with_suffix(f".{secrets.token_hex(8)}")
    # Another run with the same settings may remove the folder at any time.
    with suppress(FileNotFoundError):
        try:
            for folder in (path.parent.parent, path.parent):
                folder.mkdir(exist_ok=True)
            write_arrays(temporary, {"counts": statistics.counts, **arrays})
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def fingerprint(value: Any) -> str:
    """Return a hash of arrays, numbers and text, in tuples, lists, mappings and dataclasses.

    >>> fingerprint((1.0, np.arange(3))) == fingerprint((1.0, np.arange(3)))
    True
    >>> fingerprint((1.0, np.arange(3))) == fingerprint((1.0, np.arange(4)))
    False
    """
    hashed = hashlib.blake2b(digest_size=20)
    _add(hashed, value)
    return hashed.hexdigest()


def _add(hashed: Any, value: Any) -> None:
    hashed.update(type(value).__name__.encode())
    if isinstance(value, np.ndarray):
        hashed.update(f"{value.dtype.str}{value.shape}".encode())
        hashed.update(np.ascontiguousarray(value).data)
    elif isinstance(value, (tuple, list)):
        hashed.update(str(len(value)).encode())
        for entry in value:
            _add(hashed, entry)
    elif isinstance(value, dict):
        _add(hashed, [part for entry in sorted(value.items()) for part in entry])
    elif is_dataclass(value):
        _add(hashed, list(vars(value).values()))
    else:
        hashed.update(repr(value).encode())
