"""More answers for a fitted model: updates, which fit all answers again, and batches of a stream, which are not kept.

What is kept of the batches are statistics that add up, and nothing that grows with the number of answers. With C the
statistics of all batches so far (expected counts of answers, of classes and of transitions), the next batch is fitted
as if C were counted with it, and C becomes C plus the statistics of that batch. So a worker's matrix moves by the share
of new answers among all of theirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Column, Indices, lookup, to_column
from ..answers.gold import Gold, match_gold
from ..answers.graph import Graph
from ..answers.joining import NOTHING, Joined, drop_workers, grow, join_responses, read_further
from ..answers.tables import open_frame
from ..checks.register import warn_of_findings
from ..engines import open_engine
from ..errors import InputError, NotFittedError, ParameterError, Sentence, plural, warn_of
from ..formats.reading import open_paths
from ..formats.sources import as_graph, find_source, open_source, open_table
from ..inference.em import expect_from_votes
from ..inference.estimator import LatentEstimator, Plan, renew
from ..inference.observations import Observations
from ..inference.structures import Statistics
from ..inference.workers.base import make_pair
from ..kernels import Floats
from ..kinds import find_kind
from ..kinds.base import TABLE, AnyKind
from ..options import check
from ..results.comparison import explain_move
from ..results.fitting import align, check_silence, fit_model
from ..results.intervals import Sums
from ..results.result import FitResult, FusionChecks, Given, Result
from .base import Model, compare_fused, complete
from .latent import Earlier
from .opening import open_answers


class Update(NamedTuple):
    """The changes that an update made.

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
    columns: dict[str, Column]
    verdict: str | None
    roles: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Update({self.describe()})"

    def describe(self) -> str:
        """The changes in words: what is new, and how many labels have changed."""
        return f"{self.describe_news()}; {plural(self.n_changed, 'label')} changed"

    def describe_news(self) -> str:
        """How many answers, items, workers and labels are new, in words."""
        done = {"corrected": self.n_corrected, "retracted": self.n_retracted, "there already": self.n_repeated}
        new = {
            "new item": self.n_new_items,
            "new worker": self.n_new_workers,
            "new label": self.n_new_labels,
            "new known label": self.n_gold,
        }
        parts = [plural(self.n_answers, "new answer")]
        parts += [f"{n:,} {words}" for words, n in done.items() if n]
        parts += [plural(n, words) for words, n in new.items() if n]
        return ", ".join(parts)


def update_model(model: Model, responses: object, graph: object, gold: object, engine: object, duplicates: str) -> None:
    """Add answers, known labels and edges to a fitted model, and fit it to all; see `Model.update`."""
    if responses is None and graph is None and gold is None:
        raise ParameterError("There is nothing to add.", "Give new answers, known labels or edges.")
    before, old = model.result_, check_answers(model.result_)
    model._check()
    observations, joined, n_gold, roles = join_batch(model, responses, gold, duplicates)
    r = observations.responses
    links = join_edges(model, r, graph)
    once = before.fusion_checks is not None or before.given.copies_count_once
    fitted: Model = model
    compared: FusionChecks | None = None
    with open_engine(engine) as opened:
        asked: dict[str, Any] = {"source_kind": before.given.source_kind, "chosen": before.given}
        fit = fit_model(model, observations, links, opened, count_copies_once=once, **asked)
        if before.fusion_checks is not None:
            fitted, fit, compared = compare_fused(model, fit, observations, links, opened)

    # What has changed: the items that were there, and have another label now.
    then, now = before.labels, fit.labels
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
    earlier, after = before.comparison, None if compared is None else compared.comparison
    update = Update(
        int(joined.n_new.sum()) - joined.n_corrected,
        joined.n_corrected,
        joined.n_retracted,
        joined.n_repeated,
        r.n_items - old.n_items,
        joined.n_new_workers,
        int((lookup(old.labels, to_column(r.labels)) < 0).sum()),
        n_gold,
        len(rows),
        now.take(rows) | {name: to_column(values) for name, values in columns.items()},
        None if earlier is None or after is None else explain_move(earlier, after),
        roles,
    )
    result = complete(fitted, fit, compared, update)
    if compared is not None:
        warn_of_findings(result)
    model.set_params(**fitted.get_params())._adopt(result)


def join_batch(
    model: Model, source: object, gold: object, duplicates: str
) -> tuple[Observations, Joined, int, Mapping[str, str]]:
    """All answers and known labels of a fitted model and a batch of new ones.

    Also how they were joined, how many known labels are new, and the column of the new table that played each role.
    """
    before, old = model.result_, check_answers(model.result_)
    check("duplicates", duplicates, "update")
    new, retracted, kind = read_batch(source, old, duplicates, before.kind)
    refuse(kind.no_update)
    if before.given.blocked is not None:
        blocked = lookup(new.workers, to_column(before.given.blocked))
        new = drop_workers(new, blocked[blocked >= 0])
    joined = join_responses(old, new, duplicates, retracted)
    r = model._prepare(joined.responses)
    known, n_gold = join_gold(before, joined, r, new.gold if gold is None else gold)
    return Observations(r, known, kind=before.kind, teach=before.given.teach), joined, n_gold, new.columns


