"""Long tables of answers, one row per answer: columns found, ids encoded, answers sorted by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import check_truth
from ..errors import DataWarning, InputError, ParameterError, Sentence, parameter_error, plural, warn
from ..memory import release_unused
from .classes import choose_classes, list_classes
from .dialects import translate
from .duplicates import check_policy, settle_duplicates
from .gold_columns import add_gold, find_gold, match_rows
from .items import Sequences, encode_items, read_keys
from .ordering import read_order
from .responses import Responses, keep_weights
from .silence import warn_of_silence
from .slips import Source, warn_of_slips
from .spelling import choose_spelling, merge_spellings
from .tables import Table, squeeze
from .vocabulary import are_distinct, encode_sorted, find_missing, is_categorical, narrow_codes, to_values

_HOW_TO_DROP = {
    "pandas": ", as dropna(subset=[{0!r}]) does. If a label is called NA or None, read it with keep_default_na=False",
    "polars": ", as drop_nulls({0!r}) does",
}
DROP_ROWS = Sentence("Or leave such rows out with {drop_missing}.", drop_missing=True)


def read_answers(
    table: Table,
    names: Mapping[str, str | None],
    classes: ArrayLike | None,
    items: Any,
    duplicates: str,
    abstain: str,
    background: Any,
    normalise: bool,
    gold: str | bool | None = None,
    drop_missing: bool = False,
    format: str | None = None,
    ignore: Sequence[str] | str = (),
) -> Responses:
    """Read a table of answers; see `Responses.from_frame`.

    Parameters
    ----------
    table : Table
        The answers.
    names : mapping
        For each role that a column can play (item, worker, label, sequence, position, weight, order) its name, None
        where it is not given.
    classes, items, duplicates, abstain, background, normalise, gold, drop_missing, format, ignore
        As in `Responses.from_frame`.
    """
    from ..kernels.layout import find_offsets, group_answers, order_by

    check_policy(duplicates)
    check_truth("normalise", "Responses", normalise)
    check_truth("drop_missing", "Responses", drop_missing)
    origin = table.origin
    ignored = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(ignored, (list, tuple)):
        raise parameter_error("ignore", "Responses.from_frame", "the name of a column, or a list of names", ignore)
    table = translate(table, format, {**names, "gold": gold if isinstance(gold, str) else None}, ignored)
    items = table.items if items is None else items
    columns = find_columns(table, **names)
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows: there are no answers to fuse.")
    known_labels = find_gold(table, gold)
    if drop_missing:
        table = _drop_missing(table, columns["label"])
    drop = f"A missing answer needs no row: drop it{_HOW_TO_DROP.get(table.backend, '').format(columns['label'])}."
    fill = "Every answer must say who gave it about what: fill it in or drop the row."
    said = table.values(columns["label"], drop, DROP_ROWS)
    label, labels = encode_sorted(said)
    spell = choose_spelling(labels, list_classes(classes).tolist()) if normalise else None
    if spell is not None:
        label, labels = merge_spellings(label, labels, spell, ordered=is_categorical(said))
    del said
    worker, workers = encode_sorted(table.values(columns["worker"], fill))
    weight = read_weights(table, columns["weight"]) if "weight" in columns else None
    order = read_order(table, columns["order"]) if "order" in columns else None
    key_names = [columns[role] for role in ("item", "sequence", "position") if role in columns]
    named = None if items is None else read_keys(items, len(key_names), columns)
    item, keys = encode_items([table.values(name, fill) for name in key_names], named, table.name)
    n_items = int(keys.offsets[-1]) if isinstance(keys, Sequences) else len(keys)

    release_unused()  # the memory of Arrow's hash tables: with millions of items that is most of what was used
    if np.all(item[:-1] <= item[1:]):
        # Sorted by item already, as most tables are: nothing to move.
        offsets = find_offsets(item, n_items)
    else:
        worker, label, offsets = group_answers(item, n_items, worker, label)
        if weight is not None or order is not None:
            rows, _ = order_by(item, n_items)
            weight, order = (None if each is None else each[rows] for each in (weight, order))
    known = None if known_labels is None else match_rows(table, known_labels, item)
    if names["item"] is None:
        _doubt_ids(table, key_names[0], offsets)
    answers = Responses(
        offsets=offsets,
        worker=worker,
        label=narrow_codes(label, len(labels)),
        weight=weight,
        workers=workers,
        labels=labels,
        classes=labels,
        keys=keys,
        backend=table.backend,
        columns=columns,
        normalised=normalise,
        format=table.format,
        origin=origin,
        order=order,
    )
    del label
    answers = settle_duplicates(answers, duplicates, item, table)
    del item
    possible, silent = choose_classes(classes, answers.labels, abstain, background, spell)
    answers = replace(answers, classes=possible, background=silent, weight=keep_weights(answers.weight))
    if known is not None:
        answers = add_gold(answers, known, table.name, named=isinstance(gold, str))
    warn_of_silence(answers)
    warn_of_slips(answers, Source(named=classes is not None))
    return answers


def find_columns(
    table: Table,
    item: str | None,
    worker: str | None,
    label: str | None,
    sequence: str | None,
    position: str | None,
    weight: str | None,
    order: str | None = None,
) -> dict[str, str]:
    """Return the column that plays each role: item (or sequence and position), worker, label, and others if named."""
    in_sequences = sequence is not None or position is not None
    if item is not None and in_sequences:
        raise ParameterError(
            Sentence("Give either {item} or {sequence} and {position}, not both: a position is an item.")
        )
    if item is None and not in_sequences:
        in_sequences = table.has_sequences()
    roles = {"sequence": sequence, "position": position} if in_sequences else {"item": item}
    if "item" in roles:
        roles["item"] = item if item is not None else _prefer_ids(table)
    roles |= {"worker": worker, "label": label}
    roles |= {role: name for role, name in (("weight", weight), ("order", order)) if name is not None}
    missing = [role for role, given in roles.items() if table.find(role, given) is None]
    if len(missing) > 1:
        raise table.no_columns(missing)
    return {role: table.need(role, given, parameter=role) for role, given in roles.items()}


def _prefer_ids(table: Table) -> str | None:
    """Return the column of items where "id" is a number of rows, and another column has a name of items, else None.

    Beside a column such as task_id, "id" is one. Rows of several files may have the same numbers.
    """
    name = table.find_usual("item")
    others = table.candidates("item")
    if name is None or str(name).lower() != "id" or len(others) != 1:
        return None
    is_key = squeeze(others[0]) in ("itemid", "taskid", "questionid")
    return others[0] if is_key or are_distinct(table.read(name)) else None


def _drop_missing(table: Table, label: str) -> Table:
    """Return the table without rows that have no answer, and warn of their number."""
    rows = find_missing(table.read(label))
    if not len(rows) or len(rows) == table.n_rows:
        return table
    n_rows = f"{len(rows):,} of {table.n_rows:,}"
    warn(DataWarning(f"Rows of {table.name} without an answer in column {label!r} were left out: {n_rows}."))
    return table.keep(np.setdiff1d(np.arange(table.n_rows), rows, assume_unique=True))


def _doubt_ids(table: Table, key: str, offsets: NDArray[np.int64]) -> None:
    """Warn if the column of items was found by the name "id" and looks like a number of rows."""
    if key.lower() == "id" and table.n_rows > 1 and np.diff(offsets).max() == 1:
        warn(
            DataWarning(
                f"No two rows of {table.name} have the same {key!r}: is {key!r} a row number?",
                Sentence("Name the item column with {item}."),
            )
        )


def read_weights(table: Table, name: str) -> NDArray[np.float64]:
    """Return the column of weights, which must be numbers in (0, 1]."""
    column = to_values(table.values(name, "Every answer needs a weight in (0, 1]: fill it in or drop the row."))
    try:
        if column.dtype.kind in "mM":
            raise TypeError("these are times")
        weights = np.array(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
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
