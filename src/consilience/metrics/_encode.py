"""Labels of any hashable type to integer codes: the boundary at which the label metrics check their input."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, first_line, listing, shorten

Labels: TypeAlias = ArrayLike | Sequence[Hashable]
Codes: TypeAlias = NDArray[np.int64]


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
