"""Python objects of every wrong kind, for every parameter of every public function and model.

A case takes a call that works, replaces an argument or two by something odd, and makes it. What comes out must be
sound, or an error of the package: never one of NumPy, Arrow or Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse

import consilience as cs
from fuzz.crowds import demand, demand_distributions
from fuzz.kinds import demand_sound
from fuzz.odd_objects import draw_odd

Rng = np.random.Generator
Call = tuple[Callable[..., Any], dict[str, Any]]


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
        return fit_kind(new_model(kind), kind)


def fit_kind(model: Any, kind: str) -> Any:
    answers, *graph = answers_of(kind)
    return model.fit(answers, graph=graph[0] if graph else None)


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
    draw = (read_call, graph_call, metric_call, simulate_call, fit_call, fit_call, model_call, other_call, kind_call)
    return draw[rng.integers(len(draw))](rng, folder)


def one_of(rng: Rng, *calls: Call) -> Call:
    return calls[rng.integers(len(calls))]


def read_call(rng: Rng, _folder: Path) -> Call:
    names = {"item": "item", "worker": "worker", "label": "label", "classes": ["x", "y"], "items": list(range(7))}
    more = {"duplicates": "error", "abstain": "answer", "background": "x"}
    matrix = {"labels": ["x", "y"], "classes": ["x", "y"], "items": list("abcd"), "workers": list("uvw"), "missing": -1}
    sequences = {"sequence": "sequence", "position": "position", "items": [(0, 0), (0, 7), (1, 1)]}
    read = cs.Answers
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
    answers = {"r": cs.Answers.from_frame(FLAT)}
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
        *(
            (function, answers)
            for function in (m.krippendorff_alpha, m.krippendorff_interval, m.pairwise_agreement, m.agreement_matrix)
        ),
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
        (lambda **changed: fit_kind(model.fresh(**changed), kind), {name: model.get_params()[name]}),
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
        (cs.read_answers, {"path": write_answers(folder)} | columns),
        (cs.engines.Threads, {"n_threads": 2}),
    )


RATED = FLAT | {"label": [1 + i % 4 for i in range(18)]}
TAGGED = FLAT | {"label": ["red;blue", "", "red"] * 6}
ASKED = FLAT | {"stars": RATED["label"], "tags": TAGGED["label"]}
VERDICTS = {"worker": list("uvw") * 4, "left": list("aabbcc") * 2, "right": list("bccaab") * 2}
VERDICTS |= {"winner": list("aacaab") * 2, "item": [i // 2 for i in range(12)], "weight": [1.0] * 12}
LISTS = FLAT | {"label": [["red"], [], ["red", "blue"]] * 6}


@cache
def fitted_kind(kind: str) -> Any:
    """Return a fitted model of a kind of answers, by the name of the kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "comparisons":
            return cs.rank(VERDICTS, n_draws=50)
        if kind == "questions":
            return cs.fuse(ASKED, label=["label", "stars"], max_iter=10)
        return cs.fuse(TAGGED, separator=";", max_iter=10)


def kind_call(rng: Rng, folder: Path) -> Call:
    """Return a call about ratings, tags, several questions, soft votes or comparisons."""
    ranking, questions, sets = map(fitted_kind, ("comparisons", "questions", "tags"))
    roles = {role: role for role in VERDICTS}
    columns = {"item": "item", "worker": "worker", "label": "label"}
    several = {"label": ["label", "stars", "tags"], "ordered": {"stars": True}, "separator": {"tags": ";"}}
    drawn = {"n_draws": 50, "max_iter": 20, "tol": 1e-3, "seed": 1, "discrimination": "learn", "position_bias": "none"}
    soft = {"P": VOTES, "classes": ["x", "y"], "workers": list("uvw"), "rescale": True}
    return one_of(
        rng,
        (
            cs.Answers.from_frame,
            {"frame": RATED, "ordered": True, "positions": [0, 1, 2, 5], "classes": [1, 2, 3, 4]},
        ),
        (cs.fuse, {"source": RATED, "ordered": True, "label_by": "median", "gold": {0: 1}, "max_iter": 5} | columns),
        (cs.Tags.from_frame, {"frame": TAGGED, "separator": ";", "classes": ["red", "blue", "new"]} | columns),
        (cs.fuse, {"source": TAGGED, "separator": ";", "gold": {0: ["red"], 1: []}, "max_iter": 5} | columns),
        (cs.fuse, {"source": LISTS, "topics": 2, "max_iter": 5}),
        (cs.fuse, {"source": ASKED, "gold": {"stars": {0: 1}}, "max_iter": 5} | several),
        (cs.Answers.from_probabilities, soft),
        (lambda **given: cs.fuse(cs.Answers.from_probabilities(**given), max_iter=5), soft),
        (cs.Comparisons.from_frame, {"frame": VERDICTS} | roles),
        (cs.rank, {"comparisons": VERDICTS, "gold": {("a", "b"): "a"}} | roles | drawn),
        (ranking.win_probability, {"first": "a", "second": "b"}),
        (ranking.next_comparisons, {"n": 3, "workers": ["u", "v"]}),
        (cs.evaluate, {"labels": ranking, "gold": ["a", "b", "c"]}),
        (cs.evaluate, {"labels": sets, "gold": {0: ["red"], 1: []}}),
        (sets.explain, {"item": (0, "red")}),
        (sets.next_items, {"n": 2}),
        (questions.to_frame, {"wide": True, "undecided": 0.7}),
        (questions.save, {"path": folder / "questions.model", "answers": True, "texts": True}),
        (lambda **given: cs.load(questions.save(folder / "q.model")).update(**given), {"responses": more_answers()}),
    )


def more_answers() -> dict[str, Any]:
    return {"item": [0, 1], "worker": ["z", "z"], "label": ["x", "y"], "stars": [1, 2]}


def write_answers(folder: Path) -> Path:
    path = folder / "answers.csv"
    rows = zip(*FLAT.values(), strict=True)
    path.write_text("item,worker,label\n" + "".join(f"{i},{w},{label}\n" for i, w, label in rows))
    return path


# ------------------------------------------------------------------------------------------------------------- the case


def prepare() -> None:
    """Fit and compile: the first cases would take seconds."""
    for kind in MODELS:
        fitted(kind)
    for kind in ("comparisons", "questions", "tags"):
        fitted_kind(kind)


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
    if isinstance(result, cs.Answers):
        result = cs.MajorityVote().fit(result)
    if isinstance(result, cs.Tags):
        result = cs.fuse(result, max_iter=5)
    if isinstance(result, cs.Comparisons):
        result = cs.rank(result, n_draws=50)
    if isinstance(result, cs.BradleyTerry) or hasattr(result, "explain_sharing"):
        demand_sound(result)
    elif hasattr(result, "posterior_"):
        demand_distributions(result.posterior_, "posterior_")
        demand(set(result.labels_.tolist()) <= set(result.classes_.tolist()), "labels that are no classes")
        result.to_frame()
        result.worker_report()
    if isinstance(result, cs.Graph):
        sound = np.isfinite(result.weights).all() and (result.weights > 0).all()
        demand(sound and len(result.items) == result.n_items, "a graph", result.weights, result.items)
    repr(result)
