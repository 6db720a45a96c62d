"""Answers as tables again: one row per answer, or one row per item and one column per worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InputError, listing
from ..memory import NUMBER, require_memory
from .frames import build_frame
from .responses import Responses
from .vocabulary import Column, objects, to_column


def to_long(responses: Responses) -> Any:
    """Return a table with one row per answer: item (or sequence and position), worker, label, perhaps weight and gold.

    Items that nobody answered have no row.

    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> to_long(Responses.from_frame(answers)).to_pydict() == answers
    True
    """
    owner = responses.item_of_answer()
    columns = {name: column.take(owner) for name, column in _key_columns(responses).items()}
    columns["worker"] = to_column(responses.workers).take(responses.worker)
    columns["label"] = to_column(responses.labels).take(responses.label)
    if responses.weight is not None:
        columns["weight"] = to_column(responses.weight)
    return build_frame(columns, responses.backend)


def to_wide(responses: Responses) -> Any:
    """Return a table with one row per item and one column per worker, empty where a worker gave no answer.

    >>> answers = {"item": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]}
    >>> to_wide(Responses.from_frame(answers)).to_pydict()
    {'item': [1, 2], 'ann': ['cat', 'cat'], 'bob': ['dog', None]}
    """
    columns = _key_columns(responses)
    names = [str(worker) for worker in responses.workers.tolist()]
    taken = [name for name in names if name in columns]
    if taken or len(set(names)) < len(names):
        raise InputError(
            f"Workers would share a column with something else: {listing(taken or names)}.",
            "Rename them, or write one row per answer.",
        )
    require_memory(NUMBER * responses.n_items * len(names), f"A table of {responses.n_items:,} x {len(names):,} cells")
    codes = np.full((len(names), responses.n_items), -1, np.int64)
    owner = responses.item_of_answer()
    codes[responses.worker, owner] = responses.label
    if np.count_nonzero(codes >= 0) < responses.n_responses:
        raise InputError(
            "Some answers are spread over several labels, and a cell holds one.", "Write one row per answer."
        )
    for name, row in zip(names, codes, strict=True):
        columns[name] = _pick(to_column(responses.labels), row)
    return build_frame(columns, responses.backend)


def _key_columns(responses: Responses) -> dict[str, Column]:
    """Return what identifies the items, and their known labels if there are any."""
    columns = responses.key_columns()
    if responses.gold:
        columns["gold"] = to_column([responses.gold.get(item) for item in responses.items.tolist()])
    return columns


def _pick(labels: Column, codes: NDArray[np.int64]) -> Column:
    """Return the labels of some codes, missing where the code is -1."""
    if isinstance(labels, np.ndarray):
        return objects([None if code < 0 else labels[code] for code in codes.tolist()])
    return labels.take(pa.array(codes, mask=codes < 0))


# What answers can be written as, by the names that users give them.
LAYOUTS: dict[str, Callable[[Responses], Any]] = {"long": to_long, "wide": to_wide}
