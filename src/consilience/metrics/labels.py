"""Metrics of hard labels against gold, and the boundary at which labels of any hashable type become integer codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, first_line, listing, shorten

Labels: TypeAlias = ArrayLike | Sequence[Hashable]
Codes: TypeAlias = NDArray[np.int64]


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


def as_labels(values: Labels, name: str) -> list[Hashable]:
    """Return the labels as a list of hashable, non-null values; `name` stands for them in messages."""
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        # numpy would turn [1, "a"] into strings and a list of tuples into a matrix.
        labels = list(values)
    else:
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise InputError(f"The {name} must be an array of labels; {first_line(error)}.") from error
        if array.ndim != 1:
            raise InputError(
                f"The {name} must be a one-dimensional array of labels. "
                f"Got {type(values).__name__} of shape {array.shape} instead."
            )
        labels = array.tolist()
    try:
        distinct = dict.fromkeys(labels)
    except TypeError:
        raise InputError(f"The {name} must hold hashable labels. Got {_first_unhashable(labels)} among them.") from None
    if any(map(_is_null, distinct)):
        n_null = sum(map(_is_null, labels))
        raise InputError(f"The {name} hold {n_null} nulls among {len(labels)} labels. Drop those items first.")
    return labels


def same_length(gold: Sequence[object], other: Sequence[object], name: str) -> None:
    """Raise unless there are items, and as many of one kind as of the other."""
    if len(gold) != len(other):
        raise InputError(f"There are {len(gold)} gold labels and {len(other)} {name}. Give one of each per item.")
    if not gold:
        raise InputError(f"There are 0 gold labels and 0 {name}. A metric needs at least one item.")


def encode_pair(gold: Labels, predicted: Labels) -> tuple[list[Hashable], Codes, Codes]:
    """Return the classes found on either side, in order, and both sides as indices into them."""
    gold_labels = as_labels(gold, "gold labels")
    predicted_labels = as_labels(predicted, "predicted labels")
    same_length(gold_labels, predicted_labels, "predicted labels")
    classes = _in_order(dict.fromkeys(gold_labels) | dict.fromkeys(predicted_labels))
    index = {label: code for code, label in enumerate(classes)}
    return classes, _lookup(index, gold_labels), _lookup(index, predicted_labels)


def encode_gold(gold: Labels, classes: Labels) -> tuple[Codes, int]:
    """Return gold as indices into `classes`, and the number of classes."""
    class_labels = as_labels(classes, "classes")
    index = {label: code for code, label in enumerate(class_labels)}
    if len(index) < len(class_labels):
        repeated = dict.fromkeys(label for label in class_labels if class_labels.count(label) > 1)
        raise InputError(f"The classes must differ. Found more than once: {listing(repeated)}.")
    gold_labels = as_labels(gold, "gold labels")
    unknown = [label for label in dict.fromkeys(gold_labels) if label not in index]
    if unknown:
        raise InputError(
            f"{len(unknown)} gold labels are not among the {len(index)} classes: {listing(unknown)}. "
            f"The classes are {listing(index)}; they name the columns of the posterior."
        )
    return _lookup(index, gold_labels), len(index)


def _lookup(index: dict[Hashable, int], labels: list[Hashable]) -> Codes:
    return np.fromiter(map(index.__getitem__, labels), dtype=np.int64, count=len(labels))


def _in_order(labels: Iterable[Hashable]) -> list[Hashable]:
    try:
        return sorted(labels)  # type: ignore[type-var]
    except TypeError:  # mixed types and plain enums have no order but that of appearance
        return list(labels)


def _is_null(label: Hashable) -> bool:
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA has no truth value
        return True


def _first_unhashable(labels: list[Hashable]) -> str:
    for label in labels:
        try:
            hash(label)
        except TypeError:
            return shorten(label)
    return "one"
