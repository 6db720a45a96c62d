r"""Powers that posteriors are raised to: what they do, how well each predicts, and which one is taken.

A posterior q is reported as

    q_nk^t / sum_j q_nj^t

with one power t for all items. t = 1 changes nothing; the nearer it is to 0, the closer probabilities are to 1 / K.
`POWERS` are tried. The score of a hidden answer l of worker m, by a fit to the other answers, is

    log sum_k q_nk^t / Z_n Gamma_m[k, l]

times how much the answer counts.
With s_u(t) the score of a unit u (an answer, or all answers of a worker in a sequence), and t* the power of the largest
sum, the lead of t* over t and its standard error are

    L(t) = sum_u d_u,    E(t) = sqrt(sum_u d_u^2 - L(t)^2 / n),    d_u = s_u(t*) - s_u(t)

The smallest t with L(t) <= E(t) is taken.

In a stream, hidden answers and known labels of all batches choose the power: log likelihoods -2 (L / E)^2, and
log probabilities of known labels, add up over batches.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import plural
from ..kernels import Floats
from . import ITEMS_AT_ONCE

POWERS = np.geomspace(0.01, 1.0, 33)
# Log weights before anything is known: workers err independently, and the power is 1, or, as likely, they do not, and
# all powers from 0 to 1 are equally likely. (`POWERS` are dense where they are small.)
NOTHING_KNOWN = np.log(POWERS / POWERS.sum() + (POWERS == 1))
# Probabilities below this are as good as 0.
IMPOSSIBLE = 1e-300
# So many equally likely powers stand for what is not known of the right one.
N_POWERS = 8
# Fewer units than this say nothing.
LEAST_UNITS = 20


class Calibration(NamedTuple):
    """The power that posteriors were raised to, and what it was chosen by.

    Attributes
    ----------
    power : float
        The power.
    n_hidden : int
        Hidden answers by which it was chosen.
    n_gold : int
        Known labels by which it was chosen.
    given : bool
        Whether it was given instead.
    n_judged : int
        Items by which a classifier of their features lowered it.
    n_right : int
        Known labels that the model gives if it does not know them.
    power_before : float
        The power without known labels.
    lowered : bool
        Whether it is about half of what hidden answers called for, since classifiers share errors.
    """

    power: float
    n_hidden: int = 0
    n_gold: int = 0
    given: bool = False
    n_judged: int = 0
    n_right: int = 0
    power_before: float = 1.0
    lowered: bool = False

    def describe(self) -> str:
        """Return in words how probabilities were calibrated."""
        if self.given:
            return f"Probabilities were raised to the power {self.power:.2g}, which was given."
        by = [plural(self.n_hidden, "hidden answer")] if self.n_hidden else []
        by += [plural(self.n_judged, "label") + " of the classifier"] if self.n_judged else []
        by += [plural(self.n_gold, "known label")] if self.n_gold else []
        if not by:
            return "Probabilities were not raised to a power: there was nothing to calibrate them by."
        if self.power == 1:
            return f"Probabilities were checked against {' and '.join(by)}, and needed no correction."
        if self.lowered:
            warning = (
                " Hidden answers alone call for twice as much, but classifiers share errors that these do not show."
            )
            return f"Probabilities were raised to the power {self.power:.2g}, chosen by {' and '.join(by)}.{warning}"
        warning = (
            ""
            if self.n_gold
            else " Errors that workers share cannot be seen in this way; known labels would show them."
        )
        return f"Probabilities were raised to the power {self.power:.2g}, chosen by {' and '.join(by)}.{warning}"


def raise_to(posterior: Floats, power: float) -> Floats:
    """Return the posteriors raised to a power, normalised. What is certain stays so.

    >>> raise_to(np.array([[0.8, 0.2], [1.0, 0.0]]), 0.5).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0]]
    """
    if power == 1.0:
        return posterior
    raised = (posterior / reduce(np.maximum, posterior.T)[:, None]) ** power
    raised[posterior <= 0] = 0.0
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def raise_where(changed: NDArray[np.bool_], posterior: Floats, power: float) -> Floats:
    """Return the posteriors, those that are to be `changed` raised to a power."""
    raised = raise_to(posterior, power)
    return raised if changed.all() else np.where(changed[:, None], raised, posterior)


def raise_in_place(changed: NDArray[np.bool_], posterior: Floats, power: float) -> None:
    """Raise posteriors to a power run by run, since a second array of all of them would take much memory."""
    for first in range(0, len(posterior), ITEMS_AT_ONCE):
        run = slice(first, first + ITEMS_AT_ONCE)
        posterior[run] = raise_where(changed[run], posterior[run], power)


def score_powers(posterior: Floats, by_class: Floats, unit: NDArray[np.int64], weight: Floats | None = None) -> Floats:
    """Return the log probability of each hidden unit at each of `POWERS`, (n_units, n_powers).

    `posterior` (n, K) is that of the item of each hidden answer, and `by_class` (n, K) how probable the answer is for
    each class, both by the other answers. The unit of a hidden answer is the answer itself, or all answers of its
    worker in the sequence, which are right or wrong together. `weight` is how much each answer counts.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(posterior)
    logs -= logs.max(axis=1, keepdims=True)
    scores = []
    for power in POWERS.tolist():
        raised = np.exp(power * logs)  # what is impossible stays so
        score = log_chance(raised, by_class) - np.log(np.einsum("ik->i", raised))
        scores.append(np.bincount(unit, score if weight is None else weight * score))
    return np.stack(scores, axis=1)


