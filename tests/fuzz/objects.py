"""Python objects of every wrong kind, for every parameter of every public function and model.

A case takes a call that works, replaces an argument or two by something odd, and makes it. What comes out must be
sound, or an error of the package: never one of NumPy, Arrow or Python.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

import consilience as cs
from fuzz.crowds import demand, demand_distributions

Rng = np.random.Generator
Call = tuple[Callable[..., Any], dict[str, Any]]


class Rude:
    """An object that cannot even be shown."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


# ---------------------------------------------------------------------------------------------------------- odd objects

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
    lambda: cs.Responses.from_matrix([[0, 1]]),
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
        array = np.asarray(value.items if isinstance(value, cs.Graph) else value)
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
        lambda: flat[:-1] + [None],
        lambda: flat[:-1] + ["\ud800"],
        lambda: flat[:-1] + [[1]],
        lambda: flat[:1] * len(flat),
        lambda: [[entry] * i for i, entry in enumerate(flat)],
        lambda: sparse.coo_array(numeric) if numeric.ndim == 2 else numeric,
        lambda: np.matrix(numeric) if numeric.ndim == 2 else numeric,
        lambda: pd.Series(flat),
        lambda: pd.Series(flat, index=flat[::-1]),
        lambda: pd.Series(pd.Categorical(flat)),
        lambda: pd.Categorical(flat),
        lambda: pd.array(flat),
        lambda: pd.array(flat[:-1] + [None]),
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


def change_table(rng: Rng, table: dict[Any, Any]) -> Any:
    """Return a table (or a dict of known labels) as one of another library, or with one column changed."""
    if not all(hasattr(column, "__len__") and not isinstance(column, str) for column in table.values()):
        return change_dict(rng, table)
    if not table:
        return table
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
    key = list(known)[0] if known else 0
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


# ---------------------------------------------------------------------------------------------------------------- calls

FLAT = {"item": [i // 3 for i in range(18)], "worker": ["u", "v", "w"] * 6, "label": list("xxyxyyxyxyyyxxxyyx")}
PLACES = {"sequence": [i // 9 for i in range(18)], "position": [i // 3 for i in range(18)]}
TAGS = PLACES | {"worker": FLAT["worker"], "label": [{"x": "B-A", "y": "O"}[label] for label in FLAT["label"]]}
WEIGHTED = FLAT | {"weight": [0.5] * 18}
MATRIX = np.array([[0, 1, 0], [1, 1, 0], [0, 0, -1], [1, 0, 1]])
VOTES = np.full((4, 3, 2), 0.5)
EDGES = {"source": [0, 1, 2], "target": [1, 2, 3], "weight": [1.0, 2.0, 0.5]}
GOLD = {0: "x", 1: "y"}
FEATURES = np.arange(24.0).reshape(8, 3) ** 1.5
TRUTH, GUESS = list("xyxyxx"), list("xxxyyx")
POSTERIOR = np.array([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.3, 0.7], [1.0, 0.0]])
SPANS = ["B-A", "I-A", "O", "B-A", "O", "O"]
CONFUSION = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]])


