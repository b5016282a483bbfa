"""Report the outcome of a Map Run to the task of its distributed Map.

The task row's ``dispatches`` counts the begun Map Run as one, and each consecutive failure to begin
or advance it as one more.
"""

from __future__ import annotations

from django.db.models import F

from console.models import TaskRow
from console.statuses import TaskKind, TaskStatus


def scheduled_maps() -> list[tuple[int, int]]:
    """Return (execution, task) of the Map tasks that are not started."""
    maps = TaskRow.objects.filter(status=TaskStatus.SCHEDULED, kind=TaskKind.MAP)
    return list(maps.values_list("execution_id", "task"))


def count_failures(execution_id: int, task: int) -> int | None:
    """Return the consecutive failures of the Map; None if its task has ended."""
    # Not the whole row, which has the inputs of all children: this query runs for every hundred.
    tasks = TaskRow.objects.filter(execution_id=execution_id, task=task)
    row = tasks.values_list("status", "dispatches").first()
    if row is None or row[0] == TaskStatus.CLOSED:
        return None
    return row[1] - (row[0] == TaskStatus.STARTED)


def count_failure(execution_id: int, task: int) -> int | None:
    """Count a failure of the Map; return the number, None if its task has ended."""
    tasks = TaskRow.objects.filter(execution_id=execution_id, task=task)
    tasks.update(dispatches=F("dispatches") + 1)
    return count_failures(execution_id, task)


def reset_failures(execution_id: int, task: int) -> None:
    """Reset the failures after the Map has advanced."""
    TaskRow.objects.filter(execution_id=execution_id, task=task).update(dispatches=1)


def was_lost(execution_id: int, task: int) -> bool:
    """Return whether a process died while it computed the first steps of the Map's children."""
    tasks = TaskRow.objects.filter(execution_id=execution_id, task=task)
    return tasks.filter(losses__gt=0).exists()
