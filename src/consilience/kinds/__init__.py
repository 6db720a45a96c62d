"""What users bring, as answers and back: the register of tasks.

A new task is a file in this folder and one line in `KINDS`.
"""

from __future__ import annotations

from .base import AnyKind, TableKind
from .masks import MasksKind
from .span_task import SpansKind
from .tags import TagsKind

KINDS: list[type[AnyKind]] = [
    TableKind,
    SpansKind,
    MasksKind,
    TagsKind,
]


def find_kind(brought: object) -> type[AnyKind] | None:
    """Return the task of what was brought, None if it is still to be read."""
    return next((task for task in KINDS if isinstance(brought, task.brought)), None)


def need_kind(brought: object) -> type[AnyKind]:
    """Return the task of what was brought."""
    task = find_kind(brought)
    assert task is not None
    return task


def name_saved() -> dict[str, type[AnyKind]]:
    """Return the tasks that files of models hold, by name."""
    return {task.name: task for task in KINDS if task.is_saved}
