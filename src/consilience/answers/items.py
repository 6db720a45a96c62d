"""Which items there are, in which order they stand, when answers were given, and what is known beside the answers.

Items have ids, or a sequence and a position.

When answers were given is a column of numbers, dates or times, or of text as ISO 8601 writes it, read as numbers that
can be sorted. Dates and times become seconds since 1970, those without a zone as if they were UTC. A missing value
becomes NaN: it is not known when this answer was given.

Gold answers are labels that are known, in a table of their own or a column beside the answers.

Beside answers, tables may hold features, which are numbers that describe what an item is, and priors of items, which
are probabilities of the classes. They are matched to the items by id.

Let g_nk be the probability of class k for item n before any answer, from a classifier or from whoever knows the item,
and p_k the share of the class over all items. By Bayes' rule, what is known of item n multiplies the evidence by

    g_nk / p_k   prop. to   P(what is known of n | class k)

while each structure keeps its own prior over the labels:

- independent items have q_nk prop. to pi_k (g_nk / p_k) b_nk, which is g_nk b_nk if the class prior pi is p;
- a chain has P(y) prod_n (g_n(y_n) / p(y_n)) b_n(y_n), with P(y) the product of its start and steps, so that the share
  of a class is not counted once by the chain and once more by g;
- a field has the same product, with its couplings in place of steps.

So priors of items say how items differ. How frequent the classes are is up to the class prior, which is learned or
given. For independent items the objective stays a likelihood: that of the answers and of what else is known.

At a fit p is the mean over all items. Items without a prior count with their vote shares, or what else is known of
them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, Python, Sentence, listing, plural, shorten, warn_of
from ..kernels import ROUNDING, Floats, Integers, Truths, freeze
from ..options import to_floats
from .classes import find_by_value, normalise_column, normalise_label, to_number, to_numbers
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    add_values,
    decode_categories,
    encode_in_order_of_appearance,
    find_missing,
    find_present,
    is_missing,
    is_present,
    is_text,
    join_columns,
    lookup,
    name_composite,
    order_by,
    plain_labels,
    spell_surrogates,
    to_column,
    to_values,
    tuples_to_ids,
)
from .tables import WHOLE, Table, is_table, key_roles, open_frame, open_series, read_column, read_figures

if TYPE_CHECKING:
    from .answers import Answers

NAMED = "the named items"
KEY_REMEDY = "Say which item each row belongs to."
# Smaller probabilities than this count as this: they can still be multiplied. Zero stays zero.
LEAST_PRIOR = 1e-100
# The format of a table that was a dict of items or a Series, whose keys are whatever they are.
KEYED = "keyed"
# How a column says true and false. In a file 1 may be written 1.0, as where entries are missing, and nothing is false.
TRUE, FALSE = ("true", "1", "1.0"), ("false", "0", "0.0", "", "none", "nan", "nat", "<na>")
# How to do without the column, in Python and on the command line.
LEAVE_OUT = Sentence("To leave it out, use {ignore_gold}.", ignore_gold=Python("gold=False"))


@dataclass(frozen=True, eq=False)
class Sequences:
    """Where each sequence begins among the items, what it is called, and the position of each item in it."""

    ids: Values
    offsets: Indices
    position: Values

    def __len__(self) -> int:
        return len(self.ids)

    def of_items(self) -> Indices:
        """The sequence that each item belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def count_items(keys: Values | Sequences) -> int:
    """The number of items that have these keys."""
    return len(keys.position) if isinstance(keys, Sequences) else len(keys)


def key_of(keys: Values | Sequences, item: int) -> object:
    """What identifies an item, as Python writes it: 7, not np.int64(7)."""
    if not isinstance(keys, Sequences):
        return keys[[item]].tolist()[0]
    owner = int(np.searchsorted(keys.offsets, item, side="right")) - 1
    return keys.ids[[owner]].tolist()[0], keys.position[[item]].tolist()[0]