@cache
def fitted(kind: str) -> Any:
    """Return a fitted model, and what it was fitted to, by the name of its class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return new_model(kind).fit(*answers_of(kind))


def answers_of(kind: str) -> tuple[Any, ...]:
    if kind == "HiddenMarkov":
        return (TAGS,)
    graph = (cs.Graph.from_frame(EDGES, items=range(6)),) if kind == "MarkovField" else ()
    return (FLAT, *graph)


def new_model(kind: str, **parameters: Any) -> Any:
    defaults = {"coupling": 0.5} if kind == "HiddenMarkov" else {}
    if kind != "MajorityVote":
        defaults["max_iter"] = 10
    return getattr(cs, kind)(**defaults | parameters)


MODELS = ["MajorityVote", "DawidSkene", "MomentMatching", "HiddenMarkov", "MarkovField"]


def draw_call(rng: Rng, folder: Path) -> Call:
    """Return a function or method and arguments with which it works, those that may be left out among them."""
    draw = (read_call, graph_call, metric_call, simulate_call, fit_call, fit_call, model_call, other_call)
    return draw[rng.integers(len(draw))](rng, folder)


def one_of(rng: Rng, *calls: Call) -> Call:
    return calls[rng.integers(len(calls))]


def read_call(rng: Rng, _folder: Path) -> Call:
    names = {"item": "item", "worker": "worker", "label": "label", "classes": ["x", "y"], "items": list(range(7))}
    more = {"duplicates": "error", "abstain": "answer", "background": "x"}
    matrix = {"labels": ["x", "y"], "classes": ["x", "y"], "items": list("abcd"), "workers": list("uvw"), "missing": -1}
    sequences = {"sequence": "sequence", "position": "position", "items": [(0, 0), (0, 7), (1, 1)]}
    read = cs.Responses
    return one_of(
        rng,
        (read.from_frame, {"frame": FLAT} | names | more),
        (read.from_frame, {"frame": WEIGHTED, "weight": "weight", "duplicates": "mean"} | names),
        (read.from_frame, {"frame": TAGS} | sequences | {"abstain": "answer", "background": "O"}),
        (read.from_matrix, {"F": MATRIX} | matrix),
        (read.from_matrix, {"F": MATRIX, "lengths": [2, 2], "items": [(0, 0), (0, 1), (1, 0), (1, 1)]}),
        (
            read.from_matrix,
            {"F": np.array([["x", "y"], ["y", None]], dtype=object), "labels": ["x", "y"], "missing": ""},
        ),
        (read.from_probabilities, {"P": VOTES, "lengths": [1, 3], "classes": ["x", "y"], "workers": list("uvw")}),
        (read.from_probabilities, {"P": VOTES, "items": list("abcd")}),
    )


def graph_call(rng: Rng, _folder: Path) -> Call:
    graph, ends = cs.Graph, {"source": EDGES["source"], "target": EDGES["target"]}
    adjacency = {"matrix": np.triu(np.ones((4, 4)), 1), "items": list("abcd")}
    some = graph.from_frame(EDGES)
    return one_of(
        rng,
        (graph.from_edges, ends | {"weight": EDGES["weight"], "items": list(range(6))}),
        (
            graph.from_frame,
            {"frame": EDGES, "source": "source", "target": "target", "weight": "auto", "items": range(6)},
        ),
        (graph.from_scipy, adjacency),
        (graph.from_scipy, adjacency | {"matrix": sparse.csr_array(adjacency["matrix"])}),
        (graph.from_networkx, {"graph": nx.path_graph(4), "weight": "weight", "items": range(6)}),
        (graph.grid, {"shape": (2, 3), "connectivity": 4, "items": list("abcdef")}),
        (graph.grid, {"shape": [(2, 2), (1, 3)], "connectivity": 8}),
        (graph.knn, {"features": FEATURES, "k": 2, "metric": "cosine", "mutual": True, "items": range(8)}),
        (graph.knn, {"features": sparse.csr_array(FEATURES), "k": 2}),
        (some.shuffled, {"seed": 1}),
    )


def metric_call(rng: Rng, _folder: Path) -> Call:
    m, both = cs.metrics, {"gold": TRUTH, "predicted": GUESS}
    votes = {"gold": TRUTH, "posterior": POSTERIOR, "classes": ["x", "y"]}
    spans = {"gold": SPANS, "predicted": SPANS[::-1], "lengths": [3, 3]}
    matrices = {"true": CONFUSION, "estimated": CONFUSION[::-1]}
    answers = {"r": cs.Responses.from_frame(FLAT)}
    return one_of(
        rng,
        *((function, both) for function in (m.accuracy, m.class_f1, m.macro_f1, m.confusion_counts)),
        *((function, votes) for function in (m.log_loss, m.brier)),
        (m.calibration_error, votes | {"bins": 3}),
        (m.reliability_curve, votes | {"bins": 3}),
        (m.accuracy_at_coverage, votes | {"coverage": 0.5}),
        *((function, spans) for function in (m.span_f1, m.span_score, m.relaxed_span_score)),
        (m.count_invalid_transitions, {"tags": SPANS, "lengths": [3, 3]}),
        (m.confusion_error, matrices),
        (m.transition_error, {"true": CONFUSION[0], "estimated": CONFUSION[1]}),
        (m.prior_error, {"true": [0.5, 0.5], "estimated": [0.2, 0.8]}),
        (m.rank_correlation, {"x": [1.0, 2.0, 3.0], "y": [1, 3, 2]}),
        *((function, answers) for function in (m.krippendorff_alpha, m.pairwise_agreement, m.agreement_matrix)),
    )


def simulate_call(rng: Rng, _folder: Path) -> Call:
    common = {
        "n_workers": 6,
        "n_classes": 2,
        "answers_per_item": 2,
        "good": "most",
        "accuracy": (0.5, 0.9),
        "spammers": 1,
    }
    common |= {"adversaries": 1, "copycats": 1, "activity": "unequal", "seed": 3}
    return one_of(
        rng,
        (cs.simulate.independent, common | {"n_items": 20, "prior": [0.5, 0.5]}),
        (cs.simulate.independent, common | {"n_items": 20, "accuracy": [0.5, 0.6, 0.7], "good": 2}),
        (
            cs.simulate.sequences,
            common | {"n_sequences": 3, "length": (2, 5), "transition": CONFUSION[0], "stickiness": 0.5},
        ),
        (cs.simulate.network, common | {"n_items": 20, "degree": 3.0, "homophily": 0.8, "prior": [0.5, 0.5]}),
    )


def fit_call(rng: Rng, _folder: Path) -> Call:
    """Return a fit of a model whose parameters are arguments too."""
    kind = MODELS[rng.integers(len(MODELS))]
    answers, *graph = answers_of(kind)
    parameters = new_model(kind).get_params()
    given = {"prior": [0.4, 0.6], "smoothing": (0.1, 1.1), "transitions": np.ones((2, 2), bool)}
    given["start"] = np.full((3, 2, 2), 0.5)
    parameters |= {name: value for name, value in given.items() if name in parameters and rng.random() < 0.5}
    gold = {(0, 0): "O"} if kind == "HiddenMarkov" else GOLD
    arguments = {"responses": answers, "graph": graph[0] if graph else None, "gold": gold, "engine": None}

    def fit(**keywords: Any) -> Any:
        model = getattr(cs, kind)(**{name: keywords.pop(name) for name in parameters})
        repr(model)
        return model.fit(**keywords)

    return fit, arguments | parameters


def model_call(rng: Rng, folder: Path) -> Call:
    """Return a call of a method of a fitted model."""
    kind = MODELS[rng.integers(len(MODELS))]
    model = fitted(kind)
    answers, *graph = answers_of(kind)
    gold = {(0, 0): "O"} if kind == "HiddenMarkov" else GOLD
    arguments = {"responses": answers, "graph": graph[0] if graph else None, "gold": gold, "engine": None}
    name = list(model.get_params())[rng.integers(len(model.get_params()))]
    return one_of(
        rng,
        (model.predict, arguments),
        (model.predict_proba, arguments),
        (model.score, arguments),
        (model.fresh().fit_predict, arguments),
        (model.save, {"path": folder / "some.model"}),
        (model.fresh().set_params, {name: model.get_params()[name]}),
        (lambda **changed: model.fresh(**changed).fit(*answers_of(kind)), {name: model.get_params()[name]}),
    )


def other_call(rng: Rng, folder: Path) -> Call:
    graph = cs.Graph.from_frame(EDGES, items=range(6))
    columns = {"item": "item", "worker": "worker", "label": "label", "classes": ["x", "y"], "duplicates": "error"}
    labels = {"item": [0, 1, 2], "label": list("xyx"), "p(x)": [0.9, 0.2, 0.5], "p(y)": [0.1, 0.8, 0.5]}
    field, chain = fitted("MarkovField"), fitted("HiddenMarkov")
    return one_of(
        rng,
        (cs.fuse, {"source": FLAT, "gold": GOLD, "model": "auto", "engine": None, "callback": None} | columns),
        (cs.fuse, {"source": FLAT, "graph": EDGES, "model": "auto", "max_iter": 5}),
        (cs.fuse, {"source": FLAT, "graph": nx.path_graph(4), "model": cs.MarkovField(max_iter=5)}),
        (cs.fuse, {"source": TAGS, "sequence": "sequence", "position": "position", "coupling": 1.0, "max_iter": 5}),
        (cs.evaluate, {"labels": labels, "gold": GOLD, "item": "item", "label": "label"}),
        (cs.evaluate, {"labels": fitted("DawidSkene"), "gold": GOLD}),
        (cs.evaluate, {"labels": chain, "gold": {(0, 0): "O", (1, 3): "B-A"}, "sequence": "sequence"}),
        (
            cs.held_out_score,
            {"model": cs.DawidSkene(max_iter=5), "responses": FLAT, "gold": GOLD, "fraction": 0.2, "seed": 1},
        ),
        (cs.held_out_score, {"model": cs.MarkovField(max_iter=5), "responses": FLAT, "graph": graph, "engine": None}),
        (field.check_graph, {"responses": FLAT, "graph": graph, "gold": GOLD, "engine": None}),
        (cs.load, {"path": fitted("MajorityVote").save(folder / "vote.model")}),
        (cs.read_responses, {"path": write_answers(folder)} | columns),
        (cs.engines.Threads, {"n_threads": 2}),
        (cs.datasets.load, {"name": "bluebird", "folder": folder}),
        (cs.datasets.is_present, {"name": "bluebird", "folder": folder}),
    )


def write_answers(folder: Path) -> Path:
    path = folder / "answers.csv"
    rows = zip(*FLAT.values(), strict=True)
    path.write_text("item,worker,label\n" + "".join(f"{i},{w},{label}\n" for i, w, label in rows))
    return path


# --------------------------------------------------------------------------------------------------------------- the case


def prepare() -> None:
    """Fit and compile: the first cases would take seconds."""
    for kind in MODELS:
        fitted(kind)


def run(rng: Rng, folder: Path) -> str:
    """Make a call in which an argument or two are odd."""
    function, arguments = draw_call(rng, folder)
    names = list(arguments)
    for name in {names[i] for i in rng.integers(len(names), size=1 + (rng.random() < 0.2))}:
        arguments = arguments | {name: draw_odd(rng, name, arguments[name])}
    if isinstance(engine := arguments.get("engine"), str) and engine == "dask":
        arguments["engine"] = "threads"  # a cluster for each case would be too slow
    check(function(**arguments))
    return str(getattr(function, "__name__", function))


def check(result: Any) -> None:
    """Demand that a result is sound, and can be shown."""
    if isinstance(result, cs.Responses):
        result = cs.MajorityVote().fit(result)
    if hasattr(result, "posterior_"):
        demand_distributions(result.posterior_, "posterior_")
        demand(set(result.labels_.tolist()) <= set(result.classes_.tolist()), "labels that are no classes")
        result.to_frame()
        result.worker_report()
    if isinstance(result, cs.Graph):
        sound = np.isfinite(result.weights).all() and (result.weights > 0).all()
        demand(sound and len(result.items) == result.n_items, "a graph", result.weights, result.items)
    repr(result)
