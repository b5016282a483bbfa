"""Report the outcome of a Map Run to the task of its distributed Map.

Its ``dispatches``: one for the Map Run that was begun, and one for each time in a row that it could
not begin or go on.
"""

from __future__ import annotations

from django.db.models import F

from console.models import TaskRow
from console.statuses import TaskKind, TaskStatus


def scheduled_maps() -> list[tuple[int, int]]:
    """Return (execution, task) of Map tasks that nobody has taken."""
    maps = TaskRow.objects.filter(status=TaskStatus.SCHEDULED, kind=TaskKind.MAP)
    return list(maps.values_list("execution_id", "task"))


def count_failures(execution_id: int, task: int) -> int | None:
    """Return how often in a row the Map could not go on; None if its task has ended."""
    # Not the whole row: it has the inputs of all children, and this is asked for each hundred.
    tasks = TaskRow.objects.filter(execution_id=execution_id, task=task)
    row = tasks.values_list("status", "dispatches").first()
    if row is None or row[0] == TaskStatus.CLOSED:
        return None
    return row[1] - (row[0] == TaskStatus.STARTED)


def count_failure(execution_id: int, task: int) -> int | None:
    """Count that the Map could not go on; return how often, None if its task has ended."""
    tasks = TaskRow.objects.filter(execution_id=execution_id, task=task)
    tasks.update(dispatches=F("dispatches") + 1)
    return count_failures(execution_id, task)


def reset_failures(execution_id: int, task: int) -> None:
    """Forget the failures: the Map went on."""
    TaskRow.objects.filter(execution_id=execution_id, task=task).update(dispatches=1)


def was_lost(execution_id: int, task: int) -> bool:
    """Tell whether a process has died while it computed the first steps of the Map's children."""
    tasks = TaskRow.objects.filter(execution_id=execution_id, task=task)
    return tasks.filter(losses__gt=0).exists()