def encode_items(columns: list[Column], named: list[Column] | None, source: str) -> tuple[Integers, Values | Sequences]:
    """The index of each row's item, and the keys of all items.

    Sequences stand as they appear, and positions in order within.

    Parameters
    ----------
    columns : list of Column
        What identifies the item of each row: its id, or its sequence and position.
    named : list of Column or None
        The same for items that exist whether or not they have a row. They come first, in this order.
    source : str
        What messages call the table of rows.
    """
    owner, ids = encode_in_order_of_appearance(columns[0])
    n_rows = len(owner)
    if named is not None and (len(columns) == 1 or len(named[0])):
        # The named ones first, then the others.
        codes, distinct = encode_in_order_of_appearance(named[0])
        index = lookup(ids, to_column(distinct))
        new = index < 0
        index[new] = len(ids) + np.arange(new.sum())
        ids = to_values(join_columns(to_column(ids), to_column(distinct[new])))
        first = np.unique(np.concatenate([index, np.arange(len(ids))]), return_index=True)[1]
        order = np.argsort(first)
        moved = np.empty(len(order), np.int32)
        moved[order] = np.arange(len(order), dtype=np.int32)
        ids, owner = ids[order], np.concatenate([moved[owner], moved[index[codes]]])
    if len(columns) == 1:
        return owner[:n_rows], ids
    place = read_positions(columns[1], source)
    if len(owner) > n_rows and named is not None:
        place = to_values(join_columns(to_column(place), to_column(read_positions(named[1], NAMED))))
    places, rank = _rank_positions(place, "Positions must have an order, and these cannot be compared")
    # Two counting sorts, the lesser key first: linear in the answers.
    by_place, _ = order_by(rank, len(places))
    by_owner, _ = order_by(owner[by_place], len(ids))
    order = by_place[by_owner]
    begins = np.append(True, (np.diff(owner[order]) != 0) | (np.diff(rank[order]) != 0))[: len(order)]
    item, first = np.empty(len(order), np.int64), order[begins]
    item[order] = np.cumsum(begins) - 1
    offsets = np.searchsorted(owner[first], np.arange(len(ids) + 1))
    return item[:n_rows], Sequences(ids, offsets.astype(np.int64), place[first])


def _rank_positions(positions: Values, problem: str) -> tuple[Values, Indices]:
    """The distinct positions, sorted, and the rank of each."""
    try:
        return np.unique(positions, return_inverse=True)
    except TypeError as error:
        raise InputError(f"{problem}: {error}.", "Write them in the same way.") from error


def read_positions(column: Column, source: str) -> Values:
    """Positions as values with an order: numbers and times as they are, text only if it reads as numbers."""
    values = to_values(column)
    entries = values.tolist()
    # Times with time zones are Python's own.
    if values.dtype.kind not in "OS" or all(isinstance(each, (datetime.date, datetime.time)) for each in entries):
        return values
    try:
        numbers = to_floats(entries)
        if numbers.ndim > 1 or np.isnan(numbers).any():
            raise ValueError(f"got {listing(entries)}")
        is_whole = all(isinstance(entry, str) and entry.strip().lstrip("+-").isdecimal() for entry in entries)
        return np.array(entries, dtype=np.int64) if is_whole else numbers
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"Positions of {source} must be numbers or times, so that they have an order: {error}."
        ) from error


def read_keys(items: Any, n_columns: int, preferred: Mapping[str, str] | None = None) -> list[Column]:
    """The keys of named items in columns: one of ids, or two of sequences and positions.

    Parameters
    ----------
    items : table, array of ids, or (sequence, position) pairs
        What the parameter of that name was given.
    n_columns : {1, 2}
        How many columns identify an item.
    preferred : mapping, optional
        What the columns of items are called in the answers; they may be called so in a table of items.
    """
    remedy = "Give the ids of items that exist."
    if isinstance(items, (str, bytes)):
        raise InputError(
            Sentence("{items} is text, and not a table or a sequence of ids.", items=items),
            "Read the file first, or let consilience.read_answers or consilience.fuse read it.",
            keyword="items",
        )
    if is_table(items):
        table = open_frame(items, "the table of items").prefer(preferred or {})
        return [table.values(name, remedy) for name in table.need_keys(n_columns == 2)]
    if n_columns == 1:
        columns = [read_column(items, "items")]
    else:
        pairs: list[Any] = list(items) if isinstance(items, Iterable) else [None]
        if any(not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2 for pair in pairs):
            raise InputError(
                Sentence("{items} of sequences must be a table or (sequence, position) pairs."), keyword="items"
            )
        columns = [to_column([pair[i] for pair in pairs], "items") for i in range(2)]
    if any(len(find_missing(column)) for column in columns):
        raise InputError(Sentence("{items} has missing entries."), remedy, keyword="items")
    return columns


