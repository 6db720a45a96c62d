r"""How soft votes are fused: with learned temperatures, or by the mean of the probabilities.

Both ways are fitted to nine tenths of the votes. To be comparable, they predict the same thing: the most probable
label l of a vote of worker m that was hidden, from the posterior q of its item. Classes must keep their meaning: a fit
that finds other classes, and predicts all labels well through a matrix of confusions, has not found the truth. So a
worker is right with one probability :math:`a_m`, and errs evenly,

.. math:: \log\Bigl(a_m q_l + \frac{(1 - a_m)(1 - q_l)}{K - 1}\Bigr)

at the power of q, and with the :math:`a_m`, that suit each way best. Temperatures are taken unless the mean is ahead of
them by more than chance: else the seed, by which votes are hidden, would decide.

It must also be worth something. With :math:`S = \operatorname{softmax}(b_m x + a)` what the hidden vote itself says, at
the temperature :math:`b_m` that suits it best (see `consilience.inference.workers.temperatures`), and with the bias of
all votes with which the mean of S is that of q, a vote tells

.. math:: \sum_k q_k \bigl(\log S_k - \log \bar q_k\bigr)

of the label beyond the shares :math:`\bar q` of the classes. If that is less than a part `TELLING` of log K, workers
agree on how frequent the classes are and on little else, and the mean is taken.

Of many votes, those about some items are looked at.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import Indices
from ..answers.random_choices import hide_answers
from ..engines.base import Engine
from ..errors import quietly
from ..inference.powers import POWERS, raise_to
from ..inference.recipes.independent import IndependentRecipe
from ..inference.sources import HIDDEN, Source
from ..inference.workers.temperatures import LEAST, MOST, MeanWorkers, TemperatureWorkers
from ..kernels import Floats, Integers
from ..results.comparison import LEAST_HIDDEN, STANDARD_ERRORS, TELLING, SoftCheck, WayScore
from .scale_check import take_sample

WAYS = (TemperatureWorkers.name, MeanWorkers.name)
# Votes that are looked at, and votes to hide in all, in folds of a tenth, if there are so many. There are fewer folds
# if matrices are large: the entries of all matrices, over all folds.
MOST_VOTES, ENOUGH, MOST_FOLDS, MOST_ENTRIES = 20_000, 2_000, 4, 1_000_000
# Steps by which accuracies, and temperatures, are found; votes that the mean accuracy is worth.
STEPS, SHRINKAGE = 25, 5.0
RIDGE, LEAST_SHARE = 1e-3, 1e-6


def check_ways(recipe: IndependentRecipe, answers: Answers, engine: Engine) -> SoftCheck:
    """Compare the ways; without enough votes that can be hidden, the mean is taken."""
    r = take_sample(answers, recipe.seed, MOST_VOTES)
    n_hidden = round(HIDDEN * r.n_responses)
    if n_hidden * MOST_FOLDS < LEAST_HIDDEN or r.n_classes < 2:
        return SoftCheck(MeanWorkers.name, [])
    least = int(np.ceil(LEAST_HIDDEN / n_hidden))
    most = min(MOST_FOLDS, max(least, MOST_ENTRIES // (r.n_workers * r.n_classes**2)))
    n_folds = int(np.clip(np.ceil(ENOUGH / n_hidden), 1, most))
    hidden, posteriors = list[Indices](), {way: list[Floats]() for way in WAYS}
    with quietly():
        for which, _ in hide_answers(r, HIDDEN, recipe.seed, n_folds):
            shown = r.keep(~which)
            # Where nobody else voted there is nothing to predict by.
            answer = np.flatnonzero(which)
            answer = answer[np.diff(shown.offsets)[r.items_of(answer)] > 0]
            hidden.append(answer)
            for way in WAYS:
                fitting = replace(recipe, workers=way)
                problem, fit = fitting.fit_unguided(Source(shown), None, engine)
                posteriors[way].append(fitting.conclude(problem, fit.parameters)[r.items_of(answer)])
    answer = np.concatenate(hidden)
    if len(answer) < LEAST_HIDDEN:
        return SoftCheck(MeanWorkers.name, [])
    found = {way: np.concatenate(each) for way, each in posteriors.items()}
    logs = np.stack([predict_votes(r, answer, found[way]) for way in WAYS])
    votes = TemperatureWorkers.of(r, r.class_of_label, r.n_classes).read_votes(r)[answer].astype(np.float64)
    told = [measure_told(found[way], votes, r.worker[answer], r.n_workers) for way in WAYS]
    scores = [WayScore(*each) for each in zip(WAYS, logs.mean(axis=1).tolist(), told, strict=True)]
    return choose_way(scores, logs, r.n_classes)


def choose_way(scores: list[WayScore], logs: Floats, n_classes: int) -> SoftCheck:
    """The way that hidden votes call for; `logs` (2, n) is how temperatures and the mean predict each of them."""
    lead = logs[1] - logs[0]
    best = scores[int(lead.mean() > STANDARD_ERRORS * lead.std() / np.sqrt(len(lead)))]
    telling = bool(best.told >= TELLING * np.log(n_classes))
    return SoftCheck(best.way if telling else MeanWorkers.name, scores, telling)


def predict_votes(r: Answers, answer: Indices, posterior: Floats) -> Floats:
    """Return how well the labels of hidden votes are predicted by the posteriors (n, K) of their items, one by one."""
    worker, label = r.worker[answer], r.class_of_label[r.label[answer]]
    rows, named = np.arange(len(answer)), label >= 0
    raised = [raise_to(posterior, power)[rows, label][named] for power in POWERS[::-2]]
    return max((predict_labels(each, worker[named], r.n_workers, r.n_classes) for each in raised), key=np.mean)


def predict_labels(right: Floats, worker: Integers, n_workers: int, n_classes: int) -> Floats:
    """Return the log probability of labels, each with the probability that it is right, by accuracies that fit."""
    n_votes, wrong = np.bincount(worker, minlength=n_workers), (1 - right) / (n_classes - 1)
    accuracy = np.full(n_workers, right.mean())
    for _ in range(STEPS):
        a = accuracy[worker]
        share = a * right / np.maximum(a * right + (1 - a) * wrong, 1e-300)
        accuracy = (np.bincount(worker, share, n_workers) + SHRINKAGE * share.mean()) / (n_votes + SHRINKAGE)
    a = np.clip(accuracy, 1e-3, 1 - 1e-3)[worker]
    return np.asarray(np.log(a * right + (1 - a) * wrong))


def measure_told(posterior: Floats, votes: Floats, worker: Integers, n_workers: int) -> float:
    """Return what a vote x (n, K) tells of labels with these posteriors, in nats, at the best temperatures."""
    shares = posterior.mean(axis=0) + LEAST_SHARE
    temperature, bias = np.ones(n_workers), np.log(shares)
    for _ in range(STEPS):
        alone = soften(temperature[worker, None] * votes + bias)
        bias += 0.7 * (np.log(shares) - np.log(alone.mean(axis=0) + LEAST_SHARE))
        mean = np.einsum("nk,nk->n", alone, votes)
        slope = np.bincount(worker, np.einsum("nk,nk->n", posterior - alone, votes), n_workers)
        spread = np.einsum("nk,nk->n", alone, (votes - mean[:, None]) ** 2)
        temperature += 0.7 * slope / (np.bincount(worker, spread, n_workers) + RIDGE)
        temperature = np.clip(temperature, LEAST, MOST)
    alone = soften(temperature[worker, None] * votes + bias)
    return float(np.einsum("nk,nk->", posterior, np.log(np.maximum(alone, 1e-300)) - np.log(shares)) / len(posterior))


def soften(logs: Floats) -> Floats:
    """Return the softmax of each row."""
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
