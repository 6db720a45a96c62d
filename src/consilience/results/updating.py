"""Fits that go on: answers, known labels and edges that come later, added to those that a model was fitted to.

All answers are joined (see `consilience.answers.joining`). Calibration, the choice of a coupling and the search for
copies take longer than the EM loop, and a few more answers hardly change them. So they are kept while fewer than
`SHARE` of the answers have come or changed since the last whole fit.

From `LARGE` answers on, the loop also starts from what was learned until then: the parameters of workers and structure,
and the pseudo-counts of the prior. It ends where a fit to all answers ends, after a few iterations. With fewer answers
it starts as any fit does. That is fast, too, and EM ends in a maximum near its start: few answers have several, and a
loop that always goes on stays at a poor one however many answers come.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Column, Values, to_column
from ..answers.frames import open_frame
from ..answers.further_answers import no_answers, read_further, tell_duplicates
from ..answers.gold import Gold, match_gold
from ..answers.graph import Graph
from ..answers.joining import NOTHING, Joined, Retracted, check_join_policy, join_responses
from ..answers.responses import Responses
from ..answers.vocabulary import lookup
from ..api import judge
from ..checks.comparison import explain_move
from ..engines import open_engine
from ..errors import InputError, ParameterError, listing, plural
from ..formats.reading import open_paths
from ..formats.sources import as_graph, find_source, open_source, open_table
from ..kernels.types import Floats
from ..models.inputs import as_responses
from ..models.latent import LatentModel
from ..models.parameters import tell_news
from ..models.predicting import GoingOn, PredictingModel
from ..storage.answers import StoredResponses
from ..tasks.masks import Masks
from ..tasks.spans import Spans

# A model is fitted from the beginning when so many of the answers have come or changed.
SHARE = 0.1
# With so many answers, the loop starts from what was learned.
LARGE = 500_000


class Update(NamedTuple):
    """What an update brought.

    Attributes
    ----------
    n_answers : int
        Answers that were added.
    n_corrected, n_retracted, n_repeated : int
        Answers that replaced others, that were retracted, and that were there already.
    n_new_items, n_new_workers, n_new_labels : int
        Items, workers and labels that were not there.
    n_gold : int
        Items whose known label is new, or another one.
    n_changed : int
        Items that were there, and have another label now.
    kept : bool
        Whether the power of probabilities, a coupling that is learned and groups of copies were kept.
    columns : dict
        The columns of the table of changes; see `changes`.
    verdict : str or None
        Of a model from `consilience.fuse`: in words, whether the verdict is another one, and why.
    roles : dict
        The column of the new table that played each role.
    """

    n_answers: int
    n_corrected: int
    n_retracted: int
    n_repeated: int
    n_new_items: int
    n_new_workers: int
    n_new_labels: int
    n_gold: int
    n_changed: int
    kept: bool
    columns: dict[str, Column]
    verdict: str | None
    roles: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Update({self.describe()})"

    def describe(self) -> str:
        """Return in words what is new, and how many labels have changed."""
        return f"{self.describe_news()}; {plural(self.n_changed, 'label')} changed"

    def describe_news(self) -> str:
        """Return in words what is new."""
        parts = [
            plural(self.n_answers, "new answer"),
            *([f"{self.n_corrected:,} corrected"] if self.n_corrected else []),
            *([f"{self.n_retracted:,} retracted"] if self.n_retracted else []),
            *([f"{self.n_repeated:,} there already"] if self.n_repeated else []),
            *([plural(self.n_new_items, "new item")] if self.n_new_items else []),
            *([plural(self.n_new_workers, "new worker")] if self.n_new_workers else []),
            *([plural(self.n_new_labels, "new label")] if self.n_new_labels else []),
            *([plural(self.n_gold, "new known label")] if self.n_gold else []),
        ]
        return ", ".join(parts)


class Before(NamedTuple):
    """The labels before an update."""

    classes: Values
    codes: NDArray[np.int64]
    confidence: Floats


def update_model(model: PredictingModel, responses: Any, graph: Any, gold: Any, engine: Any, duplicates: str) -> None:
    """Add answers, known labels and edges to a fitted model, and fit it to all; see `PredictingModel.update`."""
    old = check_answers(model)
    check_join_policy(duplicates)
    if responses is None and graph is None and gold is None:
        raise ParameterError("There is nothing to add.", "Give new answers, known labels or edges.")
    new, retracted = read_batch(responses, old, duplicates)
    joined = join_responses(old, new, duplicates, retracted)
    r = model._prepare(joined.responses)
    known, n_gold = join_gold(model, joined, r, new.gold if gold is None else gold)
    links = join_graph(model, r, graph)
    fused, compared = "comparison_" in model.__dict__, getattr(model, "comparison_", None)
    before = Before(model.classes_, model._label_codes, model._confidence())
    going_on, copies = choose_way(model, joined, r, n_gold, fused)
    work = copy(model)  # an update that is interrupted leaves the model as it was
    work._going_on = going_on
    with tell_news(model, r), open_engine(engine) as opened:
        work._fit(r, links, known, opened, copies, count_copies_once=fused or model.copies_count_once_)
        if fused:
            work = judge(work, r, links, known, opened)
    work._going_on = None
    changed = list_changes(work, joined, before)
    after = getattr(work, "comparison_", None)
    verdict = None if compared is None or after is None else explain_move(compared, after)
    counts = (joined.n_added, joined.n_corrected, joined.n_retracted, joined.n_repeated)
    n_new_labels = int((lookup(old.labels, to_column(r.labels)) < 0).sum())
    sizes = (joined.n_new_items, joined.n_new_workers, n_new_labels, n_gold, len(changed["new_answers"]))
    work._update = Update(*counts, *sizes, going_on is not None, changed, verdict, new.columns)
    model.__dict__ = work.__dict__


def check_answers(model: PredictingModel) -> Responses:
    """Return the answers of a fit, if it can go on."""
    model._check_fitted()
    if model._totals is not None:
        raise ParameterError(
            "A fit to answers on disk cannot go on.",
            "Fit again, to all files. Or fit a new model batch by batch, with partial_fit.",
        )
    if model._passages is not None:
        raise InputError(
            "A fit to spans of texts cannot go on.", "Fit again, to the spans of all workers, with all known spans."
        )
    if model._pictures is not None:
        raise InputError(
            "A fit to masks cannot go on.", "Fit again, to the masks of all readers, with all known masks."
        )
    if isinstance(model, LatentModel) and (model._has_priors or model.feature_findings_ is not None):
        raise ParameterError(
            "This model was fitted with features or priors of items, which it does not keep.",
            "Fit again, with those of all items.",
        )
    return model.responses_


def read_batch(source: Any, old: Responses, duplicates: str) -> tuple[Responses, Retracted]:
    """Return new answers in any form, and those that they retract."""
    if source is None:
        return no_answers(old), NOTHING
    if isinstance(source, StoredResponses):
        raise ParameterError("New answers must be in memory.", "Read them with read_responses.")
    if isinstance(source, (Responses, Spans, Masks)):
        return as_responses(source), NOTHING
    if not isinstance(source, (str, os.PathLike)):
        return read_further(open_frame(source), old, duplicates)
    path = os.fspath(source)
    if find_source(path) is not None:  # of an annotation tool
        with tell_duplicates():
            return as_responses(open_source(path, gold=False, duplicates=duplicates)), NOTHING
    table, form = open_table(path)
    return read_further(table, old, duplicates, form)


def read_like(model: PredictingModel, source: Any) -> Responses:
    """Return other answers, read as those of the fit were, as far as the model has them."""
    old = model._answers
    if old is None:
        return model._read(source)
    new, _ = read_batch(source, old, "error")
    if old.silence_counts and not new.silence_counts:
        new = replace(new, background=old.background).with_classes(old.classes)
    return model._read(new)


def join_gold(model: PredictingModel, joined: Joined, r: Responses, gold: Any) -> tuple[Gold | None, int]:
    """Return old and new known labels, and how many are new or other ones; of two for one item the new one holds."""
    new, old = match_gold(open_paths(gold), r, r.classes), model._gold
    if old is None:
        return new, 0 if new is None else int((new.codes >= 0).sum())
    place = lookup(r.classes, to_column(model.classes_))
    known = old.codes >= 0
    lost = np.unique(old.codes[known][place[old.codes[known]] < 0])
    if len(lost):
        raise InputError(
            f"Nobody says {listing(model.classes_[lost].tolist())} any more, which is a known label of some items.",
            "Fit again, with the classes named.",
        )
    codes, judging = np.full(r.n_items, -1, np.int32), np.zeros(r.n_items, bool)
    codes[joined.item[known]] = place[old.codes[known]]
    judging[joined.item] = old.judging
    if new is None:
        return Gold(codes, judging), 0
    told = new.codes >= 0
    n_new = int((told & (new.codes != codes)).sum())
    return Gold(np.where(told, new.codes, codes), np.where(told, new.judging, judging)), n_new


def join_graph(model: PredictingModel, r: Responses, graph: Any) -> Graph | Any:
    """Return the old graph with further edges, over all items; what is given to a model without one stays as it is."""
    if model._graph is None:
        return graph
    old = model._graph.aligned_with(model.responses_.items)
    return old.aligned_with(r.items) if graph is None else old.joined_with(as_graph(graph, r), r.items)


def choose_way(
    model: PredictingModel, joined: Joined, r: Responses, n_gold: int, fused: bool
) -> tuple[GoingOn | None, list[list[int]] | None]:
    """Return how the fit goes on, with the groups of copies; None if it begins anew, or nothing is expensive."""
    if not isinstance(model, LatentModel):
        return None, None
    n_changes = model._n_changes + joined.n_changed
    if n_changes >= SHARE * r.n_responses or n_gold:
        return None, None
    going_on = GoingOn(bool(model._powers) and not fused, r.n_responses >= LARGE, n_changes)
    place = lookup(r.workers, to_column(model.workers_))
    groups = [sorted(place[group][place[group] >= 0].tolist()) for group in model._copies]
    return going_on, sorted(group for group in groups if len(group) > 1)


def list_changes(model: PredictingModel, joined: Joined, before: Before) -> dict[str, Column]:
    """Return the columns of a table of the items that were there, and have another label now."""
    code = lookup(model.classes_, to_column(before.classes))[before.codes]
    old = np.flatnonzero(code != model._label_codes[joined.item])
    rows = joined.item[old]
    columns: dict[str, Column] = {name: column.take(rows) for name, column in model._keys.items()}
    labels = {
        "label_before": before.classes[before.codes[old]],
        "label": model.classes_[model._label_codes[rows]],
        "confidence_before": before.confidence[old],
        "confidence": model._confidence()[rows],
        "new_answers": joined.n_new[rows],
    }
    return columns | {name: to_column(values) for name, values in labels.items()}
