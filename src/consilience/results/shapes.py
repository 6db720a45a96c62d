"""What the arrays and columns of a saved model must look like, in one table.

Kernels trust their arrays: they check no index, and from a probability of 2 they make nonsense. So a file must hold
what a fit could have written: shapes that follow from the vocabularies, and values of the right kind.

A shape is a text such as ``"N K: distributions"``: the axes, and a name of `VALUES`. An axis is a product of letters:
N items, M workers, K classes, L labels, A answers (the labels, and silence where that is one), P previous answers (the
labels, and none); or a number, or "*" for any length. Numbers in the header have no axes: ``": positive"``. A tuple
holds the texts that are allowed. None says that a field is not saved. Fields without an entry hold any number or text
of their type. New structures, kinds and worker models bring such a dict along, as `shapes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..answers.tables import BACKENDS
from ..inference.hidden_answers import POWERS

# How many there are of what a letter stands for.
Sizes: TypeAlias = Mapping[str, int]
Shape: TypeAlias = str | tuple[str, ...] | Mapping[str, str] | None

# Rows of probabilities sum to 1 up to this, and those of numbers of four bytes up to that.
TOLERANCE, VOTE_TOLERANCE = 1e-6, 1e-4
FLOAT, VOTE, TRUTH = ("<f8",), ("<f4",), ("|b1",)
WHOLE = ("|u1", "<u2", "<u4", "|i1", "<i2", "<i4", "<i8")  # in as few bytes as they need
LARGEST, SMALLEST = np.finfo(np.float64).max, np.nextafter(0, 1)


def in_range(array: NDArray[Any], least: float, most: float) -> bool:
    """Whether all values are in a range, which NaN never is."""
    return bool(((array >= least) & (array <= most)).all())


def sum_to(array: NDArray[Any], axis: int, least: float, tolerance: float = TOLERANCE) -> bool:
    """Whether rows of probabilities sum to something between `least` and 1."""
    total = array.sum(axis=axis, dtype=np.float64)
    return in_range(array, 0, 1 + tolerance) and in_range(total, least - tolerance, 1 + tolerance)


def are_log_weights(array: NDArray[Any]) -> bool:
    """Whether these can be expected log probabilities: their exponentials sum to at most 1 over the answers."""
    return in_range(array, -np.inf, TOLERANCE) and sum_to(np.exp(array), 1, 0) and bool(np.exp(array).any(axis=1).all())


def are_counts(array: NDArray[Any]) -> bool:
    """Whether these are counts whose sum is finite."""
    with np.errstate(over="ignore"):
        return in_range(array, 0, np.inf) and bool(np.isfinite(array.sum()))


class Values(NamedTuple):
    """The types of NumPy that values are saved in, what they are in words, how that is told, and their type here."""

    types: tuple[str, ...]
    words: str
    hold: Callable[[NDArray[Any], Sizes], bool]
    type: str = ""


def codes_of(what: str, letter: str, made: str, least: int = 0) -> Values:
    """Indices of so many things as a letter of `Sizes` stands for."""
    return Values(WHOLE, f"indices of {what}", lambda array, sizes: in_range(array, least, sizes[letter] - 1), made)


VALUES = {
    "distributions": Values(FLOAT, "probabilities that sum to 1", lambda a, _: sum_to(a, -1, 1)),
    "label distributions": Values(FLOAT, "probabilities that sum to 1", lambda a, _: sum_to(a, 1, 1)),
    "votes": Values(VOTE, "probabilities that sum to 1", lambda a, _: sum_to(a, -1, 1, VOTE_TOLERANCE)),
    # What the E-step multiplies in place of probabilities; of variational Bayes it sums to less than 1.
    "weights": Values(FLOAT, "weights that sum to at most 1", lambda a, _: sum_to(a, -1, 0)),
    "log weights": Values(FLOAT, "logarithms of probabilities", lambda a, _: are_log_weights(a)),
    "probabilities": Values(FLOAT, "probabilities", lambda a, _: in_range(a, 0, 1)),
    "ends": Values(FLOAT, "probabilities, or nothing", lambda a, _: in_range(a[~np.isnan(a)], 0, 1)),
    "shares": Values(FLOAT, "weights in (0, 1]", lambda a, _: in_range(a, SMALLEST, 1)),
    "not negative": Values(FLOAT, "finite numbers >= 0", lambda a, _: in_range(a, 0, LARGEST)),
    "positive": Values(FLOAT, "finite numbers > 0", lambda a, _: in_range(a, SMALLEST, LARGEST)),
    "finite": Values(FLOAT, "finite numbers", lambda a, _: in_range(a, -LARGEST, LARGEST)),
    "figures": Values(FLOAT, "finite numbers, or nothing", lambda a, _: not np.isinf(a).any()),
    # It may be minus infinity, where something impossible was known.
    "objectives": Values(FLOAT, "values of an objective", lambda a, _: in_range(a, -np.inf, LARGEST)),
    "counts": Values(FLOAT, "counts with a finite sum", lambda a, _: are_counts(a)),
    "whole": Values(WHOLE, "counts", lambda a, _: in_range(a, 0, 2**53), "<i8"),
    "steps": Values(WHOLE, "whole numbers", lambda a, _: in_range(a, -(2**31), 2**31), "<i8"),
    "items": codes_of("items", "N", "<i8"),
    "workers": codes_of("workers", "M", "<i4"),
    "labels": codes_of("labels", "L", "<i4"),
    "classes": codes_of("classes", "K", "<i8"),
    "known classes": codes_of("classes, or -1", "K", "<i4", -1),
    "truths": Values(TRUTH, "truth values", lambda _a, _sizes: True),
}
# Columns of ids or of text, none of them missing: as Arrow has them, as an array, distinct ones, as a list of text.
COLUMNS = ("column", "values", "names", "texts")

STRUCTURE: Mapping[str, Shape] = {"mean": "K: distributions", "weights": "K: weights", "bound": ": objectives"}
SUMMARY: Mapping[str, Shape] = {"log_normaliser": None, "mass": "K: counts"}
# By the name of a record and of its field.
SHAPES: dict[str, Mapping[str, Shape]] = {
    "Result": {
        "model": None,
        "n_answers": "M: whole",
        "backend": tuple(BACKENDS),
        "prior": "K: distributions",
        "chance": "M: ends",
        "raters": "M 5: figures",
        "blocked": "*: values",
        "span_confidence": "*: probabilities",
        **dict.fromkeys(("workers", "drift", "n_blocked", "voting", "vote", "findings", "update")),
    },
    "Names": {"workers": "M: names", "labels": "L: names", "classes": "K: names"},
    "Labels": {
        "keys": "N: column",
        "classes": None,
        "positions": None,
        "codes": "N: classes",
        "posterior": "N K: distributions",
        "uncalibrated": "N K: distributions",
        "known": "N: truths",
        "rule": ("", "sequence", "median"),
    },
    # What it was fitted to. Counts stand for offsets, and steps between the ends of edges for neighbours.
    "Given": {"log_prior": None},
    "Gold": {"codes": "N: known classes", "judging": "N: truths"},
    "Answers": {
        "offsets": "N: whole",
        "worker": "*: workers",
        "label": "*: labels",
        "weight": "*: shares",
        "order": "*: figures",
        "soft": "* L: votes",
        **dict.fromkeys(
            ("workers", "labels", "classes", "keys", "backend", "normalised", "positions", "origin", "gold")
        ),
        **dict.fromkeys(("silence_weight", "leader", "share", "declares_order", "budget")),
    },
    "Graph": {"items": None, "offsets": "N: whole", "neighbours": "*: steps", "weights": "*: positive"},
    "Course": {"trace": "*: objectives", "starts": "*: objectives", "smoothing": ": not negative"},
    "Intervals": {"workers": "M 4: ends", "prior": "2 K: ends", "expected": "2: ends", "levels": "2 3: figures"},
    "Learned": {
        "confusion": "M K A: distributions",
        "counts": "M L K: counts",
        "crowd": "1 A K: label distributions",
        "weight_scale": ": positive",
    },
    "Sums": {
        "chances": "3 M: counts",
        "judged": "2 M: counts",
        "votes": "3: counts",
        "scores": "2 * *: finite",
        "lack": "K: finite",
        "moments": "2 K: counts",
        "meant": "K: probabilities",
        "sizes": "2: counts",
    },
    "Calibrated": {
        "powers": ": positive",
        "log_weights": f"{len(POWERS)}: finite",
        "known_scores": f"{len(POWERS)}: finite",
        "predicted": None,
        "blind_accuracy": ": probabilities",
        "blind": "* K: distributions",
    },
    "Calibration": {"power": ": positive", "power_before": ": positive"},
    "ComparedOpinions": {
        "item": "*: items",
        "crowd_code": "*: classes",
        "crowd_share": "*: probabilities",
        "classifier_code": "*: classes",
        "classifier_share": "*: probabilities",
        "counts": "K K: counts",
    },
    "Guide": {"blended_shares": "K: distributions", "shares": "K: distributions"},
    "LinearJudge": {
        "centre": "D: finite",
        "scale": "D: positive",
        "weights": "J D: finite",
        "offsets": "J: finite",
        "codes": "J: classes",
    },
    "Comparison": {"share_known": ": probabilities", "alpha_level": ("nominal", "ordinal", "interval")},
    # Structures, with their summaries.
    "IndependentParameters": STRUCTURE,
    "ChainParameters": {
        "start_factor": "K: weights",
        "pair_factor": "K K: weights",
        "end_factor": "K: probabilities",
        "initial": "K: distributions",
        "transition": "K K: distributions",
        "coupling": ": probabilities",
        **STRUCTURE,
    },
    "FieldParameters": {
        "coupling": ": not negative",
        "pull": "K: finite",
        "inference": ("mean_field", "icm", "belief_propagation"),
        **STRUCTURE,
    },
    "SetsParameters": {"shares": "T: probabilities", **STRUCTURE},
    "Summary": SUMMARY,
    "ChainSummary": {"start": "K: counts", "pairs": "K K: counts", **SUMMARY},
    "FieldSummary": {"coupling": ": not negative", **SUMMARY},
    "SetsSummary": {"fits": "*: counts", **SUMMARY},
    # Kinds, and rankings.
    "TableKind": {"origin": None, "question": None},
    "TagsKind": {"tags": "*: values", "origin": None, "question": None},
    "SpansKind": {
        "documents": "*: values",
        "texts": "*: texts",
        **dict.fromkeys(("offsets", "start", "end", "fused"), "*: whole"),
    },
    "Ranking": {
        "candidates": "C: names",
        "workers": "M: names",
        **dict.fromkeys(("part", "rank", "rank_low", "rank_high"), "C: whole"),
        "score": "C: finite",
        "covariance": "C C: finite",
        "tallies": "3 C: not negative",
        **dict.fromkeys(("asked", "discrimination_error", "bias_error"), "M: not negative"),
        **dict.fromkeys(("discrimination", "bias", "agreement", "tied", "first"), "M: figures"),
        "counts": ": not negative",
        "log_tie": ": objectives",
        "spreads": ": positive",
        "backend": tuple(BACKENDS),
    },
    "SoftCheck": {"way": ("temperatures", "mean")},
    "WayScore": {"way": ("temperatures", "mean")},
}


def check_shape(name: str, array: NDArray[Any], shape: str, sizes: dict[str, int]) -> None:
    """Raise a `ValueError` unless an array is what it must be. It defines the sizes of letters that are not known.

    >>> check_shape("prior", np.array([0.5, 0.5]), "K: distributions", {"K": 2})
    >>> check_shape("prior", np.array([0.5, 0.6]), "K: distributions", {"K": 2})
    Traceback (most recent call last):
    ValueError: prior does not hold probabilities that sum to 1
    """
    axes, _, kind = shape.partition(":")
    values, lengths = VALUES[kind.strip()], [find_length(axis, sizes) for axis in axes.split()]
    alike = all(length in (None, size) for length, size in zip(lengths, array.shape, strict=False))
    if not alike or len(lengths) != array.ndim:
        wanted = ", ".join("any" if length is None else str(length) for length in lengths)
        raise ValueError(f"{name} has the shape {array.shape}, and not ({wanted})")
    if array.dtype.str not in values.types:
        raise ValueError(f"{name} holds values of type {array.dtype.str}, and not {' or '.join(values.types)}")
    for axis, size in zip(axes.split(), array.shape, strict=True):
        if axis.isalpha() and len(axis) == 1:
            sizes.setdefault(axis, size)
    if not values.hold(array, sizes):
        raise ValueError(f"{name} does not hold {values.words}")


def find_length(axis: str, sizes: Sizes) -> int | None:
    """The length of an axis; None for one of any length, and of a size that is not known."""
    if axis.isdigit():
        return int(axis)
    factors = [sizes.get(letter) for letter in axis]
    return None if None in factors else math.prod(factor for factor in factors if factor is not None)
