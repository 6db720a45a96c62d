"""Scores of labels on a scale: how far they are from the known ones, and not only whether they differ.

Levels are numbers, and distances those between them; or `classes` lists the levels from low to high, and distances are
those of ranks.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ..errors import InputError, listing
from ..kernels import Floats
from .labels import Labels, as_labels, same_length


def mean_absolute_error(gold: Labels, predicted: Labels, classes: Labels | None = None) -> float:
    r"""Return by how many levels labels are off, on average.

    .. math:: \frac{1}{N} \sum_i |\hat y_i - y_i|

    Parameters
    ----------
    gold, predicted : array-like of labels
        One label per item, in the same order.
    classes : array-like of labels, optional
        The levels from low to high, which are then one apart. By default labels are numbers, such as medians and means.

    Returns
    -------
    float
        0 is best.

    Examples
    --------
    >>> mean_absolute_error([1, 2, 5, 4], [1, 3, 3, 4])
    0.75
    >>> mean_absolute_error(["low", "high"], ["mid", "high"], classes=["low", "mid", "high"])
    0.5
    """
    return float(np.mean(np.abs(np.subtract(*find_levels(gold, predicted, classes)))))


def quadratic_kappa(gold: Labels, predicted: Labels, classes: Labels | None = None) -> float:
    r"""Return Cohen's kappa with quadratic weights: how much closer labels are than by chance.

    .. math:: \kappa = 1 - \frac{\frac1N \sum_i (\hat y_i - y_i)^2}{\frac{1}{N^2} \sum_{ij} (\hat y_i - y_j)^2}

    Parameters
    ----------
    gold, predicted : array-like of labels
        One label per item, in the same order.
    classes : array-like of labels, optional
        The levels from low to high, which are then one apart. By default labels are numbers.

    Returns
    -------
    float
        1 if all labels are right, 0 is chance. nan if both sides hold one and the same level throughout.

    References
    ----------
    J. Cohen, "Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit",
    Psychological Bulletin 70(4), 1968.

    Examples
    --------
    >>> round(quadratic_kappa([1, 2, 5, 4], [1, 3, 3, 4]), 3)
    0.667
    """
    truth, guess = find_levels(gold, predicted, classes)
    chance = truth.var() + guess.var() + (truth.mean() - guess.mean()) ** 2
    return float(1 - np.mean((truth - guess) ** 2) / chance) if chance > 0 else float("nan")


def find_levels(gold: Labels, predicted: Labels, classes: Labels | None = None) -> tuple[Floats, Floats]:
    """Return both sides as numbers: their own values, or ranks among the classes."""
    sides = as_labels(gold, "gold labels"), as_labels(predicted, "predicted labels")
    same_length(*sides, "predicted labels")
    if classes is None:
        try:
            truth, guess = (np.array([float(label) for label in side]) for side in sides)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            truth, guess = np.array([np.nan]), np.array([np.nan])
        if not (np.isfinite(truth).all() and np.isfinite(guess).all()):
            strange = [label for side in sides for label in dict.fromkeys(side) if not is_number(label)]
            raise InputError(
                f"Labels on a scale must be numbers, or their classes must be listed. Found {listing(strange)}.",
                "List the levels from low to high, with classes=.",
            )
        return truth, guess
    ranks = {label: float(rank) for rank, label in enumerate(as_labels(classes, "classes"))}
    unknown = [label for side in sides for label in dict.fromkeys(side) if label not in ranks]
    if unknown:
        raise InputError(
            f"Labels are not among the {len(ranks)} classes: {listing(unknown)}. The classes are {listing(ranks)}.",
            "List all levels from low to high.",
        )
    truth, guess = (np.array([ranks[label] for label in side]) for side in sides)
    return truth, guess


def is_number(label: Hashable) -> bool:
    """Tell whether a label is a finite number, or the text of one."""
    try:
        return bool(np.isfinite(float(label)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
