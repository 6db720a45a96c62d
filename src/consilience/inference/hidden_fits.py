r"""Fits to a part of the answers, and how well they predict the answers that were hidden from them.

Some answers are hidden, the model is fitted to the others, and the power t of posteriors is where the answers that were
hidden are predicted best,

    sum over hidden answers of log sum_k q_nk^t / Z_n Gamma_m[k, l]

This is repeated with other answers hidden, in folds. In sequences all answers of a worker to a sequence are hidden
together. Each fit goes on from the fit to all answers. If few answers of many are hidden, estimates hardly change, and
the other answers are only counted once again.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.random_choices import count_units, hide_answers
from ..answers.responses import Answers
from ..errors import ParameterError
from ..kernels import Floats, Integers
from . import Cells
from .care import WITH_CARE, Care
from .em import (
    Parameters,
    Problem,
    expect,
    infer_left_out,
    maximise,
    run_em,
)
from .powers import (
    LEAST_UNITS,
    NOTHING_KNOWN,
    POWERS,
    Calibration,
    choose_power,
    find_leads,
    raise_to,
    score_powers,
    weigh_powers,
)
from .recipes import Fitting
from .sources import HIDDEN, Source, choose_folds
from .structures import Statistics, exchange

# Steps by which a fit follows answers that are hidden, if it settles after a number of steps.
MORE_STEPS = 5
# Answers per class that the crowd's matrix is worth when a worker's own is judged.
SHRINKAGE = 20.0


log = logging.getLogger("consilience")


class Fold(NamedTuple):
    """Answers that were hidden, and what a fit to the others says about them.

    Attributes
    ----------
    answer : int64 array (n,)
        Which answers these are.
    posterior : array (n, K)
        The posterior of the item of each, before calibration.
    chances : array (n, K)
        How probable each is for each class, by counts that are shrunk as for `consilience.held_out_score`.
    care : Care
        With what care they were given.
    """

    answer: NDArray[np.int64]
    posterior: Floats
    chances: Floats
    care: Care = WITH_CARE

    @classmethod
    def of(cls, r: Answers, answer: NDArray[np.int64], posterior: Floats, counts: Floats) -> Fold:
        """Return the fold from the expected counts (M, L, K) of the answers that were shown."""
        chances = shrink_rows(counts, r.worker[answer], r.label[answer])
        return cls(answer, posterior, chances, Care.of(r, answer))

    def judge(self, power: float) -> Judged:
        """Return how well the answers are predicted if posteriors are raised to a power."""
        raised = raise_to(self.posterior, power)
        alike = np.broadcast_to(raised.mean(axis=0), raised.shape)
        scores = (log_chance(each, self.chances, self.care) for each in (raised, alike))
        by_items, by_mean = scores
        return Judged(self.answer, by_items, by_mean, self.posterior.argmax(axis=1))


class Judged(NamedTuple):
    """How well hidden answers are predicted, in log probability.

    Attributes
    ----------
    answer : int64 array (n,)
        Which answers these are.
    score : array (n,)
        By the posterior of the item of each.
    base : array (n,)
        By the mean posterior of all of them, which says nothing about single items.
    top : int64 array (n,)
        The most probable class of the item of each.
    """

    answer: NDArray[np.int64]
    score: Floats
    base: Floats
    top: NDArray[np.int64]


def log_chance(posterior: Floats, chances: Floats, care: Care) -> Floats:
    """Return the log probability of answers from those of the classes of their items, and of the answers by class."""
    return care.log_chances(np.einsum("ik,ik->i", posterior, chances))


class Rest(NamedTuple):
    """A fit to the answers that are not hidden, and the items to which some are hidden."""

    problem: Problem
    statistics: Statistics
    parameters: Parameters  # which give the posteriors
    item: NDArray[np.int64]  # the item of each hidden answer, as the problem counts them
    n_left: NDArray[np.int64]  # how many answers to it are left
    gold: Gold | None


def find_by_hidden(fitting: Fitting) -> tuple[Calibration, Floats, list[Fold]]:
    """Return the power at which hidden answers are predicted best by fits to the others, which go on from this fit.

    With it come the log weight of each of `POWERS`, and the hidden answers.
    """
    r = fitting.source.responses
    scores, folds = judge_hidden(fitting)
    n_hidden = sum(
        len(fold.answer) if r.amount is None else len(each) for fold, each in zip(folds, scores, strict=True)
    )
    together = np.concatenate([np.empty((0, len(POWERS))), *scores])
    if len(together) < LEAST_UNITS:
        return Calibration(1.0), NOTHING_KNOWN, folds
    leads = find_leads(together)
    return Calibration(choose_power(*leads), n_hidden), weigh_powers(*leads), folds


def judge_hidden(fitting: Fitting) -> tuple[list[Floats], list[Fold]]:
    """Return the scores of hidden units at each of `POWERS`, by fold, and the hidden answers."""
    recipe, source, problem, fit = fitting
    r = source.responses
    n_units = count_units(r)
    scores, folds = list[Floats](), list[Fold]()
    # Where silence is an answer, one that is hidden would be another answer: silence. A single class suits all powers.
    if r.silence_counts or recipe.max_iter == 0 or n_units < 2 or r.n_classes < 2:
        return scores, folds
    start = fit.parameters._replace(prior=fit.parameters.prior.settle())
    share, n_folds = choose_folds(n_units, None if r.sequences is None else r.n_responses)
    # Earlier batches are shown: if they are larger than this one, few of all answers are hidden at a time.
    few = share < HIDDEN or count_earlier(problem) > r.n_responses
    hiding = hide_answers(r, share, recipe.seed, n_folds)
    for number, (hidden, unit) in enumerate(hiding, 1):
        log.info("Calibrating by hidden answers: fit %d of at most %d", number, n_folds)
        if not few:
            # A model that settles after some steps has made them.
            settles = problem.workers.enough_steps is not None
            rest = fit_rest(fitting, start, hidden, min(recipe.max_iter, MORE_STEPS) if settles else recipe.max_iter)
        elif r.sequences is None and problem.graph is None:
            rest = exchange_items(fitting, start, hidden)
        else:
            rest = fit_rest(fitting, start, hidden, 0)
        apart = r.sequences is None and problem.graph is None
        judging = find_judging(rest.item, rest.gold, rest.n_left if apart else None)
        answer = np.flatnonzero(hidden)[judging]
        item, unit = rest.item[judging], np.unique(unit[judging], return_inverse=True)[1]
        if not len(item):
            continue
        learned = maximise(rest.problem, rest.statistics, start.prior)
        posterior, _ = rest.problem.infer(rest.parameters)
        left_out = infer_left_out(rest.problem, learned, rest.statistics, posterior)[item]
        workers, counts = rest.problem.workers, rest.statistics.counts
        confusion = workers.plain_mean(learned.workers, counts, start.prior)
        scores.append(score_powers(r, answer, unit, left_out, confusion))
        folds.append(Fold.of(r, answer, left_out, workers.plain_counts(counts)))
    return scores, folds


def count_earlier(problem: Problem) -> float:
    """Return how many answers of earlier batches count."""
    return 0.0 if problem.earlier is None else float(problem.earlier.counts.sum())


def fit_rest(fitting: Fitting, start: Parameters, hidden: NDArray[np.bool_], max_iter: int) -> Rest:
    """Fit the model to the answers that are not hidden; with `max_iter=0`, only count them once again."""
    recipe, source, problem, _ = fitting
    shown, item = source.keep(~hidden), source.responses.items_of(np.flatnonzero(hidden))
    rest = pose_again(fitting, shown, start, problem.graph)
    again = run_em(rest, start, max_iter, recipe.tol, recipe.callback)
    n_left = np.diff(shown.responses.offsets)[item]
    if shown.responses.sequences is not None or problem.graph is not None:
        return Rest(rest, again.statistics, again.parameters, item, n_left, shown.gold)
    # Independent items can be judged without the others.
    items, item = np.unique(item, return_inverse=True)
    few = shown.about(items)
    return Rest(pose_again(fitting, few, start), again.statistics, again.parameters, item, n_left, few.gold)


def exchange_items(fitting: Fitting, start: Parameters, hidden: NDArray[np.bool_]) -> Rest:
    r"""Count the answers that are not hidden, at the parameters of the fit.

    If few answers of many are hidden, posteriors of other items hardly change. So only items to which some are hidden
    are counted again: with S the statistics of the fit, those of the others are

    .. math:: S - S_{\text{items}} + S_{\text{items without hidden answers}}

    """
    before = fitting.source
    r = before.responses
    item = r.items_of(np.flatnonzero(hidden))
    if r.sequences is None:
        items, item = np.unique(item, return_inverse=True)
        before, hidden = before.about(items), hidden[r.answers_about(items)[0]]
    after = before.keep(~hidden)
    posed = [pose_again(fitting, answers, start) for answers in (before, after)]
    statistics = exchange(fitting.fit.statistics, *(expect(each, start) for each in posed))
    return Rest(posed[1], statistics, start, item, np.diff(after.responses.offsets)[item], before.gold)


def pose_again(fitting: Fitting, source: Source, start: Parameters, graph: Graph | None = None) -> Problem:
    """Return the problem of some of its answers, or items, with a prior that is not learned again."""
    problem = fitting.problem
    posed = fitting.recipe.pose(source, problem.structure, graph, problem.engine)
    workers = replace(posed.workers, said=problem.workers.said)
    return replace(posed, prior=start.prior, earlier=problem.earlier, workers=workers)


def find_judging(
    item: NDArray[np.int64], gold: Gold | None, n_left: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Tell which hidden answers, to these items, can judge a power.

    Those to items whose label is known cannot. Of an independent item without another answer (`n_left` says how many
    are left) all that is known is the class prior, which is reported as it is.
    """
    judging = np.ones(len(item), bool) if gold is None else gold.codes[item] < 0
    return judging if n_left is None else judging & (n_left > 0)


