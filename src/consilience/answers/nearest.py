"""Nearest neighbours, exactly: by a k-d tree for few features, else by comparing everything with everything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from ..arguments import to_floats
from ..errors import InputError, first_line
from ..kernels.types import Floats

# Up to this many features a tree finds neighbours faster than comparing everything with everything.
TREE_FEATURES = 15
# The square of the distance between features up to this size is a number.
LARGEST = 1e150
# Similarities computed at a time when everything is compared with everything.
CHUNK_CELLS = 20_000_000


def feature_rows(features: Any, metric: str) -> Any:
    """Return features as rows of floats, scaled to length 1 for cosine distance."""
    rows: Any
    try:
        if hasattr(features, "check_format"):  # indices beyond the matrix would be followed
            features.check_format(full_check=True)
        if issparse(features) and np.iscomplexobj(features):
            raise ValueError("these are complex")
        rows = csr_array(features, dtype=np.float64) if issparse(features) else to_floats(features)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers; {first_line(error)}.") from error
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise InputError(
            "features must have one row per item, at least two, and one column per feature, at least one; got an array "
            f"of shape {rows.shape}."
        )
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise InputError("features have missing or infinite entries. Fill them in first.")
    if abs(rows).max() > LARGEST:
        raise InputError(f"features must not be larger than {LARGEST:g}: their squares are beyond all numbers.")
    if metric == "cosine":
        length = np.sqrt(
            np.asarray(rows.multiply(rows).sum(axis=1)).ravel() if issparse(rows) else (rows**2).sum(axis=1)
        )
        scale = 1 / np.where(length > 0, length, 1.0)
        rows = rows.multiply(scale[:, None]).tocsr() if issparse(rows) else rows * scale[:, None]
        if (length == 0).any():
            # A row of zeros is like no other: it gets a direction of its own, or it would be near to all.
            apart = (length == 0).astype(np.float64)[:, None]
            rows = hstack([rows, csr_array(apart)]).tocsr() if issparse(rows) else np.hstack([rows, apart])
    return rows


def nearest_by_tree(rows: Floats, k: int) -> NDArray[np.int64]:
    """Return the k nearest rows of each row, by a k-d tree."""
    from scipy.spatial import cKDTree

    _, found = cKDTree(rows).query(rows, k=k + 1, workers=-1)
    # An item is its own nearest neighbour, but not always first among duplicates: drop it wherever it stands.
    own = found == np.arange(len(rows))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own], np.int64).reshape(len(rows), k)


def nearest_by_comparison(rows: Any, k: int) -> NDArray[np.int64]:
    """Return the k nearest rows of each row, by |x|^2 - 2 x y + |y|^2, nearest first."""
    n_items = rows.shape[0]
    if not issparse(rows):
        rows = rows - rows.mean(axis=0)  # small numbers, small errors
    squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel() if issparse(rows) else (rows**2).sum(axis=1)
    chunk = max(1, CHUNK_CELLS // n_items)
    nearest = np.zeros((n_items, k), np.int64)
    for start in range(0, n_items, chunk):
        part = rows[start : start + chunk]
        dots = (part @ rows.T).toarray() if issparse(rows) else part @ rows.T
        distance = squares[None, :] - 2 * dots
        here = np.arange(len(distance))
        distance[here, start + here] = np.inf
        candidates = np.argpartition(distance, k - 1, axis=1)[:, :k]
        order = np.lexsort((candidates, np.take_along_axis(distance, candidates, axis=1)), axis=1)
        nearest[start : start + chunk] = np.take_along_axis(candidates, order, axis=1)
    return nearest
