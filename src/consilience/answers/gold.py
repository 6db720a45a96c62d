"""Gold answers: labels that are known, in a table of their own or a column beside the answers, matched to the items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, Python, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Truths
from .answers import Answers
from .classes import normalise_column, to_numbers
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
    objects,
    plain_labels,
    to_column,
    to_values,
    tuples_to_ids,
    whole_numbers,
)
from .items import list_keys
from .tables import Table, is_table, key_roles, open_frame, open_series

KEY_REMEDY = "Say which item each label belongs to."
EMPTY_REMEDY = (
    "The answers have an empty id, which a text file cannot hold: give its label in a Parquet file, or in Python as "
    "{'': label}."
)
# How a column says true or false. In a file 1 may be written 1.0, as where entries are missing, and nothing is false.
TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": False}
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
    """

    codes: Codes
    judging: Truths

    def about(self, items: Indices) -> Gold:
        """Return the known labels of some of the items."""
        return Gold(self.codes[items], self.judging[items])


def match_gold(gold: object, responses: Answers, classes: Values) -> Gold | None:
    """Return the known classes of the items, as indices into `classes`.

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
    if isinstance(gold, (list, tuple)) and len(gold):
        return _join([_match_one(each, responses, classes) for each in gold], responses, classes)
    return _match_one(gold, responses, classes)


def _join(rounds: list[Gold], responses: Answers, classes: Values) -> Gold:
    """Return the known labels of several tables as one. An item was drawn at random if any table says so."""
    codes, judging = rounds[0].codes.copy(), rounds[0].judging.copy()
    for each in rounds[1:]:
        clash = np.flatnonzero((codes >= 0) & (each.codes >= 0) & (codes != each.codes))
        if len(clash):
            raise _clash_error("gold", clash, codes[clash[0]], each.codes[clash[0]], responses, classes)
        codes = np.where(codes < 0, each.codes, codes)
        judging |= each.judging
    return Gold(codes, judging)


def _clash_error(name: str, items: Indices, code: int, other: int, responses: Answers, classes: Values) -> InputError:
    """Return the error that items have two labels; `code` and `other` are those of the first of them."""
    item = listing(responses.items[items[:1]].tolist())
    labels = " and ".join(shorten(label) for label in classes[[code, other]].tolist())
    return InputError(
        f"{name} gives {plural(len(items), 'item')} more than one label, such as {item}: {labels}.",
        "Keep one label per item.",
    )


def _match_one(gold: object, responses: Answers, classes: Values) -> Gold:
    """Return the known classes of the items from one table; see `match_gold`."""
    paired = responses.sequences is not None
    parts = [] if paired else name_composite(responses.columns)
    keyed = None if parts and _holds_columns(gold, parts) else _open_keyed(gold, paired, bool(parts))
    if keyed is None:
        table = open_frame(gold, "gold") if parts and _holds_columns(gold, parts) else open_gold(gold, paired)
    else:
        table = keyed
    # What the columns of items are called in the answers, they may be called here.
    table = table.prefer(responses.columns)
    labels = table.read(find_label(table))
    names = table.need_keys(paired)
    # A missing key of a dict or a Series is an item without answers, like any other; in a table it is a slip.
    remedies = (KEY_REMEDY, *([EMPTY_REMEDY] if find_empty(_ids(responses)).any() else []))
    keys = [table.values(name, *remedies) if keyed is None else table.read(name) for name in names]
    if keyed is None:
        keys[0] = _name_by_text(keys[0], _ids(responses))
    _check_origin(table)
    known = is_present(labels)
    if not known.any():
        raise InputError(f"{table.name} holds no label.")
    code = find_classes(labels, known, classes, responses.normalised)
    between = np.zeros(len(labels), bool)
    if responses.is_ordered:
        exact, code = code, find_nearest(labels, known, code, classes)
        between = exact != code
    _check_labels(table.name, labels, known & (code < 0), classes)
    item = responses.find_items(keys)
    _check_items(table.name, keys, known, item, responses)
    used = known & (item >= 0)
    tell_between(int((between & used).sum()))
    if keyed is None:
        _check_alike(table.name, item[used], responses)
    drawn = np.ones(len(labels), bool) if keyed is not None else _read_random(table, known)
    item, code, drawn = item[used], code[used], drawn[used]
    classes_of_items = np.full(responses.n_items, -1, np.int32)
    classes_of_items[item] = code
    clash = np.unique(item[classes_of_items[item] != code])
    if len(clash):
        codes = code[item == clash[0]]
        raise _clash_error(table.name, clash, codes[0], codes[codes != codes[0]][0], responses, classes)
    judging = np.zeros(responses.n_items, bool)
    judging[item[drawn]] = True
    return Gold(classes_of_items, judging)


def find_label(table: Table, parameter: str | None = None) -> str:
    """Return the column of known labels. Beside answers of workers it has a name of its own, such as gold or truth."""
    if table.find("worker") is not None and table.preferred.get("known label") is None:
        name = table.find("gold")
        if name is not None:
            return name
    return table.need("known label", parameter=parameter)


def find_classes(labels: Column, known: Truths, classes: Values, normalised: bool) -> Indices:
    """Return the class of each label that is known, or -1; normalised labels are the same in any spelling."""
    if normalised:
        labels, classes = normalise_column(labels), to_values(normalise_column(to_column(classes)))
    code = lookup(classes, labels)
    if (known & (code < 0)).any():
        # Text may be spelled in another way than the classes: "True" where they are "true" and "false".
        code = np.where(code < 0, lookup(classes, plain_labels(labels)), code)
    if (known & (code < 0)).any():
        code = np.where(code < 0, lookup(classes, whole_numbers(labels)), code)
    return code


def find_nearest(labels: Column, known: Truths, code: Indices, classes: Values) -> Indices:
    """Return the class of each label, and of a number between two levels of a scale the nearest; halfway the lower."""
    levels, rows = to_numbers(classes), np.flatnonzero(known & (code < 0))
    if levels is None or not len(rows):
        return code
    code = code.copy()
    for row, label in zip(rows.tolist(), to_values(labels)[rows].tolist(), strict=True):
        value = to_numbers(objects([label]))
        if value is not None and levels.min() < value[0] < levels.max():
            distance = np.abs(levels - value)
            code[row] = min(np.flatnonzero(distance == distance.min()), key=levels.__getitem__)
    return code


def tell_between(n_labels: int) -> None:
    """Warn of known labels between the levels of a scale."""
    if n_labels:
        lie, count = ("lies", "counts") if n_labels == 1 else ("lie", "count")
        known = plural(n_labels, "known label")
        warn_of(f"{known} {lie} between levels and {count} as the nearest, the lower of two.")


def _read_random(table: Table, known: Truths) -> Truths:
    """Return which rows with a label are said to be drawn at random: all of them if there is no such column."""
    name = table.find("random")
    if name is None:
        return known
    values = to_values(plain_labels(table.read(name)))
    drawn = known.copy()
    for row in np.flatnonzero(known).tolist():
        value = values[row]
        said = False if is_missing(value) else TRUTH.get(str(value).lower())
        if said is None:
            raise InputError(
                f"Column {name!r} of {table.name} must say whether an item was drawn at random, by true or false. Got "
                f"{shorten(value)} at {table.locate(row)} instead.",
                "Correct it, or give the column another name.",
            )
        drawn[row] = said
    return drawn


def _check_origin(table: Table) -> None:
    """Warn if known labels seem to be the result of a fit, by the columns that `to_frame` returns."""
    shares = [name for name in table.names if isinstance(name, str) and name.startswith("p(") and name.endswith(")")]
    if "confidence" in table.names and shares:
        warn_of(
            f"{table.name} looks like labels that consilience fused: it has the columns 'confidence' and "
            f"{listing(shares[:1])}.",
            "Known labels should come from people, or another source that does not depend on these answers.",
            keyword="gold",
        )


def _check_labels(name: str, labels: Column, unknown: Truths, classes: Values) -> None:
    """Raise an error if some labels are no classes."""
    if unknown.any():
        found = dict.fromkeys(to_values(labels)[unknown].tolist())
        raise InputError(
            f"{name} has {plural(int(unknown.sum()), 'label')} not among the classes {listing(classes.tolist())}: "
            f"{listing(found)}.",
            "Correct them.",
            Sentence("Or name all classes with {classes}."),
        )


def _check_items(name: str, keys: list[Column], known: Truths, item: Indices, responses: Answers) -> None:
    """Raise an error if there are no answers about any of the items, and warn if there are none about some."""
    n_known, n_absent = int(known.sum()), int((known & (item < 0)).sum())
    if n_absent == n_known:
        raise InputError(
            f"None of the {n_known:,} gold items occurs in the answers ({name} has "
            f"{list_keys(keys, np.flatnonzero(known)[:3])}; the answers have "
            f"{listing(responses.items[:3].tolist())}).",
            "Check that both use the same ids.",
        )
    if n_absent:
        warn_of(f"{n_absent:,} of {n_known:,} gold items do not occur in the answers and were left out.")


def _ids(responses: Answers) -> Values:
    """Return the ids of the items, or of the sequences that they belong to."""
    return responses.items if responses.sequences is None else responses.sequences.ids


def find_empty(ids: Values) -> Truths:
    """Tell which ids are empty text.

    >>> find_empty(np.array(["", "a"], dtype=object)), find_empty(np.array([1, 2]))
    (array([ True, False]), array([False, False]))
    """
    return np.asarray(ids == "") if ids.dtype.kind in "OUT" else np.zeros(len(ids), bool)


def _are_mixed(ids: Values) -> bool:
    """Tell whether ids are of several types."""
    return ids.dtype == object and len(set(map(type, ids.tolist()))) > 1


def _name_by_text(column: Column, ids: Values) -> Column:
    """Return ids of a table, whose type is one for all, as those ids of several types that have the same text."""
    if not _are_mixed(ids):
        return column
    named = {str(each): each for each in ids.tolist()}
    return to_column(np.array([named.get(str(each), each) for each in to_values(column).tolist()], dtype=object))


def find_alike(ids: Values) -> Truths:
    """Tell which ids have the text of another one, such as 1 and "1".

    >>> find_alike(np.array([1, "1", 2], dtype=object))
    array([ True,  True, False])
    """
    if not _are_mixed(ids):
        return np.zeros(len(ids), bool)
    texts = [str(each) for each in ids.tolist()]
    counts = Counter(texts)
    return np.array([counts[text] > 1 for text in texts])


def _check_alike(name: str, items: Indices, responses: Answers) -> None:
    """Raise an error if a table names items whose ids are the same text as others."""
    ids = _ids(responses)
    owner = items if responses.sequences is None else responses.sequences.of_items()[items]
    found = owner[find_alike(ids)[owner]]
    if len(found):
        same = [each for each in ids.tolist() if str(each) == str(ids[[found[0]]].tolist()[0])]
        raise InputError(
            f"{name} has a label of {shorten(str(same[0]))}, and the answers have {listing(same)}: a table does not "
            "tell which is meant.",
            "Give known labels in Python, as a dict. Or give each item its own id.",
        )


def open_gold(gold: object, paired: bool) -> Table:
    """Return known labels, in any form that `match_gold` takes, as a table with columns item and label.

    With `paired` the items are positions of sequences, in two columns.
    """
    keyed = _open_keyed(gold, paired)
    if keyed is not None:
        return keyed
    if not is_table(gold):
        raise InputError(
            f"gold must be a dict such as {{item: label}}, a Series, or a table or file with columns item and label. "
            f"Got {shorten(gold)} instead.",
            keyword="gold",
        )
    return open_frame(gold, "gold")


def _holds_columns(gold: object, names: list[str]) -> bool:
    """Tell whether known labels are a dict of columns that has these among them."""
    return isinstance(gold, Mapping) and all(name in gold and _is_column(gold[name]) for name in names)


def _open_keyed(gold: object, paired: bool, composite: bool = False) -> Table | None:
    """Return a dict of items or a Series as a table, and None for anything else.

    The keys of `composite` items may be tuples of what they consist of.
    """
    if isinstance(gold, Mapping):
        if _is_columns(gold, paired):
            return None
        keys: Any = list(gold)
        labels: Any = list(gold.values())
    else:
        series = open_series(gold)
        if series is None:
            return None
        keys, labels = to_values(series[0]).tolist() if paired else series[0], series[1]
    if not paired:
        if composite:
            keys = tuples_to_ids(keys if isinstance(keys, list) else to_values(keys).tolist())
        return open_frame({"item": keys, "label": labels}, "gold")
    if any(not isinstance(key, tuple) or len(key) != 2 for key in keys):
        raise InputError(
            "gold of sequences must be keyed by (sequence, position), such as {('s1', 0): 'B'}.", keyword="gold"
        )
    columns = {"sequence": [key[0] for key in keys], "position": [key[1] for key in keys], "label": labels}
    return open_frame(columns, "gold")


def _is_columns(gold: Mapping[Any, Any], paired: bool) -> bool:
    """Tell a dict of columns from a dict of items."""
    table = Table(list(gold), gold.__getitem__, 0, "", "", str)
    names = [table.find(role) for role in (*key_roles(paired), "known label")]
    columns = [gold[name] for name in names if name is not None]
    return len(columns) == len(names) and all(map(_is_column, columns))


def _is_column(values: object) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, Enum))


class Known(NamedTuple):
    """What a column says about items: their numbers, the label of each, and the column.

    `clash` counts items about which it says two things, and `place` is where it first does.
    """

    item: Indices
    label: Column
    name: str
    clash: int = 0
    place: str = ""


def find_gold(table: Table, gold: str | bool | None) -> str | None:
    """Return the column of known labels: the one named, or the one with a usual name; None with ``gold=False``."""
    if gold is False or gold is None:
        return None if gold is False else table.find("gold")
    if not isinstance(gold, str):
        raise parameter_error("gold", "Answers.from_frame", "the name of a column, or False", gold)
    return table.find("gold", gold)


def match_known(table: Table, name: str, item: Values) -> Known | None:
    """Return what a column says about the items, None if it is empty.

    Parameters
    ----------
    table : Table
        Of answers.
    name : str
        The column of known labels; an empty cell says nothing.
    item : array of int
        The item of each row.
    """
    column = table.read(name)
    rows = find_present(column)
    if not len(rows):
        return None
    column = column.take(rows) if isinstance(column, np.ndarray) else decode_categories(column.take(rows))
    codes, _ = encode_in_order_of_appearance(column)
    owner = item[rows]
    items, first = np.unique(owner, return_index=True)
    clash = np.flatnonzero(codes != codes[first][np.searchsorted(items, owner)])
    known = Known(items.astype(np.int64), column.take(first), name)
    if len(clash):
        known = known._replace(clash=len(np.unique(owner[clash])), place=table.locate(int(rows[clash[0]])))
    return known


def add_gold(answers: Answers, known: Known, source: str, named: bool) -> Answers:
    """Return answers with the known labels.

    Two labels of one item are an error; unless the column was found by its name, and holds something else than classes.
    """
    if known.clash and not named and len(find_strange(answers, known.label)):
        return answers
    if known.clash:
        raise InputError(
            f"Column {known.name!r} of {source} gives {plural(known.clash, 'item')} more than one known label; the "
            f"first is at {known.place}.",
            "Correct it.",
            LEAVE_OUT,
        )
    labels = known.label.tolist() if isinstance(known.label, np.ndarray) else known.label.to_pylist()
    gold = dict(zip(answers.items[known.item].tolist(), labels, strict=True))
    return answers.read_from(gold=gold, columns={**answers.columns, "gold": known.name})


def find_strange(answers: Answers, labels: Column) -> list[Any]:
    """Return the different ones of some labels that are no classes. Truth values are none among numbers."""
    _, distinct = encode_in_order_of_appearance(labels)
    if distinct.dtype == bool and answers.classes.dtype.kind in "iuf":
        return list(distinct.tolist())
    column, known = to_column(distinct), np.ones(len(distinct), bool)
    code = find_classes(column, known, answers.classes, answers.normalised)
    if answers.is_ordered:
        code = find_nearest(column, known, code, answers.classes)
    return list(distinct[code < 0].tolist())