class HeldOutScore(NamedTuple):
    """How well hidden answers were predicted. Scores of two models on the same hidden answers can be compared."""

    score: float  # mean log probability of a hidden answer
    error: float  # its standard error
    n_answers: int
    totals: Floats  # log probability of each hidden unit: an answer, or a worker's answers in one sequence
    sizes: NDArray[np.int64]  # answers in each unit
    hidden: NDArray[np.int64]  # which answers were hidden

    def minus(self, other: HeldOutScore) -> tuple[float, float]:
        """Return the difference of two scores, and the standard error of the paired difference."""
        if not np.array_equal(self.hidden, other.hidden):
            raise ParameterError("The two scores are not of the same hidden answers: use the same fraction and seed.")
        return mean_and_error(self.totals - other.totals, self.sizes)

    def plus(self, other: HeldOutScore) -> HeldOutScore:
        """Return the score of the hidden answers of both, as of two folds."""
        totals, sizes = np.concatenate([self.totals, other.totals]), np.concatenate([self.sizes, other.sizes])
        score, error = mean_and_error(totals, sizes)
        hidden = np.concatenate([self.hidden, other.hidden])
        return HeldOutScore(score, error, self.n_answers + other.n_answers, totals, sizes, hidden)


def score_hidden(
    r: Answers, hidden: NDArray[np.bool_], unit: NDArray[np.int64], posterior: Floats, counts: Floats | Cells
) -> HeldOutScore:
    """Score hidden answers by the posterior and the expected counts (M, L, K) of a fit to the others."""
    item, worker, label = r.item_of_answer()[hidden], r.worker[hidden], r.label[hidden]
    logs = log_chance(posterior[item], shrink_rows(counts, worker, label), Care.of(r, np.flatnonzero(hidden)))
    if r.share is not None:
        logs = logs * r.share[hidden]
    totals = np.bincount(unit, weights=logs).astype(np.float64)
    sizes = np.bincount(unit)
    score, error = mean_and_error(totals, sizes)
    return HeldOutScore(score, error, int(hidden.sum()), totals, sizes, np.flatnonzero(hidden))


