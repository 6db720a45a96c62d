"""One call from answers to labels."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..data.graph import Graph
from ..data.responses import Responses
from ..data.tagging import looks_iob2
from ..errors import ConsilienceWarning, DataWarning, listing, parameter_error, plural
from ..fitting.em import Progress
from ..formats.answers import check_keywords
from ..formats.reading import open_path
from .base import Model
from .comparison import Comparison, can_compare, compare_with_vote
from .dawid_skene import DawidSkene
from .hidden_markov import HiddenMarkov
from .inputs import as_gold, as_responses
from .majority_vote import MajorityVote
from .markov_field import MarkovField
from .moment_matching import MomentMatching

MODELS: dict[str, type[Model]] = {
    "majority": MajorityVote,
    "dawid-skene": DawidSkene,
    "moments": MomentMatching,
    "hidden-markov": HiddenMarkov,
    "markov-field": MarkovField,
}


def fuse(
    source: Any,
    graph: Any = None,
    gold: Any = None,
    *,
    model: str | Model = "auto",
    engine: Any = None,
    callback: Callable[[Progress], object] | None = None,
    **columns: Any,
) -> Any:
    """Fuse answers into labels with a model chosen by what is given, and compare the result with majority vote.

    Parameters
    ----------
    source : table, path or Responses
        The answers: a pandas, polars or pyarrow table, a dict of columns, or a file, glob or folder.
    graph : Graph, table, path, networkx graph or sparse matrix, optional
        How items hang together: a `Graph`, or edges from which one is made (a table or file with columns source and
        target, and perhaps weight).
    gold : dict, Series, table or path, optional
        Known labels.
    model : {"auto", "majority", "dawid-skene", "moments", "hidden-markov", "markov-field"} or Model
        "auto" is `MarkovField` with a graph, `HiddenMarkov` for sequences, and `DawidSkene` for other items. A
        `HiddenMarkov` chosen by name or "auto" has ``transitions="bio"`` where the classes are IOB2 tags (O, and B-X
        with each I-X).
    engine : optional
        Where to work; see `consilience.engines`.
    callback : callable, optional
        Told of each iteration's progress.
    **columns
        Names of columns and the other keywords of `Responses.from_frame`.

    Returns
    -------
    Model
        The fitted model, with `comparison_` against majority vote: a `Comparison`, or None where there is nothing to
        compare (the model is the vote, or there are too few answers to hide any). With a graph also `graph_check_`,
        the same fit on a shuffled graph.

    Warns
    -----
    ConsilienceWarning
        When the fit does not predict hidden answers better than the vote does: then the vote may be as good.
    DataWarning
        When each item has one answer, or a class that nobody said looks like a slip of the pen.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.random.default_rng(0).integers(0, 2, 300)
    >>> good, better, flipped = truth.copy(), truth.copy(), 1 - truth
    >>> good[:60] = 1 - good[:60]
    >>> fused = cs.fuse(cs.Responses.from_matrix(np.stack([good, better, flipped], axis=1)))
    >>> fused.comparison_.n_differ, fused.comparison_.verdict
    (60, 'better')
    """
    check_keywords(fuse, columns)
    responses = as_responses(source, **columns)
    gold = as_gold(gold)
    if graph is not None:
        graph = as_graph(graph, responses)
    chosen = choose_model(model, responses, graph)
    if callback is not None and "callback" in chosen.get_params():
        chosen = chosen.fresh(callback=callback)
    chosen.fit(responses, graph=graph, gold=gold, engine=engine)
    chosen.comparison_ = None
    if not isinstance(chosen, MajorityVote) and can_compare(responses):
        chosen.comparison_ = compare_with_vote(chosen, responses, graph, gold)
    if isinstance(chosen, MarkovField):
        chosen.graph_check_ = chosen.check_graph(responses, graph, gold, engine)
    for warning in find_doubts(chosen.comparison_, responses, type(chosen).__name__, gold is not None):
        warnings.warn(warning, stacklevel=2)
    return chosen


def as_graph(graph: Any, responses: Responses) -> Graph:
    """Return a graph over these items from whatever describes one."""
    if isinstance(graph, Graph):
        return graph
    if issparse(graph):
        return Graph.from_scipy(graph, items=responses.items)
    if hasattr(graph, "nodes") and callable(getattr(graph, "edges", None)):
        return Graph.from_networkx(graph)
    return Graph.from_frame(open_path(graph), items=responses.items)


def choose_model(model: str | Model, responses: Responses, graph: Graph | None = None) -> Model:
    """Return an unfitted model: the one named, or a copy of the one given."""
    if isinstance(model, Model):
        return model.fresh()
    if model == "auto":
        alone = "dawid-skene" if responses.sequences is None else "hidden-markov"
        model = alone if graph is None else "markov-field"
    if not isinstance(model, str) or model not in MODELS:
        known = ", ".join(repr(name) for name in ("auto", *MODELS))
        raise parameter_error("model", "fuse", f"one of {known}, or a model", model)
    if model == "hidden-markov":
        return HiddenMarkov(transitions="bio" if looks_iob2(responses.classes) else "free")
    return MODELS[model]()


def find_doubts(
    comparison: Comparison | None, responses: Responses, name: str, has_gold: bool
) -> list[ConsilienceWarning]:
    """Return what the user should know before believing the labels."""
    doubts: list[ConsilienceWarning] = [DataWarning(text) for text in [doubt_classes(responses)] if text]
    if responses.n_items > 1 and not responses.silence_counts and np.diff(responses.offsets).max() == 1:
        doubts.append(
            DataWarning(
                "Each item has one answer: nobody checks anybody, and confidence rests on what the model assumes. Give "
                "several workers the same items."
            )
        )
    elif comparison is not None and not comparison.better:
        doubts.append(ConsilienceWarning(doubt_gain(comparison, name, has_gold)))
    return doubts


def doubt_gain(comparison: Comparison, name: str, has_gold: bool) -> str:
    """Say that the fit is no better than the vote, and why that is thought."""
    look = "See worker_report()." if has_gold else "See worker_report(), or give gold= answers."
    if not comparison.tested:
        return f"There are too few answers to test whether {name} is better than majority vote. {look}"
    if comparison.verdict == "worse":
        return (
            f"{name} predicts hidden answers worse than majority vote does ({comparison.describe_gain()}): prefer the "
            f"vote. {look}"
        )
    return (
        f"{name} and majority vote predict hidden answers alike: the difference is within two standard errors "
        f"({comparison.describe_gain()}), so the vote may be as good. {look}"
    )


def doubt_classes(responses: Responses) -> str:
    """Say that a class nobody said and a label that is no class may be one and the same; empty if there are none."""
    unsaid = responses.classes[responses.label_of_class < 0].tolist()
    left_out = responses.labels[responses.class_of_label < 0].tolist()
    if not unsaid or not left_out or responses.silence_counts:
        return ""
    texts = {str(label).strip().lower(): label for label in left_out}
    close = {
        name: texts[found]
        for name in unsaid
        for found in difflib.get_close_matches(str(name).strip().lower(), texts, n=1)
    }
    hint = "".join(f" Did you mean {label!r} by {name!r}?" for name, label in list(close.items())[:3])
    n_lost = int((responses.class_of_label[responses.label] < 0).sum())
    verb = "is no class" if len(left_out) == 1 else "are no classes"
    return (
        f"Nobody said {listing(unsaid)}, which classes= names, while {listing(left_out)} ({plural(n_lost, 'answer')}) "
        f"{verb}.{hint}"
    )
