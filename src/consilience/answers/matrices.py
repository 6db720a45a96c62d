"""Matrices of answers, and of soft votes: one row per item, one column per worker."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import check_truth, to_floats
from ..errors import InputError, Sentence, first_line, listing, parameter_error, plural, warn_of
from ..kernels import Floats, Truths
from ..memory import NUMBER, require_memory
from .classes import choose_classes, choose_scale, choose_spelling, list_classes, merge_spellings, normalise_column
from .columns import Codes, Values, is_missing, objects, to_column, to_values
from .frames import read_column, read_distinct, read_names
from .items import NAMED, Sequences, read_keys, read_positions
from .responses import Answers
from .slips import Source, warn_of_silence, warn_of_slips
from .vocabulary import encode_in_order_of_appearance, encode_sorted, lookup
from .vote_sums import VOTE_SLACK, VoteSums, slack_of

LONG_TABLE = "Where most entries are missing, give a table with one row per answer."
# Sums along another axis are 1 so closely only if they are sums over classes.
SUM_SLACK = 1e-5


class MatrixOptions(NamedTuple):
    """What a matrix of answers has in common with one of soft votes; see `Answers.from_matrix`."""

    lengths: ArrayLike | None
    classes: ArrayLike | None
    items: object
    workers: object
    abstain: str
    background: object
    ordered: bool | None
    positions: ArrayLike | None


def read_matrix(
    F: ArrayLike, missing: object, labels: ArrayLike | None, normalise: bool, options: MatrixOptions
) -> Answers:
    """Read F[item, worker]; see `Answers.from_matrix`."""
    check_size(F, 1, "F")
    check_truth("normalise", "Answers", normalise)
    matrix = _to_matrix(F)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"F must have items as rows and workers as columns; got an array of shape {matrix.shape}.")
    answered = ~_missing_entries(matrix, missing)
    entries = np.ma.getdata(matrix)[answered]
    if not len(entries):
        raise InputError(f"F has no answers: all {matrix.size:,} entries are missing.")
    codes, vocabulary = _encode_entries(entries, labels, normalise)
    spell = choose_spelling(vocabulary, list_classes(options.classes).tolist()) if normalise else None
    if spell is not None:
        codes, vocabulary = merge_spellings(codes, vocabulary, spell, ordered=labels is not None)
    keys, workers = _read_names(options, *matrix.shape)
    known, silent = choose_classes(options.classes, vocabulary, options.abstain, options.background, spell)
    named = labels if options.classes is None else options.classes
    known, places = choose_scale(options.ordered, options.positions, known, named, is_scale=False)
    answers = Answers(
        offsets=np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        worker=np.nonzero(answered)[1].astype(np.int32),
        label=codes,
        weight=None,
        workers=workers,
        labels=vocabulary,
        classes=known,
        keys=keys,
        background=silent,
        normalised=normalise,
        positions=places,
    )
    warn_of_silence(answers)
    warn_of_slips(answers, Source(named=labels is not None or options.classes is not None, tabular=False))
    return answers


def check_size(array: object, n_bytes: int, name: str) -> None:
    """Raise an error for an array, perhaps one number that is repeated, of which no copy fits into memory."""
    shape = getattr(array, "shape", ())
    if isinstance(shape, tuple) and all(isinstance(n, int) for n in shape):
        require_memory(n_bytes * math.prod(shape), f"{name} has the shape {shape}", LONG_TABLE)


def _warn_of_holes(votes: Floats, answered: Truths) -> None:
    """Warn of votes that are missing although only some of their probabilities are NaN."""
    holed = np.argwhere(~answered & ~np.isnan(votes).all(axis=2))
    if len(holed):
        i, m = holed[0]
        warn_of(
            f"{plural(len(holed), 'row')} of P {'is' if len(holed) == 1 else 'are'} NaN for some classes only, and "
            f"{'counts' if len(holed) == 1 else 'count'} as missing; the first is P[{i}, {m}] = "
            f"{votes[i, m].tolist()}.",
            "Use 0 for a class that the worker rules out.",
        )


def read_probabilities(P: ArrayLike, rescale: bool, options: MatrixOptions) -> Answers:
    """Read P[item, worker, class]; see `Answers.from_probabilities`."""
    check_size(P, NUMBER, "P")
    check_truth("rescale", "Answers.from_probabilities", rescale)
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
    _check_axes(votes, votes.shape[2] if classes is None else len(classes), rescale)
    votes = _check_votes(votes, rescale)
    voted = votes.any(axis=2)
    worker, probabilities = np.nonzero(voted)[1].astype(np.int32), votes[voted]
    keys, workers = _read_names(options, *votes.shape[:2])
    labels = read_names(classes, votes.shape[2], "classes")
    known, silent = choose_classes(None, labels, options.abstain, options.background)
    known, places = choose_scale(options.ordered, options.positions, known, options.classes, is_scale=False)
    answers = Answers(
        offsets=np.concatenate([[0], np.cumsum(voted.sum(axis=1))]).astype(np.int64),
        worker=worker,
        label=probabilities.argmax(axis=1).astype(np.int32),
        weight=None,
        workers=workers,
        labels=labels,
        classes=known,
        keys=keys,
        background=silent,
        positions=places,
        soft=probabilities.astype(np.float32) if (probabilities.max(axis=1) < 1).any() else None,
    )
    warn_of_silence(answers)
    warn_of_slips(answers, Source(named=True, tabular=False, normalises=False))
    return answers


def _check_votes(votes: Floats, rescale: bool) -> Floats:
    """Return probabilities that sum to 1, and zeros for votes that are missing."""
    answered: Truths = np.logical_not(np.isnan(votes).any(axis=2))
    _warn_of_holes(votes, answered)
    if not answered.any():
        raise InputError("P has no votes: every row holds a NaN.")
    sums = VoteSums.of(votes[answered], rescale)
    if sums.wrong.any():
        first = int(sums.wrong.argmax())
        (i, m), n_wrong = np.argwhere(answered)[first], int(sums.wrong.sum())
        raise InputError(
            f"P[{i}, {m}] = {sums.votes[first].tolist()} is not a vote: entries must be >= 0 and sum to 1, and these "
            f"sum to {sums.total[first]:.4g}. There {'is' if n_wrong == 1 else 'are'} {plural(n_wrong, 'such row')}.",
            *sums.suggest("If the last axis lacks a class, add it."),
            "Set a row to NaN if the worker did not vote.",
        )
    checked = np.zeros_like(votes)
    checked[answered] = sums.rescaled()
    return checked


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
    if _sums_to_one(votes, 2, slack_of(votes.shape[2]) if rescale else VOTE_SLACK):
        return
    for axis in (1, 0):
        if _sums_to_one(votes, axis, SUM_SLACK):
            raise InputError(f"P sums to 1 along axis {axis}, and not along its last axis.", remedy)


def _sums_to_one(votes: Floats, axis: int, slack: float) -> bool:
    """Tell whether all sums along an axis are 1; those with a missing entry do not count."""
    with np.errstate(invalid="ignore"):  # infinities of both signs, which are an error later
        totals = votes.sum(axis=axis)
    totals = totals[~np.isnan(totals)]
    return bool(len(totals) and np.all(np.abs(totals - 1) <= slack))


def _to_matrix(F: ArrayLike) -> Values:
    """Return F as an array whose entries have the types they came with."""
    if isinstance(F, np.ma.MaskedArray):
        return F
    if not (isinstance(F, (list, tuple)) and all(map(_is_row, F))):
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


def _is_row(row: object) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, (str, bytes, Mapping))


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
        unknown = dict.fromkeys(entries[codes < 0].tolist())
        raise InputError(
            f"F holds labels that were not named: {listing(unknown)}.",
            Sentence("Name all labels with {labels}."),
            keyword="labels",
        )
    return codes.astype(np.int32), vocabulary


def _read_names(options: MatrixOptions, n_items: int, n_workers: int) -> tuple[Values | Sequences, Values]:
    """Return the keys of a matrix's rows, and the names of its columns."""
    workers, items = read_names(options.workers, n_workers, "workers"), options.items
    if options.lengths is None:
        return read_names(items, n_items, "items"), workers
    return _row_keys(items, n_items, options.lengths), workers


def _row_keys(items: object, n_items: int, lengths: ArrayLike) -> Sequences:
    """Return the keys of a matrix's rows that are in sequences of the given lengths."""
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
    sequence, position = read_keys(items, 2)
    codes, ids = encode_in_order_of_appearance(sequence)
    place = read_positions(position, NAMED)
    in_order = np.all((place[1:] > place[:-1]) | (np.diff(owner) > 0)) if len(codes) == n_items else False
    if not (in_order and np.array_equal(codes, owner)):
        raise InputError(
            "items must give each row's (sequence, position), by sequence as in lengths, positions rising."
        )
    return Sequences(ids, offsets, place)
