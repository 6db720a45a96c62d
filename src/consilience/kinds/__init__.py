"""What users bring, as answers and back: the register of kinds.

A kind has a file, and what users bring of it another: `span_kind.py` and `spans.py`, `tag_kind.py` and `tags.py`.
`masks.py` holds both. `base.py` says what every kind is, and holds that of tables of labels.

A new kind is a file in this folder and an entry in `KINDS`. Nothing is imported before something of a kind is brought.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..answers.answers import Answers
from ..answers.tables import Table
from ..errors import ParameterError, Sentence
from ..options import given
from .base import AnyKind, TableKind
from .tags import ONE_HOT, check_separator, find_sets_column

if TYPE_CHECKING:
    from .tags import Tags

# By the name of the type that users bring: its kind, as a class, or as the module and name of one. Numbers are brought
# as a table, which `models/opening.py` tells from one of labels.
KINDS: dict[str, str | type[AnyKind]] = {
    "Answers": TableKind,
    "Spans": "span_kind.SpansKind",
    "Masks": "masks.MasksKind",
    "Tags": "tag_kind.TagsKind",
    "Numbers": "numbers.NumbersKind",
}


def load_kind(entry: str) -> type[AnyKind]:
    """The kind that an entry of the register names."""
    module, name = entry.split(".")
    kind: type[AnyKind] = getattr(import_module(f".{module}", __name__), name)
    return kind


def find_kind(brought: object) -> type[AnyKind] | None:
    """The kind of what was brought, None if it is still to be read."""
    entries = [KINDS[base.__name__] for base in type(brought).__mro__ if base.__name__ in KINDS]
    kinds = (load_kind(entry) if isinstance(entry, str) else entry for entry in entries)
    return next((kind for kind in kinds if isinstance(brought, kind.brought)), None)


def need_kind(brought: object) -> type[AnyKind]:
    """The kind of what was brought."""
    kind = find_kind(brought)
    assert kind is not None
    return kind


def name_saved() -> dict[str, type[AnyKind]]:
    """The kinds that files of models hold, by name."""
    kinds = (load_kind(entry) if isinstance(entry, str) else entry for entry in KINDS.values())
    return {kind.name: kind for kind in kinds if kind.is_saved}


def read_rows(table: Table, columns: Mapping[str, Any]) -> Answers | Tags:
    """Answers of a table: sets of tags if they are that beyond doubt.

    They are if a separator is given, if each tag has a column by name of the form, or if cells hold lists.
    """
    form, label, separator = columns.get("format"), columns.get("label"), columns.get("separator")
    if separator is None and form != ONE_HOT:
        name = None
        if label is None:
            name = table.find_usual("label") or find_sets_column(table) or next(iter(table.candidates("label")), None)
        elif isinstance(label, str):
            name = label if label in table.names else table.synonyms.get(label)
        if name is None or table.lists(name) is None:
            return Answers.from_frame(table, **{role: given for role, given in columns.items() if role != "separator"})
    check_separator(separator, "fuse")
    from .tags import Tags

    known = inspect.signature(Tags.from_frame).parameters
    for name in given(columns):
        if name not in known:
            raise ParameterError(
                Sentence(f"{{{name}}} does not go with sets of tags.", **{name: None}), "Leave it out.", keyword=name
            )
    return Tags.from_frame(table, **{name: value for name, value in columns.items() if name in known})
