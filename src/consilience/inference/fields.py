r"""Markov field fusion: a network over the items, whose coupling hidden items call for.

Pseudo-likelihood finds how much neighbours agree, and takes the answers at their word. Where workers err together, they
are too sure, and neighbours do not count. So multiples c of that coupling are tried. All answers to some items are
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

from ..answers.answers import Answers
from ..answers.graph import Graph
from ..answers.random_choices import hide_items
from ..kernels import Floats
from .em import Fit, Parameters, Problem, Run, expect_from_votes
from .hidden_answers import CouplingScore, score_powers
from .observations import Observations
from .structures import Independent, IndependentParameters, Statistics, Summary
from .structures.field import Field, FieldParameters, most_weight

log = logging.getLogger("consilience")
MULTIPLES = (0.0, 1.0, 1.5, 2.0, 3.0, 5.0)
# A fifth of the items is hidden at a time, until there are enough of them, or all have been hidden once.
N_PARTS, ENOUGH_ITEMS = 5, 5000
# A fit goes on where inference from the evidence counts more than this share of the answers in other classes.
MOVED, FIELD_ROUNDS = 1e-3, 10


def weigh_graph(r: Answers, graph: Graph, coupling: str | float, listeners: str) -> Graph:
    """A graph over these items with the weights that the parameters of a field call for."""
    given = 1.0 if coupling == "paper" else None if isinstance(coupling, str) else float(coupling)
    # What is the usual weight, and so the largest, depends on the weights that are left.
    while graph.weights.max(initial=0.0) > (most := most_weight(graph.weights, given)):
        graph = replace(graph, weights=np.minimum(graph.weights, most))
    if coupling == "paper":
        graph = replace(graph, weights=graph.weights * paper_couplings(r, graph))
    if listeners == "unanswered":
        # Neighbours tell nothing to items that were answered, which still tell theirs.
        answered = np.repeat(Observations(r).find_answered(), graph.degrees)
        graph = replace(graph, weights=np.where(answered, 0.0, graph.weights), directed=True)
    return graph


def fit_independent_items(problem: Problem, run: Run) -> tuple[Problem, Fit]:
    """The problem of the same answers to independent items, and its fit from the votes."""
    independent, start = make_independent_problem(problem, expect_from_votes(problem))
    return independent, run(independent, start)


def choose_fit(problem: Problem, fits: list[Fit], run: Run) -> Fit:
    """The fit whose workers and class prior explain the answers best if items are taken as independent.

    The field's own objective would prefer all labels to be alike. Posteriors that are inferred anew belong to the fit:
    inference continues from one iteration to the next. With a strong coupling it may end in an optimum that is not
    found again from the evidence, as for results and predictions. Then the fit continues from what is found there.
    """

    def score(fit: Fit) -> float:
        independent, parameters = make_independent_problem(problem, fit.statistics)
        without_graph = fit.parameters._replace(structure=parameters.structure)
        return independent.objective(without_graph, independent.expect(without_graph))

    best = fits[0] if len(fits) == 1 else max(fits, key=score)
    for _ in range(FIELD_ROUNDS):
        anew, counts = problem.expect(best.parameters).counts, best.statistics.counts
        if not best.converged or float(np.abs(anew - counts).sum()) <= 2 * MOVED * float(anew.sum()):
            break
        best = run(problem, best.parameters)
    return best


def choose_coupling(
    observations: Observations, problem: Problem, fit: Fit, power: float, run: Run, seed: int
) -> tuple[float, list[CouplingScore]]:
    """The coupling that hidden items call for, and how well each was judged.

    Parameters
    ----------
    observations, problem
        What is fitted.
    fit : Fit
        A fit in which the coupling was learned by pseudo-likelihood.
    power : float
        The power that calibrates a fit without the graph.
    run : callable
        The loop from a start.
    seed : int
        Which items are hidden.
    """
    r, prior = observations.responses, fit.parameters.prior
    agreement = cast(FieldParameters, fit.parameters.structure).coupling
    known = None if observations.gold is None else observations.gold.codes >= 0
    folds = list(hide_items(r, N_PARTS, ENOUGH_ITEMS, seed, known))
    if agreement == 0 or not folds:
        return agreement, []
    couplings, by_fold = list_couplings(agreement, power), []
    for number, hidden in enumerate(folds, 1):
        log.info("Choosing the coupling by hidden items: fold %d of %d", number, len(folds))
        rest = problem.about(observations.keep(~hidden))
        answer = np.flatnonzero(hidden)
        item = r.items_of(answer)
        unit = np.unique(item, return_inverse=True)[1]
        statistics, scores = fit.statistics, []
        for coupling in couplings:  # from weak to strong, each from where the last one ended
            field = replace(cast(Field, problem.structure), coupling=coupling)
            tried = replace(rest, structure=field, prior=prior)
            parameters, statistics = run(tried, tried.maximise(statistics, prior))[:2]
            confusion = tried.workers.plain_mean(parameters.workers, statistics.counts, prior)
            by_class = tried.workers.predict(confusion, r.worker[answer], r.label[answer])
            posterior = tried.infer(parameters)
            scores.append(score_powers(posterior[item], by_class, unit, r.weights(answer)))
        by_fold.append(scores)
    return pick_coupling(couplings, by_fold)


def fix_prior(problem: Problem, apart: Fit) -> Problem:
    """The problem with what is found without the graph: the learned prior of the workers, and class shares.

    With the graph, all labels alike and workers who answer at random can be the best fit of all: neighbours then
    agree everywhere. A prior that is learned meanwhile would lead there.
    """
    parameters = apart.parameters
    shares = cast(IndependentParameters, parameters.structure)
    structure = replace(cast(Field, problem.structure), unlinked=shares)
    return replace(problem, prior=parameters.prior.fixed(), structure=structure)


def make_independent_problem(problem: Problem, statistics: Statistics) -> tuple[Problem, Parameters]:
    """The problem of the same answers to independent items, and the parameters that statistics call for."""
    field = cast(Field, problem.structure)
    structure = Independent(field.n_classes, field.fixed_prior, field.smoothing, field.estimation)
    independent = replace(problem, structure=structure, graph=None)
    return independent, independent.maximise(Statistics(statistics.counts, Summary(0.0, statistics.summary.mass)))


def paper_couplings(r: Answers, graph: Graph) -> Floats:
    """The paper's coupling of each edge: delta / 2, with delta = M, or M_n / 2 where not all workers answer.

    M_n, the number of answers to item n, is not symmetric: the mean of both ends is taken.
    """
    answers = np.bincount(r.votes()[0], minlength=r.n_items)
    if (answers == r.n_workers).all():
        return np.full(len(graph.neighbours), r.n_workers / 2)
    source = np.repeat(answers, graph.degrees)
    return np.asarray((source + answers[graph.neighbours]) / 8)


def list_couplings(agreement: float, power: float) -> list[float]:
    """The multiples of the coupling by pseudo-likelihood that the power of a fit without the graph allows."""
    return [multiple * agreement for multiple in MULTIPLES if multiple <= max(power**-2, 1.0)]


def pick_coupling(couplings: list[float], by_fold: list[list[Floats]]) -> tuple[float, list[CouplingScore]]:
    """The smallest coupling within a standard error of the best, by scores of hidden items in folds; and all scores.

    The scores of a coupling in a fold are the log probabilities of items (N, T) at each power. The power is the one
    that suits all of them.
    """

    def mean_and_error(values: Floats) -> tuple[float, float]:
        return float(values.mean()), float(values.std() / np.sqrt(len(values)))

    at_powers = [np.concatenate(each) for each in zip(*by_fold, strict=True)]
    scores = [each[:, int(each.sum(axis=0).argmax())] for each in at_powers]
    judged = [CouplingScore(c, *mean_and_error(each)) for c, each in zip(couplings, scores, strict=True)]
    best = max(scores, key=lambda each: float(each.mean()))
    near = [mean_and_error(best - each) for each in scores]
    return next(c for c, (gap, error) in zip(couplings, near, strict=True) if gap <= error), judged
