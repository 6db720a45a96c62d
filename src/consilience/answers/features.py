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
from ..memory import NUMBER, require_memory
from .frames import is_table, read_lists
from .item_tables import KEY_REMEDY, key_names, match_rows, open_item_table, read_numbers, reset_index
from .items import Sequences, encode_items
from .responses import Responses
from .tables import Table
from .vocabulary import Values

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
    names : list of str or None
        The columns of the table that they came in.
    """

    rows: Any
    item: NDArray[np.int64]
    names: list[str] | None = None

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    def select(self, names: list[str] | None, n_columns: int) -> Any:
        """Return the rows with the columns of a fit, which had these names; without names, with as many columns."""
        if names is not None and self.names is not None:
            missing = [name for name in names if name not in self.names]
            if missing:
                raise InputError(
                    f"The model was fitted with the features {listing(names)}, and these have no column "
                    f"{listing(missing)}.",
                    keyword="features",
                )
            place = {name: number for number, name in enumerate(self.names)}
            return self.rows[:, [place[name] for name in names]]
        if self.n_columns != n_columns:
            raise InputError(
                f"The model was fitted with {plural(n_columns, 'feature')}, and these are {self.n_columns:,}.",
                keyword="features",
            )
        return self.rows


def list_items(given: Any, in_sequences: bool) -> Values | Sequences:
    """Return what identifies the items that features are about; without a table these are 0, 1, 2, ..."""
    if is_table(given):
        table = open_item_table(given, "features")
        roles = ("sequence", "position") if in_sequences else ("item",)
        return encode_items([table.values(table.need(role), KEY_REMEDY) for role in roles], None, "features")[1]
    if in_sequences:
        raise InputError(
            "features must say which sequence and position each row is about.",
            "Give a table with columns sequence and position.",
            keyword="features",
        )
    return np.arange(len(_to_rows(given)) if not issparse(given) else given.shape[0])


def match_features(given: Any, r: Responses, with_gaps: bool = False) -> Features:
    """Return features of the items of the answers.

    Parameters
    ----------
    given : array, sparse matrix or table
        An array or a matrix has a row for each item, in the order of the items. A table has a column item (or sequence
        and position), by which rows are matched, and its other columns hold numbers, or lists of numbers of one length.
        Items that the table leaves out have no features.
    r : Responses
        Whose items they are.
    with_gaps : bool
        Whether numbers may be missing.
    """
    if is_table(given):
        table, lists = open_item_table(given, "features"), read_lists(reset_index(given))
        item, rows = match_rows(table, r, "features")
        found, names = _read_rows(table, lists, key_names(table, r))
        order = np.argsort(item)
        item = item[order]
        found = _check_numbers(found[rows[order]], r, item, names, with_gaps)
        _warn_of_missing(r, item)
        return Features(found, item, names)
    item = np.arange(r.n_items)
    found = _to_rows(given)
    if found.ndim == 2 and found.shape[0] != r.n_items:
        raise InputError(
            f"There are {plural(found.shape[0], 'row')} of features and {plural(r.n_items, 'item')}.",
            f"Give a row for each item, in the order of the items, which begin with {listing(r.items[:3].tolist())}.",
            f"Or give a table with {'columns sequence and position' if r.sequences else 'a column item'}.",
            keyword="features",
        )
    return Features(_check_numbers(found, r, item, None, with_gaps), item)


def _warn_of_missing(r: Responses, item: NDArray[np.int64]) -> None:
    missing = np.ones(r.n_items, bool)
    missing[item] = False
    if missing.any():
        warn(
            DataWarning(
                f"{int(missing.sum()):,} of {plural(r.n_items, 'item')} have no features: "
                f"{listing(r.items[missing].tolist())}. Their labels come from the answers alone."
            )
        )


def _to_rows(given: Any) -> Any:
    """Return an array or a sparse matrix as rows of floats, nan where they are masked; single precision stays."""
    try:
        if hasattr(given, "check_format"):  # indices beyond the matrix would be followed
            given.check_format(full_check=True)
        if issparse(given):
            if np.iscomplexobj(given):
                raise ValueError("these are complex")
            require_memory(4 * NUMBER * given.shape[1], f"features have {given.shape[1]:,} columns", keyword="features")
            rows = csr_array(given)
            return rows if rows.dtype == np.float32 else rows.astype(np.float64)
        array = given if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
        return np.ma.filled(array, np.nan) if array.dtype == np.float32 else to_floats(array)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"features must be numbers; {first_line(error)}.",
            "Give an array, a sparse matrix, a table with a column item, or a .npy, .npz or .parquet file.",
            keyword="features",
        ) from error


def _check_numbers(rows: Any, r: Responses, item: NDArray[np.int64], names: list[str] | None, with_gaps: bool) -> Any:
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise InputError(
            f"features must have a row for each item, and at least one column. They have the shape {rows.shape}.",
            keyword="features",
        )
    values = rows.data if issparse(rows) else rows
    bad = np.isinf(values) if with_gaps else ~np.isfinite(values)
    if bad.any():
        raise _gap_error(rows, bad, r, item, names)
    if values.size and np.nanmax(abs(values)) > LARGEST:
        raise InputError(f"features must not be larger than {LARGEST:g}.", "Scale them first.", keyword="features")
    return rows


def _gap_error(
    rows: Any, bad: NDArray[np.bool_], r: Responses, item: NDArray[np.int64], names: list[str] | None
) -> InputError:
    """Return the error for entries that are missing or infinite, which says where the first one is."""
    at = int(np.flatnonzero(bad.ravel())[0])
    if issparse(rows):
        row, column = int(np.searchsorted(rows.indptr, at, side="right")) - 1, int(rows.indices[at])
    else:
        row, column = divmod(at, rows.shape[1])
    where = f"column {column}" if names is None else f"column {names[column]!r}"
    return InputError(
        f"features have missing or infinite numbers ({int(bad.sum()):,}). The first one is in {where}, of item "
        f"{listing(r.items[item[row : row + 1]].tolist())}.",
        "Fill them in, or give a table without these items: items may be without features.",
        keyword="features",
    )


def _read_rows(table: Table, lists: Mapping[str, Any], keys: list[str]) -> tuple[Any, list[str]]:
    """Return all columns but the keys, side by side, and their names; a list of numbers is as many columns."""
    names = [name for name in table.names if name not in keys]
    if not names:
        raise InputError(
            f"{table.name} has no columns but {listing(keys)}.", "Add columns of numbers.", keyword="features"
        )
    parts, labels = [], list[str]()
    for name in names:
        part = _stack(lists[name], name) if name in lists else read_numbers(table, name)[:, None]
        parts.append(part)
        labels += [f"{name}[{number}]" for number in range(part.shape[1])] if name in lists else [str(name)]
    return parts[0] if len(parts) == 1 else np.hstack(parts), labels


def _stack(entries: Any, name: str) -> Any:
    """Return lists of numbers as rows."""
    if isinstance(entries, np.ndarray):
        return _to_rows(entries)
    lengths = {None if entry is None else len(entry) for entry in entries}
    if len(lengths) > 1:
        found = sorted(length for length in lengths if length is not None)
        missing = ", and some are missing" if None in lengths else ""
        raise InputError(
            f"Column {name!r} of features must hold lists of one length. Found lists of {listing(found)} numbers"
            f"{missing}.",
            keyword="features",
        )
    return _to_rows(np.stack([np.asarray(entry) for entry in entries]))
