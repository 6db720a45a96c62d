"""Labels that are known: in a table of their own, in a column beside the answers, or by item.

`Gold` holds them matched to the items. `match_gold` makes it of whatever users give; `add_gold` keeps the column of a
table of answers, which is matched at the fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError, Python, Sentence, listing, plural, shorten, warn_of
from ..kernels import Floats, Integers, Truths
from .classes import find_by_value, normalise_column, normalise_label, to_number, to_numbers
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    decode_categories,
    encode_in_order_of_appearance,
    find_present,
    is_present,
    lookup,
    name_composite,
    plain_labels,
    to_column,
    to_values,
)
from .matching import match_items, open_gold
from .tables import Table, read_figures

if TYPE_CHECKING:
    from .answers import Answers

# How a column says true and false. In a file 1 may be written 1.0, as where entries are missing, and nothing is false.
TRUE, FALSE = ("true", "1", "1.0"), ("false", "0", "0.0", "", "none", "nan", "nat", "<na>")
# How to do without the column, in Python and on the command line.
LEAVE_OUT = Sentence("To leave it out, use {ignore_gold}.", ignore_gold=Python("gold=False"))


class Gold(NamedTuple):
    """Known labels of the items.

    Attributes
    ----------
    codes : int32 array (n_items,)
        The known class of each item, -1 where it is not known.
    judging : boolean array (n_items,)
        Whether probabilities may be judged by the known label: all known ones, or those drawn at random, if it is said
        which these are. Items that were chosen because they are doubtful say little about the others.
    inclusion : array (n_items,) or None
        The probability with which each of those was drawn, 0 for other items. None: all were as likely.
    """

    codes: Codes
    judging: Truths
    inclusion: Floats | None = None

    @property
    def n_known(self) -> int:
        """How many labels are known."""
        return int(np.count_nonzero(self.codes >= 0))

    def about(self, items: Indices) -> Gold:
        """The known labels of some of the items."""
        return Gold(self.codes[items], self.judging[items], None if self.inclusion is None else self.inclusion[items])

    def find_kept(self, codes: Indices) -> Truths:
        """Which labels are known ones: where forbidden steps of a sequence contradict known labels, some are not."""
        return np.asarray((self.codes >= 0) & (self.codes == codes))


def match_gold(gold: object, responses: Answers, classes: Values, *, as_sample: bool = False) -> Gold | None:
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
    as_sample : bool
        Whether known labels are a sample, by which all items are judged: then items that are not among the answers, and
        repeated ones, are errors, since they were not drawn from these.
    """
    if gold is None or isinstance(gold, Gold):
        return gold
    parts = [] if responses.sequences is not None else name_composite(responses.columns)
    matches: list[tuple[Indices, Indices, Truths, Floats]] = []
    rounds = gold if isinstance(gold, (list, tuple)) and len(gold) else [gold]
    for each in rounds:
        # What the columns of items are called in the answers, they may be called here.
        table = open_gold(each, responses.sequences is not None, parts).prefer(responses.columns)
        column = table.read(find_label(table))
        known = is_present(column)
        if not known.any():
            raise InputError(f"{table.name} holds no label.")
        item = match_items(table, responses, known)
        used = known & (item >= 0)
        code = find_classes(column, classes, responses.normalised, used if responses.is_ordered else None)
        unknown = known & (code < 0)
        if unknown.any():
            strange = to_values(column)[unknown]
            forms = {normalise_label(each) for each in classes.tolist()}
            remedies: list[str | Sentence] = ["Correct them."]
            if any(normalise_label(each) in forms for each in strange.tolist()):
                remedies = ["Write them as the classes are: they differ in case, spaces or Unicode form."]
            elif as_sample:
                every = ",".join(str(each) for each in dict.fromkeys([*classes.tolist(), *strange.tolist()]))
                remedies.append(f"Or fuse again with all classes named: --classes {every}, in Python classes=.")
            raise InputError(
                f"{table.name} has {plural(int(unknown.sum()), 'label')} not among the classes "
                f"{listing(classes.tolist())}: {listing(dict.fromkeys(to_values(column)[unknown].tolist()))}.",
                *remedies,
                Sentence("Or name all classes with {classes}."),
            )
        if used.sum() < known.sum():
            n_absent, n_known = int(known.sum() - used.sum()), int(known.sum())
            absent = f"{n_absent:,} of {n_known:,} gold items do not occur in the answers"
            if as_sample:
                where = table.locate(int(np.flatnonzero(known & (item < 0))[0]))
                problem = f"{absent}, such as that at {where}. So they were not drawn from these."
                raise InputError(problem, "Leave them out if they belong to other data, or correct their ids.")
            warn_of(f"{absent} and were left out.")
        again = np.setdiff1d(np.arange(used.sum()), np.unique(item[used], return_index=True)[1])
        if as_sample and len(again):
            problem = f"{table.name} has {plural(len(again), 'row')} about an item that has one already"
            where = table.locate(int(np.flatnonzero(used)[again[0]]))
            raise InputError(f"{problem}, such as that at {where}.", "Keep one row per item.")
        matches.append((item[used], code[used], _read_random(table, known)[used], _read_inclusion(table, used)))
    item, code, random, inclusion = (np.concatenate(each) for each in zip(*matches, strict=True))
    codes, judging = np.full(responses.n_items, -1, np.int32), np.zeros(responses.n_items, bool)
    chance = np.zeros(responses.n_items)
    codes[item], judging[item[random]], chance[item[random]] = code, True, inclusion[random]
    clash = np.unique(item[codes[item] != code])
    if len(clash):
        said = classes[list(dict.fromkeys(code[item == clash[0]].tolist()))[:2]].tolist()
        raise InputError(
            f"{table.name if len(rounds) == 1 else 'gold'} gives {plural(len(clash), 'item')} more than one label, "
            f"such as {listing(responses.items[clash[:1]].tolist())}: {' and '.join(map(shorten, said))}.",
            "Keep one label per item.",
        )
    if np.isnan(chance).any() and not np.isnan(chance[judging]).all():
        problem = "Only some of the known labels have a probability with which their item was drawn."
        raise InputError(problem, "Give it for all that were drawn at random, or leave the column out.", keyword="gold")
    return Gold(codes, judging, None if np.isnan(chance).any() else chance)


