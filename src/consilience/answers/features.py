"""Features: numbers that describe what each item is, matched to the items of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, listing, plural, warn_of
from .columns import Indices, Values
from .keys import Sequences, encode_items, read_keys
from .matching import key_names, match_rows, open_item_table
from .tables import is_table, read_figures

if TYPE_CHECKING:
    from .answers import Answers


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
    item: Indices
    names: list[str] | None = None

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    def select(self, names: list[str] | None, n_columns: int) -> Any:
        """The rows with the columns of a fit, which had these names; without names, with as many columns."""
        columns: Any = slice(None)
        problem = (
            "" if self.n_columns == n_columns else f"{plural(n_columns, 'feature')}, and these are {self.n_columns}"
        )
        if names is not None and self.names is not None:
            missing = [name for name in names if name not in self.names]
            problem = f"the features {listing(names)}, and these have no column {listing(missing)}" if missing else ""
            columns = [self.names.index(name) for name in names if name not in missing]
        if problem:
            raise InputError(f"The model was fitted with {problem}.", keyword="features")
        return self.rows[:, columns]


def list_items(given: Any, in_sequences: bool) -> Values | Sequences:
    """What identifies the items that features are about; without a table these are 0, 1, 2, ..."""
    if is_table(given):
        return encode_items(read_keys(open_item_table(given, "features"), 1 + in_sequences), None, "features")[1]
    if in_sequences:
        raise InputError(
            "features must say which sequence and position each row is about.",
            "Give a table with columns sequence and position.",
            keyword="features",
        )
    from .graph import to_rows

    return np.arange(to_rows(given).shape[0])


def match_features(given: object, r: Answers) -> Features:
    """Features of the items of the answers.

    Parameters
    ----------
    given : array, sparse matrix or table
        An array or a matrix has a row for each item, in the order of the items. A table has a column item (or sequence
        and position), by which rows are matched, and its other columns hold numbers, or lists of numbers of one length.
        Items that the table leaves out have no features.
    r : Answers
        Whose items they are.
    """
    from .graph import to_rows

    if not is_table(given):
        rows = to_rows(given)
        if rows.shape[0] != r.n_items:
            raise InputError(
                f"features must have a row for each of the {plural(r.n_items, 'item')}, in the order of the items, "
                f"which begin with {listing(r.items[:3].tolist())}. They have the shape {rows.shape}.",
                f"Or give a table with {'columns sequence and position' if r.sequences else 'a column item'}.",
                keyword="features",
            )
        return Features(rows, np.arange(r.n_items))
    table = open_item_table(given, "features")
    item, chosen = match_rows(table, r)
    keys, labels, parts = key_names(table, r), list[str](), list[Any]()
    for name in table.names:
        if name in keys:
            continue
        cells = table.cells(name)
        if isinstance(cells, pa.Array) and not pa.types.is_struct(cells.type):
            numbers = cells.flatten()
            width = len(numbers) // max(len(cells), 1)
            is_even = pc.all(pc.equal(pc.list_value_length(cells), width)).as_py()
            if width and is_even and not cells.null_count and not numbers.null_count:
                cells = numbers.to_numpy(zero_copy_only=False).reshape(-1, width)
            else:
                cells = cells.to_pylist()
        if cells is None or not all(isinstance(cell, (list, tuple, np.ndarray)) for cell in cells[:3]):
            parts.append(read_figures(table, name)[:, None])
            labels.append(str(name))
            continue
        try:
            parts.append(cells if isinstance(cells, np.ndarray) else np.stack(list(map(np.asarray, cells))))
        except ValueError as error:
            problem = f"Column {name!r} of features must hold lists of numbers of one length, and none is missing."
            raise InputError(problem, keyword="features") from error
        labels += [f"{name}[{number}]" for number in range(parts[-1].shape[1])]
    if not parts:
        problem = f"{table.name} has no columns but {listing(keys)}."
        raise InputError(problem, "Add columns of numbers.", keyword="features")
    left_out = np.setdiff1d(np.arange(r.n_items), item)
    if len(left_out):
        warn_of(
            f"{len(left_out):,} of {plural(r.n_items, 'item')} have no features: "
            f"{listing(r.items[left_out].tolist())}. Their labels come from the answers alone."
        )
    return Features(to_rows(np.hstack(parts)[chosen], labels, r.items[item]), item, labels)
