"""Where a run of the loop stands, kept after each iteration, so that an interrupted one can go on."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..answers.answers import Budget
from ..kernels import freeze

log = logging.getLogger("consilience")


class KeptRun(NamedTuple):
    """A file with the parameters after the last iteration, and the objectives of all."""

    path: Path
    resumes: bool

    @classmethod
    def of(cls, budget: Budget, *about: Any) -> KeptRun:
        """The file of a run, which is named by all that the run depends on: `about`."""
        digest = hashlib.blake2b(digest_size=12)
        for name, value in list_numbers(about):
            array = np.ascontiguousarray(value)
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.data)
        path = Path(budget.folder, f"fit-{digest.hexdigest()}.npz")
        return cls(path, budget.resume)

    def save(self, parameters: Any, trace: list[float], prior_is_new: bool) -> None:
        """Keep where the run stands, if there is room for it."""
        try:
            with tempfile.NamedTemporaryFile(dir=self.path.parent, suffix=".npz", delete=False) as new:
                np.savez(new, trace=trace, prior_is_new=prior_is_new, **dict(list_numbers(parameters)))
            os.replace(new.name, self.path)
        except OSError as error:
            log.info("Where the fit stands could not be kept: %s", error)

    def load(self, start: Any, max_iter: int) -> tuple[Any, list[float], bool] | None:
        """What was kept last: parameters, objectives, and whether the prior is new; None to begin anew."""
        if not self.resumes or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as found:
                trace = found["trace"].tolist()
                kept = refill(start, "", found), trace, bool(found["prior_is_new"])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None
        if len(trace) > max_iter:
            return None
        log.info("Going on after iteration %d", len(trace))
        return kept


def list_numbers(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays and numbers of which parameters consist, by name."""
    if is_dataclass(value):
        for each in fields(value):
            yield from list_numbers(vars(value)[each.name], f"{name}/{each.name}")
    elif isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from list_numbers(part, f"{name}/{place}")
    elif isinstance(value, (int, float, np.ndarray)):
        yield name, value


def refill(like: Any, name: str, numbers: Mapping[str, Any]) -> Any:
    """Parameters such as these, with the numbers of other ones."""
    if is_dataclass(like) and not isinstance(like, type):
        named = {each.name: refill(vars(like)[each.name], f"{name}/{each.name}", numbers) for each in fields(like)}
        return replace(like, **named)
    if isinstance(like, tuple):
        parts = [refill(each, f"{name}/{place}", numbers) for place, each in enumerate(like)]
        return tuple(parts) if type(like) is tuple else type(like)(*parts)
    if name not in numbers:
        return like
    return type(like)(numbers[name]) if isinstance(like, (int, float)) else freeze(numbers[name])
