"""Matrices of answers, and of soft votes: one row per item, one column per worker."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, listing
from ..vocabulary import Codes, Values, encode_in_order_of_appearance, encode_sorted, lookup, to_column, to_values
from .answers import Answers, Sequences, key_columns


def answers_from_matrix(
    F: ArrayLike,
    missing: Any,
    lengths: ArrayLike | None,
    labels: ArrayLike | None,
    items: Any,
    workers: Any,
) -> Answers:
    """Read F[item, worker]; see `Responses.from_matrix`."""
    matrix = F if isinstance(F, np.ma.MaskedArray) else np.asarray(F)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"F must have items as rows and workers as columns; got an array of shape {matrix.shape}.")
    answered = ~_missing_entries(matrix, missing)
    entries = np.ma.getdata(matrix)[answered]
    if not len(entries):
        raise InputError(f"F has no answers: all {matrix.size:,} entries are missing.")
    codes, vocabulary = _encode_entries(entries, labels)
    n_items, n_workers = matrix.shape
    return Answers(
        offsets=np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        worker=np.nonzero(answered)[1].astype(np.int32),
        label=codes,
        weight=None,
        workers=_names(workers, n_workers, "workers"),
        labels=vocabulary,
        keys=_row_keys(items, n_items, lengths),
    )


def answers_from_probabilities(
    P: ArrayLike,
    lengths: ArrayLike | None,
    classes: ArrayLike | None,
    items: Any,
    workers: Any,
) -> Answers:
    """Read P[item, worker, class]; see `Responses.from_probabilities`."""
    votes = np.asarray(P, dtype=np.float64)
    if votes.ndim != 3 or 0 in votes.shape:
        raise InputError(f"P must be indexed by item, worker and class; got an array of shape {votes.shape}.")
    answered = ~np.isnan(votes).any(axis=2)
    votes = np.where(answered[:, :, None], votes, 0.0)
    total = votes.sum(axis=2)
    if not answered.any():
        raise InputError("P has no votes: every row holds a NaN.")
    wrong = np.argwhere((votes < 0).any(axis=2) | (total > 1 + 1e-3) | (answered & (total <= 0)))
    if len(wrong):
        i, m = wrong[0]
        raise InputError(
            f"P[{i}, {m}] = {votes[i, m].tolist()} is not a vote: entries must be >= 0 and sum to at most 1 (and "
            f"more than 0). {len(wrong):,} such rows; normalise them, or set them to NaN if the worker did not vote."
        )
    votes /= np.maximum(total, 1.0)[:, :, None]
    n_items, n_workers, n_classes = votes.shape
    voted = votes > 0
    _, worker, label = np.nonzero(voted)
    return Answers(
        offsets=np.concatenate([[0], np.cumsum(voted.sum(axis=(1, 2)))]).astype(np.int64),
        worker=worker.astype(np.int32),
        label=label.astype(np.int32),
        weight=votes[voted],
        workers=_names(workers, n_workers, "workers"),
        labels=_names(classes, n_classes, "classes"),
        keys=_row_keys(items, n_items, lengths),
    )


def _missing_entries(matrix: NDArray[Any], missing: Any) -> NDArray[np.bool_]:
    data = np.ma.getdata(matrix)
    mask = np.ma.getmaskarray(matrix).copy()
    if data.dtype.kind == "f":
        mask |= np.isnan(data)
    if data.dtype.kind == "O":
        flat = data.ravel().tolist()
        mask |= np.fromiter((v is None or v != v or v == missing for v in flat), bool, len(flat)).reshape(data.shape)
    elif missing is not None and (np.isreal(missing) == (data.dtype.kind in "biuf")):
        mask |= data == missing
    return mask


def _encode_entries(entries: NDArray[Any], labels: ArrayLike | None) -> tuple[Codes, Values]:
    """Return codes and vocabulary of the answers in a matrix."""
    whole = entries.dtype.kind in "iu" or (entries.dtype.kind == "f" and bool(np.all(entries == np.round(entries))))
    if labels is None:
        # A float matrix of whole numbers is an integer matrix that had to hold NaN.
        return encode_sorted(to_column(entries.astype(np.int64) if whole else entries))
    vocabulary = to_values(to_column(labels))
    if whole:
        codes = entries.astype(np.int64)
        outside = np.flatnonzero((codes < 0) | (codes >= len(vocabulary)))
        if len(outside):
            raise InputError(
                f"F holds {codes[outside[0]]}, which is no index into the {len(vocabulary)} labels given. "
                "With labels=, the integers of F are indices into it; say which entry means missing with missing=."
            )
        return codes.astype(np.int32), vocabulary
    codes = lookup(vocabulary, to_column(entries))
    if (codes < 0).any():
        unknown = dict.fromkeys(entries[codes < 0].tolist())
        raise InputError(f"F holds labels that are not in labels=: {listing(unknown)}.")
    return codes.astype(np.int32), vocabulary


def _names(given: Any, count: int, what: str) -> Values:
    """Return the names of rows or columns: those given, which must be distinct and as many, or 0, 1, 2, ..."""
    if given is None:
        return np.arange(count)
    codes, values = encode_in_order_of_appearance(to_column(given))
    if len(codes) != count or len(values) != count:
        raise InputError(
            f"{what} must be {count:,} distinct values; got {len(codes):,}, {len(values):,} of them distinct."
        )
    return values


def _row_keys(items: Any, n_items: int, lengths: ArrayLike | None) -> Values | Sequences:
    """Return the keys of a matrix's rows: item ids, or sequences of the given lengths."""
    if lengths is None:
        return _names(items, n_items, "items")
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes <= 0).any() or sizes.sum() != n_items:
        raise InputError(
            f"lengths must be positive whole numbers that sum to the {n_items:,} rows; got {listing(sizes.ravel())} "
            f"with sum {sizes.sum():,}."
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    if items is None:
        return Sequences(np.arange(len(sizes)), offsets, np.arange(n_items) - offsets[owner])
    sequence, position = key_columns(items, 2)
    codes, ids = encode_in_order_of_appearance(sequence)
    place = to_values(position)
    in_order = np.all((np.diff(place) > 0) | (np.diff(owner) > 0)) if len(codes) == n_items else False
    if not (in_order and np.array_equal(codes, owner)):
        raise InputError(
            "items must give each row's (sequence, position), by sequence as in lengths, positions rising."
        )
    return Sequences(ids, offsets, place)
