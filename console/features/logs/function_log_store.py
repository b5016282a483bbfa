"""Store the output of function calls for a week."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.db import audit, clock, rows
from console.db.writer import write
from console.features.logs.models import FunctionLog
from console.models import Execution

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.models import Project

KEPT_MS = 7 * 24 * 3600 * 1000
_AT_ONCE = 500


def insert_logs(logs: Sequence[FunctionLog]) -> None:
    """Insert rows in one transaction, except rows of deleted executions."""

    def store() -> None:
        numbers = {log.execution_id for log in logs}
        there = set(Execution.objects.filter(pk__in=numbers).values_list("pk", flat=True))
        rows.insert_all([log for log in logs if log.execution_id in there])

    write(store)


def remove_old_logs() -> None:
    """Delete logs older than a week."""
    old = FunctionLog.objects.filter(started_ms__lt=clock.now_ms() - KEPT_MS)
    while numbers := list(old.values_list("pk", flat=True)[:_AT_ONCE]):
        _remove(numbers)


def _remove(numbers: list[int]) -> None:
    write(lambda: FunctionLog.objects.filter(pk__in=numbers).delete())


def delete_logs(project: Project, region: str, function: str, actor: audit.Actor) -> None:
    """Delete a function's logs in a project, some calls per transaction."""
    rows = FunctionLog.objects.filter(
        function=function,
        execution__project=project,
        execution__arn__contains=f":states:{region}:",
    )
    write(lambda: audit.record(project, actor, "logs:DeleteLogGroup", f"/aws/lambda/{function}"))
    while numbers := list(rows.values_list("pk", flat=True)[:_AT_ONCE]):
        _remove(numbers)


def logs_of_tasks(execution_id: int, tasks: Iterable[int]) -> list[FunctionLog]:
    """Return the logs of some tasks of an execution, oldest first."""
    logs = FunctionLog.objects.filter(execution_id=execution_id, task__in=list(tasks))
    return list(logs.order_by("started_ms", "pk"))
