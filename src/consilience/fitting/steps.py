"""E-steps that are kept on disk, so that a fit that was interrupted goes on where it stood, to the same bits.

What an E-step returns depends on the data and on the parameters alone. So its statistics are kept under a hash of the
parameters, each in a file that is whole or not there. A fit that is begun again takes the same path, and finds what was
done before.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StoreError, first_line
from ..store.layout import ArrayFile, write_arrays
from ..structures.base import AnyStructure
from .statistics import Statistics


class Steps:
    """The E-steps of fits to one set of data.

    Parameters
    ----------
    folder : Path
        Where they are kept.
    data : object
        What tells the data from others in the same folder: known labels, groups of workers.
    """

    def __init__(self, folder: Path, data: object) -> None:
        self.folder = folder
        self.data = fingerprint(data)

    def recall(self, structure: AnyStructure, parameters: object, compute: Callable[[], Statistics]) -> Statistics:
        """Return the statistics at these parameters: those that were kept, or else computed ones, which are kept."""
        path = self.folder / f"{fingerprint((self.data, parameters))}.step"
        kind = type(structure).summary_type
        if path.exists():
            file = ArrayFile.open(path)
            log_normaliser, *counts = (np.array(file.read(field.name)) for field in fields(kind))
            return Statistics(np.array(file.read("counts")), kind(float(log_normaliser[0]), *counts))
        statistics = compute()
        arrays = {name: np.atleast_1d(value) for name, value in vars(statistics.summary).items()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(f".{os.getpid()}")
            write_arrays(temporary, {"counts": statistics.counts, **arrays})
            temporary.replace(path)
        except OSError as error:
            raise StoreError(
                f"The step {str(path)!r} cannot be written: {first_line(error)}.", "Free some space, and resume."
            ) from error
        return statistics

    def clear(self) -> None:
        """Forget all steps."""
        shutil.rmtree(self.folder, ignore_errors=True)


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
