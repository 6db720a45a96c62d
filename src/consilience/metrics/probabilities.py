"""Metrics of probabilities: those of labels against gold, and estimated parameters of a crowd against true ones.

The column order of a posterior is given by `classes`. Where several classes share the top probability, the top label is
the first of them, as in `argmax`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, first_line, listing, parameter_error
from ..options import check_truth, is_whole, to_floats
from .labels import Codes, Labels, encode_labels

_CLIP = 1e-10  # one confident mistake costs 23 nats, not infinity
_MOST_BINS = 1_000_000
_SUM_TOLERANCE = 0.01  # lets probabilities rounded for a file through, and stops logits and counts


class ReliabilityCurve(NamedTuple):
    """Mean confidence, accuracy and number of items of each non-empty bin, by rising confidence."""

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    n_items: NDArray[np.int64]


def log_loss(gold: Labels, posterior: ArrayLike, classes: Labels) -> float:
    r"""The mean negative log probability of the gold label, in nats.

    .. math:: -\frac{1}{N} \sum_i \log \max(p_i(y_i), 10^{-10})

    Parameters
    ----------
    gold : array-like of labels
        One label of `classes` per item.
    posterior : array-like, shape (n_items, n_classes)
        Probabilities; rows sum to 1.
    classes : array-like of labels
        What the columns of `posterior` stand for.

    Returns
    -------
    float
        0 is perfect, log(n_classes) is what a uniform guess gets.

    Examples
    --------
    >>> round(log_loss(["a", "b"], [[0.9, 0.1], [0.5, 0.5]], classes=["a", "b"]), 4)
    0.3993
    """
    truth, probability = _check(gold, posterior, classes)
    of_gold = probability[np.arange(len(truth)), truth]
    return float(np.mean(np.log(1 / np.maximum(of_gold, _CLIP))))


def brier(gold: Labels, posterior: ArrayLike, classes: Labels) -> float:
    r"""The multi-class Brier score.

    .. math:: \frac{1}{N} \sum_i \sum_k (p_i(k) - 1[k = y_i])^2

    Parameters
    ----------
    gold : array-like of labels
        One label of `classes` per item.
    posterior : array-like, shape (n_items, n_classes)
        Probabilities; rows sum to 1.
    classes : array-like of labels
        What the columns of `posterior` stand for.

    Returns
    -------
    float
        0 is perfect, 2 is certain and always wrong. For two classes it is twice the one-column Brier score.

    Examples
    --------
    >>> round(brier(["a", "b"], [[0.9, 0.1], [0.5, 0.5]], classes=["a", "b"]), 4)
    0.26
    """
    truth, probability = _check(gold, posterior, classes)
    error = probability.copy()
    error[np.arange(len(truth)), truth] -= 1
    return float(np.sum(error**2) / len(truth))


def calibration_error(
    gold: Labels, posterior: ArrayLike, classes: Labels, bins: int = 15, adaptive: bool = False
) -> float:
    r"""The expected calibration error (ECE) of the top label.

    .. math:: \sum_b \frac{n_b}{N} \, | \mathrm{accuracy}_b - \mathrm{confidence}_b |

    Parameters
    ----------
    gold : array-like of labels
        One label of `classes` per item.
    posterior : array-like, shape (n_items, n_classes)
        Probabilities; rows sum to 1.
    classes : array-like of labels
        What the columns of `posterior` stand for.
    bins : int, default 15
        Number of bins.
    adaptive : bool, default False
        Bins of equal width if False, of equal mass if True; see `reliability_curve`.

    Returns
    -------
    float
        0 means that of the items held with confidence c, a share c is right.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> posterior = [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]
    >>> round(calibration_error(["a", "b", "b", "b"], posterior, classes=["a", "b"]), 4)
    0.35
    """
    curve = reliability_curve(gold, posterior, classes, bins=bins, adaptive=adaptive)
    return float(np.average(np.abs(curve.accuracy - curve.confidence), weights=curve.n_items))


def reliability_curve(
    gold: Labels, posterior: ArrayLike, classes: Labels, bins: int = 15, adaptive: bool = False
) -> ReliabilityCurve:
    r"""The accuracy of the top label against its probability, in bins.

    .. math:: \mathrm{confidence}_b = \frac{1}{n_b} \sum_{i \in b} \max_k p_i(k), \quad
              \mathrm{accuracy}_b = \frac{1}{n_b} \sum_{i \in b} 1[\arg\max_k p_i(k) = y_i]

    Parameters
    ----------
    gold : array-like of labels
        One label of `classes` per item.
    posterior : array-like, shape (n_items, n_classes)
        Probabilities; rows sum to 1.
    classes : array-like of labels
        What the columns of `posterior` stand for.
    bins : int, default 15
        Number of bins; empty ones are left out of the result.
    adaptive : bool, default False
        If False, bin b holds confidences in (b/bins, (b+1)/bins]. If True, bins hold equal numbers of items, but for
        ties: equal confidences always share a bin, so that the order of items does not matter, and bins become fewer.

    Returns
    -------
    ReliabilityCurve
        Arrays `confidence`, `accuracy` and `n_items`, one entry per non-empty bin.

    Examples
    --------
    >>> posterior = [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]
    >>> curve = reliability_curve(["a", "b", "b", "b"], posterior, classes=["a", "b"], bins=4)
    >>> curve.confidence.round(3).tolist(), curve.accuracy.round(3).tolist(), curve.n_items.tolist()
    ([0.6, 0.867], [1.0, 0.667], [1, 3])
    """
    if not is_whole(bins) or not 1 <= bins <= _MOST_BINS:
        raise parameter_error("bins", "reliability_curve", f"a whole number between 1 and {_MOST_BINS:,}", bins)
    check_truth("adaptive", "reliability_curve", adaptive)
    truth, probability = _check(gold, posterior, classes)
    confidence, correct = probability.max(axis=1), probability.argmax(axis=1) == truth
    if adaptive:
        first_of_bin = len(confidence) * np.arange(1, bins) // bins
        bin_of = np.searchsorted(np.sort(confidence)[first_of_bin], confidence, side="right")
    else:
        bin_of = np.searchsorted(np.arange(1, bins) / bins, confidence, side="left")
    n_items = np.bincount(bin_of)
    filled = n_items > 0
    n_items = n_items[filled]
    return ReliabilityCurve(
        np.bincount(bin_of, weights=confidence)[filled] / n_items,
        np.bincount(bin_of, weights=correct)[filled] / n_items,
        n_items.astype(np.int64, copy=False),
    )


def _check(gold: Labels, posterior: ArrayLike, classes: Labels) -> tuple[Codes, NDArray[np.float64]]:
    truth, n_classes = encode_labels(gold, classes, "gold labels")
    try:
        probability = to_floats(posterior)
    except (TypeError, ValueError) as error:
        raise InputError(f"The posterior must be a matrix of numbers: {error}.") from None
    if probability.shape != (len(truth), n_classes):
        raise InputError(
            f"The posterior must have one row per gold label and one column per class, shape "
            f"{(len(truth), n_classes)}. Got shape {probability.shape} instead."
        )
    if not len(truth):
        raise InputError("There are 0 gold labels. A metric needs at least one item.")
    proper = (probability.min(axis=1) >= 0) & (np.abs(probability.sum(axis=1) - 1) <= _SUM_TOLERANCE)
    if not proper.all():
        wrong = np.flatnonzero(~proper)
        raise InputError(
            f"Rows of the posterior must be probabilities that sum to 1. {len(wrong)} of {len(truth)} rows are not: "
            f"rows {listing(wrong.tolist())}. The first is {probability[wrong[0]].tolist()}."
        )
    return truth, probability


def confusion_error(true: ArrayLike, estimated: ArrayLike) -> float:
    r"""The mean over workers of the induced 1-norm of the error of their confusion matrices.

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
    first, second = _pair(true, estimated, "confusion", 3)
    return float(np.mean(np.abs(first - second).sum(axis=2).max(axis=1)))


def transition_error(true: ArrayLike, estimated: ArrayLike) -> float:
    r"""The induced 1-norm of the error of a transition matrix.

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
    first, second = _pair(true, estimated, "transition", 2)
    return float(np.abs(first - second).sum(axis=1).max())


def rank_correlation(x: ArrayLike, y: ArrayLike) -> float:
    r"""Spearman's rank correlation, for example of estimated against true accuracies of workers.

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
