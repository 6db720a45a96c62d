r"""Answers that are hidden from a fit, and how well the fit to the others predicts them.

Some answers are hidden, and each is predicted by the others: a hidden answer l of worker m about item n has the
probability

.. math:: \sum_k \frac{q_{nk}^t}{Z_n} \Gamma_m[k, l]

with posteriors q and matrices :math:`\Gamma` that have not seen it. The power t is that at which all hidden answers are
predicted best (see `consilience.inference.powers`), and the same predictions compare a fit with majority vote. In
sequences all answers of a worker to a sequence are hidden together.

Nothing is fitted again. From the parameters of the fit, two steps of EM on the answers that are left give the
parameters that judge the hidden ones. This is repeated in a few folds. About
`MOST_ANSWERS` answers are looked at, those to items (sequences) with the smallest random numbers. The statistics of all
others, among them those of earlier batches of a stream, stay as the fit has them: with S the statistics of the fit and
:math:`S_I` those of the items that are looked at, :math:`S - S_I` is added to each E-step.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.gold import Gold
from ..answers.random_choices import count_units, draw_numbers, hash_owners, hide_answers
from ..errors import ParameterError
from ..kernels import Floats, Integers
from . import Cells
from .em import Fit, Problem, infer_left_out, maximise
from .powers import (
    LEAST_UNITS,
    NOTHING_KNOWN,
    Calibration,
    choose_power,
    find_leads,
    log_chance,
    raise_to,
    score_powers,
    weigh_powers,
)
from .sources import HIDDEN, MOST_ANSWERS, Source
from .structures import Trail, subtract_statistics

# Folds, and steps of EM that follow answers that are hidden.
N_FOLDS, STEPS = 5, 2
# Answers per class that the crowd's matrix is worth when a worker's own is judged.
SHRINKAGE = 20.0

log = logging.getLogger("consilience")


class HiddenAnswers(NamedTuple):
    """Hidden answers, ascending, and what the others say about them, (n,) or (n, K) each."""

    answer: NDArray[np.int64]  # which answers these are
    fold: NDArray[np.int64]  # those of a fold were hidden together
    unit: NDArray[np.int64]  # 0, 1, ...: an answer, or all answers of a worker to a sequence
    posterior: Floats  # of the item of each, before calibration
    by_class: Floats  # the probability of each for each class, by the worker's matrix
    shrunk: Floats  # the same by counts that are shrunk as for `consilience.held_out_score`
    weight: Floats | None = None  # how much each counts

    def choose_power(self) -> tuple[Calibration, Floats]:
        """Return the power at which they are predicted best, and the log weight of each of `POWERS`."""
        scores = score_powers(self.posterior, self.by_class, self.unit, self.weight)
        if len(scores) < LEAST_UNITS:
            return Calibration(1.0), NOTHING_KNOWN
        leads = find_leads(scores)
        n_hidden = len(scores) if self.weight is not None else len(self.answer)
        return Calibration(choose_power(*leads), n_hidden), weigh_powers(*leads)

    def predict(self, power: float) -> Predicted:
        """Return how well they are predicted if posteriors are raised to a power."""
        raised = raise_to(self.posterior, power)
        alike = np.broadcast_to(raised.mean(axis=0), raised.shape)
        score, base = log_chance(raised, self.shrunk), log_chance(alike, self.shrunk)
        return Predicted(self.answer, self.fold, score, base, self.posterior.argmax(axis=1))


class Predicted(NamedTuple):
    """How well hidden answers are predicted, in log probability, (n,) each."""

    answer: NDArray[np.int64]
    fold: NDArray[np.int64]
    score: Floats  # by the posterior of the item of each
    base: Floats  # by the mean posterior of all of them, which says nothing about single items
    top: NDArray[np.int64]  # the most probable class of the item of each


def hide_from_fit(source: Source, problem: Problem, fit: Fit, seed: int) -> HiddenAnswers | None:
    """Hide answers, and predict them by two steps from the fit to all; None if none can be hidden."""
    r = source.responses
    # Where silence is an answer, one that is hidden would be another answer: silence. A single class suits all powers.
    if r.silence_counts or r.n_classes < 2:
        return None
    start = fit.parameters._replace(prior=fit.parameters.prior.settle())
    part, rows, others = source, None, problem.earlier
    if problem.graph is None and r.n_responses > MOST_ANSWERS:
        part, rows = draw_part(source, seed)
    r = part.responses
    if count_units(r) < 2:
        return None

    if rows is not None:
        others = subtract_statistics(fit.statistics, replace(problem.about(part), earlier=None).expect(fit.parameters))
    n_folds = N_FOLDS
    if problem.graph is not None and problem.graph.n_edges and cast(Any, fit.parameters.structure).coupling:
        # A network is inferred as a whole, and posteriors near 0 and 1 need more answers to be judged by.
        n_folds = 2 * N_FOLDS if r.n_responses <= MOST_ANSWERS else 1
    places, predictions = list[NDArray[np.int64]](), list[Floats]()
    for number, (hidden, unit) in enumerate(hide_answers(r, HIDDEN, seed, n_folds)):
        shown, answer, trail = part.keep(~hidden), np.flatnonzero(hidden), Trail()
        rest, parameters = replace(problem.about(shown), prior=start.prior, earlier=others), start
        statistics = rest.expect(parameters, trail)
        for _ in range(STEPS):
            parameters = maximise(rest, statistics, start.prior)
            statistics = rest.expect(parameters, trail)
        learned = maximise(rest, statistics, start.prior)
        left_out = infer_left_out(rest, learned, statistics, rest.infer(parameters)[0])
        item = r.items_of(answer)
        alone = problem.graph is None and r.sequences is None
        judging = can_judge(item, part.gold, np.diff(shown.responses.offsets)[item] if alone else None)
        answer, unit, item = answer[judging], unit[judging], item[judging]
        worker, label = r.worker[answer], r.label[answer]
        matrices = rest.workers.plain_mean(learned.workers, statistics.counts, start.prior)
        shrunk = shrink_rows(rest.workers.plain_counts(statistics.counts), worker, label)
        places.append(np.stack([answer, np.full_like(answer, number), unit]))
        predictions.append(np.stack([left_out[item], matrices[worker, label], shrunk]))
    place, (left_out, by_class, shrunk) = np.concatenate(places, axis=1), np.concatenate(predictions, axis=1)
    if not place.size:
        return None
    order = np.argsort(place[0], kind="stable")
    answer, fold, unit = place[:, order]
    # Units are numbered anew, since those of items that cannot judge are gone.
    unit = np.unique(fold * r.n_responses + unit, return_inverse=True)[1]
    return HiddenAnswers(
        answer if rows is None else rows[answer],
        fold,
        unit,
        left_out[order],
        by_class[order],
        shrunk[order],
        None if r.amount is None else r.amount[answer],
    )


def draw_part(source: Source, seed: int) -> tuple[Source, NDArray[np.int64]]:
    """Return the items, or sequences, with the smallest random numbers, and which answers those about them are."""
    r = source.responses
    numbers = draw_numbers(seed, hash_owners(r))
    n_drawn = max(MOST_ANSWERS * len(numbers) // r.n_responses, 1)
    drawn = numbers <= np.partition(numbers, n_drawn - 1)[n_drawn - 1]
    items = np.flatnonzero(drawn if r.sequences is None else drawn[r.sequences.of_items()])
    return source.about(items), r.answers_about(items)[0]


def can_judge(item: NDArray[np.int64], gold: Gold | None, n_left: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
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
    logs = log_chance(posterior[item], shrink_rows(counts, worker, label))
    totals = np.bincount(unit, weights=logs * r.weights(np.flatnonzero(hidden))).astype(np.float64)
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
