r"""Whether classes that are whole numbers are a scale, such as ratings, or names, such as 1 for cats and 2 for dogs.

Workers of ordinal types, who confuse classes that are near each other, and workers of nominal types, who do not, are
fitted to nine tenths of the answers. Each fit predicts the hidden answers f of workers m about items n by

.. math:: \log \sum_k q_{nk} \Gamma_m[k, f]

with its own posteriors q and matrices. The classes are a scale if ordinal types are ahead by three standard errors
(over items), and by at least `LEAST_LEAD`. Numbers for classes that look alike in pairs, such as breeds, can be ahead
by a little: then an order explains some errors, and is none.

Of many answers, those about some items are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import to_numbers
from ..answers.columns import Indices, objects
from ..answers.joining import keep_workers
from ..answers.random_choices import count_units, draw_numbers, find_owners, hash_items, hide_answers
from ..engines.base import Engine
from ..errors import Sentence, listing, plural, quietly
from ..inference.hidden_fits import log_chance, mean_and_error
from ..inference.recipes.independent import IndependentRecipe
from ..inference.sources import HIDDEN, Source
from ..inference.workers.rows import Care
from ..kernels import Floats
from ..results.comparison import LEAST_HIDDEN, ScaleCheck
from ..results.findings import Finding
from .subject import Subject

# A scale has so many levels.
FEWEST_LEVELS, MOST_LEVELS = 3, 11
# Answers that are looked at, and answers to hide in all, in folds of a tenth, if there are so many.
MOST_ANSWERS, ENOUGH, MOST_FOLDS = 50_000, 500, 10
# The gain per answer at which a fit that is only to be compared stops.
TOL = 1e-4


def order_levels(crowd: Answers) -> Indices | None:
    """Return the order of classes that look like the levels of a scale; None for others.

    These are consecutive whole numbers, or numbers with a smaller step from each to the next, such as half stars.
    Where silence is an answer, they do not.
    """
    levels = to_numbers(crowd.classes)
    if levels is None or crowd.silence_counts or not FEWEST_LEVELS <= len(levels) <= MOST_LEVELS:
        return None
    order = np.argsort(levels, kind="stable")
    steps, is_whole = np.diff(levels[order]), bool((levels == np.round(levels)).all())
    is_even = bool(0 < steps[0] < 1) and np.allclose(steps, steps[0], rtol=1e-6)
    return order if (is_whole and (steps == 1).all()) or is_even else None


def give_ranks(crowd: Answers, order: Indices) -> Answers:
    """Return the same answers, with classes in this order as levels of a scale."""
    ranks = tuple(map(float, range(crowd.n_classes)))
    return replace(crowd, classes=crowd.classes[order], positions=ranks)


def check_scale(recipe: IndependentRecipe, crowd: Answers, order: Indices, engine: Engine) -> ScaleCheck | None:
    """Compare ordinal with nominal workers; None if too few answers can be hidden, or these are soft votes."""
    r = take_sample(crowd, recipe.seed)
    if (
        r.soft is not None
        or count_units(r) < r.n_responses
        or round(HIDDEN * r.n_responses) * MOST_FOLDS < LEAST_HIDDEN
    ):
        return None
    scale = give_ranks(r, order)
    n_folds = int(np.clip(np.ceil(ENOUGH / (HIDDEN * r.n_responses)), 1, MOST_FOLDS))
    leads, owners = list[Floats](), list[Indices]()
    with quietly():
        for hidden, _ in hide_answers(scale, HIDDEN, recipe.seed, n_folds):
            answer = np.flatnonzero(hidden)
            shown = Source(scale.keep(~hidden))
            ordinal, nominal = (
                score(replace(recipe, workers=kind), shown, scale, answer, engine) for kind in ("ordinal", "nominal")
            )
            leads.append(ordinal - nominal)
            owners.append(find_owners(scale, answer))
    unit = np.unique(np.concatenate(owners), return_inverse=True)[1]
    totals = np.bincount(unit, np.concatenate(leads)).astype(np.float64)
    lead, error = mean_and_error(totals, np.bincount(unit))
    return ScaleCheck(lead, error)


def score(recipe: IndependentRecipe, shown: Source, r: Answers, answer: Indices, engine: Engine) -> Floats:
    """Return the log probability of hidden answers by a fit to those that are shown."""
    problem, fit = recipe.fit_unguided(shown, None, engine)
    posterior = recipe.conclude(problem, fit.parameters)[r.items_of(answer)]
    matrices = problem.workers.plain_mean(fit.parameters.workers, fit.statistics.counts, fit.parameters.prior)
    return log_chance(posterior, matrices[r.worker[answer], r.label[answer]], Care.of(r, answer))


def take_sample(crowd: Answers, seed: int, most: int | None = None) -> Answers:
    """Return answers about some items, as independent ones, by the workers who gave them.

    Items are told apart by hashes, so that positions of sequences are items like others.
    """
    most = MOST_ANSWERS if most is None else most
    n_items = most * crowd.n_items // crowd.n_responses
    hashes = hash_items(crowd.keys)
    r = replace(crowd, keys=hashes, provenance=crowd.provenance._replace(gold=None))
    if n_items < r.n_items:
        numbers = draw_numbers(seed, hashes)
        r = r.about(np.flatnonzero(numbers <= np.partition(numbers, n_items)[n_items]))
    return keep_workers(r, np.bincount(r.worker, minlength=r.n_workers) > 0)


def find_off_scale(subject: Subject) -> Iterator[Finding]:
    """Numbers were said that are no level of a scale of numbers, all of whose levels were said."""
    r = subject.sample.responses
    if not r.is_ordered or to_numbers(r.classes) is None or (r.label_of_class < 0).any():
        return
    beside = r.class_of_label < 0
    beside &= np.array([to_numbers(objects([each])) is not None for each in r.labels.tolist()], bool)
    if beside.any():
        names = r.labels[beside].tolist()
        count = plural(int(beside[r.label].sum()), "answer")
        verb = "is a number but no level" if len(names) == 1 else "are numbers but no levels"
        yield Finding(
            f"{listing(names)} ({count}) {verb} of the scale {listing(r.classes.tolist())}.",
            (Sentence("Name all levels from low to high with {classes}."),),
            "bad",
            keyword="classes",
        )


def find_scale(subject: Subject) -> Iterator[Finding]:
    """Classes that are numbers at equal steps were taken for a scale."""
    found = subject.fusion.scale_check
    if found is not None and found.ordered and subject.makes_sense:
        values = to_numbers(subject.sample.responses.classes)
        is_whole = values is None or bool((values == np.round(values)).all())
        numbers = "whole numbers" if is_whole else "numbers at equal steps"
        yield Finding(
            f"The classes are {numbers}, and were taken for levels of a scale: {found.describe()}.",
            (
                Sentence("If they are only names, say so with {ordered}.", ordered=False),
                Sentence("Or, of answers that were read before, with {workers}.", workers="confusion"),
            ),
            category=None,
        )
