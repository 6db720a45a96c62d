"""Gold answers: labels that are known, in a table of their own or a column beside the answers, matched to the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, Python, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Integers, Truths
from .classes import normalise_column, to_number, to_numbers
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    decode_categories,
    encode_in_order_of_appearance,
    find_present,
    is_missing,
    is_present,
    lookup,
    name_composite,
    plain_labels,
    to_column,
    to_values,
    tuples_to_ids,
    whole_numbers,
)
from .items import list_keys
from .tables import Table, is_table, key_roles, open_frame, open_series

if TYPE_CHECKING:
    from .answers import Answers

KEY_REMEDY = "Say which item each label belongs to."
# How a column says true or false. In a file 1 may be written 1.0, as where entries are missing, and nothing is false.
TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": False}
# How to do without the column, in Python and on the command line.
LEAVE_OUT = Sentence("To leave it out, use {ignore_gold}.", ignore_gold=Python("gold=False"))
# The format of a table that was a dict of items or a Series, whose keys are whatever they are.
KEYED = "keyed"


class Gold(NamedTuple):
    """Known labels of the items.

    Attributes
    ----------
    codes : int32 array (n_items,)
        The known class of each item, -1 where it is not known.
    judging : boolean array (n_items,)
        Whether probabilities may be judged by the known label: all known ones, or those drawn at random, if it is said
        which these are. Items that were chosen because they are doubtful say little about the others.
    """

    codes: Codes
    judging: Truths

    def about(self, items: Indices) -> Gold:
        """The known labels of some of the items."""
        return Gold(self.codes[items], self.judging[items])


def match_gold(gold: object, responses: Answers, classes: Values) -> Gold | None:
    """Match known labels to the items, as indices into `classes`.

    Parameters
    ----------
    gold : dict, Series, table, list of these, Gold or None
        {item: label} or {(sequence, position): label}; a pandas Series with that index; or a table with columns
        item (or sequence and position) and label, found by the same aliases as answers; the label may also be called
        gold or truth. Missing labels are not known. A boolean column random says which items were drawn at random. In a
        list, such as one of rounds of review, an item may occur several times with the same label. `Gold` is matched
        already.
    responses : Answers
        Whose items they are.
    classes : ndarray
        What a label may be.
    """
    if gold is None or isinstance(gold, Gold):
        return gold
    paired = responses.sequences is not None
    rounds = gold if isinstance(gold, (list, tuple)) and len(gold) else [gold]
    # Of all rounds together: the item and the class of each known label, and whether it was drawn at random.
    matched: list[tuple[Indices, Indices, Truths]] = []
    for each in rounds:
        # What the columns of items are called in the answers, they may be called here.
        table = open_gold(each, paired, [] if paired else name_composite(responses.columns)).prefer(responses.columns)
        labels = table.read(find_label(table))
        needed = table.read if table.format == KEYED else lambda name, table=table: table.values(name, KEY_REMEDY)
        keys = [needed(name) for name in table.need_keys(paired)]
        shares = [name for name in table.names if str(name).startswith("p(") and str(name).endswith(")")]
        if "confidence" in table.names and shares:
            warn_of(
                f"{table.name} looks like labels that consilience fused: it has the columns 'confidence' and "
                f"{listing(shares[:1])}.",
                "Known labels should come from people, or another source that does not depend on these answers.",
                keyword="gold",
            )
        known = is_present(labels)
        if not known.any():
            raise InputError(f"{table.name} holds no label.")
        exact = find_classes(labels, known, classes, responses.normalised)
        code = find_nearest(labels, known, exact, classes) if responses.is_ordered else exact
        unknown = known & (code < 0)
        if unknown.any():
            raise InputError(
                f"{table.name} has {plural(int(unknown.sum()), 'label')} not among the classes "
                f"{listing(classes.tolist())}: {listing(dict.fromkeys(to_values(labels)[unknown].tolist()))}.",
                "Correct them.",
                Sentence("Or name all classes with {classes}."),
            )
        item = responses.find_items(keys)
        used, n_known = known & (item >= 0), int(known.sum())
        if not used.any():
            raise InputError(
                f"None of the {n_known:,} gold items occurs in the answers ({table.name} has "
                f"{list_keys(keys, np.flatnonzero(known)[:3])}; the answers have "
                f"{listing(responses.items[:3].tolist())}).",
                "Check that both use the same ids.",
            )
        n_absent = n_known - int(used.sum())
        if n_absent:
            warn_of(f"{n_absent:,} of {n_known:,} gold items do not occur in the answers and were left out.")
        tell_between(int((used & (exact != code)).sum()))
        matched.append((item[used], code[used], _read_random(table, known)[used]))
    item, code, drawn = (np.concatenate(parts) for parts in zip(*matched, strict=True))
    codes, judging = np.full(responses.n_items, -1, np.int32), np.zeros(responses.n_items, bool)
    codes[item], judging[item[drawn]] = code, True
    clash = np.unique(item[codes[item] != code])
    if len(clash):
        said = classes[list(dict.fromkeys(code[item == clash[0]].tolist()))[:2]].tolist()
        raise InputError(
            f"{table.name if len(matched) == 1 else 'gold'} gives {plural(len(clash), 'item')} more than one label, "
            f"such as {listing(responses.items[clash[:1]].tolist())}: {' and '.join(map(shorten, said))}.",
            "Keep one label per item.",
        )
    return Gold(codes, judging)


def open_gold(gold: object, paired: bool, parts: Sequence[str] = ()) -> Table:
    """Known labels, in any form that `match_gold` takes, as a table with columns item and label.

    With `paired` the items are positions of sequences, in two columns. Keys of items that several columns identify, its
    `parts`, may be tuples.
    """
    if isinstance(gold, Mapping):
        named = Table(list(gold), gold.__getitem__, 0, "", "", str)
        roles = [named.find(role) for role in (*key_roles(paired), "known label")]
        # A dict of columns, and not one of items.
        if any(names and all(_is_column(gold.get(name)) for name in names) for names in (parts, roles)):
            return open_frame(gold, "gold")
        keys: list[Any] = list(gold)
        labels: Any = list(gold.values())
    else:
        series = open_series(gold)
        if series is None and is_table(gold):
            return open_frame(gold, "gold")
        if series is None:
            raise InputError(
                f"gold must be a dict such as {{item: label}}, a Series, or a table or file with columns item and "
                f"label. Got {shorten(gold)} instead.",
                keyword="gold",
            )
        keys, labels = to_values(series[0]).tolist(), series[1]
    if not paired:
        columns = {"item": tuples_to_ids(keys) if parts else keys, "label": labels}
    elif all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        columns = {"sequence": [key[0] for key in keys], "position": [key[1] for key in keys], "label": labels}
    else:
        raise InputError(
            "gold of sequences must be keyed by (sequence, position), such as {('s1', 0): 'B'}.", keyword="gold"
        )
    return replace(open_frame(columns, "gold"), format=KEYED)


def _is_column(values: object) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, Enum))


def find_label(table: Table, parameter: str | None = None) -> str:
    """The column of known labels. Beside answers of workers it has a name of its own, such as gold or truth."""
    if table.find("worker") is not None and table.preferred.get("known label") is None:
        name = table.find("gold")
        if name is not None:
            return name
    return table.need("known label", parameter=parameter)


def find_classes(labels: Column, known: Truths, classes: Values, normalised: bool) -> Indices:
    """The class of each label that is known, or -1; normalised labels are the same in any spelling."""
    if normalised:
        labels, classes = normalise_column(labels), to_values(normalise_column(to_column(classes)))
    code = lookup(classes, labels)
    for respelled in (plain_labels, whole_numbers):  # "True" where the classes are "true" and "false"; "1.0" for 1
        if (known & (code < 0)).any():
            code = np.where(code < 0, lookup(classes, respelled(labels)), code)
    return code


def find_nearest(labels: Column, known: Truths, code: Indices, classes: Values) -> Indices:
    """The class of each label, and of a number between two levels of a scale the nearest; halfway the lower."""
    levels, rows, code = to_numbers(classes), np.flatnonzero(known & (code < 0)), code.copy()
    if levels is not None:
        for row, label in zip(rows.tolist(), to_values(labels)[rows].tolist(), strict=True):
            value = to_number(label)
            if value is not None and levels.min() < value < levels.max():
                code[row] = np.lexsort((levels, np.abs(levels - value)))[0]
    return code


def tell_between(n_labels: int) -> None:
    """Warn of known labels between the levels of a scale."""
    if n_labels:
        lie, count = ("lies", "counts") if n_labels == 1 else ("lie", "count")
        known = plural(n_labels, "known label")
        warn_of(f"{known} {lie} between levels and {count} as the nearest, the lower of two.")


def _read_random(table: Table, known: Truths) -> Truths:
    """Which rows with a label are said to be drawn at random: all of them if there is no such column."""
    name = table.find("random")
    if name is None:
        return known
    values, drawn = to_values(plain_labels(table.read(name))), known.copy()
    for row in np.flatnonzero(known).tolist():
        said = False if is_missing(values[row]) else TRUTH.get(str(values[row]).lower())
        if said is None:
            raise InputError(
                f"Column {name!r} of {table.name} must say whether an item was drawn at random, by true or false. Got "
                f"{shorten(values[row])} at {table.locate(row)} instead.",
                "Correct it, or give the column another name.",
            )
        drawn[row] = said
    return drawn


def find_gold(table: Table, gold: str | bool | None) -> str | None:
    """The column of known labels: the one named, or the one with a usual name; None with ``gold=False``."""
    if gold is False:
        return None
    if not (gold is None or isinstance(gold, str)):
        raise parameter_error("gold", "Answers.from_frame", "the name of a column, or False", gold)
    return table.find("gold", gold)


def add_gold(answers: Answers, table: Table, name: str, item: Integers, named: bool) -> Answers:
    """Answers with the known labels in a column of their table.

    Two labels of one item are an error; unless the column was found by its name, and holds something else than classes.

    Parameters
    ----------
    answers : Answers
        Those of the table.
    table : Table
        Of answers.
    name : str
        The column of known labels; an empty cell says nothing.
    item : array of int
        The item of each row.
    named : bool
        Whether the user named the column.
    """
    column = table.read(name)
    rows = find_present(column)
    if not len(rows):
        return answers
    column = column.take(rows) if isinstance(column, np.ndarray) else decode_categories(column.take(rows))
    codes, owner = encode_in_order_of_appearance(column)[0], item[rows]
    items, first = np.unique(owner, return_index=True)
    clash = np.flatnonzero(codes != codes[first][np.searchsorted(items, owner)])
    labels = column.take(first)
    if len(clash) and not named and find_strange(answers, labels):
        return answers
    if len(clash):
        raise InputError(
            f"Column {name!r} of {table.name} gives {plural(len(np.unique(owner[clash])), 'item')} more than one known "
            f"label; the first is at {table.locate(int(rows[clash[0]]))}.",
            "Correct it.",
            LEAVE_OUT,
        )
    known = labels.tolist() if isinstance(labels, np.ndarray) else labels.to_pylist()
    gold = dict(zip(answers.items[items].tolist(), known, strict=True))
    return replace(answers, gold=gold, columns={**answers.columns, "gold": name})


def find_strange(answers: Answers, labels: Column) -> list[Any]:
    """The different ones of some labels that are no classes. Truth values are none among numbers."""
    _, distinct = encode_in_order_of_appearance(labels)
    if distinct.dtype == bool and answers.classes.dtype.kind in "iuf":
        return list(distinct.tolist())
    column, known = to_column(distinct), np.ones(len(distinct), bool)
    code = find_classes(column, known, answers.classes, answers.normalised)
    if answers.is_ordered:
        code = find_nearest(column, known, code, answers.classes)
    return list(distinct[code < 0].tolist())
