"""Odd objects, to be given in the place of good ones: of any type, or the good ones in another form."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

import consilience as cs

Rng = np.random.Generator


class Rude:
    """An object that cannot even be shown."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 0.5, -0.0, 1.5, -2.5, float("nan"), float("inf"), -float("inf")),
    *(2**31, 2**63, -(2**63), 2**64, 10**400, 1e308, 5e-324, 1j, complex("nan"), "", "x", "learn", "1", "nan", "\0"),
    *("\ud800", "\u202e", "label", "item", "x" * 5000, "{label}", "*", b"", b"label", b"\xff", bytearray(b"x"), ...),
    *(np.float32(0.5), np.int8(-1), np.uint64(2**64 - 1), np.bool_(True), np.float64("nan"), np.str_("label")),
    *(
        np.datetime64("NaT"),
        np.datetime64("2020-01-01"),
        np.timedelta64(1, "D"),
        np.array(1),
        np.array("x"),
        np.ma.masked,
    ),
    *(
        pd.NA,
        pd.NaT,
        pd.Timestamp("2020-01-01"),
        decimal.Decimal("0.5"),
        decimal.Decimal("NaN"),
        fractions.Fraction(1, 2),
    ),
    *(datetime.date(2020, 1, 1), Colour.RED, int, cs, cs.DawidSkene, lambda *_: None, Rude(), object(), slice(1)),
    *(pa.scalar(1), pa.scalar(None), Path("no such file"), Path("."), "no such file.csv", range(0), memoryview(b"ab")),
]
CONTAINERS: list[Callable[[], Any]] = [
    list,
    tuple,
    dict,
    set,
    lambda: [[]],
    lambda: [None],
    lambda: [1, "a", None],
    lambda: [[1, 2], [3]],
    lambda: [float("nan")] * 3,
    lambda: {1, 2},
    lambda: {"a": 1},
    lambda: {"item": [1, 2], "label": ["x"]},
    lambda: {1: 2, "a": None},
    lambda: iter([1, 2]),
    lambda: (i for i in range(3)),
    lambda: ["\ud800", "b"],
    lambda: [Rude(), Rude()],
    lambda: [{}, {}],
    lambda: [(0, 1), (1, 2)],
    lambda: np.array([]),
    lambda: np.zeros((0, 3)),
    lambda: np.zeros((2, 0)),
    lambda: np.zeros((2, 2, 2, 2)),
    lambda: np.array([None, 1], dtype=object),
    lambda: np.array([1j, 2j]),
    lambda: np.array(["a", "b"]),
    lambda: np.array([b"a", b"b"]),
    lambda: np.array(["2020", "NaT"], "M8[D]"),
    lambda: np.array([1, 2], "m8[ns]"),
    lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]),
    lambda: np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    lambda: np.array([10**30, 1], dtype=object),
    lambda: np.array([1, 2], ">i8"),
    lambda: np.array([1, 2], np.longdouble),
    lambda: sparse.csr_array(np.eye(2)),
    lambda: pd.Series([1, None], dtype="Int64"),
    lambda: pd.Series([], dtype=object),
    lambda: pd.Series(["a", "b"], dtype="category"),
    lambda: pd.Series([1, 2], index=pd.MultiIndex.from_tuples([(0, 0), (0, 1)])),
    lambda: pd.Index([1, 2]),
    lambda: pd.interval_range(0, 3),
    lambda: pd.DataFrame(),
    lambda: pd.DataFrame({"a": [1]}),
    lambda: pd.DataFrame([[1, 2], [3, 4]], columns=["item", "item"]),
    lambda: pd.DataFrame([[1, 2], [3, 4]], columns=pd.MultiIndex.from_tuples([("item", 1), ("label", 2)])),
    lambda: pl.DataFrame(),
    lambda: pl.Series("a", [[1], [2]]),
    lambda: pl.LazyFrame({"item": [1], "label": ["x"]}),
    lambda: pa.table({"item": [1, 2]}),
    lambda: pa.array([[1], [2]]),
    lambda: pa.chunked_array([[1], [2]]),
    lambda: nx.path_graph(3),
    lambda: nx.Graph(),
    lambda: cs.MajorityVote(),
    lambda: cs.Graph.from_edges([0], [1]),
    lambda: cs.Answers.from_matrix([[0, 1]]),
    lambda: cs.engines.Threads(1),
]
# Numbers that ask for more time or memory than a test has: they are not wrong.
HUGE = {
    "max_iter",
    "n_init",
    "n_threads",
    "n_items",
    "n_workers",
    "n_classes",
    "n_sequences",
    "length",
    "shape",
    "degree",
    "n_draws",
    "topics",
    "n",
}


