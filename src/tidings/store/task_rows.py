"""New tasks as rows of their table, the same for both databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model.task import NewTask, TaskId

COLUMNS = (
    "id",
    "tenant",
    "queue",
    "kind",
    "priority",
    "due_at",
    "changed_at",
    "ordering_key",
    "first_due",
    "head",
    "expires_at",
    "max_attempts",
)


def task_rows(tasks: Sequence[NewTask], ids: Sequence[TaskId], at: int) -> list[tuple[Any, ...]]:
    """One row a task; one with an order key is not the first of its line until that is looked at."""
    return [
        (
            id_,
            task.tenant,
            task.queue,
            task.kind,
            task.priority,
            task.due_at,
            at,
            task.ordering_key,
            None if task.ordering_key is None else task.due_at,
            task.ordering_key is None,
            task.expires_at,
            task.max_attempts,
        )
        for id_, task in zip(ids, tasks, strict=True)
    ]
