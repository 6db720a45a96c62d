"""One call from answers to labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..errors import ConsilienceWarning, parameter_error
from ..fitting.em import Progress
from .base import Model
from .comparison import can_compare, compare_with_vote
from .dawid_skene import DawidSkene
from .inputs import as_responses
from .majority_vote import MajorityVote
from .moment_matching import MomentMatching

MODELS: dict[str, type[Model]] = {"majority": MajorityVote, "dawid-skene": DawidSkene, "moments": MomentMatching}


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
    graph : optional
        How items hang together.
    gold : dict, Series or table, optional
        Known labels.
    model : {"auto", "majority", "dawid-skene", "moments"} or Model
        "auto" is `DawidSkene`.
    engine : optional
        Where to work; see `consilience.engines`.
    callback : callable, optional
        Told of each iteration's progress.
    **columns
        Names of columns and the other keywords of `Responses.from_frame`.

    Returns
    -------
    Model
        The fitted model, with `comparison_` against majority vote. There is a warning when the fit does not predict
        hidden answers better than the vote does: then the vote may be as good.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.random.default_rng(0).integers(0, 2, 300)
    >>> good, better, flipped = truth.copy(), truth.copy(), 1 - truth
    >>> good[:60] = 1 - good[:60]
    >>> fused = cs.fuse(cs.Responses.from_matrix(np.stack([good, better, flipped], axis=1)))
    >>> fused.comparison_.n_differ, fused.comparison_.better
    (60, True)
    """
    responses = as_responses(source, **columns)
    chosen = choose_model(model)
    if callback is not None and "callback" in chosen.get_params():
        chosen = chosen.fresh(callback=callback)
    chosen.fit(responses, graph=graph, gold=gold, engine=engine)
    if isinstance(chosen, MajorityVote) or not can_compare(responses):
        return chosen
    chosen.comparison_ = compare_with_vote(chosen, responses, graph, gold)
    if not chosen.comparison_.better:
        warnings.warn(
            f"{type(chosen).__name__} does not predict hidden answers better than majority vote does "
            f"({chosen.comparison_.held_out_gain:+.4f} +- {chosen.comparison_.held_out_error:.4f}): with so few or so "
            "similar workers the vote may be as good. See worker_report(), or give gold= answers.",
            ConsilienceWarning,
            stacklevel=2,
        )
    return chosen


def choose_model(model: str | Model) -> Model:
    """Return an unfitted model: the one named, or a copy of the one given."""
    if isinstance(model, Model):
        return model.fresh()
    if model == "auto":
        return DawidSkene()
    if not isinstance(model, str) or model not in MODELS:
        known = ", ".join(repr(name) for name in ("auto", *MODELS))
        raise parameter_error("model", "fuse", f"one of {known}, or a model", model)
    return MODELS[model]()
