"""The input boundary: tables of every library, matrices and soft votes, against slow twins and in bad shape."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import random
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience import Answers
from consilience.answers.columns import (
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    lookup,
    to_column,
)
from consilience.answers.layouts import LAYOUTS
from consilience.answers.tables import build_frame
from consilience.errors import InputError, ParameterError
from effort import examples
from strategies import LABELS, Grade, Size, Tone, crowds

LIBRARIES = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}
TABLE = {
    "item": ["i2", "i1", "i2", "i1", "i3"],
    "worker": ["bo", "bo", "al", "cy", "al"],
    "label": ["no", "yes", "yes", "yes", "maybe"],
}
SEQUENCES = {
    "sequence": ["t", "s", "t", "s", "t"],
    "position": [10, 0, 2, 1, 2],
    "worker": ["bo", "bo", "al", "al", "bo"],
    "label": ["O", "B", "B", "I", "O"],
}
ONE = {"item": [1], "worker": ["w"], "label": ["a"]}

every_library = pytest.mark.parametrize("library", LIBRARIES)
quickly = examples(60)


def read(table, library="dict", **options):
    return Answers.from_frame(LIBRARIES[library](table), **options)


def with_labels(labels):
    return {"item": list(range(len(labels))), "worker": ["w"] * len(labels), "label": labels}


def labels_of(column, frame=dict):
    return Answers.from_frame(frame(with_labels(column))).labels.tolist()


def message(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def rows_of(r):
    """Return the answers as (item, worker, label, weight), in the order of the arrays."""
    weights = np.ones(r.n_responses) if r.weight is None else r.weight
    items = [r.items.tolist()[i] for i in r.item_of_answer().tolist()]
    workers = [r.workers.tolist()[m] for m in r.worker.tolist()]
    return list(zip(items, workers, [r.labels.tolist()[k] for k in r.label.tolist()], weights.tolist(), strict=True))


def rows_in(table):
    n = len(table["item"])
    return list(zip(table["item"], table["worker"], table["label"], table.get("weight", [1.0] * n), strict=True))


def assert_same(left, right):
    assert left.items.tolist() == right.items.tolist()
    assert left.workers.tolist() == right.workers.tolist()
    assert left.labels.tolist() == right.labels.tolist()
    assert left.classes.tolist() == right.classes.tolist()
    assert rows_of(left) == rows_of(right)


def assert_back(values, expected):
    """The same values, and of the same Python types."""
    assert values == expected
    assert list(map(type, values)) == list(map(type, expected))


# Tables of every library


@every_library
def test_every_library_gives_the_same(library):
    r = read(TABLE, library)
    assert r.items.tolist() == ["i2", "i1", "i3"]
    assert r.workers.tolist() == ["al", "bo", "cy"]
    assert r.labels.tolist() == r.classes.tolist() == ["maybe", "no", "yes"]
    assert r.offsets.tolist() == [0, 2, 4, 5]
    assert r.worker.tolist() == [1, 0, 1, 2, 0]
    assert r.label.tolist() == [1, 2, 2, 2, 0]
    assert r.weight is None
    assert (r.n_items, r.n_workers, r.n_classes, r.n_labels, r.n_responses) == (3, 3, 3, 3, 5)


@every_library
def test_every_library_gives_the_same_sequences(library):
    r = read(SEQUENCES, library)
    assert r.items.tolist() == [("t", 2), ("t", 10), ("s", 0), ("s", 1)]
    assert r.sequences.ids.tolist() == ["t", "s"]
    assert r.sequences.offsets.tolist() == [0, 2, 4]
    assert rows_of(r) == [
        (("t", 2), "al", "B", 1.0),
        (("t", 2), "bo", "O", 1.0),
        (("t", 10), "bo", "O", 1.0),
        (("s", 0), "bo", "B", 1.0),
        (("s", 1), "al", "I", 1.0),
    ]


@quickly
@given(crowds(weights=True, kinds=["str", "int", "bool", "float", "bytes", "date"]), st.sampled_from([*LIBRARIES]))
def test_any_crowd_in_any_library(crowd, library):
    table = dict(crowd.frame)
    if isinstance(crowd.items[0], tuple):
        table["item"] = [str(item) for item in table["item"]]  # frames have no tuples
    r = read(table, library, weight="weight")
    assert rows_of(r) == rows_in(table)
    assert_back(r.labels.tolist(), crowd.labels)


def test_arrays_are_read_only_and_of_fixed_types():
    r = read({**TABLE, "weight": [0.5] * 5}, weight="weight")
    for each in (r, r.keep(np.arange(5) > 1)):
        arrays = (each.offsets, each.worker, each.label, each.weight)
        assert [array.dtype for array in arrays] == [np.int64, np.int32, np.int32, np.float64]
        assert not any(array.flags.writeable for array in arrays)
        assert all(array.flags.c_contiguous for array in arrays)


# Names of columns


@pytest.mark.parametrize("item", ["item", "task", "question", "id", "Item", "TASK"])
@pytest.mark.parametrize(("worker", "label"), [("annotator", "answer"), ("Judge", "Response"), ("labeler", "LABEL")])
def test_aliases(item, worker, label):
    names = {"item": item, "worker": worker, "label": label}
    assert_same(read({"extra": range(5), **{names[role]: values for role, values in TABLE.items()}}), read(TABLE))


def test_explicit_names_win():
    table = {**TABLE, "doc": list("vwxyz"), "who": [1, 2, 3, 4, 5], "says": [0, 1, 0, 1, 0]}
    r = read(table, item="doc", worker="who", label="says")
    assert rows_of(r) == [("v", 1, 0, 1), ("w", 2, 1, 1), ("x", 3, 0, 1), ("y", 4, 1, 1), ("z", 5, 0, 1)]


@pytest.mark.parametrize(
    ("table", "options", "expected"),
    [
        ({"itme": [1], "worker": [1], "label": [1]}, {}, "no column for the item .* Did you mean item='itme'"),
        ({"item": [1], "Annotater": [1], "label": [1]}, {}, "for the worker .* Did you mean worker='Annotater'"),
        (
            {"item": [1], "worker": [1], "x": [1]},
            {},
            "for the label .* It has 'item', 'worker', 'x'. Name it with label=",
        ),
        (ONE, {"item": "itme"}, "no column 'itme'. .* Did you mean item='item'"),
        (ONE, {"label": "LABEL"}, "no column 'LABEL'. .* Did you mean label='label'"),
        (ONE, {"weight": "confidence"}, "no column 'confidence'"),
        (ONE, {"worker": ""}, "no column ''"),
        (ONE, {"sequence": "item"}, "no column for the position"),
        (ONE, {"position": "item"}, "no column for the sequence"),
        ({"sequence": [1], "worker": [1], "label": [1]}, {}, "no column for the position"),
        ({}, {}, "It has no columns"),
        ({str(i): [1] for i in range(9)}, {}, "'7', '8'"),
    ],
)
def test_missing_columns(table, options, expected):
    with pytest.raises(InputError, match=expected):
        read(table, **options)


def test_item_and_sequence_exclude_each_other():
    with pytest.raises(ParameterError, match="not both"):
        read({**SEQUENCES, "item": range(5)}, item="item", sequence="sequence")


@pytest.mark.parametrize("frame", [pd.DataFrame([[1, 2, 3, 4]], columns=["item", "worker", "label", "label"])])
def test_columns_of_the_same_name(frame):
    assert "more than one column called 'label'" in message(Answers.from_frame, frame)
    assert "more than one column called 'label'" in message(
        Answers.from_frame, pa.Table.from_arrays([pa.array([1])] * 4, names=list(frame.columns))
    )


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"item": 1, "worker": 2, "label": 3}, "Column 'item' of the table must be a sequence"),
        ({"item": [1], "worker": [1, 2], "label": [1]}, "different lengths: 1, 2"),
        ({"item": np.eye(2), "worker": [1, 2], "label": [1, 2]}, "Column 'item' .* one dimension"),
        ({"item": [[1], [2]], "worker": [1, 2], "label": [1, 2]}, r"Column 'item' .* Got \[1\] instead, a list"),
        ({"item": [1, 2], "worker": [1, 2], "label": pl.Series([{"a": 1}, {"a": 2}])}, "Column 'label' .* a dict"),
        ({"item": [1, 2], "worker": pa.array([[1], [2]]), "label": [1, 2]}, "Column 'worker' .* a list"),
        ({"item": [1], "worker": [np.array([1, 2])], "label": [1]}, "Column 'worker' .* a ndarray"),
    ],
)
def test_columns_in_bad_shape(table, expected):
    with pytest.raises(InputError, match=expected):
        read(table)


# Order


def test_classes_and_workers_are_sorted_and_items_as_they_appear():
    r = read({"item": [3, 1, 3, 2], "worker": [10, 9, 9, -1], "label": ["b", "C", "10", "9"]})
    assert r.items.tolist() == [3, 1, 2]
    assert r.workers.tolist() == [-1, 9, 10]
    assert r.labels.tolist() == ["10", "9", "C", "b"]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("frame", [pd.DataFrame, dict])
def test_pandas_categoricals_keep_their_order(ordered, frame):
    categories = ["z", "b", "unused", "a"]
    labels = pd.Categorical(["a", "b", "z", "a"], categories, ordered=ordered)
    r = Answers.from_frame(frame({**with_labels(labels), "worker": labels, "item": labels}), duplicates="first")
    assert r.labels.tolist() == r.classes.tolist() == r.workers.tolist() == ["z", "b", "a"]
    assert r.items.tolist() == ["a", "b", "z"]
    assert [row[2] for row in rows_of(r)] == ["a", "b", "z"]


def test_arrow_dictionaries():
    def dictionary(indices, values):
        return pa.DictionaryArray.from_arrays(pa.array(indices), values)

    assert labels_of(dictionary([2, 1, 2], ["z", "b", "a"]), pa.table) == ["b", "a"]
    assert labels_of(dictionary([0, 0, 1, 2, 1], ["z", "b", "a"])[2:], pa.table) == ["b", "a"]
    chunks = pa.chunked_array([dictionary([0, 1], ["z", "b"]), dictionary([0], ["a"])])
    assert labels_of(chunks, pa.table) == ["z", "b", "a"]
    # One label written twice is one label; a missing category that nobody chose does no harm.
    r = read(with_labels(dictionary([0, 2, 1, 3], ["b", "a", "b", "a"])))
    assert (r.labels.tolist(), r.label.tolist()) == (["b", "a"], [0, 0, 1, 1])
    assert labels_of(dictionary([2, 0], pa.array(["b", None, "a"]))) == ["b", "a"]
    for values in (pa.array(["a", None]), pa.array([1.0, np.nan])):
        assert "1 missing value; the first is at row 1" in message(labels_of, dictionary([0, 1], values))


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([10, 9, -1], [-1, 9, 10]),
        (["10", "9", "-1"], [-1, 9, 10]),
        (["10", "9.5", "-1"], [-1.0, 9.5, 10.0]),
        ([10, "9", -1.5], [-1.5, 9.0, 10.0]),
        ([0.5, 0.25, -1.0], [-1.0, 0.25, 0.5]),
        (np.array([2**64 - 1, 9, 0], np.uint64), [0, 9, 2**64 - 1]),
        (pd.Categorical([10, 9, -1], [10, 9, -1]), [-1, 9, 10]),
        ([dt.date(2020, 1, day) for day in (3, 2, 1)], [dt.date(2020, 1, day) for day in (1, 2, 3)]),
    ],
)
def test_positions_are_sorted_as_numbers_and_times(positions, expected):
    r = read({"sequence": ["s"] * 3, "position": positions, "worker": ["w"] * 3, "label": [2, 1, 0]})
    assert r.items.tolist() == [("s", position) for position in expected]
    assert [row[2] for row in rows_of(r)] == [0, 1, 2]
    assert r.find_items([to_column(["s"] * 3), to_column(expected)]).tolist() == [0, 1, 2]


# Labels of every type


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("role", ["label", "worker", "item"])
def test_every_type_comes_back(kind, role):
    values = LABELS[kind]
    shuffled = random.Random(3).sample(values, len(values))
    table = {"item": [1] * len(values), "worker": [*range(len(values))], "label": [0] * len(values), role: shuffled}
    if role == "worker":
        table["item"] = [*range(len(values))]
    r = read(table)
    back = {"label": r.labels, "worker": r.workers, "item": r.items}[role].tolist()
    assert_back(back, shuffled if role == "item" else values)
    assert [row[["item", "worker", "label"].index(role)] for row in rows_of(r)] == shuffled
    if role == "label":
        assert r.class_of_label.tolist() == r.label_of_class.tolist() == [*range(len(values))]


class Marks(enum.Flag):
    BOLD = 1
    ITALIC = 2


@pytest.mark.parametrize(
    "values",
    [
        ["a", "\ud800"],  # a lone surrogate, which Arrow cannot hold
        [Marks.BOLD, Marks.BOLD | Marks.ITALIC],
        [decimal.Decimal("1.25"), decimal.Decimal("1.5")],
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 0, 1)],
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-1)))],
        [1j, 2j],
        [("a", Size.SMALL), ("b", None)],
    ],
    ids=lambda values: type(values[0]).__name__,
)
@pytest.mark.filterwarnings("ignore::consilience.errors.DataWarning")
def test_awkward_labels_come_back(values):
    for _ in range(3):
        assert_back(labels_of(values), values)
        values_backwards = values[::-1]
        assert_back(labels_of(values_backwards), values)
        column = pd.Series([None] * len(values), dtype=object)
        for i, value in enumerate(values_backwards):
            column.iat[i] = value
        assert_back(labels_of(column, pd.DataFrame), values)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([2, 1], dtype="Int64"), [1, 2]),
        (pd.Series([2**64 - 1, 1], dtype="uint64"), [1, 2**64 - 1]),
        (pd.Series(["b", "a"], dtype="string"), ["a", "b"]),
        (pd.Series([1.5, 0.5], dtype="Float64"), [0.5, 1.5]),
        (pd.Series(pd.to_datetime(["2021", "2020"])), [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)]),
        (pd.Series(pd.to_timedelta([2, 1], "D")), [dt.timedelta(1), dt.timedelta(2)]),
        (pl.Series([2**100, 1], dtype=pl.Int128), [1, 2**100]),
        (pa.array(["b", "a"], pa.large_string()), ["a", "b"]),
        (pa.array([dt.date(2021, 1, 1), dt.date(2020, 1, 1)], pa.date64()), [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
        (np.array(["2021", "2020"], "M8[Y]"), [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
        ([np.str_("b"), np.str_("a")], ["a", "b"]),
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", ""))),
)
def test_columns_of_many_types(column, expected):
    frames = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}
    frame = frames.get(type(column), pa.table if isinstance(column, pa.Array) else dict)
    assert labels_of(column, frame) == expected
    assert labels_of(column) == expected


def test_nanoseconds_are_not_lost():
    column = np.array([2, 1, 2], "M8[ns]")
    r = read(with_labels(column))
    assert (r.labels == column[[1, 0]]).all()
    assert read({**ONE, "item": column[:1]}, items=column).n_items == 2


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_ids_go_back_into_frames(kind, backend):
    ids = LABELS[kind]
    r = read({"item": ids, "worker": [1] * len(ids), "label": [1] * len(ids)})
    frame = build_frame(r.key_columns(), backend)
    back = frame["item"].to_pylist() if backend == "pyarrow" else frame["item"].to_list()
    text = backend == "pyarrow" and kind in ("enum", "str enum", "int enum", "tuple", "mixed")
    if kind == "date":
        back = [value.date() if isinstance(value, dt.datetime) else value for value in back]
    if not (backend == "polars" and kind == "enum"):
        assert back == ([str(value) for value in ids] if text else ids)


# Missing values


def missing_columns():
    nan = float("nan")
    for name, column in {
        "None": ["a", None],
        "nan": ["a", nan],
        "NA": ["a", pd.NA],
        "NaT": [dt.datetime(2020, 1, 1), pd.NaT],
        "enum": [Size.SMALL, None],
        "tuple": [("a", 1), nan],
        "decimal": [decimal.Decimal(1), decimal.Decimal("nan")],
    }.items():
        yield pytest.param(dict, column, id=f"dict {name}")
        yield pytest.param(pd.DataFrame, pd.Series(column, dtype=object), id=f"object {name}")
    for dtype in ("Int64", "Float64", "boolean", "string", "category", "M8[us]", "m8[us]", "float32"):
        yield pytest.param(pd.DataFrame, pd.Series([1, None]).astype(dtype), id=f"pandas {dtype}")
        yield pytest.param(dict, pd.Series([1, None]).astype(dtype), id=f"series {dtype}")
    for series in (
        pl.Series(["a", None]),
        pl.Series([1, None]),
        pl.Series([1.0, nan]),
        pl.Series(["a", None], dtype=pl.Categorical),
        pl.Series(["a", None], dtype=pl.Object),
    ):
        yield pytest.param(pl.DataFrame, series, id=f"polars {series.dtype}")
        yield pytest.param(pl.LazyFrame, series, id=f"lazy {series.dtype}")
    for array in (
        pa.array([1.0, nan]),
        pa.array(["a", None]).dictionary_encode(),
        pa.array(["a", None], pa.string_view()),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["b", None])),
    ):
        yield pytest.param(pa.table, array, id=f"pyarrow {array.type}")


@pytest.mark.parametrize(("frame", "column"), [*missing_columns()])
@pytest.mark.parametrize("role", ["item", "worker", "label"])
def test_missing_values(frame, column, role):
    table = {"item": [1, 2], "worker": [1, 2], "label": [1, 2], role: column}
    text = message(Answers.from_frame, frame(table))
    assert f"Column '{role}' of the table has 1 missing value; the first is at row 1" in text


# Classes


def test_classes_as_subset():
    r = read(TABLE, classes=["yes", "no"])
    assert r.classes.tolist() == ["yes", "no"]
    assert r.labels.tolist() == ["maybe", "no", "yes"]
    assert r.class_of_label.tolist() == [-1, 1, 0]
    assert r.label_of_class.tolist() == [2, 1]
    assert (r.n_classes, r.n_labels) == (2, 3)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (["x", "y"], "No worker ever said any of the classes 'x', 'y'; they said 'maybe', 'no', 'yes'"),
        (["yes", "yes"], "classes must be distinct values. Found more than once: 'yes'"),
        (["yes", None], "classes must be distinct values; 1 of 2 are missing"),
        ([], "at least one"),
        (3, "classes must be a sequence of values. Got 3"),
    ],
)
def test_bad_classes(classes, expected):
    with pytest.raises(InputError, match=expected):
        read(TABLE, classes=classes)


# Weights


@every_library
def test_weights(library):
    r = read({**TABLE, "weight": [0.1, 0.2, 0.3, 0.4, 1.0]}, library, weight="weight")
    assert r.weight.tolist() == [0.1, 0.3, 0.2, 0.4, 1.0]
    assert read({**TABLE, "weight": [0.5] * 5}, library).weight is None
    assert read({**TABLE, "w": [1.0] * 5}, library, weight="w").weight is None


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (-0.5, r"has 1 weight outside \(0, 1\]; the first is -0.5 at row 1"),
        (1.5, r"outside \(0, 1\]; the first is 1.5 at row 1"),
        (None, "Column 'weight' of the table has 1 missing value"),
        ("much", "Column 'weight' of the table must hold numbers.*'much'"),
        ([1], "Column 'weight' of the table must hold single values"),
    ],
)
def test_bad_weights(weight, expected):
    with pytest.raises(InputError, match=expected):
        read({**with_labels([0, 1]), "weight": [1.0, weight]}, weight="weight")


def test_an_answer_spread_over_labels():
    table = {
        "item": [1, 1, 1, 1],
        "worker": ["a", "a", "a", "b"],
        "label": ["x", "y", "z", "x"],
        "weight": [0.5, 0.25, 0.25, 1.0],
    }
    r = read(table, weight="weight")
    assert rows_of(r) == rows_in(table)
    tenths = {"item": [1] * 10, "worker": [1] * 10, "label": [*range(10)], "weight": [0.1] * 10}
    assert read(tenths, weight="weight").n_responses == 10  # whose sum is not quite 1
    table["weight"][0] = 0.6
    text = message(read, table, weight="weight")
    assert "Worker 'a' answered item 1 more than once, with weights of more than 1 in all" in text


# Duplicates


def settle(rows, policy):
    """Apply `duplicates=` to rows (item, worker, label, weight); slowly."""
    answers = defaultdict(list)
    for row in rows:
        answers[row[:2]].append(row)
    settled = []
    for group in answers.values():
        spread = sum(row[3] for row in group) <= 1 + 1e-6 and len({row[2] for row in group}) == len(group)
        if policy in ("first", "last"):
            group = group[:1] if policy == "first" else group[-1:]
        elif policy == "mean" and not spread:
            group = [(*row[:3], row[3] / len(group)) for row in group]
        elif not spread:
            raise InputError("")
        settled += group
    return settled


POLICIES = ("error", "first", "last", "mean")


@examples(150)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from([0.25, 0.5, 1.0])),
        min_size=1,
        max_size=9,
    ),
    st.booleans(),
)
def test_duplicates_equal_their_slow_twin(rows, weighted):
    if not weighted:
        rows = [(*row[:3], 1.0) for row in rows]
    table = dict(zip(["item", "worker", "label", "weight"], map(list, zip(*rows, strict=True)), strict=True))
    for policy in POLICIES:
        options = {"weight": "weight" if weighted else None, "duplicates": policy}
        try:
            expected = settle(rows, policy)
        except InputError:
            assert "more than once" in message(read, table, **options)
            continue
        r = read(table, **options)
        assert Counter(rows_of(r)) == Counter(expected)
        assert r.items.tolist() == [*dict.fromkeys(row[0] for row in rows)]
        assert r.labels.tolist() == sorted({row[2] for row in expected})
        assert r.workers.tolist() == sorted({row[1] for row in rows})


# Items that nobody answered


EXTRA = {
    "list": ["i9", "i1", "i8", "i9"],
    "arrow": pa.array(["i9", "i1", "i8"]),
    "dict": {"item": ["i9", "i1", "i8"]},
    "pandas": pd.DataFrame({"Task": ["i9", "i1", "i8"], "other": 1}),
    "polars": pl.DataFrame({"id": ["i9", "i1", "i8"]}),
    "pyarrow": pa.table({"question": ["i9", "i1", "i8"]}),
}


@pytest.mark.parametrize("extra", EXTRA.values(), ids=EXTRA)
def test_items(extra):
    r = read(TABLE, items=extra)
    assert r.items.tolist() == ["i9", "i1", "i8", "i2", "i3"]  # as named, then as they appear
    assert r.offsets.tolist() == [0, 0, 2, 2, 4, 5]
    assert sorted(rows_of(r)) == sorted(rows_of(read(TABLE)))


@quickly
@given(crowds(), st.data())
def test_rows_follow_the_named_items(crowd, data):
    named = data.draw(st.lists(st.sampled_from([*crowd.items, "new", 77]), max_size=9))
    r = read(crowd.frame, items=named)
    assert r.items.tolist() == [*dict.fromkeys([*named, *crowd.frame["item"]])]
    assert sorted(rows_of(r), key=str) == sorted(rows_of(read(crowd.frame)), key=str)


@pytest.mark.parametrize(
    ("table", "items", "expected"),
    [
        (TABLE, ["i9", None], "items= has missing entries"),
        (TABLE, 5, "items must be a sequence of values. Got 5"),
        (TABLE, np.eye(2), "items must have one dimension"),
        (SEQUENCES, ["s"], "must be a table or .sequence, position. pairs"),
        (SEQUENCES, [("s", "x")], "Positions of the named items must be numbers or times"),
        (SEQUENCES, [("s", dt.date(2020, 1, 1))], "cannot be compared"),
    ],
)
def test_bad_items(table, items, expected):
    with pytest.raises(InputError, match=expected):
        read(table, items=items)


# Matrices

NAN = float("nan")


@pytest.mark.parametrize(
    ("matrix", "labels"),
    [
        ([[0, 1], [-1, 1]], [0, 1]),
        (np.ma.array([[0, 1], [9, 1]], mask=[[0, 0], [1, 0]]), [0, 1]),
        (np.ma.array([["a", "b"], ["?", "b"]], mask=[[0, 0], [1, 0]]), ["a", "b"]),
        (pd.DataFrame([[0, 1], [None, 1]]), [0, 1]),
        (pl.DataFrame({"x": [0, None], "y": [1, 1]}), [0, 1]),
        (pa.table({"x": ["a", None], "y": ["b", "b"]}), ["a", "b"]),
        ([["a", "b"], [NAN, "b"]], ["a", "b"]),
        (np.array([["a", "b"], [None, "b"]], object), ["a", "b"]),
        ([[False, True], [-1, True]], [False, True]),
        ([[Size.SMALL, Size.LARGE], [None, Size.LARGE]], [Size.SMALL, Size.LARGE]),
    ],
)
def test_matrices(matrix, labels):
    r = Answers.from_matrix(matrix)
    assert_back(r.labels.tolist(), labels)
    assert r.items.tolist() == r.workers.tolist() == [0, 1]
    if len(labels) == 2:
        assert r.offsets.tolist() == [0, 2, 3]
        assert r.worker.tolist() == [0, 1, 1]
        assert r.label.tolist() == [0, 1, 1]
    assert r.weight is None
    assert r.backend == "pyarrow"


@pytest.mark.parametrize(
    ("matrix", "missing", "labels"),
    [
        ([[0, 1], [2, 1]], 2, [0, 1]),
        ([[0, 1], [2, 1]], np.int8(2), [0, 1]),
        ([["a", "b"], ["?", "b"]], "?", ["a", "b"]),
        (np.array([["a", "b"], ["?", "b"]]), "?", ["a", "b"]),
    ],
)
@pytest.mark.filterwarnings("ignore:The label '-1' is treated")
def test_what_stands_for_missing(matrix, missing, labels):
    assert Answers.from_matrix(matrix, missing=missing).labels.tolist() == labels


@quickly
@given(crowds())
def test_matrix_equals_table(crowd):
    r = Answers.from_matrix(crowd.matrix, labels=crowd.labels, items=crowd.items, workers=crowd.workers)
    assert rows_of(r) == rows_in(crowd.frame)
    assert_back(r.labels.tolist(), crowd.labels)
    objects = np.empty(crowd.matrix.shape, object)
    for (i, m), k in np.ndenumerate(crowd.matrix):
        objects[i, m] = None if k < 0 else crowd.labels[k]
    for F in (objects, objects.tolist()):
        values = Answers.from_matrix(F, missing=None, items=crowd.items, workers=crowd.workers, labels=None)
        assert [row[:2] for row in rows_of(values)] == [row[:2] for row in rows_of(r)]
        assert [row[2] for row in rows_of(values)] == [row[2] for row in rows_of(r)]


@pytest.mark.parametrize(
    ("matrix", "labels", "expected"),
    [
        ([[0, 1, -1]], ["no", "yes", "maybe"], ["no", "yes"]),
        ([[0, 1, -1]], pd.Series(["no", "yes"]), ["no", "yes"]),
        ([["yes", "no", None]], ["yes", "no", "maybe"], ["yes", "no"]),
    ],
)
def test_matrix_with_labels(matrix, labels, expected):
    r = Answers.from_matrix(matrix, labels=labels)
    assert_back(r.labels.tolist(), list(labels))
    assert [row[2] for row in rows_of(r)] == expected


@pytest.mark.parametrize(
    ("matrix", "options", "expected"),
    [
        (np.array([1, 2]), {}, r"items as rows and workers as columns; got an array of shape \(2,\)"),
        ([1, 2], {}, "F must be a matrix of answers"),
        ("ab", {}, r"shape \(\)"),
        (["ab", "cd"], {}, r"shape \(2,\)"),
        (np.zeros((2, 2, 2)), {}, r"shape \(2, 2, 2\)"),
        ([[1], [1, 2]], {}, r"got an array of shape \(2,\)"),
        ([[-1, -1]], {}, "F has no answers: all 2 entries are missing"),
        ([[0, 2]], {"labels": ["a", "b"]}, "F holds 2, which is no index into the 2 labels"),
        ([["a", "c"]], {"labels": ["a", "b"]}, "F holds labels that were not named: 'c'. Name all labels with labels="),
        ([[0, 1]], {"labels": ["a", "a"]}, "labels must be distinct values. Found more than once: 'a'"),
        ([[0, 1]], {"workers": ["a"]}, "workers must be 2 distinct values; got 1"),
        ([[0, 1]], {"items": ["a", "b"]}, "items must be 1 distinct values; got 2"),
        ([[0], [1]], {"lengths": [1]}, "lengths must be positive whole numbers that sum to the 2 rows; got 1"),
        ([[0], [1]], {"lengths": [2], "items": ["a", "b"]}, "items= of sequences must be"),
        ([[0], [1]], {"lengths": [2], "items": [("s", 1), ("s", 0)]}, "positions rising"),
        ([[0, 1]], {"classes": [5]}, "No worker ever said"),
    ],
)
def test_bad_matrices(matrix, options, expected):
    with pytest.raises(InputError, match=expected):
        Answers.from_matrix(matrix, **options)


# Soft votes


def test_probabilities():
    P = np.array([[[0.75, 0.25, 0], [NAN, NAN, NAN]], [[NAN, NAN, NAN]] * 2, [[0, 0, 1], [0.25, 0.5, 0.25]]])
    r = Answers.from_probabilities(P, classes=["b", "a", "c"], workers=["x", "w"])
    assert r.classes.tolist() == r.labels.tolist() == ["b", "a", "c"]
    assert rows_of(r) == [(0, "x", "b", 1.0), (2, "x", "c", 1.0), (2, "w", "a", 1.0)]
    assert r.offsets.tolist() == [0, 1, 1, 3]
    assert r.soft.tolist() == [[0.75, 0.25, 0], [0, 0, 1], [0.25, 0.5, 0.25]]
    assert np.isnan(P[0, 1]).all()


def test_what_becomes_of_soft_votes():
    """Whatever selects, merges or moves answers does the same with their probabilities."""
    P = np.random.default_rng(1).dirichlet(np.ones(3), size=(12, 4))
    P[3, 1] = NAN
    r = Answers.from_probabilities(P, classes=["cat", "Dog", "dog"])
    answered = ~np.isnan(P[:, :, 0])
    np.testing.assert_allclose(r.soft, P[answered], rtol=1e-6)
    kept = r.keep(r.worker != 2)
    np.testing.assert_array_equal(kept.soft, r.soft[r.worker != 2])
    items = np.array([7, 2])
    np.testing.assert_allclose(r.about(items).soft, np.concatenate(P[items]), rtol=1e-6)
    spelled = r.spelled_as(np.array(["cat", "dog"], object))
    assert spelled.labels.tolist() == ["cat", "dog"]
    merged = np.stack([P[answered][:, 0], P[answered][:, 1:].sum(axis=1)], axis=1)
    np.testing.assert_allclose(spelled.soft, merged, rtol=1e-5)
    assert replace(r, soft=None).soft is None
    assert LAYOUTS["long"](r).column_names == ["item", "worker", "p(cat)", "p(Dog)", "p(dog)"]


@pytest.mark.parametrize(
    ("P", "options", "expected"),
    [
        ([[[0.5, 0.6]]], {}, r"P\[0, 0\], is 0.5, 0.6"),
        ([[[1, 0], [-0.1, 0.5]]], {}, r"P\[0, 1\], is -0.1, 0.5.*logits or scores, take their softmax"),
        ([[[0.5, 0.3]]], {}, r"sums to 0.8. .*divide each vote by its sum"),
        ([[[0, 0]], [[1, 0]]], {}, "holds 1 vote whose numbers are no probabilities"),
        ([[[NAN, NAN]]], {}, "P has no votes"),
        ([[0.5, 0.5]], {}, r"indexed by item, worker and class; got an array of shape \(1, 2\)"),
        ([[[0.5, 0.5], [1]]], {}, "P must be an array of probabilities"),
        ([[[1, 0]]], {"classes": ["a"]}, "classes must be 2 distinct values; got 1"),
        ([[[1, 0]]], {"classes": ["a", "a"]}, "classes must be distinct"),
    ],
)
def test_bad_probabilities(P, options, expected):
    with pytest.raises(InputError, match=expected):
        Answers.from_probabilities(P, **options)


# What a Answers can do


@quickly
@given(crowds(weights=True), st.data())
def test_keep(crowd, data):
    r = read(crowd.frame, weight="weight")
    marks = data.draw(st.lists(st.booleans(), min_size=r.n_responses, max_size=r.n_responses))
    kept = r.keep(np.array(marks))
    assert kept.items.tolist() == r.items.tolist()
    assert kept.workers.tolist() == r.workers.tolist()
    assert kept.labels.tolist() == kept.classes.tolist() == r.labels.tolist()
    assert rows_of(kept) == [row for row, mark in zip(rows_of(r), marks, strict=True) if mark]
    assert kept.n_responses == sum(marks)


@quickly
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 3)), min_size=1, max_size=9), st.data())
def test_find_items_of_sequences(pairs, data):
    n = len(pairs)
    table = {
        "sequence": [s for s, _ in pairs],
        "position": [p for _, p in pairs],
        "worker": [*range(n)],
        "label": [0] * n,
    }
    r = read(table)
    owners = [*dict.fromkeys(table["sequence"])]
    expected = sorted(set(pairs), key=lambda pair: (owners.index(pair[0]), pair[1]))
    assert r.items.tolist() == expected
    wanted = data.draw(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-3, 4)), min_size=1))
    found = r.find_items([to_column([s for s, _ in wanted]), to_column([p for _, p in wanted])])
    assert found.tolist() == [expected.index(pair) if pair in expected else -1 for pair in wanted]
    text = r.find_items([to_column([s for s, _ in wanted]), to_column([str(p) for _, p in wanted])])
    assert text.tolist() == found.tolist()


@quickly
@given(crowds(weights=True), st.randoms(use_true_random=False))
def test_shuffled_rows_give_the_same(crowd, shuffler):
    r = read(crowd.frame, weight="weight")
    order = shuffler.sample(range(r.n_responses), r.n_responses)
    shuffled = read({name: [values[i] for i in order] for name, values in crowd.frame.items()}, weight="weight")
    assert Counter(rows_of(shuffled)) == Counter(rows_of(r)) == Counter(rows_in(crowd.frame))
    assert shuffled.labels.tolist() == r.labels.tolist()
    assert shuffled.workers.tolist() == r.workers.tolist()
    assert Counter(shuffled.items.tolist()) == Counter(r.items.tolist())
    assert (np.diff(shuffled.offsets) >= 0).all()
    assert shuffled.offsets[-1] == shuffled.n_responses


# Vocabularies against slow twins

WHOLE = st.integers(-(2**63), 2**63 - 1)
COLUMNS = st.one_of(
    st.lists(st.text(max_size=3), min_size=1),
    st.lists(st.integers(-5, 5), min_size=1),
    st.lists(WHOLE, min_size=1),
    st.lists(st.integers(2**62, 2**65), min_size=1),
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0]), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.binary(max_size=2), min_size=1),
    st.lists(st.dates(), min_size=1),
    st.lists(st.datetimes(), min_size=1),
    st.lists(st.datetimes(timezones=st.just(dt.UTC)), min_size=1),
    st.lists(st.times(), min_size=1),
    st.lists(st.timedeltas(), min_size=1),
    st.lists(st.decimals(-100, 100, places=2), min_size=1),
    st.lists(st.sampled_from(Tone), min_size=1),
    st.lists(st.sampled_from(Grade), min_size=1),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=1),
    st.lists(st.frozensets(st.sampled_from("abc")), min_size=1),
    st.lists(st.one_of(st.integers(-3, 3), st.text(max_size=2), st.floats(-1, 1)), min_size=1),
)


def order_key(entries):
    kinds = set(map(type, entries))
    if kinds in ({Tone}, {Grade}):
        return list(next(iter(kinds))).index
    try:
        sorted(entries)
    except TypeError:
        return lambda entry: (type(entry).__name__, str(entry))
    if kinds == {frozenset}:
        return sorted
    return lambda entry: entry


@examples(300)
@given(COLUMNS)
def test_encoding_equals_its_slow_twin(entries):
    column = to_column(entries)
    assert not len(find_missing(column))
    distinct = [*dict.fromkeys(entries)]
    codes, values = encode_in_order_of_appearance(column)
    assert values.tolist() == distinct
    assert codes.tolist() == [distinct.index(entry) for entry in entries]
    codes, values = encode_sorted(column)
    distinct.sort(key=order_key(distinct))
    assert values.tolist() == distinct
    assert codes.tolist() == [distinct.index(entry) for entry in entries]
    assert codes.dtype == np.int32


@examples(300)
@given(COLUMNS, COLUMNS, st.data())
def test_lookup_equals_its_slow_twin(known, others, data):
    _, values = encode_in_order_of_appearance(to_column(known))
    entries = data.draw(st.permutations(known + others)) if data.draw(st.booleans()) else others
    whole_and_text = {str, int} >= set(map(type, values.tolist())) | set(map(type, entries))
    distinct = values.tolist()
    names = [str(value) for value in distinct]

    def find(entry):
        if entry in distinct:
            return {distinct.index(entry)}
        # A number and its text are the same id, where one column is all numbers and the other all text.
        return {-1, names.index(str(entry))} if whole_and_text and str(entry) in names else {-1}

    found = lookup(values, to_column(entries)).tolist()
    assert all(index in find(entry) for index, entry in zip(found, entries, strict=True))


def test_lookup_does_not_confuse():
    assert lookup(np.array([7]), to_column(["07", "7.0", " 7", "+7"])).tolist() == [-1] * 4
    assert lookup(np.array([2**53]), to_column([2.0**53 + 2])).tolist() == [-1]
    assert lookup(np.array([2**53 + 1]), to_column([2.0**53])).tolist() == [-1]
    assert lookup(np.array([2**64 - 1], np.uint64), to_column([-1])).tolist() == [-1]
    assert lookup(np.array([-1]), to_column(np.array([2**64 - 1], np.uint64))).tolist() == [-1]
    assert lookup(np.array([0.0, 1.0]), to_column([-0.0, 1])).tolist() == [0, 1]
    assert lookup(np.array(["a"], object), to_column([b"a"])).tolist() == [-1]
    assert lookup(np.array([1]), to_column([None, 1])).tolist() == [-1, 0]
    assert lookup(np.array([Tone.COLD], object), to_column(["cold"])).tolist() == [0]
    moment = dt.datetime(2020, 1, 1)
    assert lookup(np.array([moment], "M8[ns]"), to_column([pd.Timestamp(moment), moment])).tolist() == [0, 0]


def test_a_column_with_another_role_is_not_suggested():
    with pytest.raises(InputError, match=r"no column for the worker.*Name it with worker="):
        Answers.from_frame({"item": [1, 2], "label": ["x", "y"]})
    with pytest.raises(InputError, match=r"Did you mean worker='wrker'\?"):
        Answers.from_frame({"item": [1, 2], "label": ["x", "y"], "wrker": ["a", "b"]})
