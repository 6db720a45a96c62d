"""Distance of estimated parameters from true ones, for simulated data and for workers checked against gold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import to_floats
from ..errors import InputError, first_line


def confusion_error(true: ArrayLike, estimated: ArrayLike) -> float:
    r"""Return the mean over workers of the induced 1-norm of the error of their confusion matrices.

    .. math:: \frac{1}{M} \sum_w \max_k \sum_l | \Gamma_w(k, l) - \hat\Gamma_w(k, l) |

    with k the truth and l the answer. Where confusion matrices are written the other way round, answers in
    rows, this is the largest column sum.

    Parameters
    ----------
    true, estimated : array-like, shape (n_workers, n_classes, n_labels)
        `confusion[w, truth, answer]`; rows sum to 1.

    Returns
    -------
    float
        Between 0 and 2.

    Examples
    --------
    >>> true = [[[0.9, 0.1], [0.2, 0.8]]]
    >>> estimated = [[[0.8, 0.2], [0.2, 0.8]]]
    >>> round(confusion_error(true, estimated), 6)
    0.2
    """
    return float(np.mean(np.abs(_difference(true, estimated, "confusion", 3)).sum(axis=2).max(axis=1)))


def transition_error(true: ArrayLike, estimated: ArrayLike) -> float:
    r"""Return the induced 1-norm of the error of a transition matrix.

    .. math:: \max_k \sum_l | T(k, l) - \hat T(k, l) |

    with k the class left and l the class entered.

    Parameters
    ----------
    true, estimated : array-like, shape (n_classes, n_classes)
        `transition[from, to]`; rows sum to 1.

    Returns
    -------
    float
        Between 0 and 2.

    Examples
    --------
    >>> round(transition_error([[0.9, 0.1], [0.5, 0.5]], [[0.8, 0.2], [0.1, 0.9]]), 6)
    0.8
    """
    return float(np.abs(_difference(true, estimated, "transition", 2)).sum(axis=1).max())


def prior_error(true: ArrayLike, estimated: ArrayLike) -> float:
    r"""Return the L1 distance between two distributions over classes.

    .. math:: \sum_k | \pi(k) - \hat\pi(k) |

    Parameters
    ----------
    true, estimated : array-like, shape (n_classes,)
        Probabilities of the classes.

    Returns
    -------
    float
        Between 0 and 2.

    Examples
    --------
    >>> round(prior_error([0.5, 0.5], [0.6, 0.4]), 6)
    0.2
    """
    return float(np.abs(_difference(true, estimated, "prior", 1)).sum())


def rank_correlation(x: ArrayLike, y: ArrayLike) -> float:
    r"""Return Spearman's rank correlation, e.g. of estimated against true accuracies of workers.

    .. math:: \rho = \mathrm{cor}(\mathrm{rank}(x), \mathrm{rank}(y))

    Parameters
    ----------
    x, y : array-like, shape (n_workers,)
        One number per worker; ties share their mean rank.

    Returns
    -------
    float
        Between -1 and 1; nan if a side holds a nan or has the same value throughout, as nothing is ranked then.

    Examples
    --------
    >>> round(rank_correlation([0.9, 0.8, 0.6, 0.7], [0.95, 0.7, 0.5, 0.6]), 6)
    1.0
    """
    from scipy.stats import spearmanr

    first, second = _pair(x, y, "rank", 1)
    if np.isnan(first).any() or np.isnan(second).any() or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(spearmanr(first, second).statistic)


def _difference(true: ArrayLike, estimated: ArrayLike, name: str, n_axes: int) -> NDArray[np.float64]:
    first, second = _pair(true, estimated, name, n_axes)
    return first - second


def _pair(
    first: ArrayLike, second: ArrayLike, name: str, n_axes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        a, b = to_floats(first), to_floats(second)
    except ValueError as error:
        raise InputError(f"The two {name} arrays must hold numbers; {first_line(error)}.") from error
    if a.shape != b.shape or a.ndim != n_axes or not a.size:
        raise InputError(
            f"The two {name} arrays must have the same shape, with {n_axes} axes and none empty. "
            f"Got shapes {a.shape} and {b.shape} instead."
        )
    return a, b
