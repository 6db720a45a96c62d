"""What users bring, as answers and back: the register of kinds.

A new kind is a file in this folder and an entry in `KINDS`. Nothing is imported before something of a kind is brought.
"""

from __future__ import annotations

from importlib import import_module

from .base import AnyKind, TableKind

# By the name of the type that users bring: its kind, as a class, or as the module and name of one.
KINDS: dict[str, str | type[AnyKind]] = {
    "Answers": TableKind,
    "Spans": "span_task.SpansKind",
    "Masks": "masks.MasksKind",
    "Tags": "tags.TagsKind",
}


def load_kind(entry: str) -> type[AnyKind]:
    """The kind whose module and name an entry of the register has."""
    module, name = entry.split(".")
    kind: type[AnyKind] = getattr(import_module(f".{module}", __name__), name)
    return kind


def find_kind(brought: object) -> type[AnyKind] | None:
    """The kind of what was brought, None if it is still to be read."""
    for base in type(brought).__mro__:
        entry = KINDS.get(base.__name__)
        if entry is not None:
            kind = load_kind(entry) if isinstance(entry, str) else entry
            if isinstance(brought, kind.brought):
                return kind
    return None


def need_kind(brought: object) -> type[AnyKind]:
    """The kind of what was brought."""
    kind = find_kind(brought)
    assert kind is not None
    return kind


def name_saved() -> dict[str, type[AnyKind]]:
    """The kinds that files of models hold, by name."""
    kinds = [load_kind(entry) if isinstance(entry, str) else entry for entry in KINDS.values()]
    return {kind.name: kind for kind in kinds if kind.is_saved}
