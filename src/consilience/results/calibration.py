r"""Probabilities one can bet on: posteriors are raised to a power, which is chosen by what they predict.

All models assume that workers err independently of each other. Where they do not, posteriors are too sure of
themselves. So a posterior q is reported as

    q_nk^t / sum_j q_nj^t

with one power t for all items (see `consilience.results.powers`). It is chosen by hidden answers: some answers are
hidden, the model is fitted to the others, and t is where the answers that were hidden are predicted best (see
`consilience.results.hidden_fits`).

A classifier that learned from the features of other items has not seen the answers to an item. So it is one more hidden
worker, whose labels are predicted by posteriors without what is known of the items beside their answers. If these are
too sure, the classifier agrees hardly more often where they are sure than elsewhere. The power is at most the largest
one whose prediction of the classifier's labels is within one standard error of the best.

Where labels are known (`gold`), each item is judged as if its label were not known. The logarithm of t has a normal
prior around the choice of hidden answers, with a standard deviation of 1, and its posterior mean given the known labels
is taken: there are few of them, and the best power would depend too much on which these are. No power is above 1, so
that a few labels lower it somewhat, whatever they say; on real crowds the choice of hidden answers is too large. Where
there are no hidden answers, the prior is around 1, with a standard deviation of 2, and the likeliest power is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.gold import Gold
from ..answers.hashing import draw_units
from ..answers.responses import Responses
from ..answers.vocabulary import VERY_MANY
from ..arguments import is_number
from ..errors import DataWarning, Sentence, parameter_error, warn
from ..inference.em import Fit, Problem, infer_left_out
from ..kernels.types import Floats
from ..memory import release_unused
from .hidden_fits import Judged, Totals, find_by_hidden
from .intervals import Confidence
from .powers import (
    LEAST_UNITS,
    NOTHING_KNOWN,
    POWERS,
    Calibration,
    Evidence,
    KnownScores,
    draw_powers,
    find_leads,
    log_density_around,
    mean_power,
    raise_where,
    score_gold,
    weigh_powers,
)

if TYPE_CHECKING:
    from ..models.guidance import Opinion
    from ..models.latent import LatentModel

CHOICES = ("hidden answers", "gold", "none")
# A classifier judges powers by so many items, and its matrix takes so many steps of EM.
MOST_JUDGED, MATRIX_STEPS = 10_000, 30


class Calibrated(NamedTuple):
    """What calibration found."""

    found: Calibration
    left_out: Floats  # posteriors that are yet to be raised to the power
    confidence: Confidence
    hidden: list[Judged]  # answers that were hidden, in folds
    evidence: Evidence  # about the power, of this batch and of all before


def check_calibration(owner: LatentModel) -> None:
    """Raise an error unless the parameter `calibration` has a value that it can have."""
    value = owner.calibration
    if not (value in CHOICES if isinstance(value, str) else is_number(value) and 0 < float(value) < np.inf):
        expected = f"one of {', '.join(map(repr, CHOICES))}, or a number > 0"
        raise parameter_error("calibration", type(owner).__name__, expected, value)


def calibrate(
    owner: LatentModel,
    r: Responses,
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    gold: Gold | None,
    opinion: Opinion | None = None,
    totals: Totals | None = None,
    known: KnownScores | None = None,
    earlier: Evidence | None = None,
) -> Calibrated:
    """Return how a model calibrates the posteriors of its fit.

    `opinion` is what a classifier says of the items, if it has a say. If the answers are a sample of a larger
    crowd, `totals` says how large that is, and `known` how well the known labels of all items are predicted. If they
    are a batch of a stream, `earlier` is what speaks for each power in the batches before.
    """
    evidence = Evidence.nothing() if earlier is None else earlier
    if owner.calibration == "none":
        confidence = Confidence(np.ones(1), lambda _, run: posterior[run])
        return Calibrated(Calibration(1.0, given=True), posterior, confidence, [], evidence)

    @cache  # only where it is needed: the search for the power takes memory itself
    def left_out() -> Floats:
        if r.n_responses >= VERY_MANY:
            release_unused()
        # Matrices that were given have learned from no item.
        return infer_left_out(problem, fit.parameters, fit.statistics, posterior) if owner.max_iter else posterior

    if not isinstance(owner.calibration, str):
        found = Calibration(float(owner.calibration), given=True)
        powers, hidden = np.array([found.power]), list[Judged]()
    elif owner._going_on is not None and owner._going_on.keeps_power and not owner.calibration_.given:
        found, powers, hidden = owner.calibration_, np.array(owner._powers), []
        kept = owner._past or owner._due  # the latter if nobody has asked for intervals since the last update
        evidence = evidence if kept is None else kept.evidence
    else:
        found, log_weights, hidden, evidence = find_power(
            owner, r, problem, fit, posterior, left_out, gold, opinion, totals, known, earlier
        )
        powers = draw_powers(log_weights)

    changed, honest = owner._find_raised(r), left_out()

    def raised(power: float, run: slice) -> Floats:
        return raise_where(changed[run], honest[run], power)

    return Calibrated(found, honest, Confidence(powers, raised, found.power), hidden, evidence)


def find_power(
    owner: LatentModel,
    r: Responses,
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    left_out: Callable[[], Floats],
    gold: Gold | None,
    opinion: Opinion | None,
    totals: Totals | None = None,
    known: KnownScores | None = None,
    earlier: Evidence | None = None,
) -> tuple[Calibration, Floats, list[Judged], Evidence]:
    """Return the power that hidden answers and known labels call for, and the log weight of each of `POWERS`.

    With them comes how well the hidden answers are predicted, at the power that they call for themselves: errors that
    workers share are in these answers too, and known labels lower the power because of such errors. Last comes what
    speaks for each power, in earlier batches too.
    """
    found, log_weights, hidden = Calibration(1.0), NOTHING_KNOWN, list[Judged]()
    evidence = Evidence.nothing() if earlier is None else earlier
    if owner.calibration == "hidden answers":
        found, log_weights, folds, evidence = find_by_hidden(owner, r, problem, fit, gold, totals, earlier)
        if opinion is not None:
            found, log_weights = limit_power(r, left_out(), opinion, found, log_weights)
        hidden = [fold.judge(found.power) for fold in folds]
    if known is None and gold is not None:
        known = score_known(owner, r, problem, fit, posterior, gold)
    evidence = evidence.with_known(known)
    n_known, scores = round(evidence.sizes[2]), evidence.known
    if n_known:
        if found.n_hidden or found.n_judged:
            log_weights = scores + log_density_around(found.power, 1.0)
            power = mean_power(log_weights)
        else:
            log_weights = scores + log_density_around(1.0, 2.0)
            power = float(POWERS[log_weights.argmax()])
        found = found._replace(power=power, n_gold=n_known)
    elif owner.calibration == "gold":
        lack = "There are no known labels" if known is None else "No known label was drawn at random"
        if gold is not None and gold.judging.any():
            lack = "The known labels that were drawn at random are those of items without answers"
        warn(
            DataWarning(
                f"{lack}, and probabilities were to be calibrated by known labels alone.",
                Sentence("Give some with {gold}."),
                Sentence("Or calibrate by hidden answers, with {calibration}.", calibration="hidden answers"),
                keyword="calibration",
            )
        )
    return found, log_weights, hidden, evidence


def score_known(
    owner: LatentModel, r: Responses, problem: Problem, fit: Fit, posterior: Floats, gold: Gold
) -> KnownScores:
    """Judge items of known label as if it were not known.

    They were drawn at random, and the power changes their posteriors: not those of independent items without answers.
    """
    known = np.flatnonzero(gold.judging & owner._find_raised(r))
    if not len(known):
        return KnownScores(np.zeros(len(POWERS)), 0)
    unknown = infer_left_out(problem, fit.parameters, fit.statistics, posterior, use_gold=False)
    return KnownScores(score_gold(gold.codes[known], unknown[known]), len(known))


def limit_power(
    r: Responses, left_out: Floats, opinion: Opinion, found: Calibration, log_weights: Floats
) -> tuple[Calibration, Floats]:
    """Return the power, and the log weights, after a classifier has judged how sure posteriors may be."""
    rows = np.flatnonzero(np.diff(r.offsets)[opinion.item] > 0)
    rows = draw_units(rows, opinion.unit, MOST_JUDGED)
    unit = np.unique(opinion.unit[rows], return_inverse=True)[1]
    if len(rows) == 0 or unit[-1] + 1 < LEAST_UNITS:
        return found, log_weights
    scores = score_by_classifier(r, left_out, opinion.item[rows], opinion.code[rows], unit)
    lead, error = find_leads(scores)
    limit = float(POWERS[lead <= error].max())
    if limit >= found.power:
        return found, log_weights
    return found._replace(power=limit, n_judged=len(rows)), log_weights + weigh_powers(lead, error)


def score_by_classifier(
    r: Responses, left_out: Floats, item: NDArray[np.int64], label: NDArray[np.int64], unit: NDArray[np.int64]
) -> Floats:
    """Return the log probability of the labels that a classifier gives to items, at each of `POWERS`, (units, powers).

    The classifier is taken for one more worker, whose matrix suits each power best. What is known of the items beside
    their answers, its own opinion among it, is taken out of the posteriors `left_out`. A unit is an item, or all items
    of a sequence.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(left_out[item])
    if r.log_prior is not None:
        logs -= np.where(np.isfinite(r.log_prior[item]), r.log_prior[item], 0.0)
    logs -= logs.max(axis=1, keepdims=True)
    said = np.eye(r.n_classes)[label]
    scores = []
    for power in POWERS.tolist():
        known = np.exp(power * logs)
        known /= known.sum(axis=1, keepdims=True)
        confusion = 0.5 * np.eye(r.n_classes) + 0.5 / r.n_classes
        for _ in range(MATRIX_STEPS):
            joint = known * confusion[:, label].T
            counts = (joint / joint.sum(axis=1, keepdims=True)).T @ said + 0.1
            confusion = counts / counts.sum(axis=1, keepdims=True)
        score = np.log(np.einsum("nk,nk->n", known, confusion[:, label].T))
        scores.append(np.bincount(unit, score))
    return np.stack(scores, axis=1)
