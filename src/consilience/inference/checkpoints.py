"""Where a run of the loop stands is kept after each iteration, so that an interrupted one can continue.

It is kept where answers are mapped from files, in the folder of these: one file for each start of the loop.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..answers.answers import Budget
from ..kernels import freeze

log = logging.getLogger("consilience")


def list_numbers(record: Any, name: str = "") -> dict[str, Any]:
    """The arrays and numbers that a record holds, by name."""
    parts = vars(record) if is_dataclass(record) else dict(enumerate(record)) if isinstance(record, tuple) else {}
    numbers = {name: record} if isinstance(record, (int, float, np.ndarray)) else {}
    for own, part in parts.items():
        numbers |= list_numbers(part, f"{name}/{own}")
    return numbers


def refill(record: Any, numbers: Mapping[str, Any], name: str = "") -> Any:
    """The same record with other numbers."""
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{own: refill(part, numbers, f"{name}/{own}") for own, part in vars(record).items()})
    if isinstance(record, tuple):
        parts = [refill(part, numbers, f"{name}/{own}") for own, part in enumerate(record)]
        return tuple(parts) if type(record) is tuple else type(record)(*parts)
    if name not in numbers:
        return record
    return type(record)(numbers[name]) if isinstance(record, (int, float)) else freeze(numbers[name])


def name_run(budget: Budget, key: tuple[Any, ...]) -> Path:
    """The file of a run, which is named by all that the run depends on."""
    digest = hashlib.blake2b(digest_size=12)
    for name, number in list_numbers(key).items():
        array = np.ascontiguousarray(number)
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return Path(budget.folder, f"fit-{digest.hexdigest()}.npz")


def save_run(path: Path, parameters: Any, trace: list[float], prior_is_new: bool) -> None:
    """Keep where a run stands, if there is room for it."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as new:
            np.savez(new, trace=trace, prior_is_new=prior_is_new, **list_numbers(parameters))
        os.replace(new.name, path)
    except OSError as error:
        log.info("Where the fit stands could not be kept: %s", error)


def load_run(path: Path, start: Any, max_iter: int) -> tuple[Any, list[float], bool] | None:
    """The last state of a run: parameters, objectives, and whether the prior is new; None to begin anew."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            kept = refill(start, saved), saved["trace"].tolist(), bool(saved["prior_is_new"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    if len(kept[1]) > max_iter:
        return None
    log.info("Going on after iteration %d", len(kept[1]))
    return kept
