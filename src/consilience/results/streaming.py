"""Results of a stream of answers, batch by batch; see `consilience.results.interval_sums` for what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import to_column
from ..answers.gold import match_gold
from ..answers.joining import grow
from ..answers.responses import Responses
from ..answers.vocabulary import lookup
from ..engines import open_engine
from ..errors import NotFittedError, ParameterError, Python, Sentence
from ..formats.reading import open_paths
from ..inference.em import Parameters, Problem, expect_from_votes, maximise
from ..inference.learned import Before
from ..inference.recipes.base import LatentRecipe, Plan
from ..inference.sources import InMemory
from ..inference.structures.base import Statistics
from ..inference.workers.base import make_pair
from ..kernels.types import Floats
from .fitting import conclude
from .fusion import Fusion, Given, Later
from .interval_sums import Past
from .predicting import check_silence


def fit_first(recipe: LatentRecipe, r: Responses, gold: object, engine: object) -> Fusion:
    """Return what is found in the first batch."""
    r = recipe.prepare(r)
    source = InMemory(r, match_gold(open_paths(gold), r, r.classes))
    recipe.check_size(r, None)
    with open_engine(engine) as opened:
        plan = recipe.plan(source, None, opened)
        problem = plan.problem
        nothing = np.zeros((problem.workers.n_rows, r.n_classes))
        earlier = Statistics(nothing, problem.structure.one_of_each(r.label_of_class >= 0))
        plan = plan._replace(problem=replace(problem, earlier=earlier))
        found = conclude(recipe, source, plan, recipe.run(plan), opened)
    return replace(found, given=found.given._replace(gold=source.gold), n_batches=1)


def fit_next(
    recipe: LatentRecipe, before: Fusion, r: Responses, gold: object, engine: object, half_life: float | None
) -> Fusion:
    """Return what is found in one more batch and all before."""
    past, names = need_past(recipe, before), before.names
    r = recipe.check_answers(r)
    check_silence(recipe, before, r)
    r = recipe.prepare(grow(r, names.workers, names.labels, names.classes))
    source = InMemory(r, match_gold(open_paths(gold), r, r.classes))
    recipe.check_size(r, None)
    worker = lookup(r.workers, to_column(names.workers))
    copies = [worker[group].tolist() for group in before.copies]
    used = source.count_once(copies) if before.copies_count_once else source
    n_answers = np.zeros(r.n_workers, np.int64)
    n_answers[worker] = before.n_answers
    smoothing, scores = before.course.smoothing, before.coupling_scores
    recipe = replace(recipe, before=Before(False, names, before.learned, smoothing, before.coupling, scores))
    with open_engine(engine) as opened:
        problem = recipe.pose(used, recipe.structure_of_batch(used.responses), None, opened)
        past, earlier = carry_over(before, past, r, problem, keep_share(r, half_life))
        problem = replace(problem, earlier=earlier)
        kept = scores if recipe.learns_coupling else []
        plan = Plan(problem, find_starts(before, used.responses, problem), kept)
        found = conclude(recipe, used, plan, recipe.run(plan), opened, past=past)
    return replace(
        found,
        n_answers=n_answers + found.n_answers,
        copying=Later.known(copies),
        copies_count_once=before.copies_count_once,
        given=Given(gold=source.gold),
        n_batches=max(before.n_batches, 1) + 1,  # what `fit` learned from is the first one
    )


def carry_over(before: Fusion, past: Past, r: Responses, problem: Problem, kept: Floats) -> tuple[Past, Statistics]:
    """Return what earlier batches teach about the workers, labels and classes of this one.

    A share `kept` (M,) of what was seen of each worker is not forgotten.
    """
    names, learned = before.names, before.learned
    pairs = (r.workers, names.workers), (r.labels, names.labels), (r.classes, names.classes)
    worker, label, klass = (lookup(new, to_column(old)) for new, old in pairs)
    past = past.embed(worker, r.n_workers, klass, r.n_classes).forget(kept, r.silence_counts)
    counts = problem.workers.embed_counts(learned.counts, learned.further, worker, (label, klass))
    counts *= np.repeat(kept, len(counts) // r.n_workers)[:, None]
    summary = past.summary + problem.structure.one_of_each(find_new_classes(before, r))
    return past, Statistics(drop_tiny(counts, problem), summary)


def find_new_classes(before: Fusion, r: Responses) -> NDArray[np.bool_]:
    """Tell which classes no label has named before."""
    classes = before.names.classes
    named = classes[lookup(before.names.labels, to_column(classes)) >= 0]
    return (r.label_of_class >= 0) & (lookup(named, to_column(r.classes)) < 0)


def need_past(recipe: LatentRecipe, before: Fusion) -> Past:
    """Return what is kept of earlier batches, or say why there is nothing."""
    if not before.in_memory:
        raise ParameterError(
            "This model was fitted to answers on disk, which cannot be followed by a batch.",
            Sentence("Fit all answers with {fit}.", fit=Python("fit")),
            keyword="responses",
        )
    if before.guidance is not None and before.guidance.findings.used:
        raise ParameterError(
            "This model was fitted with features, which batches do not have.",
            "Start from a model without them.",
            keyword="features",
        )
    kind = before.learned.kind
    if kind != recipe.workers:
        raise ParameterError(
            f"This model was fitted with workers={kind!r}, whose counts are of another kind than those of "
            f"{recipe.workers!r}.",
            Sentence("Keep {workers}.", workers=kind),
            keyword="workers",
        )
    past = before.judging.value.past
    if past is None:
        raise NotFittedError("This model does not hold what further batches need.", "Fit the model again.")
    return past


def find_starts(before: Fusion, r: Responses, problem: Problem) -> list[tuple[str, Parameters]]:
    """Return where to start: at what earlier batches teach.

    If there are new classes, or more answers than before, votes are another start.
    """
    assert problem.earlier is not None
    prior, smoothing = problem.prior, before.course.smoothing
    if prior.parts is not None and smoothing is not None and min(smoothing) > 0:
        prior = make_pair(prior, prior.parts, smoothing)
    starts = [("earlier", maximise(problem, problem.earlier, prior))]
    if find_new_classes(before, r).any() or r.weights().sum() > problem.earlier.counts.sum():
        starts.append(("majority", maximise(problem, expect_from_votes(problem), prior)))
    return starts


def keep_share(r: Responses, half_life: float | None) -> Floats:
    """Return which share of what was seen of each worker is kept before a batch, (M,)."""
    if half_life is None:
        return np.ones(r.n_workers)
    n_new = np.full(r.n_workers, r.n_items) if r.silence_counts else r.votes_per_worker()
    return np.asarray(np.exp2(-n_new / half_life))


def drop_tiny(counts: Floats, problem: Problem) -> Floats:
    """Return counts without those that the M-step would take for 0: their logarithm would be minus infinity."""
    from ..kernels.answers import SMALLEST

    return counts if problem.weighted else np.where(counts < SMALLEST * problem.n_responses, 0.0, counts)