def join_keys(old: Values | Sequences, new: Values | Sequences) -> tuple[Values | Sequences, Indices, Indices]:
    """What identifies all items, and where the old and the new ones are among them; sequences may grow at any place."""
    if not (isinstance(old, Sequences) and isinstance(new, Sequences)):
        known: Any = old
        keys, index = add_values(known, new)  # type: ignore[arg-type]
        return keys, np.arange(len(known)), index
    ids, owner = add_values(old.ids, new.ids)
    position = to_values(join_columns(to_column(old.position), to_column(new.position)))
    places, rank = _rank_positions(position, "Old and new positions cannot be compared")
    code = np.concatenate([old.of_items(), owner[new.of_items()]]) * len(places) + rank
    items, first, place = np.unique(code, return_index=True, return_inverse=True)
    offsets = np.searchsorted(items, np.arange(len(ids) + 1) * len(places)).astype(np.int64)
    n_old = len(old.position)
    return Sequences(ids, offsets, position[first]), place[:n_old], place[n_old:]


def read_times(table: Table, name: str) -> Floats:
    """The column that says when answers were given, as numbers: times in seconds, NaN where it is not known."""
    column = table.read(name)
    if isinstance(column, np.ndarray):  # times with a zone, or mixed types
        column = pa.array([None if is_missing(entry) else str(entry) for entry in column.tolist()], pa.string())
    column = decode_categories(column)
    if is_text(column.type):
        texts = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    seconds = _to_seconds(column)
    if seconds is None:
        rows = find_present(column).tolist()
        row = next((row for row in rows if _to_seconds(column.slice(row, 1)) is None), rows[0])
        raise InputError(
            f"Column {name!r} of {table.name} must say when answers were given, all in one way. Got "
            f"{shorten(column[row].as_py())} at {table.locate(row)}.",
            "Give numbers, a column of dates or times, or text as ISO 8601 writes it, such as 2024-05-17 or "
            "2024-05-17T09:30:00.",
            keyword="order",
        )
    order = np.array(seconds.to_numpy(zero_copy_only=False), np.float64)
    order[np.isinf(order)] = np.nan
    return order


def _to_seconds(column: pa.Array) -> pa.Array | None:
    """Numbers as they are, and dates and times as seconds since 1970; None for anything else."""
    kinds = pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")
    for kind in () if pa.types.is_boolean(column.type) else kinds:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            times = pc.cast(column, kind, safe=False)
            return times if kind == pa.float64() else pc.divide(pc.cast(pc.cast(times, pa.int64()), pa.float64()), 1e6)
    return None


# ----------------------------------------------------------------------------------------- what is known beside answers


