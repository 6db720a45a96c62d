"""What users bring, as answers and back: the register of kinds.

A new kind is a file in this folder and one line in `KINDS`. Of kinds that take the same type, the first one that
recognises what was brought is taken.
"""

from __future__ import annotations

from .base import AnyKind, TableKind
from .masks import MasksKind
from .span_task import SpansKind
from .tags import TagsKind

KINDS: list[type[AnyKind]] = [SpansKind, MasksKind, TagsKind, TableKind]


def find_kind(brought: object) -> type[AnyKind] | None:
    """The kind of what was brought, None if it is still to be read."""
    return next((kind for kind in KINDS if isinstance(brought, kind.brought) and kind.recognises(brought)), None)


def need_kind(brought: object) -> type[AnyKind]:
    """The kind of what was brought."""
    kind = find_kind(brought)
    assert kind is not None
    return kind


def name_saved() -> dict[str, type[AnyKind]]:
    """The kinds that files of models hold, by name."""
    return {kind.name: kind for kind in KINDS if kind.is_saved}