def shrink_rows(counts: Floats | Cells, worker: Integers, label: Integers) -> Floats:
    """Return the probabilities (n, K) of answers from expected counts (M, L, K) of all.

    Each worker's matrix is shrunk towards the crowd's, which is worth `SHRINKAGE` answers per class.
    """
    n_labels = counts.shape[1]
    if isinstance(counts, Cells):
        own = counts.sum_rows(counts.worker * n_labels + counts.label, worker.astype(np.int64) * n_labels + label)
        total = counts.sum_rows(counts.worker, worker)
        everything = np.bincount(counts.klass, counts.count, minlength=counts.shape[2])
        crowd = (counts.sum_rows(counts.label, label) + 1.0 / n_labels) / (everything + 1.0)
    else:
        own, total = counts[worker, label], counts.sum(axis=1)[worker]
        pooled = counts.sum(axis=0) + 1.0 / n_labels
        crowd = (pooled / pooled.sum(axis=0))[label]
    return np.asarray((own + SHRINKAGE * crowd) / (total + SHRINKAGE))


def mean_and_error(totals: Floats, sizes: NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean per answer, and its standard error over units."""
    n = sizes.sum()
    mean = float(totals.sum() / n)
    if len(totals) < 2:
        return mean, float("inf")
    spread = np.sum((totals - mean * sizes) ** 2) * len(totals) / (len(totals) - 1)
    return mean, float(np.sqrt(spread) / n)
