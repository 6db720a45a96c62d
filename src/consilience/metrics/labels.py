"""Scores of labels and spans against known ones; and where labels of any hashable type become integer codes.

On a scale it counts how far labels are from the known ones. Levels are numbers, and distances those between them; or
`classes` lists the levels from low to high, and distances are those of ranks.

Spans are entities, populations, anything that is marked in texts, by tags or by offsets.

Tags are B, I and O of each token; `consilience.answers.tagging` says how spans are read from them.

Spans that are given by their offsets may overlap and nest, and need no tokens. *Strict*: a span counts if start, end
and type are all right. *Relaxed*: the share of a span's characters counts that lies in spans of its type on the other
side. *Type-only*: a span counts if it overlaps a span of its type at all. Precision is the mean over found spans,
recall over known ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.tagging import BEGIN, INSIDE, OUTSIDE, find_spans, split_tags
from ..errors import InputError, first_line, listing, shorten
from ..kernels import Floats
from ..options import is_whole

Labels: TypeAlias = ArrayLike | Sequence[Hashable]
Codes: TypeAlias = NDArray[np.int64]


class ClassScore(NamedTuple):
    """Scores of one class; `support` is its number of gold items."""

    precision: float
    recall: float
    f1: float
    support: int


def accuracy(gold: Labels, predicted: Labels) -> float:
    r"""The share of items whose predicted label is the gold label.

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
    r"""Precision, recall, F1 and support of each class found in gold or prediction.

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
    r"""The unweighted mean of the F1 of all classes found in gold or prediction.

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


def as_labels(values: Labels, name: str) -> list[Hashable]:
    """The labels as a list of hashable, non-null values; `name` stands for them in messages."""
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
        odd = next((each for each in labels if not isinstance(each, Hashable) or isinstance(each, tuple)), labels)
        raise InputError(f"The {name} must hold hashable labels. Got {shorten(odd)} among them.") from None
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
    """The classes found on either side, in order, and both sides as indices into them."""
    gold_labels = as_labels(gold, "gold labels")
    predicted_labels = as_labels(predicted, "predicted labels")
    same_length(gold_labels, predicted_labels, "predicted labels")
    classes = list(dict.fromkeys([*gold_labels, *predicted_labels]))
    with suppress(TypeError):  # mixed types and plain enums have no order but that of appearance
        classes = sorted(classes)  # type: ignore[type-var]
    index = {label: code for code, label in enumerate(classes)}
    return classes, _lookup(index, gold_labels), _lookup(index, predicted_labels)


def encode_labels(labels: Labels, classes: Labels, name: str = "labels") -> tuple[Codes, int]:
    """Labels as indices into `classes`, and the number of classes."""
    class_labels = as_labels(classes, "classes")
    index = {label: code for code, label in enumerate(class_labels)}
    if len(index) < len(class_labels):
        repeated = dict.fromkeys(label for label in class_labels if class_labels.count(label) > 1)
        raise InputError(f"The classes must differ. Found more than once: {listing(repeated)}.")
    entries = as_labels(labels, name)
    unknown = [label for label in dict.fromkeys(entries) if label not in index]
    if unknown:
        raise InputError(
            f"{len(unknown)} {name} are not among the {len(index)} classes: {listing(unknown)}. "
            f"The classes are {listing(index)}.",
            "List all classes, in the order of the columns of probabilities, or from low to high.",
        )
    return _lookup(index, entries), len(index)


def _lookup(index: dict[Hashable, int], labels: list[Hashable]) -> Codes:
    return np.fromiter(map(index.__getitem__, labels), dtype=np.int64, count=len(labels))


def _is_null(label: Hashable) -> bool:
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA has no truth value
        return True


# ------------------------------------------------------------------------------------------------- labels on a scale


def mean_absolute_error(gold: Labels, predicted: Labels, classes: Labels | None = None) -> float:
    r"""By how many levels labels are off, on average.

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
    return float(np.mean(np.abs(np.subtract(*rank_levels(gold, predicted, classes)))))


def quadratic_kappa(gold: Labels, predicted: Labels, classes: Labels | None = None) -> float:
    r"""Cohen's kappa with quadratic weights: how much closer labels are than by chance.

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
    truth, guess = rank_levels(gold, predicted, classes)
    chance = truth.var() + guess.var() + (truth.mean() - guess.mean()) ** 2
    return float(1 - np.mean((truth - guess) ** 2) / chance) if chance > 0 else float("nan")


