r"""The ends of a 95 % interval, from an estimate and how well it is known.

With x a share that n answers or items with a known truth speak for, the ends are the 2.5 % and 97.5 % quantiles of

.. math:: \operatorname{Beta}(x n + \tfrac{1}{2}, (1 - x) n + \tfrac{1}{2})

For a share of N whole items with mean x and variance v they are those of
:math:`\operatorname{Beta}(x n, (1 - x) n)` with :math:`n = x (1 - x) / v`, rounded outwards to whole items.
"""

from __future__ import annotations

import numpy as np

from ..kernels.types import Floats

# Two-sided 95 %.
TAILS = (0.025, 0.975)
NORMAL = 1.959963984540054


def beta_ends(share: Floats, worth: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval of shares that so many answers speak for: quantiles of Beta(s n + 1/2, (1 - s) n + 1/2).

    >>> low, high = beta_ends(np.array([1.0]), np.array([3.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.46], [1.0])
    """
    from scipy.special import betaincinv

    for_it, against = share * worth + 0.5, (1 - share) * worth + 0.5
    low, high = (np.asarray(betaincinv(for_it, against, tail)) for tail in TAILS)
    return low, high


def accuracy_ends(mean: float, variance: float, n_items: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of whole items with this mean and variance."""
    from scipy.special import betaincinv

    if np.isnan(variance):
        return 0.0, 1.0
    if variance == 0 or not 0 < mean < 1:
        return mean, mean
    worth = max(mean * (1 - mean) / variance, 1e-3)
    low, high = (float(betaincinv(mean * worth, (1 - mean) * worth, tail)) for tail in TAILS)
    low, high = np.floor(low * n_items + 1e-9) / n_items, np.ceil(high * n_items - 1e-9) / n_items
    return min(float(low), mean), max(float(high), mean)


def open_ends(ends: Floats, axis: int) -> Floats:
    """Return ends in which low and high, along this axis, are 0 and 1 where they are not known."""
    low, high = np.take(ends, 0, axis), np.take(ends, 1, axis)
    unknown = np.isnan(low) | np.isnan(high)
    return np.stack([np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)], axis)


def few_units(n_units: int) -> float:
    """Return by what a variance from few units must be multiplied where quantiles are those of a normal."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n_units - 1, 1), TAILS[1]) / NORMAL) ** 2
