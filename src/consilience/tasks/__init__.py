"""What users bring, as answers and back: the register of tasks.

A new task is a file in this folder and one line in `TASKS`.
"""

from __future__ import annotations

from .base import AnyTask, TableTask
from .masks import MasksTask
from .span_task import SpansTask
from .tag_task import TagsTask

TASKS: list[type[AnyTask]] = [
    TableTask,
    SpansTask,
    MasksTask,
    TagsTask,
]


def find_task(brought: object) -> type[AnyTask] | None:
    """Return the task of what was brought, None if it is still to be read."""
    return next((task for task in TASKS if isinstance(brought, task.brought)), None)


def need_task(brought: object) -> type[AnyTask]:
    """Return the task of what was brought."""
    task = find_task(brought)
    assert task is not None
    return task


def name_saved() -> dict[str, type[AnyTask]]:
    """Return the tasks that files of models hold, by name."""
    return {task.name: task for task in TASKS if task.is_saved}
