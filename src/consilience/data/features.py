"""Features of items: numbers that describe what an item is, matched to the items of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ..arguments import to_floats
from ..errors import DataWarning, InputError, first_line, listing, plural, warn
from .frames import is_table, open_frame, read_lists
from .item_priors import key_names, match_rows, read_numbers
from .responses import Responses
from .tables import Table

# Squares of features up to this size are numbers, also of single precision.
LARGEST = 1e15


@dataclass(frozen=True, eq=False)
class Features:
    """Features of some items.

    Attributes
    ----------
    rows : array or sparse array (n, D)
        The numbers, in single or double precision.
    item : int64 array (n,)
        The item that each row is about, ascending.
    """

    rows: Any
    item: NDArray[np.int64]

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])


def match_features(given: Any, r: Responses) -> Features:
    """Return features of the items of the answers.

    Parameters
    ----------
    given : array, sparse matrix or table
        An array or a matrix has a row for each item, in the order of the items. A table has a column item (or sequence
        and position), by which rows are matched, and its other columns hold numbers, or lists of numbers of one length.
        Items that the table leaves out have no features.
    r : Responses
        Whose items they are.
    """
    if is_table(given):
        table, lists = open_frame(given, "features"), read_lists(given)
        item, rows = match_rows(table, r, "features")
        found = _check_numbers(_read_rows(table, lists, key_names(table, r))[rows])
        order = np.argsort(item)
        _warn_of_missing(r, item)
        return Features(found[order], item[order])
    found = _check_numbers(_to_rows(given))
    if found.shape[0] != r.n_items:
        raise InputError(
            f"features have {plural(found.shape[0], 'row')}, and there are {plural(r.n_items, 'item')}.",
            "Give a row for each item, in the order of Responses.items.",
            f"Or a table with {'columns sequence and position' if r.sequences else 'a column item'}.",
            keyword="features",
        )
    return Features(found, np.arange(r.n_items))


def _warn_of_missing(r: Responses, item: NDArray[np.int64]) -> None:
    missing = np.ones(r.n_items, bool)
    missing[item] = False
    if missing.any():
        warn(
            DataWarning(
                f"{int(missing.sum()):,} of {plural(r.n_items, 'item')} have no features: "
                f"{listing(r.items[missing][:6].tolist())}. Their labels come from answers alone."
            )
        )


def _to_rows(given: Any) -> Any:
    """Return an array or a sparse matrix as rows of floats; single precision stays."""
    try:
        if hasattr(given, "check_format"):  # indices beyond the matrix would be followed
            given.check_format(full_check=True)
        if issparse(given):
            if np.iscomplexobj(given):
                raise ValueError("these are complex")
            rows = csr_array(given)
            return rows if rows.dtype == np.float32 else rows.astype(np.float64)
        array = np.asarray(given)
        return array if array.dtype == np.float32 else to_floats(given)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"features must be numbers; {first_line(error)}.",
            "Give an array, a sparse matrix, a table with a column item, or a .npy, .npz or .parquet file.",
            keyword="features",
        ) from error


def _check_numbers(rows: Any) -> Any:
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise InputError(
            f"features must have a row for each item, and at least one column. They have the shape {rows.shape}.",
            keyword="features",
        )
    values = rows.data if issparse(rows) else rows
    if not np.isfinite(values).all():
        raise InputError("features have missing or infinite entries.", "Fill them in first.", keyword="features")
    if values.size and abs(values).max() > LARGEST:
        raise InputError(f"features must not be larger than {LARGEST:g}.", "Scale them first.", keyword="features")
    return rows


def _read_rows(table: Table, lists: Mapping[str, list[Any]], keys: list[str]) -> Any:
    """Return all columns but the keys, side by side; a list of numbers is as many columns."""
    names = [name for name in table.names if name not in keys]
    if not names:
        raise InputError(
            f"{table.name} has no columns but {listing(keys)}.", "Add columns of numbers.", keyword="features"
        )
    parts = [_stack(lists[name], name) if name in lists else read_numbers(table, name)[:, None] for name in names]
    return parts[0] if len(parts) == 1 else np.hstack(parts)


def _stack(entries: list[Any], name: str) -> Any:
    """Return lists of numbers as rows."""
    try:
        return _to_rows(np.stack([np.asarray(entry) for entry in entries]))
    except ValueError as error:
        raise InputError(
            f"Column {name!r} of features must hold lists of as many numbers each; {first_line(error)}.",
            keyword="features",
        ) from error
