r"""Results of a stream, batch by batch. What is kept are statistics that add up: nothing grows with the answers.

With S the statistics of all batches so far (expected counts of answers, of classes and of transitions), the next batch
is fitted as if S were counted with it, and S becomes S plus the statistics of that batch. So a worker's matrix moves
by the share of new answers among all of theirs.

With a half-life of h answers, the counts of worker m are multiplied by

.. math:: 2^{-n_m / h}

before the batch, :math:`n_m` being the number of answers of the worker in it. What was seen h answers ago counts half.
Class shares and transitions are not forgotten. Where silence is an answer, all workers answer all items, and everything
is multiplied by the same number: a worker's silence is what is left of all items.

Sums for intervals (see `consilience.results.interval_sums`), and what speaks for each power of calibration (see
`consilience.inference.powers`), are kept and forgotten in the same way. What is about all workers together is
multiplied by the mean of their factors, weighted by their answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

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
from ..inference.powers import Evidence
from ..inference.recipes.base import LatentRecipe, Plan
from ..inference.settings import Before
from ..inference.sources import InMemory
from ..inference.structures.base import Statistics, Summary
from ..inference.workers.learned import make_pair
from ..kernels.types import Floats
from .fitting import conclude
from .fusion import Fusion, Given, Later
from .interval_sums import Sums
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


class Past(NamedTuple):
    """What is kept of all batches so far, beside counts of answers by worker, label and class."""

    summary: Summary  # of the structure
    sums: Sums
    evidence: Evidence

    def embed(self, worker: NDArray[np.int64], n_workers: int, klass: NDArray[np.int64], n_classes: int) -> Past:
        """Return the same for more workers and classes, whose indices among these are given."""

        def by_class(array: Floats, n_before: int = 0) -> Floats:
            """Return an array whose axes, but for the first `n_before`, are classes."""
            shape = (*array.shape[:n_before], *(n_classes,) * (array.ndim - n_before))
            embedded = np.zeros(shape)
            embedded[np.ix_(*map(np.arange, shape[:n_before]), *(klass,) * (array.ndim - n_before))] = array
            return embedded

        def by_worker(array: Floats) -> Floats:
            embedded = np.zeros((len(array), n_workers))
            embedded[:, worker] = array
            return embedded

        named: dict[str, Any] = {name: by_class(getattr(self.summary, name)) for name in type(self.summary).specs}
        sums, scores = self.sums, self.sums.scores
        if scores.size:
            both = np.append(klass, n_classes + klass)
            scores = np.zeros((2, 2 * n_classes, 2 * n_classes))
            scores[np.ix_(np.arange(2), both, both)] = sums.scores
        return self._replace(
            summary=replace(self.summary, log_normaliser=0.0, **named),
            sums=sums._replace(
                chances=by_worker(sums.chances),
                worth=by_worker(sums.worth[None])[0],
                judged=by_worker(sums.judged),
                scores=scores,
                lack=by_class(sums.lack),
                moments=by_class(sums.moments, 1),
                meant=by_class(sums.meant),
            ),
        )

    def forget(self, kept: Floats, silence: bool) -> Past:
        """Return what is left if a share `kept` (M,) of each worker's answers is; see the module's formula.

        Where silence is an answer (`silence`), shares are the same for all workers, and all items are forgotten.
        """
        if (kept == 1).all():
            return self
        sums, total = self.sums, self.sums.chances[0].sum()
        mean = float(sums.chances[0] @ kept / total) if total > 0 else 1.0
        of_items = float(kept.min(initial=1.0)) if silence else 1.0
        counted: dict[str, Any] = {name: of_items * getattr(self.summary, name) for name in type(self.summary).specs}
        return Past(
            replace(self.summary, **counted),
            sums._replace(
                chances=sums.chances * kept,
                worth=sums.worth * kept,
                judged=sums.judged * kept,
                votes=mean * sums.votes,
                scores=mean * sums.scores,
                lack=mean * sums.lack,
                moments=of_items * sums.moments,
                sizes=of_items * sums.sizes,
            ),
            Evidence(*(mean * array for array in self.evidence)),
        )
