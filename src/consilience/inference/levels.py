r"""Levels of a scale: quantiles of probabilities of ordered classes, and what they are worth as numbers.

With probabilities q of the levels 0, 1, ..., K - 1 in their order, the quantile of the share s is the lowest level that
is not exceeded with at least this probability,

.. math:: \min \Big\{ k : \sum_{j \le k} q_j \ge s \Big\}.

The median, s = 1/2, has the least expected distance from the truth: where two levels do, it is the lower one. The truth
lies between the quantiles of .05 and .95, both included, with a probability of at least .9.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..answers.classes import are_ranks, to_numbers
from ..answers.columns import Values
from ..errors import ParameterError, Sentence, listing
from ..kernels import Floats

#: The quantiles at the ends of an interval of 90 %, and in the middle.
LOW, MEDIAN, HIGH = 0.05, 0.5, 0.95
# Sums that miss a share by rounding only reach it: 1/2 is reached by five times a tenth.
ROUNDING = 1e-12


def find_quantile(posterior: Floats, share: float) -> NDArray[np.int64]:
    """Return the lowest level of each item that is not exceeded with at least this probability.

    >>> find_quantile(np.array([[0.2, 0.3, 0.5], [0.6, 0.0, 0.4]]), 0.5)
    array([1, 0])
    """
    reached, level = np.zeros(len(posterior)), np.zeros(len(posterior), np.int64)
    for column in posterior.T[:-1]:
        reached += column
        level += reached < share - ROUNDING
    return level


def find_mean(posterior: Floats, worth: Floats) -> Floats:
    """Return the mean of each item, of levels that are worth so much: to the bit the same in whichever part it is."""
    mean = np.zeros(len(posterior))
    for column, each in zip(posterior.T, worth.tolist(), strict=True):
        mean += each * column
    return mean


def choose_labels(posterior: Floats, label_by: str) -> NDArray[np.int64]:
    """Return the label of each item: the most probable class, the first of several; or the median."""
    return find_quantile(posterior, MEDIAN) if label_by == "median" else np.asarray(posterior.argmax(axis=1))


def name_levels(classes: Values) -> Values:
    """Return what levels are called in results: numbers where all read as numbers, whole ones if they are whole.

    >>> name_levels(np.array(["1", "2"], dtype=object)), name_levels(np.array([0.5, 1.0]))
    (array([1, 2]), array([0.5, 1. ]))
    """
    numbers = to_numbers(classes)
    if numbers is None:
        return classes
    whole = numbers.astype(np.int64) if (np.abs(numbers) < 2**53).all() else numbers
    return whole if (whole == numbers).all() else numbers


def place_levels(classes: Values, positions: tuple[float, ...]) -> Floats:
    """Return the numbers of which a mean is taken: the classes themselves, or their positions.

    The classes count if they are numbers, and nobody gave them other positions.

    >>> place_levels(np.array([1, 2, 3]), (0.0, 1.0, 2.0)), place_levels(np.array([1, 2, 3]), (0.0, 1.0, 5.0))
    (array([1., 2., 3.]), array([0., 1., 5.]))
    """
    numbers = to_numbers(classes) if are_ranks(positions) else None
    return np.array(positions) if numbers is None else numbers


def check_order(classes: Values, positions: tuple[float, ...] | None) -> None:
    """Raise an error unless classes are ordered, so that there is a median."""
    if positions is None:
        raise ParameterError(
            Sentence("{label_by} needs classes in order, and nothing says that these are.", label_by="median"),
            f"They are {listing(classes.tolist())}.",
            Sentence("If they are levels, say so with {ordered}.", ordered=True),
            Sentence("Name levels that are no numbers from low to high with {classes}."),
            keyword="label_by",
        )