def log_chance(posterior: Floats, by_class: Floats) -> Floats:
    """The log probability of answers from those of the classes of their items, and of the answers by class."""
    return np.asarray(np.log(np.maximum(np.einsum("ik,ik->i", posterior, by_class), IMPOSSIBLE)))


def score_gold(gold: NDArray[np.int32], posterior: Floats) -> Floats:
    """Return the log probability of known classes at each of `POWERS`, by posteriors (n, K) that did not know them."""
    rows = np.arange(len(gold))
    return np.array([np.log(np.maximum(raise_to(posterior, t)[rows, gold], 1e-12)).sum() for t in POWERS])


def find_leads(scores: Floats) -> tuple[Floats, Floats]:
    """Return by how much the best power's score exceeds each other's, and the standard error, paired over units."""
    lead = scores[:, [int(scores.sum(axis=0).argmax())]] - scores
    return lead.sum(axis=0), lead.std(axis=0) * np.sqrt(len(scores))


def choose_power(lead: Floats, error: Floats) -> float:
    """Return the smallest power whose score is within one standard error, paired over units, of the best one's.

    `lead` and `error` are those of `find_leads`. The smallest: errors that workers share are predicted as if they were
    the truth, so that hidden answers call for too large a power rather than for too small a one.
    """
    return float(POWERS[(lead <= error).argmax()])


def weigh_powers(lead: Floats, error: Floats) -> Floats:
    """Return the log weight of each of `POWERS` by its scores at hidden units, whose `find_leads` these are.

    Near the best power the lead L of that one is quadratic in the distance, and its standard error E linear. If units
    are independent and the model holds, the log likelihood is -L = -2 (L / E)^2. The latter also holds where units
    hang together.
    """
    ratio = np.divide(lead, error, out=np.zeros_like(lead), where=error > 0)
    return np.asarray(NOTHING_KNOWN - 2 * ratio**2)


def add_batch(
    before: Calibration, earlier: Floats, found: Calibration, log_weights: Floats
) -> tuple[Calibration, Floats]:
    """The power that hidden answers of all batches call for, and the log weights of `POWERS`.

    `earlier` are those of the batches before, `log_weights` those of the last one. As for one batch, it is the smallest
    power whose lead is within one standard error of the best.
    """
    n_hidden = before.n_hidden + found.n_hidden
    if not n_hidden:
        return found, log_weights
    log_likelihood = earlier + log_weights - 2 * NOTHING_KNOWN
    power = float(POWERS[(log_likelihood >= log_likelihood.max() - 2).argmax()])
    return Calibration(power, n_hidden), NOTHING_KNOWN + log_likelihood


def mean_power(scores: Floats) -> float:
    """Return the power whose logarithm is the mean of those of `POWERS`, with log weights `scores`."""
    weights = np.exp(scores - scores.max())
    return float(np.exp((weights * np.log(POWERS)).sum() / weights.sum()))


def log_density_around(power: float, deviation: float) -> Floats:
    """Return the log density of each of `POWERS`: normal in the logarithm, around a power."""
    return np.asarray(-0.5 * ((np.log(POWERS) - np.log(power)) / deviation) ** 2)


def draw_powers(log_weights: Floats) -> Floats:
    """Return a few of `POWERS` that are equally likely: quantiles of their distribution.

    >>> draw_powers(NOTHING_KNOWN).round(1).tolist()
    [0.1, 0.4, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    weights = np.exp(log_weights - log_weights.max())
    shares = (np.arange(N_POWERS) + 0.5) / N_POWERS
    return np.asarray(POWERS[np.searchsorted(np.cumsum(weights) / weights.sum(), shares).clip(max=len(POWERS) - 1)])
