"""Find executions: by ARN, by number, by machine or Map Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Case, Q, When

from console import arns
from console.errors import ErrorCode, ServiceError
from console.fast_path import rows
from console.models import Alias, Execution, MapRun, StateMachine, Version
from console.statuses import ExecutionStatus
from console.store.executions import redrive

if TYPE_CHECKING:
    from console.models import Project

_NONE = Q(pk__in=())


def get_execution(project: Project, arn: str) -> Execution:
    """Return an execution of the project; raise InvalidArn or ExecutionDoesNotExist."""
    parsed = arns.parse_arn(arn, "execution")
    execution = rows.fetch_one(Execution, "arn = %s AND project_id = %s", [parsed.text, project.pk])
    if execution is None:
        raise ServiceError(ErrorCode.ExecutionDoesNotExist, f"Execution Does Not Exist: '{arn}'")
    execution.project = project
    if execution.map_run_id is not None:
        execution.map_run = MapRun.objects.get(pk=execution.map_run_id)
    return execution


def with_project(number: int) -> Execution:
    """Return an execution by its number, with its project and without its payloads."""
    rows = Execution.objects.select_related("project").defer("input", "output", "cause")
    return rows.get(pk=number)


def list_executions(
    owner: StateMachine | Version | Alias | MapRun,
    *,
    status: str | None = None,
    redriven: bool | None = None,
    after: tuple[int, int] | None = None,
    limit: int = 100,
) -> list[Execution]:
    """Return up to ``limit`` executions of a machine or Map Run, newest first, without payloads.

    Those of a Map Run that wait for its redrive have the status PENDING_REDRIVE; the rows are never
    saved. ``after``: (start_ms, id) of the last row of the page before.
    """
    by_owner: dict[type, dict[str, Any]] = {
        MapRun: {"map_run": owner},
        Version: {"version_arn": owner.arn},
        Alias: {"alias_arn": owner.arn},
        StateMachine: {"state_machine": owner},
    }
    executions = Execution.objects.filter(**by_owner[type(owner)])
    waiting = redrive.waiting_children(owner) if isinstance(owner, MapRun) else _NONE
    if status == ExecutionStatus.PENDING_REDRIVE:
        executions = executions.filter(waiting)
    elif status:
        executions = executions.filter(~waiting, status=status)
    if redriven is not None:
        executions = (
            executions.filter(redrive_count__gt=0)
            if redriven
            else executions.filter(redrive_count=0)
        )
    if after:
        start_ms, number = after
        executions = executions.filter(
            Q(start_ms__lt=start_ms) | Q(start_ms=start_ms, id__lt=number)
        )
    marked = executions.annotate(waits=Case(When(waiting, then=True), default=False))
    rows = marked.select_related("map_run").defer("input", "output", "cause")
    listed: list[Execution] = []
    for execution in rows.order_by("-start_ms", "-id")[:limit]:
        if execution.waits:
            execution.status = ExecutionStatus.PENDING_REDRIVE
        listed.append(execution)
    return listed
