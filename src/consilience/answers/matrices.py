"""Matrices of answers, and of soft votes: one row per item, one column per worker."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import check_truth, to_floats
from ..errors import InputError, Sentence, first_line, listing, parameter_error, plural, warn_of
from ..kernels import Floats, Truths
from ..memory import NUMBER, require_memory
from .classes import choose_spelling, list_classes, merge_spellings, normalise_column
from .columns import Codes, Values, is_missing, objects, to_column, to_values
from .frames import read_column, read_distinct, read_names
from .items import NAMED, Sequences, read_keys, read_positions
from .long_tables import TableOptions, doubt, with_classes
from .responses import Answers
from .slips import Source
from .soft_votes import VOTE_SLACK, slack_of, suggest, sum_votes
from .vocabulary import encode_in_order_of_appearance, encode_sorted, lookup

# Sums along another axis are 1 so closely only if they are sums over classes.
SUM_SLACK = 1e-5


def read_matrix(F: ArrayLike, missing: object, labels: ArrayLike | None, options: TableOptions) -> Answers:
    """Read F[item, worker]; see `Answers.from_matrix`."""
    _check_size(F, 1, "F")
    check_truth("normalise", "Answers", options.normalise)
    matrix = _to_matrix(F)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"F must have items as rows and workers as columns; got an array of shape {matrix.shape}.")
    answered = ~_missing_entries(matrix, missing)
    entries = np.ma.getdata(matrix)[answered]
    if not len(entries):
        raise InputError(f"F has no answers: all {matrix.size:,} entries are missing.")
    codes, vocabulary = _encode_entries(entries, labels, options.normalise)
    spell = choose_spelling(vocabulary, list_classes(options.classes).tolist()) if options.normalise else None
    if spell is not None:
        codes, vocabulary = merge_spellings(codes, vocabulary, spell, ordered=labels is not None)
    keys, workers = _read_names(options, *matrix.shape)
    answers = Answers(
        offsets=np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        worker=np.nonzero(answered)[1].astype(np.int32),
        label=codes,
        weight=None,
        workers=workers,
        labels=vocabulary,
        classes=vocabulary,
        keys=keys,
        normalised=options.normalise,
    )
    answers = with_classes(answers, options, spell, labels if options.classes is None else options.classes)
    doubt(answers, Source(named=labels is not None or options.classes is not None, tabular=False))
    return answers


def read_probabilities(P: ArrayLike, options: TableOptions) -> Answers:
    """Read P[item, worker, class]; see `Answers.from_probabilities`."""
    _check_size(P, NUMBER, "P")
    check_truth("rescale", "Answers.from_probabilities", options.rescale)
    try:
        votes = to_floats(P)
    except (TypeError, ValueError) as error:
        raise InputError(f"P must be an array of probabilities indexed by item, worker and class: {error}.") from error
    if votes.ndim != 3 or 0 in votes.shape:
        raise InputError(
            f"P must be indexed by item, worker and class; got an array of shape {votes.shape}.",
            "Stack what classifiers give to all classes: numpy.stack([...], axis=1).",
        )
    classes = None if options.classes is None else read_distinct(options.classes, "classes")
    _check_axes(votes, votes.shape[2] if classes is None else len(classes), options.rescale)
    answered: Truths = np.logical_not(np.isnan(votes).any(axis=2))
    holed = np.argwhere(~answered & ~np.isnan(votes).all(axis=2))
    if len(holed):
        i, m = holed[0]
        warn_of(
            f"{plural(len(holed), 'row')} of P {'is' if len(holed) == 1 else 'are'} NaN for some classes only, and "
            f"{'counts' if len(holed) == 1 else 'count'} as missing; the first is P[{i}, {m}] = "
            f"{votes[i, m].tolist()}.",
            "Use 0 for a class that the worker rules out.",
        )
    if not answered.any():
        raise InputError("P has no votes: every row holds a NaN.")
    given = votes[answered]
    total, wrong = sum_votes(given, options.rescale)
    if wrong.any():
        first = int(wrong.argmax())
        (i, m), n_wrong = np.argwhere(answered)[first], int(wrong.sum())
        raise InputError(
            f"P[{i}, {m}] = {given[first].tolist()} is not a vote: entries must be >= 0 and sum to 1, and these "
            f"sum to {total[first]:.4g}. There {'is' if n_wrong == 1 else 'are'} {plural(n_wrong, 'such row')}.",
            *suggest(given, total, "If the last axis lacks a class, add it."),
            "Set a row to NaN if the worker did not vote.",
        )
    probabilities = given / total[:, None]
    keys, workers = _read_names(options, *votes.shape[:2])
    labels = read_names(classes, votes.shape[2], "classes")
    answers = Answers(
        offsets=np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        worker=np.nonzero(answered)[1].astype(np.int32),
        label=probabilities.argmax(axis=1).astype(np.int32),
        weight=None,
        workers=workers,
        labels=labels,
        classes=labels,
        keys=keys,
        soft=probabilities.astype(np.float32) if (probabilities.max(axis=1) < 1).any() else None,
    )
    answers = with_classes(answers, options._replace(classes=None), None, options.classes)
    doubt(answers, Source(named=True, tabular=False, normalises=False))
    return answers


def _check_size(array: object, n_bytes: int, name: str) -> None:
    """Raise an error for an array, perhaps one number that is repeated, of which no copy fits into memory."""
    shape = getattr(array, "shape", ())
    if isinstance(shape, tuple) and all(isinstance(n, int) for n in shape):
        remedy = "Where most entries are missing, give a table with one row per answer."
        require_memory(n_bytes * math.prod(shape), f"{name} has the shape {shape}", remedy)


def _check_axes(votes: Floats, n_classes: int, rescale: bool) -> None:
    """Raise an error if the classes seem to be along another axis than the last.

    They are where the names of the classes fit only there, or where all sums along another axis are 1 and those along
    the last are not. Votes that count less than 1 pass: their sums along the other axes are 1 by no more than chance.
    """
    remedy = "P must be indexed by item, worker and class, in this order: transpose it."
    if n_classes > 1 and n_classes != votes.shape[2] and n_classes in votes.shape:
        raise InputError(
            f"There are {n_classes:,} classes, and P has {votes.shape[2]:,} entries along its last axis, but "
            f"{n_classes:,} along axis {votes.shape.index(n_classes)}.",
            remedy,
        )
    for axis, slack in ((2, slack_of(votes.shape[2]) if rescale else VOTE_SLACK), (1, SUM_SLACK), (0, SUM_SLACK)):
        with np.errstate(invalid="ignore"):  # infinities of both signs, which are an error later
            totals = votes.sum(axis=axis)
        totals = totals[~np.isnan(totals)]
        if len(totals) and np.all(np.abs(totals - 1) <= slack):
            if axis == 2:
                return
            raise InputError(f"P sums to 1 along axis {axis}, and not along its last axis.", remedy)


def _to_matrix(F: ArrayLike) -> Values:
    """F as an array whose entries have the types they came with."""
    if isinstance(F, np.ma.MaskedArray):
        return F
    plain = (str, bytes, Mapping)
    if not isinstance(F, (list, tuple)) or any(isinstance(r, plain) or not isinstance(r, Iterable) for r in F):
        try:
            return np.asarray(F)
        except ValueError as error:
            raise InputError(f"F must be a matrix of answers; {first_line(error)}.") from error
    # NumPy would make text of ["a", nan], and numbers of [True, -1].
    rows = [objects(list(row)) for row in F]
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise InputError(f"F must have rows of one length; got lengths {listing(sorted(widths))}.")
    return np.array(rows, dtype=object).reshape(len(rows), -1 if rows else 0)


def _missing_entries(matrix: Values, missing: object) -> Truths:
    data = np.ma.getdata(matrix)
    mask = np.ma.getmaskarray(matrix).copy()
    if data.dtype.kind in "fmM":
        mask |= np.isnan(data)
    if is_missing(missing):
        missing = None
    if not isinstance(missing, Hashable):
        raise parameter_error("missing", "Answers.from_matrix", "a single entry of F", missing)
    number = isinstance(missing, (int, float, np.number, np.bool_))
    if data.dtype.kind in "biuf":
        if number:
            mask |= data == missing
    elif data.dtype.kind == "O" or not number:
        to_column(data.ravel(), "F")  # which refuses lists and dicts
        lost = (is_missing(entry) or bool(entry == missing) for entry in data.ravel().tolist())
        mask |= np.fromiter(lost, bool, data.size).reshape(data.shape)
    return mask


def _encode_entries(entries: Values, labels: ArrayLike | None, normalise: bool) -> tuple[Codes, Values]:
    """Codes and vocabulary of the answers in a matrix."""
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
    vocabulary = read_distinct(labels, "labels")
    if entries.dtype.kind in "iu":
        outside = np.flatnonzero((entries < 0) | (entries >= len(vocabulary)))
        if len(outside):
            raise InputError(
                f"F holds {entries[outside[0]]}, which is no index into the {len(vocabulary)} labels given.",
                Sentence("With {labels}, the integers of F are indices into it."),
                Sentence("Name the entry that stands for no answer with {missing}."),
            )
        return entries.astype(np.int32), vocabulary
    known, column = vocabulary, to_column(entries, "F")
    if normalise:
        known, column = to_values(normalise_column(to_column(known))), normalise_column(column)
    codes = lookup(known, column)
    if (codes < 0).any():
        raise InputError(
            f"F holds labels that were not named: {listing(dict.fromkeys(entries[codes < 0].tolist()))}.",
            Sentence("Name all labels with {labels}."),
            keyword="labels",
        )
    return codes.astype(np.int32), vocabulary


def _read_names(options: TableOptions, n_items: int, n_workers: int) -> tuple[Values | Sequences, Values]:
    """The keys of a matrix's rows, which may be in sequences of given lengths, and the names of its columns."""
    workers, items = read_names(options.workers, n_workers, "workers"), options.items
    if options.lengths is None:
        return read_names(items, n_items, "items"), workers
    sizes = to_values(read_column(options.lengths, "lengths"))
    if sizes.dtype.kind not in "iu" or (sizes <= 0).any() or sizes.sum() != n_items:
        raise InputError(
            f"lengths must be positive whole numbers that sum to the {n_items:,} rows; got {listing(sizes.tolist())}."
        )
    sizes = sizes.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    if items is None:
        return Sequences(np.arange(len(sizes)), offsets, np.arange(n_items) - offsets[owner]), workers
    sequence, position = read_keys(items, 2)
    codes, ids = encode_in_order_of_appearance(sequence)
    place = read_positions(position, NAMED)
    in_order = np.all((place[1:] > place[:-1]) | (np.diff(owner) > 0)) if len(codes) == n_items else False
    if not (in_order and np.array_equal(codes, owner)):
        raise InputError(
            "items must give each row's (sequence, position), by sequence as in lengths, positions rising."
        )
    return Sequences(ids, offsets, place), workers
