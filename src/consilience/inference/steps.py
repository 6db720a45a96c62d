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
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, StoreError, first_line, warn
from ..formats.writing import sync
from ..storage.layout import ArrayFile, write_arrays
from .structures import AnyStructure, Statistics

# Waiting for the disk takes some 10 ms. A step that took more seconds than this to compute is worth it.
WORTH_WAITING = 0.5
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

    Attributes
    ----------
    n_found : int
        How many steps of an earlier run were used.
    """

    def __init__(self, folder: Path, run: object, needed: bool = False) -> None:
        self.folder = folder / fingerprint(run)
        self.needed = needed
        self.n_found = 0
        self._asked = set[Path]()
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
        self.n_found += kept is not None and path not in self._asked  # later it may be a step of this run
        self._asked.add(path)
        if kept is not None:
            return kept
        begun = time.monotonic()
        statistics = compute()
        try:
            write_step(path, statistics, through=time.monotonic() - begun > WORTH_WAITING)
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
        arrays = {name: np.array(file.read(name)) for name in ("counts", *(field.name for field in fields(kind)))}
        if add_up(arrays) != int(file.read("sum")[0]):
            return None
        counts, log_normaliser, *others = arrays.values()
        return Statistics(counts, kind(float(log_normaliser[0]), *others))
    except (StoreError, OSError, ValueError, LookupError, TypeError):
        return None


def write_step(path: Path, statistics: Statistics, through: bool) -> None:
    """Write statistics to a file; `through` waits until they have reached the disk.

    The file has a checksum: if the system fails before that, it may be there and not whole.
    """
    summary = {name: np.atleast_1d(value) for name, value in vars(statistics.summary).items()}
    arrays = {"counts": statistics.counts, **summary}
    temporary = path.with_suffix(f".{secrets.token_hex(8)}")
    # Another run with the same settings may remove the folder at any time.
    with suppress(FileNotFoundError):
        try:
            for folder in (path.parent.parent, path.parent):
                with suppress(FileExistsError):  # mkdir(exist_ok=True) raises it if the folder vanishes meanwhile
                    folder.mkdir()
            write_arrays(temporary, {**arrays, "sum": np.array([add_up(arrays)])})
            if through:
                sync(temporary)
            temporary.replace(path)
            if through:
                sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def add_up(arrays: Mapping[str, NDArray[Any]]) -> int:
    """Return a checksum of arrays."""
    found = 0
    for array in arrays.values():
        found = crc32(np.ascontiguousarray(array).data, found)
    return found


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
