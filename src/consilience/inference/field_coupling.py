r"""How strongly a field couples neighbouring labels, judged by hidden items.

Pseudo-likelihood finds how much neighbours agree, and takes the answers at their word. Where workers err together, they
are too sure, and neighbours are not heard. So multiples c of that coupling are tried. All answers to some items are
hidden; what is left to speak for these items are their neighbours, and they must predict the hidden answers:

    mean over hidden items n of  sum over answers (m, l) to n of  log sum_k q_nk^t / Z_n Gamma_m[k, l]

with the power t that suits each c best, or strong couplings would lose only because they make posteriors too sure. The
smallest c within one standard error of the best, paired over items, is taken.

How far answers are too sure is known from a fit without the graph, by the power that calibrates it: a stronger coupling
does the same as answers raised to a power. So c is at most 1 / power ** 2, with the square because calibration without
gold sees only about half of what there is (in the logarithm; see `consilience.results.calibration`). Without this
limit, strong couplings would be chosen even where workers err independently of each other. There they predict hidden
items a little better, and harm the labels of items that have answers.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..answers.hidden_answers import hide_items
from ..kernels.types import Floats
from .em import Fit, Problem, infer_posterior, maximise
from .hidden_scores import CouplingScore
from .powers import score_powers
from .settings import LatentSettings
from .sources import InMemory
from .structures.field import Field, FieldParameters

log = logging.getLogger("consilience")

MULTIPLES = (0.0, 1.0, 1.5, 2.0, 3.0, 5.0)
# A fifth of the items is hidden at a time, until there are enough of them, or all have been hidden once.
N_PARTS, ENOUGH_ITEMS = 5, 5000


def choose_coupling(
    owner: LatentSettings, source: InMemory, problem: Problem, fit: Fit, power: float
) -> tuple[float, list[CouplingScore]]:
    """Return the coupling that hidden items call for, and how well each was judged.

    Parameters
    ----------
    owner : recipe
        The settings of the model.
    source, problem
        What is fitted.
    fit : Fit
        A fit in which the coupling was learned by pseudo-likelihood.
    power : float
        The power that calibrates a fit without the graph.
    """
    agreement = cast(FieldParameters, fit.parameters.structure).coupling
    r, gold = source.responses, source.gold
    known = None if gold is None else gold.codes >= 0
    folds = list(hide_items(r, N_PARTS, ENOUGH_ITEMS, owner.seed, known))
    if agreement == 0 or not folds:
        return agreement, []
    couplings = [multiple * agreement for multiple in MULTIPLES if multiple <= max(power**-2, 1.0)]
    by_fold = []
    for number, hidden in enumerate(folds, 1):
        log.info("Choosing the coupling by hidden items: fold %d of %d", number, len(folds))
        by_fold.append(judge_couplings(owner, source, problem, fit, couplings, hidden))
    scores = [best_power(np.concatenate(each)) for each in zip(*by_fold, strict=True)]
    judged = [CouplingScore(c, *mean_and_error(each)) for c, each in zip(couplings, scores, strict=True)]
    best = max(scores, key=lambda each: float(each.mean()))
    near = [mean_and_error(best - each) for each in scores]
    return next(c for c, (gap, error) in zip(couplings, near, strict=True) if gap <= error), judged


def judge_couplings(
    owner: LatentSettings,
    source: InMemory,
    problem: Problem,
    fit: Fit,
    couplings: list[float],
    hidden: NDArray[np.bool_],
) -> list[Floats]:
    """Return for each coupling, from weak to strong, the log probability of each hidden item at each power."""
    r = source.responses
    rest = owner.pose(source.keep(~hidden), problem.structure, problem.graph, problem.engine)
    answer = np.flatnonzero(hidden)
    item = r.items_of(answer)
    unit = np.unique(item, return_inverse=True)[1]
    prior, statistics, scores = fit.parameters.prior, fit.statistics, []
    for coupling in couplings:
        field = replace(cast(Field, problem.structure), coupling=coupling)
        tried = replace(rest, structure=field, prior=prior)
        start = maximise(tried, statistics, prior)
        found = owner.run_from(tried, start)
        learned, statistics = found.parameters, found.statistics
        factors = tried.factors(learned.workers)
        posterior, _ = infer_posterior(tried.engine, tried.placed, factors, learned.structure, tried.graph)
        confusion = tried.workers.plain_mean(learned.workers, statistics.counts, prior)
        scores.append(score_powers(r, answer, unit, posterior[item], confusion))
    return scores


def best_power(scores: Floats) -> Floats:
    """Return the scores of items (N,) at the power that suits all of them, of those (N, T) at each power."""
    return np.asarray(scores[:, int(scores.sum(axis=0).argmax())])


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))