def find_label(table: Table, parameter: str | None = None) -> str:
    """The column of known labels. Beside answers of workers it has a name of its own, such as gold or truth."""
    if table.find("worker") is not None and table.preferred.get("known label") is None:
        name = table.find("gold")
        if name is not None:
            return name
    return table.need("known label", parameter=parameter)


def find_classes(labels: Column, classes: Values, normalised: bool = False, on_scale: Truths | None = None) -> Indices:
    """The class of each label, or -1.

    Parameters
    ----------
    labels, classes
        Labels, and what they may be.
    normalised : bool
        Whether labels are the same in any spelling.
    on_scale : boolean array, optional
        Given if classes are levels of a scale: a number between two of them then is of the nearest, halfway of the
        lower. A warning counts those that are marked here.
    """
    if normalised:
        labels, classes = normalise_column(labels), to_values(normalise_column(to_column(classes)))
    code = find_by_value(classes, to_values(labels))
    if (code < 0).any():  # "True" where the classes are "true" and "false"
        code = np.where(code < 0, lookup(classes, plain_labels(labels)), code)
    levels = None if on_scale is None else to_numbers(classes)
    if on_scale is None or levels is None:
        return code
    n_between, values = 0, to_values(labels)
    for row in np.flatnonzero((code < 0) & is_present(labels)).tolist():
        value = to_number(values[row])
        if value is not None and levels.min() < value < levels.max():
            code[row] = np.lexsort((levels, np.abs(levels - value)))[0]
            n_between += int(on_scale[row])
    if n_between:
        lie, count = ("lies", "counts") if n_between == 1 else ("lie", "count")
        known = plural(n_between, "known label")
        warn_of(f"{known} {lie} between levels and {count} as the nearest, the lower of two.")
    return code


def _read_random(table: Table, known: Truths) -> Truths:
    """Which rows with a label are said to be drawn at random: all of them if there is no such column."""
    name = table.find("random")
    if name is None:
        return known
    said = np.array([str(value).lower() for value in to_values(plain_labels(table.read(name))).tolist()])
    odd = np.flatnonzero(known & ~np.isin(said, TRUE + FALSE))
    if len(odd):
        raise InputError(
            f"Column {name!r} of {table.name} must say whether an item was drawn at random: true or false. Got "
            f"{shorten(str(said[odd[0]]))} at {table.locate(int(odd[0]))} instead.",
            "Correct it, or give the column another name.",
        )
    return np.asarray(known & np.isin(said, TRUE))


def _read_inclusion(table: Table, used: Truths) -> Floats:
    """The probability with which each row in use was drawn: NaN if there is no such column."""
    name = table.find("inclusion")
    if name is None:
        return np.full(int(used.sum()), np.nan)
    chance = read_figures(table, name)
    odd = np.flatnonzero(used & ~np.isnan(chance) & ~((chance > 0) & (chance <= 1)))
    if len(odd):
        raise InputError(
            f"Column {name!r} of {table.name} must hold the probability with which an item was drawn, > 0 and at most "
            f"1. Got {chance[odd[0]]:g} at {table.locate(int(odd[0]))} instead.",
            "Correct it, or give the column another name.",
        )
    return chance[used]


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
    on_scale = np.zeros(len(distinct), bool) if answers.is_ordered else None
    code = find_classes(to_column(distinct), answers.classes, answers.normalised, on_scale)
    return list(distinct[code < 0].tolist())