def draw_odd(rng: Rng, name: str, value: Any) -> Any:
    """Return something odd in the place of an argument: often the argument itself, changed."""
    if rng.random() < 0.6 and hasattr(value, "__len__") and not isinstance(value, str):
        return change_table(rng, value) if isinstance(value, dict) else change_array(rng, value)
    if rng.random() < 0.35:
        return CONTAINERS[rng.integers(len(CONTAINERS))]()
    odd = SCALARS[rng.integers(len(SCALARS))]
    if name == "callback" and callable(odd):
        return 0  # what a function does with its arguments is not the package's affair
    if name in HUGE and isinstance(odd, (int, float, np.number)) and odd > 1000:
        return -1
    return odd


def change_array(rng: Rng, value: Any) -> Any:
    """Return values in another form, or others of the same form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = to_array(value.items if isinstance(value, cs.Graph) else value)
        flat = array.ravel().tolist()
        numeric = (
            array.astype(float) if array.dtype.kind in "biuf" else np.arange(float(array.size)).reshape(array.shape)
        )
        spoilt = numeric.copy()
        if spoilt.size:
            spoilt.flat[rng.integers(spoilt.size)] = rng.choice([np.nan, np.inf, -1, 1e308, -1e308, 1e-320, 2.0, 0.5])
    ways: list[Callable[[], Any]] = [
        lambda: array[:-1],
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.T,
        lambda: array[:0],
        lambda: array.ravel(),
        lambda: array.astype(str),
        lambda: array.astype(object),
        lambda: spoilt,
        lambda: spoilt,
        lambda: spoilt.tolist(),
        lambda: numeric.astype("f2"),
        lambda: numeric.astype(">f8"),
        lambda: numeric.astype(complex),
        lambda: numeric > 0,
        lambda: np.asfortranarray(numeric),
        lambda: np.ma.array(array, mask=rng.random(array.shape) < 0.5),
        lambda: array.tolist(),
        lambda: tuple(map(tuple, array)) if array.ndim == 2 else tuple(flat),
        lambda: set(flat),
        lambda: frozenset(flat),
        lambda: iter(flat),
        lambda: (entry for entry in flat),
        lambda: dict.fromkeys(flat, 1),
        lambda: [*flat[:-1], None],
        lambda: [*flat[:-1], "�"],
        lambda: [*flat[:-1], [1]],
        lambda: flat[:1] * len(flat),
        lambda: [[entry] * i for i, entry in enumerate(flat)],
        lambda: sparse.coo_array(numeric) if numeric.ndim == 2 else numeric,
        lambda: np.matrix(numeric) if numeric.ndim == 2 else numeric,
        lambda: pd.Series(flat),
        lambda: pd.Series(flat, index=flat[::-1]),
        lambda: pd.Series(pd.Categorical(flat)),
        lambda: pd.Categorical(flat),
        lambda: pd.array(flat),
        lambda: pd.array([*flat[:-1], None]),
        lambda: pd.Series(flat).convert_dtypes(dtype_backend="pyarrow"),
        lambda: pd.DataFrame(array),
        lambda: pl.Series(flat),
        lambda: pl.Series(flat).cast(pl.String).cast(pl.Categorical),
        lambda: pa.array(flat),
        lambda: pa.array(flat).dictionary_encode(),
        lambda: memoryview(np.ascontiguousarray(numeric)),
        lambda: str(flat),
    ]
    return attempt(ways[rng.integers(len(ways))], array)


def to_array(value: Any) -> np.ndarray:
    """Return values as an array; lists of different lengths are objects."""
    try:
        return np.asarray(value)
    except ValueError:
        array = np.empty(len(value), dtype=object)
        array[:] = list(value)
        return array


def change_table(rng: Rng, table: dict[Any, Any]) -> Any:
    """Return a table (or a dict of known labels) as one of another library, or with one column changed."""
    if not all(hasattr(column, "__len__") and not isinstance(column, str) for column in table.values()):
        return change_dict(rng, table)
    if not table or len({len(column) for column in table.values()}) > 1:
        return change_dict(rng, table)  # no columns, but what is said of each item or question
    name = list(table)[rng.integers(len(table))]
    if rng.random() < 0.5:
        changed = change_array(rng, table[name])
        ways: list[Callable[[], Any]] = [
            lambda: table | {name: changed},
            lambda: pd.DataFrame(table | {name: changed}),
            lambda: pl.DataFrame(table | {name: changed}),
            lambda: pa.table(table | {name: changed}),
        ]
        return attempt(ways[rng.integers(len(ways))], table | {name: changed})
    frame = pd.DataFrame(table)
    others: list[Callable[[], Any]] = [
        lambda: frame,
        lambda: frame.convert_dtypes(),
        lambda: frame.convert_dtypes(dtype_backend="pyarrow"),
        lambda: frame.astype("category"),
        lambda: frame.astype("string"),
        lambda: frame.set_index(name),
        lambda: frame.iloc[:0],
        lambda: frame[[name]],
        lambda: frame[[name, *frame.columns]],
        lambda: frame.rename(columns={name: 7}),
        lambda: frame.rename(columns={name: None}),
        lambda: frame.rename(columns={name: ("a", "b")}),
        lambda: frame.to_numpy(),
        lambda: frame.to_dict("records"),
        lambda: frame.to_records(),
        lambda: frame.groupby(name),
        lambda: pl.DataFrame(table).lazy(),
        lambda: pl.DataFrame(table).select(pl.struct(pl.all())),
        lambda: pl.DataFrame(table).with_columns(pl.col(name).cast(pl.Object)),
        lambda: pa.table(table).to_batches()[0],
        lambda: pa.table(table).to_reader(),
        lambda: pa.Table.from_arrays([pa.array(c) for c in table.values()], names=["item"] * len(table)),
        lambda: {key: column for key, column in table.items() if key != name},
        lambda: table | {name: list(table[name])[:-1]},
        lambda: table | {name: None},
        lambda: table | {name: 3},
        lambda: table | {name: "text"},
        lambda: table | {None: table[name], 7: table[name]},
        lambda: list(table.items()),
    ]
    return attempt(others[rng.integers(len(others))], table)


def change_dict(rng: Rng, known: dict[Any, Any]) -> Any:
    key = next(iter(known)) if known else 0
    odd = SCALARS[rng.integers(len(SCALARS))]
    ways: list[Callable[[], Any]] = [
        lambda: known | {key: odd},
        lambda: known | {odd: known.get(key)},
        lambda: {odd: odd},
        lambda: dict.fromkeys(known, odd),
        lambda: list(known.items()),
        lambda: pd.Series(known),
        lambda: pd.Series(known).astype("category"),
        lambda: pl.Series(list(known.values())),
        lambda: pd.DataFrame({"item": list(known), "label": list(known.values())}),
        lambda: {"item": list(known), "label": list(known.values())[:-1]},
        lambda: {"item": list(known), "gold": [None] * len(known)},
    ]
    return attempt(ways[rng.integers(len(ways))], known)


def attempt(make: Callable[[], Any], otherwise: Any) -> Any:
    """Return what is made; a library may refuse what is asked of it here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make()
        except Exception:
            return otherwise