def rank_levels(gold: Labels, predicted: Labels, classes: Labels | None = None) -> tuple[Floats, Floats]:
    """Both sides as numbers: their own values, or ranks among the classes."""
    sides = as_labels(gold, "gold labels"), as_labels(predicted, "predicted labels")
    same_length(*sides, "predicted labels")
    if classes is not None:
        truth, guess = (encode_labels(each, classes)[0].astype(np.float64) for each in sides)
        return truth, guess
    try:
        truth, guess = (np.array([float(label) for label in side]) for side in sides)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        truth, guess = np.array([np.nan]), np.array([np.nan])
    if not (np.isfinite(truth).all() and np.isfinite(guess).all()):
        raise InputError(
            "Labels on a scale must be finite numbers, or their classes must be listed. Found "
            f"{listing(dict.fromkeys(label for side in sides for label in side))}.",
            "List the levels from low to high, with classes=.",
        )
    return truth, guess


# -------------------------------------------------------------------------------------------------------------- spans


class SpanScore(NamedTuple):
    """Precision, recall and their harmonic mean, with the numbers of spans."""

    precision: float
    recall: float
    f1: float
    n_gold: int
    n_predicted: int
    n_correct: int


def span_f1(gold: object, predicted: object, lengths: ArrayLike | None = None) -> float:
    """The strict span F1: a span counts if start, end and type are all right.

    Parameters
    ----------
    gold, predicted : lists of lists of tags, or flat arrays of tags
        Tags such as B-PER, I-PER, O (any of IOB1, IOB2, BIOES, BILOU); bare B and I are spans of one unnamed type.
    lengths : array, optional
        Lengths of the sequences that flat arrays consist of; default: one sequence.

    Returns
    -------
    float
        2 P R / (P + R) over all spans; 0 where nothing is right.

    Examples
    --------
    >>> span_f1([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "O"]])
    0.6666666666666666
    """
    return span_score(gold, predicted, lengths).f1


def span_score(gold: object, predicted: object, lengths: ArrayLike | None = None) -> SpanScore:
    """Strict precision, recall and F1 of spans; arguments as for `span_f1`.

    Examples
    --------
    >>> span_score(["B", "I", "O", "B"], ["B", "I", "B", "I"])
    SpanScore(precision=0.5, recall=0.5, f1=0.5, n_gold=2, n_predicted=2, n_correct=1)
    """
    return score_spans(*_both(gold, predicted, lengths))["strict"]


def relaxed_span_score(gold: object, predicted: object, lengths: ArrayLike | None = None) -> SpanScore:
    """Scores that count the part of each span that is right.

    Precision is the mean share of a predicted span that lies in gold spans of its type, recall the mean share of a gold
    span that lies in predicted ones.

    Examples
    --------
    >>> relaxed_span_score(["B", "I", "I", "I"], ["O", "B", "I", "O"]).recall
    0.5
    """
    return score_spans(*_both(gold, predicted, lengths))["relaxed"]


def count_invalid_transitions(tags: object, lengths: ArrayLike | None = None) -> int:
    """How many tags IOB2 does not allow where they stand: I-X that follows neither B-X nor I-X.

    Parameters
    ----------
    tags, lengths
        As for `span_f1`, of one side.

    Examples
    --------
    >>> count_invalid_transitions([["O", "I-PER"], ["B-PER", "I-LOC", "I-LOC"]])
    2
    """
    flat, first = _flatten(tags, lengths)
    prefix, kind = split_tags(flat)
    before, kind_before = np.roll(prefix, 1), np.roll(kind, 1)
    before[first] = OUTSIDE
    follows = np.isin(before, (BEGIN, INSIDE)) & (kind == kind_before)
    return int(((prefix == INSIDE) & ~follows).sum())


def _both(gold: object, predicted: object, lengths: ArrayLike | None) -> Iterator[NDArray[np.int64]]:
    """Yield the spans of both as rows, as `score_spans` takes them; all tokens are one document."""
    (true, first), (labels, also) = _flatten(gold, lengths), _flatten(predicted, lengths)
    if not np.array_equal(first, also):
        raise InputError(
            f"gold has {len(true):,} tags in {first.sum():,} sequences, predicted {len(labels):,} in {also.sum():,}: "
            "they must be of the same tokens."
        )
    prefix, kind = split_tags([*true, *labels])
    for part in (slice(0, len(true)), slice(len(true), None)):
        start, stop = find_spans(prefix[part], kind[part], first)
        yield np.stack([kind[part][start], np.zeros_like(start), start, stop], axis=1)


