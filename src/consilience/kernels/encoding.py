"""Codes of large columns: which of the distinct values, in order of first appearance, each entry is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compile import kernel
from .types import Codes, Integers, read_only

# A table of all integers in a range is made if the range is at most so many times as long as the column.
NARROW = 2


def is_narrow(values: NDArray[np.int64]) -> bool:
    """Tell whether integers are in a range that is not much longer than the column."""
    return int(values.max()) - int(values.min()) < NARROW * values.size


def encode_narrow(values: NDArray[np.int64]) -> tuple[Codes, Integers]:
    """Return the code of each integer, and the row in which each distinct one comes first."""
    low, high = int(values.min()), int(values.max())
    codes, rows = np.empty(values.size, np.int32), np.empty(min(values.size, high - low + 1), np.int64)
    n_distinct = number_narrow(read_only(values), low, np.full(high - low + 1, -1, np.int32), codes, rows)
    return codes, rows[:n_distinct].copy()


@kernel
def number_narrow(values: Integers, low: int, code_of: Codes, codes: Codes, rows: Integers) -> int:
    """Write codes and first rows, and return how many distinct values there are; `code_of` is -1 at first."""
    n_distinct = 0
    for i in range(values.size):
        place = values[i] - low
        code = code_of[place]
        if code < 0:
            code = n_distinct
            code_of[place] = code
            rows[code] = i
            n_distinct += 1
        codes[i] = code
    return n_distinct
