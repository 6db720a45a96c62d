"""Metrics of hard labels against gold."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._encode import Labels, encode_pair


class ClassScore(NamedTuple):
    """Scores of one class; `support` is its number of gold items."""

    precision: float
    recall: float
    f1: float
    support: int


def accuracy(gold: Labels, predicted: Labels) -> float:
    r"""Return the share of items whose predicted label is the gold label.

    .. math:: \frac{1}{N} \sum_i 1[\hat y_i = y_i]

    Parameters
    ----------
    gold, predicted : array-like of labels
        One label of any hashable type per item, in the same order.

    Returns
    -------
    float
        Between 0 and 1. It is also the micro-averaged F1, as each item has exactly one label.

    Examples
    --------
    >>> accuracy(["cat", "dog", "dog", "cow"], ["cat", "dog", "cow", "cow"])
    0.75
    """
    _, truth, guess = encode_pair(gold, predicted)
    return float(np.mean(truth == guess))


def class_f1(gold: Labels, predicted: Labels) -> dict[Hashable, ClassScore]:
    r"""Return precision, recall, F1 and support of each class found in gold or prediction.

    .. math:: P_k = \frac{TP_k}{TP_k + FP_k}, \quad R_k = \frac{TP_k}{TP_k + FN_k}, \quad
              F_k = \frac{2 TP_k}{2 TP_k + FP_k + FN_k}

    Parameters
    ----------
    gold, predicted : array-like of labels
        One label of any hashable type per item, in the same order.

    Returns
    -------
    dict of label to ClassScore
        Sorted by class, or by first appearance if the labels have no order. The precision of a class never predicted
        and the recall of a class not in gold are 0/0, and given as 0.

    Examples
    --------
    >>> class_f1(["cat", "dog", "dog", "cow"], ["cat", "dog", "cow", "cow"])["cow"]
    ClassScore(precision=0.5, recall=1.0, f1=0.6666666666666666, support=1)
    """
    classes, truth, guess = encode_pair(gold, predicted)
    n_classes = len(classes)
    hits = np.bincount(truth[truth == guess], minlength=n_classes)
    support = np.bincount(truth, minlength=n_classes)
    n_predicted = np.bincount(guess, minlength=n_classes)
    # 2 TP + FP + FN is predicted + support, which is never 0 for a class that occurs.
    columns = (
        hits / np.maximum(n_predicted, 1),
        hits / np.maximum(support, 1),
        2 * hits / (n_predicted + support),
        support,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {label: ClassScore(*row) for label, row in zip(classes, rows, strict=True)}


def macro_f1(gold: Labels, predicted: Labels) -> float:
    r"""Return the unweighted mean of the F1 of all classes found in gold or prediction.

    .. math:: \frac{1}{K} \sum_k \frac{2 TP_k}{2 TP_k + FP_k + FN_k}

    Parameters
    ----------
    gold, predicted : array-like of labels
        One label of any hashable type per item, in the same order.

    Returns
    -------
    float
        Between 0 and 1. A rare class counts as much as a common one.

    Examples
    --------
    >>> round(macro_f1(["cat", "dog", "dog", "cow"], ["cat", "dog", "cow", "cow"]), 3)
    0.778
    """
    scores = class_f1(gold, predicted)
    return sum(score.f1 for score in scores.values()) / len(scores)


def confusion_counts(gold: Labels, predicted: Labels) -> tuple[list[Hashable], NDArray[np.int64]]:
    r"""Return the classes and how often each gold class was predicted as each class.

    .. math:: C_{kl} = \sum_i 1[y_i = k] \, 1[\hat y_i = l]

    Parameters
    ----------
    gold, predicted : array-like of labels
        One label of any hashable type per item, in the same order.

    Returns
    -------
    classes : list of labels
        Those found in gold or prediction, sorted, or by first appearance if the labels have no order.
    matrix : ndarray of int64, shape (n_classes, n_classes)
        Rows are gold, columns are predicted.

    Examples
    --------
    >>> classes, matrix = confusion_counts(["cat", "dog", "dog", "cow"], ["cat", "dog", "cow", "cow"])
    >>> classes
    ['cat', 'cow', 'dog']
    >>> matrix
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 1, 1]])
    """
    classes, truth, guess = encode_pair(gold, predicted)
    n_classes = len(classes)
    cells = np.bincount(truth * n_classes + guess, minlength=n_classes**2)
    return classes, cells.reshape(n_classes, n_classes).astype(np.int64, copy=False)
