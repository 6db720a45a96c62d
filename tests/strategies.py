"""What hypothesis draws in more than one test file: small crowds, as a long table and as a matrix."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"
    MIDDLE = "m"
    HUGE = "h"


class Tone(str, enum.Enum):  # noqa: UP042 - the older way, which prints differently
    WARM = "warm"
    COLD = "cold"
    MILD = "mild"
    GREY = "grey"


class Grade(enum.IntEnum):
    GOOD = 1
    FAIR = 2
    POOR = 3
    NONE = 4


# Each kind of label, in the order in which `Answers` sorts it.
LABELS: dict[str, list[Any]] = {
    "str": ["=1+1", "cat", "none", "🦉"],
    "int": [-7, 0, 3, 2**40],
    "bool": [False, True],
    "float": [-1.5, 0.0, 0.25, float("inf")],
    "bytes": [b"", b"a", b"b", b"\xff"],
    "enum": list(Size),
    "str enum": list(Tone),
    "int enum": list(Grade),
    "tuple": [("a", 1), ("a", 2), ("b",), ("b", 0)],
    "date": [datetime.date(2020, 1, day) for day in (1, 2, 3, 31)],
    "mixed": [2.5, 7, "7", ("x", 1)],
}


@dataclass(frozen=True)
class Crowd:
    """Answers of a few workers about a few items.

    Attributes
    ----------
    frame : dict of lists
        Columns item, worker, label (and weight, if asked for), one row per answer, by item and then by worker.
    matrix : array of shape (n_items, n_workers)
        The same answers as indices into `labels`; -1 is missing. Rows and columns may be empty, not all of them.
    labels : list
        What the numbers in `matrix` stand for, in the order of `Answers`. Each occurs.
    items, workers : list
        Names of the rows and columns of `matrix`. Workers are sorted.
    n_classes : int
        Number of labels.
    """

    frame: dict[str, list[Any]]
    matrix: NDArray[np.int64]
    labels: list[Any]
    items: list[Any]
    workers: list[Any]
    n_classes: int


@st.composite
def matrices(
    draw: st.DrawFn,
    max_items: int = 6,
    max_workers: int = 4,
    max_classes: int = 4,
    min_classes: int = 1,
    missing: bool = True,
) -> NDArray[np.int64]:
    """Draw F[item, worker] in 0..K-1, each of which occurs; -1 is missing unless `missing` is False."""
    n_items, n_workers = draw(st.integers(1, max_items)), draw(st.integers(1, max_workers))
    n_classes = draw(st.integers(min(min_classes, n_items * n_workers), min(max_classes, n_items * n_workers)))
    size = n_items * n_workers
    entries = np.array(draw(st.lists(st.integers(-1 if missing else 0, n_classes - 1), min_size=size, max_size=size)))
    places = draw(st.permutations(range(size)))[:n_classes]
    entries[places] = range(n_classes)
    return entries.astype(np.int64).reshape(n_items, n_workers)


@st.composite
def crowds(
    draw: st.DrawFn,
    max_items: int = 6,
    max_workers: int = 4,
    max_classes: int = 4,
    min_classes: int = 1,
    missing: bool = True,
    weights: bool = False,
    kinds: Sequence[str] = tuple(LABELS),
) -> Crowd:
    """Draw a `Crowd` with labels of one of `kinds` (see `LABELS`), and weights in (0, 1] if `weights`."""
    kind = draw(st.sampled_from([kind for kind in kinds if len(LABELS[kind]) >= min_classes]))
    max_classes = min(max_classes, len(LABELS[kind]))
    matrix = draw(matrices(max_items, max_workers, max_classes, min_classes, missing))
    n_classes = int(matrix.max()) + 1
    chosen = sorted(draw(st.permutations(range(len(LABELS[kind]))))[:n_classes])
    labels = [LABELS[kind][i] for i in chosen]
    items = draw(st.sampled_from([lambda i: i, lambda i: f"item {9 - i}", lambda i: ("doc", i)]))
    workers = draw(st.sampled_from([lambda m: 10 * m, lambda m: f"worker {m}"]))
    rows, columns = np.nonzero(matrix >= 0)
    frame = {
        "item": [items(i) for i in rows.tolist()],
        "worker": [workers(m) for m in columns.tolist()],
        "label": [labels[k] for k in matrix[rows, columns].tolist()],
    }
    if weights:
        weight = st.floats(0.01, 1.0) | st.just(1.0)
        frame["weight"] = draw(st.lists(weight, min_size=len(rows), max_size=len(rows)))
    return Crowd(
        frame,
        matrix,
        labels,
        [items(i) for i in range(matrix.shape[0])],
        [workers(m) for m in range(matrix.shape[1])],
        n_classes,
    )
