r"""Draws from all that a fit of ordered classes leaves open: how raters rate, how frequent levels are, what is true.

A fit takes what it has learned of raters for known when it judges items, and keeps one of several readings of the
scale. With a few ratings of each item neither is known well: labels are less often right than their probabilities say.

**Parameters.** Beginning at a fit, matrices and shares of types, class shares and truth are drawn by turns, each given
the others (Gibbs sampling; see `TypedWorkers.draw` for the first):

.. math:: \Gamma, w \sim P(\cdot \mid y), \quad \pi \sim \operatorname{Dir}(n(y) + s), \quad
          y_i \sim q_i, \quad q_{ik} \propto \pi_k \prod_{a \in i} \Gamma_{m_a}[k, l_a]

The first draws, which still remember where they began, are left out. Each of the others says by q how many labels of
the fit are right, how many are at most one level off, and by how many levels they are off.

**Readings.** If all raters were a little more lenient, and all items a little worse, the ratings would be nearly as
probable. So there are fits that differ in where the scale begins, with nearly the same objective B. They are looked for
from the mean ratings of items, moved by each of `SHIFTS` levels and rounded, and draws begin at each of them. A fit
counts in proportion to :math:`\exp(B / 2)`. The objective is only a bound of the log evidence, and differences of it
count half: if they counted in full, intervals of simulated crowds would be too narrow.

**Large crowds.** With more than `MOST_ANSWERS`, draws are made of a part of the items, which has the share f of all
answers. What is not known of parameters is inversely proportional to the number of answers: variances are multiplied by
f, and so is the distance of the mean from what the fit expects. Differences between readings grow with the number of
answers, and are then so large that no other is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.blocks import Block
from ..answers.random_choices import RandomByName, draw_numbers, hash_items, pick_places
from ..engines import open_engine
from ..kernels import Floats, freeze
from .em import Fit, Problem, add_earlier, add_up, infer_posterior, maximise, run_em
from .recipes import LatentRecipe
from .sources import Source
from .structures import AnyStructure, Statistics, Summary
from .structures.independent import Independent
from .workers.rows import RowCounts, count_answers
from .workers.types import TypedWorkers

# Draws that are left out, and that count.
N_FIRST, N_DRAWS = 30, 100
# Levels by which mean ratings are moved, and how much of a difference of objectives counts.
SHIFTS, HALF = (-0.3, 0.0, 0.3), 0.5
# Readings that count less than this are passed over.
NEGLIGIBLE = 0.01
# Answers about the items that draws are made of, at most.
MOST_ANSWERS = 10_000
# Steps of a fit that looks for a reading, and the gain per answer that ends them.
MOST_STEPS, ENOUGH = 100, 1e-5


class Levels(NamedTuple):
    """What is expected of labels, (3,): the share that is right, the share at most one level off, and the levels off.

    Attributes
    ----------
    mean : array
        What is expected.
    variance : array
        Of that, by what is not known of parameters.
    chance : array
        The variance of a single label, given parameters.
    """

    mean: Floats
    variance: Floats
    chance: Floats


def draw_levels(recipe: LatentRecipe, source: Source, problem: Problem, fit: Fit, codes: NDArray[np.int64]) -> Levels:
    """Return what to expect of the labels of a fit, given by their levels, if nothing is taken for known."""
    items = choose_items(source.responses, recipe.seed)
    part, labels = (source, codes) if items is None else (source.about(items), codes[items])
    share = part.responses.n_responses / max(problem.n_responses, 1)
    with open_engine(None) as engine:
        posed = recipe.pose(part, problem.structure, None, engine)
        posed = replace(posed, unvoted=problem.unvoted, earlier=problem.earlier)
        plain = describe_labels(posed.infer(fit.parameters)[0], labels)[0]
        shifts = SHIFTS if share == 1 else ()
        fits = [fit, *(find_fit(posed, count_truth(posed, rate_items(part, shift))) for shift in shifts)]
        weights = weigh_fits([each.objective for each in fits])
        random = RandomByName.of(part.responses, recipe.seed)
        moments = [
            (weight, *summarise(draw_fit(posed, each, random), labels))
            for weight, each in zip(weights.tolist(), fits, strict=True)
            if weight > 0
        ]
    mean = np.sum([weight * found for weight, found, _, _ in moments], axis=0)
    variance = np.sum([weight * (own + (found - mean) ** 2) for weight, found, own, _ in moments], axis=0)
    chance = np.sum([weight * own for weight, _, _, own in moments], axis=0)
    return Levels(plain + share * (mean - plain), share * variance, chance)


def choose_items(r: Answers, seed: int) -> NDArray[np.int64] | None:
    """Return the items that draws are made of; None for all."""
    if r.n_responses <= MOST_ANSWERS:
        return None
    order = np.argsort(draw_numbers(seed, hash_items(r.keys)), kind="stable")
    n_items = int(np.searchsorted(np.cumsum(np.diff(r.offsets)[order]), MOST_ANSWERS))
    return np.sort(order[: max(n_items, 1)])


def find_fit(problem: Problem, statistics: Statistics) -> Fit:
    """Return the fit that the loop finds from some statistics."""
    return run_em(problem, maximise(problem, statistics), MOST_STEPS, ENOUGH)


def rate_items(source: Source, shift: float) -> Floats:
    """Return the levels nearest to the mean ratings of items, moved by a shift, as a table (N, K) of zeros and ones."""
    r = source.responses
    level, weight = r.class_of_label[r.label], r.weights()
    rated = np.flatnonzero(level >= 0)
    item = r.item_of_answer()[rated]
    n_ratings = np.bincount(item, weight[rated], minlength=r.n_items)
    total = np.bincount(item, weight[rated] * level[rated], minlength=r.n_items)
    mean = np.divide(total, n_ratings, out=np.full(r.n_items, total.sum() / n_ratings.sum()), where=n_ratings > 0)
    nearest = np.clip(np.floor(mean + shift + 0.5), 0, r.n_classes - 1).astype(np.int64)
    if source.gold is not None:
        nearest = np.where(source.gold.codes >= 0, source.gold.codes, nearest)
    return np.asarray(np.eye(r.n_classes)[nearest])


def weigh_fits(objectives: list[float]) -> Floats:
    """Return how much each fit counts, by its objective.

    >>> weigh_fits([-100.0, -102.0, -150.0]).round(2).tolist()
    [0.73, 0.27, 0.0]
    """
    weights = np.exp(HALF * (np.array(objectives) - max(objectives)))
    weights[weights < NEGLIGIBLE * weights.sum()] = 0.0
    return np.asarray(weights / weights.sum())


def draw_fit(problem: Problem, fit: Fit, random: RandomByName) -> Iterator[Floats]:
    """Yield the probabilities of items, (N, K), given parameters that are drawn by turns with the truth."""
    workers, structure, prior = problem.workers, problem.structure, fit.parameters.prior
    assert isinstance(workers, TypedWorkers)
    assert isinstance(structure, Independent)
    posterior, _ = problem.infer(fit.parameters)
    for step in range(N_FIRST + N_DRAWS):
        truth = np.eye(workers.n_classes)[pick_places(posterior, random.draw_by_item())]
        counts, summary = count_truth(problem, truth)
        matrices, prior = workers.draw(counts, summary.mass, prior, random)
        if structure.fixed_prior is not None:
            shares = structure.fixed_prior
        else:
            shares = np.exp(random.draw_shares(summary.mass + structure.smoothing))
        found = structure.given(freeze(shares))
        posterior, _ = infer_posterior(problem.engine, problem.placed, problem.factors(matrices), found)
        if step >= N_FIRST:
            yield posterior


def summarise(draws: Iterator[Floats], labels: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return means and variances over draws of what is expected of labels, and the mean variance of one label."""
    means, chances = zip(*(describe_labels(posterior, labels) for posterior in draws), strict=True)
    return np.mean(means, axis=0), np.var(means, axis=0), np.mean(chances, axis=0)


def describe_labels(posterior: Floats, labels: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return what probabilities let expect of labels, as in `Levels`, and the variance of one label, (3,) each."""
    away = np.abs(np.arange(posterior.shape[1]) - labels[:, None])
    values = [away == 0, away <= 1, away]
    mean = np.stack([np.einsum("nk,nk->n", posterior, value) for value in values])
    square = np.einsum("nk,nk->n", posterior, away**2)
    variance = np.stack([mean[0] * (1 - mean[0]), mean[1] * (1 - mean[1]), square - mean[2] ** 2])
    return mean.mean(axis=1), np.maximum(variance, 0.0).mean(axis=1)


def count_truth(problem: Problem, truth: Floats) -> Statistics:
    """Return the statistics of a truth, (N, K), and of earlier batches."""
    add = partial(add_up, shape=(problem.workers.n_rows, problem.workers.n_classes))
    shared = truth, problem.structure
    return add_earlier(problem, add(problem.engine.map(count_drawn, problem.placed, *shared)))


def count_drawn(block: Block, truth: Floats, structure: AnyStructure) -> tuple[RowCounts, Summary]:
    """Return the statistics of one block."""
    own = truth[block.first_item : block.first_item + block.n_items]
    return count_answers(block, own), structure.summarise(block, own)
