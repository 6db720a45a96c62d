"""Matrices of answers, and of soft votes: one row per item, one column per worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, listing
from .frames import read_column
from .long_tables import Answers, Sequences, key_columns, read_positions
from .vocabulary import (
    Codes,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    is_missing,
    lookup,
    objects,
    to_column,
    to_values,
)


def answers_from_matrix(
    F: ArrayLike,
    missing: Any,
    lengths: ArrayLike | None,
    labels: ArrayLike | None,
    items: Any,
    workers: Any,
) -> Answers:
    """Read F[item, worker]; see `Responses.from_matrix`."""
    matrix = _to_matrix(F)
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
    try:
        votes: NDArray[np.float64] = np.ma.filled(np.ma.asarray(P, dtype=np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"P must be an array of probabilities indexed by item, worker and class: {error}.") from error
    if votes.ndim != 3 or 0 in votes.shape:
        raise InputError(f"P must be indexed by item, worker and class; got an array of shape {votes.shape}.")
    answered: NDArray[np.bool_] = np.logical_not(np.isnan(votes).any(axis=2))
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


def _to_matrix(F: ArrayLike) -> NDArray[Any]:
    """Return F as an array whose entries have the types they came with."""
    if isinstance(F, np.ma.MaskedArray):
        return F
    if not (isinstance(F, (list, tuple)) and all(map(_is_row, F))):
        return np.asarray(F)
    # NumPy would make text of ["a", nan], and numbers of [True, -1].
    rows = [objects(list(row)) for row in F]
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise InputError(f"F must have rows of one length; got lengths {listing(sorted(widths))}.")
    return np.array(rows, dtype=object).reshape(len(rows), -1 if rows else 0)


def _is_row(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, (str, bytes, Mapping))


def _missing_entries(matrix: NDArray[Any], missing: Any) -> NDArray[np.bool_]:
    data = np.ma.getdata(matrix)
    mask = np.ma.getmaskarray(matrix).copy()
    if data.dtype.kind in "fmM":
        mask |= np.isnan(data)
    if is_missing(missing):
        missing = None
    number = isinstance(missing, (int, float, np.number, np.bool_))
    if data.dtype.kind in "biuf":
        if number:
            mask |= data == missing
    elif data.dtype.kind == "O" or not number:
        to_column(data.ravel(), "F")  # which refuses entries that have no identity
        lost = (is_missing(entry) or bool(entry == missing) for entry in data.ravel().tolist())
        mask |= np.fromiter(lost, bool, data.size).reshape(data.shape)
    return mask


def _encode_entries(entries: NDArray[Any], labels: ArrayLike | None) -> tuple[Codes, Values]:
    """Return codes and vocabulary of the answers in a matrix."""
    if entries.dtype == object:
        kinds = set(map(type, entries.tolist()))
        entries = np.array(entries.tolist()) if kinds == {int, float} else to_values(to_column(entries, "F"))
    whole = entries.dtype.kind in "iu" and entries.dtype != np.uint64
    if entries.dtype.kind == "f":
        # A float matrix of whole numbers is an integer matrix that had to hold NaN.
        entries = entries.astype(np.float64)
        whole = bool(np.all((entries == np.round(entries)) & (np.abs(entries) < 2**53)))
    if whole:
        entries = entries.astype(np.int64)
    if labels is None:
        return encode_sorted(to_column(entries, "F"))
    vocabulary = _distinct(labels, "labels")
    if entries.dtype.kind in "iu":
        outside = np.flatnonzero((entries < 0) | (entries >= len(vocabulary)))
        if len(outside):
            raise InputError(
                f"F holds {entries[outside[0]]}, which is no index into the {len(vocabulary)} labels given. "
                "With labels=, the integers of F are indices into it; say which entry means missing with missing=."
            )
        return entries.astype(np.int32), vocabulary
    codes = lookup(vocabulary, to_column(entries, "F"))
    if (codes < 0).any():
        unknown = dict.fromkeys(entries[codes < 0].tolist())
        raise InputError(f"F holds labels that are not in labels=: {listing(unknown)}.")
    return codes.astype(np.int32), vocabulary


def _distinct(given: Any, what: str) -> Values:
    """Return the values of an option that must be distinct."""
    if isinstance(given, (set, frozenset)):
        raise InputError(f"{what} must be in order: give a list, not a set.")
    column = read_column(given, what)
    if len(find_missing(column)):
        raise InputError(
            f"{what} must be distinct values; {len(find_missing(column)):,} of {len(column):,} are missing."
        )
    codes, values = encode_in_order_of_appearance(column)
    if len(values) < len(codes):
        raise InputError(f"{what} must be distinct values; got {len(codes):,}, {len(values):,} of them distinct.")
    return values


def _names(given: Any, count: int, what: str) -> Values:
    """Return the names of rows or columns: those given, which must be distinct and as many, or 0, 1, 2, ..."""
    if given is None:
        return np.arange(count)
    values = _distinct(given, what)
    if len(values) != count:
        raise InputError(f"{what} must be {count:,} distinct values; got {len(values):,}.")
    return values


def _row_keys(items: Any, n_items: int, lengths: ArrayLike | None) -> Values | Sequences:
    """Return the keys of a matrix's rows: item ids, or sequences of the given lengths."""
    if lengths is None:
        return _names(items, n_items, "items")
    sizes = to_values(read_column(lengths, "lengths"))
    if sizes.dtype.kind not in "iu" or (sizes <= 0).any() or sizes.sum() != n_items:
        raise InputError(
            f"lengths must be positive whole numbers that sum to the {n_items:,} rows; got {listing(sizes.tolist())}."
        )
    sizes = sizes.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    if items is None:
        return Sequences(np.arange(len(sizes)), offsets, np.arange(n_items) - offsets[owner])
    sequence, position = key_columns(items, 2)
    codes, ids = encode_in_order_of_appearance(sequence)
    place = read_positions(position, "items=")
    in_order = np.all((place[1:] > place[:-1]) | (np.diff(owner) > 0)) if len(codes) == n_items else False
    if not (in_order and np.array_equal(codes, owner)):
        raise InputError(
            "items must give each row's (sequence, position), by sequence as in lengths, positions rising."
        )
    return Sequences(ids, offsets, place)
