"""Updates: more answers, known labels and edges for a fitted model.

In an update all answers are joined (see `consilience.answers.joining`). Calibration, the choice of a coupling and the
search for copies take longer than the EM loop, and a few more answers hardly change them. So they are kept while fewer
than `SHARE` of the answers have come or changed since the last whole fit.

With very many answers (`LARGE` in `consilience.inference.starts`), the loop also starts from what was learned until
then: the parameters of workers and structure, and the pseudo-counts of the prior. It ends where a fit to all answers
ends, after a few iterations. With fewer answers it starts as any fit does. That is fast, too, and EM ends in a maximum
near its start: few answers have several, and a loop that always goes on stays at a poor one however many answers come.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import Column, Indices, lookup, to_column
from ..answers.gold import Gold, match_gold
from ..answers.joining import (
    NOTHING,
    Joined,
    check_join_policy,
    drop_workers,
    join_responses,
    no_answers,
    read_further,
)
from ..answers.tables import open_frame
from ..checks.register import judge
from ..engines import open_engine
from ..errors import InputError, ParameterError, listing, plural
from ..formats.reading import open_paths
from ..formats.sources import as_graph, find_source, open_source, open_table
from ..inference.estimator import LatentEstimator
from ..inference.sources import Source
from ..kinds import find_kind
from ..kinds.base import TABLE, AnyKind
from ..results.comparison import explain_move
from ..results.fitting import align, fit_source
from ..results.result import Result
from .base import Model
from .opening import open_answers

# A model is fitted from the beginning when so many of the answers have come or changed.
SHARE = 0.1


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


class JoinedBatch(NamedTuple):
    """The answers of a fit and new ones, with their known labels."""

    answers: Answers
    joined: Joined
    gold: Gold | None
    n_gold: int  # known labels that are new, or other ones
    roles: Mapping[str, str]  # the column of the new table that played each role


def update_model(model: Model, responses: object, graph: object, gold: object, engine: object, duplicates: str) -> None:
    """Add answers, known labels and edges to a fitted model, and fit it to all; see `Model.update`."""
    if responses is None and graph is None and gold is None:
        raise ParameterError("There is nothing to add.", "Give new answers, known labels or edges.")
    before, old = model.result_, check_answers(model.result_)
    model._check()
    r, joined, known, n_gold, roles = join_batch(model, responses, gold, duplicates)
    if before.given.graph is not None:
        edges = before.given.graph.aligned_with(old.items)
        graph = edges.aligned_with(r.items) if graph is None else edges.joined_with(as_graph(graph, r), r.items)

    # What is kept of the fit before.
    source = Source(r, known, task=before.task)
    n_changes = before.n_changes + joined.n_changed
    stays = isinstance(model, LatentEstimator) and n_changes < SHARE * r.n_responses and not n_gold
    once = before.by_fuse or before.copies_count_once
    asked: dict[str, Any] = {"count_copies_once": once, "source_kind": before.source_kind}
    if stays:
        place = lookup(r.workers, to_column(before.names.workers))
        groups = [sorted(place[group][place[group] >= 0].tolist()) for group in before.copies]
        asked |= {"copies": sorted(group for group in groups if len(group) > 1), "n_changes": n_changes}
        if before.calibrated is not None and before.calibrated.powers and not before.by_fuse:
            asked["kept"] = before.calibrated
    links = align(model, r, graph)
    changed: dict[str, Any] = {}
    with open_engine(engine) as opened:
        going_on = replace(source, before=before) if stays else source
        found = fit_source(model, going_on, links, opened, **asked)
        found = replace(found, scale_check=before.scale_check, soft_check=before.soft_check)
        if before.by_fuse:
            # Fits that check the result start anew: what was found before would confirm itself.
            found, changed = judge(model, found, source, links, opened)

    # What has changed: the items that were there, and have another label now.
    then, now = before.labels, found.labels
    code = lookup(now.classes, to_column(then.classes))[then.codes]
    place = np.flatnonzero(code != now.codes[joined.item])
    rows = joined.item[place]
    columns: dict[str, Any] = {
        "label_before": then.values[place],
        "label": now.values[rows],
        "confidence_before": then.confidence[place],
        "confidence": now.confidence[rows],
        "new_answers": joined.n_new[rows],
    }
    compared, after = before.comparison, found.comparison
    update = Update(
        joined.n_added,
        joined.n_corrected,
        joined.n_retracted,
        joined.n_repeated,
        joined.n_new_items,
        joined.n_new_workers,
        int((lookup(old.labels, to_column(r.labels)) < 0).sum()),
        n_gold,
        len(rows),
        stays,
        now.take(rows) | {name: to_column(values) for name, values in columns.items()},
        None if compared is None or after is None else explain_move(compared, after),
        roles,
    )
    found = replace(found, update=update, blocked=before.blocked, n_blocked=before.n_blocked)
    model.set_params(**changed)._adopt(found)


def join_batch(model: Model, source: object, gold: object, duplicates: str) -> JoinedBatch:
    """The answers of a fitted model with a batch of new ones, and all known labels."""
    before, old = model.result_, check_answers(model.result_)
    check_join_policy(duplicates)
    new, retracted, task = read_batch(source, old, duplicates, before.task)
    refuse(task.no_update)
    if before.blocked is not None:
        blocked = lookup(new.workers, to_column(before.blocked))
        new = drop_workers(new, blocked[blocked >= 0])
    joined = join_responses(old, new, duplicates, retracted)
    r = model._prepare(joined.responses)
    known, n_gold = join_gold(before, joined, r, new.gold if gold is None else gold)
    return JoinedBatch(r, joined, known, n_gold, new.columns)


def check_answers(found: Result) -> Answers:
    """The answers of a fit, if it can go on."""
    refuse(found.task.no_update)
    if found.given.has_priors or found.guidance is not None:
        raise ParameterError(
            "This model was fitted with features or priors of items, which it does not keep.",
            "Fit again, with those of all items.",
        )
    return found.answers


def refuse(refusal: tuple[str, str] | None) -> None:
    """Raise an error if a task cannot do something."""
    if refusal is not None:
        raise InputError(*refusal)


def read_batch(
    source: object, old: Answers, duplicates: str, like: AnyKind = TABLE
) -> tuple[Answers, Indices, AnyKind]:
    """New answers in any form, those that they retract, and their task; `like` is the task of the fit."""
    if source is None:
        return no_answers(old), NOTHING, TABLE
    if like.reading() and find_kind(source) is None:
        roles = {role: name for role, name in old.columns.items() if role in ("item", "worker", "label")}
        source = open_answers(source, **like.reading(), **roles)
    form = None
    if find_kind(source) is None and isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if find_source(path) is not None:  # of an annotation tool
            source = open_source(path, gold=False, duplicates=duplicates)
        else:
            source, form = open_table(path)
    kind = find_kind(source)
    if kind is None:
        return *read_further(open_frame(source), old, duplicates, form), TABLE
    task, answers = kind.pose(like.adapt(source) if isinstance(source, like.brought) else source)
    return answers, NOTHING, task


def read_like(model: Model, source: object) -> Answers:
    """Other answers, read as those of the fit were, as far as the model has them."""
    old = model.result_.given.answers
    if old is None:
        return model._read(source)[1]
    new = read_batch(source, old, "error", model.result_.task)[0]
    if old.silence_counts and not new.silence_counts:
        new = replace(new, background=old.background).with_classes(old.classes)
    return model._read(new)[1]


def join_gold(before: Result, joined: Joined, r: Answers, gold: object) -> tuple[Gold | None, int]:
    """Old and new known labels, and how many are new or other ones; of two for one item the new one holds."""
    spread = before.task.spread_known(open_paths(gold), before.answers.columns)
    new, old, classes = match_gold(spread, r, r.classes), before.given.gold, before.names.classes
    if old is None:
        return new, 0 if new is None else int((new.codes >= 0).sum())
    place = lookup(r.classes, to_column(classes))
    known = old.codes >= 0
    lost = np.unique(old.codes[known][place[old.codes[known]] < 0])
    if len(lost):
        raise InputError(
            f"Nobody says {listing(classes[lost].tolist())} any more, which is a known label of some items.",
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