def join_edges(model: Model, r: Answers, graph: object = None) -> Graph | None:
    """The edges of a fitted model and new ones, between all items."""
    before = model.result_
    if before.given.graph is not None:
        edges = before.given.graph.aligned_with(before.answers.items)
        graph = edges.aligned_with(r.items) if graph is None else edges.joined_with(as_graph(graph, r), r.items)
    return align(model, r, graph)


def check_answers(result: Result) -> Answers:
    """The answers of a fit, if it can continue."""
    refuse(result.kind.no_update)
    if result.given.has_priors or result.feature_result is not None:
        raise ParameterError(
            "This model was fitted with features or priors of items, which it does not keep.",
            "Fit again, with those of all items.",
        )
    return result.answers


def refuse(refusal: tuple[str, str] | None) -> None:
    """Raise an error if a kind cannot do something."""
    if refusal is not None:
        raise InputError(*refusal)


def read_batch(
    source: object, old: Answers, duplicates: str, like: AnyKind = TABLE, joins: bool = True
) -> tuple[Answers, Indices, AnyKind]:
    """New answers in any form, those that they retract if they join, and their kind; `like` is the kind of the fit."""
    if source is None:
        return old.about(NOTHING), NOTHING, TABLE
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
    brought = find_kind(source)
    if brought is None:
        return *read_further(open_frame(source), old, duplicates, form, joins), TABLE
    kind, answers = brought.to_answers(like.adapt(source) if isinstance(source, like.brought) else source)
    return answers, NOTHING, kind


def read_like(model: Model, source: object) -> Answers:
    """Other answers, read as those of the fit were, as far as the model has them."""
    old = model.result_.given.answers
    if old is None or source is None or isinstance(source, Answers):
        return model._read(source)[1]
    new = read_batch(source, old, "error", model.result_.kind, joins=False)[0]
    if old.silence_counts and not new.silence_counts:
        new = replace(new, background=old.background).with_classes(old.classes)
    return model._read(new)[1]


def join_gold(before: Result, joined: Joined, r: Answers, gold: object) -> tuple[Gold | None, int]:
    """Old and new known labels, and how many are new or other ones; of two for one item the new one holds."""
    spread = before.kind.spread_known(open_paths(gold), before.answers.columns)
    new, old = match_gold(spread, r, r.classes), before.given.gold
    if old is None:
        return new, 0 if new is None else int((new.codes >= 0).sum())
    place = np.append(lookup(r.classes, to_column(before.names.classes)), -1)  # -1 is what is not known
    codes, judging = np.full(r.n_items, -1, np.int32), np.zeros(r.n_items, bool)
    codes[joined.item], judging[joined.item] = place[old.codes], old.judging
    chance = np.full(r.n_items, np.nan)
    if old.inclusion is not None:
        chance[joined.item] = old.inclusion
    if new is None:
        return Gold(codes, judging, None if old.inclusion is None else np.nan_to_num(chance)), 0
    is_new = new.codes >= 0
    n_new = int((is_new & (new.codes != codes)).sum())
    judging = np.where(is_new, new.judging, judging)
    chance = np.where(is_new, np.nan if new.inclusion is None else new.inclusion, chance)
    unknown = np.isnan(chance[judging])
    if unknown.any() and not unknown.all():
        problem = "Of only one of two samples it is known with which probability each item was drawn."
        remedy = "Give this for both, or a column random that is false where an item was not drawn at random."
        raise InputError(problem, remedy, keyword="gold")
    inclusion = None if unknown.all() else np.nan_to_num(chance)
    return Gold(np.where(is_new, new.codes, codes), judging, inclusion), n_new


