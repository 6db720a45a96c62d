"""Gold answers: labels that are known, matched to the items."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, InputError, listing, plural, shorten
from .frames import Table, is_table, open_frame, open_series
from .responses import Responses
from .vocabulary import Values, find_missing, lookup, to_values

KEY_REMEDY = "Say which item each label belongs to."


def match_gold(gold: Any, responses: Responses, classes: Values) -> NDArray[np.int32] | None:
    """Return the known class of each item as an index into `classes`, -1 where it is not known.

    Parameters
    ----------
    gold : dict, Series, table or None
        {item: label} or {(sequence, position): label}; a pandas Series with that index; or a table with columns
        item (or sequence and position) and label, found by the same aliases as answers; the label may also be called
        gold or truth. Missing labels are not known.
    responses : Responses
        Whose items they are.
    classes : ndarray
        What a label may be.
    """
    if gold is None:
        return None
    paired = responses.sequences is not None
    keyed = _open_keyed(gold, paired)
    table = open_gold(gold, paired) if keyed is None else keyed
    name, labels = table.name, table.read(table.need("known label", None))
    names = [table.need(role, None) for role in _roles(paired)[:-1]]
    # A missing key of a dict or a Series is no item of ours, like any stranger; a missing cell of a table is a slip.
    keys = [table.values(key, KEY_REMEDY) if keyed is None else table.read(key) for key in names]
    known = np.ones(len(labels), bool)
    known[find_missing(labels)] = False
    if not known.any():
        raise InputError(f"{name} holds no label.")
    item = responses.find_items(keys)
    code = lookup(classes, labels)
    unknown = known & (code < 0)
    if unknown.any():
        found = dict.fromkeys(to_values(labels)[unknown].tolist())
        raise InputError(
            f"{name} has {plural(int(unknown.sum()), 'label')} not among the classes {listing(classes.tolist())}: "
            f"{listing(found)}. Correct them, or name all classes with classes=."
        )
    used = known & (item >= 0)
    if not used.any():
        first = np.flatnonzero(known)[:3]
        columns = [to_values(key)[first].tolist() for key in keys]
        example = listing(columns[0] if len(columns) == 1 else zip(*columns, strict=True))
        raise InputError(
            f"None of the {int(known.sum()):,} gold items occurs in the answers (gold has {example}; the answers have "
            f"{listing(responses.items[:3].tolist())}). Check that both use the same ids."
        )
    absent = int((known & (item < 0)).sum())
    if absent:
        warnings.warn(
            f"{absent:,} of {int(known.sum()):,} gold items do not occur in the answers and were left out.",
            DataWarning,
            stacklevel=3,
        )
    classes_of_items = np.full(responses.n_items, -1, np.int32)
    classes_of_items[item[used]] = code[used]
    if (classes_of_items[item[used]] != code[used]).any():
        clash = np.flatnonzero(used)[classes_of_items[item[used]] != code[used]]
        raise InputError(
            f"{name} gives {plural(len(clash), 'item')} more than one label, such as "
            f"{listing(responses.items[item[clash[:1]]].tolist())}. Keep one label per item."
        )
    return classes_of_items


def open_gold(gold: Any, paired: bool) -> Table:
    """Return known labels, in any form that `match_gold` takes, as a table with columns item and label.

    With `paired` the items are positions of sequences, in two columns.
    """
    keyed = _open_keyed(gold, paired)
    if keyed is not None:
        return keyed
    if not is_table(gold):
        raise InputError(
            f"gold must be a dict such as {{item: label}}, a Series, or a table or file with columns item and label. "
            f"Got {shorten(gold)} instead."
        )
    return open_frame(gold, "gold", nameable=False)


def _open_keyed(gold: Any, paired: bool) -> Table | None:
    """Return a dict of items or a Series as a table, and None for anything else."""
    if isinstance(gold, Mapping):
        keyed = not _is_columns(gold, paired)
        return _build_table(_split(list(gold), paired), list(gold.values()), paired) if keyed else None
    series = open_series(gold)
    if series is None:
        return None
    index, labels = series
    return _build_table(_split(to_values(index).tolist(), paired) if paired else [index], labels, paired)


def _build_table(keys: list[Any], labels: Any, paired: bool) -> Table:
    return open_frame(dict(zip(_roles(paired), (*keys, labels), strict=True)), "gold", nameable=False)


def _is_columns(gold: Mapping[Any, Any], paired: bool) -> bool:
    """Tell a dict of columns from a dict of items."""
    table = Table(list(gold), gold.__getitem__, 0, "", "", str)
    names = [table.find(role, None) for role in (*_roles(paired)[:-1], "known label")]
    columns = [gold[name] for name in names if name is not None]
    return len(columns) == len(names) and all(map(_is_column, columns))


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, Enum))


def _roles(paired: bool) -> tuple[str, ...]:
    return ("sequence", "position", "label") if paired else ("item", "label")


def _split(keys: list[Any], paired: bool) -> list[Any]:
    if not paired:
        return [keys]
    if any(not isinstance(key, tuple) or len(key) != 2 for key in keys):
        raise InputError("gold of sequences must be keyed by (sequence, position), such as {('s1', 0): 'B'}.")
    return [[key[0] for key in keys], [key[1] for key in keys]]
