r"""Raters: how harsh or lenient each is, how exact, and how often careless.

A rater of type t = (b, s, e), with the bias b, the spread s and the carelessness e, says label l of an item of class k
with probability :math:`\pi_t(l \mid k)`, see `consilience.inference.workers.ordinal`. The types of a fit are few. Here
biases are 0.05 levels apart, on scales of more than eleven levels a 200th of the scale.

**Counts.** Let p be the probabilities of an item without the rater's own answer, see `consilience.results.chance`, and
:math:`C_m[l, k]` the sum of :math:`p_k` over the answers l of rater m. A class that is drawn from p need not be the
true one: it is h with the probability that all answers together tell,

.. math:: W[k, h] = \frac{\sum p_k p_h}{\sum p_k}

so that the answer to an item for which k was drawn is l with probability
:math:`\tilde\pi_t(l \mid k) = \sum_h W[k, h] \pi_t(l \mid h)`. Without W, raters would seem less exact than they are,
and biases larger. The likelihood of a type is

.. math:: \log L_{mt} = \sum_{kl} C_m[l, k] \log \tilde\pi_t(l \mid k)

It takes each answer for one draw, where p is the mean of many, so that intervals are rather too wide than too narrow.

**Posterior.** Biases of the crowd are normal with mean :math:`\mu` and variance :math:`v`, and pairs of spread and
carelessness have shares w. All three are learned in a few rounds from the posterior P of each rater, with a little
added:

.. math:: P_m(b, s, e) \propto N(b; \mu, v)\, w_{se}\, L_{mt}, \quad \mu = \frac1M \sum_m \operatorname{E} b_m, \quad
          v = \frac{\frac14 + \sum_m \operatorname{E} (b_m - \mu)^2}{M + 1}, \quad
          w_{se} \propto 0.2 + \sum_m P_m(s, e)

A bias is relative to the crowd, and reported as the mean of :math:`b - \mu` with an interval between quantiles of
2.5 % and 97.5 %. Spread and carelessness are means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inference.workers.ordinal import OrdinalWorkers, rate
from ..kernels import Floats

# The grid.
STEP, LEAST_REACH, MOST_BIASES = 0.05, 2.0, 401
SPREADS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
CARELESS = (0.01, 0.05, 0.2, 0.5, 0.9)
# On longer scales nothing is told: the grid, for each pair of levels, would take gigabytes.
MOST_LEVELS = 60
# What is learned of the crowd: how often, and what is added: to the sum of squares of one more rater, and to each pair.
ROUNDS, ADDED_SQUARE, ADDED = 30, 0.25, 0.2
# So many entries of a table of raters and types are worked on at a time. The crowd is learned from so many.
MOST_ENTRIES = 1 << 22
TAILS = (0.025, 0.975)
# What is reported of each rater.
FIGURES = ("bias", "bias_low", "bias_high", "spread", "careless")
# A bias of so many levels is worth a remark.
LEAST_BIAS = 0.3


class Crowd(NamedTuple):
    """What is learned of all raters."""

    mean: float  # of the biases
    biases: Floats  # the probability of each bias of the grid
    pairs: Floats  # the share of each pair of spread and carelessness


def find_raters(counts: Floats, pairs: Floats, workers: OrdinalWorkers) -> Floats:
    """Bias, both ends of its interval, spread and carelessness of each rater, (M, 5); NaN if nothing tells.

    Counts (M, L, K) and pairs (K, K) are those of `consilience.results.chance`.
    """
    named = np.flatnonzero(workers.class_of_label >= 0)
    found = np.full((len(counts), len(FIGURES)), np.nan)
    told = np.flatnonzero(counts[:, named].sum(axis=(1, 2)) > 0)
    if min(len(named), workers.n_classes) < 2 or workers.n_classes > MOST_LEVELS or not len(told):
        return found
    grid = list_biases(workers.n_classes)
    logs = list_logs(grid, pairs, workers)
    size = max(1, MOST_ENTRIES // logs[..., 0].size)
    some = told[np.linspace(0, len(told) - 1, min(size, len(told))).astype(np.int64)]
    crowd = learn_crowd(find_likelihood(counts[some][:, named], logs), grid)
    for first in range(0, len(told), size):
        part = told[first : first + size]
        found[part] = describe(find_likelihood(counts[part][:, named], logs), grid, crowd)
    return found


def list_biases(n_classes: int) -> Floats:
    """The biases of the grid, (B,)."""
    reach = max(LEAST_REACH, n_classes - 1.0)
    return np.linspace(-reach, reach, min(round(2 * reach / STEP) + 1, MOST_BIASES))


def list_logs(biases: Floats, pairs: Floats, workers: OrdinalWorkers) -> Floats:
    """The logarithms of what types answer to a class that is drawn, (B, S E, L' K)."""
    named = workers.class_of_label[workers.class_of_label >= 0]
    total = pairs.sum(axis=1, keepdims=True)
    drawn = np.divide(pairs, total, out=np.eye(len(pairs)), where=total > 0)
    logs = np.empty((len(biases), len(SPREADS) * len(CARELESS), len(named) * workers.n_classes))
    for number, bias in enumerate(biases):  # one by one: in between there are several tables of this size
        types = np.array(np.meshgrid([bias], SPREADS, CARELESS, indexing="ij")).reshape(3, -1).T
        logs[number] = np.log(rate(types, workers.places, named) @ drawn.T).reshape(logs.shape[1:])
    return logs


def find_likelihood(counts: Floats, logs: Floats) -> Floats:
    """The likelihood of each type for some raters, (M, B, S E), up to a factor for each rater."""
    scores = counts.reshape(len(counts), -1) @ logs.reshape(-1, logs.shape[2]).T
    scores -= scores.max(axis=1, keepdims=True)
    return np.exp(scores, out=scores).reshape(len(counts), *logs.shape[:2])


def learn_crowd(likelihood: Floats, biases: Floats) -> Crowd:
    """What the likelihoods (M, B, S E) of raters tell of their crowd."""
    n, mean, variance = len(likelihood), 0.0, 1.0
    shares = np.full(likelihood.shape[2], 1 / likelihood.shape[2])
    for _ in range(ROUNDS):
        density = spell_density(biases, mean, variance)
        of_bias = (likelihood @ shares) * density
        evidence = of_bias.sum(axis=1, keepdims=True)
        of_pair = np.tensordot(likelihood, density, axes=(1, 0)) * shares / evidence
        average = (of_bias / evidence).sum(axis=0)
        mean = float(average @ biases) / n
        variance = (ADDED_SQUARE + float(average @ (biases - mean) ** 2)) / (n + 1)
        shares = of_pair.sum(axis=0) + ADDED
        shares /= shares.sum()
    return Crowd(mean, spell_density(biases, mean, variance), shares)


def spell_density(biases: Floats, mean: float, variance: float) -> Floats:
    """The probability of each bias of the grid under a normal distribution."""
    density = np.exp(-((biases - mean) ** 2) / (2 * variance))
    return np.asarray(density / density.sum())


def describe(likelihood: Floats, biases: Floats, crowd: Crowd) -> Floats:
    """The figures of some raters, (M, 5), by their likelihoods (M, B, S E)."""
    of_bias = (likelihood @ crowd.pairs) * crowd.biases
    of_bias /= of_bias.sum(axis=1, keepdims=True)
    of_pair = np.tensordot(likelihood, crowd.biases, axes=(1, 0)) * crowd.pairs
    of_pair = (of_pair / of_pair.sum(axis=1, keepdims=True)).reshape(-1, len(SPREADS), len(CARELESS))
    # A bias stands for all that are nearest to it.
    half = (biases[1] - biases[0]) / 2
    edges = np.append(biases - half, biases[-1] + half) - crowd.mean
    below = np.pad(of_bias.cumsum(axis=1), ((0, 0), (1, 0)))
    ends = [np.interp(TAILS, each, edges) for each in below]
    spread, careless = of_pair.sum(axis=2) @ np.array(SPREADS), of_pair.sum(axis=1) @ np.array(CARELESS)
    return np.column_stack([of_bias @ biases - crowd.mean, np.array(ends), spread, careless])


def remark_on_bias(figures: Floats) -> list[str]:
    """The remark "harsh by ... levels" or "lenient by ... levels" for raters whose bias is beyond doubt, else "".

    >>> remark_on_bias(np.array([[-0.84, -1.1, -0.6, 0.5, 0.0], [0.2, 0.1, 0.3, 0.5, 0.0], [0.9, -0.1, 2, 0.5, 0.0]]))
    ['harsh by 0.8 levels', '', '']
    """
    bias, low, high = figures[:, :3].T
    clear = (np.abs(bias) >= LEAST_BIAS) & ((low > 0) | (high < 0))
    return [
        f"{'harsh' if size < 0 else 'lenient'} by {abs(size):.1f} levels" if told else ""
        for size, told in zip(bias.tolist(), clear.tolist(), strict=True)
    ]


def are_contrary(counts: Floats, said: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whose answers are lower where the truth is higher, (M,), by counts (M, L, K); `said` is the class of labels.

    The correlation of answer and truth must be two standard errors below 0.

    >>> harsh, reversed_ = np.tri(3).T, np.eye(3)[::-1]
    >>> are_contrary(20 * np.stack([harsh, reversed_]), np.arange(3))
    array([False,  True])
    """
    inner = counts[:, said >= 0]
    n = np.maximum(inner.sum(axis=(1, 2)), 1e-300)
    given, true = said[said >= 0].astype(np.float64), np.arange(counts.shape[2], dtype=np.float64)
    by_label, by_class = inner.sum(axis=2) / n[:, None], inner.sum(axis=1) / n[:, None]
    covariance = np.einsum("mlk,l,k->m", inner, given, true) / n - (by_label @ given) * (by_class @ true)
    squares = (by_label @ given**2 - (by_label @ given) ** 2) * (by_class @ true**2 - (by_class @ true) ** 2)
    return np.asarray(covariance < -2 * np.sqrt(np.maximum(squares, 0.0) / n))
