r"""Probabilities one can bet on: posteriors are raised to a power, which is chosen by what they predict.

All models assume that workers err independently of each other. Where they do not, posteriors are too sure of
themselves. So a posterior q is reported as

    q_nk^t / sum_j q_nj^t

with one power t for all items. It is chosen by hidden answers: some answers are hidden, two steps of EM
continue with the others, and t is where the answers that were hidden are predicted best (see
`consilience.inference.hidden_answers`).

A classifier that learned from the features of other items has not seen the answers to an item. So it is one more hidden
worker, whose labels are predicted by posteriors without what is known of the items beside their answers. If these are
too sure, the classifier agrees hardly more often where they are sure than elsewhere. The power is at most the largest
one whose prediction of the classifier's labels is within one standard error of the best.

Where labels are known (`gold`), each item is judged as if its label were not known. The logarithm of t has a normal
prior around the choice of hidden answers, with a standard deviation of 1, and its posterior mean given the known labels
is taken: there are few of them, and the best power would depend too much on which these are. No power is above 1, so
that a few labels lower it somewhat, whatever they say; on real crowds the choice of hidden answers is too large. Where
there are no hidden answers, the prior is around 1, with a standard deviation of 2, and the likeliest power is taken.

**Spans.** The confidence of a span is the probability that exactly this span with this type is there. For IOB2 tags it
is

    p = P(y_a = B-X, y_{a+1} = ... = y_b = I-X, y_{b+1} is not I-X)

In a chain p comes from the posterior of the whole sequence, by the evidence and the chain that calibrated posteriors
come from: each token is left out of what was learned about its workers, and a forbidden step is only improbable. It is
reported as

    p^t / (p^t + (1 - p)^t)

with the power t of the model. For models without a chain tokens are independent, and p is the product of calibrated
posteriors of the tags; see `consilience.kinds.span_kind`.

Tags are read in any scheme; see `consilience.answers.tagging`. A span that begins with I-X, in a scheme that has no B-X
there, must not continue with the span before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Values
from ..answers.random_choices import draw_units
from ..answers.tagging import find_continuations, find_run_probabilities, find_runs, split_tags
from ..errors import DataWarning, Sentence, warn
from ..inference.em import Fit, Problem, infer_left_out
from ..inference.estimator import LatentEstimator
from ..inference.features import FeatureFit
from ..inference.hidden_answers import (
    LEAST_UNITS,
    N_POWERS,
    NOTHING_KNOWN,
    POWERS,
    Calibration,
    Predicted,
    add_batch,
    hide_from_fit,
    log_density_around,
    mean_power,
    raise_to,
    raise_where,
    score_gold,
    weigh_powers,
)
from ..inference.labels import choose_labels
from ..inference.observations import Observations
from ..inference.structures import IndependentParameters, StructureParameters
from ..kernels import Floats
from ..limits import ITEMS_AT_ONCE

# A classifier judges powers by so many items, and its matrix takes so many steps of EM.
MOST_JUDGED, MATRIX_STEPS = 10_000, 30
# Powers beyond these mean the same, and their squares are still numbers.
POWER_RANGE = (1e-50, 1e50)
# Lower log weights of a power mean the same.
LEAST_LOG_WEIGHT = -1e9


class Calibrated(NamedTuple):
    """How probabilities were calibrated."""

    calibration: Calibration
    powers: list[float]  # equally likely ones, of which `calibration.power` is chosen
    # Log weight of each of `POWERS` by hidden answers, and log probability of known labels at each: those of the
    # batches of a stream add up.
    log_weights: Floats = NOTHING_KNOWN
    known_scores: Floats = np.zeros(len(POWERS))
    predicted: Predicted | None = None  # the hidden answers of the fit
    # Expected accuracy of labels that are not known, if known ones have no say in calibration; 1 if there are none.
    blind_accuracy: float = 1.0
    # Uncalibrated posteriors of the items of known label as if it were not known, each left out of what judges it.
    blind: Floats | None = None


def find_raised(structure: StructureParameters, r: Answers) -> NDArray[np.bool_]:
    """The items whose posterior is raised to a power.

    Of an independent item without answers all that speaks is the class prior, and what else is known of the item. There
    are no errors that workers could share.
    """
    if isinstance(structure, IndependentParameters) and not r.silence_counts:
        return np.asarray(r.offsets[1:] > r.offsets[:-1])
    return np.ones(r.n_items, bool)


def calibrate(
    model: LatentEstimator,
    observations: Observations,
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    left_out: Floats,
    opinion: FeatureFit | None = None,
    before: Calibrated | None = None,
) -> Calibrated:
    """Calibrate the posteriors of a fit.

    Hidden answers are predicted at the power that they call for themselves: errors that workers share are in these
    answers too, and known labels lower the power because of such errors.

    `posterior` and `left_out` (N, K) are those of the fit, and those that leave each item out. `opinion` is what a
    classifier says of the items, if it is used. If the answers are a batch of a stream, `before` is the calibration
    of the batches before.
    """
    r, gold, calibration = observations.responses, observations.gold, model.calibration
    if isinstance(calibration, str) and calibration == "none":
        return Calibrated(Calibration(1.0, given=True), [1.0])

    is_fitted = model.max_iter > 0
    by_hidden_answers = isinstance(calibration, str) and calibration == "hidden answers"
    hidden = hide_from_fit(observations, problem, fit, model.seed) if by_hidden_answers and is_fitted else None
    changed = find_raised(fit.parameters.structure, r)

    if not isinstance(calibration, str):
        power = float(np.clip(float(calibration), *POWER_RANGE))
        calibrated = Calibrated(Calibration(power, given=True), [power])
    else:
        # What hidden answers, the classifier and earlier batches call for.
        calibrated_by, log_weights, by_hidden, predicted = Calibration(1.0), NOTHING_KNOWN, NOTHING_KNOWN, None
        caution, limits = 1.0, np.ones(1)
        if by_hidden_answers:
            if hidden is not None:
                calibrated_by, log_weights = hidden.choose_power()
            if opinion is not None:
                calibrated_by, log_weights = limit_power(observations, left_out, opinion, calibrated_by, log_weights)
            if before is not None:
                calibrated_by, log_weights = add_batch(
                    before.calibration, before.log_weights, calibrated_by, log_weights
                )
            predicted = None if hidden is None else hidden.predict(calibrated_by.power)
            by_hidden = np.maximum(log_weights, LEAST_LOG_WEIGHT)
            if calibrated_by.n_hidden:
                caution, limits = problem.workers.caution, problem.workers.limit_power(fit.statistics.counts)
                power = min(caution * calibrated_by.power, float(np.median(limits)))
                calibrated_by = calibrated_by._replace(power=power, lowered=caution < 1)

        # Items of known label are judged as if it were not known. The power goes by those that were drawn at random.
        scores, blind, n_known, n_right = np.zeros(len(POWERS)), None, 0, 0
        if gold is not None and ((gold.codes >= 0) & changed).any():
            judging = np.flatnonzero(gold.judging & changed)
            unknown = infer_left_out(problem, fit.parameters, fit.statistics, posterior, use_gold=False)
            scores, blind = score_gold(gold.codes[judging], unknown[judging]), unknown[gold.codes >= 0]
            n_known = len(judging)
            n_right = int(np.sum(choose_labels(unknown[judging], model.label_by) == gold.codes[judging]))
        if before is not None:
            scores, n_known = scores + before.known_scores, n_known + before.calibration.n_gold
            n_right += before.calibration.n_right
        if n_known:
            if calibrated_by.n_hidden or calibrated_by.n_judged:
                log_weights = scores + log_density_around(calibrated_by.power, 1.0)
                power = mean_power(log_weights)
            else:
                log_weights = scores + log_density_around(1.0, 2.0)
                power = float(POWERS[log_weights.argmax()])
            calibrated_by = calibrated_by._replace(
                power=power, n_gold=n_known, n_right=n_right, power_before=calibrated_by.power
            )
        elif calibration == "gold":
            warn(
                DataWarning(
                    "There are no known labels that were drawn at random, of items with answers, and probabilities "
                    "were to be calibrated by known labels alone.",
                    Sentence("Give some with {gold}."),
                    Sentence("Or calibrate by hidden answers, with {calibration}.", calibration="hidden answers"),
                    keyword="calibration",
                )
            )
        # A few powers that are equally likely: quantiles of their distribution.
        weights = np.exp(log_weights - log_weights.max())
        below, shares = np.cumsum(weights) / weights.sum(), (np.arange(N_POWERS) + 0.5) / N_POWERS
        powers = POWERS[np.searchsorted(below, shares).clip(max=len(POWERS) - 1)]
        if not n_known:
            # The power that is used is cautious, and may lie below all that are likely.
            powers = np.append(np.minimum.outer(limits, caution * powers).ravel(), calibrated_by.power)
        calibrated = Calibrated(calibrated_by, powers.tolist(), by_hidden, scores, predicted, blind=blind)

    if calibrated.calibration.n_gold:
        # The mean probability of the labels that are not known, if known ones have no say.
        sums = np.zeros(2)
        for first in range(0, r.n_items, ITEMS_AT_ONCE):
            run = slice(first, first + ITEMS_AT_ONCE)
            judged = raise_where(changed[run], left_out[run], calibrated.calibration.power_before)
            judged = judged if gold is None else judged[gold.codes[run] < 0]
            codes = choose_labels(judged, model.label_by)
            sums += judged[np.arange(len(judged)), codes].sum(), len(judged)
        calibrated = calibrated._replace(blind_accuracy=float(sums[0] / sums[1]) if sums[1] else 1.0)
    return calibrated


def limit_power(
    observations: Observations, left_out: Floats, opinion: FeatureFit, calibration: Calibration, log_weights: Floats
) -> tuple[Calibration, Floats]:
    """The power, and the log weights, after a classifier has judged how sure posteriors may be."""
    rows = np.flatnonzero(np.diff(observations.responses.offsets)[opinion.item] > 0)
    rows = draw_units(rows, opinion.unit, MOST_JUDGED)
    unit = np.unique(opinion.unit[rows], return_inverse=True)[1]
    if len(rows) == 0 or unit[-1] + 1 < LEAST_UNITS:
        return calibration, log_weights
    scores = score_by_classifier(observations, left_out, opinion.item[rows], opinion.code[rows], unit)
    near, weights = weigh_powers(scores)
    limit = float(POWERS[near].max())
    if limit >= calibration.power:
        return calibration, log_weights
    return calibration._replace(power=limit, n_judged=len(rows)), log_weights + weights


def score_by_classifier(
    observations: Observations,
    left_out: Floats,
    item: NDArray[np.int64],
    label: NDArray[np.int64],
    unit: NDArray[np.int64],
) -> Floats:
    """The log probability of the labels that a classifier gives to items, at each of `POWERS`, (units, powers).

    The classifier is taken for one more worker, whose matrix suits each power best. What is known of the items beside
    their answers, its own opinion among it, is taken out of the posteriors `left_out`. A unit is an item, or all items
    of a sequence.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(left_out[item])
    known, n_classes = observations.log_prior, left_out.shape[1]
    if known is not None:
        logs -= np.where(np.isfinite(known[item]), known[item], 0.0)
    logs -= logs.max(axis=1, keepdims=True)
    said = np.eye(n_classes)[label]
    scores = []
    for power in POWERS.tolist():
        raised = np.exp(power * logs)
        raised /= raised.sum(axis=1, keepdims=True)
        confusion = 0.5 * np.eye(n_classes) + 0.5 / n_classes
        for _ in range(MATRIX_STEPS):
            joint = raised * confusion[:, label].T
            counts = (joint / joint.sum(axis=1, keepdims=True)).T @ said + 0.1
            confusion = counts / counts.sum(axis=1, keepdims=True)
        score = np.log(np.einsum("nk,nk->n", raised, confusion[:, label].T))
        scores.append(np.bincount(unit, score))
    return np.stack(scores, axis=1)


def find_span_confidence(
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    codes: NDArray[np.int64],
    classes: Values,
    sequence: NDArray[np.int64],
    left_out: bool,
    power: float,
) -> Floats:
    """The confidence of each span among the labels of a chain."""
    from ..inference.chains import follow_labels

    continues = find_continuations(*split_tags(classes.tolist())).astype(np.float64)
    statistics = fit.statistics if left_out else None
    parts = follow_labels(problem, fit.parameters, statistics, posterior, codes, continues)
    probability = find_run_probabilities(parts, find_runs(codes, classes, sequence))
    return raise_to(np.column_stack([probability, 1 - probability]), power)[:, 0]
