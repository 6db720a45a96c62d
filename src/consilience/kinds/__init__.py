"""What users bring, as answers and back: the register of kinds.

A new kind is a file in this folder and an entry in `KINDS`. Nothing is imported before something of a kind is brought.
"""

from __future__ import annotations

from importlib import import_module

from .base import AnyKind, TableKind

# By the name of the type that users bring: the kinds that take it, of which the first one that recognises what was
# brought is meant. Each is a class, or its module and name.
KINDS: dict[str, list[str | type[AnyKind]]] = {
    "Answers": [TableKind],
    "Spans": ["span_task.SpansKind"],
    "Masks": ["masks.MasksKind"],
    "Tags": ["tags.TagsKind"],
}


def load_kind(entry: str | type[AnyKind]) -> type[AnyKind]:
    """The class that an entry of the register stands for."""
    if not isinstance(entry, str):
        return entry
    module, name = entry.split(".")
    kind: type[AnyKind] = getattr(import_module(f".{module}", __name__), name)
    return kind


def find_kind(brought: object) -> type[AnyKind] | None:
    """The kind of what was brought, None if it is still to be read."""
    for base in type(brought).__mro__:
        for entry in KINDS.get(base.__name__, ()):
            kind = load_kind(entry)
            if isinstance(brought, kind.brought) and kind.recognises(brought):
                return kind
    return None


def need_kind(brought: object) -> type[AnyKind]:
    """The kind of what was brought."""
    kind = find_kind(brought)
    assert kind is not None
    return kind


def name_saved() -> dict[str, type[AnyKind]]:
    """The kinds that files of models hold, by name."""
    kinds = [load_kind(entry) for entries in KINDS.values() for entry in entries]
    return {kind.name: kind for kind in kinds if kind.is_saved}
