"""Find the project and the called target of tasks, so that calls share the threads fairly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.db.models.functions import Substr

from console.models import TaskRow

if TYPE_CHECKING:
    from collections.abc import Collection

_LOOKED_THROUGH = 2_000
"""Characters to read of a task's input. The target is usually near its beginning; otherwise the
calls of a service share one target."""
_CALLED = re.compile(r'"(ApiEndpoint|FunctionName)"\s*:\s*"([^"]+)"')


def find_call_targets(tasks: Collection[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, str]]:
    """Return (execution, task) -> (project, target) of existing tasks."""
    keys = set(tasks)
    rows = TaskRow.objects.filter(
        execution_id__in={execution for execution, _ in keys},
        task__in={task for _, task in keys},
    ).annotate(start=Substr("input", 1, _LOOKED_THROUGH))
    columns = ("execution_id", "task", "execution__project_id", "service", "resource", "start")
    return {
        (execution, task): (project, _target(service or resource, start))
        for execution, task, project, service, resource, start in rows.values_list(*columns)
        if (execution, task) in keys
    }


def _target(called: str, start: str) -> str:
    """Return the target of a call: a function, a host, or a service."""
    match = _CALLED.search(start)
    if match is None:
        return called
    name = match[2]
    if match[1] == "ApiEndpoint":
        try:
            name = urlsplit(name if "//" in name else f"//{name}").netloc.lower()
        except ValueError:
            return called
    return f"{called} {name}"
