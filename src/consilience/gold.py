"""Gold answers: labels that are known, matched to the items."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataWarning, InputError, listing, shorten
from .formats.frames import Table, is_table, open_frame, open_series
from .responses import Responses
from .vocabulary import Column, Values, find_missing, lookup, to_column, to_values


def match_gold(gold: Any, responses: Responses, classes: Values) -> NDArray[np.int32] | None:
    """Return the known class of each item as an index into `classes`, -1 where it is not known.

    Parameters
    ----------
    gold : dict, Series, table or None
        {item: label} or {(sequence, position): label}; a pandas Series with that index; or a table with columns item
        (or sequence and position) and label, found by the same aliases as answers. Missing labels are not known.
    responses : Responses
        Whose items they are.
    classes : ndarray
        What a label may be.
    """
    if gold is None:
        return None
    keys, labels, name = _read(gold, responses)
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
            f"{name} has {int(unknown.sum()):,} label(s) that are not among the classes {listing(classes.tolist())}: "
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
            f"{name} gives {len(clash):,} item(s) more than one label, such as "
            f"{listing(responses.items[item[clash[:1]]].tolist())}. Keep one label per item."
        )
    return classes_of_items


def _read(gold: Any, responses: Responses) -> tuple[list[Column], Column, str]:
    """Return the key columns, the label column, and words for what was given."""
    name = "gold"
    paired = responses.sequences is not None
    if isinstance(gold, Table):
        return _read_table(gold, paired)
    if isinstance(gold, Mapping) and not _is_columns(gold, paired):
        return _split(list(gold), paired), to_column(list(gold.values()), "gold"), name
    series = open_series(gold)
    if series is not None:
        index, labels = series
        return [index] if not paired else _split(to_values(index).tolist(), paired), labels, name
    if not is_table(gold):
        raise InputError(
            f"gold must be a dict such as {{item: label}}, a Series, or a table with columns item and label. "
            f"Got {shorten(gold)} instead."
        )
    return _read_table(open_frame(gold, name, nameable=False), paired)


def _read_table(table: Table, paired: bool) -> tuple[list[Column], Column, str]:
    remedy = "Say which item each gold label belongs to."
    keys = [table.values(table.need(role, None), remedy) for role in _roles(paired)[:-1]]
    return keys, table.read(table.need("label", None)), table.name


def _is_columns(gold: Mapping[Any, Any], paired: bool) -> bool:
    """Tell a dict of columns from a dict of items."""
    table = Table(list(gold), gold.__getitem__, 0, "", "", str)
    names = [table.find(role, None) for role in _roles(paired)]
    columns = [gold[name] for name in names if name is not None]
    return len(columns) == len(names) and all(map(_is_column, columns))


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, Enum))


def _roles(paired: bool) -> tuple[str, ...]:
    return ("sequence", "position", "label") if paired else ("item", "label")


def _split(keys: list[Any], paired: bool) -> list[Column]:
    if not paired:
        return [to_column(keys)]
    if any(not isinstance(key, tuple) or len(key) != 2 for key in keys):
        raise InputError("gold of sequences must be keyed by (sequence, position), such as {('s1', 0): 'B'}.")
    return [to_column([key[0] for key in keys]), to_column([key[1] for key in keys])]
