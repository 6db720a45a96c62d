"""A stream of answers, fitted in batches.

What is kept of the batches are statistics that add up, and nothing that grows with the number of answers. With C the
statistics of all batches so far (expected counts of answers, of classes and of transitions), the next batch is fitted
as if C were counted with it, and C becomes C plus the statistics of that batch. So a worker's matrix moves by the share
of new answers among all of theirs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import lookup, to_column
from ..answers.gold import match_gold
from ..answers.joining import grow
from ..engines import open_engine
from ..errors import (
    NotFittedError,
    ParameterError,
    Sentence,
)
from ..formats.reading import open_paths
from ..inference.em import expect_from_votes
from ..inference.estimator import LatentEstimator, Plan
from ..inference.sources import Source
from ..inference.structures import Statistics
from ..inference.workers.priors import make_pair
from ..kernels import Floats
from .intervals import Past
from .prediction import check_silence
from .result import Given, Result


def fit_first(model: LatentEstimator, r: Answers, gold: object, engine: object) -> Result:
    """What is found in the first batch."""
    r = model._prepare(r)
    source = Source(r, match_gold(open_paths(gold), r, r.classes))
    model._check_size(r, None)
    with open_engine(engine) as opened:
        plan = model._plan(source, None, opened)
        problem = plan.problem
        nothing = np.zeros((problem.workers.n_rows, r.n_classes))
        earlier = Statistics(nothing, problem.structure.one_of_each(r.label_of_class >= 0))
        plan = plan._replace(problem=replace(problem, earlier=earlier))
        found: Result = model._learn(source, None, opened, plan=plan)
    given = found.given._replace(gold=source.gold)
    return replace(found, given=given, n_batches=1, chance=None, raters=None)


def fit_next(model: LatentEstimator, before: Result, r: Answers, gold: object, engine: object) -> Result:
    """What is found in one more batch and all before."""
    from ..kernels.answers import SMALLEST

    names, learned, past = before.names, before.learned, before.past
    if before.guidance is not None and before.guidance.findings.used:
        raise ParameterError(
            "This model was fitted with features, which batches do not have.",
            "Start from a model without them.",
            keyword="features",
        )
    if learned.kind != model.workers:
        raise ParameterError(
            f"This model was fitted with workers={learned.kind!r}, whose counts are of another kind than those of "
            f"{model.workers!r}.",
            Sentence("Keep {workers}.", workers=learned.kind),
            keyword="workers",
        )
    if past is None:
        raise NotFittedError("This model does not hold what further batches need.", "Fit the model again.")

    # The batch, with the workers, labels and classes of those before.
    check_silence(model, before, r)
    r = model._prepare(grow(r, names.workers, names.labels, names.classes, names.positions))
    source = Source(r, match_gold(open_paths(gold), r, r.classes))
    model._check_size(r, None)
    r = learned.worker_model.read_as_before(r)
    source = replace(source, responses=r)
    pairs = (r.workers, names.workers), (r.labels, names.labels), (r.classes, names.classes)
    worker, label, klass = (lookup(new, to_column(old)) for new, old in pairs)
    copies = [worker[group].tolist() for group in before.copies]
    used = source.count_once(copies) if before.copies_count_once else source
    smoothing, scores = before.course.smoothing, before.coupling_scores
    used = replace(used, before=before)
    named = names.classes[lookup(names.labels, to_column(names.classes)) >= 0]
    new_classes = (r.label_of_class >= 0) & (lookup(named, to_column(r.classes)) < 0)
    with open_engine(engine) as opened:
        problem = model._pose(used, None, opened)
        # The statistics of earlier batches.
        past = embed_past(past, worker, r.n_workers, klass, r.n_classes)
        counts = problem.workers.embed_counts(learned.counts, learned.further, worker, (label, klass))
        if not problem.weighted:  # the M-step takes these for 0, and the objective would be minus infinity
            counts[np.abs(counts) < SMALLEST * problem.n_responses] = 0.0
        earlier = Statistics(counts, past.summary + problem.structure.one_of_each(new_classes))
        problem, own, n_earlier = replace(problem, earlier=earlier), used.responses, float(counts.sum())
        if problem.workers.silent:
            problem.workers.count_silence(counts, earlier.summary.mass)
        # It starts from what earlier batches teach; with new classes, or more answers than before, also from votes.
        prior = problem.prior
        if prior.parts is not None and smoothing is not None and min(smoothing) > 0:
            prior = make_pair(prior.parts, smoothing)
        starts = {"earlier": problem.maximise(earlier, prior)}
        if new_classes.any() or own.weights().sum() > n_earlier:
            starts["majority"] = problem.maximise(expect_from_votes(problem), prior)
        plan = Plan(problem, starts, scores if model._learns_coupling else [])
        found: Result = model._learn(used, None, opened, plan=plan, before=before.calibrated, past=past)
    n_answers = np.zeros(r.n_workers, np.int64)
    n_answers[worker] = before.n_answers
    return replace(
        found,
        n_answers=n_answers + found.n_answers,
        copies=copies,
        copies_count_once=before.copies_count_once,
        given=Given(gold=source.gold),
        n_batches=max(before.n_batches, 1) + 1,  # what `fit` learned from is the first one
    )


def embed_past(past: Past, worker: NDArray[np.int64], n_workers: int, klass: NDArray[np.int64], n_classes: int) -> Past:
    """The same for more workers and classes, whose indices among these are given."""

    def embed(array: Floats, n_before: int, place: NDArray[np.int64], size: int) -> Floats:
        """An array whose axes, but for the first `n_before`, are workers or classes."""
        before, n_axes = array.shape[:n_before], array.ndim - n_before
        embedded = np.zeros((*before, *(size,) * n_axes))
        embedded[np.ix_(*map(np.arange, before), *(place,) * n_axes)] = array
        return embedded

    classes, sums = (klass, n_classes), past.sums
    counts = {name: array for name, array in vars(past.summary).items() if name != "log_normaliser"}
    summary: dict[str, Any] = {name: embed(array, 0, *classes) for name, array in counts.items()}
    both = np.append(klass, n_classes + klass), 2 * n_classes
    return Past(
        replace(past.summary, log_normaliser=0.0, **summary),
        sums._replace(
            chances=embed(sums.chances, 1, worker, n_workers),
            judged=embed(sums.judged, 1, worker, n_workers),
            scores=embed(sums.scores, 1, *both) if sums.scores.size else sums.scores,
            lack=embed(sums.lack, 0, *classes),
            moments=embed(sums.moments, 1, *classes),
            meant=embed(sums.meant, 0, *classes),
        ),
    )
