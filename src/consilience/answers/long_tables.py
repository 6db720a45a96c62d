"""Long tables, one row per answer, and matrices, one row per item: what `Answers.from_frame` and its kin read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import to_floats
from ..errors import (
    InputError,
    Python,
    Sentence,
    first_line,
    listing,
    parameter_error,
    plural,
    shorten,
    warn_of,
)
from ..kernels import Floats, Integers, Truths
from .classes import find_set_labels, find_sign, normalise_column
from .columns import (
    Codes,
    Indices,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    find_missing,
    find_present,
    is_missing,
    keep_values,
    lookup,
    objects,
    split_names,
    to_column,
    to_values,
)
from .items import NAMED, Sequences, key_of, read_keys, read_positions
from .tables import Table, read_column, read_distinct, read_names

if TYPE_CHECKING:
    from .answers import Answers

# Weights of one worker's spread answer may exceed 1 by rounding.
WEIGHT_SLACK = 1e-6
# So many columns are tried for whether they tell items apart.
MOST_TRIED = 50
FILL = "Every answer must say who gave it about what: fill it in or drop the row."
_HOW_TO_DROP = {
    "pandas": ", as dropna(subset=[{0!r}]) does. If a label is called NA or None, read it with keep_default_na=False",
    "polars": ", as drop_nulls({0!r}) does",
}


def drop_unlabelled(table: Table, name: str, drop_missing: bool) -> Table:
    """The table of the rows that have a label; that others are there is an error unless they are to be dropped."""
    labels = table.read(name)
    present = find_present(labels)
    if drop_missing and len(present):
        warn_of_missing(table.name, name, table.n_rows - len(present), table.n_rows)
        return table.keep(present)
    # Beside sets of tags a missing answer is a set without a tag.
    sets = find_set_labels(list(dict.fromkeys(to_values(labels).tolist())))
    as_tags = [Sentence("If cells hold sets of tags, use {separator}.", separator=find_sign(sets))] if sets else []
    drop = f"A missing answer needs no row: drop it{_HOW_TO_DROP.get(table.backend, '').format(name)}."
    table.values(name, *as_tags, drop, Sentence("Or leave such rows out with {drop_missing}.", drop_missing=True))
    return table


def warn_of_missing(table: str, column: str, n_missing: int, n_rows: int) -> None:
    """Say how many rows of a table were left out, since they hold no answer."""
    left_out = f"{n_missing:,} of {n_rows:,}"
    warn_of(f"Rows of {table} without an answer in column {column!r} were left out: {left_out}.")


def read_weights(table: Table, name: str) -> Floats:
    """Read the column of weights, which must be numbers in (0, 1]."""
    column = table.values(name, "Every answer needs a weight in (0, 1]: fill it in or drop the row.")
    try:
        weights = to_floats(to_values(column))
    except ValueError as error:
        raise InputError(f"Column {name!r} of {table.name} must hold numbers: {error}.") from error
    wrong = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"Column {name!r} of {table.name} has {plural(len(wrong), 'weight')} outside (0, 1]; the first is "
            f"{weights[row]} at {table.locate(row)}.",
            "Divide all weights by the largest, and drop answers that count for nothing.",
        )
    return weights


def settle_duplicates(answers: Answers, policy: str, item: Integers, table: Table) -> Answers:
    """Apply `duplicates=` to the pairs of item and worker that have more than one row.

    Several rows are one answer if they have weights, which sum to at most 1, and different labels. "first" and "last"
    keep one row of every pair all the same.

    Parameters
    ----------
    answers : Answers
        All rows.
    policy : {"error", "first", "last", "mean"}
        As in `Answers.from_frame`.
    item : ndarray
        The item of each row of the table. The answers are in the stable order of items.
    table : Table
        Where the answers come from.
    """
    pair = answers.item_of_answer() * answers.n_workers + answers.worker
    _, pair = np.unique(pair, return_inverse=True)
    if policy in ("first", "last"):
        step = 1 if policy == "first" else -1
        _, chosen = np.unique(pair[::step], return_index=True)
        kept = np.zeros(len(pair), bool)
        kept[chosen if step == 1 else len(pair) - 1 - chosen] = True
        answers = answers.keep(kept)
        if answers.soft is not None:
            return answers
        # A label that only occurred in answers that were dropped is a label nobody gave.
        said = np.bincount(answers.label, minlength=answers.n_labels) > 0
        label, labels = keep_values(answers.label, answers.labels, said)
        return replace(answers, label=label, labels=labels, classes=labels)
    size = np.bincount(pair)
    repeated = size > 1
    if answers.weight is not None:
        said, times = np.unique(pair * answers.n_labels + answers.label, return_counts=True)
        twice = np.isin(np.arange(len(size)), said[times > 1] // answers.n_labels)
        repeated &= (np.bincount(pair, weights=answers.weight) > 1 + WEIGHT_SLACK) | twice
    if policy == "error" and repeated.any():
        first = int(np.flatnonzero(repeated[pair])[0])
        raise _duplicate_error(answers, np.flatnonzero(pair == pair[first]), int(repeated.sum()), item, table)
    weight = np.ones(len(pair)) if answers.weight is None else answers.weight
    weight = np.where(repeated[pair], weight / size[pair], weight)
    # All rows about one pair stand together: they are one answer.
    _, first_row = np.unique(pair, return_index=True)
    place = np.argsort(first_row[pair], kind="stable")
    order = None if answers.order is None else answers.order[place]
    return replace(answers, worker=answers.worker[place], label=answers.label[place], weight=weight[place], order=order)


def _duplicate_error(answers: Answers, same: Indices, n_pairs: int, item: Integers, table: Table) -> InputError:
    """The error that names the first pair with more than one answer; `same` are its answers."""
    about = int(answers.items_of(same[:1])[0])
    rows = np.flatnonzero(item == about)[same - answers.offsets[about]]
    here, there = table.locate(int(rows[0])), table.locate(int(rows[1]))
    file, comma, _ = here.rpartition(", ")
    where = f"{here} and {there.removeprefix(file + comma)}" if comma else f"{here} and {there} of {table.name}"
    last = "Or let the last one count, with {duplicates}."
    why = ""
    remedies: list[str | Sentence] = ["Remove them.", Sentence(last, duplicates="last")]
    further = _find_further_column(answers, item, table) if table.soft is None else None
    if further is not None:
        remedies = [further, *remedies]
    if answers.weight is not None and answers.weight[same].sum() > 1 + WEIGHT_SLACK:
        why, remedies = ", with weights of more than 1 in all", ["Let the weights of an answer sum to at most 1."]
    elif answers.weight is not None:
        why = ", with the same label"
    if table.find_spans() is not None:
        spans = "If these are spans, fuse the file of the tool that they come from, or give texts to {from_frame}."
        remedies.append(Sentence(spans, from_frame=Python("Spans.from_frame")))
    who, key = answers.workers[[answers.worker[same[0]]]].tolist()[0], key_of(answers.keys, about)
    return InputError(
        f"Worker {shorten(who)} answered item {shorten(key)} more than once{why}: see {where}. "
        f"{plural(n_pairs, 'such pair')} in all.",
        *remedies,
        keyword="duplicates",
    )


def _find_further_column(answers: Answers, item: Integers, table: Table) -> Sentence | None:
    """The question whether an item is several columns, with the one beside that of items that tells rows apart.

    With it no worker has answered an item twice, and some items have several answers. Of several such columns the one
    with the fewest values is meant.
    """
    role = "item" if "item" in answers.columns else "sequence"
    parts = split_names(answers.columns[role]) or [answers.columns[role]]
    worker = np.empty(len(item), np.int64)
    worker[np.argsort(item, kind="stable")] = answers.worker
    found = []
    for name in [str(each) for each in table.names if each not in (*answers.columns.values(), *parts)][:MOST_TRIED]:
        column = table.read(name)
        if len(find_missing(column)):
            continue
        codes, values = encode_in_order_of_appearance(column)
        whole = item.astype(np.int64) * len(values) + codes
        pairs = np.unique(np.stack([whole, worker]), axis=1)
        if pairs.shape[1] == len(item) > len(np.unique(whole)):
            found.append((len(values), name))
    if not found:
        return None
    asks = f"Is an item several columns? With {{{role}}} no worker has answered one more than once."
    return Sentence(asks, **{role: ",".join([*parts, min(found)[1]])})


def lay_out_matrix(answered: Truths, lengths: ArrayLike | None, items: object, workers: object) -> dict[str, Any]:
    """What `Answers` have of a matrix: offsets, workers, and keys of its rows, which may be in sequences."""
    n_items, n_workers = answered.shape
    found = {
        "offsets": np.concatenate([[0], np.cumsum(answered.sum(axis=1))]).astype(np.int64),
        "worker": np.nonzero(answered)[1].astype(np.int32),
        "workers": read_names(workers, n_workers, "workers"),
        "weight": None,
    }
    if lengths is None:
        return {**found, "keys": read_names(items, n_items, "items")}
    sizes = to_values(read_column(lengths, "lengths"))
    if sizes.dtype.kind not in "iu" or (sizes <= 0).any() or sizes.sum() != n_items:
        raise InputError(
            f"lengths must be positive whole numbers that sum to the {n_items:,} rows; got {listing(sizes.tolist())}."
        )
    sizes = sizes.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    if items is None:
        return {**found, "keys": Sequences(np.arange(len(sizes)), offsets, np.arange(n_items) - offsets[owner])}
    sequence, position = read_keys(items, 2)
    codes, ids = encode_in_order_of_appearance(sequence)
    place = read_positions(position, NAMED)
    in_order = np.array_equal(codes, owner) and np.all((place[1:] > place[:-1]) | (np.diff(owner) > 0))
    if not in_order:
        raise InputError(
            "items must give each row's (sequence, position), by sequence as in lengths, positions rising."
        )
    return {**found, "keys": Sequences(ids, offsets, place)}


def read_entries(
    F: ArrayLike, missing: object, labels: ArrayLike | None, normalise: bool
) -> tuple[Truths, Codes, Values]:
    """Which entries of a matrix are answers, and their codes and vocabulary."""
    matrix: Any = F
    plain = (str, bytes, Mapping)
    if isinstance(F, (list, tuple)) and all(isinstance(row, Iterable) and not isinstance(row, plain) for row in F):
        # NumPy would make text of ["a", nan], and numbers of [True, -1].
        rows = [objects(list(row)) for row in F]
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise InputError(f"F must have rows of one length; got lengths {listing(sorted(widths))}.")
        matrix = np.array(rows, dtype=object).reshape(len(rows), -1 if rows else 0)
    try:
        matrix = np.ma.asarray(matrix) if np.ma.isMaskedArray(matrix) else np.asarray(matrix)
    except ValueError as error:
        raise InputError(f"F must be a matrix of answers; {first_line(error)}.") from error
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"F must have items as rows and workers as columns; got an array of shape {matrix.shape}.")
    missing = None if is_missing(missing) else missing
    if not isinstance(missing, Hashable):
        raise parameter_error("missing", "Answers.from_matrix", "a single entry of F", missing)
    data, mask = np.ma.getdata(matrix), np.ma.getmaskarray(matrix).copy()
    if data.dtype.kind in "biuf":
        mask |= np.isnan(data)
        if isinstance(missing, (int, float, np.number, np.bool_)):
            mask |= data == missing
    else:
        to_column(data.ravel(), "F")  # which refuses lists and dicts
        lost = (is_missing(entry) or bool(entry == missing) for entry in data.ravel().tolist())
        mask |= np.fromiter(lost, bool, data.size).reshape(data.shape)
    answered = np.asarray(~mask)
    entries = data[answered]
    if not len(entries):
        raise InputError(f"F has no answers: all {data.size:,} entries are missing.")

    if entries.dtype == object:
        kinds = set(map(type, entries.tolist()))
        entries = np.array(entries.tolist()) if kinds == {int, float} else to_values(to_column(entries, "F"))
    if entries.dtype.kind == "f":
        # A float matrix of whole numbers is an integer matrix that had to hold NaN.
        entries = entries.astype(np.float64)
        is_whole = np.all((entries == np.round(entries)) & (np.abs(entries) < 2**53))
        entries = entries.astype(np.int64) if is_whole else entries
    elif entries.dtype.kind in "iu" and entries.dtype != np.uint64:
        entries = entries.astype(np.int64)
    if labels is None:
        return answered, *encode_sorted(to_column(entries, "F"))
    vocabulary = read_distinct(labels, "labels")
    if entries.dtype.kind in "iu":
        outside = np.flatnonzero((entries < 0) | (entries >= len(vocabulary)))
        if len(outside):
            raise InputError(
                f"F holds {entries[outside[0]]}, which is no index into the {len(vocabulary)} labels given.",
                Sentence("With {labels}, the integers of F are indices into it."),
                Sentence("Name the entry that stands for no answer with {missing}."),
            )
        return answered, entries.astype(np.int32), vocabulary
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
    return answered, codes.astype(np.int32), vocabulary