def fit_batch(
    model: LatentEstimator, before: Result | None, r: Answers, kind: AnyKind, gold: object, engine: object
) -> FitResult:
    """Fit one more batch, with the statistics of all `before`, if there were any; `kind` is what its items are."""
    from ..kernels.answers import SMALLEST

    if before is not None:
        if before.teaching is not None and before.teaching.chosen != "as they are":
            warn_of(
                "What known labels taught this model about its workers is dropped: batches do not learn it.",
                "To keep it, use update, which fits all answers again.",
            )
        earlier_sums, names = check_batch(model, before, r), before.names
        r = grow(r, names.workers, names.labels, names.classes, names.positions)
    r = model._prepare(r)
    observations = Observations(r, match_gold(open_paths(gold), r, r.classes), kind=kind, teach=False)
    model._check_size(r, None)
    if before is None:
        with open_engine(engine) as opened:
            plan = model._plan(observations, None, opened)
            problem = plan.problem
            nothing = np.zeros(problem.workers.table_shape)
            earlier = Statistics(nothing, problem.structure.one_of_each(r.label_of_class >= 0))
            plan = plan._replace(problem=replace(problem, earlier=earlier))
            given = Given(gold=observations.gold, n_batches=1)
            first: FitResult = model._learn(observations, None, opened, given, plan=plan)
        return first

    # The workers, labels and classes of those before, among those of now.
    pairs = (r.workers, names.workers), (r.labels, names.labels), (r.classes, names.classes)
    worker, label, klass = (lookup(new, to_column(old)) for new, old in pairs)
    copies = [worker[group].tolist() for group in before.given.copies]
    used = observations.count_once(copies if before.given.copies_count_once else [])
    named = names.classes[lookup(names.labels, to_column(names.classes)) >= 0]
    new_classes = (r.label_of_class >= 0) & (lookup(named, to_column(r.classes)) < 0)
    with open_engine(engine) as opened:
        # A coupling is learned from the first batch, and kept.
        settled = renew(model, coupling=before.coupling) if model._learns_coupling else model
        problem = settled._make_problem(used, None, opened)
        # The statistics of earlier batches.
        past = embed_past(earlier_sums, worker, r.n_workers, klass, r.n_classes)
        assert past.summary is not None
        counts = problem.workers.embed_counts(before.estimates.counts, before.estimates.further, worker, (label, klass))
        if not problem.weighted:  # the M-step takes these for 0, and the objective would be minus infinity
            counts[np.abs(counts) < SMALLEST * problem.n_responses] = 0.0
        earlier = Statistics(counts, past.summary + problem.structure.one_of_each(new_classes))
        problem, n_earlier = replace(problem, earlier=earlier), float(counts.sum())
        if problem.workers.silent:
            problem.workers.count_silence(counts, earlier.summary.mass)
        # It starts from what earlier batches teach; with new classes, or more answers than before, also from votes.
        prior, smoothing = problem.prior, before.course.smoothing
        if prior.parts is not None and smoothing is not None and min(smoothing) > 0:
            prior = make_pair(prior.parts, smoothing)
        starts = {"earlier": problem.maximise(earlier, prior)}
        if new_classes.any() or used.responses.weights().sum() > n_earlier:
            starts["majority"] = problem.maximise(expect_from_votes(problem), prior)
        plan = Plan(problem, starts, before.course.coupling_scores if model._learns_coupling else [])
        n_answers = np.zeros(r.n_workers, np.int64)
        n_answers[worker] = before.n_answers
        given = Given(
            gold=observations.gold,
            copies=copies,
            copies_count_once=before.given.copies_count_once,
            n_batches=max(before.given.n_batches, 1) + 1,  # what `fit` learned from is the first one
        )
        batches = Earlier(before.calibrated, past, n_answers)
        further: FitResult = model._learn(used, None, opened, given, plan=plan, earlier=batches)
    return further


def check_batch(model: LatentEstimator, before: Result, r: Answers) -> Sums:
    """The sums over the answers of a result, if a model can continue from it with these answers."""
    if before.feature_result is not None and before.feature_result.findings.used:
        raise ParameterError(
            "This model was fitted with features, which batches do not have.",
            "Start from a model without them.",
            keyword="features",
        )
    kind = before.estimates.worker_model_name
    if kind != model.workers:
        raise ParameterError(
            f"This model was fitted with workers={kind!r}, whose counts are of another kind than those of "
            f"{model.workers!r}.",
            Sentence("Keep {workers}.", workers=kind),
            keyword="workers",
        )
    if before.past is None:
        raise NotFittedError("This model does not hold what further batches need.", "Fit the model again.")
    check_silence(model, before, r)
    return before.past


def embed_past(past: Sums, worker: NDArray[np.int64], n_workers: int, klass: NDArray[np.int64], n_classes: int) -> Sums:
    """The same for more workers and classes, whose indices among these are given."""

    def embed(array: Floats, n_before: int, place: NDArray[np.int64], size: int) -> Floats:
        """An array whose axes, but for the first `n_before`, are workers or classes."""
        before, n_axes = array.shape[:n_before], array.ndim - n_before
        embedded = np.zeros((*before, *(size,) * n_axes))
        embedded[np.ix_(*map(np.arange, before), *(place,) * n_axes)] = array
        return embedded

    classes, both = (klass, n_classes), (np.append(klass, n_classes + klass), 2 * n_classes)
    assert past.summary is not None
    counts = {name: array for name, array in vars(past.summary).items() if name != "log_normaliser"}
    summary: dict[str, Any] = {name: embed(array, 0, *classes) for name, array in counts.items()}
    return past._replace(
        chances=embed(past.chances, 1, worker, n_workers),
        judged=embed(past.judged, 1, worker, n_workers),
        scores=embed(past.scores, 1, *both) if past.scores.size else past.scores,
        lack=embed(past.lack, 0, *classes),
        moments=embed(past.moments, 1, *classes),
        meant=embed(past.meant, 0, *classes),
        summary=replace(past.summary, log_normaliser=0.0, **summary),
    )
