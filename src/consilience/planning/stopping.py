"""Items that are certain enough to stop paying for more answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..answers.columns import Column, to_column, to_values
from ..results.fusion import Labelled, Labels
from ..results.undecided import find_open


def list_stop_items(labelled: Labelled, least: float) -> dict[str, Column]:
    """Return the columns of `Model.stop_items`: items with at least this confidence, the most certain first."""
    found = [pick_certain(part, least) for part in labelled.parts()]
    columns = found[0] if len(found) == 1 else {name: join([each[name] for each in found]) for name in found[0]}
    certain = np.asarray(columns["confidence"])
    rows = np.argsort(-certain, kind="stable")
    columns = {name: column.take(rows) for name, column in columns.items()}
    return columns | {"expected_errors": to_column(np.cumsum(1.0 - certain[rows]))}


def pick_certain(labels: Labels, least: float) -> dict[str, Column]:
    """Return the items of a part that are certain enough, with their labels."""
    confidence = labels.confidence
    rows = np.flatnonzero(~find_open(confidence, least))
    keys = {name: column.take(rows) for name, column in labels.keys.items()}
    return keys | {"label": to_column(labels.values[rows]), "confidence": to_column(confidence[rows])}


def join(columns: list[Column]) -> Column:
    """Return columns of several parts as one."""
    if any(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate([to_values(column) for column in columns])
    return pa.chunked_array(columns).combine_chunks()
