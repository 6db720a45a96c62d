"""From expected counts to probabilities, by maximum a posteriori or by variational Bayes.

Both take counts n of shape (R, L, K) (for each r and k a distribution over L outcomes) and pseudo-counts s, and give
what the E-step multiplies (`weights`), what is reported (`mean`), and what the distributions add to the objective
(`bound`):

==============  ==================================  =====================  ======================================
estimation      weights                             mean                   bound
==============  ==================================  =====================  ======================================
"em"            p = (n + s) / sum_l (n + s)         p                      sum s log p
"variational"   exp(psi(a) - psi(sum_l a))          a / sum_l a            -KL(Dir(a) || Dir(s)), a = n + s
==============  ==================================  =====================  ======================================

So in EM the pseudo-counts are those of a Dirichlet(s + 1) prior, whose mode is sought, and in variational Bayes s is
the Dirichlet parameter itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels import Floats, freeze, read_only
from ..limits import side_by_side

# A thread is worth starting for so many entries of tables of counts.
ENTRIES_PER_THREAD = 1 << 16


class Distributions(NamedTuple):
    """Distributions over axis 1 of arrays (R, L, K): as the E-step uses them, and as they are reported."""

    log_weights: Floats
    mean: Floats
    bound: float

    @classmethod
    def known(cls, mean: Floats) -> Distributions:
        """Probabilities that are given: the E-step uses what is reported."""
        with np.errstate(divide="ignore"):
            return cls(freeze(np.log(mean)), mean, 0.0)


def fit_distributions(counts: Floats, smoothing: Floats, estimation: str) -> Distributions:
    """The distributions that expected counts call for.

    Parameters
    ----------
    counts : array of shape (R, L, K)
        Expected counts.
    smoothing : array of shape (1, L, K) or (R, L, K)
        Pseudo-counts.
    estimation : {"em", "variational"}
        See the table above.

    Examples
    --------
    >>> counts = np.array([[[9.0], [1.0]]])
    >>> fit_distributions(counts, np.ones((1, 2, 1)), "em").mean.ravel()
    array([0.83333333, 0.16666667])
    """
    from ..kernels.answers import add_expectations

    total = counts + smoothing
    mass = total.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / mass
    if (mass <= 0).any():
        # A class that a worker never met, and no smoothing: the crowd's matrix stands in, or else ignorance.
        crowd = counts.sum(axis=0)
        crowd_mass = crowd.sum(axis=0)
        safe = np.where(crowd_mass > 0, crowd_mass, 1.0)
        fallback = np.where(crowd_mass > 0, crowd / safe, 1.0 / counts.shape[1])
        mean = np.where(mass > 0, mean, fallback)
    if estimation == "em":
        with np.errstate(divide="ignore"):
            logs = np.log(mean)
            if np.any((mean == 0) & (total > 0)):
                # Pseudo-counts so small that the quotient is 0 as a double, which would cost the bound infinitely much.
                logs = np.where((mean == 0) & (total > 0), np.log(total) - np.log(mass), logs)
        # 0 log 0 = 0: where nothing is added, a probability may be zero.
        bound = float(np.sum(smoothing * np.where(smoothing > 0, logs, 0.0))) if np.any(smoothing > 0) else 0.0
        return Distributions(freeze(logs), mean, bound)
    log_weights = np.zeros_like(total)
    bounds, (n_labels, n_classes) = np.empty(len(counts)), counts.shape[1:]

    side_by_side(
        lambda start, stop: add_expectations(
            read_only(counts[start:stop]),
            read_only(smoothing[start:stop] if len(smoothing) > 1 else smoothing),
            np.empty((n_labels, n_classes)),
            np.empty((n_labels, n_classes)),
            np.empty(n_classes),
            log_weights[start:stop],
            bounds[start:stop],
        ),
        len(counts),
        ENTRIES_PER_THREAD // (n_labels * n_classes),
    )
    return Distributions(freeze(log_weights), freeze(mean), float(bounds.sum()))


def fit_distribution(counts: Floats, smoothing: float, estimation: str) -> tuple[Floats, Floats, float]:
    """Weights, mean and bound of the one distribution (L,) that expected counts (L,) call for."""
    shape = (1, len(counts), 1)
    fitted = fit_distributions(counts.reshape(shape), np.full(shape, smoothing), estimation)
    weights = fitted.mean if estimation == "em" else np.exp(fitted.log_weights)
    return freeze(weights.ravel()), freeze(fitted.mean.ravel()), fitted.bound


def log_of(probabilities: Floats) -> Floats:
    """Logarithms; that of 0 is minus infinity."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


def weigh_logs(counts: Floats, logs: Floats) -> float:
    """The sum of counts times logarithms, with 0 log 0 = 0.

    >>> weigh_logs(np.array([2.0, 0.0]), np.array([-0.5, -np.inf]))
    -1.0
    """
    return float(np.sum(np.multiply(counts, logs, out=np.zeros_like(counts), where=counts > 0)))
