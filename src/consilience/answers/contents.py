"""What is known of items beside their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import InputError, listing, plural
from .columns import Indices


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