def match_items(table: Table, r: Answers, rows: Truths | None = None) -> Indices:
    """The item that each row of a table is about, -1 where it is none; that all rows are about none is an error."""
    read = table.read if table.format == KEYED else lambda name: table.values(name, KEY_REMEDY)
    keys = [read(name) for name in table.need_keys(r.sequences is not None)]
    item = r.find_items(keys)
    wanted = np.arange(len(item)) if rows is None else np.flatnonzero(rows)
    if (item[wanted] < 0).all():
        columns = [to_values(key)[wanted[:3]].tolist() for key in keys]
        example = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        raise InputError(
            f"None of the {plural(len(wanted), 'item')} of {table.name} occurs in the answers ({table.name} has "
            f"{listing(example)}; the answers have {listing(r.items[:3].tolist())}).",
            "Check that both use the same ids.",
        )
    return item


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
            raise InputError(
                f"{table.name} has {plural(int(unknown.sum()), 'label')} not among the classes "
                f"{listing(classes.tolist())}: {listing(dict.fromkeys(to_values(column)[unknown].tolist()))}.",
                "Correct them.",
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


def open_gold(gold: object, paired: bool, parts: Sequence[str] = ()) -> Table:
    """Known labels, in any form that `match_gold` takes, as a table with columns item and label.

    With `paired` the items are positions of sequences, in two columns. Keys of items that several columns identify, its
    `parts`, may be tuples.
    """
    labels: Any
    series = None if isinstance(gold, Mapping) else open_series(gold)
    if isinstance(gold, Mapping):
        named = Table(list(gold), gold.__getitem__)
        roles = [named.find(role) for role in (*key_roles(paired), "known label")]
        if any(names and all(_is_column(gold.get(name)) for name in names) for names in (parts, roles)):
            return open_frame(gold, "gold")  # a dict of columns, and not one of items
        keys, labels = list[Any](gold), list[Any](gold.values())
    elif series is not None:
        keys, labels = to_values(series[0]).tolist(), series[1]
    elif is_table(gold):
        return open_frame(gold, "gold")
    else:
        raise InputError(
            "gold must be a dict such as {item: label}, a Series, or a table or file with columns item and label. Got "
            f"{shorten(gold)} instead.",
            keyword="gold",
        )
    if paired and not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        raise InputError(
            "gold of sequences must be keyed by (sequence, position), such as {('s1', 0): 'B'}.", keyword="gold"
        )
    ids = [[key[place] for key in keys] for place in (0, 1)] if paired else [tuples_to_ids(keys) if parts else keys]
    columns = dict(zip((*key_roles(paired), "label"), (*ids, labels), strict=True))
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


def match_column(given: object, r: Answers, keyword: str, usual: Sequence[str] = ()) -> tuple[Indices, Column]:
    """The row of each item in a column about the items, -1 for none, and the column.

    Parameters
    ----------
    given : dict, Series or table
        {item: value}, or a table with the items and one other column, or one with a `usual` name. Of several rows about
        one item the first counts. Where items are in sequences, whole sequences may be named.
    r : Answers
        Whose items they are.
    keyword : str
        The parameter that it is given as.
    usual : sequence of str
        Names by which the column is known where there are several.
    """
    paired, column = r.sequences is not None, "label"
    is_map = isinstance(given, Mapping) and all(
        isinstance(value, str) or not hasattr(value, "__len__") for value in given.values()
    )
    if is_map or open_series(given) is not None:
        whole = paired and isinstance(given, Mapping) and not any(isinstance(key, tuple) for key in given)
        table = open_gold(given, paired and not whole, [] if paired else name_composite(r.columns)).prefer(r.columns)
    else:
        table = open_item_table(given, keyword).prefer(r.columns)
        whole = paired and table.find_usual("position") is None
        keys = [table.need("sequence")] if whole else key_names(table, r)
        others = [name for name in table.names if name not in keys]
        if len(others) != 1:  # of several, one that is called so, as in files of MTurk and Toloka
            plain = {name: name.strip().lower().removeprefix("input.").removeprefix("input:") for name in others}
            others = [name for name in others if plain[name] in usual]
        if not others:
            raise InputError(
                f"{table.name} has the columns {listing(table.names)}: which of them is the {keyword} is not clear.",
                Sentence(f"Keep the items and one other column{f', or call it {usual[0]}' if usual else ''}."),
                keyword=keyword,
            )
        column = others[0]
    values = table.read(column)
    if whole and r.sequences is not None:
        name = next(each for each in ("item", "sequence") if table.find(each) is not None)
        owner = lookup(r.sequences.ids, table.read(table.need(name)))
        rows, row_of_owner = np.flatnonzero((owner >= 0) & is_present(values))[::-1], np.full(len(r.sequences), -1)
        row_of_owner[owner[rows]] = rows
        return row_of_owner[r.sequences.of_items()], values
    item = match_items(replace(table, name=f"the {keyword}"), r)
    item[find_missing(values)] = -1
    rows, row_of_item = np.flatnonzero(item >= 0)[::-1], np.full(r.n_items, -1)
    row_of_item[item[rows]] = rows  # from the last to the first
    return row_of_item, values


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


@dataclass(frozen=True, eq=False)
class Features:
    """Features of some items.

    Attributes
    ----------
    rows : array or sparse array (n, D)
        The numbers, in single or double precision.
    item : int64 array (n,)
        The item that each row is about, ascending.
    names : list of str or None
        The columns of the table that they came in.
    """

    rows: Any
    item: Indices
    names: list[str] | None = None

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    def select(self, names: list[str] | None, n_columns: int) -> Any:
        """The rows with the columns of a fit, which had these names; without names, with as many columns."""
        columns: Any = slice(None)
        problem = (
            "" if self.n_columns == n_columns else f"{plural(n_columns, 'feature')}, and these are {self.n_columns}"
        )
        if names is not None and self.names is not None:
            missing = [name for name in names if name not in self.names]
            problem = f"the features {listing(names)}, and these have no column {listing(missing)}" if missing else ""
            columns = [self.names.index(name) for name in names if name not in missing]
        if problem:
            raise InputError(f"The model was fitted with {problem}.", keyword="features")
        return self.rows[:, columns]


def open_item_table(given: Any, what: str) -> Table:
    """A table of any frame library as a `Table`; a pandas index that has a name is a column."""
    name = getattr(getattr(given, "index", None), "name", None)
    if name is not None and hasattr(given, "reset_index") and name not in given.columns:
        given = given.reset_index()
    return open_frame(given, what)


def match_rows(table: Table, r: Answers) -> tuple[Indices, Indices]:
    """The items that rows of a table are about, ascending, and which rows these are; other rows are left out."""
    table = table.prefer(r.columns)
    item = match_items(table, r)
    known = np.flatnonzero(item >= 0)
    rows = known[np.argsort(item[known], kind="stable")]
    repeated = np.unique(item[rows][1:][np.diff(item[rows]) == 0])
    if len(repeated):
        items = listing(r.items[repeated].tolist())
        problem = f"There are several rows of {table.name} for {plural(len(repeated), 'item')}: {items}."
        raise InputError(problem, "Keep one row for each of them.")
    return item[rows], rows


def key_names(table: Table, r: Answers) -> list[str]:
    """The columns of a table that say which item a row is about, and those that these are joined from."""
    names = table.prefer(r.columns).need_keys(r.sequences is not None)
    return [*names, *(part for role in WHOLE for part in name_composite(r.columns, role) if part in table.names)]


def list_items(given: Any, in_sequences: bool) -> Values | Sequences:
    """What identifies the items that features are about; without a table these are 0, 1, 2, ..."""
    if is_table(given):
        return encode_items(read_keys(open_item_table(given, "features"), 1 + in_sequences), None, "features")[1]
    if in_sequences:
        raise InputError(
            "features must say which sequence and position each row is about.",
            "Give a table with columns sequence and position.",
            keyword="features",
        )
    from .graph import to_rows

    return np.arange(to_rows(given).shape[0])


def match_features(given: object, r: Answers) -> Features:
    """Features of the items of the answers.

    Parameters
    ----------
    given : array, sparse matrix or table
        An array or a matrix has a row for each item, in the order of the items. A table has a column item (or sequence
        and position), by which rows are matched, and its other columns hold numbers, or lists of numbers of one length.
        Items that the table leaves out have no features.
    r : Answers
        Whose items they are.
    """
    from .graph import to_rows

    if not is_table(given):
        rows = to_rows(given)
        if rows.shape[0] != r.n_items:
            raise InputError(
                f"features must have a row for each of the {plural(r.n_items, 'item')}, in the order of the items, "
                f"which begin with {listing(r.items[:3].tolist())}. They have the shape {rows.shape}.",
                f"Or give a table with {'columns sequence and position' if r.sequences else 'a column item'}.",
                keyword="features",
            )
        return Features(rows, np.arange(r.n_items))
    table = open_item_table(given, "features")
    item, chosen = match_rows(table, r)
    keys, labels, parts = key_names(table, r), list[str](), list[Any]()
    for name in table.names:
        if name in keys:
            continue
        cells = table.cells(name)
        if isinstance(cells, pa.Array) and not pa.types.is_struct(cells.type):
            numbers = cells.flatten()
            width = len(numbers) // max(len(cells), 1)
            is_even = pc.all(pc.equal(pc.list_value_length(cells), width)).as_py()
            if width and is_even and not cells.null_count and not numbers.null_count:
                cells = numbers.to_numpy(zero_copy_only=False).reshape(-1, width)
            else:
                cells = cells.to_pylist()
        if cells is None or not all(isinstance(cell, (list, tuple, np.ndarray)) for cell in cells[:3]):
            parts.append(read_figures(table, name)[:, None])
            labels.append(str(name))
            continue
        try:
            parts.append(cells if isinstance(cells, np.ndarray) else np.stack(list(map(np.asarray, cells))))
        except ValueError as error:
            problem = f"Column {name!r} of features must hold lists of numbers of one length, and none is missing."
            raise InputError(problem, keyword="features") from error
        labels += [f"{name}[{number}]" for number in range(parts[-1].shape[1])]
    if not parts:
        problem = f"{table.name} has no columns but {listing(keys)}."
        raise InputError(problem, "Add columns of numbers.", keyword="features")
    left_out = np.setdiff1d(np.arange(r.n_items), item)
    if len(left_out):
        warn_of(
            f"{len(left_out):,} of {plural(r.n_items, 'item')} have no features: "
            f"{listing(r.items[left_out].tolist())}. Their labels come from the answers alone."
        )
    return Features(to_rows(np.hstack(parts)[chosen], labels, r.items[item]), item, labels)


class ItemPriors(NamedTuple):
    """Probabilities of the classes for some items."""

    item: Indices  # (n,): which items these are
    probabilities: Floats  # (n, K): rows sum to 1


def match_item_prior(given: object, r: Answers) -> ItemPriors:
    """The probabilities that a user has for items, matched to the items and classes of the answers.

    Parameters
    ----------
    given : array or table
        An array of shape (n_items, n_classes), in the order of the items and the classes; or a table with a column item
        (or sequence and position), and one for each class, called by the name of the class or p(<class>).
    r : Answers
        Whose items and classes they are.
    """
    if is_table(given):
        table = open_item_table(given, "item_prior")
        item, rows = match_rows(table, r)
        spell = normalise_label if r.normalised else str
        columns = {spell(str(name)): name for name in table.names}
        texts = [spell(spell_surrogates(str(value))) for value in r.classes.tolist()]
        names = [columns.get(f"p({text})", columns.get(text)) for text in texts]
        missing = r.classes[np.array([name is None for name in names]) & (r.label_of_class >= 0)].tolist()
        if missing:
            raise InputError(
                f"item_prior has no column for {listing(missing)}. It has {listing(map(str, table.names))}.",
                "Name each column by its class, or p(<class>).",
                keyword="item_prior",
            )
        nothing = np.zeros(table.n_rows)
        values = np.stack([nothing if name is None else read_figures(table, name) for name in names], axis=1)[rows]
    else:
        item = np.arange(r.n_items)
        try:
            values = to_floats(given)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (r.n_items, r.n_classes):
            raise InputError(
                f"item_prior must be numbers of the shape ({r.n_items}, {r.n_classes}): a row for each item, and a "
                f"column for each class, {listing(r.classes.tolist())}.",
                "To give it for some items only, use a table with a column item and one for each class.",
                keyword="item_prior",
            )
    silent = np.isnan(values).all(axis=1)
    item, values = item[~silent], values[~silent]
    bad = ~((values >= 0) & (values < np.inf)).all(axis=1) | ~(values > 0).any(axis=1)
    if bad.any() or not len(item):
        offenders = f"That is not so for {plural(int(bad.sum()), 'item')}: {listing(r.items[item[bad]].tolist())}."
        raise InputError(
            f"item_prior must hold probabilities: numbers >= 0, and not only zeros. {offenders if len(item) else ''}",
            "Leave out the rows of items that have none.",
            keyword="item_prior",
        )
    values = values / values.max(axis=1, keepdims=True)
    return ItemPriors(item, values / values.sum(axis=1, keepdims=True))


def class_shares(priors: ItemPriors, known: Floats) -> Floats:
    """p, the share of each class over all items; `known` (N, K) is what counts for items without a prior."""
    others = np.ones(len(known), bool)
    others[priors.item] = False
    return np.asarray((priors.probabilities.sum(axis=0) + known[others].sum(axis=0)) / len(known))


def vote_shares_by_item(r: Answers) -> Floats:
    """The share of each class in the votes for each item, (N, K); in all votes, for items that have none."""
    item, code, weight = r.item_of_answer(), r.class_of_label[r.label], r.weights()
    named = code >= 0
    shares = np.zeros((r.n_items, r.n_classes))
    np.add.at(shares, (item[named], code[named]), weight[named])
    total = shares.sum(axis=1)
    shares[total > 0] /= total[total > 0, None]
    shares[total == 0] = r.vote_shares()
    return shares


def add_priors(r: Answers, known: Floats | None, priors: ItemPriors, shares: Floats) -> Floats:
    """What is known of the items (N, K), in logarithms relative to class shares; it adds to what was known.

    Examples
    --------
    >>> import consilience as cs
    >>> r = cs.Answers.from_matrix([[0, 1], [1, 1]])
    >>> priors = ItemPriors(np.array([1]), np.array([[0.8, 0.2]]))
    >>> add_priors(r, None, priors, np.array([0.5, 0.5])).round(2)
    array([[ 0.  ,  0.  ],
           [ 0.47, -0.92]])
    """
    probabilities = priors.probabilities
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(probabilities > 0, np.maximum(probabilities, LEAST_PRIOR), 0.0))
    log_prior = np.zeros((r.n_items, r.n_classes)) if known is None else known.copy()
    # A class that no item can have stays impossible.
    logs -= np.log(np.maximum(shares, LEAST_PRIOR))
    log_prior[priors.item] += np.where(abs(logs) < ROUNDING, 0.0, logs)
    return freeze(log_prior)
