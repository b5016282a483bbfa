"""Say what has changed in a list of open tasks since its reader loaded it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.models import TaskRow
from console.statuses import TaskStatus
from console.web.execution import waiting

if TYPE_CHECKING:
    from console.web.core.scope import Scope

_KEY = re.compile(r"\b(\d{1,15})-(\d{1,15})\b")
_READ = ("execution_id", "task", "state", "execution__arn", "execution__project_id")


@dataclass(frozen=True, slots=True)
class TaskListChanges:
    """What has changed since a list of open tasks was shown.

    ``ended``: those of its tasks that have. ``total``: how many are open. ``new``: how many of them
    were scheduled since.
    """

    ended: tuple[TaskRow, ...]
    total: int
    new: int

    @property
    def seen(self) -> str:
        """Return what a reader who has this answer has seen."""
        return f"{self.total}-{self.new}"


def list_changes(
    scope: Scope, filters: waiting.TaskFilters, shown: str, since_ms: int
) -> TaskListChanges:
    """Return what has changed in a list since a moment. ``shown``: keys of tasks, ``7-5,8-5``."""
    keys = {(int(number), int(task)) for number, task in _KEY.findall(shown)[: waiting.PAGE]}
    rows = TaskRow.objects.filter(
        execution__in={number for number, _ in keys},
        execution__project=scope.project,
        status=TaskStatus.CLOSED,
    )
    ended = rows.select_related("execution").only(*_READ) if keys else ()
    every = waiting.open_tasks(scope, filters)
    return TaskListChanges(
        tuple(row for row in ended if (row.execution_id, row.task) in keys),
        every.count(),
        every.filter(scheduled_ms__gt=since_ms).count(),
    )
