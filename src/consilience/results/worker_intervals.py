r"""95 % intervals of workers: of their accuracy and of their informativeness.

**Accuracy.** A worker's n answers, a share x of which is right by the posteriors, are worth :math:`n f / d` answers
with a known truth (see `consilience.results.answer_worth`). The fit pulls each worker towards the crowd: with
:math:`\theta` the accuracy of the worker's reported matrix, x is too close to the crowd's accuracy a by
:math:`(1 - f) (\theta - a)`. The interval is therefore centred at

.. math:: y = x + \frac{1 - f}{f} (x - \theta)

and its ends are quantiles of a Beta distribution with :math:`y n f / d` right and :math:`(1 - y) n f / d` wrong
answers, and half an answer more of each kind. The variance of what all workers share (:math:`S` of
`consilience.results.interval_sums`) is added to that of the worker's own answers, and makes these worth less.

**Informativeness.** The worker's matrix is tilted (the odds of all right answers are multiplied by one number) until
its accuracy is y. With :math:`I` the informativeness of this matrix :math:`\Gamma`, H the entropy of the class shares
:math:`\pi` and :math:`a_l = \sum_k \pi_k \Gamma_{kl}`, the delta method gives

.. math:: \operatorname{var} I = \frac{1}{H^2} \sum_k \frac{\pi_k^2}{n_k f / d} \operatorname{var}_{l \sim \Gamma_k}
          \log \frac{\Gamma_{kl}}{a_l}

The interval is symmetric in :math:`\sqrt I`, where the variance is stable as I goes to 0. Its lower end is 0 where
independence of answer and truth cannot be rejected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..answers.responses import Responses
from ..kernels.types import Floats
from .answer_worth import design_effect, measure_answers
from .interval_ends import NORMAL, beta_ends
from .interval_sums import MOST_ENTRIES, Estimates, Shared, Sums


class Answers(NamedTuple):
    """What each worker's answers are worth, (M,) each."""

    total: Floats  # sum of weights
    accuracy: Floats  # as reported
    centre: Floats  # accuracy without the pull towards the crowd
    worth: Floats  # number of answers with a known truth that would tell as much


def weigh_answers(sums: Sums, right: Floats, found: Estimates, shared: Shared | None) -> Answers:
    """Return what each worker's answers are worth."""
    total, accuracy, _, left = measure_answers(sums.chances)
    believed = (found.counts.sum(axis=1) * right).sum(axis=1) / np.maximum(total, 1e-300)
    centre = np.clip(accuracy + (1 - left) / left * (accuracy - believed), 0.0, 1.0)
    worth = sums.worth / design_effect(sums.votes)
    if shared is not None:
        mean = right @ found.prior
        moves = np.concatenate([found.prior * right * (1 - right), found.prior * (right - mean[:, None])], axis=1)
        common = np.einsum("mi,ij,mj->m", moves, shared.covariance, moves)
        spread = np.maximum(centre * (1 - centre), 0.25 / (total + 1))
        worth = worth / (1 + worth * common / spread)
    return Answers(total, accuracy, centre, worth)


