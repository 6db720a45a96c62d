r"""Which of two ways to fuse: whether numbers are a scale, and how soft votes are fused.

Both ways are fitted to answers of which some are hidden, and predict these. One fold is hidden, of at most a quarter of
the answers; of many answers, those about some items are looked at.

**A scale or names.** Classes that are whole numbers may be levels, such as ratings, or names, such as 1 for cats and 2
for dogs. Different answers to one item are levels near each other, if they are a scale. With :math:`n_c` the answers of
level c, the distance :math:`|c - d|` of different answers to one item is compared with its mean if they were drawn at
random, :math:`\sum_{cd} n_c n_d |c - d| / \sum_{c \ne d} n_c n_d`: if it is not clearly smaller, the numbers are names.
Else workers of ordinal types, who confuse classes that are near each other, and workers of nominal types, who do not,
predict the hidden answers f of workers m about items n by

.. math:: \log \sum_k q_{nk} \Gamma_m[k, f]

with their own posteriors q and matrices. The classes are a scale if ordinal types are ahead by three standard errors
(over items), and by at least `LEAST_LEAD`. Numbers for classes that look alike in pairs, such as breeds, can be ahead
by a little: then an order explains some errors, and is none.

**Soft votes** are fused with learned temperatures, or by the mean of the probabilities. To be comparable, both predict
the most probable label l of a hidden vote of worker m from the posterior q of its item. Classes must keep their
meaning: a fit that finds other classes, and predicts all labels well through a matrix of confusions, has not found the
truth. So a worker is right with one probability :math:`a_m`, and errs evenly,

.. math:: \log\Bigl(a_m q_l + \frac{(1 - a_m)(1 - q_l)}{K - 1}\Bigr)

at the power of q, and with the :math:`a_m`, that suit each way best. Temperatures are taken unless the mean is ahead of
them by more than chance: else the seed, by which votes are hidden, would decide.

It must also be worth something. With :math:`S = \operatorname{softmax}(b_m x + a)` what the hidden vote itself says, at
the temperature :math:`b_m` that suits it best (see `consilience.inference.workers.temperatures`), and with the bias of
all votes with which the mean of S is that of q, a vote tells

.. math:: \sum_k q_k \bigl(\log S_k - \log \bar q_k\bigr)

of the label beyond the shares :math:`\bar q` of the classes. If that is less than a part `TELLING` of log K, workers
agree on how frequent the classes are and on little else, and the mean is taken.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import to_numbers
from ..answers.columns import Indices
from ..answers.random_choices import count_units, draw_numbers, hide_answers
from ..engines import Engine
from ..errors import quietly
from ..inference import STANDARD_ERRORS
from ..inference.estimator import LatentEstimator, renew
from ..inference.hidden_answers import POWERS, log_chance, mean_and_error, raise_to
from ..inference.observations import HIDDEN, Observations
from ..inference.workers.temperatures import MeanWorkers, TemperatureWorkers
from ..kernels import NEARLY_ZERO, Floats, Integers
from ..results.comparison import LEAST_HIDDEN, SURE_ERRORS, TELLING, ScaleCheck, SoftCheck
from ..results.worker_report import ADDED_TO_CLASS_SHARES, fit_factors

# A scale has so many levels.
FEWEST_LEVELS, MOST_NUMBERED_LEVELS = 3, 11
# Answers, and soft votes, that are looked at, and how many of them are hidden, in a share of at most a quarter.
MOST_ANSWERS_COMPARED, MOST_VOTES, ENOUGH_HIDDEN_ANSWERS, ENOUGH_HIDDEN_VOTES, MOST_HIDDEN = (
    50_000,
    20_000,
    500,
    2_000,
    0.25,
)
# The gain per answer at which a fit that is only to be compared stops.
COMPARED_TOL = 1e-4
WAYS = (TemperatureWorkers.name, MeanWorkers.name)
# Steps by which accuracies are found; votes that the mean accuracy is worth.
ACCURACY_STEPS, ACCURACY_SHRINKAGE = 25, 5.0


def order_levels(crowd: Answers) -> Indices | None:
    """The order of classes that look like the levels of a scale; None for others.

    These are consecutive whole numbers, or numbers with a smaller step from each to the next, such as half stars.
    Where silence is an answer, they do not.
    """
    levels = to_numbers(crowd.classes)
    if levels is None or crowd.silence_counts or not FEWEST_LEVELS <= len(levels) <= MOST_NUMBERED_LEVELS:
        return None
    order = np.argsort(levels, kind="stable")
    steps, is_whole = np.diff(levels[order]), bool((levels == np.round(levels)).all())
    is_even = bool(0 < steps[0] < 1) and np.allclose(steps, steps[0], rtol=1e-6)
    return order if (is_whole and (steps == 1).all()) or is_even else None


def give_ranks(crowd: Answers, order: Indices) -> Answers:
    """The same answers, with classes in this order as levels of a scale."""
    ranks = tuple(map(float, range(crowd.n_classes)))
    return replace(crowd, classes=crowd.classes[order], positions=ranks)


def check_scale(model: LatentEstimator, crowd: Answers, order: Indices, engine: Engine) -> ScaleCheck | None:
    """Compare ordinal with nominal workers; None if too few answers can be hidden, or these are soft votes."""
    r = give_ranks(take_sample(crowd, model.seed, MOST_ANSWERS_COMPARED), order)
    share = float(np.clip(ENOUGH_HIDDEN_ANSWERS / r.n_responses, HIDDEN, MOST_HIDDEN))
    if r.soft is not None or count_units(r) < r.n_responses or round(share * r.n_responses) < LEAST_HIDDEN:
        return None
    if not differ_by_little(r):
        return ScaleCheck(math.nan, math.nan)
    with quietly():
        hidden, _ = next(hide_answers(r, share, model.seed))
        answer, shown, scores = np.flatnonzero(hidden), Observations(r.keep(~hidden)), []
        for kind in ("ordinal", "nominal"):
            way = renew(model, workers=kind)
            problem, fit = way._fit_without_features(shown, None, engine)
            posterior = problem.infer(fit.parameters)[r.items_of(answer)]
            parameters = fit.parameters
            matrices = problem.workers.plain_mean(parameters.workers, fit.statistics.counts, parameters.prior)
            scores.append(log_chance(posterior, matrices[r.worker[answer], r.label[answer]]))
    unit = np.unique(r.owners_of(r.items_of(answer)), return_inverse=True)[1]
    totals = np.bincount(unit, scores[0] - scores[1]).astype(np.float64)
    return ScaleCheck(*mean_and_error(totals, np.bincount(unit)))


def differ_by_little(r: Answers) -> bool:
    """Whether different answers to one item are clearly nearer to each other than at random."""
    rank = r.class_of_label[r.label]
    item, n_levels = r.item_of_answer(), r.n_classes
    cell = item[rank >= 0] * n_levels + rank[rank >= 0]
    counts = np.bincount(cell, minlength=r.n_items * n_levels).reshape(-1, n_levels).astype(np.float64)
    distance = np.abs(np.subtract.outer(np.arange(n_levels), np.arange(n_levels))).astype(np.float64)
    differ, total = np.minimum(distance, 1.0), counts.sum(axis=0)
    expected = (total @ distance @ total) / max(total @ differ @ total, 1.0)
    nearer = -np.einsum("nc,cd,nd->n", counts, distance - expected * differ, counts)
    return bool(nearer.sum() > SURE_ERRORS * np.sqrt(np.sum(nearer**2)))


def take_sample(crowd: Answers, seed: int, most: int) -> Answers:
    """Answers about some items, as independent ones, by the workers who gave them.

    Items are told apart by hashes, so that positions of sequences are items like others.
    """
    n_items = most * crowd.n_items // crowd.n_responses
    hashes = crowd.item_hashes
    r = replace(crowd, keys=hashes, gold=None)
    if n_items < r.n_items:
        numbers = draw_numbers(seed, hashes)
        r = r.about(np.flatnonzero(numbers <= np.partition(numbers, n_items)[n_items]))
    return r.keep_workers(np.bincount(r.worker, minlength=r.n_workers) > 0)


def check_ways(model: LatentEstimator, answers: Answers, engine: Engine) -> SoftCheck:
    """Compare the ways of fusing soft votes; without enough votes that can be hidden, the mean is taken."""
    r = take_sample(answers, model.seed, MOST_VOTES)
    share = float(np.clip(ENOUGH_HIDDEN_VOTES / r.n_responses, HIDDEN, MOST_HIDDEN))
    if round(share * r.n_responses) < LEAST_HIDDEN or r.n_classes < 2:
        return SoftCheck(MeanWorkers.name)
    with quietly():
        hidden, _ = next(hide_answers(r, share, model.seed))
        shown, answer = r.keep(~hidden), np.flatnonzero(hidden)
        # Where nobody else voted there is nothing to predict by.
        answer = answer[np.diff(shown.offsets)[r.items_of(answer)] > 0]
        if len(answer) < LEAST_HIDDEN:
            return SoftCheck(MeanWorkers.name)
        held_out = []
        for name in WAYS:
            way = renew(model, workers=name)
            problem, fit = way._fit_without_features(Observations(shown), None, engine)
            held_out.append(problem.infer(fit.parameters)[r.items_of(answer)])
    worker, label = r.worker[answer], r.class_of_label[r.label[answer]]
    rows, named = np.arange(len(answer)), label >= 0
    logs = []
    for posterior in held_out:  # at the power that suits each way best
        right = (raise_to(posterior, power)[rows, label][named] for power in POWERS[::-2])
        scores = [score_labels(each, worker[named], r.n_workers, r.n_classes) for each in right]
        logs.append(max(scores, key=np.mean))
    votes = TemperatureWorkers.of(r, r.class_of_label, r.n_classes).read_votes(r)[answer].astype(np.float64)
    return choose_way(
        np.stack(logs), [measure_information(each, votes, worker, r.n_workers) for each in held_out], r.n_classes
    )


def choose_way(logs: Floats, information: list[float], n_classes: int) -> SoftCheck:
    """The way that hidden votes call for.

    `logs` (2, n) is how temperatures and the mean predict each of them, `information` what votes tell of the fused
    label.
    """
    lead = logs[1] - logs[0]
    best = int(lead.mean() > STANDARD_ERRORS * lead.std() / np.sqrt(len(lead)))
    telling = bool(information[best] >= TELLING * np.log(n_classes))
    return SoftCheck(WAYS[best] if telling else MeanWorkers.name, float(logs[0].mean()), float(logs[1].mean()), telling)


def score_labels(right: Floats, worker: Integers, n_workers: int, n_classes: int) -> Floats:
    """The log probability of labels, each with the probability that it is right, by accuracies that fit."""
    n_votes, wrong = np.bincount(worker, minlength=n_workers), (1 - right) / (n_classes - 1)
    accuracy = np.full(n_workers, right.mean())
    for _ in range(ACCURACY_STEPS):
        a = accuracy[worker]
        share = a * right / np.maximum(a * right + (1 - a) * wrong, NEARLY_ZERO)
        accuracy = (np.bincount(worker, share, n_workers) + ACCURACY_SHRINKAGE * share.mean()) / (
            n_votes + ACCURACY_SHRINKAGE
        )
    a = np.clip(accuracy, 1e-3, 1 - 1e-3)[worker]
    return np.asarray(np.log(a * right + (1 - a) * wrong))


def measure_information(posterior: Floats, votes: Floats, worker: Integers, n_workers: int) -> float:
    """The information of votes x (n, K) about labels with these posteriors, in nats, at the best temperatures."""
    shares = posterior.mean(axis=0) + ADDED_TO_CLASS_SHARES
    _, alone = fit_factors(votes, worker, posterior, n_workers, shares)
    return float(
        np.einsum("nk,nk->", posterior, np.log(np.maximum(alone, NEARLY_ZERO)) - np.log(shares)) / len(posterior)
    )