def _flatten(tags: object, lengths: ArrayLike | None) -> tuple[list[Any], NDArray[np.bool_]]:
    """All tags in a row, and whether each is the first of its sequence."""
    entries = _to_list(tags, "Tags must be lists of lists of tags, or one list of them")
    if lengths is not None:
        problem = "lengths must be a list of whole numbers >= 0"
        sizes = _to_list(lengths, problem)
        if not all(is_whole(size) and size >= 0 for size in sizes):
            raise InputError(f"{problem}. Got {shorten(lengths)} instead.")
        if sum(sizes) != len(entries):
            raise InputError(f"lengths sum to {sum(sizes):,}, but there are {len(entries):,} tags.")
    elif entries and not isinstance(entries[0], str):
        sequences = [_to_list(each, "Tags must be lists of lists of tags, or one list of them") for each in entries]
        entries, sizes = [tag for sequence in sequences for tag in sequence], list(map(len, sequences))
    else:
        sizes = [len(entries)]
    if not entries:
        raise InputError("There are no tags to score.")
    first = np.zeros(len(entries) + 1, bool)
    first[np.cumsum([0, *sizes])] = True
    return entries, first[:-1]


def _to_list(values: object, problem: str) -> list[Any]:
    try:
        entries = values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[call-overload]
    except TypeError:
        entries = None
    if not isinstance(entries, list):
        raise InputError(f"{problem}. Got {shorten(values)} instead.")
    return entries


def score_spans(known: NDArray[np.int64], said: NDArray[np.int64]) -> dict[str, SpanScore]:
    """The strict, relaxed and type-only scores of spans as rows: type, document, start, end.

    A span that one side holds twice counts once.

    >>> known, said = np.array([[1, 0, 0, 3], [1, 0, 8, 11]]), np.array([[1, 0, 0, 3], [1, 0, 8, 12]])
    >>> {name: round(score.f1, 3) for name, score in score_spans(known, said).items()}
    {'strict': 0.5, 'relaxed': 0.933, 'type_only': 1.0}
    """
    known, said = (np.unique(rows, axis=0) if len(rows) else rows for rows in (known, said))
    right = len(known) + len(said) - len(np.unique(np.concatenate([known, said]), axis=0))
    precise, recalled = overlap_shares(said, known), overlap_shares(known, said)

    def score(found_right: float, true_found: float) -> SpanScore:
        precision = found_right / len(said) if len(said) else 0.0
        recall = true_found / len(known) if len(known) else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
        return SpanScore(precision, recall, f1, len(known), len(said), right)

    return {
        "strict": score(right, right),
        "relaxed": score(float(precise.sum()), float(recalled.sum())),
        "type_only": score(float((precise > 0).sum()), float((recalled > 0).sum())),
    }


def overlap_shares(rows: NDArray[np.int64], others: NDArray[np.int64]) -> Floats:
    """Which share of each span lies in other spans of its type in its document."""
    if not len(rows) or not len(others):
        return np.zeros(len(rows))
    # All documents and types follow each other on one line, with room for the longest text.
    room = int(max(rows[:, 3].max(), others[:, 3].max())) + 1
    n_documents = int(max(rows[:, 1].max(), others[:, 1].max())) + 1
    starts, ends = (
        [(each[:, 0] * n_documents + each[:, 1]) * room + each[:, column] for each in (rows, others)]
        for column in (2, 3)
    )
    order = np.argsort(starts[1], kind="stable")
    start, end = starts[1][order], np.maximum.accumulate(ends[1][order])
    # Where one span begins after all before it have ended, a new stretch begins.
    first = np.append(True, start[1:] > end[:-1])
    bounds = np.column_stack([start[first], end[np.append(np.flatnonzero(first)[1:] - 1, len(end) - 1)]]).ravel()
    # How much of the line is covered up to each bound: it grows within stretches.
    covered = np.cumsum(np.diff(bounds, prepend=bounds[:1]) * (np.arange(len(bounds)) % 2))
    begun, ended = (np.interp(places, bounds, covered) for places in (starts[0], ends[0]))
    return np.asarray((ended - begun) / (ends[0] - starts[0]))