def judge_workers(r: Responses, mass: Floats, found: Estimates, answers: Answers) -> Floats:
    """Return the intervals of accuracy and informativeness, (M, 4); NaN for workers without answers.

    `mass` (K,) are the sums of posteriors.
    """
    total, accuracy, centre, worth = answers
    ends = np.full((r.n_workers, 4), np.nan)
    answered = total > 0
    if r.n_labels == 1 and r.n_classes == 1:  # nobody can err
        ends[answered, :2] = 1.0
    else:
        low, high = beta_ends(centre, worth)
        ends[answered, 0] = np.minimum(low, accuracy)[answered]
        ends[answered, 1] = np.maximum(high, accuracy)[answered]
    met, centre = found.counts.sum(axis=1), (centre * worth + 0.5) / (worth + 1)
    if r.silence_counts:
        # A matrix has learned from silence too, and says more than the accuracy of what was said.
        met, centre = np.broadcast_to(mass, met.shape), np.full(r.n_workers, np.nan)
    size = max(1, MOST_ENTRIES // max(1, found.confusion[0].size))
    for first in range(0, r.n_workers, size):
        part = slice(first, first + size)
        worth_met = met[part] * (worth / np.maximum(total, 1e-300))[part, None]
        ends[part, 2:] = judge_information(found.confusion[part], found.prior, centre[part], worth_met, r)
    return ends


def judge_information(confusion: Floats, prior: Floats, centre: Floats, met: Floats, r: Responses) -> Floats:
    """Return the interval of informativeness of some workers, (M, 2).

    `centre` (M,) is the accuracy to tilt matrices to, NaN to leave them as they are. `met` (M, K) is how many answers
    with a known truth their answers about each class are worth.
    """
    reported = informativeness(confusion, prior)
    tilted = tilt(confusion, prior, centre, r)
    middle = informativeness(tilted, prior)
    entropy = -float(np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
    if entropy <= 1e-100:
        return np.stack([reported, reported], axis=1)
    answer = np.einsum("k,mkl->ml", prior, tilted)
    odds = np.log(np.maximum(tilted, 1e-300) / np.maximum(answer, 1e-300)[:, None, :])
    telling = np.einsum("mkl,mkl->mk", tilted, odds)
    variance = np.maximum(np.einsum("mkl,mkl,mkl->mk", tilted, odds, odds) - telling**2, 0.0)
    error = (prior**2 * variance / np.maximum(met, 0.5)).sum(axis=1) / entropy**2
    # Of one who tells nothing, 2 n I H has a chi-squared distribution, and its root a variance of about a half.
    nothing = 1 / (2 * np.maximum(met.sum(axis=1), 0.5) * entropy)
    deviation = np.sqrt(np.where(middle > 1e-8, error / (4 * np.maximum(middle, 1e-8)), nothing))
    low = np.maximum(np.sqrt(middle) - NORMAL * deviation, 0.0) ** 2
    high = np.minimum(np.sqrt(middle) + NORMAL * deviation, 1.0) ** 2
    return np.stack([np.minimum(low, reported), np.maximum(high, reported)], axis=1)


def tilt(confusion: Floats, prior: Floats, target: Floats, r: Responses) -> Floats:
    """Return matrices (M, K, A) with the odds of right answers multiplied until the accuracy is the `target`."""
    named = np.flatnonzero(r.label_of_class >= 0)
    right = confusion[:, named, r.label_of_class[named]]
    share = prior[named]
    low, high = np.full(len(right), -12.0), np.full(len(right), 12.0)
    for _ in range(30):
        middle = (low + high) / 2
        raised = right * np.exp(middle)[:, None]
        below = (share * raised / (1 - right + raised)).sum(axis=1) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    tilted = confusion.copy()
    tilted[:, named, r.label_of_class[named]] *= np.exp(np.where(np.isnan(target), 0.0, low))[:, None]
    return np.asarray(tilted / tilted.sum(axis=2, keepdims=True))


def judge_voters(right: Floats, total: Floats, information: Floats, prior: Floats) -> Floats:
    """Return the same as `judge_workers` where truth is taken to be the vote: nothing else is known."""
    ends = np.full((len(total), 4), np.nan)
    answered, scale = total > 0, np.maximum(total, 1e-300)
    accuracy = right / scale
    low, high = beta_ends(np.clip(accuracy, 0.0, 1.0), total)
    ends[answered, 0] = np.minimum(low, accuracy)[answered]
    ends[answered, 1] = np.maximum(high, accuracy)[answered]
    entropy = -float(np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
    reach = NORMAL / np.sqrt(2 * np.maximum(total, 0.5) * entropy) if entropy > 0 else np.zeros(len(total))
    ends[:, 2] = np.maximum(np.sqrt(information) - reach, 0.0) ** 2
    ends[:, 3] = np.minimum(np.sqrt(information) + reach, 1.0) ** 2
    return ends


def informativeness(confusion: Floats, prior: Floats) -> Floats:
    """Return I(answer; truth) / H(truth) for each worker, between 0 and 1."""
    return _share_of_entropy(_inform(prior[None, :, None] * confusion, prior).sum(axis=1), prior)


def informativeness_of_speech(confusion: Floats, prior: Floats) -> Floats:
    """Return what an answer tells about the truth on average when a worker speaks, as `informativeness` does.

    Where silence is an answer, a function that seldom speaks tells little about most items, however right it is:

        sum_l P(l) KL(P(truth | l) || P(truth)) / sum_l P(l),   over all answers l but the last one, silence
    """
    joint = prior[None, :, None] * confusion[:, :, :-1]
    speech = joint.sum(axis=(1, 2))
    total = _inform(joint, prior).sum(axis=1)
    return _share_of_entropy(np.divide(total, speech, out=np.zeros(len(joint)), where=speech > 0), prior)


def _inform(joint: Floats, prior: Floats) -> Floats:
    """Return sum_k P(k, l) log P(k, l) / (P(k) P(l)) of each worker and answer l, (M, L)."""
    answer = joint.sum(axis=1, keepdims=True)
    independent = prior[None, :, None] * answer
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=(joint > 0) & (independent > 0))
    return np.asarray(np.sum(joint * np.log(ratio), axis=1))


def _share_of_entropy(information: Floats, prior: Floats) -> Floats:
    """Return information as a share of the entropy of the truth, between 0 and 1."""
    entropy = -float(np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
    return np.asarray(np.clip(information / entropy, 0.0, 1.0)) if entropy > 0 else np.zeros(len(information))
